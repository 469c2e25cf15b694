-- What persons and tokens did: every change that they made, and how often they were refused. An act is written in the transaction of what it changed, so
-- that neither is there without the other. Months lie in partitions, so that old ones leave as a whole. The partitions are a ring of 26 tables that is made
-- once: the role of the engines makes no tables. A month takes the place of the month that was 26 months before it.

create function sagad.act_slot(at timestamptz) returns int2
    language sql immutable as $$
    select ((extract(year from timezone('UTC', at)) * 12 + extract(month from timezone('UTC', at)))::int4 % 26)::int2
$$;
comment on function sagad.act_slot is 'The partition of an instant: its month in UTC, modulo 26';

create table sagad.act (
    slot        int2        not null,
    namespace   text        not null,
    at          timestamptz not null,
    id          uuid        not null,
    actor       text        not null,
    role        text        not null,
    via         text        not null,
    address     text,
    verb        text        not null,
    kind        text,
    target      text,
    detail      text,
    saga        uuid,
    saga_name   text,
    business_id text,
    tool        text,
    note        text,
    outcome     text        not null,
    code        text,
    count       int8        not null default 1,
    last_at     timestamptz not null,
    constraint act_pk primary key (namespace, at, id, slot),
    constraint act_outcome_known check (outcome in ('done', 'refused')),
    constraint act_via_known check (via in ('token', 'session', 'local')),
    constraint act_slot_is_of_month check (slot = sagad.act_slot(at))
) partition by list (slot);
comment on table sagad.act is
    'What persons and tokens changed, a row for each act, and what they were refused, a row for each token and minute. No statement changes or deletes an act; whole months leave when their retention is over. Its key does not start with the shard, because people ask for all acts of a namespace by time';
comment on column sagad.act.slot is 'The partition: the month of "at" in UTC, modulo 26';
comment on column sagad.act.namespace is 'In which the token acted';
comment on column sagad.act.at is 'When; of refusals the minute in which they were';
comment on column sagad.act.id is 'Made by the engine once for each request, so that a write that is repeated adds nothing; of refusals made of namespace, token and minute';
comment on column sagad.act.actor is 'Name of the token; "local" where sagad runs without tokens';
comment on column sagad.act.role is 'Role of the token at that time';
comment on column sagad.act.via is 'token: the request carried the token; session: somebody was signed in at the console; local: there are no tokens';
comment on column sagad.act.address is 'Address from which the request came: that of the proxy, where there is one';
comment on column sagad.act.verb is 'What was done, such as abort or resolve; of refusals one of them. Method and path where a request without a verb was refused';
comment on column sagad.act.kind is 'What it was done to: saga, operation, escalation, approval, hold, tool, schedule, bulk, definition';
comment on column sagad.act.target is 'Which one: its number, name, key or id';
comment on column sagad.act.detail is 'What exactly, in a few words: the verdict, the decision, the name of a signal';
comment on column sagad.act.saga is 'The saga that it changed';
comment on column sagad.act.saga_name is 'Name of the definition of that saga';
comment on column sagad.act.business_id is 'Business id of that saga';
comment on column sagad.act.tool is 'The tool whose operation it was about';
comment on column sagad.act.note is 'Why, in the words of whoever did it';
comment on column sagad.act.outcome is 'done, or refused';
comment on column sagad.act.code is 'Of refusals: the code of that one, as in the problem document';
comment on column sagad.act.count is 'How many: 1 for an act';
comment on column sagad.act.last_at is 'When it was last refused; of an act the same as "at"';

do $$
begin
    for slot in 0..25 loop
        execute format('create table sagad.act_%s partition of sagad.act for values in (%s)', to_char(slot, 'FM00'), slot);
        execute format('comment on table sagad.act_%s is %L', to_char(slot, 'FM00'), 'Acts of the months whose slot is ' || slot);
    end loop;
end
$$;

create function sagad.act_put(of_act text, of_target text) returns void
    language plpgsql as $$
begin
    insert into sagad.act (slot, namespace, at, id, actor, role, via, address, verb, kind, target, detail, saga, saga_name, business_id, tool, note,
                           outcome, last_at)
    select sagad.act_slot(a.at), a.namespace, a.at, a.id, a.actor, a.role, a.via, a.address, a.verb, a.kind, coalesce(a.target, of_target), a.detail,
           a.saga, a.saga_name, a.business_id, a.tool, a.note, 'done', a.at
      from jsonb_to_record(of_act::jsonb) as a (namespace text, at timestamptz, id uuid, actor text, role text, via text, address text, verb text,
                                                kind text, target text, detail text, saga uuid, saga_name text, business_id text, tool text,
                                                note text)
     where of_act is not null
        on conflict (namespace, at, id, slot) do nothing;
end
$$;
comment on function sagad.act_put is
    'Writes an act, a JSON object with the columns of the table as its members; null: none. The second argument is what it was done to, where the act does not know that yet';

create function sagad.act_told(of_result anyelement, of_act text, of_target text) returns anyelement
    language plpgsql as $$
begin
    perform sagad.act_put(of_act, of_target);
    return of_result;
end
$$;
comment on function sagad.act_told is 'Writes an act, and gives what it is given: the answer of the change that the act is about';

create function sagad.act_refuse(of_refusals text) returns void
    language plpgsql as $$
begin
    insert into sagad.act (slot, namespace, at, id, actor, role, via, address, verb, kind, target, saga, outcome, code, count, last_at)
    select sagad.act_slot(a.at), a.namespace, a.at, a.id, a.actor, a.role, a.via, a.address, a.verb, a.kind, a.target, a.saga, 'refused', a.code,
           a.count, a.last_at
      from jsonb_to_recordset(of_refusals::jsonb) as a (namespace text, at timestamptz, id uuid, actor text, role text, via text, address text,
                                                        verb text, kind text, target text, saga uuid, code text, count int8, last_at timestamptz)
     order by a.namespace, a.at, a.id
        on conflict (namespace, at, id, slot) do update
       set count = act.count + excluded.count, last_at = greatest(act.last_at, excluded.last_at);
end
$$;
comment on function sagad.act_refuse is
    'Adds refusals, a JSON array of objects, to the row of their token and minute. Only the count and the last instant of a row ever change';

-- Runs with the rights of the role that made it: the role of the engines needs no right to delete acts or to empty tables.
create function sagad.act_forget(of_before timestamptz) returns int4
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    before timestamptz := least(of_before, now() - interval '31 days');
    months int4 := 0;
    of_slot text;
    is_over bool;
begin
    if not has_table_privilege(session_user, 'sagad.act', 'insert') then
        raise exception 'only a role that may write acts may remove old ones' using errcode = 'insufficient_privilege';
    end if;
    perform set_config('lock_timeout', '2s', true);
    for slot in 0..25 loop
        of_slot := 'sagad.act_' || to_char(slot, 'FM00');
        continue when slot in (sagad.act_slot(now()), sagad.act_slot(now() + interval '1 day'), sagad.act_slot(now() - interval '1 day'));
        execute format('select exists (select from %1$s) and not exists (select from %1$s a where a.at >= $1)', of_slot) into is_over using before;
        continue when not is_over;
        execute format('truncate %s', of_slot);
        months := months + 1;
    end loop;
    return months;
end
$$;
comment on function sagad.act_forget is
    'Empties the partitions of which every act is from before that instant, and never one with an act of the last 31 days. Gives how many';
