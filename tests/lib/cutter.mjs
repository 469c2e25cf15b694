// A proxy between sagad and PostgreSQL that kills sagad at one certain commit: at the n-th one that carries a turn of a certain saga, either
// before the server sees it, or after the server has done it and before sagad knows. It follows the messages of the protocol: what is bound to
// the statements that append to the log says which sagas are in a transaction, the Sync behind it is the commit.
import { mkdirSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'

const appends = new Set(['log', 'log_unique'])
const asksForEncryption = new Set([80877103, 80877104]) // SSL, GSS: asked before the startup message

// Cuts a stream of bytes into messages. The first one of a client has no type.
class Messages {
  constructor(untyped) {
    this.rest = Buffer.alloc(0)
    this.untyped = untyped
  }

  * take(bytes) {
    this.rest = this.rest.length ? Buffer.concat([this.rest, bytes]) : bytes
    for (;;) {
      const at = this.untyped ? 0 : 1
      if (this.rest.length < at + 4) return
      const length = this.rest.readInt32BE(at) + at
      if (this.rest.length < length) return
      const message = this.rest.subarray(0, length)
      this.rest = this.rest.subarray(length)
      if (!this.untyped) yield [String.fromCharCode(message[0]), message.subarray(5)]
      else if (!asksForEncryption.has(message.readInt32BE(4))) this.untyped = false
    }
  }
}

export class Cutter {
  constructor(world) {
    this.world = world
    this.cut = undefined
    this.strikes = 0
  }

  // The connection string that leads through the proxy.
  async start() {
    const directory = join(this.world.directory, 'proxy')
    mkdirSync(directory)
    this.server = createServer((client) => this.serve(client))
    await new Promise((resolve, reject) => this.server.on('error', reject).listen(join(directory, '.s.PGSQL.5432'), resolve))
    this.server.unref()
    return this.world.dsn.replace(`host=${this.world.directory}`, `host=${directory}`)
  }

  // Kills sagad at the n-th commit, from 1, of the saga that starts with this business id; `struck` resolves then.
  aim(business, n, mode) {
    const cut = { business, n, mode, commits: 0 }
    cut.struck = new Promise((resolve) => { cut.strike = resolve })
    this.cut = cut
    return cut
  }

  serve(client) {
    const server = connect(join(this.world.directory, '.s.PGSQL.5432'))
    const session = { turns: new Map(), asked: 1, answered: 0 } // one answer is that to the startup message
    const fromClient = new Messages(true)
    const fromServer = new Messages(false)
    const end = () => {
      client.destroy()
      server.destroy()
    }
    const strike = (cut) => {
      this.strikes++
      this.world.sagad.kill('SIGKILL')
      end()
      cut.strike()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (bytes) => {
      for (const [type, body] of fromClient.take(bytes)) {
        if (type === 'B') bind(session, body)
        if (type !== 'S' && type !== 'Q') continue
        session.asked++
        const cut = this.due(session)
        if (cut?.mode === 'before') return strike(cut)
        if (cut) Object.assign(session, { cut, last: session.asked })
      }
      server.write(bytes)
    })
    server.on('data', (bytes) => {
      for (const [type] of fromServer.take(bytes)) {
        if (type === 'Z' && ++session.answered === session.last) return strike(session.cut)
      }
      if (!session.cut) client.write(bytes)
    })
  }

  // The cut that is due with the transaction that ends here.
  due(session) {
    const { turns } = session
    const cut = this.cut
    session.turns = new Map()
    if (!cut) return undefined
    if (!cut.saga) cut.saga = [...turns].find(([, text]) => text.includes(`"business_id":"${cut.business}"`))?.[0]
    if (!turns.has(cut.saga) || ++cut.commits < cut.n) return undefined
    this.cut = undefined
    return cut
  }
}

// Which sagas have a turn in the statement, and its text: the second and the last parameter, binary arrays of the same length.
function bind(session, body) {
  const portal = body.indexOf(0)
  const end = body.indexOf(0, portal + 1)
  if (!appends.has(body.toString('latin1', portal + 1, end))) return
  const values = []
  let at = end + 1
  at += 2 + 2 * body.readInt16BE(at)
  const count = body.readInt16BE(at)
  at += 2
  for (let i = 0; i < count; i++) {
    const length = Math.max(0, body.readInt32BE(at))
    values.push(body.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  const texts = [...elements(values[6])]
  for (const [i, saga] of [...elements(values[1])].entries()) session.turns.set(saga.toString('hex'), texts[i].toString('utf8'))
}

// Of a one-dimensional array in PostgreSQL's binary form.
function* elements(array) {
  const count = array.readInt32BE(12)
  for (let i = 0, at = 20; i < count; i++) {
    const length = array.readInt32BE(at)
    yield array.subarray(at + 4, at + 4 + length)
    at += 4 + length
  }
}
