// The view of one saga shows what happened when, what was sent and came back, the log, and the verbs of a person.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { taskTime } from './thread.mjs'
import { Visitor, until } from './stage.mjs'

const voices = 400
const opensMs = 1500 // of processor time

export async function saga(world, browser, orders) {
  const visitor = await Visitor.arrives(browser, world, { as: 'operator' })
  const { page } = visitor
  const pressIn = async (name, note) => {
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Why, for those who read the log later').fill(note)
    await dialog.getByRole('button', { name, exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
  }

  await promise('what happened: steps on one axis, what was undone below, and why', async () => {
    await visitor.opens(`#/saga/${orders.undone}`)
    await visitor.sees('Why it is undone:')
    const timeline = page.getByTestId('timeline')
    const items = page.getByRole('list', { name: 'Timeline' }).getByRole('listitem')
    await items.nth(4).waitFor() // the log comes after the saga
    const rows = await items.allInnerTexts()
    expectEqual(rows, ['reserve', 'charge', 'confirm', 'charge', 'reserve'], 'rows, the undoing in reverse')
    await timeline.getByRole('button', { name: /^undoing charge: .* undone/ }).waitFor()
    await timeline.getByRole('button', { name: /^confirm: .*attempt 1.*failed for certain: http-422/ }).waitFor()
    await visitor.checksAccess('saga')
    await visitor.shootsForReadme('console-saga.png')
  })

  await promise('holds and takeovers are marks on the axis, with a word and a shape each', async () => {
    const operator = { note: 'the mail server is moved' }
    const hold = await world.api('POST', '/v1/holds', { tool: 'say', ...operator })
    const kept = await world.start('contract', {}, { id: 'kept' })
    await world.api('POST', `/v1/sagas/${kept}/signals/signed`, {})
    const types = async (id) => (await world.api('GET', `/v1/sagas/${id}/log`)).json.items.map(({ type }) => type)
    await until(async () => (await types(kept)).includes('saga.held'), 'the saga is held')
    await visitor.opens(`#/saga/${kept}`)
    const marks = page.getByTestId('marks')
    await marks.locator('[data-state="held"]').getByText('held').waitFor()
    await page.locator('.row.whole .bar.held').waitFor()
    expect(/the clocks stand/.test(await page.locator('.row.whole .heard').textContent()), 'said to who cannot see it')
    await world.api('POST', `/v1/holds/${hold.json.n}/release`, operator)
    await marks.locator('[data-state="released"]').getByText('released').waitFor()
    await visitor.checksAccessAgain('saga-held')

    await world.fault({ route: 'mails', mode: 'slow', ms: 600_000, times: 1 })
    const taken = await world.start('parcel', { to: 'ada' }, { id: 'taken' })
    await until(async () => (await types(taken)).includes('step.intent'), 'sending')
    await world.restart()
    await world.until(taken, ['completed'])
    await visitor.signsIn('operator')
    await visitor.opens(`#/saga/${taken}`)
    await marks.getByText('taken over by another engine').waitFor()
    await page.getByRole('button', { name: /^send: .*taken over: the engine that made this call is gone/ }).waitFor()
    await world.noFaults()
    await visitor.opens(`#/saga/${orders.undone}`)
    await visitor.sees('Why it is undone:')
  })

  await promise('what was sent and what came back, in the words of the receiver', async () => {
    await page.getByRole('link', { name: 'what was sent, and what came back' }).click()
    await visitor.sees('What the receiver answered to attempt 1: status 422')
    expect(
      (await page.getByLabel('Answer', { exact: true }).innerText()).includes('there is no such mailbox'),
      'the words'
    )
    expect(
      (await page.getByLabel('Arguments', { exact: true }).innerText()).includes('bounce@example.com'),
      'the arguments'
    )
    const key = (await world.saga(orders.undone)).steps.find(({ id }) => id === 'confirm').key
    await visitor.sees(key)
    expect(page.url().endsWith('?step=confirm'), 'the step is in the address', page.url())
    await visitor.checksAccess('saga-step')
  })

  await promise('the log: filtered, an entry chosen, all of it in the address', async () => {
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.getByLabel('Type contains').fill('compensation')
    await visitor.sees('5 entries of 15')
    await page.getByRole('link', { name: /compensation.planned/ }).click()
    expect((await page.getByLabel('Data').innerText()).includes('"charge"'), 'the plan')
    await visitor.checksAccess('saga-log')
    const other = await Visitor.arrives(browser, world, { as: 'reader' })
    await other.page.goto(page.url())
    await other.page.getByRole('heading', { name: '10 compensation.planned' }).waitFor()
    await other.sees('5 entries of 15')
    await other.leaves()
  })

  await promise('pause and resume, with a note that is in the log', async () => {
    const id = await world.start('contract', {}, { id: 'verbs' })
    await visitor.opens(`#/saga/${id}`)
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
    expectEqual((await world.saga(id)).paused ?? null, null, 'nothing without a note')
    await pressIn('Pause', 'the lawyer is ill')
    await visitor.sees('the lawyer is ill')
    const paused = await world.saga(id)
    expectEqual([paused.paused_by, paused.paused_note], ['operator', 'the lawyer is ill'], 'who and why')
    await page.getByRole('button', { name: 'Resume' }).click()
    await pressIn('Resume', 'the lawyer is well again')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    expectEqual((await world.saga(id)).paused ?? null, null, 'it goes on')
  })

  await promise('a saga that is run again leads back to the one before, which names its reruns', async () => {
    await visitor.opens(`#/saga/${orders.undone}`)
    await page.getByRole('button', { name: 'Run again' }).click()
    await pressIn('Run again', 'the mailbox is there again')
    await page.getByRole('heading', { name: 'first-undone~2', level: 1 }).waitFor()
    await page.getByText('Started once more after').waitFor()
    await page.getByRole('link', { name: orders.undone.slice(0, 13) }).click()
    await page.getByText('Run again as').waitFor()
    await page.getByRole('link', { name: 'first-undone~2' }).waitFor()
    await visitor.opens(`#/saga/${(await world.api('GET', '/v1/sagas/by-business-id/contract/verbs')).json.id}`)
  })

  await promise('a signal goes byte for byte, and comes back with every digit', async () => {
    const id = (await world.api('GET', '/v1/sagas/by-business-id/contract/verbs')).json.id
    const payload = '{"by": "ada", "number": 12345678901234567890.10}'
    await page.getByRole('button', { name: 'Signal' }).click()
    const dialog = page.getByRole('dialog')
    expectEqual(await dialog.getByLabel('Name').inputValue(), 'signed', 'the name that it waits for')
    await dialog.getByLabel('Payload, JSON').fill('{"by": ')
    await dialog.getByText('the payload is no JSON').waitFor()
    await dialog.getByLabel('Payload, JSON').fill(payload)
    await dialog.getByRole('button', { name: 'Send the signal' }).click()
    await dialog.waitFor({ state: 'detached' })
    await world.until(id, ['completed'])
    const answer = await world.api('GET', `/v1/sagas/${id}`)
    expect(answer.text.includes('12345678901234567890.10'), 'what came in is what was typed', answer.text)
    await page.getByRole('link', { name: 'Input and output' }).click()
    await page.getByLabel('Output').getByText('12345678901234567890.10').waitFor()
    await visitor.checksAccessAgain('saga-data')
  })

  await promise('a saga follows its log: what happens is there before its next read', async () => {
    const id = await world.start('contract', {}, { id: 'followed' })
    const other = await Visitor.arrives(browser, world, { as: 'reader', withClock: true })
    const streams = []
    other.page.on('response', (answer) => /log\?follow/.test(answer.url()) && streams.push(answer.status()))
    await other.opens(`#/saga/${id}`)
    await until(async () => streams.includes(200), 'a stream of the log')
    await other.stopsClock()
    await world.api('POST', `/v1/sagas/${id}/pause`, { note: 'a cup of tea' })
    const paused = other.page.locator('.row.whole .bar.paused')
    await other.seesByEvents(() => paused.isVisible(), 'the entry of the log', 1900)
    const state = other.page.locator('.title [data-state="paused"]')
    await other.seesByEvents(() => state.isVisible(), 'the state', 1900)
    await other.leaves()
  })

  await promise('abort says first what it leads to', async () => {
    await visitor.opens(`#/saga/${orders.stuck}`)
    await page.getByRole('button', { name: 'Abort' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('What this leads to').waitFor()
    await dialog.getByText('Assumed: each later call succeeds').waitFor()
    await visitor.checksAccessAgain('saga-abort')
    await page.keyboard.press('Escape')
    expectEqual((await world.saga(orders.stuck)).status, 'escalated', 'nothing was done')
  })

  await promise('what a role may not do is shown as not allowed, with why, and not done', async () => {
    const reader = await Visitor.arrives(browser, world, { as: 'reader' })
    await reader.opens(`#/saga/${orders.stuck}`)
    const abort = reader.page.getByRole('button', { name: 'Abort' })
    await abort.waitFor()
    expectEqual(await abort.getAttribute('aria-disabled'), 'true', 'abort')
    await reader.sees('needs the role agent; you are signed in as reader')
    await reader.sees('about confirm: The connection was closed without an answer.')
    await abort.click({ force: true })
    expectEqual(await reader.page.getByRole('dialog').count(), 0, 'dialogs')
    await reader.checksAccessAgain('saga-reader')
    await reader.leaves()
    const stranger = await Visitor.arrives(browser, world, { as: 'stranger' })
    await stranger.opens(`#/saga/${orders.stuck}`)
    await stranger.page.getByRole('alert').getByText('there is no saga').waitFor()
    await stranger.leaves()
  })

  await promise(`a saga of ${voices} steps opens soon, and draws only what is seen`, async () => {
    const id = await world.start(
      'choir',
      Array.from({ length: voices }, (_, i) => ({ voice: i })),
      { id: 'choir' }
    )
    await world.until(id, ['completed'])
    // Pages of the log are read side by side, and may come in any order.
    let later
    const laterCame = new Promise((resolve) => (later = resolve))
    await page.route(/log\?limit=500&cursor=500$/, (route) => laterCame.then(() => route.continue()))
    page.on('response', (answer) => /log\?limit=500&cursor=1000$/.test(answer.url()) && later())
    const begun = Date.now()
    const spent = await taskTime(page)
    await visitor.opens(`#/saga/${id}`)
    await until(async () => (await page.locator('.timeline .row.do').count()) > 10, 'rows of the timeline')
    const ms = Math.round(await spent())
    console.log(`# a saga of ${voices} steps opened in ${Date.now() - begun} ms, ${ms} ms of them at work`)
    expect(ms < opensMs, `processor time to open it, at most ${opensMs} ms`, ms)
    expect((await page.locator('.timeline .row.do').count()) < 100, 'rows that exist')
    const steps = page.getByRole('region', { name: 'Steps' })
    expectEqual(await steps.locator('tr[data-row]').count(), 100, 'steps that exist')
    await page.getByRole('button', { name: 'Later steps' }).click()
    await page.getByText(`Steps 101 to 200 of ${voices + 1}`).waitFor()
    await visitor.opens(`#/saga/${id}?step=${encodeURIComponent(`voices#${voices - 1}`)}`)
    await steps.locator('tr.open').waitFor()
    expectEqual(await steps.locator('tr[data-row]').count(), 1, 'steps of the last page')
    await visitor.opens(`#/saga/${id}/log`)
    const whole = Number(world.sql(`select sum(records) from sagad.log where saga = '${id}'`))
    await page.getByText(`${whole} entries`, { exact: true }).waitFor()
    await until(async () => (await page.locator('.entry').count()) > 10, 'entries of the log')
    expect((await page.locator('.entry').count()) < 200, 'entries that exist')
    await page
      .getByLabel('Log', { exact: true })
      .last()
      .evaluate((box) => (box.scrollTop = box.scrollHeight))
    await page.getByRole('link', { name: /saga.completed/ }).waitFor()
  })
  await visitor.leaves()
}
