// Bad input and bad days: each gets one clear sentence with advice and its status or exit code, and loses nothing.
import { createServer } from 'node:net'
import { readFileSync } from 'node:fs'
import { Pooler } from '../lib/pooler.mjs'
import { Splitter } from '../lib/splitter.mjs'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const echo = { builtin: { do: 'echo' } }

// Returns a tool over HTTP that ends its saga, with the test's own server behind it.
function tool(name, port, more = {}) {
  return {
    name,
    effect: 'once',
    terminal: true,
    timeout: '1s',
    http: { method: 'POST', url: `http://127.0.0.1:${port}/${name}`, body: '${ .args }' },
    ...more
  }
}

// Starts a receiver that calls `respond` with the raw socket once the head of a request is there.
async function receiver(respond) {
  const sockets = new Set()
  const server = createServer((socket) => {
    let head = ''
    let answered = false
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (data) => {
      head += data.toString('latin1')
      if (answered || !head.includes('\r\n\r\n')) return
      answered = true
      respond(socket, head.split(' ')[1].slice(1))
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.port = server.address().port
  server.shut = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return server
}

const answers = {
  garbage: (socket) => socket.end('\x00\x01\x02 this is not HTTP\r\n\r\n'),
  nothing: (socket) => socket.end(),
  forever: () => {},
  dripping: (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
    const timer = setInterval(() => socket.write('x'), 50)
    socket.on('close', () => clearInterval(timer))
  },
  cut: (socket) =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\ncontent-type: application/json\r\n\r\n{"half":'),
  huge: (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n"')
    const block = Buffer.alloc(65536, 'x')
    const pour = () => {
      while (!socket.destroyed && socket.write(block));
    }
    socket.on('drain', pour)
    pour()
  },
  headers: (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    const pour = () => {
      for (let i = 0; !socket.destroyed && i < 1000; i++) if (!socket.write(`x-${i}: ${'y'.repeat(1000)}\r\n`)) return
    }
    socket.on('drain', pour)
    pour()
  },
  redirect: (socket) =>
    socket.end('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/elsewhere\r\ncontent-length: 0\r\n\r\n')
}

await run(new World(), async (world) => {
  world.isEmpty = true
  // --- before there is a database ---

  await promise('sagad migrate without PostgreSQL: exit 6, and it says what is missing', () => {
    const done = world.sagadOnce(['migrate', '--database', world.dsn])
    expect(
      done.status === 6 && /PostgreSQL/.test(done.stderr) && /running/.test(done.stderr),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
  })
  await promise('a connection string that cannot be read: exit 2', () => {
    for (const args of [['migrate'], ['--listen', '127.0.0.1:0']]) {
      const done = world.sagadOnce([...args, '--database', 'hots=nowhere'], { seconds: 10 })
      expect(
        done.status === 2 && /connection string/.test(done.stderr),
        'exit code and sentence',
        `${done.status} ${done.stderr}`
      )
    }
  })
  await promise('settings that are wrong: exit 2, each named', () => {
    for (const args of [
      ['--lease', 'soon'],
      ['--colour', 'red'],
      ['fly'],
      ['--log-level', 'loud'],
      ['--writers', '0'],
      ['--listen', 'here']
    ]) {
      const done = world.sagadOnce([...args, '--database', world.dsn], { seconds: 10 })
      const named = done.stderr.includes(args[0].replace('--', ''))
      expect(done.status === 2 && named, `${args.join(' ')}: exit code and sentence`, `${done.status} ${done.stderr}`)
    }
  })
  await promise('sagad is alive and not ready without PostgreSQL; it goes on when PostgreSQL comes', async () => {
    world.port = await freePort()
    world.launchSagad()
    for (let i = 0; i < 100 && (await world.readiness()) === 0; i++) await sleep(50)
    expectEqual(await world.readiness(), 503, '/readyz')
    expectEqual((await world.api('GET', '/livez')).status, 200, '/livez')
    const start = await world.api('POST', '/v1/sagas', { saga: 'any' })
    expectEqual(start.status, 503, 'a start')
    expect(start.headers.get('retry-after'), 'it says when to come back')
    await world.startPostgres()
    // The database exists without the schema, which does not mend itself.
    const end = await Promise.race([world.sagad.ended, sleep(20000)])
    expect(end && end.code === 2, 'no schema: exit 2', end)
    expect(/sagad migrate/.test(readFileSync(world.log('sagad'), 'utf8')), 'it says to migrate')
  })

  await promise('migrate twice, and two at once: all succeed', async () => {
    const once = () => world.launch('migrate', world.sagadPath, ['migrate', '--database', world.dsn]).ended
    expectEqual(
      (await Promise.all([once(), once(), once()])).map((end) => end.code),
      [0, 0, 0],
      'exit codes at once'
    )
    expectEqual((await once()).code, 0, 'exit code of one more')
  })
  await world.startShop()
  await world.startSagad()

  await promise('a taken port: exit 2 or 1 within seconds, and the port is named', () => {
    const done = world.sagadOnce(['--database', world.dsn, '--listen', `127.0.0.1:${world.port}`], { seconds: 15 })
    expect(
      done.status > 0 && done.stderr.includes(String(world.port)),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
  })
  await promise('an address for everybody without tokens is refused', () => {
    const done = world.sagadOnce(['--database', world.dsn, '--listen', '0.0.0.0:0'], { seconds: 15 })
    expect(done.status === 2 && /token/.test(done.stderr), 'exit code and sentence', `${done.status} ${done.stderr}`)
  })

  // --- requests ---

  const post = (raw, path = '/v1/sagas') => world.api('POST', path, undefined, { raw })
  await world.define({
    tools: [{ name: 'echo', ...echo, effect: 'read' }],
    sagas: [{ name: 'quick', steps: [{ id: 'one', call: 'echo', with: '${ .input }' }] }]
  })

  const nested = (levels) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const malformed = {
    'half an object': '{"saga":"quick"',
    'a trailing comma': '{"saga":"quick",}',
    'two values': '{"saga":"quick"} {}',
    'single quotes': "{'saga':'quick'}",
    'duplicate members': '{"saga":"quick","saga":"quick"}',
    'duplicate members, one escaped': '{"saga":"quick","s\\u0061ga":"quick"}',
    'a lone surrogate': '{"saga":"quick","input":"\\ud800"}',
    'a NUL': '{"saga":"quick","input":"\\u0000"}',
    'depth over 64': `{"saga":"quick","input":${nested(70)}}`,
    'depth 100000': nested(100000),
    'a number out of bounds': '{"saga":"quick","input":1e999}',
    'a byte order mark': '\ufeff{"saga":"quick"}',
    NaN: '{"saga":"quick","input":NaN}'
  }
  for (const [what, raw] of Object.entries(malformed)) {
    await promise(`malformed JSON, ${what}: refused with a problem that says so`, async () => {
      const answer = await post(raw)
      expect(
        what === 'a number out of bounds' ? [400, 422].includes(answer.status) : answer.status === 400,
        'status',
        `${answer.status} ${answer.text}`
      )
      expect(
        answer.headers.get('content-type').startsWith('application/problem+json') &&
          answer.json.detail &&
          answer.json.status === answer.status,
        'a problem',
        answer.text
      )
    })
  }
  await promise('bytes that are no UTF-8: 400', async () => {
    const answer = await post(
      Buffer.from([...Buffer.from('{"saga":"quick","input":"'), 0xc3, 0x28, ...Buffer.from('"}')])
    )
    expectEqual(answer.status, 400, 'status')
  })
  await promise('a body over the limit: 413, also without a length', async () => {
    const body = `{"saga":"quick","input":"${'x'.repeat(3 << 20)}"}`
    const large = await post(body).catch((error) => ({ status: String(error) }))
    expectEqual(large.status, 413, 'status')
    const chunked = await fetch(`http://127.0.0.1:${world.port}/v1/sagas`, {
      method: 'POST',
      duplex: 'half',
      headers: { 'content-type': 'application/json' },
      body: new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(body))
          controller.close()
        }
      })
    }).then(
      (answer) => answer.status,
      () => 'cut'
    )
    expect(chunked === 413 || chunked === 'cut', 'chunked', String(chunked))
  })
  await promise('payload bytes come back as they went in', async () => {
    const input = '{ "b":1.0,"a":[ 9007199254740993,1e2,"\\u00e9\\/" ] }'
    const started = await post(`{"saga":"quick","input":${input}}`)
    expectEqual(started.status, 201, started.text)
    await world.until(started.json.id, ['completed'])
    const shown = await world.api('GET', `/v1/sagas/${started.json.id}`)
    expect(shown.text.includes(`"input":${input}`), 'the input, byte for byte', shown.text)
  })

  const wrong = [
    ['GET', '/v1/nowhere', 404],
    ['GET', '/v1/sagas/nonsense', 404],
    ['GET', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff', 404],
    ['DELETE', '/v1/sagas', 405],
    ['PATCH', '/v1/definitions', 405],
    ['GET', '/v1/escalations/99999999', 404],
    ['GET', '/v1/escalations/-1', 404],
    ['GET', '/v1/tools/nobody', 404],
    ['GET', '/v1/definitions/nobody', 404],
    ['GET', '/v1/operations/nonsense', 404],
    ['GET', '/v1/sagas?limit=0', 400],
    ['GET', '/v1/sagas?limit=501', 400],
    ['GET', '/v1/sagas?cursor=nonsense', 400],
    ['GET', '/v1/sagas?colour=red', 400],
    ['GET', '/v1/sagas?status=happy', 400],
    ['GET', '/../../etc/passwd', 404],
    ['POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/abort', 404, { note: 'x' }],
    ['POST', '/v1/sagas', 404, { saga: 'nobody' }],
    ['POST', '/v1/sagas', 422, { saga: 'quick', colour: 1 }],
    ['POST', '/v1/sagas', 422, { saga: 7 }],
    ['POST', '/v1/sagas', 422, {}],
    ['POST', '/v1/sagas', 422],
    ['POST', '/v1/sagas', 404, { saga: 'quick', version: 99 }],
    ['POST', '/v1/sagas', 422, []],
    ['POST', '/v1/escalations/99999999/resolve', 404, { action: 'retry', note: 'x' }]
  ]
  for (const [method, path, status, body] of wrong) {
    await promise(`${method} ${path}${body ? ' ' + JSON.stringify(body) : ''}: ${status}`, async () => {
      const answer = await world.api(method, path, body)
      expect(
        answer.status === status || (status === 404 && path.includes('nonsense') && answer.status === 400),
        'status',
        `${answer.status} ${answer.text}`
      )
      expect(
        answer.json?.detail && answer.json?.type && answer.json.status === answer.status,
        'a problem that says what to do',
        answer.text
      )
    })
  }

  await promise('fifty errors in one definition document are all reported, each with its place', async () => {
    const tools = Array.from({ length: 50 }, (_, i) => ({ name: `bad${i}`, ...echo, effect: 'read', colour: i }))
    const answer = await world.api('POST', '/v1/definitions', { tools })
    expectEqual(answer.status, 422, 'status')
    const pointers = new Set(answer.json.errors.map((error) => error.pointer))
    for (let i = 0; i < 50; i++)
      expect(
        [...pointers].some((pointer) => pointer.startsWith(`/tools/${i}/`)),
        `the error of tool ${i} is reported`,
        answer.text
      )
    expectEqual((await world.api('GET', '/v1/tools/bad0')).status, 404, 'nothing of it is registered')
  })
  await promise('keywords of JSON Schema that sagad does not understand are refused by name', async () => {
    const answer = await world.api('POST', '/v1/definitions', {
      sagas: [{ name: 'later', input: { pattern: '^a' }, steps: [{ id: 'one', call: 'echo' }] }]
    })
    expect(
      answer.status === 422 && /not supported yet/.test(answer.text) && answer.text.includes('pattern'),
      'the sentence',
      answer.text
    )
  })

  // --- tools that misbehave ---

  const bad = await receiver((socket, name) => answers[name](socket))
  await world.define({
    tools: Object.keys(answers).map((name) => tool(name, bad.port)),
    sagas: Object.keys(answers).map((name) => ({ name: `on_${name}`, steps: [{ id: 'call', call: name, with: {} }] }))
  })
  for (const name of Object.keys(answers)) {
    await promise(`a tool that answers with ${name}: unknown, a person is asked, and sagad goes on`, async () => {
      const saga = await world.until(await world.start(`on_${name}`, {}), ['escalated', 'completed', 'compensated'], 20)
      expect(saga.status === 'escalated' && saga.steps[0].took_effect === 'maybe', 'status and took_effect', saga)
      expect(saga.steps[0].error, 'the step says what came', saga)
      expectEqual((await world.api('GET', '/livez')).status, 200, '/livez')
    })
  }
  bad.shut()
  await promise('the memory of sagad stays bounded', () => {
    if (/__asan_init/.test(readFileSync(world.sagadPath, 'latin1'))) return // a sanitizer uses memory of its own
    const peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${world.sagad.pid}/status`, 'utf8'))[1])
    expect(peak < 200 * 1024, `peak of ${peak} KiB`)
  })

  // --- the database goes away ---

  await promise('PostgreSQL restarted: /readyz goes 503 and comes back, sagas that were under way go on', async () => {
    await world.define(world.example('shop.json'))
    await world.fault({ route: 'charges', mode: 'slow', ms: 1500, times: 1 })
    const before = await world.start('order', { order_id: 'before', sku: 'book', amount: 5, email: 'before@x.example' })
    await sleep(300)
    await world.stopPostgres()
    const until = Date.now() + 15000
    while ((await world.readiness()) !== 503) {
      expect(Date.now() < until, '/readyz says 503')
      await sleep(50)
    }
    const away = await world.api('POST', '/v1/sagas', { saga: 'quick', id: 'while-away' })
    expect(
      away.status === 503 && away.headers.get('retry-after') && away.json.retryable === true,
      'a start meanwhile',
      away.text
    )
    await world.startPostgres()
    await world.ready(30)
    expectEqual((await world.until(before)).status, 'completed', 'the saga from before')
    expectEqual(world.ledger().filter((line) => line.effect === 1).length, 3, 'effects')
    expectEqual(
      (await world.until(await world.start('quick', {}, { id: 'while-away' }))).status,
      'completed',
      'a saga from after'
    )
  })
  await promise('its connections cut by an administrator: it reconnects and goes on', async () => {
    world.sql(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = ' +
        "'client backend'"
    )
    expectEqual(
      (await world.until(await world.start('quick', {}, { id: 'after-the-cut' }))).status,
      'completed',
      'a saga from after'
    )
  })

  // --- the end ---

  await promise(
    'SIGTERM with work under way: drained in time, exit 0, and the work goes on after the next start',
    async () => {
      await world.fault({ route: 'charges', mode: 'slow', ms: 60000, times: 1 })
      await world.fault({ route: 'reservations', mode: 'slow', ms: 700, times: 5 })
      const ids = []
      for (let i = 0; i < 6; i++)
        ids.push(
          await world.start('order', { order_id: `drain-${i}`, sku: 'book', amount: 5, email: `drain-${i}@x.example` })
        )
      await sleep(400)
      const begun = Date.now()
      world.sagad.kill('SIGTERM')
      const end = await world.sagad.ended
      expectEqual(end.code, 0, 'exit code')
      expect(Date.now() - begun < 20000, `it took ${Date.now() - begun} ms`)
      await world.noFaults()
      world.launchSagad()
      await world.ready()
      for (const id of ids) expectEqual((await world.until(id)).status, 'completed', 'a saga after the restart')
      expectEqual(world.ledger().filter((line) => line.effect === 1 && line.kind === 'mail').length, 7, 'mails')
    }
  )
  await promise('every saga folds from its log to the state that the service shows', () => {
    const replay = world.sagactl(['replay', '--all'])
    expect(replay.status === 0, 'sagactl replay --all', `${replay.status} ${replay.stdout} ${replay.stderr}`)
  })
  await promise('a role without rights, and a database that is not there: each says what is missing', async () => {
    world.sql('create role weak login')
    const weak = world.sagadOnce(
      ['--database', world.dsn.replace('user=postgres', 'user=weak'), '--listen', '127.0.0.1:0'],
      { seconds: 15 }
    )
    expect(
      weak.status === 2 && /weak/.test(weak.stderr) && /grant/.test(weak.stderr),
      'a role without rights',
      `${weak.status} ${weak.stderr}`
    )
    for (const [what, dsn] of [
      ['user', world.dsn.replace('user=postgres', 'user=nobody')],
      ['database', world.dsn.replace('dbname=postgres', 'dbname=nowhere')]
    ]) {
      const done = world.sagadOnce(['migrate', '--database', dsn])
      expect(
        done.status > 0 && /nobody|nowhere/.test(done.stderr) && done.stderr.split('\n').length >= 3,
        `an unknown ${what}`,
        `${done.status} ${done.stderr}`
      )
    }
  })
  await promise('a PostgreSQL that may forget what it committed is refused, unless one asks for it', async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    await world.stopPostgres()
    await world.startPostgres(['-c', 'fsync=off'])
    const done = world.sagadOnce(['--database', world.dsn, '--listen', '127.0.0.1:0'], { seconds: 15 })
    expect(
      done.status === 2 && /fsync/.test(done.stderr) && /--risk-losing-acknowledged-work/.test(done.stderr),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
    world.launchSagad(['--risk-losing-acknowledged-work'])
    await world.ready()
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    await world.stopPostgres()
    await world.startPostgres()
    world.launchSagad()
    await world.ready()
  })
  // `breaks` is the member of the proxy that makes it do harm.
  const isRefused = async (proxy, breaks, words) => {
    const { dsn } = world
    const refusal = async (times) => {
      const { code } = await world.sagad.ended
      const said = readFileSync(world.log('sagad'), 'utf8').match(words) ?? []
      expectEqual([code, said.length], [2, times], 'exit code, and how often it was said')
    }
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    world.dsn = await proxy.start()
    world.launchSagad()
    await refusal(1)
    proxy[breaks] = false
    world.launchSagad()
    await world.ready()
    proxy[breaks] = true
    await refusal(2)
    world.dsn = dsn
    world.launchSagad()
    await world.ready()
  }
  await promise('a proxy that makes several transactions of one is refused, at the start and at any time', () =>
    isRefused(new Splitter(world), 'splits', /sagad: .*several transactions of one/g)
  )
  await promise('a pooler that breaks sessions is refused, at the start and at any time', () =>
    isRefused(new Pooler(world), 'pools', /sagad: a pooler stands between/g)
  )
  await promise('a schema that is newer, or older, than the program: exit 2, and what to do', async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    const start = () => world.sagadOnce(['--database', world.dsn, '--listen', '127.0.0.1:0'], { seconds: 15 })
    world.sql("insert into sagad.schema_version (version, name) values (9999, 'from_the_future')")
    const newer = start()
    expect(
      newer.status === 2 && /newer than this program/.test(newer.stderr),
      'newer',
      `${newer.status} ${newer.stderr}`
    )
    const migrate = world.sagadOnce(['migrate', '--database', world.dsn])
    expect(
      migrate.status === 2 && /newer than this program/.test(migrate.stderr),
      'migrate on a newer one',
      `${migrate.status} ${migrate.stderr}`
    )
    world.sql(
      'delete from sagad.schema_version where version >= (select max(version) from sagad.schema_version where ' +
        'version < 9999)'
    )
    const older = start()
    expect(
      older.status === 2 && /older than this program/.test(older.stderr) && /sagad migrate/.test(older.stderr),
      'older',
      `${older.status} ${older.stderr}`
    )
  })
})
