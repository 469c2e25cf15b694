// The view and its filters stand behind the # of the address: there a proxy needs to know nothing of them, they reach
// no server's log, and a link shows a colleague the same.
import { useLayoutEffect, useState } from 'preact/hooks'

export interface Route {
  path: string[] // ['sagas'], ['saga', ID, 'log']
  query: Record<string, string>
  namespaces: string[] // chosen; none: that of the token
}

// --- namespaces: `ns` of the address, on all views alike ---

let namespacesOfToken: string[] = []

// What `ns=*` stands for.
export function setNamespacesOfToken(names: string[]) {
  namespacesOfToken = names
}

export const namesAll = '*'

const namespacesOf = (ns: string | null) =>
  ns === namesAll ? namespacesOfToken : (ns ?? '').split(',').filter((name) => name !== '')

const parameterNow = () => new URLSearchParams(location.hash.split('?')[1] ?? '').get('ns')

export const namespacesNow = () => namespacesOf(parameterNow())

// --- the address ---

function decoded(part: string) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part // typed by hand, and no encoding at all
  }
}

export function current(): Route {
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?')
  const { ns = null, ...query } = Object.fromEntries(new URLSearchParams(search)) as Record<string, string>
  return { path: path.split('/').map(decoded), query, namespaces: namespacesOf(ns) }
}

// Leads on in the namespaces that are chosen now, unless `ns` names others.
export function href(path: string[], parameters: Record<string, string | undefined> = {}) {
  const search = new URLSearchParams()
  const ns = 'ns' in parameters ? undefined : parameterNow()
  if (ns) search.set('ns', ns)
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, value)
  return `#/${path.map(encodeURIComponent).join('/')}${search.size ? `?${search}` : ''}`
}

export function go(path: string[], parameters: Record<string, string | undefined> = {}) {
  location.hash = href(path, parameters)
}

// As go(), without a step for the back button: for what is typed.
export function replace(path: string[], parameters: Record<string, string | undefined>) {
  history.replaceState(null, '', href(path, parameters))
  dispatchEvent(new HashChangeEvent('hashchange'))
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current)
  // A layout effect runs before anything else can happen: no change of the address falls between drawing and listening.
  useLayoutEffect(() => {
    const onChange = () => setRoute(current())
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return route
}
