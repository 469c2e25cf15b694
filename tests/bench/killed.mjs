// SIGKILL with many unfinished sagas, each with a call under way or in line for one. It measures how long the next
// engine takes until its first call, and until all sagas are loaded. The time counts from the moment at which it owns
// shards, because the lease of the dead engine is a setting. It runs once.
import { sleep } from '../lib/world.mjs'

// The calls are timers of the engine itself, so that no other program's speed counts.
const settings = ['--calls-max', '10000', '--call-delay', '1h', '--lease', '2s', '--park-after', '1h']

const underWay = (metrics) => metrics.sagad_calls_in_flight + metrics.sagad_calls_waiting

async function metricsOrNothing(rig) {
  try {
    return await rig.metrics()
  } catch {
    return {} // the engine does not listen yet
  }
}

async function killAndWatch(rig, count) {
  const how = rig.batches
    ? ['--batch', String(Math.min(1000, count)), '--no-wait', '--concurrency', '4']
    : ['--no-wait', '--concurrency', '64']
  const started = await rig.drive(['--saga', 'bench_hold', '--sagas', String(count), '--warmup', '0', ...how])
  if (!(await rig.reaches((metrics) => underWay(metrics) >= count, 120)))
    throw new Error(`not all of ${count} sagas came to their call`)
  await rig.kill9()
  const kill = Date.now()
  rig.launchEngine(settings)
  let owned
  let first
  let all
  for (const end = kill + 300000; !all && Date.now() < end; await sleep(5)) {
    const metrics = await metricsOrNothing(rig)
    const now = Date.now()
    if (metrics.sagad_shards_owned > 0) owned ??= now
    if (metrics.sagad_calls_in_flight > 0) first ??= now
    if (underWay(metrics) >= count) all = now
  }
  if (!all) throw new Error(`not all of ${count} sagas were under way again within 300 s`)
  return {
    sagas: started.sagas,
    owned_seconds: (owned - kill) / 1000,
    first_call_seconds: (first - owned) / 1000,
    all_seconds: (all - owned) / 1000
  }
}

export function killed(rig, count) {
  return rig.onFreshDatabase('killed', settings, () => killAndWatch(rig, count))
}
