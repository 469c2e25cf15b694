// A trial serves many wishes at once, each with an agent of its own, until all have ended. Then the judge speaks.
import { Journey } from './agent.mjs'
import { judgeAll } from './judge.mjs'
import { wishOf } from './wish.mjs'

export class Trial {
  // `wishAs(wish)` may change a wish. `doorOf(wish)` makes the door of its agent, `operator` is a client.
  // `before(wish)` prepares the world for a wish. `each` is called when a wish has ended.
  constructor({
    seed,
    runs,
    first = 0,
    shop,
    agents = 64,
    wishAs = (wish) => wish,
    doorOf,
    operator,
    patience,
    vanishedAfter,
    suspended,
    before = async () => {},
    each = () => {}
  }) {
    Object.assign(this, {
      seed,
      runs,
      first,
      shop,
      agents,
      wishAs,
      doorOf,
      operator,
      patience,
      vanishedAfter,
      suspended,
      before,
      each
    })
    this.journeys = []
    this.byId = new Map() // saga id or wish id -> journey
  }

  async go() {
    let next = this.first
    this.began = Date.now()
    const worker = async () => {
      while (next < this.first + this.runs && !this.stopping) {
        const wish = this.wishAs(wishOf(this.seed, next++, this.shop))
        if (this.vanishedAfter && wish.fate === 'vanish') wish.deadline = this.vanishedAfter
        await this.before(wish)
        const door = this.doorOf(wish)
        const { operator, patience, suspended } = this
        const journey = new Journey(wish, { door, operator, patience, suspended })
        this.journeys.push(journey)
        await journey.go()
        this.each(journey)
      }
    }
    await Promise.all(Array.from({ length: Math.min(this.agents, this.runs) }, worker))
    this.took = Date.now() - this.began
  }

  // An escalation came up: finds the journey to which it belongs.
  met(item, operation) {
    const journey = this.journeys.find(
      (one) => (one.sagaId() ?? one.wish.id) === (item.saga ?? operation?.saga) || one.wish.id === operation?.run
    )
    if (journey) journey.person = true
    else this.strangers = (this.strangers ?? 0) + 1
  }

  judge(books) {
    books.read()
    this.verdicts = judgeAll(this.journeys, books)
    return this.verdicts
  }

  // Of all journeys, or of some.
  counts(books, journeys = this.journeys) {
    const counts = {
      runs: journeys.length,
      seconds: this.took / 1000,
      completed: 0,
      compensated: 0,
      abandoned: 0,
      failed: 0,
      stranded: 0,
      person: 0,
      effects: 0,
      undone: 0,
      doubles: 0,
      left: 0,
      calls: 0,
      replayed: 0,
      loops: 0,
      paused: 0,
      crashes: 0,
      replans: 0,
      signed: 0,
      wrong:
        journeys === this.journeys
          ? this.verdicts.length
          : this.verdicts.filter((verdict) => journeys.includes(verdict.journey)).length
    }
    for (const journey of journeys) {
      const { final, seen, wish } = journey
      if (journey.stranded) counts.stranded++
      else if (wish.kind === 'buy') counts[final.status]++
      else counts[final.operations.some((one) => one.state === 'completed') ? 'completed' : 'failed']++
      counts.person += journey.person === true
      counts.signed += journey.signedForSure
      for (const name of ['calls', 'replayed', 'loops', 'paused', 'crashes', 'replans']) counts[name] += seen[name]
      for (const { done, undone } of Object.values(books.tally(wish.id))) {
        counts.effects += done
        counts.undone += undone
        counts.doubles += Math.max(0, done - 1 - journey.signed)
      }
      if (final?.status === 'compensated')
        counts.left += Object.values(books.tally(wish.id)).reduce(
          (sum, one) => sum + Math.abs(one.done - one.undone),
          0
        )
    }
    counts.requests = books.lines.length
    counts.troubled = books.lines.filter((line) => line.fault).length
    return counts
  }
}
