// The campaign against real processes: engines, PostgreSQL and the shop, with all faults that can occur between them.
// See tests/fault/README.md.
//
//   node tests/fault/campaign.mjs [--faults kill,stop,...] [--minutes N | --count kill=2000,stop=200,...] [--sagas N]
//                                 [--seed N] [--json FILE] [--engines N] [--rate N] [--round SECONDS] [--list]
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomFrom } from '../lib/load.mjs'
import { sleep } from '../lib/world.mjs'
import { parseOptions } from './campaign/options.mjs'
import { allFaults, whyNot } from './campaign/faults.mjs'
import { Plan } from './campaign/plan.mjs'
import { Round } from './campaign/round.mjs'
import { Summary } from './campaign/summary.mjs'
import { worldOf } from './campaign/topologies.mjs'

const options = parseOptions(process.argv.slice(2))
if (options.list) {
  for (const fault of allFaults)
    console.log(`${fault.name.padEnd(12)} ${fault.topology.padEnd(8)} ${whyNot(fault) ?? ''}`)
  process.exit(0)
}

const summary = new Summary(options)
const plan = new Plan(options, summary)
const tried = new Map() // fault point -> how often it was aimed at, over all rounds
console.log(`# campaign: seed ${options.seed}, ${plan.describe()}`)
for (const [fault, reason] of plan.leftOut) console.log(`# left out: ${fault}: ${reason}`)

for (let number = 0; ; number++) {
  const part = plan.part()
  if (!part) break
  const random = randomFrom(options.seed * 1000 + number)
  const world = worldOf(part.topology, random, options)
  const round = new Round(world, random, { tried, load: { rate: options.rate, backlog: options.backlog } })
  const from = Date.now()
  let found
  try {
    found = await round.go(
      () => part.next(random),
      (fault, label) => part.fired(fault, label),
      part.seconds
    )
  } catch (error) {
    found = { violations: [{ rule: 'campaign', saga: '', what: String(error.stack) }], counts: {}, measures: {} }
  }
  summary.round(number, part, found, (Date.now() - from) / 1000)
  if (found.violations.length > 0) {
    world.showLogs()
  }
  if (options.keep && (found.violations.length > 0 || found.late)) {
    console.log(`# kept: ${world.keep(join(options.keep, `${options.seed}-${number}`))}`)
  }
  await world.stop()
  // A world that does not come up would not come up the next time, either.
  if (found.violations.length > 0 && (!options.goOn || !found.counts.sagas)) break
  await sleep(100)
}
summary.show(tried)
if (options.json) writeFileSync(options.json, JSON.stringify(summary.json(tried), null, 2))
process.exit(summary.good() ? 0 : 1)
