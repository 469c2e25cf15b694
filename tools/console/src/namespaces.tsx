// Which namespaces are looked at: one, several or all of those that the token has. The choice stands in the address.
import { useState } from 'preact/hooks'
import { href, namesAll, namespacesNow } from './route'
import type { Me } from './types'
import { Dialog } from './ui'

export const hasChoice = (me: Me) => me.namespaces.length > 1 || me.namespaces[0] === '*'
const isAny = (me: Me) => me.namespaces.includes('*')

export const told = (me: Me) => namespacesNow().join(', ') || me.namespace

export function ChooseNamespaces({ me, path, onClose }: { me: Me; path: string[]; onClose: () => void }) {
  const chosen = namespacesNow()
  const [names, setNames] = useState<string[]>(chosen.length > 0 ? chosen : [me.namespace])
  const [typed, setTyped] = useState(names.join(', '))
  const all = !isAny(me) && names.length === me.namespaces.length
  const wanted = isAny(me) ? typed.split(/[\s,]+/).filter(Boolean) : names

  function apply(event: Event) {
    event.preventDefault()
    location.hash = href(path, { ns: all ? namesAll : wanted.join(',') })
    onClose()
  }
  return (
    <Dialog title="Namespaces" onClose={onClose}>
      <form class="verb" onSubmit={apply}>
        {isAny(me) ? (
          <label>
            Their names, with commas between
            <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} spellcheck={false} />
          </label>
        ) : (
          <fieldset>
            <legend>What you look at</legend>
            <label class="check">
              <input
                type="checkbox"
                checked={all}
                onChange={() => setNames(all ? [me.namespace] : [...me.namespaces])}
              />{' '}
              all of them
            </label>
            {me.namespaces.map((name) => (
              <label class="check" key={name}>
                <input
                  type="checkbox"
                  checked={names.includes(name)}
                  onChange={() => setNames(me.namespaces.filter((one) => (one === name) !== names.includes(one)))}
                />{' '}
                {name}
              </label>
            ))}
          </fieldset>
        )}
        <p class="muted">Lists of sagas, cases, approvals and acts show several at once. All other views show one.</p>
        <div class="actions">
          <button type="submit" class="main" disabled={wanted.length === 0}>
            Show {wanted.length === 1 ? wanted[0] : `${wanted.length} namespaces`}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

// In place of a view that shows one namespace, while several are chosen.
export const OneOf = ({ title, path }: { title: string; path: string[] }) => (
  <>
    <h1>{title}</h1>
    <p>This view shows one namespace at a time:</p>
    <ul>
      {namespacesNow().map((name) => (
        <li key={name}>
          <a href={href(path, { ns: name })}>{name}</a>
        </li>
      ))}
    </ul>
  </>
)
