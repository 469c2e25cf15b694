// Does the engine accept and refuse the same values as ajv, over random schemas of its subset? The argument is the
// program schema_lines. Each run draws other schemas, by SAGAD_TEST_SEED; ROUNDS makes it longer. Numbers are small,
// because ajv computes in binary fractions and the engine does not.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'

let Ajv
try {
  Ajv = createRequire((process.env.NODE_MODULES ?? process.cwd()) + '/here.js')('ajv/dist/2020').default
} catch {
  console.log('skipped: ajv is not installed (tools/test does it)')
  process.exit(77)
}
const seed = Number(process.env.SAGAD_TEST_SEED ?? 20260131)
const rounds = Number(process.env.ROUNDS ?? (process.env.SAGAD_TEST_LONG === '1' ? 20000 : 600))
let state = seed >>> 0
const random = (n) => {
  // mulberry32
  state = (state + 0x6d2b79f5) >>> 0
  let t = Math.imul(state ^ (state >>> 15), state | 1)
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
  return ((t ^ (t >>> 14)) >>> 0) % n
}
const pick = (list) => list[random(list.length)]
const some = (most, make) => Array.from({ length: random(most + 1) }, make)
const names = ['a', 'b', 'c', 'dd', 'ä', 'x/y', 'm~n', '']
const numbers = [0, 1, 2, 3, 4, 6, -1, -2, 0.5, 1.5, 2.25, 10, 100]

const value = (depth) => {
  const kind = random(depth > 0 ? 8 : 5)
  if (kind === 0) return null
  if (kind === 1) return random(2) === 1
  if (kind < 4) return pick(numbers)
  if (kind === 4) return pick(['', 'a', 'ab', 'abc', 'ä', '🙂', '🙂🙂', '1'])
  if (kind < 6) return some(4, () => value(depth - 1))
  return Object.fromEntries(some(4, () => [pick(names), value(depth - 1)]))
}
const keywords = {
  type: () =>
    pick([
      'null',
      'boolean',
      'number',
      'integer',
      'string',
      'array',
      'object',
      ['string', 'null'],
      ['integer', 'object'],
      ['array', 'object']
    ]),
  enum: () =>
    Array.from(new Set([value(1), value(0), value(0)].map((v) => JSON.stringify(v))), (text) => JSON.parse(text)),
  const: () => value(1),
  properties: (d) => Object.fromEntries(some(4, () => [pick(names), schema(d - 1)])),
  // See allErrors below; test_schema.c has "".
  required: () => Array.from(new Set(some(2, () => pick(names.filter((name) => name !== ''))))),
  additionalProperties: (d) => schema(d - 1),
  propertyNames: (d) => schema(d - 1),
  minProperties: () => random(3),
  maxProperties: () => random(4),
  items: (d) => schema(d - 1),
  prefixItems: (d) => [schema(d - 1), ...some(2, () => schema(d - 1))],
  minItems: () => random(3),
  maxItems: () => random(4),
  uniqueItems: () => random(3) > 0,
  contains: (d) => schema(d - 1),
  minLength: () => random(3),
  maxLength: () => random(3),
  minimum: () => pick(numbers),
  maximum: () => pick(numbers),
  exclusiveMinimum: () => pick(numbers),
  exclusiveMaximum: () => pick(numbers),
  multipleOf: () => pick([0.25, 0.5, 1, 1.5, 2, 3, 5]),
  allOf: (d) => [schema(d - 1), ...some(2, () => schema(d - 1))],
  anyOf: (d) => [schema(d - 1), ...some(2, () => schema(d - 1))],
  oneOf: (d) => [schema(d - 1), ...some(2, () => schema(d - 1))],
  not: (d) => schema(d - 1),
  if: (d) => schema(d - 1),
  $ref: () => '#/$defs/' + pick(['p', 'q']),
  format: () => 'email',
  title: () => 'a title'
}
const schema = (depth, above = keywords) => {
  if (depth <= 0) return random(6) === 0 ? random(2) === 1 : { type: keywords.type() }
  const made = {}
  for (const name of new Set(Array.from({ length: 1 + random(4) }, () => pick(Object.keys(above)))))
    made[name] = above[name](depth)
  if ('enum' in made) delete made.const
  if ('if' in made) {
    const branches = 1 + random(3)
    if (branches & 1) made.then = schema(depth - 1, above)
    if (branches & 2) made.else = schema(depth - 1, above)
  }
  if ('contains' in made && random(2)) made.minContains = random(3)
  if ('contains' in made && random(2)) made.maxContains = random(3)
  if ('contains' in made) delete made.prefixItems // see allErrors below
  return made
}

const plain = ['type', 'properties', 'required', 'minimum', 'minLength', 'minItems']
const withoutRef = Object.fromEntries(Object.entries(keywords).filter(([name]) => plain.includes(name)))
const def = () => JSON.parse(JSON.stringify(schema(1, withoutRef)))
const cases = []
// allErrors: without it ajv 8.20 overlooks that a required member named "" is missing, and that an empty array fails
// `contains` beside `prefixItems`. Below `not` and `if` ajv never uses it, so these two cases are not made here;
// test_schema.c has them.
const ajv = new Ajv({
  strict: false,
  allErrors: true,
  validateFormats: false,
  validateSchema: true,
  code: { optimize: false } // each schema is asked eight times: to make it quick costs more
})
const seen = new Set()

for (let i = 0; i < rounds; i++) {
  const made = { ...schema(3), $defs: { p: def(), q: def() } }
  const check = ajv.compile(made)
  for (let k = 0; k < 8; k++) {
    const v = value(3)
    cases.push({ schema: made, value: v, wanted: check(v) ? 'valid' : 'invalid' })
  }
  JSON.stringify(made, (name, v) => {
    if (name in keywords) seen.add(name)
    return v
  })
  ajv.removeSchema(made)
}
const input = cases.map((c) => JSON.stringify({ schema: c.schema, value: c.value })).join('\n') + '\n'
const run = spawnSync(process.argv[2], { input, encoding: 'utf8', maxBuffer: 1 << 30 })
const answers = run.stdout.split('\n')
const tally = { valid: 0, invalid: 0 }
let differing = 0

if (run.status !== 0) {
  console.log(`the program ended with ${run.status ?? run.signal}: ${run.stderr}`)
  process.exit(1)
}
cases.forEach((c, i) => {
  tally[c.wanted]++
  if (answers[i].split(' ')[0] === c.wanted) return
  if (++differing <= Number(process.env.SHOW ?? 5))
    console.log(
      `ajv says ${c.wanted}, the engine ${answers[i]}\n  ${JSON.stringify(c.schema)}\n  ${JSON.stringify(c.value)}`
    )
})
const missing = Object.keys(keywords).filter((name) => !seen.has(name))
if (missing.length) console.log(`never made: ${missing.join(' ')}`)
console.log(
  `seed ${seed}: ${cases.length} checks (${tally.valid} valid, ${tally.invalid} invalid), ${differing} differ from ajv`
)
process.exit(differing || missing.length || tally.valid < cases.length / 20 ? 1 : 0)
