// The table of the bars and of the figures that were reached. A figure is computed for each round from what that round
// measured, so that a ratio never compares two moments of the machine.
import { spread } from './statistics.mjs'

const rate = (figures) => figures?.per_second
const ratio = (a, b) => (a > 0 && b > 0 ? a / b : undefined)
const byBatches = (context, value) => (context.batches ? value : undefined)
const noBatches = 'the service takes no batches'

// less: true when small is good. of: computed from one round. once: computed from what is measured once in a run.
const rows = [
  {
    id: 'w1_1024',
    text: 'W1 by batches, 1,024 in flight: transitions against (i)',
    must: 20,
    aim: 35,
    needs: noBatches,
    of: (r, c) => byBatches(c, ratio(r.w1_1024?.transitions_per_second, rate(r.naive)))
  },
  {
    id: 'w1_10000',
    text: 'W1 by batches, 10,000 in flight: transitions against (i)',
    must: 20,
    aim: 35,
    needs: noBatches,
    of: (r) => ratio(r.w1_10000?.transitions_per_second, rate(r.naive))
  },
  {
    id: 'w1_single',
    text: 'W1 by single starts: transitions against (i)',
    must: 8,
    aim: 14,
    of: (r) => ratio(r.w1_single?.transitions_per_second, rate(r.naive))
  },
  {
    id: 'w2',
    text: 'W2 by batches, 1,024 in flight: transitions against (i)',
    must: 20,
    aim: 35,
    needs: noBatches,
    of: (r) => ratio(r.w2?.transitions_per_second, rate(r.naive))
  },
  {
    id: 'rows',
    text: 'row writes against (ii), by batches',
    must: 0.2,
    aim: 0.35,
    needs: noBatches,
    of: (r, c) => byBatches(c, ratio(r.w1_1024?.rows_per_second, rate(r.rows)))
  },
  {
    id: 'w3',
    text: 'W3: sagas against W1 by single starts',
    must: 0.4,
    aim: 0.6,
    of: (r) => ratio(rate(r.w3), rate(r.w1_single))
  },
  {
    id: 'w7',
    text: 'W7: acknowledgements, 256 clients, against (iii) at 32',
    must: 0.8,
    aim: 1.5,
    of: (r) => ratio(rate(r.w7), rate(r.commit_32))
  },
  {
    id: 'one',
    text: 'one saga at a time against four serial commits of (iii)',
    must: 2.5,
    aim: 1.6,
    less: true,
    of: (r) => ratio(rate(r.commit_1) / 4, rate(r.one))
  },
  {
    id: 'open',
    text: 'p99 at half of saturation, open loop, ms',
    must: 50,
    aim: 15,
    less: true,
    of: (r) => r.open?.latency_ms?.p99
  },
  {
    id: 'cpu',
    text: 'processor seconds per 1,000 W1 by single starts',
    must: 0.15,
    aim: 0.07,
    less: true,
    of: (r) => r.w1_single?.cpu_per_1000?.both
  },
  {
    id: 'wal',
    text: 'WAL bytes per W1 saga, 1,024 in flight',
    must: 3000,
    aim: 1500,
    less: true,
    of: (r) => r.w1_1024?.wal_bytes_per_saga
  },
  {
    id: 'commits',
    text: 'commits per W1 saga, 1,024 in flight',
    must: 0.04,
    aim: 0.01,
    less: true,
    of: (r) => r.w1_1024?.commits_per_saga
  },
  { id: 'hits', text: 'a registry hit against a new call', must: 3, aim: 8, of: (r) => r.w5?.ratio },
  {
    id: 'hits_http',
    text: 'a registry hit against a new call over HTTP',
    must: 3,
    aim: 8,
    of: (r) => r.w5_http?.ratio
  },
  { id: 'mcp', text: 'a call through /mcp against /v1/operations', must: 0.7, aim: 0.9, of: (r) => r.mcp?.ratio },
  {
    id: 'held',
    text: 'memory per saga in flight, KiB',
    must: 2,
    aim: 0.5,
    less: true,
    enough: 10000,
    once: (o) =>
      o.asleep?.in_flight && { value: o.asleep.in_flight.bytes_per_saga / 1024, at: o.asleep.in_flight.sagas }
  },
  {
    id: 'asleep',
    text: '100,000 asleep above an empty engine, MiB',
    must: 32,
    aim: 8,
    less: true,
    enough: 100000,
    once: (o) => o.asleep?.parked && { value: o.asleep.parked.grown_mib, at: o.asleep.parked.sagas }
  },
  {
    id: 'idle',
    text: 'idle with 1,000,000 parked: transactions a minute',
    must: 60,
    aim: 20,
    less: true,
    enough: 1000000,
    once: (o) => o.asleep?.parked && { value: o.asleep.parked.transactions_a_minute, at: o.asleep.parked.sagas }
  },
  {
    id: 'idle_cpu',
    text: 'idle with 1,000,000 parked: percent of a core',
    must: 1,
    aim: 1,
    less: true,
    enough: 1000000,
    once: (o) => o.asleep?.parked && { value: o.asleep.parked.cpu_percent, at: o.asleep.parked.sagas }
  },
  {
    id: 'kill_first',
    text: 'SIGKILL with 100,000 unfinished: to the first call, s',
    must: 1,
    aim: 0.3,
    less: true,
    enough: 100000,
    once: (o) => o.killed && { value: o.killed.first_call_seconds, at: o.killed.sagas }
  },
  {
    id: 'kill_all',
    text: 'SIGKILL with 100,000 unfinished: to all under way, s',
    must: 10,
    aim: 3,
    less: true,
    enough: 100000,
    once: (o) => o.killed && { value: o.killed.all_seconds, at: o.killed.sagas }
  },
  {
    id: 'grown',
    text: 'W1 with 10 million ended sagas against empty tables',
    must: 0.8,
    aim: 0.95,
    enough: 10000000,
    once: (o) => o.grown && { value: o.grown.ratio, at: o.grown.sagas }
  },
  {
    id: 'retention',
    text: 'W1 by batches while ended sagas are removed: against W1 that is kept',
    must: 0.9,
    aim: 0.95,
    needs: noBatches,
    of: (r) => r.retention?.ratio
  },
  {
    id: 'traces_few',
    text: 'W1 with traces of a hundredth against without',
    must: 0.95,
    aim: 0.98,
    of: (r) => r.traces?.few_against_off
  },
  {
    id: 'traces_all',
    text: 'W1 with traces of all against without',
    must: 0.7,
    aim: 0.85,
    of: (r) => r.traces?.all_against_off
  },
  {
    id: 'traces_cpu',
    text: 'processor time of W1 with traces of all against without',
    must: 1.4,
    aim: 1.2,
    less: true,
    of: (r) => r.traces?.all_cpu
  },
  {
    id: 'two',
    text: 'two engines on one database against one',
    must: 0.95,
    aim: 1.1,
    of: (r) => ratio(rate(r.w1_two), rate(r.w1_single))
  }
]

function verdict(row, value) {
  const reached = (bar) => (row.less ? value <= bar : value >= bar)
  return reached(row.aim) ? 'aim' : reached(row.must) ? 'must' : 'no'
}

// Returns [{id, text, must, aim, less, figure: spread, met: 'aim'|'must'|'no'|undefined, note}].
export function bars(rounds, once, context) {
  return rows.map(({ id, text, must, aim, less = false, needs, enough, of, once: fromOnce }) => {
    const row = { id, text, must, aim, less }
    if (of) {
      const figure = spread(rounds.map((round) => of(round, context)))
      if (!figure) return { ...row, note: needs && !context.batches ? needs : 'not measured' }
      return { ...row, figure, met: verdict(row, figure.median) }
    }
    const told = fromOnce(once)
    if (!Number.isFinite(told?.value)) return { ...row, note: 'not measured' }
    const figure = spread([told.value])
    // With fewer sagas than the table names, the figure is shown and not judged.
    if (enough && told.at < enough)
      return { ...row, figure, note: `with ${told.at.toLocaleString('en')} only: not judged` }
    return { ...row, figure, met: verdict(row, told.value) }
  })
}
