// Frameworks for agents with sagad as their server: the examples of schema/frameworks.md are run as printed, with
// packages of npm and the real shop. A call that is made again by another client of the same conversation is done
// once. The short form has the first of them. `tools/test --long` installs the others; by hand:
//
//   mkdir -p build/npm-frameworks && cp tests/frameworks/package*.json build/npm-frameworks/
//   npm ci --prefix build/npm-frameworks --ignore-scripts         (600 MB)
//
// The Claude Agent SDK starts a program of its own, which asks a model. Here the model is a server of this test, which
// speaks its HTTP API: it asks for the tool that it is offered, once, and then repeats what the tool gave. It hears
// what a model would hear, over real HTTP; nothing of the SDK, of its program or of sagad is replaced.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { blocksOf } from '../lib/documents.mjs'
import { World, expect, expectEqual, leaves, promise, root, run } from '../lib/world.mjs'

const folders = [process.env.NODE_MODULES, join(root, 'build/npm-frameworks/node_modules')].filter(Boolean)
const folderOf = (name) => folders.find((folder) => existsSync(join(folder, name)))
const always = '@ai-sdk/mcp'
const claude = '@anthropic-ai/claude-agent-sdk'
if (!folderOf(always)) {
  console.log(`skipped: ${always} is not installed (tools/test does it)`)
  process.exit(77)
}

// What an agent does with what an example has made: call the tool.
const frameworks = {
  [always]: `({ call: (args) => tools.payments_charge.execute(args, { toolCallId: 'c', messages: [] }),
    close: () => sagad.close() })`,
  '@openai/agents': `({ call: (args) => agent.mcpServers[0].callTool('payments_charge', args),
    close: () => sagad.close() })`,
  '@langchain/mcp-adapters': `({ call: (args) => tools.find((one) => one.name === 'payments_charge').invoke(args),
    close: () => client.close() })`,
  [claude]: null // the example asks by itself
}

// A model that is asked for a message, as a stream of events.
function startModel() {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    if (!request.url.startsWith('/v1/messages')) return response.writeHead(404).end('{}')
    const { model, tools = [], messages } = JSON.parse(body)
    const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))
    const given = blocks.find(({ type }) => type === 'tool_result')
    const tool = tools.find(({ name }) => name.endsWith('payments_charge'))
    const asks = tool && !given
    const id = `toolu_${++server.asked}`
    const [start, delta] = asks
      ? [
          { type: 'tool_use', id, name: tool.name, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify({ amount: 1000, customer: claude }) }
        ]
      : [
          { type: 'text', text: '' },
          { type: 'text_delta', text: JSON.stringify(given?.content ?? 'there is no such tool') }
        ]
    const usage = { input_tokens: 1, output_tokens: 1 }
    const message = { id: `msg_${server.asked}`, type: 'message', role: 'assistant', model, content: [], usage }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [type, more] of [
      ['message_start', { message: { ...message, stop_reason: null, stop_sequence: null } }],
      ['content_block_start', { index: 0, content_block: start }],
      ['content_block_delta', { index: 0, delta }],
      ['content_block_stop', { index: 0 }],
      ['message_delta', { delta: { stop_reason: asks ? 'tool_use' : 'end_turn', stop_sequence: null }, usage }],
      ['message_stop', {}]
    ]) {
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
    }
    response.end()
  })
  server.asked = 0
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => (server.unref(), resolve(server))))
}

// The program of the SDK gets an empty home, no account, the address of the model above, and all tools at once: it
// would have the model search for them first.
function environmentOf(world, model) {
  const home = join(world.directory, 'home')
  mkdirSync(home, { recursive: true })
  return {
    PATH: process.env.PATH,
    HOME: home,
    TOKEN: process.env.TOKEN,
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.address().port}`,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    ENABLE_TOOL_SEARCH: 'false'
  }
}

// What the example prints, run as a program.
function play(file, conversation, env) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [file, conversation], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (said += part))
    child.on('close', () => resolve(said))
  })
}

// The example in this process, and what an agent does with what it has made.
async function here(file, imports, rest, made) {
  writeFileSync(file, `${imports}export const begin = async (conversation) => {\n${rest}return ${made}\n}\n`)
  return import(pathToFileURL(file).href)
}

// The example as a program of its own, with a model.
async function apart(file, imports, rest, world) {
  const env = environmentOf(world, await startModel())
  writeFileSync(file, `${imports}const conversation = process.argv[2]\n${rest}`)
  return { begin: (conversation) => ({ call: () => play(file, conversation, env), close: () => {} }) }
}

const blocks = blocksOf('schema/frameworks.md')

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  await world.define({
    tools: [
      {
        name: 'payments.charge',
        description: 'Charges a customer.',
        http: { url: `http://127.0.0.1:${world.shopPort}/charges` },
        input: {
          type: 'object',
          properties: { amount: { type: 'integer' }, customer: { type: 'string' } },
          required: ['amount', 'customer']
        },
        result: { id: '${ .response.body.id }' },
        effect: 'keyed',
        key: { window: '1h' },
        terminal: true
      }
    ]
  })
  process.env.TOKEN = 'none is asked for'

  for (const [name, made] of Object.entries(frameworks)) {
    const folder = folderOf(name)
    if (!folder) {
      console.log(`# not installed: ${name}`)
      continue
    }
    await promise(`${name}: a call that is made again is done once`, async () => {
      const block = blocks.find((one) => one.kind === 'js' && one.text.includes(`'${name}'`))
      expect(block?.excuse.startsWith('test_frameworks.mjs runs it'), 'the page has an example')
      const entry = pathToFileURL(createRequire(join(folder, 'x.mjs')).resolve(name)).href
      const text = block.text.replace(`'${name}'`, `'${entry}'`).replaceAll(':8077', `:${world.port}`)
      const [, imports, rest] = /^((?:import .*\n)+)([^]*)$/.exec(text)
      const file = join(world.directory, `${name.replace(/\W/g, '-')}.mjs`)
      const { begin } = made ? await here(file, imports, rest, made) : await apart(file, imports, rest, world)
      const args = { amount: 1000, customer: name }
      const answers = []
      for (const conversation of ['one', 'one', 'another']) {
        const agent = await begin(`${name} ${conversation}`)
        answers.push(JSON.stringify(await agent.call(args)))
        await agent.close()
      }
      const charges = world.ledger().filter((line) => line.kind === 'charge' && line.body?.customer === name)
      expectEqual(charges.filter((line) => line.effect === 1).length, 2, `a charge for each conversation: ${answers}`)
      const ids = answers.map((answer) => /ch[\w-]*\d+/.exec(answer)?.[0])
      expectEqual(
        [ids[0] === ids[1], ids[0] === ids[2]],
        [true, false],
        `each call gets the charge of its conversation: ${answers}`
      )
    })
  }
  await leaves(world)
})
