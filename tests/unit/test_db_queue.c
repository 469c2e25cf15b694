/* Each transaction of a connection ends exactly once, with as certain an outcome as possible. */
#include "io/postgres/queue.h"
#include "tests/lib/test.h"

static const struct db_statement statement = {"say", "select 1"};
static struct db_queue queue;
static struct db_query query = {.statement = &statement};
static int ends;

static void on_done(struct db_transaction *transaction)
{
    (void)transaction;
    ends++;
}

static int setup(void **state)
{
    (void)state;
    queue = (struct db_queue){0};
    db_queue_init(&queue);
    err_set(&queue.lost_err, ERR_STORE, "gone");
    ends = 0;
    return 0;
}

static struct db_transaction submitted(void (*done)(struct db_transaction *transaction), bool read_only)
{
    return (struct db_transaction){.queries = &query, .count = 1, .read_only = read_only, .done = done};
}

static void sent(struct db_transaction *transaction)
{
    db_queue_submit(&queue, transaction);
    assert_ptr_equal(list_pop(&queue.waiting), &transaction->link);
}

TEST(what_an_earlier_use_left_behind_is_gone_when_it_is_submitted)
{
    struct db_transaction t = submitted(on_done, false);

    sent(&t);
    t.sqlstate[0] = '2';
    db_queue_unconfirmed(&queue, &t);
    sent(&t);
    assert_int_equal(t.outcome, DB_REFUSED);
    assert_int_equal(t.err.code, ERR_OK);
    assert_string_equal(t.sqlstate, "");
    db_queue_end(&queue, &t, DB_COMMITTED);
    assert_int_equal(ends, 2);
    assert_int_equal(queue.pending, 0);
}

TEST(a_lost_answer_leaves_a_write_unknown_and_a_read_refused)
{
    struct db_transaction write = submitted(on_done, false), read = submitted(on_done, true);

    sent(&write);
    sent(&read);
    db_queue_lose(&queue, &write, &queue.lost_err);
    db_queue_lose(&queue, &read, &queue.lost_err);
    assert_int_equal(write.outcome, DB_UNKNOWN);
    assert_int_equal(write.err.code, ERR_LOST_COMMIT);
    assert_string_equal(write.err.detail, "gone");
    assert_int_equal(read.outcome, DB_REFUSED);
    assert_int_equal(read.err.code, ERR_STORE);
    assert_int_equal(ends, 2);
}

static void on_done_again(struct db_transaction *transaction)
{
    ends++;
    db_queue_submit(&queue, transaction);
}

TEST(what_waits_is_refused_and_what_comes_back_at_once_waits_for_the_next_time)
{
    struct db_transaction again = submitted(on_done_again, false), once = submitted(on_done, false);

    db_queue_submit(&queue, &again);
    db_queue_submit(&queue, &once);
    db_queue_refuse_waiting(&queue);
    assert_int_equal(ends, 2);
    assert_int_equal(once.outcome, DB_REFUSED);
    assert_int_equal(once.err.code, ERR_STORE);
    assert_int_equal(queue.pending, 1);
    assert_ptr_equal(list_first(&queue.waiting), &again.link);
}

TEST(attempts_to_connect_come_less_and_less_often_and_spread_over_time)
{
    int64_t least = INT64_MAX, most = 0;

    for (uint32_t random = 0; random < 5000; random++) {
        int64_t first_ms = db_retry_delay_ms(0, random), late_ms = db_retry_delay_ms(1000000, random);

        assert_in_range(first_ms, 100, 150);
        assert_in_range(late_ms, 667, 1000);
        least = late_ms < least ? late_ms : least;
        most = late_ms > most ? late_ms : most;
    }
    assert_true(most - least > 300);
}

TEST_PROGRAM_EACH(setup, NULL)
