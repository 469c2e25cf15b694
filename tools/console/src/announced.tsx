// A list in which nothing jumps. Rows that are shown stay where they are, and show how they are by now. New rows are
// announced, and come when they are asked for.
import { useEffect, useState } from 'preact/hooks'

export interface Announced<T> {
  rows: T[]
  isGone: (row: T) => boolean // it fits no more: it is shown as it was
  fresh: number // new rows that are not shown yet
  show: () => void
}

// `of` names what is listed: another list begins anew.
export function useAnnounced<T>(of: string, items: T[] | undefined, keyOf: (row: T) => string | number) {
  const [shown, setShown] = useState<{ of: string; rows: T[] } | null>(null)
  const mine = shown?.of === of ? shown : null
  useEffect(() => {
    if (!items) return
    const now = new Map(items.map((row) => [keyOf(row), row]))
    setShown((before) =>
      before?.of === of && before.rows.length > 0
        ? { of, rows: before.rows.map((row) => now.get(keyOf(row)) ?? row) }
        : { of, rows: items }
    )
  }, [items, of])

  if (!items) return null
  const rows = mine?.rows ?? items
  const here = new Set(rows.map(keyOf))
  const there = new Set(items.map(keyOf))
  const fresh = items.filter((row) => !here.has(keyOf(row))).length
  return {
    rows,
    isGone: (row: T) => !there.has(keyOf(row)),
    fresh,
    show: () => setShown({ of, rows: items })
  } satisfies Announced<T>
}

export const Fresh = ({
  list,
  one,
  many = `${one}s`
}: {
  list: Pick<Announced<never>, 'fresh' | 'show'>
  one: string
  many?: string
}) => (
  <div class="announced" role="status">
    {list.fresh > 0 && (
      <button type="button" class="main" onClick={list.show}>
        {list.fresh === 1 ? `1 ${one} is` : `${list.fresh} ${many} are`} new: show
      </button>
    )}
  </div>
)
