/* Locks on business keys: which keys, in which order; no step begins before all of them are held. */
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define STEPS "{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"
#define LOCKED(locks) TRIAL_SAGA_WITH("'locks':[" locks "]", STEPS)

static struct trial trial;

TEST(no_step_begins_before_all_locks_are_held_and_they_are_taken_in_the_order_of_their_keys)
{
    trial_begin(&trial, LOCKED("'order:${ .input.id }','customer:${ .input.c }'"), "{'id':7,'c':'ann'}");
    assert_string_equal(trial_records(&trial), "saga.started, lock.wanted");
    assert_string_equal(trial_wants(&trial), "lock - 0");
    assert_int_equal(saga_status(&trial.saga), SAGA_WAITING);
    assert_true(slice_is(trial_shown(&trial, "/locks"),
                         "[{\"key\":\"customer:ann\",\"when_taken\":\"wait\",\"status\":\"waiting\"},"
                         "{\"key\":\"order:7\",\"when_taken\":\"wait\",\"status\":\"wanted\"}]"));
    trial_check_replay(&trial);
    trial_locked(&trial, false);
    assert_string_equal(trial_records(&trial), "lock.taken");
    assert_string_equal(trial_wants(&trial), "lock - 1");
    trial_locked(&trial, false);
    assert_string_equal(trial_records(&trial), "lock.taken, step.intent a");
    assert_string_equal(trial_wants(&trial), "call a 1");
    assert_int_equal(saga_status(&trial.saga), SAGA_RUNNING);
    assert_true(json_string_is(trial_shown(&trial, "/locks/1/status"), "held"));
    trial_play_until(&trial, "a, b", SAGA_COMPLETED);
    assert_int_equal(json_type(trial_shown(&trial, "/locks")), JSON_NONE);
}

TEST(an_answer_that_comes_twice_means_nothing)
{
    struct saga_input again = {.type = SAGA_INPUT_LOCKED};

    trial_begin(&trial, LOCKED("'one','two'"), "{}");
    trial_locked(&trial, false);
    again.locked.key = SLICE("one");
    trial_takes(&trial, trial_input(&trial, again), "");
    again.locked.refused = true;
    trial_takes(&trial, trial_input(&trial, again), "");
    again.locked.key = SLICE("three");
    trial_takes(&trial, trial_input(&trial, again), "");
    trial_locked(&trial, false);
    again.locked.key = SLICE("two");
    trial_takes(&trial, trial_input(&trial, again), "");
}

TEST(a_lock_that_is_named_twice_is_one_lock_and_the_stricter_holds)
{
    trial_begin(&trial, LOCKED("{'key':'${ .input.k }','when_taken':'fail'},'k'"), "{'k':'k'}");
    assert_int_equal(trial.saga.lock_count, 1);
    assert_true(trial.saga.locks[0].fails);
    trial_close_sound(&trial);
    trial_begin(&trial, LOCKED("'k',{'key':'${ .input.k }','when_taken':'fail'},'a'"), "{'k':'k'}");
    assert_int_equal(trial.saga.lock_count, 2);
    assert_true(slice_is(trial.saga.locks[0].key, "a"));
    assert_false(trial.saga.locks[0].fails);
    assert_true(slice_is(trial.saga.locks[1].key, "k"));
    assert_true(trial.saga.locks[1].fails);
}

TEST(a_lock_that_another_saga_holds_fails_the_saga_where_it_is_not_to_wait)
{
    trial_begin(&trial, LOCKED("'a',{'key':'b','when_taken':'fail'}"), "{}");
    trial_locked(&trial, true); /* the answer is wrong, because this lock waits */
    assert_string_equal(trial_records(&trial), "");
    trial_locked(&trial, false);
    trial_locked(&trial, true);
    assert_string_equal(trial_records(&trial), "saga.failing, compensation.planned, saga.compensated");
    assert_true(slice_is(trial.saga.failing_reason, "locked"));
    assert_string_equal(trial_wants(&trial), "");
}

TEST(a_saga_that_waits_for_a_lock_can_be_aborted_and_has_a_deadline)
{
    struct saga_input late = {.type = SAGA_INPUT_LOCKED};

    trial_begin(&trial, LOCKED("'a'"), "{}");
    trial_takes(&trial, trial_abort(&trial), "saga.failing, compensation.planned, saga.compensated");
    late.locked.key = SLICE("a");
    trial_takes(&trial, trial_input(&trial, late), "");
    trial_close_sound(&trial);
    trial_begin(&trial, TRIAL_SAGA_WITH("'deadline':'1m','locks':['a']", STEPS), "{}");
    assert_string_equal(trial_wants(&trial), "timer - 0 +60000, lock - 0");
    trial_play_to(&trial, "timer -", "saga.failing, compensation.planned, saga.compensated");
}

TEST(keys_that_are_programs_are_evaluated_outside)
{
    trial_begin(&trial, LOCKED("'b','${ .input.id | tostring }'"), "{'id':7}");
    assert_string_equal(trial_records(&trial), "saga.started");
    assert_string_equal(trial_wants(&trial), "evaluate - 3");
    trial_evaluated(&trial, EVALUATE_LOCKS, "-", "['b','7']");
    assert_string_equal(trial_records(&trial), "lock.wanted");
    assert_true(slice_is(trial.saga.locks[0].key, "7"));
    trial_evaluated(&trial, EVALUATE_LOCKS, "-", "['b','8']"); /* once */
    assert_string_equal(trial_records(&trial), "");
    trial_close_sound(&trial);
    trial_begin(&trial, LOCKED("'${ .input.id | tostring }'"), "{'id':7}");
    trial_evaluated(&trial, EVALUATE_LOCKS, "-", NULL);
    assert_string_equal(trial_records(&trial), "saga.failing, compensation.planned, saga.compensated");
}

TEST(a_key_that_is_none_ends_the_saga_before_it_begins)
{
    static const char *const inputs[] = {"{}", "{'k':''}", "{'k':null}", "{'k':{'a':1}}", "{'k':7}"};

    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        trial_begin(&trial, LOCKED("'${ .input.k }'"), inputs[i]);
        assert_string_equal(trial_records(&trial),
                            "saga.started, saga.failing, compensation.planned, saga.compensated");
        assert_true(slice_is(trial.saga.failing_reason, "lock-key"));
        trial_close_sound(&trial);
    }
}

TEST(a_key_has_512_bytes_at_most)
{
    char input[600];

    for (int len = 512; len <= 513; len++) {
        (void)memset(input, 'x', sizeof(input));
        (void)memcpy(input, "{'k':'", 6);
        (void)memcpy(input + 6 + len, "'}", 3);
        trial_begin(&trial, LOCKED("'${ .input.k }'"), input);
        assert_int_equal(trial.saga.locks_wanted, len == 512);
        trial_close_sound(&trial);
    }
}

TEST(a_key_that_the_database_cannot_keep_is_refused)
{
    trial_begin(&trial, LOCKED("'${ .input.id | tostring }'"), "{'id':7}");
    trial_evaluated(&trial, EVALUATE_LOCKS, "-", "['a\\u0000b']");
    assert_true(slice_is(trial.saga.failing_reason, "lock-key"));
}

TEST(keys_that_need_escapes_are_kept_as_they_are)
{
    trial_begin(&trial, LOCKED("'${ .input.k }','z'"), "{'k':'a\\\"b\\\\\\u00e4'}");
    assert_true(slice_is(trial.saga.locks[0].key, "a\"b\\\xc3\xa4"));
    trial_locked(&trial, false);
    assert_string_equal(trial_records(&trial), "lock.taken");
}

TEST(a_record_of_a_lock_that_does_not_fit_is_refused)
{
    struct record record;
    struct err err;

    trial_begin(&trial, TRIAL_SAGA(STEPS), "{}");
#define NEXT .seq = trial.saga.seq + 1, .at_ms = trial.now_ms, .step = STEP_NONE
    record =
        (struct record){NEXT, .type = RECORD_LOCK_WANTED, .args = SLICE("[{\"key\":\"a\",\"when_taken\":\"wait\"}]")};
    assert_false(record_check(&trial.saga, &record, &err)); /* it has none */
    trial_close_sound(&trial);
    trial_begin(&trial, LOCKED("'${ .input.id | tostring }','b'"), "{'id':7}");
    static const char *const bad[] = {
        "[]",
        "{}",
        "[1]",
        "[{\"key\":\"b\",\"when_taken\":\"wait\"},{\"key\":\"a\",\"when_taken\":\"wait\"}]",
        "[{\"key\":\"a\",\"when_taken\":\"perhaps\"}]",
        "[{\"key\":\"\",\"when_taken\":\"wait\"}]",
        "[{\"key\":\"a\",\"when_taken\":\"wait\"},{\"key\":\"a\",\"when_taken\":\"wait\"}]",
        "[{\"key\":\"a\",\"when_taken\":\"wait\"},{\"key\":\"b\",\"when_taken\":\"wait\"},{\"key\":\"c\",\"when_"
        "taken\":\"wait\"}]"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        record = (struct record){NEXT, .type = RECORD_LOCK_WANTED, .args = slice_of(bad[i])};
        assert_false(record_check(&trial.saga, &record, &err));
    }
    record = (struct record){NEXT, .type = RECORD_LOCK_TAKEN, .lock = SLICE("7")};
    assert_false(record_check(&trial.saga, &record, &err)); /* no lock is wanted yet */
    trial_evaluated(&trial, EVALUATE_LOCKS, "-", "['7','b']");
    record = (struct record){NEXT, .type = RECORD_LOCK_TAKEN, .lock = SLICE("b")};
    assert_false(record_check(&trial.saga, &record, &err)); /* it is not this lock's turn */
    record.lock = SLICE("7");
    assert_true(record_check(&trial.saga, &record, &err));
    record = (struct record){NEXT, .type = RECORD_STEP_INTENT, .attempt = 1, .args = SLICE("{}")};
    record.step = 0;
    record.key.uuid.bytes[0] = 1;
    assert_false(record_check(&trial.saga, &record, &err)); /* no step begins before the locks are held */
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
