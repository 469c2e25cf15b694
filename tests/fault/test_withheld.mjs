// A call may wait for its connection as long as its timeout. When its turn comes, another engine may have the shard,
// and may have made the call meanwhile. Then the call does not leave any more. This also holds for an engine that was
// stopped while its calls waited.
import { createServer } from 'node:http'
import { randomFrom } from '../lib/load.mjs'
import { eventually, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'
import { ask } from './campaign/http.mjs'
import { CampaignWorld } from './campaign/world.mjs'

const perHost = 64 // the connections of an engine to one receiver
const more = 16

// Holds the first requests until it is told to let them go, and answers all others at once.
class Receiver {
  constructor() {
    this.requests = []
    this.held = []
    this.holding = 0
  }

  async listen() {
    this.port = await freePort()
    this.server = createServer((request, response) => {
      this.requests.push(request.url)
      const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      if (this.held.length < this.holding) this.held.push(answer)
      else answer()
    })
    await new Promise((resolve) => this.server.listen(this.port, '127.0.0.1', resolve))
  }

  hold(count) {
    Object.assign(this, { requests: [], held: [], holding: count })
  }

  letGo() {
    this.holding = 0
    for (const answer of this.held) answer()
  }
}

const world = new CampaignWorld(randomFrom(1), { engineCount: 2 })
const receiver = new Receiver()

const count = async (text) => Number(await world.query(`select count(*) from ${text}`))

await run(world, async () => {
  await world.startAll()
  await receiver.listen()
  const [first, second] = world.engines
  await world.defineAt(first, {
    tools: [
      {
        name: 'put',
        effect: 'idempotent',
        terminal: true,
        timeout: '60s',
        retry: { initial: '50ms' },
        http: { method: 'PUT', url: `http://127.0.0.1:${receiver.port}/\${ .args.name }`, body: '${ .args }' }
      }
    ],
    sagas: [{ name: 'put', steps: [{ id: 'put', call: 'put', with: { name: '${ .input.name }' } }] }]
  })

  for (const [how, away, back] of [
    ['without its database', () => first.proxies[0].freeze(), () => first.proxies[0].thaw()],
    ['stopped', () => world.stopEngine(first), () => world.continueEngine(first)]
  ]) {
    await promise(
      `an engine is ${how} until another one has its shards: none of the calls that wait in it for a connection leaves`,
      async () => {
        if (!second.down) await world.killEngine(second)
        await eventually(
          'the first engine has all shards',
          async () =>
            (await count('sagad.shard where owner is not null')) === 64 &&
            (await ask(first.host, first.port, 'GET', '/readyz'))?.status === 200
        )
        receiver.hold(perHost)
        const word = how.split(' ')[0]
        for (let i = 0; i < perHost + more; i++) {
          let answer
          for (let tries = 0; tries < 100 && answer?.status !== 201 && answer?.status !== 200; tries++) {
            answer = await ask(first.host, first.port, 'POST', '/v1/sagas', {
              saga: 'put',
              id: `${word}-${i}`,
              input: { name: `${word}-${i}` }
            })
          }
          expect([200, 201].includes(answer?.status), 'a start is taken', answer?.text)
        }
        await eventually(
          'all calls are begun, and as many as there are connections have come',
          async () =>
            receiver.held.length === perHost &&
            (await count(`sagad.log where convert_from(payload, 'UTF8') like '%step.intent%${word}-%'`)) ===
              perHost + more
        )
        await sleep(200)
        expectEqual(receiver.requests.length, perHost, 'requests')
        await away()
        world.launchEngine(second)
        await eventually(
          'the other engine has brought all to its end',
          async () => (await count('sagad.saga where ended_at is null')) === 0
        )
        expectEqual(receiver.requests.length, 2 * perHost + more, 'requests')
        receiver.letGo()
        await sleep(300)
        await back()
        await sleep(1500)
        expectEqual(
          receiver.requests.length,
          2 * perHost + more,
          'requests, when the first engine has had its connections back'
        )
      },
      180
    )
  }
})
