/* See db_rig.h. */
#include "tests/integration/db_rig.h"

enum { PATIENCE_MS = 60 * 1000 };

struct cluster cluster;
struct loop *loop;
struct db *db;
struct arena arena;

/* These count what has come so far. */
int ready_count, lost_count, closed_count, done_count, notify_count;
bool inside_submit;
struct err lost_err;
char notified[64];

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

void run_until(bool (*condition)(void))
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

bool is_ready(void)
{
    return ready_count > 0;
}

bool is_lost(void)
{
    return lost_count > 0;
}

bool is_closed(void)
{
    return closed_count > 0;
}

bool is_notified(void)
{
    return notify_count > 0;
}

bool nothing_pending(void)
{
    return db_pending(db) == 0;
}

/* --- a connection and its transactions --- */

void on_state(struct db *which, enum db_state state, const struct err *err, void *context)
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

void on_closed(void *context)
{
    assert_ptr_equal(context, &cluster);
    closed_count++;
}

void open_to(const char *dsn, bool reconnect)
{
    static const char *const setup[] = {"set application_name = 'renamed'", "listen news", NULL};
    const struct db_options options = {.dsn = dsn,
                                       .application_name = "test",
                                       .setup = setup,
                                       .reconnect = reconnect,
                                       .on_state = on_state,
                                       .on_notify = on_notify,
                                       .context = &cluster};

    db = db_open(loop, &options);
    assert_int_equal(ready_count + lost_count, 0);
}

void close_db(void)
{
    db_close(db, on_closed, &cluster);
    assert_int_equal(closed_count, 0);
    run_until(is_closed);
    db = NULL;
}

int setup_loop(void **state)
{
    (void)state;
    ready_count = lost_count = closed_count = done_count = notify_count = 0;
    loop = loop_new();
    arena_init(&arena, 64 * 1024);
    return 0;
}

int setup_db(void **state)
{
    setup_loop(state);
    open_to(cluster_dsn(&cluster), true);
    run_until(is_ready);
    return 0;
}

int teardown(void **state)
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

void tx_query(struct tx *tx, const struct db_statement *statement, struct db_args *args)
{
    assert_true(tx->transaction.count < QUERIES_MAX);
    tx->queries[tx->transaction.count++] =
        (struct db_query){.statement = statement, .args = args, .on_rows = on_rows, .context = tx};
}

void tx_submit(struct tx *tx)
{
    tx->transaction.queries = tx->queries;
    tx->transaction.done = on_done;
    tx->transaction.context = tx;
    inside_submit = true;
    db_submit(db, &tx->transaction);
    inside_submit = false;
}

void tx_run(struct tx *tx)
{
    tx_submit(tx);
    run_until(nothing_pending);
    assert_int_equal(tx->done, 1);
}

void assert_committed(const struct tx *tx)
{
    if (tx->transaction.outcome != DB_COMMITTED) {
        fail_msg("not committed: %s: %s", tx->transaction.err.message, tx->transaction.err.detail);
    }
}

void assert_refused(const struct tx *tx, const char *sqlstate, size_t failed_query)
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

int64_t ask(const char *sql)
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

int64_t ask_of_backend(const char *function)
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

bool wait_for_backend_unless_done(const char *wait_event, const struct tx *tx)
{
    int64_t until_ms = loop_boot_ms_now() + PATIENCE_MS;
    char sql[120];

    (void)snprintf(sql, sizeof(sql), "select count(*) from pg_stat_activity where wait_event = '%s'", wait_event);
    while (ask(sql) == 0) {
        if (tx && tx->done) {
            return false;
        }
        assert_true(loop_boot_ms_now() < until_ms);
        run_a_moment();
    }
    return true;
}

void wait_for_backend(const char *wait_event)
{
    (void)wait_for_backend_unless_done(wait_event, NULL);
}

/* --- statements --- */

const struct db_statement insert_item = {"insert_item", "insert into item(id, note) values ($1, $2)"};
const struct db_statement divide = {"divide", "select 1 / $1::int4"};
const struct db_statement nap = {"nap", "select pg_sleep($1::int4)::text"};
const struct db_statement one = {"one", "select 1"};

struct db_args *item_args(int64_t id, const char *note)
{
    struct db_args *args = db_args_new(&arena);

    db_arg_int8(args, id);
    db_arg_text(args, slice_of(note));
    return args;
}

struct db_args *int4_args(int32_t value)
{
    struct db_args *args = db_args_new(&arena);

    db_arg_int4(args, value);
    return args;
}

void fresh_table(void)
{
    ask("set client_min_messages = warning; drop table if exists part, item; create table item(id int8 primary key, "
        "note text);"
        "create table part(item int8 references item deferrable initially deferred)");
}

/* --- the cluster --- */

bool rig_begin(void)
{
    if (!cluster_possible()) {
        (void)fprintf(stderr, "no PostgreSQL server programs on this machine: skipped\n");
        return false;
    }
    cluster_start(&cluster, NULL);
    return true;
}

int rig_end(int failed)
{
    cluster_free(&cluster);
    return failed;
}
