// Prints what fired and what was found, as a table and as JSON.
const percentile = (sorted, p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))]

const shownMax = 15

export class Summary {
  constructor(options) {
    Object.assign(this, {
      options,
      begun: Date.now(),
      labels: new Map(),
      faults: new Map(),
      missed: new Map(),
      counts: {},
      measures: {},
      violations: [],
      rounds: []
    })
  }

  fired(fault, label) {
    const into = label ? this.faults : this.missed
    into.set(fault.name, (into.get(fault.name) ?? 0) + 1)
    if (label) this.labels.set(label, (this.labels.get(label) ?? 0) + 1)
  }

  total(what) {
    return this.counts[what] ?? 0
  }

  round(number, part, found, seconds) {
    for (const [name, count] of Object.entries(found.counts)) this.counts[name] = (this.counts[name] ?? 0) + count
    for (const [name, list] of Object.entries(found.measures)) (this.measures[name] ??= []).push(...list)
    for (const violation of found.violations)
      this.violations.push({ round: number, topology: part.topology, ...violation })
    this.rounds.push({
      number,
      topology: part.topology,
      seconds: Math.round(seconds),
      planned: Math.round(part.seconds),
      sagas: found.counts.sagas,
      violations: found.violations.length
    })
    const fired = [...this.faults].map(([name, count]) => `${name} ${count}`).join(', ')
    console.log(
      `# round ${number} (${part.topology}, ${Math.round(seconds)} s): ${found.counts.sagas} sagas, ` +
        `${found.violations.length} violations; so far ${this.total('sagas')} sagas, ${fired}`
    )
    for (const { rule, saga, what } of found.violations.slice(0, 20))
      console.log(`#   ${rule} ${saga}: ${what}`.slice(0, 2000))
    for (const line of found.stories ?? []) console.log(`#   ${line}`.slice(0, 1500))
  }

  good() {
    return this.violations.length === 0 && this.total('sagas') > 0 && this.faults.size > 0
  }

  // Violations come last, one on each line, so that they are visible at the end of the output.
  showViolations() {
    const rules = new Map()
    for (const { rule } of this.violations) rules.set(rule, (rules.get(rule) ?? 0) + 1)
    if (rules.size > 0)
      console.log(`\n# violations: ${[...rules].map(([rule, count]) => `${rule} ${count}`).join(', ')}`)
    for (const { round, topology, rule, saga, id, what } of this.violations.slice(0, shownMax)) {
      console.log(
        (
          `#   ${rule}, round ${round} (${topology}), ${saga || 'all'}${id && id !== saga ? ` = ${id}` : ''}: ` +
          `${what.replace(/\s+/g, ' ')}`
        ).slice(0, 700)
      )
    }
    if (this.violations.length > shownMax) console.log(`#   and ${this.violations.length - shownMax} more`)
    if (this.violations.length === 0 && !this.good())
      console.log(`\n# nothing was tested: ${this.total('sagas')} sagas, ${this.faults.size} kinds of faults`)
  }

  json(tried) {
    const measures = Object.fromEntries(
      Object.entries(this.measures).map(([name, list]) => {
        const sorted = [...list].sort((a, b) => a - b)
        return [
          name,
          { count: sorted.length, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1) }
        ]
      })
    )
    return {
      seed: this.options.seed,
      seconds: Math.round((Date.now() - this.begun) / 1000),
      faults: Object.fromEntries(this.faults),
      not_reached: Object.fromEntries(this.missed),
      labels: Object.fromEntries([...this.labels].sort()),
      points_aimed_at: tried.size,
      counts: this.counts,
      measures,
      violations: this.violations,
      rounds: this.rounds
    }
  }

  show(tried) {
    const all = this.json(tried)
    const table = (title, object) => {
      console.log(`\n# ${title}`)
      for (const [name, value] of Object.entries(object))
        console.log(`#   ${name.padEnd(48)} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    }
    table('what fired', all.labels)
    table('faults', all.faults)
    if (this.missed.size > 0) table('aimed at, and nothing came', all.not_reached)
    table('what was seen', all.counts)
    table('times', all.measures)
    this.showViolations()
    console.log(
      `\n${this.good() ? 'ok' : 'not ok'} - ${this.total('sagas')} sagas, ` +
        `${[...this.faults.values()].reduce((a, b) => a + b, 0)} faults, ${this.violations.length} violations ` +
        `(seed ${this.options.seed})`
    )
  }
}
