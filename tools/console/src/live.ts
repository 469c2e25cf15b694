// What is on the screen follows by conditional reads: an answer that is the same as before costs no bytes and draws
// nothing. A page that nobody sees asks for nothing. When sagad does not answer, the reads become rarer, the page says
// so, and goes on by itself.
import { useEffect, useState } from 'preact/hooks'
import { Problem, get } from './api'

const firstAgainMs = 1000 // after a read that failed
const slowest = 30_000

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
  useEffect(() => {
    const tell = () => redraw((n) => n + 1)
    listeners.add(tell)
    return () => void listeners.delete(tell)
  }, [])
  return lostSince
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

export let onSignedOut: () => void = () => undefined
export function setOnSignedOut(then: () => void) {
  onSignedOut = then
}

export function useLive<T>(path: string | null, every = 3000): Live<T> {
  const [kept, setKept] = useState<Kept<T>>({ path, data: null, problem: null })
  const [asked, setAsked] = useState(0)

  useEffect(() => {
    if (!path) return
    let timer: ReturnType<typeof setTimeout> | undefined
    let failures = 0
    let etag: string | null = null
    const ended = new AbortController()

    async function look() {
      try {
        const answer = await get<T>(path!, etag, ended.signal)
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
        if (problem.status === 401) onSignedOut()
        setKept((before) => ({ path, data: before.path === path ? before.data : null, problem }))
        failures++
        if (problem.status === 403) return // it stays so for as long as this session lasts
      }
      const delay = failures > 0 ? Math.min(firstAgainMs * 2 ** (failures - 1), slowest) : every
      if (!document.hidden) timer = setTimeout(look, delay)
    }
    function onVisible() {
      clearTimeout(timer)
      if (!document.hidden) void look()
    }
    document.addEventListener('visibilitychange', onVisible)
    void look()
    return () => {
      ended.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [path, every, asked])

  const mine = kept.path === path
  return { data: mine ? kept.data : null, problem: mine ? kept.problem : null, refresh: () => setAsked((n) => n + 1) }
}
