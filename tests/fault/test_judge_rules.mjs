// The judge is judged. A small real run must be found without fault. Each fault that is planted in a copy of its
// evidence (ledger, notes, rows) must be found by the rule for it.
import { randomFrom } from '../lib/load.mjs'
import { expect, promise, run, sleep } from '../lib/world.mjs'
import { readEvidence } from './judge/evidence.mjs'
import { judge } from './judge/judge.mjs'
import { sagaRules } from './judge/saga_rules.mjs'
import { Notes } from './campaign/notes.mjs'
import { inputOf, shapes } from './campaign/shapes.mjs'
import { Round } from './campaign/round.mjs'
import { CampaignWorld } from './campaign/world.mjs'

const random = randomFrom(7)
const world = new CampaignWorld(random, { engineCount: 2 })

// Makes a copy that can be doctored; the log is read into memory.
async function copyOf(evidence) {
  const logs = []
  for await (const log of evidence.logs()) logs.push(log)
  const plain = structuredClone({
    ledger: evidence.ledger,
    sagas: evidence.sagas,
    escalations: evidence.escalations,
    approvals: evidence.approvals,
    inbox: evidence.inbox,
    definitions: evidence.definitions,
    logs
  })
  const { notes } = evidence
  plain.notes = {
    starts: structuredClone(notes.starts),
    words: structuredClone(notes.words),
    finals: notes.finals,
    complaints: [...notes.complaints],
    counts: notes.counts
  }
  plain.list = plain.logs
  plain.logs = async function* () {
    yield* plain.list
  }
  return plain
}

// Helps the plants to find their place.
class Doctor {
  constructor(copy) {
    this.copy = copy
  }

  records() {
    return this.copy.list.flatMap((log) =>
      log.turns.flatMap((turn) =>
        turn.records.map((record, i) => ({ log, turn, record, i, saga: this.copy.sagas.get(log.saga) }))
      )
    )
  }

  record(fits) {
    const found = this.records().find(fits)
    expect(found, 'the run has something to plant this in')
    return found
  }

  log(fits) {
    const found = this.copy.list.find((log) => fits(this.copy.sagas.get(log.saga), log))
    expect(found, 'the run has a saga to plant this in')
    return found
  }

  line(fits) {
    const found = this.copy.ledger.find(fits)
    expect(found, 'the ledger has a line to plant this in')
    return found
  }

  requests(key) {
    return this.copy.ledger.filter((line) => line.key === key)
  }

  intents(log, key) {
    return log.turns
      .flatMap((turn) => turn.records)
      .filter((record) => record.key === key && record.type.endsWith('.intent'))
  }

  effectOf(key) {
    return this.copy.ledger.find((line) => line.key === key && line.effect === 1)
  }

  drop(line) {
    this.copy.ledger.splice(this.copy.ledger.indexOf(line), 1)
  }

  renumber(log) {
    let seq = 1
    for (const turn of log.turns) {
      turn.seq = seq
      turn.count = turn.records.length
      seq += turn.count
    }
  }
}

const hasCompleted = (log, step) =>
  log.turns.some((turn) =>
    turn.records.some((record) => record.type === 'step.completed' && record.step === step && record.key)
  )
const ended = (status, name) => (saga) => saga.status === status && (!name || saga.name === name)

// rule -> a plant that breaks it
const plants = {
  effect_once: (d) =>
    d.copy.ledger.push({ ...d.line((line) => line.kind === 'reserve' && line.effect === 1), id: 'planted', n: 1e6 }),
  wish_once: (d) => {
    const line = d.line((one) => one.kind === 'mail' && one.effect === 1)
    d.copy.ledger.push({ ...line, id: 'planted', key: 'planted', n: 1e6 })
  },
  intent_first: (d) => {
    d.record(({ record }) => record.type === 'step.intent' && d.effectOf(record.key)).turn.commit += 60e6
  },
  'intent_first, more requests than intents': (d) => {
    const { record, log } = d.record(
      ({ record: one }) => one.type === 'step.intent' && d.effectOf(one.key)?.kind === 'reserve'
    )
    const line = d.effectOf(record.key)
    for (let spare = d.intents(log, record.key).length - d.requests(record.key).length; spare >= 0; spare--)
      d.copy.ledger.push({ ...line, effect: 0, n: 1e6 })
  },
  'intent_first, an unknown key': (d) =>
    d.copy.ledger.push({ ...d.line((one) => one.effect === 1), effect: 0, key: 'planted', n: 1e6 }),
  'intent_first, before the intent of what may be repeated': (d) => {
    d.record(
      ({ record }) =>
        record.type === 'compensation.intent' && record.attempt === 1 && d.effectOf(record.key)?.kind === 'release'
    ).turn.commit += 60e6
  },
  effects_are_asked_for: (d) => {
    d.line((one) => one.kind === 'charge' && one.effect === 1).request = null
  },
  'effects_fit_the_end, a completed saga without its effect': (d) => {
    const { record } = d.record(
      ({ record: one, saga }) =>
        one.type === 'step.completed' && saga.status === 'completed' && one.key && d.effectOf(one.key)
    )
    d.drop(d.effectOf(record.key))
  },
  'effects_fit_the_end, a compensated one whose effect stands': (d) =>
    d.drop(d.line((line) => line.kind === 'release' && line.effect === 1)),
  'effects_fit_the_end, undone twice': (d) =>
    d.copy.ledger.push({ ...d.line((line) => line.kind === 'refund' && line.effect === 1), n: 1e6 }),
  'undo_set, one skipped': (d) => {
    const { log, turn, i } = d.record(
      ({ record, saga, log: of }) =>
        record.type === 'compensation.completed' && saga.status === 'compensated' && hasCompleted(of, record.step)
    )
    turn.records.splice(i, 1)
    d.renumber(log)
  },
  'undo_set, twice in the plan': (d) => {
    const { plan } = d.record(({ record }) => record.type === 'compensation.planned' && record.data.plan.length > 0)
      .record.data
    plan.push(plan[0])
  },
  'undo_set, not in the plan': (d) =>
    d
      .record(({ record }) => record.type === 'compensation.planned' && record.data.plan.length > 0)
      .record.data.plan.pop(),
  'undo_order, the plan forward': (d) =>
    d
      .record(
        ({ record, saga }) =>
          record.type === 'compensation.planned' &&
          record.data.plan.length > 1 &&
          saga.status === 'compensated' &&
          saga.name !== 'fan'
      )
      .record.data.plan.reverse(),
  'undo_order, the effects forward': (d) => {
    const undone = (log) =>
      [
        ...new Set(
          log.turns
            .flatMap((turn) => turn.records)
            .filter((one) => one.type === 'compensation.intent')
            .map((one) => one.key)
        )
      ].filter((key) => d.effectOf(key))
    const { log } = d.record(
      ({ record, saga, log: of }) =>
        record.type === 'compensation.planned' &&
        saga.status === 'compensated' &&
        saga.name !== 'fan' &&
        undone(of).length > 1
    )
    const [a, b] = [d.effectOf(undone(log)[0]), d.effectOf(undone(log).at(-1))]
    ;[a.n, b.n] = [b.n, a.n]
  },
  no_effect_after_undo: (d) => {
    const { record } = d.record(
      ({ record: one, saga }) =>
        one.type === 'step.completed' && saga.status === 'compensated' && one.key && d.effectOf(one.key)
    )
    d.effectOf(record.key).n = 1e6
  },
  'nothing_after_the_end, a record': (d) => {
    const log = d.log(ended('completed', 'order'))
    log.turns.at(-1).records.push(structuredClone(log.turns[1].records[0]))
    d.renumber(log)
  },
  'nothing_after_the_end, an effect': (d) => {
    const { record } = d.record(
      ({ record: one, saga }) =>
        one.type === 'step.completed' && saga.status === 'completed' && one.key && d.effectOf(one.key)
    )
    d.effectOf(record.key).t_in += 3600e3
  },
  'nothing_after_the_end, another row': (d) => {
    d.copy.sagas.get(d.log(ended('completed')).saga).status = 'compensated'
  },
  'it_ends, stranded': (d) => {
    const log = d.log(ended('completed', 'order'))
    Object.assign(d.copy.sagas.get(log.saga), { status: 'running', ended: false })
    log.turns.pop()
  },
  'it_ends, escalated and nobody is asked': (d) =>
    Object.assign(d.copy.sagas.get(d.log(ended('completed')).saga), { status: 'escalated', ended: false }),
  'it_ends, two questions': (d) => {
    const { saga } = d.log(ended('completed'))
    d.copy.escalations.set(
      saga,
      [1, 2].map((number) => ({ saga, number, open: true, step: 'a' }))
    )
  },
  'it_ends, something left in the inbox': (d) => {
    d.copy.inbox = 1
  },
  escalations_exact: (d) => {
    const { saga } = d.log(ended('completed', 'order'))
    d.copy.escalations.set(saga, [{ saga, number: 12345, open: false, step: 'a' }])
  },
  'escalations_exact, opened twice': (d) => {
    const log = d.log(ended('completed', 'order'))
    for (const at of [2, 3])
      log.turns[at].records.unshift({ type: 'escalation.opened', step: 'a', data: { escalation: at } })
    d.renumber(log)
  },
  'log_dense, a gap': (d) => {
    d.log(ended('completed')).turns.at(-1).seq += 1
  },
  'log_dense, the epoch falls': (d) => {
    d.log(ended('completed')).turns[0].epoch += 100
  },
  log_has_saga: (d) => d.copy.list.splice(3, 1),
  'outcomes_true, completed and nothing is there': (d) => {
    const { record } = d.record(({ record: one }) => one.type === 'step.completed' && one.key && d.effectOf(one.key))
    for (const line of d.copy.ledger) if (line.key === record.key) line.effect = 0
  },
  'outcomes_true, another result': (d) => {
    d.record(
      ({ record }) => record.type === 'step.completed' && record.data.result?.id && d.effectOf(record.key)
    ).record.data.result.id = 'planted'
  },
  'outcomes_true, failed and it is there': (d) => {
    const { record } = d.record(
      ({ record: one }) => one.type === 'step.failed' && one.key && !one.data.source && d.requests(one.key).length > 0
    )
    d.requests(record.key)[0].effect = 1
  },
  'outcomes_true, unknown taken for failed': (d) => {
    const bySelf = (log, step) =>
      !log.turns.some((turn) =>
        turn.records.some((record) => record.type === 'escalation.resolved' && record.step === step)
      )
    const refused = (key) => d.requests(key).some((line) => line.status >= 400 && line.status < 500)
    const { record, turn, log, i } = d.record(
      ({ record: one, log: of }) =>
        one.type === 'step.failed' && one.key && !one.data.source && refused(one.key) && bySelf(of, one.step)
    )
    turn.records.splice(i, 0, { type: 'step.unknown', step: record.step, key: record.key, data: {} })
    for (const line of d.copy.ledger) if (line.key === record.key) line.status = 201
    d.renumber(log)
  },
  'outcomes_true, it did not leave and yet it came': (d) => {
    const allCame = (log, key) => d.requests(key).length > 0 && d.requests(key).length >= d.intents(log, key).length
    const { record, turn, log, i } = d.record(
      ({ record: one, log: of }) => one.type === 'step.failed' && one.key && !one.data.source && allCame(of, one.key)
    )
    record.data.unsent = true
    turn.records.splice(i, 0, { type: 'step.unknown', step: record.step, key: record.key, data: {} })
    for (const line of d.copy.ledger) if (line.key === record.key) line.status = 201
    d.renumber(log)
  },
  once_leaves_once: (d) => {
    const { record } = d.record(
      ({ record: one, saga }) =>
        one.type === 'step.intent' && saga.name === 'unsure' && one.step === 'a' && d.requests(one.key).length > 0
    )
    d.copy.ledger.push({ ...d.requests(record.key)[0], effect: 0, n: 1e6 })
  },
  'retries_honoured, before its time': (d) => {
    const { record, turn, log, i } = d.record(({ record: one }) => one.type === 'step.intent')
    turn.records.splice(i, 0, {
      type: 'step.retrying',
      step: record.step,
      key: record.key,
      attempt: 1,
      data: { due: turn.at + 5000 }
    })
    d.renumber(log)
  },
  'retries_honoured, an attempt left out': (d) => {
    d.record(({ record }) => record.type === 'step.intent').record.attempt = 3
  },
  'timers, early': (d) => {
    // Nothing after a pause is judged.
    const wasPaused = (log) => log.turns.some((turn) => turn.records.some((record) => record.type === 'saga.paused'))
    const { log, turn } = d.record(
      ({ record, saga, log: of }) =>
        record.type === 'step.completed' && record.step === 'wait' && saga.name === 'nap' && !wasPaused(of)
    )
    turn.at = log.turns[0].at
    for (const one of log.turns) one.at = Math.min(one.at, turn.at)
  },
  'timers, twice': (d) => {
    const { record, turn, log, i } = d.record(
      ({ record: one, saga }) => one.type === 'step.completed' && one.step === 'wait' && saga.name === 'nap'
    )
    turn.records.splice(i, 0, structuredClone(record))
    d.renumber(log)
  },
  'pauses_alternate, a pause that was said twice is there twice': (d) => {
    const word = (record) => d.copy.notes.words.find((one) => one.token === record.data.note)
    const { record, turn, log, i } = d.record(({ record: one }) => one.type === 'saga.paused' && word(one))
    word(record).sent = 2
    turn.records.splice(i, 0, structuredClone(record))
    d.renumber(log)
  },
  'pauses_alternate, it is resumed while nothing holds it up': (d) => {
    const { record, turn, log, i } = d.record(({ record: one }) => one.type === 'saga.resumed')
    turn.records.splice(i, 0, structuredClone(record))
    d.renumber(log)
  },
  'people_are_named, no actor': (d) => {
    delete d.record(({ record }) => record.type === 'approval.decided').record.actor
  },
  'people_are_named, no reason': (d) => {
    delete d.record(({ record }) => record.type === 'saga.paused').record.data.note
  },
  key_of_one: (d) => {
    const keyed = d.records().filter(({ record }) => record.type === 'step.intent')
    const other = keyed.find(({ log }) => log !== keyed[0].log)
    other.record.key = keyed[0].record.key
  },
  // The first turn of a shard claims an epoch after all other epochs of that shard.
  one_owner: (d) => {
    const shardOf = (log) => d.copy.sagas.get(log.saga).shard
    const shard = shardOf(d.log(ended('completed', 'order')))
    const turns = d.copy.list
      .filter((log) => shardOf(log) === shard)
      .flatMap((log) => log.turns)
      .sort((a, b) => a.commit - b.commit)
    turns[0].epoch = Math.max(...turns.map((turn) => turn.epoch)) + 1
  },
  lock_of_one: (d) => {
    const taken = d.records().filter(({ record }) => record.type === 'lock.taken')
    const [first, second] = taken.map((one) => [one, taken.find((other) => other.log !== one.log)])[0]
    expect(second, 'two sagas with a lock')
    second.record.data.lock = first.record.data.lock
    second.turn.commit = first.turn.commit + 1
  },
  'acknowledged_kept, a start is gone': (d) => {
    const [name, start] = [...d.copy.notes.starts].find(([, one]) => one.id)
    d.copy.sagas.delete(start.id)
    d.copy.list.splice(
      d.copy.list.findIndex((log) => log.saga === start.id),
      1
    )
    return name
  },
  'acknowledged_kept, another id': (d) => {
    ;[...d.copy.notes.starts.values()].find((one) => one.id).id = '00000000-0000-7000-8000-000000000000'
  },
  'acknowledged_kept, another input': (d) => {
    d.record(({ record, saga }) => record.type === 'saga.started' && saga.name !== 'follow').record.data.input.bad =
      'planted'
  },
  follower_once: (d) => {
    const log = d.log((saga) => saga.name === 'follow')
    d.copy.sagas.delete(log.saga)
    d.copy.list.splice(d.copy.list.indexOf(log), 1)
  },
  'nobody_asked, a saga': (d) =>
    d.copy.notes.starts.delete([...d.copy.notes.starts.keys()].find((name) => name.startsWith('order'))),
  'nobody_asked, a word': (d) => {
    d.copy.notes.words = d.copy.notes.words.filter((word) => word.kind !== 'signal')
  },
  one_start_one_saga: (d) => {
    const [a, b] = d.copy.list.map((log) => d.copy.sagas.get(log.saga)).filter((saga) => saga.name === 'order')
    b.business = a.business
  },
  'words_kept, a signal': (d) => {
    const { turn, i, log } = d.record(
      ({ record }) =>
        record.type === 'signal.received' &&
        d.copy.notes.words.find((word) => word.token === record.data.args.token).acknowledged
    )
    turn.records.splice(i, 1)
    d.renumber(log)
  },
  words_once: (d) => {
    const { record, turn, log } = d.record(({ record: one }) => one.type === 'approval.decided')
    turn.records.push(structuredClone(record))
    d.renumber(log)
  },
  'words_once, a pause more often than it was said': (d) => {
    const word = (record) => d.copy.notes.words.find((one) => one.token === record.data.note)
    const { record, turn, log } = d.record(({ record: one }) => one.type === 'saga.paused' && word(one))
    for (let i = 0; i < word(record).sent; i++) turn.records.push(structuredClone(record))
    d.renumber(log)
  },
  answers: (d) => d.copy.notes.complaints.push('planted'),
  'answers, the record of an ended saga reads otherwise': (d) => {
    const notes = new Notes()
    const [id, text] = d.copy.notes.finals.entries().next().value
    notes.final(id, text)
    expect(notes.complaints.length === 0, 'a record that was read once is nothing to complain of')
    notes.final(id, text.replace('"completed"', '"compensated"').replace(id, 'planted'))
    d.copy.notes.complaints.push(...notes.complaints)
  }
}

// Returns what `undo_order` says of two elements that ran side by side and were undone in another order than planned.
function saidOfElements(...between) {
  const made = (n, ...steps) => steps.map((step) => ({ type: n, step, key: step, data: {} }))
  const records = [
    ...made('step.intent', 'each#0', 'each#1'),
    ...made('step.completed', 'each#1', 'each#0'),
    { type: 'compensation.planned', data: { plan: ['each#1', 'each#0'] } },
    ...between,
    ...made('compensation.intent', 'each#0'),
    ...made('compensation.intent', 'each#1')
  ].map((record, place) => ({ ...record, place }))
  const operations = new Map(['each#0', 'each#1'].map((step) => [step, { direction: 'undo', step, key: step }]))
  const books = { effect: (key) => ({ n: key === 'each#0' ? 1 : 2 }) }
  return [
    ...sagaRules.undo_order({
      saga: { name: 'each', version: 1 },
      records,
      operations,
      books,
      definitions: { sagas: new Map() }
    })
  ]
}

await run(world, async () => {
  await promise('steps that ran side by side do not wait for an undo that a person has to see to', () => {
    expect(saidOfElements().length === 1, 'without that it is out of order', saidOfElements())
    expect(saidOfElements({ type: 'compensation.failed', step: 'each#1', data: {} }).length === 0, 'with it it is not')
  })
  const round = new Round(world, random, { load: { rate: 60, clients: 12 } })
  let kills = 0
  const kill = {
    async fire() {
      for (let tries = 0; tries < 1000 && round.notes.counts.starts < 30 * (kills + 1); tries++) await sleep(20)
      const engine = world.engines[kills % 2]
      await world.killEngine(engine)
      world.launchEngine(engine)
      return 'kill'
    }
  }
  // Makes what the plants need and chance may leave out: each shape, ended well and badly, and a saga that is paused
  // while it waits for its signal.
  const sure = {
    name: 'sure',
    async fire({ load, notes }) {
      const begin = async (shape, name, bad) => {
        const input = { ...inputOf(shape, name, random), bad }
        notes.tried(name, shape, input)
        return load.start(name, shape, input)
      }
      const signal = (id) =>
        load.say('signal', id, (token) => [
          'POST',
          `/v1/sagas/${id}/signals/go`,
          { token },
          { headers: { 'idempotency-key': token } }
        ])
      await Promise.all(
        Object.keys(shapes)
          .filter((shape) => shapes[shape].weight > 0)
          .flatMap((shape) =>
            [false, true].map(async (bad) => {
              const id = await begin(shape, `${shape}-sure-${bad}`, bad)
              if (shapes[shape].signal) await signal(id)
            })
          )
      )
      const id = await begin('await', 'await-sure-paused', false)
      await load.pause(id) // and resumed
      await signal(id)
      return 'sure'
    }
  }
  const faults = [kill, kill, kill, sure]
  let found
  await promise(
    'a real run with two engines and three kills is found without fault',
    async () => {
      found = await round.go(
        () => faults.shift(),
        (fault) => {
          kills += fault === kill
        },
        150
      )
      expect(faults.length === 0, `${faults.length} of what it was to see did not come`)
      expect(found.violations.length === 0, `${found.violations.length} faults`, found.violations.slice(0, 5))
      expect(found.counts.completed > 30 && found.counts.compensated > 10, 'it had all kinds of ends', found.counts)
    },
    400
  )
  const evidence = await readEvidence(world, round.notes)
  for (const [name, plant] of Object.entries(plants)) {
    await promise(`found: ${name}`, async () => {
      const doctor = new Doctor(await copyOf(evidence))
      plant(doctor)
      const rule = name.split(',')[0]
      const { violations } = await judge(doctor.copy)
      expect(
        violations.some((one) => one.rule === rule),
        `the rule ${rule} does not see it; others: `,
        violations.slice(0, 3)
      )
    })
  }
})
