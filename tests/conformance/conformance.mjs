// The conformance suite of the Model Context Protocol against /mcp, in both revisions, with a list of what fails and
// why (baseline-REVISION.yml). The suite asks for tools of fixed names: a small server has those that sagad can pass
// on, and sagad offers them as tools of that server. What it asks for beside tools has the program sagad_fixtures,
// which is sagad with the table of fixtures.c.
//
// The suite itself would hold against such a list only what its revision requires. This test holds everything that it
// runs.
//
// The command line of the inspector, the protocol's own client for people, is a second witness, in both revisions.
//
// tools/test installs both into build/npm-conformance, and a node 22 with them, which both want. By hand:
//
//   mkdir -p build/npm-conformance && cp tests/conformance/package*.json build/npm-conformance/
//   npm ci --prefix build/npm-conformance --ignore-scripts
//   SAGAD=build/.../tests/system/sagad_fixtures SAGACTL=... SAGAD_SHOP=... node tests/conformance/conformance.mjs
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { World, eventually, expect, expectEqual, freePort, promise, root, run } from '../lib/world.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const modules = process.env.CONFORMANCE_MODULES ?? join(root, 'build/npm-conformance/node_modules')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')
const inspector = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const node22 = join(modules, `node-linux-${process.arch}/bin/node`)
// tools/test installs the suite while other tests run.
await eventually('the suite is installed', () => !existsSync(join(modules, '../installing')), { seconds: 600 })
if (![suite, inspector, node22].every(existsSync)) {
  console.log('skipped: tools/test installs the suite from npm; the head of this file says how')
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

const says = (text, more) => ({ content: [{ type: 'text', text }], ...more })
const object = (properties) => ({ type: 'object', properties })
const string = { type: 'string' }
// The schema that the suite shows for this tool, without its one "$anchor", which definitions do not take.
const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...object({
    name: string,
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: string,
    email: string
  }),
  $defs: { address: object({ street: string, city: string }) },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false
}
const progressMs = 800 // of the second and a half that a call may wait, with a sign of life each tenth of a second
const taskMs = 3000 // longer than a call may wait: the client gets a task
// Tools that do what the suite asks of tools of these names: sagad streams, waits and makes tasks by itself.
const tools = {
  // It asks the client for nothing, and logs nothing to it.
  test_streaming_elicitation: { answer: () => says('Streaming complete') },
  test_logging_tool: { answer: () => says('Logging evaluated') },
  test_tool_with_progress: { takes: () => progressMs, answer: () => says('Done') },
  greet: { input: object({ name: string }), answer: ({ name }) => says(`Hello, ${name}!`) },
  slow_compute: {
    input: object({ seconds: { type: 'integer' }, label: string }),
    takes: ({ seconds }) => seconds && Math.max(seconds * 1000, taskMs),
    answer: () => says('computed')
  },
  failing_job: { takes: () => taskMs, answer: () => says('this job fails', { isError: true }) },
  protocol_error_job: { takes: () => taskMs },
  confirm_delete: { input: object({ filename: string }), takes: () => taskMs, answer: () => says('deleted') },
  json_schema_2020_12_tool: { input: schema2020, answer: () => says('read') },
  ...Object.fromEntries(Object.entries(results).map(([name, result]) => [name, { answer: () => result }]))
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
  const { name, arguments: args } = message.params ?? {}
  const takes = tools[name]?.takes?.(args)
  if (takes) await new Promise((resolve) => setTimeout(resolve, takes).unref())
  const result = message.method === 'initialize' ? handshake : tools[name]?.answer?.(args)
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

// Each check that failed, or warned, as scenario:check.
function failuresIn(folder) {
  return readdirSync(folder).flatMap((run) => {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(run)[1]
    if (!existsSync(join(folder, run, 'checks.json'))) return [`${scenario}:it-did-not-run`]
    const checks = JSON.parse(readFileSync(join(folder, run, 'checks.json'), 'utf8'))
    return checks.filter(({ status }) => /FAILURE|WARNING/.test(status)).map((one) => `${scenario}:${one.id}`)
  })
}

let runs = 0
async function suiteFailures(world, ...which) {
  const folder = join(world.directory, `suite-${++runs}`)
  const url = `http://127.0.0.1:${world.port}/mcp`
  const { all } = await play([suite, 'server', '--url', url, ...which, '-o', folder], world.directory)
  if (which[0] === '--requirements') console.log(all.slice(all.lastIndexOf('=== SUMMARY')).replace(/^/gm, '# '))
  return failuresIn(folder)
}

async function check(revision, world) {
  const list = readFileSync(join(here, `baseline-${revision}.yml`), 'utf8')
  const listed = [...list.matchAll(/^ +- (\S+)$/gm)].map(([, entry]) => entry)
  const covers = (entry, failure) => failure === entry || failure.startsWith(`${entry}:`)
  const unlisted = (failures) => failures.filter((failure) => !listed.some((entry) => covers(entry, failure)))
  const failures = await suiteFailures(world, '--requirements', revision)
  // The suite waits half a second for some answers, whatever else the machine does. What is not in the list may fail so
  // a few times, but not always.
  let surprises = unlisted(failures)
  for (let i = 0; i < 5 && surprises.length > 0; i++) {
    console.log(`# again: ${surprises}`)
    const scenarios = [...new Set(surprises.map((failure) => failure.split(':')[0]))]
    surprises = []
    for (const scenario of scenarios) {
      surprises.push(
        ...unlisted(await suiteFailures(world, '--scenario', scenario, '--spec-version', revision, '--force'))
      )
    }
  }
  expectEqual(surprises, [], 'what fails and is not in the list')
  expectEqual(
    listed.filter((entry) => !failures.some((failure) => covers(entry, failure))),
    [],
    'what is in the list and does not fail'
  )
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
  const definitions = Object.entries(tools).map(([tool, { input }]) => ({
    name: tool,
    description: 'What the suite asks for.',
    mcp: { server, tool },
    ...(input && { input }),
    effect: 'read',
    retry: { max_attempts: 1 }
  }))
  await world.define({ tools: definitions, sagas: [] })
  for (const revision of ['2025-11-25', '2026-07-28']) {
    await promise(
      `revision ${revision}: what fails is in the baseline, and nothing else`,
      () => check(revision, world),
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
