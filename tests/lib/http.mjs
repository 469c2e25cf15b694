// Sends one HTTP request over kept connections. fetch() costs four to seven times the processor time, and the clients
// of a test share the machine with the engines that they test.
import { Agent, request } from 'node:http'

const agent = new Agent({ keepAlive: true, maxSockets: 400, scheduling: 'lifo' })

// What an answer says in its head, by names in any case; null when it is not there. Goes through pairs of name and
// value, too.
class Headers {
  constructor(all) {
    this.all = all
  }

  [Symbol.iterator]() {
    return Object.entries(this.all)[Symbol.iterator]()
  }

  get(name) {
    const value = this.all[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : (value ?? null)
  }
}

// Returns {status, headers, text}. Throws when nobody answers, or not in time, or the answer is cut off. `text` is the
// body of the request.
export function ask({ host = '127.0.0.1', port, method = 'GET', path, text, headers = {}, seconds = 60 }) {
  return new Promise((resolve, reject) => {
    const length = text === undefined ? {} : { 'content-length': Buffer.byteLength(text) }
    const sent = request({ host, port, method, path, headers: { ...length, ...headers }, agent })
    const timer = setTimeout(
      () => sent.destroy(new Error(`${method} ${path}: no answer within ${seconds} s`)),
      seconds * 1000
    )
    const fails = (error) => {
      clearTimeout(timer)
      reject(error)
    }
    sent.on('error', fails)
    sent.on('response', (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', fails)
      // After 'end' this says nothing new.
      response.on('close', () => fails(new Error(`${method} ${path}: the answer is cut off`)))
      response.on('end', () => {
        clearTimeout(timer)
        resolve({
          status: response.statusCode,
          headers: new Headers(response.headers),
          text: Buffer.concat(chunks).toString('utf8')
        })
      })
    })
    sent.end(text)
  })
}

// The JSON of a text; undefined when it is none.
export function jsonOf(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
