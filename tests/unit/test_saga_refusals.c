/*
 * Inputs at the wrong time, and decisions that the machine's own check refuses, leave nothing behind. The linker puts a
 * check of this test in front of the machine's (-Wl,--wrap); it refuses the record that the test chooses.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define TWO TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'once'}")

static unsigned refused_in; /* refuses the record this many records later; 0 refuses none */

bool __real_record_check(const struct saga *saga, const struct record *record, struct err *err);
bool __wrap_record_check(const struct saga *saga, const struct record *record, struct err *err);
bool __wrap_record_check(const struct saga *saga, const struct record *record, struct err *err)
{
    if (refused_in > 0 && --refused_in == 0) {
        (void)err_set(err, ERR_CORRUPT, "refused by the test");
        return false;
    }
    return __real_record_check(saga, record, err);
}

TEST(no_saga_is_aborted_paused_or_signalled_before_its_start)
{
    struct trial trial;

    trial_open(&trial, TRIAL_SAGA("{'id':'paid','signal':{'name':'paid'}}"));
    assert_int_equal(trial_abort(&trial), ERR_CONFLICT);
    assert_string_equal(trial.err.message, "the saga has not started");
    assert_int_equal(trial_pause(&trial), ERR_CONFLICT);
    assert_int_equal(trial_signal(&trial, "paid", "{}", NULL), ERR_CONFLICT);
    trial_close(&trial);
}

TEST(a_saga_that_a_loop_has_paused_is_not_paused_again_by_a_person)
{
    struct saga_input pause = {.type = SAGA_INPUT_PAUSE, .now_ms = CALL_TRIAL_START_MS};
    struct call_trial t;
    struct records records;
    struct err err = {0};

    pause.pause.actor = pause.pause.note = SLICE("ann");
    call_trial_open(&t, NULL, "{'repeats':2,'max_cycle':1}", NULL);
    CALL(&t, "coalesce", "a");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "coalesce", "a"), ERR_LOOP);
    CALL(&t, "look", "b", .turn = "2");
    call_trial_settle(&t, "b", OUTCOME_COMPLETED, NULL);
    assert_int_equal(CALL(&t, "look", "b"), ERR_LOOP);
    assert_int_equal(saga_decide(&t.saga, &pause, &t.turn, &records, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.message, "paused already: loop"));
    assert_true(err.hint[0]);
    assert_int_equal(call_trial_resume(&t), ERR_OK);
    call_trial_close(&t);
}

TEST(a_decision_that_does_not_fit_is_taken_back_whole)
{
    struct saga_input start = {.type = SAGA_INPUT_START, .now_ms = TRIAL_START_MS};
    struct trial trial;
    struct records records;
    struct err err;

    start.start.namespace = SLICE("default");
    start.start.input = SLICE("{}");
    trial_open(&trial, TWO);
    for (unsigned nth = 1; nth <= 3;
         nth += 2) { /* saga.started and step.intent; each is also checked when it is tried */
        err = (struct err){0};
        refused_in = nth;
        assert_int_equal(saga_decide(&trial.saga, &start, &trial.turn, &records, &err), ERR_INTERNAL);
        assert_int_equal(records.count, 0);
        assert_int_equal(err.code, ERR_INTERNAL);
        assert_string_equal(err.message, "the decision contradicts the state: refused by the test");
        refused_in = nth;
        assert_int_equal(saga_decide(&trial.saga, &start, &trial.turn, &records, NULL), ERR_INTERNAL);
        assert_int_equal(trial.saga.seq, 0);
    }
    assert_int_equal(
        saga_decide(&trial.saga, &(struct saga_input){.type = SAGA_INPUT_ABORT}, &trial.turn, &records, NULL),
        ERR_CONFLICT);
    trial_start(&trial, "{}"); /* the refusal has left no trace */
    trial_play(&trial, "a");
    trial_close(&trial);
}

TEST(a_record_that_could_not_be_read_back_is_not_written)
{
    static const char *const ids[] = {"\xff", "a\xed\xa0\x80", "\xc0\xaf", "\xc3"};
    struct saga_input input = {.type = SAGA_INPUT_SIGNAL, .signal = {.name = SLICE("paid"), .payload = SLICE("1")}};
    struct records records;
    struct arena turn = {0};
    struct trial trial;
    struct err err;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'s','signal':{'name':'paid'}}"), "{}");
    arena_init(&turn, 4096);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        input.signal.id = slice_of(ids[i]);
        input.now_ms = trial.now_ms;
        assert_int_equal(saga_decide(&trial.saga, &input, &turn, &records, &err), ERR_INTERNAL);
    }
    arena_fini(&turn);
    assert_int_equal(trial.saga.signal_count, 0);
    trial_play(&trial, "a"); /* the saga goes on as if no input had come */
    trial_close(&trial);
}

TEST_PROGRAM(NULL, NULL)
