/* Folding records: a fitting record is folded to the same state every time, a wrong one is refused, and none crashes
 * anything. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define TWO TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'checked'}")

static struct record next(const struct trial *trial, enum record_type type, uint32_t step, enum direction direction)
{
    struct record record = {
        .seq = trial->saga.seq + 1, .at_ms = trial->now_ms, .type = type, .step = step, .direction = direction};

    if (step != STEP_NONE) {
        const struct operation *op =
            direction == DIRECTION_UNDO ? step_undo(&trial->saga.steps[step]) : &trial->saga.steps[step].forward;

        record.key = op->key;
        record.attempt = op->attempts;
    }
    record.error = SLICE("test");
    record.actor = SLICE("ann");
    record.note = SLICE("note");
    return record;
}

static bool fits(const struct trial *trial, struct record record)
{
    struct err err = {0};
    bool ok = record_check(&trial->saga, &record, &err);

    assert_true(ok || (err.code == ERR_CORRUPT && err.message[0]));
    return ok;
}

static struct trial trial;

TEST(a_record_that_does_not_fit_is_refused)
{
    struct record record;

    trial_open(&trial, TWO);
    assert_false(fits(&trial, next(&trial, RECORD_SAGA_COMPENSATED, STEP_NONE, DIRECTION_DO))); /* before the start */
    trial_start(&trial, "{}");
    record = next(&trial, RECORD_STEP_COMPLETED, 0, DIRECTION_DO);
    assert_true(fits(&trial, record));
    record.seq++;
    assert_false(fits(&trial, record)); /* a gap */
    record.seq -= 2;
    assert_false(fits(&trial, record)); /* again */
    record = next(&trial, RECORD_STEP_COMPLETED, 0, DIRECTION_DO);
    record.attempt = 2;
    assert_false(fits(&trial, record)); /* an attempt without an intent */
    record.attempt = 1;
    record.key.uuid.bytes[3] ^= 1;
    assert_false(fits(&trial, record)); /* another key */
    record = next(&trial, RECORD_STEP_COMPLETED, 0, DIRECTION_DO);
    record.step = 2;
    assert_false(fits(&trial, record));
    record.step = STEP_NONE;
    assert_false(fits(&trial, record));
    record = next(&trial, RECORD_STEP_INTENT, 0, DIRECTION_DO);
    record.attempt = 2;
    assert_false(fits(&trial, record)); /* a second call while the first is out */
    record = next(&trial, RECORD_STEP_PENDING, 1, DIRECTION_DO);
    record.key.uuid.bytes[0] = 1;
    record.fingerprint.bytes[0] = 1;
    record.args = SLICE("{}");
    assert_false(fits(&trial, record)); /* before the steps that it waits for */
    assert_false(fits(&trial, next(&trial, RECORD_SAGA_COMPLETED, STEP_NONE, DIRECTION_DO)));
    assert_false(fits(&trial, next(&trial, RECORD_SAGA_COMPENSATED, STEP_NONE, DIRECTION_DO)));
    assert_false(fits(&trial, next(&trial, RECORD_COMPENSATION_PLANNED, STEP_NONE, DIRECTION_DO)));
    assert_false(fits(&trial, next(&trial, RECORD_COMPENSATION_INTENT, 0, DIRECTION_UNDO)));
    record = next(&trial, RECORD_SAGA_FAILING, STEP_NONE, DIRECTION_DO);
    record.type = (enum record_type)RECORD_TYPE_COUNT;
    assert_false(fits(&trial, record));
    record.type = (enum record_type) - 1;
    assert_false(fits(&trial, record));
}

TEST(completed_is_never_overturned)
{
    trial_begin(&trial, TWO, "{}");
    trial_play(&trial, "a");
    assert_false(fits(&trial, next(&trial, RECORD_STEP_FAILED, 0, DIRECTION_DO)));
    assert_false(fits(&trial, next(&trial, RECORD_STEP_COMPLETED, 0, DIRECTION_DO)));
    assert_false(fits(&trial, next(&trial, RECORD_STEP_UNKNOWN, 0, DIRECTION_DO)));
    assert_false(fits(&trial, next(&trial, RECORD_STEP_SKIPPED, 0, DIRECTION_DO)));
}

TEST(the_plan_must_be_the_right_one)
{
    static const uint32_t right[] = {1, 0}, forward_order[] = {0, 1}, short_one[] = {1}, twice[] = {1, 1},
                          out[] = {1, 7};
    struct record record;
    const struct {
        const uint32_t *plan;
        uint32_t count;
        bool fits;
    } plans[] = {{right, 2, true}, {forward_order, 2, false}, {short_one, 1, false}, {twice, 2, false},
                 {out, 2, false},  {NULL, 2, false},          {NULL, 0, false}};

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'},{'id':'c','call':'keyed'}"),
                "{}");
    trial_play(&trial, "a, b");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    record = next(&trial, RECORD_COMPENSATION_PLANNED, STEP_NONE, DIRECTION_DO);
    assert_false(fits(&trial, record)); /* c is in flight */
    record = next(&trial, RECORD_STEP_FAILED, 2, DIRECTION_DO);
    saga_apply(&trial.saga, &record);
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        record = next(&trial, RECORD_COMPENSATION_PLANNED, STEP_NONE, DIRECTION_DO);
        record.plan = plans[i].plan;
        record.plan_count = plans[i].count;
        if (fits(&trial, record) != plans[i].fits) {
            fail_msg("plan %zu", i);
        }
    }
    trial_close(&trial); /* the state is bent on purpose */
}

TEST(an_undo_out_of_turn_is_refused)
{
    struct record record;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'},{'id':'c','call':'keyed'}"),
                "{}");
    trial_play(&trial, "a, b, c failed");
    assert_string_equal(trial_wants(&trial), "call undo b 1");
    record = next(&trial, RECORD_COMPENSATION_INTENT, 0, DIRECTION_UNDO);
    record.attempt = 1;
    record.key.uuid.bytes[0] = 1;
    record.args = SLICE("{}");
    assert_false(fits(&trial, record)); /* before the steps that wait for it */
    trial_play(&trial, "undo b");
    assert_false(fits(&trial, next(&trial, RECORD_COMPENSATION_COMPLETED, 1, DIRECTION_UNDO))); /* twice */
    record = next(&trial, RECORD_STEP_INTENT, 2, DIRECTION_DO);
    record.attempt = 2;
    assert_false(fits(&trial, record)); /* forward work is over */
}

TEST(no_record_follows_the_end)
{
    trial_begin(&trial, TWO, "{}");
    trial_play(&trial, "a failed");
    assert_int_equal(trial.saga.phase, PHASE_ENDED);
    for (unsigned type = 0; type < RECORD_TYPE_COUNT; type++) {
        for (uint32_t step = 0; step < 2; step++) {
            assert_false(fits(&trial, next(&trial, (enum record_type)type, step, DIRECTION_DO)));
            assert_false(fits(&trial, next(&trial, (enum record_type)type, step, DIRECTION_UNDO)));
        }
        assert_false(fits(&trial, next(&trial, (enum record_type)type, STEP_NONE, DIRECTION_DO)));
    }
}

TEST(an_escalation_is_opened_once_and_closed_by_its_number)
{
    struct record record;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"), "{}");
    trial_play(&trial, "timer a, a unknown");
    record = next(&trial, RECORD_ESCALATION_OPENED, 0, DIRECTION_DO);
    record.escalation = 128;
    record.reason = SLICE("unknown");
    assert_false(fits(&trial, record));
    record = next(&trial, RECORD_ESCALATION_RESOLVED, 0, DIRECTION_DO);
    record.action = SLICE("waive");
    record.escalation = 128;
    assert_false(fits(&trial, record));
    record.escalation = 64;
    assert_true(fits(&trial, record));
    record = next(&trial, RECORD_SAGA_ABANDONED, STEP_NONE, DIRECTION_DO);
    assert_false(fits(&trial, record)); /* a question is open */
}

TEST(the_state_is_the_same_whoever_folds_it)
{
    struct saga *copy;
    struct record failing;

    trial_begin(&trial, TWO, "{}");
    trial_play(&trial, "a");
    copy = saga_copy(&trial.saga, &trial.arena);
    failing = next(&trial, RECORD_SAGA_FAILING, STEP_NONE, DIRECTION_DO);
    saga_apply(copy, &failing);
    assert_int_equal(copy->phase, PHASE_FAILING);
    assert_int_equal(trial.saga.phase, PHASE_FORWARD); /* a trial on a copy leaves the state alone */
}

TEST(the_state_owns_all_that_it_keeps)
{
    char input[] = "{\"n\":1}";
    struct saga_input start = {.type = SAGA_INPUT_START};

    trial_open(&trial, TWO);
    start.start.namespace = SLICE("default");
    start.start.input = slice_of(input);
    assert_int_equal(trial_input(&trial, start), ERR_OK);
    memset(input, 'x', sizeof(input));
    arena_reset(&trial.turn);
    assert_true(slice_is(trial.saga.input, "{\"n\":1}"));
    assert_true(slice_is(trial.saga.steps[0].forward.args, "{}"));
}

TEST(a_send_that_never_left_leaves_no_trace_of_a_send)
{
    struct outcome unsent = {.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE("refused")};

    trial_begin(&trial, TWO, "{}");
    assert_int_equal(trial.saga.steps[0].forward.first_sent_ms, TRIAL_START_MS);
    assert_int_equal(trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, unsent)),
                     ERR_OK);
    assert_int_equal(trial.saga.steps[0].forward.first_sent_ms, 0);
    assert_int_equal(trial.saga.steps[0].forward.last_sent_ms, 0);
    assert_int_equal(trial.saga.steps[0].forward.counted, 0);
    assert_int_equal(saga_took_effect(&trial.saga, 0), TOOK_EFFECT_NO);
    trial_play(&trial, "timer a, a unknown, timer a");
    {
        int64_t first = trial.saga.steps[0].forward.first_sent_ms;

        assert_int_equal(trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 3, unsent)),
                         ERR_OK);
        assert_int_equal(trial.saga.steps[0].forward.first_sent_ms, first);
        assert_int_equal(saga_took_effect(&trial.saga, 0),
                         TOOK_EFFECT_MAYBE); /* the attempt before may have had an effect */
        assert_string_equal(trial_records(&trial), "step.retrying a");
    }
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
