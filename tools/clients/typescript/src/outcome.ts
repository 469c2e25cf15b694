// What became of a call. `Refused` promises that this call took no effect; in doubt it is `Unknown`.
import { codeOf, isUnderWay, leavesDoubt, type Problem } from './problem.js'
import type { Operation } from './wire.js'

// It happened, once. `replayed`: an earlier call did it, and this is its answer again.
export interface Done<R = unknown> {
  kind: 'Done'
  result: R
  operation: Operation
  replayed: boolean
  firstAt?: string | undefined
}

// It goes on without us. Make the same call again to hear of its end.
export interface InFlight {
  kind: 'InFlight'
  detail: string
  operation?: Operation | undefined
  retryAfterMs?: number | undefined
}

// Nobody can say whether it happened. Never work around it: make the same call again later. `code` is missing where no
// answer came at all.
export interface Unknown {
  kind: 'Unknown'
  code?: string | undefined
  detail: string
  operation?: Operation | undefined
  problem?: Problem | undefined
  retryAfterMs?: number | undefined
  cause?: unknown
}

// A person has to decide first. Tell the user, and make the same call again later.
export interface NeedsPerson {
  kind: 'NeedsPerson'
  code: string
  detail: string
  operation?: Operation | undefined
  problem: Problem
}

// The tool was called, and it certainly took no effect. `retryable`: a new call may fare better once the cause is
// mended.
export interface Failed {
  kind: 'Failed'
  code: string
  detail: string
  retryable: boolean
  operation?: Operation | undefined
  problem: Problem
  retryAfterMs?: number | undefined
}

// sagad did not let this call through, so it did not happen. `detail` is written for people and for models.
// `retryable`: it may be done later. With the code `duplicate-call` an earlier call did happen, and `operation` is its
// record.
export interface Refused {
  kind: 'Refused'
  code: string
  detail: string
  retryable: boolean
  operation?: Operation | undefined
  problem: Problem
  retryAfterMs?: number | undefined
}

export type Outcome<R = unknown> = Done<R> | Failed | InFlight | Unknown | NeedsPerson | Refused

export class NotDone extends Error {
  override readonly name = 'NotDone'

  constructor(readonly outcome: Exclude<Outcome, Done>) {
    super(`${outcome.kind}: ${outcome.detail}`)
  }
}

// Returns the result, or throws NotDone: in an open saga that undoes what was done before.
export function resultOf<R>(outcome: Outcome<R>): R {
  if (outcome.kind === 'Done') return outcome.result
  throw new NotDone(outcome)
}

const forPersons = new Set(['awaiting-operator', 'paused'])

// Refusals that hold for the operation itself: they count even where an earlier try of this call had no answer.
const ofTheOperation = new Set(['arguments-differ', 'duplicate-call', 'expired', 'blocked-by-precheck'])

// True where it makes no sense to ask again at once, although the problem says `retryable`: a person has to act first,
// or the failure belongs to this emission.
export const endsCall = (code: string) => forPersons.has(code) || code === 'outcome-unknown' || code === 'tool-failed'

// `mayHaveArrived`: an earlier try of this call had no answer, or was told that it goes on.
export function outcomeOfProblem(
  problem: Problem,
  retryAfterMs: number | undefined,
  mayHaveArrived: boolean
): Exclude<Outcome, Done> {
  const code = codeOf(problem)
  const { detail, operation, retryable } = problem
  if (isUnderWay(problem)) return { kind: 'InFlight', detail, operation, retryAfterMs }
  if (forPersons.has(code)) return { kind: 'NeedsPerson', code, detail, operation, problem }
  if (code === 'tool-failed') return { kind: 'Failed', code, detail, retryable, operation, problem, retryAfterMs }
  const isCertain = ofTheOperation.has(code) || (!mayHaveArrived && !leavesDoubt(problem))
  if (code === 'outcome-unknown' || !isCertain)
    return { kind: 'Unknown', code, detail, operation, problem, retryAfterMs }
  return { kind: 'Refused', code, detail, retryable, operation, problem, retryAfterMs }
}
