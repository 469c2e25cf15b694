// The view and its filters stand behind the # of the address: there a proxy needs to know nothing of them, they reach
// no server's log, and a link shows a colleague the same.
import { useEffect, useState } from 'preact/hooks'

export interface Route {
  path: string[] // ['sagas'], ['saga', ID, 'log']
  query: Record<string, string>
}

function decoded(part: string) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part // typed by hand, and no encoding at all
  }
}

function current(): Route {
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return { path: path.split('/').map(decoded), query: Object.fromEntries(new URLSearchParams(search)) }
}

export function href(path: string[], parameters: Record<string, string | undefined> = {}) {
  const search = new URLSearchParams()
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
  useEffect(() => {
    const onChange = () => setRoute(current())
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return route
}
