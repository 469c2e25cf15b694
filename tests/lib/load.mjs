// Load for the fault tests: clients that start orders under business ids and repeat each start until it is
// acknowledged, and the verdict over what they were promised.
import { effectsByKey, expect, expectEqual, judgeOrders, promise, quick, sleep } from './world.mjs'

// Mulberry32: the same seed makes the same choices.
export function randomFrom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

export function chooseSeed() {
  const seed = Number(process.env.SAGAD_TEST_SEED ?? Date.now() % 1000000)
  console.log(`# seed ${seed}${quick ? '' : ', long form'}; SAGAD_TEST_SEED=${seed} makes the same choices`)
  return seed
}

function orderOf(id, random) {
  const fate = random()
  return {
    order_id: id,
    sku: fate < 0.1 ? 'none' : 'book',
    amount: 1 + Math.floor(random() * 100),
    email:
      fate < 0.2 ? `${id}@x.example` : fate < 0.3 ? 'declined' : fate < 0.4 ? `bounce@${id}.example` : `${id}@x.example`
  }
}

export class Load {
  // Each client rests for up to `restMs` between two orders.
  constructor(world, seed, clients = 8, restMs = 40) {
    this.world = world
    this.restMs = restMs
    this.random = randomFrom(seed)
    this.acknowledged = new Map() // business id -> saga id
    this.faults = []
    this.stopping = false
    this.aborts = 0
    this.verdicts = 0
    this.clients = Array.from({ length: clients }, (_, number) => this.client(number))
    this.clients.push(this.person())
  }

  async client(number) {
    for (let count = 0; !this.stopping; count++) {
      const id = `order-${number}-${count}`
      const body = { saga: this.random() < 0.5 ? 'order' : 'order_parallel', id, input: orderOf(id, this.random) }
      for (;;) {
        const answer = await this.world.api('POST', '/v1/sagas', body, { seconds: 15 }).catch(() => undefined)
        if (answer && (answer.status === 201 || answer.status === 200)) {
          this.acknowledged.set(id, answer.json.id)
          break
        }
        // 503 is the only refusal that a correct start may meet; the test itself causes missing answers.
        if (answer && answer.status !== 503)
          this.faults.push(`the start of ${id} was answered with ${answer.status}: ${answer.text}`)
        if (answer && answer.status < 500) break
        if (this.stopping && (this.world.sagad?.end || Date.now() > this.giveUpAt)) {
          this.faults.push(
            `the start of ${id} was never answered: ${this.world.sagad?.end ? 'sagad has ended' : 'it is too late'}`
          )
          return
        }
        await sleep(20 + this.random() * 60)
      }
      if (this.random() < 0.06 && this.acknowledged.has(id)) await this.abort(this.acknowledged.get(id))
      await sleep(5 + this.random() * this.restMs)
    }
  }

  // Aborts a saga wherever it is: it is undone, or past the point of no return.
  async abort(id) {
    const answer = await this.world
      .api('POST', `/v1/sagas/${id}/abort`, { note: 'changed my mind' })
      .catch(() => undefined)
    if (!answer || answer.status === 503) return
    if (![200, 202, 409].includes(answer.status))
      this.faults.push(`the abort of ${id} was answered with ${answer.status}: ${answer.text}`)
    this.aborts += answer.status !== 409
  }

  // Settles escalations as a person who looks into the shop's books.
  async person() {
    while (!this.stopping) {
      await this.settleEscalations().catch(() => {}) // sagad or PostgreSQL is dead
      await sleep(700)
    }
  }

  async settleEscalations() {
    const open = await this.world.read('/v1/escalations?status=open&limit=500')
    if (open.status !== 200 || open.json.items.length === 0) return
    // A call that left before sagad was killed may still be on its way, and a person waits for that before deciding.
    const due = open.json.items.filter((item) => Date.now() - Date.parse(item.opened_at) > 1500)
    const effects = effectsByKey(this.world.ledger())
    for (const item of due) {
      const line = effects.get(item.operation)?.[0]
      const decision =
        item.reason !== 'unknown'
          ? { action: 'retry' }
          : line
            ? {
                action: 'resolve',
                as: 'happened',
                result: item.step === 'charge' ? { charge_id: line.id } : { id: line.id }
              }
            : { action: 'resolve', as: 'not_happened' }
      const answer = await this.world.api('POST', `/v1/escalations/${item.n}/resolve`, {
        ...decision,
        round: item.round,
        note: 'as the books have it'
      })
      if (![200, 409, 503].includes(answer.status))
        this.faults.push(`the verdict ${JSON.stringify(decision)} was answered with ${answer.status}: ${answer.text}`)
      this.verdicts += answer.status === 200
    }
  }

  // Repeats each start until it is answered, but not for ever: a sagad that does not come back is a named failure.
  async stop(seconds = 240) {
    this.giveUpAt = Date.now() + seconds * 1000
    this.stopping = true
    await Promise.all(this.clients)
  }
}

// Collects how each acknowledged saga ended; all other promises are judged from that.
export async function judge(world, load) {
  const ended = new Map()
  await promise(
    'every acknowledged start exists and has ended, once a person has settled what nobody else could',
    async () => {
      const open = new Map(load.acknowledged)
      const patienceMs = 240000 // without any saga that ends
      let until = Date.now() + patienceMs
      while (open.size > 0 && Date.now() < until) {
        for (const [business, id] of [...open]) {
          const saga = await world.saga(id)
          expect(
            saga.business_id === business,
            `the saga ${id} has the business id ${saga.business_id} and not ${business}`
          )
          if (!['completed', 'compensated', 'abandoned'].includes(saga.status)) continue
          ended.set(id, saga)
          open.delete(business)
          until = Date.now() + patienceMs
        }
        if (open.size === 0) break
        await load.settleEscalations()
        await sleep(300)
      }
      const left = []
      for (const id of [...open.values()].slice(0, 5)) left.push(await world.saga(id))
      expect(open.size === 0, `${open.size} of ${load.acknowledged.size} sagas are stranded`, left)
    },
    300
  )
  const counts = {}
  for (const saga of ended.values()) counts[saga.status] = (counts[saga.status] ?? 0) + 1
  console.log(
    `# ${load.acknowledged.size} acknowledged: ${JSON.stringify(counts)}; ${load.aborts} aborted, ` +
      `${load.verdicts} settled by a person`
  )
  await promise('the load had all kinds of ends', () =>
    expect(counts.completed > 0 && counts.compensated > 0 && ended.size > 20, 'completed and compensated', counts)
  )
  await promise('every start, abort and verdict was answered as it should be', () =>
    expect(load.faults.length === 0, `${load.faults.length} were not`, load.faults.slice(0, 5))
  )
  await promise('nothing is left to decide', async () => {
    const open = await world.read('/v1/escalations?status=open')
    expectEqual(open.json.items, [], 'open escalations')
  })
  await promise(
    'by the ledger of the shop: no effect twice, all of a completed saga, none of a compensated one',
    async () => {
      const faults = judgeOrders([...ended.values()], world.ledger())
      expect(faults.length === 0, `${faults.length} faults`, faults.slice(0, 10))
    }
  )
  await promise('the judge finds each kind of fault that is planted in this ledger', () => {
    const sagas = [...ended.values()]
    const ledger = world.ledger()
    const effects = effectsByKey(ledger)
    const effectOf = (saga, step) => effects.get(saga.steps.find((one) => one.id === step).key)?.[0]
    const without = (gone) => ledger.filter((line) => line !== gone)
    const completed = sagas.find((saga) => saga.status === 'completed')
    const undone = sagas.find((saga) => saga.status === 'compensated' && effectOf(saga, 'charge'))
    const charge = effectOf(completed, 'charge')
    const refund = ledger.find(
      (line) => line.effect === 1 && line.kind === 'refund' && line.body.charge_id === effectOf(undone, 'charge').id
    )
    const plants = {
      'an effect twice under one key': [...ledger, { ...charge, id: 'ch-planted' }],
      'a completed saga without its charge': without(charge),
      'a completed saga without its mail': without(effectOf(completed, 'confirm')),
      'a compensated saga whose charge stands': without(refund),
      'a charge that was given back twice': [...ledger, { ...refund, key: `${refund.key}x` }],
      'an effect that belongs to no saga': [...ledger, { ...charge, id: 'ch-planted', key: 'planted' }],
      'a second mail under another key': [
        ...ledger,
        { ...effectOf(completed, 'confirm'), id: 'ml-planted', key: 'planted' }
      ]
    }
    for (const [what, planted] of Object.entries(plants))
      expect(judgeOrders(sagas, planted).length > 0, `not found: ${what}`)
  })
  await promise('no saga is there that nobody asked for', async () => {
    const known = new Set(load.acknowledged.values())
    let cursor = ''
    for (;;) {
      const page = await world.read(`/v1/sagas?limit=500${cursor}`)
      expect(page.status === 200, 'the list', page.text)
      const strange = page.json.items.find((saga) => !known.has(saga.id))
      expect(!strange, 'a saga that was not acknowledged', strange)
      if (!page.json.next_cursor) break
      cursor = `&cursor=${encodeURIComponent(page.json.next_cursor)}`
    }
  })
  await promise(
    'every saga folds from its log to the state that the service shows',
    () => {
      const replay = world.replayAll()
      expect(
        replay.status === 0,
        'sagactl replay --all',
        `${replay.status} ${replay.stdout.slice(-1500)} ${replay.stderr.slice(-500)}`
      )
    },
    600
  )
}
