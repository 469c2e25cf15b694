// Checks every answer of a walk over the API against schema/openapi.json.
//
//   node check_openapi.mjs OPENAPI_JSON PROGRAM|dev:SAGAD|URL [TOKEN]
//
// PROGRAM serves the API and prints its port; dev:SAGAD is the real service, started as `sagad dev` in a folder of its
// own; a URL is a service that runs already. ajv comes from npm; tools/test installs it, NODE_MODULES says where.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, sleep } from '../lib/world.mjs'

const [openapiPath, target, givenToken] = process.argv.slice(2)
let token = givenToken
const fake = !/^(dev:|https?:)/.test(target)
let Ajv
try {
  Ajv = createRequire((process.env.NODE_MODULES ?? process.cwd()) + '/here.js')('ajv/dist/2020').default
} catch {
  console.log('skipped: ajv is not installed (tools/test does it)')
  process.exit(77)
}

const openapi = JSON.parse(readFileSync(openapiPath, 'utf8'))
// Schemas are compiled once and asked a few times: what makes them quicker to ask costs more than it saves.
const quickly = { code: { optimize: false }, inlineRefs: false, validateSchema: false }
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, ...quickly })
ajv.addSchema(openapi, 'openapi')
const escape = (part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')).replaceAll('%7E', '~')

const patterns = Object.keys(openapi.paths).map((path) => ({
  path,
  regexp: new RegExp('^' + path.replace(/\{[^}]+\}/g, '[^/]+') + '$')
}))
const described = new Set()
let base,
  child,
  count = 0
const faults = []

function hold(pointer, value, what) {
  const check = ajv.getSchema('openapi#' + pointer)
  if (!check(value))
    faults.push(
      `${what}: ${ajv.errorsText(check.errors, { separator: '; ' })}\n    ${JSON.stringify(value).slice(0, 600)}`
    )
}

function holdHeader(name, schema, value, what) {
  const typed = schema.type === 'integer' ? Number(value) : value
  const check = ajv.compile(schema)
  if (!check(typed)) faults.push(`${what}: the header ${name} is ${value}`)
}

async function ask(method, path, { body, headers = {}, status, raw } = {}) {
  const text = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  if (text !== undefined) headers['content-type'] = 'application/json'
  if (headers.authorization === null) delete headers.authorization
  else if (token && !('authorization' in headers)) headers.authorization = `Bearer ${token}`
  let answer
  for (let tries = 0; ; tries++, await sleep(500)) {
    // a machine that stalls makes the real engine refuse for a moment
    answer = await fetch(base + path, { method, headers, body: text, redirect: 'manual' })
    if (fake || answer.status !== 503 || status === undefined || tries === 60) break
    await answer.text()
  }
  const answered = await answer.text()
  const what = `${method} ${path} -> ${answer.status}`
  const found = patterns.find((p) => p.regexp.test(path.split('?')[0]))
  const operation = found && openapi.paths[found.path][method.toLowerCase()]
  const type = (answer.headers.get('content-type') ?? '').split(';')[0]
  count++
  if (status !== undefined && answer.status !== status)
    faults.push(`${what}, expected ${status}: ${answered.slice(0, 400)}`)
  if (type === 'application/problem+json') hold('/components/schemas/Problem', JSON.parse(answered), what)
  if (type === 'application/json' || type === 'application/problem+json') {
    for (const [name, header] of Object.entries(operation?.responses[answer.status]?.headers ?? {})) {
      const value = answer.headers.get(name)
      if (value !== null) holdHeader(name, header.schema, value, what)
    }
  }
  if (type === 'application/problem+json' && JSON.parse(answered).status !== answer.status)
    faults.push(`${what}: the problem says another status`)
  if (!operation) return { answer, json: type.endsWith('json') && answered ? JSON.parse(answered) : undefined }
  const response = operation.responses[answer.status]
  if (!response) {
    faults.push(`${what}: this status is not described: ${answered.slice(0, 300)}`)
  } else if (response.content) {
    if (!response.content[type]) faults.push(`${what}: the type ${type} is not described`)
    else if (type === 'application/json') {
      const at = `/paths/${escape(found.path)}/${method.toLowerCase()}/responses/${answer.status}`
      hold(`${at}/content/${escape(type)}/schema`, JSON.parse(answered), what)
    }
  }
  if (operation.requestBody && body !== undefined && answer.ok) {
    hold(
      `/paths/${escape(found.path)}/${method.toLowerCase()}/requestBody/content/${escape('application/json')}/schema`,
      body,
      what + ' (its request)'
    )
  }
  if (answer.ok) described.add(operation.operationId)
  return { answer, json: type.endsWith('json') && answered ? JSON.parse(answered) : undefined, text: answered }
}

const definitions = {
  tools: [
    { name: 't.one', builtin: { do: 'echo' }, effect: 'idempotent', terminal: true },
    { name: 't.read', builtin: { do: 'echo' }, effect: 'read', expose: { sets: ['a_set'] } },
    { name: 't.slow', builtin: { do: 'sleep', for: '3s' }, effect: 'idempotent', terminal: true },
    { name: 't.stuck', builtin: { do: 'fail', outcome: 'unknown' }, effect: 'once', terminal: true, breaker: {} }
  ],
  sagas: [
    { name: 'quick', steps: [{ id: 'one', call: 't.one', with: { n: 1 } }] },
    { name: 'stuck', steps: [{ id: 'one', call: 't.stuck' }] },
    {
      name: 'tree',
      locks: ['walk:${ .input.lock }'],
      steps: [
        { id: 'each', call: 't.read', for_each: '${ [1, 2] }', with: { n: '${ .item }' } },
        { id: 'paid', signal: { name: 'paid', timeout: '1h' } },
        { id: 'boss', approve: { show: { amount: '${ .steps.paid.result }' }, timeout: '1h' } }
      ]
    }
  ]
}

async function walk() {
  await ask('GET', '/livez', { status: 200 })
  await ask('GET', '/readyz', { status: 200 })
  await ask('GET', '/healthz', { status: 200 })
  await ask('GET', '/', { status: 200 })
  await ask('GET', '/metrics', { status: 200 })
  const served = await ask('GET', '/v1/openapi.json', { status: 200 })
  if (served.text !== readFileSync(openapiPath, 'utf8')) faults.push('the served description is not the file')

  const foreseen = await ask('POST', '/v1/definitions?dry_run=true', { body: { tools: [] }, status: 200 })
  if (!Array.isArray(foreseen.json?.items)) faults.push(`a dry run says nothing: ${foreseen.text}`)
  await ask('POST', '/v1/definitions?dry_run=maybe', { body: { tools: [] }, status: 400 })
  await ask('POST', '/v1/definitions', { body: definitions, status: 200 })
  await ask('POST', '/v1/definitions', { body: { tools: {} }, status: 422 })
  await ask('POST', '/v1/definitions', { raw: '{"a":1,"a":2}', status: 400 })
  await ask('GET', '/v1/definitions?limit=1', { status: 200 })
  await ask('GET', '/v1/definitions?limit=none', { status: 400 })
  await ask('GET', '/v1/definitions/quick', { status: 200 })
  await ask('GET', '/v1/definitions/quick?version=1', { status: 200 })
  await ask('GET', '/v1/definitions/nothing', { status: 404 })
  await ask('GET', '/v1/definitions/quick/proof', { status: 200 })
  await ask('GET', '/v1/definitions/quick/proof?version=none', { status: 400 })
  await ask('GET', '/v1/definitions/nothing/proof', { status: 404 })
  await ask('GET', '/v1/tools', { status: 200 })
  await ask('GET', '/v1/tools/nothing', { status: 404 })

  const business = 'walk-' + Date.now()
  const started = await ask('POST', '/v1/sagas?wait=5s', {
    body: { saga: 'quick', input: { n: 1 }, id: business, tags: { walk: 'yes' } },
    status: 201
  })
  const id = started.json?.id
  if (started.answer.headers.get('location') !== `/v1/sagas/${id}`) faults.push('the Location is not that of the saga')
  await ask('POST', '/v1/sagas', { body: { saga: 'quick', input: { n: 1.0 }, id: business }, status: 200 })
  await ask('POST', '/v1/sagas', { body: { saga: 'quick', input: { n: 2 }, id: business }, status: 422 })
  await ask('POST', '/v1/sagas', { body: { saga: 'nothing' }, status: 404 })
  await walkBatch(business)
  await ask('POST', '/v1/sagas', { body: { saga: 'quick', colour: 1 }, status: 422 })
  await ask('POST', '/v1/sagas', { raw: '{', status: 400 })
  await ask('POST', '/v1/sagas', { raw: '{"saga":"quick","input":"' + 'x'.repeat(1100000) + '"}', status: 413 })
  await ask('GET', '/v1/sagas', { status: 200 })
  await ask('GET', '/v1/sagas?limit=1', { status: 200 })
  await ask(
    'GET',
    `/v1/sagas?saga=quick&status=completed&tag.walk=yes&since=2020-01-01T00:00:00Z&business_id=${business}`,
    { status: 200 }
  )
  await ask('GET', '/v1/sagas?nonsense=1', { status: 400 })
  await ask('GET', `/v1/sagas/${id}`, { status: 200 })
  await ask('GET', `/v1/sagas/${id}?wait=100ms`, { status: 200 })
  await ask('GET', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff', { status: 404 })
  await ask('GET', `/v1/sagas/${id}/log`, { status: 200 })
  await ask('GET', `/v1/sagas/${id}/log?limit=1`, { status: 200 })
  await ask('GET', `/v1/sagas/${id}/log?follow=true`, { status: 200 })
  await ask('GET', `/v1/sagas/${id}/log`, {
    headers: { accept: 'text/event-stream', 'last-event-id': '1000' },
    status: 204
  })
  await ask('POST', `/v1/sagas/${id}/abort`, { body: { note: 'too late' }, status: 409 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/abort', { body: { note: 'walk' }, status: 404 })

  const stuck = await ask('POST', '/v1/sagas?wait=1s', { body: { saga: 'stuck' }, status: 201 })
  let open
  for (let i = 0; i < 50 && !open?.json?.items?.length; i++) {
    open = await ask('GET', '/v1/escalations?status=open', { status: 200 })
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const n = open.json.items[0]?.n
  await ask('GET', `/v1/sagas/${stuck.json?.id}`, { status: 200 })
  await ask('GET', '/v1/escalations', { status: 200 })
  await ask('GET', `/v1/escalations/${n}`, { status: 200 })
  await ask('GET', '/v1/escalations/999999999', { status: 404 })
  await ask('GET', `/v1/escalations/${n}/preview`, { status: 200 })
  await ask('GET', '/v1/escalations?acknowledged=false&assigned=ada,', { status: 200 })
  await ask('GET', '/v1/escalations?acknowledged=maybe', { status: 400 })
  const until = '2026-01-31T11:00:00Z'
  await ask('POST', `/v1/escalations/${n}/acknowledge`, { body: { until, note: 'walk' }, status: 200 })
  await ask('POST', `/v1/escalations/${n}/acknowledge`, { body: { until: 'soon', note: 'walk' }, status: 422 })
  await ask('POST', `/v1/escalations/${n}/assign`, { body: { to: 'ada', note: 'walk' }, status: 200 })
  await ask('POST', `/v1/escalations/${n}/assign`, { body: { note: 'walk' }, status: 422 })
  await ask('POST', `/v1/escalations/${n}/comment`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', '/v1/escalations/999999999/comment', { body: { note: 'walk' }, status: 404 })
  await ask('GET', '/v1/escalations/999999999/preview', { status: 404 })
  await ask('GET', '/v1/escalations?status=closed', { status: 400 })
  await ask('GET', '/v1/escalations?status=open,', { status: 400 })
  await ask('GET', '/v1/escalations?status=resolved,open', { status: 200 })
  await ask('GET', '/v1/escalations?status=all', { status: 200 })
  await ask('POST', `/v1/escalations/${n}/resolve`, { body: { action: 'forget', note: 'x' }, status: 422 })
  await ask('POST', `/v1/escalations/${n}/resolve`, {
    body: { action: 'resolve', as: 'happened', result: { a: 1 }, note: 'seen it' },
    status: 200
  })
  await ask('POST', `/v1/escalations/${n}/resolve`, {
    body: { action: 'resolve', as: 'not_happened', note: 'again' },
    status: 409
  })
  const aborting = await ask('POST', '/v1/sagas', { body: { saga: 'stuck' }, status: 201 })
  await ask('POST', `/v1/sagas/${aborting.json?.id}/abort`, { body: { note: 'walk' }, status: 200 })

  await walkWaits()
  await walkCalls()
  await walkVerdict()
  await walkNames()
  await walkGrants()
  await walkHolds()
  await walkNotifications()
  await walkSchedules()
  await walkBulk()

  const operations = await ask('GET', '/v1/operations', { status: 200 })
  await ask('GET', '/v1/operations?limit=1&tool=t.one', { status: 200 })
  await ask('GET', `/v1/operations/${operations.json?.items?.[0]?.key}`, { status: 200 })
  await ask('GET', `/v1/operations/${operations.json?.items?.[0]?.key}/preview`, { status: 200 })
  await ask('GET', '/v1/operations/00000000-0000-8000-8000-000000000000/preview', { status: 404 })
  await ask('GET', '/v1/operations/00000000-0000-8000-8000-000000000000', { status: 404 })
  await ask('GET', '/v1/stats', { status: 200 })
  await ask('GET', '/v1/events?cursor=7', { status: 200 })
  await ask('GET', '/v1/events?type=case.opened,saga.*', { status: 200 })
  await ask('GET', '/v1/events?type=case.eaten', { status: 400 })
  await ask('GET', '/v1/events?cursor=x', { status: 400 })
  await ask('GET', '/v1/events?cursor=1', { status: fake ? 410 : 200 })
  await ask('GET', '/v1/stats/series', { status: 200 })
  await ask('GET', '/v1/stats/series?by=tool&name=t.one&from=2026-01-01T00:00:00Z', { status: 200 })
  await ask('GET', '/v1/stats/series?by=colour', { status: 400 })
  await ask('GET', '/v1/stats/series?name=order', { status: 400 })
  await ask('GET', '/v1/engines', { status: 200 })
  await ask('GET', '/v1/me', { status: 200 })
  await walkConsole()
  await ask('GET', '/v1/debts?limit=5&tool=t.one', { status: 200 })
  await ask('GET', '/v1/debts?settled=false', { status: 200 })
  await ask('GET', '/v1/acts?limit=5&actor=ann,rob&verb=abort&saga=quick&tool=t.one&outcome=done', { status: 200 })
  await ask('GET', '/v1/acts?since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00Z', { status: 200 })
  await ask('GET', '/v1/acts?outcome=maybe', { status: 400 })
  await ask('GET', '/v1/acts?since=yesterday', { status: 400 })
  await ask('GET', '/v1/debts?settled=maybe', { status: 400 })
  await ask('GET', '/v1/debts?format=xml', { status: 400 })
  const message = (method, params) => ({ jsonrpc: '2.0', id: 1, method, params })
  await ask('POST', '/mcp', { body: message('tools/list'), status: 200 })
  await ask('POST', '/mcp', {
    body: message('tools/call', { name: 't_one', arguments: { n: 1 }, _meta: { 'sagad/run': 'walk' } }),
    status: 200
  })
  await ask('POST', '/mcp', { body: { jsonrpc: '2.0', method: 'notifications/initialized' }, status: 202 })
  await ask('POST', '/mcp', { body: [], status: 400 })
  await ask('GET', '/mcp', { status: 405 })
  await ask('POST', '/mcp/t/a_set', { body: message('tools/list'), status: 200 })
  await ask('POST', '/mcp/t/nothing', { body: message('tools/list'), status: 404 })
  await ask('GET', '/.well-known/oauth-protected-resource', { headers: { authorization: null }, status: 200 })
  await ask('GET', '/.well-known/oauth-protected-resource/mcp', { status: 200 })
  await ask('DELETE', '/v1/sagas', { status: 405 })
  await ask('GET', '/nothing', { status: 404 })
  if (token) await ask('GET', '/v1/stats', { headers: { authorization: 'Bearer nobody' }, status: 401 })
}

// Without the console the page says so, and a service without tokens has no sessions.
async function walkConsole() {
  const ours = () => ({ 'sagad-console': '1' })
  const page = await ask('GET', '/console/')
  await ask('GET', '/console', { status: 308 })
  await ask('GET', '/console/app.js', { status: page.answer.status })
  await ask('GET', '/console/nothing.js', { status: 404 })
  if (!page.answer.ok) for (const operation of ['console', 'consoleFile']) described.add(operation)
  described.add('consoleSlash')
  await ask('POST', '/console/links', { body: {}, status: token ? 200 : 409 })
  await ask('POST', '/console/session', { body: { token }, status: 403 })
  await ask('POST', '/console/session', { headers: ours(), body: { token: token ?? 'x' }, status: token ? 200 : 409 })
  await ask('POST', '/console/session', { headers: ours(), body: {}, status: 422 })
  await ask('DELETE', '/console/session', { headers: ours(), status: 200 })
  if (!token) for (const operation of ['makeLink', 'signIn']) described.add(operation)
}

// Gives a verdict about an operation, without the number of an escalation.
async function walkVerdict() {
  await ask('POST', '/v1/sagas', { body: { saga: 'stuck' }, status: 201 })
  let key
  for (let i = 0; i < 50 && !key; i++) {
    const open = await ask('GET', '/v1/escalations?status=open', { status: 200 })
    key = open.json?.items?.find((item) => item.operation)?.operation
    if (!key) await new Promise((resolve) => setTimeout(resolve, 100))
  }
  // The fake engine's questions are about no operation.
  key ??= (await ask('GET', '/v1/operations', { status: 200 })).json?.items?.[0]?.key
  const path = `/v1/operations/${key}/resolve`
  await ask('POST', path, { body: { as: 'perhaps', note: 'walk' }, status: 422 })
  await ask('POST', path, { body: { as: 'happened' }, status: 422 })
  await ask('POST', path, { body: { as: 'happened', note: 'walk' }, status: 200 })
  await ask('POST', '/v1/operations/00000000-0000-8000-8000-000000000000/resolve', {
    body: { as: 'happened', note: 'walk' },
    status: 404
  })
}

// Sends many starts in one request. Each is answered as a single start is.
async function walkBatch(business) {
  const statuses = (asked) => asked.json?.items?.map((item) => item.status).join()
  const expectStatuses = (asked, wanted) => {
    if (statuses(asked) !== wanted) faults.push(`a batch: ${statuses(asked)}, expected ${wanted}: ${asked.text}`)
  }
  const good = [
    { saga: 'quick', input: { n: 1 }, id: business },
    { saga: 'quick', input: 1, id: business + '-a', tags: { a: 'b' } },
    { open: true, id: business + '-o' }
  ]
  expectStatuses(await ask('POST', '/v1/sagas/batch', { body: good, status: 200 }), '200,201,201')
  const mixed = [
    { saga: 'quick', input: { n: 2 }, id: business },
    { saga: 'nothing' },
    7,
    { saga: 'quick', colour: 1 },
    { open: true, id: business + '-o' }
  ]
  const answers = await ask('POST', '/v1/sagas/batch', { raw: JSON.stringify(mixed), status: 200 })
  expectStatuses(answers, '422,404,422,422,200')
  for (const [i, body] of mixed.entries()) {
    const alone = await ask('POST', '/v1/sagas', { raw: JSON.stringify(body) })
    if (JSON.stringify(alone.json) !== JSON.stringify(answers.json?.items?.[i]?.body))
      faults.push(`alone ${alone.text}, in a batch ${JSON.stringify(answers.json?.items?.[i])}`)
  }
  const thousand = Array.from({ length: 1000 }, (_, i) => ({ saga: 'quick', id: `${business}-${i}` }))
  const calm = async () => {
    // the same batch until the engine is not too busy for any part of it
    for (let tries = 0; ; tries++, await sleep(500)) {
      const answer = await ask('POST', '/v1/sagas/batch', { body: thousand, status: 200 })
      if (tries === 60 || !statuses(answer)?.includes('503')) return answer
    }
  }
  const first = await calm()
  const again = await calm()
  if (!/^20[01](,20[01]){999}$/.test(statuses(first)) || !statuses(first).includes('201'))
    faults.push(`a thousand starts: ${statuses(first)}`)
  if (statuses(again) !== Array(1000).fill(200).join()) faults.push(`a thousand repeats: ${statuses(again)}`)
  if (first.json?.items?.some((item, i) => item.body.id !== again.json?.items?.[i].body.id))
    faults.push('a repeat is another saga')
  await ask('POST', '/v1/sagas/batch', { body: [], status: 200 })
  await ask('POST', '/v1/sagas/batch', { body: { saga: 'quick' }, status: 422 })
  await ask('POST', '/v1/sagas/batch', { raw: '[{]', status: 400 })
  await ask('POST', '/v1/sagas/batch', { raw: JSON.stringify([...thousand, { saga: 'quick' }]), status: 413 })
}

// The tool that the sagas call; the fake engine has its own.
const tool = () => (fake ? 'quick' : 't.read')
const guarded = () => (fake ? 'card.pay' : 't.stuck')

// Walks over signals, approvals and pauses of a saga that waits.
async function walkWaits() {
  const started = await ask('POST', '/v1/sagas', {
    body: { saga: 'tree', input: { lock: 'a' + Date.now() } },
    status: 201
  })
  const id = started.json?.id
  const path = `/v1/sagas/${id}`
  const doubted = await ask('POST', '/v1/sagas', {
    body: { saga: 'tree', input: { lock: 'b' + Date.now() } },
    status: 201
  })
  await ask('POST', `/v1/sagas/${doubted.json?.id}/escalate`, { body: {}, status: 422 })
  await ask('POST', `/v1/sagas/${doubted.json?.id}/escalate`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', `${path}/pause`, { body: { note: 'walk' }, status: 200 })
  await ask('GET', '/v1/sagas?status=paused', { status: 200 })
  await ask('GET', `${path}/preview`, { status: 200 })
  await ask('POST', `${path}/pause`, { body: { note: 'again' }, status: 200 })
  await ask('POST', `${path}/pause`, { body: {}, status: 422 })
  await ask('POST', `${path}/pause`, { body: { note: ' ' }, status: 422 })
  await ask('POST', `${path}/resume`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', `${path}/rerun`, { body: { note: 'walk' }, headers: { 'idempotency-key': 'k' }, status: 409 })
  const mend = { tool: tool(), version: 1, note: 'walk' }
  await ask('POST', `${path}/tools`, { body: mend, status: 200 })
  if (fake) {
    await ask('POST', `${path}/tools`, { body: { ...mend, version: 2 }, status: 409 })
    await ask('POST', `${path}/tools`, { body: { ...mend, version: 2, accept_double: true }, status: 200 })
  }
  await ask('POST', `${path}/tools`, { body: { ...mend, tool: 'other' }, status: 422 })
  await ask('POST', `${path}/tools`, { body: { ...mend, version: 0 }, status: 422 })
  await ask('POST', `${path}/tools`, { body: { tool: tool(), version: 1 }, status: 422 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/tools', { body: mend, status: 404 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/pause', { body: { note: 'walk' }, status: 404 })
  const key = { 'idempotency-key': `walk-${id}` }
  const first = await ask('POST', `${path}/signals/paid`, { body: 250, headers: { ...key }, status: 201 })
  if (first.json?.created !== true) faults.push(`a new signal is not created: ${first.text}`)
  const again = await ask('POST', `${path}/signals/paid`, { body: 250.0, headers: { ...key }, status: 200 })
  if (again.json?.created !== false) faults.push(`a repeated signal is created: ${again.text}`)
  await ask('POST', `${path}/signals/paid`, { body: 251, headers: { ...key }, status: 422 })
  await ask('POST', `${path}/signals/payed`, { status: 422 })
  await ask('POST', `${path}/signals/paid`, { raw: '{', status: 400 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/signals/paid', { status: 404 })
  let open
  for (let i = 0; i < 50 && !open?.json?.items?.length; i++) {
    open = await ask('GET', '/v1/approvals?status=open', { status: 200 })
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const n = open.json?.items[0]?.n
  const one = await ask('GET', `/v1/approvals/${n}`, { status: 200 })
  await ask('GET', '/v1/approvals', { status: 200 })
  await ask('GET', '/v1/approvals?status=closed', { status: 400 })
  await ask('GET', '/v1/approvals?status=resolved', { status: 400 })
  await ask('GET', '/v1/approvals?status=approved,refused,expired,cancelled', { status: 200 })
  await ask('GET', '/v1/approvals/999999999', { status: 404 })
  await ask('GET', path, { status: 200 })
  await ask('GET', '/v1/sagas?status=waiting', { status: 200 })
  await ask('POST', `/v1/approvals/${n}`, { body: { decision: 'maybe' }, status: 422 })
  await ask('POST', `/v1/approvals/${n}`, {
    body: { decision: 'approve', note: 'walk', hash: '0'.repeat(64) },
    status: 409
  })
  const decided = await ask('POST', `/v1/approvals/${n}`, {
    body: { decision: 'approve', note: 'walk', hash: one.json?.hash },
    status: 200
  })
  if (decided.json?.status !== 'approved') faults.push(`an approval is not approved: ${decided.text}`)
  await ask('POST', `/v1/approvals/${n}`, { body: { decision: 'refuse', note: 'walk' }, status: 409 })
  await ask('POST', '/v1/approvals/999999999', { body: { decision: 'refuse', note: 'walk' }, status: 404 })
  await ask('GET', `${path}?wait=2s`, { status: 200 })
  await ask('GET', `${path}/log`, { status: 200 })
}

// Walks over the calls of agents, alone and in open sagas.
async function walkCalls() {
  const run = 'walk-' + Date.now()
  const headerIs = (asked, name, value) => {
    if (asked.answer.headers.get(name) !== value)
      faults.push(`${name} is ${asked.answer.headers.get(name)}, expected ${value}: ${asked.text}`)
  }
  const call = { run, tool: 't.one', args: { n: 1.5 } }
  const first = await ask('POST', '/v1/operations', { body: call, headers: { 'idempotency-key': run }, status: 200 })
  headerIs(first, 'idempotent-replayed', null)
  if (first.json?.result?.n !== 1.5) faults.push(`the result is not that of the tool: ${first.text}`)
  const again = await ask('POST', '/v1/operations', { body: call, headers: { 'idempotency-key': run }, status: 200 })
  headerIs(again, 'idempotent-replayed', 'true')
  if (again.json?.key !== first.json?.key) faults.push('the same call again has another key')
  if (!again.answer.headers.get('idempotent-first-at')) faults.push('a replay does not say when it was first')
  const other = await ask('POST', '/v1/operations', { body: { ...call, args: { n: 2 } }, status: 422 })
  if (!Array.isArray(other.json?.pointers)) faults.push(`other arguments without pointers: ${other.text}`)
  await ask('POST', '/v1/operations', { body: { run, tool: 'nothing' }, status: 404 })
  await ask('POST', '/v1/operations', { body: { run: '', tool: 't.one', step: '~x', colour: 1 }, status: 422 })
  await ask('POST', '/v1/operations', { raw: '{', status: 400 })
  await ask('POST', '/v1/operations?wait=soon', { body: call, status: 400 })
  const slow = { run, tool: 't.slow', step: 'nap/1', scope: 'bed 7', turn: 1, args: { n: 1 } }
  const going = await ask('POST', '/v1/operations?wait=10ms', { body: slow, status: 202 })
  headerIs(going, 'location', `/v1/operations/${going.json?.key}`)
  const dup = await ask('POST', '/v1/operations?wait=10ms', { body: slow, status: 409 })
  if (!(Number(dup.answer.headers.get('retry-after')) >= 1) || dup.json?.operation?.key !== going.json?.key)
    faults.push(`in flight: ${dup.text}`)
  await ask('GET', `/v1/operations/${going.json?.key}`, { status: 200 })
  await ask('GET', `/v1/operations?run=${run}`, { status: 200 })
  await ask('POST', `/v1/operations/${first.json?.key}/bypass`, { body: { reason: 'walk' }, status: 200 })
  await ask('POST', `/v1/operations/${first.json?.key}/bypass`, { body: {}, status: 422 })
  await ask('POST', '/v1/operations/00000000-0000-8000-8000-000000000000/bypass', {
    body: { reason: 'walk' },
    status: 404
  })

  await ask('POST', `/v1/operations/${first.json?.key}/cost`, { body: { micros: 0, note: 'walk' }, status: 200 })
  await ask('POST', `/v1/operations/${first.json?.key}/cost`, { body: { micros: 2.5, note: 'walk' }, status: 422 })
  await ask('POST', `/v1/operations/${first.json?.key}/cost`, { body: { micros: -1, note: 'walk' }, status: 422 })
  await ask('POST', `/v1/operations/${first.json?.key}/cost`, { body: { micros: 1 }, status: 422 })
  await ask('POST', '/v1/operations/00000000-0000-8000-8000-000000000000/cost', {
    body: { micros: 1, note: 'walk' },
    status: 404
  })

  const opening = {
    open: true,
    id: run,
    tags: { walk: 'open' },
    deadline: '15m',
    on_timeout: 'abort',
    budget: { calls: 10 },
    loop: { repeats: 5 }
  }
  const opened = await ask('POST', '/v1/sagas', { body: opening, status: 201 })
  const path = `/v1/sagas/${opened.json?.id}`
  headerIs(opened, 'location', path)
  await ask('POST', '/v1/sagas', { body: opening, status: 200 })
  await ask('POST', '/v1/sagas', { body: { open: true, saga: 'quick' }, status: 422 })
  await ask('POST', '/v1/sagas', { body: { open: false }, status: 422 })
  await ask('GET', path, { status: 200 })
  await ask('POST', `${path}/resume`, { body: { note: 'walk' }, status: 409 })
  await ask('POST', `${path}/calls`, { body: { tool: 't.read', step: 'look', args: { n: 1 } }, status: 200 })
  await ask('POST', `${path}/calls`, { body: { tool: 'nothing' }, status: 404 })
  const done = await ask('POST', `${path}/calls`, { body: { tool: 't.one', args: { n: 1 } }, status: 200 })
  await ask('GET', path, { status: 200 })
  await ask('POST', `${path}/complete`, { body: { output: { done: true } }, status: 200 })
  await ask('POST', `${path}/calls`, { body: { tool: 't.one', scope: 'late' }, status: 409 })
  const stored = await ask('POST', `${path}/calls`, { body: { tool: 't.one', args: { n: 1 } }, status: 200 })
  headerIs(stored, 'idempotent-replayed', 'true')
  if (stored.json?.key !== done.json?.key) faults.push('the stored result is that of another operation')
  await ask('GET', `${path}/log`, { status: 200 })
  await ask('GET', '/v1/sagas?tag.walk=open', { status: 200 })
  await ask('GET', '/v1/sagas?saga=~open', { status: 200 })
  await ask('GET', '/v1/sagas?saga=~run', { status: 200 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/calls', { body: { tool: 't.one' }, status: 404 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/complete', { body: {}, status: 404 })
  await ask('POST', '/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/resume', { body: { note: 'walk' }, status: 404 })

  const looping = await ask('POST', '/v1/sagas', {
    body: { open: true, loop: { repeats: 2, max_cycle: 1 } },
    status: 201
  })
  await paused(`/v1/sagas/${looping.json?.id}`)
  const left = await ask('POST', '/v1/sagas', { body: { open: true }, status: 201 })
  await ask('POST', `/v1/sagas/${left.json?.id}/abort`, { body: { note: 'walk' }, status: 200 })
}

// Walks over grants, and makes a call by one.
async function walkGrants() {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const made = await ask('POST', '/v1/grants', { body: { run: 'walk', scope: '' }, status: 201 })
  await ask('POST', '/v1/grants', { body: { run: 'walk', saga: 'x', expires_at: 'now' }, status: 422 })
  await ask('POST', '/v1/grants', { body: { saga: '019b3c52-0000-7000-8000-00000000ffff' }, status: 404 })
  await ask('GET', '/v1/grants', { status: 200 })
  await ask('GET', '/v1/grants?all=some', { status: 400 })
  await ask('POST', made.json.url, { body: ping, headers: { authorization: null }, status: 200 })
  await ask('DELETE', `/v1/grants/${made.json.id}`, { status: 200 })
  await ask('POST', made.json.url, { body: ping, headers: { authorization: null }, status: 401 })
  await ask('GET', '/v1/grants?all=true', { status: 200 })
  await ask('DELETE', '/v1/grants/019b3c52-0000-7000-8000-00000000ffff', { status: 404 })
}

// Walks over holds.
async function walkHolds() {
  await ask('POST', '/v1/holds', { body: { tool: fake ? 'card.pay' : tool(), note: 'walk' }, status: 201 })
  await ask('POST', '/v1/holds', { body: { tool: 'nothing', note: 'walk' }, status: 422 })
  await ask('GET', '/v1/holds', { status: 200 })
  await ask('GET', '/v1/holds?all=true', { status: 200 })
  await ask('GET', '/v1/holds?all=some', { status: 400 })
  await ask('GET', '/v1/holds/1', { status: 200 })
  await ask('GET', '/v1/holds/7', { status: 404 })
  await ask('POST', '/v1/holds/1/release', { body: { note: 'walk' }, status: 200 })
  await ask('POST', '/v1/holds/1/release', { body: {}, status: 422 })
  await ask('POST', '/v1/holds/7/release', { body: { note: 'walk' }, status: 404 })
  await ask('POST', `/v1/tools/${guarded()}/breaker`, { body: { state: 'open', note: 'walk' }, status: 200 })
  await ask('GET', '/v1/stats', { status: 200 })
  await ask('POST', `/v1/tools/${guarded()}/breaker`, { body: { state: 'closed', note: 'walk' }, status: 200 })
  await ask('POST', `/v1/tools/${guarded()}/breaker`, { body: { state: 'ajar', note: 'walk' }, status: 422 })
  await ask('POST', '/v1/tools/nothing/breaker', { body: { state: 'closed', note: 'walk' }, status: 404 })
}

async function walkNotifications() {
  await ask('GET', '/v1/notifications', { status: 200 })
  await ask('GET', '/v1/notifications?receiver=ops&state=dead&limit=1', { status: 200 })
  await ask('GET', '/v1/notifications?state=alive', { status: 400 })
  await ask('POST', '/v1/notifications/replay', { body: { receiver: 'ops', note: 'walk' }, status: 200 })
  await ask('POST', '/v1/notifications/replay', { body: { events: ['a/1'], note: 'walk' }, status: 200 })
  await ask('POST', '/v1/notifications/replay', { body: { events: [] }, status: 422 })
}

// Walks over a bulk job: one verb on many sagas.
async function walkBulk() {
  const job = { action: 'pause', filter: { saga: 'quick' }, note: 'walk' }
  const frozen = await ask('POST', '/v1/bulk', { body: job, status: 201 })
  await ask('POST', '/v1/bulk', { body: { note: 'walk' }, status: 422 })
  await ask('GET', '/v1/bulk', { status: 200 })
  await ask('GET', `/v1/bulk/${frozen.json?.bulk}`, { status: 200 })
  await ask('GET', '/v1/bulk/01890a5d-ac96-774b-bcce-b302099a0008', { status: 404 })
  await ask('POST', `/v1/bulk/${frozen.json?.bulk}/run`, { body: {}, status: 200 })
  await ask('POST', `/v1/bulk/${frozen.json?.bulk}/run`, { body: { now: true }, status: 422 })
  await ask('GET', `/v1/bulk/${frozen.json?.bulk}/items?limit=5&after=0`, { status: 200 })
  await ask('GET', `/v1/bulk/${frozen.json?.bulk}/items?outcome=lost`, { status: 400 })
  await ask('POST', `/v1/bulk/${frozen.json?.bulk}/stop`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', `/v1/bulk/${frozen.json?.bulk}/stop`, { body: {}, status: 422 })
}

// Walks over schedules: sagas that the clock starts.
async function walkSchedules() {
  const schedule = { name: 'nightly', saga: 'quick', cron: '30 2 * * *', zone: 'Europe/Berlin', input: { n: 1 } }
  await ask('POST', '/v1/schedules', { body: schedule, status: 201 })
  await ask('POST', '/v1/schedules', { body: { ...schedule, name: 'Wrong' }, status: 422 })
  await ask('GET', '/v1/schedules', { status: 200 })
  await ask('GET', '/v1/schedules/nightly', { status: 200 })
  await ask('GET', '/v1/schedules/nothing', { status: 404 })
  await ask('GET', '/v1/schedules/nightly/next?count=3', { status: 200 })
  await ask('GET', '/v1/schedules/nightly/next?count=0', { status: 400 })
  await ask('POST', '/v1/schedules/nightly/hold', { body: { note: 'walk' }, status: 200 })
  await ask('POST', '/v1/schedules/nightly/hold', { body: {}, status: 422 })
  await ask('GET', '/v1/schedules/nightly', { status: 200 })
  await ask('POST', '/v1/schedules/nightly/release', { body: { note: 'walk' }, status: 200 })
  await ask('DELETE', '/v1/schedules/nightly', { status: 200 })
  await ask('DELETE', '/v1/schedules/nothing', { status: 404 })
}

// Walks over the same verbs with a saga that is named by its business id.
async function walkNames() {
  const id = 'named/' + Date.now()
  const part = encodeURIComponent(id.replace('/', '%2F'))
  const waiting = `/v1/sagas/by-business-id/tree/${part}`
  const begun = await ask('POST', '/v1/sagas', { body: { saga: 'tree', id, input: { lock: id } }, status: 201 })
  const found = await ask('GET', waiting, { status: 200 })
  if (found.json?.id !== begun.json?.id) faults.push(`another saga is found by its business id: ${found.text}`)
  await ask('GET', `${waiting}/log`, { status: 200 })
  await ask('GET', `${waiting}/preview`, { status: 200 })
  await ask('POST', `${waiting}/escalate`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', `${waiting}/pause`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', `${waiting}/resume`, { body: { note: 'walk' }, status: 200 })
  await ask('POST', `${waiting}/tools`, { body: { tool: tool(), version: 1, note: 'walk' }, status: 200 })
  await ask('POST', `${waiting}/signals/paid`, { body: 250, status: 201 })
  await ask('POST', `${waiting}/abort`, { body: { note: 'walk' }, status: 200 })
  await ask('GET', '/v1/sagas/by-business-id/tree/none', { status: 404 })
  const over = await ask('POST', '/v1/sagas?wait=5s', { body: { saga: 'quick', id, input: { a: 1 } }, status: 201 })
  const first = `first-${id}`
  const standing = fake ? 'b' : 'one'
  const again = { body: { note: 'walk', accept_standing: [standing] }, headers: { 'idempotency-key': first } }
  await ask('POST', `/v1/sagas/by-business-id/quick/${part}/rerun`, { body: { note: 'walk' }, status: 422 })
  await ask('POST', `/v1/sagas/by-business-id/quick/${part}/rerun`, { ...again, status: 201 })
  await ask('POST', `/v1/sagas/${over.json?.id}/rerun`, {
    ...again,
    headers: { 'idempotency-key': fake ? 'again' : first },
    status: 200
  })
  await ask('POST', `/v1/sagas/${over.json?.id}/rerun`, {
    ...again,
    headers: { 'idempotency-key': 'taken' },
    status: 409
  })
  await ask('POST', '/v1/sagas/by-business-id/none/none/abort', { body: {}, status: 404 })
  const open = `/v1/sagas/by-business-id/~open/${part}`
  await ask('POST', '/v1/sagas', { body: { open: true, id }, status: 201 })
  await ask('POST', `${open}/calls`, { body: { tool: 't.one', args: { n: 1 } }, status: 200 })
  await ask('POST', `${open}/complete`, { body: {}, status: 200 })
}

// Pauses a saga by the second trip of a loop; the fake engine has a tool for that.
async function paused(path) {
  let patterns = 0
  for (let i = 0; i < 12; i++) {
    const asked = await ask('POST', `${path}/calls`, {
      body: { tool: fake ? (i ? 'as.paused' : 'as.loop-detected') : 't.read', args: { n: 1 }, turn: Math.floor(i / 6) }
    })
    patterns += asked.json?.type?.endsWith(':loop-detected') && asked.json.pattern?.length ? 1 : 0
    const saga = await ask('GET', path, { status: 200 })
    if (saga.json?.status === 'paused') break
  }
  if (!patterns) faults.push('no loop was told its pattern')
  await ask('POST', `${path}/resume`, { body: { note: 'walk' }, status: 200 })
}

async function beginDev(program) {
  const folder = mkdtempSync(join(tmpdir(), 'sagad-openapi-'))
  const port = await freePort()
  chmodSync(folder, 0o755) // PostgreSQL runs as another user
  let said = ''
  let ended = false
  child = spawn(program, ['dev', '--dir', join(folder, 'dev'), '--clock', 'virtual', '--listen', `127.0.0.1:${port}`], {
    stdio: ['ignore', 'ignore', 'pipe']
  })
  child.stderr.on('data', (data) => {
    said += data
  })
  child.once('exit', () => {
    ended = true
    rmSync(folder, { recursive: true, force: true })
  })
  for (let i = 0; i < 600; i++) {
    if (ended) throw new Error(`${program} did not start: ${said}`)
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)
    if (ready?.ok) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  token = readFileSync(join(folder, 'dev', 'token'), 'utf8').trim()
  return `http://127.0.0.1:${port}`
}

async function begin() {
  if (target.startsWith('dev:')) return beginDev(target.slice(4))
  if (/^https?:/.test(target)) return target.replace(/\/$/, '')
  child = spawn(target, { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise((resolve, reject) => {
    child.stdout.once('data', (data) => resolve(String(data).trim()))
    child.once('exit', (code) => reject(new Error(`${target} ended with ${code}`)))
  })
  return `http://127.0.0.1:${port}`
}

// Checks what a reader of the description needs: where each operation belongs, what it does, and an example of each
// request and answer that the schema accepts.
function holdDescription() {
  const tags = new Set(openapi.tags.map((tag) => tag.name))
  const holdExamples = (pointer, content, what) => {
    for (const [type, media] of Object.entries(content ?? {})) {
      const examples = Object.values(media.examples ?? {}).map(
        (one) => openapi.components.examples[one.$ref.split('/').at(-1)]
      )
      if (examples.length === 0 && !what.startsWith('openapi ')) faults.push(`${what}: no example`)
      for (const example of examples)
        hold(`${pointer}/content/${escape(type)}/schema`, example.value, `${what}: an example`)
    }
  }
  for (const [path, operations] of Object.entries(openapi.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const what = operation.operationId,
        pointer = `/paths/${escape(path)}/${method}`
      if (operation.tags?.length !== 1 || !tags.has(operation.tags[0])) faults.push(`${what}: no tag of the document`)
      if (!operation.description) faults.push(`${what}: no description`)
      if (operation.requestBody)
        holdExamples(`${pointer}/requestBody`, operation.requestBody.content, `${what} (its request)`)
      for (const [status, response] of Object.entries(operation.responses))
        holdExamples(`${pointer}/responses/${status}`, response.content, `${what} ${status}`)
    }
  }
}

// Walks over the clock of `sagad dev`, at the end: it takes sagas, holds and sessions three days ahead.
async function walkClock() {
  await ask('GET', '/v1/clock', { status: 200 })
  await ask('POST', '/v1/clock', { body: { by: '3d' }, status: 200 })
  await ask('POST', '/v1/clock', { body: { by: '3d', to: 'next' }, status: 422 })
}

base = await begin()
if (fake) holdDescription() // the walk holds every service to the same description
await walk()
await walkClock()
if (child) {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const code = await ended
  if (code !== 0) faults.push(`the service ended with ${code}`)
}
for (const path of Object.values(openapi.paths)) {
  for (const operation of Object.values(path)) {
    if (!described.has(operation.operationId) && operation.operationId !== 'getTool')
      faults.push(`${operation.operationId} was never answered well`)
  }
}
for (const fault of faults) console.log('- ' + fault)
console.log(`${count} answers held against the description, ${faults.length} faults`)
process.exit(faults.length ? 1 : 0)
