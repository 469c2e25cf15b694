// Events of which no log of a saga tells: holds, breakers, budgets, bulk jobs, settled debts. Each is told once,
// whichever engine it came through, to its own namespace.
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const server = createServer((request, response) => {
  request.resume()
  response.writeHead(server.status[request.url] ?? 200, { 'content-type': 'application/json' })
  response.end('{}')
})
server.status = {}
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

function definitions(base) {
  const tool = (name, more = {}) => ({
    name,
    effect: 'keyed',
    key: { window: '1h' },
    terminal: true,
    retry: { max_attempts: 30, initial: '50ms', factor: 2, max: '200ms' },
    http: { method: 'POST', url: `${base}/${name}` },
    ...more
  })
  return {
    tools: [
      tool('frail', { breaker: { failures: 2, window: '60s', cooldown: '300ms' } }),
      tool('limited'),
      { ...tool('undo'), effect: 'idempotent', key: undefined },
      tool('charge', { terminal: undefined, compensate: { tool: 'undo' } }),
      tool('ship', { retry: undefined })
    ],
    sagas: [
      { name: 'calls_frail', steps: [{ id: 'one', call: 'frail' }] },
      { name: 'waits', steps: [{ id: 'go', signal: { name: 'go' } }] },
      {
        name: 'order',
        steps: [
          { id: 'charge', call: 'charge' },
          { id: 'ship', call: 'ship' }
        ]
      }
    ]
  }
}

await run(new World(), async (world) => {
  await world.startPostgres()
  const budgets = join(world.directory, 'budgets.json')
  writeFileSync(budgets, JSON.stringify({ budgets: [{ tool: 'limited', per: 'day', calls: 2 }] }))
  await world.startEngines(2, ['--budgets', budgets])
  await world.define(definitions(`http://127.0.0.1:${server.address().port}`))
  const [first, second] = world.engines
  const at = (engine, method, path, body) => {
    world.port = engine.port
    return world.calm(() => world.api(method, path, body))
  }

  let cursor = (await at(first, 'GET', '/v1/events?cursor=now')).json.next_cursor
  const told = []
  // Reads on until `holds` is true of all events that were told since `from`.
  const until = async (holds, what) => {
    for (const end = Date.now() + 240000; ; await sleep(50)) {
      const page = await at(told.length % 2 ? first : second, 'GET', `/v1/events?cursor=${cursor}`)
      expectEqual(page.status, 200, 'a page')
      told.push(...page.json.items)
      cursor = page.json.next_cursor
      if (holds()) return
      expect(Date.now() < end, what, told.slice(-5))
    }
  }
  const of = (type) => told.filter((event) => event.type === type)

  await promise('a hold is told when it is placed and when it is released', async () => {
    const placed = await at(first, 'POST', '/v1/holds', { tag: { shop: 'north' }, note: 'an outage' })
    expectEqual(placed.status, 201, 'placed')
    const { n } = placed.json
    expectEqual((await at(second, 'POST', `/v1/holds/${n}/release`, { note: 'over' })).status, 200, 'released')
    await until(() => of('hold.released').length > 0, 'both are told')
    const [one] = of('hold.placed')
    expectEqual(
      [one.source, one.subject, one.data.n, one.data.hold.note, one.data.hold.tag, 'saga' in one.data],
      ['/sagad/default', `hold/${n}`, n, 'an outage', { shop: 'north' }, false],
      'what was placed'
    )
    const [over] = of('hold.released')
    expectEqual([over.data.n, over.data.released.note, over.subject], [n, 'over', one.subject], 'what was released')
    expect(told.indexOf(one) < told.indexOf(over), 'in order')
  })

  await promise('a hold that ends by its time is told once', async () => {
    const body = { tag: { shop: 'south' }, note: 'for a second', until: new Date(Date.now() + 1000).toISOString() }
    const { n } = (await at(second, 'POST', '/v1/holds', body)).json
    await until(() => of('hold.ended').length > 0, 'it is told')
    expectEqual((await at(first, 'POST', `/v1/holds/${n}/release`, { note: 'too late' })).status, 409, 'released')
    const [over] = of('hold.ended')
    expectEqual(
      [over.subject, over.data.n, over.data.hold.note, over.data.hold.until],
      [`hold/${n}`, n, 'for a second', body.until],
      'what has ended'
    )
  })

  await promise('calls that fail open a breaker, and one that goes well closes it', async () => {
    server.status['/frail'] = 500
    const saga = await world.start('calls_frail', {}, {})
    await until(() => of('breaker.opened').length > 0, 'it is told')
    server.status['/frail'] = 200
    await world.until(saga)
    await until(() => of('breaker.closed').length > 0, 'that it is closed')
    const [opened] = of('breaker.opened')
    expectEqual([opened.subject, opened.data.tool], ['breaker/frail', 'frail'], 'the tool')
    expect(opened.data.endpoint.length > 0 && !opened.data.by, 'the endpoint', opened.data)
    expectEqual([of('breaker.opened').length, of('breaker.closed').length], [1, 1], 'each move once')
  })

  await promise('a person opens and closes a breaker', async () => {
    const set = (engine, state) => at(engine, 'POST', '/v1/tools/frail/breaker', { state, note: 'the bank said so' })
    for (const [engine, state] of [
      [first, 'open'],
      [second, 'open'],
      [second, 'closed'],
      [first, 'closed']
    ])
      expectEqual((await set(engine, state)).status, 200, state)
    await until(() => of('breaker.closed').length > 1, 'both are told')
    const opened = of('breaker.opened').slice(1)
    expectEqual(
      opened.map(({ data }) => [data.by.note, data.by.actor, data.endpoint ?? null]),
      [['the bank said so', 'local', null]],
      'who opened it, once'
    )
    expectEqual(of('breaker.closed').length, 2, 'closed once more')
  })

  await promise('a budget is told once in its day', async () => {
    for (let i = 0; i < 5; i++) {
      const body = { run: `r${i}`, step: 'one', tool: 'limited', args: {} }
      const { status } = await at(i % 2 ? first : second, 'POST', '/v1/operations?wait=20s', body)
      expectEqual(status, i < 2 ? 200 : 403, `call ${i}`)
    }
    await until(() => of('budget.reached').length > 0, 'it is told')
    expectEqual((await at(first, 'POST', '/v1/holds', { tag: { a: 'b' }, note: 'x' })).status, 201, 'a later event')
    await until(() => of('hold.placed').length > 2, 'which is told')
    const reached = of('budget.reached')
    expectEqual(
      reached.map(({ subject, data }) => [subject, data.tool, data.calls, data.micros, data.period > 1.7e9]),
      [['budget/*/limited/day', 'limited', 2, -1, true]],
      'once'
    )
  })

  await promise('a bulk job is told when it has ended', async () => {
    for (let i = 0; i < 3; i++) await world.start('waits', {}, { id: `w-${i}` })
    const freeze = { action: 'pause', filter: { saga: 'waits' }, note: 'for a while', preview: true }
    const job = (await at(first, 'POST', '/v1/bulk', freeze)).json
    expectEqual((await at(second, 'POST', `/v1/bulk/${job.bulk}/run`, {})).status < 300, true, 'run')
    await until(() => of('bulk.ended').length > 0, 'it is told')
    const [{ subject, data }] = of('bulk.ended')
    expectEqual(
      [subject, data.state, data.items, data.done, data.changed, data.refused],
      [`bulk/${job.bulk}`, 'done', 3, 3, 0, 0],
      'what became of it'
    )
    const other = (await at(first, 'POST', '/v1/bulk', { ...freeze, action: 'resume' })).json
    expectEqual((await at(first, 'POST', `/v1/bulk/${other.bulk}/stop`, { note: 'not now' })).status, 200, 'stopped')
    await until(() => of('bulk.ended').length > 1, 'a stop is an end')
    expectEqual([of('bulk.ended')[1].data.state, of('bulk.ended')[1].data.stop.note], ['stopped', 'not now'], 'by whom')
  })

  await promise('a debt is told when it is left and when it is settled', async () => {
    server.status['/ship'] = 422
    server.status['/undo'] = 422
    const left = await world.until(await world.start('order', {}, { id: 'o-1' }))
    expectEqual((await world.resolve(left.id, { action: 'waive', note: 'finance settles it' })).status, 200, 'waived')
    await world.until(left.id)
    const { key } = left.steps.find((step) => step.id === 'charge')
    const undone = { as: 'undone', note: 'refunded by hand' }
    expectEqual((await at(first, 'POST', `/v1/operations/${key}/resolve`, undone)).status, 200, 'settled')
    expectEqual((await at(second, 'POST', `/v1/operations/${key}/resolve`, undone)).status, 200, 'said again')
    await until(() => of('debt.settled').length > 0, 'it is told')
    expectEqual(
      of('debt.opened').map(({ subject, data }) => [subject, data.step]),
      [[left.id, 'charge']],
      'left'
    )
    const [{ subject, data }] = of('debt.settled')
    expectEqual(
      [subject, data.saga, data.saga_name, data.business_id, data.operation, data.settled.note],
      [left.id, left.id, 'order', 'o-1', key, 'refunded by hand'],
      'settled'
    )
  })

  await promise('a filter takes them, sagactl shows them, and another namespace hears nothing of them', async () => {
    const page = await at(first, 'GET', '/v1/events?type=hold.*,bulk.ended')
    expectEqual(
      page.json.items.map(({ type }) => type),
      ['hold.placed', 'hold.released', 'hold.placed', 'hold.ended', 'hold.placed', 'bulk.ended', 'bulk.ended'],
      'by type'
    )
    expectEqual(new Set(told.map(({ id }) => id)).size, told.length, 'each has an id of its own')
    const shown = world.sagactl(['events', '--type', 'hold.*,breaker.*,debt.*'])
    expect(/hold\.placed +hold\/\d+ by local/.test(shown.stdout), 'sagactl: a hold', shown.stdout)
    expect(/breaker\.opened +breaker\/frail http/.test(shown.stdout), 'sagactl: a breaker', shown.stdout)
    expect(/debt\.settled +order\/o-1 .*by local/.test(shown.stdout), 'sagactl: a debt', shown.stdout)
    world.sql(`update sagad.event set namespace = 'another' where type like 'hold.%'`)
    expectEqual((await at(second, 'GET', '/v1/events?type=hold.*')).json.items, [], 'of another namespace')
  })

  await promise('what is older than 30 days is removed, and a cursor from before it is told so', async () => {
    world.sql(`update sagad.event set at = at - interval '31 days' where type = 'breaker.opened'`)
    const from = (await at(first, 'GET', '/v1/events')).json.next_cursor
    for (let i = 0; i < 2; i++) {
      const set = { state: i ? 'closed' : 'open', note: 'again' }
      expectEqual((await at(first, 'POST', '/v1/tools/frail/breaker', set)).status, 200, set.state)
    }
    expectEqual((await at(first, 'GET', '/v1/events?cursor=1')).status, 410, 'some are gone')
    expectEqual((await at(first, 'GET', `/v1/events?cursor=${from}`)).status, 200, 'none behind this one')
    const left = (await at(first, 'GET', '/v1/events?type=breaker.opened')).json.items
    expectEqual(left.length, 1, 'the newest is left')
  })
  server.close()
})
