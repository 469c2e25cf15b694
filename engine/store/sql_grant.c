/* The statements about grants: see schema/migrations/0031_grant.sql. The last parameter of a change is its act, or
 * null.
 */
#include "store/sql.h"

/* clang-format off */

#define ROW "g.id, g.secret, g.namespace, g.body, g.made_at, g.expires_at, g.revoked_at, g.revocation"
#define HOLDS "g.revoked_at is null and g.expires_at > clock_timestamp()"

const struct db_statement sql_grant_put = {
    "grant_put",
    "select case when g.made is not null then sagad.act_told(g.made, $8::text, null) end from (select"
    " sagad.grant_put($1::uuid, $2::bytea, $3::text, $4::bytea, $5::timestamptz, $6::int2, $7::uuid) as made) as g",
};

/* Reads those of these grants that hold. */
const struct db_statement sql_grant_read = {
    "grant_read",
    "select " ROW " from sagad.agent_grant g where g.id = any($1::uuid[]) and " HOLDS,
};

const struct db_statement sql_grant_list = {
    "grant_list",
    "select " ROW " from sagad.agent_grant g where g.namespace = $1::text and g.id < $2::uuid"
    " and ($3::bool or (" HOLDS ")) order by g.id desc limit $4::int8",
};

/* The first who revokes a grant holds: a repeat changes nothing, and is no act. With $4 only the token that made the
 * grant revokes it. */
const struct db_statement sql_grant_revoke = {
    "grant_revoke",
    "update sagad.agent_grant g set"
    " revoked_at = coalesce(g.revoked_at, date_trunc('milliseconds', clock_timestamp())),"
    " revocation = coalesce(g.revocation, $3::bytea)"
    " where g.id = $1::uuid and g.namespace = $2::text"
    " and ($4::text is null or convert_from(g.body, 'UTF8')::jsonb ->> 'issuer_token' = $4::text) returning " ROW ","
    " sagad.act_told(true, case when g.revocation = $3::bytea then $5::text end, null)",
};
