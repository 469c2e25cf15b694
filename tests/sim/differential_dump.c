/* Dumps all tables as they are at the end of a script. Engines, shards and definitions are read with statements of the
 * store. */
#include "tests/sim/differential_dump.h"
#include "store/sql.h"

const struct db_statement sql_gate = {"gate", "select pg_advisory_xact_lock($1::int4, $2::int4)"};

#define DUMP(name, sql) const struct db_statement dump_##name = {"dump_" #name, sql};

DUMP(saga,
     "select s.shard, s.id, s.namespace, s.name, s.version, s.status, s.tags::text, s.business_id, s.business_digest,"
     " s.key_digest, s.input_digest, s.created_at, s.updated_at, s.ended_at,"
     " s.started_by from sagad.saga s order by s.shard, s.id")
DUMP(log, "select l.shard, l.saga, l.seq, l.records, l.at, l.epoch, l.payload, l.event_tx is not null, l.rest from"
          " sagad.log l order by l.shard, l.saga, l.seq")
DUMP(operation_key, "select k.shard, k.key, k.saga from sagad.operation_key k order by k.shard, k.key")
DUMP(key_bundle,
     "select b.shard, b.check_at, b.id, b.made_at, e.key, e.saga from sagad.key_bundle b"
     " cross join lateral unnest(b.keys, b.sagas) as e (key, saga) order by b.shard, b.check_at, b.id, e.key, e.saga")
DUMP(inbox, "select i.shard, i.id, i.saga, i.kind, i.payload from sagad.inbox i order by i.shard, i.id")
DUMP(awake, "select a.shard, a.saga from sagad.awake a order by a.shard, a.saga")
/* What was put off by the clock of either side lies after every time of the scripts. */
DUMP(due, "select d.shard, d.saga, d.what = 'forget', case when d.at < '2021-01-01Z' then d.at end,"
          " coalesce(array_to_string(d.holds, ','), '') from sagad.due d order by d.shard, d.saga")
DUMP(answer, "select a.shard, a.input, a.body from sagad.answer a order by a.shard, a.input")
DUMP(escalation, "select e.shard, e.number, e.saga, e.namespace, e.opened_at, e.resolved_at, e.step, e.reason, e.body"
                 " from sagad.escalation e order by e.shard, e.number")
DUMP(approval,
     "select a.shard, a.number, a.saga, a.namespace, a.opened_at, a.expires_at, a.ended_at, a.step, a.status, a.body"
     " from sagad.approval a order by a.shard, a.number")
DUMP(number_gone, "select n.shard, n.escalation, n.approval from sagad.number_gone n order by n.shard")
DUMP(lock, "select l.shard, l.digest, l.ticket, l.saga_shard, l.saga, l.namespace, l.key from sagad.lock l"
           " order by l.shard, l.digest, l.ticket")
DUMP(guard, "select g.shard, g.namespace, g.tool, g.rate_at, g.paused_until, g.breaker_open from sagad.guard g"
            " order by g.shard, g.namespace, g.tool")
DUMP(guard_place, "select p.shard, p.namespace, p.tool, p.holder from sagad.guard_place p"
                  " order by p.shard, p.namespace, p.tool, p.holder")
DUMP(guard_breaker,
     "select b.shard, b.namespace, b.tool, b.endpoint, b.state, cardinality(b.failures), b.open_until, b.cooldown_ms,"
     " b.opened, b.probe, b.probe_until from sagad.guard_breaker b"
     " order by b.shard, b.namespace, b.tool, b.endpoint")
DUMP(guard_budget,
     "select b.shard, b.name, b.period, b.calls, b.emissions, b.micros, b.unpriced from sagad.guard_budget b"
     " order by b.shard, b.name, b.period")
DUMP(guard_reservation, "select r.shard, r.namespace, r.tool, r.operation, r.state, cardinality(r.budgets),"
                        " (select sum(m)::int8 from unnest(r.micros) as m) from sagad.guard_reservation r"
                        " order by r.shard, r.namespace, r.tool, r.operation")
DUMP(schedule,
     "select s.shard, s.namespace, s.name, s.id, s.revision, s.zone, s.body, s.state, s.hold, s.actor, s.created_at,"
     " s.last_at, s.look_at from sagad.schedule s order by s.shard, s.namespace, s.name")
DUMP(case_event, "select c.shard, c.number, c.resolved, c.at, c.saga, c.namespace, c.reason from sagad.case_event c"
                 " order by c.shard, c.number, c.resolved")
DUMP(case_remark,
     "select r.shard, r.number, r.saga, r.acknowledged_by, r.acknowledged_until, r.acknowledged_case, r.assigned_to,"
     " array_to_string(r.remarks, ','), cardinality(r.ids) from sagad.case_remark r order by r.shard, r.number")
DUMP(debt_settled, "select d.shard, d.saga, d.operation, d.body from sagad.debt_settled d"
                   " order by d.shard, d.saga, d.operation")
/* Not the ids: they are random. */
DUMP(event, "select e.shard, e.namespace, e.type, e.subject, e.saga, e.data, e.once from sagad.event e"
            " order by e.shard, e.namespace, e.type, e.subject, e.data, e.once")
DUMP(notify, "select n.shard, n.namespace, n.name, n.tx, n.last from sagad.notify n"
             " order by n.shard, n.namespace, n.name")
DUMP(notification,
     "select n.shard, n.namespace, n.name, n.number, n.event, n.body, n.state, n.attempts, n.since, n.until, n.look_at,"
     " n.error from sagad.notification n order by n.shard, n.namespace, n.name, n.number")
DUMP(grant, "select g.id, g.secret, g.namespace, g.body, g.made_at, g.expires_at, g.revoked_at, g.revocation"
            " from sagad.agent_grant g order by g.id")
DUMP(event_gone, "select g.shard, g.namespace from sagad.event_gone g order by g.shard, g.namespace")
DUMP(series,
     "select s.namespace, s.span, s.at, s.kind, s.name, s.part, s.started, s.completed, s.compensated, s.abandoned,"
     " s.escalated, s.operations, s.calls, s.retries, s.calls_completed, s.calls_failed, s.calls_unknown, s.duplicates"
     " from sagad.series s order by s.namespace, s.span, s.at, s.kind, s.name, s.part")

DUMP(hold, "select h.number, h.id, h.namespace, h.body, h.made_at, h.until_at, h.released_at, h.release, h.ended_told"
           " from sagad.hold h order by h.number")
DUMP(engine_holds, "select e.instance, e.holds from sagad.engine e order by e.instance")

DUMP(bulk, "select b.shard, b.id, b.namespace, b.state, b.body, b.items, b.done, b.changed, b.refused, b.actor,"
           " b.created_at, b.expires_at, b.run, b.stop, b.ended_at, b.look_at from sagad.bulk b order by b.shard, b.id")
DUMP(bulk_item, "select i.shard, i.bulk, i.n, i.body, i.outcome, i.detail, i.look_at from sagad.bulk_item i"
                " order by i.shard, i.bulk, i.n")

const struct db_statement old_key = {
    "old_key",
    "insert into sagad.operation_key (shard, key, saga)"
    " select u.shard, u.key, u.saga from unnest($1::int2[], $2::uuid[], $3::uuid[]) as u (shard, key, saga)"
    " on conflict (shard, key) do nothing",
};

const struct kind dumps[] = {
    {&sql_lease_table, "iibbmtni"},
    {&sql_engine_table, "bbbbiiimniii"},
    {&sql_definition_load, "ibbibbmi"},
    {&dump_saga, "iubbibbbbbbtttb"},
    {&dump_log, "iuiitibi"},
    {&dump_operation_key, "iuu"},
    {&dump_key_bundle, "itxtuu"},
    {&dump_inbox, "ixubb"},
    {&dump_awake, "iu"},
    {&dump_due, "iuitb"},
    {&dump_answer, "iub"},
    {&dump_escalation, "iiubttbbb"},
    {&dump_approval, "iiubtttbbb"},
    {&dump_number_gone, "iii"},
    {&dump_lock, "ibiiubb"},
    {&dump_guard, "ibbmmb"},
    {&dump_guard_place, "ibbu"},
    {&dump_guard_breaker, "ibbbbimiium"},
    {&dump_guard_budget, "ibtiiii"},
    {&dump_guard_reservation, "ibbubii"},
    {&dump_schedule, "ibbuibbbbbmmm"},
    {&dump_case_event, "iiitubb"},
    {&dump_case_remark, "iiubttbbi"},
    {&dump_debt_settled, "iuub"},
    {&dump_grant, "ubbbmtmb"},
    {&dump_event_gone, "ib"},
    {&dump_event, "ibbbubb", .unordered = true},
    {&dump_notify, "ibbii"},
    {&dump_notification, "ibbibbbimmmb"},
    {&dump_series, "bitbbuiiiiiiiiiiii"},
    {&dump_hold, "iubbmtmbi"},
    {&dump_engine_holds, "bi"},
    {&sql_hold_version, "i"},
    {&dump_bulk, "iubbbiiiibmtbbmm"},
    {&dump_bulk_item, "iuibbbt"},
};
const size_t dump_count = sizeof(dumps) / sizeof(dumps[0]);
