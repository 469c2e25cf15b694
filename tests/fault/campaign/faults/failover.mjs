// Failover to a synchronous standby. Everything that was acknowledged before is there after it; other writes may be
// there.
import { leaseMs } from '../world.mjs'
import { sleep } from '../../../lib/world.mjs'

export const failover = {
  name: 'failover',
  topology: 'pair',
  weight: 4,
  async fire(run) {
    const { world } = run
    if (run.random() < 0.5) await world.aim.at('log', run.random() < 0.5 ? 'after' : 'answered', 500)
    const how = run.random() < 0.5 ? 'SIGKILL' : 'SIGQUIT'
    const from = Date.now()
    const { old } = await world.failOver(how)
    run.measure('failover: ms until promoted', Date.now() - from)
    await run.progress('failover')
    await world.follow(old)
    return `failover (${how})`
  }
}

// The standby is away for a while. Commits wait for it, and none may be acknowledged meanwhile. Some of the waiting
// commits are cancelled, which makes PostgreSQL commit them with a warning, on the primary alone. Then that primary is
// lost.
export const standby_lost = {
  name: 'standby_lost',
  topology: 'pair',
  weight: 2,
  async fire(run) {
    const { world } = run
    const standby = world.servers.find((server) => server !== world.primary)
    standby.child.kill('SIGSTOP')
    await sleep(200 + run.random() * leaseMs)
    run.notes.unconfirmed = true
    const cancelled = await world
      .query(`select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'`)
      .catch(() => '0')
    if (Number(cancelled) > 0)
      run.notes.rowsMayVanish = true // reads now show rows that only this server has
    else run.notes.unconfirmed = false
    await sleep(run.random() * 300)
    if (run.random() < 0.5) {
      standby.child.kill('SIGCONT')
      await run.progress('standby back')
      // A commit of our own that has reached the standby confirms all commits before it.
      if (
        await world.onPrimary("select pg_logical_emit_message(true, 'campaign', 'here')").then(
          () => true,
          () => false
        )
      )
        run.notes.unconfirmed = false
      return `standby_lost, ${Number(cancelled) > 0 ? 'commits cancelled' : 'nothing waited'}, back`
    }
    // The primary dies with the rows that only it has.
    await world.killServer(world.primary, 'SIGKILL')
    standby.child.kill('SIGCONT')
    const { old } = await world.failOver('SIGKILL')
    run.notes.vanished++
    run.notes.unconfirmed = false
    await run.progress('failover')
    await world.follow(old)
    return `standby_lost, ${Number(cancelled) > 0 ? 'commits cancelled' : 'nothing waited'}, failover`
  }
}
