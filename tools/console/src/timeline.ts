// What happened when, as bars on one axis of time: a row for each step that was done, and one for each that was undone.
// Everything is taken from the log: nothing is shown before it happened.
import { gotOf, isRepeat } from './repeats'
import type { LogEntry } from './types'

export type Lane = 'do' | 'undo'

export interface Bar {
  from: number
  to: number | null // null: still so
  state: string // of state.tsx
  what: string
}

export interface Mark {
  at: number
  state: string
  what: string
}

export interface Row {
  step: string
  lane: Lane
  bars: Bar[]
  marks: Mark[]
}

export interface Timeline {
  rows: Row[]
  saga: Pick<Row, 'bars' | 'marks'> // of the saga as a whole
  from: number
  to: number
}

type Becomes = { bar?: string; mark?: string; what: string }

// What a record means for the row of its step. No `bar`: nothing goes on any more.
const meanings: Record<string, Becomes> = {
  'step.pending': { bar: 'pending', what: 'waits to be sent' },
  'step.intent': { bar: 'running', what: 'attempt' },
  'step.called': { bar: 'running', what: 'called by an agent' },
  'step.repeated': { bar: 'running', what: 'called again by an agent' },
  'step.opened': { bar: 'running', what: 'its steps run' },
  'step.accepted': { bar: 'waiting', what: 'accepted; the receiver is not done' },
  'step.retrying': { bar: 'retrying', what: 'waits for the next attempt' },
  'step.unknown': { bar: 'unknown', mark: 'unknown', what: 'nobody knows whether it happened' },
  'step.waiting': { bar: 'waiting', what: 'waits' },
  'step.reopened': { bar: 'retrying', mark: 'retrying', what: 'tried again, as a person said' },
  'step.completed': { mark: 'completed', what: 'completed' },
  'step.failed': { mark: 'failed', what: 'failed for certain' },
  'step.failing': { bar: 'compensating', what: 'its steps are undone' },
  'step.skipped': { mark: 'skipped', what: 'skipped' },
  'step.waived': { mark: 'abandoned', what: 'left standing, as a person said' },
  'step.undone': { mark: 'compensated', what: 'undone by hand, as a person said' },
  'compensation.intent': { bar: 'compensating', what: 'attempt to undo' },
  'compensation.accepted': { bar: 'waiting', what: 'accepted; the receiver is not done' },
  'compensation.retrying': { bar: 'retrying', what: 'waits for the next attempt to undo' },
  'compensation.unknown': { bar: 'unknown', mark: 'unknown', what: 'nobody knows whether it is undone' },
  'compensation.reopened': { bar: 'retrying', mark: 'retrying', what: 'tried again, as a person said' },
  'compensation.completed': { mark: 'compensated', what: 'undone' },
  'compensation.failed': { mark: 'compensation_failed', what: 'could not be undone' }
}

// Records that leave what goes on as it is.
const passing: Record<string, { state: string; what: string }> = {
  'step.probed': { state: 'retrying', what: 'asked the receiver: no answer yet' },
  'compensation.probed': { state: 'retrying', what: 'asked the receiver: no answer yet' },
  'step.late': { state: 'unknown', what: 'an answer came late, and contradicts' },
  'compensation.late': { state: 'unknown', what: 'an answer came late, and contradicts' },
  'signal.received': { state: 'completed', what: 'signal' },
  'approval.decided': { state: 'escalated', what: 'a person decided' },
  'escalation.opened': { state: 'escalated', what: 'a person is asked' },
  'escalation.resolved': { state: 'resolved', what: 'a person has answered' },
  'operation.duplicate': { state: 'repeated', what: 'asked for again: began nothing' },
  'bypass.signed': { state: 'escalated', what: 'one more execution signed off' },
  'loop.tripped': { state: 'looped', what: 'calls go round in a loop' },
  'tool.mended': { state: 'retrying', what: 'goes on with another version of the tool' },
  'lock.wanted': { state: 'waiting', what: 'waits for locks' },
  'lock.taken': { state: 'completed', what: 'has its locks' },
  'saga.held': { state: 'held', what: 'held: a call waits for the release of a hold, and the clocks stand' },
  'saga.released': { state: 'released', what: 'released: no hold keeps it any more, and the clocks go on' },
  'saga.paused': { state: 'paused', what: 'paused' },
  'saga.resumed': { state: 'running', what: 'resumed' },
  'saga.failing': { state: 'failed', what: 'fails: what was done is undone' },
  'saga.completed': { state: 'completed', what: 'completed' },
  'saga.compensated': { state: 'compensated', what: 'undone' },
  'saga.abandoned': { state: 'abandoned', what: 'abandoned' }
}

// What the saga as a whole is, until one of the other records comes.
const stretches: Record<string, string> = { 'saga.paused': 'paused', 'saga.held': 'held' }
const endsStretch = new Set(['saga.paused', 'saga.resumed', 'saga.held', 'saga.released'])

// A call that was under way when its engine went away: whoever took the saga over says so.
const isTakeover = ({ data }: LogEntry) => data.error === 'interrupted'
const takeover = 'taken over: the engine that made this call is gone, and another one goes on'

function sentence(entry: LogEntry, what: string) {
  const { attempt, actor, data } = entry
  const number = attempt && /attempt/.test(what) && what.startsWith('attempt') ? ` ${attempt}` : ''
  const why = [
    isRepeat(entry) && `got ${gotOf(entry)}`,
    data.error,
    data.detail,
    data.reason,
    actor && `by ${actor}`,
    data.note
  ].filter((part): part is string => typeof part === 'string' && part !== '')
  return `${what}${number}${why.length > 0 ? `: ${why.join(' · ')}` : ''}`
}

export function buildTimeline(entries: LogEntry[], ended: boolean, now: number): Timeline {
  const rows = new Map<string, Row>()
  const saga: Timeline['saga'] = { bars: [], marks: [] }
  const rowOf = (step: string, lane: Lane) => {
    const name = `${lane} ${step}`
    let row = rows.get(name)
    if (!row) rows.set(name, (row = { step, lane, bars: [], marks: [] }))
    return row
  }
  for (const entry of entries) {
    const at = Date.parse(entry.at)
    const undoing = entry.type.startsWith('compensation.') || entry.data.direction === 'undo'
    const meaning = meanings[entry.type]
    const mark = passing[entry.type]
    if (endsStretch.has(entry.type)) {
      const last = saga.bars.at(-1)
      if (last && last.to === null) last.to = at
      const state = stretches[entry.type]
      if (state) saga.bars.push({ from: at, to: null, state, what: sentence(entry, state) })
    }
    if (meaning && entry.step) {
      const row = rowOf(entry.step, undoing ? 'undo' : 'do')
      const last = row.bars.at(-1)
      if (last && last.to === null) last.to = at
      if (meaning.bar) row.bars.push({ from: at, to: null, state: meaning.bar, what: sentence(entry, meaning.what) })
      if (isTakeover(entry)) row.marks.push({ at, state: 'taken_over', what: takeover })
      if (meaning.mark) row.marks.push({ at, state: meaning.mark, what: sentence(entry, meaning.what) })
    } else if (mark) {
      const shown = { at, state: mark.state, what: sentence(entry, mark.what) }
      const row = entry.step ? rows.get(`${undoing ? 'undo' : 'do'} ${entry.step}`) : undefined
      if (row && !entry.type.startsWith('saga.')) row.marks.push(shown)
      else saga.marks.push(shown)
    }
  }
  const from = entries.length > 0 ? Date.parse(entries[0].at) : now
  const last = entries.length > 0 ? Date.parse(entries.at(-1)!.at) : now
  if (ended) for (const bar of saga.bars) bar.to ??= last
  const all = [...rows.values()]
  return {
    rows: [...all.filter(({ lane }) => lane === 'do'), ...all.filter(({ lane }) => lane === 'undo')],
    saga,
    from,
    to: ended ? last : Math.max(last, now)
  }
}

// --- the axis ---

export interface Idle {
  from: number
  to: number
}

export interface Axis {
  place: (at: number) => number // 0 to 100
  idle: Idle[] // stretches that are drawn shorter than they are
  ticks: number[]
}

const idleLeastMs = 1000
const idleShare = 0.12 // of what is drawn
const idleMax = 6
const tickRoom = 12 // of 100

// Long stretches in which nothing happened are drawn short, so that what happened can be seen.
export function buildAxis({ rows, saga, from, to }: Timeline): Axis {
  const changes = new Set([from, to])
  for (const { bars, marks } of rows) {
    for (const bar of bars) changes.add(bar.from)
    for (const mark of marks) changes.add(mark.at)
  }
  for (const bar of saga.bars) changes.add(bar.from)
  for (const mark of saga.marks) changes.add(mark.at)
  const times = [...changes].filter((at) => at >= from && at <= to).sort((a, b) => a - b)
  const widths = times.slice(1).map((at, i) => at - times[i])
  const idle = new Set<number>()
  let total = widths.reduce((sum, width) => sum + width, 0)
  while (idle.size < idleMax && widths.length > 2) {
    let largest = -1
    for (let i = 0; i < widths.length; i++)
      if (!idle.has(i) && (largest < 0 || widths[i] > widths[largest])) largest = i
    if (largest < 0 || widths[largest] < idleLeastMs || widths[largest] < total * 0.4) break
    const rest = total - widths[largest]
    if (rest <= 0) break
    widths[largest] = rest * idleShare
    total = rest + widths[largest]
    idle.add(largest)
  }
  const places = [0]
  for (const width of widths) places.push(places.at(-1)! + (total > 0 ? (width / total) * 100 : 0))

  function place(at: number) {
    if (at <= from || times.length < 2) return 0
    if (at >= to) return 100
    let low = 0
    let high = times.length - 1
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (times[middle] <= at) low = middle
      else high = middle
    }
    const share = (at - times[low]) / (times[high] - times[low])
    return places[low] + share * (places[high] - places[low])
  }
  const ticks: number[] = []
  let lastPlace = -tickRoom
  times.forEach((at, i) => {
    if (places[i] - lastPlace >= tickRoom && places[i] <= 100 - tickRoom * 1.3) {
      ticks.push(at)
      lastPlace = places[i]
    }
  })
  return { place, ticks, idle: [...idle].map((i) => ({ from: times[i], to: times[i + 1] })) }
}
