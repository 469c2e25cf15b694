// A PostgreSQL that hangs answers nothing, and TCP does not tell, because its kernel acknowledges what it gets. A
// server that waits for a standby which has become its successor looks the same. Neither may look like a database that
// works: an engine gives up a connection without an answer within the lease.
import { Pair } from '../lib/pair.mjs'
import { expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const lease = 2000
const world = new Pair()
const start = (id, more = {}) =>
  world.api('POST', '/v1/sagas', { saga: 'wait', id, input: {} }, { seconds: (4 * lease) / 1000 + 10, ...more })

await run(world, async () => {
  await world.startPair({ synchronous: true })
  const [first, second] = world.servers
  await world.startSagad()
  await world.define({ sagas: [{ name: 'wait', steps: [{ id: 'a', sleep: '1h' }] }] })
  const kept = (await start('kept')).json.id

  await promise(
    'a database that hangs: not ready within a lease and a half, with a reason; new work, reads and what waits ' +
      'are 503; and it goes on afterwards',
    async () => {
      await sleep(lease) // a whole lease, so that the beginning is over
      const waiting = []
      world.hang(first)
      try {
        const hung = Date.now()
        for (let i = 0; i < 5; i++) waiting.push(start(`waiting-${i}`))
        await world.within((1.5 * lease) / 1000 + 1, 'not ready', async () => (await world.readyz()).status === 503)
        const { json } = await world.readyz()
        expectEqual(json.leases, false, 'leases')
        expect(/does not answer|has not answered/.test(json.reason ?? ''), 'a reason', json)
        for (const answer of await Promise.all(waiting)) {
          expectEqual(answer.status, 503, `an answer to who waits, after ${Date.now() - hung} ms: ${answer.text}`)
          expectEqual(answer.json.retryable, true, 'it may be repeated')
          expect(answer.headers.get('retry-after'), 'Retry-After')
        }
        expect(Date.now() - hung < 3 * lease + 2000, 'who waits is told in time', Date.now() - hung)
        for (const [method, path, body] of [
          ['POST', '/v1/sagas', { saga: 'wait', id: 'new', input: {} }],
          ['GET', `/v1/sagas/${kept}`],
          ['GET', '/v1/sagas'],
          ['GET', `/v1/sagas/${kept}/log`],
          ['POST', '/v1/operations?wait=5s', { run: 'r', tool: 'note', args: {} }]
        ]) {
          const begun = Date.now()
          const answer = await world.api(method, path, body, { seconds: 10 })
          expectEqual(answer.status, 503, `${method} ${path}: ${answer.text}`)
          expect(Date.now() - begun < 1000, 'at once', Date.now() - begun)
        }
        expectEqual((await world.api('GET', '/livez')).status, 200, 'alive')
      } finally {
        world.goOn(first)
      }
      await world.ready()
      for (let i = 0; i < 5; i++) {
        const answer = await world.calm(() => start(`waiting-${i}`))
        expect([200, 201].includes(answer.status), 'a repeat', answer.text)
        expectEqual(
          Number(world.sql(`select count(*) from sagad.saga where business_id = 'waiting-${i}'`)),
          1,
          'sagas of one id'
        )
      }
      expectEqual(
        Number(world.sql("select count(*) from sagad.saga where business_id = 'new'")),
        0,
        'what was refused at once did not happen'
      )
    }
  )

  await promise(
    'commits that do not wait for the standby that is named are refused at the start; a standby that nobody ' +
      'waits for is told of',
    async () => {
      for (const value of ['local', 'remote_write']) {
        world.sql(`alter role postgres set synchronous_commit = ${value}`)
        const refused = world.sagadOnce(['--database', world.dsn, '--listen', '127.0.0.1:0'])
        expectEqual(refused.status, 2, `exit code with ${value}: ${refused.stderr}`)
        expect(refused.stderr.includes(`synchronous_commit = ${value}`), 'the sentence', refused.stderr)
      }
      world.sql('alter role postgres reset synchronous_commit')
      expectEqual((await world.readyz()).json.warnings, [], 'warnings with a synchronous standby')
      world.set(first, 'synchronous_standby_names', '')
      await world.kill9()
      await world.startSagad()
      const { json } = await world.readyz()
      expect(json.warnings.length === 1 && /no commit waits/.test(json.warnings[0]), 'a warning', json)
      world.set(first, 'synchronous_standby_names', 'node_1')
      await world.kill9()
      await world.startSagad()
    }
  )

  await promise(
    'a synchronous standby that is cut off: nothing is acknowledged, backends do not pile up, and all goes on ' +
      'when it is back',
    async () => {
      await world.cut(second)
      const answer = await start('unreplicated')
      expectEqual(answer.status, 503, answer.text)
      await sleep(4 * lease)
      expect((await world.readyz()).status === 503, 'not ready')
      const backends = Number(world.sql("select count(*) from pg_stat_activity where application_name like 'sagad/%'"))
      expect(backends <= 20, 'backends of one engine', backends)
      world.set(first, 'synchronous_standby_names', '')
      await world.ready()
      const again = await world.calm(() => start('unreplicated'))
      expect([200, 201].includes(again.status), 'a repeat', again.text)
    }
  )

  await promise(
    'what a restarted primary shows and its synchronous standby never got is not shown, nor is anything done by it',
    async () => {
      await world.follow(await world.kill(second).then(() => second), true)
      await world.ready()
      await world.catchUp(second)
      await world.cut(second)
      const waiting = start('phantom')
      // The waiting backend holds that very commit: it has written a saga, and other backends wait, too.
      await world.within(
        20,
        'the commit waits for the standby',
        () =>
          world.at(
            first,
            `select count(*) from pg_stat_activity a join pg_locks l on l.pid = a.pid
      where a.wait_event = 'SyncRep' and l.relation = 'sagad.saga'::regclass and l.mode = 'RowExclusiveLock'`
          ) !== '0'
      )
      await world.kill(first)
      await world.startServer(first)
      expectEqual(
        world.at(first, "select count(*) from sagad.saga where business_id = 'phantom'"),
        '1',
        'the restarted primary has it'
      )
      expect((await waiting).status === 503, 'nobody was told that it is there')
      for (let i = 0; i < 20; i++, await sleep(100)) {
        const shown = await world.api('GET', '/v1/sagas?business_id=phantom&saga=wait')
        expectEqual(shown.status, 503, `a read: ${shown.text}`)
      }
      world.promote(second)
      await world.kill(first)
      await world.ready()
      expect((await world.calm(() => start('phantom'))).status < 300, 'a repeat is taken')
      expectEqual(
        world.at(second, "select count(*) from sagad.saga where business_id = 'phantom'"),
        '1',
        'sagas of one id'
      )
      await world.follow(first, false)
      world.servers.reverse()
    }
  )

  await promise(
    'a failover whose old primary nobody stops: the engine leaves it within two leases, for the newest timeline',
    async () => {
      const next = world.servers[1]
      await world.follow(await world.kill(next).then(() => next), true)
      await world.ready()
      await world.catchUp(next)
      world.promote(world.servers[1]) // the old server runs on, waits for its standby, and accepts connections
      const took = await world.within(
        (4 * lease) / 1000 + 10,
        'a start is taken by the promoted server',
        async () => (await start('after')).status < 300
      )
      console.log(`# taken after ${took} ms`)
      expectEqual(
        world.at(world.servers[1], "select count(*) from sagad.saga where business_id = 'after'"),
        '1',
        'at the new primary'
      )
      expectEqual(
        world.at(world.servers[1], "select count(*) from sagad.saga where business_id = 'kept'"),
        '1',
        'and what was there before'
      )
      await world.ready()
      expectEqual(
        world.at(
          world.servers[0],
          "select count(*) from pg_stat_activity where application_name like 'sagad/%' and state <> 'active'"
        ),
        '0',
        'connections to the old one'
      )
    }
  )

  await promise(
    'an engine that is started then, too, goes to the newest timeline, although the old primary takes writes, too',
    async () => {
      world.set(world.servers[0], 'synchronous_standby_names', '') // now it takes writes without a standby
      await world.kill9()
      await world.startSagad()
      expect((await start('later')).status < 300, 'a start')
      expectEqual(
        world.at(world.servers[1], "select count(*) from sagad.saga where business_id = 'later'"),
        '1',
        'at the new primary'
      )
    }
  )
})
