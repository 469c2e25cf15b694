/* Calls, decisions and definitions whose turn, read or write does not come to what it should: what each of them is told
 * (call.c, change.c, define.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "tests/lib/run_trial.h"

#define WHO "\"namespace\":\"n\",\"actor\":\"somebody\""

static const char definitions[] =
    "{\"tools\":[{\"name\":\"undo\",\"builtin\":{\"do\":\"act\"},\"effect\":\"idempotent\"},"
    "{\"name\":\"pay\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"},\"compensate\":{"
    "\"tool\":\"undo\"},"
    "\"timeout\":\"1h\"},"
    "{\"name\":\"strict\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"},\"compensate\":"
    "{\"tool\":\"undo\"},"
    "\"on_duplicate\":\"refuse\"}],"
    "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"approve\":{}},{\"id\":\"b\",\"call\":\"pay\"}]}]}";

static void begin(void)
{
    trial_begin(NULL, UINT64_MAX, definitions);
}

static void ask_call_of(struct trial_request *asked, const char *tool, const char *run, int64_t wait_ms)
{
    trial_request_init(asked);
    asked->request.in.call.run = slice_of(run);
    asked->request.in.call.tool = slice_of(tool);
    asked->request.in.call.args = SLICE("{}");
    asked->request.in.call.wait_ms = wait_ms;
    engine_call(trial.engine, &asked->request);
    trial_run(0);
}

static void ask_call(struct trial_request *asked, const char *run, int64_t wait_ms)
{
    ask_call_of(asked, "pay", run, wait_ms);
}

/* --- the first call of a run --- */

/* Two began it at the same time, in two engines, and the other one was first: the call goes to the
 * run that there is. */
static void a_run_that_has_begun_elsewhere_takes_the_call_that_would_have_begun_it(void **state)
{
    struct trial_request asked;

    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial_hold(ASKED_APPEND);
    ask_call(&asked, "r", 60000);
    assert_int_equal(trial_held(ASKED_APPEND), 1);
    trial_fail(ASKED_APPEND, ERR_CONFLICT);
    trial_release(ASKED_APPEND);
    trial_run(100);
    trial_settle(OUTCOME_COMPLETED, NULL, "{}");
    trial_release(ASKED_CALL);
    trial_run(100);
    assert_true(asked.done);
    assert_int_equal(asked.request.code, ERR_OK);
    trial_request_fini(&asked);
    trial_end();
}

/* The owner was superseded, twice, or there is no time left: whoever asked is told to come again, and nothing has
 * begun. */
static void a_call_whose_owner_was_superseded_again_is_told_to_come_again(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct trial_request asked;

        begin();
        trial_hold(ASKED_APPEND);
        ask_call(&asked, "r", waits ? 60000 : 0);
        trial_fail(ASKED_APPEND, ERR_FENCED);
        trial_run(100);
        for (int i = 0; i < 5 && trial_held(ASKED_APPEND) > 0; i++) {
            trial_fail(ASKED_APPEND, ERR_FENCED);
            trial_run(100);
        }
        trial_release(ASKED_APPEND);
        trial_run(200000);
        assert_true(asked.done);
        assert_true(err_retryable(asked.request.code));
        assert_int_equal(trial.asked[ASKED_CALL], 0);
        trial_request_fini(&asked);
        trial_end();
    }
}

/* A turn that cannot be written is no call: its caller hears why, and may repeat it. */
static void a_call_that_could_not_be_written_is_refused_with_the_reason(void **state)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_LOST_COMMIT, ERR_TOO_LARGE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct trial_request asked;

        begin();
        trial_hold(ASKED_APPEND);
        ask_call(&asked, "r", 60000);
        trial_fail(ASKED_APPEND, codes[i]);
        trial_run(100);
        trial_release(ASKED_APPEND);
        assert_true(asked.done);
        assert_int_equal(asked.request.code, codes[i]);
        assert_int_equal(asked.request.call.retry_after_ms > 0, err_retryable(codes[i]));
        assert_int_equal(trial.asked[ASKED_CALL], 0);
        trial_request_fini(&asked);
        trial_end();
    }
}

/* The refusal is in the log, and the shard was lost before this engine heard so: it is a refusal all the same. */
static void a_refusal_that_is_durable_holds_also_where_its_shard_was_lost(void **state)
{
    struct trial_request first, again;

    (void)state;
    begin();
    ask_call_of(&first, "strict", "r", 60000);
    trial_run(1000);
    assert_true(first.done);
    assert_int_equal(first.request.code, ERR_OK);
    trial_hold(ASKED_APPEND);
    ask_call_of(&again, "strict", "r", 60000);
    assert_int_equal(trial_held(ASKED_APPEND), 1);
    trial_shard_to(run_shard(SLICE("n"), SLICE("r")), 2);
    trial_let(ASKED_APPEND);
    trial_run(100);
    trial_release(ASKED_APPEND);
    assert_true(again.done);
    assert_int_equal(again.request.code, ERR_DUPLICATE);
    assert_int_equal(trial.asked[ASKED_CALL], 1);
    trial_request_fini(&first);
    trial_request_fini(&again);
    trial_end();
}

/* --- through the inbox --- */

#define CALL "{" WHO ",\"run\":\"r\",\"tool\":\"pay\",\"args\":{},\"wait_ms\":10000}"

/* Nothing of it is taken: the row stays for whoever can. */
static void a_call_of_the_inbox_waits_while_the_database_is_away(void **state)
{
    uint32_t shard = run_shard(SLICE("n"), SLICE("r"));

    (void)state;
    begin();
    trial_database(false);
    (void)trial_deliver("call", shard, (struct saga_id){0}, CALL);
    trial_run(1000);
    assert_int_equal(trial_rows(), 1);
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    trial_database(true);
    trial_deliver_again();
    trial_run(1000);
    assert_int_equal(trial.asked[ASKED_CALL], 1);
    trial_end();
}

/* Its turn is fenced: that owner does nothing more about it. */
static void a_call_of_the_inbox_whose_owner_was_superseded_is_left_for_the_next(void **state)
{
    uint32_t shard = run_shard(SLICE("n"), SLICE("r"));

    (void)state;
    begin();
    trial_hold(ASKED_APPEND);
    (void)trial_deliver("call", shard, (struct saga_id){0}, CALL);
    trial_run(100);
    assert_int_equal(trial_held(ASKED_APPEND), 1);
    trial_fail(ASKED_APPEND, ERR_FENCED);
    trial_run(100);
    trial_release(ASKED_APPEND);
    assert_int_equal(trial_rows(), 1);
    assert_int_equal(trial.asked[ASKED_CALL], 0);
    trial_end();
}

/* --- decisions --- */

static void ask_decision(struct trial_request *asked, uint64_t number)
{
    trial_request_init(asked);
    asked->request.in.change.verb = VERB_DECIDE;
    asked->request.in.change.input.decision.approval = number;
    asked->request.in.change.input.decision.approve = true;
    asked->request.in.change.input.decision.role = ROLE_ADMIN;
    engine_change(trial.engine, &asked->request);
    trial_run(0);
}

static void a_decision_that_cannot_be_looked_up_says_why(void **state)
{
    static const struct {
        enum err_code read, told;
    } cases[] = {{ERR_STORE, ERR_STORE}, {ERR_NOT_FOUND, ERR_NOT_FOUND}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trial_request asked;

        begin();
        trial_hold(ASKED_QUESTIONS);
        ask_decision(&asked, 64);
        trial_fail(ASKED_QUESTIONS, cases[i].read);
        trial_run(100);
        trial_release(ASKED_QUESTIONS);
        assert_true(asked.done);
        assert_int_equal(asked.request.code, cases[i].told);
        trial_request_fini(&asked);
        trial_end();
    }
}

static void approvals_that_cannot_be_read_say_why(void **state)
{
    static const char *const cursors[] = {"x", "0", "-3"};
    struct trial_request asked;

    (void)state;
    begin();
    trial_hold(ASKED_QUESTIONS);
    trial_request_init(&asked);
    asked.request.in.approvals.number = 64;
    engine_get_approvals(trial.engine, &asked.request);
    trial_run(0);
    trial_fail(ASKED_QUESTIONS, ERR_STORE);
    trial_run(100);
    assert_true(asked.done);
    assert_int_equal(asked.request.code, ERR_STORE);
    trial_request_fini(&asked);
    for (size_t i = 0; i < COUNT_OF(cursors); i++) {
        trial_request_init(&asked);
        asked.request.in.approvals.cursor = slice_of(cursors[i]);
        engine_get_approvals(trial.engine, &asked.request);
        trial_run(100);
        assert_true(asked.done);
        assert_int_equal(asked.request.code, ERR_MALFORMED);
        trial_request_fini(&asked);
    }
    trial_release(ASKED_QUESTIONS);
    trial_end();
}

static void a_decision_of_the_inbox_waits_while_the_database_is_away(void **state)
{
    (void)state;
    begin();
    trial_database(false);
    (void)trial_deliver("decide", 0, (struct saga_id){0},
                        "{" WHO ",\"approval\":64,\"approve\":true,\"role\":\"admin\"}");
    trial_run(1000);
    assert_int_equal(trial_rows(), 1);
    trial_database(true);
    trial_deliver_again();
    trial_run(1000);
    assert_int_equal(trial_rows(), 0); /* there is no such approval, and that is the answer */
    trial_end();
}

static void nobody_decides_or_lists_while_the_database_is_away(void **state)
{
    struct trial_request asked;

    (void)state;
    begin();
    trial_database(false);
    ask_decision(&asked, 64);
    assert_true(asked.done);
    assert_int_equal(asked.request.code, ERR_STORE);
    trial_request_fini(&asked);
    trial_request_init(&asked);
    engine_get_approvals(trial.engine, &asked.request);
    trial_run(0);
    assert_true(asked.done);
    assert_int_equal(asked.request.code, ERR_STORE);
    trial_request_fini(&asked);
    trial_database(true);
    trial_end();
}

/* --- definitions --- */

static void definitions_that_could_not_be_written_are_not_known(void **state)
{
    static const char document[] = "{\"tools\":[{\"name\":\"new\",\"builtin\":{\"do\":\"act\"},\"effect\":\"read\"}]}";
    struct trial_request asked;
    struct err err = {0};

    (void)state;
    begin();
    trial_hold(ASKED_PUT_DEFINITIONS);
    trial_request_init(&asked);
    asked.request.in.define.document = slice_of(document);
    engine_define(trial.engine, &asked.request);
    trial_run(100);
    trial_fail(ASKED_PUT_DEFINITIONS, ERR_STORE);
    trial_run(100);
    trial_release(ASKED_PUT_DEFINITIONS);
    assert_true(asked.done);
    assert_int_equal(asked.request.code, ERR_STORE);
    assert_null(definitions_tool(trial.engine->definitions, SLICE("n"), SLICE("new"), 0, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    trial_request_fini(&asked);
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_has_begun_elsewhere_takes_the_call_that_would_have_begun_it),
        cmocka_unit_test(a_call_whose_owner_was_superseded_again_is_told_to_come_again),
        cmocka_unit_test(a_call_that_could_not_be_written_is_refused_with_the_reason),
        cmocka_unit_test(a_refusal_that_is_durable_holds_also_where_its_shard_was_lost),
        cmocka_unit_test(a_call_of_the_inbox_waits_while_the_database_is_away),
        cmocka_unit_test(a_call_of_the_inbox_whose_owner_was_superseded_is_left_for_the_next),
        cmocka_unit_test(a_decision_that_cannot_be_looked_up_says_why),
        cmocka_unit_test(approvals_that_cannot_be_read_say_why),
        cmocka_unit_test(a_decision_of_the_inbox_waits_while_the_database_is_away),
        cmocka_unit_test(nobody_decides_or_lists_while_the_database_is_away),
        cmocka_unit_test(definitions_that_could_not_be_written_are_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
