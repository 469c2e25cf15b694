/*
 * Checks whether the database still has the history that we wrote.
 *
 * A server that comes back may lack commits that it had confirmed: a standby that was behind was promoted, or a backup
 * was restored. It then lacks the end of the log of the whole server. So it is enough to remember the last confirmed
 * turn of each writer for each shard: commits of one writer come one after the other, and when its last one is there,
 * so are those before. Each new connection looks for these turns before it is used. It also looks at the counters of
 * every shard, even of shards that other engines have. An engine that wrote nothing there, but has seen a higher epoch
 * or more turns, notices the loss, too, and its word counts when the owner is gone. A server that has all of them goes
 * on without a word.
 *
 *   KNOWN -- a turn or an epoch is missing, twice in a row on one connection;
 *            a turn behind a hole (SG003); a counter, for a lease ----------------> OTHER
 *   OTHER: nothing is appended, read or renewed
 *   OTHER -- it stands in the table history_loss, and a person has accepted it --> KNOWN
 *   KNOWN again: every shard is dropped, and taken anew
 *
 * A turn must be missing twice, because a saga may be forgotten during the look. A saga that is being forgotten is no
 * longer looked for.
 *
 * One transaction writes the loss, the records that each saga lacks, the calls that were made for these sagas, and a
 * mark that keeps the shards without an owner until a person has accepted the loss (history_mark). So no later engine,
 * and not this one after a restart, can take the shards or make those calls again: the calls are loaded with the shard.
 * Knowledge that only this process has is lost when it ends before that transaction, so nothing else is done until
 * then.
 */
#include <string.h>

#include "base/instant.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/lease/lease_state.h"

enum { HISTORY_POLL_MS = 500 };

void history_note(struct store *store, const struct conn *writer, const struct append *append)
{
    store->history.turns[append->shard]++;
    store->history.last[writer - store->conns][append->shard] = (struct confirmed_turn){.is_there = true,
                                                                                        .saga = append->saga,
                                                                                        .seq = append->first_seq,
                                                                                        .epoch = append->epoch,
                                                                                        .at_ms = append->at_ms};
}

void history_forget(struct store *store, uint32_t shard, struct saga_id saga)
{
    for (size_t i = 0; i < store->writer_count; i++) {
        struct confirmed_turn *last = &store->history.last[i][shard];

        last->is_there = last->is_there && !uuid_equal(&last->saga.uuid, &saga.uuid);
    }
}

/* --- looking, with the checks of a connection --- */

/* Does our evidence count for this shard? Only for our own shards: another owner may have forgotten its sagas by
 * now. */
static bool counts(const struct store *store, size_t writer, uint32_t shard)
{
    const struct confirmed_turn *last = &store->history.last[writer][shard];
    int64_t epoch;

    return last->is_there && store->leases && lease_is_held(store->leases, shard, &epoch) && epoch == last->epoch;
}

static void on_missing(struct db_query *query, const struct db_rows *rows)
{
    struct conn_facts *facts = &((struct conn *)query->context)->facts;

    facts->missing_turns = (int64_t)db_row_count(rows);
    for (size_t row = 0; row < db_row_count(rows); row++) {
        uint32_t shard = saga_id_shard((struct saga_id){db_uuid(rows, row, 0)});

        facts->shards_missing |= shard < SHARD_COUNT ? UINT64_C(1) << shard : 0;
    }
    if (facts->missing_turns > 0) {
        facts->missing_saga.uuid = db_uuid(rows, 0, 0);
        facts->missing_seq = db_int(rows, 0, 1);
        facts->missing_at_ms = db_timestamptz(rows, 0, 2);
    }
}

static bool is_less(struct shard_mark mark, struct shard_mark seen)
{
    return mark.epoch < seen.epoch || mark.turns < seen.turns;
}

/* Compares the counters of a shard. For our own shards the turns themselves are looked for, so a renewal that alone was
 * lost does not matter. */
static void compare_mark(struct conn *conn, uint32_t shard, struct shard_mark mark)
{
    const struct shard_mark *seen = &conn->store->history.seen[shard];
    int64_t epoch;
    bool is_ours = conn->store->leases && lease_is_held(conn->store->leases, shard, &epoch) && epoch == mark.epoch;

    if (mark.epoch < seen->epoch) {
        conn->facts.shards_back |= UINT64_C(1) << shard;
    } else if (mark.turns < seen->turns && !is_ours) {
        conn->facts.shards_behind |= UINT64_C(1) << shard;
    }
}

static void on_marks(struct db_query *query, const struct db_rows *rows)
{
    for (size_t row = 0; row < db_row_count(rows); row++) {
        int64_t shard = db_int(rows, row, 0);

        if (shard >= 0 && shard < SHARD_COUNT) {
            compare_mark(query->context, (uint32_t)shard,
                         (struct shard_mark){.epoch = db_int(rows, row, 1), .turns = db_int(rows, row, 2)});
        }
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
                const struct confirmed_turn *last = &store->history.last[i][shard];                                    \
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
    *query = (struct db_query){
        .statement = statement, .args = db_args_new(&conn->arena), .on_rows = on_rows, .context = conn};
    return query->args;
}

size_t history_put_checks(struct conn *conn, size_t at)
{
    struct store *store = conn->store;
    size_t count = 0;
    struct db_args *args;

    (void)check_query(conn, &at, &sql_history_open, on_open); /* takes no parameters */
    for (size_t i = 0; i < store->writer_count; i++) {
        for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
            count += counts(store, i, shard);
        }
    }
    (void)check_query(conn, &at, &sql_history_marks, on_marks); /* takes no parameters */
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
    err_hint(err, "a standby that was behind was promoted, or a backup restored. Bring the right server back, or "
                  "accept this one: sagad accept-history --note ...");
}

/* Returns how many looks must fail. An owner that lives, and misses only its last renewal, renews again within a lease.
 * Checks come once a second. */
static int doubts_enough(const struct conn *conn)
{
    bool is_certain = conn->facts.missing_turns > 0 || conn->facts.shards_back > 0 || !conn->store->leases;

    return is_certain ? 2 : 2 + (int)(leases_ttl_ms(conn->store->leases) / 1000);
}

bool history_is_good(struct conn *conn, struct err *err)
{
    struct store *store = conn->store;
    const struct conn_facts *facts = &conn->facts;
    char saga[UUID_TEXT_BYTES], at[INSTANT_TEXT_BYTES];

    if (!store->history.is_other && facts->missing_turns == 0 && (facts->shards_back | facts->shards_behind) == 0) {
        bool was_doubted = store->history.is_doubted;

        conn->doubts = 0;
        store->history.is_doubted = facts->losses_open > 0;
        if (facts->losses_open == 0) {
            if (was_doubted && store->leases) {
                leases_tick(store->leases); /* the leases were silent during the doubt, and nothing else wakes them */
            }
            return true;
        }
        store->away_told = false; /* the reason is another one than before */
        say(err);
        err_detail(err, "another engine found it: see the table sagad.history_loss");
        return false;
    }
    store->away_told = false; /* the reason is another one than before */
    store->history.is_doubted = true;
    say(err);
    if (facts->missing_turns > 0) {
        uuid_text(&facts->missing_saga.uuid, saga);
        instant_text(facts->missing_at_ms, at);
        err_detail(err,
                   "of %lld turns that were confirmed last, one for each shard and writer, such as record %lld of saga "
                   "%s at %s",
                   (long long)facts->missing_turns, (long long)facts->missing_seq, saga, at);
    } else if (facts->shards_back | facts->shards_behind) {
        err_detail(err, "%d shards have had later owners, or more turns, than the database knows of",
                   __builtin_popcountll(facts->shards_back | facts->shards_behind));
    }
    if (!store->history.is_other && ++conn->doubts >= doubts_enough(conn)) {
        store->history.asked = (size_t)(conn - store->conns); /* this connection is told first */
        history_found(store, facts->shards_missing | facts->shards_back | facts->shards_behind, err);
    }
    return false;
}

bool history_saw(struct store *store, const struct shard_mark table[SHARD_COUNT])
{
    struct shard_mark *seen = store->history.seen;
    struct err err = {.code = ERR_OK};

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (is_less(table[shard], seen[shard])) {
            say(&err);
            err_detail(&err, "shard %u is at epoch %lld with %lld turns, and was seen at %lld with %lld", shard,
                       (long long)table[shard].epoch, (long long)table[shard].turns, (long long)seen[shard].epoch,
                       (long long)seen[shard].turns);
            store->history.is_doubted = true;
            for (size_t i = 0; i < store->conn_count; i++) {
                db_give_up(store->conns[i].db, &err);
            }
            leases_reconnect(store->leases, &err);
            return false;
        }
    }
    memcpy(seen, table, SHARD_COUNT * sizeof(*seen));
    return true;
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
    memset(history->seen, 0, sizeof(history->seen));
    history->is_other = history->is_doubted = history->is_written = history->is_accepted = false;
    history->lacking = 0;
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
    if (transaction->outcome == DB_COMMITTED && !history->is_written) {
        log_warn("history_loss_written", LOG_UUID("loss", &history->loss));
    }
    if (transaction->outcome == DB_COMMITTED) {
        history->is_written =
            !history->is_written || history->is_there; /* the server may have forgotten the loss with the rest */
    } else {
        log_warn("history_loss_not_written", LOG_ERR(&transaction->err));
        history->asked++;
    }
    timer_start(store->loop, &history->poll, HISTORY_POLL_MS, on_poll);
}

static void on_accepted(struct db_query *query, const struct db_rows *rows)
{
    struct history *history = query->context;

    history->is_there = db_row_count(rows) == 1;
    history->is_accepted = history->is_there && db_int(rows, 0, 0);
}

/* Returns the next connection to the newest server that we know. */
static struct conn *conn_to_ask(struct store *store)
{
    struct history *history = &store->history;

    for (size_t i = 0; i < store->conn_count; i++) {
        struct conn *conn = &store->conns[(history->asked + i) % store->conn_count];

        if (db_state(conn->db) == DB_READY && !conn->checking && conn->facts.have && !conn->facts.standby &&
            conn->facts.timeline == store->timeline) {
            history->asked = (size_t)(conn - store->conns);
            return conn;
        }
    }
    return NULL;
}

static struct db_args *step_query(struct history *history, const struct db_statement *statement)
{
    struct db_query *query = &history->queries[history->transaction.count++];

    CHECK(history->transaction.count <= HISTORY_QUERIES_MAX);
    *query = (struct db_query){.statement = statement, .args = db_args_new(&history->arena), .context = history};
    db_arg_uuid(query->args, &history->loss);
    return query->args;
}

#define COLUMN(type, count, put)                                                                                       \
    do {                                                                                                               \
        db_array_begin(args, (type), (count));                                                                         \
        for (size_t i = 0; i < (count); i++) {                                                                         \
            put;                                                                                                       \
        }                                                                                                              \
        db_array_end(args);                                                                                            \
    } while (0)

static void put_sagas(struct history *history, const struct known_work *known)
{
    struct db_args *args = step_query(history, &sql_history_sagas);

    COLUMN(DB_INT2, known->saga_count, db_item_int(args, saga_id_shard(known->sagas[i].id)));
    COLUMN(DB_UUID, known->saga_count, db_item_uuid(args, &known->sagas[i].id.uuid));
    COLUMN(DB_INT4, known->saga_count, db_item_int(args, (int64_t)known->sagas[i].seq));
    COLUMN(DB_INT8, known->saga_count, db_item_int(args, known->sagas[i].epoch));
}

static void put_shards(struct store *store)
{
    struct history *history = &store->history;
    struct db_args *args = step_query(history, &sql_history_shards);
    struct shard_mark known[SHARD_COUNT];

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        int64_t epoch;

        known[shard] = history->seen[shard];
        if (store->leases && lease_is_held(store->leases, shard, &epoch)) {
            known[shard].epoch = epoch > known[shard].epoch ? epoch : known[shard].epoch;
            known[shard].turns =
                history->turns[shard] > known[shard].turns ? history->turns[shard] : known[shard].turns;
        }
    }
    COLUMN(DB_INT2, SHARD_COUNT, db_item_int(args, (int64_t)i));
    COLUMN(DB_INT8, SHARD_COUNT, db_item_int(args, known[i].epoch));
    COLUMN(DB_INT8, SHARD_COUNT, db_item_int(args, known[i].turns));
    COLUMN(DB_BOOL, SHARD_COUNT, db_item_bool(args, history->lacking >> i & 1));
}

static void put_calls(struct history *history, const struct known_work *known)
{
    struct db_args *args = step_query(history, &sql_history_calls);

    COLUMN(DB_INT2, known->call_count, db_item_int(args, saga_id_shard(known->calls[i].saga)));
    COLUMN(DB_UUID, known->call_count, db_item_uuid(args, &known->calls[i].saga.uuid));
    COLUMN(DB_UUID, known->call_count, db_item_uuid(args, &known->calls[i].key.uuid));
    COLUMN(DB_INT4, known->call_count, db_item_int(args, known->calls[i].attempts));
    COLUMN(DB_TEXT, known->call_count, db_item_bytes(args, slice_of(effect_name(known->calls[i].effect))));
    COLUMN(DB_TEXT, known->call_count, db_item_bytes(args, known->calls[i].tool));
}

/* Writes the whole loss, or nothing. */
static void put_loss(struct store *store)
{
    struct history *history = &store->history;
    struct known_work known = {.arena = &history->arena};
    struct db_args *args = step_query(history, &sql_history_found);

    if (store->options.on_know) {
        store->options.on_know(store, &known, store->options.context);
    }
    db_arg_text(args, slice_of(store->instance));
    db_arg_text(args, slice_of(history->err.detail));
    db_arg_int8(args, (int64_t)known.left_out);
    if (known.calls_since_ms) {
        db_arg_timestamptz(args, known.calls_since_ms);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
    put_sagas(history, &known);
    put_shards(store);
    (void)step_query(history, &sql_history_mark);
    put_calls(history, &known);
}

/* Writes the loss down, then asks whether a person has accepted it. */
static void history_step(struct store *store)
{
    struct history *history = &store->history;
    struct conn *conn = history->is_asking ? NULL : conn_to_ask(store);

    if (!conn) {
        timer_start(store->loop, &history->poll, HISTORY_POLL_MS, on_poll);
        return;
    }
    arena_reset(&history->arena);
    memset(&history->transaction, 0, sizeof(history->transaction));
    history->is_accepted = history->is_there = false;
    if (history->is_written) {
        (void)step_query(history, &sql_history_accepted);
        history->queries[0].on_rows = on_accepted;
    } else {
        put_loss(store);
    }
    history->transaction.queries = history->queries;
    history->transaction.read_only = history->is_written;
    history->transaction.done = on_step_done;
    history->is_asking = true;
    db_submit(conn->db, &history->transaction);
}

void history_found(struct store *store, uint64_t lacking, const struct err *err)
{
    struct history *history = &store->history;

    if (history->is_other || store->closing) {
        return;
    }
    history->is_other = true;
    history->lacking = lacking;
    history->err = *err;
    history->loss = uuid_v7(loop_wall_ms(store->loop));
    metric_add(METRIC_HISTORY_LOST, 1);
    log_error("history_lost", LOG_UUID("loss", &history->loss), LOG_ERR(err));
    if (store->options.on_rewound) {
        store->options.on_rewound(store, store->options.context);
    }
    store->away_err = *err;
    store->away_told = false;
    store_tell(store);
    timer_start(store->loop, &history->poll, 0, on_poll);
}

void history_torn(struct batch *batch)
{
    struct err err = {.code = ERR_OK};
    uint64_t shards = 0;

    for (size_t i = 0; i < batch->count; i++) {
        shards |= UINT64_C(1) << batch->items[i]->shard;
    }
    say(&err);
    err_detail(&err, "%s", batch->transaction.err.detail);
    history_found(batch->store, shards, &err);
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
