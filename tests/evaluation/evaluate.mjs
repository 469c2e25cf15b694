// The evaluation: scripted agents that err in every way agents err, against a shop that errs in every way services err,
// while sagad is killed at random. Afterwards the shop's own ledger says what happened: for each wish exactly one
// effect of each kind when it ended completed, nothing when it was undone, and how many needed a person.
//
//   evaluate.mjs [--shop keys|ignores-keys|blind|all] [--runs N] [--seed N] [--agents N] [--engines N]
//                [--chaos PERCENT] [--no-kills] [--kill-every SECONDS] [--first N] [--patience SECONDS]
//                [--json FILE] [--mcp | --mixed]
//
// --mcp: the agents speak the Model Context Protocol, through hosts of each kind (mcp_door.mjs); --mixed: every second
// one does.
// --seed makes the same agents again; with --first and --runs 1 a single one of them. SAGAD, SAGACTL and SAGAD_SHOP
// name the programs; tools/evaluate builds them. Exits 0 when every wish came out right, else 1 with the evidence.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { World, quick, sleep } from '../lib/world.mjs'
import { Client } from './client.mjs'
import { printByHost, rowsOf } from './by_host.mjs'
import { HttpDoor } from './http_door.mjs'
import { Books } from './judge.mjs'
import { McpDoor, hosts, listTools, wishOfHost } from './mcp_door.mjs'
import { Person } from './person.mjs'
import { Trial } from './trial.mjs'
import { shops } from './wish.mjs'

const usage =
  'usage: evaluate [--shop keys|ignores-keys|blind|all] [--runs N] [--seed N] [--agents N] [--engines N] ' +
  '[--chaos PERCENT] [--no-kills] [--kill-every SECONDS] [--first N] [--patience SECONDS] [--json FILE] ' +
  '[--mcp | --mixed]'

function options() {
  try {
    const { values } = parseArgs({
      options: {
        shop: { type: 'string', default: 'all' },
        runs: { type: 'string', default: quick ? '60' : '800' },
        seed: { type: 'string' },
        agents: { type: 'string', default: '64' },
        engines: { type: 'string', default: '2' },
        chaos: { type: 'string', default: '10' },
        'no-kills': { type: 'boolean', default: false },
        'kill-every': { type: 'string', default: '1' },
        first: { type: 'string', default: '0' },
        patience: { type: 'string', default: '240' },
        json: { type: 'string' },
        mcp: { type: 'boolean', default: false },
        mixed: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' }
      }
    })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    const number = (name, fallback) => {
      const value = Number(values[name] ?? fallback)
      if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
      return value
    }
    if (values.shop !== 'all' && !shops[values.shop])
      throw new Error(`--shop is one of ${Object.keys(shops).join(', ')}, all`)
    return {
      shops: values.shop === 'all' ? Object.keys(shops) : [values.shop],
      runs: number('runs'),
      agents: Math.max(1, number('agents')),
      engines: Math.max(1, number('engines')),
      chaos: number('chaos'),
      seed: number('seed', process.env.SAGAD_TEST_SEED ?? Date.now() % 1000000),
      first: number('first'),
      patience: number('patience'),
      kills: !values['no-kills'],
      killEvery: number('kill-every'),
      json: values.json,
      mcp: values.mcp,
      mixed: values.mixed
    }
  } catch (error) {
    console.error(`evaluate: ${error.message}\n${usage}`)
    process.exit(2)
  }
}

// The faults of the shop, with their weights. Waits are longer than a restart of sagad, and shorter than the tools'
// `visibility`.
const modes = {
  'reset-after-effect': 6,
  'reset-before-effect': 4,
  '500-before': 4,
  '500-after': 4,
  503: 1,
  429: 1,
  garbage: 2,
  truncated: 4,
  slow: 6,
  late: 4,
  'timeout-after-effect': 2,
  hang: 1,
  redelivered: 4
}

const tokens = {
  agent: 'agent-of-the-evaluation',
  operator: 'operator-of-the-evaluation',
  admin: 'admin-of-the-evaluation'
}

function tokensFile(path) {
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  writeFileSync(
    path,
    JSON.stringify({
      tokens: Object.entries(tokens).map(([role, text]) => ({
        name: role,
        sha256: sha256(text),
        namespace: 'default',
        role
      }))
    }),
    { mode: 0o644 }
  )
  return path
}

// Kills engines at random and starts them again, one at a time. Most of what an evaluation costs is the start of an
// engine, so `seconds` between two kills decide how many wishes an hour has.
class Nemesis {
  constructor(world, seconds) {
    this.world = world
    this.pause = seconds * 1000
    this.kills = 0
    this.working = this.work()
  }

  async work() {
    const { engines } = this.world
    try {
      while (!this.stopping) {
        for (const end = Date.now() + 100 + Math.random() * 1.6 * this.pause; Date.now() < end && !this.stopping;)
          await sleep(Math.min(end - Date.now(), 500))
        if (this.stopping) break
        // Prefers an engine that works to one that looks on.
        let engine = engines[Math.floor(Math.random() * engines.length)]
        if (!(await this.world.asks(engine, '/readyz'))) engine = engines[Math.floor(Math.random() * engines.length)]
        await this.world.killEngine(engine)
        this.kills++
        if (Math.random() < 0.15) {
          // Kills the engine once more while it still starts and takes its shards.
          this.world.launchEngine(engine)
          await sleep(Math.random() * 200)
          await this.world.killEngine(engine)
          this.kills++
        }
        // While another engine is alive, this one may stay away for longer than a lease.
        await sleep(engines.length > 1 && Math.random() < 0.3 ? 3000 : Math.random() * 300)
        this.world.launchEngine(engine)
        await this.world.engineReady(engine)
      }
    } catch (error) {
      this.error = error
    }
  }

  async stop() {
    this.stopping = true
    await this.working
  }
}

function progress(trial, began, total) {
  const terminal = process.stderr.isTTY
  let last = 0
  return setInterval(
    () => {
      const seconds = (Date.now() - began) / 1000
      const ended = trial.journeys.filter((journey) => journey.ended).length
      const line =
        `${ended}/${total} wishes, ${trial.journeys.length - ended} under way, ${(ended / seconds).toFixed(1)} a ` +
        `second`
      if (terminal) process.stderr.write(`\r\x1b[K  ${line}`)
      else if (seconds - last >= 10) {
        last = seconds
        console.log(`# ${line}`)
      }
    },
    terminal ? 250 : 1000
  )
}

async function evaluate(shop, wanted) {
  const world = new World()
  try {
    await Promise.all([world.startPostgres(['-c', 'max_connections=120']), world.startShop(['--no-sync'])])
    await world.startEngines(wanted.engines, [
      '--tokens',
      tokensFile(`${world.directory}/tokens.json`),
      '--mcp-session-run'
    ])
    const addresses = world.engines.map(({ port }) => ({ host: '127.0.0.1', port }))
    const clients = Object.fromEntries(
      Object.entries(tokens).map(([role, token]) => [role, new Client(() => addresses, token)])
    )
    let defined = await clients.admin.json('POST', '/v1/definitions', world.example('registry.json'))
    for (const end = Date.now() + 30000; defined.status === 503 && Date.now() < end;) {
      // the second engine is still connecting
      await new Promise((resolve) => setTimeout(resolve, 100))
      defined = await clients.admin.json('POST', '/v1/definitions', world.example('registry.json'))
    }
    if (defined.status !== 200) throw new Error(`the definitions are refused: ${defined.text ?? defined.lost}`)
    await world.shopSettings({
      ...shops[shop].settings,
      chaos: { percent: wanted.chaos, seed: wanted.seed, ms: 400, modes }
    })
    const granted = new Client(() => addresses)
    const kinds = Object.keys(hosts)
    const speaksMcp = (number) => wanted.mcp || (wanted.mixed && number % 2 === 1)
    const tools = await toolsOfAll(addresses)
    const books = new Books(world.ledgerPath)
    const trial = new Trial({
      ...wanted,
      shop,
      wishAs: (wish) => (speaksMcp(wish.number) ? wishOfHost(wish, kinds[wish.number % kinds.length]) : wish),
      doorOf: (wish) =>
        wish.host ? new McpDoor(wish, { client: clients.agent, granted, tools }) : new HttpDoor(wish, clients.agent),
      operator: clients.operator,
      patience: wanted.patience * 1000,
      suspended: (saga) => saga && person.waiting.add(saga),
      before: async (wish) => {
        if (wish.tagBefore) await world.atShop('PUT', `/tags/${wish.id}-customer`, { request: 'before', tag: 'vip' })
      }
    })
    const person = new Person(clients.operator, books, { met: (item, operation) => trial.met(item, operation) })
    const nemesis = wanted.kills ? new Nemesis(world, wanted.killEvery) : undefined
    const shown = progress(trial, Date.now(), wanted.runs)
    await trial.go()
    clearInterval(shown)
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
    await nemesis?.stop()
    await person.stop()
    trial.judge(books)
    const counts = trial.counts(books)
    const faults = [...person.faults, ...(nemesis?.error ? [String(nemesis.error)] : []), ...(await foldsAgain(world))]
    const result = {
      shop,
      seed: wanted.seed,
      first: wanted.first,
      engines: wanted.engines,
      agents: wanted.agents,
      chaos: wanted.chaos,
      kills: nemesis?.kills ?? 0,
      ...counts,
      verdicts: person.verdicts,
      resumed: person.resumed,
      reasons: person.reasons,
      lost_answers: clients.agent.lost + granted.lost,
      nobody: clients.agent.nobody + granted.nobody,
      faults: faults.length,
      ...(wanted.mcp ? { hosts: rowsOf(trial, books, shop) } : {})
    }
    await evidence(trial, books, clients.operator, faults, wanted, shop, world)
    for (const client of [...Object.values(clients), granted]) client.close()
    return result
  } finally {
    await world.stop()
  }
}

// The tools that agents see, once every engine has heard of the definitions.
async function toolsOfAll(addresses) {
  let tools
  for (const address of addresses) {
    const client = new Client(() => [address], tokens.agent)
    do {
      tools = await listTools(client)
      await sleep(50)
    } while (!tools.some((tool) => tool.name === 'cards_charge'))
    client.close()
  }
  return tools
}

// Checks that each saga folds from its log to the state that the service shows.
async function foldsAgain(world) {
  for (const engine of world.engines) await world.engineReady(engine)
  const replay = world.replayAll(['--token', tokens.admin])
  return replay.status === 0
    ? []
    : [`sagactl replay --all ended with ${replay.status}: ${replay.stdout.slice(-800)} ${replay.stderr.slice(-400)}`]
}

const toldAs = ({ step, key, result, replayed }) => `${step} ${key} ${result}${replayed ? ' (replayed)' : ''}`

async function evidence(trial, books, client, faults, wanted, shop, world) {
  for (const fault of faults) console.log(`\nWRONG ${fault}`)
  for (const { journey, request, what } of trial.verdicts.slice(0, 12)) {
    console.log(`\nWRONG ${request}`)
    for (const sentence of what) console.log(`  - ${sentence}`)
    if (journey) {
      const { luck, ...wish } = journey.wish
      const { last, seen, signed, person } = journey
      console.log(
        `  again: evaluate --shop ${shop} --seed ${wanted.seed} --first ${wish.number} --runs 1 --engines ` +
          `${wanted.engines}${journey.wish.host ? ' --mcp' : ''}`
      )
      console.log(`  wish: ${JSON.stringify(wish)}`)
      console.log(`  agent: ${JSON.stringify({ last, seen, signed, person })}`)
      console.log(`  told: ${journey.answers.map(toldAs).join('\n        ')}`)
    }
    for (const line of books.byRequest.get(request) ?? []) console.log(`  ledger: ${JSON.stringify(line)}`)
    const saga = journey?.sagaId() ?? journey?.final?.operations?.[0]?.saga
    if (saga) {
      const [shown, log] = [
        await client.json('GET', `/v1/sagas/${saga}`),
        await client.json('GET', `/v1/sagas/${saga}/log?limit=500`)
      ]
      console.log(`  saga: ${shown.text}`)
      for (const entry of log.json?.items ?? [log.text]) console.log(`  log: ${JSON.stringify(entry).slice(0, 500)}`)
    } else if (journey) console.log(`  final: ${JSON.stringify(journey.final)}`)
  }
  if (trial.verdicts.length > 12)
    console.log(
      `\n... and ${trial.verdicts.length - 12} wishes more: ${trial.verdicts
        .slice(12)
        .map((verdict) => verdict.request)
        .join(' ')}`
    )
  if (trial.verdicts.length > 0 || faults.length > 0) world.showLogs()
}

function table(results) {
  const rows = [
    ['', ...results.map((one) => one.shop)],
    ['wishes', ...results.map((one) => one.runs)],
    ['ended completed', ...results.map((one) => one.completed)],
    ['ended undone', ...results.map((one) => one.compensated)],
    ['failed, and nothing was done', ...results.map((one) => one.failed)],
    ['abandoned', ...results.map((one) => one.abandoned)],
    ['stranded', ...results.map((one) => one.stranded)],
    ['needed a person on the way', ...results.map((one) => one.person)],
    ['effects done / undone', ...results.map((one) => `${one.effects} / ${one.undone}`)],
    ['effects that came twice', ...results.map((one) => one.doubles)],
    ['left standing after an undo', ...results.map((one) => one.left)],
    ['calls by agents / replayed', ...results.map((one) => `${one.calls} / ${one.replayed}`)],
    ['answers lost / found nobody there', ...results.map((one) => `${one.lost_answers} / ${one.nobody}`)],
    ['loops stopped / runs suspended', ...results.map((one) => `${one.loops} / ${one.resumed}`)],
    ['crashes of agents / re-plans', ...results.map((one) => `${one.crashes} / ${one.replans}`)],
    ['executions signed off', ...results.map((one) => one.signed)],
    ['kills of sagad', ...results.map((one) => one.kills)],
    ['requests at the shop / gone wrong', ...results.map((one) => `${one.requests} / ${one.troubled}`)],
    ['wishes a second', ...results.map((one) => (one.runs / one.seconds).toFixed(1))],
    ['not exactly one, or not zero net: WRONG', ...results.map((one) => one.wrong + one.faults)]
  ]
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)))
  for (const row of rows)
    console.log(
      row
        .map((cell, column) =>
          column === 0 ? String(cell).padEnd(widths[0]) : String(cell).padStart(widths[column] + 2)
        )
        .join('')
    )
}

const wanted = options()
console.log(
  `# seed ${wanted.seed}, ${wanted.runs} wishes for each shop, ${wanted.agents} agents at once, ` +
    `${wanted.engines} engines, ${wanted.kills ? 'killed at random' : 'not killed'}, chaos ${wanted.chaos} %` +
    (wanted.mcp ? ', over the Model Context Protocol' : '')
)
const results = []
let broken
for (const shop of wanted.shops) {
  console.log(`# ${shops[shop].says}`)
  try {
    results.push(await evaluate(shop, wanted))
  } catch (error) {
    console.log(`WRONG the evaluation did not get to its end: ${error.stack}`)
    broken = true
    break
  }
}
if (results.length > 0) {
  console.log('')
  table(results)
  if (wanted.mcp) {
    console.log('')
    printByHost(results.flatMap((one) => one.hosts))
  }
}
if (wanted.json) writeFileSync(wanted.json, JSON.stringify(results, null, 2) + '\n')
else console.log(`\n${JSON.stringify(results)}`)
const wrong = broken || results.some((one) => one.wrong + one.faults > 0 || one.runs < wanted.runs)
console.log(wrong ? 'evaluation: WRONG' : 'evaluation: every wish came out right')
process.exit(wrong ? 1 : 0)
