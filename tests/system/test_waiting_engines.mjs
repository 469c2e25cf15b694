// Two engines over one database. One of them parks waiting sagas, and signals, decisions, pauses, locks and followers
// reach them through either. Then one engine is killed, and the other goes on where it was.
import {
  approvalOf,
  decide,
  finish,
  happened,
  languageTools,
  order,
  signal,
  stepOf,
  take,
  undone,
  waitsAt
} from '../lib/language.mjs'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const parkAfter = ['--park-after', '300ms']

class Both extends World {
  // Sends each request to the next engine that lives.
  api(method, path, body, options) {
    const alive = this.engines.filter((engine) => !engine.child.end)
    this.port = alive[(this.turn = ((this.turn ?? 0) + 1) % alive.length)].port
    return super.api(method, path, body, options)
  }

  async second() {
    this.engines.push({ name: `sagad-${this.engines.length}`, port: await freePort() })
    this.launchEngine(this.engines.at(-1))
    await this.engineReady(this.engines.at(-1))
    while (!(await this.asks(this.engines.at(-1), '/v1/sagas'))) await sleep(50)
  }

  async parked(id, seconds = 20) {
    for (const end = Date.now() + seconds * 1000; ; await sleep(50)) {
      if (this.sql(`select count(*) from sagad.due where saga = '${id}' and what = 'parked'`) === '1') return
      expect(Date.now() < end, 'the saga is parked')
    }
  }
}

function definitions(shop) {
  const first = take('first', 'first-${ .input.name }')
  const last = take('last', 'last-${ .input.name }')
  return {
    tools: languageTools(shop),
    sagas: [
      { name: 'waits', steps: [first, { id: 'go', signal: { name: 'go' } }, last], output: '${ .steps.go.result }' },
      { name: 'asks', steps: [first, { id: 'ask', approve: { show: '${ .input.name }' } }, last] },
      { name: 'sleeps', steps: [first, { id: 'rest', sleep: '${ .input.for }' }, last] },
      {
        name: 'holds',
        locks: ['thing:${ .input.thing }'],
        steps: [first, { id: 'go', signal: { name: 'go' } }],
        then: [{ saga: 'waits', id: 'after:${ .input.name }', input: { name: 'after-${ .input.name }' } }]
      }
    ]
  }
}

await run(new Both(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startEngines(1, parkAfter)
  await world.second()
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
  await sleep(300) // until both know them
  const start = (saga, name, more = {}) => world.start(saga, { name, ...more })
  const both = ['do first', 'do last']
  const follower = async (name) => {
    for (const end = Date.now() + 20000; ; await sleep(50)) {
      const [found] = (await world.api('GET', `/v1/sagas?business_id=after:${name}`)).json.items
      if (found) return found.id
      expect(Date.now() < end, 'the follower is there')
    }
  }

  const all = async (round) => {
    await promise(`${round}: signals through either reach a parked saga, each key once`, async () => {
      const id = await start('waits', `w-${round}`)
      await waitsAt(world, id, 'go')
      await world.parked(id)
      const answers = await Promise.all([1, 2, 3, 4].map(() => signal(world, id, 'go', { n: 1 }, 'k')))
      expect(
        answers.every((answer) => answer.status < 300),
        'the answers',
        answers.map((answer) => answer.text)
      )
      const saga = await finish(world, id, 'completed')
      expectEqual([saga.output, happened(world, saga)], [{ n: 1 }, both], 'what came of it')
      expectEqual((await signal(world, id, 'go', { n: 1 }, 'k')).status, 200, 'a repeat after the end')
      expectEqual((await signal(world, id, 'go', { n: 2 }, 'other')).status, 409, 'another one after the end')
      expectEqual((await signal(world, id, 'nothing', 1)).status >= 400, true, 'a name that nobody waits for')
    })
    await promise(`${round}: decisions through either on a parked saga: one holds`, async () => {
      const id = await start('asks', `a-${round}`)
      const approval = await approvalOf(world, id)
      await world.parked(id)
      const answers = await Promise.all(
        ['approve', 'approve', 'approve', 'approve'].map((decision) =>
          decide(world, approval, decision, { hash: approval.hash })
        )
      )
      expectEqual(answers.map((answer) => answer.status).sort(), [200, 409, 409, 409], 'the answers')
      expectEqual(happened(world, await finish(world, id, 'completed')), both, 'what happened')
    })
    await promise(`${round}: pause, resume and abort through either`, async () => {
      const id = await start('waits', `p-${round}`)
      await waitsAt(world, id, 'go')
      await world.parked(id)
      expectEqual((await order(world, id, 'pause')).status, 200, 'the answer to pause')
      expectEqual((await world.saga(id)).status, 'paused', 'the saga')
      await world.parked(id)
      expect((await signal(world, id, 'go', 'kept')).status < 300, 'the answer to the signal')
      expectEqual((await order(world, id, 'resume')).status, 200, 'the answer to resume')
      expectEqual((await finish(world, id, 'completed')).output, 'kept', 'the output')
      const gone = await start('waits', `g-${round}`)
      await waitsAt(world, gone, 'go')
      await world.parked(gone)
      expect([200, 202].includes((await order(world, gone, 'abort')).status), 'the answer to abort')
      expectEqual(undone(world, await finish(world, gone, 'compensated')), ['first'], 'what was undone')
    })
    await promise(`${round}: a lock between sagas, in line and parked, and a follower`, async () => {
      const line = []
      for (const name of ['one', 'two', 'three']) {
        line.push(await start('holds', `${name}-${round}`, { thing: round }))
        if (name === 'one') await waitsAt(world, line[0], 'go')
        await world.parked(line.at(-1)) // so it also has its place in line
      }
      for (const [i, id] of line.entries()) {
        await waitsAt(world, id, 'go')
        expect((await signal(world, id, 'go', null)).status < 300, 'the answer to the signal')
        await finish(world, id, 'completed')
        const after = await follower(`${['one', 'two', 'three'][i]}-${round}`)
        expect((await signal(world, after, 'go', i)).status < 300, 'the answer to the signal') // early or not
        expectEqual((await finish(world, after, 'completed')).output, i, 'the output of the follower')
      }
    })
  }
  await all('two')

  const waiting = await start('waits', 'over')
  const asking = await start('asks', 'over')
  const sleeping = await start('sleeps', 'over', { for: '14s' })
  const held = await start('holds', 'over', { thing: 'over' })
  await waitsAt(world, held, 'go')
  const next = await start('holds', 'next', { thing: 'over' })
  for (const [id, step] of [
    [waiting, 'go'],
    [asking, 'ask'],
    [sleeping, 'rest']
  ])
    await waitsAt(world, id, step)
  for (const id of [waiting, asking, sleeping, held, next]) await world.parked(id)
  const [owner] = world.engines
  await promise('the owner is killed: the other one takes over, with nothing loaded and nothing lost', async () => {
    const stopped = Date.now()
    await world.killEngine(owner)
    // It is ready with its own half already. The test waits until it owns and has loaded all shards.
    const hasAll = async () =>
      world.sql('select count(distinct owner_identity) from sagad.shard') === '1' &&
      world.asks(world.engines[1], '/readyz')
    for (const end = Date.now() + 30000; !(await hasAll()); await sleep(50))
      expect(Date.now() < end, 'the other one has taken over')
    console.log(`# taken over after ${Date.now() - stopped} ms`)
    expect((await signal(world, waiting, 'go', 'late')).status < 300, 'the answer to the signal')
    expectEqual((await finish(world, waiting, 'completed')).output, 'late', 'the output')
    expectEqual((await decide(world, await approvalOf(world, asking), 'approve')).status, 200, 'the decision')
    await finish(world, asking, 'completed')
    expectEqual((await world.saga(next)).steps[0].status, 'pending', 'who stands in line')
    expect((await signal(world, held, 'go', null)).status < 300, 'the answer to the signal')
    await waitsAt(world, next, 'go')
    const slept = await finish(world, sleeping, 'completed', 40)
    const late = Date.parse(stepOf(slept, 'rest').ended_at) - Date.parse(stepOf(slept, 'rest').started_at) - 14000
    expect(late >= 0 && late < 3000, 'it slept as long as it should', late)
  })
  await world.second()
  await all('again')
  await promise('every log folds to the stored state', () => {
    const replayed = world.sagactl(['replay', '--all'])
    expect(replayed.status === 0, 'sagactl replay --all', replayed.stdout.slice(-1500) + replayed.stderr.slice(-500))
  })
})
