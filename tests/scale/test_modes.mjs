// The table "What each mode of replication promises" of engine/operations.md, row by row, by a primary and two
// standbys: which starts are acknowledged while standbys are away, what a failover then keeps, and that doctor names
// the mode, as does the gauge sagad_database_synchronous. That an asynchronous standby loses work, and that sagad stops
// and asks then, is shown by test_failovers.mjs and test_rewound_database.mjs.
import { Pair } from '../lib/pair.mjs'
import { expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const world = new Pair(3)
const [primary, one, other] = world.servers
const acknowledged = new Map() // business id -> saga id
let number = 0

const input = (id) => ({ order_id: id, sku: 'book', amount: 5, email: `${id}@x.example` })

async function tryStart(id) {
  const body = { saga: 'order', id, input: input(id) }
  const answer = await world.api('POST', '/v1/sagas', body, { seconds: 15 }).catch(() => undefined)
  if (answer && answer.status < 300) acknowledged.set(id, answer.json.id)
  return acknowledged.has(id)
}

async function start(id = `order-${number++}`) {
  await world.within(240, `the start of ${id} is acknowledged`, () => tryStart(id))
}

const setNames = (names) => world.set(world.primary, 'synchronous_standby_names', names)

// The gauge changes with the next look at the server, while the connections stay.
async function commitsWait(wait) {
  await world.within(60, `sagad_database_synchronous is ${wait}`, async () =>
    (await world.api('GET', '/metrics')).text.includes(`\nsagad_database_synchronous ${wait}\n`)
  )
}

async function modeIs(named) {
  let what
  await world.within(60, `doctor says ${named}`, () => {
    const { items } = JSON.parse(world.sagactl(['doctor', '-o', 'json']).stdout)
    what = items.find(({ check }) => check === 'replication')?.what
    return what?.startsWith(named)
  })
}

async function standbysGo(...servers) {
  for (const server of servers) await world.kill(server)
}

async function standbysCome(...servers) {
  for (const server of servers) await world.startServer(server)
  const streams = "select count(*) from pg_stat_replication where state = 'streaming'"
  await world.within(240, 'the standbys stream', () => world.at(world.primary, streams) === '2')
}

await run(world, async () => {
  await world.startPair({ synchronous: true })
  await world.follow(other, false)
  await world.startShop()
  await world.startSagad()
  await world.define(world.example('shop.json'))
  await promise('asynchronous: doctor names it, and starts are acknowledged without any standby', async () => {
    setNames('')
    await modeIs('asynchronous')
    await commitsWait(0)
    await standbysGo(one, other)
    await start()
    await standbysCome(one, other)
  })
  await promise('strict: doctor says synchronous, and without a standby nothing is acknowledged', async () => {
    setNames('FIRST 1 (node_1, node_2)')
    await modeIs('synchronous, FIRST 1 (node_1, node_2)')
    await commitsWait(1)
    await start()
    await standbysGo(one)
    await start() // the other one is the synchronous standby now
    await standbysGo(other)
    const id = `order-${number++}`
    // Longer than a lease: a commit that waits makes a database that is away.
    for (const end = Date.now() + 4000; Date.now() < end; await sleep(50))
      expect(!(await tryStart(id)), 'a start was acknowledged that no standby has')
    await standbysCome(one, other)
    await start(id)
  })
  await promise('synchronous: the manager takes the names away, and the primary goes on alone', async () => {
    await standbysGo(one, other)
    const late = start()
    await sleep(200)
    setNames('')
    await late
    await modeIs('none')
    await commitsWait(0)
    await standbysCome(one, other)
  })
  await promise('quorum: doctor names it, one of two standbys is enough, and the one left has everything', async () => {
    setNames('ANY 1 (node_1, node_2)')
    await modeIs('quorum, ANY 1 (node_1, node_2)')
    await commitsWait(1)
    await standbysGo(one)
    for (let count = 0; count < 5; count++) await start()
    await world.kill(primary)
    world.promote(other)
    await start()
  })
  await promise('everything that was acknowledged is there, each saga once', async () => {
    for (const [id, saga] of acknowledged) expectEqual((await world.until(saga)).business_id, id, `the saga of ${id}`)
    const twice = 'select count(*) from (select business_id from sagad.saga group by 1 having count(*) > 1) as twice'
    expectEqual(world.sql(twice), '0', 'starts that made two sagas')
  })
})
