// PostgreSQL dies and comes back, and its backends are ended one by one.
import { leaseMs } from '../world.mjs'
import { sleep } from '../../../lib/world.mjs'

export const restart = {
  name: 'restart',
  topology: 'plain',
  weight: 2,
  async fire(run) {
    const { world } = run
    await sleep(run.random() * 300)
    if (run.random() < 0.5) await world.aim.at('log', run.random() < 0.5 ? 'after' : 'answered', 500)
    await world.killPostgres()
    const long = run.random() < 0.1
    await sleep(long ? leaseMs * 1.5 : run.random() * 200)
    await world.startPostgres(world.settings)
    await run.progress('restart')
    return long ? 'restart, away for longer than a lease' : 'restart'
  }
}

const whom = {
  one: 'order by random() limit 1',
  all: '',
  'in a transaction': "and state like '%in transaction%'",
  active: "and state = 'active'",
  idle: "and state = 'idle' order by random() limit 3",
  'of the leases': "and query like '%sagad.shard%' order by random() limit 2"
}

export const terminate = {
  name: 'terminate',
  topology: 'plain',
  weight: 2,
  async fire(run) {
    const which = run.world.pick(Object.keys(whom))
    const ended = await run.world
      .query(
        `select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid() ${whom[which]}) as b`
      )
      .catch(() => '0')
    return Number(ended) > 0 ? `terminate ${which}` : undefined
  }
}
