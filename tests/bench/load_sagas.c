/*
 * bench-load --saga: starts sagas over the public API, and tells their ends in one of three ways. By the answer, which
 * is held until the saga has ended (?wait): each has its time from start to end. Not at all: what is measured are
 * acknowledgements. Or by the service's own count of ends, /metrics, for when more are in flight than connections could
 * wait for, or many are started by one request.
 */
#include <stdio.h>
#include <string.h>

#include "tests/bench/load.h"
#include "tests/bench/load_driver.h"
#include "tools/sagactl/client.h"

struct sagas {
    struct driver driver;
    const struct load_sagas_options *o;
    struct slice path, body; /* body: without business ids */
    int64_t steps;
    uint64_t numbered;
    uint64_t acknowledged; /* by answers without an end */
    uint64_t sent;         /* starts in requests that are not answered yet */
    uint64_t wanted;       /* of this round; 0: as many as fit */
    uint64_t completed, compensated, escalated, abandoned;
    uint64_t ended_before, ended_watched; /* as the service counts, when the round began and since */
};

/* --- what is sent --- */

static void put_start(struct sagas *sagas, struct json_writer *w)
{
    char id[160];

    json_object_begin(w, NULL);
    json_write_text(w, "saga", sagas->o->saga);
    if (sagas->o->id_prefix) {
        (void)snprintf(id, sizeof(id), "%s%llu", sagas->o->id_prefix, (unsigned long long)sagas->numbered++);
        json_write_text(w, "id", id);
    }
    json_write_raw(w, "input", sagas->o->input);
    json_object_end(w);
}

static void put_request(struct sagas *sagas, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    if (sagas->o->batch == 0) {
        put_start(sagas, &w);
        return;
    }
    json_array_begin(&w, NULL);
    for (int64_t i = 0; i < sagas->o->batch; i++) {
        put_start(sagas, &w);
    }
    json_array_end(&w);
}

static uint64_t starts_of_request(const struct sagas *sagas)
{
    return sagas->o->batch > 0 ? (uint64_t)sagas->o->batch : 1;
}

static void begin(struct driver *driver, struct wire_connection *c, uint64_t number)
{
    struct sagas *sagas = container_of(driver, struct sagas, driver);
    struct slice body = sagas->body;
    struct buffer own = {0};

    (void)number; /* ids go on over the warm-up */
    if (sagas->o->id_prefix) {
        buffer_init(&own, (sagas->o->input.len + 512) * starts_of_request(sagas) + 64);
        put_request(sagas, &own);
        body = buffer_slice(&own);
    }
    sagas->sent += starts_of_request(sagas);
    driver_send(driver, c, "POST", sagas->path, body);
    buffer_fini(&own);
}

/* --- what comes back --- */

static bool note_end(struct sagas *sagas, struct slice saga)
{
    struct slice status = json_member(saga, "status");

    if (json_string_is(status, "completed")) {
        sagas->completed++;
    } else if (json_string_is(status, "compensated")) {
        sagas->compensated++;
    } else if (json_string_is(status, "abandoned")) {
        sagas->abandoned++;
    } else if (json_string_is(status, "escalated")) {
        sagas->escalated++;
    } else {
        return false;
    }
    return true;
}

/* Some of a batch were refused because there was no room: the next batches come in their place. */
static void replace_refused(struct sagas *sagas)
{
    struct driver *driver = &sagas->driver;
    uint64_t all = sagas->acknowledged + driver->errors + sagas->sent, in_request = starts_of_request(sagas);

    if (sagas->wanted > all) {
        driver->count = (int64_t)(driver->begun + (sagas->wanted - all + in_request - 1) / in_request);
    }
}

static void note_batch(struct sagas *sagas, struct slice body)
{
    struct json_walk walk = json_walk(json_member(body, "items"));
    uint64_t refused = sagas->driver.refused;
    struct slice item;

    while (json_next_element(&walk, &item)) {
        int64_t status = 0, again_s = 1;

        (void)json_i64(json_member(item, "status"), &status); /* 0: no answer that we know */
        if (status == 200 || status == 201) {
            sagas->acknowledged++;
        } else if (status == 503) {
            (void)json_i64(json_member(item, "retry_after"), &again_s);
            driver_hold(&sagas->driver, again_s);
            sagas->driver.refused++;
        } else {
            driver_fail(&sagas->driver, (int)status, json_member(item, "body"));
        }
    }
    if (sagas->driver.refused > refused) {
        replace_refused(sagas);
    }
}

static bool answered(struct driver *driver, struct wire_connection *c, int status, struct slice body)
{
    struct sagas *sagas = container_of(driver, struct sagas, driver);
    struct slice id = json_member(body, "id");

    sagas->sent -= starts_of_request(sagas);
    if (status != 200 && status != 201) {
        driver_fail(driver, status, body);
    } else if (sagas->o->batch > 0) {
        note_batch(sagas, body);
    } else if (!sagas->o->wait) {
        sagas->acknowledged++;
    } else if (!note_end(sagas, body)) {
        if (json_type(id) == JSON_STRING) { /* the wait was over, the saga is not */
            char path[96];

            (void)snprintf(path, sizeof(path), "/v1/sagas/%.*s?wait=30s", (int)id.len - 2, id.ptr + 1);
            driver_send(driver, c, "GET", slice_of(path), SLICE(""));
            sagas->sent += starts_of_request(sagas);
            return false;
        }
        driver_fail(driver, status, body);
    }
    return true;
}

/* --- ends, as the service counts them --- */

static uint64_t metric(struct slice page, const char *name)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = memmem(page.ptr, page.len, line, (size_t)len);
    uint64_t value = 0;

    for (at = at ? at + len : NULL; at && at < page.ptr + page.len && *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
    }
    return value;
}

static bool watched(struct driver *driver, struct slice page)
{
    struct sagas *sagas = container_of(driver, struct sagas, driver);
    uint64_t before = sagas->ended_watched, ended = 0;

    ended += metric(page, "sagad_sagas_completed_total");
    ended += metric(page, "sagad_sagas_compensated_total");
    ended += metric(page, "sagad_sagas_abandoned_total");
    if (driver->watch_begins) {
        sagas->ended_before = ended;
    }
    sagas->ended_watched = ended - sagas->ended_before;
    return sagas->ended_watched != before;
}

static bool has_room(const struct driver *driver)
{
    const struct sagas *sagas = container_of(driver, struct sagas, driver);
    uint64_t begun = sagas->acknowledged + sagas->sent + starts_of_request(sagas);

    return begun <= sagas->ended_watched + (uint64_t)sagas->o->in_flight;
}

static bool settled(const struct driver *driver)
{
    const struct sagas *sagas = container_of(driver, struct sagas, driver);

    return sagas->ended_watched >= sagas->acknowledged;
}

/* --- the report --- */

struct sagas_figures {
    uint64_t sagas; /* that ended, or, where their ends are nobody's business, that were acknowledged */
    double per_second, transitions_per_second;
};

static struct sagas_figures figures_of(const struct sagas *sagas)
{
    const struct driver *driver = &sagas->driver;
    double seconds = driver_seconds(driver);
    struct sagas_figures f = {.sagas = driver->watch    ? sagas->ended_watched
                                       : sagas->o->wait ? driver->ended
                                                        : sagas->acknowledged};

    f.per_second = seconds > 0 ? (double)f.sagas / seconds : 0;
    f.transitions_per_second = f.per_second * (double)(sagas->steps + 1);
    return f;
}

static void print_figures_json(const struct sagas *sagas, const struct sagas_figures *f)
{
    const struct driver *driver = &sagas->driver;
    const struct load_sagas_options *o = sagas->o;

    (void)printf("{\"saga\":\"%s\",\"concurrency\":%lld,\"rate\":%lld,\"batch\":%lld,\"in_flight\":%lld,\"wait\":%s,"
                 "\"seconds\":%.3f,\"sagas\":%llu,\"completed\":%llu,\"compensated\":%llu,\"escalated\":%llu,"
                 "\"abandoned\":%llu,\"errors\":%llu,\"refused\":%llu,",
                 o->saga, (long long)o->concurrency, (long long)o->rate, (long long)o->batch, (long long)o->in_flight,
                 o->wait ? "true" : "false", driver_seconds(driver), (unsigned long long)f->sagas,
                 (unsigned long long)sagas->completed, (unsigned long long)sagas->compensated,
                 (unsigned long long)sagas->escalated, (unsigned long long)sagas->abandoned,
                 (unsigned long long)driver->errors, (unsigned long long)driver->refused);
    (void)printf("\"sagas_per_second\":%.1f,\"transitions_per_second\":%.1f,\"driver_cpu_seconds\":%.3f,"
                 "\"latency_ms\":{\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"max\":%.3f}}\n",
                 f->per_second, f->transitions_per_second, driver->cpu_seconds, driver_percentile_ms(driver, 0.5),
                 driver_percentile_ms(driver, 0.95), driver_percentile_ms(driver, 0.99),
                 driver_percentile_ms(driver, 1));
}

static void print_text(const struct sagas *sagas, const struct sagas_figures *f)
{
    const struct driver *driver = &sagas->driver;
    const struct load_sagas_options *o = sagas->o;

    (void)printf("%s: %llu sagas in %.1f s over %lld connections%s", o->saga, (unsigned long long)f->sagas,
                 driver_seconds(driver), (long long)o->concurrency, o->rate > 0 ? ", open loop" : "");
    if (o->batch > 0) {
        (void)printf(", %lld in a batch", (long long)o->batch);
    }
    if (o->in_flight > 0) {
        (void)printf(", %lld in flight", (long long)o->in_flight);
    }
    (void)putchar('\n');
    if (o->wait) {
        (void)printf("  ended        completed %llu, compensated %llu, escalated %llu, abandoned %llu",
                     (unsigned long long)sagas->completed, (unsigned long long)sagas->compensated,
                     (unsigned long long)sagas->escalated, (unsigned long long)sagas->abandoned);
    } else {
        (void)printf("  acknowledged %llu", (unsigned long long)sagas->acknowledged);
    }
    (void)printf("; errors %llu, told to come again %llu\n", (unsigned long long)driver->errors,
                 (unsigned long long)driver->refused);
    (void)printf("  sagas        %.1f a second\n", f->per_second);
    if (o->wait || driver->watch) {
        (void)printf("  transitions  %.1f a second (%lld steps and the end)\n", f->transitions_per_second,
                     (long long)sagas->steps);
    }
    (void)printf("  latency      p50 %.2f ms  p95 %.2f ms  p99 %.2f ms  max %.2f ms, %s\n",
                 driver_percentile_ms(driver, 0.5), driver_percentile_ms(driver, 0.95),
                 driver_percentile_ms(driver, 0.99), driver_percentile_ms(driver, 1),
                 o->wait ? "from start to end" : "until the acknowledgement");
}

/* --- a run --- */

static int read_steps(struct sagas *sagas)
{
    struct ctl *ctl = sagas->driver.ctl;
    struct slice name = url_escape(slice_of(sagas->o->saga), &ctl->arena);
    struct answer answer;
    int code =
        client_get(ctl, arena_printf(&ctl->arena, "/v1/definitions/%.*s", SLICE_ARG(name)), &ctl->arena, &answer);

    if (code == EXIT_OK) {
        sagas->steps = (int64_t)json_count(json_member(json_member(answer.body, "body"), "steps"));
    }
    return code;
}

static bool run_round(struct sagas *sagas, int64_t sagas_wanted, int64_t seconds)
{
    int64_t in_request = (int64_t)starts_of_request(sagas);

    sagas->wanted = seconds > 0 ? 0 : (uint64_t)sagas_wanted;
    sagas->completed = sagas->compensated = sagas->escalated = sagas->abandoned = 0;
    sagas->acknowledged = sagas->sent = sagas->ended_watched = 0;
    return driver_run(&sagas->driver, (sagas_wanted + in_request - 1) / in_request, seconds);
}

int load_sagas(const struct load_sagas_options *o)
{
    struct sagas sagas = {.driver = {.ctl = o->ctl,
                                     .noun = "requests to warm up",
                                     .concurrency = o->concurrency,
                                     .begin = begin,
                                     .answered = answered},
                          .o = o,
                          .steps = o->steps};
    struct driver *driver = &sagas.driver;
    uint64_t in_request = starts_of_request(&sagas);
    struct buffer body;
    int code = o->steps < 0 ? read_steps(&sagas) : EXIT_OK;

    if (code != EXIT_OK) {
        return code;
    }
    if (o->in_flight > 0) {
        driver->watch = "/metrics";
        driver->watched = watched;
        driver->has_room = has_room;
        driver->settled = settled;
    }
    buffer_init(&body, (o->input.len + 512) * in_request + 64);
    if (!o->id_prefix) {
        put_request(&sagas, &body);
    }
    sagas.body = buffer_slice(&body);
    sagas.path = o->batch > 0 ? SLICE("/v1/sagas/batch") : o->wait ? SLICE("/v1/sagas?wait=30s") : SLICE("/v1/sagas");
    code = driver_open(driver);
    if (code != EXIT_OK) {
        buffer_fini(&body);
        return code;
    }
    bool ok = o->warmup == 0 || run_round(&sagas, o->warmup * (int64_t)in_request, 0);

    driver->noun = o->batch > 0 ? "batches" : "sagas";
    driver->rate = o->rate;
    ok = ok && run_round(&sagas, o->sagas, o->seconds);
    if (ok) {
        struct sagas_figures figures = figures_of(&sagas);

        if (o->ctl->output == OUTPUT_DATA) {
            print_figures_json(&sagas, &figures);
        } else {
            print_text(&sagas, &figures);
        }
        driver_tell_errors(driver);
    }
    driver_close(driver);
    buffer_fini(&body);
    return ok && driver->errors == 0 ? EXIT_OK : EXIT_FAILED;
}
