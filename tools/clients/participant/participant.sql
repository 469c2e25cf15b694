-- The claims of a service that sagad calls: which requests have taken effect in this database, and their first answers.
--
-- A request is claimed before its effect, in the same transaction. So both are there or neither, whatever breaks:
--
--     begin;
--     select * from sagad_participant.claim('KEY', 'what was asked');   -- go on only when the verdict is `new`
--     insert into charge ...;
--     select sagad_participant.settle('KEY', 201, '{"id": 7}');
--     commit;
--
-- Install it in the database that has the effects (PostgreSQL 13 or later). It may be run again:
--
--     psql -v ON_ERROR_STOP=1 --single-transaction -d DATABASE -f participant.sql
--     grant usage on schema sagad_participant to ROLE;
--     grant select, insert, update, delete on sagad_participant.request to ROLE;
--     grant select on sagad_participant.promise to ROLE;

create schema if not exists sagad_participant;
comment on schema sagad_participant is 'sagad, participant kit: which requests have taken effect here';

create table if not exists sagad_participant.request (
    key         text        not null,
    verdict     text        not null default 'done',
    asked       text,
    status      int4        not null default 200,
    answer      json,
    undone_at   timestamptz,
    recorded_at timestamptz not null default clock_timestamp(),
    constraint request_pk primary key (key),
    constraint request_key_bounded check (length(key) between 1 and 255),
    constraint request_verdict_known check (verdict in ('done', 'refused', 'void'))
);
comment on table sagad_participant.request is
    'One row for each request that took effect, was refused for good, or must never take effect';
comment on column sagad_participant.request.key is 'The Idempotency-Key of the request';
comment on column sagad_participant.request.verdict is
    'done: it took effect. refused: it was refused for good. void: its undo came first, and it must not take effect';
comment on column sagad_participant.request.asked is 'What was asked; the same key with something else is refused';
comment on column sagad_participant.request.status is 'The HTTP status of the first answer';
comment on column sagad_participant.request.answer is 'The first answer; each repeat gets it again';
comment on column sagad_participant.request.undone_at is 'When it was undone; it is undone once';
comment on column sagad_participant.request.recorded_at is 'When the key came first';
create index if not exists request_by_age on sagad_participant.request (recorded_at);

create table if not exists sagad_participant.promise (
    one      boolean  not null default true,
    kept_for interval not null default '30 days',
    constraint promise_pk primary key (one),
    constraint promise_one_row check (one),
    constraint promise_not_empty check (kept_for > '0'::interval)
);
comment on table sagad_participant.promise is 'One row: how long keys are kept. `key.window` of a tool is at most that';
comment on column sagad_participant.promise.one is 'Always true';
comment on column sagad_participant.promise.kept_for is
    'Make it longer at any time; make it shorter only after `key.window` of every tool';
insert into sagad_participant.promise default values on conflict do nothing;

-- The lock is held until the transaction ends, and nobody waits for it. Two keys that share a hash see each other as
-- under way, which costs a repeat and nothing else.
create or replace function sagad_participant.enter(the_key text) returns boolean language sql as
$$ select pg_try_advisory_xact_lock(hashtextextended(the_key, 7236182641)) $$;
comment on function sagad_participant.enter is 'Is nobody else at work on this key?';

create or replace function sagad_participant.claim(
    the_key text, what text, out verdict text, out status int4, out answer json
) language plpgsql as $$
declare
    found_one sagad_participant.request;
begin
    if not sagad_participant.enter(the_key) then
        verdict := 'under_way';
        return;
    end if;
    insert into sagad_participant.request (key, asked) values (the_key, what) on conflict do nothing;
    if found then
        verdict := 'new';
        return;
    end if;
    select * into strict found_one from sagad_participant.request r where r.key = the_key;
    if found_one.verdict = 'void' then
        verdict := 'void';
    elsif found_one.asked is distinct from what then
        verdict := 'differs';
    else
        verdict := 'repeat';
        status := found_one.status;
        answer := found_one.answer;
    end if;
end $$;
comment on function sagad_participant.claim is
    'Claims a request. new: do it now. repeat: answer as before. under_way: 409. differs: 422. void: 410';

create or replace function sagad_participant.settle(the_key text, the_status int4, the_answer json) returns void
language plpgsql as $$
begin
    update sagad_participant.request r
    set status = the_status, answer = the_answer, verdict = case when the_status < 400 then 'done' else 'refused' end
    where r.key = the_key and r.xmin = pg_current_xact_id()::xid;
    if not found then
        raise exception 'the key % was not claimed in this transaction', the_key
            using hint = 'Claim, effect and settle belong into one transaction.';
    end if;
end $$;
comment on function sagad_participant.settle is 'Keeps the answer of a request that this transaction has claimed';

create or replace function sagad_participant.undo(
    the_key text, out verdict text, out status int4, out answer json
) language plpgsql as $$
begin
    if not sagad_participant.enter(the_key) then
        verdict := 'under_way';
        return;
    end if;
    insert into sagad_participant.request (key, verdict, status) values (the_key, 'void', 410) on conflict do nothing;
    if found then
        verdict := 'nothing';
        return;
    end if;
    update sagad_participant.request r set undone_at = clock_timestamp()
    where r.key = the_key and r.verdict = 'done' and r.undone_at is null
    returning 'new', r.status, r.answer into verdict, status, answer;
    if not found then
        select case when r.undone_at is null then 'nothing' else 'repeat' end into strict verdict
        from sagad_participant.request r where r.key = the_key;
    end if;
end $$;
comment on function sagad_participant.undo is
    'Claims an undo. new: undo it now. repeat: it is undone. nothing: it did not take effect and never will';

create or replace function sagad_participant.look(
    the_key text, out verdict text, out status int4, out answer json, out undone boolean
) language plpgsql as $$
begin
    if not sagad_participant.enter(the_key) then
        verdict := 'under_way';
        return;
    end if;
    select r.verdict, r.status, r.answer, r.undone_at is not null into verdict, status, answer, undone
    from sagad_participant.request r where r.key = the_key;
    if not found then
        verdict := 'absent';
    end if;
end $$;
comment on function sagad_participant.look is 'What became of a request: done, refused, void, absent, or under_way';

-- A day more than promised, because the clocks of the two sides differ.
create or replace function sagad_participant.forget() returns bigint language sql as $$
    with gone as (
        delete from sagad_participant.request
        where recorded_at < now() - (select kept_for from sagad_participant.promise) - interval '1 day'
        returning 1
    )
    select count(*) from gone
$$;
comment on function sagad_participant.forget is 'Deletes keys that are older than promised. Run it daily';
