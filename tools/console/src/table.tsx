// The one table of all views: it has a name, scrolls by itself where it is wider than the page, and its rows answer to
// the keys j and k. While it is busy, other rows are on their way, and those of before stay.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

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
  return (
    <div
      class={isPlain ? 'table plain' : 'table'}
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
        <tbody>
          {rows.map((row, i) => (
            <tr key={keyOf(row, i)} data-row={isPlain ? undefined : keyOf(row, i)} class={rowClass?.(row, i)}>
              {columns.map(([title, cell, isNumber]) => (
                <td key={title} class={isNumber ? 'number' : undefined}>
                  {cell(row, i)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
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
