/* The statement of the feed of events: see schema/migrations/0024_event.sql and 0030_notification.sql. */
#include "store/sql.h"

/* clang-format off */

/* The number of this transaction, or of an earlier one that may still write. */
#define EDGE "pg_snapshot_xmin(pg_current_snapshot())::text::int8"

#define BETWEEN(of) of ".event_tx > $1::int8 and " of ".event_tx < " EDGE

/*
 * $1: what was read; $2: the most rows; $3: the namespace; $4: the most bytes of whole transactions, at least one.
 * Returns one row without a turn when there is none. `cut` is a transaction that may be incomplete, because there were
 * $2 rows.
 */
const struct db_statement sql_event_list = {
    "event_list",
    "with found as materialized (select e.tx, e.shard, e.saga, e.seq, e.number, e.resolved, e.event, e.bytes"
    " from sagad.shard h cross join lateral ((select l.event_tx as tx, l.shard, l.saga, l.seq, null::int8 as number,"
    " null::bool as resolved, null::uuid as event, octet_length(l.payload) as bytes from sagad.log l"
    " where l.shard = h.shard and " BETWEEN("l") " order by l.event_tx limit $2::int8)"
    " union all (select c.event_tx, c.shard, c.saga, null, c.number, c.resolved, null, 0 from sagad.case_event c"
    " where c.shard = h.shard and " BETWEEN("c") " order by c.event_tx limit $2::int8)"
    " union all (select e.event_tx, e.shard, e.saga, null, null, null, e.id, octet_length(e.data) from sagad.event e"
    " where e.shard = h.shard and " BETWEEN("e") " order by e.event_tx limit $2::int8)) as e"
    " order by e.tx, e.shard, e.saga, e.seq, e.event limit $2::int8),"
    " fits as (select f.*, sum(f.bytes) over (order by f.tx) as through, min(f.tx) over () as first,"
    " case when count(*) over () = $2::int8 then max(f.tx) over () end as cut from found f)"
    " select " EDGE " - 1, (select max((select g.tx from sagad.event_gone g where g.shard = h.shard"
    " and g.namespace = $3::text)) from sagad.shard h), k.cut, k.tx, k.saga, k.seq, l.at,"
    " case when s.namespace = $3::text then l.payload end, s.name, s.version, s.business_id, s.tags::text,"
    " k.number, k.resolved, c.at, case when c.namespace = $3::text then c.reason end,"
    " e.id, e.at, case when e.namespace = $3::text then e.type end, e.subject, e.data"
    " from (select 1) as one left join fits k on k.through <= $4::int8 or k.tx = k.first"
    " left join sagad.log l on l.shard = k.shard and l.saga = k.saga and l.seq = k.seq"
    " left join sagad.case_event c on c.shard = k.shard and c.number = k.number and c.resolved = k.resolved"
    " left join sagad.event e on e.shard = k.shard and e.id = k.event"
    " left join sagad.saga s on s.shard = sagad.shard_of(k.saga) and s.id = k.saga"
    " order by k.tx, k.shard, k.saga, k.seq, k.event",
    .has_row = true,
};
