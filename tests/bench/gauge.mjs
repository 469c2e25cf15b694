// Measures the cost of a stretch of work: processor time of the engine and of PostgreSQL, transactions that wrote, WAL,
// rows, turns and memory. The kernel and PostgreSQL count wherever they can.
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { sleep } from '../lib/world.mjs'

const ticks = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

function stat(pid) {
  try {
    // The fields begin behind the name, which may hold blanks: state, ppid and so on. utime is the 12th of them, cutime
    // the 14th.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return {
      parent: Number(fields[1]),
      own: (Number(fields[11]) + Number(fields[12])) / ticks,
      ended: (Number(fields[13]) + Number(fields[14])) / ticks
    }
  } catch {
    return undefined // the process has ended meanwhile, and its parent has its time
  }
}

export const cpuOf = (pid) => stat(pid)?.own ?? NaN

// Adds up the postmaster, its children, and children that have ended.
export function cpuOfFamily(pid) {
  const parent = stat(pid)
  let sum = parent.own + parent.ended
  for (const name of readdirSync('/proc')) {
    const child = /^\d+$/.test(name) ? stat(name) : undefined
    if (child?.parent === pid) sum += child.own
  }
  return sum
}

// Counts shared memory once among the processes that share it.
function memoryOfFamily(pid) {
  let kib = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || (Number(name) !== pid && stat(name)?.parent !== pid)) continue
    try {
      kib += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
    } catch {
      /* it ended meanwhile, or is not ours to look at */
    }
  }
  return kib / 1024
}

export class Gauge {
  constructor(rig, round) {
    this.rig = rig
    this.patience = Math.min(11, 2 * round) // a short trial of the bench need not wait for everything
  }

  // Waits for the rows. Sessions of PostgreSQL report their rows with a delay, of 10 s when they are idle. One log row
  // is one turn, which tells when all rows are reported.
  async rowsTold() {
    const read = () => {
      const [all, logs] = this.rig
        .sql(
          `select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0), coalesce(sum(n_tup_ins) filter 
            (where relname like 'log%'), 0)
        from pg_stat_user_tables where schemaname = 'sagad'`
        )
        .split('|')
        .map(Number)
      return { all, logs }
    }
    const { sagad_turns_total: turns } = await this.rig.metrics()
    let rows = read()
    for (const end = Date.now() + this.patience * 1000; rows.logs < turns && Date.now() < end; rows = read())
      await sleep(250)
    return rows.all
  }

  async read(rows) {
    const { rig } = this
    const told = rows ? await this.rowsTold() : undefined
    const [xid, lsn] = rig
      .sql("select pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_insert_lsn() - '0/0'")
      .split('|')
      .map(Number)
    const metrics = await rig.metrics()
    return {
      at: Date.now() / 1000,
      engine: cpuOf(rig.sagad.pid),
      postgres: cpuOfFamily(rig.postgres.pid),
      xid,
      lsn,
      rows: told,
      turns: metrics.sagad_turns_total,
      batches: metrics.sagad_batches_total
    }
  }

  // Runs `work`, which returns figures with `sagas`. Adds its cost, in all and for each saga.
  async around(work, { rows = false } = {}) {
    const before = await this.read(rows)
    let peak = 0
    const timer = setInterval(() => {
      peak = Math.max(peak, this.rig.residentBytes())
    }, 250)
    let figures
    try {
      figures = await work()
    } finally {
      clearInterval(timer)
    }
    // The processor time is read at once. The rows may be reported later, and the engine is idle meanwhile.
    const after = await this.read(false)
    const told = rows ? await this.rowsTold() : undefined
    const { sagas } = figures
    const each = (value) => (sagas > 0 ? value / sagas : NaN)
    return {
      ...figures,
      cpu_per_1000: {
        engine: 1000 * each(after.engine - before.engine),
        postgres: 1000 * each(after.postgres - before.postgres),
        both: 1000 * each(after.engine - before.engine + after.postgres - before.postgres),
        driver: 1000 * each(figures.driver_cpu_seconds ?? NaN)
      },
      commits_per_saga: each(after.xid - before.xid),
      wal_bytes_per_saga: each(after.lsn - before.lsn),
      turns_per_saga: each(after.turns - before.turns),
      turns_per_batch: (after.turns - before.turns) / (after.batches - before.batches),
      ...(rows && { rows_per_saga: each(told - before.rows), rows_per_second: (told - before.rows) / figures.seconds }),
      postgres_mib: memoryOfFamily(this.rig.postgres.pid),
      engine_mib_peak: Math.max(peak, this.rig.residentBytes()) / 1048576
    }
  }
}
