// What the repeats of a call got, from the log of its run: each began nothing.
import { useLog } from './log'
import { At } from './time'
import type { LogEntry } from './types'
import { Loading, Trouble, count } from './ui'

const gots: Record<string, string> = {
  replayed: 'the stored answer',
  waited: 'the answer of the call under way',
  refused: 'a refusal',
  escalated: 'a person was asked',
  failed: 'the stored failure',
  unknown: 'that the outcome is unknown',
  'awaiting-operator': 'that a person is asked',
  drift: 'the stored answer, with other arguments',
  'drift-refused': 'a refusal: other arguments',
  expired: 'a refusal: the answer is kept no more',
  loop: 'a refusal: the calls go round in a loop'
}

export const isRepeat = ({ type }: LogEntry) => type === 'operation.duplicate'

export const gotOf = ({ data }: LogEntry) =>
  typeof data.decision === 'string' ? (gots[data.decision] ?? data.decision.replaceAll('-', ' ')) : ''

const pointersOf = ({ data }: LogEntry) => (Array.isArray(data.pointers) ? data.pointers.map(String) : [])

// Of a whole run: "3 repeats: 2 got the stored answer, 1 got a refusal".
export function RepeatsOfRun({ saga, version }: { saga: string; version: string }) {
  const { entries } = useLog(saga, version)
  const repeats = entries.filter(isRepeat)
  if (repeats.length === 0) return null
  const counts = new Map<string, number>()
  for (const one of repeats) counts.set(gotOf(one), (counts.get(gotOf(one)) ?? 0) + 1)
  return (
    <>
      {' · '}
      {count(repeats.length, 'repeat')}:{' '}
      {[...counts].map(([got, n]) => `${n.toLocaleString('en')} got ${got}`).join(', ')}
    </>
  )
}

// Of one call: each with its time, who asked, and what came of it.
export function Repeats({ saga, operation, seen }: { saga: string; operation: string; seen: number }) {
  const log = useLog(saga, String(seen))
  const repeats = log.entries.filter((entry) => isRepeat(entry) && entry.key === operation)
  return (
    <section aria-label="Repeats">
      <h2>Repeats, and what each got</h2>
      <Trouble problem={log.problem} />
      {!log.whole && !log.problem && repeats.length === 0 && <Loading what="the log" />}
      <ul>
        {repeats.map((entry) => (
          <li key={entry.seq}>
            <At at={entry.at} millis /> {entry.actor && <strong>{entry.actor}</strong>} got {gotOf(entry)}
            {pointersOf(entry).length > 0 && (
              <>
                ; they differ at <code>{pointersOf(entry).join(', ')}</code>
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
