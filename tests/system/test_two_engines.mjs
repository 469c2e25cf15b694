// Two engines over one database, of which one owns every shard. Requests to the other one go through the inbox, and
// clients see no difference. Both are standbys, so that the first one keeps all shards; test_balance.mjs shows how
// engines share.
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startShop()
  await world.startEngines(1, ['--standby'])
  world.engines.push({ name: 'sagad-1', port: await freePort() }) // late, so that the first one has taken all shards
  const launch = async (engine) => {
    world.launchEngine(engine)
    await world.engineReady(engine)
    // An engine that owns nothing is ready for this test when it has the database.
    while (!(await world.asks(engine, '/v1/sagas'))) await sleep(50)
  }
  await launch(world.engines[1])
  let [owner, taker] = world.engines
  const at = (engine, method, path, body, options) => {
    world.port = engine.port // api() reads it before its first await
    return world.api(method, path, body, options)
  }
  let turn = 0
  const reserve = (run, more = {}) => ({
    run,
    turn: ++turn, // a repeat that the user asked for is no loop
    step: 'reserve',
    tool: 'stock.reserve',
    args: { request: run, sku: 'book', qty: 1 },
    ...more
  })
  const problem = (name) => `urn:sagad:problem:${name}`
  const effects = (request) =>
    world.ledger().filter((line) => line.kind === 'reserve' && line.effect === 1 && line.request === request).length
  const waiting = () => world.sql('select (select count(*) from sagad.inbox) + (select count(*) from sagad.answer)')
  // An answer of an engine that was killed or frozen may be left until the sweep of answers.
  const nothingWaits = async (rows = waiting) => {
    for (let tries = 0; rows() !== '0'; tries++) {
      expect(
        tries < 200,
        'rows are left in the inbox or among the answers',
        world.sql("select kind, convert_from(payload, 'UTF8') from sagad.inbox") + waiting()
      )
      await sleep(100)
    }
  }

  await promise('the second engine owns nothing', async () => {
    expect(!(await world.asks(taker, '/readyz')), 'it is ready')
    const registry = world.example('registry.json')
    const patient = {
      ...registry.tools.find((tool) => tool.name === 'stock.reserve_once'),
      name: 'stock.reserve_patiently',
      timeout: '60s'
    }
    await world.define({ ...registry, tools: [...registry.tools, patient] })
    await world.define(world.example('shop.json'))
    for (let tries = 0; (await at(taker, 'GET', '/v1/definitions/stock.reserve')).status !== 200 && tries < 50; tries++)
      await sleep(100)
  })

  await promise(
    'a call through it is made once, and repeats get the stored result, byte for byte, on both',
    async () => {
      const first = await at(taker, 'POST', '/v1/operations', reserve('one'))
      expectEqual(first.status, 200, `the call: ${first.text}`)
      expectEqual(
        [first.json.state, first.json.run, first.json.step, first.json.tool],
        ['completed', 'one', 'reserve', 'stock.reserve'],
        'the record'
      )
      for (const engine of [taker, owner, taker]) {
        const again = await at(engine, 'POST', '/v1/operations', reserve('one'))
        expectEqual(again.status, 200, `a repeat: ${again.text}`)
        expectEqual(again.json.result, first.json.result, 'its result')
        expectEqual(again.headers.get('idempotent-replayed'), 'true', 'Idempotent-Replayed')
        expect(again.headers.get('idempotent-first-at'), 'Idempotent-First-At')
      }
      expectEqual(effects('one'), 1, 'reservations')
      expectEqual(
        (await at(taker, 'GET', `/v1/operations/${first.json.key}`)).json.duplicates_seen,
        3,
        'duplicates seen'
      )
    }
  )

  await promise(
    '32 callers at once on one key, over both engines: one request leaves, and all get the same',
    async () => {
      await world.fault({ route: 'reservations', mode: 'slow', ms: 700, times: 1 })
      const answers = await Promise.all(
        Array.from({ length: 32 }, (_, i) => at(i % 2 ? taker : owner, 'POST', '/v1/operations', reserve('crowd')))
      )
      expectEqual(
        [...new Set(answers.map((answer) => answer.status))],
        [200],
        `the codes: ${answers.map((answer) => answer.status)} ${answers.find((answer) => answer.status !== 200)?.text}`
      )
      expectEqual(new Set(answers.map((answer) => JSON.stringify(answer.json.result))).size, 1, 'different results')
      expectEqual(
        world.ledger().filter((line) => line.kind === 'reserve' && line.request === 'crowd').length,
        1,
        'requests that reached the shop'
      )
      await world.noFaults()
    }
  )

  const naps = { sagas: [{ name: 'nap', steps: [{ id: 'a', call: { builtin: { do: 'echo' }, effect: 'read' } }] }] }
  const start = (engine, key, id, input = {}) =>
    at(
      engine,
      'POST',
      '/v1/sagas',
      { saga: 'nap', input, ...(id ? { id } : {}) },
      { headers: key ? { 'idempotency-key': key } : {} }
    )

  await promise(
    'the key of a start with an id names that saga, too: alone it gives the same one, on every engine; with ' +
      'another id it is refused',
    async () => {
      await world.define(naps)
      for (const [n, engine, other] of [
        [1, owner, taker],
        [2, taker, owner]
      ]) {
        const first = await start(engine, `key-${n}`, `id-${n}`)
        expectEqual([first.status, first.json.business_id], [201, `id-${n}`], `the start: ${first.text}`)
        for (const [key, id, input, status, type] of [
          [`key-${n}`, null, {}, 200],
          [`key-${n}`, `id-${n}`, {}, 200],
          [null, `id-${n}`, {}, 200],
          [`more-${n}`, `id-${n}`, {}, 200],
          [`key-${n}`, `other-${n}`, {}, 422, 'other-input'],
          [`key-${n}`, null, { a: 1 }, 422, 'other-input'],
          [`key-${n}`, `key-${n}`, {}, 200]
        ]) {
          for (const asked of [engine, other]) {
            const answer = await start(asked, key, id, input)
            expectEqual(
              [answer.status, answer.json.type],
              [status, type && problem(type)],
              `key ${key}, id ${id}: ${answer.text}`
            )
            if (status === 200) expectEqual(answer.json.id, first.json.id, `key ${key}, id ${id}: another saga`)
          }
        }
      }
      // A key that was used as an id is refused with another id, too.
      const alone = await start(taker, 'key-3')
      expectEqual([alone.status, alone.json.business_id], [201, 'key-3'], alone.text)
      expectEqual((await start(owner, 'key-3', 'id-3')).status, 422, 'another id')
      const plain = await start(owner, null, 'key-4')
      expectEqual((await start(taker, 'key-4', 'id-4')).status, 422, 'a key that is the id of another saga')
      expectEqual((await start(taker, 'key-4')).json.id, plain.json.id, 'the key of an id')
      // At once over both engines: one saga.
      for (let round = 0; round < 5; round++) {
        const answers = await Promise.all(
          Array.from({ length: 12 }, (_, i) =>
            start(i % 2 ? taker : owner, `race-${round}`, i % 3 ? null : `race-id-${round}`)
          )
        )
        const sagas = new Set(answers.filter((answer) => answer.status < 300).map((answer) => answer.json.id))
        expectEqual(sagas.size, 1, `round ${round}: sagas`)
      }
      expectEqual(
        world.sql("select count(*) from sagad.saga where name = 'nap' and business_id like 'race-%'"),
        '5',
        'sagas of the races'
      )
    }
  )

  await promise('64 callers on 8 keys, three rounds of them', async () => {
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          at((i >> 3) % 2 ? taker : owner, 'POST', '/v1/operations', reserve(`eight-${i % 8}`))
        )
      )
      expectEqual(
        answers.filter((answer) => answer.status !== 200).map((answer) => answer.text),
        [],
        `round ${round}`
      )
    }
    for (let i = 0; i < 8; i++) expectEqual(effects(`eight-${i}`), 1, `reservations of eight-${i}`)
  })

  await promise('a caller whose patience is short is told that it goes on, and where', async () => {
    await world.fault({ route: 'reservations', mode: 'slow', ms: 6000, times: 1 })
    const patient = () => reserve('short', { tool: 'stock.reserve_patiently' })
    const begun = Date.now()
    const answer = await at(taker, 'POST', '/v1/operations?wait=200ms', patient())
    expectEqual(answer.status, 202, `the code: ${answer.text}`)
    expect(Date.now() - begun < 5000, `it took ${Date.now() - begun} ms`)
    expectEqual(answer.headers.get('location'), `/v1/operations/${answer.json.key}`, 'Location')
    const busy = await at(taker, 'POST', '/v1/operations?wait=0s', patient())
    expectEqual([busy.status, busy.json.type], [409, problem('in-flight')], `a duplicate: ${busy.text}`)
    expect(Number(busy.headers.get('retry-after')) > 0, 'Retry-After')
    expectEqual((await at(taker, 'POST', '/v1/operations', patient())).status, 200, 'with patience')
    expectEqual(effects('short'), 1, 'reservations')
    await world.noFaults()
  })

  await promise('a refusal comes back at once, with its sentence and its places', async () => {
    const begun = Date.now()
    const drift = await at(
      taker,
      'POST',
      '/v1/operations',
      reserve('one', { args: { request: 'one', sku: 'book', qty: 2 } })
    )
    expectEqual(
      [drift.status, drift.json.type, drift.json.pointers],
      [422, problem('arguments-differ'), ['/qty']],
      `other arguments: ${drift.text}`
    )
    const wrong = await at(taker, 'POST', '/v1/operations', reserve('two', { args: { request: 'two', sku: 'book' } }))
    expectEqual(wrong.status, 422, `arguments that do not fit: ${wrong.text}`)
    const none = await at(taker, 'POST', '/v1/operations', reserve('three', { tool: 'stock.nothing' }))
    expectEqual(none.status, 404, `a tool that nobody knows: ${none.text}`)
    expect(Date.now() - begun < 6000, `it took ${Date.now() - begun} ms`)
  })

  await promise('the same emission on both engines is one, and cannot be used for another call', async () => {
    const headers = { 'idempotency-key': 'emission-1' }
    const first = await at(taker, 'POST', '/v1/operations', reserve('emitted'), { headers })
    const again = await at(owner, 'POST', '/v1/operations', reserve('emitted'), { headers })
    expectEqual([first.status, again.status], [200, 200], `${first.text} ${again.text}`)
    const other = await at(taker, 'POST', '/v1/operations', reserve('emitted', { step: 'other' }), { headers })
    expectEqual(other.json.type, problem('other-input'), other.text)
    expectEqual(effects('emitted'), 1, 'reservations')
  })

  const open = async (more = {}) => {
    const answer = await at(taker, 'POST', '/v1/sagas', { open: true, ...more })
    expectEqual(answer.status, 201, `open: ${answer.text}`)
    return answer.json.id
  }
  const inSaga = (id, n) =>
    at(taker, 'POST', `/v1/sagas/${id}/calls`, {
      turn: ++turn,
      step: `reserve-${n}`,
      tool: 'stock.reserve',
      args: { request: id, sku: 'book', qty: n }
    })

  await promise('open sagas are opened, worked in, completed and aborted through it', async () => {
    for (let i = 0; i < 4; i++) {
      // in various shards
      const good = await open()
      for (const n of [1, 2]) expectEqual((await inSaga(good, n)).status, 200, 'a call')
      const done = await at(taker, 'POST', `/v1/sagas/${good}/complete`, { output: { fine: true } })
      expectEqual(
        [done.status, done.json.status, done.json.output],
        [200, 'completed', { fine: true }],
        `complete: ${done.text}`
      )
      const late = await inSaga(good, 3)
      expectEqual([late.status, late.json.type], [409, problem('saga-closed')], `a call after the end: ${late.text}`)
      expectEqual((await inSaga(good, 2)).headers.get('idempotent-replayed'), 'true', 'a repeat after the end')

      const bad = await open()
      for (const n of [1, 2]) expectEqual((await inSaga(bad, n)).status, 200, 'a call')
      const aborted = await at(taker, 'POST', `/v1/sagas/${bad}/abort`, { note: 'not wanted' })
      expect(aborted.status === 200 || aborted.status === 202, `abort: ${aborted.text}`)
      world.port = taker.port
      expectEqual((await world.until(bad, ['compensated'])).status, 'compensated', 'after the abort')
    }
  })

  await promise(
    'a start with a used id and other input is refused at once, with the same input it is the same saga',
    async () => {
      for (let i = 0; i < 6; i++) {
        const start = (engine, amount) =>
          at(engine, 'POST', '/v1/sagas', {
            saga: 'order',
            id: `order-${i}`,
            input: { order_id: `order-${i}`, sku: 'book', amount, email: 'a@x.example' }
          })
        const first = await start(taker, 5)
        expectEqual(first.status, 201, first.text)
        const begun = Date.now()
        const other = await start(taker, 6)
        expectEqual(other.json.type, problem('other-input'), other.text)
        expect(Date.now() - begun < 6000, `it took ${Date.now() - begun} ms`)
        const same = await start(taker, 5)
        expectEqual([same.status, same.json.id], [200, first.json.id], same.text)
      }
    }
  )

  await promise('settled requests leave nothing in the inbox', () => nothingWaits())

  await promise('a bypass signed through it is used once', async () => {
    const first = await at(taker, 'POST', '/v1/operations', reserve('bypassed'))
    expectEqual(first.status, 200, first.text)
    const signed = await at(taker, 'POST', `/v1/operations/${first.json.key}/bypass`, {
      reason: 'the parcel was stolen'
    })
    expect(signed.status === 200 || signed.status === 201, `bypass: ${signed.text}`)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => at(i % 2 ? taker : owner, 'POST', '/v1/operations', reserve('bypassed')))
    )
    expectEqual(
      answers.filter((answer) => answer.status !== 200).map((answer) => answer.text),
      [],
      'the calls'
    )
    expectEqual(
      world.ledger().filter((line) => line.kind === 'reserve' && line.effect === 1 && line.request === 'bypassed')
        .length,
      2,
      'reservations'
    )
  })

  await promise('a verdict given through it is as good: what it says happened can be undone', async () => {
    const id = await open()
    await world.fault({ route: 'reservations', mode: 'reset-after-effect', times: 1 })
    const asked = await at(taker, 'POST', `/v1/sagas/${id}/calls`, {
      step: 'once',
      tool: 'stock.reserve_once',
      args: { request: 'verdict', sku: 'book', qty: 1 }
    })
    expectEqual([asked.status, asked.json.operation.state], [409, 'escalated'], asked.text)
    const [made] = world
      .ledger()
      .filter((line) => line.kind === 'reserve' && line.effect === 1 && line.request === 'verdict')
    const [question] = (await at(taker, 'GET', '/v1/escalations?status=open')).json.items.filter(
      (item) => item.saga === id
    )
    const resolve = () =>
      at(taker, 'POST', `/v1/escalations/${question.n}/resolve`, {
        action: 'resolve',
        as: 'happened',
        result: { id: made.id },
        note: 'seen in the stock'
      })
    const resolved = await resolve()
    expectEqual([resolved.status, resolved.json.status], [200, 'resolved'], resolved.text)
    const second = await resolve()
    expectEqual([second.status, second.json.type], [409, problem('already-decided')], second.text)
    expectEqual((await at(taker, 'POST', `/v1/sagas/${id}/abort`, { note: 'not wanted' })).status < 300, true, 'abort')
    world.port = taker.port
    expectEqual((await world.until(id, ['compensated', 'escalated'])).status, 'compensated', 'after the abort')
    expectEqual(
      world.ledger().filter((line) => line.kind === 'release' && line.effect === 1 && line.target === made.id).length,
      1,
      'releases'
    )
    await world.noFaults()
  })

  await promise('a saga that was paused for going in circles is resumed through it', async () => {
    const id = await open({ loop: { repeats: 2, max_cycle: 1 } })
    const price = (turn) =>
      at(taker, 'POST', `/v1/sagas/${id}/calls`, { step: 'price', tool: 'catalog.price', args: { sku: 'book' }, turn })
    let answer
    for (let i = 0; i < 12 && answer?.json.type !== problem('paused'); i++) answer = await price(i < 4 ? 1 : 2)
    expectEqual(answer.json.type, problem('paused'), answer.text)
    const resumed = await at(taker, 'POST', `/v1/sagas/${id}/resume`, { note: 'it has learnt' })
    expectEqual([resumed.status, resumed.json.status === 'paused'], [200, false], resumed.text)
    expectEqual((await price(3)).status, 200, 'after it')
    expectEqual((await at(taker, 'POST', `/v1/sagas/${id}/complete`)).status, 200, 'complete')
  })

  await promise(
    'signals, decisions and pauses reach a saga through it, in memory or at rest',
    async () => {
      await world.define({
        sagas: [
          {
            name: 'asked',
            steps: [
              { id: 'paid', signal: { name: 'paid', timeout: '1h' } },
              { id: 'boss', approve: { show: { paid: '${ .steps.paid.result }' }, timeout: '1h' } }
            ],
            output: '${ { paid: .steps.paid.result, by: .steps.boss.result.decision } }'
          }
        ]
      })
      for (let tries = 0; (await at(taker, 'GET', '/v1/definitions/asked')).status !== 200 && tries < 50; tries++)
        await sleep(100)
      await Promise.all(
        [0, 2800, 0, 2800].map(async (rest, i) => {
          // it leaves memory after two seconds of rest
          const started = await at(taker, 'POST', '/v1/sagas', { saga: 'asked', id: `asked-${i}` })
          expectEqual(started.status, 201, started.text)
          const path = `/v1/sagas/${started.json.id}`
          await sleep(rest)
          const paused = await at(taker, 'POST', `${path}/pause`, { note: 'wait' })
          expectEqual([paused.status, paused.json.status], [200, 'paused'], paused.text)
          await sleep(rest)
          const resumed = await at(taker, 'POST', `${path}/resume`, { note: 'go on' })
          expectEqual([resumed.status, resumed.json.status], [200, 'waiting'], resumed.text)
          await sleep(rest)
          const signal = (engine, body, key = `paid-${i}`) =>
            at(engine, 'POST', `${path}/signals/paid`, body, { headers: { 'idempotency-key': key } })
          const first = await signal(taker, { amount: i })
          expectEqual([first.status, first.json.created, first.json.taken], [201, true, true], first.text)
          for (const engine of [owner, taker])
            expectEqual((await signal(engine, { amount: i })).status, 200, 'a repeat')
          expectEqual(
            (await signal(taker, { amount: -1 })).json.type,
            problem('other-input'),
            'another payload under the same key'
          )
          expectEqual(
            (await at(taker, 'POST', `${path}/signals/payed`, 1)).status,
            422,
            'a signal that nobody waits for'
          )
          await sleep(rest)
          const [approval] = (await at(taker, 'GET', '/v1/approvals?status=open')).json.items.filter(
            (item) => item.saga === started.json.id
          )
          expectEqual(approval?.show, { paid: { amount: i } }, 'what is shown')
          const decide = (decision, hash = approval.hash) =>
            at(taker, 'POST', `/v1/approvals/${approval.n}`, { decision, hash, note: 'as agreed' })
          expectEqual(
            (await decide('approve', '0'.repeat(64))).json.type,
            problem('conflict'),
            'with the hash of something else'
          )
          const decided = await decide('approve')
          expectEqual([decided.status, decided.json.status], [200, 'approved'], decided.text)
          expectEqual((await decide('refuse')).json.type, problem('already-decided'), 'a second answer')
          const ended = await at(taker, 'GET', `${path}?wait=10s`)
          expectEqual(
            [ended.json.status, ended.json.output],
            ['completed', { paid: { amount: i }, by: 'approve' }],
            ended.text
          )
          const late = await signal(taker, { amount: i })
          expectEqual([late.status, late.json.created], [200, false], `a repeat after the end: ${late.text}`)
          expectEqual((await signal(taker, 1, `late-${i}`)).json.type, problem('ended'), 'a new one after the end')
          expectEqual(
            (await at(taker, 'POST', `${path}/pause`, { note: 'late' })).json.type,
            problem('ended'),
            'a pause after the end'
          )
        })
      )
      await nothingWaits()
    },
    60
  )

  await promise(
    'a verdict on a saga at rest, given through it, can be undone too',
    async () => {
      const id = await open()
      await world.fault({ route: 'reservations', mode: 'reset-after-effect', times: 1 })
      const asked = await at(taker, 'POST', `/v1/sagas/${id}/calls`, {
        step: 'once',
        tool: 'stock.reserve_once',
        args: { request: 'rested', sku: 'book', qty: 1 }
      })
      expectEqual(asked.status, 409, asked.text)
      const [made] = world
        .ledger()
        .filter((line) => line.kind === 'reserve' && line.effect === 1 && line.request === 'rested')
      const [question] = (await at(taker, 'GET', '/v1/escalations?status=open')).json.items.filter(
        (item) => item.saga === id
      )
      await sleep(3500) // it leaves memory
      const unknown = async () =>
        (await at(owner, 'GET', '/v1/stats')).json.tools.find((tool) => tool.name === 'stock.reserve_once').unknown_open
      expectEqual(await unknown(), 1, 'operations at rest of which nobody knows')
      const resolved = await at(taker, 'POST', `/v1/escalations/${question.n}/resolve`, {
        action: 'resolve',
        as: 'happened',
        result: { id: made.id },
        note: 'seen in the stock'
      })
      expectEqual([resolved.status, resolved.json.status], [200, 'resolved'], resolved.text)
      expectEqual(await unknown(), 0, 'the same when somebody does')
      await sleep(3500)
      expectEqual((await at(taker, 'POST', `/v1/sagas/${id}/abort`, { note: 'not wanted' })).status, 200, 'abort')
      const ended = await at(taker, 'GET', `/v1/sagas/${id}?wait=10s`)
      expectEqual(ended.json.status, 'compensated', ended.text)
      expectEqual(
        world.ledger().filter((line) => line.kind === 'release' && line.effect === 1 && line.target === made.id).length,
        1,
        'releases'
      )
      await world.noFaults()
    },
    60
  )

  await promise(
    'an answer that comes after the shard has gone is handed to the new owner, and settles what nobody knew',
    async () => {
      await world.fault({ route: 'reservations', mode: 'slow', ms: 3000, times: 1 })
      const caller = at(
        taker,
        'POST',
        '/v1/operations?wait=20s',
        reserve('late', { tool: 'stock.reserve_patiently' }),
        { seconds: 60 }
      )
      const sent = () => world.ledger().some((line) => line.kind === 'reserve' && line.request === 'late')
      for (const end = Date.now() + 20000; !sent(); await sleep(20)) expect(Date.now() < end, 'the call is sent')
      owner.child.kill('SIGSTOP') // its call is under way, and its lease runs out
      const asked = await caller
      expectEqual(asked.status, 409, `while nobody knows: ${asked.text}`)
      const { key } = asked.json.operation
      expectEqual((await at(taker, 'GET', `/v1/operations/${key}`)).json.took_effect, 'maybe', 'while nobody knows')
      await sleep(1000) // the shop has answered long ago
      owner.child.kill('SIGCONT')
      let record
      for (let tries = 0; tries < 100; tries++) {
        record = (await at(taker, 'GET', `/v1/operations/${key}`)).json
        if (record.state === 'completed') break
        await sleep(100)
      }
      expectEqual([record.state, record.took_effect], ['completed', 'yes'], JSON.stringify(record))
      expectEqual(effects('late'), 1, 'reservations')
      const again = await at(owner, 'POST', '/v1/operations', reserve('late', { tool: 'stock.reserve_patiently' }))
      expectEqual([again.status, again.json.result], [200, record.result], again.text)
      expectEqual((await at(taker, 'GET', '/v1/escalations?status=open')).json.items.length, 0, 'open escalations')
      await nothingWaits(() => world.sql('select count(*) from sagad.inbox'))
      ;[owner, taker] = [taker, owner]
    }
  )

  await promise(
    'the owner is killed while calls are under way: each caller gets its answer, and each call is made once',
    async () => {
      await world.fault({ route: 'reservations', mode: 'slow', ms: 1000, times: 12 })
      const callers = Array.from({ length: 12 }, (_, i) =>
        at(taker, 'POST', '/v1/operations?wait=30s', reserve(`killed-${i}`), { seconds: 60 })
      )
      await sleep(500)
      await world.killEngine(owner)
      const answers = await Promise.all(callers)
      await world.noFaults()
      expectEqual(
        answers.filter((answer) => answer.status !== 200).map((answer) => `${answer.status} ${answer.text}`),
        [],
        'answers'
      )
      for (let i = 0; i < 12; i++) expectEqual(effects(`killed-${i}`), 1, `reservations of killed-${i}`)
      ;[owner, taker] = [taker, owner]
      await launch(taker)
    },
    120
  )

  await promise(
    'and again while requests pour in on both, the other way round',
    async () => {
      const callers = Array.from({ length: 60 }, async (_, i) => {
        await sleep(i * 25)
        for (let tries = 0; tries < 40; tries++) {
          try {
            const answer = await at(
              (i + tries) % 3 ? taker : owner,
              'POST',
              '/v1/operations?wait=20s',
              reserve(`poured-${i}`),
              { seconds: 60, headers: { 'idempotency-key': `pour-${i}` } }
            )
            if (answer.status === 200) return 200
            if (answer.status < 500 && answer.status !== 409) return answer.text
          } catch {
            /* the one that was asked was killed: the same again, elsewhere */
          }
          await sleep(300)
        }
        return 'never'
      })
      await sleep(700)
      await world.killEngine(owner)
      const codes = await Promise.all(callers)
      expectEqual([...new Set(codes)], [200], 'answers')
      for (let i = 0; i < 60; i++) expectEqual(effects(`poured-${i}`), 1, `reservations of poured-${i}`)
      await launch(owner)
      await nothingWaits(() => world.sql('select count(*) from sagad.inbox'))
      ;[owner, taker] = [taker, owner]
    },
    180
  )

  await promise(
    'an input for a saga whose log cannot be read is answered so, and waits for a program that can read it',
    async () => {
      const id = await open()
      expectEqual((await inSaga(id, 1)).status, 200, 'a call')
      world.sql(
        `update sagad.log set payload = '[{"type":"from.the.future","data":{}}]' where saga = '${id}' and seq > 1`
      )
      await world.killEngine(owner)
      for (const end = Date.now() + 20000; !(await world.asks(taker, '/readyz'));) {
        expect(Date.now() < end, 'nobody takes over')
        await sleep(100)
      }
      await launch(owner)
      ;[owner, taker] = [taker, owner]
      const begun = Date.now()
      const answer = await at(taker, 'POST', `/v1/sagas/${id}/abort`, { note: 'x' })
      expectEqual([answer.status, answer.json.type], [500, problem('corrupt')], answer.text)
      expect(Date.now() - begun < 6000, `it took ${Date.now() - begun} ms`)
      expectEqual(world.sql(`select kind from sagad.inbox where saga = '${id}'`), 'abort', 'what is left in the inbox')
      expectEqual((await at(taker, 'POST', '/v1/operations', reserve('beside'))).status, 200, 'another call')
    },
    60
  )
})
