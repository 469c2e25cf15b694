/*
 * Answers: the owner of a shard answers an input of the inbox whose sender waits on another engine.
 *
 * Answers are written in groups: one statement is under way, and answers that come meanwhile share the next one. A
 * notification names the answered inputs, so that each engine asks for its own. While a sender waits, a slow poll also
 * asks; otherwise nothing is asked. Answers that nobody fetched are swept by an engine that wrote answers, once after
 * it did so.
 */
#include <stdlib.h>
#include <string.h>

#include "store/store_state.h"

enum {
    PUT_MAX = 200, /* the ids of these answers fit into one notification of 8000 bytes */
    PUT_BYTES_MAX = 4 << 20,
    PUT_AGAIN_MS = 1000,
    TAKE_MAX = 256,
    TAKE_POLL_MS = 1000,
    SWEEP_AFTER_MS = 11 * 60 * 1000
};

/* --- put --- */

struct putting { /* answers that are being written */
    struct store *store;
    struct arena arena;
    struct list puts;
};

static struct answer_put *put_of(struct list_link *link)
{
    return LIST_ITEM(link, struct answer_put, link);
}

static void put_done(struct answer_put *put, enum err_code code)
{
    put->code = code;
    if (put->done) {
        put->done(put);
    }
}

static void puts_end(struct list *puts, enum err_code code)
{
    struct answer_put *put;

    while ((put = put_of(list_pop(puts))) != NULL) {
        put_done(put, code);
    }
}

struct sweeping {
    struct arena arena;
};

static void on_sweep_finished(struct job *job)
{
    struct sweeping *sweeping = job->request; /* when this sweep fails, the one after the next answers does its work */

    arena_fini(&sweeping->arena);
    free(sweeping);
}

static void on_sweep(struct timer *timer)
{
    struct store *store = container_of(container_of(timer, struct answers, sweep), struct store, answers);
    struct sweeping *sweeping = memory_alloc(sizeof(*sweeping));
    struct job *job;

    arena_init(&sweeping->arena, 512);
    job = job_new(store, &sweeping->arena, sweeping, on_sweep_finished);
    job->writes = true;
    (void)job_query(job, &sql_answer_sweep, NULL);
    job_submit(job);
}

static void puts_send(struct store *store);

static void on_put_again(struct timer *timer)
{
    puts_send(container_of(container_of(timer, struct answers, put_again), struct store, answers));
}

static void on_puts_finished(struct job *job)
{
    struct putting *putting = job->request;
    struct store *store = putting->store;
    struct answers *answers = &store->answers;
    enum err_code code = job->code;
    bool again = code != ERR_OK && !store->closing && !job->transaction.sqlstate[0];
    struct list puts;
    struct answer_put *put;

    list_init(&puts);
    while ((put = put_of(list_pop(&putting->puts))) != NULL) {
        if (code == ERR_OK && put->drop_input) {
            inbox_consumed(store, &put->input); /* a poll that began meanwhile may still have seen the row */
        }
        list_push(again ? &answers->puts : &puts, &put->link);
    }
    arena_fini(&putting->arena); /* the arena holds the job */
    free(putting);
    answers->putting = false;
    if (again) { /* the database is away */
        timer_start(store->loop, &answers->put_again, PUT_AGAIN_MS, on_put_again);
        return;
    }
    if (code == ERR_OK && !store->closing && !timer_running(&answers->sweep)) {
        timer_start(store->loop, &answers->sweep, SWEEP_AFTER_MS, on_sweep);
    }
    puts_end(&puts, code);
    puts_send(store);
}

static size_t take_puts(struct answers *answers, struct list *out)
{
    size_t bytes = 0, dropping = 0;
    struct answer_put *put;

    while (out->count < PUT_MAX && (put = put_of(list_first(&answers->puts))) != NULL) {
        bytes += put->body.len;
        if (out->count > 0 && bytes > PUT_BYTES_MAX) {
            break;
        }
        list_remove(&answers->puts, &put->link);
        list_push(out, &put->link);
        dropping += put->drop_input;
    }
    return dropping;
}

static void drop_inputs(struct job *job, const struct putting *putting, size_t count)
{
    struct db_args *args = job_query(job, &sql_answer_drop_inputs, NULL);

    db_array_begin(args, DB_INT2, count);
    for (struct list_link *link = list_first(&putting->puts); link; link = list_after(&putting->puts, link)) {
        if (put_of(link)->drop_input) {
            db_item_int(args, put_of(link)->shard);
        }
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, count);
    for (struct list_link *link = list_first(&putting->puts); link; link = list_after(&putting->puts, link)) {
        if (put_of(link)->drop_input) {
            db_item_uuid(args, &put_of(link)->input);
        }
    }
    db_array_end(args);
}

static void puts_send(struct store *store)
{
    struct answers *answers = &store->answers;
    struct putting *putting;
    struct job *job;
    struct db_args *args;
    size_t dropping;

    if (answers->putting || store->closing || list_empty(&answers->puts)) {
        return;
    }
    answers->putting = true;
    putting = memory_alloc(sizeof(*putting));
    putting->store = store;
    arena_init(&putting->arena, 4096);
    list_init(&putting->puts);
    dropping = take_puts(answers, &putting->puts);
    job = job_new(store, &putting->arena, putting, on_puts_finished);
    job->writes = true;
    args = job_query(job, &sql_answer_put, NULL);
    db_array_begin(args, DB_INT2, putting->puts.count);
    for (struct list_link *link = list_first(&putting->puts); link; link = list_after(&putting->puts, link)) {
        db_item_int(args, put_of(link)->shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, putting->puts.count);
    for (struct list_link *link = list_first(&putting->puts); link; link = list_after(&putting->puts, link)) {
        db_item_uuid(args, &put_of(link)->input);
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, putting->puts.count);
    for (struct list_link *link = list_first(&putting->puts); link; link = list_after(&putting->puts, link)) {
        const struct answer_put *put = put_of(link);

        db_item_bytes(args, column_seal(store, place_of_answer(&put->input), put->body, &putting->arena));
    }
    db_array_end(args);
    if (dropping > 0) {
        drop_inputs(job, putting, dropping);
    }
    job_submit(job);
}

static void on_put_deferred(struct deferred *deferred)
{
    puts_send(container_of(container_of(deferred, struct answers, put_soon), struct store, answers));
}

void store_answer_put(struct store *store, struct answer_put *put)
{
    CHECK(put->shard < SHARD_COUNT && put->body.ptr);
    put->code = ERR_OK;
    put->link = (struct list_link){NULL, NULL};
    put->drop_input = put->drop_input && !appends_will_consume(store, &put->input);
    if (put->drop_input) {
        inbox_consumed(store, &put->input);
    }
    list_push(&store->answers.puts, &put->link);
    loop_defer(store->loop, &store->answers.put_soon, on_put_deferred);
}

/* --- wait --- */

static void take_now(struct store *store);

static void answers_on_taken(struct db_query *query, const struct db_rows *rows)
{
    struct answers *answers = query->context;
    struct store *store = container_of(answers, struct store, answers);

    answers->taken_count = db_row_count(rows);
    answers->taken = arena_array(&answers->arena, answers->taken_count + 1, sizeof(*answers->taken));
    for (size_t row = 0; row < answers->taken_count; row++) {
        answers->taken[row].input = db_uuid(rows, row, 0);
        answers->taken[row].body =
            arena_slice(&answers->arena, column_open(store, place_of_answer(&answers->taken[row].input),
                                                     db_bytes(rows, row, 1), &answers->arena));
    }
}

/* Rows that were read count even when the answer to the COMMIT was lost. If the rows are still there, they are
 * swept. */
static void on_take_done(struct db_transaction *transaction)
{
    struct answers *answers = container_of(transaction, struct answers, transaction);
    struct store *store = container_of(answers, struct store, answers);

    for (size_t i = 0; i < answers->taken_count && !store->closing; i++) {
        struct answer_wait *wait = map_find(&answers->waits, &answers->taken[i].input, sizeof(answers->taken[i].input));

        /* One that does not open is none: whoever waits does so in vain, as for an engine that died. */
        if (wait && answers->taken[i].body.ptr) {
            store_answer_stop(store, wait);
            wait->on_answer(wait, answers->taken[i].body);
        }
    }
    answers->taking = false;
    if (!store->closing) {
        take_now(store);
    }
}

static void put_waits(struct db_args *args, struct answer_wait *const *waits, size_t count)
{
    db_array_begin(args, DB_INT2, count);
    for (size_t i = 0; i < count; i++) {
        db_item_int(args, waits[i]->shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, count);
    for (size_t i = 0; i < count; i++) {
        db_item_uuid(args, &waits[i]->input);
    }
    db_array_end(args);
}

static void take_now(struct store *store)
{
    struct answers *answers = &store->answers;
    struct conn *conn = store->closing ? NULL : store_reader(store);
    struct answer_wait *waits[TAKE_MAX];
    size_t count = 0;
    struct db_args *args;

    if (answers->taking || !conn || list_empty(&answers->ripe)) {
        return; /* these answers stay ripe for the next poll */
    }
    while (count < TAKE_MAX && !list_empty(&answers->ripe)) {
        waits[count++] = LIST_ITEM(list_pop(&answers->ripe), struct answer_wait, link);
    }
    arena_reset(&answers->arena);
    answers->taking = true;
    answers->taken_count = 0;
    args = db_args_new(&answers->arena);
    put_waits(args, waits, count);
    answers->query =
        (struct db_query){.statement = &sql_answer_take, .args = args, .on_rows = answers_on_taken, .context = answers};
    memset(&answers->transaction, 0, sizeof(answers->transaction));
    answers->transaction.queries = &answers->query;
    answers->transaction.count = 1;
    answers->transaction.done = on_take_done;
    db_submit(conn->db, &answers->transaction);
}

static void take_all(struct store *store)
{
    struct answers *answers = &store->answers;
    size_t position = 0;
    void *value;

    while (map_next(&answers->waits, &position, &value)) {
        struct answer_wait *wait = value;

        if (!list_linked(&wait->link)) {
            list_push(&answers->ripe, &wait->link);
        }
    }
    take_now(store);
}

static void on_take_poll(struct timer *timer)
{
    struct answers *answers = container_of(timer, struct answers, poll);
    struct store *store = container_of(answers, struct store, answers);

    if (answers->waits.count == 0) {
        return; /* the next wait starts the poll again */
    }
    timer_start(store->loop, timer, TAKE_POLL_MS, on_take_poll);
    take_all(store);
}

void store_answer_wait(struct store *store, struct answer_wait *wait)
{
    struct answers *answers = &store->answers;

    CHECK(wait->shard < SHARD_COUNT && wait->on_answer && !uuid_is_nil(&wait->input));
    CHECK(!map_find(&answers->waits, &wait->input, sizeof(wait->input)));
    wait->link = (struct list_link){NULL, NULL};
    map_put(&answers->waits, &wait->input, sizeof(wait->input), wait);
    if (!timer_running(&answers->poll) && !store->closing) {
        timer_start(store->loop, &answers->poll, TAKE_POLL_MS, on_take_poll);
    }
}

void store_answer_stop(struct store *store, struct answer_wait *wait)
{
    struct answers *answers = &store->answers;

    if (map_find(&answers->waits, &wait->input, sizeof(wait->input)) != wait) {
        return;
    }
    (void)map_remove(&answers->waits, &wait->input, sizeof(wait->input));
    if (list_linked(&wait->link)) {
        list_remove(&answers->ripe, &wait->link);
    }
}

void answers_notified(struct store *store, struct slice payload)
{
    struct answers *answers = &store->answers;

    for (size_t at = 0; answers->waits.count > 0 && at + UUID_TEXT_BYTES - 1 <= payload.len; at += UUID_TEXT_BYTES) {
        struct uuid input;
        struct answer_wait *wait = NULL;

        if (uuid_parse((struct slice){payload.ptr + at, UUID_TEXT_BYTES - 1}, &input)) {
            wait = map_find(&answers->waits, &input, sizeof(input));
        }
        if (wait && !list_linked(&wait->link)) {
            list_push(&answers->ripe, &wait->link);
        }
    }
    take_now(store);
}

/* --- life --- */

void answers_init(struct store *store)
{
    struct answers *answers = &store->answers;

    list_init(&answers->puts);
    list_init(&answers->ripe);
    map_init(&answers->waits);
    arena_init(&answers->arena, 4096);
}

void answers_conn_up(struct store *store)
{
    puts_send(store);
    take_all(store); /* notifications may have been missed */
}

void answers_stop(struct store *store)
{
    struct answers *answers = &store->answers;

    timer_stop(store->loop, &answers->put_again);
    timer_stop(store->loop, &answers->poll);
    timer_stop(store->loop, &answers->sweep);
}

void answers_fini(struct store *store)
{
    struct answers *answers = &store->answers;

    loop_defer_cancel(store->loop, &answers->put_soon);
    puts_end(&answers->puts, ERR_STOPPING);
    map_fini(&answers->waits);
    arena_fini(&answers->arena);
}
