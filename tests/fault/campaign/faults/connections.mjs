// Faults between an engine and PostgreSQL: connections are cut right before or after a COMMIT, answers are lost, a
// COMMIT comes late, everything freezes with the connections open, or nobody answers.
import { leaseMs } from '../world.mjs'
import { sleep } from '../../../lib/world.mjs'

const writes = [
  'log',
  'log_unique',
  'status',
  'inbox_put',
  'inbox_consume',
  'answer_put',
  'lease_renew',
  'lease_take',
  'park',
  'lock_take',
  'escalation_open',
  'approval_open'
]
const lives = (engine) => !engine.down && !engine.paused

// The connection is cut at a commit, so that the engine cannot know whether the commit happened.
export const cut = {
  name: 'cut',
  topology: 'plain',
  weight: 3,
  async fire(run) {
    const statement = run.world.pick(writes)
    const place = run.world.pick(['before', 'after'])
    const hit = await run.world.aim.at(statement, place, 1000, lives)
    if (!hit) return undefined
    if (run.random() < 0.3)
      hit.proxy.cut() // cuts all connections of the engine at once
    else hit.session.end()
    return `cut ${statement}:${place}`
  }
}

// The answer never comes, and the connection stays.
export const drop = {
  name: 'drop',
  topology: 'plain',
  weight: 1,
  async fire(run) {
    const statement = run.world.pick(writes)
    const hit = await run.world.aim.at(statement, 'after', 1000, lives)
    if (!hit) return undefined
    run.background(sleep(leaseMs * 4).then(() => hit.session.end()))
    return `drop ${statement}`
  }
}

// The rest of the transaction comes late: after the engine has given up, or has lost its shards.
export const hold = {
  name: 'hold',
  topology: 'plain',
  weight: 2,
  async fire(run) {
    const hit = await run.world.aim.at(run.world.pick(writes), 'answered', 1000, lives)
    if (!hit || !hit.proxy.sessions.has(hit.session)) return undefined
    hit.session.frozen = true // from the next message on
    run.background(sleep(run.random() * leaseMs * 3).then(() => hit.proxy.thawSession(hit.session)))
    return 'hold'
  }
}

// Everything between one engine and PostgreSQL freezes, with the connections open.
export const freeze = {
  name: 'freeze',
  topology: 'plain',
  weight: 1,
  async fire(run) {
    await run.someoneLives(2)
    const engine = run.world.pick(run.world.living().filter((one) => !one.proxies.some((proxy) => proxy.frozen)))
    if (!engine) return undefined
    for (const proxy of engine.proxies) proxy.freeze()
    run.background(
      sleep(leaseMs * (0.3 + run.random() * 2.5)).then(() => {
        for (const proxy of engine.proxies) proxy.thaw()
      })
    )
    return 'freeze'
  }
}

// Nobody answers for a while.
export const refuse = {
  name: 'refuse',
  topology: 'plain',
  weight: 1,
  async fire(run) {
    const engine = run.world.pick(run.world.living())
    if (!engine) return undefined
    for (const proxy of engine.proxies) proxy.cut(true)
    run.background(
      sleep(run.random() * leaseMs * 1.5).then(() => {
        for (const proxy of engine.proxies) proxy.refusing = false
      })
    )
    return 'refuse'
  }
}
