// A proxy between sagad and PostgreSQL that kills sagad at one commit: at the n-th one with a turn of a certain saga,
// either before the server sees it, or after the server has done it and before sagad knows. It follows the messages of
// the protocol. The values bound to the appending statements say which sagas are in a transaction, and the Sync behind
// them is the commit.
import { Messages, elementsOf, parametersOf, statementOf } from './frames.mjs'
import { SocketProxy } from './socket_proxy.mjs'

const appends = new Set(['log', 'log_unique'])

export class Cutter extends SocketProxy {
  constructor(world) {
    super(world, 'proxy')
    this.cut = undefined
    this.strikes = 0
  }

  // Kills sagad at the n-th commit, from 1, of the saga with this business id; `struck` resolves then.
  aim(business, n, mode) {
    const cut = { business, n, mode, commits: 0 }
    cut.struck = new Promise((resolve) => {
      cut.strike = resolve
    })
    this.cut = cut
    return cut
  }

  serve(client) {
    const server = this.connect()
    const session = { turns: new Map(), asked: 1, answered: 0 } // one answer belongs to the startup message
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

  // Returns the cut that is due with the transaction that ends here.
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

// Finds the sagas with a turn in the statement, and its text: the second and the last parameter, binary arrays of the
// same length.
function bind(session, body) {
  if (!appends.has(statementOf(body))) return
  const values = parametersOf(body)
  const texts = [...elementsOf(values[6])]
  for (const [i, saga] of [...elementsOf(values[1])].entries())
    session.turns.set(saga.toString('hex'), texts[i].toString('utf8'))
}
