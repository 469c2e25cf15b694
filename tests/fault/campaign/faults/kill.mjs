// SIGKILL, at every named fault point in turns, and at random moments. A point is STATEMENT:before (the statement never
// got there), STATEMENT:after (it is done, and the answer is lost), STATEMENT:answered (the answer has just come), or
// one of the shop's: received, effect, reply.
import { leaseMs } from '../world.mjs'
import { sleep } from '../../../lib/world.mjs'
import { ownerOf, shopPlaces } from '../door.mjs'
import { places } from '../proxy.mjs'

const patienceMs = 1200

// Returns the point that was struck least often.
function choosePoint(run) {
  const points = [...run.world.aim.known.keys()].flatMap((statement) => places.map((place) => `${statement}:${place}`))
  points.push(...shopPlaces.map((place) => `shop:${place}`))
  let best = []
  let least = Infinity
  for (const point of points) {
    const tried = run.tried.get(point) ?? 0
    if (tried < least) [least, best] = [tried, []]
    if (tried === least) best.push(point)
  }
  const point = best[Math.floor(run.random() * best.length)]
  run.tried.set(point, least + 1)
  return point
}

export async function strike(run, point, ms = patienceMs) {
  const [what, place] = point.split(':')
  if (what !== 'shop') return run.world.aim.at(what, place, ms, (engine) => !engine.down && !engine.paused)
  const socket = await run.world.door.at(place, ms)
  const engine = socket && ownerOf(socket, run.world.living())
  return engine && { engine }
}

async function comeBack(run, engine) {
  const luck = run.random()
  if (luck > 0.85) {
    // long enough for other engines to take over
    run.background(run.takeover('kill', engine))
    await sleep(leaseMs + 500 + run.random() * 500)
  } else if (luck > 0.6) await sleep(run.random() * leaseMs)
  if (!run.world.over && engine.down) run.world.launchEngine(engine)
}

async function killed(run, engine) {
  await run.world.killEngine(engine)
  run.background(comeBack(run, engine))
}

export const kill = {
  name: 'kill',
  topology: 'plain',
  weight: 10,
  async fire(run) {
    await run.someoneLives(2)
    if (run.random() < 0.25) {
      await sleep(run.random() * 200)
      const engine = run.world.pick(run.world.living())
      if (!engine) return undefined
      await killed(run, engine)
      return 'kill random'
    }
    const point = choosePoint(run)
    const hit = await strike(run, point)
    if (!hit || hit.engine.down) {
      run.tried.set(point, run.tried.get(point) + 3) // a rare point; the others come first
      return undefined
    }
    await killed(run, hit.engine)
    hit.session?.end()
    return `kill ${point}`
  }
}

// Kills all engines at once, so that recovery has no other engine.
export const kill_all = {
  name: 'kill_all',
  topology: 'plain',
  weight: 0.5,
  async fire(run) {
    const living = run.world.living()
    if (living.length === 0) return undefined
    await Promise.all(living.map((engine) => run.world.killEngine(engine)))
    await sleep(run.random() * 500)
    for (const engine of run.world.engines) if (engine.down) run.world.launchEngine(engine)
    return 'kill_all'
  }
}
