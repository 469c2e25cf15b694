/* The statements about the server, its history, leases and engines: see sql.h. */
#include "store/sql.h"

/* clang-format off */

/* --- start-up --- */

const struct db_statement sql_check_server = {
    "check_server",
    "select pg_backend_pid(),"
    " (select (extract(epoch from a.backend_start) * 1000000)::int8 from pg_stat_get_activity(pg_backend_pid()) a),"
    " current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),"
    " pg_is_in_recovery(),"
    " case when pg_is_in_recovery() then 0"
    " else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int4 end,"
    " current_setting('transaction_read_only'), current_user::text,"
    " exists (select 1 from pg_catalog.pg_class c where c.relnamespace = n.oid and c.relname = 'schema_version'),"
    " coalesce(has_schema_privilege(n.oid, 'usage'), false),"
    " (select string_agg(g.line, '; ' order by g.line)"
    "    from (select t.privileges || ' on ' || string_agg(t.name, ', ' order by t.name) as line"
    "    from (select r.name, string_agg(r.privilege, ', ' order by r.privilege) as privileges"
    "    from (values ('schema_version', 'select'), ('shard', 'select'), ('shard', 'update'),"
    "                 ('saga', 'select'), ('saga', 'insert'), ('saga', 'update'), ('saga', 'delete'), ('log',"
    " 'select'), ('log', 'insert'),"
    "                 ('log', 'delete'), ('operation_key', 'select'), ('operation_key', 'insert'),"
    " ('operation_key', 'delete'), ('key_bundle', 'select'), ('key_bundle', 'insert'), ('key_bundle', 'delete'),"
    " ('inbox', 'select'),"
    "                 ('inbox', 'insert'), ('inbox', 'delete'), ('awake', 'select'), ('awake', 'insert'), ('awake',"
    " 'delete'),"
    "                 ('answer', 'select'), ('answer', 'insert'), ('answer', 'delete'), ('escalation', 'select'),"
    " ('escalation', 'insert'),"
    "                 ('escalation', 'update'), ('escalation', 'delete'), ('lock', 'select'), ('lock', 'insert'),"
    " ('lock', 'delete'),"
    "                 ('number_gone', 'select'), ('number_gone', 'insert'), ('number_gone', 'update'),"
    " ('history_loss', 'select'), ('history_loss', 'insert'), ('history_shard', 'select'), ('history_shard',"
    " 'insert'),"
    "                 ('history_saga', 'select'), ('history_saga', 'insert'), ('history_call', 'select'),"
    " ('history_call', 'insert'), ('tool', 'select'), ('tool', 'insert'),"
    " ('act', 'select'), ('act', 'insert'), ('payload_key', 'select'), ('payload_key', 'insert'),"
    " ('definition', 'select'),"
    "                 ('definition', 'insert')"
    "          union all select t, p from unnest(array['due', 'engine', 'approval', 'guard', 'guard_place',"
    " 'guard_breaker', 'guard_budget', 'guard_reservation', 'hold', 'hold_version']) as t"
    "          cross join unnest(array['select', 'insert', 'update', 'delete']) as p) as r (name, privilege)"
    "    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = r.name"
    "   where not has_table_privilege(c.oid, r.privilege) group by r.name) as t group by t.privileges) as g),"
    " case when current_setting('synchronous_standby_names') = '' then 0"
    " else coalesce(substring(current_setting('synchronous_standby_names')"
    " from '(?i)^\\s*(?:any|first)?\\s*(\\d{1,4})\\s*\\(')::int4, 1) end,"
    " (select count(*) from pg_catalog.pg_stat_replication p where coalesce(p.state, 'streaming') = 'streaming'),"
    " to_regnamespace('sagad_clock') is not null"
    " from (select 1) as one left join pg_catalog.pg_namespace n on n.nspname = 'sagad'",
};

const struct db_statement sql_check_schema = {
    "check_schema",
    "select max(v.version), pg_backend_pid() from sagad.schema_version v",
};

/* Runs twice, first and last in a transaction: see store_is_one_transaction(). It reads a table so that a router of
 * statements by their tables (Citus) sends it where the others go. */
const struct db_statement sql_check_transaction = {
    "check_transaction",
    "select pg_current_xact_id()::text::int8, pg_backend_pid() from sagad.schema_version v where v.version = 1",
};

/* --- history: see history.c --- */

/* Returns the turns confirmed to us that are missing. */
const struct db_statement sql_history_missing = {
    "history_missing",
    "select u.saga, u.seq, u.at from unnest($1::int2[], $2::uuid[], $3::int4[], $4::int8[], $5::timestamptz[]) as u"
    " (shard, saga, seq, epoch, at)"
    " where (select true from sagad.log l where l.shard = u.shard and l.saga = u.saga and l.seq = u.seq and l.epoch"
    " = u.epoch and l.at = u.at) is null",
};

const struct db_statement sql_history_open = {
    "history_open",
    "select count(*) from sagad.history_loss h where h.accepted_at is null",
};

/* Returns the counters of each shard. When they are lower than an engine has seen, the history was rewound. */
const struct db_statement sql_history_marks = {
    "history_marks",
    "select s.shard, s.epoch, s.turns from sagad.shard s",
};

/* Writes the loss and all knowledge about it in one transaction. The transaction may be repeated when its answer was
 * lost: nothing happens twice, nor after a person has accepted the loss. */
#define LOSS_IS_OPEN "(select h.accepted_at is null from sagad.history_loss h where h.id = $1::uuid)"

const struct db_statement sql_history_found = {
    "history_found",
    "insert into sagad.history_loss (id, engine, missing, unlisted, calls_since)"
    " values ($1::uuid, $2::text, $3::text, $4::int8, $5::timestamptz) on conflict (id) do nothing",
};

/* Finds, among the sagas that an engine knows up to a record, those that lack the record, or have another one of a
 * later epoch in its place. */
const struct db_statement sql_history_sagas = {
    "history_sagas",
    "insert into sagad.history_saga (shard, saga, loss, seq, seq_left)"
    " select u.shard, u.saga, $1::uuid, u.seq,"
    " coalesce((select l.seq + l.records - 1 from sagad.log l where l.shard = u.shard and l.saga = u.saga order by"
    " l.seq desc limit 1), 0)"
    " from unnest($2::int2[], $3::uuid[], $4::int4[], $5::int8[]) as u (shard, saga, seq, epoch)"
    " where " LOSS_IS_OPEN " and (select l.epoch <= u.epoch and l.seq + l.records > u.seq from sagad.log l"
    " where l.shard = u.shard and l.saga = u.saga and l.seq <= u.seq order by l.seq desc limit 1) is not true"
    " on conflict (shard, saga, loss) do nothing",
};

const struct db_statement sql_history_shards = {
    "history_shards",
    "insert into sagad.history_shard (shard, loss, epoch, turns, turns_left)"
    " select s.shard, $1::uuid, greatest(s.epoch, u.epoch), greatest(s.turns, u.turns), s.turns"
    " from unnest($2::int2[], $3::int8[], $4::int8[], $5::bool[]) as u (shard, epoch, turns, lacks) join"
    " sagad.shard s on s.shard = u.shard"
    " where " LOSS_IS_OPEN " and (u.lacks or (select true from sagad.history_saga h where h.shard = u.shard and"
    " h.loss = $1::uuid limit 1))"
    " on conflict (shard, loss) do nothing",
};

/* Marks the shards in the way that every engine checks before it takes or renews a shard, also one of an earlier
 * release. The owner is fenced. */
const struct db_statement sql_history_mark = {
    "history_mark",
    "with marked as (select s.shard, h.epoch from sagad.history_shard h join sagad.shard s on s.shard = h.shard"
    " where h.loss = $1::uuid and s.owner_identity is distinct from 'loss/' || $1::uuid::text and " LOSS_IS_OPEN
    " order by s.shard for update of s)"
    " update sagad.shard s set epoch = greatest(s.epoch, m.epoch) + 1, owner = 'nobody: see sagad.history_loss',"
    " owner_identity = 'loss/' || $1::uuid::text, expires_at = timestamptz '9999-01-01 00:00:00+00' from marked m"
    " where s.shard = m.shard",
};

const struct db_statement sql_history_calls = {
    "history_calls",
    "insert into sagad.history_call (shard, key, loss, saga, attempts, effect, tool)"
    " select u.shard, u.key, $1::uuid, u.saga, u.attempts, u.effect, u.tool"
    " from unnest($2::int2[], $3::uuid[], $4::uuid[], $5::int4[], $6::text[], $7::text[]) as u (shard, saga, key,"
    " attempts, effect, tool)"
    " where " LOSS_IS_OPEN " and (select true from sagad.history_saga h where h.shard = u.shard and h.saga = u.saga"
    " and h.loss = $1::uuid)"
    " order by u.attempts desc, u.tool is null on conflict (shard, key, loss) do nothing",
};

const struct db_statement sql_history_accepted = {
    "history_accepted",
    "select h.accepted_at is not null from sagad.history_loss h where h.id = $1::uuid",
};

/* --- leases --- */

const struct db_statement sql_lease_table = {
    "lease_table",
    "select s.shard, s.epoch, s.owner, s.owner_identity, s.expires_at, s.low,"
    " coalesce((extract(epoch from s.expires_at - clock_timestamp()) * 1000)::int8, -1), s.turns"
    " from sagad.shard s order by s.shard",
};

/* A connection has the instance of its engine in its name: sagad/INSTANCE/what-for. */
const struct db_statement sql_lease_end_backends = {
    "lease_end_backends",
    "select count(pg_terminate_backend(a.pid)) from pg_catalog.pg_stat_activity a"
    " where a.application_name like 'sagad/%' and split_part(a.application_name, '/', 2) = any($1::text[])"
    " and ($2::text is null or split_part(a.application_name, '/', 3) = $2::text)"
    " and a.pid <> pg_backend_pid()",
};

const struct db_statement sql_lease_lock = {
    "lease_lock",
    "select u.shard, pg_try_advisory_lock($1::int4, u.shard::int4) from unnest($2::int2[]) as u (shard)",
};

const struct db_statement sql_lease_unlock = {
    "lease_unlock",
    "select pg_advisory_unlock($1::int4, u.shard::int4) from unnest($2::int2[]) as u (shard)",
};

/*
 * FOR UPDATE waits for appends under way, and later ones find another epoch: see fence() in the migrations. An epoch is
 * never used twice, even when takeovers were forgotten in a failover: its upper half is the timeline of the server, of
 * which the first one counts as 0.
 */
const struct db_statement sql_lease_take = {
    "lease_take",
    "with mine as (select s.shard from sagad.shard s where s.shard = any($1::int2[])"
    " and (s.expires_at is null or s.expires_at < clock_timestamp() or s.owner_identity = any($2::text[]))"
    " order by s.shard for update)"
    " update sagad.shard s set epoch = greatest(s.epoch + 1,"
    " (('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int8 - 1) << 32), owner = $3::text,"
    " owner_identity = $4::text,"
    " expires_at = clock_timestamp() + $5::int8 * interval '1 millisecond'"
    " from mine where s.shard = mine.shard returning s.shard, s.epoch, s.low, s.turns",
};

/* `low` moves on only when nobody moved it back since we saw it (lower_low). */
const struct db_statement sql_lease_renew = {
    "lease_renew",
    "update sagad.shard s set expires_at = clock_timestamp() + $5::int8 * interval '1 millisecond',"
    " low = case when u.low is null then s.low"
    " when s.low is not distinct from u.low_seen then u.low"
    " when s.low is null then null else least(s.low, u.low) end, turns = greatest(s.turns, u.turns)"
    " from unnest($1::int2[], $2::int8[], $3::timestamptz[], $4::timestamptz[], $7::int8[]) as u (shard, epoch,"
    " low, low_seen, turns)"
    " where s.shard = u.shard and s.epoch = u.epoch and s.owner_identity = $6::text returning s.shard, s.low,"
    " s.expires_at",
};

const struct db_statement sql_lease_release = {
    "lease_release",
    "with mine as (update sagad.shard s set owner = null, owner_identity = null, expires_at = null"
    " from unnest($1::int2[], $2::int8[]) as u (shard, epoch)"
    " where s.shard = u.shard and s.epoch = u.epoch and s.owner_identity = $3::text returning 1)"
    " select count(*), pg_notify('" SQL_LEASES_CHANNEL "', '') from mine",
};

const struct db_statement sql_lease_unlock_all = {
    "lease_unlock_all",
    "select pg_advisory_unlock_all()",
};

/* --- engines: see schema/migrations/0008_engine.sql --- */

/* The fixed properties of an engine do not change while it lives; its figures do. */
const struct db_statement sql_engine_put = {
    "engine_put",
    "insert into sagad.engine as e (instance, identity, name, version, schema, standby, leaving, expires_at,"
    " append_lag_ms, due_lag_ms, inbox_rows, holds)"
    " values ($1::text, $2::text, $3::text, $4::text, $5::int4, $6::bool, $7::bool,"
    " clock_timestamp() + $8::int8 * interval '1 millisecond', $9::int8, $10::int8, $11::int8, $12::int8)"
    " on conflict (instance) do update set leaving = excluded.leaving, expires_at = excluded.expires_at,"
    " append_lag_ms = excluded.append_lag_ms, due_lag_ms = excluded.due_lag_ms, inbox_rows = excluded.inbox_rows,"
    " holds = excluded.holds",
};

const struct db_statement sql_engine_table = {
    "engine_table",
    "select e.instance, e.identity, e.name, e.version, e.schema, e.standby, e.leaving, e.started_at,"
    " (extract(epoch from e.expires_at - clock_timestamp()) * 1000)::int8, e.append_lag_ms, e.due_lag_ms, e.inbox_rows"
    " from sagad.engine e order by e.instance",
};

/* Returns what a person compares with what should be. datid tells connections of clients and needs no rights; how far
 * standbys lag is null for a role without pg_monitor. */
const struct db_statement sql_database_facts = {
    "database_facts",
    "select (extract(epoch from clock_timestamp()) * 1000)::int8, current_setting('server_version'),"
    " case when pg_is_in_recovery() then 0"
    " else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int4 end,"
    " (select max(v.version) from sagad.schema_version v),"
    " current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),"
    " current_setting('synchronous_standby_names'),"
    " current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4,"
    " (select count(*) from pg_catalog.pg_stat_activity a where a.datid is not null),"
    " (select count(*) from pg_catalog.pg_stat_replication p where coalesce(p.state, 'streaming') = 'streaming'),"
    " (select (extract(epoch from max(p.replay_lag)) * 1000)::int8 from pg_catalog.pg_stat_replication p),"
    " (select count(*) from sagad.history_loss h where h.accepted_at is null)",
};

const struct db_statement sql_engine_remove = {
    "engine_remove",
    "delete from sagad.engine e where e.instance = any($1::text[])",
};

/* An engine has come or is leaving, so the others look at once. */
const struct db_statement sql_engine_tell = {
    "engine_tell",
    "select pg_notify('" SQL_LEASES_CHANNEL "', '')",
};
