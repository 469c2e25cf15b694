// The graph of a definition, laid out from its own order: a step stands one column behind the last that it waits for.
import { Shape, State, toneOf, wordOf } from './state'
import type { StepDefinition } from './types'

const nodeWidth = 150
const nodeHeight = 44
const gapX = 40
const gapY = 14
const lettersMax = 17

interface Node {
  step: StepDefinition
  after: string[]
  column: number
  row: number
}

// Without `after` a step waits for the one before it; an empty list waits for nothing.
export function layOut(steps: StepDefinition[]): Node[] {
  const nodes = new Map<string, Node>()
  const heights: number[] = []
  steps.forEach((step, i) => {
    const after = (step.after ?? (i > 0 ? [steps[i - 1].id] : [])).filter((id) => nodes.has(id))
    const column = Math.max(-1, ...after.map((id) => nodes.get(id)!.column)) + 1
    const row = heights[column] ?? 0
    heights[column] = row + 1
    nodes.set(step.id, { step, after, column, row })
  })
  return [...nodes.values()]
}

const cut = (text: string) => (text.length > lettersMax ? `${text.slice(0, lettersMax - 1)}…` : text)

export function whatOf(step: StepDefinition) {
  if (step.call) return step.call
  if (step.saga) return `saga ${step.saga}`
  if (step.signal) return 'waits for a signal'
  if (step.approve) return 'asks a person'
  return step.sleep === undefined ? 'step' : 'sleeps'
}

export function Graph({ steps, states }: { steps: StepDefinition[]; states?: Map<string, string> }) {
  const nodes = layOut(steps)
  const byId = new Map(nodes.map((node) => [node.step.id, node]))
  const x = ({ column }: Node) => column * (nodeWidth + gapX) + 1
  const y = ({ row }: Node) => row * (nodeHeight + gapY) + 1
  const width = Math.max(...nodes.map(x)) + nodeWidth + 1
  const height = Math.max(...nodes.map(y)) + nodeHeight + 1
  const told = nodes
    .map(({ step, after }) => {
      const state = states?.get(step.id)
      return `${step.id}${after.length > 0 ? ` after ${after.join(' and ')}` : ''}${state ? `: ${wordOf(state)}` : ''}`
    })
    .join('; ')
  return (
    <div class="graph table" role="region" aria-label="Graph" tabIndex={0}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={told}>
        {nodes.flatMap((node) =>
          node.after.map((id) => {
            const from = byId.get(id)!
            const x1 = x(from) + nodeWidth
            const y1 = y(from) + nodeHeight / 2
            const x2 = x(node)
            const y2 = y(node) + nodeHeight / 2
            const bend = Math.max(12, (x2 - x1) / 2)
            const path = `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
            return <path key={`${id} ${node.step.id}`} class="edge" d={path} />
          })
        )}
        {nodes.map((node) => {
          const state = states?.get(node.step.id)
          return (
            <g key={node.step.id} class={state ? `node ${toneOf(state)}` : 'node'}>
              <rect x={x(node)} y={y(node)} width={nodeWidth} height={nodeHeight} rx="4" />
              {state && <Shape state={state} at={[x(node) + nodeWidth - 24, y(node) + 15]} />}
              <text class="name" x={x(node) + 10} y={y(node) + 18}>
                {cut(node.step.id)}
                {node.step.when !== undefined && ' ?'}
                {node.step.for_each !== undefined && ' ×n'}
              </text>
              <text class="what" x={x(node) + 10} y={y(node) + 34}>
                {cut(state ? wordOf(state) : whatOf(node.step))}
              </text>
              <title>
                {node.step.id}: {whatOf(node.step)}
                {state && `, ${wordOf(state)}`}
              </title>
            </g>
          )
        })}
      </svg>
      {steps.some((step) => step.when !== undefined || step.for_each !== undefined) && (
        <p class="legend muted">? begins on a condition · ×n once for each element</p>
      )}
      {states && (
        <p class="legend">
          {[...new Set(states.values())].map((state) => (
            <State key={state} state={state} />
          ))}
        </p>
      )}
    </div>
  )
}
