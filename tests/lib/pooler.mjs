// A pooler between sagad and PostgreSQL in this process, by transactions: when `pools` is set, each transaction goes to
// the session that has rested for the longest. Like newer poolers (pgbouncer 1.21) it makes prepared statements known
// to each session that lacks them. So no error tells, and session locks, settings and notifications do not hold.
import { Messages, statementOf } from './frames.mjs'
import { SocketProxy } from './socket_proxy.mjs'

const nameOfParse = (body) => body.toString('latin1', 0, body.indexOf(0))

function closeOf(name) {
  const body = Buffer.from(`S${name}\0`, 'latin1')
  const head = Buffer.alloc(5)
  head.write('C')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

export class Pooler extends SocketProxy {
  constructor(world) {
    super(world, 'pooler')
    this.pools = true
    this.resting = [] // sessions, the one that has rested for the longest first
    this.waiting = [] // clients with a transaction and no session
  }

  serve(socket) {
    const client = { socket, texts: new Map(), units: [], unit: [], session: undefined, startup: undefined }
    const messages = new Messages(true)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      client.closed = true
      // What a session began for a client that is gone ends with the session.
      if (client.session) client.session.socket.destroy()
      else if (client.own && !this.pools) client.own.socket.destroy()
    })
    socket.on('data', (bytes) => {
      for (const [type, body, message] of messages.take(bytes)) {
        if (type === '') this.open(client, message)
        else if (type === 'X') socket.destroy()
        else {
          client.unit.push([type, body, message])
          if (type !== 'S' && type !== 'Q') continue
          client.units.push(client.unit)
          client.unit = []
          this.next(client)
        }
      }
    })
  }

  // Each client brings a session, which is its own while nothing is pooled.
  open(client, startup) {
    const session = { socket: this.connect(), names: new Set(), client }
    const messages = new Messages(false)
    client.session = client.own = session
    session.socket.write(startup)
    session.socket.on('error', () => session.socket.destroy())
    session.socket.on('close', () => {
      session.client?.socket.destroy()
      this.resting = this.resting.filter((one) => one !== session)
    })
    session.socket.on('data', (bytes) => {
      for (const [type, body, message] of messages.take(bytes)) {
        if (type === '3') continue // of a Close that is ours
        if (type === '1' && session.parses?.shift()) continue
        ;(session.client ?? client).socket.write(message)
        if (type === 'Z' && body.toString('latin1') === 'I') this.rest(session)
      }
    })
  }

  rest(session) {
    const { client } = session
    session.client = client.session = undefined
    this.resting.push(session)
    this.next(client)
    for (const other of this.waiting.splice(0)) this.next(other)
  }

  next(client) {
    if (client.closed || client.session || client.units.length === 0) return
    const at = this.pools ? 0 : this.resting.indexOf(client.own)
    const [session] = at >= 0 ? this.resting.splice(at, 1) : []
    if (!session) return this.waiting.push(client)
    session.client = client
    client.session = session
    session.parses = []
    for (const [type, body, message] of client.units.shift()) {
      const name = type === 'P' ? nameOfParse(body) : type === 'B' ? statementOf(body) : ''
      if (type === 'P' && name) {
        client.texts.set(name, message)
        session.socket.write(closeOf(name))
      } else if (name && !session.names.has(name)) {
        session.socket.write(client.texts.get(name))
        session.parses.push(true)
      }
      if (name) session.names.add(name)
      if (type === 'P') session.parses.push(false)
      session.socket.write(message)
    }
  }
}
