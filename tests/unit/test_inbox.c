/* Inputs that reached another engine, carried out by the owner of their shard: what becomes of the row, and what is
 * answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/saga/summon.h"
#include "run/shard/shard.h"
#include "tests/lib/run_trial.h"

#define WHO "\"namespace\":\"n\",\"actor\":\"a\""

static const char definitions[] =
    "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"},"
    "\"terminal\":true,\"timeout\":\"1h\"},"
    "{\"name\":\"look\",\"builtin\":{\"do\":\"act\"},\"effect\":\"read\",\"timeout\":\"1h\"}],"
    "\"sagas\":[{\"name\":\"s\",\"input\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}},"
    "\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]},"
    "{\"name\":\"free\",\"steps\":[{\"id\":\"a\",\"call\":\"look\",\"with\":{}}]}]}";

static void begin(void)
{
    trial_begin(NULL, UINT64_MAX, definitions);
}

static const char *answered(void)
{
    static char code[64];
    struct slice name = json_string(json_member(trial.answer, "code"), NULL);

    (void)snprintf(code, sizeof(code), "%.*s", SLICE_ARG(name));
    return code;
}

static bool log_has(struct saga_id saga, const char *text)
{
    return strstr(trial_log_text(saga), text) != NULL;
}

static struct saga_id fresh(void)
{
    return saga_id_new(1700000000000, 9);
}

static void deliver(const char *kind, struct saga_id saga, const char *payload)
{
    (void)trial_deliver(kind, 9, saga, payload);
}

/* --- rows that mean nothing --- */

static void a_row_that_makes_no_sense_is_dropped(void **state)
{
    static const struct {
        const char *kind, *payload;
    } cases[] = {
        {"start", "{"},
        {"dance", "{" WHO "}"},
        {"resolve", "{" WHO ",\"escalation\":1,\"action\":\"dance\"}"},
        {"settled", "{" WHO ",\"step\":-1,\"attempt\":1,\"outcome\":\"completed\"}"},
        {"settled", "{" WHO ",\"step\":4294967295,\"attempt\":1,\"outcome\":\"completed\"}"},
        {"settled", "{" WHO ",\"step\":0,\"attempt\":0,\"outcome\":\"completed\"}"},
        {"settled", "{" WHO ",\"step\":0,\"attempt\":1,\"outcome\":\"dance\"}"},
        {"settled", "{" WHO ",\"step\":0,\"attempt\":1,\"outcome\":\"absent\"}"},
    };

    (void)state;
    begin();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        deliver(cases[i].kind, fresh(), cases[i].payload);
        assert_int_equal(trial.dropped, i + 1);
        assert_int_equal(trial_rows(), 0);
        assert_null(trial.answer.ptr);
    }
    trial_end();
}

static void a_row_of_a_shard_that_is_not_ours_is_left_alone(void **state)
{
    (void)state;
    begin();
    trial_shard_to(9, 2);
    deliver("pause", fresh(), "{" WHO "}");
    (void)trial_deliver("pause", 999, fresh(), "{" WHO "}");
    assert_int_equal(trial_rows(), 2);
    assert_null(trial.answer.ptr);
    trial_drain(1000); /* and an engine that leaves takes none up */
    trial_deliver_again();
    assert_int_equal(trial_rows(), 2);
    trial_end();
}

static void a_row_that_comes_again_while_it_is_carried_out_is_carried_out_once(void **state)
{
    (void)state;
    begin();
    struct saga_id id = fresh();

    trial_hold(ASKED_CALL);
    trial_hold(ASKED_APPEND);
    deliver("start", id, "{" WHO ",\"saga\":\"s\",\"input\":{}}");
    trial_deliver_again();
    assert_int_equal(trial_held(ASKED_APPEND), 1);
    trial_release(ASKED_APPEND);
    assert_int_equal(trial_rows(), 0);
    assert_string_equal(answered(), "ok");
    deliver("start", id, "{" WHO ",\"saga\":\"s\",\"input\":{}}"); /* put twice, as its answer was lost */
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

/* --- starts --- */

static void a_start_that_is_there_is_found_and_one_with_other_input_refused(void **state)
{
    static const struct {
        const char *payload, *code;
    } cases[] = {
        {"{" WHO ",\"saga\":\"s\",\"business_id\":\"b\",\"input\":{\"n\":1}}", "ok"},
        {"{" WHO ",\"saga\":\"s\",\"business_id\":\"b\",\"input\":{\"n\":1}}", "ok"},
        {"{" WHO ",\"saga\":\"s\",\"business_id\":\"b\",\"input\":{\"n\":2}}", "other-input"},
    };

    (void)state;
    begin();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        deliver("start", saga_id_new(1700000000000 + (int64_t)i, 9), cases[i].payload);
        assert_string_equal(answered(), cases[i].code);
        assert_int_equal(trial_rows(), 0);
    }
    trial_end();
}

static void a_start_of_what_was_registered_elsewhere_waits_for_the_news(void **state)
{
    (void)state;
    begin();
    uint32_t loads = trial.asked[ASKED_DEFINITIONS];

    deliver("start", fresh(), "{" WHO ",\"saga\":\"new\",\"input\":{}}");
    assert_int_equal(trial_rows(), 1);
    assert_null(trial.answer.ptr);
    assert_int_equal(trial.asked[ASKED_DEFINITIONS], loads + 1);
    trial_end();
}

static void a_start_whose_definition_does_not_compile_is_refused(void **state)
{
    (void)state;
    begin();
    trial_put_definition("bad", "{\"name\":\"bad\",\"steps\":[{\"id\":\"a\",\"call\":\"no_such_tool\",\"with\":{}}]}");
    deliver("start", fresh(), "{" WHO ",\"saga\":\"bad\",\"input\":{}}");
    trial_deliver_again();
    assert_int_equal(trial_rows(), 0);
    assert_non_null(trial.answer.ptr);
    assert_string_not_equal(answered(), "ok");
    trial_end();
}

static void a_start_is_not_taken_in_where_there_is_too_much_work(void **state)
{
    (void)state;
    trial_begin(&(struct engine_options){.sagas_max = 1}, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    trial_start("s", "{}");
    deliver("start", fresh(), "{" WHO ",\"saga\":\"s\",\"input\":{}}");
    assert_string_equal(answered(), "busy");
    assert_int_equal(trial_rows(), 0);
    /* What a saga asks for with its end was promised to it. */
    struct saga_id id = saga_id_new(1700000000001, 9);

    deliver("start", id, "{" WHO ",\"saga\":\"s\",\"input\":{},\"follows\":\"x\"}");
    assert_true(log_has(id, "saga.started"));
    trial_end();
}

/* --- followers: nobody waits for an answer --- */

static void a_follower_that_can_never_be_started_is_told_of_and_dropped(void **state)
{
    (void)state;
    begin();
    deliver("start", fresh(),
            "{" WHO ",\"saga\":\"s\",\"input\":{\"n\":\"one\"},\"follows\":\"x\"}"); /* does not fit the schema */
    assert_int_equal(trial_rows(), 0);
    deliver("start", fresh(), "{" WHO ",\"saga\":\"never\",\"input\":{},\"follows\":\"x\"}");
    assert_int_equal(trial_rows(), 1); /* there may be news of it */
    trial_run(10000);
    trial_deliver_again();
    assert_int_equal(trial_rows(), 0);
    assert_null(trial.answer.ptr);
    trial_end();
}

static void a_follower_whose_clock_is_far_ahead_is_old_too(void **state)
{
    (void)state;
    begin();
    trial.wall_offset_ms = 3600000;
    struct uuid unused =
        trial_deliver("start", 63, fresh(), "{" WHO ",\"saga\":\"never\",\"input\":{},\"follows\":\"x\"}");

    (void)unused;
    assert_int_equal(trial_rows(), 1);
    trial.wall_offset_ms = 0;
    trial_deliver_again();
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

static void a_follower_that_is_there_already_is_found(void **state)
{
    (void)state;
    begin();
    struct saga_id first = fresh(), second = saga_id_new(1700000000001, 9);

    deliver("start", first, "{" WHO ",\"saga\":\"free\",\"business_id\":\"b\",\"input\":{},\"follows\":\"x\"}");
    assert_true(log_has(first, "saga.started"));
    deliver("start", second, "{" WHO ",\"saga\":\"free\",\"business_id\":\"b\",\"input\":{},\"follows\":\"x\"}");
    assert_int_equal(trial_rows(), 0);
    assert_string_equal(trial_log_text(second), "");
    trial_end();
}

static void a_follower_that_the_database_refuses_is_told_of_and_one_whose_shard_goes_stays(void **state)
{
    static const struct {
        enum err_code code;
        size_t rows;
    } cases[] = {{ERR_CORRUPT, 0}, {ERR_FENCED, 1}, {ERR_DECIDED, 1 /* removed by whoever consumed it */}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        trial_hold(ASKED_APPEND);
        deliver("start", fresh(), "{" WHO ",\"saga\":\"free\",\"input\":{},\"follows\":\"x\"}");
        trial_fail(ASKED_APPEND, cases[i].code);
        assert_int_equal(trial_rows(), cases[i].rows);
        trial_end();
    }
}

/* --- answers --- */

static void what_was_consumed_before_is_not_answered_again(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("s", "{}");

    trial_hold(ASKED_APPEND);
    (void)trial_deliver("pause", saga_id_shard(id), id, "{" WHO "}");
    trial_fail(ASKED_APPEND, ERR_DECIDED); /* by whoever owned the shard then, who has answered */
    assert_null(trial.answer.ptr);
    trial_end();
}

static void what_cannot_be_done_now_is_left_for_whoever_can(void **state)
{
    static const enum err_code codes[] = {ERR_STOPPING, ERR_FENCED, ERR_STORE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        begin();
        trial_hold(ASKED_CALL);
        struct saga_id id = trial_start("s", "{}");

        trial_hold(ASKED_APPEND);
        (void)trial_deliver("pause", saga_id_shard(id), id, "{" WHO "}");
        trial_fail(ASKED_APPEND, codes[i]);
        assert_null(trial.answer.ptr);
        assert_int_equal(trial_rows(), 1);
        trial_end();
    }
}

static void a_refusal_of_an_engine_that_may_have_lost_the_shard_is_not_told(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin();
        trial_hold(ASKED_QUESTIONS);
        deliver("resolve", fresh(), "{" WHO ",\"escalation\":9,\"action\":\"retry\"}"); /* there is none */
        if (i == 0) {
            trial.may_send = false;
        } else if (i == 1) {
            trial_shard_to(9, 2);
        } else {
            trial_shard_to(9, 2);
            trial_shard_comes(9, 3);
            trial_run(0);
        }
        trial_let(ASKED_QUESTIONS);
        assert_null(trial.answer.ptr);
        assert_int_equal(trial_rows(), 1);
        trial_end();
    }
}

static void a_refusal_of_an_engine_that_has_left_is_not_told(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_QUESTIONS);
    deliver("resolve", fresh(), "{" WHO ",\"escalation\":9,\"action\":\"retry\"}");
    trial_drain(0);
    trial_run(10);
    trial_let(ASKED_QUESTIONS);
    assert_null(trial.answer.ptr);
    assert_int_equal(trial_rows(), 1);
    trial_end();
}

static void an_answer_that_is_not_written_is_given_again_for_the_row_that_is_left(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_ANSWER_PUT);
    deliver("pause", fresh(), "{" WHO "}");
    trial_fail(ASKED_ANSWER_PUT, ERR_STORE);
    assert_int_equal(trial_rows(), 1);
    trial_deliver_again();
    trial_let(ASKED_ANSWER_PUT);
    assert_string_equal(answered(), "not-found");
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

static void a_refusal_while_its_shard_is_given_away_is_still_ours(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial_hold(ASKED_QUESTIONS);
    for (uint32_t i = 0; i < 2 * SHARD_COUNT; i++) {
        trial_start("s", "{}"); /* in each shard something is under way */
    }
    deliver("resolve", fresh(), "{" WHO ",\"escalation\":9,\"action\":\"retry\"}");
    trial_surplus(SHARD_COUNT);
    trial_run(100);
    assert_int_equal(trial.engine->shards[9].state, SHARD_GIVING);
    trial_let(ASKED_QUESTIONS);
    assert_string_equal(answered(), "not-found");
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

/* A program that can read the saga will find the input. */
static void an_input_for_a_saga_that_cannot_be_read_stays(void **state)
{
    static const struct {
        const char *kind, *payload;
    } cases[] = {
        {"pause", "{" WHO "}"},
        {"settled", "{" WHO ",\"step\":0,\"direction\":\"do\",\"attempt\":1,\"outcome\":\"completed\"}"},
        {"locked", "{\"namespace\":\"n\",\"key\":\"k\"}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        trial_log(fresh(), "n", 1, "[]");
        struct saga_id id = saga_id_new(5, 9);

        trial_log(id, "n", 1, "[]");
        deliver(cases[i].kind, id, cases[i].payload);
        assert_int_equal(trial_rows(), 1);
        uint32_t reads = trial.asked[ASKED_READ_SAGA];

        trial_deliver_again(); /* it is held */
        assert_int_equal(trial.asked[ASKED_READ_SAGA], reads);
        trial_run(61000);
        trial_deliver_again(); /* and tried again after a while */
        assert_int_equal(trial.asked[ASKED_READ_SAGA], reads + 1);
        assert_int_equal(trial_rows(), 1);
        trial_end();
    }
}

static void the_answer_about_it_is_given_again_where_it_was_not_written(void **state)
{
    (void)state;
    begin();
    struct saga_id id = saga_id_new(5, 9);

    trial_log(id, "n", 1, "[]");
    trial_hold(ASKED_ANSWER_PUT);
    deliver("pause", id, "{" WHO "}");
    trial_fail(ASKED_ANSWER_PUT, ERR_STORE);
    trial_deliver_again(); /* it is not held */
    trial_let(ASKED_ANSWER_PUT);
    assert_string_equal(answered(), "corrupt");
    assert_int_equal(trial_rows(), 1);
    trial_end();
}

/* --- evidence and locks: nobody waits for an answer --- */

static void evidence_that_nobody_can_take_now_stays(void **state)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_FENCED};
    static const char *const kinds[] = {"settled", "locked"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            begin();
            struct saga_id id = saga_id_new(5, 9);

            trial_hold(ASKED_READ_SAGA);
            deliver(kinds[k], id,
                    "{" WHO
                    ",\"key\":\"k\",\"step\":0,\"direction\":\"undo\",\"attempt\":1,\"outcome\":\"completed\"}");
            if (codes[i] == ERR_FENCED) {
                trial_shard_to(9, 2);
                trial_let(ASKED_READ_SAGA);
            } else {
                trial_fail(ASKED_READ_SAGA, ERR_STORE);
            }
            assert_int_equal(trial_rows(), 1);
            trial_end();
        }
    }
}

static void evidence_stays_while_memory_is_full(void **state)
{
    static const char *const kinds[] = {"settled", "locked"};

    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        trial_begin(&(struct engine_options){.sagas_max = 1}, UINT64_MAX, definitions);
        trial_hold(ASKED_READ_SAGA);
        for (int i = 0; i < 70; i++) {
            deliver(kinds[k], saga_id_new(5, 9),
                    "{" WHO ",\"key\":\"k\",\"step\":0,\"attempt\":1,\"outcome\":\"completed\"}");
        }
        assert_int_equal(trial_rows(), 70);
        trial_release(ASKED_READ_SAGA); /* of those that were looked for there is no saga: they mean nothing */
        assert_in_range(trial_rows(), 1, 10);
        trial_end();
    }
}

static void evidence_that_changes_nothing_is_dropped(void **state)
{
    (void)state;
    begin();
    struct saga_id id = trial_start("s", "{}"); /* it has ended */

    (void)trial_deliver("settled", saga_id_shard(id), id,
                        "{" WHO ",\"step\":0,\"direction\":\"do\",\"attempt\":1,\"outcome\":\"completed\"}");
    assert_int_equal(trial_rows(), 0);
    deliver("locked", saga_id_new(5, 9), "{" WHO ",\"key\":\"k\"}"); /* there is no such saga */
    assert_int_equal(trial_rows(), 0);
    trial_hold(ASKED_CALL);
    id = trial_start("s", "{}"); /* its call is under way: an attempt that was never made says nothing */
    (void)trial_deliver("settled", saga_id_shard(id), id,
                        "{" WHO ",\"step\":0,\"direction\":\"do\",\"attempt\":7,\"outcome\":\"completed\"}");
    assert_int_equal(trial_rows(), 0);
    assert_false(log_has(id, "step.completed"));
    trial_end();
}

static void evidence_settles_what_is_unknown(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("s", "{}");

    (void)trial_deliver("settled", saga_id_shard(id), id,
                        "{" WHO
                        ",\"step\":0,\"direction\":\"do\",\"attempt\":1,\"outcome\":\"completed\",\"result\":{}}");
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

/* --- calls --- */

static void a_call_of_a_tool_that_was_registered_elsewhere_waits_for_the_news(void **state)
{
    static const char call[] = "{" WHO ",\"run\":\"r\",\"tool\":\"new\",\"args\":{},\"wait_ms\":10000}";

    (void)state;
    begin();
    deliver("call", (struct saga_id){0}, call);
    trial_run(300);
    assert_null(trial.answer.ptr);
    trial_run(10000); /* there is none */
    assert_string_equal(answered(), "not-found");
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

static void a_call_of_a_tool_that_does_not_compile_is_answered_at_once(void **state)
{
    (void)state;
    begin();
    trial_put_tool("bad", "{\"name\":\"bad\",\"builtin\":{\"do\":\"act\"},\"effect\":\"dance\"}");
    engine_reload_definitions(trial.engine);
    trial_run(0);
    deliver("call", (struct saga_id){0}, "{" WHO ",\"run\":\"r\",\"tool\":\"bad\",\"args\":{},\"wait_ms\":10000}");
    assert_non_null(trial.answer.ptr);
    assert_string_not_equal(answered(), "ok");
    assert_int_equal(trial_rows(), 0);
    trial_end();
}

static void a_call_that_waits_for_news_when_the_engine_ends_is_left_for_the_next(void **state)
{
    (void)state;
    begin();
    deliver("call", (struct saga_id){0}, "{" WHO ",\"run\":\"r\",\"tool\":\"new\",\"args\":{},\"wait_ms\":10000}");
    trial_drain(0);
    trial_run(1);
    assert_int_equal(trial_rows(), 1);
    assert_null(trial.answer.ptr);
    trial_end();
}

static void a_call_whose_shard_went_while_it_waited_is_left_to_the_next_owner(void **state)
{
    (void)state;
    begin();
    uint32_t shard = run_shard(SLICE("n"), SLICE("r"));

    (void)trial_deliver("call", shard, (struct saga_id){0},
                        "{" WHO ",\"run\":\"r\",\"tool\":\"new\",\"args\":{},\"wait_ms\":10000}");
    trial_put_tool("new", "{\"name\":\"new\",\"builtin\":{\"do\":\"act\"},\"effect\":\"read\",\"timeout\":\"1h\"}");
    trial_shard_to(shard, 2);
    trial_run(1000);
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    assert_int_equal(trial_rows(), 1);
    trial_end();
}

static void a_caller_whose_clock_is_ahead_waits_no_longer_than_it_wanted(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial.wall_offset_ms = 60000;
    (void)trial_deliver("pause", 63, fresh(), "{" WHO "}"); /* ids of later are made now */
    trial.wall_offset_ms = 0;
    (void)trial_deliver("call", run_shard(SLICE("n"), SLICE("r")), (struct saga_id){0},
                        "{" WHO ",\"run\":\"r\",\"tool\":\"look\",\"args\":{},\"wait_ms\":1000}");
    trial_run(900);
    assert_string_equal(answered(), "not-found"); /* of the pause */
    trial_run(200);
    assert_string_equal(answered(), "ok"); /* it goes on */
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_makes_no_sense_is_dropped),
        cmocka_unit_test(a_row_of_a_shard_that_is_not_ours_is_left_alone),
        cmocka_unit_test(a_row_that_comes_again_while_it_is_carried_out_is_carried_out_once),
        cmocka_unit_test(a_start_that_is_there_is_found_and_one_with_other_input_refused),
        cmocka_unit_test(a_start_of_what_was_registered_elsewhere_waits_for_the_news),
        cmocka_unit_test(a_start_whose_definition_does_not_compile_is_refused),
        cmocka_unit_test(a_start_is_not_taken_in_where_there_is_too_much_work),
        cmocka_unit_test(a_follower_that_can_never_be_started_is_told_of_and_dropped),
        cmocka_unit_test(a_follower_that_is_there_already_is_found),
        cmocka_unit_test(a_follower_that_the_database_refuses_is_told_of_and_one_whose_shard_goes_stays),
        cmocka_unit_test(what_was_consumed_before_is_not_answered_again),
        cmocka_unit_test(what_cannot_be_done_now_is_left_for_whoever_can),
        cmocka_unit_test(a_refusal_of_an_engine_that_may_have_lost_the_shard_is_not_told),
        cmocka_unit_test(a_refusal_of_an_engine_that_has_left_is_not_told),
        cmocka_unit_test(an_answer_that_is_not_written_is_given_again_for_the_row_that_is_left),
        cmocka_unit_test(a_refusal_while_its_shard_is_given_away_is_still_ours),
        cmocka_unit_test(an_input_for_a_saga_that_cannot_be_read_stays),
        cmocka_unit_test(the_answer_about_it_is_given_again_where_it_was_not_written),
        cmocka_unit_test(evidence_that_nobody_can_take_now_stays),
        cmocka_unit_test(evidence_stays_while_memory_is_full),
        cmocka_unit_test(evidence_that_changes_nothing_is_dropped),
        cmocka_unit_test(evidence_settles_what_is_unknown),
        cmocka_unit_test(a_call_of_a_tool_that_was_registered_elsewhere_waits_for_the_news),
        cmocka_unit_test(a_call_of_a_tool_that_does_not_compile_is_answered_at_once),
        cmocka_unit_test(a_call_that_waits_for_news_when_the_engine_ends_is_left_for_the_next),
        cmocka_unit_test(a_call_whose_shard_went_while_it_waited_is_left_to_the_next_owner),
        /* these move the clock that ids are made of: they come last */
        cmocka_unit_test(a_follower_whose_clock_is_far_ahead_is_old_too),
        cmocka_unit_test(a_caller_whose_clock_is_ahead_waits_no_longer_than_it_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
