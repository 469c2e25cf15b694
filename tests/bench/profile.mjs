// Shows where the time goes, and not how much there is: flame graphs of sagad by perf, and the cost of each statement
// by pg_stat_statements. It runs after the measurements, because both take time themselves.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flame, tree } from './flame.mjs'
import { loads } from './workloads.mjs'

export const profileSettings = [
  '-c',
  'shared_preload_libraries=pg_stat_statements',
  '-c',
  'pg_stat_statements.track=top'
]

const statements = (
  sagas
) => `select round((total_exec_time * 1000 / ${sagas})::numeric, 2), round(rows::numeric / ${sagas}, 2), calls,
  round(wal_bytes / ${sagas}),
  left(regexp_replace(query, '\\s+', ' ', 'g'), 90) from pg_stat_statements where query !~ 'pg_stat_' order by
  total_exec_time desc limit 15`

async function profileOf(rig, { id, name, args }, seconds, folder) {
  const data = join(folder, `${id}.perf`)
  rig.sql('create extension if not exists pg_stat_statements; select pg_stat_statements_reset()')
  const recorder = rig.launch('perf', 'perf', [
    'record',
    '-q',
    '-F',
    '499',
    '-g',
    '-e',
    'cpu-clock',
    '-o',
    data,
    '-p',
    String(rig.sagad.pid),
    '--',
    'sleep',
    String(seconds)
  ])
  const figures = await rig.drive([...args, '--seconds', String(seconds), '--steps', '0', '--warmup', '0'])
  const end = await recorder.ended
  if (end.code !== 0)
    throw new Error(
      `perf ended with ${end.code ?? end.signal}: is it installed, and may it be used here ` +
        `(kernel.perf_event_paranoid)?`
    )
  const told = spawnSync('perf', ['script', '-F', 'ip,sym', '-i', data], { encoding: 'utf8', maxBuffer: 1 << 30 })
  if (told.status !== 0) throw new Error(`perf script: ${told.stderr}`)
  rmSync(data)
  writeFileSync(join(folder, `flame-${id}.svg`), flame(`sagad: ${name}`, tree(told.stdout)))
  const sagas = Math.max(1, Math.round(figures.sagas_per_second * seconds))
  return (
    `${name}: for each saga us, rows, calls in all, WAL bytes, ` +
    `statement\n${rig.sql(statements(sagas)).replaceAll('|', '\t')}\n`
  )
}

export async function profile(rig, seconds, folder) {
  const pages = []
  for (const load of loads) pages.push(await profileOf(rig, load, seconds, folder))
  writeFileSync(join(folder, 'statements.txt'), pages.join('\n'))
  return { profiles: loads.map(({ id }) => `flame-${id}.svg`) }
}
