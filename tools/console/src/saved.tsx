// Filters that somebody has given a name. This browser keeps them; to give them to somebody else, send the address.
import { go } from './route'
import { set, useSettings, type SavedFilter } from './settings'

export const savedMax = 20
const nameMax = 60

const sameQuery = (a: Record<string, string>, b: Record<string, string>) =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort())

export const canSave = (saved: SavedFilter[], view: string, query: Record<string, string>) =>
  Object.keys(query).length > 0 && !saved.some((one) => one.view === view && sameQuery(one.query, query))

export function Saved({
  view,
  query,
  isNaming,
  onNamed
}: {
  view: string
  query: Record<string, string>
  isNaming: boolean
  onNamed: () => void
}) {
  const { saved } = useSettings()
  const mine = saved.filter((one) => one.view === view)
  const others = (name: string) => saved.filter((one) => one.view !== view || one.name !== name)

  function save(event: Event) {
    event.preventDefault()
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem('name') as HTMLInputElement
    const name = field.value.trim()
    if (!name) return
    const added: SavedFilter = { view, name, query }
    set({ saved: [...others(name), added].slice(-savedMax) })
    onNamed()
  }
  if (mine.length === 0 && !isNaming) return null
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
      {isNaming && (
        <form onSubmit={save}>
          <label for="saved-name">Name of these filters</label>
          <input id="saved-name" name="name" maxLength={nameMax} required autoFocus />
          <button type="submit">Save</button>
        </form>
      )}
    </div>
  )
}
