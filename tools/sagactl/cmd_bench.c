/*
 * bench: drives sagas or calls through the public API and says how fast that went. bench_driver.h tells how it is measured,
 * bench_calls.c has the calls.
 */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/bench.h"
#include "tools/sagactl/bench_driver.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"

const char help_bench[] =
    "sagactl bench --saga NAME [--input JSON|@FILE] [--sagas N | --seconds S] [--concurrency C] [--rate R]\n"
    "              [--warmup N] [--steps K] [--id-prefix TEXT]\n"
    "sagactl bench --calls TOOL [--args JSON|@FILE] [--duplicates] [--rounds R] [--number N | --seconds S]\n"
    "              [--per-run K] [--concurrency C] [--rate R] [--warmup N]\n"
    "\n"
    "Starts sagas over the public API, each with ?wait, and counts each until its end. Prints sagas\n"
    "and transitions a second and the percentiles of the time from start to end. A transition is a\n"
    "durable change of a saga: one for each step and one for its end (--steps, default: the steps of\n"
    "the definition).\n"
    "\n"
    "With --calls it calls a tool through the registry, outside sagas, each call a new operation; with\n"
    "--duplicates rounds of new calls and rounds of their repeats take turns, and the ratio is printed.\n"
    "\n"
    "  --sagas N, --number N  how many, of calls in each round (default 10000); --seconds S: as many as\n"
    "                    fit\n"
    "  --concurrency C   connections, one saga or call in flight on each (default 64)\n"
    "  --rate R          open loop: R starts a second, whatever the service does\n"
    "  --warmup N        so many first, not counted (default: as many as connections)\n"
    "  --id-prefix TEXT  give each a business id, TEXT and a number\n"
    "  --per-run K       so many calls in each run, each of a scope of its own (default 1)\n"
    "  --rounds R        rounds of each kind (default 3 with --duplicates, else 1); medians are shown\n"
    "\n"
    "Exits 1 when a start or a call failed, a saga did not end or a repeat was no repeat.\n"
    "\n"
    "  sagactl bench --saga w1 --sagas 100000 --concurrency 256\n"
    "  sagactl bench --saga order --input @order.json --rate 500 --seconds 30 -o json\n"
    "  sagactl bench --calls bench.do --args '{\"n\": 1}' --duplicates --seconds 10\n";

struct bench {
    struct driver driver;
    const char *saga, *id_prefix;
    struct slice input, body; /* body: without a business id */
    int64_t sagas, seconds, warmup, steps;
    uint64_t numbered, completed, compensated, escalated, abandoned;
};

static void begin(struct driver *driver, struct wire_connection *c, uint64_t number)
{
    struct bench *bench = container_of(driver, struct bench, driver);
    struct slice body = bench->body;
    struct buffer own = {0};

    (void)number; /* ids go on over the warm-up */
    if (bench->id_prefix) {
        struct json_writer w;
        char id[160];

        (void)snprintf(id, sizeof(id), "%s%llu", bench->id_prefix, (unsigned long long)bench->numbered);
        buffer_init(&own, body.len + 512);
        json_writer_init(&w, &own);
        json_object_begin(&w, NULL);
        json_write_text(&w, "saga", bench->saga);
        json_write_text(&w, "id", id);
        json_write_raw(&w, "input", bench->input);
        json_object_end(&w);
        body = buffer_slice(&own);
    }
    bench->numbered++;
    driver_send(driver, c, "POST", SLICE("/v1/sagas?wait=30s"), body);
    buffer_fini(&own);
}

static bool note_end(struct bench *bench, struct slice saga)
{
    struct slice status = json_member(saga, "status");

    if (json_string_is(status, "completed")) {
        bench->completed++;
    } else if (json_string_is(status, "compensated")) {
        bench->compensated++;
    } else if (json_string_is(status, "abandoned")) {
        bench->abandoned++;
    } else if (json_string_is(status, "escalated")) {
        bench->escalated++;
    } else {
        return false;
    }
    return true;
}

static bool answered(struct driver *driver, struct wire_connection *c, int status, struct slice body)
{
    struct bench *bench = container_of(driver, struct bench, driver);
    struct slice id = json_member(body, "id");

    if (status != 200 && status != 201) {
        driver_fail(driver, status, body);
    } else if (!note_end(bench, body)) {
        if (json_type(id) == JSON_STRING) { /* the wait was over, the saga is not */
            char path[96];

            (void)snprintf(path, sizeof(path), "/v1/sagas/%.*s?wait=30s", (int)id.len - 2, id.ptr + 1);
            driver_send(driver, c, "GET", slice_of(path), SLICE(""));
            return false;
        }
        driver_fail(driver, status, body);
    }
    return true;
}

/* --- the report --- */

static void report(const struct bench *bench)
{
    const struct driver *driver = &bench->driver;
    double rate = driver_per_second(driver), transitions = rate * (double)(bench->steps + 1);
    double p50 = driver_percentile_ms(driver, 0.5), p95 = driver_percentile_ms(driver, 0.95);
    double p99 = driver_percentile_ms(driver, 0.99), max = driver_percentile_ms(driver, 1);

    if (driver->ctl->output == OUTPUT_JSON) {
        (void)printf("{\"saga\":\"%s\",\"concurrency\":%lld,\"rate\":%lld,\"seconds\":%.3f,\"sagas\":%llu,"
                     "\"completed\":%llu,\"compensated\":%llu,\"escalated\":%llu,\"abandoned\":%llu,\"errors\":%llu,"
                     "\"sagas_per_second\":%.1f,\"transitions_per_second\":%.1f,"
                     "\"latency_ms\":{\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"max\":%.3f}}\n",
                     bench->saga, (long long)driver->concurrency, (long long)driver->rate, driver_seconds(driver),
                     (unsigned long long)driver->ended, (unsigned long long)bench->completed,
                     (unsigned long long)bench->compensated, (unsigned long long)bench->escalated,
                     (unsigned long long)bench->abandoned, (unsigned long long)driver->errors, rate, transitions, p50,
                     p95, p99, max);
    } else {
        (void)printf("%s: %llu sagas in %.1f s over %lld connections%s\n", bench->saga,
                     (unsigned long long)driver->ended, driver_seconds(driver), (long long)driver->concurrency,
                     driver->rate > 0 ? ", open loop" : "");
        (void)printf("  ended        completed %llu, compensated %llu, escalated %llu, abandoned %llu; errors %llu\n",
                     (unsigned long long)bench->completed, (unsigned long long)bench->compensated,
                     (unsigned long long)bench->escalated, (unsigned long long)bench->abandoned,
                     (unsigned long long)driver->errors);
        (void)printf("  sagas        %.1f a second\n  transitions  %.1f a second (%lld steps and the end)\n", rate,
                     transitions, (long long)bench->steps);
        (void)printf("  latency      p50 %.2f ms  p95 %.2f ms  p99 %.2f ms  max %.2f ms\n", p50, p95, p99, max);
    }
    driver_tell_errors(driver);
}

/* --- setting up --- */

static int read_steps(struct bench *bench)
{
    struct ctl *ctl = bench->driver.ctl;
    struct answer answer;
    int code = client_get(
        ctl,
        arena_printf(&ctl->arena, "/v1/definitions/%.*s", SLICE_ARG(url_escape(slice_of(bench->saga), &ctl->arena))),
        &ctl->arena, &answer);

    if (code == EXIT_OK) {
        bench->steps = (int64_t)json_count(json_member(json_member(answer.body, "body"), "steps"));
    }
    return code;
}

static int run(struct bench *bench, int64_t rate)
{
    struct driver *driver = &bench->driver;
    int code = bench->steps < 0 ? read_steps(bench) : EXIT_OK;

    if (code != EXIT_OK) {
        return code;
    }
    bench->body = arena_printf(&driver->ctl->arena, "{\"saga\":\"%s\",\"input\":%.*s}", bench->saga,
                               SLICE_ARG(bench->input));
    code = driver_open(driver);
    if (code != EXIT_OK) {
        return code;
    }
    bool ok = bench->warmup == 0 || driver_run(driver, bench->warmup, 0);

    bench->completed = bench->compensated = bench->escalated = bench->abandoned = 0;
    driver->noun = "sagas";
    driver->rate = rate;
    ok = ok && driver_run(driver, bench->sagas, bench->seconds);
    if (ok) {
        report(bench);
    }
    driver_close(driver);
    return ok && driver->errors == 0 ? EXIT_OK : EXIT_FAILED;
}

/* --- the command --- */

struct bench_words { /* as they were written */
    const char *saga, *input, *sagas, *steps, *id_prefix;
    const char *tool, *args, *number, *per_run, *rounds;
    const char *seconds, *concurrency, *rate, *warmup;
    bool duplicates;
};

static bool read_number(struct ctl *ctl, const char *name, const char *text, int64_t least, int64_t most, int64_t *out)
{
    if (text && (!slice_to_i64(slice_of(text), out) || *out < least || *out > most)) {
        if (most < INT64_MAX) {
            (void)usage_error(ctl, "%s is a whole number from %lld to %lld, not \"%s\"", name, (long long)least,
                              (long long)most, text);
        } else {
            (void)usage_error(ctl, "%s is a whole number from %lld on, not \"%s\"", name, (long long)least, text);
        }
        return false;
    }
    return true;
}

static int run_calls(struct ctl *ctl, const struct bench_words *words)
{
    struct bench_calls_options o = {.ctl = ctl, .tool = words->tool, .args = SLICE("{}"), .count = 10000,
                                    .concurrency = 64, .warmup = -1, .per_run = 1, .duplicates = words->duplicates,
                                    .rounds = words->duplicates ? 3 : 1};

    if (words->sagas || words->steps || words->id_prefix || words->input) {
        return usage_error(ctl, "--sagas, --steps, --id-prefix and --input are for --saga");
    }
    if (!read_number(ctl, "--number", words->number, 1, INT64_MAX, &o.count) ||
        !read_number(ctl, "--seconds", words->seconds, 1, INT64_MAX / 1000000, &o.seconds) ||
        !read_number(ctl, "--concurrency", words->concurrency, 1, 10000, &o.concurrency) ||
        !read_number(ctl, "--rate", words->rate, 1, INT64_MAX, &o.rate) ||
        !read_number(ctl, "--warmup", words->warmup, 0, INT64_MAX, &o.warmup) ||
        !read_number(ctl, "--per-run", words->per_run, 1, INT64_MAX, &o.per_run) ||
        !read_number(ctl, "--rounds", words->rounds, 1, BENCH_ROUNDS_MAX, &o.rounds) ||
        (words->args && !read_json_argument(ctl, "--args", words->args, &o.args))) {
        return EXIT_USAGE;
    }
    o.warmup = o.warmup < 0 ? o.concurrency : o.warmup;
    return bench_calls(&o);
}

static int run_sagas(struct ctl *ctl, const struct bench_words *words)
{
    struct bench bench = {.driver = {.ctl = ctl, .noun = "sagas to warm up", .concurrency = 64, .begin = begin,
                                     .answered = answered},
                          .saga = words->saga, .id_prefix = words->id_prefix, .input = SLICE("{}"), .sagas = 10000,
                          .warmup = -1, .steps = -1};
    int64_t rate = 0;

    if (words->args || words->number || words->per_run || words->rounds || words->duplicates) {
        return usage_error(ctl, "--args, --number, --per-run, --rounds and --duplicates are for --calls");
    }
    if (!read_number(ctl, "--sagas", words->sagas, 1, INT64_MAX, &bench.sagas) ||
        !read_number(ctl, "--seconds", words->seconds, 1, INT64_MAX / 1000000, &bench.seconds) ||
        !read_number(ctl, "--concurrency", words->concurrency, 1, 10000, &bench.driver.concurrency) ||
        !read_number(ctl, "--rate", words->rate, 1, INT64_MAX, &rate) ||
        !read_number(ctl, "--warmup", words->warmup, 0, INT64_MAX, &bench.warmup) ||
        !read_number(ctl, "--steps", words->steps, 0, INT64_MAX, &bench.steps) ||
        (words->input && !read_json_argument(ctl, "--input", words->input, &bench.input))) {
        return EXIT_USAGE;
    }
    bench.warmup = bench.warmup < 0 ? bench.driver.concurrency : bench.warmup;
    return run(&bench, rate);
}

int cmd_bench(struct ctl *ctl, int argc, char **argv)
{
    struct bench_words words = {0};
    const struct option options[] = {{"--saga", &words.saga, NULL, NULL},
                                     {"--input", &words.input, NULL, NULL},
                                     {"--sagas", &words.sagas, NULL, NULL},
                                     {"--steps", &words.steps, NULL, NULL},
                                     {"--id-prefix", &words.id_prefix, NULL, NULL},
                                     {"--calls", &words.tool, NULL, NULL},
                                     {"--args", &words.args, NULL, NULL},
                                     {"--number", &words.number, NULL, NULL},
                                     {"--per-run", &words.per_run, NULL, NULL},
                                     {"--rounds", &words.rounds, NULL, NULL},
                                     {"--duplicates", NULL, NULL, &words.duplicates},
                                     {"--seconds", &words.seconds, NULL, NULL},
                                     {"--concurrency", &words.concurrency, NULL, NULL},
                                     {"--rate", &words.rate, NULL, NULL},
                                     {"--warmup", &words.warmup, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments none;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count != 0 || !words.saga == !words.tool) {
        return usage_error(ctl, "what? --saga NAME, or --calls TOOL");
    }
    if (words.seconds && (words.sagas || words.number)) {
        return usage_error(ctl, "a number (--sagas, --number) or --seconds, not both");
    }
    if (words.id_prefix && strlen(words.id_prefix) > 128) {
        return usage_error(ctl, "--id-prefix is 128 bytes at most");
    }
    if (strpbrk(words.saga ? words.saga : words.tool, "\"\\")) {
        return usage_error(ctl, "\"%s\" is no name", words.saga ? words.saga : words.tool);
    }
    return words.tool ? run_calls(ctl, &words) : run_sagas(ctl, &words);
}
