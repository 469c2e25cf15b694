// A client of sagad. README.md shows it; client.ts is the file to read first.
export {
  Sagad,
  type CallOptions,
  type OpenOptions,
  type SagadOptions,
  type SagaName,
  type StartOptions
} from './client.js'
export { inRun, inTrace } from './context.js'
export { type OpenSaga } from './open_saga.js'
export {
  NotDone,
  resultOf,
  type Done,
  type Failed,
  type InFlight,
  type NeedsPerson,
  type Outcome,
  type Refused,
  type Unknown
} from './outcome.js'
export { SagadProblem, SagadUnreachable, type Problem } from './problem.js'
export type { Operation, Saga } from './wire.js'
export type { components, operations, paths } from './schema.js'
