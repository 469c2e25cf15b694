/*
 * bench-load --calls: new operations of the registry, and repeats of them, in turns within one run of the program, so
 * that whatever else this machine does meets both alike. A repeat is a hit on a completed operation: it is answered
 * from the record and writes nothing but its entry in the log. New calls through /mcp take turns with them in the same
 * way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/load.h"
#include "tests/bench/load_driver.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

enum kind { KIND_NEW, KIND_REPEATED, KIND_MCP, KIND_COUNT }; /* of a round: what it sends */

static const char *const kind_names[KIND_COUNT] = {"new", "repeated", "mcp"};

struct figures { /* of one round of one kind */
    double per_second, p50_ms, p95_ms, p99_ms, max_ms;
    uint64_t ended, errors;
};

struct calls {
    struct driver driver;
    const struct load_calls_options *o;
    struct slice prefix; /* of the names of runs */
    int64_t round;
    enum kind kind;  /* of this round; repeats hit what the last round of new calls has made */
    uint64_t made;   /* by the last round of new ones */
    uint64_t missed; /* repeats that were not answered as such */
    struct buffer body;
};

/* The same call as the message of a host. A tool is offered under its name with `_` for `.`. */
static void begin_mcp(struct calls *calls, struct wire_connection *c, const char *run, const char *scope)
{
    struct json_writer w;
    char name[128];

    slice_to_text(name, sizeof(name), slice_of(calls->o->tool));
    for (char *dot = name; (dot = strchr(dot, '.')) != NULL; dot++) {
        *dot = '_';
    }
    buffer_reset(&calls->body);
    json_writer_init(&w, &calls->body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "jsonrpc", "2.0");
    json_write_i64(&w, "id", 1);
    json_write_text(&w, "method", "tools/call");
    json_object_begin(&w, "params");
    json_write_text(&w, "name", name);
    json_write_raw(&w, "arguments", calls->o->args);
    json_object_begin(&w, "_meta");
    json_write_text(&w, "sagad/run", run);
    json_write_text(&w, "sagad/scope", scope);
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
    driver_send(&calls->driver, c, "POST", SLICE("/mcp"), buffer_slice(&calls->body));
}

static void begin(struct driver *driver, struct wire_connection *c, uint64_t number)
{
    struct calls *calls = container_of(driver, struct calls, driver);
    bool repeats = calls->kind == KIND_REPEATED;
    uint64_t which = repeats ? number % calls->made : number, per_run = (uint64_t)calls->o->per_run;
    struct json_writer w;
    char run[96], scope[24], turn[24];

    (void)snprintf(run, sizeof(run), "%.*s-%s%lld-%llu", SLICE_ARG(calls->prefix),
                   calls->kind == KIND_MCP ? "mcp-" : "", (long long)calls->round,
                   (unsigned long long)(which / per_run));
    (void)snprintf(scope, sizeof(scope), "s%llu", (unsigned long long)(which % per_run));
    if (calls->kind == KIND_MCP) {
        begin_mcp(calls, c, run, scope);
        return;
    }
    buffer_reset(&calls->body);
    json_writer_init(&w, &calls->body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "run", run);
    json_write_text(&w, "scope", scope); /* and no step: the same call with other steps only would be a loop */
    json_write_text(&w, "tool", calls->o->tool);
    json_write_raw(&w, "args", calls->o->args);
    if (repeats) { /* a user who asks again: this is no loop */
        (void)snprintf(turn, sizeof(turn), "%llu", (unsigned long long)(number / calls->made + 1));
        json_write_text(&w, "turn", turn);
    }
    json_object_end(&w);
    driver_send(driver, c, "POST", SLICE("/v1/operations?wait=30s"), buffer_slice(&calls->body));
}

static bool answered(struct driver *driver, struct wire_connection *c, int status, struct slice body)
{
    struct calls *calls = container_of(driver, struct calls, driver);
    bool duplicate = false, is_error = true;

    (void)c;
    if (status != 200 ||
        (calls->kind == KIND_MCP && !(json_bool(json_at(body, SLICE("/result/isError")), &is_error) && !is_error))) {
        driver_fail(driver, status, body);
    } else if (calls->kind == KIND_REPEATED) {
        calls->missed += !(json_bool(json_member(body, "duplicate"), &duplicate) && duplicate);
    }
    return true;
}

static struct figures figures_of(const struct driver *driver)
{
    return (struct figures){.per_second = driver_per_second(driver),
                            .p50_ms = driver_percentile_ms(driver, 0.5),
                            .p95_ms = driver_percentile_ms(driver, 0.95),
                            .p99_ms = driver_percentile_ms(driver, 0.99),
                            .max_ms = driver_percentile_ms(driver, 1),
                            .ended = driver->ended,
                            .errors = driver->errors};
}

static bool run_round(struct calls *calls, enum kind kind, struct figures *out)
{
    struct driver *driver = &calls->driver;

    calls->kind = kind;
    driver->noun = kind == KIND_REPEATED ? "repeats" : "calls";
    if (kind == KIND_REPEATED && calls->made == 0) {
        (void)fputs("bench-load: no call was made that could be repeated\n", stderr);
        return false;
    }
    bool ok = driver_run(driver, calls->o->count, calls->o->seconds);

    if (kind == KIND_NEW) {
        calls->made = driver->ended == driver->begun ? driver->begun : 0;
    }
    *out = figures_of(driver);
    driver_tell_errors(driver);
    return ok;
}

/* --- the report --- */

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct spread {
    double median, least, most;
};

/* Of the member at `offset` of each round's figures; or of the quotients when there are two arrays. */
static struct spread spread_of(const struct figures *a, const struct figures *b, size_t offset, size_t rounds)
{
    double values[LOAD_ROUNDS_MAX];

    for (size_t i = 0; i < rounds; i++) {
        double divisor = b ? *(const double *)(const void *)((const char *)&b[i] + offset) : 1;

        values[i] = *(const double *)(const void *)((const char *)&a[i] + offset) / (divisor > 0 ? divisor : 1);
    }
    qsort(values, rounds, sizeof(*values), compare_double);
    return (struct spread){(values[(rounds - 1) / 2] + values[rounds / 2]) / 2, values[0], values[rounds - 1]};
}

#define MEDIAN(figures, member, rounds) spread_of(figures, NULL, offsetof(struct figures, member), rounds).median

static void print_json_figures(const char *name, const struct figures *figures, size_t rounds)
{
    struct spread rate = spread_of(figures, NULL, offsetof(struct figures, per_second), rounds);

    (void)printf(",\"%s\":{\"per_second\":%.1f,\"least\":%.1f,\"most\":%.1f,\"latency_ms\":{\"p50\":%.3f,\"p95\":%.3f,"
                 "\"p99\":%.3f,\"max\":%.3f},\"rounds\":[",
                 name, rate.median, rate.least, rate.most, MEDIAN(figures, p50_ms, rounds),
                 MEDIAN(figures, p95_ms, rounds), MEDIAN(figures, p99_ms, rounds), MEDIAN(figures, max_ms, rounds));
    for (size_t i = 0; i < rounds; i++) {
        (void)printf("%s{\"calls\":%llu,\"errors\":%llu,\"per_second\":%.1f}", i ? "," : "",
                     (unsigned long long)figures[i].ended, (unsigned long long)figures[i].errors,
                     figures[i].per_second);
    }
    (void)fputs("]}", stdout);
}

static void print_row(const char *name, const struct figures *figures, size_t rounds)
{
    struct spread rate = spread_of(figures, NULL, offsetof(struct figures, per_second), rounds);

    (void)printf("  %-9s %9.1f a second (%.1f to %.1f)   p50 %.2f ms  p95 %.2f ms  p99 %.2f ms  max %.2f ms\n", name,
                 rate.median, rate.least, rate.most, MEDIAN(figures, p50_ms, rounds), MEDIAN(figures, p95_ms, rounds),
                 MEDIAN(figures, p99_ms, rounds), MEDIAN(figures, max_ms, rounds));
}

static bool is_measured(const struct load_calls_options *o, enum kind kind)
{
    if (o->only) {
        return strcmp(o->only, kind_names[kind]) == 0;
    }
    return kind == KIND_NEW || (kind == KIND_REPEATED ? o->duplicates : o->mcp);
}

typedef struct figures figures_of_kinds[KIND_COUNT][LOAD_ROUNDS_MAX];

/* Prints figures of each kind that was measured, and how the others compare with new calls. */
static void report(const struct calls *calls, figures_of_kinds figures, size_t rounds)
{
    static const char *const ratio_names[KIND_COUNT] = {NULL, "ratio", "mcp_ratio"};
    const struct load_calls_options *o = calls->o;
    bool is_data = o->ctl->output == OUTPUT_DATA;

    if (is_data) {
        (void)printf("{\"tool\":\"%s\",\"concurrency\":%lld,\"rate\":%lld,\"per_run\":%lld,\"rounds\":%zu", o->tool,
                     (long long)o->concurrency, (long long)o->rate, (long long)o->per_run, rounds);
    } else {
        (void)printf("%s: medians of %zu round%s over %lld connections, %lld call%s in a run%s\n", o->tool, rounds,
                     rounds == 1 ? "" : "s", (long long)o->concurrency, (long long)o->per_run,
                     o->per_run == 1 ? "" : "s", o->rate > 0 ? ", open loop" : "");
    }
    for (int kind = KIND_NEW; kind < KIND_COUNT; kind++) {
        if (!is_measured(o, (enum kind)kind)) {
            continue;
        }
        struct spread ratio = spread_of(figures[kind], figures[KIND_NEW], offsetof(struct figures, per_second), rounds);

        if (is_data) {
            print_json_figures(kind_names[kind], figures[kind], rounds);
        } else {
            print_row(kind_names[kind], figures[kind], rounds);
        }
        if (o->only) {
            continue; /* there is nothing to hold it against */
        }
        if (is_data && kind != KIND_NEW) {
            (void)printf(",\"%s\":{\"median\":%.2f,\"least\":%.2f,\"most\":%.2f}", ratio_names[kind], ratio.median,
                         ratio.least, ratio.most);
        } else if (kind != KIND_NEW) {
            (void)printf("  ratio     %9.2f          (%.2f to %.2f)   %s against new calls, by the second\n",
                         ratio.median, ratio.least, ratio.most, kind == KIND_MCP ? "through /mcp" : "repeats");
        }
    }
    if (is_data) {
        (void)puts("}");
    }
}

/* Leaves the service alone, so that the runs rest. */
static void pause_for(int64_t seconds)
{
    struct timespec left = {.tv_sec = seconds};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static bool run_only(struct calls *calls, figures_of_kinds figures)
{
    calls->round = 1;
    calls->made = (uint64_t)calls->o->made;
    for (int kind = KIND_NEW; kind < KIND_COUNT; kind++) {
        if (is_measured(calls->o, (enum kind)kind)) {
            return run_round(calls, (enum kind)kind, &figures[kind][0]) && figures[kind][0].ended > 0;
        }
    }
    (void)fprintf(stderr, "bench-load: \"%s\" is no kind of calls: new, repeated or mcp\n", calls->o->only);
    return false;
}

static bool run_rounds(struct calls *calls, figures_of_kinds figures)
{
    if (calls->o->only) {
        return run_only(calls, figures);
    }
    for (int64_t i = 0; i < calls->o->rounds; i++) {
        calls->round = i + 1;
        if (!run_round(calls, KIND_NEW, &figures[KIND_NEW][i])) {
            return false;
        }
        pause_for(calls->o->duplicates ? calls->o->pause_s : 0);
        if (calls->o->duplicates && !run_round(calls, KIND_REPEATED, &figures[KIND_REPEATED][i])) {
            return false;
        }
        if (calls->o->mcp && !run_round(calls, KIND_MCP, &figures[KIND_MCP][i])) {
            return false;
        }
        if (figures[KIND_NEW][i].ended == 0) {
            return false; /* the sentence why was printed */
        }
    }
    return true;
}

int load_calls(const struct load_calls_options *o)
{
    struct calls calls = {.driver = {.ctl = o->ctl,
                                     .noun = "calls to warm up",
                                     .concurrency = o->concurrency,
                                     .begin = begin,
                                     .answered = answered},
                          .o = o,
                          .prefix = o->run_prefix
                                        ? slice_of(o->run_prefix)
                                        : arena_printf(&o->ctl->arena, "bench-%llx", (unsigned long long)now_ms())};
    figures_of_kinds figures = {0};
    int code = driver_open(&calls.driver);

    if (code != EXIT_OK) {
        return code;
    }
    buffer_init(&calls.body, 1 << 20);
    bool ok = o->warmup == 0 || driver_run(&calls.driver, o->warmup, 0);
    bool went_wrong = ok && calls.driver.errors > 0;

    if (went_wrong) {
        driver_tell_errors(&calls.driver);
    }
    calls.driver.rate = o->rate;
    ok = ok && !went_wrong && run_rounds(&calls, figures);
    if (ok) {
        report(&calls, figures, (size_t)o->rounds);
    }
    for (int64_t i = 0; i < o->rounds; i++) {
        for (int kind = KIND_NEW; kind < KIND_COUNT; kind++) {
            went_wrong = went_wrong || figures[kind][i].errors > 0;
        }
    }
    if (calls.missed > 0) {
        (void)fprintf(stderr, "bench-load: %llu repeats were not answered as repeats\n",
                      (unsigned long long)calls.missed);
    }
    buffer_fini(&calls.body);
    driver_close(&calls.driver);
    return ok && !went_wrong && calls.missed == 0 ? EXIT_OK : EXIT_FAILED;
}
