// One logical request, sent as often as the API calls it safe, until its time is over.
import { codeOf, isUnderWay, leavesDoubt, readProblem, type Problem } from './problem.js'

// The shape in which openapi-fetch answers.
export interface Sent<T> {
  data?: T
  error?: unknown
  response: Response
}

export type Answer<T> =
  | { is: 'answered'; data: T; response: Response }
  | { is: 'refused'; problem: Problem; retryAfterMs: number | undefined; mayHaveArrived: boolean }
  | { is: 'unheard'; cause: unknown }

export interface Patience {
  ms: number
  signal?: AbortSignal | undefined
  // True for a problem that ends the request although it is retryable.
  isEnough?: (code: string) => boolean
  // True for an answer that is not the last one.
  isEarly?: (response: Response, data: unknown) => boolean
}

const firstPauseMs = 100
const longestPauseMs = 5000
const longestWaitMs = 60_000
const graceMs = 15_000 // beside the wait that sagad was asked for

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function retryAfterMs(response: Response): number | undefined {
  const text = response.headers.get('retry-after')
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined
}

// Calls `send` with the time that sagad may hold its answer, until an answer stands or the time is over. A request that
// had no answer is sent again: whoever calls this has named it, so that sagad knows it again.
export async function ask<T>(
  patience: Patience,
  send: (waitMs: number, signal: AbortSignal) => Promise<Sent<T>>
): Promise<Answer<T>> {
  const endMs = performance.now() + patience.ms
  let mayHaveArrived = false
  for (let tries = 0; ; tries++) {
    patience.signal?.throwIfAborted()
    const waitMs = Math.round(Math.min(Math.max(endMs - performance.now(), 0), longestWaitMs))
    const limit = AbortSignal.timeout(waitMs + graceMs)
    let answer: Answer<T>
    let afterMs: number | undefined
    try {
      const sent = await send(waitMs, patience.signal ? AbortSignal.any([patience.signal, limit]) : limit)
      const { data, response } = sent
      const problem = response.ok ? undefined : readProblem(sent.error)
      afterMs = retryAfterMs(response)
      if (response.ok && typeof data === 'object' && data !== null) {
        answer = { is: 'answered', data, response }
        if (!patience.isEarly?.(response, data)) return answer
        mayHaveArrived = true
      } else if (problem) {
        answer = { is: 'refused', problem, retryAfterMs: afterMs, mayHaveArrived }
        if (!problem.retryable || patience.isEnough?.(codeOf(problem))) return answer
        mayHaveArrived ||= isUnderWay(problem) || leavesDoubt(problem)
      } else {
        answer = { is: 'unheard', cause: new Error(`an answer with the status ${response.status}, not of sagad`) }
        mayHaveArrived = true
      }
    } catch (cause) {
      patience.signal?.throwIfAborted()
      answer = { is: 'unheard', cause }
      mayHaveArrived = true
    }
    const backoffMs = Math.min(firstPauseMs * 2 ** Math.min(tries, 10), longestPauseMs)
    const pauseMs = Math.max(afterMs ?? 0, backoffMs * (0.5 + Math.random() / 2))
    if (performance.now() + pauseMs >= endMs) return answer
    await pause(pauseMs, patience.signal)
  }
}
