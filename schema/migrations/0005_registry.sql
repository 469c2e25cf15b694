-- Calls of agents: runs that are woken again, answers to calls that another engine took, and what the views say of calls.

-- An id tells when a saga was made, and recovery reads no further back than the oldest unfinished one. A run that rested and was
-- woken is unfinished again although it is old: it stands here while it is awake.
create table sagad.awake (
    shard int2 not null,
    saga  uuid not null,
    constraint awake_pk primary key (shard, saga)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table sagad.awake is
    'Runs that rested, which ended them, and were woken by a call: recovery loads these beside the sagas behind shard.low. Written in the transaction that appends run.woken, removed with run.rested';
comment on column sagad.awake.shard is 'Of the run';
comment on column sagad.awake.saga is 'Its id in the table saga';

-- Not logged by PostgreSQL: after a crash or a failover of the database answers are gone, and whoever waits for one finds out in the
-- log of the saga. What was done stands there; this is only the quick way back.
create unlogged table sagad.answer (
    shard int2        not null,
    input uuid        not null,
    at    timestamptz not null default clock_timestamp(),
    body  bytea       not null,
    constraint answer_pk primary key (shard, input)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table sagad.answer alter column body set storage external;
comment on table sagad.answer is
    'What the owner of a shard says to an input of the inbox whose sender waits. Removed by the sender when it is read, by anybody after ten minutes';
comment on column sagad.answer.shard is 'Of the input';
comment on column sagad.answer.input is 'Id of the row that was in the inbox';
comment on column sagad.answer.at is 'When it was answered';
comment on column sagad.answer.body is 'JSON in UTF-8';

comment on column sagad.inbox.kind is 'start, abort, resolve, call, complete, bypass, resume, or settled: the outcome of a call that came after the shard had gone to another engine';
comment on column sagad.inbox.saga is 'Whom it is for; a call outside any saga names the run in its payload, and this is all zeros';
comment on column sagad.saga.name is 'Of the definition; ~open: an open saga, its steps are the calls of an agent; ~run: the calls that name one run outside any saga';
comment on column sagad.saga.business_id is 'As given at the start; the name of a run';
comment on column sagad.saga.ended_at is 'When it ended; null: unfinished. A run ends when it rests, and is taken back when it is woken';

create or replace view sagad.saga_step as
    select distinct on (e.shard, e.saga, e.step)
           e.shard, e.saga, e.step,
           case
               when e.type in ('step.pending', 'step.called', 'step.repeated') then 'pending'
               when e.type in ('step.intent', 'step.accepted', 'step.reopened') then 'running'
               when e.type = 'step.retrying' then 'retrying'
               when e.type in ('step.unknown', 'step.probed', 'step.waived') then 'unknown'
               when e.type = 'step.completed' then 'completed'
               when e.type = 'step.failed' then 'failed'
               when e.type = 'step.skipped' then 'skipped'
               when e.type = 'compensation.completed' then 'compensated'
               when e.type = 'compensation.failed' then 'compensation_failed'
               else 'compensating'
           end as status,
           e.type as last_record, e.seq as last_seq, e.at as updated_at, e.key, e.attempt, e.data ->> 'error' as error
      from sagad.log_entry e
     where e.step is not null and (e.type like 'step.%' or e.type like 'compensation.%') and e.type <> 'step.late'
     order by e.shard, e.saga, e.step, e.seq desc;
comment on view sagad.saga_step is
    'Each step that began, as its newest record tells it. The API knows more: it folds the whole log';

create or replace view sagad.operation as
    select distinct on (e.shard, e.saga, e.key)
           e.shard, e.saga, e.key, e.step,
           case when e.type like 'compensation.%' then 'undo' else 'do' end as direction,
           case
               when e.type in ('step.pending', 'step.called', 'step.repeated') then 'pending'
               when e.type in ('step.unknown', 'step.probed', 'compensation.unknown', 'compensation.probed') then 'unknown'
               when e.type in ('step.completed', 'compensation.completed') then 'completed'
               when e.type in ('step.failed', 'step.skipped', 'compensation.failed') then 'failed'
               when e.type in ('step.retrying', 'compensation.retrying') and not coalesce((e.data -> 'maybe')::bool, false) then 'pending'
               else 'in_flight'
           end as state,
           e.attempt, e.type as last_record, e.seq as last_seq, e.at as updated_at, e.data ->> 'error' as error
      from sagad.log_entry e
     where e.key is not null and (e.type like 'step.%' or e.type like 'compensation.%') and e.type <> 'step.late'
     order by e.shard, e.saga, e.key, e.seq desc;
comment on view sagad.operation is
    'Each operation by its idempotency key, as its newest record tells it. Join operation_key to get from a key to its shard and saga';
