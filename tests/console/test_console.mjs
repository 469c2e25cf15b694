// The console in a real browser: Chromium, sagad with tokens, PostgreSQL and the shop.
//
// Skipped without Chromium, or without the packages of tools/console. SAGAD_CONSOLE_SHOTS=DIR keeps screenshots.
import { leaves, run } from '../lib/world.mjs'
import { cases } from './cases.mjs'
import { skip } from './packages.mjs'
import { saga } from './saga.mjs'
import { sagas } from './sagas.mjs'
import { session, withoutTokens } from './session.mjs'
import { ConsoleWorld, chromiumPath, launchChromium } from './stage.mjs'
import { views } from './views.mjs'

if (!chromiumPath) skip('there is no chromium')

await run(new ConsoleWorld(), async (world) => {
  const [browser] = await Promise.all([launchChromium(), world.begin()])
  const orders = await world.someOrders('first')
  await session(world, browser)
  await sagas(world, browser, orders)
  await saga(world, browser, orders)
  await cases(world, browser)
  await views(world, browser, orders)
  await withoutTokens(world, browser)
  await browser.close()
  await leaves(world)
})
