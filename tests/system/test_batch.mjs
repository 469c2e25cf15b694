// Many starts in one request. They share commits, each makes one saga whatever dies meanwhile, and engines pass on
// starts for shards that they do not own.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 4 : 10
const definitions = {
  tools: [
    { name: 'batch.echo', builtin: { do: 'echo' }, effect: 'idempotent', terminal: true, retry: { max_attempts: 100 } },
    { name: 'batch.say', builtin: { do: 'echo' }, effect: 'read' }
  ],
  sagas: [
    { name: 'short', steps: [{ id: 'one', call: 'batch.echo', with: { n: '${ .input.n }' } }] },
    { name: 'waits', steps: [{ id: 'one', signal: { name: 'go', timeout: '10m' } }] },
    {
      name: 'large',
      steps: Array.from({ length: 8 }, (_, i) => ({
        id: `s${i}`,
        call: 'batch.say',
        with: Object.fromEntries([...'abcdef'].map((name) => [name, '${ .input.text }']))
      }))
    }
  ]
}

class Batches extends World {
  at(port, starts, options = {}) {
    this.port = port // api() reads it before its first await
    return this.api('POST', '/v1/sagas/batch', starts, { seconds: 60, ...options })
  }

  async metric(name) {
    const { text } = await this.api('GET', '/metrics')
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(name + ' '))
        ?.split(' ')[1]
    )
  }

  rows(prefix) {
    return this.sql(`select count(*), count(distinct business_id) from sagad.saga where business_id like '${prefix}%'`)
  }
}

const starts = (saga, prefix, count) =>
  Array.from({ length: count }, (_, n) => ({ saga, id: `${prefix}-${n}`, input: { n } }))
const statuses = (answer) => {
  expectEqual(answer.status, 200, `a batch: ${answer.text.slice(0, 300)}`)
  return [...new Set(answer.json.items.map((item) => item.status))].sort()
}

// Repeats the starts that are not acknowledged yet, as a careful client does. Returns the ids in the order of the
// batch.
async function insist(world, port, batch) {
  const ids = new Map()
  for (const end = Date.now() + 120000; Date.now() < end; await sleep(50)) {
    const left = batch.filter((start) => !ids.has(start.id))
    const answer = await world.at(port, left, { seconds: 20 }).catch(() => undefined)
    if (!answer || answer.status === 503) continue
    expectEqual(answer.status, 200, answer.text.slice(0, 300))
    expectEqual(answer.json.items.length, left.length, 'results')
    const odd = answer.json.items.find((item) => ![200, 201, 503].includes(item.status))
    expect(!odd, 'a start is refused', odd)
    for (const [i, item] of answer.json.items.entries()) if (item.status < 300) ids.set(left[i].id, item.body.id)
    if (ids.size === batch.length) return batch.map((start) => ids.get(start.id))
  }
  throw new Error(`of ${batch.length} starts ${ids.size} are acknowledged`)
}

// Sends the same batch until the engine is not too busy for any part of it.
async function calm(world, port, batch) {
  for (let tries = 0; ; tries++, await sleep(500)) {
    const answer = await world.at(port, batch)
    if (tries === 60 || !answer.json?.items?.some((item) => item.status === 503)) return answer
  }
}

await run(new Batches(), async (world) => {
  const random = randomFrom(chooseSeed())
  await world.startPostgres()
  await world.startSagad()
  await world.define(definitions)

  await promise('a thousand starts are a few commits, and each is there when the answer comes', async () => {
    const before = await world.metric('sagad_batches_total')
    const batch = starts('waits', 'few', 1000)
    const first = await insist(world, world.port, batch)
    expectEqual(world.rows('few-'), '1000|1000', 'sagas')
    const commits = (await world.metric('sagad_batches_total')) - before
    expect(commits <= 25, `${commits} commits`) // the starts take 2 or 3 commits, unless the machine is slow
    console.log(`# ${commits} commits`)
    const again = await calm(world, world.port, batch)
    expectEqual(statuses(again), [200], 'the codes of a repeat')
    expectEqual(
      again.json.items.map((item) => item.body.id),
      first,
      'the sagas of a repeat'
    )
    expectEqual(world.rows('few-'), '1000|1000', 'sagas after it')
  })

  await promise('a fault of one start harms no other, also where the engine finds it', async () => {
    const answer = await calm(world, world.port, [
      { saga: 'short', input: { n: 1 } },
      { saga: 'none' },
      7,
      { saga: 'short', id: 'few-0' },
      { open: true }
    ])
    expectEqual(
      answer.json?.items?.map((item) => item.status),
      [201, 404, 422, answer.json?.items?.[3].status === 200 ? 200 : 201, 201],
      answer.text
    )
  })

  await promise('an answer has an end, however large the sagas are that are started once more', async () => {
    const text = 'x'.repeat(30000)
    const batch = Array.from({ length: 30 }, (_, n) => ({ saga: 'large', id: `large-${n % 3}`, input: { text } }))
    const ids = []
    for (let n = 0; n < batch.length; n += 3) ids.push(...(await insist(world, world.port, batch.slice(n, n + 3))))
    for (const id of ids.slice(0, 3)) expectEqual((await world.until(id)).status, 'completed', 'the saga')
    const again = await calm(world, world.port, batch)
    expectEqual(statuses(again), [200], 'the codes of the repeat')
    const short = again.json.items.filter((item) => Object.keys(item.body).join() === 'id').length
    expect(short > 0 && short < 30, `${short} of 30 with the id alone, in ${again.text.length} bytes`)
    expect(again.text.length < 48 << 20, `${again.text.length} bytes`)
    expectEqual(
      again.json.items.map((item) => item.body.id),
      ids,
      'the ids'
    )
  })

  await promise(
    `SIGKILL ${kills} times while batches are sent: each start is one saga, and keeps its id`,
    async () => {
      const clients = 4
      const acknowledged = new Map()
      let stopping = false
      let changed = 0
      const client = async (number) => {
        for (let round = 0; !stopping; round++) {
          const batch = starts('short', `kill-${number}-${round}`, 40 + Math.floor(random() * 300))
          const ids = await insist(world, world.port, batch)
          for (const [i, id] of ids.entries()) acknowledged.set(batch[i].id, id)
          if (round > 0 && random() < 0.3) {
            // what was acknowledged before the kills is repeated behind them
            const old = starts('short', `kill-${number}-${round - 1}`, 40)
            for (const [i, id] of (await insist(world, world.port, old)).entries())
              changed += id !== acknowledged.get(old[i].id)
          }
        }
      }
      const all = Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
      for (let kill = 0; kill < kills; kill++) {
        await sleep(100 + random() * 500)
        await world.restart()
      }
      stopping = true
      await all
      expectEqual(changed, 0, 'ids that changed')
      expectEqual(world.rows('kill-'), `${acknowledged.size}|${acknowledged.size}`, 'sagas')
      const found = new Map(
        world
          .sql("select business_id, id from sagad.saga where business_id like 'kill-%'")
          .split('\n')
          .map((line) => line.split('|'))
      )
      for (const [business, id] of acknowledged) expectEqual(found.get(business), id, `the saga of ${business}`)
      console.log(`# ${acknowledged.size} starts acknowledged`)
      for (const end = Date.now() + 60000; ; await sleep(200)) {
        const left = world.sql(
          "select shard, id, status, created_at, updated_at from sagad.saga where business_id like 'kill-%' and " +
            "status <> 'completed' limit 5"
        )
        if (left === '') break
        if (Date.now() < end) continue
        const first = left.split('|')[1]
        expect(
          false,
          'sagas do not end',
          `${left} ${(await world.api('GET', `/v1/sagas/${first}`)).text} ` +
            `${(await world.api('GET', `/v1/sagas/${first}/log`)).text}`
        )
      }
    },
    300
  )

  await promise(
    'sagactl start --batch goes on over kills, and each line is one saga',
    async () => {
      const path = join(world.directory, 'lines.jsonl')
      writeFileSync(
        path,
        starts('short', 'line', 4000)
          .map((start) => JSON.stringify(start) + '\n')
          .join('')
      )
      const child = spawn(world.sagactlPath, ['start', '--batch', path, '--patience', '60s'], {
        env: { ...process.env, SAGACTL_SERVER: `http://127.0.0.1:${world.port}` }
      })
      let said = ''
      let lines = 0
      child.stdout.on('data', (data) => {
        lines += String(data).split('\n').length - 1
      })
      child.stderr.on('data', (data) => {
        said += data
      })
      const ended = new Promise((resolve) => child.once('exit', resolve))
      for (let kill = 0; kill < 3; kill++) {
        await sleep(50 + random() * 250)
        await world.restart()
      }
      expectEqual(await ended, 0, `the exit code: ${said}`)
      expectEqual(lines, 4000, 'lines')
      expectEqual(world.rows('line-'), '4000|4000', 'sagas')
    },
    200
  )

  world.sagad.kill('SIGTERM')
  expectEqual((await world.sagad.ended).code, 0, 'exit code')

  await promise(
    'with two engines the starts of the other one go there, and both know the same sagas',
    async () => {
      await world.startEngines(2)
      const [one, other] = world.engines.map((engine) => engine.port)
      for (const end = Date.now() + 30000; ; await sleep(200)) {
        // until each has its share
        const owned = world.sql('select count(distinct owner) from sagad.shard where owner is not null')
        if (owned === '2') break
        expect(Date.now() < end, `${owned} engines own shards`)
      }
      const batch = starts('waits', 'two', 600)
      const ids = await insist(world, one, batch)
      expectEqual(await insist(world, other, batch), ids, 'through the other one')
      expectEqual(world.rows('two-'), '600|600', 'sagas')
      const unnamed = await calm(
        world,
        other,
        Array.from({ length: 100 }, () => ({ saga: 'short', input: { n: 1 } }))
      )
      expectEqual(statuses(unnamed), [201], 'starts without ids')
    },
    120
  )
})
