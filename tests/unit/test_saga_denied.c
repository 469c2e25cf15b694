/*
 * A call that the guard of outgoing calls forbids becomes a case and never fails. This holds for calls, undos, probes
 * and prechecks. The operation goes on when the settings allow it, or when a person decides otherwise.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define TRIES 40 /* more than any policy allows, and for longer than any undo goes on */
#define LIMITED                                                                                                        \
    "{'tools':[{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},"                                         \
    "{'name':'limited','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'rate':{'limit':1,'per':'1s'}," \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}}],"                                                  \
    "'sagas':[{'name':'trial','steps':[{'id':'a','call':'limited'}]}]}"

static const struct outcome denied = {
    .kind = OUTCOME_RETRY,
    .unsent = true,
    .error = {OUTCOME_EGRESS_DENIED, sizeof(OUTCOME_EGRESS_DENIED) - 1},
    .detail = {OUTCOME_EGRESS_DENIED_DETAIL, sizeof(OUTCOME_EGRESS_DENIED_DETAIL) - 1}};
static const struct outcome unreached = {
    .kind = OUTCOME_RETRY, .unsent = true, .error = {"refused", 7}, .detail = {"nobody listens", 14}};

static const struct operation *operation(const struct trial *trial, const char *step, enum direction direction)
{
    const struct step *s = &trial->saga.steps[trial_step(trial, step)];

    return direction == DIRECTION_UNDO ? s->undo : &s->forward;
}

static void settle(struct trial *trial, const char *step, enum direction direction, struct outcome outcome)
{
    const struct operation *op = operation(trial, step, direction);

    assert_int_equal(trial_input(trial, trial_outcome(trial, SAGA_INPUT_SETTLED, trial_step(trial, step), direction,
                                                      op->attempts, outcome)),
                     ERR_OK);
}

static void probe(struct trial *trial, const char *step, enum direction direction, struct outcome outcome)
{
    const struct operation *op = operation(trial, step, direction);

    trial->now_ms = op->due_ms > trial->now_ms ? op->due_ms : trial->now_ms;
    assert_int_equal(trial_input(trial, trial_outcome(trial, SAGA_INPUT_PROBED, trial_step(trial, step), direction,
                                                      op->probes + 1, outcome)),
                     ERR_OK);
}

static void ring(struct trial *trial, const char *step, enum direction direction)
{
    if (direction == DIRECTION_UNDO) {
        trial_timer_undo(trial, step);
    } else {
        trial_timer(trial, step);
    }
}

/* Starts the saga. `once` and `checked` write their intent first, and leave with the next turn. */
static void start(struct trial *trial, const char *document)
{
    trial_begin(trial, document, "{}");
    if (trial->saga.steps[0].forward.state == OP_PENDING) {
        trial_play(trial, "timer a");
    }
}

static void is_held(const struct trial *trial, enum direction direction)
{
    assert_int_equal(saga_status(&trial->saga), SAGA_ESCALATED);
    assert_true(slice_is(trial->saga.escalation.reason, "egress-denied"));
    assert_int_equal(trial->saga.escalation.direction, direction);
    assert_non_null(strstr(trial->saga.escalation.evidence.ptr, "--egress-allow"));
}

/* Denies the operation again and again. There is one case, and no try is used up. Returns the longest wait between two
 * tries. */
static int64_t deny_for_long(struct trial *trial, const char *step, enum direction direction)
{
    const struct operation *op = operation(trial, step, direction);
    uint64_t number = trial->saga.escalation.number;
    int64_t longest_ms = 0;

    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(op->state, OP_RETRYING);
        longest_ms = op->due_ms - trial->now_ms > longest_ms ? op->due_ms - trial->now_ms : longest_ms;
        ring(trial, step, direction);
        assert_int_equal(op->state, OP_IN_FLIGHT);
        assert_int_equal(trial->saga.escalation.number, number);
        settle(trial, step, direction, denied);
        assert_int_equal(trial->saga.escalation.number, number);
        is_held(trial, direction);
    }
    return longest_ms;
}

static void open_denied(struct trial *trial, const char *document)
{
    start(trial, document);
    settle(trial, "a", DIRECTION_DO, denied);
    assert_string_equal(trial_records(trial), "step.retrying a, escalation.opened a");
    is_held(trial, DIRECTION_DO);
}

static void open_undoing(struct trial *trial, const char *tool)
{
    char document[8192];

    assert_true(snprintf(document, sizeof(document), TRIAL_SAGA("{'id':'a','call':'%s'},{'id':'b','call':'keyed'}"),
                         tool) < (int)sizeof(document));
    trial_begin(trial, document, "{}");
    trial_play(trial, "a, b failed");
}

static struct trial trial;

/* --- the call --- */

static const char *const documents[] = {
    TRIAL_SAGA("{'id':'a','call':'once'},{'id':'b','call':'keyed'}"),
    TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"),
    TRIAL_SAGA("{'id':'a','call':'checked'},{'id':'b','call':'keyed'}"),
    TRIAL_SAGA("{'id':'a','call':'read'},{'id':'b','call':'keyed'}"),
    TRIAL_SAGA("{'id':'a','call':'once','on_failure':'continue'},{'id':'b','call':'keyed'}"),
    TRIAL_SAGA("{'id':'a','call':'once','retry':{'max_unsent':1}},{'id':'b','call':'keyed'}"),
};

TEST(a_denied_call_waits_as_one_case_and_goes_on_when_it_may)
{
    for (size_t i = 0; i < COUNT_OF(documents); i++) {
        open_denied(&trial, documents[i]);
        assert_in_range(deny_for_long(&trial, "a", DIRECTION_DO), 60000, 3600000);
        assert_int_equal(operation(&trial, "a", DIRECTION_DO)->took_effect, TOOK_EFFECT_NO);
        assert_int_equal(operation_calls(operation(&trial, "a", DIRECTION_DO)), 0);
        trial_play_to(&trial, "timer a, a", "step.completed a, escalation.resolved a, step.intent b");
        assert_true(slice_is(trial.records.items[1].actor, "sagad"));
        assert_true(slice_starts_with(trial.records.items[1].note, "the settings do not deny it any more"));
        trial_close_sound(&trial);
    }
}

TEST(tries_that_were_denied_do_not_count_as_tries_that_nobody_answered)
{
    open_denied(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"));
    (void)deny_for_long(&trial, "a", DIRECTION_DO);
    trial_play(&trial, "timer a");
    settle(&trial, "a", DIRECTION_DO, unreached);
    assert_string_equal(trial_records(&trial), "step.retrying a, escalation.resolved a");
    assert_int_equal(operation(&trial, "a", DIRECTION_DO)->unsent, 1);
    for (int i = 0; i < 9; i++) {
        trial_play(&trial, "timer a");
        settle(&trial, "a", DIRECTION_DO, unreached);
    }
    assert_int_equal(saga_status(&trial.saga), SAGA_COMPENSATED); /* ten tries got no answer, so the call has failed */
}

TEST(a_call_that_goes_out_at_last_and_is_lost_is_asked_anew)
{
    open_denied(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"));
    trial_play_to(&trial, "timer a, a unknown", "step.unknown a, escalation.resolved a, escalation.opened a");
    assert_true(slice_is(trial.saga.escalation.reason, "unknown"));
}

TEST(an_effect_that_may_have_happened_before_stays_in_doubt)
{
    start(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"));
    trial_play(&trial, "a unknown, timer a");
    settle(&trial, "a", DIRECTION_DO, denied);
    is_held(&trial, DIRECTION_DO);
    assert_int_equal(operation(&trial, "a", DIRECTION_DO)->took_effect, TOOK_EFFECT_MAYBE);
    assert_int_equal(trial_abort(&trial), ERR_OK); /* a call that may have had an effect is not dropped */
    assert_int_equal(operation(&trial, "a", DIRECTION_DO)->state, OP_RETRYING);
    is_held(&trial, DIRECTION_DO);
}

TEST(an_abort_drops_what_was_never_sent)
{
    open_denied(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"));
    trial_takes(&trial, trial_abort(&trial),
                "saga.failing, step.failed a, escalation.resolved a, "
                "compensation.planned, saga.compensated");
}

TEST(a_late_word_that_it_was_denied_fails_nothing)
{
    static const char *const late[] = {TRIAL_SAGA("{'id':'a','call':'once_probed'}"),
                                       TRIAL_SAGA("{'id':'a','call':'once'}")};

    for (size_t i = 0; i < COUNT_OF(late); i++) {
        start(&trial, late[i]);
        trial_play(&trial, "a unknown"); /* the engine that made the call seems to be gone */
        settle(&trial, "a", DIRECTION_DO, denied);
        is_held(&trial, DIRECTION_DO);
        assert_int_equal(operation_calls(operation(&trial, "a", DIRECTION_DO)), 0);
        trial_play_until(&trial, "timer a, a", SAGA_COMPLETED);
        trial_close_sound(&trial);
    }
}

TEST(a_guard_in_between_does_not_end_the_case)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED,
                               .admitted = {.admission = ADMISSION_REFUSED, .error = SLICE("rate-limited")}};
    uint64_t number;

    trial_begin(&trial, LIMITED, "{}");
    input.admitted.admission = ADMISSION_GRANTED;
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    settle(&trial, "a", DIRECTION_DO, denied);
    number = trial.saga.escalation.number;
    trial.now_ms = operation(&trial, "a", DIRECTION_DO)->due_ms;
    input.admitted.admission = ADMISSION_REFUSED;
    trial_takes(&trial, trial_input(&trial, input), "step.retrying a");
    assert_int_equal(trial.saga.escalation.number, number);
    is_held(&trial, DIRECTION_DO);
}

/* --- the precheck --- */

TEST(a_denied_precheck_is_no_answer)
{
    struct saga_input input = {
        .type = SAGA_INPUT_ADMITTED,
        .admitted = {.admission = ADMISSION_UNASKED, .error = denied.error, .detail = denied.detail}};

    trial_begin(&trial, LIMITED, "{}");
    for (int i = 0; i < TRIES; i++) {
        trial_takes(&trial, trial_input(&trial, input),
                    i == 0 ? "step.retrying a, escalation.opened a" : "step.retrying a");
        is_held(&trial, DIRECTION_DO);
        trial.now_ms = operation(&trial, "a", DIRECTION_DO)->due_ms;
    }
    input.admitted.admission = ADMISSION_GRANTED;
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    trial_play_until(&trial, "a", SAGA_COMPLETED);
}

/* --- the probe --- */

TEST(a_denied_probe_is_no_answer_and_asks_on_for_as_long_as_it_takes)
{
    start(&trial, TRIAL_SAGA("{'id':'a','call':'checked'},{'id':'b','call':'keyed'}"));
    trial_play(&trial, "a unknown");
    assert_int_equal(trial.saga.escalation.number, 0); /* no person was asked yet */
    for (int i = 0; i < TRIES; i++) {
        probe(&trial, "a", DIRECTION_DO, denied);
        assert_int_equal(operation(&trial, "a", DIRECTION_DO)->state, OP_PROBING);
        is_held(&trial, DIRECTION_DO);
    }
    assert_int_equal(saga_escalation_actions(&trial.saga), BIT(OPERATOR_PROBE) | BIT(OPERATOR_RESOLVE) |
                                                               BIT(OPERATOR_WAIVE) | BIT(OPERATOR_COMPENSATE) |
                                                               BIT(OPERATOR_ABANDON));
    trial_play_to(&trial, "probe a", "step.completed a, escalation.resolved a, step.intent b");
}

TEST(a_probe_that_a_person_wants_and_that_is_denied_is_no_answer)
{
    uint64_t number;

    start(&trial, TRIAL_SAGA("{'id':'a','call':'once_probed'},{'id':'b','call':'keyed'}"));
    trial_play(&trial, "a unknown");
    trial.now_ms += INT64_C(3600) * 1000;
    trial_play(&trial, "probe a unknown");
    number = trial.saga.escalation.number;
    assert_int_not_equal(number, 0);
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_OK);
    for (int i = 0; i < 3; i++) {
        probe(&trial, "a", DIRECTION_DO, denied);
        assert_int_equal(trial.saga.escalation.number, number);
        assert_int_equal(operation(&trial, "a", DIRECTION_DO)->state, OP_PROBING);
    }
    trial_play_until(&trial, "probe a absent", SAGA_COMPENSATED);
}

/* --- the undo --- */

TEST(a_denied_undo_is_not_given_up)
{
    open_undoing(&trial, "by_keyed"); /* the undo gives up after ten minutes */
    settle(&trial, "a", DIRECTION_UNDO, denied);
    assert_string_equal(trial_records(&trial), "compensation.retrying a, escalation.opened a");
    is_held(&trial, DIRECTION_UNDO);
    (void)deny_for_long(&trial, "a", DIRECTION_UNDO);
    assert_int_equal(trial.saga.steps[0].plan, PLAN_ACTIVE);
    assert_int_equal(saga_escalation_actions(&trial.saga),
                     BIT(OPERATOR_RETRY) | BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_ABANDON));
    trial_play_to(&trial, "timer undo a, undo a", "compensation.completed a, escalation.resolved a, saga.compensated");
}

TEST(a_denied_probe_of_an_undo_is_not_given_up)
{
    open_undoing(&trial, "by_checked");
    trial_play(&trial, "undo a unknown");
    for (int i = 0; i < TRIES; i++) {
        probe(&trial, "a", DIRECTION_UNDO, denied);
        is_held(&trial, DIRECTION_UNDO);
    }
    trial_play_until(&trial, "probe undo a", SAGA_COMPENSATED);
}

TEST(a_late_word_that_an_undo_was_denied_fails_nothing)
{
    open_undoing(&trial, "by_checked");
    trial_play(&trial, "undo a unknown"); /* the engine that made the call seems to be gone */
    settle(&trial, "a", DIRECTION_UNDO, denied);
    assert_string_equal(trial_records(&trial), "compensation.retrying a, escalation.opened a");
    is_held(&trial, DIRECTION_UNDO);
    trial_play_until(&trial, "timer undo a, undo a", SAGA_COMPENSATED);
}

TEST(a_late_word_that_an_undo_was_denied_leaves_the_case_of_an_undo_that_was_given_up)
{
    open_undoing(&trial, "by_keyed");
    trial_play(&trial, "undo a unknown");
    trial.now_ms += INT64_C(86400000); /* its key is forgotten */
    trial_play_to(&trial, "timer undo a", "compensation.failed a, escalation.opened a");
    settle(&trial, "a", DIRECTION_UNDO, denied);
    assert_string_equal(trial_records(&trial), "");
    assert_true(slice_is(trial.saga.escalation.reason, "compensation-failed"));
}

/* --- people --- */

TEST(a_person_has_it_tried_now)
{
    static const enum direction directions[] = {DIRECTION_DO, DIRECTION_UNDO};

    for (size_t i = 0; i < COUNT_OF(directions); i++) {
        enum direction direction = directions[i];

        if (direction == DIRECTION_DO) {
            open_denied(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"));
        } else {
            open_undoing(&trial, "by_keyed");
            settle(&trial, "a", DIRECTION_UNDO, denied);
        }
        (void)deny_for_long(&trial, "a", direction);
        trial_takes(&trial, trial_operator(&trial, OPERATOR_RETRY),
                    direction == DIRECTION_DO ? "escalation.resolved a, step.retrying a"
                                              : "escalation.resolved a, compensation.retrying a");
        assert_int_equal(operation(&trial, "a", direction)->due_ms, trial.now_ms);
        ring(&trial, "a", direction);
        settle(&trial, "a", direction, denied); /* the settings have not changed, so the person is asked again */
        assert_string_equal(trial_records(&trial), direction == DIRECTION_DO
                                                       ? "step.retrying a, escalation.opened a"
                                                       : "compensation.retrying a, escalation.opened a");
        assert_true(operation(&trial, "a", direction)->due_ms <= trial.now_ms + 1000); /* the waits begin again, too */
        trial_close_sound(&trial);
    }
}

TEST(a_person_decides_what_becomes_of_it)
{
    static const struct {
        enum operator_action action;
        bool happened;
        const char *records;
        enum saga_status status;
    } cases[] = {
        {OPERATOR_RESOLVE, true, "escalation.resolved a, step.completed a, saga.completed", SAGA_COMPLETED},
        {OPERATOR_RESOLVE, false,
         "escalation.resolved a, step.failed a, saga.failing a, compensation.planned, saga.compensated",
         SAGA_COMPENSATED},
        {OPERATOR_COMPENSATE, false,
         "escalation.resolved a, saga.failing, step.failed a, compensation.planned, saga.compensated",
         SAGA_COMPENSATED},
        {OPERATOR_ABANDON, false, "escalation.resolved a, saga.abandoned", SAGA_ABANDONED},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_denied(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"));
        assert_int_equal(saga_escalation_actions(&trial.saga), BIT(OPERATOR_RETRY) | BIT(OPERATOR_RESOLVE) |
                                                                   BIT(OPERATOR_COMPENSATE) | BIT(OPERATOR_ABANDON));
        assert_int_equal(trial_operator(&trial, OPERATOR_SKIP), ERR_CONFLICT);
        assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_CONFLICT);
        assert_int_equal(cases[i].action == OPERATOR_RESOLVE
                             ? trial_resolve(&trial, cases[i].happened, cases[i].happened ? "{\"id\":\"x\"}" : NULL)
                             : trial_operator(&trial, cases[i].action),
                         ERR_OK);
        assert_string_equal(trial_records(&trial), cases[i].records);
        assert_int_equal(saga_status(&trial.saga), cases[i].status);
        trial_close_sound(&trial);
    }
}

TEST(nobody_decides_while_it_is_being_tried)
{
    open_denied(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"));
    trial_play(&trial, "timer a");
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_CALL_OUT);
    assert_int_equal(trial_resolve(&trial, false, NULL), ERR_CALL_OUT);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
