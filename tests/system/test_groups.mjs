// Steps that are made of steps: for_each and child sagas, each with its failures, limits and verbs; and versions, which
// a running saga keeps. The tests run against the real shop, whose ledger says what really happened, under which key
// and in which order.
import {
  done,
  effectsOf,
  finish,
  happened,
  keyOf,
  languageTools,
  logOf,
  nothingStands,
  order,
  replayAll,
  signal,
  statuses,
  stepOf,
  take,
  undone,
  waitsAt
} from '../lib/language.mjs'
import { World, expect, expectEqual, leaves, promise, quick, run, sleep } from '../lib/world.mjs'

function definitions(shop) {
  const first = take('first', 'first-${ .input.name }')
  const last = take('last', 'last-${ .input.name }')
  const never = { id: 'never', call: 'never' }
  const each = (more = {}) => ({ ...take('each', '${ .item }'), for_each: '${ .input.items }', ...more })
  const pair = (more = {}) => ({
    id: 'pair',
    saga: 'pair',
    with: { one: '${ .input.one }', two: '${ .input.two }' },
    ...more
  })
  const sagas = [
    // --- for_each ---
    { name: 'each', steps: [first, each(), last], output: '${ [.steps.each.result[] | .id] }' },
    { name: 'each_fast', steps: [each({ concurrency: 3 })], output: '${ .steps.each.result }' },
    { name: 'each_fast_then_fails', steps: [each({ concurrency: 8 }), never] },
    { name: 'each_undone_side_by_side', compensation: { concurrency: 4 }, steps: [each({ concurrency: 8 }), never] },
    {
      name: 'each_goes_on',
      steps: [each({ concurrency: 2, on_failure: 'continue' }), last],
      output: '${ [.steps.each.result[] | .id?] }'
    },
    { name: 'each_asks', steps: [each({ on_failure: 'escalate' }), last], output: '${ .steps.each.result }' },
    { name: 'each_perhaps', steps: [each({ when: '${ .input.items | length > 1 }' }), last] },
    {
      name: 'each_scoped',
      steps: [
        each({
          scope: '${ .item.scope }',
          with: { sku: '${ .item.sku }', qty: '${ .item.qty }' },
          compensate: { tool: 'give', with: { id: '${ .result.id }', because: '${ .item.scope }' } }
        }),
        never
      ]
    },
    { name: 'waiting', steps: [{ id: 'go', signal: { name: 'go' } }], output: '${ .steps.go.result }' },
    { name: 'sleeping', steps: [{ id: 'rest', sleep: '${ .input.for }' }] },
    {
      name: 'each_waits',
      steps: [{ id: 'each', for_each: '${ .input.items }', concurrency: 2, saga: 'waiting' }],
      output: '${ .steps.each.result }'
    },
    {
      name: 'each_sleeps',
      steps: [
        { id: 'each', for_each: '${ .input.items }', concurrency: 50, saga: 'sleeping', with: { for: '${ .item }' } },
        last
      ]
    },
    { name: 'each_deadline', deadline: '4s', steps: [each(), { id: 'wait', sleep: '1h' }] },
    { name: 'each_naps', steps: [{ id: 'each', for_each: '${ .input.items }', concurrency: 2, call: 'nap' }] },
    // --- children ---
    {
      name: 'pair',
      input: {
        type: 'object',
        required: ['one', 'two'],
        properties: { one: { type: 'string' }, two: { type: 'string' } },
        additionalProperties: false
      },
      steps: [take('one', '${ .input.one }'), take('two', '${ .input.two }')],
      output: {
        ids: '${ [.steps.one.result.id, .steps.two.result.id] }',
        saga: '${ .saga.name }',
        run: '${ .saga.id }'
      }
    },
    { name: 'with_pair', steps: [first, pair(), last], output: '${ .steps.pair.result }' },
    { name: 'pair_then_fails', steps: [first, pair(), last, never] },
    { name: 'pair_goes_on', steps: [first, pair({ on_failure: 'continue' }), last], output: '${ .steps.pair.result }' },
    { name: 'pair_asks', steps: [first, pair({ on_failure: 'escalate' }), last], output: '${ .steps.pair.result }' },
    { name: 'pair_perhaps', steps: [first, pair({ when: '${ .input.wanted }' }), last] },
    { name: 'pair_badly', steps: [first, pair({ with: { one: '${ .input.one }' } }), last] },
    { name: 'slow_child', deadline: '3s', steps: [take('one', 'sc-${ .input.name }'), { id: 'wait', sleep: '1h' }] },
    {
      name: 'with_slow',
      steps: [
        first,
        { id: 'slow', saga: 'slow_child', with: { name: '${ .input.name }' }, on_failure: 'continue' },
        last
      ]
    },
    {
      name: 'with_slow_undone',
      steps: [first, { id: 'slow', saga: 'slow_child', with: { name: '${ .input.name }' } }, last]
    },
    {
      name: 'waiting_child',
      steps: [
        take('one', 'wc-${ .input.name }'),
        { id: 'go', signal: { name: 'go' } },
        take('two', 'wc-${ .input.name }')
      ],
      output: '${ .steps.go.result }'
    },
    {
      name: 'with_waiting',
      steps: [{ id: 'inner', saga: 'waiting_child', with: { name: '${ .input.name }' } }],
      output: '${ .steps.inner.result }'
    },
    { name: 'middle', steps: [pair(), take('beside', 'm-${ .input.one }')], output: '${ .steps.pair.result.ids }' },
    {
      name: 'deep',
      steps: [first, { id: 'middle', saga: 'middle', with: '${ .input.inner }' }, last],
      output: '${ .steps.middle.result }'
    },
    { name: 'deep_fails', steps: [first, { id: 'middle', saga: 'middle', with: '${ .input.inner }' }, never] },
    {
      name: 'each_pair',
      steps: [{ id: 'pairs', for_each: '${ .input.pairs }', concurrency: 2, saga: 'pair', with: '${ .item }' }],
      output: '${ [.steps.pairs.result[] | .ids[]?] }'
    },
    {
      name: 'each_pair_fails',
      steps: [
        first,
        { id: 'pairs', for_each: '${ .input.pairs }', concurrency: 2, saga: 'pair', with: '${ .item }' },
        never
      ]
    },
    {
      name: 'each_pair_goes_on',
      steps: [
        {
          id: 'pairs',
          for_each: '${ .input.pairs }',
          concurrency: 2,
          saga: 'pair',
          with: '${ .item }',
          on_failure: 'continue'
        },
        last
      ],
      output: '${ [.steps.pairs.result[] | .ids?] }'
    },
    {
      name: 'mails',
      steps: [
        take('one', '${ .input.name }'),
        { id: 'mail', call: 'mail', with: { to: '${ .input.name }', subject: 'x' } }
      ]
    },
    { name: 'with_mails', steps: [first, { id: 'end', saga: 'mails', with: { name: '${ .input.name }' } }] }
  ]
  return { tools: languageTools(shop), sagas }
}

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  const shop = `http://127.0.0.1:${world.shopPort}`
  await world.define(definitions(shop))
  const start = (saga, name, more = {}) => world.start(saga, { name, ...more })
  const elements = (saga, step = 'each') =>
    saga.steps.filter((one) => one.id.startsWith(`${step}#`) && !one.id.includes('/'))
  const abort = async (id) => {
    expect([200, 202].includes((await order(world, id, 'abort')).status), 'the answer to abort')
    return finish(world, id, 'compensated')
  }

  // --- for_each ---

  await promise(
    'for_each: once an element, in order, each under the key of its element; the results in order',
    async () => {
      const id = await start('each', 'e1', { items: ['a', 'b', 'c'] })
      const saga = await finish(world, id, 'completed')
      expectEqual(
        happened(world, saga),
        ['do first', 'do each#0', 'do each#1', 'do each#2', 'do last'],
        'what happened'
      )
      expectEqual(
        elements(saga).map((step) => step.key),
        [0, 1, 2].map((i) => keyOf({ run: id, step: `each#${i}`, tool: 'take' })),
        'the keys'
      )
      expectEqual(
        saga.output,
        elements(saga).map((step) => step.result.id),
        'the results'
      )
      expectEqual(
        effectsOf(world, saga)
          .filter((line) => line.kind === 'reserve')
          .map((line) => line.body.sku),
        ['first-e1', 'a', 'b', 'c', 'last-e1'],
        'what was taken'
      )
    }
  )
  await promise('for_each: no more at once than it says', async () => {
    const saga = await finish(world, await start('each_naps', 'e2', { items: [1, 2, 3, 4, 5] }), 'completed')
    const spans = elements(saga).map((step) => [Date.parse(step.started_at), Date.parse(step.ended_at)])
    for (const [from] of spans)
      expect(spans.filter(([begin, end]) => begin <= from && from < end).length <= 2, 'two at once', spans)
    expect(
      spans.some(([from], i) => spans.some(([begin, end], k) => i !== k && begin <= from && from < end)),
      'side by side at all',
      spans
    )
  })
  await promise('for_each: an empty array is done; what is no array, or too long, fails for certain', async () => {
    const none = await finish(world, await start('each', 'e3', { items: [] }), 'completed')
    expectEqual([none.output, happened(world, none)], [[], ['do first', 'do last']], 'no elements')
    for (const items of ['abc', null, { a: 1 }, Array.from({ length: 1001 }, (_, i) => `n${i}`)]) {
      const bad = await finish(world, await start('each', 'e4', { items }), 'compensated')
      expectEqual(
        [stepOf(bad, 'each').error.code, happened(world, bad)],
        ['arguments', ['do first', 'undo first']],
        'what came of it'
      )
    }
  })
  await promise('for_each: an element that fails undoes those before it, in reverse', async () => {
    const saga = await finish(world, await start('each', 'e5', { items: ['a', 'b', 'none', 'd'] }), 'compensated')
    expectEqual(
      happened(world, saga),
      ['do first', 'do each#0', 'do each#1', 'undo each#1', 'undo each#0', 'undo first'],
      'what happened'
    )
    expectEqual([stepOf(saga, 'each#2').status, stepOf(saga, 'each#3').status], ['failed', 'pending'], 'the rest')
  })
  await promise('for_each: undone behind it in reverse of the elements, whichever was done first', async () => {
    await world.fault({ route: 'reservations', mode: 'slow', ms: 400, times: 1, match: '"i0"' })
    const items = Array.from({ length: 6 }, (_, i) => `i${i}`)
    const saga = await finish(world, await start('each_fast_then_fails', 'e6', { items }), 'compensated')
    expectEqual(done(world, saga).length, 6, 'how many were done')
    expectEqual(
      undone(world, saga),
      [5, 4, 3, 2, 1, 0].map((i) => `each#${i}`),
      'what was undone'
    )
    await world.noFaults()
    nothingStands(world, await finish(world, await start('each_undone_side_by_side', 'e7', { items }), 'compensated'))
  })
  await promise('for_each: "continue" gives null for that element, "escalate" asks about it', async () => {
    const on = await finish(world, await start('each_goes_on', 'e8', { items: ['a', 'none', 'c'] }), 'completed')
    expectEqual(on.output, [stepOf(on, 'each#0').result.id, null, stepOf(on, 'each#2').result.id], 'the results')
    expectEqual([stepOf(on, 'each#1').status, stepOf(on, 'each').status], ['failed', 'completed'], 'the steps')
    const id = await start('each_asks', 'e9', { items: ['a', 'none', 'c'] })
    await finish(world, id, 'escalated')
    expectEqual((await world.escalationOf(id)).step, 'each#1', 'what is asked about')
    expectEqual(
      (await world.resolve(id, { action: 'skip' })).status,
      422,
      'the answer to skip, when the output needs the result'
    )
    expectEqual(
      (await world.resolve(id, { action: 'skip', result: null })).status,
      200,
      'the answer to skip, when a person says that there is none'
    )
    const skipped = await finish(world, id, 'completed')
    expectEqual(
      skipped.output.map((one) => one === null),
      [false, true, false],
      'the results'
    )
    const again = await start('each_asks', 'e10', { items: ['none', 'c'] })
    await finish(world, again, 'escalated')
    expectEqual(
      (await world.resolve(again, { action: 'retry', args: { sku: 'there', qty: 1 } })).status,
      200,
      'the answer to retry'
    )
    expectEqual(done(world, await finish(world, again, 'completed')), ['each#0', 'each#1', 'last'], 'what was done')
  })
  await promise('for_each: skipped as a whole; .item in scope and in what undoes it', async () => {
    const skipped = await finish(world, await start('each_perhaps', 'e11', { items: ['a'] }), 'completed')
    expectEqual(statuses(skipped), { each: 'skipped', last: 'completed' }, 'the steps')
    const id = await start('each_scoped', 'e12', {
      items: [
        { scope: 's1', sku: 'a', qty: 1 },
        { scope: 's2', sku: 'b', qty: 2 }
      ]
    })
    const saga = await finish(world, id, 'compensated')
    expectEqual(
      elements(saga).map((step) => step.key),
      ['s1', 's2'].map((scope, i) => keyOf({ run: id, step: `each#${i}`, tool: 'take', scope })),
      'the keys'
    )
    const undos = (await world.api('GET', `/v1/operations/${stepOf(saga, 'each#1').compensation.key}`)).json
    expectEqual(undos.args.because, 's2', 'what the compensator was given')
  })
  await promise('for_each: over children that wait', async () => {
    const id = await start('each_waits', 'e13', { items: [1, 2, 3] })
    for (const payload of ['x', 'y', 'z']) expect((await signal(world, id, 'go', payload)).status < 300, 'the answer')
    expectEqual((await finish(world, id, 'completed')).output, ['x', 'y', 'z'], 'the payloads')
    await finish(
      world,
      await start('each_sleeps', 'e14', { items: ['10ms', '30ms', '2001-01-01T00:00:00Z'] }),
      'completed'
    )
  })
  await promise('for_each: abort and the deadline undo the elements that are there', async () => {
    const late = await finish(world, await start('each_deadline', 'e15', { items: ['a', 'b'] }), 'compensated')
    expectEqual(undone(world, late), ['each#1', 'each#0'], 'what was undone')
    const id = await start('each_naps', 'e16', { items: Array.from({ length: 30 }, (_, i) => i) })
    await world.until(id, ['running'])
    await sleep(400)
    const gone = await abort(id)
    expect(
      elements(gone).some((step) => step.status === 'pending'),
      'some were never begun',
      elements(gone).length
    )
  })
  const many = quick ? 300 : 1000
  await promise(`for_each: ${many} elements`, async () => {
    const saga = await finish(
      world,
      await start('each_fast', 'e17', { items: Array.from({ length: many }, (_, i) => `m${i}`) }),
      'completed',
      110
    )
    expectEqual([saga.output.length, new Set(saga.output.map((one) => one.id)).size], [many, many], 'the results')
  })

  // --- child sagas ---

  await promise('child: its steps under the root and its own path; its output is the result', async () => {
    const id = await start('with_pair', 'c1', { one: 'p1', two: 'p2' })
    const saga = await finish(world, id, 'completed')
    expectEqual(happened(world, saga), ['do first', 'do pair/one', 'do pair/two', 'do last'], 'what happened')
    expectEqual(stepOf(saga, 'pair/two').key, keyOf({ run: id, step: 'pair/two', tool: 'take' }), 'a key')
    expectEqual(
      saga.output,
      { ids: [stepOf(saga, 'pair/one').result.id, stepOf(saga, 'pair/two').result.id], saga: 'pair', run: id },
      'the output'
    )
    expectEqual((await world.api('GET', '/v1/sagas?saga=pair')).json.items, [], 'it is no saga of its own')
    expectEqual(
      (await world.api('GET', `/v1/operations?run=${id}&limit=100`)).json.items.map((one) => one.step).sort(),
      ['first', 'last', 'pair/one', 'pair/two'],
      'the operations'
    )
  })
  await promise(
    'child: a failure in it undoes it and the saga; a failure behind it undoes it in its place',
    async () => {
      const inside = await finish(world, await start('with_pair', 'c2', { one: 'p1', two: 'none' }), 'compensated')
      expectEqual(
        happened(world, inside),
        ['do first', 'do pair/one', 'undo pair/one', 'undo first'],
        'a failure in it'
      )
      const behind = await finish(world, await start('pair_then_fails', 'c3', { one: 'p1', two: 'p2' }), 'compensated')
      expectEqual(undone(world, behind), ['last', 'pair/two', 'pair/one', 'first'], 'a failure behind it')
    }
  )
  await promise('child: with "continue" it alone is undone, and the saga goes on', async () => {
    const saga = await finish(world, await start('pair_goes_on', 'c4', { one: 'p1', two: 'none' }), 'completed')
    expectEqual(
      [happened(world, saga), saga.output],
      [['do first', 'do pair/one', 'undo pair/one', 'do last'], null],
      'what happened'
    )
    expectEqual([stepOf(saga, 'pair').status, stepOf(saga, 'pair').error.code], ['failed', 'child-failed'], 'the child')
  })
  await promise('child: with "escalate" it is undone, and a person says whether the saga goes on', async () => {
    for (const [action, status, what] of [
      ['skip', 'completed', ['do last']],
      ['compensate', 'compensated', ['undo first']]
    ]) {
      const id = await start('pair_asks', `c5-${action}`, { one: 'p1', two: 'none' })
      await finish(world, id, 'escalated')
      const asked = await world.escalationOf(id)
      expectEqual(
        [asked.step, asked.actions.map((one) => one.action).sort()],
        ['pair', ['abandon', 'compensate', 'skip']],
        'what is asked'
      )
      await world.restart()
      expectEqual(
        (await world.resolve(id, action === 'skip' ? { action, result: null } : { action })).status,
        200,
        'the answer to the verb'
      )
      expectEqual(
        happened(world, await finish(world, id, status)),
        ['do first', 'do pair/one', 'undo pair/one', ...what],
        'what happened'
      )
    }
  })
  await promise('child: skipped; an input that its schema refuses', async () => {
    const skipped = await finish(
      world,
      await start('pair_perhaps', 'c6', { wanted: false, one: 'a', two: 'b' }),
      'completed'
    )
    expectEqual(statuses(skipped), { first: 'completed', pair: 'skipped', last: 'completed' }, 'the steps')
    const bad = await finish(world, await start('pair_badly', 'c7', { one: 'a' }), 'compensated')
    expectEqual(
      [stepOf(bad, 'pair').error.code, happened(world, bad)],
      ['arguments', ['do first', 'undo first']],
      'the child'
    )
  })
  await promise('child: its own deadline is a failure of it, counted from its beginning', async () => {
    const on = await finish(world, await start('with_slow', 'c8'), 'completed')
    expectEqual(happened(world, on), ['do first', 'do slow/one', 'undo slow/one', 'do last'], 'what happened')
    const undo = await finish(world, await start('with_slow_undone', 'c9'), 'compensated')
    expectEqual(undone(world, undo), ['slow/one', 'first'], 'what was undone')
  })
  await promise('child: waits in it, also over a kill; abort undoes it', async () => {
    for (const fate of ['completed', 'compensated']) {
      const id = await start('with_waiting', `c10-${fate}`)
      expectEqual((await waitsAt(world, id, 'inner/go')).status, 'waiting', 'the saga')
      await world.restart()
      if (fate === 'completed') {
        expect((await signal(world, id, 'go', 'now')).status < 300, 'the answer to the signal')
        expectEqual((await finish(world, id, fate)).output, 'now', 'the output')
      } else {
        expectEqual(happened(world, await abort(id)), ['do inner/one', 'undo inner/one'], 'what happened')
      }
    }
  })
  await promise('child in a child, and for_each over a child: keys by the whole path, undone in reverse', async () => {
    const good = await finish(world, await start('deep', 'c11', { inner: { one: 'p1', two: 'p2' } }), 'completed')
    expectEqual(
      happened(world, good),
      ['do first', 'do middle/pair/one', 'do middle/pair/two', 'do middle/beside', 'do last'],
      'what happened'
    )
    expectEqual(
      stepOf(good, 'middle/pair/two').key,
      keyOf({ run: good.id, step: 'middle/pair/two', tool: 'take' }),
      'a key'
    )
    const bad = await finish(
      world,
      await start('deep_fails', 'c12', { inner: { one: 'p1', two: 'p2' } }),
      'compensated'
    )
    expectEqual(undone(world, bad), ['middle/beside', 'middle/pair/two', 'middle/pair/one', 'first'], 'what was undone')
    const pairs = [
      { one: 'a1', two: 'a2' },
      { one: 'b1', two: 'b2' },
      { one: 'c1', two: 'c2' }
    ]
    const each = await finish(world, await start('each_pair', 'c13', { pairs }), 'completed')
    expectEqual(stepOf(each, 'pairs#1/two').key, keyOf({ run: each.id, step: 'pairs#1/two', tool: 'take' }), 'a key')
    expectEqual(
      each.output,
      [0, 1, 2].flatMap((i) => ['one', 'two'].map((step) => stepOf(each, `pairs#${i}/${step}`).result.id)),
      'the output'
    )
    const undo = await finish(world, await start('each_pair_fails', 'c14', { pairs }), 'compensated')
    expectEqual(
      undone(world, undo),
      [...[2, 1, 0].flatMap((i) => [`pairs#${i}/two`, `pairs#${i}/one`]), 'first'],
      'what was undone'
    )
    const on = await finish(
      world,
      await start('each_pair_goes_on', 'c15', { pairs: [pairs[0], { one: 'x', two: 'none' }, pairs[2]] }),
      'completed'
    )
    expectEqual(
      [on.output.map((one) => one === null), undone(world, on)],
      [[false, true, false], ['pairs#1/one']],
      'what came of it'
    )
  })
  await promise('child with a terminal step at the end of its saga: past it nothing is undone', async () => {
    const good = await finish(world, await start('with_mails', 'c16@x.example'), 'completed')
    expectEqual(happened(world, good), ['do first', 'do end/one', 'do end/mail'], 'what happened')
    expectEqual((await order(world, good.id, 'abort')).status, 409, 'abort')
    const bad = await finish(world, await start('with_mails', 'bounce@x.example'), 'compensated')
    expectEqual(undone(world, bad), ['end/one', 'first'], 'what was undone')
  })

  // --- versions ---

  await promise(
    'versions: a running saga ends on its own, over kills, with the tools and children it began with',
    async () => {
      const version = (n) => ({
        tools: [{ ...languageTools(shop)[0], name: 'grow', description: `version ${n}` }],
        sagas: [
          { name: 'leaf', steps: [take('one', `leaf-v${n}`)] },
          {
            name: 'grows',
            steps: [
              { id: 'wait', signal: { name: 'go' } },
              { id: `step_${n}`, call: 'grow', with: { sku: `v${n}`, qty: 1 } },
              { id: 'leaf', saga: 'leaf' }
            ]
          }
        ]
      })
      const ids = []
      for (const n of [1, 2, 3]) {
        const items = await world.define(version(n))
        expectEqual(
          items.filter((item) => item.name === 'grows').map((item) => item.version),
          [n],
          'the version'
        )
        ids.push(await start('grows', `v${n}`), await start('grows', `v${n}b`))
        await waitsAt(world, ids.at(-1), 'wait')
        if (n === 2) await world.restart()
      }
      const shown = await world.api('GET', '/v1/definitions/grows')
      expectEqual(shown.json.version, 3, 'the newest')
      const told = world.sagactl(['definitions', 'grows', '--versions', '-o', 'json'])
      const { versions } = JSON.parse(told.stdout).items.find((one) => one.name === 'grows')
      expectEqual(
        versions.map((one) => [one.version, one.unfinished]).sort(),
        [
          [1, 2],
          [2, 2],
          [3, 2]
        ],
        'sagactl definitions: versions, and how many run on each'
      )
      const table = world.sagactl(['definitions', 'grows', '--versions']).stdout
      expectEqual(
        table
          .trim()
          .split('\n')
          .filter((line) => line.startsWith('grows')).length,
        3,
        'a row a version'
      )
      await world.restart()
      for (const [i, id] of ids.entries()) {
        await signal(world, id, 'go', null)
        const n = Math.floor(i / 2) + 1
        const saga = await finish(world, id, 'completed')
        expectEqual(
          [saga.version, saga.steps.map((step) => step.id)],
          [n, ['wait', `step_${n}`, 'leaf', 'leaf/one']],
          'the saga'
        )
        expectEqual(
          effectsOf(world, saga).map((line) => line.body.sku),
          [`v${n}`, `leaf-v${n}`],
          'what it did'
        )
      }
      const old = await world.api('POST', '/v1/sagas', { saga: 'grows', version: 1, input: { name: 'old' } })
      expectEqual([old.status, old.json.version], [201, 1], 'an old version on purpose')
      expectEqual(
        (await world.define(version(3))).map((item) => item.change),
        ['unchanged', 'unchanged', 'unchanged'],
        'the same once more'
      )
    }
  )

  await promise('the log of every saga says what its groups were made of, and folds to the stored state', async () => {
    const each = (await world.api('GET', '/v1/sagas?saga=each&limit=500')).json.items.at(-1)
    expect(
      (await logOf(world, each.id)).some((entry) => entry.type === 'step.opened'),
      'step.opened'
    )
    await replayAll(world)
  })
  await leaves(world)
})
