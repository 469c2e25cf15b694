// The setting --retention: how long ended sagas are kept whose definition does not say it, and what keeps them.
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const echo = { builtin: { do: 'echo' }, effect: 'idempotent' }
const steps = [{ id: 'act', call: 'act' }]

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startEngines(2, ['--retention', '1500ms,elsewhere=1h'])
  await world.define({
    tools: [
      { name: 'act', ...echo, compensate: { tool: 'undo' } },
      { name: 'undo', ...echo },
      { name: 'once', builtin: { do: 'fail', outcome: 'unknown' }, effect: 'once', compensate: { tool: 'undo' } }
    ],
    sagas: [
      { name: 'says_nothing', steps },
      { name: 'says_it', retention: '1h', steps },
      { name: 'leaves', steps: [...steps, { id: 'doubt', call: 'once' }] }
    ]
  })
  const status = async (id) => (await world.api('GET', `/v1/sagas/${id}`)).status
  const isGone = async (id, what) => {
    for (const end = Date.now() + 30_000; (await status(id)) !== 404; await sleep(100))
      expect(Date.now() < end, `${what} is gone`)
  }
  const says = await world.until(await world.start('says_it', {}, {}))

  await promise(
    'a saga whose definition says nothing is kept as the setting says, and then its id is free',
    async () => {
      const saga = await world.until(await world.start('says_nothing', {}, { id: 'business' }))
      await isGone(saga.id, 'the saga')
      expect(Date.now() - Date.parse(saga.ended_at) >= 1500, 'not before its time')
      expect((await world.start('says_nothing', {}, { id: 'business' })) !== saga.id, 'another saga')
    }
  )

  await promise('an open saga that was completed is kept as long', async () => {
    const { id } = (await world.api('POST', '/v1/sagas', { open: true })).json
    expectEqual((await world.api('POST', `/v1/sagas/${id}/complete`, {})).status, 200, 'completed')
    await isGone(id, 'the open saga')
  })

  await promise('what stands keeps its saga, and is settled before its time begins', async () => {
    const saga = await world.until(await world.start('leaves', {}, {}))
    expectEqual(saga.status, 'escalated', 'a person is asked')
    expectEqual((await world.resolve(saga.id, { action: 'abandon', note: 'it is late' })).status, 200, 'abandoned')
    const due = () => world.sql(`select count(*) from sagad.due where saga = '${saga.id}'`)
    expectEqual(due(), '0', 'nothing is to be removed')
    for (const { operation } of (await world.api('GET', '/v1/debts')).json.items)
      expectEqual(
        (await world.api('POST', `/v1/operations/${operation}/resolve`, { as: 'undone', note: 'by hand' })).status,
        200,
        'settled'
      )
    await isGone(saga.id, 'the saga of settled debts')
  })

  await promise('what the definition says holds', async () => {
    expectEqual(await status(says.id), 200, 'the saga that says it')
  })
})
