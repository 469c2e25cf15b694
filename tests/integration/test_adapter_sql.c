/*
 * The adapter `sql` against a real PostgreSQL, through a proxy that cuts at a COMMIT. Before the COMMIT nothing has
 * happened; after it the barrier knows the call; and a call that is undone before it arrives never takes effect.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "base/json.h"
#include "io/postgres/db.h"
#include "io/postgres/pool.h"
#include "tests/lib/cluster.h"
#include "tests/lib/commit_cutter.h"
#include "tests/lib/test.h"

enum { CALLS_MAX = 64, LINKS_MAX = 4, PATIENCE_MS = 60 * 1000 };

static struct cluster cluster;
static struct commit_cutter cutter;
static struct adapter_host host;
static struct arena arena;
static struct db_session *beside;

static struct running {
    struct call *call;
    int settled;
} running[CALLS_MAX];
static int running_count;
static int64_t counter;

/* --- calls --- */

static bool all_settled(void)
{
    for (int i = 0; i < running_count; i++) {
        if (!running[i].settled) {
            return false;
        }
    }
    return true;
}

static void on_after(struct timer *timer)
{
    (void)timer;
    if (all_settled()) {
        loop_stop(host.loop);
    }
}

static struct timer after;

/* The loop runs on for a moment, so that a second settling would be noticed. */
static void on_settled(struct call *call)
{
    for (int i = 0; i < running_count; i++) {
        if (running[i].call == call) {
            running[i].settled++;
            assert_int_equal(running[i].settled, 1);
        }
    }
    timer_start(host.loop, &after, 5, on_after);
}

static const char *new_key(void)
{
    counter++;
    return arena_text(&arena, arena_printf(&arena, "0190f5e4-7f2c-8a51-9b7d-%012lld", (long long)counter));
}

/* Makes a call. `settings` has ' for ", and DB for the connection string. */
static struct call *call_new(const char *settings, const char *key, const char *undoes)
{
    const struct adapter *found = adapter_find(SLICE("sql"));
    struct call *call = arena_alloc(&arena, found->call_size);
    struct buffer text;

    buffer_init(&text, 100000);
    for (const char *at = settings; *at; at++) {
        if (at[0] == 'D' && at[1] == 'B') {
            buffer_printf(&text, "host=%s port=5432 user=postgres dbname=postgres", cutter.directory);
            at++;
        } else {
            buffer_put_char(&text, *at == '`' ? '"' : *at);
        }
    }
    call->adapter = found;
    call->host = &host;
    call->arena = &arena;
    call->settings = arena_slice(&arena, buffer_slice(&text));
    call->args = SLICE("{}");
    call->key = slice_of(key ? key : new_key());
    call->undoes = slice_of(undoes);
    call->send_key = true;
    call->timeout_ms = 20000;
    call->attempt = 1;
    call->settled = on_settled;
    buffer_fini(&text);
    assert_int_equal(json_check(call->settings, &json_limits_default, NULL), ERR_OK);
    return call;
}

static void call_begin(struct call *call)
{
    assert_true(running_count < CALLS_MAX);
    running[running_count++] = (struct running){.call = call};
    call->adapter->begin(call);
    assert_int_equal(running[running_count - 1].settled, 0);
}

static void on_patience(struct timer *timer)
{
    (void)timer;
    fail_msg("a call was not settled within %d ms", PATIENCE_MS);
}

static void calls_finish(void)
{
    struct timer patience = {0};

    timer_start(host.loop, &patience, PATIENCE_MS, on_patience);
    while (!all_settled()) {
        loop_run(host.loop);
    }
    timer_stop(host.loop, &patience);
    running_count = 0;
}

static struct call *call_run(struct call *call)
{
    call_begin(call);
    calls_finish();
    return call;
}

static struct timer nap;

static void on_pause(struct timer *timer)
{
    (void)timer;
    loop_stop(host.loop);
}

static void run_ms(int64_t ms)
{
    timer_start(host.loop, &nap, ms, on_pause);
    while (timer_running(&nap)) {
        loop_run(host.loop);
    }
}

static void expect(const struct call *call, enum outcome_kind kind, const char *error, const char *response)
{
    const struct outcome *outcome = &call->outcome;

    if (outcome->kind != kind || (error && !slice_is(outcome->error, error)) ||
        (response && !slice_is(call->response, response))) {
        fail_msg("%.*s: %s, error %.*s (%.*s), response %.*s", SLICE_ARG(call->settings), outcome_name(outcome->kind),
                 SLICE_ARG(outcome->error), SLICE_ARG(outcome->detail), SLICE_ARG(call->response));
    }
}

/* --- the database beside --- */

static int64_t found;

static void on_found(void *context, int columns, const char *const *values)
{
    (void)context;
    (void)columns;
    found = values[0] ? strtoll(values[0], NULL, 10) : -1;
}

static int64_t ask(const char *sql)
{
    struct err err = {.code = ERR_OK};

    found = -1;
    if (db_session_run(beside, sql, on_found, NULL, &err) != ERR_OK) {
        fail_msg("%s: %s (%s)", sql, err.message, err.detail);
    }
    return found;
}

/* Waits until the statement counts something, at most a minute. */
static void wait_for(const char *sql)
{
    for (int i = 0; i < 6000 && ask(sql) == 0; i++) {
        run_ms(10);
    }
}

static int64_t balance(void)
{
    return ask("select amount from account where id = 1");
}

#define PAY                                                                                                            \
    "{`database`:`DB`,`statement`:`update account set amount = amount - $1 where id = 1 returning "                    \
    "amount`,`params`:[10]}"
#define PAY_ONCE                                                                                                       \
    "{`database`:`DB`,`statement`:`update account set amount = amount - $1 where id = 1 returning "                    \
    "amount`,`params`:[10],`barrier`:true}"
#define DOZES "select count(*) from pg_stat_activity where application_name = 'sagad sql' and wait_event = 'PgSleep'"
#define UNPAY "{`database`:`DB`,`statement`:`update account set amount = amount + 10 where id = 1`,`barrier`:true}"
#define ABSENT "{\"rows\":[],\"count\":0,\"absent\":true}"

static void barrier_install(void)
{
    char path[512], text[8192];
    FILE *file;
    size_t len;

    (void)snprintf(path, sizeof(path), "%s/barrier.sql", getenv("SCHEMA_DIR") ? getenv("SCHEMA_DIR") : "schema");
    file = fopen(path, "r");
    assert_non_null(file);
    len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    (void)fclose(file);
    ask(text);
    ask(text); /* a second run does no harm */
}

static int setup(void **state)
{
    static const struct db_pool_options options = {
        .links_max = LINKS_MAX, .idle_ms = 300, .application_name = "sagad sql"};

    (void)state;
    arena_init(&arena, 64 * 1024);
    host = (struct adapter_host){.loop = loop_new(), .response_bytes_max = 20000};
    host.databases = db_pool_new(host.loop, &options);
    running_count = 0;
    ask("drop table if exists account; create table account (id int primary key, amount numeric not null check (amount "
        "> -1000000)); "
        "insert into account values (1, 1000)");
    commit_cutter_set(&cutter, CUT_NOTHING);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    db_pool_free(host.databases);
    timer_stop(host.loop, &after);
    loop_free(host.loop);
    arena_fini(&arena);
    return 0;
}

/* --- what a statement gives --- */

TEST_BETWEEN(rows_come_as_json_of_their_types, setup, teardown)
{
    struct call *call =
        call_new("{`database`:`DB`,`statement`:`select 9007199254740993::int8 as big, 1.50::numeric as exact, "
                 "'NaN'::numeric as nan, 0.1::float8 as f, "
                 "true as t, null::int as n, $1::jsonb as j, 'a\\`b'::text as s, '{1,2}'::int[] as list, "
                 "'2026-01-02 03:04:05+00'::timestamptz as at, '\\\\x00ff'::bytea as raw, $2::text as p, $key::uuid = "
                 "'00000000-0000-8000-8000-000000000001' as k`,"
                 "`params`:[{`a`:[1,2.50]},`$1; drop table account`]}",
                 "00000000-0000-8000-8000-000000000001", NULL);

    expect(call_run(call), OUTCOME_COMPLETED, NULL,
           "{\"rows\":[{\"big\":9007199254740993,\"exact\":1.50,\"nan\":\"NaN\",\"f\":0.1,\"t\":true,\"n\":null,\"j\":{"
           "\"a\": [1, 2.50]},\"s\":\"a\\\"b\","
           "\"list\":\"{1,2}\",\"at\":\"2026-01-02 03:04:05+00\",\"raw\":\"\\\\x00ff\",\"p\":\"$1; drop table "
           "account\",\"k\":true}],\"count\":1}");
    assert_true(slice_equal(call->outcome.result, call->response));
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_COMPLETED, NULL, "{\"rows\":[{\"amount\":990}],\"count\":1}");
    expect(call_run(call_new("{`database`:`DB`,`statement`:`delete from account where id = 7; -- ends`}", NULL, NULL)),
           OUTCOME_COMPLETED, NULL, "{\"rows\":[],\"count\":0}");
    assert_int_equal(balance(), 990);
}

TEST_BETWEEN(an_error_before_the_commit_has_no_effect, setup, teardown)
{
    static const struct {
        const char *statement, *params;
        enum outcome_kind kind;
        const char *error;
    } table[] = {
        {"insert into account select id, 5 from account", "[]", OUTCOME_FAILED, "sql-23505"},
        {"update account set amount = -1000001 where id = 1", "[]", OUTCOME_FAILED, "sql-23514"},
        {"update account set amount = $1 where id = 1", "[`secret`]", OUTCOME_FAILED, "sql-22P02"},
        {"updte account set amount = 1", "[]", OUTCOME_FAILED, "sql-42601"},
        {"update nothing set amount = 1", "[]", OUTCOME_FAILED, "sql-42P01"},
        {"select pay_and_raise('P0001')", "[]", OUTCOME_FAILED, "sql-P0001"},
        {"select pay_and_raise('40001')", "[]", OUTCOME_RETRY, "sql-40001"},
        {"select pay_and_raise('40P01')", "[]", OUTCOME_RETRY, "sql-40P01"},
        {"select pay_and_raise('53200')", "[]", OUTCOME_RETRY, "sql-53200"},
        {"select pay_and_raise('57P01')", "[]", OUTCOME_RETRY, "sql-57P01"},
        {"select pay_and_raise('55P03')", "[]", OUTCOME_RETRY, "sql-55P03"},
        {"select pay_and_raise('0A000')", "[]", OUTCOME_FAILED, "sql-0A000"},
        {"insert into later select 1 from (select pay()) p", "[]", OUTCOME_FAILED,
         "sql-23503"}, /* refused at the COMMIT */
        {"with p as (update account set amount = 0 returning amount) select amount, amount from p", "[]",
         OUTCOME_FAILED, "columns"},
        {"with p as (update account set amount = 0 returning amount) select repeat('x', 30000) from p", "[]",
         OUTCOME_FAILED, "too-large"},
        {"with p as (update account set amount = 0 returning amount) select g from p, generate_series(1, 300000) g",
         "[]", OUTCOME_FAILED, "too-large"},
        {"copy account to stdout", "[]", OUTCOME_FAILED, "sql-0A000"},
        {"call pay_and_commit()", "[]", OUTCOME_FAILED, "sql-2D000"},
        {"update account set amount = 1; update account set amount = 2", "[]", OUTCOME_FAILED, "bad-settings"},
        {"update account set amount = $2", "[1]", OUTCOME_FAILED, "bad-settings"},
    };

    ask("create or replace function pay() returns int language sql as 'update account set amount = amount - 10 where "
        "id = 1 returning 1';"
        "create or replace function pay_and_raise(state text) returns int language plpgsql as $$ begin perform pay(); "
        "raise exception using errcode = state, message = 'no'; end $$;"
        "create or replace procedure pay_and_commit() language plpgsql as $$ begin perform pay(); commit; end $$;"
        "drop table if exists later; create table later (account int references account deferrable initially deferred);"
        "alter table later drop constraint later_account_fkey; drop table if exists parent; create table parent (id "
        "int primary key);"
        "alter table later add foreign key (account) references parent deferrable initially deferred");
    for (int barrier = 0; barrier < 2; barrier++) {
        for (size_t i = 0; i < COUNT_OF(table); i++) {
            struct call *call = call_new(
                arena_text(&arena, arena_printf(&arena, "{`database`:`DB`,`statement`:`%s`,`params`:%s,`barrier`:%s}",
                                                table[i].statement, table[i].params, barrier ? "true" : "false")),
                NULL, NULL);

            expect(call_run(call), table[i].kind, table[i].error, NULL);
            assert_null(call->response.ptr);
            /* The message does not quote refused values. */
            assert_null(memmem(call->outcome.detail.ptr, call->outcome.detail.len, "secret", 6));
            assert_int_equal(call->outcome.unsent, strcmp(table[i].error, "bad-settings") == 0);
        }
    }
    assert_int_equal(balance(), 1000);
    assert_int_equal(ask("select count(*) from sagad_barrier.operation where key::text like "
                         "'0190f5e4-7f2c-8a51-9b7d-%' and recorded_at > now() - interval '1 hour' "
                         "and verdict = 'done'"),
                     0);
    ask("drop table later");
}

TEST_BETWEEN(a_read_can_change_nothing, setup, teardown)
{
    struct call *call = call_new(PAY_ONCE, NULL, NULL);

    call->send_key = false;
    expect(call_run(call), OUTCOME_FAILED, "sql-25006", NULL);
    call =
        call_new("{`database`:`DB`,`statement`:`select amount from account where $key::uuid is not null`}", NULL, NULL);
    call->send_key = false;
    expect(call_run(call), OUTCOME_COMPLETED, NULL, "{\"rows\":[{\"amount\":1000}],\"count\":1}");
    commit_cutter_set(&cutter, CUT_AFTER_COMMIT);
    call = call_new("{`database`:`DB`,`statement`:`select 1`}", NULL, NULL);
    call->send_key = false;
    expect(call_run(call), OUTCOME_RETRY, "lost", NULL);
}

TEST_BETWEEN(a_statement_without_a_connection_was_not_sent, setup, teardown)
{
    struct call *call = call_run(call_new("{`database`:`host=/nowhere user=a`,`statement`:`select 1`}", NULL, NULL));

    expect(call, OUTCOME_RETRY, "no-connection", NULL);
    assert_true(call->outcome.unsent);
    call = call_run(call_new("{`database`:`host=/nowhere`,`statement`:`select 1`}", NULL, NULL)); /* as whom? */
    expect(call, OUTCOME_FAILED, "no-connection", NULL);
    call = call_run(call_new("{`database`:`host=x what=password`,`statement`:`select 1`}", NULL, NULL));
    expect(call, OUTCOME_FAILED, "no-connection", NULL);
    assert_true(call->outcome.unsent);
}

static bool no_more(const struct call *call)
{
    (void)call;
    return false;
}

TEST_BETWEEN(a_statement_that_may_not_leave_any_more_when_it_is_connected_is_unsent, setup, teardown)
{
    struct call *call = call_new(PAY, NULL, NULL);

    call->may_leave = no_more;
    expect(call_run(call), OUTCOME_RETRY, "withheld", NULL);
    assert_true(call->outcome.unsent);
    assert_int_equal(balance(), 1000);
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_COMPLETED, NULL, NULL);
}

/* --- time --- */

TEST_BETWEEN(a_call_that_takes_too_long_is_rolled_back, setup, teardown)
{
    struct call *call = call_new(
        "{`database`:`DB`,`statement`:`with p as (update account set amount = 0) select pg_sleep(60)`}", NULL, NULL);

    call->timeout_ms = 3000;
    call_run(call);
    assert_int_equal(call->outcome.kind, OUTCOME_RETRY);
    assert_false(call->outcome.unsent);
    for (int i = 0; i < LINKS_MAX + 1; i++) { /* one more than there are connections */
        call = call_new("{`database`:`DB`,`statement`:`select pg_sleep(60)`}", NULL, NULL);
        call->timeout_ms = i < LINKS_MAX ? 1000 : 300;
        call_begin(call);
    }
    run_ms(100);
    assert_true(db_pool_links(host.databases) <= LINKS_MAX);
    calls_finish();
    expect(call, OUTCOME_RETRY, "timeout", NULL);
    assert_true(call->outcome.unsent);
    assert_int_equal(balance(), 1000);
}

TEST_BETWEEN(a_cancelled_call_is_rolled_back, setup, teardown)
{
    struct call *call = call_new(
        "{`database`:`DB`,`statement`:`with p as (update account set amount = 0) select pg_sleep(3)`}", NULL, NULL);

    call_begin(call);
    run_ms(200);
    call->adapter->cancel(call);
    call->adapter->cancel(call);
    calls_finish();
    expect(call, OUTCOME_RETRY, "cancelled", NULL);
    call = call_new(PAY, NULL, NULL);
    call_begin(call);
    call->adapter->cancel(call);
    calls_finish();
    expect(call, OUTCOME_RETRY, "cancelled", NULL);
    assert_true(call->outcome.unsent);
    assert_int_equal(balance(), 1000);
}

TEST_BETWEEN(a_killed_session_has_no_effect_and_the_next_call_gets_another, setup, teardown)
{
    struct call *call = call_new(
        "{`database`:`DB`,`statement`:`with p as (update account set amount = 0) select pg_sleep(60)`}", NULL, NULL);

    call_begin(call);
    wait_for(DOZES);
    ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'sagad sql'");
    calls_finish();
    expect(call, OUTCOME_RETRY, "sql-57P01", NULL);
    assert_int_equal(balance(), 1000);
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_COMPLETED, NULL, NULL);
    /* The connection is idle. */
    ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'sagad sql'");
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_COMPLETED, NULL, NULL);
    assert_int_equal(balance(), 980);
}

/* --- the pool --- */

TEST_BETWEEN(a_session_forgets_what_a_statement_set_and_ends_when_nobody_wants_it, setup, teardown)
{
    expect(call_run(call_new("{`database`:`DB`,`statement`:`select set_config('search_path', 'nowhere', false) as s`}",
                             NULL, NULL)),
           OUTCOME_COMPLETED, NULL, NULL);
    run_ms(100);
    assert_int_equal(db_pool_links(host.databases), 1);
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_COMPLETED, NULL, NULL);
    assert_int_equal(db_pool_links(host.databases), 1);
    run_ms(600);
    assert_int_equal(db_pool_links(host.databases), 0);
}

/* --- the lost COMMIT --- */

TEST_BETWEEN(a_lost_commit_is_unknown_without_a_barrier, setup, teardown)
{
    int strikes = commit_cutter_strikes(&cutter);

    commit_cutter_set(&cutter, CUT_BEFORE_COMMIT);
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_UNKNOWN, "commit-lost", NULL);
    assert_int_equal(balance(), 1000);
    commit_cutter_set(&cutter, CUT_AFTER_COMMIT);
    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_UNKNOWN, "commit-lost", NULL);
    assert_int_equal(balance(), 990);
    assert_int_equal(commit_cutter_strikes(&cutter), strikes + 2);
}

TEST_BETWEEN(a_lost_commit_is_settled_by_the_barrier, setup, teardown)
{
    const char *key = new_key();

    commit_cutter_set(&cutter, CUT_BEFORE_COMMIT);
    expect(call_run(call_new(PAY_ONCE, key, NULL)), OUTCOME_RETRY, "commit-failed", NULL);
    assert_int_equal(balance(), 1000);
    commit_cutter_set(&cutter, CUT_AFTER_COMMIT);
    expect(call_run(call_new(PAY_ONCE, key, NULL)), OUTCOME_COMPLETED, NULL,
           "{\"rows\":[{\"amount\":990}],\"count\":1}");
    assert_int_equal(balance(), 990);
    expect(call_run(call_new(PAY_ONCE, key, NULL)), OUTCOME_COMPLETED, NULL,
           "{\"rows\":[{\"amount\":990}],\"count\":1}"); /* the first answer */
    commit_cutter_set(&cutter, CUT_HOLD_COMMIT);         /* the COMMIT has arrived by the time we look */
    expect(call_run(call_new(PAY_ONCE, NULL, NULL)), OUTCOME_COMPLETED, NULL,
           "{\"rows\":[{\"amount\":980}],\"count\":1}");
    assert_int_equal(balance(), 980);
}

TEST_BETWEEN(a_session_that_is_killed_at_its_commit_is_settled_by_the_barrier, setup, teardown)
{
    struct call *call = call_new(PAY_ONCE, NULL, NULL), *plain = call_new(PAY, NULL, NULL);

    /* A deferred trigger sleeps inside the COMMIT. */
    ask("create or replace function doze() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return "
        "null; end $$;"
        "create constraint trigger doze after update on account deferrable initially deferred for each row execute "
        "function doze()");
    call_begin(call);
    wait_for(DOZES);
    ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'sagad sql'");
    calls_finish();
    expect(call, OUTCOME_RETRY, "commit-failed", NULL);
    call_begin(plain);
    wait_for(DOZES);
    ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'sagad sql'");
    calls_finish();
    expect(plain, OUTCOME_UNKNOWN, "commit-lost", NULL);
    assert_int_equal(balance(), 1000);
}

/* Until the checkpointer has the setting, too, all calls commit at once. */
static struct call *pay_until_one_waits_for_its_standby(int64_t *paid)
{
    static const char waits[] =
        "select count(*) from pg_stat_activity where application_name = 'sagad sql' and wait_event = 'SyncRep'";

    for (int tries = 0; tries < 5000; tries++) {
        struct call *call = call_new(PAY, NULL, NULL);

        call_begin(call);
        for (int i = 0; i < 6000 && !all_settled() && ask(waits) == 0; i++) {
            run_ms(10);
        }
        if (!all_settled()) {
            return call;
        }
        calls_finish();
        expect(call, OUTCOME_COMPLETED, NULL, NULL);
        ++*paid;
    }
    fail_msg("the setting is not taken");
    return NULL;
}

TEST_BETWEEN(a_commit_that_its_standby_did_not_confirm_is_unknown, setup, teardown)
{
    struct call *call;
    int64_t paid = 1;

    expect(call_run(call_new(PAY, NULL, NULL)), OUTCOME_COMPLETED, NULL, NULL);
    ask("alter system set synchronous_standby_names = 'nobody'");
    ask("select pg_reload_conf()::int");
    call = pay_until_one_waits_for_its_standby(&paid);
    ask("select count(pg_cancel_backend(pid)) from pg_stat_activity where application_name = 'sagad sql'");
    calls_finish();
    ask("alter system reset synchronous_standby_names");
    ask("select pg_reload_conf()::int");
    run_ms(250);
    expect(call, OUTCOME_UNKNOWN, "commit-lost", NULL);
    assert_int_equal(balance(), 1000 - 10 * (paid + 1)); /* the call has happened */
}

/* --- the barrier --- */

TEST_BETWEEN(many_calls_with_one_key_have_one_effect_and_one_answer, setup, teardown)
{
    for (int round = 0; round < 20; round++) {
        const char *key = new_key();
        struct call *calls[10];
        int64_t before = balance();

        for (size_t i = 0; i < COUNT_OF(calls); i++) {
            calls[i] = call_new(PAY_ONCE, key, NULL);
            call_begin(calls[i]);
        }
        calls_finish();
        for (size_t i = 0; i < COUNT_OF(calls); i++) {
            expect(calls[i], OUTCOME_COMPLETED, NULL, NULL);
            assert_true(slice_equal(calls[i]->response, calls[0]->response));
        }
        assert_int_equal(balance(), before - 10);
    }
}

TEST_BETWEEN(a_call_that_was_done_is_undone_once, setup, teardown)
{
    const char *key = new_key(), *undo = new_key();

    expect(call_run(call_new(PAY_ONCE, key, NULL)), OUTCOME_COMPLETED, NULL, NULL);
    expect(call_run(call_new(UNPAY, undo, key)), OUTCOME_COMPLETED, NULL, "{\"rows\":[],\"count\":1}");
    expect(call_run(call_new(UNPAY, undo, key)), OUTCOME_COMPLETED, NULL, "{\"rows\":[],\"count\":1}");
    expect(call_run(call_new(UNPAY, NULL, key)), OUTCOME_COMPLETED, NULL, ABSENT); /* another undo of the same call */
    expect(call_run(call_new(PAY_ONCE, key, NULL)), OUTCOME_COMPLETED, NULL,
           "{\"rows\":[{\"amount\":990}],\"count\":1}");
    assert_int_equal(balance(), 1000);
}

TEST_BETWEEN(a_call_that_is_undone_before_it_came_never_comes, setup, teardown)
{
    const char *key = new_key(), *undo = new_key();

    expect(call_run(call_new(UNPAY, undo, key)), OUTCOME_COMPLETED, NULL, ABSENT);
    expect(call_run(call_new(UNPAY, undo, key)), OUTCOME_COMPLETED, NULL, ABSENT);
    expect(call_run(call_new(PAY_ONCE, key, NULL)), OUTCOME_FAILED, "voided", NULL);
    assert_int_equal(balance(), 1000);
}

TEST_BETWEEN(a_call_that_changed_nothing_is_not_undone, setup, teardown)
{
    const char *key = new_key();

    expect(call_run(call_new("{`database`:`DB`,`statement`:`update account set amount = amount - 10 where id = 1 and "
                             "amount > 5000`,`barrier`:true}",
                             key, NULL)),
           OUTCOME_COMPLETED, NULL, "{\"rows\":[],\"count\":0}");
    expect(call_run(call_new(UNPAY, NULL, key)), OUTCOME_COMPLETED, NULL, ABSENT);
    assert_int_equal(balance(), 1000);
}

TEST_BETWEEN(an_undo_that_races_its_operation_leaves_nothing, setup, teardown)
{
    int voided = 0, undone = 0;

    for (int round = 0; round < 60; round++) {
        const char *key = new_key();
        struct call *pay = call_new(PAY_ONCE, key, NULL), *unpay = call_new(UNPAY, NULL, key);

        call_begin(round % 2 ? pay : unpay);
        call_begin(round % 2 ? unpay : pay);
        calls_finish();
        expect(unpay, OUTCOME_COMPLETED, NULL, NULL);
        if (pay->outcome.kind == OUTCOME_COMPLETED) {
            undone++;
        } else {
            expect(pay, OUTCOME_FAILED, "voided", NULL);
            expect(unpay, OUTCOME_COMPLETED, NULL, ABSENT);
            voided++;
        }
        assert_int_equal(balance(), 1000);
    }
    assert_int_equal(voided + undone, 60);
}

TEST_BETWEEN(only_tools_that_share_a_barrier_are_told_what_they_undo, setup, teardown)
{
    const struct adapter *adapter = adapter_find(SLICE("sql"));
    struct slice with = SLICE("{\"database\":\"${ secret(\\\"a\\\") }\",\"statement\":\"x\",\"barrier\":true}");
    struct slice other = SLICE("{\"database\":\"b\",\"statement\":\"x\",\"barrier\":true}");
    struct slice without = SLICE("{\"database\":\"${ secret(\\\"a\\\") }\",\"statement\":\"x\",\"barrier\":false}");

    assert_true(adapter->shares_keys(with, with));
    assert_false(adapter->shares_keys(with, other));
    assert_false(adapter->shares_keys(without, with));
    assert_false(adapter->shares_keys(with, without));
}

TEST_BETWEEN(a_database_without_a_barrier_says_what_to_install, setup, teardown)
{
    struct call *call;

    ask("alter schema sagad_barrier rename to elsewhere");
    call = call_run(call_new(PAY_ONCE, NULL, NULL));
    ask("alter schema elsewhere rename to sagad_barrier");
    expect(call, OUTCOME_FAILED, "no-barrier", NULL);
    assert_int_equal(balance(), 1000);
}

int main(void)
{
    char socket_path[128];
    struct err err = {.code = ERR_OK};
    int failed;

    if (!cluster_possible()) {
        return 77;
    }
    cluster_start(&cluster, NULL);
    (void)snprintf(socket_path, sizeof(socket_path), "%s/.s.PGSQL.5432", cluster.directory);
    commit_cutter_start(&cutter, socket_path);
    if (db_session_open(cluster_dsn(&cluster), "beside", &beside, &err) != ERR_OK) {
        (void)fprintf(stderr, "%s (%s)\n", err.message, err.detail);
        return 1;
    }
    barrier_install();
    failed = tests_run(NULL, NULL);
    db_session_close(beside);
    commit_cutter_stop(&cutter);
    cluster_free(&cluster);
    return failed;
}
