/* The guards of an engine, with a database that answers as the test wants: which calls wait, and which are refused. */
#include "tests/sim/limiter_stage.h"

static void begin(void)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .is_automatic = true});
    stage_hold(STORE_GUARD_ASK);
}

static bool log_has(struct saga_id saga, const char *text)
{
    return strstr(stage_log(saga), text) != NULL;
}

/* --- who waits, and for how long --- */

TEST(work_of_the_engine_waits_for_as_long_as_the_guard_says)
{
    static const enum guard_verdict verdicts[] = {GUARD_RATE, GUARD_CONCURRENCY, GUARD_BREAKER, GUARD_PAUSED};

    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        begin();
        struct saga_id id = begin_saga("run_rated");

        assert_int_equal(stage_asked(STORE_GUARD_ASK), 1);
        say(verdicts[i], 5000);
        stage_run(4900);
        assert_int_equal(stage_asked(STORE_GUARD_ASK), 1);
        stage_run(700);
        assert_int_equal(stage_asked(STORE_GUARD_ASK), 2);
        assert_int_equal(stage_calls(NULL), 0);
        say(GUARD_GRANTED, 0);
        assert_int_equal(stage_calls(NULL), 1);
        assert_true(log_has(id, "saga.completed"));
        stage_end();
    }
}

TEST(calls_are_neither_let_through_nor_refused_while_the_database_is_away)
{
    struct reply *asked;

    begin();
    asked = call_tool("r", "rated");
    for (int i = 0; i < 3; i++) {
        stage_fail(STORE_GUARD_ASK, ERR_STORE);
        stage_run(1000);
    }
    assert_false(asked->done);
    assert_int_equal(stage_calls(NULL), 0);
    /* A second call comes meanwhile. It waits behind the first and is not refused. */
    struct reply *second;

    stage_fail(STORE_GUARD_ASK, ERR_STORE);
    second =
        stage_ask(0, engine_call,
                  &(struct engine_request){
                      .in.call = {.run = SLICE("r2"), .tool = SLICE("rated"), .args = SLICE("{}"), .wait_ms = 60000}});
    stage_run(100);
    assert_false(second->done);
    stage_release(STORE_GUARD_ASK);
    stage_run(2000);
    assert_int_equal(asked->code, ERR_OK);
    assert_int_equal(second->code, ERR_OK);
}

TEST(a_waiting_call_asks_later_when_another_is_told_of_a_longer_wait)
{
    struct reply *asked;

    begin();
    begin_saga("run_narrow");
    say(GUARD_CONCURRENCY, 1000);
    asked = call_tool("r", "narrow"); /* a call that may be refused asks at once */
    assert_int_equal(stage_asked(STORE_GUARD_ASK), 2);
    say(GUARD_PAUSED, 5000);
    assert_int_equal(asked->code, ERR_RATE);
    stage_run(4000);
    assert_int_equal(stage_asked(STORE_GUARD_ASK), 2);
    stage_run(2000);
    assert_int_equal(stage_asked(STORE_GUARD_ASK), 3);
}

TEST(a_group_that_is_refused_waits_again_together)
{
    begin();
    for (int i = 0; i < 6; i++) {
        begin_saga("run_rated");
    }
    say(GUARD_RATE, 500);
    while (stage_held(STORE_GUARD_ASK) > 0) { /* these calls asked before the first refusal */
        say(GUARD_RATE, 500);
    }
    stage_run(1000);
    assert_int_equal(stage_held(STORE_GUARD_ASK), 1); /* one tries */
    say(GUARD_GRANTED, 0);
    stage_run(1000);
    assert_int_equal(stage_held(STORE_GUARD_ASK), 2); /* then two */
    say(GUARD_RATE, 500);
    assert_int_equal(stage_held(STORE_GUARD_ASK), 1);
    say(GUARD_RATE, 500);
    stage_run(1000);
    assert_int_equal(stage_held(STORE_GUARD_ASK), 1);
}

TEST(a_new_call_stands_behind_those_that_wait)
{
    begin();
    struct saga_id first = begin_saga("run_narrow");

    say(GUARD_CONCURRENCY, 1000);
    struct saga_id second = begin_saga("run_narrow");

    assert_int_equal(stage_asked(STORE_GUARD_ASK), 1);
    for (int i = 0; i < 2; i++) { /* no call is left, so no one asks */
        (void)stage_change(0, VERB_ABORT, i == 0 ? first : second);
        stage_settle();
    }
    stage_run(5000);
    assert_int_equal(stage_asked(STORE_GUARD_ASK), 1);
}

/* --- who is refused --- */

TEST(a_call_of_an_agent_is_refused_and_told_when_to_come_again)
{
    static const struct {
        enum guard_verdict verdict;
        int64_t after_ms;
        enum err_code code;
        int64_t told_ms;
    } cases[] = {
        {GUARD_RATE, 700, ERR_RATE, 700},
        {GUARD_CONCURRENCY, 0, ERR_RATE, 1000}, /* nobody can say when */
        {GUARD_BREAKER, 2000, ERR_BREAKER, 2000},
        {GUARD_BUDGET, 0, ERR_BUDGET, 0},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply *asked, *again;

        begin();
        asked = call_tool("r", "broken");
        say(cases[i].verdict, cases[i].after_ms);
        assert_true(asked->done);
        assert_int_equal(asked->code, cases[i].code);
        assert_in_range(asked->call.retry_after_ms, cases[i].told_ms > 5 ? cases[i].told_ms - 5 : 0,
                        cases[i].told_ms); /* the answer is told some time later */
        assert_int_equal(stage_calls(NULL), 0);
        if (cases[i].verdict == GUARD_RATE) { /* the next call need not ask */
            again = call_tool("r2", "broken");
            assert_int_equal(again->code, ERR_RATE);
            assert_int_equal(stage_asked(STORE_GUARD_ASK), 1);
        }
        stage_end();
    }
}

TEST(a_call_that_the_engine_tries_again_for_an_agent_is_not_refused)
{
    struct reply *asked;

    begin();
    stage_is_automatic = false;
    asked = call_tool("r", "rated");
    say(GUARD_GRANTED, 0);
    stage_answer_first(OUTCOME_RETRY, "http-503", NULL);
    stage_run(1000);
    say(GUARD_RATE, 500);
    assert_false(asked->done);
    stage_run(1000);
    say(GUARD_GRANTED, 0);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_int_equal(asked->code, ERR_OK);
}

TEST(an_exhausted_budget_fails_work_of_the_engine_too)
{
    begin();
    struct saga_id id = begin_saga("run_rated");

    say(GUARD_BUDGET, 0);
    assert_true(log_has(id, "budget-exhausted"));
    assert_int_equal(stage_calls(NULL), 0);
}

/* --- breakers --- */

TEST(a_half_open_breaker_is_tried_by_a_status_read_where_a_call_may_not_be_repeated)
{
    begin();
    stage_is_automatic = false;
    struct saga_id id = begin_saga("run_asked");

    assert_true(asked_now()->safe_to_repeat);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_open_calls(), 1); /* the read */
    stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
    assert_int_equal(stage_asked(STORE_GUARD_TELL), 1);
    stage_run(2000);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_int_equal(stage_asked(STORE_GUARD_TELL), 2);
    stage_run(1000);
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_open_calls(), 1); /* the call */
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_true(log_has(id, "saga.completed"));
}

TEST(an_agent_whose_status_read_fails_is_refused)
{
    struct reply *asked;

    begin();
    stage_is_automatic = false;
    asked = call_tool("r", "asked");
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
    assert_int_equal(asked->code, ERR_BREAKER);
}

TEST(a_call_that_can_be_neither_repeated_nor_read_is_no_trial_of_a_breaker)
{
    begin();
    (void)stage_start(0, "run_mixed", "{'x':1}");
    stage_settle();
    assert_false(asked_now()->safe_to_repeat);
    asked_now()->is_breaker_probe = true; /* the database says so all the same, and there is nothing to read */
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_calls(NULL), 0);
    stage_run(1500);
    say(GUARD_GRANTED, 0); /* another call has closed the breaker */
    assert_int_equal(stage_calls(NULL), 1);
}

TEST(the_breaker_that_others_see_is_shown)
{
    begin();
    stage_hold(STORE_GUARD_TELL);
    begin_saga("run_broken");
    say(GUARD_BREAKER, 300);
    assert_int_equal(health("broken")->breaker_state, BREAKER_OPEN);
    stage_run(500);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0); /* this call tries the tool, and nothing is known yet */
    assert_int_equal(health("broken")->breaker_state, BREAKER_OPEN);
    begin_saga("run_broken");
    stage_run(1000);
    say(GUARD_GRANTED, 0);
    assert_int_equal(health("broken")->breaker_state, BREAKER_CLOSED);
}

/* --- what is wanted no more before the answer comes --- */

TEST(a_saga_that_is_aborted_while_it_asks_gives_its_grant_back)
{
    begin();
    stage_hold(STORE_GUARD_TELL);
    stage_is_automatic = false;
    struct saga_id id = begin_saga("two"); /* one of its calls is under way */
    (void)stage_change(0, VERB_ABORT, id);
    stage_settle();
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_calls(NULL), 1);
    assert_int_equal(stage_held(STORE_GUARD_TELL), 1);
    assert_true(told_now()->never_called);
    stage_answer_all();
}

TEST(a_grant_for_a_saga_whose_shard_has_gone_is_left_to_the_next_owner)
{
    begin();
    struct saga_id id = begin_saga("run_rated");

    stage_lose(0, saga_id_shard(id));
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_calls(NULL), 0);
    assert_int_equal(stage_asked(STORE_GUARD_TELL), 0); /* the same attempt finds the permission */
}

TEST(a_grant_whose_turn_is_written_by_nobody_any_more_is_left_too)
{
    begin();
    struct saga_id id = begin_saga("run_rated");

    stage_hold(STORE_APPEND);
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_held(STORE_APPEND), 1);
    stage_lose(0, saga_id_shard(id));
    stage_let(STORE_APPEND);
    assert_int_equal(stage_asked(STORE_GUARD_TELL), 0);
    assert_int_equal(stage_calls(NULL), 0);
}

TEST(an_engine_that_leaves_gives_back_what_it_is_granted_then)
{
    begin();
    stage_hold(STORE_GUARD_TELL);
    stage_is_automatic = false;
    begin_saga("run_plain"); /* the saga waits for this call */
    begin_saga("run_rated");
    node_drain(&nodes[0], 5000);
    stage_settle();
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_calls(NULL), 1);
    assert_int_equal(stage_held(STORE_GUARD_TELL), 1);
}

TEST(a_call_that_is_refused_while_the_engine_leaves_has_nothing_to_give_back)
{
    begin();
    stage_is_automatic = false;
    begin_saga("run_plain");
    begin_saga("run_rated");
    node_drain(&nodes[0], 5000);
    stage_settle();
    say(GUARD_RATE, 100);
    assert_int_equal(stage_asked(STORE_GUARD_TELL), 0);
}

/* A compensation has its intent in the log before it asks the guard. */
static struct saga_id begin_undo(const char *name)
{
    begin();
    stage_release(STORE_GUARD_ASK);
    stage_is_automatic = false;
    struct saga_id id = begin_saga(name);

    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_hold(STORE_GUARD_ASK);
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    return id;
}

TEST(a_compensation_that_waits_when_its_engine_leaves_was_not_sent)
{
    struct saga_id id = begin_undo("undone");

    assert_int_equal(stage_held(STORE_GUARD_ASK), 1);
    say(GUARD_CONCURRENCY, 5000);
    node_drain(&nodes[0], 5000);
    stage_settle();
    assert_true(log_has(id, "the engine stopped before this call was sent"));
}

TEST(a_compensation_that_asks_when_its_engine_leaves_was_not_sent)
{
    struct saga_id id = begin_undo("undone");

    begin_saga("run_plain");
    stage_hold(STORE_GUARD_TELL);
    node_drain(&nodes[0], 5000);
    stage_settle();
    say(GUARD_GRANTED, 0);
    assert_true(log_has(id, "the engine stopped before this call was sent"));
    assert_int_equal(stage_held(STORE_GUARD_TELL), 1); /* the place is given back */
}

static bool has_left(void *context)
{
    const struct shard *shard = context;

    return shard->state == SHARD_NONE;
}

TEST(a_compensation_that_waits_when_its_shard_goes_was_not_sent)
{
    struct saga_id id = begin_undo("undone");

    say(GUARD_CONCURRENCY, 60000);
    begin_saga("run_narrow");
    say(GUARD_CONCURRENCY, 60000);
    for (uint32_t i = 0; i < SHARD_COUNT; i++) { /* the other shards stay */
        nodes[0].engine->shards[i].keep_until_boot_ms = i == saga_id_shard(id) ? 0 : INT64_MAX;
    }
    stage_give(0, 1);
    stage_until(has_left, &nodes[0].engine->shards[saga_id_shard(id)], "a shard that is given");
    stage_settle();
    assert_true(log_has(id, "the shard went to another engine before this call was sent"));
}

/* --- waiting for a place --- */

TEST(a_call_that_waited_too_long_for_a_place_asks_the_guards_again)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .node = {.calls_max = 1, .lease_ms = 10000}});
    stage_is_automatic = false;
    begin_saga("run_plain"); /* this call has the only place */
    begin_saga("run_narrow");
    begin_saga("run_slow_once");
    stage_run(10000);
    uint32_t asks = stage_asked(STORE_GUARD_ASK);

    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_int_equal(stage_asked(STORE_GUARD_ASK), asks + 2);
    assert_int_equal(stage_open_calls(), 1);
    stage_run(1000);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_int_equal(stage_asked(STORE_GUARD_ASK), asks + 2); /* the call has not waited long */
    assert_int_equal(stage_open_calls(), 1);
    stage_answer_all();
}

TEST(a_probe_asks_no_guard_however_long_it_waited)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .node = {.calls_max = 1}});
    stage_is_automatic = false;
    begin_saga("run_asked");
    begin_saga("run_plain"); /* this call takes the place */
    stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
    uint32_t asks = stage_asked(STORE_GUARD_ASK);

    stage_run(10000);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_settle();
    assert_int_equal(stage_open_calls(), 1);
    assert_false(stage_call(NULL)->call->send_key);
    assert_int_equal(stage_asked(STORE_GUARD_ASK), asks);
}

TEST(a_tool_that_asks_to_be_left_alone_is_not_called_by_anybody)
{
    stage_begin(&(struct stage_plan){.definitions = definitions});
    begin_saga("run_plain");
    begin_saga("run_limited");
    begin_saga("run_plain");
    answer_late(429, 3000);
    assert_int_equal(health("plain")->pauses, 1);
    uint32_t calls = stage_calls(NULL);

    begin_saga("run_plain");
    begin_saga("run_slow_once"); /* another tool is called */
    stage_run(2000);
    assert_int_equal(stage_calls(NULL), calls + 1);
    stage_run(3000);
    assert_true(stage_calls(NULL) > calls + 1);
    stage_answer_all();
}

/* --- prechecks --- */

TEST(a_call_that_a_precheck_finds_done_or_blocked_gives_its_grant_back)
{
    static const struct {
        const char *saga, *response, *in_log;
        size_t tells;
    } cases[] = {{"run_looked", "{'done':true}", "\"source\":\"precheck\"", 1},
                 {"run_looked", "{'closed':'shut'}", "blocked", 1},
                 {"run_peeked", "{'done':true}", "\"source\":\"precheck\"", 0}}; /* no guard was asked */

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        stage_is_automatic = false;
        stage_hold(STORE_GUARD_TELL);
        struct saga_id id = begin_saga(cases[i].saga);

        if (stage_held(STORE_GUARD_ASK) > 0) {
            say(GUARD_GRANTED, 0);
        }
        stage_answer_first(OUTCOME_COMPLETED, NULL, cases[i].response);
        assert_true(log_has(id, cases[i].in_log));
        assert_int_equal(stage_held(STORE_GUARD_TELL), cases[i].tells);
        stage_end();
    }
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
