// Reads the shop's ledger as it grows: effects by key, for people who look into the books.
import { closeSync, existsSync, openSync, readSync } from 'node:fs'

export class LedgerTail {
  constructor(path) {
    this.path = path
    this.at = 0
    this.rest = ''
    this.byKey = new Map() // key -> the line of its effect
    this.lines = 0
    this.lastIn = 0
  }

  // Reads the new lines.
  read() {
    if (!existsSync(this.path)) return
    const file = openSync(this.path, 'r')
    const buffer = Buffer.alloc(1 << 20)
    try {
      for (;;) {
        const bytes = readSync(file, buffer, 0, buffer.length, this.at)
        if (bytes === 0) break
        this.at += bytes
        const lines = (this.rest + buffer.toString('latin1', 0, bytes)).split('\n')
        this.rest = lines.pop()
        for (const text of lines) this.take(JSON.parse(text))
      }
    } finally {
      closeSync(file)
    }
  }

  take(line) {
    this.lines++
    this.lastIn = Math.max(this.lastIn, line.t_in)
    if (line.effect === 1 && line.key && !this.byKey.has(line.key))
      this.byKey.set(line.key, { id: line.id, kind: line.kind })
  }
}
