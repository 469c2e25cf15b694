// The person behind the operator's token. This person looks into the shop's books, settles what nobody else can, and
// lets suspended agents go on. The evaluation counts and publishes everything that came to this person.
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export class Person {
  // `met(item, run)` is called for each escalation that comes up. `quiet` ms after it was opened, no call of it can be
  // under way any more.
  constructor(client, books, { quiet = 3000, met = () => {} } = {}) {
    this.client = client
    this.books = books
    this.quiet = quiet
    this.met = met
    this.stopping = false
    this.known = new Set()
    this.reasons = {}
    this.verdicts = 0
    this.resumed = 0
    this.waiting = new Set() // sagas and runs that agents say are suspended
    this.faults = []
    this.working = this.work()
  }

  // Two duties, and neither waits for the other: an agent that is suspended loses patience.
  async work() {
    const again = async (duty) => {
      while (!this.stopping) {
        await duty()
        await sleep(400)
      }
    }
    await Promise.all([again(() => this.settle()), again(() => this.resume())])
  }

  async list(path) {
    const items = []
    for (let cursor = '', pages = 0; pages < 40; pages++) {
      const answer = await this.client.json('GET', `${path}&limit=500${cursor}`)
      if (answer.status !== 200) return items
      items.push(...answer.json.items)
      if (!answer.json.next_cursor) break
      cursor = `&cursor=${encodeURIComponent(answer.json.next_cursor)}`
    }
    return items
  }

  async settle() {
    const open = await this.list('/v1/escalations?status=open')
    for (const item of open) {
      if (this.known.has(item.n)) continue
      const operation = item.operation ? await this.client.json('GET', `/v1/operations/${item.operation}`) : undefined
      if (operation && operation.status !== 200) continue
      this.known.add(item.n)
      this.reasons[item.reason] = (this.reasons[item.reason] ?? 0) + 1
      this.met(item, operation?.json)
    }
    const due = open.filter((item) => Date.now() - Date.parse(item.opened_at) > this.quiet)
    if (due.length === 0) return
    this.books.read()
    await Promise.all(
      due.map(async (item) => {
        const line = this.books.byKey.get(item.operation)?.[0]
        const decision =
          item.reason !== 'unknown'
            ? { action: 'retry' }
            : line
              ? { action: 'resolve', as: 'happened', result: { id: line.id } }
              : { action: 'resolve', as: 'not_happened' }
        const answer = await this.client.json('POST', `/v1/escalations/${item.n}/resolve`, {
          ...decision,
          round: item.round,
          note: 'as the books have it'
        })
        if (answer.lost || answer.status === 503 || answer.status === 409) return
        if (answer.status === 200) this.verdicts++
        else
          this.faults.push(
            `the verdict ${JSON.stringify(decision)} on ${JSON.stringify(item).slice(0, 300)} was answered with ` +
              `${answer.status}: ${answer.text?.slice(0, 300)}`
          )
      })
    )
  }

  async resume() {
    const paused = new Set([...this.waiting, ...(await this.list('/v1/sagas?status=paused')).map((saga) => saga.id)])
    this.waiting.clear()
    const note = { note: 'go on, and do not go in circles' }
    await Promise.all(
      [...paused].map(async (id) => {
        const answer = await this.client.json('POST', `/v1/sagas/${id}/resume`, note)
        this.resumed += answer.status === 200 || answer.status === 202
      })
    )
  }

  async stop() {
    this.stopping = true
    await this.working
  }
}
