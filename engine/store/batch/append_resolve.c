/*
 * Finds out what happened to a batch that was not simply committed: which sagas have the business ids, which shards are
 * lost, and whether the COMMIT happened when its answer was lost.
 *
 * The last question takes three steps, each on a connection that is up, and repeated until it is answered:
 *   1. The old backend is ended, and gone from pg_stat_activity. Until then it may still commit, and a row that is not
 * there proves nothing. (After a restart or a failover it is gone by itself.)
 *   2. The log is read at the places that the batch would have taken, in a transaction that locks the shards' rows:
 * locking writes, so its own COMMIT waits for a synchronous standby to have what was seen.
 *   3. The same bytes are there, under our epoch: it happened. Anything else: another engine wrote there; it may well
 * have decided the very same, and then makes the calls. Nothing: it certainly did not happen, and waits again.
 */
#include <string.h>

#include "base/log.h"
#include "store/store_state.h"

enum { AGAIN_MS = 50, STANDBY_MS = 1000 };
enum { FOUND_BY_ID = 1 }; /* the least value of the third column of `taken` */

static void batch_repeat_all(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        append_again(batch->store, batch_take(batch, i));
    }
    batch_finish(batch);
}

/* --- whose is the business id? --- */

static void resolve_on_taken(struct db_query *query, const struct db_rows *rows)
{
    struct batch *batch = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        size_t i = (size_t)db_int(rows, row, 0) - 1;
        struct slice digest = db_bytes(rows, row, 2), business = db_bytes(rows, row, 3);
        int64_t found = db_int(rows, row, 4);

        if (i < batch->count && found > batch->found[i]) {
            struct append *append = batch->items[i];

            append->existing.uuid = db_uuid(rows, row, 1);
            append->existing_same_input =
                input_is(batch->store, append->existing, digest, &append->start->input_digest);
            append->existing_other_id =
                found > FOUND_BY_ID && start_has_own_id(append->start) &&
                !(business.len == BUSINESS_DIGEST_BYTES &&
                  memcmp(business.ptr, append->start->business_digest.bytes, BUSINESS_DIGEST_BYTES) == 0);
            batch->found[i] = (unsigned char)found;
        }
    }
}

void batch_ask_taken(struct batch *batch)
{
    struct db_args *args;

    batch_clear_queries(batch);
    memset(batch->found, 0, batch->count);
    args = batch_query(batch, &sql_taken, resolve_on_taken);
    db_array_begin(args, DB_INT2, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_int(args, batch->items[i]->shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_bytes(args, digest_slice(&batch->items[i]->start->business_digest, BUSINESS_DIGEST_BYTES));
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        batch_put_key(args, batch->items[i]->start);
    }
    db_array_end(args);
    db_array_begin(args, DB_INT2, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        batch_put_key_shard(args, batch->items[i]->start);
    }
    db_array_end(args);
    batch_submit(batch, BATCH_TAKEN, true);
}

void batch_taken_done(struct batch *batch)
{
    if (batch->transaction.outcome != DB_COMMITTED) {
        batch_repeat_all(batch); /* nothing was written for them, so another try asks again */
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct append *append = batch_take(batch, i);

        if (batch->found[i]) {
            err_set(&append->err, ERR_CONFLICT, "a saga with this business id is there already");
            append_complete(batch->store, append, ERR_CONFLICT);
        } else {
            append_again(batch->store, append); /* the saga was removed meanwhile */
        }
    }
    batch_finish(batch);
}

/* --- which shards are lost? --- */

static void on_epochs(struct db_query *query, const struct db_rows *rows)
{
    struct batch *batch = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        int64_t shard = db_int(rows, row, 0);

        if (shard >= 0 && shard < SHARD_COUNT) {
            batch->epochs[shard] = db_int(rows, row, 1);
        }
    }
}

static void put_shards(struct batch *batch, struct db_args *args)
{
    uint64_t shards = 0;

    for (size_t i = 0; i < batch->count; i++) {
        shards |= UINT64_C(1) << batch->items[i]->shard;
    }
    arg_shards(args, shards);
}

void batch_ask_epochs(struct batch *batch)
{
    batch_clear_queries(batch);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        batch->epochs[shard] = -1;
    }
    put_shards(batch, batch_query(batch, &sql_epochs, on_epochs));
    batch_submit(batch, BATCH_EPOCHS, true);
}

void batch_epochs_done(struct batch *batch)
{
    if (batch->transaction.outcome != DB_COMMITTED) {
        batch_repeat_all(batch); /* the appends are fenced again */
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct append *append = batch_take(batch, i);

        if (batch->epochs[append->shard] != append->epoch) {
            err_set(&append->err, ERR_FENCED, "another engine owns shard %u", append->shard);
            err_detail(&append->err, "epoch %lld, and this turn was decided under epoch %lld",
                       (long long)batch->epochs[append->shard], (long long)append->epoch);
            append_complete(batch->store, append, ERR_FENCED);
        } else {
            append_again(batch->store, append);
        }
    }
    batch_finish(batch);
}

/* --- did it happen? --- */

static void on_again(struct timer *timer)
{
    batch_resolve(container_of(timer, struct batch, again));
}

static void wait_again(struct batch *batch, int64_t ms)
{
    batch->phase = BATCH_LOST;
    timer_start(batch->store->loop, &batch->again, ms, on_again);
}

static void on_backends_left(struct db_query *query, const struct db_rows *rows)
{
    ((struct batch *)query->context)->backends_left = db_row_count(rows) == 1 ? db_int(rows, 0, 0) : 1;
}

static void ask_backend(struct batch *batch)
{
    struct db_args *args;

    batch_clear_queries(batch);
    batch->backends_left = 1;
    args = batch_query(batch, &sql_end_backend, on_backends_left);
    db_arg_int4(args, batch->backend_pid);
    db_arg_int8(args, batch->backend_started_us);
    batch_submit(batch, BATCH_ENDING, true);
}

static void on_look(struct db_query *query, const struct db_rows *rows)
{
    struct batch *batch = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        size_t i = (size_t)db_int(rows, row, 0) - 1;
        struct slice digest = db_bytes(rows, row, 1);

        if (i < batch->count) {
            struct digest ours = digest_sha256(batch->items[i]->stored_payload);

            batch->found[i] = true;
            batch->refused[i] = db_int(rows, row, 2) != batch->items[i]->epoch || digest.len != sizeof(ours.bytes) ||
                                memcmp(digest.ptr, ours.bytes, sizeof(ours.bytes)) != 0;
        }
    }
}

static void look(struct batch *batch)
{
    struct db_args *args;

    batch_clear_queries(batch);
    memset(batch->found, 0, batch->count);
    memset(batch->refused, 0, batch->count);
    put_shards(batch, batch_query(batch, &sql_hold_shards, NULL));
    args = batch_query(batch, &sql_look, on_look);
    db_array_begin(args, DB_INT2, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_int(args, batch->items[i]->shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_uuid(args, &batch->items[i]->saga.uuid);
    }
    db_array_end(args);
    db_array_begin(args, DB_INT4, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        db_item_int(args, (int64_t)batch->items[i]->first_seq);
    }
    db_array_end(args);
    batch_submit(batch, BATCH_LOOKING, false);
}

void batch_lost(struct batch *batch)
{
    log_warn("commit_unknown", LOG_I64("turns", batch->count), LOG_ERR(&batch->transaction.err));
    batch->phase = BATCH_LOST;
    /* The answer came, with the warning that the standby may lack the commit. The same backend has ended its
     * transaction. */
    batch->backend_gone = batch->conn->up && db_state(batch->conn->db) == DB_READY &&
                          batch->conn->backend_pid == batch->backend_pid &&
                          batch->conn->backend_started_us == batch->backend_started_us;
    batch_resolve(batch);
}

void batch_resolve(struct batch *batch)
{
    if (batch->phase != BATCH_LOST || !batch->conn->up || batch->store->closing) {
        return; /* appends_conn_up() calls this again */
    }
    timer_stop(batch->store->loop, &batch->again);
    if (!batch->backend_gone) {
        ask_backend(batch);
    } else {
        look(batch);
    }
}

void batch_ending_done(struct batch *batch)
{
    if (batch->transaction.outcome == DB_COMMITTED && batch->backends_left == 0) {
        batch->backend_gone = true;
        batch->phase = BATCH_LOST;
        batch_resolve(batch);
    } else {
        wait_again(batch, AGAIN_MS);
    }
}

void batch_looking_done(struct batch *batch)
{
    struct store *store = batch->store;
    size_t found = 0, count = batch->count;

    if (batch->transaction.outcome != DB_COMMITTED) {
        wait_again(batch, batch->transaction.outcome == DB_UNKNOWN ? STANDBY_MS : AGAIN_MS);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct append *append = batch_take(batch, i);

        if (!batch->found[i]) {
            append_again(store, append);
        } else if (batch->refused[i]) {
            err_set(&append->err, ERR_FENCED, "another turn of the saga is in the log at this place");
            append_complete(store, append, ERR_FENCED);
        } else {
            found++;
            history_note(store, batch->conn, append);
            append_complete(store, append, ERR_OK);
        }
    }
    log_info("commit_resolved", LOG_I64("turns", count), LOG_I64("happened", found));
    batch_finish(batch);
}
