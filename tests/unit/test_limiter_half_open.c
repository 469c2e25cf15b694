/*
 * A breaker that stays half-open for hours: whoever may not simply be called again reads the status, over and over, and
 * holds no more memory for it.
 */
#include "limiter_trial.h"

#include <stdio.h>

#define ROUNDS 3000

/* What is held for the call under way of this saga, and for whatever else it is about. */
static size_t bytes_held(struct saga_id id)
{
    const struct list *activities = &live_find(trial.engine, id)->activities;
    size_t bytes = ((const struct call *)trial_oldest(ASKED_CALL))->arena->used_bytes + trial.engine->arena.used_bytes;

    for (const struct list_link *link = list_first(activities); link; link = list_after(activities, link)) {
        bytes += container_of(link, struct activity, link)->arena.used_bytes;
    }
    return bytes;
}

/* The guards let it try the breaker, and what it sends is the status read. */
static void ask_for_the_status(void)
{
    assert_int_equal(trial_held(ASKED_GUARD_ASK), 1);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    assert_int_equal(trial_held(ASKED_CALL), 1);
    assert_false(((const struct call *)trial_oldest(ASKED_CALL))->send_key);
}

static void fail_thousands_of_status_reads(struct saga_id id)
{
    size_t bytes = 0;

    for (int round = 0; round < ROUNDS; round++) {
        ask_for_the_status();
        bytes = bytes ? bytes : bytes_held(id);
        assert_int_equal(bytes_held(id), bytes);
        trial_settle(OUTCOME_UNKNOWN, "timeout", round % 2 ? "{\"status\":500}" : NULL);
        trial_run(2000);
    }
    ask_for_the_status();
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_run(1000);
    say(GUARD_GRANTED, 0);
    assert_true(((const struct call *)trial_oldest(ASKED_CALL))->send_key);
}

static void a_call_behind_a_half_open_breaker_holds_no_more_memory_the_longer_it_waits(void **state)
{
    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_GUARD_ASK);
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("run_asked", "{\"of\":\"the context of a call holds a copy of this\"}");

    fail_thousands_of_status_reads(id);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_true(strstr(trial_log_text(id), "saga.completed"));
    trial_end();
}

static void nor_does_a_compensation_and_it_is_made_as_it_was_meant(void **state)
{
    char before[UUID_TEXT_BYTES], after[UUID_TEXT_BYTES];

    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("given_back", "{\"of\":\"seven\"}");

    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_hold(ASKED_GUARD_ASK);
    trial_settle(OUTCOME_FAILED, "http-422", "{\"status\":422}");
    uuid_text(&asked_now()->operation, before);
    fail_thousands_of_status_reads(id);
    const struct call *call = trial_oldest(ASKED_CALL);

    assert_true(slice_is(call->args, "{\"of\":\"seven\"}")); /* nothing of it went with what the reads had */
    (void)snprintf(after, sizeof(after), "%.*s", SLICE_ARG(call->key));
    assert_string_equal(after, before);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_true(strstr(trial_log_text(id), "saga.compensated"));
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_behind_a_half_open_breaker_holds_no_more_memory_the_longer_it_waits),
        cmocka_unit_test(nor_does_a_compensation_and_it_is_made_as_it_was_meant),
    };

    return cmocka_run_group_tests(tests, scratch_make_file, scratch_remove_file);
}
