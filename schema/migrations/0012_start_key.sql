-- The key of the request that started a saga names that saga, also beside a business id.
--
-- A start with a business id and an Idempotency-Key is found by either: the key alone gives the same saga, and with another id it is
-- refused. One index over all shards: the saga lies in the shard of its business id, and its key may be asked for by any other engine.
-- Its reads are of one row each. Sagas that were started without a key have no entry in it.
alter table sagad.saga add column key_digest bytea;
comment on column sagad.saga.key_digest is
    'Of namespace, name and the Idempotency-Key that it was started with: 16 bytes; null: it had none, or was started before this column was there';
create unique index saga_key_digest on sagad.saga (key_digest) where key_digest is not null;
