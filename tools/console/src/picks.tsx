// Rows that somebody has picked for one verb. They are named one by one, so that a row which comes later is not meant.
import { useEffect, useState } from 'preact/hooks'
import { href } from './route'
import type { Column } from './table'
import type { Me } from './types'
import { Act, whyNot } from './ui'

export interface Pick {
  name: string // as sagactl takes it: the id of a saga, the number of a case
  title: string // as the row shows it
  item: Record<string, string> // as POST /v1/bulk takes it
}

export interface Picks<T> {
  column: Column<T>
  picked: Pick[]
}

// `of`: what lists are the same; with another one nothing is picked. A row without a pick cannot be named.
export function usePicks<T>(of: string, pickOf: (row: T) => Pick | string): Picks<T> {
  const [kept, setKept] = useState<{ of: string; picked: Pick[] }>({ of, picked: [] })
  useEffect(() => setKept({ of, picked: [] }), [of])
  const picked = kept.of === of ? kept.picked : []
  const column: Column<T> = [
    'Pick',
    (row) => {
      const pick = pickOf(row)
      if (typeof pick === 'string')
        return (
          <label class="pick" title={pick}>
            <input type="checkbox" disabled aria-label={pick} />
          </label>
        )
      const isPicked = picked.some(({ name }) => name === pick.name)
      const others = picked.filter(({ name }) => name !== pick.name)
      return (
        <label class="pick">
          <input
            type="checkbox"
            data-pick=""
            checked={isPicked}
            aria-label={`pick ${pick.title}`}
            onChange={() => setKept({ of, picked: isPicked ? others : [...picked, pick] })}
          />
        </label>
      )
    }
  ]
  return { column, picked }
}

// Leads to the page on which a verb is chosen for what was picked.
export function ActOnPicked({ of, picked, me, label }: { of: string; picked: Pick[]; me: Me; label: string }) {
  if (picked.length === 0) return null
  const why = whyNot(me, 'operator')
  const text = `${label} ${picked.length} picked`
  if (why) return <Act why={why}>{text}</Act>
  const items = JSON.stringify(picked.map(({ item }) => item))
  const names = picked.map(({ name }) => name).join()
  return (
    <a class="button" href={href(['bulk', 'new'], { of, items, names })}>
      {text}
    </a>
  )
}
