/*
 * The promises of the simulated PostgreSQL that the safety of the engine rests on: what is visible, and what waits for
 * what. Each was observed at a real server, and differential.c compares the statements of the store with one.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim/test_pg_trial.h"

/* --- what is seen --- */

TEST(a_statement_sees_what_was_committed_when_it_began)
{
    ADD(&a, take, 3);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    ADD(&b, look, 3);
    go(&b);
    run_to(&b, 1);
    assert_int_equal(b.last, 0); /* not committed yet */
    assert_committed(&a);
    assert_committed(&b);
    ADD(&b, look, 3);
    go(&b);
    assert_committed(&b);
    assert_int_equal(b.last, 1);
}

TEST(a_transaction_sees_what_its_earlier_statements_wrote_and_a_statement_not_its_own)
{
    ADD(&a, put_inbox, 1, 1);
    ADD(&a, drop_inbox, 1, 1);
    ADD(&a, put_inbox, 1, 1);
    go(&a);
    run_to(&a, 1);
    assert_int_equal(a.last, 1);
    assert_int_equal(a.second, 0);
    run_to(&a, 2);
    assert_int_equal(a.last, 1);
    assert_committed(&a);
    assert_int_equal(a.last, 1);
}

TEST(a_row_that_is_rolled_back_was_never_there)
{
    ADD(&a, append, 1, 1, 1);
    ADD(&a, renew, 1);
    ADD(&a, append, 1, 1, 1);
    go(&a);
    assert_refused(&a, "23505");
    assert_int_equal(a.failed_query, 2);
    assert_int_equal(log_rows(1), 0);
    assert_string_equal(turns, "");
}

/* --- the fence --- */

TEST(an_append_holds_a_takeover_up)
{
    ADD(&a, fence, 5, 0);
    ADD(&a, append, 5, 1, 1);
    go(&a);
    run_to(&a, 1);
    ADD(&b, take, 5);
    go(&b);
    assert_committed(&a);
    assert_int_equal(b.answered, 0);
    assert_committed(&b);
    assert_string_equal(turns, "1/1@0 | | ");
}

TEST(an_append_that_waits_for_a_takeover_sees_it)
{
    ADD(&b, take, 5);
    ADD(&b, nothing);
    ADD(&b, nothing);
    go(&b);
    run_to(&b, 1);
    ADD(&a, fence, 5, 0);
    ADD(&a, append, 5, 1, 1);
    go(&a);
    assert_committed(&b);
    assert_refused(&a, "SG001");
    assert_int_equal(a.failed_query, 0);
    assert_int_equal(log_rows(5), 0);
}

TEST(a_renewal_and_an_append_do_not_wait_for_each_other)
{
    ADD(&b, renew, 5);
    ADD(&b, advisory, 1);
    ADD(&c, advisory, 1);
    ADD(&c, nothing);
    go(&c);
    run_to(&c, 1);
    go(&b);
    run_to(&b, 1); /* the row is locked and changed */
    ADD(&a, fence, 5, 0);
    ADD(&a, append, 5, 1, 1);
    go(&a);
    run_to(&a, 2);
    assert_committed(&a);
    assert_committed(&b);
    assert_committed(&c);
}

TEST(an_epoch_that_is_checked_without_a_lock_lets_a_stale_append_through)
{
    ADD(&a, glance, 5, 0);
    ADD(&a, append, 5, 1, 1);
    ADD(&a, nothing);
    ADD(&a, nothing);
    ADD(&a, nothing);
    ADD(&a, nothing);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    pg_set_slow(pg, 1);
    ADD(&b, take, 5);
    go(&b);
    assert_committed(&b);
    pg_set_slow(pg, 200);
    assert_int_equal(a.over, 0);
    assert_committed(&a);
    assert_string_equal(turns, "| 1/1@1 | ");
}

TEST(a_row_that_was_waited_for_is_judged_as_it_is_then)
{
    ADD(&a, take, 2);
    ADD(&a, nothing);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    ADD(&b, take, 2);
    go(&b);
    assert_committed(&a);
    assert_committed(&b);
    assert_int_equal(b.last, 2);
}

TEST(a_statement_in_plpgsql_sees_what_was_committed_while_the_one_before_waited)
{
    ADD(&a, advisory, 1);
    ADD(&a, take, 2);
    go(&a);
    run_to(&a, 1);
    ADD(&b, advisory, 1);
    ADD(&b, look, 2);
    go(&b);
    assert_committed(&a);
    assert_committed(&b);
    assert_int_equal(b.last, 1);
    assert_int_equal(b.second, 1);
}

TEST(strong_locks_wait_in_the_order_of_their_coming_and_weak_ones_pass)
{
    ADD(&a, hold, 4, PG_KEY_SHARE);
    for (int i = 0; i < 6; i++) {
        ADD(&a, nothing);
    }
    go(&a);
    run_to(&a, 1);
    ADD(&b, take, 4);
    go(&b);
    run_for(1);
    ADD(&c, hold, 4, PG_KEY_SHARE);
    go(&c);
    run_to(&c, 1); /* this session passed the one in line */
    assert_int_equal(b.answered, 0);
    assert_int_equal(a.over, 0);
    assert_committed(&a);
    assert_committed(&b);
    assert_committed(&c);
}

/* --- unique keys --- */

TEST(an_insert_waits_for_whoever_inserted_the_same_and_fails_when_that_commits)
{
    ADD(&a, append, 1, 1, 1);
    ADD(&a, nothing);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    ADD(&b, append, 1, 1, 1);
    go(&b);
    assert_committed(&a);
    assert_int_equal(b.over, 0);
    assert_refused(&b, "23505");
    assert_int_equal(log_rows(1), 1);
}

TEST(an_insert_waits_for_whoever_inserted_the_same_and_passes_when_that_does_not)
{
    ADD(&a, append, 1, 1, 1);
    ADD(&a, nothing);
    ADD(&a, fence, 1, 9);
    go(&a);
    run_to(&a, 1);
    ADD(&b, append, 1, 1, 1);
    go(&b);
    assert_refused(&a, "SG001");
    assert_committed(&b);
    assert_int_equal(log_rows(1), 1);
}

TEST(on_conflict_waits_too_and_sees_what_its_snapshot_does_not)
{
    ADD(&a, put_inbox, 1, 1);
    ADD(&a, nothing);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    ADD(&b, put_inbox, 1, 1);
    go(&b);
    assert_committed(&a);
    assert_committed(&b);
    assert_int_equal(b.last, 0);
    assert_int_equal(b.second, 0); /* committed after the statement began */
}

TEST(a_deleted_key_is_free_once_the_delete_is_committed)
{
    ADD(&a, put_inbox, 1, 1);
    go(&a);
    assert_committed(&a);
    ADD(&a, drop_inbox, 1, 1);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    ADD(&b, put_inbox, 1, 1);
    go(&b);
    ADD(&c, drop_inbox, 1, 1);
    go(&c);
    assert_committed(&a);
    assert_committed(&c);
    assert_int_equal(c.last, 0); /* gone, whoever puts the row there again */
    assert_committed(&b);
    assert_int_equal(b.last, 1);
}

TEST(on_conflict_meets_what_was_put_there_again_while_it_waited)
{
    ADD(&a, put_inbox, 1, 1);
    go(&a);
    assert_committed(&a);
    ADD(&a, drop_inbox, 1, 1);
    ADD(&a, put_inbox, 1, 1);
    ADD(&a, nothing);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 2);
    ADD(&b, upsert, 1, 1);
    go(&b);
    assert_committed(&a);
    assert_int_equal(b.over, 0);
    assert_committed(&b);
    assert_int_equal(b.last, 1);
}

static void add_start(struct client *client, int64_t saga, struct slice digest)
{
    struct db_args *args = db_args_new(&the_world.arena);

    db_arg_int8(args, saga);
    db_arg_bytea(args, digest);
    client->queries[client->count++] = (struct db_query){.statement = statement_for(say_start), .args = args};
}

TEST(a_business_id_is_one_saga)
{
    add_start(&a, 1, SLICE("order-1"));
    ADD(&a, nothing);
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 1);
    add_start(&b, 2, SLICE("order-1"));
    add_start(&b, 3, SLICE_NONE);
    go(&b);
    assert_committed(&a);
    assert_int_equal(b.answered, 0);
    run_to(&b, 1);
    assert_int_equal(b.last, 0);
    assert_committed(&b);
    assert_int_equal(b.last, 1);
}

TEST(a_statement_that_waits_has_written_nothing_and_keeps_its_keys)
{
    ADD(&a, fence, 1, 0);
    for (int i = 0; i < 7; i++) {
        ADD(&a, nothing);
    }
    go(&a);
    run_to(&a, 1);
    ADD(&b, write_and_hold, 1, 1);
    go(&b);
    run_for(201);
    assert_int_equal(b.answered, 0);
    assert_int_equal(a.over, 0);
    ADD(&c, append, 1, 1, 1); /* takes the key of b */
    go(&c);
    run_for(201);
    assert_int_equal(c.over, 0);
    assert_committed(&a);
    assert_committed(&b);
    assert_refused(&c, "23505");
    assert_string_equal(a.heard, "news=held "); /* notified once, though it was called twice */
    assert_int_equal(log_rows(1), 1);
}

TEST(a_key_that_was_kept_is_free_when_its_transaction_fails)
{
    ADD(&a, fence, 1, 0);
    ADD(&a, nothing);
    go_part(&a);
    run_to(&a, 2);
    ADD(&b, write_and_hold, 1, 1);
    go(&b);
    ADD(&c, append, 1, 1, 1);
    run_for(201);
    go(&c);
    assert_refused(&b, "55P03");
    assert_committed(&c);
    assert_int_equal(log_rows(1), 1);
}

TEST_PROGRAM_EACH(trial_setup, trial_teardown)
