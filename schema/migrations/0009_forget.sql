-- Forgetting in batches: the same as before for each saga, with one statement for each table instead of one for each saga and table.

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
        delete from sagad.log l using unnest(in_shards, ended) as u (shard, saga) where l.shard = u.shard and l.saga = u.saga;
        delete from sagad.saga s using unnest(in_shards, ended) as u (shard, saga) where s.shard = u.shard and s.id = u.saga;
    end if;
    -- So that no index on `what` fits: a plan that was made while the table was empty would go by that one and read all that is due.
    delete from sagad.due d using unnest(shards, sagas) as u (shard, saga)
     where d.shard = u.shard and d.saga = u.saga and (d.what = 'forget') is true;
    return query select unnest(positions);
end
$$;
