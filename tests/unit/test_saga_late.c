/* Evidence that comes when everything was already settled is never lost, and never overturns anything silently. */
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"
#include "tests/unit/group_trial.h"

static void late(struct call_trial *t, const char *label, uint32_t attempt)
{
    struct saga_input input = {.type = SAGA_INPUT_SETTLED};

    while (!slice_is(t->saga.definition->steps[input.settled.step].id, label)) {
        input.settled.step++;
    }
    input.settled.attempt = attempt;
    input.settled.outcome = (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":9}")};
    input.settled.undo_args = SLICE("{\"id\":9}");
    assert_int_equal(call_trial_input(t, input), ERR_OK);
}

static enum err_code resolve(struct call_trial *t, bool happened)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = OPERATOR_RESOLVE;
    input.verdict.escalation = t->saga.escalation.number;
    input.verdict.round = saga_case_round(&t->saga);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked it up");
    input.verdict.happened = happened;
    if (happened) {
        input.verdict.result = SLICE("{\"id\":9}");
        input.verdict.undo_args = SLICE("{\"id\":9}");
    }
    return call_trial_input(t, input);
}

TEST(a_late_success_of_what_had_failed_is_asked_about)
{
    struct call_trial t;

    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    late(&t, "a", 1);
    assert_string_equal(call_trial_records(&t), "step.late a, escalation.opened a");
    assert_true(slice_is(t.saga.escalation.reason, "late-success"));
    assert_int_equal(call_trial_step(&t, "a")->forward.took_effect, TOOK_EFFECT_MAYBE);
    assert_int_equal(call_trial_complete(&t), ERR_UNSETTLED);
    late(&t, "a", 1); /* evidence that is delivered twice is still no person's word */
    assert_int_equal(t.records.count, 0);
    assert_int_equal(call_trial_step(&t, "a")->forward.state, OP_UNKNOWN);
    assert_int_not_equal(t.saga.escalation.number, 0);
    call_trial_close(&t);
}

TEST(a_person_says_what_stands_and_an_abort_undoes_it)
{
    struct call_trial t;

    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    late(&t, "a", 1);
    assert_int_equal(resolve(&t, true), ERR_OK);
    assert_string_equal(call_trial_records(&t), "escalation.resolved a, step.completed a");
    call_trial_takes(&t, call_trial_abort(&t), ERR_OK, "saga.failing, compensation.planned, compensation.intent a");
    call_trial_settle_undo(&t, "a");
    assert_int_equal(t.saga.end, SAGA_COMPENSATED);
    call_trial_close(&t);
}

TEST(a_late_effect_joins_the_plan_while_the_saga_is_being_undone)
{
    struct call_trial t;

    for (int happened = 0; happened <= 1; happened++) {
        call_trial_open(&t, NULL, NULL, NULL);
        CALL(&t, "strict", "a");
        call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
        CALL(&t, "strict", "b");
        call_trial_settle(&t, "b", OUTCOME_FAILED, NULL);
        call_trial_takes(&t, call_trial_abort(&t), ERR_OK, "saga.failing, compensation.planned, compensation.intent a");
        late(&t, "b", 1);
        assert_string_equal(call_trial_records(&t), "step.late b, escalation.opened b");
        call_trial_settle_undo(&t, "a");
        assert_int_equal(t.saga.phase, PHASE_UNDO); /* the saga does not end while an effect may stand */
        assert_int_equal(resolve(&t, happened), ERR_OK);
        if (happened) {
            assert_string_equal(call_trial_records(&t),
                                "escalation.resolved b, step.completed b, compensation.intent b");
            call_trial_settle_undo(&t, "b");
        } else {
            assert_string_equal(call_trial_records(&t), "escalation.resolved b, step.failed b, saga.compensated");
        }
        assert_int_equal(t.saga.end, SAGA_COMPENSATED);
        call_trial_close(&t);
    }
}

TEST(an_effect_that_was_undone_blindly_and_turns_up_is_asked_about)
{
    struct trial trial;
    struct saga_input input;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'voidable'}"), "{}");
    trial_play_to(&trial, "a, timer b, b unknown, undo b", "compensation.completed b, compensation.intent a");
    input = trial_outcome(&trial, SAGA_INPUT_SETTLED, trial_step(&trial, "b"), DIRECTION_DO, 1,
                          (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":\"9\"}")});
    trial_takes(&trial, trial_input(&trial, input), "step.late b, escalation.opened b");
    assert_true(slice_is(trial.saga.escalation.reason, "late-success"));
    trial_play(&trial, "undo a");
    assert_int_equal(trial.saga.phase, PHASE_UNDO);
    /* The step is undone again. */
    trial_takes(&trial, trial_operator(&trial, OPERATOR_RETRY),
                "escalation.resolved b, compensation.reopened b, compensation.intent b");
    trial_play(&trial, "undo b");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    trial_check_replay(&trial);
    trial_close(&trial);
}

TEST(a_late_effect_that_cannot_be_undone_is_a_debt)
{
    struct trial trial;
    struct saga_input input;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'mail'}"), "{}");
    trial_play(&trial, "a, timer b, b failed");
    input = trial_outcome(&trial, SAGA_INPUT_SETTLED, trial_step(&trial, "b"), DIRECTION_DO, 1,
                          (struct outcome){.kind = OUTCOME_COMPLETED});
    trial_takes(&trial, trial_input(&trial, input), "step.late b, escalation.opened b");
    trial_play(&trial, "undo a");
    assert_int_equal(trial_resolve(&trial, true, NULL), ERR_CONFLICT);
    trial_takes(&trial, trial_operator(&trial, OPERATOR_WAIVE), "escalation.resolved b, step.waived b, saga.abandoned");
    assert_int_equal(trial.records.items[2].debt_count, 1);
    trial_check_replay(&trial);
    trial_close(&trial);
}

TEST(a_run_that_rests_is_woken_by_it)
{
    struct call_trial t;

    call_trial_run(&t);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    t.now_ms += 60000;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_string_equal(call_trial_records(&t), "run.rested");
    late(&t, "a", 1);
    assert_string_equal(call_trial_records(&t), "run.woken, step.late a, escalation.opened a");
    assert_int_equal(saga_escalation_actions(&t.saga), BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_RETRY));
    assert_int_equal(resolve(&t, true), ERR_OK);
    call_trial_close(&t);
}

/* The call failed and was called again, and a guard held that back. Then the first call turns out to have happened. */
TEST(a_late_success_under_a_key_that_was_forgotten_is_not_called_again)
{
    struct call_trial t;

    call_trial_run(&t);
    CALL(&t, "limited", "a");
    call_trial_admit(&t, "a", ADMISSION_GRANTED);
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    CALL(&t, "limited", "a");
    call_trial_admit(&t, "a", ADMISSION_REFUSED);
    t.now_ms += 61000; /* the receiver knows its keys for a minute */
    late(&t, "a", 1);
    assert_string_equal(call_trial_records(&t), "step.late a, escalation.opened a");
    assert_int_equal(call_trial_operator(&t, OPERATOR_RETRY), ERR_CONFLICT);
    assert_int_equal(resolve(&t, true), ERR_OK);
    call_trial_close(&t);
}

/* The other call was made, too. The key is as old as the first call, also for the calls of another round. */
TEST(a_late_success_of_an_earlier_round_makes_the_key_as_old_as_that)
{
    struct call_trial t;

    call_trial_run(&t);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    t.now_ms += 50000;
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    late(&t, "a", 1);
    assert_int_equal(call_trial_operator(&t, OPERATOR_RETRY), ERR_OK); /* the receiver knows the key for ten seconds */
    call_trial_timer(&t, "a");
    assert_string_equal(call_trial_records(&t), "step.intent a");
    t.now_ms += 11000;
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    assert_string_equal(call_trial_records(&t), "step.unknown a, escalation.opened a");
    assert_int_equal(call_trial_operator(&t, OPERATOR_RETRY), ERR_CONFLICT);
    assert_int_equal(resolve(&t, false), ERR_OK);
    call_trial_close(&t);
}

/* The record of the failure had expired. Repeats now get what the person says about the operation. */
TEST(a_late_success_of_what_has_expired_is_not_made_again)
{
    struct call_trial t;

    call_trial_run(&t);
    CALL(&t, "again", "a", "{'n':1}", .emission = "e1");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    t.now_ms += 2 * 3600 * 1000;
    CALL(&t, "again", "a", "{'n':1}", .emission = "e1");
    assert_string_equal(call_trial_records(&t), "operation.expired a, operation.duplicate a (expired)");
    late(&t, "a", 1);
    assert_int_equal(resolve(&t, true), ERR_OK);
    assert_false(operation_has_expired(&t.saga, 0, t.now_ms + 60000));
    CALL(&t, "again", "a", "{'n':1}", .emission = "e2");
    assert_string_equal(call_trial_records(&t), "operation.duplicate a (replayed)");
    assert_true(operation_has_expired(&t.saga, 0, t.now_ms + 2 * 3600 * 1000));
    call_trial_close(&t);
}

TEST(a_completed_step_is_never_overturned)
{
    struct call_trial t;
    struct saga_input input = {.type = SAGA_INPUT_SETTLED,
                               .settled = {.attempt = 1, .outcome = {.kind = OUTCOME_FAILED, .error = SLICE("no")}}};

    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(call_trial_input(&t, input), ERR_OK);
    assert_int_equal(t.records.count, 0);
    late(&t, "a", 1);
    assert_int_equal(t.records.count, 0);
    call_trial_close(&t);
}

/* Opens a saga in which `act` is undone after the abort. A person has answered for the compensator, and then the
 * compensator's own answer comes. */
static void open_undone_by_word(struct trial *trial, bool happened)
{
    trial_open(
        trial,
        TRIAL_SAGA("{'id':'before','call':'keyed'},{'id':'act','call':'by_checked'},{'id':'next','call':'once'}"));
    trial_start(trial, "{}");
    trial_play(trial, "before, act, timer next, next failed, undo act unknown");
    while (step_undo(&trial->saga.steps[1])->state == OP_PROBING) {
        trial_play(trial, "probe undo act unknown");
    }
    assert_int_equal(trial_resolve(trial, happened, NULL), ERR_OK);
}

static void hears(struct trial *trial, enum saga_input_type type, enum direction direction, enum outcome_kind kind)
{
    uint32_t step = trial_step(trial, "act");
    const struct operation *op =
        direction == DIRECTION_UNDO ? step_undo(&trial->saga.steps[step]) : &trial->saga.steps[step].forward;
    struct outcome outcome = {.kind = kind};

    if (kind != OUTCOME_COMPLETED) {
        outcome.error = SLICE("http-404");
        outcome.detail = SLICE("There is no such thing.");
    }
    assert_int_equal(trial_input(trial, trial_outcome(trial, type, step, direction, op->attempts, outcome)), ERR_OK);
}

TEST(an_undo_that_a_person_denied_and_that_succeeds_is_asked_about_anew)
{
    struct trial trial;
    uint64_t before;

    open_undone_by_word(&trial, false);
    before = trial.saga.escalation.number;
    assert_int_not_equal(before, 0);
    hears(&trial, SAGA_INPUT_SETTLED, DIRECTION_UNDO, OUTCOME_COMPLETED);
    assert_string_equal(trial_records(&trial), "compensation.late act, escalation.resolved act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "late-success"));
    assert_int_equal(trial.saga.escalation.number, before); /* the same case is asked again */
    assert_int_equal(saga_case_round(&trial.saga), 3);
    assert_int_equal(trial_resolve(&trial, true, NULL), ERR_OK);
    trial_play(&trial, "undo before");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    trial_check_replay(&trial);
    trial_close(&trial);
}

TEST(an_undo_that_a_person_vouched_for_and_that_failed_is_asked_about)
{
    struct trial trial;

    open_undone_by_word(&trial, true);
    hears(&trial, SAGA_INPUT_SETTLED, DIRECTION_UNDO, OUTCOME_FAILED);
    assert_string_equal(trial_records(&trial), "compensation.late act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "late-failure"));
    trial_play(&trial, "undo before");
    assert_int_equal(trial.saga.phase, PHASE_UNDO); /* the saga does not end while the effect may stand */
    assert_int_equal(trial_resolve(&trial, false, NULL), ERR_OK);
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    trial_play(&trial, "undo act");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    trial_check_replay(&trial);
    trial_close(&trial);
}

/* Opens a saga in which `act`, of class `once`, was unknown, and a person has said its outcome. */
static void open_said(struct trial *trial, bool happened)
{
    trial_open(
        trial,
        TRIAL_SAGA("{'id':'before','call':'keyed'},{'id':'act','call':'once_probed'},{'id':'next','call':'keyed'}"));
    trial_start(trial, "{}");
    trial_play(trial, "before, timer act, act unknown");
    while (trial->saga.steps[1].forward.state == OP_PROBING) {
        trial_play(trial, "probe act unknown");
    }
    assert_int_equal(trial_resolve(trial, happened, happened ? "{'id':'seen'}" : NULL), ERR_OK);
}

TEST(a_probe_that_contradicts_a_person_is_asked_about)
{
    struct trial trial;

    open_said(&trial, false);
    assert_int_equal(trial.saga.phase, PHASE_UNDO);
    hears(&trial, SAGA_INPUT_PROBED, DIRECTION_DO, OUTCOME_COMPLETED);
    assert_string_equal(trial_records(&trial), "step.late act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "late-success"));
    assert_int_equal(trial.records.items[0].source, SOURCE_PROBE);
    trial_play(&trial, "undo before");
    assert_int_equal(trial.saga.phase, PHASE_UNDO);
    trial_check_replay(&trial);
    trial_close(&trial);
}

TEST(a_denied_probe_of_an_effect_that_was_settled_wrongly_is_a_case)
{
    const struct outcome denied = {.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE(OUTCOME_EGRESS_DENIED)};
    struct trial trial;
    uint32_t act;

    open_said(&trial, true);
    act = trial_step(&trial, "act");
    hears(&trial, SAGA_INPUT_SETTLED, DIRECTION_DO, OUTCOME_FAILED);
    assert_true(slice_is(trial.saga.escalation.reason, "late-failure"));
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_OK);
    assert_int_equal(trial_operator(&trial, OPERATOR_COMPENSATE), ERR_OK);
    trial_takes(&trial,
                trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_PROBED, act, DIRECTION_DO,
                                                  trial.saga.steps[act].forward.probes + 1, denied)),
                "step.probed act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "egress-denied"));
    assert_true(saga_escalation_actions(&trial.saga) & BIT(OPERATOR_RESOLVE));
    trial_check_replay(&trial);
    trial_close(&trial);
}

TEST(an_effect_that_a_person_vouched_for_and_did_not_happen_is_asked_about)
{
    struct trial trial;

    open_said(&trial, true);
    assert_string_equal(trial_records(&trial), "escalation.resolved act, step.completed act, step.intent next");
    hears(&trial, SAGA_INPUT_SETTLED, DIRECTION_DO, OUTCOME_FAILED);
    assert_string_equal(trial_records(&trial), "step.late act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "late-failure"));
    assert_true(slice_is(trial.records.items[0].error, "http-404"));
    trial_play(&trial, "next");
    assert_int_equal(trial.saga.phase, PHASE_FORWARD); /* the saga does not end well before a person has spoken */
    trial_takes(&trial, trial_resolve(&trial, false, NULL),
                "escalation.resolved act, step.failed act, saga.failing act, "
                "compensation.planned, compensation.intent next");
    trial_check_replay(&trial);
    trial_close(&trial);
}

/* `next` is pending: it was not sent, and it is no longer certain that the step it depends on is done. */
TEST(what_comes_after_it_waits_until_it_is_over_again)
{
    struct saga_input again = {.type = SAGA_INPUT_OPERATOR,
                               .verdict = {.action = OPERATOR_RETRY, .accept_double = true}};
    struct trial trial;

    trial_open(
        &trial,
        TRIAL_SAGA("{'id':'before','call':'keyed'},{'id':'act','call':'once_probed'},{'id':'next','call':'once'}"));
    trial_start(&trial, "{}");
    trial_play(&trial, "before, timer act, act unknown");
    while (trial.saga.steps[1].forward.state == OP_PROBING) {
        trial_play(&trial, "probe act unknown");
    }
    trial_takes(&trial, trial_resolve(&trial, true, "{'id':'seen'}"),
                "escalation.resolved act, step.completed act, step.pending next");
    hears(&trial, SAGA_INPUT_SETTLED, DIRECTION_DO, OUTCOME_FAILED);
    again.verdict.escalation = trial.saga.escalation.number;
    again.verdict.round = saga_case_round(&trial.saga);
    again.verdict.actor = SLICE("ann");
    again.verdict.note = SLICE("once more");
    assert_int_equal(trial_input(&trial, again), ERR_OK);
    assert_int_equal(trial.saga.escalation.number, 0);
    assert_null(strstr(trial_wants(&trial), "next"));
    trial_play(&trial, "timer next");
    assert_int_equal(trial.records.count, 0);
    trial_play_to(&trial, "timer act, act, timer next", "step.intent next");
    trial_check_replay(&trial);
    trial_close(&trial);
}

/* The elements run one at a time. The second has begun, and the first is in doubt again. */
TEST(an_element_that_is_in_doubt_again_does_not_break_the_count_of_its_group)
{
    struct saga_input again = {
        .type = SAGA_INPUT_OPERATOR,
        .verdict = {
            .action = OPERATOR_RETRY, .accept_double = true, .actor = SLICE("ann"), .note = SLICE("once more")}};
    struct trial trial;
    uint32_t first;

    trial_begin(&trial, TRIAL_SAGA("{'id':'each','call':'once_probed','for_each':'${ .input.list }'}"),
                "{'list':[1,2]}");
    first = trial.saga.steps[0].first;
    trial_play(&trial, "timer each#0, each#0 unknown");
    while (trial.saga.steps[first].forward.state == OP_PROBING) {
        trial_play(&trial, "probe each#0 unknown");
    }
    assert_int_equal(trial_resolve(&trial, true, "{'id':'seen'}"), ERR_OK);
    trial_play_to(&trial, "timer each#1", "step.intent each#1");
    assert_int_equal(
        trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, first, DIRECTION_DO, 1,
                                          (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-404")})),
        ERR_OK);
    assert_string_equal(trial_records(&trial), "step.late each#0, escalation.opened each#0");
    assert_true(saga_is_sound(&trial.saga));
    again.verdict.escalation = trial.saga.escalation.number;
    again.verdict.round = saga_case_round(&trial.saga);
    assert_int_equal(trial_input(&trial, again), ERR_OK); /* both are under way now, because a person wanted that */
    assert_true(saga_is_sound(&trial.saga));
    trial_play(&trial, "each#1, timer each#0");
    assert_true(saga_is_sound(&trial.saga));
    trial_play(&trial, "each#0");
    assert_int_equal(trial.saga.end, SAGA_COMPLETED);
    trial_check_replay(&trial);
    trial_close(&trial);
}

/* A person has vouched for one step of a child. The child is over and `next` has begun, and then the step turns out not
 * to be done. */
static void deny_in_a_child_that_is_over(struct trial *trial, const char *document)
{
    uint32_t act;

    trial_begin(trial, document, "{}");
    act = trial_step(trial, "child/act");
    trial_play(trial, "timer child/act, child/act unknown");
    while (trial->saga.steps[act].forward.state == OP_PROBING) {
        trial_play(trial, "probe child/act unknown");
    }
    assert_int_equal(trial_resolve(trial, true, "{'id':'seen'}"), ERR_OK);
    assert_string_equal(
        trial_records(trial),
        "escalation.resolved child/act, step.completed child/act, step.completed child, step.intent next");
    assert_int_equal(
        trial_input(trial, trial_outcome(trial, SAGA_INPUT_SETTLED, act, DIRECTION_DO, 1,
                                         (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-404")})),
        ERR_OK);
    assert_string_equal(trial_records(trial), "step.late child/act, escalation.opened child/act");
}

TEST(an_effect_that_did_not_happen_in_an_ended_child_fails_the_group_around_it)
{
    struct trial trial;

    deny_in_a_child_that_is_over(&trial,
                                 SAGAS("{'id':'child','saga':'c','on_failure':'continue'},{'id':'next','call':'keyed'}",
                                       "{'name':'c','steps':[{'id':'act','call':'once_probed'}]}"));
    trial_takes(&trial, trial_resolve(&trial, false, NULL),
                "escalation.resolved child/act, step.failed child/act, saga.failing child/act");
    trial_play(&trial, "next, undo next");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    trial_close_sound(&trial);
}

/* A step that a person has vouched for is not undone without asking that person, even though it could be undone
 * blindly. */
TEST(an_effect_that_could_be_undone_blindly_is_asked_about_first)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    struct trial trial;

    trial_begin(&trial,
                "{'tools':[{'name':'blind','builtin':{'do':'echo'},'effect':'once','probe':{'builtin':{'do':'echo'},"
                "'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no }'},'visibility':'5s',"
                "'give_up_after':'1h'},'compensate':{'tool':'undo','with':{'key':'${ .key }'},'tolerates_absent':true,"
                "'voids_key':true}},{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}],'sagas':[{'name':"
                "'trial','steps':[{'id':'act','call':'blind'},{'id':'next','call':'blind'}]}]}",
                "{}");
    trial_play(&trial, "timer act, act unknown, probe act unknown"); /* and is probed again after a while */
    input.verdict.action = OPERATOR_RESOLVE;
    input.verdict.key = trial.saga.steps[0].forward.key;
    input.verdict.happened = true;
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("it is in the list");
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    hears(&trial, SAGA_INPUT_SETTLED, DIRECTION_DO, OUTCOME_FAILED);
    assert_string_equal(trial_records(&trial), "step.late act, escalation.opened act");
    assert_int_equal(trial_resolve(&trial, true, "{'id':'seen'}"), ERR_OK);
    trial_play(&trial, "timer next, next");
    assert_int_equal(trial.saga.end, SAGA_COMPLETED);
    trial_close_sound(&trial);
}

/* A person had the step probed once more. The answer ends the probing, and the person still decides what becomes of the
 * step. */
TEST(a_debt_that_is_found_too_late_is_not_asked_for_again)
{
    struct saga_input by_hand = {.type = SAGA_INPUT_OPERATOR,
                                 .verdict = {.action = OPERATOR_RESOLVE,
                                             .undone = true,
                                             .actor = SLICE("ann"),
                                             .note = SLICE("given back at the counter")}};
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'before','call':'keyed'},{'id':'act','call':'mail_probed'}"), "{}");
    trial_play(&trial, "before, timer act, act unknown");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    while (trial.saga.steps[1].forward.state == OP_PROBING) {
        trial_play(&trial, "probe act unknown");
    }
    by_hand.verdict.key = trial.saga.steps[0].forward.key;
    trial_takes(&trial, trial_input(&trial, by_hand), "step.undone before");
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_OK);
    trial_play_to(&trial, "probe act", "step.unknown act");
    assert_string_equal(trial_wants(&trial), "");
    assert_int_not_equal(trial.saga.escalation.number, 0);
    assert_int_equal(trial_resolve(&trial, true, NULL), ERR_CONFLICT);
    assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
    assert_int_equal(trial.saga.end, SAGA_ABANDONED);
    trial_close_sound(&trial);
}

TEST_PROGRAM(NULL, NULL)
