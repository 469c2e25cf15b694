// Notifications: events go to receivers that check them with packages of others: standardwebhooks for the signatures,
// cloudevents for the form. Engines are killed between the event and its delivery; a receiver that fails gets its dead
// letters when somebody sends them again. Skipped where the packages are not installed.
import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const modules = process.env.NODE_MODULES ?? ''
if (!existsSync(join(modules, 'standardwebhooks')) || !existsSync(join(modules, 'cloudevents'))) {
  console.log('skipped: standardwebhooks and cloudevents are not installed (tools/test does it)')
  process.exit(77)
}
const require = createRequire(join(modules, 'here.js'))
const { Webhook } = require('standardwebhooks')
const { HTTP } = require('cloudevents')

const secret = () => 'whsec_' + randomBytes(32).toString('base64')
const secrets = { 'hook-new': secret(), 'hook-old': secret(), 'b/hook': secret() }

// A receiver with a path for each of its names. Both secrets must have signed: whoever knows either of them can check.
class Receiver {
  constructor() {
    this.seen = new Map() // path -> [{id, key, event, text}]
    this.wrong = []
    this.behave = {} // path -> {status, ms}
    this.server = createServer(async (request, response) => {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      const path = request.url.slice(1)
      const { status = 204, ms = 0 } = this.behave[path] ?? {}
      if (path !== 'tool' && status < 300) this.take(path, request, Buffer.concat(chunks).toString())
      await sleep(ms)
      response.writeHead(path === 'tool' ? 200 : status, { 'content-type': 'application/json' })
      response.end(path === 'tool' ? '{}' : undefined)
    })
  }

  take(path, request, text) {
    try {
      for (const name of path === 'other' ? ['b/hook'] : ['hook-new', 'hook-old'])
        new Webhook(secrets[name]).verify(text, request.headers)
      const event = HTTP.toEvent({ headers: request.headers, body: text })
      if (!event.validate()) throw new Error('no CloudEvent')
      const id = request.headers['webhook-id']
      if (event.id !== id) throw new Error(`${event.id} came as ${id}`)
      const list = this.seen.get(path) ?? []
      list.push({ id, key: request.headers['idempotency-key'], event, text })
      this.seen.set(path, list)
    } catch (error) {
      this.wrong.push(String(error))
    }
  }

  of(path) {
    return this.seen.get(path) ?? []
  }

  ids(path) {
    return new Set(this.of(path).map(({ id }) => id))
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, '0.0.0.0', resolve))
    this.port = this.server.address().port
  }
}

const receiver = new Receiver()
await receiver.listen()
const base = `http://127.0.0.1:${receiver.port}`
const wants = ['saga.*', 'hold.*']

await run(new World(), async (world) => {
  await world.startPostgres()
  const file = (name, content) => {
    const path = join(world.directory, name)
    writeFileSync(path, JSON.stringify(content))
    return path
  }
  const signed = { secrets: ['hook-new', 'hook-old'] }
  const receivers = [
    { name: 'all', url: `${base}/all`, events: wants, ...signed },
    { name: 'fails', url: `${base}/fails`, events: ['saga.completed'], give_up_after: '3s', ...signed },
    {
      name: 'denied',
      url: `http://127.0.0.2:${receiver.port}/denied`,
      events: ['hold.placed'],
      give_up_after: '2s',
      ...signed
    },
    { name: 'other', namespace: 'b', url: `${base}/other`, secrets: ['hook'] }
  ]
  const args = ['--secrets', file('secrets.json', secrets), '--egress-deny', '127.0.0.2/32']
  const settings = [...args, '--notify', file('notify.json', { notify: receivers })]

  await promise('a file of receivers that is wrong is refused before anything starts', () => {
    const refused = (notify, what, options = args) => {
      const path = file('wrong.json', { notify })
      for (const check of [['--check-config'], ['--database', world.dsn, '--listen', '127.0.0.1:0']]) {
        const done = world.sagadOnce([...options, '--notify', path, ...check], { seconds: 60 })
        expect(done.status === 2 && done.stderr.includes(what), `${what}: ${done.status}`, done.stderr)
      }
    }
    const [good] = receivers
    refused([{ ...good, secret: 'hook-new' }], '/notify/0/secret')
    refused([{ ...good, events: ['case.eaten'] }], '/notify/0/events')
    refused([{ ...good, url: 'ftp://x' }], '/notify/0/url')
    refused([{ ...good, secrets: [] }], '/notify/0/secrets')
    refused([good, good], '/notify/1')
    refused([{ ...good, secrets: ['hook-lost'] }], 'no secret "hook-lost"')
    refused([{ ...good, namespace: 'b' }], 'the namespace "b" has no secret "hook-new"')
    refused([good], 'of the right form', ['--secrets', file('plain.json', { 'hook-new': 'x', 'hook-old': 'x' })])
    expectEqual(world.sagadOnce([...settings, '--check-config']).status, 0, 'a good one')
  })

  await world.startEngines(2, settings)
  await world.define({
    tools: [
      {
        name: 'act',
        effect: 'keyed',
        key: { window: '1h' },
        terminal: true,
        http: { method: 'POST', url: `${base}/tool` }
      }
    ],
    sagas: [{ name: 'acts', steps: [{ id: 'one', call: 'act' }] }]
  })
  // Asks until an engine answers, because they are killed.
  let turn = 0
  const ask = async (method, path, body) => {
    for (const end = Date.now() + 240000; ; await sleep(50)) {
      for (let i = 0; i < world.engines.length; i++) {
        world.port = world.engines[turn++ % world.engines.length].port
        const answer = await world.api(method, path, body).catch(() => undefined)
        if (answer && answer.status < 500) return answer
      }
      expect(Date.now() < end, `${method} ${path} is answered`)
    }
  }
  const until = (what, holds, shown) => eventually(what, holds, { seconds: 240, shown })
  const feed = async (types) => {
    const items = []
    for (let cursor = ''; ;) {
      const { json } = await ask('GET', `/v1/events?limit=500${types ? `&type=${types}` : ''}${cursor}`)
      items.push(...json.items)
      if (json.items.length === 0) return items
      cursor = `&cursor=${json.next_cursor}`
    }
  }
  // What a shard delivers while it changes its engine may be delivered twice.
  await until('each engine has half of the shards', async () => {
    const { json } = await ask('GET', '/v1/engines')
    return json.items.length === 2 && json.items.every(({ shards }) => shards.length === 32)
  })
  await until('the receivers are known', () => world.sql('select count(*) from sagad.notify') === '4')

  await promise('an event is delivered, signed by both secrets, once where nothing happens', async () => {
    const id = await world.start('acts', {}, { id: 'first' })
    await until('it comes', () => receiver.of('all').length > 0 && receiver.of('fails').length > 0)
    const [{ event, key }] = receiver.of('all')
    expectEqual(
      [event.type, event.subject, event.source, event.data.business_id, event.datacontenttype],
      ['saga.completed', id, '/sagad/default', 'first', 'application/json'],
      'the event'
    )
    expect(/^[0-9a-f]{8}-[0-9a-f]{4}-8/.test(key), 'it has the key of an operation', key)
    await until('it is not kept', async () => (await ask('GET', '/v1/notifications')).json.items.length === 0)
    expectEqual([receiver.of('all').length, receiver.of('fails').length], [1, 1], 'once for each receiver')
    expectEqual(receiver.of('other').length, 0, 'nothing for another namespace')
  })

  await promise(
    'engines are killed between an event and its delivery: each comes at least once, under one id',
    async () => {
      receiver.behave.all = { ms: 300 } // so that a kill meets deliveries under way
      let over = false
      const ids = []
      const starter = (async () => {
        for (let i = 0; !over; i++) {
          ids.push((await ask('POST', '/v1/sagas', { saga: 'acts', id: `k-${i}`, input: {} })).json.id)
          await sleep(20)
        }
      })()
      for (let i = 0; i < 6; i++) {
        const before = receiver.of('all').length
        await until('something is delivered', () => receiver.of('all').length > before)
        const engine = world.engines[i % 2]
        await world.killEngine(engine)
        world.launchEngine(engine)
        await world.engineReady(engine)
      }
      over = true
      await starter
      delete receiver.behave.all
      await until('each saga completes and is told', async () => {
        const told = new Set((await feed(wants.join(','))).map((event) => event.id))
        return ids.every((id) => [...told].some((one) => one.startsWith(id)))
      })
      const expected = new Set((await feed(wants.join(','))).map((event) => event.id))
      const missing = () => [...expected].filter((id) => !receiver.ids('all').has(id))
      await until('every event of the feed is delivered', () => missing().length === 0, missing)
      expectEqual(
        [...receiver.ids('all')].filter((id) => !expected.has(id)),
        [],
        'and nothing else'
      )
      const first = new Map()
      for (const { id, key, text } of receiver.of('all')) {
        const one = first.get(id) ?? { key, text }
        expectEqual([key, text], [one.key, one.text], `all deliveries of ${id} are the same`)
        first.set(id, one)
      }
      expectEqual(new Set([...first.values()].map(({ key }) => key)).size, first.size, 'a key for each event')
      console.log(`# ${expected.size} events, ${receiver.of('all').length} deliveries`)
      expectEqual(receiver.wrong, [], 'every signature is right')
    },
    600
  )

  await promise('a receiver that fails gets dead letters, and holds up no other one', async () => {
    await until('it has what came before', () => receiver.ids('fails').size === receiver.ids('all').size)
    await until('nothing waits', async () => (await ask('GET', '/v1/notifications')).json.items.length === 0)
    receiver.behave.fails = { status: 500 }
    const before = receiver.ids('fails').size
    const ids = []
    for (let i = 0; i < 8; i++) ids.push(await world.start('acts', {}, { id: `dead-${i}` }))
    const dead = async (name) => (await ask('GET', `/v1/notifications?state=dead&receiver=${name}`)).json.items
    await until('all are dead letters', async () => (await dead('fails')).length === ids.length)
    for (const item of await dead('fails')) {
      expect(/status 500|rests/.test(item.error), 'the reason', item)
      expect(ids.includes(item.event.subject) && item.died_at && !item.next_at, 'the event', item)
    }
    expect(
      (await dead('fails')).some((item) => item.attempts > 0),
      'some were sent'
    )
    const others = () => ids.filter((id) => ![...receiver.ids('all')].some((one) => one.startsWith(id)))
    await until('the other receiver has all of them', () => others().length === 0, others)
    expectEqual(receiver.ids('fails').size, before, 'the failing one has none')

    const table = world.sagactl(['notifications', '--state', 'dead'])
    expect(table.status === 0 && /fails +\S+ +saga\.completed +dead/.test(table.stdout), 'sagactl lists them', table)
    delete receiver.behave.fails
    const [one] = await dead('fails')
    const replay = world.sagactl(['notifications', 'replay', one.event.id, '--note', 'it is up'])
    expectEqual([replay.status, replay.stdout], [0, '1 sent again\n'], replay.stderr)
    await until('it comes under its id', () => receiver.ids('fails').has(one.event.id))
    const all = await ask('POST', '/v1/notifications/replay', { receiver: 'fails', note: 'it is up' })
    expectEqual([all.status, all.json], [200, { replayed: ids.length - 1 }], 'the rest')
    await until('all of them come', () => receiver.ids('fails').size === before + ids.length)
    await until('nothing is left', async () => (await ask('GET', '/v1/notifications')).json.items.length === 0)
    expectEqual(
      (await ask('POST', '/v1/notifications/replay', { note: 'again' })).json,
      { replayed: 0 },
      'what was delivered is not sent again'
    )
    const acts = (await ask('GET', '/v1/acts?verb=replay')).json.items
    expectEqual(
      acts.map((act) => [act.kind, act.target, act.note]),
      [
        ['receiver', 'fails', 'it is up'],
        ['receiver', null, 'it is up']
      ],
      'whoever had them sent again stands in the acts'
    )
  })

  await promise('a hold of the namespace holds no notification; the egress guard denies one', async () => {
    const { n } = (await ask('POST', '/v1/holds', { namespace: 'default', note: 'an outage' })).json
    const told = (type) => receiver.of('all').filter(({ event }) => event.type === type && event.data.n === n)
    await until('that it was placed', () => told('hold.placed').length > 0)
    await until(
      'the denied one is a dead letter',
      async () => (await ask('GET', '/v1/notifications?state=dead')).json.items.length === 1
    )
    const [denied] = (await ask('GET', '/v1/notifications?state=dead')).json.items
    expectEqual([denied.receiver, denied.event.type], ['denied', 'hold.placed'], 'whose')
    expect(/egress-denied/.test(denied.error), 'why', denied.error)
    await ask('POST', `/v1/holds/${n}/release`, { note: 'over' })
    await until('that it was released', () => told('hold.released').length > 0)
  })

  await promise('notifications raise no events and no cases', async () => {
    expectEqual((await ask('GET', '/v1/escalations')).json.items, [], 'cases')
    const types = new Set((await feed('')).map(({ type }) => type))
    expectEqual([...types].sort(), ['hold.placed', 'hold.released', 'saga.completed'], 'events')
    expectEqual(world.sql(`select count(*) from sagad.saga where name like '~%'`), '0', 'runs')
  })

  await promise('engines leave at once while a receiver does not answer', async () => {
    receiver.behave.all = { ms: 600000 }
    await world.start('acts', {}, { id: 'last' })
    await until('it is being sent', () =>
      [...receiver.of('all')].some(({ event }) => event.data.business_id === 'last')
    )
    for (const engine of world.engines) {
      engine.child.kill('SIGTERM')
      expectEqual((await engine.child.ended).code, 0, 'exit code')
    }
  })
  receiver.server.closeAllConnections()
  receiver.server.close()
})
