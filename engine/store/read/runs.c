/*
 * Reads runs by their names, each by the state that the newest row of its log has, or by its log. Runs that are asked
 * for while others are being read are read together, by one statement: a repeat of a call reads its run, and there may
 * be very many of them.
 *
 * One statement sees one snapshot, so that the row of a run and its turns belong together. What it brings is bounded.
 * A longer log is not brought, and its reader asks for it by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "store/store_state.h"

enum {
    RUNS_MAX = 64,     /* in one statement */
    STATEMENTS_MAX = 2 /* under way; what comes meanwhile waits, and is read together */
};

struct run_batch {
    struct store *store;
    struct arena arena;
    struct read_run *items[RUNS_MAX];
    size_t count;
};

static struct run_batch *batch_of(const struct job *job)
{
    return job->request;
}

static void run_clear(struct read_run *run)
{
    run->rest = SLICE_NONE;
    run->rest_seq = 0;
    run->turns = NULL;
    run->turn_count = 0;
}

/* Takes the rows of one run, which are side by side. Returns the first row behind them. */
static size_t take_run(struct store *store, struct read_run *run, const struct db_rows *rows, size_t row)
{
    int64_t number = db_int(rows, row, 0);
    size_t first = row, count = 0;
    bool fits = true;

    for (; row < db_row_count(rows) && db_int(rows, row, 0) == number; row++) {
        fits = fits && !db_is_null(rows, row, 4);
        count++;
    }
    run->id.uuid = db_uuid(rows, first, 1);
    run_clear(run);
    if (!db_is_null(rows, first, 5)) {
        run->rest_seq = (uint64_t)db_int(rows, first, 2);
        run->rest = arena_slice(run->read.arena, column_open(store, place_of_rest(&run->id.uuid, run->rest_seq),
                                                             db_bytes(rows, first, 5), run->read.arena));
        return row; /* a state that does not open is as good as none: the log is read */
    }
    if (!fits || count > RUN_TURNS_MAX) {
        return row;
    }
    run->turns = arena_array(run->read.arena, count, sizeof(*run->turns));
    run->turn_count = count;
    for (size_t i = 0; i < count; i++) {
        run->turns[i].first_seq = (uint64_t)db_int(rows, first + i, 2);
        run->turns[i].at_ms = db_timestamptz(rows, first + i, 3);
        run->turns[i].payload = arena_slice(run->read.arena, db_bytes(rows, first + i, 4));
        turn_open(store, &run->id.uuid, &run->turns[i], run->read.arena);
    }
    return row;
}

static void on_runs(struct db_query *query, const struct db_rows *rows)
{
    struct run_batch *batch = batch_of(query->context);
    size_t row = 0;

    for (size_t i = 0; i < batch->count; i++) { /* the statement may be sent again, on another connection */
        batch->items[i]->id = (struct saga_id){0};
    }
    while (row < db_row_count(rows)) {
        int64_t number = db_int(rows, row, 0);

        CHECK(number >= 1 && (size_t)number <= batch->count);
        row = take_run(batch->store, batch->items[number - 1], rows, row);
    }
}

static void run_end(struct read_run *run, enum err_code code, const struct err *err)
{
    memset(&run->read.err, 0, sizeof(run->read.err));
    run->read.code = code;
    if (code != ERR_OK) {
        run->read.err = *err;
    } else if (uuid_is_nil(&run->id.uuid)) {
        run->read.code = err_set(&run->read.err, ERR_NOT_FOUND, "there is no such run");
    }
    run->read.done(&run->read);
}

static void batch_on_end(struct job *job)
{
    struct run_batch *batch = batch_of(job);
    struct store *store = batch->store;
    enum err_code code = job->code;
    struct err err = job->err;

    store->runs.under_way--;
    for (size_t i = 0; i < batch->count; i++) {
        run_end(batch->items[i], code, &err);
    }
    arena_fini(&batch->arena);
    free(batch);
    runs_run(store);
}

static void batch_send(struct store *store)
{
    struct run_batch *batch = memory_alloc(sizeof(*batch));
    struct db_args *args;
    struct job *job;

    arena_init(&batch->arena, 4096);
    batch->store = store;
    batch->count = 0;
    while (batch->count < RUNS_MAX && !list_empty(&store->runs.waiting)) {
        batch->items[batch->count++] = container_of(list_pop(&store->runs.waiting), struct read_run, link);
    }
    job = job_new(store, &batch->arena, batch, batch_on_end);
    args = job_query(job, &sql_run_turns, on_runs);
    db_array_begin(args, DB_INT2, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_int(args, batch->items[i]->shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_bytes(args, digest_slice(&batch->items[i]->digest, BUSINESS_DIGEST_BYTES));
    }
    db_array_end(args);
    db_arg_int8(args, RUN_TURNS_MAX + 1);
    db_arg_int8(args, RUN_TURN_BYTES_MAX);
    store->runs.under_way++;
    job_submit(job);
}

void runs_run(struct store *store)
{
    while (!store->closing && store->runs.under_way < STATEMENTS_MAX && !list_empty(&store->runs.waiting)) {
        batch_send(store);
    }
}

/* All runs that are asked for in one turn of the loop are read together. */
static void on_soon(struct deferred *deferred)
{
    runs_run(container_of(deferred, struct store, runs.soon));
}

void store_read_run(struct store *store, struct read_run *run)
{
    CHECK(run->read.done && run->shard < SHARD_COUNT);
    run->id = (struct saga_id){0};
    run_clear(run);
    list_push(&store->runs.waiting, &run->link);
    loop_defer(store->loop, &store->runs.soon, on_soon);
}

void runs_stop(struct store *store)
{
    struct list_link *link;
    struct err err = {.code = ERR_OK};

    loop_defer_cancel(store->loop, &store->runs.soon);
    err_set(&err, ERR_STORE, "the engine is stopping");
    while ((link = list_pop(&store->runs.waiting)) != NULL) {
        run_end(container_of(link, struct read_run, link), ERR_STORE, &err);
    }
}
