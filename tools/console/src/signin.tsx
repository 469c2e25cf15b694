// A token is shown once, and exchanged for a session: it is kept nowhere in this browser.
import { useState } from 'preact/hooks'
import { Problem, change } from './api'
import type { Me } from './types'
import { Command, Trouble } from './ui'

export function SignIn({ why, onDone }: { why: string; onDone: (me: Me) => void }) {
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)

  async function signIn(event: SubmitEvent) {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const field = form.elements.namedItem('token') as HTMLInputElement
    setBusy(true)
    try {
      const me = await change<Me>('POST', 'console/session', { token: field.value.trim() })
      field.value = ''
      onDone(me)
    } catch (error) {
      setProblem(error as Problem)
      field.select()
    }
    setBusy(false)
  }

  return (
    <main class="alone">
      <h1>
        <img src="icon.svg" alt="" width="28" height="28" /> sagad
      </h1>
      {why && !problem && (
        <p class="note" role="status">
          {why}
        </p>
      )}
      <form onSubmit={(event) => void signIn(event as unknown as SubmitEvent)}>
        <label for="token">Your token</label>
        <input id="token" name="token" type="password" autoComplete="off" required autoFocus spellcheck={false} />
        <button type="submit" class="main" disabled={busy}>
          {busy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
      <Trouble problem={problem} />
      <p class="muted">On a terminal where sagactl has a token, this prints a link that signs you in:</p>
      <Command text="sagactl console" />
    </main>
  )
}
