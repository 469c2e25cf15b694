// `sagactl test`: the scenarios of the examples hold; what differs is found, each thing by itself, with its line; four
// mistakes in a definition are found; TAP and JUnit are what their readers expect. What really happened to sagas, as
// `sagactl record` writes it down, happens again on stage.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, root, run } from '../lib/world.mjs'

const examples = join(root, 'schema/examples/scenarios')
const order = { order_id: 'o-1', sku: 'tee', amount: 1900, email: 'ann@example.com' }
const shelf = [{ response: { status: 201, body: { id: 'res-1' } } }]
const till = [{ response: { status: 201, body: { id: 'ch-1' } } }]
const shop = JSON.parse(readFileSync(join(root, 'schema/examples/shop.json'), 'utf8'))

class Scenarios extends World {
  write(name, value) {
    const path = join(this.directory, name)
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value, null, 1))
    return path
  }

  // Runs sagactl without a server.
  offline(args) {
    return spawnSync(this.sagactlPath, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
  }

  // Plays scenarios of a definition. Returns the exit code and what -o json prints.
  play(definition, scenarios, ...options) {
    const definitions = this.write('definition.json', definition)
    const file = this.write('scenarios.json', { scenarios })
    const { status, stdout, stderr } = this.offline(['test', definitions, file, '-o', 'json', ...options])
    return { status, stderr, ...(stdout && JSON.parse(stdout)) }
  }

  // Plays orders. Returns for each what differs, as texts.
  differences(scenarios, definition = shop) {
    const whole = scenarios.map((more, i) => ({ name: `order ${i}`, saga: 'order', input: order, ...more }))
    const { items, stderr } = this.play(definition, whole)
    expect(items, `they were played: ${stderr}`)
    return items.map(({ differences }) =>
      differences.map(({ at, expected, found }) =>
        (expected ? `${at.replace(/.scenarios.[0-9]+.expect./, '')}: ${expected} | ${found}` : found).replaceAll(
          /\s/g,
          ''
        )
      )
    )
  }
}

// A small saga around one tool that answers as the scenario says.
const oneCall = (tool, more = {}) => ({
  tools: [
    { name: 'act', http: { method: 'POST', url: 'http://bank.example/acts' }, ...tool },
    { name: 'undo', http: { method: 'POST', url: 'http://bank.example/undos' }, effect: 'idempotent' }
  ],
  sagas: [{ name: 'one', steps: [{ id: 'act', call: 'act', with: { n: 1 } }], ...more }]
})
const probe = {
  http: { url: 'http://bank.example/acts/${ .key }' },
  outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
  visibility: '1s',
  give_up_after: '1h'
}
const classes = {
  idempotent: { effect: 'idempotent', compensate: { tool: 'undo' } },
  keyed: { effect: 'keyed', key: { window: '1h' }, compensate: { tool: 'undo' } },
  checked: { effect: 'checked', probe, compensate: { tool: 'undo' } },
  once: { effect: 'once', compensate: { tool: 'undo' } }
}

await run(new Scenarios(), async (world) => {
  await promise('the scenarios of the examples hold, and every example with sagas has some', () => {
    const files = readdirSync(examples)
    for (const name of readdirSync(join(root, 'schema/examples')).filter((one) => one.endsWith('.json'))) {
      const { sagas = [] } = JSON.parse(readFileSync(join(root, 'schema/examples', name), 'utf8'))
      expect(sagas.length === 0 || files.includes(name), `${name} has scenarios`)
    }
    const { status, stdout } = world.offline(['test', ...files.map((name) => join(examples, name))])
    const lines = stdout.split('\n')
    expectEqual([status, lines.filter((line) => line.startsWith('not ok'))], [0, []], 'what does not hold')
    expectEqual(lines[1], `1..${lines.filter((line) => line.startsWith('ok ')).length}`, 'the plan of TAP')
  })

  await promise('each thing that differs is found', () => {
    const tools = { 'inventory.reserve': shelf, 'payments.charge': till }
    const good = { status: 'completed', calls: ['reserve', 'charge', 'confirm'], undone: [] }
    const charge = (more) => ({ ...good, calls: ['reserve', { step: 'charge', ...more }, 'confirm'] })
    const wrong = [
      [good],
      [{ status: 'compensated' }, 'status: compensated | completed'],
      [{ ...good, calls: ['reserve', 'confirm', 'confirm'] }, 'calls/1: confirm | charge'],
      [{ ...good, calls: ['reserve'] }, 'calls: 1 calls | 3: reserve, charge, confirm'],
      [{ ...good, calls: ['reserve', 'undo charge', 'confirm'] }, 'calls/1: undo charge | charge'],
      [{ ...good, undone: ['charge'] }, 'undone: charge | none'],
      [{ ...good, standing: [] }, 'standing: none | reserve, charge, confirm'],
      [{ ...good, steps: { charge: 'failed' } }, 'steps/charge: failed | completed'],
      [{ ...good, steps: { chrage: 'failed' } }, 'steps/chrage: failed | there is no such step'],
      [{ ...good, escalation: {} }, 'escalation: an open case | none'],
      [{ ...good, output: { charge: 'ch-1' } }, 'output: {"charge":"ch-1"} | {"reservation":"res-1","charge":"ch-1"}'],
      [charge({ tool: 'payments.refund' }), 'calls/1/tool: payments.refund | payments.charge'],
      [charge({ scope: 'o-2' }), 'calls/1/scope: o-2 | o-1'],
      [charge({ key: 'none' }), 'calls/1/key: none | '],
      [charge({ args: { amount: 1 } }), 'calls/1/args: {"amount":1} | {"amount":1900,"customer":"ann@example.com"}']
    ]
    const found = world.differences(wrong.map(([expected]) => ({ tools, expect: expected })))
    for (const [i, [expected, text]] of wrong.entries())
      expectEqual(
        found[i].map((one) => one.slice(0, text?.replaceAll(/\s/g, '').length)),
        text ? [text.replaceAll(/\s/g, '')] : [],
        JSON.stringify(expected)
      )
  })

  await promise('keys are the same in each play, and the same again for a second attempt', () => {
    const tools = { 'inventory.reserve': shelf, 'payments.charge': ['unknown', till[0]] }
    const charge = { step: 'charge', key: 'none' }
    const one = { tools, expect: { status: 'completed', calls: ['reserve', charge, charge, 'confirm'] } }
    const [first, second] = world.differences([one, one])
    expectEqual([first.length, new Set(first.map((text) => text.split('|')[1])).size], [2, 1], 'two attempts, one key')
    expectEqual(first, second, 'the next play')
  })

  await promise('four mistakes in a definition are found', () => {
    const changed = (change) => {
      const copy = structuredClone(shop)
      change(copy)
      return copy
    }
    const both = [
      {
        tools: { 'inventory.reserve': shelf, 'payments.charge': ['fails'] },
        expect: {
          status: 'compensated',
          calls: ['reserve', 'charge', { step: 'reserve', undo: true, args: { id: 'res-1' } }]
        }
      },
      {
        tools: { 'inventory.reserve': shelf, 'payments.charge': till },
        expect: { status: 'completed', calls: ['reserve', { step: 'charge', scope: 'o-1' }, 'confirm'] }
      }
    ]
    expectEqual(world.differences(both), [[], []], 'before')
    const wrong = changed((copy) => {
      copy.tools[0].compensate.with = { id: '${ .args.sku }' }
      delete copy.sagas[0].steps[1].scope
    })
    expectEqual(
      world.differences(both, wrong),
      [['calls/2/args:{"id":"res-1"}|{"id":"tee"}'], ['calls/1/scope:o-1|none']],
      'a wrong compensator, and a forgotten scope'
    )
    const undo = { step: 'reserve', undo: true, tool: 'inventory.release' }
    const other = changed((copy) => {
      copy.tools[0].compensate = { tool: 'payments.refund', with: { charge_id: '${ .result.id }' } }
    })
    expectEqual(
      world.differences([{ ...both[0], expect: { status: 'compensated', calls: ['reserve', 'charge', undo] } }], other),
      [['calls/2/tool:inventory.release|payments.refund']],
      'the wrong compensator, with arguments that it takes'
    )
    const misspelt = changed((copy) => {
      copy.sagas[0].input.additionalProperties = false
      copy.sagas[0].steps[1].with.amount = '${ .input.amuont }'
    })
    const { status, stderr } = world.play(misspelt, [{ name: 'x', saga: 'order', expect: { status: 'completed' } }])
    expect(status === 1 && stderr.includes('amuont'), 'a misspelt path', stderr)
  })

  await promise('each class of effect goes on after each reply as in the engine', () => {
    const once = { status: 'completed', calls: ['act'] }
    const twice = { status: 'completed', calls: ['act', 'act'] }
    const refused = { status: 'compensated', calls: ['act'], standing: [] }
    const asked = {
      status: 'escalated',
      calls: ['act'],
      standing: ['act'],
      escalation: { step: 'act', reason: 'unknown' }
    }
    for (const [effect, tool] of Object.entries(classes)) {
      const unclear = { idempotent: twice, keyed: twice, checked: twice, once: asked }[effect]
      const ways = [
        [[{ response: { status: 200, body: {} } }], once],
        [[{ response: { status: 422, body: {} } }], refused],
        [['fails'], refused],
        [['unsent', { result: {} }], twice],
        [['busy', { result: {} }], effect === 'once' ? refused : twice],
        [['unknown', { result: {} }], unclear],
        [['crash', { result: {} }], unclear],
        [[{ reply: 'unknown', took_effect: true }, { result: {} }], effect === 'checked' ? once : unclear],
        [[{ response: { status: 503, body: null } }, { result: {} }], unclear]
      ]
      const { items, stderr } = world.play(
        oneCall(tool),
        ways.map(([replies, end]) => ({
          name: JSON.stringify(replies),
          saga: 'one',
          tools: { act: replies },
          expect: end
        }))
      )
      expect(items, stderr)
      for (const item of items) expectEqual(item.differences, [], `${effect} ${item.name}`)
    }
  })

  await promise('a failure has its line; TAP and JUnit say the same', () => {
    const file = world.write(
      'one.json',
      `{"definitions": ["${join(root, 'schema/examples/first.json')}"],
 "scenarios": [
  {"name": "a # in <its> name", "saga": "stay", "input": {"room": 1}, "expect": {"status": "completed"}},
  {"name": "it differs", "saga": "stay",
   "expect": {"status": "compensated"}}]}`
    )
    const junit = join(world.directory, 'junit.xml')
    const { status, stdout } = world.offline(['test', file, '--junit', junit])
    const lines = stdout.split('\n')
    expectEqual(status, 1, 'the exit code')
    expectEqual(
      lines.slice(0, 4),
      ['TAP version 14', '1..2', 'ok 1 - stay: a \\# in <its> name', 'not ok 2 - stay: it differs'],
      'TAP'
    )
    expect(lines[5].includes(`${file}:5:25: /scenarios/1/expect/status`), 'its line', lines[5])
    const xml = readFileSync(junit, 'utf8')
    expect(xml.includes('tests="2" failures="1"') && xml.includes('a # in &lt;its&gt; name'), 'JUnit', xml)
    expect(xml.includes('<failure message="expected compensated, found completed">'), 'the failure', xml)
    expectEqual(world.offline(['test', file, '--only', 'in <its>']).status, 0, 'only the good one')
    expectEqual(world.offline(['test', file, '--only', 'nobody']).status, 3, 'none')
  })

  await promise('a file with faults is refused, all of them at once, each with its place', () => {
    const file = world.write(
      'bad.json',
      `{"scenarios": [{"name": "x", "saga": "stay",
 "tools": {"room.book": ["perhaps", {"reply": "done", "colour": 1}, {}], "room.cancel": 7},
 "events": [{"abort": "a", "pause": "b"}, {"after": "1h"}, {"resolve": "book", "as": "maybe"}],
 "expect": {"status": "gone", "calls": [{"tool": "x"}]}}]}`
    )
    const { status, stderr } = world.offline(['test', join(root, 'schema/examples/first.json'), file])
    expectEqual(status, 1, 'the exit code')
    for (const part of [
      '"perhaps", expected one of: done',
      'colour',
      'the reply says nothing',
      'room.cancel',
      'two events',
      'the event says nothing',
      '"happened", "not_happened" or "undone"',
      '"gone" is no status',
      'names no `step`'
    ])
      expect(stderr.includes(part), part, stderr)
    expectEqual(stderr.trim().split('\n').length, 9, 'one line each')
    expectEqual(world.offline(['test', join(root, 'schema/examples/first.json')]).status, 2, 'no scenarios')
  })

  await promise('what a person undid by hand is no undo that completed, whether or not it was tried', () => {
    const expected = { status: 'compensated', undone: ['reserve'], standing: [] }
    const tools = { 'inventory.reserve': shelf, 'payments.charge': till, 'mail.send': ['fails'] }
    const tried = { tools: { ...tools, 'payments.refund': ['fails'] }, events: [{ resolve: 'charge', as: 'undone' }] }
    const before = {
      tools: { ...tools, 'payments.charge': { calls: ['unknown'], probes: ['unknown'] } },
      events: tried.events
    }
    const found = world.differences([tried, before].map((more) => ({ expect: expected, ...more })))
    expectEqual(found, [[], []], 'what differs')
  })

  await promise('what cannot go on says why', () => {
    const wrong = [
      [{ input: {} }, 'the input does not fit the schema'],
      [{ tools: { 'payment.charge': ['fails'] } }, 'the saga calls no tool "payment.charge"'],
      [{ events: [{ approve: 'charge', during: 'charge' }] }, 'event 1 (approve) is refused'],
      [{ events: [{ retry: 'nothing', during: 'charge' }] }, 'event 1 (retry): the saga has no step "nothing"'],
      [{ events: [{ abort: 'late', after: '2h' }] }, 'the saga had ended before event 1 (abort)']
    ]
    const found = world.differences(wrong.map(([more]) => ({ expect: { status: 'completed' }, ...more })))
    for (const [i, [more, why]] of wrong.entries())
      expect(found[i].join().startsWith(why.replaceAll(/\s/g, '')), `${JSON.stringify(more)}: ${why}`, found[i])
  })
})
