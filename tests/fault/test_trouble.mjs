// PostgreSQL takes no writes for a while (read only here, a full disk elsewhere). An engine then tries one batch at a time, and whichever way such a try ends, it goes on
// trying: also when the try is lost with its connection.
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
  const start = (name) => world.ask('POST', '/v1/sagas', { saga: 'nap', id: name, input: { name, bad: false } }, { seconds: 5 })
  for (const place of ['before', 'after']) {
    await promise(`the try is cut ${place === 'before' ? 'before PostgreSQL has it' : 'when PostgreSQL has done it'}: appends go on`, async () => {
      await readOnly('on')
      let refused
      for (let tries = 0; tries < 100 && refused?.status !== 503; tries++) refused = await start(`refused-${place}-${tries}`)
      expect(refused?.status === 503, 'a start is refused as long as nothing can be written', refused?.text)
      // The next try comes with the setting or just before it, and is cut.
      await world.query('alter system reset default_transaction_read_only')
      const struck = world.aim.at('fence', place, 10000)
      await world.query('select pg_reload_conf()')
      const hit = await struck
      expect(hit, 'a try was made')
      hit.session.end()
      let answer
      for (const end = Date.now() + 20000; Date.now() < end && answer?.status !== 201; await sleep(100)) answer = await start(`after-${place}`)
      expect([200, 201].includes(answer?.status), 'a start is taken again', answer?.text)
    }, 90)
  }
})
