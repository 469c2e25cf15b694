// Waiting is free. Sagas that wait for a signal, a time or a lock leave the memory of the engine, cost PostgreSQL
// nothing, and are there at once when an input comes for them. SAGAD_TEST_PARKED says how many there are (100000 in the
// measurement of README.md's "Limits").
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { World, expect, expectEqual, leaves, promise, quick, run, sleep } from '../lib/world.mjs'
import { finish, languageTools, replayAll, signal, take } from '../lib/language.mjs'

const count = Number(process.env.SAGAD_TEST_PARKED ?? (quick ? 1000 : 10000))
const idleSeconds = quick ? 5 : 8
const parkAfterMs = 1000

class Parked extends World {
  constructor() {
    super()
    this.agent = new Agent({ keepAlive: true, maxSockets: 64 })
  }

  // Sends many starts; node's fetch is too slow for a hundred thousand of them.
  post(path, body) {
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(body)
      const sent = request(
        {
          agent: this.agent,
          host: '127.0.0.1',
          port: this.port,
          path,
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
        },
        (answer) => {
          let got = ''
          answer.setEncoding('utf8')
          answer.on('data', (part) => {
            got += part
          })
          answer.on('end', () => resolve({ status: answer.statusCode, text: got }))
        }
      )
      sent.on('error', reject)
      sent.end(text)
    })
  }

  // Returns the memory of the serving process in bytes.
  memory() {
    const status = readFileSync(`/proc/${this.sagadPid()}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024
  }

  // The launched program may be a wrapper that became sagad by exec, with the same process id.
  sagadPid() {
    return this.sagad.pid
  }

  metric(text, name) {
    return text
      .split('\n')
      .filter((line) => line.startsWith(name) && /^[a-z_]+(\{[^}]*\})? /.test(line))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  async inMemory() {
    const text = (await this.api('GET', '/metrics')).text
    return this.metric(text, 'sagad_sagas_loaded')
  }

  // Returns PostgreSQL's work for the idle engine in a second: transactions, and rows read of each table. Sessions
  // report their statistics with a delay.
  async idleRate() {
    const read = () => {
      const lines = this
        .sql(`select 'transactions', xact_commit + xact_rollback from pg_stat_database where datname = 'postgres'
        union all select relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where
        schemaname = 'sagad'`)
      return Object.fromEntries(
        lines
          .split('\n')
          .map((line) => line.split('|'))
          .map(([name, value]) => [name, Number(value)])
      )
    }
    await sleep(12000)
    const before = read()
    await sleep(idleSeconds * 1000)
    const after = read()
    const rate = Object.fromEntries(
      Object.keys(after).map((name) => [
        name,
        Math.round((10 * (after[name] - (before[name] ?? 0))) / idleSeconds) / 10
      ])
    )
    const { transactions, ...rows } = rate
    const read_most = Object.entries(rows)
      .filter(([, value]) => value > 0)
      .sort((x, y) => y[1] - x[1])
      .map(([name, value]) => `${name} ${value}`)
    return {
      transactions,
      rows: Object.values(rows).reduce((sum, value) => sum + value, 0),
      tables: read_most.join(', ')
    }
  }
}

const megabytes = (bytes) => Math.round(bytes / 1e5) / 10

await run(new Parked(), async (world) => {
  // Without autovacuum, whose work would show when an idle engine should do nothing.
  await Promise.all([world.startPostgres(['-c', 'autovacuum=off']), world.startShop(['--no-sync'])])
  // Freed memory that the sanitizer keeps back would hide what is measured.
  process.env.ASAN_OPTIONS = [process.env.ASAN_OPTIONS, 'quarantine_size_mb=1', 'malloc_context_size=2']
    .filter(Boolean)
    .join(':')
  await world.startSagad(['--park-after', `${parkAfterMs}ms`])
  await world.define({
    tools: languageTools(`http://127.0.0.1:${world.shopPort}`),
    sagas: [
      {
        name: 'waits',
        steps: [
          { id: 'go', signal: { name: 'go', timeout: '30d' } },
          { id: 'say', call: 'say', with: { n: '${ .input.n }' } }
        ],
        output: '${ .steps.go.result }'
      },
      { name: 'sleeps', steps: [{ id: 'rest', sleep: '30d' }] },
      { name: 'asks', steps: [{ id: 'ask', approve: { show: '${ .input }', timeout: '30d' } }] },
      { name: 'held', steps: [{ id: 'say', call: 'say', with: { n: '${ .input.n }' } }] },
      { name: 'locked', locks: ['the one lock'], steps: [{ id: 'go', signal: { name: 'go' } }] },
      { name: 'wakes', steps: [{ id: 'rest', sleep: '${ .input.at }' }, take('act', '${ .input.name }')] }
    ]
  })
  const kinds = ['waits', 'waits', 'held', 'sleeps', 'asks']
  const ids = { waits: [], sleeps: [], asks: [], held: [], locked: [] }
  const startMany = async (saga, number, first = 0) => {
    let next = first
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        while (next < first + number) {
          const n = next++
          let told
          do {
            if (told) await sleep(50)
            told = await world.post('/v1/sagas', {
              saga: saga ?? kinds[n % kinds.length],
              input: { n, note: 'x'.repeat(200) }
            })
          } while (told.status === 503)
          expect(told.status === 201, 'a start', told.text)
          const { id, saga: name } = JSON.parse(told.text)
          ids[name].push(id)
        }
      })
    )
  }

  const hold = (await world.api('POST', '/v1/holds', { saga: 'held', note: 'say nothing', pace: 500 })).json
  let empty
  let rateEmpty
  await promise('measured first: the engine without any saga', async () => {
    await startMany('waits', 500) // warms up what an engine that has worked keeps: connections, buffers, statements
    for (const id of ids.waits.splice(0)) await signal(world, id, 'go', null)
    await sleep(parkAfterMs + 1500)
    rateEmpty = await world.idleRate()
    empty = world.memory()
    console.log(
      `# idle without sagas: ${rateEmpty.transactions.toFixed(1)} transactions/s, ${rateEmpty.rows.toFixed(0)} ` +
        `rows/s (${rateEmpty.tables}), ${megabytes(empty)} MB`
    )
  })
  await promise(
    `${count} sagas wait for signals, times, people and a hold, and leave memory`,
    async () => {
      const begun = Date.now()
      await startMany(undefined, count)
      const started = (Date.now() - begun) / 1000
      for (const end = Date.now() + 120000; ; await sleep(200)) {
        const parked = Number(world.sql("select count(*) from sagad.due where what = 'parked'"))
        if (parked >= count && (await world.inMemory()) < 100) break
        expect(Date.now() < end, 'they leave memory', { parked, memory: await world.inMemory() })
      }
      console.log(
        `# ${count} started in ${started.toFixed(1)} s, parked after ${((Date.now() - begun) / 1000).toFixed(1)} s`
      )
      const stats = (await world.api('GET', '/v1/stats')).json
      expectEqual(stats.sagas.waiting + stats.sagas.running, count, 'the sagas that the stats count')
      expect(
        Math.abs(Date.now() - 24 * 3600 * 1000 - Date.parse(stats.ended_since)) < 60000,
        'those that ended are of a day',
        stats.ended_since
      )
    },
    900
  )
  await promise('parked sagas hold no memory beyond a fixed bound', async () => {
    const used = world.memory()
    // Memory is given back after a wave; the sanitizer's allocator keeps the most that the wave needed. Neither grows
    // with the number of sagas.
    const sanitized = readFileSync(`/proc/${world.sagadPid()}/maps`, 'utf8').includes('libasan')
    const bound = sanitized ? 128e6 : 32e6
    console.log(`# with ${count} parked: ${megabytes(used)} MB, ${megabytes(used - empty)} MB more than empty`)
    expect(
      used - empty < bound,
      `less than ${megabytes(bound)} MB more than the empty engine`,
      `${megabytes(empty)} MB, then ${megabytes(used)} MB`
    )
  })
  const isParked = async (id) => {
    const rows = () => world.sql(`select count(*) from sagad.due where saga = '${id}' and what = 'parked'`)
    for (const end = Date.now() + 32000; rows() !== '1'; await sleep(100)) expect(Date.now() < end, 'it is parked')
  }
  // It sleeps while the idle engine is measured, and its cost is too small to be seen.
  const bird = { at: Date.now() + 30000 } // a saga that is due within 10 s is not parked
  await promise('a saga that will be due soon is parked', async () => {
    bird.id = await world.start('wakes', { name: 'early bird', at: new Date(bird.at).toISOString() })
    await isParked(bird.id)
  })
  await promise('parked sagas cause no queries: an idle engine does what it does without them', async () => {
    const rate = await world.idleRate()
    console.log(
      `# idle with ${count} parked: ${rate.transactions.toFixed(1)} transactions/s, ${rate.rows.toFixed(0)} ` +
        `rows/s (${rate.tables})`
    )
    // What is done once a minute, by sagad or by the vacuum of PostgreSQL, may fall into one of the two only.
    // One question a minute for each saga would be seventeen a second.
    expect(rate.transactions <= rateEmpty.transactions * 1.2 + 4, 'transactions a second', { rateEmpty, rate })
    expect(rate.rows <= rateEmpty.rows * 1.2 + 100, 'rows a second', { rateEmpty, rate })
  })
  const latencies = async (number) => {
    const took = []
    for (let i = 0; i < number; i++) {
      const id = ids.waits.splice(Math.floor(Math.random() * ids.waits.length), 1)[0]
      const before = process.hrtime.bigint()
      const told = await signal(world, id, 'go', { i })
      expect(told.status < 300, 'the answer to the signal', told.text)
      const saga = (await world.api('GET', `/v1/sagas/${id}?wait=5s`)).json
      took.push(Number(process.hrtime.bigint() - before) / 1e6)
      expectEqual([saga.status, saga.output], ['completed', { i }], 'the saga')
    }
    return took.sort((a, b) => a - b)
  }
  const signalMs = process.env.SAGAD_TEST_STRICT === '1' ? 100 : 1000
  await promise(
    `a signal to one of them is acted on within ${signalMs} ms: received, the next step called, the saga complete`,
    async () => {
      const took = await latencies(50)
      console.log(
        `# signal to completion of a parked saga: median ${took[25].toFixed(1)} ms, 90th ${took[45].toFixed(1)} ` +
          `ms, worst ${took[49].toFixed(1)} ms`
      )
      expect(took[25] < signalMs, 'the median', took)
    }
  )
  await promise('a sleeping saga wakes on time; an approval of a parked saga is acted on', async () => {
    const asked = (await world.api('GET', `/v1/approvals?status=open&limit=1`)).json.items[0]
    expectEqual(
      (await world.api('POST', `/v1/approvals/${asked.n}`, { decision: 'approve', note: 'x' })).status,
      200,
      'the decision'
    )
    await finish(world, asked.saga, 'completed')
    const saga = await finish(world, bird.id, 'completed')
    const late = Date.parse(saga.steps[0].ended_at) - bird.at
    console.log(`# a sleep was over ${late} ms after its time`)
    expect(late >= 0 && late < 5000, 'how late it was', late)
  })
  await promise('when the hold is released those that waited for it go on', async () => {
    const [first] = ids.held
    expectEqual((await world.saga(first)).steps[0].held.n, hold.n, 'what holds it')
    expectEqual((await world.api('POST', `/v1/holds/${hold.n}/release`, { note: 'x' })).status, 200, 'the release')
    const begun = Date.now()
    const done = () => Number(world.sql("select count(*) from sagad.saga where name = 'held' and status = 'completed'"))
    for (const end = begun + 240000; done() < ids.held.length; await sleep(100)) expect(Date.now() < end, 'they go on')
    const seconds = ((Date.now() - begun) / 1000).toFixed(1)
    console.log(`# ${ids.held.length} that were held have completed ${seconds} s after the release`)
  })
  await promise('sagas that stand in line for a lock are parked too, and each gets its turn', async () => {
    await startMany('locked', 20, 10000000)
    await sleep(parkAfterMs + 1500)
    expect((await world.inMemory()) < 60, 'they have left memory')
    const left = new Set(ids.locked)
    while (left.size > 0) {
      let next
      for (const end = Date.now() + 20000; !next; await sleep(20)) {
        for (const id of left) if ((await world.saga(id)).steps[0].status === 'waiting') next = id
        expect(Date.now() < end, 'somebody holds the lock')
      }
      await signal(world, next, 'go', null)
      await finish(world, next, 'completed')
      left.delete(next)
    }
  })
  await promise('an engine that is killed and started again is ready at once: it loads none of them', async () => {
    await world.kill9()
    const begun = Date.now()
    world.launchSagad(world.sagadArgs)
    await world.ready()
    console.log(`# ready ${Date.now() - begun} ms after the start, with ${await world.inMemory()} sagas in memory`)
    expect((await world.inMemory()) < 200, 'sagas in memory', await world.inMemory())
    const took = await latencies(10)
    console.log(`# signal to completion after that: median ${took[5].toFixed(1)} ms`)
    const gone = ids.sleeps[0]
    expect(
      [200, 202].includes((await world.api('POST', `/v1/sagas/${gone}/abort`, { note: 'x' })).status),
      'the answer to abort'
    )
    await finish(world, gone, 'compensated')
  })
  await promise('over a crash of PostgreSQL they are there as before', async () => {
    await world.killPostgres()
    await world.startPostgres()
    await world.ready()
    await latencies(5)
    const at = Date.now() + 20000
    const id = await world.start('wakes', { name: 'late bird', at: new Date(at).toISOString() })
    await isParked(id)
    await world.killPostgres()
    await world.startPostgres()
    await world.ready()
    await finish(world, id, 'completed')
  })
  if (count <= 20000) await promise('every log folds to the stored state', () => replayAll(world), 600)
  await leaves(world)
})
