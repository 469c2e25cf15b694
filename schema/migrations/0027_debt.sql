-- Debts that somebody has settled. What stands is read from the logs of abandoned sagas; after the end of a saga nothing enters its log, so that a
-- settlement is a row of its own. What is open keeps its saga: a debt, a case, a bulk job.

create table sagad.debt_settled (
    shard     int2  not null,
    saga      uuid  not null,
    operation uuid  not null,
    body      bytea not null,
    constraint debt_settled_pk primary key (shard, saga, operation)
);
comment on table sagad.debt_settled is 'Effects that stood after the end of their sagas, and that somebody has undone by hand';
comment on column sagad.debt_settled.shard is 'Of the saga';
comment on column sagad.debt_settled.saga is 'The saga that left the debt';
comment on column sagad.debt_settled.operation is 'Key of the operation whose effect stood';
comment on column sagad.debt_settled.body is 'JSON in UTF-8: who settled it, when and why';

create function sagad.debt_settle(of_shard int2, of_saga uuid, of_namespace text, of_operation uuid, of_body bytea, of_debts int4,
        of_forget timestamptz) returns bytea
    language plpgsql as $$
declare
    known bytea;
begin
    perform 1 from sagad.saga s
     where s.shard = of_shard and s.id = of_saga and s.namespace = of_namespace and s.ended_at is not null for no key update;
    if not found then
        return null;
    end if;
    insert into sagad.debt_settled (shard, saga, operation, body) values (of_shard, of_saga, of_operation, of_body)
        on conflict (shard, saga, operation) do nothing;
    select d.body into known from sagad.debt_settled d
     where d.shard = of_shard and d.saga = of_saga and d.operation = of_operation;
    if of_forget is not null
            and (select count(*) from sagad.debt_settled d where d.shard = of_shard and d.saga = of_saga) >= of_debts then
        insert into sagad.due (shard, saga, what, at) values (of_shard, of_saga, 'forget', of_forget) on conflict (shard, saga) do nothing;
    end if;
    return known;
end
$$;
comment on function sagad.debt_settle is
    'Settles a debt, and gives what the first who settled it has said; null: there is no such saga that has ended. With its last debt the saga is removed at of_forget';

create or replace function sagad.forget(of_shards int2[], of_epochs int8[], of_sagas uuid[]) returns setof int4
    language plpgsql as $$
declare
    positions int4[];
    shards    int2[];
    sagas     uuid[];
    in_shards int2[];
    ended     uuid[];
    now_at    timestamptz := date_trunc('milliseconds', clock_timestamp());
    later_at  timestamptz := now_at + interval '1 hour';
    busy      text[];
begin
    with held as materialized (
        select s.shard, s.epoch from sagad.shard s where s.shard = any(of_shards) order by s.shard for key share)
    select array_agg(u.i::int4 order by u.i), array_agg(u.shard order by u.i), array_agg(u.saga order by u.i)
      into positions, shards, sagas
      from unnest(of_shards, of_epochs, of_sagas) with ordinality as u (shard, epoch, saga, i)
      join held h on h.shard = u.shard and h.epoch = u.epoch;
    -- What is open pins its saga: a case, or a bulk job of the namespace, whichever sagas the job is about.
    select coalesce(array_agg(distinct b.namespace), '{}') into busy
      from sagad.shard h cross join lateral
           (select b.namespace from sagad.bulk b
             where b.shard = h.shard and b.state in ('freezing', 'frozen', 'running')
               and (b.state = 'running' or b.expires_at > now_at)) as b;
    select array_agg(e.shard), array_agg(e.id) into in_shards, ended
      from (select s.shard, s.id
              from unnest(shards, sagas) as u (shard, saga)
              join sagad.saga s on s.shard = u.shard and s.id = u.saga
             where s.ended_at is not null and s.namespace <> all(busy)
               and not exists (select from sagad.escalation c where c.shard = s.shard and c.saga = s.id and c.resolved_at is null)
             order by s.shard, s.id for update of s) as e;
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
        delete from sagad.debt_settled d using unnest(in_shards, ended) as u (shard, saga)
         where d.shard = u.shard and d.saga = u.saga;
        delete from sagad.case_remark r using unnest(in_shards, ended) as u (shard, saga)
         where r.shard = u.shard and r.saga = u.saga;
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
    update sagad.due d set at = later_at from unnest(shards, sagas) as u (shard, saga)
      join sagad.saga s on s.shard = u.shard and s.id = u.saga and s.ended_at is not null
     where d.shard = u.shard and d.saga = u.saga and (d.what = 'forget') is true;
    -- So that no index on `what` fits: a plan that was made while the table was empty would go by that one and read all that is due.
    delete from sagad.due d using unnest(shards, sagas) as u (shard, saga)
     where d.shard = u.shard and d.saga = u.saga and (d.what = 'forget') is true and d.at <> later_at;
    return query select unnest(positions);
end
$$;
