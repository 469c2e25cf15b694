/* The client side of a connection. io/postgres/db.h says what it promises; wire.h is the layer below. */
#include "io/postgres/db.h"

#include <stdlib.h>
#include <string.h>

#include "io/postgres/queue.h"
#include "tests/sim/wire.h"

enum { SENT_MAX = 256 };

struct db {
    struct loop *loop;
    struct arena arena; /* holds the texts of the options */
    struct db_options options;
    enum db_state state;
    struct wire *wire; /* NULL while neither connected nor connecting */
    bool connected;
    struct timer retry;
    int retry_count;
    struct db_queue queue;
    struct list sent;     /* shipments */
    struct timer overdue; /* runs while a request waits for its answer */
    int64_t waiting_since_ms;
    bool unanswered;
    struct err give_up_err;
    struct deferred pump, giver, closer;
    void (*on_closed)(void *context);
    void *closed_context;
};

static void db_lost(struct db *db, const struct err *reason);
static void db_connecting(struct db *db);
static void on_pump(struct deferred *deferred);

/* --- the ends of a transaction --- */

/* Ends all submitted transactions in their order. */
static void end_all(struct db *db, const struct err *reason)
{
    size_t waiting = db->queue.waiting.count;
    struct shipment *shipment;

    while ((shipment = LIST_ITEM(list_pop(&db->sent), struct shipment, sent_link)) != NULL) {
        db_queue_lose(&db->queue, shipment->transaction, reason); /* the shipment may still be under way */
    }
    if (waiting > 0) {
        db_queue_refuse_waiting(&db->queue);
    }
}

static void transaction_refused(struct db_transaction *transaction, const struct shipment *shipment)
{
    memcpy(transaction->sqlstate, shipment->sqlstate, sizeof(transaction->sqlstate));
    transaction->failed_query = shipment->failed_query;
    if (strcmp(shipment->sqlstate, "SG001") == 0) {
        err_set(&transaction->err, ERR_FENCED, "another engine owns the shard");
    } else {
        err_set(&transaction->err, ERR_STORE, "the database refused %s: SQLSTATE %s",
                shipment->failed_query < transaction->count
                    ? transaction->queries[shipment->failed_query].statement->name
                    : "the COMMIT",
                shipment->sqlstate);
    }
}

static void give_rows(struct db_transaction *transaction, const struct shipment *shipment)
{
    for (size_t i = 0; i < shipment->count; i++) {
        struct db_query *query = &transaction->queries[i];

        if (shipment->rows[i] && query->on_rows) {
            query->on_rows(query, shipment->rows[i]);
        }
    }
}

static void transaction_answered(struct db *db, struct shipment *shipment)
{
    struct db_transaction *transaction = shipment->transaction;

    CHECK(list_first(&db->sent) == &shipment->sent_link); /* answers come in the order of sending */
    give_rows(transaction, shipment);
    (void)list_pop(&db->sent);
    if (shipment->outcome == DB_REFUSED) {
        transaction_refused(transaction, shipment);
        db_queue_end(&db->queue, transaction, DB_REFUSED);
    } else if (shipment->warned) {
        db_queue_unconfirmed(&db->queue, transaction);
    } else {
        db_queue_end(&db->queue, transaction, DB_COMMITTED);
    }
}

/* --- the client's side --- */

static void on_connected(struct db *db)
{
    db->connected = true;
    db->state = DB_READY;
    db->retry_count = 0;
    loop_defer(db->loop, &db->pump, on_pump);
    db->options.on_state(db, DB_READY, NULL, db->options.context);
}

static void db_broken(struct db *db, const char *message, const char *detail)
{
    struct err err = {.code = ERR_OK};

    err_set(&err, ERR_STORE, "%s", message);
    err_detail(&err, "%s", detail);
    db_lost(db, &err);
}

void db_gets(struct db *db, struct packet *packet)
{
    struct shipment *shipment = packet->shipment;

    if (db->state == DB_CLOSED) {
        return; /* the closer ends what is pending */
    }
    db->waiting_since_ms = loop_boot_ms(db->loop);
    switch (packet->kind) {
    case PACKET_CONNECTED:
        on_connected(db);
        break;
    case PACKET_REFUSED:
        db_broken(db, "no PostgreSQL answers at this address", "connection refused");
        break;
    case PACKET_ANSWER:
        transaction_answered(db, shipment);
        shipment_free(shipment);
        if (!list_empty(&db->queue.waiting)) {
            loop_defer(db->loop, &db->pump, on_pump);
        }
        break;
    case PACKET_ROWS:
        CHECK(list_first(&db->sent) == &shipment->sent_link);
        give_rows(shipment->transaction, shipment);
        break;
    case PACKET_NOTIFY:
        if (db->options.on_notify) {
            db->options.on_notify(db, packet->channel, packet->payload, db->options.context);
        }
        break;
    case PACKET_GONE:
        db_broken(db, "the connection to the database was lost", "the server ended the session");
        break;
    case PACKET_CONNECT:
    case PACKET_TRANSACTION:
    case PACKET_CLOSE:
        CHECK(false);
    }
}

/* --- losing the connection --- */

static void disconnect(struct db *db)
{
    struct wire *wire = db->wire;

    timer_stop(db->loop, &db->overdue);
    loop_defer_cancel(db->loop, &db->giver);
    db->wire = NULL;
    db->connected = false;
    if (wire) {
        wire_close(wire);
    }
}

static void on_retry(struct timer *timer)
{
    db_connecting(container_of(timer, struct db, retry));
}

static void schedule_retry(struct db *db)
{
    uint32_t random = world_below(STREAM_ENGINE, UINT32_MAX);

    timer_start(db->loop, &db->retry, db_retry_delay_ms(db->retry_count++, random), on_retry);
}

static void db_lost(struct db *db, const struct err *reason)
{
    if (db->state == DB_CLOSED) {
        return; /* the closer ends what is pending */
    }
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

/* --- giving up: as in io/postgres/db.c --- */

static void on_overdue(struct timer *timer)
{
    struct db *db = container_of(timer, struct db, overdue);
    int64_t left_ms = db->waiting_since_ms + db->options.answer_ms - loop_boot_ms(db->loop);

    if (db->state != DB_READY || list_empty(&db->sent)) {
        return;
    }
    if (left_ms > 0) {
        timer_start(db->loop, &db->overdue, left_ms, on_overdue);
        return;
    }
    db->unanswered = true;
    db_broken(db, "the database does not answer", "a connection to it was given up");
}

static void on_give_up(struct deferred *deferred)
{
    struct db *db = container_of(deferred, struct db, giver);

    if (db->state == DB_READY) {
        db_lost(db, &db->give_up_err);
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

/* --- sending --- */

static void on_pump(struct deferred *deferred)
{
    struct db *db = container_of(deferred, struct db, pump);
    struct list_link *link;

    if (db->state == DB_LOST) {
        db_queue_refuse_waiting(&db->queue);
        return;
    }
    if (db->state != DB_READY) {
        return; /* while connecting, the end of the attempt calls this again; once closed, the closer ends all
                   transactions */
    }
    while (db->sent.count < SENT_MAX && (link = list_first(&db->queue.waiting)) != NULL) {
        struct shipment *shipment = wire_send(db->wire, container_of(link, struct db_transaction, link));

        list_remove(&db->queue.waiting, link);
        if (list_empty(&db->sent)) {
            db->waiting_since_ms = loop_boot_ms(db->loop);
        }
        list_push(&db->sent, &shipment->sent_link);
        if (db->options.answer_ms > 0 && !timer_running(&db->overdue)) {
            timer_start(db->loop, &db->overdue, db->options.answer_ms, on_overdue);
        }
    }
}

void db_submit(struct db *db, struct db_transaction *transaction)
{
    db_queue_submit(&db->queue, transaction);
    loop_defer_first(db->loop, &db->pump, on_pump);
}

/* --- opening and closing --- */

static void db_connecting(struct db *db)
{
    db->state = DB_CONNECTING;
    db->unanswered = false;
    db->wire = wire_open(db, db->options.application_name, db->options.setup);
}

struct db *db_open(struct loop *loop, const struct db_options *options)
{
    struct db *db = memory_alloc(sizeof(*db));

    CHECK(options->on_state);
    db->loop = loop;
    db->options = *options;
    arena_init(&db->arena, 1024);
    db_queue_init(&db->queue);
    list_init(&db->sent);
    db->options.setup = db_setup_copy(&db->arena, options->setup);
    db_connecting(db);
    return db;
}

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
    timer_stop(db->loop, &db->retry);
    loop_defer_cancel(db->loop, &db->pump);
    arena_fini(&db->arena);
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
    return db->connected ? 150018 : 0;
}

int db_backend_pid(const struct db *db)
{
    return db->connected ? db->wire->backend_pid : 0;
}

size_t db_pending(const struct db *db)
{
    return db->queue.pending;
}
