// What goes over the wire, by the names that this client uses. schema.d.ts is made from the OpenAPI document by
// build.mjs, and is not in the repository.
import type { components } from './schema.js'

export type Operation = components['schemas']['Operation']
export type Saga = components['schemas']['Saga']
export type ProblemDocument = components['schemas']['Problem']
export type CallBody = components['schemas']['CallInSaga']
export type OpenBody = components['schemas']['Open']
export type StartBody = components['schemas']['Start']
