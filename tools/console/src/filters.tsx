// Filters live in the address: what is typed is there after a moment, what is chosen at once. A filter that is there
// and empty asks for what has none.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { current, replace } from './route'
import { Saved, canSave } from './saved'
import { useSettings } from './settings'

export interface Filter {
  name: string
  label: string
  hint?: string
  choices?: string[]
  wordOf?: (choice: string) => string // as the rows say it
  when?: boolean // an instant
}

const typingMs = 400
const alwaysShown = 2 // filters; on a telephone the others fold away while they are not used

function instantOf(text: string) {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString()
}

// What <input type="datetime-local"> shows: the reader's zone.
function localOf(instant: string) {
  const date = new Date(instant)
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function Field({
  filter,
  value,
  first,
  folds,
  onChange
}: {
  filter: Filter
  value: string | undefined
  first: boolean
  folds: boolean
  onChange: (value: string) => void
}) {
  const [typed, setTyped] = useState(value ?? '')
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useLayoutEffect(() => setTyped(value ?? ''), [value]) // before a key can be pressed: it would be lost
  useEffect(() => () => clearTimeout(timer.current), [])
  const id = `filter-${filter.name}`
  const search = first ? { 'data-search': '' } : {}

  function onInput(text: string) {
    setTyped(text)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => onChange(text.trim()), typingMs)
  }
  function now(text: string) {
    clearTimeout(timer.current)
    onChange(text.trim())
  }
  return (
    <div class={folds ? 'field folds' : 'field'}>
      <label for={id}>{filter.label}</label>
      {filter.choices ? (
        <select id={id} value={value ?? ''} onChange={(event) => now(event.currentTarget.value)} {...search}>
          <option value="">any</option>
          {filter.choices.map((choice) => (
            <option key={choice} value={choice}>
              {filter.wordOf?.(choice) ?? choice}
            </option>
          ))}
        </select>
      ) : filter.when ? (
        <input
          id={id}
          type="datetime-local"
          value={value ? localOf(value) : ''}
          onChange={(event) => now(instantOf(event.currentTarget.value))}
        />
      ) : (
        <input
          id={id}
          type="search"
          value={typed}
          placeholder={value === '' ? 'none' : filter.hint}
          spellcheck={false}
          onInput={(event) => onInput(event.currentTarget.value)}
          onChange={(event) => now(event.currentTarget.value)}
          {...search}
        />
      )}
    </div>
  )
}

export function Filters({
  path,
  query,
  kept = {},
  filters,
  children
}: {
  path: string[]
  query: Record<string, string>
  kept?: Record<string, string> // beside the filters in the address: not cleared with them
  filters: Filter[]
  children?: ComponentChildren
}) {
  const { saved } = useSettings()
  const [isOpen, setOpen] = useState(false)
  const [isNaming, setNaming] = useState(false)
  const used = Object.keys(query).length > 0
  const isWhole = path.length === 1 // filters of a part, such as the log of one saga, are of no use elsewhere
  const saves = isWhole && canSave(saved, path[0], { ...kept, ...query })
  const folded = filters.filter(({ name }, i) => i >= alwaysShown && query[name] === undefined)
  return (
    <>
      <form
        class={isOpen ? 'filters open' : 'filters'}
        role="search"
        aria-label="Filters"
        onSubmit={(event) => event.preventDefault()}
      >
        {filters.map((filter, i) => (
          <Field
            key={filter.name}
            filter={filter}
            first={i === 0}
            folds={folded.includes(filter)}
            value={query[filter.name]}
            // By the address as it is now: another filter may have changed since this was drawn.
            onChange={(value) => replace(path, { ...current().query, [filter.name]: value || undefined })}
          />
        ))}
        {children}
        {folded.length > 0 && (
          <button type="button" class="quiet unfolds" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Fewer filters' : 'More filters'}
          </button>
        )}
        {/* They are always there: a button that goes away takes the focus with it, and moves the rows below. */}
        <button
          type="button"
          class="quiet"
          aria-disabled={used ? undefined : 'true'}
          onClick={() => used && replace(path, kept)}
        >
          Clear filters
        </button>
        {isWhole && (
          <button
            type="button"
            class="quiet"
            aria-disabled={saves ? undefined : 'true'}
            onClick={() => saves && setNaming(true)}
          >
            Save these filters
          </button>
        )}
      </form>
      {isWhole && (
        <Saved
          view={path[0]}
          query={{ ...kept, ...query }}
          isNaming={isNaming && saves}
          onNamed={() => setNaming(false)}
        />
      )}
    </>
  )
}

// One field for all tags: `city=Oslo team=shop`.
export function tagParameters(text: string | undefined): Record<string, string> {
  const found: Record<string, string> = {}
  for (const word of (text ?? '').split(/\s+/)) {
    const at = word.indexOf('=')
    if (at > 0) found[`tag.${word.slice(0, at)}`] = word.slice(at + 1)
  }
  return found
}
