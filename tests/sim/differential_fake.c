/*
 * The fake's half of differential.h. It plays the scripts of some seeds and writes their transcripts to standard
 * output. Each seed has a line with its number and the count of different transcripts, and each transcript comes behind
 * its length.
 *
 * differential_fake FIRST_SEED COUNT
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/migrate.h"
#include "tests/sim/differential_dump.h"
#include "tests/sim/memory.h"
#include "tests/sim/network.h"
#include "tests/sim/pg_state.h"
#include "tests/sim/pg_statements.h"

enum { TRIES_ALIKE = 40, TRIES = 120, TRANSCRIPT_BYTES_MAX = 16 * 1024 * 1024 };

static struct world the_world;
static uint64_t world_seed;
static struct pg_session *sessions[ACTORS];

/* There are no nodes here and no statements of a start. */

struct memory_owner *memory_switch(struct memory_owner *owner)
{
    return owner;
}

void network_forget(void)
{
}

int migrate_newest(void)
{
    return 0;
}

/* --- what the server says --- */

static size_t actor_of(const struct pg_session *session)
{
    return (size_t)(uintptr_t)pg_context(session);
}

static void on_rows(struct pg_session *session, size_t query, const struct db_rows *rows)
{
    actor_rows(actor_of(session), query, rows);
}

static void on_over(struct pg_session *session, enum db_outcome outcome, bool warned, const char *sqlstate,
                    size_t failed_query)
{
    CHECK(!warned);
    actor_over(actor_of(session), outcome, sqlstate, failed_query);
}

static void on_notify(struct pg_session *session, struct slice channel, struct slice payload)
{
    (void)session;
    actor_notified(channel, payload);
}

static void on_gone(struct pg_session *session)
{
    world_violate("SIM", "session %zu was ended", actor_of(session));
}

static const struct pg_client client = {on_rows, on_over, on_notify, on_gone};

/* --- the side --- */

void side_begin(void)
{
    static const char *const listen[] = {
        "listen sagad_inbox",     "listen sagad_answers", "listen sagad_definitions", "listen sagad_leases",
        "listen sagad_schedules", "listen sagad_holds",   "listen sagad_bulk",        NULL};

    jmp_buf stop;

    memcpy(&stop, &the_world.stop, sizeof(stop));
    world_init(&the_world, world_seed);
    memcpy(&the_world.stop, &stop, sizeof(stop));
    world->pg = pg_new();
    for (size_t i = 0; i < ACTORS; i++) {
        sessions[i] = pg_connect(world->pg, "differential", i == 0 ? listen : NULL, &client, (void *)(uintptr_t)i);
        CHECK(sessions[i]);
    }
}

void side_submit(size_t actor, struct transaction *transaction)
{
    pg_submit(sessions[actor], transaction->queries, transaction->count);
}

static bool is_still(struct pg_session *session)
{
    return session->phase == PG_IDLE || (session->phase == PG_WAITING && !session->woken && !line_has_cycle(session));
}

void side_settle(enum actor_state states[ACTORS])
{
    bool still;

    do {
        still = true;
        for (size_t i = 0; i < ACTORS; i++) {
            still = still && is_still(sessions[i]);
        }
    } while (!still && world_step());
    CHECK(still);
    for (size_t i = 0; i < ACTORS; i++) {
        const struct pg_session *session = sessions[i];
        bool at_gate = session->wait == PG_WAIT_ADVISORY && session->wait_advisory->class == GATE_CLASS;

        states[i] = session->phase == PG_IDLE ? ACTOR_IDLE : at_gate ? ACTOR_AT_GATE : ACTOR_WAITS;
    }
}

void side_end(void)
{
    enum actor_state states[ACTORS];

    side_settle(states);
    pg_fini(world->pg);
    world_fini(&the_world);
}

int64_t side_clock_ms(void)
{
    return pg_clock_ms(world->pg);
}

/* --- whole tables --- */

#define FOR_ROWS(table, type, first)                                                                                   \
    for (struct pg_row *at = pg_first(call, (table), (first)); at; at = pg_next(call, (table), at))                    \
        for (const struct type *row = pg_see(call, at); row; row = NULL)

static void put_time(struct pg_call *call, bool is_there, int64_t ms)
{
    if (is_there) {
        put_time_ms(call, ms);
    } else {
        put_null(call);
    }
}

static void put_time_of_us(struct pg_call *call, int64_t us)
{
    put_time_ms(call, us == INT64_MIN ? us : us / 1000);
}

static enum pg_progress dump_saga_rows(struct pg_call *call)
{
    FOR_ROWS(PG_SAGA, row_saga, &(struct row_saga){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->id);
        put_bytes(call, row->namespace);
        put_bytes(call, row->name);
        put_int(call, row->version);
        put_bytes(call, row->status);
        put_bytes(call, row->tags);
        put_bytes(call, row->business_id);
        put_bytes(call, row->business_digest);
        put_bytes(call, row->key_digest);
        put_bytes(call, row->input_digest);
        put_time_ms(call, row->created_ms);
        put_time_ms(call, row->updated_ms);
        put_time(call, row->has_ended, row->ended_ms);
        put_bytes(call, row->started_by);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_log_rows(struct pg_call *call)
{
    FOR_ROWS(PG_LOG, row_log, &(struct row_log){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->saga);
        put_int(call, row->seq);
        put_int(call, row->records);
        put_time_ms(call, row->at_ms);
        put_int(call, row->epoch);
        put_bytes(call, row->payload);
        put_int(call, row->event_tx > 0);
        put_bytes(call, row->rest);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_operation_key_rows(struct pg_call *call)
{
    FOR_ROWS(PG_OPERATION_KEY, row_operation_key, &(struct row_operation_key){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->key);
        put_uuid(call, &row->saga);
        put_row_end(call);
    }
    return PG_DONE;
}

struct pair {
    struct uuid key, saga;
};

static int by_key_and_saga(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = uuid_compare(&x->key, &y->key);

    return order ? order : uuid_compare(&x->saga, &y->saga);
}

static enum pg_progress dump_key_bundle_rows(struct pg_call *call)
{
    FOR_ROWS(PG_KEY_BUNDLE, row_key_bundle, &((struct row_key_bundle){.shard = INT16_MIN, .check_ms = INT64_MIN}))
    {
        size_t count = row->keys.len / sizeof(struct uuid);
        struct pair *pairs = arena_array(call->arena, count + 1, sizeof(*pairs));

        for (size_t i = 0; i < count; i++) {
            memcpy(&pairs[i].key, row->keys.ptr + i * sizeof(struct uuid), sizeof(struct uuid));
            memcpy(&pairs[i].saga, row->sagas.ptr + i * sizeof(struct uuid), sizeof(struct uuid));
        }
        qsort(pairs, count, sizeof(*pairs), by_key_and_saga);
        for (size_t i = 0; i < count; i++) {
            put_int(call, row->shard);
            put_time_ms(call, row->check_ms);
            put_uuid(call, &row->id);
            put_time_ms(call, row->made_ms);
            put_uuid(call, &pairs[i].key);
            put_uuid(call, &pairs[i].saga);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

static enum pg_progress put_old_keys(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_operation_key row = {item_int(call, 0, i), item_uuid(call, 1, i), item_uuid(call, 2, i)};
        bool inserted;

        RETURN_UNLESS_DONE(pg_insert_new(call, PG_OPERATION_KEY, &row, &inserted));
        affected += inserted;
    }
    return end_with_affected(call, affected);
}

static enum pg_progress dump_inbox_rows(struct pg_call *call)
{
    FOR_ROWS(PG_INBOX, row_inbox, &(struct row_inbox){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->id);
        put_uuid(call, &row->saga);
        put_bytes(call, row->kind);
        put_bytes(call, row->payload);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_awake_rows(struct pg_call *call)
{
    FOR_ROWS(PG_AWAKE, row_awake, &(struct row_awake){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->saga);
        put_row_end(call);
    }
    return PG_DONE;
}

static void put_holds(struct pg_call *call, const struct row_due *row)
{
    struct buffer text;

    buffer_init(&text, 1024);
    for (size_t i = 0; i < row->hold_count; i++) {
        buffer_printf(&text, i == 0 ? "%lld" : ",%lld", (long long)row->holds[i]);
    }
    put_bytes(call, arena_slice(call->arena, buffer_slice(&text)));
    buffer_fini(&text);
}

static enum pg_progress dump_due_rows(struct pg_call *call)
{
    FOR_ROWS(PG_DUE, row_due, &(struct row_due){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->saga);
        put_int(call, row->is_forget);
        put_time(call, row->at_ms < INT64_C(1609459200000), row->at_ms);
        put_holds(call, row);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_answer_rows(struct pg_call *call)
{
    FOR_ROWS(PG_ANSWER, row_answer, &(struct row_answer){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->input);
        put_bytes(call, row->body);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_escalation_rows(struct pg_call *call)
{
    FOR_ROWS(PG_ESCALATION, row_escalation, &(struct row_escalation){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_int(call, row->number);
        put_uuid(call, &row->saga);
        put_bytes(call, row->namespace);
        put_time_ms(call, row->opened_ms);
        put_time(call, row->is_resolved, row->resolved_ms);
        put_bytes(call, row->step);
        put_bytes(call, row->reason);
        put_bytes(call, row->body);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_approval_rows(struct pg_call *call)
{
    FOR_ROWS(PG_APPROVAL, row_approval, &(struct row_approval){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_int(call, row->number);
        put_uuid(call, &row->saga);
        put_bytes(call, row->namespace);
        put_time_ms(call, row->opened_ms);
        put_time(call, row->has_expiry, row->expires_ms);
        put_time(call, row->has_ended, row->ended_ms);
        put_bytes(call, row->step);
        put_bytes(call, row->status);
        put_bytes(call, row->body);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_number_gone_rows(struct pg_call *call)
{
    FOR_ROWS(PG_NUMBER_GONE, row_number_gone, &(struct row_number_gone){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_int(call, row->escalation);
        put_int(call, row->approval);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_lock_rows(struct pg_call *call)
{
    FOR_ROWS(PG_LOCK, row_lock, (&(struct row_lock){.shard = INT16_MIN, .digest = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->digest);
        put_int(call, row->ticket);
        put_int(call, row->saga_shard);
        put_uuid(call, &row->saga);
        put_bytes(call, row->namespace);
        put_bytes(call, row->key);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_guard_rows(struct pg_call *call)
{
    FOR_ROWS(PG_GUARD, row_guard, (&(struct row_guard){.shard = INT16_MIN, .namespace = SLICE(""), .tool = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->tool);
        put_time_of_us(call, row->rate_us);
        put_time_of_us(call, row->paused_us);
        if (row->breaker_open.ptr) {
            put_bytes(call, row->breaker_open);
        } else {
            put_null(call);
        }
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_guard_place_rows(struct pg_call *call)
{
    FOR_ROWS(PG_GUARD_PLACE, row_guard_place,
             (&(struct row_guard_place){.shard = INT16_MIN, .namespace = SLICE(""), .tool = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->tool);
        put_uuid(call, &row->holder);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_guard_breaker_rows(struct pg_call *call)
{
    FOR_ROWS(PG_GUARD_BREAKER, row_guard_breaker,
             (&(struct row_guard_breaker){
                 .shard = INT16_MIN, .namespace = SLICE(""), .tool = SLICE(""), .endpoint = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->tool);
        put_bytes(call, row->endpoint);
        put_bytes(call, row->state);
        put_int(call, (int64_t)row->failure_count);
        put_time_of_us(call, row->open_until_us);
        put_int(call, row->cooldown_ms);
        put_int(call, row->opened);
        if (row->has_probe) {
            put_uuid(call, &row->probe);
        } else {
            put_null(call);
        }
        put_time_of_us(call, row->probe_until_us);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_guard_budget_rows(struct pg_call *call)
{
    FOR_ROWS(PG_GUARD_BUDGET, row_guard_budget,
             (&(struct row_guard_budget){.shard = INT16_MIN, .name = SLICE(""), .period_ms = INT64_MIN}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->name);
        put_time_ms(call, row->period_ms);
        put_int(call, row->calls);
        put_int(call, row->emissions);
        put_int(call, row->micros);
        put_int(call, row->unpriced);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_guard_reservation_rows(struct pg_call *call)
{
    FOR_ROWS(PG_GUARD_RESERVATION, row_guard_reservation,
             (&(struct row_guard_reservation){.shard = INT16_MIN, .namespace = SLICE(""), .tool = SLICE("")}))
    {
        int64_t micros = 0;

        for (size_t i = 0; i < row->budget_count; i++) {
            micros += row->micros[i];
        }
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->tool);
        put_uuid(call, &row->operation);
        put_bytes(call, row->state);
        put_int(call, (int64_t)row->budget_count);
        put_int(call, micros);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_bulk_rows(struct pg_call *call)
{
    FOR_ROWS(PG_BULK, row_bulk, (&(struct row_bulk){.shard = INT16_MIN}))
    {
        put_int(call, row->shard);
        put_uuid(call, &row->id);
        put_bytes(call, row->namespace);
        put_bytes(call, row->state);
        put_bytes(call, row->body);
        put_int(call, row->items);
        put_int(call, row->done);
        put_int(call, row->changed);
        put_int(call, row->refused);
        put_bytes(call, row->actor);
        put_time_ms(call, row->created_ms);
        put_time_ms(call, row->expires_ms);
        put_bytes(call, row->run);
        put_bytes(call, row->stop);
        if (row->ended_ms) {
            put_time_ms(call, row->ended_ms);
        } else {
            put_null(call);
        }
        put_time_ms(call, row->look_ms);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_bulk_item_rows(struct pg_call *call)
{
    FOR_ROWS(PG_BULK_ITEM, row_bulk_item, (&(struct row_bulk_item){.shard = INT16_MIN}))
    {
        put_int(call, row->shard);
        put_uuid(call, &row->bulk);
        put_int(call, row->number);
        put_bytes(call, row->body);
        put_bytes(call, row->outcome);
        put_bytes(call, row->detail);
        put_time_ms(call, row->look_ms);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_schedule_rows(struct pg_call *call)
{
    FOR_ROWS(PG_SCHEDULE, row_schedule,
             (&(struct row_schedule){.shard = INT16_MIN, .namespace = SLICE(""), .name = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->name);
        put_uuid(call, &row->id);
        put_int(call, row->revision);
        put_bytes(call, row->zone);
        put_bytes(call, row->body);
        put_bytes(call, row->state);
        put_bytes(call, row->hold);
        put_bytes(call, row->actor);
        put_time_ms(call, row->created_ms);
        put_time_ms(call, row->last_ms);
        put_time_ms(call, row->look_ms);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_case_remark_rows(struct pg_call *call)
{
    FOR_ROWS(PG_CASE_REMARK, row_case_remark, &(struct row_case_remark){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_int(call, row->number);
        put_uuid(call, &row->saga);
        put_bytes(call, row->acknowledged_by);
        put_time(call, row->has_until, row->acknowledged_until_ms);
        put_time(call, row->acknowledged_by.ptr, row->acknowledged_case_ms);
        put_bytes(call, row->assigned_to);
        put_bytes(call, row->remarks.ptr ? row->remarks : SLICE(""));
        put_int(call, row->remark_count);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_debt_settled_rows(struct pg_call *call)
{
    FOR_ROWS(PG_DEBT_SETTLED, row_debt_settled, &(struct row_debt_settled){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_uuid(call, &row->saga);
        put_uuid(call, &row->operation);
        put_bytes(call, row->body);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_case_event_rows(struct pg_call *call)
{
    FOR_ROWS(PG_CASE_EVENT, row_case_event, &(struct row_case_event){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_int(call, row->number);
        put_int(call, row->is_resolved);
        put_time_ms(call, row->at_ms);
        put_uuid(call, &row->saga);
        put_bytes(call, row->namespace);
        put_bytes(call, row->reason);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_notify_rows(struct pg_call *call)
{
    FOR_ROWS(PG_NOTIFY, row_notify,
             (&(struct row_notify){.shard = INT16_MIN, .namespace = SLICE(""), .name = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->name);
        put_int(call, row->tx);
        put_int(call, row->last);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_notification_rows(struct pg_call *call)
{
    FOR_ROWS(PG_NOTIFICATION, row_notification,
             (&(struct row_notification){.shard = INT16_MIN, .namespace = SLICE(""), .name = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->name);
        put_int(call, row->number);
        put_bytes(call, row->event);
        put_bytes(call, row->body);
        put_bytes(call, row->is_dead ? SLICE("dead") : SLICE("pending"));
        put_int(call, row->attempts);
        put_time_ms(call, row->since_ms);
        put_time_ms(call, row->until_ms);
        put_time_ms(call, row->look_ms);
        put_bytes(call, row->error);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_event_rows(struct pg_call *call)
{
    FOR_ROWS(PG_EVENT, row_event, &(struct row_event){.shard = INT16_MIN})
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_bytes(call, row->type);
        put_bytes(call, row->subject);
        if (row->has_saga) {
            put_uuid(call, &row->saga);
        } else {
            put_null(call);
        }
        put_bytes(call, row->data);
        put_bytes(call, row->once);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_event_gone_rows(struct pg_call *call)
{
    FOR_ROWS(PG_EVENT_GONE, row_event_gone, (&(struct row_event_gone){.shard = INT16_MIN, .namespace = SLICE("")}))
    {
        put_int(call, row->shard);
        put_bytes(call, row->namespace);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_series_rows(struct pg_call *call)
{
    FOR_ROWS(PG_SERIES, row_series,
             (&(struct row_series){
                 .namespace = SLICE(""), .span = INT16_MIN, .at_ms = INT64_MIN, .kind = SLICE(""), .name = SLICE("")}))
    {
        put_bytes(call, row->namespace);
        put_int(call, row->span);
        put_time_ms(call, row->at_ms);
        put_bytes(call, row->kind);
        put_bytes(call, row->name);
        put_uuid(call, &row->part);
        for (size_t i = 0; i < ROW_FIGURES; i++) {
            put_int(call, row->figures[i]);
        }
        put_row_end(call);
    }
    return PG_DONE;
}

static void put_time_if_any(struct pg_call *call, int64_t ms)
{
    if (ms) {
        put_time_ms(call, ms);
    } else {
        put_null(call);
    }
}

static enum pg_progress dump_hold_rows(struct pg_call *call)
{
    FOR_ROWS(PG_HOLD, row_hold, (&(struct row_hold){.number = INT64_MIN}))
    {
        put_int(call, row->number);
        put_uuid(call, &row->id);
        put_bytes(call, row->namespace);
        put_bytes(call, row->body);
        put_time_ms(call, row->made_ms);
        put_time_if_any(call, row->until_ms);
        put_time_if_any(call, row->released_ms);
        put_bytes(call, row->release);
        put_int(call, row->ended_told);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_grant_rows(struct pg_call *call)
{
    FOR_ROWS(PG_GRANT, row_grant, &(struct row_grant){{{0}}})
    {
        put_uuid(call, &row->id);
        put_bytes(call, row->secret);
        put_bytes(call, row->namespace);
        put_bytes(call, row->body);
        put_time_ms(call, row->made_ms);
        put_time_ms(call, row->expires_ms);
        put_time_if_any(call, row->revoked_ms);
        put_bytes(call, row->revocation);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress dump_engine_holds_rows(struct pg_call *call)
{
    FOR_ROWS(PG_ENGINE, row_engine, (&(struct row_engine){.instance = SLICE("")}))
    {
        put_bytes(call, row->instance);
        put_int(call, row->holds);
        put_row_end(call);
    }
    return PG_DONE;
}

static enum pg_progress gate(struct pg_call *call)
{
    RETURN_UNLESS_DONE(pg_advisory_xact(call, arg_int(call, 0), arg_int(call, 1)));
    pg_put_void(call);
    return PG_DONE;
}

static void add_dumps(void)
{
    const struct {
        const struct db_statement *statement;
        pg_statement *function;
    } added[] = {{&dump_saga, dump_saga_rows},
                 {&dump_log, dump_log_rows},
                 {&dump_operation_key, dump_operation_key_rows},
                 {&dump_key_bundle, dump_key_bundle_rows},
                 {&old_key, put_old_keys},
                 {&dump_inbox, dump_inbox_rows},
                 {&dump_awake, dump_awake_rows},
                 {&dump_due, dump_due_rows},
                 {&dump_answer, dump_answer_rows},
                 {&dump_escalation, dump_escalation_rows},
                 {&dump_approval, dump_approval_rows},
                 {&dump_number_gone, dump_number_gone_rows},
                 {&dump_lock, dump_lock_rows},
                 {&dump_guard, dump_guard_rows},
                 {&dump_guard_place, dump_guard_place_rows},
                 {&dump_guard_breaker, dump_guard_breaker_rows},
                 {&dump_guard_budget, dump_guard_budget_rows},
                 {&dump_guard_reservation, dump_guard_reservation_rows},
                 {&dump_schedule, dump_schedule_rows},
                 {&dump_series, dump_series_rows},
                 {&dump_hold, dump_hold_rows},
                 {&dump_engine_holds, dump_engine_holds_rows},
                 {&dump_bulk, dump_bulk_rows},
                 {&dump_bulk_item, dump_bulk_item_rows},
                 {&dump_case_event, dump_case_event_rows},
                 {&dump_case_remark, dump_case_remark_rows},
                 {&dump_debt_settled, dump_debt_settled_rows},
                 {&dump_grant, dump_grant_rows},
                 {&dump_event_gone, dump_event_gone_rows},
                 {&dump_event, dump_event_rows},
                 {&dump_notify, dump_notify_rows},
                 {&dump_notification, dump_notification_rows},
                 {&sql_gate, gate}};

    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        pg_statement_add(added[i].statement, added[i].function);
    }
}

/* Collects the possible transcripts of a script, each once, and returns their number. A script that gave one
 * only so far has no race, unless a fair race went the same way each time: once in 2^39 scripts with one; several races
 * in one script have many transcripts. */
static size_t play(uint64_t seed, struct buffer transcripts[TRIES])
{
    size_t count = 0;

    for (uint64_t try = 0; try < TRIES && (count > 1 || try < TRIES_ALIKE); try++) {
        struct buffer *own = &transcripts[count];
        bool is_known = false;

        world_seed = seed * TRIES + try;
        buffer_reset(own);
        script_run(seed, own);
        for (size_t i = 0; i < count && !is_known; i++) {
            is_known = slice_equal(buffer_slice(&transcripts[i]), buffer_slice(own));
        }
        count += !is_known;
    }
    return count;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, scripts = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static struct buffer transcripts[TRIES];

    add_dumps();
    for (size_t i = 0; i < TRIES; i++) {
        buffer_init(&transcripts[i], TRANSCRIPT_BYTES_MAX);
    }
    for (uint64_t seed = first; seed < first + scripts; seed++) {
        size_t count;

        if (setjmp(the_world.stop) != 0) {
            (void)fprintf(stderr, "%s: %s\n", the_world.invariant, the_world.violation);
            return 1;
        }
        count = play(seed, transcripts);
        (void)printf("%llu %zu\n", (unsigned long long)seed, count);
        for (size_t i = 0; i < count; i++) {
            (void)printf("%zu\n", transcripts[i].len);
            (void)fwrite(transcripts[i].ptr, 1, transcripts[i].len, stdout);
        }
        (void)fflush(stdout);
    }
    for (size_t i = 0; i < TRIES; i++) {
        buffer_fini(&transcripts[i]);
    }
    return 0;
}
