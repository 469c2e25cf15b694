// Steps that wait for a time, for a signal or for a person; and pauses, aborts and the deadline while a step waits. The
// tests run against the real shop, with sagad killed in between; the shop's ledger says what really happened.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  approvalOf,
  decide,
  done,
  finish,
  happened,
  languageTools,
  logOf,
  nothingStands,
  order,
  patient,
  replayAll,
  signal,
  statuses,
  stepOf,
  take,
  undone,
  waitsAt
} from '../lib/language.mjs'
import { World, expect, expectEqual, leaves, promise, run, sleep } from '../lib/world.mjs'

const roles = ['reader', 'agent', 'operator', 'admin']

class Waiting extends World {
  // The helpers call as an administrator; `as` is another role.
  async api(method, path, body, options = {}) {
    return super.api(method, path, body, {
      ...options,
      headers: { authorization: `Bearer ${options.as ?? 'admin'}`, ...options.headers }
    })
  }
}

function definitions(shop) {
  const last = take('last', '${ .input.name }')
  const first = take('first', '${ .input.name }')
  const never = { id: 'never', call: 'never' }
  const wait = { id: 'wait', signal: { name: 'go', timeout: '1h' } }
  const ask = {
    id: 'ask',
    approve: { show: { name: '${ .input.name }', n: '${ .steps.first.result.id }' }, timeout: '1h' }
  }
  const sagas = [
    { name: 'sleeps', steps: [first, { id: 'wait', sleep: '${ .input.for }' }, last] },
    { name: 'sleeps_plainly', steps: [first, { id: 'wait', sleep: '2s' }, last] },
    { name: 'sleeps_and_fails', steps: [first, { id: 'wait', sleep: '100ms' }, last, never] },
    { name: 'sleeps_too_long', deadline: '3s', steps: [first, { id: 'wait', sleep: '1h' }, last] },
    {
      name: 'sleeps_beside',
      steps: [first, { id: 'wait', after: ['first'], sleep: '1h' }, { id: 'never', after: ['first'], call: 'never' }]
    },
    { name: 'sleeps_perhaps', steps: [first, { id: 'wait', when: '${ .input.tired }', sleep: '1h' }, last] },

    {
      name: 'waits',
      steps: [first, wait, { ...last, with: { sku: '${ .steps.wait.result.sku }', qty: 1 } }],
      output: '${ .steps.wait.result }'
    },
    {
      name: 'waits_twice',
      steps: [
        { id: 'nap', call: 'nap' },
        { id: 'one', signal: { name: 'go' } },
        { id: 'two', signal: { name: 'go' } }
      ],
      output: '${ [.steps.one.result, .steps.two.result] }'
    },
    {
      name: 'waits_beside',
      steps: [
        { id: 'one', after: [], signal: { name: 'a.b' } },
        { id: 'two', after: [], signal: { name: 'c-d' } }
      ],
      output: '${ [.steps.one.result, .steps.two.result] }'
    },
    { name: 'waits_shortly', steps: [first, { id: 'wait', signal: { name: 'go', timeout: '300ms' } }, last] },
    {
      name: 'waits_or_not',
      steps: [first, { id: 'wait', signal: { name: 'go', timeout: '300ms' }, on_failure: 'continue' }, last],
      output: '${ .steps.wait.result }'
    },
    {
      name: 'waits_or_asks',
      steps: [first, { id: 'wait', signal: { name: 'go', timeout: '300ms' }, on_failure: 'escalate' }, last]
    },
    { name: 'waits_too_long', deadline: '3s', steps: [first, wait, last] },

    { name: 'asks', steps: [first, ask, last], output: '${ .steps.ask.result }' },
    { name: 'asks_boss', steps: [first, { id: 'ask', approve: { roles: ['admin'] } }, last] },
    { name: 'asks_agent', steps: [first, { id: 'ask', approve: { roles: ['agent', 'admin'] } }, last] },
    { name: 'asks_another', steps: [first, { id: 'ask', approve: { not_by: 'starter' } }, last] },
    { name: 'asks_within', steps: [{ id: 'inner', saga: 'asks_another', with: { name: '${ .input.name }' } }] },
    {
      name: 'asks_next',
      steps: [first],
      then: [{ saga: 'asks_another', id: '${ .input.name }', input: { name: '${ .input.name }-next' } }]
    },
    { name: 'asks_shortly', steps: [first, { id: 'ask', approve: { timeout: '300ms' } }, last] },
    { name: 'asks_or_not', steps: [first, { ...ask, on_failure: 'continue' }, last] },
    { name: 'asks_too_long', deadline: '3s', steps: [first, ask, last] },

    { name: 'pauses', deadline: '8s', steps: [first, { id: 'wait', sleep: '3s' }, last] },
    { name: 'undoes_slowly', steps: [take('one', '${ .input.name }'), take('two', '${ .input.name }'), never] },
    { name: 'rests', steps: [first, { id: 'nap', call: 'long_nap' }, last] },
    { name: 'unsure', steps: [first, { id: 'doubt', call: 'guess', with: { sku: 'doubt', qty: 1 } }] }
  ]
  const guess = {
    name: 'guess',
    effect: 'once',
    timeout: '2s',
    http: { method: 'POST', url: `${shop}/reservations`, body: '${ .args }' },
    compensate: { tool: 'give', with: { id: '${ .result.body.id }' } }
  }
  const longNap = { name: 'long_nap', effect: 'read', builtin: { do: 'sleep', for: '2s' } }
  return { tools: [...languageTools(shop), guess, longNap], sagas }
}

await run(new Waiting(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  const tokens = join(world.directory, 'tokens.json')
  writeFileSync(
    tokens,
    JSON.stringify({
      tokens: roles.map((role) => ({
        name: role,
        sha256: createHash('sha256').update(role).digest('hex'),
        role,
        namespace: 'default'
      }))
    }),
    { mode: 0o600 }
  )
  process.env.SAGACTL_TOKEN = 'admin'
  await world.startSagad(['--tokens', tokens])
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
  const start = (saga, name, more = {}) => world.start(saga, { name, ...more })
  const both = ['do first', 'do last']
  const aborted = async (id) => {
    const answer = await order(world, id, 'abort')
    expect([200, 202].includes(answer.status), 'the answer to abort', answer.text)
    return finish(world, id, 'compensated')
  }

  // --- sleep ---

  await promise('sleep: the saga waits as long as it says, and goes on', async () => {
    const id = await start('sleeps_plainly', 's1')
    expectEqual((await waitsAt(world, id, 'wait')).status, 'waiting', 'the saga')
    const saga = await finish(world, id, 'completed')
    const slept = Date.parse(stepOf(saga, 'last').started_at) - Date.parse(stepOf(saga, 'first').ended_at)
    expect(slept >= 2000 && slept < 8000, 'how long it slept', slept)
    expectEqual([happened(world, saga), stepOf(saga, 'wait').result], [both, null], 'what happened')
  })
  await promise('sleep: a duration or an instant from the input; one that has passed is over at once', async () => {
    for (const [name, until, least] of [
      ['s2', () => '300ms', 300],
      ['s3', () => new Date(Date.now() + 4000).toISOString(), 1000],
      ['s4', () => '2001-01-01T00:00:00Z', 0]
    ]) {
      const begun = Date.now()
      const saga = await finish(world, await start('sleeps', name, { for: until() }), 'completed')
      expect(Date.now() - begun >= least, 'how long it took', Date.now() - begun)
      expectEqual(happened(world, saga), both, 'what happened')
    }
    for (const [name, until] of [
      ['s5', 'tomorrow'],
      ['s6', { days: 1 }]
    ]) {
      const saga = await finish(world, await start('sleeps', name, { for: until }), 'compensated')
      expectEqual(
        [stepOf(saga, 'wait').error.code, happened(world, saga)],
        ['arguments', ['do first', 'undo first']],
        'neither of them'
      )
    }
  })
  await promise('sleep: it is over on time although sagad was killed meanwhile', async () => {
    const id = await start('sleeps', 's7', { for: '3s' })
    await waitsAt(world, id, 'wait')
    await world.restart()
    const saga = await finish(world, id, 'completed')
    const slept = Date.parse(stepOf(saga, 'last').started_at) - Date.parse(stepOf(saga, 'first').ended_at)
    expect(slept >= 3000 && slept < 12000, 'how long it slept', slept)
    expectEqual(happened(world, saga), both, 'what happened')
  })
  await promise(
    'sleep: a failure after it undoes what was before it; a failure beside it cuts it short; skipped it takes no time',
    async () => {
      const after = await finish(world, await start('sleeps_and_fails', 's8'), 'compensated')
      expectEqual(undone(world, after), ['last', 'first'], 'what was undone')
      expectEqual(stepOf(after, 'wait').status, 'completed', 'the sleep')
      const beside = await finish(world, await start('sleeps_beside', 's9'), 'compensated')
      expectEqual(
        [stepOf(beside, 'wait').status, stepOf(beside, 'wait').error.code, undone(world, beside)],
        ['failed', 'stopped', ['first']],
        'the sleep'
      )
      const awake = await finish(world, await start('sleeps_perhaps', 's10', { tired: false }), 'completed')
      expectEqual(statuses(awake), { first: 'completed', wait: 'skipped', last: 'completed' }, 'the steps')
    }
  )
  await promise('sleep: abort and the deadline end it', async () => {
    const id = await start('sleeps', 's11', { for: '1h' })
    await waitsAt(world, id, 'wait')
    const gone = await aborted(id)
    expectEqual(happened(world, gone), ['do first', 'undo first'], 'what happened')
    const late = await finish(world, await start('sleeps_too_long', 's12'), 'compensated')
    expectEqual(happened(world, late), ['do first', 'undo first'], 'what happened')
    expect(
      (await logOf(world, late.id)).some(
        (entry) => entry.type === 'saga.failing' && JSON.stringify(entry).includes('deadline')
      ),
      'why'
    )
  })

  // --- signal ---

  await promise('signal: its payload is the result, and what follows uses it', async () => {
    const id = await start('waits', 'g1')
    expectEqual((await waitsAt(world, id, 'wait')).status, 'waiting', 'the saga')
    const told = await signal(world, id, 'go', { sku: 'g1', more: [1, 2.5] })
    expect(told.status === 200 || told.status === 201 || told.status === 202, 'the answer', told.text)
    const saga = await finish(world, id, 'completed')
    expectEqual([saga.output, happened(world, saga)], [{ sku: 'g1', more: [1, 2.5] }, both], 'what came of it')
  })
  await promise(
    'signal: sent before it is awaited it is kept, also over a kill, and taken in the order of arrival',
    async () => {
      const id = await start('waits_twice', 'g2')
      for (const n of [1, 2]) expect((await signal(world, id, 'go', n)).status < 300, 'the answer')
      await world.restart()
      expectEqual((await finish(world, id, 'completed')).output, [1, 2], 'the payloads')
    }
  )
  await promise('signal: each step takes those of its own name', async () => {
    const id = await start('waits_beside', 'g3')
    await waitsAt(world, id, 'two')
    for (const [name, payload] of [
      ['c-d', 'for two'],
      ['a.b', null]
    ])
      expect((await signal(world, id, name, payload)).status < 300, 'the answer')
    expectEqual((await finish(world, id, 'completed')).output, [null, 'for two'], 'the payloads')
  })
  await promise(
    'signal: a repeat under the same Idempotency-Key is one signal, another payload under it is refused',
    async () => {
      const id = await start('waits_twice', 'g4')
      for (const [payload, status] of [
        [{ a: 1, b: 2 }, 2],
        [{ b: 2, a: 1.0 }, 2],
        [{ a: 2 }, 4]
      ]) {
        const told = await signal(world, id, 'go', payload, 'k1')
        expectEqual(Math.floor(told.status / 100), status, `the answer to ${JSON.stringify(payload)}`)
        if (status === 4) expectEqual(told.status, 422, 'the refusal')
      }
      expectEqual((await waitsAt(world, id, 'two')).status, 'waiting', 'it waits for the second one')
      expectEqual(
        Math.floor((await signal(world, id, 'go', { a: 1, b: 2 }, 'k1')).status / 100),
        2,
        'a repeat after it was taken'
      )
      await signal(world, id, 'go', 'second', 'k2')
      expectEqual((await finish(world, id, 'completed')).output, [{ a: 1, b: 2 }, 'second'], 'the payloads')
      const log = await logOf(world, id)
      expectEqual(log.filter((entry) => entry.type === 'signal.received').length, 2, 'signals in the log')
    }
  )
  await promise('signal: many at once under few keys are few', async () => {
    const id = await start('waits_twice', 'g5')
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) => signal(world, id, 'go', n % 2, `once-${n % 2}`))
    )
    expect(
      answers.every((answer) => answer.status < 300),
      'the answers',
      answers.map((answer) => answer.status)
    )
    expectEqual([...(await finish(world, id, 'completed')).output].sort(), [0, 1], 'the payloads')
  })
  await promise(
    'signal: a name that nobody waits for, a saga that is over, one that is undone, one that is not there',
    async () => {
      const id = await start('waits', 'g6')
      await waitsAt(world, id, 'wait')
      const unknown = await signal(world, id, 'stop', 1)
      expect(unknown.status === 422 && unknown.text.includes('go'), 'a name that nobody waits for', unknown.text)
      await aborted(id)
      expectEqual((await signal(world, id, 'go', { sku: 'x' })).status, 409, 'a saga that is over')
      const opened = await world.api('POST', '/v1/sagas', { open: true })
      expectEqual((await signal(world, opened.json.id, 'go', 1)).status, 409, 'an open saga')
      expectEqual((await signal(world, '0192a1b2-0000-7000-8000-000000000000', 'go', 1)).status, 404, 'no saga')
      const raw = await world.api('POST', `/v1/sagas/${id}/signals/go`, undefined, { raw: '{"a":' })
      expectEqual(raw.status, 400, 'no JSON')
      expectEqual((await signal(world, id, 'go', 1)).status, 409, 'again')
    }
  )
  await promise(
    'signal: the timeout is a certain failure: undone, gone on, or asked about, as the step says',
    async () => {
      const undo = await finish(world, await start('waits_shortly', 'g7'), 'compensated')
      expectEqual(
        [stepOf(undo, 'wait').error.code, happened(world, undo)],
        ['timeout', ['do first', 'undo first']],
        'undone'
      )
      const go = await finish(world, await start('waits_or_not', 'g8'), 'completed')
      expectEqual([go.output, happened(world, go)], [null, both], 'gone on')
      const id = await start('waits_or_asks', 'g9')
      await finish(world, id, 'escalated')
      expectEqual((await world.resolve(id, { action: 'skip' })).status, 200, 'the answer to skip')
      expectEqual(happened(world, await finish(world, id, 'completed')), both, 'asked about')
    }
  )
  await promise('signal: abort and the deadline end the wait', async () => {
    const late = await finish(world, await start('waits_too_long', 'g10'), 'compensated')
    expectEqual(
      [stepOf(late, 'wait').error.code, happened(world, late)],
      ['stopped', ['do first', 'undo first']],
      'what happened'
    )
    const id = await start('waits', 'g11')
    await waitsAt(world, id, 'wait')
    expectEqual(happened(world, await aborted(id)), ['do first', 'undo first'], 'what happened')
  })

  // --- approve ---

  await promise('approve: bound to what was shown; another hash is refused, the decision is the result', async () => {
    const id = await start('asks', 'p1')
    const waiting = await waitsAt(world, id, 'ask')
    const approval = await approvalOf(world, id)
    expectEqual(
      [approval.step, approval.status, approval.show],
      ['ask', 'open', { name: 'p1', n: stepOf(waiting, 'first').result.id }],
      'the question'
    )
    const canonical = JSON.stringify({ n: approval.show.n, name: approval.show.name })
    expectEqual(approval.hash, createHash('sha256').update(canonical).digest('hex'), 'the hash of its canonical form')
    expect(Date.parse(approval.expires_at) > Date.now() + 3500000, 'when it is over', approval)
    const other = await decide(world, approval, 'approve', { hash: createHash('sha256').update('other').digest('hex') })
    expectEqual(other.status, 409, 'another hash')
    await world.restart()
    const told = await decide(world, approval, 'approve', { hash: approval.hash, note: 'looks right' })
    expectEqual(told.status, 200, 'the decision')
    const saga = await finish(world, id, 'completed')
    expectEqual(saga.output, { decision: 'approve', actor: 'admin', note: 'looks right' }, 'the result')
    for (const decision of ['approve', 'refuse'])
      expectEqual((await decide(world, approval, decision)).status, 409, `${decision} once more`)
    expectEqual(
      (await world.api('GET', `/v1/approvals/${approval.n}`)).json?.status ?? 'approved',
      'approved',
      'the approval afterwards'
    )
  })
  await promise('approve: a refusal fails the step for certain', async () => {
    for (const [saga, status, what] of [
      ['asks', 'compensated', ['do first', 'undo first']],
      ['asks_or_not', 'completed', both]
    ]) {
      const id = await start(saga, `p2-${saga}`)
      expectEqual(
        (await decide(world, await approvalOf(world, id), 'refuse', { note: 'too dear' })).status,
        200,
        'the decision'
      )
      const ended = await finish(world, id, status)
      expectEqual([stepOf(ended, 'ask').error.code, happened(world, ended)], ['refused', what], 'what came of it')
    }
  })
  await promise('approve: who may', async () => {
    for (const [saga, may, mayNot] of [
      ['asks', 'operator', ['reader', 'agent']],
      ['asks_boss', 'admin', ['agent', 'operator']],
      ['asks_agent', 'agent', ['reader']]
    ]) {
      const id = await start(saga, `p3-${saga}`)
      const approval = await approvalOf(world, id)
      for (const as of mayNot) {
        const told = await world.api('POST', `/v1/approvals/${approval.n}`, { decision: 'approve', note: 'me' }, { as })
        expectEqual(told.status, 403, `${as} for ${saga}`)
      }
      expectEqual(
        (await world.api('POST', `/v1/approvals/${approval.n}`, { decision: 'approve', note: 'me' }, { as: may }))
          .status,
        200,
        `${may} for ${saga}`
      )
      await finish(world, id, 'completed')
    }
  })
  await promise('approve: not by whoever started the saga; where nobody knows who did, by an admin alone', async () => {
    const begin = async (saga, name, as) => {
      const told = await world.api('POST', '/v1/sagas', { saga, input: { name } }, { as })
      expectEqual(told.status, 201, 'the start', told.text)
      return told.json.id
    }
    const answer = (approval, decision, as) =>
      world.api('POST', `/v1/approvals/${approval.n}`, { decision, note: 'read it' }, { as })
    for (const saga of ['asks_another', 'asks_within']) {
      for (const [starter, other] of [
        ['operator', 'admin'],
        ['admin', 'operator']
      ]) {
        const id = await begin(saga, `p8-${saga}-${starter}`, starter)
        const approval = await approvalOf(world, id)
        expectEqual(approval.not_by, 'starter', 'what it says')
        const told = await answer(approval, 'approve', starter)
        expectEqual(
          [told.status, told.json.detail],
          [403, `${starter} started this saga, and so may not approve this. Have another person approve it.`],
          'of their own saga'
        )
        expectEqual((await answer(approval, 'approve', other)).status, 200, 'somebody else')
        await finish(world, id, 'completed')
      }
    }
    const refused = await begin('asks_another', 'p8-refused', 'operator')
    expectEqual((await answer(await approvalOf(world, refused), 'refuse', 'operator')).status, 200, 'a refusal')
    await finish(world, refused, 'compensated')

    const older = await begin('asks_another', 'p8-older', 'agent')
    world.sql(`update sagad.saga set started_by = null where id = '${older}'`)
    await finish(world, await begin('asks_next', 'p8-follower', 'operator'), 'completed')
    let follower
    for (const end = Date.now() + 60_000; !follower; await sleep(30)) {
      const listed = await world.read('/v1/sagas?saga=asks_another&business_id=p8-follower')
      follower = listed.json?.items?.[0]?.id
      expect(Date.now() < end, 'the follower begins', listed.text)
    }
    for (const id of [older, follower]) {
      const approval = await approvalOf(world, id)
      const told = await answer(approval, 'approve', 'operator')
      expectEqual(
        [told.status, told.json.detail],
        [
          403,
          'nobody knows who started this saga, and whoever did may not approve this. Have somebody with the ' +
            'role admin approve it.'
        ],
        'who may be the starter'
      )
      expectEqual((await answer(approval, 'approve', 'admin')).status, 200, 'an admin')
      await finish(world, id, 'completed')
    }
  })
  await promise('approve: of many who decide at once one does', async () => {
    const id = await start('asks', 'p4')
    const approval = await approvalOf(world, id)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => decide(world, approval, n % 2 ? 'approve' : 'refuse'))
    )
    const counts = [200, 409].map((status) => answers.filter((answer) => answer.status === status).length)
    expectEqual(counts, [1, 11], 'the answers')
    const won = answers.findIndex((answer) => answer.status === 200) % 2 ? 'completed' : 'compensated'
    await finish(world, id, won)
  })
  await promise('approve: over in time, or cut short: the question is closed', async () => {
    const late = await finish(world, await start('asks_shortly', 'p5'), 'compensated')
    expectEqual(stepOf(late, 'ask').error.code, 'timeout', 'the question')
    const gone = await start('asks', 'p6')
    const approval = await approvalOf(world, gone)
    await aborted(gone)
    expectEqual((await decide(world, approval, 'approve')).status, 409, 'a decision afterwards')
    const out = await finish(world, await start('asks_too_long', 'p7'), 'compensated')
    expectEqual(stepOf(out, 'ask').error.code, 'stopped', 'the deadline')
    expectEqual((await world.api('GET', '/v1/approvals?status=open')).json.items, [], 'open questions')
    expectEqual(
      (await world.api('POST', '/v1/approvals/123456789', { decision: 'approve', note: 'x' })).status,
      404,
      'no such question'
    )
  })

  // --- pause ---

  const pause = async (id) => {
    const told = await order(world, id, 'pause')
    expectEqual(told.status, 200, 'the answer to pause')
    expectEqual((await world.saga(id)).status, 'paused', 'the saga')
  }
  const resume = async (id) => expectEqual((await order(world, id, 'resume')).status, 200, 'the answer to resume')

  await promise('pause stops the clocks of sleep and deadline, also over a kill', async () => {
    const begun = Date.now()
    const id = await start('pauses', 'u1')
    await waitsAt(world, id, 'wait')
    await pause(id)
    await world.restart()
    const stood = 8500 // longer than the deadline
    await sleep(Math.max(0, stood - (Date.now() - begun)))
    expectEqual((await world.saga(id)).status, 'paused', 'the saga')
    await resume(id)
    const saga = await finish(world, id, 'completed')
    const log = await logOf(world, id)
    const at = (type) => Date.parse(log.find((entry) => entry.type === type).at)
    const held = at('saga.resumed') - at('saga.paused')
    const slept = Date.parse(stepOf(saga, 'last').started_at) - Date.parse(stepOf(saga, 'first').ended_at)
    expect(slept >= 3000 + held - 5 && slept < 7000 + held, 'how long it slept, the pause left out', { slept, held })
  })
  await promise('pause: what is under way ends, and nothing begins; signals are kept, decisions taken', async () => {
    const id = await start('rests', 'u2')
    await world.until(id, ['running'])
    await pause(id)
    await sleep(2500)
    const held = await world.saga(id)
    expectEqual([held.status, stepOf(held, 'last').status], ['paused', 'pending'], 'the saga')
    await resume(id)
    expectEqual(happened(world, await finish(world, id, 'completed')), both, 'what happened')

    const waits = await start('waits', 'u3')
    await waitsAt(world, waits, 'wait')
    await pause(waits)
    expect((await signal(world, waits, 'go', { sku: 'u3' })).status < 300, 'the answer to the signal')
    await sleep(200)
    expectEqual(done(world, await world.saga(waits)), ['first'], 'what happened while it was paused')
    await resume(waits)
    await finish(world, waits, 'completed')

    const asks = await start('asks', 'u4')
    const approval = await approvalOf(world, asks)
    await pause(asks)
    expectEqual((await decide(world, approval, 'approve')).status, 200, 'the decision')
    await sleep(200)
    expectEqual(
      [(await world.saga(asks)).status, done(world, await world.saga(asks))],
      ['paused', ['first']],
      'what happened while it was paused'
    )
    await resume(asks)
    await finish(world, asks, 'completed')
  })
  await promise('pause: in the middle of undoing', async () => {
    await world.fault({ route: 'releases', mode: 'slow', ms: 2000, times: 1 })
    const id = await start('undoes_slowly', 'u5')
    await world.until(id, ['compensating'])
    await pause(id)
    await sleep(2500)
    const held = await world.saga(id)
    expect(stepOf(held, 'one').status === 'completed', 'the second undo has not begun', statuses(held))
    await resume(id)
    expectEqual(undone(world, await finish(world, id, 'compensated')), ['two', 'one'], 'what was undone')
    await world.noFaults()
  })
  await promise('pause: who may, when not, twice', async () => {
    const id = await start('waits', 'u6')
    await waitsAt(world, id, 'wait')
    expectEqual(
      (await world.api('POST', `/v1/sagas/${id}/pause`, { note: 'x' }, { as: 'agent' })).status,
      403,
      'an agent'
    )
    expectEqual((await order(world, id, 'resume')).status, 409, 'resume of one that is not paused')
    await pause(id)
    expect([200, 409].includes((await order(world, id, 'pause')).status), 'pause of one that is paused')
    expectEqual(
      happened(world, await aborted(id)),
      ['do first', 'undo first'],
      'abort of one that is paused: undone, and not paused any more'
    )
    expectEqual((await order(world, id, 'pause')).status, 409, 'pause of one that is over')
    const opened = await world.api('POST', '/v1/sagas', { open: true })
    const paused = await order(world, opened.json.id, 'pause')
    expectEqual(paused.status, 200, 'pause of an open saga')
    const call = await world.api('POST', `/v1/sagas/${opened.json.id}/calls`, { tool: 'say', args: {} })
    expectEqual(call.status, 409, 'a call in a paused open saga')
    await resume(opened.json.id)
    expectEqual(
      (await world.api('POST', `/v1/sagas/${opened.json.id}/calls`, { tool: 'say', args: {} })).status,
      200,
      'a call after it'
    )
  })

  // --- abort ---

  await promise('abort: in every state', async () => {
    const running = await start('rests', 'a1') // under way
    await world.until(running, ['running'])
    nothingStands(world, await aborted(running))
    await world.fault({ route: 'reservations', mode: '503', times: 3, match: '"a2"' })
    const retrying = await start('waits', 'a2')
    nothingStands(world, await aborted(retrying))
    await world.noFaults()
    await world.fault({ route: 'releases', mode: 'slow', ms: 2000, times: 1 })
    const undoing = await start('undoes_slowly', 'a3')
    await world.until(undoing, ['compensating'])
    expect([200, 202].includes((await order(world, undoing, 'abort')).status), 'abort of one that is being undone')
    expectEqual(undone(world, await finish(world, undoing, 'compensated')), ['two', 'one'], 'what was undone')
    await world.noFaults()
    await world.fault({ route: 'reservations', mode: 'reset-after-effect', times: 1, match: '"doubt"' })
    const unsure = await start('unsure', 'a4')
    await finish(world, unsure, 'escalated')
    expect([200, 202].includes((await order(world, unsure, 'abort')).status), 'abort of one that waits for a verdict')
    expectEqual((await world.resolve(unsure, { action: 'resolve', as: 'not_happened' })).status, 200, 'the verdict')
    expectEqual(stepOf(await finish(world, unsure, 'compensated'), 'first').status, 'compensated', 'what was undone')
    const over = await finish(world, await start('sleeps', 'a5', { for: '0ms' }), 'completed')
    expectEqual((await order(world, over.id, 'abort')).status, 409, 'abort of one that is over')
  })

  await promise('every log folds to the stored state', () => replayAll(world))
  await leaves(world)
})
