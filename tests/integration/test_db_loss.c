/* A connection when the server, the session or its owner ends: nothing is reported twice, and the connection comes
 * back. */
#include "tests/integration/db_rig.h"

/* --- losses --- */

TEST_CONNECTED(a_lost_connection_leaves_sent_writes_unknown_and_comes_back)
{
    struct tx sleeper = {.look = NULL}, write = {.look = NULL}, read = {.look = NULL}, refused = {.look = NULL},
              after = {.look = NULL};
    int pid = db_backend_pid(db);

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
    /* The set-up ran again. */
    assert_int_equal(ask("select count(*) from pg_stat_activity where application_name = 'renamed'"), 1);
}

TEST_CONNECTED(an_idle_connection_that_is_ended_says_why)
{
    ready_count = 0;
    ask_of_backend("pg_terminate_backend");
    run_until(is_lost);
    assert_non_null(strstr(lost_err.detail, "administrator command"));
    run_until(is_ready);
}

TEST_CONNECTED(a_transaction_is_refused_at_once_while_the_database_is_away)
{
    struct tx tx = {.look = NULL}, waits = {.look = NULL};

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

TEST_CONNECTED(every_commit_that_was_told_is_there_after_a_crash)
{
    struct tx *txs = calloc(MANY, sizeof(*txs));
    int count[3] = {0};
    int64_t found;

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
    assert_true(count[DB_REFUSED] > 0); /* those that were not sent */
    free(txs);
}

TEST_CONNECTED(a_commit_whose_standby_wait_was_cancelled_is_unknown)
{
    struct tx tx, next;
    int64_t inserted = 0;
    bool waits = false;

    fresh_table();
    ask("alter system set synchronous_standby_names = 'nobody'");
    ask("select pg_reload_conf()::int");
    while (!waits) { /* until the checkpointer has the setting, too, all transactions commit at once */
        assert_true(inserted < 5000);
        tx = next = (struct tx){.look = NULL};
        tx_query(&tx, &insert_item, item_args(++inserted, "a"));
        next.transaction.read_only = true;
        tx_query(&next, &one, NULL);
        tx_submit(&tx);
        tx_submit(&next);
        waits = wait_for_backend_unless_done("SyncRep", &tx);
        if (!waits) {
            run_until(nothing_pending);
            assert_committed(&tx);
        }
    }
    ask_of_backend("pg_cancel_backend");
    run_until(nothing_pending);
    ask("alter system reset synchronous_standby_names");
    ask("select pg_reload_conf()::int");
    assert_int_equal(tx.transaction.outcome, DB_UNKNOWN);
    assert_int_equal(tx.transaction.err.code, ERR_LOST_COMMIT);
    assert_committed(&next);
    assert_int_equal(ask("select count(*) from item"), inserted);
}

/* --- opening and closing --- */

TEST_CONNECTED(closing_ends_what_is_pending)
{
    struct tx sleeper = {.look = NULL}, unsent = {.look = NULL};

    tx_query(&sleeper, &nap, int4_args(60));
    tx_submit(&sleeper);
    wait_for_backend("PgSleep");
    tx_query(&unsent, &one, NULL);
    tx_submit(&unsent);
    inside_submit = true;
    db_close(db, on_closed, &cluster);
    assert_int_equal(sleeper.done + unsent.done, 0); /* no transaction ends inside these calls */
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

TEST_CONNECTED(closing_from_the_end_of_a_transaction_is_fine)
{
    struct tx closer = {.look = NULL}, behind = {.look = NULL};

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

TEST_ALONE(closing_while_connecting_waits_for_nothing)
{
    struct tx tx = {.look = NULL};

    open_to(cluster_dsn(&cluster), true);
    tx_query(&tx, &one, NULL);
    tx_submit(&tx);
    close_db();
    assert_int_equal(tx.transaction.outcome, DB_REFUSED);
    assert_int_equal(ready_count + lost_count, 0);
}

TEST_ALONE(a_transaction_that_is_submitted_early_waits_for_the_connection)
{
    struct tx tx = {.look = NULL};

    open_to(cluster_dsn(&cluster), false);
    assert_int_equal(db_server_version(db), 0);
    tx_query(&tx, &one, NULL);
    tx_run(&tx);
    assert_committed(&tx);
    assert_true(db_server_version(db) >= 150000);
}

TEST_ALONE(a_refused_connection_is_explained)
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

TEST_ALONE(a_setup_that_is_refused_is_a_refused_connection)
{
    static const char *const setup[] = {"select 1", "set no_such_setting = 1", NULL};
    const struct db_options options = {
        .dsn = cluster_dsn(&cluster), .setup = setup, .on_state = on_state, .context = &cluster};

    db = db_open(loop, &options);
    run_until(is_lost);
    assert_non_null(strstr(lost_err.detail, "no_such_setting"));
}

static bool lost_thrice(void)
{
    return lost_count >= 3;
}

TEST_ALONE(attempts_go_on_until_the_server_is_there)
{
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

TEST_ALONE(a_session_runs_several_statements_and_reports_the_first_error)
{
    struct db_session *session;
    struct err err;

    assert_int_equal(db_session_open("host=/nonexistent", "t", &session, &err), ERR_STORE);
    assert_int_equal(db_session_open(cluster_dsn(&cluster), "t", &session, &err), ERR_OK);
    assert_true(db_session_server_version(session) >= 150000);
    row_calls = 0;
    assert_int_equal(
        db_session_run(session, "select 7, null; select generate_series(1, 3)", on_three, &row_calls, &err), ERR_OK);
    assert_int_equal(row_calls, 4);
    assert_int_equal(db_session_run(session, "select 1; select 1/0; select 2", NULL, NULL, &err), ERR_STORE);
    assert_string_equal(err.detail, "division by zero");
    assert_int_equal(db_session_run(session, "select 1", NULL, NULL, NULL), ERR_OK);
    assert_int_equal(db_session_run(session, "select pg_terminate_backend(pg_backend_pid())", NULL, NULL, &err),
                     ERR_STORE);
    assert_int_equal(db_session_run(session, "select 1", NULL, NULL, &err), ERR_STORE);
    db_session_close(session);
    db_session_close(NULL);
}

TEST_PROGRAM_ON_A_CLUSTER
