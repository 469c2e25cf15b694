// How long honest clients wait beside each attack over HTTP (lib/attacks.mjs), against how long they wait without it,
// in interleaved rounds. Not part of a run of the benchmark; asked for by hand, on a machine that does nothing else:
//
//     SAGAD=build/release/sagad SAGACTL=build/release/tools/sagactl/sagactl \
//       SAGAD_SHOP=build/release/tests/bench/bench-service ROUNDS=5 SAGAS=1000 node tests/bench/attacks.mjs
//
// Four honest clients start a saga each, wait for its end, pause for 5 ms and start the next, until SAGAS have ended.
// Then they do so again while the attack is made over and over. It is made by a process of its own that yields the
// processor to everything else (nice 19): a real one works on another machine. ONLY='slow heads,pipelining' leaves out
// the others. The 99th percentile beside an attack may be twice that without.
import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Target, attacks, drip, limits } from '../lib/attacks.mjs'
import { Honest, honestDefinitions } from '../lib/honest.mjs'
import { eventually, freePort, promise, run } from '../lib/world.mjs'
import { Rig } from './rig.mjs'
import { spread } from './statistics.mjs'

const rounds = Number(process.env.ROUNDS ?? 5)
const sagas = Number(process.env.SAGAS ?? 1000)
const only = process.env.ONLY?.split(',')
const bar = 2

// The other process: makes one attack over and over until it is told to stop. Says a line for each time.
async function attackForEver({ name, port, things }) {
  const attack = attacks.find((one) => one.name === name)
  for (;;) {
    const target = new Target(port, things)
    const dripping = setInterval(() => drip(target, attack.drips), 100)
    await attack.make(target).catch((error) => console.log(`fault ${error.message}`)) // sagad may be too busy for it
    console.log('made')
    clearInterval(dripping)
    target.leave()
  }
}

const percentile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)]

// The 99th percentile of the next sagas, in milliseconds.
async function p99(honest) {
  honest.waits.length = 0
  await honest.goOn(sagas)
  return percentile(honest.waits, 0.99)
}

async function beside(name, port, things, measure) {
  const what = JSON.stringify({ name, port, things })
  const child = spawn('nice', ['-n', '19', process.execPath, fileURLToPath(import.meta.url), what], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  let made = 0
  child.stdout.setEncoding('utf8').on('data', (text) => (made += text.split('\n').length - 1))
  try {
    await eventually('the attack has begun', () => made > 0, { seconds: 120 })
    return { wait: await measure(), made }
  } finally {
    child.kill('SIGKILL')
    await new Promise((resolve) => child.on('exit', resolve))
  }
}

async function measureAll(rig, tls, found) {
  const honest = new Honest(rig.port, { tls, pauseMs: 5 })
  await eventually('sagad is ready', async () => {
    const answer = await honest.post('/v1/definitions', JSON.stringify(honestDefinitions)).catch(() => undefined)
    return answer?.status === 200
  })
  const start = async (path, body) => JSON.parse((await honest.post(path, JSON.stringify(body))).text).id
  const things = {
    saga: await start('/v1/sagas?wait=30s', { saga: 'says', input: { words: 'x'.repeat(200000) } }),
    busySaga: await start('/v1/sagas', { saga: 'holds', input: {} })
  }
  honest.begin(`${tls}-${Date.now()}`)
  await honest.goOn(sagas)
  for (const { name } of attacks.filter((one) => Boolean(one.tls) === tls && (!only || only.includes(one.name)))) {
    const calm = await p99(honest)
    const { wait, made } = await beside(name, rig.port, things, () => p99(honest))
    console.log(`# ${name}: ${wait.toFixed(1)} ms beside ${made} times of it, ${calm.toFixed(1)} ms without`)
    ;(found[name] ??= []).push({ wait, calm })
  }
  await honest.end()
}

async function measured(rig) {
  const at = (name) => join(rig.directory, name)
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const files = ['-keyout', at('server.key'), '-out', at('server.pem'), '-subj', '/CN=localhost']
  execFileSync('openssl', ['req', '-x509', ...curve, ...files], { stdio: 'ignore' })
  const found = {}
  await rig.open([])
  for (let i = 0; i < rounds; i++)
    for (const tls of [false, true]) {
      await rig.stopEngine()
      rig.port = await freePort()
      rig.launchEngine([...limits, ...(tls ? ['--tls-cert', at('server.pem'), '--tls-key', at('server.key')] : [])])
      await measureAll(rig, tls, found)
    }
  const told = (values, digits) => {
    const { median, least, most } = spread(values)
    return `${median.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`
  }
  console.log('| attack | 99th percentile beside it, ms | without | times; at most 2 | |')
  console.log('| --- | --- | --- | --- | --- |')
  for (const [name, all] of Object.entries(found)) {
    const times = all.map(({ wait, calm }) => wait / calm)
    const columns = [all.map(({ wait }) => wait), all.map(({ calm }) => calm)].map((values) => told(values, 1))
    const verdict = spread(times).median <= bar ? 'met' : 'MISSED'
    console.log(`| ${[name, ...columns, told(times, 2), verdict].join(' | ')} |`)
  }
}

if (process.argv[2]) await attackForEver(JSON.parse(process.argv[2]))
else
  await run(new Rig(), async (rig) => {
    await promise('measured', () => measured(rig), 7200)
  })
