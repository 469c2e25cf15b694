// The tests of the console share a world whose sagad has tokens, sagas in every state, and Debian's Chromium.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { World, expect, expectEqual, quick, root, sleep } from '../lib/world.mjs'
import { consolePackages } from './packages.mjs'

const packages = consolePackages()
export const themes = ['light', 'dark']
export const digest = (text) => createHash('sha256').update(text).digest('hex')

export const tokens = [
  ...['reader', 'agent', 'operator', 'admin'].map((role) => ({ name: role, role, namespace: 'default' })),
  { name: 'stranger', role: 'admin', namespace: 'elsewhere' },
  { name: 'both', role: 'operator', namespaces: ['default', 'elsewhere'] }
]

function definitions(shop) {
  const post = (path) => ({ method: 'POST', url: `${shop}/${path}`, body: '${ .args }' })
  const keyed = { effect: 'keyed', key: { window: '1d' } }
  const call = (id, tool, more = {}) => ({ id, call: tool, with: { request: '${ .input.trip }', ...more } })
  return {
    tools: [
      {
        name: 'seat.free',
        http: { method: 'DELETE', url: `${shop}/reservations/\${ .args.id }` },
        effect: 'idempotent'
      },
      {
        name: 'seat.book',
        http: post('reservations'),
        ...keyed,
        result: { id: '${ .response.body.id }' },
        compensate: { tool: 'seat.free', with: { id: '${ .result.id }' } }
      },
      { name: 'card.refund', http: post('refunds'), ...keyed },
      {
        name: 'card.pay',
        http: post('charges'),
        effect: 'once',
        // Thousands that are called again must have their answer in time, however busy the machine is.
        timeout: quick ? '500ms' : '5s',
        result: { charge_id: '${ .response.body.id }' },
        cost: '${ .args.amount * 10000 }',
        compensate: { tool: 'card.refund', with: { charge_id: '${ .result.charge_id }' } }
      },
      { name: 'post.send', http: post('mails'), ...keyed, terminal: true },
      // Its call is still under way when the engine is killed, however busy the machine is.
      { name: 'parcel.send', http: post('mails'), ...keyed, terminal: true, timeout: '1h' },
      { name: 'say', builtin: { do: 'echo' }, effect: 'read' }
    ],
    sagas: [
      {
        name: 'trip',
        input: {
          type: 'object',
          required: ['trip'],
          properties: {
            trip: { type: 'string', minLength: 1, description: 'the name of the trip' },
            seats: { type: 'integer', minimum: 1 },
            class: { enum: ['first', 'second'] },
            window: { type: 'boolean' }
          },
          additionalProperties: false
        },
        steps: [
          call('seat', 'seat.book', { sku: 'seat', qty: 1 }),
          call('pay', 'card.pay', { amount: 2500, customer: '${ .input.trip }' }),
          call('mail', 'post.send', { to: '${ .input.trip }', subject: 'bon voyage' })
        ]
      },
      {
        name: 'parcel',
        steps: [{ id: 'send', call: 'parcel.send', with: { to: '${ .input.to }', subject: 'a parcel' } }]
      },
      {
        name: 'contract',
        steps: [
          { id: 'signed', signal: { name: 'signed' } },
          { id: 'say', call: 'say', with: '${ .steps.signed.result }' }
        ],
        output: '${ .steps.signed.result }'
      },
      {
        name: 'spending',
        steps: [
          { id: 'ask', approve: { show: { cents: '${ .input.cents }' }, timeout: '2d', roles: ['operator'] } },
          { id: 'say', call: 'say', with: '${ .input }' }
        ]
      },
      {
        name: 'choir',
        steps: [{ id: 'voices', for_each: '${ .input }', concurrency: 20, call: 'say', with: '${ .item }' }]
      }
    ]
  }
}

export class ConsoleWorld extends World {
  // `behind` has flags of sagad beside those of every test.
  async begin() {
    await Promise.all([this.startPostgres(), this.startShop()])
    const file = join(this.directory, 'tokens.json')
    const rows = tokens.map((token) => ({ ...token, sha256: digest(token.name) }))
    writeFileSync(file, JSON.stringify({ tokens: rows }), { mode: 0o600 })
    process.env.SAGACTL_TOKEN = 'admin'
    this.tokensFile = file
    await this.startSagad(['--tokens', file])
    await this.define(this.example('shop.json'))
    await this.define(definitions(`http://127.0.0.1:${this.shopPort}`))
  }

  api(method, path, body, options = {}) {
    const headers = { authorization: 'Bearer admin', ...options.headers }
    return super.api(method, path, body, { ...options, headers })
  }

  get console() {
    return `http://127.0.0.1:${this.port}/console/`
  }

  order(id, email = 'ada@example.com', more = {}) {
    return this.start('order', { order_id: id, sku: 'kettle', amount: 4900, email }, { id, ...more })
  }

  // Starts an order that completes, one that is undone, and one of which nobody knows whether the mail went out.
  async someOrders(prefix) {
    const completed = await this.order(`${prefix}-good`, 'ada@example.com', { tags: { city: 'Oslo' } })
    const undone = await this.order(`${prefix}-undone`, 'bounce@example.com')
    await this.until(completed)
    await this.until(undone)
    await this.fault({ route: 'mails', mode: 'reset-after-effect' })
    const stuck = await this.order(`${prefix}-stuck`)
    await this.until(stuck, ['escalated'])
    await this.noFaults()
    return { completed, undone, stuck }
  }

  // Starts trips of which nobody knows whether they were paid.
  async doubtfulTrips(prefix, count) {
    await this.fault({ route: 'charges', mode: 'timeout-after-effect', times: -1, match: `${prefix}-` })
    const ids = []
    for (let i = 0; i < count; i++)
      ids.push(await this.start('trip', { trip: `${prefix}-${i}` }, { id: `${prefix}-${i}` }))
    for (const id of ids) await this.until(id, ['escalated'])
    await this.noFaults()
    return ids
  }
}

// --- the browser ---

// The engine of the browser without its windows draws the same and costs half as much. Figures and the long form want
// the whole browser.
const withoutWindows = '/usr/lib/chromium/chromium-headless-shell'
export const wholeChromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path))
const preferred = quick ? [withoutWindows, wholeChromium] : [wholeChromium, withoutWindows]
export const chromiumPath = preferred.find((path) => path && existsSync(path))

export async function launchChromium(executablePath = chromiumPath) {
  const { chromium } = createRequire(join(packages, 'package.json'))('playwright-core')
  const args = ['--disable-gpu'] // there is none; to imitate one costs more than to draw without
  if (process.getuid() === 0) args.push('--no-sandbox')
  return chromium.launch({ executablePath, args })
}

const wcag = { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }
const axeSource = () => readFileSync(join(packages, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8')

// Who wants pictures wants all of them.
const isThorough = !quick || process.env.SAGAD_CONSOLE_SHOTS !== undefined
const desktop = { width: 1280, height: 800 }
const idleTabs = []

async function newTab(browser, options) {
  const context = await browser.newContext({ viewport: desktop, ...options })
  context.setDefaultTimeout(60_000)
  const tab = { context, page: await context.newPage(), complaints: [] }
  tab.page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
      tab.complaints.push(message.text())
  })
  context.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url())
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') tab.complaints.push(`it asks ${hostname}`)
  })
  tab.page.on('pageerror', (error) => tab.complaints.push(String(error)))
  return tab
}

// A visitor is a person at a browser. Whatever the page complains about on its console breaks the test.
//
// Loading the page costs more than most of what a promise does with it. Visitors who are signed in (`as`) therefore get
// the tab of one who has left, and load nothing. Others get a tab of their own, which has never been anywhere.
export class Visitor {
  static async arrives(browser, world, { as, withClock, ...options } = {}) {
    const visitor = new Visitor()
    visitor.world = world
    visitor.isOwn = !as || withClock === true || Object.keys(options).length > 0
    visitor.tab = (!visitor.isOwn && idleTabs.pop()) || (await newTab(browser, options))
    visitor.page = visitor.tab.page
    if (withClock) await visitor.page.clock.install() // first: timers of before would go on
    if (as) await visitor.signsIn(as)
    return visitor
  }

  // Stops the clock of the page, so that no read comes because its time has come, and waits for the reads under way.
  async stopsClock() {
    const { page } = this
    const underWay = new Set()
    const isRead = (request) => request.method() === 'GET' && !/follow=true/.test(request.url())
    page.on('request', (request) => isRead(request) && underWay.add(request))
    page.on('requestfinished', (request) => underWay.delete(request))
    page.on('requestfailed', (request) => underWay.delete(request))
    await page.clock.pauseAt(Date.now() + 5000)
    let quiet = 0
    await until(() => (quiet = underWay.size === 0 ? quiet + 1 : 0) > 10, 'the reads under way end')
  }

  // Events have brought what happens within `ms` of the page whose clock has stopped.
  async seesByEvents(is, what, ms) {
    for (let waited = 0; !(await is()); waited += 20) {
      expect(waited < ms, what)
      await this.page.clock.runFor(20)
      await sleep(100)
    }
  }

  // Signs in by a link, which needs no new page where the console is open.
  async signsIn(token) {
    const headers = { authorization: `Bearer ${token}` }
    const { json } = await this.world.api('POST', '/console/links', {}, { headers })
    const signedIn = this.page.waitForResponse(/console\/session$/)
    await this.page.goto(`${this.world.console}#/sign-in/${json.code}`)
    expectEqual((await signedIn).status(), 200, `a link signs ${token} in`)
    await this.page.getByTestId('who').getByText(token, { exact: true }).first().waitFor()
  }

  async signsInByToken(token) {
    await this.page.getByLabel('Your token').fill(token)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByTestId('who').waitFor()
  }

  async opens(path) {
    await this.page.goto(this.world.console + path)
  }

  // Comes back to the tab: the page reads at once what it would read a few seconds later. The long form waits for that.
  async comesBack() {
    if (quick) await this.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  }

  async sees(text) {
    await this.page.getByText(text).first().waitFor()
  }

  // Checks another state of a view that was checked before: the long form has time for that.
  async checksAccessAgain(name) {
    if (isThorough) await this.checksAccess(name)
  }

  // Expects no serious finding in either theme, and nothing that needs more than the width there is.
  async checksAccess(name) {
    for (const theme of themes) {
      await this.page.emulateMedia({ colorScheme: theme })
      await this.shoots(`${name}-${theme}`)
      // The page's own policy forbids a <script>.
      if (!(await this.page.evaluate(() => 'axe' in globalThis))) await this.page.evaluate(axeSource())
      // Another theme has other colours, and nothing else.
      const rules = theme === themes[0] ? wcag : { type: 'rule', values: ['color-contrast'] }
      const found = await this.page.evaluate(
        (runOnly) => globalThis.axe.run(document, { runOnly, resultTypes: ['violations'], preload: false }),
        rules
      )
      const serious = found.violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3)}`)
      expect(serious.length === 0, `${name} in ${theme}: axe has findings`, serious.join('\n'))
    }
    const size = this.page.viewportSize()
    // The widths are those of a telephone, and, in the long form, of 1,280 px at 200 % and of a screen of 4 K.
    const more = isThorough
      ? [
          ['zoomed', 640],
          ['wide', 3840, 2160]
        ]
      : []
    for (const [called, width, height = 640] of [['narrow', 320], ...more]) {
      await this.page.setViewportSize({ width, height })
      await this.shoots(`${name}-${called}`)
      const wide = await this.page.evaluate(() => document.documentElement.scrollWidth)
      expect(wide <= width, `${name}: fits into ${width} px`, wide)
    }
    await this.page.setViewportSize(size)
  }

  // Keeps a picture of the page where SAGAD_CONSOLE_SHOTS says, and with the long form in the build.
  async shoots(name) {
    const folder = process.env.SAGAD_CONSOLE_SHOTS ?? (quick ? undefined : process.env.CONSOLE_SHOTS)
    if (!folder) return
    mkdirSync(folder, { recursive: true })
    const hasDialog = (await this.page.locator('dialog[open]').count()) > 0 // it covers what is seen of the page
    await this.page.screenshot({ path: join(folder, `${name}.png`), fullPage: !hasDialog })
  }

  // README shows this picture. SAGAD_CONSOLE_README=1 draws it anew, where README finds it.
  async shootsForReadme(file) {
    if (!process.env.SAGAD_CONSOLE_README) return
    await this.page.emulateMedia({ colorScheme: 'light' })
    await this.page.setViewportSize({ width: 1040, height: 600 })
    await this.page.screenshot({ path: join(root, 'schema', file) })
    await this.page.setViewportSize(desktop)
  }

  async leaves() {
    const { page, context, complaints } = this.tab
    expect(complaints.length === 0, 'the browser complains', complaints.join('\n'))
    if (this.isOwn) return context.close()
    await page.unrouteAll()
    for (const event of ['request', 'requestfinished', 'requestfailed', 'response', 'filechooser'])
      page.removeAllListeners(event)
    await page.emulateMedia({ colorScheme: null })
    await page.setViewportSize(desktop)
    idleTabs.push(this.tab)
  }
}

export async function until(is, what, seconds = 120) {
  for (const end = Date.now() + seconds * 1000; !(await is()); await sleep(50)) expect(Date.now() < end, what)
}

// Counts what a person presses with the mouse: a key that presses a button is no click.
export async function countsClicks(page) {
  await page.evaluate(() => {
    const count = ({ isTrusted, detail }) => (globalThis.clicks += Number(isTrusted && detail > 0))
    if (globalThis.clicks === undefined) addEventListener('click', count, true)
    globalThis.clicks = 0
  })
  return () => page.evaluate(() => globalThis.clicks)
}
