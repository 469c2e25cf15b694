// JWTs of an issuer beside the tokens of a file: whose they are, what is never accepted, new keys, a flood of unknown
// ones, and an issuer that is away.
import { createHash, createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Issuer, jwt, makeKey } from '../lib/issuer.mjs'
import { World, eventually, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const definitions = {
  tools: [{ name: 'nap', builtin: { do: 'sleep', for: '10m' }, effect: 'idempotent', timeout: '20m', terminal: true }],
  sagas: [{ name: 'naps', steps: [{ id: 'nap', call: 'nap' }] }]
}

await run(new World(), async (world) => {
  await world.startPostgres()
  const issuer = new Issuer()
  await issuer.open()
  issuer.keys = ['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'RS512'].map((alg) => makeKey(`key-${alg}`, alg))
  const tokens = join(world.directory, 'tokens.json')
  const sha256 = createHash('sha256').update('a.b.c').digest('hex')
  const root = { name: 'root', sha256, namespace: '*', role: 'admin' }
  writeFileSync(tokens, JSON.stringify({ tokens: [root] }), { mode: 0o600 })
  const settings = [
    ...['--oidc-issuer', issuer.url, '--oidc-audience', issuer.audience, '--oidc-role-claim', '/realm/roles'],
    ...['--oidc-namespace-claim', 'tenant', '--oidc-roles', 'sagad-admins=admin,callers=agent,viewers=reader']
  ]
  settings.push('--drain', '0s') // a nap that is under way at the end of a sagad
  await world.startSagad(['--tokens', tokens, ...settings])

  const ask = (token, method = 'GET', path = '/v1/me', body = undefined, headers = {}) =>
    world.api(method, path, body, { headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers } })
  const calm = (...args) => world.calm(() => ask(...args))
  const rights = (roles, tenant = 'default') => ({ realm: { roles }, tenant })
  const admin = (more, options) => issuer.sign({ ...rights(['staff', 'sagad-admins']), ...more }, options)

  await promise('a JWT of each kind of key has the rights that its claims give', async () => {
    for (const key of issuer.keys) {
      const { status, json, text } = await calm(issuer.sign(rights('callers', ['default', 'pay']), { key }))
      expectEqual(status, 200, `${key.alg}: ${text}`)
      expectEqual(
        [json.name, json.namespace, json.namespaces, json.role],
        ['oidc:ada', 'default', ['default', 'pay'], 'agent'],
        key.alg
      )
    }
    const agent = issuer.sign(rights('callers', ['default', 'pay']))
    const named = (namespace) => calm(agent, 'GET', '/v1/me', undefined, { 'sagad-namespace': namespace })
    expectEqual((await named('pay')).json.namespace, 'pay', 'a namespace of its own')
    expectEqual((await named('other')).status, 403, 'another namespace')
    expectEqual((await calm(agent, 'POST', '/v1/definitions', definitions)).status, 403, 'more than its role')
    expectEqual((await calm(admin(), 'POST', '/v1/definitions', definitions)).status, 200, 'its role')
    expectEqual((await calm('a.b.c')).json.name, 'root', 'a token of the file')
  })

  const declared = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  }
  const message = (token, method, name, params) =>
    calm(
      token,
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: { ...params._meta, ...declared } } },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': name }
    )
  // A call becomes a task after 45 s, in which the promises below are kept.
  const napping = message(issuer.sign(rights('callers')), 'tools/call', 'nap', {
    name: 'nap',
    arguments: {},
    _meta: { 'sagad/run': 'napping' }
  })

  await promise('an admin of one namespace sees nothing that is of all', async () => {
    expectEqual((await calm(admin(), 'GET', '/v1/engines')).status, 403, 'the engines')
    expectEqual((await calm('a.b.c', 'GET', '/v1/engines')).status, 200, 'the engines, to the admin of all')
    for (const [what, claims] of [
      ['no role that is known', rights(['staff'])],
      ['no namespace', rights(['sagad-admins'], null)],
      ['all namespaces', rights(['sagad-admins'], '*')],
      ['no subject', { ...rights(['sagad-admins']), sub: undefined }]
    ])
      expectEqual((await calm(issuer.sign(claims))).status, 403, what)
  })

  await promise(
    'what the issuer has not signed for this sagad and this time is refused, and nobody else is asked',
    async () => {
      const now = Math.floor(Date.now() / 1000)
      const visited = []
      const stranger = createServer((request, response) => (visited.push(request.url), response.end('{"keys":[]}')))
      await new Promise((resolve) => stranger.listen(0, '127.0.0.1', resolve))
      const address = `http://127.0.0.1:${stranger.address().port}/keys`
      const [key] = issuer.keys
      const mine = makeKey(key.kid, 'RS256')
      const mineOfCurve = makeKey(key.kid, 'ES256')
      const [header, claims, signature] = admin().split('.')
      const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const text = (alg, more) => `${encode({ alg, kid: key.kid, ...more })}.${claims}`
      const byHmac = (secret, alg = 'HS256') =>
        `${text(alg)}.${createHmac('sha256', secret).update(text(alg)).digest('base64url')}`
      const attacks = {
        'no algorithm': `${text('none')}.`,
        'no algorithm, with a signature': `${text('none')}.${signature}`,
        'the public key as the secret of an HMAC': byHmac(key.publicKey.export({ format: 'pem', type: 'spki' })),
        'the same, as DER': byHmac(key.publicKey.export({ format: 'der', type: 'spki' })),
        'an HMAC that is called RS256': byHmac('secret', 'RS256'),
        'a key of its own under a known name': jwt(mine, issuer.claims(rights('sagad-admins'))),
        'a key of another kind under a known name': jwt(mineOfCurve, issuer.claims(rights('sagad-admins'))),
        'a key in the header': jwt(mine, issuer.claims(rights('sagad-admins')), { jwk: mine.jwk }),
        'an address of keys in the header': jwt(mine, issuer.claims(rights('sagad-admins')), {
          jku: address,
          x5u: address
        }),
        'another algorithm of the same key': jwt({ ...key, alg: 'RS512' }, issuer.claims(rights('sagad-admins'))),
        'other claims': `${header}.${encode(issuer.claims({ ...rights('sagad-admins'), sub: 'eve' }))}.${signature}`,
        'no signature': `${header}.${claims}.`,
        'a signature of zeros': `${header}.${claims}.${'A'.repeat(signature.length)}`,
        'another audience': admin({ aud: 'shop' }),
        'no audience': admin({ aud: undefined }),
        'another issuer': admin({ iss: 'https://issuer.example' }),
        'an end that is over': admin({ exp: now - 120 }),
        'no end': admin({ exp: undefined }),
        'a beginning to come': admin({ nbf: now + 600 }),
        'another kind of token': admin({}, { header: { typ: 'logout+jwt' } }),
        extensions: admin({}, { header: { crit: ['exp'] } }),
        'more than 8192 bytes': admin({ note: 'x'.repeat(9000) })
      }
      for (const [what, token] of Object.entries(attacks)) {
        const { status, json } = await calm(token)
        expectEqual([status, json?.type], [401, 'urn:sagad:problem:unauthenticated'], what)
      }
      expectEqual(
        (await ask(`${'A'.repeat(20000)}.b.c`).catch(() => ({ status: 431 }))).status >= 400,
        true,
        'a huge one'
      )
      expectEqual(visited, [], 'what the stranger was asked for')
      expectEqual((await calm(admin())).status, 200, 'the one that all are made of')
      stranger.close()
    }
  )

  await promise('/mcp says where its tokens come from', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const refused = await calm(admin({ aud: 'shop' }), 'POST', '/mcp', list)
    expect(
      /^Bearer .*error="invalid_token"/.test(refused.headers.get('www-authenticate')),
      'the challenge',
      refused.text
    )
    const metadata = await calm(undefined, 'GET', '/.well-known/oauth-protected-resource')
    expectEqual(metadata.json.authorization_servers, [issuer.url], 'authorization servers')
    expectEqual((await calm(issuer.sign(rights('callers')), 'POST', '/mcp', list)).status, 200, 'with a JWT')
  })

  const self = { 'sagad-console': '1' }
  const signIn = async (body) => {
    const answer = await calm(undefined, 'POST', '/console/session', body, self)
    return { ...answer, cookie: { ...self, cookie: answer.headers.get('set-cookie')?.split(';')[0] } }
  }
  const expiresIn = (seconds) => ({ exp: Math.floor(Date.now() / 1000) - 60 + seconds }) // sagad gives 60 s more

  await promise('a JWT begins a session and makes a link; both have its rights, and no others', async () => {
    const token = issuer.sign({ ...rights('callers', ['default', 'pay']) })
    const begun = await signIn({ token })
    expectEqual([begun.status, begun.json.name, begun.json.role], [200, 'oidc:ada', 'agent'], begun.text)
    const by = (method, path, body, more) => calm(undefined, method, path, body, { ...begun.cookie, ...more })
    expectEqual((await by('GET', '/v1/me')).json.name, 'oidc:ada', 'the session')
    expectEqual(
      (await by('GET', '/v1/me', undefined, { 'sagad-namespace': 'pay' })).json.namespace,
      'pay',
      'another one'
    )
    expectEqual((await by('POST', '/v1/definitions', definitions)).status, 403, 'more than its role')
    expectEqual((await by('POST', '/console/links', {})).status, 403, 'a session makes no link')
    expectEqual((await by('GET', '/v1/me', undefined, { 'sagad-console': '0' })).status, 403, 'of another page')

    const link = await calm(token, 'POST', '/console/links', {})
    const linked = await signIn({ code: link.json.code })
    expectEqual([link.status, linked.status, linked.json.name], [200, 200, 'oidc:ada'], linked.text)
    expectEqual((await signIn({ code: link.json.code })).status, 401, 'a link, once more')
    expectEqual((await signIn({ token: admin({ aud: 'shop' }) })).status, 401, 'a JWT for another service')
    const large = issuer.sign({ ...rights('callers'), groups: 'g'.repeat(5500) })
    expect(large.length > 7500 && large.length <= 8192, 'a large JWT', large.length)
    expectEqual((await signIn({ token: large })).status, 200, 'a JWT nearly as large as may be')
    await calm(undefined, 'DELETE', '/console/session', undefined, begun.cookie)
    expectEqual((await by('GET', '/v1/me')).status, 401, 'after signing out')
  })

  await promise('a JWT makes grants for calls, which end no later than it', async () => {
    const token = issuer.sign(rights('callers'))
    const made = await calm(token, 'POST', '/v1/grants', { run: 'by-jwt' })
    expectEqual(made.status, 201, made.text)
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url'))
    expect(Date.parse(made.json.expires_at) <= (exp + 60) * 1000, 'its end', made.text)
    const late = { run: 'late', expires_at: new Date((exp + 3600) * 1000).toISOString() }
    expectEqual((await calm(token, 'POST', '/v1/grants', late)).status, 422, 'one that outlives the JWT')
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const by = () => calm(undefined, 'POST', `/mcp/g/${made.json.token}`, ping)
    expectEqual((await by()).status, 200, 'a call by the grant')
    const listed = (await calm(admin(), 'GET', '/v1/grants')).json.items.find((one) => one.id === made.json.id)
    expectEqual([listed.status, listed.issuer], ['in-force', 'oidc:ada'], 'the list')
    expectEqual((await calm(admin(), 'DELETE', `/v1/grants/${made.json.id}`)).status, 200, 'revoked')
    expectEqual((await by()).status, 401, 'a call after that')
    expectEqual(
      (await calm(issuer.sign(rights('viewers')), 'POST', '/v1/grants', { run: 'r' })).status,
      403,
      'a reader'
    )
  })

  await promise('a session and a grant of a JWT are over when it is', async () => {
    for (let left = 4; ; left *= 2) {
      const token = issuer.sign({ ...rights('callers'), ...expiresIn(left) })
      const begun = await signIn({ token })
      const made = await calm(token, 'POST', '/v1/grants', { run: 'brief' })
      const ping = () => calm(undefined, 'POST', `/mcp/g/${made.json.token}`, { jsonrpc: '2.0', id: 1, method: 'ping' })
      const both = async () => [
        (await calm(undefined, 'GET', '/v1/me', undefined, begun.cookie)).status,
        (await ping()).status
      ]
      // seconds in which a slow machine has to get so far
      if (begun.status === 200 && made.status === 201 && (await both()).every((status) => status === 200)) {
        for (const end = Date.now() + 240000; (await both()).some((status) => status !== 401); await sleep(100))
          expect(Date.now() < end, 'they end')
        break
      }
      expect(left < 60, 'a session and a grant within a minute', begun.text, made.text)
    }
  })

  await promise('an answer that is held ends with the JWT', async () => {
    const leeway = 60
    for (let left = 4; ; left *= 2) {
      // seconds in which a slow machine has to start the saga
      const token = admin({ exp: Math.floor(Date.now() / 1000) - leeway + left })
      const held = await calm(token, 'POST', '/v1/sagas?wait=5m', { saga: 'naps', input: {} })
      expectEqual(held.status, 401, held.text)
      if (/while its request was under way/.test(held.json.detail)) break
      expect(left < 60, 'held until its JWT had expired', held.text)
    }
  })

  await promise(
    'a task is there for the subject of the JWT: for one that was renewed, and for nobody else',
    async () => {
      const made = await napping
      const taskId = made.json?.result?.taskId
      expect(typeof taskId === 'string', 'the call is a task', made.text)
      const look = (claims) =>
        message(issuer.sign({ ...rights('callers'), ...claims }), 'tasks/get', taskId, { taskId })
      const renewed = await look({ jti: 'renewed' })
      expectEqual(renewed.json?.result?.status, 'working', renewed.text)
      const other = await look({ sub: 'eve' })
      expectEqual(other.json?.error?.code, -32602, other.text)
      const byToken = await message('a.b.c', 'tasks/get', taskId, { taskId })
      expectEqual(byToken.json?.error?.code, -32602, byToken.text)
    }
  )

  await promise('a new key is good at once, and one that the issuer has taken away is not', async () => {
    const old = issuer.keys[0]
    const before = await signIn({ token: admin({}, { key: old }) })
    expectEqual(before.status, 200, before.text)
    const fresh = makeKey('fresh', 'RS256')
    issuer.keys = [fresh, ...issuer.keys.slice(1)]
    const answers = await Promise.all(Array.from({ length: 20 }, () => calm(admin({}, { key: fresh }))))
    expectEqual(
      answers.map((answer) => answer.status),
      Array(20).fill(200),
      'the new key, many times at once'
    )
    expectEqual((await calm(admin({}, { key: old }))).status, 401, 'the old key')
    expectEqual((await calm(undefined, 'GET', '/v1/me', undefined, before.cookie)).status, 401, 'a session of it')

    const third = makeKey('third', 'ES256')
    issuer.keys.push(third)
    const begun = await signIn({ token: admin({}, { key: third }) })
    expectEqual(begun.status, 200, `a session waits for the key: ${begun.text}`)

    const other = makeKey('other', 'ES256')
    issuer.keys.push(other)
    const described = { tools: definitions.tools.map((tool) => ({ ...tool, description: 'nap '.repeat(500) })) }
    const { status, text } = await calm(admin({}, { key: other }), 'POST', '/v1/definitions', described)
    expectEqual(status, 200, `a body waits for the key: ${text}`)
  })

  await promise('a JWT that was accepted is refused once its key is another one of the same name', async () => {
    const key = issuer.keys[0]
    const token = admin({}, { key })
    for (let i = 0; i < 3; i++) expectEqual((await calm(token)).status, 200, 'before')
    const bent = `${token.slice(0, -9)}${token.at(-9) === 'A' ? 'B' : 'A'}${token.slice(-8)}`
    expectEqual((await calm(bent)).status, 401, 'with another signature')
    issuer.keys[0] = makeKey(key.kid, key.alg)
    world.sagad.kill('SIGHUP')
    await eventually('the old key is gone', async () => (await calm(token)).status === 401)
    expectEqual((await calm(admin({}, { key: issuer.keys[0] }))).status, 200, 'the new key')
  })

  await promise('a flood of unknown keys asks the issuer a few times only, and harms no other token', async () => {
    const before = issuer.reads
    const begun = Date.now()
    const mine = makeKey('mine', 'ES256')
    const flood = Array.from({ length: 200 }, (_, i) => ask(admin({}, { key: { ...mine, kid: `unknown-${i}` } })))
    const good = await Promise.all(Array.from({ length: 20 }, () => calm(admin())))
    const answers = await Promise.all(flood)
    const allowed = 5 + Math.ceil((Date.now() - begun) / 10000)
    expectEqual(new Set(good.map((answer) => answer.status)), new Set([200]), 'tokens of known keys')
    for (const { status, headers, text } of answers)
      expect(status === 401 || (status === 503 && Number(headers.get('retry-after')) > 0), 'a refusal', text)
    expect(issuer.reads - before <= allowed, `at most ${allowed} reads of the keys`, issuer.reads - before)
  })

  await promise('while the issuer is away, the keys as they were still hold; an unknown one is for later', async () => {
    issuer.isAway = true
    expectEqual((await ask(admin())).status, 200, 'a known key')
    const unknown = await ask(admin({}, { key: makeKey('later', 'ES256') }))
    expectEqual([unknown.status, unknown.json.retryable], [503, true], 'an unknown key')
    expect(Number(unknown.headers.get('retry-after')) > 0, 'says when', unknown.text)
  })

  await promise('a start without the issuer takes tokens of the file, and JWTs once it is there', async () => {
    world.sagad.kill('SIGTERM')
    expectEqual((await world.sagad.ended).code, 0, 'exit code')
    await world.startSagad(['--tokens', tokens, ...settings])
    expectEqual((await calm('a.b.c')).status, 200, 'a token of the file')
    const early = await ask(admin())
    expectEqual([early.status, early.json.retryable], [503, true], 'a JWT')
    issuer.isAway = false
    expectEqual((await calm(admin())).status, 200, 'a JWT, after a while')
  })

  await promise('an issuer alone is enough, and the guard of outgoing calls holds for it', async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    const asked = issuer.asked.length
    await world.startSagad([...settings, '--egress-deny', '127.0.0.1'])
    expectEqual((await ask(undefined)).status, 401, 'no token')
    expectEqual((await ask(admin())).status, 503, 'a JWT')
    expectEqual(issuer.asked.length, asked, 'requests at the issuer')
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    await world.startSagad(settings)
    expectEqual((await calm(admin())).json?.name, 'oidc:ada', 'a JWT, where nothing is denied')
    expectEqual((await calm(admin(), 'GET', '/v1/engines')).status, 403, 'the engines')
  })

  await promise('SIGTERM ends a read of the keys, and answers who waits for it', async () => {
    issuer.hangs = true
    const asked = issuer.asked.length
    const waits = [1, 2].map((n) => ask(admin({}, { key: makeKey(`late-${n}`, 'ES256') })))
    const left = new AbortController() // one that does not wait for the answer
    const leaver = fetch(`http://127.0.0.1:${world.port}/v1/me`, {
      headers: { authorization: `Bearer ${admin({}, { key: makeKey('late-3', 'ES256') })}` },
      signal: left.signal
    }).catch((error) => error.name)
    while (issuer.asked.length === asked) await sleep(20)
    left.abort()
    expectEqual(await leaver, 'AbortError', 'the one that leaves')
    world.sagad.kill('SIGTERM')
    for (const { status, text } of await Promise.all(waits)) expectEqual(status, 503, text)
    expectEqual((await world.sagad.ended).code, 0, 'exit code')
  })
  await issuer.close()
})
