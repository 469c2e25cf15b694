// SIGSTOP for 1.5 to 3 leases. This is long enough for other engines to take over. Then the frozen one wakes and
// believes that nothing has happened. It strikes at random moments, and in an open transaction: the fence is taken, and
// the rest has not come.
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
      // a call is leaving, or its answer is coming in
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
    // Messages that it had sent come when it wakes. The Bind that was held back is lost with its connection, as if the
    // network had lost it.
    await stopped(run, hit.engine, () => hit.session.end())
    return `stop ${statement}, its transaction open`
  }
}
