// The conformance suite of the Model Context Protocol against /mcp, in both revisions, with a list of what fails and
// why (baseline-REVISION.yml). The suite asks for tools of fixed names: a small server has those that sagad can pass
// on, and sagad offers them as tools of that server.
//
// The command line of the inspector, the protocol's own client for people, is a second witness, in both revisions.
//
//   mkdir -p build/npm-conformance && cp tests/conformance/package*.json build/npm-conformance/
//   npm ci --prefix build/npm-conformance    (once; both want node 22, which comes with them)
//   SAGAD=... SAGACTL=... node tests/conformance/conformance.mjs
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { World, expect, expectEqual, freePort, promise, root, run } from '../lib/world.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const modules = process.env.CONFORMANCE_MODULES ?? join(root, 'build/npm-conformance/node_modules')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')
const inspector = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const node22 = join(modules, 'node/bin/node')
if (![suite, inspector, node22].every(existsSync)) {
  console.log('skipped: npm ci --prefix build/npm-conformance installs the suite; the head of this file says how')
  process.exit(77)
}

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='
const text = { type: 'text', text: 'This is a simple text response for testing.' }
const image = { type: 'image', data: png, mimeType: 'image/png' }
const resource = (uri, body) => ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: body } })
const results = {
  test_simple_text: { content: [text] },
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: 'audio', data: wav, mimeType: 'audio/wav' }] },
  test_embedded_resource: { content: [resource('test://embedded-resource', 'This is an embedded resource content.')] },
  test_multiple_content_types: {
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      { ...resource('test://mixed-content-resource', '{"test":"data","value":123}') }
    ]
  },
  test_error_handling: {
    content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
    isError: true
  }
}

const handshake = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'fixtures', version: '1' }
}

// The server behind sagad.
const behind = createServer(async (request, response) => {
  let body = ''
  for await (const part of request) body += part
  const message = request.method === 'POST' ? JSON.parse(body) : {}
  if (message.id === undefined) {
    response.writeHead(request.method === 'POST' ? 202 : 405).end()
    return
  }
  const result = message.method === 'initialize' ? handshake : results[message.params?.name]
  const answer = result ? { result } : { error: { code: -32601, message: 'not here' } }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer }))
})

// Runs a program of the suite. The server behind sagad answers meanwhile.
function play(args, home) {
  return new Promise((resolve) => {
    const child = spawn(node22, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: home } })
    const said = { out: '', all: '' }
    child.stdout.on('data', (part) => ((said.out += part), (said.all += part)))
    child.stderr.on('data', (part) => (said.all += part))
    child.on('close', (code) => resolve({ code, ...said }))
  })
}

async function check(revision, world) {
  const args = ['server', '--url', `http://127.0.0.1:${world.port}/mcp`, '--requirements', revision]
  const baseline = ['--expected-failures', join(here, `baseline-${revision}.yml`)]
  const { code, all } = await play([suite, ...args, ...baseline], world.directory)
  return { code, said: all.slice(all.lastIndexOf('=== SUMMARY')) }
}

// It ends with 5 where the result of a tool is a refusal.
async function inspect(era, world, wanted, ...args) {
  const where = ['--cli', `http://127.0.0.1:${world.port}/mcp`, '--transport', 'http', '--protocol-era', era]
  const { code, out, all } = await play([inspector, ...where, '--format', 'json', '-q', ...args], world.directory)
  expectEqual(code, wanted, `the inspector (${era}) ${args.join(' ')}: ${all.slice(-500)}`)
  return JSON.parse(out).result
}

await run(new World(), async (world) => {
  await new Promise((resolve) => behind.listen(0, '127.0.0.1', resolve))
  behind.unref()
  await world.startPostgres()
  world.port = await freePort()
  world.migrate()
  // The suite asks as a page of this address, which no page may without this setting.
  await world.startSagad(['--mcp-origins', `http://127.0.0.1:${world.port},http://localhost:${world.port}`])
  const server = { url: `http://127.0.0.1:${behind.address().port}/mcp` }
  const tools = Object.keys(results).map((tool) => ({
    name: tool,
    description: 'What the suite asks for.',
    mcp: { server, tool },
    effect: 'read',
    retry: { max_attempts: 1 }
  }))
  await world.define({ tools, sagas: [] })
  for (const revision of ['2025-11-25', '2026-07-28']) {
    await promise(
      `revision ${revision}: what fails is in the baseline, and nothing else`,
      async () => {
        const { code, said } = await check(revision, world)
        console.log(said.replace(/^/gm, '# '))
        expect(code === 0, 'the suite', said.slice(-2500))
      },
      300
    )
  }
  for (const era of ['legacy', 'modern']) {
    await promise(
      `the inspector, ${era}: lists the tools, and reads the result of one`,
      async () => {
        const { tools } = await inspect(era, world, 0, '--method', 'tools/list')
        expect(
          tools.some(({ name }) => name === 'test_simple_text'),
          'tools',
          tools
        )
        const called = await inspect(era, world, 0, '--method', 'tools/call', '--tool-name', 'test_simple_text')
        expectEqual(called.content, [text], 'content')
        const refused = await inspect(era, world, 5, '--method', 'tools/call', '--tool-name', 'saga_status')
        expectEqual(refused.isError, true, 'a refusal')
      },
      60
    )
  }
})
