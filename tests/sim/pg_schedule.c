/* Schedules, as in migration 0020. The only time zone here is UTC. */
#include "tests/sim/pg_statements.h"

#define CHANNEL "sagad_schedules"

static struct row_schedule key_of(struct pg_call *call, int first)
{
    return (struct row_schedule){
        .shard = arg_int(call, first), .namespace = arg_bytes(call, first + 1), .name = arg_bytes(call, first + 2)};
}

static struct row_schedule first_of(int64_t shard)
{
    return (struct row_schedule){.shard = shard, .namespace = SLICE(""), .name = SLICE("")};
}

static void put_zone(struct pg_call *call, struct slice zone)
{
    put_bytes(call, zone.ptr && slice_is(zone, "UTC") ? SLICE("0:0") : SLICE_NONE);
}

static void put_schedule(struct pg_call *call, const struct row_schedule *schedule)
{
    put_int(call, schedule->shard);
    put_bytes(call, schedule->namespace);
    put_bytes(call, schedule->name);
    put_uuid(call, &schedule->id);
    put_int(call, schedule->revision);
    put_bytes(call, schedule->body);
    put_bytes(call, schedule->state);
    put_bytes(call, schedule->hold);
    put_time_ms(call, schedule->created_ms);
    put_time_ms(call, schedule->last_ms);
    put_bytes(call, schedule->actor);
    put_zone(call, schedule->zone);
    put_row_end(call);
}

/* --- schedule_put() --- */

static int64_t count_of(struct pg_call *call, struct slice namespace)
{
    const struct row_schedule first = first_of(INT16_MIN);
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_SCHEDULE, &first); row; row = pg_next(call, PG_SCHEDULE, row)) {
        const struct row_schedule *schedule = pg_see(call, row);

        count += schedule && slice_equal(schedule->namespace, namespace);
    }
    return count;
}

static enum pg_progress insert(struct pg_call *call, bool *inserted)
{
    struct row_schedule row = {.shard = arg_int(call, 0),
                               .namespace = pg_keep(call, arg_bytes(call, 1)),
                               .name = pg_keep(call, arg_bytes(call, 2)),
                               .id = arg_uuid(call, 3),
                               .revision = 1,
                               .zone = pg_keep(call, arg_bytes(call, 4)),
                               .body = pg_keep(call, arg_bytes(call, 5)),
                               .state = SLICE("{}"),
                               .actor = pg_keep(call, arg_bytes(call, 6)),
                               .created_ms = pg_clock_ms(call->pg),
                               .last_ms = pg_clock_ms(call->pg),
                               .look_ms = pg_clock_ms(call->pg)};

    RETURN_UNLESS_DONE(pg_insert_new(call, PG_SCHEDULE, &row, inserted));
    if (*inserted) {
        pg_notify(call, CHANNEL, pg_number_text(call, row.shard));
    }
    return PG_DONE;
}

enum pg_progress pg_statement_schedule_put(struct pg_call *call)
{
    struct row_schedule key = key_of(call, 0);
    const struct row_schedule *known = pg_see(call, pg_find(call, PG_SCHEDULE, &key));
    bool inserted = false;
    int64_t answer;

    if (!known) {
        pg_next_statement(call);
        if (count_of(call, key.namespace) >= arg_int(call, 7)) {
            put_int(call, -1);
            return end_with_row(call);
        }
        pg_next_statement(call);
        RETURN_UNLESS_DONE(insert(call, &inserted));
        pg_next_statement(call);
        known = inserted ? NULL : pg_see(call, pg_find(call, PG_SCHEDULE, &key));
    }
    answer = inserted ? 1 : known && slice_equal(known->body, arg_bytes(call, 5)) ? 2 : 0;
    put_int(call, answer);
    return end_with_row(call);
}

/* --- by people --- */

enum pg_progress pg_statement_schedule_list(struct pg_call *call)
{
    struct slice namespace = arg_bytes(call, 0), name = arg_bytes(call, 1), after = arg_bytes(call, 2);
    const struct row_schedule first = first_of(INT16_MIN);
    int64_t left = arg_int(call, 3);

    for (;;) { /* in order of the name, over all shards */
        const struct row_schedule *next = NULL;

        for (struct pg_row *row = pg_first(call, PG_SCHEDULE, &first); row; row = pg_next(call, PG_SCHEDULE, row)) {
            const struct row_schedule *schedule = pg_see(call, row);

            if (schedule && slice_equal(schedule->namespace, namespace) && slice_compare(schedule->name, after) > 0 &&
                (!name.ptr || slice_equal(schedule->name, name)) &&
                (!next || slice_compare(schedule->name, next->name) < 0)) {
                next = schedule;
            }
        }
        if (!next || left-- == 0) {
            return PG_DONE;
        }
        put_schedule(call, next);
        after = next->name;
    }
}

enum pg_progress pg_statement_schedule_hold(struct pg_call *call)
{
    struct row_schedule key = key_of(call, 0);
    struct pg_row *row = pg_find(call, PG_SCHEDULE, &key);
    struct pg_touched touched = {0};
    const void *current;

    RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
    if (current) {
        struct row_schedule changed = *(const struct row_schedule *)current;

        changed.hold = pg_keep(call, arg_bytes(call, 3));
        changed.look_ms = pg_clock_ms(call->pg);
        changed.revision++;
        pg_update(call, row, &changed);
        pg_notify(call, CHANNEL, pg_number_text(call, changed.shard));
        pg_put_void(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_schedule_delete(struct pg_call *call)
{
    struct row_schedule key = key_of(call, 0);
    struct pg_touched touched = {0};
    bool deleted;

    RETURN_UNLESS_DONE(pg_delete_key(call, PG_SCHEDULE, &key, &touched, &deleted));
    if (deleted) {
        put_int(call, 1);
        put_row_end(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_zone(struct pg_call *call)
{
    if (slice_is(arg_bytes(call, 0), "UTC")) {
        put_zone(call, arg_bytes(call, 0));
        put_row_end(call);
    }
    return PG_DONE;
}

/* --- by the owner of the shard --- */

static const struct row_schedule *see_in(struct pg_call *call, struct pg_row *row, int64_t shard, bool *behind)
{
    const struct row_schedule *schedule = pg_see(call, row);

    *behind = schedule && schedule->shard != shard;
    return *behind ? NULL : schedule;
}

/* A shard has few schedules here, so no limit is reached. */
enum pg_progress pg_statement_schedule_due(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, i);
        const struct row_schedule first = first_of(shard);
        bool behind = false;

        for (struct pg_row *row = pg_first(call, PG_SCHEDULE, &first); row && !behind;
             row = pg_next(call, PG_SCHEDULE, row)) {
            const struct row_schedule *schedule = see_in(call, row, shard, &behind);

            if (schedule && !schedule->hold.ptr && schedule->look_ms <= arg_time_ms(call, 1)) {
                put_schedule(call, schedule);
            }
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_schedule_next(struct pg_call *call)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, i);
        const struct row_schedule first = first_of(shard);
        bool behind = false;

        for (struct pg_row *row = pg_first(call, PG_SCHEDULE, &first); row && !behind;
             row = pg_next(call, PG_SCHEDULE, row)) {
            const struct row_schedule *schedule = see_in(call, row, shard, &behind);

            if (schedule && !schedule->hold.ptr && schedule->look_ms > arg_time_ms(call, 1) &&
                schedule->look_ms < next_ms) {
                next_ms = schedule->look_ms;
            }
        }
    }
    if (next_ms == INT64_MAX) {
        put_null(call);
    } else {
        put_time_ms(call, next_ms);
    }
    return end_with_row(call);
}

static bool is_as_read(struct pg_call *call, const struct row_schedule *schedule)
{
    struct uuid id = arg_uuid(call, 4);

    return schedule && uuid_equal(&schedule->id, &id) && schedule->revision == arg_int(call, 5);
}

static enum pg_progress move(struct pg_call *call, int64_t *answer)
{
    struct row_schedule key = {.shard = arg_int(call, 0), .namespace = arg_bytes(call, 2), .name = arg_bytes(call, 3)};
    struct pg_row *row = pg_find(call, PG_SCHEDULE, &key);
    const void *current = NULL;

    *answer = -1;
    pg_next_statement(call);
    if (!is_as_read(call, pg_see(call, row))) {
        return PG_DONE;
    }
    RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    if (is_as_read(call, current)) {
        struct row_schedule changed = *(const struct row_schedule *)current;

        changed.last_ms = changed.last_ms > arg_time_ms(call, 6) ? changed.last_ms : arg_time_ms(call, 6);
        changed.look_ms = arg_time_ms(call, 7);
        changed.state = pg_keep(call, arg_bytes(call, 8));
        changed.revision++;
        pg_update(call, row, &changed);
        *answer = changed.revision;
    }
    return PG_DONE;
}

enum pg_progress pg_statement_schedule_move(struct pg_call *call)
{
    struct pg_row *shard = pg_find(call, PG_SHARD, &(struct row_shard){.shard = arg_int(call, 0)});
    const struct row_shard *seen = pg_see(call, shard);
    const void *current = NULL;
    int64_t answer = 0;

    if (seen && seen->epoch == arg_int(call, 1)) { /* at another epoch the statement waits for nobody */
        RETURN_UNLESS_DONE(pg_lock(call, shard, PG_KEY_SHARE, &current));
    }
    if (current && ((const struct row_shard *)current)->epoch == arg_int(call, 1)) {
        RETURN_UNLESS_DONE(move(call, &answer));
    }
    put_int(call, answer);
    return end_with_row(call);
}
