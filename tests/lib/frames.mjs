// Messages of PostgreSQL's protocol in a stream of bytes, and the values bound to a statement, for the proxies between
// sagad and its database.

const asksForEncryption = new Set([80877103, 80877104]) // SSL and GSS come before the startup message

// Cuts a stream of bytes into messages. The first message of a client has no type.
export class Messages {
  constructor(untyped) {
    this.rest = Buffer.alloc(0)
    this.untyped = untyped
  }

  // Yields [type, body, whole message]; the first message of a client has the type ''.
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
        // A cancel request is the last message on its connection. A refused encryption is followed by the startup
        // message.
        if (!asksForEncryption.has(message.readInt32BE(4))) this.untyped = false
        yield ['', message.subarray(4), message]
      }
    }
  }
}

// Returns the name of the statement of a Bind message.
export function statementOf(body) {
  const portal = body.indexOf(0)
  return body.toString('latin1', portal + 1, body.indexOf(0, portal + 1))
}

// Returns the parameters of a Bind message.
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

// Yields the elements of a one-dimensional array in PostgreSQL's binary form.
export function* elementsOf(array) {
  const count = array.readInt32BE(12)
  for (let i = 0, at = 20; i < count; i++) {
    const length = array.readInt32BE(at)
    yield array.subarray(at + 4, at + 4 + length)
    at += 4 + length
  }
}
