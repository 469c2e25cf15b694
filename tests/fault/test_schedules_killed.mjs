// Schedules over two engines, of which one or the other is killed again and again: one saga and one effect for each
// instant, and no instant left out.
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, effectsByKey, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 8 : 60
const names = ['north', 'south', 'east', 'west'] // in four shards, so that either engine has some

const instantOf = (saga) => Date.parse(saga.business_id.slice(saga.business_id.indexOf('@') + 1))

await run(new World(), async (world) => {
  const random = randomFrom(chooseSeed())
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startEngines(2)
  await world.define({
    tools: [
      {
        name: 'buy',
        effect: 'keyed',
        key: { window: '1h' },
        terminal: true,
        http: { method: 'POST', url: `http://127.0.0.1:${world.shopPort}/charges`, body: '${ .args }' }
      }
    ],
    sagas: [{ name: 'tick', steps: [{ id: 'buy', call: 'buy', with: { amount: 1, customer: 'clock' } }] }]
  })
  // Asks until an engine answers.
  const ask = async (method, path, body) => {
    for (const end = Date.now() + 60000; ; await sleep(50)) {
      for (const engine of world.engines) {
        world.port = engine.port
        const answer = await world.api(method, path, body).catch(() => undefined)
        if (answer && answer.status < 500) return answer
      }
      expect(Date.now() < end, `${method} ${path} is answered`)
    }
  }
  for (const name of names) {
    const made = await ask('POST', '/v1/schedules', {
      name,
      saga: 'tick',
      every: '1s',
      overlap: 'all',
      catch_up: 'all'
    })
    expectEqual(made.status, 201, name)
  }

  await promise(
    `${kills} times an engine is killed at any moment around an instant`,
    async () => {
      for (let i = 0; i < kills; i++) {
        await sleep(random() * 1500)
        const engine = world.engines[random() < 0.5 ? 0 : 1]
        await world.killEngine(engine)
        await sleep(random() * 500)
        world.launchEngine(engine)
        await world.engineReady(engine)
      }
    },
    1200
  )

  const sagas = async (name) => (await ask('GET', `/v1/sagas?tag.schedule=${name}&limit=500`)).json.items
  await promise('each instant has one saga, and each saga completed', async () => {
    for (const name of names) {
      const held = await ask('POST', `/v1/schedules/${name}/hold`, { note: 'enough' })
      expectEqual(held.status, 200, 'held')
    }
    for (const name of names) {
      let found
      for (const end = Date.now() + 60000; ; await sleep(100)) {
        found = await sagas(name)
        if (found.every((saga) => saga.status === 'completed')) break
        expect(
          Date.now() < end,
          `${name}: all complete`,
          found.filter((saga) => saga.status !== 'completed')
        )
      }
      const { created_at } = (await ask('GET', `/v1/schedules/${name}`)).json
      const instants = found.map(instantOf).sort((a, b) => a - b)
      expect(instants[0] > Date.parse(created_at) && instants[0] <= Date.parse(created_at) + 1000, `${name}: the first`)
      for (const [i, instant] of instants.entries())
        expectEqual(instant, instants[0] + i * 1000, `${name}: instant ${i}`)
      console.log(`# ${name}: ${instants.length} instants`)
    }
  })
  await promise('the ledger has one effect for each of them', async () => {
    let ids, keys
    // A saga whose instant had come before its schedule was held may start after the lists above were read.
    for (const end = Date.now() + 60000; ; await sleep(100)) {
      ids = []
      for (const name of names) ids.push(...(await sagas(name)).map((saga) => saga.id))
      keys = [...effectsByKey(world.ledger()).keys()]
      if (keys.length === ids.length || Date.now() > end) break
    }
    const charged = new Map() // the sagas, each with the keys of its effects
    for (const key of keys) {
      const { saga } = (await ask('GET', `/v1/operations/${key}`)).json
      charged.set(saga, [...(charged.get(saga) ?? []), key])
    }
    for (const [saga, of] of charged) {
      expect(ids.includes(saga), `${saga} is in a list`, of)
      expectEqual(of.length, 1, `keys of ${saga}`)
    }
    expectEqual(charged.size, ids.length, 'sagas with an effect')
    const twice = [...effectsByKey(world.ledger()).values()].filter((lines) => lines.length > 1)
    expectEqual(twice, [], 'keys with more than one effect')
  })
})
