// The rules over one saga: its log and row are checked against the ledger. Each rule is a function that yields
// sentences about faults. The numbers are those of the invariants in the design.
import { finals, stepOf, toolOf, waitsFor } from './operations.mjs'

const msOf = (record) => record.turn.commit / 1000
const slackMs = 3 // two readings of one machine's clock, rounded
const onTheWayMs = 8000 // a request may arrive after the end: the longest timeout of a tool and more

export const sagaRules = {
  // 2. No call without its committed intent: the n-th request under a key came after the commit of the n-th intent.
  *intent_first({ saga, operations, books, definitions }) {
    for (const operation of operations.values()) {
      const requests = books
        .requests(operation.key)
        .filter((line, i, all) => line.fault !== 'redelivered' || all[i - 1]?.fault !== 'redelivered')
      // The HTTP client may itself repeat a request that is harmless twice and has no body, when a kept connection dies
      // without an answer.
      const tool = toolOf(definitions, saga, operation)
      const mayRepeat = tool?.effect === 'idempotent' && !tool.http?.body
      if (requests.length > operation.intents.length && !mayRepeat)
        yield (
          `${requests.length} requests under the key ${operation.key} (${operation.step}), and ` +
          `${operation.intents.length} intents`
        )
      const times = requests.map((line) => line.t_in).sort((a, b) => a - b)
      for (const [i, time] of times.entries()) {
        // The ledger does not say to which attempt a repeated request belongs.
        const intent = operation.intents[mayRepeat ? 0 : i]
        if (intent && msOf(intent) > time + slackMs)
          yield (
            `request ${i + 1} of ${operation.step} came ${Math.round(msOf(intent) - time)} ms before its intent ` +
            `was committed`
          )
      }
    }
  },

  // 3. By the ledger alone: all that a completed saga should have done stands, of a compensated one nothing does;
  // nothing is undone twice.
  *effects_fit_the_end({ saga, books, shape, input }) {
    if (!saga.ended || !shape) return
    const made = books.made(saga.business)
    for (const { wish, line, undone } of made) {
      if (undone.length > 1) yield `${wish} (${line.id}) was undone ${undone.length} times`
    }
    const standing = made
      .filter(({ undone }) => undone.length === 0)
      .map(({ wish }) => wish)
      .sort()
    const wanted = saga.status === 'completed' ? [...shape.expects(input)].sort() : []
    if (saga.status !== 'abandoned' && JSON.stringify(standing) !== JSON.stringify(wanted))
      yield `${saga.status}, and what stands is [${standing}] instead of [${wanted}]`
    if (saga.status === 'completed' && input.bad && !shape.completesBad)
      yield 'completed, with a step that must have failed'
  },

  // 1. One wish, one effect, whatever the keys.
  *wish_once({ saga, books }) {
    const seen = new Set()
    for (const { wish, line } of books.made(saga.business)) {
      if (seen.has(wish)) yield `${wish} happened again: ${line.id}`
      seen.add(wish)
    }
  },

  // 3. By the log: compensated is what took effect, and nothing that surely did not.
  *undo_set({ saga, records, operations, definitions }) {
    const completed = new Set()
    const undone = new Set()
    const failed = new Set()
    const seen = new Set()
    for (const record of records) {
      if (record.type === 'step.completed' && record.key && !(record.data.source === 'precheck'))
        completed.add(record.step)
      if (record.type === 'step.failed' && record.key) failed.add(record.step)
      if (record.type === 'compensation.completed') {
        if (undone.has(record.step)) yield `${record.step} is compensated twice`
        undone.add(record.step)
      }
      if (record.type === 'compensation.planned') {
        // A step that a child was about to undo comes again in the plan of the whole saga, when the saga is undone
        // meanwhile.
        if (new Set(record.data.plan).size < record.data.plan.length)
          yield `a step is twice in the plan ${record.data.plan}`
        for (const step of record.data.plan) seen.add(step)
      }
    }
    for (const operation of operations.values()) {
      if (operation.direction !== 'undo') continue
      if (!seen.has(operation.step)) yield `${operation.step} is compensated and not in the plan`
      if (failed.has(operation.step) && !completed.has(operation.step))
        yield `${operation.step} is compensated, though it surely did not happen`
    }
    if (saga.status !== 'compensated') return
    const waived = new Set(records.filter((record) => record.type === 'step.waived').map((record) => record.step))
    for (const step of completed) {
      const tool = toolOf(definitions, saga, { step, direction: 'do' })
      const undoes = tool?.compensate ?? stepOf(definitions, saga, step)?.compensate
      if (undoes && !undone.has(step) && !waived.has(step)) yield `${step} took effect and was not compensated`
    }
  },

  // 3. Exact reverse order, in the plan and in the ledger.
  *undo_order({ saga, records, operations, books, definitions }) {
    const done = new Map() // step -> [place of its first intent, of its completion]
    const begun = new Map() // step -> the place where its undoing began
    const refused = new Map() // step -> the place where it was left to a person; steps beside it go on meanwhile
    for (const record of records) {
      if (record.type === 'compensation.intent' && !begun.has(record.step)) begun.set(record.step, record.place)
      if (record.type === 'compensation.failed' && !refused.has(record.step)) refused.set(record.step, record.place)
      // A step begins when its operation is durable. Steps side by side are undone in the reverse order of that.
      if (/^step.(pending|intent)$/.test(record.type) && !done.has(record.step))
        done.set(record.step, [record.place, Infinity])
      if (record.type === 'step.completed' && done.has(record.step)) done.get(record.step)[1] = record.place
    }
    const effects = new Map() // step -> the place of its undoing in the ledger
    for (const operation of operations.values()) {
      const effect = operation.direction === 'undo' && books.effect(operation.key)
      if (effect) effects.set(operation.step, effect.n)
    }
    const concurrency = definitions.sagas.get(`${saga.name}@${saga.version}`)?.compensation?.concurrency ?? 1
    for (const { data } of records.filter((record) => record.type === 'compensation.planned')) {
      for (const [i, first] of data.plan.entries()) {
        for (const second of data.plan.slice(i + 1)) {
          const [a, b] = [done.get(first), done.get(second)]
          if (a && b && a[1] < b[0]) yield `${first} is to be undone before ${second}, which began after it was done`
          const mayWait = concurrency > 1 || refused.get(first) < begun.get(second)
          if ((!mayWait || waitsFor(definitions, saga, first, second)) && effects.get(first) > effects.get(second)) {
            yield `${second} was undone before ${first}`
          }
        }
      }
    }
  },

  // 4. No forward effect after its own compensation.
  *no_effect_after_undo({ operations, books }) {
    const undone = new Map()
    for (const operation of operations.values()) {
      if (operation.direction === 'undo')
        for (const line of books.requests(operation.key)) if (line.effect === 1) undone.set(operation.step, line.n)
    }
    for (const operation of operations.values()) {
      if (operation.direction === 'undo') continue
      for (const line of books.requests(operation.key)) {
        const undoneAt = undone.get(operation.step)
        if (line.effect === 1 && line.n > undoneAt)
          yield `${operation.step} took effect (line ${line.n}) after it was undone (line ${undoneAt})`
      }
    }
  },

  // 5. Nothing after the end.
  *nothing_after_the_end({ saga, records, operations, books }) {
    const ends = records.filter((record) => finals.some((status) => record.type === `saga.${status}`))
    if (ends.length > 1) yield `it ends ${ends.length} times`
    if (ends.length === 0) return
    if (ends[0] !== records.at(-1)) yield `${records.at(-1).type} after ${ends[0].type}`
    for (const operation of operations.values()) {
      for (const line of books.requests(operation.key)) {
        if (line.effect === 1 && line.t_in > msOf(ends[0]) + onTheWayMs)
          yield `an effect of ${operation.step} ${Math.round(line.t_in - msOf(ends[0]))} ms after the end`
      }
    }
    if (saga.status !== ends[0].type.slice(5) || !saga.ended)
      yield `the log ends with ${ends[0].type}, the row says ${saga.status}`
  },

  // 6, 14. It ends, or exactly one question about it is open.
  *it_ends({ saga, escalations, records, settled }) {
    const open = escalations.filter((one) => one.open)
    const ended = finals.includes(saga.status)
    if (ended !== saga.ended) yield `status ${saga.status}, and ended_at is ${saga.ended ? 'set' : 'not set'}`
    if (ended && open.length > 0) yield `it has ended, and an escalation is open: ${JSON.stringify(open)}`
    if (settled && !ended && open.length === 0) yield `it is stranded as ${saga.status}, after ${records.at(-1)?.type}`
    if (saga.status === 'escalated' && open.length === 0) yield 'escalated, and no escalation is open'
    const places = new Set()
    for (const one of open) {
      if (places.has(one.step)) yield `two escalations are open about ${one.step || 'the saga'}`
      places.add(one.step)
    }
  },

  // 14. Each question is answered once each time it is asked. Asked again under its number it is about the same step.
  // The table says what the log says.
  *escalations_exact({ records, escalations }) {
    const asked = new Map()
    for (const record of records) {
      const number = record.data.escalation
      if (record.type === 'escalation.opened') {
        if (asked.get(number)?.open) yield `the escalation ${number} is opened twice`
        else if (asked.has(number) && asked.get(number).step !== record.step)
          yield `the escalation ${number} is opened again about another step`
        for (const [other, state] of asked)
          if (state.open && state.step === record.step)
            yield `the escalations ${other} and ${number} are open at once about ${record.step}`
        asked.set(number, { open: true, step: record.step })
      } else if (record.type === 'escalation.resolved') {
        if (!asked.get(number)?.open) yield `the escalation ${number} is resolved and was not open`
        asked.set(number, { open: false, step: record.step })
      }
    }
    const over = records.some((record) => finals.some((status) => record.type === `saga.${status}`))
    for (const row of escalations) {
      const state = asked.get(row.number)
      if (!state) yield `the escalation ${row.number} is not in the log`
      else if (state.open !== row.open && !(over && !row.open))
        yield `the escalation ${row.number} is ${row.open ? 'open' : 'resolved'} and the log says otherwise`
      asked.delete(row.number)
    }
    for (const number of asked.keys()) yield `the escalation ${number} has no row`
  },

  // 8, 9. Dense numbers, epochs that never fall.
  *log_dense({ log }) {
    let next = 1
    let epoch = 0
    let commit = 0
    for (const turn of log.turns) {
      if (turn.seq !== next) yield `after ${next - 1} comes ${turn.seq}`
      if (turn.count !== turn.records.length)
        yield `the turn ${turn.seq} says ${turn.count} records and has ${turn.records.length}`
      if (turn.epoch < epoch) yield `the epoch falls from ${epoch} to ${turn.epoch} at ${turn.seq}`
      if (turn.commit < commit) yield `the turn ${turn.seq} was committed before the one it follows`
      next = turn.seq + turn.count
      epoch = turn.epoch
      commit = turn.commit
    }
    if (log.turns[0]?.records[0]?.type !== 'saga.started') yield 'it does not begin with its start'
  },

  // 11. What the log says of an operation is what happened, and what nobody could know was found out.
  *outcomes_true({ saga, operations, books, definitions, records }) {
    for (const operation of operations.values()) {
      const tool = toolOf(definitions, saga, operation)
      if (!tool || tool.effect === 'read') continue
      const effect = books.effect(operation.key)
      let unknown = false
      // The answer of a call may come after its engine has lost the shard, and then the shop has given it. Or its
      // engine says that the call never left, and then fewer requests came than were begun.
      const neverLeft = (record) =>
        record.data.unsent && books.requests(operation.key).length < operation.intents.length
      const told = (what, record) =>
        what === 'completed'
          ? effect
          : neverLeft(record) || books.requests(operation.key).some((line) => line.status >= 400 && line.status < 500)
      for (const record of operation.records) {
        const what = record.type.split('.')[1]
        if (what === 'completed' && operation.direction === 'do' && !effect)
          yield `${operation.step} is completed, and the shop knows of no effect`
        if (
          what === 'completed' &&
          operation.direction === 'do' &&
          effect &&
          record.data.result?.id &&
          record.data.result.id !== effect.id
        )
          yield `${operation.step} has the result ${record.data.result.id}, and the effect is ${effect.id}`
        if (what === 'failed' && operation.direction === 'do' && effect)
          yield `${operation.step} failed, and the shop has its effect ${effect.id}`
        if (what === 'intent') unknown = false
        if (what === 'unknown') unknown = true
        // The call certainly did not happen.
        if (what === 'retrying' && ['probe', 'operator'].includes(record.data.source)) unknown = false
        if (
          unknown &&
          (what === 'completed' || what === 'failed') &&
          !['probe', 'operator'].includes(record.data.source) &&
          !resolvedBefore(records, record) &&
          !told(what, record)
        )
          yield `${operation.step} was unknown and became ${what} without evidence`
      }
    }
  },

  // 12. Class once leaves once.
  *once_leaves_once({ saga, operations, books, definitions, records }) {
    for (const operation of operations.values()) {
      if (toolOf(definitions, saga, operation)?.effect !== 'once') continue
      const again = records.filter((record) => record.type === 'step.reopened' && record.step === operation.step).length
      // A call that was refused before a byte left may be tried again, and each such attempt says so.
      const unsent = operation.records.filter((record) => record.type === 'step.retrying' && record.data.unsent).length
      const surely = operation.records.filter(
        (record) => record.type === 'step.retrying' && !record.data.unsent && !record.data.maybe
      ).length
      const requests = books.requests(operation.key).length
      if (requests > 1 + again + surely) yield `${operation.step} is of class once and left ${requests} times`
      if (operation.intents.length > 1 + again + unsent + surely)
        yield `${operation.step} is of class once and has ${operation.intents.length} intents`
    }
  },

  // 13. Attempts are counted, none is before its time.
  *retries_honoured({ operations, clocksJump }) {
    for (const operation of operations.values()) {
      let due = 0
      let attempt = 0
      for (const record of operation.records) {
        if (/\.(retrying|unknown|probed)$/.test(record.type))
          due = record.data.due ? Date.parse(record.data.due) || Number(record.data.due) || 0 : 0
        if (/\.reopened$/.test(record.type)) due = 0
        if (!/\.intent$/.test(record.type)) continue
        if (record.attempt !== attempt + 1 && record.attempt !== 1)
          yield `${operation.step}: attempt ${record.attempt} follows ${attempt}`
        if (!clocksJump && due && record.turn.at < due - 1)
          yield `attempt ${record.attempt} of ${operation.step} is ${due - record.turn.at} ms early`
        attempt = record.attempt
        due = 0
      }
    }
  },

  // 18. What waits for a time is over once, and not early.
  *timers({ saga, records, definitions, clocksJump }) {
    const since = new Map()
    let paused = false
    for (const record of records) {
      if (record.type === 'saga.paused') paused = true // all times are put off then
      if (record.type === 'step.waiting') since.set(record.step, record)
      if (record.type !== 'step.completed' || !since.has(record.step)) continue
      const [begun, step] = [since.get(record.step), stepOf(definitions, saga, record.step)]
      if (begun.done) yield `${record.step} is over twice`
      begun.done = true
      const ms = /^(\d+)ms$/.exec(step?.sleep ?? '')?.[1]
      if (ms && !clocksJump && !paused && record.turn.at < begun.turn.at + Number(ms) - 1)
        yield `${record.step} was over after ${record.turn.at - begun.turn.at} of ${ms} ms`
    }
  },

  // A state that is already reached is not written again, however often it is asked for. A saga that a loop has closed
  // is resumed without a pause.
  *pauses_alternate({ records }) {
    let paused = false
    for (const record of records) {
      if (record.type === 'saga.paused') {
        if (paused) yield `it is paused at ${record.place + 1} while it is paused`
        paused = true
      }
      if (record.type === 'saga.resumed') {
        if (!paused && !records.some((one) => one.type === 'loop.tripped'))
          yield `it is resumed at ${record.place + 1} while nothing holds it up`
        paused = false
      }
      if (record.type === 'saga.failing' && record.data.error === 'abort') paused = false
    }
  },

  // 19. What a person did has an actor and a reason.
  *people_are_named({ records }) {
    for (const record of records) {
      const person =
        ['escalation.resolved', 'approval.decided', 'saga.paused', 'saga.resumed', 'signal.received'].includes(
          record.type
        ) ||
        (record.type === 'saga.failing' && record.data.error === 'abort')
      if (!person || (record.type === 'saga.paused' && record.data.reason !== 'operator')) continue
      if (!record.actor) yield `${record.type} at ${record.place + 1} has no actor`
      if (record.type !== 'signal.received' && !record.data.note)
        yield `${record.type} at ${record.place + 1} has no reason`
    }
  }
}

function resolvedBefore(records, record) {
  return records.some(
    (one) => one.type === 'escalation.resolved' && one.step === record.step && one.place <= record.place
  )
}
