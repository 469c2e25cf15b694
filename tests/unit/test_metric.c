/* What is counted is also rendered, in seconds, and in buckets that only grow. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "tests/lib/test.h"

static void assert_line(struct buffer *out, const char *line)
{
    const char *at = strstr(buffer_c(out), line);

    if (!at || (at > out->ptr && at[-1] != '\n') || at[strlen(line)] != '\n') {
        fail_msg("no line %s", line);
    }
}

TEST(counters_gauges_and_histograms_are_rendered)
{
    static const int64_t observed_us[] = {0, 100, 101, 1500, 60000000, 60000001};
    struct buffer out;

    metric_add(METRIC_TURNS, 2);
    metric_add(METRIC_TURNS, 40);
    gauge_set(GAUGE_SHARDS_OWNED, 64);
    gauge_add(GAUGE_SHARDS_OWNED, -65);
    for (size_t i = 0; i < COUNT_OF(observed_us); i++) {
        histogram_observe_us(HISTOGRAM_COMMIT, observed_us[i]);
    }
    assert_int_equal(metric_value(METRIC_TURNS), 42);
    assert_int_equal(gauge_value(GAUGE_SHARDS_OWNED), -1);
    buffer_init(&out, 1 << 20);
    metric_render(&out);
    assert_line(&out, "# TYPE sagad_info gauge");
    assert_non_null(strstr(buffer_c(&out), "\nsagad_info{version=\""));
    assert_line(&out, "# HELP sagad_turns_total Turns committed");
    assert_line(&out, "# TYPE sagad_turns_total counter");
    assert_line(&out, "sagad_turns_total 42");
    assert_line(&out, "# TYPE sagad_shards_owned gauge");
    assert_line(&out, "sagad_shards_owned -1");
    assert_line(&out, "# TYPE sagad_commit_seconds histogram");
    assert_line(&out, "sagad_commit_seconds_bucket{le=\"0.0001\"} 2");
    assert_line(&out, "sagad_commit_seconds_bucket{le=\"0.0002\"} 3");
    assert_line(&out, "sagad_commit_seconds_bucket{le=\"0.002\"} 4");
    assert_line(&out, "sagad_commit_seconds_bucket{le=\"20\"} 4");
    assert_line(&out, "sagad_commit_seconds_bucket{le=\"60\"} 5");
    assert_line(&out, "sagad_commit_seconds_bucket{le=\"+Inf\"} 6");
    assert_line(&out, "sagad_commit_seconds_sum 120.001702");
    assert_line(&out, "sagad_commit_seconds_count 6");
    assert_line(&out, "sagad_call_seconds_count 0");
    buffer_fini(&out);
}

TEST(every_name_follows_the_rules_and_stands_once)
{
    struct buffer out;
    size_t count = 0;

    buffer_init(&out, 1 << 20);
    metric_render(&out);
    for (const char *at = buffer_c(&out); (at = strstr(at, "# TYPE ")); count++) {
        char line[128];
        const char *end = strchr(at, '\n');

        assert_true(end && (size_t)(end - at) < sizeof(line));
        memcpy(line, at, (size_t)(end - at));
        line[end - at] = '\0';
        assert_int_equal(strncmp(line, "# TYPE sagad_", 13), 0);
        assert_int_equal(strstr(line, "_total ") != NULL, strstr(line, " counter") != NULL);
        assert_true(strstr(line, "_seconds ") != NULL || strstr(line, " histogram") == NULL);
        assert_true(strstr(line, "_seconds ") == NULL || strstr(line, " counter") == NULL);
        at = end;
        assert_null(strstr(at, line));
    }
    assert_int_equal(count, 1 + METRIC_COUNTER_COUNT + METRIC_GAUGE_COUNT + METRIC_HISTOGRAM_COUNT);
    assert_false(out.overflow);
    buffer_fini(&out);
}

/* --- several threads --- */

#define THREAD_ADDITIONS 20000

/* Counts as the thread of another engine does, in the row whose number it is given. */
static void *count_in_row(void *context)
{
    metric_use_row((uint32_t)(uintptr_t)context);
    for (int i = 0; i < THREAD_ADDITIONS; i++) {
        metric_add(METRIC_RETRIES, 1);
        gauge_add(GAUGE_SAGAS_LOADED, 1);
        histogram_observe_us(HISTOGRAM_CALL, 1000);
    }
    gauge_set(GAUGE_CALLS_IN_FLIGHT, 3);
    gauge_set(GAUGE_INTAKE_PERCENT, 10 * (int64_t)(uintptr_t)context);
    gauge_set(GAUGE_DATABASE_SYNCHRONOUS, (uintptr_t)context == 1);
    return NULL;
}

TEST(figures_of_several_threads_are_those_of_the_process)
{
    /* The last two share a row, as threads without one of their own do. */
    static const uintptr_t rows[] = {1, 2, 2};
    pthread_t threads[COUNT_OF(rows)];
    struct buffer out;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count_in_row, (void *)rows[i]), 0);
    }
    buffer_init(&out, 1 << 20);
    metric_render(&out); /* may be asked for at any moment */
    buffer_fini(&out);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(metric_value(METRIC_RETRIES), THREAD_ADDITIONS * COUNT_OF(rows));
    assert_int_equal(gauge_value(GAUGE_SAGAS_LOADED), THREAD_ADDITIONS * COUNT_OF(rows));
    assert_int_equal(gauge_value(GAUGE_CALLS_IN_FLIGHT), 6); /* a sum: the last one does not hide the others */
    assert_int_equal(gauge_value(GAUGE_INTAKE_PERCENT), 20); /* the worst; a row that never said it does not count */
    assert_int_equal(gauge_value(GAUGE_DATABASE_SYNCHRONOUS), 0); /* only while all of them say so */
    buffer_init(&out, 1 << 20);
    metric_render(&out);
    assert_line(&out, "sagad_call_seconds_bucket{le=\"0.001\"} 60000");
    assert_line(&out, "sagad_call_seconds_count 60000");
    assert_line(&out, "sagad_call_seconds_sum 60.000000");
    buffer_fini(&out);
}

TEST_PROGRAM(NULL, NULL)
