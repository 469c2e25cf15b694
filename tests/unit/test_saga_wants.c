/* The wants of each state: derived, sorted, and the same again after a crash. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct trial trial;

TEST(nothing_is_wanted_before_the_start_and_after_the_end)
{
    trial_open(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"));
    assert_string_equal(trial_wants(&trial), "");
    trial_start(&trial, "{}");
    trial_play(&trial, "a");
    assert_string_equal(trial_wants(&trial), "");
}

TEST(a_call_is_wanted_only_with_its_intent)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'checked'}"), "{}");
    assert_string_equal(trial_wants(&trial), "timer a 0"); /* pending: the intent has its own commit */
    trial_play(&trial, "timer a");
    assert_string_equal(trial_wants(&trial), "call a 1");
}

TEST(steps_without_a_path_between_them_run_side_by_side)
{
    trial_begin(
        &trial,
        TRIAL_SAGA_WITH("'deadline':'1m'",
                        "{'id':'a','call':'keyed','after':[]},{'id':'b','call':'once','after':[]},"
                        "{'id':'c','call':'keyed','after':[],'with':{'n':'${ 1 + 1 }'}},{'id':'d','call':'keyed'}"),
        "{}");
    assert_string_equal(trial_wants(&trial), "call a 1, timer b 0, timer - 0 +60000, evaluate c 0");
    trial_play(&trial, "a unknown");
    assert_int_equal(strncmp(trial_wants(&trial), "timer a 1 +", 11), 0);
}

TEST(a_program_is_evaluated_outside_and_its_value_recorded)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    trial_begin(&trial,
                TRIAL_SAGA_WITH("'output':{'n':'${ .steps | length }'}",
                                "{'id':'a','call':'strict','with':{'n':'${ 1 + 1 }'},'scope':'${ .input | keys }'}"),
                "{}");
    assert_string_equal(trial_records(&trial), "saga.started");
    assert_string_equal(trial_wants(&trial), "evaluate a 0");
    input.evaluated.what = EVALUATE_ARGS;
    input.evaluated.value = SLICE("{\"n\":2}");
    input.evaluated.scope = SLICE("order-7");
    trial_takes(&trial, trial_input(&trial, input), "step.intent a");
    assert_true(slice_is(trial.saga.steps[0].forward.scope, "order-7"));
    trial_takes(&trial, trial_input(&trial, input), ""); /* the same input again changes nothing */
    trial_play_to(&trial, "a", "step.completed a");
    assert_string_equal(trial_wants(&trial), "evaluate - 1");
    input = (struct saga_input){.type = SAGA_INPUT_EVALUATED};
    input.evaluated.what = EVALUATE_OUTPUT;
    input.evaluated.step = STEP_NONE;
    input.evaluated.value = SLICE("{\"n\":1}");
    trial_takes(&trial, trial_input(&trial, input), "saga.completed");
    assert_true(slice_is(trial.saga.output, "{\"n\":1}"));
}

TEST(arguments_that_cannot_be_made_fail_the_step_without_a_call)
{
    static const char *const steps[] = {
        "{'id':'b','call':'strict','with':{'n':'${ .input.n.m }'}}", /* a member of a number */
        "{'id':'b','call':'strict','with':{'n':'two'}}",             /* not what the tool accepts */
        "{'id':'b','call':'strict','with':{'n':1},'scope':'${ .input.n.m }'}",
        "{'id':'b','call':'strict'}",
    };

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        char document[8192];

        (void)snprintf(document, sizeof(document), TRIAL_SAGA("{'id':'a','call':'keyed'},%s"), steps[i]);
        trial_begin(&trial, document, "{'n':1}");
        trial_play(&trial, "a");
        assert_string_equal(
            trial_records(&trial),
            "step.completed a, step.failed b, saga.failing b, compensation.planned, compensation.intent a");
        assert_true(slice_is(trial.saga.steps[1].forward.error, "arguments"));
        assert_int_equal(trial.saga.steps[1].forward.attempts, 0);
        trial_check_replay(&trial);
        trial_close(&trial);
    }
}

TEST(an_evaluation_that_fails_fails_the_step)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed','with':{'n':'${ 1 + 1 }'}}"), "{}");
    input.evaluated.failed = true;
    input.evaluated.error = SLICE("no number");
    trial_takes(&trial, trial_input(&trial, input),
                "step.failed a, saga.failing a, compensation.planned, saga.compensated");
}

TEST(a_blind_undo_with_a_program_is_evaluated)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    trial_open(
        &trial,
        TRIAL_SAGA("{'id':'a','call':'voidable','compensate':{'tool':'undo','with':{'k':'${ .key | ascii_upcase }'},"
                   "'tolerates_absent':true,'voids_key':true}}"));
    trial_start(&trial, "{}");
    trial_play_to(&trial, "timer a, a unknown", "step.unknown a, saga.failing a, compensation.planned");
    assert_string_equal(trial_wants(&trial), "evaluate undo a 2");
    input.evaluated.what = EVALUATE_UNDO;
    input.evaluated.value = SLICE("{\"k\":\"K\"}");
    trial_takes(&trial, trial_input(&trial, input), "compensation.intent a");
}

TEST(an_output_that_cannot_be_made_undoes_nothing)
{
    trial_begin(&trial, TRIAL_SAGA_WITH("'output':{'n':'${ .steps.a.result.id.x }'}", "{'id':'a','call':'keyed'}"),
                "{}");
    trial_play_to(&trial, "a", "step.completed a, saga.completed");
    assert_true(slice_is(trial.saga.output, "null"));
    assert_true(slice_is(trial.records.items[1].error, "output"));
}

TEST(an_undo_that_backs_off_is_the_only_thing_wanted)
{
    trial_begin(&trial, TRIAL_SAGA_WITH("'deadline':'1h'", "{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"),
                "{}");
    trial_play(&trial, "a, b failed");
    assert_string_equal(trial_wants(&trial), "call undo a 1"); /* no deadline, which was for forward work */
    trial_play(&trial, "undo a retry");
    assert_int_equal(strncmp(trial_wants(&trial), "timer undo a 1 +", 16), 0);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
