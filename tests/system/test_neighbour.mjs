// A hostile neighbour in the database: somebody who may connect to it and has no right in the schema. He reads and
// locks no table; the advisory locks that he holds cost politeness, and never progress; what he can do is what
// schema/database.md says, and it is over when he is.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, run } from '../lib/world.mjs'

const shards = 0x53474144 // the classes of engine/store/store_state.h
const migration = 1397178691
const document = (name) => ({
  tools: [{ name: 'say', effect: 'read', builtin: { do: 'echo' } }],
  sagas: [{ name, locks: ['customer/7'], steps: [{ id: 'say', call: 'say', with: '${ .input }' }] }]
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
  const engine = 'the "engine"'
  world.port = await freePort()
  world.migrate()
  world.makeEngineRole(engine)
  const held = world.neighbour(
    `select count(pg_advisory_lock(${shards}, shard)) from generate_series(0, 255) as shard;
     select pg_advisory_lock(${migration});
     select count(pg_advisory_lock(class, object))
       from generate_series(1397178690, 1397178700) as class, generate_series(0, 255) as object`
  )
  expect((await held.said).includes('256'), 'the neighbour has the locks', await held.said)

  await promise('an engine takes all shards although somebody else holds their locks', async () => {
    await world.startSagad()
    const log = readFileSync(world.log('sagad'), 'utf8')
    expect(log.includes('advisory_locks_ignored'), 'the locks were his', log)
  })

  await promise('definitions are registered, also by several at once, and calls and open sagas go on', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `at-once-${i % 3}`)
    const applied = await Promise.all(names.map((name) => world.api('POST', '/v1/definitions', document(name))))
    for (const { status, text } of applied) expectEqual(status, 200, text)
    const made = applied.flatMap(({ json }) => json.items).filter(({ change }) => change === 'created')
    expectEqual(made.length, 4, 'one tool and three sagas were made, once each')
    const opened = await world.api('POST', '/v1/sagas', { open: true })
    expectEqual(opened.status, 201, opened.text)
    const ended = await world.api('POST', `/v1/sagas/${opened.json.id}/complete`, {})
    expectEqual(ended.status, 200, ended.text)
  })

  await promise('business locks are taken and handed on, whatever advisory locks he holds', async () => {
    const first = await world.api('POST', '/v1/sagas?wait=60s', { saga: 'at-once-0', input: { n: 1 } })
    expectEqual(first.json.status, 'completed', first.text)
    const guard = `select 1397178694, ('x' || encode(substring(digest from 1 for 4), 'hex'))::bit(32)::int4`
    // As an advisory lock of the key was until schema 38: he may well know the key.
    const digest = createHash('sha256')
    for (const [i, field] of ['lock', 'default', 'customer/7'].entries()) {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(Buffer.byteLength(field))
      digest.update(i === 0 ? field : Buffer.concat([length, Buffer.from(field)]))
    }
    const text = digest.digest('hex')
    const more = world.neighbour(
      `select count(pg_advisory_lock(a.class, a.object))
         from (${guard} from (select '\\x${text}'::bytea as digest) as d) as a (class, object)`
    )
    expect((await more.said).includes('1'), 'he has the lock of the key', await more.said)
    const asked = { saga: 'at-once-1', input: { n: 2 } }
    const ended = await Promise.all([1, 2, 3].map(() => world.api('POST', '/v1/sagas?wait=60s', asked)))
    for (const { json, text: said } of ended) expectEqual(json.status, 'completed', said)
    await more.end()
  })

  await promise('sagad migrate comes to its end', () => {
    const done = world.sagadOnce(['migrate', '--database', world.dsn], { seconds: 60 })
    expectEqual(done.status, 0, done.stderr)
  })

  await promise(
    'the engine runs under a role of least rights, which changes no log, definition, act or table',
    async () => {
      const role = `set role "${engine.replaceAll('"', '""')}"`
      const tries = [
        'update sagad.log set shard = shard',
        'update sagad.operation_key set shard = shard',
        'update sagad.definition set name = name',
        'delete from sagad.tool',
        'delete from sagad.act',
        'update sagad.act set verb = verb',
        'delete from sagad.act_03',
        'delete from sagad.schema_version',
        'insert into sagad.schema_version (version, name) values (99, $$x$$)',
        'delete from sagad.shard',
        'truncate sagad.log',
        'drop table sagad.saga',
        'alter table sagad.saga add column x int',
        'create table sagad.mine (x int)',
        'create function sagad.mine() returns int language sql as $$ select 1 $$'
      ]
      for (const text of tries) {
        let said = 'nothing'
        try {
          world.sql(`begin; ${role}; ${text}; rollback`)
        } catch (error) {
          said = error.message
        }
        expect(/permission denied|must be owner/.test(said), text, said)
      }
      const users = world.sql("select distinct usename from pg_stat_activity where application_name like 'sagad%'")
      expectEqual(users, engine, 'who the connections of sagad are')
    }
  )

  await promise('a role that cannot be is no SQL', () => {
    for (const role of ['', 'a$b', 'x'.repeat(64), 'two\nlines']) {
      const done = world.sagadOnce(['grants-sql', '--role', role])
      expectEqual([done.status, done.stdout], [2, ''], `--role ${JSON.stringify(role)}`)
    }
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
