// SIGSTOP for 1.5 to 3 leases: long enough for the others to take over, and then the frozen one wakes and believes that
// nothing has happened. At random moments, and with a transaction open: the fence is taken, and the rest has not come.
import { leaseMs } from '../world.mjs'
import { sleep } from '../../../lib/world.mjs'
import { ownerOf, shopPlaces } from '../door.mjs'

async function stopped(run, engine, then = () => {}) {
  run.world.stopEngine(engine)
  const child = engine.child
  run.background(run.takeover('stop', engine))
  run.background(
    (async () => {
      await sleep(leaseMs * (1.5 + run.random() * 1.5))
      if (engine.child === child && !child.end) run.world.continueEngine(engine)
      then()
    })()
  )
}

export const stop = {
  name: 'stop',
  topology: 'plain',
  weight: 3,
  async fire(run) {
    await run.someoneLives(2)
    const luck = run.random()
    if (luck < 0.4) {
      const engine = run.world.pick(run.world.living())
      if (!engine) return undefined
      await stopped(run, engine)
      return 'stop random'
    }
    if (luck < 0.6) {
      // a call is on its way out, or its answer on its way in
      const place = run.world.pick(shopPlaces)
      const socket = await run.world.door.at(place, 1000)
      const engine = socket && ownerOf(socket, run.world.living())
      if (!engine) return undefined
      await stopped(run, engine)
      return `stop shop:${place}`
    }
    const statement = run.world.pick(['log', 'log_unique', 'lease_renew', 'inbox_consume', 'status', 'answer_put'])
    const hit = await run.world.aim.at(statement, 'before', 1000, (engine) => !engine.down && !engine.paused)
    if (!hit) return undefined
    // What it had sent comes when it wakes: the Bind that was held back is lost with its connection, as if the network
    // had eaten it.
    await stopped(run, hit.engine, () => hit.session.end())
    return `stop ${statement}, its transaction open`
  }
}
