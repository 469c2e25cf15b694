/* for_each directly on steps that wait: a time, a signal or an approval for each element. */
#include "tests/unit/group_trial.h"

#define EACH_OF(members) "{'id':'each','for_each':'${ .input.list }'," members "}"
#define MINUTE_MS INT64_C(60000)

static const struct operation *forward(const struct trial *trial, const char *step)
{
    return &trial->saga.steps[trial_step(trial, step)].forward;
}

static struct trial trial;

/* --- sleep --- */

TEST(elements_sleep_one_after_the_other_each_as_long_as_it_says)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'a','call':'keyed'}," EACH_OF(
                    "'sleep':'${ .item.for }'") ",{'id':'z','call':'keyed','with':{'all':'${ .steps.each.result }'}}"),
                "{'list':[{'for':'10m'},{'for':'0s'},{'for':'2023-11-14T22:53:20Z'}]}");
    trial_play_to(&trial, "a", "step.completed a, step.opened each, step.waiting each#0");
    assert_string_equal(trial_wants(&trial), "timer each#0 0 +600000");
    is(&trial, SAGA_WAITING);
    assert_string_equal(trial_status(&trial, "each"), "running");
    trial_check_replay(&trial);
    /* Ten minutes later, the second element need not sleep. */
    trial_play_to(&trial, "timer each#0",
                  "step.completed each#0, step.waiting each#1, step.completed each#1, "
                  "step.waiting each#2");
    assert_string_equal(trial_wants(&trial), "timer each#2 0 +1800000");
    trial_play_to(&trial, "timer each#2", "step.completed each#2, step.completed each, step.intent z");
    same(args_of(&trial, "z"), "{\"all\":[null,null,null]}");
    trial_play(&trial, "z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "a"); /* a sleep has nothing to undo */
    is(&trial, SAGA_COMPENSATED);
}

TEST(elements_sleep_side_by_side_as_far_as_allowed)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'sleep':'${ .item }','concurrency':2")), "{'list':['1h','2h','1h']}");
    assert_string_equal(trial_wants(&trial), "timer each#0 0 +3600000, timer each#1 0 +7200000");
    trial_play(&trial, "timer each#0");
    assert_string_equal(trial_wants(&trial), "timer each#1 0 +3600000, timer each#2 0 +3600000");
    /* Both are over, because each has its own timer. */
    trial_play_to(&trial, "timer each#2",
                  "step.completed each#2, step.completed each#1, step.completed each, "
                  "saga.completed");
}

TEST(the_sleep_of_an_element_may_be_a_program)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'sleep':'${ .item + \\\"m\\\" }'")), "{'list':['5','x']}");
    assert_string_equal(trial_wants(&trial), "evaluate each#0 0");
    trial_evaluated(&trial, EVALUATE_ARGS, "each#0", "'5m'");
    assert_string_equal(trial_wants(&trial), "timer each#0 0 +300000");
    trial_play(&trial, "timer each#0");
    assert_string_equal(trial_wants(&trial), "evaluate each#1 0");
    trial_evaluated(&trial, EVALUATE_ARGS, "each#1", "'xm'");
    assert_string_equal(trial_records(&trial),
                        "step.failed each#1, saga.failing each#1, compensation.planned, saga.compensated");
    same(forward(&trial, "each#1")->error, "arguments");
}

TEST(the_elements_may_come_from_a_program_that_changes_nothing)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'each','for_each':'${ .input.list | map(.) }','sleep':'${ .item }'}"),
                "{'list':['1m','1m']}");
    assert_string_equal(trial_wants(&trial), "evaluate each 0");
    trial_evaluated(&trial, EVALUATE_ARGS, "each", "['1m','1m']"); /* two equal elements */
    assert_string_equal(trial_records(&trial), "step.opened each, step.waiting each#0");
    trial_play_until(&trial, "timer each#0, timer each#1", SAGA_COMPLETED);
}

TEST(an_element_that_is_no_time_fails_as_the_step_says)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}," EACH_OF("'sleep':'${ .item }'")),
                "{'list':['0s','soon']}");
    trial_play_to(&trial, "a",
                  "step.completed a, step.opened each, step.waiting each#0, step.completed each#0, "
                  "step.failed each#1, saga.failing each#1, compensation.planned, compensation.intent a");
    trial_play(&trial, "undo a");
    trial_close_sound(&trial);

    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'sleep':'${ .item }','on_failure':'continue'")),
                "{'list':['soon',null,'0s']}");
    is(&trial, SAGA_COMPLETED);
    same(result_of(&trial, "each"), "[null,null,null]");
}

TEST(a_pause_stops_the_clock_of_each_element)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'sleep':'${ .item }','concurrency':2")), "{'list':['10m','20m','1m']}");
    trial.now_ms += 5 * MINUTE_MS;
    assert_int_equal(trial_pause(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "");
    trial.now_ms += 60 * MINUTE_MS;
    trial_play_to(&trial, "timer each#0", "");
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "timer each#0 0 +300000, timer each#1 0 +900000");
    trial_play_to(&trial, "timer each#0", "step.completed each#0, step.waiting each#2");
    trial_takes(&trial, trial_abort(&trial),
                "saga.failing, step.failed each#1, step.failed each#2, "
                "compensation.planned, saga.compensated");
    same(forward(&trial, "each#1")->error, "stopped");
}

/* --- signals --- */

TEST(each_element_takes_one_signal_and_their_payloads_are_the_result)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'signal':{'name':'paid','timeout':'1h'},'concurrency':2")),
                "{'list':['x','y','z']}");
    assert_string_equal(trial_wants(&trial), "timer each#0 0 +3600000, timer each#1 0 +3600000");
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1}", "s-1"),
                "signal.received each#0, step.completed each#0, step.waiting each#2");
    /* The same signal again is for no other element. */
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1}", "s-1"), "");
    assert_int_equal(trial_signal(&trial, "paid", "{'n':2}", "s-2"), ERR_OK);
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':3}", "s-3"),
                "signal.received each#2, step.completed each#2, step.completed each, saga.completed");
    same(result_of(&trial, "each"), "[{\"n\":1},{\"n\":2},{\"n\":3}]");
}

TEST(signals_that_came_early_are_taken_in_order_as_elements_begin)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}," EACH_OF("'signal':{'name':'paid'}")),
                "{'list':[1,1,1]}");
    assert_int_equal(trial_signal(&trial, "paid", "'first'", NULL), ERR_OK);
    assert_int_equal(trial_signal(&trial, "paid", "'second'", NULL), ERR_OK);
    trial_play_to(&trial, "a",
                  "step.completed a, step.opened each, step.waiting each#0, step.completed each#0, "
                  "step.waiting each#1, step.completed each#1, step.waiting each#2");
    assert_string_equal(trial_wants(&trial), "");
    is(&trial, SAGA_WAITING);
    assert_int_equal(saga_rests_until(&trial.saga, &trial.turn), INT64_MAX);
    assert_int_equal(trial_signal(&trial, "paid", "'third'", NULL), ERR_OK);
    same(result_of(&trial, "each"), "[\"first\",\"second\",\"third\"]");
    is(&trial, SAGA_COMPLETED);
}

TEST(an_element_whose_signal_does_not_come_gives_null_where_the_step_goes_on)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'signal':{'name':'paid','timeout':'1m'},'on_failure':'continue'")),
                "{'list':[1,2]}");
    trial_play_to(&trial, "timer each#0", "step.failed each#0, step.waiting each#1");
    assert_int_equal(trial_signal(&trial, "paid", "true", NULL), ERR_OK);
    same(result_of(&trial, "each"), "[null,true]");
    is(&trial, SAGA_COMPLETED);
}

TEST(a_signal_nobody_waits_for_is_refused_and_each_name_is_told_once)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'signal':{'name':'paid'}")), "{'list':[1,2,3]}");
    assert_int_equal(trial_signal(&trial, "payed", "1", NULL), ERR_INVALID);
    assert_string_equal(trial.err.hint, "Awaited are: paid.");
}

/* --- approvals --- */

TEST(each_element_is_shown_and_decided_on_its_own)
{
    trial_begin(&trial,
                TRIAL_SAGA(EACH_OF("'approve':{'show':{'pay':'${ .item.n }','of':'${ .input.who }'},'timeout':'1h'},"
                                   "'concurrency':2")),
                "{'who':'ann','list':[{'n':7},{'n':8},{'n':7}]}");
    same(args_of(&trial, "each#0"), "{\"pay\":7,\"of\":\"ann\"}");
    same(args_of(&trial, "each#1"), "{\"pay\":8,\"of\":\"ann\"}");
    assert_int_equal(trial.saga.steps[trial_step(&trial, "each#0")].approval, 64);
    assert_int_equal(trial.saga.steps[trial_step(&trial, "each#1")].approval, 128);
    trial_takes(&trial, trial_decide(&trial, "each#1", true, ROLE_OPERATOR),
                "approval.decided each#1, step.completed each#1, step.waiting each#2");
    assert_int_equal(trial.saga.steps[trial_step(&trial, "each#2")].approval,
                     192); /* the same approval once more is another one */
    assert_int_equal(trial_decide(&trial, "each#1", true, ROLE_OPERATOR), ERR_DECIDED);
    assert_int_equal(trial_decide(&trial, "each#0", true, ROLE_OPERATOR), ERR_OK);
    trial_takes(&trial, trial_decide(&trial, "each#2", false, ROLE_OPERATOR),
                "approval.decided each#2, step.failed each#2, saga.failing each#2, "
                "compensation.planned, saga.compensated");
    same(forward(&trial, "each#2")->error, "refused");
}

TEST(about_an_element_that_was_refused_a_person_may_be_asked)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_OF("'approve':{'show':'${ .item }'},'concurrency':2,'on_failure':'escalate'")),
                "{'list':[1,2,3]}");
    /* Meanwhile decisions are accepted, but nothing begins. */
    trial_takes(&trial, trial_decide(&trial, "each#0", false, ROLE_OPERATOR),
                "approval.decided each#0, step.failed each#0, escalation.opened each#0");
    trial_takes(&trial, trial_decide(&trial, "each#1", true, ROLE_OPERATOR),
                "approval.decided each#1, step.completed each#1");
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_CONFLICT); /* the step is no call */
    trial_takes(&trial, trial_operator(&trial, OPERATOR_SKIP),
                "escalation.resolved each#0, step.skipped each#0, step.waiting each#2");
    assert_int_equal(trial_decide(&trial, "each#2", true, ROLE_OPERATOR), ERR_OK);
    is(&trial, SAGA_COMPLETED);
    assert_true(json_type(json_element(result_of(&trial, "each"), 0)) == JSON_NULL);
    assert_true(json_type(json_element(result_of(&trial, "each"), 1)) == JSON_OBJECT);
}

TEST(nobody_waits_without_elements)
{
    static const char *const kinds[] = {EACH_OF("'sleep':'${ .item }'"), EACH_OF("'signal':{'name':'paid'}"),
                                        EACH_OF("'approve':{'show':'${ .item }'}")};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char document[16384];

        (void)snprintf(document, sizeof(document),
                       "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[%s]}]}", kinds[i]);
        trial_begin(&trial, document, "{'list':[]}");
        assert_string_equal(trial_records(&trial),
                            "saga.started, step.opened each, step.completed each, saga.completed");
        same(result_of(&trial, "each"), "[]");
        trial_close_sound(&trial);
    }
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
