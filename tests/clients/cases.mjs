// What every client of sagad is asked, and what has to come of it. test_typescript.mjs asks it of a real sagad and of
// the recorded exchanges.
//
//   ask      what the driver of a client does, see drive_typescript.mjs
//   prepare  what happens before, at the real sagad only
//   wire     what becomes of the first requests: 'answer lost', 'request lost', 'wait cut' (sagad answers earlier than
//            the client has asked for), an answer that somebody gives instead of sagad, or passed where it says nothing
//   expect   what the client says in the end
const shortRetry = { max_attempts: 2, initial: '10ms', factor: 1, max: '10ms' }
const echo = { builtin: { do: 'echo' }, effect: 'idempotent', terminal: true }

export const definitions = (shop) => ({
  tools: [
    {
      name: 'charge',
      http: { url: `${shop}/charges`, body: '${ .args }' },
      result: { amount: '${ .args.amount }' },
      effect: 'keyed',
      key: { header: 'Idempotency-Key', window: '24h' },
      material: ['/amount'],
      retry: shortRetry,
      compensate: { tool: 'charge.undo', with: { key: '${ .key }' } }
    },
    {
      name: 'charge.undo',
      http: { method: 'DELETE', url: `${shop}/charges/by-key/\${ .args.key }` },
      effect: 'idempotent',
      outcome: { completed: '${ .response.status == 200 or .response.status == 404 }' }
    },
    {
      name: 'reserve',
      http: { url: `${shop}/reservations`, body: '${ .args }' },
      result: { sku: '${ .args.sku }' },
      effect: 'keyed',
      key: { header: 'Idempotency-Key', window: '24h' },
      retry: shortRetry,
      compensate: { tool: 'reserve.undo', with: { key: '${ .key }' } }
    },
    {
      name: 'reserve.undo',
      http: { method: 'DELETE', url: `${shop}/reservations/by-key/\${ .args.key }` },
      effect: 'idempotent',
      outcome: { completed: '${ .response.status == 200 or .response.status == 404 }' }
    },
    { name: 'say', ...echo },
    {
      name: 'mail.closed',
      http: { url: `${shop}/mails`, body: '${ .args }' },
      effect: 'keyed',
      key: { window: '24h' },
      breaker: {},
      terminal: true
    },
    { name: 'say.held', ...echo },
    { name: 'say.once', ...echo, on_duplicate: 'refuse' },
    { name: 'say.rarely', ...echo, rate: { limit: 1, per: '1h' } },
    {
      name: 'say.blocked',
      ...echo,
      precheck: { http: { url: `${shop}/prices/kettle` }, done: '${ false }', blocked: '${ "the account is closed" }' }
    },
    { name: 'room', builtin: { do: 'echo' }, effect: 'idempotent', compensate: { tool: 'room.undo' } },
    { name: 'room.undo', builtin: { do: 'echo' }, effect: 'idempotent' },
    { name: 'fails', builtin: { do: 'fail', outcome: 'no_effect' }, effect: 'idempotent', terminal: true },
    { name: 'sleeps', builtin: { do: 'sleep', for: '10m' }, effect: 'idempotent', timeout: '20m', terminal: true },
    { name: 'mail', http: { url: `${shop}/mails`, body: '${ .args }' }, effect: 'once', terminal: true },
    {
      name: 'mail.checked',
      http: { url: `${shop}/mails`, body: '${ .args }' },
      effect: 'checked',
      terminal: true,
      probe: {
        http: { url: `${shop}/prices/kettle` }, // says neither
        outcome: { completed: '${ false }', absent: '${ false }' }
      }
    }
  ],
  sagas: [
    { name: 'stay', steps: [{ id: 'book', call: 'room', with: { room: '${ .input.room }' } }] },
    {
      name: 'doomed',
      steps: [
        { id: 'book', call: 'room' },
        { id: 'fail', call: 'fails' }
      ]
    },
    { name: 'nap', steps: [{ id: 'sleep', call: 'sleeps' }] }
  ]
})

const call = (tool, run, more = {}) => ({ verb: 'call', tool, run, ...more })
const pay = (run, more = {}) => call('charge', run, { step: 'pay', args: { amount: 5, customer: run }, ...more })
// Longer than the Retry-After of an engine that is busy for a moment.
const brief = { patienceMs: 2500 }
const mail = (to) => ({ to, subject: to })
const page = (status) => ({ status, headers: {}, body: '<!doctype html><title>Sign in to the network</title>' })
const refusal = (code) => ({
  status: 503,
  headers: { 'retry-after': '1' },
  body: { type: `urn:sagad:problem:${code}`, title: code, status: 503, detail: 'a test', retryable: true }
})
const alphabets = { 'Grüße, 世界': ['→', '😀', '\u2028', '"\\\u0007'] }

export const cases = [
  // Starts
  {
    name: 'a start',
    ask: [{ verb: 'start', saga: 'stay', id: 's-1', input: { room: 12 } }],
    expect: [{ started: 'stay' }]
  },
  {
    name: 'the same start again is the same saga',
    ask: [
      { verb: 'start', saga: 'stay', id: 's-2', input: { room: 1 } },
      { verb: 'start', saga: 'stay', id: 's-2', input: { room: 1 } }
    ],
    expect: [{ started: 'stay' }, { started: 'stay' }]
  },
  {
    name: 'a start whose answer is lost is sent again',
    ask: [{ verb: 'start', saga: 'stay', id: 's-3', input: { room: 1 } }],
    wire: ['answer lost'],
    expect: [{ started: 'stay' }]
  },
  {
    name: 'a start that is lost is sent again',
    ask: [{ verb: 'start', saga: 'stay', id: 's-4', input: { room: 1 } }],
    wire: ['request lost', 'request lost'],
    expect: [{ started: 'stay' }]
  },
  {
    name: 'the same id with other input is refused',
    ask: [
      { verb: 'start', saga: 'stay', id: 's-5', input: { room: 1 } },
      { verb: 'start', saga: 'stay', id: 's-5', input: { room: 2 } }
    ],
    expect: [{ started: 'stay' }, { error: 'SagadProblem', code: 'other-input' }]
  },
  {
    name: 'a start of what is not registered',
    ask: [{ verb: 'start', saga: 'nobody', id: 's-6' }],
    expect: [{ error: 'SagadProblem', code: 'not-found' }]
  },
  {
    name: 'a start with a wrong token',
    ask: [{ verb: 'start', saga: 'stay', id: 's-7', token: 'wrong' }],
    expect: [{ error: 'SagadProblem', code: 'unauthenticated' }]
  },
  {
    name: 'a start with tags that nobody answers',
    ask: [{ verb: 'start', saga: 'stay', id: 's-8', tags: { team: 'shop' }, ...brief }],
    wire: Array(50).fill('request lost'),
    expect: [{ error: 'SagadUnreachable' }]
  },
  // Waits
  {
    name: 'the end of a saga, by its business id',
    ask: [
      { verb: 'start', saga: 'stay', id: 'w-1', input: { room: 7 } },
      { verb: 'wait', saga: 'stay', businessId: 'w-1' }
    ],
    expect: [{ started: 'stay' }, { status: 'completed' }]
  },
  {
    name: 'the end of a saga that is undone',
    ask: [
      { verb: 'start', saga: 'doomed', id: 'w-2' },
      { verb: 'wait', saga: 'doomed', businessId: 'w-2' }
    ],
    expect: [{ started: 'doomed' }, { status: 'compensated' }]
  },
  {
    name: 'a wait whose answer is lost',
    ask: [
      { verb: 'start', saga: 'stay', id: 'w-3', input: { room: 7 } },
      { verb: 'wait', saga: 'stay', businessId: 'w-3' }
    ],
    wire: [null, 'answer lost'],
    expect: [{ started: 'stay' }, { status: 'completed' }]
  },
  {
    name: 'a wait that is over before the saga',
    ask: [
      { verb: 'start', saga: 'nap', id: 'w-4' },
      { verb: 'wait', saga: 'nap', businessId: 'w-4', ...brief }
    ],
    expect: [{ started: 'nap' }, { status: 'running' }]
  },
  {
    name: 'a wait for what is not there',
    ask: [{ verb: 'wait', saga: 'stay', businessId: 'nothing' }],
    expect: [{ error: 'SagadProblem', code: 'not-found' }]
  },
  // Calls
  { name: 'a call', ask: [pay('c-1')], expect: [{ kind: 'Done', result: { amount: 5 }, replayed: false }] },
  {
    name: 'the same call again',
    ask: [pay('c-2'), pay('c-2')],
    expect: [
      { kind: 'Done', result: { amount: 5 }, replayed: false },
      { kind: 'Done', result: { amount: 5 }, replayed: true }
    ]
  },
  {
    name: 'a call whose answer is lost is sent again under the same emission',
    ask: [pay('c-3')],
    wire: ['answer lost'],
    expect: [{ kind: 'Done', result: { amount: 5 }, replayed: true }]
  },
  {
    name: 'a call that is lost',
    ask: [pay('c-4')],
    wire: ['request lost'],
    expect: [{ kind: 'Done', result: { amount: 5 }, replayed: false }]
  },
  {
    name: 'a call that nobody answers may have happened',
    ask: [pay('c-5', brief)],
    wire: Array(50).fill('answer lost'),
    expect: [{ kind: 'Unknown' }]
  },
  {
    name: 'a repeat that is refused with a tool that refuses repeats',
    ask: [call('say.once', 'c-6', { args: { a: 1 } }), call('say.once', 'c-6', { args: { a: 1 } })],
    expect: [
      { kind: 'Done', result: { a: 1 }, replayed: false },
      { kind: 'Refused', code: 'duplicate-call' }
    ]
  },
  {
    name: 'a lost answer is no repeat for such a tool',
    ask: [call('say.once', 'c-7', { args: { a: 1 } })],
    wire: ['answer lost'],
    expect: [{ kind: 'Done', result: { a: 1 }, replayed: true }]
  },
  {
    name: 'the emission of the caller',
    ask: [
      call('say.once', 'c-8', { args: { a: 1 }, emission: 'tool-call-8' }),
      call('say.once', 'c-8', { args: { a: 1 }, emission: 'tool-call-8' })
    ],
    expect: [
      { kind: 'Done', result: { a: 1 }, replayed: false },
      { kind: 'Done', result: { a: 1 }, replayed: true }
    ]
  },
  {
    name: 'one emission for two calls',
    ask: [
      call('say', 'c-9', { step: 'a', emission: 'tool-call-9' }),
      call('say', 'c-9', { step: 'b', emission: 'tool-call-9' })
    ],
    expect: [
      { kind: 'Done', replayed: false, result: {} },
      { kind: 'Refused', code: 'other-input' }
    ]
  },
  {
    name: 'other arguments',
    ask: [pay('c-10'), pay('c-10', { args: { amount: 6, customer: 'c-10' } })],
    expect: [
      { kind: 'Done', result: { amount: 5 }, replayed: false },
      { kind: 'Refused', code: 'arguments-differ' }
    ]
  },
  {
    name: 'another scope',
    ask: [pay('c-11', { scope: 'a' }), pay('c-11', { scope: 'b' })],
    expect: [
      { kind: 'Done', result: { amount: 5 }, replayed: false },
      { kind: 'Done', result: { amount: 5 }, replayed: false }
    ]
  },
  {
    name: 'a call that certainly did not happen',
    ask: [call('fails', 'c-12')],
    expect: [{ kind: 'Failed', code: 'tool-failed' }]
  },
  {
    name: 'a call that the receiver refuses',
    ask: [pay('c-13', { args: { amount: 5, customer: 'declined' } })],
    expect: [{ kind: 'Failed', code: 'tool-failed' }]
  },
  {
    name: 'a call that failed, and whose answer is lost',
    ask: [call('fails', 'c-14')],
    wire: ['answer lost'],
    expect: [{ kind: 'Failed', code: 'tool-failed' }]
  },
  { name: 'a call that goes on', ask: [call('sleeps', 'c-15', brief)], expect: [{ kind: 'InFlight' }] },
  {
    name: 'a call that goes on, from elsewhere',
    ask: [call('sleeps', 'c-16', brief), call('sleeps', 'c-16', brief)],
    expect: [{ kind: 'InFlight' }, { kind: 'InFlight' }]
  },
  {
    name: 'a call of a tool that is not there',
    ask: [call('nothing', 'c-17')],
    expect: [{ kind: 'Refused', code: 'not-found' }]
  },
  {
    name: 'a call that is wrong',
    ask: [call('say', 'c-18', { step: 'a step' })],
    expect: [{ kind: 'Refused', code: 'invalid' }]
  },
  {
    name: 'a wrong token after a lost answer says nothing about the call',
    ask: [call('say', 'c-19', { tokens: ['good', 'wrong'] })],
    wire: ['answer lost'],
    expect: [{ kind: 'Unknown', code: 'unauthenticated' }]
  },
  {
    name: 'a wrong token after a call that goes on says nothing about the call',
    ask: [call('sleeps', 'c-29', { tokens: ['good', 'wrong'] })],
    wire: ['wait cut'],
    expect: [{ kind: 'Unknown', code: 'unauthenticated' }]
  },
  {
    name: 'a wrong token after a call that goes on elsewhere says nothing about the call',
    prepare: (world) => world.callOnce('sleeps', 'c-30'),
    ask: [call('sleeps', 'c-30', { tokens: ['good', 'wrong'] })],
    wire: ['wait cut'],
    expect: [{ kind: 'Unknown', code: 'unauthenticated' }]
  },
  {
    name: 'a call with a trace',
    ask: [call('say', 'c-20', { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' })],
    expect: [{ kind: 'Done', result: {}, replayed: false }]
  },
  {
    name: 'a call without a trace that deserves the name',
    ask: [call('say', 'c-21', { traceparent: 'nonsense' })],
    expect: [{ kind: 'Done', result: {}, replayed: false }]
  },
  {
    name: 'a mail of which nobody can say whether it went out',
    prepare: (world) => world.fault({ route: 'mails', mode: 'reset-after-effect', times: 1, match: 'c-22' }),
    ask: [call('mail', 'c-22', { args: mail('c-22@example.org') })],
    expect: [{ kind: 'NeedsPerson', code: 'awaiting-operator' }]
  },
  {
    name: 'a mail that is asked about until somebody knows',
    prepare: async (world) => {
      await world.fault({ route: 'mails', mode: 'reset-after-effect', times: 1, match: 'c-23' })
      await world.callUntil('outcome-unknown', { tool: 'mail.checked', run: 'c-23', args: mail('c-23@example.org') })
    },
    ask: [call('mail.checked', 'c-23', { args: mail('c-23@example.org'), ...brief })],
    expect: [{ kind: 'Unknown', code: 'outcome-unknown' }]
  },
  {
    name: 'a call that the state does not allow',
    ask: [call('say.blocked', 'c-24')],
    expect: [{ kind: 'Refused', code: 'blocked-by-precheck' }]
  },
  {
    name: 'too many calls of a tool',
    prepare: (world) => world.callOnce('say.rarely', 'c-25-before'),
    ask: [call('say.rarely', 'c-25', brief)],
    expect: [{ kind: 'Refused', code: 'rate-limited' }]
  },
  {
    name: 'a tool that rests',
    prepare: (world) => world.asOperator('/v1/tools/mail.closed/breaker', { state: 'open', note: 'a test' }),
    ask: [call('mail.closed', 'c-26', { args: mail('c-26@example.org'), ...brief })],
    expect: [{ kind: 'Refused', code: 'breaker-open' }]
  },
  {
    name: 'a tool that a person holds',
    prepare: (world) => world.asOperator('/v1/holds', { tool: 'say.held', note: 'a test' }),
    ask: [call('say.held', 'c-27', brief)],
    expect: [{ kind: 'Refused', code: 'held' }]
  },
  {
    name: 'a loop',
    ask: ['a', 'b', 'c'].map((step) => call('say', 'c-28', { step, args: { again: true } })),
    expect: [
      { kind: 'Done', result: { again: true }, replayed: false },
      { kind: 'Done', result: { again: true }, replayed: false },
      { kind: 'Refused', code: 'loop-detected' }
    ]
  },
  // What comes from elsewhere, and what is hard to write
  {
    name: 'names and values in all alphabets',
    ask: [
      { verb: 'start', saga: 'stay', id: 'x 1-ü?#%&+→.', input: { room: alphabets }, tags: { 'team.ü': 'a=b, c' } },
      { verb: 'wait', saga: 'stay', businessId: 'x 1-ü?#%&+→.' },
      call('say.once', 'c 31/→', { scope: '😀', args: alphabets, emission: 'call → ü 31' }),
      call('say.once', 'c 31/→', { scope: '😀', args: alphabets, emission: 'call → ü 31' })
    ],
    expect: [
      { started: 'stay' },
      { status: 'completed' },
      { kind: 'Done', result: alphabets, replayed: false },
      { kind: 'Done', result: alphabets, replayed: true }
    ]
  },
  {
    name: 'a start and a call of which all is said',
    ask: [
      { verb: 'start', saga: 'stay', id: 'x-3', input: 0, tags: {}, version: 1 },
      call('say', 'c-37', { step: 'greet', scope: 'ada', args: [false], turn: 3, emission: 'x-37' })
    ],
    expect: [{ started: 'stay' }, { kind: 'Done', result: [false], replayed: false }]
  },
  {
    name: 'null is a value, and not the lack of one',
    ask: [
      { verb: 'start', saga: 'doomed', id: 'x-2', input: null },
      { verb: 'start', saga: 'doomed', id: 'x-2' },
      call('say', 'c-32', { args: null })
    ],
    expect: [{ started: 'doomed' }, { error: 'SagadProblem', code: 'other-input' }, { kind: 'Done', result: null }]
  },
  {
    name: 'what a proxy says is no answer',
    ask: [call('say.once', 'c-33', { args: { a: 1 } })],
    wire: [page(200), page(502), page(403)],
    expect: [{ kind: 'Done', result: { a: 1 }, replayed: false }]
  },
  {
    name: 'a redirection is not followed, because the token is for one server',
    ask: [call('say', 'c-34', { args: { a: 1 } })],
    wire: [{ status: 307, headers: { location: '/v1/me' }, body: '' }],
    expect: [{ kind: 'Done', result: { a: 1 }, replayed: false }]
  },
  {
    name: 'a refusal by an engine that was busy before is certain',
    ask: [call('nothing', 'c-35')],
    wire: [refusal('busy')],
    expect: [{ kind: 'Refused', code: 'not-found' }]
  },
  {
    name: 'a refusal by an engine that had lost its database before says nothing about the call',
    ask: [call('nothing', 'c-36')],
    wire: [refusal('database-away')],
    expect: [{ kind: 'Unknown', code: 'not-found' }]
  },
  // Open sagas
  {
    name: 'an open saga that ends well',
    ask: [{ verb: 'open', id: 'o-1', calls: [{ tool: 'room', args: { room: 1 } }], returns: { room: 1 } }],
    expect: [{ value: { room: 1 }, outcomes: ['Done'] }]
  },
  {
    name: 'an open saga that fails is undone',
    ask: [
      { verb: 'open', id: 'o-2', calls: [{ tool: 'reserve', args: { sku: 'kettle', qty: 1 } }], throws: 'no time' },
      { verb: 'wait', opened: 'o-2' }
    ],
    expect: [{ error: 'Error', outcomes: ['Done'] }, { status: 'compensated' }]
  },
  {
    name: 'a call that failed undoes what was done before',
    ask: [
      { verb: 'open', id: 'o-3', calls: [{ tool: 'room', args: {} }, { tool: 'fails' }] },
      { verb: 'wait', opened: 'o-3' }
    ],
    expect: [{ error: 'NotDone', outcomes: ['Done', 'Failed'] }, { status: 'compensated' }]
  },
  {
    name: 'every answer of an open saga is lost once',
    ask: [{ verb: 'open', id: 'o-4', calls: [{ tool: 'room', args: {} }], returns: 4 }],
    wire: ['answer lost', null, 'answer lost', null, 'answer lost'],
    expect: [{ value: 4, outcomes: ['Done'] }]
  },
  {
    name: 'the answer to the abort is lost',
    ask: [
      { verb: 'open', id: 'o-5', calls: [{ tool: 'room', args: {} }], throws: 'no time' },
      { verb: 'wait', opened: 'o-5' }
    ],
    wire: [null, null, 'answer lost'],
    expect: [{ error: 'Error', outcomes: ['Done'] }, { status: 'compensated' }]
  },
  {
    name: 'an open saga that is driven again after its end',
    ask: [
      { verb: 'open', id: 'o-6', calls: [{ tool: 'room', args: {} }], returns: 6 },
      { verb: 'open', id: 'o-6', calls: [{ tool: 'room', args: {} }], returns: 6 }
    ],
    expect: [
      { value: 6, outcomes: ['Done'] },
      { value: 6, outcomes: ['Done'] }
    ]
  },
  {
    name: 'an open saga of which all is said',
    ask: [
      {
        verb: 'open',
        id: 'o-10',
        deadline: '1h',
        onTimeout: 'escalate',
        tags: { team: 'shop' },
        budget: { calls: 2 },
        loop: { repeats: 2, max_cycle: 1 },
        calls: [
          { tool: 'room', args: { again: true } },
          { tool: 'room', step: 'more', args: { again: true } }
        ]
      }
    ],
    expect: [{ error: 'NotDone', outcomes: ['Done', 'Refused'] }]
  },
  {
    name: 'a budget that is used up',
    ask: [{ verb: 'open', id: 'o-7', budget: { calls: 1 }, calls: [{ tool: 'room' }, { tool: 'say' }] }],
    expect: [{ error: 'NotDone', outcomes: ['Done', 'Refused'] }]
  },
  {
    name: 'a call after one that cannot be undone',
    ask: [{ verb: 'open', id: 'o-8', calls: [{ tool: 'say' }, { tool: 'room' }] }],
    expect: [{ error: 'AggregateError', outcomes: ['Done', 'Refused'] }] // nor can the saga be aborted
  },
  {
    name: 'an end before everything is settled',
    ask: [{ verb: 'open', id: 'o-9', lenient: true, calls: [{ tool: 'sleeps', ...brief }], ...brief }],
    expect: [{ error: 'SagadProblem', code: 'unsettled', outcomes: ['InFlight'] }]
  }
]
