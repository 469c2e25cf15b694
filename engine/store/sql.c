/*
 * See sql.h. Array statements are planned once, for tables of any size. The connections switch off plans that read
 * whole tables (store_setup in store.c), so that a plan made while a table was empty does no harm later.
 */
#include "store/sql.h"

#include "core/definition/definition.h"

/* clang-format off */

/* A condition on the row of one saga, found by its key. It is not `what = 'parked'`, because a plan made while the
 * table was empty would then go through all parked sagas. */
#define IS_PARKED "(d.what = 'parked') is true"

/* --- append --- */

/* The function is called only to say what is wrong: locking the same rows inside it would cost twice as much as the
 * whole append. */
const struct db_statement sql_fence = {
    "fence",
    "select sagad.fence($1::int2[], $2::int8[])"
    " from (select 1 from unnest($1::int2[], $2::int8[]) as mine (shard, epoch)"
    " join sagad.shard s on s.shard = mine.shard and s.epoch = mine.epoch order by s.shard for key share of s) as held"
    " having count(*) <> cardinality($1::int2[])",
};

#define SAGA_COLUMNS \
    "shard, id, namespace, name, version, status, tags, input_digest, created_at, updated_at, ended_at, started_by"
#define SAGA_ARRAYS \
    "$1::int2[], $2::uuid[], $3::text[], $4::text[], $5::int4[], $6::text[], $7::text[], $8::bytea[], " \
    "$9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::text[]"

const struct db_statement sql_start = {
    "start",
    "insert into sagad.saga (" SAGA_COLUMNS ")"
    " select u.shard, u.id, u.namespace, u.name, u.version, u.status, u.tags::jsonb, u.input_digest, u.created_at,"
    " u.updated_at, u.ended_at, u.started_by from unnest(" SAGA_ARRAYS ") as u (" SAGA_COLUMNS ")",
};

/*
 * $15 is the key of the request, if it had one. $16 is the shard of a saga that has this key for its business id; null
 * when that is this saga itself.
 */
const struct db_statement sql_start_unique = {
    "start_unique",
    "insert into sagad.saga (" SAGA_COLUMNS ", business_id, business_digest, key_digest)"
    " select u.shard, u.id, u.namespace, u.name, u.version, u.status, u.tags::jsonb, u.input_digest, u.created_at,"
    " u.updated_at, u.ended_at, u.started_by, u.business_id, u.business_digest, u.key_digest"
    " from unnest(" SAGA_ARRAYS ", $13::text[], $14::bytea[], $15::bytea[], $16::int2[])"
    " as u (" SAGA_COLUMNS ", business_id, business_digest, key_digest, key_shard)"
    " where u.key_shard is null or (select true from sagad.saga k where k.shard = u.key_shard"
    " and k.business_digest = u.key_digest and k.business_digest is not null) is null"
    " on conflict do nothing returning id",
};

/* A saga may have an older id than recovery would read. `low` only moves back, and not where recovery reads
 * everything. */
const struct db_statement sql_lower_low = {
    "lower_low",
    "update sagad.shard s set low = u.low from unnest($1::int2[], $2::timestamptz[]) as u (shard, low)"
    " where s.shard = u.shard and s.low > u.low",
};

#define LOG_COLUMNS "shard, saga, seq, records, at, epoch, payload"
#define LOG_ARRAYS \
    "$1::int2[], $2::uuid[], $3::int4[], $4::int2[], $5::timestamptz[], $6::int8[], $7::bytea[], $8::bool[]," \
    " $9::bytea[]"
#define LOG_ROWS \
    " select u.shard, u.saga, u.seq, u.records, u.at, u.epoch, u.payload," \
    " case when u.is_event then pg_current_xact_id()::text::int8 end, u.rest" \
    " from unnest(" LOG_ARRAYS ") as u (" LOG_COLUMNS ", is_event, rest)"

const struct db_statement sql_log = {
    "log",
    "insert into sagad.log (" LOG_COLUMNS ", event_tx, rest)"
    LOG_ROWS
    " where case when u.seq = 1 then true"
    " when (select p.seq + p.records from sagad.log p where p.shard = u.shard and p.saga = u.saga and p.seq < u.seq"
    " order by p.seq desc limit 1) = u.seq then true else sagad.torn(u.saga, u.seq) end",
};

const struct db_statement sql_log_unique = {
    "log_unique",
    "insert into sagad.log (" LOG_COLUMNS ", event_tx, rest)"
    LOG_ROWS
    " join sagad.saga s on s.shard = u.shard and s.id = u.saga",
};

#define KNOWN_KEYS \
    " from unnest($1::int2[], $2::uuid[], $3::uuid[], $4::int2[]) as u (shard, key, saga, saga_shard)" \
    " where (u.saga_shard is null or (select true from sagad.saga s where s.shard = u.saga_shard and s.id = u.saga))"

/*
 * One row for each of the 16 shards of bundles, with all keys that the batch makes known there. $4 is the shard of a
 * saga that may have been refused, else NULL. A small bundle is swept by $7, others twelve times as late.
 */
const struct db_statement sql_key_bundle = {
    "key_bundle",
    "insert into sagad.key_bundle (shard, check_at, id, made_at, keys, sagas)"
    " select (u.shard % 16)::int2, case when count(*) < 16 then $7::timestamptz else $6::timestamptz + 12 *"
    " ($7::timestamptz - $6::timestamptz) end,"
    " $5::uuid, $6::timestamptz, array_agg(u.key), array_agg(u.saga)" KNOWN_KEYS " group by (u.shard % 16)::int2",
};

/* The same keys for engines of the schema before. They look only in this table, and must not say "no such
 * operation". */
const struct db_statement sql_key_for_older = {
    "key_for_older",
    "insert into sagad.operation_key (shard, key, saga) select u.shard, u.key, u.saga" KNOWN_KEYS " on conflict"
    " (shard, key) do nothing",
};

/*
 * Sweeps bundles of the shard $1 whose time has come by $2: at most $3 bundles, and none more after some $6 keys. A
 * bundle of $4 keys or more stays as it is when one of its sagas is there; each sweep looks for another one. Of smaller
 * bundles, keys of sagas that are gone are dropped, except those of the last quarter of an hour, and the rest is joined
 * by $5. The next sweep comes after nine times the age of a bundle, from five minutes to thirty days. Returns how many
 * bundles and keys were looked at.
 */
#define KEY_LOOKED_AT(made_at) "$2::timestamptz + least(greatest(9 * ($2::timestamptz - " made_at "), interval '5" \
    " minutes'), interval '30 days')"

/* Not exists(): a plan made while there are no sagas would read all of them. */
#define SAGA_IS_THERE(id) "(select true from sagad.saga s where s.shard = sagad.shard_of(" id ") and s.id = " id ")"

#define KEY_LOOKED_FOR "d.sagas[1 + mod(floor(extract(epoch from d.check_at))::int8, cardinality(d.sagas))]"

const struct db_statement sql_key_sweep = {
    "key_sweep",
    "with due as materialized (delete from sagad.key_bundle b where b.ctid = any (array(select o.ctid from (select"
    " n.ctid,"
    " sum(cardinality(n.keys)) over (order by n.check_at, n.id rows between unbounded preceding and 1 preceding) as"
    " before"
    " from sagad.key_bundle n where n.shard = $1::int2 and n.check_at <= $2::timestamptz order by n.check_at, n.id"
    " limit $3::int8) as o"
    " where coalesce(o.before, 0) < $6::int8))"
    " returning b.shard, b.check_at, b.id, b.made_at, b.keys, b.sagas),"
    " seen as materialized (select d.*, cardinality(d.keys) >= $4::int8 and"
    " coalesce(" SAGA_IS_THERE(KEY_LOOKED_FOR) ", false) as stays from due d),"
    " kept as (select n.shard, n.made_at, e.key, e.saga, row_number() over (partition by n.shard order by"
    " n.check_at, n.id, e.i) as number"
    " from seen n cross join lateral unnest(n.keys, n.sagas) with ordinality as e (key, saga, i)"
    " where not n.stays and (n.made_at > $2::timestamptz - interval '15 minutes' or " SAGA_IS_THERE("e.saga") ")),"
    " put as (insert into sagad.key_bundle (shard, check_at, id, made_at, keys, sagas)"
    " select n.shard, " KEY_LOOKED_AT("n.made_at") ", n.id, n.made_at, n.keys, n.sagas from seen n where n.stays"
    " union all select k.shard, " KEY_LOOKED_AT("min(k.made_at)") ", sagad.new_id(), min(k.made_at),"
    " array_agg(k.key), array_agg(k.saga)"
    " from kept k group by k.shard, (k.number - 1) / $5::int8)"
    " select count(*), coalesce(sum(cardinality(d.keys)), 0)::int8 from due d",
};

const struct db_statement sql_status = {
    "status",
    "with changed as (update sagad.saga s"
    " set status = u.status, updated_at = u.at, ended_at = u.ended_at"
    " from unnest($1::int2[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[])"
    " as u (shard, id, status, at, ended_at)"
    " where s.shard = u.shard and s.id = u.id returning 1)"
    " select sagad.expect('saga', count(*), cardinality($1::int2[])::int8) from changed"
    " having count(*) <> cardinality($1::int2[])",
};

/* The joins leave out the rows of a start that was refused. */
const struct db_statement sql_escalation_open = {
    "escalation_open",
    "insert into sagad.escalation (shard, number, saga, namespace, opened_at, step, reason, body)"
    " select u.shard, u.number, u.saga, u.namespace, u.opened_at, u.step, u.reason, u.body"
    " from unnest($1::int2[], $2::int8[], $3::uuid[], $4::text[], $5::timestamptz[], $6::text[], $7::text[],"
    " $8::bytea[]) as u (shard, number, saga, namespace, opened_at, step, reason, body)"
    " join sagad.saga s on s.shard = u.shard and s.id = u.saga",
};

/* An escalation is resolved, or asked again. Lists have it at the time of its last question. */
const struct db_statement sql_escalation_change = {
    "escalation_change",
    "with changed as (update sagad.escalation e set resolved_at = u.resolved_at,"
    " opened_at = coalesce(u.opened_at, e.opened_at), reason = u.reason, body = coalesce(u.body, e.body)"
    " from unnest($1::int2[], $2::int8[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::bytea[])"
    " as u (shard, number, resolved_at, opened_at, reason, body)"
    " where e.shard = u.shard and e.number = u.number returning 1)"
    " select sagad.expect('escalation', count(*), cardinality($1::int2[])::int8) from changed"
    " having count(*) <> cardinality($1::int2[])",
};

/* The join is for the refused first turn of a run, which must leave nothing. */
const struct db_statement sql_awake_add = {
    "awake_add",
    "insert into sagad.awake (shard, saga) select u.shard, u.saga from unnest($1::int2[], $2::uuid[]) as u (shard,"
    " saga)"
    " join sagad.saga s on s.shard = u.shard and s.id = u.saga on conflict (shard, saga) do nothing",
};

const struct db_statement sql_awake_remove = {
    "awake_remove",
    "delete from sagad.awake a using unnest($1::int2[], $2::uuid[]) as u (shard, saga)"
    " where a.shard = u.shard and a.saga = u.saga",
};

const struct db_statement sql_inbox_consume = {
    "inbox_consume",
    "with input as materialized (select u.shard, u.id"
    " from unnest($1::int2[], $2::uuid[], $3::uuid[]) as u (shard, id, saga)"
    " join sagad.saga s on s.shard = u.shard and s.id = u.saga),"
    " consumed as (delete from sagad.inbox i using input where i.shard = input.shard and i.id = input.id returning 1)"
    " select sagad.expect('inbox', count(*), (select count(*) from input)) from consumed"
    " having count(*) <> (select count(*) from input)",
};

const struct db_statement sql_approval_open = {
    "approval_open",
    "insert into sagad.approval (shard, number, saga, namespace, opened_at, expires_at, step, status, body)"
    " select u.shard, u.number, u.saga, u.namespace, u.opened_at, u.expires_at, u.step, u.status, u.body"
    " from unnest($1::int2[], $2::int8[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[],"
    " $8::text[],"
    " $9::bytea[]) as u (shard, number, saga, namespace, opened_at, expires_at, step, status, body)"
    " join sagad.saga s on s.shard = u.shard and s.id = u.saga",
};

/* An approval may be asked and be over in the first turn of a saga. The join leaves it out when the start was
 * refused. */
const struct db_statement sql_approval_end = {
    "approval_end",
    "with ended as materialized (select u.* from unnest($1::int2[], $2::int8[], $3::timestamptz[], $4::text[],"
    " $5::bytea[], $6::uuid[], $7::timestamptz[])"
    " as u (shard, number, at, status, body, saga, expires_at) join sagad.saga s on s.shard = u.shard and s.id ="
    " u.saga),"
    " changed as (update sagad.approval a set ended_at = case when u.status <> 'open' then u.at end, status = u.status,"
    " expires_at = coalesce(u.expires_at, a.expires_at), body = coalesce(u.body, a.body)"
    " from ended u where a.shard = u.shard and a.number = u.number returning 1)"
    " select sagad.expect('approval', count(*), (select count(*) from ended)) from changed"
    " having count(*) <> (select count(*) from ended)",
};

/* $1 and $2 are the saga that has ended; the others are the inbox row. */
const struct db_statement sql_follow = {
    "follow",
    "with put as (insert into sagad.inbox (shard, id, saga, kind, payload)"
    " select u.shard, u.id, u.saga, 'start', u.payload"
    " from unnest($1::int2[], $2::uuid[], $3::int2[], $4::uuid[], $5::uuid[], $6::bytea[])"
    " as u (of_shard, of_saga, shard, id, saga, payload)"
    " join sagad.saga s on s.shard = u.of_shard and s.id = u.of_saga"
    " on conflict (shard, id) do nothing returning shard)"
    " select pg_notify('" SQL_INBOX_CHANNEL "', put.shard::text) from (select distinct p.shard from put p) as put",
};

const struct db_statement sql_unpark = {
    "unpark",
    "delete from sagad.due d using unnest($1::int2[], $2::uuid[]) as u (shard, saga)"
    " where d.shard = u.shard and d.saga = u.saga and " IS_PARKED,
};

const struct db_statement sql_forget_later = {
    "forget_later",
    "insert into sagad.due (shard, saga, what, at) select u.shard, u.saga, 'forget', u.at"
    " from unnest($1::int2[], $2::uuid[], $3::timestamptz[]) as u (shard, saga, at)"
    " join sagad.saga s on s.shard = u.shard and s.id = u.saga"
    " on conflict (shard, saga) do update set what = excluded.what, at = excluded.at, holds = null",
};

/* These sagas exist and never had a row. The statement skips the checks for both, which take as long as the rows
 * themselves. */
const struct db_statement sql_forget_first = {
    "forget_first",
    "insert into sagad.due (shard, saga, what, at) select u.shard, u.saga, 'forget', u.at"
    " from unnest($1::int2[], $2::uuid[], $3::timestamptz[]) as u (shard, saga, at)",
};

const struct db_statement sql_lock_release = {
    "lock_release",
    "select sagad.lock_release($1::int2[], $2::uuid[])",
};

/* --- what is asked about an append --- */

/* Finds a saga by its id, by the key as an id, and by the key. A saga known by its key wins, whatever else has the
 * id. */
const struct db_statement sql_taken = {
    "taken",
    "select u.i::int4, s.id, s.input_digest, s.business_digest, s.found"
    " from unnest($1::int2[], $2::bytea[], $3::bytea[], $4::int2[]) with ordinality as u (shard, digest,"
    " key_digest, key_shard, i)"
    " cross join lateral"
    " (select b.id, b.input_digest, b.business_digest, 1 as found from sagad.saga b"
    " where b.shard = u.shard and b.business_digest = u.digest and b.business_digest is not null"
    " union all select b.id, b.input_digest, b.business_digest, 2 from sagad.saga b"
    " where b.shard = u.key_shard and b.business_digest = u.key_digest and b.business_digest is not null"
    " union all select k.id, k.input_digest, k.business_digest, 3 from sagad.saga k"
    " where k.key_digest = u.key_digest and k.key_digest is not null) as s",
};

const struct db_statement sql_epochs = {
    "epochs",
    "select s.shard, s.epoch from sagad.shard s where s.shard = any($1::int2[])",
};

/* The start time tells the process from a later one with the same number. */
const struct db_statement sql_end_backend = {
    "end_backend",
    "select count(pg_terminate_backend(a.pid)) from pg_catalog.pg_stat_activity a"
    " where a.pid = $1::int4 and (extract(epoch from a.backend_start) * 1000000)::int8 = $2::int8"
    " and a.pid <> pg_backend_pid()",
};

/* Locking rows makes this a writing transaction, so that its COMMIT waits until a synchronous standby has all that is
 * visible below. */
const struct db_statement sql_hold_shards = {
    "hold_shards",
    "select s.shard from sagad.shard s where s.shard = any($1::int2[]) order by s.shard for key share",
};

const struct db_statement sql_look = {
    "look",
    "select u.i::int4, sha256(l.payload), l.epoch"
    " from unnest($1::int2[], $2::uuid[], $3::int4[]) with ordinality as u (shard, saga, seq, i)"
    " join sagad.log l on l.shard = u.shard and l.saga = u.saga and l.seq = u.seq",
};

/* --- loads and reads --- */

/* Unfinished sagas are those behind `low` that are not parked, and those that are awake, however old. A saga that is
 * both comes once. */
const struct db_statement sql_load = {
    "load",
    "select s.id, s.namespace, l.seq, l.at, l.payload, s.awake from (select u.id, u.namespace,"
    " exists (select 1 from sagad.awake w where w.shard = $1::int2 and w.saga = u.id) as awake"
    " from ((select g.id, g.namespace from sagad.saga g"
    " where g.shard = $1::int2 and g.id > $2::uuid"
    " and g.id >= coalesce((select sagad.id_floor(h.low) from sagad.shard h where h.shard = $1::int2), $2::uuid)"
    " and g.ended_at is null and not exists (select 1 from sagad.due d where d.shard = g.shard and d.saga = g.id"
    " and " IS_PARKED ")"
    " order by g.id limit $3::int8)"
    " union (select r.id, r.namespace from sagad.awake a join sagad.saga r on r.shard = a.shard and r.id = a.saga"
    " where a.shard = $1::int2 and a.saga > $2::uuid and r.ended_at is null order by a.saga limit $3::int8)) as u"
    " order by u.id limit $3::int8) as s"
    " join sagad.log l on l.shard = $1::int2 and l.saga = s.id order by s.id, l.seq",
};

const struct db_statement sql_load_numbers = {
    "load_numbers",
    "select greatest((select max(e.number) from sagad.escalation e where e.shard = $1::int2),"
    " (select n.escalation from sagad.number_gone n where n.shard = $1::int2), 0),"
    " greatest((select max(a.number) from sagad.approval a where a.shard = $1::int2),"
    " (select n.approval from sagad.number_gone n where n.shard = $1::int2), 0),"
    " (select count(*) from sagad.escalation e where e.shard = $1::int2 and e.resolved_at is null)",
};

/* Calls that were made and that a rewound history has forgotten. */
const struct db_statement sql_load_forgotten = {
    "load_forgotten",
    "select c.key, c.attempts from sagad.history_call c where c.shard = $1::int2",
};

#define ROW_COLUMNS \
    "s.id, s.namespace, s.name, s.version, s.status, s.tags::text, s.business_id, s.created_at, s.updated_at," \
    " s.ended_at"

const struct db_statement sql_saga_row = {
    "saga_row",
    "select " ROW_COLUMNS " from sagad.saga s where s.shard = $1::int2 and s.id = $2::uuid and s.namespace = $3::text",
};

const struct db_statement sql_saga_turns = {
    "saga_turns",
    "select l.seq, l.at, l.payload, l.epoch, l.rest from sagad.log l where l.shard = $1::int2 and l.saga = $2::uuid"
    " and l.seq + l.records - 1 > $3::int8 order by l.seq limit $4::int8",
};

const struct db_statement sql_saga_logs = {
    "saga_logs",
    "select u.number, l.seq, l.at, case when octet_length(l.payload) <= $4::int8 then l.payload end, l.epoch"
    " from unnest($1::int2[], $2::uuid[]) with ordinality as u (shard, saga, number)"
    " cross join lateral (select t.seq, t.at, t.payload, t.epoch from sagad.log t where t.shard = u.shard and"
    " t.saga = u.saga order by t.seq limit $3::int8) as l order by u.number, l.seq",
};

const struct db_statement sql_saga_by_business_id = {
    "saga_by_business_id",
    "select s.id, s.input_digest from sagad.saga s"
    " where s.shard = $1::int2 and s.business_digest = $2::bytea and s.business_digest is not null",
};

/*
 * Runs by the digests of their names. Of a run whose newest turn has its state at rest this is one row: the seq of that
 * turn's last record, and the state. Of others it is the log, at most $3 turns of it, without a state. The payload of a
 * turn with more than $4 bytes is null. The runs keep the order of the arrays.
 */
const struct db_statement sql_run_turns = {
    "run_turns",
    "select u.number, s.id, coalesce(l.seq, z.last), l.at, case when octet_length(l.payload) <= $4::int8 then l.payload"
    " end, z.rest from unnest($1::int2[], $2::bytea[]) with ordinality as u (shard, digest, number)"
    " join sagad.saga s on s.shard = u.shard and s.business_digest = u.digest and s.business_digest is not null"
    " cross join lateral (select n.seq + n.records - 1 as last, n.rest from sagad.log n where n.shard = s.shard and"
    " n.saga = s.id order by n.seq desc limit 1) as z"
    " left join lateral (select t.seq, t.at, t.payload from sagad.log t where z.rest is null and t.shard = s.shard and"
    " t.saga = s.id order by t.seq limit $3::int8) as l on true order by u.number, l.seq",
};

const struct db_statement sql_saga_by_key = {
    "saga_by_key",
    "select k.saga from (select o.saga from sagad.operation_key o where o.shard = $1::int2 and o.key = $2::uuid"
    " union all select e.saga from sagad.key_bundle b cross join lateral unnest(b.keys, b.sagas) as e (key, saga)"
    " where b.shard = ($1::int2 % 16)::int2 and $2::uuid = any (b.keys) and e.key = $2::uuid) as k"
    " join sagad.saga s on s.shard = sagad.shard_of(k.saga) and s.id = k.saga where s.namespace = $3::text order by"
    " k.saga limit 1",
};

/*
 * Unfinished sagas are behind `low`, or in due or awake, however old they are. This returns the ids of shard `h` that
 * are before `bound`, each once.
 */
#define OLDER_BEFORE(bound) \
    "(select d.saga from sagad.due d where d.shard = h.shard and d.what = 'parked' and d.saga < " bound \
    " union all select a.saga from sagad.awake a where a.shard = h.shard and a.saga < " bound \
    " and not exists (select 1 from sagad.due d where d.shard = a.shard and d.saga = a.saga and " IS_PARKED "))"

/*
 * The newest sagas of each shard, merged. Ids are in order of time within a shard, so no index has to span shards. The
 * list looks at $12 sagas of the namespace in each shard. The row of the last one is there even when it does not fit:
 * no saga that is older than it was looked at. $4: only unfinished sagas. $8: runs are left out, except those that have
 * a status of $5 which wants a person. $9: the versions. $10: how the business id begins. $11: the limit.
 */
#define LIST_FITS \
    "((not $4::bool or g.ended_at is null) and (not $8::bool or g.name <> '" RUN_SAGA_NAME "'" \
    " or cardinality($5::text[]) > 0 and g.status in ('paused', 'escalated'))" \
    " and (cardinality($5::text[]) = 0 or g.status = any($5::text[]))" \
    " and (cardinality($6::text[]) = 0 or g.name = any($6::text[]))" \
    " and (cardinality($7::text[]) = 0 or coalesce(g.tags @> any($7::text[]::jsonb[]), false))" \
    " and (cardinality($9::int8[]) = 0 or g.version = any($9::int8[]))" \
    " and ($10::text = '' or coalesce(starts_with(g.business_id, $10::text), false)))"

#define LIST_NEWEST(from, id, condition) \
    "(select g.*, " LIST_FITS " as fits, g.place = $12::int8 as edge from (select g.*, row_number() over (order by " \
    id " desc) as place from " from " where " condition " and " id " < $1::uuid and g.namespace = $3::text" \
    " order by " id " desc limit $12::int8) as g where " LIST_FITS " or g.place = $12::int8" \
    " order by g.id desc limit $11::int8)"

#define LIST_OLDER(table, condition) \
    LIST_NEWEST("sagad." table " w join sagad.saga g on g.shard = w.shard and g.id = w.saga", "w.saga", \
                "$4::bool and w.shard = h.shard and w.saga < sagad.id_floor(h.low) and w.saga >= $2::uuid" condition)

#define LIST_LOOKED \
    "sagad.shard h cross join lateral (" \
    LIST_NEWEST("sagad.saga g", "g.id", "g.shard = h.shard" \
                " and g.id >= greatest($2::uuid, case when $4::bool then sagad.id_floor(h.low) end)") \
    " union all " LIST_OLDER("due", " and w.what = 'parked'") \
    " union all " LIST_OLDER("awake", " and not exists (select 1 from sagad.due d where d.shard = w.shard and" \
    " d.saga = w.saga and " IS_PARKED ")") ") as s"

const struct db_statement sql_saga_list = {
    "saga_list",
    "select " ROW_COLUMNS ", s.fits, s.edge from " LIST_LOOKED " order by s.id desc limit $11::int8",
};

/*
 * Counts those of the list above by status, with a limit of a shard that is no less than $12. The first shard that
 * looks no further ends the count for all: each row has the id there, or null. A row without a status always comes.
 */
const struct db_statement sql_saga_sum = {
    "saga_sum",
    "with looked as materialized (select s.id, s.status, s.fits, s.edge from " LIST_LOOKED "),"
    " bound as materialized (select (select l.id from looked l where l.edge order by l.id desc limit 1) as id)"
    " select l.status, count(*)::int8, b.id from bound b join looked l on l.fits and (b.id is null or l.id >= b.id)"
    " group by l.status, b.id union all select null, 0, b.id from bound b",
};

/* How many sagas the list above looks at from the id $2 to before the id $1. */
const struct db_statement sql_saga_looked = {
    "saga_looked",
    "select count(*)::int8 from sagad.shard h cross join lateral (select 1 from sagad.saga g"
    " where g.shard = h.shard and g.id < $1::uuid and g.namespace = $3::text"
    " and g.id >= greatest($2::uuid, case when $4::bool then sagad.id_floor(h.low) end)"
    " union all select 1 from " OLDER_BEFORE("sagad.id_floor(h.low)") " as w (saga)"
    " join sagad.saga g on g.shard = h.shard and g.id = w.saga"
    " where $4::bool and w.saga < $1::uuid and w.saga >= $2::uuid and g.namespace = $3::text) as s",
};

/* The same list of those with a business id, which is known under these digests: nothing else is looked at. "limit 1":
 * else a plan that is made while there are no sagas would go by the id. */
const struct db_statement sql_saga_list_of_id = {
    "saga_list_of_id",
    "select " ROW_COLUMNS ", true, false from (select g.* from unnest($12::int2[], $13::bytea[]) as u (shard, digest)"
    " cross join lateral (select o.* from sagad.saga o where o.shard = u.shard and o.business_digest = u.digest"
    " and o.business_digest is not null limit 1) as g where g.id < $1::uuid and g.id >= $2::uuid"
    " and g.namespace = $3::text and " LIST_FITS ") as s order by s.id desc limit $11::int8",
};

/*
 * Counts all unfinished sagas, and those that ended from an id on: $3, or a later one with $2 sagas behind it in its
 * shard, which bounds the rows that are read. Each row has that id; a row with the status NULL comes when there is
 * nothing to count. Runs are not sagas for people.
 */
#define NO_ID "'00000000-0000-0000-0000-000000000000'::uuid"

#define COUNT_CONDITION " and g.namespace = $1::text and g.name <> '" RUN_SAGA_NAME "'"

const struct db_statement sql_saga_count = {
    "saga_count",
    "with since as materialized (select n.id from (select g.id from sagad.shard h cross join lateral"
    " (select g.id from sagad.saga g where g.shard = h.shard order by g.id desc offset $2::int8 limit 1) as g"
    " union all select $3::uuid) as n order by n.id desc limit 1),"
    " counted as (select s.status, sum(s.count)::int8 as count from since f cross join sagad.shard h"
    " cross join lateral (select least(coalesce(sagad.id_floor(h.low), " NO_ID "), f.id) as bound) as b"
    " cross join lateral ((select g.status, count(*) as count"
    " from sagad.saga g where g.shard = h.shard and g.id >= b.bound" COUNT_CONDITION
    " and (g.ended_at is null or g.id >= f.id) group by g.status)"
    " union all (select g.status, count(*) from " OLDER_BEFORE("b.bound") " as w (saga)"
    " join sagad.saga g on g.shard = h.shard and g.id = w.saga where g.ended_at is null" COUNT_CONDITION
    " group by g.status)) as s group by s.status)"
    " select c.status, c.count, f.id from since f left join counted c on true",
};

/* Open sagas and runs have no definition. */
#define VERSION_CONDITION \
    " g.namespace = $1::text and g.ended_at is null and g.name not in ('" OPEN_SAGA_NAME "', '" RUN_SAGA_NAME "')" \
    " group by g.name, g.version"

const struct db_statement sql_version_count = {
    "version_count",
    "select s.name, s.version, sum(s.count)::int8 from sagad.shard h"
    " cross join lateral (select coalesce(sagad.id_floor(h.low), " NO_ID ") as bound) as b"
    " cross join lateral ((select g.name, g.version, count(*) as count from sagad.saga g where g.shard = h.shard"
    " and g.id >= b.bound and" VERSION_CONDITION ")"
    " union all (select g.name, g.version, count(*) from " OLDER_BEFORE("b.bound") " as w (saga)"
    " join sagad.saga g on g.shard = h.shard and g.id = w.saga where" VERSION_CONDITION ")) as s"
    " group by s.name, s.version order by 1, 2",
};

const struct db_statement sql_case_remark = {
    "case_remark",
    "with known as materialized (select from sagad.case_remark k where k.shard = $1::int2 and k.number = $2::int8"
    " and $4::uuid = any (k.ids))"
    " select case when r.n = 1 and not exists (select from known) then sagad.act_told(r.n, $11::text, null)"
    " else r.n end from (select sagad.case_remark($1::int2, $2::int8, $3::text, $4::uuid, $5::text, $6::text,"
    " $7::timestamptz, $8::text, $9::text, $10::int4) as n) as r",
};

const struct db_statement sql_debt_settle = {
    "debt_settle",
    "select case when s.body = $5::bytea then sagad.act_told(s.body, $8::text, null) else s.body end from (select"
    " sagad.debt_settle($1::int2, $2::uuid, $3::text, $4::uuid, $5::bytea, $6::int4, $7::timestamptz) as body) as s",
};

const struct db_statement sql_debt_settled = {
    "debt_settled",
    "select d.saga, d.operation, d.body from unnest($1::int2[], $2::uuid[]) as u (shard, saga)"
    " join sagad.debt_settled d on d.shard = u.shard and d.saga = u.saga",
};

const struct db_statement sql_case_put = {
    "case_put",
    "select case when c.n > 0 then sagad.act_told(c.n, $12::text, null) else c.n end from (select"
    " sagad.case_put($1::int2, $2::int8, $3::int8, $4::uuid, $5::text, $6::timestamptz, $7::timestamptz, $8::text,"
    " $9::bytea, $10::uuid, $11::bool) as n) as c",
};

/* --- what is due --- */

/*
 * The lease rows are locked against a takeover, and read as they are under that lock. Decisions under another epoch are
 * left out instead of failing the others.
 */
const struct db_statement sql_park = {
    "park",
    "with held as materialized (select s.shard, s.epoch from sagad.shard s where s.shard = any($1::int2[])"
    " order by s.shard for key share),"
    " wanted as materialized (select u.* from unnest($1::int2[], $2::int8[], $3::uuid[], $4::timestamptz[], $5::bool[],"
    " $6::text[]) with ordinality as u (shard, epoch, saga, at, awake, holds, i)"
    " join held h on h.shard = u.shard and h.epoch = u.epoch),"
    " parked as (insert into sagad.due (shard, saga, what, at, holds)"
    " select w.shard, w.saga, 'parked', coalesce(w.at, 'infinity'), w.holds::int8[] from wanted w"
    " order by w.shard, w.saga"
    " on conflict (shard, saga) do update set what = excluded.what, at = excluded.at, holds = excluded.holds),"
    " asleep as (delete from sagad.awake a using wanted w where w.awake and a.shard = w.shard and a.saga = w.saga)"
    " select w.i::int4 from wanted w",
};

/*
 * A repeat of a call adds a turn to a run at rest and changes nothing else, so its row in due does not know of it. A
 * run whose last turn came after $4 is put off until it has rested for $5 (NULL: for ever), and its position comes back
 * negative. The others go to forget(), which returns the positions of those whose shard is held.
 */
const struct db_statement sql_forget = {
    "forget",
    "with asked as materialized (select u.* from unnest($1::int2[], $2::int8[], $3::uuid[], $4::timestamptz[],"
    " $5::int8[]) with ordinality as u (shard, epoch, saga, rested_before, kept_ms, i)),"
    " young as materialized (select a.shard, a.saga, a.i, l.at + a.kept_ms * interval '1 millisecond' as until"
    " from asked a join sagad.saga s on s.shard = a.shard and s.id = a.saga and s.name = '~run'"
    " cross join lateral (select t.at from sagad.log t where t.shard = s.shard and t.saga = s.id"
    " order by t.seq desc limit 1) as l where a.rested_before is null or l.at > a.rested_before order by a.i),"
    " put_off as (update sagad.due d set at = coalesce(y.until, 'infinity') from young y"
    " where d.shard = y.shard and d.saga = y.saga and (d.what = 'forget') is true),"
    " going as (select array_agg(a.i::int4 order by a.i) as positions, array_agg(a.shard order by a.i) as shards,"
    " array_agg(a.epoch order by a.i) as epochs, array_agg(a.saga order by a.i) as sagas from asked a"
    " where a.i <> all (array(select y.i from young y)))"
    " select (- y.i)::int4 from young y"
    " union all select g.positions[f.i] from going g cross join lateral sagad.forget(g.shards, g.epochs, g.sagas) as f"
    " (i)",
};

#define DUE(what, limit, of_shard) \
    "(select d.* from unnest($1::int2[]) as u (shard) cross join lateral (select * from sagad.due w" \
    " where w.shard = u.shard and w.what = '" what "' and w.at <= $2::timestamptz order by w.at limit " of_shard ")" \
    " as d" \
    " order by d.at limit " limit ")"

/*
 * A caller wants one of both kinds, and sets the limit of the other to 0. No shard returns more than about twice its
 * share of sagas to forget, so a million due sagas cost one read as little as a thousand.
 */
const struct db_statement sql_due = {
    "due",
    "select d.shard, d.saga, d.what = 'forget', g.namespace, d.at"
    " from (" DUE("parked", "$3::int8", "$3::int8") " union all "
    DUE("forget", "$4::int8", "greatest(16, 2 * $4::int8 / greatest(1, cardinality($1::int2[])))") ") as d"
    " left join sagad.saga g on g.shard = d.shard and g.id = d.saga order by d.what = 'forget', d.at, d.saga",
};

const struct db_statement sql_due_next = {
    "due_next",
    "select min(d.at) from unnest($1::int2[]) as u (shard) cross join (values ('parked', $3::int8), ('forget',"
    " $4::int8)) as k (what, wanted)"
    " cross join lateral (select w.at from sagad.due w"
    " where w.shard = u.shard and w.what = k.what and w.at > $2::timestamptz order by w.at limit 1) as d where"
    " k.wanted > 0",
};

/*
 * Makes parked sagas due of whose holds one has ended: it is not among those in force, which are $2. Many sagas wait
 * for the same holds, so `waits` goes through the index from each set of holds to the next one, and reads one row of
 * each. The sets are compared in words from which PostgreSQL expects few, and the update compares in words that no
 * index fits: else a plan that was made while the table was empty would read the whole table.
 */
const struct db_statement sql_due_let_go = {
    "due_let_go",
    "with recursive waits (shard, holds) as (select u.shard, f.holds from unnest($1::int2[]) as u (shard)"
    " cross join lateral (select d.holds from sagad.due d where d.shard = u.shard and d.holds is not null"
    " order by d.holds limit 1) as f"
    " union all select w.shard, n.holds from waits w cross join lateral (select d.holds from sagad.due d"
    " where d.shard = w.shard and d.holds > w.holds order by d.holds limit 1) as n),"
    " going as (select o.shard, s.saga from (select w.shard, w.holds from waits w"
    " where (w.holds <@ $2::int8[])::int4 = 0 order by w.holds, w.shard) as o"
    " cross join lateral (select d.saga from sagad.due d where d.shard = o.shard and d.holds = o.holds"
    " order by d.saga limit $4::int8) as s limit $4::int8),"
    " gone as (update sagad.due d set at = $3::timestamptz, holds = null from going g"
    " where d.shard = g.shard and d.saga = g.saga and (d.what = 'parked') is true"
    " and coalesce(cardinality(d.holds), 0) > 0 returning 1)"
    " select count(*) from gone",
    .has_row = true,
};

/* --- locks on business keys: see schema/migrations/0007_waiting.sql --- */

const struct db_statement sql_lock_take = {
    "lock_take",
    "select l.held from sagad.lock_take($1::int2, $2::bytea, $3::text, $4::text, $5::int2, $6::uuid, $7::bool) as l"
    " (held)"
    " where l.held is not null",
};

/* --- inbox --- */

const struct db_statement sql_inbox_put = {
    "inbox_put",
    "with put as (insert into sagad.inbox (shard, id, saga, kind, payload)"
    " values ($1::int2, $2::uuid, $3::uuid, $4::text, $5::bytea) on conflict (shard, id) do nothing returning shard)"
    " select pg_notify('" SQL_INBOX_CHANNEL "', put.shard::text) from put",
};

const struct db_statement sql_inbox_read = {
    "inbox_read",
    "select i.shard, i.id, i.saga, i.kind, i.payload"
    " from unnest($1::int2[]) as u (shard) cross join lateral (select * from sagad.inbox g"
    " where g.shard = u.shard and g.id > $3::uuid order by g.id limit $2::int8) as i order by i.id limit $2::int8",
};

const struct db_statement sql_inbox_drop = {
    "inbox_drop",
    "delete from sagad.inbox where shard = $1::int2 and id = $2::uuid",
};

const struct db_statement sql_inbox_find = {
    "inbox_find",
    "select 1::int4 from sagad.inbox where shard = $1::int2 and id = $2::uuid",
};

/* --- answers --- */

/* Each answer is written once. A second one to the same input, from a repeated delivery, is not kept. */
const struct db_statement sql_answer_put = {
    "answer_put",
    "with put as (insert into sagad.answer (shard, input, body)"
    " select u.shard, u.input, u.body from unnest($1::int2[], $2::uuid[], $3::bytea[]) as u (shard, input, body)"
    " on conflict (shard, input) do nothing returning input)"
    " select pg_notify('" SQL_ANSWERS_CHANNEL "', string_agg(put.input::text, ' ')) from put having count(*) > 0",
};

const struct db_statement sql_answer_drop_inputs = {
    "answer_drop_inputs",
    "delete from sagad.inbox i using unnest($1::int2[], $2::uuid[]) as u (shard, id) where i.shard = u.shard and"
    " i.id = u.id",
};

const struct db_statement sql_answer_take = {
    "answer_take",
    "delete from sagad.answer a using unnest($1::int2[], $2::uuid[]) as u (shard, input)"
    " where a.shard = u.shard and a.input = u.input returning a.input, a.body",
};

/* Reads the whole table, which holds only answers that nobody fetched within minutes. */
const struct db_statement sql_answer_sweep = {
    "answer_sweep",
    "delete from sagad.answer where at < clock_timestamp() - interval '10 minutes'",
};

/* --- definitions --- */

#define PUT(table) \
    "with wanted as materialized (select * from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])" \
    " with ordinality as u (namespace, name, identity, body, i))," \
    " newest as materialized (select w.*, n.version as old_version, n.reading as old_reading," \
    " n.identity is distinct from w.identity or n.reading < $5::int4 as is_new from wanted w" \
    " left join lateral (select t.version, t.identity, t.reading from sagad." table " t" \
    " where t.namespace = w.namespace and t.name = w.name order by t.version desc limit 1) as n on true)," \
    " made as (insert into sagad." table " (namespace, name, version, identity, body, reading)" \
    " select n.namespace, n.name, coalesce(n.old_version, 0) + 1, n.identity, n.body, $5::int4 from newest n" \
    " where n.is_new returning 1)" \
    " select n.i::int4, case when n.is_new then coalesce(n.old_version, 0) + 1 else n.old_version end, n.is_new," \
    " case when n.is_new then $5::int4 else n.old_reading end from newest n order by n.i"

const struct db_statement sql_definition_put = {"definition_put", PUT("definition")};
const struct db_statement sql_tool_put = {"tool_put", PUT("tool")};

const struct db_statement sql_definition_notify = {
    "definition_notify",
    "select pg_notify('" SQL_DEFINITIONS_CHANNEL "', '')",
};

const struct db_statement sql_definition_load = {
    "definition_load",
    "select 0::int4, namespace, name, version, identity, body, created_at, reading from sagad.tool"
    " union all select 1::int4, namespace, name, version, identity, body, created_at, reading from sagad.definition"
    " order by 1, 2, 3, 4",
};

const struct db_statement sql_definition_state = {
    "definition_state",
    "select (select count(*) from sagad.tool) + (select count(*) from sagad.definition)",
};

/* --- guards: see schema/migrations/0006_guard.sql --- */

const struct db_statement sql_guard_ask = {
    "guard_ask",
    "select verdict, retry_after_ms, is_probe from sagad.guard_ask($1::int2, $2::text, $3::text, $4::text,"
    " $5::int8, $6::int8,"
    " $7::int8, $8::int8, $9::int8, $10::uuid, $11::bool, $12::uuid, $13::int2[], $14::text[], $15::timestamptz[],"
    " $16::int8[], $17::int8[], $18::int8[], $19::int8[], $20::int8[], $21::int8[])",
};

const struct db_statement sql_guard_tell = {
    "guard_tell",
    "select breaker_state, breaker_changed from sagad.guard_tell($1::int2, $2::text, $3::text, $4::text, $5::int8,"
    " $6::int8,"
    " $7::int8, $8::uuid, $9::uuid, $10::text, $11::bool, $12::int8, $13::int8, $14::text, $15::int8)",
};

const struct db_statement sql_guard_price = {
    "guard_price",
    "select sagad.guard_price($1::int2, $2::text, $3::text, $4::uuid, $5::int8)",
};

const struct db_statement sql_guard_breaker_set = {
    "guard_breaker_set",
    "select sagad.act_put($5::text, null) from (select sagad.guard_breaker_set($1::int2, $2::text, $3::text,"
    " $4::bytea)) as s",
};

/* The rows come in the given order, which is that of the names, as everywhere. So two statements about the same budgets
 * cannot wait for each other. */
const struct db_statement sql_guard_count = {
    "guard_count",
    "insert into sagad.guard_budget as b (shard, name, period, calls, emissions, micros)"
    " select u.shard, u.name, u.period, u.calls, u.emissions, u.micros"
    " from unnest($1::int2[], $2::text[], $3::timestamptz[], $4::int8[], $5::int8[], $6::int8[])"
    " with ordinality as u (shard, name, period, calls, emissions, micros, i) order by u.i"
    " on conflict (shard, name, period) do update set calls = b.calls + excluded.calls,"
    " emissions = b.emissions + excluded.emissions, micros = b.micros + excluded.micros",
};

const struct db_statement sql_guard_list = {
    "guard_list",
    "select g.namespace, g.tool, coalesce(b.endpoint, ''),"
    " case when g.breaker_open is not null then 'open' else coalesce(b.state, 'closed') end,"
    " case when g.breaker_open is null and b.state <> 'closed' and b.open_until > clock_timestamp()"
    " then b.open_until end,"
    " case when g.paused_until > clock_timestamp() then g.paused_until end,"
    " (select count(*)::int8 from sagad.guard_place p where p.shard = g.shard and p.namespace = g.namespace and"
    " p.tool = g.tool"
    " and p.expires_at > clock_timestamp()), coalesce(b.opened, 0), g.breaker_open,"
    " case when g.breaker_open is null and b.state <> 'closed'"
    " then b.open_until - b.cooldown_ms * interval '1 ms' end"
    " from sagad.guard g left join sagad.guard_breaker b"
    " on b.shard = g.shard and b.namespace = g.namespace and b.tool = g.tool"
    " where $1::text is null or g.namespace = $1::text order by 1, 2, 3",
};

const struct db_statement *const sql_hot[] = {
    &sql_start,      &sql_start_unique,    &sql_lower_low, &sql_log,
    &sql_log_unique, &sql_key_bundle, &sql_key_for_older, &sql_key_sweep, &sql_status,
    &sql_escalation_open, &sql_escalation_change, &sql_inbox_consume, &sql_taken,
    &sql_epochs,     &sql_hold_shards,     &sql_look,      &sql_lease_take,
    &sql_lease_renew, &sql_load,           &sql_load_numbers, &sql_saga_row,
    &sql_saga_turns, &sql_saga_logs, &sql_saga_by_business_id, &sql_run_turns, &sql_saga_by_key, &sql_saga_list,
    &sql_saga_looked, &sql_saga_list_of_id, &sql_saga_sum,
    &sql_saga_count, &sql_escalation_list, &sql_escalation_list_open, &sql_escalation_sum,
    &sql_escalation_sum_open, &sql_escalation_one, &sql_case_remark, &sql_debt_settle,
    &sql_debt_settled, &sql_inbox_read,
    &sql_inbox_drop, &sql_inbox_find,
    &sql_awake_add, &sql_awake_remove, &sql_answer_put, &sql_answer_drop_inputs, &sql_answer_take,
    &sql_approval_open, &sql_approval_end, &sql_follow, &sql_unpark, &sql_forget_later, &sql_forget_first,
    &sql_approval_list, &sql_approval_list_open, &sql_approval_sum, &sql_approval_sum_open,
    &sql_approval_one, &sql_version_count, &sql_park, &sql_due, &sql_due_next, &sql_due_let_go,
    &sql_schedule_list, &sql_schedule_due, &sql_schedule_next, &sql_series_list,
    &sql_hold_list, &sql_hold_one, &sql_hold_in_force, &sql_hold_version, &sql_hold_seen, &sql_hold_renewed,
    &sql_grant_put, &sql_grant_read, &sql_grant_list, &sql_grant_revoke,
    &sql_bulk_list, &sql_bulk_one, &sql_bulk_items, &sql_bulk_due, &sql_bulk_next, &sql_event_list, &sql_act_list,
    &sql_notify_cursor, &sql_notify_due, &sql_notification_list, NULL,
};
