// A bulk job over two engines, of which one or the other is killed again and again. The job reaches each saga once, and
// each item has an outcome in the end.
import { createServer } from 'node:http'
import { World, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 6 : 200
const sagas = quick ? 120 : 4000

// Takes the payment and never answers.
const bank = createServer((request) => request.socket.destroy())
await new Promise((resolve) => bank.listen(0, '127.0.0.1', resolve))
const pay = {
  name: 'pay',
  effect: 'once',
  terminal: true,
  http: { method: 'POST', url: `http://127.0.0.1:${bank.address().port}/pay`, body: {} }
}

class Night extends World {
  // Asks until an engine answers.
  async ask(method, path, body) {
    for (const end = Date.now() + 240000; ; await sleep(100)) {
      for (const engine of this.engines) {
        this.port = engine.port
        const answer = await this.api(method, path, body).catch(() => undefined)
        if (answer?.status < 300) return answer.json
      }
      expect(Date.now() < end, `${method} ${path} is answered`)
    }
  }

  async reach(what, holds) {
    for (const end = Date.now() + 480000; !(await holds()); await sleep(100)) expect(Date.now() < end, what)
  }

  count(sql) {
    return Number(this.sql(sql))
  }
}

await run(new Night(), async (world) => {
  await world.startPostgres()
  await world.startEngines(2, ['--bulk-rate', '20'])
  await world.define({ tools: [pay], sagas: [{ name: 'order', steps: [{ id: 'pay', call: 'pay' }] }] })
  for (let i = 0; i < sagas; i += 100) {
    const starts = Array.from({ length: 100 }, (_, k) => ({ saga: 'order', id: `o-${i + k}`, input: {} }))
    await world.ask('POST', '/v1/sagas/batch', starts.slice(0, sagas - i))
  }
  const open = 'select count(*) from sagad.escalation where resolved_at is null'
  await world.reach('every saga is stuck', () => world.count(open) === sagas)

  await promise(
    `a bulk job lives through ${kills} kills, and each saga hears of it once`,
    async () => {
      const body = { action: 'resolve', as: 'happened', filter: { tool: 'pay' }, note: 'by the bank' }
      const job = await world.ask('POST', '/v1/bulk', body)
      expectEqual(job.count, sagas, 'the set')
      await world.ask('POST', `/v1/bulk/${job.bulk}/run`, {})
      for (let i = 0; i < kills; i++) {
        const fewest = Math.floor((sagas * (i + 1)) / (kills + 2))
        await world.reach(
          `${fewest} are done`,
          () => world.count(`select done from sagad.bulk where id = '${job.bulk}'`) >= fewest
        )
        const engine = world.engines[i % 2]
        await world.killEngine(engine)
        world.launchEngine(engine)
        await world.engineReady(engine)
      }
      await world.reach('the end', async () => (await world.ask('GET', `/v1/bulk/${job.bulk}`)).state === 'done')
      const { outcomes } = await world.ask('GET', `/v1/bulk/${job.bulk}`)
      expectEqual(outcomes, { open: 0, done: sagas, changed: 0, refused: 0 }, 'outcomes')
      const acts = `from (select count(*) as acts from sagad.log_entry
        where data ->> 'bulk' like '${job.bulk}/%' group by saga) as a`
      expectEqual(world.count(`select count(*) ${acts}`), sagas, 'sagas that heard of it')
      expectEqual(world.count(`select coalesce(max(acts), 0) ${acts}`), 1, 'how often at most')
    },
    quick ? 300 : 7200
  )
})
