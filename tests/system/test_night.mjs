// The night of a payment outage, as the person on call lives it. Many trips are stuck, the bank sends a file of what it
// knows, and the person has only `sagactl`. The commands are those of the operations page.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, eventually, expect, expectEqual, promise, quick, run } from '../lib/world.mjs'

const count = quick ? 60 : 2000
// A third is charged without an answer, a third is not charged, and a third is told that the bank is away.
const trips = Array.from({ length: count }, (_, i) => `${['took', 'hung', 'busy'][i % 3]}-${i}`)

const definitions = (shop) => ({
  tools: [
    {
      name: 'seat.free',
      input: { type: 'object', required: ['id'] },
      http: { method: 'DELETE', url: `${shop}/reservations/\${ .args.id }` },
      effect: 'idempotent'
    },
    {
      name: 'seat.book',
      http: { method: 'POST', url: `${shop}/reservations`, body: '${ .args }' },
      effect: 'keyed',
      key: { window: '1d' },
      result: { id: '${ .response.body.id }' },
      compensate: { tool: 'seat.free', with: { id: '${ .result.id }' } }
    },
    {
      name: 'card.refund',
      input: { type: 'object', required: ['charge_id'] },
      http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' },
      effect: 'keyed',
      key: { window: '1d' }
    },
    {
      name: 'card.pay',
      http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
      effect: 'once',
      timeout: '500ms',
      result: { charge_id: '${ .response.body.id }' },
      cost: '${ .args.amount * 10000 }',
      compensate: { tool: 'card.refund', with: { charge_id: '${ .result.charge_id }' } }
    },
    {
      name: 'mail.send',
      http: { method: 'POST', url: `${shop}/mails`, body: '${ .args }' },
      effect: 'keyed',
      key: { window: '1d' },
      terminal: true
    }
  ],
  sagas: [
    {
      name: 'trip',
      steps: [
        { id: 'seat', call: 'seat.book', with: { sku: 'seat', qty: 1, request: '${ .input.trip }' } },
        {
          id: 'pay',
          call: 'card.pay',
          with: { amount: 2500, customer: '${ .input.trip }', request: '${ .input.trip }' }
        },
        { id: 'mail', call: 'mail.send', with: { to: '${ .input.trip }', subject: 'bon voyage' } }
      ]
    }
  ]
})

// Makes the bank's file: it has charged some of the trips, and has never heard of the others.
const bankFile = (world) => {
  const charged = new Set(
    world
      .ledger()
      .filter((line) => line.kind === 'charge')
      .map((line) => line.body.customer)
  )
  const rows = trips.map((trip) => (charged.has(trip) ? `${trip},SETTLED,ch-${trip}` : `${trip},NONE,`))
  const file = join(world.directory, 'bank.csv')
  writeFileSync(file, ['reference,state,charge', ...rows, ''].join('\n'))
  return file
}

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startShop()
  await world.startEngines(2)
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
  await world.fault({ route: 'charges', mode: 'timeout-after-effect', times: -1, match: 'took-' })
  await world.fault({ route: 'charges', mode: 'hang', times: -1, match: 'hung-' })
  await world.fault({ route: 'charges', mode: '503', times: -1, match: 'busy-' })
  const start = async (some) => {
    for (const trip of some) {
      const begun = await world.api('POST', '/v1/sagas', { saga: 'trip', id: trip, input: { trip } })
      expectEqual(begun.status, 201, `${trip} begins`)
    }
  }
  const before = trips.slice(0, 3 * Math.floor(count / 4)) // the others begin when the tool is held
  const commands = []
  const command = (...words) => {
    commands.push(words)
    const { status, stdout, stderr } = world.sagactl(words)
    expectEqual(status, 0, `sagactl ${words.join(' ')} ends well: ${stdout}${stderr}`)
    return stdout
  }
  const until = (is, what) => eventually(what, is, { seconds: 480, gap: 200 })
  const mails = () => world.ledger().filter((line) => line.kind === 'mail').length
  const open = async () =>
    (await world.api('GET', '/v1/escalations?status=open&group_by=tool')).json.items.reduce((n, g) => n + g.count, 0)

  await promise(`the bank fails, and ${before.length} trips wait for a person`, async () => {
    await start(before)
    await until(async () => (await open()) === before.length, 'each trip has a case')
  })

  await promise('one look says how many, why, and how much money', async () => {
    const shown = command('cases', '--group-by', 'tool,error')
    for (const [error, of] of [
      ['timeout', 2],
      ['http-503', 1]
    ]) {
      const cases = (before.length / 3) * of
      const line = new RegExp(`card\\.pay +${error} +${cases} +${cases * 25}\\.00 `)
      expect(line.test(shown), `${cases} cases of ${error}`, shown)
    }
  })

  let calls
  await promise('a hold keeps the tool: trips that begin now wait, and nothing is sent', async () => {
    command('hold', '--tool', 'card.pay', '--note', 'the bank times out')
    calls = world.ledger().filter((line) => line.path === '/charges').length
    await start(trips.slice(before.length))
    await until(async () => world.ledger().filter((line) => line.path === '/reservations').length === count, 'seats')
    await world.noFaults()
  })

  await promise("the bank's file settles every case, under the hold", async () => {
    const from = ['--from', bankFile(world), '--column', 'reference=business_id', '--column', 'state=as']
    const about = ['resolve', '--tool', 'card.pay', ...from, '--note', "the bank's file of 03:10", '--yes']
    const charged = command(...about, '--column', 'result.charge_id=charge', '--map', 'SETTLED=happened')
    expect(charged.includes(`done ${before.length / 3}, changed 0, refused 0, open 0`), 'what was charged', charged)
    const again = command(...about, '--map', 'NONE=not_happened', '--then', 'retry')
    expect(again.includes(`done ${(before.length / 3) * 2}, changed 0, refused 0, open 0`), 'what was not', again)
    await until(async () => mails() === before.length / 3, 'what was charged goes on')
    expectEqual(world.ledger().filter((line) => line.path === '/charges').length, calls, 'calls of the held tool')
  })

  await promise('the release lets every other trip go on, and none is lost', async () => {
    const [hold] = (await world.api('GET', '/v1/holds')).json.items
    command('release', String(hold.n), '--note', 'the bank is back')
    await until(async () => mails() === count, 'every trip gets its mail')
    expectEqual(await open(), 0, 'open cases')
  })

  await promise('by the ledger of the bank each trip was paid once, and nothing was given back', async () => {
    const effects = world.ledger().filter((line) => line.effect)
    const of = (kind) => effects.filter((line) => line.kind === kind)
    const paid = of('charge').map((line) => line.body.customer)
    expectEqual(paid.sort(), [...trips].sort(), 'who was charged')
    expectEqual([of('refund').length, of('release').length, of('mail').length], [0, 0, count], 'refunds, seats, mails')
  })

  await promise('nothing stands that finance has to know, in at most eight commands', async () => {
    expectEqual(command('debts', '--csv').trim().split('\n').length, 1, 'debts')
    expect(commands.length <= 8, `${commands.length} commands`)
  })
})
