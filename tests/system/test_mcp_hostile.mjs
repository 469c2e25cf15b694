// Hostile clients at /mcp, while an honest client works beside them: messages that are none, lengths that lie, bodies
// that do not come, streams without end, handles and grants of others, ids used again, calls cut off at each point, and
// replays. Each honest wish has exactly one effect, no hostile call has one that it may not have, and memory and
// descriptors stay bounded.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RawClient, ask, request } from '../lib/raw_http.mjs'
import { World, expect, expectEqual, leaves, promise, quick, run, sleep } from '../lib/world.mjs'

const sanitized = readFileSync(process.env.SAGAD).includes('__asan_init')
const [hostileAddress, slowAddress, streamsAddress] = ['127.0.0.2', '127.0.0.3', '127.0.0.4']
const connectionsMax = quick ? 256 : 1024
const perAddress = connectionsMax / 4
const streamsTried = quick ? 400 : 10000
const memoryMax = (sanitized ? 384 : 96) * 1024 * 1024 // more than at the start; the sanitizer keeps freed memory

const definitions = (shop) => ({
  tools: [
    {
      name: 'charge',
      http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
      input: { type: 'object', properties: { customer: { type: 'string' } }, required: ['customer'] },
      effect: 'keyed',
      key: { window: '1h' },
      terminal: true,
      timeout: '20s',
      retry: { max_attempts: 3, initial: '50ms', max: '200ms' },
      expose: { scope: true }
    },
    { name: 'nap', builtin: { do: 'sleep', for: '30m' }, effect: 'idempotent', timeout: '1h', terminal: true },
    { name: 'look', builtin: { do: 'echo' }, effect: 'read' }
  ]
})

// --- messages ---

let ids = 0
const message = (method, params, id = ++ids) => JSON.stringify({ jsonrpc: '2.0', id, method, params })
const call = (name, args, _meta = {}, id = undefined) => message('tools/call', { name, arguments: args, _meta }, id)
const charge = (customer, _meta = { 'sagad/run': customer }, id = undefined) =>
  call('charge', { amount: 5, customer }, _meta, id)
const as = (token) => ({ Authorization: `Bearer ${token}` })

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop(['--no-sync'])])
  const ledgerOf = (customer) =>
    world.ledger().filter((line) => line.effect === 1 && line.kind === 'charge' && line.body?.customer === customer)
  // Asks again while the engine says that it is too busy, as on a machine that stalls.
  const mcp = async (body, headers = {}, token = 'mallory', path = '/mcp') => {
    for (; ; await sleep(50)) {
      const answer = await ask(world.port, request(path, body, { ...as(token), ...headers }), hostileAddress)
      const problem = answer?.json?.result?.structuredContent ?? answer?.json
      if (problem?.status !== 503 || !problem.retryable) return answer
    }
  }

  await promise('without tokens a web page cannot reach /mcp, whatever name it resolves to this machine', async () => {
    await world.startSagad()
    await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
    const here = `127.0.0.1:${world.port}`
    for (const headers of [
      { Host: `rebound.example:${world.port}` },
      { Host: `127.0.0.1.rebound.example:${world.port}` },
      { Host: `rebound.example:${world.port}`, Origin: `http://rebound.example:${world.port}` },
      { Host: here, Origin: 'http://rebound.example' },
      { Host: here, Origin: 'null' },
      { Host: here, Origin: [`http://${here}`, 'http://rebound.example'] },
      { Host: here, 'Sec-Fetch-Site': 'cross-site' },
      { Host: here, 'Sec-Fetch-Site': 'same-site', 'Content-Type': 'text/plain' },
      { Host: [here, 'rebound.example'] },
      { Host: undefined }
    ]) {
      const answer = await ask(world.port, request('/mcp', charge('rebound'), headers), hostileAddress)
      expect([400, 403].includes(answer?.status), `refused: ${JSON.stringify(headers)}`, answer)
    }
    const honest = await ask(world.port, request('/mcp', message('ping'), { Host: here }))
    expectEqual(honest.status, 200, 'a client that is no web page')
    expectEqual(ledgerOf('rebound').length, 0, 'charges')
  })

  const tokens = join(world.directory, 'tokens.json')
  const rows = [
    ['honest', 'agent', 'default'],
    ['mallory', 'agent', 'default'],
    ['stranger', 'agent', 'other'],
    ['root', 'admin', '*']
  ]
  const row = ([name, role, namespace]) => ({
    name,
    role,
    namespace,
    sha256: createHash('sha256').update(name).digest('hex')
  })
  writeFileSync(tokens, JSON.stringify({ tokens: rows.map(row) }), { mode: 0o600 })
  world.sagad.kill('SIGTERM')
  await world.sagad.ended
  await world.startSagad([
    ...['--tokens', tokens, '--connections-max', String(connectionsMax)],
    ...['--connections-per-address', String(perAddress), '--drain', '1s']
  ])
  const root = { ...as('root'), 'sagad-namespace': 'other' }
  const theirs = await world.api('POST', '/v1/definitions', definitions(`http://127.0.0.1:${world.shopPort}`), {
    headers: root
  })
  expectEqual(theirs.status, 200, `definitions of the other namespace: ${theirs.text}`)

  // --- what is measured ---

  const proc = (name) => `/proc/${world.sagad.pid}/${name}`
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(proc('status'), 'utf8'))[1]) * 1024
  const descriptors = () => readdirSync(proc('fd')).length
  // Connections to sagad that it has not closed.
  const connections = () => {
    const port = world.port.toString(16).toUpperCase().padStart(4, '0')
    const sockets = readFileSync(proc('net/tcp'), 'utf8').matchAll(/: 0100007F:(\w{4}) \w+:\w+ (01|08) /g)
    return [...sockets].filter((socket) => socket[1] === port).length
  }
  const memoryBefore = resident()
  const descriptorsBefore = descriptors()
  let most = 0 // bytes of memory, as far as somebody looked

  // --- the honest client ---

  // It works on one wish at a time and calls again, with the same words, until it has the result.
  const honest = { wishes: 0, asked: 0, stop: false }
  const wish = async (n) => {
    const run = `honest-${Math.floor(n / 500)}` // a run has at most 1,000 operations
    const body = call('charge', { amount: 5, customer: `honest-${n}`, scope: `wish ${n}` }, { 'sagad/run': run })
    for (; ; await sleep(20)) {
      honest.asked++
      const answer = await ask(world.port, request('/mcp', body, as('honest')))
      if (answer?.status === 200 && answer.json?.result?.isError === false) return
      const busy = answer === null || answer.status === 503 || answer.json?.result?.structuredContent?.retryable
      expect(busy, 'an honest client is told to come again, and nothing else', answer)
    }
  }
  const work = async () => {
    while (!honest.stop) {
      await wish(honest.wishes)
      honest.wishes++
      most = Math.max(most, resident())
      await sleep(quick ? 60 : 10)
    }
  }
  // What an attack holds is let go when the honest client has finished two wishes that it began meanwhile.
  const worksOn = async () => {
    for (const wanted = honest.wishes + 3; honest.wishes < wanted; await sleep(10))
      expect(!world.sagad.end && !honest.failed, 'the honest client works', honest.failed?.message)
  }
  const working = work().catch((error) => (honest.failed = error))

  await promise('what is no message is refused, with a status and a code, and does nothing', async () => {
    const nested = (depth) => '['.repeat(depth) + ']'.repeat(depth)
    const huge = 'x'.repeat(900 * 1024)
    const rpc = (members) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', ...members })
    const params = { name: 'charge', arguments: { customer: 'none' }, _meta: { 'sagad/run': 'none' } }
    const whole = rpc({ params })
    const cases = [
      ['nothing', '', 400],
      ['no JSON', '{"jsonrpc": "2.0"', 400],
      ['an empty batch', '[]', 400],
      ['a batch of calls', `[${Array(100).fill(whole).join(',')}]`, 400],
      ['a text', JSON.stringify(whole), 400],
      ['a body of deep arrays', nested(100000), 400],
      [
        'deep arguments',
        rpc({ params: { ...params, arguments: { customer: 'none', deep: 0 } } }).replace(
          '"deep":0',
          `"deep":${nested(5000)}`
        ),
        400
      ],
      ['a member that stands there twice', whole.replace('{', '{"id":2,'), 400],
      [
        'text that is no UTF-8',
        Buffer.concat([Buffer.from(whole.slice(0, -1) + ',"x":"'), Buffer.from([0xc3, 0x28, 0x22, 0x7d])]),
        400
      ],
      ['half of a character', whole.replace('"none"', '"\\ud800"'), 400],
      ['a NUL', whole.replace('tools/call', 'tools/call\0'), 400],
      ['another jsonrpc', whole.replace('"2.0"', '"1.0"'), 400],
      ['an id that is an object', rpc({ id: {}, params }), 400],
      ['an id that is no whole number', rpc({ id: 1.5, params }), 400],
      ['an id of many bytes', rpc({ id: 'i'.repeat(100000), params }), 400],
      ['a number without end as id', whole.replace('"id":1', `"id":${'9'.repeat(400)}`), 400],
      ['a method that is a number', rpc({ method: 7, params }), 400],
      ['a method of many bytes', rpc({ method: 'm'.repeat(100000), params }), 400],
      ['params that are an array', rpc({ params: [params] }), 400],
      ['_meta that is a text', rpc({ params: { ...params, _meta: 'x' } }), 400],
      ['a progress token that is an object', rpc({ params: { ...params, _meta: { progressToken: {} } } }), 400],
      ['a body that is too large', rpc({ params: { ...params, arguments: { customer: huge, more: huge } } }), 413]
    ]
    for (const [what, body, status] of cases) {
      const answer = await mcp(body)
      expectEqual(answer?.status, status, `the status of ${what}: ${answer?.text}`)
      expect(status !== 400 || typeof answer.json?.error?.code === 'number', `the code of ${what}`, answer)
    }
    for (const [what, body] of [
      ['arguments that are an array', rpc({ params: { ...params, arguments: [1] } })],
      ['a name that is an object', rpc({ params: { ...params, name: {} } })],
      ['a name of many bytes', rpc({ params: { ...params, name: huge } })],
      ['a method that is not known', rpc({ method: 'tools/destroy', params })]
    ]) {
      const answer = await mcp(body)
      expect([-32601, -32602].includes(answer?.json?.error?.code), `an error for ${what}`, answer)
    }
    for (const [what, more] of [
      ['arguments beyond the bound', { arguments: { customer: huge } }],
      ['a run of many bytes', { _meta: { 'sagad/run': huge } }],
      ['a run with a line end', { _meta: { 'sagad/run': 'a\nb' } }],
      ['a run that is an object', { _meta: { 'sagad/run': {} } }],
      ['a step of the service itself', { _meta: { 'sagad/run': 'none', 'sagad/step': '~undo' } }],
      ['an emission of many bytes', { _meta: { 'sagad/run': 'none', 'sagad/emission': huge } }]
    ]) {
      const answer = await mcp(rpc({ params: { ...params, ...more } }))
      expectEqual(
        [answer?.status, answer?.json?.result?.isError],
        [200, true],
        `a refusal of ${what}: ${answer?.text.slice(0, 300)}`
      )
      expect(answer.text.length < 8192, `a refusal of ${what} does not repeat it`, answer.text.length)
    }
    for (const note of [
      message('notifications/cancelled', { requestId: 1 }, null).replace('"id":null,', ''),
      JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} })
    ])
      expectEqual((await mcp(note))?.status, 202, 'a notification, an answer to nothing')
    await worksOn()
    expectEqual(ledgerOf('none').length, 0, 'charges')
  })

  await promise('a request whose length lies does nothing, and nothing of it is read as a second request', async () => {
    const body = charge('lie')
    const hidden = request('/mcp', charge('hidden'), as('mallory'))
    const length = (said, more = {}) => request('/mcp', body, { ...as('mallory'), 'Content-Length': said, ...more })
    const chunked = (chunks) =>
      Buffer.concat([
        request('/mcp', '', { ...as('mallory'), 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }),
        Buffer.from(chunks)
      ])
    const size = body.length.toString(16)
    const cases = [
      ['a shorter length', length(body.length - 1)],
      ['a longer length', length(body.length + 1)],
      ['no length', length(undefined)],
      ['a length below zero', length(-1)],
      ['a length with a sign', length(`+${body.length}`)],
      ['a length in hexadecimal', length(`0x${size}`)],
      ['a length beyond all numbers', length('9'.repeat(40))],
      ['two lengths', length([body.length, 0])],
      ['two lengths in one', length(`${body.length}, ${body.length}`)],
      ['a length and chunks', length(body.length, { 'Transfer-Encoding': 'chunked' })],
      ['chunks that are not the last encoding', length(undefined, { 'Transfer-Encoding': 'chunked, identity' })],
      ['a chunk that says less', chunked(`1\r\n${body}\r\n0\r\n\r\n`)],
      ['a chunk that says more', chunked(`${(body.length + 9).toString(16)}\r\n${body}\r\n0\r\n\r\n`)],
      ['a chunk without a size', chunked(`\r\n${body}\r\n0\r\n\r\n`)],
      ['a chunk of a size that wraps', chunked(`1${'0'.repeat(15)}${size}\r\n${body}\r\n0\r\n\r\n`)],
      ['chunks that do not end', chunked(`${size}\r\n${body}\r\n`)],
      ['a body that stands beside a second request', Buffer.concat([length(0), hidden.subarray(0, 40)])],
      ['a header in two lines', length(body.length, { 'X-One': 'a\r\n b' })],
      ['a blank before the colon', length(body.length, { 'X-One ': 'a' })]
    ]
    // Nothing more comes after these, so only the deadline of a body ends them.
    const unfinished = ['a longer length', 'a chunk that says more', 'chunks that do not end']
    const clients = await Promise.all(
      cases.map(async ([what, bytes]) => {
        const client = new RawClient(world.port, hostileAddress)
        await client.connected()
        client.send(bytes)
        if (unfinished.includes(what)) client.socket.end()
        else expect(((await client.answer())?.status ?? 400) >= 400, `a refusal, or the end: ${what}`)
        return client
      })
    )
    await worksOn()
    for (const [i, client] of clients.entries()) {
      expect(!/^HTTP\/1.1 2/m.test(client.bytes), `no second answer: ${cases[i][0]}`, client.bytes.toString())
      client.leave()
    }
    await worksOn()
    expectEqual([ledgerOf('lie').length, ledgerOf('hidden').length], [0, 0], 'charges')
  })

  await promise('a content type that is none is no way around the guard, and never an effect twice', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'x'.repeat(2000),
      undefined
    ]) {
      const answer = await mcp(charge('typed'), { 'Content-Type': type })
      expect([200, 400, 415].includes(answer?.status), `an answer to ${String(type).slice(0, 40)}`, answer)
      const page = await mcp(charge('page'), { 'Content-Type': type, Origin: 'http://rebound.example' })
      expectEqual(page?.status, 403, 'the same from a web page')
    }
    const zipped = await mcp(Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), { 'Content-Encoding': 'gzip' })
    expectEqual(zipped?.status, 400, 'a body that is compressed')
    expect(ledgerOf('typed').length <= 1, 'at most one charge', ledgerOf('typed').length)
    expectEqual(ledgerOf('page').length, 0, 'charges of the page')
  })

  await promise('heads and bodies that do not come, and answers that nobody reads, hold up nobody else', async () => {
    const before = descriptors()
    const slow = []
    const body = call('look', { text: 'y'.repeat(60000) })
    const kinds = [
      () => request('/mcp', body, as('mallory')).subarray(0, 20),
      () => request('/mcp', body, as('mallory')).subarray(0, 1000),
      () => request('/mcp', '', { ...as('mallory'), 'Content-Length': 1000000 }),
      () => Buffer.alloc(0)
    ]
    for (let i = 0; i < perAddress / 2; i++) {
      const client = new RawClient(world.port, slowAddress)
      slow.push(client.send(kinds[i % kinds.length]()))
    }
    for (let i = 0; i < 8; i++) {
      const client = new RawClient(world.port, slowAddress)
      client.socket.pause()
      for (let k = 0; k < (quick ? 8 : 100); k++) client.send(request('/mcp', body, as('mallory')))
      slow.push(client)
    }
    await Promise.all(slow.map((client) => client.connected()))
    await worksOn()
    expect(descriptors() - before <= perAddress + 64, 'descriptors', descriptors() - before)
    slow.forEach((client) => client.leave())
  })

  await promise(
    `${streamsTried} streams are tried, as many are held as may be, and an honest client goes on`,
    async () => {
      const streams = []
      let held = 0
      const accept = { ...as('mallory'), Accept: 'application/json, text/event-stream' }
      for (let i = 0; i < streamsTried; i++) {
        const client = new RawClient(world.port, streamsAddress)
        const nap = call('nap', {}, { 'sagad/run': 'streams', 'sagad/step': `s${i % 20}`, progressToken: i })
        client.send(request('/mcp', nap, accept))
        streams.push(
          client.begun().then((begun) => (begun && /^HTTP\/1.1 200/.test(client.bytes) ? held++ : undefined))
        )
        streams[i].client = client
        if (i % 50 === 49) await Promise.all(streams.slice(i - 49))
      }
      await Promise.all(streams)
      expect(held > 20 && held <= perAddress, 'streams that are held', held)
      await worksOn()
      expect(descriptors() < connectionsMax * 1.2 + 64, 'descriptors', descriptors())
      streams.forEach(({ client }) => client.leave())
      expect((await mcp(message('ping')))?.status === 200, 'other addresses have their places')
    }
  )

  const result = (answer) => answer?.json?.result
  const open = async (token, owner) =>
    result(await mcp(call('saga_open', { name: owner }, { 'sagad/run': owner }), {}, token)).structuredContent.saga

  await promise('what belongs to others is not there for who guesses its name', async () => {
    const handle = await open('honest', 'victim')
    const paid = await mcp(
      call('charge', { amount: 5, customer: 'victim', saga: handle }, { 'sagad/run': 'victim' }),
      {},
      'honest'
    )
    expectEqual(result(paid)?.isError, false, `the charge of the victim: ${paid?.text}`)
    const key = result(paid)._meta['sagad/operation']
    const tries = (saga, operation) => [
      call('saga_status', { saga }),
      call('saga_complete', { saga }),
      call('saga_abort', { saga, note: 'mine' }),
      call('charge', { amount: 5, customer: 'stolen', saga }),
      call('operation_status', { key: operation })
    ]
    const of = (text) => ({ ...result(text)?.structuredContent, instance: undefined })
    const bare = handle.split('.')[0]
    const changed = (id) => id.slice(0, 20) + (id[20] === '0' ? '1' : '0') + id.slice(21)
    const missing = { saga: changed(bare), key: changed(key) }
    for (const [i, body] of tries(bare, key).entries()) {
      const theirs = await mcp(body, {}, 'stranger')
      const none = await mcp(tries(missing.saga, missing.key)[i], {}, 'stranger')
      expectEqual([theirs?.status, result(theirs)?.isError], [200, true], `refused: ${theirs?.text}`)
      const text = (answer) =>
        JSON.stringify(of(answer))
          .replaceAll(bare, 'ID')
          .replaceAll(missing.saga, 'ID')
          .replaceAll(key, 'KEY')
          .replaceAll(missing.key, 'KEY')
      expectEqual(text(theirs), text(none), `the same as for what is not there: ${body}`)
    }
    for (const body of tries(handle, key).slice(0, 4)) {
      const withRun = JSON.parse(body)
      withRun.params._meta = { 'sagad/run': 'mallory' }
      const refused = await mcp(JSON.stringify(withRun))
      expectEqual(result(refused)?.isError, true, `a handle of another run: ${refused?.text}`)
    }
    for (let i = 0; i < 16; i++) {
      const forged = handle.slice(0, -16) + createHash('sha256').update(String(i)).digest('hex').slice(0, 16)
      const refused = await mcp(call('saga_abort', { saga: forged, note: 'x' }, { 'sagad/run': 'victim-2' }))
      expectEqual(result(refused)?.isError, true, 'a mark that is guessed')
    }
    // The same words in another namespace are another call.
    const same = await mcp(charge('victim'), { 'Mcp-Session-Id': 'victim' }, 'stranger')
    expectEqual(result(same)?._meta['sagad/replayed'], false, 'not what the victim got')
    const status = await mcp(call('saga_status', { saga: handle }, { 'sagad/run': 'victim' }), {}, 'honest')
    expectEqual(result(status)?.structuredContent.status, 'running', 'the saga of the victim')
    expectEqual([ledgerOf('victim').length, ledgerOf('stolen').length], [2, 0], 'charges')
  })

  await promise(
    'a grant that differs in any digit is none, and a good one reaches nothing beside its run',
    async () => {
      const made = await world.api(
        'POST',
        '/v1/grants',
        { run: 'granted', tools: ['charge'] },
        { headers: as('honest') }
      )
      expectEqual(made.status, 201, 'a grant')
      const { token, url } = made.json
      const first = await mcp(charge('granted', {}), { Authorization: undefined }, 'none', url)
      expectEqual(result(first)?.isError, false, `the grant itself: ${first?.text}`)
      for (let at = token.length - 96; at < token.length; at += 7) {
        const other = token[at] === '0' ? '1' : '0'
        const forged = token.slice(0, at) + other + token.slice(at + 1)
        expectEqual((await mcp(charge('forged', {}), {}, forged))?.status, 401, `the digit ${at}`)
        const path = await mcp(charge('forged', {}), { Authorization: undefined }, 'none', `/mcp/g/${forged}`)
        expectEqual(path?.status, 401, `the digit ${at} in the path`)
      }
      const more = [
        [{ 'sagad/run': 'victim' }, {}],
        [{}, { 'Saga-Run': 'victim' }]
      ]
      for (const [meta, headers] of more)
        expectEqual(result(await mcp(charge('forged', meta), headers, token))?.isError, true, 'another run')
      for (const path of ['/v1/sagas', '/v1/grants', '/v1/operations', '/metrics'])
        expectEqual((await mcp('{}', {}, token, path))?.status >= 400, true, path)
      expectEqual([ledgerOf('granted').length, ledgerOf('forged').length], [1, 0], 'charges')
    }
  )

  await promise(
    'one JSON-RPC id on many connections gives each its own answer, and cancels nothing of others',
    async () => {
      const clients = Array.from({ length: 16 }, (_, i) => mcp(charge(`same-${i}`, undefined, 7)))
      const cancels = Array.from({ length: 16 }, () =>
        mcp(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }))
      )
      const answers = await Promise.all(clients)
      for (const cancelled of await Promise.all(cancels)) expectEqual(cancelled?.status, 202, 'a notification')
      const operations = new Set()
      for (const [i, answer] of answers.entries()) {
        expectEqual([answer?.json?.id, result(answer)?.isError], [7, false], `the answer ${i}: ${answer?.text}`)
        operations.add(result(answer)._meta['sagad/operation'])
      }
      expectEqual(operations.size, 16, 'operations')
      answers.forEach((_, i) => expectEqual(ledgerOf(`same-${i}`).length, 1, 'charges'))
      // An emission names one call: other arguments under it are refused.
      const emission = (amount) =>
        mcp(call('charge', { amount, customer: 'emission' }, { 'sagad/run': 'emission', 'sagad/emission': 'one' }))
      const both = await Promise.all([emission(1), emission(2), emission(1), emission(3)])
      expectEqual(both.filter((answer) => result(answer)?.isError === false).length >= 1, true, 'one is done')
      expectEqual(ledgerOf('emission').length, 1, 'charges of one emission')
    }
  )

  await promise('a call that is cut off at each point, and made again, has one effect', async () => {
    await world.fault({ route: 'charges', mode: 'slow', ms: 300, match: '"cut-' })
    const bytes = (customer, again = 0) =>
      request('/mcp', charge(customer, { 'sagad/run': customer, progressToken: 1 }, again), {
        ...as('mallory'),
        Accept: 'text/event-stream, application/json'
      })
    const length = bytes('cut-00').length
    const points = [0, 1, 20, 60, length - 60, length - 1, length, 'begun', 'reset', 'half']
    await Promise.all(
      points.map(async (point, i) => {
        const customer = `cut-${String(i).padStart(2, '0')}`
        const client = new RawClient(world.port, hostileAddress)
        await client.connected()
        client.send(typeof point === 'number' ? bytes(customer).subarray(0, point) : bytes(customer))
        if (point === 'begun') await client.begun()
        if (point === 'half') client.socket.end()
        else if (point === 'reset') client.socket.resetAndDestroy()
        else client.leave()
        for (let again = 1; ; again++) {
          const answer = await ask(world.port, bytes(customer, again), hostileAddress)
          const data = answer?.text.split('\n').filter((line) => line.startsWith('data: '))
          const last = answer?.json ?? (data?.length ? JSON.parse(data.at(-1).slice(6)) : undefined)
          if (last?.result?.isError === false) break
          expect(
            last?.result?.structuredContent?.retryable || answer?.status === 503 || !answer,
            `call again: ${point}`,
            answer
          )
          await sleep(20)
        }
        client.leave()
      })
    )
    points.forEach((point, i) =>
      expectEqual(ledgerOf(`cut-${String(i).padStart(2, '0')}`).length, 1, `charges of the call cut off at ${point}`)
    )
  })

  await promise(
    'the bytes of a call sent again, at once and one behind the other, get the bytes of its answer',
    async () => {
      const bytes = request('/mcp', charge('replay'), as('honest'))
      const copies = await Promise.all(Array.from({ length: 20 }, () => ask(world.port, bytes, hostileAddress)))
      const line = new RawClient(world.port, hostileAddress)
      for (let i = 0; i < 20; i++) line.send(bytes)
      for (let i = 0; i < 20; i++) copies.push(await line.answer())
      line.leave()
      const done = copies.filter((answer) => result(answer)?.isError === false)
      expect(done.length > 0, 'some are done', copies[0])
      for (const answer of done) expectEqual(result(answer).content, result(done[0]).content, 'the same bytes')
      for (const answer of copies) expect([200, 503].includes(answer?.status), 'an answer to each', answer)
      expectEqual(ledgerOf('replay').length, 1, 'charges')
    }
  )

  await promise('each honest wish had one effect, and what was taken was given back', async () => {
    await worksOn()
    honest.stop = true
    await working
    for (let n = 0; n < honest.wishes; n++) expectEqual(ledgerOf(`honest-${n}`).length, 1, `charges of the wish ${n}`)
    const grown = Math.round((most - memoryBefore) / 1048576)
    expect(grown * 1048576 < memoryMax, 'memory', grown)
    // A client that leaves in the middle of a request may keep its place until the deadline of a body, 30 s.
    expect(connections() < connectionsMax, 'connections', connections())
    while (!quick && connections() > 0) await sleep(20)
    expect(descriptors() < descriptorsBefore + connectionsMax, 'descriptors', descriptors())
    console.log(`# ${honest.wishes} honest wishes in ${honest.asked} requests, ${grown} MiB more at most`)
    const keys = world
      .ledger()
      .filter((line) => line.effect === 1 && line.kind === 'charge')
      .map((line) => line.key)
    expectEqual(new Set(keys).size, keys.length, 'keys and effects')
  })

  await leaves(world, 60)
})
