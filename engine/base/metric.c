/* Text exposition format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "base/metric.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/check.h"

#ifndef SAGAD_VERSION
#define SAGAD_VERSION "unknown"
#endif

static const int64_t bounds_us[] = {100,    200,    500,    1000,    2000,    5000,    10000,    20000,    50000,
                                    100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 60000000};

/* A row is written by its thread, and by those without one of their own: an addition is atomic, and costs little while
 * nobody else writes the line. The order between figures is of no use to anybody. */
struct figures {
    _Alignas(64) _Atomic uint64_t counters[METRIC_COUNTER_COUNT];
    _Atomic int64_t gauges[METRIC_GAUGE_COUNT];
    _Atomic bool is_set[METRIC_GAUGE_COUNT];
    struct {
        _Atomic uint64_t buckets[COUNT_OF(bounds_us)], count;
        _Atomic int64_t sum_us;
    } histograms[METRIC_HISTOGRAM_COUNT];
};

static struct figures rows[METRIC_ROWS_MAX];
static _Thread_local uint32_t own_row;

static const struct {
    const char *name, *help;
} counter_table[] =
    {
#define X(id, name, help) [id] = {name, help},
        METRIC_COUNTER_MAP(X)},
  histogram_table[] = {METRIC_HISTOGRAM_MAP(X)
#undef X
};

enum of_rows { SUM, MOST, LEAST };

static const struct {
    const char *name, *help;
    enum of_rows of_rows;
} gauge_table[] = {
#define X(id, of_rows, name, help) [id] = {name, help, of_rows},
    METRIC_GAUGE_MAP(X)
#undef X
};

#define ADD(figure, n)                                                                                                 \
    ((void)atomic_fetch_add_explicit(figure, n, memory_order_relaxed)) /* nobody asks what it was                      \
                                                                        */
#define LOOK(figure) atomic_load_explicit(figure, memory_order_relaxed)

void metric_use_row(uint32_t row)
{
    CHECK(row < METRIC_ROWS_MAX);
    own_row = row;
}

void metric_add(enum metric_counter counter, uint64_t n)
{
    ADD(&rows[own_row].counters[counter], n);
}

uint64_t metric_value(enum metric_counter counter)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < METRIC_ROWS_MAX; i++) {
        sum += LOOK(&rows[i].counters[counter]);
    }
    return sum;
}

static void gauge_note(enum metric_gauge gauge)
{
    if (!LOOK(&rows[own_row].is_set[gauge])) {
        atomic_store_explicit(&rows[own_row].is_set[gauge], true, memory_order_relaxed);
    }
}

void gauge_set(enum metric_gauge gauge, int64_t value)
{
    atomic_store_explicit(&rows[own_row].gauges[gauge], value, memory_order_relaxed);
    gauge_note(gauge);
}

void gauge_add(enum metric_gauge gauge, int64_t n)
{
    ADD(&rows[own_row].gauges[gauge], n);
    gauge_note(gauge);
}

static int64_t gauge_join(enum of_rows of_rows, int64_t a, int64_t b)
{
    switch (of_rows) {
    case SUM:
        return a + b;
    case MOST:
        return a > b ? a : b;
    case LEAST:
        return a < b ? a : b;
    }
    UNREACHABLE();
}

int64_t gauge_value(enum metric_gauge gauge)
{
    int64_t value = 0;
    bool has_one = false;

    for (size_t i = 0; i < METRIC_ROWS_MAX; i++) {
        if (LOOK(&rows[i].is_set[gauge])) {
            int64_t of_row = LOOK(&rows[i].gauges[gauge]);

            value = has_one ? gauge_join(gauge_table[gauge].of_rows, value, of_row) : of_row;
            has_one = true;
        }
    }
    return value;
}

void histogram_observe_us(enum metric_histogram histogram, int64_t us)
{
    struct figures *row = &rows[own_row];

    for (size_t i = 0; i < COUNT_OF(bounds_us); i++) {
        if (us <= bounds_us[i]) {
            ADD(&row->histograms[histogram].buckets[i], 1);
            break;
        }
    }
    ADD(&row->histograms[histogram].count, 1);
    ADD(&row->histograms[histogram].sum_us, us);
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

/* Another thread may be between the two additions of an observation: the count is then that of the buckets, because the
 * bucket of all may not have less than the one before it. */
static void render_histogram(enum metric_histogram histogram, struct buffer *out)
{
    const char *name = histogram_table[histogram].name;
    uint64_t below = 0, count = 0;
    int64_t sum_us = 0;

    for (size_t i = 0; i < METRIC_ROWS_MAX; i++) {
        count += LOOK(&rows[i].histograms[histogram].count);
        sum_us += LOOK(&rows[i].histograms[histogram].sum_us);
    }
    metric_put_head(out, name, histogram_table[histogram].help, "histogram");
    for (size_t b = 0; b < COUNT_OF(bounds_us); b++) {
        for (size_t i = 0; i < METRIC_ROWS_MAX; i++) {
            below += LOOK(&rows[i].histograms[histogram].buckets[b]);
        }
        buffer_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds_us[b] / 1e6, (unsigned long long)below);
    }
    count = count > below ? count : below;
    buffer_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name, (unsigned long long)count,
                  name, (double)sum_us / 1e6, name, (unsigned long long)count);
}

void metric_render(struct buffer *out)
{
    metric_put_head(out, "sagad_info", "The version that runs", "gauge");
    buffer_printf(out, "sagad_info{version=\"%s\"} 1\n", SAGAD_VERSION);
    for (enum metric_counter i = 0; i < METRIC_COUNTER_COUNT; i++) {
        metric_put_head(out, counter_table[i].name, counter_table[i].help, "counter");
        buffer_printf(out, "%s %llu\n", counter_table[i].name, (unsigned long long)metric_value(i));
    }
    for (enum metric_gauge i = 0; i < METRIC_GAUGE_COUNT; i++) {
        metric_put_head(out, gauge_table[i].name, gauge_table[i].help, "gauge");
        buffer_printf(out, "%s %lld\n", gauge_table[i].name, (long long)gauge_value(i));
    }
    for (enum metric_histogram i = 0; i < METRIC_HISTOGRAM_COUNT; i++) {
        render_histogram(i, out);
    }
}
