// The definitions of the workloads. The tools are `builtin`, so that a step costs only its turn; those of W3 call the
// service.
const step = (id, call, n) => ({ id, call, with: { n } })

export const definitions = (servicePort) => {
  const http = { method: 'POST', url: `http://127.0.0.1:${servicePort}/do`, body: '${ .args }' }
  const undo = (tool) => ({ compensate: { tool, with: { n: '${ .args.n }' } } })
  return {
    tools: [
      { name: 'bench.do', builtin: { do: 'echo' }, effect: 'idempotent', ...undo('bench.undo') },
      { name: 'bench.undo', builtin: { do: 'echo' }, effect: 'idempotent' },
      {
        name: 'bench.fail',
        builtin: { do: 'fail', outcome: 'no_effect' },
        effect: 'idempotent',
        ...undo('bench.undo')
      },
      {
        name: 'bench.hold',
        builtin: { do: 'sleep', for: '50m' },
        effect: 'idempotent',
        timeout: '1h',
        ...undo('bench.undo')
      },
      {
        name: 'bench.ask',
        http,
        effect: 'keyed',
        key: { header: 'Idempotency-Key', window: '24h' },
        timeout: '10s',
        ...undo('bench.ask_undo')
      },
      { name: 'bench.ask_undo', http, effect: 'idempotent', timeout: '10s' }
    ],
    sagas: [
      {
        name: 'bench_w1',
        steps: [step('one', 'bench.do', 1), step('two', 'bench.do', 2), step('three', 'bench.do', 3)]
      },
      {
        name: 'bench_gone',
        retention: '2s',
        steps: [step('one', 'bench.do', 1), step('two', 'bench.do', 2), step('three', 'bench.do', 3)]
      },
      {
        name: 'bench_w2',
        steps: [step('one', 'bench.do', 1), step('two', 'bench.do', 2), step('three', 'bench.fail', 3)]
      },
      {
        name: 'bench_w3',
        steps: [step('one', 'bench.ask', 1), step('two', 'bench.ask', 2), step('three', 'bench.ask', 3)]
      },
      {
        name: 'bench_w4',
        steps: [{ id: 'each', for_each: '${ .input.items }', call: 'bench.do', with: { n: '${ .item }' } }]
      },
      { name: 'bench_w6', steps: [{ id: 'rest', sleep: '30d' }] },
      { name: 'bench_hold', steps: [step('one', 'bench.hold', 1)] },
      { name: 'bench_w7', steps: [step('one', 'bench.do', 1)] }
    ]
  }
}
