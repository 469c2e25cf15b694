// A world for tests of the whole: its own PostgreSQL cluster, sagad and the example shop as processes that can be
// killed one by one, and a reader of the shop's ledger. Everything goes away when the test ends, however it ends.
//
// The programs come from the environment: SAGAD, SAGACTL, SAGAD_SHOP.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeData } from './cluster_data.mjs'
import { ask, jsonOf } from './http.mjs'

export const mayAskAgain = 6 // the exit code of sagactl when the engine is not ready or too busy
// True for the short form of every day; SAGAD_TEST_LONG=1 is the form of nights.
export const quick = process.env.SAGAD_TEST_LONG !== '1'
// Limits are written for a machine that has time. Tests run side by side, and a limit only says when certainly nothing
// comes any more.
const patience = 4
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// --- promises: one line each, and the exit code ---

let kept = 0
const broken = [] // one line each: name and reason
const oneLine = (name, error) => `${name}: ${String(error?.message ?? error).replace(/\s+/g, ' ')}`.slice(0, 1000)

export async function promise(name, keep, seconds = 120) {
  const begun = Date.now()
  const took = () => `(${((Date.now() - begun) / 1000).toFixed(1)} s)`
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds * patience} s`)), seconds * patience * 1000)
  })
  try {
    await Promise.race([Promise.resolve().then(keep), late])
    console.log(`ok - ${name} ${took()}`)
    kept++
  } catch (error) {
    console.log(`not ok - ${name} ${took()}`)
    console.log(
      String(error?.stack ?? error)
        .split('\n')
        .slice(0, 5)
        .map((line) => `#   ${line}`)
        .join('\n')
    )
    broken.push(oneLine(name, error))
  } finally {
    clearTimeout(timer)
  }
}

export function expect(condition, what, shown) {
  if (!condition)
    throw new Error(
      shown === undefined
        ? what
        : `${what}: ${typeof shown === 'string' ? shown : JSON.stringify(shown)}`.slice(0, 3000)
    )
}

// The last promise of a test.
export const leaves = (world, seconds = 30) =>
  promise(
    'SIGTERM: drained, exit code 0',
    async () => {
      world.sagad.kill('SIGTERM')
      expectEqual((await world.sagad.ended).code, 0, 'exit code')
    },
    seconds
  )

// Members may be in any order.
const sorted = (_, value) =>
  value && typeof value === 'object' && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value

export function expectEqual(found, wanted, what) {
  const a = JSON.stringify(found, sorted)
  const b = JSON.stringify(wanted, sorted)
  if (a !== b) throw new Error(`${what}: found ${a}, expected ${b}`.slice(0, 3000))
}

// Asks `so` again and again until it gives something true, and returns that. After `seconds` the test fails; shown()
// tells more then.
export async function eventually(what, so, { seconds = 60, gap = 50, shown } = {}) {
  for (const end = Date.now() + seconds * 1000; ; await sleep(gap)) {
    const found = await so()
    if (found) return found
    expect(Date.now() < end, `not within ${seconds} s: ${what}`, shown?.())
  }
}

// Runs the test and ends the process: 0 when every promise was kept.
export async function run(world, test) {
  try {
    await test(world)
  } catch (error) {
    console.log(`not ok - the test runs to its end`)
    console.log(
      String(error?.stack ?? error)
        .split('\n')
        .map((line) => `#   ${line}`)
        .join('\n')
    )
    broken.push(oneLine('the test runs to its end', error))
  }
  if (broken.length > 0) world.showLogs()
  await world.stop()
  // The broken promises again, behind the logs, so that they are visible at the end of the output.
  for (const line of broken.slice(0, 15)) console.log(`# broken: ${line}`)
  console.log(`# ${kept} promises kept, ${broken.length} broken`)
  process.exit(broken.length === 0 && kept > 0 ? 0 : 1)
}

// --- processes ---

const children = new Set()
const directories = new Set()
let canDieWithUs

// The kernel kills what we start when this process dies without time to clean up.
function diesWithUs() {
  canDieWithUs ??= spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true']).status === 0
  return canDieWithUs
}

function launch(program, args, options) {
  const command = diesWithUs() ? ['setpriv', '--pdeathsig', 'KILL', '--', program, ...args] : [program, ...args]
  const child = spawn(command[0], command.slice(1), options)
  child.ended = new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 127, signal: null, error }))
    child.on('exit', (code, signal) => resolve({ code, signal }))
  })
  child.ended.then((end) => {
    child.end = end
    children.delete(child)
  })
  children.add(child)
  return child
}

// When branches are counted (tools/coverage), the counters are written first: see killed_counters.c.
function killNow(child) {
  child.kill(process.env.SAGAD_COUNTS === '1' ? 'SIGUSR2' : 'SIGKILL')
  if (process.env.SAGAD_COUNTS === '1') child.kill('SIGCONT')
}

function sweep() {
  for (const child of children) child.kill('SIGKILL')
  for (const path of claims) rmSync(path, { force: true })
  for (const directory of directories)
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
}

process.on('exit', sweep)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))

const refusedByFetch = 10080
const claims = new Set()

function lives(path) {
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

// Claims a port for as long as this process lives, against the tests that run beside it, also those of other runs. Its
// owner may listen much later, or not all the time.
function claim(port) {
  const path = `/tmp/sagad-test-port-${port}`
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' })
  } catch {
    // The owner before could not tidy up. Two processes that find this at once must not both have the port.
    if (!lives(path)) rmSync(path, { force: true })
    return false
  }
  claims.add(path)
  return true
}

// Returns a port that no process has. It is not from the kernel's range for outgoing connections, so that it stays free
// while its owner restarts.
export async function freePort() {
  for (;;) {
    const port = 10000 + Math.floor(Math.random() * 20000)
    if (port === refusedByFetch || !claim(port)) continue
    const free = await new Promise((resolve) => {
      const server = createServer()
      server.on('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (free) return port
  }
}

function program(variable) {
  const path = process.env[variable]
  if (!path || !existsSync(path)) {
    console.log(`not ok - ${variable} names a program (${path ?? 'it is not set'})`)
    process.exit(1)
  }
  return path
}

function postgresBinaries() {
  const base = '/usr/lib/postgresql'
  const versions = existsSync(base)
    ? readdirSync(base).filter((name) => existsSync(join(base, name, 'bin', 'initdb')))
    : []
  versions.sort((a, b) => Number(b) - Number(a))
  return versions.length > 0 ? join(base, versions[0], 'bin') : ''
}

function postgresUser() {
  if (process.getuid() !== 0) return {}
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

// Each segment of the log of these clusters is small, so that the server would make checkpoints early.
const serverSettings = ['fsync=on', 'shared_buffers=64MB', 'max_wal_size=1GB', 'max_connections=60']

// --- the world ---

export class World {
  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), 'sagad-test-'))
    directories.add(this.directory)
    this.user = postgresUser()
    if (this.user.uid !== undefined) chownSync(this.directory, this.user.uid, this.user.gid)
    this.binaries = postgresBinaries()
    this.sagadPath = program('SAGAD')
    this.sagactlPath = program('SAGACTL')
    this.shopPath = program('SAGAD_SHOP')
    this.ledgerPath = join(this.directory, 'ledger.jsonl')
    this.engines = [] // see startEngines()
    this.socketDsn = `host=${this.directory} port=5432 user=postgres dbname=postgres`
    this.dsn = this.socketDsn
    this.isEmpty = false // true before startPostgres(): the cluster comes without the schema of sagad
  }

  log(name) {
    return join(this.directory, name + '.log')
  }

  launch(name, path, args, options = {}) {
    const log = openSync(this.log(name), 'a')
    const child = launch(path, args, { stdio: ['ignore', log, log], ...options })
    closeSync(log)
    return child
  }

  showLogs() {
    for (const name of ['postgres', 'sagad', ...this.engines.map((engine) => engine.name)]) {
      if (!existsSync(this.log(name))) continue
      const lines = readFileSync(this.log(name), 'utf8').trimEnd().split('\n').slice(-40)
      console.log(`# the end of the log of ${name}:`)
      for (const line of lines) console.log(`#   ${line.slice(0, 400)}`)
    }
  }

  // --- PostgreSQL ---

  // Launches a server with its socket in `directory`.
  launchServer(name, data, directory, settings) {
    const place = ['-D', data, '-k', directory, '-p', '5432', '-c', 'listen_addresses=']
    return this.launch(name, join(this.binaries, 'postgres'), [...place, ...settings], {
      ...this.user,
      cwd: this.directory
    })
  }

  async startPostgres(settings = []) {
    const data = join(this.directory, 'data')
    if (!existsSync(data)) {
      await makeData(this, data, async () => {
        await this.serve(data, [])
        this.migrateSchema(this.socketDsn)
        await this.stopPostgres()
      })
    }
    await this.serve(data, settings)
  }

  async serve(data, settings) {
    for (let tries = 0; tries < 600; tries++) {
      if (!this.postgres || this.postgres.end) {
        this.postgres = this.launchServer('postgres', data, this.directory, [
          ...serverSettings.flatMap((setting) => ['-c', setting]),
          ...settings
        ])
      }
      if (
        spawnSync(join(this.binaries, 'pg_isready'), ['-q', '-h', this.directory, '-p', '5432', '-U', 'postgres'])
          .status === 0
      )
        return
      await sleep(100)
    }
    throw new Error('PostgreSQL does not start')
  }

  // Stops the server like `pg_ctl -m immediate stop`: without a checkpoint, so that the next start recovers from the
  // log.
  async killPostgres() {
    this.postgres.kill('SIGQUIT')
    await this.postgres.ended
  }

  async stopPostgres() {
    this.postgres.kill('SIGINT')
    await this.postgres.ended
  }

  sql(text) {
    const asked = spawnSync(
      join(this.binaries, 'psql'),
      ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', this.dsn, '-c', text],
      { encoding: 'utf8', maxBuffer: 1 << 28 }
    )
    if (asked.status !== 0) throw new Error(`psql: ${asked.error ?? asked.stderr}`)
    return asked.stdout.trim()
  }

  // --- sagad ---

  // Runs sagad to its end.
  sagadOnce(args, { seconds = 30, env = {} } = {}) {
    return spawnSync(this.sagadPath, args, {
      encoding: 'utf8',
      timeout: seconds * 1000,
      env: { ...process.env, ...env }
    })
  }

  migrateSchema(dsn) {
    const done = this.sagadOnce(['migrate', '--database', dsn], { seconds: 240 }) // its commits wait for standbys
    if (done.status !== 0) throw new Error(`sagad migrate failed: ${done.status} ${done.stderr}`)
  }

  migrate() {
    this.migrateSchema(this.dsn)
    if (process.env.SAGAD_TEST_ROLE && !this.engineDsn) this.makeEngineRole(process.env.SAGAD_TEST_ROLE)
  }

  // A role for the engines with the rights that `sagad grants-sql` gives, and no others.
  makeEngineRole(role) {
    this.sql(`create role "${role.replaceAll('"', '""')}" login`)
    const grants = this.sagadOnce(['grants-sql', '--role', role])
    if (grants.status !== 0) throw new Error(`sagad grants-sql failed: ${grants.status} ${grants.stderr}`)
    this.sql(grants.stdout)
    this.engineDsn = `${this.dsn} user='${role.replace(/['\\]/g, '\\$&')}'`
  }

  launchSagad(args = []) {
    this.sagadArgs = args
    this.sagad = this.launch('sagad', this.sagadPath, [
      '--database',
      this.engineDsn ?? this.dsn,
      '--listen',
      `127.0.0.1:${this.port}`,
      '--lease',
      '2s',
      '--exec-as-me',
      '--log-format',
      'text',
      ...args
    ])
    return this.sagad
  }

  async startSagad(args = []) {
    if (!this.port) {
      this.port = await freePort()
      this.migrate()
    }
    this.launchSagad(args)
    await this.ready()
  }

  async ready(seconds = 60 * patience) {
    const end = Date.now() + seconds * 1000
    while (Date.now() < end) {
      if (this.sagad.end)
        throw new Error(
          `sagad ended: ${JSON.stringify(this.sagad.end)}\n${readFileSync(this.log('sagad'), 'utf8').slice(-2000)}`
        )
      if ((await this.readiness()) === 200) return
      await sleep(20)
    }
    throw new Error(`sagad is not ready after ${seconds} s`)
  }

  // Returns the status of /readyz; 0 when nobody answers.
  async readiness() {
    try {
      return (await ask({ port: this.port, path: '/readyz', seconds: 5 })).status
    } catch {
      return 0
    }
  }

  // Starts several engines over one database, each {name, port, child}. Tests that use these do not use startSagad().
  async startEngines(count, args = []) {
    this.migrate()
    this.engineArgs = args
    for (let number = 0; number < count; number++)
      this.engines.push({ name: `sagad-${number}`, port: await freePort() })
    for (const engine of this.engines) this.launchEngine(engine)
    for (const engine of this.engines) await this.engineReady(engine)
    this.port = this.engines[0].port
  }

  launchEngine(engine) {
    engine.child = this.launch(engine.name, this.sagadPath, [
      '--database',
      this.engineDsn ?? this.dsn,
      '--listen',
      `127.0.0.1:${engine.port}`,
      '--lease',
      '2s',
      '--exec-as-me',
      '--log-format',
      'text',
      ...this.engineArgs
    ])
  }

  async engineReady(engine, seconds = 60 * patience) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(20)) {
      if (engine.child.end) throw new Error(`${engine.name} ended: ${JSON.stringify(engine.child.end)}`)
      // An engine that owns no shard, because another one owns them all, is alive and not ready.
      if (
        (await this.asks(engine, '/readyz')) ||
        ((await this.asks(engine, '/livez')) && (await this.anyEngineIsReady()))
      )
        return
    }
    throw new Error(`${engine.name} is not ready after ${seconds} s`)
  }

  async asks(engine, path) {
    try {
      return (await ask({ port: engine.port, path, seconds: 5 })).status === 200
    } catch {
      return false
    }
  }

  async anyEngineIsReady() {
    for (const engine of this.engines) if (await this.asks(engine, '/readyz')) return true
    return false
  }

  async killEngine(engine) {
    killNow(engine.child)
    const end = await engine.child.ended
    if (end.signal !== 'SIGKILL') throw new Error(`${engine.name} ended by itself: ${JSON.stringify(end)}`)
  }

  async kill9() {
    killNow(this.sagad)
    const end = await this.sagad.ended
    // An engine that ended by itself before the kill is a fault.
    if (end.signal !== 'SIGKILL') throw new Error(`sagad ended by itself: ${JSON.stringify(end)}`)
  }

  // Sends SIGKILL and starts the same program again.
  async restart() {
    await this.kill9()
    this.launchSagad(this.sagadArgs)
    await this.ready()
  }

  // --- the shop ---

  async startShop(args = []) {
    this.shopPort ??= await freePort()
    this.shop = this.launch('shop', this.shopPath, [
      '--listen',
      `127.0.0.1:${this.shopPort}`,
      '--ledger',
      this.ledgerPath,
      ...args
    ])
    for (let tries = 0; tries < 2000; tries++) {
      try {
        if ((await ask({ port: this.shopPort, path: '/livez' })).status === 200) return
      } catch {
        if (this.shop.end) throw new Error('the shop does not start')
      }
      await sleep(30)
    }
    throw new Error('the shop does not start')
  }

  async fault(rule) {
    await this.setShop('/faults', rule)
  }

  async setShop(path, settings) {
    const answer = await ask({ port: this.shopPort, method: 'PUT', path, text: JSON.stringify(settings) })
    if (answer.status >= 300) throw new Error(`PUT ${path}: ${answer.text}`)
  }

  async noFaults() {
    await ask({ port: this.shopPort, method: 'DELETE', path: '/faults' })
  }

  // Sets the shop: keys honoured or not, status reads or none, chaos; see `sagad-shop --help`.
  async shopSettings(settings) {
    await this.setShop('/settings', settings)
  }

  // Sends one request straight to the shop, as often as it takes: a shop in trouble also answers with halves and
  // rubbish.
  async atShop(method, path, body, key) {
    for (let tries = 0; ; tries++) {
      const answer = await ask({
        port: this.shopPort,
        method,
        path,
        text: body && JSON.stringify(body),
        headers: key ? { 'idempotency-key': key } : {},
        seconds: 2
      }).catch((error) => ({ error }))
      const whole = answer.status < 300 ? jsonOf(answer.text) : undefined
      if (whole !== undefined) return whole
      if (answer.status >= 300 && answer.status < 500 && answer.status !== 429)
        throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
      if (tries > 50) throw answer.error ?? new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
      await sleep(20)
    }
  }

  ledger() {
    const text = existsSync(this.ledgerPath) ? readFileSync(this.ledgerPath, 'utf8') : ''
    // The shop may be in the middle of its last line. It answers when the line is whole.
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  }

  // --- the API ---

  // Returns {status, headers, text, json}; throws when nobody answers.
  async api(method, path, body, { headers = {}, raw, seconds = 60 } = {}) {
    const text = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const answer = await ask({
      port: this.port,
      method,
      path,
      text,
      headers: text === undefined ? headers : { 'content-type': 'application/json', ...headers },
      seconds
    })
    return { ...answer, json: jsonOf(answer.text) }
  }

  // Repeats the request while the answer is a 503 that says `retryable`, as a client should: a machine that stalls
  // makes an engine refuse for a moment.
  async calm(ask, seconds = 30 * patience) {
    for (const end = Date.now() + seconds * 1000; ; await sleep(200)) {
      const answer = await ask()
      if (answer.status !== 503 || !answer.json?.retryable || Date.now() > end) return answer
    }
  }

  read(path) {
    return this.calm(() => this.api('GET', path))
  }

  async define(document) {
    const answer = await this.calm(() => this.api('POST', '/v1/definitions', document))
    if (answer.status !== 200) throw new Error(`the definitions are refused: ${answer.text}`)
    await this.known(document)
    return answer.json.items
  }

  // The engine that was asked knows its definitions at once, and the others when they have looked.
  async known({ sagas = [] }) {
    for (const end = Date.now() + 30000 * patience; this.engines.length > 1; await sleep(50)) {
      const lives = this.engines.filter(({ child }) => child && !child.end)
      const asked = lives.flatMap((engine) =>
        sagas.map(({ name }) => this.asks(engine, `/v1/definitions/${encodeURIComponent(name)}`))
      )
      if ((await Promise.all(asked)).every(Boolean) || Date.now() > end) return
    }
  }

  // Reads an example of the repository, with the address of this shop.
  example(name) {
    return JSON.parse(
      readFileSync(join(root, 'schema', 'examples', name), 'utf8').replaceAll(
        '127.0.0.1:9001',
        `127.0.0.1:${this.shopPort}`
      )
    )
  }

  async start(saga, input, more = {}) {
    let asked = 0
    const answer = await this.calm(() => {
      asked++
      return this.api('POST', '/v1/sagas', { saga, input, ...more })
    })
    if (answer.status !== 201 && !(answer.status === 200 && asked > 1 && more.id))
      throw new Error(`the start of ${saga} was answered with ${answer.status}: ${answer.text}`)
    return answer.json.id
  }

  async saga(id) {
    const answer = await this.read(`/v1/sagas/${id}`)
    if (answer.status !== 200) throw new Error(`GET of the saga ${id}: ${answer.status} ${answer.text}`)
    return answer.json
  }

  // Waits until the saga has one of these states. It repeats the question after a 503 that says `retryable`, as a
  // client should: an engine may still be finding out that the database was away.
  async until(id, states = ['completed', 'compensated', 'abandoned', 'escalated'], seconds = 60) {
    const end = Date.now() + seconds * patience * 1000
    let saga
    for (;;) {
      const answer = await this.api('GET', `/v1/sagas/${id}`)
      if (answer.status !== 200 && !(answer.status === 503 && answer.json?.retryable))
        throw new Error(`GET of the saga ${id}: ${answer.status} ${answer.text}`)
      saga = answer.json
      if (states.includes(saga.status)) return saga
      if (Date.now() > end)
        throw new Error(`the saga does not get to ${states.join(' or ')}: ${JSON.stringify(saga)}`.slice(0, 3000))
      await sleep(50)
    }
  }

  async escalationOf(id) {
    for (let cursor = '', pages = 0; pages < 100; pages++) {
      const answer = await this.read(`/v1/escalations?status=open&limit=500${cursor}`)
      const found = answer.json.items.find((item) => item.saga === id)
      if (found) return found
      if (!answer.json.next_cursor) break
      cursor = `&cursor=${encodeURIComponent(answer.json.next_cursor)}`
    }
    throw new Error(`no escalation of the saga ${id} is open`)
  }

  async resolve(id, body) {
    const escalation = await this.escalationOf(id)
    const answer = { round: escalation.round, note: 'as the test wants it', ...body }
    return this.api('POST', `/v1/escalations/${escalation.n}/resolve`, answer)
  }

  sagactl(args, options) {
    return this.sagactlAt(`http://127.0.0.1:${this.port}`, args, options)
  }

  sagactlAt(server, args, { seconds = 600 } = {}) {
    return spawnSync(this.sagactlPath, ['--server', server, ...args], {
      encoding: 'utf8',
      timeout: seconds * 1000,
      maxBuffer: 1 << 26
    })
  }

  // Replays every saga from its log. On a machine so busy that a statement has no answer within a lease, the engine
  // says that the client may ask again.
  replayAll(options = []) {
    for (const end = Date.now() + 60000 * patience; ;) {
      const replay = this.sagactl([...options, 'replay', '--all'])
      if (replay.status !== mayAskAgain || Date.now() > end) return replay
    }
  }

  // --- the end ---

  async stop() {
    for (const child of [...children]) child === this.postgres ? child.kill('SIGQUIT') : killNow(child)
    await Promise.race([Promise.all([...children].map((child) => child.ended)), sleep(10000)])
    sweep()
    directories.delete(this.directory)
  }
}

// --- the judge ---

// Returns the effects in the ledger by their key: key -> [line].
export function effectsByKey(ledger) {
  const effects = new Map()
  for (const line of ledger) {
    if (line.effect !== 1 || !line.key) continue
    if (!effects.has(line.key)) effects.set(line.key, [])
    effects.get(line.key).push(line)
  }
  return effects
}

// Checks ended orders (schema/examples/shop.json) against the ledger. Returns sentences about faults.
export function judgeOrders(sagas, ledger) {
  const faults = []
  const effects = effectsByKey(ledger)
  const released = new Set(
    ledger.filter((line) => line.effect === 1 && line.kind === 'release').map((line) => line.target)
  )
  const refunded = new Map()
  for (const line of ledger) {
    if (line.effect === 1 && line.kind === 'refund')
      refunded.set(line.body.charge_id, (refunded.get(line.body.charge_id) ?? 0) + 1)
  }
  for (const [key, lines] of effects) {
    if (lines.length > 1) faults.push(`${lines.length} effects under the key ${key}: ${lines.map((line) => line.id)}`)
  }
  for (const [charge, times] of refunded) {
    if (times > 1) faults.push(`the charge ${charge} was given back ${times} times`)
  }
  // A mail belongs to no other thing, so two keys for one order would show here.
  const mails = new Map()
  for (const line of ledger) {
    if (line.effect === 1 && line.kind === 'mail') mails.set(line.body.subject, (mails.get(line.body.subject) ?? 0) + 1)
  }
  for (const [subject, times] of mails) {
    if (times > 1) faults.push(`the mail "${subject}" went out ${times} times`)
  }
  const known = new Set()
  for (const saga of sagas) {
    const standing = {}
    for (const step of saga.steps) {
      const lines = effects.get(step.key) ?? []
      if (step.key) known.add(step.key)
      if (step.compensation?.key) known.add(step.compensation.key)
      standing[step.id] = lines.filter((line) => !released.has(line.id) && !refunded.has(line.id)).length
    }
    const states = JSON.stringify(standing)
    if (saga.status === 'completed' && Object.values(standing).some((count) => count !== 1)) {
      faults.push(`the saga ${saga.id} is completed and has not all its effects: ${states}`)
    }
    if (saga.status === 'compensated' && Object.values(standing).some((count) => count !== 0)) {
      faults.push(`the saga ${saga.id} is compensated and something stands: ${states}`)
    }
  }
  for (const [key, lines] of effects) {
    if (!known.has(key)) faults.push(`an effect of no known saga: ${JSON.stringify(lines[0])}`)
  }
  return faults
}
