/* A connection to a real PostgreSQL: values go there and back, and a transaction ends in one of three ways. */
#include "tests/integration/db_rig.h"

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

TEST_CONNECTED(values_of_every_type_come_back_as_they_went)
{
    static const struct db_statement statement = {
        "values", "select $1, $2, $3, $4, $5, $6, $7, $8, $9, ($8 at time zone 'UTC')::text || '+00', $10, $11, $12"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_values};

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

TEST_CONNECTED(nulls_of_every_type_come_back_as_nulls)
{
    static const struct db_statement statement = {"nulls", "select $1, $2, $3, $4, $5, $6, $7, $8"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_nulls};

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

TEST_CONNECTED(arrays_of_every_type_come_back_as_they_went)
{
    static const struct db_statement statement = {"arrays", "select * from unnest($1, $2, $3, $4, $5, $6, $7, $8)"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_arrays};

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

TEST_CONNECTED(arrays_may_be_empty_or_large)
{
    static const struct db_statement statement = {"sizes", "select cardinality($1::int8[]), cardinality($2::text[]), "
                                                           "(select sum(length(t))::int8 from unnest($2::text[]) t)"};
    struct db_args *args = db_args_new(&arena);
    struct tx tx = {.look = look_at_sums};
    char text[300];

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

TEST_CONNECTED(large_values_go_there_and_back)
{
    static const struct db_statement echo = {"echo", "select $1::bytea"};
    struct tx txs[12] = {0};
    char *bytes;

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

TEST_CONNECTED(an_error_in_the_middle_takes_everything_with_it)
{
    struct tx bad = {.look = NULL}, good = {.look = NULL};

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

TEST_CONNECTED(a_commit_that_is_refused_is_no_commit)
{
    static const struct db_statement insert_part = {"insert_part", "insert into part(item) values ($1)"};
    struct tx tx = {.look = NULL}, next = {.look = NULL};
    struct db_args *args = db_args_new(&arena);

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

TEST_CONNECTED(a_fence_is_told_from_other_errors)
{
    static const struct db_statement fence = {"fence", "select fence($1)"};
    struct tx tx = {.look = NULL};

    ask("create or replace function fence(e int4) returns int4 language plpgsql as "
        "$$ begin raise exception 'epoch % is over', e using errcode = 'SG001'; end $$");
    tx_query(&tx, &fence, int4_args(7));
    tx_run(&tx);
    assert_refused(&tx, "SG001", 0);
    assert_int_equal(tx.transaction.err.code, ERR_FENCED);
    assert_string_equal(tx.transaction.err.detail, "epoch 7 is over");
    assert_false(db_is_data_error(&tx.transaction));
}

TEST_CONNECTED(a_statement_that_cannot_be_prepared_says_why_and_is_tried_again)
{
    static const struct db_statement late = {"late", "insert into late_table values ($1)"};
    struct tx txs[3] = {0}, after = {.look = NULL};

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

TEST_CONNECTED(an_error_does_not_unprepare_what_later_transactions_use)
{
    static const struct db_statement first_use = {"first_use", "select $1::int4 + 1"};
    struct tx bad = {.look = NULL}, good = {.look = NULL}, later = {.look = NULL};

    tx_query(&bad, &divide, int4_args(0));
    tx_query(&bad, &first_use, int4_args(1)); /* skipped because of the error before it */
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

TEST_CONNECTED(thousands_in_flight_all_end_in_order)
{
    struct tx *txs = calloc(MANY, sizeof(*txs));
    int committed = 0;

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

TEST_CONNECTED(a_transaction_may_be_submitted_again_from_its_end)
{
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

static bool is_ready_again(void)
{
    return ready_count == 2;
}

static struct tx behind; /* submitted with the one that is answered wrongly */

/* The two are in flight together. Neither handler sees an answer, and the connection comes again. */
TEST_CONNECTED(an_answer_without_its_row_ends_the_connection_and_not_the_engine)
{
    static const struct db_statement none = {"none", "select 1 where false", .has_row = true};
    static const struct db_statement some = {"some", "select 1", .has_row = true};
    struct tx tx = {0};

    memset(&behind, 0, sizeof(behind));
    tx_query(&tx, &none, NULL);
    tx_query(&behind, &some, NULL);
    tx_submit(&tx);
    tx_submit(&behind);
    run_until(nothing_pending);
    assert_int_equal(tx.done, 1);
    assert_int_equal(tx.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(tx.rows_calls, 0);
    assert_int_equal(behind.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(behind.rows_calls, 0);
    assert_int_equal(lost_count, 1);
    assert_non_null(strstr(lost_err.detail, "statement none was answered without a row"));
    run_until(is_ready_again);
    memset(&behind, 0, sizeof(behind));
    tx_query(&behind, &some, NULL);
    tx_run(&behind);
    assert_committed(&behind);
    assert_int_equal(behind.rows_calls, 1);
}

TEST_CONNECTED(a_notification_arrives_without_being_asked_for)
{
    ask("notify news, 'hello'");
    run_until(is_notified);
    assert_string_equal(notified, "news hello");
}

TEST_PROGRAM_ON_A_CLUSTER
