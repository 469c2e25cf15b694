-- Who carries out a bulk job hears at once that somebody has stopped it, and begins no further item.

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
        perform pg_notify('sagad_bulk', of_shard::text);
        perform sagad.event_of_bulk(of_shard, of_id);
        return 'stopped';
    end if;
    return known;
end
$$;
