// The sagas of the campaign: one for each construct of the language, over shop steps of every effect class. The body of
// each effect names its purpose ("request": NAME:STEP), so that the shop's ledger alone says what happened to a saga,
// whatever keys it used.
//
// `expects(input)` names the steps whose effects stand when a saga of this shape has completed.
const patient = { initial: '50ms', factor: 2, max: '500ms', max_attempts: 200, max_unsent: 200 }
const keyed = { effect: 'keyed', key: { window: '1h' }, timeout: '5s', retry: patient }
const named = '${ .input.name }'

export function tools(shop) {
  const reservations = { method: 'POST', url: `${shop}/reservations`, body: '${ .args }' }
  const byKey = (what) => ({
    http: { method: 'GET', url: `${shop}/${what}/by-key/\${ .key }` },
    visibility: '300ms',
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' }
  })
  const made = {
    result: { id: '${ .response.body.id }' },
    compensate: { tool: 'give', with: { id: '${ .result.id }' } }
  }
  return [
    { name: 'take', ...keyed, http: reservations, ...made },
    {
      name: 'hold',
      effect: 'checked',
      timeout: '5s',
      retry: patient,
      http: reservations,
      probe: { ...byKey('reservations'), result: { id: '${ .response.body.id }' } },
      ...made
    },
    { name: 'grab', effect: 'once', timeout: '5s', http: reservations, ...made },
    {
      name: 'give',
      effect: 'idempotent',
      timeout: '5s',
      retry: patient,
      http: { method: 'DELETE', url: `${shop}/reservations/\${ .args.id }` },
      outcome: { completed: '${ .response.status == 200 or .response.status == 404 }' }
    },
    {
      name: 'bill',
      ...keyed,
      http: { method: 'POST', url: `${shop}/charges`, body: '${ .args }' },
      result: { id: '${ .response.body.id }' },
      compensate: { tool: 'unbill', with: { charge_id: '${ .result.id }' } }
    },
    { name: 'unbill', ...keyed, http: { method: 'POST', url: `${shop}/refunds`, body: '${ .args }' } },
    {
      name: 'mark',
      effect: 'idempotent',
      timeout: '5s',
      retry: patient,
      http: { method: 'PUT', url: `${shop}/tags/\${ .args.tag }`, body: '${ .args }' },
      compensate: { tool: 'unmark', with: { tag: '${ .args.tag }' } }
    },
    {
      name: 'unmark',
      effect: 'idempotent',
      timeout: '5s',
      retry: patient,
      http: { method: 'DELETE', url: `${shop}/tags/\${ .args.tag }` },
      outcome: { completed: '${ .response.status == 200 or .response.status == 404 }' }
    },
    {
      name: 'mail',
      effect: 'checked',
      terminal: true,
      timeout: '5s',
      retry: patient,
      http: { method: 'POST', url: `${shop}/mails`, body: '${ .args }' },
      probe: byKey('mails')
    },
    {
      name: 'post',
      effect: 'once',
      terminal: true,
      timeout: '5s',
      http: { method: 'POST', url: `${shop}/mails`, body: '${ .args }' }
    },
    {
      name: 'price',
      effect: 'read',
      timeout: '5s',
      retry: patient,
      http: { method: 'GET', url: `${shop}/prices/\${ .args.sku }` }
    }
  ]
}

const step = (id, call, args, more) => ({ id, call, with: { ...args, request: `${named}:${id}` }, ...more })
const take = (id, more) => step(id, 'take', { sku: 'x', qty: 1 }, more)
const bill = (id, more) => step(id, 'bill', { amount: 7, customer: 'ada' }, more)
const mail = (id, call, more) => step(id, call, { to: 'ada', subject: named }, more)
// A last step that fails for certain when the saga is to end badly.
const last = (id, more) => step(id, 'take', { sku: '${ if .input.bad then "none" else "x" end }', qty: 1 }, more)

const always =
  (...ids) =>
  () =>
    ids

export const shapes = {
  order: {
    weight: 4,
    steps: [take('reserve'), last('check'), bill('charge'), mail('confirm', 'post')],
    expects: always('reserve', 'check', 'charge', 'confirm')
  },
  parallel: {
    weight: 3,
    steps: [
      take('reserve', { after: [] }),
      bill('charge', { after: [] }),
      last('check', { after: ['reserve'] }),
      mail('confirm', 'mail', { after: ['check', 'charge'] })
    ],
    expects: always('reserve', 'charge', 'check', 'confirm')
  },
  fan: {
    weight: 2,
    compensation: { concurrency: 3 },
    steps: [
      take('a'),
      bill('b', { after: ['a'] }),
      step('c', 'hold', { sku: 'x', qty: 1 }, { after: ['a'] }),
      last('d', { after: ['b', 'c'] })
    ],
    expects: always('a', 'b', 'c', 'd')
  },
  each: {
    weight: 2,
    steps: [
      {
        id: 'each',
        for_each: '${ .input.items }',
        concurrency: 2,
        call: 'take',
        with: { sku: 'x', qty: 1, request: '${ .item }' }
      },
      last('z')
    ],
    expects: (input) => [...input.items.map((item) => item.slice(input.name.length + 1)), 'z']
  },
  nest: {
    weight: 2,
    steps: [
      take('a'),
      { id: 'pair', saga: 'pair', with: { name: `${named}:pair`, bad: '${ .input.bad }' } },
      bill('b')
    ],
    expects: always('a', 'pair:one', 'pair:two', 'b')
  },
  spare: {
    // a failing child is undone on its own, and the saga goes on
    weight: 1,
    steps: [
      take('a'),
      { id: 'pair', saga: 'pair', with: { name: `${named}:pair`, bad: '${ .input.bad }' }, on_failure: 'continue' },
      take('b')
    ],
    expects: (input) => (input.bad ? ['a', 'b'] : ['a', 'pair:one', 'pair:two', 'b']),
    completesBad: true
  },
  nap: { weight: 2, steps: [take('a'), { id: 'wait', sleep: '150ms' }, last('b')], expects: always('a', 'b') },
  await: {
    weight: 2,
    steps: [take('a'), { id: 'wait', signal: { name: 'go' } }, last('b')],
    expects: always('a', 'b'),
    signal: 'go'
  },
  ask: {
    weight: 2,
    steps: [take('a'), { id: 'ask', approve: { show: '${ .input }' } }, bill('b')],
    expects: always('a', 'b'),
    completesBad: true
  },
  locked: { weight: 2, locks: ['thing:${ .input.thing }'], steps: [take('a'), last('b')], expects: always('a', 'b') },
  unsure: { weight: 1, steps: [step('a', 'grab', { sku: 'x', qty: 1 }), last('b')], expects: always('a', 'b') },
  marked: {
    weight: 2,
    steps: [step('a', 'mark', { tag: named }), { id: 'look', call: 'price', with: { sku: 'x' } }, last('b')],
    expects: always('a', 'b')
  },
  chain: {
    weight: 1,
    steps: [take('a')],
    then: [{ saga: 'follow', id: `${named}+follow`, input: { name: `${named}+follow` } }],
    expects: always('a'),
    completesBad: true
  },
  follow: { weight: 0, steps: [take('f')], expects: always('f'), completesBad: true }
}

export function definitions(shop) {
  const pair = { name: 'pair', steps: [take('one'), last('two')] }
  const sagas = Object.entries(shapes).map(([name, { steps, locks, then, compensation }]) => ({
    name,
    steps,
    locks,
    then,
    compensation
  }))
  return { tools: tools(shop), sagas: [pair, ...sagas] }
}

export function chooseShape(random, without = []) {
  const choice = Object.entries(shapes).filter(([name]) => !without.includes(name))
  let at = random() * choice.reduce((sum, [, shape]) => sum + shape.weight, 0)
  for (const [name, shape] of choice) {
    at -= shape.weight
    if (at < 0) return name
  }
  return 'order'
}

export function inputOf(shape, name, random) {
  const input = { name, bad: random() < 0.25 }
  if (shape === 'each') input.items = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, i) => `${name}:e${i}`)
  if (shape === 'locked') input.thing = Math.floor(random() * 12)
  return input
}
