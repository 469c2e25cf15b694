/* A saga in memory: the order of what comes for it, and what it does when its turns are not written. */
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

/* What the database refuses as data is asked for again, and not for ever. */
static void a_turn_that_is_refused_again_and_again_waits_for_somebody(void **state)
{
    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    struct saga_id id;

    trial_hold(ASKED_CALL);
    id = trial_start("s", "{}");
    trial_hold(ASKED_APPEND);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    int refused = 0;

    for (; trial_held(ASKED_APPEND) > 0 && refused < 100; refused++) {
        trial_fail(ASKED_APPEND, ERR_CORRUPT);
        trial_run(1000);
    }
    assert_int_equal(refused, REFUSALS_MAX);
    assert_non_null(live_find(trial.engine, id));
    /* A person's word is written, and then it goes on. */
    struct trial_request paused;

    trial_request_init(&paused);
    paused.request.in.change.verb = VERB_PAUSE;
    paused.request.in.change.saga = id;
    engine_change(trial.engine, &paused.request);
    trial_run(0);
    trial_let(ASKED_APPEND);
    assert_int_equal(paused.request.code, ERR_OK);
    assert_non_null(strstr(trial_log_text(id), "saga.paused"));
    trial_release(ASKED_APPEND);
    trial_request_fini(&paused);
    trial_end();
}

static struct saga_id early_id;
static bool early_done;

static void on_early(struct mail *mail, enum err_code code, const struct err *err)
{
    (void)mail;
    (void)err;
    assert_int_equal(code, ERR_OK);
    early_done = true;
}

static struct mail early = {.input = {.type = SAGA_INPUT_PAUSE, .pause = {.actor = SLICE("somebody")}},
                            .done = on_early};

static void send_early(void)
{
    live_deliver(trial.engine, early_id, SLICE("n"), &early);
    assert_false(early_done);
    assert_null(strstr(trial_log_text(early_id), "saga.paused"));
}

/* Which numbers are free for escalations is known when all of the shard is. */
static void what_comes_while_its_shard_is_being_loaded_waits(void **state)
{
    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    early_id = trial_start("s", "{}");
    trial_shard_to(saga_id_shard(early_id), 2);
    trial.while_loading = send_early;
    trial_shard_comes(saga_id_shard(early_id), 3);
    trial_run(0);
    assert_true(early_done);
    assert_non_null(strstr(trial_log_text(early_id), "saga.paused"));
    trial.while_loading = NULL;
    trial_end();
}

/* Two engines took it for new. Whoever comes second goes to the first one's, which may be here by then. */
static void a_run_that_has_begun_elsewhere_is_the_one_that_is_called(void **state)
{
    static char first[16384];
    struct trial_request called, paused;
    struct saga_id id;

    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_ask_call(&called, (struct saga_id){0}, "r", "look", "{}");
    trial_run(0);
    assert_true(uuid_parse(json_string(json_member(called.request.answer, "saga"), &called.arena), &id.uuid));
    (void)snprintf(first, sizeof(first), "%s", trial_log_text(id));
    *strchr(first, '\n') = '\0';
    trial_request_fini(&called);
    trial_end();

    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    trial_hold(ASKED_APPEND);
    trial_ask_call(&called, (struct saga_id){0}, "r", "look", "{}");
    trial_run(0);
    assert_int_equal(trial_held(ASKED_APPEND), 1);
    trial_log(id, "n", 1, first);
    trial_request_init(&paused); /* something comes for that one; that a run cannot be paused is told when it is here */
    paused.request.in.change.verb = VERB_PAUSE;
    paused.request.in.change.saga = id;
    engine_change(trial.engine, &paused.request);
    trial_run(0);
    assert_non_null(live_find(trial.engine, id));
    trial_fail(ASKED_APPEND, ERR_CONFLICT); /* the name is taken */
    trial_release(ASKED_APPEND);
    trial_release(ASKED_CALL);
    trial_run(61000);
    assert_true(called.done);
    assert_int_equal(called.request.code, ERR_OK);
    assert_non_null(strstr(trial_log_text(id), "operation.duplicate"));
    trial_request_fini(&called);
    trial_request_fini(&paused);
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_that_is_refused_again_and_again_waits_for_somebody),
        cmocka_unit_test(what_comes_while_its_shard_is_being_loaded_waits),
        cmocka_unit_test(a_run_that_has_begun_elsewhere_is_the_one_that_is_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
