/* Reads and ends a request: the steps that are the same for every handler. */
#include "api/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/acts.h"
#include "api/start_batch.h"
#include "base/instant.h"
#include "base/utf8.h"

#define WAIT_MS_MAX (5 * 60 * 1000)
#define LIMIT_DEFAULT 50
#define LIMIT_MAX 500
#define IDEMPOTENCY_KEY_BYTES_MAX 256
#define BATCH_FAULTS_MAX 5

struct api_request *request_of(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    request->engine_busy = false;
    return request;
}

void request_ask(struct api_request *request, void (*ask)(struct engine *, struct engine_request *),
                 void (*done)(struct engine_request *))
{
    CHECK(!request->engine_busy);
    request->asked.done = done;
    request->asked.code = ERR_OK;
    request->asked.sees_sensitive = request->role >= ROLE_ADMIN;
    request->engine_busy = true;
    request->cancelled = false;
    ask(request->api->engine, &request->asked);
}

void request_cancel(struct api_request *request)
{
    if (request->cancel) {
        request->cancel(request);
    } else if (request->engine_busy && !request->cancelled) {
        request->cancelled = true;
        engine_cancel(request->api->engine, &request->asked);
    }
}

/* --- endings --- */

static void request_end(struct api_request *request)
{
    CHECK(!request->engine_busy);
    if (request->holds) {
        request->holds = false;
        request->api->holding--;
    }
    if (list_linked(&request->link)) {
        list_remove(&request->api->waiting, &request->link);
    }
}

static void answer_problem(struct api_request *request, const struct err *err, const struct problem_more *more);

void request_end_stream(struct api_request *request, struct slice last)
{
    bool may_hear = !request_is_revoked(request);

    request_end(request);
    if (may_hear) {
        http_stream_write(request->exchange, last);
    }
    http_stream_end(request->exchange);
}

/* The answer is no longer for this client, whose token was revoked. Another token can look up whether the request was
 * done. */
static bool answers_revoked(struct api_request *request)
{
    struct problem_more none = {0};
    struct err err = {0};

    if (request->batch || !request_is_revoked(request)) {
        return false;
    }
    request->has_token = false; /* for this answer only */
    request->has_certificate = false;
    request->grant = NULL;
    request->jwt = NULL;
    (void)err_set(&err, ERR_UNAUTHENTICATED, "this token was revoked, or has expired, while its request was under way");
    err_hint(&err, "look with another token whether it was done, before you ask for it again");
    answer_problem(request, &err, &none);
    return true;
}

void request_answer_text(struct api_request *request, int status, const char *content_type, struct slice text)
{
    if (!answers_revoked(request)) {
        request_end(request);
        http_respond(request->exchange, status, content_type, text);
    }
}

/* The console asks again and again for what mostly stays the same. It is told so instead of getting the same bytes. */
static bool is_unchanged(struct api_request *request, int status, struct slice json)
{
    struct digest digest;
    char hex[65], etag[67];

    if (!request->has_session || status != 200 || !slice_is(request->exchange->method, "GET")) {
        return false;
    }
    digest = digest_sha256(json);
    digest_hex(&digest, hex);
    (void)snprintf(etag, sizeof(etag), "\"%.40s\"", hex);
    http_answer_header(request->exchange, "ETag", slice_of(etag));
    return slice_is(http_exchange_header(request->exchange, "if-none-match"), etag);
}

void request_answer_json(struct api_request *request, int status, struct slice json)
{
    if (answers_revoked(request)) {
        return;
    }
    request_end(request);
    if (request->batch) {
        start_batch_take(request, status, json, 0);
        return;
    }
    if (is_unchanged(request, status, json)) {
        http_respond(request->exchange, 304, NULL, SLICE(""));
    } else {
        http_respond(request->exchange, status, json.ptr ? "application/json" : NULL, json);
    }
}

void request_answer_items(struct api_request *request, struct slice items, struct slice next_cursor)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, items.len + next_cursor.len * 6 + request->asked.rests.len + 200 + INSTANT_TEXT_BYTES);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_raw(&w, "items", items);
    json_write_slice(&w, "next_cursor", next_cursor);
    if (request->asked.looked_ms > 0) {
        char looked[INSTANT_TEXT_BYTES];

        instant_text(request->asked.looked_ms, looked);
        json_write_text(&w, "looked_to", looked);
        json_write_i64(&w, "looked_count", request->asked.looked_count);
    }
    if (request->asked.rests.ptr) {
        json_write_raw(&w, "rests", request->asked.rests);
    }
    json_object_end(&w);
    struct slice text = arena_slice(request->arena, buffer_slice(&out));

    buffer_fini(&out);
    request_answer_json(request, 200, text);
}

static void answer_problem(struct api_request *request, const struct err *err, const struct problem_more *more)
{
    if (answers_revoked(request)) {
        return;
    }
    request_count_refusal(request, err->code);
    request_end(request);
    if (request->batch) {
        start_batch_take(request, err_http_status(err->code), problem_text(err, more, request->arena),
                         problem_retry_after_s(err, more));
    } else {
        struct problem_more with_challenge = *more;

        with_challenge.challenge = protected_resource_challenge(request, err->code);
        problem_respond(request->exchange, err, &with_challenge);
    }
}

void request_problem_of(struct api_request *request, const struct err *err, const struct faults *faults)
{
    struct problem_more more = {.faults = faults};

    answer_problem(request, err, &more);
}

void request_problem_later(struct api_request *request, const struct err *err, int64_t retry_after_ms)
{
    struct problem_more more = {.retry_after_ms = retry_after_ms};

    answer_problem(request, err, &more);
}

void request_problem(struct api_request *request, enum err_code code, const char *message, ...)
{
    char text[240];
    struct err err = {0};
    va_list arguments;

    va_start(arguments, message);
    (void)vsnprintf(text, sizeof(text), message, arguments);
    va_end(arguments);
    (void)err_set(&err, code, "%s", text);
    request_problem_of(request, &err, NULL);
}

struct problem_more request_problem_more(const struct api_request *request)
{
    const struct call_result *call = &request->asked.call; /* empty for everything but calls */

    return (struct problem_more){.faults = &request->asked.faults,
                                 .operation = call->operation,
                                 .pointers = call->pointers,
                                 .pattern = call->pattern,
                                 .cursor = request->asked.code == ERR_GONE ? request->asked.next_cursor : SLICE_NONE,
                                 .retry_after_ms = call->retry_after_ms};
}

bool request_failed(struct api_request *request)
{
    if (request->asked.code == ERR_OK) {
        return false;
    }
    const struct problem_more more = request_problem_more(request);

    request->asked.err.code = request->asked.code;
    request_put_replay_headers(request);
    answer_problem(request, &request->asked.err, &more);
    return true;
}

void request_put_replay_headers(struct api_request *request)
{
    char first[INSTANT_TEXT_BYTES];

    if (!request->asked.call.replayed) {
        return;
    }
    http_answer_header(request->exchange, "Idempotent-Replayed", SLICE("true"));
    if (request->asked.call.first_ms > 0) {
        instant_text(request->asked.call.first_ms, first);
        http_answer_header(request->exchange, "Idempotent-First-At", slice_of(first));
    }
}

void request_on_answer(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);

    if (!request_failed(request)) {
        request_answer_json(request, request->status ? request->status : 200, asked->answer);
    }
}

void request_on_items(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);

    if (!request_failed(request)) {
        request_answer_items(request, asked->answer, asked->next_cursor);
    }
}

/* --- reading --- */

struct slice request_query(const struct api_request *request, const char *name)
{
    return http_exchange_query(request->exchange, name);
}

static bool member_find(const struct member *members, size_t count, struct slice name, size_t *index)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_is(name, members[i].name)) {
            *index = i;
            return true;
        }
    }
    return false;
}

static void members_read(struct api_request *request, const struct member *members, size_t count, struct faults *faults)
{
    struct json_walk walk = json_walk(request->body);
    struct slice name_raw, value;

    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice quoted = {name_raw.ptr - 1, name_raw.len + 2}, name = json_string(quoted, request->arena);
        struct slice pointer = json_pointer_join(request->arena, SLICE(""), name);
        size_t i = 0;

        if (!member_find(members, count, name, &i)) {
            faults_add(faults, pointer, "unknown member");
        } else if (members[i].later) {
            faults_add_not_supported(faults, pointer, members[i].name);
        } else if (members[i].type != JSON_NONE && json_type(value) != members[i].type) {
            faults_add(faults, pointer, "found %s, expected %s", json_type_name(json_type(value)),
                       json_type_name(members[i].type));
        } else {
            if (members[i].out) {
                *members[i].out = value;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].required && !json_member(request->body, members[i].name).ptr) {
            faults_add(faults, SLICE(""), "the member \"%s\" is missing", members[i].name);
        }
    }
}

static bool only_not_supported(const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (!faults->items[i].not_supported) {
            return false;
        }
    }
    return faults->count > 0;
}

bool request_is_good(struct api_request *request, const struct faults *faults)
{
    struct err err = {0};

    if (faults->count == 0) {
        return true;
    }
    if (only_not_supported(faults)) {
        (void)err_set(&err, ERR_UNSUPPORTED, "the body has members that this version does not support yet");
    } else {
        (void)err_set(&err, ERR_INVALID, "the body is wrong in %zu place%s, each named in \"errors\"", faults->count,
                      faults->count == 1 ? "" : "s");
    }
    request_problem_of(request, &err, faults);
    return false;
}

bool request_read_body(struct api_request *request, const struct member *members, size_t count,
                       void (*more)(struct api_request *request, struct faults *faults))
{
    struct faults faults;

    faults_init(&faults, request->arena);
    if (request->batch) { /* a batch of a thousand starts would have a list for each */
        faults.count_max = BATCH_FAULTS_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].out) {
            *members[i].out = SLICE_NONE;
        }
    }
    if (json_type(request->body) != JSON_OBJECT) {
        faults_add(&faults, SLICE(""), "found %s, expected an object", json_type_name(json_type(request->body)));
    } else {
        members_read(request, members, count, &faults);
        if (more) {
            more(request, &faults);
        }
    }
    return request_is_good(request, &faults);
}

/* Holds a request that waits, which keeps a connection. The number of waits is bounded, so that other clients still
 * find a connection. */
static bool hold(struct api_request *request)
{
    struct api *api = request->api;

    if (request->wait_ms == 0 || request->holds) {
        return true;
    }
    if (api->holding >= api->holding_max) {
        request_problem(request, ERR_BUSY,
                        "%zu callers wait for their answers already, as many as may; come back, or "
                        "ask with wait=0s",
                        api->holding);
        return false;
    }
    request->holds = true;
    api->holding++;
    return true;
}

bool request_hold(struct api_request *request, int64_t wait_ms)
{
    request->wait_ms = wait_ms;
    return hold(request);
}

bool request_read_wait(struct api_request *request, int64_t otherwise_ms)
{
    struct slice text = request_query(request, "wait");

    request->wait_ms = otherwise_ms;
    if (!text.ptr) {
        return hold(request);
    }
    if (!duration_parse(text, &request->wait_ms) || request->wait_ms > WAIT_MS_MAX) {
        request_problem(request, ERR_MALFORMED,
                        "the query parameter \"wait\" is not a duration such as 5s or 500ms, at most 5m");
        return false;
    }
    return hold(request);
}

bool request_read_count(struct api_request *request, const char *name, uint64_t least, uint64_t *out)
{
    struct slice text = request_query(request, name);
    int64_t value = 0;

    if (!text.ptr) {
        return true;
    }
    if (!slice_to_i64(text, &value) || value < 0 || (uint64_t)value < least) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"%s\" is not a whole number from %u on", name,
                        (unsigned)least);
        return false;
    }
    *out = (uint64_t)value;
    return true;
}

bool request_read_stream(struct api_request *request, bool *out)
{
    struct slice follow = request_query(request, "follow"), accept = http_exchange_header(request->exchange, "accept");

    if (follow.ptr && !slice_is(follow, "true") && !slice_is(follow, "false")) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"follow\" is true or false");
        return false;
    }
    *out = slice_is(follow, "true") ||
           (!follow.ptr && accept.ptr && memmem(accept.ptr, accept.len, "text/event-stream", 17) != NULL);
    return true;
}

bool request_read_limit(struct api_request *request)
{
    uint64_t limit = LIMIT_DEFAULT;

    if (!request_read_count(request, "limit", 1, &limit)) {
        return false;
    }
    if (limit > LIMIT_MAX) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"limit\" is larger than %d", LIMIT_MAX);
        return false;
    }
    request->limit = (size_t)limit;
    return true;
}

bool request_read_bool(struct api_request *request, const char *name, bool *is_given, bool *out)
{
    struct slice text = request_query(request, name);

    *is_given = text.ptr != NULL;
    *out = slice_is(text, "true");
    if (*is_given && !*out && !slice_is(text, "false")) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"%s\" is true or false", name);
        return false;
    }
    return true;
}

bool request_read_instant(struct api_request *request, const char *name, int64_t *out)
{
    struct slice text = request_query(request, name);

    if (text.ptr && !instant_parse(text, out)) {
        request_problem(request, ERR_MALFORMED,
                        "the query parameter \"%s\" is not an RFC 3339 instant such as 2026-01-31T09:05:00Z", name);
        return false;
    }
    return true;
}

bool request_read_saga_id(struct api_request *request, struct saga_id *out)
{
    if (!uuid_parse(request->params[0], &out->uuid)) {
        request_problem(request, ERR_NOT_FOUND,
                        "there is no saga with the id \"%.*s\"; `sagactl list --id` finds one by its business id",
                        SLICE_ARG(request->params[0]));
        return false;
    }
    return true;
}

/* --- parts of bodies --- */

struct slice request_idempotency_key(const struct api_request *request, struct faults *faults)
{
    const struct http_exchange *exchange = request->exchange;
    struct slice key = http_exchange_header(exchange, "idempotency-key");
    size_t count = http_exchange_header_count(exchange, "idempotency-key");

    if (count > 1) {
        faults_add(faults, SLICE(""), "the header Idempotency-Key stands there %zu times", count);
    } else if (key.ptr && !text_is_plain(key, IDEMPOTENCY_KEY_BYTES_MAX)) {
        faults_add(faults, SLICE(""), "the header Idempotency-Key has 1 to %d bytes and no control characters",
                   IDEMPOTENCY_KEY_BYTES_MAX);
    }
    return key;
}

struct trace_context request_trace(const struct api_request *request, struct slice meta)
{
    const struct http_exchange *exchange = request->exchange;
    struct slice parent = json_string(json_member(meta, "traceparent"), request->arena);

    if (parent.ptr) {
        return trace_context_read(parent, json_string(json_member(meta, "tracestate"), request->arena));
    }
    if (http_exchange_header_count(exchange, "traceparent") != 1 ||
        http_exchange_header_count(exchange, "tracestate") > 1) {
        return (struct trace_context){SLICE_NONE, SLICE_NONE};
    }
    return trace_context_read(http_exchange_header(exchange, "traceparent"),
                              http_exchange_header(exchange, "tracestate"));
}
