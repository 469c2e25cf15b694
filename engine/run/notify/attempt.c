/* One attempt to deliver a notification: an HTTP request with the event as CloudEvents 1.0 in structured mode, signed
 * as Standard Webhooks has it. Any status from 200 to 299 confirms it. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/log.h"
#include "core/definition/opkey.h"
#include "run/notify/receiver.h"
#include "run/notify/signature.h"

#define RUN "~notify"
#define CONNECT_TIMEOUT_MS 10000
#define SIGNATURES_BYTES_MAX 1024
#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 3600000
#define RETRY_AFTER_S_MAX 86400
#define STATUS_GONE 410

/* --- what is sent --- */

/* SLICE_NONE: a secret is missing or is none. */
static struct slice sign(struct attempt *attempt, int64_t timestamp_s)
{
    const struct engine *engine = attempt->receiver->engine;
    const struct notify_target *target = attempt->receiver->target;
    struct slice signatures = SLICE_NONE;
    struct buffer out;
    size_t i = 0;

    buffer_init(&out, SIGNATURES_BYTES_MAX);
    for (; i < target->secret_count; i++) {
        struct slice json = secrets_json(&engine->secrets, target->namespace, target->secrets[i], &attempt->arena);
        struct signature_key key;
        bool is_good = signature_key_read(json.ptr ? json_string(json, &attempt->arena) : SLICE_NONE, &key);

        if (is_good) {
            signature_put(&out, &key, attempt->row->event, timestamp_s, attempt->row->body);
        }
        signature_key_wipe(&key);
        if (!is_good) {
            break;
        }
    }
    if (i == target->secret_count && !out.overflow) {
        signatures = arena_slice(&attempt->arena, buffer_slice(&out));
    }
    buffer_fini(&out);
    return signatures;
}

static void put_header(struct attempt *attempt, const char *name, struct slice value)
{
    CHECK(attempt->request.header_count < COUNT_OF(attempt->headers));
    attempt->headers[attempt->request.header_count++] = (struct http_header){slice_of(name), value};
}

static struct slice key_text(struct attempt *attempt)
{
    const struct notify_target *target = attempt->receiver->target;
    struct op_key key = op_key_make(&(struct op_identity){.namespace = target->namespace,
                                                          .run = SLICE(RUN),
                                                          .step = attempt->row->event,
                                                          .tool = target->name,
                                                          .scope = SLICE(""),
                                                          .direction = DIRECTION_DO});
    char text[UUID_TEXT_BYTES];

    uuid_text(&key.uuid, text);
    return arena_slice(&attempt->arena, slice_of(text));
}

/* --- what came of it --- */

static void fail(struct attempt *attempt, struct slice error)
{
    attempt->outcome->error = arena_slice(&attempt->receiver->arena, error);
}

static int64_t retry_after_ms(const struct http_request *request)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < request->response_header_count; i++) {
        if (slice_is(request->response_headers[i].name, "retry-after") &&
            slice_to_i64(request->response_headers[i].value, &seconds) && seconds > 0) {
            return (seconds < RETRY_AFTER_S_MAX ? seconds : RETRY_AFTER_S_MAX) * 1000;
        }
    }
    return 0;
}

/* Doubles with each attempt. A quarter more or less, by the event and the attempt, keeps many of them apart. */
static int64_t backoff_ms(const struct notification_row *row)
{
    const struct slice fields[] = {row->event};
    uint32_t shift = row->attempts < 12 ? row->attempts : 12;
    int64_t ms = (int64_t)BACKOFF_FIRST_MS << shift;
    int64_t part = digest_fields("backoff", fields, COUNT_OF(fields)).bytes[row->attempts % 32];

    ms = ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
    return ms * 3 / 4 + ms * part / 512;
}

static void judge(struct attempt *attempt)
{
    const struct http_request *request = &attempt->request;
    struct engine *engine = attempt->receiver->engine;
    struct notify_outcome *outcome = attempt->outcome;
    int64_t now_ms = loop_wall_ms(engine->loop), wait_ms = backoff_ms(attempt->row);

    outcome->done = request->complete && request->status >= 200 && request->status < 300;
    if (outcome->done) {
        return;
    }
    if (request->complete) {
        int64_t asked_ms = retry_after_ms(request);

        fail(attempt, arena_printf(&attempt->arena, "the receiver answered with the status %d", request->status));
        wait_ms = asked_ms > wait_ms ? asked_ms : wait_ms;
    } else {
        fail(attempt, arena_printf(&attempt->arena, "%s: %s", request->error, request->detail));
    }
    if ((request->complete && request->status == STATUS_GONE) || attempt->row->until_ms <= now_ms) {
        outcome->state = NOTIFICATION_DEAD;
        outcome->look_ms = now_ms;
    } else {
        outcome->look_ms = now_ms + wait_ms < attempt->row->until_ms ? now_ms + wait_ms : attempt->row->until_ms;
    }
}

static void on_over(struct deferred *deferred)
{
    struct attempt *attempt = container_of(deferred, struct attempt, over);
    bool is_delivered = attempt->outcome->done;

    arena_fini(&attempt->arena);
    attempt_over(attempt, is_delivered);
}

static void on_answer(struct http_request *request)
{
    struct attempt *attempt = container_of(request, struct attempt, request);

    attempt->sends = false;
    judge(attempt);
    loop_defer(attempt->receiver->engine->loop, &attempt->over, on_over);
}

static bool may_leave(struct http_request *request)
{
    const struct receiver *receiver = container_of(request, struct attempt, request)->receiver;
    const struct engine *engine = receiver->engine;

    return !receiver->stopped && engine->leases && engine->shards[receiver->shard].state == SHARD_OWNED &&
           lease_allows_send(engine->leases, receiver->shard);
}

void attempt_begin(struct attempt *attempt)
{
    const struct receiver *receiver = attempt->receiver;
    const struct notify_target *target = receiver->target;
    struct engine *engine = receiver->engine;
    int64_t now_ms = loop_wall_ms(engine->loop), timestamp_s = now_ms / 1000;
    struct http_request *request = &attempt->request;

    arena_init(&attempt->arena, 4096);
    struct slice signatures = sign(attempt, timestamp_s);

    if (!signatures.ptr) { /* the secrets were good when this engine began, and do not change */
        fail(attempt, SLICE("a secret of the receiver is missing"));
        attempt->outcome->look_ms = now_ms + BACKOFF_MAX_MS;
        loop_defer(engine->loop, &attempt->over, on_over);
        return;
    }
    *request = (struct http_request){.method = SLICE("POST"),
                                     .url = target->url,
                                     .body = attempt->row->body,
                                     .headers = attempt->headers,
                                     .timeout_ms = target->timeout_ms,
                                     .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                     .response_bytes_max = engine->options.response_bytes_max,
                                     .may_leave = may_leave,
                                     .arena = &attempt->arena,
                                     .done = on_answer};
    put_header(attempt, "content-type", SLICE("application/cloudevents+json; charset=utf-8"));
    put_header(attempt, "webhook-id", attempt->row->event);
    put_header(attempt, "webhook-timestamp", arena_printf(&attempt->arena, "%lld", (long long)timestamp_s));
    put_header(attempt, "webhook-signature", signatures);
    put_header(attempt, "idempotency-key", key_text(attempt));
    attempt->outcome->attempts = 1;
    attempt->sends = true;
    http_send(engine->host.http, request);
}

void attempt_cancel(struct attempt *attempt)
{
    if (attempt->sends) {
        http_cancel(&attempt->request);
    }
}
