// Does sagad become slower with the work it has done? Measures W1 over tables with many ended sagas and over empty
// ones, in turns. The sagas are real, because rows made by SQL would have another order on the disk than those of an
// engine.
import { spread } from './statistics.mjs'

async function fill(rig, count) {
  const how = rig.batches
    ? ['--batch', '1000', '--in-flight', '10000', '--concurrency', '4']
    : ['--in-flight', '10000', '--concurrency', '64']
  const missing = count - rig.endedSagas()
  if (missing > 0) await rig.drive(['--saga', 'bench_w1', '--sagas', String(missing), '--warmup', '0', ...how])
  return rig.endedSagas()
}

async function rate(rig, seconds) {
  rig.sql('checkpoint')
  return (await rig.drive(['--saga', 'bench_w1', '--seconds', String(seconds), '--concurrency', '256']))
    .sagas_per_second
}

export async function grown(rig, count, seconds, rounds) {
  const sagas = await fill(rig, count)
  const pairs = []
  for (let number = 1; number <= rounds; number++) {
    const empty = await rig.onFreshDatabase(`empty_${number}`, [], () => rate(rig, seconds))
    pairs.push({ empty, full: await rate(rig, seconds) })
  }
  return { sagas, pairs, ratio: spread(pairs.map(({ empty, full }) => full / empty)).median }
}
