// Answers that no tool should give, to some requests for a while. The call may have happened or not, and the answer
// does not say.
import { sleep } from '../../../lib/world.mjs'
import { hostile } from '../door.mjs'

// These calls are told to wait longer than a person lives; the engine waits for a week at most. Nobody waits for that
// here: the sagas are aborted in the end.
const delayed = new Set() // names

export const answers = {
  name: 'answers',
  topology: 'plain',
  weight: 2,
  async fire(run) {
    const { door } = run.world
    const which = run.world.pick(Object.keys(hostile))
    const before = door.answers
    const limit = { huge: 2, retry_absurd: 3 }[which] ?? 8
    door.answer = (bytes) => {
      if (door.answers - before >= limit || run.random() > 0.3) return undefined
      const text = bytes.toString('latin1')
      if (text.startsWith('GET ')) return undefined
      if (which !== 'retry_absurd') return hostile[which]
      const name = /"request":"([^":]+):/.exec(text)?.[1]
      if (!run.notes.starts.get(name)?.id) return undefined // an undo, or a saga that nobody could abort
      delayed.add(name)
      return hostile[which]
    }
    await sleep(300)
    door.answer = undefined
    return door.answers > before ? `answers ${which}` : undefined
  },
  heal(run) {
    for (const name of delayed) {
      const id = run.notes.starts.get(name)?.id
      if (id)
        run.load.errand(() => run.load.say('abort', id, (note) => ['POST', `/v1/sagas/${id}/abort`, { note }]), true)
    }
    delayed.clear()
  }
}
