/* The tables of schema/migrations as structures. Keys come first. `ms` stands for timestamptz, with INT64_MIN and
 * INT64_MAX for the infinities. */
#ifndef SAGAD_TESTS_SIM_PG_ROWS_H
#define SAGAD_TESTS_SIM_PG_ROWS_H

#include "base/id.h"
#include "base/text.h"
#include "store/store.h" /* PARK_HOLDS_MAX */

enum pg_table {
    PG_SHARD,
    PG_SAGA, /* second keys: shard and business_digest, where that is not null; key_digest, where not null */
    PG_LOG,
    PG_OPERATION_KEY,
    PG_KEY_BUNDLE,
    PG_INBOX,
    PG_AWAKE,
    PG_DUE,
    PG_ANSWER,
    PG_ESCALATION,
    PG_APPROVAL,
    PG_NUMBER_GONE,
    PG_LOCK, /* second key: saga_shard, saga, digest */
    PG_ENGINE,
    PG_DEFINITION,
    PG_TOOL,
    PG_GUARD,
    PG_GUARD_PLACE,
    PG_GUARD_BREAKER,
    PG_GUARD_BUDGET,
    PG_GUARD_RESERVATION,
    PG_SCHEDULE,
    PG_SERIES,
    PG_HOLD,
    PG_HOLD_VERSION,
    PG_BULK,
    PG_BULK_ITEM,
    PG_EVENT_GONE,
    PG_CASE_EVENT,
    PG_CASE_REMARK,
    PG_DEBT_SETTLED,
    PG_EVENT,
    PG_NOTIFY,
    PG_NOTIFICATION,
    PG_GRANT,
    PG_PAYLOAD_KEY,
    PG_TABLE_COUNT
};

struct row_shard {
    int64_t shard; /* key */
    int64_t epoch, turns;
    struct slice owner, owner_identity; /* SLICE_NONE: null */
    bool has_expiry, has_low;
    int64_t expires_ms, low_ms;
};

struct row_saga {
    int64_t shard;
    struct uuid id; /* key */
    struct slice namespace, name, status, tags, business_id, business_digest, key_digest, input_digest, started_by;
    int64_t version;
    int64_t created_ms, updated_ms, ended_ms;
    bool has_ended;
};

struct row_log {
    int64_t shard;
    struct uuid saga;
    int64_t seq;                             /* key */
    int64_t records, at_ms, epoch, event_tx; /* event_tx 0: null */
    struct slice payload, rest;
};

struct row_operation_key {
    int64_t shard;
    struct uuid key; /* key */
    struct uuid saga;
};

struct row_key_bundle {
    int64_t shard, check_ms;
    struct uuid id; /* key */
    int64_t made_ms;
    struct slice keys, sagas; /* sixteen bytes for each */
};

struct row_inbox {
    int64_t shard;
    struct uuid id; /* key */
    int64_t at_ms;
    struct uuid saga;
    struct slice kind, payload;
};

struct row_awake {
    int64_t shard;
    struct uuid saga; /* key */
};

struct row_due {
    int64_t shard;
    struct uuid saga; /* key */
    bool is_forget;   /* else 'parked' */
    int64_t at_ms;
    /* rising; 0: null */
    int64_t holds[PARK_HOLDS_MAX];
    size_t hold_count;
};

struct row_answer {
    int64_t shard;
    struct uuid input; /* key */
    int64_t at_ms;
    struct slice body;
};

struct row_escalation {
    int64_t shard, number; /* key */
    struct uuid saga;
    struct slice namespace, step, reason, body;
    int64_t opened_ms, resolved_ms;
    bool is_resolved;
};

struct row_case_remark {
    int64_t shard, number; /* key */
    struct uuid saga;
    struct slice acknowledged_by, assigned_to, remarks; /* remarks: JSON objects with commas between them */
    int64_t acknowledged_until_ms, acknowledged_case_ms;
    bool has_until;
    int64_t remark_count;
    struct slice ids; /* the bytes of the ids, one after the other */
};

struct row_debt_settled {
    int64_t shard;
    struct uuid saga, operation; /* key */
    struct slice body;
};

struct row_grant {
    struct uuid id; /* key */
    struct slice secret, namespace, body, revocation;
    int64_t made_ms, expires_ms, revoked_ms; /* revoked_ms 0: null */
};

struct row_payload_key {
    struct slice name; /* key */
    struct slice proof;
};

struct row_approval {
    int64_t shard, number; /* key */
    struct uuid saga;
    struct slice namespace, step, status, body;
    int64_t opened_ms, expires_ms, ended_ms;
    bool has_expiry, has_ended;
};

struct row_number_gone {
    int64_t shard; /* key */
    int64_t escalation, approval;
};

struct row_lock {
    int64_t shard;
    struct slice digest;
    int64_t ticket; /* key */
    int64_t saga_shard;
    struct uuid saga;
    struct slice namespace, key;
    int64_t at_ms;
};

struct row_engine {        /* of migration 0008 */
    struct slice instance; /* key */
    struct slice identity, name, version;
    int64_t schema, started_ms, expires_ms, append_lag_ms, due_lag_ms, inbox_rows;
    bool standby, leaving;
    bool knows_no_holds; /* holds is null: the engine is of a release before migration 0022 */
    int64_t holds;
};

struct row_definition { /* for PG_DEFINITION and PG_TOOL */
    struct slice namespace, name;
    int64_t version; /* key */
    struct slice identity, body;
    int64_t created_ms, reading;
};

struct row_guard {
    int64_t shard;
    struct slice namespace, tool; /* key */
    int64_t rate_us, paused_us;   /* microseconds since 1970; INT64_MIN: -infinity */
    struct slice breaker_open;    /* SLICE_NONE: null */
};

struct row_guard_place {
    int64_t shard;
    struct slice namespace, tool;
    struct uuid holder; /* key */
    int64_t expires_us;
};

#define ROW_FAILURES_MAX 64

struct row_guard_breaker {
    int64_t shard;
    struct slice namespace, tool, endpoint; /* key */
    struct slice state;
    int64_t failures_us[ROW_FAILURES_MAX];
    size_t failure_count;
    int64_t open_until_us, cooldown_ms, opened, probe_until_us;
    bool has_probe;
    struct uuid probe;
};

struct row_guard_budget {
    int64_t shard;
    struct slice name;
    int64_t period_ms; /* key */
    int64_t calls, emissions, micros, unpriced;
};

#define ROW_BUDGETS_MAX 16

struct row_guard_reservation {
    int64_t shard;
    struct slice namespace, tool;
    struct uuid operation; /* key */
    int64_t at_ms;
    struct slice state;
    size_t budget_count;
    int64_t budget_shards[ROW_BUDGETS_MAX], periods_ms[ROW_BUDGETS_MAX], micros[ROW_BUDGETS_MAX];
    struct slice budgets[ROW_BUDGETS_MAX];
};

struct row_schedule { /* of migration 0020 */
    int64_t shard;
    struct slice namespace, name; /* key */
    struct uuid id;
    int64_t revision;
    struct slice zone, body, state, hold, actor; /* zone, hold: SLICE_NONE: null */
    int64_t created_ms, last_ms, look_ms;
};

#define ROW_FIGURES 12

struct row_series { /* of migration 0021 */
    struct slice namespace;
    int64_t span, at_ms;
    struct slice kind, name;
    struct uuid part; /* key */
    int64_t figures[ROW_FIGURES];
};

struct row_hold {   /* of migration 0022 */
    int64_t number; /* key */
    struct uuid id;
    struct slice namespace, body, release;  /* release: SLICE_NONE: null */
    int64_t made_ms, until_ms, released_ms; /* 0: null */
    bool ended_told;                        /* of migration 0034 */
};

struct row_hold_version { /* its one row */
    int64_t version;
};

struct row_bulk { /* of migration 0023 */
    int64_t shard;
    struct uuid id;                                        /* key */
    struct slice namespace, state, body, actor, run, stop; /* run, stop: SLICE_NONE: null */
    int64_t items, done, changed, refused;
    int64_t created_ms, expires_ms, ended_ms /* 0: null */, look_ms;
};

struct row_bulk_item {
    int64_t shard;
    struct uuid bulk;
    int64_t number;                     /* key */
    struct slice body, outcome, detail; /* outcome, detail: SLICE_NONE: null */
    int64_t look_ms;
};

struct row_case_event { /* of migration 0024 */
    int64_t shard, number;
    bool is_resolved; /* key */
    int64_t event_tx, at_ms;
    struct uuid saga;
    struct slice namespace, reason;
};

struct row_event { /* of migration 0030 */
    int64_t shard;
    struct uuid id; /* key */
    int64_t event_tx, at_ms;
    struct slice namespace, type, subject, data, once; /* once: SLICE_NONE: null */
    bool has_saga;
    struct uuid saga;
};

struct row_notify { /* of migration 0030 */
    int64_t shard;
    struct slice namespace, name; /* key */
    int64_t tx, last;
};

struct row_notification { /* of migration 0030 */
    int64_t shard;
    struct slice namespace, name;
    int64_t number;                  /* key */
    struct slice event, body, error; /* error: SLICE_NONE: null */
    bool is_dead;
    int64_t attempts, since_ms, until_ms, look_ms;
};

struct row_event_gone { /* of migration 0024 */
    int64_t shard;
    struct slice namespace; /* key */
    int64_t tx;
};

#endif
