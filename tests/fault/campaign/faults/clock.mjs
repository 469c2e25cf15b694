// The wall clock of an engine jumps back and forth. Leases must not depend on it. A step that waits for a time may be
// late or, by this engine's clock, early, and nothing else may happen.
import { sleep } from '../../../lib/world.mjs'
import { whyNoClock } from '../world_clock.mjs'

export const clock = {
  name: 'clock',
  topology: 'clock',
  weight: 1,
  impossible: whyNoClock,
  async fire(run) {
    run.clocksJump = true
    const engine = run.world.pick(run.world.engines)
    const [label, ms] = run.world.pick([
      ['seconds forth', 1000 + run.random() * 6000],
      ['seconds back', -1000 - run.random() * 6000],
      ['right again', 0],
      ['an hour back', -3600000],
      ['30 days back', -30 * 86400000]
    ])
    run.world.setClock(engine, ms)
    await sleep(100 + run.random() * 300)
    return `clock ${label}`
  },
  heal(run) {
    for (const engine of run.world.engines) run.world.setClock(engine, 0)
  }
}
