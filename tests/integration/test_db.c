/*
 * A connection against a real PostgreSQL: values go there and back, a transaction ends in one of three ways, and after
 * whatever was done to the server the connection comes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "io/db.h"
#include "tests/lib/cluster.h"

enum { PATIENCE_MS = 60 * 1000, QUERIES_MAX = 4, MANY = 5000 };

static struct cluster cluster;
static struct loop *loop;
static struct db *db;
static struct arena arena;

/* What came so far. */
static int ready_count, lost_count, closed_count, done_count, notify_count;
static bool inside_submit;
static struct err lost_err;
static char notified[64];

struct tx {
    struct db_transaction transaction;
    struct db_query queries[QUERIES_MAX];
    int done, rows_calls, serial;
    int64_t row_count, affected;
    void (*look)(const struct db_rows *rows);
};

/* --- running the loop until something is so --- */

static bool (*awaited)(void);

static void on_turn(struct loop_hook *hook)
{
    (void)hook;
    if (awaited()) {
        loop_stop(loop);
    }
}

static void on_patience(struct timer *timer)
{
    (void)timer;
    fail_msg("waited %d ms for nothing", PATIENCE_MS);
}

static void run_until(bool (*condition)(void))
{
    struct loop_hook hook = {{NULL, NULL}, NULL};
    struct timer patience = {0};

    awaited = condition;
    loop_hook_add(loop, &hook, on_turn);
    timer_start(loop, &patience, PATIENCE_MS, on_patience);
    while (!condition()) {
        loop_run(loop);
    }
    timer_stop(loop, &patience);
    loop_hook_remove(loop, &hook);
}

static bool is_ready(void)
{
    return ready_count > 0;
}

static bool is_lost(void)
{
    return lost_count > 0;
}

static bool is_closed(void)
{
    return closed_count > 0;
}

static bool is_notified(void)
{
    return notify_count > 0;
}

static bool nothing_pending(void)
{
    return db_pending(db) == 0;
}

/* --- a connection and its transactions --- */

static void on_state(struct db *which, enum db_state state, const struct err *err, void *context)
{
    assert_ptr_equal(context, &cluster);
    assert_int_equal(db_state(which), state);
    if (state == DB_READY) {
        ready_count++;
    } else {
        assert_int_equal(state, DB_LOST);
        assert_non_null(err);
        lost_count++;
        lost_err = *err;
    }
}

static void on_notify(struct db *which, struct slice channel, struct slice payload, void *context)
{
    (void)which;
    (void)context;
    notify_count++;
    (void)snprintf(notified, sizeof(notified), "%.*s %.*s", SLICE_ARG(channel), SLICE_ARG(payload));
}

static void on_closed(void *context)
{
    assert_ptr_equal(context, &cluster);
    closed_count++;
}

static void open_to(const char *dsn, bool reconnect)
{
    static const char *const setup[] = {"set application_name = 'renamed'", "listen news", NULL};
    const struct db_options options = {.dsn = dsn, .application_name = "test", .setup = setup, .reconnect = reconnect,
                                       .on_state = on_state, .on_notify = on_notify, .context = &cluster};

    db = db_open(loop, &options);
    assert_int_equal(ready_count + lost_count, 0);
}

static void close_db(void)
{
    db_close(db, on_closed, &cluster);
    assert_int_equal(closed_count, 0);
    run_until(is_closed);
    db = NULL;
}

static int setup_loop(void **state)
{
    (void)state;
    ready_count = lost_count = closed_count = done_count = notify_count = 0;
    loop = loop_new();
    arena_init(&arena, 64 * 1024);
    return 0;
}

static int setup_db(void **state)
{
    setup_loop(state);
    open_to(cluster_dsn(&cluster), true);
    run_until(is_ready);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (db) {
        close_db();
    }
    loop_free(loop);
    arena_fini(&arena);
    return 0;
}

static void on_rows(struct db_query *query, const struct db_rows *rows)
{
    struct tx *tx = query->context;

    assert_int_equal(tx->done, 0);
    tx->rows_calls++;
    tx->row_count += (int64_t)db_row_count(rows);
    tx->affected += db_affected(rows);
    if (tx->look) {
        tx->look(rows);
    }
}

static void on_done(struct db_transaction *transaction)
{
    struct tx *tx = transaction->context;

    assert_false(inside_submit);
    tx->done++;
    tx->serial = ++done_count;
    assert_int_equal(tx->done, 1);
    assert_int_equal(transaction->outcome == DB_COMMITTED, transaction->err.code == ERR_OK);
}

static void tx_query(struct tx *tx, const struct db_statement *statement, struct db_args *args)
{
    assert_true(tx->transaction.count < QUERIES_MAX);
    tx->queries[tx->transaction.count++] =
        (struct db_query){.statement = statement, .args = args, .on_rows = on_rows, .context = tx};
}

static void tx_submit(struct tx *tx)
{
    tx->transaction.queries = tx->queries;
    tx->transaction.done = on_done;
    tx->transaction.context = tx;
    inside_submit = true;
    db_submit(db, &tx->transaction);
    inside_submit = false;
}

static void tx_run(struct tx *tx)
{
    tx_submit(tx);
    run_until(nothing_pending);
    assert_int_equal(tx->done, 1);
}

static void assert_committed(const struct tx *tx)
{
    if (tx->transaction.outcome != DB_COMMITTED) {
        fail_msg("not committed: %s: %s", tx->transaction.err.message, tx->transaction.err.detail);
    }
}

static void assert_refused(const struct tx *tx, const char *sqlstate, size_t failed_query)
{
    assert_int_equal(tx->transaction.outcome, DB_REFUSED);
    assert_string_equal(tx->transaction.sqlstate, sqlstate);
    assert_int_equal(tx->transaction.failed_query, failed_query);
}

/* --- beside it: a blocking session --- */

static int64_t number;

static void on_number(void *context, int columns, const char *const *values)
{
    (void)context;
    assert_true(columns > 0);
    number = values[0] ? strtoll(values[0], NULL, 10) : -1;
}

static int64_t ask(const char *sql)
{
    struct db_session *session;
    struct err err;

    number = -1;
    if (db_session_open(cluster_dsn(&cluster), "ask", &session, &err) != ERR_OK ||
        db_session_run(session, sql, on_number, NULL, &err) != ERR_OK) {
        fail_msg("%s: %s %s", sql, err.message, err.detail);
    }
    db_session_close(session);
    return number;
}

static int64_t ask_of_backend(const char *function)
{
    char sql[100];

    (void)snprintf(sql, sizeof(sql), "select %s(%d)::int", function, db_backend_pid(db));
    return ask(sql);
}

static void on_moment_over(struct timer *timer)
{
    (void)timer;
    loop_stop(loop);
}

static void run_a_moment(void)
{
    struct timer timer = {0};

    timer_start(loop, &timer, 5, on_moment_over);
    loop_run(loop);
}

static void wait_for_backend(const char *wait_event)
{
    char sql[120];

    (void)snprintf(sql, sizeof(sql), "select count(*) from pg_stat_activity where wait_event = '%s'", wait_event);
    while (ask(sql) == 0) {
        run_a_moment();
    }
}

/* --- statements --- */

static const struct db_statement insert_item = {"insert_item", "insert into item(id, note) values ($1, $2)"};
static const struct db_statement divide = {"divide", "select 1 / $1::int4"};
static const struct db_statement nap = {"nap", "select pg_sleep($1::int4)::text"};
static const struct db_statement one = {"one", "select 1"};

static struct db_args *item_args(int64_t id, const char *note)
{
    struct db_args *args = db_args_new(&arena);

    db_arg_int8(args, id);
    db_arg_text(args, slice_of(note));
    return args;
}

static struct db_args *int4_args(int32_t value)
{
    struct db_args *args = db_args_new(&arena);

    db_arg_int4(args, value);
    return args;
}

static void fresh_table(void)
{
    ask("set client_min_messages = warning; drop table if exists part, item; create table item(id int8 primary key, note text);"
        "create table part(item int8 references item deferrable initially deferred)");
}

/* --- values --- */

static const struct uuid sample_uuid = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}};
enum { SAMPLE_MS_BEFORE = -12345 };
#define SAMPLE_MS INT64_C(1774949100251)

static void look_at_values(const struct db_rows *rows)
{
    struct uuid uuid = db_uuid(rows, 0, 4);

    assert_int_equal(db_int(rows, 0, 0), 1);
    assert_true(db_int(rows, 0, 1) == -32768);
    assert_true(db_int(rows, 0, 2) == INT32_MIN);
    assert_true(db_int(rows, 0, 3) == INT64_MIN);
    assert_true(uuid_equal(&uuid, &sample_uuid));
    assert_true(slice_is(db_bytes(rows, 0, 5), "Zoë"));
    assert_int_equal(db_bytes(rows, 0, 6).len, 3);
    assert_memory_equal(db_bytes(rows, 0, 6).ptr, "\0\1\xff", 3);
    assert_true(db_timestamptz(rows, 0, 7) == SAMPLE_MS);
    assert_true(db_timestamptz(rows, 0, 8) == SAMPLE_MS_BEFORE);
    assert_true(slice_is(db_bytes(rows, 0, 9), "2026-03-31 09:25:00.251+00"));
    assert_true(slice_is(db_bytes(rows, 0, 10), ""));
    assert_non_null(db_bytes(rows, 0, 10).ptr);
    assert_true(db_timestamptz(rows, 0, 11) == INT64_MAX);
    assert_int_equal(db_int(rows, 0, 12), 0);
}

static void values_of_every_type_come_back_as_they_went(void **state)
{
    static const struct db_statement statement = {
        "values", "select $1, $2, $3, $4, $5, $6, $7, $8, $9, ($8 at time zone 'UTC')::text || '+00', $10, $11, $12"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_values};

    (void)state;
    db_arg_bool(args, true);
    db_arg_int2(args, -32768);
    db_arg_int4(args, INT32_MIN);
    db_arg_int8(args, INT64_MIN);
    db_arg_uuid(args, &sample_uuid);
    db_arg_text(args, SLICE("Zoë"));
    db_arg_bytea(args, SLICE("\0\1\xff"));
    db_arg_timestamptz(args, SAMPLE_MS);
    db_arg_timestamptz(args, SAMPLE_MS_BEFORE);
    db_arg_text(args, SLICE(""));
    db_arg_timestamptz(args, INT64_MAX);
    db_arg_bool(args, false);
    tx_query(&tx, &statement, args);
    tx_run(&tx);
    assert_committed(&tx);
    assert_int_equal(tx.rows_calls, 1);
}

static void look_at_nulls(const struct db_rows *rows)
{
    for (int i = 0; i < 8; i++) {
        assert_true(db_is_null(rows, 0, i));
    }
    assert_int_equal(db_int(rows, 0, 3), 0);
    assert_null(db_bytes(rows, 0, 5).ptr);
    assert_null(db_bytes(rows, 0, 6).ptr);
}

static void nulls_of_every_type_come_back_as_nulls(void **state)
{
    static const struct db_statement statement = {"nulls", "select $1, $2, $3, $4, $5, $6, $7, $8"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_nulls};

    (void)state;
    db_arg_null(args, DB_BOOL);
    db_arg_null(args, DB_INT2);
    db_arg_null(args, DB_INT4);
    db_arg_null(args, DB_INT8);
    db_arg_null(args, DB_UUID);
    db_arg_text(args, SLICE_NONE);
    db_arg_bytea(args, SLICE_NONE);
    db_arg_null(args, DB_TIMESTAMPTZ);
    tx_query(&tx, &statement, args);
    tx_run(&tx);
    assert_committed(&tx);
}

static void look_at_arrays(const struct db_rows *rows)
{
    struct uuid uuid;

    assert_int_equal(db_row_count(rows), 3);
    uuid = db_uuid(rows, 2, 4);
    assert_int_equal(db_int(rows, 0, 0), 1);
    assert_true(db_is_null(rows, 1, 0));
    assert_int_equal(db_int(rows, 2, 0), 0);
    assert_true(db_int(rows, 1, 1) == -2);
    assert_true(db_int(rows, 2, 2) == INT32_MAX);
    assert_true(db_int(rows, 0, 3) == INT64_MIN);
    assert_true(uuid_equal(&uuid, &sample_uuid));
    assert_true(slice_is(db_bytes(rows, 0, 5), ""));
    assert_true(slice_is(db_bytes(rows, 2, 5), "{\"a,b\"}"));
    assert_true(db_is_null(rows, 1, 6));
    assert_int_equal(db_bytes(rows, 2, 6).len, 2);
    assert_true(db_timestamptz(rows, 2, 7) == SAMPLE_MS);
}

static void arrays_of_every_type_come_back_as_they_went(void **state)
{
    static const struct db_statement statement = {"arrays", "select * from unnest($1, $2, $3, $4, $5, $6, $7, $8)"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_arrays};

    (void)state;
    db_array_begin(args, DB_BOOL, 3);
    db_item_bool(args, true);
    db_item_null(args);
    db_item_bool(args, false);
    db_array_end(args);
    db_array_begin(args, DB_INT2, 3);
    db_item_int(args, 1);
    db_item_int(args, -2);
    db_item_int(args, INT16_MIN);
    db_array_end(args);
    db_array_begin(args, DB_INT4, 3);
    db_item_int(args, 1);
    db_item_int(args, 2);
    db_item_int(args, INT32_MAX);
    db_array_end(args);
    db_array_begin(args, DB_INT8, 3);
    db_item_int(args, INT64_MIN);
    db_item_int(args, 2);
    db_item_int(args, 3);
    db_array_end(args);
    db_array_begin(args, DB_UUID, 3);
    db_item_uuid(args, &(struct uuid){{0}});
    db_item_null(args);
    db_item_uuid(args, &sample_uuid);
    db_array_end(args);
    db_array_begin(args, DB_TEXT, 3);
    db_item_bytes(args, SLICE(""));
    db_item_bytes(args, SLICE_NONE);
    db_item_bytes(args, SLICE("{\"a,b\"}"));
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, 3);
    db_item_bytes(args, SLICE("x"));
    db_item_null(args);
    db_item_bytes(args, SLICE("\0\xff"));
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, 3);
    db_item_null(args);
    db_item_timestamptz(args, 0);
    db_item_timestamptz(args, SAMPLE_MS);
    db_array_end(args);
    tx_query(&tx, &statement, args);
    tx_run(&tx);
    assert_committed(&tx);
}

static void look_at_sums(const struct db_rows *rows)
{
    assert_int_equal(db_int(rows, 0, 0), 0);
    assert_int_equal(db_int(rows, 0, 1), 1000);
    assert_int_equal(db_int(rows, 0, 2), 1000 * 300);
}

static void arrays_may_be_empty_or_large(void **state)
{
    static const struct db_statement statement = {
        "sizes", "select cardinality($1::int8[]), cardinality($2::text[]), (select sum(length(t))::int8 from unnest($2::text[]) t)"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_sums};
    char text[300];

    (void)state;
    memset(text, 'x', sizeof(text));
    db_array_begin(args, DB_INT8, 0);
    db_array_end(args);
    db_array_begin(args, DB_TEXT, 1000);
    for (int i = 0; i < 1000; i++) {
        db_item_bytes(args, (struct slice){text, sizeof(text)});
    }
    db_array_end(args);
    tx_query(&tx, &statement, args);
    tx_run(&tx);
    assert_committed(&tx);
}

static struct slice large;

static void look_at_large(const struct db_rows *rows)
{
    assert_int_equal(db_bytes(rows, 0, 0).len, large.len);
    assert_memory_equal(db_bytes(rows, 0, 0).ptr, large.ptr, large.len);
}

static void large_values_go_there_and_back(void **state)
{
    static const struct db_statement echo = {"echo", "select $1::bytea"};
    struct tx txs[12] = {0};
    char *bytes;

    (void)state;
    large.len = 10 * 1024 * 1024;
    bytes = malloc(large.len);
    assert_non_null(bytes);
    for (size_t i = 0; i < large.len; i++) {
        bytes[i] = (char)(i * 2654435761U >> 13);
    }
    large.ptr = bytes;
    for (size_t i = 0; i < COUNT_OF(txs); i++) { /* both directions are full at the same time */
        struct db_args *args = db_args_new(&arena);

        db_arg_bytea(args, large);
        txs[i].look = look_at_large;
        tx_query(&txs[i], &echo, args);
        tx_submit(&txs[i]);
    }
    run_until(nothing_pending);
    for (size_t i = 0; i < COUNT_OF(txs); i++) {
        assert_committed(&txs[i]);
        assert_int_equal(txs[i].rows_calls, 1);
    }
    free(bytes);
}

/* --- ends of transactions --- */

static void an_error_in_the_middle_takes_everything_with_it(void **state)
{
    struct tx bad = {.look = NULL}, good = {.look = NULL};

    (void)state;
    fresh_table();
    tx_query(&bad, &insert_item, item_args(1, "a"));
    tx_query(&bad, &divide, int4_args(0));
    tx_query(&bad, &insert_item, item_args(2, "b"));
    tx_query(&good, &insert_item, item_args(3, "c"));
    tx_query(&good, &divide, int4_args(1));
    tx_submit(&bad);
    tx_submit(&good);
    run_until(nothing_pending);
    assert_refused(&bad, "22012", 1);
    assert_int_equal(bad.transaction.err.code, ERR_STORE);
    assert_string_equal(bad.transaction.err.message, "the database refused statement divide: SQLSTATE 22012");
    assert_string_equal(bad.transaction.err.detail, "division by zero");
    assert_true(db_is_data_error(&bad.transaction));
    assert_int_equal(bad.rows_calls, 1);
    assert_committed(&good);
    assert_int_equal(good.rows_calls, 2);
    assert_int_equal(good.affected, 2); /* one inserted, one selected */
    assert_true(bad.serial < good.serial);
    assert_int_equal(ask("select count(*) from item"), 1);
}

static void a_commit_that_is_refused_is_no_commit(void **state)
{
    static const struct db_statement insert_part = {"insert_part", "insert into part(item) values ($1)"};
    struct tx tx = {.look = NULL}, next = {.look = NULL};
    struct db_args *args = db_args_new(&arena);

    (void)state;
    fresh_table();
    db_arg_int8(args, 77);
    tx_query(&tx, &insert_part, args);
    tx_query(&next, &one, NULL);
    tx_submit(&tx);
    tx_submit(&next);
    run_until(nothing_pending);
    assert_refused(&tx, "23503", 1);
    assert_non_null(strstr(tx.transaction.err.message, "the COMMIT"));
    assert_committed(&next);
    assert_int_equal(ask("select count(*) from part"), 0);
}

static void a_fence_is_told_from_other_errors(void **state)
{
    static const struct db_statement fence = {"fence", "select fence($1)"};
    struct tx tx = {.look = NULL};

    (void)state;
    ask("create or replace function fence(e int4) returns int4 language plpgsql as "
        "$$ begin raise exception 'epoch % is over', e using errcode = 'SG001'; end $$");
    tx_query(&tx, &fence, int4_args(7));
    tx_run(&tx);
    assert_refused(&tx, "SG001", 0);
    assert_int_equal(tx.transaction.err.code, ERR_FENCED);
    assert_string_equal(tx.transaction.err.detail, "epoch 7 is over");
    assert_false(db_is_data_error(&tx.transaction));
}

static void a_statement_that_cannot_be_prepared_says_why_and_is_tried_again(void **state)
{
    static const struct db_statement late = {"late", "insert into late_table values ($1)"};
    struct tx txs[3] = {0}, after = {.look = NULL};

    (void)state;
    ask("set client_min_messages = warning; drop table if exists late_table");
    for (int i = 0; i < 3; i++) {
        tx_query(&txs[i], &one, NULL);
        tx_query(&txs[i], &late, int4_args(i));
        tx_submit(&txs[i]);
    }
    run_until(nothing_pending);
    for (int i = 0; i < 3; i++) {
        assert_refused(&txs[i], "42P01", 1);
        assert_non_null(strstr(txs[i].transaction.err.detail, "late_table"));
    }
    ask("create table late_table(n int4)");
    tx_query(&after, &late, int4_args(9));
    tx_run(&after);
    assert_committed(&after);
}

static void an_error_does_not_unprepare_what_later_transactions_use(void **state)
{
    static const struct db_statement first_use = {"first_use", "select $1::int4 + 1"};
    struct tx bad = {.look = NULL}, good = {.look = NULL}, later = {.look = NULL};

    (void)state;
    tx_query(&bad, &divide, int4_args(0));
    tx_query(&bad, &first_use, int4_args(1)); /* skipped by the error before it */
    tx_query(&good, &first_use, int4_args(2));
    tx_submit(&bad);
    tx_submit(&good);
    run_until(nothing_pending);
    assert_refused(&bad, "22012", 0);
    assert_committed(&good);
    tx_query(&later, &first_use, int4_args(3));
    tx_run(&later);
    assert_committed(&later);
}

static void thousands_in_flight_all_end_in_order(void **state)
{
    struct tx *txs = calloc(MANY, sizeof(*txs));
    int committed = 0;

    (void)state;
    assert_non_null(txs);
    fresh_table();
    for (int i = 0; i < MANY; i++) {
        tx_query(&txs[i], &insert_item, item_args(i, "note"));
        if (i % 7 == 3) {
            tx_query(&txs[i], &divide, int4_args(0));
        }
        tx_query(&txs[i], &one, NULL);
        tx_submit(&txs[i]);
    }
    assert_int_equal(db_pending(db), MANY);
    run_until(nothing_pending);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(txs[i].done, 1);
        assert_int_equal(txs[i].serial, i + 1);
        assert_int_equal(txs[i].transaction.outcome, i % 7 == 3 ? DB_REFUSED : DB_COMMITTED);
        committed += txs[i].transaction.outcome == DB_COMMITTED;
    }
    assert_int_equal(ask("select count(*) from item"), committed);
    free(txs);
}

static int chain_left;
static struct tx chain_tx;

static void on_chain(struct db_transaction *transaction)
{
    assert_int_equal(transaction->outcome, DB_COMMITTED);
    if (--chain_left > 0) {
        db_submit(db, transaction);
    }
}

static void a_transaction_may_be_submitted_again_from_its_end(void **state)
{
    (void)state;
    memset(&chain_tx, 0, sizeof(chain_tx));
    chain_left = 500;
    tx_query(&chain_tx, &one, NULL);
    chain_tx.transaction.queries = chain_tx.queries;
    chain_tx.transaction.done = on_chain;
    db_submit(db, &chain_tx.transaction);
    run_until(nothing_pending);
    assert_int_equal(chain_left, 0);
    assert_int_equal(chain_tx.rows_calls, 500);
}

/* --- notifications --- */

static void a_notification_arrives_without_being_asked_for(void **state)
{
    (void)state;
    ask("notify news, 'hello'");
    run_until(is_notified);
    assert_string_equal(notified, "news hello");
}

/* --- losses --- */

static void a_lost_connection_leaves_sent_writes_unknown_and_comes_back(void **state)
{
    struct tx sleeper = {.look = NULL}, write = {.look = NULL}, read = {.look = NULL}, refused = {.look = NULL}, after = {.look = NULL};
    int pid = db_backend_pid(db);

    (void)state;
    fresh_table();
    ready_count = 0;
    tx_query(&refused, &divide, int4_args(0)); /* certainly refused, whatever comes later */
    tx_submit(&refused);
    tx_query(&sleeper, &insert_item, item_args(1, "a"));
    tx_query(&sleeper, &nap, int4_args(60));
    tx_submit(&sleeper);
    tx_query(&write, &insert_item, item_args(2, "b"));
    tx_submit(&write);
    read.transaction.read_only = true;
    tx_query(&read, &one, NULL);
    tx_submit(&read);
    wait_for_backend("PgSleep");
    ask_of_backend("pg_terminate_backend");
    run_until(nothing_pending);
    assert_refused(&refused, "22012", 0);
    assert_int_equal(sleeper.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(sleeper.transaction.err.code, ERR_LOST_COMMIT);
    assert_int_equal(write.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(read.transaction.outcome, DB_REFUSED);
    assert_int_equal(read.transaction.err.code, ERR_STORE);
    run_until(is_ready);
    assert_int_equal(lost_count, 1);
    assert_int_equal(lost_err.code, ERR_STORE);
    assert_non_null(strstr(lost_err.detail, "administrator command"));
    assert_true(db_backend_pid(db) != pid);
    tx_query(&after, &insert_item, item_args(3, "c"));
    tx_run(&after);
    assert_committed(&after);
    assert_int_equal(ask("select count(*) from item"), 1);
    assert_int_equal(ask("select count(*) from pg_stat_activity where application_name = 'renamed'"), 1); /* the set-up ran again */
}

static void an_idle_connection_that_is_ended_says_why(void **state)
{
    (void)state;
    ready_count = 0;
    ask_of_backend("pg_terminate_backend");
    run_until(is_lost);
    assert_non_null(strstr(lost_err.detail, "administrator command"));
    run_until(is_ready);
}

static void what_is_submitted_while_away_is_refused_at_once(void **state)
{
    struct tx tx = {.look = NULL}, waits = {.look = NULL};

    (void)state;
    cluster_stop(&cluster);
    run_until(is_lost);
    ready_count = 0;
    assert_int_equal(db_state(db), DB_LOST);
    tx_query(&tx, &one, NULL);
    tx_run(&tx);
    assert_refused(&tx, "", 0);
    assert_int_equal(tx.transaction.err.code, ERR_STORE);
    cluster_resume(&cluster);
    run_until(is_ready);
    tx_query(&waits, &one, NULL);
    tx_run(&waits);
    assert_committed(&waits);
}

static bool some_done(void)
{
    return done_count > MANY / 4;
}

static void after_a_crash_every_commit_that_was_told_is_there(void **state)
{
    struct tx *txs = calloc(MANY, sizeof(*txs));
    int count[3] = {0};
    int64_t found;

    (void)state;
    assert_non_null(txs);
    fresh_table();
    ready_count = 0;
    for (int i = 0; i < MANY; i++) {
        tx_query(&txs[i], &insert_item, item_args(i, "note"));
        tx_submit(&txs[i]);
    }
    run_until(some_done);
    cluster_restart_immediate(&cluster);
    run_until(nothing_pending);
    run_until(is_ready);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(txs[i].done, 1);
        count[txs[i].transaction.outcome]++;
    }
    found = ask("select count(*) from item");
    assert_true(count[DB_COMMITTED] >= MANY / 4);
    assert_true(found >= count[DB_COMMITTED]);
    assert_true(found <= count[DB_COMMITTED] + count[DB_UNKNOWN]);
    assert_true(count[DB_REFUSED] > 0); /* the ones that were not sent */
    free(txs);
}

static void a_commit_whose_standby_wait_was_cancelled_is_unknown(void **state)
{
    struct tx tx = {.look = NULL}, next = {.look = NULL};

    (void)state;
    fresh_table();
    ask("alter system set synchronous_standby_names = 'nobody'");
    ask("select pg_reload_conf()::int");
    usleep(200 * 1000); /* backends take the setting when they are asked next */
    tx_query(&tx, &insert_item, item_args(1, "a"));
    next.transaction.read_only = true;
    tx_query(&next, &one, NULL);
    tx_submit(&tx);
    tx_submit(&next);
    wait_for_backend("SyncRep");
    ask_of_backend("pg_cancel_backend");
    run_until(nothing_pending);
    ask("set synchronous_commit = local; alter system reset synchronous_standby_names");
    ask("select pg_reload_conf()::int");
    assert_int_equal(tx.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(tx.transaction.err.code, ERR_LOST_COMMIT);
    assert_committed(&next);
    assert_int_equal(ask("select count(*) from item"), 1);
}

/* --- opening and closing --- */

static void closing_ends_what_is_pending(void **state)
{
    struct tx sleeper = {.look = NULL}, unsent = {.look = NULL};

    (void)state;
    tx_query(&sleeper, &nap, int4_args(60));
    tx_submit(&sleeper);
    wait_for_backend("PgSleep");
    tx_query(&unsent, &one, NULL);
    tx_submit(&unsent);
    inside_submit = true;
    db_close(db, on_closed, &cluster);
    assert_int_equal(sleeper.done + unsent.done, 0); /* nothing ends inside these calls */
    inside_submit = false;
    run_until(is_closed);
    db = NULL;
    assert_int_equal(sleeper.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(unsent.transaction.outcome, DB_REFUSED);
    assert_int_equal(lost_count, 0);
}

static void on_done_close(struct db_transaction *transaction)
{
    (void)transaction;
    db_close(db, on_closed, &cluster);
}

static void closing_from_the_end_of_a_transaction_is_fine(void **state)
{
    struct tx closer = {.look = NULL}, behind = {.look = NULL};

    (void)state;
    tx_query(&closer, &one, NULL);
    closer.transaction.queries = closer.queries;
    closer.transaction.done = on_done_close;
    db_submit(db, &closer.transaction);
    tx_query(&behind, &one, NULL);
    tx_submit(&behind);
    run_until(is_closed);
    db = NULL;
    assert_int_equal(behind.done, 1);
}

static void closing_while_connecting_waits_for_nothing(void **state)
{
    struct tx tx = {.look = NULL};

    (void)state;
    open_to(cluster_dsn(&cluster), true);
    tx_query(&tx, &one, NULL);
    tx_submit(&tx);
    close_db();
    assert_int_equal(tx.transaction.outcome, DB_REFUSED);
    assert_int_equal(ready_count + lost_count, 0);
}

static void what_is_submitted_while_connecting_waits_for_it(void **state)
{
    struct tx tx = {.look = NULL};

    (void)state;
    open_to(cluster_dsn(&cluster), false);
    assert_int_equal(db_server_version(db), 0);
    tx_query(&tx, &one, NULL);
    tx_run(&tx);
    assert_committed(&tx);
    assert_true(db_server_version(db) >= 150000);
}

static void a_refused_connection_is_explained(void **state)
{
    char standby[220];
    const struct {
        const char *dsn, *message;
    } cases[] = {
        {"host=/nonexistent dbname=x", "no PostgreSQL answers at this address"},
        {"host=127.0.0.1 port=1 dbname=x", "no PostgreSQL answers at this address"},
        {"host=no-such-host.invalid dbname=x", "the host name of PostgreSQL is not known"},
        {"host=%s user=postgres dbname=nowhere", "there is no such database on this server"},
        {"host=%s user=stranger dbname=postgres", "PostgreSQL does not know this user"},
        {"host=%s user=locked dbname=postgres", "PostgreSQL does not let us in"},
        {"host=%s user=crowded dbname=postgres", "PostgreSQL has no free connection"},
        {standby, "this server is a standby, it takes no writes"},
        {"host=localhost secret", "the connection string cannot be read"},
        {"postgresql://u:secret@[h/x", "the connection string cannot be read"},
    };

    (void)state;
    (void)snprintf(standby, sizeof(standby), "%s options='-c default_transaction_read_only=on'", cluster_dsn(&cluster));
    ask("set client_min_messages = warning; drop role if exists locked, crowded;"
        "create role locked nologin; create role crowded login connection limit 0");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char dsn[300];
        struct tx tx = {.look = NULL};

        ready_count = lost_count = closed_count = 0;
        (void)snprintf(dsn, sizeof(dsn), strstr(cases[i].dsn, "%s") ? "host=%s %s" : "%s%s",
                       strstr(cases[i].dsn, "%s") ? cluster.directory : cases[i].dsn,
                       strstr(cases[i].dsn, "%s") ? strchr(cases[i].dsn, ' ') : "");
        open_to(dsn, false);
        tx_query(&tx, &one, NULL);
        tx_submit(&tx);
        run_until(is_lost);
        assert_string_equal(lost_err.message, cases[i].message);
        assert_true(lost_err.hint[0] != '\0');
        assert_null(strstr(lost_err.detail, "secret"));
        assert_int_equal(tx.transaction.outcome, DB_REFUSED);
        assert_int_equal(tx.transaction.err.code, ERR_STORE);
        close_db();
    }
}

static void a_setup_that_is_refused_is_a_refused_connection(void **state)
{
    static const char *const setup[] = {"select 1", "set no_such_setting = 1", NULL};
    const struct db_options options = {.dsn = cluster_dsn(&cluster), .setup = setup, .on_state = on_state, .context = &cluster};

    (void)state;
    db = db_open(loop, &options);
    run_until(is_lost);
    assert_non_null(strstr(lost_err.detail, "no_such_setting"));
}

static bool lost_thrice(void)
{
    return lost_count >= 3;
}

static void attempts_go_on_until_the_server_is_there(void **state)
{
    (void)state;
    cluster_kill(&cluster);
    open_to(cluster_dsn(&cluster), true);
    run_until(lost_thrice);
    assert_int_equal(ready_count, 0);
    cluster_resume(&cluster);
    run_until(is_ready);
}

/* --- the blocking session --- */

static int row_calls;

static void on_three(void *context, int columns, const char *const *values)
{
    assert_ptr_equal(context, &row_calls);
    row_calls++;
    if (columns == 2) {
        assert_string_equal(values[0], "7");
        assert_null(values[1]);
    }
}

static void a_session_runs_several_statements_and_reports_the_first_error(void **state)
{
    struct db_session *session;
    struct err err;

    (void)state;
    assert_int_equal(db_session_open("host=/nonexistent", "t", &session, &err), ERR_STORE);
    assert_int_equal(db_session_open(cluster_dsn(&cluster), "t", &session, &err), ERR_OK);
    assert_true(db_session_server_version(session) >= 150000);
    row_calls = 0;
    assert_int_equal(db_session_run(session, "select 7, null; select generate_series(1, 3)", on_three, &row_calls, &err), ERR_OK);
    assert_int_equal(row_calls, 4);
    assert_int_equal(db_session_run(session, "select 1; select 1/0; select 2", NULL, NULL, &err), ERR_STORE);
    assert_string_equal(err.detail, "division by zero");
    assert_int_equal(db_session_run(session, "select 1", NULL, NULL, NULL), ERR_OK);
    assert_int_equal(db_session_run(session, "select pg_terminate_backend(pg_backend_pid())", NULL, NULL, &err), ERR_STORE);
    assert_int_equal(db_session_run(session, "select 1", NULL, NULL, &err), ERR_STORE);
    db_session_close(session);
    db_session_close(NULL);
}

#define CONNECTED(name) cmocka_unit_test_setup_teardown(name, setup_db, teardown)
#define ALONE(name) cmocka_unit_test_setup_teardown(name, setup_loop, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONNECTED(values_of_every_type_come_back_as_they_went),
        CONNECTED(nulls_of_every_type_come_back_as_nulls),
        CONNECTED(arrays_of_every_type_come_back_as_they_went),
        CONNECTED(arrays_may_be_empty_or_large),
        CONNECTED(large_values_go_there_and_back),
        CONNECTED(an_error_in_the_middle_takes_everything_with_it),
        CONNECTED(a_commit_that_is_refused_is_no_commit),
        CONNECTED(a_fence_is_told_from_other_errors),
        CONNECTED(a_statement_that_cannot_be_prepared_says_why_and_is_tried_again),
        CONNECTED(an_error_does_not_unprepare_what_later_transactions_use),
        CONNECTED(thousands_in_flight_all_end_in_order),
        CONNECTED(a_transaction_may_be_submitted_again_from_its_end),
        CONNECTED(a_notification_arrives_without_being_asked_for),
        CONNECTED(a_lost_connection_leaves_sent_writes_unknown_and_comes_back),
        CONNECTED(an_idle_connection_that_is_ended_says_why),
        CONNECTED(what_is_submitted_while_away_is_refused_at_once),
        CONNECTED(after_a_crash_every_commit_that_was_told_is_there),
        CONNECTED(a_commit_whose_standby_wait_was_cancelled_is_unknown),
        CONNECTED(closing_ends_what_is_pending),
        CONNECTED(closing_from_the_end_of_a_transaction_is_fine),
        ALONE(closing_while_connecting_waits_for_nothing),
        ALONE(what_is_submitted_while_connecting_waits_for_it),
        ALONE(a_refused_connection_is_explained),
        ALONE(a_setup_that_is_refused_is_a_refused_connection),
        ALONE(attempts_go_on_until_the_server_is_there),
        ALONE(a_session_runs_several_statements_and_reports_the_first_error),
    };
    int failed;

    if (!cluster_possible()) {
        (void)fprintf(stderr, "no PostgreSQL server programs on this machine: skipped\n");
        return 77;
    }
    cluster_start(&cluster, NULL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    cluster_free(&cluster);
    return failed;
}
