// Three nodes under Patroni and etcd, from Debian's packages, each in its own network namespace: a primary, a
// synchronous standby and a spare. `synchronous_mode_strict` holds, so no commit is acknowledged that only the primary
// has. The engine and the shop are outside, and reach every node.
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { has } from '../lib/programs.mjs'
import { Spaces, whyNoSpaces } from '../lib/spaces.mjs'
import { World, expect, sleep } from '../lib/world.mjs'

const nodeCount = 3
// As short as Patroni takes them (ttl >= loop_wait + 2 * retry_timeout), so that a failover takes seconds.
const times = { ttl: 8, loop_wait: 1, retry_timeout: 3 }

export function whyNoPatroni() {
  const missing = ['patroni', 'etcd'].filter((program) => !has(program))
  if (missing.length > 0) return `${missing.join(' and ')} is not installed (Debian: patroni, etcd-server)`
  return whyNoSpaces()
}

export class PatroniWorld extends World {
  constructor() {
    super()
    this.nodes = []
    // A stopped backend does not notice that its postmaster is gone. So all go on before they are killed.
    process.prependListener('exit', () => this.nodes.forEach((node) => this.killNode(node)))
  }

  // --- the cluster ---

  async startCluster() {
    this.spaces = new Spaces('sagadpat', 'sgp')
    for (let number = 0; number < nodeCount; number++) {
      const directory = join(this.directory, `node-${number}`)
      for (const path of [directory, join(directory, 'etcd')]) {
        mkdirSync(path, { mode: 0o700 })
        chownSync(path, this.user.uid, this.user.gid)
      }
      const place = this.spaces.addSwitched(number)
      this.nodes.push({ number, name: `node${number}`, directory, ...place, host: place.there })
    }
    const hosts = this.nodes.map((node) => node.host)
    this.dsn = `host=${hosts.join(',')} port=5432 user=postgres dbname=postgres target_session_attrs=read-write`
    for (const node of this.nodes) this.startEtcd(node)
    for (const node of this.nodes) this.startPatroni(node)
    await this.whole()
  }

  inside(node, name, program, args) {
    // To change the user forgets what the process was told about the end of its parent.
    const user = ['setpriv', '--reuid', String(this.user.uid), '--regid', String(this.user.gid), '--clear-groups']
    user.push('--pdeathsig', 'KILL', '--')
    const path = `${this.binaries}:${process.env.PATH}`
    return this.launch(`${name}-${node.number}`, 'ip', ['netns', 'exec', node.space, ...user, program, ...args], {
      cwd: node.directory,
      env: { ...process.env, PATH: path, HOME: node.directory }
    })
  }

  startEtcd(node, state = 'new') {
    const peers = this.nodes.map((one) => `${one.name}=http://${one.host}:2380`).join(',')
    const url = (port) => `http://${node.host}:${port}`
    node.etcd = this.inside(node, 'etcd', 'etcd', [
      ...['--name', node.name, '--data-dir', join(node.directory, 'etcd'), '--log-level', 'warn'],
      ...['--listen-peer-urls', url(2380), '--initial-advertise-peer-urls', url(2380)],
      ...['--listen-client-urls', url(2379), '--advertise-client-urls', url(2379)],
      ...[
        '--initial-cluster',
        peers,
        '--initial-cluster-state',
        state,
        '--initial-cluster-token',
        'sagad',
        '--enable-v2=true'
      ],
      ...['--heartbeat-interval', '100', '--election-timeout', '1000', '--snapshot-count', '5000']
    ])
  }

  startPatroni(node) {
    const file = join(node.directory, 'patroni.yml')
    const parameters = {
      shared_buffers: '32MB',
      max_connections: 60,
      wal_keep_size: '128MB',
      wal_log_hints: 'on',
      max_wal_senders: 10,
      max_replication_slots: 10,
      wal_receiver_status_interval: '1s'
    }
    writeFileSync(
      file,
      JSON.stringify({
        scope: 'sagad',
        name: node.name,
        restapi: { listen: `${node.host}:8008`, connect_address: `${node.host}:8008` },
        // By etcd3, Patroni 3.0.2 of Debian 12 overwrites the leader key of its successor (patroni/patroni#2689): two
        // nodes are then promoted, one after the other, and what the first had confirmed is lost.
        etcd: { hosts: this.nodes.map((one) => `${one.host}:2379`) },
        bootstrap: {
          dcs: {
            ...times,
            primary_start_timeout: 0, // a primary that has died is replaced at once
            maximum_lag_on_failover: 1048576,
            synchronous_mode: true,
            synchronous_mode_strict: true,
            postgresql: { use_pg_rewind: true, use_slots: true, parameters }
          },
          initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, { auth: 'trust' }, 'no-sync']
        },
        postgresql: {
          listen: `${node.host},127.0.0.1:5432`,
          connect_address: `${node.host}:5432`,
          data_dir: join(node.directory, 'data'),
          bin_dir: this.binaries,
          pgpass: join(node.directory, 'pgpass'),
          // Without it a removed standby is found out only when TCP gives up.
          parameters: { unix_socket_directories: node.directory, wal_sender_timeout: '5s', wal_receiver_timeout: '5s' },
          pg_hba: ['local all all trust', 'host all all 0.0.0.0/0 trust', 'host replication all 0.0.0.0/0 trust'],
          authentication: { superuser: { username: 'postgres' }, replication: { username: 'postgres' } },
          create_replica_methods: ['basebackup'],
          basebackup: [{ checkpoint: 'fast' }, 'no-sync'],
          remove_data_directory_on_diverged_timelines: true,
          remove_data_directory_on_rewind_failure: true
        }
      }),
      { mode: 0o644 }
    )
    node.patroni = this.inside(node, 'patroni', 'patroni', [file])
  }

  // --- what they say ---

  async rest(node, path, options = {}) {
    const answer = await fetch(`http://${node.host}:8008${path}`, { signal: AbortSignal.timeout(2000), ...options })
    return { status: answer.status, text: await answer.text() }
  }

  // Returns what some node that answers says of all, or undefined.
  async members(asked = this.nodes) {
    for (const node of asked) {
      const answer = await this.rest(node, '/cluster').catch(() => undefined)
      if (answer?.status === 200) return JSON.parse(answer.text).members
    }
    return undefined
  }

  // The node that takes writes and answers for it, among those that may.
  async leader(asked = this.nodes) {
    for (const node of asked) {
      const answer = await this.rest(node, '/primary').catch(() => undefined)
      if (answer?.status === 200) return node
    }
    return undefined
  }

  // Waits until every node says the same: one leader, a synchronous standby and a spare, on one timeline. A node that
  // was away for a while still shows what it knew before. Returns the leader.
  async whole(seconds = 600) {
    let views
    for (const end = Date.now() + seconds * 1000; ; await sleep(100)) {
      for (const node of this.nodes) {
        if (node.etcd.end) this.startEtcd(node, 'existing')
        if (node.patroni.end && !node.unwatched) this.startPatroni(node)
      }
      views = await Promise.all(this.nodes.map((node) => this.members([node])))
      const leader = await this.leader()
      const same = new Set(views.map((view) => JSON.stringify(view?.map(({ name, role }) => [name, role]))))
      const members = views[0] ?? []
      const roles = members.map(({ role }) => role).sort()
      const timelines = new Set(members.map(({ timeline }) => timeline))
      const run = members.every(({ state }) => ['running', 'streaming'].includes(state))
      const isLeader = ({ role, name }) => role === 'leader' && name === leader?.name
      if (run && same.size === 1 && timelines.size === 1 && members.some(isLeader))
        if (roles.join() === 'leader,replica,sync_standby') return leader
      expect(Date.now() < end, 'the cluster becomes whole', views)
    }
  }

  // Does a commit come through at the node? It waits for a synchronous standby.
  async takesCommits(node) {
    const text = "set statement_timeout = '2s'; create table if not exists probe (at timestamptz); truncate probe"
    const asked = ['-X', '-q', '-d', `host=${node.host} user=postgres dbname=postgres connect_timeout=2`, '-c', text]
    const child = this.launch('probe', join(this.binaries, 'psql'), asked)
    return (await child.ended).code === 0
  }

  sql(text) {
    const node = this.primary
    const asked = spawnSync(
      join(this.binaries, 'psql'),
      ['-X', '-q', '-A', '-t', '-d', `host=${node.host} user=postgres dbname=postgres`, '-c', text],
      { encoding: 'utf8', timeout: 20000 }
    )
    if (asked.status !== 0) throw new Error(`psql at ${node.name}: ${asked.error ?? asked.stderr}`)
    return asked.stdout.trim()
  }

  // --- their processes ---

  // Processes in the namespace of the node, parents first.
  processes(node, wanted = () => true) {
    return spawnSync('ip', ['netns', 'pids', node.space], { encoding: 'utf8' })
      .stdout.split('\n')
      .filter(Boolean)
      .map(Number)
      .filter((pid) => {
        try {
          return wanted(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '))
        } catch {
          return false // it has ended
        }
      })
  }

  signal(pids, name) {
    for (const pid of pids) {
      try {
        process.kill(pid, name)
      } catch (error) {
        if (error.code !== 'ESRCH') throw error
      }
    }
  }

  killNode(node) {
    const pids = this.processes(node)
    this.signal(pids, 'SIGKILL')
    this.signal(pids, 'SIGCONT')
  }

  postmaster(node) {
    return Number(readFileSync(join(node.directory, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
  }

  async etcdLeader() {
    for (const node of this.nodes) {
      const answer = await fetch(`http://${node.host}:2379/v3/maintenance/status`, {
        method: 'POST',
        body: '{}',
        signal: AbortSignal.timeout(2000)
      })
        .then((got) => got.json())
        .catch(() => undefined)
      if (answer && answer.leader === answer.header.member_id) return node
    }
    return undefined
  }

  showLogs() {
    super.showLogs()
    for (const name of readdirSync(this.directory).filter((one) => /^(patroni|etcd)-\d\.log$/.test(one))) {
      console.log(`# the end of ${name}:`)
      for (const line of readFileSync(join(this.directory, name), 'utf8').trimEnd().split('\n').slice(-30))
        console.log(`#   ${line.slice(0, 300)}`)
    }
  }

  async stop() {
    for (const node of this.nodes) this.killNode(node)
    await super.stop()
    this.spaces?.removeAll()
    for (const node of this.nodes) rmSync(node.directory, { recursive: true, force: true })
  }
}
