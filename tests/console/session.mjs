// These promises say who gets in, what a foreign page cannot do, and how a session ends.
import { statSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, expectEqual, promise, root } from '../lib/world.mjs'
import { taskTime } from './thread.mjs'
import { Visitor, digest, tokens, until } from './stage.mjs'

const ours = { 'sagad-console': '1' }
const loadMs = 1000 // of processor time

export async function session(world, browser) {
  const bare = async (method, path, body, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${world.port}${path}`, {
      method,
      headers: body ? { 'content-type': 'application/json', ...headers } : headers,
      body: body && JSON.stringify(body),
      redirect: 'manual'
    })
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: text.startsWith('{') ? JSON.parse(text) : null
    }
  }
  const signIn = async (token) => {
    const answer = await bare('POST', '/console/session', { token }, ours)
    expectEqual(answer.status, 200, 'a token signs in')
    return answer.headers.get('set-cookie').split(';')[0]
  }

  await promise('the files: compressed, with strong ETags and all guards, and small', async () => {
    let bytes = 0
    for (const name of ['', 'app.js', 'app.css', 'icon.svg']) {
      const answer = await fetch(world.console + name)
      const guard = (header) => answer.headers.get(header)
      expectEqual([answer.status, guard('content-encoding')], [200, 'gzip'], name)
      expect(/^"[0-9a-f]{40}"$/.test(guard('etag')), 'a strong ETag', guard('etag'))
      expect(
        !/unsafe|\*|https?:/.test(guard('content-security-policy')),
        'the policy',
        guard('content-security-policy')
      )
      for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"])
        expect(guard('content-security-policy').includes(rule), rule)
      expectEqual(guard('x-content-type-options'), 'nosniff', 'X-Content-Type-Options')
      expectEqual(guard('referrer-policy'), 'no-referrer', 'Referrer-Policy')
      expectEqual(guard('x-frame-options'), 'DENY', 'X-Frame-Options')
      bytes += Number(guard('content-length'))
      await answer.text()
      const again = await fetch(world.console + name, { headers: { 'if-none-match': guard('etag') } })
      expectEqual(again.status, 304, 'the same file again')
    }
    console.log(`# first load: ${bytes} bytes compressed`)
    expect(bytes <= 150_000, 'first load, at most 150 kB', bytes)
    const pictures = ['console.png', 'console-saga.png'].map((file) => statSync(join(root, 'schema', file)).size)
    expect(pictures[0] + pictures[1] <= 200_000, 'the pictures of README, at most 200 kB', pictures.join(' + '))
    expectEqual((await bare('GET', '/console/none.js')).status, 404, 'a file that is not there')
    const moved = await bare('GET', '/console')
    expectEqual([moved.status, moved.headers.get('location')], [308, 'console/'], '/console')
  })

  await promise('a session: its cookie is out of reach of pages and other sites', async () => {
    const answer = await bare('POST', '/console/session', { token: 'operator' }, ours)
    const cookie = answer.headers.get('set-cookie')
    for (const word of ['HttpOnly', 'SameSite=Strict', 'Path=/']) expect(cookie.includes(word), word, cookie)
    expect(!cookie.includes('Secure'), 'no Secure without TLS', cookie)
    expectEqual(answer.json.role, 'operator', 'who I am')
    const tls = await bare('POST', '/console/session', { token: 'operator' }, { ...ours, 'x-forwarded-proto': 'https' })
    expect(tls.headers.get('set-cookie').includes('; Secure'), 'Secure behind TLS')
    expectEqual((await bare('POST', '/console/session', { token: 'nobody' }, ours)).status, 401, 'a wrong token')
  })

  await promise('what a foreign page can send is refused, with a cookie and without', async () => {
    const cookie = await signIn('operator')
    const saga = await world.order('foreign')
    const pause = (headers) => bare('POST', `/v1/sagas/${saga}/pause`, { note: 'by a page' }, { cookie, ...headers })
    const own = `http://127.0.0.1:${world.port}`
    for (const [what, headers] of [
      ['no header', {}],
      ['a foreign origin', { ...ours, origin: 'http://evil.example' }],
      ['an origin that is none', { ...ours, origin: 'null' }],
      ['another port of this host', { ...ours, origin: 'http://127.0.0.1:1' }],
      ['a request across sites', { ...ours, 'sec-fetch-site': 'cross-site' }],
      ['a request of the same site', { ...ours, 'sec-fetch-site': 'same-site' }]
    ]) {
      expectEqual((await pause(headers)).status, 403, what)
      const read = await bare('GET', '/v1/sagas', undefined, { cookie, ...headers })
      expectEqual(read.status, 403, `${what}, reading`)
      if (what !== 'no header') {
        const session = await bare('POST', '/console/session', { token: 'operator' }, headers)
        expectEqual(session.status, 403, `${what}, signing in`)
      }
    }
    expectEqual((await world.saga(saga)).paused ?? null, null, 'nothing was done')
    const asked = await bare('OPTIONS', `/v1/sagas/${saga}/pause`, undefined, { origin: 'http://evil.example' })
    expectEqual(asked.headers.get('access-control-allow-origin'), null, 'nobody is allowed to ask across origins')
    for (const headers of [{ origin: own }, { origin: 'https://s.example', 'x-forwarded-host': 's.example' }, {}]) {
      const answer = await bare('GET', '/v1/me', undefined, { cookie, ...ours, ...headers })
      expectEqual([answer.status, answer.json.name], [200, 'operator'], 'our own page')
    }
  })

  await promise('what has not changed is not sent again', async () => {
    const cookie = await signIn('reader')
    const first = await bare('GET', '/v1/me', undefined, { cookie, ...ours })
    const etag = first.headers.get('etag')
    const again = await bare('GET', '/v1/me', undefined, { cookie, ...ours, 'if-none-match': etag })
    expectEqual([again.status, again.text], [304, ''], 'the second read')
  })

  await promise('a session ends: by signing out, with its token, and is not more than its token', async () => {
    const cookie = await signIn('reader')
    const me = () => bare('GET', '/v1/me', undefined, { cookie, ...ours })
    expectEqual((await me()).status, 200, 'signed in')
    const define = await bare('POST', '/v1/definitions', { tools: [] }, { cookie, ...ours })
    expectEqual(define.status, 403, 'a reader defines nothing')
    expectEqual((await bare('DELETE', '/console/session', undefined, { cookie })).status, 403, 'a foreign sign-out')
    expectEqual((await me()).status, 200, 'still signed in')
    expectEqual((await bare('DELETE', '/console/session', undefined, { cookie, ...ours })).status, 200, 'signing out')
    expectEqual((await me()).status, 401, 'the cookie is good for nothing')

    const rows = tokens.map((token) => ({ ...token, sha256: digest(token.name) }))
    const write = (some) => writeFileSync(world.tokensFile, JSON.stringify({ tokens: some }), { mode: 0o600 })
    const agents = await signIn('agent')
    write(rows.filter(({ name }) => name !== 'agent'))
    await until(
      async () => (await bare('GET', '/v1/me', undefined, { cookie: agents, ...ours })).status === 401,
      'revoked'
    )
    write(rows)
    await until(
      async () =>
        (await world.api('GET', '/v1/me', undefined, { headers: { authorization: 'Bearer agent' } })).status === 200,
      'back'
    )
    expectEqual(
      (await bare('GET', '/v1/me', undefined, { cookie: agents, ...ours })).status,
      401,
      'that session is over'
    )
  })

  await promise('sessions are bounded: the one used least recently makes room', async () => {
    const first = await signIn('stranger')
    const second = await signIn('stranger')
    for (let i = 0; i < 15; i++) await signIn('stranger')
    expectEqual((await bare('GET', '/v1/me', undefined, { cookie: first, ...ours })).status, 401, 'the first of 17')
    expectEqual((await bare('GET', '/v1/me', undefined, { cookie: second, ...ours })).status, 200, 'the second')
  })

  await promise('a link signs in once, and its code is not in the address any more', async () => {
    const made = world.sagactl(['console'])
    expectEqual(made.status, 0, `sagactl console: ${made.stderr}`)
    const link = made.stdout.trim()
    const visitor = await Visitor.arrives(browser, world)
    const asked = []
    visitor.page.on('request', (request) => asked.push(request.url()))
    await visitor.page.goto(link)
    await visitor.page.getByTestId('who').getByText('admin').first().waitFor()
    const code = link.split('/').at(-1)
    expect(!visitor.page.url().includes(code), 'the code is gone from the address', visitor.page.url())
    expect(!asked.some((url) => url.includes(code)), 'and was never in one that sagad saw')
    await visitor.leaves()
    const other = await Visitor.arrives(browser, world)
    await other.page.goto(link)
    await other.sees('this link was used before')
    const toSaga = world.sagactl(['browse', 'order/first-good'])
    expectEqual(toSaga.status, 0, `sagactl browse: ${toSaga.stderr}`)
    await other.page.evaluate((to) => (location.href = to), toSaga.stdout.trim())
    await other.page.getByRole('heading', { level: 1, name: 'first-good' }).waitFor()
    expect(!/sign-in/.test(other.page.url()), 'the code is gone from the address', other.page.url())
    expect(world.sagactl(['browse', 'order/nobody']).status !== 0, 'no link to a saga that is not there')
    await other.leaves()
    const cookie = await signIn('admin')
    const answer = await bare('POST', '/console/links', {}, { cookie, ...ours })
    expectEqual(answer.status, 403, 'a session makes no links')
  })

  // One visitor for all that is left: loading the page takes long.
  const visitor = await Visitor.arrives(browser, world)
  const { page } = visitor

  await promise('a link signs in also where the console is open: signed out, and as somebody else', async () => {
    const who = page.getByTestId('who')
    const follows = () => {
      const link = world.sagactl(['console']).stdout.trim()
      return page.evaluate((to) => (location.href = to), link)
    }
    const spent = await taskTime(page)
    await visitor.opens('#/tools')
    await page.getByLabel('Your token').waitFor()
    const ms = Math.round(await spent())
    console.log(`# the first load took ${ms} ms of processor time`)
    expect(ms < loadMs, `processor time of the first load, at most ${loadMs} ms`, ms)
    await follows()
    await who.getByText('admin').first().waitFor()
    expect(/#\/$/.test(page.url()), 'the code is gone from the address', page.url())
    await page.getByRole('button', { name: 'Sign out' }).click()
    await visitor.signsInByToken('reader')
    await who.getByText('reader').first().waitFor()
    await follows()
    await who.getByText('admin').first().waitFor()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    // A read of the session before is refused late: that does not end the session of now.
    let refuse
    const isTime = new Promise((resolve) => (refuse = resolve))
    await visitor.opens('#/sagas')
    await page.getByRole('link', { name: 'first-good' }).waitFor()
    const ofOverview = /v1\/escalations\?/
    await page.route(ofOverview, (route) => isTime.then(() => route.fulfill({ status: 401, body: '{}' })), { times: 1 })
    await visitor.signsIn('admin') // the overview is there, and reads, before the new session is
    const late = page.waitForResponse((answer) => ofOverview.test(answer.url()) && answer.status() === 401)
    refuse()
    await late
    await visitor.opens('#/sagas')
    await page.getByRole('link', { name: 'first-good' }).waitFor()
    await visitor.opens('#/overview')
    await page.getByRole('button', { name: 'Sign out' }).click()
  })

  await promise('behind a proxy that serves it below a path of its own', async () => {
    const proxy = createServer((asked, answered) => {
      if (!asked.url.startsWith('/x/y/')) return answered.writeHead(404).end()
      const { method, headers } = asked
      const onward = request(
        { host: '127.0.0.1', port: world.port, method, path: asked.url.slice(4), headers: { ...headers, ...proxied } },
        (answer) => {
          answered.writeHead(answer.statusCode, answer.headers)
          answer.pipe(answered)
        }
      )
      onward.on('error', () => answered.destroy())
      asked.pipe(onward)
    })
    await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const proxied = { host: 'sagad.internal', 'x-forwarded-host': `127.0.0.1:${proxy.address().port}` }
    const visitor = await Visitor.arrives(browser, world)
    await visitor.page.goto(`http://${proxied['x-forwarded-host']}/x/y/console`)
    await visitor.page.getByLabel('Your token').fill('operator')
    await visitor.page.keyboard.press('Enter')
    await visitor.page.getByRole('link', { name: 'Sagas' }).click()
    await visitor.page.getByRole('link', { name: 'first-good' }).click()
    await visitor.page.getByRole('button', { name: 'Run again' }).waitFor()
    await visitor.leaves()
    proxy.closeAllConnections()
    proxy.close()
  })

  // The page and its program may come from different versions, and the next look from the other one again.
  await promise('two versions take turns behind a load balancer: the page says so, and goes on', async () => {
    let ofOther = () => false
    let files = 0
    const balancer = createServer((asked, answered) => {
      const { method, headers, url } = asked
      const isFile = url.startsWith('/console/') && method === 'GET' && !url.includes('session')
      const isOther = isFile && ofOther(files++)
      if (isOther) delete headers['if-none-match'] // the ETags of the other version are others
      const onward = request({ host: '127.0.0.1', port: world.port, method, path: url, headers }, async (answer) => {
        if (!isOther || answer.statusCode !== 200) {
          answered.writeHead(answer.statusCode, answer.headers)
          return answer.pipe(answered)
        }
        const chunks = []
        for await (const chunk of answer) chunks.push(chunk)
        const { 'content-encoding': encoding, ...other } = answer.headers
        const bytes = encoding === 'gzip' ? gunzipSync(Buffer.concat(chunks)) : Buffer.concat(chunks)
        const isPage = answer.headers['content-type'].startsWith('text/html')
        const body = isPage ? bytes.toString().replace(/data-version="[^"]*"/, 'data-version="2.0.0"') : bytes
        answered.writeHead(200, { ...other, etag: '"of another version"', 'content-length': Buffer.byteLength(body) })
        answered.end(body)
      })
      onward.on('error', () => answered.destroy())
      asked.pipe(onward)
    })
    await new Promise((resolve) => balancer.listen(0, '127.0.0.1', resolve))
    const visitor = await Visitor.arrives(browser, world)
    const { page } = visitor
    const note = page.getByText('sagad is of another version than this page now.')
    // The reader looks at something else, and comes back.
    const looksAway = () =>
      page.evaluate(async () => {
        for (const hidden of [true, false]) {
          Object.defineProperty(document, 'hidden', { value: hidden, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))
          await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
        }
      })
    await page.goto(`http://127.0.0.1:${balancer.address().port}/console/`)
    await page.getByLabel('Your token').fill('operator')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Sagas' }).click()
    await page.getByRole('link', { name: 'first-good' }).waitFor()
    ofOther = () => true
    await looksAway()
    await note.waitFor()
    await page.getByRole('link', { name: 'first-good' }).click()
    await page.getByRole('button', { name: 'Run again' }).waitFor()
    ofOther = () => false
    await looksAway()
    await note.waitFor({ state: 'detached' })
    ofOther = (n) => n % 2 === 0 // each file of a load from the other version than the one before
    for (let i = 0; i < 2; i++) {
      files = i
      await page.reload()
      await page.getByRole('button', { name: 'Run again' }).waitFor()
    }
    await visitor.leaves()
    balancer.closeAllConnections()
    balancer.close()
  })

  await promise('a person signs in and out; the page says who they are', async () => {
    await page.getByLabel('Your token').fill('wrong')
    await page.keyboard.press('Enter')
    await visitor.sees('this token is not known here, or has expired')
    await visitor.checksAccess('sign-in')
    await visitor.signsInByToken('operator')
    const who = await page.getByTestId('who').innerText()
    expect(/operator operator in default/.test(who), 'who', who)
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie)
    expect(!/operator|sagad_session/.test(kept), 'the page keeps no secret', kept)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await visitor.sees('You are signed out.')
    await page.reload()
    await page.getByLabel('Your token').waitFor()
  })

  await promise('an address that changes as soon as the page is drawn is followed, and so is the focus', async () => {
    await page.getByLabel('Your token').fill('reader')
    await page.evaluate(() => {
      let isAsked = false
      const drawn = new MutationObserver(() => {
        if (!isAsked && document.querySelector('[data-testid="who"]')) {
          isAsked = true
          location.hash = '#/sagas'
        }
        if (document.querySelector('h1')?.innerText !== 'Sagas') return
        drawn.disconnect()
        globalThis.focusedThen = document.activeElement.id
      })
      drawn.observe(document.body, { childList: true, subtree: true })
    })
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Sagas' }).waitFor()
    expectEqual(await page.evaluate(() => globalThis.focusedThen), 'main', 'what has the focus with the new view')
  })

  await promise('who wants no motion sees none: of elements, of what stands beside them, of backdrops', async () => {
    // The console moves nothing today, so the test brings motion of its own: the guard must stop what comes later.
    await page.getByRole('button', { name: 'Keys' }).click()
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.evaluate(() => {
      const moving = new CSSStyleSheet()
      const all = '*, ::before, ::after, ::backdrop'
      moving.replaceSync(
        `@keyframes turn { to { rotate: 1turn } }
         ${all} { animation: turn 9s infinite; transition: opacity 9s; scroll-behavior: smooth }
         ::before, ::after { content: '' }`
      )
      document.adoptedStyleSheets.push(moving)
    })
    const movesIn = async (reducedMotion) => {
      await page.emulateMedia({ reducedMotion })
      return page.evaluate(() =>
        [undefined, '::before', '::after', '::backdrop'].map((part) => {
          const style = getComputedStyle(document.querySelector('dialog'), part)
          return [style.animationName, style.transitionDuration, style.scrollBehavior].join(' ')
        })
      )
    }
    expectEqual(await movesIn('no-preference'), Array(4).fill('turn 9s smooth'), 'what would move')
    expectEqual(await movesIn('reduce'), Array(4).fill('none 0s auto'), 'what moves')
  })
  await visitor.leaves()
}

// Times are of the reader's zone, which is 5 h 45 min ahead of UTC there; UTC is at hand.
async function inKathmandu({ page }) {
  const started = page.locator('.facts time').first()
  const utc = new Date(await started.getAttribute('datetime'))
  const time = (ms) => new Date(ms).toISOString().slice(11, 19)
  expect((await started.innerText()).includes(time(utc.getTime() + 345 * 60_000)), 'the time in Kathmandu')
  expect((await started.getAttribute('title')).includes(utc.toISOString().slice(0, 19)), 'UTC beside it')
  await page.getByRole('button', { name: 'times: local' }).click()
  await page
    .getByText(`${time(utc)} UTC`)
    .first()
    .waitFor()
  await page.getByRole('button', { name: 'times: UTC' }).click()
}

// Whoever may see the engines sees PostgreSQL, too. When it is away, the page says what sagad says, keeps what it
// shows, and goes on when it is back.
async function withoutDatabase(world, visitor) {
  const { page } = visitor
  await visitor.opens('#/overview')
  const engines = page.getByRole('region', { name: 'Engines' })
  await engines.getByRole('cell', { name: 'alive' }).waitFor()
  await visitor.sees('PostgreSQL')
  // This engine has begun after the cases were opened, and has none of their sagas in memory.
  const facts = page.getByRole('region', { name: 'Now' }).getByRole('definition')
  const { items } = (await world.api('GET', '/v1/escalations?status=open&group_by=reason&reason=unknown')).json
  await facts.filter({ hasText: new RegExp(`^${items[0].count} the oldest for`) }).waitFor()
  await visitor.checksAccessAgain('overview-admin')
  await visitor.opens('#/sagas')
  const rows = () => page.locator('tr[data-row]').count()
  await until(async () => (await rows()) > 2, 'rows')
  await world.stopPostgres()
  const trouble = page.getByRole('alert')
  await trouble.waitFor()
  console.log(`# without PostgreSQL the page says: ${(await trouble.innerText()).replace(/\s+/g, ' ')}`)
  expect((await rows()) > 2, 'what was there is still shown')
  await world.startPostgres()
  await world.ready()
  await trouble.waitFor({ state: 'detached' })
}

// These promises come last, because they start sagad anew.
export async function withoutTokens(world, browser) {
  await promise('without tokens everybody on this machine is the admin, and a foreign page still is not', async () => {
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    world.launchSagad([])
    await world.ready()
    const visitor = await Visitor.arrives(browser, world, { timezoneId: 'Asia/Kathmandu' })
    await visitor.opens('#/definitions/contract')
    const who = await visitor.page.getByTestId('who').innerText()
    expect(/local admin in default/.test(who), 'who', who)
    expectEqual(await visitor.page.getByRole('button', { name: 'Sign out' }).count(), 0, 'nothing to sign out of')
    await visitor.page.getByLabel('Business id').fill('by nobody in particular')
    await visitor.page.getByRole('button', { name: 'Start', exact: true }).click()
    await visitor.page.getByRole('heading', { name: 'by nobody in particular' }).waitFor()
    await inKathmandu(visitor)
    await withoutDatabase(world, visitor)
    await visitor.leaves()
    const headers = { authorization: '', origin: 'http://evil.example' }
    const foreign = await world.api('POST', '/v1/sagas', { saga: 'contract' }, { headers })
    expectEqual(foreign.status, 403, 'a foreign page')
  })
}
