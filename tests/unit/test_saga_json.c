/* The views that the API promises, member by member, with payloads byte for byte. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct buffer out;

static struct slice text(void)
{
    struct err err;

    assert_false(out.overflow);
    if (json_check(buffer_slice(&out), &json_limits_default, &err) != ERR_OK) {
        fail_msg("no JSON: %s\n%s", err.message, buffer_c(&out));
    }
    return buffer_slice(&out);
}

static void has_members(struct slice object, const char *names)
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;
    char found[1024] = "";

    while (json_next_member(&walk, &name, &value)) {
        size_t len = strlen(found);

        (void)snprintf(found + len, sizeof(found) - len, "%s%.*s", len ? " " : "", SLICE_ARG(name));
    }
    assert_string_equal(found, names);
}

#define SAGA_MEMBERS                                                                                                   \
    "id saga version business_id status error paused deadline input output steps escalation cost tags created_at "     \
    "updated_at ended_at"
#define STEP_MEMBERS                                                                                                   \
    "id kind tool group status took_effect key attempts unsent result error waits_for due_at started_at ended_at "     \
    "compensation"
#define OPERATION_MEMBERS                                                                                              \
    "key state took_effect run saga step tool tool_version scope generation class attempts unsent args result error "  \
    "cost "                                                                                                            \
    "duplicate "                                                                                                       \
    "duplicates_seen first_sent_at last_sent_at created_at ended_at"
#define ESCALATION_MEMBERS                                                                                             \
    "n saga step operation reason status opened_at round earlier asked_by asked_note cost "                            \
    "evidence actions resolved_at action as actor note requests"

static void open_stuck_undo(struct trial *trial)
{
    buffer_init(&out, 1 << 20);
    trial_begin(trial, TRIAL_SAGA("{'id':'a','call':'keyed','with':{'n':'${ .input.n }'}},{'id':'b','call':'keyed'}"),
                "{ 'n' : 1.00000000000000000000001 }");
    trial_play(trial, "a, b failed, undo a failed");
}

static void close(struct trial *trial)
{
    buffer_fini(&out);
    trial_close(trial);
}

static struct trial trial;

TEST(a_saga_has_the_shape_of_the_contract)
{
    struct slice saga, steps, step;

    open_stuck_undo(&trial);
    saga_write_json(&trial.saga, &out);
    saga = text();
    steps = json_member(saga, "steps");
    step = json_element(steps, 0);
    has_members(saga, SAGA_MEMBERS);
    has_members(step, STEP_MEMBERS);
    has_members(json_member(step, "compensation"), "status key attempts unsent result error order started_at ended_at");
    has_members(json_member(json_member(step, "compensation"), "error"), "code detail");
    assert_true(slice_is(json_member(saga, "input"), "{ \"n\" : 1.00000000000000000000001 }"));
    assert_true(json_string_is(json_member(saga, "status"), "escalated"));
    assert_true(slice_is(json_member(saga, "escalation"), "64"));
    assert_true(json_string_is(json_member(json_member(saga, "error"), "code"), "step-failed"));
    assert_true(json_string_is(json_member(json_member(saga, "error"), "step"), "b"));
    assert_true(json_string_is(json_member(step, "status"), "compensation_failed"));
    assert_true(json_string_is(json_member(json_element(steps, 1), "status"), "failed"));
    assert_int_equal(json_type(json_member(json_element(steps, 1), "compensation")), JSON_NULL);
    close(&trial);
}

static struct slice view(struct trial *on)
{
    buffer_reset(&out);
    saga_write_json(&on->saga, &out);
    return text();
}

TEST(a_saga_says_who_stopped_or_paused_it_and_why)
{
    struct slice saga, error;

    buffer_init(&out, 1 << 20);
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"), "{}");
    assert_int_equal(json_type(json_member(view(&trial), "error")), JSON_NULL);
    assert_int_equal(trial_pause(&trial), ERR_OK);
    saga = view(&trial);
    assert_true(json_string_is(json_member(saga, "paused"), "operator"));
    assert_true(json_string_is(json_member(saga, "paused_by"), "ann"));
    assert_true(json_string_is(json_member(saga, "paused_note"), "the warehouse burns"));
    assert_int_equal(trial_abort(&trial), ERR_OK);
    saga = view(&trial);
    error = json_member(saga, "error");
    assert_true(json_string_is(json_member(error, "code"), "abort"));
    assert_int_equal(json_type(json_member(error, "step")), JSON_NULL);
    assert_true(json_string_is(json_member(error, "actor"), "ann"));
    assert_true(json_string_is(json_member(error, "note"), "changed my mind"));
    assert_int_equal(json_type(json_member(saga, "paused_by")), JSON_NONE);
    close(&trial);
}

TEST(a_completed_saga_says_what_is_missing_of_its_output)
{
    struct slice saga;

    buffer_init(&out, 1 << 20);
    trial_begin(&trial, TRIAL_SAGA_WITH("'output':'${ .input.n.x }'", "{'id':'a','call':'keyed'}"), "{'n':7}");
    trial_play(&trial, "a");
    saga = view(&trial);
    assert_true(json_string_is(json_member(saga, "status"), "completed"));
    assert_true(json_string_is(json_member(json_member(saga, "error"), "code"), "output"));
    close(&trial);
}

TEST(an_abandoned_saga_lists_what_is_left_standing)
{
    open_stuck_undo(&trial);
    assert_int_equal(json_type(json_member(view(&trial), "debts")), JSON_NONE);
    assert_int_equal(trial_operator(&trial, OPERATOR_ABANDON), ERR_OK);
    assert_true(json_string_is(json_member(view(&trial), "status"), "abandoned"));
    assert_true(slice_is(json_member(view(&trial), "debts"), "[\"a\"]"));
    close(&trial);
}

TEST(an_operation_has_the_shape_of_the_contract)
{
    open_stuck_undo(&trial);
    saga_write_operation(&trial.saga, 0, DIRECTION_DO, &out);
    has_members(text(), OPERATION_MEMBERS);
    assert_true(json_string_is(json_member(text(), "state"), "completed"));
    assert_true(json_string_is(json_member(text(), "class"), "keyed"));
    assert_true(slice_is(json_at(text(), SLICE("/args/n")), "1.00000000000000000000001"));
    buffer_reset(&out);
    saga_write_operation(&trial.saga, 0, DIRECTION_UNDO, &out);
    has_members(text(), OPERATION_MEMBERS);
    assert_true(json_string_is(json_member(text(), "tool"), "undo"));
    assert_true(json_string_is(json_member(text(), "state"), "escalated"));
    close(&trial);
}

TEST(the_state_of_an_operation_is_in_the_words_of_the_registry)
{
    buffer_init(&out, 1 << 20);
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"), "{}");
    trial_play(&trial, "a retry");
    saga_write_operation(&trial.saga, 0, DIRECTION_DO, &out);
    assert_true(json_string_is(json_member(text(), "state"), "pending"));
    trial_play(&trial, "timer a, a unknown");
    buffer_reset(&out);
    saga_write_operation(&trial.saga, 0, DIRECTION_DO, &out);
    assert_true(
        json_string_is(json_member(text(), "state"), "in_flight")); /* an earlier attempt may still take effect */
    close(&trial);
}

TEST(an_escalation_has_the_shape_of_the_contract_open_and_resolved)
{
    struct record resolved = {.type = RECORD_ESCALATION_RESOLVED,
                              .step = 0,
                              .direction = DIRECTION_UNDO,
                              .at_ms = TRIAL_START_MS,
                              .escalation = 64};

    open_stuck_undo(&trial);
    saga_write_escalation(&trial.saga, &out);
    has_members(text(), ESCALATION_MEMBERS);
    has_members(json_element(json_member(text(), "actions"), 0), "action does");
    assert_true(slice_is(json_member(text(), "cost"), "null"));
    assert_true(json_string_is(json_member(text(), "status"), "open"));
    assert_true(json_string_is(json_at(text(), SLICE("/evidence/open/0/step")), "a"));
    resolved.action = SLICE("waive");
    resolved.actor = SLICE("ann");
    resolved.note = SLICE("paid by hand");
    buffer_reset(&out);
    saga_write_escalation_resolved(&trial.saga, &resolved, &out);
    has_members(text(), ESCALATION_MEMBERS);
    assert_true(json_string_is(json_member(text(), "status"), "resolved"));
    assert_true(json_string_is(json_member(text(), "action"), "waive"));
    assert_int_equal(json_count(json_member(text(), "actions")), 0);
    close(&trial);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
