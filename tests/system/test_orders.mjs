// Orders against the real shop: what each class of effect does after each kind of answer, what compensation does when
// the compensator fails, and what each verb of a person leads to. After every case the shop's own ledger says what
// really happened.
import { readFileSync } from 'node:fs'
import { World, effectsByKey, expect, expectEqual, freePort, leaves, promise, run, sleep } from '../lib/world.mjs'

const retry = { max_attempts: 3, initial: '50ms', factor: 2, max: '200ms' }
const classes = ['read', 'idempotent', 'keyed', 'checked', 'once', 'once_probed']

// Every charge names its customer, and so does its refund. A fault that matches the name hits only one saga, so the
// cases run side by side.
function definitions(shop, closed) {
  const chargeProbe = {
    http: { method: 'GET', url: `${shop}/charges/by-key/\${ .key }` },
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
    result: { id: '${ .response.body.id }' },
    visibility: '300ms',
    give_up_after: '8s'
  }
  const charge = (url) => ({
    http: {
      method: 'POST',
      url: `${url}/charges`,
      body: { amount: '${ .args.amount }', customer: '${ .args.customer }' }
    },
    result: { id: '${ .response.body.id }' },
    timeout: '3s'
  })
  const undo = (more = {}) => ({
    tool: 'refund',
    with: { charge_id: '${ .result.id }', customer: '${ .args.customer }' },
    give_up_after: '8s',
    retry: { ...retry, max_attempts: 20 },
    ...more
  })
  const effectOf = {
    idempotent: { effect: 'idempotent', retry },
    keyed: { effect: 'keyed', key: { window: '1h' }, retry },
    checked: { effect: 'checked', probe: chargeProbe, retry },
    once: { effect: 'once' },
    once_probed: { effect: 'once', probe: chargeProbe }
  }
  const tools = [
    {
      name: 'reserve',
      effect: 'keyed',
      key: { window: '1h' },
      result: { id: '${ .response.body.id }' },
      timeout: '10s',
      retry,
      http: { method: 'POST', url: `${shop}/reservations`, body: '${ .args }' },
      compensate: { tool: 'release', with: { id: '${ .result.id }' } }
    },
    {
      name: 'release',
      effect: 'idempotent',
      timeout: '10s',
      http: { method: 'DELETE', url: `${shop}/reservations/\${ .args.id }` }
    },
    {
      name: 'refund',
      effect: 'keyed',
      key: { window: '1h' },
      timeout: '2s',
      result: { id: '${ .response.body.id }' },
      http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' }
    },
    {
      name: 'mail',
      effect: 'once',
      terminal: true,
      timeout: '3s',
      http: { method: 'POST', url: `${shop}/mails`, body: { to: '${ .args.to }', subject: '${ .args.subject }' } }
    },
    { name: 'refuse', effect: 'idempotent', terminal: true, builtin: { do: 'fail', outcome: 'no_effect' } },
    // A read with a body, so that faults can match it. The shop answers 422 to what it does not know.
    {
      name: 'charge_patient',
      ...charge(shop),
      timeout: '10s',
      ...effectOf.keyed,
      retry: { ...retry, max_attempts: 1000, max: '100ms' },
      compensate: undo()
    },
    { name: 'charge_unprobed', ...charge(shop), ...effectOf.keyed, compensate: undo() },
    {
      name: 'charge_forgetful',
      ...charge(shop),
      effect: 'once',
      compensate: undo({ tolerates_absent: true, voids_key: true })
    }
  ]
  const sagas = []
  const saga = (name, call, more = [], members = {}) =>
    sagas.push({
      name,
      steps: [
        { id: 'reserve', call: 'reserve', with: { sku: '${ .input.name }', qty: 1 } },
        { id: 'charge', call, with: { amount: 5, customer: '${ .input.name }' } },
        ...more
      ],
      ...members
    })
  for (const name of Object.keys(effectOf)) {
    tools.push({ name: `charge_${name}`, ...charge(shop), ...effectOf[name], compensate: undo() })
    tools.push({
      name: `closed_${name}`,
      ...charge(closed),
      ...effectOf[name],
      compensate: undo(),
      retry: { ...(effectOf[name].retry ?? {}), max_unsent: 3, initial: '20ms', max: '50ms' }
    })
    saga(`case_${name}`, `charge_${name}`)
    saga(`closed_${name}`, `closed_${name}`)
  }
  const read = (url) => ({
    effect: 'read',
    timeout: '3s',
    http: { method: 'GET', url: `${url}/charges/by-key/none`, body: { customer: '${ .args.customer }' } },
    outcome: { completed: '${ .response.status == 404 }' }
  })
  tools.push({ name: 'charge_read', ...read(shop), retry })
  tools.push({ name: 'closed_read', ...read(closed), retry: { max_unsent: 3, initial: '20ms', max: '50ms' } })
  saga('case_read', 'charge_read')
  saga('closed_read', 'closed_read')
  saga('refused', 'charge_keyed', [{ id: 'refuse', call: 'refuse' }])
  saga('refused_once', 'charge_once', [{ id: 'refuse', call: 'refuse' }])
  saga('mailed', 'charge_keyed', [
    { id: 'mail', call: 'mail', with: { to: '${ .input.name }', subject: '${ .input.name }' } }
  ])
  saga('patient', 'charge_patient', [], { deadline: '2s' })
  saga('unhurried', 'charge_patient')
  saga('unprobed', 'charge_unprobed')
  tools.push({
    name: 'charge_late',
    ...charge(closed),
    effect: 'once',
    retry: { max_unsent: 100, initial: '50ms', max: '100ms' },
    compensate: undo()
  })
  saga('late', 'charge_late')
  return { tools, sagas }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  const closedPort = await freePort()
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`, `http://127.0.0.1:${closedPort}`))
  await world.define(world.example('first.json'))
  await world.define(world.example('shop.json'))

  // Returns the shop's books of one case: calls that came, and effects that stand.
  const books = (name) => {
    const ledger = world.ledger()
    const effects = (kind, member) =>
      ledger.filter((line) => line.effect === 1 && line.kind === kind && line.body?.[member] === name)
    const charges = effects('charge', 'customer')
    const refunds = effects('refund', 'customer')
    const reservations = effects('reserve', 'sku')
    const released = ledger.filter(
      (line) => line.effect === 1 && line.kind === 'release' && reservations.some((made) => made.id === line.target)
    )
    return {
      calls: ledger.filter(
        (line) => ['/charges', '/charges/by-key/none'].includes(line.path) && line.body?.customer === name
      ),
      charges: charges.length,
      standing: charges.length - refunds.length,
      reserved: reservations.length - released.length,
      mails: effects('mail', 'to').length
    }
  }
  const holds = (name, wanted) => {
    const found = books(name)
    expectEqual(
      { standing: found.standing, reserved: found.reserved, mails: found.mails },
      { mails: 0, ...wanted },
      `what stands in the shop of ${name}`
    )
    expect(found.charges <= 1, `${name} was charged ${found.charges} times`)
    return found
  }
  const begin = (saga, name) => world.start(saga, { name }, { id: `${saga}-${name}` })
  const finish = async (id, status, seconds) => {
    const saga = await world.until(id, undefined, seconds)
    expect(saga.status === status, `the saga should be ${status}`, saga)
    return saga
  }
  const step = (saga, id) => saga.steps.find((one) => one.id === id)

  // --- an order, and its failure at each step ---

  for (const saga of ['order', 'order_parallel']) {
    const order = (id, more) => ({
      order_id: `${saga}-${id}`,
      sku: `${saga}-${id}`,
      amount: 7,
      email: `${saga}-${id}@x.example`,
      ...more
    })
    await promise(`${saga}: all steps succeed, and each effect is there once`, async () => {
      const done = await finish(await world.start(saga, order('good')), 'completed')
      const effects = effectsByKey(world.ledger())
      for (const one of done.steps) expectEqual(effects.get(one.key)?.length, 1, `effects of ${one.id}`)
      expect(done.output.reservation && done.output.charge, 'the output is there', done)
    })
    const cases = [
      ['the first step fails: nothing stands', { sku: 'none' }],
      ['the second step fails: the first is undone', { email: 'declined' }],
      ['the last step fails: both before it are undone', { email: 'bounce@x.example' }]
    ]
    for (const [what, more] of cases) {
      await promise(`${saga}: ${what}`, async () => {
        const done = await finish(await world.start(saga, order('bad', more)), 'compensated')
        const effects = effectsByKey(world.ledger())
        const released = world
          .ledger()
          .filter((line) => line.effect === 1 && line.kind === 'release')
          .map((line) => line.target)
        for (const one of done.steps) {
          const made = one.key ? (effects.get(one.key) ?? []) : []
          if (made.length === 0) continue
          const undone =
            made[0].kind === 'charge' ? effects.get(one.compensation.key)?.length === 1 : released.includes(made[0].id)
          expect(made.length === 1 && undone, `${one.id} is undone`, one)
        }
      })
    }
  }

  // --- every class, every bad answer ---

  const again = (calls) => ({ status: 'completed', standing: 1, calls })
  const failed = (calls) => ({ status: 'compensated', standing: 0, calls })
  const stuck = (standing) => ({ status: 'escalated', standing, calls: 1, effect: 'maybe' })
  const repeatable = { idempotent: again(2), keyed: again(2) }
  const happened = { ...repeatable, read: again(2), checked: again(1), once: stuck(1), once_probed: again(1) }
  const absent = { ...repeatable, read: again(2), checked: again(2), once: stuck(0), once_probed: failed(1) }
  const table = {
    'timeout-after-effect': happened,
    'reset-after-effect': happened,
    '500-after': happened,
    garbage: happened,
    'reset-before-effect': absent,
    '500-before': absent,
    hang: absent,
    503: absent,
    422: Object.fromEntries(classes.map((name) => [name, failed(1)])),
    // A 429 has certainly done nothing and may be repeated, but `once` has only one attempt.
    429: { ...Object.fromEntries(classes.map((name) => [name, again(2)])), once: failed(1), once_probed: failed(1) }
  }
  // For a read, every answer but a good one is a failure that did nothing, and the shop has nothing to count.
  const cells = []
  for (const [mode, row] of Object.entries(table)) {
    for (const name of classes) cells.push({ mode, name, customer: `${name}.${mode}`, wanted: row[name] })
  }
  for (let from = 0; from < cells.length; from += 20) {
    const some = cells.slice(from, from + 20)
    for (const cell of some) {
      await world.fault({
        route: cell.name === 'read' ? 'probes' : 'charges',
        mode: cell.mode,
        times: 1,
        match: `"${cell.customer}"`
      })
      cell.id = await begin(`case_${cell.name}`, cell.customer)
    }
    await Promise.all(
      some.map((cell) =>
        promise(`${cell.name}, ${cell.mode}: ${cell.wanted.status}`, async () => {
          const saga = await finish(cell.id, cell.wanted.status)
          const found = books(cell.customer)
          if (cell.name !== 'read') {
            const standing = { standing: cell.wanted.standing, reserved: cell.wanted.status === 'compensated' ? 0 : 1 }
            holds(cell.customer, standing)
          }
          expectEqual(found.calls.length, cell.wanted.calls, 'calls that reached the shop')
          if (cell.wanted.effect) expectEqual(step(saga, 'charge').took_effect, cell.wanted.effect, 'took_effect')
          if (cell.name !== 'read')
            expect(new Set(found.calls.map((line) => line.key)).size === 1, 'all calls came under one key', found.calls)
          if ((cell.mode === '429' || cell.mode === '503') && found.calls.length > 1) {
            const pause = found.calls[1].t_in - found.calls[0].t_in
            expect(pause >= 950, `Retry-After: 1 was kept, not ${pause} ms`) // by two clocks
          }
        })
      )
    )
    await world.noFaults()
  }

  const closed = await Promise.all(classes.map((name) => begin(`closed_${name}`, `${name}.closed`)))
  await Promise.all(
    classes.map((name, i) =>
      promise(`${name}, nobody listens: never sent, so compensated`, async () => {
        const saga = await finish(closed[i], 'compensated')
        expectEqual(step(saga, 'charge').took_effect, 'no', 'took_effect')
        holds(`${name}.closed`, { standing: 0, reserved: 0 })
      })
    )
  )

  await promise('once, nobody listens at first: sent when the port opens, and once', async () => {
    const id = await begin('late', 'late')
    await sleep(500)
    const late = new World()
    late.ledgerPath = `${world.directory}/late.jsonl`
    late.shopPort = closedPort
    await late.startShop()
    await finish(id, 'completed')
    expectEqual(late.ledger().filter((line) => line.effect === 1).length, 1, 'effects')
    late.shop.kill('SIGTERM')
    await late.shop.ended
  })

  await promise('keyed, no answer at all: unknown once the attempts are used up, and a person is asked', async () => {
    await world.fault({ route: 'charges', mode: 'reset-after-effect', times: -1, match: '"silent"' })
    const id = await begin('unprobed', 'silent')
    const saga = await finish(id, 'escalated')
    expectEqual(
      [step(saga, 'charge').status, step(saga, 'charge').took_effect, step(saga, 'charge').attempts],
      ['unknown', 'maybe', 3],
      'the step'
    )
    holds('silent', { standing: 1, reserved: 1 })
    await world.noFaults()
    expectEqual((await world.resolve(id, { action: 'retry' })).status, 200, 'retry')
    await finish(id, 'completed')
    holds('silent', { standing: 1, reserved: 1 })
  })

  // --- compensators ---

  await promise('a compensator that fails for a while gets there', async () => {
    await world.fault({ route: 'refunds', mode: '500-before', times: 2, match: '"while"' })
    await world.fault({ route: 'releases', mode: '503', times: 1 })
    await finish(await begin('refused', 'while'), 'compensated')
    holds('while', { standing: 0, reserved: 0 })
  })
  await promise('a compensator that times out after its effect undoes once', async () => {
    await world.fault({ route: 'refunds', mode: 'timeout-after-effect', times: 1, match: '"slowly"' })
    await finish(await begin('refused', 'slowly'), 'compensated')
    holds('slowly', { standing: 0, reserved: 0 })
  })
  await promise(
    'a compensator that fails until give_up_after is handed to a person, with what is open; retry undoes',
    async () => {
      await world.fault({ route: 'refunds', mode: '503', times: -1, match: '"never"' })
      const id = await begin('refused', 'never')
      const saga = await finish(id, 'escalated')
      expectEqual(step(saga, 'charge').status, 'compensation_failed', 'the status of the step')
      const escalation = await world.escalationOf(id)
      expect(
        escalation.evidence.open.some((open) => open.step === 'charge'),
        'the charge is listed as open',
        escalation
      )
      holds('never', { standing: 1, reserved: 1 })
      await world.noFaults()
      expectEqual((await world.resolve(id, { action: 'retry' })).status, 200, 'retry')
      await finish(id, 'compensated')
      holds('never', { standing: 0, reserved: 0 })
    }
  )
  await promise(
    'a compensator that is refused for good, waived: the rest is undone, the debt is listed, the saga ends abandoned',
    async () => {
      await world.fault({ route: 'refunds', mode: '422', times: -1, match: '"waived"' })
      const id = await begin('refused', 'waived')
      await finish(id, 'escalated')
      expectEqual((await world.resolve(id, { action: 'waive' })).status, 200, 'waive')
      await finish(id, 'abandoned')
      holds('waived', { standing: 1, reserved: 0 })
      await world.noFaults()
    }
  )

  // --- verbs on a call whose outcome is unknown ---

  const unknown = async (name, { saga = 'case_once', mode = 'reset-after-effect' } = {}) => {
    await world.fault({ route: 'charges', mode, times: 1, match: `"${name}"` })
    const id = await begin(saga, name)
    await finish(id, 'escalated')
    return id
  }
  const chargeOf = (name) =>
    world.ledger().find((line) => line.effect === 1 && line.kind === 'charge' && line.body.customer === name).id
  const verb = async (id, body, status = 200) => {
    const answer = await world.resolve(id, body)
    expect(answer.status === status, `${body.action} should be answered with ${status}`, answer.text)
    return answer
  }

  await promise('resolve as happened needs the result where the compensator uses it', async () => {
    const id = await unknown('verb.result')
    await verb(id, { action: 'resolve', as: 'happened' }, 422)
    await verb(id, { action: 'resolve', as: 'happened', result: { id: chargeOf('verb.result') } })
    await finish(id, 'completed')
    holds('verb.result', { standing: 1, reserved: 1 })
  })
  await promise('resolve as happened: what a person said is undone like the rest when a later step fails', async () => {
    const id = await unknown('verb.undone', { saga: 'refused_once' })
    await verb(id, { action: 'resolve', as: 'happened', result: { id: chargeOf('verb.undone') } })
    await finish(id, 'compensated')
    holds('verb.undone', { standing: 0, reserved: 0 })
  })
  await promise('resolve as not happened: the step has failed, the rest is undone', async () => {
    const id = await unknown('verb.not', { mode: 'reset-before-effect' })
    await verb(id, { action: 'resolve', as: 'not_happened' })
    await finish(id, 'compensated')
    holds('verb.not', { standing: 0, reserved: 0 })
  })
  await promise('the first decision wins: a second gets 409', async () => {
    const id = await unknown('verb.second', { mode: 'reset-before-effect' })
    const { n } = await world.escalationOf(id)
    const decide = () =>
      world.api('POST', `/v1/escalations/${n}/resolve`, { action: 'resolve', as: 'not_happened', note: 'x' })
    const answers = await Promise.all([decide(), decide(), decide(), decide()])
    expectEqual(answers.map((answer) => answer.status).sort(), [200, 409, 409, 409], 'statuses')
    await finish(id, 'compensated')
  })
  await promise('retry of a call that may have happened needs accept_double; the same key goes out', async () => {
    const id = await unknown('verb.retry')
    await verb(id, { action: 'retry' }, 409)
    await verb(id, { action: 'retry', accept_double: true })
    await finish(id, 'completed')
    const found = holds('verb.retry', { standing: 1, reserved: 1 })
    expectEqual([found.calls.length, new Set(found.calls.map((line) => line.key)).size], [2, 1], 'calls and keys')
  })
  await promise('probe: a person has the receiver asked again, and the answer settles it', async () => {
    await world.fault({ route: 'probes', mode: '500-before', times: -1 })
    const id = await unknown('verb.probe', { saga: 'case_once_probed' })
    await world.noFaults()
    await verb(id, { action: 'probe' })
    await finish(id, 'escalated').catch(() => {}) // it may be settled already
    const saga = await world.until(id, ['completed'])
    expectEqual(step(saga, 'charge').took_effect, 'yes', 'took_effect')
    holds('verb.probe', { standing: 1, reserved: 1 })
  })
  await promise('waive: the effect is left standing, the rest is undone, the saga ends abandoned', async () => {
    const id = await unknown('verb.waive')
    await verb(id, { action: 'waive' })
    await finish(id, 'abandoned')
    holds('verb.waive', { standing: 1, reserved: 0 })
  })
  await promise(
    'skip is refused where the step may have taken effect, and the answer says what is possible',
    async () => {
      const id = await unknown('verb.skip', { mode: 'reset-before-effect' })
      const answer = await verb(id, { action: 'skip' }, 409)
      expect(/resolve/.test(answer.text), 'the possible verbs are named', answer.text)
      await verb(id, { action: 'abandon' })
    }
  )
  await promise('compensate: undone as far as it is certain; the verdict on the rest ends it', async () => {
    const id = await unknown('verb.compensate', { mode: 'reset-before-effect' })
    await verb(id, { action: 'compensate' })
    await finish(id, 'escalated')
    await verb(id, { action: 'resolve', as: 'not_happened' })
    await finish(id, 'compensated')
    holds('verb.compensate', { standing: 0, reserved: 0 })
  })
  await promise('abandon: ends at once, everything stands', async () => {
    const id = await unknown('verb.abandon')
    await verb(id, { action: 'abandon' })
    await finish(id, 'abandoned')
    holds('verb.abandon', { standing: 1, reserved: 1 })
  })
  await promise(
    'a terminal step whose outcome is unknown is handed over, and resolved as happened completes the saga',
    async () => {
      await world.fault({ route: 'mails', mode: 'timeout-after-effect', times: 1, match: '"terminal"' })
      const id = await begin('mailed', 'terminal')
      await finish(id, 'escalated')
      await verb(id, { action: 'resolve', as: 'happened' })
      await finish(id, 'completed')
      holds('terminal', { standing: 1, reserved: 1, mails: 1 })
    }
  )

  // --- deadline, abort ---

  await promise('the deadline ends the forward work and undoes it', async () => {
    await world.fault({ route: 'charges', mode: '429', times: -1, match: '"deadline"' })
    await finish(await begin('patient', 'deadline'), 'compensated')
    holds('deadline', { standing: 0, reserved: 0 })
    await world.noFaults()
  })
  await promise('abort waits for the call that is under way, and undoes it', async () => {
    await world.fault({ route: 'charges', mode: 'slow', ms: 1500, times: 1, match: '"abort"' })
    const id = await begin('unhurried', 'abort')
    while (books('abort').calls.length === 0) await sleep(20)
    const answer = await world.api('POST', `/v1/sagas/${id}/abort`, { note: 'changed my mind' })
    expect(answer.status === 200 || answer.status === 202, 'abort is accepted', answer.text)
    await finish(id, 'compensated')
    expectEqual(holds('abort', { standing: 0, reserved: 0 }).charges, 1, 'charges that were made and given back')
  })
  await promise('abort after the end is refused', async () => {
    const id = await begin('mailed', 'ended')
    await finish(id, 'completed')
    expectEqual((await world.api('POST', `/v1/sagas/${id}/abort`, { note: 'too late' })).status, 409, 'status')
    holds('ended', { standing: 1, reserved: 1, mails: 1 })
  })

  // --- one business id, many clients ---

  await promise('the connection string is not among the arguments that everybody can read', () => {
    const words = readFileSync(`/proc/${world.sagad.pid}/cmdline`, 'utf8').split('\0')
    expect(words.includes('--database') && !words.includes(world.dsn), 'the arguments of sagad', words)
  })
  await promise(
    'a saga is found by the name and its business id, in every route, also with a slash in it',
    async () => {
      const id = await world.start(
        'order',
        { order_id: 'named', sku: 'named', amount: 7, email: 'named@x.example' },
        { id: 'a/b%2F' }
      )
      const path = '/v1/sagas/by-business-id/order/' + encodeURIComponent('a%2Fb%252F')
      await world.until(id)
      expectEqual((await world.api('GET', `${path}?wait=1s`)).json.id, id, 'the saga')
      expectEqual((await world.api('GET', `${path}/log`)).json.items[0].type, 'saga.started', 'its log')
      expectEqual(
        (await world.api('POST', `${path}/pause`, { note: 'x' })).status,
        409,
        'a pause of a saga that has ended'
      )
      expectEqual((await world.api('GET', '/v1/sagas/by-business-id/order/none')).status, 404, 'one that is not there')
      expectEqual(
        (await world.api('GET', `/v1/sagas?id=${id.slice(0, 34)}`)).json.items.map((item) => item.id),
        [id],
        'by the beginning of its id'
      )
      expectEqual((await world.api('GET', '/v1/sagas?id=0123456')).status, 400, 'too few characters')
      for (const name of [id, id.slice(0, 34), 'order/a/b%252F', 'order/a%2Fb%252F'])
        expectEqual(world.sagactl(['show', name, '-o', 'name']).stdout.trim(), id, name)
      expectEqual(world.sagactl(['replay', 'order/a%2Fb%252F']).status, 0, 'replay')
    }
  )
  await promise('the same business id at once from 32 clients is one saga', async () => {
    const body = { saga: 'mailed', id: 'one-of-32', input: { name: 'crowd' } }
    const answers = await Promise.all(Array.from({ length: 32 }, () => world.api('POST', '/v1/sagas', body)))
    expectEqual(answers.filter((answer) => answer.status === 201).length, 1, 'starts that made it')
    expectEqual(answers.filter((answer) => answer.status === 200).length, 31, 'starts that found it')
    expectEqual(new Set(answers.map((answer) => answer.json.id)).size, 1, 'sagas')
    await finish(answers[0].json.id, 'completed')
    expectEqual(holds('crowd', { standing: 1, reserved: 1, mails: 1 }).calls.length, 1, 'calls')
  })
  await promise(
    'other input under the same business id is refused with 422; the same input written differently is not',
    async () => {
      const ask = (raw) => world.api('POST', '/v1/sagas', undefined, { raw })
      expectEqual((await ask('{"saga":"mailed","id":"one-of-32","input":{"name":"other"}}')).status, 422, 'other input')
      expectEqual(
        (await ask('{ "input": {"name": "cr\\u006fwd"}, "id":"one-of-32","saga":"mailed"}')).status,
        200,
        'the same input'
      )
    }
  )

  await promise('no effect came twice under one key', async () => {
    for (const [key, lines] of effectsByKey(world.ledger())) expect(lines.length === 1, `effects under ${key}`, lines)
  })
  await promise(
    'every saga folds from its log to the state that the service shows',
    async () => {
      const replay = world.sagactl(['replay', '--all'])
      expect(replay.status === 0, 'sagactl replay --all', `${replay.status} ${replay.stdout} ${replay.stderr}`)
    },
    300
  )
  await leaves(world, 15)
})
