/* How transactions, commits and sessions of the simulated PostgreSQL may end, and what is left then. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim/test_pg_trial.h"

/* --- waits that end badly --- */

TEST(one_session_of_a_deadlock_dies_after_a_second)
{
    ADD(&a, take, 1);
    ADD(&a, take, 2);
    ADD(&b, take, 2);
    ADD(&b, take, 1);
    go(&a);
    go(&b);
    run_out(&a);
    run_out(&b);
    assert_int_equal((a.outcome == DB_REFUSED) + (b.outcome == DB_REFUSED), 1);
    assert_string_equal(a.outcome == DB_REFUSED ? a.sqlstate : b.sqlstate, "40P01");
    assert_in_range(the_world.now_us, 1000000, 1005000);
}

TEST(two_who_share_a_row_and_both_want_it_are_a_deadlock)
{
    ADD(&a, hold, 1, PG_KEY_SHARE);
    ADD(&b, hold, 1, PG_KEY_SHARE);
    ADD(&a, hold, 1, PG_UPDATE);
    ADD(&b, hold, 1, PG_UPDATE);
    go(&a);
    go(&b);
    run_out(&a);
    run_out(&b);
    assert_int_equal((a.outcome == DB_REFUSED) + (b.outcome == DB_REFUSED), 1);
}

TEST(who_already_shares_a_row_does_not_stand_in_line_for_more)
{
    struct client gate;

    client_connect(&gate, "gate");
    ADD(&gate, advisory, 9);
    go_part(&gate);
    ADD(&a, hold, 1, PG_NO_KEY_UPDATE);
    go_part(&a);
    run_to(&gate, 1);
    run_to(&a, 1);
    ADD(&b, hold, 1, PG_KEY_SHARE);
    ADD(&b, advisory, 9);
    ADD(&b, hold, 1, PG_NO_KEY_UPDATE);
    go(&b);
    run_to(&b, 1);
    ADD(&c, hold, 1, PG_UPDATE); /* waits for both, first in line */
    go(&c);
    run_for(100000);
    pg_disconnect(gate.session, false); /* b waits for a now, not for c, which waits for b */
    run_for(2000000);
    assert_false(b.over || c.over);
    pg_disconnect(a.session, false);
    assert_committed(&b);
    assert_committed(&c);
}

TEST(a_session_that_waits_too_long_gives_up)
{
    ADD(&a, hold, 1, PG_UPDATE);
    go_part(&a);
    run_to(&a, 1);
    ADD(&b, take, 1);
    go(&b);
    assert_refused(&b, "55P03");
    assert_in_range(the_world.now_us, 5000000, 5001000);
    run_for(6000000);
    assert_true(a.is_gone); /* the session idled in its transaction for too long */
    ADD(&b, take, 1);
    go(&b);
    assert_committed(&b);
}

TEST(a_statement_that_takes_too_long_is_cancelled)
{
    const char *const setups[] = {"set statement_timeout = '2s'", NULL};

    ADD(&a, hold, 1, PG_UPDATE);
    go_part(&a);
    run_to(&a, 1);
    pg_disconnect(b.session, false);
    b.session = pg_connect(pg, "b", setups, &client_calls, &b);
    ADD(&b, take, 1);
    go(&b);
    assert_refused(&b, "57014");
    assert_in_range(the_world.now_us, 2000000, 2001000);
}

/* --- advisory locks --- */

TEST(session_locks_stack_and_end_with_the_session)
{
    ADD(&a, try_lock, 1);
    ADD(&a, try_lock, 1);
    ADD(&a, unlock, 1);
    go(&a);
    assert_committed(&a);
    ADD(&b, try_lock, 1);
    go(&b);
    assert_committed(&b);
    assert_int_equal(b.last, 0);
    ADD(&b, advisory, 1);
    go(&b);
    run_for(100000);
    assert_int_equal(b.over, 0);
    pg_disconnect(a.session, false);
    assert_committed(&b);
    ADD(&c, try_lock, 1);
    go(&c);
    assert_committed(&c);
    assert_int_equal(c.last, 1);
}

/* --- the ends of a commit --- */

TEST(a_transaction_that_only_read_is_not_asked)
{
    ADD(&a, look, 1);
    go(&a);
    assert_committed(&a);
    assert_int_equal(fates_asked, 0);
    ADD(&a, hold, 1, PG_KEY_SHARE);
    go(&a);
    assert_committed(&a);
    assert_int_equal(fates_asked, 1);
}

static int without_room;

static void on_no_room(void)
{
    without_room++;
}

TEST(a_full_disk_takes_no_new_rows_and_lets_old_ones_be_changed)
{
    without_room = 0;
    ADD(&a, upsert, 1, 1);
    go(&a);
    assert_committed(&a);
    pg_set_full(pg, on_no_room);
    ADD(&a, append, 1, 1, 1);
    go(&a);
    run_out(&a);
    assert_refused(&a, "53100");
    assert_int_equal(without_room, 1);
    ADD(&a, upsert, 1, 1);
    go(&a);
    assert_committed(&a);
    assert_int_equal(a.last, 1);
    pg_set_full(pg, NULL);
    ADD(&a, append, 1, 1, 1);
    go(&a);
    assert_committed(&a);
    assert_int_equal(log_rows(1), 1);
}

static void begin_fate(enum commit_fate fate)
{
    next_fate = fate;
    ADD(&a, append, 1, 1, 1);
    go(&a);
    run_out(&a);
}

TEST(a_commit_that_fails_did_nothing)
{
    begin_fate(COMMIT_FAILS);
    assert_int_equal(a.outcome, DB_REFUSED);
    assert_true(strcmp(a.sqlstate, "40001") == 0 || strcmp(a.sqlstate, "40P01") == 0);
    assert_int_equal(a.failed_query, 1);
    assert_int_equal(log_rows(1), 0);
}

TEST(a_connection_that_is_cut_before_the_commit_did_nothing)
{
    begin_fate(COMMIT_LOST_BEFORE);
    assert_true(a.is_gone);
    assert_int_equal(log_rows(1), 0);
    assert_string_equal(turns, "");
}

TEST(a_connection_that_is_cut_after_the_commit_did_it)
{
    begin_fate(COMMIT_LOST_AFTER);
    assert_true(a.is_gone);
    assert_int_equal(log_rows(1), 1);
    assert_string_equal(turns, "1/1@0 | ");
}

TEST(a_late_commit_comes_after_its_client_has_gone)
{
    begin_fate(COMMIT_LATE);
    assert_true(a.is_gone);
    assert_string_equal(turns, "");
    run_for(3100000);
    assert_string_equal(turns, "1/1@0 | ");
    assert_int_equal(pg_session_count(pg), 2);
}

TEST(a_late_commit_does_not_come_when_its_backend_was_ended)
{
    next_fate = COMMIT_LATE;
    ADD(&b, append, 1, 1, 1);
    go(&b);
    run_out(&b);
    do { /* the store asks in the same way until there is none */
        ADD(&a, end_b);
        go(&a);
        assert_committed(&a);
    } while (a.last > 0);
    run_for(3100000);
    assert_in_range(log_rows(1), 0, 1); /* the commit may have been faster */
    assert_int_equal(strcmp(turns, "") == 0 ? 0 : 1, log_rows(1));
}

TEST(a_commit_that_warned_is_gone_with_a_fail_over_unless_a_later_commit_confirmed_it)
{
    begin_fate(COMMIT_WARNS);
    assert_int_equal(a.outcome, DB_COMMITTED);
    assert_true(a.warned);
    assert_string_equal(turns, "");
    assert_int_equal(log_rows(1), 1);
    pg_fail_over(pg, 1000, 0);
    run_for(2000);
    assert_int_equal(log_rows(1), 0);
    client_connect(&a, "a");
    begin_fate(COMMIT_WARNS);
    ADD(&a, hold, 2, PG_KEY_SHARE);
    go(&a);
    assert_committed(&a);
    assert_string_equal(turns, "1/1@0 | ");
    pg_fail_over(pg, 1000, 0);
    run_for(2000);
    assert_int_equal(log_rows(1), 1);
}

TEST(a_fail_over_to_a_standby_that_lags_loses_the_last_commits)
{
    ADD(&a, take, 1);
    go(&a);
    assert_committed(&a);
    run_for(2000000);
    ADD(&a, append, 1, 1, 1);
    ADD(&a, take, 1);
    ADD(&a, take, 2);
    go(&a);
    assert_committed(&a);
    ADD(&a, append, 1, 1, 2);
    go(&a);
    assert_committed(&a);
    pg_fail_over(pg, 1000, 1000000);
    assert_true(a.is_gone && b.is_gone && c.is_gone);
    run_for(2000);
    assert_int_equal(log_rows(1), 0);
    client_connect(&a, "a");
    ADD(&a, look, 1);
    go(&a);
    assert_committed(&a);
    assert_int_equal(a.last, 1);
    int64_t since_us;
    assert_int_equal(pg_epoch(pg, 1, &since_us), 1);
    assert_in_range(since_us, 1, 1000);
}

TEST(a_restart_ends_sessions_and_keeps_what_was_committed)
{
    ADD(&a, append, 1, 1, 1);
    ADD(&a, try_lock, 1);
    go(&a);
    assert_committed(&a);
    ADD(&b, append, 1, 1, 2);
    ADD(&b, nothing);
    go(&b);
    run_to(&b, 1);
    pg_restart(pg, 300000);
    assert_true(a.is_gone && b.is_gone && c.is_gone);
    assert_false(pg_is_up(pg));
    assert_null(pg_connect(pg, "a", NULL, &client_calls, &a));
    run_for(300001);
    assert_int_equal(log_rows(1), 1);
    client_connect(&c, "c");
    ADD(&c, try_lock, 1);
    go(&c);
    assert_committed(&c);
    assert_int_equal(c.last, 1);
}

/* --- sessions --- */

TEST(a_backend_that_is_ended_takes_nothing_with_it)
{
    ADD(&b, take, 1);
    ADD(&b, nothing);
    go_part(&b);
    run_to(&b, 2);
    ADD(&a, end_b);
    ADD(&a, take, 1);
    go(&a);
    assert_committed(&a);
    assert_true(b.is_gone);
    assert_int_equal(a.last, 1);
}

TEST(a_session_that_leaves_unnoticed_is_executed_to_the_end)
{
    ADD(&a, append, 1, 1, 1);
    go(&a);
    ADD(&a, append, 1, 1, 2);
    go(&a);
    pg_disconnect(a.session, true);
    ADD(&b, append, 1, 2, 1);
    go(&b);
    pg_disconnect(b.session, false);
    run_for(10000);
    assert_int_equal(a.over, 0);
    assert_int_equal(pg_session_count(pg), 1);
    assert_int_equal(log_rows(1), 2);
}

TEST(transactions_of_a_session_run_in_order)
{
    ADD(&a, append, 1, 1, 1);
    go(&a);
    ADD(&a, append, 1, 1, 1);
    go(&a);
    run_for(10000);
    assert_int_equal(a.over, 2);
    assert_string_equal(a.sqlstate, "23505");
}

TEST(notifications_come_with_the_commit_and_the_same_twice_is_one)
{
    struct db_args *args = db_args_new(&the_world.arena);

    db_arg_text(args, SLICE("7"));
    a.queries[a.count++] = (struct db_query){.statement = statement_for(say_tell), .args = args};
    ADD(&a, nothing);
    go(&a);
    run_to(&a, 2);
    assert_string_equal(b.heard, "");
    assert_committed(&a);
    assert_string_equal(b.heard, "news=7 ");
    assert_string_equal(a.heard, "news=7 ");
}

TEST(versions_that_nobody_sees_are_used_again)
{
    size_t bytes = 0;

    for (int i = 0; i < 2000; i++) {
        ADD(&a, renew, 1);
        ADD(&a, put_inbox, 1, 1);
        ADD(&a, drop_inbox, 1, 1);
        go(&a);
        assert_committed(&a);
        run_for(100000);
        bytes = i == 1000 ? pg->arena.used_bytes : bytes;
    }
    assert_int_equal(pg->arena.used_bytes, bytes);
    run_for(PG_LOSE_US_MAX);
    ADD(&a, renew, 1);
    go(&a);
    assert_committed(&a);
    assert_int_equal(pg->tables[PG_INBOX].count, 0);
}

TEST_PROGRAM_EACH(trial_setup, trial_teardown)
