/* The statements about notifications: see schema/migrations/0030_notification.sql. */
#include "store/sql.h"

/* clang-format off */

#define ROW "n.name, n.number, n.event, n.body, n.state, n.attempts, n.since, n.until, n.look_at, n.error"

const struct db_statement sql_notify_cursor = {
    "notify_cursor",
    "select (select t.tx from sagad.notify t where t.shard = $1::int2 and t.namespace = $2::text"
    " and t.name = $3::text),"
    " (select n.look_at from sagad.notification n where n.shard = $1::int2 and n.namespace = $2::text"
    " and n.name = $3::text and n.state = 'pending' order by n.look_at limit 1)",
    .has_row = true,
};

const struct db_statement sql_notify_due = {
    "notify_due",
    "select " ROW " from sagad.notification n where n.shard = $1::int2 and n.namespace = $2::text and n.name = $3::text"
    " and n.state = 'pending' and n.look_at <= $4::timestamptz order by n.look_at, n.number limit $5::int8",
};

const struct db_statement sql_notify_put = {
    "notify_put",
    "select sagad.notify_put($1::int2, $2::int8, $3::text, $4::text, $5::int8, $6::int8, $7::text[], $8::bytea[],"
    " $9::timestamptz, $10::timestamptz)",
    .has_row = true,
};

const struct db_statement sql_notify_settle = {
    "notify_settle",
    "select sagad.notify_settle($1::int2, $2::int8, $3::text, $4::text, $5::int8[], $6::text[], $7::timestamptz[],"
    " $8::int4[], $9::text[])",
    .has_row = true,
};

const struct db_statement sql_notification_list = {
    "notification_list",
    "select " ROW " from sagad.notification n where n.namespace = $1::text and ($2::text is null or n.name = $2::text)"
    " and ($3::text is null or n.state = $3::text) and (n.name, n.number) > ($4::text, $5::int8)"
    " order by n.name, n.number limit $6::int8",
};

const struct db_statement sql_notification_replay = {
    "notification_replay",
    "select case when h.n > 0 then sagad.act_told(h.n, $4::text, null) else h.n end from"
    " (select sagad.notification_replay($1::text, $2::text, $3::text[]) as n) as h",
    .has_row = true,
};
