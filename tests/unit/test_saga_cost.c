/* A cost that could not be computed: the budget allows no more calls with a cost until a person has said the amount. */
#include <stdio.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

/* Completes a call whose cost could not be computed. */
static void settle_unpriced(struct call_trial *t, uint32_t step)
{
    struct saga_input input = {.type = SAGA_INPUT_SETTLED};

    input.settled.step = step;
    input.settled.attempt = t->saga.steps[step].forward.attempts;
    input.settled.outcome = (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":1}")};
    input.settled.cost_unknown = SLICE("the fee is a text");
    input.settled.undo_args = SLICE("{\"id\":1}");
    assert_int_equal(call_trial_input(t, input), ERR_OK);
}

static enum err_code say_cost_as(struct call_trial *t, const struct operation *op, int64_t micros, struct slice actor,
                                 struct slice note)
{
    struct saga_input input = {.type = SAGA_INPUT_COST};

    input.cost.key = op->key;
    input.cost.micros = micros;
    input.cost.actor = actor;
    input.cost.note = note;
    return call_trial_input(t, input);
}

static enum err_code say_cost(struct call_trial *t, const struct operation *op, int64_t micros)
{
    return say_cost_as(t, op, micros, SLICE("ann"), SLICE("it stands on the invoice"));
}

static struct call_trial t;

TEST(a_person_says_what_it_cost_and_the_budget_goes_on_with_that)
{
    const struct operation *a;

    call_trial_open(&t, "{'micros':250}", NULL, NULL);
    assert_int_equal(CALL(&t, "paid", "a", "{'n':1}"), ERR_OK);
    a = &call_trial_step(&t, "a")->forward;
    assert_int_equal(say_cost(&t, a, 30), ERR_CONFLICT); /* the call is not settled */
    settle_unpriced(&t, 0);
    a = &call_trial_step(&t, "a")->forward;
    assert_non_null(a->cost_unknown.ptr);
    assert_int_equal(CALL(&t, "paid", "b", "{'n':2}"), ERR_BUDGET);
    assert_int_equal(say_cost_as(&t, a, 120, SLICE(""), SLICE("it stands on the invoice")), ERR_INVALID);
    assert_int_equal(say_cost_as(&t, a, 120, SLICE("ann"), SLICE("")), ERR_INVALID);
    assert_int_equal(say_cost(&t, a, 120), ERR_OK);
    assert_string_equal(call_trial_records(&t), "operation.priced a");
    assert_true(slice_is(t.records.items[0].actor, "ann"));
    assert_true(slice_is(t.records.items[0].note, "it stands on the invoice"));
    a = &call_trial_step(&t, "a")->forward;
    assert_null(a->cost_unknown.ptr);
    assert_int_equal(a->cost_micros, 120);
    assert_int_equal(t.saga.used.micros, 120);
    assert_int_equal(say_cost(&t, a, 120), ERR_OK); /* the verb was already applied */
    assert_int_equal(t.records.count, 0);
    assert_int_equal(say_cost(&t, a, 121), ERR_DECIDED);
    assert_int_equal(CALL(&t, "paid", "b", "{'n':2}"), ERR_OK);
    assert_int_equal(CALL(&t, "paid", "c", "{'n':3}"), ERR_BUDGET);
}

TEST(a_resting_run_tells_of_a_cost_too_and_an_ended_saga_does_not)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "paid", "a"), ERR_OK);
    settle_unpriced(&t, 0);
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_int_equal(say_cost(&t, &call_trial_step(&t, "a")->forward, 7), ERR_OK);
    assert_string_equal(call_trial_records(&t), "run.woken, operation.priced a");
    assert_int_equal(t.saga.used.micros, 7);
    call_trial_close(&t);
    call_trial_open(&t, NULL, NULL, NULL);
    assert_int_equal(CALL(&t, "paid", "a"), ERR_OK);
    settle_unpriced(&t, 0);
    assert_int_equal(call_trial_complete(&t), ERR_OK);
    assert_int_equal(say_cost(&t, &call_trial_step(&t, "a")->forward, 7), ERR_ENDED);
}

/* Makes a call whose outcome is unknown, but whose arguments tell its cost. */
static void settle_estimated(struct call_trial *on, int64_t micros)
{
    struct saga_input input = {.type = SAGA_INPUT_SETTLED};

    input.settled.step = 0;
    input.settled.attempt = 1;
    input.settled.outcome = (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("timeout")};
    input.settled.cost_micros = micros;
    assert_int_equal(call_trial_input(on, input), ERR_OK);
}

static void begin_estimated(struct call_trial *on, const char *cost, int64_t micros)
{
    char text[256];

    call_trial_open(on, "{'micros':250}", NULL, NULL);
    (void)snprintf(text, sizeof(text),
                   "{'name':'meter','builtin':{'do':'echo'},'effect':'once','terminal':true,'cost':'%s'}", cost);
    call_trial_register(on, text);
    assert_int_equal(CALL(on, "meter", "a", "{'n':12}"), ERR_OK);
    call_trial_timer(on, "a");
    settle_estimated(on, micros);
}

TEST(an_estimate_is_held_back_until_a_person_says_whether_it_happened)
{
    begin_estimated(&t, "${ .args.n * 10 }", 120);
    assert_string_equal(call_trial_records(&t), "step.unknown a, escalation.opened a");
    assert_int_equal(t.saga.used.micros, 120);
    assert_true(operation_cost_is_estimated(&t.saga, 0, DIRECTION_DO));
    assert_int_equal(call_trial_operator(&t, OPERATOR_RESOLVE), ERR_OK);
    assert_null(call_trial_step(&t, "a")->forward.cost_unknown.ptr);
    assert_false(operation_cost_is_estimated(&t.saga, 0, DIRECTION_DO));
    assert_int_equal(t.saga.used.micros, 120);
}

TEST(a_cost_of_nothing_is_known_where_the_arguments_say_it)
{
    begin_estimated(&t, "${ .args.n * 0 }", 0);
    assert_true(operation_cost_is_known(&t.saga, 0, DIRECTION_DO));
}

TEST(a_cost_of_nothing_is_not_known_before_there_is_the_result_that_says_it)
{
    begin_estimated(&t, "${ .result.fee }", 0);
    assert_false(operation_cost_is_known(&t.saga, 0, DIRECTION_DO));
}

TEST(the_cost_of_a_tool_that_says_none_is_not_known)
{
    call_trial_open(&t, "{'micros':250}", NULL, NULL);
    call_trial_register(&t, "{'name':'meter','builtin':{'do':'echo'},'effect':'once','terminal':true}");
    assert_int_equal(CALL(&t, "meter", "a", "{'n':12}"), ERR_OK);
    call_trial_timer(&t, "a");
    settle_estimated(&t, 0);
    assert_false(operation_cost_is_known(&t.saga, 0, DIRECTION_DO));
}

TEST(a_cost_that_depends_on_the_result_stays_unknown_when_a_person_says_that_it_happened)
{
    begin_estimated(&t, "${ .result.fee }", 0);
    assert_false(operation_cost_is_estimated(&t.saga, 0, DIRECTION_DO));
    assert_int_equal(call_trial_operator(&t, OPERATOR_RESOLVE), ERR_OK);
    assert_non_null(call_trial_step(&t, "a")->forward.cost_unknown.ptr);
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
