/* What people may decide, what follows, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"
#include "tests/lib/texts.h"

/* Opens a saga in which `before` is completed and `act` is unknown for good, so that a person is asked. */
static void open_stuck(struct trial *trial, const char *tool, const char *rest)
{
    char document[8192];

    (void)snprintf(document, sizeof(document),
                   TRIAL_SAGA("{'id':'before','call':'idempotent'},{'id':'act','call':'%s'}%s"), tool, rest);
    trial_begin(trial, document, "{}");
    trial_play(trial, "before");
    while (trial->saga.steps[1].forward.state != OP_UNKNOWN) {
        enum op_state at = trial->saga.steps[1].forward.state;

        if (at == OP_PENDING || at == OP_RETRYING) {
            trial_play(trial, "timer act");
        } else if (at == OP_PROBING) {
            trial_play(trial, "probe act unknown");
        } else {
            trial_play(trial, "act unknown");
        }
    }
    assert_int_equal(saga_status(&trial->saga), SAGA_ESCALATED);
    assert_string_equal(trial_wants(trial), "");
}

/* Opens a saga in which `act` is completed, `next` failed for good, and the undo of `act` was refused. */
static void open_undo_failed(struct trial *trial)
{
    trial_open(
        trial,
        TRIAL_SAGA("{'id':'before','call':'keyed'},{'id':'act','call':'by_checked'},{'id':'next','call':'keyed'}"));
    trial_start(trial, "{}");
    trial_play_until(trial, "before, act, next failed, undo act failed", SAGA_ESCALATED);
}

static struct saga_input decision(const struct trial *trial, enum operator_action action)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = action;
    input.verdict.escalation = trial->saga.escalation.number;
    input.verdict.round = saga_case_round(&trial->saga);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("because");
    return input;
}

#define R BIT(OPERATOR_RETRY)
#define P BIT(OPERATOR_PROBE)
#define V BIT(OPERATOR_RESOLVE)
#define W BIT(OPERATOR_WAIVE)
#define C BIT(OPERATOR_COMPENSATE)
#define A BIT(OPERATOR_ABANDON)

static const struct {
    const char *name, *tool;
    bool aborted;
    unsigned actions;
} verbs[] = {
    {"nobody to ask", "once", false, R | V | W | C | A},
    {"somebody to ask", "once_probed", false, R | P | V | W | C | A},
    {"checked", "checked", false, R | P | V | W | C | A},
    {"being undone: it cannot go on any more", "once", true, V | W | A},
    {"being undone, with somebody to ask", "checked", true, P | V | W | A},
};

static struct trial trial;

TEST(a_person_is_offered_what_is_possible)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        open_stuck(&trial, verbs[i].tool, "");
        if (verbs[i].aborted) {
            assert_int_equal(trial_abort(&trial), ERR_OK);
        }
        if (saga_escalation_actions(&trial.saga) != verbs[i].actions) {
            fail_msg("%s: %x", verbs[i].name, saga_escalation_actions(&trial.saga));
        }
        for (unsigned a = 0; a < OPERATOR_ACTION_COUNT; a++) {
            if (!(verbs[i].actions & BIT(a))) {
                assert_int_equal(trial_operator(&trial, (enum operator_action)a), ERR_CONFLICT);
                assert_has(trial.err.detail, "resolve"); /* the detail names the possible actions */
            } else {
                assert_true(strlen(operator_action_does(&trial.saga, (enum operator_action)a)) > 20);
            }
        }
        trial_close_sound(&trial);
    }
}

/* What `resolve` takes of the open case, and the names of it in the JSON that people are shown. */
static void expect_verdicts(struct trial *of, const char *names)
{
    struct buffer text;

    buffer_init(&text, 65536);
    saga_write_escalation(&of->saga, &text);
    if (!strstr(buffer_c(&text), names)) {
        fail_msg("not %s: %s", names, buffer_c(&text));
    }
    buffer_fini(&text);
}

TEST(a_person_is_offered_the_verdicts_that_are_taken)
{
    struct saga_input input;

    open_stuck(&trial, "once_probed", "");
    expect_verdicts(&trial, "\"as\":[\"happened\",\"not_happened\",\"undone\"]");
    trial_close_sound(&trial);

    open_stuck(&trial, "mail_probed", ""); /* terminal */
    expect_verdicts(&trial, "\"as\":[\"happened\",\"not_happened\"]");
    input = decision(&trial, OPERATOR_RESOLVE);
    input.verdict.undone = true;
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
    assert_has(trial.err.message, "terminal");
    assert_has(trial.err.hint, "happened, or as not_happened");
    trial_close_sound(&trial);

    open_undo_failed(&trial); /* the refusal of the undo is known: that it did not happen says nothing new */
    expect_verdicts(&trial, "\"as\":[\"happened\",\"undone\"]");
    trial_close_sound(&trial);

    open_stuck(&trial, "once", ",{'id':'next','call':'keyed','with':{'from':'${ .steps.act.result.id }'}}");
    expect_verdicts(&trial, "\"as\":[\"happened\",\"not_happened\",\"undone\"]"); /* happened, with a result */
}

TEST(a_decision_needs_a_number_an_actor_and_a_note)
{
    struct saga_input input;

    open_stuck(&trial, "once", "");
    input = decision(&trial, OPERATOR_WAIVE);
    input.verdict.escalation = 63;
    assert_int_equal(trial_input(&trial, input), ERR_DECIDED);
    input = decision(&trial, OPERATOR_WAIVE);
    input.verdict.note = SLICE("");
    assert_int_equal(trial_input(&trial, input), ERR_INVALID);
    input = decision(&trial, OPERATOR_WAIVE);
    input.verdict.actor = SLICE_NONE;
    assert_int_equal(trial_input(&trial, input), ERR_INVALID);
    input = decision(&trial, OPERATOR_WAIVE);
    input.verdict.args = SLICE("{}");
    assert_int_equal(trial_input(&trial, input), ERR_INVALID);
    input = decision(&trial, OPERATOR_WAIVE);
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    assert_int_equal(trial_input(&trial, input), ERR_DECIDED); /* the first decision wins */
}

TEST(resolved_as_happened_the_saga_goes_on)
{
    open_stuck(&trial, "once", ",{'id':'next','call':'keyed','with':{'from':'${ .steps.act.result.id }'}}");
    trial_takes(&trial, trial_resolve(&trial, true, "{'id':'seen'}"),
                "escalation.resolved act, step.completed act, step.intent next");
    assert_int_equal(trial.records.items[1].source, SOURCE_OPERATOR);
    assert_true(slice_is(trial.saga.steps[2].forward.args, "{\"from\":\"seen\"}"));
    assert_true(slice_is(trial.saga.steps[1].undo_args, "{\"id\":\"seen\"}"));
}

TEST(a_result_that_is_needed_later_must_be_given)
{
    static const char *const needers[] = {
        ",{'id':'next','call':'keyed','with':{'from':'${ .steps.act.result.id }'}}",
        ",{'id':'next','call':'keyed','scope':'${ .steps.act.result.id }'}",
        ",{'id':'next','call':'keyed','with':{'from':'${ .steps.act | length }'}}",
        ",{'id':'next','call':'keyed','with':{'from':'${ {id: .steps.act.result.id} }'}}",
        ",{'id':'next','call':'keyed','when':'${ .steps.act.result.paid }'}",
        ",{'id':'next','call':'keyed','when':'${ .steps.act.result.paid > 3 }'}",
        "", /* its own compensator wants .result.id */
    };

    for (size_t i = 0; i < COUNT_OF(needers); i++) {
        open_stuck(&trial, "once", needers[i]);
        assert_int_equal(trial_resolve(&trial, true, NULL), ERR_INVALID);
        assert_int_equal(trial_resolve(&trial, true, "null"), ERR_OK); /* "no result" is an answer */
        trial_close_sound(&trial);
    }
    open_stuck(&trial, "mail", ""); /* no compensator wants the result */
    trial_takes(&trial, trial_resolve(&trial, true, NULL),
                "escalation.resolved act, step.completed act, saga.completed");
}

TEST(what_comes_after_the_saga_and_a_compensator_that_is_a_program_need_the_result_too)
{
    static const char *const documents[] = {
        TRIAL_SAGA_WITH("'then':[{'saga':'trial','input':{'id':'${ .steps.act.result.id }'}}]",
                        "{'id':'act','call':'mail'}"),
        TRIAL_SAGA_WITH("'then':[{'saga':'trial','id':'x-${ .steps.act.result.id }'}]", "{'id':'act','call':'mail'}"),
        TRIAL_SAGA_WITH("'output':'${ {id: .steps.act.result.id} }'", "{'id':'act','call':'mail'}"),
        TRIAL_SAGA("{'id':'act','call':'once','compensate':{'tool':'undo','with':'${ {id: .result.id} }'}}"),
    };

    for (size_t i = 0; i < COUNT_OF(documents); i++) {
        trial_begin(&trial, documents[i], "{}");
        trial_play(&trial, "timer act"); /* a tool of class once has its intent in its own turn */
        trial_play(&trial, "act unknown");
        if (trial_resolve(&trial, true, NULL) != ERR_INVALID) {
            fail_msg("%zu: %s %s", i, trial.err.message, trial_wants(&trial));
        }
        assert_has(trial.err.hint, "\"result\"");
        trial_close(&trial);
    }
}

/* Opens a saga in which `act` failed for certain and a person is asked; `next` is called with `from`. */
static void open_failed(struct trial *on, const char *from)
{
    char document[8192];

    (void)snprintf(
        document, sizeof(document),
        TRIAL_SAGA(
            "{'id':'act','call':'keyed','on_failure':'escalate'},{'id':'next','call':'keyed','with':{'from':'%s'}}"),
        from);
    trial_begin(on, document, "{}");
    trial_play(on, "act failed");
}

TEST(a_step_that_is_skipped_has_the_result_that_a_later_step_needs)
{
    static const char *const ways[] = {"${ .steps.act.result.id }", "${ [.steps.act.result.id] }"};
    struct saga_input input;

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        open_failed(&trial, ways[i]);
        assert_int_equal(trial_operator(&trial, OPERATOR_SKIP), ERR_INVALID);
        assert_has(trial.err.message, "needed later, by next");
        input = decision(&trial, OPERATOR_SKIP);
        input.verdict.result = SLICE("{\"id\":9007199254740993}");
        assert_int_equal(trial_input(&trial, input), ERR_OK);
        assert_true(slice_is(trial.saga.steps[0].forward.result, "{\"id\":9007199254740993}"));
        assert_true(i > 0 || slice_is(trial.saga.steps[1].forward.args, "{\"from\":9007199254740993}"));
        trial_close_sound(&trial);
    }
    open_failed(&trial, "${ .steps.act.result.id // null }"); /* the expression has a default */
    assert_int_equal(trial_operator(&trial, OPERATOR_SKIP), ERR_OK);
}

/* The call took effect, and its result could not be kept. A null would be a guess. */
TEST(a_later_step_that_uses_a_result_that_was_lost_fails_for_certain)
{
    static const struct {
        const char *with;
        bool fails;
    } uses[] = {
        {"${ .steps.act.result.id }", true},
        {"${ .steps.act.result.id // 5 }", true},
        {"at ${ .steps.act.result }", true},
        {"${ .steps.act.status }", false},
        {"${ .input.n }", false},
    };
    char document[8192];
    struct arena arena;

    arena_init(&arena, 4096);
    for (size_t i = 0; i < COUNT_OF(uses); i++) {
        (void)snprintf(document, sizeof(document),
                       TRIAL_SAGA("{'id':'act','call':'keyed'},{'id':'next','call':'keyed','with':{'from':'%s'}}"),
                       uses[i].with);
        trial_begin(&trial, document, "{}");
        struct saga_input input =
            trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, (struct outcome){.kind = OUTCOME_COMPLETED});

        input.settled.undo_args = SLICE("{}");
        input.settled.undo_error = SLICE_NONE;
        input.settled.result_error = SLICE("it was too large");
        assert_int_equal(trial_input(&trial, input), ERR_OK);
        assert_non_null(memmem(trial_view(&trial, &arena).ptr, trial_view(&trial, &arena).len,
                               "\"result_error\":\"it was too large\"", 33));
        if (i == 1) { /* a program, which the engine evaluates and renders */
            struct expression_context context = saga_expression_context(&trial.saga, 1, &arena);
            struct slice value = SLICE("5"), out;
            struct err err;

            assert_int_equal(
                template_render(&trial.saga.definition->steps[1].with, &context, &value, &arena, &out, &err),
                ERR_INVALID);
            assert_has(err.message, "the result of step act could not be made: it was too large");
        } else {
            assert_int_equal(trial.saga.steps[1].forward.state == OP_FAILED, uses[i].fails);
        }
        trial_close_sound(&trial);
    }
    arena_fini(&arena);
}

TEST(resolved_as_not_happened_the_step_has_failed)
{
    open_stuck(&trial, "once", "");
    assert_int_equal(trial_resolve(&trial, false, NULL), ERR_OK);
    assert_string_equal(
        trial_records(&trial),
        "escalation.resolved act, step.failed act, saga.failing act, compensation.planned, compensation.intent before");
    assert_true(slice_is(trial.records.items[0].verdict, "not_happened"));
}

TEST(the_verdict_decides_about_the_undo_while_undoing)
{
    open_stuck(&trial, "once", "");
    trial_takes(&trial, trial_abort(&trial), "saga.failing, compensation.planned");
    assert_string_equal(trial_wants(&trial), ""); /* `before` waits for the verdict on act */
    trial_takes(&trial, trial_resolve(&trial, true, "{'id':'seen'}"),
                "escalation.resolved act, step.completed act, compensation.intent act");
    assert_true(slice_is(step_undo(&trial.saga.steps[1])->args, "{\"id\":\"seen\"}"));
    trial_close_sound(&trial);

    open_stuck(&trial, "once", "");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    trial_takes(&trial, trial_resolve(&trial, false, NULL),
                "escalation.resolved act, step.failed act, compensation.intent before");
}

TEST(a_retry_of_once_needs_a_second_effect_to_be_accepted)
{
    struct saga_input input;

    open_stuck(&trial, "once", "");
    input = decision(&trial, OPERATOR_RETRY);
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
    input.verdict.args = SLICE("{\"n\":2}");
    input.verdict.accept_double = true;
    assert_int_equal(trial_input(&trial, input),
                     ERR_CONFLICT); /* other arguments are allowed only when there was certainly no effect */
    input.verdict.args = SLICE_NONE;
    trial_takes(&trial, trial_input(&trial, input), "escalation.resolved act, step.reopened act");
    assert_true(trial.records.items[1].accept_double);
    trial_play_to(&trial, "timer act", "step.intent act");
    input = trial_outcome(&trial, SAGA_INPUT_SETTLED, 1, DIRECTION_DO, 2,
                          (struct outcome){.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE("refused")});
    assert_int_equal(trial_input(&trial, input),
                     ERR_OK); /* the call never left, and the accepted second effect is still to come */
    trial_play_to(&trial, "timer act", "step.intent act");
    /* The acceptance holds once, not for ever. */
    trial_play_to(&trial, "act unknown", "step.unknown act, escalation.opened act");
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_CONFLICT);
}

TEST(a_retry_gives_one_more_round_under_the_same_key)
{
    struct op_key key;

    open_stuck(&trial, "idempotent", "");
    key = trial.saga.steps[1].forward.key;
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    for (int i = 0; i < 3; i++) {
        trial_play_to(&trial, "timer act", "step.intent act");
        assert_true(uuid_equal(&key.uuid, &trial.records.items[0].key.uuid));
        trial_play(&trial, "act unknown");
    }
    assert_int_equal(trial.saga.steps[1].forward.attempts, 6);
    assert_string_equal(trial_records(&trial), "step.unknown act, escalation.opened act");
    assert_int_equal(trial.saga.escalation.number, 64);
    assert_int_equal(saga_case_round(&trial.saga), 2);
}

TEST(a_retry_of_checked_asks_first)
{
    open_stuck(&trial, "checked", "");
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    trial_play_to(&trial, "timer act", "step.unknown act");
    trial_play_to(&trial, "probe act absent", "step.retrying act");
}

TEST(a_probe_settles_it_or_leaves_it_with_the_person)
{
    open_stuck(&trial, "once_probed", "");
    trial_takes(&trial, trial_operator(&trial, OPERATOR_PROBE), "step.unknown act");
    assert_true(slice_is(trial.records.items[0].actor, "ann"));
    assert_int_equal(saga_status(&trial.saga), SAGA_ESCALATED);
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_PROBE_OUT);
    trial_play_to(&trial, "probe act unknown", "step.unknown act"); /* after one answer the person decides again */
    assert_int_equal(trial.saga.escalation.number, 64);
    assert_string_equal(trial_wants(&trial), "");
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_OK);
    trial_play_to(&trial, "probe act", "step.completed act, escalation.resolved act, saga.completed");
    assert_true(slice_is(trial.records.items[1].action, "probe"));
    assert_true(slice_is(trial.records.items[1].actor, "ann"));
}

/* One person has the call probed again. Another one decides while the probe is under way. */
TEST(a_verdict_waits_for_the_probe_that_is_out)
{
    static const enum operator_action verdicts[] = {OPERATOR_RESOLVE, OPERATOR_RETRY, OPERATOR_WAIVE, OPERATOR_PROBE};

    open_stuck(&trial, "once_probed", "");
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_OK);
    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        assert_int_equal(trial_operator(&trial, verdicts[i]), ERR_PROBE_OUT);
        assert_string_equal(err_name(trial.err.code), "probe-under-way");
    }
    trial_play(&trial, "probe act"); /* the call happened after all */
    assert_int_equal(trial.saga.steps[1].forward.took_effect, TOOK_EFFECT_YES);
    trial_close_sound(&trial);

    open_stuck(&trial, "once_probed", "");
    assert_int_equal(trial_operator(&trial, OPERATOR_PROBE), ERR_OK);
    trial_play(&trial, "probe act unknown");
    assert_int_equal(trial_resolve(&trial, false, NULL), ERR_OK);
}

/* Makes a verdict about an operation, whether or not a person is asked about it. */
static struct saga_input verdict(const struct trial *on, uint32_t step, enum direction direction)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = OPERATOR_RESOLVE;
    input.verdict.key =
        direction == DIRECTION_UNDO ? step_undo(&on->saga.steps[step])->key : on->saga.steps[step].forward.key;
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("because");
    return input;
}

/* Opens a saga in which `act` is probed in vain and nobody is asked yet. */
static void open_probing(struct trial *on, const char *tool, const char *rest)
{
    char document[8192];

    (void)snprintf(document, sizeof(document),
                   TRIAL_SAGA("{'id':'before','call':'idempotent'},{'id':'act','call':'%s'}%s"), tool, rest);
    trial_begin(on, document, "{}");
    trial_play(on, "before, timer act, act unknown, probe act unknown");
    assert_int_equal(on->saga.steps[1].forward.state, OP_PROBING);
    assert_int_equal(on->saga.escalation.number, 0);
}

TEST(a_verdict_need_not_wait_until_a_person_is_asked)
{
    struct saga_input input;

    open_probing(&trial, "once_probed", ",{'id':'next','call':'keyed'}");
    input = verdict(&trial, 1, DIRECTION_DO);
    input.verdict.happened = true;
    input.verdict.result = SLICE("{\"id\":\"seen\"}");
    trial_takes(&trial, trial_input(&trial, input), "step.completed act, step.intent next");
    assert_true(slice_is(trial.records.items[0].actor, "ann"));
    assert_int_equal(trial_input(&trial, input), ERR_DECIDED); /* the operation is settled */
    assert_int_equal(trial_input(&trial, verdict(&trial, 2, DIRECTION_DO)), ERR_CALL_OUT);
    trial_close_sound(&trial);

    open_probing(&trial, "once_probed", "");
    trial.now_ms = trial.saga.steps[1].forward.due_ms;
    assert_int_equal(trial_input(&trial, verdict(&trial, 1, DIRECTION_DO)), ERR_PROBE_OUT);
}

TEST(not_happened_then_retry_calls_once_more_when_the_first_call_is_over)
{
    struct saga_input input;
    int64_t sent_ms, due_ms;

    open_probing(&trial, "once_probed", "");
    sent_ms = trial.saga.steps[1].forward.last_sent_ms;
    input = verdict(&trial, 1, DIRECTION_DO);
    input.verdict.again = true;
    trial_takes(&trial, trial_input(&trial, input), "step.failed act, step.reopened act");
    due_ms = trial.saga.steps[1].forward.due_ms;
    assert_true(due_ms >= sent_ms + 30000 + 5000); /* its timeout and its visibility */
    assert_int_equal(trial.saga.steps[1].forward.state, OP_RETRYING);
    trial_play_to(&trial, "timer act", "step.intent act");
    assert_true(trial.now_ms >= due_ms);
    assert_int_equal(trial.records.items[0].attempt, 2);
    trial_play(&trial, "act");
    assert_int_equal(trial.saga.end, SAGA_COMPLETED);
    trial_close_sound(&trial);

    /* The first call answers before the second one leaves, so there is no second call. */
    open_probing(&trial, "once_probed", "");
    input = verdict(&trial, 1, DIRECTION_DO);
    input.verdict.again = true;
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    trial_takes(&trial,
                trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 1, DIRECTION_DO, 1,
                                                  (struct outcome){.kind = OUTCOME_COMPLETED})),
                "step.completed act, saga.completed");
    trial_close_sound(&trial);

    /* The second call is out when the first one answers. There may be two effects, and a person must know that. */
    open_probing(&trial, "once_probed", "");
    input = verdict(&trial, 1, DIRECTION_DO);
    input.verdict.again = true;
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    trial_play(&trial, "timer act");
    trial_takes(&trial,
                trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 1, DIRECTION_DO, 1,
                                                  (struct outcome){.kind = OUTCOME_COMPLETED})),
                "step.completed act, escalation.opened act");
    assert_true(slice_is(trial.saga.escalation.reason, "late-duplicate"));
    assert_int_equal(trial_resolve(&trial, true, NULL), ERR_OK);
    assert_int_equal(trial.saga.end, SAGA_COMPLETED);
}

/* In two steps, too: a person rules it out, the failure is another case, and somebody has it tried again. */
TEST(retry_of_what_a_person_ruled_out_waits_until_the_first_call_is_over)
{
    int64_t sent_ms, failed_ms;

    open_probing(&trial, "once_probed','on_failure':'escalate", "");
    sent_ms = trial.saga.steps[1].forward.last_sent_ms;
    trial_takes(&trial, trial_input(&trial, verdict(&trial, 1, DIRECTION_DO)),
                "step.failed act, escalation.opened act");
    failed_ms = trial.now_ms;
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    assert_int_equal(trial.now_ms, failed_ms);
    assert_string_equal(trial_records(&trial), "escalation.resolved act, step.reopened act");
    assert_true(trial.saga.steps[1].forward.due_ms >= sent_ms + 30000 + 5000); /* its timeout and its visibility */
    trial_play_to(&trial, "timer act", "step.intent act");
    assert_true(trial.now_ms >= sent_ms + 30000 + 5000);
    trial_play(&trial, "act");
    assert_int_equal(trial.saga.end, SAGA_COMPLETED);
    trial_close_sound(&trial);
}

TEST(a_step_that_is_being_undone_is_not_called_again)
{
    struct saga_input input;

    open_probing(&trial, "once_probed", "");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    input = verdict(&trial, 1, DIRECTION_DO);
    input.verdict.again = true;
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
    input.verdict.again = false;
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    trial_play(&trial, "undo before");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
}

TEST(an_effect_that_somebody_undid_by_hand_counts_as_undone)
{
    struct saga_input input;

    /* A forward step with an unknown outcome: the saga cannot go on without it. */
    open_probing(&trial, "once_probed", "");
    input = verdict(&trial, 1, DIRECTION_DO);
    input.verdict.undone = true;
    trial_takes(&trial, trial_input(&trial, input),
                "step.undone act, saga.failing, compensation.planned, compensation.intent before");
    trial_play(&trial, "undo before");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    assert_int_equal(trial.saga.steps[1].forward.took_effect, TOOK_EFFECT_UNDONE);
    assert_true(slice_is(trial.saga.steps[1].undone_by, "ann"));
    trial_close_sound(&trial);

    /* A refused compensator: the verdict may name the undo operation or the step. */
    for (int of_undo = 0; of_undo <= 1; of_undo++) {
        open_undo_failed(&trial);
        input = verdict(&trial, 1, of_undo ? DIRECTION_UNDO : DIRECTION_DO);
        input.verdict.undone = !of_undo;
        input.verdict.happened = of_undo;
        trial_takes(&trial, trial_input(&trial, input),
                    "escalation.resolved act, step.undone act, compensation.intent before");
        trial_play(&trial, "undo before");
        assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
        trial_close_sound(&trial);
    }

    /* A step that was not called, or left nothing, cannot have been undone. */
    open_probing(&trial, "once_probed", ",{'id':'next','call':'once'}");
    input = verdict(&trial, 1, DIRECTION_DO);
    assert_int_equal(trial_input(&trial, input), ERR_OK); /* the call did not happen */
    input.verdict.undone = true;
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
}

TEST(a_step_before_the_last_is_not_undone_while_the_last_may_have_happened)
{
    struct saga_input input;

    for (int unknown = 0; unknown <= 1; unknown++) {
        trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'keyed'},{'id':'last','call':'mail_probed'}"), "{}");
        trial_play(&trial, "act, timer last");
        if (unknown) {
            trial_play(&trial, "last unknown");
        }
        input = verdict(&trial, 0, DIRECTION_DO);
        input.verdict.undone = true;
        assert_int_equal(trial_input(&trial, input), ERR_UNSETTLED);
        if (unknown) {
            trial_play(&trial, "probe last");
        } else {
            trial_play(&trial, "last");
        }
        assert_int_equal(trial.saga.end, SAGA_COMPLETED);
        trial_close_sound(&trial);
    }
}

TEST(no_verdict_is_taken_on_what_is_undone_blindly)
{
    struct saga_input input;

    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'voidable'}"), "{}");
    trial_play(&trial, "timer act, act unknown");
    assert_int_equal(step_undo(&trial.saga.steps[0])->state, OP_IN_FLIGHT);
    input = verdict(&trial, 0, DIRECTION_DO);
    for (int happened = 0; happened <= 1; happened++) {
        input.verdict.happened = happened;
        assert_int_equal(trial_input(&trial, input), ERR_DECIDED);
    }
    trial_play(&trial, "undo act");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
}

TEST(waived_effects_are_debts)
{
    open_stuck(&trial, "once", "");
    assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
    assert_string_equal(
        trial_records(&trial),
        "escalation.resolved act, step.waived act, saga.failing, compensation.planned, compensation.intent before");
    trial_play_to(&trial, "undo before", "compensation.completed before, saga.abandoned");
    assert_int_equal(trial.records.items[1].debt_count, 1);
    assert_int_equal(trial.records.items[1].debts[0], 1);
    trial_close_sound(&trial);

    open_undo_failed(&trial);
    trial_takes(&trial, trial_operator(&trial, OPERATOR_WAIVE),
                "escalation.resolved act, step.waived act, compensation.intent before");
}

TEST(compensate_undoes_what_is_certain_and_asks_again)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'act','call':'once','after':['a']},{'id':'side','"
                           "call':'keyed','after':[]}"),
                "{}");
    trial_play(&trial, "a, side, timer act, act unknown");
    assert_int_equal(trial_operator(&trial, OPERATOR_COMPENSATE), ERR_OK);
    assert_string_equal(
        trial_records(&trial),
        "escalation.resolved act, saga.failing, escalation.opened act, compensation.planned, compensation.intent side");
    trial_play(&trial, "undo side");
    assert_string_equal(trial_wants(&trial), ""); /* a comes before act, so it waits */
}

TEST(abandon_ends_at_once_and_lists_everything)
{
    open_stuck(&trial, "once", "");
    trial_takes(&trial, trial_operator(&trial, OPERATOR_ABANDON), "escalation.resolved act, saga.abandoned");
    assert_int_equal(trial.records.items[1].debt_count, 2);
    assert_int_equal(saga_status(&trial.saga), SAGA_ABANDONED);
    assert_int_equal(trial_operator(&trial, OPERATOR_ABANDON), ERR_DECIDED);
    assert_int_equal(trial_abort(&trial), ERR_ENDED);
}

TEST(a_failed_compensation_may_be_retried_with_other_arguments)
{
    struct saga_input input;
    struct op_key key;

    open_undo_failed(&trial);
    key = step_undo(&trial.saga.steps[1])->key;
    assert_int_equal(trial_resolve(&trial, false, NULL), ERR_DECIDED); /* it is known that the call did not happen */
    input = decision(&trial, OPERATOR_RETRY);
    input.verdict.args = SLICE("{\"id\":\"other\"}");
    trial_takes(&trial, trial_input(&trial, input),
                "escalation.resolved act, compensation.reopened act, compensation.intent act");
    assert_int_equal(step_undo(&trial.saga.steps[1])->generation, 1);
    assert_false(uuid_equal(&key.uuid, &step_undo(&trial.saga.steps[1])->key.uuid));
    input =
        trial_outcome(&trial, SAGA_INPUT_SETTLED, 1, DIRECTION_UNDO, 1, (struct outcome){.kind = OUTCOME_COMPLETED});
    /* An answer under the old key says nothing about the new one. */
    trial_takes(&trial, trial_input(&trial, input), "");
    trial_play_to(&trial, "undo act", "compensation.completed act, compensation.intent before");
}

TEST(a_compensation_that_nobody_knows_about_can_be_resolved)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'by_checked'},{'id':'next','call':'keyed'}"), "{}");
    trial_play(&trial, "act, next failed, undo act unknown");
    while (step_undo(&trial.saga.steps[0])->state == OP_PROBING) {
        trial_play(&trial, "probe undo act unknown");
    }
    assert_string_equal(trial_records(&trial), "compensation.failed act, escalation.opened act");
    trial_takes(&trial, trial_operator(&trial, OPERATOR_PROBE), "compensation.unknown act");
    trial_play_to(&trial, "probe undo act running", "compensation.failed act");
    /* The operation counts as failed, which is a new question. */
    trial_takes(&trial, trial_resolve(&trial, false, NULL),
                "escalation.resolved act, compensation.failed act, escalation.opened act");
    assert_true(saga_escalation_actions(&trial.saga) & V); /* a person may undo it by hand */
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    trial_play(&trial, "undo act");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
}

TEST(an_undo_that_waits_for_its_turn_has_failed_at_nothing_yet)
{
    struct saga_input input;

    trial_begin(&trial,
                TRIAL_SAGA("{'id':'side','call':'keyed'},{'id':'act','call':'keyed','after':[]},"
                           "{'id':'next','call':'keyed'}"),
                "{}");
    trial_play_to(&trial, "side, act, next failed, undo act failed",
                  "compensation.failed act, escalation.opened act, compensation.intent side");
    input = verdict(&trial, 1, DIRECTION_UNDO);
    input.verdict.again = true;
    trial_takes(&trial, trial_input(&trial, input), "escalation.resolved act, compensation.reopened act");
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT); /* `side` is being undone, and there is room for one */
    input.verdict.again = false;
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
    input.verdict.happened = true; /* a person has done the work meanwhile */
    trial_takes(&trial, trial_input(&trial, input), "compensation.completed act");
    trial_play(&trial, "undo side");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
}

TEST(no_step_starts_while_a_person_is_asked_but_what_is_out_settles)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'act','call':'once'},{'id':'side','call':'keyed','after':[]},{'id':'late','call':'"
                           "keyed','after':['side']},"
                           "{'id':'wait','call':'once','after':['side']},{'id':'begun','call':'once','after':[]}"),
                "{}");
    trial_play_to(&trial, "timer act, act unknown, side", "step.completed side");
    assert_string_equal(trial_wants(&trial), "");
    trial_play_to(&trial, "timer begun", ""); /* the call has its key but certainly was not sent, so it waits, too */
    trial_takes(&trial, trial_resolve(&trial, true, "null"),
                "escalation.resolved act, step.completed act, step.intent late, step.pending wait");
    assert_string_equal(trial_wants(&trial), "call late 1, timer wait 0, timer begun 0");
}

TEST(an_escalation_shows_its_evidence_and_its_verbs)
{
    struct buffer out;

    open_stuck(&trial, "once", "");
    buffer_init(&out, 65536);
    saga_write_escalation(&trial.saga, &out);
    assert_has(buffer_c(&out), "\"n\":64", "\"reason\":\"unknown\"", "\"last_error\":\"timeout\"",
               "{\"action\":\"resolve\",\"does\":\"you say whether it happened");
    assert_null(strstr(buffer_c(&out), "\"action\":\"skip\""));
    buffer_fini(&out);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
