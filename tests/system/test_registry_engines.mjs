// The promises of the registry, kept by two engines over one database, of which one owns every shard. Clients race over
// both, guards count over both, everything can be asked of the engine that owns nothing, and the owner is killed, or
// stopped and woken after its lease. The judge is the shop's ledger; when a key would hide a second effect, the shop is
// told to ignore keys. Both engines are standbys, so that the first one keeps all shards; test_balance.mjs shows how
// engines share.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const retry = { max_attempts: 5, initial: '50ms', factor: 2, max: '200ms' }
const BUDGET = 7

function definitions(shop) {
  const probe = (visibility, give_up_after) => ({
    http: { method: 'GET', url: `${shop}/charges/by-key/\${ .key }` },
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
    result: { id: '${ .response.body.id }' },
    visibility,
    give_up_after
  })
  const charge = {
    http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
    material: ['/amount', '/customer'],
    result: { id: '${ .response.body.id }' },
    timeout: '10s',
    compensate: {
      tool: 'refund',
      with: { charge_id: '${ .result.id }', customer: '${ .args.customer }' },
      retry: { ...retry, max_attempts: 20 }
    }
  }
  const keyed = { effect: 'keyed', key: { window: '1h' }, retry }
  const quick = probe('300ms', '20s')
  // Calls that may take longer than a lease.
  const patient = { ...charge, timeout: '40s' }
  return {
    sagas: [],
    tools: [
      {
        name: 'refund',
        ...keyed,
        timeout: '10s',
        result: { id: '${ .response.body.id }' },
        http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' }
      },
      {
        name: 'mail',
        ...keyed,
        terminal: true,
        timeout: '10s',
        http: { method: 'POST', url: `${shop}/mails`, body: { to: '${ .args.to }', subject: '${ .args.to }' } }
      },
      {
        name: 'price',
        effect: 'read',
        timeout: '10s',
        retry,
        http: { method: 'GET', url: `${shop}/prices/\${ .args.sku }` },
        result: '${ .response.body }'
      },
      { name: 'keyed', ...charge, ...keyed },
      { name: 'checked', ...charge, effect: 'checked', retry, probe: quick },
      { name: 'once', ...charge, effect: 'once' },
      { name: 'keyed_long', ...patient, ...keyed },
      { name: 'checked_long', ...patient, effect: 'checked', retry, probe: quick },
      { name: 'checked_late', ...patient, effect: 'checked', retry, probe: probe('9s', '40s') },
      { name: 'once_long', ...patient, effect: 'once' },
      { name: 'once_probed', ...patient, effect: 'once', probe: quick },
      { name: 'rated', ...charge, ...keyed, rate: { limit: 4, per: '60s' } },
      { name: 'narrow', ...charge, ...keyed, timeout: '10s', concurrency: 3 },
      { name: 'costly', ...charge, ...keyed, cost: 400 },
      { name: 'budgeted', ...charge, ...keyed },
      {
        name: 'broken',
        ...charge,
        ...keyed,
        retry: { max_attempts: 1 },
        breaker: { failures: 4, window: '60s', cooldown: '3s' }
      }
    ]
  }
}

await run(new World(), async (world) => {
  const budgets = join(world.directory, 'budgets.json')
  writeFileSync(budgets, JSON.stringify({ budgets: [{ tool: 'budgeted', per: 'ever', calls: BUDGET }] }))
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startEngines(1, ['--standby', '--budgets', budgets])
  world.engines.push({ name: 'sagad-1', port: await freePort() }) // late, so that the first one has taken all shards
  world.launchEngine(world.engines[1])
  await world.engineReady(world.engines[1])
  let [owner, taker] = world.engines

  const api = (engine, method, path, body, { headers = {}, seconds = 90 } = {}) => {
    world.port = engine.port // api() reads it before its first await
    return world.api(method, path, body, { headers, seconds })
  }
  const either = (i) => (i % 2 ? taker : owner)
  let count = 0
  const fresh = (name) => `${name}-${++count}`
  const args = (customer, more = {}) => ({ amount: 5, customer, ...more })
  // Calls a tool with a turn of its own, so that no loop is seen by mistake.
  const call = (engine, run, tool, body = {}, { wait = '20s' } = {}) =>
    api(engine, 'POST', `/v1/operations?wait=${wait}`, { run, tool, args: args(run), turn: fresh('turn'), ...body })
  const callIn = (engine, saga, tool, body = {}, { wait = '20s' } = {}) =>
    api(engine, 'POST', `/v1/sagas/${saga}/calls?wait=${wait}`, {
      tool,
      args: args(saga),
      turn: fresh('turn'),
      ...body
    })
  const open = async (engine, body = {}) => (await api(engine, 'POST', '/v1/sagas', { open: true, ...body })).json.id
  const saga = async (engine, id) => (await api(engine, 'GET', `/v1/sagas/${id}`)).json
  const requests = (customer) =>
    world.ledger().filter((line) => line.path === '/charges' && line.body?.customer === customer).length
  const effects = (kind, customer) =>
    world.ledger().filter((line) => line.effect === 1 && line.kind === kind && line.body?.customer === customer)
  const charges = (customer) => effects('charge', customer).length
  const fault = (customer, mode, more = {}) =>
    world.fault({ route: 'charges', mode, match: `"${customer}"`, times: 1, ...more })
  const isProblem = (answer, type) => answer.json?.type === `urn:sagad:problem:${type}`
  const status = (answer, wanted, type) => {
    expect(
      answer.status === wanted && (!type || isProblem(answer, type)),
      `expected ${wanted} ${type ?? ''}`,
      `${answer.status} ${answer.text}`
    )
    return answer
  }
  const codes = (answers) =>
    answers
      .map((answer) => `${answer.status}${answer.json?.type ? ` ${answer.json.type.split(':').at(-1)}` : ''}`)
      .sort()
  const until = (so, seconds = 20) => eventually(String(so), so, { seconds })
  // Asks the database, because a stopped engine cannot answer; each takeover raises the epoch.
  const epochs = () => Number(world.sql('select min(epoch) from sagad.shard'))
  const swap = () => {
    ;[owner, taker] = [taker, owner]
  }

  await promise('one engine owns every shard, the other knows the tools', async () => {
    expect(!(await world.asks(taker, '/readyz')), 'the second owns something')
    expectEqual(world.sql('select count(distinct owner_identity) from sagad.shard'), '1', 'owners')
    await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
    await until(async () => (await api(taker, 'GET', '/v1/tools/broken')).status === 200)
  })

  await promise(
    'a tool registered at one and called there at once is known to the owner of the run, however late its news come',
    async () => {
      for (let i = 0; i < 20; i++) {
        const name = fresh('news')
        const tool = {
          ...definitions(`http://127.0.0.1:${world.shopPort}`).tools.find((each) => each.name === 'keyed'),
          name: `news_${i}`
        }
        status(await api(taker, 'POST', '/v1/definitions', { tools: [tool], sagas: [] }), 200)
        status(await call(taker, name, tool.name), 200)
        expectEqual(charges(name), 1, 'charges')
      }
    }
  )

  // --- races ---

  for (const tool of ['keyed', 'checked', 'once']) {
    await promise(
      `${tool}: 2, 8 and 64 callers at once, over both: one request leaves, all get its result`,
      async () => {
        for (const callers of [2, 8, 64]) {
          const name = fresh(`race-${tool}`)
          await fault(name, 'slow', { ms: 300 })
          const all = await Promise.all(Array.from({ length: callers }, (_, i) => call(either(i), name, tool)))
          expect(
            all.every((answer) => answer.status === 200),
            `${callers} callers`,
            codes(all)
          )
          expectEqual(
            new Set(all.map((answer) => `${answer.json.key} ${JSON.stringify(answer.json.result)}`)).size,
            1,
            'answers'
          )
          expectEqual(
            all.filter((answer) => answer.headers.get('idempotent-replayed') !== 'true').length,
            1,
            'of them the first'
          )
          expectEqual(requests(name), 1, `requests of ${callers} callers`)
        }
      }
    )
  }
  await promise('the same in an open saga, and when nobody waits long enough to see its end', async () => {
    const id = await open(taker)
    await fault(id, 'slow', { ms: 4000 })
    const all = await Promise.all(
      Array.from({ length: 16 }, (_, i) => callIn(either(i), id, 'keyed_long', {}, { wait: '100ms' }))
    )
    expectEqual(
      [
        all.filter((answer) => answer.status === 202).length,
        all.filter((answer) => isProblem(answer, 'in-flight')).length
      ],
      [1, 15],
      codes(all).join()
    )
    const later = await Promise.all([callIn(owner, id, 'keyed_long'), callIn(taker, id, 'keyed_long')])
    expectEqual(codes(later), ['200', '200'], 'with patience')
    expectEqual(requests(id), 1, 'requests')
  })
  await promise(
    'one emission sent to both engines is one; with other content the other engine refuses it',
    async () => {
      const name = fresh('emission')
      const headers = { 'idempotency-key': `e-${name}` }
      const body = { run: name, tool: 'keyed', args: args(name) }
      const both = await Promise.all(
        [owner, taker].map((engine) => api(engine, 'POST', '/v1/operations', body, { headers }))
      )
      expectEqual(codes(both), ['200', '200'], 'both')
      status(await api(taker, 'POST', '/v1/operations', { ...body, step: 'other' }, { headers }), 422, 'other-input')
      status(await call(taker, name, 'keyed', { args: args(name, { amount: 6 }) }), 422, 'arguments-differ')
      expectEqual(charges(name), 1, 'charges')
    }
  )

  // --- bypass ---

  await promise('a bypass, signed twice at once and used by 16 at once over both: one more execution', async () => {
    const name = fresh('bypass')
    const first = status(await call(taker, name, 'keyed'), 200)
    const signed = await Promise.all(
      [owner, taker].map((engine) =>
        api(engine, 'POST', `/v1/operations/${first.json.key}/bypass`, { reason: 'a second copy' })
      )
    )
    expect(
      signed.some((answer) => answer.status === 200),
      'it is signed',
      codes(signed)
    )
    await fault(name, 'slow', { ms: 200 })
    const all = await Promise.all(Array.from({ length: 16 }, (_, i) => call(either(i), name, 'keyed')))
    expect(
      all.every((answer) => answer.status === 200 && answer.json.generation === 1),
      'all get the new one',
      codes(all)
    )
    await Promise.all([owner, taker].map((engine) => call(engine, name, 'keyed')))
    expectEqual([charges(name), requests(name)], [2, 2], 'charges and requests')
  })

  // --- guards over both ---

  await promise('the budget of a saga, raced for over both, is not overdrawn: calls, and money', async () => {
    const id = await open(taker, { budget: { calls: 5 } })
    const all = await Promise.all(
      Array.from({ length: 24 }, (_, i) => callIn(either(i), id, 'keyed', { step: `s${i}` }))
    )
    expectEqual(codes(all), [...Array(5).fill('200'), ...Array(19).fill('403 budget-exhausted')], 'calls')
    const rich = await open(owner, { budget: { micros: 1300 } })
    const bought = await Promise.all(
      Array.from({ length: 10 }, (_, i) => callIn(either(i), rich, 'costly', { step: `s${i}` }))
    )
    expectEqual(codes(bought), [...Array(3).fill('200'), ...Array(7).fill('403 budget-exhausted')], 'bought')
    expectEqual([charges(id), charges(rich)], [5, 3], 'charges')
  })
  await promise('the budget of a tool, raced for by many runs over both, is not overdrawn', async () => {
    const names = Array.from({ length: 20 }, () => fresh('budgeted'))
    const all = await Promise.all(names.map((name, i) => call(either(i), name, 'budgeted')))
    expectEqual(codes(all), [...Array(BUDGET).fill('200'), ...Array(20 - BUDGET).fill('403 budget-exhausted')], 'calls')
    expectEqual(
      names.reduce((sum, name) => sum + charges(name), 0),
      BUDGET,
      'charges'
    )
  })
  await promise('a rate holds over both: what is over is refused with Retry-After and not sent', async () => {
    const names = Array.from({ length: 16 }, () => fresh('rated'))
    const all = await Promise.all(names.map((name, i) => call(either(i), name, 'rated')))
    const through = all.filter((answer) => answer.status === 200).length
    expect(through >= 4 && through <= 5, 'through', codes(all)) // one more drops every 15 s
    const refused = all.filter((answer) => answer.status === 429)
    expect(
      refused.length === 16 - through && refused.every((answer) => Number(answer.headers.get('retry-after')) >= 1),
      'the others',
      codes(all)
    )
    expectEqual(
      names.reduce((sum, name) => sum + requests(name), 0),
      through,
      'requests'
    )
  })
  await promise('a limit of concurrency holds over both', async () => {
    const names = Array.from({ length: 8 }, () => fresh('narrow'))
    await world.fault({ route: 'charges', mode: 'slow', match: '"narrow-', times: -1, ms: 4000 })
    const all = await Promise.all(names.map((name, i) => call(either(i), name, 'narrow')))
    await world.noFaults()
    expectEqual(codes(all), [...Array(3).fill('200'), ...Array(5).fill('429 rate-limited')], 'three at once')
    expectEqual(
      names.reduce((sum, name) => sum + requests(name), 0),
      3,
      'requests'
    )
  })
  await promise(
    'a breaker opens by failures seen through both, and half open lets one call through, over both',
    async () => {
      const family = fresh('breaker')
      const sent = () =>
        world.ledger().filter((line) => line.path === '/charges' && line.body?.customer?.startsWith(family)).length
      await world.fault({ route: 'charges', mode: '500-before', match: `"${family}`, times: -1 })
      for (let i = 0; i < 4; i++) await call(either(i), `${family}-a${i}`, 'broken')
      const refused = await Promise.all([0, 1].map((i) => call(either(i), `${family}-b${i}`, 'broken')))
      expectEqual(codes(refused), ['503 breaker-open', '503 breaker-open'], 'while it is open')
      expectEqual(sent(), 4, 'requests before')
      await sleep(5500)
      const tried = await Promise.all(
        Array.from({ length: 12 }, (_, i) => call(either(i), `${family}-c${i}`, 'broken'))
      )
      expectEqual(sent(), 5, `one tries: ${codes(tried)}`)
      await world.noFaults()
      await until(async () => (await call(taker, `${family}-d`, 'broken')).status === 200, 30)
      await until(async () => (await call(owner, `${family}-e`, 'broken')).status === 200, 30)
    }
  )

  // --- open sagas through both ---

  await promise('an open saga, driven through both in turn: calls, the terminal rule, sealing, the end', async () => {
    const id = await open(taker, { deadline: '10m' })
    for (let i = 0; i < 6; i++) status(await callIn(either(i), id, 'keyed', { step: `s${i}` }), 200)
    await fault(id, 'slow', { ms: 600 })
    const slow = callIn(owner, id, 'keyed', { step: 'slow' })
    await until(async () => (await saga(taker, id)).steps.some((step) => step.status === 'running'))
    status(await callIn(taker, id, 'mail', { args: { to: id } }), 409, 'unsettled')
    status(await slow, 200)
    status(await callIn(taker, id, 'mail', { args: { to: id } }), 200)
    for (const engine of [owner, taker]) {
      status(await callIn(engine, id, 'keyed', { step: 'more' }), 409, 'saga-sealed')
      status(await callIn(engine, id, 'price', { args: { sku: 'tea' } }), 200)
      status(await callIn(engine, id, 'keyed', { step: 's0' }), 200)
      status(
        await api(engine, 'POST', `/v1/sagas/${id}/abort`, { note: 'as the test wants it' }),
        409,
        'past-point-of-no-return'
      )
    }
    status(await api(taker, 'POST', `/v1/sagas/${id}/complete?wait=5s`, { output: { fine: true } }), 200)
    for (const engine of [owner, taker]) {
      const shown = await saga(engine, id)
      expectEqual([shown.status, shown.output], ['completed', { fine: true }], 'the end')
      status(await callIn(engine, id, 'keyed', { step: 'late' }), 409, 'saga-closed')
    }
    expectEqual(charges(id), 7, 'charges')
  })
  await promise('complete through the one that owns nothing waits for what is under way', async () => {
    const id = await open(owner)
    await fault(id, 'slow', { ms: 1000 })
    const slow = callIn(taker, id, 'keyed')
    await until(async () => (await saga(taker, id)).steps.length > 0)
    status(await api(taker, 'POST', `/v1/sagas/${id}/complete?wait=0s`, {}), 409, 'unsettled')
    status(await api(taker, 'POST', `/v1/sagas/${id}/complete?wait=10s`, {}), 200)
    status(await slow, 200)
  })
  await promise('abort through it undoes in exact reverse what was called through both', async () => {
    const id = await open(taker)
    for (let i = 0; i < 4; i++) status(await callIn(either(i), id, 'keyed', { step: `s${i}` }), 200)
    const aborted = await api(taker, 'POST', `/v1/sagas/${id}/abort`, { note: 'not wanted' })
    expect(aborted.status === 200 || aborted.status === 202, 'abort', aborted.text)
    await until(async () => (await saga(taker, id)).status === 'compensated', 30)
    expectEqual(
      effects('refund', id).map((line) => line.body.charge_id),
      effects('charge', id)
        .map((line) => line.id)
        .toReversed(),
      'the order of undoing'
    )
  })
  await promise('a verdict given through it settles the operation, and both answer it', async () => {
    const name = fresh('verdict')
    await fault(name, 'reset-after-effect')
    const lost = await call(taker, name, 'once', {}, { wait: '10s' })
    expect(lost.status === 409, 'nobody knows', lost.text)
    const list = await until(async () =>
      (await api(taker, 'GET', '/v1/escalations?status=open')).json.items.find(
        (item) => item.saga === lost.json.operation.saga
      )
    )
    status(
      await api(taker, 'POST', `/v1/escalations/${list.n}/resolve`, {
        action: 'resolve',
        as: 'happened',
        result: { id: 'seen' },
        note: 'in the books'
      }),
      200
    )
    for (const engine of [taker, owner])
      expectEqual(status(await call(engine, name, 'once'), 200).json.result, { id: 'seen' }, 'the verdict')
    expectEqual(charges(name), 1, 'charges')
  })
  await promise(
    'a loop made over both is one loop; a second trip pauses, and resume through the one that owns nothing goes on',
    async () => {
      const name = fresh('loop')
      const say = (i, turn, more = {}) => call(either(i), name, 'keyed', { turn, ...more })
      for (const turn of ['1', '2']) {
        for (let i = 0; i < 2; i++) status(await say(i, turn), 200)
        status(await say(2, turn), 409, 'loop-detected')
      }
      status(await say(1, '3', { step: 'other' }), 409, 'paused')
      const id = (await api(taker, 'GET', `/v1/operations?run=${name}`)).json.items[0].saga
      status(await api(taker, 'POST', `/v1/sagas/${id}/resume`, { note: 'talked to it' }), 200)
      status(await say(1, '3', { step: 'other' }), 200)
    }
  )

  // --- the owner is stopped for longer than its lease, with calls under way ---

  // Begins calls, stops the owner when `begun` holds, and wakes it when the other engine has taken over and `meanwhile`
  // is done. Then the roles have changed. Returns the answers of the clients, of whom every second one asked the
  // stopped engine.
  const stopOwner = async (names, tool, begun, meanwhile = () => {}) => {
    const before = epochs()
    const callers = names.map((name, i) =>
      call(either(i), name, tool, {}, { wait: '30s' }).catch((error) => ({ status: 0, text: String(error) }))
    )
    for (const name of names) await until(() => begun(name))
    owner.child.kill('SIGSTOP')
    try {
      await until(() => epochs() > before, 30)
      await meanwhile()
    } finally {
      owner.child.kill('SIGCONT')
      swap()
    }
    return Promise.all(callers)
  }
  const isSent = (name) => requests(name) > 0
  const settled = (engine, name, tool, seconds = 60) =>
    until(async () => {
      const asked = await call(engine, name, tool, {}, { wait: '10s' })
      return asked.status === 200 || isProblem(asked, 'awaiting-operator') ? asked : null
    }, seconds)
  const honest = (told) =>
    expect(
      told.every(
        (answer) =>
          [0, 200].includes(answer.status) ||
          answer.status >= 500 ||
          ['in-flight', 'outcome-unknown', 'awaiting-operator'].some((type) => isProblem(answer, type))
      ),
      'what the callers heard',
      codes(told)
    )

  await promise(
    'keyed: an owner stopped longer than its lease, woken when the next one has called again: one effect',
    async () => {
      const names = [fresh('stop-keyed'), fresh('stop-keyed')]
      for (const name of names) await fault(name, 'slow', { ms: 4000 })
      honest(await stopOwner(names, 'keyed_long', isSent, () => until(() => names.every((name) => requests(name) > 1))))
      for (const name of names) {
        status(await settled(owner, name, 'keyed_long'), 200)
        expectEqual(charges(name), 1, 'charges')
      }
    },
    150
  )
  await promise(
    'checked, at a shop that ignores keys: the next owner asks and does not call again; the late answer changes ' +
      'nothing',
    async () => {
      await world.shopSettings({ keys: 'ignore' })
      const names = [fresh('stop-checked'), fresh('stop-checked')]
      for (const name of names) await fault(name, 'slow', { ms: 5000 })
      honest(
        await stopOwner(names, 'checked_long', isSent, async () => {
          for (const name of names) status(await settled(taker, name, 'checked_long'), 200)
        })
      )
      await sleep(1500)
      for (const name of names) {
        status(await settled(owner, name, 'checked_long'), 200)
        expectEqual([charges(name), requests(name)], [1, 1], 'charges and requests')
      }
    },
    150
  )
  await promise(
    'checked: an effect that shows only after the takeover is waited for, as long as `visibility` says',
    async () => {
      const names = [fresh('stop-late')]
      await fault(names[0], 'late', { ms: 7000 })
      honest(
        await stopOwner(names, 'checked_late', async (name) => {
          const shown = (await api(taker, 'GET', `/v1/operations?run=${name}`)).json.items
          return shown[0]?.state === 'in_flight' && sleep(500).then(() => true)
        })
      )
      status(await settled(owner, names[0], 'checked_late'), 200)
      await sleep(500)
      expectEqual([charges(names[0]), requests(names[0])], [1, 1], 'charges and requests')
    },
    150
  )
  for (const tool of ['once_long', 'once_probed']) {
    await promise(
      `${tool}: never two; a person is asked or a probe says, and the answer that comes late settles what is open`,
      async () => {
        const names = [fresh(`stop-${tool}`), fresh(`stop-${tool}`)]
        for (const name of names) await fault(name, 'slow', { ms: 5000 })
        let sagas
        honest(
          await stopOwner(names, tool, isSent, async () => {
            const asked = await Promise.all(names.map((name) => settled(taker, name, tool)))
            sagas = asked.map((answer) => (answer.json.operation ?? answer.json).saga)
            expectEqual(
              codes(asked),
              tool === 'once_long' ? ['409 awaiting-operator', '409 awaiting-operator'] : ['200', '200'],
              'while the old owner is stopped'
            )
          })
        )
        // The answers wait in the sockets of the stopped engine, which hands them to the owner as evidence.
        for (const name of names) {
          const last = await until(async () => {
            const answer = await call(owner, name, tool, {}, { wait: '5s' })
            return answer.status === 200 ? answer : null
          }, 30)
          expect(last.json.result?.id, 'the result', last.text)
          expectEqual([charges(name), requests(name)], [1, 1], 'charges and requests')
        }
        await until(
          async () =>
            !(await api(owner, 'GET', '/v1/escalations?status=open')).json.items.some((item) =>
              sagas.includes(item.saga)
            )
        )
      },
      150
    )
  }
  await promise('callers of runs and open sagas go on through both after that', async () => {
    await world.shopSettings({ keys: 'honour' })
    const id = await open(taker)
    for (let i = 0; i < 4; i++) {
      status(await callIn(either(i), id, 'keyed', { step: `s${i}` }), 200)
      status(await call(either(i), fresh('on'), 'keyed'), 200)
    }
    status(await api(taker, 'POST', `/v1/sagas/${id}/complete?wait=5s`, {}), 200)
  })

  // --- the owner is killed ---

  await promise(
    'the owner is killed while callers wait at the other one: each gets its answer, keyed and checked have one ' +
      'effect, once none too many',
    async () => {
      const tools = ['keyed_long', 'checked_long', 'once_probed', 'once_long']
      const cases = Array.from({ length: 24 }, (_, i) => ({ name: fresh('killed'), tool: tools[i % 4] }))
      for (const { name } of cases) await fault(name, 'slow', { ms: 4000 })
      const callers = cases.map(({ name, tool }) => call(taker, name, tool, {}, { wait: '40s' }))
      await until(() => cases.every(({ name }) => requests(name) > 0))
      await world.killEngine(owner)
      const answers = await Promise.all(callers)
      swap()
      honest(answers)
      expect(
        answers.every((answer) => answer.status > 0),
        'each was answered',
        codes(answers)
      )
      for (const { name, tool } of cases) {
        const last = await settled(owner, name, tool)
        if (tool === 'once_long') status(last, 409, 'awaiting-operator')
        else status(last, 200)
        expectEqual(charges(name), 1, `charges of ${name}, ${tool}`)
      }
      world.launchEngine(taker)
      await world.engineReady(taker)
    },
    180
  )
  await promise(
    'killed again and again while callers of one key repeat at both: one effect a key',
    async () => {
      const names = Array.from({ length: 12 }, () => fresh('storm'))
      const tools = ['keyed', 'checked', 'once_probed']
      const ended = names.map(async (name, i) => {
        for (let tries = 0; tries < 200; tries++) {
          try {
            const answer = await call(either(tries), name, tools[i % 3], {}, { wait: '5s' })
            if (answer.status === 200) return 200
            if (answer.status < 500 && answer.status !== 409) return `${answer.status} ${answer.text}`
          } catch {
            /* that one was killed: the same again, at the other */
          }
          await sleep(200)
        }
        return 'never'
      })
      await world.fault({ route: 'charges', mode: 'slow', match: '"storm-', times: -1, ms: 300 })
      for (let kills = 0; kills < 3; kills++) {
        await sleep(1200)
        await world.killEngine(owner)
        swap()
        world.launchEngine(taker)
        await sleep(3500)
      }
      const told = await Promise.all(ended)
      await world.noFaults()
      expectEqual([...new Set(told)], [200], 'answers')
      for (const name of names) expectEqual(charges(name), 1, `charges of ${name}`)
      await world.engineReady(taker)
    },
    240
  )

  // Answers to a request whose sender found the result by itself are swept later.
  await promise(
    'nothing is left in the inbox',
    async () => {
      const left = () =>
        world.sql(`select kind || ' ' || coalesce(left(convert_from(payload, 'UTF8'), 200), '') from sagad.inbox`)
      for (const end = Date.now() + 30000; left() !== '' && Date.now() < end;) await sleep(200)
      expectEqual(left(), '', 'rows')
    },
    60
  )
  await promise('every log folds to the state that is stored', async () => {
    world.port = owner.port
    const replayed = world.sagactl(['replay', '--all'])
    expect(replayed.status === 0, 'replay --all', replayed.stdout.slice(-500) + replayed.stderr)
  })
})
