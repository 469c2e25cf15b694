// A list in which nothing jumps. Rows that are shown stay where they are, and show how they are by now. New rows are
// announced, and come when they are asked for. While another list is read, the rows of before stay, marked busy: who
// works with them keeps the place and the focus.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Problem, read } from './api'
import type { Live } from './live'
import { Age } from './time'
import type { Page } from './types'
import { Trouble, count } from './ui'

export interface Announced<T> {
  rows: T[]
  isBusy: boolean // another list is read, and these are the rows of before
  isGone: (row: T) => boolean // it fits no more: it is shown as it was
  fresh: number // new rows that are not shown yet
  show: () => void
}

interface Kept<T> {
  of: string
  rows: T[]
  next: string | null // where older rows begin
  lookedTo: string | undefined // older ones were not looked at
}

type Key = string | number

// Into an empty list rows come by themselves: there is nothing that they could move.
function stays<T>(kept: Kept<T> | null, of: string, page: Page<T>): kept is Kept<T> {
  return kept?.of === of && (kept.rows.length > 0 || page.items.length === 0)
}

// Returns null while there is nothing to show. `of` names what is listed: another list takes the place of the one
// before as soon as it is read. An empty list does not stay: it would say of the next one that nothing fits.
function useKept<T>(of: string, page: Page<T> | null, keyOf: (row: T) => Key) {
  const [kept, setKept] = useState<Kept<T> | null>(null)
  const whole = (): Kept<T> => ({ of, rows: page!.items, next: page!.next_cursor, lookedTo: page!.looked_to })
  useEffect(() => {
    if (!page) return
    const now = new Map(page.items.map((row) => [keyOf(row), row]))
    setKept((before) =>
      stays(before, of, page) ? { ...before, rows: before.rows.map((row) => now.get(keyOf(row)) ?? row) } : whole()
    )
  }, [page, of])

  const isBusy = !page
  const before = kept && kept.rows.length > 0 ? kept : null
  const shown = !page ? before : stays(kept, of, page) ? kept : whole()
  const here = new Set(shown?.rows.map(keyOf))
  const there = new Set(page?.items.map(keyOf))
  const fresh = page ? page.items.filter((row) => !here.has(keyOf(row))).length : 0
  const list: Announced<T> | null = shown && {
    rows: shown.rows,
    isBusy,
    isGone: (row) => !isBusy && !there.has(keyOf(row)),
    fresh,
    show: () => page && setKept(whole())
  }
  return { list, shown, setKept }
}

// A list that is refused shows no rows: they would be those of another one.
const pageOf = <T,>(live: Live<Page<T>>) => ({ page: live.data, isRefused: !live.data && !!live.problem?.status })

export function useAnnounced<T>(of: string, live: Live<Page<T>>, keyOf: (row: T) => Key): Announced<T> | null {
  const { page, isRefused } = pageOf(live)
  const { list } = useKept(of, page, keyOf)
  return isRefused ? null : list
}

// --- a list with further pages ---

export interface Paged<T> extends Announced<T> {
  next: string | null
  lookedTo: string | undefined
  more: () => void // reads the next page
  isReading: boolean
  problem: Problem | null // with the next page
}

export function usePaged<T>(
  path: string,
  pathOfMore: (cursor: string) => string,
  live: Live<Page<T>>,
  keyOf: (row: T) => Key
): Paged<T> | null {
  const { page, isRefused } = pageOf(live)
  const { list, shown, setKept } = useKept(path, page, keyOf)
  const [isReading, setReading] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)

  async function more() {
    if (!shown?.next || shown.of !== path) return
    setReading(true)
    try {
      const older = await read<Page<T>>(pathOfMore(shown.next))
      setKept((before) => {
        if (before?.of !== path) return before // somebody went on to another list meanwhile
        const known = new Set(before.rows.map(keyOf))
        const rows = [...before.rows, ...older.items.filter((row) => !known.has(keyOf(row)))]
        return { of: path, rows, next: older.next_cursor, lookedTo: older.looked_to }
      })
      setProblem(null)
    } catch (error) {
      setProblem(error as Problem)
    }
    setReading(false)
  }
  if (!list || !shown || isRefused) return null
  return { ...list, next: shown.next, lookedTo: shown.lookedTo, more: () => void more(), isReading, problem }
}

// --- the line above a list ---

// Says what is listed, that it is read, or that there are new rows. It has its height from the beginning, so that an
// announcement moves no row. The button goes away when it is pressed; the line takes the focus then, and the next key
// finds the rows.
export function Fresh({
  list,
  one,
  many = `${one}s`,
  orMore,
  children
}: {
  list: Pick<Announced<never>, 'fresh' | 'show' | 'isBusy'> | null
  one: string
  many?: string
  orMore?: boolean // there are new rows beyond those that were counted
  children?: ComponentChildren
}) {
  const line = useRef<HTMLDivElement>(null)
  if (!list) return null
  const number = `${list.fresh}${orMore ? ' or more' : ''}`
  return (
    <div class="announced" role="status" tabIndex={-1} ref={line}>
      {list.isBusy ? (
        <span class="muted">Reading {many} …</span>
      ) : list.fresh > 0 ? (
        <button type="button" class="main" onClick={() => (line.current?.focus(), list.show())}>
          {number === '1' ? `1 ${one} is` : `${number} ${many} are`} new: show
        </button>
      ) : (
        children
      )}
    </div>
  )
}

// What stands below a list with further pages.
export function Older<T>({
  list,
  one,
  hasMore
}: {
  list: Paged<T> | null
  one: string
  hasMore?: boolean // of several namespaces
}) {
  if (!list) return null
  return (
    <>
      <Trouble problem={list.problem} />
      {list.lookedTo && (
        <p class="muted" role="status">
          sagad has looked back to <Age at={list.lookedTo} />; older ones may fit as well.
        </p>
      )}
      {(list.rows.length > 0 || list.next) && (
        <p class="foot">
          {count(list.rows.length, one)} shown
          {list.next ? '' : hasMore ? '; choose one namespace to see more' : '; there are no more'}.{' '}
          {list.next && (
            <button type="button" onClick={list.more} disabled={list.isReading || list.isBusy}>
              {list.isReading ? 'Reading more …' : 'Show more'}
            </button>
          )}
        </p>
      )}
    </>
  )
}
