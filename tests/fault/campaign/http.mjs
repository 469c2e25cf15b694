// Sends one HTTP request over kept connections. fetch() costs more, and the clients share the machine with the engines
// that they test.
import { Agent, request } from 'node:http'

const agent = new Agent({ keepAlive: true, maxSockets: 400, scheduling: 'lifo' })

let authorization = {}

// Sets the token that all later requests carry.
export function useToken(token) {
  authorization = token ? { authorization: `Bearer ${token}` } : {}
}

// Returns {status, text, json}; undefined when nobody answers, or the answer is cut off.
export function ask(host, port, method, path, body, { seconds = 4, headers = {} } = {}) {
  return new Promise((resolve) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const all =
      text === undefined
        ? { ...authorization, ...headers }
        : {
            ...authorization,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text),
            ...headers
          }
    const sent = request({ host, port, method, path, headers: all, agent })
    const timer = setTimeout(() => sent.destroy(), seconds * 1000)
    const settle = (answer) => {
      clearTimeout(timer)
      resolve(answer)
    }
    sent.on('error', () => settle(undefined))
    sent.on('response', (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', () => settle(undefined))
      response.on('close', () => settle(undefined)) // after 'end' it says nothing new
      response.on('end', () => {
        const got = Buffer.concat(chunks).toString('utf8')
        let json
        try {
          json = JSON.parse(got)
        } catch {
          /* not every answer is JSON */
        }
        settle({ status: response.statusCode, text: got, json })
      })
    })
    sent.end(text)
  })
}
