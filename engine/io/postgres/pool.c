/*
 * Connections that are lent out. A place is one connection string with its connections and the wishes that wait for
 * one.
 *
 * A connection that comes back is cleaned before it is lent again: ROLLBACK when a transaction is open, then DISCARD
 * ALL. A setting of one statement must not change the meaning of the next.
 */
#include "io/postgres/pool.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/map.h"
#include "base/text.h"
#include "io/http/egress.h"
#include "io/postgres/connect.h"

enum link_state { LINK_IDLE, LINK_LENT, LINK_CLEANING };

/* The poll handle outlives the connection until libuv has closed it. */
struct link_watch {
    uv_poll_t poll;
    struct db_link *link;
    int events;
};

struct db_link {
    struct list_link link;     /* links the idle connections of the place */
    struct list_link of_place; /* links all connections of the place */
    struct db_place *place;
    enum link_state state;
    PGconn *conn;
    struct link_watch *watch;
    struct timer idle;
    struct deferred failed; /* reports later that sending failed */
    struct db_ask *ask;     /* the request under way; NULL when there is none */
    struct db_ask clean;    /* our own */
    bool lost;              /* the request under way will end as DB_ANSWER_LOST */
};

struct db_place {
    struct db_pool *pool;
    char *dsn;
    struct list wishes, links, idle, attempts;
    int open; /* the number of connections and attempts */
    struct deferred serve;
};

struct place_attempt {
    struct list_link link;
    struct db_place *place;
    struct db_attempt *attempt;
};

struct db_pool {
    struct loop *loop;
    struct db_pool_options options;
    struct egress egress;
    struct map places;
    int open;
};

struct db_row {
    const PGresult *result;
};

static void on_serve(struct deferred *deferred);
static void on_link_socket(uv_poll_t *poll, int status, int events);

/* --- rows --- */

int db_row_columns(const struct db_row *row)
{
    return PQnfields(row->result);
}

const char *db_row_name(const struct db_row *row, int column)
{
    return PQfname(row->result, column);
}

enum db_column_kind db_row_kind(const struct db_row *row, int column)
{
    switch (PQftype(row->result, column)) { /* type numbers of pg_type.dat, which never change */
    case 16:
        return DB_COLUMN_BOOL;
    case 20:   /* int8 */
    case 21:   /* int2 */
    case 23:   /* int4 */
    case 26:   /* oid */
    case 700:  /* float4 */
    case 701:  /* float8 */
    case 1700: /* numeric */
        return DB_COLUMN_NUMBER;
    case 114:
    case 3802: /* jsonb */
        return DB_COLUMN_JSON;
    default: /* the numbers belong to the server and are no enum of ours */
        return DB_COLUMN_TEXT;
    }
}

struct slice db_row_value(const struct db_row *row, int column)
{
    if (PQgetisnull(row->result, 0, column)) {
        return SLICE_NONE;
    }
    return (struct slice){PQgetvalue(row->result, 0, column), (size_t)PQgetlength(row->result, 0, column)};
}

/* --- places --- */

static struct db_place *place_of(struct db_pool *pool, const char *dsn)
{
    size_t len = strlen(dsn);
    struct db_place *place =
        map_find(&pool->places, dsn, len + 1); /* the key includes the NUL, so that "" is a key, too */

    if (!place) {
        place = memory_alloc(sizeof(*place));
        place->pool = pool;
        place->dsn = memory_alloc(len + 1);
        memcpy(place->dsn, dsn, len);
        list_init(&place->wishes);
        list_init(&place->links);
        list_init(&place->idle);
        list_init(&place->attempts);
        map_put(&pool->places, place->dsn, len + 1, place);
    }
    return place;
}

static void place_free(struct db_place *place)
{
    size_t len = strlen(place->dsn);

    loop_defer_cancel(place->pool->loop, &place->serve);
    explicit_bzero(place->dsn, len); /* the string may hold a password */
    free(place->dsn);
    free(place);
}

/* Forgets a place that has no connection and no wish. */
static void place_check(struct db_place *place)
{
    if (place->open == 0 && list_empty(&place->wishes)) {
        (void)map_remove(&place->pool->places, place->dsn, strlen(place->dsn) + 1); /* removes this place */
        place_free(place);
    }
}

static void place_wake(struct db_place *place)
{
    loop_defer(place->pool->loop, &place->serve, on_serve);
}

static void place_count(struct db_place *place, int change)
{
    place->open += change;
    place->pool->open += change;
}

/* --- the end of a connection --- */

static void on_watch_closed(uv_handle_t *handle)
{
    free(container_of((uv_poll_t *)handle, struct link_watch, poll));
}

static void link_close(struct db_link *link)
{
    struct db_place *place = link->place;

    if (list_linked(&link->link)) {
        list_remove(&place->idle, &link->link);
    }
    list_remove(&place->links, &link->of_place);
    timer_stop(place->pool->loop, &link->idle);
    loop_defer_cancel(place->pool->loop, &link->failed);
    link->watch->link = NULL;
    uv_close((uv_handle_t *)&link->watch->poll, on_watch_closed); /* closed before its socket */
    PQfinish(link->conn);
    place_count(place, -1);
    free(link);
    place_wake(place);
}

static void on_idle(struct timer *timer)
{
    link_close(container_of(timer, struct db_link, idle));
}

/* --- answers --- */

static void ask_say(struct db_ask *ask, const char *words)
{
    if (!ask->message[0]) { /* the first reason counts */
        db_one_line(words, ask->message, sizeof(ask->message));
    }
}

static void ask_refused(struct db_link *link, struct db_ask *ask, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (state && strlen(state) == 5 && !ask->sqlstate[0]) {
        memcpy(ask->sqlstate, state, sizeof(ask->sqlstate));
    }
    ask_say(ask, message ? message : PQresultErrorMessage(result));
    if (db_result_is_fatal(result) || strcmp(ask->sqlstate, "40003") == 0) { /* 40003 is statement_completion_unknown */
        link->lost = true;
    } else {
        ask->answer = DB_ANSWER_REFUSED;
    }
}

static void ask_answered(struct db_link *link, struct db_ask *ask, PGresult *result)
{
    switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
        if (ask->on_row && !ask->stop) {
            ask->on_row(ask, &(struct db_row){result});
        }
        return;
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
        if (!slice_to_i64(slice_of(PQcmdTuples(result)), &ask->affected)) {
            ask->affected = 0;
        }
        db_one_line(PQcmdStatus(result), ask->tag, sizeof(ask->tag));
        return;
    case PGRES_COPY_OUT:
    case PGRES_COPY_IN:
    case PGRES_COPY_BOTH:
        ask_say(ask, "COPY is not possible here");
        memcpy(ask->sqlstate, "0A000", sizeof("0A000")); /* 0A000 is feature_not_supported */
        link->lost = true;
        return;
    case PGRES_FATAL_ERROR:
    case PGRES_BAD_RESPONSE:
        ask_refused(link, ask, result);
        return;
    case PGRES_NONFATAL_ERROR:
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED:
        return; /* PQgetResult never returns these outside a pipeline */
    }
}

/* Ends the request. This is the last thing a callback does with the connection: `done` may give it back, drop it or use
 * it again. */
static void ask_end(struct db_link *link, bool lost)
{
    struct db_ask *ask = link->ask;

    link->ask = NULL;
    if (lost) {
        ask->answer = DB_ANSWER_LOST;
        ask_say(ask, PQerrorMessage(link->conn));
    }
    ask->done(ask);
}

static void link_read(struct db_link *link)
{
    bool good = PQconsumeInput(link->conn) == 1;
    struct db_ask *ask = link->ask;
    PGresult *result;

    if (!ask) {
        if (link->state == LINK_IDLE && (!good || PQstatus(link->conn) != CONNECTION_OK)) {
            link_close(link); /* the server has ended this connection */
        } else if (!good) {
            CHECK(uv_poll_stop(&link->watch->poll) == 0); /* the borrower sees the loss in the next answer */
            link->watch->events = 0;
        }
        return;
    }
    while (!link->lost && !ask->stop && !PQisBusy(link->conn)) {
        result = PQgetResult(link->conn);
        if (!result) {
            ask_end(link, PQstatus(link->conn) != CONNECTION_OK);
            return;
        }
        ask_answered(link, ask, result);
        PQclear(result);
    }
    if (link->lost || ask->stop || !good) {
        ask_end(link, true);
    }
}

static void link_flush(struct db_link *link)
{
    int left = PQflush(link->conn), events = UV_READABLE | (left == 1 ? UV_WRITABLE : 0);

    /* A failure to write shows up when reading, where the server's reason arrives first. */
    if (link->watch->events != events) {
        link->watch->events = events;
        CHECK(uv_poll_start(&link->watch->poll, events, on_link_socket) == 0);
    }
}

static void on_link_socket(uv_poll_t *poll, int status, int events)
{
    struct db_link *link = container_of(poll, struct link_watch, poll)->link;

    (void)status; /* the read reports the same, with a reason */
    (void)events; /* reads and writes each time, whatever the event */
    if (link) {
        if (link->ask) {
            link_flush(link);
        }
        link_read(link);
    }
}

static void on_failed(struct deferred *deferred)
{
    struct db_link *link = container_of(deferred, struct db_link, failed);

    if (link->ask) {
        ask_end(link, true);
    }
}

static void on_notice(void *context, const PGresult *notice)
{
    struct db_link *link = context;

    if (link->ask && db_notice_is_lost_commit(notice)) {
        link->ask->unconfirmed = true;
    }
}

void db_link_ask(struct db_link *link, struct db_ask *ask)
{
    CHECK(!link->ask && link->state != LINK_IDLE && ask->done);
    link->ask = ask;
    link->lost = false;
    ask->stop = ask->unconfirmed = false;
    ask->answer = DB_ANSWER_DONE;
    ask->affected = 0;
    ask->tag[0] = ask->sqlstate[0] = ask->message[0] = '\0';
    if (ask->plain ? PQsendQuery(link->conn, ask->sql) != 1
                   : PQsendQueryParams(link->conn, ask->sql, ask->param_count, NULL, ask->params, NULL, NULL, 0) != 1) {
        loop_defer(link->place->pool->loop, &link->failed, on_failed);
        return;
    }
    CHECK(PQsetSingleRowMode(link->conn) == 1); /* single rows can be bounded before all of them are in memory */
    link_flush(link);
}

bool db_link_in_transaction(const struct db_link *link)
{
    return PQtransactionStatus(link->conn) == PQTRANS_INTRANS;
}

/* --- coming back --- */

static void link_rest(struct db_link *link)
{
    link->state = LINK_IDLE;
    list_push(&link->place->idle, &link->link);
    timer_start(link->place->pool->loop, &link->idle, link->place->pool->options.idle_ms, on_idle);
    place_wake(link->place);
}

static void on_clean(struct db_ask *ask);

static void link_clean(struct db_link *link, const char *sql)
{
    link->clean = (struct db_ask){.sql = sql, .plain = true, .done = on_clean};
    db_link_ask(link, &link->clean);
}

static void on_clean(struct db_ask *ask)
{
    struct db_link *link = container_of(ask, struct db_link, clean);

    if (ask->answer != DB_ANSWER_DONE || PQtransactionStatus(link->conn) != PQTRANS_IDLE) {
        link_close(link);
    } else if (strcmp(ask->sql, "ROLLBACK") == 0) {
        link_clean(link, "DISCARD ALL");
    } else {
        link_rest(link);
    }
}

void db_link_give(struct db_link *link)
{
    CHECK(link->state == LINK_LENT && !link->ask);
    link->state = LINK_CLEANING;
    switch (PQtransactionStatus(link->conn)) {
    case PQTRANS_IDLE:
        link_clean(link, "DISCARD ALL");
        return;
    case PQTRANS_INTRANS:
    case PQTRANS_INERROR:
        link_clean(link, "ROLLBACK");
        return;
    case PQTRANS_ACTIVE:
    case PQTRANS_UNKNOWN:
        break;
    }
    link_close(link);
}

void db_link_drop(struct db_link *link)
{
    CHECK(link->state == LINK_LENT);
    link_close(link);
}

/* --- lending --- */

static struct db_link *link_new(struct db_place *place, PGconn *conn)
{
    struct db_link *link = memory_alloc(sizeof(*link));

    link->place = place;
    list_push(&place->links, &link->of_place);
    link->conn = conn;
    link->watch = memory_alloc(sizeof(*link->watch));
    link->watch->link = link;
    (void)PQsetNoticeReceiver(conn, on_notice, link);
    CHECK(PQsetnonblocking(conn, 1) == 0);
    CHECK(uv_poll_init(loop_uv(place->pool->loop), &link->watch->poll, PQsocket(conn)) == 0);
    link_flush(link); /* nothing waits to be sent; the call starts the watching */
    return link;
}

static void wish_end(struct db_place *place, struct db_link *link, const struct err *err)
{
    struct db_wish *wish = LIST_ITEM(list_pop(&place->wishes), struct db_wish, link);

    wish->place = NULL;
    wish->lent = link;
    if (err) {
        wish->err = *err;
    }
    wish->done(wish);
}

static void on_attempt(void *context, PGconn *conn, const struct err *err)
{
    struct place_attempt *attempt = context;
    struct db_place *place = attempt->place;

    list_remove(&place->attempts, &attempt->link);
    free(attempt);
    if (conn) {
        link_rest(link_new(place, conn));
        return;
    }
    place_count(place, -1);
    place_wake(place); /* wakes the others first: `done` may add a new wish */
    if (!list_empty(&place->wishes)) {
        wish_end(place, NULL, err);
    }
}

static void attempt_begin(struct db_place *place)
{
    const struct db_target target = {.dsn = place->dsn,
                                     .is_foreign = true,
                                     .egress = &place->pool->egress,
                                     .application_name = place->pool->options.application_name};
    struct place_attempt *attempt = memory_alloc(sizeof(*attempt));

    place_count(place, 1);
    attempt->place = place;
    list_push(&place->attempts, &attempt->link);
    attempt->attempt = db_attempt_start(place->pool->loop, &target, on_attempt, attempt);
}

static void on_serve(struct deferred *deferred)
{
    struct db_place *place = container_of(deferred, struct db_place, serve);

    while (!list_empty(&place->wishes) && !list_empty(&place->idle)) {
        /* Lends the connection used last, so that the others reach the age at which they are closed. */
        struct db_link *link = container_of(place->idle.head.prev, struct db_link, link);

        list_remove(&place->idle, &link->link);
        timer_stop(place->pool->loop, &link->idle);
        link->state = LINK_LENT;
        wish_end(place, link, NULL);
    }
    while (place->attempts.count < place->wishes.count && place->open < place->pool->options.links_max) {
        attempt_begin(place);
    }
    place_check(place);
}

void db_pool_wish(struct db_pool *pool, struct db_wish *wish)
{
    CHECK(wish->done);
    wish->lent = NULL;
    wish->err = (struct err){.code = ERR_OK};
    wish->place = place_of(pool, wish->dsn);
    list_push(&wish->place->wishes, &wish->link);
    place_wake(wish->place);
}

void db_pool_forget(struct db_pool *pool, struct db_wish *wish)
{
    struct db_place *place = wish->place;

    CHECK(place && place->pool == pool);
    list_remove(&place->wishes, &wish->link);
    wish->place = NULL;
    place_wake(place);
}

/* --- the pool --- */

struct db_pool *db_pool_new(struct loop *loop, const struct db_pool_options *options)
{
    struct db_pool *pool = memory_alloc(sizeof(*pool));

    CHECK(options->links_max > 0 && options->idle_ms > 0 && options->application_name);
    pool->loop = loop;
    pool->options = *options;
    if (options->egress) {
        pool->egress = *options->egress;
        pool->options.egress = NULL; /* borrowed from the caller */
    }
    map_init(&pool->places);
    return pool;
}

void db_pool_free(struct db_pool *pool)
{
    size_t position = 0;
    void *value;

    if (!pool) {
        return;
    }
    while (map_next(&pool->places, &position, &value)) {
        struct db_place *place = value;
        struct db_link *link;
        struct place_attempt *attempt;

        CHECK(list_empty(&place->wishes));
        while ((link = LIST_ITEM(list_first(&place->links), struct db_link, of_place)) != NULL) {
            link_close(link);
        }
        while ((attempt = LIST_ITEM(list_pop(&place->attempts), struct place_attempt, link)) != NULL) {
            db_attempt_abandon(attempt->attempt);
            free(attempt);
        }
        place_free(place);
    }
    map_fini(&pool->places);
    free(pool);
}

int db_pool_links(const struct db_pool *pool)
{
    return pool->open;
}

bool db_dsn_is_readable(const char *dsn, bool *has_password)
{
    PQconninfoOption *options;

    *has_password = false;
    if (strncmp(dsn, "postgres://", 11) != 0 && strncmp(dsn, "postgresql://", 13) != 0 && !strchr(dsn, '=')) {
        return true; /* "" or a bare name of a database */
    }
    options = PQconninfoParse(dsn, NULL);
    if (!options) {
        return false;
    }
    for (PQconninfoOption *option = options; option->keyword; option++) {
        *has_password = *has_password || (strcmp(option->keyword, "password") == 0 && option->val && option->val[0]);
    }
    PQconninfoFree(options);
    return true;
}
