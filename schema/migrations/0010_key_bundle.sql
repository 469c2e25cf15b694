-- Keys of operations in bundles. A key is a hash, so each had its place somewhere in a large index: a page read, and after a
-- checkpoint written whole, for thirty bytes. A batch makes many known at once; in one row a shard they lie one after the other.

create table sagad.key_bundle (
    shard    int2        not null,
    check_at timestamptz not null,
    id       uuid        not null,
    made_at  timestamptz not null,
    keys     uuid[]      not null,
    sagas    uuid[]      not null,
    constraint key_bundle_pk primary key (shard, check_at, id),
    constraint key_bundle_pairs check (cardinality(keys) = cardinality(sagas) and cardinality(keys) > 0)
) with (toast_tuple_target = 4080, autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.2);
alter table sagad.key_bundle alter column keys set storage external, alter column sagas set storage external,
    alter column keys set statistics 0, alter column sagas set statistics 0; -- no plan asks for them
comment on table sagad.key_bundle is
    'Which sagas have the operations with these idempotency keys: what one batch made known in a shard of keys, or what was put together of small ones. Ask sagad.saga_of(key)';
comment on column sagad.key_bundle.shard is 'From the keys: their last byte modulo 16';
comment on column sagad.key_bundle.check_at is 'When to look whether its sagas are still there; an engine drops and puts together what is due';
comment on column sagad.key_bundle.id is 'A UUIDv7';
comment on column sagad.key_bundle.made_at is 'When the oldest of its keys was made known';
comment on column sagad.key_bundle.keys is 'As the called services see them';
comment on column sagad.key_bundle.sagas is 'Whose log tells the rest, in the order of the keys; some may be forgotten';
-- Reads the bundles of one shard of keys, two megabytes for each million keys. A key that two sagas have is the older one's.
create function sagad.saga_of(of_key uuid) returns uuid
    language sql stable strict parallel safe
    return (select k.saga
              from (select o.saga from sagad.operation_key o
                     where o.shard = (get_byte(uuid_send(of_key), 15) % 64)::int2 and o.key = of_key
                    union all
                    select e.saga from sagad.key_bundle b cross join lateral unnest(b.keys, b.sagas) as e (key, saga)
                     where b.shard = (get_byte(uuid_send(of_key), 15) % 16)::int2 and of_key = any (b.keys) and e.key = of_key) as k
              join sagad.saga s on s.shard = sagad.shard_of(k.saga) and s.id = k.saga order by k.saga limit 1);
comment on function sagad.saga_of(uuid) is 'The saga that has the operation with this idempotency key; null: none, or it is forgotten';
comment on view sagad.operation is
    'Each operation by its idempotency key, as its newest record tells it. sagad.saga_of(key) gives the saga, sagad.shard_of(saga) the shard: put both beside the key';

comment on table sagad.operation_key is
    'As key_bundle, a row a key: what engines made for the schema before 10 made known, or were to find. Ask sagad.saga_of(key)';
