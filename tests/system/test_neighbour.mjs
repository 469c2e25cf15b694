// A hostile neighbour in the database: somebody who may connect to it and has no right in the schema. He reads and
// locks no table; the advisory locks that he holds delay the first lease, and nothing that runs; what he can do is what
// schema/database.md says, and it is over when he is.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run } from '../lib/world.mjs'

const shards = 0x53474144 // the classes of engine/store/store_state.h
const definitions = 0x53474145
const document = (name) => ({
  tools: [{ name: 'say', effect: 'read', builtin: { do: 'echo' } }],
  sagas: [{ name, steps: [{ id: 'say', call: 'say', with: '${ .input }' }] }]
})

class Neighbourhood extends World {
  // Says what PostgreSQL answers, and keeps the session until it is ended.
  neighbour(text) {
    const args = ['-X', '-A', '-t', '-d', `${this.dsn} user=neighbour`]
    const child = spawn(join(this.binaries, 'psql'), args, { stdio: ['pipe', 'pipe', 'pipe'] })
    let all = ''
    const said = new Promise((resolve) => {
      const take = (data) => {
        all += data
        if (all.includes('is done')) resolve(all)
      }
      child.stdout.on('data', take)
      child.stderr.on('data', take)
      child.on('close', () => resolve(all))
    })
    child.stdin.on('error', () => {})
    child.stdin.write(`${text};\nselect 'is' || ' done';\n`)
    return {
      said,
      text: () => all,
      end: () => new Promise((resolve) => child.on('close', resolve) && child.stdin.end('\\q\n'))
    }
  }
}

await run(new Neighbourhood(), async (world) => {
  await world.startPostgres()
  world.sql('create role neighbour login')
  const held = world.neighbour(
    `select count(pg_advisory_lock(${shards}, shard)) from generate_series(0, 255) as shard;
     select count(pg_advisory_lock(${definitions}, n)) from generate_series(0, 3) as n`
  )
  expect((await held.said).includes('256'), 'the neighbour has the locks', await held.said)

  await promise('an engine takes all shards although somebody else holds their locks', async () => {
    await world.startSagad()
    const log = readFileSync(world.log('sagad'), 'utf8')
    expect(log.includes('advisory_locks_ignored'), 'the locks were his', log)
  })

  await promise('definitions are for later while their lock is held, and calls and open sagas go on', async () => {
    const refused = await world.api('POST', '/v1/definitions', document('first'))
    expectEqual([refused.status, refused.json.retryable], [503, true], refused.text)
    const opened = await world.api('POST', '/v1/sagas', { open: true })
    expectEqual(opened.status, 201, opened.text)
    const ended = await world.api('POST', `/v1/sagas/${opened.json.id}/complete`, {})
    expectEqual(ended.status, 200, ended.text)
  })

  await promise('he reads no table, and locks none', async () => {
    const all = "select string_agg(relname, ' ') from pg_class where relnamespace = 'sagad'::regnamespace"
    const tables = world.sql(`${all} and relkind in ('r', 'p', 'v')`).split(' ')
    expect(tables.length > 20, 'tables', tables)
    const tries = tables.flatMap((table) => [
      `select * from sagad.${table}`,
      `begin; lock table sagad.${table}; rollback`
    ])
    const session = world.neighbour(tries.join(';\n'))
    await session.end() // then all that it has written was read, whichever way it came
    const said = session.text()
    expectEqual(said.split('permission denied').length - 1, tries.length, `refusals: ${said}`)
  })

  await promise('when he is gone all is as it was', async () => {
    await held.end()
    const applied = await world.calm(() => world.api('POST', '/v1/definitions', document('first')))
    expectEqual(applied.status, 200, applied.text)
    const done = await world.api('POST', '/v1/sagas?wait=60s', { saga: 'first', input: { n: 1 } })
    expectEqual(done.json.status, 'completed', done.text)
  })
})
