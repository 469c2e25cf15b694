// Tests of the evaluation itself. With an honest registry of paper the judge has nothing to say, and it finds each
// planted bug of the registry. Then somebody goes behind the registry's back, straight to the shop, and the judge sees
// that too.
import { World, expect, promise, quick, run, sleep } from '../lib/world.mjs'
import { Client } from './client.mjs'
import { HttpDoor } from './http_door.mjs'
import { Books } from './judge.mjs'
import { Paper, bugs } from './paper.mjs'
import { Person } from './person.mjs'
import { Trial } from './trial.mjs'
import { shops } from './wish.mjs'

const chaos = {
  percent: 12,
  ms: 250,
  modes: {
    'reset-after-effect': 3,
    'reset-before-effect': 2,
    '500-before': 2,
    '500-after': 2,
    garbage: 1,
    truncated: 2,
    slow: 2,
    late: 2,
    redelivered: 2
  }
}
// Numbers of wishes: a bug strikes only some wishes, so that a rare bug needs more of them.
const tries = quick ? [40, 150, 400] : [150, 400]
const seed = Number(process.env.SAGAD_TEST_SEED ?? 7)

await run(new World(), async (world) => {
  let shopNumber = 0

  // Each trial has a shop of its own.
  async function trial(shop, { bug, share, runs = 150, patience = 60000, meanwhile } = {}) {
    world.shop?.kill('SIGKILL')
    await world.shop?.ended
    world.shopPort = undefined
    world.ledgerPath = `${world.directory}/ledger-${++shopNumber}.jsonl`
    await world.startShop(['--no-sync'])
    await world.shopSettings({ ...shops[shop].settings, chaos: { ...chaos, seed } })
    const paper = new Paper(world.shopPort, shop, { bug, share })
    await paper.listen()
    const client = new Client(() => [{ host: '127.0.0.1', port: paper.port }])
    const books = new Books(world.ledgerPath)
    const made = new Trial({
      seed,
      runs,
      shop,
      agents: 100,
      doorOf: (wish) => new HttpDoor(wish, client, '2s'),
      operator: client,
      patience,
      vanishedAfter: '1s',
      before: async (wish) => {
        if (wish.tagBefore) await world.atShop('PUT', `/tags/${wish.id}-customer`, { request: 'before', tag: 'vip' })
      }
    })
    const person = new Person(client, books, { quiet: 700, met: (item, operation) => made.met(item, operation) })
    await made.go()
    await person.stop()
    await meanwhile?.(made, books)
    const verdicts = made.judge(books)
    const counts = made.counts(books)
    client.close()
    paper.close()
    return { verdicts, counts, made, books }
  }

  const shown = (verdicts) =>
    verdicts.slice(0, 3).map((verdict) => ({ wish: verdict.request, what: verdict.what.slice(0, 3) }))

  for (const shop of Object.keys(shops)) {
    await promise(`${shops[shop].says}, an honest registry: the judge has nothing to say`, async () => {
      const { verdicts, counts } = await trial(shop, { runs: quick ? 80 : 400, patience: 240000 })
      console.log(`# ${JSON.stringify(counts)}`)
      expect(verdicts.length === 0, `${verdicts.length} wishes are wrong`, shown(verdicts))
      expect(counts.completed > 20 && counts.compensated > 5 && counts.replayed > 20, 'all kinds of ends', counts)
      expect(
        counts.person > 0 === (shop === 'blind'),
        'a person is needed where nothing can be looked up, and only there',
        counts
      )
    })
  }

  const where = { 'blind-retry': 'blind', 'lost-answer-is-failure': 'ignores-keys', 'racers-all-call': 'ignores-keys' }
  for (const [bug, [says, found]] of Object.entries(bugs)) {
    await promise(`found: ${says} (${bug})`, async () => {
      let verdicts, sentences
      for (const runs of tries) {
        ;({ verdicts } = await trial(where[bug] ?? 'keys', {
          runs,
          bug,
          share: bug === 'undo-of-what-was-before' ? 1 : 0.3,
          patience: bug === 'never-ends' ? 9000 : 60000
        }))
        sentences = verdicts.flatMap((verdict) => verdict.what).filter((what) => found.test(what))
        if (sentences.length > 0) break
      }
      expect(sentences.length > 0, 'the judge did not see it', shown(verdicts))
      console.log(`#   ${verdicts.length} wishes: ${sentences[0].slice(0, 160)}`)
    })
  }

  const behind = {
    "a charge made twice, behind the registry's back": async (made) => {
      const done = made.journeys.find((journey) => journey.final?.status === 'completed')
      await world.atShop('POST', '/charges', { request: done.wish.id, amount: 5, customer: 'x' }, 'another-key')
      return done
    },
    'an undo that never came': async (made) => {
      // Somebody makes the effect again under a key that nobody knows, after all was undone, as if the undo had been
      // lost.
      const undone = made.journeys.find(
        (journey) =>
          journey.final?.status === 'compensated' && journey.final.steps.some((step) => step.took_effect === 'undone')
      )
      await world.atShop('POST', '/reservations', { request: undone.wish.id, sku: 'kettle', qty: 1 }, 'nobody-knows')
      return undone
    },
    'an undo of what should stand': async (made, books) => {
      const done = made.journeys.find((journey) => journey.final?.status === 'completed')
      await world.atShop(
        'DELETE',
        `/charges/${
          books
            .read()
            .things(done.wish.id)
            .find((line) => line.kind === 'charge').id
        }`
      )
      return done
    },
    'an effect that nobody wished for': async () => {
      await world.atShop('POST', '/mails', { request: 'nobody', to: 'x', subject: 'y' }, 'k')
    }
  }
  for (const [what, spoil] of Object.entries(behind)) {
    await promise(`found: ${what}`, async () => {
      let victim
      const { verdicts } = await trial('keys', {
        runs: 60,
        meanwhile: async (made, books) => {
          await world.shopSettings({ chaos: { percent: 0 } })
          victim = await spoil(made, books)
          await sleep(50)
        }
      })
      expect(
        verdicts.length === 1 && (!victim || verdicts[0].journey === victim),
        'that wish, and no other',
        shown(verdicts)
      )
      console.log(`#   ${verdicts[0].what[0].slice(0, 160)}`)
    })
  }
})
