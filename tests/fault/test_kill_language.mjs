// Each construct of the saga language with SIGKILL at each of its commits. The kill comes at the n-th commit with a
// turn of the saga, right before PostgreSQL sees it, or right after PostgreSQL has done it and before sagad knows. Then
// sagad starts again, and the saga must end as it would have, with the right ledger. The short form takes every fifth
// commit and one of the two places, by its seed. Afterwards a crowd of all constructs runs at once, with kills at
// random moments and a shop that misbehaves.
import { Cutter } from '../lib/cutter.mjs'
import { done, happened, languageTools, nothingStands, patient, replayAll, take, undone } from '../lib/language.mjs'
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, effectsByKey, expect, expectEqual, freePort, promise, quick, run, sleep } from '../lib/world.mjs'

const commitsMax = 60 // commits of one saga; there are fewer
const crowd = quick ? 2 : 12 // sagas of each construct
const randomKills = quick ? 5 : 120

const named = (id, more) => take(id, `${id}-\${ .input.name }`, more)
const never = { id: 'never', call: 'never' }
const wait = { id: 'wait', signal: { name: 'go' } }
const list = (items) => `\${ ${JSON.stringify(items)} }`
// Fails for certain when it is "none", even when a kill has interrupted it. A call of another class than a read might
// then have happened.
const check = (shop) => ({
  name: 'check',
  effect: 'read',
  timeout: '5s',
  retry: patient,
  http: { method: 'GET', url: `${shop}/prices/\${ .args.sku }` },
  outcome: { completed: '${ .args.sku != "none" }', no_effect: '${ .args.sku == "none" }' }
})
const children = [
  {
    name: 'pair',
    steps: [named('one'), { id: 'check', call: 'check', with: { sku: '${ .input.sku }' } }, named('two')],
    output: '${ .steps.two.result.id }'
  }
]
const pair = (sku, more) => ({ id: 'pair', saga: 'pair', with: { name: '${ .input.name }', sku }, ...more })
const pairs = (bad, more) => ({
  id: 'pairs',
  for_each: list([
    { name: 'a', sku: 'x' },
    { name: 'b', sku: bad ? 'none' : 'y' }
  ]),
  concurrency: 2,
  saga: 'pair',
  with: '${ .item }',
  ...more
})
const each = (items, more) => ({ ...take('each', '${ .item }'), for_each: list(items), concurrency: 2, ...more })

const everything = {
  locks: ['thing:${ .input.thing }'],
  deadline: '1h',
  compensation: { concurrency: 2 },
  steps: [
    named('a'),
    pairs(true, { after: ['a'], on_failure: 'continue' }),
    { id: 'rest', after: ['a'], sleep: '50ms' },
    named('b', { after: ['rest'], when: '${ .input.no }' }),
    { ...wait, after: ['pairs', 'b'] },
    { id: 'ask', approve: { show: '${ [.steps.pairs.result[]?] | length }' } },
    pair('x'),
    never
  ],
  then: [{ saga: 'follower', input: {} }],
  ends: 'compensated',
  undid: ['pairs#1/one', 'pair/two', 'pair/one', 'pairs#0/two', 'pairs#0/one', 'a'],
  people: async (me) => {
    await me.signal('go', null)
    await me.waits('ask')
    await me.order('pause')
    await me.decide('approve')
    await me.order('resume')
  }
}

// For each construct: the saga, what people do meanwhile, how it ends, and what must have happened (in this order, when
// it is a list).
const constructs = {
  when: {
    steps: [
      named('a'),
      named('b', { when: '${ .input.no }' }),
      named('c', { when: '${ .steps.b.status == "skipped" }' })
    ],
    ends: 'completed',
    what: ['do a', 'do c']
  },
  branches: {
    steps: [named('a'), named('b', { after: ['a'] }), named('c', { after: ['a'] }), { ...never, after: ['a'] }],
    ends: 'compensated',
    compensation: { concurrency: 2 }
  },
  for_each: {
    steps: [each(['x', 'y', 'z']), named('last')],
    ends: 'completed',
    did: ['each#0', 'each#1', 'each#2', 'last']
  },
  for_each_undone: { steps: [each(['x', 'y']), never], ends: 'compensated', undid: ['each#1', 'each#0'] },
  for_each_fails: {
    steps: [named('a'), pairs(true, { concurrency: 1 })],
    ends: 'compensated',
    what: [
      'do a',
      'do pairs#0/one',
      'do pairs#0/two',
      'do pairs#1/one',
      'undo pairs#1/one',
      'undo pairs#0/two',
      'undo pairs#0/one',
      'undo a'
    ]
  },
  child: {
    steps: [named('a'), pair('x'), named('last')],
    ends: 'completed',
    what: ['do a', 'do pair/one', 'do pair/two', 'do last']
  },
  child_undone: { steps: [named('a'), pair('x'), never], ends: 'compensated', undid: ['pair/two', 'pair/one', 'a'] },
  child_goes_on: {
    steps: [named('a'), pair('none', { on_failure: 'continue' }), named('last')],
    ends: 'completed',
    what: ['do a', 'do pair/one', 'undo pair/one', 'do last']
  },
  children_undone: {
    steps: [pairs(false), never],
    ends: 'compensated',
    undid: ['pairs#1/two', 'pairs#1/one', 'pairs#0/two', 'pairs#0/one']
  },
  children_go_on: {
    steps: [pairs(true, { on_failure: 'continue' }), named('last')],
    ends: 'completed',
    undid: ['pairs#1/one']
  },
  sleep: {
    steps: [named('a'), { id: 'wait', sleep: '150ms' }, named('last')],
    ends: 'completed',
    what: ['do a', 'do last']
  },
  signal: {
    steps: [named('a'), wait, { ...take('last', '${ .steps.wait.result }') }],
    ends: 'completed',
    what: ['do a', 'do last'],
    people: async (me) => me.signal('go', 'payload')
  },
  signal_timeout: {
    steps: [named('a'), { id: 'wait', signal: { name: 'go', timeout: '120ms' } }],
    ends: 'compensated',
    what: ['do a', 'undo a']
  },
  approve: {
    steps: [named('a'), { id: 'ask', approve: { show: '${ .input }' } }, named('last')],
    ends: 'completed',
    what: ['do a', 'do last'],
    people: async (me) => me.decide('approve')
  },
  refuse: {
    steps: [named('a'), { id: 'ask', approve: {} }, named('last')],
    ends: 'compensated',
    what: ['do a', 'undo a'],
    people: async (me) => me.decide('refuse')
  },
  lock: {
    locks: ['thing:${ .input.thing }'],
    steps: [named('a')],
    ends: 'completed',
    what: ['do a'],
    people: async (me) => {
      await me.status('waiting')
      await me.helper.signal('go', null)
    },
    helper: 'holder'
  },
  lock_fails: {
    locks: [{ key: 'thing:${ .input.thing }', when_taken: 'fail' }],
    steps: [named('a')],
    ends: 'compensated',
    what: [],
    helper: 'holder',
    after: async (me) => me.helper.signal('go', null)
  },
  then: {
    steps: [named('a')],
    then: [{ saga: 'follower', input: { name: '${ .input.name }' } }],
    ends: 'completed',
    what: ['do a'],
    after: async (me) => me.follower('then', 0)
  },
  pause: {
    steps: [named('a'), wait, named('last')],
    ends: 'completed',
    what: ['do a', 'do last'],
    people: async (me) => {
      await me.waits('wait')
      await me.order('pause')
      await me.signal('go', null)
      await me.order('resume')
    }
  },
  abort: {
    steps: [named('a'), pair('x'), wait],
    ends: 'compensated',
    undid: ['pair/two', 'pair/one', 'a'],
    people: async (me) => {
      await me.waits('wait')
      await me.order('abort')
    }
  },
  deadline: { deadline: '400ms', steps: [named('a'), { id: 'wait', sleep: '1h' }], ends: 'compensated' },
  escalate: {
    steps: [named('a'), { id: 'b', call: 'check', with: { sku: 'none' }, on_failure: 'escalate' }, named('last')],
    ends: 'completed',
    what: ['do a', 'do last'],
    people: async (me) => me.resolve({ action: 'retry', args: { sku: 'there' } })
  },
  ...(quick ? {} : { everything }),
  terminal: {
    steps: [named('a'), { id: 'end', saga: 'mails', with: { name: '${ .input.name }' } }],
    ends: 'completed',
    what: ['do a', 'do end/mail']
  }
}

// One saga under one cut, and what people do to it while sagad comes and goes.
class Case {
  constructor(world, name, construct, n, mode) {
    Object.assign(this, { world, name, construct, n, mode, business: `${name}-${n}-${mode}` })
    this.thing = this.business
    this.patience = { every: 30, ms: 60000 }
  }

  // Asks until an engine answers with anything but 503.
  async ask(method, path, body, headers = {}) {
    for (const end = Date.now() + this.patience.ms; ;) {
      const answer = await this.world.api(method, path, body, { seconds: 5, headers }).catch(() => undefined)
      if (answer && answer.status !== 503) return answer
      expect(Date.now() < end, `${method} ${path}`, answer?.text)
      await sleep(30)
    }
  }

  async start(saga, business) {
    const answer = await this.ask('POST', '/v1/sagas', {
      saga,
      id: business,
      input: { name: business, thing: this.thing, no: false }
    })
    expect([200, 201].includes(answer.status), 'the start', answer.text)
    return answer.json.id
  }

  async saga() {
    const answer = await this.ask('GET', `/v1/sagas/${this.id}`)
    expect(answer.status === 200, 'the saga', answer.text)
    return answer.json
  }

  async poll(what, holds) {
    for (const end = Date.now() + this.patience.ms; ; await sleep(this.patience.every)) {
      const saga = await this.saga()
      if (holds(saga)) return saga
      expect(Date.now() < end, what, saga)
    }
  }

  status(status) {
    return this.poll(`it is ${status}`, (saga) => saga.status === status)
  }

  waits(step) {
    return this.poll(`it waits at ${step}`, (saga) =>
      saga.steps.some((one) => one.id === step && one.status === 'waiting')
    )
  }

  async signal(name, payload) {
    const answer = await this.ask('POST', `/v1/sagas/${this.id}/signals/${name}`, payload, {
      'idempotency-key': this.business
    })
    expect(answer.status < 300 || answer.status === 409, 'the answer to the signal', answer.text)
  }

  // Decides. A repeat after a lost answer finds the approval decided: 409.
  async decide(decision) {
    await this.waits('ask')
    for (const end = Date.now() + this.patience.ms; ; await sleep(this.patience.every)) {
      const open = (await this.ask('GET', '/v1/approvals?status=open&limit=500')).json.items.find(
        (one) => one.saga === this.id
      )
      if (open) {
        const answer = await this.ask('POST', `/v1/approvals/${open.n}`, { decision, note: 'x' })
        expect([200, 409].includes(answer.status), 'the answer to the decision', answer.text)
        return
      }
      if ((await this.saga()).steps.find((one) => one.id === 'ask').status !== 'waiting') return
      expect(Date.now() < end, 'the question is open')
    }
  }

  async order(verb) {
    const answer = await this.ask('POST', `/v1/sagas/${this.id}/${verb}`, { note: 'x' })
    expect([200, 202, 409].includes(answer.status), `the answer to ${verb}`, answer.text)
  }

  async resolve(verdict) {
    await this.status('escalated')
    const open = (await this.ask('GET', '/v1/escalations?status=open&limit=500')).json.items.find(
      (one) => one.saga === this.id
    )
    if (open) {
      const answer = await this.ask('POST', `/v1/escalations/${open.n}/resolve`, {
        ...verdict,
        round: open.round,
        note: 'x'
      })
      expect([200, 409].includes(answer.status), 'the answer to the verdict', answer.text)
    }
  }

  async follower(kind, index) {
    for (const end = Date.now() + this.patience.ms; ; await sleep(this.patience.every)) {
      const found = (
        await this.ask('GET', `/v1/sagas?business_id=${encodeURIComponent(`${kind}:${this.id}:${index}`)}`)
      ).json.items
      expect(found.length < 2, 'one follower', found)
      if (found[0]?.status === 'completed') return
      expect(Date.now() < end, 'the follower has completed', found)
    }
  }

  // Runs the case from the start to the end. The cut is aimed before the saga exists; without `n` there is no cut.
  async live() {
    const { construct } = this
    if (construct.helper) {
      this.helper = new Case(this.world, construct.helper, undefined, this.n, this.mode)
      Object.assign(this.helper, { thing: this.thing, patience: this.patience })
      this.helper.id = await this.helper.start(construct.helper, `${construct.helper}-${this.business}`)
      await this.helper.waits('wait')
    }
    if (this.n > 0) this.cut = this.world.cutter.aim(this.business, this.n, this.mode)
    this.ended = this.go()
    this.ended.catch(() => {}) // judge() looks at it
  }

  async go() {
    this.id = await this.start(this.name, this.business)
    await this.construct.people?.(this)
    await this.poll('it has ended', (saga) => ['completed', 'compensated', 'abandoned'].includes(saga.status))
    await this.construct.after?.(this)
  }

  async judge() {
    const { construct, world } = this
    await this.ended
    const saga = await this.saga()
    const where = `${this.business}`
    expectEqual(saga.status, construct.ends, `the end of ${where}`)
    if (construct.what) expectEqual(happened(world, saga), construct.what, `what happened in ${where}`)
    if (construct.did)
      expectEqual([...done(world, saga)].sort(), [...construct.did].sort(), `what was done in ${where}`)
    if (construct.undid) expectEqual(undone(world, saga), construct.undid, `what was undone in ${where}`)
    if (saga.status === 'compensated') nothingStands(world, saga)
  }
}

await run(new World(), async (world) => {
  const random = randomFrom(chooseSeed())
  await Promise.all([world.startPostgres(), world.startShop()])
  const shop = `http://127.0.0.1:${world.shopPort}`
  world.port = await freePort()
  world.migrate() // the migration is waited for, and so cannot go through a proxy of this process
  world.cutter = new Cutter(world)
  world.dsn = await world.cutter.start()
  await world.startSagad()
  await world.define({
    tools: [...languageTools(shop), check(shop)],
    sagas: [
      ...children,
      { name: 'mails', steps: [{ id: 'mail', call: 'mail', with: { to: '${ .input.name }', subject: 'x' } }] },
      { name: 'holder', locks: ['thing:${ .input.thing }'], steps: [wait] },
      { name: 'follower', steps: [named('f')] },
      ...Object.entries(constructs).map(([name, { steps, locks, then, deadline, compensation }]) => ({
        name,
        steps,
        locks,
        then,
        deadline,
        compensation
      }))
    ]
  })
  const begun = Date.now()
  for (const [name, construct] of Object.entries(constructs)) {
    const cases = []
    await promise(
      `${name}: it ends as it should, killed at each of its commits`,
      async () => {
        let over = false
        for (let n = quick ? 1 + Math.floor(random() * 5) : 1; !over; n += quick ? 5 : 1) {
          expect(n < commitsMax, 'a saga comes to its end')
          for (const mode of quick ? [random() < 0.5 ? 'before' : 'after'] : ['before', 'after']) {
            const one = new Case(world, name, construct, n, mode)
            await one.live()
            const struck = await Promise.race([one.cut.struck.then(() => true), one.ended.then(() => false)])
            cases.push(one)
            if (struck) {
              await world.sagad.ended
              world.launchSagad()
              await world.ready()
            } else {
              over = true
            }
          }
        }
        for (const one of cases) await one.judge()
        console.log(`#   ${cases.length} sagas, ${Math.round((Date.now() - begun) / 1000)} s so far`)
      },
      900
    )
  }
  await promise(
    `a crowd: ${crowd} of each at once, ${randomKills} kills at random moments, a shop that misbehaves`,
    async () => {
      await world.shopSettings({ chaos: { percent: 5, seed: Math.floor(random() * 1e6) } })
      const cases = []
      const begin = async (round) => {
        for (const [name, construct] of Object.entries(constructs)) {
          const one = new Case(world, name, construct, -round, 'crowd')
          one.patience = { every: 400, ms: 240000 }
          cases.push(one)
          await one.live()
          await sleep(10)
        }
      }
      const begins = (async () => {
        for (let round = 1; round <= crowd; round++) await begin(round)
      })()
      for (let kill = 0; kill < randomKills; kill++) {
        await sleep(50 + random() * 400)
        await world.restart()
      }
      await begins
      for (const one of cases) await one.judge()
      await world.shopSettings({ chaos: { percent: 0 } })
    },
    1200
  )
  await promise('no effect happened twice', () => {
    for (const [key, lines] of effectsByKey(world.ledger()))
      expect(lines.length === 1, `effects under the key ${key}`, lines)
    console.log(`# ${world.cutter.strikes} kills`)
  })
  await promise(
    'every log folds to the stored state',
    async () => {
      await world.kill9()
      // sagactl is waited for, and so must not go through a proxy of this process.
      world.dsn = world.dsn.replace('/proxy', '')
      world.launchSagad()
      await world.ready()
      await replayAll(world)
    },
    300
  )
})
