-- Cases that no log can tell of: a saga whose log cannot be read, a follower that was refused after the end of its saga. They are
-- rows of their own among the escalations. Nothing of them stands in a log.

create function sagad.case_put(of_shard int2, of_epoch int8, of_number int8, of_saga uuid, of_namespace text, of_opened timestamptz,
        of_resolved timestamptz, of_reason text, of_body bytea, of_input uuid, of_ends bool) returns int8
    language plpgsql as $$
declare
    known int8;
begin
    perform 1 from sagad.shard s where s.shard = of_shard and s.epoch = of_epoch for key share;
    if not found then
        return 0;
    end if;
    if of_resolved is null and of_reason = 'unreadable' then
        select min(e.number) into known from sagad.escalation e
         where e.shard = of_shard and e.namespace = of_namespace and e.saga = of_saga and e.reason = of_reason
           and e.resolved_at is null;
        if known is not null then
            return known;
        end if;
    end if;
    insert into sagad.escalation (shard, number, saga, namespace, opened_at, resolved_at, reason, body)
    values (of_shard, of_number, of_saga, of_namespace, of_opened, of_resolved, of_reason, of_body)
        on conflict (shard, number) do nothing;
    if not found and of_resolved is not null then
        update sagad.escalation e set resolved_at = of_resolved, body = of_body
         where e.shard = of_shard and e.number = of_number and (e.resolved_at is null or e.body = of_body);
        if not found then
            return -1;
        end if;
    end if;
    delete from sagad.inbox i where i.shard = of_shard and i.id = of_input;
    if of_ends then
        update sagad.saga s set status = 'abandoned', updated_at = of_resolved, ended_at = of_resolved
         where s.shard = of_shard and s.id = of_saga and s.ended_at is null;
        delete from sagad.due d where d.shard = of_shard and d.saga = of_saga;
        delete from sagad.awake a where a.shard = of_shard and a.saga = of_saga;
        perform sagad.lock_release(array[of_shard], array[of_saga]);
        -- Nobody is to answer what its log had asked.
        update sagad.escalation e
           set resolved_at = of_resolved,
               body = convert_to(regexp_replace(convert_from(e.body, 'UTF8'), '"status":"open"', '"status":"resolved"'), 'UTF8')
         where e.shard = of_shard and e.saga = of_saga and e.resolved_at is null;
        update sagad.approval a
           set ended_at = of_resolved, status = 'cancelled',
               body = convert_to(regexp_replace(convert_from(a.body, 'UTF8'), '"status":"open"', '"status":"cancelled"'), 'UTF8')
         where a.shard = of_shard and a.saga = of_saga and a.ended_at is null;
    end if;
    return of_number;
end
$$;
comment on column sagad.escalation.shard is 'Number modulo 64: of the saga, or, with the reason follower, of the saga that was to follow';
comment on function sagad.case_put is
    'Opens a case, or resolves one, where the shard is at its epoch; consumes the input that led to it; ends the saga that cannot be read. Gives the number under which the case stands, 0 where another engine has the shard, -1 where it was resolved already. A repeat changes nothing';
