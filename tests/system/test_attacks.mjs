// Each attack over HTTP (lib/attacks.mjs) beside honest clients: what it takes of sagad's processor time, memory and
// descriptors stays within its bound, the honest clients go on meanwhile, and afterwards everything was given back.
// Nothing here is timed: a busy machine makes it take longer, and about the same processor time.
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Target, attacks, drip, limits } from '../lib/attacks.mjs'
import { Honest, honestDefinitions } from '../lib/honest.mjs'
import { World, eventually, expect, leaves, promise, run, sleep } from '../lib/world.mjs'

const sanitized = readFileSync(process.env.SAGAD).includes('__asan_init')
// Processor time grows where others use the machine, too: caches are cold, and a virtual machine counts what its host
// takes away. AddressSanitizer keeps freed memory, and says nothing of processor time.
const slack = sanitized ? { ms: Infinity, mib: 4, moreMib: 192 } : { ms: 4, mib: 1, moreMib: 8 }
const settings = [...limits, '--drain', '1s']
const calmSagas = 200
const only = process.env.ONLY?.split(',')

const proc = (pid, name) => readFileSync(`/proc/${pid}/${name}`, 'utf8')
const residentMib = (pid) => Number(/VmRSS:\s+(\d+)/.exec(proc(pid, 'status'))[1]) / 1024
// All of its threads, in milliseconds, to the nanosecond.
const cpuMs = (pid) =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, task) => sum + Number(proc(pid, `task/${task}/schedstat`).split(' ')[0]) / 1e6,
    0
  )
const descriptors = (pid) => readdirSync(`/proc/${pid}/fd`).length

// Looks again and again while `work` runs, and keeps the most of each.
async function watched(pid, work) {
  const most = { mib: 0, descriptors: 0 }
  let over = false
  const look = () => {
    most.mib = Math.max(most.mib, residentMib(pid))
    most.descriptors = Math.max(most.descriptors, descriptors(pid))
  }
  const looking = (async () => {
    for (; !over; await sleep(10)) look()
  })()
  try {
    await work()
    look()
  } finally {
    over = true
    await looking
  }
  return most
}

const startOf = async (honest, body) => {
  const answer = await honest.post('/v1/sagas?wait=30s', JSON.stringify(body))
  expect(answer.status === 201, 'a saga to look at', answer)
  return JSON.parse(answer.text).id
}

async function all(world, tls) {
  const { pid } = world.sagad
  const honest = new Honest(world.port, { tls })
  expect((await honest.post('/v1/definitions', JSON.stringify(honestDefinitions))).status === 200, 'definitions')
  const things = {
    saga: await startOf(honest, { saga: 'says', input: { words: 'x'.repeat(200000) } }),
    busySaga: await honest
      .post('/v1/sagas', JSON.stringify({ saga: 'holds', input: {} }))
      .then(({ text }) => JSON.parse(text).id)
  }
  honest.begin(tls ? 'tls' : 'plain')
  await honest.goOn(calmSagas) // caches are full and memory is as it stays
  for (const attack of attacks.filter((one) => Boolean(one.tls) === tls)) {
    if (only && !only.includes(attack.name)) continue
    await promise(`${attack.name}: ${attack.how}`, async () => {
      const { units, bound } = attack
      const target = new Target(world.port, things)
      const calm = { cpu: cpuMs(pid), done: honest.done }
      await honest.goOn(calmSagas)
      const rest = { cpu: cpuMs(pid), done: honest.done, mib: residentMib(pid), descriptors: descriptors(pid) }
      const sagaMs = (rest.cpu - calm.cpu) / (rest.done - calm.done)
      const most = await watched(pid, async () => {
        await attack.make(target)
        const dripping = setInterval(() => drip(target, attack.drips), 100)
        // What stands must not keep sagad busy meanwhile.
        await honest.goOn(target.open.some(({ socket }) => !socket.destroyed) ? 300 : 20)
        clearInterval(dripping)
      })
      const done = honest.done - rest.done
      const spent = cpuMs(pid) - rest.cpu - done * sagaMs * 2 // an honest saga may cost twice what it does without
      const found = {
        ms: spent / (units + target.dripped),
        mib: most.mib - rest.mib,
        descriptors: most.descriptors - rest.descriptors
      }
      const told = `${found.ms.toFixed(2)} ms each, ${found.mib.toFixed(0)} MiB, ${found.descriptors} descriptors`
      console.log(`# ${attack.name}, ${units}: ${told}; ${done} honest sagas, ${sagaMs.toFixed(2)} ms each without it`)
      target.leave()
      expect(found.ms <= bound.ms * slack.ms, `processor time, at most ${bound.ms * slack.ms} ms each`, told)
      const mib = bound.mib * slack.mib + slack.moreMib
      expect(found.mib <= mib, `memory, at most ${mib} MiB`, told)
      expect(found.descriptors <= bound.descriptors, `descriptors, at most ${bound.descriptors}`, told)
      await eventually('descriptors are given back', () => descriptors(pid) <= rest.descriptors + 8, {
        shown: () => descriptors(pid)
      })
      await honest.goOn(5)
    })
  }
  await honest.end()
}

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startSagad(settings)
  await all(world, false)

  await promise('what drips for ever is closed', () =>
    Promise.all(
      attacks
        .filter(({ drips }) => drips !== undefined)
        .map(async ({ name, make, drips }, i) => {
          const target = new Target(world.port, { address: 2 + i })
          await make(target)
          await eventually(`${name}: closed`, () => drip(target, drips) === 0, { seconds: 240 })
          target.leave()
        })
    )
  )

  world.sagad.kill('SIGTERM')
  await world.sagad.ended
  const at = (name) => join(world.directory, name)
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const files = ['-keyout', at('server.key'), '-out', at('server.pem'), '-subj', '/CN=localhost']
  execFileSync('openssl', ['req', '-x509', ...curve, ...files], { stdio: 'ignore' })
  world.launchSagad([...settings, '--tls-cert', at('server.pem'), '--tls-key', at('server.key')])
  const probe = new Honest(world.port, { tls: true })
  await eventually('sagad is ready over TLS', async () => {
    const answer = await probe.post('/v1/definitions', JSON.stringify(honestDefinitions)).catch(() => undefined)
    return answer?.status === 200
  })
  await all(world, true)
  await leaves(world)
})
