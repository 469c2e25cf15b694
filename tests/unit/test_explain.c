/* The explanation of a saga for people: where it stands, why, and what comes next. */
#include <stdio.h>
#include <string.h>

#include "core/show/explain.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

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

static struct trial trial;

TEST(explain_says_where_a_saga_stands_and_what_comes_next)
{
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
}

TEST(explain_says_what_a_saga_waits_for)
{
    trial_open(&trial,
               TRIAL_SAGA_WITH("'locks':['order:7'],'deadline':'2h'",
                               "{'id':'nap','sleep':'30m','after':[]},{'id':'sig','signal':{'name':'paid'},'after':[]},"
                               "{'id':'ok','approve':{'timeout':'1h'},'after':[]}"));
    trial_start(&trial, "{}");
    assert_string_equal(explained(&trial),
                        "Saga trial is waiting. It waits for the lock order:7, 1 of 1: no step begins before. "
                        "The deadline is in 2h 0m.");
    trial_locked(&trial, false);
    assert_string_equal(
        explained(&trial),
        "Saga trial is waiting. Step nap sleeps, for 30m 0s more. Step sig waits for the signal paid. Step ok "
        "waits until a person decides on approval 64, for 1h 0m more. The deadline is in 2h 0m.");
    assert_int_equal(trial_pause(&trial), ERR_OK);
    trial.now_ms += 600000;
    assert_string_equal(
        explained(&trial),
        "Saga trial is paused. A person has paused it: nothing begins and no clock runs until somebody resumes it. "
        "Step nap sleeps, for 30m 0s more. Step sig waits for the signal paid. Step ok "
        "waits until a person decides on approval 64, for 1h 0m more. The deadline is in 2h 0m.");
}

TEST(explain_names_no_more_steps_than_somebody_reads)
{
    struct buffer document;

    buffer_init(&document, 1 << 20);
    buffer_put_text(&document, "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[");
    for (int i = 0; i < 60; i++) {
        buffer_printf(&document, "%s{'id':'s%d','call':'keyed','after':[]}", i ? "," : "", i);
    }
    buffer_put_text(&document, "]}]}");
    trial_open(&trial, buffer_c(&document));
    buffer_fini(&document);
    trial_start(&trial, "{}");
    assert_non_null(strstr(explained(&trial), "20 more steps are under way."));
    for (int i = 0; i < 50; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        trial_settle(&trial, id, OUTCOME_COMPLETED);
    }
    assert_non_null(strstr(explained(&trial), "s39 and 10 more."));
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
