/* What a saga waits for, as lists filter by it: each kind, alone and together. */
#include <stdio.h>
#include <string.h>

#include "core/saga/hold.h"
#include "core/show/waits.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static const char *const names[] = {"retry",  "probe", "hold", "person", "approval",
                                    "signal", "time",  "lock", "breaker"}; /* of which no saga knows */

/* "retry hold": in the order of the list above. */
static void expect_waits(const struct trial *trial, const char *wanted)
{
    uint32_t waits = saga_waits(&trial->saga);
    char found[128] = "";

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        enum saga_wait wait;

        assert_true(saga_wait_parse(slice_of(names[i]), &wait));
        if (waits & BIT(wait)) {
            size_t len = strlen(found);

            (void)snprintf(found + len, sizeof(found) - len, "%s%s", len ? " " : "", names[i]);
        }
    }
    assert_string_equal(found, wanted);
}

TEST(a_call_waits_for_its_next_attempt_until_it_has_settled)
{
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"), "{}");
    expect_waits(&trial, "");
    trial_play(&trial, "a retry");
    expect_waits(&trial, "retry");
    trial_play(&trial, "timer a");
    expect_waits(&trial, "");
    trial_play(&trial, "a, b failed, undo a retry");
    expect_waits(&trial, "retry"); /* a compensator, too */
    trial_play(&trial, "timer undo a, undo a failed");
    expect_waits(&trial, "person");
    assert_int_equal(trial_operator(&trial, OPERATOR_ABANDON), ERR_OK);
    expect_waits(&trial, ""); /* nothing that has ended waits */
    trial_close(&trial);
}

TEST(what_nobody_knows_waits_for_a_probe)
{
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'checked'}"), "{}");
    trial_play(&trial, "timer a, a unknown");
    expect_waits(&trial, "probe");
    trial_close(&trial);
}

TEST(steps_wait_for_signals_people_and_time_at_once)
{
    struct trial trial;

    trial_begin(&trial,
                TRIAL_SAGA("{'id':'s','signal':{'name':'paid'},'after':[]},{'id':'p','approve':{},'after':[]},"
                           "{'id':'t','sleep':'1h','after':[]},{'id':'c','call':'keyed','after':[]}"),
                "{}");
    trial_play(&trial, "c retry");
    expect_waits(&trial, "retry approval signal time");
    assert_int_equal(trial_signal(&trial, "paid", "{}", NULL), ERR_OK);
    expect_waits(&trial, "retry approval time");
    assert_int_equal(trial_decide(&trial, "p", true, ROLE_OPERATOR), ERR_OK);
    trial_play(&trial, "timer t");
    expect_waits(&trial, "retry");
    trial_close(&trial);
}

TEST(only_what_would_begin_waits_for_a_hold)
{
    struct hold hold = {.number = 1, .namespace = SLICE("default"), .kind = HOLD_TOOL, .name = SLICE("once")};
    struct hold_set holds = {&hold, 1};
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'once'}"), "{}");
    trial.saga.holds = &holds;
    expect_waits(&trial, ""); /* `b` comes after `a` */
    hold.name = SLICE("keyed");
    trial_play(&trial, "a retry");
    expect_waits(&trial, "retry hold");
    hold.name = SLICE("undo");
    hold.undo = true;
    expect_waits(&trial, "retry"); /* nothing is undone */
    trial_play(&trial, "timer a, a");
    hold.name = SLICE("once");
    expect_waits(&trial, "hold");
    trial.saga.holds = NULL;
    expect_waits(&trial, "");
    trial_close(&trial);
}

TEST(a_lock_that_is_not_taken_is_waited_for)
{
    struct trial trial;

    trial_begin(&trial, TRIAL_SAGA_WITH("'locks':['room']", "{'id':'a','call':'keyed'}"), "{}");
    expect_waits(&trial, "lock");
    trial_locked(&trial, false);
    expect_waits(&trial, "");
    trial_close(&trial);
}

TEST(no_other_word_is_one)
{
    enum saga_wait wait;

    assert_false(saga_wait_parse(SLICE("retr"), &wait));
    assert_false(saga_wait_parse(SLICE(""), &wait));
}

TEST_PROGRAM(NULL, NULL)
