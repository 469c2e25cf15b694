// What this browser keeps: the theme, the zone of times, filters with names. Nothing of it is secret.
import { useEffect, useState } from 'preact/hooks'

export interface SavedFilter {
  view: string
  name: string
  query: Record<string, string>
}

export interface Settings {
  theme: 'auto' | 'light' | 'dark'
  zone: 'local' | 'utc'
  saved: SavedFilter[]
}

const first: Settings = { theme: 'auto', zone: 'local', saved: [] }

function load(): Settings {
  try {
    return { ...first, ...JSON.parse(localStorage.getItem('sagad') ?? '{}') }
  } catch {
    return { ...first } // kept by another version, or not readable here
  }
}

let settings = load()
const listeners = new Set<() => void>()

function show() {
  if (settings.theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = settings.theme
}
show()

export function set(changed: Partial<Settings>) {
  settings = { ...settings, ...changed }
  localStorage.setItem('sagad', JSON.stringify(settings))
  show()
  for (const tell of listeners) tell()
}

export function useSettings(): Settings {
  const [, redraw] = useState(0)
  useEffect(() => {
    const tell = () => redraw((n) => n + 1)
    listeners.add(tell)
    return () => void listeners.delete(tell)
  }, [])
  return settings
}
