// Honest clients beside attacks: each starts one saga after the other on a connection that it keeps, waits until it has
// completed, and comes again when it is told to.
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { sleep } from './world.mjs'

export const honestDefinitions = {
  tools: [{ name: 'say', effect: 'read', builtin: { do: 'echo' } }],
  sagas: [
    { name: 'says', steps: [{ id: 'say', call: 'say', with: { words: '${ .input.words }' } }] },
    { name: 'holds', input: { type: 'object' }, steps: [{ id: 'go', signal: { name: 'go', timeout: '1h' } }] }
  ]
}

export class Honest {
  done = 0 // sagas that were started and are completed
  waits = [] // milliseconds from the first request for a saga to its end
  refused = 0
  failed
  running = []

  constructor(port, { tls = false, pauseMs = 0 } = {}) {
    this.port = port
    this.tls = tls
    this.pauseMs = pauseMs
    this.agent = new (tls ? TlsAgent : PlainAgent)({ keepAlive: true })
  }

  // Rejects when sagad closes the connection without an answer.
  post(path, body) {
    return new Promise((resolve, reject) => {
      const asked = (this.tls ? tlsRequest : plainRequest)({
        port: this.port,
        host: '127.0.0.1',
        method: 'POST',
        path,
        agent: this.agent,
        rejectUnauthorized: false,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      })
      asked.on('error', reject).on('response', (response) => {
        let text = ''
        response.on('data', (data) => (text += data)).on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode, text }))
      })
      asked.end(body)
    })
  }

  // One saga. The id makes a repeat safe, so that a lost answer costs a second request and nothing else.
  async saga(id) {
    const body = JSON.stringify({ saga: 'says', id, input: { words: 'as any other day' } })
    for (;;) {
      const answer = await this.post('/v1/sagas?wait=30s', body).catch((error) => ({ status: 0, text: error.message }))
      if ((answer.status === 201 || answer.status === 200) && /"status": ?"completed"/.test(answer.text)) return
      if (answer.status === 0 || answer.status === 503) this.refused++
      else if (answer.status >= 300) throw new Error(`an honest client got ${answer.status}: ${answer.text}`)
      await sleep(20)
    }
  }

  async work(name) {
    for (let n = 0; !this.stopping; n++) {
      const begun = performance.now()
      await this.saga(`${name}-${n}`)
      this.waits.push(performance.now() - begun)
      this.done++
      if (this.pauseMs > 0) await sleep(this.pauseMs)
    }
  }

  // `name` makes the ids of this crowd its own.
  begin(name, clients = 4) {
    this.running = Array.from({ length: clients }, (_, i) =>
      this.work(`${name}-${i}`).catch((error) => {
        this.failed = error
      })
    )
  }

  // Waits until the clients together have finished `count` more sagas that they began meanwhile.
  async goOn(count) {
    for (const wanted = this.done + this.running.length + count; this.done < wanted; await sleep(5))
      if (this.failed) throw this.failed
  }

  async end() {
    this.stopping = true
    await Promise.all(this.running)
    this.agent.destroy()
    if (this.failed) throw this.failed
  }
}
