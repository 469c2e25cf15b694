// What traces of ended sagas cost: W1 on an engine that sends none, all, and one of a hundred, in turns within one
// round. The collector is the service of W3, which reads what it is sent and says nothing but 200.
//
// The engine makes a trace from the log when its saga has ended, so the cost is a read of the log, its fold and the
// text of the spans. Traces that do not fit the queue are dropped: what was sent a second stands beside the rate.

const kinds = [
  { id: 'off', args: [] },
  { id: 'all', ratio: '1' },
  { id: 'few', ratio: '0.01' }
]

export async function traced({ rig, gauge, seconds }) {
  const endpoint = `http://127.0.0.1:${rig.servicePort}`
  const part = String(Math.max(1, Math.round(seconds / kinds.length)))
  const figures = {}
  for (const { id, ratio } of kinds) {
    await rig.stopEngine()
    await rig.startEngine(
      ratio ? ['--otlp-endpoint', endpoint, '--otlp-sampler', 'traceidratio', '--otlp-sampler-arg', ratio] : []
    )
    rig.sql('checkpoint')
    const one = await gauge.around(() =>
      rig.drive([
        ...['--saga', 'bench_w1', '--seconds', part, '--steps', '0', '--warmup', '0'],
        ...['--concurrency', '256']
      ])
    )
    const metrics = await rig.metrics()
    figures[id] = {
      per_second: one.sagas_per_second,
      cpu_per_1000: one.cpu_per_1000,
      sent_per_second: metrics.sagad_traces_sent_total / one.seconds,
      dropped_per_second: metrics.sagad_traces_dropped_total / one.seconds,
      errors: one.errors
    }
  }
  await rig.stopEngine()
  await rig.startEngine()
  const against = (id, of) => of(figures[id]) / of(figures.off)
  return {
    per_second: figures.all.per_second,
    of: 'sagas',
    ...figures,
    all_against_off: against('all', (f) => f.per_second),
    few_against_off: against('few', (f) => f.per_second),
    all_cpu: against('all', (f) => f.cpu_per_1000.both),
    few_cpu: against('few', (f) => f.cpu_per_1000.both),
    errors: kinds.reduce((sum, { id }) => sum + figures[id].errors, 0)
  }
}
