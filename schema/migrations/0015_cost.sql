-- A cost that could not be computed is no cost of 0: the budgets that it counts against take no further call that costs until a
-- person has said the amount.

alter table sagad.guard_budget add column unpriced int8 not null default 0;
comment on column sagad.guard_budget.unpriced is
    'Operations that have happened and of which nobody knows what they cost. While there are any, nothing that costs is granted';
alter table sagad.guard_reservation drop constraint guard_reservation_state_known,
    add constraint guard_reservation_state_known check (state in ('reserved', 'settled', 'given_back', 'unpriced'));
comment on column sagad.guard_reservation.state is
    'reserved; settled: what it cost is booked; given_back: it certainly had no effect; unpriced: it happened, and nobody knows what it cost. What is settled or given back is kept for a while, so that telling it twice books it once';

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
comment on function sagad.guard_ask is
    'May this attempt leave? granted, or the guard that says no, which took nothing, and when to ask again. Asking again for the same attempt takes nothing twice';

-- After a call. A repeat of the same tells nothing new.
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
comment on function sagad.guard_tell is
    'How an attempt ended: gives its place back, moves the breaker, remembers a pause, books what the operation cost';

-- A person has said what an operation cost. A repeat, and an operation that reserved nothing, change nothing.
create function sagad.guard_price(of_shard int2, of_namespace text, of_tool text, of_operation uuid, cost_micros int8) returns bool
    language plpgsql as $$
declare
    reservation sagad.guard_reservation;
    i           int4;
begin
    perform 1 from sagad.guard g where g.shard = of_shard and g.namespace = of_namespace and g.tool = of_tool for update;
    select * into reservation from sagad.guard_reservation r
     where r.shard = of_shard and r.namespace = of_namespace and r.tool = of_tool and r.operation = of_operation
       and r.state in ('reserved', 'unpriced');
    if not found then
        return false;
    end if;
    for i in 1 .. cardinality(reservation.budgets) loop
        update sagad.guard_budget b
           set micros = b.micros - reservation.micros[i] + cost_micros,
               unpriced = b.unpriced - case when reservation.state = 'unpriced' then 1 else 0 end
         where b.shard = reservation.budget_shards[i] and b.name = reservation.budgets[i] and b.period = reservation.periods[i];
    end loop;
    update sagad.guard_reservation r set state = 'settled', at = clock_timestamp()
     where r.shard = of_shard and r.namespace = of_namespace and r.tool = of_tool and r.operation = of_operation;
    return true;
end
$$;
comment on function sagad.guard_price is 'Books what a person says that an operation cost, in the budgets and periods in which it reserved';
