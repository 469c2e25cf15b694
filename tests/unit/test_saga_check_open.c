/*
 * Records of open sagas and runs that do not fit are refused, whoever wrote them, because the rules hold in the log and
 * not only in decisions. Each refusal is a sentence.
 */
#include <string.h>

#include "base/json.h"
#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

/* Makes a fitting record of a call of this tool. */
static struct record called(const struct call_trial *t, const char *tool, enum effect effect)
{
    struct record record = {
        .type = RECORD_STEP_CALLED, .seq = t->saga.seq + 1, .at_ms = t->now_ms, .step = t->saga.definition->step_count};

    record.key.uuid.bytes[3] = (uint8_t)(record.step + 1);
    memset(&record.fingerprint, 7, sizeof(record.fingerprint));
    record.args = SLICE("{}");
    record.call_step = SLICE("new");
    record.label = SLICE("new");
    record.tool_name = slice_of(tool);
    record.tool_version = 1;
    record.effect = effect;
    if (effect != EFFECT_READ && strcmp(tool, "mail") != 0) {
        record.undo_name = SLICE("undo");
        record.undo_version = 1;
    }
    return record;
}

static struct record about(const struct call_trial *t, enum record_type type, uint32_t step)
{
    struct record record = {.type = type, .seq = t->saga.seq + 1, .at_ms = t->now_ms, .step = step};

    record.key = t->saga.steps[step].forward.key;
    record.fingerprint = t->saga.steps[step].forward.fingerprint;
    record.decision = SLICE("replayed");
    record.due_ms = t->now_ms + 1000;
    record.actor = SLICE("ann");
    record.note = SLICE("yes");
    return record;
}

static void fits(const struct call_trial *t, struct record record)
{
    struct err err = {0};

    if (!record_check(&t->saga, &record, &err)) {
        fail_msg("refused: %s", err.message);
    }
}

static void refused(const struct call_trial *t, struct record record, const char *why)
{
    struct err err = {0};

    assert_false(record_check(&t->saga, &record, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    if (!strstr(err.message, why)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, why);
    }
}

static struct call_trial t;

TEST(a_call_names_a_tool_that_is_there_a_new_step_and_a_new_key)
{
    struct record record;

    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    fits(&t, called(&t, "strict", EFFECT_KEYED));
    record = called(&t, "strict", EFFECT_KEYED);
    record.undo_name = SLICE_NONE;
    refused(&t, record, "there is no tool strict version 1");
    record = called(&t, "strict", EFFECT_KEYED);
    record.label = SLICE("a");
    refused(&t, record, "there is a step a");
    record = called(&t, "strict", EFFECT_KEYED);
    record.key = t.saga.steps[0].forward.key;
    refused(&t, record, "an operation with this key");
    record = called(&t, "strict", EFFECT_KEYED);
    record.step = 0;
    refused(&t, record, "not the next one");
    record = called(&t, "strict", EFFECT_KEYED);
    record.args = SLICE_NONE;
    refused(&t, record, "lacks args");
}

TEST(nothing_terminal_while_something_is_not_settled_and_only_reads_after_it)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    refused(&t, called(&t, "mail", EFFECT_ONCE), "while something is unsettled");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    fits(&t, called(&t, "mail", EFFECT_ONCE));
    CALL(&t, "mail", "b");
    refused(&t, called(&t, "strict", EFFECT_KEYED), "sealed");
    fits(&t, called(&t, "look", EFFECT_READ));
}

TEST(only_what_may_be_called_again_is)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    refused(&t, about(&t, RECORD_STEP_REPEATED, 0), "cannot go from");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    refused(&t, about(&t, RECORD_STEP_REPEATED, 0), "never overturned");
    CALL(&t, "look", "b");
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    fits(&t, about(&t, RECORD_STEP_REPEATED, 1));
}

TEST(a_signature_is_for_the_same_arguments_and_is_used_once)
{
    struct record record;

    call_trial_run(&t);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    record = called(&t, "strict", EFFECT_KEYED);
    record.decision = SLICE("bypass");
    record.earlier_key = t.saga.steps[0].forward.key;
    refused(&t, record, "nobody has signed");
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    record.seq = t.saga.seq + 1;
    refused(&t, record, "other arguments");
    record.fingerprint = t.saga.steps[0].forward.fingerprint;
    fits(&t, record);
    record.at_ms += INT64_C(15) * 60 * 1000;
    refused(&t, record, "expired");
    assert_int_equal(CALL(&t, "strict", "a", .turn = "2"), ERR_OK);
    assert_true(slice_is(t.records.items[0].decision, "bypass"));
    record = called(&t, "strict", EFFECT_KEYED);
    record.decision = SLICE("bypass");
    record.earlier_key = t.saga.steps[0].forward.key;
    record.fingerprint = t.saga.steps[0].forward.fingerprint;
    refused(&t, record, "was used");
}

TEST(after_the_end_only_what_is_no_effect)
{
    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(call_trial_complete(&t), ERR_OK);
    fits(&t, about(&t, RECORD_OPERATION_DUPLICATE, 0));
    fits(&t, about(&t, RECORD_OPERATION_EXPIRED, 0));
    refused(&t, about(&t, RECORD_BYPASS_SIGNED, 0), "has ended");
    refused(&t, about(&t, RECORD_STEP_REPEATED, 0), "has ended");
    refused(&t, about(&t, RECORD_STEP_LATE, 0), "has ended");
    refused(&t, called(&t, "look", EFFECT_READ), "has ended");
    refused(&t, (struct record){.type = RECORD_RUN_WOKEN, .seq = t.saga.seq + 1, .at_ms = t.now_ms, .step = STEP_NONE},
            "only runs rest");
}

TEST(a_run_is_no_whole)
{
    static const enum record_type of_a_whole[] = {RECORD_SAGA_FAILING, RECORD_SAGA_COMPLETED, RECORD_SAGA_ABANDONED};

    call_trial_run(&t);
    CALL(&t, "strict", "a");
    refused(&t, (struct record){.type = RECORD_RUN_RESTED, .seq = t.saga.seq + 1, .at_ms = t.now_ms, .step = STEP_NONE},
            "going on");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    for (size_t i = 0; i < COUNT_OF(of_a_whole); i++) {
        refused(&t,
                (struct record){.type = of_a_whole[i],
                                .seq = t.saga.seq + 1,
                                .at_ms = t.now_ms,
                                .step = STEP_NONE,
                                .error = SLICE("x")},
                "independent");
    }
    t.now_ms += 60000;
    call_trial_due(&t, SAGA_TIMER_REST);
    refused(&t, about(&t, RECORD_OPERATION_DUPLICATE, 0), "rests");
    refused(&t, called(&t, "strict", EFFECT_KEYED), "has ended");
    fits(&t, (struct record){.type = RECORD_RUN_WOKEN, .seq = t.saga.seq + 1, .at_ms = t.now_ms, .step = STEP_NONE});
}

TEST(late_evidence_has_to_contradict_something)
{
    struct record record;

    call_trial_open(&t, NULL, NULL, NULL);
    CALL(&t, "strict", "a");
    record = about(&t, RECORD_STEP_LATE, 0);
    record.attempt = 1;
    refused(&t, record, "contradicts nothing");
    call_trial_settle(&t, "a", OUTCOME_FAILED, NULL);
    record.seq = t.saga.seq + 1;
    fits(&t, record);
    record.attempt = 2;
    refused(&t, record, "was not made");
}

/* --- what the API shows --- */

static struct slice shown;

static void show(struct call_trial *on, void (*write)(struct call_trial *on, struct buffer *out))
{
    struct buffer out;
    struct err err;

    buffer_init(&out, (size_t)1 << 20);
    write(on, &out);
    shown = arena_slice(&on->arena, buffer_slice(&out));
    buffer_fini(&out);
    if (json_check(shown, &json_limits_default, &err) != ERR_OK) {
        fail_msg("no JSON: %.*s", SLICE_ARG(shown));
    }
}

static void write_saga(struct call_trial *on, struct buffer *out)
{
    saga_write_json(&on->saga, out);
}

static void write_last(struct call_trial *on, struct buffer *out)
{
    saga_write_operation(&on->saga, on->saga.definition->step_count - 1, DIRECTION_DO, out);
}

static void write_question(struct call_trial *on, struct buffer *out)
{
    saga_write_escalation(&on->saga, out);
}

#define SHOWS(name, json) assert_true(slice_is(json_trim(json_member(shown, name)), json))

TEST(an_open_saga_says_what_an_agent_has_to_know)
{
    call_trial_open(&t, "{'calls':5,'micros':500}", NULL, "escalate");
    CALL(&t, "paid", "a", .emission = "e");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    CALL(&t, "paid", "a", .emission = "e");
    CALL(&t, "mail", "send");
    show(&t, write_saga);
    SHOWS("saga", "null");
    SHOWS("open", "true");
    SHOWS("version", "null");
    SHOWS("sealed_by", "\"send\"");
    SHOWS("paused", "null");
    SHOWS("budget", "{\"calls\":5,\"emissions\":null,\"micros\":500}");
    SHOWS("used", "{\"calls\":2,\"emissions\":2,\"micros\":100}");
    SHOWS("deadline", "\"2023-11-14T23:13:20.000Z\"");
    SHOWS("cost", "100");
    call_trial_timer(&t, "send");
    call_trial_settle(&t, "send", OUTCOME_UNKNOWN, NULL);
    assert_true(slice_is(t.saga.escalation.reason, "unknown"));
}

TEST(an_operation_shows_its_run_class_cost_duplicates_and_what_it_is_another_execution_of)
{
    call_trial_run(&t);
    CALL(&t, "paid", "a", .scope = "order-7");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    CALL(&t, "paid", "a", .scope = "order-7");
    show(&t, write_last);
    SHOWS("run", "\"run-1\"");
    SHOWS("step", "\"a\"");
    SHOWS("scope", "\"order-7\"");
    SHOWS("class", "\"keyed\"");
    SHOWS("cost", "100");
    SHOWS("duplicates_seen", "1");
    assert_null(json_member(shown, "earlier_key").ptr);
    assert_int_equal(call_trial_bypass(&t, "a"), ERR_OK);
    CALL(&t, "paid", "a", .scope = "order-7");
    show(&t, write_last);
    SHOWS("step", "\"a\""); /* as in the key, although the saga calls the step a~2 */
    SHOWS("generation", "1");
    assert_non_null(json_member(shown, "earlier_key").ptr);
}

TEST(an_expired_call_shows_neither_arguments_nor_result)
{
    call_trial_run(&t);
    CALL(&t, "strict", "a", "{'amount':1}");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    t.now_ms += INT64_C(25) * 3600 * 1000;
    assert_int_equal(CALL(&t, "strict", "a", "{'amount':1}"), ERR_EXPIRED);
    show(&t, write_last);
    SHOWS("state", "\"completed\"");
    SHOWS("args", "null");
    SHOWS("result", "null");
}

TEST(a_question_about_the_saga_as_a_whole_names_no_step)
{
    call_trial_open(&t, NULL, NULL, "escalate");
    t.now_ms += 3600 * 1000;
    call_trial_due(&t, SAGA_TIMER_DEADLINE);
    assert_string_equal(call_trial_records(&t), "escalation.opened");
    show(&t, write_question);
    SHOWS("step", "null");
    SHOWS("operation", "null");
    SHOWS("reason", "\"deadline\"");
    assert_int_equal(saga_escalation_actions(&t.saga),
                     BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_COMPENSATE) | BIT(OPERATOR_ABANDON));
    call_trial_takes(&t, call_trial_operator(&t, OPERATOR_COMPENSATE), ERR_OK,
                     "escalation.resolved, saga.failing, compensation.planned, saga.compensated");
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
