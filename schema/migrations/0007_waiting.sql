-- Waiting: sagas that left memory until their time or mail comes, people who are asked, locks on business keys, and sagas that
-- are forgotten when their retention is over.

-- When something is due ------------------------------------------------------------------------------------------------

create table sagad.due (
    shard int2        not null,
    saga  uuid        not null,
    what  text        not null,
    at    timestamptz not null,
    constraint due_pk primary key (shard, saga),
    constraint due_what_known check (what in ('parked', 'forget'))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index due_at on sagad.due (shard, what, at);
comment on table sagad.due is
    'Sagas that the owner of their shard looks at when their time has come, and not before. A parked one is not loaded by recovery';
comment on column sagad.due.shard is 'Of the saga';
comment on column sagad.due.saga is 'Its id';
comment on column sagad.due.what is
    'parked: it waits and is not in memory; removed by the append that moves it, which puts it into awake. forget: it has ended, and its retention is over then';
comment on column sagad.due.at is 'When; infinity: only an input moves it';

comment on table sagad.awake is
    'Unfinished sagas that may be older than shard.low: runs that rested and were woken, and sagas that were parked and moved. Recovery loads these beside the sagas behind shard.low. Written and removed in the transaction that moves them';
comment on column sagad.awake.shard is 'Of the saga';
comment on column sagad.shard.low is
    'No unfinished saga of this shard has an id made before this instant, but for those in due and awake: recovery reads from here on; null: it may';

-- Questions to people --------------------------------------------------------------------------------------------------

create table sagad.approval (
    shard      int2        not null,
    number     int8        not null,
    saga       uuid        not null,
    namespace  text        not null,
    opened_at  timestamptz not null,
    expires_at timestamptz,
    ended_at   timestamptz,
    step       text        not null,
    status     text        not null,
    body       bytea       not null,
    constraint approval_pk primary key (shard, number),
    constraint approval_status_known check (status in ('open', 'approved', 'refused', 'expired', 'cancelled'))
);
create index approval_open on sagad.approval (shard, number) where ended_at is null;
create index approval_saga on sagad.approval (shard, saga);
comment on table sagad.approval is
    'A step that waits for a person. Written in the transaction that appends step.waiting, and what it came to';
comment on column sagad.approval.shard is 'Of the saga; number modulo 64';
comment on column sagad.approval.number is 'Counted per shard, as those of escalations are';
comment on column sagad.approval.saga is 'Which saga waits';
comment on column sagad.approval.namespace is 'Of the saga';
comment on column sagad.approval.opened_at is 'When it was asked';
comment on column sagad.approval.expires_at is 'When the step gives up; null: never';
comment on column sagad.approval.ended_at is 'When it was decided, or over without a decision; null: open';
comment on column sagad.approval.step is 'Where';
comment on column sagad.approval.status is 'open; approved or refused by a person; expired; cancelled: the saga is being undone';
comment on column sagad.approval.body is 'JSON in UTF-8, as the API shows it: what the person sees, and the hash of it';

-- Locks on business keys -----------------------------------------------------------------------------------------------

create table sagad.lock (
    shard      int2        not null,
    digest     bytea       not null,
    ticket     int8        not null,
    saga_shard int2        not null,
    saga       uuid        not null,
    namespace  text        not null,
    key        text        not null,
    at         timestamptz not null default clock_timestamp(),
    constraint lock_pk primary key (shard, digest, ticket)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create unique index lock_of_saga on sagad.lock (saga_shard, saga, digest);
comment on table sagad.lock is
    'Who holds a business key, and who stands in line for it: the smallest ticket holds it. Taken and released under an advisory lock of the transaction, one a key';
comment on column sagad.lock.shard is 'From the digest';
comment on column sagad.lock.digest is 'Of namespace and key: 16 bytes';
comment on column sagad.lock.ticket is 'In order of coming';
comment on column sagad.lock.saga_shard is 'Of the saga';
comment on column sagad.lock.saga is 'Who it is';
comment on column sagad.lock.namespace is 'Of the saga; the same key in two namespaces is two locks';
comment on column sagad.lock.key is 'As the definition''s template gave it';
comment on column sagad.lock.at is 'When it came';

create function sagad.lock_guard(digest bytea) returns void
    language sql volatile
    as $$ select pg_catalog.pg_advisory_xact_lock(1397178694, ('x' || encode(substring(digest from 1 for 4), 'hex'))::bit(32)::int4) $$;
comment on function sagad.lock_guard(bytea) is
    'Whoever reads or changes the line of a key holds this until the end of the transaction. Several are taken in order of their digests, after the rows of sagas';

create function sagad.lock_take(of_shard int2, of_digest bytea, of_namespace text, of_key text, of_saga_shard int2, of_saga uuid, fails bool)
    returns bool
    language plpgsql as $$
declare
    mine   int8;
    oldest int8;
    newest int8;
begin
    -- Against a release under way: either it sees the ticket, or this sees that the saga has ended.
    perform 1 from sagad.saga s where s.shard = of_saga_shard and s.id = of_saga and s.ended_at is null for share;
    if not found then
        return null;
    end if;
    perform sagad.lock_guard(of_digest);
    select l.ticket into mine from sagad.lock l where l.saga_shard = of_saga_shard and l.saga = of_saga and l.digest = of_digest;
    select l.ticket into oldest from sagad.lock l where l.shard = of_shard and l.digest = of_digest order by l.ticket limit 1;
    if mine is null and oldest is not null and fails then
        return false;
    end if;
    if mine is null then
        select l.ticket into newest from sagad.lock l where l.shard = of_shard and l.digest = of_digest order by l.ticket desc limit 1;
        mine := coalesce(newest, 0) + 1;
        insert into sagad.lock (shard, digest, ticket, saga_shard, saga, namespace, key)
        values (of_shard, of_digest, mine, of_saga_shard, of_saga, of_namespace, of_key);
    end if;
    return mine = coalesce(oldest, mine);
end
$$;
comment on function sagad.lock_take(int2, bytea, text, text, int2, uuid, bool) is
    'Whether the saga holds the key now; false: it stands in line, or does not where it "fails"; null: there is no such saga that has not ended. Asking again takes nothing twice';

create function sagad.lock_release(of_shards int2[], of_sagas uuid[]) returns void
    language plpgsql as $$
declare
    given record;
    heir  sagad.lock;
begin
    perform sagad.lock_guard(held.digest)
       from (select l.digest from unnest(of_shards, of_sagas) as u (shard, saga)
               join sagad.lock l on l.saga_shard = u.shard and l.saga = u.saga
              group by l.digest order by l.digest) as held;
    -- A statement of its own: it sees what was committed while the one above waited.
    for given in
        with gone as (
            delete from sagad.lock l using unnest(of_shards, of_sagas) as u (shard, saga)
             where l.saga_shard = u.shard and l.saga = u.saga returning l.shard, l.digest, l.ticket)
        select g.shard, g.digest, min(g.ticket) as ticket from gone g group by g.shard, g.digest order by g.digest
    loop
        select * into heir from sagad.lock l where l.shard = given.shard and l.digest = given.digest order by l.ticket limit 1;
        if found and heir.ticket > given.ticket then
            insert into sagad.inbox (shard, id, saga, kind, payload)
            values (heir.saga_shard, sagad.new_id(), heir.saga, 'locked',
                    convert_to(json_build_object('namespace', heir.namespace, 'key', heir.key)::text, 'UTF8'));
            perform pg_catalog.pg_notify('sagad_inbox', heir.saga_shard::text);
        end if;
    end loop;
end
$$;
comment on function sagad.lock_release(int2[], uuid[]) is
    'These sagas have ended: they hold nothing and stand in no line any more. Whoever is first now is told by an input "locked"';

create function sagad.new_id() returns uuid
    language sql volatile
    as $$ select encode(set_byte(b.bytes, 6, get_byte(b.bytes, 6) & 15 | 112), 'hex')::uuid
            from (select substring(int8send((extract(epoch from clock_timestamp()) * 1000)::int8) from 3)
                         || substring(uuid_send(gen_random_uuid()) from 7) as bytes) as b $$;
comment on function sagad.new_id() is 'A new UUIDv7';

comment on column sagad.inbox.kind is
    'start, abort, resolve, call, complete, bypass, resume, signal, decide, pause; settled: the outcome of a call that came after the shard had gone to another engine; locked: a key for which the saga stood in line is its own now';

-- Forgetting -----------------------------------------------------------------------------------------------------------

create index escalation_saga on sagad.escalation (shard, saga);

create table sagad.number_gone (
    shard      int2 not null,
    escalation int8 not null,
    approval   int8 not null,
    constraint number_gone_pk primary key (shard)
);
comment on table sagad.number_gone is
    'The highest numbers among escalations and approvals that were forgotten: none is given twice, so that an old link never shows another question';
comment on column sagad.number_gone.shard is 'Of the sagas';
comment on column sagad.number_gone.escalation is 'Of an escalation; 0: none';
comment on column sagad.number_gone.approval is 'Of an approval; 0: none';

create function sagad.forget(of_shards int2[], of_epochs int8[], of_sagas uuid[]) returns setof int4
    language plpgsql as $$
declare
    mine record;
begin
    for mine in
        with held as materialized (
            select s.shard, s.epoch from sagad.shard s where s.shard = any(of_shards) order by s.shard for key share)
        select u.i::int4 as i, u.shard, u.saga
          from unnest(of_shards, of_epochs, of_sagas) with ordinality as u (shard, epoch, saga, i)
          join held h on h.shard = u.shard and h.epoch = u.epoch
         order by u.i
    loop
        perform 1 from sagad.saga s where s.shard = mine.shard and s.id = mine.saga and s.ended_at is not null for update;
        if found then
            -- Whatever looks like a key is one of this saga only if the table says so.
            with named as materialized (
                select distinct hit.match[1]::uuid as key
                  from sagad.log l
                 cross join lateral regexp_matches(encode(l.payload, 'escape'),
                       '"key": ?"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"', 'g') as hit (match)
                 where l.shard = mine.shard and l.saga = mine.saga)
            delete from sagad.operation_key k using named n
             where k.shard = (get_byte(uuid_send(n.key), 15) % 64)::int2 and k.key = n.key and k.saga = mine.saga;
            with escalations as (
                delete from sagad.escalation e where e.shard = mine.shard and e.saga = mine.saga returning e.number),
            approvals as (
                delete from sagad.approval a where a.shard = mine.shard and a.saga = mine.saga returning a.number)
            insert into sagad.number_gone as g (shard, escalation, approval)
            select mine.shard, coalesce(max(n.escalation), 0), coalesce(max(n.approval), 0)
              from (select e.number as escalation, null::int8 as approval from escalations e
                    union all select null, a.number from approvals a) as n
            having count(*) > 0
                on conflict (shard) do update set escalation = greatest(g.escalation, excluded.escalation),
                                                  approval = greatest(g.approval, excluded.approval);
            delete from sagad.log l where l.shard = mine.shard and l.saga = mine.saga;
            delete from sagad.saga s where s.shard = mine.shard and s.id = mine.saga;
        end if;
        delete from sagad.due d where d.shard = mine.shard and d.saga = mine.saga and d.what = 'forget';
        return next mine.i;
    end loop;
end
$$;
comment on function sagad.forget(int2[], int8[], uuid[]) is
    'Removes ended sagas with their logs, keys, escalations and approvals, where the shard is at its epoch: gives the positions of those. A repeat finds nothing to do';

create or replace view sagad.saga_step as
    select distinct on (e.shard, e.saga, e.step)
           e.shard, e.saga, e.step,
           case
               when e.type in ('step.pending', 'step.called', 'step.repeated') then 'pending'
               when e.type in ('step.intent', 'step.accepted', 'step.reopened', 'step.opened') then 'running'
               when e.type = 'step.waiting' then 'waiting'
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
     where e.step is not null and (e.type like 'step.%' or e.type like 'compensation.%') and e.type <> 'step.late'
     order by e.shard, e.saga, e.step, e.seq desc;
comment on view sagad.saga_step is
    'Each step that began, as its newest record tells it: elements of for_each are STEP#0, steps of a child saga STEP/CHILD_STEP. The API knows more: it folds the whole log';
