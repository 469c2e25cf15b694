// Asks the cases of a client: of a real sagad through a wire that loses things, and of the recorded exchanges.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { expect, expectEqual, promise, root, sleep } from '../lib/world.mjs'
import { cases, definitions } from './cases.mjs'
import { Proxy, Replay, withoutRepeats } from './wire.mjs'

const file = join(root, 'tests', 'clients', 'exchanges.json')
const roles = { good: 'agent', ops: 'operator', root: 'admin' }
// What an engine says on a machine that stalls; a client asks again, and no case is about these.
const passing = ['busy', 'database-away', 'fenced', 'commit-unknown', 'stopping'].map(
  (code) => `urn:sagad:problem:${code}`
)

// A process that does what it is asked by lines.
class Driver {
  constructor(command) {
    this.child = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]()
  }

  async ask(what) {
    this.child.stdin.write(`${JSON.stringify(what)}\n`)
    const { value, done } = await this.lines.next()
    expect(!done, 'the driver answers')
    return JSON.parse(value)
  }

  close() {
    this.child.stdin.end()
  }
}

// Members that the case does not name are not looked at, such as ids and sentences.
const named = (said, wanted) => Object.fromEntries(Object.keys(wanted).map((name) => [name, said[name]]))

const emissionsOf = ({ ask }) => ask.map(({ emission }) => emission).filter((emission) => emission !== undefined)

// Asks one case, and returns what the client said.
async function askCase(driver, url, ask) {
  const said = []
  for (const { opened, ...one } of ask) {
    const sagaId = opened && said[0].id
    said.push(await driver.ask({ url, token: 'good', ...one, ...(sagaId && { sagaId }) }))
  }
  return said
}

function judge(one, said) {
  expectEqual(
    said.map((each, n) => named(each, one.expect[n])),
    one.expect,
    `what the client says (${JSON.stringify(said)})`
  )
}

const kindOf = ({ request, answer }) => ({
  method: request.method,
  path: request.path.replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, 'ID'),
  answer: answer === 'lost' ? answer : `${answer.status} ${answer.body?.type ?? ''}`
})

// Prepares a world in which the cases can be asked.
export async function prepare(world) {
  await Promise.all([world.startPostgres(), world.startShop(['--no-sync'])])
  const tokens = Object.entries(roles).map(([name, role]) => ({
    name,
    role,
    namespace: 'default',
    sha256: createHash('sha256').update(name).digest('hex')
  }))
  const path = join(world.directory, 'tokens.json')
  writeFileSync(path, JSON.stringify({ tokens }), { mode: 0o600 })
  await world.startSagad(['--tokens', path])
  const as = async (token, where, body) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await world.calm(() => world.api('POST', where, body, { headers }))
    expect(answer.status < 300, `${where} is answered well`, answer.text)
  }
  world.asOperator = (where, body) => as('ops', where, body)
  world.callUntil = async (code, body) => {
    const headers = { authorization: 'Bearer good' }
    for (;;) {
      const { json } = await world.api('POST', '/v1/operations?wait=50ms', body, { headers })
      if (json.type === `urn:sagad:problem:${code}`) return
      await sleep(50)
    }
  }
  const first = JSON.parse(readFileSync(join(root, 'schema', 'examples', 'first.json'), 'utf8'))
  world.applyFirst = () => as('root', '/v1/definitions', first)
  world.callOnce = (tool, run) => as('good', '/v1/operations?wait=50ms', { tool, run })
  await as('root', '/v1/definitions', definitions(`http://127.0.0.1:${world.shopPort}`))
}

// Asks all cases of a real sagad. With --write it keeps the exchanges; else those that were kept have to be of the same
// kind.
export async function askReal(world, command) {
  const proxy = await new Proxy().open(world.port)
  const driver = new Driver(command)
  const kept = []
  const before = process.argv.includes('--write') ? undefined : JSON.parse(readFileSync(file, 'utf8'))
  for (const one of cases)
    await promise(`a real sagad: ${one.name}`, async () => {
      await one.prepare?.(world)
      proxy.begin(one.wire ?? [], emissionsOf(one))
      const said = await askCase(driver, proxy.url, one.ask)
      judge(one, said)
      const exchanges = withoutRepeats(proxy.exchanges)
      kept.push({ name: one.name, exchanges })
      if (!before) return
      const stays = ({ answer }) => !passing.includes(answer.body?.type)
      expectEqual(
        exchanges.filter(stays).map(kindOf),
        before
          .find(({ name }) => name === one.name)
          ?.exchanges.filter(stays)
          .map(kindOf),
        'what went over the wire; the kept exchanges are renewed with --write'
      )
    })
  if (!before) writeFileSync(file, `[\n${kept.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`)
  driver.close()
  proxy.server.close()
}

// A record answers at once, so that a client need not wait as long for it.
const hurried = ({ patienceMs, ...more }) => ({ ...more, ...(patienceMs && { patienceMs: patienceMs / 10 }) })

// Asks all cases of the exchanges that were kept: every client sends what the first one sent.
export async function askReplay(command, how = '') {
  const replay = await new Replay().open()
  const driver = new Driver(command)
  for (const { name, exchanges } of JSON.parse(readFileSync(file, 'utf8')))
    await promise(`${how}from the record: ${name}`, async () => {
      const one = cases.find((each) => each.name === name)
      expect(one, 'the case is there')
      replay.begin(exchanges, emissionsOf(one))
      const said = await askCase(driver, replay.url, one.ask.map(hurried))
      expectEqual(replay.faults, [], 'what the client sent otherwise')
      judge(one, said)
      expectEqual(replay.at, exchanges.length, 'exchanges')
    })
  driver.close()
  replay.server.close()
}
