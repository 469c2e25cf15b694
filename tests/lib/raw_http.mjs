// An HTTP client that sends the bytes it is given, right or wrong, and reads the answers one after the other.
import { connect } from 'node:net'

// A request as bytes. What `headers` says of a length holds, also where it lies.
export function request(path, body = '', headers = {}, method = 'POST') {
  const bytes = Buffer.from(body)
  const all = { Host: '127.0.0.1', 'Content-Type': 'application/json', 'Content-Length': bytes.length, ...headers }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => `${name}: ${one}`)
  )
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`), bytes])
}

// Takes the first answer off the bytes: {status, text, end}. Undefined: there is no whole one yet.
function first(bytes) {
  const head = bytes.indexOf('\r\n\r\n')
  if (head < 0) return undefined
  const text = bytes.toString('latin1', 0, head)
  const status = Number(text.slice(9, 12))
  const length = Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? 0)
  if (!/^transfer-encoding: *chunked/im.test(text)) {
    const end = head + 4 + length
    return bytes.length < end ? undefined : { status, text: bytes.toString('utf8', head + 4, end), end }
  }
  const parts = []
  for (let at = head + 4; ;) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = parseInt(bytes.toString('latin1', at, line), 16)
    if (bytes.length < line + 2 + size + 2) return undefined
    if (size === 0) return { status, text: Buffer.concat(parts).toString('utf8'), end: line + 4 }
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}

export class RawClient {
  // `from` is the address that the client comes from: each of 127.0.0.0/8 is one of this machine.
  constructor(port, from = '127.0.0.1') {
    this.bytes = Buffer.alloc(0)
    this.waiting = new Set()
    this.socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true })
    this.socket.on('data', (bytes) => {
      this.bytes = Buffer.concat([this.bytes, bytes])
      this.wake()
    })
    this.socket.on('error', () => {})
    for (const event of ['end', 'close'])
      this.socket.on(event, () => {
        this.ended = true
        this.wake()
      })
  }

  wake() {
    for (const look of [...this.waiting]) look()
  }

  // Waits until `find` returns something other than undefined; null when the server has closed before.
  until(find) {
    return new Promise((resolve) => {
      const look = () => {
        const found = find()
        if (found === undefined && !this.ended) return
        this.waiting.delete(look)
        resolve(found ?? null)
      }
      this.waiting.add(look)
      look()
    })
  }

  connected() {
    return new Promise((resolve) => {
      if (!this.socket.connecting) resolve()
      this.socket.once('connect', resolve)
      this.socket.once('close', resolve)
    })
  }

  send(bytes) {
    this.socket.write(bytes)
    return this
  }

  // The next answer: {status, text, json}; null: the server has closed without one.
  async answer() {
    const found = await this.until(() => first(this.bytes))
    if (!found) return null
    this.bytes = this.bytes.subarray(found.end)
    let json
    try {
      json = JSON.parse(found.text)
    } catch {
      /* a stream, or no body */
    }
    return { status: found.status, text: found.text, json }
  }

  // Waits for bytes of an answer that goes on.
  begun() {
    return this.until(() => (this.bytes.length > 0 ? true : undefined))
  }

  closed() {
    return this.until(() => undefined)
  }

  leave() {
    this.socket.destroy()
  }
}

export async function ask(port, bytes, from) {
  const client = new RawClient(port, from)
  const answer = await client.send(bytes).answer()
  client.leave()
  return answer
}
