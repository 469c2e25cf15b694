-- The engines that live on this database, so that each can tell its fair share of the shards, and people who is there.

-- One row an engine, written with each renewal of its leases and removed when it leaves. A small table for reference, like
-- schema_version: it belongs to no shard, and nothing that must be true rests on it. Who owns a shard stands in sagad.shard.
create table sagad.engine (
    instance      text        not null,
    identity      text        not null,
    name          text        not null,
    version       text        not null,
    schema        int4        not null,
    standby       bool        not null default false,
    leaving       bool        not null default false,
    started_at    timestamptz not null default clock_timestamp(),
    expires_at    timestamptz not null,
    append_lag_ms int8        not null default 0,
    due_lag_ms    int8        not null default 0,
    inbox_rows    int8        not null default 0,
    constraint engine_pk primary key (instance)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
comment on table sagad.engine is
    'The engines that live, for fair shares and for people: a reference table of a few rows whose key does not start with the shard. Written in the transaction that renews the leases, removed by the engine when it leaves, by any other an hour after its expiry';
comment on column sagad.engine.instance is 'Random, new for each start of the process; in the names of its connections: sagad/INSTANCE/what-for';
comment on column sagad.engine.identity is 'As in sagad.shard.owner_identity: tells an engine on the same machine that this one is surely dead';
comment on column sagad.engine.name is 'For people; as in sagad.shard.owner';
comment on column sagad.engine.version is 'Of the program';
comment on column sagad.engine.schema is 'The version of the schema that the program was made for; it runs on this one and on the next';
comment on column sagad.engine.standby is 'It takes shards only while no engine lives that is no standby';
comment on column sagad.engine.leaving is 'It is giving its shards up: others count without it';
comment on column sagad.engine.started_at is 'When it wrote this row first';
comment on column sagad.engine.expires_at is 'By the clock of this database: from then on it does not count';
comment on column sagad.engine.append_lag_ms is 'How long the oldest of its appends has been waiting to become durable, as it last said';
comment on column sagad.engine.due_lag_ms is 'By how much the oldest of its parked sagas is overdue, as it last said';
comment on column sagad.engine.inbox_rows is 'Rows of the inbox that it was at work on, as it last said';

comment on table sagad.schema_version is
    'The migrations that were applied. A program runs on the schema that it was made for, and on the next one while engines are replaced one after another';
