// One round: a world of its own, load on it, and faults one after the other, some of which last while the next ones
// strike. Then everything is healed, all sagas end, and the judge looks at them.
import { judge } from '../judge/judge.mjs'
import { readEvidence, storyOf } from '../judge/evidence.mjs'
import { mayAskAgain, sleep } from '../../lib/world.mjs'
import { ask } from './http.mjs'
import { Load } from './load.mjs'
import { Notes } from './notes.mjs'
import { People } from './people.mjs'
import { leaseMs } from './world.mjs'

export class Round {
  // `next()` returns the next fault, or undefined when no more are to come. `fired(fault, label)` is told what
  // happened.
  constructor(world, random, { tried = new Map(), load = {}, settleSeconds = 360 } = {}) {
    Object.assign(this, {
      world,
      random,
      tried,
      options: load,
      settleSeconds,
      under: new Set(),
      struck: new Set(),
      notes: new Notes(),
      measures: {},
      troubles: []
    })
  }

  async go(next, fired, seconds) {
    const { world, notes, random } = this
    const from = Date.now()
    await world.startAll()
    await this.definitionsAreKnown()
    this.measure('ms to set up', Date.now() - from)
    this.people = new People(world, notes, random)
    this.load = new Load(world, notes, random, this.options)
    await sleep(500)
    const end = Date.now() + seconds * 1000
    for (let fault = next(); fault && Date.now() < end; fault = next()) {
      const label = await fault.fire(this).catch((error) => {
        this.troubles.push(`${fault.name}: ${error.stack}`)
      })
      this.struck.add(fault)
      fired(fault, label)
      await sleep(random() * 150)
    }
    await Promise.all(this.under)
    await this.settle()
    return this.verdict()
  }

  async definitionsAreKnown() {
    for (const engine of this.world.engines) {
      for (let tries = 0; tries < 300; tries++) {
        if ((await ask(engine.host, engine.port, 'GET', '/v1/definitions/order', undefined))?.status === 200) break
        await sleep(50)
      }
    }
  }

  background(promise) {
    const kept = promise
      .catch((error) => this.troubles.push(String(error.stack)))
      .finally(() => this.under.delete(kept))
    this.under.add(kept)
  }

  // Waits until this many engines live, which faults must leave.
  async someoneLives(count) {
    for (let tries = 0; tries < 400 && this.world.living().length < count; tries++) await sleep(20)
  }

  measure(what, ms) {
    ;(this.measures[what] ??= []).push(ms)
  }

  // Measures the time until a start is acknowledged again.
  async progress(what, seconds = 20) {
    const [from, before] = [Date.now(), this.notes.counts.starts]
    while (this.notes.counts.starts === before && Date.now() - from < seconds * 1000) await sleep(10)
    const ms = Date.now() - from
    this.measure(`${what}: ms to the next acknowledged start`, ms)
    if (ms > 4000) console.log(`# ${new Date().toISOString()} ${what}: ${ms} ms to the next acknowledged start`)
  }

  // Measures how long the other engines take to get the shards of a process that is dead or stopped. The figure counts
  // only when one of them was there all the time, with PostgreSQL, and the stopped one has not woken.
  async takeover(what, engine) {
    const { pid } = engine.child
    const from = Date.now()
    const ready = await Promise.all(
      this.world.engines.map(
        (other) => other !== engine && ask(other.host, other.port, 'GET', '/readyz', undefined, { seconds: 1 })
      )
    )
    const can = ({ other, child }) =>
      other.child === child &&
      !other.down &&
      !other.paused &&
      !other.cutOff &&
      !other.proxies.some((proxy) => proxy.refusing || proxy.frozen)
    let heirs = this.world.engines
      .filter((_, i) => ready[i]?.status === 200)
      .map((other) => ({ other, child: other.child }))
    for (; Date.now() - from < 30000 && !this.world.over; await sleep(100)) {
      const awake = !engine.down && !engine.paused && engine.child.pid === pid
      const left = await this.world
        .query(
          `select count(*) from sagad.shard where owner is null or split_part(owner_identity, ' ', 4) = '${pid}'`,
          3
        )
        .catch(() => undefined)
      heirs = heirs.filter(can)
      if (left === undefined || heirs.length === 0) return
      if (left !== '0' && awake && Date.now() - from < leaseMs + 2000) return
      if (left === '0' || awake) break
    }
    const ms = Date.now() - from
    this.measure(`${what}: ms until others have its shards`, ms)
    if (ms <= leaseMs + 2000) return
    this.late = true
    console.log(
      `# ${new Date().toISOString()} ${what} of ${engine.name} (${pid}): ${ms} ms until others had its shards`
    )
  }

  // Heals everything.
  async heal() {
    const { world } = this
    world.aim.wanted = undefined
    world.door.wanted = undefined
    world.door.answer = undefined
    for (const fault of this.struck) fault.heal?.(this)
    for (const engine of world.engines) {
      for (const proxy of engine.proxies) {
        proxy.refusing = false
        proxy.thaw()
      }
      if (engine.paused) world.continueEngine(engine)
      if (engine.down) world.launchEngine(engine)
    }
    if (!(await world.allReady(240))) this.troubles.push('the engines are not ready within 240 s after all was healed')
  }

  async settle() {
    const { world } = this
    await this.heal()
    const healed = Date.now()
    await this.load.stop()
    // Clients go on until each of their starts is answered. The time that sagas take to end counts from here.
    const from = Date.now()
    let left = ''
    for (let looks = 1; Date.now() - from < this.settleSeconds * 1000; await sleep(200), looks++) {
      // A saga that was paused twice, because nobody answered the first time, may be paused by the first request after
      // it was resumed.
      if (looks % 10 === 0) await this.resumePaused()
      left = await world
        .query('select (select count(*) from sagad.saga where ended_at is null) + (select count(*) from sagad.inbox)')
        .catch(() => '?')
      if (left === '0') break
    }
    this.measure('ms from healed to all ended', Date.now() - healed)
    await this.people.stop()
    this.left = left
  }

  async resumePaused() {
    const paused = await this.world.query("select id from sagad.saga where status = 'paused'").catch(() => '')
    for (const id of paused.split('\n').filter(Boolean)) await this.load.resume(id)
  }

  async verdict() {
    const { world, notes } = this
    // An ended saga that a client has read must read the same through any engine.
    for (const id of [...notes.finals.keys()].slice(0, 300)) {
      for (let tries = 0; tries < 50; tries++) {
        const answer = await world.ask('GET', `/v1/sagas/${id}`)
        if (answer?.status === 200) notes.final(id, answer.text)
        if (answer && answer.status !== 503) break
        await sleep(50)
      }
    }
    const from = Date.now()
    const evidence = await readEvidence(world, notes)
    const found = await judge(evidence, { settled: true, clocksJump: this.clocksJump })
    const accuse = (rule, what) => found.violations.push({ rule, saga: '', what })
    let replay
    // On a busy machine a statement may have no answer for a lease. Then the engine says that the client may ask again.
    for (
      const end = Date.now() + 240000;
      (replay = await world.sagactlAsync(['replay', '--all'])).code === mayAskAgain && Date.now() < end;
    )
      await sleep(500)
    this.measure('ms to judge', Date.now() - from)
    if (replay.code !== 0) accuse('fold', `sagactl replay --all: ${replay.code} ${replay.out.slice(-1500)}`)
    for (const what of world.surprises) accuse('engines_live', what)
    for (const what of this.troubles) accuse('campaign', what)
    const named = [...new Set(found.violations.map((violation) => violation.saga).filter(Boolean))]
    found.stories = await storyOf(world, evidence, named.slice(0, 4))
    await this.leave(accuse)
    Object.assign(found.counts, {
      acknowledged: notes.counts.starts,
      refused: notes.counts.refused,
      lost: notes.counts.lost,
      words: notes.words.length,
      verdicts: this.people.verdicts,
      decisions: this.people.decisions,
      looks: notes.finals.size,
      requests: evidence.ledger.length,
      errands_left_out: this.load.errandsDropped
    })
    return { ...found, late: this.late, measures: this.measures, replay: replay.out.trim().split('\n').at(-1) }
  }

  // Sends SIGTERM. The engines drain and end with 0.
  async leave(accuse) {
    await Promise.all(
      this.world.engines.map(async (engine) => {
        engine.child.expected = true
        engine.child.kill('SIGTERM')
        const from = Date.now()
        const end = await Promise.race([engine.child.ended, sleep(60000)])
        this.measure('ms to leave', Date.now() - from)
        if (end?.code !== 0) accuse('engines_live', `${engine.name} does not leave in peace: ${JSON.stringify(end)}`)
      })
    )
  }
}
