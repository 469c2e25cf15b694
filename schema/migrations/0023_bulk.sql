-- Bulk jobs: one verb on many sagas. The set of a job is frozen when somebody looks at it, and carried out when somebody runs it. A job lies in
-- the shard of its id, and the owner of the shard acts on it. What became of its items is a fenced change; that an item has acted stands in the
-- log of its saga, so that an engine that takes over knows it.

create table sagad.bulk (
    shard      int2        not null,
    id         uuid        not null,
    namespace  text        not null,
    state      text        not null,
    body       bytea       not null,
    items      int8        not null default 0,
    done       int8        not null default 0,
    changed    int8        not null default 0,
    refused    int8        not null default 0,
    actor      text        not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    run        bytea,
    stop       bytea,
    ended_at   timestamptz,
    look_at    timestamptz not null,
    constraint bulk_pk primary key (shard, id),
    constraint bulk_state check (state in ('freezing', 'frozen', 'running', 'done', 'stopped'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index bulk_look on sagad.bulk (shard, look_at);
create index bulk_open on sagad.bulk (shard, namespace) where state in ('freezing', 'frozen', 'running');
comment on table sagad.bulk is 'Jobs that do one verb on many sagas';
comment on column sagad.bulk.shard is 'Stands in the id';
comment on column sagad.bulk.id is 'A UUID that holds its time and its shard, as the ids of sagas';
comment on column sagad.bulk.namespace is 'Of the job and of its sagas';
comment on column sagad.bulk.state is
    'freezing: its items are being written; frozen: it may be run until expires_at; running; done: each item has an outcome; stopped: by a person';
comment on column sagad.bulk.body is 'JSON in UTF-8: the verb with its members, the filter, the note, and what the preview has found';
comment on column sagad.bulk.items is 'How many items it has';
comment on column sagad.bulk.done is 'How many of them were carried out';
comment on column sagad.bulk.changed is 'How many were left alone, because their operation was not what it was when the set was frozen';
comment on column sagad.bulk.refused is 'How many were refused by their saga';
comment on column sagad.bulk.actor is 'Who froze it';
comment on column sagad.bulk.created_at is 'When it was frozen';
comment on column sagad.bulk.expires_at is 'It may be run until then';
comment on column sagad.bulk.run is 'JSON in UTF-8: who ran it, and when; null: nobody has';
comment on column sagad.bulk.stop is 'JSON in UTF-8: who stopped it, when and why; null: nobody has';
comment on column sagad.bulk.ended_at is 'When it was done or stopped';
comment on column sagad.bulk.look_at is 'When the owner of the shard has something to do for it. Of a job that is not running: when it is removed';

create table sagad.bulk_item (
    shard   int2        not null,
    bulk    uuid        not null,
    n       int8        not null,
    body    bytea       not null,
    outcome text,
    detail  bytea,
    look_at timestamptz not null,
    constraint bulk_item_pk primary key (shard, bulk, n),
    constraint bulk_item_outcome check (outcome in ('done', 'changed', 'refused'))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index bulk_item_open on sagad.bulk_item (shard, bulk, look_at, n) where outcome is null;
comment on table sagad.bulk_item is 'The items of bulk jobs: a saga each, or an operation of it';
comment on column sagad.bulk_item.shard is 'Of the job';
comment on column sagad.bulk_item.bulk is 'The job';
comment on column sagad.bulk_item.n is '1 for the first of the job';
comment on column sagad.bulk_item.body is 'JSON in UTF-8: the saga, the operation as it was, and the change that is asked for';
comment on column sagad.bulk_item.outcome is 'done, changed, refused; null: it waits for its turn';
comment on column sagad.bulk_item.detail is 'JSON in UTF-8: why it was refused or left alone, or what it waits for';
comment on column sagad.bulk_item.look_at is 'When its turn comes, or came';

create function sagad.bulk_begin(of_shard int2, of_id uuid, of_namespace text, of_body bytea, of_actor text, of_expiry timestamptz, of_max int8)
        returns int4
    language plpgsql as $$
declare
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    if exists (select from sagad.bulk b where b.shard = of_shard and b.id = of_id) then
        return 1;
    end if;
    if (select count(*) from sagad.shard h cross join lateral
            (select from sagad.bulk b where b.shard = h.shard and b.namespace = of_namespace
                and b.state in ('freezing', 'frozen', 'running') and (b.state = 'running' or b.expires_at > at) limit of_max) as c) >= of_max then
        return 0;
    end if;
    insert into sagad.bulk (shard, id, namespace, state, body, actor, created_at, expires_at, look_at)
    values (of_shard, of_id, of_namespace, 'freezing', of_body, of_actor, at, of_expiry, of_expiry + interval '1 day')
        on conflict (shard, id) do nothing;
    return 1;
end
$$;
comment on function sagad.bulk_begin is 'Gives 1 where the job is there now, 0 where the namespace has too many that are not over';

create function sagad.bulk_move(of_shard int2, of_id uuid, of_namespace text, of_state text, of_who bytea, of_keep timestamptz) returns text
    language plpgsql as $$
declare
    known text;
    expiry timestamptz;
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    select b.state, b.expires_at into known, expiry from sagad.bulk b
     where b.shard = of_shard and b.id = of_id and b.namespace = of_namespace for no key update;
    if not found or known = 'freezing' then
        return null;
    end if;
    if of_state = 'running' and known = 'frozen' then
        if expiry <= at then
            return 'expired';
        end if;
        update sagad.bulk b set state = 'running', run = of_who, look_at = at where b.shard = of_shard and b.id = of_id;
        perform pg_notify('sagad_bulk', of_shard::text);
        return 'running';
    end if;
    if of_state = 'stopped' and known in ('frozen', 'running') then
        update sagad.bulk b set state = 'stopped', stop = of_who, ended_at = at, look_at = of_keep where b.shard = of_shard and b.id = of_id;
        return 'stopped';
    end if;
    return known;
end
$$;
comment on function sagad.bulk_move is
    'Runs or stops a job where that is possible, and gives the state that it has then; expired: it was to be run too late; null: there is none';

create function sagad.bulk_settle(of_shard int2, of_epoch int8, of_id uuid, of_n int8[], of_outcomes text[], of_details bytea[],
        of_looks timestamptz[], of_keep timestamptz) returns int4
    language plpgsql as $$
declare
    new_done int8;
    new_changed int8;
    new_refused int8;
    next_look timestamptz;
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    perform 1 from sagad.bulk b where b.shard = of_shard and b.id = of_id for no key update;
    if not found then
        return 1;
    end if;
    with given as (select * from unnest(of_n, of_outcomes, of_details, of_looks) as g (n, outcome, detail, look_at)),
    settled as (
        update sagad.bulk_item i set outcome = g.outcome, detail = g.detail, look_at = g.look_at
          from given g where i.shard = of_shard and i.bulk = of_id and i.n = g.n and i.outcome is null
        returning i.outcome)
    select count(*) filter (where s.outcome = 'done'), count(*) filter (where s.outcome = 'changed'),
           count(*) filter (where s.outcome = 'refused')
      into new_done, new_changed, new_refused from settled s;
    select min(i.look_at) into next_look from sagad.bulk_item i where i.shard = of_shard and i.bulk = of_id and i.outcome is null;
    update sagad.bulk b
       set done = b.done + new_done, changed = b.changed + new_changed, refused = b.refused + new_refused,
           state = case when b.state = 'running' and next_look is null then 'done' else b.state end,
           ended_at = case when b.state = 'running' and next_look is null then date_trunc('milliseconds', clock_timestamp())
                           else b.ended_at end,
           look_at = case when b.state <> 'running' then b.look_at else coalesce(next_look, of_keep) end
     where b.shard = of_shard and b.id = of_id;
    return 1;
end
$$;
comment on function sagad.bulk_settle is
    'What became of items, once each; an item without an outcome has its turn later. Gives 0 where another engine has the shard';

create function sagad.bulk_forget(of_shard int2, of_epoch int8, of_id uuid, of_now timestamptz, of_limit int8) returns int4
    language plpgsql as $$
declare
    removed int8;
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    perform 1 from sagad.bulk b where b.shard = of_shard and b.id = of_id and b.state <> 'running' and b.look_at <= of_now for update;
    if not found then
        return 1;
    end if;
    delete from sagad.bulk_item i where i.shard = of_shard and i.bulk = of_id
        and i.n in (select f.n from sagad.bulk_item f where f.shard = of_shard and f.bulk = of_id order by f.n limit of_limit);
    get diagnostics removed = row_count;
    if removed < of_limit then
        delete from sagad.bulk b where b.shard = of_shard and b.id = of_id;
    end if;
    return 1;
end
$$;
comment on function sagad.bulk_forget is
    'Removes items of a job whose time is over, and with the last of them the job. Gives 0 where another engine has the shard';
