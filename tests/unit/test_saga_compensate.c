/* Undoing: the right steps, in exactly the reverse order, with each class of compensator; and which steps wait for
 * which. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define THREE TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'idempotent'},{'id':'c','call':'keyed'}")
#define DIAMOND                                                                                                        \
    TRIAL_SAGA(                                                                                                        \
        "{'id':'a','call':'keyed'},{'id':'b','call':'keyed','after':['a']},{'id':'c','call':'keyed','after':['a']},"   \
        "{'id':'d','call':'keyed','after':['b','c']}")

/* Runs the saga until this step is in flight and everything before it is completed. */
static void open_until(struct trial *trial, const char *document, const char *step)
{
    uint32_t until;

    trial_begin(trial, document, "{}");
    until = trial_step(trial, step);
    for (uint32_t i = 0; i < until; i++) {
        char id[65];

        (void)snprintf(id, sizeof(id), "%.*s", SLICE_ARG(trial->definition->steps[i].id));
        trial_settle(trial, id, OUTCOME_COMPLETED);
    }
}

static struct trial trial;

TEST(n_effects_take_n_plus_one_turns)
{
    trial_begin(&trial, THREE, "{}");
    assert_string_equal(trial_records(&trial), "saga.started, step.intent a");
    trial_play_to(&trial, "a", "step.completed a, step.intent b");
    trial_play_to(&trial, "b", "step.completed b, step.intent c");
    trial_play_to(&trial, "c", "step.completed c, saga.completed");
    assert_string_equal(trial_wants(&trial), "");
}

TEST(effects_are_undone_in_reverse)
{
    open_until(&trial, THREE, "c");
    trial_play_to(&trial, "c failed", "step.failed c, saga.failing c, compensation.planned, compensation.intent b");
    assert_string_equal(trial_wants(&trial), "call undo b 1");
    trial_play_to(&trial, "undo b", "compensation.completed b, compensation.intent a");
    trial_play_to(&trial, "undo a", "compensation.completed a, saga.compensated");
    assert_int_equal(saga_took_effect(&trial.saga, 0), TOOK_EFFECT_UNDONE);
    assert_int_equal(saga_took_effect(&trial.saga, 2), TOOK_EFFECT_NO);
    assert_string_equal(step_status_name(saga_step_status(&trial.saga, 0)), "compensated");
}

TEST(a_failure_with_nothing_done_ends_compensated)
{
    open_until(&trial, THREE, "a");
    trial_play_to(&trial, "a failed", "step.failed a, saga.failing a, compensation.planned, saga.compensated");
}

TEST(side_by_side_the_one_that_began_last_is_undone_first)
{
    trial_begin(&trial, DIAMOND, "{}");
    trial_play_to(&trial, "a", "step.completed a, step.intent b, step.intent c");
    trial_play_to(&trial, "c", "step.completed c");
    trial_play_to(&trial, "b", "step.completed b, step.intent d");
    trial_play_to(&trial, "d failed", "step.failed d, saga.failing d, compensation.planned, compensation.intent c");
    trial_play_to(&trial, "undo c", "compensation.completed c, compensation.intent b");
    trial_play_to(&trial, "undo b", "compensation.completed b, compensation.intent a");
}

TEST(compensation_waits_for_calls_in_flight)
{
    trial_begin(&trial, DIAMOND, "{}");
    trial_play_to(&trial, "a, b failed", "step.failed b, saga.failing b");
    assert_string_equal(trial_wants(&trial), "call c 1");
    trial_play_to(&trial, "c unknown", "step.retrying c"); /* the class decides how an unknown outcome goes on */
    trial_play_to(&trial, "timer c, c", "step.completed c, compensation.planned, compensation.intent c");
}

TEST(a_call_that_surely_did_not_happen_is_stopped)
{
    trial_begin(&trial, DIAMOND, "{}");
    trial_play_to(&trial, "a, c retry, b failed",
                  "step.failed b, saga.failing b, step.failed c, compensation.planned, compensation.intent a");
    assert_true(slice_is(trial.records.items[2].error, "stopped"));
    trial_close_sound(&trial);

    trial_begin(&trial, DIAMOND, "{}"); /* b is in flight, and is not tried again once its outcome is certain */
    trial_play_to(&trial, "a, b failed, c retry", "step.failed c, compensation.planned, compensation.intent a");
}

TEST(a_failed_compensation_holds_up_only_what_it_depends_on)
{
    trial_begin(&trial, DIAMOND, "{}");
    trial_play_to(&trial, "a, b, c, d failed, undo c failed",
                  "compensation.failed c, escalation.opened c, compensation.intent b");
    assert_int_equal(saga_status(&trial.saga), SAGA_ESCALATED);
    trial_play_to(&trial, "undo b", "compensation.completed b"); /* a waits for c */
    assert_string_equal(trial_wants(&trial), "");
    trial_takes(&trial, trial_operator(&trial, OPERATOR_RETRY),
                "escalation.resolved c, compensation.reopened c, compensation.intent c");
    trial_play_to(&trial, "undo c", "compensation.completed c, compensation.intent a");
}

TEST(one_question_at_a_time)
{
    trial_begin(&trial, DIAMOND, "{}");
    trial_play_to(&trial, "a, b, c, d failed, undo c failed, undo b failed", "compensation.failed b");
    assert_int_equal(trial.saga.escalation.step, 2);
    trial_takes(&trial, trial_operator(&trial, OPERATOR_WAIVE),
                "escalation.resolved c, step.waived c, escalation.opened b");
    trial_takes(&trial, trial_operator(&trial, OPERATOR_WAIVE),
                "escalation.resolved b, step.waived b, compensation.intent a");
    trial_play_to(&trial, "undo a", "compensation.completed a, saga.abandoned");
    assert_int_equal(trial.records.items[1].debt_count, 2);
}

/* --- classes of compensators --- */

static const struct {
    const char *name, *tool;
    enum outcome_kind outcome;
    const char *records;
} undos[] = {
    {"idempotent: called again", "keyed", OUTCOME_UNKNOWN, "compensation.retrying act"},
    {"idempotent: a certain nothing is tried again", "keyed", OUTCOME_RETRY, "compensation.retrying act"},
    {"refused for good: a person", "keyed", OUTCOME_FAILED, "compensation.failed act, escalation.opened act"},
    {"keyed: called again with its key", "by_keyed", OUTCOME_UNKNOWN, "compensation.retrying act"},
    {"checked: asked first", "by_checked", OUTCOME_UNKNOWN, "compensation.unknown act"},
    {"checked: accepted, the probe completes it", "by_checked", OUTCOME_RUNNING, "compensation.accepted act"},
    {"checked: a certain nothing needs no probe", "by_checked", OUTCOME_RETRY, "compensation.retrying act"},
};

static void open_undo(struct trial *on, const char *tool)
{
    char document[8192];

    (void)snprintf(document, sizeof(document), TRIAL_SAGA("{'id':'act','call':'%s'},{'id':'next','call':'idempotent'}"),
                   tool);
    open_until(on, document, "next");
    trial_play(on, "next failed");
    assert_string_equal(trial_wants(on), "call undo act 1");
}

TEST(a_compensation_goes_by_its_own_class)
{
    for (size_t i = 0; i < COUNT_OF(undos); i++) {
        open_undo(&trial, undos[i].tool);
        trial_settle_undo(&trial, "act", undos[i].outcome);
        if (strcmp(trial_records(&trial), undos[i].records) != 0) {
            fail_msg("%s: %s", undos[i].name, trial_records(&trial));
        }
        trial_close_sound(&trial);
    }
}

TEST(a_compensation_is_not_bounded_by_attempts_but_gives_up_in_time)
{
    int rounds = 0;

    open_undo(&trial, "by_checked"); /* the undo gives up after ten minutes */
    while (saga_status(&trial.saga) == SAGA_COMPENSATING) {
        trial_play(&trial, "undo act retry");
        rounds++;
        if (step_undo(&trial.saga.steps[0])->state == OP_RETRYING) {
            trial_play(&trial, "timer undo act");
        }
        assert_true(rounds < 100);
    }
    assert_true(rounds > 5);
    assert_int_equal(trial.now_ms, TRIAL_START_MS + 600000);
    assert_string_equal(trial_records(&trial), "compensation.failed act, escalation.opened act");
    assert_true(slice_is(trial.records.items[0].error, "gave-up")); /* without another call at the last moment */
    assert_true(slice_is(trial.saga.escalation.reason, "compensation-failed"));
    assert_int_equal(saga_took_effect(&trial.saga, 0), TOOK_EFFECT_YES);
}

static void settle_undo_unsent(struct trial *on)
{
    struct outcome outcome = {.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE("refused")};

    assert_int_equal(trial_input(on, trial_outcome(on, SAGA_INPUT_SETTLED, 0, DIRECTION_UNDO,
                                                   step_undo(&on->saga.steps[0])->attempts, outcome)),
                     ERR_OK);
}

/* The tries that `compensate` allows hold. After them a person is asked, and another round by the person has as many
 * tries again. */
TEST(a_compensation_ends_after_the_tries_it_was_given)
{
    static const struct {
        const char *name, *compensate;
        enum outcome_kind outcome;
        bool unsent, maybe;
        int tries;
    } cases[] = {
        {"calls that were answered", "'tool':'undo','retry':{'max_attempts':2}", OUTCOME_RETRY, false, false, 2},
        {"calls that may have arrived", "'tool':'undo','retry':{'max_attempts':3}", OUTCOME_UNKNOWN, false, true, 3},
        {"a single call", "'tool':'undo','retry':{'max_attempts':1}", OUTCOME_RETRY, false, false, 1},
        {"tries that never left", "'tool':'undo','retry':{'max_unsent':2}", OUTCOME_RETRY, true, false, 2},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char document[8192];

        (void)snprintf(document, sizeof(document),
                       TRIAL_SAGA("{'id':'act','call':'keyed','compensate':{%s}},{'id':'next','call':'idempotent'}"),
                       cases[i].compensate);
        open_until(&trial, document, "next");
        trial_play(&trial, "next failed");
        for (int round = 0; round < 2; round++) {
            int tries = 0;

            do {
                if (step_undo(&trial.saga.steps[0])->state == OP_RETRYING) {
                    trial_play(&trial, "timer undo act");
                }
                if (cases[i].unsent) {
                    settle_undo_unsent(&trial);
                } else {
                    trial_settle_undo(&trial, "act", cases[i].outcome);
                }
                tries++;
            } while (step_undo(&trial.saga.steps[0])->state == OP_RETRYING && tries < 9);
            if (tries != cases[i].tries || saga_status(&trial.saga) != SAGA_ESCALATED) {
                fail_msg("%s: %d tries, %s", cases[i].name, tries, trial_records(&trial));
            }
            assert_true(slice_is(trial.saga.escalation.reason, "compensation-failed"));
            assert_int_equal(step_undo(&trial.saga.steps[0])->took_effect == TOOK_EFFECT_MAYBE, cases[i].maybe);
            assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
        }
        trial_play_until(&trial, "undo act", SAGA_COMPENSATED);
        trial_close_sound(&trial);
    }
}

TEST(a_keyed_compensation_does_not_leave_after_its_window)
{
    open_undo(&trial, "by_keyed");
    trial_play(&trial, "undo act unknown");
    trial.now_ms = TRIAL_START_MS + 60000;
    trial_play_to(&trial, "timer undo act", "compensation.failed act, escalation.opened act");
    assert_true(trial.records.items[0].maybe);
    assert_string_equal(step_status_name(saga_step_status(&trial.saga, 0)), "compensation_failed");
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_CONFLICT); /* the retry may be a second refund */
    trial_takes(&trial, trial_resolve(&trial, true, NULL),
                "escalation.resolved act, compensation.completed act, saga.compensated");
}

TEST(a_checked_compensation_is_called_again_only_after_absent)
{
    open_undo(&trial, "by_checked");
    trial_play_to(&trial, "undo act unknown, probe undo act absent", "compensation.probed act");
    trial_play_to(&trial, "probe undo act absent", "compensation.retrying act");
    trial_play_to(&trial, "timer undo act", "compensation.intent act");
    trial_play_to(&trial, "undo act unknown, probe undo act", "compensation.completed act, saga.compensated");
}

TEST(a_refusal_after_a_maybe_is_no_proof_that_the_undo_did_not_happen)
{
    open_undo(&trial, "by_keyed");
    trial_play_to(&trial, "undo act unknown, timer undo act, undo act failed",
                  "compensation.failed act, escalation.opened act");
    assert_true(trial.records.items[0].maybe);
    assert_true(saga_escalation_actions(&trial.saga) & BIT(OPERATOR_RESOLVE));
}

/* --- arguments --- */

TEST(the_arguments_of_an_undo_are_frozen_with_the_success)
{
    open_undo(&trial, "keyed");
    assert_true(slice_is(step_undo(&trial.saga.steps[0])->args, "{\"id\":\"act-1\"}"));
    assert_false(uuid_equal(&step_undo(&trial.saga.steps[0])->key.uuid, &trial.saga.steps[0].forward.key.uuid));
}

TEST(an_undo_whose_arguments_cannot_be_made_is_a_question)
{
    struct saga_input input;
    struct outcome odd = {.kind = OUTCOME_COMPLETED,
                          .result = SLICE("{\"id\":7}")}; /* the compensator wants a string */

    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'strict','with':{'n':1}},{'id':'next','call':'idempotent'}"),
                "{}");
    assert_int_equal(trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, odd)), ERR_OK);
    trial_play(&trial, "next failed");
    assert_string_equal(
        trial_records(&trial),
        "step.failed next, saga.failing next, compensation.planned, compensation.failed act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "compensation-arguments"));
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_INVALID); /* the arguments would still be wrong */
    input = (struct saga_input){.type = SAGA_INPUT_OPERATOR};
    input.verdict.action = OPERATOR_RETRY;
    input.verdict.escalation = trial.saga.escalation.number;
    input.verdict.round = saga_case_round(&trial.saga);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("by hand");
    input.verdict.args = SLICE("{\"id\":8}");
    assert_int_equal(trial_input(&trial, input), ERR_INVALID);
    input.verdict.args = SLICE("{\"id\":\"7\"}");
    trial_takes(&trial, trial_input(&trial, input),
                "escalation.resolved act, compensation.reopened act, compensation.intent act");
    assert_true(slice_is(step_undo(&trial.saga.steps[0])->args, "{\"id\":\"7\"}"));
    assert_int_equal(step_undo(&trial.saga.steps[0])->generation, 0);
    trial_play_to(&trial, "undo act", "compensation.completed act, saga.compensated");
}

TEST(a_maybe_is_undone_blind_with_what_there_is)
{
    char key[UUID_TEXT_BYTES];

    open_until(&trial, TRIAL_SAGA("{'id':'first','call':'keyed'},{'id':'act','call':'voidable'}"), "act");
    trial_play_to(&trial, "timer act, act unknown",
                  "step.unknown act, saga.failing act, compensation.planned, compensation.intent act");
    uuid_text(&trial.saga.steps[1].forward.key.uuid, key);
    assert_true(
        slice_equal(step_undo(&trial.saga.steps[1])->args, arena_printf(&trial.arena, "{\"key\":\"%s\"}", key)));
    trial_play(&trial, "undo act, undo first");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
}

/* --- deadline, abort, and the point of no return --- */

TEST(the_deadline_ends_forward_work_only)
{
    open_until(&trial, TRIAL_SAGA_WITH("'deadline':'5s'", "{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"), "b");
    assert_string_equal(trial_wants(&trial), "call b 1, timer - 0 +5000");
    trial.now_ms += 4999;
    {
        struct saga_input early = {.type = SAGA_INPUT_TIMER, .timer = {.step = STEP_NONE}};

        trial_takes(&trial, trial_input(&trial, early), "");
    }
    trial_play_to(&trial, "timer -", "saga.failing");
    assert_string_equal(trial_wants(&trial), "call b 1");
    trial_play_to(&trial, "b", "step.completed b, compensation.planned, compensation.intent b");
}

TEST(a_terminal_step_in_flight_decides_what_an_abort_means)
{
    open_until(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'end','call':'mail'}"), "end");
    trial_play(&trial, "timer end");
    trial_takes(&trial, trial_abort(&trial), "saga.failing");
    trial_takes(&trial, trial_abort(&trial), ""); /* a second abort changes nothing */
    trial_play_to(&trial, "end", "step.completed end, saga.completed");
    assert_int_equal(trial_abort(&trial), ERR_PAST_RETURN);
    trial_close_sound(&trial);

    open_until(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'end','call':'mail'}"), "end");
    trial_play(&trial, "timer end");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    trial_play_to(&trial, "end failed", "step.failed end, compensation.planned, compensation.intent a");
    trial_play(&trial, "undo a");
    assert_int_equal(trial_abort(&trial), ERR_ENDED);
}

TEST(the_verdict_on_a_terminal_step_holds_up_everything)
{
    open_until(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'end','call':'mail'}"), "end");
    trial_play_until(&trial, "timer end, end unknown", SAGA_ESCALATED);
    trial_takes(&trial, trial_abort(&trial), "saga.failing, compensation.planned");
    assert_string_equal(trial_wants(&trial), ""); /* the undo of a waits until it is known whether the mail went out */
    trial_takes(&trial, trial_resolve(&trial, true, NULL),
                "escalation.resolved end, step.completed end, saga.completed");
    trial_close_sound(&trial);

    open_until(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'end','call':'mail'}"), "end");
    trial_play(&trial, "timer end, end unknown");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    trial_takes(&trial, trial_resolve(&trial, false, NULL),
                "escalation.resolved end, step.failed end, compensation.intent a");
}

TEST(an_abort_before_anything_was_sent_sends_nothing)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'once'}"), "{}");
    assert_string_equal(trial_wants(&trial), "timer act 0"); /* pending: the key is durable, the intent is not */
    trial_takes(&trial, trial_abort(&trial), "saga.failing, step.failed act, compensation.planned, saga.compensated");
    trial_play_to(&trial, "timer act", "");
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
