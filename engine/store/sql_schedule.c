/* The statements about schedules. The last parameter of a change by people is its act, or null. */
#include "store/sql.h"

/* clang-format off */

const struct db_statement sql_schedule_put = {
    "schedule_put",
    "select case when s.n = 1 then sagad.act_told(s.n, $9::text, null) else s.n end from (select"
    " sagad.schedule_put($1::int2, $2::text, $3::text, $4::uuid, $5::text, $6::bytea, $7::text, $8::int8) as n) as s",
    .has_row = true,
};

/* Offsets are read from a little before the last instant, so that a clock that was set back still gets them. */
#define OFFSETS(since, until) \
    "case when s.zone is not null then sagad.zone_offsets(s.zone," \
    " greatest(s.last_at, " since ") - interval '48 hours', " until ") end"

#define ROW(offsets) \
    "s.shard, s.namespace, s.name, s.id, s.revision, s.body, s.state, s.hold, s.created_at, s.last_at, s.actor," \
    " " offsets

const struct db_statement sql_schedule_list = {
    "schedule_list",
    "select " ROW(OFFSETS("$5::timestamptz", "$6::timestamptz")) " from sagad.shard h cross join lateral"
    " (select * from sagad.schedule g where g.shard = h.shard and g.namespace = $1::text and g.name > $3::text"
    " and ($2::text is null or g.name = $2::text) order by g.name limit $4::int8) as s order by s.name limit $4::int8",
};

const struct db_statement sql_schedule_hold = {
    "schedule_hold",
    "with changed as (update sagad.schedule s"
    " set hold = $4::bytea, look_at = clock_timestamp(), revision = s.revision + 1"
    " where s.shard = $1::int2 and s.namespace = $2::text and s.name = $3::text returning s.shard),"
    " told as materialized (select pg_notify('" SQL_SCHEDULES_CHANNEL "', c.shard::text) from changed c)"
    " select sagad.act_put($5::text, null) from told",
};

const struct db_statement sql_schedule_delete = {
    "schedule_delete",
    "with gone as (delete from sagad.schedule s where s.shard = $1::int2 and s.namespace = $2::text"
    " and s.name = $3::text returning 1) select sagad.act_told(1, $4::text, null) from gone",
};

/* The names are checked because a text such as "UTC+3" is a zone, too, but not the intended one. */
const struct db_statement sql_zone = {
    "zone",
    "select sagad.zone_offsets($1::text, $2::timestamptz - interval '48 hours', $3::timestamptz)"
    " where exists (select from pg_timezone_names z where z.name = $1::text)",
};

const struct db_statement sql_schedule_due = {
    "schedule_due",
    "select " ROW(OFFSETS("$4::timestamptz", "$5::timestamptz"))
    " from unnest($1::int2[]) as h (shard) cross join lateral (select * from sagad.schedule g"
    " where g.shard = h.shard and g.hold is null and g.look_at <= $2::timestamptz order by g.look_at limit $3::int8)"
    " as s order by s.look_at limit $3::int8",
};

const struct db_statement sql_schedule_next = {
    "schedule_next",
    "select min(s.look_at) from unnest($1::int2[]) as h (shard) cross join lateral (select g.look_at"
    " from sagad.schedule g where g.shard = h.shard and g.hold is null and g.look_at > $2::timestamptz"
    " order by g.look_at limit 1) as s",
};

const struct db_statement sql_schedule_move = {
    "schedule_move",
    "select sagad.schedule_move($1::int2, $2::int8, $3::text, $4::text, $5::uuid, $6::int8, $7::timestamptz,"
    " $8::timestamptz, $9::bytea)",
    .has_row = true,
};
