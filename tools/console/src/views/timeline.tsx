// The timeline: the steps that were done above, what was undone below, on one axis of time.
import { useCallback, useMemo } from 'preact/hooks'
import { go } from '../route'
import { useSettings } from '../settings'
import { Shape, State, wordOf } from '../state'
import { clock, span, useNow } from '../time'
import { buildAxis, buildTimeline, type Axis, type Bar, type Mark, type Row } from '../timeline'
import type { LogEntry, Saga } from '../types'
import { Window } from '../window'

const rowHeight = 28
const windowFrom = 60 // rows

const percent = (value: number) => `${value.toFixed(3)}%`

function lasted(bar: Bar, to: number) {
  return `${wordOf(bar.state)} for ${span((bar.to ?? to) - bar.from)}${bar.to === null ? ', still so' : ''}`
}

function Track({ row, axis, from, to }: { row: Row; axis: Axis; from: number; to: number }) {
  return (
    <span class="track">
      {row.bars.map((bar, i) => {
        const left = axis.place(bar.from)
        return (
          <span
            key={i}
            class={`bar ${bar.state}`}
            style={{ left: percent(left), width: percent(axis.place(bar.to ?? to) - left) }}
            title={`${bar.what} · ${lasted(bar, to)}, from +${span(bar.from - from)}`}
          />
        )
      })}
      {row.marks.map((mark, i) => (
        <span
          key={i}
          class="mark"
          style={{ left: percent(axis.place(mark.at)) }}
          title={`${mark.what} · at +${span(mark.at - from)}`}
        >
          <Shape state={mark.state} />
        </span>
      ))}
    </span>
  )
}

// All that a row shows, as a sentence.
function told(row: Row, from: number, to: number) {
  const parts = [
    ...row.bars.map((bar) => ({ at: bar.from, text: `${bar.what}, ${lasted(bar, to)}` })),
    ...row.marks.map(({ at, what }) => ({ at, text: what }))
  ]
  parts.sort((a, b) => a.at - b.at)
  return parts.map(({ at, text }) => `+${span(at - from)} ${text}`).join('; ')
}

function Ruler({ axis, from, to }: { axis: Axis; from: number; to: number }) {
  const { zone } = useSettings()
  return (
    <div class="ruler" aria-hidden="true">
      <span class="step">{clock(new Date(from), zone).time}</span>
      <span class="track">
        {axis.ticks.map((at) => (
          <span key={at} class="tick" style={{ left: percent(axis.place(at)) }}>
            +{span(at - from)}
          </span>
        ))}
        <span class="tick last">+{span(to - from)}</span>
      </span>
    </div>
  )
}

export function Timeline({ saga, entries }: { saga: Saga; entries: LogEntry[] }) {
  const ended = saga.ended_at !== null
  const now = useNow(ended ? 3_600_000 : 2000)
  const timeline = useMemo(() => buildTimeline(entries, ended, now), [entries, ended, ended ? 0 : now])
  const axis = useMemo(() => buildAxis(timeline), [timeline])
  const { rows, from, to } = timeline
  const undone = rows.findIndex(({ lane }) => lane === 'undo')
  const shown = useCallback(
    (i: number) => {
      const row = rows[i]
      return (
        <div key={`${row.lane} ${row.step}`} role="listitem" class={`row ${row.lane}${i === undone ? ' first' : ''}`}>
          <button
            type="button"
            class="quiet step"
            title={row.step}
            onClick={() => go(['saga', saga.id], { step: row.step })}
            aria-label={`${row.lane === 'undo' ? 'undoing ' : ''}${row.step}: ${told(row, from, to)}`}
          >
            {row.lane === 'undo' && <Shape state="compensating" />}
            {row.step}
          </button>
          <Track row={row} axis={axis} from={from} to={to} />
        </div>
      )
    },
    [timeline, axis, saga.id]
  )
  if (rows.length === 0 && timeline.saga.marks.length === 0) return null

  const whole: Row = { step: 'saga', lane: 'do', ...timeline.saga }
  const marks = new Set([whole, ...rows].flatMap((row) => row.marks.map(({ state }) => state)))
  return (
    <div class="timeline" data-testid="timeline">
      <Ruler axis={axis} from={from} to={to} />
      <div class={`rows${axis.idle.length > 0 ? ' collapsed' : ''}`}>
        <div class="idles" aria-hidden="true">
          <span class="step" />
          <span class="track">
            {axis.idle.map((idle) => (
              <span
                key={idle.from}
                class="idle"
                style={{
                  left: percent(axis.place(idle.from)),
                  width: percent(axis.place(idle.to) - axis.place(idle.from))
                }}
              >
                <span>{span(idle.to - idle.from)}</span>
              </span>
            ))}
          </span>
        </div>
        {timeline.saga.marks.length > 0 && (
          <div class="row whole">
            <span class="step">saga</span>
            <Track row={whole} axis={axis} from={from} to={to} />
            <ul class="heard">
              {timeline.saga.marks.map((mark: Mark, i) => (
                <li key={i}>
                  +{span(mark.at - from)} {mark.what}
                </li>
              ))}
            </ul>
          </div>
        )}
        {rows.length > windowFrom ? (
          <Window label="Timeline" isList count={rows.length} rowHeight={rowHeight} row={shown} />
        ) : (
          <div role="list" aria-label="Timeline">
            {rows.map((_, i) => shown(i))}
          </div>
        )}
      </div>
      <p class="legend" data-testid="marks">
        {[...marks].map((state) => (
          <State key={state} state={state} />
        ))}
      </p>
      <p class="legend muted">
        Times count from the start.
        {undone >= 0 && (
          <>
            {' '}
            Above, what was done; below, with <Shape state="compensating" />, what was undone.
          </>
        )}
        {axis.idle.length > 0 && ' Stretches in which nothing happened are drawn short, and say how long they were.'}
      </p>
    </div>
  )
}
