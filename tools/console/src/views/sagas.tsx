// The list of sagas. Rows that are shown follow what happens; new ones are announced, and come when they are asked for.
import { useEffect, useState } from 'preact/hooks'
import { Problem, query, read } from '../api'
import { Filters, tagParameters, type Filter } from '../filters'
import { useLive } from '../live'
import { href, namespacesNow } from '../route'
import { State } from '../state'
import { Table, type Column } from '../table'
import { Age } from '../time'
import type { Page, SagaRow } from '../types'
import { Act, Copy, Empty, Loading, Tags, Trouble, command, count, short, whyNot } from '../ui'
import type { ViewProps } from './index'

const statuses = ['running', 'waiting', 'paused', 'compensating', 'escalated', 'completed', 'compensated', 'abandoned']
const filters: Filter[] = [
  { name: 'business_id', label: 'Business id', hint: 'order-1017' },
  { name: 'status', label: 'Status', choices: statuses },
  {
    name: 'waits_for',
    label: 'Waits for',
    choices: ['retry', 'probe', 'hold', 'person', 'approval', 'signal', 'time', 'lock']
  },
  { name: 'saga', label: 'Definition', hint: 'order' },
  { name: 'id', label: 'Id begins with', hint: '01a20e16' },
  { name: 'step', label: 'Has begun step', hint: 'charge' },
  { name: 'error', label: 'Error', hint: 'timeout' },
  { name: 'tag', label: 'Tag', hint: 'city=Oslo' },
  { name: 'since', label: 'Started since', when: true },
  { name: 'until', label: 'Started before', when: true }
]

export function parameters(query: Record<string, string>) {
  const { tag, ...rest } = query
  return { ...rest, ...tagParameters(tag) }
}

function asCommand(query: Record<string, string>) {
  const flags: Record<string, string> = { business_id: '--id', waits_for: '--waits-for' }
  const words = Object.entries(query).flatMap(([name, value]) =>
    name === 'tag' ? value.split(/\s+/).flatMap((tag) => ['--tag', tag]) : [flags[name] ?? `--${name}`, value]
  )
  return command('sagactl', 'list', namespacesNow().length > 1 && '-A', ...words)
}

// What a job about sagas can be narrowed by.
const bulkFilters = ['saga', 'status', 'business_id', 'tag', 'since', 'until']
const canBulk = (query: Record<string, string>) =>
  Object.keys(query).length > 0 && Object.keys(query).every((name) => bulkFilters.includes(name))

const ofNamespace: Column<SagaRow> = ['Namespace', (row) => row.namespace]

const columns = (isGone: (row: SagaRow, i: number) => boolean): Column<SagaRow>[] => [
  [
    'Status',
    (row, i) => (
      <>
        <State state={row.status} />
        {isGone(row, i) && <span class="muted"> · when last seen</span>}
      </>
    )
  ],
  [
    'Saga',
    (row) => (
      <a href={href(['saga', row.id], row.namespace ? { ns: row.namespace } : {})}>
        {row.business_id ?? short(row.id)}
      </a>
    )
  ],
  [
    'Definition',
    (row) => (
      <>
        {row.saga} <span class="muted">v{row.version}</span>
      </>
    )
  ],
  ['Tags', (row) => <Tags tags={row.tags} />],
  ['Started', (row) => <Age at={row.created_at} />],
  ['Changed', (row) => <Age at={row.updated_at} />]
]

interface Shown {
  path: string
  rows: SagaRow[]
  next: string | null
  lookedTo: string | undefined // older ones were not looked at
}

const shownOf = (path: string, page: Page<SagaRow>): Shown => ({
  path,
  rows: page.items,
  next: page.next_cursor,
  lookedTo: page.looked_to
})

export function Sagas({ route, me }: ViewProps) {
  const asked = parameters(route.query)
  const path = query('v1/sagas', { ...asked, limit: 100 })
  const isSeveral = route.namespaces.length > 1
  const live = useLive<Page<SagaRow>>(path, 3000, {
    merge: { namespaces: route.namespaces, newestBy: 'created_at', limit: 100 }
  })
  const [shown, setShown] = useState<Shown | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const mine = shown?.path === path ? shown : null

  useEffect(() => {
    if (!live.data) return
    if (!mine) {
      setShown(shownOf(path, live.data))
      return
    }
    const fresh = new Map(live.data.items.map((row) => [row.id, row]))
    setShown({ ...mine, rows: mine.rows.map((row) => fresh.get(row.id) ?? row) })
  }, [live.data])

  async function more() {
    setBusy(true)
    try {
      const page = await read<Page<SagaRow>>(query('v1/sagas', { ...asked, limit: 100, cursor: mine!.next }))
      const known = new Set(mine!.rows.map((row) => row.id))
      setShown({
        path,
        rows: [...mine!.rows, ...page.items.filter((row) => !known.has(row.id))],
        next: page.next_cursor,
        lookedTo: page.looked_to
      })
      setProblem(null)
    } catch (error) {
      setProblem(error as Problem)
    }
    setBusy(false)
  }
  function showNew() {
    setShown(shownOf(path, live.data!))
  }

  const here = new Set(mine?.rows.map((row) => row.id))
  const fresh = live.data && mine ? live.data.items.filter((row) => !here.has(row.id)).length : 0
  const alive = new Set(live.data?.items.map((row) => row.id))
  // Rows of further pages are not read again, and nothing is known against them.
  const isGone = (row: SagaRow, i: number) => live.data !== null && i < 100 && fresh === 0 && !alive.has(row.id)
  return (
    <>
      <div class="title">
        <h1>Sagas</h1>
        <Copy text={asCommand(route.query)} label="copy as sagactl" />
        {!isSeveral &&
          canBulk(route.query) &&
          (whyNot(me, 'operator') ? (
            <Act why={whyNot(me, 'operator')}>Act on all that match</Act>
          ) : (
            <a class="button" href={href(['bulk', 'new'], { of: 'sagas', ...route.query })}>
              Act on all that match
            </a>
          ))}
      </div>
      <Filters path={['sagas']} query={route.query} filters={filters} />
      <div class="announced" role="status">
        {fresh > 0 && (
          <button type="button" class="main" onClick={showNew}>
            {newOnes(fresh)} new: show
          </button>
        )}
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!mine && !live.problem && <Loading what="sagas" />}
      {mine && mine.rows.length === 0 && !mine.next && <NoSagas filtered={Object.keys(route.query).length > 0} />}
      {mine && mine.rows.length > 0 && (
        <Table
          label="Sagas"
          rows={mine.rows}
          keyOf={({ id }) => id}
          columns={[...(isSeveral ? [ofNamespace] : []), ...columns(isGone)]}
          rowClass={(row, i) => (isGone(row, i) ? 'gone' : undefined)}
        />
      )}
      <Trouble problem={problem} />
      {mine?.lookedTo && (
        <p class="muted" role="status">
          sagad has looked at those that began since <Age at={mine.lookedTo} />; of older ones some may fit as well.
        </p>
      )}
      {mine && (mine.rows.length > 0 || mine.next) && (
        <p class="foot">
          {count(mine.rows.length, 'saga')} shown
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

const newOnes = (n: number) => (n === 100 ? '100 or more sagas are' : n === 1 ? '1 saga is' : `${n} sagas are`)

const NoSagas = ({ filtered }: { filtered: boolean }) =>
  filtered ? (
    <Empty title="No saga fits these filters">
      <p>Business id, error and step are compared as a whole; an id may be the beginning of one.</p>
    </Empty>
  ) : (
    <Empty title="No saga has been started yet" command="sagactl start order --input '{}'">
      <p>Register a definition with `sagactl apply`, and start it.</p>
    </Empty>
  )
