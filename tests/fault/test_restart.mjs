// PostgreSQL is stopped as by `pg_ctl -m immediate` and started again under load, 20 times (5 in the short form), while
// sagad stays up. Nothing acknowledged is lost, and sagad recovers by itself.
import { Load, chooseSeed, judge, randomFrom } from '../lib/load.mjs'
import { World, expect, leaves, promise, quick, run, sleep } from '../lib/world.mjs'

const restarts = quick ? 5 : 20

await run(new World(), async (world) => {
  const seed = chooseSeed()
  const random = randomFrom(seed + 1)
  await Promise.all([world.startPostgres(), world.startShop(['--chaos', '5', '--seed', String(seed)])])
  await world.startSagad()
  await world.define(world.example('shop.json'))
  const load = new Load(world, seed)
  await promise(
    `sagad lives through ${restarts} crashes of PostgreSQL, and is ready after each`,
    async () => {
      for (let restart = 1; restart <= restarts; restart++) {
        await sleep(300 + random() * 1200)
        const before = load.acknowledged.size
        await world.killPostgres()
        // Also for longer than a lease.
        await sleep(random() < 0.2 ? 3000 : random() * 500)
        await world.startPostgres()
        await world.ready(60)
        const until = Date.now() + 30000
        while (load.acknowledged.size <= before && Date.now() < until) await sleep(50)
        expect(load.acknowledged.size > before, 'starts are acknowledged again', {
          before,
          after: load.acknowledged.size
        })
        console.log(`# ${restart} crashes, ${load.acknowledged.size} acknowledged`)
      }
    },
    1200
  )
  await sleep(500)
  await load.stop()
  await judge(world, load)
  await promise('one and the same sagad ran all the time', () =>
    expect(!world.sagad.end, 'sagad ended', world.sagad.end)
  )
  await leaves(world, 15)
})
