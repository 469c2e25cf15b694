/* The statements about questions to people, which are cases and approvals: lists, groups, one by its number. */
#include "store/sql.h"

/* clang-format off */

/*
 * Questions to people, the newest first, with filters. A number carries its shard, so the order over all shards is that
 * of `opened_at`. $1 and $2 are the time and the number of the last row of the page before, or null. The newest $5
 * questions are looked at. The last of these is in the answer whether or not it fits, and says that there may be more.
 * An absent filter fits everything; an empty value fits questions without one.
 */
#define QUESTION_COLUMNS(ended_at) "q.number, q.saga, q.body, q." ended_at " is null, q.opened_at, s.name," \
    " s.business_id, s.tags::text, s.started_by"

/* A refused follower may be in another shard than the question about it. */
#define SAGA_OF_QUESTION " left join sagad.saga s on s.shard = get_byte(uuid_send(q.saga), 15)::int2 and s.id = q.saga"

/* The id is null where the saga does not matter, so that the index is not read. A condition beside the id would be
 * tried on the row that was read for it. */
#define SAGA_OF_QUESTION_IF(condition) \
    " left join sagad.saga s on s.shard = get_byte(uuid_send(q.saga), 15)::int2" \
    " and s.id = case when " condition " then q.saga end"

#define ESCALATION_FACTS "g.tool, g.reason, g.error, g.cost, g.currency, g.resolved_at as ended_at," \
    " case when g.resolved_at is null then 'open' else 'resolved' end as status"
#define APPROVAL_FACTS \
    "null::text as tool, null::text as reason, null::text as error, null::int8 as cost, null::text as currency," \
    " g.ended_at, g.status"

/* What people have said of a question; of approvals they say nothing. A case that was asked again is nobody's. */
#define ESCALATION_REMARK " left join sagad.case_remark r on r.shard = q.shard and r.number = q.number"
/* The same for groups, which show nothing of it: it is read only for a filter, as SAGA_OF_QUESTION_IF() above. */
#define ESCALATION_REMARK_IF(condition) \
    " left join sagad.case_remark r on r.shard = q.shard and r.number = case when " condition " then q.number end"
#define APPROVAL_REMARK \
    " cross join (select null::text as acknowledged_by, null::timestamptz as acknowledged_until," \
    " null::timestamptz as acknowledged_case, null::text as assigned_to, null::text[] as remarks) as r"
#define LOOKED_AT "r.acknowledged_by is not null and r.acknowledged_case = q.opened_at"
#define REMARK_COLUMNS \
    "case when " LOOKED_AT " then r.acknowledged_by end, r.acknowledged_until, r.assigned_to," \
    " coalesce(cardinality(r.remarks), 0)"

#define QUESTION_NEWEST(table, facts, condition) \
    "(select g.shard, g.number, g.saga, g.body, g.opened_at, g.step, " facts "," \
    " row_number() over (order by g.opened_at desc, g.number desc) as place from sagad." table " g" \
    " where g.namespace = $3::text and (g.opened_at, g.number) < (coalesce($1::timestamptz, 'infinity')," \
    " coalesce($2::int8, 0)) and g.opened_at >= coalesce($6::timestamptz, '-infinity')" \
    " and g.opened_at < coalesce($7::timestamptz, 'infinity')" condition \
    " order by g.opened_at desc, g.number desc limit $5::int8) as q"

#define ONE_OF(number, value) \
    "(cardinality($" number "::text[]) = 0 or coalesce(" value ", '') = any($" number "::text[]))"
#define FITS_ITSELF \
    "(" ONE_OF("8", "q.status") " and " ONE_OF("9", "q.tool") " and " ONE_OF("11", "q.step") \
    " and " ONE_OF("12", "q.reason") " and " ONE_OF("13", "q.error") \
    " and ($15::int8 is null or coalesce(q.cost > $15::int8, false)))"
#define FITS_BY_REMARK \
    "(($16::bool is null or $16::bool = (" LOOKED_AT \
    " and coalesce(r.acknowledged_until > $17::timestamptz, true))) and " ONE_OF("18", "r.assigned_to") ")"
#define FITS_BY_SAGA \
    "(" ONE_OF("10", "s.name") \
    " and (cardinality($14::text[]) = 0 or coalesce(s.tags @> any($14::text[]::jsonb[]), false)))"

/* The saga of a question that does not fit by itself is not looked up. */
#define QUESTION_WANTED \
    " where (" FITS_ITSELF " or q.place = $5::int8) and (" FITS_BY_REMARK " or q.place = $5::int8)" \
    " and (" FITS_BY_SAGA " or q.place = $5::int8)"

#define QUESTION_LIST(table, facts, condition, remark) \
    "select " QUESTION_COLUMNS("ended_at") ", " FITS_ITSELF " and " FITS_BY_REMARK " and " FITS_BY_SAGA "," \
    " q.place = $5::int8, " REMARK_COLUMNS ", null::text from " \
    QUESTION_NEWEST(table, facts, condition) remark SAGA_OF_QUESTION QUESTION_WANTED \
    " order by q.opened_at desc, q.number desc limit $4::int8"

/*
 * The last question that was looked at has its own row, before the others, when it does not fit. $19 to $23 say which
 * columns make the groups; $24 names the tags that do, as a JSON array in the answer. Sagas are looked up only when
 * they matter.
 *
 * Amounts of two currencies are never added: the inner groups have one currency each, and an outer group lists their
 * sums, the one without a currency last.
 */
#define QUESTION_GROUP_KEYS "r.fits, r.tool, r.saga_name, r.step, r.reason, r.error, r.tags"
#define QUESTION_GROUP(table, facts, condition, remark) \
    "select " QUESTION_GROUP_KEYS ", sum(r.n)::int8, min(r.oldest), max(r.newest)," \
    " string_agg(format('{\"currency\":%s,\"micros\":%s,\"cases\":%s}', coalesce(to_json(r.currency)::text, 'null')," \
    " least(r.cost, 9223372036854775807), r.priced), ',' order by r.currency collate \"C\")" \
    " filter (where r.priced > 0), sum(r.n - r.priced)::int8," \
    " max(r.place) = $5::int8 from (select " QUESTION_GROUP_KEYS ", r.currency, count(*) as n," \
    " min(r.opened_at) as oldest, max(r.opened_at) as newest, sum(r.cost) as cost," \
    " count(r.cost) as priced, max(r.number) as number, max(r.place) as place from (select " \
    FITS_ITSELF " and " FITS_BY_REMARK " and " FITS_BY_SAGA " as fits," \
    " case when $19::bool then q.tool end as tool," \
    " case when $20::bool then s.name end as saga_name, case when $21::bool then q.step end as step," \
    " case when $22::bool then q.reason end as reason, case when $23::bool then q.error end as error," \
    " case when cardinality($24::text[]) > 0 then" \
    " (select array_to_json(array_agg(s.tags ->> k.name order by k.i))::text from unnest($24::text[]) with ordinality" \
    " as k (name, i)) end as tags, q.opened_at, q.number, q.cost, q.currency, q.place from " \
    QUESTION_NEWEST(table, facts, condition) remark SAGA_OF_QUESTION_IF( \
        "$20::bool or cardinality($10::text[]) + cardinality($14::text[]) + cardinality($24::text[]) > 0") \
    QUESTION_WANTED ") as r group by " QUESTION_GROUP_KEYS ", r.currency) as r group by " QUESTION_GROUP_KEYS \
    " order by r.fits, sum(r.n) desc, max(r.number) desc limit $4::int8"

/* "is not distinct": a plan made while there are no questions would search by the namespace instead of the number. */
#define QUESTION_ONE(table, ended_at, remark) \
    "select " QUESTION_COLUMNS(ended_at) ", true, false, " REMARK_COLUMNS ", array_to_string(r.remarks, ',')" \
    " from sagad." table " q" remark SAGA_OF_QUESTION \
    " where q.shard = $1::int2 and q.number = $2::int8 and q.namespace is not distinct from $3::text"

#define ESCALATIONS_OPEN " and g.resolved_at is null"
#define APPROVALS_OPEN " and g.ended_at is null"

#define ESCALATIONS_LISTED(condition) QUESTION_LIST("escalation", ESCALATION_FACTS, condition, ESCALATION_REMARK)
#define ESCALATIONS_GROUPED(condition) \
    QUESTION_GROUP("escalation", ESCALATION_FACTS, condition, \
                   ESCALATION_REMARK_IF("$16::bool is not null or cardinality($18::text[]) > 0"))
#define APPROVALS_LISTED(condition) QUESTION_LIST("approval", APPROVAL_FACTS, condition, APPROVAL_REMARK)
#define APPROVALS_GROUPED(condition) QUESTION_GROUP("approval", APPROVAL_FACTS, condition, APPROVAL_REMARK)

const struct db_statement sql_escalation_list = {"escalation_list", ESCALATIONS_LISTED("")};
const struct db_statement sql_escalation_list_open = {"escalation_list_open", ESCALATIONS_LISTED(ESCALATIONS_OPEN)};
const struct db_statement sql_escalation_sum = {"escalation_sum", ESCALATIONS_GROUPED("")};
const struct db_statement sql_escalation_sum_open = {"escalation_sum_open", ESCALATIONS_GROUPED(ESCALATIONS_OPEN)};
const struct db_statement sql_escalation_one = {
    "escalation_one", QUESTION_ONE("escalation", "resolved_at", ESCALATION_REMARK)};

const struct db_statement sql_approval_list = {"approval_list", APPROVALS_LISTED("")};
const struct db_statement sql_approval_list_open = {"approval_list_open", APPROVALS_LISTED(APPROVALS_OPEN)};
const struct db_statement sql_approval_sum = {"approval_sum", APPROVALS_GROUPED("")};
const struct db_statement sql_approval_sum_open = {"approval_sum_open", APPROVALS_GROUPED(APPROVALS_OPEN)};
const struct db_statement sql_approval_one = {"approval_one", QUESTION_ONE("approval", "ended_at", APPROVAL_REMARK)};
