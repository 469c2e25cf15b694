// Faults that outsiders found when they saw sagad for the first time, repeated as they tried it: each of these promises
// was broken once.
import { createServer, request } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

// Each path answers what its list says, the last answer for ever: {status, body, ms, drop}.
const said = new Map(),
  seen = []
const receiver = createServer((incoming, response) => {
  const path = incoming.url.split('?')[0].slice(1)
  const list = said.get(path) ?? [{ status: 200, body: { id: path } }]
  const answer = list.length > 1 ? list.shift() : list[0]
  let body = ''
  incoming.on('data', (bytes) => {
    body += bytes
  })
  incoming.on('end', () => {
    seen.push({ path, url: incoming.url, method: incoming.method, body })
    if (answer.hang) return
    setTimeout(() => {
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
    }, answer.ms ?? 0)
  })
})
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${receiver.address().port}`
const says = (path, ...list) => said.set(path, list)
const seenAt = (path) => seen.filter((one) => one.path === path)

const post = (path, more) => ({ http: { method: 'POST', url: `${base}/${path}`, body: '${ .args }' }, ...more })
const echo = (value) => ({ call: { builtin: { do: 'echo' }, effect: 'read' }, with: { v: value } })
const undoable = { compensate: { tool: 'undo', with: {} } }
const keyed = { effect: 'keyed', key: { window: '1h' }, ...undoable }
const once = { effect: 'once', ...undoable }
const stepOf = (saga, id) => saga.steps.find((step) => step.id === id)

await run(new World(), async (world) => {
  await world.startPostgres()
  // The environment tells sagad where its database is, and as which user it connects.
  Object.assign(process.env, {
    PGHOST: world.directory,
    PGPORT: '5432',
    PGUSER: 'postgres',
    PGPASSWORD: 'in the environment'
  })
  world.dsn = 'dbname=postgres'
  const secrets = join(world.directory, 'secrets.json')
  writeFileSync(
    secrets,
    JSON.stringify({ bank: 'dbname=postgres', server: `host=${world.directory} dbname=postgres` }),
    { mode: 0o600 }
  )
  await world.startSagad(['--secrets', secrets])
  says('refuses', { status: 400, body: {} })
  await world.define({
    tools: [
      { name: 'undo', effect: 'idempotent', ...post('undo') },
      { name: 'refuses', ...once, ...post('refuses') }
    ]
  })
  const register = (document) => world.calm(() => world.api('POST', '/v1/definitions', document))
  const ended = async (saga, input = {}) => world.until(await world.start(saga, input))
  const reached = async (path, count) => {
    for (const end = Date.now() + 60000; seenAt(path).length < count; await sleep(10))
      if (Date.now() > end) throw new Error(`${path} was not called ${count} times`)
  }

  await promise('a number that a double does not hold goes through an expression as it is', async () => {
    await world.define({ sagas: [{ name: 'exact', steps: [{ id: 'a', ...echo('${ {id: .input.n} }') }] }] })
    const answer = await world.calm(() =>
      world.api('POST', '/v1/sagas?wait=20s', undefined, { raw: '{"saga":"exact","input":{"n":9007199254740993}}' })
    )
    expect(answer.text.includes('"id":9007199254740993'), 'the id', answer.text)
  })

  await promise('a document that breaks its helper harms nobody else', async () => {
    const sagas = Array.from({ length: 12 }, (_, i) => ({
      name: `good${i}`,
      steps: [{ id: 'a', ...echo(`\${ {k${i}: .input.a} }`) }]
    }))
    await world.define({ sagas })
    await world.kill9() // so that nothing of them is compiled
    world.launchSagad(world.sagadArgs)
    await world.ready()
    for (let i = 0; i < 12; i++) {
      const bad = await register({ sagas: [{ name: 'odd', steps: [{ id: 'a', ...echo('${ $ENV.HOME }') }] }] })
      expectEqual(bad.status, 422, 'what reads the environment is refused')
      expectEqual((await ended(`good${i}`, { a: i })).status, 'completed', `good${i}`)
    }
  })

  await promise('a verdict that leaves out a result is refused wherever the result is read', async () => {
    const doubtful = (more) => ({ effect: 'once', timeout: '300ms', ...post('silent'), ...more })
    says('silent', { hang: true })
    await world.define({
      tools: [
        { name: 'undone', ...doubtful({ compensate: { tool: 'undo', with: '${ {id: .result.id} }' } }) },
        { name: 'alone', ...doubtful({ compensate: { tool: 'undo', with: {} } }) }
      ],
      sagas: [
        {
          name: 'read_by_undo',
          steps: [
            { id: 'x', call: 'undone' },
            { id: 'z', call: 'refuses' }
          ]
        },
        {
          name: 'read_by_when',
          steps: [
            { id: 'x', call: 'alone' },
            { id: 'z', when: '${ .steps.x.result.paid // false }', call: 'refuses' },
            { id: 'y', call: 'refuses', with: { id: '${ .steps.x.result | .id }' } }
          ]
        },
        { name: 'follower', steps: [{ id: 'a', ...echo(1) }] },
        {
          name: 'read_by_then',
          steps: [{ id: 'x', call: 'alone' }],
          then: [{ saga: 'follower', input: { id: '${ .steps.x.result.id }' } }]
        }
      ]
    })
    for (const name of ['read_by_undo', 'read_by_when', 'read_by_then']) {
      const saga = await ended(name)
      expectEqual(saga.status, 'escalated', name)
      const answer = await world.resolve(saga.id, { action: 'resolve', as: 'happened' })
      expectEqual(answer.status, 422, `${name}: ${answer.text}`)
      await world.resolve(saga.id, { action: 'resolve', as: 'not_happened' })
    }
  })

  await promise('an argument stays in its place of a URL', async () => {
    const tool = (url) => ({ effect: 'read', http: { method: 'POST', url: `${base}/${url}`, body: {} } })
    await world.define({
      sagas: [
        { name: 'place', steps: [{ id: 'a', call: tool('items/${ .args.id }/sub'), with: { id: '${ .input.id }' } }] },
        { name: 'question', steps: [{ id: 'a', call: tool('asked?q=${ .args.id }'), with: { id: '${ .input.id }' } }] }
      ]
    })
    await ended('place', { id: '../../admin' })
    await ended('question', { id: 'c&d=e#f' })
    const urls = seen.map((one) => one.url)
    expect(!urls.some((url) => url.startsWith('/admin')), 'a path that was left', urls)
    expect(urls.includes('/asked?q=c%26d%3De%23f'), 'a query with more parts', urls)
  })

  await promise('a cost that is no whole number is rounded up, and a budget counts it', async () => {
    says('priced', { status: 200, body: { price: 2.01 } })
    await world.define({
      tools: [
        {
          name: 'priced',
          ...once,
          ...post('priced'),
          result: '${ .response.body }',
          cost: '${ .result.price * 1000000 }'
        }
      ],
      sagas: [
        {
          name: 'costly',
          budget: { micros: 5000000 },
          steps: [1, 2, 3, 4].map((n) => ({ id: `s${n}`, call: 'priced' }))
        }
      ]
    })
    const saga = await world.until(await world.start('costly', {}))
    expect(saga.status !== 'completed' && seenAt('priced').length === 3, 'the fourth call is over the budget', {
      status: saga.status,
      calls: seenAt('priced').length
    })
    expectEqual(saga.cost, 3 * 2010000, 'the cost')
  })

  await promise('a key beside a business id names the same saga', async () => {
    const start = (body) =>
      world.calm(() =>
        world.api(
          'POST',
          '/v1/sagas',
          { saga: 'exact', input: { n: 1 }, ...body },
          { headers: { 'idempotency-key': 'k1' } }
        )
      )
    const first = await start({ id: 'b1' })
    const again = await start({})
    expectEqual([first.status, again.status, again.json.id], [201, 200, first.json.id], 'the same key alone')
  })

  await promise('a verdict while a probe is out does not throw its answer away', async () => {
    says('room', { hang: true })
    says('lost', { status: 500, body: {} })
    const probe = {
      http: { method: 'GET', url: `${base}/lost` },
      outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
      visibility: '0s',
      give_up_after: '300ms'
    }
    await world.define({
      tools: [{ name: 'room', ...once, timeout: '200ms', ...post('room'), probe }],
      sagas: [{ name: 'book', steps: [{ id: 'x', call: 'room' }] }]
    })
    const saga = await ended('book')
    const asked = seenAt('lost').length
    says('lost', { status: 200, body: {}, ms: 2500 })
    expectEqual((await world.resolve(saga.id, { action: 'probe' })).status, 200, 'ask again')
    await reached('lost', asked + 1)
    expectEqual(
      (await world.resolve(saga.id, { action: 'resolve', as: 'not_happened' })).status,
      409,
      'the verdict waits'
    )
    expectEqual(
      (await world.until(saga.id, ['completed', 'compensated'])).status,
      'completed',
      'what the receiver said'
    )
  })

  await promise('a compensator has as many attempts as it is given', async () => {
    says('give', { status: 500, body: {} })
    await world.define({
      tools: [
        { name: 'give', effect: 'idempotent', ...post('give') },
        {
          name: 'take',
          effect: 'once',
          ...post('take'),
          compensate: { tool: 'give', retry: { max_attempts: 2, initial: '30ms', factor: 1, max: '30ms' } }
        }
      ],
      sagas: [
        {
          name: 'give_back',
          steps: [
            { id: 'x', call: 'take' },
            { id: 'z', call: 'refuses' }
          ]
        }
      ]
    })
    const id = await world.start('give_back', {})
    for (
      const end = Date.now() + 5000;
      seenAt('give').length < 3 && Date.now() < end && (await world.saga(id)).status !== 'escalated';
      await sleep(20)
    );
    expectEqual([(await world.saga(id)).status, seenAt('give').length], ['escalated', 2], 'a person after two')
  })

  await promise('an expression that can never work is refused when it is registered', async () => {
    for (const program of ['now', 'env', 'input', 'halt', '"a" | gsub("a"; "b")', '"a" | test("a")']) {
      const answer = await register({ sagas: [{ name: 'never', steps: [{ id: 'a', ...echo(`\${ ${program} }`) }] }] })
      expectEqual(answer.status, 422, program)
    }
  })

  await promise('skip is refused where a later step needs the result', async () => {
    const before = seenAt('undo').length
    await world.define({
      tools: [{ name: 'after', effect: 'idempotent', ...undoable, ...post('after') }],
      sagas: [
        {
          name: 'skipped',
          steps: [
            { id: 'b', call: 'refuses', on_failure: 'escalate' },
            { id: 'c', call: 'after', with: { id: '${ .steps.b.result.id }' } }
          ]
        }
      ]
    })
    const saga = await ended('skipped')
    expectEqual(
      [(await world.resolve(saga.id, { action: 'skip' })).status, seenAt('after').length, before],
      [422, 0, before],
      'no call with null'
    )
  })

  await promise('424 says that the call may be made again while it has attempts', async () => {
    says('broke', { status: 402, body: {} }, { status: 200, body: {} })
    await world.define({ tools: [{ name: 'broke', ...keyed, retry: { max_attempts: 3 }, ...post('broke') }] })
    const call = () => world.api('POST', '/v1/operations?wait=20s', { run: 'r', step: 's', tool: 'broke', args: {} })
    const first = await call()
    expectEqual([first.status, first.json.retryable], [424, true], 'the first')
    expectEqual((await call()).status, 200, 'the second')
  })

  await promise('a call that never left is no attempt', async () => {
    await world.define({
      tools: [
        {
          name: 'nobody',
          ...once,
          retry: { max_unsent: 3, initial: '10ms', max: '10ms' },
          http: { method: 'POST', url: 'http://127.0.0.1:1/', body: {} }
        }
      ],
      sagas: [{ name: 'unsent', steps: [{ id: 'a', call: 'nobody' }] }]
    })
    const step = stepOf(await ended('unsent'), 'a')
    expectEqual([step.attempts, step.unsent], [0, 3], 'attempts, and calls that did not leave')
  })

  await promise('a caller with other arguments is not shown the first ones', async () => {
    await world.define({ tools: [{ name: 'mail', effect: 'idempotent', ...undoable, ...post('mail') }] })
    const call = (args) => world.api('POST', '/v1/operations?wait=20s', { run: 'r2', step: 's', tool: 'mail', args })
    await call({ to: 'first@example.org', amount: 5 })
    const answer = await call({ to: 'second@example.org', amount: 7 })
    expectEqual([answer.status, answer.text.includes('first@example.org')], [422, false], 'the answer')
  })

  await promise('a result that cannot be made is told, and no later step gets null for it', async () => {
    says('words', { status: 200, body: { n: 'abc' } })
    await world.define({
      tools: [
        { name: 'words', effect: 'read', ...post('words'), result: '${ .response.body.n | tonumber }' },
        { name: 'later', effect: 'idempotent', ...undoable, ...post('later') }
      ],
      sagas: [
        {
          name: 'numbers',
          steps: [
            { id: 'a', call: 'words' },
            { id: 'b', call: 'later', with: { n: '${ .steps.a.result }' } }
          ]
        }
      ]
    })
    const saga = await ended('numbers')
    expect(typeof stepOf(saga, 'a').result_error === 'string', 'the step says so', stepOf(saga, 'a'))
    expectEqual(seenAt('later').length, 0, 'no call with null')
  })

  await promise('more steps than a saga may have are found before the first of them begins', async () => {
    await world.define({
      tools: [{ name: 'each', effect: 'idempotent', ...undoable, ...post('each') }],
      sagas: [
        { name: 'forty', steps: Array.from({ length: 40 }, (_, i) => ({ id: `s${i}`, call: 'each' })) },
        { name: 'many', steps: [{ id: 'all', for_each: '${ .input.items }', saga: 'forty', with: {} }] }
      ]
    })
    await ended('many', { items: Array.from({ length: 300 }, (_, i) => i) })
    expectEqual(seenAt('each').length, 0, 'calls')
  })

  await promise('keys that are no UTF-8 are refused, and make no log unreadable', async () => {
    await world.define({
      sagas: [
        {
          name: 'waits',
          steps: [
            { id: 'a', signal: { name: 'go' } },
            { id: 'b', signal: { name: 'go' } }
          ]
        }
      ]
    })
    const id = await world.start('waits', {})
    const signal = (byte) =>
      new Promise((resolve, reject) => {
        const asked = request(
          {
            host: '127.0.0.1',
            port: world.port,
            path: `/v1/sagas/${id}/signals/go`,
            method: 'POST',
            headers: { 'content-type': 'application/json', 'idempotency-key': Buffer.from([byte]).toString('latin1') }
          },
          (answer) => {
            answer.resume()
            answer.on('end', () => resolve(answer.statusCode))
          }
        )
        asked.on('error', reject)
        asked.end(Buffer.from('{}')) // bytes, because a text would have the head written as UTF-8
      })
    expectEqual([await signal(0xff), await signal(0xfe)], [400, 400], 'the signals')
    expectEqual((await world.sagactl(['replay', id])).status, 0, 'the log')
  })

  await promise('every change by a person has a reason', async () => {
    const id = await world.start('waits', {})
    for (const verb of ['pause', 'abort']) {
      const answer = await world.api('POST', `/v1/sagas/${id}/${verb}`, {})
      // Without tokens all clients look alike, so an abort may come from the starter.
      expectEqual([verb, answer.status], [verb, verb === 'abort' ? 200 : 422], answer.text)
    }
  })

  await promise('a probe, a precheck and a read send GET where no method is given', async () => {
    await world.define({
      tools: [
        { name: 'looks', effect: 'read', http: { url: `${base}/looks` } },
        {
          name: 'checked',
          effect: 'checked',
          ...undoable,
          timeout: '200ms',
          ...post('hangs'),
          probe: {
            http: { url: `${base}/asks` },
            visibility: '0s',
            outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' }
          }
        }
      ],
      sagas: [
        {
          name: 'looking',
          steps: [
            { id: 'a', call: 'looks' },
            { id: 'b', call: 'checked' }
          ]
        }
      ]
    })
    says('hangs', { hang: true })
    await ended('looking')
    expectEqual(
      [...seenAt('looks'), ...seenAt('asks')].map((one) => one.method),
      ['GET', 'GET'],
      'the methods'
    )
  })

  await promise('a statement of a tool comes into no database by what sagad connects with', async () => {
    const tool = (secret) => ({
      effect: 'read',
      sql: { database: `\${ secret("${secret}") }`, statement: 'select count(*) as n from sagad.saga' }
    })
    await world.define({
      sagas: ['bank', 'server'].map((secret) => ({ name: `by_${secret}`, steps: [{ id: 'a', call: tool(secret) }] }))
    })
    for (const secret of ['bank', 'server']) {
      const step = stepOf(await ended(`by_${secret}`), 'a')
      expectEqual([step.status, step.error?.code, step.attempts], ['failed', 'no-connection', 0], secret)
    }
    const plain = await register({
      sagas: [
        {
          name: 'plain',
          steps: [{ id: 'a', call: { effect: 'read', sql: { database: 'dbname=postgres', statement: 'select 1' } } }]
        }
      ]
    })
    expectEqual(plain.status, 422, 'what can be seen is refused at once')
  })

  await promise('connections of sagad outlive what the server allows to idle sessions', async () => {
    world.sql("alter role postgres set idle_session_timeout = '100ms'")
    world.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'sagad%'")
    const idle =
      "select count(*) from pg_stat_activity where application_name like 'sagad%' and state = 'idle' " +
      "and now() - greatest(state_change, backend_start) > '1s' and backend_start > now() - interval '1 minute'"
    for (const end = Date.now() + 60000; Number(world.sql(idle)) === 0; await sleep(50))
      if (Date.now() > end) throw new Error('no connection lives for a second')
    world.sql('alter role postgres reset idle_session_timeout')
  })

  receiver.closeAllConnections()
  receiver.close()
})
