// What stands between a client and sagad. As a proxy it passes requests on, loses what a case says, and records; as a
// replay it answers from the record, and says what the client did otherwise.
import { createServer, request as send } from 'node:http'

const headersKept = ['idempotent-replayed', 'location', 'retry-after']

export function listen(onRequest) {
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('error', () => {})
    request.on('end', () => onRequest(request, response, Buffer.concat(parts)))
  })
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve({ server, url: `http://127.0.0.1:${server.address().port}` }))
  )
}

const jsonOf = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

// Emissions that the client makes, and ids that sagad makes, are numbered by their first appearance, so that two runs
// can be compared.
export class Names {
  constructor(keptEmissions) {
    this.kept = new Set(keptEmissions)
    this.emissions = new Map()
  }

  emission(id) {
    if (id === undefined || this.kept.has(id)) return id
    if (!this.emissions.has(id)) this.emissions.set(id, `emission ${this.emissions.size + 1}`)
    return this.emissions.get(id)
  }
}

// Node takes each byte of a header for a character.
const utf8Of = (text) => text && Buffer.from(text, 'latin1').toString()

// The part of a request that has to be the same in each run.
export function requestOf(request, body, names) {
  const { authorization, traceparent } = request.headers
  const emission = names.emission(utf8Of(request.headers['idempotency-key']))
  const token = authorization?.replace(/^Bearer /, '')
  return {
    method: request.method,
    path: request.url.replace(/wait=\d+ms/, 'wait=MS'),
    ...(token !== undefined && { token }),
    ...(emission !== undefined && { emission }),
    ...(traceparent !== undefined && { traceparent }),
    ...(body.length > 0 && { body: jsonOf(body.toString()) })
  }
}

export class Proxy {
  async open(port) {
    this.port = port
    const { server, url } = await listen((...all) => this.pass(...all))
    this.server = server
    this.url = url
    this.begin([], [])
    return this
  }

  begin(wire, keptEmissions) {
    this.wire = wire
    this.names = new Names(keptEmissions)
    this.exchanges = []
  }

  pass(request, response, body) {
    const fate = this.wire[this.exchanges.length]
    const exchange = { request: requestOf(request, body, this.names), answer: 'lost' }
    this.exchanges.push(exchange)
    if (fate === 'request lost') {
      response.destroy()
      return
    }
    if (typeof fate === 'object' && fate !== null) {
      exchange.answer = fate
      say(response, fate)
      return
    }
    const { host, connection, ...headers } = request.headers
    const path = fate === 'wait cut' ? request.url.replace(/wait=\d+ms/, 'wait=50ms') : request.url
    const onward = send({ host: '127.0.0.1', port: this.port, method: request.method, path, headers }, (answer) => {
      const parts = []
      answer.on('data', (part) => parts.push(part))
      answer.on('error', () => response.destroy())
      answer.on('end', () => {
        if (fate === 'answer lost') {
          response.destroy()
          return
        }
        const bytes = Buffer.concat(parts)
        const kept = headersKept.filter((name) => answer.headers[name] !== undefined)
        exchange.answer = {
          status: answer.statusCode,
          headers: Object.fromEntries(kept.map((name) => [name, answer.headers[name]])),
          body: jsonOf(bytes.toString())
        }
        response.writeHead(answer.statusCode, answer.headers)
        response.end(bytes)
      })
    })
    onward.on('error', () => response.destroy())
    onward.end(body)
  }
}

// Gives an answer of the record. Text is none of sagad.
function say(response, { status, headers, body }) {
  const type = status < 300 ? 'application/json' : 'application/problem+json'
  const isText = typeof body === 'string'
  response.writeHead(status, { ...headers, 'content-type': isText ? 'text/html' : type })
  response.end(isText ? body : JSON.stringify(body))
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

// How often a client asks again depends on the time. One exchange stands for those that follow it and are alike.
export function withoutRepeats(exchanges) {
  const told = ({ request, answer }) => [
    request,
    answer.status,
    answer.headers?.['idempotent-replayed'],
    answer.body?.type
  ]
  return exchanges.filter((exchange, n) => n === 0 || !same(told(exchange), told(exchanges[n - 1])))
}

const notOfTheRecord = {
  type: 'urn:sagad:problem:malformed',
  title: 'This is not in the record',
  status: 400,
  detail: 'the client sent something else',
  retryable: false
}

export class Replay {
  async open() {
    const { server, url } = await listen((...all) => this.answer(...all))
    this.server = server
    this.url = url
    return this
  }

  begin(exchanges, keptEmissions) {
    this.exchanges = exchanges
    this.at = 0
    this.names = new Names(keptEmissions)
    this.faults = []
  }

  answer(request, response, body) {
    const asked = requestOf(request, body, this.names)
    const next = this.exchanges[this.at]
    const last = this.exchanges[this.at - 1]
    if (next && same(asked, next.request)) this.at++
    else if (!last || !same(asked, last.request)) {
      this.faults.push(`${JSON.stringify(asked)} instead of ${JSON.stringify(next?.request)}`)
      response.writeHead(400, { 'content-type': 'application/problem+json' })
      response.end(JSON.stringify(notOfTheRecord)) // so that the client asks no more
      return
    }
    const { answer } = this.exchanges[this.at - 1]
    if (answer === 'lost') {
      response.destroy()
      return
    }
    say(response, answer)
  }
}
