/* Requests for shards of other engines: put into the inbox, answered by the owner, or found out otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/run_trial.h"

static const char definitions[] =
    "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"},"
    "\"terminal\":true,\"timeout\":\"1h\"},"
    "{\"name\":\"look\",\"builtin\":{\"do\":\"act\"},\"effect\":\"read\",\"timeout\":\"1h\"}],"
    "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]}]}";

static struct trial_request asked;

/* All shards are another engine's. */
static void begin(void)
{
    trial_begin(NULL, 0, definitions);
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        trial.epochs[i] = 5;
    }
}

static void new_owner(void)
{
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        trial.epochs[i]++;
    }
}

static void ask_pause(struct saga_id id)
{
    trial_request_init(&asked);
    asked.request.in.change.verb = VERB_PAUSE;
    asked.request.in.change.saga = id;
    engine_change(trial.engine, &asked.request);
    trial_run(0);
}

static void ask_start(const char *business_id)
{
    trial_ask_start(&asked, "s", business_id);
    trial_run(0);
}

static void ask_call(struct saga_id saga, const char *run)
{
    trial_request_init(&asked);
    asked.request.in.call.saga = saga;
    asked.request.in.call.run = run ? slice_of(run) : SLICE_NONE;
    asked.request.in.call.tool = SLICE("look");
    engine_call(trial.engine, &asked.request);
    trial_run(0);
}

static void end(enum err_code code)
{
    assert_true(asked.done);
    if (asked.request.code != code) {
        fail_msg("%s: %s", err_name(asked.request.code), asked.request.err.message);
    }
    trial_request_fini(&asked);
    trial_end();
}

static struct saga_id some_saga(void)
{
    return saga_id_new(5, 9);
}

/* --- put --- */

static void the_owner_s_answer_is_the_answer(void **state)
{
    (void)state;
    begin();
    ask_pause(some_saga());
    assert_true(slice_is(trial_last_put()->kind, "pause"));
    trial_run(100);
    assert_false(asked.done);
    trial_answer_last_put("{\"code\":\"ok\",\"answer\":{\"x\":1}}");
    assert_true(slice_is(asked.request.answer, "{\"x\":1}"));
    end(ERR_OK);
}

static void an_answer_that_comes_while_the_row_is_being_put_is_kept(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_INBOX_PUT);
    ask_pause(some_saga());
    trial_answer_put(trial_oldest(ASKED_INBOX_PUT), "{\"code\":\"ended\",\"message\":\"m\"}");
    assert_false(asked.done);
    trial_let(ASKED_INBOX_PUT);
    end(ERR_ENDED);
}

static void what_the_database_refuses_is_told(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_INBOX_PUT);
    ask_pause(some_saga());
    trial_fail(ASKED_INBOX_PUT, ERR_STORE);
    end(ERR_STORE);
}

static void an_owner_that_is_busy_is_left_alone_for_a_moment(void **state)
{
    struct trial_request second;

    (void)state;
    begin();
    ask_call((struct saga_id){0}, "r");
    trial_answer_last_put("{\"code\":\"busy\",\"message\":\"m\",\"call\":{\"retry_after_ms\":700}}");
    uint32_t puts = trial.asked[ASKED_INBOX_PUT];

    trial_ask_call(&second, (struct saga_id){0}, "r", "look", "{}");
    trial_run(0);
    assert_int_equal(second.request.code, ERR_BUSY);
    assert_true(second.request.call.retry_after_ms > 0);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], puts);
    trial_request_fini(&second);
    trial_run(1000);
    trial_ask_call(&second, (struct saga_id){0}, "r", "look", "{}");
    trial_run(0);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], puts + 1);
    engine_cancel(trial.engine, &second.request);
    trial_run(0);
    trial_answer_last_put(
        "{\"code\":\"busy\",\"message\":\"m\",\"call\":{\"retry_after_ms\":700}}"); /* nobody listens */
    trial_request_fini(&second);
    end(ERR_BUSY);
}

static void so_is_one_that_refuses_a_start(void **state)
{
    (void)state;
    begin();
    ask_start("b");
    trial_answer_last_put("{\"code\":\"busy\",\"message\":\"m\",\"call\":{\"retry_after_ms\":700}}");
    assert_true(trial.engine->shards[trial_last_put()->shard].busy_until_ms > 0);
    end(ERR_BUSY);
}

static void a_pause_that_is_refused_for_want_of_room_says_nothing_of_new_work(void **state)
{
    (void)state;
    begin();
    ask_pause(some_saga());
    trial_answer_last_put("{\"code\":\"busy\",\"message\":\"m\"}");
    assert_int_equal(trial.engine->shards[9].busy_until_ms, 0);
    end(ERR_BUSY);
}

/* --- nobody answers --- */

static void what_nobody_answers_in_time_may_be_asked_again(void **state)
{
    (void)state;
    begin();
    ask_pause(some_saga());
    trial_run(9000);
    assert_false(asked.done);
    trial_run(2000);
    end(ERR_BUSY);
}

static void who_has_gone_is_not_waited_for(void **state)
{
    (void)state;
    begin();
    ask_pause(some_saga());
    engine_cancel(trial.engine, &asked.request);
    trial_run(3000);
    assert_true(list_empty(&trial.engine->errands));
    end(ERR_TIMEOUT);
}

static void a_call_is_looked_for_in_its_log_when_its_time_is_over(void **state)
{
    char name[UUID_TEXT_BYTES];

    (void)state;
    for (int i = 0; i < 4; i++) {
        trial_begin(NULL, UINT64_MAX, definitions);
        trial_ask_call(&asked, (struct saga_id){0}, "r", "look", "{}");
        trial_run(0);
        assert_true(
            uuid_parse(json_string(json_member(asked.request.answer, "saga"), &asked.arena), &asked.request.saga.uuid));
        struct saga_id id = asked.request.saga;

        uuid_text(&id.uuid, name);
        trial_request_fini(&asked);
        for (uint32_t k = 0; k < SHARD_COUNT; k++) {
            trial_shard_to(k, 5);
        }
        ask_call(i == 3 ? id : (struct saga_id){0}, i == 1 ? "not begun" : "r");
        if (i == 2) {
            trial_hold(ASKED_READ_SAGA);
        }
        trial_run(11000);
        if (i == 2) {
            trial_fail(ASKED_READ_SAGA, ERR_STORE);
        }
        end(ERR_BUSY); /* that call, with its emission, is in no log */
    }
}

static void a_call_that_was_taken_up_is_answered_from_its_log(void **state)
{
    struct trial_request first;

    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_request_init(&first);
    first.request.in.call.run = SLICE("r");
    first.request.in.call.tool = SLICE("look");
    first.request.in.call.args = SLICE("{}");
    first.request.in.call.emission = SLICE("mine");
    first.request.in.call.wait_ms = 1000;
    engine_call(trial.engine, &first.request);
    trial_run(0);
    assert_int_equal(first.request.code, ERR_OK);
    trial_request_fini(&first);
    for (uint32_t k = 0; k < SHARD_COUNT; k++) {
        trial_shard_to(k, 5);
    }
    trial_request_init(&asked);
    asked.request.in.call.run = SLICE("r");
    asked.request.in.call.tool = SLICE("look");
    asked.request.in.call.args = SLICE("{}");
    asked.request.in.call.emission = SLICE("mine"); /* the same one */
    engine_call(trial.engine, &asked.request);
    trial_run(11000);
    assert_true(asked.request.answer.len > 0);
    end(ERR_OK);
}

static void a_log_that_cannot_be_read_then_says_nothing(void **state)
{
    (void)state;
    begin();
    trial_log(some_saga(), "n", 1, "[]");
    struct saga_id id = saga_id_new(6, 9);

    trial_log(id, "n", 1, "[]");
    ask_call(id, NULL);
    trial_run(11000);
    end(ERR_BUSY);
}

static void a_run_that_cannot_be_looked_for_then_is_not_known(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_FIND_SAGA);
    ask_call((struct saga_id){0}, "r");
    trial_run(11000);
    trial_fail(ASKED_FIND_SAGA, ERR_STORE);
    end(ERR_BUSY);
}

static void an_answer_that_comes_at_the_last_moment_counts(void **state)
{
    static const enum asked last_looks[] = {ASKED_READ_SAGA, ASKED_FIND_SAGA};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(last_looks); i++) {
        begin();
        trial_hold(last_looks[i]);
        ask_call(i == 0 ? some_saga() : (struct saga_id){0}, i == 0 ? NULL : "r");
        trial_run(11000);
        assert_int_equal(trial_held(last_looks[i]), 1);
        trial_answer_last_put("{\"code\":\"ok\",\"answer\":{\"x\":1}}");
        assert_false(asked.done);
        trial_let(last_looks[i]);
        end(ERR_OK);
    }
}

/* --- the shard changes hands --- */

static void what_the_last_owner_did_not_take_up_the_next_one_has_still_to_do(void **state)
{
    (void)state;
    begin();
    ask_pause(some_saga());
    new_owner();
    trial_run(3000);
    assert_int_equal(trial.asked[ASKED_FIND_INPUT], 1);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 1);
    trial_answer_last_put("{\"code\":\"ok\",\"answer\":{}}");
    end(ERR_OK);
}

static void a_look_that_fails_is_made_again(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_FIND_INPUT);
    ask_pause(some_saga());
    new_owner();
    trial_run(1100);
    trial_fail(ASKED_FIND_INPUT, ERR_STORE);
    trial_run(1100);
    assert_int_equal(trial_held(ASKED_FIND_INPUT), 1);
    trial_answer_last_put("{\"code\":\"ok\",\"answer\":{}}"); /* meanwhile */
    trial_let(ASKED_FIND_INPUT);
    end(ERR_OK);
    begin();
    trial_hold(ASKED_FIND_INPUT);
    ask_pause(some_saga());
    new_owner();
    trial_run(12000); /* its time is over when the database answers */
    assert_false(asked.done);
    trial_fail(ASKED_FIND_INPUT, ERR_STORE);
    end(ERR_BUSY);
}

/* Applied, most likely: the saga itself says so. */
static void a_word_that_was_consumed_is_not_said_twice(void **state)
{
    (void)state;
    begin();
    ask_pause(some_saga());
    trial_consume_last_put();
    new_owner();
    trial_run(3000);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 1);
    assert_int_equal(trial.asked[ASKED_READ_SAGA], 1);
    end(ERR_NOT_FOUND);
}

static void a_word_of_which_nobody_knows_whether_it_came_is_not_said_twice_either(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_INBOX_PUT);
    ask_pause(some_saga());
    trial_fail(ASKED_INBOX_PUT, ERR_LOST_COMMIT);
    trial_run(3000);
    end(ERR_LOST_COMMIT);
}

static void a_call_that_was_consumed_unanswered_is_put_again_and_not_for_ever(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 4; i++) {
        trial_row_of_next_put_vanishes();
        if (i == 0) {
            trial_ask_call(&asked, (struct saga_id){0}, "r", "look", "{}"); /* it waits for a minute */
        }
        new_owner();
        trial_run(i == 0 ? 500 : 2500);
    }
    for (int i = 0; i < 10 && !asked.done; i++) {
        trial_row_of_next_put_vanishes();
        new_owner();
        trial_run(2500);
    }
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 5);
    end(ERR_BUSY);
}

static void a_start_that_was_consumed_unanswered_is_looked_for_and_put_again(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        begin();
        trial_row_of_next_put_vanishes();
        ask_start("b");
        struct saga_id id = trial_last_put()->saga;

        if (i == 0 || i == 3) { /* it was started */
            trial_log(id, "n", 1, "[]");
        }
        new_owner();
        if (i == 3) {
            engine_cancel(trial.engine, &asked.request);
            trial_hold(ASKED_READ_SAGA);
        } else if (i == 2 || i == 4) {
            trial_hold(ASKED_READ_SAGA);
        }
        trial_run(3000);
        if (i == 2) {
            trial_fail(ASKED_READ_SAGA, ERR_STORE);
        } else if (i == 4) {
            trial_answer_last_put(
                "{\"code\":\"ok\",\"saga\":\"01890000-0000-7000-8000-000000000009\",\"created\":true}");
            trial_let(ASKED_READ_SAGA);
        } else if (i == 1) { /* it was not, and is put again */
            assert_int_equal(trial.asked[ASKED_INBOX_PUT], 2);
            trial_answer_last_put("{\"code\":\"ok\",\"created\":true}");
        }
        end(i == 2 ? ERR_BUSY : i == 3 ? ERR_TIMEOUT : ERR_OK);
    }
}

static void a_start_that_nobody_takes_up_is_looked_for_when_its_time_is_over(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin();
        ask_start("b");
        struct saga_id id = trial_last_put()->saga;

        trial_run(9500);
        if (i == 0) {
            trial_log(id, "n", 1, "[]");
        } else if (i == 2) {
            trial_hold(ASKED_READ_SAGA);
            trial_run(1000);
            engine_cancel(trial.engine, &asked.request);
            trial_log(id, "n", 1, "[]");
            trial_let(ASKED_READ_SAGA);
        }
        trial_run(1000);
        end(i == 0 ? ERR_OK : i == 1 ? ERR_BUSY : ERR_TIMEOUT);
    }
}

/* --- the engine leaves --- */

static void an_engine_that_leaves_tells_all_who_wait(void **state)
{
    static const enum asked kinds[] = {ASKED_INBOX_PUT, ASKED_FIND_INPUT, ASKED_READ_SAGA, ASKED_FIND_SAGA,
                                       ASKED_COUNT};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        begin();
        if (kinds[i] != ASKED_COUNT) {
            trial_hold(kinds[i]);
        }
        if (kinds[i] == ASKED_READ_SAGA || kinds[i] == ASKED_FIND_SAGA) {
            ask_call(kinds[i] == ASKED_READ_SAGA ? some_saga() : (struct saga_id){0},
                     kinds[i] == ASKED_READ_SAGA ? NULL : "r");
            trial_run(11000);
        } else {
            ask_pause(some_saga());
            new_owner();
            trial_run(1100);
        }
        trial_drain(0);
        trial_run(10);
        if (kinds[i] != ASKED_COUNT) { /* what the database was asked comes back first */
            assert_false(asked.done);
            trial_fail(kinds[i], ERR_STORE);
        }
        end(ERR_STOPPING);
    }
}

static void a_start_that_is_looked_for_when_the_engine_leaves_is_told_so(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_READ_SAGA);
    ask_start("b");
    trial_run(11000);
    trial_drain(0);
    trial_run(10);
    trial_fail(ASKED_READ_SAGA, ERR_STORE);
    end(ERR_STOPPING);
}

/* Its leases are given up, and a call of a saga that it had has still to end. */
static void who_waits_elsewhere_waits_on_while_the_engine_leaves(void **state)
{
    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    trial_start("s", "{}");
    trial_shard_to(9, 2);
    ask_pause(some_saga());
    trial_drain(100);
    trial_run(3000);
    assert_false(asked.done);
    trial_answer_last_put("{\"code\":\"ok\",\"answer\":{}}");
    end(ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_s_answer_is_the_answer),
        cmocka_unit_test(an_answer_that_comes_while_the_row_is_being_put_is_kept),
        cmocka_unit_test(what_the_database_refuses_is_told),
        cmocka_unit_test(an_owner_that_is_busy_is_left_alone_for_a_moment),
        cmocka_unit_test(so_is_one_that_refuses_a_start),
        cmocka_unit_test(a_pause_that_is_refused_for_want_of_room_says_nothing_of_new_work),
        cmocka_unit_test(what_nobody_answers_in_time_may_be_asked_again),
        cmocka_unit_test(who_has_gone_is_not_waited_for),
        cmocka_unit_test(a_call_is_looked_for_in_its_log_when_its_time_is_over),
        cmocka_unit_test(a_call_that_was_taken_up_is_answered_from_its_log),
        cmocka_unit_test(a_log_that_cannot_be_read_then_says_nothing),
        cmocka_unit_test(a_run_that_cannot_be_looked_for_then_is_not_known),
        cmocka_unit_test(an_answer_that_comes_at_the_last_moment_counts),
        cmocka_unit_test(what_the_last_owner_did_not_take_up_the_next_one_has_still_to_do),
        cmocka_unit_test(a_look_that_fails_is_made_again),
        cmocka_unit_test(a_word_that_was_consumed_is_not_said_twice),
        cmocka_unit_test(a_word_of_which_nobody_knows_whether_it_came_is_not_said_twice_either),
        cmocka_unit_test(a_call_that_was_consumed_unanswered_is_put_again_and_not_for_ever),
        cmocka_unit_test(a_start_that_was_consumed_unanswered_is_looked_for_and_put_again),
        cmocka_unit_test(a_start_that_nobody_takes_up_is_looked_for_when_its_time_is_over),
        cmocka_unit_test(an_engine_that_leaves_tells_all_who_wait),
        cmocka_unit_test(a_start_that_is_looked_for_when_the_engine_leaves_is_told_so),
        cmocka_unit_test(who_waits_elsewhere_waits_on_while_the_engine_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
