// The world of the campaign: several engines, each behind its own proxies to PostgreSQL, and the shop behind its door.
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { World, freePort, sleep } from '../../lib/world.mjs'
import { Door } from './door.mjs'
import { ask } from './http.mjs'
import { Aim, Proxy } from './proxy.mjs'
import { definitions } from './shapes.mjs'

export const leaseMs = 2000 // the shortest lease that sagad allows

export class CampaignWorld extends World {
  constructor(random, { engineCount = 3 } = {}) {
    super()
    Object.assign(this, {
      random,
      engineCount,
      surprises: [],
      aim: new Aim(),
      leaseArgs: ['--lease', `${leaseMs}ms`],
      cleanups: []
    })
  }

  // Returns the directories with the sockets of PostgreSQL, one for each node.
  nodes() {
    return [this.directory]
  }

  async startAll(settings = []) {
    // The judge reads when each row was committed.
    this.settings = ['-c', 'track_commit_timestamp=on', '-c', 'max_connections=120', ...settings]
    await this.startPostgres(this.settings)
    await this.startShop()
    await this.startEngineSet()
  }

  async startEngineSet() {
    this.migrate()
    this.door = new Door(this.shopPort)
    await this.door.listen(await freePort(), this.shopHost())
    for (let number = 0; number < this.engineCount; number++) this.engines.push(await this.makeEngine(number))
    for (const engine of this.engines) this.launchEngine(engine)
    for (const engine of this.engines) await this.engineReady(engine)
    this.port = this.engines[0].port
    await this.defineAt(this.engines[0], definitions(`http://${this.shopHost()}:${this.door.port}`))
  }

  shopHost() {
    return '127.0.0.1'
  }

  // Returns the program and the arguments before its own.
  program() {
    return [this.sagadPath, []]
  }

  async defineAt(engine, document) {
    let answer
    // On a machine that is busy with other tests, a statement may have no answer for a lease. Then the engine says that
    // the client may ask again.
    for (const end = Date.now() + 240000; Date.now() < end && (!answer || answer.status === 503); await sleep(100)) {
      answer = await ask(engine.host, engine.port, 'POST', '/v1/definitions', document, { seconds: 120 })
    }
    if (answer?.status !== 200) throw new Error(`the definitions are refused: ${answer?.text}`)
  }

  async engineReady(engine, seconds = 240) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(20)) {
      if (engine.child.end) throw new Error(`${engine.name} ended: ${JSON.stringify(engine.child.end)}`)
      const answers = await Promise.all(
        this.engines.map((one) => ask(one.host, one.port, 'GET', one === engine ? '/livez' : '/readyz'))
      )
      const own = await ask(engine.host, engine.port, 'GET', '/readyz')
      if (
        answers[engine.number]?.status === 200 &&
        (own?.status === 200 || answers.some((answer, i) => i !== engine.number && answer?.status === 200))
      )
        return
    }
    throw new Error(`${engine.name} is not ready after ${seconds} s`)
  }

  async makeEngine(number) {
    const engine = {
      number,
      name: `sagad-${number}`,
      host: '127.0.0.1',
      port: await freePort(),
      proxies: [],
      env: {},
      down: false,
      paused: false
    }
    for (const [i, target] of this.nodes().entries()) {
      const proxy = new Proxy(engine, join(this.directory, `proxy-${number}-${i}`), target, this.aim)
      await proxy.listen()
      engine.proxies.push(proxy)
    }
    const hosts = engine.proxies.map((proxy) => proxy.directory).join(',')
    const ports = engine.proxies.map(() => 5432).join(',')
    engine.dsn = `host=${hosts} port=${ports} user=postgres dbname=postgres`
    if (engine.proxies.length > 1) engine.dsn += ' target_session_attrs=read-write'
    return engine
  }

  launchEngine(engine) {
    engine.down = false
    engine.paused = false
    engine.expected = false
    const [program, before] = this.program(engine)
    engine.child = this.launch(
      engine.name,
      program,
      [
        ...before,
        '--database',
        engine.dsn,
        '--listen',
        `${engine.host}:${engine.port}`,
        ...this.leaseArgs,
        '--exec-as-me',
        '--log-format',
        'text',
        '--park-after',
        '500ms',
        ...(engine.args ?? [])
      ],
      { env: { ...process.env, ...engine.env } }
    )
    const child = engine.child
    child.ended.then((end) => {
      if (child.expected || this.over) return
      this.surprises.push(
        `${engine.name} ended by itself: ${JSON.stringify(end)} ` +
          `${readFileSync(this.log(engine.name), 'utf8').slice(-1500)}`
      )
      engine.down = true
    })
  }

  // Sends SIGKILL, whatever the engine is doing, also to a stopped one.
  async killEngine(engine) {
    engine.down = true
    engine.child.expected = true
    engine.child.kill('SIGKILL')
    await engine.child.ended
  }

  stopEngine(engine) {
    engine.paused = true
    engine.child.kill('SIGSTOP')
  }

  continueEngine(engine) {
    engine.paused = false
    engine.child.kill('SIGCONT')
  }

  living() {
    return this.engines.filter((engine) => !engine.down && !engine.paused)
  }

  pick(list) {
    return list[Math.floor(this.random() * list.length)]
  }

  // Asks any engine, even one that is dead, frozen or cut off, because a client does not know that.
  ask(method, path, body, options) {
    const engine = this.random() < 0.9 ? this.pick(this.living()) : undefined
    const { host, port } = engine ?? this.pick(this.engines)
    return ask(host, port, method, path, body, options)
  }

  // Waits until every running engine is ready, or the time is over.
  async allReady(seconds = 30) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(50)) {
      const asked = await Promise.all(
        this.engines.map((engine) => ask(engine.host, engine.port, 'GET', '/livez', undefined, { seconds: 2 }))
      )
      const ready = await Promise.all(
        this.engines.map((engine) => ask(engine.host, engine.port, 'GET', '/readyz', undefined, { seconds: 2 }))
      )
      if (asked.every((answer) => answer?.status === 200) && ready.some((answer) => answer?.status === 200)) return true
    }
    return false
  }

  // --- PostgreSQL without holding this process up: the proxies live in it ---

  run(program, args, { seconds = 60, ...options } = {}) {
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/', ...options })
      const out = []
      const err = []
      const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000)
      child.stdout.on('data', (chunk) => out.push(chunk))
      child.stderr.on('data', (chunk) => err.push(chunk))
      child.on('error', reject)
      child.on('close', (code) => {
        clearTimeout(timer)
        if (code === 0) resolve(Buffer.concat(out).toString('utf8').trim())
        else
          reject(
            new Error(
              `${program} ${args.slice(0, 3).join(' ')}: ${code} ${Buffer.concat(err).toString('utf8').slice(-500)}`
            )
          )
      })
    })
  }

  // Repeats a request that may be repeated.
  async told(engine, path, body, headers) {
    let answer
    for (
      const end = Date.now() + 30000;
      Date.now() < end && (!answer || answer.status === 503 || answer.status === 429);
      await sleep(50)
    )
      answer = await ask(engine.host, engine.port, 'POST', path, body, { headers })
    return answer
  }

  query(text, seconds = 10) {
    return this.run(
      join(this.binaries, 'psql'),
      ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', this.dsn, '-c', text],
      { seconds }
    )
  }

  // Waits for PostgreSQL without blocking.
  async postgresAnswers(directory = this.directory, seconds = 60) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(30)) {
      const up = await this.run(
        join(this.binaries, 'psql'),
        ['-X', '-q', '-A', '-t', '-d', `host=${directory} user=postgres dbname=postgres`, '-c', 'select 1'],
        { seconds: 5 }
      ).catch(() => '')
      if (up === '1') return true
    }
    return false
  }

  sagactlAsync(args, seconds = 600) {
    const engine = this.engines[0]
    return new Promise((resolve) => {
      const child = spawn(this.sagactlPath, ['--server', `http://${engine.host}:${engine.port}`, ...args], {
        stdio: ['ignore', 'pipe', 'pipe']
      })
      let out = ''
      const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000)
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => {
          out = (out + chunk).slice(-4000)
        })
      child.on('close', (code) => {
        clearTimeout(timer)
        resolve({ code, out })
      })
    })
  }

  // Keeps the logs, the ledger and the rows for a later search for the cause.
  keep(directory) {
    mkdirSync(directory, { recursive: true })
    for (const name of readdirSync(this.directory))
      if (/\.(log|jsonl)$/.test(name)) cpSync(join(this.directory, name), join(directory, name))
    spawnSync(join(this.binaries, 'pg_dump'), ['-d', this.dsn, '-n', 'sagad', '-f', join(directory, 'rows.sql')])
    return directory
  }

  async stop() {
    this.over = true
    for (const engine of this.engines) for (const proxy of engine.proxies) proxy.close()
    this.door?.close()
    for (const undo of this.cleanups.reverse()) await undo()
    await super.stop()
  }
}
