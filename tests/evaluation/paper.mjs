// A registry of paper: the API of sagad as agents see it, in memory, without a log and without crashes. It tests the
// scripted agent and the judge. Each of its `bugs` breaks one promise, and the evaluation must find every bug.
import { createServer } from 'node:http'
import { createHash } from 'node:crypto'
import { ask } from '../lib/http.mjs'

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// The bugs by name: [what is broken, what the judge says to it].
export const bugs = {
  'key-has-arguments': ['the key changes with the words of a call', /effects of \w+ for one wish/],
  'racers-all-call': ['callers at the same time do not know of each other', /effects of \w+ for one wish/],
  'lost-answer-is-failure': [
    'an unknown outcome is taken for a failure',
    /operations are completed|undone 0 times|had no effect/
  ],
  'blind-retry': ['an unknown outcome is called again without looking', /effects under the key/],
  'undo-forgotten': ['the last undo is left out', /compensated, and/],
  'undo-in-order-of-doing': ['undone from the first to the last', /undone after it/],
  'answer-made-up': ['a duplicate gets an answer of its own', /one was told|names/],
  'ends-before-it-is-done': ['completed although the saga was aborted', /completed, and/],
  'sign-off-used-twice': ['a second click on a bypass executes again', /signed off/],
  'undo-of-what-was-before': ['compensation takes away what was there before', /somebody else had set/],
  circles: ['nobody stops an agent that goes round in a circle', /went round in a circle/],
  'never-ends': ['an abort is accepted and nothing comes of it', /stranded/]
}

export class Paper {
  constructor(shopPort, shop, { bug, share = 0.25 } = {}) {
    this.shopPort = shopPort
    this.shop = shop
    this.bug = bug
    this.share = share // the part of its chances that the bug takes
    this.chances = 1 - share
    this.sagas = new Map()
    this.operations = new Map()
    this.escalations = []
    this.signOffs = new Map()
  }

  strikes(bug) {
    if (this.bug !== bug) return false
    this.chances += this.share
    if (this.chances < 1) return false
    this.chances--
    return true
  }

  async listen() {
    this.server = createServer((request, answer) => {
      const parts = []
      request.on('data', (part) => parts.push(part))
      request.on('end', () =>
        this.serve(request, Buffer.concat(parts).toString('utf8'))
          .catch((error) => problem(500, 'internal', String(error.stack)))
          .then(({ status = 200, body, headers = {} }) => {
            answer.writeHead(status, { 'content-type': 'application/json', ...headers })
            answer.end(JSON.stringify(body))
          })
      )
    })
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    this.port = this.server.address().port
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }

  async serve(request, text) {
    const url = new URL(request.url, 'http://paper')
    const body = text ? JSON.parse(text) : {}
    const parts = url.pathname.split('/').slice(2)
    const at = `${request.method} ${parts[0]}${parts[2] ? `/${parts[2]}` : ''}`
    switch (at) {
      case 'POST sagas':
        return this.open(body.id ?? request.headers['idempotency-key'], body)
      case 'GET sagas':
        return parts[1] ? { body: this.show(this.sagas.get(parts[1])) } : { body: { items: [] } }
      case 'GET sagas/log':
        return { body: { items: this.sagas.get(parts[1]).log } }
      case 'POST sagas/calls':
        return this.call(this.sagas.get(parts[1]), body)
      case 'POST sagas/complete':
        return this.complete(this.sagas.get(parts[1]))
      case 'POST sagas/abort':
        return this.abort(this.sagas.get(parts[1]))
      case 'POST operations':
        return this.call(this.run(body.run), body)
      case 'GET operations':
        if (parts[1])
          return { body: { run: [...this.sagas.values()].find((saga) => saga.operations.has(parts[1])).id } }
        return { body: { items: [...this.run(url.searchParams.get('run')).operations.values()].map(record) } }
      case 'POST operations/bypass':
        if (!this.signOffs.has(parts[1])) this.signOffs.set(parts[1], 'open')
        return { body: {} }
      case 'GET escalations':
        return { body: { items: this.escalations.filter((one) => one.status === 'open') } }
      case 'POST escalations/resolve':
        return this.resolve(this.escalations[Number(parts[1])], body)
      default:
        return problem(404, 'not-found', at)
    }
  }

  open(id, body) {
    const known = this.sagas.has(id)
    if (!known) {
      const saga = { id, status: 'running', operations: new Map(), log: [], order: [] }
      this.sagas.set(id, saga)
      setTimeout(() => this.abort(saga), parseInt(body.deadline) * 1000).unref()
    }
    return { status: known ? 200 : 201, body: this.show(this.sagas.get(id)) }
  }

  run(name) {
    if (!this.sagas.has(`~${name}`))
      this.sagas.set(`~${name}`, {
        id: name,
        status: 'running',
        operations: new Map(),
        log: [],
        order: [],
        isRun: true
      })
    return this.sagas.get(`~${name}`)
  }

  show(saga) {
    return {
      id: saga.id,
      status: saga.status,
      steps: [...saga.operations.values()].map((one) => ({ ...record(one), id: one.step, status: one.state }))
    }
  }

  // --- one call ---

  async call(saga, { tool, step = `~${tool}`, scope = '', args, turn }) {
    const words = this.bug === 'key-has-arguments' ? JSON.stringify(args) : ''
    const name = (generation) =>
      createHash('sha256')
        .update(JSON.stringify([saga.id, step, tool, scope, generation, words]))
        .digest('hex')
        .slice(0, 32)
    let generation = 0
    while (saga.operations.has(name(generation + 1))) generation++
    let key = name(generation)
    if (this.signOffs.get(key) === 'open' || (generation > 0 && this.strikes('sign-off-used-twice'))) {
      this.signOffs.set(key, 'used')
      key = name(++generation)
    }
    let operation = saga.operations.get(key)
    const isNew = !operation
    if (operation && operation.state === 'in_flight' && this.strikes('racers-all-call')) {
      await this.attempt({ ...operation, key: key.replace(/^..../, 'race') })
      return problem(409, 'in-flight', 'somebody is at it')
    }
    if (!operation) {
      if (saga.status !== 'running') return problem(409, 'closed', 'the saga has ended')
      operation = {
        key,
        saga,
        step,
        tool,
        args,
        state: 'in_flight',
        took_effect: 'maybe',
        attempts: 0,
        isRead: tool.startsWith('catalog') || tool.startsWith('shipping')
      }
      saga.operations.set(key, operation)
      saga.order.push(operation)
      operation.settled = this.drive(operation)
    }
    await Promise.race([operation.settled, sleep(2000)])
    if (operation.state === 'in_flight') return problem(409, 'in-flight', 'not yet')
    if (operation.state === 'unknown') return problem(409, 'awaiting-operator', 'a person must say')
    if (operation.state === 'failed') return problem(424, 'tool-failed', operation.error)
    if (operation.isRead && !isNew) await this.drive(operation)
    if (turn !== saga.turn) saga.circle = undefined
    saga.turn = turn
    const circle = `${key} ${JSON.stringify(operation.result)} ${JSON.stringify({ ...args, asked_at: 0 })}`
    saga.circle = { said: circle, times: saga.circle?.said === circle ? saga.circle.times + 1 : 1 }
    if (saga.circle.times > 3 && this.bug !== 'circles') return problem(409, 'loop-detected', 'round and round')
    const result =
      !isNew && this.strikes('answer-made-up') ? { id: `ch-${Math.floor(Math.random() * 1e6)}` } : operation.result
    return { body: { ...record(operation), result }, headers: isNew ? {} : { 'idempotent-replayed': 'true' } }
  }

  async drive(operation) {
    if (operation.tool === 'customers.tag') {
      let before
      while (![200, 404].includes((before = await this.askShop('GET', `/tags/${operation.args.customer}`))?.status))
        await sleep(50)
      if (before.status === 200) {
        Object.assign(operation, {
          state: 'completed',
          took_effect: this.strikes('undo-of-what-was-before') ? 'yes' : 'before',
          result: { id: before.body.id }
        })
        return
      }
    }
    for (;;) {
      const outcome = await this.attempt(operation)
      operation.attempts++
      if (outcome.state === 'unknown') {
        if (this.strikes('lost-answer-is-failure'))
          return void Object.assign(operation, { state: 'failed', took_effect: 'no', error: 'timeout' })
        const found = await this.lookUp(operation)
        if (found) return void Object.assign(operation, { state: 'completed', took_effect: 'yes', result: found })
        if (this.shop === 'blind' && !operation.isRead && !this.strikes('blind-retry')) return this.ask(operation)
      } else if (outcome.state !== 'again') return void Object.assign(operation, outcome)
      await sleep(50)
    }
  }

  path(operation) {
    const { tool, args } = operation
    if (tool === 'catalog.price') return ['GET', `/prices/${args.sku}`]
    if (tool === 'shipping.track') return ['GET', `/shipments/${args.shipment}`]
    if (tool === 'customers.tag') return ['PUT', `/tags/${args.customer}`]
    return ['POST', tool.startsWith('stock') ? '/reservations' : tool.startsWith('cards') ? '/charges' : '/mails']
  }

  async attempt(operation) {
    const answer = await this.askShop(...this.path(operation), operation.args, operation.key)
    if (!answer || (answer.status >= 500 && answer.status !== 503)) return { state: 'unknown' }
    if (answer.status === 429) return { state: 'again' }
    if (answer.status === 503) return { state: 'unknown' }
    if (answer.status >= 400) return { state: 'failed', took_effect: 'no', error: JSON.stringify(answer.body) }
    return {
      state: 'completed',
      took_effect: operation.isRead ? 'no' : 'yes',
      result: operation.isRead ? answer.body : { id: answer.body.id }
    }
  }

  // Finds what became of a key, where the shop tells that. It looks after the time in which a late effect may come.
  async lookUp(operation) {
    if (
      this.shop !== 'ignores-keys' ||
      operation.isRead ||
      operation.tool === 'customers.tag' ||
      this.strikes('blind-retry')
    )
      return undefined
    await sleep(800)
    for (;;) {
      const answer = await this.askShop('GET', `${this.path(operation)[1]}/by-key/${operation.key}`)
      if (answer?.status === 200) return { id: answer.body.id }
      if (answer?.status === 404) return undefined
      await sleep(50)
    }
  }

  async askShop(method, path, body, key) {
    try {
      const answer = await ask({
        port: this.shopPort,
        method,
        path,
        text: body === undefined || method === 'GET' ? undefined : JSON.stringify(body),
        headers: key ? { 'idempotency-key': key } : {},
        seconds: 2
      })
      return { status: answer.status, body: JSON.parse(answer.text) }
    } catch {
      return undefined
    }
  }

  ask(operation) {
    operation.state = 'unknown'
    this.escalations.push({
      n: this.escalations.length,
      saga: operation.saga.id,
      operation: operation.key,
      reason: 'unknown',
      status: 'open',
      opened_at: new Date().toISOString(),
      of: undefined
    })
    return new Promise((resolve) => {
      operation.told = resolve
    })
  }

  resolve(escalation, { as, result }) {
    if (escalation.status !== 'open') return problem(409, 'already-decided', 'somebody was first')
    escalation.status = 'resolved'
    for (const saga of this.sagas.values()) {
      const operation = saga.operations.get(escalation.operation)
      if (!operation) continue
      Object.assign(
        operation,
        as === 'happened'
          ? { state: 'completed', took_effect: 'yes', result }
          : { state: 'failed', took_effect: 'no', error: 'it did not happen' }
      )
      operation.told()
    }
    return { body: escalation }
  }

  // --- the end of a saga ---

  async complete(saga) {
    await Promise.all(saga.order.map((operation) => operation.settled))
    if (saga.status !== 'running')
      return saga.status === 'completed' ? { body: this.show(saga) } : problem(409, 'closed', 'it was aborted')
    saga.status = 'completed'
    return { body: this.show(saga) }
  }

  async abort(saga) {
    if (saga.status === 'completed') return problem(409, 'past-point-of-no-return', 'it is completed')
    if (saga.order.some((operation) => operation.tool.startsWith('mail') && operation.state === 'completed'))
      return problem(409, 'past-point-of-no-return', 'the mail is out')
    if (saga.status !== 'running') return { status: 202, body: this.show(saga) }
    saga.status = 'compensating'
    if (!this.strikes('never-ends')) this.undo(saga)
    return { status: 202, body: this.show(saga) }
  }

  async undo(saga) {
    await Promise.all(saga.order.map((operation) => operation.settled))
    if (saga.order.some((operation) => operation.tool.startsWith('mail') && operation.state === 'completed')) {
      saga.status = 'completed'
      return
    }
    let plan = saga.order.filter((operation) => operation.took_effect === 'yes').reverse()
    if (this.strikes('undo-in-order-of-doing')) plan.reverse()
    if (this.strikes('undo-forgotten')) plan.pop()
    if (this.strikes('ends-before-it-is-done')) {
      saga.status = 'completed'
      return
    }
    for (const operation of plan) {
      while (!(await this.takeBack(operation))) await sleep(50)
      operation.took_effect = 'undone'
    }
    saga.status = 'compensated'
  }

  async takeBack(operation) {
    const { id } = operation.result
    const path = operation.tool.startsWith('stock')
      ? `/reservations/${id}`
      : operation.tool.startsWith('cards')
        ? `/charges/${id}`
        : `/tags/${operation.args.customer}`
    const answer = await this.askShop('DELETE', path, undefined, `undo-${operation.key}`)
    return answer?.status === 200 || answer?.status === 404
  }
}

function record(operation) {
  return {
    key: operation.key,
    state: operation.state,
    took_effect: operation.took_effect,
    step: operation.step,
    tool: operation.tool,
    result: operation.result,
    error: operation.error,
    attempts: operation.attempts
  }
}

function problem(status, type, detail) {
  return { status, body: { type: `urn:paper:${type}`, status, detail } }
}
