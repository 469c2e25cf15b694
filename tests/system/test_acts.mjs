// Acts of people, over two engines of which either one is asked: each change is one act with its name, an act that was
// answered is there after a kill, refusals are one row for each token and minute, and a namespace sees its own.
import { createHash, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, quick, run, sleep } from '../lib/world.mjs'

const tokens = [
  ['ada', 'admin', 'default'],
  ['ann', 'operator', 'default'],
  ['bot', 'agent', 'default'],
  ['rob', 'reader', 'default'],
  ['eve', 'admin', 'other']
]
const document = {
  tools: [
    {
      name: 'pay',
      effect: 'idempotent',
      terminal: true,
      http: { method: 'POST', url: 'http://127.0.0.1:1/pay' },
      breaker: { failures: 5, cooldown: '1m' }
    }
  ],
  sagas: [
    { name: 'wait', steps: [{ id: 'go', signal: { name: 'go', timeout: '1h' } }] },
    { name: 'ask', steps: [{ id: 'ok', approve: { show: '${ .input }', timeout: '1h', roles: ['operator'] } }] }
  ]
}
const kills = quick ? 4 : 30

await run(new World(), async (world) => {
  await world.startPostgres()
  const file = join(world.directory, 'tokens.json')
  writeFileSync(
    file,
    JSON.stringify({
      tokens: tokens.map(([name, role, namespace]) => ({
        name,
        role,
        namespace,
        sha256: createHash('sha256').update(`secret-of-${name}`).digest('hex')
      }))
    }),
    { mode: 0o600 }
  )
  await world.startEngines(2, ['--tokens', file])

  // Asks one engine after the other, so that half of the changes come to an engine that does not own the saga.
  let asked = 0
  const as = (name, method, path, body, headers = {}) => {
    world.port = world.engines[asked++ % 2].port
    return world.api(method, path, body, { headers: { authorization: `Bearer secret-of-${name}`, ...headers } })
  }
  const does = async (name, method, path, body, status = 200, headers = {}) => {
    const answer = await world.calm(() => as(name, method, path, body, headers))
    expectEqual(answer.status, status, `${name}: ${method} ${path} is answered with ${status}: ${answer.text}`)
    return answer.json
  }
  const acts = async (query = '', name = 'ann') => (await does(name, 'GET', `/v1/acts?limit=500${query}`)).items
  const start = async (saga, id) => (await does('bot', 'POST', '/v1/sagas', { saga, id, input: { amount: 5 } }, 201)).id

  await does('ada', 'POST', '/v1/definitions', document)
  await promise('both engines know the definitions', async () => {
    for (const { port } of world.engines)
      for (;;) {
        world.port = port
        const one = await world.api('GET', '/v1/definitions/ask', undefined, {
          headers: { authorization: 'Bearer secret-of-ada' }
        })
        if (one.status === 200) break
        await sleep(50)
      }
  })

  await promise('each change by a person is one act, and the work of programs is none', async () => {
    const note = 'the test wants it'
    const told = [['ada', 'apply', 'definition', null, 'ask 1, pay 1, wait 1', null]]
    const tell = (...act) => told.push(act)
    await does('ada', 'POST', '/v1/definitions', document) // unchanged
    await does('ada', 'POST', '/v1/definitions?dry_run=true', { sagas: [] })
    for (let i = 0; i < 6; i++) {
      const id = await start('wait', `w-${i}`)
      await does('ann', 'POST', `/v1/sagas/${id}/pause`, { note })
      tell('ann', 'pause', 'saga', null, id, `wait/w-${i}`)
      await does('ann', 'POST', `/v1/sagas/by-business-id/wait/w-${i}/resume`, { note })
      tell('ann', 'resume', 'saga', null, id, `wait/w-${i}`)
      await does('ann', 'POST', `/v1/sagas/${id}/resume`, { note }, 409) // nothing is paused any more
      if (i < 2) {
        await does('bot', 'POST', `/v1/sagas/${id}/signals/go`, {}, 201)
      } else if (i < 4) {
        await does('ann', 'POST', `/v1/sagas/${id}/signals/go`, {}, 201)
        tell('ann', 'signal', 'saga', 'go', id, `wait/w-${i}`)
      } else {
        await does('bot', 'POST', `/v1/sagas/${id}/abort`, {})
        tell('bot', 'abort', 'saga', null, id, `wait/w-${i}`)
      }
    }
    for (const [i, decision] of ['approve', 'refuse'].entries()) {
      const id = await start('ask', `a-${i}`)
      let waits
      do {
        waits = (await does('ann', 'GET', '/v1/approvals?status=open')).items.find((one) => one.saga === id)
      } while (!waits)
      await does('ann', 'POST', `/v1/approvals/${waits.n}`, { decision, hash: waits.hash, note })
      tell('ann', 'decide', 'approval', decision, String(waits.n), `ask/a-${i}`)
    }
    const hold = await does('ann', 'POST', '/v1/holds', { tool: 'pay', note }, 201)
    tell('ann', 'hold', 'hold', 'tool pay', String(hold.n), null)
    await does('ann', 'POST', `/v1/holds/${hold.n}/release`, { note })
    tell('ann', 'release', 'hold', null, String(hold.n), null)
    await does('ann', 'POST', `/v1/holds/${hold.n}/release`, { note }, 409)
    for (const state of ['open', 'closed']) {
      await does('ann', 'POST', '/v1/tools/pay/breaker', { state, note })
      tell('ann', 'breaker', 'tool', state, 'pay', null)
    }
    const schedule = { name: 'nightly', saga: 'wait', every: '24h' }
    await does('ann', 'POST', '/v1/schedules', schedule, 201)
    tell('ann', 'schedule', 'schedule', null, 'nightly', null)
    await does('ann', 'POST', '/v1/schedules', schedule) // the same again
    for (const verb of ['hold', 'release']) {
      await does('ann', 'POST', `/v1/schedules/nightly/${verb}`, { note })
      tell('ann', verb, 'schedule', null, 'nightly', null)
    }
    await does('ann', 'DELETE', '/v1/schedules/nightly')
    tell('ann', 'delete', 'schedule', null, 'nightly', null)
    await start('wait', 'b-1')
    const bulk = await does(
      'ann',
      'POST',
      '/v1/bulk',
      { action: 'abort', filter: { saga: 'wait', status: 'waiting' }, note, preview: true },
      201
    )
    await does('ann', 'POST', `/v1/bulk/${bulk.bulk}/run`, {})
    tell('ann', 'run', 'bulk', `abort, ${bulk.applies} items`, bulk.bulk, null)
    await does('ann', 'POST', `/v1/bulk/${bulk.bulk}/run`, {}) // the second answers with the same job
    const grant = await does('bot', 'POST', '/v1/grants', { run: 'chat-1' }, 201)
    tell('bot', 'grant', 'grant', 'chat-1', grant.id, null)
    await does('ann', 'DELETE', `/v1/grants/${grant.id}`)
    tell('ann', 'revoke', 'grant', null, grant.id, null)
    await does('bot', 'DELETE', `/v1/grants/${grant.id}`) // it is revoked already

    const found = (await acts('&outcome=done')).reverse()
    const shown = found.map((act) => [
      act.actor,
      act.verb,
      act.kind,
      act.detail,
      act.target,
      act.business_id && `${act.saga_name}/${act.business_id}`
    ])
    const key = (act) => JSON.stringify(act)
    expectEqual(shown.map(key).sort(), told.map(key).sort(), 'all acts')
    for (const act of found) {
      expectEqual([act.via, act.address, act.count, act.code], ['token', '127.0.0.1', 1, null], key(act))
      if (!['apply', 'schedule', 'delete', 'signal', 'revoke'].includes(act.verb) && act.actor === 'ann')
        expectEqual(act.note, note, key(act))
    }
  })

  await promise('filters hold together, and pages add up', async () => {
    const all = await acts('&outcome=done')
    expectEqual((await acts('&actor=bot')).length, 3, 'acts of the agent')
    expectEqual((await acts('&actor=bot,ada&verb=apply')).length, 1, 'acts of two, of one verb')
    expectEqual(
      (await acts('&tool=pay')).map((act) => act.verb),
      ['breaker', 'breaker', 'hold'],
      'acts about a tool'
    )
    const [pause] = await acts('&verb=pause')
    const one = await acts(`&saga=${pause.saga}`)
    expect(one.length >= 2 && one.every((act) => act.saga === pause.saga), 'acts on one saga are found by its id', one)
    const name = `${pause.saga_name}/${pause.business_id}`
    const named = world.sagactl(['--token', 'secret-of-ann', 'acts', '--saga', name, '-o', 'name'])
    expectEqual(named.stdout.trim().split('\n').length, one.length, 'acts on one saga are found by its business id')
    expectEqual((await acts(`&outcome=done&until=${all.at(-1).at}`)).length, 0, 'acts before the first one')
    expectEqual((await acts(`&outcome=done&since=${all[0].at}`))[0].id, all[0].id, 'acts since the last one')
    const paged = []
    for (let cursor = ''; cursor !== null;) {
      const page = await does('ann', 'GET', `/v1/acts?limit=7&outcome=done${cursor && `&cursor=${cursor}`}`)
      paged.push(...page.items.map((act) => act.id))
      cursor = page.next_cursor
    }
    expectEqual(
      paged,
      all.map((act) => act.id),
      'the pages'
    )
    for (const wrong of ['cursor=x', 'since=x', 'outcome=maybe', 'who=x'])
      expectEqual((await as('ann', 'GET', `/v1/acts?${wrong}`)).status, 400, wrong)
  })

  await promise('another namespace sees none of them', async () => {
    expectEqual(await acts('', 'eve'), [], 'the acts of the other namespace')
  })

  await promise('refusals are one row for each token and minute', async () => {
    const id = await start('wait', 'r-1')
    for (let i = 0; i < 20; i++) await does('rob', 'POST', `/v1/sagas/${id}/abort`, { note: 'x' }, 403)
    await does('bot', 'POST', '/v1/holds', { tool: 'pay', note: 'x' }, 403)
    const rows = () => world.sql(`select coalesce(sum(count), 0) from sagad.act where actor = 'rob'`)
    for (const end = Date.now() + 60000; rows() !== '20' && Date.now() < end;) await sleep(100)
    const [count, minutes] = world
      .sql(`select count(*), count(distinct date_trunc('minute', at)) from sagad.act where actor = 'rob'`)
      .split('|')
    expectEqual([rows(), count], ['20', minutes], 'the refusals of rob, and their rows')
    const [row] = await acts('&actor=rob')
    expectEqual(
      [row.verb, row.kind, row.outcome, row.code, row.role, row.target],
      ['abort', 'saga', 'refused', 'forbidden', 'reader', id],
      'a row of refusals'
    )
    expectEqual(
      (await acts('&actor=ann&outcome=refused')).reduce((sum, act) => sum + act.count, 0),
      7,
      'six resumes and a release that came too late'
    )
  })

  await promise('the longest note stands in the act as it was written', async () => {
    const id = await start('wait', 'note-1')
    const note = `a\u0001\\"b ${'\u{1f47e}'.repeat(990)}`
    await does('ann', 'POST', `/v1/sagas/${id}/pause`, { note })
    const [act] = await acts(`&saga=${id}`)
    expectEqual(act.note, note, 'the note of the act')
  })

  await promise(`${kills} times all engines are killed right after the answer, and the act is there`, async () => {
    for (let i = 0; i < kills; i++) {
      const id = await start('wait', `k-${i}`)
      await does('ann', 'POST', `/v1/sagas/${id}/pause`, { note: `kill ${i}` })
      await Promise.all(world.engines.map((engine) => world.killEngine(engine)))
      expectEqual(
        world.sql(`select count(*) from sagad.act where verb = 'pause' and saga = '${id}' and note = 'kill ${i}'`),
        '1',
        'the act of a pause that was answered'
      )
      for (const engine of world.engines) world.launchEngine(engine)
      for (const engine of world.engines) await world.engineReady(engine)
    }
  })

  await promise('the role of the engines changes no act, and only whole old months leave', async () => {
    const fails = (statement) => {
      try {
        world.sql(statement)
        return false
      } catch {
        return true
      }
    }
    world.makeEngineRole('sagad_engine')
    const asEngine = (statement) => `set session authorization sagad_engine; ${statement}`
    const slot = world.sql('select min(slot) from sagad.act').padStart(2, '0')
    for (const statement of [
      "update sagad.act set note = 'x'",
      'delete from sagad.act',
      'truncate sagad.act',
      `update sagad.act_${slot} set note = 'x'`,
      `delete from sagad.act_${slot}`
    ])
      expect(fails(asEngine(statement)), `the engine may not: ${statement}`)
    const row = (name, more) =>
      JSON.stringify({
        namespace: 'default',
        at: new Date(Date.now() - 1000).toISOString(),
        id: randomUUID(),
        actor: name,
        role: 'admin',
        via: 'token',
        verb: 'hold',
        ...more
      })
    const refused = row('none', { code: 'forbidden', count: 2, last_at: new Date().toISOString() })
    world.sql(asEngine(`select sagad.act_put('${row('one')}', '7')`))
    for (let i = 0; i < 2; i++) world.sql(asEngine(`select sagad.act_refuse('[${refused}]')`))
    world.sql(asEngine("select sagad.act_forget(now() - interval '400 days')"))
    expectEqual(
      world.sql("select actor, target, count from sagad.act where actor in ('none', 'one') order by actor"),
      'none||4\none|7|1',
      'what the engine may write'
    )
    const count = () => Number(world.sql('select count(*) from sagad.act'))
    const before = count()
    world.sql(`insert into sagad.act (slot, namespace, at, id, actor, role, via, verb, outcome, last_at)
      select sagad.act_slot(a.at), 'default', a.at, gen_random_uuid(), 'old', 'admin', 'token', 'hold', 'done', a.at
      from (select now() - i * interval '1 day' as at from generate_series(200, 500, 10) as i) as a`)
    world.sql("select sagad.act_forget(now() - interval '400 days')")
    const old = (where) => world.sql(`select count(*) from sagad.act where actor = 'old' and ${where}`)
    expectEqual(
      [old("at < now() - interval '432 days'"), old("at > now() - interval '400 days'")],
      ['0', '20'],
      'old months'
    )
    world.sql('select sagad.act_forget(now())')
    expectEqual(count(), before, 'acts of the last 31 days')
    world.sql('create role watcher; grant usage on schema sagad to watcher; grant select on sagad.act to watcher')
    expect(fails('set session authorization watcher; select sagad.act_forget(now())'), 'a reader removes nothing')
  })
})
