// What waits for a person: counted in groups, because a night in which a receiver fails is one question asked a
// thousand times; and as a list.
import { Fresh, useAnnounced } from '../announced'
import { query } from '../api'
import { Filters, tagParameters, type Filter } from '../filters'
import { useLive } from '../live'
import { ActOnPicked, usePicks } from '../picks'
import { href, namespacesNow, replace } from '../route'
import { State, wordOf } from '../state'
import { Table, type Column } from '../table'
import { Age } from '../time'
import type { CaseGroup, Escalation, Page } from '../types'
import { Act, Choice, Copy, Empty, Loading, Trouble, command, count, money, short, whyNot } from '../ui'
import type { ViewProps } from './index'

const filters: Filter[] = [
  { name: 'tool', label: 'Tool', hint: 'card.pay' },
  { name: 'error', label: 'Error', hint: 'timeout,http-503' },
  { name: 'reason', label: 'Why', hint: 'unknown' },
  { name: 'saga', label: 'Definition', hint: 'order' },
  { name: 'step', label: 'Step', hint: 'charge' },
  { name: 'tag', label: 'Tag', hint: 'city=Oslo' },
  { name: 'since', label: 'Opened since', when: true },
  { name: 'until', label: 'Opened before', when: true }
]
const groupings = ['tool,step,reason,error', 'tool', 'saga', 'error', 'reason', 'tool,error']
const titles: Record<string, string> = { tool: 'Tool', step: 'Step', reason: 'Why', error: 'Error', saga: 'Definition' }
const asChoices = (names: string[]) => names.map((name): [string, string] => [name, name.replaceAll(',', ', ')])
const shownOnly = ['list', 'by', 'status']

function parameters(all: Record<string, string>) {
  const { tag, list: _list, by: _by, status: _status, ...rest } = all
  return { ...rest, ...tagParameters(tag) }
}

function asCommand(all: Record<string, string>) {
  const flags: Record<string, string> = { since: '--opened-since', until: '--opened-until' }
  const words = Object.entries(all)
    .filter(([name]) => !shownOnly.includes(name))
    .flatMap(([name, value]) =>
      name === 'tag' ? value.split(/\s+/).flatMap((tag) => ['--tag', tag]) : [flags[name] ?? `--${name}`, value]
    )
  return command(
    'sagactl',
    'cases',
    namespacesNow().length > 1 && '-A',
    ...words,
    ...(all.list ? [] : ['--group-by', all.by ?? groupings[0]])
  )
}

export const Costs = ({ costs, without }: { costs: CaseGroup['costs']; without?: number }) => (
  <>
    {costs.map(({ currency, micros }) => (
      <div key={currency ?? ''}>{money(micros, currency)}</div>
    ))}
    {costs.length === 0 && <span class="muted">not known</span>}
    {costs.length > 0 && without ? <div class="muted">{count(without, 'case')} without</div> : null}
  </>
)

const keyOfGroup = ({ group, namespace }: CaseGroup) => JSON.stringify([namespace, group])
const keyOfCase = ({ n, namespace }: Escalation) => `${namespace ?? ''} ${n}`

const ofNamespace: Column<{ namespace?: string }> = ['Namespace', ({ namespace }) => namespace]

function Groups({ route, me }: ViewProps) {
  const by = route.query.by || groupings[0]
  const asked = parameters(route.query)
  const live = useLive<Page<CaseGroup>>(
    query('v1/escalations', { ...asked, status: 'open', group_by: by, limit: 100 }),
    5000,
    { follows: ['case.'], merge: { namespaces: route.namespaces, newestBy: 'newest', limit: 100 } }
  )
  const list = useAnnounced(JSON.stringify([asked, by]), live, keyOfGroup)
  if (live.problem && !live.problem.lost) return <Trouble problem={live.problem} retry={live.refresh} />
  if (!list) return <Loading what="cases" />
  const groups = list.rows
  const now = live.data?.items ?? groups
  const total = now.reduce((sum, group) => sum + group.count, 0)
  if (groups.length === 0) return <NoCases filtered={Object.keys(asked).length > 0} />

  const narrower = ({ group, namespace }: CaseGroup) => ({
    ...route.query,
    by: undefined,
    ...Object.fromEntries(Object.entries(group).map(([name, value]) => [name, value ?? ''])),
    ...(namespace ? { ns: namespace } : {})
  })
  const isOne = route.namespaces.length < 2 && Object.keys(asked).length > 0
  return (
    <>
      <div class="actions">
        <Fresh list={list} one="group">
          <span>
            <strong>{count(total, 'case')}</strong> in {count(now.length, 'group')}.
            {live.data?.looked_to && (
              <>
                {' '}
                sagad has looked at those opened since <Age at={live.data.looked_to} />; there are more.
              </>
            )}
          </span>
        </Fresh>
        {isOne && now.length > 1 && (
          <AnswerAll
            me={me}
            parameters={{ ...route.query, by: undefined }}
            n={live.data?.looked_to || live.data?.next_cursor ? null : total}
          />
        )}
      </div>
      <Table
        label="Groups of cases"
        rows={groups}
        isBusy={list.isBusy}
        keyOf={keyOfGroup}
        rowClass={(group) => (list.isGone(group) ? 'gone' : undefined)}
        columns={[
          [
            'Cases',
            (group) => <a href={href(['cases'], { ...narrower(group), list: 'yes' })}>{count(group.count, 'case')}</a>,
            true
          ],
          ...(route.namespaces.length > 1 ? [ofNamespace] : []),
          ...Object.keys(groups[0].group) // by what these rows are grouped, which another choice leaves behind
            .map((name): Column<CaseGroup> => [
              titles[name] ?? name,
              ({ group }) =>
                (name === 'reason' ? group[name] && wordOf(group[name]) : group[name]) ?? (
                  <span class="muted">none</span>
                )
            ]),
          ['At stake', (group) => <Costs costs={group.costs} without={group.without_cost} />],
          ['Oldest', ({ oldest }) => <Age at={oldest} />],
          ['Newest', ({ newest }) => <Age at={newest} />],
          [
            'Answer',
            (group) =>
              list.isGone(group) ? (
                <span class="muted">answered</span>
              ) : (
                <AnswerAll me={me} parameters={narrower(group)} n={group.count} />
              )
          ]
        ]}
      />
    </>
  )
}

function AnswerAll({
  me,
  parameters,
  n
}: {
  me: ViewProps['me']
  parameters: Record<string, string | undefined>
  n: number | null // null: more than were read
}) {
  const why = whyNot(me, 'operator')
  const label = n === 1 ? 'Answer it' : n === null ? 'Answer all that match' : `Answer all ${n.toLocaleString('en')}`
  if (why) return <Act why={why}>{label}</Act>
  return (
    <a class="button" href={href(['bulk', 'new'], { of: 'cases', ...parameters, list: undefined })}>
      {label}
    </a>
  )
}

function List({ route, me }: ViewProps) {
  const status = route.query.status || 'open'
  const asked = parameters(route.query)
  const live = useLive<Page<Escalation>>(query('v1/escalations', { ...asked, status, limit: 200 }), 5000, {
    follows: ['case.'],
    merge: { namespaces: route.namespaces, newestBy: 'opened_at', limit: 200 }
  })
  const list = useAnnounced(JSON.stringify([asked, status]), live, keyOfCase)
  const { column: pick, picked } = usePicks<Escalation>(JSON.stringify([asked, status]), (one) =>
    one.operation && one.status === 'open' && !list?.isGone(one)
      ? { name: String(one.n), title: `case ${one.n}`, item: { operation: one.operation } }
      : 'an open case about a call can be picked'
  )
  if (live.problem && !live.problem.lost) return <Trouble problem={live.problem} retry={live.refresh} />
  if (!list) return <Loading what="cases" />
  const cases = list.rows
  const isOfOne = route.namespaces.length < 2
  const hasMore = Boolean(live.data?.next_cursor || live.data?.hasMore)
  if (cases.length === 0) return <NoCases filtered={Object.keys(asked).length > 0} />
  return (
    <>
      <div class="actions">
        <Fresh list={list} one="case">
          {count(cases.length, 'case')} shown{hasMore ? '; there are more' : ''}.
        </Fresh>
        {status === 'open' && isOfOne && Object.keys(asked).length > 0 && (
          <AnswerAll me={me} parameters={route.query} n={hasMore ? null : cases.length} />
        )}
        <ActOnPicked of="cases" picked={picked} me={me} label="Answer" />
      </div>
      <Table
        label="Cases"
        isBusy={list.isBusy}
        rowClass={(one) => (list.isGone(one) ? 'gone' : undefined)}
        rows={cases}
        keyOf={(one) => one.n}
        columns={[
          ...(isOfOne ? [pick] : []),
          [
            'Case',
            (one) => (
              <>
                <a href={href(['case', String(one.n)], one.namespace ? { ns: one.namespace } : {})}>{one.n}</a>{' '}
                {one.status !== 'open' ? <State state={one.status} /> : list.isGone(one) && <State state="resolved" />}
              </>
            )
          ],
          [
            'Saga',
            (one) => (
              <>
                {one.business_id ?? short(one.saga)} <span class="muted">{one.saga_name}</span>
              </>
            )
          ],
          ['Step', (one) => <>{one.step ?? <span class="muted">–</span>}</>],
          ['Tool', (one) => <>{one.tool ?? <span class="muted">–</span>}</>],
          ['Why', (one) => <>{wordOf(one.reason)}</>],
          ['What was heard', (one) => <>{one.detail ?? one.error ?? <span class="muted">–</span>}</>],
          [
            'At stake',
            (one) => (
              <>{typeof one.cost === 'number' ? money(one.cost, one.currency ?? null) : <span class="muted">–</span>}</>
            )
          ],
          [
            'Asked',
            (one) => (
              <>
                <Age at={one.opened_at} />
              </>
            )
          ]
        ]}
      />
    </>
  )
}

const NoCases = ({ filtered }: { filtered: boolean }) => (
  <Empty title={filtered ? 'No open case fits these filters' : 'Nobody is needed'} command="sagactl cases --status all">
    <p>A saga asks a person when nobody can tell whether a step happened, or when it cannot be undone.</p>
  </Empty>
)

export function Cases(props: ViewProps) {
  const all = props.route.query
  const listed = Boolean(all.list)
  const used = Object.fromEntries(Object.entries(all).filter(([name]) => !shownOnly.includes(name)))
  const kept = Object.fromEntries(Object.entries(all).filter(([name]) => shownOnly.includes(name)))
  return (
    <>
      <div class="title">
        <h1>Needs a person</h1>
        <Copy text={asCommand(all)} label="copy as sagactl" />
      </div>
      <nav class="tabs" aria-label="How to look">
        <a href={href(['cases'], { ...used })} aria-current={listed ? undefined : 'page'}>
          In groups
        </a>
        <a href={href(['cases'], { ...used, list: 'yes' })} aria-current={listed ? 'page' : undefined}>
          One by one
        </a>
      </nav>
      <Filters path={['cases']} query={used} kept={kept} filters={filters}>
        {listed ? (
          <Choice
            id="filter-status"
            label="Status"
            value={all.status ?? 'open'}
            choices={asChoices(['open', 'resolved', 'all'])}
            onChoose={(status) => replace(['cases'], { ...all, status })}
          />
        ) : (
          <Choice
            id="filter-by"
            label="Grouped by"
            value={all.by ?? groupings[0]}
            choices={asChoices(groupings)}
            onChoose={(by) => replace(['cases'], { ...all, by })}
          />
        )}
      </Filters>
      {listed ? <List {...props} /> : <Groups {...props} />}
    </>
  )
}
