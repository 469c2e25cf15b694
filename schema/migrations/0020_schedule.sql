-- Schedules: sagas that the clock starts. A schedule lies in the shard of its name, and the owner of the shard acts on it. What it decides
-- about an instant is a fenced change of the schedule's row; the saga of the instant is started after that, by its business id.

create table sagad.schedule (
    shard      int2        not null,
    namespace  text        not null,
    name       text        not null,
    id         uuid        not null,
    revision   int8        not null default 1,
    zone       text,
    body       bytea       not null,
    state      bytea       not null default '{}',
    hold       bytea,
    created_at timestamptz not null,
    actor      text        not null,
    last_at    timestamptz not null,
    look_at    timestamptz not null,
    constraint schedule_pk primary key (shard, namespace, name)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index schedule_look on sagad.schedule (shard, look_at) where hold is null;
comment on table sagad.schedule is 'Sagas that are started by the clock, one for each instant';
comment on column sagad.schedule.shard is 'From namespace and name';
comment on column sagad.schedule.namespace is 'Of the schedule and of its sagas';
comment on column sagad.schedule.name is 'A part of the business ids of its sagas';
comment on column sagad.schedule.id is 'Tells it from one that had its name before';
comment on column sagad.schedule.revision is 'Raised by each change: whoever decided by an older one changes nothing';
comment on column sagad.schedule.zone is 'Time zone of the cron expression; null: it has none';
comment on column sagad.schedule.body is 'JSON in UTF-8: what it was asked to be';
comment on column sagad.schedule.state is
    'JSON in UTF-8: the instants whose sagas are still to be started (ms since 1970), what became of the others, the last saga, the last refusal';
comment on column sagad.schedule.hold is 'JSON in UTF-8: who holds it, since when and why; null: nobody';
comment on column sagad.schedule.created_at is 'Instants after this one count';
comment on column sagad.schedule.actor is 'Who made it';
comment on column sagad.schedule.last_at is 'Every instant up to here was decided about. It never goes back';
comment on column sagad.schedule.look_at is 'When the owner of the shard has something to do for it; not while it is held';

create function sagad.schedule_put(of_shard int2, of_namespace text, of_name text, of_id uuid, of_zone text, of_body bytea, of_actor text,
        of_max int8) returns int4
    language plpgsql as $$
declare
    known bytea;
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    select s.body into known from sagad.schedule s where s.shard = of_shard and s.namespace = of_namespace and s.name = of_name;
    if not found then
        if (select count(*) from sagad.shard h cross join lateral
                (select from sagad.schedule s where s.shard = h.shard and s.namespace = of_namespace limit of_max) as c) >= of_max then
            return -1;
        end if;
        insert into sagad.schedule (shard, namespace, name, id, zone, body, created_at, actor, last_at, look_at)
        values (of_shard, of_namespace, of_name, of_id, of_zone, of_body, at, of_actor, at, at)
            on conflict (shard, namespace, name) do nothing;
        if found then
            perform pg_notify('sagad_schedules', of_shard::text);
            return 1;
        end if;
        select s.body into known from sagad.schedule s where s.shard = of_shard and s.namespace = of_namespace and s.name = of_name;
    end if;
    return case when known = of_body then 2 else 0 end;
end
$$;
comment on function sagad.schedule_put is
    'Gives 1 where the schedule is new, 2 where it is there as it is asked for, 0 where another one has its name, -1 where the namespace has too many';

create function sagad.schedule_move(of_shard int2, of_epoch int8, of_namespace text, of_name text, of_id uuid, of_revision int8,
        of_last timestamptz, of_look timestamptz, of_state bytea) returns int8
    language plpgsql as $$
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    update sagad.schedule s
       set last_at = greatest(s.last_at, of_last), look_at = of_look, state = of_state, revision = s.revision + 1
     where s.shard = of_shard and s.namespace = of_namespace and s.name = of_name and s.id = of_id and s.revision = of_revision;
    return case when found then of_revision + 1 else -1 end;
end
$$;
comment on function sagad.schedule_move is
    'What the owner of the shard has decided. Gives the new revision, 0 where another engine has the shard, -1 where the schedule is not what it was';

create function sagad.zone_offset(zone text, at_s int8) returns int8
    language sql stable as $$ select extract(epoch from timezone(zone, to_timestamp(at_s)))::int8 - at_s $$;
comment on function sagad.zone_offset is 'Local time minus UTC in seconds, at a second since 1970';

create function sagad.zone_offsets(zone text, since timestamptz, until timestamptz) returns text
    language plpgsql stable as $$
declare
    at_s int8 := extract(epoch from since)::int8;
    until_s int8 := extract(epoch from until)::int8;
    next_s int8;
    high_s int8;
    middle_s int8;
    offset_s int8 := sagad.zone_offset(zone, at_s);
    offsets text := '0:' || offset_s;
begin
    while at_s < until_s loop
        next_s := least(at_s + 86400, until_s);
        if sagad.zone_offset(zone, next_s) <> offset_s then
            high_s := next_s;
            while high_s - at_s > 1 loop
                middle_s := (at_s + high_s) / 2;
                if sagad.zone_offset(zone, middle_s) = offset_s then
                    at_s := middle_s;
                else
                    high_s := middle_s;
                end if;
            end loop;
            next_s := high_s;
            offset_s := sagad.zone_offset(zone, next_s);
            offsets := offsets || ' ' || next_s || ':' || offset_s;
        end if;
        at_s := next_s;
    end loop;
    return offsets;
exception
    when invalid_parameter_value then
        return null;
end
$$;
comment on function sagad.zone_offsets is
    'The offsets of a time zone in a stretch of time, as "SECOND:OFFSET" from that second since 1970 on, with spaces between; the first holds from before. Null: there is no such zone';
