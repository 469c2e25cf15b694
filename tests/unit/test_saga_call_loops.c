/* An agent that goes round in circles is stopped. An agent that waits, races, or comes back because it was told to, is
 * not. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

#include "base/json.h"

/* Makes an operation "a" that has completed, in the first turn. */
static void settled_once(struct call_trial *t)
{
    assert_int_equal(CALL(t, "coalesce", "a", .emission = "first", .turn = "1"), ERR_OK);
    call_trial_settle(t, "a", OUTCOME_COMPLETED, NULL);
}

static struct call_trial t;

TEST(equal_calls_with_equal_answers_are_a_loop_cache_hits_included)
{
    call_trial_run(&t);
    settled_once(&t);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK);
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_LOOP, "operation.duplicate a (loop), loop.tripped a");
    assert_true(slice_is(t.records.answer.pattern, "[{\"tool\":\"coalesce\",\"step\":\"a\",\"scope\":null}]"));
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':1}"), ERR_OK); /* all other calls pass */
}

TEST(a_new_turn_lets_them_pass_again)
{
    call_trial_run(&t);
    settled_once(&t);
    CALL(&t, "coalesce", "a", .turn = "1");
    assert_int_equal(CALL(&t, "coalesce", "a", .turn = "1"), ERR_LOOP);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .turn = "2"), ERR_OK, "operation.duplicate a (replayed)");
    assert_int_equal(t.saga.loop->trips, 1);
}

TEST(reads_in_turns_are_a_loop_of_two_and_both_are_closed)
{
    call_trial_run(&t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(CALL(&t, "look", "a"), ERR_OK);
        call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
        if (i < 2) {
            assert_int_equal(CALL(&t, "look", "b", "{'b':1}"), ERR_OK);
            call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
        }
    }
    call_trial_takes(&t, CALL(&t, "look", "b", "{'b':1}"), ERR_LOOP, "operation.duplicate b (loop), loop.tripped b");
    assert_int_equal(json_count(t.records.answer.pattern), 2);
    assert_int_equal(CALL(&t, "look", "a"), ERR_LOOP);
    assert_int_equal(CALL(&t, "look", "b", "{'b':1}"), ERR_LOOP);
}

TEST(other_names_for_the_same_call_go_round_too)
{
    call_trial_run(&t);
    CALL(&t, "look", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, "{'same':1}");
    CALL(&t, "look", "b");
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, "{'same':1}");
    call_trial_takes(&t, CALL(&t, "look", "c"), ERR_LOOP, "loop.tripped"); /* an operation that nobody knows */
    assert_int_equal(t.saga.definition->step_count, 2);
}

TEST(a_second_loop_pauses_until_an_operator_resumes)
{
    call_trial_open(&t, NULL, "{'repeats':2,'max_cycle':1}", NULL);
    settled_once(&t);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP); /* already the second of two */
    CALL(&t, "look", "b", .turn = "2");
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "look", "b"), ERR_LOOP, "operation.duplicate b (loop), loop.tripped b, saga.paused");
    assert_int_equal(saga_status(&t.saga), SAGA_PAUSED);
    assert_int_equal(CALL(&t, "coalesce", "c", .turn = "3"), ERR_PAUSED);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(CALL(&t, "coalesce", "a", .emission = "first"),
                     ERR_OK); /* only the request that was here gets its answer */
    call_trial_takes(&t, call_trial_resume(&t), ERR_OK, "saga.resumed");
    assert_int_equal(CALL(&t, "look", "b"), ERR_OK);
}

TEST(not_even_the_same_request_is_tried_again_while_the_saga_is_paused)
{
    call_trial_open(&t, NULL, "{'repeats':2,'max_cycle':1}", NULL);
    CALL(&t, "limited", "g", .emission = "e");
    call_trial_admit(&t, "g", ADMISSION_REFUSED);
    settled_once(&t);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    CALL(&t, "look", "b", .turn = "2");
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "look", "b"), ERR_LOOP);
    assert_int_equal(CALL(&t, "limited", "g", .emission = "e"), ERR_PAUSED);
    assert_int_equal(t.records.count, 0);
}

TEST(an_agent_that_waits_for_an_answer_makes_no_loop)
{
    call_trial_run(&t);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(CALL(&t, "coalesce", "b"), ERR_OK);
    }
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "b"), ERR_OK);
    assert_int_equal(t.saga.loop->trips, 0);
}

TEST(nor_whoever_was_told_to_come_back)
{
    call_trial_open(&t, NULL, "{'repeats':2}", NULL);
    CALL(&t, "checked", "c");
    call_trial_timer(&t, "c");
    call_trial_settle(&t, "c", OUTCOME_UNKNOWN, NULL);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(CALL(&t, "checked", "c"), ERR_OUTCOME_UNKNOWN);
    }
    call_trial_probe(&t, "c", OUTCOME_COMPLETED);
    assert_int_equal(t.saga.loop->trips, 0);

    CALL(&t, "escalate", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "escalate", "a", .turn = "2"), ERR_AWAITING);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(CALL(&t, "escalate", "a"), ERR_AWAITING);
    }
    assert_int_equal(t.saga.loop->trips, 0);
}

TEST(an_answer_that_comes_at_last_is_no_loop_with_those_before)
{
    call_trial_run(&t);
    CALL(&t, "checked", "c");
    call_trial_timer(&t, "c");
    call_trial_settle(&t, "c", OUTCOME_UNKNOWN, NULL);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(CALL(&t, "checked", "c"), ERR_OUTCOME_UNKNOWN);
    }
    call_trial_probe(&t, "c", OUTCOME_COMPLETED);
    assert_int_equal(CALL(&t, "checked", "c"), ERR_OK);

    CALL(&t, "escalate", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(CALL(&t, "escalate", "a"), ERR_AWAITING);
    }
    assert_int_equal(call_trial_operator(&t, OPERATOR_RESOLVE), ERR_OK);
    call_trial_takes(&t, CALL(&t, "escalate", "a"), ERR_OK, "operation.duplicate a (replayed)");
}

TEST(calls_that_race_count_once)
{
    call_trial_run(&t);
    CALL(&t, "allow", "a");
    CALL(&t, "allow", "a");
    CALL(&t, "allow", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, "{'same':1}");
    call_trial_settle(&t, "a~2", OUTCOME_COMPLETED, "{'same':1}");
    call_trial_settle(&t, "a~3", OUTCOME_COMPLETED, "{'same':1}");
    assert_int_equal(CALL(&t, "allow", "a"), ERR_OK);
}

TEST(an_agent_that_waits_is_not_stopped_for_answers_to_others)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a");
    CALL(&t, "coalesce", "b"); /* the same call under another name, still in flight when the first goes round */
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK);
    call_trial_takes(&t, CALL(&t, "coalesce", "b"), ERR_OK, "operation.duplicate b (waited)");
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
}

TEST(polling_that_sees_something_new_is_no_loop_and_polling_that_does_not_is)
{
    call_trial_run(&t);
    for (int i = 0; i < 10; i++) {
        char result[32];

        (void)snprintf(result, sizeof(result), "{'seen':%d}", i < 8 ? i : 8);
        assert_int_equal(CALL(&t, "look", "a"), ERR_OK);
        call_trial_settle(&t, "a", OUTCOME_COMPLETED, result);
    }
    assert_int_equal(CALL(&t, "look", "a"), ERR_LOOP);
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
