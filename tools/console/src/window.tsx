// A long list: only the rows that can be seen exist. Scrolling draws a few rows at its edge, every few rows: those that
// stay are the same objects as before, which Preact passes by.
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'

const spare = 16 // rows above and below what is seen
const atOnce = 8 // rows that scrolling draws together; fewer than are spare

export function Window({
  label,
  count,
  rowHeight,
  row,
  at,
  isList
}: {
  label: string
  count: number
  rowHeight: number
  row: (i: number) => ComponentChildren // the same function for as long as the rows are the same
  isList?: boolean // its rows are items of a list
  at?: number // brought into sight when it changes
}) {
  const room = useRef<HTMLDivElement>(null)
  const [topRow, setTopRow] = useState(0)
  const drawn = useMemo(() => new Map<number, ComponentChildren>(), [row])
  const [height, setHeight] = useState(600)
  const first = Math.max(0, Math.min(topRow, count) - spare)
  const last = Math.min(count, topRow + Math.ceil(height / rowHeight) + spare)

  useEffect(() => {
    const seen = new ResizeObserver(() => setHeight(room.current?.clientHeight ?? 600))
    seen.observe(room.current!)
    return () => seen.disconnect()
  }, [])
  useEffect(() => {
    const box = room.current!
    if (at === undefined || at < 0) return
    if (at * rowHeight < box.scrollTop || (at + 1) * rowHeight > box.scrollTop + box.clientHeight)
      box.scrollTop = Math.max(0, at * rowHeight - box.clientHeight / 2)
  }, [at])

  const rows: ComponentChildren[] = []
  for (let i = first; i < last; i++) {
    if (!drawn.has(i)) drawn.set(i, row(i))
    rows.push(drawn.get(i))
  }
  return (
    <div
      class="window"
      ref={room}
      role="region"
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => setTopRow(Math.floor(event.currentTarget.scrollTop / rowHeight / atOnce) * atOnce)}
    >
      <div style={{ height: `${first * rowHeight}px` }} />
      <div class="drawn" role={isList ? 'list' : undefined}>
        {rows}
      </div>
      <div style={{ height: `${(count - last) * rowHeight}px` }} />
    </div>
  )
}
