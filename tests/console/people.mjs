// The view of people shows who did what and what was refused; it has links to the thing, filters in the address, keys.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { Visitor, until } from './stage.mjs'

export async function people(world, browser) {
  const as = (token, path, body) =>
    world.api('POST', path, body, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status)

  await promise('people: an act with its note leads to what was acted on, and refusals are counted', async () => {
    const id = await world.start('contract', {}, { id: 'people-1' })
    await world.until(id, ['waiting'])
    expect((await as('operator', `/v1/sagas/${id}/pause`, { note: 'the lawyer is away' })) === 200, 'a pause')
    for (let i = 0; i < 3; i++)
      expect((await as('reader', `/v1/sagas/${id}/abort`, { note: 'x' })) === 403, 'a reader aborts nothing')
    const visitor = await Visitor.arrives(browser, world, { as: 'reader' })
    const { page } = visitor
    const rows = page.locator('tbody tr')
    await page.getByRole('link', { name: 'People', exact: true }).click()
    const row = rows.filter({ hasText: 'the lawyer is away' })
    await row.waitFor()
    await visitor.checksAccess('people')

    await page.getByLabel('Who', { exact: true }).fill('reader')
    await page.getByLabel('Outcome').selectOption('refused')
    await until(() => /actor=reader/.test(page.url()) && /outcome=refused/.test(page.url()), 'both filters hold')
    // The three refusals may fall into two minutes.
    await until(async () => (await rows.count()) <= 2, 'one row for all refusals of a minute')
    await rows.filter({ hasText: 'forbidden' }).first().waitFor()

    // A refused act without a subject names its verb once, and that leads to the other acts of the verb.
    await page.getByLabel('Who', { exact: true }).fill('agent')
    const asAgent = { headers: { authorization: 'Bearer agent' } }
    expectEqual((await world.api('GET', '/v1/engines', undefined, asAgent)).status, 403, 'an agent asks for engines')
    await until(() => /actor=agent/.test(page.url()), 'the filter holds')
    const look = rows.filter({ hasText: 'look at the engines' }).first()
    await look.waitFor()
    expectEqual((await look.innerText()).match(/look at the engines/g).length, 1, 'how often the verb is named')
    const others = await look.getByRole('link', { name: 'look at the engines' }).getAttribute('href')
    expect(/verb=GET/.test(others), 'where it leads', others)

    await page.getByRole('button', { name: 'Clear filters' }).click()
    await row.waitFor()
    expect((await as('operator', `/v1/sagas/${id}/resume`, { note: 'she is back' })) === 200, 'a resume')
    await visitor.comesBack()
    await page.getByRole('button', { name: 'new: show' }).click()
    await rows.filter({ hasText: 'she is back' }).waitFor()
    await page.keyboard.press('j')
    const focused = () => page.evaluate(() => document.activeElement?.closest('tr')?.textContent ?? '')
    await until(async () => /resume/.test(await focused()), 'j goes to the newest act')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'people-1' }).waitFor()
    await visitor.leaves()
  })
}
