-- Holds: what people keep from beginning. Each engine keeps the holds that are in force in memory. It says in its row of sagad.engine which
-- version of them it abides by, and learns with each renewal of its leases whether there is a newer one.

create table sagad.hold_version (
    only_row bool not null default true,
    version  int8 not null,
    constraint hold_version_pk primary key (only_row),
    constraint hold_version_one check (only_row)
);
insert into sagad.hold_version (version) values (0);
comment on table sagad.hold_version is 'One row: it is locked by whoever makes or releases a hold, and read under a lock by each renewal of leases';
comment on column sagad.hold_version.only_row is 'There is no other';
comment on column sagad.hold_version.version is 'Raised by one with each hold that is made or released';

create table sagad.hold (
    number      int8        not null,
    id          uuid        not null,
    namespace   text        not null,
    body        bytea       not null,
    made_at     timestamptz not null,
    until_at    timestamptz,
    released_at timestamptz,
    release     bytea,
    constraint hold_pk primary key (number),
    constraint hold_id unique (id)
);
create index hold_namespace on sagad.hold (namespace, number);
create index hold_in_force on sagad.hold (number) where released_at is null;
comment on table sagad.hold is 'What people hold, and what they held in the last 30 days';
comment on column sagad.hold.number is 'The version that made it';
comment on column sagad.hold.id is 'From whoever made it: a repeat makes no second one';
comment on column sagad.hold.namespace is 'It reaches nothing outside of it';
comment on column sagad.hold.body is 'JSON in UTF-8: what is held, by whom, why, and how it is let go';
comment on column sagad.hold.made_at is 'When it was made';
comment on column sagad.hold.until_at is 'When it ends by itself; null: only a person ends it';
comment on column sagad.hold.released_at is 'When a person ended it; null: nobody did';
comment on column sagad.hold.release is 'JSON in UTF-8: who ended it, and why; null: nobody did';

alter table sagad.engine add column holds int8;
comment on column sagad.engine.holds is 'The version of the holds that it abides by; null: an engine of an earlier release, which knows no holds';

create function sagad.hold_put(of_id uuid, of_namespace text, of_body bytea, of_until timestamptz, of_max int8) returns int8
    language plpgsql as $$
declare
    raised int8;
    known int8;
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    update sagad.hold_version v set version = v.version + 1 where v.only_row returning v.version into raised;
    select h.number into known from sagad.hold h where h.id = of_id;
    if found then
        return known;
    end if;
    delete from sagad.hold h where h.namespace = of_namespace and least(h.released_at, h.until_at) < at - interval '30 days';
    if (select count(*) from (select from sagad.hold h where h.namespace = of_namespace and h.released_at is null
            and (h.until_at is null or h.until_at > at) limit of_max) as c) >= of_max then
        return -1;
    end if;
    insert into sagad.hold (number, id, namespace, body, made_at, until_at) values (raised, of_id, of_namespace, of_body, at, of_until);
    perform pg_notify('sagad_holds', '');
    return raised;
end
$$;
comment on function sagad.hold_put is 'Gives the number of the hold, or -1 where the namespace has too many';

create function sagad.hold_release(of_number int8, of_namespace text, of_release bytea) returns int8
    language plpgsql as $$
declare
    raised int8;
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    update sagad.hold_version v set version = v.version + 1 where v.only_row returning v.version into raised;
    update sagad.hold h set released_at = at, release = of_release
     where h.number = of_number and h.namespace = of_namespace and h.released_at is null and (h.until_at is null or h.until_at > at);
    if found then
        perform pg_notify('sagad_holds', '');
        return raised;
    end if;
    return case when (select true from sagad.hold h where h.number = of_number and h.namespace = of_namespace) then 0 else -1 end;
end
$$;
comment on function sagad.hold_release is 'Gives the version that ended it, where it was in force; 0 where it had ended before, -1 where there is no such hold';
