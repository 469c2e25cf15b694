-- Grants: what a host hands to one agent for one run or one saga. A grant is looked up in this table with each request that carries it, and nothing
-- of it is kept in memory: one that is revoked is refused by every engine from the next request on.

create table sagad.agent_grant (
    id         uuid        not null,
    secret     bytea       not null,
    namespace  text        not null,
    body       bytea       not null,
    made_at    timestamptz not null,
    expires_at timestamptz not null,
    revoked_at timestamptz,
    revocation bytea,
    constraint agent_grant_pk primary key (id)
);
create index agent_grant_namespace on sagad.agent_grant (namespace, id);
create index agent_grant_over on sagad.agent_grant (namespace, least(revoked_at, expires_at));
comment on table sagad.agent_grant is 'Grants, and those that ended in the last 7 days';
comment on column sagad.agent_grant.id is 'The first part of the token names it';
comment on column sagad.agent_grant.secret is 'SHA-256 of the token';
comment on column sagad.agent_grant.namespace is 'It reaches nothing outside of it';
comment on column sagad.agent_grant.body is 'JSON in UTF-8: who made it, with which token (as SHA-256), and what calls under it are for';
comment on column sagad.agent_grant.made_at is 'When it was made';
comment on column sagad.agent_grant.expires_at is 'When it ends by itself';
comment on column sagad.agent_grant.revoked_at is 'When somebody ended it; null: nobody did';
comment on column sagad.agent_grant.revocation is 'JSON in UTF-8: who ended it; null: nobody did';

create function sagad.grant_put(of_id uuid, of_secret bytea, of_namespace text, of_body bytea, of_expires timestamptz, of_shard int2, of_saga uuid)
        returns timestamptz
    language plpgsql as $$
declare
    made timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
    if of_saga is not null then
        perform 1 from sagad.saga s
         where s.shard = of_shard and s.id = of_saga and s.namespace = of_namespace and s.ended_at is null;
        if not found then
            return null;
        end if;
    end if;
    delete from sagad.agent_grant g where g.id in (
        select o.id from sagad.agent_grant o
         where o.namespace = of_namespace and least(o.revoked_at, o.expires_at) < made - interval '7 days'
         order by least(o.revoked_at, o.expires_at) limit 100 for update skip locked);
    insert into sagad.agent_grant (id, secret, namespace, body, made_at, expires_at)
    values (of_id, of_secret, of_namespace, of_body, made, of_expires) on conflict (id) do nothing;
    return made;
end
$$;
comment on function sagad.grant_put is 'Makes a grant, and gives when; null: its saga is not there, or has ended. A repeat with the same id makes no second one';
