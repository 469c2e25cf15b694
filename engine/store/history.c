/*
 * Is this still the history that we wrote?
 *
 * A server that comes back may lack what it had confirmed: a standby that was behind was promoted, or a backup restored. What is lost is then the
 * end of the log of the whole server, so that it is enough to remember of each writer, for each shard, the last turn that was confirmed: commits of
 * one writer come one after the other, and where its last one is there, so are those before. Each new connection looks for them before it is used.
 * A timeline or server that has them all goes on without a word.
 *
 *   KNOWN -- a turn is missing, twice in a row on one connection, or behind a hole (SG003) --> OTHER: nothing is appended, read or renewed
 *   OTHER -- it stands in the table history_loss, and a person has accepted it ------------> KNOWN: every shard is dropped, and taken anew
 *
 * Twice, because a saga may be forgotten while we look. What is forgotten is not looked for any more from the moment it is asked.
 */
#include <string.h>

#include "base/instant.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/lease_state.h"

enum { HISTORY_POLL_MS = 500 };

void history_note(struct store *store, const struct conn *writer, const struct append *append)
{
    store->history.last[writer - store->conns][append->shard] = (struct evidence){.is_there = true,
                                                                                  .saga = append->saga,
                                                                                  .seq = append->first_seq,
                                                                                  .epoch = append->epoch,
                                                                                  .at_ms = append->at_ms};
}

void history_forget(struct store *store, uint32_t shard, struct saga_id saga)
{
    for (size_t i = 0; i < store->writer_count; i++) {
        struct evidence *last = &store->history.last[i][shard];

        last->is_there = last->is_there && !uuid_equal(&last->saga.uuid, &saga.uuid);
    }
}

/* --- looking, with the checks of a connection --- */

/* Of shards that are ours: what another engine has by now it may have forgotten. */
static bool counts(const struct store *store, size_t writer, uint32_t shard)
{
    const struct evidence *last = &store->history.last[writer][shard];
    int64_t epoch;

    return last->is_there && store->leases && lease_is_held(store->leases, shard, &epoch) && epoch == last->epoch;
}

static void on_missing(struct db_query *query, const struct db_rows *rows)
{
    struct conn_facts *facts = &((struct conn *)query->context)->facts;

    facts->missing_turns = (int64_t)db_row_count(rows);
    if (facts->missing_turns > 0) {
        facts->missing_saga.uuid = db_uuid(rows, 0, 0);
        facts->missing_seq = db_int(rows, 0, 1);
        facts->missing_at_ms = db_timestamptz(rows, 0, 2);
    }
}

static void on_epochs(struct db_query *query, const struct db_rows *rows)
{
    struct conn *conn = query->context;
    int64_t epoch;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        int64_t shard = db_int(rows, row, 0);

        conn->facts.shards_back += shard >= 0 && shard < SHARD_COUNT && conn->store->leases &&
                                   lease_is_held(conn->store->leases, (uint32_t)shard, &epoch) && db_int(rows, row, 1) < epoch;
    }
}

static void on_open(struct db_query *query, const struct db_rows *rows)
{
    ((struct conn *)query->context)->facts.losses_open = db_row_count(rows) == 1 ? db_int(rows, 0, 0) : 0;
}

#define EVIDENCE_COLUMN(type, put)                                                                                     \
    do {                                                                                                               \
        db_array_begin(args, (type), count);                                                                           \
        for (size_t i = 0; i < store->writer_count; i++) {                                                             \
            for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {                                                   \
                const struct evidence *last = &store->history.last[i][shard];                                          \
                if (counts(store, i, shard)) {                                                                         \
                    put;                                                                                               \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        db_array_end(args);                                                                                            \
    } while (0)

static struct db_args *check_query(struct conn *conn, size_t *at, const struct db_statement *statement,
                                   void (*on_rows)(struct db_query *, const struct db_rows *))
{
    struct db_query *query = &conn->check_queries[(*at)++];

    CHECK(*at <= CONN_QUERIES_MAX);
    *query = (struct db_query){.statement = statement, .args = db_args_new(&conn->arena), .on_rows = on_rows, .context = conn};
    return query->args;
}

size_t history_put_checks(struct conn *conn, size_t at)
{
    struct store *store = conn->store;
    size_t count = 0;
    struct db_args *args;

    (void)check_query(conn, &at, &sql_history_open, on_open); /* it takes no parameters */
    for (size_t i = 0; i < store->writer_count; i++) {
        for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
            count += counts(store, i, shard);
        }
    }
    if (store->leases) {
        args = check_query(conn, &at, &sql_epochs, on_epochs);
        db_array_begin(args, DB_INT2, SHARD_COUNT);
        for (int shard = 0; shard < SHARD_COUNT; shard++) {
            db_item_int(args, shard);
        }
        db_array_end(args);
    }
    if (count > 0) {
        args = check_query(conn, &at, &sql_history_missing, on_missing);
        EVIDENCE_COLUMN(DB_INT2, (void)last; db_item_int(args, shard));
        EVIDENCE_COLUMN(DB_UUID, db_item_uuid(args, &last->saga.uuid));
        EVIDENCE_COLUMN(DB_INT4, db_item_int(args, (int64_t)last->seq));
        EVIDENCE_COLUMN(DB_INT8, db_item_int(args, last->epoch));
        EVIDENCE_COLUMN(DB_TIMESTAMPTZ, db_item_timestamptz(args, last->at_ms));
    }
    return at;
}

static void say(struct err *err)
{
    err_set(err, ERR_STORE, "the database has another history: work that was acknowledged is missing");
    err_hint(err, "a standby that was behind was promoted, or a backup restored. Bring the right server back, or accept this one: sagad accept-history --note ...");
}

bool history_is_good(struct conn *conn, struct err *err)
{
    struct store *store = conn->store;
    const struct conn_facts *facts = &conn->facts;
    char saga[UUID_TEXT_BYTES], at[INSTANT_TEXT_BYTES];

    if (!store->history.is_other && facts->missing_turns == 0 && facts->shards_back == 0) {
        bool was_doubted = store->history.is_doubted;

        conn->doubts = 0;
        store->history.is_doubted = facts->losses_open > 0;
        if (facts->losses_open == 0) {
            if (was_doubted && store->leases) {
                leases_tick(store->leases); /* they said nothing while it was doubted, and nobody else wakes them */
            }
            return true;
        }
        store->away_told = false; /* another reason than before */
        say(err);
        err_detail(err, "another engine found it: see the table sagad.history_loss");
        return false;
    }
    store->away_told = false; /* another reason than before */
    store->history.is_doubted = true;
    say(err);
    if (facts->missing_turns > 0) {
        uuid_text(&facts->missing_saga.uuid, saga);
        instant_text(facts->missing_at_ms, at);
        err_detail(err, "of %lld turns that were confirmed last, one for each shard and writer, such as record %lld of saga %s at %s",
                   (long long)facts->missing_turns, (long long)facts->missing_seq, saga, at);
    } else if (facts->shards_back > 0) {
        err_detail(err, "%lld shards are at an epoch before ours", (long long)facts->shards_back);
    }
    if (!store->history.is_other && ++conn->doubts >= 2) {
        history_found(store, err);
    }
    return false;
}

/* --- another one --- */

static void history_step(struct store *store);

static void on_poll(struct timer *timer)
{
    history_step(container_of(container_of(timer, struct history, poll), struct store, history));
}

static void accepted(struct store *store)
{
    struct history *history = &store->history;

    log_warn("history_accepted", LOG_UUID("loss", &history->loss));
    memset(history->last, 0, sizeof(history->last));
    history->is_other = history->is_doubted = history->is_written = history->is_accepted = false;
    history->number++;
    for (size_t i = 0; i < store->conn_count; i++) {
        store->conns[i].doubts = 0;
    }
    appends_drop_rewound(store);
    if (store->options.on_history) {
        store->options.on_history(store, store->options.context);
    }
    if (store->leases) {
        leases_lose_all(store->leases);
    }
}

static void on_step_done(struct db_transaction *transaction)
{
    struct history *history = container_of(transaction, struct history, transaction);
    struct store *store = container_of(history, struct store, history);

    history->is_asking = false;
    if (store->closing) {
        return;
    }
    if (transaction->outcome == DB_COMMITTED && history->is_accepted) {
        accepted(store);
        return;
    }
    history->is_written = history->is_written || transaction->outcome == DB_COMMITTED;
    timer_start(store->loop, &history->poll, HISTORY_POLL_MS, on_poll);
}

static void on_accepted(struct db_query *query, const struct db_rows *rows)
{
    struct history *history = query->context;

    history->is_accepted = db_row_count(rows) == 1 && db_int(rows, 0, 0);
}

/* Writes it down, then asks whether a person has accepted it, on any connection there is. */
static void history_step(struct store *store)
{
    struct history *history = &store->history;
    struct conn *conn = NULL;
    struct db_args *args;

    for (size_t i = 0; i < store->conn_count && !conn; i++) {
        conn = db_state(store->conns[i].db) == DB_READY && !store->conns[i].checking ? &store->conns[i] : NULL;
    }
    if (!conn || history->is_asking) {
        timer_start(store->loop, &history->poll, HISTORY_POLL_MS, on_poll);
        return;
    }
    arena_reset(&history->arena);
    args = db_args_new(&history->arena);
    db_arg_uuid(args, &history->loss);
    history->is_accepted = false;
    if (history->is_written) {
        history->query = (struct db_query){.statement = &sql_history_accepted, .args = args, .on_rows = on_accepted, .context = history};
    } else {
        db_arg_text(args, slice_of(store->instance));
        db_arg_text(args, slice_of(history->err.detail));
        history->query = (struct db_query){.statement = &sql_history_found, .args = args, .context = history};
    }
    memset(&history->transaction, 0, sizeof(history->transaction));
    history->transaction.queries = &history->query;
    history->transaction.count = 1;
    history->transaction.read_only = history->is_written;
    history->transaction.done = on_step_done;
    history->is_asking = true;
    db_submit(conn->db, &history->transaction);
}

void history_found(struct store *store, const struct err *err)
{
    struct history *history = &store->history;

    if (history->is_other || store->closing) {
        return;
    }
    history->is_other = true;
    history->err = *err;
    history->loss = uuid_v7(loop_wall_ms(store->loop));
    metric_add(METRIC_HISTORY_LOST, 1);
    log_error("history_lost", LOG_ERR(err));
    store->away_err = *err;
    store->away_told = false;
    store_tell(store);
    timer_start(store->loop, &history->poll, 0, on_poll);
}

void history_torn(struct store *store, const struct db_transaction *transaction)
{
    struct err err = {.code = ERR_OK};

    say(&err);
    err_detail(&err, "%s", transaction->err.detail);
    history_found(store, &err);
}

void history_init(struct store *store)
{
    arena_init(&store->history.arena, 1024);
}

void history_stop(struct store *store)
{
    timer_stop(store->loop, &store->history.poll);
}

void history_fini(struct store *store)
{
    arena_fini(&store->history.arena);
}
