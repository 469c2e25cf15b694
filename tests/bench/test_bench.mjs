// Runs the benchmark in rounds of a second. It must end, and its JSON and its pictures must have everything. The
// figures do not matter here.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, promise, root, run } from '../lib/world.mjs'

const folder = mkdtempSync(join(tmpdir(), 'sagad-bench-'))
let result

await run({ showLogs() {}, stop: () => rmSync(folder, { recursive: true, force: true }) }, async () => {
  await promise(
    'a run of one round ends well',
    () => {
      const ran = spawnSync(
        process.execPath,
        [
          join(root, 'tests', 'bench', 'bench.mjs'),
          '--round',
          '1',
          '--rounds',
          '1',
          '--workloads',
          'W2,W7',
          '--out',
          folder
        ],
        { encoding: 'utf8' }
      )
      const why = `${ran.stdout}${ran.stderr}`
        .split('\n')
        .filter((line) => /failed|error/i.test(line))
        .join('\n')
      expect(ran.status === 0, 'its exit code', `${ran.status}\n${why}\n${ran.stdout}`)
      expect(
        ran.stdout.includes('What must be reached') && !ran.stdout.includes('\x1b'),
        'its table, without colour',
        ran.stdout
      )
      result = JSON.parse(readFileSync(join(folder, 'bench.json'), 'utf8'))
    },
    280
  )
  await promise('its JSON has every measurement with a rate, and what a saga cost', () => {
    for (const { id, name, figures } of result?.measures ?? [{}]) {
      expect(figures?.per_second?.median > 0, `the rate of ${name}`, figures)
      if (id === 'w2_single')
        for (const part of [
          'cpu_per_1000.both',
          'commits_per_saga',
          'wal_bytes_per_saga',
          'turns_per_saga',
          'latency_ms.p99'
        ])
          expect(figures[part]?.median > 0, `${part} of ${name}`, figures)
      if (id === 'w2_single') expect(Math.abs(figures.turns_per_saga.median - 6) < 0.5, 'turns of a W2 saga', figures)
    }
  })
  await promise('its JSON has every bar, each with a figure or a reason why not', () => {
    expect(result?.bars.length > 15, 'the bars', result?.bars)
    for (const bar of result.bars) expect(bar.figure ? bar.met || bar.note : bar.note, `the bar "${bar.text}"`, bar)
  })
  await promise('its pictures are there', () => {
    for (const name of ['rates', 'bars', 'latency', 'processor'])
      expect(readFileSync(join(folder, `${name}.svg`), 'utf8').startsWith('<svg '), `${name}.svg`)
  })
})
