// The benchmark: sagad beside PostgreSQL alone, in interleaved rounds of one run. README.md explains each figure.
//
// SAGAD, SAGACTL, SAGAD_LOAD (the driver) and SAGAD_SHOP (the service of W3) name the programs. tools/bench builds them
// and passes its arguments on.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asleep } from './asleep.mjs'
import { bars } from './bars.mjs'
import { Gauge } from './gauge.mjs'
import { grown } from './grown.mjs'
import { killed } from './killed.mjs'
import { options } from './options.mjs'
import { plots } from './plot.mjs'
import { Progress } from './progress.mjs'
import { Reference } from './reference.mjs'
import { profile, profileSettings } from './profile.mjs'
import { report } from './report.mjs'
import { Rig } from './rig.mjs'
import { summary } from './statistics.mjs'
import { measurements } from './workloads.mjs'

async function measure(rig, wanted) {
  const reference = new Reference(rig)
  const gauge = new Gauge(rig, wanted.round)
  const chosen = () =>
    measurements({ rig, reference }).filter(({ workload }) => workload === 'ref' || wanted.workloads.includes(workload))
  const trial = Math.max(1, Math.min(5, Math.floor(wanted.round / 4)))
  const count = chosen().length
  const roomSeconds = Math.ceil(wanted.round / 3)
  const progress = new Progress(
    roomSeconds +
      trial * 5 +
      wanted.rounds * count * wanted.round +
      (wanted.workloads.includes('W6') ? 60 : 0) +
      (wanted.workloads.includes('kill') ? 60 : 0)
  )

  await progress.during('PostgreSQL makes room for its log', roomSeconds, () => rig.makeRoom(80 * wanted.round))
  await progress.during('the number of clients at which (i) is fastest', trial * 3, () =>
    reference.chooseClients(trial)
  )
  await progress.during('sagad warms up', trial * 2, () =>
    rig.drive(['--saga', 'bench_w1', '--seconds', String(trial), '--concurrency', '256'])
  )

  const list = chosen()
  const rounds = []
  const failures = []
  for (let number = 1; number <= wanted.rounds; number++) {
    const round = {}
    rounds.push(round)
    for (const one of list) {
      rig.sql('checkpoint') // writes earlier data to the disk, so that each measurement pays for its own pages
      const text = `round ${number} of ${wanted.rounds}  ${one.name}`
      const figures = await progress.during(text, wanted.round, () =>
        one.measure({ rig, gauge, seconds: wanted.round, round })
      )
      if (figures.error) failures.push([text, figures.error])
      else {
        round[one.id] = figures
        if (figures.talk) failures.push([text, figures.talk])
      }
    }
  }
  const once = {}
  const measureOnce = async (name, text, work) => {
    const figures = await progress.during(text, 60, work)
    if (figures.error) failures.push([text, figures.error])
    else once[name] = figures
  }
  const many = (count) => count.toLocaleString('en')
  if (wanted.ended > 0)
    await measureOnce('grown', `W1 over ${many(wanted.ended)} ended sagas`, () =>
      grown(rig, wanted.ended, wanted.round, wanted.rounds)
    )
  if (wanted.workloads.includes('W6'))
    await measureOnce('asleep', `W6 ${many(wanted.sleeping)} sleep`, () =>
      asleep(rig, wanted.sleeping, Math.max(10, Math.min(60, wanted.round)))
    )
  if (wanted.workloads.includes('kill'))
    await measureOnce('killed', `SIGKILL with ${many(wanted.unfinished)} unfinished sagas`, () =>
      killed(rig, wanted.unfinished)
    )
  if (wanted.profile)
    await measureOnce('profiled', 'profiles', () => profile(rig, Math.min(20, wanted.round), wanted.out))
  const summed = summary(rounds)
  return {
    reference: { naive_clients: reference.clients, tried: reference.tried },
    rounds,
    once,
    failures,
    measures: list.map(({ id, name, workload }) => ({ id, name, workload, figures: summed[id] ?? {} }))
  }
}

const wanted = options()
mkdirSync(wanted.out, { recursive: true })
const begun = new Date()
const rig = new Rig()
let result
try {
  await rig.open(wanted.sagad, wanted.profile ? profileSettings : [])
  const measured = await measure(rig, wanted)
  result = {
    begun_at: begun.toISOString(),
    seconds: Math.round((Date.now() - begun) / 1000),
    options: wanted,
    machine: rig.machine(),
    batches: rig.batches,
    ended_sagas: rig.endedSagas(),
    ...measured,
    bars: bars(measured.rounds, measured.once, { batches: rig.batches })
  }
} catch (error) {
  console.error(`bench: ${error.stack}`)
  rig.showLogs()
} finally {
  await rig.stop()
}
if (!result) process.exit(1)
const json = join(wanted.out, 'bench.json')
writeFileSync(json, JSON.stringify(result, null, 2) + '\n')
report(result)
console.log(`\n${json}, and beside it ${plots(result, wanted.out).join(', ')}`)
process.exit(result.failures.length > 0 ? 1 : 0)
