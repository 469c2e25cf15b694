/* Holds: while one keeps a call of a saga the clocks of the saga stand, and go on where they stood when it ends. */
#include <string.h>

#include "core/saga/hold.h"
#include "core/saga/machine.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

static struct trial trial;
static struct hold hold;
static const struct hold_set held = {&hold, 1}, nothing_held = {&hold, 0};

static void hold_tool(const char *tool, bool undo)
{
    hold = (struct hold){
        .number = 1, .namespace = SLICE("default"), .kind = HOLD_TOOL, .name = slice_of(tool), .undo = undo, .pace = 1};
    trial.holds = &held;
}

/* What the engine tells a saga when a call began to wait, and when the hold is over. */
static void look(void)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER, .timer = {.step = STEP_NONE, .timer = SAGA_TIMER_HOLD}};

    assert_int_equal(trial_input(&trial, input), ERR_OK);
}

static void release(void)
{
    trial.holds = &nothing_held;
    look();
}

static void begin(const char *document)
{
    trial_begin(&trial, document, "{}");
}

#define AFTER_A TRIAL_SAGA_WITH("'deadline':'2h'", "{'id':'a','call':'keyed'},{'id':'b','call':'idempotent'}")

TEST(the_deadline_stands_while_a_hold_keeps_a_call)
{
    begin(AFTER_A);
    hold_tool("idempotent", false);
    trial.now_ms += HOUR_MS;
    trial_play_to(&trial, "a", "step.completed a, step.pending b, saga.held");
    assert_string_equal(trial_wants(&trial), "timer b 0");
    trial.now_ms += 10 * HOUR_MS;
    trial_play_to(&trial, "timer -", ""); /* an engine whose clock was ahead, or a timer that was under way */
    look();
    assert_string_equal(trial_records(&trial), "");
    trial_check_replay(&trial);
    release();
    assert_string_equal(trial_records(&trial), "saga.released");
    assert_string_equal(trial_wants(&trial), "timer b 0, timer - 0 +3600000"); /* the hour that was left */
    trial_play_to(&trial, "timer b", "step.intent b");
    trial_play_to(&trial, "timer -", "saga.failing");
    trial_close_sound(&trial);
}

/* The turn in which the call goes on says first that the clocks do. */
TEST(a_call_that_goes_on_lets_the_clocks_go_on_before_anything_is_decided_by_them)
{
    begin(AFTER_A);
    hold_tool("idempotent", false);
    trial_play(&trial, "a");
    trial.now_ms += 10 * HOUR_MS;
    trial.holds = NULL;
    trial_play_to(&trial, "timer b", "saga.released, step.intent b");
    assert_string_equal(trial_wants(&trial), "call b 1, timer - 0 +7200000");
    trial_close_sound(&trial);
}

TEST(a_saga_that_ended_under_a_hold_says_that_it_has_ended)
{
    struct saga_input abort = {.type = SAGA_INPUT_ABORT, .abort = {.actor = SLICE("ann"), .note = SLICE("enough")}};

    trial_open(&trial, AFTER_A);
    hold_tool("keyed", false);
    trial_start(&trial, "{}");
    assert_string_equal(trial_records(&trial), "saga.started, step.pending a, saga.held");
    trial_takes(&trial, trial_input(&trial, abort),
                "saga.failing, step.failed a, compensation.planned, saga.compensated");
    trial.holds = NULL;
    assert_int_equal(trial_input(&trial, abort), ERR_ENDED);
    trial_close_sound(&trial);
}

static bool is_shown(const char *part)
{
    struct buffer text;
    bool found;

    buffer_init(&text, 1 << 20);
    saga_write_json(&trial.saga, &text);
    found = strstr(buffer_c(&text), part) != NULL;
    buffer_fini(&text);
    return found;
}

static void expect_shown(const char *part)
{
    if (!is_shown(part)) {
        fail_msg("it does not show %s", part);
    }
}

static void expect_not_shown(const char *part)
{
    assert_false(is_shown(part));
}

TEST(what_a_hold_does_not_keep_has_its_clocks)
{
    begin(AFTER_A);
    hold_tool("read", false);
    look();
    assert_string_equal(trial_records(&trial), "");
    trial_play_to(&trial, "a", "step.completed a, step.intent b");
    trial_close_sound(&trial);
}

#define BESIDE                                                                                                         \
    TRIAL_SAGA_WITH("'deadline':'9h'", "{'id':'a','call':'keyed'},"                                                    \
                                       "{'id':'ok','approve':{'timeout':'1h'},'after':[]},"                            \
                                       "{'id':'said','signal':{'name':'said','timeout':'12h'},'after':[]}")

TEST(an_approval_stands_and_a_signal_does_not)
{
    trial.now_ms = TRIAL_START_MS;
    trial_open(&trial, BESIDE);
    hold_tool("keyed", false);
    trial_start(&trial, "{}");
    assert_true(trial.saga.held_ms > 0);
    assert_string_equal(trial_wants(&trial), "timer a 0, timer said 0 +43200000");
    trial.now_ms += 2 * HOUR_MS;
    trial_play_to(&trial, "timer ok", "");
    release();
    assert_string_equal(trial_wants(&trial),
                        "timer a 0, timer ok 0 +3600000, timer said 0 +36000000, timer - 0 +32400000");
    trial_close_sound(&trial);
}

TEST(a_person_decides_while_an_approval_stands)
{
    trial_open(&trial, BESIDE);
    hold_tool("keyed", false);
    trial_start(&trial, "{}");
    trial.now_ms += 2 * HOUR_MS;
    assert_int_equal(trial_decide(&trial, "ok", true, ROLE_OPERATOR), ERR_OK);
    trial_close_sound(&trial);
}

/* Its receiver is asked on, and a person is not before the hour has passed that is left. */
TEST(the_time_to_give_up_a_probe_stands_and_probes_go_on)
{
    begin(TRIAL_SAGA("{'id':'a','call':'once_probed'},{'id':'b','call':'idempotent','after':[]}"));
    trial_play(&trial, "timer a, b retry, a unknown");
    hold_tool("idempotent", false);
    trial.now_ms += 60000;
    look();
    assert_string_equal(trial_records(&trial), "saga.held");
    trial.now_ms += 5 * HOUR_MS;
    trial_play_to(&trial, "probe a unknown", "step.probed a");
    assert_int_equal(trial.saga.escalation.number, 0);
    release();
    trial_play(&trial, "probe a unknown");
    assert_int_equal(trial.saga.escalation.number, 0);
    trial.now_ms += HOUR_MS;
    trial_play(&trial, "probe a unknown");
    assert_int_not_equal(trial.saga.escalation.number, 0);
    trial_close_sound(&trial);
}

TEST(an_undo_that_is_held_does_not_give_up)
{
    begin(TRIAL_SAGA("{'id':'a','call':'by_keyed'},{'id':'b','call':'keyed'}"));
    trial_play(&trial, "a");
    hold_tool("undo_keyed", true);
    trial_play(&trial, "b failed");
    assert_true(trial.saga.held_ms > 0);
    trial.now_ms += HOUR_MS;
    trial.holds = NULL;
    trial_play_to(&trial, "timer undo a", "saga.released, compensation.intent a");
    trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
    expect_shown("\"held_since\":null,\"held_ms\":3600000,");
    trial_close_sound(&trial);
}

TEST(how_long_a_saga_was_held_is_shown_while_it_is_held_and_after_its_end)
{
    begin(AFTER_A);
    expect_not_shown("held_");
    hold_tool("idempotent", false);
    trial_play(&trial, "a");
    assert_true(trial.saga.held_ms > 0);
    expect_shown("Z\",\"held_ms\":0,"); /* since an instant */
    trial.now_ms += HOUR_MS;
    release();
    expect_shown("\"held_since\":null,\"held_ms\":3600000,");
    hold_tool("idempotent", false);
    trial.now_ms += HOUR_MS;
    look();
    trial.now_ms += HOUR_MS;
    assert_int_equal(trial_abort(&trial), ERR_OK);
    trial_close_sound(&trial);
}

/* No hour counts twice. */
TEST(a_pause_takes_the_place_of_a_hold)
{
    begin(AFTER_A);
    hold_tool("idempotent", false);
    trial_play(&trial, "a");
    trial.now_ms += HOUR_MS;
    trial_takes(&trial, trial_pause(&trial), "saga.paused, saga.released");
    trial.now_ms += HOUR_MS;
    trial_takes(&trial, trial_resume(&trial), "saga.resumed, saga.held");
    trial.now_ms += HOUR_MS;
    release();
    assert_string_equal(trial_wants(&trial), "timer b 0, timer - 0 +7200000");
    trial_close_sound(&trial);
}

TEST(an_abort_ends_it)
{
    begin(AFTER_A);
    hold_tool("idempotent", false);
    trial_play(&trial, "a");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    assert_int_equal(trial.saga.held_ms, 0);
    trial_close_sound(&trial);
}

TEST(records_that_do_not_fit_are_refused)
{
    struct record held_again = {.type = RECORD_SAGA_HELD, .step = STEP_NONE};
    struct record released = {.type = RECORD_SAGA_RELEASED, .step = STEP_NONE};
    struct err err;

    begin(AFTER_A);
    held_again.seq = released.seq = trial.saga.seq + 1;
    held_again.at_ms = released.at_ms = trial.now_ms;
    assert_false(record_check(&trial.saga, &released, &err));
    assert_true(record_check(&trial.saga, &held_again, &err));
    hold_tool("idempotent", false);
    trial_play(&trial, "a");
    held_again.seq = released.seq = trial.saga.seq + 1;
    assert_false(record_check(&trial.saga, &held_again, &err));
    assert_true(record_check(&trial.saga, &released, &err));
    trial_close(&trial);
}

static int forget_holds(void **state)
{
    (void)state;
    trial.holds = NULL;
    return 0;
}

TEST_PROGRAM_EACH(NULL, forget_holds)
