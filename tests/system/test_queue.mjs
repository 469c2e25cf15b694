// The engine is killed while calls wait for a place, or for a tool that asked for a pause. The log knows that a waiting
// call which must never be sent twice was not sent, so that no person has to be asked.
import { createServer } from 'node:http'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

await run(new World(), async (world) => {
  const seen = []
  const behave = {}
  const server = createServer(async (request, response) => {
    const tool = request.url.slice(1)
    seen.push(tool)
    const answer = (await behave[tool]?.()) ?? { status: 200 }
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end('{}')
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${server.address().port}`
  const once = (name, more = {}) => ({
    name,
    effect: 'once',
    terminal: true,
    timeout: '8s',
    http: { method: 'POST', url: `${base}/${name}`, body: {} },
    ...more
  })
  await world.startPostgres()
  await world.startSagad(['--calls-max', '1'])
  await world.define({
    tools: [
      once('plain'),
      once('narrow', { concurrency: 5 }),
      once('paused'),
      once('paused_narrow', { concurrency: 5 })
    ],
    sagas: []
  })

  const sent = (tool) => seen.filter((name) => name === tool).length
  const call = (run, tool, wait) =>
    world.api('POST', `/v1/operations?wait=${wait}`, { run, tool, args: {} }, { seconds: 60 })
  const short = (answers) => answers.map((answer) => `${answer.status} ${answer.json?.state ?? answer.json?.type}`)
  const killedWhileWaiting = async (tool, count) => {
    const names = Array.from({ length: count }, (_, i) => `${tool}-${i}`)
    const first = await Promise.all(names.map((name) => call(name, tool, '1s')))
    expect(
      first.every((answer) => answer.status === 202),
      'all go on',
      short(first)
    )
    await world.kill9()
    delete behave[tool]
    await world.startSagad(['--calls-max', '1'])
    return { names, first, after: await Promise.all(names.map((name) => call(name, tool, '20s'))) }
  }
  for (const tool of ['plain', 'narrow']) {
    await promise(
      `${tool}: killed while one call is under way and three wait for its place: the three are sent once, and a ` +
        `person is asked about the one only`,
      async () => {
        behave[tool] = async () => {
          await sleep(6000)
        }
        const { first, after } = await killedWhileWaiting(tool, 4)
        expectEqual(
          first.filter((answer) => answer.json.state === 'pending').length,
          3,
          'calls that are known as not sent'
        )
        expectEqual(after.filter((answer) => answer.status === 200).length, 3, `answers (${short(after)})`)
        expectEqual(
          after.filter((answer) => answer.json?.type?.endsWith(':awaiting-operator')).length,
          1,
          `questions (${short(after)})`
        )
        expectEqual(sent(tool), 4, 'requests')
      },
      90
    )
  }
  for (const tool of ['paused', 'paused_narrow']) {
    await promise(
      `${tool}: killed while the tool rests after its 429: each call is sent once, and nobody is asked`,
      async () => {
        behave[tool] = () => ({ status: 429, headers: { 'retry-after': '5' } })
        await call(`${tool}-first`, tool, '500ms')
        const before = sent(tool)
        const names = Array.from({ length: 3 }, (_, i) => `${tool}-${i}`)
        await Promise.all(names.map((name) => call(name, tool, '1s')))
        expectEqual(sent(tool), before, 'requests while it rests')
        await world.kill9()
        delete behave[tool]
        await world.startSagad(['--calls-max', '1'])
        const after = []
        for (const name of names) after.push(await call(name, tool, '20s'))
        for (let i = 0; i < 40 && after.some((answer) => answer.status === 429); i++) {
          await sleep(250)
          for (const [at, name] of names.entries())
            if (after[at].status === 429) after[at] = await call(name, tool, '20s')
        }
        expect(
          after.every((answer) => answer.status === 200),
          'all are answered',
          short(after)
        )
        expect(sent(tool) - before <= names.length + 1, 'requests', sent(tool) - before)
      },
      90
    )
  }
  await promise(
    'what waits is sent when a place is free, one after the other, and the places are not lost',
    async () => {
      let at = 0
      let most = 0
      behave.plain = async () => {
        most = Math.max(most, ++at)
        await sleep(20)
        at--
      }
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => call(`many-${i}`, i % 2 ? 'plain' : 'narrow', '40s'))
      )
      const through = answers.filter((answer) => answer.status === 200).length
      expect(
        answers.every((answer) => answer.status === 200 || answer.status === 429),
        'through, or refused by the guard',
        short(answers)
      )
      expect(through >= 30, 'through', through)
      expectEqual(most, 1, 'at once')
    },
    90
  )
  server.close()
})
