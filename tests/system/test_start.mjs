// What a start goes by: `--check-config` refuses what a start would refuse and changes nothing, and `sagad dev` names
// the tokens that hold.
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
      [['--oidc-issuer', 'https://issuer.example'], /--oidc-audience/],
      [['--oidc-issuer', 'http://issuer.example', '--oidc-audience', 'sagad'], /http is for loopback only/],
      [['--oidc-roles', 'admins=admin'], /--oidc-issuer/],
      [['--tokens', join(world.directory, 'none')], /none/],
      [['--secrets', misspelt], /secrets/],
      [['--quotas', misspelt], /quotas/],
      [['--budgets', misspelt], /budgets/],
      [['--notify', misspelt], /the file of notifications is wrong/],
      [['--database', 'hots=nowhere'], /connection string/],
      [['--egress-deny', 'somewhere'], /egress/],
      [['--exec-path', 'bin'], /--exec-path/],
      [['--exec-user', 'nobody-of-this-name'], /--exec-user/],
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
    dev.kill('SIGTERM')
    expectEqual((await dev.ended).code, 0, 'exit code')
  })
})
