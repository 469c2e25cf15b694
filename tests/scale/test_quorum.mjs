// Replication by quorum, `ANY n (...)`, by a primary and three standbys: how many may be away, which standby has
// everything that was acknowledged, and what sagad does when another one is promoted. What `ANY 1` of two promises in
// short is a row of test_modes.mjs.
import { Pair } from '../lib/pair.mjs'
import { expect, expectEqual, judgeOrders, promise, run, sleep } from '../lib/world.mjs'

const world = new Pair(4)
const acknowledged = new Map() // business id -> saga id
let number = 0

async function tryStart(id) {
  const input = { order_id: id, sku: 'book', amount: 5, email: `${id}@x.example` }
  const answer = await world
    .api('POST', '/v1/sagas', { saga: 'order', id, input }, { seconds: 15 })
    .catch(() => undefined)
  expect(!answer || answer.status < 300 || answer.status === 503, `the start of ${id}`, answer?.text)
  if (answer?.status < 300) acknowledged.set(id, answer.json.id)
  return acknowledged.has(id)
}

async function start(count = 1, id = undefined) {
  for (; count > 0; count--) {
    const name = id ?? `order-${number++}`
    await world.within(240, `the start of ${name} is acknowledged`, () => tryStart(name))
  }
}

// Nothing is acknowledged for longer than a lease. Returns the business id that was asked for.
async function nothingIsAcknowledged(why) {
  const id = `order-${number++}`
  for (const end = Date.now() + 4000; Date.now() < end; await sleep(50)) expect(!(await tryStart(id)), why)
  return id
}

async function doctorSays(begin, more = []) {
  await world.within(60, `doctor says ${begin}`, () => {
    const { items } = JSON.parse(world.sagactl(['doctor', '-o', 'json', ...more]).stdout)
    return items.find(({ check }) => check === 'replication')?.what.startsWith(begin)
  })
}

const streams = (count) =>
  world.within(
    240,
    `${count} standbys stream`,
    () =>
      world.at(world.primary, "select count(*) from pg_stat_replication where state = 'streaming'") === String(count)
  )

const names = (n, ...servers) => `ANY ${n} (${servers.map((server) => `node_${server.number}`).join(', ')})`
const setNames = (text) => world.set(world.primary, 'synchronous_standby_names', text)

// The last place of the log that the standby has, as a number.
const has = (server) =>
  Number(
    world.at(server, "select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn as bytes")
  )

// The one of these standbys that has most.
const most = (...servers) => servers.reduce((best, server) => (has(server) > has(best) ? server : best))

async function judge() {
  const sagas = []
  for (const [id, saga] of acknowledged) {
    const ended = await world.until(saga)
    expectEqual(ended.business_id, id, `the saga of ${id}`)
    sagas.push(ended)
  }
  expectEqual(judgeOrders(sagas, world.ledger()).join('; '), '', 'faults by the ledger of the shop')
  const twice = 'select count(*) from (select business_id from sagad.saga group by 1 having count(*) > 1) as twice'
  expectEqual(world.sql(twice), '0', 'starts that made two sagas')
}

await run(world, async () => {
  const [first, one, two, three] = world.servers
  await world.startPair({ synchronous: true })
  await world.follow(two, false)
  await world.follow(three, false)
  await world.startShop()
  await world.startSagad()
  await world.define(world.example('shop.json'))
  const two_of_three = names(2, one, two, three)

  await promise('ANY 2 of three: doctor names it, and any one of the three may be away', async () => {
    setNames(two_of_three)
    await doctorSays(`quorum, ${two_of_three}`)
    for (const away of [three, one]) {
      await world.kill(away)
      await start(3)
      await world.startServer(away)
      await streams(3)
    }
  })
  await promise('with one standby of three nothing is acknowledged, and doctor says why', async () => {
    await world.kill(one)
    await world.kill(three)
    const id = await nothingIsAcknowledged('a start was acknowledged that one standby has')
    await doctorSays('fewer standbys stream from this PostgreSQL than each commit waits for')
    await doctorSays('fewer standbys stream from this PostgreSQL than each commit waits for', ['--database', world.dsn])
    await world.startServer(one)
    await start(1, id)
    await world.startServer(three)
    await streams(3)
  })
  await promise('whichever two of the three are asked, the one that has most has everything', async () => {
    await world.catchUp(three)
    await world.cut(three)
    await start(5)
    await world.kill(first)
    expectEqual(most(three, one).number, one.number, 'the one that has most of 3 and 1')
    expectEqual(most(three, two).number, two.number, 'the one that has most of 3 and 2')
    world.promote(most(three, two))
    await start()
    await judge()
  })
  await promise('ANY 1 of two: the standby that has less is promoted, and sagad writes nothing there', async () => {
    for (const server of [one, three]) await world.kill(server)
    await world.follow(first, false)
    await world.follow(one, false)
    setNames(names(1, first, one))
    await start(2)
    await judge() // nothing is under way any more
    await world.catchUp(first)
    await world.cut(first)
    await start(3)
    await world.kill(two)
    world.promote(first)
    await world.within(120, 'sagad finds what is missing', async () =>
      (await world.readyz()).json?.reason?.includes('another history')
    )
    await nothingIsAcknowledged('a start was acknowledged behind a hole')
  })
  // sagad has found a loss by then, and only a person ends that. Here it is about nothing.
  await promise('promoted instead of it, the one that has most has everything, when a person says so', async () => {
    await world.kill(first)
    world.promote(one)
    const losses = 'select count(*) from sagad.history_loss where accepted_at is null'
    await world.within(120, 'the loss is written down there, too', () => world.sql(losses) === '1')
    expectEqual(world.sql('select count(*) from sagad.history_call'), '0', 'calls that its log does not know')
    const note = ['--note', 'the server that has everything is back']
    const done = world.sagadOnce(['accept-history', '--database', world.dsn, ...note])
    expectEqual(done.status, 0, done.stderr)
    await start()
    await judge()
  })
})
