// Guards. Work that the engines drive waits at them and loses nothing, compensations, too. A tool that has come back is
// met gently. Budgets of the settings hold however many calls race. Starts and calls go to two engines in turn. The
// tools are the test's own server, which sees what arrives and when. test_guard.c shows that no bound is passed when
// two engines ask at once.
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

// Starts a server that behaves as `behave[path]` says. It keeps each arrival: {path, method, at, key, active}.
async function startServer() {
  const server = createServer(async (request, response) => {
    const path = request.url.split('?')[0].split('/')[1]
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const active = (server.active[path] = (server.active[path] ?? 0) + 1)
    server.seen.push({
      path,
      method: request.method,
      at: Date.now(),
      key: request.headers['idempotency-key'],
      secret: request.headers['x-secret'],
      active
    })
    const answer = (await server.behave[path]?.(request, Buffer.concat(chunks).toString())) ?? {
      status: 200,
      body: { ok: true }
    }
    server.active[path]--
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end(JSON.stringify(answer.body ?? {}))
  })
  server.seen = []
  server.active = {}
  server.behave = {}
  server.of = (path, method) => server.seen.filter((one) => one.path === path && (!method || one.method === method))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const retry = { max_attempts: 20, initial: '50ms', factor: 2, max: '300ms' }

function definitions(base) {
  const tool = (name, more = {}) => ({
    name,
    effect: 'keyed',
    key: { window: '1h' },
    timeout: '2s',
    retry,
    terminal: true,
    http: { method: 'POST', url: `${base}/${name}`, body: '${ .args }' },
    ...more
  })
  const one = (name) => ({ name: `run_${name}`, steps: [{ id: 'one', call: name, with: { n: '${ .input.n }' } }] })
  const tools = [
    tool('rated', { rate: { limit: 5, per: '5s' } }),
    tool('narrow', { concurrency: 2 }),
    tool('broken', { breaker: { failures: 3, window: '60s', cooldown: '1s' } }),
    tool('asked', {
      effect: 'checked',
      key: undefined,
      breaker: { failures: 2, window: '60s', cooldown: '1s' },
      retry: { ...retry, max_attempts: 2 },
      probe: {
        http: { method: 'GET', url: `${base}/asked/\${ .key }` },
        visibility: '0s',
        give_up_after: '30s',
        outcome: { completed: '${ .response.body.found == true }', absent: '${ .response.body.found == false }' }
      }
    }),
    tool('sulky', { concurrency: 50 }),
    tool('alone', { concurrency: 1, timeout: '5m' }),
    tool('plain'),
    tool('booked', { terminal: undefined, compensate: { tool: 'unbooked', with: {} } }),
    tool('unbooked', {
      terminal: undefined,
      rate: { limit: 2, per: '1s' },
      breaker: { failures: 2, window: '60s', cooldown: '500ms' }
    }),
    tool('refused', { effect: 'once', key: undefined, retry: undefined }),
    tool('limited'),
    tool('slow', { effect: 'once', key: undefined, retry: undefined, timeout: '60s' }),
    tool('costly', { cost: '${ .result.price }', result: '${ .response.body }' }),
    tool('looked', {
      precheck: {
        http: { method: 'GET', url: `${base}/look`, headers: { 'x-secret': '${ secret("look") }' } },
        done: '${ .response.body.state == "done" }',
        blocked: '${ if .response.body.state == "closed" then "it is closed" else null end }',
        result: { state: '${ .response.body.state }' }
      }
    })
  ].map((one) => JSON.parse(JSON.stringify(one)))
  const sagas = [
    'rated',
    'narrow',
    'broken',
    'asked',
    'sulky',
    'plain',
    'looked',
    'limited',
    'costly',
    'slow',
    'alone'
  ].map(one)
  sagas.push({
    name: 'run_undone',
    steps: [
      { id: 'book', call: 'booked' },
      { id: 'refuse', call: 'refused' }
    ]
  })
  return { tools, sagas }
}

await run(new World(), async (world) => {
  const server = await startServer()
  const budgets = join(world.directory, 'budgets.json')
  const secrets = join(world.directory, 'secrets.json')
  writeFileSync(
    budgets,
    JSON.stringify({
      budgets: [
        { tool: 'limited', per: 'ever', calls: 5 },
        { namespace: 'default', tool: 'costly', per: 'month', micros: 1000 }
      ]
    })
  )
  writeFileSync(secrets, JSON.stringify({ look: 'open sesame' }))

  await promise('a budgets file that is wrong is refused before anything starts', () => {
    const wrong = join(world.directory, 'wrong.json')
    writeFileSync(wrong, '{"budgets": [{"per": "week", "calls": 1}]}')
    for (const args of [['--check-config'], ['--database', world.dsn, '--listen', '127.0.0.1:0']]) {
      const done = world.sagadOnce([...args, '--budgets', wrong], { seconds: 20 })
      expect(
        done.status === 2 && done.stderr.includes('/budgets/0/per'),
        'exit code and place',
        `${done.status} ${done.stderr}`
      )
    }
    expectEqual(world.sagadOnce(['--check-config', '--budgets', budgets]).status, 0, 'a good one')
  })

  await world.startPostgres()
  await world.startEngines(2, ['--budgets', budgets, '--secrets', secrets])
  await world.define(definitions(`http://127.0.0.1:${server.address().port}`))
  await sleep(500) // the other engine has heard of them

  let count = 0
  const at = async (engine, ...rest) => {
    world.port = world.engines[engine].port
    try {
      return await world.api(...rest)
    } finally {
      world.port = world.engines[0].port
    }
  }
  const startMany = async (name, many) =>
    Promise.all(
      Array.from({ length: many }, async (_, i) => {
        const n = ++count
        for (const end = Date.now() + 30000; ; await sleep(200)) {
          // a machine that stalls makes an engine refuse for a moment
          const answer = await at(i % 2, 'POST', '/v1/sagas', { saga: `run_${name}`, id: `start-${n}`, input: { n } })
          if (answer.status === 201 || answer.status === 200) return answer.json.id
          expect(answer.status === 503 && Date.now() < end, 'the start', answer.text)
        }
      })
    )
  const allEnd = async (ids, status = 'completed', seconds = 60) => {
    for (const id of ids) expectEqual((await world.until(id, undefined, seconds)).status, status, 'the end')
  }
  const call = (engine, tool, run, body = {}) =>
    at(engine, 'POST', '/v1/operations?wait=20s', { run, tool, args: { n: ++count }, ...body }, { seconds: 40 })

  await promise('a rate over two engines: work waits instead of failing, and never passes it', async () => {
    await allEnd(await startMany('rated', 20))
    const times = server
      .of('rated')
      .map((one) => one.at)
      .sort((a, b) => a - b)
    expectEqual(times.length, 20, 'calls')
    for (let i = 0; i < times.length; i++) {
      // Five calls at once, then one each second; four seconds for the way from the guard to the server, on a machine
      // that stalls. With twice the rate (each engine its own) the last call would come ten seconds early.
      for (let k = i + 5; k < times.length; k++)
        expect(
          times[k] - times[i] >= (k - i - 4) * 1000 - 4000,
          'the rate',
          times.map((time) => time - times[0])
        )
    }
    expect(
      times[19] - times[0] < 40000,
      'what waits is let go in time',
      times.map((time) => time - times[0])
    )
  })

  await promise('places over two engines: never more calls at once than there are', async () => {
    server.behave.narrow = () => sleep(100)
    await allEnd(await startMany('narrow', 20))
    expectEqual(server.of('narrow').length, 20, 'calls')
    expectEqual(Math.max(...server.of('narrow').map((one) => one.active)), 2, 'at once')
    const places = () => world.sql("select count(*) from sagad.guard_place where tool = 'narrow'")
    for (const end = Date.now() + 20000; places() !== '0'; await sleep(50))
      expect(Date.now() < end, 'places are left', places())
  })

  await promise(
    'a breaker: what waits is not lost, one call tries, and the tool is met gently when it is back',
    async () => {
      let well = false
      server.behave.broken = async () => (well ? undefined : { status: 500 })
      const first = await startMany('broken', 6)
      await sleep(800)
      const before = server.of('broken').length
      const more = await startMany('broken', 60)
      await sleep(2500)
      const tried = server.of('broken').length - before
      expect(tried <= 2, 'tries while it rests', tried)
      expect(world.sql("select state from sagad.guard_breaker where tool = 'broken'") !== 'closed', 'the breaker')
      const back = Date.now()
      well = true
      await allEnd([...first, ...more])
      const times = server
        .of('broken')
        .map((one) => one.at)
        .filter((time) => time >= back)
        .sort((a, b) => a - b)
      expect(
        times.filter((time) => time - times[0] < 50).length <= 8,
        'not all at once',
        times.slice(0, 30).map((time) => time - times[0])
      )
      expectEqual(new Set(server.of('broken').map((one) => one.key)).size, 66, 'operations')
      expectEqual(world.sql("select state from sagad.guard_breaker where tool = 'broken'"), 'closed', 'the breaker')
    },
    90
  )

  await promise(
    'a call that is not safe to repeat never tries a breaker: a status read does',
    async () => {
      let well = false
      server.behave.asked = async (request) =>
        request.method === 'GET'
          ? well
            ? { status: 200, body: { found: false } }
            : { status: 500 }
          : well
            ? undefined
            : { status: 500 }
      const ids = await startMany('asked', 2)
      while (world.sql("select state from sagad.guard_breaker where tool = 'asked'") !== 'open') await sleep(20)
      const calls = server.of('asked', 'POST').length
      const later = await startMany('asked', 4)
      await sleep(1800)
      expectEqual(server.of('asked', 'POST').length, calls, 'calls while it rests')
      const back = Date.now()
      well = true
      await allEnd(later)
      await allEnd(ids)
      const firstCall = server.of('asked', 'POST')[calls]
      expect(
        server.of('asked', 'GET').some((one) => one.at <= firstCall.at && one.at >= back),
        'the read before it'
      )
    },
    90
  )

  await promise('429 with Retry-After pauses the tool for all calls, here and on the other engine', async () => {
    let said = 0
    server.behave.sulky = async () => (said++ === 0 ? { status: 429, headers: { 'retry-after': '5' } } : undefined)
    const [first] = await startMany('sulky', 1)
    while (server.of('sulky').length === 0) await sleep(10)
    const asked = server.of('sulky')[0].at
    const paused = () =>
      world.sql("select count(*) from sagad.guard where tool = 'sulky' and paused_until > now()") === '1'
    for (const end = Date.now() + 5000; !paused(); await sleep(20)) expect(Date.now() < end, 'the pause is stored')
    await allEnd([...(await startMany('sulky', 10)), first])
    const times = server.of('sulky').map((one) => one.at - asked)
    expect(
      times.slice(1).every((time) => time >= 4950),
      'nobody came before',
      times
    )
    let plain = 0
    server.behave.plain = async () => (plain++ === 0 ? { status: 429, headers: { 'retry-after': '1' } } : undefined)
    const [alone] = await startMany('plain', 1)
    while (server.of('plain').length === 0) await sleep(10)
    await allEnd([alone])
    expect(
      server
        .of('plain')
        .slice(1)
        .every((one) => one.at - server.of('plain')[0].at >= 950),
      'one without bounds too'
    )
  })

  await promise(
    'compensations queue at a rate and an open breaker, and none is dropped',
    async () => {
      let failures = 0
      server.behave.refused = async () => ({ status: 422, body: { why: 'no' } })
      server.behave.unbooked = async () => (failures++ < 3 ? { status: 503 } : undefined)
      const ids = await startMany('undone', 8)
      await allEnd(ids, 'compensated', 60)
      const undone = server.of('unbooked').map((one) => one.key)
      expectEqual(new Set(undone).size, 8, 'undone operations')
    },
    90
  )

  await promise('a saga that waits at a breaker says which, since when, who opened it and what closes it', async () => {
    server.behave.refused = async () => ({ status: 422, body: { why: 'no' } })
    const told = { actor: 'local', note: 'the bank is down' }
    const waits = async (engines, id, find) => {
      for (const end = Date.now() + 60000; ; await sleep(50))
        for (const engine of engines) {
          const saga = (await at(engine, 'GET', `/v1/sagas/${id}`)).json
          const found = find(saga)
          if (found?.kind === 'breaker') return found
          expect(Date.now() < end, 'it says so', saga)
        }
    }
    const set = async (tool, state) =>
      (await at(0, 'POST', `/v1/tools/${tool}/breaker`, { state, note: told.note })).json.breaker
    for (const [tool, saga, find] of [
      ['broken', 'broken', (one) => one.steps[0].waits_for],
      ['unbooked', 'undone', (one) => one.steps[0].compensation?.waits_for]
    ]) {
      expectEqual(await set(tool, 'open'), 'open', 'opened')
      const [id] = await startMany(saga, 1)
      // An undo that has been decided waits in the memory of one engine; the log has a call that has not begun.
      const seen = await waits([0, 1], id, find)
      expectEqual([seen.tool, seen.closes, seen.until], [tool, 'person', null], 'which, and what closes it')
      expectEqual([seen.opened_by.actor, seen.opened_by.note], [told.actor, told.note], 'who opened it')
      expectEqual(seen.since, seen.opened_by.at, 'since when')
      if (tool === 'broken')
        for (const engine of [0, 1]) expectEqual((await waits([engine], id, find)).tool, tool, `at engine ${engine}`)
      const shown = world.sagactl(['show', id], { env: { COLUMNS: '200' } }).stdout
      if (tool === 'broken') {
        expect(
          /the breaker of broken is open since .*by local: the bank is down; a person closes it/.test(shown),
          shown
        )
        expect(shown.includes('sagactl breaker broken closed --note TEXT'), 'the command', shown)
        const tools = world.sagactl(['tools'], { env: { COLUMNS: '300' } }).stdout
        expect(/^broken .*opened by local: the bank is down/m.test(tools), 'the notes of sagactl tools', tools)
      }
      const listed = async (words) => (await at(0, 'GET', `/v1/sagas?${words}`)).json.items.map((one) => one.id)
      if (tool === 'broken') {
        for (const engine of [0, 1])
          expectEqual(
            (await at(engine, 'GET', '/v1/sagas?waits_for=breaker,lock')).json.items.map((one) => one.id),
            [id],
            `the sagas that wait at a breaker, says engine ${engine}`
          )
        expectEqual(world.sagactl(['list', '--waits-for', 'breaker', '-o', 'name']).stdout, `${id}\n`, 'sagactl list')
      }
      expectEqual(await listed('waits_for=lock,approval'), [], 'nothing else is waited for')
      expectEqual(await set(tool, 'closed'), 'closed', 'closed')
      expectEqual(await listed('waits_for=breaker'), [], 'no breaker is open')
      await allEnd([id], saga === 'undone' ? 'compensated' : 'completed', 60)
    }
    expectEqual(await set('plain', 'closed'), 'none', 'a tool without one')
    const none = world.sagactl(['breaker', 'plain', 'closed', '--note', 'x'])
    expectEqual(none.stdout, 'plain has no breaker: nothing of it was open\n', 'what sagactl says')
  })

  await promise(
    'a budget of the settings is never passed by calls that race on two engines; a certain failure gives it back',
    async () => {
      let refusals = 2
      server.behave.limited = async () => (refusals-- > 0 ? { status: 422 } : undefined)
      for (let i = 0; i < 2; i++)
        expectEqual((await call(i, 'limited', `failing-${i}`)).status, 424, 'a certain failure')
      for (
        const end = Date.now() + 5000;
        world.sql("select calls from sagad.guard_budget where name = '*/limited/ever'") !== '0';
        await sleep(50)
      )
        expect(
          Date.now() < end,
          'it is not given back',
          world.sql(
            'select * from sagad.guard_budget; select * from sagad.guard_reservation; select * from sagad.guard'
          )
        )
      const all = await Promise.all(Array.from({ length: 24 }, (_, i) => call(i % 2, 'limited', `race-${i}`)))
      const statuses = all.map((answer) => answer.status)
      expectEqual(statuses.filter((status) => status === 200).length, 5, 'let through')
      expect(
        all.every(
          (answer) => answer.status === 200 || (answer.status === 403 && answer.json.type.endsWith(':budget-exhausted'))
        ),
        'the others are refused',
        statuses
      )
      expectEqual(server.of('limited').length, 7, 'calls')
      expectEqual(world.sql("select calls from sagad.guard_budget where name = '*/limited/ever'"), '5', 'used')
      const [saga] = await startMany('limited', 1)
      const ended = await world.until(saga)
      expect(
        ended.status === 'compensated' && JSON.stringify(ended).includes('budget-exhausted'),
        'in a defined saga it is a certain failure',
        ended
      )
      for (let i = 0; i < 3; i++) await call(i % 2, 'limited', 'race-0') // duplicates or refusals
    }
  )

  await promise('the cost of a call is booked when it is known', async () => {
    server.behave.costly = async () => ({ status: 200, body: { price: 400 } })
    for (let i = 0; i < 3; i++)
      expectEqual((await call(i % 2, 'costly', `cost-${i}`)).json.cost, 400, 'the cost in the record')
    for (
      const end = Date.now() + 5000;
      world.sql("select micros from sagad.guard_budget where name = 'default/costly/month'") !== '1200';
      await sleep(50)
    )
      expect(
        Date.now() < end,
        'it is not booked',
        world.sql('select * from sagad.guard_budget; select * from sagad.guard_reservation')
      )
    expectEqual((await call(0, 'costly', 'cost-9')).status, 403, 'the budget is used up')
  })

  await promise(
    'a precheck before work of the engine: done, blocked, and asked again when it could not be',
    async () => {
      let state = 'done'
      let down = 0
      server.behave.look = async () => (down-- > 0 ? { status: 503 } : { status: 200, body: { state } })
      const [done] = await startMany('looked', 1)
      await allEnd([done])
      expectEqual(server.of('looked').length, 0, 'calls')
      expect(
        server.of('look').every((one) => one.secret === 'open sesame' && !one.key),
        'the secret, and no key',
        server.of('look')
      )
      state = 'closed'
      const [blocked] = await startMany('looked', 1)
      const ended = await world.until(blocked)
      expect(ended.status === 'compensated' && JSON.stringify(ended).includes('it is closed'), 'the reason', ended)
      state = 'open'
      down = 3
      const [again] = await startMany('looked', 1)
      await allEnd([again])
      expectEqual(server.of('looked').length, 1, 'calls')
    }
  )

  await promise('an answer that comes after its saga went to another engine is heard as late evidence', async () => {
    server.behave.slow = async () => {
      await sleep(1500)
    }
    const owner = async () => {
      for (const engine of world.engines) if (await world.asks(engine, '/readyz')) return engine
      throw new Error('no engine is ready')
    }
    const first = await owner()
    const id = await world.start('run_slow', { n: ++count }) // without a name, so the engine that was asked owns it
    while (server.of('slow').length === 0) await sleep(10)
    first.child.kill('SIGSTOP')
    const other = world.engines.find((engine) => engine !== first)
    world.port = other.port
    try {
      for (const end = Date.now() + 20000; !(await world.asks(other, '/readyz')); await sleep(50))
        expect(Date.now() < end, 'the takeover')
      expectEqual((await world.until(id)).status, 'escalated', 'nobody knows')
      first.child.kill('SIGCONT')
      expectEqual((await world.until(id, ['completed'], 20)).status, 'completed', 'the late answer settles it')
      expectEqual(server.of('slow').length, 1, 'calls')
    } finally {
      first.child.kill('SIGCONT')
      world.port = world.engines[0].port
    }
  })

  await promise(
    'the place of a call whose engine was killed is free at once, not after the time of the call',
    async () => {
      let hold = true
      server.behave.alone = async () => {
        while (hold) await sleep(50)
        return { status: 200, body: {} }
      }
      const killed = world.engines[0],
        other = world.engines[1]
      const body = { saga: 'run_alone', id: `alone-${++count}`, input: { n: count } }
      // Its connections were ended while it was frozen.
      const made = await world.calm(() => at(0, 'POST', '/v1/sagas', body))
      expect(made.status < 300, `the start: ${made.status} ${made.text}`)
      while (server.of('alone').length === 0) await sleep(10)
      await world.killEngine(killed)
      hold = false
      world.port = other.port
      const begun = Date.now()
      while (!(await world.asks(other, '/readyz'))) await sleep(50)
      expectEqual(
        (await world.until(made.json.id, undefined, 60)).status,
        'completed',
        'the interrupted one, under its key'
      )
      expect(
        Date.now() - begun < 60000,
        'the place was taken until the time of the call was over',
        `${Date.now() - begun} ms`
      )
      expectEqual(new Set(server.of('alone').map((one) => one.key)).size, 1, 'keys')
      world.launchEngine(killed)
      await world.engineReady(killed)
      world.port = world.engines[0].port
    }
  )

  await sleep(3000) // the frozen engine knows that it owns nothing any more
  await promise(
    'while the database is away nothing is let through, and afterwards everything is',
    async () => {
      server.seen = []
      const ids = await startMany('rated', 10)
      await world.killPostgres()
      await sleep(1500)
      const during = server.of('rated').length
      await sleep(3000)
      expect(server.of('rated').length <= during, 'calls while it is away', [during, server.of('rated').length])
      await world.startPostgres()
      for (
        const end = Date.now() + 30000;
        !(await world.anyEngineIsReady()) || (await world.api('GET', `/v1/sagas/${ids[0]}`)).status !== 200;
        await sleep(50)
      ) {
        expect(Date.now() < end, 'the engines are ready again')
      }
      await allEnd(ids)
      expectEqual(new Set(server.of('rated').map((one) => one.key)).size, 10, 'operations')
    },
    90
  )

  server.closeAllConnections()
  server.close()
})
