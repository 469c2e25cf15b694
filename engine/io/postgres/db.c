/*
 * Transactions on one connection in pipeline mode.
 *
 * The connection sends segments, each ended by a Sync. A segment is one implicit transaction: a transaction of a
 * caller, or the preparing of one statement. Preparing has its own segment because an error skips everything up to the
 * next Sync, and would skip a Parse that later transactions rely on.
 *
 * Answers come in the same order: for each statement its results and a NULL, for the Sync one result without a NULL.
 * Two NULLs in a row mean that no more answers are there. Reading less would leave bytes in libpq's buffer, for which
 * no socket event comes any more.
 *
 * Only the result of the Sync decides. Until then an error may still come, even from the COMMIT.
 */
#include "io/postgres/db.h"

#include <stdlib.h>
#include <sys/random.h>
#include <uv.h>

#include "base/log.h"
#include "base/map.h"
#include "io/postgres/connect.h"
#include "io/postgres/queue.h"
#include "io/postgres/wire.h"

/* The most segments and bytes that are sent and not yet answered. More would gain nothing, and the outcome of all of
 * them is unknown after a loss. */
enum { SENT_MAX = 256, SENT_BYTES_MAX = 8 * 1024 * 1024 };

enum prepared_state { PREPARED_NOT, PREPARED_SENT, PREPARED_GOOD };

struct prepared {
    enum prepared_state state;
    struct err err; /* why preparing failed last; ERR_OK when it did not */
    char sqlstate[6];
};

struct segment {
    struct db_transaction *transaction; /* NULL when the segment prepares a statement */
    struct prepared *prepared;
    size_t bytes;
};

/* The poll handle outlives the connection until libuv has closed it. */
struct socket_watch {
    uv_poll_t poll;
    struct db *db;
    int events;
};

struct db {
    struct loop *loop;
    struct arena arena; /* holds the texts of the options */
    struct db_target target;
    struct db_options options;
    enum db_state state;

    /* connecting */
    struct db_attempt *attempt; /* NULL when no attempt is under way */
    struct timer retry;
    int retry_count;

    /* connected */
    PGconn *conn; /* NULL while not connected */
    struct socket_watch *watch;
    struct arena prepared_arena;
    struct map prepared;   /* keyed by the name of the statement */
    struct err last_words; /* what the server said when it ended the session; ERR_OK when it said nothing */

    /* transactions */
    struct db_queue queue;
    struct segment *segments; /* a ring; sent_first is the segment whose answer comes next */
    size_t segment_capacity, sent_first, sent_count, sent_bytes;
    struct timer overdue;     /* runs while a segment waits for its answer */
    int64_t waiting_since_ms; /* boot-time clock: the time at which the first segment was sent or the last byte came */
    size_t query_index;       /* the query of the first segment whose answer comes next */
    bool failed, broken,
        commit_lost; /* the first segment is certainly refused; its outcome is unknown; the COMMIT has warned */
    bool astray;     /* an answer that cannot be that of its statement: no other one on this connection is believed */
    struct deferred pump;

    /* giving up */
    struct deferred giver;
    struct err give_up_err;
    bool unanswered; /* the connection was last lost because the server did not answer */
    int left_pid;    /* the backend of an abandoned connection, which may still wait; 0 for none */

    /* closing */
    struct deferred closer;
    void (*on_closed)(void *context);
    void *closed_context;
};

static void db_connecting(struct db *db);
static void on_overdue(struct timer *timer);

/* --- segments --- */

static void segment_push(struct db *db, struct segment segment)
{
    if (db->sent_count == 0) {
        db->waiting_since_ms = loop_boot_ms(db->loop);
        if (db->options.answer_ms > 0 && !timer_running(&db->overdue)) {
            timer_start(db->loop, &db->overdue, db->options.answer_ms, on_overdue);
        }
    }
    if (db->sent_count == db->segment_capacity) {
        size_t capacity = db->segment_capacity ? 2 * db->segment_capacity : 64;
        struct segment *larger = memory_alloc(capacity * sizeof(*larger));

        for (size_t i = 0; i < db->sent_count; i++) {
            larger[i] = db->segments[(db->sent_first + i) % db->segment_capacity];
        }
        free(db->segments);
        db->segments = larger;
        db->segment_capacity = capacity;
        db->sent_first = 0;
    }
    db->segments[(db->sent_first + db->sent_count) % db->segment_capacity] = segment;
    db->sent_count++;
    db->sent_bytes += segment.bytes;
}

static bool has_room(const struct db *db)
{
    return db->sent_count < SENT_MAX && db->sent_bytes < SENT_BYTES_MAX;
}

static struct segment *segment_first(struct db *db) /* returns NULL when no segment is sent */
{
    return db->sent_count > 0 ? &db->segments[db->sent_first] : NULL;
}

static struct segment segment_pop(struct db *db)
{
    struct segment segment = db->segments[db->sent_first];

    db->sent_first = (db->sent_first + 1) % db->segment_capacity;
    db->sent_count--;
    db->sent_bytes -= segment.bytes;
    db->query_index = 0;
    db->failed = db->broken = db->commit_lost = false;
    return segment;
}

/* --- losing the connection --- */

static void on_watch_closed(uv_handle_t *handle)
{
    free(container_of((uv_poll_t *)handle, struct socket_watch, poll));
}

static void disconnect(struct db *db)
{
    if (db->watch) {
        db->watch->db = NULL;
        uv_close((uv_handle_t *)&db->watch->poll, on_watch_closed); /* closed before its socket */
        db->watch = NULL;
    }
    timer_stop(db->loop, &db->overdue);
    loop_defer_cancel(db->loop, &db->giver);
    db->astray = false;
    PQfinish(db->conn); /* accepts NULL; the socket does not block, so a server that hangs is not waited for */
    db->conn = NULL;
    map_fini(&db->prepared);
    map_init(&db->prepared);
    arena_reset(&db->prepared_arena);
}

/* Ends all submitted transactions in their order. */
static void end_all(struct db *db, const struct err *reason)
{
    size_t waiting = db->queue.waiting.count;

    while (db->sent_count > 0) {
        bool refused = db->failed;
        struct segment segment = segment_pop(db);

        if (segment.transaction && refused) { /* the server refused this one before the connection broke */
            db_queue_end(&db->queue, segment.transaction, DB_REFUSED);
        } else if (segment.transaction) {
            db_queue_lose(&db->queue, segment.transaction, reason);
        }
    }
    if (waiting > 0) {
        db_queue_refuse_waiting(&db->queue);
    }
}

static void on_retry(struct timer *timer)
{
    db_connecting(container_of(timer, struct db, retry));
}

static void schedule_retry(struct db *db)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0) {
        random = (uint32_t)loop_boot_us(db->loop); /* the number only spreads engines over time */
    }
    timer_start(db->loop, &db->retry, db_retry_delay_ms(db->retry_count++, random), on_retry);
}

/* Handles a connection that was lost or was never made. */
static void db_lost(struct db *db, const struct err *reason)
{
    db->state = DB_LOST;
    db->queue.lost_err = *reason;
    disconnect(db);
    end_all(db, &db->queue.lost_err);
    if (db->state == DB_LOST) {
        db->options.on_state(db, DB_LOST, &db->queue.lost_err, db->options.context);
    }
    if (db->state == DB_LOST && db->options.reconnect) {
        schedule_retry(db);
    }
}

static void db_broken(struct db *db)
{
    struct err err = {.code = ERR_OK};
    char line[sizeof(err.detail)];

    err_set(&err, ERR_STORE, "the connection to the database was lost");
    if (db->last_words.code != ERR_OK) {
        err_detail(&err, "%s", db->last_words.detail);
    } else {
        db_one_line(PQerrorMessage(db->conn), line, sizeof(line));
        err_detail(&err, "%s", line);
    }
    db_lost(db, &err);
}

/* --- giving up --- */

static void serve(struct db *db, bool good);

static void give_up(struct db *db, const struct err *reason)
{
    db->left_pid = PQbackendPID(db->conn);
    db_lost(db, reason);
}

/*
 * Checks whether the server is overdue. The timer runs on when an answer comes and more segments wait, so it compares
 * times and starts again. When this process itself stood still, the answer waits in the socket, so the socket is read
 * first.
 */
static void on_overdue(struct timer *timer)
{
    struct db *db = container_of(timer, struct db, overdue);
    struct err err = {.code = ERR_OK};
    int64_t left_ms;

    if (db->state == DB_READY) {
        serve(db, PQconsumeInput(db->conn) == 1);
    }
    if (db->state != DB_READY || db->sent_count == 0) {
        return;
    }
    left_ms = db->waiting_since_ms + db->options.answer_ms - loop_boot_ms(db->loop);
    if (left_ms > 0) {
        timer_start(db->loop, &db->overdue, left_ms, on_overdue);
        return;
    }
    err_set(&err, ERR_STORE, "the database does not answer");
    err_detail(&err, "a connection to it was given up after %lld ms without an answer",
               (long long)db->options.answer_ms);
    err_hint(&err, "look at the server: does its disk, its synchronous standby, or a pooler before it hang?");
    db->unanswered = true;
    give_up(db, &err);
}

static void on_give_up(struct deferred *deferred)
{
    struct db *db = container_of(deferred, struct db, giver);

    if (db->state == DB_READY) {
        give_up(db, &db->give_up_err);
    }
}

void db_give_up(struct db *db, const struct err *reason)
{
    if (db->state == DB_READY) {
        db->give_up_err = *reason;
        loop_defer(db->loop, &db->giver, on_give_up);
    }
}

bool db_was_unanswered(const struct db *db)
{
    return db->unanswered;
}

/* --- answers --- */

static void remember_last_words(struct db *db, const PGresult *result)
{
    char sqlstate[6];

    if (db->last_words.code == ERR_OK && PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
        (void)db_result_err(result, "the session", sqlstate, &db->last_words);
    }
}

static void on_notice(void *context, const PGresult *notice)
{
    struct db *db = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (db_notice_is_lost_commit(notice)) {
        db->commit_lost =
            db->sent_count > 0; /* the notice comes before its Sync, and libpq reads no further than a Sync */
    } else if (severity && db_result_is_fatal(notice)) {
        remember_last_words(db, notice); /* libpq reports the end of an idle session as a notice */
    }
}

static void transaction_refused(struct db *db, struct db_transaction *transaction, const PGresult *result)
{
    char what[80] = "the COMMIT";
    struct prepared *prepared = NULL;

    transaction->failed_query = db->query_index;
    if (db->query_index < transaction->count) {
        const char *name = transaction->queries[db->query_index].statement->name;

        (void)snprintf(what, sizeof(what), "statement %s", name); /* a long name may be cut */
        prepared = map_find(&db->prepared, name, strlen(name));
    }
    (void)db_result_err(result, what, transaction->sqlstate, &transaction->err);
    if (prepared && prepared->err.code != ERR_OK && strcmp(transaction->sqlstate, "26000") == 0) {
        transaction->err = prepared->err; /* "no such prepared statement" hides the reason, which is reported here */
        memcpy(transaction->sqlstate, prepared->sqlstate, sizeof(prepared->sqlstate));
    }
    if (strcmp(transaction->sqlstate, "40003") == 0) { /* 40003 is statement_completion_unknown */
        db->broken = true;
    } else {
        db->failed = true;
    }
}

static void prepared_answered(struct prepared *prepared, const PGresult *result)
{
    if (PQresultStatus(result) == PGRES_COMMAND_OK) {
        prepared->state = PREPARED_GOOD;
        prepared->err.code = ERR_OK;
    } else {
        prepared->state = PREPARED_NOT; /* the next transaction that needs the statement prepares it again */
        (void)db_result_err(result, "to prepare a statement", prepared->sqlstate, &prepared->err);
    }
}

static void segment_synced(struct db *db)
{
    bool failed = db->failed, broken = db->broken, commit_lost = db->commit_lost;
    struct segment segment = segment_pop(db);
    struct db_transaction *transaction = segment.transaction;

    if (!transaction) {
        return;
    }
    if (failed) {
        db_queue_end(&db->queue, transaction, DB_REFUSED);
    } else if (broken) {
        err_set(&transaction->err, ERR_LOST_COMMIT, "the answer to a COMMIT was lost");
        db_queue_end(&db->queue, transaction, DB_UNKNOWN);
    } else if (commit_lost) {
        db_queue_unconfirmed(&db->queue, transaction);
    } else {
        db_queue_end(&db->queue, transaction, DB_COMMITTED);
    }
}

/*
 * Ends the connection: answers and statements do not belong together any more, or the server does what no server does.
 * The transaction is lost like one whose answer never came. Its handler does not see the answer, so that it may read
 * the row without looking whether there is one.
 */
static void went_astray(struct db *db, const struct db_query *query, const PGresult *result)
{
    db->astray = db->broken = true;
    err_set(&db->last_words, ERR_STORE, "an answer of the database is not that of its statement");
    err_detail(&db->last_words, "statement %s was answered without a row (%s)", query->statement->name,
               PQresStatus(PQresultStatus(result)));
    log_error("answer_without_row", LOG_TEXT("statement", query->statement->name),
              LOG_TEXT("status", PQresStatus(PQresultStatus(result))), LOG_I64("query", (int64_t)db->query_index));
}

static void result_answered(struct db *db, const PGresult *result)
{
    struct segment *segment = segment_first(db);
    ExecStatusType status = PQresultStatus(result);

    CHECK(segment);
    if (status == PGRES_PIPELINE_SYNC) {
        segment_synced(db);
    } else if (status == PGRES_PIPELINE_ABORTED) {
        CHECK(db->failed || db->broken || !segment->transaction); /* the error itself came before */
    } else if (status == PGRES_FATAL_ERROR && db_result_is_fatal(result)) {
        db->broken = true; /* the outcome of the transaction before it is unknown */
        remember_last_words(db, result);
    } else if (!segment->transaction) {
        prepared_answered(segment->prepared, result);
    } else if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
        struct db_query *query = &segment->transaction->queries[db->query_index];

        CHECK(db->query_index < segment->transaction->count);
        if (query->statement->has_row && PQntuples(result) == 0) {
            went_astray(db, query, result);
        } else if (query->on_rows) {
            query->on_rows(query, &(struct db_rows){.result = result, .statement = query->statement});
        }
    } else {
        transaction_refused(db, segment->transaction, result);
    }
}

static void read_results(struct db *db)
{
    int null_count = 0;

    while (db->conn && db->state == DB_READY && db->sent_count > 0 && null_count < 2 && !PQisBusy(db->conn)) {
        PGresult *result = PQgetResult(db->conn);
        struct segment *segment = segment_first(db);

        if (!result) {
            null_count++;
            if (null_count == 1 && segment->transaction && db->query_index < segment->transaction->count) {
                db->query_index++;
            }
            continue;
        }
        null_count = 0;
        result_answered(db, result);
        PQclear(result);
        if (db->astray || (PQstatus(db->conn) == CONNECTION_BAD && db->broken)) {
            break;
        }
    }
}

static void read_notifications(struct db *db)
{
    PGnotify *notify;

    while (db->state == DB_READY && (notify = PQnotifies(db->conn)) != NULL) {
        if (db->options.on_notify) {
            db->options.on_notify(db, slice_of(notify->relname), slice_of(notify->extra), db->options.context);
        }
        PQfreemem(notify);
    }
}

/* --- the socket --- */

static void on_socket(uv_poll_t *poll, int status, int events);
static void on_pump(struct deferred *deferred);

/* Flushes the output. Returns false when the connection is broken. */
static bool flush_out(struct db *db)
{
    int left = PQflush(db->conn), events = UV_READABLE | (left == 1 ? UV_WRITABLE : 0);

    if (left < 0) {
        return false;
    }
    if (db->watch->events != events) {
        db->watch->events = events;
        CHECK(uv_poll_start(&db->watch->poll, events, on_socket) == 0);
    }
    return true;
}

/*
 * Moves all that libpq holds, in both directions. Sending may read bytes, and no socket event comes for these. On a
 * broken connection the answers that came before are handled first.
 */
static void serve(struct db *db, bool good)
{
    good = good && flush_out(db);
    read_results(db);
    read_notifications(db);
    if (db->state == DB_READY && (!good || db->astray || PQstatus(db->conn) != CONNECTION_OK)) {
        db_broken(db);
    }
    if (db->state == DB_READY && has_room(db) && !list_empty(&db->queue.waiting)) {
        loop_defer(db->loop, &db->pump, on_pump);
    }
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct db *db = container_of(poll, struct socket_watch, poll)->db;

    if (db->state == DB_READY) { /* otherwise the connection is being closed */
        if (events & UV_READABLE) {
            db->waiting_since_ms = loop_boot_ms(db->loop);
        }
        serve(db, PQconsumeInput(db->conn) == 1 && status == 0);
    }
}

/* --- sending --- */

static struct prepared *prepared_of(struct db *db, const struct db_statement *statement)
{
    size_t name_len = strlen(statement->name);
    struct prepared *prepared = map_find(&db->prepared, statement->name, name_len);

    if (!prepared) {
        prepared = arena_alloc(&db->prepared_arena, sizeof(*prepared));
        map_put(&db->prepared, arena_dup(&db->prepared_arena, statement->name, name_len), name_len, prepared);
    }
    return prepared;
}

static bool prepare_send(struct db *db, const struct db_query *query)
{
    struct prepared *prepared = prepared_of(db, query->statement);

    if (prepared->state != PREPARED_NOT) {
        return true;
    }
    if (!PQsendPrepare(db->conn, query->statement->name, query->statement->sql, query->args ? query->args->count : 0,
                       query->args ? query->args->oids : NULL)) {
        return false;
    }
    prepared->state = PREPARED_SENT;
    segment_push(db, (struct segment){.prepared = prepared});
    return PQpipelineSync(db->conn) == 1;
}

static bool query_send(struct db *db, const struct db_query *query)
{
    static const int binary[DB_ARGS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const struct db_args *args = query->args;

    return PQsendQueryPrepared(db->conn, query->statement->name, args ? args->count : 0, args ? args->values : NULL,
                               args ? args->lengths : NULL, binary, 1) == 1;
}

/* Sends a transaction. Returns false when the connection is broken. The transaction counts as sent from the moment its
 * Sync may leave. */
static bool transaction_send(struct db *db, struct db_transaction *transaction)
{
    size_t bytes = 0;
    bool good = true;

    for (size_t i = 0; i < transaction->count && good; i++) {
        good = prepare_send(db, &transaction->queries[i]);
    }
    for (size_t i = 0; i < transaction->count && good; i++) {
        good = query_send(db, &transaction->queries[i]);
        bytes += transaction->queries[i].args ? transaction->queries[i].args->bytes : 0;
    }
    if (!good) {
        return false; /* without its Sync the transaction has no effect */
    }
    list_remove(&db->queue.waiting, &transaction->link);
    segment_push(db, (struct segment){.transaction = transaction, .bytes = bytes});
    return PQpipelineSync(db->conn) == 1;
}

static void on_pump(struct deferred *deferred)
{
    struct db *db = container_of(deferred, struct db, pump);
    struct list_link *link;
    bool good = true;

    if (db->state == DB_LOST) {
        db_queue_refuse_waiting(&db->queue);
        return;
    }
    if (db->state != DB_READY) {
        return; /* while connecting, the end of the attempt calls this again; once closed, the closer ends all
                   transactions */
    }
    while (good && has_room(db) && (link = list_first(&db->queue.waiting)) != NULL) {
        good = transaction_send(db, container_of(link, struct db_transaction, link));
    }
    if (!good) {
        (void)PQconsumeInput(db->conn); /* fetches the server's reason; the connection is known to be broken */
    }
    serve(db, good);
}

void db_submit(struct db *db, struct db_transaction *transaction)
{
    db_queue_submit(&db->queue, transaction);
    loop_defer_first(db->loop, &db->pump, on_pump); /* the server works while the loop goes on */
}

/* --- connecting --- */

static void on_attempt(void *context, PGconn *conn, const struct err *err)
{
    struct db *db = context;

    db->attempt = NULL;
    db->unanswered = false;
    if (!conn) {
        db_lost(db, err);
        return;
    }
    db->conn = conn;
    db->state = DB_READY;
    db->retry_count = 0;
    db->last_words.code = ERR_OK;
    db->left_pid = 0;
    (void)PQsetNoticeReceiver(conn, on_notice, db);
    CHECK(PQsetnonblocking(conn, 1) == 0 && PQenterPipelineMode(conn) == 1);
    db->watch = memory_alloc(sizeof(*db->watch));
    db->watch->db = db;
    CHECK(uv_poll_init(loop_uv(db->loop), &db->watch->poll, PQsocket(conn)) == 0);
    if (!flush_out(db)) { /* nothing waits to be sent; the call starts the watching */
        db_broken(db);
        return;
    }
    loop_defer(db->loop, &db->pump, on_pump);
    db->options.on_state(db, DB_READY, NULL, db->options.context);
    if (db->state == DB_READY) {
        read_notifications(db); /* reads the notifications behind the LISTEN of the set-up */
    }
}

static void db_connecting(struct db *db)
{
    db->state = DB_CONNECTING;
    db->target.answer_ms = db->options.answer_ms;
    db->target.left_pid = db->left_pid;
    db->attempt = db_attempt_start(db->loop, &db->target, on_attempt, db);
}

struct db *db_open(struct loop *loop, const struct db_options *options)
{
    struct db *db = memory_alloc(sizeof(*db));

    CHECK(options->on_state);
    db->loop = loop;
    db->options = *options;
    arena_init(&db->arena, 1024);
    arena_init(&db->prepared_arena, 4096);
    map_init(&db->prepared);
    db_queue_init(&db->queue);
    db->target.setup = db_setup_copy(&db->arena, options->setup);
    db->target.dsn = arena_text(&db->arena, slice_of(options->dsn ? options->dsn : ""));
    db->target.application_name =
        arena_text(&db->arena, slice_of(options->application_name ? options->application_name : "sagad"));
    db_connecting(db);
    return db;
}

/* --- closing --- */

static void on_closer(struct deferred *deferred)
{
    struct db *db = container_of(deferred, struct db, closer);
    void (*on_closed)(void *context) = db->on_closed;
    void *context = db->closed_context;
    struct err reason = {.code = ERR_OK};

    err_set(&reason, ERR_STORE, "the connection to the database was closed");
    db->queue.lost_err = reason;
    disconnect(db);
    while (db->queue.pending > 0) { /* repeats for transactions that are submitted meanwhile */
        end_all(db, &reason);
    }
    db_attempt_abandon(db->attempt);
    timer_stop(db->loop, &db->retry);
    loop_defer_cancel(db->loop, &db->pump);
    map_fini(&db->prepared);
    arena_fini(&db->prepared_arena);
    arena_fini(&db->arena);
    free(db->segments);
    free(db);
    if (on_closed) {
        on_closed(context);
    }
}

void db_close(struct db *db, void (*on_closed)(void *context), void *context)
{
    CHECK(db->state != DB_CLOSED);
    db->state = DB_CLOSED;
    db->on_closed = on_closed;
    db->closed_context = context;
    loop_defer(db->loop, &db->closer, on_closer);
}

enum db_state db_state(const struct db *db)
{
    return db->state;
}

int db_server_version(const struct db *db)
{
    return db->conn ? PQserverVersion(db->conn) : 0;
}

int db_backend_pid(const struct db *db)
{
    return db->conn ? PQbackendPID(db->conn) : 0;
}

size_t db_pending(const struct db *db)
{
    return db->queue.pending;
}
