// The messages of PostgreSQL's protocol in a stream of bytes, and what is bound to a statement: for the proxies that
// stand between sagad and its database.

const asksForEncryption = new Set([80877103, 80877104]) // SSL, GSS: asked before the startup message

// Cuts a stream of bytes into messages. The first one of a client has no type.
export class Messages {
  constructor(untyped) {
    this.rest = Buffer.alloc(0)
    this.untyped = untyped
  }

  // [type, body, whole message]; the first message of a client has the type ''.
  *take(bytes) {
    this.rest = this.rest.length ? Buffer.concat([this.rest, bytes]) : bytes
    for (;;) {
      const at = this.untyped ? 0 : 1
      if (this.rest.length < at + 4) return
      const length = this.rest.readInt32BE(at) + at
      if (this.rest.length < length) return
      const message = this.rest.subarray(0, length)
      this.rest = this.rest.subarray(length)
      if (!this.untyped) {
        yield [String.fromCharCode(message[0]), message.subarray(5), message]
      } else {
        // A cancel request is the last thing on its connection; a refused encryption is followed by the startup
        // message.
        if (!asksForEncryption.has(message.readInt32BE(4))) this.untyped = false
        yield ['', message.subarray(4), message]
      }
    }
  }
}

// The name of the statement that a Bind message is for.
export function statementOf(body) {
  const portal = body.indexOf(0)
  return body.toString('latin1', portal + 1, body.indexOf(0, portal + 1))
}

// The parameters of a Bind message.
export function parametersOf(body) {
  const values = []
  let at = body.indexOf(0, body.indexOf(0) + 1) + 1
  at += 2 + 2 * body.readInt16BE(at)
  const count = body.readInt16BE(at)
  at += 2
  for (let i = 0; i < count; i++) {
    const length = Math.max(0, body.readInt32BE(at))
    values.push(body.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return values
}

// Of a one-dimensional array in PostgreSQL's binary form.
export function* elementsOf(array) {
  const count = array.readInt32BE(12)
  for (let i = 0, at = 20; i < count; i++) {
    const length = array.readInt32BE(at)
    yield array.subarray(at + 4, at + 4 + length)
    at += 4 + length
  }
}
