/* Pauses by a person: nothing begins, no clock runs, and messages from outside are kept. */
#include <string.h>

#include "base/json.h"
#include "tests/lib/call_trial.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

static const struct operation *forward(const struct trial *trial, const char *step)
{
    return &trial->saga.steps[trial_step(trial, step)].forward;
}

static void pause_now(struct trial *trial)
{
    trial_takes(trial, trial_pause(trial), "saga.paused");
    assert_int_equal(saga_status(&trial->saga), SAGA_PAUSED);
}

#define TWO TRIAL_SAGA_WITH("'deadline':'2h'", "{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}")

static struct trial trial;

TEST(a_call_under_way_is_settled_and_nothing_follows_before_it_is_resumed)
{
    trial_begin(&trial, TWO, "{}");
    pause_now(&trial);
    assert_true(json_string_is(trial_shown(&trial, "/paused"), "operator"));
    assert_string_equal(trial_wants(&trial), "call a 1");
    trial_play_to(&trial, "a", "step.completed a");
    assert_string_equal(trial_wants(&trial), "");
    trial_check_replay(&trial);
    trial.now_ms += HOUR_MS;
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, step.intent b");
    assert_string_equal(trial_wants(&trial), "call b 1, timer - 0 +7200000"); /* the deadline stood still */
    assert_int_equal(json_type(trial_shown(&trial, "/paused")), JSON_NULL);
}

TEST(a_failure_while_it_is_paused_is_followed_up_later)
{
    trial_begin(&trial, TWO, "{}");
    trial_play(&trial, "a");
    pause_now(&trial);
    trial_play_to(&trial, "b failed", "step.failed b");
    trial_takes(&trial, trial_resume(&trial),
                "saga.resumed, saga.failing b, compensation.planned, compensation.intent a");
}

TEST(what_comes_in_while_it_is_paused_means_nothing_unless_somebody_did_something)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    trial_begin(&trial, TWO, "{}");
    trial_play_to(&trial, "a unknown", "step.retrying a");
    pause_now(&trial);
    trial.now_ms += 3 * HOUR_MS;
    trial_takes(&trial, trial_input(&trial, input), ""); /* of the step */
    input.timer.step = STEP_NONE;
    trial_takes(&trial, trial_input(&trial, input), ""); /* the deadline passes */
    trial_close_sound(&trial);
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed','with':{'n':'${ 1 + 1 }'}}"), "{}");
    pause_now(&trial);
    trial_evaluated(&trial, EVALUATE_ARGS, "a", "{'n':2}");
    assert_string_equal(trial_records(&trial), "");
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "evaluate a 0");
    trial_close_sound(&trial);
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'limited'}"), "{}");
    assert_string_equal(trial_wants(&trial), "admit a 1");
    pause_now(&trial);
    input = (struct saga_input){.type = SAGA_INPUT_ADMITTED};
    input.admitted.admission = ADMISSION_GRANTED;
    trial_takes(&trial, trial_input(&trial, input), "");
}

TEST(every_clock_goes_on_where_it_stood)
{
    int64_t due_ms;

    trial_begin(&trial,
                TRIAL_SAGA_WITH("'deadline':'2h'",
                                "{'id':'r','call':'idempotent','after':[]},{'id':'p','call':'checked',"
                                "'after':[]},{'id':'nap','sleep':'30m','after':[]},"
                                "{'id':'sig','signal':{'name':'go','timeout':'1h'},'after':[]},{'id':'"
                                "ok','approve':{'timeout':'90m'},'after':[]}"),
                "{}");
    trial_play(&trial, "timer p, p unknown, r retry");
    due_ms = forward(&trial, "r")->due_ms;
    trial.now_ms += 10;
    pause_now(&trial);
    assert_string_equal(trial_wants(&trial), "");
    trial.now_ms += 5 * HOUR_MS;
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_int_equal(trial.saga.deadline_ms, TRIAL_START_MS + 7 * HOUR_MS);
    assert_int_equal(forward(&trial, "r")->due_ms, due_ms + 5 * HOUR_MS);
    assert_int_equal(forward(&trial, "r")->round_ms, TRIAL_START_MS + 5 * HOUR_MS);
    assert_int_equal(forward(&trial, "p")->unknown_ms, TRIAL_START_MS + 5 * HOUR_MS);
    assert_int_equal(forward(&trial, "p")->due_ms, TRIAL_START_MS + 5 * HOUR_MS);
    assert_int_equal(forward(&trial, "nap")->due_ms, TRIAL_START_MS + 5 * HOUR_MS + HOUR_MS / 2);
    assert_int_equal(forward(&trial, "sig")->due_ms, TRIAL_START_MS + 6 * HOUR_MS);
    assert_int_equal(forward(&trial, "ok")->due_ms, TRIAL_START_MS + 6 * HOUR_MS + HOUR_MS / 2);
}

TEST(the_deadline_of_a_child_stands_still_too)
{
    trial_begin(&trial,
                "{'tools':[" TRIAL_TOOLS
                "],'sagas':[{'name':'trial','steps':[{'id':'c','saga':'inner','on_failure':'continue'}]},"
                "{'name':'inner','deadline':'2h','steps':[{'id':'a','call':'keyed'},{'id':'nap','sleep':'3h'}]}]}",
                "{}");
    trial_play(&trial, "c/a");
    trial.now_ms += HOUR_MS;
    pause_now(&trial);
    trial.now_ms += 9 * HOUR_MS;
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "timer c 0 +3600000, timer c/nap 0 +7200000");
    trial_play_to(&trial, "timer c",
                  "step.failing c, step.failed c/nap, compensation.planned c, compensation.intent c/a");
    pause_now(&trial);
    trial_play_to(&trial, "undo c/a", "compensation.completed c/a");
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, step.failed c, saga.completed");
}

TEST(the_receivers_clock_does_not_stop)
{
    int64_t window_ms;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"), "{}"); /* keys are remembered for 60 s */
    trial_play(&trial, "a unknown");
    window_ms = forward(&trial, "a")->window_from_ms;
    pause_now(&trial);
    trial.now_ms += HOUR_MS;
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_int_equal(forward(&trial, "a")->window_from_ms, window_ms);
    trial_play_to(&trial, "timer a", "step.unknown a, escalation.opened a"); /* not called again */
}

TEST(a_timer_that_was_set_in_a_pause_waits_no_longer_than_it_has_to)
{
    int64_t before_ms;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'idempotent'}"), "{}");
    pause_now(&trial);
    trial.now_ms += HOUR_MS;
    trial_play_to(&trial, "a retry", "step.retrying a");
    before_ms = forward(&trial, "a")->due_ms - trial.now_ms;
    assert_string_equal(trial_wants(&trial), "");
    trial.now_ms += HOUR_MS;
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_int_equal(forward(&trial, "a")->due_ms - trial.now_ms, before_ms);
}

TEST(undoing_is_held_up_too)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};
    int64_t limit_ms;

    trial_begin(&trial,
                TRIAL_SAGA("{'id':'a','call':'idempotent'},{'id':'b','call':'idempotent'},{'id':'c','call':'keyed'}"),
                "{}");
    trial_play(&trial, "a, b, c failed");
    assert_string_equal(trial_wants(&trial), "call undo b 1");
    pause_now(&trial);
    assert_string_equal(trial_wants(&trial), "call undo b 1");
    trial_play_to(&trial, "undo b retry", "compensation.retrying b");
    assert_string_equal(trial_wants(&trial), "");
    trial.now_ms += 30 * HOUR_MS; /* longer than an undo may go on */
    input.timer.step = 1;
    input.timer.direction = DIRECTION_UNDO;
    trial_takes(&trial, trial_input(&trial, input), "");
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_int_equal(saga_status(&trial.saga), SAGA_COMPENSATING);
    limit_ms = step_undo(&trial.saga.steps[1])->round_ms;
    assert_int_equal(limit_ms, TRIAL_START_MS + 30 * HOUR_MS);
    trial_play_to(&trial, "timer undo b", "compensation.intent b");
    pause_now(&trial);
    assert_int_equal(trial_abort(&trial),
                     ERR_PAUSED); /* the saga is already being undone, and a person holds that up */
    trial_play_to(&trial, "undo b", "compensation.completed b");
    assert_string_equal(trial_wants(&trial), "");
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, compensation.intent a");
    trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
}

TEST(a_probe_that_was_under_way_settles)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'checked'},{'id':'b','call':'keyed'}"), "{}");
    trial_play(&trial, "timer a, a unknown");
    pause_now(&trial);
    assert_string_equal(trial_wants(&trial), "");
    trial_play_to(&trial, "probe a", "step.completed a");
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, step.intent b");
}

TEST(signals_are_kept_and_taken_when_it_is_resumed)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'sig','signal':{'name':'go','timeout':'1h'}},{'id':'b','call':'keyed'}"),
                "{}");
    pause_now(&trial);
    trial_takes(&trial, trial_signal(&trial, "go", "1", "s-1"), "signal.received");
    assert_int_equal(trial_signal(&trial, "go", "2", "s-2"), ERR_OK);
    trial_takes(&trial, trial_signal(&trial, "go", "2", "s-2"), "");
    trial_check_replay(&trial);
    trial.now_ms += 9 * HOUR_MS;
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, step.completed sig, step.intent b");
    assert_true(slice_is(forward(&trial, "sig")->result, "1"));
    assert_int_equal(trial.saga.signal_kept, 1);
}

TEST(a_person_may_decide_meanwhile)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'ok','approve':{'timeout':'1h'}},{'id':'b','call':'keyed'}"), "{}");
    pause_now(&trial);
    trial.now_ms += 9 * HOUR_MS; /* the hour stands still */
    trial_takes(&trial, trial_decide(&trial, "ok", true, ROLE_OPERATOR), "approval.decided ok, step.completed ok");
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, step.intent b");
}

TEST(locks_are_not_asked_for_but_one_that_was_taken_is_ours)
{
    trial_begin(&trial, TRIAL_SAGA_WITH("'locks':['a',{'key':'b','when_taken':'fail'}]", "{'id':'a','call':'keyed'}"),
                "{}");
    pause_now(&trial);
    assert_string_equal(trial_wants(&trial), "");
    trial_locked(&trial, false);
    assert_string_equal(trial_records(&trial), "lock.taken");
    trial_locked(&trial, true); /* the lock is asked for again */
    assert_string_equal(trial_records(&trial), "");
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_string_equal(trial_wants(&trial), "lock - 1");
    trial_locked(&trial, false);
    assert_string_equal(trial_records(&trial), "lock.taken, step.intent a");
}

TEST(a_paused_saga_that_is_aborted_is_undone_at_once)
{
    trial_begin(&trial, TWO, "{}");
    trial_play(&trial, "a, b retry");
    pause_now(&trial);
    trial.now_ms += HOUR_MS;
    trial_takes(&trial, trial_abort(&trial),
                "saga.failing, step.failed b, compensation.planned, compensation.intent a");
    assert_int_equal(saga_status(&trial.saga), SAGA_COMPENSATING);
    assert_int_equal(trial_resume(&trial), ERR_CLOSED);
}

TEST(clocks_go_on_where_they_stood_after_an_abort_too)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'p','call':'checked'}"), "{}"); /* the operation is probed for an hour */
    trial_play(&trial, "timer p, p unknown");
    pause_now(&trial);
    trial.now_ms += 9 * HOUR_MS;
    trial_takes(&trial, trial_abort(&trial), "saga.failing");
    assert_string_equal(trial_wants(&trial), "probe p 1 +0");
    trial_play_to(&trial, "probe p unknown", "step.probed p"); /* and is probed again */
}

TEST(a_person_may_answer_a_question_meanwhile_and_it_is_done_later)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'m','call':'once'},{'id':'b','call':'keyed'}"), "{}");
    trial_play_until(&trial, "timer m, m unknown", SAGA_ESCALATED);
    pause_now(&trial);
    trial_takes(&trial, trial_resolve(&trial, true, "{'id':1}"), "escalation.resolved m, step.completed m");
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, step.intent b");
}

TEST(a_question_that_answers_itself_in_a_pause_is_nobodys_to_decide_any_more)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'by_keyed'},{'id':'b','call':'keyed'}"), "{}");
    trial_play(&trial, "a, b failed");
    while (!trial.saga.escalation.number) { /* the undo of `a` */
        if (step_undo(&trial.saga.steps[0])->state == OP_RETRYING) {
            trial_play(&trial, "timer undo a");
        } else {
            trial_play(&trial, "undo a unknown");
        }
    }
    assert_int_equal(trial_pause(&trial), ERR_OK);
    trial_play_to(&trial, "undo a", "compensation.completed a"); /* the answer came after all */
    assert_int_equal(saga_escalation_actions(&trial.saga), 0);
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        assert_int_equal(trial_operator(&trial, (enum operator_action)i), ERR_DECIDED);
    }
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, escalation.resolved a, saga.compensated");
    trial_check_replay(&trial);
}

TEST(a_pause_needs_an_actor_and_a_saga_that_goes_on)
{
    struct saga_input nobody = {.type = SAGA_INPUT_PAUSE};

    trial_open(&trial, TWO);
    assert_int_equal(trial_pause(&trial), ERR_CONFLICT); /* the saga has not started */
    trial_start(&trial, "{}");
    assert_int_equal(trial_input(&trial, nobody), ERR_INVALID);
    assert_int_equal(trial_resume(&trial), ERR_CONFLICT);
    pause_now(&trial);
    trial_takes(&trial, trial_pause(&trial), ""); /* a repeat */
    assert_int_equal(trial_resume(&trial), ERR_OK);
    trial_play(&trial, "a, b");
    assert_int_equal(trial_pause(&trial), ERR_ENDED);
    assert_int_equal(trial_resume(&trial), ERR_ENDED);
}

/* --- open sagas and runs --- */

static enum err_code pause_calls(struct call_trial *t)
{
    struct saga_input input = {.type = SAGA_INPUT_PAUSE};

    input.pause.actor = SLICE("ann");
    return call_trial_input(t, input);
}

#define WISH(tool_name, step_name) ((struct wish){.tool = tool_name, .step = step_name})
#define CHARGE                                                                                                         \
    "{'name':'charge','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'24h'},'compensate':{'tool':'undo'}}"

TEST(an_open_saga_is_paused_with_its_retries)
{
    struct call_trial t;
    int64_t deadline_ms;

    call_trial_open(&t, NULL, NULL, NULL);
    call_trial_register(&t, "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}");
    call_trial_register(&t, CHARGE);
    deadline_ms = t.saga.deadline_ms;
    assert_int_equal(call_trial_call(&t, WISH("charge", "one")), ERR_OK);
    call_trial_settle(&t, "one", OUTCOME_RETRY, NULL);
    assert_int_equal(pause_calls(&t), ERR_OK);
    assert_int_equal(saga_status(&t.saga), SAGA_PAUSED);
    assert_int_equal(call_trial_call(&t, WISH("charge", "two")), ERR_PAUSED);
    assert_int_equal(call_trial_complete(&t), ERR_PAUSED);
    t.now_ms += 9 * HOUR_MS;
    assert_int_equal(call_trial_resume(&t), ERR_OK);
    assert_int_equal(t.saga.deadline_ms, deadline_ms + 9 * HOUR_MS);
    assert_true(call_trial_step(&t, "one")->forward.due_ms >= t.now_ms);
    call_trial_timer(&t, "one");
    call_trial_close(&t);
}

TEST(a_run_is_not_paused)
{
    struct call_trial t;

    call_trial_run(&t);
    call_trial_register(&t, "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}");
    call_trial_register(&t, CHARGE);
    assert_int_equal(call_trial_call(&t, WISH("charge", "one")), ERR_OK);
    assert_int_equal(pause_calls(&t), ERR_CONFLICT);
    call_trial_close(&t);
}

/* --- records that do not fit --- */

TEST(a_record_that_begins_something_in_a_pause_is_refused)
{
    struct record record;
    struct err err;

    trial_begin(&trial, TWO, "{}");
    trial_play(&trial, "a retry");
#define NEXT .seq = trial.saga.seq + 1, .at_ms = trial.now_ms
    record = (struct record){NEXT, .type = RECORD_SAGA_RESUMED, .step = STEP_NONE, .actor = SLICE("ann")};
    assert_false(record_check(&trial.saga, &record, &err));
    record = (struct record){NEXT, .type = RECORD_SAGA_PAUSED, .step = STEP_NONE, .reason = SLICE("loop"),
                             .actor = SLICE("ann")};
    assert_false(record_check(&trial.saga, &record, &err)); /* only calls go round in loops */
    record.reason = SLICE("operator");
    assert_true(record_check(&trial.saga, &record, &err));
    record.actor = SLICE_NONE;
    assert_false(record_check(&trial.saga, &record, &err));
    pause_now(&trial);
    record = (struct record){NEXT, .type = RECORD_STEP_INTENT, .step = 0, .attempt = 2,
                             .key = trial.saga.steps[0].forward.key};
    assert_false(record_check(&trial.saga, &record, &err));
    record = (struct record){NEXT, .type = RECORD_SAGA_PAUSED, .step = STEP_NONE, .reason = SLICE("operator"),
                             .actor = SLICE("ann")};
    assert_false(record_check(&trial.saga, &record, &err));
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
