// sagactl doctor, beside a real sagad and PostgreSQL: nothing where nothing is wrong, and what to do where PostgreSQL
// loses work, is away, or sagad itself is.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

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
})
