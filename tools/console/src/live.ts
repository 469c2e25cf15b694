// What is on the screen follows by events (feed.ts) where they tell of it, and by conditional reads elsewhere. An
// answer that is the same as before costs no bytes and draws nothing. A page that nobody sees asks for nothing. When
// sagad does not answer, the reads become rarer; the page says so, and goes on by itself.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Problem, get } from './api'
import { feedIsOn, follow } from './feed'
import type { Page } from './types'

const firstAgainMs = 1000 // after a read that failed
const slowest = 30_000
const followedPace = 6 // times as slow while events tell what changes
const eventsMs = 200 // events that come together are one read

// --- is the connection there? ---

let lostSince: number | null = null
const listeners = new Set<() => void>()

function setLost(lost: boolean) {
  if (lost === (lostSince !== null)) return
  lostSince = lost ? Date.now() : null
  for (const tell of listeners) tell()
}

export function useLostSince() {
  const [, redraw] = useState(0)
  useLayoutEffect(() => {
    const tell = () => redraw((n) => n + 1)
    listeners.add(tell)
    return () => void listeners.delete(tell)
  }, [])
  return lostSince
}

// Does nobody see this page?
export function useHidden() {
  const [hidden, setHidden] = useState(document.hidden)
  useLayoutEffect(() => {
    const onChange = () => setHidden(document.hidden)
    document.addEventListener('visibilitychange', onChange)
    return () => document.removeEventListener('visibilitychange', onChange)
  }, [])
  return hidden
}

// --- several namespaces as one list, as `sagactl list -A` has it ---

type Row = Record<string, unknown>

export interface Merge {
  namespaces: string[]
  newestBy: string // the member that says how new a row is
  limit: number
}

class Pages {
  private etags = new Map<string, string | null>()
  private pages = new Map<string, Page<Row>>()

  constructor(private merge: Merge) {}

  // null: no namespace has anything new.
  async read(path: string, signal: AbortSignal): Promise<Page<Row> | null> {
    const { namespaces, newestBy, limit } = this.merge
    const answers = await Promise.all(
      namespaces.map((name) => get<Page<Row>>(path, this.etags.get(name) ?? null, signal, name))
    )
    answers.forEach((answer, i) => {
      if (!answer) return
      this.etags.set(namespaces[i], answer.etag)
      this.pages.set(namespaces[i], answer.data)
    })
    if (answers.every((answer) => answer === null)) return null
    const all = namespaces.flatMap((namespace) =>
      (this.pages.get(namespace)?.items ?? []).map((item): Row => ({ ...item, namespace }))
    )
    all.sort((a, b) => Date.parse(String(b[newestBy])) - Date.parse(String(a[newestBy])))
    const hasMore = all.length > limit || [...this.pages.values()].some(({ next_cursor }) => next_cursor !== null)
    return { items: all.slice(0, limit), next_cursor: null, hasMore }
  }
}

// --- one read, again and again ---

export interface Live<T> {
  data: T | null // of this path; the last that came, also while nobody answers
  problem: Problem | null
  refresh: () => void
}

interface Kept<T> {
  path: string | null
  data: T | null
  problem: Problem | null
}

let session = 0

// A read that was sent before this may still be refused because of the session before. It says nothing about this one.
export function beginSession() {
  session++
}

let onSignedOut: () => void = () => undefined
export function setOnSignedOut(then: () => void) {
  onSignedOut = then
}

// `follows`: the beginnings of the types of events that change it. With `merge` and several namespaces T is a page of
// rows, each with its `namespace`.
export function useLive<T>(
  path: string | null,
  every: number | (() => number) = 3000,
  { follows, merge }: { follows?: string[]; merge?: Merge } = {}
): Live<T> {
  const several = merge && merge.namespaces.length > 1 ? merge.namespaces.join() : ''
  const [kept, setKept] = useState<Kept<T>>({ path, data: null, problem: null })
  const lookNow = useRef<() => void>(() => undefined)
  const types = follows?.join() ?? ''

  useEffect(() => {
    if (!path) return
    let timer: ReturnType<typeof setTimeout> | undefined
    let failures = 0
    let etag: string | null = null
    const ended = new AbortController()
    const pages = several && merge ? new Pages(merge) : null

    let isLooking = false
    let isAsked = false // while it was looking
    async function look() {
      isLooking = true
      const asIn = session
      try {
        const merged = pages ? ((await pages.read(path!, ended.signal)) as T | null) : null
        const answer = pages ? merged && { data: merged, etag: null } : await get<T>(path!, etag, ended.signal)
        if (answer) {
          etag = answer.etag
          setKept({ path, data: answer.data, problem: null })
        } else {
          setKept((before) => (before.problem ? { ...before, problem: null } : before))
        }
        setLost(false)
        failures = 0
      } catch (error) {
        if (ended.signal.aborted) return
        const problem = error instanceof Problem ? error : new Problem(-1, 'This page has a fault', String(error))
        setLost(problem.lost)
        const isLate = problem.status === 401 && asIn !== session
        if (problem.status === 401 && !isLate) onSignedOut()
        if (!isLate) setKept((before) => ({ path, data: before.path === path ? before.data : null, problem }))
        failures++
        if (problem.status === 403) return // it stays so for as long as this session lasts
      }
      isLooking = false
      const usual = typeof every === 'number' ? every : every()
      const pace = types && feedIsOn() ? usual * followedPace : usual
      const delay = isAsked ? 0 : failures > 0 ? Math.min(firstAgainMs * 2 ** (failures - 1), slowest) : pace
      isAsked = false
      if (!document.hidden) timer = setTimeout(look, delay)
    }
    function soon(delay: number) {
      if (isLooking) isAsked = true
      else {
        clearTimeout(timer)
        if (!document.hidden) timer = setTimeout(look, delay)
      }
    }
    const onVisible = () => soon(0)
    lookNow.current = () => soon(0)
    document.addEventListener('visibilitychange', onVisible)
    const unfollow = types ? follow(types.split(','), () => soon(eventsMs)) : undefined
    void look()
    return () => {
      ended.abort()
      unfollow?.()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [path, several, types])

  const mine = kept.path === path
  return { data: mine ? kept.data : null, problem: mine ? kept.problem : null, refresh: () => lookNow.current() }
}
