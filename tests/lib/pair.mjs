// A primary and its standby, or several, on one machine, and an engine that knows all of them, for failovers of each
// kind. Unlike in the campaign's pair, nothing is between them and the engine. A server may hang, be left behind
// unfenced, or lose what its standby never got.
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, sleep } from './world.mjs'

export class Pair extends World {
  constructor(serverCount = 2) {
    super()
    this.servers = Array.from({ length: serverCount }, (_, number) => ({
      number,
      directory: join(this.directory, `node-${number}`),
      data: join(this.directory, `node-${number}`, 'data')
    }))
    for (const { directory } of this.servers) {
      mkdirSync(directory)
      if (this.user.uid !== undefined) chownSync(directory, this.user.uid, this.user.gid)
    }
    this.dsn =
      `host=${this.servers.map((server) => server.directory).join(',')} port=5432 user=postgres dbname=postgres ` +
      `target_session_attrs=read-write`
    // A stopped backend does not notice that its postmaster is gone, and would stay for ever. So all go on before they
    // are killed.
    process.prependListener('exit', () => this.servers.forEach((server) => this.goOn(server)))
  }

  async stop() {
    for (const server of this.servers) this.goOn(server)
    await super.stop()
  }

  tool(name, args) {
    const done = spawnSync(join(this.binaries, name), args, {
      ...this.user,
      cwd: this.directory,
      encoding: 'utf8',
      timeout: 120000
    })
    if (done.status !== 0) throw new Error(`${name} failed: ${done.stderr}${done.error ?? ''}`)
  }

  async startServer(server) {
    const settings = ['shared_buffers=32MB', 'max_connections=80', 'wal_keep_size=256MB']
    settings.push(`cluster_name=node_${server.number}`, 'wal_receiver_status_interval=1')
    server.child = this.launchServer(
      `postgres-${server.number}`,
      server.data,
      server.directory,
      settings.flatMap((setting) => ['-c', setting])
    )
    for (
      let tries = 0;
      spawnSync(join(this.binaries, 'pg_isready'), ['-q', '-h', server.directory, '-U', 'postgres']).status !== 0;
      tries++
    ) {
      if (tries > 300 || server.child.end) throw new Error(`node ${server.number} does not start`)
      await sleep(50)
    }
  }

  at(server, text) {
    const asked = spawnSync(
      join(this.binaries, 'psql'),
      [
        '-X',
        '-q',
        '-A',
        '-t',
        '-v',
        'ON_ERROR_STOP=1',
        '-h',
        server.directory,
        '-U',
        'postgres',
        '-d',
        'postgres',
        '-c',
        text
      ],
      { encoding: 'utf8', timeout: 20000 }
    )
    if (asked.status !== 0) throw new Error(`psql at node ${server.number}: ${asked.error ?? asked.stderr}`)
    return asked.stdout.trim()
  }

  async startPair({ synchronous }) {
    const [first, second] = this.servers
    for (const server of this.servers) rmSync(server.data, { recursive: true, force: true })
    this.tool('initdb', ['-D', first.data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', '-N'])
    await this.startServer(first)
    this.primary = first
    await this.follow(second, synchronous)
  }

  // Makes a new standby of the primary, by a base backup.
  async follow(server, synchronous) {
    rmSync(server.data, { recursive: true, force: true })
    this.tool('pg_basebackup', [
      '-D',
      server.data,
      '-d',
      `host=${this.primary.directory} user=postgres application_name=node_${server.number}`,
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '-N'
    ])
    await this.startServer(server)
    this.set(this.primary, 'synchronous_standby_names', synchronous ? `node_${server.number}` : '')
    for (
      let tries = 0;
      this.at(
        this.primary,
        `select count(*) from pg_stat_replication where state = 'streaming' 
          and application_name = 'node_${server.number}' and sync_state = '${synchronous ? 'sync' : 'async'}'`
      ) !== '1';
      tries++
    ) {
      if (tries > 300) throw new Error(`node ${server.number} does not follow`)
      await sleep(50)
    }
  }

  set(server, name, value) {
    this.at(server, `alter system set ${name} = '${value}'`)
    this.at(server, 'select pg_reload_conf()')
  }

  // Cuts the standby off from everything that is written from now on.
  async cut(server) {
    this.set(server, 'primary_conninfo', '')
    const streams = `select count(*) from pg_stat_replication where application_name = 'node_${server.number}'`
    for (let tries = 0; this.at(this.primary, streams) !== '0'; tries++) {
      if (tries > 300) throw new Error('the standby is not cut off')
      await sleep(50)
    }
  }

  // Waits until the standby has all that the primary has.
  async catchUp(server) {
    const where = this.at(this.primary, 'select pg_current_wal_flush_lsn()')
    for (let tries = 0; this.at(server, `select pg_last_wal_replay_lsn() >= '${where}'`) !== 't'; tries++) {
      if (tries > 300) throw new Error('the standby does not catch up')
      await sleep(50)
    }
  }

  promote(server) {
    this.tool('pg_ctl', ['promote', '-D', server.data, '-w', '-t', '60'])
    this.set(server, 'synchronous_standby_names', '') // the setting came from the primary and names this very server
    this.primary = server
  }

  processes(server) {
    const pid = server.child.pid
    const children = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n')
      .filter(Boolean)
      .map(Number)
    return [pid, ...children]
  }

  // Makes the server look like one whose disk does not answer: the kernel accepts bytes, and nothing comes back. The
  // postmaster stops first, so that no child is missed.
  hang(server) {
    process.kill(server.child.pid, 'SIGSTOP')
    server.hung = this.processes(server)
    for (const pid of server.hung) process.kill(pid, 'SIGSTOP')
  }

  // Lets a hung server go on; does nothing to others.
  goOn(server) {
    for (const pid of (server.hung ?? []).reverse()) {
      try {
        process.kill(pid, 'SIGCONT')
      } catch (error) {
        if (error.code !== 'ESRCH') throw error // it was killed meanwhile
      }
    }
    server.hung = undefined
  }

  async kill(server, signal = 'SIGQUIT') {
    server.child.kill(signal)
    server.child.kill('SIGCONT')
    await server.child.ended
  }

  async readyz() {
    return this.api('GET', '/readyz?verbose', undefined, { seconds: 5 })
  }

  sql(text) {
    return this.at(this.primary, text)
  }

  // Waits until the condition holds, and returns the time that took in ms.
  async within(seconds, what, so) {
    const begun = Date.now()
    for (let last; ; await sleep(50)) {
      try {
        last = await so()
      } catch (error) {
        last = undefined
        if (Date.now() - begun > seconds * 1000) throw error
      }
      if (last) return Date.now() - begun
      expect(Date.now() - begun < seconds * 1000, `within ${seconds} s: ${what}`)
    }
  }
}
