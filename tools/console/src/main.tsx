// The frame: who you are, where you are, whether sagad answers, and the keys that work everywhere.
import { render } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import './design.css'
import { Problem, change, read } from './api'
import { stop as stopFeed } from './feed'
import { beginSession, setOnSignedOut, useLostSince } from './live'
import { go, href, replace, setNamespacesOfToken, useRoute } from './route'
import { ChooseNamespaces, OneOf, hasChoice, told } from './namespaces'
import { set, useSettings } from './settings'
import { SignIn } from './signin'
import { At } from './time'
import type { Me } from './types'
import { Dialog, Loading, Trouble } from './ui'
import { OtherVersion } from './version'
import { views } from './views'

const keys: [string, string][] = [
  ['/', 'search: puts the cursor into the first filter, or looks for a saga'],
  ['j', 'the next row'],
  ['k', 'the row before'],
  ['Enter', 'opens the row'],
  ['x', 'picks the row for a verb'],
  ['g', `and then a letter: ${views.map(({ key, title }) => `${key} ${title.toLowerCase()}`).join(', ')}`],
  ['?', 'this list'],
  ['Esc', 'closes a dialog, leaves a field']
]

function Keys({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.matches('input, textarea, select') || target.isContentEditable)

const searchField = () => document.querySelector<HTMLElement>('[data-search]')

function moveRow(by: number) {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  if (rows.length === 0) return
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))]
  ;(next.matches('a') ? next : next.querySelector<HTMLElement>('a'))?.focus()
}

function pickRow() {
  const row = document.activeElement?.closest('[data-row]')
  row?.querySelector<HTMLElement>('[data-pick]')?.click()
}

// Returns where a view with another address is to have the focus: `true`, in its first filter.
function useKeys(showKeys: () => void) {
  const afterG = useRef(false)
  const isSearching = useRef(false)
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(event.target)) {
        if (event.key === 'Escape') (event.target as HTMLElement).blur()
        return
      }
      if (document.querySelector('dialog[open]')) return
      const chosen = afterG.current ? views.find((view) => view.key === event.key) : undefined
      afterG.current = event.key === 'g'
      if (chosen) go([chosen.name])
      else if (event.key === '/') {
        event.preventDefault()
        const field = searchField()
        field?.focus()
        isSearching.current = !field
        if (!field) go(['sagas'])
      } else if (event.key === 'j') moveRow(1)
      else if (event.key === 'k') moveRow(-1)
      else if (event.key === 'x') pickRow()
      else if (event.key === '?') showKeys()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return isSearching
}

function Lost() {
  const since = useLostSince()
  return (
    <div class="lost-room" role="status">
      {since !== null && (
        <p class="lost">
          No connection to sagad since <At at={new Date(since).toISOString()} />. What you see is as it was then. This
          page tries again by itself.
        </p>
      )}
    </div>
  )
}

function Person({ me, onNamespaces, onSignOut }: { me: Me; onNamespaces: () => void; onSignOut: () => void }) {
  const settings = useSettings()
  const nextTheme = { auto: 'light', light: 'dark', dark: 'auto' } as const
  return (
    <div class="person">
      <button
        type="button"
        class="quiet setting"
        onClick={() => set({ zone: settings.zone === 'utc' ? 'local' : 'utc' })}
        title="times in your zone, or in UTC"
      >
        times: {settings.zone === 'utc' ? 'UTC' : 'local'}
      </button>
      <button
        type="button"
        class="quiet setting"
        onClick={() => set({ theme: nextTheme[settings.theme] })}
        title="light, dark, or as the system has it"
      >
        theme: {settings.theme}
      </button>
      <span class="who" data-testid="who">
        <strong>{me.name}</strong> <span class="role">{me.role}</span> in {told(me)}
      </span>
      {hasChoice(me) && (
        <button type="button" class="quiet" onClick={onNamespaces}>
          Namespaces
        </button>
      )}
      {me.name !== 'local' && (
        <button type="button" class="quiet" onClick={onSignOut}>
          Sign out
        </button>
      )}
    </div>
  )
}

function Frame({ me, onSignOut }: { me: Me; onSignOut: () => void }) {
  const route = useRoute()
  const [keysShown, setKeysShown] = useState(false)
  const [choosing, setChoosing] = useState(false)
  const main = useRef<HTMLElement>(null)
  const name = route.path[0] || views[0].name
  const view = views.find((one) => one.name === name || one.also?.includes(name))
  const where = route.path.join('/')
  const first = useRef(true)
  const isSearching = useKeys(() => setKeysShown(true))
  useLayoutEffect(() => stopFeed, []) // the next person may see other events
  useLayoutEffect(() => {
    document.title = `${view?.title ?? 'Not found'} · sagad`
    // A new view is read from its beginning, also by who hears it. Later than now, it would take the focus from who
    // goes on by the keyboard.
    const field = isSearching.current ? searchField() : null
    if (field) field.focus()
    else if (!first.current) main.current?.focus({ preventScroll: false })
    first.current = false
    isSearching.current = false
  }, [where])

  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        To the content
      </a>
      <header class="top">
        <a class="brand" href={href([''])}>
          <img src="icon.svg" alt="" width="20" height="20" /> sagad
        </a>
        <nav aria-label="Views">
          {views.map((one) => (
            <a key={one.name} href={href([one.name])} aria-current={one === view ? 'page' : undefined}>
              {one.title}
            </a>
          ))}
        </nav>
        <Person me={me} onNamespaces={() => setChoosing(true)} onSignOut={onSignOut} />
        <button type="button" class="quiet help" onClick={() => setKeysShown(true)} aria-label="Keys">
          ?
        </button>
      </header>
      <Lost />
      <OtherVersion />
      <main id="main" ref={main} tabIndex={-1}>
        {view && route.namespaces.length > 1 && !(view.ofSeveral && view.name === name) ? (
          <OneOf title={view.title} path={route.path} />
        ) : view ? (
          <view.View route={route} me={me} key={[...route.namespaces, ...route.path.slice(0, 2)].join('/')} />
        ) : (
          <Trouble problem={new Problem(404, 'There is no such view', `The console has no view "${name}".`)} />
        )}
      </main>
      {choosing && <ChooseNamespaces me={me} path={[view?.name ?? '']} onClose={() => setChoosing(false)} />}
      {keysShown && <Keys onClose={() => setKeysShown(false)} />}
    </>
  )
}

// A link that signs in once: `#/sign-in/CODE`, with the view behind it that it leads to, such as `/saga/ID`.
function linkNow() {
  const [, code, view] = /^#\/sign-in\/([0-9a-f]+)(?:\/(.*))?$/.exec(location.hash) ?? []
  return code ? { code, path: (view ?? '').split('/') } : null
}

function App() {
  const [me, setMe] = useState<Me | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [why, setWhy] = useState('')

  async function whoAmI() {
    setProblem(null)
    const link = linkNow()
    const code = link?.code
    if (link) replace(link.path, {}) // the code must not stay in the address, or in the history
    try {
      const found = code ? await change<Me>('POST', 'console/session', { code }) : await read<Me>('v1/me')
      beginSession()
      setProblem(null) // a read of the session before may have been refused meanwhile
      setMe(found)
    } catch (error) {
      const found = error as Problem
      if (code && found.status === 409) return void whoAmI()
      if (found.status === 401) setWhy(code ? found.detail : '')
      setProblem(found)
    }
  }
  useEffect(() => {
    setOnSignedOut(() => {
      setWhy('Your session has ended. Sign in again; you come back to this view.')
      setMe(null)
      setProblem(new Problem(401, '', ''))
    })
    void whoAmI()
    // In a tab that shows the console already, a link changes only what stands behind the #.
    const onHash = () => linkNow() && void whoAmI()
    addEventListener('hashchange', onHash)
    return () => removeEventListener('hashchange', onHash)
  }, [])

  async function signOut() {
    try {
      await change('DELETE', 'console/session')
      setWhy('You are signed out.')
      setMe(null)
      setProblem(new Problem(401, '', ''))
    } catch (error) {
      setProblem(error as Problem)
    }
  }

  if (problem?.status === 401)
    return <SignIn why={why} onDone={(signed) => (beginSession(), setProblem(null), setMe(signed))} />
  if (problem)
    return (
      <main class="alone">
        <h1>sagad</h1>
        <Trouble problem={problem} retry={() => void whoAmI()} />
      </main>
    )
  if (!me) return <Loading what="who you are" />
  setNamespacesOfToken(me.namespaces)
  // What one person has seen is not shown to the next one.
  return <Frame me={me} key={`${me.namespace} ${me.name} ${me.role}`} onSignOut={() => void signOut()} />
}

render(<App />, document.getElementById('app')!)
