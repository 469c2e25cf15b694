/*
 * Undoing with groups: children that are undone on their own, children side by side and in each other, the order of
 * undoing across them, and late answers. Every trial ends with a replay from the log.
 */
#include "tests/unit/group_trial.h"

static struct trial trial;

/* --- children that are undone on their own --- */

TEST(a_child_that_may_fail_is_undone_on_its_own_and_the_saga_goes_on)
{
    trial_begin(&trial, SAGAS(WITH_TRIP(",'on_failure':'continue'"), TRIP), "{'to':'Rome'}");
    trial_play_to(&trial, "a, trip/flight, trip/hotel failed",
                  "step.failed trip/hotel, step.failing trip, compensation.planned trip, "
                  "compensation.intent trip/flight");
    is(&trial, SAGA_RUNNING);
    assert_string_equal(trial_status(&trial, "trip"), "compensating");
    trial_play_to(&trial, "undo trip/flight", "compensation.completed trip/flight, step.failed trip, step.intent z");
    same(trial.saga.steps[trial_step(&trial, "trip")].forward.error, "child-failed");
    assert_string_equal(trial_status(&trial, "trip"), "failed");
    assert_string_equal(trial_status(&trial, "trip/flight"), "compensated");
    same(args_of(&trial, "z"), "{\"trip\":\"failed\"}");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

TEST(an_effect_that_a_child_has_undone_on_its_own_is_not_undone_again)
{
    trial_begin(&trial, SAGAS(WITH_TRIP(",'on_failure':'continue'"), TRIP), "{'to':'Rome'}");
    trial_play(&trial, "a, trip/flight, trip/hotel failed, undo trip/flight, z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "a");
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_person_is_asked_what_follows_from_a_child_that_failed)
{
    static const enum operator_action verbs[] = {OPERATOR_SKIP, OPERATOR_COMPENSATE, OPERATOR_ABANDON};

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        trial_begin(&trial, SAGAS(WITH_TRIP(",'on_failure':'escalate'"), TRIP), "{'to':'Rome'}");
        trial_play_to(&trial, "a, trip/flight, trip/hotel failed, undo trip/flight",
                      "compensation.completed trip/flight, step.failed trip, escalation.opened trip");
        assert_int_equal(saga_escalation_actions(&trial.saga),
                         BIT(OPERATOR_SKIP) | BIT(OPERATOR_COMPENSATE) | BIT(OPERATOR_ABANDON));
        assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_CONFLICT);
        assert_int_equal(trial_operator(&trial, verbs[i]), ERR_OK);
        if (verbs[i] == OPERATOR_SKIP) {
            assert_string_equal(trial_wants(&trial), "call z 1");
            trial_play_until(&trial, "z", SAGA_COMPLETED);
        } else if (verbs[i] == OPERATOR_COMPENSATE) {
            assert_string_equal(run_all(&trial, DIRECTION_UNDO), "a");
            is(&trial, SAGA_COMPENSATED);
        } else {
            is(&trial, SAGA_ABANDONED);
            assert_int_equal(trial.records.items[trial.records.count - 1].debt_count, 1);
        }
        trial_close_sound(&trial);
    }
}

/* --- children side by side, and in each other --- */

TEST(two_children_side_by_side_are_undone_one_after_the_other)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'one','after':[]},{'id':'d','saga':'one','after':[]},{'id':'z','call':'keyed','"
                      "after':['c','d']}",
                      PAIR("one")),
                "{}");
    assert_string_equal(trial_wants(&trial), "call c/x 1, call d/x 1");
    trial_play(&trial, "d/x, c/x, c/y, d/y, z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "d/y d/x c/y c/x");
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_child_counts_as_one_when_steps_are_undone_side_by_side)
{
    trial_begin(
        &trial,
        ROOT(
            "'compensation':{'concurrency':2}",
            "{'id':'b','call':'keyed','after':[]},{'id':'c','saga':'wide','after':[]},{'id':'d','saga':'one','after':[]"
            "},"
            "{'id':'z','call':'keyed','after':['b','c','d']}",
            PAIR(
                "one") ",{'name':'wide','compensation':{'concurrency':2},'steps':[{'id':'x','call':'keyed','after':[]},"
                       "{'id':'y','call':'keyed','after':[]},{'id':'w','call':'keyed','after':[]}]}"),
        "{}");
    (void)run_all(&trial, DIRECTION_DO);
    trial_close(&trial);
    trial_begin(
        &trial,
        ROOT(
            "'compensation':{'concurrency':2}",
            "{'id':'b','call':'keyed','after':[]},{'id':'c','saga':'wide','after':[]},{'id':'d','saga':'one','after':[]"
            "},"
            "{'id':'z','call':'keyed','after':['b','c','d']}",
            PAIR(
                "one") ",{'name':'wide','compensation':{'concurrency':2},'steps':[{'id':'x','call':'keyed','after':[]},"
                       "{'id':'y','call':'keyed','after':[]},{'id':'w','call':'keyed','after':[]}]}"),
        "{}");
    trial_play(&trial, "b, c/x, c/y, c/w, d/x, d/y, z failed");
    /* The children d, one step at a time, and c, two steps at a time, are two units. b has to wait. */
    assert_string_equal(trial_wants(&trial), "call undo c/y 1, call undo c/w 1, call undo d/y 1");
    trial_play(&trial, "undo d/y");
    assert_string_equal(trial_wants(&trial), "call undo c/y 1, call undo c/w 1, call undo d/x 1");
    trial_play(&trial, "undo c/y");
    assert_string_equal(trial_wants(&trial), "call undo c/x 1, call undo c/w 1, call undo d/x 1");
    trial_play(&trial, "undo c/w, undo d/x");
    assert_string_equal(trial_wants(&trial), "call undo b 1, call undo c/x 1");
    (void)run_all(&trial, DIRECTION_UNDO);
    is(&trial, SAGA_COMPENSATED);
}

TEST(the_rest_goes_on_while_a_child_is_undone_on_its_own)
{
    trial_begin(
        &trial,
        SAGAS("{'id':'c','saga':'one','after':[],'on_failure':'continue'},{'id':'d','saga':'one','after':[],'on_"
              "failure':'continue'},"
              "{'id':'z','call':'keyed','after':['c','d']}",
              PAIR("one")),
        "{}");
    trial_play(&trial, "c/x, d/x, c/y failed");
    assert_string_equal(trial_wants(&trial), "call undo c/x 1, call d/y 1");
    trial_play(&trial, "d/y failed");
    /* Each child has its own plan. */
    assert_string_equal(trial_wants(&trial), "call undo c/x 1, call undo d/x 1");
    trial_play_to(&trial, "undo d/x", "compensation.completed d/x, step.failed d");
    trial_play_until(&trial, "undo c/x, z", SAGA_COMPLETED);
}

TEST(a_call_that_was_not_sent_in_a_failing_child_is_given_up)
{
    trial_begin(
        &trial,
        SAGAS("{'id':'c','saga':'wide','on_failure':'continue'},{'id':'z','call':'keyed'}",
              "{'name':'wide','steps':[{'id':'x','call':'keyed','after':[]},{'id':'y','call':'once','after':[]},"
              "{'id':'w','sleep':'1h','after':[]},{'id':'v','call':'keyed','after':[]}]}"),
        "{}");
    assert_string_equal(trial_wants(&trial), "call c/x 1, call c/v 1, timer c/y 0, timer c/w 0 +3600000");
    trial_play_to(&trial, "c/x failed", "step.failed c/x, step.failing c, step.failed c/y, step.failed c/w");
    trial_play(&trial, "c/v");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/v");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

TEST(a_saga_that_fails_takes_along_what_a_child_is_undoing)
{
    trial_begin(
        &trial,
        SAGAS(
            "{'id':'a','call':'keyed'},{'id':'c','saga':'three','after':['a'],'on_failure':'continue'},{'id':'b','call'"
            ":'keyed','after':['a']}",
            "{'name':'three','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'keyed'},{'id':'w','call':'keyed'}]}"),
        "{}");
    trial_play(&trial, "a, c/x, c/y, c/w failed");
    assert_string_equal(trial_wants(&trial), "call b 1, call undo c/y 1");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "call b 1, call undo c/y 1");
    trial_play(&trial, "undo c/y"); /* the undo of c goes on meanwhile */
    assert_string_equal(trial_wants(&trial), "call b 1, call undo c/x 1");
    trial_play_to(&trial, "b", "step.completed b, compensation.planned, compensation.intent b");
    assert_string_equal(trial_wants(&trial), "call undo b 1, call undo c/x 1");
    trial_play(&trial, "undo b");
    assert_string_equal(trial_wants(&trial), "call undo c/x 1"); /* a comes before both */
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/x a");
    is(&trial, SAGA_COMPENSATED);
    assert_string_equal(trial_status(&trial, "c"), "compensated");
}

TEST(an_undo_that_fails_in_a_child_is_a_persons)
{
    static const enum operator_action verbs[] = {OPERATOR_RETRY, OPERATOR_WAIVE, OPERATOR_COMPENSATE, OPERATOR_ABANDON};

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        trial_begin(&trial, SAGAS(WITH_TRIP(",'on_failure':'continue'"), TRIP), "{'to':'Rome'}");
        trial_play_until(&trial, "a, trip/flight, trip/hotel failed, undo trip/flight failed", SAGA_ESCALATED);
        assert_string_equal(trial_status(&trial, "trip"), "compensating");
        assert_int_equal(trial_operator(&trial, verbs[i]), ERR_OK);
        switch (i) {
        case 0:
            assert_string_equal(trial_wants(&trial), "call undo trip/flight 2");
            trial_play_until(&trial, "undo trip/flight, z", SAGA_COMPLETED);
            break;
        case 1: /* the debt stands when the saga ends */
            assert_string_equal(
                trial_records(&trial),
                "escalation.resolved trip/flight, step.waived trip/flight, step.failed trip, step.intent z");
            trial_play_until(&trial, "z", SAGA_ABANDONED);
            assert_int_equal(trial.records.items[trial.records.count - 1].debt_count, 1);
            break;
        case 2: /* all of the saga is undone, and the question is asked again */
            is(&trial, SAGA_ESCALATED);
            assert_string_equal(
                trial_records(&trial),
                "escalation.resolved trip/flight, saga.failing, escalation.opened trip/flight, compensation.planned");
            assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
            assert_string_equal(run_all(&trial, DIRECTION_UNDO), "a");
            is(&trial, SAGA_ABANDONED);
            assert_string_equal(trial_status(&trial, "trip"), "compensation_failed");
            break;
        default:
            is(&trial, SAGA_ABANDONED);
            assert_int_equal(trial.records.items[trial.records.count - 1].debt_count, 2);
            break;
        }
        trial_close_sound(&trial);
    }
}

TEST(an_unknown_outcome_in_a_child_is_settled_before_it_is_undone)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'risky','on_failure':'continue'},{'id':'z','call':'keyed'}",
                      "{'name':'risky','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'once'}]}"),
                "{}");
    trial_play_to(&trial, "c/x, timer c/y, c/y unknown", "step.unknown c/y, escalation.opened c/y");
    trial_takes(&trial, trial_resolve(&trial, false, NULL),
                "escalation.resolved c/y, step.failed c/y, step.failing c, compensation.planned c, "
                "compensation.intent c/x");
    trial_play_until(&trial, "undo c/x, z", SAGA_COMPLETED);
}

TEST(a_step_that_may_be_undone_blindly_is_undone_with_its_child)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'blind','on_failure':'continue'},{'id':'z','call':'keyed'}",
                      "{'name':'blind','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'voidable'}]}"),
                "{}");
    trial_play_to(&trial, "c/x, timer c/y, c/y unknown",
                  "step.unknown c/y, step.failing c, compensation.planned c, compensation.intent c/y");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/y c/x");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

#define LEGS "{'id':'legs','saga':'one','for_each':'${ .input.list }','with':'${ .item }'"

TEST(a_child_runs_once_an_element)
{
    trial_begin(
        &trial,
        SAGAS("{'id':'a','call':'keyed'}," LEGS "},{'id':'z','call':'keyed','with':{'all':'${ .steps.legs.result }'}}",
              "{'name':'one','output':'${ .input.n }','steps':[{'id':'x','call':'keyed','with':{'n':'${ .input.n }'}},"
              "{'id':'y','call':'keyed','with':{'x':'${ .steps.x.result.id }'}}]}"),
        LIST);
    trial_play_to(&trial, "a", "step.completed a, step.opened legs, step.opened legs#0, step.intent legs#0/x");
    same(args_of(&trial, "legs#0/x"), "{\"n\":7}");
    trial_play(&trial, "legs#0/x");
    same(args_of(&trial, "legs#0/y"), "{\"x\":\"legs#0/x-1\"}");
    trial_play_to(&trial, "legs#0/y",
                  "step.completed legs#0/y, step.completed legs#0, step.opened legs#1, step.intent legs#1/x");
    assert_string_equal(run_all(&trial, DIRECTION_DO), "legs#1/x legs#1/y legs#2/x legs#2/y z");
    same(args_of(&trial, "z"), "{\"all\":[7,8,9]}");
    is(&trial, SAGA_COMPLETED);
}

TEST(children_of_elements_are_undone_element_by_element)
{
    trial_begin(&trial, SAGAS(LEGS ",'concurrency':2},{'id':'z','call':'keyed'}", PAIR("one")), LIST);
    assert_string_equal(trial_wants(&trial), "call legs#0/x 1, call legs#1/x 1");
    trial_play(&trial, "legs#1/x, legs#1/y, legs#2/x, legs#0/x, legs#2/y, legs#0/y, z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "legs#2/y legs#2/x legs#1/y legs#1/x legs#0/y legs#0/x");
    is(&trial, SAGA_COMPENSATED);
}

TEST(an_element_that_is_a_child_fails_alone)
{
    trial_begin(
        &trial,
        SAGAS(LEGS ",'on_failure':'continue'},{'id':'z','call':'keyed','with':{'all':'${ .steps.legs.result }'}}",
              "{'name':'one','output':'${ .input.n }','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'keyed'}]}"),
        LIST);
    trial_play(&trial, "legs#0/x, legs#0/y, legs#1/x, legs#1/y failed");
    assert_string_equal(trial_wants(&trial), "call undo legs#1/x 1");
    trial_play(&trial, "undo legs#1/x");
    assert_string_equal(
        trial_records(&trial),
        "compensation.completed legs#1/x, step.failed legs#1, step.opened legs#2, step.intent legs#2/x");
    assert_string_equal(run_all(&trial, DIRECTION_DO), "legs#2/x legs#2/y z");
    same(args_of(&trial, "z"), "{\"all\":[7,null,9]}");
    is(&trial, SAGA_COMPLETED);
}

#define DEEP                                                                                                           \
    "{'name':'outer','steps':[{'id':'p','call':'keyed'},{'id':'in','saga':'inner'" INNER_POLICY                        \
    "},{'id':'q','call':'keyed'}]},"                                                                                   \
    "{'name':'inner','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'keyed'}]}"

TEST(the_nearest_child_that_may_fail_is_undone)
{
#define INNER_POLICY ""
    trial_begin(
        &trial,
        SAGAS("{'id':'a','call':'keyed'},{'id':'out','saga':'outer','on_failure':'continue'},{'id':'z','call':'keyed'}",
              DEEP),
        "{}");
#undef INNER_POLICY
    trial_play(&trial, "a, out/p, out/in/x, out/in/y failed");
    assert_string_equal(
        trial_records(&trial),
        "step.failed out/in/y, step.failing out, compensation.planned out, compensation.intent out/in/x");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "out/in/x out/p");
    assert_string_equal(trial_wants(&trial), "call z 1");
    assert_string_equal(trial_status(&trial, "out/in"), "compensated");
    trial_play(&trial, "z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "a");
    assert_string_equal(trial_status(&trial, "out/in"), "compensated"); /* and after the end */
    assert_string_equal(trial_status(&trial, "out"), "failed");
}

TEST(a_child_in_a_child_fails_alone_and_then_the_one_around_it)
{
#define INNER_POLICY ",'on_failure':'continue'"
    trial_begin(
        &trial,
        SAGAS("{'id':'a','call':'keyed'},{'id':'out','saga':'outer','on_failure':'continue'},{'id':'z','call':'keyed'}",
              DEEP),
        "{}");
#undef INNER_POLICY
    trial_play_to(&trial, "a, out/p, out/in/x, out/in/y failed, undo out/in/x",
                  "compensation.completed out/in/x, step.failed out/in, step.intent out/q");
    trial_play(&trial, "out/q failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "out/p");
    assert_string_equal(trial_wants(&trial), "call z 1");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

/* --- late evidence --- */

static struct saga_input late_success(struct trial *on, const char *step, uint32_t attempt)
{
    struct outcome outcome = {.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":\"late\"}")};

    return trial_outcome(on, SAGA_INPUT_SETTLED, trial_step(on, step), DIRECTION_DO, attempt, outcome);
}

TEST(late_success_in_a_child_that_was_undone_is_undone_too)
{
    trial_begin(&trial, SAGAS(WITH_TRIP(",'on_failure':'continue'"), TRIP), "{'to':'Rome'}");
    trial_play(&trial, "a, trip/flight, trip/hotel failed, undo trip/flight");
    assert_string_equal(trial_wants(&trial), "call z 1");
    trial_takes(&trial, trial_input(&trial, late_success(&trial, "trip/hotel", 1)),
                "step.late trip/hotel, escalation.opened trip/hotel");
    trial_play(&trial, "z");
    is(&trial, SAGA_ESCALATED); /* the saga does not end before the outcome is known */
    assert_int_equal(trial_resolve(&trial, true, "{'id':'late'}"), ERR_OK);
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "trip/hotel");
    is(&trial, SAGA_COMPLETED);
}

TEST(late_success_of_an_element_that_might_fail_is_a_persons)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list "
                           "}','on_failure':'continue'},{'id':'z','call':'keyed'}"),
                LIST);
    trial_play(&trial, "book#0 failed, book#1, book#2");
    assert_int_equal(trial_input(&trial, late_success(&trial, "book#0", 1)), ERR_OK);
    is(&trial, SAGA_ESCALATED);
    trial_play_until(&trial, "z", SAGA_ESCALATED);
    assert_int_equal(trial_resolve(&trial, true, "{'id':'late'}"), ERR_OK);
    is(&trial, SAGA_COMPLETED);
}

TEST(late_success_of_what_a_child_has_undone_blindly_holds_up_the_end_of_the_saga)
{
    trial_begin(
        &trial,
        SAGAS("{'id':'a','call':'keyed'},{'id':'c','saga':'blind','on_failure':'continue'},{'id':'z','call':'keyed'}",
              "{'name':'blind','steps':[{'id':'y','call':'voidable'}]}"),
        "{}");
    trial_play(&trial, "a, timer c/y, c/y unknown, undo c/y, z failed");
    assert_string_equal(trial_wants(&trial), "call undo a 1");
    trial_takes(&trial, trial_input(&trial, late_success(&trial, "c/y", 1)), "step.late c/y, escalation.opened c/y");
    trial_play_until(&trial, "undo a", SAGA_ESCALATED);
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/y");
    is(&trial, SAGA_COMPENSATED);
}

/* --- less common --- */

TEST(children_in_a_row_are_undone_in_a_row)
{
    trial_begin(&trial,
                ROOT("'compensation':{'concurrency':3}",
                     "{'id':'c','saga':'one'},{'id':'d','saga':'one'},{'id':'z','call':'keyed'}", PAIR("one")),
                "{}");
    trial_play(&trial, "c/x, c/y, d/x, d/y, z failed");
    assert_string_equal(trial_wants(&trial), "call undo d/y 1");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "d/y d/x c/y c/x");
}

/* A child whose undo must be evaluated first takes the room of one child, not of two steps. */
TEST(a_child_whose_undo_is_evaluated_takes_the_room_of_one)
{
    trial_begin(&trial,
                ROOT("'compensation':{'concurrency':2}",
                     "{'id':'d','call':'keyed','after':[]},{'id':'c','saga':'wide','after':[]}",
                     "{'name':'wide','compensation':{'concurrency':2},'steps':["
                     "{'id':'x','call':'voidable','after':[],'compensate':{'tool':'undo','with':{'n':'${ 1 + 1 "
                     "}'},'tolerates_absent':true,'voids_key':true}},"
                     "{'id':'y','call':'voidable','after':[],'compensate':{'tool':'undo','with':{'n':'${ 1 + 1 "
                     "}'},'tolerates_absent':true,'voids_key':true}}]}"),
                "{}");
    trial_play(&trial, "d, timer c/x, timer c/y, c/x unknown, c/y unknown");
    assert_string_equal(trial_wants(&trial), "call undo d 1, evaluate undo c/x 2, evaluate undo c/y 2");
    trial_evaluated(&trial, EVALUATE_UNDO, "c/y", "{'n':2}");
    trial_evaluated(&trial, EVALUATE_UNDO, "c/x", "{'n':2}");
    (void)run_all(&trial, DIRECTION_UNDO);
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_question_about_a_step_is_closed_when_its_child_is_undone)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'wide','on_failure':'continue'},{'id':'z','call':'keyed'}",
                      "{'name':'wide','steps':[{'id':'x','call':'keyed','after':[],'on_failure':'escalate'},{'id':'y','"
                      "call':'keyed','after':[]},"
                      "{'id':'w','call':'keyed','after':[]}]}"),
                "{}");
    trial_play_until(&trial, "c/w, c/x failed", SAGA_ESCALATED);
    trial_play(&trial, "c/y failed");
    assert_string_equal(
        trial_records(&trial),
        "step.failed c/y, step.failing c, escalation.resolved c/x, compensation.planned c, compensation.intent c/w");
    trial_play_until(&trial, "undo c/w, z", SAGA_COMPLETED);
}

TEST(a_late_effect_in_a_failed_child_is_undone_behind_a_terminal_step_too)
{
    trial_begin(&trial,
                ROOT("'output':'${ 1 + 1 }'",
                     "{'id':'c','saga':'one','on_failure':'continue'},{'id':'mail','call':'mail'}", PAIR("one")),
                "{}");
    trial_play(&trial, "c/x failed, timer mail, mail");
    assert_string_equal(trial_wants(&trial), "evaluate - 1");
    assert_int_equal(trial_input(&trial, late_success(&trial, "c/x", 1)), ERR_OK);
    is(&trial, SAGA_ESCALATED);
    assert_string_equal(trial_wants(&trial), "");
    assert_int_equal(trial_resolve(&trial, true, "{'id':'late'}"), ERR_OK);
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/x");
    assert_string_equal(trial_wants(&trial), "evaluate - 1");
    trial_evaluated(&trial, EVALUATE_OUTPUT, "-", "2");
    is(&trial, SAGA_COMPLETED);
}

TEST(steps_of_an_undone_child_stay_undone_when_the_saga_completes)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'c','with':'${ .input }','on_failure':'continue'},{'id':'z','call':'keyed'}",
                      "{'name':'c','steps':[{'id':'g','call':'keyed','for_each':'${ .input.list }'}]}"),
                LIST);
    trial_play(&trial, "c/g#0, c/g#1 failed");
    assert_string_equal(trial_status(&trial, "c/g"), "compensating");
    trial_play(&trial, "undo c/g#0");
    assert_string_equal(trial_status(&trial, "c/g"), "compensated");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
    assert_string_equal(trial_status(&trial, "c"), "failed");
    assert_string_equal(trial_status(&trial, "c/g"), "compensated"); /* and not running */
}

TEST(results_that_are_too_large_together_undo_the_saga)
{
    struct buffer large;

    buffer_init(&large, (size_t)1 << 20);
    buffer_printf(&large, "{\"id\":\"");
    while (large.len < 1000000) {
        buffer_put(&large, "0123456789", 10);
    }
    buffer_printf(&large, "\"}");
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'each','on_failure':'continue'}",
                      "{'name':'each','steps':[{'id':'book','call':'keyed','for_each':'${ [range(17)] "
                      "}','compensate':{'tool':'undo'}}]}"),
                "{}");
    trial_evaluated(&trial, EVALUATE_ARGS, "c/book", "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]");
    while (wanted_call(&trial, DIRECTION_DO) != STEP_NONE) {
        struct outcome outcome = {.kind = OUTCOME_COMPLETED, .result = buffer_slice(&large)};

        assert_int_equal(
            trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, wanted_call(&trial, DIRECTION_DO),
                                              DIRECTION_DO, 1, outcome)),
            ERR_OK);
    }
    assert_string_equal(trial_status(&trial, "c"), "compensating");
    (void)run_all(&trial, DIRECTION_UNDO);
    assert_string_equal(trial_status(&trial, "c"), "failed");
    is(&trial, SAGA_COMPLETED);
    trial_close(&trial);
    buffer_fini(&large);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
