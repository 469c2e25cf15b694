// W6: many sagas that sleep. It measures the memory that one saga in flight takes and that sleepers take, and what the
// engine asks of PostgreSQL while nothing happens. It runs once, on engines and databases of its own.
import { sleep } from '../lib/world.mjs'
import { cpuOf } from './gauge.mjs'

const mib = 1048576

// The batches are so small that the memory of the last ones is nothing beside the sagas.
async function startSleepers(rig, count) {
  const how = rig.batches ? ['--batch', '100', '--no-wait', '--concurrency', '4'] : ['--no-wait', '--concurrency', '64']
  const figures = await rig.drive(['--saga', 'bench_w6', '--sagas', String(count), '--warmup', '0', ...how])
  if (figures.sagas < count) throw new Error(`${figures.sagas} of ${count} sagas were started: ${figures.talk}`)
  return figures
}

// Warms up what an engine that has worked keeps anyway: connections, buffers and statements, also those for starting
// sleepers. It uses sleepers, because the counted sagas would reuse the memory of sagas that ended.
async function warm(rig) {
  await rig.drive(['--saga', 'bench_w1', '--sagas', '2000', '--concurrency', '64'])
  await startSleepers(rig, 400)
  await sleep(500)
}

async function parked(rig, count, seconds) {
  await warm(rig)
  if (!(await rig.reaches((metrics) => metrics.sagad_sagas_loaded === 0, 60)))
    throw new Error('the first 400 sagas were not parked within a minute')
  const empty = rig.residentBytes()
  const started = await startSleepers(rig, count)
  const parkedBegun = Date.now()
  const all = await rig.reaches(
    (metrics) => metrics.sagad_sagas_loaded === 0 && metrics.sagad_sagas_parked_total >= count,
    600
  )
  if (!all) throw new Error(`not all of ${count} sagas were parked within 10 minutes`)
  const toPark = (Date.now() - parkedBegun) / 1000
  await sleep(11000) // the sessions of PostgreSQL report their statistics
  const asleep = rig.residentBytes()
  const transactions = () =>
    Number(rig.sql('select xact_commit + xact_rollback from pg_stat_database where datname = current_database()'))
  const before = { transactions: transactions(), cpu: cpuOf(rig.sagad.pid), at: Date.now() }
  await sleep(seconds * 1000)
  const after = { transactions: transactions(), cpu: cpuOf(rig.sagad.pid), at: Date.now() }
  const window = (after.at - before.at) / 1000
  return {
    sagas: count,
    starts_per_second: started.sagas_per_second,
    parked_after_seconds: toPark,
    empty_mib: empty / mib,
    asleep_mib: asleep / mib,
    grown_mib: (asleep - empty) / mib,
    transactions_a_minute: (60 * (after.transactions - before.transactions)) / window,
    cpu_percent: (100 * (after.cpu - before.cpu)) / window
  }
}

async function inFlight(rig, count) {
  await warm(rig)
  const before = rig.residentBytes()
  await startSleepers(rig, count)
  await rig.reaches((metrics) => metrics.sagad_appends_waiting === 0, 30)
  return { sagas: count, bytes_per_saga: (rig.residentBytes() - before) / count }
}

export async function asleep(rig, count, seconds) {
  return {
    parked: await rig.onFreshDatabase('asleep', ['--park-after', '1s'], () => parked(rig, count, seconds)),
    // The sagas stay in memory, because nothing is parked for an hour.
    in_flight: await rig.onFreshDatabase('in_flight', ['--park-after', '1h'], () =>
      inFlight(rig, Math.min(count, 50000))
    )
  }
}
