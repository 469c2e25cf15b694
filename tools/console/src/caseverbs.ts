// What a person can answer to a case, in plain words. The engine says which of it is possible, and what it leads to.
import { command } from './ui'

export interface CaseVerb {
  action: string
  as?: string
  then?: string
}

interface Words extends CaseVerb {
  title: string
  does: string
  danger?: boolean
}

const all: Words[] = [
  { action: 'resolve', as: 'happened', title: 'It happened', does: 'The step counts as done, and the saga goes on.' },
  {
    action: 'resolve',
    as: 'not_happened',
    title: 'It did not happen',
    does: 'The step counts as failed, and the saga is undone.'
  },
  {
    action: 'resolve',
    as: 'not_happened',
    then: 'retry',
    title: 'It did not happen: try again',
    does: 'The step is called once more, under the same key.'
  },
  {
    action: 'resolve',
    as: 'undone',
    title: 'It happened, and was undone by hand',
    does: 'The step counts as undone, and the rest of the saga is undone.'
  },
  { action: 'retry', title: 'Try again', does: 'One more round of attempts under the same key.' },
  { action: 'probe', title: 'Ask the receiver again', does: 'One more probe, now.' },
  { action: 'skip', title: 'Skip the step', does: 'The step has no effect, and the saga goes on without it.' },
  {
    action: 'waive',
    title: 'Leave it standing',
    does: 'This effect stands as a debt. The rest is undone, and the saga ends abandoned.',
    danger: true
  },
  {
    action: 'compensate',
    title: 'Undo what is certain',
    does: 'What is certain is undone now. The verdict on the rest is asked for again.'
  },
  {
    action: 'abandon',
    title: 'Give up',
    does: 'The saga ends at once. Every effect that stands, or may stand, is listed as a debt.',
    danger: true
  }
]

export const caseVerbs = all

export function wordsOf({ action, as, then }: CaseVerb): Words {
  const found = all.find((verb) => verb.action === action && verb.as === as && verb.then === then)
  return found ?? { action, as, then, title: [action, as, then].filter(Boolean).join(' '), does: '' }
}

// The order in which the answers stand: what is true comes before what may be done.
export const placeOf = (verb: CaseVerb) => all.indexOf(wordsOf(verb))

// As `sagactl resolve` takes it, behind the number of a case or filters.
export const verbFlags = ({ action, as, then }: CaseVerb) =>
  action === 'resolve' ? ['--as', as ?? '', ...(then ? ['--then', then] : [])] : [action]

export const resolveCommand = (n: number, verb: CaseVerb, note: string, more: string[] = []) =>
  command('sagactl', 'resolve', String(n), ...verbFlags(verb), ...more, '--note', note)
