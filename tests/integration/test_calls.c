/*
 * Agents' calls through a whole engine. A new call is carried out, a repeat is not, and every waiting client is
 * answered. None of this depends on the saga being in memory or on the engine staying alive.
 */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

TEST(a_new_call_is_carried_out_and_a_repeat_is_answered_from_the_record)
{
    struct ask first, again;
    uint64_t calls = metric_value(METRIC_CALLS);

    call(&first, "run-1", "hello", "greet", "{\"name\":\"Ada\"}");
    assert_code(&first, ERR_OK);
    assert_false(first.request.call.going_on);
    assert_false(first.request.call.replayed);
    assert_member(first.request.answer, "state", "\"completed\"");
    assert_member(first.request.answer, "result", "{\"name\":\"Ada\"}");
    assert_member(first.request.answer, "run", "\"run-1\"");
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    call(&again, "run-1", "hello", "greet", "{\"name\":\"Ada\"}");
    assert_code(&again, ERR_OK);
    assert_true(again.request.call.replayed);
    assert_true(again.request.call.first_ms > 0);
    assert_true(slice_equal(first.request.call.key, again.request.call.key));
    assert_member(again.request.answer, "result", "{\"name\":\"Ada\"}");
    assert_member(first.request.answer, "duplicate", "false");
    assert_member(again.request.answer, "duplicate", "true");
    assert_member(again.request.answer, "duplicates_seen", "1");
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    ask_end(&first);
    ask_end(&again);
}

TEST(callers_at_once_share_one_call_and_one_new_run)
{
    enum { CALLERS = 32 };
    static struct ask asks[CALLERS];
    uint64_t calls = metric_value(METRIC_CALLS);
    int replayed = 0;

    for (int i = 0; i < CALLERS; i++) {
        begin_call(&asks[i], "run-race", "nap", "nap", "{}", 20000);
    }
    for (int i = 0; i < CALLERS; i++) {
        ask_expect(&asks[i], ERR_OK);
        assert_false(asks[i].request.call.going_on);
        replayed += asks[i].request.call.replayed;
        assert_true(slice_equal(asks[i].request.call.key, asks[0].request.call.key));
        if (i > 0) {
            ask_end(&asks[i]);
        }
    }
    ask_end(&asks[0]);
    assert_int_equal(replayed, CALLERS - 1);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = 'run-race'"), 1);
}

TEST(a_wait_that_is_over_ends_the_wait_and_not_the_operation)
{
    struct ask first, second, later;
    uint64_t calls = metric_value(METRIC_CALLS);

    begin_call(&first, "run-2", "nap", "slow", "{}", 50);
    ask_expect(&first, ERR_OK);
    assert_true(first.request.call.going_on);
    assert_member(first.request.answer, "state", "\"in_flight\"");
    begin_call(&second, "run-2", "nap", "slow", "{}", 50);
    ask_expect(&second, ERR_IN_FLIGHT);
    assert_true(second.request.call.retry_after_ms > 0);
    assert_member(second.request.call.operation, "state", "\"in_flight\"");
    call(&later, "run-2", "nap", "slow", "{}");
    assert_code(&later, ERR_OK);
    assert_true(later.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    ask_end(&first);
    ask_end(&second);
    ask_end(&later);
}

TEST(a_client_that_goes_away_takes_nothing_with_it)
{
    struct ask first, later;
    uint64_t calls = metric_value(METRIC_CALLS);

    begin_call(&first, "run-3", "nap", "slow", "{}", 20000);
    host_run_ms(&host, 200);
    engine_cancel(engine, &first.request);
    ask_expect(&first, ERR_TIMEOUT);
    call(&later, "run-3", "nap", "slow", "{}");
    assert_code(&later, ERR_OK);
    assert_true(later.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    ask_end(&first);
    ask_end(&later);
}

TEST(failed_and_unknown_calls_are_told_with_their_record)
{
    struct ask failed, lost, again;

    call(&failed, "run-4", "no", "refuse", "{}");
    assert_code(&failed, ERR_TOOL_FAILED);
    assert_member(failed.request.call.operation, "state", "\"failed\"");
    call(&lost, "run-4", "gone", "lose", "{}");
    assert_code(&lost, ERR_AWAITING);
    assert_true(lost.request.call.operation.ptr != NULL);
    call(&again, "run-4", "gone", "lose", "{}");
    assert_code(&again, ERR_AWAITING);
    assert_true(again.request.call.retry_after_ms > 0);
    ask_end(&failed);
    ask_end(&lost);
    ask_end(&again);
}

TEST(a_call_that_cannot_be_made_is_refused_before_anything_is_durable)
{
    struct ask ask;

    call(&ask, "run-5", "x", "nobody", "{}");
    ask_ends(&ask, ERR_NOT_FOUND);
    call(&ask, "run-5", "x", "greet", "{\"name\":7}");
    assert_code(&ask, ERR_INVALID);
    assert_int_equal(ask.request.faults.count, 1);
    assert_true(slice_is(ask.request.faults.items[0].pointer, "/args/name"));
    ask_end(&ask);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = 'run-5'"), 0);
}

TEST(calls_of_a_run_survive_the_engine)
{
    struct ask first, again;

    call(&first, "run-6", "hello", "greet", "{\"name\":\"Eve\"}");
    assert_code(&first, ERR_OK);
    engine_rig_end();
    engine_rig_begin();
    call(&again, "run-6", "hello", "greet", "{\"name\":\"Eve\"}");
    assert_code(&again, ERR_OK);
    assert_true(again.request.call.replayed);
    assert_true(slice_equal(first.request.call.key, again.request.call.key));
    ask_end(&first);
    ask_end(&again);
}

static bool is_at_rest(void *run)
{
    return host_number(&host, "select count(*) from sagad.saga where business_id = '%s' and ended_at is not null",
                       (const char *)run) == 1;
}

TEST(a_run_that_rests_is_read_back_for_the_next_call)
{
    static char run[] = "run-7";
    struct ask ask;

    call(&ask, run, "hello", "greet", "{\"name\":\"Bob\"}");
    ask_ends(&ask, ERR_OK);
    engine_rig_end();
    ahead_ms += 61000;
    engine_rig_begin();
    host_run_until(&host, is_at_rest, run);
    /* Two clients repeat the call at once. There is one load, no needless wake-up, and never another call. */
    struct ask one, two;
    uint64_t calls = metric_value(METRIC_CALLS);

    prepare_call(&one, run, "hello", "greet", "{\"name\":\"Bob\"}", 20000);
    prepare_call(&two, run, "hello", "greet", "{\"name\":\"Bob\"}", 20000);
    one.request.in.call.conversation_turn = two.request.in.call.conversation_turn =
        SLICE("2"); /* otherwise it would be the same call three times */
    engine_call(engine, &one.request);
    engine_call(engine, &two.request);
    ask_wait(&one);
    ask_wait(&two);
    assert_code(&one, ERR_OK);
    assert_code(&two, ERR_OK);
    assert_true(one.request.call.replayed && two.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 0);
    ask_end(&one);
    ask_end(&two);
    /* A new call wakes the saga. The saga is found after a restart, although it is old. */
    begin_call(&one, run, "long", "slow", "{}", 100);
    ask_expect(&one, ERR_OK);
    assert_true(one.request.call.going_on);
    assert_int_equal(host_number(&host, "select count(*) from sagad.awake"), 1);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.saga where business_id = '%s' and ended_at is null", run), 1);
    engine_rig_end();
    engine_rig_begin();
    call(&two, run, "long", "slow", "{}");
    assert_code(&two, ERR_OK);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = '%s'", run), 1);
    ask_end(&one);
    ask_end(&two);
}

TEST(a_call_that_a_guard_refuses_says_when_to_come_back_and_sends_nothing)
{
    struct ask ask;
    uint64_t calls = metric_value(METRIC_CALLS);

    call(&ask, "run-rare", "one", "rare", "{}");
    ask_ends(&ask, ERR_OK);
    call(&ask, "run-rare", "two", "rare", "{\"n\":2}");
    assert_code(&ask, ERR_RATE);
    assert_in_range(ask.request.call.retry_after_ms, 1, 31000);
    assert_member(ask.request.call.operation, "took_effect", "\"no\"");
    ask_end(&ask);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
}

TEST(the_class_follows_the_arguments)
{
    struct ask ask;

    call(&ask, "run-either", "x", "either", "{\"dry\":true}");
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "class", "\"read\"");
    ask_end(&ask);
    call(&ask, "run-either", "x", "either", "{\"dry\":false}");
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "class", "\"once\"");
    ask_end(&ask);
}

TEST(a_bypass_permits_one_more_execution_and_no_second)
{
    struct ask first, ask;
    uint64_t calls = metric_value(METRIC_CALLS);
    struct op_key key;

    call(&first, "run-8", "hello", "greet", "{\"name\":\"Mia\"}");
    assert_code(&first, ERR_OK);
    assert_true(uuid_parse(first.request.call.key, &key.uuid));
    ask_engine(
        &ask, engine_change,
        .change = {.verb = VERB_BYPASS, .input.bypass = {.key = key, .note = SLICE("the customer asked for it")}});
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "reason", "\"the customer asked for it\"");
    ask_end(&ask);
    call(&ask, "run-8", "hello", "greet", "{\"name\":\"Mia\"}");
    assert_code(&ask, ERR_OK);
    assert_false(ask.request.call.replayed);
    assert_false(slice_equal(ask.request.call.key, first.request.call.key));
    ask_end(&ask);
    prepare_call(&ask, "run-8", "hello", "greet", "{\"name\":\"Mia\"}", 20000);
    ask.request.in.call.conversation_turn =
        SLICE("2"); /* otherwise it would be the third same call with the same answer */
    engine_call(engine, &ask.request);
    ask_expect(&ask, ERR_OK);
    assert_true(ask.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 2);
    ask_end(&ask);
    ask_end(&first);
}

static enum err_code call_in_turn(const char *run, const char *turn, struct saga_id *saga)
{
    struct ask ask;

    prepare_call(&ask, run, "hello", "greet", "{\"name\":\"Loo\"}", 20000);
    ask.request.in.call.conversation_turn = slice_of(turn);
    engine_call(engine, &ask.request);
    ask_wait(&ask);
    if (ask.request.call.operation.ptr) {
        struct slice id = json_string(json_member(ask.request.call.operation, "saga"), &ask.arena);

        assert_true(uuid_parse(id, &saga->uuid));
    }
    ask_end(&ask);
    return ask.request.code;
}

TEST(a_second_loop_pauses_the_run_until_an_operator_resumes_it)
{
    struct saga_id id = {0};
    struct ask ask;

    for (int turn = 1; turn <= 2; turn++) {
        const char *name = turn == 1 ? "one" : "two";

        assert_int_equal(call_in_turn("run-loop", name, &id), ERR_OK);
        assert_int_equal(call_in_turn("run-loop", name, &id), ERR_OK);
        assert_int_equal(call_in_turn("run-loop", name, &id), ERR_LOOP);
    }
    assert_int_equal(call_in_turn("run-loop", "three", &id), ERR_PAUSED);
    ask_engine(&ask, engine_list_sagas, .sagas = {.status = SLICE("paused")});
    ask_wait(&ask);
    assert_int_equal(json_count(ask.request.answer), 1);
    ask_end(&ask);
    engine_rig_end();
    engine_rig_begin();
    assert_int_equal(call_in_turn("run-loop", "three", &id), ERR_PAUSED);
    ask_change(&ask, VERB_RESUME, id, .input.resume.note = SLICE("go on"));
    ask_ends(&ask, ERR_OK);
    assert_int_equal(call_in_turn("run-loop", "three", &id), ERR_OK);
}

TEST(runs_are_listed_only_to_who_asks_for_them)
{
    struct ask ask;

    call(&ask, "run-9", "hello", "greet", "{\"name\":\"Zoe\"}");
    ask_end(&ask);
    ask_engine(&ask, engine_list_sagas, .sagas = {.limit = 500});
    ask_expect(&ask, ERR_OK);
    assert_null(memmem(ask.request.answer.ptr, ask.request.answer.len, "~run", 4));
    ask_end(&ask);
    ask_engine(&ask, engine_list_sagas, .sagas = {.saga = SLICE("~run"), .business_id = SLICE("run-9")});
    ask_wait(&ask);
    assert_int_equal(json_count(ask.request.answer), 1);
    ask_end(&ask);
    ask_engine(&ask, engine_list_operations, .operations = {.run = SLICE("run-9")});
    ask_expect(&ask, ERR_OK);
    assert_int_equal(json_count(ask.request.answer), 1);
    ask_end(&ask);
}

TEST(figures_of_tools_say_what_was_new_and_what_was_not)
{
    struct buffer text;
    struct ask ask;

    buffer_init(&text, 1 << 20);
    engine_write_tool_metrics(engine, SLICE_NONE, &text);
    assert_non_null(strstr(buffer_c(&text), "sagad_tool_operations_total{namespace=\"default\",tool=\"greet\"} "));
    assert_non_null(strstr(buffer_c(&text),
                           "sagad_tool_duplicates_total{namespace=\"default\",tool=\"greet\",decision=\"replayed\"} "));
    assert_non_null(strstr(buffer_c(&text), "# TYPE sagad_tool_unknown_open gauge"));
    buffer_fini(&text);
    ask_engine(&ask, engine_get_stats);
    ask_expect(&ask, ERR_OK);
    assert_true(json_count(json_member(ask.request.answer, "tools")) > 0);
    ask_end(&ask);
}

int main(void)
{
    jq_prepare(); /* while this process is small */
    return tests_run(engine_rig_setup, engine_rig_teardown);
}
