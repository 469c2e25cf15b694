// The HTTP API, with the session of this browser. Every request carries the header that a page of another origin cannot
// send. All addresses are relative to this page, so that a proxy may serve sagad below a path of its own.
import { namespacesNow } from './route'

export interface Answer<T> {
  data: T
  etag: string | null
}

// What went wrong, in the words of the service. `lost`: nobody answered at all.
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly errors: { pointer: string; detail: string }[] = []
  ) {
    super(detail)
  }

  get lost() {
    return this.status === 0
  }
}

// A number that a double cannot hold stays the text that came.
export class ExactNumber {
  constructor(readonly text: string) {}
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown

const keepDigits: Reviver = (_key, value, context) =>
  typeof value === 'number' && context?.source && !sameNumber(value, context.source)
    ? new ExactNumber(context.source)
    : value

function sameNumber(value: number, source: string) {
  return String(value) === source || (Number.isInteger(value) ? Number.isSafeInteger(value) : source.length < 16)
}

// Finds each number that a double may not hold: it is long, or has an exponent. It may also find what only looks so.
const mayLoseDigits = /[:,[]\s*-?[0-9][0-9.]*(?:[0-9.]{14}|[eE])|^\s*-?[0-9]/

// A look at each value takes longer than all the rest of reading, and few answers need one.
export const parse = (text: string): unknown =>
  mayLoseDigits.test(text) ? JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown) : JSON.parse(text)

// The counterpart of parse(): what came in with more digits than a double holds goes out with all of them.
export function print(value: unknown): string {
  if (value instanceof ExactNumber) return value.text
  if (Array.isArray(value)) return `[${value.map(print).join(',')}]`
  if (value && typeof value === 'object') {
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${print(member)}`).join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
}

const base = new URL('../', document.baseURI)

// A request that names no namespace is in the chosen one, or in that of the token.
async function send(path: string, init: RequestInit, namespace?: string): Promise<Response> {
  const headers = new Headers(init.headers)
  const chosen = path.startsWith('v1/') && path !== 'v1/me' ? namespacesNow() : []
  const named = namespace ?? (chosen.length === 1 ? chosen[0] : undefined)
  headers.set('Sagad-Console', '1')
  if (named) headers.set('Sagad-Namespace', named)
  try {
    return await fetch(new URL(path, base), { ...init, headers, cache: 'no-store', credentials: 'same-origin' })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new Problem(0, 'sagad does not answer', 'The connection to sagad is lost. This page tries again by itself.')
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text()
  try {
    const body = JSON.parse(text)
    return new Problem(response.status, body.title, body.detail, body.errors)
  } catch {
    return new Problem(response.status, `The answer was ${response.status}`, text.slice(0, 500) || response.statusText)
  }
}

// `null`: what was asked for has not changed since `etag`.
export async function get<T>(
  path: string,
  etag?: string | null,
  signal?: AbortSignal,
  namespace?: string
): Promise<Answer<T> | null> {
  const response = await send(path, { headers: etag ? { 'If-None-Match': etag } : {}, signal }, namespace)
  if (response.status === 304) return null
  if (!response.ok) throw await problemOf(response)
  return { data: parse(await response.text()) as T, etag: response.headers.get('etag') }
}

// The body of a stream of events. `lastId`: what came last, of a stream before.
export async function open(path: string, lastId: string | undefined, signal: AbortSignal) {
  const headers: Record<string, string> = { Accept: 'text/event-stream' }
  if (lastId) headers['Last-Event-ID'] = lastId
  const response = await send(path, { headers, signal })
  if (!response.ok || !response.body) throw await problemOf(response)
  return response.body
}

export async function read<T>(path: string): Promise<T> {
  return (await get<T>(path))!.data
}

// `once` is an Idempotency-Key: the same change sent twice is one.
export async function change<T>(
  method: 'POST' | 'DELETE',
  path: string,
  body?: unknown,
  once?: string,
  namespace?: string
): Promise<T> {
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' }
  if (once) headers['Idempotency-Key'] = once
  const response = await send(
    path,
    { method, headers, body: body === undefined ? undefined : typeof body === 'string' ? body : print(body) },
    namespace
  )
  if (!response.ok) throw await problemOf(response)
  return parse(await response.text()) as T
}

export function query(path: string, parameters: Record<string, string | number | undefined | null>) {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== null) search.append(name, String(value))
  return search.size ? `${path}?${search}` : path
}
