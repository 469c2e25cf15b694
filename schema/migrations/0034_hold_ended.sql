-- A hold that ends by its time is an event. Nobody is there at that moment but the clock, so each engine looks when the next hold ends, and
-- whoever comes first tells it. An engine of the release before tells nothing; the holds that ended beside it are told by the next one that looks.

alter table sagad.hold add column ended_told bool not null default false;
comment on column sagad.hold.ended_told is 'The event hold.ended was told, or the hold ended before there was one; a hold that is released has no such event';
update sagad.hold h set ended_told = true where h.until_at <= clock_timestamp();
create index hold_untold on sagad.hold (until_at) where released_at is null and not ended_told and until_at is not null;

create function sagad.hold_tell_ended() returns int8 language plpgsql as $$
declare
    ended record;
    next_at timestamptz;
begin
    for ended in
        with locked as (
            select h.number from sagad.hold h
             where h.released_at is null and not h.ended_told and h.until_at <= clock_timestamp()
             order by h.number limit 50 for no key update),
        told as (
            update sagad.hold h set ended_told = true from locked l where h.number = l.number returning h.number, h.namespace, h.body)
        select t.number, t.namespace, t.body from told t order by t.number
    loop
        perform sagad.event_add((ended.number % 64)::int2, ended.namespace, null, 'hold.ended', 'hold/' || ended.number,
            convert_to(format('{"n":%s,"hold":', ended.number), 'UTF8') || ended.body || '}'::bytea, null);
    end loop;
    select min(h.until_at) into next_at from sagad.hold h
     where h.released_at is null and not h.ended_told and h.until_at is not null;
    return case when next_at is null then -1
                else greatest(ceil(extract(epoch from next_at - clock_timestamp()) * 1000), 0)::int8 end;
end
$$;
comment on function sagad.hold_tell_ended is
    'Tells holds that have ended by their time, fifty at most. Gives the milliseconds until the next one ends; 0: more have ended; -1: none will';

-- Where the end by time was told already, a person who comes in that moment is too late.
create or replace function sagad.hold_release(of_number int8, of_namespace text, of_release bytea) returns int8
    language plpgsql as $$
declare
    raised int8;
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    update sagad.hold_version v set version = v.version + 1 where v.only_row returning v.version into raised;
    update sagad.hold h set released_at = at, release = of_release
     where h.number = of_number and h.namespace = of_namespace and h.released_at is null and (h.until_at is null or h.until_at > at)
       and not h.ended_told;
    if found then
        perform sagad.event_add((of_number % 64)::int2, of_namespace, null, 'hold.released', 'hold/' || of_number,
            convert_to(format('{"n":%s,"released":', of_number), 'UTF8') || of_release || '}'::bytea, null);
        perform pg_notify('sagad_holds', '');
        return raised;
    end if;
    return case when (select true from sagad.hold h where h.number = of_number and h.namespace = of_namespace) then 0 else -1 end;
end
$$;
