// Returns the median of several rounds with their range, and never the best round.

export function spread(values) {
  const sorted = values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b)
  if (sorted.length === 0) return undefined
  const middle = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
  return { median: middle, least: sorted[0], most: sorted[sorted.length - 1], rounds: sorted.length }
}

// Collects the numbers of nested objects under dotted names.
function leaves(object, prefix = '', into = {}) {
  for (const [name, value] of Object.entries(object ?? {})) {
    if (typeof value === 'number') into[prefix + name] = value
    else if (value && typeof value === 'object' && !Array.isArray(value)) leaves(value, `${prefix}${name}.`, into)
  }
  return into
}

// Turns [{figures of a measure by its id}] into {id: {name: spread}}.
export function summary(rounds) {
  const all = {}
  for (const round of rounds) {
    for (const [id, figures] of Object.entries(round)) {
      all[id] ??= {}
      for (const [name, value] of Object.entries(leaves(figures))) (all[id][name] ??= []).push(value)
    }
  }
  return Object.fromEntries(
    Object.entries(all).map(([id, names]) => [
      id,
      Object.fromEntries(Object.entries(names).map(([name, values]) => [name, spread(values)]))
    ])
  )
}
