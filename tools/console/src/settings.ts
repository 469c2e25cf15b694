// What this browser keeps: the theme, the zone of times. Nothing of it is secret.
import { useEffect, useState } from 'preact/hooks'

export interface Settings {
  theme: 'auto' | 'light' | 'dark'
  zone: 'local' | 'utc'
}

function load(): Settings {
  try {
    return { theme: 'auto', zone: 'local', ...JSON.parse(localStorage.getItem('sagad') ?? '{}') }
  } catch {
    return { theme: 'auto', zone: 'local' } // kept by another version, or not readable here
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
