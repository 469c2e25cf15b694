/* What people are told about a saga: where it stands, why, and what comes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/lib/saga_trial.h"

static const char *explained(struct trial *trial)
{
    struct buffer out;
    const char *text;

    buffer_init(&out, 65536);
    explain(&trial->saga, trial->now_ms, &out);
    text = arena_text(&trial->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static void it_says_where_a_saga_stands_and_what_comes_next(void **state)
{
    struct trial trial;

    (void)state;
    trial_open(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'once'}"));
    assert_string_equal(explained(&trial), "Saga trial has not started.");
    trial_start(&trial, "{}");
    assert_string_equal(explained(&trial), "Saga trial is running. Step a is being called (attempt 1).");
    trial_settle(&trial, "a", OUTCOME_COMPLETED);
    assert_string_equal(explained(&trial),
                        "Saga trial is running. Done: a. Step b is about to be called for the first time.");
    trial_timer(&trial, "b");
    trial_settle(&trial, "b", OUTCOME_UNKNOWN);
    assert_string_equal(
        explained(&trial),
        "Saga trial is stuck. Done: a. Nobody can say whether step b happened. It needs a person: escalation 64 about "
        "step b (unknown). Possible are retry, resolve, waive, compensate, abandon.");
    assert_int_equal(trial_resolve(&trial, false, NULL), ERR_OK);
    assert_string_equal(
        explained(&trial),
        "Saga trial is being undone. Why: step-failed (b), not-happened: a person has stated that it did not happen. "
        "The undo of step a is being called (attempt 1).");
    trial_settle_undo(&trial, "a", OUTCOME_COMPLETED);
    assert_string_equal(
        explained(&trial),
        "Saga trial was undone: none of its effects is left. Why: step-failed (b), not-happened: a person has stated "
        "that it did not happen. Undone: a.");
    trial_close(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_where_a_saga_stands_and_what_comes_next),
    };

    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
