// Traces of ended sagas reach a collector under the trace of whoever started the saga, and the tools are told it. The
// collector decodes them by the messages of OpenTelemetry alone, and once more by those that OpenTelemetry generates,
// where they are installed. A collector that is away, slow or answers nonsense holds up no saga: traces that do not fit
// the queue are dropped and counted.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { decodeTraces } from '../lib/otlp.mjs'
import { officialMessages } from '../lib/otlp_messages.mjs'
import { World, eventually, expect, expectEqual, leaves, promise, run, sleep } from '../lib/world.mjs'

const caller = { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`, tracestate: 'shop=7' }

const official = officialMessages()

class Collector {
  constructor() {
    this.spans = new Map() // span id -> span
    this.faults = []
    this.requests = 0
    this.checked = 0 // by the messages of OpenTelemetry
    this.behave = () => ({ status: 200, body: '{}' })
    this.server = createServer(async (request, response) => {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      this.requests++
      const { status, body, never, headers = {} } = this.behave()
      if (status === 200) this.take(request, Buffer.concat(chunks).toString())
      if (never) return
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(body)
    })
  }

  take({ method, url, headers }, text) {
    try {
      expectEqual(
        [method, url, headers['content-type'], headers['x-team']],
        ['POST', '/v1/traces', 'application/json', 'a b'],
        'the request'
      )
      for (const span of decodeTraces(text)) this.spans.set(span.spanId, span)
      if (official) {
        const { sent, received } = official(text)
        expectEqual(received, sent, 'the request behind the messages of OpenTelemetry')
        this.checked++
      }
    } catch (error) {
      this.faults.push(`${error.message} in ${text.slice(0, 500)}`)
    }
  }

  listen(port) {
    return new Promise((resolve) => this.server.listen(port, '127.0.0.1', resolve))
  }

  close() {
    this.server.closeAllConnections()
    return new Promise((resolve) => this.server.close(resolve))
  }

  // The span of a saga, and those of its attempts in the order of their beginning.
  of(id) {
    const [root] = [...this.spans.values()].filter(({ attributes }) => attributes['sagad.saga'] === id)
    const inside = [...this.spans.values()].filter(({ parentSpanId }) => root && parentSpanId === root.spanId)
    return { root, attempts: inside.sort((a, b) => Number(a.startTimeUnixNano - b.startTimeUnixNano)) }
  }
}

// The service that the sagas call: it remembers which trace it was told.
const told = []
let holds = false
const service = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const [, path] = request.url.split('/')
  told.push({ path, traceparent: request.headers.traceparent, tracestate: request.headers.tracestate })
  while (path === 'held' && holds) await sleep(20)
  response.writeHead(path === 'refuse' ? 422 : 200, { 'content-type': 'application/json' })
  response.end('{"id": "x"}')
})
await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${service.address().port}`

const collector = new Collector()
await collector.listen(0)
const { port } = collector.server.address()

const until = (what, holds, shown) => eventually(what, holds, { seconds: 240, gap: 20, shown })

await run(new World(), async (world) => {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${port}`
  process.env.OTEL_EXPORTER_OTLP_HEADERS = 'x-team=a%20b'
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '500'
  process.env.OTEL_SERVICE_NAME = 'orders'
  process.env.OTEL_RESOURCE_ATTRIBUTES = 'region=eu'
  await world.startPostgres()
  await world.startSagad(['--otlp-queue', '3', '--park-after', '200ms'])
  const firstArgs = world.sagadArgs
  const tool = (name, more) => ({
    name,
    effect: 'keyed',
    key: { header: 'Idempotency-Key', window: '1h' },
    http: { url: `${base}/${name}`, body: {} },
    ...more
  })
  await world.define({
    tools: [
      tool('reserve', { compensate: { tool: 'release' } }),
      { ...tool('release'), effect: 'idempotent', key: undefined },
      tool('charge', { terminal: true }),
      tool('refuse', { terminal: true }),
      tool('held', { terminal: true })
    ],
    sagas: [
      {
        name: 'buy',
        steps: [
          { id: 'a', call: 'reserve' },
          { id: 'b', call: 'charge' }
        ]
      },
      {
        name: 'fail',
        steps: [
          { id: 'a', call: 'reserve' },
          { id: 'b', call: 'refuse' }
        ]
      },
      {
        name: 'nap',
        steps: [
          { id: 'wait', sleep: '1500ms' },
          { id: 'b', call: 'charge' }
        ]
      },
      { name: 'long', steps: [{ id: 'b', call: 'held' }] },
      { name: 'many', steps: Array.from({ length: 60 }, (_, i) => ({ id: `s${i}`, call: 'reserve' })) }
    ]
  })
  const start = async (saga, headers = {}) => {
    const answer = await world.calm(() => world.api('POST', '/v1/sagas?wait=60s', { saga, input: {} }, { headers }))
    expect(answer.status === 201, `${saga} is started`, answer.text)
    return answer.json
  }
  const figure = async (name) => {
    const { text } = await world.api('GET', '/metrics')
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)[1])
  }
  const arrived = (id) =>
    until(
      `the trace of ${id}`,
      () => collector.of(id).root,
      () => collector.faults
    )

  await promise('a saga is one trace, under that of its caller, and its tools are told their own spans', async () => {
    const { id } = await start('buy', caller)
    await arrived(id)
    const { root, attempts } = collector.of(id)
    expectEqual([root.traceId, root.parentSpanId, root.traceState], ['ab'.repeat(16), 'cd'.repeat(8), 'shop=7'], 'root')
    expectEqual(
      [root.name, root.kind, root.attributes['sagad.end'], root.status],
      ['buy', 1, 'completed', undefined],
      id
    )
    expectEqual([root.resource['service.name'], root.resource.region], ['orders', 'eu'], 'the resource')
    expectEqual(
      attempts.map((span) => [span.name, span.kind, span.attributes['sagad.step'], span.attributes['sagad.outcome']]),
      [
        ['reserve', 3, 'a', 'completed'],
        ['charge', 3, 'b', 'completed']
      ],
      'the attempts'
    )
    expectEqual(
      told.map((one) => [one.traceparent, one.tracestate]),
      attempts.map((span) => [`00-${span.traceId}-${span.spanId}-01`, 'shop=7']),
      'what the tools were told'
    )
    const { text } = await world.api('GET', `/v1/sagas/${id}/log`)
    expect(text.includes(caller.traceparent), 'the log keeps the trace', text)
  })

  await promise('an undo links to what it undoes', async () => {
    const { id, status } = await start('fail')
    expectEqual(status, 'compensated', 'the end')
    await arrived(id)
    const { root, attempts } = collector.of(id)
    const [reserve, refuse, release] = attempts
    expectEqual([root.parentSpanId, root.status.code, root.attributes['sagad.end']], [undefined, 2, 'compensated'], id)
    expectEqual([refuse.status.code, refuse.attributes['http.response.status_code']], [2, 422], 'what failed')
    expectEqual([release.name, release.attributes['sagad.direction']], ['release', 'undo'], 'the undo')
    expectEqual(
      release.links.map(({ traceId, spanId }) => [traceId, spanId]),
      [[reserve.traceId, reserve.spanId]],
      'its link'
    )
    expect(
      root.events.some(({ name }) => name === 'compensation.planned'),
      'the plan is an event',
      root.events.map(({ name }) => name)
    )
  })

  await promise('a caller that does not record its trace is heeded', async () => {
    const { id } = await start('buy', { traceparent: caller.traceparent.replace(/01$/, '00') })
    const next = await start('buy')
    await arrived(next.id)
    expectEqual(collector.of(id).root, undefined, 'no trace came')
    expect(told.at(-3).traceparent.endsWith('-00'), 'the tool is told so', told.at(-3))
  })

  await promise('parks and takeovers are events', async () => {
    const { id: nap } = await start('nap')
    await arrived(nap)
    const parked = collector.of(nap).root.events.find(({ name }) => name === 'saga.parked')
    expect(parked && parked.attributes['sagad.parked_ms'] > 200, 'it was parked', collector.of(nap).root.events)
    holds = true
    const { json } = await world.api('POST', '/v1/sagas', { saga: 'long', input: {} })
    await until('the call is under way', () => told.some(({ path }) => path === 'held'))
    await world.restart()
    holds = false
    await arrived(json.id)
    const { root, attempts } = collector.of(json.id)
    expect(
      root.events.some(({ name }) => name === 'saga.taken_over'),
      'it was taken over',
      root.events.map(({ name }) => name)
    )
    expectEqual(
      attempts.map((span) => span.attributes['sagad.outcome']),
      ['retrying', 'completed'],
      'the attempt that nobody knows about, and the next one'
    )
  })

  let busy = 2
  const behaviours = {
    'answers nonsense': () => ({ status: 200, body: '<html>' }),
    'takes a part only': () => ({ status: 200, body: '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}' }),
    'has no time at first': () =>
      busy-- > 0 ? { status: 503, headers: { 'retry-after': '1' } } : { status: 200, body: '{}' }
  }
  for (const [name, behave] of Object.entries(behaviours))
    await promise(`a collector that ${name} has taken the trace`, async () => {
      const before = await figure('sagad_traces_sent_total')
      collector.behave = behave
      const { id } = await start('buy')
      await arrived(id)
      await until('it counts as sent', async () => (await figure('sagad_traces_sent_total')) > before)
    })

  await promise('a collector that refuses is not asked again', async () => {
    const before = await figure('sagad_traces_dropped_total')
    collector.behave = () => ({ status: 400, body: 'no' })
    await start('buy')
    await until('it counts as dropped', async () => (await figure('sagad_traces_dropped_total')) > before)
  })

  for (const [name, behave] of Object.entries({ 'is away': undefined, 'never answers': () => ({ never: true }) }))
    await promise(
      `a collector that ${name} holds up no saga, and what does not fit is dropped and counted`,
      async () => {
        const before = await figure('sagad_traces_dropped_total')
        if (behave) collector.behave = behave
        else await collector.close()
        const sagas = [await start('buy')]
        await until('the first one is being sent', async () => (await figure('sagad_traces_waiting')) === 0)
        do sagas.push(await start('buy'))
        while ((await figure('sagad_traces_dropped_total')) === before)
        expectEqual(new Set(sagas.map(({ status }) => status)), new Set(['completed']), 'every saga ends')
        expect((await figure('sagad_traces_waiting')) <= 3, 'no more wait than may')
        collector.behave = () => ({ status: 200, body: '{}' })
        if (!behave) await collector.listen(port)
        await arrived(sagas[0].id) // sent again as soon as there is somebody
        await until('nothing waits', async () => (await figure('sagad_traces_waiting')) === 0)
      }
    )

  await promise('settings beat the variables, and what is wrong is refused before anything starts', () => {
    const checked = (args) => world.sagadOnce([...args, '--database', world.dsn, '--check-config'])
    expectEqual(checked(['--otlp-endpoint', 'http://c.example:4318']).status, 0, 'a good one')
    const refused = checked(['--otlp-endpoint', 'ftp://c.example'])
    expect(refused.status === 2 && refused.stderr.includes('--otlp-endpoint'), 'a wrong one', refused.stderr)
    const secret = checked(['--otlp-endpoint', 'http://c.example', '--otlp-headers', 'hush'])
    expect(secret.status === 2 && !secret.stderr.includes('hush'), 'no secret is printed', secret.stderr)
  })

  await promise('what waits when the engine leaves is sent before', async () => {
    const { id } = await start('buy')
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    expect(collector.of(id).root, 'it has come')
    world.launchSagad(world.sagadArgs)
    await world.ready()
  })

  await promise('the guard of outgoing calls holds for the collector too', async () => {
    await world.kill9()
    const denied = ['--otlp-endpoint', `http://127.0.0.2:${port}`, '--egress-deny', '127.0.0.2/32']
    world.launchSagad([...world.sagadArgs, ...denied])
    await world.ready()
    await start('buy')
    await until('it is told', () => /traces_not_taken.*egress/.test(readFileSync(world.log('sagad'), 'utf8')))
  })

  await promise('a sampler records a part of the sagas, or what their callers record', async () => {
    await world.kill9()
    process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '60000' // this process is the collector, and decodes hundreds twice
    const engine = async (...more) => {
      world.launchSagad([...firstArgs.map((arg) => (arg === '3' ? '1000' : arg)), ...more])
      await world.ready()
    }
    const figures = async () => [await figure('sagad_traces_sent_total'), await figure('sagad_traces_dropped_total')]
    await engine('--otlp-sampler', 'parentbased_traceidratio', '--otlp-sampler-arg', '0.5')
    told.length = 0
    const count = 40
    const sagas = []
    while (sagas.length < count) sagas.push(await start('buy'))
    const recorded = told.filter(({ traceparent }) => traceparent.endsWith('-01')).length / 2
    expect(recorded > 0 && recorded < count, `${recorded} of ${count} are recorded`)
    await until('they are sent, and no other', async () => (await figures())[0] === recorded, figures)
    const came = sagas.filter(({ id }) => collector.of(id).root).length
    expectEqual([came, await figures()], [recorded, [recorded, 0]], 'what came, and what was dropped')
    const { id } = await start('buy', caller)
    await arrived(id)

    await world.kill9()
    process.env.OTEL_TRACES_SAMPLER = 'always_off'
    await engine()
    told.length = 0
    await start('buy', caller)
    expect(
      told.every(({ traceparent }) => traceparent.endsWith('-00')),
      'nothing is recorded',
      told
    )
    await world.kill9()
    process.env.OTEL_TRACES_SAMPLER = 'jaeger_remote'
    await engine()
    const last = await start('buy')
    await arrived(last.id)
    expect(/OTEL_TRACES_SAMPLER/.test(readFileSync(world.log('sagad'), 'utf8')), 'a strange one is told and ignored')
    delete process.env.OTEL_TRACES_SAMPLER
    const { status, stderr } = world.sagadOnce([
      ...['--otlp-endpoint', 'http://c.example', '--otlp-sampler', 'half', '--database', world.dsn, '--check-config']
    ])
    expect(status === 2 && stderr.includes('--otlp-sampler'), 'a strange setting is refused', stderr)
  })

  await promise('a trace whose log is long, or of many turns, comes as whole as the others', async () => {
    const { id } = await start('many')
    await arrived(id)
    expectEqual(collector.of(id).attempts.length, 60, 'its attempts')
  })

  await promise('many that end at once arrive, each once', async () => {
    const before = await figure('sagad_traces_sent_total')
    const sagas = await Promise.all(Array.from({ length: 300 }, () => start('buy')))
    const figures = async () => [await figure('sagad_traces_sent_total'), await figure('sagad_traces_dropped_total')]
    await until('they are sent', async () => (await figures())[0] === before + sagas.length, figures)
    expectEqual(sagas.filter(({ id }) => !collector.of(id).root).length, 0, 'sagas without a trace')
    expectEqual(await figure('sagad_traces_dropped_total'), 0, 'dropped')
  })

  await promise('more than one request holds arrives, and what ends afterwards', async () => {
    const sagas = await Promise.all(Array.from({ length: 20 }, () => start('many')))
    sagas.push(await start('buy'))
    for (const { id } of sagas) await arrived(id)
    expectEqual(
      sagas.slice(0, 20).map(({ id }) => collector.of(id).attempts.length),
      Array(20).fill(60),
      'attempts'
    )
  })

  await promise('every request was right', () => {
    expectEqual(collector.faults, [], 'faults')
    expect(!official || collector.checked > 0, 'the messages of OpenTelemetry say so as well')
  })
  await leaves(world)
})
