// The log of a saga, as it is: an entry a line, its data beside it when it is chosen.
import { useCallback, useMemo } from 'preact/hooks'
import { Filters, type Filter } from '../filters'
import { entriesMax, type Log } from '../log'
import { href, replace } from '../route'
import { useSettings } from '../settings'
import { clock } from '../time'
import type { LogEntry, Saga } from '../types'
import { Fact, Facts, Json, Loading, Trouble, count } from '../ui'
import { Window } from '../window'

const filters: Filter[] = [
  { name: 'type', label: 'Type contains', hint: 'unknown' },
  { name: 'step', label: 'Step', hint: 'charge' },
  { name: 'text', label: 'Anything contains', hint: 'timeout' }
]

function fits(entry: LogEntry, { type, step, text }: Record<string, string>) {
  return (
    (!type || entry.type.includes(type)) &&
    (!step || entry.step === step) &&
    (!text || JSON.stringify(entry).toLowerCase().includes(text.toLowerCase()))
  )
}

function summary({ actor, data }: LogEntry) {
  const parts = [
    actor && `by ${actor}`,
    ...['error', 'detail', 'reason', 'action', 'as', 'note', 'signal'].map((name) => data[name])
  ]
  return parts.filter((part): part is string => typeof part === 'string').join(' · ')
}

export function LogView({ saga, log, query }: { saga: Saga; log: Log; query: Record<string, string> }) {
  const { zone } = useSettings()
  const path = ['saga', saga.id, 'log']
  const { seq, ...filter } = query
  const entries = useMemo(
    () => log.entries.filter((entry) => fits(entry, filter)),
    [log.entries, JSON.stringify(filter)]
  )
  const chosen = seq ? log.entries.find((entry) => String(entry.seq) === seq) : undefined

  const shown = useCallback(
    (i: number) => {
      const entry = entries[i]
      const isChosen = entry === chosen
      return (
        <a
          key={entry.seq}
          data-row={entry.seq}
          class="entry"
          href={href(path, { ...filter, seq: String(entry.seq) })}
          aria-current={isChosen ? 'true' : undefined}
          onClick={(event) => {
            event.preventDefault()
            replace(path, { ...filter, seq: isChosen ? undefined : String(entry.seq) })
          }}
        >
          <span class="seq">{entry.seq}</span>
          <span class="when">{clock(new Date(entry.at), zone, true).time}</span>
          <span class="type">{entry.type}</span>
          <span class="step">{entry.step}</span>
          <span class="what muted">{summary(entry)}</span>
        </a>
      )
    },
    [entries, chosen, zone, query]
  )
  return (
    <>
      <Filters path={path} query={filter} filters={filters} />
      <Trouble problem={log.problem} />
      {!log.whole && !log.problem && !log.cut && <Loading what="the log" />}
      <p class="muted" role="status">
        {count(entries.length, 'entry', 'entries')}
        {entries.length !== log.entries.length && ` of ${log.entries.length.toLocaleString('en')}`}
        {log.cut && `; the page reads no more than ${entriesMax.toLocaleString('en')}: sagactl log ${saga.id} has all`}
      </p>
      <div class="log">
        <Window label="Log" count={entries.length} rowHeight={28} at={chosen && entries.indexOf(chosen)} row={shown} />
        {chosen && (
          <section class="chosen" aria-label={`Entry ${chosen.seq}`}>
            <h3>
              {chosen.seq} {chosen.type}
            </h3>
            <Facts>
              <Fact name="At">
                {clock(new Date(chosen.at), zone, true).day} {clock(new Date(chosen.at), zone, true).time}{' '}
                <span class="muted">({chosen.at})</span>
              </Fact>
              {chosen.step && <Fact name="Step">{chosen.step}</Fact>}
              {chosen.attempt !== undefined && <Fact name="Attempt">{chosen.attempt}</Fact>}
              {chosen.actor && <Fact name="By">{chosen.actor}</Fact>}
              {chosen.key && (
                <Fact name="Key">
                  <code>{chosen.key}</code>
                </Fact>
              )}
            </Facts>
            <Json value={chosen.data} label="Data" />
          </section>
        )}
      </div>
    </>
  )
}
