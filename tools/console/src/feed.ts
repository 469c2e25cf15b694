// One stream of events (GET /v1/events) for all that is on the screen: whoever shows something that an event changes
// reads it again when the event comes. While there is no stream, reads come at their usual pace.
//
// A page that nobody sees follows nothing, because a browser has few connections for all pages of a server.
import { Problem } from './api'
import { namespacesNow } from './route'
import { readStream } from './stream'

const lingerMs = 2000 // from one view to the next the stream stays
const firstAgainMs = 1000
const slowestMs = 30_000

interface Follower {
  types: string[] // beginnings of types
  hear: () => void // something changed; or the stream began, or ended
}

const followers = new Set<Follower>()
let running: AbortController | null = null
let isOn = false
let of = '' // the namespace that is followed
let stopping: ReturnType<typeof setTimeout> | undefined

export const feedIsOn = () => isOn

function tell(type: string | null) {
  for (const { types, hear } of followers)
    if (type === null || types.some((beginning) => type.startsWith(beginning))) hear()
}

function setOn(on: boolean) {
  if (on === isOn) return
  isOn = on
  tell(null)
}

async function run(ended: AbortController) {
  let lastId: string | undefined
  for (let delay = firstAgainMs; !ended.signal.aborted; delay = Math.min(delay * 2, slowestMs)) {
    try {
      const path = lastId ? 'v1/events?follow=true' : 'v1/events?follow=true&cursor=now'
      await readStream(
        path,
        lastId,
        ended.signal,
        () => {
          delay = firstAgainMs
          setOn(true)
        },
        ({ id, type, data }) => {
          if (id) lastId = id
          if (data) tell(type)
        }
      )
    } catch (error) {
      if (ended.signal.aborted) return
      const status = error instanceof Problem ? error.status : 0
      if (status === 401 || status === 403) return setOn(false)
      if (status === 410) lastId = undefined // what was missed is read as a whole
    }
    if (ended.signal.aborted) return
    setOn(false)
    await new Promise((resolve) => setTimeout(resolve, delay))
  }
}

// Ends the stream at once, such as that of a person who has gone.
export function stop() {
  running?.abort()
  running = null
  isOn = false
}

function start() {
  clearTimeout(stopping)
  const namespaces = namespacesNow()
  if (document.hidden || namespaces.length > 1) return stop()
  if (running && of === namespaces.join()) return
  stop()
  of = namespaces.join()
  running = new AbortController()
  void run(running)
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) stop()
  else if (followers.size > 0) start()
})

export function follow(types: string[], hear: () => void) {
  const follower = { types, hear }
  followers.add(follower)
  start()
  return () => {
    followers.delete(follower)
    if (followers.size > 0) return
    clearTimeout(stopping)
    stopping = setTimeout(stop, lingerMs)
  }
}
