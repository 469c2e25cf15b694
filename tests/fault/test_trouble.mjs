// PostgreSQL takes no writes for a while (it is read only here; elsewhere its disk is full). An engine then tries one
// batch at a time, and goes on trying however such a try ends, even when the try is lost with its connection.
import { readFileSync } from 'node:fs'
import { randomFrom } from '../lib/load.mjs'
import { expect, promise, run, sleep } from '../lib/world.mjs'
import { CampaignWorld } from './campaign/world.mjs'

const world = new CampaignWorld(randomFrom(1), { engineCount: 1 })

await run(world, async () => {
  await world.startAll()
  const readOnly = async (value) => {
    await world.query(`alter system set default_transaction_read_only = ${value}`)
    await world.query('select pg_reload_conf()')
  }
  const start = (name) =>
    world.ask('POST', '/v1/sagas', { saga: 'nap', id: name, input: { name, bad: false } }, { seconds: 5 })
  for (const place of ['before', 'after']) {
    await promise(
      `the try is cut ${place === 'before' ? 'before PostgreSQL has it' : 'when PostgreSQL has done it'}: ` +
        `appends go on`,
      async () => {
        await readOnly('on')
        let refused
        for (let tries = 0; tries < 100 && refused?.status !== 503; tries++)
          refused = await start(`refused-${place}-${tries}`)
        expect(refused?.status === 503, 'a start is refused as long as nothing can be written', refused?.text)
        // The next try comes with the setting or just before it, and is cut.
        await world.query('alter system reset default_transaction_read_only')
        const struck = world.aim.at('fence', place, 10000)
        await world.query('select pg_reload_conf()')
        const hit = await struck
        expect(hit, 'a try was made')
        hit.session.end()
        let answer
        for (const end = Date.now() + 20000; Date.now() < end && answer?.status !== 201; await sleep(100))
          answer = await start(`after-${place}`)
        expect([200, 201].includes(answer?.status), 'a start is taken again', answer?.text)
      },
      90
    )
  }

  await promise(
    'what was to be written goes with its shards while nothing can be written: the engine is ready again when ' +
      'something can',
    async () => {
      await world.query(
        "create function sagad.full_disk() returns trigger language plpgsql as $$ begin raise exception 'no " +
          "space left' using errcode = '53100'; end $$"
      )
      await world.query(
        'create trigger full_disk before insert on sagad.log for each row execute function sagad.full_disk()'
      )
      let refused
      for (let tries = 0; tries < 100 && refused?.status !== 503; tries++) refused = await start(`full-${tries}`)
      expect(refused?.status === 503, 'a start is refused', refused?.text)
      // As if another engine had taken the shards over and had gone.
      await world.query(
        'update sagad.shard set epoch = epoch + 1, owner = null, owner_identity = null, expires_at = null'
      )
      for (
        const end = Date.now() + 20000;
        !readFileSync(world.log('sagad-0'), 'utf8').includes('leases_lost');
        await sleep(50)
      )
        expect(Date.now() < end, 'the shards are lost')
      await world.query('drop trigger full_disk on sagad.log')
      let answer
      for (const end = Date.now() + 20000; Date.now() < end && answer?.status !== 201; await sleep(100))
        answer = await start('after-full')
      expect([200, 201].includes(answer?.status), 'a start is taken again', answer?.text)
    },
    90
  )
})
