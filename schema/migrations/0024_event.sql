-- One feed of what people and systems want to know. The log is its outbox: a turn that says something of that kind carries the number of its
-- transaction. A reader takes the turns of all transactions up to the oldest one that is still under way, so that none comes later behind
-- its back.

alter table sagad.log add column event_tx int8;
alter table sagad.log alter column event_tx set default pg_current_xact_id()::text::int8; -- for engines of the release before
create index log_event on sagad.log (shard, event_tx) where event_tx is not null;
comment on column sagad.log.event_tx is
    'Number of the transaction that wrote the turn, where one of its records is an event; null: none is, or it is older than this column';

create table sagad.case_event (
    shard     int2        not null,
    number    int8        not null,
    resolved  bool        not null,
    event_tx  int8        not null default pg_current_xact_id()::text::int8,
    at        timestamptz not null,
    saga      uuid        not null,
    namespace text        not null,
    reason    text        not null,
    constraint case_event_pk primary key (shard, number, resolved)
);
create index case_event_tx on sagad.case_event (shard, event_tx);
comment on table sagad.case_event is 'Events of cases that no log tells of, for the feed: those with the reasons follower and unreadable';
comment on column sagad.case_event.shard is 'Of the case';
comment on column sagad.case_event.number is 'Of the case';
comment on column sagad.case_event.resolved is 'It was resolved; else opened';
comment on column sagad.case_event.event_tx is 'As in sagad.log';
comment on column sagad.case_event.at is 'When';
comment on column sagad.case_event.saga is 'What the case is about';
comment on column sagad.case_event.namespace is 'Of the saga';
comment on column sagad.case_event.reason is 'Of the case';

create table sagad.event_gone (
    shard     int2 not null,
    namespace text not null,
    tx        int8 not null,
    constraint event_gone_pk primary key (shard, namespace)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
comment on table sagad.event_gone is 'Events that were removed with their sagas: whoever has read no further than that has missed some';
comment on column sagad.event_gone.shard is 'Of the sagas';
comment on column sagad.event_gone.namespace is 'Of the sagas';
comment on column sagad.event_gone.tx is 'The highest event_tx that was removed';

create or replace function sagad.forget(of_shards int2[], of_epochs int8[], of_sagas uuid[]) returns setof int4
    language plpgsql as $$
declare
    positions int4[];
    shards    int2[];
    sagas     uuid[];
    in_shards int2[];
    ended     uuid[];
begin
    with held as materialized (
        select s.shard, s.epoch from sagad.shard s where s.shard = any(of_shards) order by s.shard for key share)
    select array_agg(u.i::int4 order by u.i), array_agg(u.shard order by u.i), array_agg(u.saga order by u.i)
      into positions, shards, sagas
      from unnest(of_shards, of_epochs, of_sagas) with ordinality as u (shard, epoch, saga, i)
      join held h on h.shard = u.shard and h.epoch = u.epoch;
    select array_agg(e.shard), array_agg(e.id) into in_shards, ended
      from (select s.shard, s.id
              from unnest(shards, sagas) as u (shard, saga)
              join sagad.saga s on s.shard = u.shard and s.id = u.saga
             where s.ended_at is not null order by s.shard, s.id for update of s) as e;
    if ended is not null then
        -- Whatever looks like a key is one of a saga only if the table says so. Split, not searched: a regular expression over
        -- the whole payload takes longer than everything else here.
        with part as (
            select distinct u.saga, ltrim(left(p.text, 39), ' ') as text
              from unnest(in_shards, ended) as u (shard, saga)
              join sagad.log l on l.shard = u.shard and l.saga = u.saga
             cross join lateral (select unnest(string_to_array(encode(l.payload, 'escape'), '"key":')) as text) as p),
        named as materialized (
            select p.saga, substring(p.text from 2 for 36)::uuid as key
              from part p where p.text ~ '^"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"')
        delete from sagad.operation_key k using named n
         where k.shard = (get_byte(uuid_send(n.key), 15) % 64)::int2 and k.key = n.key and k.saga = n.saga;
        with escalations as (
            delete from sagad.escalation e using unnest(in_shards, ended) as u (shard, saga)
             where e.shard = u.shard and e.saga = u.saga returning e.shard, e.number),
        approvals as (
            delete from sagad.approval a using unnest(in_shards, ended) as u (shard, saga)
             where a.shard = u.shard and a.saga = u.saga returning a.shard, a.number)
        insert into sagad.number_gone as g (shard, escalation, approval)
        select n.shard, coalesce(max(n.escalation), 0), coalesce(max(n.approval), 0)
          from (select e.shard, e.number as escalation, null::int8 as approval from escalations e
                union all select a.shard, null, a.number from approvals a) as n
         group by n.shard order by n.shard
            on conflict (shard) do update set escalation = greatest(g.escalation, excluded.escalation),
                                              approval = greatest(g.approval, excluded.approval);
        delete from sagad.case_event c using unnest(in_shards, ended) as u (shard, saga)
         where c.shard = u.shard and c.saga = u.saga;
        with gone as (
            delete from sagad.log l using unnest(in_shards, ended) as u (shard, saga)
             where l.shard = u.shard and l.saga = u.saga returning l.shard, l.saga, l.event_tx)
        insert into sagad.event_gone as e (shard, namespace, tx)
        select g.shard, s.namespace, max(g.event_tx)
          from gone g join sagad.saga s on s.shard = g.shard and s.id = g.saga
         where g.event_tx is not null group by g.shard, s.namespace order by g.shard, s.namespace
            on conflict (shard, namespace) do update set tx = greatest(e.tx, excluded.tx);
        delete from sagad.saga s using unnest(in_shards, ended) as u (shard, saga) where s.shard = u.shard and s.id = u.saga;
    end if;
    -- So that no index on `what` fits: a plan that was made while the table was empty would go by that one and read all that is due.
    delete from sagad.due d using unnest(shards, sagas) as u (shard, saga)
     where d.shard = u.shard and d.saga = u.saga and (d.what = 'forget') is true;
    return query select unnest(positions);
end
$$;

create or replace function sagad.case_put(of_shard int2, of_epoch int8, of_number int8, of_saga uuid, of_namespace text, of_opened timestamptz,
        of_resolved timestamptz, of_reason text, of_body bytea, of_input uuid, of_ends bool) returns int8
    language plpgsql as $$
declare
    known int8;
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    if of_resolved is null and of_reason = 'unreadable' then
        select min(e.number) into known from sagad.escalation e
         where e.shard = of_shard and e.namespace = of_namespace and e.saga = of_saga and e.reason = of_reason
           and e.resolved_at is null;
        if known is not null then
            return known;
        end if;
    end if;
    insert into sagad.escalation (shard, number, saga, namespace, opened_at, resolved_at, reason, body)
    values (of_shard, of_number, of_saga, of_namespace, of_opened, of_resolved, of_reason, of_body)
        on conflict (shard, number) do nothing;
    if not found and of_resolved is not null then
        update sagad.escalation e set resolved_at = of_resolved, body = of_body
         where e.shard = of_shard and e.number = of_number and (e.resolved_at is null or e.body = of_body);
        if not found then
            return -1;
        end if;
    end if;
    delete from sagad.inbox i where i.shard = of_shard and i.id = of_input;
    if of_ends then
        update sagad.saga s set status = 'abandoned', updated_at = of_resolved, ended_at = of_resolved
         where s.shard = of_shard and s.id = of_saga and s.ended_at is null;
        delete from sagad.due d where d.shard = of_shard and d.saga = of_saga;
        delete from sagad.awake a where a.shard = of_shard and a.saga = of_saga;
        perform sagad.lock_release(array[of_shard], array[of_saga]);
        -- Nobody is to answer what its log had asked.
        update sagad.escalation e
           set resolved_at = of_resolved,
               body = convert_to(regexp_replace(convert_from(e.body, 'UTF8'), '"status":"open"', '"status":"resolved"'), 'UTF8')
         where e.shard = of_shard and e.saga = of_saga and e.resolved_at is null;
        update sagad.approval a
           set ended_at = of_resolved, status = 'cancelled',
               body = convert_to(regexp_replace(convert_from(a.body, 'UTF8'), '"status":"open"', '"status":"cancelled"'), 'UTF8')
         where a.shard = of_shard and a.saga = of_saga and a.ended_at is null;
    end if;
    insert into sagad.case_event (shard, number, resolved, at, saga, namespace, reason)
    values (of_shard, of_number, of_resolved is not null, coalesce(of_resolved, of_opened), of_saga, of_namespace, of_reason)
        on conflict (shard, number, resolved) do nothing;
    return of_number;
end
$$;
