// The plan: faults by topology, topologies in rounds. By time (--minutes) each topology gets its share. By number
// (--count) there are as many rounds as it takes. --sagas adds rounds until so many sagas were accepted.
import { allFaults, whyNot } from './faults.mjs'

const usualCost = 15 // Gives most of the time to topologies with most faults.

export class Plan {
  constructor(options, summary) {
    Object.assign(this, { options, summary, leftOut: new Map(), begun: Date.now(), rounds: 0 })
    const wanted = options.faults ?? (options.counts && [...options.counts.keys()])
    for (const name of wanted ?? [])
      if (!allFaults.some((fault) => fault.name === name))
        throw new Error(`there is no fault ${name}; --list names them`)
    const faults = allFaults.filter((fault) => {
      if (wanted && !wanted.includes(fault.name)) return false
      const reason = whyNot(fault)
      if (reason) this.leftOut.set(fault.name, reason)
      return !reason
    })
    this.topologies = new Map()
    for (const fault of faults)
      this.topologies.set(fault.topology, [...(this.topologies.get(fault.topology) ?? []), fault])
    this.left = new Map(faults.map((fault) => [fault.name, options.counts?.get(fault.name) ?? Infinity]))
    this.misses = new Map()
    if (faults.length === 0) throw new Error('none of these faults can be brought about on this machine')
    this.parts = options.counts ? undefined : this.byTime()
  }

  describe() {
    const { options } = this
    const { counts, engines, minutes } = options
    const length = counts ? `counts ${JSON.stringify(Object.fromEntries(counts))}` : `${minutes} minutes`
    return `${engines} engines, ${length}, faults ${[...this.left.keys()]}`
  }

  // Returns the seconds for faults in a round: its share of the remaining time, less the time for setting a round up
  // and judging it. That time differs by a factor of ten between machines and builds, so it is taken from earlier
  // rounds.
  byTime() {
    const { minutes, roundSeconds } = this.options
    const shares = [...this.topologies].map(([topology, faults]) => ({ topology, weight: 1 + faults.length / 2 }))
    const sum = shares.reduce((all, share) => all + share.weight, 0)
    const parts = []
    for (const { topology, weight } of shares) {
      const rounds = Math.max(1, Math.round((minutes * 60 * weight) / sum / (roundSeconds + usualCost)))
      for (let i = 0; i < rounds; i++) parts.push({ topology, weight: weight / rounds })
    }
    return parts
  }

  // Returns the next round, or undefined.
  secondsFor(part) {
    const { rounds } = this.summary
    const elapsed = (Date.now() - this.begun) / 1000
    const cost =
      rounds.length > 0
        ? rounds.reduce((sum, round) => sum + Math.max(0, round.seconds - round.planned), 0) / rounds.length
        : usualCost
    const weights = [part, ...this.parts].reduce((sum, one) => sum + one.weight, 0)
    return Math.max(8, ((this.options.minutes * 60 - elapsed) * part.weight) / weights - cost)
  }

  // A fault that never fires is not waited for, for ever.
  part() {
    this.rounds++
    const timed = this.parts?.shift()
    if (timed) return this.make(timed.topology, this.secondsFor(timed))
    if (!this.parts) {
      for (const [topology, faults] of this.topologies) {
        if (faults.some((fault) => this.wants(fault))) return this.make(topology, this.options.roundSeconds)
      }
    }
    if (this.summary.total('sagas') < this.options.sagas)
      return this.make(this.topologies.keys().next().value, this.options.roundSeconds, true)
    return undefined
  }

  // Chooses some faults, because one fault may hide what another would show. The first round has all of them.
  wants(fault) {
    return this.left.get(fault.name) > 0 && (this.misses.get(fault.name) ?? 0) < 500
  }

  make(topology, seconds, more = false) {
    const all = this.topologies.get(topology)
    // Not all at once: one fault may hide what another would show. The first round has all of them.
    const some = (random) => {
      const chosen = all.filter(() => random() < 0.6)
      return chosen.length > 0 ? chosen : all
    }
    let faults
    return {
      topology,
      seconds,
      fires: new Map(),
      next: (random) => {
        faults ??= this.options.counts || this.rounds === 1 ? all : some(random)
        let open = faults.filter((fault) => more || this.wants(fault))
        if (open.length === 0) open = all.filter((fault) => this.wants(fault))
        const weight = (fault) => (this.options.counts ? Math.min(this.left.get(fault.name), 1e6) : fault.weight)
        let at = random() * open.reduce((sum, fault) => sum + weight(fault), 0)
        for (const fault of open) {
          at -= weight(fault)
          if (at < 0) return fault
        }
        return open[0]
      },
      fired: (fault, label) => {
        this.summary.fired(fault, label)
        if (label) this.left.set(fault.name, this.left.get(fault.name) - 1)
        else this.misses.set(fault.name, (this.misses.get(fault.name) ?? 0) + 1)
      }
    }
  }
}
