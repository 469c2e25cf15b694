// Locks on business keys, and the sagas that follow: between sagas and over kills, by the shop's ledger and the log.
import {
  finish,
  happened,
  languageTools,
  logOf,
  nothingStands,
  order,
  replayAll,
  signal,
  stepOf,
  take,
  waitsAt
} from '../lib/language.mjs'
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, expect, expectEqual, leaves, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 5 : 50
const parents = quick ? 24 : 100

class Locks extends World {
  // A lock shows "waiting" as soon as the saga wants it. The saga has its place in line once PostgreSQL has given it.
  async inLine(id) {
    for (
      const end = Date.now() + 20000;
      this.sql(`select count(*) from sagad.lock where saga = '${id}'`) === '0';
      await sleep(30)
    )
      expect(Date.now() < end, 'the saga has its place in line')
  }

  // Does the saga stay in line for this long?
  async staysInLine(id, ms = 300) {
    for (const end = Date.now() + ms; Date.now() < end; await sleep(50)) {
      const saga = await this.saga(id)
      expect(saga.status === 'waiting' && saga.steps[0].status === 'pending', 'the saga stands in line', saga)
    }
  }
}

function definitions(shop) {
  const key = 'thing:${ .input.thing }'
  const act = take('act', '${ .input.name }')
  const wait = { id: 'wait', signal: { name: 'go' } }
  return {
    tools: languageTools(shop),
    sagas: [
      { name: 'holds', locks: [key], steps: [act, wait] },
      { name: 'holds_fails', locks: [key], steps: [act, wait, { id: 'never', call: 'never' }] },
      { name: 'asks_once', locks: [{ key, when_taken: 'fail' }], steps: [act] },
      {
        name: 'passes',
        locks: [key],
        steps: [act, { id: 'rest', sleep: '20ms' }, { ...act, id: 'again', scope: 'again' }]
      },
      { name: 'kept_shortly', retention: '1500ms', locks: [key], steps: [act] },
      { name: 'waits_shortly', deadline: '500ms', locks: [key], steps: [act] },
      {
        name: 'two',
        locks: ['thing:${ .input.one }', 'thing:${ .input.other }'],
        steps: [act, { id: 'rest', sleep: '${ .input.rest // "10ms" }' }]
      },
      { name: 'empty', locks: ['${ .input.thing }'], steps: [act] },
      {
        name: 'unsure',
        locks: [key],
        steps: [{ id: 'doubt', call: 'guess', with: { sku: '${ .input.name }', qty: 1 } }]
      },

      {
        name: 'leads',
        steps: [act],
        then: [
          {
            saga: 'follows',
            id: 'after:${ .input.name }',
            input: { name: '${ .input.name }', led_by: '${ .saga.id }', taken: '${ .steps.act.result.id }' }
          },
          { saga: 'follows', input: { name: 'second-${ .input.name }', led_by: '${ .saga.id }', taken: '-' } }
        ]
      },
      {
        name: 'leads_nowhere',
        steps: [act, { id: 'never', call: 'never' }],
        then: [{ saga: 'follows', input: { name: 'x', led_by: 'x', taken: 'x' } }]
      },
      { name: 'leads_badly', steps: [act], then: [{ saga: 'follows', input: { name: '${ .input.name | keys }' } }] },
      { name: 'leads_refused', steps: [act], then: [{ saga: 'follows', input: { name: 5 } }] },
      {
        name: 'leads_terminal',
        steps: [act, { id: 'mail', call: 'mail', with: { to: '${ .input.name }', subject: 'x' } }],
        then: [{ saga: 'follows', input: { name: 'tm-${ .input.name }', led_by: '-', taken: '-' } }]
      },
      {
        name: 'follows',
        input: {
          type: 'object',
          required: ['name', 'led_by'],
          properties: { name: { type: 'string' }, led_by: { type: 'string' } }
        },
        steps: [take('act', 'f-${ .input.name }')]
      }
    ]
  }
}

await run(new Locks(), async (world) => {
  const random = randomFrom(chooseSeed())
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  const document = definitions(`http://127.0.0.1:${world.shopPort}`)
  document.tools.push({
    name: 'guess',
    effect: 'once',
    timeout: '2s',
    http: { method: 'POST', url: `http://127.0.0.1:${world.shopPort}/reservations`, body: '${ .args }' },
    compensate: { tool: 'give', with: { id: '${ .result.body.id }' } }
  })
  await world.define(document)
  const start = (saga, name, thing, more = {}) => world.start(saga, { name, thing, ...more })
  const go = async (id) => expect((await signal(world, id, 'go', null)).status < 300, 'the answer to the signal')
  const failing = async (id) => (await logOf(world, id)).find((entry) => entry.type === 'saga.failing')

  await promise('a lock that is taken is waited for, in the order of arrival', async () => {
    const a = await start('holds', 'a', 'one')
    await waitsAt(world, a, 'wait')
    const b = await start('holds', 'b', 'one')
    await world.inLine(b)
    const third = await start('holds', 'c', 'one')
    await world.inLine(third)
    const other = await start('holds', 'd', 'another')
    await waitsAt(world, other, 'wait')
    await world.staysInLine(b)
    await world.staysInLine(third)
    await go(a)
    await waitsAt(world, b, 'wait')
    await world.staysInLine(third)
    await go(b)
    await waitsAt(world, third, 'wait')
    await go(third)
    await go(other)
    for (const id of [a, b, third, other]) await finish(world, id, 'completed')
  })
  await promise('"fail": taken by another, it fails for certain and does nothing', async () => {
    const a = await start('holds', 'e', 'two')
    await waitsAt(world, a, 'wait')
    const b = await finish(world, await start('asks_once', 'f', 'two'), 'compensated')
    expectEqual(
      [happened(world, b), JSON.stringify(await failing(b.id)).includes('locked')],
      [[], true],
      'what the second did, and why'
    )
    await go(a)
    await finish(world, a, 'completed')
    await finish(world, await start('asks_once', 'g', 'two'), 'completed')
  })
  await promise('released when the saga is compensated, and when it is abandoned', async () => {
    const a = await start('holds_fails', 'h', 'three')
    await waitsAt(world, a, 'wait')
    const b = await start('holds', 'i', 'three')
    await world.inLine(b)
    await go(a)
    await finish(world, a, 'compensated')
    await waitsAt(world, b, 'wait')
    await world.fault({ route: 'reservations', mode: 'reset-after-effect', times: 1, match: '"stuck"' })
    const stuck = await start('unsure', 'stuck', 'four')
    await finish(world, stuck, 'escalated')
    const next = await start('holds', 'j', 'four')
    await world.inLine(next)
    await world.staysInLine(next)
    expectEqual((await world.resolve(stuck, { action: 'abandon' })).status, 200, 'the answer to abandon')
    await waitsAt(world, next, 'wait')
    for (const id of [b, next]) {
      await go(id)
      await finish(world, id, 'completed')
    }
  })
  await promise('a saga holds its lock while it is undone', async () => {
    await world.fault({ route: 'releases', mode: 'slow', ms: 800, times: 1 })
    const a = await start('holds_fails', 'k', 'five')
    await waitsAt(world, a, 'wait')
    const b = await start('holds', 'l', 'five')
    await go(a)
    await world.until(a, ['compensating'])
    await world.staysInLine(b, 200)
    await finish(world, a, 'compensated')
    await waitsAt(world, b, 'wait')
    await go(b)
    await finish(world, b, 'completed')
    await world.noFaults()
  })
  await promise('a saga keeps its lock and its place in line when the engine is killed', async () => {
    const a = await start('holds', 'm', 'six')
    await waitsAt(world, a, 'wait')
    const line = []
    for (const name of ['n', 'o', 'p']) {
      line.push(await start('holds', name, 'six'))
      await world.inLine(line.at(-1))
    }
    await world.restart()
    await world.staysInLine(line[0], 500)
    for (const [i, id] of [a, ...line].entries()) {
      await waitsAt(world, id, 'wait')
      if (line[i]) await world.staysInLine(line[i], 150)
      await go(id)
      if (i === 1) await world.restart()
      await finish(world, id, 'completed')
    }
  })
  await promise('a saga that gives up leaves the line: abort, and the deadline', async () => {
    const a = await start('holds', 'q', 'seven')
    await waitsAt(world, a, 'wait')
    const b = await start('holds', 'r', 'seven')
    await world.inLine(b)
    const c = await start('holds', 's', 'seven')
    await world.inLine(c)
    expect([200, 202].includes((await order(world, b, 'abort')).status), 'the answer to abort')
    expectEqual(happened(world, await finish(world, b, 'compensated')), [], 'what it did')
    const late = await finish(world, await start('waits_shortly', 't', 'seven'), 'compensated')
    expect(JSON.stringify(await failing(late.id)).includes('deadline'), 'why')
    await go(a)
    await waitsAt(world, c, 'wait')
    await go(c)
    await finish(world, c, 'completed')
  })
  await promise('two locks in either order: no deadlock, and never two at once', async () => {
    const ids = []
    for (let n = 0; n < 20; n++) {
      const [one, other] = n % 2 ? ['x', 'y'] : ['y', n % 4 ? 'x' : 'z']
      ids.push(await world.start('two', { name: `w${n}`, one, other }))
    }
    const spans = { x: [], y: [], z: [] }
    for (const id of ids) {
      const saga = await finish(world, id, 'completed', 90)
      const last = (await logOf(world, id)).filter((entry) => entry.type === 'lock.taken').at(-1)
      for (const name of [saga.input.one, saga.input.other])
        spans[name].push([Date.parse(last.at), Date.parse(saga.ended_at), id])
    }
    for (const [name, taken] of Object.entries(spans)) {
      taken.sort((a, b) => a[0] - b[0])
      for (let i = 1; i < taken.length; i++)
        expect(taken[i - 1][1] <= taken[i][0], `${name} is held by one at a time`, taken)
    }
  })
  await promise('the same lock twice is one lock; a lock without a name fails the saga', async () => {
    await finish(world, await world.start('two', { name: 'z1', one: 'same', other: 'same' }), 'completed')
    const bad = await finish(world, await start('empty', 'z2', { no: 'text' }), 'compensated')
    expectEqual(happened(world, bad), [], 'what it did')
  })

  await promise(
    `locks and followers hold through ${kills} kills: one at a time, each follower once`,
    async () => {
      const ids = new Map()
      const begin = async (number) => {
        const name = `k${number}`
        const [saga, input] =
          number % 2 ? ['passes', { name, thing: `hot-${number % 3}` }] : ['leads', { name, thing: '-' }]
        for (;;) {
          const told = await world
            .api('POST', '/v1/sagas', { saga, id: name, input }, { seconds: 10 })
            .catch(() => undefined)
          if (told?.status === 201 || told?.status === 200) return ids.set(told.json.id, [saga, name])
          await sleep(30)
        }
      }
      const starting = []
      for (let kill = 0, number = 0; kill < kills; kill++) {
        for (; number < (parents * (kill + 1)) / kills; number++) starting.push(begin(number))
        await sleep(random() * 200)
        await world.restart()
      }
      await Promise.all(starting)
      const spans = new Map()
      for (const [id, [name, business]] of ids) {
        const saga = await finish(world, id, 'completed', 120)
        if (name === 'passes') {
          const taken = (await logOf(world, id)).filter((entry) => entry.type === 'lock.taken')
          expectEqual(taken.length, 1, 'locks taken')
          if (!spans.has(saga.input.thing)) spans.set(saga.input.thing, [])
          spans.get(saga.input.thing).push([Date.parse(taken[0].at), Date.parse(saga.ended_at)])
          continue
        }
        for (const follower of [`after:${business}`, `then:${id}:1`]) {
          for (const end = Date.now() + 30000; ; await sleep(50)) {
            const found = (await world.api('GET', `/v1/sagas?saga=follows&business_id=${encodeURIComponent(follower)}`))
              .json.items
            expect(found.length < 2, `followers ${follower}`, found)
            if (found.length === 1) expectEqual(found[0].tags.follows, id, `whom ${follower} follows`)
            if (found.length === 1 && found[0].status === 'completed') break
            expect(Date.now() < end, `the follower ${follower} has completed`, found)
          }
        }
      }
      for (const [thing, taken] of spans) {
        taken.sort((a, b) => a[0] - b[0])
        for (let i = 1; i < taken.length; i++)
          expect(taken[i - 1][1] <= taken[i][0], `${thing} is held by one at a time`, taken)
      }
      const takes = world
        .ledger()
        .filter((line) => line.effect === 1 && /^f-(second-)?k\d+$/.test(line.body?.sku ?? ''))
      expectEqual(
        takes.length,
        2 * [...ids.values()].filter(([name]) => name === 'leads').length,
        'what the followers did'
      )
    },
    400
  )
  await promise('followers: with what the saga knows; none after an undo; behind a terminal step', async () => {
    const led = await finish(world, await start('leads', 'l1', '-'), 'completed')
    const [one] = await followers(world, 'after:l1')
    const follower = await finish(world, one.id, 'completed')
    expectEqual(follower.input, { name: 'l1', led_by: led.id, taken: stepOf(led, 'act').result.id }, 'its input')
    const nowhere = await finish(world, await start('leads_nowhere', 'l2', '-'), 'compensated')
    nothingStands(world, nowhere)
    await sleep(300)
    expectEqual(
      (await world.api('GET', `/v1/sagas?business_id=${encodeURIComponent(`then:${nowhere.id}:0`)}`)).json.items,
      [],
      'followers of an undone saga'
    )
    const terminal = await finish(world, await start('leads_terminal', 'l3', '-'), 'completed')
    expectEqual(
      (await followers(world, `then:${terminal.id}:0`)).length,
      1,
      'followers of one that ended with a terminal step'
    )
  })
  await promise(
    'followers: an input that cannot be made, or that their schema refuses, does not undo what is complete',
    async () => {
      const bad = await finish(world, await start('leads_badly', 'l4', '-'), 'completed')
      const ending = (await logOf(world, bad.id)).find((entry) => entry.type === 'saga.completed')
      expect(JSON.stringify(ending).includes('then'), 'the end says it', ending)
      const refused = await finish(world, await start('leads_refused', 'l5', '-'), 'completed')
      await sleep(500)
      expectEqual(
        (await world.api('GET', `/v1/sagas?business_id=${encodeURIComponent(`then:${refused.id}:0`)}`)).json.items,
        [],
        'followers'
      )
      expectEqual(stepOf(refused, 'act').status, 'completed', 'what was done')
    }
  )
  await promise(
    'retention: so long after its end it is there, then it is gone, and its business id is free',
    async () => {
      const kept = await finish(world, await start('passes', 'r0', 'r'), 'completed')
      const id = await world.start('kept_shortly', { name: 'r1', thing: 'r' }, { id: 'business' })
      const saga = await finish(world, id, 'completed')
      expectEqual((await world.api('GET', `/v1/operations/${saga.steps[0].key}`)).status, 200, 'its operation')
      for (const end = Date.now() + 20000; (await world.api('GET', `/v1/sagas/${id}`)).status !== 404; await sleep(100))
        expect(Date.now() < end, 'it is gone')
      expect(Date.now() - Date.parse(saga.ended_at) >= 1500, 'not before its time')
      for (const path of [`/v1/sagas/${id}/log`, `/v1/operations/${saga.steps[0].key}`])
        expectEqual((await world.api('GET', path)).status, 404, path)
      expectEqual(
        world.sql(
          `select (select count(*) from sagad.log where saga = '${id}') +
            (select count(*) from sagad.saga where id = '${id}')`
        ),
        '0',
        'rows of it'
      )
      const again = await world.start('kept_shortly', { name: 'r2', thing: 'r' }, { id: 'business' })
      expect(again !== id, 'another saga under the same business id')
      await finish(world, again, 'completed')
      await world.saga(kept.id)
    }
  )
  await promise('every log folds to the stored state', () => replayAll(world))
  await leaves(world)
})

async function followers(world, business) {
  for (const end = Date.now() + 20000; ; await sleep(50)) {
    const found = (await world.api('GET', `/v1/sagas?saga=follows&business_id=${encodeURIComponent(business)}`)).json
      .items
    if (found.length) return found
    expect(Date.now() < end, `the follower ${business}`)
  }
}
