// The one table of all views: it has a name, scrolls by itself where it is wider than the page, and its rows answer to
// the keys j and k. While it is busy, other rows are on their way, and those of before stay.
//
// A browser paints the whole of a table for each frame that scrolls, however little of it is seen. So the rows of a
// long one stand in stretches that the browser lays out and paints only where they are seen (`content-visibility`). All
// rows stay on the page: for the search of the browser, for readers of screens, and for the keys. The layout of a table
// knows no such stretches, so a long table is a grid, whose columns are as wide as those of the table were.
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

const stretch = 25 // rows
const long = 100 // a table of more rows is a long one

// title, what a row shows below it, whether that is a number, and where rows are sorted by it
export type Column<T> = [
  title: string,
  cell: (row: T, i: number) => ComponentChildren,
  isNumber?: boolean,
  sort?: { href: string; isOn: boolean }
]

export function Table<T>({
  label,
  rows,
  keyOf,
  columns,
  rowClass,
  isPlain,
  isBusy
}: {
  label: string
  rows: T[]
  keyOf: (row: T, i: number) => string | number
  columns: Column<T>[]
  rowClass?: (row: T, i: number) => string | undefined
  isPlain?: boolean // its rows lead nowhere: j and k pass them by, and a long table scrolls in a place of its own
  isBusy?: boolean
}) {
  const table = useKeptFocus()
  const isLong = !isPlain && rows.length > long
  useColumns(table, isLong, rows.length)
  return (
    <div
      class={isPlain ? 'table plain' : isLong ? 'table long' : 'table'}
      role="region"
      aria-label={label}
      aria-busy={isBusy}
      tabIndex={0}
      ref={table}
    >
      <table>
        <thead>
          <tr>
            {columns.map(([title, _, isNumber, sort]) => (
              <th
                scope="col"
                key={title}
                class={isNumber ? 'number' : undefined}
                aria-sort={sort?.isOn ? 'descending' : undefined}
              >
                {sort ? <a href={sort.href}>{title}</a> : title}
              </th>
            ))}
          </tr>
        </thead>
        {stretches(rows, isLong).map(([first, some]) => (
          <tbody key={first}>
            {some.map((row, n) => {
              const i = first + n
              return (
                <tr key={keyOf(row, i)} data-row={isPlain ? undefined : keyOf(row, i)} class={rowClass?.(row, i)}>
                  {columns.map(([title, cell, isNumber]) => (
                    <td key={title} class={isNumber ? 'number' : undefined}>
                      {cell(row, i)}
                    </td>
                  ))}
                </tr>
              )
            })}
          </tbody>
        ))}
      </table>
    </div>
  )
}

// The rows in stretches, each with the number of its first row. A short table is one.
function stretches<T>(rows: T[], isLong: boolean): [first: number, rows: T[]][] {
  if (!isLong) return [[0, rows]]
  return Array.from({ length: Math.ceil(rows.length / stretch) }, (_, n) => [
    n * stretch,
    rows.slice(n * stretch, (n + 1) * stretch)
  ])
}

// Gives the grid of a long table the columns that the table would have. They are measured where rows have come, and
// where the room is another one. A column is never narrower than that; what is left over goes to all of them.
function useColumns(room: RefObject<HTMLDivElement | null>, isLong: boolean, count: number) {
  const measure = () => {
    const box = room.current
    const table = box?.querySelector('table')
    if (!box || !table) return
    box.classList.remove('grid', 'placed')
    const widths = [...box.querySelectorAll('th')].map((head) => Math.ceil(head.getBoundingClientRect().width))
    table.style.setProperty('--columns', widths.map((width) => `minmax(${width}px, ${width}fr)`).join(' '))
    box.classList.add('grid')
    // A stretch that is not seen is as high as it would be, so that nothing moves when it comes.
    const bodies = [...box.querySelectorAll('tbody')]
    const heights = bodies.map((body) => body.getBoundingClientRect().height)
    bodies.forEach((body, n) => body.style.setProperty('contain-intrinsic-size', `auto ${heights[n]}px`))
    box.classList.add('placed')
  }
  useLayoutEffect(() => {
    if (isLong) measure()
    else room.current?.classList.remove('grid', 'placed')
  }, [isLong, count])
  useEffect(() => {
    if (!isLong) return
    let before = room.current?.clientWidth
    const seen = new ResizeObserver(() => {
      if (room.current?.clientWidth !== before) measure()
      before = room.current?.clientWidth
    })
    seen.observe(room.current!)
    return () => seen.disconnect()
  }, [isLong])
}

// A row that goes away while it has the focus leaves the focus to its table. The browser would give it to the page, and
// the next Tab would begin at the top.
function useKeptFocus() {
  const table = useRef<HTMLDivElement>(null)
  const within = useRef(false)
  useLayoutEffect(() => {
    if (within.current && document.activeElement === document.body) table.current?.focus({ preventScroll: true })
  })
  // Read while the rows are drawn: those of before are still there.
  within.current = table.current?.contains(document.activeElement) ?? false
  return table
}
