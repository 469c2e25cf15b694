// The feed of events while the engines are killed and hand their shards over. A reader that goes on with its cursor at
// any engine that answers misses no event, of sagas, of holds or of breakers, and gets the events of each saga in
// order.
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 6 : 60

// The entries of a log that are events; step.waiting only when it asks for an approval.
const told = {
  'saga.completed': 'saga.completed',
  'saga.compensated': 'saga.compensated',
  'saga.abandoned': 'saga.abandoned',
  'escalation.opened': 'case.opened',
  'escalation.resolved': 'case.resolved',
  'step.unknown': 'operation.unknown',
  'compensation.unknown': 'operation.unknown'
}

await run(new World(), async (world) => {
  const random = randomFrom(chooseSeed())
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startEngines(2)
  const tool = (name, path, more) => ({
    name,
    ...more,
    http: { method: 'POST', url: `http://127.0.0.1:${world.shopPort}${path}`, body: '${ .args }' }
  })
  await world.define({
    tools: [
      tool('buy', '/charges', { effect: 'keyed', key: { window: '1h' }, terminal: true }),
      tool('rest', '/charges', { effect: 'keyed', key: { window: '1h' }, terminal: true, breaker: { failures: 9 } }),
      tool('lose', '/nowhere', { effect: 'once', terminal: true })
    ],
    sagas: [
      { name: 'buys', steps: [{ id: 'buy', call: 'buy', with: { amount: 1, customer: 'feed' } }] },
      { name: 'loses', steps: [{ id: 'lose', call: 'lose', with: { amount: 1 } }] }
    ]
  })
  // Asks until an engine answers, beginning with another one each time.
  let turn = 0
  const ask = async (method, path, body) => {
    for (const end = Date.now() + 60000; ; await sleep(50)) {
      for (let i = 0; i < world.engines.length; i++) {
        world.port = world.engines[turn++ % world.engines.length].port
        const answer = await world.api(method, path, body).catch(() => undefined)
        if (answer && answer.status < 500) return answer
      }
      expect(Date.now() < end, `${method} ${path} is answered`)
    }
  }

  const events = [] // as they came
  let cursor = (await ask('GET', '/v1/events?cursor=now')).json.next_cursor
  let over = false
  let moves = 0 // of the breaker
  const takePage = async () => {
    const page = await ask('GET', `/v1/events?cursor=${cursor}&limit=3`)
    expectEqual(page.status, 200, 'a page')
    events.push(...page.json.items)
    cursor = page.json.next_cursor
    return page.json.items.length
  }
  const reader = (async () => {
    while (!over) if ((await takePage()) === 0) await sleep(20)
  })()
  const ids = []
  const starter = (async () => {
    for (let i = 0; !over; i++) {
      const saga = i % 3 === 2 ? 'loses' : 'buys'
      ids.push((await ask('POST', '/v1/sagas', { saga, id: `s-${i}`, input: {} })).json.id)
      await sleep(10)
    }
  })()

  // Holds, and the breaker of a tool that nobody calls: whatever is repeated after a kill changes nothing.
  const holder = (async () => {
    for (let i = 0; !over; i++) {
      await ask('POST', '/v1/holds', { tag: { nobody: `has ${i}` }, note: 'as good as none' })
      const until = new Date(Date.now() + 500).toISOString()
      await ask('POST', '/v1/holds', { tag: { nobody: `had ${i}` }, note: 'ends by its time', until })
      const { items } = (await ask('GET', '/v1/holds')).json
      for (const { n, note } of items)
        if (note === 'as good as none') await ask('POST', `/v1/holds/${n}/release`, { note: 'over' })
      await ask('POST', '/v1/tools/rest/breaker', { state: i % 2 ? 'closed' : 'open', note: 'by turns' })
      moves = i + 1
      await sleep(20)
    }
  })()

  await promise(
    `${kills} times an engine is killed while somebody reads`,
    async () => {
      for (let i = 0; i < kills; i++) {
        await sleep(300 + random() * 700)
        const engine = world.engines[random() < 0.5 ? 0 : 1]
        await world.killEngine(engine)
        await sleep(random() * 500)
        world.launchEngine(engine)
        await world.engineReady(engine)
      }
    },
    1200
  )
  over = true
  await Promise.all([reader, starter, holder])

  const expected = new Set()
  await promise('every saga comes to its end, or to a person', async () => {
    for (const id of ids) {
      for (const end = Date.now() + 60000; ; await sleep(50)) {
        const { status } = (await ask('GET', `/v1/sagas/${id}`)).json
        if (['completed', 'compensated', 'escalated'].includes(status)) break
        expect(Date.now() < end, `${id} is ${status}`)
      }
      for (const entry of (await ask('GET', `/v1/sagas/${id}/log?limit=500`)).json.items)
        if (told[entry.type]) expected.add(`${told[entry.type]} ${id}/${entry.seq}`)
    }
  })
  await promise('holds were made, released, and ended by their time', async () => {
    for (let page = ''; page !== undefined;) {
      const { items, next_cursor: next } = (await ask('GET', `/v1/holds?all=true&limit=500${page}`)).json
      for (const { n, released } of items) {
        expected.add(`hold.placed hold/${n}`)
        expected.add(released ? `hold.released hold/${n}` : `hold.ended hold/${n}`)
      }
      page = next ? `&cursor=${next}` : undefined
    }
    expect(moves > 0, 'the breaker was moved')
  })
  const isOfLog = ({ data }) => data.saga !== undefined
  const isOfHold = ({ type }) => type.startsWith('hold.')
  await promise('every event of their logs and of holds was told, and nothing else', async () => {
    for (const end = Date.now() + 60000; ; await sleep(50)) {
      if ((await takePage()) > 0) continue
      const seen = new Set([
        ...events.filter(isOfLog).map((event) => `${event.type} ${event.id}`),
        ...events.filter(isOfHold).map((event) => `${event.type} ${event.subject}`)
      ])
      const missed = [...expected].filter((event) => !seen.has(event))
      if (missed.length === 0) {
        expectEqual(seen.size, expected.size, 'events')
        const ids = new Set(events.filter(isOfHold).map(({ id }) => id))
        expectEqual(
          ids.size,
          [...expected].filter((event) => event.startsWith('hold.')).length,
          'each hold is told once'
        )
        break
      }
      expect(Date.now() < end, 'no event is missed', missed.slice(0, 5))
    }
    console.log(`# ${ids.length} sagas, ${events.length} events, ${expected.size} of them different`)
  })
  await promise('the breaker was told open and closed by turns, once each', () => {
    const told = new Map(events.filter(({ type }) => type.startsWith('breaker.')).map(({ id, type }) => [id, type]))
    expectEqual(
      [...told.values()],
      Array.from({ length: moves }, (_, i) => (i % 2 ? 'breaker.closed' : 'breaker.opened')),
      'moves of the breaker'
    )
  })
  await promise('the events of each saga came in order', () => {
    const last = new Map()
    const known = new Set()
    for (const { id, subject, data } of events.filter(isOfLog)) {
      if (known.has(id)) continue
      known.add(id)
      expect((last.get(subject) ?? 0) < data.seq, `${id} comes after ${last.get(subject)}`)
      last.set(subject, data.seq)
    }
  })
})
