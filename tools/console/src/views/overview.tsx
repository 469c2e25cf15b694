// The overview: what needs somebody, and what has happened over time, drawn from sagad's own series.
import { useEffect, useState } from 'preact/hooks'
import { Problem, query, read } from '../api'
import { useLive } from '../live'
import { href } from '../route'
import { useSettings } from '../settings'
import { State } from '../state'
import { Table } from '../table'
import { Age, clock, span } from '../time'
import type { CaseGroup, Engines, Hold, Page, Series, SeriesRow, Stats } from '../types'
import { Copy, Fact, Facts, Loading, Trouble, count } from '../ui'
import { Costs } from './cases'
import type { ViewProps } from './index'

const ranges: Record<string, { title: string; ms: number; buckets: number }> = {
  hour: { title: 'An hour', ms: 3_600_000, buckets: 60 },
  day: { title: 'A day', ms: 86_400_000, buckets: 96 },
  week: { title: 'A week', ms: 604_800_000, buckets: 84 }
}
const readAgainMs = 15_000
const answersMax = 30

// --- the series ---

function useSeries(ms: number) {
  const [rows, setRows] = useState<{ from: number; items: SeriesRow[] } | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  useEffect(() => {
    let ended = false
    let timer: ReturnType<typeof setTimeout>
    async function look() {
      try {
        const from = Date.now() - ms
        const items: SeriesRow[] = []
        let next: string | null = new Date(from).toISOString()
        for (let i = 0; next && i < answersMax; i++) {
          const page: Series = await read<Series>(query('v1/stats/series', { from: next }))
          items.push(...page.items)
          next = page.next_from
        }
        if (ended) return
        setRows({ from, items })
        setProblem(null)
      } catch (error) {
        if (!ended) setProblem(error as Problem)
      }
      if (!ended) timer = setTimeout(look, readAgainMs)
    }
    setRows(null)
    void look()
    return () => {
      ended = true
      clearTimeout(timer)
    }
  }, [ms])
  return { rows, problem }
}

type Figure = Exclude<keyof SeriesRow, 'at'>

const width = 600
const height = 64

function Chart({
  title,
  tone,
  rows,
  from,
  ms,
  buckets,
  figure
}: {
  title: string
  tone: string
  rows: SeriesRow[]
  from: number
  ms: number
  buckets: number
  figure: Figure
}) {
  const { zone } = useSettings()
  const sums = Array.from({ length: buckets }, () => 0)
  for (const row of rows) {
    const i = Math.floor(((Date.parse(row.at) - from) / ms) * buckets)
    sums[Math.min(buckets - 1, Math.max(0, i))] += row[figure] ?? 0
  }
  const total = sums.reduce((sum, n) => sum + n, 0)
  const most = Math.max(1, ...sums)
  const each = width / buckets
  const at = (i: number) => clock(new Date(from + (i / buckets) * ms), zone)
  const peak = sums.indexOf(most)
  const said = total === 0 ? 'none' : `${total}, at most ${most} in ${span(ms / buckets)}, at ${at(peak).time}`
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong> <span class="number">{total.toLocaleString('en')}</span>
        <span class="muted">{total > 0 && `at most ${most} in ${span(ms / buckets)}`}</span>
      </figcaption>
      <svg
        class={tone}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${said}`}
      >
        <line class="base" x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} />
        {sums.map(
          (n, i) =>
            n > 0 && (
              <rect
                key={i}
                x={i * each + each * 0.1}
                width={each * 0.8}
                y={height - (n / most) * (height - 4)}
                height={(n / most) * (height - 4)}
              >
                <title>
                  {n} at {at(i).day} {at(i).time}
                </title>
              </rect>
            )
        )}
      </svg>
      <span class="ends-of muted" aria-hidden="true">
        <span>{at(0).time.slice(0, 5)}</span>
        <span>now</span>
      </span>
    </figure>
  )
}

const charts: { figure: Figure; title: string; tone: string }[] = [
  { figure: 'started', title: 'Sagas started', tone: 'calm' },
  { figure: 'completed', title: 'Completed', tone: 'good' },
  { figure: 'compensated', title: 'Undone', tone: 'undo' },
  { figure: 'escalated', title: 'Needed a person', tone: 'bad' },
  { figure: 'calls', title: 'Calls', tone: 'calm' },
  { figure: 'retries', title: 'Calls tried again', tone: 'warn' },
  { figure: 'calls_unknown', title: 'Outcomes not seen', tone: 'warn' },
  { figure: 'duplicates', title: 'Repeats kept from happening', tone: 'good' }
]

function Over({ range }: { range: string }) {
  const { ms, buckets } = ranges[range]
  const { rows, problem } = useSeries(ms)
  if (problem && !problem.lost && !rows) return <Trouble problem={problem} />
  if (!rows) return <Loading what="what has happened" />
  return (
    <div class="charts">
      {charts.map((chart) => (
        <Chart key={chart.figure} {...chart} rows={rows.items} from={rows.from} ms={ms} buckets={buckets} />
      ))}
    </div>
  )
}

// --- what needs somebody ---

// The groups of each tool, in the order in which the first of them came.
function byTool(groups: CaseGroup[]) {
  const tools = new Map<string | null, CaseGroup[]>()
  for (const one of groups) {
    const tool = one.group.tool ?? null
    tools.set(tool, [...(tools.get(tool) ?? []), one])
  }
  return [...tools.values()]
}

function NeedsGroup({ of, name }: { of: CaseGroup; name: string }) {
  const { group, count: n, oldest, costs, without_cost } = of
  return (
    <>
      <a href={href(['cases'], { tool: group.tool ?? '', error: group.error ?? '' })}>
        {name}: {count(n, 'case')}
      </a>
      {costs.length > 0 && (
        <>
          , <Costs costs={costs} without={without_cost} />
        </>
      )}
      , the oldest <Age at={oldest} />
    </>
  )
}

// A receiver that fails fails in several ways at once. All of its cases are one question, too.
function NeedsOfTool({ groups }: { groups: CaseGroup[] }) {
  const [first] = groups
  const { tool } = first.group
  const errorOf = ({ group }: CaseGroup) => group.error ?? 'no error'
  if (groups.length === 1)
    return (
      <li>
        <State state="escalated" word="" />
        <NeedsGroup of={first} name={`${tool ?? 'no tool'}, ${errorOf(first)}`} />
      </li>
    )
  const all = groups.reduce((sum, one) => sum + one.count, 0)
  return (
    <li>
      <State state="escalated" word="" />
      <a href={href(['cases'], { tool: tool ?? '' })}>
        {tool ?? 'no tool'}: {count(all, 'case')}
      </a>
      <ul>
        {groups.map((one) => (
          <li key={errorOf(one)}>
            <NeedsGroup of={one} name={errorOf(one)} />
          </li>
        ))}
      </ul>
    </li>
  )
}

function Open() {
  const cases = useLive<Page<CaseGroup>>('v1/escalations?status=open&group_by=tool,error&limit=20', 5000, {
    follows: ['case.']
  })
  const approvals = useLive<Page<unknown>>('v1/approvals?status=open&limit=100', 10_000, { follows: ['approval.'] })
  const holds = useLive<Page<Hold>>('v1/holds?limit=100', 10_000)
  const groups = cases.data?.items
  return (
    <section aria-label="What needs somebody">
      <h2>What needs somebody</h2>
      <Trouble problem={cases.problem?.lost ? null : cases.problem} />
      {groups?.length === 0 && (
        <p>
          <State state="completed" word="No case is open." />
        </p>
      )}
      <ul class="needs">
        {byTool(groups ?? []).map((of) => (
          <NeedsOfTool key={of[0].group.tool ?? ''} groups={of} />
        ))}
        {approvals.data && approvals.data.items.length > 0 && (
          <li>
            <State state="waiting" word="" />
            <a href={href(['approvals'])}>
              {approvals.data.next_cursor
                ? '100 or more approvals wait'
                : count(approvals.data.items.length, 'approval')}
            </a>
            {!approvals.data.next_cursor && ' to be decided'}
          </li>
        )}
        {holds.data?.items.map((hold) => (
          <li key={hold.n}>
            <State state="held" word="" />
            <a href={href(['holds'])}>{aboutHold(hold)} is held</a> by {hold.actor}: {hold.note}
          </li>
        ))}
      </ul>
    </section>
  )
}

export function aboutHold(hold: Hold) {
  if (hold.tag) return Object.entries(hold.tag).map(([name, value]) => `${name}=${value}`)[0]
  return hold.tool ?? hold.saga ?? `the namespace ${hold.namespace}`
}

function Database({ of }: { of: NonNullable<Engines['database']> }) {
  const careless = ['fsync', 'full_page_writes', 'synchronous_commit'].filter((name) => of.settings?.[name] === 'off')
  return (
    <>
      <h3>PostgreSQL</h3>
      <Facts even>
        <Fact name="Version">{of.version.split(' ')[0]}</Fact>
        <Fact name="Connections">
          {of.connections} of {of.connections_max}
        </Fact>
        <Fact name="Standbys">
          {of.standbys === 0 ? 'none' : of.standbys}
          {of.standby_lag_ms !== null && `, ${span(of.standby_lag_ms)} behind`}
        </Fact>
        <Fact name="Its clock">
          {Math.abs(of.engine_ahead_ms) < 1000 ? 'agrees' : `differs by ${span(of.engine_ahead_ms)}`}
        </Fact>
      </Facts>
      {careless.length > 0 && (
        <p class="note bad">
          PostgreSQL may forget what it has confirmed: {careless.map((name) => `${name} is off`).join(', ')}.
        </p>
      )}
      {of.losses_open > 0 && (
        <p class="note bad">
          PostgreSQL has lost what it had confirmed, {of.losses_open === 1 ? 'once' : `${of.losses_open} times`}:
          sagactl doctor says what to do.
        </p>
      )}
    </>
  )
}

const sumOf = (numbers: (number | undefined)[]) => numbers.reduce<number>((sum, n) => sum + (n ?? 0), 0)
const unfinished = ['running', 'waiting', 'paused', 'compensating', 'escalated']

function Now() {
  const live = useLive<Stats>('v1/stats', 10_000)
  const engines = useLive<Engines>('v1/engines', 10_000)
  const asked = useLive<Page<CaseGroup>>('v1/escalations?status=open&group_by=reason&reason=unknown&limit=1', 5000, {
    follows: ['case.']
  })
  const tools = live.data?.tools ?? []
  // An engine counts what it has in memory, which a saga leaves that waits for a person: cases count those. Either
  // number alone would say 0 where nobody knows what has happened.
  const waits = asked.data?.items[0]
  const doubt = Math.max(waits?.count ?? 0, sumOf(tools.map((tool) => tool.unknown_open)))
  const oldest = Math.max(
    waits ? Date.now() - Date.parse(waits.oldest) : 0,
    ...tools.map((tool) => tool.unknown_oldest_ms ?? 0)
  )
  const refused = (name: 'budget_refusals' | 'rate_refusals' | 'breaker_refusals') =>
    sumOf(tools.map((tool) => tool[name]))
  return (
    <section aria-label="Now">
      <h2>Now</h2>
      <Trouble problem={live.problem?.lost ? null : live.problem} />
      {!live.data && !live.problem && <Loading what="the figures" />}
      {live.data && (
        <ul class="tiles">
          {Object.entries(live.data.sagas).map(([status, n]) => (
            <li key={status}>
              <a href={href(['sagas'], { status })}>
                <strong>{n.toLocaleString('en')}</strong>
                <State state={status} />
              </a>
              {!unfinished.includes(status) && (
                <span class="muted">begun in {span(Date.now() - Date.parse(live.data!.ended_since))}</span>
              )}
            </li>
          ))}
        </ul>
      )}
      {live.data && (
        <Facts even>
          <Fact name="Outcomes unknown">
            {doubt.toLocaleString('en')} {oldest > 0 && <span class="line muted">the oldest for {span(oldest)}</span>}
          </Fact>
          <Fact name="Refused by a budget">{refused('budget_refusals')}</Fact>
          <Fact name="Refused by a rate">{refused('rate_refusals')}</Fact>
          <Fact name="Refused by a breaker">{refused('breaker_refusals')}</Fact>
        </Facts>
      )}
      <h3>Engines</h3>
      {engines.problem?.status === 403 && <p class="muted">Not shown. Reason: {engines.problem.detail}.</p>}
      {engines.data && (
        <Table
          label="Engines"
          rows={engines.data.items}
          isPlain
          keyOf={(engine) => engine.instance}
          columns={[
            ['Engine', (engine) => <>{engine.name}</>],
            ['State', (engine) => <State state={engine.state} />],
            ['Version', (engine) => <>{engine.version}</>],
            ['Shards', (engine) => <>{engine.shards.length}</>, true],
            ['Lease left', (engine) => <>{engine.shards.length > 0 ? span(engine.lease_left_ms) : '–'}</>, true],
            [
              'Up since',
              (engine) => (
                <>
                  <Age at={engine.started_at} />
                </>
              )
            ]
          ]}
        />
      )}
      {engines.data?.database && <Database of={engines.data.database} />}
    </section>
  )
}

export function Overview({ route }: ViewProps) {
  const range = route.query.range in ranges ? route.query.range : 'hour'
  return (
    <>
      <div class="title">
        <h1>Overview</h1>
        <Copy text="sagactl top" label="copy as sagactl" />
      </div>
      <div class="sides">
        <Open />
        <Now />
      </div>
      <h2>Over time</h2>
      <nav class="tabs" aria-label="How far back">
        {Object.entries(ranges).map(([name, { title }]) => (
          <a key={name} href={href(['overview'], { range: name })} aria-current={name === range ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Over range={range} />
    </>
  )
}
