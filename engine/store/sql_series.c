/* The statements about figures over time: see schema/migrations/0021_series.sql. */
#include "store/sql.h"

/* clang-format off */

#define COUNTS(before) \
    before "started, " before "completed, " before "compensated, " before "abandoned, " before "escalated, " \
    before "operations, " before "calls, " before "retries, " before "calls_completed, " before "calls_failed, " \
    before "calls_unknown, " before "duplicates"

#define SUM(column) "coalesce(sum(t." column "), 0)::int8"
#define SUMS \
    SUM("started") ", " SUM("completed") ", " SUM("compensated") ", " SUM("abandoned") ", " SUM("escalated") ", " \
    SUM("operations") ", " SUM("calls") ", " SUM("retries") ", " SUM("calls_completed") ", " \
    SUM("calls_failed") ", " SUM("calls_unknown") ", " SUM("duplicates")

#define ADDED(column) column " = s." column " + excluded." column

#define KEY "namespace, span, at, kind, name, part"

/* A repeat of the same part adds nothing. */
const struct db_statement sql_series_add = {
    "series_add",
    "insert into sagad.series (" KEY ", " COUNTS("") ")"
    " select u.namespace, 1, $2::timestamptz, u.kind, u.name, $1::uuid, " COUNTS("u.")
    " from unnest($3::text[], $4::text[], $5::text[], $6::int8[], $7::int8[], $8::int8[], $9::int8[], $10::int8[],"
    " $11::int8[], $12::int8[], $13::int8[], $14::int8[], $15::int8[], $16::int8[], $17::int8[])"
    " as u (namespace, kind, name, " COUNTS("") ")"
    " on conflict (" KEY ") do nothing",
};

/* Each minute is moved into its hour once, by the engine that deletes it. What another engine is moving or deleting is
 * left to that one: engines do not wait for each other here. */
const struct db_statement sql_series_roll = {
    "series_roll",
    "with t as materialized (delete from sagad.series m where m.ctid = any (array(select o.ctid from sagad.series o"
    " where o.span::int4 = 1 and o.at < $1::timestamptz order by o.at limit $2::int8 for update skip locked))"
    " returning m.namespace, date_trunc('hour', m.at, 'UTC') as at, m.kind, m.name, " COUNTS("m.") "),"
    " put as (insert into sagad.series as s (" KEY ", " COUNTS("") ")"
    " select t.namespace, 60, t.at, t.kind, t.name, '00000000-0000-0000-0000-000000000000'::uuid, " SUMS
    " from t group by t.namespace, t.at, t.kind, t.name order by t.namespace, t.at, t.kind, t.name"
    " on conflict (" KEY ") do update set " ADDED("started") ", " ADDED("completed") ", " ADDED("compensated") ", "
    ADDED("abandoned") ", " ADDED("escalated") ", " ADDED("operations") ", " ADDED("calls") ", " ADDED("retries") ", "
    ADDED("calls_completed") ", " ADDED("calls_failed") ", " ADDED("calls_unknown") ", " ADDED("duplicates") ")"
    " select count(*) from t",
    .has_row = true,
};

const struct db_statement sql_series_drop = {
    "series_drop",
    "with gone as (delete from sagad.series h where h.ctid = any (array(select o.ctid from sagad.series o"
    " where o.span::int4 = 60 and o.at < $1::timestamptz order by o.at limit $2::int8 for update skip locked))"
    " returning 1) select count(*) from gone",
    .has_row = true,
};

/* $2: by the hour, otherwise by the minute. $5 and $6: only this kind and this name. Without a kind all are summed
 * up. */
#define ASKED_FOR(number) \
    "select p.* from sagad.series p where p.namespace = $1::text and p.span = " number " and p.at >= $3::timestamptz" \
    " and p.at < $4::timestamptz and ($5::text is null or p.kind = $5::text)" \
    " and ($6::text is null or p.name = $6::text)"

const struct db_statement sql_series_list = {
    "series_list",
    "select t.at, t.name, " SUMS " from (select case when $2::bool then date_trunc('hour', s.at, 'UTC') else s.at end"
    " as at, case when $5::text is null then '' else s.name end as name, " COUNTS("s.")
    " from (" ASKED_FOR("1") " union all " ASKED_FOR("60") " and $2::bool) as s) as t"
    " group by t.at, t.name order by t.at, t.name limit $7::int8",
};
