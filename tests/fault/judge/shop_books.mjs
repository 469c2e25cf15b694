// The ledger, sorted for questions: requests by key, effects by wish, and what was undone.
const undoing = new Set(['release', 'refund', 'untag'])

export class Books {
  constructor(ledger) {
    this.byKey = new Map()
    this.bySaga = new Map() // the name with which the wishes of a saga begin -> effects that make something
    this.undone = new Map() // id (for a tag, its name) -> effects that undo it
    this.strange = []
    for (const line of ledger) {
      if (line.key) put(this.byKey, line.key, line)
      if (line.effect !== 1) continue
      if (undoing.has(line.kind))
        put(this.undone, line.kind === 'refund' ? (line.charge ?? line.target) : line.target, line)
      else if (line.request) put(this.bySaga, line.request.split(':')[0], line)
      else this.strange.push(line)
    }
  }

  requests(key) {
    return this.byKey.get(key) ?? []
  }

  effect(key) {
    return this.requests(key).find((line) => line.effect === 1)
  }

  // Returns what was made for a saga, each with its undo.
  made(name) {
    return (this.bySaga.get(name) ?? []).map((line) => ({
      line,
      wish: line.request.slice(name.length + 1),
      undone: this.undone.get(line.kind === 'tag' ? line.target : line.id) ?? []
    }))
  }
}

function put(map, key, value) {
  const list = map.get(key)
  if (list) list.push(value)
  else map.set(key, [value])
}
