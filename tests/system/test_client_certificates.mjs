// Client certificates: whose rights one has, which are refused and in which words, what was revoked meanwhile, and what
// a token or a web page beside it changes.
import { execFileSync } from 'node:child_process'
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
const hash = (text) => createHash('sha256').update(text).digest('hex')

class CertifiedWorld extends World {
  file(name) {
    return join(this.directory, name)
  }

  openssl(...args) {
    execFileSync('openssl', args, { cwd: this.directory, stdio: 'ignore' })
  }

  makeAuthority(ca) {
    this.openssl('req', '-x509', ...ec, '-days', '3', '-subj', `/CN=${ca}`, '-keyout', `${ca}.key`, '-out', `${ca}.pem`)
  }

  // NAME.pem and NAME.key.
  makeCertificate(name, names, { ca = 'ca', days = '3', purpose = 'clientAuth' } = {}) {
    const extensions = ['-addext', `subjectAltName=${names}`, '-addext', `extendedKeyUsage=${purpose}`]
    this.openssl('req', '-new', ...ec, '-subj', '/CN=x', ...extensions, '-keyout', `${name}.key`, '-out', `${name}.csr`)
    const signed = ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-days', days, '-copy_extensions', 'copy']
    this.openssl('x509', '-req', '-in', `${name}.csr`, ...signed, '-out', `${name}.pem`)
  }

  // Puts the certificate on the list of the authority, and the list into the file that sagad reads.
  revoke(name) {
    const list = ['ca', '-config', 'ca.cnf', '-keyfile', 'ca.key', '-cert', 'ca.pem']
    this.openssl(...list, '-revoke', `${name}.pem`)
    this.openssl(...list, '-gencrl', '-out', 'ca.crl')
    copyFileSync(this.file('ca.pem'), this.file('trusted.pem'))
    appendFileSync(this.file('trusted.pem'), readFileSync(this.file('ca.crl')))
  }

  ask(path, { certificate, agent, headers = {}, method = 'GET', body } = {}) {
    const pair = certificate && {
      cert: readFileSync(this.file(`${certificate}.pem`)),
      key: readFileSync(this.file(`${certificate}.key`))
    }
    return new Promise((resolve, reject) => {
      const asked = request({
        host: '127.0.0.1',
        port: this.port,
        method,
        path,
        agent: agent ?? false,
        ca: readFileSync(this.file('ca.pem')),
        headers: { 'content-type': 'application/json', ...headers },
        ...pair
      })
      asked.on('error', reject).on('response', (response) => {
        let text = ''
        response.on('data', (data) => (text += data)).on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode, json: JSON.parse(text || '{}') }))
      })
      asked.end(body)
    })
  }

  async refused(certificate, status, sentence, more = {}) {
    const answer = await this.ask('/v1/me', { certificate, ...more })
    expect(answer.status === status && sentence.test(answer.json.detail), certificate, JSON.stringify(answer))
  }

  logged(text) {
    return readFileSync(this.log('sagad'), 'utf8').split(text).length - 1
  }
}

await run(new CertifiedWorld(), async (world) => {
  await world.startPostgres()
  for (const ca of ['ca', 'foreign']) world.makeAuthority(ca)
  world.makeCertificate('server', 'DNS:localhost,IP:127.0.0.1', { purpose: 'serverAuth' })
  world.makeCertificate('billing', 'URI:spiffe://shop.example/billing,DNS:billing.shop.example')
  world.makeCertificate('ada', 'email:ada@shop.example')
  world.makeCertificate('unknown', 'DNS:unknown.shop.example')
  world.makeCertificate('both', 'URI:spiffe://shop.example/billing,email:ada@shop.example')
  world.makeCertificate('expired', 'email:ada@shop.example', { days: '-1' })
  world.makeCertificate('strange', 'email:ada@shop.example', { ca: 'foreign' })
  copyFileSync(world.file('ca.pem'), world.file('trusted.pem'))
  writeFileSync(world.file('index.txt'), '')
  writeFileSync(world.file('crlnumber'), '01\n')
  writeFileSync(
    world.file('ca.cnf'),
    '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=crlnumber\ndefault_md=sha256\ndefault_crl_days=2\n'
  )
  const rows = [
    { name: 'billing', certificate: 'URI:spiffe://shop.example/billing', namespace: 'shop', role: 'agent' },
    { name: 'ada', certificate: 'email:ada@shop.example', namespaces: ['shop', 'travel'], role: 'operator' },
    { name: 'a-reader', sha256: hash('the-reader'), namespace: 'shop', role: 'reader' }
  ]
  const tokens = world.file('tokens.json')
  const write = (list) => writeFileSync(tokens, JSON.stringify({ tokens: list }), { mode: 0o600 })
  write(rows)
  const tls = ['--tls-cert', world.file('server.pem'), '--tls-key', world.file('server.key')]
  const trusts = ['--tls-client-ca', world.file('trusted.pem')]
  const bearer = (text) => ({ authorization: `Bearer ${text}` })
  world.port = await freePort()
  world.migrate()

  await promise('authorities without TLS or without rows, and a file that has none, are refused: exit 2', () => {
    const cases = [
      [[...trusts, '--tokens', tokens], /client certificates need TLS/],
      [[...trusts, ...tls], /client certificates need TLS/],
      [[...tls, '--tokens', tokens, '--tls-client-ca', world.file('server.key')], /--tls-client-ca cannot be used/]
    ]
    for (const [args, sentence] of cases) {
      const done = world.sagadOnce(['--database', world.dsn, '--listen', '127.0.0.1:0', ...args, '--check-config'])
      expect(done.status === 2 && sentence.test(done.stderr), args.join(' '), `${done.status} ${done.stderr}`)
    }
  })

  world.launchSagad([...tls, ...trusts, '--tokens', tokens])
  for (let status = 0; status !== 200; await sleep(20)) {
    expect(!world.sagad.end, 'sagad runs')
    status = await world.ask('/readyz').then(
      (answer) => answer.status,
      () => 0
    )
  }

  await promise('a certificate has the name, the role and the namespaces of its row', async () => {
    const billing = await world.ask('/v1/me', { certificate: 'billing' })
    const { name, namespace, role, expires_at } = billing.json
    expectEqual([billing.status, name, namespace, role], [200, 'billing', 'shop', 'agent'], 'billing')
    expect(Date.parse(expires_at) < Date.now() + 3 * 86400000 + 1000, 'it ends with the certificate', expires_at)
    const ada = await world.ask('/v1/me', { certificate: 'ada', headers: { 'sagad-namespace': 'travel' } })
    expectEqual([ada.json.name, ada.json.namespace], ['ada', 'travel'], 'ada')
    const define = await world.ask('/v1/definitions', { certificate: 'ada', method: 'POST', body: '{"tools":[]}' })
    expectEqual(define.status, 403, 'an operator defines nothing')
  })

  await promise('sagactl shows a certificate with --cert and --key', () => {
    const server = `https://127.0.0.1:${world.port}`
    const pair = ['--cert', world.file('ada.pem'), '--key', world.file('ada.key'), '--ca-file', world.file('ca.pem')]
    const done = world.sagactlAt(server, [...pair, 'list', '-o', 'json'])
    expectEqual(done.status, 0, done.stderr)
    const half = world.sagactlAt(server, [...pair.slice(0, 2), 'list'])
    expect(half.status === 2 && /go together/.test(half.stderr), 'a certificate without its key', half.stderr)
  })

  await promise('who shows none, or one that is not good, is refused in words', async () => {
    await world.refused(undefined, 401, /send the header Authorization/)
    await world.refused('unknown', 401, /no row of the tokens file has a name of this client certificate/)
    await world.refused('both', 401, /stand in two rows/)
    await world.refused('expired', 401, /has expired/)
    await world.refused('strange', 401, /comes from no authority that is trusted here/)
    await world.refused('server', 401, /is none for clients/)
    expectEqual((await world.ask('/readyz', { certificate: 'strange' })).status, 200, 'what is public stays public')
  })

  await promise('a token beside a certificate has its own rights, and none beside one that is not good', async () => {
    const beside = await world.ask('/v1/me', { certificate: 'ada', headers: bearer('the-reader') })
    expectEqual([beside.json.name, beside.json.role], ['a-reader', 'reader'], 'a good one')
    await world.refused('ada', 401, /this token is not known here/, { headers: bearer('guessed') })
    await world.refused('expired', 401, /has expired/, { headers: bearer('the-reader') })
    const name = rows[0].certificate
    const preimage = `\0\0\0${String.fromCharCode(name.length)}${name}`
    for (const text of [name, preimage, `sagad client certificate${preimage}`]) {
      const session = await world.ask('/console/session', {
        method: 'POST',
        headers: { 'sagad-console': '1' },
        body: JSON.stringify({ token: text })
      })
      expect([400, 401].includes(session.status), 'no text is a certificate', session.status)
    }
  })

  await promise('a web page has no certificate to use, and a certificate makes neither grant nor link', async () => {
    const open = { certificate: 'billing', method: 'POST', body: '{"open":true}' }
    const from = (headers) => world.ask('/v1/sagas', { ...open, headers })
    const ours = { 'sec-fetch-site': 'same-origin', origin: `https://localhost:${world.port}` }
    expectEqual((await from({ origin: 'https://evil.example' })).status, 403, 'of another origin')
    expectEqual((await from({ 'sec-fetch-site': 'cross-site', 'sagad-console': '1' })).status, 403, 'cross-site')
    expectEqual((await from({ ...ours, host: `localhost:${world.port}` })).status, 403, 'without the header')
    const good = { ...ours, host: `localhost:${world.port}`, 'sagad-console': '1' }
    expectEqual((await from(good)).status, 201, 'the console itself')
    expectEqual((await from({})).status, 201, 'no browser')
    const make = (path, body) => world.ask(path, { certificate: 'billing', method: 'POST', body })
    expectEqual((await make('/v1/grants', '{"run":"r"}')).status, 403, 'a grant')
    expectEqual((await make('/console/links', '{}')).status, 403, 'a link')
  })

  await promise('a list of revoked ones holds with SIGHUP for open connections and held answers, too', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const asked = { certificate: 'billing', agent }
    const opened = await world.ask('/v1/sagas', { ...asked, method: 'POST', body: '{"open":true}' })
    expectEqual(opened.status, 201, 'before')
    const waiting = { certificate: 'billing', agent: new Agent({ keepAlive: true, maxSockets: 1 }) }
    await world.ask('/v1/me', waiting)
    const held = world.ask(`/v1/sagas/${opened.json.id}?wait=5m`, waiting)
    await world.ask('/v1/me', { certificate: 'ada' }) // its handshake takes longer than that request on its way
    world.revoke('billing')
    const before = world.logged('certificate_read')
    world.sagad.kill('SIGHUP')
    while (world.logged('certificate_read') === before) await sleep(20)
    const answer = await world.ask('/v1/me', asked)
    expect(answer.status === 401 && /was revoked/.test(answer.json.detail), 'an open one', JSON.stringify(answer))
    expectEqual((await held).status, 401, 'a held one')
    expectEqual((await world.ask('/v1/me', { certificate: 'ada' })).status, 200, 'another one')
    agent.destroy()
    waiting.agent.destroy()
  })

  await promise('a row that is gone ends its certificate; a wrong file of authorities changes nothing', async () => {
    write(rows.filter((row) => row.name !== 'ada'))
    writeFileSync(world.file('trusted.pem'), 'nothing')
    const before = world.logged('certificate_not_read')
    world.sagad.kill('SIGHUP')
    while (world.logged('certificate_not_read') === before) await sleep(20)
    await world.refused('ada', 401, /no row of the tokens file/)
    await world.refused('billing', 401, /was revoked/)
    world.sagad.kill('SIGTERM')
    expectEqual((await world.sagad.ended).code, 0, 'exit code')
  })
})
