// The views show what waits for a person: groups, a case with its evidence and where each answer leads, and a set for a
// verb.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { Visitor, until } from './stage.mjs'

export async function cases(world, browser) {
  const trips = await world.doubtfulTrips('night', 3)
  const visitor = await Visitor.arrives(browser, world, { as: 'operator' })
  const { page } = visitor
  const caseOf = async (id) => (await world.escalationOf(id)).n
  const note = 'Why, for those who read the log later'
  const answers = () => page.getByRole('region', { name: 'What can be answered' })
  const answer = (name) =>
    answers()
      .getByRole('listitem')
      .filter({ has: page.getByRole('button', { name, exact: true }) })

  await promise('groups of cases: how many, why, and how much money', async () => {
    await visitor.opens('#/cases')
    const row = page.locator('tr[data-row]').filter({ hasText: 'card.pay' })
    await row.waitFor()
    const text = await row.innerText()
    for (const part of ['3 cases', 'pay', 'outcome unknown', 'timeout', '75.00'])
      expect(text.includes(part), part, text)
    await visitor.checksAccess('cases')
    await row.getByRole('link', { name: '3 cases' }).click()
    await until(async () => (await page.locator('tr[data-row]').count()) === 3, 'three cases')
    expect(/tool=card.pay/.test(page.url()), 'the group is in the address', page.url())
    await visitor.checksAccess('cases-list')
  })

  await promise('cases follow events: an open list counts them at once, and a new row is announced', async () => {
    const other = await Visitor.arrives(browser, world, { withClock: true })
    const streams = []
    other.page.on('response', (answer) => /v1\/events/.test(answer.url()) && streams.push(answer.status()))
    await other.signsIn('operator')
    await other.opens('#/cases?list=yes')
    const { page } = other
    const rows = () => page.locator('tr[data-row]').count()
    await until(async () => (await rows()) === trips.length + 1, 'the cases that there are')
    await until(async () => streams.includes(200), 'a stream of events')
    await other.stopsClock()
    const [fresh] = await world.doubtfulTrips('dawn', 1)
    const announced = page.getByRole('button', { name: '1 case is new: show' })
    await other.seesByEvents(() => announced.isVisible(), 'the new case is announced by its event', 4500)
    expectEqual(await rows(), trips.length + 1, 'rows before it is asked for')
    await announced.click()
    await until(async () => (await rows()) === trips.length + 2, 'the new row')
    await world.api('POST', `/v1/escalations/${await caseOf(fresh)}/resolve`, { action: 'abandon', note: 'a trial' })
    await other.seesByEvents(async () => (await page.locator('tr.gone').count()) === 1, 'answered, by its event', 4500)
    await other.leaves()
  })

  await promise('a case: what is known beside what each answer leads to', async () => {
    await visitor.opens(`#/case/${await caseOf(trips[0])}`)
    const known = page.getByRole('region', { name: 'What is known' })
    await known.getByText('No answer came in time').waitFor()
    await known.getByText('"customer": "night-0"').waitFor()
    expect((await known.innerText()).includes('25.00, by estimate'), 'what is at stake')
    const text = async (name) => (await answer(name).innerText()).replace(/\s+/g, ' ')
    await answer('It happened').getByText('The saga ends completed').waitFor()
    expect(/ends undone .*Undoes seat by seat.free .*Nothing stands/.test(await text('It did not happen')), 'undone')
    expect(
      /Stands in the end: seat .*May stand in the end: pay/.test(await text('Give up')),
      'debts',
      await text('Give up')
    )
    expect(/not possible/.test(await text('Ask the receiver again')), 'no probe, and why')
    await visitor.checksAccess('case')
    await visitor.shootsForReadme('console.png')
  })

  await promise('a file is read as it was meant or not at all, and no word of it is guessed', async () => {
    await visitor.opens('#/bulk/new?of=cases&tool=card.pay')
    await page.getByRole('radio', { name: /^As a file says/ }).check()
    const gives = (name, text) =>
      page
        .getByLabel('The file, CSV with a head')
        .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })
    const said = (text) => page.getByRole('alert').getByText(text).waitFor()
    const shows = () => page.getByRole('button', { name: 'Show what would happen' }).click()
    for (const [text, why] of [
      ['reference,state\nnight-0,"HAPP', 'a quote is opened and never closed'],
      ['state,state\nnight-0,DONE', 'a column stands there twice'],
      ['reference,state\nnight-0,DONE,7', 'row 1 has more cells than the head'],
      ['reference,state\n', 'it has no row below its head']
    ]) {
      await gives('half.csv', text)
      await said(why)
    }
    const rows = ['\ufeffstate,reference', '"happened ""so""",night-0', 'NO,"night-1"', ',night-2', 'NO,else', '']
    await gives('whole.csv', rows.join('\r\n'))
    await page.getByText('1 row without a word').waitFor()
    await page.getByText('1 row about none of these cases').waitFor()
    await page.getByText('0 rows of 4 are').waitFor()
    await page.getByLabel('Why, for those who read the logs later').fill('as the file says')
    await shows()
    await said('Say what happened "so", NO means')
    for (const word of ['happened "so"', 'NO'])
      await page.getByRole('group', { name: word }).getByRole('radio', { name: 'Leave these rows out' }).check()
    await shows()
    await said('No row of the file is about one of these cases')
    for (const id of trips) expectEqual((await world.saga(id)).status, 'escalated', 'a trip')
    await visitor.opens(`#/case/${await caseOf(trips[0])}`)
  })

  await promise('a second effect is not risked by accident', async () => {
    await answer('Try again').getByRole('button', { name: 'Try again' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(note).fill('not sure')
    await dialog.getByText('Say that a second effect is acceptable').waitFor()
    expect(await dialog.getByRole('button', { name: 'Try again' }).isDisabled(), 'the button is off')
    await visitor.checksAccess('case-dialog')
    await page.keyboard.press('Escape')
  })

  await promise('an answer: refused in words, then taken, with name and note, once', async () => {
    const n = await caseOf(trips[0])
    await answer('It happened').getByRole('button').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(note).fill('seen at the bank')
    await dialog.getByRole('button', { name: 'It happened', exact: true }).click()
    await dialog.getByRole('alert').getByText('the result of step pay is needed').waitFor()
    await dialog.getByLabel('Result, JSON').fill('{"charge_id": "ch-77"}')
    await dialog.getByRole('button', { name: 'It happened', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await visitor.sees('This case is answered')
    await world.until(trips[0], ['completed'])
    const { json } = await world.api('GET', `/v1/escalations/${n}`)
    expectEqual(
      [json.status, json.as, json.actor, json.note],
      ['resolved', 'happened', 'operator', 'seen at the bank'],
      'it'
    )
    await visitor.sees('seen at the bank')
  })

  await promise('two people answer at once: the second is told, in words', async () => {
    const second = await Visitor.arrives(browser, world, { as: 'admin' })
    const n = await caseOf(trips[1])
    await second.opens(`#/case/${n}`)
    await second.page.getByRole('button', { name: 'It did not happen', exact: true }).click()
    const dialog = second.page.getByRole('dialog')
    await dialog.getByLabel(note).fill('so I heard')
    const taken = await world.api('POST', `/v1/escalations/${n}/resolve`, { action: 'abandon', note: 'too late' })
    expectEqual(taken.status, 200, 'the first answer')
    await dialog.getByRole('button', { name: 'It did not happen', exact: true }).click()
    await dialog.getByRole('alert').getByText('Somebody decided this before').waitFor()
    await second.leaves()
  })

  await promise('a reader sees every answer, and may give none', async () => {
    const reader = await Visitor.arrives(browser, world, { as: 'reader' })
    await reader.opens(`#/case/${await caseOf(trips[2])}`)
    const button = reader.page.getByRole('button', { name: 'It did not happen', exact: true })
    await button.waitFor()
    expectEqual(await button.getAttribute('aria-disabled'), 'true', 'not allowed')
    await reader.sees('needs the role operator; you are signed in as reader')
    await reader.leaves()
  })

  await promise('a filtered list of sagas is a set for a verb as well', async () => {
    const ids = []
    for (let i = 0; i < 3; i++) ids.push(await world.start('contract', {}, { id: `many-${i}`, tags: { lot: 'seven' } }))
    await visitor.opens('#/sagas?tag=lot%3Dseven')
    await page.getByRole('link', { name: 'Act on all that match' }).click()
    await page.getByLabel('Why, for those who read the logs later').fill('lunch')
    await page.getByRole('button', { name: 'Show what would happen' }).click()
    await page.getByLabel('Type 3 to run it').fill('3')
    await page.getByRole('button', { name: 'Run it on 3' }).click()
    await page.getByRole('heading', { name: '3 of 3 have an outcome' }).waitFor()
    for (const id of ids) expectEqual((await world.saga(id)).paused_note, 'lunch', 'paused, with the note')
  })

  await promise('rows that are picked are a set for a verb, and no other row is', async () => {
    await visitor.opens('#/sagas?tag=lot%3Dseven')
    await page.getByRole('checkbox', { name: 'pick many-0' }).check()
    const row = page.getByRole('row').filter({ hasText: 'many-2' })
    await row.getByRole('link', { name: 'many-2' }).focus()
    await page.keyboard.press('x')
    expect(await row.getByRole('checkbox').isChecked(), 'x picks the row')
    await page.getByRole('link', { name: 'Act on 2 picked' }).click()
    await visitor.sees('2 sagas that you picked')
    await page.getByRole('radio', { name: /^Resume/ }).check()
    await page.getByLabel('Why, for those who read the logs later').fill('lunch is over for two')
    await page.getByRole('button', { name: 'Show what would happen' }).click()
    await page.getByLabel('Type 2 to run it').fill('2')
    await page.getByRole('button', { name: 'Run it on 2' }).click()
    await page.getByRole('heading', { name: '2 of 2 have an outcome' }).waitFor()
    const paused = []
    for (const name of ['many-0', 'many-1', 'many-2'])
      paused.push((await world.api('GET', `/v1/sagas/by-business-id/contract/${name}`)).json.paused_note ?? null)
    expectEqual(paused, [null, 'lunch', null], 'who is still paused')
  })
  await visitor.leaves()
}
