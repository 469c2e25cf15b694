// Quotas: what one namespace asks for beyond its own is refused with 429 and when to come again, by both engines, for
// starts, elements of a batch, open sagas and calls; another namespace gets all that it asks for meanwhile. A bulk job
// that meets the quota comes again by itself, and does each of its items once.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const document = { sagas: [{ name: 'wait', steps: [{ id: 'go', signal: { name: 'go', timeout: '1h' } }] }] }
const quotas = {
  quotas: [
    { starts_per_second: 2, calls_per_second: 3 },
    { namespace: 'honest', starts_per_second: 100000 },
    { namespace: 'mends', starts_per_second: 5 },
    { namespace: 'tight', definitions: 2, sagas_in_flight: 3, payload_bytes_per_day: 2000 }
  ]
}

await run(new World(), async (world) => {
  await world.startPostgres()
  const write = (name, value) => {
    const file = join(world.directory, name)
    writeFileSync(file, JSON.stringify(value), { mode: 0o600 })
    return file
  }
  const tokens = write('tokens.json', {
    tokens: ['greedy', 'honest', 'mends', 'tight', '*'].map((namespace) => ({
      name: namespace,
      role: 'admin',
      namespace,
      sha256: createHash('sha256').update(`secret-of-${namespace}`).digest('hex')
    }))
  })
  await world.startEngines(1, ['--tokens', tokens, '--quotas', write('quotas.json', quotas)])
  world.port = world.engines[0].port
  const as = (name, method, path, body, headers = {}) =>
    world.api(method, path, body, { headers: { authorization: `Bearer secret-of-${name}`, ...headers } })
  const many = (count, ask) => Promise.all(Array.from({ length: count }, (_, i) => ask(i)))
  const count = (answers, status) => answers.filter((answer) => answer.status === status).length
  for (const name of ['greedy', 'honest', 'mends', 'tight']) {
    expectEqual((await as(name, 'POST', '/v1/definitions', document)).status, 200, `${name} has a definition`)
  }

  // What is taken of a flood that lasts so long: a second's worth, and what came back since.
  const most = (per_second, began) => per_second + Math.floor(((Date.now() - began) / 1000) * per_second) + 1

  await promise('a flood of starts is refused beyond the quota, another namespace has all of its own', async () => {
    const start = (name) => (i) => as(name, 'POST', '/v1/sagas', { saga: 'wait', id: `${name}-${i}`, input: {} })
    const began = Date.now()
    const [greedy, honest] = await Promise.all([many(40, start('greedy')), many(40, start('honest'))])
    expectEqual(count(honest, 201), 40, 'the honest namespace starts all')
    const taken = count(greedy, 201)
    expect(taken >= 2 && taken <= most(2, began), `the greedy one starts ${taken}`)
    expectEqual(count(greedy, 429), 40 - taken, 'the rest is refused')
    const refusal = greedy.find((answer) => answer.status === 429)
    expectEqual(refusal.json.type, 'urn:sagad:problem:quota-exceeded', 'with its name')
    expectEqual(refusal.headers.get('retry-after'), '1', 'and when to come again')
  })

  await promise('who comes again as told is taken in', async () => {
    const again = async () => {
      const answer = await as('greedy', 'POST', '/v1/sagas', { saga: 'wait', id: 'again', input: {} })
      if (answer.status !== 429) return answer
      await sleep(Number(answer.headers.get('retry-after')) * 1000)
      return again()
    }
    expectEqual((await again()).status, 201, 'the start is taken in')
  })

  await promise('elements of a batch and open sagas count, too', async () => {
    const began = Date.now()
    const elements = Array.from({ length: 200 }, (_, i) => ({ saga: 'wait', id: `batch-${i}`, input: {} }))
    const batch = await as('greedy', 'POST', '/v1/sagas/batch', elements)
    const opened = await many(10, (i) => as('greedy', 'POST', '/v1/sagas', { open: true, id: `open-${i}` }))
    const taken = batch.json.items.filter((result) => result.status === 201).length + count(opened, 201)
    expect(taken <= most(2, began), `${taken} are taken in`)
    expect(
      batch.json.items.some((result) => result.status === 429 && result.retry_after === 1),
      'an element that is refused says so'
    )
  })

  await promise('calls have a quota of their own', async () => {
    const began = Date.now()
    const answers = await many(20, (i) =>
      as('greedy', 'POST', '/v1/operations', { run: `r${i}`, tool: 'none', args: {} }, { 'idempotency-key': `k${i}` })
    )
    const refused = count(answers, 429)
    expect(refused >= 20 - most(3, began), `${refused} of 20 calls are refused`)
    expectEqual(count(answers, 404), 20 - refused, 'the others are looked at')
  })

  await promise(
    'definitions, sagas in flight and bytes of payload a day have quotas, and say when to come again',
    async () => {
      const define = (...names) =>
        as('tight', 'POST', '/v1/definitions', { sagas: names.map((name) => ({ ...document.sagas[0], name })) })
      const refused = async (answer, words, what) => {
        expect(answer.status === 429 && answer.json.detail.includes(words), what, JSON.stringify(answer.json))
        return Number(answer.headers.get('retry-after'))
      }
      expectEqual(
        await refused(await define('second', 'third'), '2 definitions', 'two more'),
        60,
        'which do not go away'
      )
      expectEqual((await define('wait', 'second')).status, 200, 'one more, and one that is there')
      await refused(await define('third'), '2 definitions', 'a third one')

      const elements = Array.from({ length: 20 }, (_, i) => ({ saga: 'wait', id: `t-${i}` }))
      const { items } = (await as('tight', 'POST', '/v1/sagas/batch', elements)).json
      expect(
        items.slice(0, 3).every((item) => item.status === 201),
        'three sagas start',
        JSON.stringify(items)
      )
      const over = items.find((item) => item.status === 429)
      expectEqual(over?.retry_after, 1, 'more at a time are refused, and sagas end at any time')

      const call = (i) => as('tight', 'POST', '/v1/operations', { run: `r${i}`, tool: 'none', args: 'x'.repeat(1500) })
      expectEqual((await call(1)).status, 404, 'bytes for one call')
      const seconds = await refused(await call(2), '2000 bytes of payload a day', 'bytes for two')
      expect(seconds > 3600 && seconds < 86400, 'they come back within the day', seconds)
      expectEqual(
        count(await many(5, (i) => as('honest', 'POST', '/v1/operations', { run: `r${i}`, tool: 'none' })), 404),
        5,
        'others'
      )
    }
  )

  await promise('a bulk job of reruns meets the quota, and starts each saga once all the same', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `m-${i}`)
    const of = async (query) => (await as('mends', 'GET', `/v1/sagas?limit=500&${query}`)).json.items
    const until = (what, holds) => eventually(what, holds, { seconds: 240 })
    for (let left = names; left.length > 0;) {
      const elements = left.map((id) => ({ saga: 'wait', id, input: {} }))
      const { items } = (await as('mends', 'POST', '/v1/sagas/batch', elements)).json
      left = left.filter((_, i) => items[i].status === 429)
      if (left.length > 0) await sleep(200)
    }
    for (const { id } of await of('saga=wait')) {
      await as('mends', 'POST', `/v1/sagas/${id}/abort`, { note: 'to be started again' })
    }
    await until('all have ended', async () => (await of('status=compensated')).length === names.length)

    const refusals = async () =>
      Number(/sagad_refused_over_quota_total (\d+)/.exec((await as('*', 'GET', '/metrics')).text)[1])
    const before = await refusals()
    const frozen = { action: 'rerun', filter: { saga: 'wait', status: 'compensated' }, note: 'again', preview: true }
    const job = (await as('mends', 'POST', '/v1/bulk', frozen)).json
    expectEqual(job.count, names.length, 'what the job is about')
    expectEqual((await as('mends', 'POST', `/v1/bulk/${job.bulk}/run`, {})).status, 200, 'it is run')
    await until('the job has ended', async () => {
      const { state, outcomes } = (await as('mends', 'GET', `/v1/bulk/${job.bulk}`)).json
      return state === 'done' && outcomes.done === names.length
    })
    expect((await refusals()) > before, 'it has met the quota')
    const again = (await of('status=running,waiting')).map((saga) => saga.business_id)
    expectEqual(again.sort(), names.map((id) => `${id}~2`).sort(), 'each is started once')
  })
})
