/* Holds in the core: under a hold no call gets its intent, and after the hold the same input makes the intent. */
#include "core/saga/hold.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct hold hold_of(enum hold_kind kind, const char *name)
{
    return (struct hold){.number = 1,
                         .namespace = SLICE("default"),
                         .kind = kind,
                         .name = slice_of(name),
                         .note = SLICE("the bank times out"),
                         .actor = SLICE("ann")};
}

/* The step `act` is due. Under the hold nothing happens, and after it the call begins. */
static void expect_held(struct trial *trial, const char *tool)
{
    struct hold hold = hold_of(HOLD_TOOL, tool), other = hold_of(HOLD_TOOL, "read");
    struct hold_set holds = {&hold, 1};
    struct saga_input input = {.type = SAGA_INPUT_TIMER, .holds = &holds};

    input.timer.step = trial_step(trial, "act");
    trial->now_ms = trial->saga.steps[input.timer.step].forward.due_ms + 1000;
    trial_takes(trial, trial_input(trial, input), "saga.held");
    holds.items = &other;
    trial_takes(trial, trial_input(trial, input), "saga.released, step.intent act");
    trial_check_replay(trial);
    trial_close(trial);
}

TEST(a_pending_call_gets_no_intent)
{
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'once'}"), "{}");
    expect_held(&trial, "once");
}

TEST(a_call_that_is_to_be_tried_again_gets_no_intent)
{
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'keyed'}"), "{}");
    trial_play(&trial, "act retry");
    expect_held(&trial, "keyed");
}

TEST(a_hold_reaches_its_namespace_and_the_way_forward_only)
{
    struct hold hold = hold_of(HOLD_NAMESPACE, "default");
    struct hold_set holds = {&hold, 1};
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'once'}"), "{}");
    assert_ptr_equal(hold_of_call(&holds, &trial.saga, SLICE("once"), DIRECTION_DO, &trial.arena), &hold);
    assert_null(hold_of_call(&holds, &trial.saga, SLICE("undo"), DIRECTION_UNDO, &trial.arena));
    hold.undo = true;
    assert_ptr_equal(hold_of_call(&holds, &trial.saga, SLICE("undo"), DIRECTION_UNDO, &trial.arena), &hold);
    hold.namespace = SLICE("shop");
    assert_null(hold_of_call(&holds, &trial.saga, SLICE("once"), DIRECTION_DO, &trial.arena));
    assert_null(hold_of_start(&holds, SLICE("default"), SLICE("trial"), SLICE_NONE, SLICE_NONE, &trial.arena));
    trial_close(&trial);
}

TEST_PROGRAM(NULL, NULL)
