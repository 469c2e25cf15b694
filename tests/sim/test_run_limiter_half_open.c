/*
 * A breaker that stays half-open for hours. A call that may not simply be repeated reads the status over and over, and
 * needs no more memory for it.
 */
#include "run/call/activity.h"
#include "run/saga/live.h"
#include "tests/sim/limiter_stage.h"

#include <stdio.h>

#define ROUNDS 3000

/* Returns the bytes held for the call under way and for all activities of this saga. */
static size_t bytes_held(struct saga_id id)
{
    const struct list *activities = &live_find(nodes[0].engine, id)->activities;
    size_t bytes = stage_call(NULL)->call->arena->used_bytes + nodes[0].engine->arena.used_bytes;

    for (const struct list_link *link = list_first(activities); link; link = list_after(activities, link)) {
        bytes += container_of(link, struct activity, link)->arena.used_bytes;
    }
    return bytes;
}

/* Lets the call try the breaker; what it sends is the status read. */
static void ask_for_the_status(void)
{
    assert_int_equal(stage_held(STORE_GUARD_ASK), 1);
    asked_now()->is_breaker_probe = true;
    say(GUARD_GRANTED, 0);
    assert_int_equal(stage_open_calls(), 1);
    assert_false(stage_call(NULL)->call->send_key);
}

static void fail_thousands_of_status_reads(struct saga_id id)
{
    size_t bytes = 0;

    for (int round = 0; round < ROUNDS; round++) {
        ask_for_the_status();
        bytes = bytes ? bytes : bytes_held(id);
        assert_int_equal(bytes_held(id), bytes);
        stage_answer_first(OUTCOME_UNKNOWN, "timeout", round % 2 ? "{'status':500}" : NULL);
        stage_run(2000);
    }
    ask_for_the_status();
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_run(1000);
    say(GUARD_GRANTED, 0);
    assert_true(stage_call(NULL)->call->send_key);
}

TEST(a_call_behind_a_half_open_breaker_holds_no_more_memory_the_longer_it_waits)
{
    stage_begin(&(struct stage_plan){.definitions = definitions});
    stage_hold(STORE_GUARD_ASK);
    struct saga_id id = stage_start(0, "run_asked", "{'of':'the context of a call holds a copy of this'}");
    stage_settle();

    fail_thousands_of_status_reads(id);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_true(strstr(stage_log(id), "saga.completed"));
}

TEST(nor_does_a_compensation_and_it_is_made_as_it_was_meant)
{
    char before[UUID_TEXT_BYTES], after[UUID_TEXT_BYTES];

    stage_begin(&(struct stage_plan){.definitions = definitions});
    struct saga_id id = stage_start(0, "given_back", "{'of':'seven'}");
    stage_settle();

    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_hold(STORE_GUARD_ASK);
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    uuid_text(&asked_now()->operation, before);
    fail_thousands_of_status_reads(id);
    const struct staged_call *call = stage_until_call(NULL);

    assert_true(
        slice_is(call->args, "{\"of\":\"seven\"}")); /* the call kept its own arguments while the reads were freed */
    (void)snprintf(after, sizeof(after), "%.*s", SLICE_ARG(call->key));
    assert_string_equal(after, before);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_true(strstr(stage_log(id), "saga.compensated"));
}

/* No wait makes the read allowed. */
TEST(a_person_is_asked_about_a_compensation_whose_status_read_is_denied)
{
    stage_begin(&(struct stage_plan){.definitions = definitions});
    struct saga_id id = stage_start(0, "given_back", "{'of':'seven'}");
    stage_settle();

    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_hold(STORE_GUARD_ASK);
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    ask_for_the_status();
    answer_unsent(OUTCOME_EGRESS_DENIED);
    assert_true(strstr(stage_log(id), OUTCOME_EGRESS_DENIED));
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
