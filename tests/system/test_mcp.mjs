// The adapter `mcp` against @modelcontextprotocol/server-everything, a server by other authors, over both transports.
// Its tool toggle-simulated-logging undoes itself when it is called twice, so its answers show what reached it, and how
// often.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { connect } from 'node:net'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, root, run, sleep } from '../lib/world.mjs'

const server = join(process.env.NODE_MODULES ?? '', '@modelcontextprotocol/server-everything/dist/index.js')

if (!existsSync(server)) {
  console.log('skipped: @modelcontextprotocol/server-everything is not installed (tools/test does it)')
  process.exit(77)
}

const port = await freePort()
let everything

// Starts the server with nearly no environment, because it has a tool that shows it.
async function startServer() {
  everything = spawn(process.execPath, ['--require', join(root, 'tests/lib/loopback.cjs'), server, 'streamableHttp'], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: 'ignore'
  })
  for (let tries = 0; tries < 1200; tries++) {
    const open = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        resolve(true)
      })
      socket.on('error', () => resolve(false))
    })
    if (open) return
    await sleep(50)
  }
  throw new Error('server-everything does not start')
}

async function stopServer() {
  const ended = new Promise((resolve) => everything.on('exit', resolve))
  everything.kill('SIGKILL')
  await ended
}

process.on('exit', () => everything?.kill('SIGKILL'))

const transports = {
  http: { url: `http://127.0.0.1:${port}/mcp` },
  stdio: { argv: [process.execPath, server, 'stdio'] }
}

function definitions() {
  const tools = []
  const retry = { max_attempts: 3, initial: '50ms', max: '200ms' }
  for (const [transport, where] of Object.entries(transports)) {
    const tool = (name, there, members) =>
      tools.push({ name: `${name}_${transport}`, mcp: { server: where, tool: there }, timeout: '10s', ...members })
    tool('echo', 'echo', { effect: 'read', retry, result: '${ .response.content[0].text }' })
    tool('weather', 'get-structured-content', { effect: 'read', retry })
    tool('sum', 'get-sum', { effect: 'once', terminal: true })
    tool('missing', 'no-such-tool', { effect: 'once', terminal: true })
    tool('toggle', 'toggle-simulated-logging', {
      effect: 'once',
      terminal: true,
      result: '${ .response.content[0].text }'
    })
    tool('toggle_keyed', 'toggle-simulated-logging', {
      effect: 'keyed',
      key: { meta: 'shop.example/key', window: '1h' },
      terminal: true,
      retry,
      result: '${ .response.content[0].text }'
    })
    tool('switch', 'toggle-simulated-logging', {
      effect: 'keyed',
      key: { window: '1h' },
      retry,
      compensate: { tool: `switch_back_${transport}`, with: {} }
    })
    tool('switch_back', 'toggle-simulated-logging', { effect: 'keyed', key: { window: '1h' }, retry })
    tool('long', 'trigger-long-running-operation', { effect: 'once', terminal: true, timeout: '500ms' })
  }
  const order = (transport) => ({
    name: `order_${transport}`,
    input: { type: 'object' },
    steps: [
      { id: 'greet', call: `echo_${transport}`, with: { message: '${ .input.who }' } },
      { id: 'switch', call: `toggle_${transport}`, with: {} }
    ],
    output: '${ { said: .steps.greet.result, switched: .steps.switch.result } }'
  })
  const regret = (transport) => ({
    name: `regret_${transport}`,
    input: { type: 'object' },
    steps: [
      { id: 'switch', call: `switch_${transport}`, with: {} },
      { id: 'no', call: `missing_${transport}`, with: {} }
    ]
  })
  return { tools, sagas: Object.keys(transports).flatMap((transport) => [order(transport), regret(transport)]) }
}

// Asks a server for its tools without sagad.
async function listed(argv) {
  const child = spawn(argv[0], argv.slice(1), { stdio: ['pipe', 'pipe', 'ignore'] })
  const send = (message) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
  send({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  })
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const message = JSON.parse(line)
      if (message.id === 1) {
        send({ method: 'notifications/initialized' })
        send({ id: 2, method: 'tools/list', params: {} })
      }
      if (message.id === 2) return message.result.tools
    }
  } finally {
    child.kill('SIGKILL')
  }
  throw new Error('the server ended before it listed its tools')
}

// Makes a server that lists only these tools, page by page.
const stub = (pages) => [
  process.execPath,
  '-e',
  `
  const pages = ${JSON.stringify(pages).replaceAll('$', '\\u0024')}
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    const say = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
    const at = Number(params?.cursor ?? 0)
    const serverInfo = { name: 'stub', version: '1' }
    if (method === 'initialize') say({ protocolVersion: '2025-11-25', capabilities: {}, serverInfo })
    const nextCursor = at + 1 < pages.length ? String(at + 1) : undefined
    if (method === 'tools/list') say({ tools: pages[at], nextCursor })
  })`
]

function draft(world, args) {
  const made = world.sagadOnce(['mcp-tools', ...args])
  expectEqual(made.status, 0, `the exit code; ${made.stderr}`)
  const file = join(world.directory, 'draft.json')
  writeFileSync(file, made.stdout)
  const checked = spawnSync(world.sagactlPath, ['check', file], { encoding: 'utf8' })
  expectEqual(checked.status, 0, `sagactl check; ${checked.stdout}${checked.stderr}`)
  return { tools: JSON.parse(made.stdout).tools, notes: made.stderr }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), startServer()])
  await world.startSagad()
  await world.define(definitions())

  let count = 0
  const fresh = (name) => `${name}-${++count}`
  const call = (name, tool, args = {}, wait = '20s') =>
    world.api('POST', `/v1/operations?wait=${wait}`, { run: name, tool, args, turn: fresh('turn') }, { seconds: 60 })
  const completed = (answer) => {
    expect(answer.status === 200, 'expected 200', `${answer.status} ${answer.text}`)
    return answer.json.result
  }

  for (const [transport, where] of Object.entries(transports)) {
    await promise(
      `${transport}: mcp-tools drafts definitions that pass the check, each with the class that the annotations ` +
        `suggest`,
      async () => {
        const { tools, notes } = draft(world, [
          '--prefix',
          'try.',
          ...(where.url ? ['--url', where.url] : ['--', ...where.argv])
        ])
        const theirs = new Map((await listed(transports.stdio.argv)).map((tool) => [tool.name, tool]))
        const effects = new Set()
        expect(tools.length > 5, 'more than a handful of tools', tools.length)
        for (const tool of tools) {
          const { annotations = {}, description, inputSchema } = theirs.get(tool.mcp.tool) ?? {}
          const effect = annotations.readOnlyHint ? 'read' : annotations.idempotentHint ? 'idempotent' : 'once'
          expectEqual(
            [tool.name, tool.effect, tool.terminal],
            [`try.${tool.mcp.tool}`, effect, effect === 'read' ? undefined : true],
            'the suggestion'
          )
          expectEqual(
            [tool.description, tool.mcp.server],
            [description, where],
            'what comes from the server, and how it is reached'
          )
          delete inputSchema.$schema
          expectEqual(tool.input, inputSchema, 'the input')
          expect(notes.includes(`${tool.name}: "${effect}"`), 'a note on each', notes)
          effects.add(effect)
        }
        expectEqual([...effects].sort(), ['idempotent', 'once', 'read'], 'the server has tools of each kind')
        const asked = ['"scope": "${ .args.NAME }"', '"no_effect": "${ .response.isError == true }"']
        for (const text of asked) expect(notes.includes(text), 'what else is to be decided', notes)
      }
    )
    await promise(
      `${transport}: a tool is called, and its content or its structured content is the result`,
      async () => {
        expectEqual(
          completed(await call(fresh('echo'), `echo_${transport}`, { message: 'höher "als" \\ 7\n' })),
          'Echo: höher "als" \\ 7\n',
          'the echo'
        )
        const weather = completed(await call(fresh('weather'), `weather_${transport}`, { location: 'New York' }))
        expect(typeof weather.temperature === 'number', 'a structured result', weather)
      }
    )
    await promise(`${transport}: an unknown tool and wrong arguments had no effect, whatever the class`, async () => {
      for (const [tool, args] of [
        ['missing', {}],
        ['sum', { a: 'x' }]
      ]) {
        const answer = await call(fresh(tool), `${tool}_${transport}`, args)
        expect(answer.status === 424, `expected 424 of ${tool}`, `${answer.status} ${answer.text}`)
      }
    })
    await promise(`${transport}: a repeated call reaches the server once`, async () => {
      for (const tool of ['toggle', 'toggle_keyed']) {
        const name = fresh('toggle')
        const said = completed(await call(name, `${tool}_${transport}`))
        expect(said.startsWith('Started'), 'the first call starts it', said)
        for (let i = 0; i < 3; i++) expectEqual(completed(await call(name, `${tool}_${transport}`)), said, 'the repeat')
        const other = completed(await call(fresh('toggle'), `${tool}_${transport}`))
        expect(other.startsWith('Stopped'), 'had a repeat reached it, the second operation would start it', other)
      }
    })
    await promise(`${transport}: calls at once all come back, each with its own answer`, async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => call(fresh('many'), `echo_${transport}`, { message: `m${i}` }))
      )
      answers.forEach((answer, i) => expectEqual(completed(answer), `Echo: m${i}`, 'the echo'))
    })
    await promise(`${transport}: what takes longer than it may is unknown, and is not called again`, async () => {
      const name = fresh('long')
      const answer = await call(name, `long_${transport}`, { duration: 3, steps: 2 })
      expect(answer.status === 409, 'expected 409', `${answer.status} ${answer.text}`)
      const { operation } = answer.json
      expectEqual(
        [operation.took_effect, operation.attempts, operation.error.code],
        ['maybe', 1, 'timeout'],
        'the operation'
      )
    })
    await promise(`${transport}: a saga of such steps completes`, async () => {
      const saga = await world.until(await world.start(`order_${transport}`, { who: 'you' }))
      expect(
        saga.status === 'completed' && saga.output?.said === 'Echo: you' && saga.output.switched.startsWith('Started'),
        'completed',
        saga
      )
      expect(completed(await call(fresh('toggle'), `toggle_${transport}`)).startsWith('Stopped'), 'it was on')
    })
    await promise(`${transport}: a step is undone by a tool of the server, once`, async () => {
      const saga = await world.until(await world.start(`regret_${transport}`, {}))
      expectEqual(saga.status, 'compensated', 'the status')
      expect(completed(await call(fresh('toggle'), `toggle_${transport}`)).startsWith('Started'), 'it was off')
      expect(completed(await call(fresh('toggle'), `toggle_${transport}`)).startsWith('Stopped'), 'it was on')
    })
  }
  await promise(
    'mcp-tools: what a server says of itself never becomes an expression, a second name, or a schema that is ' +
      'not understood',
    async () => {
      const { tools, notes } = draft(world, [
        '--',
        ...stub([
          [
            { name: 'getSum', inputSchema: { type: 'object', properties: { a: { pattern: '^x' } } } },
            { name: 'get_sum' },
            { name: '9lives', annotations: { destructiveHint: true } }
          ],
          [
            { name: '${ secret("x") }' },
            { name: 'with blank' },
            {},
            7,
            { name: 'task', execution: { taskSupport: 'required' } },
            { name: 'last', annotations: { readOnlyHint: 'true' } }
          ]
        ])
      ])
      expectEqual(
        tools.map((tool) => [tool.name, tool.mcp.tool, tool.effect, tool.terminal, tool.input]),
        [
          ['get_sum', 'getSum', 'once', true, undefined],
          ['get_sum_2', 'get_sum', 'once', true, undefined],
          ['tool_9lives', '9lives', 'once', true, undefined],
          ['last', 'last', 'once', true, undefined]
        ],
        'the draft'
      )
      expect(notes.includes('4 of 9 tools') && notes.includes('inputSchema is left out'), 'the notes', notes)
    }
  )
  await promise(
    'mcp-tools: who is not there, or no MCP server, is named an error; wrong usage is another',
    async () => {
      for (const [status, args] of [
        [1, ['--url', 'http://127.0.0.1:1/mcp']],
        [1, ['--url', `http://127.0.0.1:${world.port}/livez`]],
        [1, ['--', 'true']],
        [1, ['--', 'no-such-program']],
        [2, []],
        [2, ['--url', 'ftp://x']],
        [2, ['--url', transports.http.url, '--bearer-env', 'NOT_SET_HERE']],
        [2, ['--', 'echo', '${ .args }']]
      ]) {
        const made = world.sagadOnce(['mcp-tools', ...args])
        expectEqual([made.status, made.stdout], [status, ''], `${args.join(' ')}: ${made.stderr}`)
        expect(made.stderr.startsWith('sagad: '), 'a sentence', made.stderr)
      }
    }
  )
  await promise('http: a server that was restarted has forgotten its sessions; the next call opens one', async () => {
    await stopServer()
    await startServer()
    expect(
      completed(await call(fresh('toggle'), 'toggle_http')).startsWith('Started'),
      'the first call of a new session starts it'
    )
  })
  await promise(
    'http: while nobody listens, nothing is sent, and the call happens once when the server is back',
    async () => {
      await stopServer()
      const name = fresh('away')
      const going = call(name, 'toggle_http', {}, '30s')
      await sleep(700)
      await startServer()
      expect(completed(await going).startsWith('Started'), 'started')
      expect(completed(await call(fresh('toggle'), 'toggle_http')).startsWith('Stopped'), 'once')
    }
  )
})
