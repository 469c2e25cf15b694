// One case: on one side what is known, on the other what can be answered, and what each answer would lead to.
import { useState } from 'preact/hooks'
import { parse } from '../api'
import { placeOf, resolveCommand, wordsOf, type CaseVerb } from '../caseverbs'
import { useLive } from '../live'
import { argumentsOf, useLog } from '../log'
import { href } from '../route'
import { State, wordOf } from '../state'
import { Age, At, SaidAt } from '../time'
import type { Escalation, Me, Preview, PreviewVerb, Saga } from '../types'
import {
  Act,
  Copy,
  Fact,
  Facts,
  Json,
  Loading,
  Tags,
  Trouble,
  command,
  isNothing,
  money,
  short,
  times,
  whyNot
} from '../ui'
import { Ends, VerbDialog } from '../verb'
import { Failure } from './steps'
import type { ViewProps } from './index'

const caseVerb = ({ verb, as, then }: PreviewVerb): CaseVerb => ({ action: verb, as, then })

interface Evidence {
  tool?: string
  direction?: string
  attempts?: number
  first_sent_at?: string | null
  last_sent_at?: string | null
  last_error?: string
  detail?: string
  probes?: number
  open?: { step: string; status: string; took_effect: string; needs_person: boolean }[]
}

// What is known beyond the lines below; nothing of the evidence stays hidden.
const told = [
  'operation',
  'tool',
  'direction',
  'attempts',
  'first_sent_at',
  'last_sent_at',
  'last_error',
  'detail',
  'probes',
  'open'
]

function Known({ one, saga }: { one: Escalation; saga: Saga | null }) {
  const evidence = (one.evidence ?? {}) as Evidence
  const log = useLog(one.saga, saga?.updated_at)
  const step = saga?.steps.find(({ id }) => id === one.step)
  const undoing = evidence.direction === 'undo'
  const error = undoing ? step?.compensation?.error : step?.error
  const args = one.step ? argumentsOf(log.entries)[undoing ? 'undo' : 'do'].get(one.step) : undefined
  const rest = Object.entries(one.evidence ?? {}).filter(([name]) => !told.includes(name))
  return (
    <section aria-label="What is known">
      <h2>What is known</h2>
      <Facts>
        <Fact name="Sent">
          {times(evidence.attempts ?? 0)}
          {evidence.first_sent_at && (
            <>
              , first at <At at={evidence.first_sent_at} millis />
            </>
          )}
          {evidence.last_sent_at && evidence.last_sent_at !== evidence.first_sent_at && (
            <>
              , last at <At at={evidence.last_sent_at} millis />
            </>
          )}
        </Fact>
        <Fact name="Probes">{evidence.probes ? `${evidence.probes}, none of which could tell` : 'none'}</Fact>
        {typeof one.cost === 'number' ? (
          <Fact name="At stake">
            {money(one.cost, one.currency ?? null)}
            {one.cost_estimated && ', by estimate'}
          </Fact>
        ) : null}
        {one.operation && (
          <Fact name="Key">
            <code>{one.operation}</code> <Copy text={one.operation} label="copy" />
          </Fact>
        )}
      </Facts>
      {error ? (
        <Failure error={error} />
      ) : (
        one.error && (
          <p class="note bad">
            <strong>{one.error}</strong> {one.detail}
          </p>
        )
      )}
      {!isNothing(args) && (
        <>
          <h3>What was sent</h3>
          <Json value={args} label="What was sent" />
        </>
      )}
      {evidence.open && evidence.open.length > 0 && (
        <>
          <h3>What is open in this saga</h3>
          <ul>
            {evidence.open.map((open) => (
              <li key={open.step}>
                {open.step}: <State state={open.status} />
                {open.needs_person && ' · a person has to say'}
              </li>
            ))}
          </ul>
        </>
      )}
      {rest.length > 0 && <Json value={Object.fromEntries(rest)} label="More evidence" />}
      {one.asked_by && (
        <p class="note">
          Asked by {one.asked_by}: {one.asked_note}
        </p>
      )}
      {one.earlier && one.earlier.length > 0 && (
        <>
          <h3>Asked before</h3>
          <ul>
            {one.earlier.map((round) => (
              <li key={round.round}>
                Round {round.round}, {round.reason}:{' '}
                {wordsOf({ action: round.action ?? '', as: round.as ?? undefined }).title} by {round.actor}:{' '}
                {round.note}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}

// The button says the verb in other words than the API does.
const because = ({ verb, because: why }: PreviewVerb) =>
  why?.startsWith(`${verb} is `) ? why.slice(`${verb} is `.length) : (why ?? 'not possible now')

function Answer({ verb, me, onAsk }: { verb: PreviewVerb; me: Me; onAsk: () => void }) {
  const words = wordsOf(caseVerb(verb))
  return (
    <li class={verb.allowed ? 'answer' : 'answer refused'}>
      <div class="actions">
        <Act
          kind={words.danger ? 'danger' : undefined}
          why={whyNot(me, 'operator') ?? (verb.allowed ? null : because(verb))}
          onClick={onAsk}
        >
          {words.title}
        </Act>
      </div>
      {verb.allowed && (
        <div>
          {verb.accept_double && <p class="warn">It may take effect a second time.</p>}
          <Ends ends={verb.ends} />
        </div>
      )}
    </li>
  )
}

function AnswerDialog({
  one,
  verb,
  onClose,
  onDone
}: {
  one: Escalation
  verb: PreviewVerb
  onClose: () => void
  onDone: () => void
}) {
  const [result, setResult] = useState('')
  const [double, setDouble] = useState(false)
  const chosen = caseVerb(verb)
  const words = wordsOf(chosen)
  const takesResult = verb.as === 'happened' || verb.verb === 'skip'
  const more = [
    ...(result.trim() && takesResult ? ['--result', result.trim()] : []),
    ...(double ? ['--accept-double'] : []),
    ...((one.round ?? 1) > 1 ? ['--round', String(one.round)] : [])
  ]

  function body(note: string) {
    const made: Record<string, unknown> = { action: verb.verb, note, round: one.round }
    if (verb.as) made.as = verb.as
    if (verb.then) made.then = verb.then
    if (verb.accept_double) {
      if (!double) return 'Say that a second effect is acceptable, or choose another answer.'
      made.accept_double = true
    }
    if (takesResult && result.trim()) {
      try {
        made.result = parse(result)
      } catch {
        return 'The result is no JSON.'
      }
    }
    return made
  }
  return (
    <VerbDialog
      title={`${words.title}: case ${one.n}`}
      does={words.does}
      path={`v1/escalations/${one.n}/resolve`}
      body={body}
      asCommand={(note) => resolveCommand(one.n, chosen, note, more)}
      danger={words.danger}
      button={words.title}
      onClose={onClose}
      onDone={onDone}
    >
      <Ends ends={verb.ends} />
      {takesResult && (
        <label>
          Result, JSON, as the tool would have answered it; needed where a later step uses it
          <textarea
            class="json-text"
            rows={2}
            value={result}
            onInput={(event) => setResult(event.currentTarget.value)}
          />
        </label>
      )}
      {verb.accept_double && (
        <label class="check">
          <input type="checkbox" checked={double} onChange={(event) => setDouble(event.currentTarget.checked)} /> A
          second effect is acceptable
        </label>
      )}
    </VerbDialog>
  )
}

const remarks = {
  acknowledge: { title: 'I look at it', does: 'Others see that you look at this case.', did: 'looks at it' },
  assign: { title: 'Assign', does: 'Says who is to answer this case.', did: 'assigned it' },
  comment: { title: 'Comment', does: 'Leaves a comment with the case, for those who read it later.', did: 'said' }
}
type Remark = keyof typeof remarks

function Remarks({ one, me, onDone }: { one: Escalation; me: Me; onDone: () => void }) {
  const [asked, setAsked] = useState<Remark | null>(null)
  const [to, setTo] = useState('')
  return (
    <>
      {one.status === 'open' && (
        <div class="actions">
          {(Object.keys(remarks) as Remark[]).map((kind) => (
            <Act key={kind} why={whyNot(me, 'operator')} briefly onClick={() => setAsked(kind)}>
              {remarks[kind].title}
            </Act>
          ))}
        </div>
      )}
      {one.remarks && one.remarks.length > 0 && (
        <ul>
          {one.remarks.map((remark, i) => (
            <li key={i}>
              <strong>{remark.actor}</strong> {remarks[remark.kind as Remark]?.did ?? remark.kind}
              {remark.to && ` to ${remark.to}`}: {remark.note} <SaidAt at={remark.at} />
            </li>
          ))}
        </ul>
      )}
      {asked && (
        <VerbDialog
          title={`${remarks[asked].title}: case ${one.n}`}
          does={remarks[asked].does}
          path={`v1/escalations/${one.n}/${asked}`}
          body={(note) => (asked === 'assign' ? { to: to.trim(), note } : { note })}
          asCommand={(note) =>
            command('sagactl', asked, String(one.n), ...(asked === 'assign' ? ['--to', to] : []), '--note', note)
          }
          button={remarks[asked].title}
          onClose={() => setAsked(null)}
          onDone={onDone}
        >
          {asked === 'assign' && (
            <label>
              To whom
              <input value={to} onInput={(event) => setTo(event.currentTarget.value)} />
            </label>
          )}
        </VerbDialog>
      )}
    </>
  )
}

function Answered({ one }: { one: Escalation }) {
  return (
    <p class="note">
      <State state="resolved" word="answered" />:{' '}
      <strong>{wordsOf({ action: one.action ?? '', as: one.as ?? undefined }).title}</strong>
      {one.actor && ` by ${one.actor}`}
      {one.note && `: ${one.note}`} <SaidAt at={one.resolved_at} />
    </p>
  )
}

export function CaseView({ route, me }: ViewProps) {
  const n = route.path[1] ?? ''
  const live = useLive<Escalation>(`v1/escalations/${encodeURIComponent(n)}`, 3000, { follows: ['case.'] })
  const one = live.data
  const open = one?.status === 'open'
  const saga = useLive<Saga>(one ? `v1/sagas/${one.saga}` : null, 5000)
  const preview = useLive<Preview>(open ? `v1/escalations/${one.n}/preview` : null, 15_000)
  const [asked, setAsked] = useState<PreviewVerb | null>(null)

  if (!one)
    return (
      <>
        <h1>Case {n}</h1>
        {live.problem ? <Trouble problem={live.problem} retry={live.refresh} /> : <Loading what="the case" />}
      </>
    )
  return (
    <>
      <div class="title">
        <h1>
          Case {one.n}: {one.tool ?? 'the saga'} {one.step && `at step ${one.step}`}
        </h1>
        <State state={one.status} word={open ? 'open' : 'answered'} />
        <Copy text={command('sagactl', 'cases', String(one.n))} label="copy as sagactl" />
      </div>
      {!open && <Answered one={one} />}
      <Facts>
        <Fact name="Saga">
          <a href={href(['saga', one.saga])}>{one.business_id ?? short(one.saga)}</a>{' '}
          <span class="muted">{one.saga_name}</span>
        </Fact>
        <Fact name="Why a person is asked">{wordOf(one.reason)}</Fact>
        <Fact name="Asked">
          <Age at={one.opened_at} />
        </Fact>
        {one.acknowledged_by && <Fact name="Looked at by">{one.acknowledged_by}</Fact>}
        {one.assigned_to && <Fact name="To be answered by">{one.assigned_to}</Fact>}
        {(one.round ?? 1) > 1 && <Fact name="Round">{one.round}</Fact>}
        {Object.keys(one.tags ?? {}).length > 0 && (
          <Fact name="Tags">
            <Tags tags={one.tags} />
          </Fact>
        )}
        <Fact name="The same question elsewhere">
          <a href={href(['cases'], { list: 'yes', tool: one.tool ?? '', error: one.error ?? '', reason: one.reason })}>
            cases of this kind
          </a>
        </Fact>
      </Facts>
      <Remarks one={one} me={me} onDone={live.refresh} />
      <div class="sides case">
        <Known one={one} saga={saga.data} />
        <section aria-label="What can be answered">
          <h2>{open ? 'What is true? Each answer, and what it leads to' : 'This case is answered'}</h2>
          <Trouble problem={preview.problem?.lost ? null : preview.problem} />
          {open && !preview.data && !preview.problem && <Loading what="what each answer would lead to" />}
          {open && preview.data && (
            <>
              <ul class="answers beside">
                {[...preview.data.verbs]
                  .sort((a, b) => Number(b.allowed) - Number(a.allowed) || placeOf(caseVerb(a)) - placeOf(caseVerb(b)))
                  .map((verb) => (
                    <Answer
                      key={`${verb.verb} ${verb.as} ${verb.then}`}
                      verb={verb}
                      me={me}
                      onAsk={() => setAsked(verb)}
                    />
                  ))}
              </ul>
              <p class="muted">Assumed: {preview.data.assumes}.</p>
            </>
          )}
          {!open && (
            <p>
              <a href={href(['cases'])}>What else waits for a person</a>
            </p>
          )}
        </section>
      </div>
      {asked && <AnswerDialog one={one} verb={asked} onClose={() => setAsked(null)} onDone={live.refresh} />}
    </>
  )
}
