// The language against the real shop: conditions, failures that do not matter or that a person judges, branches, and
// undoing side by side, each with SIGKILL at random moments. The shop's own ledger says what really happened.
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, effectsByKey, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const sagasUnderKills = quick ? 40 : 120
const kills = quick ? 6 : 60

function definitions(shop) {
  const charge = { id: 'charge', call: 'payments.charge', with: { amount: 5, customer: '${ .input.name }' } }
  const never = { effect: 'read', builtin: { do: 'fail', outcome: 'no_effect' } }
  const patient = { initial: '50ms', factor: 2, max: '500ms', max_attempts: 200 }
  const tools = [
    { name: 'never', ...never },
    // A read, because a call of another class that a kill has interrupted may have happened, and a person would be
    // asked.
    { name: 'refuse', ...never },
    {
      name: 'picky',
      effect: 'keyed',
      key: { window: '1h' },
      timeout: '5s',
      http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
      result: { charge_id: '${ .response.body.id }' },
      compensate: { tool: 'payments.refund', with: { charge_id: '${ .result.charge_id }' } },
      retry: patient
    }
  ]
  // The order is first; then express beside gift beside news; then pay.
  const steps = [
    { id: 'first', call: 'inventory.reserve', with: { sku: '${ .input.name }', qty: 1 }, retry: patient },
    {
      id: 'express',
      call: 'payments.charge',
      after: ['first'],
      when: '${ .input.express }',
      scope: 'express',
      with: { amount: 2, customer: '${ .input.name }' },
      retry: patient
    },
    {
      id: 'gift',
      call: 'inventory.reserve',
      after: ['first'],
      when: '${ .input.amount > 10 }',
      with: { sku: '${ .input.name }', qty: '${ 1 + 1 }' },
      retry: patient
    },
    { id: 'news', call: 'never', after: ['first'], on_failure: 'continue' },
    {
      ...charge,
      id: 'pay',
      after: ['express', 'gift', 'news'],
      scope: '${ .steps.gift.result.id // "no gift" }',
      retry: patient
    }
  ]
  const mail = {
    id: 'mail',
    call: 'mail.send_checked',
    with: { to: '${ .input.name }', subject: '${ .steps.express.status } ${ .steps.news.status }' }
  }
  const sagas = [
    {
      name: 'lang_ok',
      tags: { kind: 'language', from: 'definition' },
      steps: [...steps, mail],
      output: { gift: '${ .steps.gift.result.id }', pay: '${ .steps.pay.result.charge_id }' }
    },
    { name: 'lang_undone', compensation: { concurrency: 3 }, steps: [...steps, { id: 'last', call: 'refuse' }] },
    {
      name: 'lang_ask',
      steps: [
        steps[0],
        {
          id: 'pay',
          call: 'picky',
          on_failure: 'escalate',
          with: { amount: '${ .input.amount }', customer: '${ .input.name }' }
        },
        { id: 'after', call: 'inventory.reserve', with: { sku: '${ .input.name }', qty: 1 } }
      ]
    },
    { name: 'lang_bad_condition', steps: [steps[0], { ...charge, when: '${ .input.amount | keys }' }] },
    {
      name: 'lang_branch',
      deadline: '30s',
      steps: [
        steps[0],
        { ...charge, id: 'slow', after: ['first'] },
        { id: 'beyond', call: 'inventory.reserve', after: ['slow'], with: { sku: '${ .input.name }', qty: 1 } },
        { id: 'broken', call: 'never', after: ['first'] }
      ]
    }
  ]
  return { tools, sagas }
}

await run(new World(), async (world) => {
  const random = randomFrom(chooseSeed())
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  await world.define(world.example('shop.json'))
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))

  const books = (name) => {
    const ledger = world.ledger().filter((line) => line.effect === 1)
    const charges = ledger.filter((line) => line.kind === 'charge' && line.body?.customer === name)
    const reservations = ledger.filter((line) => line.kind === 'reserve' && line.body?.sku === name)
    const refunded = charges.filter((made) =>
      ledger.some((line) => line.kind === 'refund' && line.body?.charge_id === made.id)
    )
    const released = reservations.filter((made) =>
      ledger.some((line) => line.kind === 'release' && line.target === made.id)
    )
    return {
      charged: charges.length - refunded.length,
      reserved: reservations.length - released.length,
      mails: ledger.filter((line) => line.kind === 'mail' && line.body?.to === name).length,
      ever: charges.length + reservations.length
    }
  }
  const stands = (name, wanted) => {
    const { ever, ...found } = books(name)
    expectEqual(found, { charged: 0, reserved: 0, mails: 0, ...wanted }, `what stands in the shop of ${name}`)
    return ever
  }
  const statuses = (saga) => Object.fromEntries(saga.steps.map((step) => [step.id, step.status]))
  const finish = async (id, status) => {
    const saga = await world.until(id, undefined, 60)
    expect(saga.status === status, `the saga should be ${status}`, saga)
    return saga
  }
  const expected = (saga, { express, amount }) =>
    saga === 'lang_undone' ? {} : { charged: 1 + (express ? 1 : 0), reserved: 1 + (amount > 10 ? 1 : 0), mails: 1 }

  await promise('conditions that hold: every step runs', async () => {
    const saga = await finish(
      await world.start('lang_ok', { name: 'all', express: true, amount: 20 }, { tags: { from: 'start' } }),
      'completed'
    )
    expectEqual(
      statuses(saga),
      {
        first: 'completed',
        express: 'completed',
        gift: 'completed',
        news: 'failed',
        pay: 'completed',
        mail: 'completed'
      },
      'the steps'
    )
    expectEqual(saga.tags, { kind: 'language', from: 'start' }, 'the tags')
    stands('all', { charged: 2, reserved: 2, mails: 1 })
  })
  await promise('conditions that do not hold: skipped, and what follows starts', async () => {
    const id = await world.start('lang_ok', { name: 'few', express: false, amount: 5 })
    const saga = await finish(id, 'completed')
    expectEqual(
      statuses(saga),
      { first: 'completed', express: 'skipped', gift: 'skipped', news: 'failed', pay: 'completed', mail: 'completed' },
      'the steps'
    )
    expectEqual(saga.output.gift, null, 'the result of what was skipped')
    stands('few', { charged: 1, reserved: 1, mails: 1 })
    const log = (await world.api('GET', `/v1/sagas/${id}/log?limit=500`)).json.items
    const skips = log
      .filter((entry) => entry.type === 'step.skipped')
      .map((entry) => [entry.step, entry.data.reason])
      .sort()
    expectEqual(
      skips,
      [
        ['express', 'when'],
        ['gift', 'when']
      ],
      'why they were skipped'
    )
    const operations = (await world.api('GET', `/v1/operations?run=${id}&limit=100`)).json.items
    expect(
      !operations.some((operation) => operation.step === 'express' || operation.step === 'gift'),
      'what was skipped has no operation',
      operations
    )
    const mail = world.ledger().find((line) => line.effect === 1 && line.kind === 'mail' && line.body?.to === 'few')
    expectEqual(mail.body.subject, 'skipped failed', 'the statuses that expressions see')
  })
  await promise('a failure behind them undoes what ran, and nothing else', async () => {
    for (const [name, input] of [
      ['u1', { express: true, amount: 20 }],
      ['u2', { express: false, amount: 20 }],
      ['u3', { express: false, amount: 1 }]
    ]) {
      const saga = await finish(await world.start('lang_undone', { name, ...input }), 'compensated')
      expectEqual(
        saga.steps.filter((step) => step.status === 'skipped').length,
        (input.express ? 0 : 1) + (input.amount > 10 ? 0 : 1),
        'how many were skipped'
      )
      expect(
        stands(name, {}) === 2 + (input.express ? 1 : 0) + (input.amount > 10 ? 1 : 0),
        'what there ever was',
        books(name)
      )
    }
  })
  await promise('a condition that cannot be evaluated is a certain failure', async () => {
    const saga = await finish(await world.start('lang_bad_condition', { name: 'bad', amount: 5 }), 'compensated')
    expect(saga.steps[1].status === 'failed' && saga.steps[1].error.code === 'arguments', 'the step', saga.steps[1])
    stands('bad', {})
  })
  await promise('a failing branch lets what is in flight end, starts nothing, and undoes all', async () => {
    await world.fault({ route: 'charges', mode: 'slow', times: 1, match: '"branch"' })
    const saga = await finish(await world.start('lang_branch', { name: 'branch', amount: 5 }), 'compensated')
    expectEqual(
      statuses(saga),
      { first: 'compensated', slow: 'compensated', beyond: 'pending', broken: 'failed' },
      'the steps'
    )
    stands('branch', {})
    await world.noFaults()
  })
  await promise('a failure that is escalated waits for a person: skip goes on, compensate undoes', async () => {
    for (const [action, status, wanted] of [
      ['skip', 'completed', { reserved: 2 }],
      ['compensate', 'compensated', {}]
    ]) {
      const name = `ask-${action}`
      const id = await world.start('lang_ask', { name, amount: 0 })
      await finish(id, 'escalated')
      await world.restart()
      const escalation = await world.escalationOf(id)
      expectEqual(
        [escalation.reason, escalation.actions.map((one) => one.action).sort()],
        ['step-failed', ['abandon', 'compensate', 'retry', 'skip']],
        'what is asked'
      )
      const answer = await world.resolve(id, { action })
      expect(answer.status === 200, 'the answer to the verb', answer.text)
      await finish(id, status)
      stands(name, wanted)
    }
  })
  await promise('a failure that is escalated can be tried again with other arguments', async () => {
    const id = await world.start('lang_ask', { name: 'ask-again', amount: 0 })
    await finish(id, 'escalated')
    const answer = await world.resolve(id, { action: 'retry', args: { amount: 7, customer: 'ask-again' } })
    expect(answer.status === 200, 'the answer to the verb', answer.text)
    await finish(id, 'completed')
    stands('ask-again', { charged: 1, reserved: 2 })
  })
  await promise(
    `${sagasUnderKills} sagas end as their conditions say through ${kills} kills`,
    async () => {
      const begun = new Map()
      const begin = async (number) => {
        const input = { name: `k${number}`, express: number % 2 === 0, amount: number % 3 === 0 ? 20 : 5 }
        const name = number % 5 < 3 ? 'lang_ok' : 'lang_undone'
        for (;;) {
          try {
            begun.set(await world.start(name, input, { id: `kill-${number}` }), [name, input])
            return
          } catch {
            const again = await world.api('GET', `/v1/sagas?business_id=kill-${number}`).catch(() => undefined)
            if (again?.json?.items?.length) {
              begun.set(again.json.items[0].id, [name, input])
              return
            }
            await sleep(30)
          }
        }
      }
      const starting = []
      for (let kill = 0, number = 0; kill < kills; kill++) {
        for (; number < (sagasUnderKills * (kill + 1)) / kills; number++) starting.push(begin(number))
        await sleep(random() * 150)
        await world.restart()
      }
      await Promise.all(starting)
      for (const [id, [name, input]] of begun) {
        const saga = await finish(id, name === 'lang_ok' ? 'completed' : 'compensated')
        stands(input.name, expected(name, input))
        const skipped = saga.steps.filter((step) => step.status === 'skipped').map((step) => step.id)
        expectEqual(
          skipped,
          [...(input.express ? [] : ['express']), ...(input.amount > 10 ? [] : ['gift'])],
          `what was skipped in ${input.name}`
        )
      }
      expectEqual(begun.size, sagasUnderKills, 'how many were begun')
      for (const [key, lines] of effectsByKey(world.ledger()))
        expect(lines.length === 1, `effects under the key ${key}`, lines)
    },
    600
  )
  await promise('every log folds to the stored state', async () => {
    const replayed = world.sagactl(['replay', '--all'])
    expect(replayed.status === 0, 'sagactl replay --all', replayed.stdout + replayed.stderr)
  })
})
