// Grants with two engines, the real database and the client library that others wrote: what a host hands to an agent
// is good for one run, on every engine, until somebody takes it back.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const library = join(process.env.NODE_MODULES ?? '', '@modelcontextprotocol/sdk/dist/esm/client')
if (!existsSync(library)) {
  console.log('skipped: @modelcontextprotocol/sdk is not installed (tools/test does it)')
  process.exit(77)
}
const { Client } = await import(join(library, 'index.js'))
const { StdioClientTransport } = await import(join(library, 'stdio.js'))
const { StreamableHTTPClientTransport } = await import(join(library, 'streamableHttp.js'))

const definitions = (shop) => ({
  tools: [
    {
      name: 'cards.charge',
      description: 'Charges a card.',
      http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
      result: { id: '${ .response.body.id }' },
      effect: 'keyed',
      key: { window: '1h' },
      timeout: '3s',
      terminal: true
    },
    { name: 'nap', builtin: { do: 'sleep', for: '20s' }, effect: 'idempotent', timeout: '60s', terminal: true },
    { name: 'look', builtin: { do: 'echo' }, effect: 'read' }
  ]
})

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  const tokens = join(world.directory, 'tokens.json')
  const names = { host: 'agent', guest: 'agent', ops: 'operator', root: 'admin' }
  const row = (name) => ({
    name,
    sha256: createHash('sha256').update(name).digest('hex'),
    role: names[name],
    namespace: 'default'
  })
  const writeTokens = (of) => writeFileSync(tokens, JSON.stringify({ tokens: of.map(row) }), { mode: 0o600 })
  writeTokens(Object.keys(names))
  await world.startEngines(2, ['--tokens', tokens])
  const as = (token) => ({ headers: { authorization: `Bearer ${token}` } })
  const at = async (engine, method, path, body, token) => {
    world.port = engine.port // api() reads it before its first await
    return world.calm(() => ((world.port = engine.port), world.api(method, path, body, token ? as(token) : {})))
  }
  const [first, second] = world.engines
  expectEqual(
    (await at(first, 'POST', '/v1/definitions', definitions(`http://127.0.0.1:${world.shopPort}`), 'root')).status,
    200,
    'definitions'
  )
  for (const engine of world.engines)
    while ((await at(engine, 'GET', '/v1/tools/look', undefined, 'root')).status !== 200) await sleep(50)

  const grant = async (body, engine = first) => {
    const made = await at(engine, 'POST', '/v1/grants', body, 'host')
    expectEqual(made.status, 201, `a grant: ${made.text}`)
    return made.json
  }
  const host = async (engine, address, options = {}) => {
    const client = new Client({ name: 'test', version: '1' })
    const url = new URL(`http://127.0.0.1:${engine.port}${address}`)
    await client.connect(new StreamableHTTPClientTransport(url, options))
    return client
  }
  const charges = (customer) =>
    world.ledger().filter((line) => line.effect === 1 && line.kind === 'charge' && line.body?.customer === customer)
  const charge = (client, customer, _meta) =>
    client.callTool({ name: 'cards_charge', arguments: { amount: 5, customer }, _meta })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

  await promise('a client that knows only the address calls once, through either engine', async () => {
    const { url, token } = await grant({ run: 'chat-url' })
    const results = []
    for (const engine of [first, second, first]) {
      const client = await host(engine, url)
      // A turn of its own, as a host has it: a repeat that a user asked for is no loop.
      results.push(await charge(client, 'url', { 'sagad/turn': results.length }))
      await client.close()
    }
    const client = await host(second, '/mcp', { requestInit: { headers: { authorization: `Bearer ${token}` } } })
    results.push(await charge(client, 'url', { 'sagad/turn': results.length }))
    await client.close()
    for (const result of results) {
      expect(!result.isError, 'is no refusal', result)
      expectEqual(result.content, results[0].content, 'the same result')
    }
    expectEqual(charges('url').length, 1, 'charges')
    const log = await at(first, 'GET', '/v1/operations?run=chat-url', undefined, 'ops')
    expectEqual(log.json.items.length, 1, 'operations of the run')
  })

  await promise('what the host says beside its grant is refused, and nothing is done', async () => {
    const { id, url } = await grant({ run: 'chat-a' })
    const client = await host(first, url)
    const refused = await charge(client, 'beside', { 'sagad/run': 'chat-b' })
    expectEqual(refused.isError, true, 'isError')
    const text = refused.content[0].text
    expect(text.includes(`the grant "${id}"`) && text.includes('_meta "sagad/run"'), 'both are named', text)
    expect(text.includes('"chat-a"') && text.includes('"chat-b"'), 'with what they say', text)
    expectEqual(charges('beside').length, 0, 'charges')
    await client.close()
  })

  await promise('a grant lists and calls the tools that it names', async () => {
    const { url } = await grant({ run: 'chat-tools', tools: ['look'] })
    const client = await host(second, url)
    expectEqual(
      (await client.listTools()).tools.map((tool) => tool.name),
      ['look'],
      'tools'
    )
    let refused
    await charge(client, 'tools').catch((error) => (refused = error))
    expect(refused, 'another tool is called', refused)
    expectEqual(charges('tools').length, 0, 'charges')
    await client.close()
  })

  await promise('an agent revokes what it granted, and nothing that another token granted', async () => {
    const revoke = (id, token) => at(second, 'DELETE', `/v1/grants/${id}`, undefined, token)
    const { id } = await grant({ run: 'chat-own' }, first)
    const refused = await revoke(id, 'guest')
    const missing = await revoke(
      id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')),
      'guest'
    )
    expectEqual([refused.status, missing.status], [404, 404], 'answers to another agent')
    expectEqual(refused.json.detail, missing.json.detail, 'the same as of a grant that is not there')
    const [row] = (await at(first, 'GET', '/v1/grants', undefined, 'guest')).json.items.filter((one) => one.id === id)
    expectEqual(row?.status, 'in-force', 'the grant')
    expectEqual((await revoke(id, 'host')).status, 200, 'the answer to the agent that made it')
    const other = await grant({ run: 'chat-own' }, first)
    expectEqual((await revoke(other.id, 'ops')).status, 200, 'the answer to an operator')
  })

  await promise('a revoked grant is refused by the other engine at once', async () => {
    for (let i = 0; i < 20; i++) {
      const { id, url } = await grant({ run: `chat-revoked-${i}` }, i % 2 ? first : second)
      expectEqual((await at(first, 'POST', url, list)).status, 200, 'before')
      expectEqual((await at(second, 'POST', url, list)).status, 200, 'before, at the other one')
      expectEqual((await at(first, 'DELETE', `/v1/grants/${id}`, undefined, 'ops')).status, 200, 'revoked')
      expectEqual((await at(second, 'POST', url, list)).status, 401, 'at the other one')
      expectEqual((await at(first, 'POST', url, list)).status, 401, 'at the same')
    }
  })

  await promise('a call that waits on the other engine ends within a second, and its operation goes on', async () => {
    const took = []
    for (let i = 0; i < 3; i++) {
      const { id, url } = await grant({ run: `chat-nap-${i}` })
      const nap = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'nap', arguments: {} } }
      const waiting = at(first, 'POST', url, nap)
      const operations = () => at(second, 'GET', `/v1/operations?run=chat-nap-${i}`, undefined, 'ops')
      await eventually('the call is known', async () => (await operations()).json.items.length === 1)
      const begun = Date.now()
      await at(second, 'DELETE', `/v1/grants/${id}`, undefined, 'ops')
      const answer = await waiting
      took.push(Date.now() - begun)
      expectEqual(answer.status, 401, `the wait: ${answer.text}`)
      const [operation] = (await operations()).json.items
      expect(operation.state !== 'failed', 'the operation was not cut off', operation)
    }
    expect(Math.min(...took) <= 1000, 'the best of three is within a second, whatever else the machine does', took)
  })

  await promise('a grant ends with the token that made it, on both engines', async () => {
    const { url } = await grant({ run: 'chat-issuer' })
    expectEqual((await at(second, 'POST', url, list)).status, 200, 'before')
    writeTokens(['ops', 'root'])
    for (const engine of [first, second]) while ((await at(engine, 'POST', url, list)).status !== 401) await sleep(50)
    const { json } = await at(first, 'GET', '/v1/grants', undefined, 'ops')
    expect(
      json.items.every((one) => one.status === 'issuer-gone'),
      'the list says so',
      json.items
    )
    writeTokens(Object.keys(names))
    for (const engine of [first, second]) while ((await at(engine, 'POST', url, list)).status !== 200) await sleep(50)
  })

  await promise('a host that only starts programs takes the address from a file', async () => {
    const { url } = await grant({ run: 'chat-stdio' })
    const file = join(world.directory, 'address')
    writeFileSync(file, `http://127.0.0.1:${second.port}${url}\n`, { mode: 0o600 })
    const client = new Client({ name: 'test', version: '1' })
    const args = ['mcp', '--server-file', file]
    await client.connect(new StdioClientTransport({ command: process.env.SAGAD, args, stderr: 'ignore' }))
    const result = await charge(client, 'stdio')
    expect(!result.isError, 'is no refusal', result)
    expectEqual(charges('stdio').length, 1, 'charges')
    await client.close()
  })

  await promise('sagactl makes, lists and revokes grants', async () => {
    const sagactl = (args) => world.sagactlAt(`http://127.0.0.1:${first.port}`, ['--token', 'host', ...args])
    const made = JSON.parse(sagactl(['grants', 'new', '--run', 'chat-ctl', '--expires', '1h', '-o', 'json']).stdout)
    expectEqual((await at(second, 'POST', made.url, list)).status, 200, 'it is good')
    expect(sagactl(['grants']).stdout.includes(made.id), 'it is listed')
    expectEqual(sagactl(['grants', 'revoke', made.id]).status, 0, 'revoked')
    expectEqual((await at(second, 'POST', made.url, list)).status, 401, 'it is good no more')
    expect(!sagactl(['grants']).stdout.includes(made.id), 'it is listed no more')
  })

  await promise('no secret is in logs, metrics, lists, or the database', async () => {
    const made = await grant({ run: 'chat-secret' })
    const secret = made.token.slice(-64)
    const client = await host(first, made.url)
    await charge(client, 'secret')
    await client.close()
    await at(first, 'GET', `${made.url}/x`)
    await at(first, 'GET', made.url)
    await at(first, 'DELETE', `/v1/grants/${made.id}`, undefined, 'ops')
    await at(second, 'POST', made.url, list)
    const seen = [
      (await at(first, 'GET', '/metrics', undefined, 'ops')).text,
      (await at(first, 'GET', '/v1/grants?all=true', undefined, 'ops')).text,
      (await at(first, 'GET', '/v1/events', undefined, 'ops')).text,
      ...world.engines.map((engine) => readFileSync(world.log(engine.name), 'utf8')),
      world.sql('select string_agg(g::text || convert_from(g.body, $$UTF8$$), $$;$$) from sagad.agent_grant g'),
      world.sql('select string_agg(convert_from(l.payload, $$UTF8$$), $$;$$) from sagad.log l')
    ]
    for (const text of seen) expect(text && !text.includes(secret), 'the secret is in', text.slice(0, 2000))
    expect(seen[3].includes('grant_made') && seen[3].includes(made.id), 'the log names the grant', seen[3].slice(-2000))
  })
})
