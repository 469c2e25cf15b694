// The API over TLS: who may believe it, what is refused, a new certificate under open connections, and who never ends
// a handshake.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const definitions = {
  tools: [{ name: 'say', effect: 'read', builtin: { do: 'echo' } }],
  sagas: [{ name: 'says', steps: [{ id: 'say', call: 'say', with: '${ .input }' }] }]
}

class TlsWorld extends World {
  file(name) {
    return join(this.directory, name)
  }

  openssl(...args) {
    execFileSync('openssl', args, { cwd: this.directory, stdio: 'ignore' })
  }

  // NAME.pem and NAME.key, signed by our own authority.
  makeCertificate(name) {
    const subject = `/CN=localhost/O=${name}`
    const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
    if (name === 'ca') {
      this.openssl(
        'req',
        '-x509',
        '-newkey',
        'ed25519',
        '-nodes',
        '-days',
        '3',
        '-subj',
        '/CN=authority',
        '-keyout',
        'ca.key',
        '-out',
        'ca.pem'
      )
      return
    }
    this.openssl(
      'req',
      '-new',
      '-newkey',
      'ed25519',
      '-nodes',
      '-subj',
      subject,
      '-addext',
      names,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`
    )
    this.openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-days',
      '3',
      '-copy_extensions',
      'copy',
      '-out',
      `${name}.pem`
    )
  }

  // The pair that sagad goes by.
  useCertificate(name) {
    copyFileSync(this.file(`${name}.pem`), this.file('server.pem'))
    copyFileSync(this.file(`${name}.key`), this.file('server.key'))
  }

  tlsArgs() {
    return ['--tls-cert', this.file('server.pem'), '--tls-key', this.file('server.key')]
  }

  // The answer, and the organisation in the certificate that came with it.
  ask(method, path, body, agent, more = {}) {
    const ca = readFileSync(this.file('ca.pem'))
    return new Promise((resolve, reject) => {
      const asked = request({
        host: '127.0.0.1',
        port: this.port,
        method,
        path,
        ca,
        agent,
        headers: { 'content-type': 'application/json', ...more }
      })
      asked.on('error', reject).on('response', (response) => {
        const certificate = response.socket.getPeerCertificate().subject?.O
        const protocol = response.socket.getProtocol()
        let text = ''
        response.on('data', (data) => (text += data))
        response.on('end', () =>
          resolve({ status: response.statusCode, headers: response.headers, text, certificate, protocol })
        )
        response.on('error', reject)
      })
      asked.end(body)
    })
  }

  sagactlTls(args, options = ['--ca-file', this.file('ca.pem')]) {
    return this.sagactlAt(`https://127.0.0.1:${this.port}`, [...options, ...args])
  }

  async reach(what, holds, seconds = 60) {
    for (const end = Date.now() + seconds * 4000; !(await holds()); await sleep(50)) expect(Date.now() < end, what)
  }

  logged(text) {
    return readFileSync(this.log('sagad'), 'utf8').split(text).length - 1
  }
}

await run(new TlsWorld(), async (world) => {
  await world.startPostgres()
  for (const name of ['ca', 'first', 'second']) world.makeCertificate(name)
  world.useCertificate('first')
  world.port = await freePort()
  world.migrate()

  await promise('a certificate without its key, a key of another, a key that others may write: exit 2', () => {
    const end = (...args) =>
      world.sagadOnce(['--database', world.dsn, '--listen', '127.0.0.1:0', ...args], { seconds: 15 })
    const cases = [
      [['--tls-cert', world.file('first.pem')], /give both --tls-cert and --tls-key/],
      [['--tls-cert', world.file('first.pem'), '--tls-key', world.file('second.key')], /cannot be used/],
      [['--tls-cert', world.file('first.key'), '--tls-key', world.file('first.key')], /cannot be used/],
      [['--tls-cert', world.file('none.pem'), '--tls-key', world.file('first.key')], /none\.pem/],
      [['--tls-cert', world.file('first.pem'), '--tls-key', world.file('loose.key')], /loose\.key/]
    ]
    copyFileSync(world.file('first.key'), world.file('loose.key'))
    chmodSync(world.file('loose.key'), 0o666)
    for (const [args, sentence] of cases) {
      const done = end(...args)
      expect(done.status === 2 && sentence.test(done.stderr), args.join(' '), `${done.status} ${done.stderr}`)
    }
  })

  await promise('an address for everybody is served with TLS', () => {
    const issuer = ['--oidc-issuer', 'https://issuer.example', '--oidc-audience', 'sagad']
    const done = world.sagadOnce(['--listen', '0.0.0.0:0', ...issuer, ...world.tlsArgs(), '--check-config'])
    expect(done.status === 0, 'exit code', `${done.status} ${done.stderr}`)
  })

  world.launchSagad(world.tlsArgs())
  await world.reach('sagad is ready over TLS', async () => {
    const answer = await world.ask('GET', '/readyz').catch(() => undefined)
    return answer?.status === 200
  })

  await promise('a saga is defined, started and read over TLS 1.3, by a program and by sagactl', async () => {
    const text = 'x'.repeat(200000)
    expectEqual((await world.ask('POST', '/v1/definitions', JSON.stringify(definitions))).status, 200, 'apply')
    const started = await world.ask('POST', '/v1/sagas?wait=30s', JSON.stringify({ saga: 'says', input: { text } }))
    expectEqual([started.protocol, started.certificate], ['TLSv1.3', 'first'], 'protocol and certificate')
    const { id } = JSON.parse(started.text)
    const shown = world.sagactlTls(['show', id, '-o', 'json', '--jq', '.status'])
    expectEqual([shown.status, shown.stdout.trim()], [0, 'completed'], 'what sagactl shows')
    const followed = world.sagactlTls(['log', id, '--follow'])
    expect(followed.status === 0 && /saga\.completed/.test(followed.stdout), 'the log, as a stream', followed.stderr)
  })

  await promise('sagactl believes only the authority that it was given', () => {
    const strange = world.sagactlTls(['stats'], [])
    expect(strange.status === 6 && /certificate/i.test(strange.stderr), 'without --ca-file', strange.stderr)
    expect(strange.stderr.includes('with --ca-file or SAGACTL_CA_FILE'), 'what the user can do', strange.stderr)
  })

  await promise('sagad mcp believes only the authority that it was given, and says which flag names it', () => {
    const input = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }) + '\n'
    const ask = (...args) =>
      spawnSync(world.sagadPath, ['mcp', '--server', `https://localhost:${world.port}`, ...args], {
        encoding: 'utf8',
        timeout: 60000,
        input
      }).stdout
    const strange = JSON.parse(ask())
    expect(/certificate/i.test(strange.error?.message), 'without --ca-file', strange)
    expect(strange.error.message.includes('with --ca-file'), 'what the user can do', strange)
    expect(JSON.parse(ask('--ca-file', world.file('ca.pem'))).result, 'with --ca-file')
  })

  await promise('a browser sends the cookie of a session over TLS only', async () => {
    const { headers } = await world.ask('DELETE', '/console/session', undefined, undefined, { 'sagad-console': '1' })
    expect(/; Secure$/.test(headers['set-cookie']?.[0]), 'the cookie', headers['set-cookie'])
  })

  await promise('plain HTTP, and TLS before 1.2, get nothing', async () => {
    const plain = await new Promise((resolve) => {
      let text = ''
      const socket = connectPlain(world.port, '127.0.0.1', () =>
        socket.write('GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n')
      )
      socket.on('data', (data) => (text += data.toString('latin1'))).on('error', () => {})
      socket.on('close', () => resolve(text))
    })
    expect(!plain.includes('HTTP/1.1'), 'plain HTTP', plain)
    const old = await new Promise((resolve) => {
      const options = {
        port: world.port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'ALL:@SECLEVEL=0'
      }
      const socket = connect(options, () => resolve('connected'))
      socket.on('error', (error) => resolve(error.code))
    })
    expect(old !== 'connected', 'TLS 1.1', old)
  })

  await promise('clients that never end their handshake do not hold up the others', async () => {
    const sockets = Array.from({ length: 100 }, () => connectPlain(world.port, '127.0.0.1').on('error', () => {}))
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.on('connect', resolve))))
    for (const socket of sockets) socket.write(Buffer.from([0x16, 0x03, 0x01]))
    const answers = await Promise.all(Array.from({ length: 50 }, () => world.ask('GET', '/readyz')))
    expectEqual(new Set(answers.map((answer) => answer.status)), new Set([200]), 'statuses')
    const ends = sockets.map((socket) => new Promise((resolve) => socket.on('close', resolve)))
    for (const socket of sockets) socket.resume()
    await Promise.all(ends) // sagad gives a connection ten seconds for its first head
  })

  await promise('SIGHUP brings a new certificate to new connections; open ones go on', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expectEqual((await world.ask('GET', '/readyz', undefined, agent)).certificate, 'first', 'before')
    world.useCertificate('second')
    world.sagad.kill('SIGHUP')
    await world.reach('the new one is read', async () => world.logged('certificate_read') === 1)
    expectEqual((await world.ask('GET', '/readyz', undefined, agent)).certificate, 'first', 'an open connection')
    expectEqual((await world.ask('GET', '/readyz')).certificate, 'second', 'a new connection')
    copyFileSync(world.file('first.key'), world.file('server.key'))
    world.sagad.kill('SIGHUP')
    await world.reach('the wrong pair is told', async () => world.logged('certificate_not_read') === 1)
    expectEqual((await world.ask('GET', '/readyz')).certificate, 'second', 'after a wrong pair')
    agent.destroy()
    world.sagad.kill('SIGTERM')
    expectEqual((await world.sagad.ended).code, 0, 'exit code')
  })
})
