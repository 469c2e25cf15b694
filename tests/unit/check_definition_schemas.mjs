// Are schema/*.schema.json right about definitions? They must accept every example and one document for each member,
// and refuse what the engine refuses. ajv comes from npm; tools/test installs it, and NODE_MODULES says where.
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
  if (check(document) !== wanted)
    faults.push(`${what}: ${wanted ? ajv.errorsText(check.errors, { separator: '\n    ' }) : 'is accepted'}`)
}
const tool = (members) => ({ tools: [{ name: 't', builtin: { do: 'echo' }, effect: 'idempotent', ...members }] })
const saga = (members) => ({ sagas: [{ name: 's', steps: [{ id: 'x', call: 't' }], ...members }] })
const step = (members) => saga({ steps: [{ id: 'x', ...members }] })
const precheck = { http: { url: 'http://x' }, done: '${ .response.ok }' }
const either = (a, b) => ({ if: '${ .args.x }', then: a, else: b })

for (const name of readdirSync(join(dir, 'examples')).filter((one) => one.endsWith('.json')))
  holds(name, read('examples/' + name), true)

const good = {
  'every keyword of an input': saga({
    input: {
      $defs: { n: { type: 'integer', multipleOf: 0.5 } },
      propertyNames: { maxLength: 9 },
      if: { required: ['a'] },
      then: { required: ['b'] },
      properties: {
        a: { $ref: '#/$defs/n' },
        b: { prefixItems: [true], contains: false, minContains: 0, maxContains: 1, uniqueItems: true }
      },
      allOf: [true],
      anyOf: [true],
      oneOf: [{ format: 'email' }],
      not: { const: 1 }
    }
  }),
  precheck: tool({
    precheck: { ...precheck, blocked: '${ .response.why }', result: { id: '${ .response.id }' }, timeout: '1s' }
  }),
  guards: tool({ rate: { limit: 1, per: '1s' }, concurrency: 1, breaker: {} }),
  'what is offered': tool({ expose: { title: 'T', step: true, scope: false, open_world: false } }),
  'what is kept out': tool({ expose: false }),
  'a saga that is offered': saga({ expose: true }),
  breaker: tool({ breaker: { failures: 1, window: '1s', cooldown: '1s' }, test: 'look' }),
  'an mcp server over HTTP': {
    tools: [
      {
        name: 't',
        effect: 'keyed',
        terminal: true,
        key: { meta: 'shop.example/key', window: '1h' },
        mcp: { tool: 'x', server: { url: 'http://x', bearer: '${ secret("x") }' } }
      }
    ]
  },
  'an mcp server over standard input': {
    tools: [
      {
        name: 't',
        effect: 'read',
        mcp: { tool: 'x', server: { argv: ['x'], env: { A: 'b' }, cwd: '/' }, arguments: { a: 1 } }
      }
    ]
  },
  cost: tool({ cost: 0 }),
  'cost of a result': tool({ cost: '${ .result.fee }' }),
  sql: tool({
    builtin: undefined,
    sql: { database: '${ secret("a") }', statement: 'select $1', params: [1], barrier: true }
  }),
  'probe by sql': tool({
    effect: 'checked',
    probe: { sql: { database: 'x', statement: 'select $key' }, outcome: { absent: '${ .response.count == 0 }' } }
  }),
  duplicates: tool({
    on_duplicate: 'allow',
    material: ['/a', '/items/0'],
    volatile: ['/b~1c', '/items/*/at'],
    sensitive: ['/card', '/items/*/pin', '/result', '/result/token'],
    ttl: '1h',
    on_expired: 'again'
  }),
  'read or once': tool({ effect: either('read', 'once'), terminal: true }),
  'keyed or checked': tool({
    effect: either('keyed', 'checked'),
    key: { window: '1h' },
    probe: { http: { url: 'x' } }
  }),
  'volatile of a read': tool({ effect: 'read', volatile: ['/a'], cost: 1, rate: { limit: 1, per: '1s' } }),
  'sensitive input and output': saga({ sensitive: ['/card', '/result/token'] }),
  budget: saga({ budget: { calls: 0, emissions: 5, micros: 1000000 } }),
  'compensation and tags': saga({ compensation: { concurrency: 4 }, tags: { team: 'shop' } }),
  'a child': step({ saga: 'c', with: { a: '${ .input.a }' }, on_failure: 'escalate' }),
  'a child for each': step({
    saga: 'c',
    for_each: '${ .input.list }',
    concurrency: 3,
    with: '${ .item }',
    when: '${ .input.x }'
  }),
  'a call for each': step({
    call: 't',
    for_each: '${ .input.list }',
    scope: '${ .item.id }',
    retry: {},
    timeout: '1s',
    compensate: { tool: 'u', with: '${ .item }' }
  }),
  'a sleep': step({ sleep: '30m' }),
  'a sleep until': step({ sleep: '2030-01-31T09:00:00.5+01:00', after: [] }),
  'a sleep as told': step({ sleep: '${ .input.until }' }),
  'a sleep of so many hours': step({ sleep: '${ .input.hours }h' }),
  'a signal': step({ signal: { name: 'paid.now', timeout: '2d' }, on_failure: 'continue' }),
  'a signal for ever': step({ signal: { name: 'x' } }),
  'an approval': step({ approve: { show: { sum: '${ .input.sum }' }, timeout: '1h', roles: ['agent', 'admin'] } }),
  'an approval by somebody else': step({ approve: { not_by: 'starter' } }),
  'an approval of nothing': step({ approve: {} }),
  locks: saga({ locks: ['order:${ .input.id }', { key: 'till', when_taken: 'fail' }, { key: 'desk' }] }),
  'no locks': saga({ locks: [] }),
  followers: saga({
    then: [{ saga: 's' }, { saga: 'mail', input: { id: '${ .input.id }' }, id: 'mail-${ .saga.id }' }]
  }),
  retention: saga({ retention: '30d' }),
  'a condition': saga({ steps: [{ id: 'x', call: 't', when: '${ .input.express }', on_failure: 'continue' }] })
}
const bad = {
  'an input with a pattern': saga({ input: { pattern: 'x' } }),
  'an input with then alone': saga({ input: { then: true } }),
  'an input that refers elsewhere': saga({ input: { $ref: '#' } }),
  'an input with an empty allOf': saga({ input: { allOf: [] } }),
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
  'sensitive without slash': tool({ sensitive: ['card'] }),
  'sensitive twice': saga({ sensitive: ['/card', '/card'] }),
  'sensitive in words': saga({ sensitive: 'card' }),
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
  'a condition that is a value': saga({ steps: [{ id: 'x', call: 't', when: true }] }),
  'a condition that is no expression': saga({ steps: [{ id: 'x', call: 't', when: '.input.x' }] }),
  'unknown on_failure': saga({ steps: [{ id: 'x', call: 't', on_failure: 'ignore' }] }),
  'compensation without concurrency': saga({ compensation: {} }),
  'no undo at once': saga({ compensation: { concurrency: 0 } }),
  'a tag that is a number': saga({ tags: { a: 1 } }),
  'an mcp tool with a header that is a list': {
    tools: [{ name: 't', effect: 'read', mcp: { tool: 'x', server: { url: 'http://x', headers: [] } } }]
  },
  'an mcp tool without a server': { tools: [{ name: 't', effect: 'read', mcp: { tool: 'x' } }] },
  'an mcp server of two kinds': {
    tools: [{ name: 't', effect: 'read', mcp: { tool: 'x', server: { url: 'http://x', argv: ['x'] } } }]
  },
  'a key of the protocol itself': {
    tools: [
      {
        name: 't',
        effect: 'keyed',
        key: { meta: 'io.modelcontextprotocol/x', window: '1h' },
        mcp: { tool: 'x', server: { url: 'http://x' } }
      }
    ]
  },
  'a step that does nothing': step({ with: {} }),
  'a step of two kinds': step({ call: 't', saga: 'c' }),
  'a wait of two kinds': step({ sleep: '1m', signal: { name: 'x' } }),
  'a child that is no name': step({ saga: { steps: [] } }),
  'retries of a child': step({ saga: 'c', retry: {} }),
  'a timeout of a child': step({ saga: 'c', timeout: '1m' }),
  'a scope of a child': step({ saga: 'c', scope: 'x' }),
  'a compensator of a child': step({ saga: 'c', compensate: { tool: 'u' } }),
  'a sleep that is a number': step({ sleep: 60 }),
  'a sleep without a unit': step({ sleep: '60' }),
  'a sleep with arguments': step({ sleep: '1m', with: {} }),
  'a timeout of a sleep': step({ sleep: '1m', timeout: '2m' }),
  'a signal that is a name': step({ signal: 'paid' }),
  'a signal without a name': step({ signal: { timeout: '1m' } }),
  'a signal awaited for no time': step({ signal: { name: 'x', timeout: '0s' } }),
  'a timeout beside a signal': step({ signal: { name: 'x' }, timeout: '1m' }),
  'an approval by nobody': step({ approve: { roles: [] } }),
  'an approval by a stranger': step({ approve: { roles: ['boss'] } }),
  'an approval by not nobody': step({ approve: { not_by: 'nobody' } }),
  'a role twice': step({ approve: { roles: ['admin', 'admin'] } }),
  'a misspelt member of an approval': step({ approve: { shows: 1 } }),
  'for_each that is a list': step({ call: 't', for_each: [1] }),
  'a concurrency without for_each': step({ call: 't', concurrency: 2 }),
  'a concurrency of none': step({ call: 't', for_each: '${ .input.x }', concurrency: 0 }),
  'a lock that is a number': saga({ locks: [1] }),
  'a lock of nothing': saga({ locks: [''] }),
  'a lock that queues': saga({ locks: [{ key: 'x', when_taken: 'queue' }] }),
  'too many locks': saga({ locks: Array.from({ length: 17 }, (_, i) => 'k' + i) }),
  'a follower that is a name': saga({ then: ['s'] }),
  'a follower without a saga': saga({ then: [{ input: {} }] }),
  'retention of nothing': saga({ retention: '0s' }),
  'sql without a statement': tool({ builtin: undefined, sql: { database: 'x' } }),
  'sql with a template for a statement': tool({
    builtin: undefined,
    sql: { database: 'x', statement: 'select ${ .args.a }' }
  })
}
for (const [what, document] of Object.entries(good)) holds(what, document, true)
for (const [what, document] of Object.entries(bad)) holds(what, document, false)
for (const fault of faults) console.log(fault)
process.exit(faults.length ? 1 : 0)
