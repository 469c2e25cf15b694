// An engine put a row into the inbox, the put was committed, and its answer was lost. The engine puts the row again,
// and the owner may have consumed the first one meanwhile. An input of any kind that comes a second time in this way
// does nothing and does not stay.
import { finish } from '../lib/language.mjs'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startEngines(2)
  const shop = `http://127.0.0.1:${world.shopPort}`
  const both = async () => {
    for (const engine of world.engines)
      for (let tries = 0; tries < 200 && !(await world.asks(engine, '/v1/definitions/twice')); tries++) await sleep(50)
  }
  await world.define({
    tools: [
      {
        name: 'buy',
        effect: 'keyed',
        key: { window: '1h' },
        terminal: true,
        timeout: '5s',
        http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' }
      }
    ],
    sagas: [
      {
        name: 'twice',
        steps: [
          { id: 'go', signal: { name: 'go' } },
          { id: 'buy', call: 'buy', with: { amount: 1, customer: '${ .input.name }' } }
        ]
      }
    ]
  })
  await both()
  // Keeps a copy of each row of the inbox in a table of the test, outside sagad's schema.
  world.sql(`create table kept (like sagad.inbox);
    create function keep() returns trigger language plpgsql as $$ begin 
    insert into public.kept select new.*; return new; end $$;
    create trigger keep after insert on sagad.inbox for each row execute function keep();`)
  const ids = []
  await promise('sagas are started and signalled through either engine', async () => {
    for (let i = 0; i < 24; i++) {
      world.port = world.engines[i % 2].port
      const id = await world.start('twice', { name: `n${i}` }, i % 3 ? { id: `b${i}` } : {})
      const signal = await world.api(
        'POST',
        `/v1/sagas/${id}/signals/go`,
        { i },
        { headers: i % 2 ? { 'idempotency-key': `s${i}` } : {} }
      )
      expect(signal.status < 300, 'the signal', signal.text)
      ids.push(id)
    }
    for (const id of ids) await finish(world, id, 'completed')
    expect(
      Number(world.sql("select count(*) from kept where kind = 'start'")) > 3,
      'some starts went through the inbox'
    )
  })
  await promise('all rows of the inbox come again: nothing happens twice, nothing stays there', async () => {
    const turns = world.sql('select count(*) from sagad.log')
    world.sql('drop trigger keep on sagad.inbox')
    world.sql(
      "insert into sagad.inbox select * from kept; select pg_notify('sagad_inbox', shard::text) from (select " +
        'distinct shard from kept) as k'
    )
    for (let tries = 0; tries < 300 && world.sql('select count(*) from sagad.inbox') !== '0'; tries++) await sleep(100)
    expectEqual(world.sql('select count(*) from sagad.inbox'), '0', 'rows left in the inbox')
    expectEqual(world.sql('select count(*) from sagad.log'), turns, 'turns')
    expectEqual(world.sql('select count(*) from sagad.saga'), '24', 'sagas')
    expectEqual(world.ledger().filter((line) => line.effect === 1).length, 24, 'effects')
  })
})
