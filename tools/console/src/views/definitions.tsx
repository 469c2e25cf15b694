// Definitions: versions and how many run on each, the graph, what changed, and a form that starts one.
import { useMemo } from 'preact/hooks'
import { query } from '../api'
import { diffLines } from '../diff'
import { Graph, whatOf } from '../graph'
import { useLive } from '../live'
import { go, href } from '../route'
import { Start } from '../start'
import { Age } from '../time'
import type { Definition, Me, Page, StepDefinition } from '../types'
import { Copy, Empty, Fact, Facts, Json, Loading, Trouble, command, jsonText } from '../ui'
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
      <div class="table" role="region" aria-label="Steps" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Does</th>
              <th scope="col">After</th>
              <th scope="col">When it fails</th>
            </tr>
          </thead>
          <tbody>
            {stepsOf(one).map((step, i) => (
              <tr key={step.id} data-row={step.id}>
                <td>{step.id}</td>
                <td>{step.call ? <a href={href(['tools'], { name: step.call })}>{step.call}</a> : whatOf(step)}</td>
                <td>{step.after ? step.after.join(', ') || 'at once' : i > 0 ? stepsOf(one)[i - 1].id : 'at once'}</td>
                <td>{typeof step.on_failure === 'string' ? step.on_failure : 'the saga is undone'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Start one</h2>
      <Start definition={one} me={me} key={one.version} />
      {versions.length > 1 && (
        <>
          <h2>What changed</h2>
          <div class="field">
            <label for="before">Compared with</label>
            <select
              id="before"
              value={asked.before ?? ''}
              onChange={(event) =>
                go(['definitions', name], { ...asked, before: event.currentTarget.value || undefined })
              }
            >
              <option value="">nothing</option>
              {versions
                .filter(({ version }) => version !== one.version)
                .map(({ version }) => (
                  <option key={version} value={version}>
                    version {version}
                  </option>
                ))}
            </select>
          </div>
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
        <div class="table" role="region" aria-label="Definitions" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Definition</th>
                <th scope="col">Newest</th>
                <th scope="col">Unfinished, by version</th>
                <th scope="col">Registered</th>
              </tr>
            </thead>
            <tbody>
              {live.data.items.map((one) => (
                <tr key={one.name} data-row={one.name}>
                  <td>
                    <a href={href(['definitions', one.name])}>{one.name}</a>
                  </td>
                  <td>v{one.version}</td>
                  <td>
                    {one.versions
                      ?.filter(({ unfinished }) => unfinished > 0)
                      .map(({ version, unfinished }) => `v${version}: ${unfinished}`)
                      .join(', ') || <span class="muted">none</span>}
                  </td>
                  <td>
                    <Age at={one.created_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
