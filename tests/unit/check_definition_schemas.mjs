// Are schema/*.schema.json right about definitions: do they accept every example, and one document for each member, and refuse what
// the engine refuses? ajv comes from npm; tools/test installs it, NODE_MODULES says where.
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

let Ajv
try {
  Ajv = createRequire((process.env.NODE_MODULES ?? process.cwd()) + '/here.js')('ajv/dist/2020').default
} catch {
  console.log('skipped: ajv is not installed (tools/test does it)')
  process.exit(77)
}
const dir = process.env.SCHEMA_DIR ?? 'schema'
const read = (name) => JSON.parse(readFileSync(join(dir, name), 'utf8'))
const ajv = new Ajv({ strict: false, allErrors: true })
ajv.addSchema(read('tool.schema.json'), 'tool.schema.json')
const check = ajv.compile(read('definition.schema.json'))
const faults = []

const holds = (what, document, wanted) => {
  if (check(document) !== wanted) faults.push(`${what}: ${wanted ? ajv.errorsText(check.errors, { separator: '\n    ' }) : 'is accepted'}`)
}
const tool = (members) => ({ tools: [{ name: 't', builtin: { do: 'echo' }, effect: 'idempotent', ...members }] })
const saga = (members) => ({ sagas: [{ name: 's', steps: [{ id: 'x', call: 't' }], ...members }] })
const precheck = { http: { url: 'http://x' }, done: '${ .response.ok }' }
const either = (a, b) => ({ if: '${ .args.x }', then: a, else: b })

for (const name of readdirSync(join(dir, 'examples'))) holds(name, read('examples/' + name), true)

const good = {
  precheck: tool({ precheck: { ...precheck, blocked: '${ .response.why }', result: { id: '${ .response.id }' }, timeout: '1s' } }),
  guards: tool({ rate: { limit: 1, per: '1s' }, concurrency: 1, breaker: {} }),
  breaker: tool({ breaker: { failures: 1, window: '1s', cooldown: '1s' } }),
  cost: tool({ cost: 0 }),
  'cost of a result': tool({ cost: '${ .result.fee }' }),
  duplicates: tool({ on_duplicate: 'allow', material: ['/a', '/items/0'], volatile: ['/b~1c', '/items/*/at'], ttl: '1h', on_expired: 'again' }),
  'read or once': tool({ effect: either('read', 'once'), terminal: true }),
  'keyed or checked': tool({ effect: either('keyed', 'checked'), key: { window: '1h' }, probe: { http: { url: 'x' } } }),
  'volatile of a read': tool({ effect: 'read', volatile: ['/a'], cost: 1, rate: { limit: 1, per: '1s' } }),
  budget: saga({ budget: { calls: 0, emissions: 5, micros: 1000000 } })
}
const bad = {
  'precheck without done': tool({ precheck: { http: { url: 'x' } } }),
  'precheck without adapter': tool({ precheck: { done: '${ .response }' } }),
  'precheck of a read': tool({ effect: 'read', precheck }),
  'rate without per': tool({ rate: { limit: 1 } }),
  'rate of nothing': tool({ rate: { limit: 0, per: '1s' } }),
  'no concurrency': tool({ concurrency: 0 }),
  'breaker of nothing': tool({ breaker: { failures: 0 } }),
  'cost below nothing': tool({ cost: -1 }),
  'half a cost': tool({ cost: 0.5 }),
  'cost in words': tool({ cost: '5' }),
  'unknown on_duplicate': tool({ on_duplicate: 'ignore' }),
  'on_duplicate of a read': tool({ effect: 'read', on_duplicate: 'refuse' }),
  'material without slash': tool({ material: ['a'] }),
  'material with a wrong escape': tool({ material: ['/a~2'] }),
  'material twice': tool({ material: ['/a', '/a'] }),
  'all arguments volatile': tool({ volatile: [''] }),
  'a volatile element': tool({ volatile: ['/items/0'] }),
  'all elements volatile': tool({ volatile: ['/items/*'] }),
  'ttl in words': tool({ ttl: 'long' }),
  'unknown on_expired': tool({ on_expired: 'forget' }),
  'effect without else': tool({ effect: { if: '${ .args.x }', then: 'read' } }),
  'effect in effect': tool({ effect: either('read', either('read', 'once')) }),
  'perhaps keyed, without window': tool({ effect: either('once', 'keyed') }),
  'perhaps checked, without probe': tool({ effect: either('checked', 'once') }),
  'a read either way, terminal': tool({ effect: either('read', 'read'), terminal: true }),
  'empty budget': saga({ budget: {} }),
  'budget below nothing': saga({ budget: { calls: -1 } }),
  'misspelt budget': saga({ budget: { call: 1 } }),
  locks: saga({ locks: [] }),
  sql: tool({ sql: {} })
}
for (const [what, document] of Object.entries(good)) holds(what, document, true)
for (const [what, document] of Object.entries(bad)) holds(what, document, false)
for (const fault of faults) console.log(fault)
process.exit(faults.length ? 1 : 0)
