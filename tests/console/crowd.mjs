// A hundred thousand sagas: the list reads pages, and a thousand rows can be looked through.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { fillSagas } from './many.mjs'
import { scrolls } from './thread.mjs'
import { Visitor, until } from './stage.mjs'

const sagas = 100_000
const rowsWanted = 1000
const frameMs = 16.7

// Where the cells of the header are, or those of the last row.
const placesOf = (page, n) =>
  page.evaluate(
    (n) => [...[...document.querySelectorAll('.table tr')].at(n).children].map((cell) => Math.round(cell.offsetLeft)),
    n
  )

export async function showsRows(page, count) {
  const rows = () => page.locator('tr[data-row]').count()
  await page.locator('tr[data-row]').first().waitFor()
  for (let shown = await rows(); shown < count;) {
    await page.getByRole('button', { name: 'Show more' }).click()
    await until(async () => (await rows()) > shown, 'more rows')
    shown = await rows()
  }
  return rows()
}

export async function crowd(world, browser) {
  await promise(
    `among ${sagas.toLocaleString('en')} sagas one is found by its tag, and ${rowsWanted} rows can be read`,
    async () => {
      fillSagas(world, sagas)
      const visitor = await Visitor.arrives(browser, world, { as: 'reader' })
      await visitor.opens('#/sagas?tag=customer%3Dc49999')
      await visitor.page.getByRole('link', { name: 'b-99999', exact: true }).waitFor()
      await visitor.opens('#/sagas')
      expectEqual(await showsRows(visitor.page, rowsWanted), rowsWanted, 'rows')
      expectEqual(await placesOf(visitor.page, -1), await placesOf(visitor.page, 0), 'the columns of the last row')
      await visitor.checksAccessAgain('sagas-crowd')
      const { longest, perFrame } = await scrolls(visitor.page)
      console.log(
        `# ${rowsWanted} rows scroll: ${perFrame.toFixed(1)} ms of processor a frame, the longest ${longest} ms`
      )
      expect(perFrame <= frameMs, 'a frame takes no longer than it is shown', perFrame)
      await visitor.leaves()
    }
  )
}
