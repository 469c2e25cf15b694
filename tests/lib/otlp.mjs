// Decodes a request for ExportTraceService in the JSON of OTLP, by the messages of opentelemetry-proto 1.x alone: it
// shares no code with sagad, and takes nothing that a receiver of protobuf could not. Ids are lower-case hexadecimal
// digits, 64-bit numbers are text, enumerations are numbers, and a member that the message does not have is a fault.

const fail = (path, what) => {
  throw new Error(`${path || '/'}: ${what}`)
}
const is = (test, what) => (value, path) => (test(value) ? value : fail(path, `${JSON.stringify(value)} is ${what}`))
const text = is((v) => typeof v === 'string', 'no text')
const uint32 = is((v) => Number.isInteger(v) && v >= 0 && v < 2 ** 32, 'no uint32')
const flag = is((v) => typeof v === 'boolean', 'no boolean')
const hex = (digits) => is((v) => new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`).test(v), `not ${digits} digits`)
const enumeration = (most) => is((v) => Number.isInteger(v) && v >= 0 && v <= most, 'no number of the enumeration')
const fixed64 = (value, path) =>
  typeof value === 'string' && /^[0-9]{1,20}$/.test(value) && BigInt(value) < 2n ** 64n
    ? BigInt(value)
    : fail(path, `${JSON.stringify(value)} is no 64-bit number as text`)
const int64 = (value, path) =>
  typeof value === 'string' && /^-?[0-9]{1,19}$/.test(value) ? Number(value) : fail(path, 'no int64 as text')

const list = (of) => (value, path) =>
  Array.isArray(value) ? value.map((item, i) => of(item, `${path}/${i}`)) : fail(path, 'no array')

const message =
  (members, required = []) =>
  (value, path = '') => {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) fail(path, 'no object')
    for (const name of required) if (!(name in value)) fail(path, `lacks ${name}`)
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => {
        if (!members[name]) fail(path, `there is no member ${name}`)
        return [name, members[name](inner, `${path}/${name}`)]
      })
    )
  }

const kinds = { stringValue: text, boolValue: flag, intValue: int64 }
const anyValue = (value, path) => {
  const entries = Object.entries(value ?? {})
  if (entries.length !== 1 || !kinds[entries[0][0]]) fail(path, 'no AnyValue that is known here')
  return kinds[entries[0][0]](entries[0][1], path)
}
const attributes = (value, path) => {
  const pairs = list(message({ key: text, value: anyValue }, ['key', 'value']))(value, path)
  const names = pairs.map(({ key }) => key)
  if (new Set(names).size !== names.length) fail(path, 'an attribute stands there twice')
  return Object.fromEntries(pairs.map((pair) => [pair.key, pair.value]))
}

const event = message({ timeUnixNano: fixed64, name: text, attributes, droppedAttributesCount: uint32 }, ['name'])
const link = message({ traceId: hex(32), spanId: hex(16), traceState: text, attributes, flags: uint32 }, [
  'traceId',
  'spanId'
])
const span = message(
  {
    traceId: hex(32),
    spanId: hex(16),
    traceState: text,
    parentSpanId: hex(16),
    flags: uint32,
    name: text,
    kind: enumeration(5),
    startTimeUnixNano: fixed64,
    endTimeUnixNano: fixed64,
    attributes,
    droppedAttributesCount: uint32,
    events: list(event),
    droppedEventsCount: uint32,
    links: list(link),
    droppedLinksCount: uint32,
    status: message({ message: text, code: enumeration(2) })
  },
  ['traceId', 'spanId', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano']
)
const scope = message({ name: text, version: text, attributes, droppedAttributesCount: uint32 })
const request = message(
  {
    resourceSpans: list(
      message({
        resource: message({ attributes, droppedAttributesCount: uint32 }),
        scopeSpans: list(message({ scope, spans: list(span), schemaUrl: text })),
        schemaUrl: text
      })
    )
  },
  ['resourceSpans']
)

// Returns the spans, each with the attributes of its resource as `resource`.
export function decodeTraces(body) {
  const spans = request(JSON.parse(body)).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans: inside }) => inside.map((one) => ({ ...one, resource: resource.attributes })))
  )
  for (const one of spans)
    if (one.endTimeUnixNano < one.startTimeUnixNano) fail(one.name, 'the span ends before it begins')
  return spans
}
