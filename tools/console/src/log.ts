// The log of a saga, page after page, and what is appended while the page is open. Its `seq` has no gaps, so that the
// number of the last entry is where reading goes on.
import { useEffect, useRef, useState } from 'preact/hooks'
import { Problem, parse, query, read } from './api'
import { useHidden } from './live'
import { readStream, type Sent } from './stream'
import type { LogEntry, Page } from './types'

export const entriesMax = 20_000
const pageEntries = 500
const togetherMs = 150 // entries that come together are drawn once
const drawnAgainMs = 1000 // while a long log is read
const againMs = 5000

export interface Log {
  entries: LogEntry[]
  whole: boolean // as far as it went when it was last read
  cut: boolean // there are more than entriesMax
  follows: boolean // new entries come by themselves
  problem: Problem | null
}

const nothing: Log = { entries: [], whole: false, cut: false, follows: false, problem: null }

// Reads on whenever `version` is another one, such as the time of the saga's last change; then follows the log until
// its last entry where the caller wants that. `onGrown`: entries have come by themselves.
export function useLog(
  id: string,
  version: string | undefined,
  following?: { ended: boolean; onGrown: () => void }
): Log {
  const [log, setLog] = useState<Log>(nothing)
  const entries = useRef<LogEntry[]>([])
  const of = useRef('')

  useEffect(() => {
    if (!version) return
    let isOver = false
    let drawn = 0 // when pages were last given to be drawn
    if (of.current !== id) {
      of.current = id
      entries.current = []
      setLog(nothing)
    }
    async function readOn() {
      try {
        for (let more = true; more && !isOver;) {
          const last = entries.current.at(-1)?.seq
          const path = `v1/sagas/${encodeURIComponent(id)}/log`
          const page = await read<Page<LogEntry>>(query(path, { limit: pageEntries, cursor: last }))
          if (isOver) return
          const known = entries.current.at(-1)?.seq ?? 0 // the stream may have been faster
          const fresh = page.items.filter(({ seq }) => seq > known)
          if (fresh.length > 0) entries.current = [...entries.current, ...fresh]
          const cut = entries.current.length >= entriesMax
          more = page.next_cursor !== null && page.items.length === pageEntries && !cut
          // The first page is drawn at once; after that each drawing costs more than reading a page.
          if (more && drawn > 0 && performance.now() - drawn < drawnAgainMs) continue
          drawn = performance.now()
          setLog((before) => ({ ...before, entries: entries.current, whole: !more, cut, problem: null }))
        }
      } catch (error) {
        if (!isOver) setLog({ ...nothing, entries: entries.current, problem: error as Problem })
      }
    }
    void readOn()
    return () => {
      isOver = true
    }
  }, [id, version])

  const hidden = useHidden()
  const isFollowed = following !== undefined && log.whole && !log.cut && !following.ended && !hidden
  const onGrown = useRef<() => void>(() => undefined)
  onGrown.current = following?.onGrown ?? (() => undefined)
  useEffect(() => {
    if (!isFollowed) return
    const over = new AbortController()
    const follows = (is: boolean) => setLog((before) => (before.follows === is ? before : { ...before, follows: is }))
    let timer: ReturnType<typeof setTimeout> | undefined
    function show() {
      timer = undefined
      setLog((before) => ({ ...before, entries: entries.current }))
      onGrown.current()
    }
    function onSent({ data }: Sent) {
      const entry = data ? (parse(data) as LogEntry) : null
      if (!entry || entry.seq !== (entries.current.at(-1)?.seq ?? 0) + 1) return
      entries.current = [...entries.current, entry]
      timer ??= setTimeout(show, togetherMs)
    }
    async function run() {
      while (!over.signal.aborted) {
        try {
          const last = entries.current.at(-1)?.seq
          const path = `v1/sagas/${encodeURIComponent(id)}/log?follow=true`
          await readStream(
            path,
            last === undefined ? undefined : String(last),
            over.signal,
            () => follows(true),
            onSent
          )
        } catch {
          // The saga is read at its usual pace meanwhile, and says what is wrong.
        }
        if (over.signal.aborted) return
        follows(false)
        onGrown.current()
        await new Promise((resolve) => setTimeout(resolve, againMs))
      }
    }
    void run()
    return () => {
      over.abort()
      clearTimeout(timer)
      follows(false)
    }
  }, [id, isFollowed])
  return log
}

// The arguments of each operation stand in its first record: step -> arguments, of the call and of its undoing.
export function argumentsOf(entries: LogEntry[]) {
  const found = { do: new Map<string, unknown>(), undo: new Map<string, unknown>() }
  for (const { type, step, data } of entries) {
    if (!step || data.args === undefined) continue
    if (type.startsWith('compensation.')) found.undo.set(step, data.args)
    else found.do.set(step, data.args)
  }
  return found
}
