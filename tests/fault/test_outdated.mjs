// An engine that has lost its leases and has not heard of it remembers its sagas as they were. The new owner may accept
// what this engine would refuse. So it refuses nothing for good, and says that the client may ask again.
import { randomFrom } from '../lib/load.mjs'
import { eventually, expect, expectEqual, promise, run } from '../lib/world.mjs'
import { ask } from './campaign/http.mjs'
import { CampaignWorld } from './campaign/world.mjs'

const world = new CampaignWorld(randomFrom(1), { engineCount: 2 })
const sagas = 8

await run(world, async () => {
  await world.startAll()
  const [first, second] = world.engines
  await world.defineAt(first, {
    sagas: [
      {
        name: 'asks',
        steps: [
          { id: 'wait', signal: { name: 'go' } },
          { id: 'ask', approve: { show: '${ .input }' } }
        ]
      }
    ]
  })
  const ids = []
  let questions
  let holding = true
  let keepHolding
  // Holds back the renewals of its leases on every connection; everything else works.
  const held = (ms = 10000) => world.aim.at('lease_renew', 'before', ms, (engine) => engine === first)
  await promise('one engine has all sagas; then the engine hears nothing of its leases any more', async () => {
    await Promise.all([first, second].map((engine) => world.killEngine(engine)))
    first.args = ['--park-after', '10m'] // the engine keeps waiting sagas in memory
    world.launchEngine(first)
    await eventually(
      'the first engine has all shards',
      async () =>
        (await world.query('select count(distinct owner) from sagad.shard')) === '1' &&
        (await ask(first.host, first.port, 'GET', '/readyz'))?.status === 200
    )
    for (let i = 0; i < sagas; i++)
      ids.push((await world.told(first, '/v1/sagas', { saga: 'asks', id: `asks-${i}`, input: {} })).json.id)
    expect(await held(), 'a renewal was held back')
    keepHolding = (async () => {
      while (holding) await held(500)
    })()
  })
  await promise('the other one takes over and goes on', async () => {
    world.launchEngine(second)
    await eventually(
      'the second engine has all shards',
      async () =>
        (await world.query('select count(distinct owner) from sagad.shard')) === '1' &&
        (await ask(second.host, second.port, 'GET', '/readyz'))?.status === 200
    )
    for (const id of ids)
      expect(
        (await world.told(second, `/v1/sagas/${id}/signals/go`, {}, { 'idempotency-key': id })).status < 300,
        'the signal'
      )
    await eventually('all questions are asked', async () => {
      questions = (await ask(second.host, second.port, 'GET', '/v1/approvals?status=open&limit=100'))?.json?.items
      return questions?.length === sagas
    })
  })
  await promise('the first one refuses no decision for good', async () => {
    const statuses = []
    await eventually(
      'the first one shows nothing that may be old',
      async () => (await ask(first.host, first.port, 'GET', '/v1/approvals?status=open&limit=100'))?.status === 503
    )
    for (const { n } of questions)
      statuses.push(
        (
          await ask(
            first.host,
            first.port,
            'POST',
            `/v1/approvals/${n}`,
            { decision: 'approve', note: 'yes' },
            { seconds: 10 }
          )
        )?.status
      )
    expect(
      statuses.every((status) => status === undefined || status === 503 || status === 200),
      'the answers',
      statuses
    )
  })
  await promise('and takes them when it has its connections back', async () => {
    holding = false
    await keepHolding
    first.proxies[0].cut()
    for (const { n } of questions)
      expect(
        [200, 409].includes(
          (await world.told(first, `/v1/approvals/${n}`, { decision: 'approve', note: 'yes' })).status
        ),
        'a decision is taken'
      )
    await eventually(
      'all end',
      async () => (await world.query('select count(*) from sagad.saga where ended_at is null')) === '0'
    )
    expectEqual(
      await world.query("select count(*) from sagad.approval where status = 'approved'"),
      String(sagas),
      'approved'
    )
  })
})
