// The judge. It believes the shop's ledger, and compares what agents were told and what the API shows in the end with
// it.
import { closeSync, existsSync, openSync, readSync } from 'node:fs'

const undoes = { release: 'reserve', refund: 'charge', untag: 'tag' }

// The ledger of the shop, read while it grows and indexed by key, by request and by id.
export class Books {
  constructor(path) {
    this.path = path
    this.at = 0
    this.rest = ''
    this.lines = []
    this.byKey = new Map() // key -> [effect]
    this.byRequest = new Map() // request -> [line]
    this.byId = new Map() // id -> effect
    this.undone = new Map() // id of a thing -> [effect that undid it]
    this.oddities = []
  }

  read() {
    if (!existsSync(this.path)) return this
    const file = openSync(this.path, 'r')
    const block = Buffer.alloc(1 << 20)
    for (let got; (got = readSync(file, block, 0, block.length, this.at)) > 0; this.at += got)
      this.take(block.toString('latin1', 0, got))
    closeSync(file)
    return this
  }

  take(text) {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop()
    for (const line of lines) if (line) this.add(JSON.parse(Buffer.from(line, 'latin1').toString('utf8')))
  }

  add(line) {
    this.lines.push(line)
    if (line.request) push(this.byRequest, line.request, line)
    if (line.effect !== 1) return
    this.byId.set(line.id, line)
    if (line.key) push(this.byKey, line.key, line)
    if (undoes[line.kind]) {
      const target = line.body?.charge_id ?? line.target
      const thing =
        this.byId.get(target) ??
        this.byKey.get(target)?.[0] ??
        (line.kind === 'untag' ? this.standingTag(target) : undefined)
      if (thing) push(this.undone, thing.id, line)
      else this.oddities.push(`${line.kind} of ${target}, which nobody made: ${JSON.stringify(line)}`)
    }
  }

  standingTag(name) {
    return this.lines.findLast(
      (line) => line.effect === 1 && line.kind === 'tag' && line.target === name && !this.undone.has(line.id)
    )
  }

  // {reserve: {done, undone}, ...} of a request.
  tally(request) {
    const kinds = {
      reserve: { done: 0, undone: 0 },
      charge: { done: 0, undone: 0 },
      mail: { done: 0, undone: 0 },
      tag: { done: 0, undone: 0 }
    }
    for (const line of this.byRequest.get(request) ?? []) {
      if (line.effect !== 1 || !kinds[line.kind]) continue
      kinds[line.kind].done++
      kinds[line.kind].undone += this.undone.get(line.id)?.length ?? 0
    }
    return kinds
  }

  things(request) {
    return (this.byRequest.get(request) ?? []).filter((line) => line.effect === 1 && !undoes[line.kind])
  }
}

function push(map, key, value) {
  if (map.has(key)) map.get(key).push(value)
  else map.set(key, [value])
}

// Returns sentences about what is wrong with one journey that has ended.
export function judgeJourney(journey, books) {
  const { wish } = journey
  const faults = [...journey.faults]
  const tally = books.tally(wish.id)
  const most = 1 + journey.signed
  if (journey.stranded) faults.push(`stranded: ${journey.stranded}`)
  for (const [kind, { done, undone }] of Object.entries(tally)) {
    if (done > most) faults.push(`${done} effects of ${kind} for one wish`)
    if (undone > done) faults.push(`${kind} was undone ${undone} times and done ${done} times`)
    if (done > 0 && !wish.kinds.includes(kind))
      faults.push(`${kind} was done and is no part of the wish, or was so before`)
  }
  for (const thing of books.things(wish.id)) {
    const times = books.undone.get(thing.id)?.length ?? 0
    if (times > 1) faults.push(`${thing.kind} ${thing.id} was undone ${times} times`)
  }
  if (wish.tagBefore && !books.standingTag(`${wish.id}-customer`))
    faults.push('the tag that somebody else had set was taken away')
  if (wish.kind === 'buy') judgeSaga(journey, tally, books, faults)
  else judgeOperations(journey, tally, books, faults)
  judgeAnswers(journey, books, faults)
  return faults
}

function judgeSaga(journey, tally, books, faults) {
  const { wish, final } = journey
  if (!final) return
  if (final.status === 'completed') {
    for (const kind of wish.kinds) {
      if (tally[kind].done !== 1 || tally[kind].undone !== 0)
        faults.push(`completed, and ${kind} was done ${tally[kind].done} times and undone ${tally[kind].undone} times`)
    }
    const lines = books.things(wish.id)
    const mail = lines.find((line) => line.kind === 'mail')
    const after = mail && lines.find((line) => line.n > mail.n)
    if (after) faults.push(`${after.kind} came after the terminal step`)
  }
  if (final.status === 'compensated') {
    for (const [kind, { done, undone }] of Object.entries(tally)) {
      if (done !== undone) faults.push(`compensated, and ${kind} was done ${done} times and undone ${undone} times`)
    }
    if (!journey.person) judgeOrder(wish, books, faults)
  }
  for (const step of final.steps ?? []) {
    const lines = step.key ? (books.byKey.get(step.key) ?? []) : []
    const standing = lines.filter((line) => !books.undone.has(line.id)).length
    if (final.status === 'completed' && step.took_effect === 'yes' && wishKind(wish, step) && standing !== 1)
      faults.push(`the step ${step.id} took effect, says the API, and ${standing} stand in the ledger`)
    if (step.took_effect === 'no' && lines.length > 0)
      faults.push(`the step ${step.id} had no effect, says the API, and the ledger has ${lines.map((line) => line.id)}`)
    if (step.took_effect === 'undone' && standing > 0)
      faults.push(`the step ${step.id} is undone, says the API, and it stands in the ledger`)
  }
}

function wishKind(wish, step) {
  const known = wish.steps.find((one) => one.step === step.id || one.tool === step.tool)
  return known?.kind && !(known.kind === 'tag' && wish.tagBefore)
}

// Effects that were made one after the other must be undone in reverse.
function judgeOrder(wish, books, faults) {
  const undone = books
    .things(wish.id)
    .filter((line) => books.undone.has(line.id))
    .sort((a, b) => a.n - b.n)
  for (let i = 1; i < undone.length; i++) {
    const [before, after] = [undone[i - 1], undone[i]]
    if (books.undone.get(after.id)[0].n > books.undone.get(before.id)[0].n)
      faults.push(`${after.kind} was done after ${before.kind} and undone after it`)
  }
}

function judgeOperations(journey, tally, books, faults) {
  const { wish, final } = journey
  if (!final) return
  const kind = wish.kinds[0]
  const standing = tally[kind].done
  const completed = final.operations.filter((operation) => operation.state === 'completed').length
  if (final.operations.length === 0) faults.push('the API knows of no operation')
  if (completed !== standing)
    faults.push(`${completed} operations are completed, and the ledger has ${standing} effects`)
  if (tally[kind].undone > 0) faults.push('an operation outside a saga was undone')
  for (const operation of final.operations) {
    const effects = books.byKey.get(operation.key)?.length ?? 0
    if (effects !== (operation.state === 'completed' ? 1 : 0))
      faults.push(
        `the operation ${operation.key} is ${operation.state}, and the ledger has ${effects} effects under its key`
      )
  }
  if (wish.kind === 'bypass' && completed > 0) {
    // A sign-off of which nobody heard may still be open. A sign-off that was heard of and used allows one more effect.
    const exactly = journey.signed === 1 && journey.signedForSure === 1
    const made = final.operations.length
    if (exactly ? made !== 2 : made < 1 || made > 1 + journey.signed) {
      faults.push(
        `${journey.signed} times signed off (${journey.signedForSure} acknowledged), and ${made} operations ` +
          `with ${standing} effects`
      )
    }
  }
}

// All answers to helpers about one key must be the same to the byte, and name what the ledger has.
function judgeAnswers(journey, books, faults) {
  const told = new Map()
  for (const answer of journey.answers) {
    if (answer.reads || !answer.key) continue
    const before = told.get(answer.key)
    if (before !== undefined && before !== answer.result)
      faults.push(`under the key ${answer.key} one was told ${before} and another ${answer.result}`)
    told.set(answer.key, answer.result)
  }
  for (const [key, result] of told) {
    const id = JSON.parse(result ?? 'null')?.id
    const effects = books.byKey.get(key)
    if (id && effects && !effects.some((line) => line.id === id))
      faults.push(`the answer under the key ${key} names ${id}, and the ledger has ${effects.map((line) => line.id)}`)
    if (id && !effects && !books.byId.has(id))
      faults.push(`the answer under the key ${key} names ${id}, of which the shop knows nothing`)
  }
}

// Returns what is wrong in the ledger, whatever anybody says.
export function judgeBooks(books, journeys) {
  const faults = []
  const known = new Set(journeys.map((journey) => journey.wish.id))
  for (const [key, lines] of books.byKey) {
    if (lines.length > 1)
      faults.push({
        request: lines[0].request,
        what: `${lines.length} effects under the key ${key}: ${lines.map((line) => line.id)}`
      })
  }
  for (const [request, lines] of books.byRequest) {
    if (request !== 'before' && !known.has(request) && lines.some((line) => line.effect === 1))
      faults.push({ request, what: 'effects of a wish that nobody had' })
  }
  for (const line of books.lines) {
    if (line.effect === 1 && !line.request)
      faults.push({ request: null, what: `an effect that belongs to nobody: ${JSON.stringify(line)}` })
  }
  for (const oddity of books.oddities) faults.push({ request: null, what: oddity })
  return faults
}

// Returns [{journey, what: [sentence]}] and the counts for the table.
export function judgeAll(journeys, books) {
  const verdicts = []
  for (const journey of journeys) {
    const what = judgeJourney(journey, books)
    if (what.length > 0) verdicts.push({ journey, request: journey.wish.id, what })
  }
  for (const { request, what } of judgeBooks(books, journeys)) {
    const verdict = verdicts.find((one) => one.request === request)
    if (verdict) verdict.what.push(what)
    else verdicts.push({ journey: journeys.find((one) => one.wish.id === request), request, what: [what] })
  }
  return verdicts
}
