// What a person can do to one saga.
import { useState } from 'preact/hooks'
import { parse } from '../api'
import { useLive } from '../live'
import { go } from '../route'
import type { Me, Preview, Role, Saga } from '../types'
import { Act, Loading, Trouble, command, whyNot } from '../ui'
import { Ends, VerbDialog } from '../verb'

type Verb = 'pause' | 'resume' | 'abort' | 'escalate' | 'signal' | 'rerun'

const words: Record<Verb, { title: string; does: string; least: Role }> = {
  pause: {
    title: 'Pause',
    does: 'Nothing of this saga begins until it is resumed, and its clocks stand still. What is under way is settled.',
    least: 'operator'
  },
  resume: { title: 'Resume', does: 'The saga goes on where it stands.', least: 'operator' },
  abort: { title: 'Abort', does: 'Forward work ends, and what was done is undone.', least: 'agent' },
  escalate: {
    title: 'Ask a person',
    does: 'Opens a case about what this saga waits for. It goes on as it would, until somebody answers.',
    least: 'operator'
  },
  signal: { title: 'Signal', does: 'Gives the saga what one of its steps waits for.', least: 'agent' },
  rerun: { title: 'Run again', does: 'Starts the same once more, as a saga of its own.', least: 'operator' }
}

function whyNotNow(verb: Verb, saga: Saga) {
  const ended = saga.ended_at !== null
  if (verb === 'rerun') return ended ? null : 'it has not ended yet'
  if (ended) return 'the saga has ended'
  if (verb === 'pause' && saga.paused) return 'it is paused already'
  if (verb === 'resume' && !saga.paused) return 'it is not paused'
  return null
}

function AbortLeadsTo({ saga }: { saga: Saga }) {
  const preview = useLive<Preview>(`v1/sagas/${saga.id}/preview`, 30_000)
  const abort = preview.data?.verbs.find(({ verb }) => verb === 'abort')
  if (preview.problem) return <Trouble problem={preview.problem} />
  if (!preview.data) return <Loading what="what this would lead to" />
  if (!abort) return null
  return (
    <section class="leads-to">
      <h3>What this leads to</h3>
      {abort.allowed ? <Ends ends={abort.ends} /> : <p class="wrong">Refused: {abort.because}</p>}
      <p class="muted">Assumed: {preview.data.assumes}.</p>
    </section>
  )
}

export function SagaVerbs({ saga, me, onDone }: { saga: Saga; me: Me; onDone: () => void }) {
  const [asked, setAsked] = useState<Verb | null>(null)
  const [name, setName] = useState('')
  const [payload, setPayload] = useState('null')
  const waited = saga.steps.find((step) => step.waits_for?.kind === 'signal')?.waits_for?.signal

  function ask(verb: Verb) {
    if (verb === 'signal') {
      setName(typeof waited === 'string' ? waited : '')
      setPayload('null')
    }
    setAsked(verb)
  }
  const path = (verb: Verb) =>
    verb === 'signal' ? `v1/sagas/${saga.id}/signals/${encodeURIComponent(name)}` : `v1/sagas/${saga.id}/${verb}`
  function signalBody() {
    if (!name) return 'a signal has a name'
    try {
      parse(payload)
      return payload // as it was typed: byte for byte
    } catch {
      return 'the payload is no JSON'
    }
  }
  const shown = (Object.keys(words) as Verb[]).filter(
    (verb) => verb !== (saga.paused ? 'pause' : 'resume') && (verb === 'rerun') === (saga.ended_at !== null)
  )
  const refused = shown.filter((verb) => whyNot(me, words[verb].least))
  return (
    <>
      <div class="actions">
        {shown.map((verb) => (
          <Act
            key={verb}
            kind={verb === 'abort' ? 'danger' : undefined}
            why={whyNot(me, words[verb].least) ?? whyNotNow(verb, saga)}
            briefly
            onClick={() => ask(verb)}
          >
            {words[verb].title}
          </Act>
        ))}
        {refused.length > 0 && (
          <span class="why">
            You are signed in as {me.role}:{' '}
            {refused.map((verb) => `${words[verb].title} needs ${words[verb].least}`).join(', ')}.
          </span>
        )}
      </div>
      {asked && asked !== 'signal' && (
        <VerbDialog
          title={`${words[asked].title}: ${saga.business_id ?? saga.id}`}
          does={words[asked].does}
          path={path(asked)}
          body={(note) => ({ note })}
          asCommand={(note) => command('sagactl', asked, saga.id, '--note', note)}
          danger={asked === 'abort'}
          button={words[asked].title}
          onClose={() => setAsked(null)}
          onDone={(answer) => {
            if (asked === 'rerun') go(['saga', (answer as Saga).id])
            else onDone()
          }}
        >
          {asked === 'abort' && <AbortLeadsTo saga={saga} />}
        </VerbDialog>
      )}
      {asked === 'signal' && (
        <VerbDialog
          title={`Signal: ${saga.business_id ?? saga.id}`}
          does={words.signal.does}
          path={path('signal')}
          body={() => {
            const made = signalBody()
            return made === payload ? (parse(payload) as Record<string, unknown>) : made
          }}
          raw={payload}
          asCommand={() => command('sagactl', 'signal', saga.id, name || 'NAME', '--payload', payload)}
          note="none"
          button="Send the signal"
          onClose={() => setAsked(null)}
          onDone={onDone}
        >
          <label>
            Name
            <input value={name} required onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <label>
            Payload, JSON
            <textarea
              class="json-text"
              rows={4}
              value={payload}
              onInput={(event) => setPayload(event.currentTarget.value)}
            />
          </label>
        </VerbDialog>
      )}
    </>
  )
}
