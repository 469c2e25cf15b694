// The plans of all statements of the store, on tables with many sagas. PostgreSQL's own plan, under the settings of
// the store's connections, reads no whole table, hashes none and sorts none. plans.txt lists what each statement uses
// instead, and this test compares the two.
//
//     node tests/integration/test_plans.mjs --write      writes plans.txt anew, for who has changed a statement and
// means it
//
// (run like any test of the whole, with SAGAD, SAGACTL, SAGAD_SHOP and SAGAD_STATEMENTS). Statements that only call a
// function of the schema are run instead, and the plans of the statements inside are looked at.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, quick, root, run } from '../lib/world.mjs'

const file = join(root, 'tests', 'integration', 'plans.txt')
const { setup, statements } = JSON.parse(execFileSync(process.env.SAGAD_STATEMENTS, { encoding: 'utf8' }))
// Plans of 25,000 are those of 100,000, and the short form fills the tables with that in a third of the time.
const sagas = quick ? 25000 : 100000

// These tables have a few rows, however long the service runs, so reading all of them is as good as an index.
const small = new Set([
  'shard',
  'engine',
  'hold',
  'hold_version',
  'notify',
  'schema_version',
  'tool',
  'definition',
  'history_loss',
  'payload_key',
  'latch',
  'history_shard'
])

// Statements that may read a whole table, and why.
const exceptions = {
  answer_sweep: { of: 'answer', why: 'once a minute, and the table holds what nobody fetched within minutes' },
  act_forget: { of: 'act', why: 'once an hour, and of each month until the first act that stays' },
  guard_list: { of: 'guard', why: 'somebody asks for all of them; a row a tool' }
}

// The rows that a sort or a hash may have by the planner's estimate: a page of a list, or what is due at once. A shard
// has more sagas than that.
const sortedMost = quick ? 350 : 1000

const fill = `
create temp table made as select i, (i % 64)::int2 as shard,
  (lpad(to_hex((extract(epoch from now()) * 1000)::int8 - (${sagas} - i) * 800::int8), 12, '0') || '7' ||
  substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 11)
   || lpad(to_hex(i % 64), 4, '0'))::uuid as id, i % 10 <> 0 as ended, now() - (${sagas} - i) * interval '800 ms' as at
   from generate_series(1, ${sagas}) as i;
insert into sagad.saga (shard, id, namespace, name, version, status, input_digest, created_at, updated_at, ended_at,
business_id, business_digest, key_digest)
  select shard, id, 'default', 'order', 1, case when ended then 'completed' else 'running' end, sha256(int4send(i)), at,
  at, case when ended then at end,
  case when i % 3 = 0 then i::text end, case when i % 3 = 0 then substr(sha256(int4send(i)), 1, 16) end,
  case when i % 6 = 0 then substr(sha256(int4send(i)), 1, 16) end from made order by i;
insert into sagad.log (shard, saga, seq, records, at, epoch, payload)
  select shard, id, s, 1, at, 0, convert_to('[{"type":"step.intent","key":"' || overlay(md5(i::text)::uuid::text placing
  '8' from 15 for 1) || '"}]', 'UTF8') from made, generate_series(1, 2) as s;
insert into sagad.operation_key (shard, key, saga) select get_byte(uuid_send(key), 15) % 64, key, id from (select
overlay(md5(i::text)::uuid::text placing '8' from 15 for 1)::uuid as key, id from made) as k;
insert into sagad.key_bundle (shard, check_at, id, made_at, keys, sagas)
  select k.shard, now() + interval '1 hour', sagad.new_id(), now(), array_agg(k.key), array_agg(k.saga) from
  sagad.operation_key k group by k.shard, get_byte(uuid_send(k.key), 0);
insert into sagad.due (shard, saga, what, at, holds) select shard, id, case when ended then 'forget' else 'parked' end,
  at + interval '1 day', case when ended or i % 3 <> 0 then null when i % 4 = 0 then array[1 + i % 5, 6]
  else array[1 + i % 5] end from made where i % 20 < 12;
insert into sagad.awake (shard, saga) select shard, id from made where i % 500 = 0;
insert into sagad.inbox (shard, id, saga, kind, payload) select shard, id, id, 'signal', '{}' from made 
  where i % 20 = 1;
insert into sagad.answer (shard, input, body) select shard, id, '{}' from made where i % 50 = 1;
insert into sagad.escalation (shard, number, saga, namespace, opened_at, resolved_at, reason, body)
  select shard, i, id, 'default', at, case when i % 100 <> 0 then at end, 'stuck', '{}' from made where i % 5 = 0;
insert into sagad.approval (shard, number, saga, namespace, opened_at, ended_at, step, status, body)
  select shard, i, id, 'default', at, case when i % 100 <> 0 then at end, 'ask', 
    case when i % 100 <> 0 then 'approved' else 'open' end, '{}' from made where i % 5 = 0;
insert into sagad.lock (shard, digest, ticket, saga_shard, saga, namespace, key) select i / 2 % 64, 
  sha256(int4send(i / 2)), i % 2 + 1, shard, id, 'default', (i / 2)::text from made where i % 5 < 2;
insert into sagad.guard (shard, namespace, tool) select i % 64, 'default', 'tool' || i from 
  generate_series(1, 5000) as i;
insert into sagad.guard_breaker (shard, namespace, tool, endpoint) select i % 64, 'default', 'tool' || i, 'one' from
generate_series(1, 5000) as i;
insert into sagad.guard_place (shard, namespace, tool, holder, expires_at) select i % 64, 'default', 'tool' || i % 500,
md5(i::text)::uuid, now() + interval '1 hour' from generate_series(1, 10000) as i;
insert into sagad.guard_budget (shard, name, period) select i % 64, 'budget' || i % 500, now() - i * interval '1 hour'
from generate_series(1, 10000) as i;
insert into sagad.guard_reservation (shard, namespace, tool, operation, budget_shards, budgets, periods, micros)
  select i % 64, 'default', 'tool' || i % 500, md5(i::text)::uuid, '{}', '{}', '{}', '{}' from generate_series(1, 50000)
  as i;
insert into sagad.schedule (shard, namespace, name, id, zone, body, created_at, actor, last_at, look_at)
  select i % 64, 'default', 's' || i, md5(i::text)::uuid, 'UTC', '{}', now(), 'x', now(), 
  now() + i * interval '1 minute' from generate_series(1, 20000) as i;
insert into sagad.series (namespace, span, at, kind, name, part, calls)
  select case when i % 5 = 0 then 'default' else 'n' || i % 7 end, case when i % 3 = 0 then 60 else 1 end,
    date_trunc('hour', now()) - (i % 1440) * interval '1 minute', 'tool', 't' || i % 70, md5(i::text)::uuid, 1
  from generate_series(1, ${sagas}) as i;
insert into sagad.hold (number, id, namespace, body, made_at, until_at, ended_told, released_at)
  select i, md5(i::text)::uuid, 'n' || i % 50, '{}', now(), now() + (i % 3 - 1) * interval '1 hour',
  i % 3 = 0 and i % 60 <> 0, case when i % 20 <> 0 then now() end
  from generate_series(1, 20000) as i;
update sagad.hold_version set version = 20000;
insert into sagad.bulk (shard, id, namespace, state, body, actor, created_at, expires_at, look_at)
  select i % 64, md5(i::text)::uuid, case when i % 100 = 0 then 'busy' else 'default' end,
  case when i % 100 = 0 then 'running' else 'done' end, '{}', 'x', now(),
  now(), now() + i * interval '1 minute' from generate_series(1, 20000) as i;
insert into sagad.bulk_item (shard, bulk, n, body, outcome, look_at)
  select i % 64, md5((i % 64 + 6400)::text)::uuid, i, '{}', case when i % 10 > 0 then 'done' end,
  now() + i * interval '1 s' from generate_series(1, 50000) as i;
insert into sagad.event_gone (shard, namespace, tx) select i % 64, 'n' || i, i from generate_series(1, 20000) as i;
insert into sagad.case_event (shard, number, resolved, event_tx, at, saga, namespace, reason)
  select i % 64, i, false, i, now(), md5(i::text)::uuid, 'default', 'follower' from generate_series(1, 20000) as i;
insert into sagad.event (shard, id, event_tx, at, namespace, type, subject, data, once)
  select i % 64, md5(i::text)::uuid, i, now(), 'n' || i % 100, 'hold.placed', 'hold/1', '{}',
  case when i % 2 = 0 then 'b' || i end
  from generate_series(1, 20000) as i;
insert into sagad.notify (shard, namespace, name, tx)
  select i % 64, 'n' || i % 100, 'ops', i from generate_series(1, 60) as i;
insert into sagad.notification (shard, namespace, name, number, event, body, state, since, until, look_at)
  select i % 64, 'n' || i % 100, 'ops' || i % 7, i, 'e' || i, '{}', case when i % 3 = 0 then 'dead' else 'pending' end,
  now(), now(), now() from generate_series(1, 50000) as i;
insert into sagad.case_remark (shard, number, saga)
  select shard, number, saga from sagad.escalation where number % 5 = 0;
insert into sagad.act (slot, namespace, at, id, actor, role, via, verb, outcome, last_at)
  select sagad.act_slot(a.at), case when i % 5 = 0 then 'default' else 'n' || i % 7 end, a.at, md5(i::text)::uuid,
  'a' || i % 20, 'operator', 'token', 'abort', 'done', a.at
  from (select i, now() - i * interval '5 minutes' as at from generate_series(1, ${sagas}) as i) as a;
insert into sagad.agent_grant (id, secret, namespace, body, made_at, expires_at, revoked_at)
  select md5(i::text)::uuid, sha256(i::text::bytea), 'n' || i % 50, '{}', now(), now() + i * interval '1 minute',
  case when i % 20 = 0 then now() end from generate_series(1, 20000) as i;
insert into sagad.debt_settled (shard, saga, operation, body)
  select shard, id, id, '' from made where i % 10 = 3;
update sagad.shard set low = now() - interval '1 hour';
set default_statistics_target = 1000; -- all rows, so that no plan is drawn by lot
analyze;
`

// Arguments for statements that only call a function. {?} is the saga that `of` finds.
const ofQuestion = 'select e.saga from sagad.escalation e where e.shard = 15 and e.resolved_at is not null limit 1'
const ofCase = 'select id from sagad.saga where shard = 16 and ended_at is null limit 1'
const calls = {
  forget: {
    of:
      'select s.id from sagad.saga s join sagad.escalation e on e.saga = s.id where s.shard = 5 and s.ended_at is ' +
      'not null and e.resolved_at is not null limit 1',
    args: "'{5}', '{0}', '{?}', '{2020-01-01}', '{1000}'"
  },
  lock_take: {
    of: 'select id from sagad.saga where shard = 10 and ended_at is null limit 1',
    args: "9, sha256('k'), 'default', 'k', 10, '?', false"
  },
  lock_release: {
    of: 'select saga from sagad.lock where saga_shard = 10 and ticket = 1 limit 1',
    args: "'{10}', '{?}'"
  },
  guard_ask: {
    args:
      `7, 'default', 'tool7', 'one', 100, 1000, 10, 5, 60000, '${'0'.repeat(31)}1', true, '${'0'.repeat(31)}2', ` +
      `'{8}', '{budget8}', array[now()], '{9}', '{-1}', '{-1}', '{1}', '{1}', '{1}'`
  },
  guard_tell: {
    args:
      `7, 'default', 'tool7', 'one', 5, 60000, 1000, '${'0'.repeat(31)}1', '${'0'.repeat(31)}2', 'failed', true, ` +
      `10, 10, 'settle', 5`
  },
  case_put: {
    of: ofCase,
    args: `16, 0, 1168, '?', 'default', now(), now(), 'unreadable', '', '${'0'.repeat(31)}3', true, null`
  },
  case_remark: { args: `16, 80, 'default', '${'0'.repeat(31)}6', 'assign', 'a', null, 'b', '{}', 100, null` },
  debt_settle: {
    of: 'select id from sagad.saga where shard = 17 and ended_at is not null limit 1',
    args: `17, '?', 'default', '${'0'.repeat(31)}7', '', 1, now(), null`
  },
  grant_put: { args: `'${'0'.repeat(31)}8', '', 'n7', '', now(), null, null, null` },
  hold_put: { args: `'${'0'.repeat(31)}5', 'n7', '', null, 1000, null` },
  hold_tell_ended: { args: '' },
  hold_release: { args: "20, 'n20', '', null" },
  notify_put: { args: `9, 0, 'n9', 'ops', 9, 10, '{a/1}', array['{}']::bytea[], now(), now()` },
  notify_settle: { args: "9, 0, 'n9', 'ops2', '{9}', '{done}', array[now()], '{1}', '{x}'" },
  notification_replay: { args: "'n9', null, '{}', null" },
  schedule_put: { args: `9, 'default', 'new', '${'0'.repeat(31)}4', 'UTC', '', 'x', 50000, null` },
  schedule_move: {
    of: "select id from sagad.schedule where shard = 9 and name = 's9'",
    args: "9, 0, 'default', 's9', '?', 1, now(), now(), ''"
  },
  act_forget: { args: 'now()' },
  bulk_begin: { args: `9, '${'0'.repeat(31)}4', 'default', '', 'x', now(), 50000` },
  bulk_move: { args: `9, '${'0'.repeat(31)}4', 'default', 'running', '', now(), null` },
  bulk_settle: {
    of: "select md5('6409')::uuid",
    args: "9, 0, '?', array[9, 73], array['done', null], array['', '']::bytea[], array[now(), now()], now()"
  },
  bulk_forget: {
    of: "select id from sagad.bulk where shard = 9 and state = 'done' limit 1",
    args: "9, 0, '?', now() + interval '1 year', 100"
  },
  guard_breaker_set: { args: "7, 'default', 'tool7', null, null" },
  guard_price: { args: `7, 'default', 'tool7', '${'0'.repeat(31)}3', 5` }
}

const world = new World()

function psql(script) {
  const asked = spawnSync(
    join(world.binaries, 'psql'),
    ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', world.dsn, '-f', '-'],
    { input: script, encoding: 'utf8', maxBuffer: 1 << 26 }
  )
  if (asked.status !== 0) throw new Error(`psql: ${asked.stderr.slice(-2000)}`)
  return asked
}

const prologue =
  setup
    .map((line) => `${line};`)
    .join('\n')
    .replace(/^select/m, '\\o /dev/null\nselect') + '\n\\o\n'

// Returns {name: [plan]} of all statements, for any parameters.
function plansOfAll() {
  const asked = statements.map(({ name, sql }) => {
    const count = Math.max(0, ...[...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
    const nulls = count > 0 ? `(${Array(count).fill('null').join(', ')})` : ''
    return `\\echo #${name}\nprepare "${name}" as ${sql};\nexplain (format json) execute "${name}" ${nulls};`
  })
  const out = psql(prologue + asked.join('\n')).stdout
  return Object.fromEntries(
    out
      .split(/^#/m)
      .slice(1)
      .map((part) => [part.slice(0, part.indexOf('\n')), [JSON.parse(part.slice(part.indexOf('\n')))[0].Plan]])
  )
}

// Returns the plans of the statements that ran inside a function, and of the call itself.
function plansInside(name) {
  const { sql } = statements.find((statement) => statement.name === name)
  const { of, args } = calls[name]
  const given = args ? ` (${args.replace('?', of ? world.sql(of) : '?')})` : ''
  const { stderr } =
    psql(`load 'auto_explain';\n${prologue}set client_min_messages = notice;\nset auto_explain.log_nested_statements =
      on;
    set auto_explain.log_level = notice;\nset auto_explain.log_format = json;\nprepare p as ${sql};\nbegin;
    set local auto_explain.log_min_duration = 0;\nexecute p${given};
    set local auto_explain.log_min_duration = -1;\nrollback;`)
  return [...stderr.matchAll(/plan:\n(\{[\s\S]*?\n\})/g)]
    .map(([, text]) => JSON.parse(text))
    .filter((plan) => !plan['Query Text'].startsWith('prepare p'))
    .map((plan) => plan.Plan)
}

// Does the statement need a run? Its plan says nothing when a function of the schema does the work. The functions named
// here read no table, or are called only to complain.
const needsCall = ({ sql }) =>
  [...sql.matchAll(/sagad\.(\w+)\(/g)].some(
    ([, name]) =>
      ![
        'act_put',
        'act_refuse',
        'act_told',
        'expect',
        'fence',
        'id_floor',
        'new_id',
        'shard_of',
        'torn',
        'zone_offsets'
      ].includes(name)
  )

function* nodes(plan) {
  yield plan
  for (const child of plan.Plans ?? []) yield* nodes(child)
}

// The months of acts are partitions of one table.
const whole = (name) => name?.replace(/^act_\d\d_pkey$/, 'act_pk').replace(/^act_\d\d$/, 'act')

// Returns the tables and indexes that plans read: [{table, index, bounds}]. Indexes of PostgreSQL's own tables do not
// count, and a scan by row ids reads rows that another node has found.
const reads = (plans) =>
  plans
    .flatMap((plan) => [...nodes(plan)])
    .filter(
      (node) =>
        / Scan$/.test(node['Node Type']) &&
        node['Node Type'] !== 'Tid Scan' &&
        (node['Index Name'] ?? node['Relation Name']) &&
        !/^pg_/.test(node['Index Name'] ?? node['Relation Name'])
    )
    .map((node) => ({
      table: whole(node['Relation Name']),
      index: whole(node['Index Name']),
      bounds: node['Index Cond']
    }))

// Returns the lines of plans.txt: each index once, and a small table by its name in brackets, however it is read.
const used = (plans) =>
  [
    ...new Set(
      reads(plans).map(({ table, index }) => (small.has(table) ? `(${table})` : (index ?? `${table} as a whole`)))
    )
  ]
    .sort()
    .join(' ') || '-'

// Indexes that are unique over all shards, so that a key has at most one row. Others are in order of time over all
// shards, for lists that look at a bounded number of rows. (Figures over time and grants belong to no shard.)
const unsharded = new Set(['series', 'act', 'agent_grant'])
const single = new Set([
  'saga_key_digest',
  ...['escalation_time', 'escalation_time_open', 'approval_time', 'approval_time_open', 'notification_list']
])

function faultsOf(name, plans, filled) {
  const faults = []
  for (const { table, index, bounds } of reads(plans)) {
    if (small.has(table) || exceptions[name]?.of === table) continue
    if (!bounds) faults.push(`reads ${table} as a whole${index ? ` by ${index}` : ''}`)
    else if (!/shard/.test(bounds) && !single.has(index) && !unsharded.has(table))
      faults.push(`reads ${table} by ${index} for all shards: ${bounds}`)
  }
  for (const node of plans.flatMap((plan) => [...nodes(plan)])) {
    const rows = node['Plan Rows']
    if (/Hash Join|Merge Join|Bitmap/.test(node['Node Type'])) faults.push(`has a ${node['Node Type']}`)
    if (
      filled &&
      rows > sortedMost &&
      !exceptions[name] &&
      (/Sort/.test(node['Node Type']) || node.Strategy === 'Hashed')
    )
      faults.push(`has a ${node['Node Type']} of ${rows} rows`)
  }
  return faults
}

const version = () => world.sql('show server_version_num').replace(/\d{4}$/, '')

function table(empty, filled) {
  const width = Math.max(...statements.map(({ name }) => name.length)) + 2
  const line = ({ name }) => {
    const [first, then] = [used(empty[name]), used(filled[name])]
    return (name.padEnd(width) + then + (first !== then ? `; empty: ${first}` : '')).trimEnd()
  }
  return [
    `# PostgreSQL ${version()}. What each statement of the store reads, and by which index; (in brackets) ` +
      `tables of a few rows, -: nothing. "empty:" where the`,
    '# plan that is made while the tables are empty differs. Held against PostgreSQL by test_plans.mjs, which ' +
      'says how to write this anew.',
    '',
    '# of every turn or every input, or asked by people while it runs',
    ...statements.filter(({ hot }) => hot).map(line),
    '',
    '# the others',
    ...statements.filter(({ hot }) => !hot).map(line),
    ''
  ].join('\n')
}

await run(world, async () => {
  let empty, filled
  await promise(`${sagas} sagas are there`, async () => {
    await world.startPostgres([
      '-c',
      'fsync=off',
      '-c',
      'autovacuum=off',
      '-c',
      'max_wal_size=4GB',
      '-c',
      'shared_buffers=256MB'
    ])
    world.migrate()
    empty = plansOfAll()
    psql(fill)
    filled = plansOfAll()
    for (const { name } of statements.filter(needsCall)) {
      expect(calls[name], `${name} calls a function of the schema: this test has to run it`)
      filled[name] = empty[name] = plansInside(name)
      expect(reads(filled[name]).length > 0, `plans of what ${name} does inside`)
    }
  })
  await promise(
    'no statement reads a large table or all shards, hashes or sorts one, on full tables and when it was ' +
      'planned on empty ones',
    () => {
      const onEmpty = (name) =>
        empty[name] === filled[name]
          ? []
          : faultsOf(name, empty[name], false).map((fault) => `${fault}, planned while it was empty`)
      const faults = statements.flatMap(({ name }) =>
        [...new Set([...faultsOf(name, filled[name], true), ...onEmpty(name)])].map((fault) => `${name} ${fault}`)
      )
      expect(faults.length === 0, 'the plans', faults.join('\n'))
    }
  )
  await promise('each statement goes by the indexes that plans.txt says', () => {
    const now = table(empty, filled)
    if (process.argv.includes('--write')) writeFileSync(file, now)
    const then = readFileSync(file, 'utf8')
    // Another version may choose other plans, but what is forbidden is forbidden there, too.
    if (then.match(/PostgreSQL (\d+)/)[1] !== version()) return
    const lines = new Set(then.split('\n'))
    expectEqual(
      now.split('\n').filter((line) => !lines.has(line)),
      [],
      'lines that plans.txt does not have; if it is meant so: node tests/integration/test_plans.mjs --write'
    )
    const found = new Set(now.split('\n'))
    expectEqual(
      then.split('\n').filter((line) => !found.has(line)),
      [],
      'lines of plans.txt for which there is nothing any more'
    )
    expectEqual(now, then, 'the order of plans.txt')
  })
})
