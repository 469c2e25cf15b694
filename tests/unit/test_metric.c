/* What is counted is also rendered, in seconds, and in buckets that only grow. */
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

TEST_PROGRAM(NULL, NULL)
