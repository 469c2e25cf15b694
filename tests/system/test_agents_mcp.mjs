// sagad as a server of the Model Context Protocol, with the client library that others wrote and the real shop: what
// the shop's ledger says after repeats and kills.
import { spawnSync } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { World, expect, expectEqual, leaves, promise, run } from '../lib/world.mjs'

const library = join(process.env.NODE_MODULES ?? '', '@modelcontextprotocol/sdk/dist/esm/client')
if (!existsSync(library)) {
  console.log('skipped: @modelcontextprotocol/sdk is not installed (tools/test does it)')
  process.exit(77)
}
const { Client } = await import(join(library, 'index.js'))
const { StdioClientTransport } = await import(join(library, 'stdio.js'))
const { StreamableHTTPClientTransport } = await import(join(library, 'streamableHttp.js'))
const laterLibrary = join(process.env.NODE_MODULES, '@modelcontextprotocol/client/dist')
const Later = await import(join(laterLibrary, 'index.mjs'))
const { StdioClientTransport: LaterStdio } = await import(join(laterLibrary, 'stdio.mjs'))

function definitions(shop) {
  const retry = { max_attempts: 3, initial: '50ms', factor: 2, max: '200ms' }
  return {
    tools: [
      {
        name: 'cards.charge',
        description: 'Charges a card.',
        http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
        input: {
          type: 'object',
          properties: { amount: { type: 'integer' }, customer: { type: 'string' } },
          required: ['amount', 'customer'],
          additionalProperties: false
        },
        result: { id: '${ .response.body.id }' },
        effect: 'keyed',
        key: { window: '1h' },
        timeout: '3s',
        retry,
        expose: { title: 'Charge a card', scope: true, open_world: false },
        compensate: { tool: 'cards.refund', with: { charge_id: '${ .result.id }', customer: '${ .args.customer }' } }
      },
      {
        name: 'cards.refund',
        http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' },
        effect: 'keyed',
        key: { window: '1h' },
        timeout: '3s',
        retry
      },
      {
        name: 'price',
        http: { url: `${shop}/prices/\${ .args.sku }` },
        result: '${ .response.body }',
        effect: 'read',
        timeout: '3s',
        retry
      }
    ],
    sagas: [
      {
        name: 'order',
        description: 'Charges a customer.',
        input: { type: 'object', properties: { customer: { type: 'string' } }, required: ['customer'] },
        steps: [{ id: 'pay', call: 'cards.charge', with: { amount: 5, customer: '${ .input.customer }' } }],
        output: { id: '${ .steps.pay.result.id }' },
        expose: true
      }
    ]
  }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))

  const url = () => new URL(`http://127.0.0.1:${world.port}/mcp`)
  // A host, as the library makes one: a new connection, and ids that begin anew.
  const host = async (headers = {}) => {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(url(), { requestInit: { headers } }))
    return client
  }
  const call = (client, name, args, _meta) => client.callTool({ name, arguments: args, _meta })
  const charges = (customer) =>
    world.ledger().filter((line) => line.effect === 1 && line.kind === 'charge' && line.body?.customer === customer)
  const charge = (customer) => ({ amount: 5, customer })

  await promise('the library finds the tools, with what their definitions say', async () => {
    const client = await host()
    const { tools } = await client.listTools()
    expectEqual(
      tools.map((tool) => tool.name),
      [
        'operation_status',
        'saga_abort',
        'saga_complete',
        'saga_open',
        'saga_status',
        'cards_charge',
        'price',
        'start_order'
      ],
      'tools'
    )
    const [charge, price] = tools.slice(5)
    expectEqual(charge.annotations.openWorldHint, false, 'openWorldHint')
    expectEqual(charge.title, 'Charge a card', 'title')
    expectEqual(Object.keys(charge.inputSchema.properties), ['amount', 'customer', 'saga', 'scope'], 'arguments')
    expectEqual(charge.inputSchema.additionalProperties, false, 'no others')
    expectEqual(price.annotations.readOnlyHint, true, 'readOnlyHint')
    await client.ping()
    await client.close()
  })

  await promise('a host that forgets, connects anew and calls again has charged once', async () => {
    const results = []
    for (let i = 0; i < 4; i++) {
      const client = await host()
      results.push(
        await call(client, 'cards_charge', charge('anew'), {
          'vscode.conversationId': 'chat-anew',
          'vscode.requestId': `request-${i}`
        })
      )
      await client.close()
    }
    for (const result of results) {
      expect(!result.isError, 'is no refusal', result)
      expectEqual(result.structuredContent, results[0].structuredContent, 'the same result')
      expectEqual(JSON.parse(result.content[0].text), result.structuredContent, 'the same as text')
    }
    expectEqual(results[0]._meta['sagad/replayed'], false, 'the first')
    expectEqual(results[3]._meta['sagad/replayed'], true, 'the last')
    expectEqual(results[3]._meta['sagad/operation'], results[0]._meta['sagad/operation'], 'one operation')
    expectEqual(charges('anew').length, 1, 'charges')
  })

  // The library of revision 2026-07-28 does no handshake, and says in headers what its messages say.
  for (const transport of ['http', 'stdio']) {
    await promise(`the library of the later revision, by ${transport}: tools, a repeat, a refusal`, async () => {
      const later = async () => {
        const client = new Later.Client(
          { name: 'test', version: '1' },
          { versionNegotiation: { mode: { pin: '2026-07-28' } } }
        )
        await client.connect(
          transport === 'http'
            ? new Later.StreamableHTTPClientTransport(url())
            : new LaterStdio({ command: world.sagadPath, args: ['mcp', '--server', `http://127.0.0.1:${world.port}`] })
        )
        return client
      }
      const results = []
      for (let i = 0; i < 2; i++) {
        const client = await later()
        expectEqual(client.getNegotiatedProtocolVersion(), '2026-07-28', 'revision')
        const { tools } = await client.listTools()
        expect(tools.find(({ name }) => name === 'cards_charge')?.outputSchema === undefined, 'tools', tools)
        results.push(
          await call(client, 'cards_charge', charge(`later-${transport}`), { threadId: `later-${transport}` })
        )
        await client.close()
      }
      expectEqual(results[1].structuredContent, results[0].structuredContent, 'the same result')
      expectEqual(results[1]._meta['sagad/replayed'], true, 'replayed')
      expectEqual(charges(`later-${transport}`).length, 1, 'charges')
      const client = await later()
      const refused = await call(
        client,
        'cards_charge',
        { amount: 6, customer: `later-${transport}` },
        { threadId: `later-${transport}` }
      )
      expect(refused.isError && /arguments-differ/.test(refused.structuredContent.type), 'a refusal', refused)
      await client.close()
    })
  }

  await promise('another scope, which the model names, is another charge', async () => {
    const client = await host({ 'Saga-Run': 'chat-scopes' })
    await call(client, 'cards_charge', { ...charge('scopes'), scope: 'kettle' })
    await call(client, 'cards_charge', { ...charge('scopes'), scope: 'lamp' })
    await call(client, 'cards_charge', { ...charge('scopes'), scope: 'lamp' })
    expectEqual(charges('scopes').length, 2, 'charges')
    expect(!('scope' in charges('scopes')[0].body), 'the scope is no argument of the tool', charges('scopes')[0])
    await client.close()
  })

  await promise('another amount is refused, and the refusal says where', async () => {
    const client = await host({ 'Saga-Run': 'chat-differs' })
    await call(client, 'cards_charge', charge('differs'))
    const refused = await call(client, 'cards_charge', { ...charge('differs'), amount: 6 })
    expectEqual(refused.isError, true, 'isError')
    expectEqual(refused.structuredContent.type, 'urn:sagad:problem:arguments-differ', 'type')
    expectEqual(refused.structuredContent.pointers, ['/amount'], 'pointers')
    expectEqual(refused.content[0].text, refused.structuredContent.detail, 'text')
    expectEqual(charges('differs').length, 1, 'charges')
    await client.close()
  })

  await promise('arguments that do not fit are a result that a model can mend', async () => {
    const client = await host({ 'Saga-Run': 'chat-unfit' })
    const refused = await call(client, 'cards_charge', { amount: 'five', customer: 'unfit' })
    expectEqual(refused.structuredContent.errors[0].pointer, '/args/amount', 'pointer')
    expectEqual(charges('unfit').length, 0, 'charges')
    await client.close()
  })

  await promise('a call without a run is made only when it reads', async () => {
    const client = await host()
    const refused = await call(client, 'cards_charge', charge('nobody'))
    expectEqual(refused.isError, true, 'isError')
    expectEqual(charges('nobody').length, 0, 'charges')
    const read = await call(client, 'price', { sku: 'kettle' })
    expect(!read.isError && read.structuredContent, 'the price', read)
    await client.close()
  })

  const refunds = (customer) =>
    world.ledger().filter((line) => line.effect === 1 && line.kind === 'refund' && line.body?.customer === customer)

  await promise('a model opens a saga, calls in it twice over and aborts: both charges are undone', async () => {
    const client = await host()
    const opened = await call(client, 'saga_open', { name: 'trip' })
    const saga = opened.structuredContent.saga
    for (const scope of ['flight', 'hotel', 'hotel'])
      await call(client, 'cards_charge', { ...charge('trip'), scope, saga })
    expectEqual(charges('trip').length, 2, 'charges')
    await client.close()
    const later = await host()
    const status = await call(later, 'saga_status', { saga })
    expectEqual(
      status.structuredContent.steps.map((step) => step.status),
      ['completed', 'completed'],
      'steps'
    )
    const aborted = await call(later, 'saga_abort', { saga, note: 'no time' })
    expect(!aborted.isError, 'is no refusal', aborted)
    await world.until(saga, ['compensated'])
    expectEqual(refunds('trip').length, 2, 'refunds')
    await later.close()
  })

  await promise('a definition is started once in its run, and its end is the result', async () => {
    const client = await host({ 'Saga-Run': 'chat-order' })
    const first = await call(client, 'start_order', { customer: 'order' })
    expectEqual(first.structuredContent.status, 'completed', 'status')
    const again = await call(client, 'start_order', { customer: 'order' })
    expectEqual(again.content, first.content, 'the same')
    expectEqual(charges('order').length, 1, 'charges')
    await client.close()
  })

  await promise('two names that clients could not tell apart are refused when the second is registered', async () => {
    const second = { name: 'cards_charge', builtin: { do: 'echo' }, effect: 'read' }
    const refused = await world.api('POST', '/v1/definitions', { tools: [second] })
    expectEqual(refused.status, 422, 'status')
    expectEqual(refused.json.errors[0].pointer, '/tools/0/name', 'pointer')
    expect(/cards\.charge/.test(refused.json.errors[0].detail), 'the other one is named', refused.json)
    await world.define({ tools: [{ ...second, expose: false }] })
  })

  await promise('a kill between two calls changes nothing for the host', async () => {
    const client = await host({ 'Saga-Run': 'chat-kill' })
    const first = await call(client, 'cards_charge', charge('kill'))
    await world.restart()
    const again = await call(client, 'cards_charge', charge('kill'))
    expectEqual(again.content, first.content, 'the same result')
    expectEqual(again._meta['sagad/replayed'], true, 'replayed')
    expectEqual(charges('kill').length, 1, 'charges')
    await client.close()
  })

  await promise('a trace of the caller arrives at the tool, and makes no other call of it', async () => {
    const seen = []
    const receiver = createServer((request, response) => {
      seen.push(request.headers)
      response.setHeader('content-type', 'application/json')
      response.end('{}')
    })
    await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    await world.define({
      tools: [
        {
          name: 'traced',
          http: { method: 'POST', url: `http://127.0.0.1:${receiver.address().port}/`, body: {} },
          effect: 'keyed',
          key: { header: 'Idempotency-Key', window: '1h' },
          terminal: true
        },
        {
          name: 'printed',
          exec: { argv: ['/bin/sh', '-c', 'printf \'{"is":"%s %s"}\' "$TRACEPARENT" "$TRACESTATE"'] },
          effect: 'read'
        }
      ]
    })
    const traceparent = (digit) => `00-${'ab'.repeat(16)}-${digit.repeat(16)}-01`
    const client = await host({ 'Saga-Run': 'chat-trace', traceparent: traceparent('9') })
    const trace = { traceparent: traceparent('1'), tracestate: 'a=b' }
    const first = await call(client, 'traced', {}, { ...trace, 'sagad/turn': 1 })
    const again = await call(client, 'traced', {}, { traceparent: traceparent('2'), 'sagad/turn': 2 })
    expectEqual(again._meta['sagad/operation'], first._meta['sagad/operation'], 'one operation')
    expectEqual(again._meta['sagad/replayed'], true, 'replayed')
    expectEqual(seen.length, 1, 'calls')
    expectEqual([seen[0].traceparent, seen[0].tracestate], [traceparent('1'), 'a=b'], 'of _meta')
    await call(client, 'traced', { n: 1 }, { 'sagad/step': 'header', 'sagad/turn': 3 })
    expectEqual([seen[1].traceparent, seen[1].tracestate], [traceparent('9'), undefined], 'of the header')
    await call(client, 'traced', { n: 2 }, { 'sagad/step': 'wrong', 'sagad/turn': 4, traceparent: 'x\r\nevil: 1' })
    expectEqual([seen[2].traceparent, seen[2].evil], [undefined, undefined], 'of what is none')
    const key = seen.map((headers) => headers['idempotency-key'])
    expectEqual(new Set(key).size, 3, 'keys of three operations')
    const printed = await call(client, 'printed', {}, { traceparent: traceparent('3'), tracestate: 'c=d' })
    expectEqual(printed.structuredContent, { is: `${traceparent('3')} c=d` }, 'of a program')
    const api = await world.api(
      'POST',
      '/v1/operations',
      { run: 'trace-api', tool: 'traced', args: {} },
      { headers: { traceparent: traceparent('4') } }
    )
    expectEqual([api.status, seen[3].traceparent], [200, traceparent('4')], 'of a request to the API')
    await client.close()
    receiver.close()
  })

  // `sagad mcp`, as a host starts it.
  const bridged = async (args = []) => {
    const client = new Client({ name: 'test', version: '1' })
    const server = ['mcp', '--server', `http://127.0.0.1:${world.port}`, ...args]
    await client.connect(new StdioClientTransport({ command: process.env.SAGAD, args: server, stderr: 'ignore' }))
    return client
  }

  await promise('a host that only starts programs has the same tools, and its repeats are done once', async () => {
    for (let i = 0; i < 2; i++) {
      const client = await bridged()
      expectEqual((await client.listTools()).tools.length, 10, 'tools')
      const result = await call(client, 'cards_charge', charge('stdio'), { 'sagad/run': 'chat-stdio' })
      expectEqual(result._meta['sagad/replayed'], i === 1, 'replayed')
      const both = await Promise.all([client.ping(), call(client, 'price', { sku: 'kettle' })])
      expect(!both[1].isError, 'the price', both[1])
      await client.close()
    }
    expectEqual(charges('stdio').length, 1, 'charges')
  })

  const lines = (input, args = []) =>
    spawnSync(process.env.SAGAD, ['mcp', '--server', `http://127.0.0.1:${world.port}`, ...args], {
      input,
      encoding: 'utf8',
      timeout: 60000
    })

  await promise('the bridge says in headers what a message of the later revision says', () => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {}
    }
    const message = (id, params, method = 'tools/call') => JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n'
    const declares = {
      ..._meta,
      'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    }
    const ran = lines(
      message(1, { name: 'price', arguments: { sku: 'kettle' }, _meta }) +
        message(2, { name: 'prïce', _meta }) +
        message(3, { taskId: 'of nobody', _meta: declares }, 'tasks/get') +
        message(4, { uri: 'test://a', _meta }, 'resources/read')
    )
    const answers = ran.stdout.trim().split('\n').map(JSON.parse)
    expectEqual(ran.status, 0, 'exit code')
    expectEqual(answers.find((one) => one.id === 1).result.resultType, 'complete', 'the first')
    expectEqual(answers.find((one) => one.id === 2).error.code, -32602, 'the second: there is no such tool')
    expectEqual(answers.find((one) => one.id === 3).error.code, -32602, 'the third: there is no such task')
    expectEqual(answers.find((one) => one.id === 4).error.code, -32602, 'the fourth: there are no resources')
  })

  await promise('the bridge passes on what is no message, and says when no service answers', () => {
    expectEqual(JSON.parse(lines('{"jsonrpc"\n').stdout).error.code, -32700, 'no JSON')
    const ping = '{"jsonrpc":"2.0","id":"a","method":"ping"}\n'
    const away = lines(ping, ['--server', 'http://127.0.0.1:9'])
    expect(/make the same call again/.test(JSON.parse(away.stdout).error.message), 'no service', away.stdout)
    expectEqual(JSON.parse(away.stdout).id, 'a', 'the id')
    const large = { jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 'x'.repeat(1 << 21) } }
    const refused = JSON.parse(lines(JSON.stringify(large)).stdout)
    expect(refused.id === 'b' && /larger/.test(refused.error.message), 'too large', refused)
    expectEqual(lines(ping, ['--server', 'nowhere']).status, 2, 'a wrong address')
    expectEqual(lines('').status, 0, 'nothing')
    const file = openSync(import.meta.filename ?? process.argv[1])
    const ran = spawnSync(process.env.SAGAD, ['mcp'], { stdio: [file, 'pipe', 'pipe'], encoding: 'utf8' })
    expect(ran.status === 1 && /no pipe/.test(ran.stderr), 'a file', ran.stderr)
  })

  await promise('a tool is listed whole, even where names grow when they are written', async () => {
    const name = '\b'.repeat(30000)
    const wide = { name: 'wide', builtin: { do: 'echo' }, effect: 'read', input: { properties: { [name]: {} } } }
    await world.define({ tools: [wide] })
    const client = await host()
    const { tools } = await client.listTools()
    const listed = tools.find((tool) => tool.name === 'wide')
    expect(name in listed.inputSchema.properties, 'the argument', Object.keys(tools.at(-1).inputSchema.properties))
    await client.close()
  })

  await leaves(world)
})
