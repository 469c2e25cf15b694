/* What the guards are told after a call, also while the database is away: what is given back, kept, counted. */
#include "limiter_trial.h"

static void begin_with_budgets(const char *budgets)
{
    scratch_write(budgets, 1);
    trial_begin(&(struct engine_options){.budgets_file = scratch_file}, UINT64_MAX, definitions);
}

static const struct guard_tell *told(void)
{
    return trial_oldest(ASKED_GUARD_TELL);
}

static void begin_telling(const char *budgets)
{
    begin_with_budgets(budgets);
    trial_hold(ASKED_GUARD_TELL);
    trial_hold(ASKED_CALL);
}

static void what_a_call_came_to_decides_what_becomes_of_its_reservation(void **state)
{
    static const struct {
        enum outcome_kind kind;
        const char *error;
        enum guard_charge charge;
    } cases[] = {
        {OUTCOME_COMPLETED, NULL, CHARGE_SETTLE},
        {OUTCOME_FAILED, "http-422", CHARGE_GIVE_BACK},
        {OUTCOME_RETRY, "refused", CHARGE_GIVE_BACK},
        {OUTCOME_UNKNOWN, "timeout", CHARGE_KEEP}, /* nobody knows yet */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_telling("{\"budgets\":[{\"per\":\"day\",\"tool\":\"fixed\",\"micros\":100}]}");
        trial_start("run_fixed", "{}");
        trial_settle(cases[i].kind, cases[i].error, NULL);
        assert_int_equal(told()->charge, cases[i].charge);
        trial_end();
    }
}

static void what_will_be_paid_is_reserved_as_far_as_it_is_known(void **state)
{
    static const struct {
        const char *saga;
        int64_t micros;
    } cases[] = {{"run_fixed", 7}, {"run_costly", 1}, {"run_plain", 0}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_telling("{\"budgets\":[{\"per\":\"day\",\"micros\":100},{\"per\":\"ever\",\"calls\":100}]}");
        trial_hold(ASKED_GUARD_ASK);
        trial_start(cases[i].saga, "{}");
        assert_int_equal(asked_now()->budget_count, 2);
        assert_int_equal(asked_now()->budgets[0].calls, 1);
        assert_int_equal(asked_now()->budgets[0].emissions, 1);
        assert_int_equal(asked_now()->budgets[0].micros, cases[i].micros);
        say(GUARD_GRANTED, 0);
        if (i == 2) { /* another attempt is no other emission */
            trial_settle(OUTCOME_RETRY, "refused", NULL);
            trial_run(2000);
            assert_int_equal(asked_now()->budgets[0].emissions, 0);
        }
        trial_end();
    }
}

static void a_tool_s_own_wish_is_told_to_all_engines(void **state)
{
    (void)state;
    begin_telling("{\"budgets\":[]}");
    trial_start("run_rated", "{}");
    trial_settle_late(429, 2500);
    assert_int_equal(told()->pause_ms, 2500);
    assert_false(told()->failed);
    trial_end();
}

static void a_wish_counts_only_with_the_status_that_says_so(void **state)
{
    static const int statuses[] = {0, 200, 503};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        begin_telling("{\"budgets\":[]}");
        trial_start("run_rated", "{}");
        trial_settle_late(statuses[i], 2500);
        assert_int_equal(told()->pause_ms, 0);
        trial_end();
    }
}

static void a_call_that_never_left_by_our_own_doing_gives_its_rate_back(void **state)
{
    (void)state;
    begin_telling("{\"budgets\":[]}");
    trial_start("run_rated", "{}");
    trial_settle_unsent("withheld");
    assert_true(told()->never_called && told()->no_verdict && !told()->failed);
    trial_let(ASKED_GUARD_TELL);
    trial_run(1000);
    trial_settle_unsent("refused"); /* the tool is not well */
    assert_true(!told()->never_called && !told()->no_verdict && told()->failed);
    trial_let(ASKED_GUARD_TELL);
    trial_run(2000);
    trial_settle(OUTCOME_UNKNOWN, "cancelled", NULL); /* it has left, and we did not wait */
    assert_true(!told()->never_called && told()->no_verdict);
    trial_end();
}

static void what_a_read_finds_settles_the_reservation(void **state)
{
    static const char *const found[] = {"{\"done\":true}", "{\"absent\":true}", "{}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(found); i++) {
        begin_telling("{\"budgets\":[{\"per\":\"day\",\"tool\":\"asked\",\"calls\":100}]}");
        trial_start("run_asked", "{}");
        trial_settle(OUTCOME_UNKNOWN, "timeout", NULL);
        assert_int_equal(told()->charge, CHARGE_KEEP);
        trial_let(ASKED_GUARD_TELL);
        trial_run(1000);
        trial_settle(OUTCOME_COMPLETED, NULL, found[i]);
        assert_int_equal(trial_held(ASKED_GUARD_TELL), i == 0);
        if (i == 0) {
            assert_int_equal(told()->charge, CHARGE_SETTLE);
            assert_true(told()->no_verdict);
        }
        trial_end();
    }
}

static void a_failed_undo_is_not_counted_as_done(void **state)
{
    (void)state;
    begin_telling("{\"budgets\":[{\"per\":\"day\",\"tool\":\"unpaid\",\"calls\":100}]}");
    trial_start("unpaid", "{}");
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_settle(OUTCOME_FAILED, "http-422", "{\"status\":422}");
    trial_settle(OUTCOME_RETRY, "http-503", "{\"status\":503}");
    trial_run(5000);
    assert_int_equal(trial.asked[ASKED_GUARD_COUNT], 0);
    trial_end();
}

static void what_was_not_told_is_told_when_the_database_is_back(void **state)
{
    (void)state;
    begin_telling("{\"budgets\":[]}");
    trial_start("run_rated", "{}");
    trial_start("run_rated", "{}");
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(trial_held(ASKED_GUARD_TELL), 2);
        trial_fail(ASKED_GUARD_TELL, ERR_STORE);
        trial_fail(ASKED_GUARD_TELL, ERR_STORE);
        trial_run(1000);
    }
    assert_int_equal(trial_held(ASKED_GUARD_TELL), 2);
    trial_fail(ASKED_GUARD_TELL, ERR_CORRUPT); /* refused as data: told once more it would be refused again */
    trial_run(5000);
    assert_int_equal(trial_held(ASKED_GUARD_TELL), 1);
    trial_end();
}

static void what_is_not_told_when_the_engine_ends_expires_by_itself(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin_telling("{\"budgets\":[]}");
        trial_start("run_rated", "{}");
        trial_start("run_narrow", "{}");
        trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
        trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
        if (i == 0) { /* the engine is gone before it is told again */
            trial_fail(ASKED_GUARD_TELL, ERR_STORE);
            trial_fail(ASKED_GUARD_TELL, ERR_STORE);
        } else if (i == 1) { /* ... or has nothing any more that could be told */
            trial_fail(ASKED_GUARD_TELL, ERR_STORE);
            trial_drain(100);
            trial_run(3000);
            trial_fail(ASKED_GUARD_TELL, ERR_STORE);
        } else {
            trial_drain(100);
            trial_run(3000);
            assert_int_equal(trial_held(ASKED_GUARD_TELL), 2);
        }
        trial_end();
    }
}

static void a_breaker_that_opens_is_counted_and_one_that_closes_lets_all_go_on(void **state)
{
    (void)state;
    begin_telling("{\"budgets\":[]}");
    trial_hold(ASKED_GUARD_ASK);
    trial_start("run_broken", "{}");
    say(GUARD_GRANTED, 0);
    trial_settle(OUTCOME_RETRY, "http-503", "{\"status\":503}");
    assert_true(told()->failed);
    ((struct guard_tell *)trial_oldest(ASKED_GUARD_TELL))->breaker_state = BREAKER_OPEN;
    ((struct guard_tell *)trial_oldest(ASKED_GUARD_TELL))->breaker_changed = true;
    trial_let(ASKED_GUARD_TELL);
    assert_int_equal(health("broken")->breaker_opened, 1);
    assert_int_equal(health("broken")->breaker_state, BREAKER_OPEN);
    trial_run(1000);
    say(GUARD_BREAKER, 60000);
    trial_start("run_broken", "{}");
    assert_int_equal(trial_held(ASKED_GUARD_ASK), 0);
    /* One call that began before fails, and the next, elsewhere, half opens it: nobody goes on for that. */
    for (enum breaker_state now = BREAKER_HALF_OPEN;; now = BREAKER_CLOSED) {
        struct trial_request asked;

        limiter_gate(trial.engine->limiter, SLICE("n"), SLICE("broken"))->pace.closed_until_ms = 0;
        trial_ask_call(&asked, (struct saga_id){0}, now == BREAKER_CLOSED ? "closes" : "half", "broken", "{}");
        trial_run(0);
        say(GUARD_GRANTED, 0);
        trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
        ((struct guard_tell *)trial_oldest(ASKED_GUARD_TELL))->breaker_state = now;
        ((struct guard_tell *)trial_oldest(ASKED_GUARD_TELL))->breaker_changed = true;
        trial_let(ASKED_GUARD_TELL);
        trial_request_fini(&asked);
        if (now == BREAKER_CLOSED) {
            break;
        }
    }
    trial_run(10);
    assert_true(trial_held(ASKED_GUARD_ASK) > 0);
    trial_end();
}

/* --- what is counted without asking --- */

static const struct guard_count *counted(void)
{
    return trial_oldest(ASKED_GUARD_COUNT);
}

static const char budgets_of_many[] =
    "{\"budgets\":[{\"per\":\"day\",\"calls\":100},{\"per\":\"month\",\"calls\":100},{\"per\":\"ever\",\"calls\":100},"
    "{\"per\":\"day\",\"namespace\":\"n\",\"calls\":100},{\"per\":\"month\",\"namespace\":\"n\",\"calls\":100},{"
    "\"per\":\"ever\",\"namespace\":\"n\",\"calls\":100},"
    "{\"per\":\"day\",\"tool\":\"unpaid\",\"calls\":100},{\"per\":\"month\",\"tool\":\"unpaid\",\"calls\":100},{"
    "\"per\":\"ever\",\"tool\":\"unpaid\",\"calls\":100}]}";

static void undo(void)
{
    trial_start("unpaid", "{}");
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_settle(OUTCOME_FAILED, "http-422", "{\"status\":422}");
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
}

static void what_undoing_costs_is_counted_together_a_second_later(void **state)
{
    (void)state;
    begin_telling(budgets_of_many);
    trial_release(ASKED_GUARD_TELL);
    trial_hold(ASKED_GUARD_COUNT);
    undo();
    undo();
    trial_run(900);
    assert_int_equal(trial_held(ASKED_GUARD_COUNT), 0);
    trial_run(200);
    assert_int_equal(trial_held(ASKED_GUARD_COUNT), 1);
    assert_int_equal(counted()->budget_count, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(counted()->budgets[i].calls, 2);
    }
    trial_end();
}

static void what_certainly_was_not_counted_is_counted_with_the_next(void **state)
{
    (void)state;
    begin_telling(budgets_of_many);
    trial_release(ASKED_GUARD_TELL);
    trial_hold(ASKED_GUARD_COUNT);
    undo();
    trial_run(1500);
    undo();
    trial_fail(ASKED_GUARD_COUNT, ERR_STORE);
    trial_run(1500);
    assert_int_equal(counted()->budget_count, 9);
    assert_int_equal(counted()->budgets[0].calls, 2);
    trial_fail(ASKED_GUARD_COUNT, ERR_LOST_COMMIT); /* maybe it was: it may be missing, never twice */
    trial_run(5000);
    assert_int_equal(trial_held(ASKED_GUARD_COUNT), 0);
    /* The next day is another period of the same name. */
    undo();
    trial.wall_offset_ms += 86400000;
    undo();
    trial_run(1500);
    assert_int_equal(counted()->budget_count, 9 + 3);
    trial_end();
}

static void an_engine_that_leaves_counts_what_is_left(void **state)
{
    (void)state;
    begin_telling(budgets_of_many);
    trial_release(ASKED_GUARD_TELL);
    trial_hold(ASKED_GUARD_COUNT);
    undo();
    trial_drain(1000);
    trial_run(0);
    assert_int_equal(trial_held(ASKED_GUARD_COUNT), 1);
    trial_run(2000);
    trial_fail(ASKED_GUARD_COUNT, ERR_STORE); /* the store closes: that is all that can be done */
    trial_end();
}

static void a_repeat_counts_as_an_emission(void **state)
{
    struct trial_request first, second;

    (void)state;
    begin_with_budgets("{\"budgets\":[{\"per\":\"day\",\"emissions\":100}]}");
    trial_hold(ASKED_GUARD_COUNT);
    trial_ask_call(&first, (struct saga_id){0}, "r", "plain", "{}");
    trial_run(0);
    trial_ask_call(&second, (struct saga_id){0}, "r", "plain", "{}");
    trial_run(1500);
    assert_true(second.request.call.replayed);
    assert_int_equal(counted()->budgets[0].emissions, 1);
    assert_int_equal(counted()->budgets[0].calls, 0);
    trial_request_fini(&first);
    trial_request_fini(&second);
    trial_end();
}

static void a_name_of_any_length_has_its_gate(void **state)
{
    char name[400];

    (void)state;
    begin_with_budgets("{\"budgets\":[]}");
    memset(name, 'x', sizeof(name));
    struct slice longest = {name, sizeof(name)};
    struct gate *gate = limiter_gate(trial.engine->limiter, SLICE("n"), longest);

    assert_ptr_equal(limiter_gate(trial.engine->limiter, SLICE("n"), longest), gate);
    assert_ptr_not_equal(limiter_gate(trial.engine->limiter, SLICE("m"), longest), gate);
    trial_end();
}

static void budgets_that_make_no_sense_are_refused_before_anything_starts(void **state)
{
    (void)state;
    scratch_write("{\"budgets\":[{\"per\":\"week\",\"calls\":1}]}", 1);
    assert_null(engine_start(NULL, &(struct engine_options){.budgets_file = scratch_file}));
    limiter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_call_came_to_decides_what_becomes_of_its_reservation),
        cmocka_unit_test(what_will_be_paid_is_reserved_as_far_as_it_is_known),
        cmocka_unit_test(a_tool_s_own_wish_is_told_to_all_engines),
        cmocka_unit_test(a_wish_counts_only_with_the_status_that_says_so),
        cmocka_unit_test(a_call_that_never_left_by_our_own_doing_gives_its_rate_back),
        cmocka_unit_test(what_a_read_finds_settles_the_reservation),
        cmocka_unit_test(a_failed_undo_is_not_counted_as_done),
        cmocka_unit_test(what_was_not_told_is_told_when_the_database_is_back),
        cmocka_unit_test(what_is_not_told_when_the_engine_ends_expires_by_itself),
        cmocka_unit_test(a_breaker_that_opens_is_counted_and_one_that_closes_lets_all_go_on),
        cmocka_unit_test(what_undoing_costs_is_counted_together_a_second_later),
        cmocka_unit_test(what_certainly_was_not_counted_is_counted_with_the_next),
        cmocka_unit_test(an_engine_that_leaves_counts_what_is_left),
        cmocka_unit_test(a_repeat_counts_as_an_emission),
        cmocka_unit_test(a_name_of_any_length_has_its_gate),
        cmocka_unit_test(budgets_that_make_no_sense_are_refused_before_anything_starts),
    };

    return cmocka_run_group_tests(tests, scratch_make_file, scratch_remove_file);
}
