// The judge goes through all sagas, applies the rules to each, and then the rules over all of them together. It returns
// violations, {rule, saga, what}, and counts that show what it has seen.
import { shapes } from '../campaign/shapes.mjs'
import { finals, operationsOf, recordsOf } from './operations.mjs'
import { sagaRules } from './saga_rules.mjs'
import { Books } from './shop_books.mjs'

const violationsMax = 200

// `settled`: everything had the time to end. `clocksJump`: the engines' clocks were moved, so their times say nothing.
export async function judge(evidence, { settled = true, clocksJump = false } = {}) {
  const { notes, sagas, definitions } = evidence
  const books = new Books(evidence.ledger)
  const found = {
    violations: [],
    counts: {
      sagas: 0,
      completed: 0,
      compensated: 0,
      abandoned: 0,
      unfinished: 0,
      records: 0,
      effects: 0,
      unknown: 0,
      escalations: 0,
      takeovers: 0,
      retries: 0,
      late: 0
    }
  }
  const accuse = (rule, saga, what) => {
    if (found.violations.length < violationsMax)
      found.violations.push({ rule, saga: saga?.business || saga?.id || saga || '', id: saga?.id, what })
  }
  const whole = {
    keys: new Map(),
    epochs: new Map(),
    locks: new Map(),
    tokens: new Map(),
    seen: new Set(),
    names: new Map(),
    accuse
  }
  for await (const log of evidence.logs()) {
    const saga = sagas.get(log.saga)
    if (!saga) {
      accuse('log_has_saga', log.saga, 'a log without a row')
      continue
    }
    whole.seen.add(saga.id)
    const records = recordsOf(log)
    const started = records[0]?.data ?? {}
    Object.assign(saga, { tools: started.tools, children: started.sagas })
    const operations = operationsOf(records)
    const shape = shapes[saga.name]
    const escalations = evidence.escalations.get(saga.id) ?? []
    const view = {
      saga,
      log,
      records,
      operations,
      books,
      definitions,
      shape,
      input: started.input ?? {},
      escalations,
      approvals: evidence.approvals.get(saga.id) ?? [],
      settled,
      clocksJump
    }
    for (const [rule, check] of Object.entries(sagaRules)) for (const what of check(view)) accuse(rule, saga, what)
    gather(whole, found.counts, view)
  }
  wholeRules(whole, evidence, books, settled)
  for (const line of evidence.ledger) found.counts.effects += line.effect
  return found
}

// The records of words of people and clients. Records that follow from such a word may repeat its token.
const words = new Set(['signal.received', 'approval.decided', 'escalation.resolved', 'saga.paused', 'saga.resumed'])
const isWord = ({ type, data }) =>
  (words.has(type) && data.note !== 'it was settled without a person') ||
  (type === 'saga.failing' && data.error === 'abort')

function gather(whole, counts, { saga, log, records, operations, input, shape }) {
  counts.sagas++
  counts[finals.includes(saga.status) ? saga.status : 'unfinished']++
  counts.records += records.length
  for (const record of records) {
    counts.unknown += record.type === 'step.unknown'
    counts.escalations += record.type === 'escalation.opened'
    counts.retries += /\.retrying$/.test(record.type)
    counts.late += record.type === 'step.late'
    if (isWord(record)) {
      const token = record.data.args?.token ?? record.data.note
      whole.tokens.set(token, [...(whole.tokens.get(token) ?? []), saga.id])
    }
    if (record.type === 'lock.taken') {
      const end = records.at(-1)
      if (!whole.locks.has(record.data.lock)) whole.locks.set(record.data.lock, [])
      whole.locks
        .get(record.data.lock)
        .push({
          from: record.turn.commit,
          to: finals.some((status) => end.type === `saga.${status}`) ? end.turn.commit : Infinity,
          saga
        })
    }
  }
  let epoch = log.turns[0].epoch
  for (const turn of log.turns) {
    counts.takeovers += turn.epoch !== epoch
    epoch = turn.epoch
    const place = `${saga.shard}/${turn.epoch}`
    const span = whole.epochs.get(place)
    if (!span) whole.epochs.set(place, { shard: saga.shard, epoch, from: turn.commit, to: turn.commit, saga: saga.id })
    else Object.assign(span, { from: Math.min(span.from, turn.commit), to: Math.max(span.to, turn.commit) })
  }
  for (const operation of operations.values()) {
    if (whole.keys.has(operation.key))
      whole.accuse('key_of_one', saga, `the key ${operation.key} is also one of ${whole.keys.get(operation.key)}`)
    whole.keys.set(operation.key, saga.id)
  }
  if (shape) {
    if (whole.names.has(saga.business))
      whole.accuse(
        'one_start_one_saga',
        saga,
        `there are two sagas: ${saga.id} and ${whole.names.get(saga.business).id}`
      )
    whole.names.set(saga.business, { id: saga.id, status: saga.status, name: saga.name, input })
  }
}

function wholeRules(whole, evidence, books, settled) {
  const { accuse } = whole
  const { notes, sagas } = evidence
  // 1. At most one effect under a key, and none under a key that nobody has.
  for (const [key, lines] of books.byKey) {
    const effects = lines.filter((line) => line.effect === 1)
    if (effects.length > 1)
      accuse(
        'effect_once',
        whole.keys.get(key),
        `${effects.length} effects under the key ${key}: ${effects.map((line) => line.id)}`
      )
    if (!whole.keys.has(key))
      accuse('intent_first', '', `a request under a key that no log knows: ${JSON.stringify(lines[0])}`)
  }
  for (const line of books.strange)
    accuse('effects_are_asked_for', '', `an effect that nobody wished for: ${JSON.stringify(line)}`)
  // 8. One owner acts: whatever was committed under an epoch of a shard was committed before anything under the next
  // one.
  const shards = new Map()
  for (const span of whole.epochs.values()) shards.set(span.shard, [...(shards.get(span.shard) ?? []), span])
  for (const spans of shards.values()) {
    spans.sort((a, b) => a.epoch - b.epoch)
    for (const [i, span] of spans.entries()) {
      if (i > 0 && span.from < spans[i - 1].to)
        accuse(
          'one_owner',
          span.saga,
          `shard ${span.shard}: epoch ${spans[i - 1].epoch} wrote ${(spans[i - 1].to - span.from) / 1000} ms ` +
            `after epoch ${span.epoch} had begun`
        )
    }
  }
  // Only one saga at a time holds a business key.
  for (const [key, spans] of whole.locks) {
    spans.sort((a, b) => a.from - b.from)
    for (const [i, span] of spans.entries())
      if (i > 0 && span.from < spans[i - 1].to)
        accuse('lock_of_one', span.saga, `it has ${key} while ${spans[i - 1].saga.business} has it`)
  }
  // 7, 10. Whatever was acknowledged is there, as it was asked for.
  for (const [name, start] of notes.starts) {
    const found = whole.names.get(name)
    if (start.id && !found)
      accuse('acknowledged_kept', name, `the start was acknowledged as ${start.id}, and there is no such saga`)
    if (start.id && found && found.id !== start.id)
      accuse('acknowledged_kept', name, `acknowledged as ${start.id}, and it is ${found.id}`)
    if (found && JSON.stringify(found.input) !== JSON.stringify(start.input))
      accuse('acknowledged_kept', name, `its input has become ${JSON.stringify(found.input)}`)
    if (found && found.name !== start.shape)
      accuse('acknowledged_kept', name, `a saga ${found.name} instead of ${start.shape}`)
    if (found?.name !== 'chain') continue
    const follower = whole.names.get(`${name}+follow`)
    if (settled && (found.status === 'completed') !== Boolean(follower))
      accuse('follower_once', name, `${found.status}, and ${follower ? 'a' : 'no'} follower`)
  }
  for (const [name, found] of whole.names) {
    if (!notes.starts.has(name.replace(/\+follow$/, '')))
      accuse('nobody_asked', found.id, `a saga ${name} that no client started`)
  }
  for (const saga of sagas.values()) if (!whole.seen.has(saga.id)) accuse('log_has_saga', saga, 'a row without a log')
  // 7, 19. A word that was acknowledged is in the log once, and no word is there twice.
  for (const word of notes.words) {
    const places = whole.tokens.get(word.token) ?? []
    // Only starts and signals carry a key that identifies a repeat. Of any other word that is repeated because no
    // answer came, the first one may still be on its way, and is carried out when it arrives. When the saga does not
    // accept it a second time, as with a decision, the log still has it once. So a pause can be in the log twice when
    // it was sent twice and somebody has resumed the saga in between (pauses_alternate).
    if (places.length > (word.kind === 'pause' || word.kind === 'resume' ? word.sent : 1))
      accuse('words_once', word.saga, `the ${word.kind} ${word.token} is ${places.length} times in the log`)
    if (places.length === 1 && places[0] !== word.saga)
      accuse('words_once', word.saga, `the ${word.kind} ${word.token} went to the saga ${places[0]}`)
    if (!word.acknowledged || places.length > 0) continue
    const status = sagas.get(word.saga)?.status
    // When the state is already as wanted, no record is written.
    if (word.kind === 'abort' && status !== 'completed') continue
    if (word.kind === 'resume') continue
    accuse(
      'words_kept',
      word.saga,
      `the ${word.kind} ${word.token} was acknowledged (${word.status ?? 200}) and is not in the log`
    )
  }
  const said = new Set(notes.words.map((word) => word.token))
  for (const token of whole.tokens.keys())
    if (!said.has(token)) accuse('nobody_asked', '', `the word ${token} that nobody said`)
  if (settled && evidence.inbox > 0) accuse('it_ends', '', `${evidence.inbox} inputs are left in the inbox`)
  for (const what of notes.complaints) accuse('answers', '', what)
}
