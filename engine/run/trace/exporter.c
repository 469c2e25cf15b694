/* See exporter.h. */
#include "run/trace/exporter.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "core/show/trace.h"
#include "run/engine_state.h"
#include "run/leaving.h"
#include "run/saga/fold.h"

#define GATHER_MS 200
#define BATCH_SAGAS_MAX 256
#define MADE_AT_ONCE 4            /* traces that are made before others have their turn of the loop */
#define BATCH_BYTES 262144        /* a body that has so many is sent */
#define BODY_BYTES_MAX (8u << 20) /* one more trace fits: its spans, events and texts are bounded */
#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 30000
#define GIVE_UP_MS 300000 /* a batch that is not taken for so long is dropped */
#define DRAIN_MS 2000
#define CONNECT_TIMEOUT_MS 5000
#define ANSWER_BYTES_MAX 65536
#define MESSAGE_BYTES_MAX 200
#define COUNT_BYTES_MAX 24

enum exporter_stage { EXPORTER_IDLE, EXPORTER_GATHERING, EXPORTER_READING, EXPORTER_SENDING, EXPORTER_RESTING };

struct ended { /* a saga whose trace waits */
    struct list_link link;
    struct saga_id id;
    size_t namespace_len;
    char namespace[];
};

struct exporter {
    struct engine *engine;
    struct trace_target target;
    int64_t timeout_ms;
    size_t queue_max;
    struct list waiting;
    enum exporter_stage stage;
    bool drains, stopped;
    bool fails; /* the collector has not taken the last batch: that was logged */
    struct timer timer, drain_timer;
    struct deferred next;
    struct ended *reads[LOGS_MAX]; /* sagas whose logs are, or were, read together; NULL: its trace is made */
    struct saga_id ids[LOGS_MAX];
    size_t read_count, made_count; /* the ones read together, and those of them whose traces are made */
    struct read_logs logs;
    struct read_saga log;                 /* the one long log that is being read */
    struct arena reading, making, answer; /* `making` is for one trace */
    struct buffer body;
    struct json_writer w;
    size_t batch_count; /* sagas in the body */
    uint32_t attempts;  /* the attempts to send it */
    int64_t batch_boot_ms;
    struct http_request request;
};

static void on_time(struct timer *timer);
static void on_next(struct deferred *deferred);

struct exporter *exporter_new(struct engine *engine, const struct trace_settings *settings, struct err *err)
{
    struct exporter *exporter = memory_alloc(sizeof(*exporter));

    exporter->engine = engine;
    exporter->timeout_ms = settings->timeout_ms;
    exporter->queue_max = settings->queue_max;
    list_init(&exporter->waiting);
    arena_init(&exporter->reading, 16384);
    arena_init(&exporter->making, 16384);
    arena_init(&exporter->answer, 4096);
    buffer_init(&exporter->body, BODY_BYTES_MAX);
    if (trace_target_read(&exporter->target, settings, engine->options.engine_name, engine->options.version, err) !=
        ERR_OK) {
        exporter_free(exporter);
        return NULL;
    }
    return exporter;
}

static void forget_waiting(struct exporter *exporter)
{
    struct list_link *link;

    while ((link = list_pop(&exporter->waiting)) != NULL) {
        free(container_of(link, struct ended, link));
    }
    gauge_set(GAUGE_TRACES_WAITING, 0);
}

static void forget_read(struct exporter *exporter)
{
    for (; exporter->made_count < exporter->read_count; exporter->made_count++) {
        free(exporter->reads[exporter->made_count]);
    }
}

void exporter_free(struct exporter *exporter)
{
    if (!exporter) {
        return;
    }
    forget_waiting(exporter);
    forget_read(exporter);
    buffer_fini(&exporter->body);
    arena_fini(&exporter->answer);
    arena_fini(&exporter->making);
    arena_fini(&exporter->reading);
    trace_target_fini(&exporter->target);
    free(exporter);
}

bool exporter_is_on(const struct exporter *exporter)
{
    return exporter && exporter->target.url.ptr;
}

const struct trace_sampler *exporter_sampler(const struct exporter *exporter)
{
    return &exporter->target.sampler;
}

bool exporter_works(const struct exporter *exporter)
{
    return exporter && exporter->stage != EXPORTER_IDLE;
}

static void rest(struct exporter *exporter, enum exporter_stage stage, int64_t delay_ms)
{
    exporter->stage = stage;
    timer_start(exporter->engine->loop, &exporter->timer, delay_ms, on_time);
}

/* --- what waits --- */

/* More are not read at once, or more may not wait. */
static bool is_enough(const struct exporter *exporter)
{
    return exporter->waiting.count >= LOGS_MAX || exporter->waiting.count >= exporter->queue_max;
}

void exporter_ended(struct exporter *exporter, const struct saga *saga)
{
    if (!exporter_is_on(exporter) || !trace_is_wanted(saga, &exporter->target.sampler)) {
        return;
    }
    if (exporter->stopped || exporter->waiting.count >= exporter->queue_max) {
        metric_add(METRIC_TRACES_DROPPED, 1);
        return;
    }
    struct ended *ended = memory_alloc(sizeof(*ended) + saga->namespace.len);

    ended->id = saga->id;
    ended->namespace_len = saga->namespace.len;
    memcpy(ended->namespace, saga->namespace.ptr, saga->namespace.len);
    list_push(&exporter->waiting, &ended->link);
    gauge_set(GAUGE_TRACES_WAITING, (int64_t)exporter->waiting.count);
    if (exporter->stage == EXPORTER_IDLE) {
        rest(exporter, EXPORTER_GATHERING, exporter->drains ? 0 : GATHER_MS);
    } else if (exporter->stage == EXPORTER_GATHERING && is_enough(exporter)) {
        loop_defer(exporter->engine->loop, &exporter->next, on_next);
    }
}

/* --- the body --- */

static void body_begin(struct exporter *exporter)
{
    struct json_writer *w = &exporter->w;

    buffer_reset(&exporter->body);
    json_writer_init(w, &exporter->body);
    json_object_begin(w, NULL);
    json_array_begin(w, "resourceSpans");
    json_object_begin(w, NULL);
    json_object_begin(w, "resource");
    json_write_raw(w, "attributes", exporter->target.resource);
    json_object_end(w);
    json_array_begin(w, "scopeSpans");
    json_object_begin(w, NULL);
    json_object_begin(w, "scope");
    json_write_text(w, "name", "sagad");
    json_write_text(w, "version", exporter->engine->options.version);
    json_object_end(w);
    json_array_begin(w, "spans");
}

static void body_end(struct exporter *exporter)
{
    struct json_writer *w = &exporter->w;

    json_array_end(w);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
}

struct making { /* the making of a trace, while its log is folded */
    struct fold_watcher watcher;
    struct trace trace;
};

static void on_applied(struct fold_watcher *watcher, const struct saga *saga, const struct record *record,
                       int64_t epoch)
{
    trace_add(&container_of(watcher, struct making, watcher)->trace, saga, record, epoch);
}

/* The next one of those that were read, from its turns. None: it is forgotten, or its log could not be read. */
static void make_trace(struct exporter *exporter, const struct stored_turn *turns, size_t count)
{
    struct engine *engine = exporter->engine;
    struct ended *ended = exporter->reads[exporter->made_count++];
    struct making making = {.watcher = {on_applied},
                            .trace = trace_new(&exporter->making, engine->options.park_after_ms)};
    struct err err = {0};
    const struct saga *saga =
        count > 0 ? fold_turns_watched(engine, ended->id, (struct slice){ended->namespace, ended->namespace_len}, turns,
                                       count, &exporter->making, &making.watcher, &err)
                  : NULL;

    if (saga && saga->phase == PHASE_ENDED) {
        if (exporter->batch_count == 0) {
            body_begin(exporter);
        }
        trace_write(&making.trace, saga, &exporter->w);
        exporter->batch_count++;
    } else {
        metric_add(METRIC_TRACES_DROPPED, 1);
    }
    free(ended);
    arena_reset(&exporter->making);
}

/* --- sending --- */

static void batch_over(struct exporter *exporter, bool is_taken)
{
    metric_add(is_taken ? METRIC_TRACES_SENT : METRIC_TRACES_DROPPED, exporter->batch_count);
    exporter->batch_count = 0;
    exporter->attempts = 0;
}

static void tell_failure(struct exporter *exporter, struct slice why)
{
    if (!exporter->fails) {
        log_warn("traces_not_taken", LOG_SLICE("why", why),
                 LOG_TEXT("note", "sagas go on; traces that do not fit the queue are dropped and counted"));
    }
    exporter->fails = true;
}

static struct slice beginning(struct slice text, size_t bytes_max)
{
    return (struct slice){text.ptr, text.len < bytes_max ? text.len : bytes_max};
}

/* The collector may take a part only, and say so. Any other answer with such a status means that it took all. */
static void look_at_rejected(const struct exporter *exporter)
{
    struct slice body = exporter->request.response_body;
    struct err err = {0};
    struct slice rejected = SLICE_NONE, message = SLICE_NONE;

    if (json_check(body, &json_limits_default, &err) == ERR_OK && json_type(body) == JSON_OBJECT) {
        struct slice partial = json_member(body, "partialSuccess");

        rejected = json_member(partial, "rejectedSpans");
        message = json_string(json_member(partial, "errorMessage"), exporter->request.arena);
    }
    if (rejected.ptr && !slice_is(rejected, "0") && !slice_is(rejected, "\"0\"")) {
        log_warn("traces_rejected_in_part", LOG_SLICE("spans", beginning(rejected, COUNT_BYTES_MAX)),
                 LOG_SLICE("why", beginning(message, MESSAGE_BYTES_MAX)));
    }
}

static int64_t retry_after_ms(const struct http_request *request)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < request->response_header_count; i++) {
        if (slice_is(request->response_headers[i].name, "retry-after") &&
            slice_to_i64(request->response_headers[i].value, &seconds) && seconds > 0) {
            return seconds < GIVE_UP_MS / 1000 ? seconds * 1000 : GIVE_UP_MS;
        }
    }
    return 0;
}

static bool may_come_again(const struct http_request *request)
{
    return !request->complete || request->status == 429 || request->status == 502 || request->status == 503 ||
           request->status == 504;
}

static void send_later(struct exporter *exporter)
{
    int64_t wait_ms = (int64_t)BACKOFF_FIRST_MS << (exporter->attempts < 6 ? exporter->attempts - 1 : 5);
    int64_t asked_ms = retry_after_ms(&exporter->request);

    wait_ms = wait_ms < BACKOFF_MAX_MS ? wait_ms : BACKOFF_MAX_MS;
    rest(exporter, EXPORTER_RESTING, asked_ms > wait_ms ? asked_ms : wait_ms);
}

static void on_answer(struct http_request *request)
{
    struct exporter *exporter = container_of(request, struct exporter, request);
    struct loop *loop = exporter->engine->loop;

    exporter->stage = EXPORTER_GATHERING;
    if (request->complete && request->status >= 200 && request->status < 300) {
        exporter->fails = false;
        look_at_rejected(exporter);
        batch_over(exporter, true);
        if (exporter->made_count == exporter->read_count && exporter->waiting.count > 0 && !is_enough(exporter) &&
            !exporter->drains && !exporter->stopped) {
            rest(exporter, EXPORTER_GATHERING, GATHER_MS);
        } else {
            loop_defer(loop, &exporter->next, on_next);
        }
        return;
    }
    tell_failure(exporter, request->complete ? arena_printf(request->arena, "the collector answered with the status %d",
                                                            request->status)
                                             : arena_printf(request->arena, "%s: %s", request->error, request->detail));
    if (may_come_again(request) && !exporter->drains && !exporter->stopped &&
        loop_boot_ms(loop) - exporter->batch_boot_ms < GIVE_UP_MS) {
        send_later(exporter);
        return;
    }
    batch_over(exporter, false);
    if (exporter->drains) {
        exporter_stop(exporter); /* no second chance: the engine leaves */
    }
    loop_defer(loop, &exporter->next, on_next);
}

static void send_batch(struct exporter *exporter)
{
    exporter->stage = EXPORTER_SENDING;
    exporter->attempts++;
    arena_reset(&exporter->answer);
    exporter->request = (struct http_request){.method = SLICE("POST"),
                                              .url = exporter->target.url,
                                              .body = buffer_slice(&exporter->body),
                                              .headers = exporter->target.headers,
                                              .header_count = exporter->target.header_count,
                                              .timeout_ms = exporter->timeout_ms,
                                              .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                              .response_bytes_max = ANSWER_BYTES_MAX,
                                              .arena = &exporter->answer,
                                              .done = on_answer};
    http_send(exporter->engine->host.http, &exporter->request);
}

/* --- the logs --- */

static void go_on_soon(struct exporter *exporter)
{
    exporter->stage = EXPORTER_GATHERING;
    loop_defer(exporter->engine->loop, &exporter->next, on_next);
}

static void on_logs(struct store_read *read)
{
    struct exporter *exporter = read->context;

    if (read->code != ERR_OK) { /* the database is away */
        metric_add(METRIC_TRACES_DROPPED, exporter->read_count);
        forget_read(exporter);
    }
    go_on_soon(exporter);
}

static void read_logs(struct exporter *exporter)
{
    exporter->stage = EXPORTER_READING;
    exporter->read_count = exporter->made_count = 0;
    while (exporter->read_count < LOGS_MAX && exporter->waiting.count > 0) {
        struct ended *ended = container_of(list_pop(&exporter->waiting), struct ended, link);

        exporter->ids[exporter->read_count] = ended->id;
        exporter->reads[exporter->read_count++] = ended;
    }
    gauge_set(GAUGE_TRACES_WAITING, (int64_t)exporter->waiting.count);
    arena_reset(&exporter->reading);
    exporter->logs = (struct read_logs){.read = {.arena = &exporter->reading, .done = on_logs, .context = exporter},
                                        .ids = exporter->ids,
                                        .count = exporter->read_count};
    store_read_logs(exporter->engine->store, &exporter->logs);
}

static void on_log(struct store_read *read)
{
    struct exporter *exporter = read->context;
    bool is_read = read->code == ERR_OK;

    make_trace(exporter, is_read ? exporter->log.turns : NULL, is_read ? exporter->log.turn_count : 0);
    go_on_soon(exporter);
}

/* Reads a long log alone, so that at most one of any length is in memory. */
static void read_log(struct exporter *exporter, const struct ended *ended)
{
    exporter->stage = EXPORTER_READING;
    exporter->log = (struct read_saga){.read = {.arena = &exporter->making, .done = on_log, .context = exporter},
                                       .id = ended->id,
                                       .namespace = {ended->namespace, ended->namespace_len}};
    store_read_saga(exporter->engine->store, &exporter->log);
}

static bool is_full(const struct exporter *exporter)
{
    /* A body that was sent stays until the next batch begins. */
    return exporter->batch_count > 0 && (exporter->batch_count >= BATCH_SAGAS_MAX || exporter->body.len >= BATCH_BYTES);
}

static void make_traces(struct exporter *exporter)
{
    for (int i = 0; i < MADE_AT_ONCE && exporter->made_count < exporter->read_count && !is_full(exporter); i++) {
        const struct saga_log *log = &exporter->logs.logs[exporter->made_count];

        if (log->is_long) {
            read_log(exporter, exporter->reads[exporter->made_count]);
            return;
        }
        make_trace(exporter, log->turns, log->turn_count);
    }
    go_on_soon(exporter);
}

static void be_idle(struct exporter *exporter)
{
    exporter->stage = EXPORTER_IDLE;
    timer_stop(exporter->engine->loop, &exporter->timer);
    loop_defer_cancel(exporter->engine->loop, &exporter->next);
    engine_check_drained(exporter->engine);
}

static void go_on(struct exporter *exporter)
{
    if (exporter->stopped) {
        metric_add(METRIC_TRACES_DROPPED, exporter->read_count - exporter->made_count);
        forget_read(exporter);
        batch_over(exporter, false);
        be_idle(exporter);
    } else if (exporter->made_count < exporter->read_count && !is_full(exporter)) {
        make_traces(exporter);
    } else if (exporter->waiting.count > 0 && !is_full(exporter)) {
        read_logs(exporter);
    } else if (exporter->batch_count > 0) {
        body_end(exporter);
        exporter->batch_boot_ms = loop_boot_ms(exporter->engine->loop);
        if (!exporter->body.overflow) {
            send_batch(exporter);
        } else {
            batch_over(exporter, false);
            go_on_soon(exporter);
        }
    } else {
        be_idle(exporter);
    }
}

/* The timer and the deferred work may both be on their way; the first one goes on. */
static void on_next(struct deferred *deferred)
{
    struct exporter *exporter = container_of(deferred, struct exporter, next);

    if (exporter->stage == EXPORTER_GATHERING) {
        go_on(exporter);
    }
}

static void on_time(struct timer *timer)
{
    struct exporter *exporter = container_of(timer, struct exporter, timer);

    if (exporter->stage == EXPORTER_RESTING && !exporter->stopped) {
        send_batch(exporter);
    } else if (exporter->stage == EXPORTER_GATHERING || exporter->stage == EXPORTER_RESTING) {
        go_on(exporter);
    }
}

/* --- the end --- */

static void on_drained(struct timer *timer)
{
    exporter_stop(container_of(timer, struct exporter, drain_timer));
}

void exporter_drain(struct exporter *exporter)
{
    if (!exporter_is_on(exporter) || exporter->drains) {
        return;
    }
    exporter->drains = true;
    timer_start(exporter->engine->loop, &exporter->drain_timer, DRAIN_MS, on_drained);
    if (exporter->stage == EXPORTER_GATHERING || exporter->stage == EXPORTER_RESTING) {
        timer_start(exporter->engine->loop, &exporter->timer, 0, on_time);
    }
}

void exporter_stop(struct exporter *exporter)
{
    if (!exporter || exporter->stopped) {
        return;
    }
    exporter->stopped = true;
    timer_stop(exporter->engine->loop, &exporter->drain_timer);
    metric_add(METRIC_TRACES_DROPPED, exporter->waiting.count);
    forget_waiting(exporter);
    if (exporter->stage == EXPORTER_SENDING) {
        http_cancel(&exporter->request);
    } else if (exporter->stage == EXPORTER_GATHERING || exporter->stage == EXPORTER_RESTING) {
        timer_start(exporter->engine->loop, &exporter->timer, 0, on_time);
    }
}
