// `sagactl hammer`: three shops that lie and two that are honest, and statements, programs and MCP tools. What they do
// with repeats is said as it is, what may be declared follows from it, and the exit code is that of the definition.
// With --long 50 runs of each shop.
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, quick, root, run, sleep } from '../lib/world.mjs'

const runs = quick ? 1 : 50
const bank = 'https://bank.example' // nobody is there: --against says where calls go

const probe = (thing, result) => ({
  http: { url: `${bank}/${thing}/by-key/\${ .key }` },
  outcome: { completed: '${ .response.status == 200 }', absent: '${ .response.status == 404 }' },
  visibility: '3s',
  ...(result && { result })
})
const charge = (name, more = {}) => ({
  name,
  effect: 'keyed',
  key: { header: 'Idempotency-Key', window: '1s' },
  http: { url: `${bank}/charges` },
  result: '${ .response.body.id }',
  probe: probe('charges'),
  compensate: { tool: 'charge.undo', with: { key: '${ .key }' }, tolerates_absent: true, voids_key: true },
  ...more
})
const window = '200ms'
// A statement, and the one that undoes it. `bank` is no database: --against says which one.
const rows = (name, more) => {
  const sql = (statement) => ({
    sql: { database: 'postgresql://nobody@bank.example/bank', statement, params: ['${ .args.request }'], ...more }
  })
  const undo = { tool: `${name}.undo`, with: { request: '${ .args.request }' } }
  return [
    {
      ...{ name, effect: 'idempotent', ...sql('insert into charge values ($1)') },
      compensate: { ...undo, ...(more.barrier && { tolerates_absent: true, voids_key: true }) }
    },
    { name: `${name}.undo`, effect: 'idempotent', ...sql('delete from charge where request = $1') },
    {
      ...{ name: `${name}.count`, effect: 'read', result: '${ .response.rows[0].n }' },
      sql: { ...sql('select count(*)::int as n from charge where request = $1').sql, barrier: undefined }
    }
  ]
}
// A program whose effect is a file. What it reaches comes from a secret, as a test system would.
const files = (name, script) => {
  const sh = (text) => ({ exec: { argv: ['sh', '-c', text], env: { DIR: `\${ secret("${name}") }` } } })
  return [
    { name, effect: 'keyed', key: { window }, ...sh(script), terminal: true },
    { name: `${name}.count`, effect: 'read', ...sh('ls "$DIR" | wc -l'), result: '${ .response.stdout }' }
  ]
}
const remote = (name, meta) => ({
  ...{ name, effect: 'keyed', key: { meta, window }, terminal: true },
  mcp: { server: { url: `${bank}/mcp` }, tool: 'charge' }
})
const documents = {
  tools: [
    charge('charge'),
    charge('charge.for_a_day', { key: { header: 'Idempotency-Key', window: '24h' } }),
    charge('charge.as_state', { effect: 'idempotent', key: undefined }),
    charge('charge.once', { effect: 'once', key: undefined }),
    charge('charge.checked', { effect: 'checked', key: undefined }),
    charge('charge.races', { probe: undefined, compensate: undefined, terminal: true }),
    charge('charge.probe_counts', { probe: probe('charges', '${ .response.body.times }') }),
    charge('charge.settles', {
      key: { header: 'Idempotency-Key', window: '1s', settles: [422] },
      compensate: { tool: 'charge.undo', with: { key: '${ .key }' } }
    }),
    {
      name: 'charge.undo',
      effect: 'idempotent',
      http: { method: 'DELETE', url: `${bank}/charges/by-key/\${ .args.key }` }
    },
    {
      name: 'tag',
      effect: 'idempotent',
      http: { method: 'PUT', url: `${bank}/tags/\${ .args.request }` },
      compensate: { tool: 'untag', with: { request: '${ .args.request }' } }
    },
    {
      name: 'untag',
      effect: 'idempotent',
      http: { method: 'DELETE', url: `${bank}/tags/\${ .args.request }` },
      outcome: { completed: '${ .response.status == 200 or .response.status == 404 }' }
    },
    ...['charge', 'tag'].map((kind) => ({
      name: `count.${kind}`,
      effect: 'read',
      http: { url: `${bank}/requests/\${ .args.request }` },
      result: `\${ .response.body.${kind}.done }`
    })),
    { name: 'price', effect: 'read', http: { url: `${bank}/prices/\${ .args.request }` } },
    { name: 'count.price', effect: 'read', http: { url: `${bank}/prices/x` }, result: '${ .response.body.amount }' },
    { name: 'echo', effect: 'read', builtin: { do: 'echo' } },
    ...rows('row', { barrier: true }),
    ...rows('row.without_barrier', {}),
    ...files('file', ': >"$DIR/$IDEMPOTENCY_KEY"'),
    ...files('file.without_key', ': >"$DIR/$$"'),
    remote('remote', 'shop.example/idempotency-key'),
    remote('remote.without_key', 'shop.example/nothing')
  ]
}
const args = '{"amount": 5, "customer": "c", "tag": "t", "request": "{unique}"}'

// Runs sagactl beside everything else: the receivers of this process must go on answering. {code, out, err}
function sagactl(world, given) {
  return new Promise((resolve, reject) => {
    const child = spawn(world.sagactlPath, given, { stdio: ['ignore', 'pipe', 'pipe'] })
    const text = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr']) child[name].on('data', (data) => (text[name] += data))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out: text.stdout, err: text.stderr }))
  })
}

// {code, out, err, json}
async function hammer(world, options) {
  const found = await sagactl(world, ['hammer', world.file, '--rounds', '2', ...options])
  try {
    return { ...found, json: options.includes('json') && JSON.parse(found.out) }
  } catch {
    throw new Error(`no JSON: ${found.out} ${found.err}`)
  }
}

async function startShop(world, name, options) {
  const port = await freePort()
  const shop = world.launch(name, world.shopPath, [
    ...['--listen', `127.0.0.1:${port}`, '--ledger', join(world.directory, `${name}.jsonl`), '--no-sync'],
    ...options
  ])
  const url = `http://127.0.0.1:${port}`
  for (;;) {
    expect(!shop.end, `the shop ${name} starts`)
    try {
      if ((await fetch(`${url}/livez`)).ok) return url
    } catch {
      await sleep(30)
    }
  }
}

// A server of the protocol with one tool, which honours the key that it finds in `_meta`. It counts as the shop does.
async function startMcp() {
  const charges = new Map() // key -> request
  let unkeyed = 0
  const results = {
    initialize: () => ({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'shop', version: '1' }
    }),
    'tools/call': ({ arguments: { request }, _meta }) => {
      const key = _meta?.['shop.example/idempotency-key'] ?? `unkeyed-${unkeyed++}`
      charges.set(key, request)
      return { content: [{ type: 'text', text: key }] }
    }
  }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (data) => (body += data))
    request.on('end', () => {
      const answer = (status, json) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(json && JSON.stringify(json))
      }
      if (request.method === 'GET') {
        const wanted = request.url.split('/').at(-1)
        const done = [...charges.values()].filter((one) => one === wanted).length
        return answer(200, { charge: { done } })
      }
      const { id, method, params } = JSON.parse(body)
      if (id === undefined) return answer(202)
      answer(200, { jsonrpc: '2.0', id, result: results[method](params) })
    })
  })
  server.keepAliveTimeout = 0 // it closes no connection just when a question comes
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }
}

const may = (json) => Object.fromEntries(json.may.map((one) => [one.effect, one.may]))
const says = (found, what) =>
  expect(
    found.json.excess.some((one) => one.includes(what)),
    `it says ${what}`,
    found.json
  )

const keyed = { read: 'no', idempotent: 'no', keyed: 'yes', checked: 'yes', once: 'yes' }
const receivers = {
  'an honest receiver of keys': {
    shop: [],
    judge(found) {
      expectEqual(may(found.json), keyed, 'what may be declared')
      expectEqual([found.code, found.json.ok, found.json.excess], [0, true, []], 'the verdict')
    }
  },
  'an honest receiver of states': {
    shop: [],
    tool: 'tag',
    judge(found) {
      expectEqual(may(found.json), { ...keyed, idempotent: 'yes', checked: 'not_seen' }, 'what may be declared')
      expectEqual([found.code, found.json.ok, found.json.excess], [0, true, []], 'the verdict')
    }
  },
  'one that ignores keys': {
    shop: ['--ignore-keys'],
    judge(found) {
      expectEqual(may(found.json), { ...keyed, keyed: 'no' }, 'what may be declared')
      expectEqual([found.code, found.json.ok], [1, false], 'the verdict')
      says(found, '`effect` is "keyed"')
    }
  },
  'one that forgets keys too early': {
    shop: ['--forget-keys', '700'], // a minute, in the time of a test
    judge(found) {
      expectEqual([found.code, found.json.ok], [1, false], 'the verdict')
      expect(found.json.window_ms < 700, 'the window is none in which it forgot', found.json)
      expect(found.json.forgot_ms >= 700 || may(found.json).keyed === 'no', 'it forgot', found.json)
    }
  },
  'one that does what was undone before it came': {
    shop: ['--ignore-voids'],
    judge(found) {
      expectEqual(may(found.json), keyed, 'what may be declared')
      expectEqual([found.code, found.json.ok, found.json.excess.length], [1, false, 1], 'the verdict')
      says(found, '`voids_key`')
    }
  }
}

await run(new World(), async (world) => {
  world.file = join(world.directory, 'tools.json')
  writeFileSync(world.file, JSON.stringify(documents))
  const postgres = world.startPostgres()
  const urls = await Promise.all(Object.values(receivers).map((one, i) => startShop(world, `shop-${i}`, one.shop)))
  const honest = urls[0]
  await postgres
  const lies = urls[2]
  const counted = (tool) => ['--tool', tool, '--count', tool === 'tag' ? 'count.tag' : 'count.charge', '--args', args]
  const at = (url, tool, ...more) =>
    hammer(world, [...counted(tool), '--against', url, '--late', '1s', '-o', 'json', ...more])

  const told = Object.entries(receivers).map(([name, { tool = 'charge', judge }], i) =>
    promise(
      `${name} is told as it is${runs > 1 ? `, ${runs} times` : ''}`,
      async () => {
        for (let n = 0; n < runs; n++) judge(await at(urls[i], tool))
      },
      60 + 30 * runs
    )
  )

  const declared = promise('the declaration decides the exit code, not what the receiver could do', async () => {
    const more = await at(honest, 'charge.for_a_day')
    expectEqual(more.code, 1, 'a window that nobody waited for')
    says(more, '--believe-window')
    expectEqual((await at(honest, 'charge.for_a_day', '--believe-window')).code, 0, 'which is believed')
    const state = await at(honest, 'charge.as_state')
    expectEqual(state.code, 1, 'idempotent, and only keys are honoured')
    says(state, '`effect` is "idempotent"')
    expectEqual((await at(lies, 'charge.once')).code, 1, 'once, and the undo is no better for it')
    const checked = await at(lies, 'charge.checked')
    expectEqual(may(checked.json), { ...keyed, keyed: 'no' }, 'keys that are ignored do no harm to who asks first')
  })

  const uncounted = promise(
    'without a counter the probe counts where it gives a number, else the answers do',
    async () => {
      const withoutCounter = (url, tool) =>
        hammer(world, ['--tool', tool, '--args', args, '--against', url, '--late', '200ms', '-o', 'json'])
      const probed = await withoutCounter(lies, 'charge.probe_counts')
      expectEqual([probed.json.counted_by, may(probed.json).keyed], ['probe', 'no'], 'by the probe')
      const answered = await withoutCounter(lies, 'charge')
      expectEqual([answered.json.counted_by, may(answered.json).keyed], ['answers', 'no'], 'by the answers')
      const weaker = await withoutCounter(honest, 'charge')
      expectEqual(
        [weaker.json.counted_by, may(weaker.json).keyed],
        ['answers', 'yes'],
        'by the answers of an honest one'
      )
      expect(
        weaker.json.notes.some((one) => one.includes('--count')),
        'it says that this shows less',
        weaker.json
      )
      const reads = await hammer(world, [
        ...['--tool', 'price', '--count', 'count.price', '--args', '{"request": "x"}', '--against', honest],
        ...['--late', '0s', '-o', 'json']
      ])
      expectEqual([reads.code, may(reads.json).read], [0, 'yes'], 'a read that changes nothing')
    }
  )

  const tried = promise('`check --strict` warns of each class that no report shows', async () => {
    const report = async (name, url, tool, ...more) => {
      const path = join(world.directory, `${name}.report.json`)
      writeFileSync(path, JSON.stringify((await at(url, tool, ...more)).json))
      return path
    }
    const check = async (file, ...more) => {
      const given = more.flatMap((one) => (one.startsWith('--') ? [one] : ['--hammered', one]))
      const found = await sagactl(world, ['check', file, '-o', 'json', ...given])
      return { ...found, warnings: found.out && JSON.parse(found.out).warnings }
    }
    const about = (found, i) => found.warnings.filter((one) => one.pointer === `/tools/${i}/effect`)
    const indexOf = (name) => documents.tools.findIndex((one) => one.name === name)
    const [good, wrong] = await Promise.all([
      report('good', honest, 'charge'),
      report('wrong', honest, 'charge.as_state', '--rounds', '1')
    ])
    const without = await check(world.file, '--strict')
    expectEqual(without.code, 0, `warnings are no faults: ${without.err}`)
    const silent = ['charge.once', 'echo'].map(indexOf)
    documents.tools.forEach((tool, i) =>
      expectEqual(about(without, i).length, silent.includes(i) ? 0 : 1, `warnings of ${tool.name}`)
    )
    expect(about(without, 0)[0].detail.startsWith('nobody has tried whether "keyed" is true'), 'the words', without)
    expectEqual(about(await check(world.file), 0).length, 0, 'who does not ask is not warned')
    const shown = await check(world.file, '--strict', good, wrong)
    expectEqual(about(shown, 0), [], 'what a report shows')
    const denied = about(shown, indexOf('charge.as_state'))
    expect(denied[0].detail.includes('wrong.report.json: `effect` is "idempotent"'), 'what a report denies', denied)

    const changed = join(world.directory, 'changed.json')
    const [first, ...others] = documents.tools
    writeFileSync(changed, JSON.stringify({ tools: [{ ...first, timeout: '9s' }, ...others] }))
    expect(
      about(await check(changed, '--strict', good), 0)[0].detail.includes('another text of this tool'),
      'a tool that was changed since'
    )
    expectEqual((await check(world.file, good)).code, 2, '--hammered without --strict')
    expectEqual((await check(world.file, '--strict', world.file)).code, 1, 'a file that is no report')
  })

  const sent = promise('the right receiver gets what the engine would send, and only that one', async () => {
    const seen = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (data) => (body += data))
      request.on('end', () => {
        seen.push({ method: request.method, path: request.url, key: request.headers['idempotency-key'], body })
        response.writeHead(request.method === 'POST' ? 201 : 404, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: request.headers['idempotency-key'] }))
      })
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const given = ['--tool', 'charge.settles', '--args', args, '--late', '0s', '--rounds', '1']
    const found = await hammer(world, [...given, '--against', `http://127.0.0.1:${server.address().port}/`])
    server.close()
    const posts = seen.filter((one) => one.method === 'POST')
    const deletes = seen.filter((one) => one.method === 'DELETE')
    expect(posts.length > 15 && posts.every((one) => one.path === '/charges'), 'the calls', seen)
    expect(
      posts.every((one) => /^[0-9a-f]{8}-[0-9a-f]{4}-8/.test(one.key)),
      'keys like those of the engine',
      posts
    )
    expect(
      posts.every((one) => JSON.parse(one.body).amount === 5 && !one.body.includes('{unique}')),
      'the arguments',
      posts
    )
    expect(deletes.length > 0 && deletes.every((one) => one.path.startsWith('/charges/by-key/')), 'the undos', seen)
    expect(/checked +no/.test(found.out), 'the probe of this one denies everything', found)
    expectEqual(found.code, 1, 'keyed, and no late repeat was sent')
  })

  const others = promise('statements, programs and tools of MCP servers are judged like requests', async () => {
    world.sql('create table charge (request text not null)')
    world.sql(readFileSync(join(root, 'schema', 'barrier.sql'), 'utf8'))
    const database = `postgresql://postgres@/postgres?host=${encodeURIComponent(world.directory)}&port=5432`
    const given = ['--args', args, '--late', window, '-o', 'json']
    const row = (name) => hammer(world, ['--tool', name, '--count', `${name}.count`, '--against', database, ...given])
    const file = (name) => {
      const secrets = join(world.directory, `${name}.secrets.json`)
      const directory = join(world.directory, `files-${name}`)
      mkdirSync(directory)
      writeFileSync(secrets, JSON.stringify({ [name]: directory }), { mode: 0o600 })
      const counted = ['--tool', name, '--count', `${name}.count`, '--programs', '--secrets', secrets]
      return hammer(world, [...counted, ...given])
    }
    const server = await startMcp()
    const mcp = (name) => hammer(world, ['--tool', name, '--count', 'count.charge', '--against', server.url, ...given])

    const [kept, lost, put, put2, paid, paid2] = await Promise.all([
      ...[row('row'), row('row.without_barrier')],
      ...[file('file'), file('file.without_key')],
      ...[mcp('remote'), mcp('remote.without_key')]
    ])
    server.close()
    expectEqual([kept.code, kept.json?.excess, may(kept.json).idempotent], [0, [], 'yes'], `barrier: ${kept.err}`)
    expect(!JSON.stringify(kept.json).includes('postgres@'), "the user of the database is nobody's business")
    expectEqual([lost.code, may(lost.json).idempotent, may(lost.json).once], [1, 'no', 'yes'], `none: ${lost.err}`)
    expectEqual([put.code, put.json?.excess, may(put.json).keyed], [0, [], 'yes'], `program: ${put.err}`)
    expectEqual([put2.code, may(put2.json).keyed], [1, 'no'], 'a program that ignores the key')
    expectEqual([paid.code, paid.json?.excess, may(paid.json).keyed], [0, [], 'yes'], `mcp: ${paid.err}`)
    expectEqual([paid2.code, may(paid2.json).keyed], [1, 'no'], 'a server that looks for its key elsewhere')
    for (const found of [kept, put, paid]) {
      const cut = found.json.trials.find((one) => one.trial === 'cut')
      expect(cut.calls > cut.operations, 'calls are cut off and sent again', found.json)
    }
  })

  const raced = promise('calls at once catch a receiver that looks at the key and then acts', async () => {
    const known = new Set()
    let effects = 0
    const server = createServer((request, response) => {
      const answer = (status, body) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      }
      request.resume()
      request.on('end', async () => {
        const key = request.headers['idempotency-key']
        if (request.method !== 'POST') return answer(200, { charge: { done: effects } })
        if (!known.has(key)) {
          await sleep(1000) // longer than it takes to send the calls of one volley
          known.add(key)
          effects++
        }
        answer(201, { id: key })
      })
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const found = await at(`http://127.0.0.1:${server.address().port}`, 'charge.races', '--rounds', '1')
    server.close()
    const tally = (name) => found.json.trials.find((one) => one.trial === name)
    expect(tally('at_once').most_of_one > 1, 'calls at once', found.json)
    expectEqual(tally('repeated').most_of_one, 1, 'one after the other')
    expectEqual([found.code, may(found.json).keyed], [1, 'no'], 'the verdict')
  })

  const refused = promise('a tool that cannot be hammered is refused with the reason', async () => {
    const base = ['--against', honest, '--args', args]
    for (const [options, code, what] of [
      [['--tool', 'nothing', ...base], 3, 'there is no tool nothing'],
      [['--tool', 'echo', ...base], 2, 'there is nothing to try'],
      [['--tool', 'row', '--args', args, '--programs'], 2, '--against postgresql://'],
      [['--tool', 'file', ...base], 2, '--programs'],
      [['--tool', 'charge', ...base, '--against', honest], 2, 'two receivers of one kind'],
      [['--tool', 'charge', '--count', 'charge.undo', ...base], 2, 'no tool of class read'],
      [['--tool', 'charge', '--against', honest], 2, '--args'],
      [['--tool', 'charge', '--args', args], 2, '--against'],
      [['--tool', 'charge', '--args', args, '--programs'], 2, '--against http://'],
      [['--tool', 'charge', '--against', 'bank', '--args', args], 2, 'is a URL such as'],
      [['--tool', 'charge', '--rounds', '0', ...base], 2, '--rounds is a number'],
      [['--tool', 'charge', '--late', 'soon', ...base], 2, '--late is a time'],
      [['--tool', 'charge', '--against', honest, '--args', '{"amount": "x"}'], 1, 'a single call is not completed'],
      [['--tool', 'charge', '--count', 'price', ...base], 1, 'is no whole number']
    ]) {
      const found = await hammer(world, options)
      expectEqual(found.code, code, `exit code of ${options.join(' ')}: ${found.err}`)
      expect(found.err.includes(what), `the reason: ${what}`, found.err)
    }
  })
  await Promise.all([...told, declared, uncounted, tried, sent, others, raced, refused]) // each waits most of the time
})
