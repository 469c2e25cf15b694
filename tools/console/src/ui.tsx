// Pieces that every view uses.
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ExactNumber, Problem } from './api'
import { namespacesNow } from './route'
import type { Me, Role } from './types'

// --- what went wrong, what is not there yet ---

// What stands between backticks is a command or a name.
const WithCode = ({ text }: { text: string }) => (
  <>{(text ?? '').split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>
)

export function Trouble({ problem, retry }: { problem: Problem | null; retry?: () => void }) {
  if (!problem) return null
  return (
    <div class="trouble" role="alert">
      <strong>{problem.title}</strong>
      <p>
        <WithCode text={problem.detail} />
      </p>
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((error) => (
            <li key={error.pointer}>
              <code>{error.pointer || '/'}</code> {error.detail}
            </li>
          ))}
        </ul>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

export const Loading = ({ what }: { what: string }) => (
  <p class="loading" role="status">
    Reading {what} …
  </p>
)

// Says what would be here, and the command that brings it.
export const Empty = ({
  title,
  children,
  command
}: {
  title: string
  children?: ComponentChildren
  command?: string
}) => (
  <div class="empty">
    <h2>{title}</h2>
    {children}
    {command && <Command text={command} />}
  </div>
)

// --- commands ---

export const shellQuote = (text: string) =>
  /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

// A command of sagactl names the namespace that is chosen.
export function command(...words: (string | null | undefined | false)[]) {
  const namespaces = namespacesNow()
  return [...words, ...(namespaces.length === 1 ? ['-n', namespaces[0]] : [])]
    .filter((word): word is string => typeof word === 'string')
    .map(shellQuote)
    .join(' ')
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState('')
  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('copied')
    } catch {
      setSaid('this browser does not let the page copy')
    }
  }
  useEffect(() => {
    if (!said) return
    const timer = setTimeout(() => setSaid(''), 3000)
    return () => clearTimeout(timer)
  }, [said])
  return (
    <>
      <button type="button" class="quiet" onClick={copy} title={text}>
        {label}
      </button>
      <span class="said" role="status">
        {said}
      </span>
    </>
  )
}

export const Command = ({ text }: { text: string }) => (
  <div class="command">
    <code>{text}</code>
    <Copy text={text} label="copy" />
  </div>
)

// --- rights ---

const roles: Role[] = ['reader', 'agent', 'operator', 'admin']
export const may = (me: Me, least: Role) => roles.indexOf(me.role) >= roles.indexOf(least)
export const whyNot = (me: Me, least: Role) =>
  may(me, least) ? null : `needs the role ${least}; you are signed in as ${me.role}`

// A button that cannot be pressed says why, also to who cannot see it.
export function Act({
  why,
  children,
  kind,
  briefly,
  ...rest
}: {
  why?: string | null
  kind?: 'main' | 'danger' | 'quiet'
  briefly?: boolean // why stands elsewhere on the page, too
} & ButtonHTMLAttributes<HTMLButtonElement>) {
  const id = useId()
  if (!why)
    return (
      <button type="button" class={kind} {...rest}>
        {children}
      </button>
    )
  return (
    <span class="not-allowed">
      <button type="button" class={kind} aria-disabled="true" aria-describedby={id} title={why}>
        {children}
      </button>
      <span id={id} class={briefly ? 'heard' : 'why'}>
        {why}
      </span>
    </span>
  )
}

// --- one of several ---

export const Choice = ({
  id,
  label,
  value,
  choices,
  onChoose
}: {
  id: string
  label: string
  value: string
  choices: [value: string, text: string][]
  onChoose: (value: string) => void
}) => (
  <div class="field">
    <label for={id}>{label}</label>
    <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {choices.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  </div>
)

// --- JSON ---

const shownBytes = 64 * 1024

function pretty(value: unknown, indent: string): string {
  if (value instanceof ExactNumber) return value.text
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    return `[\n${value.map((item) => `${indent}  ${pretty(item, indent + '  ')}`).join(',\n')}\n${indent}]`
  }
  if (value && typeof value === 'object') {
    const members = Object.entries(value)
    if (members.length === 0) return '{}'
    return `{\n${members
      .map(([name, member]) => `${indent}  ${JSON.stringify(name)}: ${pretty(member, indent + '  ')}`)
      .join(',\n')}\n${indent}}`
  }
  return JSON.stringify(value) ?? 'null'
}

export const jsonText = (value: unknown) => pretty(value, '')
export const isNothing = (value: unknown) => value === null || value === undefined

export function Json({ value, label }: { value: unknown; label: string }) {
  const text = jsonText(value)
  const [whole, setWhole] = useState(false)
  const cut = !whole && text.length > shownBytes
  return (
    <div class="json">
      <pre tabIndex={0} aria-label={label}>
        {cut ? `${text.slice(0, shownBytes)}\n…` : text}
      </pre>
      {cut && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          show all {Math.round(text.length / 1024)} KiB
        </button>
      )}
    </div>
  )
}

// --- a dialog: takes the keyboard, gives it back ---

export function Dialog({
  title,
  onClose,
  children
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Layout effects, so that keys pressed at once find the focus. An open dialog lets nothing behind it have the focus.
  useLayoutEffect(() => {
    const before = document.activeElement
    const shown = dialog.current!
    shown.showModal()
    return () => {
      shown.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" onClick={onClose}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  )
}

// --- facts ---

// `even`: short ones, in columns.
export const Facts = ({ children, even }: { children: ComponentChildren; even?: boolean }) => (
  <dl class={even ? 'facts even' : 'facts'}>{children}</dl>
)
export const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

export const Tags = ({ tags }: { tags: Record<string, string> | null | undefined }) => (
  <>
    {Object.entries(tags ?? {}).map(([name, value]) => (
      <span class="tag" key={name}>
        {name}={value}
      </span>
    ))}
  </>
)

export const count = (n: number, one: string, many = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`
export const times = (n: number) => (n === 0 ? 'never' : n === 1 ? 'once' : `${n} times`)
export const short = (id: string) => id.slice(0, 13)

// Costs count millionths; a tool that does not name its currency leaves the number alone.
export function money(micros: number, currency: string | null) {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 }
  return [(micros / 1e6).toLocaleString('en', digits), currency].filter(Boolean).join(' ')
}
