-- A person opens and closes the breaker of a tool. What a person opened stays open until a person closes it, whatever calls say.

alter table sagad.guard add column breaker_open bytea;
comment on column sagad.guard.breaker_open is
    'JSON in UTF-8: who opened the breaker of all endpoints, why and when; null: no person did, and sagad.guard_breaker says how each is';

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
comment on function sagad.guard_ask is
    'May this attempt leave? granted, or the guard that says no, which took nothing, and when to ask again. Asking again for the same attempt takes nothing twice';

create function sagad.guard_breaker_set(of_shard int2, of_namespace text, of_tool text, of_open bytea) returns void
    language plpgsql as $$
begin
    insert into sagad.guard as g (shard, namespace, tool, breaker_open) values (of_shard, of_namespace, of_tool, of_open)
        on conflict (shard, namespace, tool) do update set breaker_open = excluded.breaker_open;
    if of_open is null then
        update sagad.guard_breaker b set state = 'closed', failures = '{}', cooldown_ms = 0, probe = null
         where b.shard = of_shard and b.namespace = of_namespace and b.tool = of_tool;
    end if;
end
$$;
comment on function sagad.guard_breaker_set is
    'A person opens the breaker of a tool (of_open: who, why and when) or closes it (null), for all endpoints. Repeating it changes nothing';
