// What a call of the registry costs: a new call, the rest of its run, its repeat after that rest, and a new call
// through /mcp, in rounds that take turns. For each it prints the rate, and the processor time of sagad and of
// PostgreSQL for a call. On a machine that others use, time says more than a rate.
//
//   SAGAD=... SAGACTL=... SAGAD_LOAD=... SAGAD_SHOP=.../bench-service node tests/bench/calls.mjs [--rounds N]
//     [--seconds S] [--tool bench.do|bench.ask] [--concurrency C] [--statements] [--sagad "SETTINGS"]
//
// bench.ask is called over HTTP, as tools of the registry are; bench.do does nothing at all. --statements shows what
// each statement costs PostgreSQL meanwhile (pg_stat_statements).
import { parseArgs } from 'node:util'
import { sleep } from '../lib/world.mjs'
import { cpuOf, cpuOfFamily } from './gauge.mjs'
import { Rig } from './rig.mjs'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    tool: { type: 'string', default: 'bench.do' },
    concurrency: { type: 'string', default: '64' },
    sagad: { type: 'string', default: '' },
    statements: { type: 'boolean', default: false }
  }
})
const restAfter = 17 // seconds; runs rest after 15

const rig = new Rig()
const kinds = ['new', 'mcp', 'rest', 'repeated']
const figures = Object.fromEntries(kinds.map((kind) => [kind, []]))

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b)
  const at = Math.floor(sorted.length / 2)
  return sorted.length % 2 ? sorted[at] : (sorted[at - 1] + sorted[at]) / 2
}

async function around(kind, count, work) {
  const read = () => [cpuOf(rig.sagad.pid), cpuOfFamily(rig.postgres.pid)]
  if (values.statements) rig.sql('select pg_stat_statements_reset()')
  const before = read()
  const result = await work()
  const [sagad, postgres] = read().map((now, i) => now - before[i])
  const calls = count ?? result[kind].rounds[0].calls
  figures[kind].push({
    calls,
    perSecond: result?.[kind]?.per_second,
    sagad: (1e6 * sagad) / calls,
    postgres: (1e6 * postgres) / calls
  })
  if (values.statements) printStatements(kind, calls)
  return calls
}

function printStatements(kind, calls) {
  const rows = rig.sql(
    `select round((1000 * total_exec_time / ${calls})::numeric, 2), round(calls::numeric / ${calls}, 4),
       round(rows::numeric / ${calls}, 2), round(wal_bytes / ${calls}),
       left(regexp_replace(query, '\\s+', ' ', 'g'), 90)
     from pg_stat_statements where total_exec_time / ${calls} > 0.0002 order by total_exec_time desc limit 12`
  )
  console.log(`# ${kind}: us, statements, rows and WAL bytes of a call`)
  for (const row of rows.split('\n')) console.log(`#   ${row}`)
}

const drive = (args) =>
  rig.drive(['--calls', values.tool, '--warmup', '0', '--concurrency', values.concurrency, ...args])

try {
  await rig.open(
    values.sagad.split(' ').filter(Boolean),
    values.statements ? ['-c', 'shared_preload_libraries=pg_stat_statements'] : []
  )
  if (values.statements) rig.sql('create extension pg_stat_statements')
  rig.makeRoom(1024)
  await drive(['--only', 'new', '--number', '2000'])
  for (let round = 0; round < Number(values.rounds); round++) {
    const prefix = `calls-${round}`
    const timed = ['--seconds', values.seconds, '--run-prefix', prefix]
    const made = await around('new', undefined, () => drive(['--only', 'new', ...timed]))
    const mcp = await around('mcp', undefined, () => drive(['--only', 'mcp', ...timed]))
    await around('rest', made + mcp, () => sleep(restAfter * 1000))
    // Each of them once: a second repeat would find its run in memory.
    const again = ['--only', 'repeated', '--made', String(made), '--number', String(made), '--run-prefix', prefix]
    await around('repeated', undefined, () => drive(again))
  }
} finally {
  await rig.stop()
}

console.log(`${values.tool}, ${values.concurrency} clients, ${values.rounds} rounds of ${values.seconds} s; medians`)
for (const kind of kinds) {
  const of = (name) => median(figures[kind].map((one) => one[name]))
  const rate = kind === 'rest' ? '' : `${of('perSecond').toFixed(0)} a second, `
  console.log(
    `${kind.padEnd(9)} ${rate}${of('sagad').toFixed(1)} us of sagad and ${of('postgres').toFixed(1)} of PostgreSQL ` +
      `for a call (${figures[kind].map((one) => one.calls).join(', ')} calls)`
  )
}
const ratios = (kind, of) => figures[kind].map((one, i) => of(one, figures.new[i], figures.rest[i]))
const shown = (numbers) => `${median(numbers).toFixed(2)} (${numbers.map((one) => one.toFixed(2)).join(', ')})`
const time = (one) => one.sagad + one.postgres
const faster = (a, b) => a.perSecond / b.perSecond
console.log(`repeats against new calls, by the second: ${shown(ratios('repeated', faster))}`)
console.log(
  `a new call against a repeat, by processor time: ${shown(ratios('repeated', (a, b) => time(b) / time(a)))}, ` +
    `with the rest of its run ${shown(ratios('repeated', (a, b, rest) => (time(b) + time(rest)) / time(a)))}`
)
console.log(`/mcp against /v1/operations, by the second: ${shown(ratios('mcp', faster))}`)
console.log(`/v1/operations against /mcp, by processor time: ${shown(ratios('mcp', (a, b) => time(b) / time(a)))}`)
process.exit(0)
