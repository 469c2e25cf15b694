// What a person who has to act is told and may say, against a receiver with scripted answers: evidence, probes that are
// out, verdicts.
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

// Each path answers what its list says, the last answer for ever: {status, body (text, bytes or JSON), ms}.
class Receiver {
  constructor() {
    this.answers = new Map()
    this.seen = []
    this.server = createServer((request, response) => {
      const path = request.url.split('?')[0].slice(1)
      const list = this.answers.get(path) ?? [{ status: 200, body: { id: path } }]
      const answer = list.length > 1 ? list.shift() : list[0]
      this.seen.push({ path, method: request.method, key: request.headers['idempotency-key'] })
      request.resume()
      setTimeout(() => {
        if (answer.drop) return request.socket.destroy()
        const isJson = typeof answer.body === 'object' && !Buffer.isBuffer(answer.body)
        const echo = typeof answer.echo === 'string' ? { sent: request.headers[answer.echo] } : answer.body
        const type = isJson ? 'application/json' : 'text/plain'
        response.writeHead(answer.status, { 'content-type': type, 'X-Request-Id': `r-${path}`, 'x-other': 'no' })
        response.end(isJson || answer.echo ? JSON.stringify(echo) : answer.body)
      }, answer.ms ?? 0)
    })
    // A kept connection that is closed just when a call leaves on it makes the outcome of a \`once\` unknown.
    this.server.keepAliveTimeout = 0
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    this.base = `http://127.0.0.1:${this.server.address().port}`
  }

  says(path, ...list) {
    this.answers.set(path, list)
  }

  count(path) {
    return this.seen.filter((one) => one.path === path).length
  }
}

const receiver = new Receiver()
await receiver.listen()

function definitions(base) {
  const post = (path, more) => ({ http: { method: 'POST', url: `${base}/${path}`, body: {} }, timeout: '2s', ...more })
  const probe = {
    http: { method: 'GET', url: `${base}/asked` },
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
    visibility: '0s',
    give_up_after: '1h'
  }
  return {
    tools: [
      { name: 'undo', effect: 'idempotent', ...post('undo') },
      {
        name: 'before',
        effect: 'keyed',
        key: { window: '1h' },
        compensate: { tool: 'undo' },
        cost: 4900000,
        currency: 'EUR',
        ...post('before')
      },
      {
        name: 'free',
        effect: 'keyed',
        key: { window: '1h' },
        compensate: { tool: 'undo' },
        cost: 0,
        currency: 'EUR',
        ...post('free')
      },
      {
        name: 'pay',
        effect: 'once',
        error: '${ .response.body.message }',
        compensate: { tool: 'undo' },
        ...post('pay')
      },
      { name: 'quiet', effect: 'once', record_errors: false, compensate: { tool: 'undo' }, ...post('pay') },
      {
        name: 'short',
        effect: 'once',
        record_errors: 10,
        record_headers: ['x-request-id', 'x-none'],
        compensate: { tool: 'undo' },
        ...post('pay')
      },
      {
        name: 'told',
        effect: 'once',
        compensate: { tool: 'undo' },
        ...post('pay', { http: { method: 'POST', url: `${base}/pay`, headers: { 'x-secret': '${ secret("bank") }' } } })
      },
      {
        name: 'room',
        effect: 'once',
        compensate: { tool: 'undo' },
        probe,
        cost: 250000,
        currency: 'CHF',
        ...post('room')
      }
    ],
    sagas: [
      ...['pay', 'quiet', 'short', 'told', 'room'].map((tool) => ({
        name: `with_${tool}`,
        retention: '30d',
        steps: [
          { id: 'first', call: 'before' },
          { id: 'act', call: tool }
        ]
      })),
      {
        name: 'leaves',
        retention: '30d',
        steps: [
          { id: 'free', call: 'free' },
          { id: 'unpriced', call: 'quiet' },
          { id: 'act', call: 'pay' }
        ]
      },
      {
        name: 'branches',
        steps: [
          { id: 'act', call: 'pay', on_failure: 'continue' },
          { id: 'poor', when: '${ .steps.act.error.body.error == "card_declined" }', call: 'before' },
          { id: 'other', when: '${ .steps.act.error.code != "http-422" }', call: 'before', after: ['act'] }
        ],
        output: {
          code: '${ .steps.act.error.code }',
          why: '${ .steps.act.error.detail }',
          status: '${ .steps.act.error.status }',
          none: '${ .steps.poor.error }'
        }
      }
    ]
  }
}

const refusal = { status: 422, body: { error: 'card_declined', message: 'Your card has insufficient funds.' } }
const stepOf = (saga, id) => saga.steps.find((step) => step.id === id)

await run(new World(), async (world) => {
  await world.startPostgres()
  const secrets = join(world.directory, 'secrets.json')
  writeFileSync(secrets, JSON.stringify({ bank: 'open "sesame"' }), { mode: 0o600 })
  await world.startSagad(['--secrets', secrets])
  await world.define(definitions(receiver.base))
  const started = (name) => world.start(name, {})
  const reached = async (id, path, count) => {
    for (const end = Date.now() + 60000; receiver.count(path) < count; await sleep(10))
      if (Date.now() > end) throw new Error(`${path} was not asked`)
    return id
  }

  await promise('the words of the receiver are kept, and shown wherever its error is', async () => {
    receiver.says('pay', refusal)
    const id = await started('with_pay')
    const error = stepOf(await world.until(id), 'act').error
    expectEqual(
      [error.code, error.detail, error.status, error.attempt],
      ['http-422', 'Your card has insufficient funds.', 422, 1],
      'the error'
    )
    expectEqual(error.body, refusal.body, 'the body')
    const log = (await world.api('GET', `/v1/sagas/${id}/log`)).json.items
    expectEqual(
      log.find((entry) => entry.type === 'step.failed').data.answer,
      { status: 422, body: refusal.body },
      'in the log'
    )
    const shown = world.sagactl(['show', id]).stdout
    expect(shown.includes('insufficient funds') && shown.includes('card_declined'), 'sagactl show', shown)
    const called = await world.api('POST', '/v1/operations', { run: 'r', step: 's', tool: 'pay', args: {} })
    expectEqual([called.status, called.json.operation.error.body], [424, refusal.body], 'the answer to the caller')
  })

  await promise('a saga branches on it', async () => {
    receiver.says('pay', refusal)
    const saga = await world.until(await started('branches'))
    expectEqual(
      saga.steps.map((step) => step.status),
      ['failed', 'completed', 'skipped'],
      'the steps'
    )
    expectEqual(
      saga.output,
      { code: 'http-422', why: 'Your card has insufficient funds.', status: 422, none: null },
      'the output'
    )
  })

  await promise('the kept words are bounded, may be switched off, and bytes that are no UTF-8 are marked', async () => {
    receiver.says('pay', { status: 400, body: 'naïve-ééééééé' })
    expectEqual(
      [stepOf(await world.until(await started('with_short')), 'act').error].map(({ headers, body, cut }) => [
        headers,
        body,
        cut
      ]),
      [[{ 'x-request-id': 'r-pay' }, 'naïve-é', true]],
      'cut within a character, with the header that the tool names'
    )
    expectEqual(
      stepOf(await world.until(await started('with_quiet')), 'act').error,
      { code: 'http-400', detail: 'The receiver answered with status 400.' },
      'nothing is kept'
    )
    receiver.says('pay', { status: 400, body: Buffer.from([0x63, 0x61, 0x66, 0xe9]) })
    const error = stepOf(await world.until(await started('with_pay')), 'act').error
    expectEqual(
      [error.body, error.not_utf8, error.detail],
      ['caf\ufffd', true, 'The receiver answered with status 400.'],
      'no UTF-8'
    )
  })

  await promise('a secret that the receiver repeats comes through nowhere', async () => {
    receiver.says('pay', { status: 400, echo: 'x-secret' })
    const id = await started('with_told')
    expectEqual(stepOf(await world.until(id), 'act').error.body, { sent: '[secret]' }, 'the body')
    const log = JSON.stringify((await world.api('GET', `/v1/sagas/${id}/log`)).json)
    expect(!log.includes('sesame'), 'the log', log)
  })

  await promise('a call that is being probed says what is going on', async () => {
    receiver.says('room', { drop: true })
    receiver.says('asked', { status: 500, body: 'out of order' })
    const before = receiver.count('asked')
    const id = await reached(await started('with_room'), 'asked', before + 2)
    const answered = (step) => step.trying?.times >= 2 && step.error?.body
    for (const end = Date.now() + 60000; !answered(stepOf(await world.saga(id), 'act')); await sleep(20))
      expect(Date.now() < end, 'the probe is answered')
    const { trying, error, status } = stepOf(await world.saga(id), 'act')
    expectEqual(
      [status, trying.what, trying.times >= 2, trying.last_error],
      ['unknown', 'probe', true, 'http-500'],
      'trying'
    )
    expectEqual([error.status, error.body, error.by], [500, 'out of order', 'probe'], 'what the probe heard')
    expect(Date.parse(trying.person_at) - Date.parse(trying.since) === 3600000, 'when a person is asked', trying)
    const shown = world.sagactl(['show', id]).stdout.replace(/\s+/g, ' ')
    expect(
      /probed \d times since \d\d:\d\d:\d\d, the last answer was http-500, next (in|now).*a person is asked in/.test(
        shown
      ),
      'sagactl show',
      shown
    )
    receiver.says('asked', { status: 404, body: '' })
    await world.until(id)
  })

  const keyOf = (saga, id) => stepOf(saga, id).key
  const verdict = (key, body) =>
    world.api('POST', `/v1/operations/${key}/resolve`, { note: 'as the test wants it', ...body })
  // Makes a step in doubt that is probed in vain; the next probe comes later.
  const inDoubt = async () => {
    receiver.says('room', { drop: true })
    receiver.says('asked', { status: 500, body: '' })
    const before = receiver.count('asked')
    const id = await reached(await started('with_room'), 'asked', before + 2)
    for (const end = Date.now() + 60000; ; await sleep(50)) {
      const saga = await world.saga(id)
      const { trying } = stepOf(saga, 'act')
      if (trying?.times >= 2 && Date.parse(trying.next_at) > Date.now() + 1500) return saga
      expect(Date.now() < end, 'the next probe is a while off', trying)
    }
  }

  await promise('a verdict waits for the probe that is out, and its answer counts', async () => {
    receiver.says('room', { drop: true })
    receiver.says('asked', { status: 200, body: { id: 'room' }, ms: 1500 })
    const before = receiver.count('asked')
    const id = await reached(await started('with_room'), 'asked', before + 1)
    const refused = await verdict(keyOf(await world.saga(id), 'act'), { as: 'not_happened' })
    expectEqual(
      [refused.status, refused.json.type, refused.json.retryable],
      [409, 'urn:sagad:problem:probe-under-way', true],
      'refused'
    )
    expect(Number(refused.headers.get('retry-after')) > 0, 'Retry-After', [...refused.headers])
    expectEqual((await world.until(id)).status, 'completed', 'what the probe said')
  })

  await promise('happened, before anybody is asked: the saga goes on', async () => {
    const saga = await inDoubt()
    const said = await verdict(keyOf(saga, 'act'), { as: 'happened', result: { id: 'seen' } })
    expectEqual([said.status, said.json.state, said.json.result], [200, 'completed', { id: 'seen' }], 'the operation')
    const after = await world.until(saga.id)
    expectEqual([after.status, stepOf(after, 'act').result], ['completed', { id: 'seen' }], 'the saga')
    const again = await verdict(keyOf(saga, 'act'), { as: 'not_happened' })
    expectEqual([again.status, again.json.type], [409, 'urn:sagad:problem:ended'], 'too late')
  })

  await promise('a preview says how each verdict would end, changes nothing, and is right', async () => {
    const saga = await inDoubt()
    const key = keyOf(saga, 'act')
    const preview = await world.api('GET', `/v1/operations/${key}/preview`)
    const ends = Object.fromEntries(
      preview.json.verbs.map((verb) => [
        [verb.as, verb.then].filter(Boolean).join(' then '),
        verb.ends?.map((end) => [
          end.status,
          end.calls.map((call) => `${call.direction} ${call.tool}`).join(),
          end.undone.join(),
          end.standing.map((left) => left.step).join()
        ])
      ])
    )
    expectEqual(
      ends,
      {
        happened: [['completed', '', '', 'first,act']],
        not_happened: [['compensated', 'undo undo', 'first', '']],
        'not_happened then retry': [['completed', 'do room', '', 'first,act']],
        undone: [['compensated', 'undo undo', 'first,act', '']]
      },
      'the ends'
    )
    const told = world.sagactl(['preview', '--operation', key])
    expectEqual(told.status, 0, `sagactl: ${told.stderr}`)
    expect(
      /^--as undone\n  compensated\n    calls +first!\n    undoes +first, act$/m.test(told.stdout),
      'told',
      told.stdout
    )
    expectEqual((await world.saga(saga.id)).steps, saga.steps, 'nothing has changed')
    expectEqual((await verdict(key, { as: 'not_happened' })).status, 200, 'said')
    const after = await world.until(saga.id)
    expectEqual([after.status, stepOf(after, 'first').took_effect], ['compensated', 'undone'], 'as it was foretold')
    const late = await world.api('GET', `/v1/sagas/${saga.id}/preview`)
    expectEqual([late.json.verbs[0].allowed, late.json.verbs[0].refused], [false, 'ended'], 'nothing is left to abort')
  })

  await promise('undone by hand: the saga ends compensated, with the name of the person', async () => {
    const saga = await inDoubt()
    const undos = receiver.count('undo')
    expectEqual((await verdict(keyOf(saga, 'act'), { as: 'undone', note: 'cancelled by phone' })).status, 200, 'taken')
    const after = await world.until(saga.id)
    const act = stepOf(after, 'act')
    expectEqual([after.status, act.status, act.took_effect], ['compensated', 'compensated', 'undone'], 'the saga')
    expectEqual(
      [act.compensation.undone_note, receiver.count('undo') - undos],
      ['cancelled by phone', 1],
      'only the step before is undone by its tool'
    )
  })

  await promise('effects that an abandoned saga leaves standing are a debt, as JSON and as a table', async () => {
    const saga = await inDoubt()
    expectEqual((await verdict(keyOf(saga, 'act'), { as: 'happened', result: { id: '=late' } })).status, 200, 'told')
    receiver.says('pay', refusal)
    receiver.says('undo', { status: 422, body: { message: 'too late' } })
    const left = await world.until(await world.start('with_pay', {}, { id: 'left-1' }))
    expectEqual((await world.resolve(left.id, { action: 'waive', note: 'finance settles it' })).status, 200, 'waived')
    expectEqual((await world.until(left.id)).status, 'abandoned', 'the saga')
    receiver.says('undo', { status: 200, body: {} })
    const debts = (await world.api('GET', '/v1/debts')).json.items
    expectEqual(
      debts.map((debt) => [debt.saga, debt.business_id, debt.step, debt.tool, debt.took_effect, debt.operation]),
      [[left.id, 'left-1', 'first', 'before', 'yes', keyOf(left, 'first')]],
      'the debts: nothing of sagas that completed'
    )
    expectEqual((await world.api('GET', '/v1/debts?tool=pay')).json.items, [], 'of another tool there is none')
    const table = world.sagactl(['debts', '--csv'])
    expectEqual([table.status, table.stdout.split('\r\n').length], [0, 3], `the table: ${table.stderr}`)
    expect(table.stdout.split('\r\n')[1].includes('"left-1","first","before"'), 'its row', table.stdout)

    const rows = () => world.sql(`select count(*) from sagad.log where saga = '${left.id}'`)
    const before = rows()
    const due = () => world.sql(`select count(*) from sagad.due where saga = '${left.id}'`)
    expectEqual(due(), '0', 'an open debt keeps its saga')
    const settle = (note) => verdict(keyOf(left, 'first'), { as: 'undone', note })
    const settled = (await settle('refunded by hand')).json.settled
    expectEqual([settled.actor, settled.note], ['local', 'refunded by hand'], 'who settled it')
    expectEqual(due(), '1', 'the saga may go when its last debt is settled')
    expectEqual((await settle('refunded by hand')).json.settled, settled, 'the same again')
    expectEqual((await settle('another word')).status, 409, 'the first holds')
    expectEqual((await verdict(keyOf(left, 'act'), { as: 'undone' })).status, 409, 'what does not stand')
    expectEqual([rows(), (await world.until(left.id)).status], [before, 'abandoned'], 'log and status stay')
    const listed = async (query) =>
      (await world.api('GET', `/v1/debts?${query}`)).json.items.map((debt) => debt.settled)
    expectEqual([await listed('settled=false'), await listed('settled=true')], [[], [settled]], 'the lists')
    expect(/SETTLED/.test(world.sagactl(['debts']).stdout), 'sagactl shows it')
  })

  await promise('debts are summed by tool, definition and tag, for each currency', async () => {
    const sums = async (query) => (await world.api('GET', `/v1/debts?${query}`)).json.items
    const rows = (await world.api('GET', '/v1/debts?limit=500')).json.items
    const [group] = await sums('group_by=tool&tool=before')
    expectEqual([group.group, group.count], [{ tool: 'before' }, rows.length], 'by tool')
    expectEqual(group.costs, [{ currency: 'EUR', micros: 4900000 * rows.length, debts: rows.length }], 'the sum')
    expectEqual(
      rows.map((row) => row.currency),
      rows.map(() => 'EUR'),
      'the currency of each'
    )
    expectEqual(group.without_cost, 0, 'those without a cost')
    const since = rows.map((row) => row.since).sort()
    expectEqual([group.oldest, group.newest], [since[0], since.at(-1)], 'from when to when')
    const both = await sums('group_by=saga,tag.customer')
    expectEqual(
      both.map((one) => one.group),
      [{ saga: 'with_pay', 'tag.customer': null }],
      'by definition and tag'
    )
    expectEqual(await sums('group_by=tool&settled=false'), [], 'of those that are open there is none')
    for (const wrong of ['group_by=step', 'group_by=tag.', 'group_by=tool&format=csv'])
      expectEqual((await world.api('GET', `/v1/debts?${wrong}`)).status, 400, wrong)
    const table = world.sagactl(['debts', '--group-by', 'tool'])
    expect(/^before +\d+ +4.90 EUR/m.test(table.stdout), 'sagactl', table.stdout + table.stderr)
  })

  await promise(
    'a case that was asked again shows its round in each command, and takes the answer with it',
    async () => {
      receiver.says('pay', { drop: true })
      const calls = receiver.count('pay')
      const saga = await world.until(await world.start('with_pay', {}, {}))
      const resolve = (...more) => world.sagactl(['resolve', saga.id, ...more, '--note', 'so says the bank', '--yes'])
      expect(!world.sagactl(['show', saga.id]).stdout.includes('--round'), 'the first time there is no other round')
      expectEqual(resolve('--as', 'not_happened', '--then', 'retry').status, 0, 'once more')
      // The receiver lives in this process, and has to come to its turn.
      for (const end = Date.now() + 60_000; receiver.count('pay') === calls + 1; await sleep(10))
        expect(Date.now() < end, 'it is called again')
      for (const end = Date.now() + 60_000; !world.sagactl(['show', saga.id]).stdout.includes('--round 2');)
        expect(Date.now() < end, 'it is asked again', world.sagactl(['show', saga.id]).stdout)
      const stale = resolve('--as', 'happened')
      expect(stale.status !== 0 && /Give --round/.test(stale.stderr), 'which question?', stale.stderr)
      expectEqual(resolve('--as', 'happened', '--round', '2').status, 0, 'this one')
      expectEqual((await world.until(saga.id)).status, 'completed', 'the saga')
      receiver.says('pay', refusal)
    }
  )

  await promise('sagactl says what is wrong in its own words', async () => {
    const wrong = world.sagactl(['hold', '--tool', 'nothing', '--note', 'x'])
    expect(wrong.stderr.includes('there is no tool `nothing`'), 'what is wrong', wrong.stderr)
    expect(!wrong.stderr.includes('`errors`'), 'a member of the answer', wrong.stderr)
  })

  await promise('a debt that cost nothing is told from one of which nobody knows what it cost', async () => {
    receiver.says('pay', { status: 200, body: { id: 1 } }, { drop: true })
    const left = await world.until(await world.start('leaves', {}, {}))
    const cases = (query) => world.api('GET', `/v1/escalations?saga=leaves&status=open${query}`)
    const [unpriced] = (await cases('&group_by=saga')).json.items
    const [asked] = (await cases('')).json.items
    expectEqual([asked.cost, unpriced.costs, unpriced.without_cost], [null, [], 1], 'the case')
    expectEqual((await world.resolve(left.id, { action: 'abandon', note: 'it is late' })).status, 200, 'abandoned')
    const debts = (await world.api('GET', '/v1/debts?saga=leaves')).json.items
    expectEqual(
      debts.map((debt) => [debt.step, debt.took_effect, debt.cost]),
      [
        ['free', 'yes', 0],
        ['unpriced', 'yes', null],
        ['act', 'maybe', null]
      ],
      'what each cost'
    )
    const [sum] = (await world.api('GET', '/v1/debts?saga=leaves&group_by=saga')).json.items
    expectEqual([sum.costs, sum.without_cost], [[{ currency: 'EUR', micros: 0, debts: 1 }], 2], 'the sum')
    receiver.says('pay', refusal)
  })

  await promise('a debt of which nobody knew is settled as not happened, and the saga says so', async () => {
    const saga = await inDoubt()
    expectEqual((await world.api('POST', `/v1/sagas/${saga.id}/escalate`, { note: 'now' })).status, 200, 'asked')
    const asked = (await world.api('GET', '/v1/escalations?status=open&tool=room')).json.items
    expectEqual(
      asked.map((one) => [one.cost, one.currency]),
      asked.map(() => [250000, 'CHF']),
      'what each case costs'
    )
    const [sum] = (await world.api('GET', '/v1/escalations?status=open&group_by=tool&tool=room')).json.items
    const total = { currency: 'CHF', micros: 250000 * asked.length, cases: asked.length }
    expectEqual([asked.length > 0, sum.costs], [true, [total]], 'their sum')
    expectEqual((await world.resolve(saga.id, { action: 'abandon', note: 'it is late' })).status, 200, 'abandoned')
    const again = world.sagactl(['resolve', saga.id, '--as', 'undone', '--note', 'too late', '--yes'])
    expectEqual(again.status, 4, 'nobody is asked any more')
    const key = keyOf(saga, 'act')
    const debts = (await world.api('GET', '/v1/debts?settled=false')).json.items
    expectEqual(
      debts
        .filter((debt) => debt.saga === saga.id)
        .map((debt) => [debt.step, debt.took_effect])
        .sort(),
      [
        ['act', 'maybe'],
        ['first', 'yes']
      ],
      'the debts'
    )
    expect(/left standing {2}first, act/.test(world.sagactl(['show', saga.id]).stdout), 'both are shown')
    const sure = await verdict(keyOf(saga, 'first'), { as: 'not_happened', note: 'hm' })
    expect(sure.status === 409 && /settled as undone only/.test(sure.text), 'what took effect', sure.text)
    const done = world.sagactl(['resolve', '--operation', key, '--as', 'not_happened', '--note', 'the bank says so'])
    expectEqual(
      [done.status, done.stdout],
      [0, `debt of operation ${key} settled as not_happened\n`],
      `what sagactl says: ${done.stderr}`
    )
    expectEqual((await verdict(key, { as: 'undone', note: 'the bank says so' })).status, 409, 'the first word holds')
    const settled = (await world.until(saga.id)).settled.map(({ step, as, actor, note }) => [step, as, actor, note])
    expectEqual(settled, [['act', 'not_happened', 'local', 'the bank says so']], 'the saga')
    const shown = world.sagactl(['show', saga.id]).stdout
    expect(/left standing {2}first\n/.test(shown), 'what still stands', shown)
    expect(/settled {2}act as not_happened by local .*: the bank says so/.test(shown), 'what was settled', shown)
  })

  await promise('a compensator that was refused, undone by hand', async () => {
    receiver.says('pay', refusal)
    receiver.says('undo', { status: 422, body: { message: 'too late' } })
    const saga = await world.until(await started('with_pay'))
    expectEqual(saga.status, 'escalated', 'a person is asked')
    const told = world.sagactl(['resolve', saga.id, '--as', 'undone', '--note', 'refunded by hand', '--yes'])
    expectEqual(told.status, 0, `the open case of the saga is answered: ${told.stderr}`)
    const after = await world.until(saga.id)
    expectEqual([after.status, stepOf(after, 'first').took_effect], ['compensated', 'undone'], 'the saga')
    receiver.says('undo', { status: 200, body: {} })
  })

  await promise(
    'not happened, then retry: once more under the same key, when the time of the first call is over',
    async () => {
      const saga = await inDoubt()
      const key = keyOf(saga, 'act')
      receiver.says('room', { status: 200, body: { id: 'second' } })
      const told = world.sagactl([
        'resolve',
        '--operation',
        key,
        '--as',
        'not_happened',
        '--then',
        'retry',
        '--note',
        'not in their list'
      ])
      expectEqual(told.status, 0, `sagactl: ${told.stderr}`)
      const after = await world.until(saga.id)
      expectEqual([after.status, stepOf(after, 'act').result], ['completed', { id: 'second' }], 'the saga')
      expectEqual([stepOf(after, 'act').attempts, keyOf(after, 'act')], [2, key], 'one more call under the same key')
      const wrong = await verdict(key, { as: 'happened', then: 'retry' })
      expectEqual(wrong.status, 422, 'only what did not happen is called again')
    }
  )

  receiver.server.closeAllConnections()
  receiver.server.close()
})
