// What a call takes from where it is made: its run, the open saga that it belongs to, and its trace.
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Trace {
  traceparent: string
  tracestate?: string | undefined
}

// A call belongs to a run or to an open saga, and the inner one of the two counts.
export type Belonging = { run: string } | { saga: string; server: string }

const belongings = new AsyncLocalStorage<Belonging>()
const traces = new AsyncLocalStorage<Trace>()

export const currentBelonging = () => belongings.getStore()
export const currentTrace = () => traces.getStore()

// Calls that `work` makes belong to the run: the same step, tool and scope in it is done once. Take the run from what
// your framework restores after a crash, such as the id of a job or of a conversation.
export function inRun<T>(run: string, work: () => T): T {
  return belongings.run({ run }, work)
}

// Calls that `work` makes carry this trace (W3C Trace Context), and sagad hands it to the tools.
export function inTrace<T>(trace: Trace, work: () => T): T {
  return traces.run(trace, work)
}

export function inSaga<T>(server: string, saga: string, work: () => T): T {
  return belongings.run({ server, saga }, work)
}
