// sagactl doctor, beside a real sagad and PostgreSQL: nothing where nothing is wrong, and what to do where PostgreSQL
// loses work, is away, or sagad itself is.
import { createHash } from 'node:crypto'
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { statementOf } from '../lib/frames.mjs'
import { Pooler } from '../lib/pooler.mjs'
import { Splitter } from '../lib/splitter.mjs'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

// Pools from the moment on at which connections are proved once more, as if the checks before had met by chance a
// session each. Like pgbouncer it gives the session that has rested for the shortest.
class LatePooler extends Pooler {
  next(client) {
    const asked = client.units[0]?.filter(([type]) => type === 'B').map(([, body]) => statementOf(body)) ?? []
    const proofs = asked.filter((name) => name === 'check_transaction').length
    if (proofs === 2 && !asked.includes('check_schema')) this.pools = true
    if (this.pools && this.resting.length > 1) this.resting.unshift(this.resting.pop())
    super.next(client)
  }
}

await run(new World(), async (world) => {
  const doctor = (...args) => {
    const done = world.sagactl(['doctor', '-o', 'json', ...args])
    return { ...done, items: JSON.parse(done.stdout).items }
  }
  const findings = ({ items }) =>
    items.filter(({ state }) => state !== 'fine').map(({ check, state }) => [check, state])
  const until = async (holds) => {
    while (!holds(doctor())) await sleep(100) // promise() ends it
  }
  const stopSagad = async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
  }

  await world.startPostgres()
  await world.startSagad()
  await promise('it finds nothing where nothing is wrong', async () => {
    await until(({ status }) => status === 0)
    const healthy = doctor()
    expectEqual(findings(healthy), [], 'findings')
    const checks = ['server', 'lag', 'engines', 'settings', 'clock', 'schema', 'history', 'connections']
    checks.push('replication')
    expectEqual(healthy.items.map(({ check }) => check).sort(), checks.sort(), 'what was looked at')
    const told = world.sagactl(['doctor'])
    expect(/^fine {5}clock {8}PostgreSQL's clock/m.test(told.stdout), 'a line', told.stdout)
  })
  await promise('a token of one namespace does not see the database, and is told so', async () => {
    const tokens = join(world.directory, 'tokens.json')
    const sha256 = createHash('sha256').update('a word').digest('hex')
    writeFileSync(tokens, JSON.stringify({ tokens: [{ name: 'ada', sha256, namespace: 'shop', role: 'admin' }] }), {
      mode: 0o600
    })
    await stopSagad()
    await world.startSagad(['--tokens', tokens])
    const done = doctor('--token', 'a word')
    expectEqual([done.status, findings(done)], [5, [['database', 'unknown']]], 'exit code and findings')
  })
  await promise('work that a crash would lose is trouble, also where sagad was told to take it', async () => {
    await stopSagad()
    await world.stopPostgres()
    await world.startPostgres(['-c', 'fsync=off'])
    await world.startSagad(['--risk-losing-acknowledged-work'])
    await until((done) => findings(done).length === 1)
    const done = doctor()
    expectEqual([done.status, findings(done)], [1, [['settings', 'trouble']]], 'exit code and findings')
    const told = world.sagactl(['doctor']).stdout
    expect(/^trouble {2}settings {5}fsync is off/.test(told), 'trouble stands first', told)
    expect(/ where: PostgreSQL 1\d/.test(told) && / do: {4}set fsync = on/.test(told), 'where, and what to do', told)
  })
  await promise('it says so when PostgreSQL is away', async () => {
    await world.stopPostgres()
    await until(({ items }) => items[0].check === 'database')
    const [first] = doctor().items
    expectEqual([doctor().status, first.state], [1, 'trouble'], 'exit code and state')
    expect(first.what && first.where.startsWith('http') && first.do, 'a sentence, a place and an advice', first)
  })
  await promise('it says so when sagad is not there', async () => {
    await stopSagad()
    const done = doctor()
    expectEqual([done.status, findings(done)], [6, [['server', 'trouble']]], 'exit code and findings')
    expect(/nobody answers/.test(done.items[0].what) && /journalctl/.test(done.items[0].do), 'its words', done.stdout)
  })

  // What it finds at a database, beside that no sagad runs. Nothing may block, because the splitter is in this process.
  const look = async (dsn) => {
    const args = ['--server', `http://127.0.0.1:${world.port}`, 'doctor', '-o', 'json', '--database', dsn]
    const text = await new Promise((resolve) => execFile(world.sagactlPath, args, (_, stdout) => resolve(stdout)))
    return JSON.parse(text).items.filter(({ check }) => check !== 'server')
  }
  // Without engines: the lease of the last one may still run.
  const bad = (items) =>
    items
      .filter(({ check, state }) => state !== 'fine' && check !== 'engines')
      .map(({ check, what }) => `${check}: ${what}`)
  await promise('it looks at PostgreSQL itself while no sagad runs', async () => {
    expect(/database: no PostgreSQL answers/.test(bad(await look(world.dsn))), 'a server that is down')
    await world.startPostgres()
    let found
    do found = await look(world.dsn)
    while (!found.some(({ what }) => what === 'no engine lives: nothing goes on')) // when the last lease is over
    expectEqual(bad(found), [], 'other findings')
    expectEqual(
      found.filter(({ check }) => ['database', 'schema', 'settings', 'clock'].includes(check)).length,
      4,
      'fine'
    )
    world.sql('create database other')
    const other = bad(await look(world.dsn.replace('dbname=postgres', 'dbname=other')))
    expectEqual(other, ['database: the database has no sagad schema yet'], 'a database without the schema')
  })
  await promise('it finds a proxy that makes several transactions of one', async () => {
    const through = bad(await look(await new Splitter(world).start()))
    expect(through.length === 1 && /several transactions of one/.test(through[0]), 'findings', through)
  })
  await promise('it finds a pooler also when each check has met a session of its own', async () => {
    const pooler = new LatePooler(world)
    pooler.pools = false
    const found = bad(await look(await pooler.start()))
    expect(pooler.pools, 'the connections were proved once more')
    expect(found.length === 1 && /a pooler stands/.test(found[0]), 'findings', found)
  })
  const pgbouncer = '/usr/sbin/pgbouncer'
  if (!existsSync(pgbouncer)) {
    console.log('# skipped: no pgbouncer is here')
    return
  }
  await promise('it finds a pgbouncer that breaks sessions, and takes one that keeps them', async () => {
    const wanted = { session: [], transaction: ['database: a pooler stands'] }
    const users = join(world.directory, 'pgbouncer-users')
    writeFileSync(users, '"postgres" ""\n', { mode: 0o644 })
    const pools = [
      ['session', 20],
      ['transaction', 20],
      ['transaction', 2]
    ]
    for (const [mode, size] of pools) {
      const file = join(world.directory, `pgbouncer-${mode}-${size}.ini`)
      writeFileSync(
        file,
        `[databases]
postgres = host=${world.directory} port=5432
[pgbouncer]
unix_socket_dir = ${world.directory}
listen_port = 6432
auth_type = trust
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = ${size}
ignore_startup_parameters = options, extra_float_digits
`,
        { mode: 0o644 }
      )
      const bouncer = world.launch(`pgbouncer-${mode}`, pgbouncer, [file], world.user)
      while (!existsSync(join(world.directory, '.s.PGSQL.6432')) && !bouncer.end) await sleep(20)
      const found = bad(await look(world.dsn.replace('port=5432', 'port=6432')))
      expectEqual(
        found.map((text) => text.slice(0, 25)),
        wanted[mode],
        `pool_mode = ${mode} with ${size} sessions`
      )
      bouncer.kill('SIGTERM')
      await bouncer.ended
    }
  })
})
