// The log of a saga, page after page, and what is appended while the page is open. Its `seq` has no gaps, so that the
// number of the last entry is where reading goes on.
import { useEffect, useRef, useState } from 'preact/hooks'
import { Problem, parse, query, read } from './api'
import { useHidden } from './live'
import { readStream, type Sent } from './stream'
import type { LogEntry, Page } from './types'

export const entriesMax = 20_000
const pageEntries = 500
const sideBySide = 4 // pages; a browser has six connections to a server
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

const readPage = async (id: string, after: number) =>
  (
    await read<Page<LogEntry>>(
      query(`v1/sagas/${encodeURIComponent(id)}/log`, { limit: pageEntries, cursor: after || null })
    )
  ).items

// Reads several pages at a time until one is not full, and hands them out in their order. The cursor of a page is known
// before the page in front of it has come.
async function readSideBySide(id: string, from: number, take: (page: LogEntry[]) => void, isOver: () => boolean) {
  const early = new Map<number, LogEntry[]>() // pages that came before their turn
  let next = from
  let turn = from
  let isLast = false
  async function readSome() {
    while (!isLast && !isOver()) {
      const after = next
      next += pageEntries
      const page = await readPage(id, after)
      if (page.length < pageEntries) isLast = true
      early.set(after, page)
      for (let ready = early.get(turn); ready; ready = early.get(turn)) {
        early.delete(turn)
        turn += pageEntries
        take(ready)
      }
    }
  }
  await Promise.all(Array.from({ length: sideBySide }, readSome))
}

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

  // The first page is asked for beside the saga, which takes longer.
  const first = useRef<{ id: string; page: Promise<LogEntry[]> } | null>(null)
  useEffect(() => {
    const page = readPage(id, 0)
    page.catch(() => undefined) // told by whoever reads on
    first.current = { id, page }
  }, [id])

  useEffect(() => {
    if (!version) return
    let isOver = false
    let drawn = 0 // when pages were last given to be drawn
    if (of.current !== id) {
      of.current = id
      entries.current = []
      setLog(nothing)
    }
    const lastSeq = () => entries.current.at(-1)?.seq ?? 0
    const isCut = () => entries.current.length >= entriesMax
    function draw(whole: boolean) {
      drawn = performance.now()
      setLog((before) => ({ ...before, entries: entries.current, whole, cut: isCut(), problem: null }))
    }
    // The stream may have been faster. What follows upon a gap is left to the next reading: the log has grown
    // meanwhile.
    function take(page: LogEntry[]) {
      const fresh = page.filter(({ seq }) => seq > lastSeq())
      if (isOver || fresh[0]?.seq !== lastSeq() + 1) return
      entries.current = [...entries.current, ...fresh]
      // The first page is drawn at once; after that each drawing costs more than reading a page.
      if (drawn === 0 || performance.now() - drawn >= drawnAgainMs) draw(false)
    }
    async function readOn() {
      const asked = first.current
      first.current = null
      try {
        const begin = lastSeq()
        const page = begin === 0 && asked?.id === id ? await asked.page : await readPage(id, begin)
        take(page)
        if (page.length === pageEntries) await readSideBySide(id, begin + pageEntries, take, () => isOver || isCut())
        if (!isOver) draw(true)
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
