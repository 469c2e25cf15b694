/* Giving shards away: as soon as nothing of them is under way, and kept when that does not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/shard/shard.h"
#include "tests/lib/run_trial.h"

static const char definitions[] =
    "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"},"
    "\"terminal\":true,\"timeout\":\"1h\"},"
    "{\"name\":\"once\",\"builtin\":{\"do\":\"act\"},\"effect\":\"once\",\"terminal\":true,\"timeout\":\"1h\"}],"
    "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]},"
    "{\"name\":\"once\",\"steps\":[{\"id\":\"a\",\"call\":\"once\",\"with\":{}}]},"
    "{\"name\":\"sleeps\",\"steps\":[{\"id\":\"a\",\"sleep\":\"1s\"},{\"id\":\"b\",\"call\":\"once\",\"with\":{},"
    "\"after\":[\"a\"]}]}]}";

static bool is_given(uint32_t shard)
{
    return trial.given >> shard & 1;
}

/* One shard is ours, and something of it is under way. */
static void a_shard_is_kept_when_what_is_under_way_does_not_end(void **state)
{
    (void)state;
    trial_begin(NULL, 1, definitions);
    trial_hold(ASKED_CALL);
    (void)trial_start("s", "{}");
    for (int i = 0; i < 8; i++) { /* and tried again later, each time after twice as long */
        int64_t before_ms = trial.now_us / 1000;

        trial_surplus(1);
        assert_int_equal(trial.engine->shards[0].state, SHARD_GIVING);
        trial_run(3100);
        assert_int_equal(trial.engine->shards[0].state, SHARD_OWNED);
        trial_surplus(1);
        assert_int_equal(trial.engine->shards[0].state, SHARD_OWNED); /* not yet */
        int64_t again_ms = trial.engine->shards[0].keep_until_boot_ms - loop_boot_ms(trial.engine->loop);

        assert_in_range(again_ms, i < 5 ? 9000 << i : 310000, i < 5 ? 10000 << i : 320000);
        assert_true(trial.now_us / 1000 > before_ms);
        trial_run(again_ms + 1);
    }
    assert_false(is_given(0));
    trial_surplus(1);
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_run(100);
    assert_true(is_given(0));
    trial_end();
}

static void a_shard_is_kept_when_whoever_it_was_for_has_gone_again(void **state)
{
    (void)state;
    trial_begin(NULL, 3, definitions);
    trial_hold(ASKED_CALL);
    (void)trial_start("s", "{}");
    (void)trial_start("s", "{}");
    trial_surplus(2);
    assert_int_equal(trial.engine->shards[0].state, SHARD_GIVING);
    assert_int_equal(trial.engine->shards[1].state, SHARD_GIVING);
    trial_surplus(1);
    assert_int_equal((trial.engine->shards[0].state == SHARD_OWNED) + (trial.engine->shards[1].state == SHARD_OWNED),
                     1);
    trial_surplus(0);
    assert_int_equal((trial.engine->shards[0].state == SHARD_OWNED) + (trial.engine->shards[1].state == SHARD_OWNED),
                     2);
    trial_release(ASKED_CALL);
    trial_end();
}

static void the_shard_goes_of_which_the_least_is_under_way(void **state)
{
    (void)state;
    trial_begin(NULL, 3, definitions);
    trial_hold(ASKED_CALL);
    struct saga_id busy = trial_start("s", "{}");

    trial_surplus(1);
    trial_run(0);
    assert_false(is_given(saga_id_shard(busy)));
    assert_true(is_given(1 - saga_id_shard(busy)));
    trial_release(ASKED_CALL);
    trial_end();
}

static void nothing_begins_in_a_shard_that_is_being_given(void **state)
{
    (void)state;
    trial_begin(&(struct engine_options){.park_after_ms = 100000}, 1, definitions);
    trial_hold(ASKED_CALL);
    struct saga_id sleeps = trial_start("sleeps", "{}"), busy = trial_start("s", "{}");

    trial_surplus(1);
    trial_run(2000); /* its sleep is over */
    assert_int_equal(trial.asked[ASKED_CALL], 1);
    assert_null(strstr(trial_log_text(sleeps), "step.running"));
    trial_run(1500); /* the shard is kept: it goes on */
    assert_int_equal(trial.engine->shards[0].state, SHARD_OWNED);
    assert_int_equal(trial.asked[ASKED_CALL], 2);
    assert_non_null(strstr(trial_log_text(busy), "saga.started"));
    trial_release(ASKED_CALL);
    trial_end();
}

static void an_answer_that_is_on_its_way_holds_the_shard(void **state)
{
    (void)state;
    trial_begin(NULL, 1, definitions);
    trial_hold(ASKED_ANSWER_PUT);
    (void)trial_deliver("pause", 0, saga_id_new(5, 0), "{\"namespace\":\"n\",\"actor\":\"a\"}");
    trial_surplus(1);
    trial_run(1000);
    assert_false(is_given(0));
    trial_let(ASKED_ANSWER_PUT);
    trial_run(100);
    assert_true(is_given(0));
    trial_end();
}

static void what_is_asked_of_the_database_for_a_saga_holds_its_shard(void **state)
{
    static const enum asked kinds[] = {ASKED_APPEND, ASKED_PARK};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct trial_request paused;

        trial_begin(NULL, 1, definitions);
        trial_hold(ASKED_CALL);
        struct saga_id id = trial_start("once", "{}");

        trial_settle(OUTCOME_UNKNOWN, "timeout", NULL); /* a person is asked */
        trial_run(500);
        trial_hold(kinds[i]);
        trial_request_init(&paused);
        paused.request.in.change.verb = VERB_PAUSE;
        paused.request.in.change.saga = id;
        engine_change(trial.engine, &paused.request);
        trial_run(5000);
        assert_true(trial_held(kinds[i]) > 0);
        trial_surplus(1);
        trial_run(1000);
        assert_false(is_given(0));
        trial_release(kinds[i]);
        trial_run(100);
        trial_release(ASKED_CALL);
        trial_run(10000);
        trial_request_fini(&paused);
        trial_end();
    }
}

static void a_shard_that_is_still_being_loaded_is_given_at_once_by_an_engine_that_leaves(void **state)
{
    (void)state;
    trial_begin(NULL, 1, definitions);
    trial_hold(ASKED_CALL);
    (void)trial_start("s", "{}"); /* it waits for this */
    trial_hold(ASKED_LOAD_SHARD);
    trial_shard_comes(7, 1);
    trial_drain(5000);
    trial_run(0);
    assert_true(is_given(7));
    assert_false(is_given(0));
    trial_shard_comes(8, 1); /* it was asked for before */
    trial_run(0);
    assert_true(is_given(8));
    trial_release(ASKED_LOAD_SHARD);
    trial_surplus(3); /* all of them are on their way */
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    trial_run(100);
    assert_int_equal(shards_owned(trial.engine), 0);
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_is_kept_when_what_is_under_way_does_not_end),
        cmocka_unit_test(a_shard_is_kept_when_whoever_it_was_for_has_gone_again),
        cmocka_unit_test(the_shard_goes_of_which_the_least_is_under_way),
        cmocka_unit_test(nothing_begins_in_a_shard_that_is_being_given),
        cmocka_unit_test(an_answer_that_is_on_its_way_holds_the_shard),
        cmocka_unit_test(what_is_asked_of_the_database_for_a_saga_holds_its_shard),
        cmocka_unit_test(a_shard_that_is_still_being_loaded_is_given_at_once_by_an_engine_that_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
