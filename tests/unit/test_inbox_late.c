/* How a call ended whose saga another engine has: told to its owner, for as long as this engine lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/run_trial.h"

static const char definitions[] = "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"once\","
                                  "\"terminal\":true,\"timeout\":\"1h\"}],"
                                  "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]}]}";

/* A saga whose call is under way when its shard goes to another engine. */
static struct saga_id begin(void)
{
    struct saga_id id;

    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    id = trial_start("s", "{}");
    trial_run(10);
    assert_int_equal(trial_held(ASKED_CALL), 1);
    trial_shard_to(saga_id_shard(id), 2);
    return id;
}

static void the_owner_is_told_how_the_call_ended(void **state)
{
    struct saga_id id = begin();

    (void)state;
    trial_settle(OUTCOME_COMPLETED, NULL, "{\"status\":200}");
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 1);
    assert_true(slice_is(trial_last_put()->kind, "settled"));
    assert_true(uuid_equal(&trial_last_put()->saga.uuid, &id.uuid));
    assert_true(json_string_is(json_member(trial_last_put()->payload, "outcome"), "completed"));
    trial_end();
}

static void it_is_told_again_until_the_database_has_it(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_INBOX_PUT);
    trial_settle(OUTCOME_FAILED, "http-422", "{\"status\":422}");
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(trial.asked[ASKED_INBOX_PUT], i);
        trial_fail(ASKED_INBOX_PUT, ERR_STORE);
        trial_run(3000);
    }
    trial_let(ASKED_INBOX_PUT);
    trial_run(10000);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 4);
    assert_int_equal(trial_rows(), 1);
    trial_end();
}

/* The next owner counts the call as unknown, and settles that by what its tool allows. */
static void an_engine_that_leaves_does_not_wait_for_the_database(void **state)
{
    (void)state;
    begin();
    trial_hold(ASKED_INBOX_PUT);
    trial_settle(OUTCOME_FAILED, "http-422", "{\"status\":422}");
    trial_fail(ASKED_INBOX_PUT, ERR_STORE); /* its time to tell it again comes while the engine leaves */
    trial_drain(600000);
    trial_run(3000);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 2);
    trial_fail(ASKED_INBOX_PUT, ERR_STORE);
    trial_run(10000);
    assert_int_equal(trial.asked[ASKED_INBOX_PUT], 2);
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_is_told_how_the_call_ended),
        cmocka_unit_test(it_is_told_again_until_the_database_has_it),
        cmocka_unit_test(an_engine_that_leaves_does_not_wait_for_the_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
