// What waits for a person: counted in groups, because a night in which a receiver fails is one question asked a
// thousand times; and as a list.
import { query } from '../api'
import { Filters, tagParameters, type Filter } from '../filters'
import { useLive } from '../live'
import { href, replace } from '../route'
import { State } from '../state'
import { Age } from '../time'
import type { CaseGroup, Escalation, Page } from '../types'
import { Act, Copy, Empty, Loading, Trouble, command, count, money, short, whyNot } from '../ui'
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
  return command('sagactl', 'cases', ...words, ...(all.list ? [] : ['--group-by', all.by ?? groupings[0]]))
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

function Groups({ route, me }: ViewProps) {
  const by = route.query.by || groupings[0]
  const asked = parameters(route.query)
  const live = useLive<Page<CaseGroup>>(
    query('v1/escalations', { ...asked, status: 'open', group_by: by, limit: 100 }),
    5000
  )
  if (live.problem && !live.problem.lost) return <Trouble problem={live.problem} retry={live.refresh} />
  if (!live.data) return <Loading what="cases" />
  const groups = live.data.items
  const total = groups.reduce((sum, group) => sum + group.count, 0)
  if (groups.length === 0) return <NoCases filtered={Object.keys(asked).length > 0} />

  const narrower = (group: CaseGroup['group']) => ({
    ...route.query,
    by: undefined,
    ...Object.fromEntries(Object.entries(group).map(([name, value]) => [name, value ?? '']))
  })
  return (
    <>
      <p role="status">
        <strong>{count(total, 'case')}</strong> in {count(groups.length, 'group')}.
        {live.data.looked_to && (
          <>
            {' '}
            sagad has looked at those opened since <Age at={live.data.looked_to} />; there are more.
          </>
        )}
      </p>
      <div class="table" role="region" aria-label="Groups of cases" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Cases</th>
              {by.split(',').map((name) => (
                <th scope="col" key={name}>
                  {name === 'reason' ? 'why' : name}
                </th>
              ))}
              <th scope="col">At stake</th>
              <th scope="col">Oldest</th>
              <th scope="col">Newest</th>
              <th scope="col">Answer</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <tr key={JSON.stringify(group.group)} data-row={JSON.stringify(group.group)}>
                <td class="number">
                  <a href={href(['cases'], { ...narrower(group.group), list: 'yes' })}>{count(group.count, 'case')}</a>
                </td>
                {by.split(',').map((name) => (
                  <td key={name}>{group.group[name] ?? <span class="muted">none</span>}</td>
                ))}
                <td>
                  <Costs costs={group.costs} without={group.without_cost} />
                </td>
                <td>
                  <Age at={group.oldest} />
                </td>
                <td>
                  <Age at={group.newest} />
                </td>
                <td>
                  <AnswerAll me={me} parameters={narrower(group.group)} n={group.count} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
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
  n: number
}) {
  const why = whyNot(me, 'operator')
  const label = n === 1 ? 'Answer it' : `Answer all ${n.toLocaleString('en')}`
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
  const live = useLive<Page<Escalation>>(query('v1/escalations', { ...asked, status, limit: 200 }), 5000)
  if (live.problem && !live.problem.lost) return <Trouble problem={live.problem} retry={live.refresh} />
  if (!live.data) return <Loading what="cases" />
  const cases = live.data.items
  if (cases.length === 0) return <NoCases filtered={Object.keys(asked).length > 0} />
  return (
    <>
      <div class="actions">
        <p role="status">
          {count(cases.length, 'case')} shown{live.data.next_cursor ? '; there are more' : ''}.
        </p>
        {status === 'open' && Object.keys(asked).length > 0 && (
          <AnswerAll me={me} parameters={route.query} n={cases.length} />
        )}
      </div>
      <div class="table" role="region" aria-label="Cases" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Case</th>
              <th scope="col">Saga</th>
              <th scope="col">Step</th>
              <th scope="col">Tool</th>
              <th scope="col">Why</th>
              <th scope="col">What was heard</th>
              <th scope="col">At stake</th>
              <th scope="col">Asked</th>
            </tr>
          </thead>
          <tbody>
            {cases.map((one) => (
              <tr key={one.n} data-row={one.n}>
                <td>
                  <a href={href(['case', String(one.n)])}>{one.n}</a>{' '}
                  {one.status !== 'open' && <State state={one.status} />}
                </td>
                <td>
                  {one.business_id ?? short(one.saga)} <span class="muted">{one.saga_name}</span>
                </td>
                <td>{one.step ?? <span class="muted">–</span>}</td>
                <td>{one.tool ?? <span class="muted">–</span>}</td>
                <td>{one.reason}</td>
                <td>{one.detail ?? one.error ?? <span class="muted">–</span>}</td>
                <td>{one.cost ? money(one.cost, null) : <span class="muted">–</span>}</td>
                <td>
                  <Age at={one.opened_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
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
            name="status"
            label="Status"
            value={all.status ?? 'open'}
            choices={['open', 'resolved', 'all']}
            all={all}
          />
        ) : (
          <Choice name="by" label="Grouped by" value={all.by ?? groupings[0]} choices={groupings} all={all} />
        )}
      </Filters>
      {listed ? <List {...props} /> : <Groups {...props} />}
    </>
  )
}

function Choice({
  name,
  label,
  value,
  choices,
  all
}: {
  name: string
  label: string
  value: string
  choices: string[]
  all: Record<string, string>
}) {
  return (
    <div class="field">
      <label for={`filter-${name}`}>{label}</label>
      <select
        id={`filter-${name}`}
        value={value}
        onChange={(event) => replace(['cases'], { ...all, [name]: event.currentTarget.value })}
      >
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice.replaceAll(',', ', ')}
          </option>
        ))}
      </select>
    </div>
  )
}
