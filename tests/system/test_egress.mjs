// Calls that the settings deny become cases: calls over HTTP and to a database, undos, probes, prechecks, calls of
// agents. Nothing is sent and nothing fails. After a restart with --egress-allow all of them go on.
import { createServer } from 'node:http'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

// The receiver listens on all addresses: 127.0.0.2 is allowed from the beginning, 127.0.0.1 is not.
const seen = []
const receiver = createServer((request, response) => {
  const path = request.url.slice(1)
  seen.push({ path, key: request.headers['idempotency-key'] })
  request.resume()
  const isKnown = path === 'asked' && seen.some((one) => one.path === 'doubtful')
  const status = path === 'fails' ? 422 : path === 'doubtful' ? 500 : path === 'asked' && !isKnown ? 404 : 200
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ id: path }))
})
const count = (path) => seen.filter((one) => one.path === path).length

function definitions(port, directory) {
  const at = (address, path) => ({ http: { method: 'POST', url: `http://${address}:${port}/${path}`, body: {} } })
  const free = (path) => at('127.0.0.2', path)
  const denied = (path) => at('127.0.0.1', path)
  const asked = { http: { method: 'GET', url: `http://127.0.0.1:${port}/asked` } }
  const probe = {
    ...asked,
    outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
    visibility: '0s',
    give_up_after: '1s'
  }
  const database = `host=${directory} port=5432 user=postgres dbname=postgres`
  const once = (name, adapter, more) => ({ name, ...adapter, effect: 'once', compensate: { tool: 'undo' }, ...more })
  const saga = (name, ...calls) => ({ name, steps: calls.map((call) => ({ id: call, call })) })
  return {
    tools: [
      { name: 'undo', ...denied('undo'), effect: 'idempotent' },
      once('pays', denied('pays')),
      once('books', { sql: { database, statement: 'insert into book values (1) returning id' } }),
      once('before', free('before')),
      once('fails', free('fails')),
      once('doubtful', free('doubtful'), { effect: 'checked', probe }),
      once('looks', free('looks'), { precheck: { ...asked, done: '${ .response.status == 200 }' } })
    ],
    sagas: [
      saga('pays', 'pays'),
      saga('books', 'books'),
      saga('undoes', 'before', 'fails'),
      saga('asks', 'doubtful'),
      saga('looks', 'looks')
    ]
  }
}

const deny = ['--egress-deny', '127.0.0.1']
const held = ['pays', 'books', 'undoes', 'asks', 'looks']
const ends = { pays: 'completed', books: 'completed', undoes: 'compensated', asks: 'completed', looks: 'completed' }

await run(new World(), async (world) => {
  await new Promise((resolve) => receiver.listen(0, '0.0.0.0', resolve))
  await world.startPostgres()
  world.sql('create table book (id int)')
  await world.startSagad(deny)
  await world.define(definitions(receiver.address().port, world.directory))
  const ids = {}
  const cases = {}
  const decide = async (id, action) => {
    const { n, round } = await world.escalationOf(id)
    return world.api('POST', `/v1/escalations/${n}/resolve`, { action, round, note: 'the network is ours' })
  }

  await promise('a denied call is not sent, does not fail, and waits for a person', async () => {
    for (const name of held) ids[name] = await world.start(name, {})
    for (const name of held) {
      const saga = await world.until(ids[name])
      cases[name] = await world.escalationOf(ids[name])
      expectEqual([saga.status, cases[name].reason], ['escalated', 'egress-denied'], name)
      expect(cases[name].evidence.detail?.includes('--egress-allow'), `${name} says what to do`, cases[name].evidence)
      expectEqual(
        saga.steps.filter((step) => step.status === 'failed').map((step) => step.id),
        name === 'undoes' ? ['fails'] : [],
        `failed steps of ${name}`
      )
    }
    expectEqual(
      ['pays', 'undo', 'asked', 'looks'].map((path) => [path, count(path)]),
      [
        ['pays', 0],
        ['undo', 0],
        ['asked', 0],
        ['looks', 0]
      ],
      'requests'
    )
    expectEqual(world.sql('select count(*) from book'), '0', 'rows')
  })

  await promise('an agent is told that a person has to act, and its call is kept', async () => {
    const body = { run: 'r', step: 's', tool: 'pays', args: {} }
    const call = (wait) => world.calm(() => world.api('POST', `/v1/operations?wait=${wait}`, body))
    let answer = await call('0s')
    for (const end = Date.now() + 60000; !answer.json.type?.endsWith(':awaiting-operator'); await sleep(50)) {
      if (Date.now() > end) throw new Error(`it is not said: ${answer.text}`)
      answer = await call('0s')
    }
    expectEqual([answer.status, count('pays')], [409, 0], 'the answer')
    ids.run = answer.json.operation.saga
  })

  await promise('tried again it is the same case', async () => {
    const attempts = async () => (await world.saga(ids.pays)).steps[0].unsent
    const before = await attempts()
    for (const end = Date.now() + 120000; (await attempts()) <= before; await sleep(50))
      if (Date.now() > end) throw new Error('it is not tried again')
    expectEqual((await world.escalationOf(ids.pays)).n, cases.pays.n, 'the number of the case')
  })

  await promise('a person may have it tried now: while it is denied, that is another round', async () => {
    const shown = world.sagactl(['preview', '--escalation', String(cases.looks.n)])
    expectEqual(
      [shown.status, shown.stdout.includes('retry')],
      [0, true],
      `the preview: ${shown.stdout}${shown.stderr}`
    )
    expectEqual((await decide(ids.looks, 'retry')).status, 200, 'the verb')
    for (const end = Date.now() + 60000; ; await sleep(50)) {
      const now = await world.escalationOf(ids.looks).catch(() => null)
      if (now?.n === cases.looks.n && now.round === 2 && now.reason === 'egress-denied') break
      if (Date.now() > end) throw new Error(`it is not asked anew: ${JSON.stringify(now)}`)
    }
  })

  await promise('all denied calls go on, once each, after a restart that allows the network', async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    await world.startSagad([...deny, '--egress-allow', '127.0.0.1'])
    for (const name of [...held.slice(1), 'run']) {
      // Its turn may have come by itself.
      const answer = await decide(ids[name], name === 'asks' ? 'probe' : 'retry').catch(() => null)
      expect(!answer || [200, 409].includes(answer.status), `the verb for ${name}`, answer?.text)
    }
    for (const name of held) {
      const saga = await world.until(ids[name], [ends[name]], 180)
      expectEqual(saga.status, ends[name], name)
    }
    const log = (await world.read(`/v1/sagas/${ids.pays}/log`)).json.items
    const closed = log.filter((entry) => entry.type === 'escalation.resolved')
    expectEqual(
      closed.map((entry) => [entry.actor, entry.data.action, entry.data.escalation]),
      [['sagad', 'evidence', cases.pays.n]],
      'how the case of the first was closed'
    )
    expectEqual((await world.until(ids.pays)).steps[0].attempts, 1, 'calls of which a byte left')
    expectEqual(world.sql('select count(*) from book'), '1', 'rows')
    const body = { run: 'r', step: 's', tool: 'pays', args: {} }
    for (const end = Date.now() + 180000; ; await sleep(50)) {
      const answer = await world.calm(() => world.api('POST', '/v1/operations?wait=5s', body))
      if (answer.status === 200) break
      if (Date.now() > end) throw new Error(`the agent's call does not go on: ${answer.text}`)
    }
    expectEqual(['pays', 'undo', 'doubtful', 'looks'].map(count), [2, 1, 1, 0], 'requests')
  })

  await promise('every log folds', async () => {
    const replay = world.replayAll()
    expectEqual(replay.status, 0, `${replay.stdout}${replay.stderr}`)
  })
  receiver.close()
})
