// What persons and tokens said: who, when, what, on what, why, and what they were refused. Acts that are shown never
// change; new ones are announced, and come when they are asked for.
import { Fresh, Older, usePaged } from '../announced'
import { query } from '../api'
import { Filters, type Filter } from '../filters'
import { useLive } from '../live'
import { href, namespacesNow } from '../route'
import { State } from '../state'
import { Table, type Column } from '../table'
import { Age } from '../time'
import type { ActRow, Page } from '../types'
import { Copy, Empty, Loading, Trouble, command, count, short } from '../ui'
import type { ViewProps } from './index'

const limit = 100
const filters: Filter[] = [
  { name: 'actor', label: 'Who', hint: 'ada,bob' },
  { name: 'verb', label: 'Did', hint: 'abort,resolve' },
  { name: 'saga', label: 'Definition, or id of a saga', hint: 'order' },
  { name: 'tool', label: 'Tool', hint: 'card.pay' },
  { name: 'outcome', label: 'Outcome', choices: ['done', 'refused'] },
  { name: 'since', label: 'Since', when: true },
  { name: 'until', label: 'Before', when: true }
]

const asCommand = (query: Record<string, string>) =>
  command(
    'sagactl',
    'acts',
    namespacesNow().length > 1 && '-A',
    ...Object.entries(query).flatMap(([name, value]) => [`--${name}`, value])
  )

// The view that shows what was acted on. What has none, such as a schedule, leads to the other acts of its verb.
function viewOf(act: ActRow) {
  const target = act.target ?? ''
  const to = (path: string[], parameters: Record<string, string> = {}) =>
    href(path, act.namespace ? { ns: act.namespace, ...parameters } : parameters)
  if (act.kind === 'escalation' && target) return to(['case', target])
  if (act.kind === 'approval' && target) return to(['approvals'], { n: target })
  if (act.kind === 'bulk' && target) return to(['bulk', target])
  if (act.kind === 'tool' && target) return to(['tools'], { name: target })
  if (act.kind === 'operation' && target) return to(['calls', target])
  if (act.kind === 'saga' && target) return to(['saga', act.saga ?? target])
  if (act.kind === 'hold') return to(['holds'])
  if (act.kind === 'definition') return to(['definitions'])
  return to(['people'], { verb: act.verb })
}

// What was refused before it had a subject is named by its verb alone.
const hasSubject = (act: ActRow) => Boolean(act.kind || act.target)

const shownMost = 60 // characters of what was acted on

// One act may be about many things: it names whole ones, and counts the others.
function cut(text: string) {
  if (text.length <= shownMost) return text
  const names = text.split(', ')
  let n = 1
  while (names.slice(0, n + 1).join(', ').length <= shownMost) n++
  const shown = names.slice(0, n).join(', ').slice(0, shownMost)
  return n < names.length ? `${shown} and ${names.length - n} more` : `${shown}…`
}

function nameOf(act: ActRow) {
  const target = act.target ?? ''
  if (act.kind === 'saga') return act.business_id ?? short(target)
  if (act.kind === 'bulk' || act.kind === 'operation') return `${act.kind} ${short(target)}`
  const noun = act.kind === 'escalation' ? 'case' : act.kind
  return cut([noun, target].filter(Boolean).join(' '))
}

// What a token was refused, and has no verb, comes as its request: "POST /v1/sagas".
const requests: Record<string, string> = {
  'POST /console/links': 'ask for a link to the console',
  'POST /v1/sagas': 'start a saga',
  'POST /v1/operations': 'make a call',
  'GET /v1/engines': 'look at the engines'
}

function didOf(verb: string) {
  const [method, path] = verb.split(' ')
  if (!path) return verb
  return requests[verb] ?? `${method === 'GET' ? 'read' : 'send to'} ${path.replace(/^\/v1\//, '')}`
}

const ofNamespace: Column<ActRow> = ['Namespace', (act) => act.namespace]

const columns: Column<ActRow>[] = [
  ['When', (act) => <Age at={act.at} />],
  [
    'Who',
    (act) => (
      <>
        <strong>{act.actor}</strong> {act.role !== act.actor && <span class="muted">{act.role}</span>}
      </>
    )
  ],
  [
    'Did',
    (act) => (
      <>
        {hasSubject(act) ? didOf(act.verb) : <a href={viewOf(act)}>{didOf(act.verb)}</a>}
        {act.detail && <span class="muted">: {act.detail}</span>}
      </>
    )
  ],
  [
    'To',
    (act) => (
      <>
        {hasSubject(act) ? <a href={viewOf(act)}>{nameOf(act)}</a> : <span class="muted">–</span>}
        {act.kind !== 'saga' && act.saga && (
          <>
            {' of '}
            <a href={href(['saga', act.saga], act.namespace ? { ns: act.namespace } : {})}>
              {act.business_id ?? short(act.saga)}
            </a>
          </>
        )}{' '}
        <span class="muted">{[act.saga_name, act.tool].filter(Boolean).join(', ')}</span>
      </>
    )
  ],
  ['Why', (act) => act.note ?? <span class="muted">–</span>],
  [
    'Outcome',
    (act) => (
      <>
        <State state={act.outcome} />
        {act.code && (
          <span class="muted">
            {' '}
            {act.code}
            {act.count > 1 && `, ${act.count.toLocaleString('en')} times in a minute`}
          </span>
        )}
      </>
    )
  ],
  [
    'From',
    (act) => (
      <span class="muted nowrap">
        {[act.via === 'session' && 'the console', act.address].filter(Boolean).join(', ') || '–'}
      </span>
    )
  ]
]

export function People({ route }: ViewProps) {
  const path = query('v1/acts', { ...route.query, limit })
  const isOfSeveral = route.namespaces.length > 1
  const live = useLive<Page<ActRow>>(path, 5000, { merge: { namespaces: route.namespaces, newestBy: 'at', limit } })
  const pathOfMore = (cursor: string) => query('v1/acts', { ...route.query, limit, cursor })
  const list = usePaged(path, pathOfMore, live, ({ id }) => id)
  return (
    <>
      <div class="title">
        <h1>People</h1>
        <Copy text={asCommand(route.query)} label="copy as sagactl" />
      </div>
      <Filters path={['people']} query={route.query} filters={filters} />
      <Fresh list={list} one="act" orMore={list?.fresh === limit}>
        {list && list.rows.length > 0 && <span class="muted">{count(list.rows.length, 'act')}, the newest first</span>}
      </Fresh>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!list && !live.problem && <Loading what="acts" />}
      {list && list.rows.length === 0 && !list.next && <NoActs filtered={Object.keys(route.query).length > 0} />}
      {list && list.rows.length > 0 && (
        <Table
          label="Acts"
          rows={list.rows}
          isBusy={list.isBusy}
          keyOf={({ id }) => id}
          columns={[...(isOfSeveral ? [ofNamespace] : []), ...columns]}
        />
      )}
      <Older list={list} one="act" hasMore={live.data?.hasMore} />
    </>
  )
}

const NoActs = ({ filtered }: { filtered: boolean }) => (
  <Empty title={filtered ? 'No act fits these filters' : 'Nobody has changed anything yet'} command="sagactl acts">
    <p>
      Whoever aborts, answers, decides, holds or registers something stands here, with the note. The starts and calls of
      programs stand in the logs of their sagas.
    </p>
  </Empty>
)
