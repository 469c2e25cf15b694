/* Holds, as in migrations 0022 and 0034, with the events of 0030. */
#include "tests/sim/pg_statements.h"

#define CHANNEL "sagad_holds"

static void put_time_or_null(struct pg_call *call, int64_t ms)
{
    if (ms) {
        put_time_ms(call, ms);
    } else {
        put_null(call);
    }
}

static void put_hold(struct pg_call *call, const struct row_hold *hold)
{
    put_int(call, hold->number);
    put_bytes(call, hold->namespace);
    put_bytes(call, hold->body);
    put_time_ms(call, hold->made_ms);
    put_time_or_null(call, hold->until_ms);
    put_time_or_null(call, hold->released_ms);
    put_bytes(call, hold->release);
    put_row_end(call);
}

static bool is_in_force(struct pg_call *call, const struct row_hold *hold)
{
    return !hold->released_ms && (!hold->until_ms || hold->until_ms > pg_clock_ms(call->pg));
}

static struct pg_row *first_hold(struct pg_call *call)
{
    return pg_first(call, PG_HOLD, &(struct row_hold){.number = INT64_MIN});
}

static struct pg_row *version_row(struct pg_call *call)
{
    return pg_find(call, PG_HOLD_VERSION, &(struct row_hold_version){0});
}

/* Runs: update hold_version set version = version + 1 */
static enum pg_progress raise_version(struct pg_call *call, int64_t *version)
{
    struct pg_row *row = version_row(call);
    const void *current = NULL;
    struct row_hold_version changed;

    RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    CHECK(current);
    changed = *(const struct row_hold_version *)current;
    changed.version++;
    pg_update(call, row, &changed);
    *version = changed.version;
    return PG_DONE;
}

/* --- by people --- */

static const struct row_hold *hold_of_id(struct pg_call *call, struct uuid id)
{
    for (struct pg_row *row = first_hold(call); row; row = pg_next(call, PG_HOLD, row)) {
        const struct row_hold *hold = pg_see(call, row);

        if (hold && uuid_equal(&hold->id, &id)) {
            return hold;
        }
    }
    return NULL;
}

static int64_t count_in_force(struct pg_call *call, struct slice namespace)
{
    int64_t count = 0;

    for (struct pg_row *row = first_hold(call); row; row = pg_next(call, PG_HOLD, row)) {
        const struct row_hold *hold = pg_see(call, row);

        count += hold && slice_equal(hold->namespace, namespace) && is_in_force(call, hold);
    }
    return count;
}

static enum pg_progress tell(struct pg_call *call, const struct row_hold *hold)
{
    struct slice body = hold->released_ms ? hold->release : hold->body;

    return pg_event_add(
        call, &(struct row_event){.shard = hold->number % 64,
                                  .namespace = hold->namespace,
                                  .type = hold->released_ms  ? SLICE("hold.released")
                                          : hold->ended_told ? SLICE("hold.ended")
                                                             : SLICE("hold.placed"),
                                  .subject = pg_keep_printed(call, "hold/%lld", (long long)hold->number),
                                  .data = pg_keep_printed(call, "{\"n\":%lld,\"%s\":%.*s}", (long long)hold->number,
                                                          hold->released_ms ? "released" : "hold", SLICE_ARG(body))});
}

/* Removes what ended 30 days ago, in this namespace. */
static enum pg_progress remove_old(struct pg_call *call)
{
    int64_t before_ms = pg_clock_ms(call->pg) - INT64_C(30) * 86400000;
    struct pg_touched touched = {0};

    for (struct pg_row *row = first_hold(call); row; row = pg_next(call, PG_HOLD, row)) {
        const struct row_hold *hold = pg_see(call, row);
        const void *current = NULL;
        int64_t ended_ms = !hold             ? 0
                           : !hold->until_ms ? hold->released_ms
                           : hold->released_ms
                               ? (hold->released_ms < hold->until_ms ? hold->released_ms : hold->until_ms)
                               : hold->until_ms;

        if (ended_ms && ended_ms < before_ms && slice_equal(hold->namespace, arg_bytes(call, 1))) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
        }
        if (current) {
            pg_delete(call, row);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_hold_put(struct pg_call *call)
{
    const struct row_hold *known;
    int64_t version = 0, answer;

    pg_next_statement(call);
    RETURN_UNLESS_DONE(raise_version(call, &version));
    pg_next_statement(call);
    known = hold_of_id(call, arg_uuid(call, 0));
    if (!known) {
        pg_next_statement(call);
        RETURN_UNLESS_DONE(remove_old(call));
        pg_next_statement(call);
    }
    answer = known ? known->number : count_in_force(call, arg_bytes(call, 1)) >= arg_int(call, 4) ? -1 : version;
    if (answer == version) {
        struct row_hold row = {.number = version,
                               .id = arg_uuid(call, 0),
                               .namespace = pg_keep(call, arg_bytes(call, 1)),
                               .body = pg_keep(call, arg_bytes(call, 2)),
                               .made_ms = pg_clock_ms(call->pg),
                               .until_ms = arg_is_null(call, 3) ? 0 : arg_time_ms(call, 3),
                               .release = SLICE_NONE};

        RETURN_UNLESS_DONE(pg_insert(call, PG_HOLD, &row, NULL));
        RETURN_UNLESS_DONE(tell(call, &row));
        pg_notify(call, CHANNEL, SLICE(""));
    }
    put_int(call, answer);
    return end_with_row(call);
}

enum pg_progress pg_statement_hold_release(struct pg_call *call)
{
    struct pg_row *row = NULL;
    const struct row_hold *hold;
    const void *current = NULL;
    int64_t version, answer = -1;

    pg_next_statement(call);
    RETURN_UNLESS_DONE(raise_version(call, &version));
    pg_next_statement(call);
    row = pg_find(call, PG_HOLD, &(struct row_hold){.number = arg_int(call, 0)});
    hold = pg_see(call, row);
    if (hold && slice_equal(hold->namespace, arg_bytes(call, 1))) {
        answer = 0;
    }
    if (answer == 0 && is_in_force(call, hold) && !hold->ended_told) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current && !((const struct row_hold *)current)->ended_told) { /* who releases a hold has locked the version */
        struct row_hold changed = *(const struct row_hold *)current;

        changed.released_ms = pg_clock_ms(call->pg);
        changed.release = pg_keep(call, arg_bytes(call, 2));
        pg_update(call, row, &changed);
        RETURN_UNLESS_DONE(tell(call, &changed));
        pg_notify(call, CHANNEL, SLICE(""));
        answer = version;
    }
    put_int(call, answer);
    return end_with_row(call);
}

enum pg_progress pg_statement_hold_list(struct pg_call *call)
{
    int64_t before = arg_int(call, 1);

    for (int64_t left = arg_int(call, 3); left > 0; left--) { /* the newest first */
        const struct row_hold *next = NULL;

        for (struct pg_row *row = first_hold(call); row; row = pg_next(call, PG_HOLD, row)) {
            const struct row_hold *hold = pg_see(call, row);

            if (hold && hold->number < before && slice_equal(hold->namespace, arg_bytes(call, 0)) &&
                (arg_int(call, 2) || is_in_force(call, hold))) {
                next = hold;
            }
        }
        if (!next) {
            break;
        }
        put_hold(call, next);
        before = next->number;
    }
    return PG_DONE;
}

enum pg_progress pg_statement_hold_one(struct pg_call *call)
{
    const struct row_hold *hold = pg_see(call, pg_find(call, PG_HOLD, &(struct row_hold){.number = arg_int(call, 1)}));

    if (hold && slice_equal(hold->namespace, arg_bytes(call, 0))) {
        put_hold(call, hold);
    }
    return PG_DONE;
}

/* --- by engines --- */

static enum pg_progress put_version(struct pg_call *call, const struct row_hold_version *version)
{
    put_int(call, version->version);
    return end_with_row(call);
}

enum pg_progress pg_statement_hold_version(struct pg_call *call)
{
    return put_version(call, pg_see(call, version_row(call)));
}

enum pg_progress pg_statement_hold_renewed(struct pg_call *call)
{
    const void *current = NULL;

    RETURN_UNLESS_DONE(pg_lock(call, version_row(call), PG_SHARE, &current));
    CHECK(current);
    return put_version(call, current);
}

enum pg_progress pg_statement_hold_in_force(struct pg_call *call)
{
    for (struct pg_row *row = first_hold(call); row; row = pg_next(call, PG_HOLD, row)) {
        const struct row_hold *hold = pg_see(call, row);

        if (hold && is_in_force(call, hold)) {
            put_hold(call, hold);
        }
    }
    return PG_DONE;
}

static bool is_untold(const struct row_hold *hold)
{
    return hold && hold->until_ms && !hold->released_ms && !hold->ended_told;
}

enum pg_progress pg_statement_hold_tell_ended(struct pg_call *call)
{
    enum { MOST = 50 };
    struct row_hold told[MOST];
    size_t count = 0;
    int64_t next_ms = INT64_MAX;
    struct pg_row *row;

    pg_next_statement(call);
    for (row = first_hold(call); row && count < MOST; row = pg_next(call, PG_HOLD, row)) {
        const struct row_hold *hold = pg_see(call, row);
        const void *current = NULL;

        if (is_untold(hold) && !is_in_force(call, hold)) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
        }
        if (is_untold(current)) {
            told[count] = *(const struct row_hold *)current;
            told[count].ended_told = true;
            pg_update(call, row, &told[count++]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        RETURN_UNLESS_DONE(tell(call, &told[i]));
    }
    pg_next_statement(call);
    for (row = first_hold(call); row; row = pg_next(call, PG_HOLD, row)) {
        const struct row_hold *hold = pg_see(call, row);

        next_ms = is_untold(hold) && hold->until_ms < next_ms ? hold->until_ms : next_ms;
    }
    int64_t left_us = next_ms == INT64_MAX ? 0 : next_ms * 1000 - pg_clock_us(call->pg);

    put_int(call, next_ms == INT64_MAX ? -1 : left_us > 0 ? (left_us + 999) / 1000 : 0);
    return end_with_row(call);
}

static bool is_behind(const struct row_engine *engine, int64_t version)
{
    return engine && !engine->knows_no_holds && engine->holds < version;
}

enum pg_progress pg_statement_hold_seen(struct pg_call *call)
{
    struct pg_touched touched = {0};
    struct pg_row *row = pg_find(call, PG_ENGINE, &(struct row_engine){.instance = arg_bytes(call, 0)});
    const void *current = NULL;
    bool is_changed = false;

    if (is_behind(pg_see(call, row), arg_int(call, 1))) {
        RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
    }
    if (is_behind(current, arg_int(call, 1))) {
        struct row_engine changed = *(const struct row_engine *)current;

        changed.holds = arg_int(call, 1);
        pg_update(call, row, &changed);
        is_changed = true;
    }
    return end_with_affected(call, is_changed);
}

static bool has_a_shard(struct pg_call *call, const struct row_engine *engine)
{
    for (struct pg_row *row = pg_first(call, PG_SHARD, &(struct row_shard){.shard = INT16_MIN}); row;
         row = pg_next(call, PG_SHARD, row)) {
        const struct row_shard *shard = pg_see(call, row);

        if (shard && shard->owner_identity.ptr && slice_equal(shard->owner_identity, engine->identity) &&
            shard->has_expiry && pg_left_ms(call, shard->expires_ms) > 0) {
            return true;
        }
    }
    return false;
}

enum pg_progress pg_statement_hold_unseen(struct pg_call *call)
{
    struct pg_row *row = pg_first(call, PG_ENGINE, &(struct row_engine){.instance = SLICE("")});

    for (; row; row = pg_next(call, PG_ENGINE, row)) {
        const struct row_engine *engine = pg_see(call, row);

        if (engine && (engine->knows_no_holds || engine->holds < arg_int(call, 0)) &&
            (pg_left_ms(call, engine->expires_ms) > 0 || has_a_shard(call, engine))) {
            put_bytes(call, engine->name);
            put_int(call, engine->knows_no_holds);
            put_row_end(call);
        }
    }
    return PG_DONE;
}
