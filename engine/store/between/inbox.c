/*
 * The inbox. An input that reached an engine which does not own the shard waits here, durable, for the owner.
 *
 * A notification is only a hint. A slow poll backs it up, and a quicker one while unconsumed rows are there. The answer
 * of a poll may still hold rows that were consumed while it was under way; these ghosts are left out. Rows that a drop
 * or an append under way will consume are left out, too, and those of an append cannot be dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "store/store_state.h"

enum { POLL_IDLE_MS = 10000, POLL_BUSY_MS = 500, POLL_ROWS = 256 };

/* --- put --- */

struct inbox_putting {
    struct arena arena;
    struct inbox_put *put;
};

static void on_put_finished(struct job *job)
{
    struct inbox_putting *putting = job->request;
    struct inbox_put *put = putting->put;

    put->code = job->code;
    put->err = job->err;
    put->internal = NULL;
    arena_fini(&putting->arena); /* the arena holds the job */
    free(putting);
    put->done(put);
}

void store_inbox_put(struct store *store, struct inbox_put *put)
{
    struct inbox_putting *putting = memory_alloc(sizeof(*putting));
    struct job *job;
    struct db_args *args;

    CHECK(put->row.shard < SHARD_COUNT && put->done);
    if (uuid_is_nil(&put->row.id)) {
        put->row.id = uuid_v7(loop_wall_ms(store->loop));
    }
    arena_init(&putting->arena, 2048);
    putting->put = put;
    put->internal = putting;
    job = job_new(store, &putting->arena, putting, on_put_finished);
    job->writes = true;
    job->once = put->once; /* the row may have been consumed already, and a second put would bring it back */
    args = job_query(job, &sql_inbox_put, NULL);
    db_arg_int2(args, (int)put->row.shard);
    db_arg_uuid(args, &put->row.id);
    db_arg_uuid(args, &put->row.saga.uuid);
    db_arg_text(args, put->row.kind);
    db_arg_bytea(args, column_seal(store, place_of_input(&put->row.id, &put->row.saga.uuid, put->row.kind),
                                   put->row.payload, &putting->arena));
    job_submit(job);
}

/* --- drop --- */

struct dropping {
    struct list_link link;
    struct store *store;
    struct arena arena;
    struct uuid id;
};

static struct dropping *dropping_of(struct list_link *link)
{
    return link ? container_of(link, struct dropping, link) : NULL;
}

static void on_drop_finished(struct job *job)
{
    struct dropping *dropping = job->request; /* when the drop fails, the row comes again and is dropped again */
    struct store *store = dropping->store;

    list_remove(&store->inbox.drops, &dropping->link);
    if (job->code == ERR_OK) {
        inbox_consumed(store, &dropping->id); /* a poll that began meanwhile may still have seen the row */
    }
    arena_fini(&dropping->arena);
    free(dropping);
}

void store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id)
{
    struct dropping *dropping;
    struct job *job;
    struct db_args *args;

    CHECK(shard < SHARD_COUNT);
    if (appends_will_consume(store, id)) {
        return;
    }
    dropping = memory_alloc(sizeof(*dropping));
    dropping->store = store;
    dropping->id = *id;
    list_push(&store->inbox.drops, &dropping->link);
    arena_init(&dropping->arena, 1024);
    job = job_new(store, &dropping->arena, dropping, on_drop_finished);
    job->writes = true;
    args = job_query(job, &sql_inbox_drop, NULL);
    db_arg_int2(args, (int)shard);
    db_arg_uuid(args, id);
    job_submit(job);
}

/* --- watch --- */

static void on_poll(struct timer *timer);

static bool is_consumed(const struct inbox_watch *watch, const struct uuid *id)
{
    for (size_t i = 0; i < watch->consumed_count; i++) {
        if (uuid_equal(&watch->consumed[i], id)) {
            return true;
        }
    }
    return false;
}

static bool is_being_dropped(const struct inbox_watch *watch, const struct uuid *id)
{
    for (struct list_link *link = list_first(&watch->drops); link; link = list_after(&watch->drops, link)) {
        if (uuid_equal(&dropping_of(link)->id, id)) {
            return true;
        }
    }
    return false;
}

void inbox_consumed(struct store *store, const struct uuid *id)
{
    struct inbox_watch *watch = &store->inbox;

    if (!watch->polling) {
        return; /* the next poll does not see the row, because it is gone */
    }
    if (watch->consumed_count < CONSUMED_MAX) {
        watch->consumed[watch->consumed_count++] = *id;
    } else {
        watch->stale = true;
    }
}

static void on_inbox_rows(struct db_query *query, const struct db_rows *rows)
{
    struct inbox_watch *watch = query->context;

    struct store *store = container_of(watch, struct store, inbox);

    watch->row_count = db_row_count(rows);
    watch->rows = arena_array(&watch->arena, watch->row_count + 1, sizeof(*watch->rows));
    for (size_t i = 0; i < watch->row_count; i++) {
        watch->rows[i].shard = (uint32_t)db_int(rows, i, 0);
        watch->rows[i].id = db_uuid(rows, i, 1);
        watch->rows[i].saga.uuid = db_uuid(rows, i, 2);
        watch->rows[i].kind = arena_slice(&watch->arena, db_bytes(rows, i, 3));
        watch->rows[i].payload = arena_slice(
            &watch->arena,
            column_open(store, place_of_input(&watch->rows[i].id, &watch->rows[i].saga.uuid, watch->rows[i].kind),
                        db_bytes(rows, i, 4), &watch->arena));
    }
}

static void on_inbox_done(struct db_transaction *transaction)
{
    struct inbox_watch *watch = container_of(transaction, struct inbox_watch, transaction);
    struct store *store = container_of(watch, struct store, inbox);
    bool good = transaction->outcome == DB_COMMITTED && !watch->stale && !store->closing;
    bool more = good && watch->row_count == POLL_ROWS;
    bool again = watch->again || watch->stale || more;
    size_t count = 0;

    watch->after = more ? watch->rows[watch->row_count - 1].id : (struct uuid){{0}};

    for (size_t i = 0; good && i < watch->row_count; i++) {
        const struct uuid *id = &watch->rows[i].id;

        /* What does not open stays: it may be a start that was acknowledged. */
        if (watch->rows[i].payload.ptr && !is_consumed(watch, id) && !is_being_dropped(watch, id) &&
            !appends_will_consume(store, id)) {
            watch->rows[count++] = watch->rows[i];
        }
    }
    watch->polling = watch->again = watch->stale = false;
    if (store->closing) {
        return;
    }
    timer_start(store->loop, &watch->poll, again ? 0 : count > 0 || !good ? POLL_BUSY_MS : POLL_IDLE_MS, on_poll);
    if (count > 0) {
        watch->on_rows(watch->rows, count, watch->context);
    }
}

static void poll_now(struct store *store)
{
    struct inbox_watch *watch = &store->inbox;
    struct conn *conn = store_reader(store);
    struct db_args *args;

    if (watch->polling) {
        watch->again = true;
        return;
    }
    if (!watch->on_rows || watch->shards == 0 || store->closing || !conn) {
        return; /* inbox_conn_up() or the next watch calls this again */
    }
    arena_reset(&watch->arena);
    watch->polling = true;
    watch->consumed_count = watch->row_count = 0;
    args = db_args_new(&watch->arena);
    arg_shards(args, watch->shards);
    db_arg_int8(args, POLL_ROWS);
    db_arg_uuid(args, &watch->after);
    watch->query =
        (struct db_query){.statement = &sql_inbox_read, .args = args, .on_rows = on_inbox_rows, .context = watch};
    memset(&watch->transaction, 0, sizeof(watch->transaction));
    watch->transaction.queries = &watch->query;
    watch->transaction.count = 1;
    watch->transaction.read_only = true;
    watch->transaction.done = on_inbox_done;
    db_submit(conn->db, &watch->transaction);
}

static void on_poll(struct timer *timer)
{
    poll_now(container_of(container_of(timer, struct inbox_watch, poll), struct store, inbox));
}

void store_inbox_watch(struct store *store, uint64_t shards,
                       void (*on_rows)(const struct inbox_row *rows, size_t count, void *context), void *context)
{
    struct inbox_watch *watch = &store->inbox;
    bool more = (shards & ~watch->shards) != 0;

    if (!watch->on_rows) {
        arena_init(&watch->arena, 8192);
    }
    watch->on_rows = on_rows;
    watch->context = context;
    watch->shards = shards;
    if (more) { /* rows that came while nobody owned the shards are read from the first one on, even when a look is
                   under way behind them */
        watch->after = (struct uuid){{0}};
        watch->stale |= watch->polling;
        timer_start(store->loop, &watch->poll, 0, on_poll);
    }
}

void inbox_conn_up(struct store *store)
{
    poll_now(store);
}

void inbox_notified(struct store *store, struct slice payload)
{
    int64_t shard;

    if (slice_to_i64(payload, &shard) && shard >= 0 && shard < SHARD_COUNT && (store->inbox.shards >> shard & 1)) {
        poll_now(store);
    }
}

void inbox_stop(struct store *store)
{
    timer_stop(store->loop, &store->inbox.poll);
}
