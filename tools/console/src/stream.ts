// Server-sent events by fetch(), because an EventSource cannot send the header that a session needs.
import { open } from './api'

const silenceMs = 60_000 // sagad says every few seconds that it is still there

export interface Sent {
  id: string
  type: string
  data: string
}

// Ends when the stream does, and fails with a Problem when there is none. `onOpen` comes before the first event.
export async function readStream(
  path: string,
  lastId: string | undefined,
  signal: AbortSignal,
  onOpen: () => void,
  onSent: (sent: Sent) => void
) {
  const quiet = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(timer)
    timer = setTimeout(() => quiet.abort(), silenceMs)
  }
  const either = AbortSignal.any([signal, quiet.signal])
  try {
    heard()
    const body = await open(path, lastId, either)
    onOpen()
    let text = ''
    for (const reader = body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
      const { done, value } = await reader.read()
      if (done) return
      heard()
      const parts = (text + value).split('\n\n')
      text = parts.pop()!
      for (const part of parts) take(part, onSent)
    }
  } finally {
    clearTimeout(timer)
  }
}

function take(part: string, onSent: (sent: Sent) => void) {
  const sent: Sent = { id: '', type: '', data: '' }
  const data: string[] = []
  for (const line of part.split('\n')) {
    const [name, value] = [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).replace(/^ /, '')]
    if (name === 'id') sent.id = value
    else if (name === 'event') sent.type = value
    else if (name === 'data') data.push(value)
  }
  onSent({ ...sent, data: data.join('\n') }) // without data it only says how far the stream has come
}
