/* See load_driver.h. */
#include "tests/bench/load_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/sagactl/output.h"

#define PROGRESS_US 1000000
#define STALL_US 60000000
#define ERRORS_HOPELESS 1000 /* so many and nothing that went well: the rest would go the same way */

void driver_send(struct driver *driver, struct wire_connection *c, const char *method, struct slice path,
                 struct slice body)
{
    struct buffer head;

    buffer_init(&head, 65536);
    buffer_printf(&head, "%s %.*s HTTP/1.1\r\n%.*s%zu\r\n\r\n", method, SLICE_ARG(path), SLICE_ARG(driver->head_tail),
                  body.len);
    wire_send(c, buffer_slice(&head), body);
    buffer_fini(&head);
}

void driver_fail(struct driver *driver, int status, struct slice body)
{
    struct slice detail = status ? json_member(body, "detail") : SLICE("\"a connection was lost\"");

    driver->errors++;
    driver->last_error_status = status;
    (void)snprintf(driver->last_error, sizeof(driver->last_error), "%.*s",
                   SLICE_ARG(detail.ptr ? detail : SLICE("\"no detail\"")));
}

static void note_latency(struct driver *driver, int64_t us)
{
    if (driver->latency_count == driver->latency_capacity) {
        driver->latency_capacity = driver->latency_capacity ? driver->latency_capacity * 2 : 65536;
        driver->latencies_us =
            memory_grow(driver->latencies_us, driver->latency_capacity * sizeof(*driver->latencies_us));
    }
    driver->latencies_us[driver->latency_count++] = (uint32_t)(us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : us);
}

/* --- those that are to come again --- */

static void rest(struct driver *driver, struct wire_connection *c)
{
    c->again_us = wire_now_us() + (c->retry_after_s > 0 ? c->retry_after_s * 1000000 : 50000);
    if (driver->resting_count == 0 || c->again_us < driver->rested_us) {
        driver->rested_us = c->again_us;
    }
    driver->resting[driver->resting_count++] = c->index;
    driver->refused++;
}

void driver_hold(struct driver *driver, int64_t seconds)
{
    int64_t until_us = wire_now_us() + seconds * 1000000;

    driver->hold_us = until_us > driver->hold_us ? until_us : driver->hold_us;
}

static void wake_rested(struct driver *driver, int64_t now_us)
{
    if (driver->resting_count == 0 || now_us < driver->rested_us) {
        return;
    }
    size_t kept = 0;

    driver->rested_us = INT64_MAX;
    for (size_t i = 0; i < driver->resting_count; i++) {
        struct wire_connection *c = wire_connection_at(driver->wire, driver->resting[i]);

        if (c->again_us <= now_us) {
            wire_resend(c);
        } else {
            driver->resting[kept++] = c->index;
            driver->rested_us = c->again_us < driver->rested_us ? c->again_us : driver->rested_us;
        }
    }
    driver->resting_count = kept;
}

static bool may_begin(const struct driver *driver, int64_t now_us)
{
    return driver->stop_us ? now_us < driver->stop_us : driver->begun < (uint64_t)driver->count;
}

/* --- the watch --- */

/* A crowd of 1,024 ends within 50 ms, and the next one begins when that is known: what is not known for longer is
 * measured. */
#define WATCH_GAP_LEAST_US 2000
#define WATCH_GAP_MOST_US 8000

/* When to ask; INT64_MAX: nobody needs to know, or it is being asked. */
static int64_t watch_due_us(const struct driver *driver, int64_t now_us)
{
    bool wanted = driver->watch && !driver->watch_busy &&
                  (driver->watch_begins || !may_begin(driver, now_us) || !driver->has_room(driver));

    return wanted ? driver->watch_us : INT64_MAX;
}

static void watch_ask(struct driver *driver, int64_t now_us)
{
    if (now_us >= watch_due_us(driver, now_us)) {
        driver->watch_busy = true;
        driver_send(driver, wire_connection_at(driver->wire, (size_t)driver->concurrency), "GET",
                    slice_of(driver->watch), SLICE(""));
    }
}

/* Asks seldom while nothing changes and often while much does: the asking shall not be what is measured. */
static void watch_answered(struct driver *driver, int status, struct slice body)
{
    bool news = status == 200 && driver->watched(driver, body);

    driver->watch_busy = false;
    driver->watch_begins = driver->watch_begins && status != 200;
    driver->watch_gap_us = news ? driver->watch_gap_us / 2 : driver->watch_gap_us * 2;
    driver->watch_gap_us = driver->watch_gap_us < WATCH_GAP_LEAST_US  ? WATCH_GAP_LEAST_US
                           : driver->watch_gap_us > WATCH_GAP_MOST_US ? WATCH_GAP_MOST_US
                                                                      : driver->watch_gap_us;
    driver->watch_us = wire_now_us() + driver->watch_gap_us;
    if (news) {
        driver->moved_us = wire_now_us();
    }
}

static void on_answer(struct wire_connection *c, int status, struct slice body, void *context)
{
    struct driver *driver = context;
    uint64_t errors = driver->errors;

    if (c->index == (size_t)driver->concurrency) {
        watch_answered(driver, status, body);
        return;
    }
    if (status == 503 && c->retry_after_s >= 0) {
        rest(driver, c);
        return;
    }
    driver->moved_us = wire_now_us();
    if (!driver->answered(driver, c, status, body)) {
        return;
    }
    if (driver->errors == errors) {
        driver->ended++;
        note_latency(driver, driver->moved_us - c->begun_us);
    }
    driver->in_flight--;
    driver->idle[driver->idle_count++] = c->index;
}

/* --- a round --- */

/* In an open loop, number n is due n/rate after the begin. */
static int64_t due_us(const struct driver *driver)
{
    return driver->begun_us + (int64_t)((double)driver->begun * 1e6 / (double)driver->rate);
}

static bool has_room(const struct driver *driver)
{
    return !driver->watch || (!driver->watch_begins && driver->has_room(driver));
}

static void begin_due(struct driver *driver)
{
    int64_t now_us = wire_now_us();

    while (driver->idle_count > 0 && now_us >= driver->hold_us && may_begin(driver, now_us) && has_room(driver)) {
        int64_t at_us = driver->rate > 0 ? due_us(driver) : now_us;

        if (at_us > now_us) {
            break;
        }
        struct wire_connection *c = wire_connection_at(driver->wire, driver->idle[--driver->idle_count]);

        c->begun_us = at_us;
        driver->in_flight++;
        driver->begin(driver, c, driver->begun++);
    }
}

static void show_progress(const struct driver *driver, int64_t now_us)
{
    double seconds = (double)(now_us - driver->begun_us) / 1e6;
    double rate = (double)driver->ended / (seconds > 0 ? seconds : 1);

    if (driver->stop_us) {
        progress_show(driver->ctl, "%llu %s ended, %.0f s of %lld, %.0f a second, %llu errors",
                      (unsigned long long)driver->ended, driver->noun, seconds, (long long)driver->seconds, rate,
                      (unsigned long long)driver->errors);
    } else {
        progress_show(driver->ctl, "%llu of %lld %s ended, %.0f a second, %llu errors",
                      (unsigned long long)driver->ended, (long long)driver->count, driver->noun, rate,
                      (unsigned long long)driver->errors);
    }
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void round_reset(struct driver *driver, int64_t count, int64_t seconds)
{
    driver->begun = driver->ended = driver->errors = driver->refused = 0;
    driver->watch_begins = driver->watch != NULL;
    driver->watch_us = driver->hold_us = 0;
    driver->watch_gap_us = WATCH_GAP_LEAST_US;
    driver->latency_count = 0;
    driver->count = count;
    driver->seconds = seconds;
    driver->begun_us = driver->moved_us = wire_now_us();
    driver->stop_us = seconds ? driver->begun_us + seconds * 1000000 : 0;
}

static double cpu_now(void)
{
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) != 0) {
        return 0;
    }
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* How long there is nothing to do but to wait for answers. */
static int64_t patience_us(const struct driver *driver, int64_t now_us)
{
    int64_t until_us = now_us + 100000;

    if (driver->rate > 0 && driver->idle_count > 0 && may_begin(driver, now_us) && has_room(driver) &&
        due_us(driver) < until_us) {
        until_us = due_us(driver);
    }
    if (driver->resting_count > 0 && driver->rested_us < until_us) {
        until_us = driver->rested_us;
    }
    if (watch_due_us(driver, now_us) < until_us) {
        until_us = watch_due_us(driver, now_us);
    }
    return until_us - now_us;
}

static bool is_over(const struct driver *driver, int64_t now_us)
{
    return driver->in_flight == 0 && !may_begin(driver, now_us) &&
           (!driver->watch || (!driver->watch_begins && driver->settled(driver)));
}

bool driver_run(struct driver *driver, int64_t count, int64_t seconds)
{
    double cpu_begun = cpu_now();

    round_reset(driver, count, seconds);
    int64_t shown_us = driver->begun_us;

    for (;;) {
        begin_due(driver);
        int64_t now_us = wire_now_us();

        if (is_over(driver, now_us)) {
            break;
        }
        wake_rested(driver, now_us);
        watch_ask(driver, now_us);
        if ((driver->in_flight > 0 || driver->watch) && now_us - driver->moved_us > STALL_US) {
            progress_clear(driver->ctl);
            (void)fprintf(stderr, "bench-load: nothing moved for 60 s with %llu %s in flight\n",
                          (unsigned long long)driver->in_flight, driver->noun);
            return false;
        }
        if (driver->errors > ERRORS_HOPELESS && driver->ended == 0) {
            driver->count = 0; /* begin no more, and collect what is under way */
            driver->stop_us = 0;
        }
        wire_poll(driver->wire, patience_us(driver, now_us));
        if (now_us - shown_us > PROGRESS_US) {
            shown_us = now_us;
            show_progress(driver, now_us);
        }
    }
    driver->ended_us = wire_now_us();
    driver->cpu_seconds = cpu_now() - cpu_begun;
    progress_clear(driver->ctl);
    if (driver->latency_count > 0) {
        qsort(driver->latencies_us, driver->latency_count, sizeof(*driver->latencies_us), compare_u32);
    }
    return true;
}

double driver_seconds(const struct driver *driver)
{
    return (double)(driver->ended_us - driver->begun_us) / 1e6;
}

double driver_per_second(const struct driver *driver)
{
    double seconds = driver_seconds(driver);

    return seconds > 0 ? (double)driver->ended / seconds : 0;
}

double driver_percentile_ms(const struct driver *driver, double part)
{
    size_t index = (size_t)(part * (double)driver->latency_count);

    if (driver->latency_count == 0) {
        return 0;
    }
    return (double)driver->latencies_us[index < driver->latency_count ? index : driver->latency_count - 1] / 1000.0;
}

void driver_tell_errors(const struct driver *driver)
{
    if (driver->errors > 0) {
        (void)fprintf(stderr, "bench-load: %llu errors, the last: %d %s\n", (unsigned long long)driver->errors,
                      driver->last_error_status, driver->last_error);
    }
}

/* --- the beginning and the end --- */

static bool split_server(struct ctl *ctl, char host[256], char port[8], bool *tls)
{
    bool is_plain = strncmp(ctl->server, "http://", 7) == 0;
    const char *at, *colon;
    size_t len;

    *tls = strncmp(ctl->server, "https://", 8) == 0;
    if (!is_plain && !*tls) {
        (void)usage_error(ctl, "it speaks http and https only");
        return false;
    }
    at = ctl->server + (*tls ? 8 : 7);
    len = strcspn(at, "/");
    colon = memrchr(at, ':', len);
    if (colon && memchr(colon, ']', (size_t)(at + len - colon))) {
        colon = NULL; /* within an IPv6 address */
    }
    size_t host_len = colon ? (size_t)(colon - at) : len;
    bool bracketed = host_len > 2 && at[0] == '[';

    (void)snprintf(host, 256, "%.*s", (int)(bracketed ? host_len - 2 : host_len), bracketed ? at + 1 : at);
    (void)snprintf(port, 8, "%.*s", colon ? (int)(at + len - colon - 1) : 3, colon ? colon + 1 : *tls ? "443" : "80");
    return true;
}

int driver_open(struct driver *driver)
{
    struct ctl *ctl = driver->ctl;
    char host[256], port[8];
    struct err err = {0};
    bool tls;

    if (!split_server(ctl, host, port, &tls)) {
        return EXIT_USAGE;
    }
    bool v6 = strchr(host, ':') != NULL;
    struct wire_options options = {.host = host,
                                   .port = port,
                                   .tls = tls,
                                   .connections = (size_t)driver->concurrency + (driver->watch ? 1 : 0),
                                   .on_answer = on_answer,
                                   .context = driver};

    driver->head_tail = arena_printf(
        &ctl->arena, "Host: %s%s%s:%s\r\n%s%s%sContent-Type: application/json\r\nContent-Length: ", v6 ? "[" : "", host,
        v6 ? "]" : "", port, ctl->token ? "Authorization: Bearer " : "", ctl->token ? ctl->token : "",
        ctl->token ? "\r\n" : "");
    driver->idle = arena_array(&ctl->arena, (size_t)driver->concurrency, sizeof(*driver->idle));
    driver->resting = arena_array(&ctl->arena, (size_t)driver->concurrency, sizeof(*driver->resting));
    for (size_t i = 0; i < (size_t)driver->concurrency; i++) {
        driver->idle[driver->idle_count++] = i;
    }
    if (wire_open(&options, &driver->wire, &err) != ERR_OK) {
        err_print(&err, "bench-load");
        return EXIT_UNREACHABLE;
    }
    return EXIT_OK;
}

void driver_close(struct driver *driver)
{
    if (driver->wire) {
        wire_close(driver->wire);
    }
    free(driver->latencies_us);
    driver->wire = NULL;
    driver->latencies_us = NULL;
}
