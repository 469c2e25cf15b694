// One saga: what happened when, its steps, its log, and what a person can do about it.
import { useMemo, useRef } from 'preact/hooks'
import { print, query } from '../api'
import { Graph } from '../graph'
import { useLive } from '../live'
import { argumentsOf, useLog } from '../log'
import { href } from '../route'
import { State } from '../state'
import { Age, At, span } from '../time'
import type { Definition, Page, Saga, SagaRow, StepDefinition } from '../types'
import { Copy, Fact, Facts, Json, Loading, Tags, Trouble, command, isNothing, short } from '../ui'
import { LogView } from './log'
import { SagaVerbs } from './sagaverbs'
import { Steps } from './steps'
import { Timeline } from './timeline'
import type { ViewProps } from './index'

const caseNumber = (saga: Saga) =>
  typeof saga.escalation === 'number' ? saga.escalation : (saga.escalation?.n ?? null)

const rerunsShown = 10
const saidMost = 200 // characters of the receiver's words

// The receiver's own words to the step that failed, where they are short enough to stand in the sentence.
function Said({ saga }: { saga: Saga }) {
  const body = saga.steps.find(({ id }) => id === saga.error?.step)?.error?.body
  if (isNothing(body)) return null
  const text = typeof body === 'string' ? body : print(body)
  return text.length <= saidMost ? (
    <>
      The receiver said: <code>{text}</code>{' '}
    </>
  ) : null
}

// The step about which a person is asked, and what was heard of it.
function About({ saga }: { saga: Saga }) {
  const step = saga.steps.find(({ status }) => status === 'unknown' || status === 'compensation_failed')
  return step ? (
    <>
      {' '}
      about <strong>{step.id}</strong>
      {step.error?.detail && `: ${step.error.detail}`}
    </>
  ) : null
}

function whyOf({ step, code, detail }: NonNullable<Saga['error']>) {
  if (step && code === 'step-failed') return `step ${step} failed${detail ? `: ${detail}` : ''}`
  return [step && `step ${step}`, code, detail].filter(Boolean).join(': ')
}

// What a reader wants to know first: why it is not simply going on.
function Why({ saga }: { saga: Saga }) {
  const { error } = saga
  const n = caseNumber(saga)
  return (
    <>
      {n !== null && (
        <p class="note bad">
          <State state="escalated" />
          <About saga={saga} />
          <span class="line">
            <a href={href(['case', String(n)])}>Case {n}</a> asks what is true, and what to do.
          </span>
        </p>
      )}
      {saga.paused && (
        <p class="note warn">
          <State state="paused" /> by {saga.paused_by ?? 'a loop'}: {saga.paused_note ?? saga.paused}
        </p>
      )}
      {error && (
        <p class="note bad">
          <strong>Why it is undone:</strong> {whyOf(error)}
          {error.actor && ` · said by ${error.actor}`}
          {error.note && `: ${error.note}`}
          {error.step && (
            <span class="line">
              <Said saga={saga} />
              <a class="nowrap" href={href(['saga', saga.id], { step: error.step })}>
                what was sent, and what came back
              </a>
            </span>
          )}
        </p>
      )}
      {saga.debts && saga.debts.length > 0 && (
        <p class="note bad">
          <strong>Effects that stand, or may stand:</strong> {saga.debts.join(', ')}
        </p>
      )}
    </>
  )
}

function Head({ saga }: { saga: Saga }) {
  const took = saga.ended_at && Date.parse(saga.ended_at) - Date.parse(saga.created_at)
  return (
    <Facts>
      <Fact name="Definition">
        {saga.saga && saga.version ? (
          <a href={href(['definitions', saga.saga], { version: String(saga.version) })}>
            {saga.saga} v{saga.version}
          </a>
        ) : saga.run ? (
          'calls outside of any saga'
        ) : (
          (saga.saga ?? 'an open saga')
        )}
      </Fact>
      <Fact name="Id">
        <code>{saga.id}</code> <Copy text={saga.id} label="copy" />
      </Fact>
      <Fact name="Started">
        <At at={saga.created_at} />
      </Fact>
      {took ? (
        <Fact name="Took">{span(took)}</Fact>
      ) : (
        <Fact name="Changed">
          <Age at={saga.updated_at} />
        </Fact>
      )}
      {saga.deadline && !saga.ended_at && (
        <Fact name="Deadline">
          <Age at={saga.deadline} />
        </Fact>
      )}
      {saga.tags && <Origins tags={saga.tags} />}
      <Reruns saga={saga} />
      {saga.tags && Object.keys(ownTags(saga.tags)).length > 0 && (
        <Fact name="Tags">
          <Tags tags={ownTags(saga.tags)} />
        </Fact>
      )}
    </Facts>
  )
}

// The saga that this one follows, or repeats: sagad says so in tags of its own.
const origins: [tag: string, title: string][] = [
  ['follows', 'Started by the end of'],
  ['rerun_of', 'Started once more after']
]
const ofOrigin = ['rerun_key', ...origins.map(([tag]) => tag)]

const Origins = ({ tags }: { tags: Record<string, string> }) => (
  <>
    {origins.map(
      ([tag, title]) =>
        tags[tag] && (
          <Fact key={tag} name={title}>
            <a href={href(['saga', tags[tag]])}>{short(tags[tag])}</a>
          </Fact>
        )
    )}
  </>
)

// The sagas that repeat this one: its reruns carry its id as a tag.
function Reruns({ saga }: { saga: Saga }) {
  const asked = { 'tag.rerun_of': saga.id }
  const live = useLive<Page<SagaRow>>(
    saga.ended_at ? query('v1/sagas', { ...asked, limit: rerunsShown }) : null,
    15_000
  )
  const reruns = live.data?.items ?? []
  if (reruns.length === 0) return null
  return (
    <Fact name="Run again as">
      {reruns.map(({ id, business_id, status }) => (
        <span key={id} class="nowrap rerun">
          <a href={href(['saga', id])}>{business_id ?? short(id)}</a> <State state={status} />
        </span>
      ))}
      {live.data?.next_cursor && <a href={href(['sagas'], { tag: `rerun_of=${saga.id}` })}>all of them</a>}
    </Fact>
  )
}

const ownTags = (tags: Record<string, string>) =>
  Object.fromEntries(Object.entries(tags).filter(([name]) => !ofOrigin.includes(name)))

const Followers = ({ saga }: { saga: Saga }) =>
  saga.followers && saga.followers.length > 0 ? (
    <>
      <h2>Followers</h2>
      <ul>
        {saga.followers.map((follower, i) => (
          <li key={i}>
            <a href={href(['sagas'], { saga: follower.saga, business_id: follower.business_id ?? undefined })}>
              {follower.saga} {follower.business_id}
            </a>
          </li>
        ))}
      </ul>
    </>
  ) : null

// The graph of its definition, each step in the state that it has here.
function SagaGraph({ saga }: { saga: Saga }) {
  const path = query(`v1/definitions/${encodeURIComponent(saga.saga ?? '')}`, { version: saga.version })
  const live = useLive<Definition>(path, 60_000)
  if (!live.data) return live.problem ? <Trouble problem={live.problem} /> : <Loading what="the definition" />
  const states = new Map(saga.steps.map(({ id, status }) => [id, status]))
  return <Graph steps={(live.data.body?.steps ?? []) as StepDefinition[]} states={states} />
}

export function SagaView({ route, me }: ViewProps) {
  const id = route.path[1] ?? ''
  const tab = route.path[2] ?? ''
  const pace = useRef(2000)
  const live = useLive<Saga>(`v1/sagas/${encodeURIComponent(id)}`, () => pace.current)
  const saga = live.data
  const log = useLog(id, saga?.updated_at, { ended: Boolean(saga?.ended_at), onGrown: live.refresh })
  pace.current = log.follows ? 20_000 : 2000
  const args = useMemo(() => argumentsOf(log.entries), [log.entries])

  if (!saga)
    return (
      <>
        <h1>Saga {id}</h1>
        {live.problem ? <Trouble problem={live.problem} retry={live.refresh} /> : <Loading what="the saga" />}
      </>
    )
  const tabs: [string, string][] = [
    ['', 'What happened'],
    ...(saga.version ? [['graph', 'Graph'] as [string, string]] : []),
    ['log', 'Log'],
    ['data', 'Input and output']
  ]
  return (
    <>
      <div class="title">
        <h1>{saga.business_id ?? (saga.run ? `run ${saga.run}` : saga.id)}</h1>
        <State state={saga.status} />
        <SagaVerbs saga={saga} me={me} onDone={live.refresh} />
        <Copy text={command('sagactl', 'show', saga.id)} label="copy as sagactl" />
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} />
      <Why saga={saga} />
      <Head saga={saga} />
      <nav class="tabs" aria-label="Of this saga">
        {tabs.map(([name, title]) => (
          <a
            key={name}
            href={href(name ? ['saga', id, name] : ['saga', id])}
            aria-current={tab === name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab === '' && (
        <>
          <Timeline saga={saga} entries={log.entries} />
          <Trouble problem={log.problem} />
          {!log.whole && !log.problem && !log.cut && <Loading what="the log" />}
          <h2>Steps</h2>
          <p class="muted">Open a step to see what was sent, and what came back.</p>
          <Steps saga={saga} open={route.query.step} args={args} />
          <Followers saga={saga} />
        </>
      )}
      {tab === 'graph' && <SagaGraph saga={saga} />}
      {tab === 'log' && <LogView saga={saga} log={log} query={route.query} />}
      {tab === 'data' && (
        <>
          <h2>Input</h2>
          {isNothing(saga.input) ? <p class="muted">none</p> : <Json value={saga.input} label="Input" />}
          <h2>Output</h2>
          {isNothing(saga.output) ? <p class="muted">none yet</p> : <Json value={saga.output} label="Output" />}
        </>
      )}
    </>
  )
}
