// The list of sagas: filters in the address, rows that do not jump, the keyboard, a service that goes away.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { Visitor, until } from './stage.mjs'

export async function sagas(world, browser, orders) {
  const visitor = await Visitor.arrives(browser, world)
  const { page } = visitor
  const rows = () => page.locator('tr[data-row]').count()
  await visitor.signsIn('reader')

  await visitor.opens('#/sagas')

  await promise('the list shows each state by a word, and passes axe at every width', async () => {
    for (const word of ['completed', 'undone', 'needs a person'])
      await page.getByRole('cell', { name: word, exact: true }).first().waitFor()
    await visitor.checksAccess('sagas')
  })

  await promise('filters stand in the address, and a link shows the same to another person', async () => {
    await page.getByLabel('Status', { exact: true }).selectOption('escalated')
    await until(async () => /status=escalated/.test(page.url()), 'the filter is in the address')
    await until(async () => (await rows()) === 1, 'one row')
    await page.getByLabel('Status', { exact: true }).selectOption('')
    await page.getByLabel('Tag', { exact: true }).fill('city=Oslo')
    await until(async () => (await rows()) === 1 && /tag=city/.test(page.url()), 'one in Oslo')
    const other = await Visitor.arrives(browser, world)
    await other.signsIn('operator')
    await other.page.goto(page.url())
    await other.page.locator(`tr[data-row="${orders.completed}"]`).waitFor()
    expectEqual(await other.page.locator('tr[data-row]').count(), 1, 'rows')
    await other.leaves()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await until(async () => (await rows()) > 1, 'all again')
  })

  await promise('another namespace sees nothing of it, and an empty list teaches a command', async () => {
    const other = await Visitor.arrives(browser, world)
    await other.signsIn('stranger')
    await other.opens('#/sagas')
    await other.sees('No saga has been started yet')
    await other.sees('sagactl start')
    await other.checksAccess('sagas-empty')
    await other.leaves()
  })

  await promise('a new saga is announced, and comes when it is asked for', async () => {
    await visitor.opens('#/sagas?saga=order')
    await page.locator(`tr[data-row="${orders.completed}"]`).waitFor()
    const before = await rows()
    const id = await world.order('announced')
    const announced = page.getByRole('button', { name: '1 saga is new: show' })
    await announced.waitFor()
    expectEqual(await rows(), before, 'rows before it is asked for')
    await announced.click()
    await page.locator(`tr[data-row="${id}"]`).waitFor()
  })

  await promise('by keyboard alone: search, rows, help', async () => {
    await visitor.opens('#/sagas')
    await until(async () => (await rows()) > 2, 'rows')
    const focused = () =>
      page.evaluate(() => document.activeElement.closest('[data-row]')?.dataset.row ?? document.activeElement.id)
    await page.keyboard.press('/')
    expectEqual(await focused(), 'filter-business_id', '/')
    await page.keyboard.type('jk?')
    expectEqual(await page.locator('#filter-business_id').inputValue(), 'jk?', 'letters are letters in a field')
    await page.locator('#filter-business_id').fill('')
    await page.keyboard.press('Escape')
    await until(async () => (await rows()) > 2, 'rows')
    const ids = await page.locator('tr[data-row]').evaluateAll((all) => all.map((row) => row.dataset.row))
    await page.keyboard.press('j')
    expectEqual(await focused(), ids[0], 'j')
    await page.keyboard.press('j')
    expectEqual(await focused(), ids[1], 'j again')
    await page.keyboard.press('k')
    expectEqual(await focused(), ids[0], 'k')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expectEqual(await focused(), ids[0], 'the focus is back where it was')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sagas' }).waitFor()
    expect(page.url().includes(ids[0]), 'Enter opens the row', page.url())
  })

  await promise('sagad goes away and comes back: the page says so, and goes on by itself', async () => {
    await visitor.opens('#/sagas')
    await until(async () => (await rows()) > 2, 'rows')
    await world.kill9()
    await visitor.sees('No connection to sagad since')
    expect((await rows()) > 2, 'what was there is still shown')
    world.launchSagad(world.sagadArgs)
    await world.ready()
    await visitor.sees('Your session has ended')
    await page.getByLabel('Your token').fill('reader')
    await page.keyboard.press('Enter')
    await until(async () => (await rows()) > 2, 'the same view again')
    expect(page.url().includes('#/sagas'), 'where they were', page.url())
  })
  await visitor.leaves()
}
