// Filters that somebody has given a name. This browser keeps them; to give them to somebody else, send the address.
import { useState } from 'preact/hooks'
import { go } from './route'
import { set, useSettings, type SavedFilter } from './settings'

export const savedMax = 20
const nameMax = 60

const sameQuery = (a: Record<string, string>, b: Record<string, string>) =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort())

export function Saved({ view, query }: { view: string; query: Record<string, string> }) {
  const { saved } = useSettings()
  const [naming, setNaming] = useState(false)
  const mine = saved.filter((one) => one.view === view)
  const others = (name: string) => saved.filter((one) => one.view !== view || one.name !== name)
  const canSave = Object.keys(query).length > 0 && !mine.some((one) => sameQuery(one.query, query))

  function save(event: Event) {
    event.preventDefault()
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem('name') as HTMLInputElement
    const name = field.value.trim()
    if (!name) return
    const added: SavedFilter = { view, name, query }
    set({ saved: [...others(name), added].slice(-savedMax) })
    setNaming(false)
  }
  if (mine.length === 0 && !canSave) return null
  return (
    <div class="saved">
      {mine.length > 0 && (
        <ul aria-label="Saved filters">
          {mine.map((one) => (
            <li key={one.name}>
              <button
                type="button"
                class="quiet"
                aria-current={sameQuery(one.query, query) ? 'true' : undefined}
                onClick={() => go([view], one.query)}
              >
                {one.name}
              </button>
              <button
                type="button"
                class="quiet"
                aria-label={`Forget ${one.name}`}
                onClick={() => set({ saved: others(one.name) })}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      {canSave && !naming && (
        <button type="button" class="quiet" onClick={() => setNaming(true)}>
          Save these filters
        </button>
      )}
      {canSave && naming && (
        <form onSubmit={save}>
          <label for="saved-name">Name of these filters</label>
          <input id="saved-name" name="name" maxLength={nameMax} required autoFocus />
          <button type="submit">Save</button>
        </form>
      )}
    </div>
  )
}
