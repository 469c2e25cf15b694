/* Bulk jobs, as in migration 0023. */
#include <string.h>

#include "tests/sim/pg_state.h"
#include "tests/sim/pg_statements.h"

#define CHANNEL "sagad_bulk"
#define DAY_MS (INT64_C(24) * 3600 * 1000)

static struct row_bulk key_of(struct pg_call *call, int shard, int id)
{
    return (struct row_bulk){.shard = arg_int(call, shard), .id = arg_uuid(call, id)};
}

static void put_bulk(struct pg_call *call, const struct row_bulk *bulk)
{
    put_int(call, bulk->shard);
    put_uuid(call, &bulk->id);
    put_bytes(call, bulk->namespace);
    put_bytes(call, bulk->state);
    put_bytes(call, bulk->body);
    put_int(call, bulk->items);
    put_int(call, bulk->done);
    put_int(call, bulk->changed);
    put_int(call, bulk->refused);
    put_bytes(call, bulk->actor);
    put_time_ms(call, bulk->created_ms);
    put_time_ms(call, bulk->expires_ms);
    put_bytes(call, bulk->run);
    put_bytes(call, bulk->stop);
    if (bulk->ended_ms) {
        put_time_ms(call, bulk->ended_ms);
    } else {
        put_null(call);
    }
}

static const struct row_bulk *see(struct pg_call *call, struct row_bulk key)
{
    return pg_see(call, pg_find(call, PG_BULK, &key));
}

/* --- freezing --- */

bool pg_bulk_is_open(const struct row_bulk *bulk, int64_t now_ms)
{
    return slice_is(bulk->state, "running") ||
           ((slice_is(bulk->state, "freezing") || slice_is(bulk->state, "frozen")) && bulk->expires_ms > now_ms);
}

static int64_t count_open(struct pg_call *call, struct slice namespace, int64_t now_ms)
{
    const struct row_bulk first = {.shard = INT16_MIN};
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_BULK, &first); row; row = pg_next(call, PG_BULK, row)) {
        const struct row_bulk *bulk = pg_see(call, row);

        count += bulk && slice_equal(bulk->namespace, namespace) && pg_bulk_is_open(bulk, now_ms);
    }
    return count;
}

static void put_answer(struct pg_call *call, int64_t answer)
{
    put_int(call, answer);
    put_row_end(call);
}

enum pg_progress pg_statement_bulk_begin(struct pg_call *call)
{
    int64_t now_ms = pg_clock_ms(call->pg);
    struct row_bulk row = {.shard = arg_int(call, 0),
                           .id = arg_uuid(call, 1),
                           .namespace = pg_keep(call, arg_bytes(call, 2)),
                           .state = SLICE("freezing"),
                           .body = pg_keep(call, arg_bytes(call, 3)),
                           .actor = pg_keep(call, arg_bytes(call, 4)),
                           .created_ms = now_ms,
                           .expires_ms = arg_time_ms(call, 5),
                           .look_ms = arg_time_ms(call, 5) + DAY_MS};
    bool inserted;

    if (see(call, row)) {
        put_answer(call, 1);
        return PG_DONE;
    }
    pg_next_statement(call);
    if (count_open(call, row.namespace, now_ms) >= arg_int(call, 6)) {
        put_answer(call, 0);
        return PG_DONE;
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_BULK, &row, &inserted));
    put_answer(call, 1);
    return PG_DONE;
}

enum pg_progress pg_statement_bulk_add(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 3); i++) {
        struct row_bulk_item item = {.shard = arg_int(call, 0),
                                     .bulk = arg_uuid(call, 1),
                                     .number = arg_int(call, 2) + (int64_t)i + 1,
                                     .body = pg_keep(call, item_bytes(call, 3, i)),
                                     .look_ms = arg_time_ms(call, 4)};
        bool inserted;

        RETURN_UNLESS_DONE(pg_insert_new(call, PG_BULK_ITEM, &item, &inserted));
        affected += inserted;
    }
    return end_with_affected(call, affected);
}

static bool may_freeze(const struct row_bulk *bulk)
{
    return bulk && (slice_is(bulk->state, "freezing") || slice_is(bulk->state, "frozen"));
}

enum pg_progress pg_statement_bulk_freeze(struct pg_call *call)
{
    struct row_bulk key = key_of(call, 0, 1);
    struct pg_row *row = pg_find(call, PG_BULK, &key);
    struct pg_touched touched = {0};
    const void *current = NULL;

    if (may_freeze(pg_see(call, row))) {
        RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
    }
    if (may_freeze(current)) {
        struct row_bulk changed = *(const struct row_bulk *)current;

        changed.state = SLICE("frozen");
        changed.body = pg_keep(call, arg_bytes(call, 2));
        changed.items = arg_int(call, 3);
        pg_update(call, row, &changed);
        put_bulk(call, &changed);
        put_row_end(call);
    }
    return PG_DONE;
}

/* --- by people --- */

static void put_state(struct pg_call *call, struct slice state)
{
    put_bytes(call, state);
    put_row_end(call);
}

/* Does what the trigger of migration 0030 does. */
static enum pg_progress tell_end(struct pg_call *call, const struct row_bulk *job)
{
    bool is_stopped = job->stop.ptr != NULL;
    char id[UUID_TEXT_BYTES];

    uuid_text(&job->id, id);
    return pg_event_add(
        call,
        &(struct row_event){
            .shard = job->shard,
            .namespace = job->namespace,
            .type = SLICE("bulk.ended"),
            .subject = pg_keep_printed(call, "bulk/%s", id),
            .data = pg_keep_printed(call,
                                    "{\"bulk\":\"%s\",\"state\":\"%.*s\",\"items\":%lld,\"done\":%lld,\"changed\":%lld,"
                                    "\"refused\":%lld%s%.*s}",
                                    id, SLICE_ARG(job->state), (long long)job->items, (long long)job->done,
                                    (long long)job->changed, (long long)job->refused, is_stopped ? ",\"stop\":" : "",
                                    SLICE_ARG(is_stopped ? job->stop : SLICE("")))});
}

static enum pg_progress move(struct pg_call *call, struct pg_row *row, const struct row_bulk *current)
{
    struct slice to = arg_bytes(call, 3);
    struct row_bulk changed = *current;
    int64_t now_ms = pg_clock_ms(call->pg);

    if (slice_is(to, "running") && slice_is(current->state, "frozen")) {
        if (current->expires_ms <= now_ms) {
            put_state(call, SLICE("expired"));
            return PG_DONE;
        }
        changed.run = pg_keep(call, arg_bytes(call, 4));
        changed.look_ms = now_ms;
        pg_notify(call, CHANNEL, pg_number_text(call, changed.shard));
    } else if (slice_is(to, "stopped") && (slice_is(current->state, "frozen") || slice_is(current->state, "running"))) {
        changed.stop = pg_keep(call, arg_bytes(call, 4));
        changed.ended_ms = now_ms;
        changed.look_ms = arg_time_ms(call, 5);
        pg_notify(call, CHANNEL, pg_number_text(call, changed.shard));
    } else {
        put_state(call, current->state);
        return PG_DONE;
    }
    changed.state = pg_keep(call, to);
    pg_next_statement(call);
    pg_update(call, row, &changed);
    if (changed.ended_ms) {
        RETURN_UNLESS_DONE(tell_end(call, &changed));
    }
    put_state(call, to);
    return PG_DONE;
}

enum pg_progress pg_statement_bulk_move(struct pg_call *call)
{
    struct row_bulk key = key_of(call, 0, 1);
    struct pg_row *row = pg_find(call, PG_BULK, &key);
    const struct row_bulk *seen = pg_see(call, row);
    const void *current = NULL;

    if (seen && slice_equal(seen->namespace, arg_bytes(call, 2))) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    }
    if (!current || slice_is(((const struct row_bulk *)current)->state, "freezing")) {
        put_state(call, SLICE_NONE);
    } else {
        RETURN_UNLESS_DONE(move(call, row, current));
    }
    return PG_DONE;
}

enum pg_progress pg_statement_bulk_list(struct pg_call *call)
{
    const struct row_bulk first = {.shard = INT16_MIN};
    struct uuid before = arg_uuid(call, 1);
    int64_t left = arg_int(call, 2);

    for (;;) { /* the newest first, over all shards */
        const struct row_bulk *next = NULL;

        for (struct pg_row *row = pg_first(call, PG_BULK, &first); row; row = pg_next(call, PG_BULK, row)) {
            const struct row_bulk *bulk = pg_see(call, row);

            if (bulk && slice_equal(bulk->namespace, arg_bytes(call, 0)) && !slice_is(bulk->state, "freezing") &&
                uuid_compare(&bulk->id, &before) < 0 && (!next || uuid_compare(&bulk->id, &next->id) > 0)) {
                next = bulk;
            }
        }
        if (!next || left-- == 0) {
            return PG_DONE;
        }
        put_bulk(call, next);
        put_row_end(call);
        before = next->id;
    }
}

enum pg_progress pg_statement_bulk_one(struct pg_call *call)
{
    const struct row_bulk *bulk = see(call, key_of(call, 0, 1));

    if (bulk && slice_equal(bulk->namespace, arg_bytes(call, 2)) && !slice_is(bulk->state, "freezing")) {
        put_bulk(call, bulk);
        put_row_end(call);
    }
    return PG_DONE;
}

/* --- items --- */

static bool is_of(const struct row_bulk_item *item, struct row_bulk job)
{
    return item->shard == job.shard && uuid_equal(&item->bulk, &job.id);
}

/* Returns the first item of the job behind a number, or NULL. `row` becomes the row of the item. */
static const struct row_bulk_item *item_after(struct pg_call *call, struct row_bulk job, int64_t after,
                                              struct pg_row **row)
{
    const struct row_bulk_item from = {.shard = job.shard, .bulk = job.id, .number = after + 1};

    for (*row = pg_first(call, PG_BULK_ITEM, &from); *row; *row = pg_next(call, PG_BULK_ITEM, *row)) {
        const struct row_bulk_item *item = pg_see(call, *row);

        if (item) {
            return is_of(item, job) ? item : NULL;
        }
    }
    return NULL;
}

enum pg_progress pg_statement_bulk_items(struct pg_call *call)
{
    struct row_bulk job = key_of(call, 0, 1);
    struct slice outcome = arg_bytes(call, 3);
    int64_t after = arg_int(call, 2), left = arg_int(call, 4);
    struct pg_row *row;

    for (const struct row_bulk_item *item; left > 0 && (item = item_after(call, job, after, &row)) != NULL;) {
        after = item->number;
        if (!outcome.ptr || slice_equal(outcome, item->outcome.ptr ? item->outcome : SLICE("open"))) {
            left--;
            put_int(call, item->number);
            put_bytes(call, item->body);
            put_bytes(call, item->outcome);
            put_bytes(call, item->detail);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

/* --- by the owner of the shard --- */

/* Returns the job of these shards that is looked at first; NULL when there is none. */
static const struct row_bulk *first_to_look(struct pg_call *call)
{
    const struct row_bulk *best = NULL;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_bulk first = {.shard = item_int(call, 0, i)};

        for (struct pg_row *row = pg_first(call, PG_BULK, &first); row; row = pg_next(call, PG_BULK, row)) {
            const struct row_bulk *bulk = pg_see(call, row);

            if (bulk && bulk->shard != first.shard) {
                break;
            }
            if (bulk && (!best || bulk->look_ms < best->look_ms ||
                         (bulk->look_ms == best->look_ms && uuid_compare(&bulk->id, &best->id) < 0))) {
                best = bulk;
            }
        }
    }
    return best;
}

static bool comes_before(const struct row_bulk_item *a, const struct row_bulk_item *b)
{
    return a->look_ms != b->look_ms ? a->look_ms < b->look_ms : a->number < b->number;
}

/* Returns the open item behind `last` in the order of their turns; NULL when there are no more. */
static const struct row_bulk_item *next_due(struct pg_call *call, struct row_bulk job, int64_t now_ms,
                                            const struct row_bulk_item *last)
{
    const struct row_bulk_item *best = NULL, *item;
    struct pg_row *row;

    for (int64_t after = INT64_MIN; (item = item_after(call, job, after, &row)) != NULL; after = item->number) {
        if (!item->outcome.ptr && item->look_ms <= now_ms && (!last || comes_before(last, item)) &&
            (!best || comes_before(item, best))) {
            best = item;
        }
    }
    return best;
}

enum pg_progress pg_statement_bulk_due(struct pg_call *call)
{
    const struct row_bulk *job = first_to_look(call);
    int64_t now_ms = arg_time_ms(call, 1), left = arg_int(call, 2);
    const struct row_bulk_item *item = NULL;

    if (!job || job->look_ms > now_ms) {
        return PG_DONE;
    }
    item = slice_is(job->state, "running") && left > 0 ? next_due(call, *job, now_ms, NULL) : NULL;
    if (!item) {
        put_bulk(call, job);
        put_null(call);
        put_null(call);
        put_row_end(call);
    }
    for (; item && left > 0; left--, item = next_due(call, *job, now_ms, item)) {
        put_bulk(call, job);
        put_int(call, item->number);
        put_bytes(call, item->body);
        put_row_end(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_bulk_next(struct pg_call *call)
{
    const struct row_bulk *job = first_to_look(call);

    if (job) {
        put_time_ms(call, job->look_ms);
    } else {
        put_null(call);
    }
    return end_with_row(call);
}

/* Locks the lease of the shard and then the job, if it fits. `*current` is NULL when another engine has the shard
 * (`held` is false), and when the job does not fit: then nobody is waited for. */
static enum pg_progress hold(struct pg_call *call, enum pg_lock_mode mode,
                             bool (*fits)(struct pg_call *call, const struct row_bulk *job), struct pg_row **row,
                             const void **current, bool *held)
{
    struct pg_row *shard = pg_find(call, PG_SHARD, &(struct row_shard){.shard = arg_int(call, 0)});
    const struct row_shard *seen = pg_see(call, shard);
    struct row_bulk key = key_of(call, 0, 2);

    *held = false;
    *current = NULL;
    if (seen && seen->epoch == arg_int(call, 1)) { /* at another epoch the statement waits for nobody */
        RETURN_UNLESS_DONE(pg_lock(call, shard, PG_KEY_SHARE, current));
    }
    *held = *current && ((const struct row_shard *)*current)->epoch == arg_int(call, 1);
    *current = NULL;
    *row = NULL;
    if (*held) {
        pg_next_statement(call);
        *row = pg_find(call, PG_BULK, &key);
        if (fits(call, pg_see(call, *row))) {
            RETURN_UNLESS_DONE(pg_lock(call, *row, mode, current));
        }
    }
    return PG_DONE;
}

static bool is_there(struct pg_call *call, const struct row_bulk *job)
{
    (void)call;
    return job != NULL;
}

static enum pg_progress settle_item(struct pg_call *call, struct pg_touched *touched, size_t i, struct row_bulk *job)
{
    const struct row_bulk_item key = {.shard = job->shard, .bulk = job->id, .number = item_int(call, 3, i)};
    struct pg_row *row = pg_find(call, PG_BULK_ITEM, &key);
    const struct row_bulk_item *seen = pg_see(call, row);
    const void *current = NULL;

    if (seen && !seen->outcome.ptr) {
        RETURN_UNLESS_DONE(pg_take(call, touched, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current && !((const struct row_bulk_item *)current)->outcome.ptr) {
        struct row_bulk_item changed = *(const struct row_bulk_item *)current;

        changed.outcome = pg_keep(call, item_bytes(call, 4, i));
        changed.detail = pg_keep(call, item_bytes(call, 5, i));
        changed.look_ms = item_time_ms(call, 6, i);
        pg_update(call, row, &changed);
        job->done += slice_is(changed.outcome, "done");
        job->changed += slice_is(changed.outcome, "changed");
        job->refused += slice_is(changed.outcome, "refused");
    }
    return PG_DONE;
}

static enum pg_progress settle(struct pg_call *call, struct pg_row *row, struct row_bulk job)
{
    struct pg_touched touched = {0};
    const struct row_bulk_item *next;
    bool had_ended = job.ended_ms != 0;

    pg_next_statement(call);
    for (size_t i = 0; i < arg_count(call, 3); i++) {
        RETURN_UNLESS_DONE(settle_item(call, &touched, i, &job));
    }
    pg_next_statement(call);
    next = next_due(call, job, INT64_MAX, NULL);
    if (slice_is(job.state, "running")) {
        job.look_ms = next ? next->look_ms : arg_time_ms(call, 7);
        if (!next) {
            job.state = SLICE("done");
            job.ended_ms = pg_clock_ms(call->pg);
        }
    }
    pg_next_statement(call);
    pg_update(call, row, &job);
    return job.ended_ms && !had_ended ? tell_end(call, &job) : PG_DONE;
}

enum pg_progress pg_statement_bulk_settle(struct pg_call *call)
{
    struct pg_row *row;
    const void *current;
    bool held;

    RETURN_UNLESS_DONE(hold(call, PG_NO_KEY_UPDATE, is_there, &row, &current, &held));
    if (current) {
        RETURN_UNLESS_DONE(settle(call, row, *(const struct row_bulk *)current));
    }
    put_answer(call, held);
    return PG_DONE;
}

static enum pg_progress forget(struct pg_call *call, struct pg_row *row, struct row_bulk job)
{
    int64_t removed = 0, after = INT64_MIN;
    struct pg_row *of_item;
    struct pg_touched touched = {0};

    pg_next_statement(call);
    for (const struct row_bulk_item *item;
         removed < arg_int(call, 4) && (item = item_after(call, job, after, &of_item)) != NULL; removed++) {
        const struct row_bulk_item key = *item;
        bool deleted;

        after = item->number;
        RETURN_UNLESS_DONE(pg_delete_key(call, PG_BULK_ITEM, &key, &touched, &deleted));
    }
    if (removed < arg_int(call, 4)) {
        pg_next_statement(call);
        pg_delete(call, row);
    }
    return PG_DONE;
}

static bool is_over(struct pg_call *call, const struct row_bulk *job)
{
    return job && !slice_is(job->state, "running") && job->look_ms <= arg_time_ms(call, 3);
}

enum pg_progress pg_statement_bulk_forget(struct pg_call *call)
{
    struct pg_row *row;
    const void *current;
    bool held;

    RETURN_UNLESS_DONE(hold(call, PG_UPDATE, is_over, &row, &current, &held));
    if (is_over(call, current)) {
        RETURN_UNLESS_DONE(forget(call, row, *(const struct row_bulk *)current));
    }
    put_answer(call, held);
    return PG_DONE;
}

/* --- for the checker --- */

void pg_each_bulk_job(const struct pg *pg, void (*seen)(const struct committed_job *job))
{
    const struct pg_rows *rows = &pg->tables[PG_BULK];

    for (size_t i = 0; i < rows->count; i++) {
        const struct row_bulk *row = pg_committed(rows->sorted[i]);

        if (row) {
            const struct committed_job job = {.id = {row->id},
                                              .state = row->state,
                                              .was_run = row->run.ptr != NULL,
                                              .items = row->items,
                                              .done = row->done,
                                              .changed = row->changed,
                                              .refused = row->refused};

            seen(&job);
        }
    }
}

void pg_each_bulk_item(const struct pg *pg, const struct committed_job *job,
                       void (*seen)(const struct committed_item *item))
{
    const struct pg_rows *rows = &pg->tables[PG_BULK_ITEM];

    for (size_t i = 0; i < rows->count; i++) {
        const struct row_bulk_item *row = pg_committed(rows->sorted[i]);

        if (row && uuid_equal(&row->bulk, &job->id.uuid)) {
            const struct committed_item item = {
                .job = job, .number = (uint64_t)row->number, .body = row->body, .outcome = row->outcome};

            seen(&item);
        }
    }
}
