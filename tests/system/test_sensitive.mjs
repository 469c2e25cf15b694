// Sensitive members: a canary stands at each place that definitions call sensitive, in sagas that complete, are undone,
// end in doubt and ask a person, and in calls of an agent. Every GET of openapi.json is asked as each role, and so are
// verbs, events, receivers of notifications, MCP, exports and the log of the program: nobody but an admin finds it. The
// payloads are sealed in PostgreSQL: a dump does not have the canary either.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, root, run, sleep } from '../lib/world.mjs'

const card = '4111-canary-card-1111'
const pin = 'q9' // too short to be looked for anywhere but at its place
const token = 'tok-canary-token-2222'
const payloadKey = (byte) => Buffer.alloc(32, byte).toString('base64')
const roles = ['reader', 'agent', 'operator', 'admin']

const dumped = { encoding: 'latin1', maxBuffer: 1 << 28 }

// Answers like services that repeat what they were told.
const told = []
const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const path = request.url.slice(1)
  const text = Buffer.concat(chunks).toString()
  told.push({ path, text })
  const answer = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
  if (path === 'charge') answer(200, { id: 'charge-1', token })
  else if (path === 'decline') answer(422, { error: `the card ${card} was declined`, token })
  else if (path === 'vague') answer(500, { error: `the card ${card} was lost`, token })
  else answer(200, {})
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${server.address().port}`

const tool = (name, more = {}) => ({
  name,
  effect: 'keyed',
  key: { window: '24h' },
  http: { method: 'POST', url: `${base}/${name}`, body: '${ .args }' },
  retry: { max_attempts: 1 },
  sensitive: ['/card', '/pin', '/result/token'],
  ...more
})
const refuses = { no_effect: '${ .response.status == 422 }', completed: '${ .response.status == 200 }' }
const refused = { outcome: refuses, error: '${ "declined: " + .response.body.error }' }
const given = { card: '${ .input.card }', pin: '${ .input.pin }' }
const charged = { id: 'charge', call: 'charge', with: given }
const saga = (name, steps, more = {}) => ({ name, sensitive: ['/card', '/pin', '/result/token'], steps, ...more })
const document = {
  tools: [
    tool('charge', {
      result: { id: '${ .response.body.id }', token: '${ .response.body.token }' },
      compensate: { tool: 'refund', with: { token: '${ .result.token }' } },
      input: { type: 'object', properties: { card: { type: 'string' }, pin: { type: 'string' } } },
      expose: {}
    }),
    tool('refund', { effect: 'idempotent', key: undefined, sensitive: ['/token'] }),
    tool('decline', { terminal: true, ...refused }),
    tool('vague', { effect: 'once', key: undefined, terminal: true, ...refused })
  ],
  sagas: [
    saga('pay', [charged], {
      input: { type: 'object', required: ['card'], properties: { card: { type: 'string', maxLength: 60 }, pin: {} } },
      output: { token: '${ .steps.charge.result.token }', note: '${ "paid with " + .input.card }' }
    }),
    saga('undone', [charged, { id: 'decline', call: 'decline', with: given }]),
    saga('doubt', [charged, { id: 'vague', call: 'vague', with: given }]),
    saga('asks', [{ id: 'ok', approve: { show: { of: '${ .input.card }', pin: '${ .input.pin }' }, timeout: '1h' } }]),
    saga('sum', [{ id: 'a', call: 'charge', with: { card: '${ (.input.card | tonumber) + 1 }' } }]),
    saga('each', [
      { id: 'all', for_each: '${ [.input.card, .input.card] }', call: 'charge', with: { card: '${ .item }' } }
    ]),
    saga('parent', [{ id: 'child', saga: 'pay', with: given }]),
    saga('waits', [{ id: 'go', signal: { name: 'go', timeout: '1h' } }]),
    saga('naps', [{ id: 'nap', sleep: '5s' }]),
    saga('leads', [charged], { then: [{ saga: 'pay', input: { card: [['${ .input.card }']] } }] })
  ]
}
const input = { card, pin }
const shown = { of: card, pin } // to an approver

await run(new World(), async (world) => {
  await world.startPostgres()
  const file = (name, content) => {
    const path = join(world.directory, name)
    writeFileSync(path, JSON.stringify(content), { mode: 0o600 })
    return path
  }
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  const tokens = roles.map((role) => ({ name: role, role, namespace: 'default', sha256: sha256(`secret-of-${role}`) }))
  const notify = [
    { name: 'hook', url: `${base}/hook`, secrets: ['hook'] },
    { name: 'deaf', url: 'http://127.0.0.1:1/deaf', secrets: ['hook'] }
  ]
  await world.startEngines(2, [
    ...['--tokens', file('tokens.json', { tokens }), '--notify', file('notify.json', { notify })],
    ...['--secrets', file('secrets.json', { hook: `whsec_${Buffer.alloc(32, 7).toString('base64')}` })],
    ...['--payload-keys', file('payload-keys.json', { active: 'k1', keys: { k1: payloadKey(1) } })]
  ])

  let asked = 0
  const as = (role, method, path, body, headers = {}) =>
    world.calm(() => {
      world.port = world.engines[asked++ % 2].port
      return world.api(method, path, body, { headers: { authorization: `Bearer secret-of-${role}`, ...headers } })
    })
  const does = async (role, method, path, body, wanted = [200, 201], headers = {}) => {
    const answer = await as(role, method, path, body, headers)
    expect(wanted.includes(answer.status), `${role}: ${method} ${path} is ${answer.status}`, answer.text)
    return answer
  }
  // What of the canaries stands in this text.
  const found = (text) => {
    const names = [card, token, 'canary'].filter((one) => text.includes(one))
    return /"pin":\s*"q9"/.test(text) ? [...names, 'pin'] : names
  }
  const clean = (text, what) => expectEqual(found(text), [], `${what}: ${text.slice(0, 2000)}`)
  const start = async (name, id) => {
    const { text } = await does('agent', 'POST', '/v1/sagas?wait=1s', { saga: name, id, input })
    clean(text, `the answer to the start of ${name}`)
    return JSON.parse(text).id
  }
  const settles = async (id, states) => {
    for (;;) {
      const { json } = await does('admin', 'GET', `/v1/sagas/${id}`)
      if (states.includes(json.status)) return json
      expect(!json.ended_at, `${json.saga} is ${json.status}, not ${states}`, json)
      await sleep(50)
    }
  }

  await does('admin', 'POST', '/v1/definitions', document)
  for (const { port } of world.engines)
    for (let status = 0; status !== 200; await sleep(20)) {
      world.port = port
      const headers = { authorization: 'Bearer secret-of-admin' }
      status = (await world.api('GET', '/v1/definitions/leads', undefined, { headers })).status
    }

  const ids = {}
  const cases = []
  await promise('sagas with canaries end in each way, and the answers to those who start them are masked', async () => {
    for (const { name } of document.sagas) {
      ids[name] = await start(name, `${name}-1`)
    }
    expectEqual((await settles(ids.pay, ['completed'])).output.token, token, 'the output, for an admin')
    await settles(ids.undone, ['compensated'])
    await settles(ids.doubt, ['escalated'])
    await settles(ids.sum, ['compensated', 'escalated'])
    await settles(ids.each, ['completed'])
    await settles(ids.parent, ['completed'])
    await settles(ids.leads, ['completed'])
    for (;;) {
      const { items } = (await does('admin', 'GET', '/v1/escalations?status=open')).json
      if (items.some(({ reason }) => reason === 'follower')) {
        cases.push(...items)
        break
      }
      await sleep(50)
    }
  })

  const run1 = { run: 'run-1', tool: 'charge', args: input }
  await promise("an agent's own call, and its replay, are whole; other answers about it are not", async () => {
    for (let i = 0; i < 2; i++) {
      const { json } = await does('agent', 'POST', '/v1/operations?wait=10s', run1)
      expectEqual([json.result.token, json.args.card], [token, card], 'the call of the agent')
      ids.operation = json.key
    }
    const open = await does('agent', 'POST', '/v1/sagas', { open: true, id: 'open-1' })
    ids.open = open.json.id
    const call = { tool: 'charge', args: input }
    const { json } = await does('agent', 'POST', `/v1/sagas/${ids.open}/calls?wait=10s`, call)
    expectEqual(json.result.token, token, 'the call in an open saga')
    clean((await does('agent', 'GET', `/v1/operations/${json.key}`)).text, 'the operation, read later')
    const declined = { run: 'run-2', tool: 'decline', args: input }
    const refusal = await does('agent', 'POST', '/v1/operations?wait=10s', declined, [424])
    expectEqual(refusal.json.operation.args.card, card, 'what the agent itself has sent')
  })

  await promise('over MCP the caller has its result, and nobody else', async () => {
    const mcp = async (role, name, args, meta) => {
      const body = {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name, arguments: args, _meta: { 'sagad/run': meta } }
      }
      return (await does(role, 'POST', '/mcp', body)).text
    }
    expect((await mcp('agent', 'charge', input, 'mcp-1')).includes(token), 'the result of the call')
    expect((await mcp('agent', 'charge', input, 'mcp-1')).includes(token), 'the same call again')
    const told = await mcp('agent', 'operation_status', { operation: ids.operation }, 'mcp-2')
    expect(told.includes('***'), 'an operation that is shown over MCP', told)
    clean(told, 'an operation that is shown over MCP')
  })

  await promise('what people do with them is masked, too', async () => {
    const note = { note: 'by the test' }
    const approval = (await does('operator', 'GET', '/v1/approvals')).json.items[0]
    ids.approval = approval.n
    const plain = sha256(JSON.stringify(shown))
    expect(/^[0-9a-f]{64}$/.test(approval.hash) && approval.hash !== plain, 'the hash is keyed', approval)
    const yes = { decision: 'approve', hash: approval.hash, ...note }
    clean((await does('operator', 'POST', `/v1/approvals/${approval.n}`, yes)).text, 'the approval')
    const doubt = cases.find(({ saga }) => saga === ids.doubt)
    clean((await does('operator', 'POST', `/v1/escalations/${doubt.n}/comment`, note)).text, 'a comment')
    const job = { action: 'resolve', as: 'happened', result: { token }, filter: { saga: 'doubt' }, preview: true }
    const frozen = await does('operator', 'POST', '/v1/bulk', { ...job, ...note })
    ids.bulk = frozen.json.bulk
    clean(frozen.text, 'a bulk job')
    const end = { action: 'abandon', ...note }
    clean((await does('operator', 'POST', `/v1/escalations/${doubt.n}/resolve`, end)).text, 'the verdict')
    clean((await does('operator', 'POST', `/v1/sagas/${ids.waits}/pause`, note)).text, 'a saga that is paused')
    const daily = { name: 'daily', saga: 'pay', cron: '0 3 * * *', input }
    clean((await does('operator', 'POST', '/v1/schedules', daily)).text, 'a schedule')
    const hold = await does('operator', 'POST', '/v1/holds', { saga: 'waits', ...note })
    ids.hold = hold.json.n
  })

  await promise(
    'whichever engine answers a verb, an admin sees what it is about, and an operator does not',
    async () => {
      const note = { note: 'by the test' }
      for (const { port } of world.engines)
        for (const role of ['operator', 'admin'])
          for (const verb of ['resume', 'pause']) {
            const headers = { authorization: `Bearer secret-of-${role}` }
            const { status, text } = await world.calm(() => {
              world.port = port
              return world.api('POST', `/v1/sagas/${ids.waits}/${verb}`, note, { headers })
            })
            expect(status < 300, `${role}: ${verb}`, text)
            if (role === 'operator') clean(text, `${verb} by an operator`)
            else expect(text.includes(card), `${verb} by an admin shows the input`, text)
          }
    }
  )

  // The values for the parts in braces; each combination of a route is asked.
  const values = () => ({
    id: [ids.pay, ids.undone, ids.doubt, ids.asks, ids.sum, ids.each, ids.parent, ids.waits, ids.leads, ids.open],
    key: [ids.operation],
    n: [...cases.map(({ n }) => n), ids.approval, ids.hold],
    business_id: ['pay-1', 'undone-1', 'doubt-1'],
    bulk: [ids.bulk],
    file: ['no-such-file.js']
  })
  const valuesOf = (path, name) =>
    name !== 'name'
      ? values()[name]
      : path.includes('/tools/')
        ? ['charge']
        : path.includes('/schedules/')
          ? ['daily']
          : ['pay', 'undone', 'doubt']
  const paths = () => {
    const { paths: all } = JSON.parse(readFileSync(join(root, 'schema', 'openapi.json'), 'utf8'))
    const routes = Object.keys(all).filter((path) => all[path].get)
    return routes.flatMap((path) => {
      let made = [path]
      for (const [part, name] of path.matchAll(/{(\w+)}/g)) {
        expect(valuesOf(path, name), `${path}: the test has no value for ${name}`)
        made = made.flatMap((one) => valuesOf(path, name).map((value) => one.replace(part, value)))
      }
      return made
    })
  }
  const more = ['/v1/escalations?status=resolved', '/v1/approvals?status=approved', '/v1/debts?group_by=tool']
  const groups = ['/v1/escalations?group_by=error', '/v1/sagas?status=completed', '/readyz?verbose=true']

  const seen = {}
  await promise('no GET of the API shows a canary to anybody but an admin', async () => {
    for (const role of roles) {
      seen[role] = []
      for (const path of [...paths(), ...more, ...groups]) {
        const answer = await as(role, 'GET', path)
        expect(answer.status < 500, `${role}: GET ${path} is ${answer.status}`, answer.text)
        if (role !== 'admin') clean(answer.text, `${role}: GET ${path}`)
        if (found(answer.text).length > 0) seen[role].push(path.replace(/[0-9a-f-]{36}/, '{}'))
      }
    }
    const wanted = ['/v1/sagas/{}', '/v1/sagas/{}/log', '/v1/operations/{}', '/v1/operations', '/v1/debts']
    for (const path of wanted) expect(seen.admin.includes(path), `an admin is shown the canary at ${path}`, seen.admin)
  })

  await promise('a followed log and followed events are masked', async () => {
    for (const path of [`/v1/sagas/${ids.undone}/log?follow=true`, `/v1/sagas/${ids.doubt}/log?follow=true`]) {
      const { text } = await does('reader', 'GET', path)
      expect(text.includes('saga.started') && text.includes('***'), `the log of ${path}`, text)
      clean(text, path)
      expect(found((await does('admin', 'GET', path)).text).length > 0, 'the same for an admin')
    }
    clean((await does('admin', 'GET', '/v1/events?limit=500')).text, 'events, even for an admin')
  })

  await promise('a page of a log behind a cursor is masked as the whole log is', async () => {
    const whole = (await does('reader', 'GET', `/v1/sagas/${ids.undone}/log?limit=500`)).json.items
    const pages = []
    for (let cursor = 0; cursor < whole.length; cursor += 2)
      pages.push(...(await does('reader', 'GET', `/v1/sagas/${ids.undone}/log?limit=2&cursor=${cursor}`)).json.items)
    expectEqual(pages, whole, 'the pages')
  })

  await promise('an export and the views of sagactl are masked for an operator, and whole for an admin', () => {
    for (const role of ['operator', 'admin']) {
      const path = file(`token-${role}`, '')
      writeFileSync(path, `secret-of-${role}`)
      const out = join(world.directory, `export-${role}.jsonl`)
      const commands = [['show', 'pay/pay-1'], ['log', 'undone/undone-1'], ['operations'], ['debts'], ['escalations']]
      const texts = [['export', out], ...commands].map((args) => {
        const done = world.sagactl(['--token-file', path, ...args])
        expectEqual(done.status, 0, `sagactl ${args[0]}: ${done.stderr}`)
        return done.stdout + done.stderr
      })
      texts.push(readFileSync(out, 'utf8'))
      if (role === 'admin') expect(found(texts.at(-1)).length > 0, 'the export of an admin is whole')
      else texts.forEach((text, i) => clean(text, `sagactl, ${i}`))
    }
  })

  await promise('receivers of notifications, and the log of the program, have no canary', async () => {
    const isThere = () => told.some(({ path, text }) => path === 'hook' && text.includes('saga.abandoned'))
    while (!isThere()) await sleep(50)
    for (const { path, text } of told) if (path === 'hook') clean(text, 'a notification')
    expect(
      told.some(({ path, text }) => path === 'charge' && text.includes(card)),
      'the tool itself got the card'
    )
    for (const { name } of world.engines) clean(readFileSync(world.log(name), 'utf8'), `the log of ${name}`)
  })

  await promise('cases, approvals, events and notifications lie in PostgreSQL without a canary', () => {
    const hex = (text) => Buffer.from(text).toString('hex') // as bytea is written
    const rows = (table) => world.sql(`select t::text from sagad.${table} t`)
    for (const table of ['escalation', 'approval', 'notification', 'event'])
      for (const canary of [card, token])
        expect(![canary, hex(canary)].some((one) => rows(table).includes(one)), `a canary in ${table}`)
  })

  await promise('a dump of the whole database has no canary, and still has what operators look for', () => {
    const args = ['-d', world.dsn, '--data-only']
    const { status, stdout, stderr } = spawnSync(join(world.binaries, 'pg_dump'), args, dumped)
    expectEqual(status, 0, stderr)
    const text = stdout.replace(/[0-9a-f]{40,}/g, (digits) => Buffer.from(digits, 'hex').toString('latin1'))
    expect(text.includes('"step.intent"') && text.includes('"~args":"k1.'), 'the records, sealed')
    clean(text, 'the dump')
    // Whoever knows all but a few digits could try these out against a plain digest.
    for (const one of [input, shown]) {
      const digest = createHash('sha256').update(JSON.stringify(one)).digest()
      for (const form of ['hex', 'base64url', 'latin1'])
        expect(!text.includes(digest.toString(form)), `a plain digest over ${Object.keys(one)} as ${form}`)
    }
    const found = world.sql(`select count(*) from sagad.log_entry where step = 'charge' and key is not null`)
    expect(Number(found) > 0, 'the view of the log')
  })

  await promise('another key is made the active one, and what the old one sealed is read', async () => {
    for (const engine of world.engines) {
      engine.child.kill('SIGTERM')
      await engine.child.ended
    }
    file('payload-keys.json', { active: 'k2', keys: { k2: payloadKey(2), k1: payloadKey(1) } })
    for (const engine of world.engines) world.launchEngine(engine)
    for (const engine of world.engines) await world.engineReady(engine)
    const log = await does('admin', 'GET', `/v1/sagas/${ids.pay}/log?limit=500`)
    expect(found(log.text).length > 0 && !log.text.includes('~'), 'a log from before', log.text)
    const run = await does('agent', 'POST', '/v1/operations?wait=10s', { ...run1, turn: 'later' })
    expectEqual([run.json.key, run.json.result.token], [ids.operation, token], 'a call from before keeps its key')
    await settles(await start('pay', 'pay-2'), ['completed'])
    expectEqual(world.sql(`select string_agg(name, ' ' order by name) from sagad.payload_key`), 'k1 k2', 'its keys')
    expect(Number(world.sql(`select count(*) from sagad.log_entry where data ->> '~args' like 'k2.%'`)) > 0, 'k2')
  })

  await promise('sagad does not start on it without the keys, or with another one of that name', async () => {
    const starts = (keys) =>
      world.sagadOnce(['--database', world.dsn, '--listen', '127.0.0.1:0', ...keys], { seconds: 60 })
    const lacking = file('lacking.json', { active: 'k2', keys: { k2: payloadKey(2) } })
    const other = file('other.json', { active: 'k2', keys: { k2: payloadKey(2), k1: payloadKey(3) } })
    for (const [keys, sentence] of [
      [[], /sealed under the key k1, which sagad does not have/],
      [['--payload-keys', lacking], /sealed under the key k1, which sagad does not have/],
      [['--payload-keys', other], /the key k1 in --payload-keys is another one/]
    ]) {
      const { status, stderr } = starts(keys)
      expect(status === 2 && sentence.test(stderr), keys.join(' '), `${status} ${stderr}`)
    }
    await start('naps', 'naps-2') // whose log is read as soon as it is due
    for (const engine of world.engines) engine.child.kill('SIGKILL')
    world.sql('delete from sagad.payload_key') // nothing says which keys there are, but the rows themselves
    const { status, stderr } = starts([])
    expect(status === 2 && /a payload is sealed under the key k[12]/.test(stderr), 'rows', `${status} ${stderr}`)
    expectEqual(world.sql(`select count(*) from sagad.escalation where reason = 'unreadable'`), '0', 'no case')
  })
})
server.close()
