/*
 * bench: drives sagas through the public API and says how fast that went.
 *
 * Closed loop: each connection starts its next saga when the one before has ended. Open loop (--rate): sagas are due at
 * fixed instants, and latency counts from the instant a saga was due, also when no connection was free then; a slow
 * service cannot hide by slowing its driver down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/bench_wire.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

#define PROGRESS_US 1000000
#define STALL_US 60000000

const char help_bench[] =
    "sagactl bench --saga NAME [--input JSON|@FILE] [--sagas N | --seconds S] [--concurrency C] [--rate R]\n"
    "              [--warmup N] [--steps K] [--id-prefix TEXT]\n"
    "\n"
    "Starts sagas over the public API, each with ?wait, and counts each until its end. Prints sagas\n"
    "and transitions a second and the percentiles of the time from start to end. A transition is a\n"
    "durable change of a saga: one for each step and one for its end (--steps, default: the steps of\n"
    "the definition).\n"
    "\n"
    "  --sagas N         how many (default 10000); --seconds S: as many as fit\n"
    "  --concurrency C   connections, one saga in flight on each (default 64)\n"
    "  --rate R          open loop: R starts a second, whatever the service does\n"
    "  --warmup N        so many first, not counted (default: as many as connections)\n"
    "  --id-prefix TEXT  give each a business id, TEXT and a number\n"
    "\n"
    "Exits 1 when a start failed or a saga did not end.\n"
    "\n"
    "  sagactl bench --saga w1 --sagas 100000 --concurrency 256\n"
    "  sagactl bench --saga order --input @order.json --rate 500 --seconds 30 -o json\n";

struct bench {
    struct ctl *ctl;
    struct wire *wire;
    struct slice head_start; /* of the request, up to the value of Content-Length */
    struct slice body;       /* without a business id */
    const char *saga, *id_prefix;
    struct slice input;
    int64_t concurrency, sagas, seconds, warmup, steps, rate;

    bool counting, open;
    int64_t begun_us, ends_us, stop_us;
    uint64_t started, ended, in_flight, numbered;
    uint64_t completed, compensated, escalated, abandoned, errors;
    int last_error_status;
    char last_error[200];
    uint32_t *latencies_us;
    size_t latency_count, latency_capacity;
    size_t *idle; /* a stack of connection indexes */
    size_t idle_count;
    int64_t moved_us; /* when an answer came last */
};

/* --- a saga on a connection --- */

static void bench_send(struct bench *bench, struct wire_connection *c, int64_t due_us)
{
    char head[64];
    struct slice body = bench->body;
    struct buffer own = {0};
    struct buffer whole;

    if (bench->id_prefix) {
        struct json_writer w;

        buffer_init(&own, body.len + 512);
        json_writer_init(&w, &own);
        json_object_begin(&w, NULL);
        json_write_text(&w, "saga", bench->saga);
        json_write_slice(
            &w, "id",
            arena_printf(&bench->ctl->arena, "%s%llu", bench->id_prefix, (unsigned long long)bench->numbered));
        json_write_raw(&w, "input", bench->input);
        json_object_end(&w);
        body = buffer_slice(&own);
    }
    bench->numbered++;
    c->begun_us = due_us;
    bench->started++;
    bench->in_flight++;
    buffer_init(&whole, bench->head_start.len + sizeof(head));
    buffer_put_slice(&whole, bench->head_start);
    buffer_printf(&whole, "%zu\r\n\r\n", body.len);
    wire_send(c, buffer_slice(&whole), body);
    buffer_fini(&whole);
    buffer_fini(&own);
}

static void bench_wait_on(struct bench *bench, struct wire_connection *c, struct slice id)
{
    struct slice head = arena_printf(
        &bench->ctl->arena, "GET /v1/sagas/%.*s?wait=30s HTTP/1.1\r\n%.*s0\r\n\r\n", SLICE_ARG(id),
        (int)(bench->head_start.len - (size_t)(strchr(bench->head_start.ptr, '\n') + 1 - bench->head_start.ptr)),
        strchr(bench->head_start.ptr, '\n') + 1);

    wire_send(c, head, SLICE(""));
}

static void bench_note_latency(struct bench *bench, int64_t us)
{
    if (bench->latency_count == bench->latency_capacity) {
        bench->latency_capacity = bench->latency_capacity ? bench->latency_capacity * 2 : 65536;
        bench->latencies_us = memory_grow(bench->latencies_us, bench->latency_capacity * sizeof(*bench->latencies_us));
    }
    bench->latencies_us[bench->latency_count++] = (uint32_t)(us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : us);
}

static bool bench_note_end(struct bench *bench, struct slice saga)
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

static void bench_note_error(struct bench *bench, int status, struct slice body)
{
    struct slice detail = status ? json_member(body, "detail") : SLICE("\"a connection was lost\"");

    bench->errors++;
    bench->last_error_status = status;
    (void)snprintf(bench->last_error, sizeof(bench->last_error), "%.*s",
                   SLICE_ARG(detail.ptr ? detail : SLICE("\"no detail\"")));
}

static void bench_release(struct bench *bench, struct wire_connection *c)
{
    bench->in_flight--;
    bench->idle[bench->idle_count++] = c->index;
}

static void on_answer(struct wire_connection *c, int status, struct slice body, void *context)
{
    struct bench *bench = context;
    int64_t now_us = wire_now_us();

    bench->moved_us = now_us;
    if (status == 200 || status == 201) {
        if (!bench_note_end(bench, body)) {
            struct slice id = json_member(body, "id");

            if (json_type(id) == JSON_STRING) {
                bench_wait_on(bench, c,
                              (struct slice){id.ptr + 1, id.len - 2}); /* the wait was over, the saga is not */
                return;
            }
            bench_note_error(bench, status, body);
        }
        bench->ended++;
        bench_note_latency(bench, now_us - c->begun_us);
    } else {
        bench_note_error(bench, status, body);
    }
    bench_release(bench, c);
}

/* --- a run --- */

static void bench_reset(struct bench *bench)
{
    bench->started = bench->ended = bench->completed = bench->compensated = bench->escalated = bench->abandoned =
        bench->errors = 0;
    bench->latency_count = 0;
}

static bool bench_may_start(const struct bench *bench, int64_t sagas, int64_t now_us)
{
    return bench->stop_us ? now_us < bench->stop_us : bench->started < (uint64_t)sagas;
}

/* In an open loop, saga number n is due n/rate after the begin. */
static int64_t bench_due_us(const struct bench *bench)
{
    return bench->begun_us + (int64_t)((double)bench->started * 1e6 / (double)bench->rate);
}

static void bench_start_due(struct bench *bench, int64_t sagas)
{
    int64_t now_us = wire_now_us();

    while (bench->idle_count > 0 && bench_may_start(bench, sagas, now_us)) {
        int64_t due_us = bench->open ? bench_due_us(bench) : now_us;

        if (due_us > now_us) {
            break;
        }
        bench_send(bench, wire_connection_at(bench->wire, bench->idle[--bench->idle_count]), due_us);
    }
}

static void bench_progress(const struct bench *bench, int64_t sagas, int64_t now_us)
{
    double seconds = (double)(now_us - bench->begun_us) / 1e6;

    if (bench->stop_us) {
        progress_show(bench->ctl, "%llu ended, %.0f s of %lld, %.0f a second, %llu errors",
                      (unsigned long long)bench->ended, seconds, (long long)bench->seconds,
                      (double)bench->ended / (seconds > 0 ? seconds : 1), (unsigned long long)bench->errors);
    } else {
        progress_show(bench->ctl, "%s%llu of %lld ended, %.0f a second, %llu errors",
                      bench->counting ? "" : "warming up: ", (unsigned long long)bench->ended, (long long)sagas,
                      (double)bench->ended / (seconds > 0 ? seconds : 1), (unsigned long long)bench->errors);
    }
}

static bool bench_run(struct bench *bench, int64_t sagas, int64_t seconds)
{
    int64_t shown_us;

    bench_reset(bench);
    bench->begun_us = bench->moved_us = shown_us = wire_now_us();
    bench->stop_us = seconds ? bench->begun_us + seconds * 1000000 : 0;
    for (;;) {
        int64_t now_us;

        bench_start_due(bench, sagas);
        now_us = wire_now_us();
        if (bench->in_flight == 0 && !bench_may_start(bench, sagas, now_us)) {
            break;
        }
        if (bench->in_flight > 0 && now_us - bench->moved_us > STALL_US) {
            progress_clear(bench->ctl);
            (void)fprintf(stderr, "sagactl: nothing moved for 60 s with %llu sagas in flight\n",
                          (unsigned long long)bench->in_flight);
            return false;
        }
        if (bench->errors > 1000 && bench->ended == 0) {
            break;
        }
        int64_t patience_us = bench->open && bench->idle_count > 0 ? bench_due_us(bench) - now_us : 100000;

        wire_poll(bench->wire, patience_us < 100000 ? patience_us : 100000);
        if (now_us - shown_us > PROGRESS_US) {
            shown_us = now_us;
            bench_progress(bench, sagas, now_us);
        }
    }
    bench->ends_us = wire_now_us();
    progress_clear(bench->ctl);
    return true;
}

/* --- the report --- */

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static double percentile_ms(const struct bench *bench, double part)
{
    size_t index = (size_t)(part * (double)bench->latency_count);

    if (bench->latency_count == 0) {
        return 0;
    }
    return (double)bench->latencies_us[index < bench->latency_count ? index : bench->latency_count - 1] / 1000.0;
}

static void report(struct bench *bench)
{
    double seconds = (double)(bench->ends_us - bench->begun_us) / 1e6;
    double rate = seconds > 0 ? (double)bench->ended / seconds : 0;

    qsort(bench->latencies_us, bench->latency_count, sizeof(*bench->latencies_us), compare_u32);
    if (bench->ctl->output == OUTPUT_JSON) {
        (void)printf("{\"saga\":\"%s\",\"concurrency\":%lld,\"rate\":%lld,\"seconds\":%.3f,\"sagas\":%llu,"
                     "\"completed\":%llu,\"compensated\":%llu,"
                     "\"escalated\":%llu,\"abandoned\":%llu,\"errors\":%llu,\"sagas_per_second\":%.1f,\"transitions_"
                     "per_second\":%.1f,"
                     "\"latency_ms\":{\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"max\":%.3f}}\n",
                     bench->saga, (long long)bench->concurrency, (long long)bench->rate, seconds,
                     (unsigned long long)bench->ended, (unsigned long long)bench->completed,
                     (unsigned long long)bench->compensated, (unsigned long long)bench->escalated,
                     (unsigned long long)bench->abandoned, (unsigned long long)bench->errors, rate,
                     rate * (double)(bench->steps + 1), percentile_ms(bench, 0.5), percentile_ms(bench, 0.95),
                     percentile_ms(bench, 0.99), percentile_ms(bench, 1));
    } else {
        (void)printf("%s: %llu sagas in %.1f s over %lld connections%s\n", bench->saga,
                     (unsigned long long)bench->ended, seconds, (long long)bench->concurrency,
                     bench->open ? ", open loop" : "");
        (void)printf("  ended        completed %llu, compensated %llu, escalated %llu, abandoned %llu; errors %llu\n",
                     (unsigned long long)bench->completed, (unsigned long long)bench->compensated,
                     (unsigned long long)bench->escalated, (unsigned long long)bench->abandoned,
                     (unsigned long long)bench->errors);
        (void)printf("  sagas        %.1f a second\n  transitions  %.1f a second (%lld steps and the end)\n", rate,
                     rate * (double)(bench->steps + 1), (long long)bench->steps);
        (void)printf("  latency      p50 %.2f ms  p95 %.2f ms  p99 %.2f ms  max %.2f ms\n", percentile_ms(bench, 0.5),
                     percentile_ms(bench, 0.95), percentile_ms(bench, 0.99), percentile_ms(bench, 1));
    }
    if (bench->errors > 0) {
        (void)fprintf(stderr, "sagactl: %llu errors, the last: %d %s\n", (unsigned long long)bench->errors,
                      bench->last_error_status, bench->last_error);
    }
}

/* --- setting up --- */

static bool split_server(struct ctl *ctl, char host[256], char port[8])
{
    const char *at = ctl->server + 7, *colon;
    size_t len = strcspn(at, "/");

    if (strncmp(ctl->server, "http://", 7) != 0) {
        (void)usage_error(ctl, "bench speaks plain http only");
        return false;
    }
    colon = memrchr(at, ':', len);
    if (colon && memchr(colon, ']', (size_t)(at + len - colon))) {
        colon = NULL; /* within an IPv6 address */
    }
    size_t host_len = colon ? (size_t)(colon - at) : len;
    bool bracketed = host_len > 2 && at[0] == '[';

    (void)snprintf(host, 256, "%.*s", (int)(bracketed ? host_len - 2 : host_len), bracketed ? at + 1 : at);
    (void)snprintf(port, 8, "%.*s", colon ? (int)(at + len - colon - 1) : 2, colon ? colon + 1 : "80");
    return true;
}

static int read_steps(struct bench *bench)
{
    struct ctl *ctl = bench->ctl;
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

static void prepare(struct bench *bench, const char *host, const char *port)
{
    struct ctl *ctl = bench->ctl;
    bool v6 = strchr(host, ':') != NULL;

    bench->head_start =
        arena_printf(&ctl->arena,
                     "POST /v1/sagas?wait=30s HTTP/1.1\r\nHost: %s%s%s:%s\r\n%s%s%sContent-Type: "
                     "application/json\r\nContent-Length: ",
                     v6 ? "[" : "", host, v6 ? "]" : "", port, ctl->token ? "Authorization: Bearer " : "",
                     ctl->token ? ctl->token : "", ctl->token ? "\r\n" : "");
    bench->input = bench->input.ptr ? bench->input : SLICE("{}");
    bench->body = arena_printf(&ctl->arena, "{\"saga\":\"%s\",\"input\":%.*s}", bench->saga, SLICE_ARG(bench->input));
    bench->idle = arena_array(&ctl->arena, (size_t)bench->concurrency, sizeof(*bench->idle));
    for (size_t i = 0; i < (size_t)bench->concurrency; i++) {
        bench->idle[bench->idle_count++] = i;
    }
}

static int run(struct bench *bench)
{
    struct ctl *ctl = bench->ctl;
    char host[256], port[8];
    struct err err = {0};
    int code = EXIT_USAGE;

    if (!split_server(ctl, host, port)) {
        return EXIT_USAGE;
    }
    code = bench->steps < 0 ? read_steps(bench) : EXIT_OK;
    if (code != EXIT_OK) {
        return code;
    }
    prepare(bench, host, port);
    struct wire_options options = {.host = host,
                                   .port = port,
                                   .connections = (size_t)bench->concurrency,
                                   .on_answer = on_answer,
                                   .context = bench};

    if (wire_open(&options, &bench->wire, &err) != ERR_OK) {
        err_print(&err, "sagactl");
        return EXIT_UNREACHABLE;
    }
    bool ok = bench->warmup == 0 || bench_run(bench, bench->warmup, 0);

    bench->counting = true;
    bench->open = bench->rate > 0;
    ok = ok && bench_run(bench, bench->sagas, bench->seconds);
    if (ok) {
        report(bench);
    }
    wire_close(bench->wire);
    return ok && bench->errors == 0 ? EXIT_OK : EXIT_FAILED;
}

static bool read_number(struct ctl *ctl, const char *name, const char *text, int64_t least, int64_t *out)
{
    if (text && (!slice_to_i64(slice_of(text), out) || *out < least)) {
        (void)usage_error(ctl, "%s is a whole number from %lld on, not \"%s\"", name, (long long)least, text);
        return false;
    }
    return true;
}

int cmd_bench(struct ctl *ctl, int argc, char **argv)
{
    struct bench bench = {.ctl = ctl, .concurrency = 64, .sagas = 10000, .warmup = -1, .steps = -1};
    const char *input = NULL, *sagas = NULL, *seconds = NULL, *concurrency = NULL, *rate = NULL, *warmup = NULL,
               *steps = NULL;
    const struct option options[] = {{"--saga", &bench.saga, NULL, NULL},
                                     {"--input", &input, NULL, NULL},
                                     {"--sagas", &sagas, NULL, NULL},
                                     {"--seconds", &seconds, NULL, NULL},
                                     {"--concurrency", &concurrency, NULL, NULL},
                                     {"--rate", &rate, NULL, NULL},
                                     {"--warmup", &warmup, NULL, NULL},
                                     {"--steps", &steps, NULL, NULL},
                                     {"--id-prefix", &bench.id_prefix, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments none;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count != 0 || !bench.saga) {
        return usage_error(ctl, "which saga? --saga NAME");
    }
    if (sagas && seconds) {
        return usage_error(ctl, "--sagas or --seconds, not both");
    }
    if (strpbrk(bench.saga, "\"\\")) {
        return usage_error(ctl, "\"%s\" is no name of a saga", bench.saga);
    }
    if (!read_number(ctl, "--sagas", sagas, 1, &bench.sagas) ||
        !read_number(ctl, "--seconds", seconds, 1, &bench.seconds) ||
        !read_number(ctl, "--concurrency", concurrency, 1, &bench.concurrency) ||
        !read_number(ctl, "--rate", rate, 1, &bench.rate) || !read_number(ctl, "--warmup", warmup, 0, &bench.warmup) ||
        !read_number(ctl, "--steps", steps, 0, &bench.steps)) {
        return EXIT_USAGE;
    }
    if (bench.concurrency > 10000) {
        return usage_error(ctl, "--concurrency is 10000 at most");
    }
    if (input && !read_json_argument(ctl, "--input", input, &bench.input)) {
        return EXIT_USAGE;
    }
    bench.warmup = bench.warmup < 0 ? bench.concurrency : bench.warmup;
    int code = run(&bench);

    free(bench.latencies_us);
    return code;
}
