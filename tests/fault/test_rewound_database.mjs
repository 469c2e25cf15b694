// A database whose history was rewound: an asynchronous standby that was behind is promoted, and what was acknowledged
// last is gone. Nothing is appended behind a hole. An engine that knows of the loss says what is missing and waits for
// a person. A call that the log has forgotten counts as unknown for every engine, even when the engine that made it has
// ended. If that engine ended with the server, another one knows from the counters of the shards.
import { createServer } from 'node:http'
import { Pair } from '../lib/pair.mjs'
import { expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const world = new Pair()
const calls = [] // the requests of the receiver: name and key
const receiver = createServer((request, response) => {
  calls.push({ name: request.url.slice(1), key: request.headers['idempotency-key'] })
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"id": 1}')
})
const made = (name) => calls.filter((call) => call.name === name)
const call = (saga, tool, args) =>
  world.calm(() => world.api('POST', `/v1/sagas/${saga}/calls?wait=10s`, { tool, args }))
const seqs = async (saga) =>
  (await world.api('GET', `/v1/sagas/${saga}/log?limit=500`)).json.items.map((item) => item.seq)

await run(world, async () => {
  const port = await freePort()
  await new Promise((resolve) => receiver.listen(port, '127.0.0.1', resolve))
  const tool = (name, effect, more = { compensate: { tool: 'undo', with: {} } }) => ({
    name,
    effect,
    timeout: '5s',
    ...(effect === 'keyed' ? { key: { window: '24h' } } : {}),
    ...more,
    http: { method: 'POST', url: `http://127.0.0.1:${port}/${name}`, body: '${ .args }' }
  })
  await world.startPair({ synchronous: false })
  await world.startSagad(['--park-after', '1h'])
  await world.define({
    tools: [tool('first', 'keyed'), tool('second', 'once'), tool('third', 'keyed'), tool('undo', 'idempotent', {})],
    sagas: [
      {
        name: 'pair',
        steps: [
          { id: 'hold', signal: { name: 'go', timeout: '1d' } },
          { id: 'second', call: 'second', with: {} },
          { id: 'wait', sleep: '1h' }
        ]
      }
    ]
  })

  await promise('a failover that loses nothing goes on without a person', async () => {
    const [first, second] = world.servers
    const saga = (await world.calm(() => world.api('POST', '/v1/sagas', { open: true, id: 'nothing-lost' }))).json.id
    expectEqual((await call(saga, 'first', {})).status, 200, 'a call')
    await world.catchUp(second)
    await world.kill(first)
    world.promote(second)
    await world.ready(20)
    expectEqual((await call(saga, 'third', {})).status, 200, 'a call afterwards')
    expectEqual(world.sql('select count(*) from sagad.history_loss'), '0', 'losses')
    await world.follow(first, false)
    world.servers.reverse()
  })

  let torn, started
  await promise(
    'a failover that loses what was acknowledged: nothing more is appended, /readyz says what is missing, and a ' +
      'row and the log tell it',
    async () => {
      const [first, second] = world.servers
      torn = (await world.calm(() => world.api('POST', '/v1/sagas', { open: true, id: 'torn' }))).json.id
      started = (await world.calm(() => world.api('POST', '/v1/sagas', { saga: 'pair', id: 'pair', input: {} }))).json
        .id
      expectEqual((await call(torn, 'first', {})).status, 200, 'a call')
      await world.catchUp(second)
      await world.cut(second)
      expectEqual((await call(torn, 'second', {})).status, 200, 'a call that will be lost')
      expect((await world.api('POST', `/v1/sagas/${started}/signals/go`, {})).status < 300, 'a signal')
      await world.within(
        10,
        'the step is done',
        async () => (await world.saga(started)).steps[1].status === 'completed'
      )
      const key = (await world.saga(started)).steps[1].key
      expectEqual(made('second').filter((one) => one.key === key).length, 1, 'its call')
      await world.kill(first)
      world.promote(second)
      await world.within(20, 'it is found', async () =>
        (await world.api('GET', '/readyz')).json.reason?.includes('another history')
      )
      const { json } = await world.api('GET', '/readyz')
      expect(/accept-history/.test(json.hint ?? ''), 'what to do', json)
      await world.within(
        10,
        'it is written down',
        () => world.sql('select count(*) from sagad.history_loss where accepted_at is null') === '1'
      )
      await sleep(2000) // a lease, until which the memory may be shown
      for (let i = 0; i < 10; i++, await sleep(100)) {
        expectEqual(
          (await world.api('POST', '/v1/sagas', { saga: 'pair', id: `new-${i}`, input: {} })).status,
          503,
          'new work'
        )
        expectEqual((await world.api('GET', `/v1/sagas/${torn}`)).status, 503, 'a read')
      }
      expect(world.sql('select missing from sagad.history_loss').includes('confirmed last'), 'what is missing')
      expectEqual(
        world.sql("select count(*) from sagad.saga where business_id like 'new-%'"),
        '0',
        'sagas that were started meanwhile'
      )
    }
  )

  await promise(
    'an engine that is started then waits, too; accepting needs a note, and is refused where there is nothing ' +
      'to accept',
    async () => {
      const other = { name: 'sagad-other', port: await freePort() }
      world.engineArgs = []
      world.launchEngine(other)
      await world.within(20, 'it says why', async () => {
        const answer = await fetch(`http://127.0.0.1:${other.port}/readyz`).catch(() => undefined)
        return (await answer?.json())?.reason?.includes('another history')
      })
      await world.killEngine(other)
      const without = world.sagadOnce(['accept-history', '--database', world.dsn])
      expectEqual(without.status, 2, without.stderr)
    }
  )

  await promise(
    'accepted: no hole in a log, no saga unreadable, and the call that the log forgot is unknown, not made again',
    async () => {
      const done = world.sagadOnce(['accept-history', '--database', world.dsn, '--note', 'the old primary is lost'])
      expectEqual(done.status, 0, done.stderr)
      await world.ready(30)
      expectEqual(world.sql('select note from sagad.history_loss'), 'the old primary is lost', 'the note')
      const numbers = await seqs(torn)
      expectEqual(
        numbers,
        numbers.map((_, i) => i + 1),
        'the log is dense'
      )
      const before = made('second').length
      const again = await world.api('POST', `/v1/sagas/${torn}/calls?wait=3s`, { tool: 'second', args: {} })
      expect(
        again.status !== 200,
        `the forgotten call of a "once" tool is not known as made or not made: ${again.text}`
      )
      expectEqual(made('second').length, before, 'calls')
      expect(
        (await world.calm(() => world.api('POST', `/v1/sagas/${started}/signals/go`, {}))).status < 300,
        'the signal, again'
      )
      await world.until(started, ['escalated'], 20)
      expectEqual(made('second').length, before, 'calls')
      const key = (await world.saga(started)).steps[1].key
      expectEqual(made('second').filter((one) => one.key === key).length, 1, 'calls under its key')
      const nothing = world.sagadOnce(['accept-history', '--database', world.dsn, '--note', 'again'])
      expect(
        nothing.status !== 0 && nothing.stderr.includes('no engine has found'),
        'nothing is left to accept',
        nothing.stderr
      )
      const { text } = await world.api('GET', '/metrics')
      expect(/sagad_history_lost_total 1/.test(text), 'a metric')
    }
  )

  // --- what one engine knows holds for all ---

  const shardOf = (saga) => parseInt(saga.slice(-4), 16)
  const [a, b] = [
    { name: 'sagad-a', port: await freePort() },
    { name: 'sagad-b', port: await freePort() }
  ]
  const reason = async (engine) =>
    (await (await fetch(`http://127.0.0.1:${engine.port}/readyz`).catch(() => undefined))?.json())?.reason
  const signalOf = (saga) => world.calm(() => world.api('POST', `/v1/sagas/${saga}/signals/go`, {}))
  const waits = async (engine) => (await reason(engine))?.includes('another history')

  // `b` takes no shards while `a` lives. A saga becomes known to the standby, and then the standby gets nothing more.
  const pairOfEngines = async (id, before) => {
    const [first, second] = world.servers
    await world.follow(first, false)
    world.servers.reverse()
    world.engineArgs = ['--park-after', '1h']
    world.launchEngine(a)
    world.port = a.port
    await world.engineReady(a)
    world.engineArgs = ['--park-after', '1h', '--standby']
    world.launchEngine(b)
    await world.within(
      20,
      'both are there',
      () => world.sql('select count(*) from sagad.engine where expires_at > clock_timestamp()') === '2'
    )
    const saga = (await world.calm(() => world.api('POST', '/v1/sagas', { saga: 'pair', id, input: {} }))).json.id
    await world.catchUp(first)
    await before?.()
    await world.cut(first)
    expect((await signalOf(saga)).status < 300, 'a signal')
    await world.within(10, 'the step is done', async () => (await world.saga(saga)).steps[1].status === 'completed')
    const key = (await world.saga(saga)).steps[1].key
    expectEqual(made('second').filter((one) => one.key === key).length, 1, 'its call')
    return {
      saga,
      key,
      old: second,
      next: first,
      epoch: Number(world.sql(`select epoch from sagad.shard where shard = ${shardOf(saga)}`))
    }
  }
  const callsUnder = (key) => made('second').filter((one) => one.key === key).length

  await world.kill9()
  await promise(
    'the engine that made a call writes down that it was forgotten, and ends: another one that misses nothing ' +
      'cannot take the shard, and after the acceptance the call is unknown to it',
    async () => {
      const { saga, key, old, next, epoch } = await pairOfEngines('held', () => b.child.kill('SIGSTOP'))
      const shard = shardOf(saga)
      a.child.kill('SIGSTOP')
      await world.kill(old)
      world.promote(next)
      b.child.kill('SIGCONT')
      await world.within(
        20,
        'b is connected, and misses nothing',
        () =>
          world.sql(
            "select count(*) from sagad.engine where standby and expires_at > clock_timestamp() + interval '1 second'"
          ) === '1'
      )
      a.child.kill('SIGCONT')
      await world.within(
        20,
        'a writes down what it knows',
        () =>
          world.sql(
            `select count(*) from sagad.history_call where key = '${key}' and effect = 'once' and tool = 'second'`
          ) === '1'
      )
      await world.killEngine(a)
      expectEqual(
        world.sql(`select seq_left < seq from sagad.history_saga where saga = '${saga}'`),
        't',
        'the saga stands there'
      )
      expectEqual(
        world.sql(`select turns_left < turns and epoch >= ${epoch} from sagad.history_shard where shard = ${shard}`),
        't',
        'and what is known of its shard'
      )
      await world.within(
        20,
        'b takes what is whole',
        () =>
          Number(
            world.sql("select count(*) from sagad.shard where owner is not null and owner_identity not like 'loss/%'")
          ) > 40
      )
      world.port = b.port
      for (const end = Date.now() + 7000; Date.now() < end; await sleep(200)) {
        // more than three leases
        expectEqual(
          world.sql(`select owner_identity like 'loss/%' from sagad.shard where shard = ${shard}`),
          't',
          'nobody has the shard'
        )
        await world.api('POST', `/v1/sagas/${saga}/signals/go`, {})
        expectEqual(callsUnder(key), 1, 'calls')
      }
      world.launchEngine(a)
      await world.within(20, 'the engine that was started anew waits, too', () => waits(a))
      const shown = world.sagadOnce(['accept-history', '--database', world.dsn])
      expect(
        shown.status === 2 && shown.stderr.includes('waits:') && shown.stderr.includes('1 of the class once'),
        'a person is told what is known before',
        shown.stdout + shown.stderr
      )
      const done = world.sagadOnce(['accept-history', '--database', world.dsn, '--note', 'the engine is gone, too'])
      expect(
        done.status === 0 && done.stderr.includes('accepted:') && done.stderr.includes('1 of the class once'),
        'accepted',
        done.stdout + done.stderr
      )
      await world.within(
        20,
        'the shard has an owner',
        () =>
          world.sql(
            `select owner is not null and owner_identity not like 'loss/%' from sagad.shard where shard = ${shard}`
          ) === 't'
      )
      expect(
        Number(world.sql(`select epoch from sagad.shard where shard = ${shard}`)) > epoch,
        'at an epoch that was never used'
      )
      expect((await signalOf(saga)).status < 300, 'the signal, again')
      await world.until(saga, ['escalated'], 20)
      expectEqual(callsUnder(key), 1, 'calls under its key')
      await world.killEngine(a)
      await world.killEngine(b)
    }
  )

  await promise(
    'the engine that made a call ends with the server that knew it: another one has seen the counter of the ' +
      'shard, and all wait for a person',
    async () => {
      const { saga, old, next } = await pairOfEngines('counted')
      const shard = shardOf(saga)
      const turns = () => Number(world.sql(`select turns from sagad.shard where shard = ${shard}`))
      const expiry = () => world.sql('select expires_at from sagad.engine where standby')
      const before = Number(world.at(next, `select turns from sagad.shard where shard = ${shard}`))
      await world.within(20, 'a has said how many turns there are', () => turns() > before)
      for (let looks = 0; looks < 2; looks++) {
        // the second one began after that
        const last = expiry()
        await world.within(20, 'b has looked', () => expiry() !== last)
      }
      await world.killEngine(a)
      await world.kill(old)
      world.promote(next)
      world.port = b.port
      await world.within(30, 'b says it', () => waits(b))
      await world.within(
        10,
        'it is written down',
        () =>
          world.sql(`select count(*) from sagad.history_shard where shard = ${shard} and turns_left < turns`) === '1'
      )
      expectEqual(
        world.sql(`select owner_identity like 'loss/%' from sagad.shard where shard = ${shard}`),
        't',
        'nobody has the shard'
      )
      const done = world.sagadOnce(['accept-history', '--database', world.dsn, '--note', 'both are gone'])
      expect(done.status === 0 && done.stderr.includes('turns, at most:'), 'accepted', done.stdout + done.stderr)
      await world.engineReady(b)
      await world.within(
        20,
        'the saga is shown as the log has it',
        async () => (await world.saga(saga)).steps[1].status === 'pending'
      )
      await world.killEngine(b)
    }
  )
  receiver.close()
})
