// The network of one engine: the wire is cut, lets bytes through in only one direction, or loses the engine altogether.
// No side is told: there is no FIN and no RST.
import { leaseMs } from '../world.mjs'
import { sleep } from '../../../lib/world.mjs'
import { whyNoSpaces } from '../../../lib/spaces.mjs'

// Bytes that left before a cut may arrive after it, when TCP tries again. Until then no person can know the outcome.
const echoMs = 8000

let reason
const impossible = () => (reason ??= whyNoSpaces() ?? '') || undefined
const net = (name, weight, fire) => ({ name, topology: 'net', weight, impossible, fire })

async function lasting(run, engine, ms) {
  run.people.worksFrom = Infinity
  engine.cutOff = true
  run.background(
    sleep(ms).then(async () => {
      await run.world.healNetwork(engine)
      engine.cutOff = false
      if (run.world.engines.every((one) => !one.cutOff)) run.people.worksFrom = Date.now() + echoMs
    })
  )
}

async function someEngine(run) {
  const reachable = () => run.world.living().filter((engine) => !engine.cutOff)
  for (let tries = 0; tries < 400 && reachable().length < 2; tries++) await sleep(20)
  return reachable().length > 1 ? run.world.pick(reachable()) : undefined
}

export const partition = net('partition', 3, async (run) => {
  const engine = await someEngine(run)
  if (!engine) return undefined
  await run.world.cutWire(engine)
  const long = run.random() < 0.6
  await lasting(run, engine, long ? leaseMs * (1.5 + run.random() * 1.5) : run.random() * leaseMs)
  return long ? 'partition, longer than a lease' : 'partition'
})

export const half_open = net('half_open', 3, async (run) => {
  const engine = await someEngine(run)
  if (!engine) return undefined
  const out = run.random() < 0.5
  await run.world.rule(
    engine,
    '-A',
    out ? 'OUTPUT' : 'INPUT',
    '-p',
    'tcp',
    out ? '--dport' : '--sport',
    '5432',
    '-j',
    'DROP'
  )
  await lasting(run, engine, leaseMs * (0.5 + run.random() * 2.5))
  return `half_open, ${out ? 'nothing gets to PostgreSQL' : 'nothing comes back'}`
})

export const shop_away = net('shop_away', 2, async (run) => {
  const engine = await someEngine(run)
  if (!engine) return undefined
  const how = run.random() < 0.5 ? ['DROP'] : ['REJECT', '--reject-with', 'tcp-reset']
  await run.world.rule(
    engine,
    '-A',
    run.random() < 0.5 ? 'OUTPUT' : 'INPUT',
    '-p',
    'tcp',
    '-s',
    '0.0.0.0/0',
    ...(run.random() < 0.5 ? ['--dport'] : ['--sport']),
    String(run.world.door.port),
    '-j',
    ...how
  )
  await lasting(run, engine, 500 + run.random() * 6000)
  return `shop_away (${how[0]})`
})

// A machine that is gone. It is never heard again, and its connections stay open on the other side.
export const vanish = net('vanish', 2, async (run) => {
  const engine = await someEngine(run)
  if (!engine) return undefined
  await run.world.cutWire(engine)
  await run.world.killEngine(engine)
  run.people.worksFrom = Infinity
  engine.cutOff = true
  run.background(
    sleep(leaseMs * (1 + run.random())).then(async () => {
      await run.world.healNetwork(engine)
      engine.cutOff = false
      if (!run.world.over) run.world.launchEngine(engine)
      if (run.world.engines.every((one) => !one.cutOff)) run.people.worksFrom = Date.now() + echoMs
    })
  )
  return 'vanish'
})
