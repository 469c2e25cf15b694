// In the night a bank loses its answers, and many sagas ask the same question. One person answers each as the file of
// the bank says, by the mouse in a few clicks, and by keyboard alone.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, expectEqual, promise, quick } from '../lib/world.mjs'
import { Visitor, countsClicks } from './stage.mjs'

const clicksMax = 12
const stuck = quick ? 30 : 3000
const byKeyboard = quick ? 6 : 2000

const answered = (n) => `${n.toLocaleString('en')} of ${n.toLocaleString('en')} have an outcome`

// A third is charged without an answer, a third is not charged, and a third is told that the bank is away.
async function outage(world, prefix, count) {
  const trips = Array.from({ length: count }, (_, i) => `${prefix}-${['took', 'hung', 'busy'][i % 3]}-${i}`)
  await world.fault({ route: 'charges', mode: 'timeout-after-effect', times: -1, match: `${prefix}-took-` })
  await world.fault({ route: 'charges', mode: 'hang', times: -1, match: `${prefix}-hung-` })
  await world.fault({ route: 'charges', mode: '503', times: -1, match: `${prefix}-busy-` })
  const ids = []
  for (const trip of trips) ids.push(await world.start('trip', { trip }, { id: trip }))
  for (const id of ids) await world.until(id, ['escalated'], 600)
  await world.noFaults()
  return { trips, ids, refundsBefore: refunds(world) }
}

const charged = (world, trips) => {
  const ours = new Set(trips)
  const charges = world.ledger().filter(({ kind, effect }) => kind === 'charge' && effect)
  return charges.map(({ body }) => body.customer).filter((customer) => ours.has(customer))
}

const refunds = (world) => world.ledger().filter(({ kind, effect }) => kind === 'refund' && effect).length

// What the bank knows: it has charged some of the trips, and has never heard of the others. It knows others, too.
function bankFile(world, prefix, trips) {
  const took = new Set(charged(world, trips))
  const rows = trips.map((trip) => (took.has(trip) ? `${trip},25.00,SETTLED,ch-${trip}` : `${trip},25.00,NONE,`))
  const file = join(world.directory, `bank-${prefix}.csv`)
  writeFileSync(file, ['reference,amount,state,charge', ...rows, 'of-somebody-else,9.00,SETTLED,ch-7', ''].join('\r\n'))
  return file
}

async function isRight(world, { trips, ids, refundsBefore }) {
  for (const id of ids) await world.until(id, ['completed'])
  expectEqual(charged(world, trips).sort(), [...trips].sort(), 'who was charged, by the ledger of the bank')
  expectEqual(refunds(world), refundsBefore, 'refunds: no trip is given up that could be saved')
}

export async function night(world, browser) {
  const visitor = await Visitor.arrives(browser, world, { as: 'operator' })
  const { page } = visitor
  // Whoever opens the dialog of the browser for files chooses this one.
  let file = ''
  page.on('filechooser', (chooser) => chooser.setFiles(file))
  const note = 'Why, for those who read the logs later'
  const meaning = (word, title) =>
    page.getByRole('group', { name: new RegExp(`^${word}`) }).getByRole('radio', { name: title, exact: true })

  await promise(
    `the night: ${stuck} stuck sagas are answered rightly, with at most ${clicksMax} clicks and one note`,
    async () => {
      const storm = await outage(world, 'storm', stuck)
      const n = stuck.toLocaleString('en')
      await visitor.opens('#/overview')
      const clicks = await countsClicks(page)
      const begun = Date.now()
      await page.getByRole('link', { name: `card.pay: ${n} cases` }).click()
      await page.getByRole('link', { name: `Answer all ${n}` }).click()
      await page.getByRole('radio', { name: /^As a file says/ }).click()
      file = bankFile(world, 'storm', storm.trips)
      await page.getByLabel('The file, CSV with a head').click()
      await page.getByText(`1 row about none of these cases`).waitFor()
      await meaning('SETTLED', 'It happened').click()
      await meaning('NONE', 'It did not happen: try again').click()
      await page.getByLabel('Result: charge_id').click() // opens the list, in which a second click chooses
      await page.getByLabel('Result: charge_id').selectOption('charge')
      await page.getByText(`${n} rows of ${(stuck + 1).toLocaleString('en')}`).waitFor()
      await visitor.checksAccess('bulk-file')
      await page.getByLabel(note).click()
      await page.keyboard.type("the bank's file of 03:10")
      await page.getByRole('button', { name: 'Show what would happen' }).click()
      await page.getByText(`${n} would take it`).waitFor()
      await page.getByLabel(`Type ${stuck}`).click()
      await page.keyboard.type(String(stuck))
      await page.getByRole('button', { name: 'Run it on' }).click()
      await page.getByRole('heading', { name: answered(stuck) }).waitFor({ timeout: 600_000 })
      const counted = (await clicks()) + 1 // a list that opens is closed without a click that the page sees
      console.log(`# ${stuck} cases: ${counted} clicks, ${((Date.now() - begun) / 1000).toFixed(1)} s`)
      expect(counted > 3 && counted <= clicksMax, 'clicks', counted)
      await page.getByRole('listitem').getByText(`${n} done`).waitFor()
      await isRight(world, storm)
    },
    900
  )

  await promise(
    `by keyboard alone: the same night with ${byKeyboard}`,
    async () => {
      const calm = await outage(world, 'calm', byKeyboard)
      const n = byKeyboard.toLocaleString('en')
      await page.evaluate(() => (location.hash = '#/sagas'))
      await page.getByRole('heading', { name: 'Sagas' }).waitFor()
      const clicks = await countsClicks(page)
      // Presses Tab until what has the focus is called so.
      const tabTo = async (name) => {
        for (let i = 0; i < 80; i++) {
          await page.keyboard.press('Tab')
          const named = await page.evaluate(() => {
            const { activeElement: at } = document
            if (!at.matches('a, button, input, select, textarea')) return ''
            const group = at.closest('fieldset')?.querySelector('legend')?.innerText
            const names = [at.labels?.[0]?.innerText, at.innerText, at.getAttribute('aria-label')]
            return [group, ...names].filter(Boolean).join(' ')
          })
          if (named.includes(name)) return
        }
        throw new Error(`Tab does not lead to ${name}`)
      }
      const chooses = async (word, title) => {
        await tabTo(word)
        await page.keyboard.press('Space')
        for (let i = 0; !(await meaning(word, title).isChecked()); i++) {
          expect(i < 10, `the arrows lead to ${title}`)
          await page.keyboard.press('ArrowDown')
        }
      }
      await page.keyboard.press('g')
      await page.keyboard.press('n')
      await page.getByRole('heading', { name: 'Needs a person' }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('card.pay')
      await page.keyboard.press('Tab')
      await page.getByRole('link', { name: `Answer all ${n}` }).waitFor()
      await tabTo(`Answer all ${n}`)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'One answer for many' }).waitFor()
      await tabTo('It happened')
      await visitor.checksAccessAgain('bulk-new')
      await page.keyboard.press('ArrowUp') // the last of them
      await tabTo('The file, CSV with a head')
      file = bankFile(world, 'calm', calm.trips)
      await page.keyboard.press('Enter')
      await page.getByLabel('Result: charge_id').waitFor()
      await tabTo('Result: charge_id')
      await page.keyboard.type('charge')
      await chooses('SETTLED', 'It happened')
      await chooses('NONE', 'It did not happen: try again')
      await tabTo(note)
      await page.keyboard.type('the bank has looked again')
      await tabTo('Show what would happen')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: `As a file says: ${n} items` }).waitFor()
      const preview = page.getByRole('region', { name: 'What would happen' })
      await preview.getByText(`${n} would take it`).waitFor()
      await preview.getByText(`${n} would end`).waitFor()
      await visitor.checksAccess('bulk-preview')
      await tabTo(`Type ${byKeyboard}`)
      await page.keyboard.type('99999')
      expect(await page.getByRole('button', { name: 'Run it on' }).isDisabled(), 'another number does nothing')
      for (let i = 0; i < 5; i++) await page.keyboard.press('Backspace')
      await page.keyboard.type(String(byKeyboard))
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: answered(byKeyboard) }).waitFor({ timeout: 600_000 })
      await page.getByRole('cell', { name: 'done' }).first().waitFor()
      await visitor.checksAccessAgain('bulk-done')
      expectEqual(await clicks(), 0, 'clicks')
      await isRight(world, calm)
      await visitor.opens('#/bulk')
      await visitor.sees('the bank has looked again')
      await visitor.checksAccess('bulk')
    },
    900
  )
  await visitor.leaves()
}
