// The list of sagas has filters in the address and rows that do not jump; it obeys the keyboard, and the service may go
// away.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { Visitor, until } from './stage.mjs'

export async function sagas(world, browser, orders) {
  const visitor = await Visitor.arrives(browser, world, { as: 'reader' })
  const { page } = visitor
  const rows = () => page.locator('tr[data-row]').count()

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
    const other = await Visitor.arrives(browser, world, { as: 'operator' })
    await other.page.goto(page.url())
    await other.page.locator(`tr[data-row="${orders.completed}"]`).waitFor()
    expectEqual(await other.page.locator('tr[data-row]').count(), 1, 'rows')
    await other.leaves()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await until(async () => (await rows()) > 1, 'all again')
  })

  await promise('version and the beginning of a business id are filters; each status has its count', async () => {
    const counts = page.getByRole('navigation', { name: 'Counts by status' })
    await counts.getByRole('link', { name: /^completed \d/ }).waitFor()
    await counts.getByRole('link', { name: /^needs a person \d/ }).waitFor()
    await visitor.opens('#/sagas?business_id_prefix=first-&version=1')
    await until(async () => (await rows()) === 3, 'three begin so')
    await counts.getByRole('link', { name: 'completed 1' }).waitFor()
    await counts.getByRole('link', { name: 'undone 1' }).click()
    await until(async () => (await rows()) === 1 && /status=compensated/.test(page.url()), 'the count leads to its row')
    expect(/business_id_prefix=first-/.test(page.url()), 'the other filters stay', page.url())
    await counts.getByRole('link', { name: 'completed 1' }).waitFor()
    await counts.getByRole('link', { name: 'undone 1' }).click()
    await until(async () => (await rows()) === 3, 'and back')
    await page.getByLabel('Version', { exact: true }).fill('2')
    await visitor.sees('No saga fits these filters')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await until(async () => (await rows()) > 1, 'all again')
  })

  await promise(
    'while a filter is read, the rows of before stay, marked busy, and nothing takes the focus',
    async () => {
      let answer
      const held = new Promise((resolve) => (answer = resolve))
      const asked = /v1\/sagas\?.*status=escalated/
      await page.route(asked, (route) => held.then(() => route.continue()))
      const before = await rows()
      await page.getByLabel('Status', { exact: true }).selectOption('escalated')
      await page.locator('.table[aria-busy="true"]').waitFor()
      await page.getByText('Reading sagas').waitFor()
      expectEqual(await rows(), before, 'rows while others are read')
      await page.locator(`tr[data-row="${orders.completed}"] a`).focus()
      answer()
      await until(async () => (await rows()) === 1, 'the rows of the filter')
      const focused = () => page.evaluate(() => document.activeElement.ariaLabel ?? document.activeElement.innerText)
      expectEqual(await focused(), 'Sagas', 'the table has the focus of the row that went away')
      expectEqual(await page.locator('.table').getAttribute('aria-busy'), 'false', 'busy')
      await page.keyboard.press('j')
      expectEqual(await focused(), 'first-stuck', 'j goes to the first row')
      await page.unroute(asked)
      await page.getByRole('button', { name: 'Clear filters' }).focus()
      await page.keyboard.press('Enter')
      await until(async () => (await rows()) === before, 'all again')
      expectEqual(await focused(), 'Clear filters', 'what has the focus')
    }
  )

  await promise('another namespace sees nothing of it, and an empty list teaches a command', async () => {
    const other = await Visitor.arrives(browser, world, { as: 'stranger' })
    await other.opens('#/sagas')
    await other.sees('No saga has been started yet')
    await other.sees('sagactl start')
    await other.checksAccess('sagas-empty')
    await other.leaves()
  })

  await promise('filters are saved by name, in this browser', async () => {
    await visitor.opens('#/sagas?status=escalated')
    await page.getByRole('button', { name: 'Save these filters' }).click()
    await page.getByLabel('Name of these filters').fill('the night')
    await visitor.checksAccessAgain('sagas-saving')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.reload()
    await page
      .getByRole('list', { name: 'Saved filters' })
      .getByRole('button', { name: 'the night', exact: true })
      .click()
    await until(async () => /status=escalated/.test(page.url()) && (await rows()) === 1, 'the saved filters')
    await page.getByRole('button', { name: 'Forget the night' }).click()
    await page.getByRole('button', { name: 'Save these filters' }).waitFor()
    expectEqual(await page.getByRole('list', { name: 'Saved filters' }).count(), 0, 'saved filters')
  })

  await promise('one namespace, several or all of them: chosen, told, and in the address', async () => {
    const asStranger = { headers: { authorization: 'Bearer stranger' } }
    const contract = { name: 'contract', steps: [{ id: 'ask', approve: { show: { sum: 7 }, timeout: '2d' } }] }
    await world.api('POST', '/v1/definitions', { sagas: [contract] }, asStranger)
    await world.api('POST', '/v1/sagas', { saga: 'contract', id: 'far away' }, asStranger)
    const both = await Visitor.arrives(browser, world, { as: 'both' })
    const { page } = both
    const who = page.getByTestId('who')
    const choose = async (names, press) => {
      await page.getByRole('button', { name: 'Namespaces' }).click()
      for (const name of names) await page.getByLabel(name, { exact: true }).click()
      if (press) await page.getByRole('button', { name: press }).click()
    }
    await both.opens('#/sagas')
    await page.getByRole('link', { name: 'first-good' }).waitFor()
    await choose(['elsewhere', 'default'], 'Show elsewhere')
    await page.getByRole('link', { name: 'far away' }).waitFor()
    expect(/ns=elsewhere/.test(page.url()) && /in elsewhere$/.test(await who.innerText()), 'told', page.url())
    expectEqual(await page.getByRole('link', { name: 'first-good' }).count(), 0, 'sagas of the other one')
    await choose(['all of them'])
    await both.checksAccess('namespaces')
    await page.getByRole('button', { name: 'Show 2 namespaces' }).click()
    await page.getByRole('link', { name: 'first-good' }).waitFor()
    await page.getByRole('row').filter({ hasText: 'far away' }).getByRole('cell', { name: 'elsewhere' }).waitFor()
    await both.checksAccessAgain('sagas-namespaces')
    expect(/ns=\*|ns=%2A/.test(page.url()), 'all of them, in the address', page.url())
    await page.getByRole('link', { name: 'Tools', exact: true }).click()
    await page.getByText('This view shows one namespace at a time').waitFor()
    await page.getByRole('link', { name: 'Approvals' }).click()
    await page.getByRole('button', { name: 'Approve' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Why, for those who read the log later').fill('seven is little')
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Sagas' }).click()
    await page.getByRole('link', { name: 'far away' }).click()
    await page.getByRole('button', { name: /^ask: .*a person decided: by both · seven is little/ }).waitFor()
    expect(/ns=elsewhere/.test(page.url()), 'a row leads into its namespace', page.url())
    await both.leaves()
    await visitor.opens('#/sagas?ns=elsewhere')
    await visitor.sees('this token may not act in the namespace')
  })

  await promise('a new saga is announced, and comes when it is asked for', async () => {
    await visitor.opens('#/sagas?saga=order')
    await page.locator(`tr[data-row="${orders.completed}"]`).waitFor()
    const before = await rows()
    const place = async () => (await page.locator(`tr[data-row="${orders.completed}"]`).boundingBox()).y
    const placeBefore = await place()
    const id = await world.order('announced')
    const announced = page.getByRole('button', { name: '1 saga is new: show' })
    await visitor.comesBack()
    await announced.waitFor()
    expectEqual([await rows(), await place()], [before, placeBefore], 'rows before it is asked for, and their place')
    await announced.focus()
    await page.keyboard.press('Enter')
    await page.locator(`tr[data-row="${id}"]`).waitFor()
    await page.keyboard.press('j')
    await page.waitForFunction((row) => document.activeElement.closest('tr')?.dataset.row === row, id)
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
    await until(() => page.url().includes('business_id=jk'), 'the filter counts')
    await page.locator('#filter-business_id').fill('')
    await page.keyboard.press('Escape')
    await until(async () => !page.url().includes('business_id') && (await rows()) > 2, 'all rows again')
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

  await promise('a saga without a business id can be picked, and a follower leads back to its saga', async () => {
    const asks = [{ id: 'ask', signal: { name: 'word', timeout: '2d' } }]
    await world.define({
      sagas: [
        { name: 'nameless', steps: asks },
        { name: 'leader', steps: [{ id: 'nap', sleep: '10ms' }], then: [{ saga: 'led', input: {} }] },
        { name: 'led', steps: asks }
      ]
    })
    const nameless = await world.start('nameless', {})
    const leader = await world.start('leader', {}, { id: 'leads' })
    const other = await Visitor.arrives(browser, world, { as: 'operator' })
    const { page } = other
    await other.opens('#/sagas?saga=nameless')
    await page.getByRole('checkbox', { name: `pick ${nameless.slice(0, 13)}` }).check()
    await page.getByRole('link', { name: 'Act on 1 picked' }).click()
    await page.getByRole('radio', { name: 'Pause' }).check()
    await page.getByLabel('Why, for those who read the logs later').fill('wait for the lawyer')
    await page.getByRole('button', { name: 'Show what would happen' }).click()
    await page.getByLabel('Type 1 to run it').fill('1')
    await page.getByRole('button', { name: 'Run it on 1' }).click()
    await world.until(nameless, ['paused'])
    await other.opens('#/sagas?saga=led')
    await page.locator('tr[data-row] a').first().click()
    await page.getByText('Started by the end of').waitFor()
    await page.getByRole('link', { name: leader.slice(0, 13) }).click()
    await page.getByRole('heading', { name: 'leads', level: 1 }).waitFor()
    await page.getByRole('link', { name: /^led then:/ }).click()
    await until(async () => (await page.locator('tr[data-row]').count()) === 1, 'and forward again')
    await other.leaves()
  })

  await promise('sagad goes away and comes back: the page says so, and goes on by itself', async () => {
    await visitor.opens('#/sagas')
    await until(async () => (await rows()) > 2, 'rows')
    await world.kill9()
    await visitor.sees('No connection to sagad since')
    // The engine that comes back has another console, as in an upgrade.
    await page.route(/\/console\/$/, async (route) => {
      const answer = await route.fetch()
      const body = (await answer.text()).replace(/data-version="[^"]*"/, 'data-version="2.0.0"')
      await route.fulfill({ response: answer, body })
    })
    expect((await rows()) > 2, 'what was there is still shown')
    world.launchSagad(world.sagadArgs)
    await world.ready()
    await visitor.sees('Your session has ended')
    await page.getByLabel('Your token').fill('reader')
    await page.keyboard.press('Enter')
    await until(async () => (await rows()) > 2, 'the same view again')
    expect(page.url().includes('#/sagas'), 'where they were', page.url())
    await visitor.sees('sagad is of another version than this page now.')
    await page.unroute(/\/console\/$/)
    await page.getByRole('button', { name: 'Reload this page' }).click()
    await until(async () => (await rows()) > 2, 'the same view, of the new version')
    expectEqual(await page.getByRole('button', { name: 'Reload this page' }).count(), 0, 'notes of another version')
  })
  await visitor.leaves()
}
