// Times in the reader's zone, with UTC at hand; ages that stay true while the page stands open.
import { useEffect, useState } from 'preact/hooks'
import { useSettings } from './settings'

const two = (n: number) => String(n).padStart(2, '0')

export function clock(at: Date, zone: 'local' | 'utc', millis = false) {
  const utc = zone === 'utc'
  const [year, month, day] = utc
    ? [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
    : [at.getFullYear(), at.getMonth(), at.getDate()]
  const [hours, minutes, seconds] = utc
    ? [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    : [at.getHours(), at.getMinutes(), at.getSeconds()]
  const fraction = millis ? `.${String(at.getUTCMilliseconds()).padStart(3, '0')}` : ''
  return {
    day: `${year}-${two(month + 1)}-${two(day)}`,
    time: `${two(hours)}:${two(minutes)}:${two(seconds)}${fraction}`
  }
}

// Behind what somebody said: `· 3 min ago`.
export const SaidAt = ({ at }: { at: string | null | undefined }) => (
  <span class="said-at nowrap">
    <Age at={at} />
  </span>
)

export function span(ms: number) {
  const size = Math.abs(ms)
  if (size < 1000) return `${Math.round(size)} ms`
  if (size < 60_000) return `${(size / 1000).toFixed(size < 10_000 ? 1 : 0)} s`
  if (size < 3_600_000) return `${Math.floor(size / 60_000)} min`
  if (size < 172_800_000) return `${Math.floor(size / 3_600_000)} h`
  return `${Math.floor(size / 86_400_000)} d`
}

// One timer for all ages on the page: a list has thousands of them.
const everyMs = 5000
const hearers = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function onTick(hear: () => void) {
  hearers.add(hear)
  timer ??= setInterval(() => hearers.forEach((tell) => tell()), everyMs)
  return () => {
    hearers.delete(hear)
    if (hearers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export function useNow(every: number) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [every])
  return now
}

// `2026-11-25 10:03:12`, or only the time where it is of today.
export function At({ at, millis }: { at: string | null | undefined; millis?: boolean }) {
  const { zone } = useSettings()
  if (!at) return <span class="muted">–</span>
  const date = new Date(at)
  const shown = clock(date, zone, millis)
  const today = clock(new Date(), zone).day === shown.day
  return (
    <time dateTime={at} title={`${at} (UTC)`}>
      {!today && <span class="day">{shown.day} </span>}
      {shown.time}
      {zone === 'utc' && ' UTC'}
    </time>
  )
}

// An age counts whole seconds; a fraction of one would only flicker.
function age(ms: number) {
  const size = Math.abs(ms)
  return size < 60_000 ? `${Math.round(size / 1000)} s` : span(size)
}

function ageOf(at: string | null | undefined) {
  if (!at) return ''
  const ms = Date.now() - Date.parse(at)
  return ms < 0 ? `in ${age(ms)}` : ms < 1000 ? 'just now' : `${age(ms)} ago`
}

export function Age({ at }: { at: string | null | undefined }) {
  // Drawn again only where the words are others.
  const [, setText] = useState(() => ageOf(at))
  useEffect(() => onTick(() => setText(ageOf(at))), [at])
  const { zone } = useSettings()
  if (!at) return <span class="muted">–</span>
  const shown = clock(new Date(at), zone)
  return (
    <time dateTime={at} title={`${shown.day} ${shown.time}${zone === 'utc' ? ' UTC' : ''} · ${at} (UTC)`}>
      {ageOf(at)}
    </time>
  )
}
