// The measurements of one round, in their order: each workload is near the reference that it is compared with. A
// measurement returns figures. `per_second` (of what: `of`) is the first one to look at.
import { sleep } from '../lib/world.mjs'
import { traced } from './traced.mjs'

// The durable changes of one saga that any engine has to make: its start, each outcome, its end. Fewer rows for them
// are our advantage, but they are no fewer transitions.
export const transitions = { bench_w1: 4, bench_gone: 4, bench_w2: 6, bench_w3: 4 }

const batchConnections = 4
const clients64 = ['--concurrency', '64']

function batchFor(inFlight) {
  return Math.min(1000, Math.max(1, Math.floor(inFlight / batchConnections)))
}

// Runs `starts` and other loads of the driver, each through the public API.
function sagas(saga, args, { rows = false, of = 'sagas' } = {}) {
  return async ({ rig, gauge, seconds }) => {
    const figures = await gauge.around(
      () => rig.drive(['--saga', saga, '--seconds', String(seconds), '--steps', '0', '--warmup', '0', ...args]),
      { rows }
    )
    const { sagas_per_second: perSecond, transitions_per_second: unused, ...rest } = figures
    return {
      per_second: perSecond,
      of,
      ...(transitions[saga] && { transitions_per_second: perSecond * transitions[saga] }),
      ...rest
    }
  }
}

const single = (clients) => ['--concurrency', String(clients)]
const inFlight = (count) => [
  '--batch',
  String(batchFor(count)),
  '--in-flight',
  String(count),
  '--concurrency',
  String(batchConnections)
]
// The loads that --profile looks into, as options of the driver.
export const loads = [
  { id: 'w1-single', name: 'W1 by single starts, 256 clients that wait', args: ['--saga', 'bench_w1', ...single(256)] },
  { id: 'w1-batches', name: 'W1 by batches, 1,024 in flight', args: ['--saga', 'bench_w1', ...inFlight(1024)] },
  { id: 'w2-batches', name: 'W2 by batches, 1,024 in flight', args: ['--saga', 'bench_w2', ...inFlight(1024)] },
  { id: 'w3-single', name: 'W3 three HTTP steps, 256 clients that wait', args: ['--saga', 'bench_w3', ...single(256)] }
]

const reference =
  (name, clients) =>
  ({ reference: measured }) =>
  ({ seconds }) =>
    measured.run(name, clients ?? measured.clients, seconds)

function openLoop({ rig, gauge, seconds, round }) {
  const rate = Math.max(1, Math.floor((round.w1_single?.per_second ?? 0) / 2))
  return sagas('bench_w1', ['--rate', String(rate), '--concurrency', '512'])({ rig, gauge, seconds }).then(
    (figures) => ({ ...figures, rate })
  )
}

// Puts half of the clients on each of two engines over one database.
async function twoEngines({ rig, seconds }) {
  return rig.withSecondEngine(async (port) => {
    const args = ['--saga', 'bench_w1', '--seconds', String(seconds), '--steps', '0', '--warmup', '0', ...single(128)]
    const [one, other] = await Promise.all([rig.drive(args), rig.drive(args, port)])
    const perSecond = one.sagas_per_second + other.sagas_per_second
    return {
      per_second: perSecond,
      of: 'sagas',
      transitions_per_second: perSecond * transitions.bench_w1,
      errors: one.errors + other.errors,
      refused: one.refused + other.refused
    }
  })
}

// Makes new calls outside sagas and then repeats each of them once, which shows the cost of the registry's answer to a
// repeat. In a round that is long enough the runs go to rest before the repeats come; a second repeat of a run would
// find it in memory.
let rounds = 0
const repeatsOf =
  (tool) =>
  async ({ rig, seconds }) => {
    const prefix = `w5-${tool}-${rounds++}`
    const drive = (kind, ...args) =>
      rig.drive(['--calls', tool, '--only', kind, '--run-prefix', prefix, '--warmup', '0', ...clients64, ...args])
    const { new: made, talk } = await drive('new', '--seconds', String(Math.max(1, Math.round(seconds / 2))))
    const count = String(made.rounds[0].calls)
    if (seconds >= 20) await sleep(17000)
    const { repeated, talk: more } = await drive('repeated', '--made', count, '--number', count)
    const of = ({ per_second, latency_ms }) => ({ per_second, latency_ms })
    return {
      per_second: repeated.per_second,
      of: 'repeats',
      made: of(made),
      repeated: of(repeated),
      ratio: repeated.per_second / made.per_second,
      errors: made.rounds[0].errors + repeated.rounds[0].errors,
      ...((talk || more) && { talk: [talk, more].filter(Boolean).join('; ') })
    }
  }

// Makes new calls through /v1/operations and through /mcp in turns, which shows what the protocol of agents costs.
async function agents({ rig, seconds }) {
  const part = String(Math.max(1, Math.round(seconds / 4)))
  const {
    new: made,
    mcp,
    mcp_ratio: ratio
  } = await rig.drive([...['--calls', 'bench.do', '--mcp', '--rounds', '2', '--seconds', part], ...clients64])
  const errors = [...made.rounds, ...mcp.rounds].reduce((sum, round) => sum + round.errors, 0)
  const of = ({ per_second, latency_ms }) => ({ per_second, latency_ms })
  return { per_second: mcp.per_second, of: 'calls', made: of(made), mcp: of(mcp), ratio: ratio.median, errors }
}

// Runs W1 with sagas that are kept, before and after W1 with a retention of two seconds. This shows how much of the
// rate the removal of ended sagas takes, whichever way the machine drifts. The remaining sagas are removed before the
// next measurement.
async function forgotten(context) {
  const { rig, seconds } = context
  const half = Math.max(1, Math.round(seconds / 2))
  const run = (saga, time) => sagas(saga, inFlight(1024))({ ...context, seconds: time })
  const keep = () => run('bench_w1', Math.max(1, Math.round(half / 2)))
  const gone = async () => (await rig.metrics()).sagad_sagas_forgotten_total
  const kept = await keep()
  const before = await gone()
  rig.sql('checkpoint')
  const measured = await run('bench_gone', half)
  const during = (await gone()) - before
  const left = () => Number(rig.sql("select count(*) from sagad.due where what = 'forget'"))
  const begun = Date.now()
  const leftBehind = left()
  while (left() > 0) {
    if (Date.now() - begun > 600000) throw new Error('ended sagas whose retention is over are not removed')
    await sleep(500)
  }
  const idle = (Date.now() - begun) / 1000
  rig.sql('checkpoint')
  const all = [kept, measured, await keep()]
  const keptPerSecond = (all[0].per_second + all[2].per_second) / 2
  const total = (name) => all.reduce((sum, figures) => sum + figures[name], 0)
  const talk = all
    .map((figures) => figures.talk)
    .filter(Boolean)
    .join('; ')
  return {
    ...measured,
    kept_per_second: keptPerSecond,
    ratio: measured.per_second / keptPerSecond,
    forgotten_per_second: during / measured.seconds,
    forgotten_per_second_idle: leftBehind / idle,
    left_behind: leftBehind,
    errors: total('errors'),
    refused: total('refused'),
    ...(talk && { talk })
  }
}

const hundred = JSON.stringify({ items: Array.from({ length: 100 }, (_, i) => i) })

// --workloads chooses by `workload`; the workload `ref` always runs. A measurement with `batches: true` needs POST
// /v1/sagas/batch; `unless` gives way to it.
export function measurements({ rig, reference: measured }) {
  const ref = (name, clients) => reference(name, clients)({ reference: measured })
  const all = [
    {
      id: 'naive',
      workload: 'ref',
      name: `(i) pgbench, a step in five statements, ${measured.clients} clients`,
      measure: ref('naive')
    },
    {
      id: 'w1_single',
      workload: 'W1',
      name: 'W1 three steps, single starts, 256 clients that wait for the end',
      measure: sagas('bench_w1', single(256))
    },
    {
      id: 'w1_1024',
      workload: 'W1',
      batches: true,
      name: 'W1 by batches of 256, 1,024 in flight',
      measure: sagas('bench_w1', inFlight(1024), { rows: true })
    },
    {
      id: 'w1_1024',
      workload: 'W1',
      unless: true,
      name: 'W1 by single starts (no batches here), 1,024 in flight',
      measure: sagas('bench_w1', ['--in-flight', '1024', '--concurrency', '64'], { rows: true })
    },
    {
      id: 'rows',
      workload: 'ref',
      name: '(ii) rows by INSERT ... SELECT, primary key, 2 connections',
      measure: ref('rows', 2)
    },
    {
      id: 'w1_10000',
      workload: 'W1',
      batches: true,
      name: 'W1 by batches of 1,000, 10,000 in flight',
      measure: sagas('bench_w1', inFlight(10000), { rows: true })
    },
    {
      id: 'retention',
      workload: 'retention',
      batches: true,
      name: 'W1 by batches of 256, 1,024 in flight, removed 2 s after their end',
      measure: forgotten
    },
    {
      id: 'w2',
      workload: 'W2',
      batches: true,
      name: 'W2 third step fails, two undone, by batches, 1,024 in flight',
      measure: sagas('bench_w2', inFlight(1024), { rows: true })
    },
    {
      id: 'w2_single',
      workload: 'W2',
      name: 'W2 by single starts, 256 clients that wait',
      measure: sagas('bench_w2', single(256))
    },
    {
      id: 'w3',
      workload: 'W3',
      name: 'W3 three HTTP steps, single starts, 256 clients that wait',
      measure: sagas('bench_w3', single(256))
    },
    {
      id: 'w4',
      workload: 'W4',
      name: 'W4 for_each over 100, single starts, 64 clients that wait',
      measure: sagas('bench_w4', [...single(64), '--input', hundred])
    },
    {
      id: 'w5',
      workload: 'W5',
      name: 'W5 calls outside sagas of a tool that does nothing, and their repeats, 64 clients',
      measure: repeatsOf('bench.do')
    },
    { id: 'w5_http', workload: 'W5', name: 'W5 the same of a tool over HTTP', measure: repeatsOf('bench.ask') },
    { id: 'mcp', workload: 'mcp', name: 'calls through /mcp beside /v1/operations, 64 clients', measure: agents },
    { id: 'commit_32', workload: 'ref', name: '(iii) commits of one row, 32 clients', measure: ref('commit', 32) },
    {
      id: 'w7',
      workload: 'W7',
      name: 'W7 starts only, 256 clients',
      measure: sagas('bench_w7', [...single(256), '--no-wait'], { of: 'acknowledgements' })
    },
    {
      id: 'w7_batch',
      workload: 'W7',
      batches: true,
      name: 'W7 starts only, by batches of 256, 4 clients',
      measure: sagas('bench_w7', ['--batch', '256', '--no-wait', '--concurrency', '4'], { of: 'acknowledgements' })
    },
    { id: 'commit_1', workload: 'ref', name: '(iii) commits of one row, 1 client', measure: ref('commit', 1) },
    { id: 'one', workload: 'W1', name: 'W1 one saga at a time', measure: sagas('bench_w1', single(1)) },
    {
      id: 'w1_two',
      workload: 'two',
      name: 'W1 two engines on the one database, 128 clients at each',
      measure: twoEngines
    },
    {
      id: 'traces',
      workload: 'traces',
      name: 'W1 with traces of none, all and a hundredth, 256 clients that wait',
      measure: traced
    },
    { id: 'open', workload: 'W1', name: 'W1 at half of the rate of single starts, open loop', measure: openLoop }
  ]
  return all.filter((one) => (one.batches ? rig.batches : !one.unless || !rig.batches))
}
