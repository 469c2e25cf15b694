// Helpers for tests of the saga language: tools over the example shop, the order of effects by its ledger, and the
// verbs of people (signals, approvals, pauses) over the API.
import { createHash } from 'node:crypto'
import { expect, expectEqual, sleep } from './world.mjs'

export const patient = { initial: '50ms', factor: 2, max: '500ms', max_attempts: 200 }

// Returns the tools. `give` undoes `take`, and `unbill` undoes `bill`. "none" cannot be taken and "declined" cannot be
// billed, for certain. `slow` takes after a while.
export function languageTools(shop) {
  const keyed = { effect: 'keyed', key: { window: '1h' }, timeout: '5s', retry: patient }
  const take = {
    ...keyed,
    http: { method: 'POST', url: `${shop}/reservations`, body: '${ .args }' },
    result: { id: '${ .response.body.id }' },
    compensate: { tool: 'give', with: { id: '${ .result.id }' } }
  }
  return [
    { name: 'take', ...take },
    {
      name: 'give',
      effect: 'idempotent',
      timeout: '5s',
      retry: patient,
      http: { method: 'DELETE', url: `${shop}/reservations/\${ .args.id }` }
    },
    {
      name: 'bill',
      ...keyed,
      http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
      result: { id: '${ .response.body.id }' },
      compensate: { tool: 'unbill', with: { charge_id: '${ .result.id }' } }
    },
    {
      name: 'unbill',
      ...keyed,
      http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' },
      result: { id: '${ .response.body.id }' }
    },
    {
      name: 'mail',
      effect: 'checked',
      terminal: true,
      timeout: '5s',
      retry: patient,
      http: { method: 'POST', url: `${shop}/mails`, body: '${ .args }' },
      probe: {
        http: { method: 'GET', url: `${shop}/mails/by-key/\${ .key }` },
        visibility: '200ms',
        outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' }
      }
    },
    // A read, because a call of another class that a kill has interrupted may have happened.
    { name: 'never', effect: 'read', builtin: { do: 'fail', outcome: 'no_effect' } },
    { name: 'say', effect: 'read', builtin: { do: 'echo' } },
    { name: 'nap', effect: 'read', builtin: { do: 'sleep', for: '300ms' } }
  ]
}

export const take = (id, sku, more = {}) => ({ id, call: 'take', with: { sku, qty: 1 }, ...more })

export const statuses = (saga) => Object.fromEntries(saga.steps.map((step) => [step.id, step.status]))
export const stepOf = (saga, id) => {
  const step = saga.steps.find((one) => one.id === id)
  expect(step, `the saga has a step ${id}`, saga)
  return step
}

// Returns what happened to a saga in the shop, in that order: "do STEP", "undo STEP".
export function happened(world, saga) {
  const names = new Map()
  for (const step of saga.steps) {
    if (step.key) names.set(step.key, `do ${step.id}`)
    if (step.compensation?.key) names.set(step.compensation.key, `undo ${step.id}`)
  }
  return world
    .ledger()
    .filter((line) => line.effect === 1 && names.has(line.key))
    .map((line) => names.get(line.key))
}

// Returns the lines of the ledger about the forward calls of its steps.
export function effectsOf(world, saga) {
  const keys = new Set(saga.steps.map((step) => step.key).filter(Boolean))
  return world.ledger().filter((line) => line.effect === 1 && keys.has(line.key))
}

export const undone = (world, saga) =>
  happened(world, saga)
    .filter((what) => what.startsWith('undo '))
    .map((what) => what.slice(5))
export const done = (world, saga) =>
  happened(world, saga)
    .filter((what) => what.startsWith('do '))
    .map((what) => what.slice(3))

// Checks that each effect was undone, and none twice.
export function nothingStands(world, saga) {
  const did = done(world, saga).sort()
  const undid = undone(world, saga).sort()
  expect(new Set(did).size === did.length, 'nothing happened twice', did)
  expectEqual(undid, did, 'what was undone, of what was done')
}

export async function finish(world, id, status, seconds = 60) {
  const saga = await world.until(id, undefined, seconds)
  expect(saga.status === status, `the saga should be ${status}`, saga)
  return saga
}

export async function waitsAt(world, id, step, seconds = 30) {
  for (const end = Date.now() + seconds * 1000; ; await sleep(20)) {
    const saga = await world.saga(id)
    if (saga.steps.some((one) => one.id === step && one.status === 'waiting')) return saga
    expect(
      Date.now() < end && !['completed', 'compensated', 'abandoned'].includes(saga.status),
      `the saga waits at ${step}`,
      saga
    )
  }
}

// --- what people do ---

export function signal(world, id, name, payload, key) {
  return world.api('POST', `/v1/sagas/${id}/signals/${name}`, payload, {
    headers: key ? { 'idempotency-key': key } : {}
  })
}

export async function approvalOf(world, id, seconds = 30) {
  for (const end = Date.now() + seconds * 1000; ; await sleep(30)) {
    const open = await world.read('/v1/approvals?status=open&limit=500')
    const found = open.json?.items?.find((one) => one.saga === id)
    if (found) return found
    expect(Date.now() < end, 'an approval is asked for', open.text)
  }
}

export function decide(world, approval, decision, more = {}) {
  return world.api('POST', `/v1/approvals/${approval.n}`, { decision, note: 'as the test wants it', ...more })
}

export function order(world, id, verb, body = { note: 'as the test wants it' }) {
  return world.api('POST', `/v1/sagas/${id}/${verb}`, body)
}

export async function logOf(world, id) {
  const items = []
  for (let cursor = ''; ;) {
    const page = await world.read(`/v1/sagas/${id}/log?limit=500${cursor}`)
    expect(page.status === 200, 'the log', page.text)
    items.push(...page.json.items)
    if (!page.json.next_cursor) return items
    cursor = `&cursor=${encodeURIComponent(page.json.next_cursor)}`
  }
}

export async function replayAll(world) {
  const replayed = world.replayAll()
  expect(replayed.status === 0, 'sagactl replay --all', replayed.stdout.slice(-1500) + replayed.stderr.slice(-500))
}

// Computes the idempotency key from the words of the contract.
export function keyOf({ run, step, tool, direction = 'do', scope = '', generation = 0 }) {
  const hash = createHash('sha256').update('sk1')
  for (const member of ['default', run, step, tool, direction, scope, String(generation)]) {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(Buffer.byteLength(member))
    hash.update(length).update(member)
  }
  const hex = hash.digest('hex')
  const variant = '89ab'[parseInt(hex[16], 16) & 3]
  const parts = [hex.slice(0, 8), hex.slice(8, 12), '8' + hex.slice(13, 16), variant + hex.slice(17, 20)]
  return [...parts, hex.slice(20, 32)].join('-')
}
