// The conformance suite of the Model Context Protocol against /mcp, in both revisions, with a list of what fails and
// why (baseline-REVISION.yml). The suite asks for tools of fixed names: a small server has those that sagad can pass
// on, and sagad offers them as tools of that server.
//
//   npm ci --prefix tests/conformance    (once; the suite wants node 22, which comes with it)
//   SAGAD=... SAGACTL=... node tests/conformance/conformance.mjs
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { World, expect, promise, run } from '../lib/world.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const modules = process.env.CONFORMANCE_MODULES ?? join(here, 'node_modules')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')
const node22 = join(modules, 'node/bin/node')
if (!existsSync(suite) || !existsSync(node22)) {
  console.log('skipped: npm ci --prefix tests/conformance installs the suite')
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

function check(revision, port) {
  const args = ['server', '--url', `http://127.0.0.1:${port}/mcp`, '--requirements', revision]
  const baseline = ['--expected-failures', join(here, `baseline-${revision}.yml`)]
  return new Promise((resolve) => {
    const child = spawn(node22, [suite, ...args, ...baseline], { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stdout.on('data', (part) => (said += part))
    child.stderr.on('data', (part) => (said += part))
    child.on('exit', (code) => resolve({ code, said: said.slice(said.lastIndexOf('=== SUMMARY')) }))
  })
}

await run(new World(), async (world) => {
  await new Promise((resolve) => behind.listen(0, '127.0.0.1', resolve))
  behind.unref()
  await world.startPostgres()
  await world.startSagad()
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
        const { code, said } = await check(revision, world.port)
        console.log(said.replace(/^/gm, '# '))
        expect(code === 0, 'the suite', said.slice(-2500))
      },
      300
    )
  }
})
