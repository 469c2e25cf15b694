// Holds. After the answer no engine begins any held work, under load, over a kill and a restart. After the release,
// waiting work goes on at its pace. The tools are the test's own server, which sees what arrives.
import { createServer } from 'node:http'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

async function startServer() {
  const server = createServer(async (request, response) => {
    for await (const chunk of request) void chunk
    server.seen.push({ path: request.url.slice(1), at: Date.now() })
    await sleep(20)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"ok":true}')
  })
  server.seen = []
  server.of = (path) => server.seen.filter((one) => one.path === path)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function definitions(base) {
  const tool = (name, more = {}) => ({
    name,
    effect: 'keyed',
    key: { window: '24h' },
    http: { method: 'POST', url: `${base}/${name}` },
    ...more
  })
  const undo = { compensate: { tool: 'undo' } }
  return {
    tools: [
      tool('pay', undo),
      tool('ship', { terminal: true }),
      { ...tool('note', { terminal: true }), effect: 'once', key: undefined },
      { ...tool('undo'), effect: 'idempotent', key: undefined }
    ],
    sagas: [
      {
        name: 'order',
        steps: [
          { id: 'pay', call: 'pay' },
          { id: 'ship', call: 'ship' }
        ]
      },
      { name: 'memo', steps: [{ id: 'note', call: 'note' }] }
    ]
  }
}

const server = await startServer()

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startEngines(2)
  const [first, second] = world.engines
  await world.define(definitions(`http://127.0.0.1:${server.address().port}`))

  const at = (engine, method, path, body) => {
    world.port = engine.port
    return world.api(method, path, body)
  }
  const hold = async (body, engine = first) => {
    const answer = await at(engine, 'POST', '/v1/holds', { note: 'the test wants it', ...body })
    expectEqual(
      [answer.status, answer.json.in_force, answer.json.ignored_by],
      [201, true, []],
      `the hold: ${answer.text}`
    )
    return answer.json
  }
  const release = async (n, engine = first) => {
    const answer = await at(engine, 'POST', `/v1/holds/${n}/release`, { note: 'it is over' })
    expectEqual(answer.status, 200, `the release: ${answer.text}`)
  }
  const start = async (saga, i, more = {}) => {
    world.port = world.engines[i % 2].port
    return world.start(saga, {}, { id: `${saga}-${i}`, ...more })
  }
  const stepOf = (saga, step) => saga.steps.find((one) => one.id === step)
  // Waits until the held step of each of these sagas is known not to have been sent.
  const waits = async (ids, step) => {
    for (const id of ids)
      for (const end = Date.now() + 60000; ; await sleep(50)) {
        const { status } = stepOf(await world.saga(id), step)
        if (['pending', 'retrying', 'completed'].includes(status)) break
        expect(Date.now() < end, `the step ${step} of ${id} is ${status}`)
      }
  }

  await promise('under load nothing of a tool begins after the answer, on either engine', async () => {
    const ids = []
    let stop = false
    const load = [0, 1].map(async (lane) => {
      for (let i = lane; !stop; i += 2) ids.push(await start('order', i))
    })
    while (server.of('ship').length < 20) await sleep(10)
    const { n } = await hold({ tool: 'ship', pace: 20 }, second)
    const answered = Date.now()
    const before = ids.length
    while (ids.length < before + 40) await sleep(10)
    stop = true
    await Promise.all(load)
    await waits(ids, 'ship')
    // Calls that had left before arrive within a second.
    const late = () => server.of('ship').filter((one) => one.at > answered + 1000).length
    await sleep(1200)
    expectEqual(late(), 0, 'calls that came after the answer')
    const waiting = ids.length - server.of('ship').length
    expect(waiting >= 40, 'sagas wait')

    await world.killEngine(first) // its sagas go to the other engine and come back
    while (!(await world.asks(second, '/readyz'))) await sleep(50)
    world.launchEngine(first)
    await world.engineReady(first)
    await waits(ids, 'ship')
    expectEqual(late(), 0, 'calls after the kill')

    const released = Date.now()
    await release(n, second)
    for (const id of ids) await world.until(id, ['completed'])
    expectEqual(server.of('ship').length, ids.length, 'each was shipped once')
    const took = Math.max(...server.of('ship').map((one) => one.at)) - released
    expect(took > (waiting / (2 * 20)) * 1000 * 0.7, `${waiting} sagas were let go within ${took} ms, as a flood`)
  })

  await promise('a hold ends by its time, and calls of agents are refused until then', async () => {
    const { n } = await hold({ tool: 'note', until: new Date(Date.now() + 10000).toISOString() })
    const id = await start('memo', 0)
    const call = () => at(second, 'POST', '/v1/operations', { run: 'r', tool: 'note', args: {} })
    const refused = await call()
    expectEqual([refused.status, refused.json.type], [503, 'urn:sagad:problem:held'], 'the call of an agent')
    expect(Number(refused.headers.get('retry-after')) >= 1, 'Retry-After')
    expectEqual((await at(first, 'GET', '/v1/operations?run=r')).json.items, [], 'what was recorded')
    expectEqual((await world.saga(id)).status, 'running', 'the saga')
    await world.until(id, ['completed'])
    expectEqual((await at(second, 'GET', `/v1/holds/${n}`)).json.status, 'over', 'the hold')
    expectEqual((await call()).status, 200, 'the call after that')
    expectEqual(server.of('note').length, 2, 'notes')
  })

  await promise('starts are refused where it is asked for, and only those that are meant', async () => {
    const { n } = await hold({ tag: { customer: 'ada' }, starts: 'refuse' })
    const begin = (customer) => at(second, 'POST', '/v1/sagas', { saga: 'memo', input: {}, tags: { customer } })
    expectEqual([(await begin('ada')).status, (await begin('bob')).status], [503, 201], 'the starts')
    await release(n)
    expectEqual((await begin('ada')).status, 201, 'after the release')
  })

  await promise('people see what is held, and a hold of nothing is refused', async () => {
    const { n } = await hold({ saga: 'memo' })
    const table = world.sagactl(['holds'])
    expect(table.status === 0 && /saga memo +held/.test(table.stdout), 'sagactl holds', table.stdout + table.stderr)
    const shown = world.sagactl(['show', await start('memo', 1)])
    expect(/held since .* by .*, hold \d+: the test wants it/.test(shown.stdout), 'sagactl show', shown.stdout)
    const made = world.sagactl(['hold', '--tool', 'pay', '--note', 'as well', '-o', 'name'])
    expectEqual(world.sagactl(['release', made.stdout.trim(), `${n}`, '--note', 'enough']).status, 0, 'sagactl release')
    expectEqual((await at(first, 'GET', '/v1/holds')).json.items, [], 'what is held')
    expectEqual((await at(first, 'POST', `/v1/holds/${n}/release`, { note: 'again' })).status, 409, 'a second release')
    for (const body of [
      { tool: 'nothing' },
      { saga: 'nothing' },
      { namespace: 'other' },
      {},
      { tool: 'pay', saga: 'memo' }
    ])
      expectEqual((await at(first, 'POST', '/v1/holds', { note: 'x', ...body })).status, 422, JSON.stringify(body))
  })
})
server.close()
