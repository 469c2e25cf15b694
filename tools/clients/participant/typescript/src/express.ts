// Handlers for Express. `express.json()` comes before them, so that the body is part of what is compared.
import type { Answer, Participant, Reply, Sql } from './participant.js'

export interface ExpressRequest {
  method: string
  originalUrl: string
  body?: any // as JSON has it
  params: Record<string, string | string[]>
  get(name: string): string | undefined
}
interface ExpressResponse {
  status(code: number): { set(headers: Record<string, string>): { send(body: string): unknown } }
}
type Next = (error: unknown) => void
type Handler<R> = (request: R, response: ExpressResponse, next: Next) => Promise<void>

function handler<R>(answer: (request: R) => Promise<Reply>): Handler<R> {
  return async (request, response, next) => {
    try {
      const { status, headers, body } = await answer(request)
      response.status(status).set(headers).send(body)
    } catch (error) {
      next(error)
    }
  }
}

const keyIn = ({ params: { key } }: ExpressRequest) => (typeof key === 'string' ? key : undefined)

// For the route of an effect.
export const once = <R extends ExpressRequest>(
  participant: Participant,
  work: (request: R, sql: Sql) => Promise<Answer>
): Handler<R> =>
  handler((request) => {
    const { method, originalUrl, body } = request
    const asked = { key: request.get('idempotency-key'), method, url: originalUrl, body }
    return participant.once(asked, (sql) => work(request, sql))
  })

// For a route with the parameter `key`, which is the key of the request to undo.
export const undo = <R extends ExpressRequest>(
  participant: Participant,
  work: (request: R, sql: Sql, first: Answer) => Promise<void>
): Handler<R> => handler((request) => participant.undo(keyIn(request), (sql, first) => work(request, sql, first)))

// For a route with the parameter `key`.
export const look = (participant: Participant): Handler<ExpressRequest> =>
  handler((request) => participant.look(keyIn(request)))

export const promise = (participant: Participant): Handler<ExpressRequest> => handler(() => participant.promise())
