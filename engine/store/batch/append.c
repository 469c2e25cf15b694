/*
 * Group commit. Appends wait in one queue, and batches leave before the loop blocks and after it wakes.
 *
 * When no batch is under way, all waiting appends leave at once, even a single one: no timer delays it. While a batch
 * is under way, another one leaves on a second connection only when many appends wait, because small batches cost the
 * database more than they gain. So the next batch grows by what arrives during a COMMIT.
 *
 * Sagas whose turns were in one batch are all ready at once when the batch is committed. Then either this engine works
 * or the database, but never both. So the first half of such a crowd (all appends that waited or were under way when a
 * batch left) leaves while the engine still works on the other half. From then on the halves take turns.
 *
 * Two batches under way keep the database and the engine at work as long as less than a full batch waits behind them.
 * When more waits, further writers take full batches, so that the database has the next batch while the engine hears of
 * the last.
 *
 * Sagas that begin wait in their own queue, because sagas that have begun go first. When those alone would fill a
 * batch, the newcomers get an eighth of the places and bytes, so that no accepted start waits for ever. A newcomer
 * larger than that is the first append of every second batch.
 *
 *                 +--------- committed --------------------------------> done (TAKEN first, if a business id was taken)
 *   waiting -> SENT -- refused: fenced ------> EPOCHS -> lost shards: ERR_FENCED; others wait again
 *     ^           |--- refused as data ------> suspects: halves, again and again, until the guilty one is alone
 *     |           |--- refused otherwise ----> waiting (deadlock: a pause; disk full, read-only: trouble, told as away)
 *     |           +--- answer lost ----------> LOST -> ENDING -> LOOKING -> there: done
 *     +----------------------------------------------------------------- certainly not there
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "store/store_state.h"

enum {
    CROWD_MIN = 4000, /* the number of waiting appends from which batches are twice as large */
    HALVED_MIN = 200, /* a smaller crowd stays together, because batches cost the database, which others may need */
    BATCHES_OF_ANY_SIZE = 2, /* the most batches of any size under way; further ones must be full */
    NEWCOMERS_SHARE = 8,     /* newcomers get one of this many places of a batch, whatever else waits */
    PAUSE_MS = 20,           /* the pause after a deadlock or a similar refusal */
    TROUBLE_MS_MIN = 100,
    TROUBLE_MS_MAX = 3000
};

static struct append *append_of(struct list_link *link)
{
    return LIST_ITEM(link, struct append, link);
}

void append_complete(struct store *store, struct append *append, enum err_code code)
{
    append->code = code;
    if (code == ERR_OK) {
        memset(&append->err, 0, sizeof(append->err));
        if (append->from_inbox) {
            inbox_consumed(store, &append->inbox_id);
        }
    }
    store->append_count--;
    buffer_fini(&append->sealed);
    append->done(append);
}

void append_again(struct store *store, struct append *append)
{
    append->tries = 0;
    if (append->history != store->history.number) {
        err_set(&append->err, ERR_FENCED, "this was decided by a history that is gone");
        append_complete(store, append, ERR_FENCED);
        return;
    }
    /* An input of another engine or of an earlier turn was accepted back then, so it is no newcomer. */
    list_push(append->start && !append->from_inbox ? &store->newcomers : &store->waiting, &append->link);
}

static size_t waiting_count(const struct store *store)
{
    return store->waiting.count + store->newcomers.count;
}

static void appends_send(struct store *store);

static size_t half_of_crowd(const struct store *store)
{
    size_t half = store->crowd / 2;

    return store->crowd < HALVED_MIN ? SIZE_MAX : half > store->options.batch_max ? store->options.batch_max : half;
}

static void on_half_ready(struct deferred *deferred)
{
    appends_send(container_of(deferred, struct store, half_ready));
}

void store_append(struct store *store, struct append *append)
{
    CHECK(append->shard < SHARD_COUNT && append->record_count > 0 && append->first_seq > 0 && append->done);
    CHECK(append->start == NULL || (append->first_seq == 1 && !append->never_due));
    append->code = ERR_OK;
    append->link = (struct list_link){NULL, NULL};
    append->since_boot_ms = loop_boot_ms(store->loop);
    append->history = store->history.number;
    append_seal(store, append);
    store->append_count++;
    append_again(store, append);
    if (waiting_count(store) == half_of_crowd(store)) {
        loop_defer_first(store->loop, &store->half_ready, on_half_ready);
    }
}

size_t store_appends_waiting(const struct store *store)
{
    return store->append_count;
}

int64_t store_append_lag_ms(const struct store *store)
{
    const struct list *lists[] = {&store->waiting, &store->newcomers, &store->suspects};
    int64_t now_ms = loop_boot_ms(store->loop), oldest_ms = now_ms;

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const struct append *first = append_of(list_first(lists[i]));

        if (first && first->since_boot_ms < oldest_ms) {
            oldest_ms = first->since_boot_ms;
        }
    }
    for (size_t i = 0; i < store->writer_count; i++) {
        const struct batch *batch = store->conns[i].batch;

        if (batch && batch->count > 0 && batch->items[0] && batch->items[0]->since_boot_ms < oldest_ms) {
            oldest_ms = batch->items[0]->since_boot_ms;
        }
    }
    return now_ms - oldest_ms;
}

static void note_start(int64_t oldest_ms[SHARD_COUNT], const struct append *append)
{
    if (append->start && uuid_v7_ms(&append->saga.uuid) < oldest_ms[append->shard]) {
        oldest_ms[append->shard] = uuid_v7_ms(&append->saga.uuid);
    }
}

void appends_oldest_starts(const struct store *store, int64_t oldest_ms[SHARD_COUNT])
{
    const struct list *lists[] = {&store->waiting, &store->newcomers, &store->suspects};

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        oldest_ms[shard] = INT64_MAX;
    }
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (struct list_link *link = list_first(lists[i]); link; link = list_after(lists[i], link)) {
            note_start(oldest_ms, append_of(link));
        }
    }
    for (size_t w = 0; w < store->writer_count; w++) {
        const struct batch *batch = store->conns[w].batch;

        for (size_t i = 0; i < batch->count; i++) {
            if (batch->items[i]) {
                note_start(oldest_ms, batch->items[i]);
            }
        }
    }
}

bool appends_will_consume(const struct store *store, const struct uuid *inbox_id)
{
    const struct list *lists[] = {&store->waiting, &store->newcomers, &store->suspects};

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (struct list_link *link = list_first(lists[i]); link; link = list_after(lists[i], link)) {
            if (append_of(link)->from_inbox && uuid_equal(&append_of(link)->inbox_id, inbox_id)) {
                return true;
            }
        }
    }
    for (size_t w = 0; w < store->writer_count; w++) {
        const struct batch *batch = store->conns[w].batch;

        for (size_t i = 0; i < batch->count; i++) {
            if (batch->items[i] && batch->items[i]->from_inbox && uuid_equal(&batch->items[i]->inbox_id, inbox_id)) {
                return true;
            }
        }
    }
    return false;
}

/* --- pauses and trouble --- */

static void on_pause_over(struct timer *timer)
{
    (void)timer; /* the loop is awake, and its hook sends */
}

static void store_pause(struct store *store, int64_t ms)
{
    timer_start(store->loop, &store->pause, ms, on_pause_over);
}

static void on_trouble_timer(struct timer *timer)
{
    container_of(timer, struct store, trouble_timer)->trouble_may_try = true;
}

/* The database refuses appends. */
static void store_trouble(struct store *store, const struct err *err)
{
    int64_t delay_ms = TROUBLE_MS_MIN;

    for (int i = 0; i < store->trouble_count && delay_ms < TROUBLE_MS_MAX; i++) {
        delay_ms *= 2;
    }
    store->trouble_count++;
    store->trouble = true;
    store->trouble_may_try = false;
    store->away_err = *err;
    timer_start(store->loop, &store->trouble_timer, delay_ms < TROUBLE_MS_MAX ? delay_ms : TROUBLE_MS_MAX,
                on_trouble_timer);
    store_tell(store);
}

static void trouble_over(struct store *store)
{
    if (store->trouble) {
        store->trouble = false;
        store->trouble_count = 0;
        store_tell(store);
    }
}

/* --- the end of a batch --- */

struct append *batch_take(struct batch *batch, size_t i)
{
    struct append *append = batch->items[i];

    batch->items[i] = NULL; /* the owner may free the append as soon as it is told */
    return append;
}

void batch_finish(struct batch *batch)
{
    batch->count = 0;
    batch->phase = BATCH_IDLE;
    gauge_set(GAUGE_APPENDS_WAITING, (int64_t)batch->store->append_count);
}

static void batch_repeat(struct batch *batch) /* nothing of the batch happened */
{
    for (size_t i = 0; i < batch->count; i++) {
        append_again(batch->store, batch_take(batch, i));
    }
    batch_finish(batch);
}

static void batch_committed(struct batch *batch)
{
    struct store *store = batch->store;
    size_t refused_count = 0;

    metric_add(METRIC_BATCHES, 1);
    trouble_over(store);
    for (size_t i = 0; i < batch->count; i++) {
        struct append *append = batch_take(batch, i);

        if (batch->refused[i]) {
            batch->items[refused_count++] = append;
        } else {
            history_note(store, batch->conn, append);
            append_complete(store, append, ERR_OK);
        }
    }
    batch->count = refused_count;
    if (refused_count > 0) {
        batch_ask_taken(batch);
    } else {
        batch_finish(batch);
    }
}

static void batch_suspect(struct batch *batch, size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++) {
        struct append *append = batch_take(batch, i);

        append->tries = (int)count;
        list_push(&batch->store->suspects, &append->link);
    }
}

/* Repeats a batch with a saga that was declared to have no row in due, but has one. The claim is dropped for all of
 * them. */
static void batch_had_dues(struct batch *batch)
{
    log_error("due_was_there", LOG_ERR(&batch->transaction.err));
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i]->never_due = false;
    }
    batch_repeat(batch);
}

/*
 * Handles a batch that holds unacceptable data. A single append is guilty; of several, each half is tried apart. A
 * group stays together: its members carry its size, and they are side by side in the queue.
 */
static void batch_refused_as_data(struct batch *batch)
{
    struct store *store = batch->store;
    const struct db_transaction *transaction = &batch->transaction;
    const struct db_statement *statement =
        transaction->failed_query < batch->query_count ? batch->queries[transaction->failed_query].statement : NULL;
    bool exists = strcmp(transaction->sqlstate, "23505") == 0;
    size_t half = batch->count / 2;

    if (exists && statement == &sql_forget_first) {
        batch_had_dues(batch);
        return;
    }
    if (batch->count > 1) {
        batch_suspect(batch, 0, half);
        batch_suspect(batch, half, batch->count - half);
    } else {
        struct append *append = batch_take(batch, 0);

        if (exists && statement == &sql_log) {
            err_set(&append->err, ERR_FENCED, "another turn of the saga is in the log at this place");
            err_detail(&append->err, "%s", transaction->err.detail);
            append_complete(store, append, ERR_FENCED);
        } else if (exists && append->start && append->from_inbox &&
                   (statement == &sql_log_unique || statement == &sql_start)) {
            /* The sender put it into the inbox again after it had been consumed, not knowing that. It is the same
             * start. */
            append->existing = append->saga;
            append->existing_same_input = true;
            err_set(&append->err, ERR_CONFLICT, "this start was taken in before");
            append_complete(store, append, ERR_CONFLICT);
        } else if (strcmp(transaction->sqlstate, "SG002") == 0 && statement == &sql_inbox_consume) {
            err_set(&append->err, ERR_DECIDED, "this input was taken in before");
            inbox_consumed(store, &append->inbox_id);
            append_complete(store, append, ERR_DECIDED);
        } else {
            append->err = transaction->err;
            append->err.code = ERR_CORRUPT;
            (void)err_context(&append->err, "the database refused a turn as data");
            log_error("turn_refused", LOG_UUID("saga", &append->saga.uuid), LOG_I64("seq", append->first_seq),
                      LOG_ERR(&append->err));
            append_complete(store, append, ERR_CORRUPT);
        }
    }
    batch_finish(batch);
}

enum append_refusal { REFUSED_UNSENT, REFUSED_FENCED, REFUSED_TORN, REFUSED_DATA, REFUSED_FOR_NOW, REFUSED_TROUBLE };

/* Returns the kind of refusal, by the class of the SQLSTATE. */
static enum append_refusal refusal_of(const struct db_transaction *transaction)
{
    const char *state = transaction->sqlstate;

    if (!state[0]) {
        return REFUSED_UNSENT;
    }
    if (strcmp(state, "SG001") == 0) {
        return REFUSED_FENCED;
    }
    if (strcmp(state, "SG003") == 0) {
        return REFUSED_TORN;
    }
    if (strcmp(state, "SG002") == 0 || strncmp(state, "21", 2) == 0 || strncmp(state, "22", 2) == 0 ||
        strncmp(state, "23", 2) == 0 || strncmp(state, "54", 2) == 0) {
        return REFUSED_DATA;
    }
    if (strncmp(state, "40", 2) == 0 || strcmp(state, "55P03") == 0 || strcmp(state, "57014") == 0) {
        return REFUSED_FOR_NOW;
    }
    return REFUSED_TROUBLE;
}

static void batch_refused(struct batch *batch)
{
    switch (refusal_of(&batch->transaction)) {
    case REFUSED_UNSENT:
        batch_repeat(batch);
        break;
    case REFUSED_FENCED:
        batch_ask_epochs(batch);
        break;
    case REFUSED_TORN:
        history_torn(batch);
        batch_repeat(batch); /* the batch waits for a person with the others */
        break;
    case REFUSED_DATA:
        batch_refused_as_data(batch);
        break;
    case REFUSED_FOR_NOW:
        metric_add(METRIC_DB_ERRORS, 1);
        log_warn("batch_refused", LOG_ERR(&batch->transaction.err));
        store_pause(batch->store, PAUSE_MS);
        batch_repeat(batch);
        break;
    case REFUSED_TROUBLE:
        metric_add(METRIC_DB_ERRORS, 1);
        log_error("batch_refused", LOG_ERR(&batch->transaction.err));
        store_trouble(batch->store, &batch->transaction.err);
        batch_repeat(batch);
        break;
    }
}

static void batch_sent_done(struct batch *batch)
{
    batch->store->batches_sent--;
    switch (batch->transaction.outcome) {
    case DB_COMMITTED:
        batch_committed(batch);
        break;
    case DB_REFUSED:
        batch_refused(batch);
        break;
    case DB_UNKNOWN:
        metric_add(METRIC_BATCHES_LOST, 1);
        batch_lost(batch);
        break;
    }
}

static void batch_stop(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct append *append = batch_take(batch, i);

        if (append) {
            err_set(&append->err, ERR_STOPPING, "the engine is stopping");
            append_complete(batch->store, append, ERR_STOPPING);
        }
    }
    batch_finish(batch);
}

static void on_batch_done(struct db_transaction *transaction)
{
    struct batch *batch = container_of(transaction, struct batch, transaction);

    if (batch->store->closing) {
        batch_stop(batch);
        return;
    }
    switch (batch->phase) {
    case BATCH_SENT:
        batch_sent_done(batch);
        break;
    case BATCH_TAKEN:
        batch_taken_done(batch);
        break;
    case BATCH_EPOCHS:
        batch_epochs_done(batch);
        break;
    case BATCH_ENDING:
        batch_ending_done(batch);
        break;
    case BATCH_LOOKING:
        batch_looking_done(batch);
        break;
    case BATCH_IDLE:
    case BATCH_LOST:
        UNREACHABLE();
    }
}

void batch_submit(struct batch *batch, enum batch_phase phase, bool read_only)
{
    batch->phase = phase;
    memset(&batch->transaction, 0, sizeof(batch->transaction));
    batch->transaction.queries = batch->queries;
    batch->transaction.count = batch->query_count;
    batch->transaction.read_only = read_only;
    batch->transaction.done = on_batch_done;
    db_submit(batch->conn->db, &batch->transaction);
}

/* --- sending --- */

/* Fills the batch. `bytes` counts the bytes in the batch, and may not grow beyond `bytes_max`. */
static void batch_fill(struct batch *batch, struct list *from, size_t count_max, size_t *bytes, size_t bytes_max)
{
    struct append *append;

    while (batch->count < count_max && (append = append_of(list_first(from))) != NULL) {
        if (batch->count > 0 && *bytes + append->stored_payload.len > bytes_max) {
            break;
        }
        *bytes += append->stored_payload.len;
        list_remove(from, &append->link);
        batch->items[batch->count++] = append;
    }
}

static void batch_fill_waiting(struct batch *batch, size_t count_max)
{
    struct store *store = batch->store;
    const struct append *newcomer = append_of(list_first(&store->newcomers));
    size_t bytes = 0, theirs = count_max / NEWCOMERS_SHARE;

    theirs = store->newcomers.count < theirs ? store->newcomers.count : theirs;
    /* A large newcomer would never find room behind the others, and the others would find none if a large one came
     * first each time. */
    store->newcomer_led =
        !store->newcomer_led && theirs > 0 && newcomer->stored_payload.len > BATCH_BYTES_MAX / NEWCOMERS_SHARE;
    if (store->newcomer_led) {
        batch_fill(batch, &store->newcomers, 1, &bytes, BATCH_BYTES_MAX);
        batch_fill(batch, &store->waiting, count_max, &bytes, BATCH_BYTES_MAX);
        return;
    }
    batch_fill(batch, &store->waiting, count_max - theirs, &bytes,
               theirs > 0 ? BATCH_BYTES_MAX - BATCH_BYTES_MAX / NEWCOMERS_SHARE : BATCH_BYTES_MAX);
    batch_fill(batch, &store->newcomers, count_max, &bytes, BATCH_BYTES_MAX);
}

static void batch_send(struct batch *batch)
{
    struct store *store = batch->store;
    struct append *suspect = append_of(list_first(&store->suspects));
    size_t cap = waiting_count(store) > CROWD_MIN ? batch->capacity : store->options.batch_max, bytes = 0;

    CHECK(batch->phase == BATCH_IDLE && batch->count == 0);
    if (suspect) {
        batch_fill(batch, &store->suspects, (size_t)suspect->tries, &bytes, SIZE_MAX);
    } else {
        batch_fill_waiting(batch, cap);
    }
    batch->backend_pid = batch->conn->backend_pid;
    batch->backend_started_us = batch->conn->backend_started_us;
    batch->backend_gone = false;
    store->batches_sent++;
    store->crowd = waiting_count(store);
    for (size_t i = 0; i < store->writer_count; i++) {
        store->crowd += store->conns[i].batch->count;
    }
    batch_build(batch);
    batch_submit(batch, BATCH_SENT, false);
    gauge_set(GAUGE_APPENDS_WAITING, (int64_t)store->append_count);
}

static size_t second_batch_min(const struct store *store)
{
    size_t some = store->crowd < HALVED_MIN ? SIZE_MAX : store->crowd / 4;

    return some < store->options.second_batch_min ? some : store->options.second_batch_min;
}

/* Returns the writer on which a batch should leave now, or NULL. */
static struct batch *batch_due(const struct store *store)
{
    size_t waiting = waiting_count(store) + store->suspects.count;

    if (waiting == 0 || store->refused || store->history.is_other || store->closing || timer_running(&store->pause)) {
        return NULL;
    }
    if (store->batches_sent > 0 && (store->trouble || waiting < second_batch_min(store))) {
        return NULL;
    }
    if (store->batches_sent >= BATCHES_OF_ANY_SIZE && waiting < store->options.batch_max) {
        return NULL;
    }
    if (store->trouble && !store->trouble_may_try) {
        return NULL;
    }
    for (size_t i = 0; i < store->writer_count; i++) {
        const struct conn *conn = &store->conns[i];

        if (conn->up && conn->batch->phase == BATCH_IDLE) {
            return conn->batch;
        }
    }
    return NULL;
}

/*
 * Is there nothing to try? The appends to be tried went away with their shards, so nothing would ever show that the
 * database accepts appends again. Until that is known, the engine takes no shard and no new work. Therefore the
 * database counts as working until an append says otherwise.
 */
static bool has_nothing_to_try(const struct store *store)
{
    return store->trouble && store->trouble_may_try && store->batches_sent == 0 &&
           waiting_count(store) + store->suspects.count == 0;
}

static void appends_send(struct store *store)
{
    struct batch *batch;

    if (has_nothing_to_try(store)) {
        trouble_over(store);
    }
    while ((batch = batch_due(store)) != NULL) {
        store->trouble_may_try = false;
        if (store->trouble) {
            /* However this try ends, there is another one: this try may be lost with its connection, or be refused as
             * data. */
            timer_start(store->loop, &store->trouble_timer, TROUBLE_MS_MIN, on_trouble_timer);
        }
        batch_send(batch);
    }
}

static void on_hook(struct loop_hook *hook)
{
    appends_send(container_of(hook, struct store, hook));
}

/* --- life --- */

void appends_conn_up(struct conn *conn)
{
    if (conn->batch && conn->batch->phase == BATCH_LOST) {
        batch_resolve(conn->batch);
    }
}

void appends_init(struct store *store)
{
    list_init(&store->waiting);
    list_init(&store->newcomers);
    list_init(&store->suspects);
    for (size_t i = 0; i < store->writer_count; i++) {
        struct batch *batch = memory_alloc(sizeof(*batch));

        batch->store = store;
        batch->conn = &store->conns[i];
        batch->capacity = 2 * store->options.batch_max;
        batch->items = memory_alloc(batch->capacity * sizeof(struct append *));
        batch->refused = memory_alloc(batch->capacity);
        batch->found = memory_alloc(batch->capacity);
        arena_init(&batch->arena, 512 * 1024);
        store->conns[i].batch = batch;
    }
    loop_hook_add(store->loop, &store->hook, on_hook);
}

void appends_drop_rewound(struct store *store)
{
    struct list *lists[] = {&store->suspects, &store->waiting, &store->newcomers}, rewound;
    struct append *append;

    list_init(&rewound);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        while ((append = append_of(list_pop(lists[i]))) != NULL) {
            list_push(&rewound, &append->link);
        }
    }
    while ((append = append_of(list_pop(&rewound))) != NULL) { /* an owner that is told may append again */
        append_again(store, append);
    }
}

void appends_stop(struct store *store)
{
    struct list *lists[] = {&store->suspects, &store->waiting, &store->newcomers};
    struct append *append;

    for (size_t i = 0; i < store->writer_count; i++) {
        struct batch *batch = store->conns[i].batch;

        timer_stop(store->loop, &batch->again);
        batch_stop(batch); /* nobody waits any more for a connection to settle a batch whose answer was lost */
    }
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        while ((append = append_of(list_pop(lists[i]))) != NULL) {
            err_set(&append->err, ERR_STOPPING, "the engine is stopping");
            append_complete(store, append, ERR_STOPPING);
        }
    }
}

void appends_fini(struct store *store)
{
    loop_hook_remove(store->loop, &store->hook);
    loop_defer_cancel(store->loop, &store->half_ready);
    timer_stop(store->loop, &store->pause);
    timer_stop(store->loop, &store->trouble_timer);
    for (size_t i = 0; i < store->writer_count; i++) {
        struct batch *batch = store->conns[i].batch;

        arena_fini(&batch->arena);
        free(batch->items);
        free(batch->refused);
        free(batch->found);
        free(batch);
    }
}
