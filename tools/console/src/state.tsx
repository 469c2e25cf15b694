// States of sagas, steps and cases. Each has a word, a shape and a colour: any one of the three is enough to tell it.
const shapes: Record<string, string> = {
  play: 'M3 2l8 4-8 4z',
  clock: 'M6 1a5 5 0 100 10A5 5 0 006 1zm0 1.5V6l2.4 1.4',
  bars: 'M3 2h2v8H3zM7 2h2v8H7z',
  back: 'M5 2L2 5l3 3M2 5h5a2.5 2.5 0 010 5H5',
  person: 'M6 1.2a2.2 2.2 0 110 4.4 2.2 2.2 0 010-4.4zM1.8 11c.3-2.6 2-4 4.2-4s3.9 1.4 4.2 4z',
  check: 'M1.8 6.4l2.8 2.8 5.6-6',
  cross: 'M2.5 2.5l7 7m0-7l-7 7',
  ring: 'M6 2a4 4 0 100 8 4 4 0 000-8z',
  question: 'M4 4.2C4 1.6 8 1.6 8 4.2 8 5.8 6 5.8 6 7.6M6 9.6v.6',
  again: 'M10 4.5A4.3 4.3 0 102 7.8M10 1.5v3H7',
  dash: 'M2.5 6h7',
  bang: 'M6 1.5v6M6 9.7v.6',
  swap: 'M1 4h8M7 2l2 2-2 2M11 8H3M5 6L3 8l2 2',
  hand: 'M6 1l5 5-5 5-5-5z'
}

type Look = { shape: keyof typeof shapes; tone: string; filled?: boolean; word?: string }

const looks: Record<string, Look> = {
  // of sagas
  running: { shape: 'play', tone: 'busy', filled: true },
  waiting: { shape: 'clock', tone: 'calm' },
  paused: { shape: 'bars', tone: 'warn', filled: true },
  compensating: { shape: 'back', tone: 'undo', word: 'undoing' },
  escalated: { shape: 'person', tone: 'bad', filled: true, word: 'needs a person' },
  completed: { shape: 'check', tone: 'good' },
  compensated: { shape: 'back', tone: 'undo', word: 'undone' },
  abandoned: { shape: 'cross', tone: 'bad' },
  // of steps
  pending: { shape: 'ring', tone: 'calm', word: 'not begun' },
  retrying: { shape: 'again', tone: 'warn' },
  skipped: { shape: 'dash', tone: 'calm' },
  failed: { shape: 'cross', tone: 'bad' },
  unknown: { shape: 'question', tone: 'warn', word: 'outcome unknown' },
  compensation_failed: { shape: 'bang', tone: 'bad', word: 'could not be undone' },
  // of cases, approvals, jobs, holds, operations
  open: { shape: 'person', tone: 'bad', filled: true },
  resolved: { shape: 'check', tone: 'good' },
  approved: { shape: 'check', tone: 'good' },
  refused: { shape: 'cross', tone: 'bad' },
  expired: { shape: 'clock', tone: 'calm' },
  cancelled: { shape: 'dash', tone: 'calm' },
  frozen: { shape: 'bars', tone: 'calm', word: 'waits to be run' },
  done: { shape: 'check', tone: 'good' },
  changed: { shape: 'dash', tone: 'warn', word: 'left alone' },
  stopped: { shape: 'bars', tone: 'warn' },
  in_flight: { shape: 'play', tone: 'busy', filled: true, word: 'in flight' },
  held: { shape: 'hand', tone: 'warn', filled: true },
  released: { shape: 'play', tone: 'good' },
  taken_over: { shape: 'swap', tone: 'warn', word: 'taken over by another engine' },
  repeated: { shape: 'dash', tone: 'calm', word: 'a repeat, which began nothing' },
  looped: { shape: 'bars', tone: 'warn', word: 'a loop was stopped' },
  // of engines
  alive: { shape: 'check', tone: 'good' },
  // of breakers
  closed: { shape: 'check', tone: 'good' },
  half_open: { shape: 'again', tone: 'warn', word: 'trying again' }
}

export const wordOf = (state: string) => looks[state]?.word ?? state.replaceAll('_', ' ')

export const toneOf = (state: string) => looks[state]?.tone ?? 'calm'

// `at`: its place within another picture.
export function Shape({ state, at = [0, 0] }: { state: string; at?: [x: number, y: number] }) {
  const look = looks[state] ?? { shape: 'ring', tone: 'calm' }
  const [x, y] = at
  return (
    <svg
      class={`shape ${look.tone}${look.filled ? ' filled' : ''}`}
      viewBox="0 0 12 12"
      x={x}
      y={y}
      width="14"
      height="14"
      aria-hidden="true"
    >
      <path d={shapes[look.shape]} />
    </svg>
  )
}

export function State({ state, word }: { state: string; word?: string }) {
  return (
    <span class={`state ${looks[state]?.tone ?? 'calm'}`} data-state={state}>
      <Shape state={state} />
      {word ?? wordOf(state)}
    </span>
  )
}
