// Measures what the console costs: bytes, first paint, memory, the time until a long saga is there, requests when
// nothing happens. tools/console/measure runs it.
//
//   node measure.mjs [--sagas N] [--json FILE]
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { expectEqual, promise, run, sleep } from '../lib/world.mjs'
import { showsRows } from './crowd.mjs'
import { fillSagas } from './many.mjs'
import { skip } from './packages.mjs'
import { scrolls, taskTime } from './thread.mjs'
import { ConsoleWorld, Visitor, launchChromium, wholeChromium } from './stage.mjs'

if (!wholeChromium) skip('there is no chromium')
const { values: options } = parseArgs({
  options: { sagas: { type: 'string', default: '0' }, json: { type: 'string' } }
})
const sagas = Number(options.sagas)
const choirs = 5
const voices = 1000 // of each choir; two entries of the log each
const idleMs = 60_000
const longestMs = 600_000 // a figure that is bad is a figure, too
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`

async function bytes(world) {
  let sum = 0
  for (const name of ['', 'app.js', 'app.css', 'icon.svg'])
    sum += Number((await fetch(world.console + name)).headers.get('content-length'))
  return sum
}

// Opens the list of sagas in a browser that has never been here.
async function firstLoad(browser, world) {
  const visitor = await Visitor.arrives(browser, world, { as: 'reader' })
  const { page } = visitor
  const asked = await page.context().newCDPSession(page)
  await asked.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.goto('about:blank')
  const spent = await taskTime(page)
  const begun = performance.now()
  await visitor.opens('#/sagas')
  await page.locator('tr[data-row]').first().waitFor()
  const rows = performance.now() - begun
  const work = await spent()
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)
  return { visitor, rows, paint, work }
}

async function heapOf(page) {
  const asked = await page.context().newCDPSession(page)
  await asked.send('HeapProfiler.collectGarbage')
  return (await asked.send('Runtime.getHeapUsage')).usedSize
}

async function openLong(visitor, world) {
  const choir = (n) => ({ id: `choir${n}`, for_each: '${ .input }', concurrency: 20, call: 'say', with: '${ .item }' })
  await world.define({ sagas: [{ name: 'festival', steps: Array.from({ length: choirs }, (_, n) => choir(n)) }] })
  const input = Array.from({ length: voices }, (_, voice) => ({ voice }))
  const id = await world.start('festival', input, { id: 'long' })
  const { status } = await world.until(id, undefined, 600)
  expectEqual(status, 'completed', 'the long saga')
  const spent = await taskTime(visitor.page)
  const begun = performance.now()
  await visitor.opens(`#/saga/${id}`)
  await visitor.page.locator('.timeline .row.do').nth(10).waitFor({ timeout: longestMs })
  const seen = performance.now() - begun
  const work = await spent()
  await visitor.page.getByText('Reading the log').waitFor({ state: 'detached', timeout: longestMs })
  return { seen, work, whole: performance.now() - begun, entries: (await world.saga(id)).seq }
}

async function idleRequests(visitor, path) {
  await visitor.opens(path)
  await sleep(5000) // what a view reads when it opens is not what it reads idly
  let count = 0
  const onRequest = () => count++
  visitor.page.on('request', onRequest)
  await sleep(idleMs)
  visitor.page.off('request', onRequest)
  return count
}

async function measure(world) {
  const [browser] = await Promise.all([launchChromium(wholeChromium), world.begin()])
  const orders = await world.someOrders('first')
  if (sagas > 0) {
    fillSagas(world, sagas)
    await fetch(world.console).catch(() => null) // the connections of before are closed by now
  }
  const figures = {}
  const told = (name, value, text) => {
    figures[name] = value
    console.log(`${name.padEnd(44)} ${text}`)
  }
  const ms = (name, value) => told(name, value, `${Math.round(value)} ms`)
  // What the thread of the page has to do for a frame; a frame of a screen with 60 Hz has 16.7 ms.
  const scrolled = (name, { longest, longestTask, perFrame }) => {
    ms(`${name} scroll, the longest frame`, longest)
    ms(`${name} scroll, processor time at most`, longestTask)
    told(`${name} scroll, processor time a frame`, perFrame, `${perFrame.toFixed(1)} ms`)
  }
  told('sagas', sagas + 3, String(sagas + 3))
  const size = await bytes(world)
  told('first load, compressed', size, kilobytes(size))
  const { visitor, rows, paint, work } = await firstLoad(browser, world)
  ms('first paint', paint)
  ms('the list of sagas is there', rows)
  ms('first load, processor time', work)
  const heap = await heapOf(visitor.page)
  told('memory of the list', heap, kilobytes(heap))
  if (sagas >= 1000) {
    await showsRows(visitor.page, 1000)
    scrolled('1,000 rows', await scrolls(visitor.page))
  }
  const long = await openLong(visitor, world)
  ms(`a saga of ${choirs * voices} steps is there`, long.seen)
  ms('that saga, processor time', long.work)
  ms('and its whole log', long.whole)
  scrolled('its timeline', await scrolls(visitor.page, '.timeline .window'))
  const longHeap = await heapOf(visitor.page)
  told('memory with that saga', longHeap, kilobytes(longHeap))
  for (const [name, path] of [
    ['overview', '#/overview'],
    ['sagas', '#/sagas'],
    ['cases', '#/cases'],
    ['a saga that waits', `#/saga/${orders.stuck}`]
  ]) {
    const count = await idleRequests(visitor, path)
    told(`requests a minute when idle: ${name}`, count, String(count))
  }
  await visitor.leaves()
  await browser.close()
  if (options.json) writeFileSync(options.json, JSON.stringify(figures, null, 2))
}

await run(new ConsoleWorld(), (world) => promise('every figure was taken', () => measure(world), 3600))
