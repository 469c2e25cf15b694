// Lists of very many: how long the first page takes for each filter, with a million sagas and ten thousand cases, and
// how far a list looked that found too little. Not part of a run of the benchmark; asked for by hand:
//
//     SAGAD=build/release/sagad SAGACTL=build/release/tools/sagactl/sagactl node tests/bench/lists.mjs
//
// The sagas are rows without logs: what reads logs (`waits_for`, `step`, `error` of sagas) finds nothing, and its time
// is that of so many looks at an empty log.
import { World, run } from '../lib/world.mjs'

const sagas = Number(process.env.SAGAS ?? 1000000)
const cases = 10000
const rounds = 9

const fill = `
create temp table made as select i, (i % 64)::int2 as shard,
  (lpad(to_hex((extract(epoch from now()) * 1000)::int8 - (${sagas} - i) * 80::int8), 12, '0') || '7' ||
  substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 11) || lpad(to_hex(i % 64), 4, '0'))::uuid as id,
  i % 100 <> 0 as ended, now() - (${sagas} - i) * interval '80 ms' as at from generate_series(1, ${sagas}) as i;
insert into sagad.saga (shard, id, namespace, name, version, status, tags, input_digest, created_at, updated_at,
ended_at, business_id, business_digest)
  select shard, id, 'default', case when i % 2 = 0 then 'order' else 'trip' end, 1,
  case when ended then 'completed' when i % 200 = 0 then 'escalated' else 'waiting' end,
  jsonb_build_object('customer', 'c' || i % 50000, 'team', 't' || i % 5), sha256(int4send(i)), at, at,
  case when ended then at end, 'b-' || i, substr(sha256(int4send(i)), 1, 16) from made order by i;
insert into sagad.due (shard, saga, what, at) select shard, id, 'parked', 'infinity' from made where not ended;
insert into sagad.escalation (shard, number, saga, namespace, opened_at, step, reason, body)
  select shard, i * 64::int8 + shard, id, 'default', at, 'pay', 'unknown', convert_to(json_build_object('n',
  i * 64::int8 + shard, 'saga', id, 'step', 'pay', 'reason', 'unknown', 'status', 'open', 'opened_at', at, 'cost',
  i % 700, 'actions', '[]'::json, 'evidence', json_build_object('tool', 'bank' || i % 3, 'last_error',
  'http-50' || i % 2))::text, 'UTF8') from made where not ended order by i limit ${cases};
analyze sagad.saga, sagad.due, sagad.escalation;
`

// Each filter of sagas and of cases: what fits many, what fits few, what fits nothing.
const filters = [
  'sagas?',
  'sagas?status=escalated',
  'sagas?status=escalated,waiting',
  'sagas?status=completed',
  'sagas?status=abandoned',
  'sagas?status=paused,compensating',
  'sagas?waits_for=time',
  'sagas?waits_for=retry',
  'sagas?saga=order',
  'sagas?saga=nothing',
  'sagas?business_id=b-17',
  'sagas?business_id=nothing',
  'sagas?business_id_prefix=b-17',
  'sagas?version=2',
  'sagas?group_by=status&saga=order',
  'sagas?tag.customer=c17',
  'sagas?tag.customer=nothing',
  'sagas?tag.team=t1',
  'sagas?tag.team=t1&tag.customer=c16&status=waiting,escalated',
  'sagas?step=pay',
  'sagas?error=http-501',
  `sagas?since=${new Date(Date.now() - 3600000).toISOString()}`,
  'sagas?until=2020-01-01T00:00:00Z',
  'escalations?',
  'escalations?status=open',
  'escalations?status=resolved',
  'escalations?tool=bank1&status=open',
  'escalations?tool=nothing',
  'escalations?error=http-501&status=open',
  'escalations?error=nothing',
  'escalations?saga=order&status=open',
  'escalations?saga=nothing',
  'escalations?step=pay',
  'escalations?step=nothing',
  'escalations?reason=unknown',
  'escalations?reason=stuck',
  'escalations?tag.team=t0',
  'escalations?tag.customer=c1700&status=open',
  'escalations?tag.customer=nothing',
  'escalations?cost_above=690',
  'escalations?cost_above=1000000',
  'escalations?acknowledged=false&status=open',
  'escalations?acknowledged=true',
  'escalations?assigned=nobody',
  'escalations?until=2020-01-01T00:00:00Z',
  'escalations?group_by=tool&status=open',
  'escalations?group_by=tool,reason,error&status=open',
  'escalations?group_by=step&status=open',
  'escalations?group_by=saga&status=open',
  'escalations?group_by=tag.team&status=open',
  'escalations?group_by=tag.customer&status=open',
  'escalations?group_by=tool&tag.customer=c1700',
  'escalations?group_by=tool&acknowledged=false'
]

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)]

await run(new World(), async (world) => {
  await world.startPostgres()
  await world.startEngines(1)
  world.sql(fill)
  world.sql(`update sagad.shard set low = now() - interval '1 minute'`)
  await world.api('GET', '/livez').catch(() => null) // the connections of before are closed by now
  for (const filter of filters) {
    const took = []
    let page
    for (let i = 0; i < rounds; i++) {
      const from = performance.now()
      const answer = await world.api('GET', `/v1/${filter}`)
      took.push(performance.now() - from)
      page = answer.json
      if (answer.status !== 200) throw new Error(`${filter}: ${answer.text}`)
    }
    const looked = page.looked_to ? `, looked at ${page.looked_count}, back to ${page.looked_to}` : ''
    console.log(`${median(took).toFixed(1)} ms  ${page.items.length} rows${looked}  ${filter}`)
  }
})
