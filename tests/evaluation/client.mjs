// How an agent talks to sagad, and how badly: it may hang up as soon as it has spoken, lose patience, or be cut off in
// the middle of the answer. It loses every answer that it does not hear in full, and the operation goes on without it.
import { Agent, request } from 'node:http'

export class Client {
  // `addresses` gives the addresses of the engines that may be asked now, as {host, port}; `token` is sent with each
  // request.
  constructor(addresses, token) {
    this.addresses = addresses
    this.token = token
    this.pool = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 256 })
    this.asked = 0
    this.lost = 0 // the number of answers that were not heard
    this.nobody = 0 // the number of requests at which nobody listened
  }

  // Resolves to {status, headers, text, json}, or {lost: why}. `manner` says how the agent listens: {hangUpAfter: ms}
  // or {cut: true}.
  ask(method, path, text, { headers = {}, manner = {}, seconds = 40 } = {}) {
    const addresses = this.addresses()
    const { host, port } = addresses[Math.floor(Math.random() * addresses.length)]
    this.asked++
    return new Promise((resolve) => {
      let timer
      const end = (answer) => {
        clearTimeout(timer)
        if (answer.lost) {
          if (answer.lost === 'ECONNREFUSED') this.nobody++
          else this.lost++
          exchange.destroy()
        }
        resolve(answer)
      }
      const exchange = request(
        {
          host,
          port,
          method,
          path,
          agent: this.pool,
          headers: {
            ...(this.token ? { authorization: `Bearer ${this.token}` } : {}),
            ...(text === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
            ...headers
          }
        },
        (answer) => {
          const parts = []
          answer.on('data', (part) => {
            parts.push(part)
            if (manner.cut) end({ lost: 'cut' })
          })
          answer.on('end', () => end(heard(answer, Buffer.concat(parts).toString('utf8'))))
          answer.on('error', () => end({ lost: 'broken' }))
          answer.on('close', () => end({ lost: 'closed' }))
        }
      )
      exchange.on('error', (error) => end({ lost: error.code ?? 'error' }))
      timer = setTimeout(() => end({ lost: 'patience' }), manner.hangUpAfter ?? seconds * 1000)
      exchange.end(text)
    })
  }

  json(method, path, body, options) {
    return this.ask(method, path, body === undefined ? undefined : JSON.stringify(body), options)
  }

  close() {
    this.pool.destroy()
  }
}

function heard(answer, text) {
  let json
  try {
    json = JSON.parse(text)
  } catch {
    /* who needs it looks */
  }
  return { status: answer.statusCode, headers: answer.headers, text, json }
}
