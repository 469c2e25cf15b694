// Filters live in the address: what is typed is there after a moment, what is chosen at once. A filter that is there
// and empty asks for what has none.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { current, replace } from './route'
import { Saved } from './saved'

export interface Filter {
  name: string
  label: string
  hint?: string
  choices?: string[]
  when?: boolean // an instant
}

const typingMs = 400

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
  onChange
}: {
  filter: Filter
  value: string | undefined
  first: boolean
  onChange: (value: string) => void
}) {
  const [typed, setTyped] = useState(value ?? '')
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => setTyped(value ?? ''), [value])
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
    <div class="field">
      <label for={id}>{filter.label}</label>
      {filter.choices ? (
        <select id={id} value={value ?? ''} onChange={(event) => now(event.currentTarget.value)} {...search}>
          <option value="">any</option>
          {filter.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
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
  const used = Object.keys(query).length > 0
  return (
    <>
      <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        {filters.map((filter, i) => (
          <Field
            key={filter.name}
            filter={filter}
            first={i === 0}
            value={query[filter.name]}
            // By the address as it is now: another filter may have changed since this was drawn.
            onChange={(value) => replace(path, { ...current().query, [filter.name]: value || undefined })}
          />
        ))}
        {children}
        {/* It is always there: a button that goes away when it is pressed takes the focus with it. */}
        <button
          type="button"
          class="quiet"
          aria-disabled={used ? undefined : 'true'}
          onClick={() => used && replace(path, kept)}
        >
          Clear filters
        </button>
      </form>
      <Saved view={path[0]} query={{ ...kept, ...query }} />
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
