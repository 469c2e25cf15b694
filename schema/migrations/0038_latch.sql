-- What one transaction does at a time is kept apart by rows of ours. Anybody who may connect to the database can hold an advisory lock, and
-- so could keep sagas from their business locks.

create table sagad.latch (
    n int2 not null,
    constraint latch_pk primary key (n)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
comment on table sagad.latch is 'Rows that transactions lock, and nobody changes: whoever has one goes first. They stand for business keys, by the first byte of the digest';
comment on column sagad.latch.n is '0 to 255';
insert into sagad.latch select n from generate_series(0, 255) as n;

-- With the rights of its owner: a role of an engine that was granted its rights before this migration goes on.
create or replace function sagad.lock_guard(digest bytea) returns void
    language sql volatile security definer set search_path = pg_catalog, pg_temp
    as $$ select from sagad.latch l where l.n = get_byte(digest, 0) for update $$;
comment on function sagad.lock_guard(bytea) is
    'Whoever reads or changes the line of a key holds this until the end of the transaction. Several are taken in order of their digests, and so of their latches, after the rows of sagas';
comment on table sagad.lock is
    'Who holds a business key, and who stands in line for it: the smallest ticket holds it. Taken and released under the latch of the key';

comment on column sagad.saga.input_digest is
    'SHA-256 of the canonical input: tells the same start from another one under the same business id. Or ~KEY. and the same sealed, see --payload-keys';
