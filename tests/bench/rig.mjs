// What is measured and who measures: a private PostgreSQL that keeps its promises, sagad, the service that W3 calls,
// and the load driver (`bench-load`). All of them share this machine, as the references do.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { World, freePort, sleep } from '../lib/world.mjs'
import { definitions } from './definitions.mjs'

// PostgreSQL with room, so that neither side is measured while it waits for a checkpoint; the same for sagad and the
// references.
const postgresSettings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '1GB',
  max_wal_size: '16GB',
  min_wal_size: '8GB',
  checkpoint_timeout: '1h',
  max_connections: '100',
  track_io_timing: 'off'
}

const loadPath = process.env.SAGAD_LOAD && resolve(process.env.SAGAD_LOAD)

export class Rig extends World {
  // SAGAD_SHOP is the one service here; see service.c.
  async open(sagadArgs, morePostgresSettings = []) {
    this.extraArgs = sagadArgs
    await this.startPostgres([
      ...Object.entries(postgresSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ...morePostgresSettings
    ])
    this.servicePort = await freePort()
    this.launch('service', this.shopPath, [String(this.servicePort)])
    this.sql('create database reference')
    this.port = await freePort()
    this.migrate()
    await this.startEngine()
    await this.define(definitions(this.servicePort))
    const probe = await this.api('POST', '/v1/sagas/batch', [])
    this.batches = probe.status !== 404 && probe.status !== 405
  }

  // A database that has run for a while takes the old files of its log anew; a fresh one fills each with zeros first,
  // and all wait for that file, some 50 ms twice a second. From the checkpoint on there are as many as were filled
  // here.
  makeRoom(megabytes) {
    this.sql(
      `select count(pg_logical_emit_message(false, 'room', repeat('x', 1000000))) from generate_series(1, ${megabytes})`
    )
    this.sql('checkpoint')
  }

  // How much is in flight is the measurement's business here and not the intake's, which would begin to refuse.
  async startEngine(args = []) {
    this.launchEngine(args)
    await this.ready()
  }

  launchEngine(args) {
    this.sagad = this.launchSagadAt(this.port, args)
  }

  launchSagadAt(port, args = []) {
    return this.launch('sagad', this.sagadPath, [
      '--database',
      this.dsn,
      '--listen',
      `127.0.0.1:${port}`,
      '--exec-as-me',
      '--log-format',
      'text',
      '--log-level',
      'warn',
      '--commit-delay',
      '60s',
      '--sagas-max',
      '300000',
      ...this.extraArgs,
      ...args
    ])
  }

  // Runs `work` with the port of a second engine that has its share of the shards; afterwards the first one has all of
  // them again.
  async withSecondEngine(work) {
    const port = await freePort()
    const { sagad_shards_owned: shards } = await this.metrics()
    const second = this.launchSagadAt(port)
    try {
      if (!(await this.reaches((metrics) => metrics.sagad_shards_owned <= shards / 2, 60)))
        throw new Error('the second engine does not get its share of the shards')
      return await work(port)
    } finally {
      second.kill('SIGTERM')
      await second.ended
      await this.reaches((metrics) => metrics.sagad_shards_owned === shards, 60)
    }
  }

  async stopEngine() {
    this.sagad.kill('SIGTERM')
    await this.sagad.ended
  }

  // Runs `work` with the engine on a database of its own; afterwards it is back on the one of before.
  async onFreshDatabase(name, args, work) {
    const before = this.dsn
    this.sql(`create database ${name}`)
    await this.stopEngine()
    this.dsn = before.replace('dbname=postgres', `dbname=${name}`)
    try {
      this.migrate()
      await this.startEngine(args)
      await this.define(definitions(this.servicePort))
      return await work()
    } finally {
      await this.stopEngine()
      this.dsn = before
      await this.startEngine()
    }
  }

  // Of all times, where GET /v1/stats looks at the last day; and however long it takes.
  endedSagas() {
    return Number(this.sql("select count(*) from sagad.saga where ended_at is not null and name <> '~run'"))
  }

  // Several statements, none of them in a transaction with another.
  script(...statements) {
    return statements.map((statement) => this.sql(statement))
  }

  // {NAME: value} of the counters and gauges without labels.
  async metrics() {
    const page = (await this.api('GET', '/metrics')).text
    return Object.fromEntries(
      [...page.matchAll(/^(\w+) (\d+(?:\.\d+)?)$/gm)].map(([, name, value]) => [name, Number(value)])
    )
  }

  // Runs a program to its end; its standard output.
  async output(name, path, args) {
    const child = this.launch(name, path, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    let talk = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      talk += text
    })
    const closed = new Promise((resolve) => child.on('close', resolve))
    const end = await child.ended
    if (end.code !== 127) await closed
    if (out === '') throw new Error(`${name} ended with ${end.code ?? end.signal}: ${talk.trim().slice(-500)}`)
    return { out, talk: talk.trim() }
  }

  // One run of the load driver: its figures, with `talk` where something went wrong.
  async drive(args, port = this.port) {
    const { out, talk } = await this.output('driver', loadPath, [
      '--server',
      `http://127.0.0.1:${port}`,
      ...args,
      '-o',
      'json'
    ])
    return { ...JSON.parse(out), ...(talk && { talk }) }
  }

  machine() {
    const [{ model }] = cpus()
    return {
      cores: cpus().length,
      model,
      memory_mib: Math.round(totalmem() / 1048576),
      kernel: release(),
      file_system: execFileSync('stat', ['-f', '-c', '%T', this.directory], { encoding: 'utf8' }).trim(),
      postgres: this.sql('show server_version'),
      postgres_settings: postgresSettings,
      sagad: this.sagadOnce(['--version']).stdout.trim(),
      sagad_settings: this.extraArgs.join(' '),
      node: process.version
    }
  }

  // Until the service answers that it has done what `over` asks for.
  async reaches(over, seconds) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(200))
      if (over(await this.metrics())) return true
    return false
  }

  residentBytes() {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.sagad.pid}/status`, 'utf8'))[1]) * 1024
  }
}
