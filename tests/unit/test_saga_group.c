/*
 * Groups forward, and undone with their saga: elements of for_each and the steps of child sagas. Every trial ends with
 * a replay from the log. test_saga_group_undo.c has children that are undone on their own.
 */
#include <time.h>

#include "tests/unit/group_trial.h"

static struct trial trial;

/* --- for_each --- */

TEST(elements_run_one_after_the_other_and_give_their_results_in_order)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_AND_AFTER), LIST);
    trial_play_to(&trial, "a", "step.completed a, step.opened book, step.intent book#0");
    assert_string_equal(trial_wants(&trial), "call book#0 1");
    same(args_of(&trial, "book#0"), "{\"n\":7}");
    assert_string_equal(trial_status(&trial, "book"), "running");
    assert_string_equal(trial_status(&trial, "book#1"), "pending");
    trial_play_to(&trial, "book#0", "step.completed book#0, step.intent book#1");
    same(args_of(&trial, "book#1"), "{\"n\":8}");
    trial_play_to(&trial, "book#1, book#2", "step.completed book#2, step.completed book, step.intent z");
    same(result_of(&trial, "book"), "[{\"id\":\"book#0-1\"},{\"id\":\"book#1-1\"},{\"id\":\"book#2-1\"}]");
    same(args_of(&trial, "z"), "{\"all\":[{\"id\":\"book#0-1\"},{\"id\":\"book#1-1\"},{\"id\":\"book#2-1\"}]}");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

TEST(elements_have_keys_of_their_own)
{
    struct op_identity identity;
    struct op_key key;

    trial_begin(&trial, TRIAL_SAGA(EACH), LIST);
    identity = (struct op_identity){.namespace = SLICE("default"),
                                    .run = trial.saga.run,
                                    .step = SLICE("book#0"),
                                    .tool = SLICE("keyed"),
                                    .direction = DIRECTION_DO};
    key = op_key_make(&identity);
    assert_true(uuid_equal(&key.uuid, &trial.saga.steps[trial_step(&trial, "book#0")].forward.key.uuid));
}

TEST(no_elements_are_done_at_once)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_AND_AFTER), "{'list':[]}");
    trial_play_to(&trial, "a", "step.completed a, step.opened book, step.completed book, step.intent z");
    same(result_of(&trial, "book"), "[]");
    trial_play(&trial, "z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "a");
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_step_fails_whose_elements_are_no_array_or_too_many)
{
    struct buffer input;

    trial_begin(&trial, TRIAL_SAGA(EACH), "{'list':{'n':1}}");
    assert_string_equal(trial_records(&trial),
                        "saga.started, step.failed book, saga.failing book, compensation.planned, "
                        "saga.compensated");
    same(trial.saga.steps[0].forward.error, "arguments");
    trial_close_sound(&trial);

    buffer_init(&input, 65536);
    buffer_printf(&input, "{'list':[0");
    for (unsigned i = 1; i <= FOR_EACH_MAX; i++) {
        buffer_printf(&input, ",%u", i);
    }
    buffer_printf(&input, "]}%c", 0);
    trial_begin(&trial, TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list }'}"), input.ptr);
    is(&trial, SAGA_COMPENSATED);
    trial_close_sound(&trial);
    buffer_fini(&input);
}

#define CONCURRENT                                                                                                     \
    "{'id':'a','call':'keyed'},{'id':'book','call':'keyed','for_each':'${ .input.list }','concurrency':2},"            \
    "{'id':'z','call':'keyed'}"

TEST(as_many_elements_as_allowed_run_at_once_and_begin_in_order)
{
    trial_begin(&trial, TRIAL_SAGA(CONCURRENT), "{'list':[1,2,3,4]}");
    trial_play(&trial, "a");
    assert_string_equal(trial_wants(&trial), "call book#0 1, call book#1 1");
    trial_play(&trial, "book#1");
    assert_string_equal(trial_wants(&trial), "call book#0 1, call book#2 1");
    trial_play(&trial, "book#2, book#3");
    assert_string_equal(trial_wants(&trial), "call book#0 1");
    trial_play(&trial, "book#0");
    assert_string_equal(trial_wants(&trial), "call z 1");
    trial_play(&trial, "z failed");
    /* The order of the answers does not matter. */
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "book#3 book#2 book#1 book#0 a");
    is(&trial, SAGA_COMPENSATED);
    assert_string_equal(trial_status(&trial, "book"), "compensated");
}

TEST(an_element_that_fails_has_those_before_it_undone)
{
    trial_begin(&trial, TRIAL_SAGA(EACH_AND_AFTER), LIST);
    trial_play_to(&trial, "a, book#0, book#1, book#2 failed",
                  "step.failed book#2, saga.failing book#2, compensation.planned, "
                  "compensation.intent book#1");
    same(step_undo(&trial.saga.steps[trial_step(&trial, "book#1")])->args, "{\"id\":\"book#1-1\"}");
    assert_string_equal(trial_status(&trial, "book"), "compensating");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "book#1 book#0 a");
    is(&trial, SAGA_COMPENSATED);
    assert_string_equal(trial_status(&trial, "book"), "compensated");
    assert_string_equal(trial_status(&trial, "book#2"), "failed");
}

TEST(an_element_that_may_fail_gives_null)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list }','on_failure':'continue'},"
                           "{'id':'z','call':'keyed','with':{'all':'${ .steps.book.result }'}}"),
                LIST);
    trial_play_to(&trial, "book#0, book#1 failed", "step.failed book#1, step.intent book#2");
    trial_play(&trial, "book#2");
    same(args_of(&trial, "z"), "{\"all\":[{\"id\":\"book#0-1\"},null,{\"id\":\"book#2-1\"}]}");
    trial_play(&trial, "z failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "book#2 book#0");
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_person_is_asked_about_one_element)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list }','on_failure':'escalate'}"), LIST);
    trial_play_to(&trial, "book#0 failed", "step.failed book#0, escalation.opened book#0");
    trial_takes(&trial, trial_operator(&trial, OPERATOR_SKIP),
                "escalation.resolved book#0, step.skipped book#0, step.intent book#1");
    trial_play(&trial, "book#1 failed");
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_OK);
    trial_play(&trial, "timer book#1");
    assert_string_equal(run_all(&trial, DIRECTION_DO), "book#1 book#2");
    same(result_of(&trial, "book"), "[null,{\"id\":\"book#1-1\"},{\"id\":\"book#2-1\"}]");
    is(&trial, SAGA_COMPLETED);
}

TEST(a_condition_is_asked_once_for_all_elements)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list }','when':'${ .input.wanted }'},"
                           "{'id':'z','call':'keyed','with':{'book':'${ .steps.book.status }'}}"),
                "{'wanted':false,'list':'not even looked at'}");
    assert_string_equal(trial_records(&trial), "saga.started, step.skipped book, step.intent z");
    same(args_of(&trial, "z"), "{\"book\":\"skipped\"}");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

TEST(an_abort_in_the_middle_waits_for_what_is_in_flight_and_starts_no_element)
{
    trial_begin(&trial, TRIAL_SAGA(CONCURRENT), "{'list':[1,2,3,4]}");
    trial_play(&trial, "a, book#0");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "call book#1 1, call book#2 1");
    assert_string_equal(trial_status(&trial, "book"), "compensating");
    trial_play(&trial, "book#2, book#1 failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "book#2 book#0 a");
    is(&trial, SAGA_COMPENSATED);
}

TEST(the_deadline_of_the_saga_stops_elements_too)
{
    trial_begin(&trial, TRIAL_SAGA_WITH("'deadline':'1m'", EACH), LIST);
    trial_play(&trial, "book#0, timer -, book#1");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "book#1 book#0");
    is(&trial, SAGA_COMPENSATED);
}

TEST(elements_can_be_undone_side_by_side_where_they_ran_so)
{
    trial_begin(
        &trial,
        TRIAL_SAGA_WITH(
            "'compensation':{'concurrency':2}",
            "{'id':'book','call':'keyed','for_each':'${ .input.list }','concurrency':3},{'id':'z','call':'keyed'}"),
        "{'list':[1,2,3]}");
    trial_play(&trial, "book#0, book#1, book#2, z failed");
    assert_string_equal(trial_wants(&trial), "call undo book#1 1, call undo book#2 1");
    trial_play(&trial, "undo book#1");
    assert_string_equal(trial_wants(&trial), "call undo book#0 1, call undo book#2 1");
    (void)run_all(&trial, DIRECTION_UNDO);
    is(&trial, SAGA_COMPENSATED);
}

TEST(elements_that_ran_one_after_the_other_are_undone_so)
{
    trial_begin(&trial, TRIAL_SAGA_WITH("'compensation':{'concurrency':2}", EACH ",{'id':'z','call':'keyed'}"), LIST);
    (void)trial;
    trial_play(&trial, "book#0, book#1, book#2, z failed");
    assert_string_equal(trial_wants(&trial), "call undo book#2 1");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "book#2 book#1 book#0");
}

TEST(no_step_of_a_paused_saga_begins)
{
    trial_begin(&trial, TRIAL_SAGA(EACH), LIST);
    assert_int_equal(trial_pause(&trial), ERR_OK);
    trial_play_to(&trial, "book#0", "step.completed book#0");
    assert_string_equal(trial_wants(&trial), "");
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "call book#1 1");
}

/* --- child sagas --- */

TEST(a_child_runs_as_one_step_and_gives_its_output)
{
    trial_begin(&trial, SAGAS(WITH_TRIP(""), TRIP), "{'to':'Rome'}");
    trial_play_to(&trial, "a", "step.completed a, step.opened trip, step.intent trip/flight");
    same(args_of(&trial, "trip"), "{\"to\":\"Rome\"}");
    same(args_of(&trial, "trip/flight"), "{\"to\":\"Rome\"}");
    trial_play(&trial, "trip/flight");
    same(args_of(&trial, "trip/hotel"), "{\"of\":\"trip/flight-1\"}");
    trial_play_to(&trial, "trip/hotel", "step.completed trip/hotel, step.completed trip, step.intent z");
    same(result_of(&trial, "trip"), "{\"hotel\":\"trip/hotel-1\",\"who\":\"trip\"}");
    same(args_of(&trial, "z"), "{\"trip\":\"completed\"}");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

TEST(a_failure_after_a_child_undoes_it_with_the_saga)
{
    trial_begin(&trial, SAGAS(WITH_TRIP(""), TRIP), "{'to':'Rome'}");
    trial_play(&trial, "a, trip/flight, trip/hotel, z failed");
    assert_string_equal(trial_status(&trial, "trip"), "compensating");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "trip/hotel trip/flight a");
    is(&trial, SAGA_COMPENSATED);
    assert_string_equal(trial_status(&trial, "trip"), "compensated");
}

TEST(a_failure_in_a_child_undoes_the_saga)
{
    trial_begin(&trial, SAGAS(WITH_TRIP(""), TRIP), "{'to':'Rome'}");
    trial_play_to(&trial, "a, trip/flight, trip/hotel failed",
                  "step.failed trip/hotel, saga.failing trip/hotel, compensation.planned, "
                  "compensation.intent trip/flight");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "trip/flight a");
    is(&trial, SAGA_COMPENSATED);
}

TEST(an_input_that_a_child_does_not_take_fails_its_step)
{
    trial_begin(
        &trial,
        SAGAS("{'id':'c','saga':'child','with':{'n':'${ .input.n }'}}",
              "{'name':'child','input':{'type':'object','required':['n'],'properties':{'n':{'type':'integer'}}},"
              "'steps':[{'id':'x','call':'keyed'}]}"),
        "{'n':'one'}");
    same(trial.saga.steps[0].forward.error, "arguments");
    is(&trial, SAGA_COMPENSATED);
}

#define TEN                                                                                                            \
    "{'name':'ten','steps':[{'id':'a','call':'keyed'},{'id':'b','call':'keyed'},{'id':'c','call':'keyed'},"            \
    "{'id':'d','call':'keyed'},{'id':'e','call':'keyed'},{'id':'f','call':'keyed'},{'id':'g','call':'keyed'},"         \
    "{'id':'h','call':'keyed'},{'id':'i','call':'keyed'},{'id':'j','call':'keyed'}]}"

/* A thousand elements are allowed, but not with their ten thousand steps. If that were found out later, effects would
 * have to be undone. */
TEST(elements_whose_steps_are_too_many_fail_before_the_first_begins)
{
    struct buffer input;

    buffer_init(&input, 65536);
    buffer_printf(&input, "{'all':[0");
    for (unsigned i = 1; i < FOR_EACH_MAX; i++) {
        buffer_printf(&input, ",%u", i);
    }
    buffer_printf(&input, "]}%c", 0);
    trial_begin(&trial, SAGAS("{'id':'each','for_each':'${ .input.all }','saga':'ten'}", TEN), input.ptr);
    assert_string_equal(trial_records(&trial),
                        "saga.started, step.failed each, saga.failing each, compensation.planned, "
                        "saga.compensated");
    same(trial.saga.steps[0].forward.detail,
         "the saga has 1 steps by now and would have 11000 more; 10000 are allowed");
    trial_close_sound(&trial);
    buffer_fini(&input);
}

#define DUE "{'name':'due','deadline':'1m','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'keyed'}]}"

TEST(the_deadline_of_a_child_counts_from_its_opening)
{
    trial_begin(&trial, SAGAS("{'id':'a','call':'keyed'},{'id':'c','saga':'due','on_failure':'continue'}", DUE), "{}");
    trial.now_ms += 30000;
    trial_play(&trial, "a");
    assert_string_equal(trial_wants(&trial), "call c/x 1, timer c 0 +60000");
    trial_play_to(&trial, "c/x, timer c", "step.failing c");
    assert_string_equal(trial_wants(&trial), "call c/y 1");
    trial_play(&trial, "c/y");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/y c/x");
    assert_string_equal(trial_status(&trial, "c"), "failed");
    is(&trial, SAGA_COMPLETED);
    trial_close_sound(&trial);

    trial_begin(&trial, SAGAS("{'id':'c','saga':'due'}", DUE), "{}");
    trial_play_to(&trial, "c/x, timer c", "saga.failing c");
    same(trial.saga.failing_reason, "deadline");
    trial_play(&trial, "c/y failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/x");
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_child_without_a_deadline_has_no_timer_when_its_work_is_done)
{
    trial_begin(&trial, SAGAS("{'id':'c','saga':'due'},{'id':'z','call':'keyed'}", DUE), "{}");
    assert_string_equal(run_all(&trial, DIRECTION_DO), "c/x c/y z");
    is(&trial, SAGA_COMPLETED);
}

#define BAD_OUTPUT "{'name':'bad','output':{'n':'${ .steps.x.result.id.n }'},'steps':[{'id':'x','call':'keyed'}]}"

TEST(a_child_whose_output_cannot_be_made_has_failed)
{
    trial_begin(&trial, SAGAS("{'id':'c','saga':'bad','on_failure':'continue'},{'id':'z','call':'keyed'}", BAD_OUTPUT),
                "{}");
    trial_play_to(&trial, "c/x", "step.completed c/x, step.failing c, compensation.planned c, compensation.intent c/x");
    trial_play_until(&trial, "undo c/x, z", SAGA_COMPLETED);
    trial_close_sound(&trial);

    trial_begin(&trial, SAGAS("{'id':'c','saga':'bad'},{'id':'z','call':'keyed'}", BAD_OUTPUT), "{}");
    trial_play(&trial, "c/x");
    same(trial.saga.failing_reason, "output");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/x");
    is(&trial, SAGA_COMPENSATED);
}

TEST(an_output_with_a_program_is_evaluated)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'sum'},{'id':'z','call':'keyed','with':{'n':'${ .steps.c.result }'}}",
                      "{'name':'sum','deadline':'1m','output':'${ [.steps.x.result.id] | length "
                      "}','steps':[{'id':'x','call':'keyed'}]}"),
                "{}");
    trial_play(&trial, "c/x");
    assert_string_equal(trial_wants(&trial), "evaluate c 1"); /* the deadline is no longer wanted */
    trial_evaluated(&trial, EVALUATE_OUTPUT, "c", "1");
    same(args_of(&trial, "z"), "{\"n\":1}");
    trial_play_until(&trial, "z", SAGA_COMPLETED);
}

#define LAST                                                                                                           \
    "{'name':'last','output':{'n':'${ .steps.x.result.id.n "                                                           \
    "}'},'steps':[{'id':'x','call':'keyed'},{'id':'mail','call':'mail_probed'}]}"

TEST(behind_a_terminal_step_in_the_last_child_there_is_no_way_back)
{
    trial_begin(&trial, SAGAS("{'id':'a','call':'keyed'},{'id':'c','saga':'last'}", LAST), "{}");
    trial_play(&trial, "a, c/x, timer c/mail, c/mail");
    /* The output cannot be made, but the effect cannot be undone. */
    assert_string_equal(trial_records(&trial), "step.completed c/mail, step.completed c, saga.completed");
    same(result_of(&trial, "c"), "null");
    assert_int_equal(trial_abort(&trial), ERR_PAST_RETURN);
}

TEST(a_terminal_step_in_a_child_that_was_on_its_way_turns_an_abort)
{
    trial_begin(&trial, SAGAS("{'id':'a','call':'keyed'},{'id':'c','saga':'last'}", LAST), "{}");
    trial_play(&trial, "a, c/x, timer c/mail");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    trial_play_until(&trial, "c/mail", SAGA_COMPLETED);
}

TEST(a_terminal_step_in_a_child_that_fails_lets_the_saga_be_undone)
{
    trial_begin(&trial, SAGAS("{'id':'a','call':'keyed'},{'id':'c','saga':'last'}", LAST), "{}");
    trial_play(&trial, "a, c/x, timer c/mail, c/mail failed");
    assert_string_equal(run_all(&trial, DIRECTION_UNDO), "c/x a");
    is(&trial, SAGA_COMPENSATED);
}

TEST(a_terminal_step_that_turns_out_to_have_happened_completes_the_child_that_was_to_be_undone)
{
    trial_begin(
        &trial,
        SAGAS("{'id':'a','call':'keyed'},{'id':'c','saga':'late','on_failure':'escalate'}",
              "{'name':'late','deadline':'1m','steps':[{'id':'x','call':'keyed'},{'id':'mail','call':'mail'}]}"),
        "{}");
    trial_play_until(&trial, "a, c/x, timer c/mail, c/mail unknown", SAGA_ESCALATED);
    /* The deadline of the child counts all the same. */
    trial_play_to(&trial, "timer c", "step.failing c, compensation.planned c");
    assert_string_equal(trial_wants(&trial), ""); /* the undo of c/x waits for the verdict */
    trial_takes(&trial, trial_resolve(&trial, true, "{'sent':true}"),
                "escalation.resolved c/mail, step.completed c/mail, step.completed c, saga.completed");
    assert_int_equal(trial.saga.plan_count, 0);
    is(&trial, SAGA_COMPLETED);
}

/* --- what is evaluated, and waits --- */

TEST(elements_whose_arguments_are_programs_wait_for_their_turn)
{
    trial_begin(
        &trial,
        TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list }','with':{'n':'${ .item.n + 1 }'}}"), LIST);
    assert_string_equal(trial_wants(&trial), "evaluate book#0 0");
    trial_evaluated(&trial, EVALUATE_ARGS, "book#0", "{'n':8}");
    assert_string_equal(trial_wants(&trial), "call book#0 1");
    trial_play(&trial, "book#0");
    assert_string_equal(trial_wants(&trial), "evaluate book#1 0");
}

TEST(an_array_that_is_a_program_is_evaluated_first)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list[:2] }','with':'${ .item }'}"), LIST);
    assert_string_equal(trial_wants(&trial), "evaluate book 0");
    trial_evaluated(&trial, EVALUATE_ARGS, "book", "[{'n':1}]");
    assert_string_equal(trial_records(&trial), "step.opened book, step.intent book#0");
    assert_string_equal(run_all(&trial, DIRECTION_DO), "book#0");
    is(&trial, SAGA_COMPLETED);
}

TEST(waits_are_elements_and_members_like_calls)
{
    trial_begin(&trial,
                SAGAS("{'id':'c','saga':'nap','for_each':'${ .input.list }','concurrency':3}",
                      "{'name':'nap','steps':[{'id':'s','sleep':'1m'},{'id':'go','signal':{'name':'go'}}]}"),
                LIST);
    is(&trial, SAGA_WAITING);
    trial_play(&trial, "timer c#0/s, timer c#1/s, timer c#2/s");
    assert_int_equal(trial_signal(&trial, "go", "1", NULL), ERR_OK);
    assert_int_equal(trial_signal(&trial, "go", "2", NULL), ERR_OK);
    is(&trial, SAGA_WAITING);
    assert_int_equal(trial_signal(&trial, "go", "3", NULL), ERR_OK);
    is(&trial, SAGA_COMPLETED);
}

/* --- many --- */

TEST(a_thousand_elements_are_walked_through_and_undone)
{
    struct buffer input;
    clock_t began;

    buffer_init(&input, 65536);
    buffer_printf(&input, "{'list':[0");
    for (unsigned i = 1; i < FOR_EACH_MAX; i++) {
        buffer_printf(&input, ",%u", i);
    }
    buffer_printf(&input, "]}%c", 0);
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'book','call':'keyed','for_each':'${ .input.list }','with':{'n':'${ .item "
                           "}'}},{'id':'z','call':'keyed'}"),
                input.ptr);
    began = clock();
    for (unsigned i = 0; i < FOR_EACH_MAX; i++) {
        char step[32];

        (void)snprintf(step, sizeof(step), "book#%u", i);
        trial_settle(&trial, step, OUTCOME_COMPLETED);
    }
    trial_play(&trial, "z failed");
    for (unsigned i = FOR_EACH_MAX; i > 0; i--) {
        char step[32];

        (void)snprintf(step, sizeof(step), "book#%u", i - 1);
        trial_settle_undo(&trial, step, OUTCOME_COMPLETED);
    }
    print_message("%u elements took %ld ms\n", FOR_EACH_MAX, (long)((clock() - began) * 1000 / CLOCKS_PER_SEC));
    is(&trial, SAGA_COMPENSATED);
    trial_close(&trial);
    buffer_fini(&input);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
