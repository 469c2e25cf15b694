// A rolling upgrade under load. Two engines of this release run, a migration of the next one comes meanwhile, and then
// engines of the next release take their places one after another. The next release is built from the same sources with
// one more migration and another version. Nothing may be lost, doubled or in doubt on the way. SAGAD_NEXT names its
// program.
import { spawnSync } from 'node:child_process'
import { World, effectsByKey, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

function definitions(shop) {
  const charge = {
    http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
    result: { id: '${ .response.body.id }' },
    timeout: '20s',
    effect: 'once',
    compensate: { tool: 'refund', with: { charge_id: '${ .result.id }', customer: '${ .args.customer }' } }
  }
  const step = (id) => ({ id, call: 'once', with: { customer: '${ .input.name }-' + id, amount: 1 } })
  return {
    tools: [
      {
        name: 'refund',
        effect: 'keyed',
        key: { window: '1h' },
        timeout: '5s',
        result: { id: '${ .response.body.id }' },
        http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' }
      },
      { name: 'once', ...charge }
    ],
    sagas: [{ name: 'careful', steps: [step('one'), { id: 'rest', sleep: '300ms' }, step('two')] }]
  }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  const thisRelease = world.sagadPath
  const nextRelease = process.env.SAGAD_NEXT
  const schema = () => Number(world.sql('select max(version) from sagad.schema_version'))
  const sagad = (path, args) =>
    spawnSync(path, [...args, '--database', world.dsn], { encoding: 'utf8', timeout: 60000 })
  await world.startEngines(2)
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
  const first = schema()
  const alive = () => world.engines.filter((engine) => !engine.child.end && !engine.leaving)
  const engines = async () => {
    for (const end = Date.now() + 20000; ; await sleep(50)) {
      world.port = alive()[0].port
      const answer = (await world.api('GET', '/v1/engines').catch(() => undefined))?.json
      const living = answer?.items?.filter((item) => item.state === 'alive')
      if (
        living?.length === alive().length &&
        answer.unowned.length === 0 &&
        living.every((item) => Math.abs(item.shards.length - 64 / living.length) < 1)
      )
        return living
      expect(Date.now() < end, 'the engines share the shards', answer)
    }
  }
  const launch = async (path) => {
    const engine = { name: `sagad-${world.engines.length}`, port: await freePort() }
    world.sagadPath = path
    world.engines.push(engine)
    world.launchEngine(engine)
    while (!(await world.asks(engine, '/v1/engines'))) {
      expect(!engine.child.end, `${engine.name} ended`)
      await sleep(20)
    }
    return engine
  }
  const leave = async (engine) => {
    engine.leaving = true
    engine.child.kill('SIGTERM')
    expectEqual((await engine.child.ended).code, 0, `${engine.name} after SIGTERM`)
  }

  // Clients start sagas until they are told to stop, and repeat each start until it is acknowledged.
  const acknowledged = new Map()
  const faults = []
  let stopping = false
  const clients = Array.from({ length: 6 }, async (_, number) => {
    for (let count = 0; !stopping; count++) {
      const name = `client-${number}-${count}`
      for (let turn = number; ; turn++) {
        const engine = alive()[turn % alive().length]
        world.port = engine.port
        const answer = await world
          .api('POST', '/v1/sagas', { saga: 'careful', id: name, input: { name } })
          .catch(() => undefined)
        if (answer?.status === 201 || answer?.status === 200) {
          acknowledged.set(name, answer.json.id)
          break
        }
        if (answer && answer.status !== 503) faults.push(`${name}: ${answer.status} ${answer.text}`)
        await sleep(50)
      }
      await sleep(60)
    }
  })

  await promise('a program of the next release asks for its migration first', async () => {
    const done = sagad(nextRelease, ['--listen', '127.0.0.1:0'])
    expect(
      done.status === 2 && /older than this program/.test(done.stderr) && /sagad migrate/.test(done.stderr),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
  })

  await promise('the new release does not migrate under an engine that would not run on the new schema', async () => {
    world.sql(
      `insert into sagad.engine (instance, identity, name, version, schema, expires_at) values ('old', 'old',
        'an-old-one', '0.0.9', ${first - 1}, now() + interval '1 minute')`
    )
    const done = sagad(nextRelease, ['migrate'])
    expect(
      done.status === 6 && /an-old-one 0.0.9/.test(done.stderr),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
    expectEqual(schema(), first, 'the version of the schema')
    world.sql("delete from sagad.engine where instance = 'old'")
  })

  await promise('the new release migrates under engines of this release, and they go on', async () => {
    const before = acknowledged.size
    const done = sagad(nextRelease, ['migrate'])
    expectEqual(done.status, 0, done.stderr)
    expectEqual(schema(), first + 1, 'the version of the schema')
    for (const end = Date.now() + 20000; acknowledged.size < before + 12; await sleep(50))
      expect(Date.now() < end, 'starts are taken')
    for (const engine of world.engines) expect(!engine.child.end, `${engine.name} ended`)
    expectEqual(
      (await engines()).map((item) => item.schema),
      [first, first],
      'the schemas they were made for'
    )
  })

  await promise('an engine of this release can be started on the new schema, should it have to be', async () => {
    const [one] = world.engines
    await world.killEngine(one)
    await launch(thisRelease)
    await engines()
  })

  await promise(
    'engines of the next release take the places of those of this one, one after another',
    async () => {
      const old = alive()
      await launch(nextRelease)
      const mixed = await engines()
      expectEqual(new Set(mixed.map((item) => item.version)).size, 2, 'versions side by side')
      expectEqual(
        mixed.map((item) => item.schema).sort((a, b) => a - b),
        [first, first, first + 1],
        'the schemas they were made for'
      )
      await leave(old[0])
      await engines()
      await launch(nextRelease)
      await engines()
      await leave(old[1])
      expectEqual(
        (await engines()).map((item) => item.schema),
        [first + 1, first + 1],
        'at the end'
      )
    },
    120
  )

  await promise('a program that is two steps behind is refused', async () => {
    world.sql(`insert into sagad.schema_version (version, name) values (${first + 2}, 'the_one_after')`)
    const done = sagad(thisRelease, ['--listen', '127.0.0.1:0'])
    expect(
      done.status === 2 && /newer than this program/.test(done.stderr),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
    world.sql(`delete from sagad.schema_version where version = ${first + 2}`)
  })

  await promise(
    'nothing that was acknowledged is lost, nothing was made twice, and of one engine only that was killed ' +
      'calls are in doubt',
    async () => {
      stopping = true
      await Promise.all(clients)
      expectEqual(faults, [], 'answers that no client should get')
      expect(acknowledged.size > 50, `only ${acknowledged.size} sagas`)
      const statuses = new Map()
      for (const [name, id] of acknowledged) {
        world.port = alive()[0].port
        const saga = await world.until(id, ['completed', 'compensated', 'abandoned', 'escalated'])
        statuses.set(name, saga.status)
      }
      // The kill leaves calls in doubt that may not be repeated. Only these wait for a person.
      const doubted = Number(world.sql("select count(distinct saga) from sagad.log_entry where type like '%.unknown'"))
      const escalated = [...statuses.values()].filter((status) => status === 'escalated').length
      expectEqual(
        [...statuses.values()].filter((status) => status !== 'completed').length,
        escalated,
        'sagas that neither completed nor are escalated'
      )
      expect(escalated <= doubted && doubted < acknowledged.size / 2, `${escalated} escalated, ${doubted} in doubt`)
      expectEqual(
        [...effectsByKey(world.ledger())].filter(([, lines]) => lines.length > 1),
        [],
        'keys with more than one effect'
      )
      const charges = new Map()
      for (const line of world.ledger())
        if (line.kind === 'charge' && line.effect === 1)
          charges.set(line.body.customer, (charges.get(line.body.customer) ?? 0) + 1)
      expectEqual(
        [...charges].filter(([, count]) => count !== 1),
        [],
        'charges that were made twice'
      )
      for (const [name, status] of statuses)
        if (status === 'completed')
          expectEqual([charges.get(`${name}-one`), charges.get(`${name}-two`)], [1, 1], `charges of ${name}`)
      console.log(`# ${acknowledged.size} sagas, ${doubted} with a call in doubt after the kill`)
    },
    120
  )
})
