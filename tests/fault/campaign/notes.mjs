// The knowledge of the clients: what they asked for under which name, and what they were told. Nothing here comes from
// sagad's rows.
//
// Each verb of a person or client carries its own token (in a note or a payload), by which the log can be searched for
// it.
export class Notes {
  constructor() {
    this.starts = new Map() // name -> {shape, input, id: acknowledged, at}
    this.words = [] // {kind, saga, token, acknowledged, sent: how often it was said}
    this.finals = new Map() // saga id -> the text of its record once it had ended, as a client read it
    this.complaints = [] // answers that no client should ever get
    this.unconfirmed = false // a server shows commits that a standby may lack: their wait was cancelled
    this.vanished = 0 // how often such a server was lost
    this.counts = { starts: 0, refused: 0, lost: 0 }
  }

  tried(name, shape, input) {
    this.starts.set(name, { shape, input })
  }

  started(name, id) {
    const start = this.starts.get(name)
    if (start.id && start.id !== id) this.complain(`the start of ${name} was acknowledged as ${start.id} and as ${id}`)
    if (!start.id) this.counts.starts++
    start.id = id
  }

  word(kind, saga) {
    const word = { kind, saga, token: `w${this.words.length}-${kind}`, acknowledged: false, sent: 0 }
    this.words.push(word)
    return word
  }

  final(id, text) {
    const before = this.finals.get(id)
    if (before !== undefined && before !== text)
      this.complain(`the record of the ended saga ${id} has changed: ${before} / ${text}`)
    this.finals.set(id, text)
  }

  complain(what) {
    if (this.complaints.length < 50) this.complaints.push(what)
  }
}
