/* Text exposition format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "base/metric.h"

#include "base/check.h"

#ifndef SAGAD_VERSION
#define SAGAD_VERSION "unknown"
#endif

static const int64_t bounds_us[] = {100,    200,    500,    1000,    2000,    5000,    10000,    20000,    50000,
                                    100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 60000000};

static struct {
    uint64_t counters[METRIC_COUNTER_COUNT];
    int64_t gauges[METRIC_GAUGE_COUNT];
    struct {
        uint64_t buckets[COUNT_OF(bounds_us)], count;
        int64_t sum_us;
    } histograms[METRIC_HISTOGRAM_COUNT];
} metrics; /* only the loop thread writes it */

static const struct {
    const char *name, *help;
} counter_table[] =
    {
#define X(id, name, help) [id] = {name, help},
        METRIC_COUNTER_MAP(X)},
  gauge_table[] = {METRIC_GAUGE_MAP(X)},
  histogram_table[] = {METRIC_HISTOGRAM_MAP(X)
#undef X
};

void metric_add(enum metric_counter counter, uint64_t n)
{
    metrics.counters[counter] += n;
}

uint64_t metric_value(enum metric_counter counter)
{
    return metrics.counters[counter];
}

void gauge_set(enum metric_gauge gauge, int64_t value)
{
    metrics.gauges[gauge] = value;
}

void gauge_add(enum metric_gauge gauge, int64_t n)
{
    metrics.gauges[gauge] += n;
}

int64_t gauge_value(enum metric_gauge gauge)
{
    return metrics.gauges[gauge];
}

void histogram_observe_us(enum metric_histogram histogram, int64_t us)
{
    for (size_t i = 0; i < COUNT_OF(bounds_us); i++) {
        if (us <= bounds_us[i]) {
            metrics.histograms[histogram].buckets[i]++;
            break;
        }
    }
    metrics.histograms[histogram].count++;
    metrics.histograms[histogram].sum_us += us;
}

void metric_put_head(struct buffer *out, const char *name, const char *help, const char *type)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_put_label(struct buffer *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '\\':
            buffer_put_text(out, "\\\\");
            break;
        case '"':
            buffer_put_text(out, "\\\"");
            break;
        case '\n':
            buffer_put_text(out, "\\n");
            break;
        default: /* every other byte stands for itself */
            buffer_put_char(out, text.ptr[i]);
        }
    }
}

void metric_render(struct buffer *out)
{
    metric_put_head(out, "sagad_info", "The version that runs", "gauge");
    buffer_printf(out, "sagad_info{version=\"%s\"} 1\n", SAGAD_VERSION);
    for (int i = 0; i < METRIC_COUNTER_COUNT; i++) {
        metric_put_head(out, counter_table[i].name, counter_table[i].help, "counter");
        buffer_printf(out, "%s %llu\n", counter_table[i].name, (unsigned long long)metrics.counters[i]);
    }
    for (int i = 0; i < METRIC_GAUGE_COUNT; i++) {
        metric_put_head(out, gauge_table[i].name, gauge_table[i].help, "gauge");
        buffer_printf(out, "%s %lld\n", gauge_table[i].name, (long long)metrics.gauges[i]);
    }
    for (int i = 0; i < METRIC_HISTOGRAM_COUNT; i++) {
        uint64_t below = 0;

        metric_put_head(out, histogram_table[i].name, histogram_table[i].help, "histogram");
        for (size_t b = 0; b < COUNT_OF(bounds_us); b++) {
            below += metrics.histograms[i].buckets[b];
            buffer_printf(out, "%s_bucket{le=\"%g\"} %llu\n", histogram_table[i].name, (double)bounds_us[b] / 1e6,
                          (unsigned long long)below);
        }
        buffer_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", histogram_table[i].name,
                      (unsigned long long)metrics.histograms[i].count, histogram_table[i].name,
                      (double)metrics.histograms[i].sum_us / 1e6, histogram_table[i].name,
                      (unsigned long long)metrics.histograms[i].count);
    }
}
