/* The checks between an operation and its intent: guards, the precheck, the saga's budget, and the class that the
 * arguments decide. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define GUARDED_TOOLS                                                                                                  \
    "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},"                                                   \
    "{'name':'guarded','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'rate':{'limit':1,'per':'1s'}," \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}},"                                                   \
    "{'name':'guarded_once','builtin':{'do':'echo'},'effect':'once','rate':{'limit':1,'per':'1s'},"                    \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}},"                                                   \
    "{'name':'after','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},"                                 \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}},"                                                   \
    "{'name':'priced','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'cost':60,"                      \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}},"                                                   \
    "{'name':'either','builtin':{'do':'echo'},'effect':{'if':'${ .args.dry }','then':'read','else':'once'},"           \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}}"
#define GUARDED(members, steps)                                                                                        \
    "{'tools':[" GUARDED_TOOLS "],'sagas':[{'name':'trial'," members "'steps':[" steps "]}]}"

static void admit(struct trial *trial, const char *step, struct saga_input input)
{
    input.type = SAGA_INPUT_ADMITTED;
    input.admitted.step = trial_step(trial, step);
    assert_int_equal(trial_input(trial, input), ERR_OK);
}

#define ADMIT(trial, step, ...) admit(trial, step, (struct saga_input){.admitted = {__VA_ARGS__}})

static void open_guarded(struct trial *trial, const char *tool)
{
    char document[4096];

    (void)snprintf(document, sizeof(document), GUARDED("", "{'id':'a','call':'%s'},{'id':'b','call':'after'}"), tool);
    trial_begin(trial, document, "{}");
    assert_string_equal(trial_records(trial), "saga.started, step.pending a");
    assert_string_equal(trial_wants(trial), "admit a 1");
}

static struct trial trial;

/* --- guards --- */

TEST(no_call_leaves_before_the_guards_have_said_so)
{
    open_guarded(&trial, "guarded");
    trial_play(&trial, "timer a"); /* time alone lets no call pass */
    assert_int_equal(trial.records.count, 0);
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    assert_string_equal(trial_records(&trial), "step.intent a");
    assert_string_equal(trial_wants(&trial), "call a 1");
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED); /* said twice */
    assert_int_equal(trial.records.count, 0);
    trial_play_to(&trial, "a", "step.completed a, step.intent b");
    trial_check_replay(&trial);
}

TEST(a_retry_asks_the_guards_again_when_it_is_due)
{
    open_guarded(&trial, "guarded");
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    trial_play(&trial, "a retry");
    assert_true(strncmp(trial_wants(&trial), "admit a 2 +", 11) == 0);
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    assert_int_equal(trial.records.count, 0); /* the call is not due */
    trial.now_ms = trial_forward(&trial, "a")->due_ms;
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    assert_string_equal(trial_records(&trial), "step.intent a");
    assert_int_equal(trial_forward(&trial, "a")->attempts, 2);
    trial_check_replay(&trial);
}

TEST(work_that_the_engine_drives_waits_however_often_it_is_refused)
{
    open_guarded(&trial, "guarded");
    for (int i = 0; i < 50; i++) {
        ADMIT(&trial, "a", .admission = ADMISSION_REFUSED, .error = SLICE("rate-limited"), .retry_after_ms = 2000);
        assert_string_equal(trial_records(&trial), "step.retrying a");
        assert_string_equal(trial_wants(&trial), "admit a 1 +2000");
        trial.now_ms += 2000;
    }
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    assert_string_equal(trial_records(&trial), "step.intent a");
    trial_check_replay(&trial);
}

TEST(an_exhausted_budget_is_a_certain_failure)
{
    open_guarded(&trial, "guarded");
    ADMIT(&trial, "a", .admission = ADMISSION_REFUSED, .error = SLICE("budget-exhausted"),
          .detail = SLICE("the day's"));
    assert_string_equal(trial_records(&trial), "step.failed a, saga.failing a, compensation.planned, saga.compensated");
    assert_true(slice_is(trial.records.items[0].error, "budget-exhausted"));
    assert_int_equal(trial.records.items[0].source, SOURCE_GUARD);
    assert_int_equal(trial.saga.used.calls, 0);
    trial_check_replay(&trial);
}

TEST(a_guard_never_calls_failed_what_may_have_happened)
{
    static const char *const errors[] = {"rate-limited", "breaker-open", "budget-exhausted"};
    struct call_trial t;

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        struct saga_input input = {
            .type = SAGA_INPUT_ADMITTED,
            .admitted = {.admission = ADMISSION_REFUSED, .error = slice_of(errors[i]), .retry_after_ms = 1000}};

        call_trial_open(&t, NULL, NULL, NULL);
        CALL(&t, "limited", "a");
        call_trial_admit(&t, "a", ADMISSION_GRANTED);
        call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
        assert_string_equal(call_trial_records(&t), "step.retrying a");
        t.now_ms = call_trial_step(&t, "a")->forward.due_ms;
        call_trial_takes(&t, call_trial_input(&t, input), ERR_OK,
                         i == 2 ? "step.unknown a, escalation.opened a" : "step.retrying a");
        assert_int_equal(call_trial_step(&t, "a")->forward.took_effect, TOOK_EFFECT_MAYBE);
        call_trial_close(&t);
    }
}

TEST(a_call_of_an_agent_is_refused_and_may_come_back)
{
    struct call_trial t;

    call_trial_open(&t, NULL, NULL, NULL);
    call_trial_takes(&t, CALL(&t, "limited", "a"), ERR_OK, "step.called a");
    call_trial_admit(&t, "a", ADMISSION_REFUSED);
    assert_string_equal(call_trial_records(&t), "step.failed a");
    assert_int_equal(call_trial_step(&t, "a")->forward.due_ms, t.now_ms + 1000);
    assert_int_equal(t.saga.used.calls, 0); /* the call was never begun */
    CALL(&t, "limited", "a", .turn = "2");
    assert_string_equal(call_trial_records(&t), "step.repeated a");
    call_trial_admit(&t, "a", ADMISSION_GRANTED);
    assert_string_equal(call_trial_records(&t), "step.intent a");
    assert_int_equal(t.saga.used.calls, 1);
    call_trial_close(&t);
}

/* --- the precheck --- */

TEST(an_effect_that_was_there_already_completes_the_step_and_is_never_undone)
{
    open_guarded(&trial, "guarded_once");
    ADMIT(&trial, "a", .admission = ADMISSION_DONE, .result = SLICE("{\"id\":\"theirs\"}"));
    assert_string_equal(trial_records(&trial), "step.completed a, step.intent b");
    assert_int_equal(trial_forward(&trial, "a")->took_effect, TOOK_EFFECT_BEFORE);
    assert_true(slice_is(trial_forward(&trial, "a")->result, "{\"id\":\"theirs\"}"));
    trial_play_to(&trial, "b failed", "step.failed b, saga.failing b, compensation.planned, saga.compensated");
    assert_int_equal(trial_forward(&trial, "a")->took_effect, TOOK_EFFECT_BEFORE);
    trial_check_replay(&trial);
}

TEST(a_call_that_must_not_be_made_fails_with_the_reason)
{
    open_guarded(&trial, "guarded");
    ADMIT(&trial, "a", .admission = ADMISSION_BLOCKED, .detail = SLICE("the order is closed"));
    assert_string_equal(trial_records(&trial), "step.failed a, saga.failing a, compensation.planned, saga.compensated");
    assert_true(slice_is(trial.records.items[0].error, "blocked"));
    assert_true(slice_is(trial.records.items[0].detail, "the order is closed"));
}

TEST(a_precheck_that_cannot_be_asked_is_tried_so_often_and_no_more)
{
    int tries = 0;

    open_guarded(&trial, "guarded");
    while (trial_forward(&trial, "a")->state != OP_FAILED) {
        trial.now_ms =
            trial_forward(&trial, "a")->due_ms > trial.now_ms ? trial_forward(&trial, "a")->due_ms : trial.now_ms;
        ADMIT(&trial, "a", .admission = ADMISSION_UNASKED, .detail = SLICE("no route"));
        assert_true(++tries <= 10);
    }
    assert_int_equal(tries, 10);
    assert_int_equal(trial.saga.phase, PHASE_ENDED);
    trial_check_replay(&trial);
}

TEST(the_finding_of_a_precheck_after_an_unknown_attempt_may_be_our_own_effect)
{
    open_guarded(&trial, "guarded");
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    trial_play(&trial, "a unknown");
    trial.now_ms = trial_forward(&trial, "a")->due_ms;
    ADMIT(&trial, "a", .admission = ADMISSION_DONE); /* the same key tells whose effect it is */
    assert_string_equal(trial_records(&trial), "step.intent a");
    trial_play(&trial, "a");
    assert_int_equal(trial_forward(&trial, "a")->took_effect, TOOK_EFFECT_YES);
    trial_check_replay(&trial);
}

TEST(an_abort_takes_back_what_still_waits_at_the_guards)
{
    open_guarded(&trial, "guarded");
    trial_takes(&trial, trial_abort(&trial), "saga.failing, step.failed a, compensation.planned, saga.compensated");
    ADMIT(&trial, "a", .admission = ADMISSION_GRANTED);
    assert_int_equal(trial.records.count, 0);
}

/* --- budgets --- */

TEST(a_defined_saga_stops_before_it_goes_over_its_budget)
{
    trial_begin(&trial, GUARDED("'budget':{'micros':100},", "{'id':'a','call':'priced'},{'id':'b','call':'priced'}"),
                "{}");
    assert_int_equal(trial.saga.used.micros, 60);
    trial_play_to(&trial, "a",
                  "step.completed a, step.failed b, saga.failing b, compensation.planned, compensation.intent a");
    assert_true(slice_is(trial.records.items[1].error, "budget-exhausted"));
    trial_check_replay(&trial);
}

TEST(money_is_given_back_when_it_certainly_was_not_spent)
{
    struct call_trial t;

    call_trial_open(&t, "{'micros':150}", NULL, NULL);
    CALL(&t, "paid", "a");
    assert_int_equal(t.saga.used.micros, 100);
    assert_int_equal(CALL(&t, "paid", "b"), ERR_BUDGET);
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    assert_int_equal(t.saga.used.micros, 0);
    assert_int_equal(CALL(&t, "paid", "b"), ERR_OK);
    call_trial_settle(&t, "b", OUTCOME_UNKNOWN, NULL); /* an amount that may have been spent counts as spent */
    assert_int_equal(t.saga.used.micros, 100);
    call_trial_close(&t);
}

/* --- the class that the arguments decide --- */

TEST(the_class_is_decided_once_and_frozen)
{
    trial_open(
        &trial,
        GUARDED("", "{'id':'a','call':'either','with':{'dry':true}},{'id':'b','call':'either','with':{'dry':false}}"));
    trial_start(&trial, "{}");
    assert_string_equal(trial_records(&trial), "saga.started, step.intent a"); /* the call only reads */
    assert_int_equal(trial_forward(&trial, "a")->effect, EFFECT_READ);
    trial_play_to(&trial, "a unknown", "step.retrying a");
    trial_play(&trial, "timer a, a");
    assert_int_equal(trial_forward(&trial, "a")->took_effect, TOOK_EFFECT_NO);
    assert_string_equal(trial_records(&trial),
                        "step.completed a, step.pending b"); /* for a once, these are two commits */
    trial_play_to(&trial, "timer b, b unknown", "step.unknown b, escalation.opened b");
    trial_check_replay(&trial);
}

TEST(a_class_that_cannot_be_decided_is_the_stricter_one)
{
    trial_begin(&trial, GUARDED("", "{'id':'a','call':'either','with':[1]}"), "{}"); /* .args.dry cannot be followed */
    assert_string_equal(trial_records(&trial), "saga.started, step.pending a");
    assert_int_equal(trial_forward(&trial, "a")->effect, EFFECT_ONCE);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
