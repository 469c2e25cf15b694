// The participant kit as its users have it: built, packed, installed without a network, used by services on Express and
// Fastify, or on Flask and Starlette. `sagactl hammer` calls both as sagad would; then what it cannot see is tried one
// by one.
//
//   test_participant.mjs typescript|python
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, root, run, sleep } from '../lib/world.mjs'
import { install, installPython, needs, needsPython, packages } from './install.mjs'

const inPython = process.argv[2] === 'python'
if (inPython) needsPython('flask', 'werkzeug', 'starlette', 'uvicorn', 'psycopg')
else for (const name of ['typescript', 'express', 'fastify', 'pg']) needs(name)

const charge = {
  name: 'charge',
  effect: 'keyed',
  key: { header: 'Idempotency-Key', window: '1s' },
  http: { url: 'https://bank.example/charges' },
  result: '${ .response.body.id }',
  probe: {
    http: { url: 'https://bank.example/charges/by-key/${ .key }' },
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' }
  },
  compensate: { tool: 'refund', with: { key: '${ .key }' }, tolerates_absent: true, voids_key: true }
}
const definitions = {
  tools: [
    charge,
    {
      name: 'refund',
      effect: 'idempotent',
      http: { method: 'DELETE', url: 'https://bank.example/charges/by-key/${ .args.key }' }
    },
    {
      name: 'made',
      effect: 'read',
      http: { url: 'https://bank.example/customers/${ .args.customer }' },
      result: '${ .response.body.made }'
    }
  ]
}

// A service that runs, with a database of its own.
class Service {
  constructor(world, kit, framework) {
    Object.assign(this, { world, kit, framework, keys: 0 })
  }

  // Installs the kit in the database by what participant.sql says of it, for a role that owns nothing.
  prepare() {
    const { world, framework } = this
    world.sql(`create database ${framework}`)
    const grants = this.kit.sql.match(/^-- +grant .*$/gm)
    expectEqual(grants.length, 3, 'the grants that the file names')
    for (let times = 0; times < 2; times++) this.sql(this.kit.sql)
    this.sql(grants.map((line) => line.replace(/^-- +/, '').replace('ROLE', 'service')).join('\n'))
    this.sql('create table charge (key text, customer text, amount int4, refunds int4 not null default 0)')
    this.sql('grant select, insert, update on charge to service')
  }

  sql(text) {
    const { dsn } = this.world
    try {
      this.world.dsn = dsn.replace('dbname=postgres', `dbname=${this.framework}`)
      return this.world.sql(text)
    } finally {
      this.world.dsn = dsn
    }
  }

  database() {
    return { PGHOST: this.world.directory, PGPORT: '5432', PGUSER: 'service', PGDATABASE: this.framework }
  }

  async start(env = {}) {
    const { world, framework } = this
    const out = join(world.directory, `${framework}-${this.keys++}.log`)
    this.child = world.launch(
      out.slice(world.directory.length + 1, -'.log'.length),
      this.kit.command[0],
      [...this.kit.command.slice(1), framework],
      { env: { ...process.env, NODE_MODULES: packages, ...this.database(), ...env } }
    )
    let port
    while (!(port = readFileSync(out, 'utf8').match(/^\d+\n/)?.[0])) {
      expect(!this.child.end, `the service on ${framework} starts`, readFileSync(out, 'utf8'))
      await sleep(20)
    }
    this.url = `http://127.0.0.1:${port.trim()}`
  }

  async stop() {
    this.child.kill('SIGKILL')
    await this.child.ended
  }

  key() {
    return `${this.framework}-key-${this.keys++}`
  }

  async ask(method, path, { key, body } = {}) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { ...(key && { 'idempotency-key': key }), ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) })
    })
    const text = await answer.text()
    return {
      status: answer.status,
      replayed: answer.headers.get('idempotent-replayed') === 'true',
      json: answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined
    }
  }

  charge(key, customer, amount = 5) {
    return this.ask('POST', '/charges', { key, body: { customer, amount } })
  }

  refund(key) {
    return this.ask('DELETE', `/charges/by-key/${key}`)
  }

  look(key) {
    return this.ask('GET', `/charges/by-key/${key}`)
  }

  async until(path, holds) {
    while (!holds(await this.ask('GET', path))) await sleep(20)
  }

  charges(key) {
    return this.sql(`select count(*) || ' with refunds ' || coalesce(sum(refunds), 0) from charge where key = '${key}'`)
  }

  async hammer() {
    const file = join(this.world.directory, 'tools.json')
    if (!existsSync(file)) writeFileSync(file, JSON.stringify(definitions))
    const args = ['--args', '{"amount": 5, "customer": "{unique}"}', '--rounds', '2', '--late', '1s', '-o', 'json']
    const asked = ['hammer', file, '--tool', 'charge', '--count', 'made', '--against', this.url, ...args]
    const { code, stdout, stderr } = await new Promise((resolve) =>
      execFile(this.world.sagactlPath, asked, (error, stdout, stderr) =>
        resolve({ code: error ? error.code : 0, stdout, stderr })
      )
    )
    expect(stdout, 'hammer says something', stderr)
    return { code, ...JSON.parse(stdout) }
  }
}

const noEffect = '0 with refunds 0'
const oneEffect = '1 with refunds 0'

async function tell(service) {
  const on = service.framework

  await promise(`${on}: hammer finds that all that is declared is true`, async () => {
    const { code, excess, may } = await service.hammer()
    expectEqual([code, excess], [0, []], 'the verdict')
    const yes = may.filter((one) => one.may === 'yes').map(({ effect }) => effect)
    expectEqual(yes, ['keyed', 'checked', 'once'], 'what may be declared')
  })

  await promise(`${on}: a repeat gets the first answer, and other arguments are refused`, async () => {
    const key = service.key()
    const first = await service.charge(key, 'ada')
    expectEqual(first, { status: 201, replayed: false, json: { id: key, amount: 5 } }, 'the first')
    expectEqual(await service.charge(key, 'ada'), { ...first, replayed: true }, 'the repeat')
    expectEqual((await service.charge(key, 'ada', 6)).status, 422, 'another amount')
    expectEqual((await service.charge(undefined, 'ada')).status, 400, 'without a key')
    expectEqual((await service.charge('x'.repeat(256), 'ada')).status, 400, 'with a key that is too long')
    expectEqual(service.charges(key), oneEffect, 'effects')
    const { status, json } = await service.look(key)
    expectEqual([status, json], [200, { status: 201, answer: first.json, undone: false }], 'the probe')
  })

  await promise(`${on}: a refusal is kept without its effect; what may pass, and an error, is not kept`, async () => {
    const key = service.key()
    expectEqual((await service.charge(key, 'declined')).status, 402, 'the first refusal')
    const { status, replayed } = await service.charge(key, 'declined')
    expectEqual([status, replayed, service.charges(key)], [402, true, noEffect], 'its repeat')
    expectEqual((await service.look(key)).status, 404, 'the probe')
    expectEqual((await service.refund(key)).json, { undone: false }, 'its undo')
    for (const [customer, said] of [
      ['later', 503],
      ['breaks', 500]
    ]) {
      const other = service.key()
      for (let times = 0; times < 2; times++) {
        const answer = await service.charge(other, customer)
        expectEqual([answer.status, answer.replayed], [said, false], `the answer to ${customer}`)
      }
      expectEqual(service.charges(other), noEffect, `effects of ${customer}`)
      expectEqual((await service.charge(other, 'ada')).status, 201, `the key is free after ${customer}`)
    }
  })

  if (inPython)
    await promise(`${on}: a refusal that the framework words in HTML is kept by its status`, async () => {
      const key = service.key()
      const first = await service.charge(key, 'html')
      expectEqual([first.status, first.json.status], [403, 403], 'the first refusal')
      expectEqual(await service.charge(key, 'html'), { ...first, replayed: true }, 'its repeat')
      expectEqual(service.charges(key), noEffect, 'effects')
    })

  await promise(`${on}: an undo that comes first stops the do, and one that comes twice undoes once`, async () => {
    const early = service.key()
    expectEqual((await service.refund(early)).json, { undone: false }, 'the undo that came first')
    expectEqual((await service.charge(early, 'ada')).status, 410, 'the do')
    expectEqual((await service.look(early)).status, 404, 'the probe')
    expectEqual(service.charges(early), noEffect, 'effects')
    const key = service.key()
    const first = await service.charge(key, 'ada')
    for (let times = 0; times < 2; times++) expectEqual((await service.refund(key)).json, { undone: true }, 'the undo')
    expectEqual(service.charges(key), '1 with refunds 1', 'effects')
    expectEqual(await service.charge(key, 'ada'), { ...first, replayed: true }, 'a late repeat of the do')
    expectEqual((await service.look(key)).json.undone, true, 'the probe')
  })

  await promise(`${on}: work that ends the transaction itself is told so, and is not done again`, async () => {
    const key = service.key()
    expectEqual((await service.charge(key, 'commits')).status, 500, 'the first')
    const { status, replayed } = await service.charge(key, 'commits')
    expectEqual([status, replayed, service.charges(key)], [200, true, oneEffect], 'the repeat')
  })

  await promise(`${on}: while a request is under way, its repeat, its undo and its probe are told so`, async () => {
    const key = service.key()
    const first = service.charge(key, 'waits').catch((error) => ({ status: String(error) }))
    await service.until('/held', ({ json }) => json.held === 1)
    const others = [service.charge(key, 'waits'), service.refund(key), service.look(key)]
    expectEqual(
      (await Promise.all(others)).map(({ status }) => status),
      [409, 409, 409],
      'meanwhile'
    )
    await service.ask('GET', '/go')
    expectEqual((await first).status, 201, 'the first')
    expectEqual((await service.charge(key, 'waits')).replayed, true, 'the repeat')
    expectEqual(service.charges(key), oneEffect, 'effects')
  })

  await service.stop()
  await promise(`${on}: a service that dies after the effect has not done it, and does it for the repeat`, async () => {
    await service.start()
    const key = service.key()
    const first = service.charge(key, 'waits').catch(() => undefined)
    await service.until('/held', ({ json }) => json.held === 1)
    await service.stop()
    expectEqual(await first, undefined, 'the first is not answered')
    await service.start()
    await service.until(`/charges/by-key/${key}`, ({ status }) => status === 404)
    await service.ask('GET', '/go')
    expectEqual((await service.charge(key, 'waits')).status, 201, 'the repeat')
    expectEqual(service.charges(key), oneEffect, 'effects')
  })

  await service.stop()
  await promise(`${on}: work that hangs loses its key, and keeps nothing`, async () => {
    await service.start({ TIMEOUT_MS: '500' })
    const key = service.key()
    const first = service.charge(key, 'waits').catch((error) => ({ status: String(error) }))
    await service.until('/held', ({ json }) => json.held === 1)
    await service.until(`/charges/by-key/${key}`, ({ status }) => status === 404)
    await service.ask('GET', '/go')
    expectEqual([(await first).status, service.charges(key)], [500, noEffect], 'the first')
    expectEqual((await service.charge(key, 'ada')).status, 201, 'the repeat')
  })

  await promise(`${on}: the window is published, and keys are forgotten after it and a day`, async () => {
    const { json } = await service.ask('GET', '/idempotency')
    expectEqual(json, { header: 'Idempotency-Key', window: '2592000s' }, 'the window')
    const [young, old] = [service.key(), service.key()]
    for (const key of [young, old]) await service.charge(key, 'ada')
    const age = (key, days) =>
      service.sql(
        `update sagad_participant.request set recorded_at = now() - interval '${days} days' where key = '${key}'`
      )
    age(young, 30.5)
    age(old, 31.5)
    expectEqual(service.sql('select sagad_participant.forget()'), '1', 'keys that are forgotten')
    expectEqual([(await service.look(young)).status, (await service.look(old)).status], [200, 404], 'what is known')
  })
  await service.stop()
}

const here = join(root, 'tests', 'clients')

// Returns how a service on the kit is started, and participant.sql, as they are installed.
function installKit(world) {
  if (inPython) {
    const installed = installPython(world, 'participant/python', ['--system-site-packages'])
    const asked = 'import sagad_participant as kit; print(kit.__path__[0])'
    const folder = execFileSync(installed, ['-I', '-c', asked], { encoding: 'utf8' }).trim()
    expect(folder.startsWith(world.directory), 'it is the one that is installed', folder)
    const sql = readFileSync(join(folder, 'participant.sql'), 'utf8')
    return { command: [installed, join(here, 'participant_service.py')], sql }
  }
  const folder = install(world, 'participant/typescript')
  const sql = readFileSync(join(folder, 'node_modules', 'sagad-participant', 'participant.sql'), 'utf8')
  return { command: [process.execPath, join(here, 'participant_service.mjs'), folder], sql }
}

await run(new World(), async (world) => {
  let kit
  await promise('the kit is built, packed and installed in an empty folder, without a network', () => {
    kit = installKit(world)
  })
  if (!kit) return
  await world.startPostgres()
  world.sql('create role service login')
  const frameworks = inPython ? ['flask', 'starlette'] : ['express', 'fastify']
  const services = frameworks.map((framework) => new Service(world, kit, framework))
  for (const service of services) {
    service.prepare()
    await service.start()
  }
  await Promise.all(services.map(tell)) // hammer waits most of the time
  if (inPython)
    await promise('the example of its page runs as it is printed, and what a service cannot do by mistake', () => {
      const [service] = services
      service.sql('drop table charge')
      service.sql(
        'create table charge (id serial, customer text, amount int4, refunded boolean not null default false)'
      )
      service.sql('grant select, insert, update on charge to service; grant usage on charge_id_seq to service')
      const page = join(root, 'tools', 'clients', 'participant', 'README.md')
      const env = { ...process.env, ...service.database() }
      const check = [join(here, 'check_participant.py'), page]
      execFileSync(kit.command[0], check, { env, stdio: ['ignore', 'inherit', 'pipe'] })
    })
})
