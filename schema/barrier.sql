-- The barrier of the adapter `sql`: which operations have taken effect in this database.
--
-- A tool with "barrier": true records the key of its operation here in the same transaction as its effect. So either
-- both are there or neither, and even a COMMIT whose answer was lost is settled by looking. Install it in every database that
-- such tools write to; it may be sagad's own:
--
--     psql -v ON_ERROR_STOP=1 --single-transaction -d DATABASE -f barrier.sql
--     grant usage on schema sagad_barrier to ROLE;
--     grant select, insert, update on sagad_barrier.operation to ROLE;
--
-- ROLE is the one that the tools' `database` logs in as; of this table it needs nothing else. It may be run again.
--
-- Rows may be deleted when no engine will ask for their keys any more: later than the longest `key.window`, `give_up_after`
-- and pause of your sagas. Deleted too early, a call that was thought lost takes effect a second time. For example:
--
--     delete from sagad_barrier.operation where recorded_at < now() - interval '90 days';

create schema if not exists sagad_barrier;
comment on schema sagad_barrier is 'sagad, adapter sql: which operations have taken effect in this database';

create table if not exists sagad_barrier.operation (
    key         uuid        not null,
    verdict     text        not null default 'done',
    response    json,
    undone_by   uuid,
    asked       int4        not null default 1,
    recorded_at timestamptz not null default clock_timestamp(),
    constraint operation_pk primary key (key),
    constraint operation_verdict_known check (verdict in ('done', 'nothing', 'void'))
);
comment on table sagad_barrier.operation is
    'One row for each operation that took effect here, or that never will. Written in the transaction of the effect itself';
comment on column sagad_barrier.operation.key is 'The idempotency key of the operation; sagad.saga_of(key) of the engine tells its saga';
comment on column sagad_barrier.operation.verdict is
    'done: its statement ran. nothing: it ran and changed no row, or there was nothing to undo. void: it was undone before it came; it is refused when it comes';
comment on column sagad_barrier.operation.response is 'What the statement gave; each repeat gets this again';
comment on column sagad_barrier.operation.undone_by is 'The operation that undid it; no second one will';
comment on column sagad_barrier.operation.asked is 'How often this key came, repeats and looks after a lost COMMIT included';
comment on column sagad_barrier.operation.recorded_at is 'When it came first';
create index if not exists operation_by_age on sagad_barrier.operation (recorded_at);
