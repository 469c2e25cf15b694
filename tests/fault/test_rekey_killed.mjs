// `sagad rekey` is killed at any moment, again and again, in both directions, while an engine works: the database is
// whole all the time, and a run that is left to its end leaves nothing under the other key.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 25 : 300
const count = quick ? 300 : 3000
const key = (byte) => Buffer.alloc(32, byte).toString('base64')
const inputOf = (i) => ({ canary: `secret-${i}` })

await run(new World(), async (world) => {
  const random = randomFrom(chooseSeed())
  const file = (name, active, names) => {
    const path = join(world.directory, `${name}.json`)
    const keys = Object.fromEntries(names.map((one) => [one, key(Number(one.slice(1)))]))
    writeFileSync(path, JSON.stringify({ active, keys }), { mode: 0o600 })
    return path
  }
  const both = ['k1', 'k2']
  const files = { k1: file('to-k1', 'k1', both), k2: file('to-k2', 'k2', both) }
  await world.startPostgres()
  await world.startEngines(1, ['--payload-keys', file('engine', 'k2', both), '--park-after', '1s'])
  await world.define({
    sagas: [
      { name: 'nap', steps: [{ id: 'nap', sleep: '1s' }] },
      { name: 'waits', steps: [{ id: 'go', signal: { name: 'go', timeout: '1h' } }] }
    ]
  })

  const started = new Map() // business id to the id of its saga
  const start = async (i) => {
    const id = `order-${i}`
    const body = { saga: i % 2 ? 'nap' : 'waits', id, input: inputOf(i) }
    const { status, json, text } = await world.calm(() => world.api('POST', '/v1/sagas', body))
    expect(status === 200 || status === 201, `start ${id}`, text)
    if (started.has(id)) expectEqual(json.id, started.get(id), `the repeated start of ${id}`)
    started.set(id, json.id)
  }
  for (let i = 0; i < count; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => start(i + j)))

  const rekey = (to) =>
    world.launch('rekey', world.sagadPath, ['rekey', '--database', world.dsn, '--payload-keys', files[to]])

  await promise(
    `${kills} runs are killed; starts are repeated meanwhile, and new ones come`,
    async () => {
      let killed = 0,
        ended = 0,
        to = 'k1',
        longest = 1000
      let next = count
      while (killed < kills) {
        const child = rekey(to)
        const end = Date.now() + random() * longest
        while (Date.now() < end && !child.end) {
          await start(Math.floor(random() * next))
          await start(next++)
        }
        if (!child.end) child.kill('SIGKILL')
        const how = await child.ended
        if (how.signal === 'SIGKILL') {
          killed++
          longest = Math.min(longest * 1.1, 20000)
        } else {
          expectEqual(how.code, 0, `a run that was left to its end, to ${to}`)
          ended++
          longest = Math.max(longest * 0.8, 50)
          to = to === 'k1' ? 'k2' : 'k1'
        }
      }
      console.log(`# ${killed} were killed, ${ended} ended before; ${next} sagas`)
    },
    1800
  )

  const columns = [
    ['log', 'payload'],
    ['log', 'rest'],
    ['saga', 'input_digest'],
    ['inbox', 'payload'],
    ['answer', 'body'],
    ['escalation', 'body'],
    ['approval', 'body'],
    ['schedule', 'body']
  ]
  const under = (name) =>
    columns.reduce((sum, [table, column]) => {
      const has = (mark) => `position('${mark}'::bytea in ${column}) > 0`
      const rows = world.sql(`select count(*) from sagad.${table} where ${has(`~${name}.`)} or ${has(`":"${name}.`)}`)
      return sum + Number(rows)
    }, 0)

  const whole = async () => {
    for (const [id, saga] of started) {
      const { json } = await world.read(`/v1/sagas/${saga}`)
      expectEqual(json.input, inputOf(Number(id.slice(6))), `the input of ${id}`)
      expect(['waiting', 'running', 'completed'].includes(json.status), `${id} is ${json.status}`, json)
    }
    const ids = [...started.keys()].map((id) => Number(id.slice(6)))
    for (let i = 0; i < 50; i++) await start(ids[Math.floor(random() * ids.length)])
    const other = { saga: 'nap', id: 'order-1', input: { canary: 'another' } }
    expectEqual((await world.api('POST', '/v1/sagas', other)).json.type, 'urn:sagad:problem:other-input', 'other')
    expectEqual((await world.read('/v1/escalations')).json.items, [], 'cases')
    expectEqual(world.replayAll().status, 0, 'sagactl replay --all')
  }
  await promise('everything is read, under two keys', whole, 600)

  await promise('a run that is left to its end leaves nothing under the old key, which is taken away', async () => {
    const child = rekey('k2')
    expectEqual((await child.ended).code, 0, 'sagad rekey')
    expectEqual(under('k1'), 0, 'rows under k1')
    expect(under('k2') > 2 * count, 'rows under k2')
    const plain = world.sql("select count(*) from sagad.log where position('canary'::bytea in payload) > 0")
    expectEqual(plain, '0', 'plain rows')
    world.sql("delete from sagad.payload_key where name = 'k1'")
    await world.killEngine(world.engines[0])
    file('engine', 'k2', ['k2'])
    world.launchEngine(world.engines[0])
    await world.engineReady(world.engines[0])
    await whole()
  })
})
