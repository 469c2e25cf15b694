// What trust costs: W1 with TLS, with a JWT for each request and with encryption at rest, against W1 with none of them,
// in interleaved rounds over one database. Not part of a run of the benchmark; asked for by hand:
//
//     SAGAD=build/release/sagad SAGACTL=build/release/tools/sagactl/sagactl \
//       SAGAD_SHOP=build/release/tests/bench/bench-service SAGAD_LOAD=build/release/tests/bench/bench-load \
//       ROUNDS=5 SECONDS=10 node tests/bench/trust.mjs
//
// ONLY=tls,sealed leaves out the others. BATCHES=1 takes W1 by batches with 1,024 in flight instead of single starts by
// 256 clients: a batch is one request for 256 sagas, so TLS and JWT cost next to nothing then. The driver is a client
// of TLS, too, on the same processors: its half of that work is in the rate, and in no processor time of sagad. A ratio
// is made within each round, of measurements some seconds apart.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Issuer, makeKey } from '../lib/issuer.mjs'
import { freePort, promise, run } from '../lib/world.mjs'
import { cpuOf, cpuOfFamily } from './gauge.mjs'
import { Rig } from './rig.mjs'
import { spread } from './statistics.mjs'

const rounds = Number(process.env.ROUNDS ?? 5)
const seconds = Number(process.env.SECONDS ?? 10)
const load = process.env.BATCHES
  ? ['--batch', '256', '--in-flight', '1024', '--concurrency', '4']
  : ['--concurrency', '256']
const bars = { tls: 0.8, jwt: 0.9, sealed: 0.85 }

await run(new Rig(), async (rig) => {
  const issuer = new Issuer()
  issuer.keys = [makeKey('k', 'RS256')]
  await issuer.open()
  const at = (name) => join(rig.directory, name)
  const certificate = ['-keyout', at('server.key'), '-out', at('server.pem'), '-subj', '/CN=127.0.0.1', '-nodes']
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  execFileSync('openssl', ['req', '-x509', ...curve, ...certificate, ...names], { stdio: 'ignore' })
  writeFileSync(at('keys.json'), JSON.stringify({ active: 'k', keys: { k: Buffer.alloc(32, 7).toString('base64') } }), {
    mode: 0o600
  })
  const inClaims = { role: 'admin', tenant: 'default', exp: Math.floor(Date.now() / 1000) + 86400 }
  writeFileSync(at('jwt'), issuer.sign(inClaims), { mode: 0o600 })

  // A database that has sealed rows needs its key, so encryption has a database of its own.
  const kinds = {
    none: { args: [], ctl: [] },
    tls: {
      args: ['--tls-cert', at('server.pem'), '--tls-key', at('server.key')],
      scheme: 'https',
      ctl: ['--ca-file', at('server.pem')]
    },
    jwt: {
      args: [
        ...['--oidc-issuer', issuer.url, '--oidc-audience', issuer.audience],
        ...['--oidc-role-claim', 'role', '--oidc-namespace-claim', 'tenant', '--egress-allow', '127.0.0.0/8']
      ],
      ctl: ['--token-file', at('jwt')]
    },
    sealed: { args: ['--payload-keys', at('keys.json')], ctl: [], database: 'sealed' }
  }
  const chosen = process.env.ONLY?.split(',') ?? Object.keys(bars)

  await rig.open([])
  rig.makeRoom(512)
  rig.sql('create database sealed')
  const plainDsn = rig.dsn
  await rig.stopEngine()

  // One measurement on an engine of its own: what it costs to start is no part of it.
  const measure = async (name) => {
    const { args, ctl, scheme = 'http', database } = kinds[name]
    rig.dsn = database ? plainDsn.replace('dbname=postgres', `dbname=${database}`) : plainDsn
    if (database) rig.migrate()
    rig.port = await freePort()
    rig.launchEngine(args)
    const server = ['--server', `${scheme}://127.0.0.1:${rig.port}`, ...ctl]
    await rig.output('ready', rig.sagactlPath, [...server, 'ready', '--wait', '60s'])
    await rig.output('apply', rig.sagactlPath, [...server, 'apply', at('definitions.json')])
    rig.sql('checkpoint')
    const before = { engine: cpuOf(rig.sagad.pid), postgres: cpuOfFamily(rig.postgres.pid) }
    const drive = ['--saga', 'bench_w1', '--seconds', String(seconds), '--steps', '0', '--warmup', '512', ...load]
    const { out, talk } = await rig.output('driver', process.env.SAGAD_LOAD, [...server, ...drive, '-o', 'json'])
    const figures = JSON.parse(out)
    const cost = (now, then) => ((now - then) * 1000) / figures.sagas
    const engine = cost(cpuOf(rig.sagad.pid), before.engine)
    const postgres = cost(cpuOfFamily(rig.postgres.pid), before.postgres)
    await rig.stopEngine()
    if (figures.errors > 0) throw new Error(`${name}: ${talk}`)
    return { rate: figures.sagas_per_second, engine, postgres }
  }

  const { definitions } = await import('./definitions.mjs')
  writeFileSync(at('definitions.json'), JSON.stringify(definitions(rig.servicePort)))
  await promise(
    'measured',
    async () => {
      const found = []
      for (let i = 0; i < rounds; i++) {
        const round = {}
        // The first place in a round moves on: whatever the machine does every so often hits each of them.
        const order = ['none', ...chosen]
        for (let k = 0; k < order.length; k++) {
          const name = order[(k + i) % order.length]
          round[name] = await measure(name)
          const { rate, engine, postgres } = round[name]
          const each = `sagad ${engine.toFixed(3)} ms, PostgreSQL ${postgres.toFixed(3)} ms of processor time each`
          console.log(`# round ${i + 1} ${name}: ${Math.round(rate)} sagas/s; ${each}`)
        }
        found.push(round)
      }
      const told = (values) => {
        const { median, least, most } = spread(values)
        return `${median.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`
      }
      console.log('| W1 | rate against none | must | processor time of sagad | of sagad and PostgreSQL |')
      console.log('| --- | --- | --- | --- | --- |')
      for (const name of chosen) {
        const ratio = (of) => told(found.map((round) => of(round[name]) / of(round.none)))
        const row = [name, ratio((one) => one.rate), bars[name], ratio((one) => one.engine)]
        console.log(`| ${[...row, ratio((one) => one.engine + one.postgres)].join(' | ')} |`)
      }
    },
    7200
  )
  await issuer.close()
})
