// Secrets in every place where a tool may have one, each of them part of a call that goes wrong. Neither messages of a
// library or of PostgreSQL, nor text that a receiver repeats, may bring a secret into an answer, a row, a log of sagad,
// a metric, a list of processes or a core file.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run } from '../lib/world.mjs'

const secrets = {}
const canary = (name, text = (word) => word) => {
  const word = `canary-${name}-${Math.random().toString(36).slice(2, 10)}`
  secrets[name] = text(word)
  words.set(name, word)
  return `\${ secret("${name}") }`
}
const words = new Map() // name of the secret -> the text that must appear nowhere

// Answers with what it got: headers, path, body.
const repeats = createServer((request, response) => {
  let body = ''
  request.on('data', (piece) => {
    body += piece
  })
  request.on('end', () => {
    const got = JSON.stringify({ path: request.url, headers: request.headers, body })
    if (request.url.startsWith('/mcp')) {
      const { id, method, params } = JSON.parse(body || '{}')
      const hello = {
        result: {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: got, version: '1' }
        }
      }
      const answer = method === 'initialize' ? hello : { error: { code: -32000, message: got } }
      response.writeHead(id === undefined ? 202 : 200, { 'content-type': 'application/json' })
      response.end(id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    } else {
      response
        .writeHead(400, { 'content-type': 'application/json', 'x-got': request.headers.authorization ?? '' })
        .end(got)
    }
  })
})

// An MCP server that ends with its environment and its arguments on both streams.
const shouts = [
  '-e',
  'process.stdout.write(JSON.stringify(process.env) + process.argv.join(" ") + "\\n"); ' +
    'process.stderr.write(JSON.stringify(process.env)); process.exit(1)',
  '--'
]

function places(base, host) {
  const post = (members) => ({ http: { method: 'POST', url: `${base}/echo`, ...members } })
  const statement = (text, ...params) => ({ sql: { database: '${ secret("database") }', statement: text, params } })
  const database = (text) => ({ sql: { database: text, statement: 'select 1' } })
  return {
    'the URL names a host that is not there': post({ url: canary('http-url', (word) => `http://${word}.invalid/`) }),
    'the URL is none': post({ url: canary('http-no-url', (word) => `gopher:${word}`) }),
    'a header is repeated': post({ headers: { authorization: `Bearer ${canary('http-header')}` } }),
    'a header cannot be one': post({
      headers: { 'x-one': canary('http-header-lines', (word) => `${word}\r\nx-two: ${word}`) }
    }),
    'a part of the path is repeated': post({ url: `${base}/echo/${canary('http-path')}` }),
    'the query is repeated': post({ query: { token: canary('http-query') } }),
    'the body is repeated': post({ body: { token: canary('http-body') } }),
    'the URL of an MCP server names a host that is not there': {
      mcp: { server: { url: canary('mcp-url', (word) => `http://${word}.invalid/mcp`) }, tool: 'x' }
    },
    'the bearer of an MCP server is repeated': {
      mcp: { server: { url: `${base}/mcp`, bearer: canary('mcp-bearer') }, tool: 'x' }
    },
    'the environment of an MCP server is repeated': {
      mcp: { server: { argv: [process.execPath, ...shouts], env: { TOKEN: canary('mcp-env') } }, tool: 'x' }
    },
    'an argument of an MCP server is repeated': {
      mcp: { server: { argv: [process.execPath, ...shouts, canary('mcp-argv')] }, tool: 'x' }
    },
    'an MCP server does not start': {
      mcp: { server: { argv: ['/nowhere/server', canary('mcp-not-started')] }, tool: 'x' }
    },
    'the folder of a program is not there': {
      exec: { argv: [process.execPath], cwd: canary('exec-folder', (word) => `/nowhere/${word}`) }
    },
    'the connection string names a host that is not there': database(
      canary('sql-host', (word) => `host=${word}.invalid dbname=x user=x`)
    ),
    'the connection string names no user that is there': database(
      canary('sql-user', (word) => `host=${host} dbname=postgres user=${word} password=${word}`)
    ),
    'the connection string names no database that is there': database(
      canary('sql-database', (word) => `host=${host} dbname=${word} user=postgres`)
    ),
    'the connection string is none': database(canary('sql-nonsense', (word) => `host=${host} ${word}`)),
    'the connection string has a word that is none': database(
      canary('sql-word', (word) => `host=${host} dbname=postgres user=postgres ${word}=1`)
    ),
    'a parameter is a setting that is not there': statement(
      'select set_config($1, $2, false)',
      canary('sql-setting'),
      'x'
    ),
    'a parameter is no number': statement('select $1::text::int', canary('sql-number')),
    'a parameter breaks a key': statement('insert into taken values ($1)', canary('sql-key')),
    'a parameter names a table that is not there': statement('select $1::text::regclass', canary('sql-table')),
    'a parameter is raised': statement('select fails($1)', canary('sql-raised')),
    'a program repeats its environment': {
      exec: { argv: [process.execPath, ...shouts], env: { TOKEN: canary('exec-env') } }
    },
    'a program repeats its argument': { exec: { argv: [process.execPath, ...shouts, canary('exec-argv')] } },
    'a program does not start': { exec: { argv: ['/nowhere/program', canary('exec-not-started')] } }
  }
}

await run(new World(), async (world) => {
  await new Promise((resolve) => repeats.listen(0, '127.0.0.1', resolve))
  await world.startPostgres()
  world.sql('create table taken (word text primary key)')
  world.sql(
    `create function fails(word text) returns int language plpgsql as $$ begin raise exception 'no %', word
      using detail = word, hint = word; end $$`
  )
  const base = `http://127.0.0.1:${repeats.address().port}`
  const called = Object.entries(places(base, world.directory)).map(([what, members], i) => ({
    what,
    saga: `saga_${i}`,
    tool: { name: `tool_${i}`, effect: 'once', terminal: true, timeout: '10s', retry: { max_unsent: 1 }, ...members }
  }))
  secrets.database = `host=${world.directory} dbname=postgres user=postgres`
  words.forEach((word, name) => {
    if (name === 'sql-key') world.sql(`insert into taken values ('${word}')`)
  })
  const file = join(world.directory, 'secrets.json')
  writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 })
  words.set('ambient', `canary-ambient-${Math.random().toString(36).slice(2, 10)}`)
  process.env.SAGAD_SECRET_AMBIENT = words.get('ambient')
  await world.startSagad(['--secrets', file, '--log-level', 'debug'])
  delete process.env.SAGAD_SECRET_AMBIENT
  await world.define({
    tools: called.map(({ tool }) => tool),
    sagas: called.map(({ saga, tool }) => ({ name: saga, steps: [{ id: 'call', call: tool.name }] }))
  })
  const ids = await Promise.all(called.map(({ saga }) => world.start(saga, {})))
  const ended = await Promise.all(ids.map((id) => world.until(id)))

  await promise('each of these calls goes wrong, and says so', () => {
    called.forEach(({ what }, i) => {
      const { status, error } = ended[i].steps[0]
      expect(status !== 'completed' && error?.code, what, ended[i].steps[0])
      if (/repeat/.test(what) && error.body) expect(JSON.stringify(error.body).includes('[secret]'), what, error)
    })
  })

  const shows = {
    'the saga': async (id) => (await world.read(`/v1/sagas/${id}`)).text,
    'its log': async (id) => (await world.read(`/v1/sagas/${id}/log?limit=500`)).text,
    'its operation': async (id) => (await world.read(`/v1/operations/${(await world.saga(id)).steps[0].key}`)).text,
    'sagactl show': async (id) => world.sagactl(['show', '--full', id]).stdout
  }
  for (const [where, read] of Object.entries(shows)) {
    await promise(`no secret is in what is shown: ${where}`, async () => {
      for (const [i, id] of ids.entries()) {
        const text = await read(id)
        expect(text.length > 100, 'it is shown', text)
        for (const [name, word] of words) expect(!text.includes(word), `${called[i].what}: ${name}`, text)
      }
    })
  }

  await promise('no secret is in a table, a log, a metric or a list of cases', async () => {
    const tables = world
      .sql(`select string_agg(format('%I.%I', schemaname, tablename), ' ') from pg_tables where schemaname = 'sagad'`)
      .split(' ')
    const rows = tables.map((table) => world.sql(`select string_agg(t::text, E'\\n') from ${table} t`)).join('\n')
    expect(rows.includes(ids[0]), 'the tables are read', tables)
    const texts = {
      rows,
      'the log of sagad': readFileSync(world.log('sagad'), 'utf8'),
      metrics: (await world.read('/metrics')).text,
      cases: (await world.read('/v1/escalations?status=open&limit=500')).text
    }
    expectEqual(Object.values(texts).filter((text) => text.length < 100).length, 0, 'all are there')
    for (const [where, text] of Object.entries(texts))
      for (const [name, word] of words)
        expect(
          !text.includes(word),
          `${where}: ${name}`,
          text.slice(Math.max(0, text.indexOf(word) - 300), text.indexOf(word) + 100)
        )
  })

  const ofProcess = (name) => readFileSync(`/proc/${world.sagad.pid}/${name}`, 'latin1')
  await promise('no secret is in what a list of processes shows', () => {
    expect(ofProcess('cmdline').includes('--secrets'), 'its arguments are read')
    expect(ofProcess('environ').includes('SAGAD_SECRET_AMBIENT'), 'its environment is read')
    for (const [name, word] of words)
      for (const place of ['cmdline', 'environ']) expect(!ofProcess(place).includes(word), `${place}: ${name}`)
  })

  await promise('it leaves no core file, whatever ends it, and though the system would keep one', async () => {
    const pattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim()
    const folder = readlinkSync(`/proc/${world.sagad.pid}/cwd`)
    const cores = () => readdirSync(folder).filter((name) => name.startsWith('core'))
    const before = cores()
    const raised = spawnSync('prlimit', ['--core=unlimited:unlimited', '--pid', String(world.sagad.pid)])
    if (!/^core/.test(pattern) || raised.status !== 0) console.log(`# not tried: cores go to ${pattern}`)
    world.sagad.kill('SIGABRT')
    expectEqual((await world.sagad.ended).signal, 'SIGABRT', 'how it ended')
    expectEqual(cores(), before, `core files in ${folder}`)
  })
  repeats.closeAllConnections()
  repeats.close()
})
