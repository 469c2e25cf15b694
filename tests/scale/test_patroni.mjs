// Failovers by Patroni, each with orders under way: what was acknowledged stays, nothing happens twice, by the shop's
// own ledger. `test_patroni.mjs` alone is the short form, five failovers; with the name of a kind it is a hundred of
// that kind in the long form, and with `each` a hundred of each in turn. tests/scale/README.md says how it is run.
import { Load, chooseSeed, judge } from '../lib/load.mjs'
import { expect, promise, quick, run, sleep } from '../lib/world.mjs'
import { PatroniWorld, whyNoPatroni } from './patroni.mjs'

const skipped = 77
const patience = 300 // seconds until certainly nothing comes any more

// Each kind begins what happens to the primary, says who may be the next one, and returns what heals it.
const kinds = {
  killed: {
    says: 'kill -9 of the primary',
    begin: (world, primary) => world.signal([world.postmaster(primary)], 'SIGKILL')
  },
  manager: {
    says: 'kill -9 of Patroni beside the primary, which goes on unwatched until its successor is there',
    begin: (world, primary) => {
      primary.patroni.kill('SIGKILL')
      world.signal(
        world.processes(primary, (command) => command.includes('patroni.yml')),
        'SIGKILL'
      )
      primary.unwatched = true
    },
    heal: (world, primary) => {
      primary.unwatched = false
    }
  },
  store: {
    says: "kill -9 of etcd's leader",
    stays: true,
    begin: async (world) => {
      const leader = await world.etcdLeader()
      expect(leader, 'etcd has a leader')
      world.signal(
        world.processes(leader, (command) => /^etcd /.test(command)),
        'SIGKILL'
      )
      await leader.etcd.ended
      await sleep(3000) // longer than an election, and than some turns of Patroni
    }
  },
  frozen: {
    says: 'a frozen machine of the primary (SIGSTOP), which wakes up when its successor is there',
    begin: (world, primary) => world.signal(world.processes(primary), 'SIGSTOP'),
    heal: (world, primary) => world.signal(world.processes(primary).reverse(), 'SIGCONT')
  },
  partition: {
    says: 'a primary that is cut off: from all, or from the other nodes and not from sagad',
    begin: async (world, primary, round) => {
      const others = world.nodes.filter((node) => node !== primary)
      if (round % 2 === 0) await world.spaces.cut(primary)
      else for (const { host } of others) await world.spaces.cut(primary, host)
    },
    heal: (world, primary) => world.spaces.heal(primary)
  },
  switchover: {
    says: 'a switchover by hand',
    begin: async (world, primary) => {
      const candidate = (await world.members()).find(({ role }) => role === 'sync_standby').name
      const body = JSON.stringify({ leader: primary.name, candidate })
      // 503: Patroni does not reach etcd for a moment.
      for (let answer; answer?.status !== 200; await sleep(200)) {
        answer = await world.rest(primary, '/switchover', { method: 'POST', body, signal: AbortSignal.timeout(60000) })
        expect([200, 503].includes(answer.status), 'the switchover', answer)
      }
    }
  }
}

// Remembers when a start was acknowledged last.
class Acknowledged extends Map {
  set(key, value) {
    this.lastAt = Date.now()
    return super.set(key, value)
  }
}

// One failover. Returns how long the database took, and how long sagad took from then on, in ms.
async function failOver(world, load, kind, round) {
  const { begin, heal, stays } = kinds[kind]
  const primary = await world.whole()
  const others = stays ? world.nodes : world.nodes.filter((node) => node !== primary)
  const begun = Date.now()
  const late = () => expect(Date.now() < begun + patience * 1000, `${kind}: within ${patience} s`)
  let opened
  try {
    await begin(world, primary, round)
    for (let next; !next; await sleep(20)) {
      late()
      const leader = await world.leader(others)
      if (leader && (await world.takesCommits(leader))) next = leader
    }
    opened = Date.now()
    for (; load.acknowledged.lastAt < opened; await sleep(5)) late()
  } finally {
    await heal?.(world, primary)
  }
  const progress = load.acknowledged.lastAt
  world.primary = await world.whole()
  return { database: opened - begun, sagad: progress - opened }
}

function told(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b)
  const at = (part) => (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] / 1000).toFixed(2)
  return `median ${at(0.5)} s, nine of ten ${at(0.9)} s, at most ${at(1)} s`
}

const wanted = process.argv[2]
const rounds = Number(process.env.SAGAD_FAILOVERS ?? 100)
const minutes = Number(process.env.SAGAD_FAILOVER_MINUTES ?? Infinity) // no failover begins when they are over
const plan = wanted
  ? Array(rounds)
      .fill(wanted === 'each' ? Object.keys(kinds) : wanted)
      .flat()
  : ['killed', 'manager', 'frozen', 'partition', 'switchover']
const reason = wanted && quick ? 'this is a part of the long form' : whyNoPatroni()
if (reason) {
  console.log(`# skipped: ${reason}`)
  process.exit(skipped)
}
expect(!wanted || wanted === 'each' || kinds[wanted], `the kinds are ${Object.keys(kinds).join(', ')}, or each`)

await run(new PatroniWorld(), async (world) => {
  const seed = chooseSeed()
  const taken = new Map()
  let load
  await promise('three nodes under Patroni, the shop and sagad start', async () => {
    await Promise.all([world.startCluster(), world.startShop()])
    world.primary = await world.whole()
    await world.startSagad()
    await world.define(world.example('shop.json'))
    // A hundred failovers take an hour, and the judge asks for each saga.
    load = new Load(world, seed, 3, wanted ? 300 : 40)
    load.acknowledged = new Acknowledged()
    while (load.acknowledged.size < 3) await sleep(20)
  })
  expect(load, 'a cluster to begin with')
  const end = Date.now() + minutes * 60000
  for (const [round, kind] of plan.entries()) {
    if (Date.now() > end) break
    if (round < 5 || round % 10 === 0) console.log(`# ${round + 1}: ${kinds[kind].says}`)
    await promise(
      `progress after ${kind}, round ${round + 1}`,
      async () => {
        const took = await failOver(world, load, kind, taken.get(kind)?.length ?? 0)
        console.log(`#   the database takes commits after ${took.database} ms, sagad ${took.sagad} ms later`)
        taken.set(kind, [...(taken.get(kind) ?? []), took])
      },
      patience * 2
    )
  }
  await load.stop()
  await judge(world, load)
  for (const [kind, all] of taken) {
    console.log(`# ${kind}: ${all.length} failovers; the database: ${told(all.map(({ database }) => database))}`)
    console.log(`#   from then on until sagad: ${told(all.map(({ sagad }) => sagad))}`)
  }
})
