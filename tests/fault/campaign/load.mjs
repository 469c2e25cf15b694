// Clients that start sagas through any of the engines and repeat each start until it is acknowledged. Afterwards they
// send signals, aborts and the same start once more, and look at how the saga ended. The notes get everything that they
// know.
import { sleep } from '../../lib/world.mjs'
import { chooseShape, inputOf, shapes } from './shapes.mjs'

const errandSeconds = 90

export class Load {
  constructor(world, notes, random, { clients = 24, backlog = 500, rate = 150 } = {}) {
    Object.assign(this, {
      world,
      notes,
      random,
      backlog,
      rate,
      unfinished: 0,
      stopping: false,
      errands: new Set(),
      errandsDropped: 0,
      started: Date.now(),
      begun: 0
    })
    this.clients = Array.from({ length: clients }, (_, number) => this.client(number))
    this.clients.push(this.gauge())
  }

  // Counts the unfinished sagas by their rows.
  async gauge() {
    while (!this.stopping) {
      const count = await this.world
        .query('select count(*) from sagad.saga where ended_at is null', 3)
        .catch(() => undefined)
      if (count !== undefined) this.unfinished = Number(count)
      await sleep(600)
    }
  }

  async client(number) {
    for (let count = 0; !this.stopping; count++) {
      while (
        !this.stopping &&
        (this.unfinished > this.backlog || this.begun > ((Date.now() - this.started) / 1000) * this.rate)
      )
        await sleep(20)
      if (this.stopping) return
      this.begun++
      const shape = chooseShape(this.random, this.world.without)
      const name = `${shape}-${number}-${count}`
      const input = inputOf(shape, name, this.random)
      this.notes.tried(name, shape, input)
      const id = await this.start(name, shape, input)
      if (id) this.follow(name, shape, input, id)
    }
  }

  async start(name, shape, input) {
    const path = this.random() < 0.2 ? '/v1/sagas?wait=1s' : '/v1/sagas'
    // Repeats the start until it is answered. A saga that was started and that no client knows would wait for its
    // signal for ever.
    for (; !this.stopping || Date.now() < this.stopped + 60000;) {
      const answer = await this.world.ask('POST', path, { saga: shape, id: name, input })
      if (answer?.status === 201 || answer?.status === 200) {
        if (!answer.json?.id) this.notes.complain(`the start of ${name} was acknowledged without an id: ${answer.text}`)
        this.notes.started(name, answer.json.id)
        return answer.json.id
      }
      if (!answer) this.notes.counts.lost++
      else if (answer.status === 503 || answer.status === 429) this.notes.counts.refused++
      else this.notes.complain(`the start of ${name} was answered with ${answer.status}: ${answer.text}`)
      if (answer && answer.status < 500 && answer.status !== 429) return undefined
      await sleep(20 + this.random() * 80)
    }
    return undefined
  }

  // Runs the errands that a start leads to, while the client starts the next saga.
  follow(name, shape, input, id) {
    if (shapes[shape].signal)
      this.errand(
        () =>
          this.say('signal', id, (token) => [
            'POST',
            `/v1/sagas/${id}/signals/go`,
            { token },
            { headers: { 'idempotency-key': token } }
          ]),
        true
      )
    const luck = this.random()
    if (luck < 0.04)
      this.errand(() => this.say('abort', id, (token) => ['POST', `/v1/sagas/${id}/abort`, { note: token }]))
    else if (luck < 0.06) this.errand(() => this.pause(id))
    else if (luck < 0.09) this.errand(() => this.again(name, shape, input))
    else if (luck < 0.14) this.errand(() => this.look(id))
  }

  // Runs an errand. A `needed` one is never dropped, because its work would stay undone for ever.
  errand(run, needed = false) {
    if (!needed && this.errands.size > 600) {
      this.errandsDropped++
      return
    }
    const promise = run()
      .catch((error) => this.notes.complain(`an errand: ${error.stack}`))
      .finally(() => this.errands.delete(promise))
    this.errands.add(promise)
  }

  // Repeats a verb until an engine answers it. 409 means that the saga is past it.
  async say(kind, id, make) {
    const word = this.notes.word(kind, id)
    await sleep(this.random() < 0.5 ? 0 : this.random() * 300)
    for (const end = Date.now() + errandSeconds * 1000; Date.now() < end; await sleep(50 + this.random() * 100)) {
      word.sent++
      const answer = await this.world.ask(...make(word.token))
      if (!answer || answer.status === 503 || answer.status === 429) continue
      if (answer.status >= 200 && answer.status < 300) {
        word.acknowledged = true
        word.status = answer.status
      } else if (answer.status !== 409) {
        this.notes.complain(`the ${kind} of ${id} was answered with ${answer.status}: ${answer.text}`)
      }
      return word
    }
    return word
  }

  async pause(id) {
    await this.say('pause', id, (note) => ['POST', `/v1/sagas/${id}/pause`, { note }])
    await sleep(this.random() * 200)
    for (;;) {
      // whatever else happens, no saga stays paused
      const word = await this.resume(id)
      if (word.acknowledged || (await this.hasEnded(id)) || !(await this.isPaused(id))) return
    }
  }

  resume(id) {
    return this.say('resume', id, (note) => ['POST', `/v1/sagas/${id}/resume`, { note }])
  }

  async isPaused(id) {
    const answer = await this.world.ask('GET', `/v1/sagas/${id}`)
    return answer?.status !== 200 || answer.json.status === 'paused'
  }

  // Starts the saga once more. The same name means the same saga, and another input is refused.
  async again(name, shape, input) {
    for (const end = Date.now() + errandSeconds * 1000; Date.now() < end; await sleep(100)) {
      const other = this.random() < 0.5
      const answer = await this.world.ask('POST', '/v1/sagas', {
        saga: shape,
        id: name,
        input: other ? { ...input, other: true } : input
      })
      if (!answer || answer.status === 503 || answer.status === 429) continue
      if (other && answer.status !== 422)
        this.notes.complain(`a start of ${name} with another input was answered with ${answer.status}: ${answer.text}`)
      if (!other && answer.status !== 200)
        this.notes.complain(`the second start of ${name} was answered with ${answer.status}: ${answer.text}`)
      if (!other && answer.json?.id) this.notes.started(name, answer.json.id)
      return
    }
  }

  async hasEnded(id) {
    const before = this.notes.vanished
    const answer = await this.world.ask('GET', `/v1/sagas/${id}`)
    if (!answer || answer.status === 503) return false
    if (answer.status !== 200) {
      this.notes.complain(`the saga ${id}, which was acknowledged, was answered with ${answer.status}: ${answer.text}`)
      return true
    }
    if (!['completed', 'compensated', 'abandoned'].includes(answer.json.status)) return false
    // A read is no acknowledgement. What it shows may be on this server only, and gone with it.
    if (this.notes.unconfirmed || this.notes.vanished !== before) return false
    this.notes.final(id, answer.text)
    return true
  }

  async look(id) {
    for (
      const end = Date.now() + errandSeconds * 1000;
      Date.now() < end && !(await this.hasEnded(id));
      await sleep(500)
    );
  }

  // Starts no new sagas, and waits for the errands that have begun.
  async stop() {
    this.stopping = true
    this.stopped = Date.now()
    await Promise.all(this.clients)
    await Promise.all(this.errands)
  }
}
