// Makes very many sagas at once. They are rows without logs, which only lists read.
export function fillSagas(world, count) {
  world.sql(`
create temp table made as select i, (i % 64)::int2 as shard,
  (lpad(to_hex((extract(epoch from now()) * 1000)::int8 - (${count} - i) * 80::int8), 12, '0') || '7' ||
  substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 11) || lpad(to_hex(i % 64), 4, '0'))::uuid as id,
  now() - (${count} - i) * interval '80 ms' as at from generate_series(1, ${count}) as i;
insert into sagad.saga (shard, id, namespace, name, version, status, tags, input_digest, created_at, updated_at,
ended_at, business_id, business_digest)
  select shard, id, 'default', case when i % 2 = 0 then 'order' else 'trip' end, 1, 'completed',
  jsonb_build_object('customer', 'c' || i % 50000), sha256(int4send(i)), at, at, at, 'b-' || i,
  substr(sha256(int4send(i)), 1, 16) from made order by i;
analyze sagad.saga;`)
}
