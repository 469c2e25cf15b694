// Definitions: versions and how many run on each, the graph, what changed, and a form that starts one.
import { useMemo } from 'preact/hooks'
import { query } from '../api'
import { diffLines } from '../diff'
import { Graph, whatOf } from '../graph'
import { useLive } from '../live'
import { go, href, replace } from '../route'
import { Start } from '../start'
import { State } from '../state'
import { Table } from '../table'
import { Age } from '../time'
import type { Definition, Me, Page, Proof, ProofEnd, StepDefinition } from '../types'
import { Choice, Copy, Empty, Fact, Facts, Json, Loading, Trouble, command, count, jsonText } from '../ui'
import type { ViewProps } from './index'

const stepsOf = (definition: Definition) => (definition.body?.steps ?? []) as StepDefinition[]
const linesMax = 3000

function Changed({ before, after }: { before: Definition; after: Definition }) {
  const lines = useMemo(() => diffLines(jsonText(before.body), jsonText(after.body)), [before, after])
  if (lines.length > linesMax) return <p class="muted">Too long to compare here: sagactl diff does it.</p>
  const signs = { same: ' ', gone: '−', new: '+' }
  return (
    <div class="json">
      <pre tabIndex={0} aria-label="What changed" class="diff">
        {lines.map(({ kind, text }, i) => (
          <span key={i} class={kind}>
            {signs[kind]} {text}
            {'\n'}
          </span>
        ))}
      </pre>
    </div>
  )
}

const ways = {
  '': 'all',
  undone: 'undone',
  person: 'needs a person',
  standing: 'leaves something standing',
  bad: 'violates a rule'
}
type Way = keyof typeof ways

const isWay: Record<Way, (end: ProofEnd) => boolean> = {
  '': () => true,
  undone: ({ end }) => end === 'compensated',
  person: ({ end }) => end === 'escalated',
  standing: ({ standing }) => standing.length > 0,
  bad: ({ violation }) => violation !== null
}

// The table of `sagactl prove`: how the saga ends at each point at which something can go wrong.
function Proofs({ name, asked }: { name: string; asked: Record<string, string> }) {
  const live = useLive<Proof>(
    query(`v1/definitions/${encodeURIComponent(name)}/proof`, { version: asked.version }),
    3_600_000
  )
  const proof = live.data
  if (live.problem && !live.problem.lost) return <Trouble problem={live.problem} retry={live.refresh} />
  if (!proof) return <Loading what="how it ends" />
  const way: Way = asked.ends in ways ? (asked.ends as Way) : ''
  const shown = proof.ends.filter(isWay[way])
  return (
    <>
      <p class={proof.ok ? 'note' : 'note bad'}>
        <State
          state={proof.ok ? 'completed' : 'failed'}
          word={proof.ok ? 'every end keeps the promises' : `${count(proof.violations, 'end')} violate a promise`}
        />{' '}
        {count(proof.covered.points, 'failure point')}, one at a time. Values are symbolic; nothing is called.
        {!proof.covered.all_points && ' Some points were left out: sagactl prove plays all of them.'}
      </p>
      <div class="actions">
        <Choice
          id="ends"
          label="Show"
          value={way}
          choices={Object.entries(ways).map(([value, text]) => [
            value,
            `${text}: ${proof.ends.filter(isWay[value as Way]).length}`
          ])}
          onChoose={(ends) => replace(['definitions', name], { ...asked, ends: ends || undefined })}
        />
        <Copy
          text={command(
            'sagactl',
            'prove',
            '--registered',
            name,
            ...(asked.version ? ['--version', asked.version] : [])
          )}
          label="copy as sagactl"
        />
      </div>
      <Table
        label="How it ends"
        rows={shown}
        keyOf={(_, i) => i}
        isPlain
        columns={[
          ['Step', ({ step }) => step ?? <span class="muted nowrap">the saga</span>],
          ['What happens', ({ what, place }) => [what, place].filter(Boolean).join(', ')],
          ['Then', ({ settled }) => settled],
          ['Ends', ({ end }) => <State state={end} />],
          ['Undone', ({ undone }) => <span class="nowrap">{undone.join(', ')}</span>],
          ['Stands', ({ standing }) => <span class="nowrap">{standing.join(', ')}</span>],
          [
            'Waits for',
            ({ violation, waits_for }) => (violation ? <State state="failed" word={violation} /> : waits_for)
          ]
        ]}
      />
    </>
  )
}

function One({ name, me, asked }: { name: string; me: Me; asked: Record<string, string> }) {
  const at = (version?: string) => query(`v1/definitions/${encodeURIComponent(name)}`, { version })
  const live = useLive<Definition>(at(asked.version), 30_000)
  const before = useLive<Definition>(asked.before ? at(asked.before) : null, 60_000)
  const all = useLive<Page<Definition>>('v1/definitions?limit=500', 30_000)
  const versions = all.data?.items.find((one) => one.name === name)?.versions ?? []
  const one = live.data
  if (!one) return live.problem ? <Trouble problem={live.problem} /> : <Loading what="the definition" />
  return (
    <>
      <div class="title">
        <h1>
          {name} <span class="muted">v{one.version}</span>
        </h1>
        <Copy text={command('sagactl', 'definitions', name)} label="copy as sagactl" />
        <a href={href(['sagas'], { saga: name })}>its sagas</a>
        <a href={href(['definitions'])}>all definitions</a>
      </div>
      {typeof one.body?.description === 'string' && <p>{one.body.description}</p>}
      <Facts>
        <Fact name="Registered">
          <Age at={one.created_at} />
        </Fact>
        {versions.map(({ version, unfinished }) => (
          <Fact key={version} name={`Version ${version}`}>
            <a
              href={href(['definitions', name], { version: String(version) })}
              aria-current={version === one.version ? 'true' : undefined}
            >
              {unfinished} unfinished
            </a>
          </Fact>
        ))}
      </Facts>
      <h2>Graph</h2>
      <Graph steps={stepsOf(one)} />
      <h2>Steps</h2>
      <Table
        label="Steps"
        rows={stepsOf(one)}
        keyOf={({ id }) => id}
        columns={[
          ['Step', ({ id }) => id],
          [
            'Does',
            (step) => (step.call ? <a href={href(['tools'], { name: step.call })}>{step.call}</a> : whatOf(step))
          ],
          [
            'After',
            ({ after }, i) => (after ? after.join(', ') || 'at once' : i > 0 ? stepsOf(one)[i - 1].id : 'at once')
          ],
          ['When it fails', ({ on_failure }) => (typeof on_failure === 'string' ? on_failure : 'the saga is undone')]
        ]}
      />
      <h2>Start one</h2>
      <Start definition={one} me={me} key={one.version} />
      <h2>How it ends</h2>
      <Proofs name={name} asked={asked} />
      {versions.length > 1 && (
        <>
          <h2>What changed</h2>
          <Choice
            id="before"
            label="Compared with"
            value={asked.before ?? ''}
            choices={[
              ['', 'nothing'],
              ...versions
                .filter(({ version }) => version !== one.version)
                .map(({ version }): [string, string] => [String(version), `version ${version}`])
            ]}
            onChoose={(before) => go(['definitions', name], { ...asked, before: before || undefined })}
          />
          {before.data && <Changed before={before.data} after={one} />}
        </>
      )}
      <h2>As it was registered</h2>
      <Json value={one.body} label="Definition" />
    </>
  )
}

export function Definitions({ route, me }: ViewProps) {
  const name = route.path[1]
  return name ? <One name={name} me={me} asked={route.query} /> : <All />
}

function All() {
  const live = useLive<Page<Definition>>('v1/definitions?limit=500', 10_000)
  return (
    <>
      <div class="title">
        <h1>Definitions</h1>
        <Copy text="sagactl definitions" label="copy as sagactl" />
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!live.data && !live.problem && <Loading what="definitions" />}
      {live.data?.items.length === 0 && (
        <Empty title="No definition is registered yet" command="sagactl apply order.json">
          <p>A definition says which tools are called in which order, and what undoes them.</p>
        </Empty>
      )}
      {live.data && live.data.items.length > 0 && (
        <Table
          label="Definitions"
          rows={live.data.items}
          keyOf={(one) => one.name}
          columns={[
            [
              'Definition',
              (one) => (
                <>
                  <a href={href(['definitions', one.name])}>{one.name}</a>
                </>
              )
            ],
            ['Newest', (one) => <>v{one.version}</>],
            [
              'Unfinished, by version',
              (one) => (
                <>
                  {one.versions
                    ?.filter(({ unfinished }) => unfinished > 0)
                    .map(({ version, unfinished }) => `v${version}: ${unfinished}`)
                    .join(', ') || <span class="muted">none</span>}
                </>
              )
            ],
            [
              'Registered',
              (one) => (
                <>
                  <Age at={one.created_at} />
                </>
              )
            ]
          ]}
        />
      )}
    </>
  )
}
