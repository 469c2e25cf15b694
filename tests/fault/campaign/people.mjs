// The people. They decide what they are asked, and clear every escalation by looking into the shop's books.
import { sleep } from '../../lib/world.mjs'
import { LedgerTail } from './ledger.mjs'

// A call that left before its engine died may still be on its way to the shop. A person waits for that before deciding.
const patienceMs = 2500

export class People {
  constructor(world, notes, random) {
    Object.assign(this, { world, notes, random, seen: new Map(), stopping: false, verdicts: 0, decisions: 0 })
    this.books = new LedgerTail(world.ledgerPath)
    this.worksFrom = 0 // people wait until this time: during a cut nobody knows which calls are under way
    this.work = this.loop()
  }

  async loop() {
    while (!this.stopping) {
      await this.decide()
      if (Date.now() > this.worksFrom) await this.resolve()
      await sleep(300)
    }
  }

  async open(path) {
    const answer = await this.world.ask('GET', `${path}?status=open&limit=500`)
    return answer?.status === 200 ? answer.json.items : []
  }

  async inTurns(items, each) {
    const rest = [...items]
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let item = rest.shift(); item; item = rest.shift()) await each(item)
      })
    )
  }

  // 404 is accepted only when the question may be gone with the server that showed it.
  fitting({ status }, statuses) {
    return status === 503 || status === 429 || statuses.includes(status) || (status === 404 && this.notes.rowsMayVanish)
  }

  async decide() {
    await this.inTurns(await this.open('/v1/approvals'), async (item) => {
      const word = this.notes.word('decision', item.saga)
      const answer = await this.world.ask('POST', `/v1/approvals/${item.n}`, {
        decision: this.random() < 0.8 ? 'approve' : 'refuse',
        note: word.token
      })
      if (answer && !this.fitting(answer, [200, 409]))
        this.notes.complain(`a decision was answered with ${answer.status}: ${answer.text}`)
      if (answer?.status === 200) word.acknowledged = true
      this.decisions += answer?.status === 200
    })
  }

  async resolve() {
    const open = await this.open('/v1/escalations')
    const due = []
    for (const item of open) {
      const place = `${item.n}/${item.opened_at}`
      if (!this.seen.has(place)) this.seen.set(place, Date.now())
      if (Date.now() - this.seen.get(place) > patienceMs) due.push(item)
    }
    if (due.length > 0) this.books.read()
    await this.inTurns(due, async (item) => {
      const line = this.books.byKey.get(item.operation)
      const verdict =
        item.reason === 'compensation-arguments'
          ? await this.argumentsOf(item)
          : item.reason !== 'unknown'
            ? { action: 'retry' }
            : line
              ? { action: 'resolve', as: 'happened', result: { id: line.id } }
              : { action: 'resolve', as: 'not_happened' }
      if (!verdict) return
      const word = this.notes.word('verdict', item.saga)
      const answer = await this.world.ask('POST', `/v1/escalations/${item.n}/resolve`, {
        ...verdict,
        round: item.round,
        note: word.token
      })
      if (answer && !this.fitting(answer, [200, 202, 409]))
        this.notes.complain(
          `the verdict ${JSON.stringify(verdict)} on ${JSON.stringify(item)} was answered with ` +
            `${answer.status}: ${answer.text}`
        )
      if (answer?.status === 200) word.acknowledged = true
      this.verdicts += answer?.status === 200
    })
  }

  // The step was answered with a success and no name for what was done, so the name comes from the books.
  async argumentsOf(item) {
    const saga = await this.world.ask('GET', `/v1/sagas/${item.saga}`)
    const line = this.books.byKey.get(saga?.json?.steps?.find((step) => step.id === item.step)?.key)
    return line && { action: 'retry', args: item.evidence.tool === 'unbill' ? { charge_id: line.id } : { id: line.id } }
  }

  async stop() {
    this.stopping = true
    await this.work
  }
}
