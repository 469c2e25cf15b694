// Does the time of an answer tell that another namespace has something? For each kind of thing a token asks for what
// does not exist and for what exists in another namespace, one after the other in random order, over one connection;
// the medians must differ by less than 5 %. Asked for by hand:
//
//     SAGAD=build/release/sagad SAGACTL=build/release/tools/sagactl/sagactl REQUESTS=10000 \
//       node tests/bench/strangers.mjs
//
// Both are 404. The two halves of all requests for what does not exist are held against each other, too: what they
// differ by is what this machine does by chance.
import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, promise, run, sleep } from '../lib/world.mjs'

const requests = Number(process.env.REQUESTS ?? 10000)
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

process.env.SAGAD_SHOP ??= process.env.SAGAD // no shop is needed
await run(new World(), async (world) => {
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  const tokens = join(world.directory, 'tokens.json')
  const rows = ['own', 'other'].map((name) => ({ name, namespace: name, role: 'admin', sha256: sha256(name) }))
  writeFileSync(tokens, JSON.stringify({ tokens: rows }), { mode: 0o600 })
  await world.startPostgres()
  await world.startSagad(['--tokens', tokens, '--park-after', '1s', '--log-level', 'warn'])
  const as = (name, method, path, body) =>
    world.api(method, path, body, { headers: { authorization: `Bearer ${name}` } })
  const echo = { name: 'echo', builtin: { do: 'echo' }, effect: 'idempotent', terminal: true }
  const document = {
    tools: [echo],
    sagas: [
      { name: 'ends', steps: [{ id: 'a', call: 'echo', with: {} }] },
      { name: 'waits', steps: [{ id: 'a', signal: { name: 'go', timeout: '1h' } }] }
    ]
  }
  const { status, text } = await as('other', 'POST', '/v1/definitions', document)
  expect(status === 200, 'definitions', text)
  const started = async (saga, i) =>
    (await as('other', 'POST', '/v1/sagas?wait=5s', { saga, id: `${saga}-${i}`, input: {} })).json.id
  const many = 64 // many, so that no shard and no page of a table is the only one
  const ids = { ended: [], parked: [] }
  for (let i = 0; i < many; i++) ids.ended.push(await started('ends', i))
  const begun = Array.from({ length: many }, (_, i) =>
    as('other', 'POST', '/v1/sagas', { saga: 'waits', id: `w-${i}` })
  )
  ids.parked = (await Promise.all(begun)).map(({ json }) => json.id)
  const call = await as('other', 'POST', '/v1/operations?wait=5s', { run: 'r', tool: 'echo', args: {} })
  await sleep(5000) // longer than --park-after
  const pick = (of) => of[Math.floor(Math.random() * of.length)]
  // The same id but for its random part: the shard and the time are those of a saga that exists.
  const hex = (bytes) => randomBytes(bytes).toString('hex')
  const absent = (id) => `${id.slice(0, 15)}${hex(2).slice(1)}-8${hex(2).slice(1)}-${hex(4)}${id.slice(-4)}`
  const kinds = {
    'a saga that has ended': [() => `/v1/sagas/${pick(ids.ended)}`, () => `/v1/sagas/${absent(pick(ids.ended))}`],
    'a saga that waits': [() => `/v1/sagas/${pick(ids.parked)}`, () => `/v1/sagas/${absent(pick(ids.parked))}`],
    'the log of a saga': [() => `/v1/sagas/${pick(ids.ended)}/log`, () => `/v1/sagas/${absent(pick(ids.ended))}/log`],
    'a business id': [
      () => `/v1/sagas/by-business-id/ends/ends-${Math.floor(Math.random() * many)}`,
      () => `/v1/sagas/by-business-id/ends/none-${Math.floor(Math.random() * many)}`
    ],
    'an operation': [
      () => `/v1/operations/${call.json.key}`,
      () => `/v1/operations/${call.json.key.slice(0, -4)}${randomBytes(2).toString('hex')}`
    ],
    'a definition': [() => '/v1/definitions/ends', () => '/v1/definitions/none'],
    'a tool': [() => '/v1/tools/echo', () => '/v1/tools/none']
  }
  const timed = async (path) => {
    const begun = process.hrtime.bigint()
    const { status, text } = await as('own', 'GET', path)
    const took = Number(process.hrtime.bigint() - begun) / 1000
    expect(status === 404, path, `${status} ${text}`)
    return took
  }
  console.log('| asked for | not there, us | of another namespace, us | differ by | by chance |')
  console.log('| --- | --- | --- | --- | --- |')
  for (const [name, [other, missing]] of Object.entries(kinds)) {
    await promise(
      `${name}: medians differ by less than 5 %`,
      async () => {
        const found = { other: [], missing: [] }
        for (let i = 0; i < 300; i++) await timed(i % 2 ? other() : missing()) // warm up
        for (let i = 0; i < requests; i++) {
          const first = Math.random() < 0.5
          if (first) found.other.push(await timed(other()))
          found.missing.push(await timed(missing()))
          if (!first) found.other.push(await timed(other()))
        }
        const [a, b] = [median(found.missing), median(found.other)]
        const halves = [0, 1].map((half) => median(found.missing.filter((_, i) => i % 2 === half)))
        const percent = (x, y) => (100 * (y / x - 1)).toFixed(1)
        console.log(`| ${name} | ${a.toFixed(0)} | ${b.toFixed(0)} | ${percent(a, b)} % | ${percent(...halves)} % |`)
        expect(Math.abs(b / a - 1) < 0.05, 'the difference', percent(a, b))
      },
      3600
    )
  }
})
