/* The statements about bulk jobs. */
#include "store/sql.h"

/* clang-format off */

#define ROW \
    "b.shard, b.id, b.namespace, b.state, b.body, b.items, b.done, b.changed, b.refused, b.actor, b.created_at," \
    " b.expires_at, b.run, b.stop, b.ended_at"

const struct db_statement sql_bulk_begin = {
    "bulk_begin",
    "select sagad.bulk_begin($1::int2, $2::uuid, $3::text, $4::bytea, $5::text, $6::timestamptz, $7::int8)",
    .has_row = true,
};

const struct db_statement sql_bulk_add = {
    "bulk_add",
    "insert into sagad.bulk_item (shard, bulk, n, body, look_at)"
    " select $1::int2, $2::uuid, $3::int8 + i.n, i.body, $5::timestamptz"
    " from unnest($4::bytea[]) with ordinality as i (body, n) on conflict (shard, bulk, n) do nothing",
};

const struct db_statement sql_bulk_freeze = {
    "bulk_freeze",
    "update sagad.bulk b set state = 'frozen', body = $3::bytea, items = $4::int8"
    " where b.shard = $1::int2 and b.id = $2::uuid and b.state in ('freezing', 'frozen') returning " ROW,
};

const struct db_statement sql_bulk_move = {
    "bulk_move",
    "with was as materialized (select b.state from sagad.bulk b where b.shard = $1::int2 and b.id = $2::uuid)"
    " select case when m.state = $4::text and m.state <> all (select w.state from was w)"
    " then sagad.act_told(m.state, $7::text, null) else m.state end from (select"
    " sagad.bulk_move($1::int2, $2::uuid, $3::text, $4::text, $5::bytea, $6::timestamptz) as state) as m",
};

const struct db_statement sql_bulk_list = {
    "bulk_list",
    "select " ROW " from sagad.shard h cross join lateral (select g.* from sagad.bulk g where g.shard = h.shard"
    " and g.namespace = $1::text and g.state <> 'freezing' and g.id < $2::uuid order by g.id desc limit $3::int8) as b"
    " order by b.id desc limit $3::int8",
};

const struct db_statement sql_bulk_one = {
    "bulk_one",
    "select " ROW " from sagad.bulk b where b.shard = $1::int2 and b.id = $2::uuid and b.namespace = $3::text"
    " and b.state <> 'freezing'",
};

const struct db_statement sql_bulk_items = {
    "bulk_items",
    "select i.n, i.body, i.outcome, i.detail from sagad.bulk_item i where i.shard = $1::int2 and i.bulk = $2::uuid"
    " and i.n > $3::int8 and ($4::text is null or coalesce(i.outcome, 'open') = $4::text) order by i.n limit $5::int8",
};

/* Returns one job, and those of its items whose turn it is. */
const struct db_statement sql_bulk_due = {
    "bulk_due",
    "select " ROW ", i.n, i.body from (select d.* from unnest($1::int2[]) as h (shard) cross join lateral"
    " (select * from sagad.bulk g where g.shard = h.shard and g.look_at <= $2::timestamptz"
    " order by g.look_at, g.id limit 1) as d order by d.look_at, d.id limit 1) as b"
    " left join lateral (select * from sagad.bulk_item t where t.shard = b.shard and t.bulk = b.id"
    " and b.state = 'running' and t.outcome is null and t.look_at <= $2::timestamptz"
    " order by t.look_at, t.n limit $3::int8) as i on true order by i.look_at, i.n",
};

const struct db_statement sql_bulk_next = {
    "bulk_next",
    "select min(b.look_at) from unnest($1::int2[]) as h (shard) cross join lateral (select g.look_at"
    " from sagad.bulk g where g.shard = h.shard order by g.look_at limit 1) as b",
};

const struct db_statement sql_bulk_settle = {
    "bulk_settle",
    "select sagad.bulk_settle($1::int2, $2::int8, $3::uuid, $4::int8[], $5::text[], $6::bytea[], $7::timestamptz[],"
    " $8::timestamptz)",
    .has_row = true,
};

const struct db_statement sql_bulk_forget = {
    "bulk_forget",
    "select sagad.bulk_forget($1::int2, $2::int8, $3::uuid, $4::timestamptz, $5::int8)",
    .has_row = true,
};
