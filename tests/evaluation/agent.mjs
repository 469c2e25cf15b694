// A scripted agent that serves one wish as agents do. It starts over from step 1, says the same in other words, calls
// again what it has done, sends helpers after the same duty, hangs up, clicks twice, crashes and comes back with
// nothing but a name, or never comes back. The wish decides what the agent does; the world decides only when.
import { paraphrase } from './wish.mjs'

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const final = ['completed', 'compensated', 'abandoned']

class Crash extends Error {}
class Stuck extends Error {}

export class Journey {
  // `patience` in ms: how long after its start a wish may take before it counts as stranded. `door` is how the agent
  // speaks to sagad: http_door.mjs, mcp_door.mjs.
  constructor(wish, { door, operator, patience = 180000, suspended = () => {} }) {
    this.wish = wish
    this.door = door
    this.operator = operator
    this.patience = patience
    this.suspended = suspended // is told of a saga or run that waits for an operator's resume
    this.began = Date.now()
    this.emissions = 0
    this.turn = 0
    this.clicks = 0
    this.faults = [] // answers that the contract does not know
    this.answers = [] // {step, key, result, replayed}: each success that the agent heard of
    this.seen = { calls: 0, replayed: 0, loops: 0, waits: 0, crashes: 0, replans: 0, paused: 0, failures: 0 }
    this.signed = 0 // the number of sign-offs that were asked for
    this.signedForSure = 0 // the number of sign-offs that were acknowledged
    this.final = undefined // the saga or the operations as the API shows them at the end
  }

  late() {
    return Date.now() - this.began > this.patience
  }

  // --- one exchange ---

  manner(label) {
    const { luck, forgetful } = this.wish
    if (luck(`${label} heard`) >= forgetful) return {}
    const how = luck(`${label} how`)
    if (how < 0.35) return { hangUpAfter: 1 + luck(`${label} when`) * 20 }
    if (how < 0.75) return { hangUpAfter: 30 + luck(`${label} when`) * 700 }
    return { cut: true }
  }

  // Asks until there is an answer that decides something; `decide` returns undefined to go on asking.
  async insist(label, ask, decide) {
    for (let tries = 0; ; tries++) {
      if (this.late()) throw new Stuck(`${label}: no answer that decides`)
      const answer = await ask(tries, tries < 4 ? this.manner(`${label} ${tries}`) : {})
      const decided = answer.lost ? undefined : decide(answer)
      if (decided !== undefined) return decided
      await sleep(Math.min(20 * 2 ** tries, 400) * (0.5 + Math.random()))
    }
  }

  // Does this answer say "not now"? These are the contract's words for it.
  notNow(answer) {
    if (answer.status === 503 || answer.status === 429) return true
    if (answer.status === 202) return true
    return (
      answer.status === 409 &&
      /in-flight|outcome-unknown|awaiting-operator|unsettled|locked|busy/.test(answer.json?.type ?? '')
    )
  }

  fault(what, answer) {
    this.faults.push(`${what} was answered with ${answer.status}: ${answer.text?.slice(0, 600)}`)
  }

  // --- the saga ---

  async open() {
    this.id = await this.insist(
      'open',
      (tries, manner) => this.door.open(manner),
      (answer) => {
        if (answer.status === 201 || answer.status === 200) return answer.json.id
        if (!this.notNow(answer)) {
          this.fault('the opening of the saga', answer)
          throw new Stuck('cannot open')
        }
      }
    )
  }

  async look() {
    return this.insist(
      'look',
      (tries, manner) => this.door.look(this.id, manner),
      (answer) => {
        if (answer.status === 200) return answer.json
        if (!this.notNow(answer)) {
          this.fault('the look at the saga', answer)
          throw new Stuck('cannot look')
        }
      }
    )
  }

  // The saga as the API shows it to a person.
  async record() {
    return this.insist(
      'record',
      () => this.operator.json('GET', `/v1/sagas/${this.sagaId()}`),
      (answer) => (answer.status === 200 ? answer.json : undefined)
    )
  }

  // The id without the mark that a handle of /mcp has.
  sagaId() {
    return this.id?.split('.')[0]
  }

  // What a call says: its arguments as JSON text.
  said(step, label) {
    const { wish } = this
    const said = (name) => wish.luck(`${label} ${name}`)
    const args = wish.paraphrases
      ? paraphrase(step.args, said, true)
      : wish.kind === 'bypass'
        ? paraphrase(step.args, said, false)
        : JSON.stringify(step.args)
    return this.callOf(step, args)
  }

  callOf(step, args) {
    const { wish } = this
    return {
      tool: step.tool,
      ...(wish.named ? { step: step.step } : {}),
      ...(wish.scope ? { scope: wish.scope } : {}),
      ...(this.turn > 0 ? { turn: `turn ${this.turn}` } : {}),
      ...(this.id ? { saga: this.id } : { run: wish.id }),
      args
    }
  }

  // One helper at one duty: {done: record}, {failed: record}, or {closed: why} when the saga takes no calls any more.
  async call(step, label) {
    const { wish } = this
    // With an emission id it is the same request on the wire; without, it is said anew each time.
    const hasEmission = wish.luck(`${label} emission`) < 0.5
    let call
    let turned = 0
    let said
    return this.insist(
      label,
      (tries, manner) => {
        const saying = hasEmission ? `${label} ${turned}` : `${label} ${tries}`
        if (saying !== said) call = this.said(step, saying)
        said = saying
        this.seen.calls++
        return this.door.call({ ...call, ...(hasEmission ? { emission: `${wish.id}/${saying}` } : {}) }, manner)
      },
      (answer) => {
        const type = answer.json?.type ?? ''
        if (answer.status === 200) {
          const replayed = answer.headers['idempotent-replayed'] === 'true'
          this.seen.replayed += replayed
          this.answers.push({
            step: step.step,
            key: answer.json.key,
            result: JSON.stringify(answer.json.result),
            replayed,
            reads: step.kind === null
          })
          return { done: answer.json }
        }
        if (answer.status === 424) {
          this.seen.failures++
          return { failed: answer.json }
        }
        if (this.notNow(answer)) {
          this.seen.waits++
          return undefined
        }
        if (answer.status === 409 && /loop/.test(type)) {
          // The user is asked, and speaks again: a new turn, and another request on the wire.
          this.seen.loops++
          turned = ++this.turn
          return undefined
        }
        if (answer.status === 409 && /paus|suspend/.test(type)) {
          this.seen.paused++
          this.suspended(answer.json.operation?.saga ?? this.sagaId())
          return undefined
        }
        if (answer.status === 409 && /closed|sealed|ended|past-point|compensat|abort|not-running|conflict/.test(type))
          return { closed: type }
        this.fault(`the call of ${step.tool}`, answer)
        throw new Stuck(`${label}: an answer that the contract does not know`)
      }
    )
  }

  // Heard to the end, in the same sense each time: one that does not get on. A registry stops it; polling for news it
  // lets alone.
  async circle(step, label, rounds) {
    const args = paraphrase(step.args, this.wish.luck, false)
    for (let round = 0; round < rounds;) {
      if (this.late()) throw new Stuck(`${label}: going in circles`)
      const answer = await this.door.call(this.callOf(step, args))
      this.seen.calls++
      if (answer.status === 409 && /loop/.test(answer.json?.type ?? '')) {
        this.seen.loops++
        this.turn++
        return true
      }
      if (answer.status === 409 && /closed|sealed|past-point/.test(answer.json?.type ?? '')) return undefined
      if (answer.status === 200) round++
      else await sleep(100)
    }
    return false
  }

  // All helpers at once; the first one speaks for all, and all must have heard the same.
  async duty(step, label) {
    const helpers = Array.from({ length: this.wish.crowd }, (_, n) => this.call(step, `${label} helper ${n}`))
    const answers = await Promise.all(helpers)
    return answers.find((answer) => answer.done) ?? answers.find((answer) => answer.failed) ?? answers[0]
  }

  async endBy(verb, label) {
    return this.insist(
      `${verb} ${label}`,
      (tries, manner) => this.door.end(this.id, verb, manner),
      (answer) => {
        if (answer.status >= 200 && answer.status < 300 && answer.status !== 202) return verb
        if (answer.status === 202) return verb
        if (answer.status === 409 && /past-point/.test(answer.json?.type ?? '')) return 'past'
        if (this.notNow(answer)) return undefined
        if (answer.status === 409 && /paus|suspend/.test(answer.json?.type ?? '')) return undefined
        if (answer.status === 409) return 'refused' // ended the other way already
        this.fault(`${verb} of the saga`, answer)
        throw new Stuck(`${verb}: an answer that the contract does not know`)
      }
    )
  }

  // As a finger on a button does it: twice.
  async click(verb) {
    const label = ++this.clicks
    const twice = this.wish.luck(`${verb} twice`) < 0.5
    const [first] = await Promise.all([
      this.endBy(verb, `${label} first`),
      ...(twice ? [this.endBy(verb, `${label} second`)] : [])
    ])
    return first
  }

  // --- a life ---

  crashes(at) {
    const { wish } = this
    if (this.seen.crashes < wish.crashes && wish.luck(`crash ${this.seen.crashes} at ${at}`) < 0.35) {
      this.seen.crashes++
      throw new Crash(at)
    }
  }

  // One incarnation of the agent, from whatever point the saga is at. Returns what it did last.
  async live(round) {
    const { wish } = this
    if (!this.id || wish.luck(`${round} forgets the id`) < 0.3) await this.open()
    this.crashes(`${round} opened`)
    let known = new Set()
    if (round > 0 && wish.luck(`${round} reads`) < 0.5) {
      const saga = await this.look()
      if (final.includes(saga.status)) return 'ended'
      if (wish.named) known = new Set(saga.steps.filter((step) => step.status === 'completed').map((step) => step.id))
    }
    for (let n = 0; n < wish.steps.length; n++) {
      const step = wish.steps[n]
      const label = `${round} ${this.seen.replans} ${step.step}`
      if (n === wish.turnsBackAt && wish.fate === 'vanish') return 'vanished'
      if (n === wish.turnsBackAt && wish.fate === 'abort') {
        if (wish.luck('aborts in the middle of it') < 0.4) {
          // The button is pressed while a helper is still out.
          const [, pressed] = await Promise.all([this.duty(step, label), this.click('abort')])
          return pressed === 'past' ? this.click('complete') : pressed
        }
        return this.click('abort')
      }
      if (known.has(step.step)) continue
      const answer = await this.duty(step, label)
      this.crashes(`${label} done`)
      if (answer.closed) {
        // Over, or near it: what is not over yet is ended well.
        const { status } = await this.look()
        return status === 'running' || status === 'waiting' ? this.click('complete') : 'closed'
      }
      if (answer.failed) return this.click('abort')
      // The answers change only while the saga is open: of one that has ended they come from the record.
      if (
        step.polls &&
        (await this.circle(step, `${label} polls`, step.polls)) === true &&
        ['running', 'waiting'].includes((await this.look()).status)
      ) {
        this.faults.push('polling with changing answers was taken for a loop')
      }
      if (
        wish.obsessed &&
        step.kind === 'charge' &&
        this.seen.loops === 0 &&
        (await this.circle(step, `${label} obsessed`, 12)) === false
      ) {
        this.faults.push('an agent went round in a circle twelve times, and nobody stopped it')
      }
      if (wish.luck(`${label} again`) < wish.repeats) await this.call(step, `${label} again`)
      if (this.seen.replans < wish.replans && wish.luck(`${label} replans`) < 0.4) {
        this.seen.replans++
        if (wish.luck(`turn ${this.seen.replans}`) < 0.7) this.turn++
        n = -1 // a new plan: from the top, under the same names
        known = new Set()
      }
    }
    if (wish.fate === 'torn') return (await Promise.all([this.click('complete'), this.click('abort')]))[0]
    return this.click('complete')
  }

  async buy() {
    for (let round = 0; ; round++) {
      try {
        this.last = await this.live(round)
        break
      } catch (error) {
        if (!(error instanceof Crash)) throw error
        await sleep(20 + this.wish.luck(`${round} out`) * 300)
      }
    }
    // One that does not know yet that it is over.
    if (this.last !== 'vanished' && this.wish.luck('latecomer') < 0.15) {
      const step = this.wish.steps[Math.floor(this.wish.luck('late for') * this.wish.steps.length)]
      await this.call(step, 'latecomer')
    }
    while (!this.final) {
      const saga = await this.look()
      if (final.includes(saga.status)) this.final = await this.record()
      else if (this.late()) {
        this.stranded = `the saga is ${saga.status}`
        this.final = (await this.operator.json('GET', `/v1/sagas/${this.sagaId()}`)).json
      } else await sleep(100 + Math.random() * 200)
    }
  }

  async single() {
    const step = this.wish.steps[0]
    const first = await this.duty(step, 'single')
    for (let again = 0; again < 2; again++)
      if (this.wish.luck(`again ${again}`) < this.wish.repeats) await this.call(step, `single again ${again}`)
    if (this.wish.kind === 'bypass' && first.done) await this.bypass(step, first.done.key)
    this.final = await this.insist(
      'operations',
      (tries, manner) =>
        this.operator.json('GET', `/v1/operations?run=${encodeURIComponent(this.wish.id)}&limit=50`, undefined, {
          manner
        }),
      (answer) =>
        answer.status === 200 && answer.json.items.every((item) => ['completed', 'failed'].includes(item.state))
          ? { operations: answer.json.items }
          : undefined
    )
  }

  // A person signs one more execution off; then the button is pressed twice.
  async bypass(step, key) {
    this.signed = 0
    await this.insist(
      'bypass',
      (tries, manner) => {
        this.signed++
        return this.operator.json(
          'POST',
          `/v1/operations/${key}/bypass`,
          { reason: 'the customer wants two of them' },
          { manner }
        )
      },
      (answer) => {
        if (answer.status >= 200 && answer.status < 300) {
          this.signedForSure++
          return true
        }
        if (answer.status === 409) return true // signed off already: the answer was lost
        if (this.notNow(answer)) return undefined
        this.fault('the sign-off', answer)
        throw new Stuck('cannot sign off')
      }
    )
    await Promise.all([this.call(step, 'bypassed, first click'), this.call(step, 'bypassed, second click')])
    if (this.wish.luck('a third') < 0.5) await this.call(step, 'bypassed, third click')
  }

  async go() {
    try {
      if (this.wish.kind === 'buy') await this.buy()
      else await this.single()
    } catch (error) {
      if (!(error instanceof Stuck)) throw error
      this.stranded = error.message
      if (this.id) this.final = (await this.operator.json('GET', `/v1/sagas/${this.sagaId()}`)).json
    }
    this.ended = Date.now()
    return this
  }
}
