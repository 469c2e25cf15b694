// Tries the console in a real browser: Chromium, sagad with tokens, PostgreSQL and the shop.
//
// The test is skipped without Chromium, or without the packages of tools/console. SAGAD_CONSOLE_SHOTS=DIR keeps
// screenshots.
import { leaves, quick, run } from '../lib/world.mjs'
import { cases } from './cases.mjs'
import { crowd } from './crowd.mjs'
import { newcomer } from './newcomer.mjs'
import { night } from './night.mjs'
import { skip } from './packages.mjs'
import { people } from './people.mjs'
import { rights } from './rights.mjs'
import { saga } from './saga.mjs'
import { sagas } from './sagas.mjs'
import { session, withoutTokens } from './session.mjs'
import { ConsoleWorld, chromiumPath, launchChromium } from './stage.mjs'
import { views } from './views.mjs'

if (!chromiumPath) skip('there is no chromium')

// The parts run in this order, because the last one starts sagad anew. Names behind the file run only these parts.
const ofNights = { rights, crowd } // so that a newcomer's questions are asked among many sagas
const parts = {
  ...{ session, sagas, saga, night, cases, views },
  ...(quick ? {} : ofNights),
  ...{ newcomer, people, withoutTokens }
}
const asked = process.argv.slice(2)
const chosen = Object.entries(parts).filter(([name]) => asked.length === 0 || asked.includes(name))

await run(new ConsoleWorld(), async (world) => {
  const [browser] = await Promise.all([launchChromium(), world.begin()])
  const orders = await world.someOrders('first')
  for (const [, part] of chosen) await part(world, browser, orders)
  await browser.close()
  await leaves(world)
})
