// A word for another engine's saga goes through the inbox. The answer to that put is lost, and the owner has carried
// the word out meanwhile. Then the word is not put a second time: a pause that came again after its resume would leave
// the saga paused.
import { randomFrom } from '../lib/load.mjs'
import { eventually, expect, expectEqual, promise, run } from '../lib/world.mjs'
import { ask } from './campaign/http.mjs'
import { CampaignWorld } from './campaign/world.mjs'

const world = new CampaignWorld(randomFrom(1), { engineCount: 2 })
const wanted = 3

await run(world, async () => {
  await world.startAll()
  const [first, second] = world.engines
  const paused = (id) =>
    world.query(`select count(*) from sagad.log_entry where saga = '${id}' and type = 'saga.paused'`)
  await world.defineAt(first, { sagas: [{ name: 'waits', steps: [{ id: 'go', signal: { name: 'go' } }] }] })
  // What comes with shards that change their engine would wait behind the answer that is lost below.
  const get = (engine, path) => ask(engine.host, engine.port, 'GET', path)
  await eventually('each engine has half of the shards', async () => {
    const found = await Promise.all([get(first, '/v1/engines'), get(first, '/readyz'), get(second, '/readyz')])
    const items = found[0]?.json?.items ?? []
    return found.every((answer) => answer?.status === 200) && items.every(({ shards }) => shards.length === 32)
  })
  await promise(
    'a pause is carried out by its owner; its answer is lost on the way, and the saga is resumed before that is known',
    async () => {
      let done = 0
      for (let i = 0; done < wanted; i++) {
        expect(i < 60, 'some sagas belong to the first engine')
        const { id } = (await world.told(first, '/v1/sagas', { saga: 'waits', id: `waits-${i}`, input: {} })).json
        const struck = world.aim.at('inbox_put', 'after', 2000, (engine) => engine === second)
        const answer = ask(second.host, second.port, 'POST', `/v1/sagas/${id}/pause`, { note: 'once' }, { seconds: 40 })
        const hit = await struck
        await eventually('the pause is in the log', async () => (await paused(id)) === '1')
        const resumed = await world.told(first, `/v1/sagas/${id}/resume`, { note: 'go on' })
        expect(resumed.status < 300, 'the resume', resumed.text)
        if (!hit) {
          // the second engine's own saga
          await answer
          continue
        }
        hit.session.end()
        const status = (await answer)?.status
        expect(status === 503 || status === 200, 'what was told of the pause', status)
        expect((await world.told(first, `/v1/sagas/${id}/signals/go`, {})).status < 300, 'the signal')
        await eventually(
          'the saga ends',
          async () =>
            (await world.query(`select count(*) from sagad.saga where id = '${id}' and ended_at is not null`)) === '1',
          { seconds: 30 }
        )
        expectEqual(await paused(id), '1', 'pauses in the log')
        done++
      }
    },
    180
  )
})
