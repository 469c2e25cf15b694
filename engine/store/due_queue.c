/*
 * Small fenced writes that many sagas want at once: those that are ready in the same turn of the loop share a transaction, and
 * one transaction of a kind is under way at a time. While the database is away they wait.
 *
 * They may be repeated, but not overtaken by themselves: a park whose answer was lost and that the server carries out after
 * all, when the saga was parked again and has moved on since, would hide a saga from recovery that is awake. So the backend
 * that had it is ended first, as with appends.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "store/store_state.h"

enum { AGAIN_MS = 50, REFUSED_MS = 1000 };

static void on_again(struct timer *timer)
{
    due_queue_go(container_of(timer, struct due_queue, again));
}

static void queue_later(struct due_queue *queue, int64_t ms)
{
    timer_start(queue->store->loop, &queue->again, ms, on_again);
}

static void queue_submit(struct due_queue *queue, struct conn *conn, bool read_only, void (*done)(struct db_transaction *))
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
        size_t i = (size_t)db_int(rows, row, 0) - 1;

        if (i < queue->sent_count) {
            queue->held[i] = true;
        }
    }
}

static void batch_end(struct due_queue *queue, enum err_code code)
{
    size_t count = queue->sent_count;

    queue->sent_count = 0;
    for (size_t i = 0; i < count; i++) {
        queue->kind->tell(queue->sent[i], code == ERR_OK && !queue->held[i] ? ERR_FENCED : code);
    }
}

static void batch_back(struct due_queue *queue) /* it certainly did not happen, or a repeat does no harm */
{
    for (size_t i = 0; i < queue->sent_count; i++) {
        list_push(&queue->waiting, queue->sent[i]);
    }
    queue->sent_count = 0;
}

/* By the class of the SQLSTATE: the same again would be refused again. */
static bool is_refused_for_good(const char *sqlstate)
{
    return strncmp(sqlstate, "21", 2) == 0 || strncmp(sqlstate, "22", 2) == 0 || strncmp(sqlstate, "23", 2) == 0 ||
           strncmp(sqlstate, "42", 2) == 0;
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
        batch_end(queue, ERR_OK);
        due_queue_go(queue);
        break;
    case DB_REFUSED:
        if (transaction->sqlstate[0]) {
            metric_add(METRIC_DB_ERRORS, 1);
            log_warn(queue->kind->refused, LOG_I64("sagas", queue->sent_count), LOG_ERR(&transaction->err));
        }
        if (strcmp(transaction->sqlstate, "57014") == 0) { /* the statement timeout: as many again would end the same way */
            queue->max = queue->sent_count > 1 ? queue->sent_count / 2 : 1;
        }
        if (is_refused_for_good(transaction->sqlstate)) {
            batch_end(queue, ERR_STORE);
        } else {
            batch_back(queue);
        }
        queue_later(queue, transaction->sqlstate[0] ? REFUSED_MS : AGAIN_MS);
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
    queue->query = (struct db_query){.statement = queue->kind->statement, .args = args, .on_rows = on_held, .context = queue};
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
    queue->query = (struct db_query){.statement = &sql_end_backend, .args = args, .on_rows = on_backend, .context = queue};
    queue_submit(queue, conn, true, on_ending_done);
}

/* --- life --- */

void due_queue_go(struct due_queue *queue)
{
    struct conn *conn = queue->store->closing ? NULL : store_reader(queue->store);

    if (queue->busy || !conn || timer_running(&queue->again) || (list_empty(&queue->waiting) && !queue->lost)) {
        return; /* dues_conn_up(), the timer or the end of what is under way comes here again */
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

void due_queue_init(struct due_queue *queue, struct store *store, const struct due_kind *kind)
{
    queue->store = store;
    queue->kind = kind;
    queue->max = kind->max;
    queue->sent = memory_alloc(kind->max * sizeof(*queue->sent));
    queue->held = memory_alloc(kind->max * sizeof(*queue->held));
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
}
