// The layer over the typed calls of openapi-fetch: each method names its request once, sends it as often as the API
// calls that safe, and says what became of it. The same name makes it the same request, so nothing happens twice.
import { randomUUID } from 'node:crypto'
import createClient, { type Client } from 'openapi-fetch'
import { currentBelonging, currentTrace, inSaga, type Trace } from './context.js'
import { noteOf, OpenSaga } from './open_saga.js'
import { endsCall, outcomeOfProblem, type Outcome } from './outcome.js'
import { ask, type Answer, type Sent } from './patience.js'
import { codeOf, SagadProblem, SagadUnreachable } from './problem.js'
import type { paths } from './schema.js'
import type { CallBody, OpenBody, Operation, Saga, StartBody } from './wire.js'

export interface SagadOptions {
  url: string
  // A bearer token, or where to take the current one from.
  token?: string | undefined | (() => string | Promise<string>)
  // How long a request is tried and waited for; 60 s.
  patienceMs?: number
  // The trace of the moment, for tracers that keep it themselves; else that of inTrace().
  trace?: () => Trace | undefined
  fetch?: (request: Request) => Promise<Response>
}

export interface AskOptions {
  patienceMs?: number
  signal?: AbortSignal
}

export interface StartOptions extends AskOptions {
  // The business id: the same again is the same saga.
  id: string
  input?: unknown
  tags?: Record<string, string>
  version?: number
}

export interface OpenOptions extends AskOptions {
  // The business id: the same again is the same saga, so that a program goes on after a crash.
  id: string
  deadline?: string
  onTimeout?: 'abort' | 'escalate'
  tags?: Record<string, string>
  budget?: NonNullable<OpenBody['budget']>
  loop?: NonNullable<OpenBody['loop']>
}

export interface CallOptions extends AskOptions {
  // Without it the run or the open saga of the context counts.
  run?: string
  // What the call is for, and whom or what it is about: never of the arguments' wording, of counters or of attempts.
  step?: string
  scope?: string
  args?: unknown
  turn?: string | number
  // The id of this one request, where your framework has one; else a new one for each call of this method.
  emission?: string
}

// A saga by its id, or by its definition and business id.
export type SagaName = string | { id: string } | { saga: string; businessId: string }

const defaultPatienceMs = 60_000
const traceparentForm = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
// eslint-disable-next-line no-control-regex
const emissionForm = /^[^\u0000-\u001f\u007f]{1,256}$/

// fetch() takes a header as bytes, each written as a character.
const inBytes = (text: string) => Buffer.from(text).toString('latin1')

// The body as text, made once: each try sends the same bytes. A value that JSON cannot hold fails here, and nothing is
// sent.
function textOf(body: object): () => string {
  const text = JSON.stringify(body)
  return () => text
}

function waitOf(waitMs: number) {
  return { wait: `${waitMs}ms` }
}

function answered<T>(answer: Answer<T>, what: string): T {
  if (answer.is === 'answered') return answer.data
  if (answer.is === 'refused') throw new SagadProblem(answer.problem, answer.retryAfterMs)
  throw new SagadUnreachable(what, answer.cause)
}

export class Sagad {
  // Every route of the API with its types, for what has no method here.
  readonly api: Client<paths>
  private readonly url: string
  private readonly patienceMs: number

  constructor(private readonly options: SagadOptions) {
    this.url = new URL(options.url).href.replace(/\/+$/, '')
    this.patienceMs = options.patienceMs ?? defaultPatienceMs
    this.api = createClient<paths>({
      baseUrl: this.url,
      redirect: 'error', // the token is for this server only
      ...(options.fetch && { fetch: options.fetch })
    })
    this.api.use({
      onRequest: async ({ request }) => {
        const { token } = this.options
        const bearer = typeof token === 'function' ? await token() : token
        if (bearer !== undefined) request.headers.set('authorization', `Bearer ${bearer.trim()}`)
        const trace = this.options.trace?.() ?? currentTrace()
        if (trace && traceparentForm.test(trace.traceparent)) {
          request.headers.set('traceparent', trace.traceparent)
          if (trace.tracestate) request.headers.set('tracestate', trace.tracestate)
        }
        return request
      }
    })
  }

  // Starts a saga once: the same business id again gives the saga that is there. Returns when the start is durable.
  async start(saga: string, options: StartOptions): Promise<Saga> {
    const { id, input, tags, version } = options
    const body: StartBody = { saga, id, ...(tags && { tags }), ...(version !== undefined && { version }) }
    if (input !== undefined) body.input = input
    return this.started(body, options)
  }

  // Waits for the end of a saga, and returns it as it is when it has ended or the patience is over: `ended_at` tells.
  async wait(name: SagaName, options: AskOptions = {}): Promise<Saga> {
    const answer = await ask<Saga>(
      { ...this.patience(options), isEarly: (_, saga) => (saga as Saga).ended_at === null },
      (waitMs, signal): Promise<Sent<Saga>> => {
        const query = waitOf(waitMs)
        if (typeof name === 'object' && 'saga' in name) {
          const path = { name: name.saga, business_id: name.businessId }
          return this.api.GET('/v1/sagas/by-business-id/{name}/{business_id}', { params: { path, query }, signal })
        }
        const path = { id: typeof name === 'string' ? name : name.id }
        return this.api.GET('/v1/sagas/{id}', { params: { path, query }, signal })
      }
    )
    return answered(answer, 'the question for a saga')
  }

  // Calls a tool. The same run, step, tool and scope is done once, whatever the arguments say and however often it is
  // called. Throws only where the call itself is wrong, such as one without a run, or where `signal` was aborted.
  async call<R = unknown>(tool: string, options: CallOptions = {}): Promise<Outcome<R>> {
    const belonging = options.run !== undefined ? { run: options.run } : currentBelonging()
    if (!belonging) throw new TypeError('a call belongs to a run: give `run`, or call it within inRun() or open()')
    if ('run' in belonging) {
      const text = textOf({ run: belonging.run, ...callBody(tool, options) })
      return this.outcome<R>(options, (query, header, signal) =>
        this.api.POST('/v1/operations', {
          params: { query, header },
          body: { run: belonging.run, tool },
          bodySerializer: text,
          signal
        })
      )
    }
    if (belonging.server !== this.url) throw new TypeError('the open saga of this context is one of another server')
    return this.callInSaga<R>(belonging.saga, tool, options)
  }

  async callInSaga<R = unknown>(id: string, tool: string, options: Omit<CallOptions, 'run'> = {}): Promise<Outcome<R>> {
    const text = textOf(callBody(tool, options))
    return this.outcome<R>(options, (query, header, signal) =>
      this.api.POST('/v1/sagas/{id}/calls', {
        params: { path: { id }, query, header },
        body: { tool },
        bodySerializer: text,
        signal
      })
    )
  }

  // Opens a saga, has `work` drive it, and completes it with what `work` returns. When `work` throws, the saga is
  // aborted: what was done is undone, and the error is thrown again. When this process dies, the deadline undoes it.
  async open<T>(options: OpenOptions, work: (saga: OpenSaga) => Promise<T>): Promise<T> {
    const { id, deadline, onTimeout, tags, budget, loop } = options
    const body: OpenBody = {
      open: true,
      id,
      ...(deadline !== undefined && { deadline }),
      ...(onTimeout && { on_timeout: onTimeout }),
      ...(tags && { tags }),
      ...(budget && { budget }),
      ...(loop && { loop })
    } as OpenBody
    const saga = await this.started(body, options)
    let value: T
    try {
      value = await inSaga(this.url, saga.id, () => work(new OpenSaga(this, saga.id)))
    } catch (error) {
      try {
        await this.abort(saga.id, noteOf(error))
      } catch (unaborted) {
        throw new AggregateError(
          [error, unaborted],
          `the saga ${saga.id} failed, and was not aborted: ${String(unaborted)}`
        )
      }
      throw error
    }
    await this.complete(saga.id, value, options)
    return value
  }

  private async started(body: StartBody | OpenBody, options: AskOptions): Promise<Saga> {
    const text = textOf(body)
    const answer = await ask(this.patience(options), (_, signal) =>
      this.api.POST('/v1/sagas', { body, bodySerializer: text, signal })
    )
    const started = answered(answer, 'the start of a saga')
    if ('status' in started) return started
    const read = await ask<Saga>(this.patience(options), (_, signal) =>
      this.api.GET('/v1/sagas/{id}', { params: { path: { id: started.id } }, signal })
    )
    return answered(read, `the saga ${started.id} is started; the question for it`)
  }

  private async complete(id: string, output: unknown, options: AskOptions): Promise<void> {
    const body = output === undefined ? {} : { output }
    const text = textOf(body)
    const answer = await ask<Saga>(this.patience(options), (waitMs, signal) =>
      this.api.POST('/v1/sagas/{id}/complete', {
        params: { path: { id }, query: waitOf(waitMs) },
        body,
        bodySerializer: text,
        signal
      })
    )
    answered(answer, `the end of the saga ${id}`)
  }

  // Not with the caller's signal: what was done has to be undone even when nobody waits any more.
  private async abort(id: string, note: string): Promise<void> {
    const body = { note }
    const answer = await ask<Saga>({ ms: this.patienceMs }, (_, signal) =>
      this.api.POST('/v1/sagas/{id}/abort', { params: { path: { id } }, body, signal })
    )
    // An earlier try whose answer was lost, or the deadline, came first.
    const hasEnded = answer.is === 'refused' && codeOf(answer.problem) === 'ended'
    if (hasEnded && (await this.wait(id)).status === 'compensated') return
    answered(answer, `the abort of the saga ${id}`)
  }

  private async outcome<R>(
    options: CallOptions,
    send: (
      query: { wait: string },
      header: { 'Idempotency-Key': string },
      signal: AbortSignal
    ) => Promise<Sent<Operation>>
  ): Promise<Outcome<R>> {
    const emission = options.emission ?? randomUUID()
    if (!emissionForm.test(emission))
      throw new TypeError('an emission has 1 to 256 characters and no control characters')
    const answer = await ask(
      { ...this.patience(options), isEnough: endsCall, isEarly: (response) => response.status === 202 },
      (waitMs, signal) => send(waitOf(waitMs), { 'Idempotency-Key': inBytes(emission) }, signal)
    )
    if (answer.is === 'refused') return outcomeOfProblem(answer.problem, answer.retryAfterMs, answer.mayHaveArrived)
    if (answer.is === 'unheard')
      return { kind: 'Unknown', detail: new SagadUnreachable('the call', answer.cause).message, cause: answer.cause }
    const operation = answer.data
    if (operation.state !== 'completed')
      return { kind: 'InFlight', detail: 'the wait is over, and the operation goes on', operation }
    return {
      kind: 'Done',
      result: operation.result as R,
      operation,
      replayed: answer.response.headers.get('idempotent-replayed') === 'true',
      firstAt: answer.response.headers.get('idempotent-first-at') ?? undefined
    }
  }

  private patience({ patienceMs, signal }: AskOptions) {
    return { ms: patienceMs ?? this.patienceMs, signal }
  }
}

function callBody(tool: string, { step, scope, args, turn }: CallOptions): CallBody {
  return {
    tool,
    ...(step !== undefined && { step }),
    ...(scope !== undefined && { scope }),
    ...(args !== undefined && { args }),
    ...(turn !== undefined && { turn })
  }
}
