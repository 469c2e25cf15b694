// Each engine is in its own network namespace, with a wire to the namespace of PostgreSQL and the shop. Only root can
// make namespaces. The next campaign removes what a killed one has left.
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../../lib/world.mjs'
import { useToken } from './http.mjs'
import { CampaignWorld, has, isRoot } from './world.mjs'

const prefix = 'sagadcmp'
const block = `10.${100 + (process.pid % 100)}` // two campaigns on one machine do not meet
const shopAddress = `${block}.255.1`

export function whyNoNetwork() {
  if (!isRoot()) return 'only root can make network namespaces'
  if (!has('ip') || !has('iptables')) return 'ip or iptables is not installed (iproute2, iptables)'
  try {
    ip('netns', 'add', `${prefix}try`)
    ip('link', 'add', `${prefix}t0`, 'type', 'veth', 'peer', 'name', `${prefix}t1`)
    ip('link', 'del', `${prefix}t0`)
    return undefined
  } catch (error) {
    return `network namespaces are not permitted here: ${String(error.stderr ?? error).trim()}`
  } finally {
    quiet('netns', 'del', `${prefix}try`)
  }
}

const ip = (...args) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' })
const quiet = (...args) => {
  try {
    ip(...args)
  } catch {
    /* it is not there */
  }
}

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
    this.removeStale()
    process.on('exit', () => this.removeAll())
    quiet('addr', 'add', `${shopAddress}/32`, 'dev', 'lo')
    this.wires = Array.from({ length: this.engineCount }, (_, number) => this.makeWire(number))
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
    // An address other than loopback is served only with tokens.
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
    this.leaseArgs.push('--tokens', file)
    useToken(token)
    process.env.SAGACTL_TOKEN = token
    await this.prepare()
    await super.startAll([...settings])
  }

  // pg_hba.conf exists only after initdb, so PostgreSQL is started once without the network.
  async prepare() {
    await this.startPostgres()
    await this.stopPostgres()
    appendFileSync(join(this.directory, 'data', 'pg_hba.conf'), `host all all ${block}.0.0/16 trust\n`)
  }

  shopHost() {
    return shopAddress
  }

  makeWire(number) {
    const space = `${prefix}${process.pid}-${number}`
    const wire = `sgw${process.pid % 100000}-${number}`
    const [here, there] = [`${block}.${number}.1`, `${block}.${number}.2`]
    ip('netns', 'add', space)
    ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', `${wire}p`)
    ip('link', 'set', `${wire}p`, 'netns', space)
    ip('addr', 'add', `${here}/30`, 'dev', wire)
    ip('link', 'set', wire, 'up')
    ip('-n', space, 'addr', 'add', `${there}/30`, 'dev', `${wire}p`)
    ip('-n', space, 'link', 'set', `${wire}p`, 'up')
    ip('-n', space, 'link', 'set', 'lo', 'up')
    ip('-n', space, 'route', 'add', 'default', 'via', here)
    return { space, wire, here, there }
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

  // Adds a rule in the engine's own namespace, which takes the rule with it when it ends.
  rule(engine, action, ...rule) {
    return this.run('ip', ['netns', 'exec', engine.space, 'iptables', '-w', action, ...rule], { seconds: 10 })
  }

  // Cuts the wire in both directions without telling either side. Taking the link down would also remove its route, and
  // another route might answer.
  async cutWire(engine) {
    await this.rule(engine, '-A', 'OUTPUT', '-j', 'DROP')
    await this.rule(engine, '-A', 'INPUT', '-j', 'DROP')
  }

  async healNetwork(engine) {
    await this.rule(engine, '-F', 'INPUT').catch(() => {})
    await this.rule(engine, '-F', 'OUTPUT').catch(() => {})
  }

  removeStale() {
    if (!existsSync('/run/netns')) return
    for (const name of readdirSync('/run/netns')) {
      const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
      if (pid && !existsSync(`/proc/${pid}`)) quiet('netns', 'del', name)
    }
  }

  removeAll() {
    for (const { space, wire } of this.wires ?? []) {
      quiet('netns', 'del', space)
      quiet('link', 'del', wire)
    }
    quiet('addr', 'del', `${shopAddress}/32`, 'dev', 'lo')
  }

  async stop() {
    await super.stop()
    useToken(undefined)
    delete process.env.SAGACTL_TOKEN
    this.removeAll()
  }
}
