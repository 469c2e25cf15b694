// What a start goes by: `--check-config` refuses what a start would refuse and changes nothing, and `sagad dev` names
// the tokens that hold. Its virtual clock: what waits is due when the clock is moved, and no other start has one.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

await run(new World(), async (world) => {
  const file = (name, text) => {
    const path = join(world.directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  const tokens = file(
    'tokens.json',
    JSON.stringify({ tokens: [{ name: 'ada', sha256: sha256('a word'), namespace: 'default', role: 'admin' }] })
  )
  const issuer = ['--oidc-issuer', 'https://issuer.example', '--oidc-audience', 'sagad']
  const check = (...args) => world.sagadOnce([...args, '--check-config'])

  await promise('--check-config refuses what a start would refuse, with the same sentence', () => {
    const misspelt = file('misspelt.json', '{"tokens": [{"name": "ada", "role": "king"}]}')
    for (const [args, sentence] of [
      [['--tls-cert', tokens], /give both --tls-cert and --tls-key/],
      [['--tls-cert', tokens, '--tls-key', tokens], /cannot be used/],
      [['--listen', 'here'], /"here" is no address to listen on/],
      [['--listen', '192.0.2.1:0', '--tokens', tokens], /this machine has no such address/],
      [['--listen', '0.0.0.0:8077'], /without tokens sagad listens on loopback only/],
      [
        ['--listen', '0.0.0.0:0', '--tokens', tokens],
        /no plain HTTP on 0\.0\.0\.0[^]*--tls-cert and --tls-key[^]*--behind-proxy/
      ],
      [['--listen', '0.0.0.0:0', ...issuer], /no plain HTTP on 0\.0\.0\.0/],
      [['--listen', '[::]:0', '--tokens', tokens], /no plain HTTP on \[::\]/],
      [['--tokens', misspelt], /role/],
      [['--retention', '30d,soon'], /--retention cannot be read at "soon"[^]*30d,NAMESPACE=60d/],
      [['--oidc-issuer', 'https://issuer.example'], /--oidc-audience/],
      [['--oidc-issuer', 'http://issuer.example', '--oidc-audience', 'sagad'], /http is for loopback only/],
      [['--oidc-roles', 'admins=admin'], /--oidc-issuer/],
      [['--tokens', join(world.directory, 'none')], /none/],
      [['--secrets', misspelt], /secrets/],
      [['--quotas', misspelt], /quotas/],
      [['--payload-keys', misspelt], /the file of payload keys/],
      [['--budgets', misspelt], /budgets/],
      [['--notify', misspelt], /the file of notifications is wrong/],
      [['--database', 'hots=nowhere'], /connection string/],
      [['--egress-deny', 'somewhere'], /egress/],
      [['--exec-path', 'bin'], /--exec-path/],
      [['--exec-user', 'nobody-of-this-name'], /--exec-user/],
      [['--clock', 'virtual'], /only `sagad dev` may have a virtual clock/],
      [['--log-level', 'loud'], /log-level/]
    ]) {
      const started = world.sagadOnce(
        ['--database', 'host=127.0.0.1 port=1 user=x', '--listen', '127.0.0.1:0', ...args],
        { seconds: 60 }
      )
      for (const done of [check(...args), started])
        expect(done.status === 2 && sentence.test(done.stderr), args.join(' '), `${done.status} ${done.stderr}`)
    }
  })
  await promise('--check-config accepts good settings, while another process has the port', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const done = check('--listen', `127.0.0.1:${server.address().port}`, '--tokens', tokens)
    expectEqual([done.status, done.stdout], [0, 'the settings are good\n'], 'exit code and sentence')
    const open = ['--listen', '0.0.0.0:0', '--behind-proxy']
    expectEqual(check(...open, '--tokens', tokens).status, 0, 'any address behind a proxy')
    expectEqual(check(...open, ...issuer).status, 0, 'any address behind a proxy with an issuer')
    expectEqual(check(...open).status, 2, 'any address without tokens')
    server.close()
  })
  await promise('--check-config refuses a port for which this process lacks the privilege', () => {
    // A user namespace of its own takes the privileges away, and a network of its own has the bound of a new machine.
    const done = spawnSync(
      'unshare',
      ['--user', '--net', world.sagadPath, '--listen', '0.0.0.0:80', '--behind-proxy', '--check-config', ...issuer],
      { encoding: 'utf8' }
    )
    if (/unshare failed/.test(done.stderr)) return console.log('  (not tried: no namespaces here)')
    expect(
      done.status === 2 && /0\.0\.0\.0:80[^]*ports below 1024 need a privilege/.test(done.stderr),
      'exit code and sentence',
      `${done.status} ${done.stderr}`
    )
  })
  await promise('sagad dev --check-config makes no folder', () => {
    const folder = join(world.directory, 'checked')
    const done = world.sagadOnce(['dev', '--dir', folder, '--listen', '127.0.0.1:0', '--check-config'])
    expectEqual([done.status, existsSync(folder)], [0, false], 'exit code and folder')
  })
  await promise('sagad dev --tokens names its file, and makes no token that would not hold', async () => {
    const folder = join(world.directory, 'dev')
    const port = await freePort()
    const dev = world.launch('dev', world.sagadPath, [
      ...['dev', '--dir', folder, '--listen', `127.0.0.1:${port}`, '--tokens', tokens]
    ])
    const said = () => readFileSync(world.log('dev'), 'utf8')
    while (!/token/.test(said()) && !dev.end) await sleep(50)
    expect(!dev.end, 'it runs', said())
    const me = (token) => fetch(`http://127.0.0.1:${port}/v1/me`, { headers: { authorization: `Bearer ${token}` } })
    expectEqual((await me('a word')).status, 200, 'a token of the file')
    expect(said().includes(`sagad: its tokens are those of ${tokens}`), 'the file', said())
    expect(!/sagad: token /.test(said()) && !existsSync(join(folder, 'token')), 'no other token', said())
    const clock = await fetch(`http://127.0.0.1:${port}/v1/clock`, { headers: { authorization: 'Bearer a word' } })
    const problem = await clock.json()
    expectEqual([clock.status, /real time/.test(problem.title + problem.detail)], [404, true], JSON.stringify(problem))
    dev.kill('SIGTERM')
    expectEqual((await dev.ended).code, 0, 'exit code')
    const other = world.sagadOnce(['dev', '--clock', 'virtual', '--dir', folder, '--listen', '127.0.0.1:0'])
    expect(other.status === 2 && /without a virtual clock/.test(other.stderr), 'it gets no clock later', other.stderr)
  })

  await promise('what waits for a time is due when the virtual clock is moved, once each', async () => {
    const folder = join(world.directory, 'clock')
    const port = await freePort()
    world.port = port
    const args = ['dev', '--clock', 'virtual', '--dir', folder, '--listen', `127.0.0.1:${port}`, '--tokens', tokens]
    const dev = world.launch('clock', world.sagadPath, args)
    const said = () => readFileSync(world.log('clock'), 'utf8')
    while (!/ready at/.test(said()) && !dev.end) await sleep(50)
    expect(!dev.end, 'it runs', said())
    const headers = { authorization: 'Bearer a word' }
    const ask = async (method, path, body, status = 200) => {
      const answer = await world.api(method, path, body, { headers })
      expectEqual(answer.status, status, `${method} ${path} ${answer.text}`)
      return answer.json
    }
    const start = async (saga, id) => (await ask('POST', '/v1/sagas', { saga, id, input: {} }, 201)).id
    const ended = async (id) => (await ask('GET', `/v1/sagas/${id}?wait=20s`)).status
    await ask('POST', '/v1/definitions', {
      tools: [
        { name: 'up', builtin: { do: 'echo' }, effect: 'read' },
        {
          name: 'down',
          builtin: { do: 'fail', outcome: 'retry' },
          effect: 'idempotent',
          terminal: true,
          retry: { max_attempts: 2, initial: '2h', max: '2h' }
        }
      ],
      sagas: [
        { name: 'nap', steps: [{ id: 'a', sleep: '3d' }] },
        { name: 'asks', steps: [{ id: 'go', signal: { name: 'go', timeout: '2d' } }] },
        { name: 'calls', steps: [{ id: 'a', call: 'up' }] },
        { name: 'tries', steps: [{ id: 'a', call: 'down' }] },
        { name: 'tick', steps: [{ id: 'a', sleep: '1ms' }] }
      ]
    })
    await ask(
      'POST',
      '/v1/schedules',
      { name: 'hourly', saga: 'tick', every: '1h', overlap: 'all', catch_up: 'all' },
      201
    )
    const begun = Date.parse((await ask('GET', '/v1/clock')).now)
    const until = new Date(begun + 86400000).toISOString()
    await ask('POST', '/v1/holds', { tool: 'up', note: 'a day', until }, 201)
    const [nap, asks, held] = [await start('nap', 'n'), await start('asks', 'a'), await start('calls', 'c')]
    expectEqual((await ask('GET', `/v1/sagas/${held}?wait=1s`)).status, 'running', 'what is held waits')
    const before = await ask('GET', '/v1/clock')
    expect(Date.parse(before.next_at) - begun < 3700000, 'the schedule is next', JSON.stringify(before))

    const next = await ask('POST', '/v1/clock', { to: 'next' })
    expect(Date.parse(next.now) >= Date.parse(before.next_at), 'it went there', JSON.stringify(next))
    const tries = await start('tries', 't')
    const waiting = async () => (await ask('GET', '/v1/sagas?waits_for=retry')).items.length
    while ((await waiting()) === 0) await sleep(50)
    const moved = await ask('POST', '/v1/clock', { by: '3d' })
    expectEqual(moved.ahead_ms, next.ahead_ms + 3 * 86400000, 'three days, to the millisecond')
    expectEqual(
      [await ended(nap), await ended(asks), await ended(held), await ended(tries)],
      ['completed', 'compensated', 'completed', 'compensated'],
      'a sleep, the patience for a signal, the end of a hold, and the last retry'
    )
    const hours = 1 + 72 // the clock went to the first instant, and three days on
    const instants = async () =>
      (await ask('GET', '/v1/sagas?tag.schedule=hourly&limit=500')).items.map((saga) => saga.business_id)
    const reach = async (count) => {
      for (const end = Date.now() + 30000; (await instants()).length < count; await sleep(50))
        expect(Date.now() < end, `${count} instants`, JSON.stringify(await ask('GET', '/v1/schedules/hourly')))
    }
    await reach(hours)
    await ask('POST', '/v1/clock', { by: '1h' })
    await reach(hours + 1)
    expectEqual(
      [(await instants()).length, new Set(await instants()).size],
      [hours + 1, hours + 1],
      'one for each hour'
    )

    await ask('POST', '/v1/clock', { to: '2020-01-01T00:00:00Z' }, 422)
    await ask('POST', '/v1/clock', { by: '1d', to: 'next' }, 422)
    expect(!/lease|lost|fenced/.test(said().replaceAll('leases_taken', '')), 'no lease was over', said())
    dev.kill('SIGTERM')
    expectEqual((await dev.ended).code, 0, 'exit code')
    const real = world.sagadOnce(['dev', '--dir', folder, '--listen', '127.0.0.1:0'])
    expect(real.status === 2 && /has the virtual clock/.test(real.stderr), 'no engine without it', real.stderr)
  })
})
