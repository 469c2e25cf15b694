// A verb is asked for in a dialog: what it leads to, why (a note), and the same as a command. What the service answers
// is shown as it is; the first answer counts, however often the button is pressed.
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Problem, change, print } from './api'
import { namespacesNow } from './route'
import { State } from './state'
import type { PreviewEnd } from './types'
import { Copy, Dialog, Trouble, shellQuote } from './ui'

export const noteMax = 1000

export function curl(path: string, body: string, namespace?: string) {
  const chosen = namespacesNow()
  const named = namespace ?? (chosen.length === 1 ? chosen[0] : null)
  const url = new URL(`../${path}`, document.baseURI.replace(/#.*/, ''))
  const there = named ? ` -H ${shellQuote(`Sagad-Namespace: ${named}`)}` : ''
  return `curl ${shellQuote(url.href)} -H "Authorization: Bearer $TOKEN"${there} -d ${shellQuote(body)}`
}

export function VerbDialog({
  title,
  does,
  path,
  namespace,
  body,
  raw,
  asCommand,
  note = 'required',
  danger,
  button,
  children,
  onClose,
  onDone
}: {
  title: string
  does: string
  path: string
  namespace?: string // where several are shown
  body: (note: string) => Record<string, unknown> | string // a text says what is wrong
  raw?: string // sent in place of the body: JSON that a person has typed goes byte for byte
  asCommand: (note: string) => string
  note?: 'required' | 'none'
  danger?: boolean
  button: string
  children?: ComponentChildren
  onClose: () => void
  onDone: (answer: unknown) => void
}) {
  const [why, setWhy] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const once = useRef(crypto.randomUUID())
  const made = body(why.trim())
  const wrong = typeof made === 'string' ? made : null

  async function send(event: Event) {
    event.preventDefault()
    if (typeof made === 'string') return
    setBusy(true)
    try {
      onDone(await change('POST', path, raw ?? made, once.current, namespace))
      onClose()
    } catch (error) {
      setProblem(error as Problem)
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="verb" onSubmit={(event) => void send(event)}>
        <p>{does}</p>
        {children}
        {note === 'required' && (
          <label>
            Why, for those who read the log later
            <textarea
              name="note"
              required
              maxLength={noteMax}
              rows={2}
              value={why}
              onInput={(event) => setWhy(event.currentTarget.value)}
            />
          </label>
        )}
        {wrong && <p class="wrong">{wrong}</p>}
        <Trouble problem={problem} />
        <div class="actions">
          <button type="submit" class={danger ? 'danger' : 'main'} disabled={busy || wrong !== null}>
            {busy ? 'Asking sagad …' : button}
          </button>
          <Copy text={asCommand(why.trim() || 'WHY')} label="copy as sagactl" />
          {typeof made !== 'string' && <Copy text={curl(path, raw ?? print(made), namespace)} label="copy as curl" />}
        </div>
      </form>
    </Dialog>
  )
}

// --- what a verb leads to ---

type Called = PreviewEnd['calls']

const Calls = ({ title, calls }: { title: string; calls: Called }) =>
  calls.length === 0 ? null : (
    <li>
      {title}{' '}
      {calls.map(({ step, tool }, i) => (
        <span key={i}>
          {i > 0 && ', then '}
          <strong>{step}</strong> by <code>{tool}</code>
        </span>
      ))}
    </li>
  )

const Standing = ({ title, steps, doubt }: { title: string; steps: PreviewEnd['standing']; doubt?: boolean }) =>
  steps.length === 0 ? null : (
    <li class={doubt ? 'warn' : undefined}>
      {title} <strong>{steps.map(({ step }) => step).join(', ')}</strong>
    </li>
  )

// Why a person is asked in the end: "a person, because of: unknown (pay)".
function asksWhy({ waits_for }: PreviewEnd) {
  const [, reason, step] = /^a person, because of: (\S+)(?: \((.*)\))?$/.exec(waits_for ?? '') ?? []
  if (!reason) return null
  if (reason === 'unknown') return `the outcome of ${step ?? 'a step'} is unknown`
  return `of ${reason.replaceAll('-', ' ')}${step ? ` at step ${step}` : ''}`
}

function End({ end }: { end: PreviewEnd }) {
  const inDoubt = end.standing.filter(({ took_effect }) => took_effect === 'maybe')
  return (
    <li>
      {(end.if || end.unless_begins) && (
        <p class="muted">
          {end.if && `if a probe answers ${end.if}`}
          {end.if && end.unless_begins && ', and '}
          {end.unless_begins && `if ${end.unless_begins} does not begin`}
        </p>
      )}
      <p>
        {asksWhy(end) ? (
          <>
            The saga then <State state="escalated" />, because {asksWhy(end)}
          </>
        ) : end.waits_for ? (
          <>
            The saga then is <State state={end.status} /> and waits for {end.waits_for}
          </>
        ) : (
          <>
            The saga ends <State state={end.status} />
          </>
        )}
      </p>
      <ul class="leads">
        {end.calls.length === 0 && <li>Nothing is called</li>}
        <Calls title="Calls" calls={end.calls.filter(({ direction }) => direction === 'do')} />
        <Calls title="Undoes" calls={end.calls.filter(({ direction }) => direction === 'undo')} />
        <Standing title="Stands in the end:" steps={end.standing.filter((one) => !inDoubt.includes(one))} />
        <Standing title="May stand in the end:" steps={inDoubt} doubt />
        {end.standing.length === 0 && <li>Nothing stands in the end</li>}
      </ul>
    </li>
  )
}

export const Ends = ({ ends }: { ends: PreviewEnd[] | undefined }) => (
  <ul class="ends">
    {(ends ?? []).map((end, i) => (
      <End end={end} key={i} />
    ))}
  </ul>
)
