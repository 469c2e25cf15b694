// What a saga may cost: statements, transactions, rows and WAL in PostgreSQL, turns and allocations in the engine. The
// figures are in budget.json. A figure above its budget fails the test, and one far below is reported so that the
// budget can follow. The figures are counts and not times, so a slow or busy machine has the same ones.
//
//     node tests/bench/test_budget.mjs --write           writes budget.json anew, a little over what is measured here
//
// (run like any test of the whole, with SAGAD, SAGACTL, SAGAD_LOAD, SAGAD_SHOP and SAGAD_MALLOC_COUNT).
// full_page_writes is off here and nothing is vacuumed: how many pages are written whole depends on when the last
// checkpoint was, and not on what the engine does. fsync is off as well, since no figure depends on it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, freePort, promise, root, run, sleep } from '../lib/world.mjs'
import { definitions } from './definitions.mjs'

const file = join(root, 'tests', 'bench', 'budget.json')
const write = process.argv.includes('--write')
const postgresSettings = [
  'shared_preload_libraries=pg_stat_statements',
  'full_page_writes=off',
  'fsync=off',
  'autovacuum=off',
  'checkpoint_timeout=1h',
  'max_wal_size=8GB',
  'wal_keep_size=8GB',
  'shared_buffers=256MB'
]

// The room between a budget and the measured figure. Figures that are equal in every run have little room. WAL has
// more, because pages split where random keys fall. The number of turns that share a commit depends on the speed of
// commits, so it has much room.
const air = {
  turns: 1,
  statements: 1.01,
  reads: 1.01,
  commits: 1.01,
  rows: 1.01,
  wal_bytes: 1.15,
  allocations: 1.06,
  allocations_per_turn: 1.06
}
const airOfBatches = {
  ...air,
  statements: 3,
  reads: undefined,
  commits: 3,
  allocations: 1.15,
  allocations_per_turn: 1.15
}

// What is read back together shares some memory, and how much comes together depends on how busy the machine is.
const airOfReading = { allocations: 1.2, allocations_per_turn: 1.2 }

// A few statements by the clock do not count: an engine asks them now and then, whatever it does.
const byTheClock = { statements: 0.05, reads: 0.05, commits: 0.05 }

class Budget extends World {
  async open() {
    await this.startPostgres(postgresSettings.flatMap((setting) => ['-c', setting]))
    if (
      this.sql("select count(*) from pg_available_extensions where name in ('pg_stat_statements', 'pg_walinspect')") !==
      '2'
    ) {
      console.log('# skipped: PostgreSQL has no pg_stat_statements and pg_walinspect here')
      await this.stop()
      process.exit(77)
    }
    this.sql('create extension pg_stat_statements; create extension pg_walinspect; create role engine superuser login')
    this.dsn = this.dsn.replace('user=postgres', 'user=engine')
    this.migrate()
    this.dsn = this.dsn.replace('user=engine', 'user=postgres')
    this.counts = existsSync(process.env.SAGAD_MALLOC_COUNT ?? '')
    this.counterPath = join(this.directory, 'malloc_count')
    writeFileSync(this.counterPath, Buffer.alloc(8))
    this.port = await freePort()
    // Nothing runs by the clock, because the lease is long.
    this.sagad = this.launch(
      'sagad',
      this.sagadPath,
      [
        '--database',
        this.dsn.replace('user=postgres', 'user=engine'),
        '--listen',
        `127.0.0.1:${this.port}`,
        '--log-format',
        'text',
        '--log-level',
        'warn',
        '--lease',
        '10m',
        '--commit-delay',
        '60s',
        '--call-delay',
        '60s',
        '--park-after',
        '300ms',
        '--risk-losing-acknowledged-work'
      ],
      {
        env: {
          ...process.env,
          ...(this.counts && { LD_PRELOAD: process.env.SAGAD_MALLOC_COUNT, MALLOC_COUNT_FILE: this.counterPath })
        }
      }
    )
    await this.ready()
    await this.define(definitions(await freePort()))
  }

  mallocs() {
    return Number(readFileSync(this.counterPath).readBigUInt64LE())
  }

  // Asks PostgreSQL, so that the question costs the engine nothing.
  async rows(table, count) {
    for (const end = Date.now() + 60000; Date.now() < end; await sleep(20)) {
      const now = Number(this.sql(`select count(*) from sagad.${table}`))
      if (now >= count) return now
    }
    throw new Error(`the table ${table} does not get to ${count} rows`)
  }

  turns() {
    return Number(this.sql('select count(*) from sagad.log'))
  }

  // Returns what `work` costs for each of `count` sagas.
  async costOf(count, work) {
    this.sql('checkpoint')
    const turns = this.turns()
    this.sql('select pg_stat_statements_reset()')
    const begin = this.sql('select pg_current_wal_insert_lsn()')
    const mallocs = this.mallocs()
    await work(count)
    const mallocsThen = this.mallocs()
    const end = this.sql('select pg_current_wal_insert_lsn()')
    const [statements, reads] = this.sql(
      `select coalesce(sum(calls) filter (where wal_records > 0), 0), coalesce(sum(calls) filter 
        (where wal_records = 0), 0)
      from pg_stat_statements where userid = 'engine'::regrole`
    )
      .split('|')
      .map(Number)
    this.sql('checkpoint') // writes everything up to `end` to the disk, where pg_walinspect reads it
    const records = Object.fromEntries(
      this.sql(
        `select "resource_manager/record_type", count from pg_get_wal_stats('${begin}', '${end}', true) where count > 0`
      )
        .split('\n')
        .map((line) => line.split('|'))
    )
    const sum = (pattern) =>
      Object.entries(records).reduce((all, [name, many]) => all + (pattern.test(name) ? Number(many) : 0), 0)
    const made = this.turns() - turns
    const each = {
      turns: made,
      statements,
      reads,
      commits: sum(/^Transaction\/COMMIT/),
      rows: sum(/^Heap2?\/(INSERT|UPDATE|HOT_UPDATE|DELETE|MULTI_INSERT)/),
      wal_bytes: Number(this.sql(`select '${end}'::pg_lsn - '${begin}'::pg_lsn`)),
      ...(this.counts && { allocations: mallocsThen - mallocs })
    }
    const figures = Object.fromEntries(Object.entries(each).map(([name, value]) => [name, value / count]))
    return { ...figures, ...(this.counts && made > 0 && { allocations_per_turn: figures.allocations / figures.turns }) }
  }

  async well(answer, ...statuses) {
    if (!statuses.includes(answer.status)) throw new Error(`${answer.status} ${answer.text}`.slice(0, 500))
    return answer.json
  }

  // Runs the sagas one after another, each to its end.
  single(saga, input = {}, end = 'completed') {
    return async (count) => {
      for (let i = 0; i < count; i++) {
        const { status } = await this.well(await this.api('POST', '/v1/sagas?wait=30s', { saga, input }), 200, 201)
        if (status !== end) throw new Error(`a saga has ended as ${status}`)
      }
    }
  }

  // Starts 1,024 sagas at once in four requests, and goes on until `table` has `each` rows more for every saga.
  batches(saga, table, each) {
    return async (count) => {
      let rows = await this.rows(table, 0)
      for (let left = count; left > 0; left -= 1024) {
        const starts = Array.from({ length: Math.min(left, 1024) / 4 }, () => ({ saga, input: {} }))
        const answers = await Promise.all(Array.from({ length: 4 }, () => this.api('POST', '/v1/sagas/batch', starts)))
        for (const answer of answers) {
          const { items } = await this.well(answer, 200)
          if (items.some(({ status }) => status >= 300))
            throw new Error(`a start in a batch: ${answer.text}`.slice(0, 500))
        }
        rows += starts.length * 4 * each
        await this.rows(table, rows)
      }
    }
  }

  // Waits until all runs have rested, and nothing has happened in them for as long as a run waits before it rests.
  async runsSleep() {
    const left = `select count(*) from sagad.saga s join sagad.log l on l.shard = s.shard and l.saga = s.id
      where s.name = '~run' and (s.ended_at is null or (l.at > now() - interval '16 s'
      and convert_from(l.payload, 'UTF8') not like '[{"type":"run.rested"%'))`
    for (const end = Date.now() + 120000; this.sql(left) !== '0'; await sleep(200))
      if (Date.now() > end) throw new Error('the runs do not go to rest')
  }

  calls(turn) {
    return async (count) => {
      for (let i = 0; i < count; i++) {
        const call = { run: `run-${count}-${i}`, scope: 'one', tool: 'bench.do', args: { n: 1 }, ...(turn && { turn }) }
        const { duplicate } = await this.well(await this.api('POST', '/v1/operations?wait=30s', call), 200)
        if (Boolean(duplicate) !== Boolean(turn)) throw new Error('a call and its repeat are not told apart')
      }
    }
  }
}

const world = new Budget()
let asked = 0 // so that each repeat is of another turn, and no loop however often it is measured
const workloads = [
  { id: 'w1_single', name: 'W1 three steps, one at a time', count: 200, work: world.single('bench_w1') },
  {
    id: 'w2_single',
    name: 'W2 the third step fails, two undone, one at a time',
    count: 200,
    work: world.single('bench_w2', {}, 'compensated')
  },
  {
    id: 'w4_small',
    name: 'W4 for_each over 10, one at a time',
    count: 100,
    work: world.single('bench_w4', { items: Array.from({ length: 10 }, (_, i) => i) })
  },
  {
    id: 'call',
    name: 'a call outside sagas',
    count: 100, // a run rests after 15 s, which is a turn more: a hundred calls take less on a machine that is busy
    again: () => world.runsSleep(), // and those of the last count rest while nobody counts
    work: world.calls()
  },
  {
    id: 'call_repeat',
    name: 'the same call again',
    count: 100,
    work: (count) => world.calls(`again ${asked++}`)(count)
  },
  {
    id: 'call_repeat_asleep',
    name: 'the same call again, after its run has rested',
    count: 100,
    before: () => world.runsSleep(),
    work: (count) => world.calls(`asleep ${asked++}`)(count),
    air: { ...air, ...airOfReading }
  },
  {
    id: 'w1_batches',
    name: 'W1 by batches, 1,024 in flight',
    count: 8192,
    warm: 1024,
    work: world.batches('bench_w1', 'log', 4),
    air: airOfBatches
  },
  {
    id: 'asleep',
    name: 'a saga that sleeps, until it has left memory; by batches',
    count: 1024,
    warm: 32,
    work: world.batches('bench_w6', 'due', 1),
    air: { ...airOfBatches, turns: 1.1, rows: 1.06, statements: 10, commits: 10 }
  }
]

const names = ['turns', 'statements', 'reads', 'commits', 'rows', 'wal_bytes', 'allocations', 'allocations_per_turn']
const upTo3Digits = (value) => {
  const unit = value > 0 ? 10 ** (Math.floor(Math.log10(value)) - 2) : 1
  return Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(3))
}
const shown = (value) =>
  value === undefined ? '' : value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)))
const airFor = (workload, name) => (workload.air ?? air)[name]

function budgetOf(workload, figures) {
  const held = names.filter((name) => figures[name] !== undefined && airFor(workload, name))
  return Object.fromEntries(
    held.map((name) => [
      name,
      upTo3Digits(figures[name] * airFor(workload, name) + (workload.warm ? 0 : (byTheClock[name] ?? 0)))
    ])
  )
}

// Writes one line for each workload, so that its change is one line.
function writeBudget(measured) {
  const line = (workload) =>
    `  ${JSON.stringify(workload.id)}: ` +
    `${JSON.stringify(budgetOf(workload, measured[workload.id])).replace(/([,:])/g, '$1 ')}`
  writeFileSync(file, `{\n${workloads.map(line).join(',\n')}\n}\n`)
}

function printTable(measured, budget) {
  const row = (first, cells) => console.log(first.padEnd(52) + cells.map((cell) => cell.padStart(13)).join(''))
  row(
    '# for each saga or call',
    names.map((name) => name.replace('allocations_per_turn', 'alloc./turn'))
  )
  for (const { id, name } of workloads) {
    if (!measured[id]) continue
    row(
      `# ${name}`,
      names.map((figure) => shown(measured[id][figure]))
    )
    row(
      '#   at most',
      names.map((figure) => shown(budget[id]?.[figure]))
    )
    row(
      '#   a turn',
      names.map((figure) => (/turn/.test(figure) ? '' : shown(measured[id][figure] / measured[id].turns)))
    )
  }
}

const aboveBudget = (figures, most) => Object.entries(most ?? {}).filter(([name, value]) => figures?.[name] > value)
const least = (one, other) =>
  one
    ? Object.fromEntries(
        names.map((name) => [name, one[name] === undefined ? undefined : Math.min(one[name], other[name])])
      )
    : other

await run(world, async () => {
  const measured = {}
  const allowed = write ? {} : JSON.parse(readFileSync(file, 'utf8'))
  await promise(
    'every workload runs to its end',
    async () => {
      await world.open()
      for (const { id, count, warm = 20, before, again = before, work } of workloads) {
        await before?.()
        await work(warm)
        // A machine that stalls for a moment only ever adds to a figure: a timer fires in between, or a turn is made
        // again. The least of six counts.
        for (let take = 0; take < 6 && (take === 0 || aboveBudget(measured[id], allowed[id]).length > 0); take++) {
          await (take > 0 ? again : before)?.()
          // A call that was made before would be a repeat.
          measured[id] = least(measured[id], await world.costOf(id === 'call' ? count + take : count, work))
        }
      }
      if (write) writeBudget(measured)
    },
    560
  )
  const budget = JSON.parse(readFileSync(file, 'utf8'))
  printTable(measured, budget)
  for (const workload of workloads) {
    const { id, name } = workload
    await promise(`within its budget: ${name}`, () => {
      const above = aboveBudget(measured[id], budget[id]).map(
        ([figure, most]) => `${figure} ${shown(measured[id][figure])} instead of ${shown(most)}`
      )
      expect(measured[id] && budget[id], 'it was measured, and has a budget')
      expect(
        above.length === 0,
        'above the budget; what costs more on purpose: node tests/bench/test_budget.mjs --write',
        above.join(', ')
      )
    })
    for (const [figure, most] of Object.entries(budget[id] ?? {})) {
      // Compares with the figures at the time when the budget was written.
      if (most >= 0.2 && measured[id]?.[figure] < (0.8 * most) / airFor(workload, figure)) {
        console.log(
          `# ${id}: ${figure} is ${shown(measured[id][figure])}, far below ${shown(most)} in ` +
            `tests/bench/budget.json: tighten it with node tests/bench/test_budget.mjs --write`
        )
      }
    }
  }
})
