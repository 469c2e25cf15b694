/* The guards of an engine, with a database that says what the test wants: who waits, and who is refused. */
#include "limiter_trial.h"

static void begin(void)
{
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_GUARD_ASK);
}

static bool log_has(struct saga_id saga, const char *text)
{
    return strstr(trial_log_text(saga), text) != NULL;
}

/* --- who waits, and for how long --- */

static void work_of_the_engine_waits_for_as_long_as_the_guard_says(void **state)
{
    static const enum guard_verdict verdicts[] = {GUARD_RATE, GUARD_CONCURRENCY, GUARD_BREAKER, GUARD_PAUSED};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        begin();
        struct saga_id id = trial_start("run_rated", "{}");

        assert_int_equal(trial.asked[ASKED_GUARD_ASK], 1);
        say(verdicts[i], 5000);
        trial_run(4900);
        assert_int_equal(trial.asked[ASKED_GUARD_ASK], 1);
        trial_run(700);
        assert_int_equal(trial.asked[ASKED_GUARD_ASK], 2);
        assert_int_equal(trial.asked[ASKED_CALL], 0);
        say(GUARD_GRANTED, 0);
        assert_int_equal(trial.asked[ASKED_CALL], 1);
        assert_true(log_has(id, "saga.completed"));
        trial_end();
    }
}

static void while_the_database_is_away_nobody_is_let_through_and_nobody_refused(void **state)
{
    struct trial_request asked;

    (void)state;
    begin();
    trial_ask_call(&asked, (struct saga_id){0}, "r", "rated", "{}");
    trial_run(0);
    for (int i = 0; i < 3; i++) {
        trial_fail(ASKED_GUARD_ASK, ERR_STORE);
        trial_run(1000);
    }
    assert_false(asked.done);
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    /* One that comes meanwhile stands behind it and is not refused either. */
    struct trial_request second;

    trial_fail(ASKED_GUARD_ASK, ERR_STORE);
    trial_ask_call(&second, (struct saga_id){0}, "r2", "rated", "{}");
    trial_run(100);
    assert_false(second.done);
    trial_release(ASKED_GUARD_ASK);
    trial_run(2000);
    assert_int_equal(asked.request.code, ERR_OK);
    assert_int_equal(second.request.code, ERR_OK);
    trial_request_fini(&asked);
    trial_request_fini(&second);
    trial_end();
}

static void who_waits_asks_later_when_somebody_else_is_told_of_a_longer_wait(void **state)
{
    struct trial_request asked;

    (void)state;
    begin();
    trial_start("run_narrow", "{}");
    say(GUARD_CONCURRENCY, 1000);
    trial_ask_call(&asked, (struct saga_id){0}, "r", "narrow", "{}"); /* who may be refused asks at once */
    trial_run(0);
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], 2);
    say(GUARD_PAUSED, 5000);
    assert_int_equal(asked.request.code, ERR_RATE);
    trial_run(4000);
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], 2);
    trial_run(2000);
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], 3);
    trial_request_fini(&asked);
    trial_end();
}

static void a_group_that_is_refused_waits_again_together(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 6; i++) {
        trial_start("run_rated", "{}");
    }
    say(GUARD_RATE, 500);
    while (trial_held(ASKED_GUARD_ASK) > 0) { /* those that asked before anybody was refused */
        say(GUARD_RATE, 500);
    }
    trial_run(1000);
    assert_int_equal(trial_held(ASKED_GUARD_ASK), 1); /* one tries */
    say(GUARD_GRANTED, 0);
    trial_run(1000);
    assert_int_equal(trial_held(ASKED_GUARD_ASK), 2); /* then two */
    say(GUARD_RATE, 500);
    assert_int_equal(trial_held(ASKED_GUARD_ASK), 1);
    say(GUARD_RATE, 500);
    trial_run(1000);
    assert_int_equal(trial_held(ASKED_GUARD_ASK), 1);
    trial_end();
}

static void who_comes_stands_behind_those_who_wait(void **state)
{
    struct trial_request abort;

    (void)state;
    begin();
    struct saga_id first = trial_start("run_narrow", "{}");

    say(GUARD_CONCURRENCY, 1000);
    struct saga_id second = trial_start("run_narrow", "{}");

    assert_int_equal(trial.asked[ASKED_GUARD_ASK], 1);
    for (int i = 0; i < 2; i++) { /* nobody is left: nobody asks */
        trial_request_init(&abort);
        abort.request.in.change.verb = VERB_ABORT;
        abort.request.in.change.saga = i == 0 ? first : second;
        engine_change(trial.engine, &abort.request);
        trial_run(0);
        trial_request_fini(&abort);
    }
    trial_run(5000);
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], 1);
    trial_end();
}

/* --- who is refused --- */

static void a_call_of_an_agent_is_refused_and_told_when_to_come_again(void **state)
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

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trial_request asked, again;

        begin();
        trial_ask_call(&asked, (struct saga_id){0}, "r", "broken", "{}");
        trial_run(0);
        say(cases[i].verdict, cases[i].after_ms);
        assert_true(asked.done);
        assert_int_equal(asked.request.code, cases[i].code);
        assert_int_equal(asked.request.call.retry_after_ms, cases[i].told_ms);
        assert_int_equal(trial.asked[ASKED_CALL], 0);
        trial_request_fini(&asked);
        if (cases[i].verdict == GUARD_RATE) { /* the next one need not ask */
            trial_ask_call(&again, (struct saga_id){0}, "r2", "broken", "{}");
            trial_run(0);
            assert_int_equal(again.request.code, ERR_RATE);
            assert_int_equal(trial.asked[ASKED_GUARD_ASK], 1);
            trial_request_fini(&again);
        }
        trial_end();
    }
}

static void what_the_engine_tries_again_for_an_agent_is_not_refused(void **state)
{
    struct trial_request asked;

    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial_ask_call(&asked, (struct saga_id){0}, "r", "rated", "{}");
    trial_run(0);
    say(GUARD_GRANTED, 0);
    trial_settle(OUTCOME_RETRY, "http-503", NULL);
    trial_run(1000);
    say(GUARD_RATE, 500);
    assert_false(asked.done);
    trial_run(1000);
    say(GUARD_GRANTED, 0);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_int_equal(asked.request.code, ERR_OK);
    trial_request_fini(&asked);
    trial_end();
}

static void an_exhausted_budget_fails_work_of_the_engine_too(void **state)
{
    (void)state;
    begin();
    struct saga_id id = trial_start("run_rated", "{}");

    say(GUARD_BUDGET, 0);
    assert_true(log_has(id, "budget-exhausted"));
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    trial_end();
}

/* --- breakers --- */

static void a_half_open_breaker_is_tried_by_a_status_read_where_a_call_may_not_be_repeated(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("run_asked", "{}");

    assert_true(asked_now()->safe_to_repeat);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial_held(ASKED_CALL), 1); /* the read */
    trial_settle(OUTCOME_UNKNOWN, "timeout", NULL);
    assert_int_equal(trial.asked[ASKED_GUARD_TELL], 1);
    trial_run(2000);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_int_equal(trial.asked[ASKED_GUARD_TELL], 2);
    trial_run(1000);
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial_held(ASKED_CALL), 1); /* the call */
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_true(log_has(id, "saga.completed"));
    trial_end();
}

static void an_agent_whose_status_read_fails_is_refused(void **state)
{
    struct trial_request asked;

    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial_ask_call(&asked, (struct saga_id){0}, "r", "asked", "{}");
    trial_run(0);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    trial_settle(OUTCOME_UNKNOWN, "timeout", NULL);
    assert_int_equal(asked.request.code, ERR_BREAKER);
    trial_request_fini(&asked);
    trial_end();
}

static void what_may_not_be_repeated_and_cannot_be_read_is_no_trial_of_a_breaker(void **state)
{
    (void)state;
    begin();
    trial_start("run_mixed", "{\"x\":1}");
    assert_false(asked_now()->safe_to_repeat);
    asked_now()->is_breaker_probe = true; /* whatever the database says: there is nothing that could be read */
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial.asked[ASKED_CALL], 1);
    trial_end();
}

static void the_breaker_that_others_see_is_shown(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_GUARD_TELL);
    trial_start("run_broken", "{}");
    say(GUARD_BREAKER, 300);
    assert_int_equal(health("broken")->breaker_state, BREAKER_OPEN);
    trial_run(500);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0); /* it is the one that tries: nothing is known yet */
    assert_int_equal(health("broken")->breaker_state, BREAKER_OPEN);
    trial_start("run_broken", "{}");
    trial_run(1000);
    say(GUARD_GRANTED, 0);
    assert_int_equal(health("broken")->breaker_state, BREAKER_CLOSED);
    trial_end();
}

/* --- what is wanted no more before the answer comes --- */

static void who_is_aborted_while_it_asks_gives_back_what_it_gets(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_GUARD_TELL);
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("two", "{}"); /* one of its calls is under way */
    struct trial_request abort;

    trial_request_init(&abort);
    abort.request.in.change.verb = VERB_ABORT;
    abort.request.in.change.saga = id;
    engine_change(trial.engine, &abort.request);
    trial_run(0);
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial.asked[ASKED_CALL], 1);
    assert_int_equal(trial_held(ASKED_GUARD_TELL), 1);
    assert_true(((struct guard_tell *)trial_oldest(ASKED_GUARD_TELL))->never_called);
    trial_release(ASKED_CALL);
    trial_request_fini(&abort);
    trial_end();
}

static void a_grant_for_a_saga_whose_shard_has_gone_is_left_to_the_next_owner(void **state)
{
    (void)state;
    begin();
    struct saga_id id = trial_start("run_rated", "{}");

    trial_shard_to(saga_id_shard(id), 2);
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    assert_int_equal(trial.asked[ASKED_GUARD_TELL], 0); /* the same attempt finds it granted */
    trial_end();
}

static void a_grant_whose_turn_is_written_by_nobody_any_more_is_left_too(void **state)
{
    (void)state;
    begin();
    struct saga_id id = trial_start("run_rated", "{}");

    trial_hold(ASKED_APPEND);
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial_held(ASKED_APPEND), 1);
    trial_shard_to(saga_id_shard(id), 2);
    trial_let(ASKED_APPEND);
    assert_int_equal(trial.asked[ASKED_GUARD_TELL], 0);
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    trial_end();
}

static void an_engine_that_leaves_gives_back_what_it_is_granted_then(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_GUARD_TELL);
    trial_hold(ASKED_CALL);
    trial_start("run_plain", "{}"); /* it waits for this call */
    trial_start("run_rated", "{}");
    trial_drain(5000);
    trial_run(0);
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial.asked[ASKED_CALL], 1);
    assert_int_equal(trial_held(ASKED_GUARD_TELL), 1);
    trial_end();
}

static void one_that_is_refused_while_the_engine_leaves_has_nothing_to_give_back(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial_start("run_plain", "{}");
    trial_start("run_rated", "{}");
    trial_drain(5000);
    trial_run(0);
    say(GUARD_RATE, 100);
    assert_int_equal(trial.asked[ASKED_GUARD_TELL], 0);
    trial_end();
}

/* A compensation has its intent in the log before it asks. */
static struct saga_id begin_undo(const char *name)
{
    begin();
    trial_release(ASKED_GUARD_ASK);
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start(name, "{}");

    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_hold(ASKED_GUARD_ASK);
    trial_settle(OUTCOME_FAILED, "http-422", "{\"status\":422}");
    return id;
}

static void a_compensation_that_waits_when_its_engine_leaves_was_not_sent(void **state)
{
    (void)state;
    struct saga_id id = begin_undo("undone");

    assert_int_equal(trial_held(ASKED_GUARD_ASK), 1);
    say(GUARD_CONCURRENCY, 5000);
    trial_drain(5000);
    trial_run(0);
    assert_true(log_has(id, "the engine stopped before this call was sent"));
    trial_end();
}

static void a_compensation_that_asks_when_its_engine_leaves_was_not_sent(void **state)
{
    (void)state;
    struct saga_id id = begin_undo("undone");

    trial_start("run_plain", "{}");
    trial_hold(ASKED_GUARD_TELL);
    trial_drain(5000);
    trial_run(0);
    say(GUARD_GRANTED, 0);
    assert_true(log_has(id, "the engine stopped before this call was sent"));
    assert_int_equal(trial_held(ASKED_GUARD_TELL), 1); /* its place is given back */
    trial_end();
}

static void a_compensation_that_waits_when_its_shard_goes_was_not_sent(void **state)
{
    (void)state;
    struct saga_id id = begin_undo("undone");

    say(GUARD_CONCURRENCY, 60000);
    trial_start("run_narrow", "{}"); /* of other shards: they stay */
    say(GUARD_CONCURRENCY, 60000);
    trial_surplus(SHARD_COUNT);
    trial_run(100);
    assert_true(log_has(id, "the shard went to another engine before this call was sent"));
    assert_true(trial.given >> saga_id_shard(id) & 1);
    trial_end();
}

/* --- waiting for a place --- */

static void who_waited_too_long_for_a_place_asks_the_guards_again(void **state)
{
    (void)state;
    trial_begin(&(struct engine_options){.calls_max = 1, .lease_ms = 10000}, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    trial_start("run_plain", "{}"); /* has the only place */
    trial_start("run_narrow", "{}");
    trial_start("run_slow_once", "{}");
    trial_run(10000);
    uint32_t asks = trial.asked[ASKED_GUARD_ASK];

    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], asks + 2);
    assert_int_equal(trial_held(ASKED_CALL), 1);
    trial_run(1000);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], asks + 2); /* it has not waited long since */
    assert_int_equal(trial_held(ASKED_CALL), 1);
    trial_release(ASKED_CALL);
    trial_end();
}

static void who_reads_what_became_of_a_call_asks_no_guard_however_long_it_waited(void **state)
{
    (void)state;
    trial_begin(&(struct engine_options){.calls_max = 1}, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    trial_start("run_asked", "{}");
    trial_start("run_plain", "{}"); /* takes the place */
    trial_settle(OUTCOME_UNKNOWN, "timeout", NULL);
    uint32_t asks = trial.asked[ASKED_GUARD_ASK];

    trial_run(10000);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_run(0);
    assert_int_equal(trial_held(ASKED_CALL), 1);
    assert_false(((struct call *)trial_oldest(ASKED_CALL))->send_key);
    assert_int_equal(trial.asked[ASKED_GUARD_ASK], asks);
    trial_end();
}

static void a_tool_that_asks_to_be_left_alone_is_not_called_by_anybody(void **state)
{
    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    trial_start("run_plain", "{}");
    trial_start("run_limited", "{}");
    struct call *call = trial_oldest(ASKED_CALL);

    (void)call;
    trial_start("run_plain", "{}");
    trial_settle_late(429, 3000);
    assert_int_equal(health("plain")->pauses, 1);
    uint32_t calls = trial.asked[ASKED_CALL];

    trial_start("run_plain", "{}");
    trial_start("run_slow_once", "{}"); /* another tool is called */
    trial_run(2000);
    assert_int_equal(trial.asked[ASKED_CALL], calls + 1);
    trial_run(3000);
    assert_true(trial.asked[ASKED_CALL] > calls + 1);
    trial_release(ASKED_CALL);
    trial_end();
}

/* --- prechecks --- */

static void what_a_precheck_finds_done_or_blocked_gives_its_grant_back(void **state)
{
    static const struct {
        const char *saga, *response, *in_log;
        size_t tells;
    } cases[] = {{"run_looked", "{\"done\":true}", "\"source\":\"precheck\"", 1},
                 {"run_looked", "{\"closed\":\"shut\"}", "blocked", 1},
                 {"run_peeked", "{\"done\":true}", "\"source\":\"precheck\"", 0}}; /* no guard was asked */

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        trial_hold(ASKED_CALL);
        trial_hold(ASKED_GUARD_TELL);
        struct saga_id id = trial_start(cases[i].saga, "{}");

        if (trial_held(ASKED_GUARD_ASK) > 0) {
            say(GUARD_GRANTED, 0);
        }
        trial_settle(OUTCOME_COMPLETED, NULL, cases[i].response);
        assert_true(log_has(id, cases[i].in_log));
        assert_int_equal(trial_held(ASKED_GUARD_TELL), cases[i].tells);
        trial_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_the_engine_waits_for_as_long_as_the_guard_says),
        cmocka_unit_test(while_the_database_is_away_nobody_is_let_through_and_nobody_refused),
        cmocka_unit_test(who_waits_asks_later_when_somebody_else_is_told_of_a_longer_wait),
        cmocka_unit_test(a_group_that_is_refused_waits_again_together),
        cmocka_unit_test(who_comes_stands_behind_those_who_wait),
        cmocka_unit_test(a_call_of_an_agent_is_refused_and_told_when_to_come_again),
        cmocka_unit_test(what_the_engine_tries_again_for_an_agent_is_not_refused),
        cmocka_unit_test(an_exhausted_budget_fails_work_of_the_engine_too),
        cmocka_unit_test(a_half_open_breaker_is_tried_by_a_status_read_where_a_call_may_not_be_repeated),
        cmocka_unit_test(an_agent_whose_status_read_fails_is_refused),
        cmocka_unit_test(what_may_not_be_repeated_and_cannot_be_read_is_no_trial_of_a_breaker),
        cmocka_unit_test(the_breaker_that_others_see_is_shown),
        cmocka_unit_test(who_is_aborted_while_it_asks_gives_back_what_it_gets),
        cmocka_unit_test(a_grant_for_a_saga_whose_shard_has_gone_is_left_to_the_next_owner),
        cmocka_unit_test(a_grant_whose_turn_is_written_by_nobody_any_more_is_left_too),
        cmocka_unit_test(an_engine_that_leaves_gives_back_what_it_is_granted_then),
        cmocka_unit_test(one_that_is_refused_while_the_engine_leaves_has_nothing_to_give_back),
        cmocka_unit_test(a_compensation_that_waits_when_its_engine_leaves_was_not_sent),
        cmocka_unit_test(a_compensation_that_asks_when_its_engine_leaves_was_not_sent),
        cmocka_unit_test(a_compensation_that_waits_when_its_shard_goes_was_not_sent),
        cmocka_unit_test(who_waited_too_long_for_a_place_asks_the_guards_again),
        cmocka_unit_test(who_reads_what_became_of_a_call_asks_no_guard_however_long_it_waited),
        cmocka_unit_test(a_tool_that_asks_to_be_left_alone_is_not_called_by_anybody),
        cmocka_unit_test(what_a_precheck_finds_done_or_blocked_gives_its_grant_back),
    };

    return cmocka_run_group_tests(tests, scratch_make_file, scratch_remove_file);
}
