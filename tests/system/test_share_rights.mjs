// What a namespace may do that definitions were shared with: the column `shared` of engine/rights.md. Each row of the
// page is asked by each role, and each operation of openapi.json has to have a row. The things are those of the
// namespace that shares: a saga, an operation, a case, an approval, a hold, a schedule, a bulk job, a grant.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, promise, root, run } from '../lib/world.mjs'

const mark = 'of-the-house' // is in the name of each thing of the house; nobody else ever reads it
const roles = ['reader', 'agent', 'operator', 'admin']
const rows = [
  { name: 'house', namespaces: ['house', 'travel'], role: 'admin' },
  ...roles.map((role) => ({ name: role, namespace: 'travel', role }))
]
const shared = {
  share: ['travel'],
  tools: [
    {
      name: 't.one',
      builtin: { do: 'echo' },
      effect: 'idempotent',
      terminal: true,
      expose: { sets: ['a_set'] },
      breaker: { failures: 5, window: '1m', cooldown: '1m' }
    }
  ],
  sagas: [
    { name: 'quick', steps: [{ id: 'one', call: 't.one', with: {} }] },
    { name: 'waits', steps: [{ id: 'paid', signal: { name: 'paid', timeout: '1h' } }] },
    {
      name: 'asks',
      steps: [
        { id: 'ok', approve: { roles: ['operator', 'agent'], show: { note: mark }, timeout: '1h' } },
        { id: 'one', call: 't.one', with: {} }
      ]
    }
  ]
}

// --- the page ---

// "GET /v1/sagas" as on the page, what stands behind it (a verb or a method of MCP), and a cell for each column.
function readPage() {
  const lines = readFileSync(join(root, 'engine', 'rights.md'), 'utf8').split('\n')
  const cellsOf = (line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
  const columns = cellsOf(lines.find((line) => line.startsWith('| what |')))
  return lines
    .map((line) => /^\| `(\w+) ([^`]+)`( [^|]+)? \|/.exec(line))
    .filter(Boolean)
    .map((found) => {
      const cells = Object.fromEntries(cellsOf(found.input).map((cell, i) => [columns[i], cell]))
      return { method: found[1], path: found[2], more: found[3]?.trim(), cells }
    })
}

// --- what is asked ---

const openapi = JSON.parse(readFileSync(join(root, 'schema', 'openapi.json'), 'utf8'))

// Bodies that are good here, where the examples of openapi.json are about definitions that are not here.
const bodies = {
  'POST /v1/definitions': { tools: [{ ...shared.tools[0], timeout: '3s' }] },
  'POST /v1/sagas': { saga: 'quick' },
  'POST /v1/sagas/batch': [{ saga: 'quick' }],
  'POST /v1/operations': { run: 'ours', tool: 't.one' },
  'POST /v1/holds': { saga: 'waits', note: 'x' },
  'POST /v1/schedules': { name: 'ours', saga: 'quick', every: '1h' },
  'POST /v1/grants': { run: 'ours' },
  'POST /mcp/t/{set}': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  'POST /mcp/g/{secret}': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  'POST /console/session': { token: 'reader' }
}

function example(method, path) {
  const content = Object.values(openapi.paths[path][method.toLowerCase()].requestBody?.content ?? {})[0]
  const first = Object.values(content?.examples ?? {})[0]
  return first?.$ref ? openapi.components.examples[first.$ref.split('/').pop()].value : (first?.value ?? {})
}

const stateless = ['tasks/get', 'tasks/cancel', 'tasks/update', 'server/discover']
const version = '2026-07-28'

function mcpOf(more, thing) {
  const [method, tool] = more.split(' ')
  const of = {
    t_one: { arguments: {}, _meta: { 'sagad/run': thing.run } },
    saga_open: { arguments: { name: thing.run }, _meta: { 'sagad/run': thing.run } },
    operation_status: { arguments: { operation: thing.key } },
    saga_abort: { arguments: { saga: thing.id, note: 'x' } }
  }
  const isStateless = stateless.includes(method)
  const meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  }
  const params = tool
    ? { name: tool, ...(of[tool] ?? { arguments: { saga: thing.id } }) }
    : { name: 'x', taskId: 'none', ...(isStateless ? { _meta: meta } : {}) }
  const named = method.startsWith('tasks/') ? { 'mcp-name': 'none' } : {}
  return {
    body: { jsonrpc: '2.0', id: 1, method, params },
    headers: isStateless ? { 'mcp-protocol-version': version, 'mcp-method': method, ...named } : {}
  }
}

function requestOf({ method, path, more }, thing) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    if (path.startsWith('/v1/sagas/by-business-id/') && name === 'name') return 'waits'
    if (path.startsWith('/v1/sagas/') && ['name', 'signal'].includes(name)) return 'paid'
    if (path.startsWith('/v1/tools/')) return 't.one'
    if (path.startsWith('/v1/definitions/')) return 'quick'
    if (path.startsWith('/v1/schedules/')) return thing.schedule
    if (path.startsWith('/v1/grants/')) return thing.grant
    if (path.startsWith('/mcp/t/')) return 'a_set'
    return thing[name === 'n' ? path.split('/')[2] : name] ?? 'x'
  })
  if (method !== 'POST') return { path: filled, headers: {} }
  if (path === '/v1/bulk') return { path, body: { action: more, filter: { saga: 'waits' }, note: 'x' }, headers: {} }
  if (path === '/mcp') return { path, ...mcpOf(more, thing) }
  const headers = path.endsWith('/rerun') ? { 'idempotency-key': thing.run } : {}
  return { path: filled, body: bodies[`${method} ${path}`] ?? example(method, path), headers }
}

// --- what must come ---

// Without what the asker itself has named.
const without = (text, thing, { path }) =>
  Object.values(thing)
    .filter((id) => typeof id === 'string' || path.includes('{n}'))
    .reduce((left, id) => left.replaceAll(String(id), 'ID'), text)

const isMcp = ({ path }) => path.startsWith('/mcp')

const verdicts = {
  404: ({ status, text }, row) =>
    isMcp(row) ? status === 200 && text.includes('problem:not-found') : status === 404 && text.includes(':not-found'),
  // Only `sagad dev` has a clock that somebody moves.
  own: ({ status }, { path }) =>
    path === '/v1/clock' ? status === 404 : ![401, 403, 404].includes(status) && status < 500,
  yes: ({ status }) => ![401, 403].includes(status) && status < 500,
  copy: ({ status, text }, row) =>
    status === 200 &&
    !text.includes('"isError":true') &&
    (row.method !== 'GET' || !/tools\/|definitions\/\{name\}$/.test(row.path) || /"shared_by": ?"house"/.test(text)),
  'read-only': ({ status, text }) => status === 422 && text.includes('read-only'),
  '': ({ status }) => status >= 400 && status < 500
}

await run(new World(), async (world) => {
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  const tokens = join(world.directory, 'tokens.json')
  writeFileSync(tokens, JSON.stringify({ tokens: rows.map((row) => ({ ...row, sha256: sha256(row.name) })) }), {
    mode: 0o600
  })
  await world.startPostgres()
  await world.startSagad(['--tokens', tokens])
  const as = (name, method, path, body, headers = {}) =>
    world.calm(() =>
      world.api(method, path, body, { headers: { authorization: `Bearer ${name}`, 'sagad-console': '1', ...headers } })
    )
  const made = async (path, body, take) => {
    const { status, json, text } = await as('house', 'POST', path, body)
    expect(status < 300, `the house makes a thing at ${path}`, `${status} ${text}`)
    return take(json)
  }
  const defined = await as('house', 'POST', '/v1/definitions', shared)
  expectEqual(defined.status, 200, `the definitions: ${defined.text}`)

  const saga = (name, id) => made('/v1/sagas', { saga: name, id: `${mark}-${id}` }, ({ id }) => id)
  const inCase = await saga('waits', 'case')
  await made(`/v1/sagas/${inCase}/escalate`, { note: mark }, () => {})
  const asking = await saga('asks', 'asking')
  const numberAt = (path, of) =>
    eventually(
      `a number at ${path}`,
      async () => (await as('house', 'GET', path)).json.items.find((one) => one.saga === of)?.n
    )
  const theirs = {
    id: await saga('waits', 'waiting'),
    business_id: `${mark}-waiting`,
    key: await made('/v1/operations', { run: mark, tool: 't.one' }, ({ key }) => key),
    escalations: await numberAt('/v1/escalations?status=open', inCase),
    approvals: await numberAt('/v1/approvals', asking),
    schedule: await made('/v1/schedules', { name: `${mark}-nightly`, saga: 'quick', every: '1h' }, ({ name }) => name),
    bulk: await made('/v1/bulk', { action: 'pause', filter: { saga: 'waits' }, note: mark }, ({ bulk }) => bulk),
    grant: await made('/v1/grants', { run: mark }, ({ id }) => id),
    holds: await made('/v1/holds', { saga: 'asks', note: mark }, ({ n }) => n)
  }
  const changed = (id) => id.slice(0, -1) + (id.at(-1) === '0' ? '1' : '0')
  // What does not exist anywhere.
  const nobodys = Object.fromEntries(
    Object.entries(theirs).map(([name, id]) => [name, typeof id === 'number' ? id + 1000000 : changed(String(id))])
  )
  const page = readPage()
  // The things of the house as it sees them.
  const state = async () => {
    const paths = [
      ...[theirs.id, inCase, asking].map((id) => `/v1/sagas/${id}`),
      ...['escalations', 'approvals', 'holds'].map((kind) => `/v1/${kind}/${theirs[kind]}`),
      ...[`/v1/schedules/${theirs.schedule}`, `/v1/bulk/${theirs.bulk}`, `/v1/operations/${theirs.key}`],
      ...['/v1/grants', '/v1/tools/t.one', '/v1/definitions/waits']
    ]
    const texts = await Promise.all(paths.map(async (path) => (await as('house', 'GET', path)).text))
    return texts.map((text, i) => `${paths[i]}: ${text}`)
  }
  const before = await state()

  await promise('each operation of openapi.json has a row', () => {
    const has = new Set(page.map(({ method, path }) => `${method} ${path}`))
    const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
    )
    expectEqual(
      operations.filter((one) => !has.has(one)),
      [],
      'operations without a row'
    )
    for (const row of page)
      expect(row.cells.shared in verdicts, 'a word that is known', `${row.path}: ${row.cells.shared}`)
  })

  await promise('each role of the namespace that was shared with finds what the page says', async () => {
    const wrong = []
    for (const row of page)
      for (const role of roles) {
        const ask = (thing) => {
          const { path, body, headers } = requestOf(row, { ...thing, run: `ours-${role}` })
          return as(role, row.method, path, body, headers)
        }
        const answer = await ask(theirs)
        const may = row.cells[role] === 'yes' || row.cells.shared === ''
        const holds = may ? verdicts[row.cells.shared](answer, row) : answer.status === 403
        const what = `${row.method} ${row.path} ${row.more ?? ''} as ${role}, ${row.cells.shared}`
        if (!holds) wrong.push(`${what}: ${answer.status} ${answer.text.slice(0, 300)}`)
        if (answer.text.includes(mark) && !isEcho(row)) wrong.push(`${what} tells ${mark}`)
        if (row.cells.shared === '404' && may) {
          const none = await ask(nobodys)
          if (answer.status !== none.status || without(answer.text, theirs, row) !== without(none.text, nobodys, row))
            wrong.push(`${what}: not as if it were not there: ${answer.text} ${none.text}`)
        }
      }
    for (const line of wrong) console.log(`# ${line}`)
    expectEqual(wrong.length, 0, 'cells that are not as the page says')
  })

  await promise('nothing of the house has changed', async () => expectEqual(await state(), before, 'its things'))
})

// A path that the asker wrote itself stands in the answer.
function isEcho({ path }) {
  return /\{business_id\}|\/v1\/schedules\/\{/.test(path)
}
