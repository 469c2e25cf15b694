// Tools: what each is, how it does, what bounds it now, and what keeps it from beginning.
import { useEffect, useState } from 'preact/hooks'
import { read } from '../api'
import { useLive } from '../live'
import { href } from '../route'
import { State } from '../state'
import { Table } from '../table'
import { Age, SaidAt, span } from '../time'
import type { Definition, Guard, Hold, Me, Page, Stats, ToolHealth } from '../types'
import { Act, Copy, Empty, Fact, Facts, Json, Loading, Trouble, command, count, whyNot } from '../ui'
import { VerbDialog } from '../verb'
import { aboutHold } from './overview'
import type { ViewProps } from './index'

// A figure of nothing is pale, so that the others are seen.
const Figure = ({ of, shown = of.toLocaleString('en') }: { of: number; shown?: string }) =>
  of === 0 ? <span class="muted">{shown}</span> : <>{shown}</>

const rate = (of: number | undefined) => (of ? `${(of * 100).toFixed(of < 0.1 ? 1 : 0)} %` : '0 %')
const sum = (counts: Record<string, number> | undefined) => Object.values(counts ?? {}).reduce((all, n) => all + n, 0)
const holdsTool = (hold: Hold, tool: string) => hold.tool === tool || hold.namespace !== undefined

function breakerOf(guards: Guard[], tool: string) {
  const mine = guards.filter((guard) => guard.tool === tool)
  return (
    mine.find(({ breaker }) => breaker === 'open') ?? mine.find(({ breaker }) => breaker === 'half_open') ?? mine[0]
  )
}

const Health = ({ tool }: { tool: ToolHealth | undefined }) =>
  tool ? (
    <Facts even>
      <Fact name="Calls">{tool.calls.toLocaleString('en')}</Fact>
      <Fact name="Tried again">{rate(tool.retry_rate)}</Fact>
      <Fact name="Failed for certain">{tool.failed.toLocaleString('en')}</Fact>
      <Fact name="Outcomes not seen">{tool.unknown.toLocaleString('en')}</Fact>
      <Fact name="Outcomes unknown now">
        {tool.unknown_open ?? 0}{' '}
        {tool.unknown_oldest_ms ? <span class="line muted">the oldest for {span(tool.unknown_oldest_ms)}</span> : null}
      </Fact>
      <Fact name="Repeats kept from happening">
        {sum(tool.duplicates).toLocaleString('en')}
        {sum(tool.duplicates) > 0 && `, ${rate(tool.duplicate_rate)}`}
      </Fact>
      <Fact name="Repeats with other arguments">{tool.drift ?? 0}</Fact>
      <Fact name="Refused by a budget">{tool.budget_refusals ?? 0}</Fact>
      <Fact name="Refused by its rate">{tool.rate_refusals ?? 0}</Fact>
      <Fact name="Refused by its breaker">{tool.breaker_refusals ?? 0}</Fact>
    </Facts>
  ) : (
    <p class="muted">Not called since this engine began.</p>
  )

// --- one tool ---

function Breaker({
  definition,
  guard,
  me,
  onDone
}: {
  definition: Definition
  guard: Guard | undefined
  me: Me
  onDone: () => void
}) {
  const { name } = definition
  const hasNone = definition.body?.breaker === undefined
  const [asked, setAsked] = useState<'open' | 'closed' | null>(null)
  const state = guard?.breaker ?? 'closed'
  if (hasNone) return <p class="muted">Its definition has no breaker.</p>
  return (
    <>
      <div class="actions">
        {state === 'closed' ? (
          <State state="completed" word="the breaker is closed: calls go out" />
        ) : (
          <State
            state="failed"
            word={state === 'open' ? 'the breaker is open: no call begins' : 'the breaker lets a few calls out'}
          />
        )}
        {guard?.opened_by && (
          <span class="muted">
            by {guard.opened_by.actor}: {guard.opened_by.note}
          </span>
        )}
        <Act
          kind={state === 'closed' ? 'danger' : undefined}
          why={whyNot(me, 'operator')}
          onClick={() => setAsked(state === 'closed' ? 'open' : 'closed')}
        >
          {state === 'closed' ? 'Open the breaker' : 'Close the breaker'}
        </Act>
      </div>
      {asked && (
        <VerbDialog
          title={`${asked === 'open' ? 'Open' : 'Close'} the breaker of ${name}`}
          does={
            asked === 'open'
              ? 'No call of the tool begins until a person closes the breaker. Calls of agents are refused.'
              : 'Failures before are forgotten, and calls go out again, a few at first.'
          }
          path={`v1/tools/${encodeURIComponent(name)}/breaker`}
          body={(note) => ({ state: asked, note })}
          asCommand={(note) => command('sagactl', 'breaker', name, asked, '--note', note)}
          danger={asked === 'open'}
          button={asked === 'open' ? 'Open the breaker' : 'Close the breaker'}
          onClose={() => setAsked(null)}
          onDone={onDone}
        />
      )}
    </>
  )
}

function HoldTool({ name, me, onDone }: { name: string; me: Me; onDone: () => void }) {
  const [asked, setAsked] = useState(false)
  const [undo, setUndo] = useState(false)
  return (
    <>
      <Act why={whyNot(me, 'operator')} briefly onClick={() => setAsked(true)}>
        Hold this tool
      </Act>
      {asked && (
        <VerbDialog
          title={`Hold ${name}`}
          does="No engine begins a call of it until the hold is released. What is under way settles; sagas wait."
          path="v1/holds"
          body={(note) => ({ tool: name, note, ...(undo ? { undo } : {}) })}
          asCommand={(note) => command('sagactl', 'hold', '--tool', name, undo && '--undo', '--note', note)}
          danger
          button="Hold it"
          onClose={() => setAsked(false)}
          onDone={onDone}
        >
          <label class="check">
            <input type="checkbox" checked={undo} onChange={(event) => setUndo(event.currentTarget.checked)} /> Undoing
            waits, too
          </label>
        </VerbDialog>
      )}
    </>
  )
}

// --- what it is, and who uses it ---

const words = (value: unknown): string =>
  value && typeof value === 'object'
    ? Object.entries(value)
        .map(([name, member]) => `${name} ${words(member)}`)
        .join(', ')
    : String(value)

const bounds: [member: string, title: string][] = [
  ['timeout', 'Timeout'],
  ['rate', 'Rate'],
  ['concurrency', 'At once'],
  ['breaker', 'Breaker']
]

function Bounds({ body }: { body: Record<string, unknown> }) {
  const undo = body.compensate as { tool?: string } | undefined
  return (
    <Facts>
      <Fact name="Class">{String(body.effect ?? 'once')}</Fact>
      <Fact name="Undone by">
        {undo?.tool ? <a href={href(['tools'], { name: undo.tool })}>{undo.tool}</a> : null}
        {!undo?.tool && (body.terminal ? 'nobody: it is terminal' : 'no tool')}
      </Fact>
      {bounds
        .filter(([member]) => body[member] !== undefined)
        .map(([member, title]) => (
          <Fact key={member} name={title}>
            {words(body[member])}
          </Fact>
        ))}
    </Facts>
  )
}

const lookedAtMost = 100 // definitions

// The newest version of each definition says which tools it calls.
function UsedBy({ name }: { name: string }) {
  const all = useLive<Page<Definition>>(`v1/definitions?limit=${lookedAtMost}`, 300_000)
  const [users, setUsers] = useState<string[] | null>(null)
  const known = all.data?.items.map((one) => one.name).join() ?? ''
  useEffect(() => {
    if (!all.data) return
    let hasEnded = false
    async function look() {
      const found: string[] = []
      for (const one of all.data!.items) {
        const { body } = await read<Definition>(`v1/definitions/${encodeURIComponent(one.name)}`)
        if (hasEnded) return
        if (JSON.stringify(body).includes(`"call":${JSON.stringify(name)}`)) found.push(one.name)
      }
      setUsers(found)
    }
    look().catch(() => !hasEnded && setUsers([]))
    return () => void (hasEnded = true)
  }, [known, name])
  if (!users) return <Loading what="which definitions call it" />
  return (
    <p>
      {users.length === 0 ? 'No definition calls it.' : 'Called by '}
      {users.map((user, i) => (
        <span key={user}>
          {i > 0 && ', '}
          <a href={href(['definitions', user])}>{user}</a>
        </span>
      ))}
      {all.data?.next_cursor && `; there are definitions beyond the first ${lookedAtMost}`}
    </p>
  )
}

function OneTool({ name, me }: { name: string; me: Me }) {
  const live = useLive<Definition>(`v1/tools/${encodeURIComponent(name)}`, 30_000)
  const stats = useLive<Stats>('v1/stats', 5000)
  const holds = useLive<Page<Hold>>('v1/holds?limit=100', 5000)
  const held = holds.data?.items.filter((hold) => holdsTool(hold, name)) ?? []
  return (
    <>
      <div class="title">
        <h1>{name}</h1>
        <Copy text={command('sagactl', 'tools', name)} label="copy as sagactl" />
        <a href={href(['tools'])}>all tools</a>
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} />
      {!live.data && !live.problem && <Loading what="the tool" />}
      {live.data && (
        <>
          <Breaker
            definition={live.data}
            guard={breakerOf(stats.data?.guards ?? [], name)}
            me={me}
            onDone={stats.refresh}
          />
          <h2>Holds</h2>
          {held.map((hold) => (
            <p class="note warn" key={hold.n}>
              <State state="held" /> {aboutHold(hold)} by {hold.actor}: {hold.note}{' '}
              <a href={href(['holds'])}>release it</a>
            </p>
          ))}
          <HoldTool name={name} me={me} onDone={holds.refresh} />
          <h2>How it does</h2>
          <Health tool={stats.data?.tools?.find((tool) => tool.name === name)} />
          <p>
            <a href={href(['cases'], { tool: name })}>Cases about it</a> ·{' '}
            <a href={href(['calls'], { tool: name })}>its calls, with their sagas</a>
          </p>
          <h2>What it is, version {live.data.version}</h2>
          <Bounds body={live.data.body ?? {}} />
          <UsedBy name={name} />
          <Json value={live.data.body} label="Definition" />
        </>
      )}
    </>
  )
}

// --- all tools ---

export function Tools({ route, me }: ViewProps) {
  return route.query.name ? (
    <OneTool name={route.query.name} me={me} key={route.query.name} />
  ) : (
    <AllTools sort={route.query.sort} />
  )
}

// What the list can be sorted by, beside the name: the largest first.
const sorts: Record<string, (tool: ToolHealth) => number> = {
  calls: ({ calls }) => calls,
  retried: ({ retry_rate }) => retry_rate ?? 0,
  unknown: ({ unknown_open }) => unknown_open ?? 0,
  repeats: ({ duplicates }) => sum(duplicates)
}

function AllTools({ sort = '' }: { sort?: string }) {
  const tools = useLive<Page<Definition>>('v1/tools?limit=500', 30_000)
  const stats = useLive<Stats>('v1/stats', 5000)
  const holds = useLive<Page<Hold>>('v1/holds?limit=100', 5000)
  const health = new Map(stats.data?.tools?.map((tool) => [tool.name, tool]))
  const size = (name: string) => {
    const tool = health.get(name)
    return tool && sorts[sort] ? sorts[sort](tool) : 0
  }
  const by = (name: string) => ({
    href: href(['tools'], { sort: sort === name ? undefined : name }),
    isOn: sort === name
  })
  const now = (name: string) => {
    const guard = breakerOf(stats.data?.guards ?? [], name)
    if (holds.data?.items.some((hold) => holdsTool(hold, name))) return <State state="held" />
    if (!guard || guard.breaker === 'closed') return <State state="completed" word="open for calls" />
    return <State state="failed" word={guard.breaker === 'open' ? 'breaker open' : 'breaker half open'} />
  }
  return (
    <>
      <div class="title">
        <h1>Tools</h1>
        <Copy text="sagactl tools" label="copy as sagactl" />
      </div>
      <Trouble problem={tools.problem?.lost ? null : tools.problem} retry={tools.refresh} />
      {!tools.data && !tools.problem && <Loading what="tools" />}
      {tools.data?.items.length === 0 && (
        <Empty title="No tool is registered yet" command="sagactl apply tools.json">
          <p>A tool is a kind of operation that sagas call: where it is, how it is called, and how it is undone.</p>
        </Empty>
      )}
      {tools.data && tools.data.items.length > 0 && (
        <Table
          label="Tools"
          rows={tools.data.items
            .map(({ name, version }) => ({ name, version, tool: health.get(name) }))
            .sort((a, b) => size(b.name) - size(a.name))}
          keyOf={({ name }) => name}
          columns={[
            [
              'Tool',
              ({ name, version }) => (
                <>
                  <a href={href(['tools'], { name })}>{name}</a> <span class="muted">v{version}</span>
                </>
              )
            ],
            ['Now', ({ name }) => now(name)],
            ['Calls', ({ tool }) => <Figure of={tool?.calls ?? 0} />, true, by('calls')],
            [
              'Tried again',
              ({ tool }) => <Figure of={tool?.retry_rate ?? 0} shown={rate(tool?.retry_rate)} />,
              true,
              by('retried')
            ],
            [
              'Outcomes unknown',
              ({ name, tool }) =>
                tool?.unknown_open ? (
                  <a href={href(['cases'], { tool: name })}>{count(tool.unknown_open, 'operation')}</a>
                ) : (
                  <Figure of={0} />
                ),
              true,
              by('unknown')
            ],
            ['Repeats kept from happening', ({ tool }) => <Figure of={sum(tool?.duplicates)} />, true, by('repeats')]
          ]}
        />
      )}
      {tools.data && tools.data.items.length > 0 && (
        <p class="muted">
          Calls and repeats count since this engine began. The title of a column of numbers sorts by it.
        </p>
      )}
    </>
  )
}

// --- holds ---

export function Holds({ me }: ViewProps) {
  const live = useLive<Page<Hold>>('v1/holds?all=true&limit=100', 3000)
  const [asked, setAsked] = useState<Hold | null>(null)
  return (
    <>
      <div class="title">
        <h1>Holds</h1>
        <Copy text="sagactl holds --all" label="copy as sagactl" />
        <a href={href(['tools'])}>all tools</a>
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!live.data && !live.problem && <Loading what="holds" />}
      {live.data?.items.length === 0 && (
        <Empty title="Nothing is held" command="sagactl hold --tool card.pay --note WHY">
          <p>A hold keeps a tool, a definition, a tag or a namespace from beginning anything.</p>
        </Empty>
      )}
      <ul class="answers">
        {live.data?.items.map((hold) => (
          <li class="answer" key={hold.n}>
            <div class="title">
              <h2>{aboutHold(hold)}</h2>
              <State
                state={hold.status === 'over' ? 'expired' : hold.status}
                word={hold.status === 'over' ? 'over' : undefined}
              />
              {hold.status === 'held' && (
                <Act why={whyNot(me, 'operator')} onClick={() => setAsked(hold)}>
                  Release
                </Act>
              )}
            </div>
            <p>
              {hold.actor}: {hold.note} <SaidAt at={hold.made_at} />
            </p>
            {hold.in_force === false && (
              <p class="note bad">
                Not in force: {hold.ignored_by?.join(', ')} know no holds, being of an earlier release.
              </p>
            )}
            <Facts>
              <Fact name="New sagas">{hold.starts === 'refuse' ? 'are refused' : 'wait'}</Fact>
              <Fact name="Undoing">{hold.undo ? 'waits, too' : 'goes on'}</Fact>
              {hold.until && (
                <Fact name="Ends">
                  <Age at={hold.until} />
                </Fact>
              )}
              {hold.released && (
                <Fact name="Released by">
                  {hold.released.actor}: {hold.released.note} <SaidAt at={hold.released.at} />
                </Fact>
              )}
            </Facts>
          </li>
        ))}
      </ul>
      {asked && (
        <VerbDialog
          title={`Release: ${aboutHold(asked)}`}
          does={`What waited goes on, at most ${asked.pace} sagas a second on each engine.`}
          path={`v1/holds/${asked.n}/release`}
          body={(note) => ({ note })}
          asCommand={(note) => command('sagactl', 'release', String(asked.n), '--note', note)}
          button="Release"
          onClose={() => setAsked(null)}
          onDone={live.refresh}
        />
      )}
    </>
  )
}
