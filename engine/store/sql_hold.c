/* The statements about holds: see schema/migrations/0022_hold.sql. The last parameter of a change is its act, or null.
 */
#include "store/sql.h"

/* clang-format off */

#define ROW "h.number, h.namespace, h.body, h.made_at, h.until_at, h.released_at, h.release"

const struct db_statement sql_hold_put = {
    "hold_put",
    "select case when h.n > 0 then sagad.act_told(h.n, $6::text, h.n::text) else h.n end from"
    " (select sagad.hold_put($1::uuid, $2::text, $3::bytea, $4::timestamptz, $5::int8) as n) as h",
    .has_row = true,
};

const struct db_statement sql_hold_release = {
    "hold_release",
    "select case when h.n > 0 then sagad.act_told(h.n, $4::text, null) else h.n end from"
    " (select sagad.hold_release($1::int8, $2::text, $3::bytea) as n) as h",
    .has_row = true,
};

const struct db_statement sql_hold_list = {
    "hold_list",
    "select " ROW " from sagad.hold h where h.namespace = $1::text and h.number < $2::int8"
    " and ($3::bool or (h.released_at is null and (h.until_at is null or h.until_at > clock_timestamp())))"
    " order by h.number desc limit $4::int8",
};

const struct db_statement sql_hold_one = {
    "hold_one",
    "select " ROW " from sagad.hold h where h.number = $2::int8 and h.namespace = $1::text",
};

/* Reads the holds that an engine obeys. The version is read first, so everything read after it is at least as new. */
const struct db_statement sql_hold_version = {
    "hold_version",
    "select v.version from sagad.hold_version v where v.only_row",
};

const struct db_statement sql_hold_in_force = {
    "hold_in_force",
    "select " ROW " from sagad.hold h where h.released_at is null"
    " and (h.until_at is null or h.until_at > clock_timestamp()) order by h.number",
};

const struct db_statement sql_hold_seen = {
    "hold_seen",
    "update sagad.engine e set holds = $2::int8 where e.instance = $1::text and e.holds < $2::int8",
};

/* Tells holds that have ended by their time. Returns the milliseconds until the next one ends; 0: more have ended; -1:
 * none will. */
const struct db_statement sql_hold_tell_ended = {
    "hold_tell_ended",
    "select sagad.hold_tell_ended()",
    .has_row = true,
};

/* Returns the engines that may send and do not obey this version yet. By its shards an engine may live longer than by
 * its row. */
const struct db_statement sql_hold_unseen = {
    "hold_unseen",
    "select e.name, e.holds is null from sagad.engine e where (e.holds is null or e.holds < $1::int8)"
    " and (e.expires_at > clock_timestamp() or (select true from sagad.shard s"
    " where s.owner_identity = e.identity and s.expires_at > clock_timestamp() limit 1)) order by e.instance",
};

/* Runs with each renewal. Because of its lock, the maker of a hold waits for renewals under way, and finds their
 * engines. */
const struct db_statement sql_hold_renewed = {
    "hold_renewed",
    "select v.version from sagad.hold_version v where v.only_row for share",
};
