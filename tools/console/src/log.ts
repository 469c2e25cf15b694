// The log of a saga, page after page, and what is appended while the page is open. Its `seq` has no gaps, so that the
// number of the last entry is where reading goes on.
import { useEffect, useRef, useState } from 'preact/hooks'
import { Problem, query, read } from './api'
import type { LogEntry, Page } from './types'

export const entriesMax = 20_000
const pageEntries = 500

export interface Log {
  entries: LogEntry[]
  whole: boolean // as far as it went when it was last read
  cut: boolean // there are more than entriesMax
  problem: Problem | null
}

const nothing: Log = { entries: [], whole: false, cut: false, problem: null }

// Reads on whenever `version` is another one, such as the time of the saga's last change.
export function useLog(id: string, version: string | undefined): Log {
  const [log, setLog] = useState<Log>(nothing)
  const entries = useRef<LogEntry[]>([])
  const of = useRef('')

  useEffect(() => {
    if (!version) return
    let ended = false
    if (of.current !== id) {
      of.current = id
      entries.current = []
      setLog(nothing)
    }
    async function readOn() {
      try {
        for (let more = true; more && !ended;) {
          const last = entries.current.at(-1)?.seq
          const path = `v1/sagas/${encodeURIComponent(id)}/log`
          const page = await read<Page<LogEntry>>(query(path, { limit: pageEntries, cursor: last }))
          if (ended) return
          if (page.items.length > 0) entries.current = [...entries.current, ...page.items]
          const cut = entries.current.length >= entriesMax
          more = page.next_cursor !== null && page.items.length === pageEntries && !cut
          setLog({ entries: entries.current, whole: !more, cut, problem: null })
        }
      } catch (error) {
        if (!ended) setLog({ entries: entries.current, whole: false, cut: false, problem: error as Problem })
      }
    }
    void readOn()
    return () => {
      ended = true
    }
  }, [id, version])
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
