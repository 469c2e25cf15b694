// Two versions of sagad may serve this page in turn: during an upgrade, or behind a load balancer. All its files have
// stable names, and the page of one version works with the API of the next. So it goes on, and says that there is
// another one; it never reloads by itself, because somebody may be writing a note.
import { useEffect, useState } from 'preact/hooks'
import { useHidden, useLostSince } from './live'

const every = 600_000 // beside each time when the connection or the reader comes back

const versionOf = (page: string) => /data-version="([^"]*)"/.exec(page)?.[1]

async function servedVersion() {
  try {
    const answer = await fetch(document.baseURI.replace(/#.*/, ''), { cache: 'no-cache' })
    return answer.ok ? versionOf(await answer.text()) : undefined
  } catch {
    return undefined // the line about the connection says so
  }
}

let isFresh = true // nothing was read since this page was loaded

export function OtherVersion() {
  const isAway = useLostSince() !== null
  const isHidden = useHidden()
  const [isOther, setOther] = useState(false)
  useEffect(() => {
    if (isAway || isHidden) return
    let hasEnded = false
    async function look() {
      const version = await servedVersion()
      if (!hasEnded && version) setOther(version !== document.documentElement.dataset.version)
    }
    if (!isFresh) void look()
    isFresh = false
    const timer = setInterval(look, every)
    return () => {
      hasEnded = true
      clearInterval(timer)
    }
  }, [isAway, isHidden])
  return (
    <div role="status">
      {isOther && (
        <p class="lost">
          sagad is of another version than this page now.{' '}
          <button type="button" onClick={() => location.reload()}>
            Reload this page
          </button>
        </p>
      )}
    </div>
  )
}
