// Bounds: descriptors, memory, sagas in memory. Accepted work does not suffer when a bound is reached, also at an
// engine that another one asks.
import { connect } from 'node:net'
import { existsSync, readFileSync } from 'node:fs'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const sanitized = readFileSync(process.env.SAGAD).includes('__asan_init')
const files = 500

const definitions = {
  tools: [],
  sagas: [
    { name: 'holds', input: { type: 'object' }, steps: [{ id: 'go', signal: { name: 'go', timeout: '1h' } }] },
    { name: 'naps', input: { type: 'object' }, steps: [{ id: 'nap', sleep: '1500ms' }] }
  ]
}

class Bounds extends World {
  limit // of open files

  launch(name, path, args, options) {
    return name === 'sagad' && this.limit
      ? super.launch(name, 'prlimit', [`--nofile=${this.limit}:${this.limit}`, '--', path, ...args], options)
      : super.launch(name, path, args, options)
  }

  resident() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.sagad.pid}/status`, 'utf8'))[1]) * 1024
  }

  async restart(args, limit) {
    this.sagad.kill('SIGTERM')
    await this.sagad.ended
    this.limit = limit
    await this.startSagad(args)
  }
}

// Opens `count` connections that say nothing. Returns a function that closes them.
async function crowd(port, count) {
  const sockets = []
  for (let i = 0; i < count; i++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    sockets.push(socket)
  }
  await sleep(1000)
  return () => sockets.forEach((socket) => socket.destroy())
}

async function end(world, id) {
  const answer = await world.api('POST', `/v1/sagas/${id}/signals/go`, {})
  expect([200, 201, 202].includes(answer.status), 'a signal is taken', answer)
  await world.until(id, ['completed'])
}

async function descriptors(world) {
  await promise(
    'with few descriptors fewer clients are accepted, and sagas go on while clients take all there are',
    async () => {
      await world.restart(['--calls-max', '64', '--exec-max', '4'], files)
      expect(readFileSync(world.log('sagad'), 'utf8').includes('connections_max_lowered'), 'the log says so')
      const held = await world.start('holds', {})
      const napping = []
      for (let i = 0; i < 20; i++) napping.push(await world.start('naps', {}))
      const leave = await crowd(world.port, files * 2)
      try {
        // A new client soon hears that there is no place, or gets an answer.
        for (let i = 0; i < 5; i++) {
          const begun = Date.now()
          const answer = await world
            .api('GET', '/livez', undefined, { seconds: 20 })
            .catch((error) => ({ status: 0, text: String(error) }))
          expect([200, 503, 0].includes(answer.status) && Date.now() - begun < 20000, 'an answer', answer)
        }
        for (const end = Date.now() + 30000; ; await sleep(200)) {
          if (world.sql("select count(*) from sagad.saga where name = 'naps' and status = 'completed'") === '20') break
          expect(Date.now() < end, 'sagas end while all places are taken')
        }
        expect(!world.sagad.end, 'sagad lives')
      } finally {
        leave()
      }
      for (const end = Date.now() + 30000; (await world.readiness()) !== 200; await sleep(100))
        expect(Date.now() < end, 'there is place again')
      await end(world, held)
    }
  )
  await promise('with too few it says what to raise', async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    world.limit = 100
    const ended = await world.launchSagad().ended
    expect(ended.code !== 0, 'it does not start', ended)
    expect(/ulimit -n/.test(readFileSync(world.log('sagad'), 'utf8')), 'the hint names the limit')
    world.limit = undefined
    await world.startSagad()
  })
}

async function memory(world) {
  await promise('at the bound of memory new sagas are refused, with a time, and what there is goes on', async () => {
    await world.restart([])
    const max = world.resident() + 48 * 1024 * 1024
    await world.restart(['--memory-max', String(max), '--park-after', '1h'])
    const input = { text: 'x'.repeat(200000) }
    const ids = []
    let refused
    for (let i = 0; i < 2000 && !refused; i++) {
      const answer = await world.api('POST', '/v1/sagas', { saga: 'holds', input })
      if (answer.status === 201) ids.push(answer.json.id)
      else refused = answer
      if (i % 20 === 0) await sleep(50)
    }
    expect(refused?.status === 503 && Number(refused.headers.get('retry-after')) >= 1, 'refused with a time', refused)
    expect(/memory/.test(refused.text), 'the sentence says why', refused.text)
    expect(ids.length > 20, 'not from the beginning', ids.length)
    // The engine looks ten times a second. So this is what came in between two looks.
    expect(world.resident() < max + 64 * 1024 * 1024, 'and memory stays about there', world.resident() - max)
    for (const id of ids) await end(world, id)
    if (sanitized) return // the sanitizer keeps freed memory
    for (const end = Date.now() + 30000; ; await sleep(500)) {
      const answer = await world.api('POST', '/v1/sagas', { saga: 'naps', input: {} })
      if (answer.status === 201) break
      expect(answer.status === 503 && Date.now() < end, 'it takes new ones again', answer)
    }
  })
}

async function sagas(world) {
  await promise(
    'with as many sagas as may be in memory, a repeat of a call is answered and a new one is refused',
    async () => {
      await world.restart(['--sagas-max', '32', '--park-after', '1h'])
      const answer = await world.api('POST', '/v1/definitions', {
        sagas: [],
        tools: [
          {
            name: 'mark',
            effect: 'idempotent',
            terminal: true,
            http: { method: 'PUT', url: `http://127.0.0.1:${world.shopPort}/tags/bounds`, body: '${ .args }' }
          }
        ]
      })
      expectEqual(answer.status, 200, 'the tool is taken')
      const call = (step) =>
        world.api('POST', '/v1/operations?wait=10s', { run: 'run-1', tool: 'mark', step, args: { tag: step } })
      expectEqual((await call('one')).status, 200, 'a call')
      let refused
      for (let i = 0; i < 40 && !refused; i++) {
        const start = await world.api('POST', '/v1/sagas', { saga: 'holds', input: {} })
        if (start.status !== 201) refused = start
      }
      expect(refused?.status === 503 && refused.headers.get('retry-after') >= 1, 'starts are refused', refused)
      expectEqual((await call('one')).status, 200, 'the repeat')
      const two = await call('two')
      expect(two.status === 503 && two.headers.get('retry-after') >= 1, 'the new one is refused', two)
    }
  )
}

async function betweenEngines(world) {
  await promise(
    'an engine that is full refuses what another engine sends it, and nothing is left on the way',
    async () => {
      world.sagad.kill('SIGTERM')
      await world.sagad.ended
      await world.startEngines(2, ['--sagas-max', '128', '--park-after', '1h'])
      for (const end = Date.now() + 60000; ; await sleep(200)) {
        // each has its share of the shards
        const { items } = (await world.api('GET', '/v1/engines')).json
        if (items?.length === 2 && items.every((engine) => engine.shards.length === 32)) break
        expect(Date.now() < end, 'two engines share the shards', items)
      }
      const taken = new Set()
      let refused = 0
      for (let i = 0; i < 600 && refused < 60; i++) {
        const answer = await world.api('POST', '/v1/sagas', { saga: 'holds', id: `between-${i}`, input: {} })
        if (answer.status === 201) {
          taken.add(answer.json.id)
          refused = 0
        } else {
          expect(
            answer.status === 503 && Number(answer.headers.get('retry-after')) >= 1,
            'a refusal has its time',
            answer
          )
          refused++
        }
      }
      expect(refused === 60 && taken.size > 60, 'both are full', [refused, taken.size])
      for (const end = Date.now() + 30000; world.sql('select count(*) from sagad.inbox') !== '0'; await sleep(100))
        expect(Date.now() < end, 'nothing waits in the inbox')
      expectEqual(
        Number(world.sql("select count(*) from sagad.saga where business_id like 'between-%'")),
        taken.size,
        'what was acknowledged is there, and no more'
      )
      for (const id of [...taken].slice(0, 40)) await end(world, id)
    }
  )
}

await run(new Bounds(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop(['--no-sync'])])
  await world.startSagad()
  await world.define(definitions)
  if (existsSync('/usr/bin/prlimit') || existsSync('/bin/prlimit')) await descriptors(world)
  await memory(world)
  await sagas(world)
  await betweenEngines(world)
})
