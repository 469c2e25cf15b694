// Sends one HTTP request of a client of the campaign.
import { ask as send, jsonOf } from '../../lib/http.mjs'

let authorization = {}

// Sets the token that all later requests carry.
export function useToken(token) {
  authorization = token ? { authorization: `Bearer ${token}` } : {}
}

// Returns {status, text, json}; undefined when nobody answers, or the answer is cut off.
export async function ask(host, port, method, path, body, { seconds = 4, headers = {} } = {}) {
  const text = body === undefined ? undefined : JSON.stringify(body)
  const type = text === undefined ? {} : { 'content-type': 'application/json' }
  try {
    const answer = await send({
      host,
      port,
      method,
      path,
      text,
      headers: { ...authorization, ...type, ...headers },
      seconds
    })
    return { status: answer.status, text: answer.text, json: jsonOf(answer.text) }
  } catch {
    return undefined
  }
}
