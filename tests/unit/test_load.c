/* Sagas that are read back because somebody wants something of them: what becomes of those who asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/metric.h"
#include "tests/lib/run_trial.h"

static const char definitions[] =
    "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"},"
    "\"terminal\":true,\"timeout\":\"1h\"},"
    "{\"name\":\"look\",\"builtin\":{\"do\":\"act\"},\"effect\":\"read\",\"timeout\":\"1h\"},"
    "{\"name\":\"look_again\",\"builtin\":{\"do\":\"act\"},\"effect\":\"read\",\"timeout\":\"1h\"}],"
    "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]}]}";

static void begin(void)
{
    trial_begin(NULL, UINT64_MAX, definitions);
}

/* --- somebody who asks --- */

struct asker {
    struct summons summons;
    struct mail mail;
    bool answered;
    enum err_code code;
    const struct live *live;
};

static void on_summoned(struct summons *summons, struct live *live, enum err_code code, const struct err *err)
{
    struct asker *asker = container_of(summons, struct asker, summons);

    (void)err;
    assert_false(asker->answered);
    asker->answered = true;
    asker->code = code;
    asker->live = live;
}

static void on_mail(struct mail *mail, enum err_code code, const struct err *err)
{
    struct asker *asker = container_of(mail, struct asker, mail);

    (void)err;
    assert_false(asker->answered);
    asker->answered = true;
    asker->code = code;
}

static void summon(struct asker *asker, struct saga_id id, const char *namespace)
{
    *asker = (struct asker){.summons = {.done = on_summoned}};
    live_summon(trial.engine, id, slice_of(namespace), &asker->summons);
}

static void send(struct asker *asker, struct saga_id id, const char *namespace)
{
    *asker = (struct asker){
        .mail = {.input = {.type = SAGA_INPUT_PAUSE, .pause = {.actor = SLICE("somebody")}}, .done = on_mail}};
    live_deliver(trial.engine, id, slice_of(namespace), &asker->mail);
}

static struct saga_id nowhere(void)
{
    struct saga_id id = saga_id_new(1, 0);

    id.uuid.bytes[14] = 0xff; /* of a shard that there is not */
    return id;
}

/* --- sagas --- */

static void who_asks_is_told_why_the_saga_cannot_be_had(void **state)
{
    struct asker asker;
    struct trial_request started;

    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    struct saga_id id = trial_start("s", "{}"), gone = saga_id_new(1, 7);

    summon(&asker, id, "n");
    assert_int_equal(asker.code, ERR_OK);
    assert_non_null(asker.live);
    summon(&asker, nowhere(), "n");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    send(&asker, nowhere(), "n");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    summon(&asker, id, "of others"); /* what is there is nobody else's business */
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    send(&asker, id, "of others");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    trial_shard_to(7, 2);
    summon(&asker, gone, "n");
    assert_int_equal(asker.code, ERR_FENCED);
    send(&asker, gone, "n");
    assert_int_equal(asker.code, ERR_FENCED);
    trial_shard_comes(7, 3);
    trial_run(0);
    /* A start that is not durable yet */
    trial_hold(ASKED_APPEND);
    trial_ask_start(&started, "s", "here");
    trial_run(0);
    struct saga_id fresh = ((struct append *)trial_oldest(ASKED_APPEND))->saga;

    summon(&asker, fresh, "n");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    send(&asker, fresh, "n"); /* is decided after it */
    assert_false(asker.answered);
    trial_release(ASKED_APPEND);
    assert_int_equal(asker.code, ERR_OK);
    trial_request_fini(&started);
    trial_end();
}

static void what_was_read_under_another_lease_is_not_believed(void **state)
{
    struct asker summoned, sent;

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        struct saga_id id = trial_start("s", "{}"); /* it has ended, and left memory */
        uint32_t shard = saga_id_shard(id);

        trial_hold(ASKED_READ_SAGA);
        summon(&summoned, id, "n");
        send(&sent, id, "n");
        assert_int_equal(trial_held(ASKED_READ_SAGA), 1); /* they share it */
        trial_shard_to(shard, 2);
        if (i == 1) {
            trial_shard_comes(shard, 3);
            trial_run(0);
        }
        trial_let(ASKED_READ_SAGA);
        assert_int_equal(summoned.code, ERR_FENCED);
        assert_int_equal(sent.code, ERR_FENCED);
        trial_end();
    }
}

static void a_read_that_fails_is_told_to_all_who_wait_for_it(void **state)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_NOT_FOUND};
    struct asker summoned, sent;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        begin();
        struct saga_id id = trial_start("s", "{}");

        trial_hold(ASKED_READ_SAGA);
        summon(&summoned, id, "n");
        send(&sent, id, "n");
        trial_fail(ASKED_READ_SAGA, codes[i]);
        assert_int_equal(summoned.code, codes[i]);
        assert_int_equal(sent.code, codes[i]);
        trial_end();
    }
}

static void what_comes_for_a_saga_that_begins_meanwhile_reaches_it(void **state)
{
    struct asker sent;
    struct saga_id id = saga_id_new(1700000000000, 9);

    (void)state;
    begin();
    trial_hold(ASKED_CALL);
    trial_hold(ASKED_READ_SAGA);
    send(&sent, id, "n"); /* whoever started it elsewhere knows its id */
    trial_deliver("start", 9, id,
                  "{\"namespace\":\"n\",\"actor\":\"a\",\"saga\":\"s\",\"version\":1,\"input\":{},\"tags\":null}");
    trial_let(ASKED_READ_SAGA);
    assert_int_equal(sent.code, ERR_OK);
    assert_non_null(strstr(trial_log_text(id), "saga.paused"));
    trial_end();
}

static void memory_that_is_full_has_room_left_for_what_presses(void **state)
{
    struct asker asker, pressing;
    struct trial_request called;

    (void)state;
    trial_begin(&(struct engine_options){.sagas_max = 1}, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    struct saga_id ended = saga_id_new(1, 3);

    trial_start("s", "{}");
    summon(&asker, ended, "n");
    assert_int_equal(asker.code, ERR_BUSY);
    send(&pressing, ended, "n"); /* a person says something */
    assert_false(pressing.answered);
    trial_run(0);
    assert_int_equal(pressing.code, ERR_NOT_FOUND);
    trial_ask_call(&called, (struct saga_id){0}, "r", "t", "{}");
    trial_run(0);
    assert_int_equal(called.request.code, ERR_BUSY);
    trial_request_fini(&called);
    /* ... and not without end */
    static struct asker many[100];
    int refused = 0;

    trial_hold(ASKED_READ_SAGA);
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        send(&many[i], saga_id_new(1, 3), "n");
        refused += many[i].answered && many[i].code == ERR_BUSY;
    }
    assert_in_range(refused, 30, 40);
    trial_release(ASKED_READ_SAGA);
    trial_end();
}

/* --- logs that make no sense --- */

static void a_log_that_cannot_be_read_is_told_apart_from_a_saga_that_is_not_there(void **state)
{
    static const char *const logs[] = {
        "[]",                              /* no beginning */
        "[{\"type\":\"no.such.record\"}]", /* no start */
        "[{\"type\":\"saga.started\",\"data\":{\"saga\":\"unknown\",\"version\":7,\"input\":{},\"namespace\":\"n\"}}]",
    };
    struct trial_request asked;
    struct asker sent;

    (void)state;
    begin();
    struct saga_id good = trial_start("s", "{}");
    char first[4096];

    (void)snprintf(first, sizeof(first), "%s", trial_log_text(good));
    *strchr(first, '\n') = '\0';
    struct arena arena;
    struct err err = {0};

    arena_init(&arena, 1024);
    assert_null(fold_turns(trial.engine, good, SLICE("n"), NULL, 0, &arena, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    arena_fini(&arena);
    for (size_t i = 0; i < COUNT_OF(logs) + 4; i++) {
        uint64_t unreadable = metric_value(METRIC_SAGAS_UNREADABLE);
        struct saga_id id = saga_id_new(1700000000000 + (int64_t)i, 5);

        if (i < COUNT_OF(logs)) {
            trial_log(id, "n", 1, logs[i]);
        } else if (i == COUNT_OF(logs)) {
            trial_log(id, "n", 3, first);     /* the beginning is missing */
        } else if (i == COUNT_OF(logs) + 3) { /* its definition is missing */
            *(strstr(first, "\"saga\":\"s\"") + 8) = 'x';
            trial_log(id, "n", 1, first);
        } else {
            trial_log(id, "n", 1, first);
            trial_log(id, "n", 10,
                      i == COUNT_OF(logs) + 1 ? "[{\"type\":\"no.such.record\"}]"
                                              : "[{\"type\":\"saga.completed\",\"data\":{}}]");
        }
        trial_request_init(&asked);
        asked.request.in.get.id = id;
        engine_get_saga(trial.engine, &asked.request);
        send(&sent, id, "n");
        trial_run(0);
        if (asked.request.code != ERR_CORRUPT || sent.code != ERR_CORRUPT) {
            fail_msg("log %zu: %s, %s", i, err_name(asked.request.code), err_name(sent.code));
        }
        assert_true(metric_value(METRIC_SAGAS_UNREADABLE) > unreadable);
        trial_request_fini(&asked);
    }
    trial_end();
}

/* --- runs --- */

static struct saga_id run_once(const char *run)
{
    struct trial_request called;

    trial_ask_call(&called, (struct saga_id){0}, run, "look", "{}");
    trial_run(0);
    assert_int_equal(called.request.code, ERR_OK);
    struct slice saga = json_string(json_member(called.request.answer, "saga"), &called.arena);
    struct saga_id id;

    assert_true(uuid_parse(saga, &id.uuid));
    trial_request_fini(&called);
    trial_run(3600 * 1000); /* it comes to rest, and leaves memory */
    assert_null(live_find(trial.engine, id));
    return id;
}

static enum err_code call_it(struct saga_id saga, const char *run)
{
    struct trial_request called;

    trial_ask_call(&called, saga, run, "look_again", "{}");
    trial_run(0);
    if (!called.done) {
        return ERR_COUNT;
    }
    enum err_code code = called.request.code;

    trial_request_fini(&called);
    return code;
}

static void a_run_is_called_by_its_name_and_not_by_its_id(void **state)
{
    struct trial_request called;

    (void)state;
    begin();
    struct saga_id id = run_once("r");

    assert_int_equal(call_it(id, NULL), ERR_CONFLICT); /* it rests, and is read back for that */
    trial_hold(ASKED_CALL);
    trial_ask_call(&called, (struct saga_id){0}, "other", "t", "{}");
    trial_run(0);
    struct saga_id there =
        container_of(list_first(&trial.engine->shards[run_shard(SLICE("n"), SLICE("other"))].sagas), struct live, link)
            ->saga.id;

    assert_int_equal(call_it(there, NULL), ERR_CONFLICT);
    trial_release(ASKED_CALL);
    trial_request_fini(&called);
    trial_end();
}

static void a_run_has_not_the_name_of_a_saga(void **state)
{
    char name[UUID_TEXT_BYTES];

    (void)state;
    begin();
    struct saga_id id = trial_start("s", "{}"), free_id = saga_id_new(5, 5), other = nowhere();

    uuid_text(&id.uuid, name);
    assert_int_equal(call_it((struct saga_id){0}, name), ERR_INVALID);
    uuid_text(&free_id.uuid, name);
    assert_int_equal(call_it((struct saga_id){0}, name), ERR_OK); /* there is none */
    uuid_text(&other.uuid, name);
    assert_int_equal(call_it((struct saga_id){0}, name), ERR_OK); /* and there can be none */
    trial_end();
}

static void whether_a_run_has_the_name_of_a_saga_must_be_known(void **state)
{
    struct trial_request called;
    struct saga_id id = saga_id_new(5, 5);
    char name[UUID_TEXT_BYTES];

    (void)state;
    uuid_text(&id.uuid, name);
    for (int i = 0; i < 2; i++) {
        begin();
        trial_hold(ASKED_READ_SAGA);
        trial_ask_call(&called, (struct saga_id){0}, name, "t", "{}");
        trial_run(0);
        if (i == 0) {
            trial_fail(ASKED_READ_SAGA, ERR_STORE);
            assert_int_equal(called.request.code, ERR_STORE);
        } else { /* the next owner is asked */
            trial_shard_to(run_shard(SLICE("n"), slice_of(name)), 2);
            trial_let(ASKED_READ_SAGA);
            assert_int_equal(trial.asked[ASKED_INBOX_PUT], 1);
            assert_int_equal(trial.asked[ASKED_CALL], 0);
            trial_answer_last_put("{\"code\":\"internal\",\"message\":\"m\"}");
        }
        trial_request_fini(&called);
        trial_end();
    }
}

static void whether_a_run_has_begun_must_be_known(void **state)
{
    struct trial_request called;

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        trial_hold(ASKED_FIND_SAGA);
        trial_ask_call(&called, (struct saga_id){0}, "r", "t", "{}");
        trial_run(0);
        if (i == 0) {
            trial_fail(ASKED_FIND_SAGA, ERR_STORE);
            assert_int_equal(called.request.code, ERR_STORE);
        } else {
            trial_shard_to(run_shard(SLICE("n"), SLICE("r")), 2);
            trial_let(ASKED_FIND_SAGA);
            assert_int_equal(trial.asked[ASKED_INBOX_PUT], 1);
            trial_answer_last_put("{\"code\":\"internal\",\"message\":\"m\"}");
        }
        trial_request_fini(&called);
        trial_end();
    }
}

static void a_run_that_rests_is_found_and_goes_on(void **state)
{
    (void)state;
    begin();
    struct saga_id id = run_once("r");

    assert_int_equal(call_it((struct saga_id){0}, "r"), ERR_OK);
    assert_non_null(strstr(trial_log_text(id), "run.woken"));
    trial_end();
}

static void two_calls_of_a_run_share_a_look_for_it(void **state)
{
    struct trial_request first, second;

    (void)state;
    begin();
    trial_hold(ASKED_FIND_SAGA);
    trial_ask_call(&first, (struct saga_id){0}, "r", "look", "{}");
    trial_ask_call(&second, (struct saga_id){0}, "r", "look_again", "{}");
    trial_run(0);
    assert_int_equal(trial.asked[ASKED_FIND_SAGA], 1);
    trial_let(ASKED_FIND_SAGA);
    assert_int_equal(first.request.code, ERR_OK);
    assert_int_equal(second.request.code, ERR_OK);
    trial_request_fini(&first);
    trial_request_fini(&second);
    trial_end();
}

static void a_run_that_comes_back_by_its_id_meanwhile_is_the_same(void **state)
{
    struct trial_request called;
    struct asker sent;

    (void)state;
    begin();
    struct saga_id id = run_once("r");

    trial_hold(ASKED_FIND_SAGA);
    trial_ask_call(&called, (struct saga_id){0}, "r", "look_again", "{}");
    trial_run(0);
    trial_hold(ASKED_APPEND);
    send(&sent, id, "n");
    trial_run(0);
    size_t turns = trial.turn_count;

    trial_let(ASKED_FIND_SAGA);
    trial_release(ASKED_APPEND);
    trial_run(0);
    assert_true(trial.turn_count > turns);
    assert_true(called.done);
    trial_request_fini(&called);
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_is_told_why_the_saga_cannot_be_had),
        cmocka_unit_test(what_was_read_under_another_lease_is_not_believed),
        cmocka_unit_test(a_read_that_fails_is_told_to_all_who_wait_for_it),
        cmocka_unit_test(what_comes_for_a_saga_that_begins_meanwhile_reaches_it),
        cmocka_unit_test(memory_that_is_full_has_room_left_for_what_presses),
        cmocka_unit_test(a_log_that_cannot_be_read_is_told_apart_from_a_saga_that_is_not_there),
        cmocka_unit_test(a_run_is_called_by_its_name_and_not_by_its_id),
        cmocka_unit_test(a_run_has_not_the_name_of_a_saga),
        cmocka_unit_test(whether_a_run_has_the_name_of_a_saga_must_be_known),
        cmocka_unit_test(whether_a_run_has_begun_must_be_known),
        cmocka_unit_test(a_run_that_rests_is_found_and_goes_on),
        cmocka_unit_test(two_calls_of_a_run_share_a_look_for_it),
        cmocka_unit_test(a_run_that_comes_back_by_its_id_meanwhile_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
