/*
 * A session executes its statements, each at an instant of its own. A statement sees what was committed when the
 * statement before it ended, and acts when its own time is over. A statement that has to wait is taken back and called
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_state.h"

enum { WAKE_US = 40, END_US = 3000, LATE_US = 3000000, KEEPALIVE_US = 10000000 };

int64_t session_pause(struct pg *pg)
{
    return world_between(STREAM_POSTGRES, pg->slow_us < 20 ? pg->slow_us : 20, pg->slow_us);
}

/* --- the way of a transaction --- */

static void on_step(struct event *event);
static void on_alarm(struct event *event);

static void step_after(struct pg_session *session, enum pg_phase phase, int64_t delay_us)
{
    session->phase = phase;
    world_at(&session->step, delay_us, on_step);
}

static void take_snapshot(struct pg_session *session)
{
    if (session->snapshot_count == session->snapshot_capacity) {
        size_t capacity = session->snapshot_capacity > 0 ? 4 * session->snapshot_capacity : 16;
        uint64_t *larger = arena_array(&session->pg->arena, capacity, sizeof(*larger));

        if (session->snapshot_count > 0) {
            memcpy(larger, session->snapshots, session->snapshot_count * sizeof(*larger));
        }
        session->snapshots = larger; /* the session keeps the larger array */
        session->snapshot_capacity = capacity;
    }
    session->snapshot = session->snapshots[session->snapshot_count++] = session->pg->commits;
    session->edge = edge_now(session->pg);
    session->snapshot_index = session->snapshot_count;
}

static void statement_next(struct pg_session *session)
{
    const struct pg_work *work = session->first;

    if (session->query < work->count) {
        session->first_command = ++session->command;
        session->snapshot_count = 0;
        session->met_count = 0;
        session->result = NULL;
        session->began_us = world->now_us;
        session->last_notice_before = session->last_notice;
        take_snapshot(session);
        step_after(session, PG_STATEMENT, session_pause(session->pg));
    } else if (work->part) {
        session->phase = PG_STUCK;
        world_at(&session->alarm, session->idle_timeout_us > 0 ? session->idle_timeout_us : KEEPALIVE_US, on_alarm);
    } else {
        step_after(session, PG_COMMIT, session_pause(session->pg));
    }
}

static void transaction_begin(struct pg_session *session)
{
    session->transaction = ++session->pg->transactions;
    session->query = 0;
    session->command = 0;
    session->notices = session->last_notice = NULL;
    session->asynchronous = false;
    statement_next(session);
}

static void transaction_roll_back(struct pg_session *session)
{
    line_leave(session);
    rows_undo(session, 0, false);
    locks_release(session, false);
}

static void work_free(struct pg *pg, struct pg_work *work)
{
    arena_reset(&work->arena);
    work->next = pg->spare_work;
    pg->spare_work = work;
}

/* Ends the first transaction and frees its memory, and begins the next one. */
static void transaction_leave(struct pg_session *session)
{
    struct pg_work *work = session->first;

    session->first = work->next;
    if (!session->first) {
        session->last = NULL;
    }
    work_free(session->pg, work);
    session->phase = PG_IDLE;
    world_cancel(&session->alarm);
    if (session->first) {
        transaction_begin(session);
    } else if (!session->client) {
        session->ending = true;
    }
}

static void transaction_fail(struct pg_session *session, const char *sqlstate, size_t failed_query)
{
    transaction_roll_back(session);
    world_cancel(&session->step);
    if (session->client) {
        session->client->over(session, DB_REFUSED, false, sqlstate, failed_query);
    }
    transaction_leave(session);
}

void session_end(struct pg_session *session, bool tell)
{
    struct pg *pg = session->pg;
    const struct pg_client *client = session->client;

    if (session->busy) {
        session->ending = true;
        session->told = session->told || !tell;
        return;
    }
    session->busy = true; /* the client that is told may not end the session again */
    world_cancel(&session->step);
    world_cancel(&session->alarm);
    world_cancel(&session->end);
    line_leave(session);
    rows_undo(session, 0, false);
    session->phase = PG_IDLE;
    locks_release(session, true);
    while (session->first) {
        struct pg_work *work = session->first;

        session->first = work->next;
        work_free(pg, work);
    }
    session->last = NULL;
    pg->sessions[session->place] = NULL;
    for (size_t i = session->place; i + 1 < pg->session_count; i++) {
        pg->sessions[i] = pg->sessions[i + 1];
        pg->sessions[i]->place = i;
    }
    pg->session_count--;
    session->client = NULL;
    if (tell && client && !session->told) {
        client->gone(session);
    }
    session->spare = pg->spare_session;
    pg->spare_session = session;
}

/* --- commit --- */

static void tell_notices(struct pg *pg, const struct pg_notice *notices)
{
    for (const struct pg_notice *notice = notices; notice; notice = notice->next) {
        for (size_t i = 0; i < pg->session_count; i++) {
            struct pg_session *session = pg->sessions[i];

            for (size_t j = 0; session->client && j < session->listen_count; j++) {
                if (slice_is(notice->channel, session->listens[j])) {
                    session->client->notify(session, notice->channel, notice->payload);
                    break;
                }
            }
        }
    }
}

static void commit(struct pg_session *session, bool flushed, bool confirms)
{
    rows_commit(session, flushed, confirms);
    tell_notices(session->pg, session->notices);
    rows_forget(session->pg);
}

/* Cuts off the client. The client is told now, while the session may go on here. */
static void lose_client(struct pg_session *session)
{
    const struct pg_client *client = session->client;

    session->client = NULL;
    if (client) {
        client->gone(session);
    }
}

static void drop_rest(struct pg_session *session)
{
    struct pg_work *work = session->first;

    while (work->next) {
        struct pg_work *rest = work->next;

        work->next = rest->next;
        work_free(session->pg, rest);
    }
    session->last = work;
}

static void session_commit(struct pg_session *session)
{
    struct pg *pg = session->pg;
    bool writes = session->written || session->held || session->notices;
    bool asynchronous = session->asynchronous || !writes, warned = false;
    enum commit_fate fate = writes && pg->fate && session->client ? pg->fate(session) : COMMIT_OK;

    if (session->ending) {
        return; /* the client that was asked has ended the session */
    }
    switch (fate) {
    case COMMIT_WARNS:
        warned = !asynchronous;
        break;
    case COMMIT_OK:
        break;
    case COMMIT_FAILS:
        transaction_fail(session, world_percent(STREAM_POSTGRES, 50) ? "40001" : "40P01", session->first->count);
        return;
    case COMMIT_LOST_BEFORE:
        session->ending = true;
        return;
    case COMMIT_LOST_AFTER:
        drop_rest(session);
        commit(session, !asynchronous, !asynchronous);
        session->ending = true;
        return;
    case COMMIT_LATE:
        drop_rest(session);
        step_after(session, PG_LATE_COMMIT, world_between(STREAM_POSTGRES, 200, LATE_US));
        lose_client(session);
        return;
    }
    commit(session, !asynchronous, !asynchronous && !warned);
    if (session->client && !session->ending) {
        session->client->over(session, DB_COMMITTED, warned, "", 0);
    }
    transaction_leave(session);
}

/* --- statements --- */

/* Begins to wait. `again` means for the same lock as before. */
static void wait_begin(struct pg_session *session, bool again)
{
    int64_t left = PG_DEADLOCK_US;
    uint64_t changed = session->wait == PG_WAIT_ROW ? row_last_commit(session->wait_row) : 0;

    session->out_of_order = again && (session->out_of_order || changed != session->wait_changed);
    session->wait_changed = changed;
    session->phase = PG_WAITING;
    session->woken = false;
    session->deadlock_checked = false;
    session->waits_since_us = world->now_us;
    if (!session->in_line) {
        line_join(session);
    }
    if (session->lock_timeout_us > 0 && session->lock_timeout_us < left) {
        left = session->lock_timeout_us;
    }
    if (session->statement_timeout_us > 0 && session->began_us + session->statement_timeout_us - world->now_us < left) {
        left = session->began_us + session->statement_timeout_us - world->now_us;
    }
    world_at(&session->alarm, left > 0 ? left : 0, on_alarm);
}

static void session_statement(struct pg_session *session)
{
    struct pg_work *work = session->first;
    struct pg_query *query = &work->queries[session->query];
    enum pg_wait waited = session->wait;
    struct pg_row *waited_row = session->wait_row;
    struct pg_advisory *waited_advisory = session->wait_advisory;
    struct pg_call call = {.pg = session->pg, .session = session, .args = query->args, .arena = &work->arena};

    if (session->statement_timeout_us > 0 && world->now_us - session->began_us >= session->statement_timeout_us) {
        transaction_fail(session, "57014", session->query);
        return;
    }
    if (!session->result) {
        session->result = db_rows_new(&work->arena);
    }
    call.result = session->result;
    session->conflict = NULL;
    session->met_index = 0;
    world_cancel(&session->alarm);
    switch (query->run(&call)) {
    case PG_DONE:
        line_leave(session);
        if (session->client) {
            session->client->rows(session, session->query, session->result);
        }
        if (!session->ending) {
            session->query++;
            statement_next(session);
        }
        return;
    case PG_WAIT: {
        enum pg_wait wait = session->wait;

        rows_undo(session, session->first_command, true);
        db_rows_reset(session->result);
        session->command = session->first_command;
        session->snapshot = session->snapshots[0];
        session->snapshot_index = 1;
        session->last_notice = session->last_notice_before;
        if (session->last_notice) {
            session->last_notice->next = NULL;
        } else {
            session->notices = NULL;
        }
        bool again = session->in_line && wait == waited && (wait != PG_WAIT_ROW || session->wait_row == waited_row) &&
                     (wait != PG_WAIT_ADVISORY || session->wait_advisory == waited_advisory);

        if (!again) {
            line_leave(session);
            session->wait = wait;
        }
        wait_begin(session, again);
        return;
    }
    case PG_ERROR:
        CHECK(call.sqlstate);
        transaction_fail(session, call.sqlstate, session->query);
        return;
    }
    UNREACHABLE();
}

void session_wake(struct pg_session *session)
{
    if (session->phase == PG_WAITING) { /* in line but not yet waiting, because it is being called */
        session->woken = true;
        world_cancel(&session->alarm);
        step_after(session, PG_STATEMENT, world_between(STREAM_POSTGRES, 5, WAKE_US));
    }
}

static void on_step(struct event *event)
{
    struct pg_session *session = container_of(event, struct pg_session, step);

    session->busy = true;
    switch (session->phase) {
    case PG_STATEMENT:
        session_statement(session);
        break;
    case PG_COMMIT:
        session_commit(session);
        break;
    case PG_LATE_COMMIT:
        commit(session, !session->asynchronous, !session->asynchronous);
        session->ending = true;
        break;
    case PG_IDLE:
    case PG_WAITING:
    case PG_STUCK:
        UNREACHABLE();
    }
    session->busy = false;
    if (session->ending) {
        session_end(session, true);
    }
}

/* Ends a session that has waited or idled for too long. */
static void on_alarm(struct event *event)
{
    struct pg_session *session = container_of(event, struct pg_session, alarm);
    int64_t now_us = world->now_us, next_us = INT64_MAX, at_us;
    const char *sqlstate = NULL;

    if (session->phase == PG_STUCK) {
        session_end(session, true);
        return;
    }
    CHECK(session->phase == PG_WAITING);
    if (!session->deadlock_checked && now_us - session->waits_since_us >= PG_DEADLOCK_US) {
        session->deadlock_checked = true;
        sqlstate = line_has_cycle(session) ? "40P01" : NULL;
    }
    if (!session->deadlock_checked) {
        next_us = session->waits_since_us + PG_DEADLOCK_US;
    }
    if (!sqlstate && session->lock_timeout_us > 0) {
        at_us = session->waits_since_us + session->lock_timeout_us;
        sqlstate = now_us >= at_us ? "55P03" : NULL;
        next_us = at_us < next_us ? at_us : next_us;
    }
    if (!sqlstate && session->statement_timeout_us > 0) {
        at_us = session->began_us + session->statement_timeout_us;
        sqlstate = now_us >= at_us ? "57014" : NULL;
        next_us = at_us < next_us ? at_us : next_us;
    }
    if (!sqlstate) {
        if (next_us != INT64_MAX) {
            world_at(&session->alarm, next_us - now_us, on_alarm);
        }
        return;
    }
    session->busy = true;
    transaction_fail(session, sqlstate, session->query);
    session->busy = false;
    if (session->ending) {
        session_end(session, true);
    }
}

/* --- for the world --- */

/* Runs 'listen NAME' or 'set NAME = VALUE' when the value is a time. */
static void set_up(struct pg_session *session, const char *statement)
{
    static const struct {
        const char *name;
        size_t offset;
    } times[] = {
        {"set lock_timeout = '", offsetof(struct pg_session, lock_timeout_us)},
        {"set statement_timeout = '", offsetof(struct pg_session, statement_timeout_us)},
        {"set idle_in_transaction_session_timeout = '", offsetof(struct pg_session, idle_timeout_us)},
    };
    struct slice text = slice_of(statement);

    if (slice_starts_with(text, "listen ")) {
        size_t len = text.len - 7;

        CHECK(session->listen_count < PG_LISTENS_MAX && len < sizeof(session->listens[0]));
        memcpy(session->listens[session->listen_count], statement + 7, len + 1);
        session->listen_count++;
        return;
    }
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        if (slice_starts_with(text, times[i].name)) {
            char *unit;
            int64_t value = strtoll(statement + strlen(times[i].name), &unit, 10);

            *(int64_t *)((char *)session + times[i].offset) = *unit == 's' ? value * 1000000 : value * 1000;
        }
    }
}

struct pg_session *pg_connect(struct pg *pg, const char *application_name, const char *const *setup,
                              const struct pg_client *client, void *context)
{
    struct pg_session *session = pg->spare_session;
    struct pg_session before = {0};

    if (!pg->up || pg->session_count == PG_SESSIONS_MAX) {
        return NULL;
    }
    if (session) {
        pg->spare_session = session->spare;
        before = *session;
    } else {
        session = arena_alloc(&pg->arena, sizeof(*session));
    }
    *session = (struct pg_session){
        .pg = pg,
        .place = pg->session_count,
        .pid = ++pg->last_pid,
        .started_us = pg_clock_us(pg),
        .client = client,
        .context = context,
        .snapshots = before.snapshots,
        .snapshot_capacity = before.snapshot_capacity,
        .met = before.met,
        .met_capacity = before.met_capacity,
    };
    for (size_t i = 0; application_name && application_name[i] && i + 1 < PG_NAME_BYTES; i++) {
        session->application_name[i] = application_name[i];
    }
    for (size_t i = 0; setup && setup[i]; i++) {
        set_up(session, setup[i]);
    }
    pg->sessions[pg->session_count++] = session;
    return session;
}

void *pg_context(const struct pg_session *session)
{
    return session->context;
}

int pg_backend_pid(const struct pg_session *session)
{
    return session->pid;
}

static pg_statement *statement_of(struct pg *pg, const struct db_statement *statement)
{
    size_t i = ((uintptr_t)statement >> 4) % PG_CACHE;

    if (pg->cache[i].statement != statement) {
        pg->cache[i].statement = statement;
        pg->cache[i].run = pg_statement_of(statement);
    }
    return pg->cache[i].run;
}

static void submit(struct pg_session *session, const struct db_query *queries, size_t count, bool part)
{
    struct pg *pg = session->pg;
    struct pg_work *work = pg->spare_work;

    if (work) {
        pg->spare_work = work->next;
    } else {
        work = memory_alloc(sizeof(*work));
        arena_init(&work->arena, 8192);
        work->all = pg->all_works;
        pg->all_works = work;
    }
    work->next = NULL;
    work->count = count;
    work->part = part;
    work->queries = arena_array(&work->arena, count, sizeof(*work->queries));
    for (size_t i = 0; i < count; i++) {
        work->queries[i].run = statement_of(pg, queries[i].statement);
        work->queries[i].args = db_args_copy(queries[i].args, &work->arena);
    }
    if (session->last) {
        session->last->next = work;
    } else {
        session->first = work;
    }
    session->last = work;
    if (session->phase == PG_IDLE && !session->busy) {
        transaction_begin(session);
    }
}

void pg_submit(struct pg_session *session, const struct db_query *queries, size_t count)
{
    submit(session, queries, count, false);
}

void pg_submit_part(struct pg_session *session, const struct db_query *queries, size_t count)
{
    submit(session, queries, count, true);
}

void pg_disconnect(struct pg_session *session, bool later)
{
    if (later && session->phase != PG_IDLE) {
        session->client = NULL;
    } else {
        session_end(session, false);
    }
}

static void on_end(struct event *event)
{
    session_end(container_of(event, struct pg_session, end), true);
}

void session_terminate(struct pg_session *session)
{
    if (session->end.heap_index == 0) {
        world_at(&session->end, world_between(STREAM_POSTGRES, 20, END_US), on_end);
    }
}

/* --- what statements ask of their session --- */

void pg_next_statement(struct pg_call *call)
{
    struct pg_session *session = call->session;

    session->command++;
    session->conflict = NULL;
    if (session->snapshot_index < session->snapshot_count) {
        session->snapshot = session->snapshots[session->snapshot_index++];
    } else {
        take_snapshot(session);
    }
}

void pg_notify(struct pg_call *call, const char *channel, struct slice payload)
{
    struct pg_session *session = call->session;
    struct pg_notice *notice;

    for (notice = session->notices; notice; notice = notice->next) {
        if (slice_is(notice->channel, channel) && slice_equal(notice->payload, payload)) {
            return;
        }
    }
    notice = arena_alloc(call->arena, sizeof(*notice));
    *notice = (struct pg_notice){.channel = arena_slice(call->arena, slice_of(channel)),
                                 .payload = arena_slice(call->arena, payload.ptr ? payload : SLICE(""))};
    *(session->last_notice ? &session->last_notice->next : &session->notices) = notice;
    session->last_notice = notice;
}

void pg_make_asynchronous(struct pg_call *call)
{
    call->session->asynchronous = true;
}

size_t pg_end_sessions(struct pg_call *call,
                       bool (*match)(int pid, int64_t started_us, const char *application_name, void *context),
                       void *context)
{
    struct pg *pg = call->pg;
    size_t count = 0;

    for (size_t i = 0; i < pg->session_count; i++) {
        struct pg_session *session = pg->sessions[i];

        if (session != call->session && match(session->pid, session->started_us, session->application_name, context)) {
            session_terminate(session);
            count++;
        }
    }
    return count;
}

int pg_own_pid(const struct pg_call *call)
{
    return call->session->pid;
}

int64_t pg_own_started_us(const struct pg_call *call)
{
    return call->session->started_us;
}
