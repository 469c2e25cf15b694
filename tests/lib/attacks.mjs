// Attacks over HTTP, as data: how each is made, and what it may cost sagad. `make(target)` sends `units` of the attack
// and waits until sagad has met each of them. What it opens stays open; `target.leave()` lets it go. It throws when an
// answer is wrong. `drips` is a byte that goes on coming on each connection meanwhile; sagad has to end these by
// itself. The bounds, for an optimised build:
//
// - `ms`: processor time of sagad for one unit or one byte that drips, in milliseconds, beyond what the honest clients
//   cost meanwhile;
// - `mib`: memory beyond rest, in MiB, for all units together;
// - `descriptors`: more of them than at rest, for all units together.
//
// system/test_attacks.mjs holds them; bench/attacks.mjs measures how long honest clients wait meanwhile.
import { Duplex } from 'node:stream'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { RawClient, request } from './raw_http.mjs'

const range = (count) => Array.from({ length: count }, (_, i) => i)

// Where an attack is made: at one port, from addresses of its own. It keeps what is open.
export class Target {
  open = []
  dripped = 0 // bytes; see drip()

  constructor(port, { saga, busySaga, address = 2 } = {}) {
    this.port = port
    this.address = address // the last byte of the first address that attacks come from
    this.host = { Host: `127.0.0.1:${port}` }
    this.saga = saga // one whose answer is large
    this.busySaga = busySaga // one that waits
  }

  client(next = 0) {
    const client = new RawClient(this.port, `127.0.0.${this.address + next}`)
    this.open.push(client)
    return client
  }

  get(path, more = {}) {
    return request(path, '', { ...this.host, 'Content-Type': undefined, 'Content-Length': undefined, ...more }, 'GET')
  }

  post(body, more = {}, path = '/v1/sagas') {
    return request(path, body, { ...this.host, ...more })
  }

  leave() {
    for (const client of this.open) client.leave()
    this.open = []
  }
}

function must(holds, what, shown) {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(shown)}`.slice(0, 500))
}

// Sends the bytes, each on a connection of its own, `together` at once, and gives the status of each answer to `check`;
// 0: the connection was closed without one.
async function ask(target, all, check, together = 50) {
  for (let at = 0; at < all.length; at += together)
    await Promise.all(
      all.slice(at, at + together).map(async (bytes) => {
        const client = target.client()
        const answer = await client.send(bytes).answer()
        check(answer?.status ?? 0, answer?.text)
        client.leave()
      })
    )
}

const refused = (status, text) => must(status === 0 || (status >= 400 && status < 500), 'it is refused', [status, text])

const start = '{"saga":"no-such","input":{}}'
const hidden = (target) => target.post(start).toString('latin1')

function smuggle(target, i) {
  const chunked = `${start.length.toString(16)}\r\n${start}\r\n0\r\n\r\n`
  const cases = [
    [start, { 'Content-Length': start.length, 'Transfer-Encoding': 'chunked' }],
    [start, { 'Content-Length': [start.length, 0] }],
    [start, { 'Content-Length': `${start.length}, ${start.length}` }],
    [start, { 'Content-Length': `+${start.length}` }],
    [chunked, { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked, identity' }],
    [chunked, { 'Content-Length': undefined, 'Transfer-Encoding': ['chunked', 'identity'] }],
    [chunked, { 'Content-Length': undefined, 'Transfer-Encoding': '\x0bchunked' }],
    [chunked, { 'Content-Length': undefined, 'Transfer-Encoding ': 'chunked' }],
    [start, { 'X-One': 'a\r\n b' }],
    [start, { 'X-One': `a\nContent-Length: 0\r\n\r\n${hidden(target)}` }],
    [start, { Host: [target.host.Host, 'other.example'] }],
    [
      `${start.length.toString(16)}0000000000000000\r\n${start}\r\n0\r\n\r\n`,
      { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
    ]
  ]
  const [body, headers] = cases[i % cases.length]
  return target.post(body, headers)
}

// A server of TLS answers a ClientHello with its certificate and a signature. These are the bytes of one.
function clientHello(options) {
  return new Promise((resolve) => {
    const pipe = new Duplex({
      read() {},
      write(bytes, _, done) {
        resolve(Buffer.from(bytes))
        done()
      }
    })
    connectTls({ socket: pipe, servername: 'localhost', rejectUnauthorized: false, ...options }).on('error', () => {})
  })
}

// Opens a connection, sends, waits for the first bytes that come, and leaves.
function knock(port, bytes) {
  return new Promise((resolve) => {
    const socket = connectPlain({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }, () => socket.write(bytes))
    socket
      .on('error', () => {})
      .on('data', () => socket.resetAndDestroy())
      .on('close', resolve)
  })
}

// One whole handshake. `then` may use the connection; it is waited for.
function shake(port, options, then = async () => {}) {
  return new Promise((resolve, reject) => {
    const all = { port, host: '127.0.0.1', localAddress: '127.0.0.2', rejectUnauthorized: false, ...options }
    const socket = connectTls(all, () =>
      then(socket).then((found) => {
        socket.destroy()
        resolve(found)
      }, reject)
    )
    socket.on('error', () => {}).on('close', resolve)
  })
}

// Names that a hash of the kind h * 33 + c (and that of Java, h * 31 + c) takes for one another.
function colliding(count, pairs = ['Aa', 'BB']) {
  const bits = Math.ceil(Math.log2(count))
  return range(count).map((i) =>
    range(bits)
      .map((bit) => pairs[(i >> bit) & 1])
      .join('')
  )
}

const objectOf = (names) => `{${names.map((name) => `"${name}":0`).join(',')}}`
const inputOf = (json) => `{"saga":"no-such","input":${json}}`
// With these each address may have as many connections; what a client has closed counts until sagad has seen it.
export const limits = ['--connections-max', '512', '--connections-per-address', '128']
const anAddress = 130
const perMebibyte = 30 // milliseconds for a body as large as one may be

export const attacks = [
  {
    name: 'smuggling',
    how: 'requests that two readers could divide otherwise: two lengths, a length and chunks, odd spellings of either',
    units: 240,
    bound: { ms: 0.2, mib: 16, descriptors: anAddress },
    make: (target) =>
      ask(
        target,
        range(240).map((i) => smuggle(target, i)),
        refused
      )
  },
  {
    name: 'chunk extensions',
    how: 'chunks whose extension is longer than the memory of a connection; sagad can neither read on nor answer',
    units: 40,
    bound: { ms: 2, mib: 24, descriptors: 50 },
    drips: '',
    make: (target) => {
      const head = target.post('', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' })
      return hold(target, 40, Buffer.concat([head, Buffer.from(`1;${'x'.repeat(100000)}\r\n{\r\n`)]))
    }
  },
  {
    name: 'tiny chunks',
    how: 'bodies in 4,000 chunks of one byte, each with an extension',
    units: 20,
    bound: { ms: 1, mib: 24, descriptors: anAddress },
    make: (target) => {
      const head = target.post('', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' })
      const body = Buffer.from('1;a=b\r\n \r\n'.repeat(4000) + '0\r\n\r\n')
      return ask(
        target,
        range(20).map(() => Buffer.concat([head, body])),
        refused,
        10
      )
    }
  },
  {
    name: 'slow heads',
    how: 'heads that come one byte at a time, and never end',
    units: 100,
    bound: { ms: 0.2, mib: 24, descriptors: 110 },
    drips: '\r',
    make: (target) => hold(target, 100, target.get('/livez').subarray(0, 20))
  },
  {
    name: 'slow bodies',
    how: 'bodies that come one byte at a time; the head says 1,000,000',
    units: 100,
    bound: { ms: 0.2, mib: 24, descriptors: 110 },
    drips: ' ',
    make: (target) => hold(target, 100, target.post('', { 'Content-Length': 1000000 }))
  },
  {
    name: 'bodies that are almost whole',
    how: 'bodies of 900,000 bytes of which the last does not come: sagad keeps what it has',
    units: 24,
    bound: { ms: 8, mib: 24 * 1.6 + 16, descriptors: anAddress },
    make: (target) => hold(target, 24, target.post(' '.repeat(900000)).subarray(0, -1))
  },
  {
    name: 'bodies that wait to be asked for',
    how: '`Expect: 100-continue`, and no body after it was asked for',
    units: 100,
    bound: { ms: 0.6, mib: 24, descriptors: 110 },
    make: async (target) => {
      await hold(target, 100, target.post('', { 'Content-Length': 1000, Expect: '100-continue' }))
      await Promise.all(target.open.map((client) => client.begun()))
    }
  },
  {
    name: 'slow readers',
    how: 'large answers, 40 asked for on each connection, of which nothing is read',
    units: 60,
    bound: { ms: 5, mib: 60 * 0.8 + 24, descriptors: 70 },
    make: (target) => hold(target, 60, Buffer.concat(range(40).map(() => target.get(`/v1/sagas/${target.saga}`))), true)
  },
  {
    name: 'streams that nobody reads',
    how: 'server-sent events of all sagas and of one log; the sockets are never read',
    units: 100,
    bound: { ms: 3, mib: 32, descriptors: 110 },
    make: (target) => {
      const events = { Accept: 'text/event-stream' }
      const paths = ['/v1/events', `/v1/sagas/${target.busySaga}/log`]
      return Promise.all(paths.map((path) => hold(target, 50, target.get(`${path}?follow=true`, events), true)))
    }
  },
  {
    name: 'connections that come and go',
    how: 'connections that are opened and reset without a word',
    units: 2000,
    bound: { ms: 0.1, mib: 24, descriptors: 110 },
    make: async (target) => {
      for (let at = 0; at < 2000; at += 100) {
        const clients = range(100).map((i) => target.client(i % 2))
        await Promise.all(clients.map((client) => client.connected()))
        for (const client of clients) client.socket.resetAndDestroy()
        target.open = []
      }
    }
  },
  {
    name: 'connections that stay',
    how: 'three times as many connections from two addresses as these may have, held without a word',
    units: 768,
    bound: { ms: 0.1, mib: 32, descriptors: 2 * anAddress },
    make: async (target) => {
      const clients = range(768).map((i) => target.client(i % 2))
      await Promise.all(clients.map((client) => client.connected()))
    }
  },
  {
    name: 'huge heads',
    how: 'heads of 64 KiB, of 200 fields, and with 4,000 parameters in the target',
    units: 300,
    bound: { ms: 0.6, mib: 16, descriptors: anAddress },
    make: (target) => {
      const heads = [
        target.get('/livez', { X: 'x'.repeat(65536) }),
        target.get('/livez', { X: range(200).map((i) => `${i}`) }),
        target.get(`/livez?${'a&'.repeat(4000)}`)
      ]
      return ask(
        target,
        range(300).map((i) => heads[i % 3]),
        refused
      )
    }
  },
  {
    name: 'small requests',
    how: 'requests one after the other on eight connections that are kept',
    units: 8000,
    bound: { ms: 0.15, mib: 16, descriptors: anAddress },
    make: (target) =>
      Promise.all(
        range(8).map(async () => {
          const client = target.client()
          for (let i = 0; i < 1000; i++) {
            const answer = await client.send(target.get('/v1/me')).answer()
            must(answer?.status === 200, 'each is answered', answer)
          }
        })
      )
  },
  {
    name: 'pipelining',
    how: '2,000 requests at once on each of four connections, answered in their order',
    units: 8000,
    bound: { ms: 0.15, mib: 24, descriptors: anAddress },
    make: (target) =>
      Promise.all(
        range(4).map(async () => {
          const client = target.client()
          client.send(Buffer.concat(range(2000).map(() => target.get('/v1/me'))))
          for (let i = 0; i < 2000; i++) must((await client.answer())?.status === 200, 'each is answered', i)
        })
      )
  },
  {
    name: 'websocket upgrades',
    how: 'requests to upgrade to a websocket and to HTTP/2; sagad stays with HTTP/1.1',
    units: 300,
    bound: { ms: 1.5, mib: 16, descriptors: anAddress },
    make: (target) => {
      const key = { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version': 13 }
      const asked = [
        target.get('/v1/events', { Connection: 'Upgrade', Upgrade: 'websocket', ...key }),
        target.get('/livez', { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' }),
        Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      ]
      const check = (status, text) => must(status !== 101, 'nothing is upgraded', [status, text])
      return ask(
        target,
        range(300).map((i) => asked[i % 3]),
        check
      )
    }
  },
  {
    name: 'deep JSON',
    how: 'bodies of arrays in arrays, and of objects in objects, hundreds of thousands deep',
    units: 30,
    bound: { ms: perMebibyte / 4, mib: 40, descriptors: anAddress },
    make: (target) => {
      const bodies = ['['.repeat(1000000), '{"a":'.repeat(200000), inputOf('['.repeat(400000) + ']'.repeat(400000))]
      return ask(
        target,
        range(30).map((i) => target.post(bodies[i % 3])),
        refused,
        10
      )
    }
  },
  {
    name: 'huge JSON',
    how: 'bodies of 1 MiB: numbers, empty objects, escapes; and of 4 MiB, which are too large',
    units: 32,
    bound: { ms: perMebibyte, mib: 64, descriptors: anAddress },
    make: (target) => {
      const bodies = [
        inputOf(`[${'0,'.repeat(500000)}0]`),
        inputOf(`[${'{},'.repeat(300000)}0]`),
        inputOf(`"${'\\u0041'.repeat(160000)}"`),
        inputOf(`"${'x'.repeat(4 << 20)}"`)
      ]
      return ask(
        target,
        range(32).map((i) => target.post(bodies[i % 4])),
        refused,
        8
      )
    }
  },
  {
    name: 'colliding members',
    how: 'objects of 20,000 members whose names hash alike, are alike but for their ends, or differ by escapes',
    units: 24,
    bound: { ms: perMebibyte, mib: 64, descriptors: anAddress },
    make: (target) => {
      const names = [
        colliding(20000),
        colliding(20000, ['EzEz', 'FYFY']),
        range(12000).map((i) => 'x'.repeat(60) + i),
        range(20000).map((i) => `\\u0061${i}`)
      ]
      const bodies = names.map((some) => inputOf(objectOf(some)))
      return ask(
        target,
        range(24).map((i) => target.post(bodies[i % 4])),
        refused,
        8
      )
    }
  },
  {
    name: 'handshakes begun and left',
    how: 'a ClientHello, and gone when the certificate comes',
    tls: true,
    units: 300,
    bound: { ms: 1, mib: 24, descriptors: anAddress },
    make: async (target) => {
      const hello = await clientHello({})
      for (let at = 0; at < 300; at += 50) await Promise.all(range(50).map(() => knock(target.port, hello)))
    }
  },
  {
    name: 'handshakes that stand still',
    how: 'a ClientHello, and nothing more; the connection stays',
    tls: true,
    units: 100,
    bound: { ms: 4, mib: 40, descriptors: 110 },
    make: async (target) => {
      const hello = await clientHello({})
      await hold(target, 100, hello)
      await Promise.all(target.open.map((client) => client.begun()))
    }
  },
  {
    name: 'handshakes without requests',
    how: 'whole handshakes, and gone',
    tls: true,
    units: 200,
    bound: { ms: 2.5, mib: 24, descriptors: anAddress },
    make: async (target) => {
      for (let at = 0; at < 200; at += 20) await Promise.all(range(20).map(() => shake(target.port, {})))
    }
  },
  {
    name: 'TLS renegotiation',
    how: 'clients of TLS 1.2 that ask for a new handshake within the first, again and again',
    tls: true,
    units: 100,
    bound: { ms: 2.5, mib: 24, descriptors: anAddress },
    make: async (target) => {
      const again = (socket) =>
        new Promise((resolve) => {
          socket.on('close', () => resolve(false))
          socket.renegotiate({}, (error) => resolve(!error))
        })
      for (let at = 0; at < 100; at += 20) {
        const renegotiated = await Promise.all(
          range(20).map(() => shake(target.port, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }, again))
        )
        must(
          renegotiated.every((one) => one === false),
          'no handshake is made again',
          renegotiated
        )
      }
    }
  }
]

// Opens connections, sends the bytes on each, and keeps them. `mute`: what comes is not read.
async function hold(target, count, bytes, mute = false) {
  const clients = range(count).map(() => target.client())
  await Promise.all(clients.map((client) => client.connected()))
  for (const client of clients) {
    if (mute) client.socket.pause()
    client.send(bytes)
  }
}

// Sends a byte on each connection that is open. Returns how many sagad has not closed.
export function drip(target, byte = '') {
  const open = target.open.filter((client) => !client.ended)
  for (const client of open) if (byte) client.send(byte)
  target.dripped += byte ? open.length : 0
  return open.length
}
