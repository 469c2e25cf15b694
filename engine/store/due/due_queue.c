/*
 * Small fenced writes that many sagas want at once. Writes that are ready in the same turn of the loop share a
 * transaction, and one transaction of each kind is under way at a time. While the database is away they wait.
 *
 * A write may be repeated, but its older try must not overtake it. The answer of a park may be lost and the server may
 * carry it out later, when the saga was parked again and has moved on since. That would hide an awake saga from
 * recovery. So the backend that had the write is ended first, as with appends.
 *
 * A batch that the database refuses is halved until the guilty write is found: a damaged row must not hold up all
 * others in line. Only that write is told. When its kind can be put off, its row is due again only after a long time.
 * When one write after the other is refused, the rows are not at fault, and all are told.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "store/store_state.h"

enum { AGAIN_MS = 50, REFUSED_MS = 1000, PUT_OFF_MS = 3600000, REFUSED_IN_A_ROW_MAX = 4 };

static void on_again(struct timer *timer)
{
    due_queue_go(container_of(timer, struct due_queue, again));
}

static void queue_later(struct due_queue *queue, int64_t ms)
{
    timer_start(queue->store->loop, &queue->again, ms, on_again);
}

static void queue_submit(struct due_queue *queue, struct conn *conn, bool read_only,
                         void (*done)(struct db_transaction *))
{
    queue->busy = true;
    memset(&queue->transaction, 0, sizeof(queue->transaction));
    queue->transaction.queries = &queue->query;
    queue->transaction.count = 1;
    queue->transaction.read_only = read_only;
    queue->transaction.done = done;
    db_submit(conn->db, &queue->transaction);
}

/* --- the batch --- */

static void on_held(struct db_query *query, const struct db_rows *rows)
{
    struct due_queue *queue = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        int64_t position = db_int(rows, row, 0);
        size_t i = (size_t)(position < 0 ? -position : position) - 1;

        if (i < queue->sent_count) {
            queue->held[i] = true;
            queue->put_off[i] = position < 0;
        }
    }
}

static void batch_end(struct due_queue *queue, enum err_code code)
{
    size_t count = queue->sent_count;

    queue->sent_count = 0;
    for (size_t i = 0; i < count; i++) {
        queue->kind->tell(queue->sent[i], code != ERR_OK      ? code
                                          : !queue->held[i]   ? ERR_FENCED
                                          : queue->put_off[i] ? ERR_CONFLICT
                                                              : ERR_OK);
    }
}

static void batch_back(struct due_queue *queue) /* puts the batch in front of the queue: it certainly did not happen, or
                                                   a repeat does no harm */
{
    while (queue->sent_count > 0) {
        list_push_front(&queue->waiting, queue->sent[--queue->sent_count]);
    }
}

static bool is_one_of(const char *sqlstate, const char *const *classes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(sqlstate, classes[i], strlen(classes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Was the batch too large? A smaller one takes less time or memory. */
static bool is_too_much(const char *sqlstate)
{
    return strcmp(sqlstate, "57014") == 0 || strcmp(sqlstate, "53200") == 0;
}

/* Is the refusal temporary? The causes are the connection, a standby, a deadlock, missing resources, a lock or a
 * shutdown; the same batch goes through later. */
static bool is_of_the_moment(const char *sqlstate)
{
    static const char *const classes[] = {"08", "25", "40", "53", "55", "57"};

    return !is_too_much(sqlstate) && is_one_of(sqlstate, classes, COUNT_OF(classes));
}

/* Is the refusal about the statement, whatever the rows are? A right or a function is missing. */
static bool is_of_the_statement(const char *sqlstate)
{
    static const char *const classes[] = {"0A", "28", "3F", "42"};

    return is_one_of(sqlstate, classes, COUNT_OF(classes));
}

/* Ends all waiting writes. So many refusals one after the other do not come from damaged rows. The callers are told,
 * and go on without the write. */
static void rest_end(struct due_queue *queue)
{
    size_t left = queue->waiting.count; /* a caller that is told may ask again */

    log_warn(queue->kind->refused, LOG_I64("sagas", left), LOG_ERR(&queue->transaction.err));
    while (left > 0) {
        while (queue->sent_count < queue->kind->max && left > 0) {
            queue->sent[queue->sent_count++] = list_pop(&queue->waiting);
            left--;
        }
        batch_end(queue, ERR_STORE);
    }
}

static void one_end(struct due_queue *queue)
{
    batch_end(queue, ERR_STORE);
    if (++queue->refused_in_a_row >= REFUSED_IN_A_ROW_MAX) {
        rest_end(queue);
        queue_later(queue, REFUSED_MS);
    } else {
        due_queue_go(queue);
    }
}

static void on_put_off(struct db_transaction *transaction) /* if this fails, the row is only due sooner */
{
    struct due_queue *queue = container_of(transaction, struct due_queue, transaction);

    queue->busy = false;
    if (!queue->store->closing) {
        one_end(queue);
    }
}

static void one_refused(struct due_queue *queue)
{
    struct due_item item = queue->kind->item(queue->sent[0]);
    struct conn *conn = store_reader(queue->store);
    struct err err = queue->transaction.err;
    struct db_args *args;

    if (!queue->kind->put_off) {
        one_end(queue); /* the caller logs the refusal */
        return;
    }
    err_hint(&err, "the others go on; look in the database for what is wrong with its rows: tried again in an hour");
    log_error(queue->kind->refused, LOG_UUID("saga", &item.saga), LOG_I64("shard", item.shard), LOG_ERR(&err));
    if (!conn) {
        one_end(queue);
        return;
    }
    arena_reset(&queue->arena);
    args = db_args_new(&queue->arena);
    db_array_begin(args, DB_INT2, 1);
    db_item_int(args, item.shard);
    db_array_end(args);
    db_array_begin(args, DB_UUID, 1);
    db_item_uuid(args, &item.saga);
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, 1);
    db_item_timestamptz(args, loop_wall_ms(queue->store->loop) + PUT_OFF_MS);
    db_array_end(args);
    queue->query = (struct db_query){.statement = queue->kind->put_off, .args = args};
    queue_submit(queue, conn, false, on_put_off);
}

static void batch_refused(struct due_queue *queue)
{
    const char *sqlstate = queue->transaction.sqlstate;
    bool one = queue->sent_count == 1;

    if (!sqlstate[0]) {
        batch_back(queue);
        queue_later(queue, AGAIN_MS);
        return;
    }
    metric_add(METRIC_DB_ERRORS, 1);
    if (is_of_the_statement(sqlstate)) {
        log_warn(queue->kind->refused, LOG_I64("sagas", queue->sent_count), LOG_ERR(&queue->transaction.err));
        batch_end(queue, ERR_STORE);
        queue_later(queue, REFUSED_MS);
    } else if (one && !is_of_the_moment(sqlstate)) {
        one_refused(queue);
    } else {
        log_warn(queue->kind->refused, LOG_I64("sagas", queue->sent_count), LOG_ERR(&queue->transaction.err));
        if (!is_of_the_moment(sqlstate)) {
            queue->max = queue->sent_count / 2;
        }
        batch_back(queue);
        if (is_of_the_moment(sqlstate) || is_too_much(sqlstate)) {
            queue_later(queue, REFUSED_MS);
        } else {
            due_queue_go(queue);
        }
    }
}

static void on_batch_done(struct db_transaction *transaction)
{
    struct due_queue *queue = container_of(transaction, struct due_queue, transaction);

    queue->busy = false;
    if (queue->store->closing) {
        return; /* due_queue_fini() tells them */
    }
    switch (transaction->outcome) {
    case DB_COMMITTED:
        queue->max = 2 * queue->max < queue->kind->max ? 2 * queue->max : queue->kind->max;
        queue->refused_in_a_row = 0;
        batch_end(queue, ERR_OK);
        due_queue_go(queue);
        break;
    case DB_REFUSED:
        batch_refused(queue);
        break;
    case DB_UNKNOWN:
        queue->lost = true;
        queue_later(queue, AGAIN_MS);
        break;
    }
}

static void batch_send(struct due_queue *queue, struct conn *conn)
{
    struct db_args *args;
    struct list_link *link;

    while (queue->sent_count < queue->max && (link = list_pop(&queue->waiting)) != NULL) {
        queue->sent[queue->sent_count++] = link;
    }
    memset(queue->held, 0, queue->sent_count);
    memset(queue->put_off, 0, queue->sent_count);
    queue->backend_pid = conn->backend_pid;
    queue->backend_started_us = conn->backend_started_us;
    arena_reset(&queue->arena);
    args = db_args_new(&queue->arena);
    db_array_begin(args, DB_INT2, queue->sent_count);
    for (size_t i = 0; i < queue->sent_count; i++) {
        db_item_int(args, queue->kind->item(queue->sent[i]).shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_INT8, queue->sent_count);
    for (size_t i = 0; i < queue->sent_count; i++) {
        db_item_int(args, queue->kind->item(queue->sent[i]).epoch);
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, queue->sent_count);
    for (size_t i = 0; i < queue->sent_count; i++) {
        struct uuid saga = queue->kind->item(queue->sent[i]).saga;

        db_item_uuid(args, &saga);
    }
    db_array_end(args);
    if (queue->kind->put_more) {
        queue->kind->put_more(args, queue->sent, queue->sent_count);
    }
    queue->query =
        (struct db_query){.statement = queue->kind->statement, .args = args, .on_rows = on_held, .context = queue};
    queue_submit(queue, conn, false, on_batch_done);
}

/* --- its answer was lost --- */

static void on_backend(struct db_query *query, const struct db_rows *rows)
{
    ((struct due_queue *)query->context)->backends_left = db_row_count(rows) == 1 ? db_int(rows, 0, 0) : -1;
}

static void on_ending_done(struct db_transaction *transaction)
{
    struct due_queue *queue = container_of(transaction, struct due_queue, transaction);

    queue->busy = false;
    if (queue->store->closing) {
        return;
    }
    if (transaction->outcome == DB_COMMITTED && queue->backends_left == 0) {
        queue->lost = false;
        batch_back(queue);
        due_queue_go(queue);
    } else {
        queue_later(queue, AGAIN_MS);
    }
}

static void end_backend(struct due_queue *queue, struct conn *conn)
{
    struct db_args *args;

    arena_reset(&queue->arena);
    args = db_args_new(&queue->arena);
    queue->backends_left = -1;
    db_arg_int4(args, queue->backend_pid);
    db_arg_int8(args, queue->backend_started_us);
    queue->query =
        (struct db_query){.statement = &sql_end_backend, .args = args, .on_rows = on_backend, .context = queue};
    queue_submit(queue, conn, true, on_ending_done);
}

/* --- life --- */

void due_queue_go(struct due_queue *queue)
{
    struct conn *conn = queue->store->closing ? NULL : store_reader(queue->store);

    if (queue->busy || !conn || timer_running(&queue->again) || (list_empty(&queue->waiting) && !queue->lost)) {
        return; /* dues_conn_up(), the timer or the end of the batch under way calls this again */
    }
    if (queue->lost) {
        end_backend(queue, conn);
    } else {
        batch_send(queue, conn);
    }
}

static void on_soon(struct deferred *deferred)
{
    due_queue_go(container_of(deferred, struct due_queue, soon));
}

void due_queue_add(struct due_queue *queue, struct list_link *link)
{
    list_push(&queue->waiting, link);
    loop_defer(queue->store->loop, &queue->soon, on_soon);
}

void due_queue_init(struct due_queue *queue, struct store *store, const struct due_write_kind *kind)
{
    queue->store = store;
    queue->kind = kind;
    queue->max = kind->max;
    queue->sent = memory_alloc(kind->max * sizeof(*queue->sent));
    queue->held = memory_alloc(kind->max * sizeof(*queue->held));
    queue->put_off = memory_alloc(kind->max * sizeof(*queue->put_off));
    list_init(&queue->waiting);
    arena_init(&queue->arena, 4096);
}

void due_queue_fini(struct due_queue *queue)
{
    struct list_link *link;

    timer_stop(queue->store->loop, &queue->again);
    loop_defer_cancel(queue->store->loop, &queue->soon);
    batch_end(queue, ERR_STOPPING);
    while ((link = list_pop(&queue->waiting)) != NULL) {
        queue->kind->tell(link, ERR_STOPPING);
    }
    arena_fini(&queue->arena);
    free(queue->sent);
    free(queue->held);
    free(queue->put_off);
}
