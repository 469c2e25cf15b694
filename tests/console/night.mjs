// In the night a receiver loses its answers, and many sagas ask the same question. One person answers it for all, by
// the mouse in a few clicks, and by keyboard alone.
import { expect, expectEqual, promise, quick } from '../lib/world.mjs'
import { Visitor, countsClicks, until } from './stage.mjs'

const clicksMax = 12
const stuck = quick ? 60 : 3000
const byKeyboard = quick ? 4 : 3000

export async function night(world, browser) {
  const visitor = await Visitor.arrives(browser, world, { as: 'operator' })
  const { page } = visitor
  const shown = (n) => n.toLocaleString('en')
  const compensated = async (ids) => {
    const ended = new Set()
    await until(
      async () => {
        const { items } = (await world.api('GET', '/v1/escalations?tool=card.pay&status=open&limit=1')).json
        return items.length === 0
      },
      'no case is open',
      600
    )
    for (const id of ids) ended.add((await world.until(id, ['compensated'])).status)
    expectEqual([...ended], ['compensated'], 'how all of them end')
  }

  await promise(
    `the night: ${stuck} stuck sagas are answered with at most ${clicksMax} clicks and one note`,
    async () => {
      const trips = await world.doubtfulTrips('storm', stuck)
      await visitor.opens('#/overview')
      const clicks = await countsClicks(page)
      await page.getByRole('link', { name: new RegExp(`^card.pay, timeout: ${shown(stuck)} cases`) }).click()
      await page.getByRole('link', { name: `Answer all ${shown(stuck)}` }).click()
      await page.getByRole('radio', { name: /^It did not happen The step/ }).click()
      await page.getByLabel('Why, for those who read the logs later').fill('the bank has none of them in its books')
      await page.getByRole('button', { name: 'Show what would happen' }).click()
      await page.getByText(`${shown(stuck)} would take it`).waitFor()
      await page.getByLabel(`Type ${stuck}`).fill(String(stuck))
      await page.getByRole('button', { name: 'Run it on' }).click()
      await page
        .getByRole('heading', { name: `${shown(stuck)} of ${shown(stuck)} have an outcome` })
        .waitFor({ timeout: 600_000 })
      const counted = await clicks()
      console.log(`# ${stuck} cases: ${counted} clicks`)
      expect(counted > 3 && counted <= clicksMax, 'clicks', counted)
      await compensated(trips)
    },
    900
  )

  await promise(
    `by keyboard alone: one answer for a group of ${byKeyboard}, shown, confirmed by its number`,
    async () => {
      const left = await world.doubtfulTrips('calm', byKeyboard)
      const n = left.length
      const clicks = await countsClicks(page)
      // Presses Tab until what has the focus is called so.
      const tabTo = async (name) => {
        for (let i = 0; i < 60; i++) {
          await page.keyboard.press('Tab')
          const named = await page.evaluate(() => {
            const { activeElement: at } = document
            if (!at.matches('a, button, input, select, textarea')) return ''
            return [at.labels?.[0]?.innerText, at.innerText, at.getAttribute('aria-label')].filter(Boolean).join(' ')
          })
          if (named.includes(name)) return
        }
        throw new Error(`Tab does not lead to ${name}`)
      }
      await page.evaluate(() => (location.hash = '#/sagas'))
      await page.getByRole('heading', { name: 'Sagas' }).waitFor()
      await page.keyboard.press('g')
      await page.keyboard.press('n')
      await page.getByRole('link', { name: `${shown(n)} cases` }).waitFor()
      await tabTo(`Answer all ${shown(n)}`)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'One answer for many' }).waitFor()
      await tabTo('It happened')
      await page.keyboard.press('ArrowDown')
      await visitor.checksAccess('bulk-new')
      await tabTo('Why, for those who read the logs later')
      await page.keyboard.type('the bank has never heard of them')
      await tabTo('Show what would happen')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: `It did not happen: ${shown(n)} items` }).waitFor()
      const preview = page.getByRole('region', { name: 'What would happen' })
      await preview.getByText(`${shown(n)} would take it`).waitFor()
      await preview.getByText(`${shown(n)} would end`).waitFor()
      await visitor.checksAccess('bulk-preview')
      await tabTo(`Type ${n}`)
      await page.keyboard.type('999')
      expect(await page.getByRole('button', { name: 'Run it on' }).isDisabled(), 'another number does nothing')
      for (let i = 0; i < 3; i++) await page.keyboard.press('Backspace')
      await page.keyboard.type(String(n))
      await page.keyboard.press('Enter')
      await page
        .getByRole('heading', { name: `${shown(n)} of ${shown(n)} have an outcome` })
        .waitFor({ timeout: 600_000 })
      await page.getByRole('cell', { name: 'done' }).first().waitFor()
      await visitor.checksAccessAgain('bulk-done')
      expectEqual(await clicks(), 0, 'clicks')
      await compensated(left)
      await visitor.opens('#/bulk')
      await visitor.sees('the bank has never heard of them')
      await visitor.checksAccess('bulk')
    },
    900
  )
  await visitor.leaves()
}
