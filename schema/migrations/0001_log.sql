-- The durable log, who may write it, and what is needed to find a saga in it.
--
-- Every key starts with the shard; there are no triggers, no foreign keys and no unique constraint that is not routed by
-- shard. Statements name the schema, so that no search_path matters.

do $$
begin
    if to_regnamespace('sagad') is null then
        create schema sagad;
    end if;
end
$$;
comment on schema sagad is 'sagad: sagas with a durable log. Made and changed by "sagad migrate" only.';

create table sagad.schema_version (
    version    int4        not null,
    name       text        not null,
    applied_at timestamptz not null default clock_timestamp(),
    constraint schema_version_pk primary key (version)
);
comment on table sagad.schema_version is 'The migrations that were applied. A program runs on exactly the schema that it knows.';
comment on column sagad.schema_version.version is 'Number of the migration; the highest one is the version of the schema';
comment on column sagad.schema_version.name is 'Its reason in short';
comment on column sagad.schema_version.applied_at is 'When';

-- Time and shard of ids ------------------------------------------------------------------------------------------------

create function sagad.id_floor(instant timestamptz) returns uuid
    language sql immutable strict parallel safe
    return (encode(substring(int8send((extract(epoch from instant) * 1000)::int8) from 3), 'hex') || repeat('0', 20))::uuid;
comment on function sagad.id_floor(timestamptz) is
    'The smallest id that a saga made at this instant or later can have: ids are UUIDv7 and so in order of time';

create function sagad.shard_of(saga uuid) returns int2
    language sql immutable strict parallel safe
    return (get_byte(uuid_send(saga), 14) * 256 + get_byte(uuid_send(saga), 15))::int2;
comment on function sagad.shard_of(uuid) is
    'The shard of a saga, which is the last two bytes of its id. Put "shard = sagad.shard_of(ID)" beside "saga = ID" and an index is used';

-- Ownership ------------------------------------------------------------------------------------------------------------

create table sagad.shard (
    shard          int2        not null,
    epoch          int8        not null default 0,
    owner          text,
    owner_identity text,
    expires_at     timestamptz,
    low            timestamptz,
    constraint shard_pk primary key (shard),
    constraint shard_number_known check (shard between 0 and 63)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
comment on table sagad.shard is
    'The lease of each shard. Every append locks the row at its own epoch (FOR KEY SHARE); whoever takes the shard over locks it FOR UPDATE and raises the epoch, and from then on the old owner''s appends are refused';
comment on column sagad.shard.shard is 'Number of the shard';
comment on column sagad.shard.epoch is 'Raised by each takeover; what an append carries must equal it';
comment on column sagad.shard.owner is 'Name of the engine that holds the lease, for people; null: nobody';
comment on column sagad.shard.owner_identity is 'Host, boot, pid namespace, pid, start time and instance of that process: tells a restart on the same machine that the old owner is surely dead';
comment on column sagad.shard.expires_at is 'By the clock of this database, when another engine may take the shard over; null: at once';
comment on column sagad.shard.low is 'No unfinished saga of this shard has an id made before this instant: recovery reads from here on; null: it may';

insert into sagad.shard (shard) select generate_series(0, 63);

create function sagad.fence(shards int2[], epochs int8[]) returns void
    language plpgsql as $$
declare
    held int;
begin
    perform 1
       from unnest(shards, epochs) as mine (shard, epoch)
       join sagad.shard s on s.shard = mine.shard and s.epoch = mine.epoch
      order by s.shard
        for key share of s;
    get diagnostics held = row_count;
    if held <> cardinality(shards) then
        raise exception using errcode = 'SG001', message = 'another engine has taken a shard over',
            detail = (select string_agg(mine.shard::text, ' ' order by mine.shard)
                        from unnest(shards, epochs) as mine (shard, epoch)
                       where not exists (select 1 from sagad.shard s where s.shard = mine.shard and s.epoch = mine.epoch));
    end if;
end
$$;
comment on function sagad.fence(int2[], int8[]) is
    'Locks the lease rows of these shards against a takeover until the transaction ends; SQLSTATE SG001 when one of them is not at its epoch';

create function sagad.expect(what text, touched int8, due int8) returns void
    language plpgsql as $$
begin
    if touched <> due then
        raise exception using errcode = 'SG002', message = format('%s: %s rows instead of %s', what, touched, due);
    end if;
end
$$;
comment on function sagad.expect(text, int8, int8) is 'SQLSTATE SG002 when a statement did not touch as many rows as it must have';

-- Sagas ----------------------------------------------------------------------------------------------------------------

-- Half of each page stays free, so that the change of a status finds room beside the row and touches no index (HOT). For the same
-- reason no index may name status, updated_at or ended_at, not even in a condition.
create table sagad.saga (
    shard           int2        not null,
    id              uuid        not null,
    namespace       text        not null,
    name            text        not null,
    version         int4        not null,
    status          text        not null,
    tags            jsonb,
    business_id     text,
    business_digest bytea,
    input_digest    bytea       not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    ended_at        timestamptz,
    constraint saga_pk primary key (shard, id),
    constraint saga_status_known check (status in ('running', 'waiting', 'paused', 'compensating', 'escalated',
                                                   'completed', 'compensated', 'abandoned'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
create unique index saga_business_digest on sagad.saga (shard, business_digest) where business_digest is not null;
comment on table sagad.saga is 'One row for each saga, for finding and listing. Written when it starts and when its status changes; its state is the fold of its log';
comment on column sagad.saga.shard is 'From the id; of a saga with a business id derived from that';
comment on column sagad.saga.id is 'UUIDv7 whose last two bytes are the shard';
comment on column sagad.saga.namespace is 'Of the token that started it';
comment on column sagad.saga.name is 'Of the definition';
comment on column sagad.saga.version is 'Of the definition';
comment on column sagad.saga.status is 'running, waiting, paused, compensating, escalated; final: completed, compensated, abandoned';
comment on column sagad.saga.tags is 'As given at the start';
comment on column sagad.saga.business_id is 'As given at the start';
comment on column sagad.saga.business_digest is 'Of namespace, name and business id: 16 bytes; the same start is one saga';
comment on column sagad.saga.input_digest is 'SHA-256 of the canonical input: tells the same start from another one under the same business id';
comment on column sagad.saga.created_at is 'When it was started, by the clock of the engine';
comment on column sagad.saga.updated_at is 'When the status changed last';
comment on column sagad.saga.ended_at is 'When it ended; null: unfinished';

create table sagad.log (
    shard   int2        not null,
    saga    uuid        not null,
    seq     int4        not null,
    records int2        not null,
    at      timestamptz not null,
    epoch   int8        not null,
    payload bytea       not null,
    constraint log_pk primary key (shard, saga, seq),
    constraint log_records_positive check (seq > 0 and records > 0)
) with (toast_tuple_target = 4080, autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.2);
alter table sagad.log alter column payload set storage external;
comment on table sagad.log is 'The durable log: one row for each turn of a saga, inserted once and never changed. Read it through the view log_entry';
comment on column sagad.log.shard is 'Of the saga';
comment on column sagad.log.saga is 'Its id';
comment on column sagad.log.seq is 'Number of the first record of the turn; without gaps, seq + records is the seq of the next row';
comment on column sagad.log.records is 'How many records the turn has';
comment on column sagad.log.at is 'When it was decided, by the clock of the engine';
comment on column sagad.log.epoch is 'Of the lease under which it was decided';
comment on column sagad.log.payload is 'The records: a JSON array in UTF-8, byte for byte as written (uncompressed: compressing costs more than the disk)';

create table sagad.operation_key (
    shard int2 not null,
    key   uuid not null,
    saga  uuid not null,
    constraint operation_key_pk primary key (shard, key)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);
comment on table sagad.operation_key is 'Which saga has the operation with this idempotency key';
comment on column sagad.operation_key.shard is 'From the key: its last byte modulo 64';
comment on column sagad.operation_key.key is 'As the called service sees it';
comment on column sagad.operation_key.saga is 'Whose log tells the rest';

create table sagad.inbox (
    shard   int2        not null,
    id      uuid        not null,
    at      timestamptz not null default clock_timestamp(),
    saga    uuid        not null,
    kind    text        not null,
    payload bytea       not null,
    constraint inbox_pk primary key (shard, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table sagad.inbox is 'Inputs that reached an engine which does not own the shard. Removed in the transaction that appends what they meant';
comment on column sagad.inbox.shard is 'Of the saga';
comment on column sagad.inbox.id is 'UUIDv7, made by the engine that took the input';
comment on column sagad.inbox.at is 'When it became durable';
comment on column sagad.inbox.saga is 'Whom it is for';
comment on column sagad.inbox.kind is 'start, abort or resolve';
comment on column sagad.inbox.payload is 'JSON in UTF-8';
