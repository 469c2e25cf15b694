// Bulk jobs. Many sagas are stuck, because their payments were taken and never answered. A set is frozen and shown, run
// and stopped, and the job reaches each saga once.
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const many = 300

// A bank that takes every payment and never answers, until it is told to.
class Bank {
  constructor() {
    this.hangs = true
    this.paid = 0
    this.undone = 0
    this.server = createServer((request, response) => {
      request.resume()
      if (request.url.startsWith('/undo')) this.undone++
      else this.paid++
      if (request.url.startsWith('/pay') && this.hangs) return request.socket.destroy()
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end('{"id":"paid"}')
      }, this.ms ?? 0)
    })
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    this.base = `http://127.0.0.1:${this.server.address().port}`
  }
}

const bank = new Bank()
await bank.listen()
const post = (path) => ({ http: { method: 'POST', url: `${bank.base}/${path}`, body: {} }, timeout: '5s' })
const definitions = {
  tools: [
    { name: 'undo', effect: 'idempotent', ...post('undo') },
    { name: 'pay', effect: 'once', compensate: { tool: 'undo' }, ...post('pay') }
  ],
  sagas: [
    { name: 'order', tags: { shop: 'north' }, steps: [{ id: 'pay', call: 'pay' }] },
    { name: 'other', steps: [{ id: 'pay', call: 'pay' }] },
    { name: 'waits', steps: [{ id: 'go', signal: { name: 'go' } }] }
  ]
}

class Night extends World {
  async stick(saga, ids) {
    for (let i = 0; i < ids.length; i += 100) {
      const sagas = ids.slice(i, i + 100).map((id) => ({ saga, id, input: {} }))
      const { status } = await this.api('POST', '/v1/sagas/batch', sagas)
      expect(status < 300, 'the sagas are started', status)
    }
    await this.reach(`of ${saga}`, async () => {
      const open = new Set((await this.cases(`saga=${saga}&limit=500`)).map((one) => one.business_id))
      return ids.every((id) => open.has(id))
    })
  }

  async cases(query) {
    return (await this.api('GET', `/v1/escalations?status=open&${query}`)).json.items
  }

  async reach(what, holds, seconds = 120) {
    for (const end = Date.now() + seconds * 4000; !(await holds()); await sleep(100)) expect(Date.now() < end, what)
  }

  async freeze(body, status = 201) {
    const asked = { note: 'by the bank', preview: true, ...body }
    const answer = await this.api('POST', '/v1/bulk', asked, { seconds: 300 }) // 20,000 items, and a busy machine
    expectEqual(answer.status, status, `POST /v1/bulk ${JSON.stringify(answer.json)}`)
    return answer.json
  }

  async sagaOf(name, id) {
    return (await this.api('GET', `/v1/sagas/by-business-id/${name}/${id}`)).json.id
  }

  async job(id) {
    return (await this.api('GET', `/v1/bulk/${id}`)).json
  }

  async runs(id, status = 200) {
    const answer = await this.api('POST', `/v1/bulk/${id}/run`, {})
    expectEqual(answer.status, status, `run ${JSON.stringify(answer.json)}`)
    return answer.json
  }

  async ends(id) {
    await this.reach(`the end of ${id}`, async () => (await this.job(id)).state !== 'running')
    return this.job(id)
  }

  // Counts by the logs how often a bulk job has acted on each saga.
  acts(id) {
    return this.sql(
      `select coalesce(json_agg(acts), '[]') from (select count(*) as acts from sagad.log_entry
       where data ->> 'bulk' like '${id}/%' group by saga) as a`
    )
  }
}

const names = (prefix, count) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

await run(new Night(), async (world) => {
  await world.startPostgres()
  await world.startEngines(1, ['--bulk-rate', '1000'])
  await world.define(definitions)
  await world.stick('order', names('order', many))

  await promise('a set is frozen and shown, and nothing is done', async () => {
    const job = await world.freeze({ action: 'resolve', as: 'happened', filter: { tool: 'pay', saga: 'order' } })
    expectEqual([job.state, job.count, job.applies, job.looked], ['frozen', many, many, many], 'the job')
    expectEqual([job.refused, job.unmatched, job.leads_to], [[], [], [{ status: 'completed', count: many }]], 'shown')
    expectEqual(job.outcomes, { open: many, done: 0, changed: 0, refused: 0 }, 'outcomes')
    expectEqual([job.sample.length, job.sample[0].step], [10, 'pay'], 'the sample')
    expectEqual((await world.cases('saga=order&limit=500')).length, many, 'open cases')
  })

  await promise('a malformed job is refused with the place of each fault', async () => {
    for (const [body, pointer] of [
      [{ action: 'resolve', as: 'happened', filter: {} }, '/filter'],
      [{ action: 'resolve', as: 'happened' }, ''],
      [{ action: 'explode', filter: { tool: 'pay' } }, '/action'],
      [{ action: 'resolve', as: 'perhaps', filter: { tool: 'pay' } }, '/as'],
      [{ action: 'resolve', filter: { tool: 'pay' } }, '/as'],
      [{ action: 'retry', filter: { colour: 'red' } }, '/filter/colour'],
      [{ action: 'retry', filter: { since: 'today' } }, '/filter/since'],
      [{ action: 'retry', filter: { cost_above: 'much' } }, '/filter/cost_above'],
      [{ action: 'retry', filter: { tool: '' } }, '/filter/tool'],
      [{ action: 'abort', filter: { saga: '' } }, '/filter/saga'],
      [{ action: 'abort', filter: { business_id: '' } }, '/filter/business_id'],
      [{ action: 'abort', filter: { until: '1970-01-01T00:00:00Z' } }, '/filter/until'],
      [{ action: 'retry', filter: { tool: 'pay', status: 'running' } }, '/filter'],
      [{ action: 'pause', filter: { status: 'lost' } }, '/filter/status'],
      [{ action: 'pause', as: 'happened', filter: { saga: 'order' } }, '/as'],
      [{ action: 'pause', items: [] }, '/items'],
      [{ action: 'pause', note: ' ', filter: { saga: 'order' } }, '/note'],
      [{ action: 'pause', preview: false, filter: { saga: 'order' } }, '/preview']
    ]) {
      const { errors } = await world.freeze(body, 422)
      expect(
        errors.some((error) => error.pointer === pointer),
        JSON.stringify(body),
        errors
      )
    }
  })

  await promise('cases are acknowledged and assigned as a set; their sagas hear nothing of it', async () => {
    const until = new Date(Date.now() + 3600000).toISOString()
    for (const verb of [
      { action: 'acknowledge', until },
      { action: 'assign', to: 'ada' }
    ]) {
      const job = await world.freeze({ ...verb, filter: { tool: 'pay', saga: 'order' } })
      expectEqual(job.applies, many, 'the preview')
      await world.runs(job.bulk)
      expectEqual((await world.ends(job.bulk)).outcomes, { open: 0, done: many, changed: 0, refused: 0 }, verb.action)
      expectEqual(JSON.parse(world.acts(job.bulk)), [], 'the logs')
    }
    const named = world.sagactl(['assign', '--tool', 'pay', '--saga', 'order', '--to', 'bob', '--note', 'his', '--yes'])
    expect(named.stdout.includes(`done ${many}`), 'sagactl assign with filters', named)
    expectEqual((await world.cases('assigned=bob&limit=500')).length, many, 'the cases of bob')
    expectEqual(world.sagactl(['assign', '--tool', 'pay', '--to', 'ada', '--note', 'hers', '--yes']).status, 0, 'back')
    const had = await world.cases('acknowledged=true&assigned=ada&limit=500')
    expectEqual([had.length, had[0].acknowledged_until, had[0].remark_count], [many, until, 4], 'the cases')
  })

  await promise('a job is carried out once, item by item, and who, when and why stand in the logs', async () => {
    const job = await world.freeze({ action: 'resolve', as: 'happened', filter: { tool: 'pay', saga: 'order' } })
    const [taken] = await world.cases('saga=order&limit=1')
    const resolved = await world.api('POST', `/v1/escalations/${taken.n}/resolve`, {
      action: 'resolve',
      as: 'happened',
      note: 'by hand'
    })
    expectEqual(resolved.status, 200, 'one was resolved by somebody else')
    const running = await world.runs(job.bulk)
    expectEqual([running.state === 'frozen', running.run.actor.length > 0], [false, true], 'it runs')
    expectEqual((await world.runs(job.bulk)).bulk, job.bulk, 'a second run answers the same job')
    const ended = await world.ends(job.bulk)
    expectEqual(
      [ended.state, ended.outcomes],
      ['done', { open: 0, done: many - 1, changed: 1, refused: 0 }],
      'the outcomes'
    )
    expectEqual((await world.cases('saga=order&limit=500')).length, 0, 'no case is open')
    const { items } = (await world.api('GET', `/v1/bulk/${job.bulk}/items?outcome=changed`)).json
    expectEqual([items.length, items[0].escalation, items[0].error.code], [1, taken.n, 'already-decided'], 'the other')
    expectEqual(JSON.parse(world.acts(job.bulk)), Array(many - 1).fill(1), 'acts by the logs')
    const [one] = (await world.api('GET', `/v1/bulk/${job.bulk}/items?outcome=done&limit=1`)).json.items
    const log = (await world.api('GET', `/v1/sagas/${one.saga}/log`)).json.items
    const act = log.find((entry) => entry.data.bulk)
    expectEqual([act.data.bulk, act.data.note], [`${job.bulk}/${one.n}`, 'by the bank'], 'the log')
    expectEqual(act.actor, ended.run.actor, 'the actor')
    expectEqual((await world.runs(job.bulk)).state, 'done', 'it is not run twice')
    const list = (await world.api('GET', '/v1/bulk?limit=1')).json
    expectEqual([list.items.length, typeof list.next_cursor], [1, 'string'], 'the list')
    const page = (await world.api('GET', `/v1/bulk/${job.bulk}/items?limit=2&after=${many - 1}`)).json
    expectEqual([page.items.map((item) => item.n), page.next_cursor], [[many], null], 'the last page')
  })

  await promise(
    'items are found by their operations and business ids; the others are told and left alone',
    async () => {
      await world.stick('other', [...names('both', 1), ...names('other', 4)])
      await world.stick('order', names('both', 1))
      const open = await world.cases('saga=other&limit=10')
      const keyed = open.find((one) => one.business_id === 'other-2')
      const byId = open.find((one) => one.business_id === 'other-3')
      const job = await world.freeze({
        action: 'resolve',
        items: [
          { business_id: 'other-0', as: 'happened' },
          { business_id: 'other-1', as: 'not_happened' },
          { operation: keyed.operation, as: 'happened', result: { id: 7 } },
          { business_id: 'other-0', as: 'happened' },
          { business_id: 'both-0', as: 'happened' },
          { business_id: 'both-0', saga: 'other', as: 'happened' },
          { business_id: 'nobody', as: 'happened' },
          { business_id: 'order-1', as: 'happened' },
          { business_id: 'other-1', as: 'SETTLED' },
          { operation: 'x', as: 'happened' },
          { id: 'y', as: 'happened' },
          { id: keyed.operation, as: 'happened' },
          { id: byId.saga, as: 'happened' },
          { as: 'happened' }
        ]
      })
      expectEqual(
        [job.count, job.applies, job.leads_to],
        [
          5,
          5,
          [
            { status: 'completed', count: 4 },
            { status: 'compensated', count: 1 }
          ]
        ],
        'found'
      )
      expectEqual(
        job.unmatched.map(({ count, examples }) => [count, examples[0]]).sort(),
        [
          [1, 'an item without a name'],
          [1, 'both-0'],
          [1, 'nobody'],
          [1, 'order-1'],
          [1, 'other-0'],
          [1, 'other-1'],
          [1, 'x'],
          [1, 'y'],
          [1, keyed.operation]
        ].sort(),
        `unmatched ${JSON.stringify(job.unmatched)}`
      )
      await world.runs(job.bulk)
      expectEqual((await world.ends(job.bulk)).outcomes, { open: 0, done: 5, changed: 0, refused: 0 }, 'outcomes')
      const result = (await world.api('GET', `/v1/operations/${keyed.operation}`)).json.result
      expectEqual(result, { id: 7 }, 'its own result')
    }
  )

  await promise('as many items as a job may have are looked at in a time that one can wait for', async () => {
    const items = Array.from({ length: 20000 }, (_, i) => ({ business_id: `unknown-${i}`, as: 'happened' }))
    const { count, unmatched } = await world.freeze({ action: 'resolve', items })
    expectEqual([count, unmatched.map((one) => one.count)], [0, [20000]], 'the items')
  })

  await promise('items about one saga that contradict each other are not carried out', async () => {
    await world.stick('other', names('torn', 2))
    const job = await world.freeze({
      action: 'resolve',
      items: [
        { business_id: 'torn-0', saga: 'other', as: 'happened' },
        { business_id: 'torn-1', saga: 'other', as: 'happened' },
        { business_id: 'torn-0', saga: 'other', as: 'not_happened' },
        { business_id: 'torn-1', saga: 'other', as: 'happened' }
      ]
    })
    expectEqual([job.count, job.looked, job.applies, job.leads_to[0].count], [1, 1, 1, 1], 'the items')
    expectEqual(
      job.unmatched.map(({ reason, count }) => [count, reason]).sort(),
      [
        [1, 'the same item stands there before'],
        [2, 'the items about it say different things']
      ],
      'unmatched'
    )
    await world.runs(job.bulk)
    await world.ends(job.bulk)
    const left = (await world.cases('saga=other&limit=10')).map((one) => one.business_id)
    expectEqual([left.includes('torn-0'), left.includes('torn-1')], [true, false], 'open cases')
    expectEqual(
      (await world.resolve(await world.sagaOf('other', 'torn-0'), { action: 'resolve', as: 'happened' })).status,
      200,
      'by hand'
    )
  })

  await promise('a verb of sagas takes filters of sagas or of cases; what is refused says why', async () => {
    for (const id of names('wait', 5)) await world.start('waits', {}, { id })
    await world.reach(
      'waiting',
      async () => (await world.api('GET', '/v1/sagas?saga=waits&status=waiting')).json.items.length === 5
    )
    const job = await world.freeze({ action: 'abort', filter: { saga: 'waits' } })
    expectEqual([job.count, job.leads_to], [5, [{ status: 'compensated', count: 5 }]], 'the preview')
    const [first] = (await world.api('GET', '/v1/sagas?saga=waits')).json.items
    await world.api('POST', `/v1/sagas/${first.id}/signals/go`, {})
    await world.until(first.id)
    await world.runs(job.bulk)
    const ended = await world.ends(job.bulk)
    expectEqual(ended.outcomes, { open: 0, done: 4, changed: 0, refused: 1 }, 'outcomes')
    const { items } = (await world.api('GET', `/v1/bulk/${job.bulk}/items?outcome=refused`)).json
    expectEqual([items[0].saga, items[0].error.code], [first.id, 'past-point-of-no-return'], 'the refused one')
    const cases = await world.freeze({ action: 'pause', filter: { tool: 'pay' } })
    expectEqual([cases.count, cases.leads_to], [1, [{ status: 'paused', count: 1 }]], 'sagas of cases')
    const stopped = (await world.api('POST', `/v1/bulk/${cases.bulk}/stop`, { note: 'no need' })).json
    expectEqual([stopped.state, stopped.stop.note], ['stopped', 'no need'], 'stopped before it ran')
    expectEqual((await world.runs(cases.bulk)).state, 'stopped', 'and it stays so')
  })

  await promise('the file of a bank settles cases by sagactl; rows about anything else are told', async () => {
    await world.stick('order', names('night', 40))
    const file = join(world.directory, 'bank.csv')
    const rows = names('night', 40).map((id, i) => (i % 4 === 0 ? `${id},REJECTED,` : `${id},SETTLED,"c,${i}"`))
    writeFileSync(
      file,
      ['reference,state,charge', ...rows, rows[7], 'night-99,SETTLED,x', 'order-1,SETTLED,y', ''].join('\r\n')
    )
    const words = ['--column', 'reference=business_id', '--column', 'state=as', '--column', 'result.charge_id=charge']
    const maps = ['--map', 'SETTLED=happened', '--map', 'REJECTED=not_happened']
    const filters = ['--tool', 'pay', '--opened-since', '1h', '--note', 'the bank', '--from', file]
    const unsure = world.sagactl(['resolve', ...filters, ...words, ...maps])
    expectEqual(unsure.status, 2, `without a terminal and --yes nothing is done ${unsure.stderr}`)
    expectEqual((await world.cases('saga=order&limit=500')).length, 41, 'open cases, one of an earlier promise')
    const broken = (text) => {
      writeFileSync(join(world.directory, 'broken.csv'), text)
      const from = ['--from', join(world.directory, 'broken.csv'), '--tool', 'pay', '--note', 'the bank', '--yes']
      return world.sagactl(['resolve', ...from, '--as', 'happened', ...words.slice(0, 4)])
    }
    for (const [text, fault] of [
      ['reference,state\nnight-1,"happened\n', 'row 1 of'],
      ['reference,state\nnight-1,happened,more\n', 'more cells than the head'],
      ['reference,state,state\nnight-1,happened,happened\n', 'a column stands there twice'],
      ['reference,state\nnight-1,\n', 'the row has no verdict']
    ]) {
      const said = broken(text)
      expectEqual([said.status, said.stderr.includes(fault)], [2, true], `${fault}: ${said.stderr}`)
    }
    const jobs = world.sagactl(['bulk', '-o', 'name']).stdout.split('\n').length
    const dry = world.sagactl(['resolve', ...filters, ...words, ...maps, '--dry-run'])
    expect(dry.status === 0 && /leads to/.test(dry.stdout), 'a dry run shows the preview', dry.stdout + dry.stderr)
    const dropped = world.sagactl(['bulk', '-o', 'json']).stdout
    expectEqual(JSON.parse(dropped).items[0].state, 'stopped', 'and leaves no job that could run')
    expectEqual(world.sagactl(['bulk', '-o', 'name']).stdout.split('\n').length, jobs + 1, 'the job of the dry run')
    const done = world.sagactl(['resolve', ...filters, ...words, ...maps, '--yes'])
    expect(done.stdout.includes('leads to       30  completed'), 'the preview', done)
    expect(done.stdout.includes('done 40, changed 0, refused 0, open 0'), 'the outcomes', done)
    expect(done.stdout.includes('the same item stands there before'), 'the row that stands there twice', done)
    expect(done.stderr.includes('row 42, night-99: none of the cases'), 'a row about nothing', done)
    expect(done.stderr.includes('2 of 43 rows are left out'), 'how many rows', done)
    expectEqual(done.status, 0, 'the exit code')
    const saga = (await world.api('GET', '/v1/sagas/by-business-id/order/night-7')).json
    expectEqual([saga.status, saga.steps[0].result], ['completed', { charge_id: 'c,7' }], 'one that was settled')
    const failed = (await world.api('GET', '/v1/sagas/by-business-id/order/night-8')).json
    expectEqual(failed.status, 'compensated', 'one that was rejected')
    const listed = world.sagactl(['bulk'])
    expect(listed.stdout.includes('the bank'), 'sagactl bulk', listed)
  })

  await promise('a file may name its sagas by their ids, or the keys that the receiver saw', async () => {
    const ids = names('named', 4)
    await world.stick('order', ids)
    const cases = (await world.cases('saga=order&limit=500')).filter((one) => ids.includes(one.business_id))
    const file = join(world.directory, 'named.csv')
    const settle = (rows, member, ...filters) => {
      writeFileSync(file, ['what,state', ...rows.map((one) => `${one},not_happened`), ''].join('\n'))
      const columns = ['--column', `what=${member}`, '--column', 'state=as']
      return world.sagactl(['resolve', ...filters, '--from', file, ...columns, '--note', 'the bank', '--yes'])
    }
    const [byId, alsoById, byKey, alsoByKey] = cases
    for (const [row, member, ...filters] of [
      [byId.saga, 'id', '--tool', 'pay'],
      [alsoById.saga, 'id'],
      [byKey.operation, 'operation', '--tool', 'pay'],
      [alsoByKey.operation, 'operation']
    ]) {
      const done = settle([row], member, ...filters)
      expect(done.stdout.includes('done 1, changed 0, refused 0, open 0'), `by ${member} ${filters}`, done)
    }
    const about = (member) => settle(['nothing-of-it'], member, '--tool', 'pay').stderr
    expect(about('id').includes('none of the cases has this id of its saga'), 'no such id', about('id'))
    expect(about('operation').includes('none of the cases has this operation'), 'no such key', about('operation'))
    expect(about('of').includes('=business_id, or =id or =operation'), 'what may name it', about('of'))
  })

  await promise('a verb with filters and no terminal says what it did, and that some were refused', async () => {
    await world.stick('other', names('late', 3))
    const done = world.sagactl(['resolve', 'skip', '--saga', 'other', '--note', 'never mind', '--yes'])
    expectEqual(done.status, 4, `skip is refused ${done.stdout}`)
    expect(done.stdout.includes('done 0, changed 0, refused 3, open 0'), 'the outcomes', done)
    const none = world.sagactl(['abort', '--saga', 'nothing', '--note', 'x', '--yes'])
    expectEqual([none.status, none.stderr.includes('nothing to do')], [0, true], 'nothing was found')
  })

  await promise('debts are settled as a set, after the end of their sagas, once each', async () => {
    const abandons = await world.freeze({ action: 'abandon', filter: { saga: 'other' } })
    await world.runs(abandons.bulk)
    expectEqual((await world.ends(abandons.bulk)).outcomes.done, 3, 'abandoned')
    const debts = (await world.api('GET', '/v1/debts?saga=other')).json.items
    expect(debts.length >= 3, 'debts', debts)
    const items = debts.map(({ operation }) => ({ operation, as: 'undone' }))
    for (let again = 0; again < 2; again++) {
      const job = await world.freeze({ action: 'resolve', items, note: 'refunded' })
      expectEqual([job.applies, job.leads_to[0].status], [debts.length, 'a settled debt'], 'the preview')
      await world.runs(job.bulk)
      expectEqual((await world.ends(job.bulk)).outcomes.done, debts.length, 'settled')
    }
    expectEqual((await world.api('GET', '/v1/debts?saga=other&settled=false')).json.items, [], 'nothing is open')
  })

  await promise('debts are settled by filter: only those that are open, of the tool, and with the word', async () => {
    const open = async (query = '') => (await world.api('GET', `/v1/debts?settled=false${query}`)).json.items
    await world.stick('other', names('debt', 3))
    await world.stick('order', names('debt', 2))
    for (const saga of ['other', 'order']) {
      const abandons = await world.freeze({ action: 'abandon', filter: { saga } })
      await world.runs(abandons.bulk)
      await world.ends(abandons.bulk)
    }
    const [others, orders] = [await open('&saga=other'), await open('&saga=order')]
    expect(others.length >= 3 && orders.length >= 2, 'what stands', [others.length, orders.length])
    const [first] = others
    const path = `/v1/operations/${first.operation}/resolve`
    expectEqual((await world.api('POST', path, { as: 'undone', note: 'by hand' })).status, 200, 'one is settled')
    const job = await world.freeze({ action: 'settle', as: 'undone', filter: { saga: 'other' }, note: 'refunded' })
    expectEqual([job.count, job.applies], [others.length - 1, others.length - 1], 'the open ones')
    await world.runs(job.bulk)
    expectEqual((await world.ends(job.bulk)).outcomes.done, others.length - 1, 'settled')
    expectEqual([(await open('&saga=other')).length, (await open('&saga=order')).length], [0, orders.length], 'left')
    const none = await world.freeze({ action: 'settle', as: 'undone', filter: { tool: 'of-no-name' }, note: 'x' })
    expectEqual(none.count, 0, 'of another tool')
    for (const wrong of [
      { as: 'happened', filter: { saga: 'order' } },
      { as: 'undone', filter: { saga: 'order', reason: 'unknown' } },
      { filter: { saga: 'order' } }
    ])
      expectEqual(
        (await world.api('POST', '/v1/bulk', { action: 'settle', note: 'x', ...wrong })).status,
        422,
        JSON.stringify(wrong)
      )
    const filters = ['--saga', 'order', '--tool', 'pay', '--as', 'not_happened', '--note', 'says the bank']
    const unsure = world.sagactl(['settle', ...filters])
    expectEqual(unsure.status, 2, `without --yes nothing is done: ${unsure.stderr}`)
    const newest = (await world.api('GET', '/v1/bulk?limit=1')).json.items[0]
    expectEqual([newest.action, newest.state], ['settle', 'stopped'], 'the job of which nobody wanted anything')
    expect(!unsure.stderr.includes('taken back'), 'it says nothing about what can be taken back', unsure.stderr)
    const maybe = orders.filter((debt) => debt.tool === 'pay' && debt.took_effect === 'maybe').length
    const done = world.sagactl(['settle', ...filters, '--yes'])
    expectEqual(done.status, 0, `sagactl settles: ${done.stdout} ${done.stderr}`)
    expectEqual((await open('&saga=order')).length, orders.length - maybe, 'those in doubt')
    for (const debt of await open('&saga=order')) {
      const one = world.sagactl(['settle', debt.operation, '--as', 'undone', '--note', 'by hand'])
      expectEqual(one.stdout, `debt of operation ${debt.operation} settled as undone\n`, `by key: ${one.stderr}`)
    }
    expectEqual(await open(), [], 'nothing is open')
  })

  await promise('what has not ended is no debt: to settle it by its key does nothing', async () => {
    await world.stick('other', ['undecided'])
    const path = '/v1/sagas/by-business-id/other/undecided'
    const before = (await world.api('GET', path)).json
    const { key } = before.steps.find((step) => step.took_effect === 'maybe')
    const items = [{ operation: key, as: 'undone' }]
    const job = await world.freeze({ action: 'settle', items, note: 'by mistake' })
    expectEqual([job.count, job.unmatched[0]?.count], [0, 1], `a job: ${JSON.stringify(job)}`)
    const one = world.sagactl(['settle', key, '--as', 'undone', '--note', 'by mistake', '--yes'])
    expect(one.status !== 0 && one.stderr.includes('is no debt: its saga is escalated'), 'sagactl', one)
    expectEqual((await world.api('GET', path)).json.status, before.status, 'the saga')
    expectEqual(
      (await world.api('POST', `/v1/operations/${key}/resolve`, { as: 'happened', note: 'x' })).status,
      200,
      'x'
    )
  })

  await promise('what people said, as sagactl record writes it down, is said again on stage', async () => {
    const write = (name, text) => (writeFileSync(join(world.directory, name), text), join(world.directory, name))
    const files = [write('definitions.json', JSON.stringify(definitions))]
    const says = async (saga, words, status) => {
      const path = `/v1/sagas/by-business-id/${saga}`
      for (const body of words) {
        let number
        await world.reach(`a case of ${saga}`, async () => {
          number = (await world.api('GET', path)).json.escalation
          if (!number) await world.api('POST', `${path}/escalate`, { note: 'look' })
          return number
        })
        const { round } = (await world.api('GET', `/v1/escalations/${number}`)).json
        const said = await world.api('POST', `/v1/escalations/${number}/resolve`, { note: 'x', round, ...body })
        expectEqual(said.status, 200, `${saga} ${JSON.stringify(said.json)}`)
      }
      await world.reach(`${saga} is ${status}`, async () => (await world.api('GET', path)).json.status === status)
      const { stdout, stderr } = world.sagactl(['record', saga])
      files.push(write(`${saga.replace('/', '-')}.json`, stdout))
      expectEqual(stderr, '', 'sagactl record')
    }
    await world.stick('other', ['again', 'by-hand'])
    expectEqual((await world.api('POST', '/v1/sagas', { saga: 'waits', id: 'asked', input: {} })).status, 201, 'waits')
    await says('waits/asked', [{ action: 'abandon' }], 'abandoned') // about a saga of which nobody was asked
    const twice = { action: 'retry', accept_double: true }
    await says('other/again', [twice, { action: 'resolve', as: 'not_happened' }], 'compensated')
    await says('other/by-hand', [{ action: 'resolve', as: 'undone' }], 'compensated')
    const played = world.sagactl(['test', ...files])
    expectEqual(played.status, 0, `sagactl test ${played.stdout} ${played.stderr}`)
  })

  await promise('an engine is killed while a job runs: the next goes on, and each saga hears of it once', async () => {
    const killed = async () => {
      await world.killEngine(world.engines[0])
      world.launchEngine(world.engines[0])
      await world.engineReady(world.engines[0])
    }
    await world.stick('other', names('killed', 60))
    world.engineArgs = ['--bulk-rate', '20']
    await killed()
    const job = await world.freeze({ action: 'resolve', as: 'happened', filter: { saga: 'other', tool: 'pay' } })
    await world.runs(job.bulk)
    for (const fewest of [5, 30]) {
      await world.reach('some are done', async () => (await world.job(job.bulk)).outcomes.done >= fewest)
      await killed()
    }
    const ended = await world.ends(job.bulk)
    expectEqual(ended.outcomes, { open: 0, done: job.count, changed: 0, refused: 0 }, 'outcomes')
    expectEqual(JSON.parse(world.acts(job.bulk)), Array(job.count).fill(1), 'acts by the logs')
  })

  await promise('a set that is older than fifteen minutes is not run', async () => {
    const job = await world.freeze({ action: 'pause', filter: { tool: 'pay' } })
    world.sql(`update sagad.bulk set expires_at = now() - interval '1 minute' where id = '${job.bulk}'`)
    await world.runs(job.bulk, 410)
    expectEqual((await world.job(job.bulk)).state, 'expired', 'the state')
    expectEqual((await world.api('GET', '/v1/bulk/01890a5d-ac96-774b-bcce-b302099a0007')).status, 404, 'no such job')
  })
})
