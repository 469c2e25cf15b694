// The registry over HTTP, with the real shop: the answers to repeats of a call, for each class and each state, and the
// refusals of guards. After each case the shop's own ledger says what really happened.
import { World, eventually, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const retry = { max_attempts: 3, initial: '50ms', factor: 2, max: '200ms' }
const effects = {
  idempotent: { effect: 'idempotent', retry },
  keyed: { effect: 'keyed', key: { window: '1h' }, retry },
  checked: { effect: 'checked', retry },
  once: { effect: 'once' },
  once_probed: { effect: 'once' },
  conditional: { effect: { if: '${ .args.amount > 100 }', then: 'once', else: 'keyed' }, key: { window: '1h' }, retry }
}

function definitions(shop) {
  const probe = {
    http: { method: 'GET', url: `${shop}/charges/by-key/\${ .key }` },
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
    result: { id: '${ .response.body.id }' },
    visibility: '300ms',
    give_up_after: '8s'
  }
  const charge = {
    http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
    result: { id: '${ .response.body.id }', at: '${ .response.body.id }' },
    timeout: '3s',
    material: ['/amount', '/customer'],
    compensate: {
      tool: 'refund',
      with: { charge_id: '${ .result.id }', customer: '${ .args.customer }' },
      retry: { ...retry, max_attempts: 20 }
    }
  }
  const tools = [
    {
      name: 'refund',
      effect: 'keyed',
      key: { window: '1h' },
      timeout: '3s',
      result: { id: '${ .response.body.id }' },
      http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' }
    },
    {
      name: 'mail',
      effect: 'keyed',
      key: { window: '1h' },
      terminal: true,
      timeout: '3s',
      retry,
      http: { method: 'POST', url: `${shop}/mails`, body: { to: '${ .args.to }', subject: '${ .args.to }' } }
    },
    {
      name: 'mail_once',
      effect: 'once',
      terminal: true,
      timeout: '3s',
      http: { method: 'POST', url: `${shop}/mails`, body: { to: '${ .args.to }', subject: '${ .args.to }' } }
    },
    {
      name: 'price',
      effect: 'read',
      timeout: '3s',
      retry,
      http: { method: 'GET', url: `${shop}/prices/\${ .args.sku }` },
      result: '${ .response.body }'
    },
    {
      name: 'track',
      effect: 'read',
      timeout: '3s',
      retry,
      http: { method: 'GET', url: `${shop}/shipments/\${ .args.shipment }` },
      result: '${ .response.body }'
    },
    {
      name: 'tag',
      effect: 'idempotent',
      timeout: '3s',
      retry,
      http: { method: 'PUT', url: `${shop}/tags/\${ .args.name }`, body: { tag: '${ .args.tag }' } },
      precheck: {
        http: { method: 'GET', url: `${shop}/tags/\${ .args.name }` },
        done: '${ .response.status == 200 and .response.body.tag == .args.tag }',
        blocked:
          '${ if .response.status == 200 and .response.body.tag == "closed" then "the account is closed: ask ' +
          'for another one" else null end }',
        result: { was: '${ .response.body.tag }' }
      },
      compensate: { tool: 'untag', with: { name: '${ .args.name }' } }
    },
    {
      name: 'untag',
      effect: 'idempotent',
      timeout: '3s',
      retry,
      http: { method: 'DELETE', url: `${shop}/tags/\${ .args.name }` },
      outcome: { completed: '${ .response.status == 200 or .response.status == 404 }' }
    }
  ]
  for (const [name, members] of Object.entries(effects)) {
    const probed = name === 'checked' || name === 'once_probed' ? { probe } : {}
    tools.push({ name: `charge_${name}`, ...charge, ...members, ...probed })
  }
  for (const policy of ['refuse', 'escalate', 'allow'])
    tools.push({ name: `charge_${policy}`, ...charge, ...effects.keyed, on_duplicate: policy })
  tools.push({ name: 'charge_short', ...charge, ...effects.keyed, ttl: '300ms' })
  tools.push({ name: 'charge_again', ...charge, ...effects.keyed, ttl: '300ms', on_expired: 'again' })
  tools.push({ name: 'charge_rated', ...charge, ...effects.keyed, rate: { limit: 2, per: '2s' } })
  tools.push({ name: 'charge_narrow', ...charge, ...effects.keyed, timeout: '10s', concurrency: 2 })
  tools.push({
    name: 'charge_broken',
    ...charge,
    ...effects.keyed,
    retry: { max_attempts: 1 },
    breaker: { failures: 3, window: '60s', cooldown: '3s' }
  })
  tools.push({ name: 'charge_costly', ...charge, ...effects.keyed, cost: 400 })
  return { tools, sagas: [] }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))

  let count = 0
  const fresh = (name) => `${name}-${++count}`
  const args = (customer, more = {}) => ({ amount: 5, customer, ...more })
  // Calls a tool with a turn of its own, so that no loop is seen by mistake.
  const call = (run, tool, body = {}, { wait = '20s', headers = {} } = {}) =>
    world.api(
      'POST',
      `/v1/operations?wait=${wait}`,
      { run, tool, args: args(run), turn: fresh('turn'), ...body },
      { headers, seconds: 60 }
    )
  const open = async (body = {}) => (await world.api('POST', '/v1/sagas', { open: true, ...body })).json.id
  const callIn = (saga, tool, body = {}, { wait = '20s', headers = {} } = {}) =>
    world.api(
      'POST',
      `/v1/sagas/${saga}/calls?wait=${wait}`,
      { tool, args: args(saga), turn: fresh('turn'), ...body },
      { headers, seconds: 60 }
    )
  const books = (customer) => {
    const ledger = world.ledger().filter((line) => line.effect === 1)
    const charges = ledger.filter((line) => line.kind === 'charge' && line.body?.customer === customer)
    const refunds = ledger.filter((line) => line.kind === 'refund' && line.body?.customer === customer)
    return {
      charges: charges.length,
      standing: charges.length - refunds.length,
      mails: ledger.filter((line) => line.kind === 'mail' && line.body?.to === customer).length
    }
  }
  const status = (answer, wanted, type) => {
    expect(
      answer.status === wanted && (!type || answer.json?.type?.endsWith(`:${type}`)),
      `expected ${wanted} ${type ?? ''}`,
      `${answer.status} ${answer.text}`
    )
    return answer
  }
  const fault = (customer, mode, more = {}) =>
    world.fault({ route: 'charges', mode, match: `"${customer}"`, times: 1, ...more })
  const until = (so, seconds = 20) => eventually(String(so), so, { seconds })
  const log = async (saga) => (await world.api('GET', `/v1/sagas/${saga}/log?limit=500`)).json.items

  // Runs that are repeated at the end of this test: they rest then.
  const sleepers = await Promise.all(
    ['one', 'many'].map(async (kind) => {
      const name = fresh(`sleeper-${kind}`)
      return { name, first: status(await call(name, 'charge_keyed', { step: 'pay' }), 200) }
    })
  )

  // --- duplicates ---

  await promise('a repeat gets the stored result, byte for byte, marked in its headers', async () => {
    const name = fresh('repeat')
    const first = status(await call(name, 'charge_keyed', { step: 'pay', scope: 'o1' }), 200)
    expect(!first.headers.get('idempotent-replayed'), 'the first is no replay')
    const again = status(await call(name, 'charge_keyed', { step: 'pay', scope: 'o1' }), 200)
    expectEqual(again.headers.get('idempotent-replayed'), 'true', 'the header of a replay')
    expect(
      !Number.isNaN(Date.parse(again.headers.get('idempotent-first-at'))),
      'the first time',
      again.headers.get('idempotent-first-at')
    )
    const result = (text) => text.slice(text.indexOf('"result":'), text.indexOf('"error":'))
    expectEqual(result(again.text), result(first.text), 'the stored result')
    expectEqual(
      [again.json.key, again.json.duplicate, again.json.duplicates_seen, first.json.duplicate],
      [first.json.key, true, 1, false],
      'the record'
    )
    expectEqual(books(name), { charges: 1, standing: 1, mails: 0 }, 'the shop')
    expectEqual(
      (await log(first.json.saga)).filter((entry) => entry.type === 'operation.duplicate').length,
      1,
      'log entries of duplicates'
    )
  })
  await promise(
    'the arguments are no part of the key: numbers, order and immaterial members may change; a material one is ' +
      'refused by its pointer',
    async () => {
      const name = fresh('drift')
      const first = status(await call(name, 'charge_keyed', { args: args(name, { memo: 'a' }) }), 200)
      for (const text of [
        `{"run":"${name}","tool":"charge_keyed","args":{"customer":"${name}","memo":"other words","amount":5.0}}`,
        `{"run":"${name}","tool":"charge_keyed","args":{"amount":50e-1,"customer":"${name}","timestamp":"now"}}`
      ]) {
        const again = status(await world.api('POST', '/v1/operations?wait=20s', undefined, { raw: text }), 200)
        expectEqual(again.json.key, first.json.key, 'the key')
      }
      const other = status(
        await call(name, 'charge_keyed', { args: args(name, { amount: 6 }) }),
        422,
        'arguments-differ'
      )
      expectEqual(
        [other.json.operation?.args, other.json.operation?.result],
        [null, null],
        'the values of the first call'
      )
      expectEqual(other.json.pointers, ['/amount'], 'what differs')
      expect(!JSON.stringify(other.json.pointers).includes('6'), 'no values')
      expectEqual(books(name).charges, 1, 'charges')
    }
  )
  await promise(
    'a run that has the name of a saga is refused: its calls would have the keys of that saga',
    async () => {
      const id = await open()
      status(await callIn(id, 'charge_once', { step: 'pay' }), 200)
      status(await call(id, 'charge_once', { step: 'pay', args: args(id) }), 422, 'invalid')
      // One of nobody.
      status(await call('01890000-0000-7000-8000-000000000001', 'tag', { args: { name: fresh('tag'), tag: 'x' } }), 200)
      expectEqual(books(id).charges, 1, 'charges')
    }
  )
  await promise(
    'another step, tool or scope is another operation, and implicit steps are one a tool and scope',
    async () => {
      const name = fresh('scopes')
      const keys = new Set()
      for (const body of [{}, { scope: 'a' }, { scope: 'b' }, { step: 'x' }, { step: 'x', scope: 'a' }])
        keys.add(status(await call(name, 'charge_keyed', body), 200).json.key)
      keys.add(status(await call(name, 'charge_idempotent'), 200).json.key)
      expectEqual(keys.size, 6, 'operations')
      expectEqual(books(name).charges, 6, 'charges')
    }
  )
  await promise(
    'a repeat on the wire is recognised by its Idempotency-Key, whatever the policy; with other content it is refused',
    async () => {
      const name = fresh('wire')
      const headers = { 'idempotency-key': `e-${name}` }
      const first = status(await call(name, 'charge_allow', {}, { headers }), 200)
      const again = status(await call(name, 'charge_allow', {}, { headers }), 200)
      expectEqual(again.json.key, first.json.key, 'the key of the same emission')
      status(await call(name, 'charge_allow', { args: args(name, { amount: 7 }) }, { headers }), 422, 'other-input')
      const other = status(await call(name, 'charge_allow'), 200)
      expect(
        other.json.key !== first.json.key && other.json.generation === 1,
        '`allow` makes a new operation of each emission',
        other.text
      )
      expectEqual(books(name).charges, 2, 'charges')
    }
  )
  await promise('`refuse` and `escalate` do as they say', async () => {
    const name = fresh('refuse')
    status(await call(name, 'charge_refuse'), 200)
    const refused = status(await call(name, 'charge_refuse'), 409, 'duplicate-call')
    expect(refused.json.operation?.state === 'completed', 'the record stands in the problem', refused.text)
    const other = fresh('escalate')
    const first = status(await call(other, 'charge_escalate'), 200)
    status(await call(other, 'charge_escalate'), 409, 'awaiting-operator')
    expectEqual((await world.escalationOf(first.json.saga)).reason, 'duplicate', 'the reason')
    expectEqual([books(name).charges, books(other).charges], [1, 1], 'charges')
  })
  await promise(
    'a certain failure with attempts left is tried again under the same key; used up, the failure is answered',
    async () => {
      const name = fresh('attempts')
      await fault(name, '422', { times: -1 })
      const first = status(await call(name, 'charge_keyed'), 424, 'tool-failed')
      expectEqual(
        [first.json.operation.state, first.json.operation.took_effect, first.json.operation.attempts],
        ['failed', 'no', 1],
        'the record'
      )
      expectEqual(
        [first.json.retryable, Number(first.headers.get('retry-after')) >= 1],
        [true, true],
        'it may be tried again'
      )
      const second = status(await call(name, 'charge_keyed'), 424)
      expectEqual(
        [second.json.operation.key, second.json.operation.attempts],
        [first.json.operation.key, 2],
        'a new attempt'
      )
      await call(name, 'charge_keyed')
      const last = status(await call(name, 'charge_keyed'), 424)
      expectEqual(last.json.operation.attempts, 3, 'no further attempt')
      expectEqual([last.json.retryable, last.headers.get('retry-after')], [false, null], 'the failure is final')
      const mended = fresh('mended')
      await fault(mended, '422')
      status(await call(mended, 'charge_keyed'), 424)
      status(await call(mended, 'charge_keyed'), 200)
      expectEqual([books(name).charges, books(mended).charges], [0, 1], 'charges')
    }
  )
  await promise('a record answers 410 after its time, or begins anew where the owner wants that', async () => {
    const name = fresh('short')
    status(await call(name, 'charge_short'), 200)
    await sleep(400)
    const shown = (await world.api('GET', `/v1/operations?run=${name}`)).json.items[0]
    expectEqual([shown.args, shown.result], [null, null], 'what is shown of it before anybody asks again')
    expectEqual((await world.api('GET', `/v1/operations/${shown.key}`)).json.result, null, 'and by its key')
    status(await call(name, 'charge_short'), 410, 'expired')
    const other = fresh('again')
    const first = status(await call(other, 'charge_again'), 200)
    await sleep(400)
    const again = status(await call(other, 'charge_again'), 200)
    expect(again.json.key !== first.json.key && again.json.generation === 1, 'a new generation', again.text)
    expectEqual([books(name).charges, books(other).charges], [1, 2], 'charges')
  })
  await promise(
    'a caller whose wait is over gets 202, a duplicate 409 with Retry-After; the operation goes on',
    async () => {
      const name = fresh('patience')
      await fault(name, 'slow', { ms: 2500 })
      const [first, second] = await Promise.all([
        call(name, 'charge_keyed', {}, { wait: '150ms' }),
        sleep(50).then(() => call(name, 'charge_keyed', {}, { wait: '150ms' }))
      ])
      status(first, 202)
      expectEqual(first.headers.get('location'), `/v1/operations/${first.json.key}`, 'Location')
      status(second, 409, 'in-flight')
      expect(Number(second.headers.get('retry-after')) >= 1, 'Retry-After', second.headers.get('retry-after'))
      status(await call(name, 'charge_keyed'), 200)
      expectEqual(books(name).charges, 1, 'charges')
    }
  )

  // --- the classic three, for each class ---

  const classic = async (name) => {
    const tool = `charge_${name}`
    const after = fresh(`after-${name}`)
    await fault(after, 'timeout-after-effect')
    const answers = [await call(after, tool, {}, { wait: '10s' })]
    for (let i = 0; i < 3; i++) answers.push(await call(after, tool, {}, { wait: '5s' }))
    const last = answers.at(-1)
    const needsPerson = name === 'once'
    if (needsPerson) {
      expect(
        answers.every((answer) => answer.status === 409),
        'nobody may call again',
        answers.map((answer) => answer.text)
      )
      const record = last.json.operation
      expectEqual([record.state, record.took_effect, record.attempts], ['escalated', 'maybe', 1], 'the record')
      status(await world.resolve(record.saga, { action: 'resolve', as: 'happened', result: { id: 'seen' } }), 200)
      expectEqual(status(await call(after, tool), 200).json.result, { id: 'seen' }, 'the verdict')
    } else {
      status(last, 200)
    }
    // An idempotent tool may be called twice; the shop honours the key that is sent with it anyway.
    expectEqual(books(after).charges, 1, `${name}: timeout after the effect`)

    const before = fresh(`before-${name}`)
    await fault(before, '422')
    status(await call(before, tool), 424)
    const again = await call(before, tool)
    status(again, name.startsWith('once') ? 424 : 200)
    expectEqual(books(before).charges, name.startsWith('once') ? 0 : 1, `${name}: error before`)

    for (const callers of [2, 8, 64]) {
      const race = fresh(`race-${name}`)
      await fault(race, 'slow', { ms: 150 })
      const all = await Promise.all(Array.from({ length: callers }, () => call(race, tool)))
      expect(
        all.every((answer) => answer.status === 200),
        'all get the result',
        all.map((answer) => answer.status)
      )
      expectEqual(new Set(all.map((answer) => answer.json.key)).size, 1, 'keys')
      expectEqual(
        world.ledger().filter((line) => line.path === '/charges' && line.body?.customer === race).length,
        1,
        `${name}: requests of ${callers} callers`
      )
    }
  }
  for (const name of Object.keys(effects))
    await promise(
      `${name}: timeout after the effect, error before it, 2 to 64 callers at once`,
      () => classic(name),
      180
    )
  await promise('a conditional class is decided from the arguments and frozen', async () => {
    const name = fresh('conditional')
    await fault(name, 'timeout-after-effect', { times: -1 })
    const record = (await call(name, 'charge_conditional', { args: args(name, { amount: 500 }) }, { wait: '10s' })).json
    const op = record.operation ?? record
    expectEqual(op.class, 'once', 'the class')
    expectEqual(op.attempts, 1, 'attempts')
    await world.noFaults()
  })

  // --- open sagas ---

  await promise(
    'an open saga: calls, then complete; a repeat afterwards still gets its stored result, a new call is refused',
    async () => {
      const saga = await open({ deadline: '60s' })
      const paid = status(await callIn(saga, 'charge_keyed'), 200)
      status(await world.api('POST', `/v1/sagas/${saga}/complete?wait=5s`, { output: { ok: true } }), 200)
      const shown = (await world.api('GET', `/v1/sagas/${saga}`)).json
      expectEqual([shown.status, shown.output], ['completed', { ok: true }], 'the saga')
      expectEqual(status(await callIn(saga, 'charge_keyed'), 200).json.key, paid.json.key, 'a repeat after the end')
      status(await callIn(saga, 'charge_keyed', { step: 'more' }), 409, 'saga-closed')
      expectEqual(books(saga), { charges: 1, standing: 1, mails: 0 }, 'the shop')
    }
  )
  await promise('abort undoes in exact reverse, with the arguments kept when the calls succeeded', async () => {
    const saga = await open()
    for (const step of ['a', 'b', 'c'])
      status(await callIn(saga, 'charge_keyed', { step, args: args(saga, { memo: step }) }), 200)
    await world.api('POST', `/v1/sagas/${saga}/abort`, { note: 'changed my mind' })
    await world.until(saga)
    const ledger = world.ledger().filter((line) => line.effect === 1 && line.body?.customer === saga)
    const charges = ledger.filter((line) => line.kind === 'charge').map((line) => line.id)
    const refunds = ledger.filter((line) => line.kind === 'refund').map((line) => line.body.charge_id)
    expectEqual(refunds, charges.toReversed(), 'the order of undoing')
    expectEqual(charges.length, 3, 'charges')
    status(await callIn(saga, 'charge_keyed', { step: 'd' }), 409, 'saga-closed')
  })
  await promise(
    'a terminal call is refused while anything is unsettled, seals the saga, and only a certain failure unseals it',
    async () => {
      const saga = await open()
      await fault(saga, 'slow', { ms: 500 })
      const slow = callIn(saga, 'charge_keyed')
      await until(async () =>
        (await world.api('GET', `/v1/sagas/${saga}`)).json.steps.some((step) => step.status === 'running')
      )
      status(await callIn(saga, 'mail', { args: { to: saga } }), 409, 'unsettled')
      status(await slow, 200)
      await world.fault({ route: 'mails', mode: '422', match: `"${saga}"`, times: 1 })
      status(await callIn(saga, 'mail', { args: { to: saga } }), 424)
      status(await callIn(saga, 'charge_keyed', { step: 'second' }), 200)
      status(await callIn(saga, 'mail', { args: { to: saga } }), 200)
      status(await callIn(saga, 'charge_keyed', { step: 'third' }), 409, 'saga-sealed')
      status(await callIn(saga, 'price', { args: { sku: 'tea' } }), 200)
      status(await callIn(saga, 'charge_keyed'), 200)
      status(
        await world.api('POST', `/v1/sagas/${saga}/abort`, { note: 'as the test wants it' }),
        409,
        'past-point-of-no-return'
      )
      status(await world.api('POST', `/v1/sagas/${saga}/complete`, {}), 200)
      expectEqual(books(saga), { charges: 2, standing: 2, mails: 1 }, 'the shop')
    }
  )
  await promise('the deadline undoes the work of an agent that vanished, or hands it to a person', async () => {
    const gone = await open({ deadline: '5s' })
    const asked = await open({ deadline: '5s', on_timeout: 'escalate' })
    for (const saga of [gone, asked]) status(await callIn(saga, 'charge_keyed'), 200)
    expectEqual((await world.until(gone)).status, 'compensated', 'the end')
    await until(async () => (await world.api('GET', `/v1/sagas/${asked}`)).json.status === 'escalated')
    status(await world.resolve(asked, { action: 'compensate' }), 200)
    expectEqual((await world.until(asked)).status, 'compensated', 'the end')
    expectEqual([books(gone).standing, books(asked).standing], [0, 0], 'what stands')
  })
  await promise('the same id opens the same saga', async () => {
    const id = fresh('trip')
    const all = await Promise.all(Array.from({ length: 16 }, () => world.api('POST', '/v1/sagas', { open: true, id })))
    expectEqual(new Set(all.map((answer) => answer.json.id)).size, 1, 'sagas')
    expectEqual(all.filter((answer) => answer.status === 201).length, 1, 'opened')
  })
  await promise(
    'the same id with another budget, loop, deadline or on_timeout is refused, also after a restart; the ' +
      'defaults spelled out are the same',
    async () => {
      const id = fresh('options')
      const body = { open: true, id, budget: { calls: 5, emissions: 9 }, deadline: '2h', on_timeout: 'escalate' }
      const first = status(await world.api('POST', '/v1/sagas', body), 201)
      await world.kill9()
      await world.startSagad()
      expectEqual(
        status(
          await world.api('POST', '/v1/sagas', { ...body, budget: { emissions: 9, calls: 5 }, deadline: '120m' }),
          200
        ).json.id,
        first.json.id,
        'the saga'
      )
      for (const other of [
        { budget: { calls: 6, emissions: 9 } },
        { budget: undefined },
        { deadline: '3h' },
        { deadline: undefined },
        { on_timeout: 'abort' },
        { loop: { repeats: 7 } }
      ]) {
        status(await world.api('POST', '/v1/sagas', { ...body, ...other }), 422, 'other-input')
      }
      const plain = fresh('options')
      const opened = status(await world.api('POST', '/v1/sagas', { open: true, id: plain }), 201)
      expectEqual(
        status(
          await world.api('POST', '/v1/sagas', { open: true, id: plain, deadline: '24h', on_timeout: 'abort' }),
          200
        ).json.id,
        opened.json.id,
        'the saga'
      )
    }
  )
  await promise(
    'a run is called by its name: under the id of its saga nothing is called, completed or aborted',
    async () => {
      const name = fresh('byname')
      const saga = status(await call(name, 'charge_keyed'), 200).json.saga
      for (const path of ['calls', 'complete', 'abort']) {
        const refused = await world.api(
          'POST',
          `/v1/sagas/${saga}/${path}`,
          path === 'calls' ? { tool: 'charge_keyed', step: 'more', args: args(name) } : {}
        )
        expect(
          [404, 409].includes(refused.status) && refused.json.title && refused.json.detail !== '',
          `${path} is refused`,
          `${refused.status} ${refused.text}`
        )
      }
      expectEqual(books(name).charges, 1, 'charges')
    }
  )
  await promise(
    'a `result` that fails after the tool completed is told in the log and counted; the call counts as made',
    async () => {
      const name = fresh('lost-result')
      const lost = async () =>
        Number(/^sagad_results_lost_total (\d+)/m.exec((await world.api('GET', '/metrics')).text)[1])
      const before = await lost()
      await world.define({
        tools: [
          {
            name: 'charge_unread',
            effect: 'once',
            terminal: true,
            timeout: '3s',
            result: { id: '${ .response.body.id | tonumber | error }' },
            http: { method: 'POST', url: `http://127.0.0.1:${world.shopPort}/charges`, body: '${ .args }' }
          }
        ],
        sagas: []
      })
      const first = status(await call(name, 'charge_unread'), 200)
      expectEqual([first.json.state, first.json.result], ['completed', null], 'the record')
      expect(/^the result: /.test(first.json.result_error), 'the record says why', first.text)
      status(await call(name, 'charge_unread'), 200)
      expectEqual((await lost()) - before, 1, 'results lost')
      expectEqual(books(name).charges, 1, 'charges')
    }
  )
  await promise(
    'a tool that was registered anew still answers for what it did: only what would be sent has to fit the ' +
      'newest version',
    async () => {
      const name = fresh('anew')
      const http = { method: 'POST', url: `http://127.0.0.1:${world.shopPort}/charges`, body: '${ .args }' }
      const tool = (more) => ({
        name: `tool_${name.replace('-', '_')}`,
        effect: 'keyed',
        key: { window: '1h' },
        terminal: true,
        timeout: '3s',
        result: { id: '${ .response.body.id }' },
        http,
        ...more
      })
      await world.define({ tools: [tool()], sagas: [] })
      const first = status(await call(name, tool().name), 200)
      await world.define({
        tools: [
          tool({ input: { type: 'object', required: ['currency'], properties: { currency: { type: 'string' } } } })
        ],
        sagas: []
      })
      const again = status(await call(name, tool().name), 200)
      expectEqual([again.json.key, again.json.result], [first.json.key, first.json.result], 'after a new schema')
      const other = status(await call(name, tool().name, { step: 'other' }), 422, 'invalid')
      expect(other.json.errors?.length > 0, 'the places that do not fit', other.text)
      await world.define({ tools: [tool({ terminal: undefined })], sagas: [] })
      expectEqual(status(await call(name, tool().name), 200).json.result, first.json.result, 'as a mere compensator')
      status(await call(name, tool().name, { step: 'other' }), 422, 'invalid')
      await world.define({ tools: [tool({ effect: 'read', key: undefined, terminal: undefined })], sagas: [] })
      expectEqual(status(await call(name, tool().name), 200).json.result, first.json.result, 'as a read')
      status(await call(name, 'no_such_tool'), 404)
      expectEqual(books(name).charges, 1, 'charges')
    }
  )
  await promise(
    'a precheck: what holds already is not done and not undone; what is blocked says what to do instead',
    async () => {
      const saga = await open()
      await world.atShop('PUT', `/tags/${saga}`, { tag: 'gold' })
      const done = status(await callIn(saga, 'tag', { step: 'one', args: { name: saga, tag: 'gold' } }), 200)
      expectEqual(
        [done.json.took_effect, done.json.result, done.json.attempts],
        ['before', { was: 'gold' }, 0],
        'the record'
      )
      status(await callIn(saga, 'tag', { step: 'two', args: { name: `${saga}-new`, tag: 'gold' } }), 200)
      await world.atShop('PUT', `/tags/${saga}-closed`, { tag: 'closed' })
      const blocked = status(
        await callIn(saga, 'tag', { step: 'three', args: { name: `${saga}-closed`, tag: 'gold' } }),
        422,
        'blocked-by-precheck'
      )
      expect(blocked.json.detail.includes('ask for another one'), 'the reason', blocked.text)
      await world.api('POST', `/v1/sagas/${saga}/abort`, { note: 'as the test wants it' })
      expectEqual((await world.until(saga)).status, 'compensated', 'the end')
      const untagged = world
        .ledger()
        .filter((line) => line.effect === 1 && line.kind === 'untag')
        .map((line) => line.target)
      expect(
        untagged.some((target) => String(target).includes('-new')) ||
          world.ledger().some((line) => line.path === `/tags/${saga}-new` && line.method === 'DELETE'),
        'what was done is undone'
      )
      expect(
        !world.ledger().some((line) => line.path === `/tags/${saga}` && line.method === 'DELETE'),
        'what held before is left alone'
      )
    }
  )

  // --- guards ---

  await promise(
    'loops of one and two calls are stopped, answers from the record count, a new turn opens them, a second ' +
      'trip pauses the run',
    async () => {
      const one = fresh('loop')
      status(await call(one, 'charge_keyed', { turn: '1' }), 200)
      status(await call(one, 'charge_keyed', { turn: '1' }), 200)
      const tripped = status(await call(one, 'charge_keyed', { turn: '1' }), 409, 'loop-detected')
      expectEqual(
        tripped.json.pattern.map((entry) => entry.tool),
        ['charge_keyed'],
        'the pattern'
      )
      status(await call(one, 'charge_keyed', { turn: '1' }), 409, 'loop-detected')
      status(await call(one, 'charge_keyed', { turn: '2' }), 200)
      status(await call(one, 'charge_keyed', { turn: '2' }), 200)
      status(await call(one, 'charge_keyed', { turn: '2' }), 409, 'loop-detected')
      const paused = status(await call(one, 'charge_keyed', { turn: '3', step: 'other' }), 409, 'paused')
      const saga =
        paused.json.operation?.saga ?? (await world.api('GET', `/v1/operations?run=${one}`)).json.items[0].saga
      expectEqual((await world.api('GET', `/v1/sagas/${saga}`)).json.status, 'paused', 'the run')
      status(await world.api('POST', `/v1/sagas/${saga}/resume`, { note: 'talked to it' }), 200)
      status(await call(one, 'charge_keyed', { turn: '3', step: 'other' }), 200)
      const two = fresh('pingpong')
      const pair = [
        { step: 'a', tool: 'price', args: { sku: 'tea' } },
        { step: 'b', tool: 'price', args: { sku: 'cup' } }
      ]
      const seen = []
      for (let i = 0; i < 6; i++)
        seen.push((await world.api('POST', '/v1/operations?wait=20s', { run: two, ...pair[i % 2] })).status)
      expectEqual(seen, [200, 200, 200, 200, 200, 409], 'a loop of two')
      for (const body of pair)
        status(await world.api('POST', '/v1/operations', { run: two, ...body }), 409, 'loop-detected')
    }
  )
  await promise('polling with changing answers is no loop', async () => {
    const name = fresh('poll')
    const positions = new Set()
    for (let i = 0; i < 12; i++)
      positions.add(JSON.stringify(status(await call(name, 'track', { args: { shipment: name } }), 200).json.result))
    expectEqual(positions.size, 12, 'answers')
  })
  await promise('a race is no loop', async () => {
    const name = fresh('norace')
    await fault(name, 'slow', { ms: 300 })
    const all = await Promise.all(Array.from({ length: 10 }, () => call(name, 'charge_keyed')))
    expect(
      all.every((answer) => answer.status === 200),
      'all coalesced',
      all.map((answer) => answer.status)
    )
  })
  await promise('a budget of a saga is never overdrawn, however many race for it', async () => {
    const saga = await open({ budget: { calls: 5 } })
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => callIn(saga, 'charge_keyed', { step: `s${i}` })))
    expectEqual(all.filter((answer) => answer.status === 200).length, 5, 'calls')
    expect(
      all.filter((answer) => answer.status !== 200).every((answer) => answer.status === 403),
      'the others are refused',
      all.map((answer) => answer.status)
    )
    expectEqual(books(saga).charges, 5, 'charges')
    const rich = await open({ budget: { micros: 1000 } })
    const bought = await Promise.all(
      Array.from({ length: 6 }, (_, i) => callIn(rich, 'charge_costly', { step: `s${i}` }))
    )
    expectEqual(bought.filter((answer) => answer.status === 200).length, 2, 'calls of 400 from 1000')
  })
  await promise(
    'rate: what is over is refused with Retry-After, nothing is sent, and the repeat gets through',
    async () => {
      const name = fresh('rated')
      const all = await Promise.all(Array.from({ length: 5 }, (_, i) => call(name, 'charge_rated', { step: `s${i}` })))
      const refused = all.map((answer, i) => [answer, i]).filter(([answer]) => answer.status === 429)
      expectEqual([all.filter((answer) => answer.status === 200).length, refused.length], [2, 3], 'through and refused')
      expect(
        refused.every(([answer]) => Number(answer.headers.get('retry-after')) >= 1),
        'Retry-After'
      )
      expectEqual(books(name).charges, 2, 'charges')
      await until(async () => (await call(name, 'charge_rated', { step: `s${refused[0][1]}` })).status === 200)
    }
  )
  await promise('concurrency over all callers', async () => {
    const name = fresh('narrow')
    await fault(name, 'slow', { ms: 4000, times: 2 })
    const all = await Promise.all(Array.from({ length: 4 }, (_, i) => call(name, 'charge_narrow', { step: `s${i}` })))
    expectEqual(all.map((answer) => answer.status).sort(), [200, 200, 429, 429], 'two at once')
  })
  await promise(
    'a breaker opens, refuses, tries with one safe call, and closes',
    async () => {
      const name = fresh('breaker')
      await fault(name, '500-before', { times: -1 })
      for (let i = 0; i < 3; i++) await call(name, 'charge_broken', { step: `s${i}` })
      const refused = status(await call(name, 'charge_broken', { step: 'next' }), 503, 'breaker-open')
      expect(Number(refused.headers.get('retry-after')) >= 1, 'Retry-After')
      const sent = () =>
        world.ledger().filter((line) => line.path === '/charges' && line.body?.customer === name).length
      expectEqual(sent(), 3, 'requests before')
      await sleep(4500)
      const probes = await Promise.all(
        Array.from({ length: 8 }, (_, i) => call(name, 'charge_broken', { step: `p${i}` }))
      )
      expectEqual(sent(), 4, 'one call tries')
      expect(
        probes.filter((answer) => answer.status === 503).length >= 7,
        'the others are refused',
        probes.map((answer) => answer.status)
      )
      await world.noFaults()
      await until(async () => (await call(name, 'charge_broken', { step: 'closing' })).status === 200, 30)
      // The try is answered before the breaker has heard of it.
      await until(async () => (await call(name, 'charge_broken', { step: 'closed' })).status === 200, 30)
    },
    90
  )

  // --- bypass ---

  await promise(
    'a bypass is one more execution: bound to the arguments, used once however many click; the log links both',
    async () => {
      const name = fresh('bypass')
      const first = status(await call(name, 'charge_keyed'), 200)
      status(await world.api('POST', `/v1/operations/${first.json.key}/bypass`, {}), 422)
      status(await world.api('POST', `/v1/operations/${first.json.key}/bypass`, { reason: 'a second copy' }), 200)
      const all = await Promise.all(Array.from({ length: 8 }, () => call(name, 'charge_keyed')))
      expect(
        all.every((answer) => answer.status === 200),
        'all are answered',
        all.map((answer) => `${answer.status} ${answer.json.type ?? ''}`)
      )
      const second = (await world.api('GET', `/v1/operations?run=${name}`)).json.items.find(
        (item) => item.generation === 1
      )
      expectEqual(new Set(all.map((answer) => answer.json.key)), new Set([second.key]), 'the new operation')
      expectEqual(books(name).charges, 2, 'charges')
      const entries = await log(first.json.saga)
      expect(
        entries.some((entry) => entry.type === 'bypass.signed' && entry.key === first.json.key && entry.actor),
        'who signed',
        entries
      )
      expect(
        entries.some(
          (entry) =>
            entry.type === 'step.called' &&
            entry.key === second.key &&
            JSON.stringify(entry.data).includes(first.json.key)
        ),
        'the link',
        entries
      )
    }
  )

  // --- crashes ---

  await promise('crash between key and call: what was surely not sent is sent once', async () => {
    const saga = await open()
    await world.fault({ route: 'probes', mode: 'hang', match: null, times: 1 })
    const calling = callIn(saga, 'tag', { args: { name: saga, tag: 'gold' } }).catch(() => null)
    await until(() => world.ledger().some((line) => line.path === `/tags/${saga}` && line.method === 'GET') || true)
    await until(async () => (await log(saga)).some((entry) => entry.type === 'step.called'))
    await world.kill9()
    await calling
    await world.startSagad()
    status(await callIn(saga, 'tag', { args: { name: saga, tag: 'gold' } }), 200)
    expectEqual(
      world
        .ledger()
        .filter(
          (line) =>
            (line.effect === 1 && line.kind === 'tag' && line.target === saga) ||
            (line.path === `/tags/${saga}` && line.method === 'PUT' && line.effect === 1)
        ).length,
      1,
      'effects'
    )
  })
  for (const name of ['keyed', 'checked', 'once', 'once_probed']) {
    await promise(
      `${name}: crash after the send, before the answer`,
      async () => {
        const run = fresh(`crash-${name}`)
        await fault(run, 'slow', { ms: 3000 })
        const calling = call(run, `charge_${name}`, {}, { wait: '1s' }).catch(() => null)
        await until(() => books(run).charges === 1)
        await world.kill9()
        await calling
        await world.startSagad()
        const answer = await until(async () => {
          const asked = await call(run, `charge_${name}`, {}, { wait: '5s' })
          return asked.status === 200 || asked.json?.type?.endsWith('awaiting-operator') ? asked : null
        }, 40)
        expectEqual(answer.status, name === 'once' ? 409 : 200, 'what the agent hears')
        expectEqual(books(run).charges, 1, 'charges')
      },
      120
    )
  }

  await promise('figures of each tool stand in the metrics', async () => {
    const text = (await world.api('GET', '/metrics')).text
    for (const name of [
      'operations_total',
      'duplicates_total',
      'calls_total',
      'retries_total',
      'unknown_open',
      'unknown_oldest_seconds',
      'drift_total',
      'loop_trips_total',
      'budget_refusals_total',
      'breaker_state'
    ])
      expect(
        new RegExp(`^sagad_tool_${name}\\{.*tool="charge_`, 'm').test(text),
        `sagad_tool_${name} is there`,
        text.slice(-2000)
      )
  })
  await promise('every log folds to the state that is stored', async () => {
    const replayed = world.sagactl(['replay', '--all'])
    expect(replayed.status === 0, 'replay --all', replayed.stdout.slice(-500) + replayed.stderr)
  })

  // --- runs that rest ---

  const asleep = async ({ first }) => {
    await until(
      () => world.sql(`select ended_at is not null from sagad.saga where id = '${first.json.saga}'`) === 't',
      60
    )
    return world.sql(`select s.xmin, (select count(*) from sagad.log l where l.shard = s.shard and l.saga = s.id),
      (select count(*) from sagad.awake a where a.saga = s.id) from sagad.saga s where s.id = '${first.json.saga}'`)
  }

  await promise('a repeat to a run that rests is one turn of the log, and leaves its row as it was', async () => {
    const [sleeper] = sleepers
    const [row, turns, awake] = (await asleep(sleeper)).split('|')
    const again = status(await call(sleeper.name, 'charge_keyed', { step: 'pay' }), 200)
    expectEqual(again.headers.get('idempotent-replayed'), 'true', 'the header of a replay')
    expectEqual(again.json.result, sleeper.first.json.result, 'the stored result')
    expectEqual(await asleep(sleeper), [row, Number(turns) + 1, awake].join('|'), 'row, turns, awake')
    expectEqual(
      (await log(sleeper.first.json.saga)).slice(-3).map(({ type }) => type),
      ['run.woken', 'operation.duplicate', 'run.rested'],
      'the last turn'
    )
    expectEqual(books(sleeper.name), { charges: 1, standing: 1, mails: 0 }, 'the shop')
  })

  await promise(
    'twenty repeats at once to a run that rests are answered from its record, and each is counted',
    async () => {
      const [, sleeper] = sleepers
      await asleep(sleeper)
      const repeats = await Promise.all(
        Array.from({ length: 20 }, () => call(sleeper.name, 'charge_keyed', { step: 'pay' }))
      )
      for (const again of repeats) {
        status(again, 200)
        expectEqual(again.json.result, sleeper.first.json.result, 'the stored result')
      }
      expectEqual(Math.max(...repeats.map(({ json }) => json.duplicates_seen)), 20, 'duplicates seen')
      expectEqual(books(sleeper.name), { charges: 1, standing: 1, mails: 0 }, 'the shop')
      await asleep(sleeper) // the second of them woke it, and it goes to rest again
      expectEqual(
        status(await call(sleeper.name, 'charge_keyed', { step: 'pay' }), 200).json.duplicates_seen,
        21,
        'seen'
      )
    }
  )

  await promise('a stored state that is damaged is found by replay, and believed by nobody', async () => {
    const [sleeper] = sleepers
    await asleep(sleeper)
    const saga = sleeper.first.json.saga
    const good = world.sagactl(['replay', saga, '-o', 'json'])
    expect(good.status === 0 && JSON.parse(good.stdout).rests > 0, 'replay', good.stdout + good.stderr)
    // "id" of the result becomes "iD".
    world.sql(`update sagad.log l set rest = overlay(l.rest placing '\\x22694422'::bytea
      from position('\\x22696422'::bytea in l.rest)) where l.saga = '${saga}'
      and l.seq = (select max(n.seq) from sagad.log n where n.saga = l.saga)`)
    const found = world.sagactl(['replay', saga])
    expectEqual(found.status, 1, 'replay')
    expect(/the state at rest .* is not what its log folds to/.test(found.stdout), 'its sentence', found.stdout)
    // The engine with which the run went to rest has kept the state in memory; the next one reads it.
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    await world.startSagad()
    const again = status(await call(sleeper.name, 'charge_keyed', { step: 'pay' }), 200)
    expectEqual(again.json.result, sleeper.first.json.result, 'the stored result')
    expect(
      /^sagad_rests_damaged_total [1-9]/m.test((await world.api('GET', '/metrics')).text),
      'it was told',
      'a metric'
    )
    expectEqual(books(sleeper.name), { charges: 1, standing: 1, mails: 0 }, 'the shop')
  })
})
