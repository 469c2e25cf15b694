/* Open sagas and runs besides their calls: the end, the deadline, bypasses, pauses and rest. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)
#define REST_MS INT64_C(15000) /* RUN_REST_MS */

static void completed(struct call_trial *t, const char *tool, const char *label, const char *args)
{
    assert_int_equal(CALL(t, tool, label, args), ERR_OK);
    if (call_trial_step(t, label)->forward.state == OP_PENDING) {
        call_trial_timer(t, label);
    }
    call_trial_settle(t, label, OUTCOME_COMPLETED, NULL);
}

static struct call_trial t;

/* --- completing --- */

TEST(an_open_saga_ends_when_its_agent_says_so)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "coalesce", "a", NULL);
    assert_int_equal(saga_status(&t.saga), SAGA_RUNNING);
    call_trial_takes(&t, call_trial_complete(&t), ERR_OK, "saga.completed");
    assert_int_equal(call_trial_complete(&t), ERR_OK); /* a repeat of the same request */
    assert_int_equal(t.records.count, 0);
    assert_int_equal(saga_status(&t.saga), SAGA_COMPLETED);
}

TEST(not_before_all_of_it_is_settled)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "coalesce", "a");
    assert_int_equal(call_trial_complete(&t), ERR_UNSETTLED);
    assert_non_null(strstr(t.err.detail, "a (in flight)"));
    call_trial_settle(&t, "a", OUTCOME_RETRY, NULL);
    assert_int_equal(call_trial_complete(&t), ERR_UNSETTLED);
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    assert_int_equal(call_trial_complete(&t), ERR_OK); /* the agent judges a failure */
}

TEST(nor_while_the_outcome_of_something_is_unknown)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "once", "a");
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    assert_int_equal(saga_status(&t.saga), SAGA_ESCALATED);
    assert_int_equal(call_trial_complete(&t), ERR_UNSETTLED);
}

TEST(nor_while_a_person_is_asked)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "escalate", "a", NULL);
    CALL(&t, "escalate", "a");
    assert_int_equal(call_trial_complete(&t), ERR_UNSETTLED);
    assert_non_null(strstr(t.err.detail, "duplicate"));
}

TEST(a_sealed_saga_can_still_be_completed)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "coalesce", "a", NULL);
    completed(&t, "mail", "m", NULL);
    assert_int_equal(saga_status(&t.saga), SAGA_RUNNING);
    assert_int_equal(call_trial_complete(&t), ERR_OK);
}

TEST(a_run_is_neither_completed_nor_aborted)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a");
    assert_int_equal(call_trial_complete(&t), ERR_CONFLICT);
    assert_int_equal(call_trial_abort(&t), ERR_CONFLICT);
}

/* --- aborting --- */

TEST(an_abort_undoes_in_reverse)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "coalesce", "a", "{'n':1}");
    completed(&t, "coalesce", "b", "{'n':2}");
    call_trial_takes(&t, call_trial_abort(&t), ERR_OK, "saga.failing, compensation.planned, compensation.intent b");
    call_trial_settle_undo(&t, "b");
    assert_string_equal(call_trial_records(&t), "compensation.completed b, compensation.intent a");
    call_trial_settle_undo(&t, "a");
    assert_int_equal(saga_status(&t.saga), SAGA_COMPENSATED);
    assert_int_equal(call_trial_complete(&t), ERR_ENDED);
}

TEST(an_abort_comes_too_late_after_what_cannot_be_undone)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "mail", "m", NULL);
    assert_int_equal(call_trial_abort(&t), ERR_PAST_RETURN);
}

/* --- the deadline --- */

TEST(the_deadline_undoes_what_a_vanished_agent_has_left)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "coalesce", "a", NULL);
    t.now_ms += HOUR_MS - 1;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_int_equal(t.records.count, 0);
    t.now_ms += 1;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_string_equal(call_trial_records(&t), "saga.failing, compensation.planned, compensation.intent a");
    assert_true(slice_is(t.saga.failing_reason, "deadline"));
}

TEST(or_asks_a_person_where_that_was_wanted)
{
    call_trial_open(&t, NULL, NULL, "escalate");
    completed(&t, "coalesce", "a", NULL);
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_string_equal(call_trial_records(&t), "escalation.opened");
    assert_true(slice_is(t.saga.escalation.reason, "deadline"));
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'n':2}"), ERR_AWAITING);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK); /* known calls are still answered */
    assert_int_equal(call_trial_operator(&t, OPERATOR_COMPENSATE), ERR_OK);
    call_trial_settle_undo(&t, "a");
    assert_int_equal(saga_status(&t.saga), SAGA_COMPENSATED);
}

TEST(one_question_at_a_time)
{
    call_trial_open(&t, NULL, NULL, "escalate");
    completed(&t, "escalate", "a", NULL);
    CALL(&t, "escalate", "a");
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_int_equal(t.records.count, 0);
    assert_true(slice_is(t.saga.escalation.reason, "duplicate"));
}

TEST(a_deadline_after_what_cannot_be_undone_is_the_end_of_the_work)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "coalesce", "a", NULL);
    completed(&t, "mail", "m", NULL);
    CALL(&t, "look", "l");
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_int_equal(t.records.count, 0); /* a client still reads */
    call_trial_settle(&t, "l", OUTCOME_COMPLETED, NULL);
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_string_equal(call_trial_records(&t), "saga.completed");
}

/* --- one more execution --- */

TEST(a_bypass_is_used_once_and_a_second_click_finds_the_new_operation)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "a", "{'amount':1}");
    call_trial_takes(&t, call_trial_bypass(&t, "a"), ERR_OK, "bypass.signed a");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':1}"), ERR_OK,
                     "step.called a~2 (bypass), step.intent a~2");
    assert_int_equal(call_trial_step(&t, "a~2")->forward.generation, 1);
    assert_true(uuid_equal(&call_trial_step(&t, "a~2")->earlier_key.uuid, &call_trial_step(&t, "a")->forward.key.uuid));
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':1}"), ERR_OK, "operation.duplicate a~2 (waited)");
    call_trial_settle(&t, "a~2", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':1}"), ERR_OK, "operation.duplicate a~2 (replayed)");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_CONFLICT); /* the call has a younger one now */
    assert_int_equal(call_trial_bypass(&t, "a~2"), ERR_OK);
}

TEST(a_bypass_is_for_these_arguments_only)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "a", "{'amount':1,'memo':'x'}");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':2,'memo':'x'}"), ERR_DRIFT);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':1,'memo':'y'}"), ERR_OK, "operation.duplicate a (drift)");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':1.0,'memo':'x','timestamp':7}"), ERR_OK,
                     "step.called a~2 (bypass), step.intent a~2");
}

TEST(a_bypass_ends_after_a_quarter_of_an_hour)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "a", NULL);
    call_trial_bypass(&t, "a");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_DECIDED);
    t.now_ms += 15 * MINUTE_MS;
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_OK, "operation.duplicate a (replayed)");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    t.now_ms += 15 * MINUTE_MS - 1;
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .turn = "2"), ERR_OK, "step.called a~2 (bypass), step.intent a~2");
}

TEST(a_repeat_of_the_old_request_does_not_use_it)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", .emission = "e");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    call_trial_bypass(&t, "a");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .emission = "e"), ERR_OK, "operation.duplicate a (replayed)");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .emission = "f"), ERR_OK,
                     "step.called a~2 (bypass), step.intent a~2");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .emission = "f"), ERR_OK, "operation.duplicate a~2 (waited)");
}

TEST(a_signature_stands_above_a_closed_loop)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "a", NULL);
    CALL(&t, "coalesce", "a");
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_OK, "step.called a~2 (bypass), step.intent a~2");
}

TEST(a_call_that_may_still_happen_is_not_signed_off)
{
    call_trial_run(&t);
    CALL(&t, "once", "a");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_CONFLICT);
    call_trial_timer(&t, "a");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_CONFLICT);
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_CONFLICT);
    completed(&t, "look", "l", NULL);
    assert_int_equal(call_trial_bypass(&t, "l"), ERR_INVALID);
}

TEST(no_signature_once_a_saga_is_sealed_or_over)
{
    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "coalesce", "a", NULL);
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    completed(&t, "mail", "m", NULL);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_SEALED);
    t.now_ms += 16 * MINUTE_MS;
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_SEALED);
    assert_int_equal(call_trial_complete(&t), ERR_OK);
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_ENDED);
}

/* --- pauses --- */

TEST(only_what_is_paused_or_closed_is_resumed)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "a", NULL);
    assert_int_equal(call_trial_resume(&t), ERR_CONFLICT);
    CALL(&t, "coalesce", "a");
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    call_trial_takes(&t, call_trial_resume(&t), ERR_OK, "saga.resumed");
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK);
}

TEST(a_paused_saga_is_not_completed_and_its_deadline_stands_still)
{
    call_trial_open(&t, NULL, "{'repeats':2}", NULL);
    completed(&t, "coalesce", "a", NULL);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    completed(&t, "coalesce", "b", "{'n':2}");
    assert_int_equal(CALL(&t, "coalesce", "b", "{'n':2}"), ERR_LOOP);
    assert_int_equal(saga_status(&t.saga), SAGA_PAUSED);
    assert_int_equal(call_trial_complete(&t), ERR_PAUSED);
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(call_trial_resume(&t), ERR_OK);
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_int_equal(t.records.count, 0);
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_true(slice_is(t.saga.failing_reason, "deadline"));
}

/* --- rest --- */

TEST(a_run_rests_when_nothing_goes_on_and_wakes_with_a_call)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", .emission = "e");
    t.now_ms += 2 * MINUTE_MS;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_int_equal(t.records.count, 0);
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    t.now_ms += REST_MS - 1;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_int_equal(t.records.count, 0);
    t.now_ms += 1;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_string_equal(call_trial_records(&t), "run.rested");
    call_trial_takes(&t, CALL(&t, "strict", "b"), ERR_OK, "run.woken, step.called b, step.intent b");
}

/* Returns the trial of a run that has slept since its call `a` was completed. */
static void sleep_after_a(struct call_trial *trial)
{
    call_trial_run(trial);
    completed(trial, "coalesce", "a", NULL);
    trial->now_ms += REST_MS;
    call_trial_due(trial, SAGA_TIMER_REST);
    assert_string_equal(call_trial_records(trial), "run.rested");
}

/* The run has just gone to rest, but nothing happened in it for as long as that takes. */
TEST(a_repeat_to_a_run_that_sleeps_is_one_turn)
{
    sleep_after_a(&t);
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_OK, "run.woken, operation.duplicate a (replayed), run.rested");
    assert_int_equal(saga_status(&t.saga), SAGA_COMPLETED);
    assert_int_equal(call_trial_step(&t, "a")->forward.duplicates, 1);
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_REST); /* it rests already */
    assert_int_equal(t.records.count, 0);
}

TEST(a_run_that_is_asked_again_soon_stays_awake)
{
    sleep_after_a(&t);
    CALL(&t, "coalesce", "a");
    t.now_ms += REST_MS - 1;
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .turn = "2"), ERR_OK, "run.woken, operation.duplicate a (replayed)");
    t.now_ms += REST_MS;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_string_equal(call_trial_records(&t), "run.rested");
}

TEST(a_loop_is_found_in_repeats_to_a_run_that_sleeps)
{
    sleep_after_a(&t);
    t.now_ms += HOUR_MS;
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK);
    t.now_ms += HOUR_MS;
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_LOOP,
                     "run.woken, operation.duplicate a (loop), loop.tripped a, run.rested");
    t.now_ms += HOUR_MS;
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    assert_int_equal(t.records.count, 0);
    for (int i = 0; i < 2; i++) { /* a new turn lets all of it pass again */
        t.now_ms += HOUR_MS;
        assert_int_equal(CALL(&t, "coalesce", "a", .turn = "2"), ERR_OK);
    }
    t.now_ms += HOUR_MS;
    assert_int_equal(CALL(&t, "coalesce", "a", .turn = "2"), ERR_LOOP);
    assert_int_equal(saga_status(&t.saga), SAGA_PAUSED); /* a paused run does not rest */
}

TEST(an_emission_of_a_run_that_sleeps_counts_once)
{
    sleep_after_a(&t);
    for (int i = 0; i < 4; i++) {
        t.now_ms += HOUR_MS;
        assert_int_equal(CALL(&t, "coalesce", "a", .emission = "e"), ERR_OK);
        assert_int_equal(t.saga.used.emissions, 2);
    }
    assert_int_equal(call_trial_step(&t, "a")->forward.duplicates, 4);
}

TEST(a_refusal_wakes_nobody)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "a", NULL);
    CALL(&t, "coalesce", "a");
    CALL(&t, "coalesce", "a");
    t.now_ms += MINUTE_MS;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    assert_int_equal(t.records.count, 0);
    call_trial_takes(&t, call_trial_resume(&t), ERR_OK, "run.woken, saga.resumed"); /* an operator resumes it */
    t.now_ms += MINUTE_MS;
    call_trial_due(&t, SAGA_TIMER_REST);
    call_trial_takes(&t, call_trial_bypass(&t, "a"), ERR_OK, "run.woken, bypass.signed a");
}

TEST(nothing_rests_while_a_person_is_asked)
{
    call_trial_run(&t);
    completed(&t, "escalate", "a", NULL);
    CALL(&t, "escalate", "a");
    t.now_ms += HOUR_MS;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_int_equal(t.records.count, 0);
}

TEST(each_of_several_calls_of_one_step_is_undone_under_a_key_of_its_own)
{
    static const char *const labels[] = {"a~3", "a~2", "a"};

    call_trial_open(&t, NULL, NULL, NULL);
    for (size_t i = COUNT_OF(labels); i-- > 0;) { /* the last label belongs to another tool with the same compensator */
        CALL(&t, i == 0 ? "strict" : "allow", "a");
        call_trial_settle(&t, labels[i], OUTCOME_COMPLETED, NULL);
    }
    assert_int_equal(call_trial_abort(&t), ERR_OK);
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        call_trial_settle_undo(&t, labels[i]);
        for (size_t k = 0; k < i; k++) {
            assert_false(uuid_equal(&step_undo(call_trial_step(&t, labels[i]))->key.uuid,
                                    &step_undo(call_trial_step(&t, labels[k]))->key.uuid));
        }
    }
    assert_int_equal(t.saga.end, SAGA_COMPENSATED);
}

TEST(a_retry_with_other_arguments_takes_the_key_of_no_other_execution)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    call_trial_open(&t, NULL, NULL, NULL);
    for (int i = 0; i < 10 && !t.saga.escalation.number; i++) {
        char turn[8];

        (void)snprintf(turn, sizeof(turn), "%d", i);
        CALL(&t, "escalate", "a", .turn = turn);
        if (call_trial_step(&t, "a")->forward.state == OP_IN_FLIGHT) {
            call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
        }
    }
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    CALL(&t, "escalate", "a", .turn = "signed");
    call_trial_settle(&t, "a~2", OUTCOME_COMPLETED, NULL);
    input.verdict.action = OPERATOR_RETRY;
    input.verdict.escalation = t.saga.escalation.number;
    input.verdict.round = saga_case_round(&t.saga);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("with less");
    input.verdict.args = SLICE("{\"amount\":7}");
    assert_int_equal(call_trial_input(&t, input), ERR_OK);
    assert_int_equal(call_trial_step(&t, "a~2")->forward.generation, 1);
    assert_int_equal(call_trial_step(&t, "a")->forward.generation, 2);
}

TEST(polling_makes_no_saga_grow)
{
    size_t used = 0;

    call_trial_run(&t);
    for (int i = 0; i < 50; i++) {
        static char result[20001];
        char turn[8];

        (void)snprintf(turn, sizeof(turn), "%d", i);
        memset(result, '0' + i % 10, sizeof(result) - 1);
        result[0] = result[sizeof(result) - 2] = '"';
        CALL(&t, "look", "a", .turn = turn);
        call_trial_settle(&t, "a", OUTCOME_COMPLETED, result);
        assert_true(slice_is(call_trial_step(&t, "a")->forward.result, result));
        used = used ? used : t.saga_arena.used_bytes;
    }
    assert_true(t.saga_arena.used_bytes < used + 2 * 20000);
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
