-- What people say of a case beside answering it: that somebody looks at it, who is to answer it, and comments. It changes no saga and may come
-- after the end of one, so it stands beside the log, in a table of its own.

create table sagad.case_remark (
    shard              int2   not null,
    number             int8   not null,
    saga               uuid   not null,
    acknowledged_by    text,
    acknowledged_until timestamptz,
    acknowledged_case  timestamptz,
    assigned_to        text,
    remarks            text[] not null default '{}',
    ids                uuid[] not null default '{}',
    constraint case_remark_pk primary key (shard, number)
);
create index case_remark_saga on sagad.case_remark (shard, saga);
comment on table sagad.case_remark is 'What people have said of a case: a row for each case of which somebody has said something';
comment on column sagad.case_remark.shard is 'Of the case';
comment on column sagad.case_remark.number is 'Of the case';
comment on column sagad.case_remark.saga is 'Of the case';
comment on column sagad.case_remark.acknowledged_by is 'Who looks at it; null: nobody has said so';
comment on column sagad.case_remark.acknowledged_until is 'Until then; null: as long as the case is open';
comment on column sagad.case_remark.acknowledged_case is 'opened_at of the case at that time: nobody looks at a case that was asked again';
comment on column sagad.case_remark.assigned_to is 'Who is to answer it; null: nobody in particular';
comment on column sagad.case_remark.remarks is 'JSON objects: what was said, when, by whom and why, the first one first';
comment on column sagad.case_remark.ids is 'Of the remarks: a repeat of one adds nothing';

create function sagad.case_remark(of_shard int2, of_number int8, of_namespace text, of_id uuid, of_kind text, of_by text, of_until timestamptz,
        of_to text, of_remark text, of_max int4) returns int4
    language plpgsql as $$
declare
    of_saga uuid;
    of_opened timestamptz;
    known uuid[];
begin
    select e.saga, e.opened_at into of_saga, of_opened from sagad.escalation e
     where e.shard = of_shard and e.number = of_number and e.namespace = of_namespace for key share;
    if not found then
        return null;
    end if;
    insert into sagad.case_remark (shard, number, saga) values (of_shard, of_number, of_saga) on conflict (shard, number) do nothing;
    select r.ids into known from sagad.case_remark r where r.shard = of_shard and r.number = of_number for no key update;
    if of_id = any(known) then
        return 1;
    end if;
    if cardinality(known) >= of_max then
        return 0;
    end if;
    update sagad.case_remark r
       set acknowledged_by = case when of_kind = 'acknowledge' then of_by else r.acknowledged_by end,
           acknowledged_until = case when of_kind = 'acknowledge' then of_until else r.acknowledged_until end,
           acknowledged_case = case when of_kind = 'acknowledge' then of_opened else r.acknowledged_case end,
           assigned_to = case when of_kind = 'assign' then of_to else r.assigned_to end,
           remarks = array_append(r.remarks, of_remark), ids = array_append(r.ids, of_id)
     where r.shard = of_shard and r.number = of_number;
    return 1;
end
$$;
comment on function sagad.case_remark is 'Adds a remark to a case: 1 where it is there now, 0 where the case has too many, null where there is no such case';

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
    -- So that no index on `what` fits: a plan that was made while the table was empty would go by that one and read all that is due.
    delete from sagad.due d using unnest(shards, sagas) as u (shard, saga)
     where d.shard = u.shard and d.saga = u.saga and (d.what = 'forget') is true;
    return query select unnest(positions);
end
$$;
