/* How an attempt ended: sagad.guard_tell() of migration 0006, statement by statement; and what people say of costs and
 * breakers. */
#include <string.h>

#include "tests/sim/pg_guard.h"

#define NO_TIME INT64_MIN

/* Computes 1 + random() / 5. */
static double jitter(struct pg_call *call)
{
    return 1 + (double)pg_random(call, 1 << 20) / (1 << 20) / 5;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum pg_progress give_place_back(struct pg_call *call, bool *was_there)
{
    struct row_guard_place key = {.shard = arg_int(call, 0),
                                  .namespace = arg_bytes(call, 1),
                                  .tool = arg_bytes(call, 2),
                                  .holder = arg_uuid(call, 7)};
    struct pg_touched touched = {0};

    pg_next_statement(call);
    return pg_delete_key(call, PG_GUARD_PLACE, &key, &touched, was_there);
}

static enum pg_progress tell_tool(struct pg_call *call, int64_t moment_us, bool gives_back)
{
    int64_t spacing_us = arg_int(call, 11), pause_ms = arg_int(call, 12);
    struct pg_row *row;
    const void *current = NULL;

    if (pause_ms <= 0 && !(gives_back && spacing_us > 0)) {
        return PG_DONE;
    }
    pg_next_statement(call);
    row = pg_find(call, PG_GUARD, &(struct row_guard){arg_int(call, 0), arg_bytes(call, 1), arg_bytes(call, 2), 0, 0});
    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current) {
        struct row_guard guard = *(const struct row_guard *)current;

        guard.paused_us = pause_ms > 0 ? larger(guard.paused_us, moment_us + pause_ms * 1000) : guard.paused_us;
        guard.rate_us -= gives_back && guard.rate_us != NO_TIME ? spacing_us : 0;
        pg_update(call, row, &guard);
    }
    return PG_DONE;
}

/* --- the breaker --- */

static enum pg_progress tell_event(struct pg_call *call, bool is_closed, struct slice more)
{
    struct slice tool = arg_bytes(call, 2);

    return pg_event_add(call, &(struct row_event){.shard = arg_int(call, 0),
                                                  .namespace = arg_bytes(call, 1),
                                                  .type = is_closed ? SLICE("breaker.closed") : SLICE("breaker.opened"),
                                                  .subject = pg_keep_printed(call, "breaker/%.*s", SLICE_ARG(tool)),
                                                  .data = pg_keep_printed(call, "{\"tool\":\"%.*s\"%.*s}",
                                                                          SLICE_ARG(tool), SLICE_ARG(more))});
}

static enum pg_progress tell_move(struct pg_call *call, struct slice before, const struct row_guard_breaker *breaker)
{
    bool was_closed = slice_is(before, "closed"), is_closed = slice_is(breaker->state, "closed");

    if (was_closed == is_closed) {
        return PG_DONE;
    }
    return tell_event(call, is_closed, pg_keep_printed(call, ",\"endpoint\":\"%.*s\"", SLICE_ARG(breaker->endpoint)));
}

static void tell_probe(struct pg_call *call, struct row_guard_breaker *breaker, int64_t moment_us)
{
    int64_t rest_ms = arg_int(call, 6);
    struct slice result = arg_bytes(call, 9);

    breaker->has_probe = false;
    if (slice_is(result, "well")) {
        breaker->state = SLICE("closed");
        breaker->failure_count = 0;
        breaker->cooldown_ms = 0;
    } else if (slice_is(result, "failed")) {
        int64_t twice = larger(breaker->cooldown_ms, rest_ms) * 2, most = larger(600000, rest_ms);

        breaker->state = SLICE("open");
        breaker->cooldown_ms = twice < most ? twice : most;
        breaker->opened++;
        breaker->open_until_us = moment_us + guard_us((double)breaker->cooldown_ms / 1000.0 * jitter(call));
    } else {
        breaker->state = SLICE("open");
    }
}

/* Keeps the failures within the window, the newest first, and no more than would open the breaker. */
static void tell_failure(struct pg_call *call, struct row_guard_breaker *breaker, int64_t moment_us)
{
    int64_t failures_max = arg_int(call, 4), window_us = arg_int(call, 5) * 1000, rest_ms = arg_int(call, 6);
    int64_t recent[ROW_FAILURES_MAX + 1] = {moment_us};
    size_t count = moment_us > moment_us - window_us;

    for (size_t i = 0; i < breaker->failure_count; i++) {
        int64_t at_us = breaker->failures_us[i];
        size_t at = count;

        if (at_us > moment_us - window_us) {
            for (count++; at > 0 && recent[at - 1] < at_us; at--) {
                recent[at] = recent[at - 1];
            }
            recent[at] = at_us;
        }
    }
    count = (int64_t)count > failures_max ? (size_t)failures_max : count;
    if ((int64_t)count >= failures_max) {
        breaker->state = SLICE("open");
        breaker->failure_count = 0;
        breaker->cooldown_ms = rest_ms;
        breaker->opened++;
        breaker->open_until_us = moment_us + guard_us((double)rest_ms / 1000.0 * jitter(call));
    } else {
        CHECK(count <= ROW_FAILURES_MAX);
        breaker->failure_count = count;
        memcpy(breaker->failures_us, recent, count * sizeof(recent[0]));
    }
}

static enum pg_progress lock_breaker(struct pg_call *call, bool failed, struct pg_row **row, const void **current)
{
    struct row_guard_breaker key = guard_breaker_key(call);
    bool inserted;

    *current = NULL;
    pg_next_statement(call);
    *row = pg_find(call, PG_GUARD_BREAKER, &key);
    if (pg_see(call, *row)) {
        RETURN_UNLESS_DONE(pg_lock(call, *row, PG_UPDATE, current));
    }
    if (*current || !failed) {
        return PG_DONE;
    }
    key.namespace = pg_keep(call, key.namespace);
    key.tool = pg_keep(call, key.tool);
    key.endpoint = pg_keep(call, key.endpoint);
    key.state = SLICE("closed");
    key.open_until_us = key.probe_until_us = NO_TIME;
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_GUARD_BREAKER, &key, &inserted));
    pg_next_statement(call);
    *row = pg_find(call, PG_GUARD_BREAKER, &key);
    if (pg_see(call, *row)) {
        RETURN_UNLESS_DONE(pg_lock(call, *row, PG_UPDATE, current));
    }
    return *current ? PG_DONE : pg_fail(call, "P0002");
}

static enum pg_progress tell_breaker(struct pg_call *call, int64_t moment_us, struct slice *state, bool *changed)
{
    bool failed = slice_is(arg_bytes(call, 9), "failed");
    struct uuid holder = arg_uuid(call, 7);
    struct row_guard_breaker breaker;
    struct slice before;
    struct pg_row *row;
    const void *current;

    RETURN_UNLESS_DONE(lock_breaker(call, failed, &row, &current));
    if (!current) {
        return PG_DONE; /* closed */
    }
    breaker = *(const struct row_guard_breaker *)current;
    before = breaker.state;
    if (slice_is(before, "half_open") && breaker.has_probe && uuid_equal(&breaker.probe, &holder)) {
        tell_probe(call, &breaker, moment_us);
    } else if (slice_is(before, "closed") && failed) {
        tell_failure(call, &breaker, moment_us);
    } else {
        *state = before;
        return PG_DONE;
    }
    pg_next_statement(call);
    pg_update(call, row, &breaker);
    *state = breaker.state;
    *changed = !slice_equal(before, breaker.state);
    return tell_move(call, before, &breaker);
}

/* --- budgets --- */

static enum pg_progress book(struct pg_call *call)
{
    struct row_guard_reservation key = guard_reservation_key(call, 8), reservation;
    bool settles = slice_is(arg_bytes(call, 13), "settle"), gives_back = slice_is(arg_bytes(call, 13), "give_back"),
         was_back;
    bool unpriced = slice_is(arg_bytes(call, 13), "unpriced");
    const struct row_guard_reservation *seen;
    struct pg_row *row;
    const void *current = NULL;

    pg_next_statement(call);
    row = pg_find(call, PG_GUARD_RESERVATION, &key);
    seen = pg_see(call, row);
    was_back = seen && slice_is(seen->state, "given_back");
    if (!seen || !(slice_is(seen->state, "reserved") || (was_back && (settles || unpriced)))) {
        return PG_DONE;
    }
    reservation = *seen;
    for (size_t i = 0; i < reservation.budget_count; i++) {
        struct row_guard_budget budget = {
            reservation.budget_shards[i], reservation.budgets[i], reservation.periods_ms[i], 0, 0, 0};

        pg_next_statement(call);
        RETURN_UNLESS_DONE(guard_add_to_budget(call, pg_find(call, PG_GUARD_BUDGET, &budget),
                                               was_back     ? 1
                                               : gives_back ? -1
                                                            : 0,
                                               0,
                                               (settles                ? arg_int(call, 14)
                                                : unpriced && was_back ? reservation.micros[i]
                                                                       : 0) -
                                                   (was_back || unpriced ? 0 : reservation.micros[i]),
                                               unpriced));
    }
    pg_next_statement(call);
    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current) {
        reservation = *(const struct row_guard_reservation *)current;
        reservation.state = settles ? SLICE("settled") : unpriced ? SLICE("unpriced") : SLICE("given_back");
        reservation.at_ms = pg_clock_ms(call->pg);
        pg_update(call, row, &reservation);
    }
    return PG_DONE;
}

/* --- guard_price() of migration 0015 --- */

enum pg_progress pg_statement_guard_price(struct pg_call *call)
{
    struct pg_row *row =
        pg_find(call, PG_GUARD, &(struct row_guard){arg_int(call, 0), arg_bytes(call, 1), arg_bytes(call, 2), 0, 0});
    struct row_guard_reservation key = guard_reservation_key(call, 3), reservation;
    const struct row_guard_reservation *seen;
    bool was_unpriced;
    const void *current = NULL;

    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
    }
    pg_next_statement(call);
    row = pg_find(call, PG_GUARD_RESERVATION, &key);
    seen = pg_see(call, row);
    was_unpriced = seen && slice_is(seen->state, "unpriced");
    if (!was_unpriced && !(seen && slice_is(seen->state, "reserved"))) {
        put_int(call, false);
        return end_with_row(call);
    }
    reservation = *seen;
    for (size_t i = 0; i < reservation.budget_count; i++) {
        struct row_guard_budget budget = {
            reservation.budget_shards[i], reservation.budgets[i], reservation.periods_ms[i], 0, 0, 0};

        pg_next_statement(call);
        RETURN_UNLESS_DONE(guard_add_to_budget(call, pg_find(call, PG_GUARD_BUDGET, &budget), 0, 0,
                                               arg_int(call, 4) - reservation.micros[i], was_unpriced ? -1 : 0));
    }
    pg_next_statement(call);
    current = NULL;
    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current) {
        reservation = *(const struct row_guard_reservation *)current;
        reservation.state = SLICE("settled");
        reservation.at_ms = pg_clock_ms(call->pg);
        pg_update(call, row, &reservation);
    }
    put_int(call, true);
    return end_with_row(call);
}

/* --- guard_breaker_set() of migration 0025 --- */

static enum pg_progress close_breakers(struct pg_call *call)
{
    struct row_guard_breaker key = guard_breaker_key(call);
    struct pg_row *row, *next;

    key.endpoint = SLICE("");
    for (row = pg_first(call, PG_GUARD_BREAKER, &key); row; row = next) {
        const struct row_guard_breaker *seen = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_GUARD_BREAKER, row);
        if (seen && (seen->shard != key.shard || !slice_equal(seen->namespace, key.namespace) ||
                     !slice_equal(seen->tool, key.tool))) {
            break;
        }
        if (seen) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
        }
        if (current) {
            struct row_guard_breaker breaker = *(const struct row_guard_breaker *)current;
            struct slice before = breaker.state;

            breaker.state = SLICE("closed");
            breaker.failure_count = 0;
            breaker.cooldown_ms = 0;
            breaker.has_probe = false;
            pg_update(call, row, &breaker);
            RETURN_UNLESS_DONE(tell_move(call, before, &breaker));
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_guard_breaker_set(struct pg_call *call)
{
    struct row_guard guard = {arg_int(call, 0), pg_keep(call, arg_bytes(call, 1)), pg_keep(call, arg_bytes(call, 2)),
                              NO_TIME, NO_TIME};
    struct slice open = arg_is_null(call, 3) ? SLICE_NONE : pg_keep(call, arg_bytes(call, 3));
    struct pg_touched touched = {0};
    struct pg_row *row;
    const void *current;
    bool was_open = false;

    guard.breaker_open = open;
    RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_GUARD, &guard, &touched, &row, &current));
    if (current) {
        guard = *(const struct row_guard *)current;
        was_open = guard.breaker_open.ptr != NULL;
        guard.breaker_open = open;
        pg_update(call, row, &guard);
    }
    if (was_open != (open.ptr != NULL)) {
        RETURN_UNLESS_DONE(
            tell_event(call, was_open, was_open ? SLICE("") : pg_keep_printed(call, ",\"by\":%.*s", SLICE_ARG(open))));
    }
    if (!open.ptr) {
        pg_next_statement(call);
        RETURN_UNLESS_DONE(close_breakers(call));
    }
    pg_put_void(call);
    return PG_DONE;
}

enum pg_progress pg_statement_guard_tell(struct pg_call *call)
{
    struct pg_row *row =
        pg_find(call, PG_GUARD, &(struct row_guard){arg_int(call, 0), arg_bytes(call, 1), arg_bytes(call, 2), 0, 0});
    bool keeps = slice_is(arg_bytes(call, 13), "keep"), was_there, changed = false;
    struct slice state = SLICE("closed");
    int64_t moment_us;
    const void *current;

    if (keeps) {
        pg_make_asynchronous(call);
    }
    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
    }
    moment_us = pg_clock_us(call->pg);
    RETURN_UNLESS_DONE(give_place_back(call, &was_there));
    RETURN_UNLESS_DONE(tell_tool(call, moment_us, arg_int(call, 10) && was_there));
    if (arg_int(call, 4) > 0) {
        RETURN_UNLESS_DONE(tell_breaker(call, moment_us, &state, &changed));
    }
    if (!keeps) {
        RETURN_UNLESS_DONE(book(call));
    }
    put_bytes(call, state);
    put_int(call, changed);
    return end_with_row(call);
}
