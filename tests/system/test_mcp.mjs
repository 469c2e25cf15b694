// The adapter `mcp` against @modelcontextprotocol/server-everything, a server that others wrote, over both transports. Its tool
// toggle-simulated-logging undoes itself when it is called twice: what reached it, and how often, can be seen in what it says.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
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

// With next to no environment: it has a tool that shows it.
async function startServer() {
  everything = spawn(process.execPath, ['--require', join(root, 'tests/lib/loopback.cjs'), server, 'streamableHttp'],
    { env: { PATH: process.env.PATH, PORT: String(port) }, stdio: 'ignore' })
  for (let tries = 0; tries < 200; tries++) {
    const open = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true) })
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
    const tool = (name, there, members) => tools.push({ name: `${name}_${transport}`, mcp: { server: where, tool: there }, timeout: '10s', ...members })
    tool('echo', 'echo', { effect: 'read', retry, result: '${ .response.content[0].text }' })
    tool('weather', 'get-structured-content', { effect: 'read', retry })
    tool('sum', 'get-sum', { effect: 'once', terminal: true })
    tool('missing', 'no-such-tool', { effect: 'once', terminal: true })
    tool('toggle', 'toggle-simulated-logging', { effect: 'once', terminal: true, result: '${ .response.content[0].text }' })
    tool('toggle_keyed', 'toggle-simulated-logging', { effect: 'keyed', key: { meta: 'shop.example/key', window: '1h' }, terminal: true, retry, result: '${ .response.content[0].text }' })
    tool('switch', 'toggle-simulated-logging', { effect: 'keyed', key: { window: '1h' }, retry, compensate: { tool: `switch_back_${transport}`, with: {} } })
    tool('switch_back', 'toggle-simulated-logging', { effect: 'keyed', key: { window: '1h' }, retry })
    tool('long', 'trigger-long-running-operation', { effect: 'once', terminal: true, timeout: '500ms' })
  }
  const order = (transport) => ({ name: `order_${transport}`, input: { type: 'object' },
    steps: [{ id: 'greet', call: `echo_${transport}`, with: { message: '${ .input.who }' } }, { id: 'switch', call: `toggle_${transport}`, with: {} }],
    output: '${ { said: .steps.greet.result, switched: .steps.switch.result } }' })
  const regret = (transport) => ({ name: `regret_${transport}`, input: { type: 'object' },
    steps: [{ id: 'switch', call: `switch_${transport}`, with: {} }, { id: 'no', call: `missing_${transport}`, with: {} }] })
  return { tools, sagas: Object.keys(transports).flatMap((transport) => [order(transport), regret(transport)]) }
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

  for (const transport of Object.keys(transports)) {
    await promise(`${transport}: a tool is called, and its content or its structured content is the result`, async () => {
      expectEqual(completed(await call(fresh('echo'), `echo_${transport}`, { message: 'höher "als" \\ 7\n' })), 'Echo: höher "als" \\ 7\n', 'the echo')
      const weather = completed(await call(fresh('weather'), `weather_${transport}`, { location: 'New York' }))
      expect(typeof weather.temperature === 'number', 'a structured result', weather)
    })
    await promise(`${transport}: an unknown tool and wrong arguments had no effect, whatever the class`, async () => {
      for (const [tool, args] of [['missing', {}], ['sum', { a: 'x' }]]) {
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
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => call(fresh('many'), `echo_${transport}`, { message: `m${i}` })))
      answers.forEach((answer, i) => expectEqual(completed(answer), `Echo: m${i}`, 'the echo'))
    })
    await promise(`${transport}: what takes longer than it may is unknown, and is not called again`, async () => {
      const name = fresh('long')
      const answer = await call(name, `long_${transport}`, { duration: 3, steps: 2 })
      expect(answer.status === 409, 'expected 409', `${answer.status} ${answer.text}`)
      const { operation } = answer.json
      expectEqual([operation.took_effect, operation.attempts, operation.error.code], ['maybe', 1, 'timeout'], 'the operation')
    })
    await promise(`${transport}: a saga of such steps completes`, async () => {
      const saga = await world.until(await world.start(`order_${transport}`, { who: 'you' }))
      expect(saga.status === 'completed' && saga.output?.said === 'Echo: you' && saga.output.switched.startsWith('Started'), 'completed', saga)
      expect(completed(await call(fresh('toggle'), `toggle_${transport}`)).startsWith('Stopped'), 'it was on')
    })
    await promise(`${transport}: a step is undone by a tool of the server, once`, async () => {
      const saga = await world.until(await world.start(`regret_${transport}`, {}))
      expectEqual(saga.status, 'compensated', 'the status')
      expect(completed(await call(fresh('toggle'), `toggle_${transport}`)).startsWith('Started'), 'it was off')
      expect(completed(await call(fresh('toggle'), `toggle_${transport}`)).startsWith('Stopped'), 'it was on')
    })
  }
  await promise('http: a server that was restarted has forgotten its sessions; the next call opens one', async () => {
    await stopServer()
    await startServer()
    expect(completed(await call(fresh('toggle'), 'toggle_http')).startsWith('Started'), 'the first call of a new session starts it')
  })
  await promise('http: while nobody listens, nothing is sent, and the call happens once when the server is back', async () => {
    await stopServer()
    const name = fresh('away')
    const going = call(name, 'toggle_http', {}, '30s')
    await sleep(700)
    await startServer()
    expect(completed(await going).startsWith('Started'), 'started')
    expect(completed(await call(fresh('toggle'), 'toggle_http')).startsWith('Stopped'), 'once')
  })
})
