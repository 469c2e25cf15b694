// A long list: only the rows that can be seen exist.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

const spare = 12 // rows above and below what is seen

export function Window({
  label,
  count,
  rowHeight,
  row,
  at
}: {
  label: string
  count: number
  rowHeight: number
  row: (i: number) => ComponentChildren
  at?: number // brought into sight when it changes
}) {
  const room = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(600)
  const first = Math.max(0, Math.floor(top / rowHeight) - spare)
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + spare)

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
  for (let i = first; i < last; i++) rows.push(row(i))
  return (
    <div
      class="window"
      ref={room}
      role="region"
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div style={{ height: `${first * rowHeight}px` }} />
      {rows}
      <div style={{ height: `${(count - last) * rowHeight}px` }} />
    </div>
  )
}
