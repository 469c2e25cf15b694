// The one table of all views: it has a name, scrolls by itself where it is wider than the page, and its rows answer to
// the keys j and k.
import type { ComponentChildren } from 'preact'

// title, what a row shows below it, and whether that is a number
export type Column<T> = [title: string, cell: (row: T, i: number) => ComponentChildren, isNumber?: boolean]

export function Table<T>({
  label,
  rows,
  keyOf,
  columns,
  rowClass,
  isPlain
}: {
  label: string
  rows: T[]
  keyOf: (row: T, i: number) => string | number
  columns: Column<T>[]
  rowClass?: (row: T, i: number) => string | undefined
  isPlain?: boolean // its rows lead nowhere: j and k pass them by, and a long table scrolls in a place of its own
}) {
  return (
    <div class={isPlain ? 'table plain' : 'table'} role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(([title]) => (
              <th scope="col" key={title}>
                {title}
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
