// Handlers for Fastify. Its own parser of JSON makes the body, which is part of what is compared.
import type { Answer, Participant, Reply, Sql } from './participant.js'

export interface FastifyRequest {
  method: string
  originalUrl: string
  body?: any // as JSON has it
  params: unknown
  headers: Record<string, string | string[] | undefined>
}
interface FastifyReply {
  code(status: number): { headers(headers: Record<string, string>): { send(body: string): unknown } }
}
type Handler<R> = (request: R, reply: FastifyReply) => Promise<unknown>

function handler<R>(answer: (request: R) => Promise<Reply>): Handler<R> {
  return async (request, reply) => {
    const { status, headers, body } = await answer(request)
    return reply.code(status).headers(headers).send(body)
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
const keyIn = ({ params }: FastifyRequest) => textOf((params as { key?: unknown } | undefined)?.key)

// For the route of an effect.
export const once = <R extends FastifyRequest>(
  participant: Participant,
  work: (request: R, sql: Sql) => Promise<Answer>
): Handler<R> =>
  handler((request) => {
    const { method, originalUrl, body, headers } = request
    const asked = { key: textOf(headers['idempotency-key']), method, url: originalUrl, body }
    return participant.once(asked, (sql) => work(request, sql))
  })

// For a route with the parameter `key`, which is the key of the request to undo.
export const undo = <R extends FastifyRequest>(
  participant: Participant,
  work: (request: R, sql: Sql, first: Answer) => Promise<void>
): Handler<R> => handler((request) => participant.undo(keyIn(request), (sql, first) => work(request, sql, first)))

// For a route with the parameter `key`.
export const look = (participant: Participant): Handler<FastifyRequest> =>
  handler((request) => participant.look(keyIn(request)))

export const promise = (participant: Participant): Handler<FastifyRequest> => handler(() => participant.promise())
