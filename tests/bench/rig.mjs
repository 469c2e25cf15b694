// The rig of the benchmark: a private PostgreSQL that keeps its promises, sagad, the service that W3 calls, and the
// load driver (`bench-load`). All of them share this machine, and so do the references.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { World, freePort, sleep } from '../lib/world.mjs'
import { definitions } from './definitions.mjs'

// PostgreSQL has enough room that neither side waits for a checkpoint while it is measured. sagad and the references
// use the same settings.
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
  // SAGAD_SHOP is the only service here; see service.c.
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

  // Fills the log. A database that has run for a while reuses the old files of its log. A fresh one first fills each
  // file with zeros, and everything waits for that, some 50 ms twice a second. From the checkpoint on there are as many
  // files as were filled here.
  makeRoom(megabytes) {
    this.sql(
      `select count(pg_logical_emit_message(false, 'room', repeat('x', 1000000))) from generate_series(1, ${megabytes})`
    )
    this.sql('checkpoint')
  }

  // The measurement decides how many sagas are in flight, so the intake must not refuse starts.
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

  // Runs `work` with the port of a second engine that has its share of the shards. Afterwards the first engine has all
  // shards again.
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

  // Runs `work` with the engine on its own database. Afterwards the engine is back on the database of before.
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

  // Counts the sagas of all times, however long that takes, because GET /v1/stats looks only at the last day.
  endedSagas() {
    return Number(this.sql("select count(*) from sagad.saga where ended_at is not null and name <> '~run'"))
  }

  // Runs several statements, each in its own transaction.
  script(...statements) {
    return statements.map((statement) => this.sql(statement))
  }

  // Returns {NAME: value} of the counters and gauges without labels.
  async metrics() {
    const page = (await this.api('GET', '/metrics')).text
    return Object.fromEntries(
      [...page.matchAll(/^(\w+) (\d+(?:\.\d+)?)$/gm)].map(([, name, value]) => [name, Number(value)])
    )
  }

  // Runs a program to its end and returns its standard output.
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

  // Runs the load driver once and returns its figures, with `talk` when something went wrong.
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

  // Waits until the service answers that it has done what `over` asks for.
  async reaches(over, seconds) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(200))
      if (over(await this.metrics())) return true
    return false
  }

  residentBytes() {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.sagad.pid}/status`, 'utf8'))[1]) * 1024
  }
}
