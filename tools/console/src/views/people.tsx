// What persons and tokens said: who, when, what, on what, why, and what they were refused. Acts that are shown never
// change; new ones are announced, and come when they are asked for.
import { useEffect, useState } from 'preact/hooks'
import { Problem, query, read } from '../api'
import { Filters, type Filter } from '../filters'
import { useLive } from '../live'
import { href, namespacesNow } from '../route'
import { State } from '../state'
import { Age } from '../time'
import type { ActRow, Page } from '../types'
import { Copy, Empty, Loading, Trouble, command, count, short } from '../ui'
import type { ViewProps } from './index'

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

const shownMost = 60 // characters of what was acted on
const cut = (text: string) => (text.length > shownMost ? `${text.slice(0, shownMost)}…` : text)

function nameOf(act: ActRow) {
  const target = act.target ?? ''
  if (act.kind === 'saga') return act.business_id ?? short(target)
  if (act.kind === 'bulk' || act.kind === 'operation') return `${act.kind} ${short(target)}`
  return cut([act.kind, target].filter(Boolean).join(' ') || act.verb)
}

const Row = ({ act, isOfSeveral }: { act: ActRow; isOfSeveral: boolean }) => (
  <tr data-row={act.id}>
    {isOfSeveral && <td>{act.namespace}</td>}
    <td>
      <Age at={act.at} />
    </td>
    <td>
      <strong>{act.actor}</strong>{' '}
      <span class="muted">
        {act.role}
        {act.via === 'session' && ', at the console'}
        {act.address && ` from ${act.address}`}
      </span>
    </td>
    <td>
      {act.verb}
      {act.detail && <span class="muted">: {act.detail}</span>}
    </td>
    <td>
      <a href={viewOf(act)}>{nameOf(act)}</a>
      {act.kind !== 'saga' && act.saga && (
        <>
          {' of '}
          <a href={href(['saga', act.saga], act.namespace ? { ns: act.namespace } : {})}>
            {act.business_id ?? short(act.saga)}
          </a>
        </>
      )}{' '}
      <span class="muted">{[act.saga_name, act.tool].filter(Boolean).join(', ')}</span>
    </td>
    <td>{act.note ?? <span class="muted">–</span>}</td>
    <td>
      <State state={act.outcome} />
      {act.code && (
        <span class="muted">
          {' '}
          {act.code}
          {act.count > 1 && `, ${act.count.toLocaleString('en')} times in a minute`}
        </span>
      )}
    </td>
  </tr>
)

interface Shown {
  path: string
  acts: ActRow[]
  next: string | null
  lookedTo: string | undefined // older ones were not looked at
}

const shownOf = (path: string, page: Page<ActRow>): Shown => ({
  path,
  acts: page.items,
  next: page.next_cursor,
  lookedTo: page.looked_to
})

export function People({ route }: ViewProps) {
  const path = query('v1/acts', { ...route.query, limit: 100 })
  const isOfSeveral = route.namespaces.length > 1
  const live = useLive<Page<ActRow>>(path, 5000, {
    merge: { namespaces: route.namespaces, newestBy: 'at', limit: 100 }
  })
  const [shown, setShown] = useState<Shown | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const mine = shown?.path === path ? shown : null

  useEffect(() => {
    if (!live.data) return
    // A refusal of this minute counts on while it is shown.
    const fresh = new Map(live.data.items.map((act) => [act.id, act]))
    setShown(mine ? { ...mine, acts: mine.acts.map((act) => fresh.get(act.id) ?? act) } : shownOf(path, live.data))
  }, [live.data])

  async function more() {
    setBusy(true)
    try {
      const page = await read<Page<ActRow>>(query('v1/acts', { ...route.query, limit: 100, cursor: mine!.next }))
      const known = new Set(mine!.acts.map((act) => act.id))
      setShown({ ...shownOf(path, page), acts: [...mine!.acts, ...page.items.filter((act) => !known.has(act.id))] })
      setProblem(null)
    } catch (error) {
      setProblem(error as Problem)
    }
    setBusy(false)
  }

  const here = new Set(mine?.acts.map((act) => act.id))
  const fresh = live.data && mine ? live.data.items.filter((act) => !here.has(act.id)).length : 0
  return (
    <>
      <div class="title">
        <h1>People</h1>
        <Copy text={asCommand(route.query)} label="copy as sagactl" />
      </div>
      <Filters path={['people']} query={route.query} filters={filters} />
      <div class="announced" role="status">
        {fresh > 0 && (
          <button type="button" class="main" onClick={() => setShown(shownOf(path, live.data!))}>
            {fresh === 1 ? '1 act is' : `${fresh} acts are`} new: show
          </button>
        )}
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!mine && !live.problem && <Loading what="acts" />}
      {mine && mine.acts.length === 0 && !mine.next && <NoActs filtered={Object.keys(route.query).length > 0} />}
      {mine && mine.acts.length > 0 && (
        <div class="table" role="region" aria-label="Acts" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {isOfSeveral && <th scope="col">Namespace</th>}
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">Did</th>
                <th scope="col">To</th>
                <th scope="col">Why</th>
                <th scope="col">Outcome</th>
              </tr>
            </thead>
            <tbody>
              {mine.acts.map((act) => (
                <Row key={act.id} act={act} isOfSeveral={isOfSeveral} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Trouble problem={problem} />
      {mine?.lookedTo && (
        <p class="muted" role="status">
          sagad has looked at those since <Age at={mine.lookedTo} />; of older ones some may fit as well.
        </p>
      )}
      {mine && (mine.acts.length > 0 || mine.next) && (
        <p class="foot">
          {count(mine.acts.length, 'act')} shown
          {mine.next ? '' : live.data?.hasMore ? '; choose one namespace to see more' : '; there are no more'}.{' '}
          {mine.next && (
            <button type="button" onClick={() => void more()} disabled={busy}>
              {busy ? 'Reading more …' : 'Show more'}
            </button>
          )}
        </p>
      )}
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
