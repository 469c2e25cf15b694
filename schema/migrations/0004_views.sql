-- Log, steps and operations in SQL, for an operator with psql. Views over the log: nothing is stored twice.

create view sagad.log_entry as
    select l.shard, l.saga, l.seq + (r.position - 1)::int4 as seq, l.at, l.epoch,
           r.record ->> 'type' as type, r.record ->> 'step' as step, (r.record ->> 'key')::uuid as key,
           (r.record ->> 'attempt')::int4 as attempt, r.record ->> 'actor' as actor, r.record -> 'data' as data
      from sagad.log l
     cross join lateral jsonb_array_elements(convert_from(l.payload, 'UTF8')::jsonb) with ordinality as r (record, position);
comment on view sagad.log_entry is
    'The records of the log, one a row. Ask with "shard = sagad.shard_of(ID) and saga = ID"; without the shard every row is read';

create view sagad.saga_step as
    select distinct on (e.shard, e.saga, e.step)
           e.shard, e.saga, e.step,
           case
               when e.type = 'step.pending' then 'pending'
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
     where e.step is not null and (e.type like 'step.%' or e.type like 'compensation.%')
     order by e.shard, e.saga, e.step, e.seq desc;
comment on view sagad.saga_step is
    'Each step that began, as its newest record tells it. The API knows more: it folds the whole log';

create view sagad.operation as
    select distinct on (e.shard, e.saga, e.key)
           e.shard, e.saga, e.key, e.step,
           case when e.type like 'compensation.%' then 'undo' else 'do' end as direction,
           case
               when e.type in ('step.pending') then 'pending'
               when e.type in ('step.unknown', 'step.probed', 'compensation.unknown', 'compensation.probed') then 'unknown'
               when e.type in ('step.completed', 'compensation.completed') then 'completed'
               when e.type in ('step.failed', 'step.skipped', 'compensation.failed') then 'failed'
               when e.type in ('step.retrying', 'compensation.retrying') and not coalesce((e.data -> 'maybe')::bool, false) then 'pending'
               else 'in_flight'
           end as state,
           e.attempt, e.type as last_record, e.seq as last_seq, e.at as updated_at, e.data ->> 'error' as error
      from sagad.log_entry e
     where e.key is not null
     order by e.shard, e.saga, e.key, e.seq desc;
comment on view sagad.operation is
    'Each operation by its idempotency key, as its newest record tells it. Join operation_key to get from a key to its shard and saga';
