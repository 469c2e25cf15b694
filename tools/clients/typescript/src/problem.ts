// Refusals that sagad words itself (RFC 9457), and the lack of any answer.
import type { ProblemDocument } from './wire.js'

export type Problem = ProblemDocument

const prefix = 'urn:sagad:problem:'

// Returns the problem document in a body; undefined where a proxy, and not sagad, has answered.
export function readProblem(body: unknown): Problem | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { type, status, detail, retryable } = body as Partial<Problem>
  const isOurs = typeof type === 'string' && type.startsWith(prefix)
  return isOurs && typeof status === 'number' && typeof detail === 'string' && typeof retryable === 'boolean'
    ? (body as Problem)
    : undefined
}

export const codeOf = (problem: Problem) => problem.type.slice(prefix.length)

// Refusals with a status of 5xx behind which nothing was sent.
const notSent = new Set(['breaker-open', 'held', 'busy'])

const underWay = new Set(['in-flight', 'call-under-way', 'probe-under-way'])

// True where the same operation goes on.
export const isUnderWay = (problem: Problem) => underWay.has(codeOf(problem))

// True where the request may have had an effect although it was refused.
export const leavesDoubt = (problem: Problem) => problem.status >= 500 && !notSent.has(codeOf(problem))

// sagad has refused the request, and says why.
export class SagadProblem extends Error {
  override readonly name = 'SagadProblem'
  readonly code: string

  constructor(
    readonly problem: Problem,
    readonly retryAfterMs?: number
  ) {
    super(`${problem.title}: ${problem.detail}`)
    this.code = codeOf(problem)
  }
}

// No answer of sagad came in time. Nobody can say whether the request has arrived; making it again is safe.
export class SagadUnreachable extends Error {
  override readonly name = 'SagadUnreachable'

  constructor(what: string, cause: unknown) {
    super(`${what} was not answered in time; it may have arrived. Ask again: it is the same request`, { cause })
  }
}
