// SIGKILL for sagad at random moments under load, 200 times (12 in the short form). The ledger of the shop is the
// judge.
import { Load, chooseSeed, judge, randomFrom } from '../lib/load.mjs'
import { World, leaves, promise, quick, run, sleep } from '../lib/world.mjs'

const kills = quick ? 12 : 200

await run(new World(), async (world) => {
  const seed = chooseSeed()
  const random = randomFrom(seed + 1)
  await Promise.all([world.startPostgres(), world.startShop(['--chaos', '5', '--seed', String(seed)])])
  await world.startSagad()
  // Each kill interrupts an undo and doubles its pause, which by default grows to five minutes.
  const { tools, ...rest } = world.example('shop.json')
  const soon = { max: '5s' }
  await world.define({
    ...rest,
    tools: tools.map((tool) =>
      tool.compensate
        ? { ...tool, compensate: { ...tool.compensate, retry: { ...tool.compensate.retry, ...soon } } }
        : tool
    )
  })
  const load = new Load(world, seed)
  await promise(
    `sagad comes back after each of ${kills} kills`,
    async () => {
      for (let kill = 1; kill <= kills; kill++) {
        // Also kills sagad while it still starts and takes its shards.
        await sleep(random() < 0.1 ? random() * 50 : 50 + random() * 350)
        await world.kill9()
        if (random() < 0.15) {
          world.launchSagad()
          await sleep(random() * 150)
          await world.kill9()
        }
        world.launchSagad()
        await world.ready()
        if (kill % 25 === 0) console.log(`# ${kill} kills, ${load.acknowledged.size} acknowledged`)
      }
    },
    1500
  )
  await sleep(500)
  await load.stop(60)
  await judge(world, load)
  await leaves(world, 15)
})
