// The list of sagas. Rows that are shown follow what happens; new ones are announced, and come when they are asked for.
import type { ComponentChildren } from 'preact'
import { Fresh, Older, usePaged } from '../announced'
import { query } from '../api'
import { Filters, tagParameters, type Filter } from '../filters'
import { useLive } from '../live'
import { ActOnPicked, usePicks } from '../picks'
import { href, namespacesNow } from '../route'
import { State, wordOf } from '../state'
import { Table, type Column } from '../table'
import { Age } from '../time'
import type { Page, SagaRow, Stats, StatusCount } from '../types'
import { Act, Copy, Empty, Loading, Tags, Trouble, command, count, short, whyNot } from '../ui'
import type { ViewProps } from './index'

const limit = 100
const statuses = ['running', 'waiting', 'paused', 'compensating', 'escalated', 'completed', 'compensated', 'abandoned']
const filters: Filter[] = [
  { name: 'business_id', label: 'Business id', hint: 'order-1017' },
  { name: 'status', label: 'Status', choices: statuses, wordOf },
  { name: 'business_id_prefix', label: 'Business id begins with', hint: 'order-10' },
  {
    name: 'waits_for',
    label: 'Waits for',
    choices: ['retry', 'probe', 'hold', 'person', 'approval', 'signal', 'time', 'lock', 'breaker']
  },
  { name: 'saga', label: 'Definition', hint: 'order' },
  { name: 'version', label: 'Version', hint: '3' },
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
  const flags: Record<string, string> = {
    business_id: '--id',
    business_id_prefix: '--id-prefix',
    waits_for: '--waits-for'
  }
  const words = Object.entries(query).flatMap(([name, value]) =>
    name === 'tag' ? value.split(/\s+/).flatMap((tag) => ['--tag', tag]) : [flags[name] ?? `--${name}`, value]
  )
  return command('sagactl', 'list', namespacesNow().length > 1 && '-A', ...words)
}

// What a job about sagas can be narrowed by.
const bulkFilters = ['saga', 'version', 'status', 'business_id', 'business_id_prefix', 'tag', 'since', 'until']
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

// --- how many of each status ---

const countsMs = 15_000

interface CountsProps {
  query: Record<string, string>
  isOn: boolean // not before the rows are there: they come first, and counts of a million take longer
}

// The statuses, each with its count and a link to its rows. The status that is shown leads back to all. The line has
// its height before the counts are there: nothing below it moves.
function Statuses({
  query,
  counts,
  children
}: {
  query: Record<string, string>
  counts: StatusCount[]
  children?: ComponentChildren
}) {
  const { status: chosen, ...others } = query
  return (
    <nav class="counts" aria-label="Counts by status">
      {counts.map(({ group: { status }, count: n }) => (
        <a
          key={status}
          href={href(['sagas'], status === chosen ? others : { ...others, status })}
          aria-current={status === chosen ? 'true' : undefined}
        >
          <State state={status} /> <strong>{n.toLocaleString('en')}</strong>
        </a>
      ))}
      {counts.length > 0 && children && <span class="muted">{children}</span>}
    </nav>
  )
}

// Without filters sagad counts all that have not ended.
function CountsOfAll({ query, isOn }: CountsProps) {
  const { data } = useLive<Stats>(isOn ? 'v1/stats' : null, countsMs)
  const counts = Object.entries(data?.sagas ?? {}).map(([status, n]) => ({ group: { status }, count: n }))
  return (
    <Statuses query={query} counts={counts.filter(({ count: n }) => n > 0)}>
      {data && (
        <>
          those that have ended: begun since <Age at={data.ended_since} />
        </>
      )}
    </Statuses>
  )
}

function CountsOfSome({ query: asked, isOn }: CountsProps) {
  const { status: _, ...others } = asked
  const path = query('v1/sagas', { ...parameters(others), group_by: 'status' })
  const { data } = useLive<Page<StatusCount>>(isOn ? path : null, countsMs)
  return (
    <Statuses query={asked} counts={data?.items ?? []}>
      {data?.looked_to && (
        <>
          of the newest {data.looked_count?.toLocaleString('en')}, back to <Age at={data.looked_to} />; there are more
        </>
      )}
    </Statuses>
  )
}

const Counts = (props: CountsProps) =>
  Object.keys(props.query).some((name) => name !== 'status') ? <CountsOfSome {...props} /> : <CountsOfAll {...props} />

export function Sagas({ route, me }: ViewProps) {
  const asked = parameters(route.query)
  const path = query('v1/sagas', { ...asked, limit })
  const isSeveral = route.namespaces.length > 1
  const live = useLive<Page<SagaRow>>(path, 3000, {
    merge: { namespaces: route.namespaces, newestBy: 'created_at', limit }
  })
  const list = usePaged(
    path,
    (cursor) => query('v1/sagas', { ...asked, limit, cursor }),
    live,
    ({ id }) => id
  )
  const { column: pick, picked } = usePicks<SagaRow>(path, (row) => ({
    name: row.id,
    title: row.business_id ?? short(row.id),
    item: { id: row.id }
  }))
  // Rows of further pages are not read again, and nothing is known against them.
  const isGone = (row: SagaRow, i: number) => Boolean(list && i < limit && list.fresh === 0 && list.isGone(row))
  const isNone = list?.rows.length === 0 && !list.next && Object.keys(route.query).length === 0
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
      {!isSeveral && !isNone && <Counts query={route.query} isOn={list !== null} />}
      <Fresh list={list} one="saga" orMore={list?.fresh === limit}>
        {list && list.rows.length > 0 && <span class="muted">{count(list.rows.length, 'saga')}, the newest first</span>}
        <ActOnPicked of="sagas" picked={picked} me={me} label="Act on" />
      </Fresh>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!list && !live.problem && <Loading what="sagas" />}
      {list && list.rows.length === 0 && !list.next && <NoSagas filtered={Object.keys(route.query).length > 0} />}
      {list && list.rows.length > 0 && (
        <Table
          label="Sagas"
          rows={list.rows}
          isBusy={list.isBusy}
          keyOf={({ id }) => id}
          columns={[...(isSeveral ? [ofNamespace] : [pick]), ...columns(isGone)]}
          rowClass={(row, i) => (isGone(row, i) ? 'gone' : undefined)}
        />
      )}
      <Older list={list} one="saga" hasMore={live.data?.hasMore} />
    </>
  )
}

const NoSagas = ({ filtered }: { filtered: boolean }) =>
  filtered ? (
    <Empty title="No saga fits these filters">
      <p>
        Business id, version, error and step are compared as a whole; an id may be the beginning of one, and so may what
        a business id begins with.
      </p>
    </Empty>
  ) : (
    <Empty title="No saga has been started yet" command="sagactl start order --input '{}'">
      <p>
        Register a definition with <code>sagactl apply order.json</code>, and start it here under{' '}
        <a href={href(['definitions'])}>Definitions</a>, or on a terminal:
      </p>
    </Empty>
  )
