// Runs the official JSON Schema test suite (draft 2020-12, the required tests), as Debian's
// libtest-json-schema-acceptance-perl ships it. A schema that the engine accepts must give the suite's answers. A
// schema that it refuses must be refused for a keyword or a rule that schema/input-schema.md names. The argument is
// schema_lines.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const folder = '/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests/draft2020-12'
if (!existsSync(folder)) {
  console.log('skipped: libtest-json-schema-acceptance-perl is not installed (tools/test does it)')
  process.exit(77)
}

// Cases outside the documented subset: keywords, references, and rules that are stricter than the standard.
const outside = [
  'pattern',
  'patternProperties',
  '$id',
  '$anchor',
  '$dynamicRef',
  '$dynamicAnchor',
  '$vocabulary',
  'dependentRequired',
  'dependentSchemas',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  'readOnly',
  'writeOnly',
  'deprecated',
  'dependencies',
  '$recursiveRef',
  '$recursiveAnchor',
  'definitions'
]
const has = (value, keyword) =>
  value !== null &&
  typeof value === 'object' &&
  (Array.isArray(value)
    ? value.some((item) => has(item, keyword))
    : keyword in value || Object.values(value).some((item) => has(item, keyword)))
const references = (value) =>
  value === null || typeof value !== 'object'
    ? []
    : Array.isArray(value)
      ? value.flatMap(references)
      : Object.entries(value).flatMap(([name, item]) =>
          name === '$ref' && typeof item === 'string' ? [item] : references(item)
        )
const keywords = new Set([
  'type',
  'enum',
  'const',
  'properties',
  'required',
  'additionalProperties',
  'propertyNames',
  'minProperties',
  'maxProperties',
  'items',
  'prefixItems',
  'contains',
  'minContains',
  'maxContains',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  '$ref',
  '$defs',
  'title',
  'description',
  'default',
  'examples',
  'format',
  '$comment',
  '$schema'
])
const why = (schema, text) => {
  if ((schema?.$schema ?? '').startsWith('http://localhost')) return 'another $schema'
  for (const keyword of outside) if (has(schema, keyword)) return keyword
  if (references(schema).some((to) => !/^#\/\$defs\/[^/~%]+$/.test(to))) return 'another reference'
  if (/leads back|refers back|itself/.test(text)) return 'a recursive schema'
  if (has(schema, '$defs') && /\$defs/.test(text)) return '$defs not at the top'
  if (has(schema, '$ref') && /\$ref/.test(text)) return 'another reference'
  if (schema && typeof schema === 'object' && Object.keys(schema).some((name) => !keywords.has(name)))
    return 'an unknown keyword'
  if (/without|neither|beside/.test(text)) return 'stricter than the standard'
  if (/digits/.test(text)) return 'a bound'
  return null
}

const lines = []
for (const file of readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .sort()) {
  for (const group of JSON.parse(readFileSync(`${folder}/${file}`, 'utf8'))) {
    for (const test of group.tests) lines.push({ file, group: group.description, schema: group.schema, ...test })
  }
}
const run = spawnSync(process.argv[2], {
  input: lines.map(({ schema, data }) => JSON.stringify({ schema, value: data }) + '\n').join(''),
  maxBuffer: 1 << 28
})
const answers = run.stdout.toString().split('\n')
let taken = 0
let wrong = 0
const reasons = {}
const files = {}
lines.forEach((line, i) => {
  const answer = answers[i] ?? 'no answer'
  const word = answer.split(' ')[0]
  const place = `${line.file}: ${line.group}: ${line.description}`
  files[line.file] ??= { taken: 0, refused: 0 }
  if (word === 'valid' || word === 'invalid') {
    taken++
    files[line.file].taken++
    if ((word === 'valid') !== line.valid) {
      wrong++
      console.log(
        `${place}: ${line.valid ? 'valid' : 'invalid'} by the suite, but ${answer}\n  ` +
          `${JSON.stringify(line.schema)} ${JSON.stringify(line.data)}`
      )
    }
    return
  }
  files[line.file].refused++
  const reason =
    word === 'refused'
      ? why(line.schema, answer)
      : JSON.stringify(line).includes('\\u0000')
        ? 'a text with U+0000, which sagad takes nowhere'
        : null
  if (!reason) {
    wrong++
    console.log(`${place}: ${answer}: this is in the documented subset\n  ${JSON.stringify(line.schema)}`)
    return
  }
  reasons[reason] = (reasons[reason] ?? 0) + 1
})
console.log(`${lines.length} tests: ${taken} in the subset, ${wrong} wrong; refused for:`)
for (const [reason, count] of Object.entries(reasons).sort((a, b) => b[1] - a[1]))
  console.log(`  ${String(count).padStart(4)} ${reason}`)
if (run.status !== 0 || taken < 500 || wrong > 0) process.exit(1)
