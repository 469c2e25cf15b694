// Runs: the calls of an agent in their order, what repeats of them got, and one more execution signed off.
import { useState } from 'preact/hooks'
import { Fresh, useAnnounced } from '../announced'
import { query } from '../api'
import { Filters, type Filter } from '../filters'
import { useLive } from '../live'
import { Repeats, RepeatsOfRun } from '../repeats'
import { href } from '../route'
import { State } from '../state'
import { Table } from '../table'
import { Age } from '../time'
import type { Me, Operation, Page, Saga } from '../types'
import {
  Act,
  Copy,
  Empty,
  Fact,
  Facts,
  Json,
  Loading,
  Trouble,
  command,
  count,
  isNothing,
  money,
  short,
  whyNot
} from '../ui'
import { VerbDialog } from '../verb'
import { Failure, effects } from './steps'
import type { ViewProps } from './index'

const filters: Filter[] = [
  { name: 'run', label: 'Run, or id of a saga', hint: 'chat-17' },
  { name: 'tool', label: 'Tool', hint: 'card.pay' },
  { name: 'state', label: 'State', choices: ['pending', 'in_flight', 'completed', 'failed', 'unknown', 'escalated'] }
]

function Bypass({ one, me, onDone }: { one: Operation; me: Me; onDone: () => void }) {
  const [asked, setAsked] = useState(false)
  return (
    <>
      <Act kind="danger" why={whyNot(me, 'operator')} onClick={() => setAsked(true)}>
        Sign one more execution off
      </Act>
      {asked && (
        <VerbDialog
          title={`One more execution of ${one.tool}`}
          does="The next call of it, with these arguments, is made again, although it was made before."
          path={`v1/operations/${one.key}/bypass`}
          body={(reason) => ({ reason })}
          asCommand={(reason) => command('sagactl', 'bypass', one.key, '--reason', reason)}
          danger
          button="Sign it off"
          onClose={() => setAsked(false)}
          onDone={onDone}
        />
      )}
    </>
  )
}

function OneCall({ operation, me }: { operation: string; me: Me }) {
  const live = useLive<Operation>(`v1/operations/${encodeURIComponent(operation)}`, 3000)
  const one = live.data
  if (!one) return live.problem ? <Trouble problem={live.problem} /> : <Loading what="the operation" />
  return (
    <>
      <div class="title">
        <h1>
          {one.tool} <span class="muted">v{one.tool_version}</span>
        </h1>
        <State state={one.state} />
        <Bypass one={one} me={me} onDone={live.refresh} />
        <Copy text={command('sagactl', 'operations', one.key)} label="copy as sagactl" />
      </div>
      <Facts>
        <Fact name="Key">
          <code>{one.key}</code> <Copy text={one.key} label="copy" />
        </Fact>
        <Fact name="Effect">{effects[one.took_effect] ?? one.took_effect}</Fact>
        <Fact name="Class">{one.class}</Fact>
        <Fact name="Attempts">{one.attempts}</Fact>
        <Fact name="Repeats seen">{one.duplicates_seen ?? 0}</Fact>
        <Fact name="Run">
          <a href={href(['calls'], { run: one.run })}>{one.run}</a>
        </Fact>
        {one.saga && (
          <Fact name="Saga">
            <a href={href(['saga', one.saga], { step: one.step })}>step {one.step}</a>
          </Fact>
        )}
        {one.scope && <Fact name="About">{one.scope}</Fact>}
        {typeof one.cost === 'number' && one.cost > 0 && <Fact name="Cost">{money(one.cost, null)}</Fact>}
        <Fact name="First sent">
          <Age at={one.first_sent_at} />
        </Fact>
      </Facts>
      {one.error && <Failure error={one.error} />}
      <h2>Arguments</h2>
      <Json value={one.args} label="Arguments" />
      {!isNothing(one.result) && (
        <>
          <h2>Result</h2>
          <Json value={one.result} label="Result" />
        </>
      )}
      {one.saga && one.duplicates_seen ? (
        <Repeats saga={one.saga} operation={one.key} seen={one.duplicates_seen} />
      ) : null}
    </>
  )
}

// What the calls have cost, for each currency.
function costsOf(calls: Operation[]) {
  const sums = new Map<string, number>()
  for (const { cost, currency = '' } of calls)
    if (typeof cost === 'number' && cost > 0) sums.set(currency, (sums.get(currency) ?? 0) + cost)
  return [...sums].map(([currency, micros]) => money(micros, currency || null))
}

// The run as one saga: whether a loop has stopped it, what it has used, and where somebody lets it go on.
function Run({ saga, calls }: { saga: string; calls: Operation[] }) {
  const live = useLive<Saga>(`v1/sagas/${saga}`, 5000)
  const run = live.data
  if (!run) return null
  const limits = Object.entries(run.budget ?? {}).filter(([, limit]) => limit !== null)
  return (
    <div class={run.paused ? 'note bad' : 'note'}>
      <State state={run.status} />
      {run.paused && ` by ${run.paused_by ?? 'a loop'}: ${run.paused_note ?? run.paused}`}
      <RepeatsOfRun saga={saga} version={run.updated_at} />
      {costsOf(calls).map((cost) => ` · cost ${cost}`)}
      {limits.map(([name, limit]) => ` · ${name.replaceAll('_', ' ')}: ${run.used?.[name] ?? 0} of ${limit}`)}
      {' · '}
      <a href={href(['saga', saga])}>
        {run.paused ? 'what happened in this run, and Resume' : 'what happened in this run'}
      </a>
    </div>
  )
}

export function Calls({ route, me }: ViewProps) {
  return route.path[1] ? <OneCall operation={route.path[1]} me={me} /> : <AllCalls query={route.query} />
}

function AllCalls({ query: asked }: { query: Record<string, string> }) {
  const live = useLive<Page<Operation>>(query('v1/operations', { ...asked, limit: 200 }), 5000)
  const list = useAnnounced(JSON.stringify(asked), live, ({ key }) => key)
  // A run is read from its beginning; everything else has the newest first.
  const isWhole = asked.run !== undefined && live.data?.next_cursor === null
  const rows = isWhole ? [...(list?.rows ?? [])].reverse() : (list?.rows ?? [])
  const flags = Object.entries(asked).flatMap(([name, value]) => [`--${name}`, value])
  return (
    <>
      <div class="title">
        <h1>Calls</h1>
        <Copy text={command('sagactl', 'operations', ...flags)} label="copy as sagactl" />
      </div>
      <Filters path={['calls']} query={asked} filters={filters} />
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!list && !live.problem && <Loading what="calls" />}
      {list?.rows.length === 0 && (
        <Empty title="No call fits" command="sagactl call card.pay --run chat-1 --args '{}'">
          <p>Calls of agents, and every call that a saga has made, stand here with their keys.</p>
        </Empty>
      )}
      {list && list.rows.length > 0 && (
        <>
          <Fresh list={list} one="call">
            {count(list.rows.length, 'call')} shown{live.data?.next_cursor ? '; there are more' : ''},{' '}
            {isWhole ? 'in order' : 'the newest first'}.
          </Fresh>
          {asked.run && list.rows[0].saga && <Run saga={list.rows[0].saga} calls={list.rows} />}
          <Table
            label="Calls"
            rows={rows}
            isBusy={list.isBusy}
            keyOf={(one) => one.key}
            columns={[
              [
                'Tool',
                (one) => (
                  <>
                    <a href={href(['calls', one.key])}>{one.tool}</a>
                  </>
                )
              ],
              [
                'State',
                (one) => (
                  <>
                    <State state={one.state} />
                  </>
                )
              ],
              ['Effect', (one) => <>{effects[one.took_effect] ?? one.took_effect}</>],
              [
                'Saga, step',
                (one) => (
                  <>
                    {one.saga && <a href={href(['saga', one.saga], { step: one.step })}>{short(one.saga)}</a>}{' '}
                    <span class="muted">{one.step}</span>
                  </>
                )
              ],
              ['Attempts', (one) => <>{one.attempts}</>, true],
              ['Repeats', (one) => <>{one.duplicates_seen ?? 0}</>, true],
              [
                'Cost',
                (one) =>
                  typeof one.cost === 'number' && one.cost > 0 ? (
                    money(one.cost, one.currency ?? null)
                  ) : (
                    <span class="muted">–</span>
                  ),
                true
              ],
              [
                'What was heard',
                (one) => <>{one.error ? (one.error.detail ?? one.error.code) : <span class="muted">–</span>}</>
              ],
              [
                'Began',
                (one) => (
                  <>
                    <Age at={one.created_at} />
                  </>
                )
              ]
            ]}
          />
        </>
      )}
    </>
  )
}
