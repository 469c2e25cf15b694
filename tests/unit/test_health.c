/* How tools fare, as people and Prometheus are shown it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/query/health.h"
#include "tests/lib/run_trial.h"

static const char definitions[] = "{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"act\"},\"effect\":\"once\","
                                  "\"terminal\":true,\"timeout\":\"1h\"}],"
                                  "\"sagas\":[{\"name\":\"s\",\"steps\":[{\"id\":\"a\",\"call\":\"t\",\"with\":{}}]}]}";

static struct buffer out;

static const char *metrics(void)
{
    buffer_reset(&out);
    engine_write_tool_metrics(trial.engine, SLICE_NONE, &out);
    buffer_put_char(&out, '\0');
    return out.ptr;
}

static const char *stats(struct slice namespace)
{
    struct json_writer w;

    buffer_reset(&out);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    health_write_json(trial.engine, namespace, &w);
    json_object_end(&w);
    buffer_put_char(&out, '\0');
    return out.ptr;
}

static int setup(void **state)
{
    (void)state;
    buffer_init(&out, 16 << 20);
    trial_begin(NULL, UINT64_MAX, definitions);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    trial_end();
    buffer_fini(&out);
    return 0;
}

static void beyond_some_hundred_tools_the_rest_is_one_line(void **state)
{
    (void)state;
    assert_null(strstr(metrics(), "~other"));
    for (int i = 0; i < 510; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "x%03d", i);
        struct tool_health *health = tool_health_of(trial.engine, SLICE("n"), slice_of(name));

        health->calls = 3;
        health->breaker_state = i == 502; /* a gauge: the worst of them */
    }
    const char *text = metrics();

    assert_non_null(strstr(text, "sagad_tool_calls_total{namespace=\"n\",tool=\"x499\"} 3\n"));
    assert_null(strstr(text, "x500"));
    assert_non_null(strstr(text, "sagad_tool_calls_total{namespace=\"~other\",tool=\"~other\"} 30\n"));
    assert_non_null(strstr(text, "sagad_tool_breaker_state{namespace=\"~other\",tool=\"~other\"} 1\n"));
}

static void a_name_cannot_forge_a_line(void **state)
{
    (void)state;
    tool_health_of(trial.engine, SLICE("a\"b\\c\nd"), SLICE("t"))->calls = 1;
    assert_non_null(strstr(metrics(), "sagad_tool_calls_total{namespace=\"a\\\"b\\\\c\\nd\",tool=\"t\"} 1\n"));
}

static void each_sees_the_tools_of_its_namespace(void **state)
{
    (void)state;
    tool_health_of(trial.engine, SLICE("n"), SLICE("b"))->breaker_state = BREAKER_OPEN;
    tool_health_of(trial.engine, SLICE("n"), SLICE("a"))->breaker_state = BREAKER_HALF_OPEN;
    tool_health_of(trial.engine, SLICE("m"), SLICE("c"))->calls = 1;
    tool_health_of(trial.engine, SLICE("m"), SLICE("a"))->calls = 1;
    const char *all = metrics(), *ours = strstr(all, "{namespace=\"n\",tool=\"a\"}"),
               *theirs = strstr(all, "{namespace=\"m\",tool=\"c\"}");

    assert_true(ours && theirs && theirs < ours); /* in order */
    const char *text = stats(SLICE("n"));
    const char *a = strstr(text, "\"name\":\"a\""), *b = strstr(text, "\"name\":\"b\"");

    assert_true(a && b && a < b);
    assert_null(strstr(text, "\"name\":\"c\""));
    assert_non_null(strstr(a, "\"breaker\":\"half_open\""));
    assert_non_null(strstr(b, "\"breaker\":\"open\""));
    assert_non_null(strstr(stats(SLICE("m")), "\"breaker\":\"closed\""));
}

/* Nobody knows whether its call happened: a person is asked, and it leaves memory meanwhile. */
static struct saga_id unknown(void)
{
    struct saga_id id = trial_start("s", "{}");

    trial_settle(OUTCOME_UNKNOWN, "timeout", NULL);
    return id;
}

/* Whoever asks for the figures does not wait for a look at every saga in memory. */
static void only_sagas_in_doubt_are_looked_at(void **state)
{
    (void)state;
    trial_hold(ASKED_CALL);
    (void)trial_start("s", "{}");
    trial_run(10);
    assert_int_equal(health_doubt_count(trial.engine), 0);
    trial_settle(OUTCOME_UNKNOWN, "timeout", NULL);
    trial_run(10);
    assert_int_equal(health_doubt_count(trial.engine), 1);
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"n\",tool=\"t\"} 1\n"));
    assert_int_equal(health_doubt_count(trial.engine), 1);
}

static void what_nobody_knows_counts_in_memory_and_at_rest(void **state)
{
    (void)state;
    trial_hold(ASKED_CALL);
    struct saga_id first = unknown();

    trial_run(1000);
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"n\",tool=\"t\"} 1\n"));
    struct saga_id second = unknown();

    trial_run(10000);
    assert_null(live_find(trial.engine, first));
    assert_null(live_find(trial.engine, second));
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"n\",tool=\"t\"} 2\n"));
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_oldest_seconds{namespace=\"n\",tool=\"t\"} 11\n"));
    trial.wall_offset_ms = -3600000; /* of a clock that was set back no age is told */
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_oldest_seconds{namespace=\"n\",tool=\"t\"} 0\n"));
    trial.wall_offset_ms = 0;
    trial_shard_to(saga_id_shard(first), 2); /* another engine counts it now */
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"n\",tool=\"t\"} 1\n"));
    for (int i = 0; i < 8; i++) { /* whatever order they stand in: the oldest counts */
        (void)unknown();
        trial_run(1000);
    }
    trial.wall_offset_ms = 3600000;
    assert_null(strstr(metrics(), "sagad_tool_unknown_oldest_seconds{namespace=\"n\",tool=\"t\"} 0\n"));
}

static void a_start_that_is_not_durable_yet_counts_for_nothing(void **state)
{
    struct trial_request started;

    (void)state;
    trial_hold(ASKED_APPEND);
    trial_ask_start(&started, "s", NULL);
    trial_run(0);
    assert_null(strstr(metrics(), "tool=\"t\"} 1\n"));
    trial_release(ASKED_APPEND);
    trial_request_fini(&started);
}

/* The figures are asked for as long as anybody listens. */
static void figures_are_shown_while_the_engine_leaves_and_when_it_has_left(void **state)
{
    (void)state;
    trial_drain(0);
    trial_run(100);
    assert_null(trial.engine->store);
    assert_non_null(strstr(metrics(), "sagad_tool_calls_total"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(beyond_some_hundred_tools_the_rest_is_one_line, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_cannot_forge_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(each_sees_the_tools_of_its_namespace, setup, teardown),
        cmocka_unit_test_setup_teardown(only_sagas_in_doubt_are_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(what_nobody_knows_counts_in_memory_and_at_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(a_start_that_is_not_durable_yet_counts_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(figures_are_shown_while_the_engine_leaves_and_when_it_has_left, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
