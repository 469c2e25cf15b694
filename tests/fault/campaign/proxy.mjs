// A proxy for the connections of one engine to one PostgreSQL. It knows the statements by name and can be told to
// strike at one of them: before (the statement is held back and never gets there), after (it is done, and the answer is
// dropped) or answered (the answer has just been given). It can also act as a bad network: cut, freeze, or let bytes
// through in only one direction.
import { mkdirSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Messages, statementOf } from '../../lib/frames.mjs'

export const places = ['before', 'after', 'answered']

// The fault that is waited for, over all proxies: the first proxy in which it occurs takes it.
export class Aim {
  constructor() {
    this.known = new Map() // statement -> how often it was seen
    this.wanted = undefined
  }

  // Resolves to the engine when the statement has come to the place, and to undefined when it has not in time.
  // `holding`: the struck connection stays open, frozen.
  at(statement, place, ms, allowed = () => true) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        if (this.wanted === aim) this.wanted = undefined
        resolve(undefined)
      }, ms)
      const aim = {
        statement,
        place,
        allowed,
        hit: (hit) => {
          clearTimeout(timer)
          resolve(hit)
        }
      }
      this.wanted = aim
    })
  }

  take(statement, engine) {
    const wanted = this.wanted
    if (!wanted || (wanted.statement !== statement && wanted.statement !== '*') || !wanted.allowed(engine))
      return undefined
    this.wanted = undefined
    return wanted
  }
}

export class Proxy {
  constructor(engine, directory, target, aim) {
    Object.assign(this, { engine, directory, target, aim, sessions: new Set(), refusing: false })
  }

  async listen() {
    rmSync(this.directory, { recursive: true, force: true })
    mkdirSync(this.directory, { recursive: true })
    this.server = createServer({ allowHalfOpen: true }, (client) => this.serve(client))
    await new Promise((resolve, reject) =>
      this.server.on('error', reject).listen(join(this.directory, '.s.PGSQL.5432'), resolve)
    )
  }

  // Closes the listener, as if there were no such host: libpq then tries the next one. A connection that is accepted
  // and closed would count as an answer.
  unlisten() {
    this.server?.close()
    this.server = undefined
    this.cut(this.refusing)
  }

  serve(client) {
    if (this.refusing) {
      client.destroy()
      return
    }
    const server = connect({ path: join(this.target, '.s.PGSQL.5432'), allowHalfOpen: true })
    const session = {
      client,
      server,
      asked: 1,
      answered: 0,
      fromClient: new Messages(true),
      fromServer: new Messages(false),
      frozen: false,
      held: [[], []]
    }
    session.end = () => {
      client.destroy()
      server.destroy()
      this.sessions.delete(session)
    }
    this.sessions.add(session)
    for (const socket of [client, server])
      socket.on('error', session.end).on('close', session.end).on('end', session.end)
    client.on('data', (bytes) => this.asks(session, bytes))
    server.on('data', (bytes) => this.answers(session, bytes))
  }

  asks(session, bytes) {
    if (session.muted) return
    const aim = this.aim
    // The place of this message in `bytes`; below 0 when its first part has already gone.
    let passed = -session.fromClient.rest.length
    for (const [type, body, message] of session.fromClient.take(bytes)) {
      if (type === 'S' || type === 'Q') session.asked++
      if (type === 'B') {
        const statement = statementOf(body)
        if (statement) aim.known.set(statement, (aim.known.get(statement) ?? 0) + 1)
        const strike = statement && aim.wanted && !session.strike && aim.take(statement, this.engine)
        if (strike && strike.place === 'before') {
          this.pass(session, 0, bytes.subarray(0, Math.max(0, passed)))
          session.muted = true
          strike.hit({ engine: this.engine, session, proxy: this })
          return
        }
        if (strike) {
          session.strike = strike
          session.last = session.asked + 1 // the Sync behind it
        }
      }
      passed += message.length
    }
    this.pass(session, 0, bytes)
  }

  answers(session, bytes) {
    const strike = session.strike
    let over = false
    for (const [type] of session.fromServer.take(bytes)) {
      if (type === 'Z' && ++session.answered === session.last) over = true
    }
    if (strike?.place === 'after' || session.deaf) {
      if (over && strike) {
        session.strike = undefined
        session.deaf = true
        strike.hit({ engine: this.engine, session, proxy: this })
      }
      return
    }
    this.pass(session, 1, bytes)
    if (over && strike) {
      session.strike = undefined
      strike.hit({ engine: this.engine, session, proxy: this })
    }
  }

  pass(session, direction, bytes) {
    if (bytes.length === 0) return
    if (this.frozen || session.frozen) session.held[direction].push(Buffer.from(bytes))
    else (direction === 0 ? session.server : session.client).write(bytes)
  }

  // Freezes both directions. Bytes that are sent meanwhile come when the proxy thaws.
  freeze() {
    this.frozen = true
  }

  thaw() {
    this.frozen = false
    for (const session of this.sessions) this.thawSession(session)
  }

  thawSession(session) {
    session.frozen = false
    for (const [direction, socket] of [
      [0, session.server],
      [1, session.client]
    ]) {
      for (const bytes of session.held[direction].splice(0)) socket.write(bytes)
    }
  }

  // Ends all connections. `refusing`: new ones are refused, too.
  cut(refusing = false) {
    this.refusing = refusing
    for (const session of [...this.sessions]) session.end()
  }

  close() {
    this.cut(true)
    this.server?.close()
  }
}
