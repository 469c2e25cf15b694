// The steps of a saga: what was sent, what came back, under which key, and what undoes it.
import { useEffect, useRef, useState } from 'preact/hooks'
import { go, href } from '../route'
import { State, wordOf } from '../state'
import { Age, At, span } from '../time'
import type { Compensation, Held, OperationError, Saga, Step, Trying } from '../types'
import { Copy, Fact, Facts, Json, command, isNothing, times } from '../ui'

export const effects: Record<string, string> = {
  no: 'no effect',
  maybe: 'may have happened',
  yes: 'happened',
  before: 'happened before',
  undone: 'was undone'
}

// The receiver's own words, as far as they were kept.
function Received({ error }: { error: OperationError }) {
  if (error.status === undefined && isNothing(error.body)) return null
  return (
    <>
      <h4>
        What {error.by === 'probe' ? 'the probe' : 'the receiver'} answered
        {error.attempt ? ` to attempt ${error.attempt}` : ''}
        {error.status !== undefined && `: status ${error.status}`}
      </h4>
      {!isNothing(error.body) &&
        (typeof error.body === 'string' ? (
          <div class="json">
            <pre tabIndex={0} aria-label="Answer">
              {error.body}
            </pre>
          </div>
        ) : (
          <Json value={error.body} label="Answer" />
        ))}
      {error.cut && <p class="muted">It was longer; the rest was not kept.</p>}
    </>
  )
}

const Waits = ({ step }: { step: Step }) => {
  if (!step.waits_for && !step.due_at) return null
  const wait = step.waits_for
  return (
    <Fact name="Waits for">
      {wait ? `${wait.kind}${typeof wait.signal === 'string' ? ` "${wait.signal}"` : ''}` : 'its time'}
      {typeof wait?.approval === 'number' && (
        <a href={href(['approvals'], { n: String(wait.approval) })}> {wait.approval}</a>
      )}
      {step.due_at && (
        <>
          , until <At at={step.due_at} />
        </>
      )}
    </Fact>
  )
}

const Tried = ({ trying }: { trying?: Trying }) =>
  trying ? (
    <Fact name={trying.what === 'probe' ? 'Asks the receiver' : 'Tries again'}>
      {times(trying.times)}
      {trying.next_at && (
        <>
          , next <Age at={trying.next_at} />
        </>
      )}
      {trying.person_at && (
        <>
          , a person is asked <Age at={trying.person_at} />
        </>
      )}
      {trying.last_error && `; last: ${trying.last_error}`}
    </Fact>
  ) : null

const Holder = ({ held }: { held?: Held }) =>
  held ? (
    <Fact name="Held">
      <State state="held" word={`by ${held.actor}`} />: {held.note}
    </Fact>
  ) : null

function Key({ value }: { value: string | null }) {
  return value ? (
    <Fact name="Key">
      <code>{value}</code> <Copy text={value} label="copy" />
    </Fact>
  ) : null
}

const Payload = ({ title, value }: { title: string; value: unknown }) =>
  isNothing(value) ? null : (
    <section>
      <h4>{title}</h4>
      <Json value={value} label={title} />
    </section>
  )

function Undo({ undo, args }: { undo: Compensation; args: unknown }) {
  return (
    <section class="undoing">
      <h3>
        Its undoing: <State state={undo.status} />
      </h3>
      <Facts>
        <Fact name="Attempts">{undo.attempts}</Fact>
        <Key value={undo.key} />
        {undo.order && <Fact name="Place in the plan">{undo.order}</Fact>}
        <Tried trying={undo.trying} />
        <Holder held={undo.held} />
        {undo.undone_by && (
          <Fact name="Undone by hand">
            {undo.undone_by}: {undo.undone_note}
          </Fact>
        )}
      </Facts>
      {undo.error && <Failure error={undo.error} />}
      <div class="payloads">
        <Payload title="Arguments" value={args} />
        <Payload title="Result" value={undo.result} />
      </div>
    </section>
  )
}

export function Failure({ error }: { error: OperationError }) {
  return (
    <section class="failure">
      <p>
        <strong>{error.code}</strong> {error.detail}
      </p>
      <Received error={error} />
    </section>
  )
}

function Details({ step, args, undoArgs }: { step: Step; args: unknown; undoArgs: unknown }) {
  const took = step.started_at && step.ended_at ? Date.parse(step.ended_at) - Date.parse(step.started_at) : null
  return (
    <div class="details">
      <Facts>
        <Fact name="Effect">{effects[step.took_effect] ?? step.took_effect}</Fact>
        <Fact name="Attempts">
          {step.attempts}
          {step.unsent ? `, and ${step.unsent} of which nothing left` : ''}
        </Fact>
        <Key value={step.key} />
        {step.started_at && (
          <Fact name="Began">
            <At at={step.started_at} millis />
          </Fact>
        )}
        {took !== null && <Fact name="Took">{span(took)}</Fact>}
        <Waits step={step} />
        <Tried trying={step.trying} />
        <Holder held={step.held} />
        {step.result_error && <Fact name="Its result could not be made">{step.result_error}</Fact>}
      </Facts>
      {step.error && <Failure error={step.error} />}
      <div class="payloads">
        <Payload title="Arguments" value={args} />
        <Payload title="Result" value={step.result} />
      </div>
      {step.compensation && <Undo undo={step.compensation} args={undoArgs} />}
      {step.key && <Copy text={command('sagactl', 'operations', step.key)} label="copy as sagactl" />}
    </div>
  )
}

const settled = ['pending', 'completed'] // of an undoing: the step's own status says as much

function StepRow({ saga, step, open, args }: { saga: Saga; step: Step; open: boolean; args: Arguments }) {
  const row = useRef<HTMLTableRowElement>(null)
  useEffect(() => {
    if (open) row.current?.scrollIntoView({ block: 'nearest' })
  }, [open])
  const error = step.error ?? step.compensation?.error
  return (
    <>
      <tr data-row={step.id} ref={row}>
        <td class={step.group ? 'inner' : undefined}>
          <a
            href={href(['saga', saga.id], { step: open ? undefined : step.id })}
            aria-expanded={open}
            onClick={(event) => {
              event.preventDefault()
              go(['saga', saga.id], open ? {} : { step: step.id })
            }}
          >
            {step.id}
          </a>
        </td>
        <td>
          <State state={step.status} />
          {step.compensation && !settled.includes(step.compensation.status) && (
            <span class="muted"> · undoing: {wordOf(step.compensation.status)}</span>
          )}
        </td>
        <td>{step.tool ? <a href={href(['tools'], { name: step.tool })}>{step.tool}</a> : step.kind}</td>
        <td class="number">{step.attempts}</td>
        <td>{effects[step.took_effect] ?? step.took_effect}</td>
        <td>{error ? (error.detail ?? error.code) : <span class="muted">–</span>}</td>
      </tr>
      {open && (
        <tr class="open">
          <td colSpan={6}>
            <Details step={step} args={args.do.get(step.id)} undoArgs={args.undo.get(step.id)} />
          </td>
        </tr>
      )}
    </>
  )
}

type Arguments = { do: Map<string, unknown>; undo: Map<string, unknown> }

const pageSteps = 100
const range = (from: number, to: number) => (to - from > 1 ? `${from + 1} to ${to}` : String(to))

// A page of a long table. It follows the step that is open, wherever that was chosen.
function usePage(steps: Step[], open: string | undefined) {
  const [page, setPage] = useState(0)
  useEffect(() => {
    const i = open === undefined ? -1 : steps.findIndex(({ id }) => id === open)
    if (i >= 0) setPage(Math.floor(i / pageSteps))
  }, [open])
  const last = Math.max(0, Math.ceil(steps.length / pageSteps) - 1)
  const shown = Math.min(page, last)
  return { from: shown * pageSteps, to: Math.min((shown + 1) * pageSteps, steps.length), shown, last, setPage }
}

export function Steps({ saga, open, args }: { saga: Saga; open: string | undefined; args: Arguments }) {
  const { from, to, shown, last, setPage } = usePage(saga.steps, open)
  return (
    <>
      <div class="table" role="region" aria-label="Steps" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Status</th>
              <th scope="col">Tool</th>
              <th scope="col" class="number">
                Attempts
              </th>
              <th scope="col">Effect</th>
              <th scope="col">Error</th>
            </tr>
          </thead>
          <tbody>
            {saga.steps.slice(from, to).map((step) => (
              <StepRow key={step.id} saga={saga} step={step} open={open === step.id} args={args} />
            ))}
          </tbody>
        </table>
      </div>
      {last > 0 && (
        <p class="foot">
          Steps {range(from, to)} of {saga.steps.length.toLocaleString('en')}{' '}
          <button type="button" onClick={() => setPage(shown - 1)} disabled={shown === 0}>
            Earlier steps
          </button>{' '}
          <button type="button" onClick={() => setPage(shown + 1)} disabled={shown === last}>
            Later steps
          </button>
        </p>
      )}
    </>
  )
}
