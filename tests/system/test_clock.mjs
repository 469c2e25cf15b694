// The virtual clock of `sagad dev --clock virtual`, beside what is neither a saga nor a schedule: breakers,
// notifications and retention are due when the clock is moved, `next` goes to each, and each move is an act.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const HOUR = 3600000
const DAY = 24 * HOUR

// One server is the service with a breaker in front, and the receiver of notifications.
const server = createServer((request, response) => {
  request.resume()
  const is = request.url === '/pay' ? 'pay' : 'hook'
  calls[is]++
  response.writeHead(well[is] ? 200 : 503, { 'content-type': 'application/json' })
  response.end('{}')
})
const calls = { pay: 0, hook: 0 }
const well = { pay: false, hook: false }
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${server.address().port}`

await run(new World(), async (world) => {
  const file = (name, content) => {
    const path = join(world.directory, name)
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 })
    return path
  }
  const sha256 = createHash('sha256').update('a word').digest('hex')
  const tokens = file('tokens.json', { tokens: [{ name: 'ada', sha256, namespace: '*', role: 'admin' }] })
  const secrets = file('secrets.json', { hook: 'whsec_' + Buffer.alloc(32, 7).toString('base64') })
  const notify = file('notify.json', {
    notify: [{ name: 'hook', url: `${base}/hook`, events: ['hold.placed'], secrets: ['hook'] }]
  })
  world.port = await freePort()
  const dev = world.launch('clock', world.sagadPath, [
    ...['dev', '--clock', 'virtual', '--dir', join(world.directory, 'clock'), '--tokens', tokens],
    ...['--listen', `127.0.0.1:${world.port}`, '--secrets', secrets, '--notify', notify]
  ])
  const said = () => readFileSync(world.log('clock'), 'utf8')
  while (!/ready at/.test(said()) && !dev.end) await sleep(50)
  expect(!dev.end, 'it runs', said())

  const ask = async (method, path, body, status = 200) => {
    const headers = { authorization: 'Bearer a word', 'sagad-namespace': 'default' }
    const answer = await world.api(method, path, body, { headers })
    expectEqual(answer.status, status, `${method} ${path} ${answer.text}`)
    return answer.json
  }
  const until = async (holds) => {
    while (!(await holds())) await sleep(50) // promise() ends it
  }
  const clock = () => ask('GET', '/v1/clock')
  const next = () => ask('POST', '/v1/clock', { to: 'next' })
  const ahead = ({ now, next_at }) => Date.parse(next_at) - Date.parse(now)
  const begun = Date.now()
  let moves = 0

  await promise('nothing is due at first, and `next` says so', async () => {
    expectEqual((await clock()).next_at, null, 'next')
    await ask('POST', '/v1/clock', { to: 'next' }, 409)
  })
  await promise('`next` goes to where a breaker may be tried, and a call closes it', async () => {
    const http = { url: `${base}/pay` }
    const tool = { name: 'pay', http, effect: 'idempotent', terminal: true, retry: { max_attempts: 1 } }
    await ask('POST', '/v1/definitions', {
      tools: [{ ...tool, breaker: { failures: 1, cooldown: '2h' } }],
      sagas: [{ name: 'order', steps: [{ id: 'pay', call: 'pay' }] }]
    })
    const start = (id) => ask('POST', '/v1/sagas', { saga: 'order', id, input: {} }, 201)
    const waits = async () => (await ask('GET', '/v1/sagas?waits_for=breaker')).items.length
    const first = await start('fails')
    await until(async () => (await ask('GET', `/v1/sagas/${first.id}`)).status === 'escalated')
    const second = await start('waits')
    await until(async () => (await waits()) === 1)
    expectEqual(calls.pay, 1, 'calls while it is open')
    const due = ahead(await clock())
    expect(due > HOUR && due < 3 * HOUR, 'the end of the cooldown', `${due}`)
    well.pay = true
    await next()
    moves++
    expectEqual((await ask('GET', `/v1/sagas/${second.id}?wait=60s`)).status, 'completed', 'what waited')
    expectEqual([calls.pay, await waits()], [2, 0], 'calls, and sagas that wait')
  })
  await promise('a notification that was refused is sent again when its time has come, and once', async () => {
    const hold = { tool: 'pay', note: 'for an event' }
    const placed = await ask('POST', '/v1/holds', hold, 201)
    await until(() => calls.hook > 0)
    await until(async () => (await ask('GET', '/v1/notifications')).items[0]?.attempts > 0)
    well.hook = true
    await ask('POST', '/v1/clock', { by: '1d' })
    moves++
    await until(async () => (await ask('GET', '/v1/notifications')).items.length === 0)
    await ask('POST', `/v1/holds/${placed.n}/release`, { note: 'told' })
  })
  await promise('a receiver that rests is tried when the clock has passed its rest', async () => {
    well.hook = false
    for (let i = 0; i < 8; i++) {
      const placed = await ask('POST', '/v1/holds', { tool: 'pay', note: 'for an event' }, 201)
      await ask('POST', `/v1/holds/${placed.n}/release`, { note: 'told' })
    }
    await until(() => /notify_receiver_rests/.test(said()))
    well.hook = true
    expect((await clock()).next_at !== null, 'the end of the rest is due')
    const before = moves
    await until(async () => {
      if ((await ask('GET', '/v1/notifications')).items.length === 0) return true
      if ((await clock()).next_at === null) return false
      await next()
      moves++
      expect(moves - before <= 12, 'a move ends the rest, or lets a notification be due', said())
    })
  })
  await promise('`next` goes to where the retention of an ended saga is over, and the saga is gone', async () => {
    await ask('POST', '/v1/definitions', {
      sagas: [{ name: 'nap', retention: '40d', steps: [{ id: 'a', sleep: '1ms' }] }]
    })
    const { id } = await ask('POST', '/v1/sagas?wait=20s', { saga: 'nap', id: 'one', input: {} }, 201)
    await until(async () => ahead(await clock()) > 39 * DAY)
    await next()
    moves++
    await until(
      async () =>
        (
          await world.api('GET', `/v1/sagas/${id}`, undefined, {
            headers: { authorization: 'Bearer a word', 'sagad-namespace': 'default' }
          })
        ).status === 404
    )
  })
  await promise('each move is an act of whoever moved the clock', async () => {
    const { items } = await ask('GET', '/v1/acts?verb=move&limit=500')
    const done = items.filter(({ outcome }) => outcome === 'done')
    expectEqual(done.length, moves, 'one for each')
    for (const act of done) expectEqual([act.actor, act.kind, act.role], ['ada', 'clock', 'admin'], 'who, and what')
    expectEqual(
      done.map(({ detail }) => detail).filter((detail) => detail !== 'to next'),
      ['by 1d 0h'],
      'how far'
    )
    expectEqual(items.length, moves + 1, 'and the one that was refused, because nothing was due')
  })
  await promise('the doctor calls the clock what it is, and no trouble', async () => {
    const told = world.sagactl(['--token', 'a word', 'doctor', '-o', 'json'])
    const found = JSON.parse(told.stdout).items.find(({ check }) => check === 'clock')
    expectEqual(found.state, 'fine', told.stdout)
    expect(/virtual clock, which `sagactl time` has moved ahead by 4\dd/.test(found.what), 'its words', found.what)
    expect(Date.now() - begun < 40 * DAY, 'nobody waited')
  })
  dev.kill('SIGTERM')
  expectEqual((await dev.ended).code, 0, 'exit code')
  server.close()
})
