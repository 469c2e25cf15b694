// Each engine is in its own network namespace, with a wire to the namespace of PostgreSQL and the shop.
import { createHash } from 'node:crypto'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Spaces } from '../../lib/spaces.mjs'
import { freePort } from '../../lib/world.mjs'
import { useToken } from './http.mjs'
import { CampaignWorld } from './world.mjs'

export class NetWorld extends CampaignWorld {
  constructor(random, options) {
    super(random, options)
    // The kernel repeats bytes that left before a cut when the wire is back, seconds later. A PUT that another engine
    // has meanwhile repeated and undone then takes effect again. Keys prevent that, and people wait for it. A tool that
    // is only idempotent has neither, and no engine can call back what has left.
    this.without = ['marked']
  }

  nodes() {
    return []
  }

  async startAll() {
    this.spaces = new Spaces('sagadcmp', 'sgw')
    this.spaces.addAddress(this.shopHost())
    this.wires = Array.from({ length: this.engineCount }, (_, number) => this.spaces.add(number))
    const settings = [
      '-c',
      `listen_addresses=${this.wires.map((wire) => wire.here).join(',')}`,
      '-c',
      'tcp_keepalives_idle=1',
      '-c',
      'tcp_keepalives_interval=1',
      '-c',
      'tcp_keepalives_count=2',
      '-c',
      'tcp_user_timeout=4000'
    ]
    // An address other than loopback is served only with tokens, and with TLS or behind a proxy.
    const [token, file] = ['campaign', join(this.directory, 'tokens.json')]
    writeFileSync(
      file,
      JSON.stringify({
        tokens: [
          {
            name: 'campaign',
            sha256: createHash('sha256').update(token).digest('hex'),
            role: 'admin',
            namespace: 'default'
          }
        ]
      }),
      { mode: 0o600 }
    )
    this.leaseArgs.push('--tokens', file, '--behind-proxy')
    useToken(token)
    process.env.SAGACTL_TOKEN = token
    await this.prepare()
    await super.startAll([...settings])
  }

  // pg_hba.conf exists only after initdb, so PostgreSQL is started once without the network.
  async prepare() {
    await this.startPostgres()
    await this.stopPostgres()
    appendFileSync(join(this.directory, 'data', 'pg_hba.conf'), `host all all ${this.spaces.block}.0.0/16 trust\n`)
  }

  shopHost() {
    return `${this.spaces.block}.255.1`
  }

  async makeEngine(number) {
    const wire = this.wires[number]
    return {
      ...wire,
      number,
      name: `sagad-${number}`,
      host: wire.there,
      port: await freePort(),
      proxies: [],
      env: {},
      dsn: `host=${wire.here} port=5432 user=postgres dbname=postgres`
    }
  }

  program(engine) {
    return ['ip', ['netns', 'exec', engine.space, this.sagadPath]]
  }

  rule(engine, action, ...rule) {
    return this.spaces.rule(engine, action, ...rule)
  }

  cutWire(engine) {
    return this.spaces.cut(engine)
  }

  healNetwork(engine) {
    return this.spaces.heal(engine)
  }

  async stop() {
    await super.stop()
    useToken(undefined)
    delete process.env.SAGACTL_TOKEN
    this.spaces?.removeAll()
  }
}
