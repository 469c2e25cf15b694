// Somebody who sees the console for the first time gets five questions, and begins each at the overview. Few clicks
// lead to the answer.
import { expect, promise } from '../lib/world.mjs'
import { Visitor, countsClicks } from './stage.mjs'

export async function newcomer(world, browser, orders) {
  const visitor = await Visitor.arrives(browser, world, { as: 'reader' })
  const { page } = visitor
  const clicksOf = await countsClicks(page)
  const asks = async (question, clicksMax, find) => {
    await visitor.opens('#/overview')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    const before = await clicksOf()
    const begun = Date.now()
    await find()
    const clicks = (await clicksOf()) - before
    console.log(`# ${question}: ${clicks} clicks, ${((Date.now() - begun) / 1000).toFixed(1)} s`)
    expect(clicks <= clicksMax, `${question}: at most ${clicksMax} clicks`, clicks)
  }
  const view = (name) => page.getByRole('link', { name, exact: true }).click()
  const opensSaga = async (name) => {
    await view('Sagas')
    await page.getByLabel('Business id', { exact: true }).click()
    await page.keyboard.type(name)
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }

  await promise('five questions of a newcomer are answered with few clicks', async () => {
    const dropped = await world.start('contract', {}, { id: 'dropped' })
    await world.until(dropped, ['waiting'])
    await world.api('POST', `/v1/sagas/${dropped}/abort`, { note: 'the customer has called' })
    await world.until(dropped, ['compensated'])
    const repeated = { run: 'chat-18', tool: 'post.send', args: { to: 'bob', subject: 'hello' } }
    for (let i = 0; i < 3; i++) await world.api('POST', '/v1/operations', repeated)

    await asks('why did first-undone fail?', 3, async () => {
      await opensSaga('first-undone')
      await page.getByText('there is no such mailbox').waitFor()
    })
    await asks('what was sent to the bank for it?', 4, async () => {
      await opensSaga('first-undone')
      const steps = page.getByRole('region', { name: 'Steps' })
      await steps.getByRole('link', { name: 'charge', exact: true }).click()
      await page.getByLabel('Arguments', { exact: true }).getByText('4900').first().waitFor()
    })
    await asks('what happens when somebody says that the mail went out?', 3, async () => {
      await page.getByRole('link', { name: /^mail.send, reset: 1 case/ }).click()
      await page.getByRole('link', { name: '1 case', exact: true }).click()
      await page.getByRole('row').filter({ hasText: 'first-stuck' }).getByRole('link').click()
      const answers = page.getByRole('region', { name: 'What can be answered' }).getByRole('listitem')
      await answers.filter({ hasText: 'It happened' }).first().getByText('The saga ends').waitFor()
    })
    await asks('who aborted dropped?', 3, async () => {
      await opensSaga('dropped')
      await page.getByText('said by admin: the customer has called').waitFor()
    })
    await asks('which tool is called again most often?', 2, async () => {
      await view('Tools')
      await page.getByRole('link', { name: 'Repeats kept from happening' }).click()
      await page.getByRole('row').nth(1).getByText('post.send').waitFor()
    })
  })

  await promise('/ looks for a saga, wherever one is', async () => {
    await visitor.opens('#/overview')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.keyboard.press('/')
    await page.getByRole('heading', { level: 1, name: 'Sagas' }).waitFor()
    await page.keyboard.type('first-good')
    await page.locator(`tr[data-row="${orders.completed}"]`).waitFor()
    await page.waitForFunction(() => location.hash.includes('business_id=first-good'))
  })
  await visitor.leaves()
}
