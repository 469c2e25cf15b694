/* What an agent's call means: the table of duplicates, drift, the rules of open sagas, budgets and expiry. Loops are in
 * test_saga_call_loops.c. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

/* --- the table --- */

enum found { IN_FLIGHT, RETRYING, COMPLETED, FAILED_WITH_ATTEMPTS_LEFT, FAILED_FOR_GOOD, UNKNOWN, FOUND_COUNT };
enum policy { COALESCE, REFUSE, ESCALATE, ALLOW, POLICY_COUNT };

static const char *const found_names[] = {"in flight",       "retrying", "completed", "failed, attempts left",
                                          "failed for good", "unknown"};
static const char *const tools[] = {"coalesce", "refuse", "escalate", "allow"};

static const struct {
    enum err_code code;
    const char *records;
} table[FOUND_COUNT][POLICY_COUNT] = {
    [IN_FLIGHT] = {{ERR_OK, "operation.duplicate a (waited)"},
                   {ERR_DUPLICATE, "operation.duplicate a (refused)"},
                   {ERR_AWAITING, "operation.duplicate a (escalated), escalation.opened a"},
                   {ERR_OK, "step.called a~2 (allow), step.intent a~2"}},
    [RETRYING] = {{ERR_OK, "operation.duplicate a (waited)"},
                  {ERR_DUPLICATE, "operation.duplicate a (refused)"},
                  {ERR_AWAITING, "operation.duplicate a (escalated), escalation.opened a"},
                  {ERR_OK, "step.called a~2 (allow), step.intent a~2"}},
    [COMPLETED] = {{ERR_OK, "operation.duplicate a (replayed)"},
                   {ERR_DUPLICATE, "operation.duplicate a (refused)"},
                   {ERR_AWAITING, "operation.duplicate a (escalated), escalation.opened a"},
                   {ERR_OK, "step.called a~2 (allow), step.intent a~2"}},
    [FAILED_WITH_ATTEMPTS_LEFT] = {{ERR_OK, "step.repeated a, step.intent a"},
                                   {ERR_OK, "step.repeated a, step.intent a"},
                                   {ERR_OK, "step.repeated a, step.intent a"},
                                   {ERR_OK, "step.called a~2 (allow), step.intent a~2"}},
    [FAILED_FOR_GOOD] = {{ERR_OK, "operation.duplicate a (failed)"},
                         {ERR_OK, "operation.duplicate a (failed)"},
                         {ERR_AWAITING, "operation.duplicate a (escalated), escalation.opened a"},
                         {ERR_OK, "step.called a~2 (allow), step.intent a~2"}},
    [UNKNOWN] = {{ERR_AWAITING, "operation.duplicate a (awaiting-operator)"},
                 {ERR_AWAITING, "operation.duplicate a (awaiting-operator)"},
                 {ERR_AWAITING, "operation.duplicate a (awaiting-operator)"},
                 {ERR_AWAITING, "operation.duplicate a (awaiting-operator)"}},
};

/* Makes an operation "a" in this state, begun by the emission "first". Each further call has its own turn, or it would
 * be a loop. */
static void make(struct call_trial *t, const char *tool, enum found found)
{
    assert_int_equal(CALL(t, tool, "a", .emission = "first", .turn = "1"), ERR_OK);
    assert_string_equal(call_trial_records(t) + (t->saga.definition->kind == SAGA_RUN ? strlen("saga.started, ") : 0),
                        "step.called a, step.intent a");
    switch (found) {
    case IN_FLIGHT:
        return;
    case RETRYING:
        call_trial_settle(t, "a", OUTCOME_RETRY, NULL);
        assert_int_equal(call_trial_step(t, "a")->forward.state, OP_RETRYING);
        return;
    case COMPLETED:
        call_trial_settle(t, "a", OUTCOME_COMPLETED, NULL);
        return;
    case FAILED_WITH_ATTEMPTS_LEFT:
        call_trial_settle(t, "a", OUTCOME_FAILED, NULL);
        return;
    case FAILED_FOR_GOOD:
        for (int i = 0; i < 3; i++) {
            while (call_trial_step(t, "a")->forward.state == OP_RETRYING) {
                call_trial_timer(t, "a");
            }
            call_trial_settle(t, "a", i < 2 ? OUTCOME_RETRY : OUTCOME_FAILED, NULL);
        }
        assert_int_equal(call_trial_step(t, "a")->forward.state, OP_FAILED);
        return;
    case UNKNOWN:
        for (int i = 0; i < 3; i++) {
            while (call_trial_step(t, "a")->forward.state == OP_RETRYING) {
                call_trial_timer(t, "a");
            }
            call_trial_settle(t, "a", OUTCOME_UNKNOWN, NULL);
        }
        assert_int_equal(call_trial_step(t, "a")->forward.state, OP_UNKNOWN);
        return;
    case FOUND_COUNT:
        break;
    }
    fail();
}

static void check_cell(struct call_trial *t, enum found found, enum policy policy)
{
    char at[80];
    enum err_code code;

    (void)snprintf(at, sizeof(at), "%s, %s", found_names[found], tools[policy]);
    make(t, tools[policy], found);
    code = CALL(t, tools[policy], "a", .emission = "second", .turn = "2");
    if (code != table[found][policy].code || strcmp(call_trial_records(t), table[found][policy].records) != 0) {
        fail_msg("%s: %s, %s", at, err_name(code), call_trial_records(t));
    }
    if (strstr(call_trial_records(t), "operation.duplicate")) {
        assert_true(t->records.answer.duplicate);
        assert_int_equal(t->records.answer.step, 0);
        assert_true(t->records.answer.original_ms == CALL_TRIAL_START_MS);
        assert_non_null(t->records.answer.decision);
    } else {
        assert_false(t->records.answer.duplicate);
        assert_null(t->records.answer.decision);
    }
}

static struct call_trial t;

TEST(a_duplicate_gets_what_the_table_says)
{
    for (unsigned found = 0; found < FOUND_COUNT; found++) {
        for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
            call_trial_run(&t);
            check_cell(&t, (enum found)found, (enum policy)policy);
            call_trial_close(&t);
            call_trial_open(&t, NULL, NULL, NULL);
            check_cell(&t, (enum found)found, (enum policy)policy);
            call_trial_close(&t);
        }
    }
}

TEST(the_same_emission_is_coalesced_whatever_the_policy)
{
    static const struct {
        enum err_code code;
        const char *records;
    } expected[FOUND_COUNT] = {
        [IN_FLIGHT] = {ERR_OK, "operation.duplicate a (waited)"},
        [RETRYING] = {ERR_OK, "operation.duplicate a (waited)"},
        [COMPLETED] = {ERR_OK, "operation.duplicate a (replayed)"},
        [FAILED_WITH_ATTEMPTS_LEFT] = {ERR_OK, "operation.duplicate a (failed)"},
        [FAILED_FOR_GOOD] = {ERR_OK, "operation.duplicate a (failed)"},
        [UNKNOWN] = {ERR_AWAITING, "operation.duplicate a (awaiting-operator)"},
    };

    for (unsigned found = 0; found < FOUND_COUNT; found++) {
        for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
            call_trial_run(&t);
            make(&t, tools[policy], (enum found)found);
            for (int i = 0; i < 10; i++) { /* the network may repeat it as often as it likes, and it is no loop */
                assert_int_equal(CALL(&t, tools[policy], "a", .emission = "first", .turn = "1"), expected[found].code);
                assert_string_equal(call_trial_records(&t), expected[found].records);
            }
            assert_int_equal(t.saga.used.emissions, 1);
            assert_int_equal(call_trial_step(&t, "a")->forward.duplicates, 10);
            call_trial_close(&t);
        }
    }
}

TEST(an_emission_that_was_answered_is_known_from_then_on)
{
    call_trial_run(&t);
    make(&t, "coalesce", IN_FLIGHT);
    CALL(&t, "coalesce", "a", .emission = "second");
    assert_int_equal(CALL(&t, "coalesce", "b", .emission = "second"), ERR_OTHER_INPUT);
}

TEST(another_call_under_the_same_emission_is_refused)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':1,'memo':'x'}", .scope = "s", .emission = "e"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':1,'memo':'x'}", .scope = "s", .emission = "e"),
                     ERR_OTHER_INPUT);
    assert_int_equal(CALL(&t, "strict", "a", "{'amount':1,'memo':'x'}", .scope = "s", .emission = "e"),
                     ERR_OTHER_INPUT);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':1,'memo':'x'}", .scope = "r", .emission = "e"),
                     ERR_OTHER_INPUT);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':1,'memo':'y'}", .scope = "s", .emission = "e"),
                     ERR_OTHER_INPUT);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'memo':'x', 'amount':1.0}", .scope = "s", .emission = "e"), ERR_OK);
    assert_int_equal(t.saga.definition->step_count, 1);
}

TEST(allow_begins_one_operation_for_each_emission_and_no_more)
{
    call_trial_run(&t);
    make(&t, "allow", COMPLETED);
    call_trial_takes(&t, CALL(&t, "allow", "a", .emission = "second"), ERR_OK,
                     "step.called a~2 (allow), step.intent a~2");
    call_trial_takes(&t, CALL(&t, "allow", "a", .emission = "second"), ERR_OK, "operation.duplicate a~2 (waited)");
    call_trial_takes(&t, CALL(&t, "allow", "a", .emission = "first"), ERR_OK, "operation.duplicate a (replayed)");
    assert_int_equal(CALL(&t, "allow", "a"), ERR_OK); /* without an id each request is a new emission */
    assert_int_equal(call_trial_step(&t, "a~3")->forward.generation, 2);
    assert_true(
        uuid_equal(&call_trial_step(&t, "a~3")->earlier_key.uuid, &call_trial_step(&t, "a~2")->forward.key.uuid));
}

TEST(a_refused_call_is_decided_anew_when_it_comes_again)
{
    call_trial_run(&t);
    make(&t, "refuse", COMPLETED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(CALL(&t, "refuse", "a", .emission = "second"), ERR_DUPLICATE);
    }
}

TEST(nobody_calls_again_while_a_probe_is_asked)
{
    call_trial_run(&t);
    /* Two commits, so that after a crash between them the call is known as not sent. */
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_OK, "saga.started, step.called a");
    assert_int_equal(CALL(&t, "checked", "a"), ERR_OK);
    assert_string_equal(call_trial_records(&t), "operation.duplicate a (waited)");
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_OUTCOME_UNKNOWN, "operation.duplicate a (unknown)");
    assert_true(t.records.answer.retry_after_ms >= 1000);
    call_trial_probe(&t, "a", OUTCOME_COMPLETED);
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_OK, "operation.duplicate a (replayed)");
}

TEST(a_call_on_which_the_receiver_works_is_in_flight)
{
    call_trial_run(&t);
    CALL(&t, "checked", "a");
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_RUNNING, NULL);
    call_trial_takes(&t, CALL(&t, "checked", "a"), ERR_OK, "operation.duplicate a (waited)");
}

TEST(a_call_that_a_guard_refused_may_come_back)
{
    call_trial_run(&t);
    call_trial_takes(&t, CALL(&t, "limited", "a", .emission = "first"), ERR_OK, "saga.started, step.called a");
    for (int i = 0; i < 9; i++) { /* more often than there are attempts: nothing was sent, and it is no loop, because
                                     the agent was told to come back */
        call_trial_admit(&t, "a", ADMISSION_REFUSED);
        assert_string_equal(call_trial_records(&t), "step.failed a");
        call_trial_takes(&t, CALL(&t, "limited", "a", .emission = i % 2 ? "first" : NULL), ERR_OK, "step.repeated a");
    }
    call_trial_admit(&t, "a", ADMISSION_GRANTED);
    assert_string_equal(call_trial_records(&t), "step.intent a");
}

/* --- identity --- */

TEST(a_run_begins_with_its_first_call)
{
    call_trial_run(&t);
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_OK, "saga.started, step.called a, step.intent a");
    assert_int_equal(t.records.answer.step, 0);
    assert_true(slice_is(t.saga.run, "run-1"));
}

TEST(the_key_is_made_of_run_step_tool_and_scope)
{
    struct op_identity identity = {SLICE("default"), SLICE("run-1"), SLICE("a"), SLICE("coalesce"),
                                   SLICE("s"),       DIRECTION_DO,   0};
    struct op_key key = op_key_make(&identity);

    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':1}", .scope = "s", .emission = "e", .turn = "1");
    assert_true(uuid_equal(&key.uuid, &call_trial_step(&t, "a")->forward.key.uuid));
}

TEST(the_run_of_an_open_saga_is_its_id)
{
    char run[UUID_TEXT_BYTES];
    struct op_identity identity = {
        .namespace = SLICE("default"), .step = SLICE("a"), .tool = SLICE("coalesce"), .direction = DIRECTION_DO};
    struct op_key key;

    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "coalesce", "a");
    uuid_text(&t.saga.id.uuid, run);
    identity.run = slice_of(run);
    key = op_key_make(&identity);
    assert_true(uuid_equal(&key.uuid, &call_trial_step(&t, "a")->forward.key.uuid));
}

TEST(other_scopes_steps_and_tools_are_other_operations)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", .scope = "order-1");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .scope = "order-2"), ERR_OK, "step.called a~2, step.intent a~2");
    call_trial_takes(&t, CALL(&t, "strict", "a", .scope = "order-1"), ERR_OK, "step.called a~3, step.intent a~3");
    call_trial_takes(&t, CALL(&t, "coalesce", "b", .scope = "order-1"), ERR_OK, "step.called b, step.intent b");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .scope = "order-2"), ERR_OK, "operation.duplicate a~2 (waited)");
    assert_int_equal(call_trial_step(&t, "a~3")->forward.generation, 0);
}

TEST(a_call_without_a_name_has_one_step_for_each_tool_and_scope)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", .args = "{'amount':1}");
    assert_true(slice_is(t.saga.definition->steps[0].id, "~coalesce"));
    call_trial_takes(&t, CALL(&t, "coalesce", .args = "{'amount':1}"), ERR_OK,
                     "operation.duplicate ~coalesce (waited)");
    call_trial_takes(&t, CALL(&t, "coalesce", .args = "{'amount':2}", .scope = "order-2"), ERR_OK,
                     "step.called ~coalesce~2, step.intent ~coalesce~2");
    call_trial_takes(&t, CALL(&t, "strict"), ERR_OK, "step.called ~strict, step.intent ~strict");
}

TEST(a_tool_that_can_only_undo_is_not_called_forward)
{
    call_trial_run(&t);
    assert_int_equal(CALL(&t, "undo", "a"), ERR_INVALID);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(t.saga.seq, 0);
}

TEST(only_so_many_operations_fit_into_a_run)
{
    char name[16];

    call_trial_run(&t);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        assert_int_equal(CALL(&t, "mail", name), ERR_OK);
        arena_reset(&t.turn);
    }
    assert_int_equal(CALL(&t, "mail", "one-more"), ERR_CONFLICT);
    /* Existing operations are still found. */
    call_trial_takes(&t, CALL(&t, "mail", "s7"), ERR_OK, "operation.duplicate s7 (waited)");
}

/* --- reads --- */

TEST(a_read_is_called_again_each_time)
{
    call_trial_run(&t);
    CALL(&t, "look", .args = "{'at':1}");
    for (uint32_t i = 1; i < 20; i++) {
        char result[32];

        (void)snprintf(result, sizeof(result), "{'seen':%u}", i);
        call_trial_settle(&t, "~look", OUTCOME_COMPLETED, result);
        call_trial_takes(&t, CALL(&t, "look", .args = "{'at':1}"), ERR_OK, "step.repeated ~look, step.intent ~look");
        assert_false(t.records.answer.duplicate);
    }
    assert_int_equal(t.saga.definition->step_count, 1);
    assert_int_equal(t.saga.used.calls, 20);
}

TEST(two_reads_at_once_get_one_answer_only_if_they_ask_the_same)
{
    call_trial_run(&t);
    CALL(&t, "look", .args = "{'city':'Paris'}");
    call_trial_takes(&t, CALL(&t, "look", .args = "{'city':'Paris'}"), ERR_OK, "operation.duplicate ~look (waited)");
    call_trial_takes(&t, CALL(&t, "look", .args = "{'city':'Rome'}"), ERR_OK,
                     "step.called ~look~2 (allow), step.intent ~look~2");
    call_trial_settle(&t, "~look", OUTCOME_COMPLETED, NULL);
    call_trial_settle(&t, "~look~2", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "look", .args = "{'city':'Paris'}"), ERR_OK,
                     "step.repeated ~look, step.intent ~look");
    assert_true(slice_is(call_trial_step(&t, "~look")->forward.args, "{\"city\":\"Paris\"}"));
}

TEST(a_repeated_request_for_a_read_gets_the_answer_it_had)
{
    call_trial_run(&t);
    CALL(&t, "look", .emission = "e");
    call_trial_settle(&t, "~look", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "look", .emission = "e"), ERR_OK, "operation.duplicate ~look (replayed)");
}

TEST(a_read_whose_record_has_expired_is_begun_anew)
{
    call_trial_run(&t);
    CALL(&t, "look", "l", "{'city':'Rome'}", .emission = "e");
    call_trial_settle(&t, "l", OUTCOME_COMPLETED, NULL);
    t.now_ms += 24 * HOUR_MS;
    assert_int_equal(CALL(&t, "look", "l", "{'city':'Rome'}", .emission = "e"), ERR_EXPIRED);
    call_trial_takes(&t, CALL(&t, "look", "l", "{'city':'Rome'}"), ERR_OK, "step.called l~2 (allow), step.intent l~2");
    assert_true(slice_is(call_trial_step(&t, "l~2")->forward.args, "{\"city\":\"Rome\"}"));
}

/* --- drift --- */

TEST(arguments_that_differ_where_it_matters_are_refused)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':10,'memo':'x'}");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':11,'memo':'y'}"), ERR_DRIFT,
                     "operation.duplicate a (drift-refused)");
    assert_true(slice_is(t.records.answer.pointers, "[\"/amount\"]"));
    assert_int_equal(t.saga.definition->step_count, 1);
}

TEST(arguments_that_differ_where_it_does_not_matter_are_coalesced_and_marked)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':10,'memo':'x'}");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':1e1,'memo':'y'}"), ERR_OK,
                     "operation.duplicate a (drift)");
    assert_true(t.records.answer.replay);
    assert_true(slice_is(t.records.answer.pointers, "[\"/memo\"]"));
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'memo':'x','amount':10.0,'request_id':'r'}"), ERR_OK,
                     "operation.duplicate a (replayed)");
}

TEST(everything_matters_without_material)
{
    call_trial_run(&t);
    CALL(&t, "strict", "a", "{'amount':10,'memo':'x'}");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "strict", "a", "{'amount':10,'memo':'y'}"), ERR_DRIFT);
    assert_int_equal(CALL(&t, "strict", "a", "{'amount':10,'memo':'x','trace_id':1}"), ERR_OK);
}

TEST(arguments_that_do_not_matter_wait_like_all_others_while_a_call_is_unsettled)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':10,'memo':'x'}");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':10,'memo':'y'}"), ERR_OK,
                     "operation.duplicate a (waited)");
}

TEST(a_retry_sends_the_first_arguments)
{
    struct digest fingerprint;

    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':10,'memo':'x'}");
    fingerprint = call_trial_step(&t, "a")->forward.fingerprint;
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    call_trial_takes(&t, CALL(&t, "coalesce", "a", "{'amount':10,'memo':'y'}"), ERR_OK,
                     "step.repeated a, step.intent a");
    assert_true(slice_is(call_trial_step(&t, "a")->forward.args, "{\"amount\":10,\"memo\":\"x\"}"));
    assert_true(digest_equal(&fingerprint, &call_trial_step(&t, "a")->forward.fingerprint));
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':11,'memo':'x'}"), ERR_DRIFT);
}

/* --- the rules of open sagas --- */

TEST(a_terminal_call_comes_last_and_seals)
{
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "coalesce", IN_FLIGHT);
    assert_int_equal(CALL(&t, "mail", "m"), ERR_UNSETTLED);
    assert_int_equal(t.records.count, 0);
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "mail", "m"), ERR_OK, "step.called m");
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':2}"), ERR_SEALED);
    assert_int_equal(CALL(&t, "mail", "n"), ERR_SEALED);
    assert_int_equal(t.records.count, 0);
    assert_int_equal(CALL(&t, "look", "l"), ERR_OK); /* reads pass */
    /* Earlier calls are still answered. */
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_OK, "operation.duplicate a (replayed)");
}

TEST(a_call_that_only_reads_with_these_arguments_neither_comes_last_nor_seals)
{
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "coalesce", IN_FLIGHT);
    call_trial_takes(&t, CALL(&t, "announce", "m", "{'send':false}"), ERR_OK, "step.called m, step.intent m");
    call_trial_settle(&t, "m", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "announce", "m", "{'send':true}"), ERR_UNSETTLED);
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':2}"), ERR_OK);
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "announce", "m", "{'send':true}"), ERR_OK);
    call_trial_timer(&t, "m~2");
    call_trial_settle(&t, "m~2", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "c", "{'amount':3}"), ERR_SEALED);
    /* The tool reads once more. */
    call_trial_takes(&t, CALL(&t, "announce", "m", "{'send':false}"), ERR_OK, "step.repeated m, step.intent m");
}

TEST(only_what_had_an_effect_is_undone)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "fetch", "f", "{'send':false}");
    call_trial_settle(&t, "f", OUTCOME_COMPLETED, NULL);
    CALL(&t, "fetch", "f", "{'send':true}");
    call_trial_settle(&t, "f~2", OUTCOME_COMPLETED, NULL);
    call_trial_takes(&t, CALL(&t, "fetch", "f", "{'send':true}"), ERR_OK, "operation.duplicate f~2 (replayed)");
    call_trial_takes(&t, call_trial_abort(&t), ERR_OK, "saga.failing, compensation.planned, compensation.intent f~2");
    call_trial_settle_undo(&t, "f~2");
    assert_int_equal(t.saga.end, SAGA_COMPENSATED);
}

TEST(only_a_certain_failure_unseals)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "mail", "m");
    call_trial_timer(&t, "m");
    assert_int_equal(CALL(&t, "coalesce", "b"), ERR_SEALED);
    call_trial_settle(&t, "m", OUTCOME_FAILED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "b"), ERR_OK);
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    CALL(&t, "mail", "n", "{'n':1}");
    call_trial_timer(&t, "n");
    call_trial_settle(&t, "n", OUTCOME_UNKNOWN, NULL);
    assert_int_equal(CALL(&t, "coalesce", "c", "{'amount':3}"), ERR_SEALED);
    assert_int_equal(CALL(&t, "mail", "n", "{'n':1}"), ERR_AWAITING);
}

TEST(a_question_to_a_person_holds_up_only_what_cannot_be_undone)
{
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "escalate", COMPLETED);
    assert_int_equal(CALL(&t, "escalate", "a"), ERR_AWAITING);
    assert_int_equal(saga_status(&t.saga), SAGA_ESCALATED);
    call_trial_takes(&t, CALL(&t, "coalesce", "b"), ERR_OK, "step.called b, step.intent b");
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    assert_int_equal(t.saga.escalation.step, 0);
    assert_int_equal(CALL(&t, "mail", "m"), ERR_UNSETTLED);
}

TEST(no_call_of_a_run_seals_it_or_comes_last)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a");
    assert_int_equal(CALL(&t, "mail", "m"), ERR_OK);
    assert_int_equal(CALL(&t, "mail", "n"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':2}"), ERR_OK);
}

TEST(a_saga_that_has_ended_answers_what_it_knows_and_takes_nothing_new)
{
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "coalesce", COMPLETED);
    CALL(&t, "look", "l");
    call_trial_settle(&t, "l", OUTCOME_COMPLETED, NULL);
    assert_int_equal(call_trial_complete(&t), ERR_OK);
    t.now_ms += HOUR_MS;
    call_trial_takes(&t, CALL(&t, "coalesce", "a"), ERR_OK, "operation.duplicate a (replayed)");
    call_trial_takes(&t, CALL(&t, "look", "l"), ERR_OK, "operation.duplicate l (replayed)");
    assert_int_equal(CALL(&t, "coalesce", "b"), ERR_CLOSED);
    assert_int_equal(t.records.count, 0);
    t.now_ms += 24 * HOUR_MS;
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_EXPIRED);
    assert_int_equal(saga_status(&t.saga), SAGA_COMPLETED);
}

TEST(a_saga_that_is_being_undone_takes_nothing_new)
{
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "escalate", COMPLETED);
    assert_int_equal(call_trial_abort(&t), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "b"), ERR_CLOSED);
    assert_int_equal(CALL(&t, "escalate", "a"), ERR_DUPLICATE); /* no question about more work is open any more */
    assert_int_equal(CALL(&t, "escalate", "a", .emission = "first", .turn = "1"), ERR_OK);
    CALL(&t, "escalate", "a");
    CALL(&t, "escalate", "a");
    /* Refused, but no further call is closed. */
    call_trial_takes(&t, CALL(&t, "escalate", "a"), ERR_LOOP, "operation.duplicate a (loop)");
    call_trial_settle_undo(&t, "a");
    assert_int_equal(saga_status(&t.saga), SAGA_COMPENSATED);
    assert_int_equal(CALL(&t, "escalate", "a", .turn = "2"), ERR_DUPLICATE);
}

/* --- budgets --- */

TEST(a_budget_is_never_overdrawn)
{
    call_trial_open(&t, "{'calls':2}", NULL, NULL);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':1}"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':2}"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "c", "{'amount':3}"), ERR_BUDGET); /* none of them is settled yet */
    assert_int_equal(t.records.count, 0);
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':1}"), ERR_OK); /* a duplicate costs nothing */
    call_trial_close(&t);

    call_trial_open(&t, "{'micros':250}", NULL, NULL);
    assert_int_equal(CALL(&t, "paid", "a", "{'n':1}"), ERR_OK);
    assert_int_equal(CALL(&t, "paid", "b", "{'n':2}"), ERR_OK);
    assert_int_equal(CALL(&t, "paid", "c", "{'n':3}"), ERR_BUDGET); /* reserved, not yet spent */
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "paid", "c", "{'n':3}"), ERR_BUDGET);
    call_trial_settle(&t, "b", OUTCOME_FAILED, NULL); /* given back */
    assert_int_equal(t.saga.used.micros, 100);
    assert_int_equal(CALL(&t, "paid", "c", "{'n':3}"), ERR_OK);
    assert_int_equal(CALL(&t, "coalesce", "d"), ERR_OK); /* a call without cost passes */
    assert_int_equal(t.saga.used.micros, 200);
    call_trial_close(&t);

    call_trial_open(&t, "{'emissions':2}", NULL, NULL);
    CALL(&t, "coalesce", "a", "{'amount':1}");
    CALL(&t, "coalesce", "a", "{'amount':1}");
    assert_int_equal(CALL(&t, "coalesce", "b", "{'amount':2}"), ERR_BUDGET);
    assert_int_equal(CALL(&t, "coalesce", "a", "{'amount':1}"),
                     ERR_OK); /* duplicates are answered before the budget is asked */
}

TEST(an_attempt_more_is_a_call_more)
{
    call_trial_open(&t, "{'calls':2}", NULL, NULL);
    make(&t, "coalesce", FAILED_WITH_ATTEMPTS_LEFT);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK);
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "a", .turn = "2"), ERR_BUDGET);
}

TEST(a_call_that_is_tried_again_is_paid_once)
{
    call_trial_open(&t, "{'micros':100}", NULL, NULL);
    assert_int_equal(CALL(&t, "paid", "a"), ERR_OK);
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    assert_int_equal(t.saga.used.micros, 0);
    assert_int_equal(CALL(&t, "paid", "a"), ERR_OK);
    assert_int_equal(t.saga.used.micros, 100);
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(t.saga.used.micros, 100);
}

/* --- expiry --- */

TEST(a_record_that_has_expired_answers_no_more)
{
    call_trial_run(&t);
    make(&t, "coalesce", COMPLETED);
    t.now_ms += 24 * HOUR_MS - 1;
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OK);
    t.now_ms += 1;
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .turn = "2"), ERR_EXPIRED,
                     "operation.expired a, operation.duplicate a (expired)");
    call_trial_takes(&t, CALL(&t, "coalesce", "a", .emission = "first"), ERR_EXPIRED,
                     "operation.duplicate a (expired)");
    assert_null(call_trial_step(&t, "a")->forward.result.ptr);
}

TEST(a_tool_may_begin_again_after_that)
{
    call_trial_run(&t);
    make(&t, "again", COMPLETED);
    t.now_ms += HOUR_MS;
    assert_int_equal(CALL(&t, "again", "a", .emission = "first"),
                     ERR_EXPIRED); /* the request of that time is not answered */
    call_trial_takes(&t, CALL(&t, "again", "a", .emission = "second"), ERR_OK,
                     "step.called a~2 (again), step.intent a~2");
    assert_int_equal(call_trial_step(&t, "a~2")->forward.generation, 1);
    call_trial_takes(&t, CALL(&t, "again", "a", .emission = "second"), ERR_OK, "operation.duplicate a~2 (waited)");
}

TEST(an_unsettled_call_never_expires)
{
    call_trial_run(&t);
    make(&t, "again", UNKNOWN);
    t.now_ms += 1000 * HOUR_MS;
    assert_int_equal(CALL(&t, "again", "a"), ERR_AWAITING);
    call_trial_close(&t);
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "coalesce", UNKNOWN);
    assert_int_equal(call_trial_operator(&t, OPERATOR_ABANDON), ERR_OK);
    t.now_ms += 1000 * HOUR_MS;
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_OUTCOME_UNKNOWN);
}

TEST(no_record_expires_while_the_saga_is_open)
{
    call_trial_open(&t, NULL, NULL, NULL);
    make(&t, "again", COMPLETED);
    t.now_ms += 1000 * HOUR_MS;
    call_trial_takes(&t, CALL(&t, "again", "a"), ERR_OK, "operation.duplicate a (replayed)");
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
