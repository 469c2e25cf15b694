// The JSON of OTLP beside the messages that OpenTelemetry itself generates from its .proto files, in its package for
// JavaScript: what they do not know, or know otherwise, does not come back from protobuf as it was.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const modules = process.env.NODE_MODULES ?? ''
const generated = '@opentelemetry/otlp-transformer/build/src/generated/root.js'

const ids = new Set(['traceId', 'spanId', 'parentSpanId'])

// Applies `change` to each id, and leaves out lists without an element, which protobuf cannot tell from none.
function changed(value, change) {
  if (Array.isArray(value)) return value.map((one) => changed(one, change))
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => !(Array.isArray(one) && one.length === 0))
      .map(([name, one]) => [name, ids.has(name) ? change(one) : changed(one, change)])
  )
}

// Returns undefined where the package is not installed; else a function that takes a request and returns
// {sent, received}: the request, and what is left of it behind protobuf.
export function officialMessages() {
  if (!existsSync(join(modules, generated))) return undefined
  const root = createRequire(join(modules, 'here.js'))(generated)
  const message = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest
  return (text) => {
    const sent = changed(JSON.parse(text), (id) => id)
    const object = changed(sent, (id) => Buffer.from(id, 'hex'))
    const fault = message.verify(message.toObject(message.fromObject(object)))
    if (fault) throw new Error(fault)
    const bytes = message.encode(message.fromObject(object)).finish()
    const back = message.toObject(message.decode(bytes), { longs: String, bytes: Buffer })
    return { sent, received: changed(back, (id) => Buffer.from(id).toString('hex')) }
  }
}
