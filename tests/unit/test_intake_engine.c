/* What an engine measures before it takes in new work, and what whoever is refused is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metric.h"
#include "tests/lib/run_trial.h"

static const char definitions[] = "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\","
                                  "\"key\":{\"window\":\"1h\"},\"terminal\":true,\"timeout\":\"1h\"}],"
                                  "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]}]}";

#define MANY 4200
static struct trial_request asked[MANY];

/* So many starts; how many of them were refused. */
static size_t start_many(size_t first, size_t count)
{
    size_t refused = 0;

    for (size_t i = first; i < first + count; i++) {
        trial_ask_start(&asked[i], "s", NULL);
    }
    trial_run(0);
    for (size_t i = first; i < first + count; i++) {
        refused += asked[i].done && asked[i].request.code == ERR_BUSY;
    }
    return refused;
}

static void forget_many(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        trial_request_fini(&asked[i]);
    }
}

static bool refuses(struct err *err)
{
    int64_t retry_after_ms = 0;
    bool refused = engine_refuses_new(trial.engine, err, &retry_after_ms);

    assert_int_equal(retry_after_ms > 0, refused);
    return refused;
}

static uint32_t trims; /* how often memory was given back to the system */

void __wrap_memory_give_back(void);

void __wrap_memory_give_back(void)
{
    trims++;
}

/* What Prometheus sees: whether new work is held back. */
static int64_t shown_shut(void)
{
    struct buffer out;

    buffer_init(&out, 1 << 20);
    engine_write_tool_metrics(trial.engine, SLICE_NONE, &out);
    buffer_fini(&out);
    return gauge_value(GAUGE_INTAKE_SHUT);
}

static void where_commits_take_long_new_work_is_told_so(void **state)
{
    struct err err = {0};

    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_APPEND);
    (void)start_many(0, 700);
    for (int i = 0; i < 20; i++) { /* some are written, slowly */
        trial_run(100);
        for (int k = 0; k < 5; k++) {
            trial_let(ASKED_APPEND);
        }
        (void)refuses(&err);
    }
    size_t refused = start_many(700, 300);

    assert_true(refused > 250);
    assert_int_equal(asked[999].request.code, ERR_BUSY);
    assert_non_null(strstr(asked[999].request.err.detail, "commits take too long"));
    assert_int_equal(shown_shut(), 1);
    trial_release(ASKED_APPEND);
    forget_many(1000);
    trial_end();
}

static void where_the_oldest_turn_waits_long_it_speaks_for_all(void **state)
{
    struct err err = {0};

    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial_hold(ASKED_APPEND);
    (void)start_many(0, 1);
    for (int i = 0; i < 30; i++) {
        trial_run(100);
        (void)refuses(&err);
    }
    assert_int_equal(shown_shut(), 1);
    assert_true(gauge_value(GAUGE_INTAKE_PERCENT) > 1000);
    trial_release(ASKED_APPEND);
    forget_many(1);
    trial_end();
}

static void where_calls_wait_long_for_a_place_new_work_is_told_so(void **state)
{
    struct err err = {0};

    (void)state;
    trial_begin(&(struct engine_options){.calls_max = 2}, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    (void)start_many(0, 100);
    for (int i = 0; i < 60; i++) {
        trial_run(100);
        (void)refuses(&err);
    }
    size_t refused = start_many(100, 50);

    assert_true(refused > 40);
    assert_non_null(strstr(asked[149].request.err.detail, "calls wait too long"));
    trial_release(ASKED_CALL);
    forget_many(150);
    trial_end();
}

static void a_queue_of_calls_that_is_full_is_named(void **state)
{
    struct err err = {0};

    (void)state;
    trial_begin(&(struct engine_options){.calls_max = 1, .call_delay_ms = 3600000}, UINT64_MAX, definitions);
    trial_hold(ASKED_CALL);
    (void)start_many(0, 66);
    trial_run(100);
    assert_true(refuses(&err));
    assert_non_null(strstr(err.message, "too many calls"));
    trial_release(ASKED_CALL);
    trial_run(100);
    assert_false(refuses(&err));
    forget_many(66);
    trial_end();
}

static void what_waits_for_the_database_is_bounded(void **state)
{
    struct err err = {0};

    (void)state;
    trial_begin(NULL, UINT64_MAX, definitions);
    trial.appends_waiting = 20000;
    trial_run(100);
    assert_true(refuses(&err));
    assert_non_null(strstr(err.message, "waits for the database"));
    assert_int_equal(shown_shut(), 1);
    trial.appends_waiting = 0;
    trial_run(100);
    assert_false(refuses(&err));
    assert_int_equal(shown_shut(), 0);
    trial_end();
}

/* Freed memory is given back first; and where nothing could leave memory, nobody is refused for it. */
static void memory_stands_against_new_work_only_while_something_could_leave_it(void **state)
{
    struct err err = {0};

    (void)state;
    trial_begin(&(struct engine_options){.memory_bytes_max = 1 << 16}, UINT64_MAX, definitions);
    assert_false(refuses(&err));
    trial_hold(ASKED_CALL);
    (void)trial_start("s", "{}");
    trial_run(600);
    assert_true(refuses(&err));
    assert_non_null(strstr(err.message, "memory"));
    uint32_t before = trims;

    trial_run(600);
    assert_true(refuses(&err));
    assert_int_equal(trims, before); /* not each time */
    trial_run(6000);
    assert_true(refuses(&err));
    assert_int_equal(trims, before + 1);
    trial_release(ASKED_CALL);
    trial_end();
}

static void so_many_requests_wait_for_other_engines_and_no_more(void **state)
{
    (void)state;
    trial_begin(NULL, 0, definitions); /* all shards are another engine's */
    assert_int_equal(start_many(0, 4096), 0);
    assert_int_equal(start_many(4096, 4), 4);
    assert_non_null(strstr(asked[4099].request.err.message, "wait for other engines"));
    assert_int_equal(asked[4099].request.call.retry_after_ms, 1000);
    trial_drain(0);
    trial_run(100);
    forget_many(4100);
    trial_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_commits_take_long_new_work_is_told_so),
        cmocka_unit_test(where_the_oldest_turn_waits_long_it_speaks_for_all),
        cmocka_unit_test(where_calls_wait_long_for_a_place_new_work_is_told_so),
        cmocka_unit_test(a_queue_of_calls_that_is_full_is_named),
        cmocka_unit_test(what_waits_for_the_database_is_bounded),
        cmocka_unit_test(memory_stands_against_new_work_only_while_something_could_leave_it),
        cmocka_unit_test(so_many_requests_wait_for_other_engines_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
