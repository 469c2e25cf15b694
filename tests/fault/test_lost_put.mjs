// A word for another engine's saga goes through the inbox. The answer to that put is lost, and the owner has carried
// the word out meanwhile. Then the word is not put a second time: a pause that came again after its resume would leave
// the saga paused.
import { randomFrom } from '../lib/load.mjs'
import { expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'
import { ask } from './campaign/http.mjs'
import { CampaignWorld } from './campaign/world.mjs'

const world = new CampaignWorld(randomFrom(1), { engineCount: 2 })
const wanted = 3

const until = async (what, so, seconds = 60) => {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(50)) if (await so()) return
  throw new Error(`not within ${seconds} s: ${what}`)
}

// Repeats requests that may be repeated.
async function told(engine, path, body) {
  let answer
  for (
    const end = Date.now() + 30000;
    Date.now() < end && (!answer || answer.status === 503 || answer.status === 429);
    await sleep(50)
  )
    answer = await ask(engine.host, engine.port, 'POST', path, body)
  return answer
}

await run(world, async () => {
  await world.startAll()
  const [first, second] = world.engines
  const paused = (id) =>
    world.query(`select count(*) from sagad.log_entry where saga = '${id}' and type = 'saga.paused'`)
  await world.defineAt(first, { sagas: [{ name: 'waits', steps: [{ id: 'go', signal: { name: 'go' } }] }] })
  await promise(
    'a pause is carried out by its owner; its answer is lost on the way, and the saga is resumed before that is known',
    async () => {
      let done = 0
      for (let i = 0; done < wanted; i++) {
        expect(i < 60, 'some sagas belong to the first engine')
        const { id } = (await told(first, '/v1/sagas', { saga: 'waits', id: `waits-${i}`, input: {} })).json
        const struck = world.aim.at('inbox_put', 'after', 2000, (engine) => engine === second)
        const answer = ask(second.host, second.port, 'POST', `/v1/sagas/${id}/pause`, { note: 'once' }, { seconds: 40 })
        const hit = await struck
        await until('the pause is in the log', async () => (await paused(id)) === '1')
        const resumed = await told(first, `/v1/sagas/${id}/resume`, { note: 'go on' })
        expect(resumed.status < 300, 'the resume', resumed.text)
        if (!hit) {
          // the second engine's own saga
          await answer
          continue
        }
        hit.session.end()
        const status = (await answer)?.status
        expect(status === 503 || status === 200, 'what was told of the pause', status)
        expect((await told(first, `/v1/sagas/${id}/signals/go`, {})).status < 300, 'the signal')
        await until(
          'the saga ends',
          async () =>
            (await world.query(`select count(*) from sagad.saga where id = '${id}' and ended_at is not null`)) === '1',
          30
        )
        expectEqual(await paused(id), '1', 'pauses in the log')
        done++
      }
    },
    180
  )
})
