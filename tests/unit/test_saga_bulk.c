/* Items of bulk jobs: an item acts on its saga once, and only while its operation is unchanged. */
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define ITEM SLICE("019b3c60-4a00-7000-8000-00000000002a/7")

/* Opens a saga in which `act` is unknown for good after one call, so that a person is asked. */
static void open_stuck(struct trial *trial)
{
    trial_begin(trial, TRIAL_SAGA("{'id':'act','call':'once'},{'id':'next','call':'once'}"), "{}");
    trial_play_until(trial, "timer act, act unknown", SAGA_ESCALATED);
}

static struct saga_input happened(const struct trial *trial, struct slice id, uint32_t attempts)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR,
                               .bulk = {.id = id, .key = trial->saga.steps[0].forward.key, .attempts = attempts}};

    input.verdict.action = OPERATOR_RESOLVE;
    input.verdict.key = trial->saga.steps[0].forward.key;
    input.verdict.happened = true;
    input.verdict.result = SLICE("{\"id\":1}");
    input.verdict.undo_args = SLICE("{}");
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("by the bank");
    return input;
}

static void close_sound(struct trial *trial)
{
    trial_check_replay(trial);
    trial_close(trial);
}

TEST(an_item_acts_once_and_stands_in_the_log)
{
    struct trial trial;

    open_stuck(&trial);
    struct saga_input input = happened(&trial, ITEM, 1);

    assert_false(saga_did_bulk(&trial.saga, ITEM));
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    assert_true(trial.records.count > 1);
    assert_true(slice_equal(trial.records.items[0].bulk, ITEM));
    assert_false(trial.records.items[1].bulk.ptr);
    assert_true(saga_did_bulk(&trial.saga, ITEM));
    assert_false(saga_did_bulk(&trial.saga, SLICE("019b3c60-4a00-7000-8000-00000000002a/8")));
    assert_false(saga_did_bulk(&trial.saga, SLICE_NONE));
    assert_int_equal(trial_input(&trial, input), ERR_OK); /* a repeat by the engine that now owns the job */
    assert_int_equal(trial.records.count, 0);
    close_sound(&trial);
}

/* A person has taken the change back since, and the repeat must not make it again. */
TEST(an_item_that_acted_is_not_repeated_by_what_came_after_it)
{
    struct saga_input pause = {.type = SAGA_INPUT_PAUSE, .bulk = {.id = ITEM}};
    struct trial trial;

    pause.pause.actor = SLICE("ann");
    pause.pause.note = SLICE("wait");
    open_stuck(&trial);
    assert_int_equal(trial_input(&trial, pause), ERR_OK);
    assert_int_equal(trial_resume(&trial), ERR_OK);
    assert_int_equal(trial_input(&trial, pause), ERR_OK);
    assert_int_equal(trial.records.count, 0);
    assert_false(trial.saga.paused.ptr);
    pause.bulk.id = SLICE_NONE;
    assert_int_equal(trial_input(&trial, pause), ERR_OK);
    assert_true(trial.saga.paused.ptr);
    close_sound(&trial);
}

TEST(an_operation_that_was_called_again_is_left_alone)
{
    struct trial trial;

    open_stuck(&trial);
    assert_int_equal(trial_input(&trial, happened(&trial, ITEM, 0)), ERR_DECIDED);
    assert_int_equal(trial_input(&trial, happened(&trial, ITEM, 2)), ERR_DECIDED);
    assert_int_equal(trial.records.count, 0);
    struct saga_input other = happened(&trial, ITEM, 1);

    other.bulk.key.uuid.bytes[3] ^= 1;
    assert_int_equal(trial_input(&trial, other), ERR_DECIDED);
    assert_int_equal(trial_input(&trial, happened(&trial, ITEM, 1)), ERR_OK);
    close_sound(&trial);
}

TEST_PROGRAM(NULL, NULL)
