/* Bounds over all engines: sagad.guard_ask() of migration 0006, statement by statement, and the statements that count
 * and list. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_guard.h"

/* Computes make_interval(secs => us / 1000000.0). */
int64_t guard_us(double seconds)
{
    return (int64_t)rint(seconds * 1e6);
}

static int64_t ceil_ms(int64_t us)
{
    return us >= 0 ? (us + 999) / 1000 : -(-us / 1000);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void answer(struct pg_call *call, const char *verdict, int64_t retry_after_ms, bool is_probe)
{
    put_bytes(call, slice_of(verdict));
    put_int(call, retry_after_ms);
    put_int(call, is_probe);
    put_row_end(call);
}

/* Locks the row that is locked first, and makes it when it is missing. */
static enum pg_progress lock_tool(struct pg_call *call, struct pg_row **row, const void **current)
{
    struct row_guard key = {arg_int(call, 0), arg_bytes(call, 1), arg_bytes(call, 2), INT64_MIN, INT64_MIN};
    bool inserted;

    *current = NULL;
    *row = pg_find(call, PG_GUARD, &key);
    if (pg_see(call, *row)) {
        RETURN_UNLESS_DONE(pg_lock(call, *row, PG_UPDATE, current));
    }
    if (*current) {
        return PG_DONE;
    }
    key.namespace = pg_keep(call, key.namespace);
    key.tool = pg_keep(call, key.tool);
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_GUARD, &key, &inserted));
    pg_next_statement(call);
    *row = pg_find(call, PG_GUARD, &key);
    if (pg_see(call, *row)) {
        RETURN_UNLESS_DONE(pg_lock(call, *row, PG_UPDATE, current));
    }
    return *current ? PG_DONE : pg_fail(call, "P0002");
}

struct row_guard_reservation guard_reservation_key(struct pg_call *call, int operation_arg)
{
    return (struct row_guard_reservation){.shard = arg_int(call, 0),
                                          .namespace = arg_bytes(call, 1),
                                          .tool = arg_bytes(call, 2),
                                          .operation = arg_uuid(call, operation_arg)};
}

static bool is_reserved(struct pg_call *call)
{
    struct row_guard_reservation key = guard_reservation_key(call, 11);
    const struct row_guard_reservation *row = pg_see(call, pg_find(call, PG_GUARD_RESERVATION, &key));

    return row && slice_is(row->state, "reserved");
}

static bool is_unpriced(struct pg_call *call)
{
    struct row_guard_reservation key = guard_reservation_key(call, 11);
    const struct row_guard_reservation *row = pg_see(call, pg_find(call, PG_GUARD_RESERVATION, &key));

    return row && slice_is(row->state, "unpriced");
}

/* --- budgets --- */

static bool is_over(struct pg_call *call, int max_arg, int wanted_arg, size_t i, int64_t used)
{
    int64_t max = item_int(call, max_arg, i);

    return max >= 0 && used + item_int(call, wanted_arg, i) > max;
}

static enum pg_progress drop_old_budgets(struct pg_call *call, const struct row_guard_budget *key)
{
    struct pg_row *row = pg_first(call, PG_GUARD_BUDGET,
                                  &(struct row_guard_budget){key->shard, key->name, INT64_MIN, 0, 0, 0}),
                  *next;

    for (; row; row = next) {
        const struct row_guard_budget *seen = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_GUARD_BUDGET, row);
        if (seen && (seen->shard != key->shard || !slice_equal(seen->name, key->name))) {
            break;
        }
        if (seen && seen->period_ms < key->period_ms - INT64_C(400) * 24 * 3600 * 1000) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
        }
        if (current) {
            pg_delete(call, row);
        }
    }
    return PG_DONE;
}

static enum pg_progress tell_reached(struct pg_call *call, size_t i, const struct row_guard_budget *key)
{
    long long period = (long long)(key->period_ms / 1000), calls = (long long)item_int(call, 15, i),
              emissions = (long long)item_int(call, 16, i), micros = (long long)item_int(call, 17, i);
    struct slice name = key->name;

    return pg_event_add(
        call, &(struct row_event){.shard = key->shard,
                                  .namespace = arg_bytes(call, 1),
                                  .type = SLICE("budget.reached"),
                                  .subject = pg_keep_printed(call, "budget/%.*s", SLICE_ARG(name)),
                                  .data = pg_keep_printed(
                                      call,
                                      "{\"budget\":\"%.*s\",\"tool\":\"%.*s\",\"period\":%lld,\"calls\":%lld,"
                                      "\"emissions\":%lld,\"micros\":%lld}",
                                      SLICE_ARG(name), SLICE_ARG(arg_bytes(call, 2)), period, calls, emissions, micros),
                                  .once = pg_keep_printed(call, "%.*s %lld %lld %lld %lld", SLICE_ARG(name), period,
                                                          calls, emissions, micros)});
}

/* Locks the budgets in order and looks whether they have room. Otherwise sets the verdict. */
static enum pg_progress look_at_budgets(struct pg_call *call, const char **verdict)
{
    *verdict = NULL;
    for (size_t i = 0; i < arg_count(call, 13); i++) {
        struct row_guard_budget key = {
            item_int(call, 12, i), pg_keep(call, item_bytes(call, 13, i)), item_time_ms(call, 14, i), 0, 0, 0};
        const struct row_guard_budget *budget;
        struct pg_row *row;
        const void *current = NULL;
        bool inserted;

        pg_next_statement(call);
        RETURN_UNLESS_DONE(pg_insert_new(call, PG_GUARD_BUDGET, &key, &inserted));
        if (inserted) {
            pg_next_statement(call);
            RETURN_UNLESS_DONE(drop_old_budgets(call, &key));
        }
        pg_next_statement(call);
        row = pg_find(call, PG_GUARD_BUDGET, &key);
        if (pg_see(call, row)) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
        }
        if (!current) {
            return pg_fail(call, "P0002");
        }
        budget = current;
        if (is_over(call, 15, 18, i, budget->calls) || is_over(call, 16, 19, i, budget->emissions) ||
            is_over(call, 17, 20, i, budget->micros)) {
            *verdict = "budget";
            return tell_reached(call, i, &key);
        }
        if (item_int(call, 17, i) >= 0 && item_int(call, 20, i) > 0 && budget->unpriced > 0) {
            *verdict = "unpriced";
            return PG_DONE;
        }
    }
    return PG_DONE;
}

static enum pg_progress reserve(struct pg_call *call)
{
    struct row_guard_reservation row = guard_reservation_key(call, 11);
    struct pg_touched touched = {0};
    struct pg_row *existing;
    const void *current;

    row.namespace = pg_keep(call, row.namespace);
    row.tool = pg_keep(call, row.tool);
    row.state = SLICE("reserved");
    row.at_ms = pg_clock_ms(call->pg);
    row.budget_count = arg_count(call, 13);
    CHECK(row.budget_count <= ROW_BUDGETS_MAX);
    for (size_t i = 0; i < row.budget_count; i++) {
        struct row_guard_budget key = {
            item_int(call, 12, i), pg_keep(call, item_bytes(call, 13, i)), item_time_ms(call, 14, i), 0, 0, 0};
        struct pg_row *found;

        pg_next_statement(call);
        found = pg_find(call, PG_GUARD_BUDGET, &key);
        RETURN_UNLESS_DONE(
            guard_add_to_budget(call, found, item_int(call, 18, i), item_int(call, 19, i), item_int(call, 20, i), 0));
        row.budget_shards[i] = key.shard;
        row.budgets[i] = key.name;
        row.periods_ms[i] = key.period_ms;
        row.micros[i] = item_int(call, 20, i);
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_GUARD_RESERVATION, &row, &touched, &existing, &current));
    if (current) {
        pg_update(call, existing, &row);
    }
    return PG_DONE;
}

enum pg_progress guard_add_to_budget(struct pg_call *call, struct pg_row *row, int64_t calls, int64_t emissions,
                                     int64_t micros, int64_t unpriced)
{
    const void *current = NULL;

    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current) {
        struct row_guard_budget budget = *(const struct row_guard_budget *)current;

        budget.calls += calls;
        budget.emissions += emissions;
        budget.micros += micros;
        budget.unpriced += unpriced;
        pg_update(call, row, &budget);
    }
    return PG_DONE;
}

/* --- places --- */

struct places {
    int64_t taken;
    bool has_own;
};

static struct places look_at_places(struct pg_call *call, int64_t moment_us, const struct uuid *holder)
{
    struct row_guard_place key = {
        .shard = arg_int(call, 0), .namespace = arg_bytes(call, 1), .tool = arg_bytes(call, 2)};
    struct places places = {0, false};

    for (struct pg_row *row = pg_first(call, PG_GUARD_PLACE, &key); row; row = pg_next(call, PG_GUARD_PLACE, row)) {
        const struct row_guard_place *place = pg_see(call, row);

        if (place && (place->shard != key.shard || !slice_equal(place->namespace, key.namespace) ||
                      !slice_equal(place->tool, key.tool))) {
            break;
        }
        if (place && place->expires_us > moment_us) {
            places.taken++;
            places.has_own = places.has_own || (holder && uuid_equal(&place->holder, holder));
        }
    }
    return places;
}

static enum pg_progress drop_old_places(struct pg_call *call, int64_t moment_us)
{
    struct row_guard_place key = {
        .shard = arg_int(call, 0), .namespace = arg_bytes(call, 1), .tool = arg_bytes(call, 2)};
    struct pg_row *row = pg_first(call, PG_GUARD_PLACE, &key), *next;

    for (; row; row = next) {
        const struct row_guard_place *place = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_GUARD_PLACE, row);
        if (place && (place->shard != key.shard || !slice_equal(place->namespace, key.namespace) ||
                      !slice_equal(place->tool, key.tool))) {
            break;
        }
        if (place && place->expires_us < moment_us) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
        }
        if (current) {
            pg_delete(call, row);
        }
    }
    return PG_DONE;
}

static enum pg_progress take_place(struct pg_call *call, int64_t moment_us)
{
    struct row_guard_place place = {arg_int(call, 0), pg_keep(call, arg_bytes(call, 1)),
                                    pg_keep(call, arg_bytes(call, 2)), arg_uuid(call, 9),
                                    moment_us + arg_int(call, 8) * 1000};
    struct pg_touched touched = {0};
    struct pg_row *row;
    const void *current;

    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_GUARD_PLACE, &place, &touched, &row, &current));
    if (current) {
        pg_update(call, row, &place);
    }
    if (pg_random(call, 100) == 0) {
        pg_next_statement(call);
        RETURN_UNLESS_DONE(drop_old_places(call, moment_us));
    }
    return PG_DONE;
}

/* --- the breaker --- */

struct row_guard_breaker guard_breaker_key(struct pg_call *call)
{
    return (struct row_guard_breaker){.shard = arg_int(call, 0),
                                      .namespace = arg_bytes(call, 1),
                                      .tool = arg_bytes(call, 2),
                                      .endpoint = arg_bytes(call, 3)};
}

/* Asks the breaker. `*verdict` is NULL when it lets the call pass. */
static enum pg_progress look_at_breaker(struct pg_call *call, int64_t moment_us, const char **verdict,
                                        int64_t *retry_after_ms, bool *is_probe)
{
    struct row_guard_breaker breaker = guard_breaker_key(call);
    struct pg_row *row;
    struct uuid holder = arg_uuid(call, 9);
    const void *current = NULL;

    pg_next_statement(call);
    row = pg_find(call, PG_GUARD_BREAKER, &breaker);
    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
    }
    if (!current) {
        return PG_DONE;
    }
    breaker = *(const struct row_guard_breaker *)current;
    if (slice_is(breaker.state, "closed")) {
        return PG_DONE;
    }
    if (slice_is(breaker.state, "half_open") && breaker.has_probe && uuid_equal(&breaker.probe, &holder)) {
        *is_probe = true;
    } else if (slice_is(breaker.state, "open") && breaker.open_until_us > moment_us) {
        *verdict = "breaker";
        *retry_after_ms = later(1, ceil_ms(breaker.open_until_us - moment_us));
    } else if (slice_is(breaker.state, "half_open") && breaker.probe_until_us > moment_us) {
        int64_t wait_ms = ceil_ms(breaker.probe_until_us - moment_us);

        *verdict = "breaker";
        *retry_after_ms = later(1, wait_ms < 1000 ? wait_ms : 1000);
    } else if (!arg_int(call, 10)) {
        *verdict = "breaker";
        *retry_after_ms = 1000;
    } else {
        *is_probe = true;
        breaker.state = SLICE("half_open");
        breaker.has_probe = true;
        breaker.probe = holder;
        breaker.probe_until_us = moment_us + arg_int(call, 8) * 1000;
        pg_next_statement(call);
        pg_update(call, row, &breaker);
    }
    return PG_DONE;
}

/* --- all of it --- */

static bool is_too_soon(const struct row_guard *tool, int64_t moment_us, int64_t per_us, int64_t spacing_us,
                        int64_t *retry_after_ms)
{
    int64_t wait_us = later(tool->rate_us, moment_us) - moment_us - (per_us - spacing_us);

    *retry_after_ms = wait_us > 0 ? later(1, ceil_ms(wait_us)) : 0;
    return wait_us > 0;
}

enum pg_progress pg_statement_guard_ask(struct pg_call *call)
{
    int64_t rate_limit = arg_int(call, 4), places_max = arg_int(call, 6), moment_us, spacing_us = 0, retry_after_ms = 0;
    bool was_reserved = true, is_probe = false;
    struct uuid holder = arg_uuid(call, 9);
    const char *verdict = NULL;
    struct row_guard tool;
    struct places places;
    struct pg_row *row;
    const void *current;

    if (arg_count(call, 13) == 0 && places_max == 0) {
        pg_make_asynchronous(call);
    }
    RETURN_UNLESS_DONE(lock_tool(call, &row, &current));
    tool = *(const struct row_guard *)current;
    if (arg_count(call, 13) > 0) {
        pg_next_statement(call);
        was_reserved = is_reserved(call);
        if (!was_reserved) {
            pg_next_statement(call);
            if (is_unpriced(call)) {
                answer(call, "unpriced", 5000, false);
                return PG_DONE;
            }
            RETURN_UNLESS_DONE(look_at_budgets(call, &verdict));
        }
        if (verdict) {
            answer(call, verdict, slice_is(slice_of(verdict), "unpriced") ? 5000 : 0, false);
            return PG_DONE;
        }
    }
    moment_us = pg_clock_us(call->pg);
    pg_next_statement(call);
    places = look_at_places(call, moment_us, &holder);
    if (tool.paused_us > moment_us) {
        answer(call, "paused", ceil_ms(tool.paused_us - moment_us), false);
        return PG_DONE;
    }
    if (arg_int(call, 7) > 0 && tool.breaker_open.ptr) {
        answer(call, "breaker", 5000, false);
        return PG_DONE;
    }
    if (rate_limit > 0 && !places.has_own) {
        double per_seconds = (double)arg_int(call, 5) / 1000.0;

        spacing_us = guard_us(per_seconds / (double)rate_limit);
        if (is_too_soon(&tool, moment_us, guard_us(per_seconds), spacing_us, &retry_after_ms)) {
            answer(call, "rate", retry_after_ms, false);
            return PG_DONE;
        }
    }
    if (places_max > 0 && !places.has_own && places.taken >= places_max) {
        answer(call, "concurrency", 0, false);
        return PG_DONE;
    }
    if (arg_int(call, 7) > 0) {
        RETURN_UNLESS_DONE(look_at_breaker(call, moment_us, &verdict, &retry_after_ms, &is_probe));
    }
    if (verdict) {
        answer(call, verdict, retry_after_ms, false);
        return PG_DONE;
    }
    if (rate_limit > 0 && !places.has_own) {
        tool.rate_us = later(tool.rate_us, moment_us) + spacing_us;
        pg_next_statement(call);
        pg_update(call, row, &tool);
    }
    if (rate_limit > 0 || places_max > 0) {
        RETURN_UNLESS_DONE(take_place(call, moment_us));
    }
    if (!was_reserved) {
        RETURN_UNLESS_DONE(reserve(call));
    }
    answer(call, "granted", 0, is_probe);
    return PG_DONE;
}

/* --- count and list --- */

enum pg_progress pg_statement_guard_count(struct pg_call *call)
{
    struct pg_touched touched = {0};
    size_t count = arg_count(call, 0);

    for (size_t i = 0; i < count; i++) {
        struct row_guard_budget row = {item_int(call, 0, i),     pg_keep(call, item_bytes(call, 1, i)),
                                       item_time_ms(call, 2, i), item_int(call, 3, i),
                                       item_int(call, 4, i),     item_int(call, 5, i)};
        struct pg_row *existing;
        const void *current;

        RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_GUARD_BUDGET, &row, &touched, &existing, &current));
        if (current) {
            struct row_guard_budget sum = *(const struct row_guard_budget *)current;

            sum.calls += row.calls;
            sum.emissions += row.emissions;
            sum.micros += row.micros;
            pg_update(call, existing, &sum);
        }
    }
    return end_with_affected(call, (int64_t)count);
}

struct listed {
    const struct row_guard *guard;
    const struct row_guard_breaker *breaker; /* NULL: none */
    int64_t places;
};

static int by_name(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    int order = slice_compare(x->guard->namespace, y->guard->namespace);

    if (order == 0) {
        order = slice_compare(x->guard->tool, y->guard->tool);
    }
    if (order == 0) {
        order =
            slice_compare(x->breaker ? x->breaker->endpoint : SLICE(""), y->breaker ? y->breaker->endpoint : SLICE(""));
    }
    return order;
}

/* The row keeps the end of the rest and how long it is. */
static void put_open_since(struct pg_call *call, const struct listed *listed)
{
    const struct row_guard_breaker *breaker = listed->breaker;

    if (!listed->guard->breaker_open.ptr && breaker && !slice_is(breaker->state, "closed")) {
        put_time_ms(call, breaker->open_until_us / 1000 - breaker->cooldown_ms);
    } else {
        put_null(call);
    }
}

static void put_listed(struct pg_call *call, const struct listed *listed, int64_t now_us)
{
    const struct row_guard_breaker *breaker = listed->breaker;

    put_bytes(call, listed->guard->namespace);
    put_bytes(call, listed->guard->tool);
    put_bytes(call, breaker ? breaker->endpoint : SLICE(""));
    put_bytes(call, listed->guard->breaker_open.ptr ? SLICE("open") : breaker ? breaker->state : SLICE("closed"));
    if (!listed->guard->breaker_open.ptr && breaker && !slice_is(breaker->state, "closed") &&
        breaker->open_until_us > now_us) {
        put_time_ms(call, breaker->open_until_us / 1000);
    } else {
        put_null(call);
    }
    if (listed->guard->paused_us > now_us) {
        put_time_ms(call, listed->guard->paused_us / 1000);
    } else {
        put_null(call);
    }
    put_int(call, listed->places);
    put_int(call, breaker ? breaker->opened : 0);
    if (listed->guard->breaker_open.ptr) {
        put_bytes(call, listed->guard->breaker_open);
    } else {
        put_null(call);
    }
    put_open_since(call, listed);
    put_row_end(call);
}

static int64_t count_places(struct pg_call *call, const struct row_guard *guard, int64_t now_us)
{
    struct row_guard_place key = {.shard = guard->shard, .namespace = guard->namespace, .tool = guard->tool};
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_GUARD_PLACE, &key); row; row = pg_next(call, PG_GUARD_PLACE, row)) {
        const struct row_guard_place *place = pg_see(call, row);

        if (place && (place->shard != key.shard || !slice_equal(place->namespace, key.namespace) ||
                      !slice_equal(place->tool, key.tool))) {
            break;
        }
        count += place && place->expires_us > now_us;
    }
    return count;
}

/* Puts a row for each breaker of the guard, or one row for a guard without breakers, and returns how many. With `out`
 * NULL the rows are only counted. */
static size_t list_one(struct pg_call *call, const struct row_guard *guard, int64_t now_us, struct listed *out)
{
    struct row_guard_breaker key = {
        .shard = guard->shard, .namespace = guard->namespace, .tool = guard->tool, .endpoint = SLICE("")};
    size_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_GUARD_BREAKER, &key); row; row = pg_next(call, PG_GUARD_BREAKER, row)) {
        const struct row_guard_breaker *breaker = pg_see(call, row);

        if (breaker && (breaker->shard != key.shard || !slice_equal(breaker->namespace, key.namespace) ||
                        !slice_equal(breaker->tool, key.tool))) {
            break;
        }
        if (breaker && out) {
            out[count] = (struct listed){guard, breaker, count_places(call, guard, now_us)};
        }
        count += breaker != NULL;
    }
    if (count == 0 && out) {
        out[0] = (struct listed){guard, NULL, count_places(call, guard, now_us)};
    }
    return count == 0 ? 1 : count;
}

enum pg_progress pg_statement_guard_list(struct pg_call *call)
{
    int64_t now_us = pg_clock_us(call->pg);
    struct listed *listed = NULL;
    size_t count = 0;

    for (int round = 0; round < 2; round++) {
        struct pg_row *row = pg_first(call, PG_GUARD, &(struct row_guard){INT16_MIN, SLICE(""), SLICE(""), 0, 0});

        for (; row; row = pg_next(call, PG_GUARD, row)) {
            const struct row_guard *guard = pg_see(call, row);

            if (guard && (arg_is_null(call, 0) || slice_equal(guard->namespace, arg_bytes(call, 0)))) {
                count += list_one(call, guard, now_us, listed ? listed + count : NULL);
            }
        }
        if (round == 0) {
            listed = arena_array(call->arena, count + 1, sizeof(*listed));
            count = 0;
        }
    }
    qsort(listed, count, sizeof(*listed), by_name);
    for (size_t i = 0; i < count; i++) {
        put_listed(call, &listed[i], now_us);
    }
    return PG_DONE;
}
