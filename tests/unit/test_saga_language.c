/*
 * The parts of the language that decide which steps run and how they are undone: `when`, `on_failure`, branches,
 * `compensation.concurrency` and `tags`. Each is tested with success, failure inside and after, skipping, abort and
 * deadline. Every trial ends with a replay from the log.
 */
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static void evaluated(struct trial *trial, const char *step, bool skipped)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = EVALUATE_ARGS;
    input.evaluated.step = trial_step(trial, step);
    input.evaluated.skipped = skipped;
    input.evaluated.value = skipped ? SLICE_NONE : SLICE("{\"n\":2}");
    assert_int_equal(trial_input(trial, input), ERR_OK);
}

/* --- when --- */

#define WHEN                                                                                                           \
    "{'id':'a','call':'keyed'},{'id':'b','call':'keyed','when':'${ .input.wanted }'},"                                 \
    "{'id':'c','call':'keyed','with':{'n':'${ .steps.b.status }'}}"

static struct trial trial;

TEST(a_step_whose_condition_holds_runs_and_is_undone)
{
    trial_begin(&trial, TRIAL_SAGA(WHEN), "{'wanted':true}");
    trial_play_to(&trial, "a", "step.completed a, step.intent b");
    trial_play(&trial, "b, c failed");
    assert_string_equal(trial_wants(&trial), "call undo b 1");
    trial_play_until(&trial, "undo b, undo a", SAGA_COMPENSATED);
}

TEST(a_step_whose_condition_does_not_hold_is_skipped_and_what_follows_starts)
{
    trial_begin(&trial, TRIAL_SAGA(WHEN), "{'wanted':false}");
    trial_play_to(&trial, "a", "step.completed a, step.skipped b, step.intent c");
    assert_true(slice_is(trial.records.items[1].reason, "when"));
    assert_string_equal(trial_status(&trial, "b"), "skipped");
    assert_true(slice_is(trial.saga.steps[2].forward.args, "{\"n\":\"skipped\"}"));
    assert_int_equal(trial.saga.steps[1].forward.created_ms, 0); /* the step has no operation */
    trial_play_until(&trial, "c", SAGA_COMPLETED);
}

TEST(a_skipped_step_is_not_undone)
{
    trial_begin(&trial, TRIAL_SAGA(WHEN), "{}");
    trial_play_to(&trial, "a, c failed", "step.failed c, saga.failing c, compensation.planned, compensation.intent a");
    trial_play_to(&trial, "undo a", "compensation.completed a, saga.compensated");
    assert_string_equal(trial_status(&trial, "b"), "skipped");
}

TEST(a_failure_inside_a_conditional_step_undoes_the_rest)
{
    trial_begin(&trial, TRIAL_SAGA(WHEN), "{'wanted':'yes'}");
    trial_play(&trial, "a, b failed");
    assert_string_equal(trial_wants(&trial), "call undo a 1");
    trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
}

TEST(a_saga_may_be_skipped_as_a_whole)
{
    trial_begin(&trial,
                TRIAL_SAGA_WITH(
                    "'output':{'a':'${ .steps.a.result }'}",
                    "{'id':'a','call':'keyed','when':'${ .input.x }'},{'id':'z','call':'mail','when':'${ .input.x }'}"),
                "{}");
    assert_string_equal(trial_records(&trial), "saga.started, step.skipped a, step.skipped z, saga.completed");
    assert_true(slice_is(trial.saga.output, "{\"a\":null}"));
}

TEST(a_condition_that_cannot_be_followed_is_a_certain_failure)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed','when':'${ .input.x.y }'}"),
                "{'x':1}");
    trial_play_to(&trial, "a",
                  "step.completed a, step.failed b, saga.failing b, compensation.planned, "
                  "compensation.intent a");
}

#define PROGRAM                                                                                                        \
    "{'id':'a','call':'keyed','when':'${ .input.n > 5 }','with':{'n':'${ .input.n + 1 }'}},{'id':'b','call':'keyed'}"

TEST(a_condition_that_is_a_program_is_evaluated_outside)
{
    trial_begin(&trial, TRIAL_SAGA(PROGRAM), "{'n':1}");
    assert_string_equal(trial_wants(&trial), "evaluate a 0");
    trial_check_replay(&trial); /* after a crash here the condition is evaluated again */
    evaluated(&trial, "a", true);
    assert_string_equal(trial_records(&trial), "step.skipped a, step.intent b");
    evaluated(&trial, "a", false); /* the same value again, too late */
    assert_string_equal(trial_records(&trial), "");
    trial_close_sound(&trial);

    trial_begin(&trial, TRIAL_SAGA(PROGRAM), "{'n':6}");
    evaluated(&trial, "a", false);
    assert_string_equal(trial_records(&trial), "step.intent a");
}

TEST(a_condition_that_is_a_program_may_be_all_there_is_to_evaluate)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed','when':'${ .input.n > 1 }'}"), "{'n':2}");
    input.evaluated.what = EVALUATE_ARGS;
    trial_takes(&trial, trial_input(&trial, input), "step.intent a");
    assert_true(slice_is(trial.saga.steps[0].forward.args, "{}"));
}

TEST(an_abort_and_the_deadline_come_before_a_condition)
{
    for (int deadline = 0; deadline < 2; deadline++) {
        trial_begin(&trial, TRIAL_SAGA_WITH("'deadline':'1m'", "{'id':'z','call':'keyed'}," PROGRAM), "{'n':6}");
        trial_play(&trial, "z");
        assert_string_equal(trial_wants(&trial), "timer - 0 +60000, evaluate a 0");
        if (deadline) {
            trial_play(&trial, "timer -");
        } else {
            assert_int_equal(trial_abort(&trial), ERR_OK);
        }
        evaluated(&trial, "a", true);
        assert_string_equal(trial_records(&trial), "");
        assert_string_equal(trial_status(&trial, "a"), "pending");
        trial_play_until(&trial, "undo z", SAGA_COMPENSATED);
        trial_close_sound(&trial);
    }
}

TEST(a_skip_that_does_not_fit_is_refused)
{
    struct record skip = {.type = RECORD_STEP_SKIPPED, .reason = SLICE("when")};
    struct err err;

    trial_begin(&trial, TRIAL_SAGA(WHEN), "{'wanted':false}");
    skip.seq = trial.saga.seq + 1;
    skip.at_ms = trial.now_ms;
    skip.step = 1; /* the step before it is not over */
    assert_false(record_check(&trial.saga, &skip, &err));
    skip.step = 0; /* the step has no condition */
    assert_false(record_check(&trial.saga, &skip, &err));
}

/* --- on_failure --- */

#define CONTINUE                                                                                                       \
    "{'id':'a','call':'keyed'},{'id':'b','call':'once_probed','on_failure':'continue'},"                               \
    "{'id':'c','call':'keyed','with':{'n':'${ .steps.b.status }'}}"

TEST(a_failure_that_does_not_matter_is_gone_on_without)
{
    trial_begin(&trial, TRIAL_SAGA(CONTINUE), "{}");
    trial_play_to(&trial, "a, timer b, b failed", "step.failed b, step.intent c");
    assert_string_equal(trial_status(&trial, "b"), "failed");
    assert_true(slice_is(trial.saga.steps[2].forward.args, "{\"n\":\"failed\"}"));
    trial_play_until(&trial, "c", SAGA_COMPLETED);
}

TEST(a_failed_step_that_did_not_matter_is_not_undone)
{
    trial_begin(&trial, TRIAL_SAGA(CONTINUE), "{}");
    trial_play(&trial, "a, timer b, b failed, c failed");
    assert_string_equal(trial_wants(&trial), "call undo a 1");
    trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
}

TEST(an_unknown_outcome_is_settled_before_it_is_gone_on_without)
{
    trial_begin(&trial, TRIAL_SAGA(CONTINUE), "{}");
    trial_play_to(&trial, "a, timer b, b unknown", "step.unknown b");
    while (trial.saga.steps[1].forward.state == OP_PROBING) { /* the first probes come too early to count */
        trial_play(&trial, "probe b absent");
    }
    assert_string_equal(trial_records(&trial), "step.failed b, step.intent c");
}

TEST(an_unknown_outcome_for_good_is_asked_about_and_the_verdict_decides)
{
    static const char steps[] =
        TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'voidable','on_failure':'continue'},"
                   "{'id':'c','call':'keyed'}");

    for (int happened = 0; happened < 2; happened++) {
        trial_begin(&trial, steps, "{}");
        trial_play_to(&trial, "a, timer b, b unknown", "step.unknown b, escalation.opened b");
        assert_int_equal(trial_resolve(&trial, happened, happened ? "{'id':1}" : NULL), ERR_OK);
        assert_string_equal(trial_status(&trial, "b"), happened ? "completed" : "failed");
        assert_string_equal(trial_wants(&trial), "call c 1");
        trial_play(&trial, "c failed");
        assert_string_equal(trial_wants(&trial), happened ? "call undo b 1" : "call undo a 1");
        trial_close_sound(&trial);
    }
}

TEST(a_late_success_of_what_was_gone_on_without_is_asked_about)
{
    static const char steps[] =
        TRIAL_SAGA("{'id':'a','call':'keyed','on_failure':'continue'},{'id':'z','call':'mail'}");
    struct outcome done = {.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":\"a-1\"}")};

    for (int waive = 0; waive < 2; waive++) {
        trial_begin(&trial, steps, "{}");
        trial_play(&trial, "a failed, timer z");
        trial_takes(&trial, trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, done)),
                    "step.late a, escalation.opened a");
        trial_play(&trial, "z"); /* behind the point of no return */
        assert_int_equal(saga_status(&trial.saga), SAGA_ESCALATED);
        if (waive) {
            assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
            assert_int_equal(saga_status(&trial.saga), SAGA_ABANDONED);
            assert_int_equal(trial.records.items[trial.records.count - 1].debt_count, 1);
        } else {
            assert_int_equal(trial_resolve(&trial, true, "{'id':'a-1'}"), ERR_OK);
            assert_int_equal(saga_status(&trial.saga), SAGA_COMPLETED);
        }
        trial_close_sound(&trial);
    }
}

#define ESCALATE "{'id':'a','call':'keyed'},{'id':'b','call':'keyed','on_failure':'escalate'},{'id':'c','call':'keyed'}"

static void open_escalated(struct trial *on)
{
    trial_begin(on, TRIAL_SAGA_WITH("'deadline':'1h'", ESCALATE), "{}");
    trial_play_to(on, "a, b failed", "step.failed b, escalation.opened b");
    assert_true(slice_is(on->saga.escalation.reason, "step-failed"));
    assert_int_equal(saga_status(&on->saga), SAGA_ESCALATED);
    trial_check_replay(on);
}

TEST(a_failure_that_is_escalated_can_be_retried)
{
    open_escalated(&trial);
    trial_takes(&trial, trial_operator(&trial, OPERATOR_RETRY), "escalation.resolved b, step.reopened b");
    trial_play_to(&trial, "timer b, b", "step.completed b, step.intent c");
    trial_play(&trial, "c failed");
    assert_string_equal(trial_wants(&trial), "call undo b 1");
}

TEST(a_failure_that_is_escalated_can_be_skipped)
{
    open_escalated(&trial);
    trial_takes(&trial, trial_operator(&trial, OPERATOR_SKIP), "escalation.resolved b, step.skipped b, step.intent c");
    trial_play(&trial, "c failed");
    assert_string_equal(trial_wants(&trial), "call undo a 1");
}

TEST(a_failure_that_is_escalated_can_be_undone_by_a_person_an_abort_or_the_deadline)
{
    for (int how = 0; how < 3; how++) {
        open_escalated(&trial);
        if (how == 0) {
            assert_int_equal(trial_operator(&trial, OPERATOR_COMPENSATE), ERR_OK);
        } else if (how == 1) {
            assert_int_equal(trial_abort(&trial), ERR_OK);
        } else {
            trial_play(&trial, "timer -");
        }
        assert_int_equal(trial.saga.escalation.number, 0);
        assert_string_equal(trial_wants(&trial), "call undo a 1");
        trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
        trial_close_sound(&trial);
    }
}

TEST(a_late_success_of_what_a_person_skipped_is_asked_about)
{
    struct outcome done = {.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":\"b-1\"}")};

    open_escalated(&trial);
    assert_int_equal(trial_operator(&trial, OPERATOR_SKIP), ERR_OK);
    trial_takes(&trial, trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 1, DIRECTION_DO, 1, done)),
                "step.late b, escalation.opened b");
    assert_true(slice_is(trial.saga.escalation.reason, "late-success"));
    assert_int_equal(trial_resolve(&trial, true, "{'id':'b-1'}"), ERR_OK);
    trial_play(&trial, "c failed");
    assert_string_equal(trial_wants(&trial), "call undo b 1");
}

TEST(a_failed_terminal_step_can_be_escalated)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'z','call':'mail','on_failure':'escalate'}"), "{}");
    trial_play(&trial, "a, timer z, z failed");
    assert_int_equal(trial_operator(&trial, OPERATOR_SKIP), ERR_OK);
    assert_int_equal(saga_status(&trial.saga), SAGA_COMPLETED);
}

/* --- branches --- */

/* The steps are a; then b1 -> b2 beside c1 -> c2 beside d; then e. */
#define BRANCHES                                                                                                       \
    "{'id':'a','call':'keyed'},{'id':'b1','call':'keyed','after':['a']},{'id':'b2','call':'keyed','after':['b1']},"    \
    "{'id':'c1','call':'keyed','after':['a']},{'id':'c2','call':'keyed_probed','after':['c1']},"                       \
    "{'id':'d','call':'once','after':['a']},{'id':'e','call':'mail','after':['b2','c2','d']}"

static void open_branches(struct trial *on, const char *document)
{
    trial_begin(on, document, "{}");
    trial_play(on, "a, timer d");
    assert_string_equal(trial_wants(on), "call b1 1, call c1 1, call d 1");
}

TEST(a_failing_branch_starts_nothing_and_waits_for_the_others)
{
    open_branches(&trial, TRIAL_SAGA(BRANCHES));
    trial_play_to(&trial, "c1, b1 failed", "step.failed b1, saga.failing b1");
    trial_check_replay(&trial);
    trial_play_to(&trial, "d", "step.completed d");
    trial_play_to(&trial, "c2", "step.completed c2, compensation.planned, compensation.intent c2");
    trial_play(&trial, "undo c2");
    assert_string_equal(trial_wants(&trial),
                        "call undo d 1"); /* of equal steps, the one that started last comes first */
    trial_play(&trial, "undo d");
    assert_string_equal(trial_wants(&trial), "call undo c1 1");
    trial_play_until(&trial, "undo c1, undo a", SAGA_COMPENSATED);
}

TEST(a_call_in_flight_beside_a_failure_is_settled_as_unknown)
{
    open_branches(&trial, TRIAL_SAGA(BRANCHES));
    /* A once without a probe. */
    trial_play_to(&trial, "c1, b1 failed, d unknown", "step.unknown d, escalation.opened d");
    trial_play(&trial, "c2");
    /* Steps that do not depend on the verdict are undone meanwhile. */
    assert_string_equal(trial_wants(&trial), "call undo c2 1");
    trial_play(&trial, "undo c2, undo c1");
    assert_string_equal(trial_wants(&trial), ""); /* `a` waits for the verdict */
    trial_check_replay(&trial);
    assert_int_equal(trial_resolve(&trial, true, "{'id':1}"), ERR_OK);
    assert_string_equal(trial_wants(&trial), "call undo d 1");
    trial_play_until(&trial, "undo d, undo a", SAGA_COMPENSATED);
}

TEST(branches_that_join_complete)
{
    open_branches(&trial, TRIAL_SAGA(BRANCHES));
    trial_play(&trial, "d, b1, c1, c2");
    assert_string_equal(trial_wants(&trial), "call b2 1");
    trial_play_until(&trial, "b2, timer e, e", SAGA_COMPLETED);
}

/* --- compensation.concurrency --- */

static void open_failing_branches(struct trial *on, const char *document)
{
    open_branches(on, document);
    trial_play(on, "d, b1, c1, c2, b2 failed");
}

TEST(several_are_undone_at_once_as_far_as_the_graph_allows)
{
    open_failing_branches(&trial, TRIAL_SAGA_WITH("'compensation':{'concurrency':8}", BRANCHES));
    assert_string_equal(trial_wants(&trial), "call undo b1 1, call undo c2 1, call undo d 1");
    trial_check_replay(&trial);
    trial_play(&trial, "undo d, undo c2");
    assert_string_equal(trial_wants(&trial), "call undo b1 1, call undo c1 1");
    trial_play(&trial, "undo c1");
    assert_string_equal(trial_wants(&trial), "call undo b1 1"); /* `a` comes before all of them */
    trial_play_until(&trial, "undo b1, undo a", SAGA_COMPENSATED);
}

TEST(no_more_are_undone_at_once_than_allowed)
{
    open_failing_branches(&trial, TRIAL_SAGA_WITH("'compensation':{'concurrency':2}", BRANCHES));
    assert_string_equal(trial_wants(&trial), "call undo c2 1, call undo d 1"); /* the steps that started last */
    trial_play(&trial, "undo c2");
    assert_string_equal(trial_wants(&trial), "call undo c1 1, call undo d 1");
    trial_play(&trial, "undo d");
    assert_string_equal(trial_wants(&trial), "call undo b1 1, call undo c1 1");
}

TEST(an_undo_that_is_given_up_holds_up_only_what_depends_on_it)
{
    open_failing_branches(&trial, TRIAL_SAGA_WITH("'compensation':{'concurrency':8}", BRANCHES));
    trial_play_until(&trial, "undo c2 failed", SAGA_ESCALATED);
    trial_play(&trial, "undo b1, undo d");
    assert_string_equal(trial_wants(&trial), "");
    assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
    assert_string_equal(trial_wants(&trial), "call undo c1 1");
    trial_play_until(&trial, "undo c1, undo a", SAGA_ABANDONED);
}

#define BLIND(id)                                                                                                      \
    "{'id':'" id "','call':'once','after':[],'compensate':{'tool':'undo','with':{'n':'${ 1 + 1 }'},"                   \
    "'tolerates_absent':true,'voids_key':true}}"

TEST(undo_arguments_are_evaluated_side_by_side)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    trial_begin(&trial, TRIAL_SAGA_WITH("'compensation':{'concurrency':2}", BLIND("a") "," BLIND("b") "," BLIND("c")),
                "{}");
    trial_play_to(&trial, "timer a, timer b, timer c, a unknown", "step.unknown a, saga.failing a");
    trial_play(&trial, "b unknown, c unknown");
    assert_string_equal(trial_wants(&trial), "evaluate undo b 2, evaluate undo c 2");
    trial_check_replay(&trial);
    input.evaluated.what = EVALUATE_UNDO;
    input.evaluated.value = SLICE("{\"n\":2}");
    input.evaluated.step = 0; /* there is no room yet */
    trial_takes(&trial, trial_input(&trial, input), "");
    input.evaluated.step = 1;
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    assert_string_equal(trial_wants(&trial), "call undo b 1, evaluate undo c 2");
    trial_play(&trial, "undo b");
    assert_string_equal(trial_wants(&trial), "evaluate undo a 2, evaluate undo c 2");
}

/* --- tags --- */

TEST(tags_are_made_of_the_input)
{
    static const struct {
        const char *input, *tags;
        enum err_code code;
    } cases[] = {
        {"{\"who\":\"ann\",\"n\":7}", "{\"who\":\"ann\",\"order\":\"no. 7\",\"n\":\"7\",\"team\":\"shop\"}", ERR_OK},
        {"{\"n\":12345678901234567890}",
         "{\"order\":\"no. 12345678901234567890\",\"n\":\"12345678901234567890\",\"team\":\"shop\"}", ERR_OK},
        {"{\"who\":{\"name\":\"ann\"},\"n\":7}", NULL, ERR_INVALID},
        {"[]", NULL, ERR_INVALID},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct saga_input start = {.type = SAGA_INPUT_START};

        trial_open(&trial, TRIAL_SAGA_WITH("'tags':{'who':'${ .input.who }','order':'no. ${ .input.n }',"
                                           "'n':'${ .input.n }','team':'shop'}",
                                           "{'id':'a','call':'keyed'}"));
        start.start.input = slice_of(cases[i].input);
        assert_int_equal(trial_input(&trial, start), cases[i].code);
        if (cases[i].tags && !slice_is(trial.saga.tags, cases[i].tags)) {
            fail_msg("%s: %.*s", cases[i].input, SLICE_ARG(trial.saga.tags));
        }
        trial_close_sound(&trial);
    }
}

#define SCOPED                                                                                                         \
    "{'name':'scoped','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo'},"                     \
    "'scope':'${ .args.customer }'}"
#define CALLS_SCOPED(more)                                                                                             \
    "{'tools':[" TRIAL_TOOLS "," SCOPED "],'sagas':[{'name':'trial','steps':[{'id':'a','call':'scoped',"               \
    "'with':{'customer':'${ .input.who }'}" more "}]}]}"

TEST(a_tool_says_what_its_calls_are_about_where_the_step_does_not)
{
    trial_begin(&trial, CALLS_SCOPED(""), "{\"who\":\"ann\"}");
    assert_true(slice_is(trial.saga.steps[0].forward.scope, "ann"));
    trial_close_sound(&trial);
    trial_begin(&trial, CALLS_SCOPED(",'scope':'of ${ .input.who }'"), "{\"who\":\"ann\"}");
    assert_true(slice_is(trial.saga.steps[0].forward.scope, "of ann"));
    trial_close_sound(&trial);
    trial_begin(&trial, CALLS_SCOPED(""), "{}");
    assert_int_equal(trial.saga.steps[0].forward.scope.len, 0);
}

TEST(tags_of_the_definition_are_added_to_those_of_the_start)
{
    struct saga_input start = {.type = SAGA_INPUT_START};

    trial_open(&trial, TRIAL_SAGA_WITH("'tags':{'team':'shop','tier':'1'}", "{'id':'a','call':'keyed'}"));
    start.start.tags = SLICE("{\"tier\":\"2\",\"who\":\"ann\"}");
    start.start.input = SLICE("{}");
    assert_int_equal(trial_input(&trial, start), ERR_OK);
    assert_true(slice_is(trial.saga.tags, "{\"team\":\"shop\",\"tier\":\"2\",\"who\":\"ann\"}"));
    trial_close_sound(&trial);

    trial_begin(&trial, TRIAL_SAGA_WITH("'tags':{'team':'shop'}", "{'id':'a','call':'keyed'}"), "{}");
    assert_true(slice_is(trial.saga.tags, "{\"team\":\"shop\"}"));
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
