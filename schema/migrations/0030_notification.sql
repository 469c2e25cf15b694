-- Events of which no log of a saga tells: of holds, breakers, budgets, bulk jobs, and of debts that were settled. The functions that make these
-- changes write them, in the same transaction, so that an engine of the release before tells them too.

create table sagad.event (
    shard     int2        not null,
    id        uuid        not null,
    event_tx  int8        not null default pg_current_xact_id()::text::int8,
    at        timestamptz not null,
    namespace text        not null,
    saga      uuid,
    type      text        not null,
    subject   text        not null,
    data      bytea       not null,
    once      text,
    constraint event_pk primary key (shard, id)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index event_tx on sagad.event (shard, event_tx);
create unique index event_once on sagad.event (shard, namespace, once) where once is not null;
comment on table sagad.event is 'Events of which no log of a saga tells, for the feed; each is kept for 30 days at least';
comment on column sagad.event.shard is 'Of what the event is about; of a hold: of its number';
comment on column sagad.event.id is 'Of the event';
comment on column sagad.event.event_tx is 'As in sagad.log';
comment on column sagad.event.at is 'When';
comment on column sagad.event.namespace is 'Whoever reads the events of this namespace reads it';
comment on column sagad.event.saga is 'The saga that it is about; null: it is about none';
comment on column sagad.event.type is 'Such as hold.placed';
comment on column sagad.event.subject is 'What it is about: hold/12, breaker/TOOL, budget/NAME, bulk/ID, or the id of a saga';
comment on column sagad.event.data is 'JSON in UTF-8: members of the data of the event';
comment on column sagad.event.once is 'No other event of this name is told while this one is kept; null: it has no such name';

create function sagad.event_add(of_shard int2, of_namespace text, of_saga uuid, of_type text, of_subject text, of_data bytea, of_once text)
        returns void
    language plpgsql as $$
declare
    moment timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    if of_once is not null
            and exists (select from sagad.event e where e.shard = of_shard and e.namespace = of_namespace and e.once = of_once) then
        return;
    end if;
    insert into sagad.event (shard, id, at, namespace, saga, type, subject, data, once)
    values (of_shard, sagad.new_id(), moment, of_namespace, of_saga, of_type, of_subject, of_data, of_once)
        on conflict (shard, namespace, once) where once is not null do nothing;
    -- The oldest are looked at, a few with each one that comes, so that no statement has many to remove.
    with old as (
        select f.id, f.namespace, f.event_tx
          from (select e.id, e.namespace, e.event_tx, e.at from sagad.event e where e.shard = of_shard order by e.event_tx limit 20) as f
         where f.at < moment - interval '30 days'),
    gone as (
        delete from sagad.event e using old o where e.shard = of_shard and e.id = o.id returning e.namespace, e.event_tx)
    insert into sagad.event_gone as g (shard, namespace, tx)
    select of_shard, o.namespace, max(o.event_tx) from gone o group by o.namespace order by o.namespace
        on conflict (shard, namespace) do update set tx = greatest(g.tx, excluded.tx);
end
$$;
comment on function sagad.event_add is 'Tells an event, and removes a few that are old';

create or replace function sagad.hold_put(of_id uuid, of_namespace text, of_body bytea, of_until timestamptz, of_max int8) returns int8
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
    perform sagad.event_add((raised % 64)::int2, of_namespace, null, 'hold.placed', 'hold/' || raised,
        convert_to(format('{"n":%s,"hold":', raised), 'UTF8') || of_body || '}'::bytea, null);
    perform pg_notify('sagad_holds', '');
    return raised;
end
$$;

create or replace function sagad.hold_release(of_number int8, of_namespace text, of_release bytea) returns int8
    language plpgsql as $$
declare
    raised int8;
    at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    update sagad.hold_version v set version = v.version + 1 where v.only_row returning v.version into raised;
    update sagad.hold h set released_at = at, release = of_release
     where h.number = of_number and h.namespace = of_namespace and h.released_at is null and (h.until_at is null or h.until_at > at);
    if found then
        perform sagad.event_add((of_number % 64)::int2, of_namespace, null, 'hold.released', 'hold/' || of_number,
            convert_to(format('{"n":%s,"released":', of_number), 'UTF8') || of_release || '}'::bytea, null);
        perform pg_notify('sagad_holds', '');
        return raised;
    end if;
    return case when (select true from sagad.hold h where h.number = of_number and h.namespace = of_namespace) then 0 else -1 end;
end
$$;

create function sagad.event_of_bulk(of_shard int2, of_id uuid) returns void language plpgsql as $$
begin
    perform sagad.event_add(b.shard, b.namespace, null, 'bulk.ended', 'bulk/' || b.id,
        convert_to(format('{"bulk":"%s","state":"%s","items":%s,"done":%s,"changed":%s,"refused":%s', b.id, b.state, b.items, b.done,
            b.changed, b.refused), 'UTF8') || coalesce(',"stop":'::bytea || b.stop, ''::bytea) || '}'::bytea, null)
       from sagad.bulk b where b.shard = of_shard and b.id = of_id;
end
$$;
comment on function sagad.event_of_bulk is 'Tells that a bulk job has ended: each item has an outcome, or a person has stopped the job';

create or replace function sagad.bulk_move(of_shard int2, of_id uuid, of_namespace text, of_state text, of_who bytea, of_keep timestamptz) returns text
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
        perform sagad.event_of_bulk(of_shard, of_id);
        return 'stopped';
    end if;
    return known;
end
$$;

create or replace function sagad.bulk_settle(of_shard int2, of_epoch int8, of_id uuid, of_n int8[], of_outcomes text[], of_details bytea[],
        of_looks timestamptz[], of_keep timestamptz) returns int4
    language plpgsql as $$
declare
    new_done int8;
    new_changed int8;
    new_refused int8;
    next_look timestamptz;
    was_running bool;
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    select b.state = 'running' into was_running from sagad.bulk b where b.shard = of_shard and b.id = of_id for no key update;
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
    if was_running and next_look is null then
        perform sagad.event_of_bulk(of_shard, of_id);
    end if;
    return 1;
end
$$;

create or replace function sagad.debt_settle(of_shard int2, of_saga uuid, of_namespace text, of_operation uuid, of_body bytea, of_debts int4,
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
    if found then
        perform sagad.event_add(of_shard, of_namespace, of_saga, 'debt.settled', of_saga::text,
            convert_to(format('{"operation":"%s","settled":', of_operation), 'UTF8') || of_body || '}'::bytea, null);
    end if;
    select d.body into known from sagad.debt_settled d
     where d.shard = of_shard and d.saga = of_saga and d.operation = of_operation;
    if of_forget is not null
            and (select count(*) from sagad.debt_settled d where d.shard = of_shard and d.saga = of_saga) >= of_debts then
        insert into sagad.due (shard, saga, what, at) values (of_shard, of_saga, 'forget', of_forget) on conflict (shard, saga) do nothing;
    end if;
    return known;
end
$$;

create function sagad.event_of_breaker(of_shard int2, of_namespace text, of_tool text, of_endpoint text, is_closed bool, of_open bytea)
        returns void
    language plpgsql as $$
begin
    perform sagad.event_add(of_shard, of_namespace, null, case when is_closed then 'breaker.closed' else 'breaker.opened' end,
        'breaker/' || of_tool,
        convert_to(format('{"tool":%s', to_json(of_tool)), 'UTF8')
            || case when of_endpoint is null then ''::bytea else convert_to(format(',"endpoint":%s', to_json(of_endpoint)), 'UTF8') end
            || coalesce(',"by":'::bytea || of_open, ''::bytea) || '}'::bytea, null);
end
$$;
comment on function sagad.event_of_breaker is
    'Tells that a breaker was opened or closed: that of an endpoint, or (of_endpoint null) by a person that of the tool';

create or replace function sagad.guard_breaker_set(of_shard int2, of_namespace text, of_tool text, of_open bytea) returns void
    language plpgsql as $$
declare
    was_open bool;
    closed   text;
begin
    insert into sagad.guard (shard, namespace, tool) values (of_shard, of_namespace, of_tool) on conflict do nothing;
    select g.breaker_open is not null into strict was_open from sagad.guard g
     where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool for no key update;
    update sagad.guard g set breaker_open = of_open
     where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool;
    if was_open <> (of_open is not null) then
        perform sagad.event_of_breaker(of_shard, of_namespace, of_tool, null, of_open is null, of_open);
    end if;
    if of_open is null then
        for closed in select b.endpoint from sagad.guard_breaker b
            where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.state <> 'closed' order by b.endpoint loop
            perform sagad.event_of_breaker(of_shard, of_namespace, of_tool, closed, true, null);
        end loop;
        update sagad.guard_breaker b set state = 'closed', failures = '{}', cooldown_ms = 0, probe = null
         where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool;
    end if;
end
$$;

create or replace function sagad.guard_tell(
        of_shard int2, of_namespace text, of_tool text, of_endpoint text,
        breaker_failures int8, window_ms int8, rest_ms int8, of_holder uuid, of_operation uuid,
        result text, given_back bool, spacing_us int8, pause_ms int8, charge text, cost_micros int8,
        out breaker_state text, out breaker_changed bool)
    language plpgsql as $$
declare
    breaker     sagad.guard_breaker;
    reservation sagad.guard_reservation;
    before      text := 'closed';
    moment      timestamptz;
    recent      timestamptz[];
    was_there   bool;
    i           int4;
begin
    breaker_state := 'closed';
    breaker_changed := false;
    if charge = 'keep' then
        perform pg_catalog.set_config('synchronous_commit', 'off', true); -- a place that is given back twice, or late, does no harm
    end if;
    perform 1 from sagad.guard g where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool for update;
    moment := clock_timestamp();
    delete from sagad.guard_place p
     where p.shard = of_shard and p.namespace = of_namespace and p.tool = of_tool and p.holder = of_holder;
    was_there := found;
    if pause_ms > 0 or (given_back and was_there and spacing_us > 0) then
        update sagad.guard g
           set paused_until = case when pause_ms > 0
                              then greatest(g.paused_until, moment + make_interval(secs => pause_ms / 1000.0)) else g.paused_until end,
               rate_at = case when given_back and was_there then g.rate_at - make_interval(secs => spacing_us / 1000000.0) else g.rate_at end
         where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool;
    end if;
    if breaker_failures > 0 then
        select * into breaker from sagad.guard_breaker b
         where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint for update;
        if not found and result = 'failed' then
            insert into sagad.guard_breaker (shard, namespace, tool, endpoint)
            values (of_shard, of_namespace, of_tool, of_endpoint) on conflict do nothing;
            select * into strict breaker from sagad.guard_breaker b
             where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint for update;
        end if;
        before := coalesce(breaker.state, 'closed');
        breaker_state := before;
        if before = 'half_open' and breaker.probe = of_holder then
            if result = 'well' then
                breaker_state := 'closed';
                update sagad.guard_breaker b
                   set state = 'closed', failures = '{}', cooldown_ms = 0, probe = null
                 where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint;
            elsif result = 'failed' then
                breaker_state := 'open';
                breaker.cooldown_ms := least(greatest(breaker.cooldown_ms, rest_ms) * 2, greatest(600000, rest_ms));
                update sagad.guard_breaker b
                   set state = 'open', probe = null, cooldown_ms = breaker.cooldown_ms, opened = b.opened + 1,
                       open_until = moment + make_interval(secs => breaker.cooldown_ms / 1000.0 * (1 + random() / 5))
                 where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint;
            else -- it was not called: another one may try
                breaker_state := 'open';
                update sagad.guard_breaker b set state = 'open', probe = null
                 where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint;
            end if;
        elsif before = 'closed' and result = 'failed' then
            recent := array(select t from unnest(breaker.failures || moment) as t
                             where t > moment - make_interval(secs => window_ms / 1000.0) order by t desc limit breaker_failures);
            if cardinality(recent) >= breaker_failures then
                breaker_state := 'open';
                update sagad.guard_breaker b
                   set state = 'open', failures = '{}', cooldown_ms = rest_ms, opened = b.opened + 1,
                       open_until = moment + make_interval(secs => rest_ms / 1000.0 * (1 + random() / 5))
                 where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint;
            else
                update sagad.guard_breaker b set failures = recent
                 where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint;
            end if;
        end if;
        breaker_changed := breaker_state <> before;
        if (breaker_state = 'closed') <> (before = 'closed') then
            perform sagad.event_of_breaker(of_shard, of_namespace, of_tool, of_endpoint, breaker_state = 'closed', null);
        end if;
    end if;
    if charge <> 'keep' then
        select * into reservation from sagad.guard_reservation r
         where r.shard = of_shard and r.namespace = of_namespace and r.tool = of_tool and r.operation = of_operation
           and (r.state = 'reserved' or (r.state = 'given_back' and charge in ('settle', 'unpriced')));
        if found then
            for i in 1 .. cardinality(reservation.budgets) loop
                -- Without a price the operation keeps what it reserved, or reserves it again.
                update sagad.guard_budget b
                   set calls = b.calls + case when reservation.state = 'given_back' then 1 when charge = 'give_back' then -1 else 0 end,
                       micros = b.micros
                                - case when reservation.state = 'reserved' and charge <> 'unpriced' then reservation.micros[i] else 0 end
                                + case when charge = 'settle' then cost_micros
                                       when charge = 'unpriced' and reservation.state = 'given_back' then reservation.micros[i]
                                       else 0 end,
                       unpriced = b.unpriced + case when charge = 'unpriced' then 1 else 0 end
                 where b.shard = reservation.budget_shards[i] and b.name = reservation.budgets[i] and b.period = reservation.periods[i];
            end loop;
            update sagad.guard_reservation r
               set state = case charge when 'settle' then 'settled' when 'unpriced' then 'unpriced' else 'given_back' end, at = clock_timestamp()
             where r.shard = of_shard and r.namespace = of_namespace and r.tool = of_tool and r.operation = of_operation;
        end if;
    end if;
end
$$;

-- Before a call: all guards are looked at, then everything is taken or nothing.
create or replace function sagad.guard_ask(
        of_shard int2, of_namespace text, of_tool text, of_endpoint text,
        rate_limit int8, rate_per_ms int8, places int8, breaker_failures int8, place_ms int8,
        of_holder uuid, may_probe bool, of_operation uuid,
        b_shards int2[], b_names text[], b_periods timestamptz[],
        b_calls_max int8[], b_emissions_max int8[], b_micros_max int8[], b_calls int8[], b_emissions int8[], b_micros int8[],
        out verdict text, out retry_after_ms int8, out is_probe bool)
    language plpgsql as $$
declare
    tool_row    sagad.guard;
    breaker     sagad.guard_breaker;
    budget      sagad.guard_budget;
    moment      timestamptz;
    spacing     interval;
    wait        interval;
    has_place   bool := false;
    was_reserved bool := true;
    taken       int8;
    i           int4;
begin
    retry_after_ms := 0;
    is_probe := false;
    verdict := 'granted';
    if cardinality(b_names) = 0 and places = 0 then
        -- What a crash of the server could forget here is less than a second of rates.
        perform pg_catalog.set_config('synchronous_commit', 'off', true);
    end if;
    select * into tool_row from sagad.guard g
     where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool for update;
    if not found then
        insert into sagad.guard (shard, namespace, tool) values (of_shard, of_namespace, of_tool) on conflict do nothing;
        select * into strict tool_row from sagad.guard g
         where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool for update;
    end if;
    if cardinality(b_names) > 0 then
        was_reserved := exists (select 1 from sagad.guard_reservation r where r.shard = of_shard and r.namespace = of_namespace
                                and r.tool = of_tool and r.operation = of_operation and r.state = 'reserved');
        if exists (select 1 from sagad.guard_reservation r where r.shard = of_shard and r.namespace = of_namespace
                   and r.tool = of_tool and r.operation = of_operation and r.state = 'unpriced') then
            verdict := 'unpriced';
            retry_after_ms := 5000;
            return;
        end if;
        for i in 1 .. cardinality(b_names) loop
            exit when was_reserved;
            insert into sagad.guard_budget (shard, name, period) values (b_shards[i], b_names[i], b_periods[i]) on conflict do nothing;
            if found then
                delete from sagad.guard_budget b
                 where b.shard = b_shards[i] and b.name = b_names[i] and b.period < b_periods[i] - interval '400 days';
            end if;
            select * into strict budget from sagad.guard_budget b
             where b.shard = b_shards[i] and b.name = b_names[i] and b.period = b_periods[i] for update;
            if (b_calls_max[i] >= 0 and budget.calls + b_calls[i] > b_calls_max[i])
               or (b_emissions_max[i] >= 0 and budget.emissions + b_emissions[i] > b_emissions_max[i])
               or (b_micros_max[i] >= 0 and budget.micros + b_micros[i] > b_micros_max[i]) then
                perform sagad.event_add(b_shards[i], of_namespace, null, 'budget.reached', 'budget/' || b_names[i],
                    convert_to(format('{"budget":%s,"tool":%s,"period":%s,"calls":%s,"emissions":%s,"micros":%s}', to_json(b_names[i]),
                        to_json(of_tool), extract(epoch from b_periods[i])::int8, b_calls_max[i], b_emissions_max[i], b_micros_max[i]), 'UTF8'),
                    concat_ws(' ', b_names[i], extract(epoch from b_periods[i])::int8, b_calls_max[i], b_emissions_max[i], b_micros_max[i]));
                verdict := 'budget';
                return;
            end if;
            -- What is left is not known: whoever asks waits, and asks again.
            if b_micros_max[i] >= 0 and b_micros[i] > 0 and budget.unpriced > 0 then
                verdict := 'unpriced';
                retry_after_ms := 5000;
                return;
            end if;
        end loop;
    end if;
    moment := clock_timestamp(); -- after the locks: a wait for them must not make time run backwards
    has_place := exists (select 1 from sagad.guard_place p where p.shard = of_shard and p.namespace = of_namespace and p.tool = of_tool
                         and p.holder = of_holder and p.expires_at > moment);
    if tool_row.paused_until > moment then
        verdict := 'paused';
        retry_after_ms := ceil(extract(epoch from tool_row.paused_until - moment) * 1000);
        return;
    end if;
    if breaker_failures > 0 and tool_row.breaker_open is not null then
        verdict := 'breaker';
        retry_after_ms := 5000;
        return;
    end if;
    if rate_limit > 0 and not has_place then
        spacing := make_interval(secs => rate_per_ms / 1000.0 / rate_limit);
        wait := greatest(tool_row.rate_at, moment) - moment - (make_interval(secs => rate_per_ms / 1000.0) - spacing);
        if wait > interval '0' then
            verdict := 'rate';
            retry_after_ms := greatest(1, ceil(extract(epoch from wait) * 1000));
            return;
        end if;
    end if;
    if places > 0 and not has_place then
        select count(*) into taken from sagad.guard_place p
         where p.shard = of_shard and p.namespace = of_namespace and p.tool = of_tool and p.expires_at > moment;
        if taken >= places then
            verdict := 'concurrency';
            return;
        end if;
    end if;
    if breaker_failures > 0 then
        select * into breaker from sagad.guard_breaker b
         where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint for update;
        if found and breaker.state <> 'closed' then
            if breaker.state = 'half_open' and breaker.probe = of_holder then
                is_probe := true; -- asked before
            elsif breaker.state = 'open' and breaker.open_until > moment then
                verdict := 'breaker';
                retry_after_ms := greatest(1, ceil(extract(epoch from breaker.open_until - moment) * 1000));
                return;
            elsif breaker.state = 'half_open' and breaker.probe_until > moment then
                verdict := 'breaker';
                retry_after_ms := greatest(1, least(1000, ceil(extract(epoch from breaker.probe_until - moment) * 1000)));
                return;
            elsif not may_probe then
                verdict := 'breaker';
                retry_after_ms := 1000; -- it may be tried, but not with this call
                return;
            else
                is_probe := true;
                update sagad.guard_breaker b
                   set state = 'half_open', probe = of_holder, probe_until = moment + make_interval(secs => place_ms / 1000.0)
                 where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool and b.endpoint = of_endpoint;
            end if;
        end if;
    end if;
    if rate_limit > 0 and not has_place then
        update sagad.guard g set rate_at = greatest(g.rate_at, moment) + spacing
         where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool;
    end if;
    if rate_limit > 0 or places > 0 then
        insert into sagad.guard_place (shard, namespace, tool, holder, expires_at)
        values (of_shard, of_namespace, of_tool, of_holder, moment + make_interval(secs => place_ms / 1000.0))
            on conflict (shard, namespace, tool, holder) do update set expires_at = excluded.expires_at;
        if random() < 0.01 then
            delete from sagad.guard_place p
             where p.shard = of_shard and p.namespace = of_namespace and p.tool = of_tool and p.expires_at < moment;
        end if;
    end if;
    if not was_reserved then
        for i in 1 .. cardinality(b_names) loop
            update sagad.guard_budget b
               set calls = b.calls + b_calls[i], emissions = b.emissions + b_emissions[i], micros = b.micros + b_micros[i]
             where b.shard = b_shards[i] and b.name = b_names[i] and b.period = b_periods[i];
        end loop;
        insert into sagad.guard_reservation (shard, namespace, tool, operation, budget_shards, budgets, periods, micros)
        values (of_shard, of_namespace, of_tool, of_operation, b_shards, b_names, b_periods, b_micros)
            on conflict (shard, namespace, tool, operation) do update
           set state = 'reserved', at = clock_timestamp(), budget_shards = excluded.budget_shards, budgets = excluded.budgets,
               periods = excluded.periods, micros = excluded.micros;
        if random() < 0.01 then
            delete from sagad.guard_reservation r
             where r.shard = of_shard and r.namespace = of_namespace and r.tool = of_tool
               and r.state not in ('reserved', 'unpriced') and r.at < clock_timestamp() - interval '1 day';
        end if;
    end if;
end
$$;

-- Notifications: events of a namespace that are delivered to receivers outside. The feed of events is their source: the owner of the shard of a
-- receiver reads on behind its cursor, and moves the cursor and writes the notifications in one transaction. So each event is there once, under
-- its own id, however often an engine dies.

create table sagad.notify (
    shard     int2  not null,
    namespace text  not null,
    name      text  not null,
    tx        int8  not null,
    last      int8  not null default 0,
    constraint notify_pk primary key (shard, namespace, name)
);
comment on table sagad.notify is 'Receivers of notifications, as the settings name them, and how far the feed of events was read for each';
comment on column sagad.notify.shard is 'Made of the namespace and the name';
comment on column sagad.notify.namespace is 'Whose events it receives';
comment on column sagad.notify.name is 'Of the receiver';
comment on column sagad.notify.tx is 'Its cursor: every event that was written up to this transaction is in sagad.notification, or was delivered';
comment on column sagad.notify.last is 'Number of the newest notification';

create table sagad.notification (
    shard     int2        not null,
    namespace text        not null,
    name      text        not null,
    number    int8        not null,
    event     text        not null,
    body      bytea       not null,
    state     text        not null default 'pending',
    attempts  int4        not null default 0,
    since     timestamptz not null,
    until     timestamptz not null,
    look_at   timestamptz not null,
    error     text,
    constraint notification_pk primary key (shard, namespace, name, number),
    constraint notification_event unique (shard, namespace, name, event),
    constraint notification_state check (state in ('pending', 'dead'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index notification_due on sagad.notification (shard, namespace, name, look_at) where state = 'pending';
create index notification_list on sagad.notification (namespace, name, number);
comment on table sagad.notification is 'Events that a receiver has not confirmed yet; a confirmed one is removed';
comment on column sagad.notification.shard is 'Of the receiver';
comment on column sagad.notification.namespace is 'Of the receiver';
comment on column sagad.notification.name is 'The receiver';
comment on column sagad.notification.number is '1 for its first';
comment on column sagad.notification.event is 'Id of the event, and of the message';
comment on column sagad.notification.body is 'JSON in UTF-8: the event, as it is sent';
comment on column sagad.notification.state is 'pending: it is sent, and sent again; dead: a dead letter, until a person sends it again; removed after 30 days';
comment on column sagad.notification.attempts is 'How often it was sent';
comment on column sagad.notification.since is 'When it came here, or was last sent again by a person';
comment on column sagad.notification.until is 'It becomes a dead letter when it is not confirmed by then';
comment on column sagad.notification.look_at is 'When it is sent next; of a dead letter: when it died';
comment on column sagad.notification.error is 'Why the last attempt failed; null: there was none';

create function sagad.notify_put(of_shard int2, of_epoch int8, of_namespace text, of_name text, of_before int8, of_tx int8, of_events text[],
        of_bodies bytea[], of_now timestamptz, of_until timestamptz) returns int4
    language plpgsql as $$
declare
    begun int8;
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    if of_before is null then
        insert into sagad.notify (shard, namespace, name, tx) values (of_shard, of_namespace, of_name, of_tx)
            on conflict (shard, namespace, name) do nothing;
        return 1;
    end if;
    update sagad.notify n set tx = of_tx, last = n.last + cardinality(of_events)
     where n.shard = of_shard and n.namespace = of_namespace and n.name = of_name and n.tx = of_before
    returning n.last - cardinality(of_events) into begun;
    if not found then
        return 2;
    end if;
    insert into sagad.notification (shard, namespace, name, number, event, body, since, until, look_at)
    select of_shard, of_namespace, of_name, begun + u.i, u.event, u.body, of_now, of_until, of_now
      from unnest(of_events, of_bodies) with ordinality as u (event, body, i) order by u.i
        on conflict (shard, namespace, name, event) do nothing;
    delete from sagad.notification d where d.shard = of_shard and d.namespace = of_namespace and d.name = of_name
       and d.number in (select o.number from (select f.number, f.state, f.look_at from sagad.notification f
                         where f.shard = of_shard and f.namespace = of_namespace and f.name = of_name order by f.number limit 20) as o
                         where o.state = 'dead' and o.look_at < of_now - interval '30 days');
    return 1;
end
$$;
comment on function sagad.notify_put is
    'Moves the cursor of a receiver from of_before (null: it has none yet) to of_tx, and writes the events between. Gives 1 where that is so now, 2 where its cursor stands elsewhere, 0 where another engine has the shard';

create function sagad.notify_settle(of_shard int2, of_epoch int8, of_namespace text, of_name text, of_numbers int8[], of_states text[],
        of_looks timestamptz[], of_attempts int4[], of_errors text[]) returns int4
    language plpgsql as $$
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    delete from sagad.notification n using unnest(of_numbers, of_states) as u (number, state)
     where n.shard = of_shard and n.namespace = of_namespace and n.name = of_name and n.number = u.number and u.state = 'done';
    update sagad.notification n
       set state = u.state, look_at = u.look_at, attempts = n.attempts + u.attempts, error = coalesce(u.error, n.error)
      from unnest(of_numbers, of_states, of_looks, of_attempts, of_errors) as u (number, state, look_at, attempts, error)
     where n.shard = of_shard and n.namespace = of_namespace and n.name = of_name and n.number = u.number and u.state <> 'done';
    return 1;
end
$$;
comment on function sagad.notify_settle is
    'What became of notifications: done ones are removed, the others are pending or dead. Gives 0 where another engine has the shard';

create function sagad.notification_replay(of_namespace text, of_name text, of_events text[]) returns int8
    language plpgsql as $$
declare
    moment timestamptz := date_trunc('milliseconds', clock_timestamp());
    replayed int8;
begin
    with dead as (
        select n.shard, n.namespace, n.name, n.number from sagad.notification n
         where n.namespace = of_namespace and (of_name is null or n.name = of_name) and n.state = 'dead'
           and (cardinality(of_events) = 0 or n.event = any(of_events)) order by n.name, n.number limit 500 for no key update)
    update sagad.notification n set state = 'pending', since = moment, until = moment + (n.until - n.since), look_at = moment
      from dead d where n.shard = d.shard and n.namespace = d.namespace and n.name = d.name and n.number = d.number;
    get diagnostics replayed = row_count;
    return replayed;
end
$$;
comment on function sagad.notification_replay is
    'A person has dead letters sent again, under the same ids: all of a receiver (null: of every one), or some events (none: all). Gives how many';
