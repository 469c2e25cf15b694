// Lists of cases as a person on call asks for them, by the API and by sagactl: each filter, several values, groups with
// sums, and how far a list of very many cases looked. The cases are rows of the database, as many as a bad night makes.
import { World, expect, expectEqual, promise, run } from '../lib/world.mjs'

const saga = (i) => `01a20e16-e514-7000-8000-${String(i).padStart(8, '0')}0005`

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startEngines(1)
  const numbers = async (query, of = 'escalations') => {
    const { status, json } = await world.api('GET', `/v1/${of}?${query}`)
    expectEqual(status, 200, `${query} is read`)
    return json.items.map((item) => item.n)
  }
  world.sql(`
    insert into sagad.saga (shard, id, namespace, name, version, status, tags, input_digest, created_at, updated_at,
    business_id)
      select 5, v.id::uuid, 'default', v.name, 1, 'running', v.tags::jsonb, sha256(v.id::bytea), now(), now(),
      v.name || '-7' from (values
      ('${saga(1)}', 'trip', '{"customer": "ada", "region": "eu"}'), ('${saga(2)}', 'order',
      '{"customer": "bob, jr", "region": "eu"}')) as v (id, name, tags);
    insert into sagad.escalation (shard, number, saga, namespace, opened_at, resolved_at, step, reason, body)
      select 5, 5 + 64 * n, (case when n % 2 = 0 then '${saga(1)}' else '${saga(2)}' end)::uuid, 'default',
      '2026-01-31 09:00:00Z'::timestamptz + n * interval '1 s',
      case when n = 2 then now() end, case when n < 5 then 'pay' end, case when n = 3 then 'stuck' else 'unknown' end,
      convert_to(json_build_object('n', 5 + 64 * n, 'saga', '${saga(1)}', 'step', 'pay', 'reason', 'unknown', 'status',
      'open', 'opened_at', '2026-01-31T09:00:00.000Z', 'cost', n * 100,
      'currency', case n when 4 then 'EUR' when 6 then 'CHF' end,
      'actions', '[]'::json, 'evidence', json_build_object('tool', 'bank' || n % 3, 'last_error', 'http-50' || n % 2,
      'detail', 'a "no", and why'))::text, 'UTF8') from generate_series(1, 6) as n;
    insert into sagad.approval (shard, number, saga, namespace, opened_at, step, status, body)
      select 5, 5 + 64 * n, (case when n % 2 = 0 then '${saga(1)}' else '${saga(2)}' end)::uuid, 'default',
      now() + n * interval '1 s', 'ask' || n, 'open',
      convert_to(json_build_object('n', 5 + 64 * n, 'show', n)::text, 'UTF8') from generate_series(1, 3) as n;`)
  const n = (...list) => list.map((i) => 5 + 64 * i)

  await promise('each filter holds, several values are one or the other, and filters hold together', async () => {
    for (const [query, ...found] of [
      ['status=open', 6, 5, 4, 3, 1],
      ['', 6, 5, 4, 3, 2, 1],
      ['status=resolved', 2],
      ['tool=bank1', 4, 1],
      ['tool=bank1,bank2', 5, 4, 2, 1],
      ['saga=trip', 6, 4, 2],
      ['step=', 6, 5],
      ['step=,pay', 6, 5, 4, 3, 2, 1],
      ['reason=stuck', 3],
      ['error=http-501', 5, 3, 1],
      ['tag.customer=ada', 6, 4, 2],
      ['tag.customer=bob%2C%20jr', 5, 3, 1],
      ['tag.customer=ada&tag.customer=bob%2C%20jr&tag.region=eu', 6, 5, 4, 3, 2, 1],
      ['tag.customer=ada&tag.region=us'],
      ['cost_above=400', 6, 5],
      ['since=2026-01-31T09:00:03Z&until=2026-01-31T09:00:05Z', 4, 3],
      ['status=open&tool=bank1,bank2&saga=order&cost_above=100', 5]
    ])
      expectEqual(await numbers(query), n(...found), query)
    expectEqual(await numbers('saga=trip', 'approvals'), n(2), 'approvals of one saga')
    expectEqual(await numbers('step=ask1,ask3&tag.region=eu', 'approvals'), n(3, 1), 'approvals of two steps')
  })

  await promise('a filtered list goes on where its page ended', async () => {
    const first = (await world.api('GET', '/v1/escalations?saga=trip&limit=2')).json
    expectEqual(
      first.items.map((item) => item.n),
      n(6, 4),
      'the first page'
    )
    expectEqual(await numbers(`saga=trip&limit=2&cursor=${first.next_cursor}`), n(2), 'the second')
    expectEqual(first.looked_to, undefined, 'all were looked at')
  })

  await promise(
    'a case shows who looks at it and who is to answer it, and is found by them; a repeat is said once',
    async () => {
      const say = (i, verb, body, key) =>
        world.api(
          'POST',
          `/v1/escalations/${n(i)[0]}/${verb}`,
          { note: 'as said', ...body },
          key ? { headers: { 'Idempotency-Key': key } } : {}
        )
      const later = new Date(Date.now() + 3600000).toISOString()
      expectEqual((await say(1, 'acknowledge', { until: later })).json.acknowledged_until, later, 'until when')
      expectEqual((await say(2, 'acknowledge', {})).json.acknowledged_by, 'local', 'a case that is resolved')
      expectEqual(
        (await say(3, 'acknowledge', { until: '2026-01-31T09:00:00Z' })).json.acknowledged_by,
        null,
        'one that is over'
      )
      expectEqual((await say(4, 'assign', { to: 'ada' })).json.assigned_to, 'ada', 'to whom')
      expectEqual((await say(5, 'assign', { to: 'ada' })).json.assigned_to, 'ada', 'to whom')
      expectEqual((await say(5, 'assign', { to: '' })).json.assigned_to, null, 'to nobody any more')
      for (let again = 0; again < 2; again++)
        expectEqual((await say(6, 'comment', { note: 'call them' }, 'once')).json.remark_count, 1, 'comments')
      expectEqual((await say(99, 'comment', {})).status, 404, 'a case that is not there')
      for (const [query, ...found] of [
        ['acknowledged=true', 2, 1],
        ['acknowledged=false&status=open', 6, 5, 4, 3],
        ['assigned=ada', 4],
        ['assigned=&acknowledged=false', 6, 5, 3]
      ])
        expectEqual(await numbers(query), n(...found), query)
      const one = (await world.api('GET', `/v1/escalations/${n(5)[0]}`)).json
      expectEqual(
        one.remarks.map(({ kind, to, note, actor }) => [kind, to, note, actor]),
        [
          ['assign', 'ada', 'as said', 'local'],
          ['assign', null, 'as said', 'local']
        ],
        'what was said of it'
      )
    }
  )

  await promise('a row says what it is about, with the sentence of the receiver', async () => {
    const [row] = (await world.api('GET', '/v1/escalations?limit=1')).json.items
    for (const [name, value] of Object.entries({
      saga_name: 'trip',
      business_id: 'trip-7',
      tool: 'bank0',
      error: 'http-500',
      detail: 'a "no", and why',
      cost: 600
    }))
      expectEqual(row[name], value, name)
    expectEqual(row.tags, { customer: 'ada', region: 'eu' }, 'tags')
  })

  await promise('groups have counts, times and sums, the largest first', async () => {
    const { items } = (await world.api('GET', '/v1/escalations?group_by=reason,tag.customer&status=open')).json
    const francs = { currency: 'CHF', micros: 600, cases: 1 }
    const euros = { currency: 'EUR', micros: 400, cases: 1 }
    expectEqual(
      items.map((item) => [item.group, item.count, item.costs]),
      [
        [{ reason: 'unknown', 'tag.customer': 'ada' }, 2, [francs, euros]],
        [{ reason: 'unknown', 'tag.customer': 'bob, jr' }, 2, [{ currency: null, micros: 600, cases: 2 }]],
        [{ reason: 'stuck', 'tag.customer': 'bob, jr' }, 1, [{ currency: null, micros: 300, cases: 1 }]]
      ],
      'groups: francs and euros are not added'
    )
    expectEqual([items[0].oldest, items[0].newest], ['2026-01-31T09:00:04.000Z', '2026-01-31T09:00:06.000Z'], 'times')
    const steps = (await world.api('GET', '/v1/approvals?group_by=saga')).json.items
    expectEqual(
      steps.map(({ group, count }) => [group.saga, count]),
      [
        ['order', 2],
        ['trip', 1]
      ],
      'approvals'
    )
  })

  await promise('a request that cannot be read is refused with a sentence', async () => {
    for (const query of ['group_by=colour', 'cost_above=-1', 'since=today', 'tag.=x', 'tool=%01', 'status=lost'])
      expectEqual((await world.api('GET', `/v1/escalations?${query}`)).status, 400, query)
    expectEqual((await world.api('GET', '/v1/approvals?tool=bank')).status, 400, 'approvals have no tool')
    const many = Array.from({ length: 65 }, (_, i) => `tag.customer=${i}`).join('&')
    expectEqual((await world.api('GET', `/v1/escalations?${many}`)).status, 400, 'too many values')
  })

  await promise('sagactl and psql show the same', async () => {
    const shown = world.sagactl(['cases', '--group-by', 'tool,error', '-o', 'csv'])
    expect(shown.stdout.includes('"bank1","http-500","1","400 EUR","0"'), 'a group as CSV', shown)
    const sheet = world.sagactl(['cases', '--tool', 'bank1', '--tag', 'customer=ada', '-o', 'csv']).stdout
    expect(sheet.includes('"a ""no"", and why"'), 'a sentence with quotes', sheet)
    expectEqual(sheet.trim().split('\n').length, 2, 'a head and a row')
    expectEqual(world.sagactl(['cases', '--step', '', '-o', 'name']).stdout, `${n(6, 5).join('\n')}\n`, 'names')
    const rows = world.sql(
      `select number from sagad.case_list where tool = 'bank1' and saga_name = 'order' and detail like 'a "no%'`
    )
    expectEqual(rows, String(n(1)[0]), 'the view')
  })

  await promise('a list of very many says how far it looked, and goes on from there', async () => {
    world.sql(`insert into sagad.escalation (shard, number, saga, namespace, opened_at, step, reason, body)
      select 5, 5 + 64 * n, '${saga(1)}', 'default', '2026-02-01Z'::timestamptz + n * interval '1 ms', 'pay', 'unknown',
      '{}' from generate_series(100, 20100) as n; analyze sagad.escalation`)
    const page = (await world.api('GET', '/v1/escalations?status=open&tool=bank1')).json
    expectEqual([page.items.length, page.looked_to], [0, '2026-02-01T00:00:00.101Z'], 'nothing yet')
    expectEqual(await numbers(`status=open&tool=bank1&cursor=${page.next_cursor}`), n(4, 1), 'those behind it')
    const groups = (await world.api('GET', '/v1/escalations?status=open&group_by=reason')).json
    expectEqual([groups.items[0].count, groups.looked_to], [20000, '2026-02-01T00:00:00.101Z'], 'groups, too')
    const talk = world.sagactl(['cases', '--tool', 'bank1'])
    expect(talk.stderr.includes('Looked at 20000, back to 2026-02-01T00:00:00.101Z'), 'sagactl says so', talk)
  })
})
