// A primary and its synchronous standby, as an operator with automatic failover runs them: the primary dies, the
// standby is promoted, and the old server becomes a new standby. Every engine knows both servers, through its own
// proxies, and asks for the one that takes writes.
import { chownSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { sleep } from '../../lib/world.mjs'
import { CampaignWorld } from './world.mjs'

export class PairWorld extends CampaignWorld {
  constructor(random, options) {
    super(random, options)
    this.servers = [0, 1].map((number) => ({
      number,
      directory: join(this.directory, `node-${number}`),
      data: join(this.directory, `node-${number}`, 'data')
    }))
    for (const server of this.servers) this.own(server.directory)
    this.primary = this.servers[0]
    this.failovers = 0
  }

  own(directory) {
    mkdirSync(directory, { recursive: true })
    if (this.user.uid !== undefined) chownSync(directory, this.user.uid, this.user.gid)
  }

  nodes() {
    return this.servers.map((server) => server.directory)
  }

  async startAll() {
    const [first, second] = this.servers
    await this.run(
      join(this.binaries, 'initdb'),
      ['-D', first.data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', '-N'],
      { ...this.user, cwd: this.directory }
    )
    this.point(first)
    await this.startServer(first)
    await this.follow(second)
    await this.startShop()
    await this.startEngineSet()
  }

  // Points the judge and the people to a server.
  point(server) {
    this.primary = server
    this.dsn = `host=${server.directory} port=5432 user=postgres dbname=postgres`
  }

  launchNode(server) {
    const settings = [
      ...['fsync=on', 'shared_buffers=64MB', 'max_connections=120', 'track_commit_timestamp=on', 'wal_level=replica'],
      ...['hot_standby=on', 'wal_keep_size=256MB', 'max_wal_senders=10', 'wal_receiver_status_interval=1'],
      ...[`cluster_name=node_${server.number}`, 'synchronous_commit=on', 'logging_collector=off']
    ]
    server.child = this.launchServer(
      `postgres-${server.number}`,
      server.data,
      server.directory,
      settings.flatMap((setting) => ['-c', setting])
    )
  }

  async startServer(server) {
    this.launchNode(server)
    if (!(await this.postgresAnswers(server.directory))) throw new Error(`node ${server.number} does not start`)
    for (const engine of this.engines) await engine.proxies[server.number].listen()
  }

  async killServer(server, how) {
    server.child.kill(how)
    await server.child.ended
    for (const engine of this.engines) engine.proxies[server.number].unlisten()
  }

  // Makes the other server a synchronous standby of the primary, by a new base backup, which is always possible.
  async follow(server) {
    const { primary } = this
    rmSync(server.data, { recursive: true, force: true })
    const from = `host=${primary.directory} port=5432 user=postgres application_name=node_${server.number}`
    await this.run(
      join(this.binaries, 'pg_basebackup'),
      ['-D', server.data, '-d', from, '-R', '-X', 'stream', '-c', 'fast', '-N'],
      { ...this.user, cwd: this.directory, seconds: 120 }
    )
    await this.startServer(server)
    await this.onPrimary(`alter system set synchronous_standby_names = 'node_${server.number}'`)
    await this.onPrimary('select pg_reload_conf()')
    for (let tries = 0; ; tries++) {
      if (
        (await this.query(
          "select count(*) from pg_stat_replication where sync_state = 'sync' and state = 'streaming'"
        ).catch(() => '')) === '1'
      )
        return
      if (tries > 300) throw new Error(`node ${server.number} does not become synchronous`)
      await sleep(50)
    }
  }

  async onPrimary(text) {
    await this.run(join(this.binaries, 'psql'), ['-X', '-q', '-d', this.dsn, '-c', text], { seconds: 10 })
  }

  // The primary dies, and the standby takes over. It has no standby until followAgain(): a promoted server is told to
  // go on alone.
  async failOver(how) {
    const old = this.primary
    const next = this.servers.find((server) => server !== old)
    await this.killServer(old, how)
    this.point(next)
    await this.run(join(this.binaries, 'pg_ctl'), ['promote', '-D', next.data, '-w', '-t', '60'], {
      ...this.user,
      cwd: this.directory,
      seconds: 70
    })
    // The setting came with the base backup. It names this very server, which would wait for itself.
    await this.onPrimary("alter system set synchronous_standby_names = ''")
    await this.onPrimary('select pg_reload_conf()')
    this.failovers++
    return { old, next }
  }
}
