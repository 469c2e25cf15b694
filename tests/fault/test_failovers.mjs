// Failovers of each kind, one after the other, with starts under way: thirty of each in the long form, one in the short
// form. Everything acknowledged stays, except what an asynchronous standby never got. A call of a tool that may be
// called once never leaves twice.
import { createServer } from 'node:http'
import { Pair } from '../lib/pair.mjs'
import { expect, expectEqual, freePort, promise, quick, run, sleep } from '../lib/world.mjs'

const rounds = quick ? 1 : 30
const patience = 120
const world = new Pair()
const calls = new Map() // name of the saga -> requests
const receiver = createServer((request, response) => {
  const name = request.url.slice(1)
  calls.set(name, (calls.get(name) ?? 0) + 1)
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"id": 1}')
})

const acknowledged = new Map() // name -> saga id
let number = 0

// Repeats a start until it is acknowledged.
async function begin(name = `saga-${number++}`) {
  for (const end = Date.now() + patience * 1000; ; await sleep(50)) {
    const answer = await world
      .api('POST', '/v1/sagas', { saga: 'once', id: name, input: { name } }, { seconds: 15 })
      .catch(() => undefined)
    if (answer && answer.status < 300) return acknowledged.set(name, answer.json.id) && name
    expect(!answer || answer.status === 503, `the start of ${name}`, answer?.text)
    expect(Date.now() < end, `the start of ${name} is acknowledged`, answer?.text)
  }
}

// Three clients start sagas while something happens, and one more saga each when it has happened.
async function meanwhile(happens) {
  let over = false
  const clients = Array.from({ length: 3 }, async () => {
    for (; !over; await sleep(20)) await begin()
    await begin()
  })
  const all = Promise.all(clients)
  all.catch(() => {}) // looked at below
  try {
    await sleep(300)
    await happens()
  } finally {
    over = true
  }
  await all
}

async function judge(kind, forgotten = new Set()) {
  const kept = [...acknowledged].filter(([name]) => !forgotten.has(name))
  for (const [name, id] of kept) {
    const saga = await world.until(id, ['completed', 'escalated'])
    expectEqual(saga.business_id, name, `the saga of ${name}`)
    if (saga.status === 'completed') expectEqual(calls.get(name), 1, `${kind}: calls of ${name}, which has completed`)
  }
  for (const [name, count] of calls) expect(count === 1, `${kind}: ${name} was called ${count} times`)
  expectEqual(
    world.sql('select count(*) from (select business_id from sagad.saga group by 1 having count(*) > 1) twice'),
    '0',
    'starts that made two sagas'
  )
  acknowledged.clear()
  calls.clear()
  return kept.length
}

// Makes the other server the primary, which the old one follows.
async function swap(synchronous) {
  await world.follow(world.servers[0], synchronous)
  world.servers.reverse()
}

const kinds = {
  'a primary that ends, its synchronous standby is promoted': async () => {
    const [first, second] = world.servers
    await meanwhile(async () => {
      await world.kill(first)
      world.promote(second)
    })
    const count = await judge('synchronous')
    await swap(true)
    return count
  },
  'a primary that hangs, its synchronous standby is promoted': async () => {
    const [first, second] = world.servers
    await meanwhile(async () => {
      world.hang(first)
      world.promote(second)
    })
    const count = await judge('hung')
    world.goOn(first)
    await world.kill(first)
    await swap(true)
    return count
  },
  'a primary that nobody stops, its synchronous standby is promoted': async () => {
    const [first, second] = world.servers
    await meanwhile(async () => world.promote(second))
    const count = await judge('not fenced')
    await world.kill(first)
    await swap(true)
    return count
  },
  'a primary that ends, its standby was behind and is promoted': async () => {
    const [first, second] = world.servers
    world.set(first, 'synchronous_standby_names', '')
    await Promise.all([begin(), begin(), begin()])
    for (const id of acknowledged.values()) await world.until(id, ['completed', 'escalated'])
    await world.catchUp(second)
    await world.cut(second)
    const forgotten = new Set(await Promise.all([begin(), begin(), begin()]))
    await world.kill(first)
    world.promote(second)
    await world.within(patience, 'the engine finds what is missing', async () =>
      (await world.readyz()).json?.reason?.includes('another history')
    )
    await world.within(
      patience,
      'it is written down',
      () => world.sql('select count(*) from sagad.history_loss where accepted_at is null') === '1'
    )
    const done = world.sagadOnce(['accept-history', '--database', world.dsn, '--note', 'the old primary is gone'])
    expectEqual(done.status, 0, done.stderr)
    await world.ready()
    await begin()
    const count = await judge('behind', forgotten)
    await swap(true)
    return count
  }
}

await run(world, async () => {
  const port = await freePort()
  await new Promise((resolve) => receiver.listen(port, '127.0.0.1', resolve))
  await world.startPair({ synchronous: true })
  await world.startSagad()
  await world.define({
    tools: [
      {
        name: 'once',
        effect: 'once',
        terminal: true,
        timeout: '5s',
        http: { method: 'POST', url: `http://127.0.0.1:${port}/\${ .args.name }`, body: '${ .args }' }
      }
    ],
    sagas: [{ name: 'once', steps: [{ id: 'call', call: 'once', with: { name: '${ .input.name }' } }] }]
  })
  await promise(
    'the judge finds a start that is lost, and a call that was made twice',
    async () => {
      const name = await begin()
      await world.until(acknowledged.get(name), ['completed'])
      const accuses = async (what) => {
        const found = await judge('planted').then(
          () => undefined,
          (error) => error.message
        )
        expect(found?.includes(what), `the judge says: ${what}`, found)
      }
      calls.set(name, 2)
      await accuses(`calls of ${name}`)
      calls.set(name, 1)
      calls.set('nobody', 2)
      await accuses('nobody was called 2 times')
      calls.delete('nobody')
      acknowledged.set('lost', crypto.randomUUID())
      await accuses('404')
      acknowledged.delete('lost')
      acknowledged.set('another', acknowledged.get(name))
      await accuses('the saga of another')
      acknowledged.delete('another')
      expectEqual(await judge('planted'), 1, 'what is left is right')
    },
    120
  )
  for (const [kind, fails] of Object.entries(kinds)) {
    await promise(
      `${rounds} times: ${kind}`,
      async () => {
        let count = 0
        for (let round = 0; round < rounds; round++) count += await fails()
        console.log(`# ${count} sagas`)
      },
      120 * rounds
    )
  }
  receiver.close()
})
