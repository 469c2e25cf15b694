// Definitions that a namespace shares with others: who may share, what the others may do with what is shared, and that
// what they have does not depend on the namespace that it came from.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, promise, run } from '../lib/world.mjs'

const rows = [
  { name: 'house', namespaces: ['house', 'travel', 'books'], role: 'admin' },
  { name: 'house-only', namespace: 'house', role: 'admin' },
  { name: 'house-operator', namespaces: ['house', 'travel'], role: 'operator' },
  { name: 'travel', namespace: 'travel', role: 'admin' },
  { name: 'travel-reader', namespace: 'travel', role: 'reader' },
  { name: 'books', namespace: 'books', role: 'admin' },
  { name: 'stranger', namespace: 'elsewhere', role: 'admin' },
  { name: 'all', namespace: '*', role: 'admin' }
]
const pay = (more) => ({ name: 'pay', builtin: { do: 'echo' }, effect: 'idempotent', terminal: true, ...more })
const order = (more) => ({ name: 'order', steps: [{ id: 'pay', call: 'pay', with: { a: 1 } }], ...more })
const shared = (share, more) => ({ share, tools: [pay(more)], sagas: [order()] })

await run(new World(), async (world) => {
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  const tokens = join(world.directory, 'tokens.json')
  const quotas = join(world.directory, 'quotas.json')
  writeFileSync(tokens, JSON.stringify({ tokens: rows.map((row) => ({ ...row, sha256: sha256(row.name) })) }), {
    mode: 0o600
  })
  writeFileSync(quotas, JSON.stringify({ quotas: [{ namespace: 'books', definitions: 2 }] }))
  await world.startPostgres()
  await world.startEngines(2, ['--tokens', tokens, '--quotas', quotas])
  const as = (name, method, path, body, namespace) =>
    world.calm(() =>
      world.api(method, path, body, {
        headers: { authorization: `Bearer ${name}`, ...(namespace ? { 'sagad-namespace': namespace } : {}) }
      })
    )
  const define = (name, document, namespace, query = '') =>
    as(name, 'POST', `/v1/definitions${query}`, document, namespace)
  const refused = async (answer, status, says) => {
    const { status: found, text } = await answer
    expect(found === status && says.test(text), `${status} with ${says}`, `${found} ${text}`)
  }

  await promise('only an admin of each of the namespaces shares; whether they exist is not told', async () => {
    await refused(define('house-only', shared(['travel'])), 403, /may not act in the namespace travel that/)
    await refused(define('house-only', shared(['no-such'])), 403, /may not act in the namespace no-such that/)
    await refused(define('house-operator', shared(['travel'])), 403, /./)
    await refused(define('house', shared(['travel', 'elsewhere'])), 403, /may not act in the namespace elsewhere/)
    for (const wrong of ['travel', [1], [''], ['*'], ['a b'], ['travel', 'travel'], ['house'], Array(9).fill('x')])
      await refused(define('house', shared(wrong)), 422, /"\/share/)
    expectEqual((await as('travel', 'GET', '/v1/tools')).json.items, [], 'nothing came')
  })

  await promise('what is shared is there, says where it is from, and nowhere else', async () => {
    const dry = (await define('house', shared(['travel']), undefined, '?dry_run=true')).json.items
    const { status, json, text } = await define('house', shared(['travel']))
    expectEqual(status, 200, text)
    const made = json.items.map(({ kind, name, namespace, version }) => [kind, name, namespace ?? 'own', version])
    expectEqual(
      made,
      [
        ['tool', 'pay', 'own', 1],
        ['saga', 'order', 'own', 1],
        ['tool', 'pay', 'travel', 1],
        ['saga', 'order', 'travel', 1]
      ],
      'what was made'
    )
    const foreseen = dry.map(({ kind, name, namespace, version }) => [kind, name, namespace ?? 'own', version])
    expectEqual(foreseen, made, 'what a dry run says')
    const shown = await as('travel-reader', 'GET', '/v1/definitions/order')
    expect(
      shown.status === 200 && /"shared_by":\s*"house"/.test(shown.text),
      'travel sees where it is from',
      shown.text
    )
    const own = await as('house', 'GET', '/v1/definitions/order')
    expect(own.status === 200 && !own.text.includes('shared_by'), 'the house has its own', own.text)
    for (const name of ['stranger', 'books'])
      expectEqual((await as(name, 'GET', '/v1/definitions/order')).status, 404, name)
    expect(
      (await define('house', shared(['travel']))).text.match(/unchanged/g).length === 4,
      'the same again is the same'
    )
  })

  const start = async (name, namespace) => {
    const { status, json, text } = await as(name, 'POST', '/v1/sagas?wait=10s', { saga: 'order' }, namespace)
    expect(status < 300 && json.status === 'completed', 'the saga', `${status} ${text}`)
    return json.id
  }

  let old
  await promise('the other namespace runs it as its own, on each engine', async () => {
    old = await start('travel')
    await eventually('the other engine has it', async () => {
      world.port = world.engines[1].port
      return (await as('travel', 'GET', '/v1/definitions/order')).status === 200
    })
    await start('travel')
    world.port = world.engines[0].port
    expectEqual((await as('house', 'GET', `/v1/sagas/${old}`, undefined, 'house')).status, 404, 'not of the house')
  })

  await promise('there it is read-only, but for somebody who is an admin of both', async () => {
    await refused(define('travel', { tools: [pay({ timeout: '3s' })] }), 422, /the namespace house shares this/)
    await refused(define('travel', { sagas: [order({ deadline: '1h' })] }), 422, /read-only/)
    await refused(define('travel', { tools: [pay({ shared_by: 'house' })] }), 422, /`shared_by` is written by sagad/)
    await refused(define('travel', { tools: [pay({ name: 'other', shared_by: 'x' })] }), 422, /`shared_by` is written/)
    const inline = { name: 'x', steps: [{ id: 'a', call: { ...pay({ shared_by: 'x' }), name: undefined } }] }
    await refused(define('travel', { sagas: [inline] }), 422, /leave `shared_by` out/)
  })

  await promise('a newer version comes with its document; a saga that runs keeps its own', async () => {
    expectEqual((await define('house', shared(['travel'], { timeout: '5s' }))).status, 200, 'the next version')
    const { json } = await as('travel', 'GET', '/v1/tools/pay')
    expectEqual([json.version, json.definition?.timeout ?? json.body?.timeout], [2, '5s'], 'the version in travel')
    expectEqual((await define('house', { tools: [pay({ timeout: '6s' })] })).status, 200, 'without `share`')
    expectEqual((await as('travel', 'GET', '/v1/tools/pay')).json.version, 2, 'travel keeps what it has')
    await start('travel')
  })

  await promise('a definition of its own is not replaced, and the whole document is refused', async () => {
    expectEqual((await define('books', { tools: [pay({ timeout: '9s' })] })).status, 200, 'books has its own')
    await refused(define('house', shared(['books', 'travel'], { timeout: '7s' })), 422, /books has another definition/)
    expectEqual((await as('travel', 'GET', '/v1/tools/pay')).json.version, 2, 'travel')
    expectEqual((await as('house', 'GET', '/v1/tools/pay')).json.version, 3, 'the house')
  })

  await promise('it is compiled where it goes to, and counts for the quota there', async () => {
    const needs = { share: ['books'], sagas: [{ name: 'needs', steps: [{ id: 'a', call: 'quiet', with: {} }] }] }
    expectEqual((await define('house', { tools: [pay({ name: 'quiet' })] })).status, 200, 'a tool of the house')
    await refused(define('house', needs), 422, /in the namespace books: .*quiet/)
    const two = { share: ['books'], tools: [pay({ name: 'one' }), pay({ name: 'two' })] }
    expectEqual((await define('house', two)).status, 429, 'two more than its quota lets')
    expectEqual((await as('house', 'GET', '/v1/tools/one')).status, 404, 'all or nothing')
  })

  await promise('each namespace has an act of it', async () => {
    const details = async (name) =>
      (await as(name, 'GET', '/v1/acts')).json.items
        .filter(({ verb }) => verb === 'apply')
        .map(({ actor, target }) => `${actor} ${target}`)
    expect((await details('travel')).includes('house order 1, pay 1'), 'travel', await details('travel'))
    expect((await details('house')).includes('house order 1, pay 1'), 'the house', await details('house'))
    expectEqual(await details('stranger'), [], 'elsewhere')
  })

  await promise('an admin above all shares, too; an admin of both makes it a definition of its own', async () => {
    expectEqual((await define('all', { share: ['elsewhere'], tools: [pay()] }, 'house')).status, 200, 'above all')
    expectEqual((await as('stranger', 'GET', '/v1/tools/pay')).status, 200, 'it is there')
    expectEqual((await define('house', { tools: [pay({ timeout: '8s' })] }, 'travel')).status, 200, 'taken over')
    expectEqual((await define('travel', { tools: [pay({ timeout: '4s' })] })).status, 200, 'its own from then on')
    await refused(define('house', shared(['travel'])), 422, /travel has another definition/)
  })

  await promise('after a restart everything is read and runs as before', async () => {
    for (const engine of world.engines) await world.killEngine(engine)
    for (const engine of world.engines) world.launchEngine(engine)
    for (const engine of world.engines) await world.engineReady(engine)
    await start('travel')
    expectEqual((await as('travel', 'GET', `/v1/sagas/${old}`)).json.status, 'completed', 'the saga from before')
  })
})
