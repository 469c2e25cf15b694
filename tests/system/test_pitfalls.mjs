// The places where engines for sagas in JSON are known to undo wrongly: branches, fan-outs, nested sagas, several
// compensators for one step, resuming in the middle, and errors from within. One promise for each, against the real
// shop.
import {
  done,
  finish,
  happened,
  keyOf,
  languageTools,
  logOf,
  nothingStands,
  replayAll,
  stepOf,
  take,
  undone
} from '../lib/language.mjs'
import { World, expect, expectEqual, leaves, promise, run, sleep } from '../lib/world.mjs'

function definitions(shop) {
  const never = { id: 'never', call: 'never' }
  const named = (id, more) => take(id, `\${ "${id}-" + .input.name }`, more)
  const sagas = [
    // The order is start; then a1 a2 beside b1 b2 (b2 perhaps) beside c1, which fails when told to.
    {
      name: 'branches',
      steps: [
        named('start'),
        named('a1', { after: ['start'] }),
        named('a2', { after: ['a1'] }),
        named('b1', { after: ['start'] }),
        named('b2', { after: ['b1'], when: '${ .input.more }' }),
        named('b3', { after: ['b2'] }),
        { ...take('end', '${ .input.end }'), after: ['a2', 'b3'] }
      ]
    },
    {
      name: 'fans',
      steps: [
        named('start'),
        { ...take('fan', '${ .item }'), for_each: '${ .input.items }', concurrency: 3 },
        { ...take('end', '${ .input.end }') }
      ]
    },
    {
      name: 'inner',
      steps: [
        named('one'),
        { id: 'two', saga: 'innermost', with: { name: '${ .input.name }', sku: '${ .input.sku }' } },
        named('three')
      ]
    },
    { name: 'innermost', steps: [named('x'), { ...take('y', '${ .input.sku }') }] },
    {
      name: 'nested',
      steps: [
        named('start'),
        { id: 'inner', saga: 'inner', with: { name: '${ .input.name }', sku: '${ .input.sku }' } },
        { ...take('end', '${ .input.end }') }
      ]
    },
    {
      name: 'chain',
      steps: [
        named('plain'),
        named('other', {
          compensate: { tool: 'give_otherwise', with: { id: '${ .result.id }', because: '${ .input.name }' } }
        }),
        { ...take('again', '${ .input.sku }'), on_failure: 'escalate' },
        {
          ...take('again_other', '${ .input.sku }'),
          on_failure: 'escalate',
          compensate: { tool: 'give_otherwise', with: { id: '${ .result.id }', because: '${ .args.sku }' } }
        },
        never
      ]
    },
    {
      name: 'conditional',
      steps: [
        named('start'),
        {
          id: 'trial',
          when: '${ .input.try }',
          saga: 'inner',
          with: { name: '${ .input.name }', sku: 'none' },
          on_failure: 'continue'
        },
        named('instead', { when: '${ .steps.trial.status != "completed" }' }),
        named('never_this', { when: '${ .steps.trial.status == "completed" }' }),
        { ...take('end', '${ .input.end }') }
      ],
      output: '${ .steps.instead.result.id // null }'
    },
    {
      name: 'breaks_in',
      steps: [named('one'), { ...take('two', 'x'), with: { sku: '${ .steps.one.result.id | keys }', qty: 1 } }]
    },
    { name: 'breaks_at_the_end', steps: [named('one')], output: '${ .steps.one.result.id | keys }' },
    {
      name: 'breaks_undoing',
      steps: [named('one', { compensate: { tool: 'give', with: { id: '${ .result.id | keys }' } } }), never]
    },
    ...['breaks_in', 'breaks_at_the_end', 'breaks_undoing'].flatMap((child) => [
      {
        name: `in_${child}`,
        steps: [named('start'), { id: 'child', saga: child, with: { name: '${ .input.name }' } }, named('end')]
      },
      {
        name: `on_${child}`,
        steps: [
          named('start'),
          { id: 'child', saga: child, with: { name: '${ .input.name }' }, on_failure: 'continue' },
          named('end')
        ]
      }
    ])
  ]
  const otherwise = {
    name: 'give_otherwise',
    effect: 'idempotent',
    timeout: '5s',
    http: { method: 'DELETE', url: `${shop}/reservations/\${ .args.id }` }
  }
  return { tools: [...languageTools(shop), otherwise], sagas }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  await world.define(definitions(`http://127.0.0.1:${world.shopPort}`))
  const start = (saga, name, more = {}) => world.start(saga, { name, ...more })
  const before = (list, a, b) =>
    expect(list.indexOf(a) >= 0 && list.indexOf(a) < list.indexOf(b), `${a} before ${b}`, list)

  await promise(
    'undo inside a branch: each in reverse of its own order, the skipped one not at all, and the branches ' +
      'before what they share',
    async () => {
      for (const more of [true, false]) {
        const saga = await finish(world, await start('branches', `br-${more}`, { more, end: 'none' }), 'compensated')
        const undo = undone(world, saga)
        expectEqual([...undo].sort(), ['a1', 'a2', 'b1', ...(more ? ['b2'] : []), 'b3', 'start'], 'what was undone')
        before(undo, 'a2', 'a1')
        before(undo, 'b3', 'b1')
        if (more) before(undo, 'b2', 'b1')
        expectEqual(undo.at(-1), 'start', 'what was undone last')
        nothingStands(world, saga)
      }
      // Equal steps are undone in reverse order of their start: b1 began after a1, and with one step at a time the
      // order is the same each time.
      const orders = new Set()
      for (let n = 0; n < 3; n++) {
        const saga = await finish(world, await start('branches', `bt-${n}`, { more: true, end: 'none' }), 'compensated')
        const began = saga.steps
          .filter((step) => step.compensation)
          .sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at))
        orders.add(undone(world, saga).length === began.length)
      }
      expectEqual([...orders], [true], 'all of it, each time')
    }
  )

  await promise(
    'undo inside a fan-out: those that took effect, in reverse of the elements; not the failed, not the ones ' +
      'that never began',
    async () => {
      // The failure is known long before anything else has taken effect.
      await world.fault({ route: 'reservations', mode: 'slow', ms: 400, times: 7, match: '"fan-' })
      const items = ['fan-0', 'fan-1', 'none', 'fan-3', 'fan-4', 'fan-5', 'fan-6', 'fan-7']
      const saga = await finish(world, await start('fans', 'f1', { items, end: 'x' }), 'compensated')
      const did = done(world, saga)
        .filter((id) => id.startsWith('fan#'))
        .map((id) => Number(id.slice(4)))
      expect(did.includes(0) && did.includes(1) && !did.includes(2) && did.length < 7, 'what was done', did)
      expectEqual(
        undone(world, saga),
        [...did.sort((a, b) => b - a).map((i) => `fan#${i}`), 'start'],
        'what was undone'
      )
      const behind = await finish(
        world,
        await start('fans', 'f2', { items: ['p', 'q', 'r', 's'], end: 'none' }),
        'compensated'
      )
      expectEqual(undone(world, behind), ['fan#3', 'fan#2', 'fan#1', 'fan#0', 'start'], 'what was undone')
      nothingStands(world, behind)
      await world.noFaults()
    }
  )

  await promise(
    'undo inside a nested saga: from the innermost outwards, whether the failure is in it, above it or behind it',
    async () => {
      const cases = [
        ['n1', { sku: 'none', end: 'x' }, ['inner/two/x', 'inner/one', 'start']],
        ['n2', { sku: 'ok', end: 'none' }, ['inner/three', 'inner/two/y', 'inner/two/x', 'inner/one', 'start']]
      ]
      for (const [name, more, undo] of cases) {
        const saga = await finish(world, await start('nested', name, more), 'compensated')
        expectEqual(undone(world, saga), undo, 'what was undone')
        nothingStands(world, saga)
      }
    }
  )

  await promise(
    "several undos about one step: the tool's, the step's own, and that of a second generation: each once, " +
      'under its own key',
    async () => {
      const id = await start('chain', 'ch', { sku: 'none' })
      for (const step of ['again', 'again_other']) {
        await finish(world, id, 'escalated')
        const asked = await world.escalationOf(id)
        expectEqual(asked.step, step, 'what is asked about')
        expectEqual(
          (await world.resolve(id, { action: 'retry', args: { sku: `there-${step}`, qty: 2 } })).status,
          200,
          'the answer to retry'
        )
        await sleep(100)
      }
      const saga = await finish(world, id, 'compensated')
      expectEqual(undone(world, saga), ['again_other', 'again', 'other', 'plain'], 'what was undone')
      nothingStands(world, saga)
      for (const [step, tool, generation] of [
        ['plain', 'give', 0],
        ['other', 'give_otherwise', 0],
        ['again', 'give', 1],
        ['again_other', 'give_otherwise', 1]
      ]) {
        expectEqual(stepOf(saga, step).key, keyOf({ run: id, step, tool: 'take', generation }), `the key of ${step}`)
        const undo = (await world.api('GET', `/v1/operations/${stepOf(saga, step).compensation.key}`)).json
        expectEqual([undo.tool, undo.args.id], [tool, stepOf(saga, step).result.id], `what undid ${step}`)
      }
      expectEqual(
        (await world.api('GET', `/v1/operations/${stepOf(saga, 'again_other').compensation.key}`)).json.args.because,
        'there-again_other',
        'the arguments it was undone with are those it was done with'
      )
      const releases = world
        .ledger()
        .filter((line) => line.effect === 1 && line.kind === 'release')
        .map((line) => line.target)
      expect(new Set(releases).size === releases.length, 'nothing is given back twice', releases)
    }
  )

  await promise(
    'going on after an undo inside a condition: also when sagad is killed in the middle of it',
    async () => {
      for (const [name, more, status, what] of [
        [
          'co1',
          { try: true, end: 'x' },
          'completed',
          ['do start', 'do trial/one', 'do trial/two/x', 'undo trial/two/x', 'undo trial/one', 'do instead', 'do end']
        ],
        [
          'co2',
          { try: true, end: 'none' },
          'compensated',
          [
            'do start',
            'do trial/one',
            'do trial/two/x',
            'undo trial/two/x',
            'undo trial/one',
            'do instead',
            'undo instead',
            'undo start'
          ]
        ],
        ['co3', { try: false, end: 'none' }, 'compensated', ['do start', 'do instead', 'undo instead', 'undo start']]
      ]) {
        const kill = more.try
        if (kill) await world.fault({ route: 'releases', mode: 'slow', ms: 600, times: 1 })
        const id = await start('conditional', name, more)
        if (kill) {
          for (const end = Date.now() + 20000; ; await sleep(20)) {
            const now = (await world.saga(id)).steps.find((step) => step.id === 'trial/two/x')
            if (now?.compensation && now.status === 'compensating') break
            expect(Date.now() < end, 'the undo has begun', now)
          }
          await world.restart()
        }
        const saga = await finish(world, id, status)
        expectEqual(happened(world, saga), what, 'what happened')
        const log = await logOf(world, id)
        const decided = log.filter((entry) => entry.type === 'step.skipped').map((entry) => entry.step)
        expect(
          new Set(decided).size === decided.length && decided.includes('never_this'),
          'conditions are decided once',
          decided
        )
        await world.noFaults()
      }
    }
  )

  await promise(
    'an error inside a nested saga: arguments or output that cannot be made are a failure of it, certain, and not lost',
    async () => {
      for (const child of ['breaks_in', 'breaks_at_the_end']) {
        const undo = await finish(world, await start(`in_${child}`, `in-${child}`), 'compensated')
        expectEqual(
          happened(world, undo),
          ['do start', 'do child/one', 'undo child/one', 'undo start'],
          `${child}: what happened`
        )
        const why = (await logOf(world, undo.id)).find((entry) => entry.type === 'saga.failing')
        expect(
          why.step?.startsWith('child') && JSON.stringify(why).includes('keys'),
          `${child}: the log says which step, and why`,
          why
        )
        const on = await finish(world, await start(`on_${child}`, `on-${child}`), 'completed')
        expectEqual(
          happened(world, on),
          ['do start', 'do child/one', 'undo child/one', 'do end'],
          `${child}: what happened with "continue"`
        )
      }
    }
  )
  await promise(
    'an error in what undoes a nested saga is a question about that step, and the rest is undone or goes on',
    async () => {
      for (const [saga, status, rest] of [
        ['in_breaks_undoing', 'abandoned', ['undo start']],
        ['on_breaks_undoing', 'abandoned', ['do end']]
      ]) {
        const id = await start(saga, saga)
        await finish(world, id, 'escalated')
        const asked = await world.escalationOf(id)
        expectEqual(asked.step, 'child/one', 'what is asked about')
        expectEqual((await world.resolve(id, { action: 'waive' })).status, 200, 'the answer to waive')
        const ended = await finish(world, id, status)
        expectEqual(happened(world, ended).slice(2), rest, 'what happened to the rest')
      }
    }
  )

  await promise('every log folds to the stored state', () => replayAll(world))
  await leaves(world)
})
