/*
 * The answers to repeats after time has passed or the tool has changed. The repeat still finds its operation, a person
 * is asked once, an unknown outcome is probed again, and a full or expired record says so. The table itself is in
 * test_saga_call.c.
 */
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

#include "base/json.h"
#include "core/decide/call.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define KEYED_THAT "'builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'}"
#define UNDONE ",'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}"

static void completed(struct call_trial *t, const char *tool, const char *args)
{
    assert_int_equal(CALL(t, tool, "a", args, .emission = "first"), ERR_OK);
    call_trial_settle(t, "a", OUTCOME_COMPLETED, NULL);
}

static struct call_trial t;

/* --- other arguments --- */

TEST(a_call_that_differs_in_something_material_does_not_wait_for_another_result)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':5,'memo':'x'}"), ERR_OK);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':50,'memo':'x'}"), ERR_DRIFT,
                     "operation.duplicate a (drift-refused)");
    assert_true(slice_is(t.records.answer.pointers, "[\"/amount\"]"));
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':5,'memo':'y'}"), ERR_OK,
                     "operation.duplicate a (waited)");
    assert_int_equal(t.saga.definition->step_count, 1);
}

TEST(nor_is_it_told_that_nobody_knows)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "once", "a", "{'amount':5}"), ERR_OK);
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    assert_int_equal(CALL(&t, "once", "a", "{'amount':5}"), ERR_AWAITING);
    assert_int_equal(CALL(&t, "once", "a", "{'amount':50}"), ERR_DRIFT);
}

/* --- a person is asked once --- */

TEST(a_repeat_gets_the_stored_result_after_the_answer_of_a_person)
{
    call_trial_run(&t);
    completed(&t, "escalate", NULL);
    call_trial_takes(&t, CALL(&t, "escalate", "a"), ERR_AWAITING,
                     "operation.duplicate a (escalated), escalation.opened a");
    call_trial_takes(&t, CALL(&t, "escalate", "a"), ERR_AWAITING, "operation.duplicate a (awaiting-operator)");
    assert_int_equal(call_trial_operator(&t, OPERATOR_RESOLVE), ERR_OK);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(CALL(&t, "escalate", "a"), turn < 2 ? ERR_OK : ERR_LOOP);
    }
    call_trial_takes(&t, CALL(&t, "escalate", "a", .turn = "2"), ERR_OK, "operation.duplicate a (replayed)");
    assert_true(t.records.answer.replay);
    assert_int_equal(t.saga.escalation_count, 1);
}

TEST(after_it_a_repeat_waits_for_what_is_under_way)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "escalate", "a");
    assert_int_equal(CALL(&t, "escalate", "a"), ERR_AWAITING);
    assert_int_equal(call_trial_operator(&t, OPERATOR_RESOLVE), ERR_OK);
    call_trial_takes(&t, CALL(&t, "escalate", "a"), ERR_OK, "operation.duplicate a (waited)");
    assert_int_equal(t.saga.escalation_count, 1);
}

/* --- the tool was registered anew --- */

TEST(a_repeat_finds_its_operation_though_its_tool_only_reads_now)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "{'amount':5}");
    call_trial_register(&t, "{'name':'coalesce','builtin':{'do':'echo'},'effect':'read'}");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':5}"), ERR_OK, "operation.duplicate a (replayed)");
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':50}"), ERR_DRIFT);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':5}"), ERR_OK);
    assert_int_equal(call_trial_step(&t, "b")->forward.effect, EFFECT_READ);
    assert_int_equal(t.saga.definition->step_count, 2);
}

TEST(a_repeat_finds_its_operation_though_its_arguments_would_only_read_now)
{
    call_trial_run(&t);
    completed(&t, "fetch", "{'send':true}");
    call_trial_register(
        &t, "{'name':'fetch','builtin':{'do':'echo'},'effect':{'if':'${ .args.send }','then':'read','else':'keyed'},"
            "'key':{'window':'60s'}" UNDONE "}");
    call_trial_takes(&t, CALL(&t, "fetch", "a", "{'send':true}"), ERR_OK, "operation.duplicate a (replayed)");
}

TEST(a_repeat_is_answered_though_its_tool_could_not_be_called_any_more)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "{'amount':5}");
    call_trial_register(&t, "{'name':'coalesce'," KEYED_THAT "}");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':5}", .unfit = ERR_INVALID), ERR_OK,
                     "operation.duplicate a (replayed)");
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':5}", .unfit = ERR_INVALID, .emission = "first"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':6}"), ERR_INVALID);
}

TEST(arguments_that_do_not_fit_begin_nothing)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "coalesce", "a", .unfit = ERR_INVALID), ERR_INVALID);
    assert_int_equal(t.records.count, 0);
    assert_true(slice_is(t.records.answer.message, "the arguments do not fit"));
    CALL(&t, "allow", "b");
    assert_int_equal(CALL(&t, "allow", "b", .unfit = ERR_INVALID), ERR_INVALID);
    CALL(&t, "look", "l");
    call_trial_settle(&t, "l", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "look", "l", .unfit = ERR_INVALID), ERR_INVALID);
    assert_int_equal(t.records.count, 0);
    call_trial_takes(&t, CALL(&t, "look", "l"), ERR_OK, "step.repeated l, step.intent l");
}

/* The call is sent with the first arguments, to the version that they were given for. */
TEST(a_call_that_does_not_fit_any_more_is_tried_again_as_it_was_begun)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':5}");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':5}", .unfit = ERR_INVALID), ERR_OK,
                     "step.repeated a, step.intent a");
}

TEST(a_signed_off_call_is_known_again_though_other_members_count_now)
{
    call_trial_run(&t);
    completed(&t, "coalesce", "{'amount':5,'memo':'x'}");
    call_trial_register(&t, "{'name':'coalesce'," KEYED_THAT UNDONE ",'volatile':['/memo']}");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':5,'memo':'x'}", .emission = "signed"), ERR_OK,
                     "step.called a~2 (bypass), step.intent a~2");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':5,'memo':'x'}", .emission = "signed"), ERR_OK,
                     "operation.duplicate a~2 (waited)");
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':6,'memo':'x'}", .emission = "signed"), ERR_OTHER_INPUT);
}

/* --- what nobody can say --- */

static void give_up(struct call_trial *on)
{
    assert_int_equal(CALL(on, "checked", "a"), ERR_OK);
    call_trial_timer(on, "a");
    call_trial_settle(on, "a", OUTCOME_UNKNOWN, NULL);
    while (call_trial_step(on, "a")->forward.state == OP_PROBING) {
        call_trial_probe(on, "a", OUTCOME_UNKNOWN);
    }
    assert_int_equal(call_trial_step(on, "a")->forward.state, OP_UNKNOWN);
    assert_int_not_equal(on->saga.escalation.number, 0);
}

TEST(a_repeat_has_what_probes_gave_up_on_asked_about_once_more)
{
    uint64_t number;

    call_trial_open(&t, NULL, NULL, NULL);
    give_up(&t);
    number = t.saga.escalation.number;
    /* The probe was asked just now. */
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_AWAITING, "operation.duplicate a (awaiting-operator)");
    t.now_ms += CALL_PROBE_MS;
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_AWAITING,
                     "operation.duplicate a (awaiting-operator), step.unknown a");
    assert_true(slice_is(t.records.items[1].actor, "agent"));
    assert_int_equal(call_trial_step(&t, "a")->forward.state, OP_PROBING);
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_AWAITING, "operation.duplicate a (awaiting-operator)");

    call_trial_probe(&t, "a", OUTCOME_UNKNOWN); /* one answer, no series */
    assert_int_equal(call_trial_step(&t, "a")->forward.state, OP_UNKNOWN);
    assert_int_equal(t.saga.escalation.number, number);
    assert_int_equal(CALL(&t, "checked", "a"), ERR_AWAITING);
    assert_int_equal(call_trial_step(&t, "a")->forward.state, OP_UNKNOWN);

    t.now_ms += CALL_PROBE_MS;
    assert_int_equal(CALL(&t, "checked", "a"), ERR_AWAITING);
    assert_int_equal(t.saga.escalation.number, number);
    call_trial_probe(&t, "a", OUTCOME_COMPLETED);
    assert_string_equal(call_trial_records(&t), "step.completed a, escalation.resolved a");
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_OK, "operation.duplicate a (replayed)");
}

TEST(also_while_a_person_is_asked_about_something_else)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "escalate", "e"), ERR_OK);
    call_trial_settle(&t, "e", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "escalate", "e"), ERR_AWAITING);
    give_up(&t);
    t.now_ms += CALL_PROBE_MS;
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_OUTCOME_UNKNOWN,
                     "operation.duplicate a (unknown), step.unknown a");
    call_trial_probe(&t, "a", OUTCOME_UNKNOWN);
    assert_int_equal(call_trial_step(&t, "a")->forward.state, OP_UNKNOWN);
    assert_int_equal(call_trial_operator(&t, OPERATOR_RESOLVE), ERR_OK);
    assert_true(slice_is(t.saga.escalation.reason, "unknown"));
}

TEST(a_call_that_a_person_has_to_weigh_is_not_probed_by_repeats)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "once", "a"), ERR_OK);
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    t.now_ms += CALL_PROBE_MS;
    /* There is no probe to ask. */
    call_trial_takes(&t, CALL(&t, "once", "a"), ERR_AWAITING, "operation.duplicate a (awaiting-operator)");
}

/* --- bounds --- */

TEST(a_log_that_is_full_takes_no_more_calls_and_still_answers_the_same_request)
{
    uint64_t seq;

    call_trial_run(&t);
    completed(&t, "coalesce", NULL);
    CALL(&t, "look", "l");
    call_trial_settle(&t, "l", OUTCOME_COMPLETED, NULL);
    seq = t.saga.seq;
    t.saga.seq = CALL_RECORDS_MAX;
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_CONFLICT);
    assert_int_equal(CALL(&t, "look", "l"), ERR_CONFLICT);
    assert_int_equal(CALL(&t, "coalesce", "b", .emission = "b"), ERR_CONFLICT);
    assert_int_equal(CALL(&t, "coalesce", "a", .emission = "first"), ERR_OK);
    assert_true(t.records.answer.replay);
    assert_int_equal(t.records.count, 0);
    t.saga.seq = seq; /* the log that the test pretended does not exist and cannot be folded */
}

static bool shows_what_it_knew(const struct call_trial *on)
{
    struct buffer out;
    struct slice text;
    bool shown;

    buffer_init(&out, 65536);
    saga_write_operation_at(&on->saga, 0, DIRECTION_DO, on->now_ms, &out);
    text = buffer_slice(&out);
    shown = json_type(json_member(text, "result")) == JSON_OBJECT;
    assert_int_equal(json_type(json_member(text, "args")), shown ? JSON_OBJECT : JSON_NULL);
    assert_true(json_string_is(json_member(text, "state"), "completed"));
    buffer_fini(&out);
    return shown;
}

TEST(an_expired_record_is_not_shown_any_more)
{
    call_trial_run(&t);
    completed(&t, "again", NULL);
    t.now_ms += HOUR_MS - 1;
    assert_true(shows_what_it_knew(&t));
    t.now_ms += 1;
    assert_false(shows_what_it_knew(&t));
    assert_true(operation_has_expired(&t.saga, 0, t.now_ms));
    call_trial_close(&t);

    call_trial_open(&t, NULL, NULL, NULL);
    completed(&t, "again", NULL);
    t.now_ms += 2 * HOUR_MS;
    assert_true(shows_what_it_knew(&t)); /* the saga goes on */
    assert_int_equal(call_trial_complete(&t), ERR_OK);
    assert_true(shows_what_it_knew(&t));
    t.now_ms += HOUR_MS;
    assert_false(shows_what_it_knew(&t));
}

TEST(an_unsettled_call_is_shown_as_long_as_it_takes)
{
    call_trial_run(&t);
    CALL(&t, "again", "a");
    assert_false(operation_has_expired(&t.saga, 0, t.now_ms + 1000 * HOUR_MS));
}

TEST(the_name_of_a_step_is_plain)
{
    char longest[CALL_STEP_BYTES_MAX + 1];

    memset(longest, 'a', sizeof(longest));
    assert_true(call_step_is_good(SLICE("pay.2_a:b/c-D9")));
    assert_true(call_step_is_good((struct slice){longest, CALL_STEP_BYTES_MAX}));
    assert_false(call_step_is_good((struct slice){longest, CALL_STEP_BYTES_MAX + 1}));
    assert_false(call_step_is_good(SLICE("")));
    assert_false(call_step_is_good(SLICE("~pay")));
    assert_false(call_step_is_good(SLICE("a b")));
    assert_false(call_step_is_good((struct slice){"a\0b", 3}));
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
