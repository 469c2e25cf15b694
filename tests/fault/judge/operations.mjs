// Reads the log of one saga as a list of operations: whose key each is, which intents it had, and what was said of it.
// It uses no code of the engine, and not the engine's fold.
export const finals = ['completed', 'compensated', 'abandoned']

export function recordsOf(log) {
  const found = []
  for (const turn of log.turns)
    for (const record of turn.records) found.push({ ...record, data: record.data ?? {}, turn, place: found.length })
  return found
}

// Returns key -> {key, step, direction, intents, records}.
export function operationsOf(records) {
  const operations = new Map()
  for (const record of records) {
    if (!record.key || !/^(step|compensation)\./.test(record.type)) continue
    const direction = record.type.startsWith('step.') ? 'do' : 'undo'
    if (!operations.has(record.key))
      operations.set(record.key, { key: record.key, step: record.step, direction, intents: [], records: [] })
    const operation = operations.get(record.key)
    operation.records.push(record)
    if (record.type.endsWith('.intent')) operation.intents.push(record)
  }
  return operations
}

// Finds the step of the definition of which a step in the log is an instance: "pair/one" is the step `one` of the child
// at `pair`, and "each#0" is an element.
export function stepOf(definitions, saga, path) {
  let definition = definitions.sagas.get(`${saga.name}@${saga.version}`)
  let found
  for (const part of path.split('/')) {
    found = definition?.steps.find((step) => step.id === part.split('#')[0])
    if (found?.saga) definition = definitions.sagas.get(`${found.saga}@${saga.children?.[found.saga] ?? 1}`)
  }
  return found
}

export function toolOf(definitions, saga, operation) {
  const step = stepOf(definitions, saga, operation.step)
  const tool = step?.call && definitions.tools.get(`${step.call}@${saga.tools?.[step.call] ?? 1}`)
  if (!tool || operation.direction === 'do') return tool
  const undo = (step.compensate ?? tool.compensate)?.tool
  return undo && definitions.tools.get(`${undo}@${saga.tools?.[undo] ?? 1}`)
}

// Does the step `later` wait for `earlier`, by the definition? Only steps of the same level are compared; for others
// their parents decide.
export function waitsFor(definitions, saga, later, earlier) {
  let definition = definitions.sagas.get(`${saga.name}@${saga.version}`)
  const a = later.split('/')
  const b = earlier.split('/')
  for (let depth = 0; depth < Math.min(a.length, b.length); depth++) {
    if (a[depth] === b[depth]) {
      const step = definition?.steps.find((one) => one.id === a[depth].split('#')[0])
      definition = step?.saga && definitions.sagas.get(`${step.saga}@1`)
      continue
    }
    const [x, y] = [a[depth].split('#')[0], b[depth].split('#')[0]]
    return x !== y && definition ? closure(definition, x).has(y) : false
  }
  return false
}

function closure(definition, id) {
  const found = new Set()
  const visit = (one) => {
    const at = definition.steps.findIndex((step) => step.id === one)
    const before = definition.steps[at].after ?? (at > 0 ? [definition.steps[at - 1].id] : [])
    for (const next of before) {
      if (found.has(next)) continue
      found.add(next)
      visit(next)
    }
  }
  visit(id)
  return found
}
