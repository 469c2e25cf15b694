/* The statements about acts: see schema/migrations/0028_act.sql. Other statements write an act with what it changed. */
#include "store/sql.h"

/* clang-format off */

const struct db_statement sql_act_put = {
    "act_put",
    "select sagad.act_put(u.act, null) from unnest($1::text[]) as u (act)",
};

/* Runs in the transaction that registers a document, and names the versions that this transaction has made. */
#define MADE(table) \
    "select d.name, d.version from sagad." table " d where d.namespace = u.namespace and d.name = any ($3::text[])" \
    " and d.xmin = pg_current_xact_id_if_assigned()::xid"

const struct db_statement sql_act_define = {
    "act_define",
    "select sagad.act_put(u.act, left(m.names, 1000)) from unnest($1::text[], $2::text[]) as u (act, namespace)"
    " cross join lateral (select string_agg(d.name || ' ' || d.version, ', ' order by d.name) as names"
    " from (" MADE("definition") " union all " MADE("tool") ") as d) as m where m.names is not null",
};

const struct db_statement sql_act_refuse = {
    "act_refuse",
    "select sagad.act_refuse($1::text)",
};

const struct db_statement sql_act_forget = {
    "act_forget",
    "select sagad.act_forget($1::timestamptz)",
    .has_row = true,
};

#define ONE_OF(column, texts) "(cardinality(" texts "::text[]) = 0 or " column " = any (" texts "::text[]))"

/* The list reads $12 acts of the namespace. The row of the last one is there even when it is not wanted: no older act
 * was read. */
const struct db_statement sql_act_list = {
    "act_list",
    "select g.at, g.id, g.namespace, g.actor, g.role, g.via, g.address, g.verb, g.kind, g.target, g.detail, g.saga,"
    " g.saga_name, g.business_id, g.tool, g.note, g.outcome, g.code, g.count, g.last_at, g.fits, g.edge"
    " from (select p.*, p.place = $12::int8 as edge, " ONE_OF("p.actor", "$5") " and " ONE_OF("p.verb", "$6")
    " and " ONE_OF("p.saga_name", "$7") " and " ONE_OF("p.tool", "$8")
    " and ($9::uuid is null or p.saga = $9::uuid) and ($10::text is null or p.outcome = $10::text) as fits"
    " from (select a.*, row_number() over (order by a.at desc, a.id desc) as place from sagad.act a"
    " where a.namespace = $1::text and a.at >= $2::timestamptz and (a.at, a.id) < ($3::timestamptz, $4::uuid)"
    " order by a.at desc, a.id desc limit $12::int8) as p) as g"
    " where g.fits is true or g.edge order by g.at desc, g.id desc limit $11::int8",
};
