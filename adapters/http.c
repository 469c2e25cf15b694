/*
 * A tool that is an HTTP request.
 *
 * The settings become one request. The answer becomes `.response` = {status, headers, body} and an outcome.
 * http_status_outcome() knows which status codes promise that nothing took effect, and which leave that open.
 */
#include <string.h>
#include <strings.h>

#include "adapters/adapters.h"
#include "adapters/answer.h"
#include "adapters/http_parts.h"
#include "adapters/tool_settings.h"
#include "base/json.h"
#include "io/http/client.h"

#define CONNECT_TIMEOUT_MS 10000

struct http_call {
    struct call call;
    struct http_request request;
    struct http_header *headers;
    struct deferred refuse;
};

/* --- registration -------------------------------------------------------------------------------------------- */

static void check_method(struct slice value, struct slice pointer, struct faults *faults)
{
    struct slice method = json_string(value, faults->arena);

    for (size_t i = 0; i < method.len; i++) {
        if (method.ptr[i] < 'A' || method.ptr[i] > 'Z') {
            method.len = 0;
        }
    }
    if (method.len == 0) {
        faults_add(faults, pointer, "the method is %.*s; it must be an HTTP method in capital letters, like \"POST\"",
                   SLICE_ARG(value));
    }
}

static void check_query(struct slice value, struct slice pointer, struct faults *faults)
{
    struct json_walk walk = json_walk(value);
    struct slice name, parameter, element;

    while (json_next_member(&walk, &name, &parameter)) {
        struct slice place = json_pointer_join(faults->arena, pointer, name);
        struct json_walk elements = json_walk(parameter);

        if (json_type(parameter) == JSON_OBJECT) {
            faults_add(faults, place,
                       "found object; a query parameter is text, a number, a boolean, null or an array of these");
        } else if (json_type(parameter) == JSON_ARRAY) {
            while (json_next_element(&elements, &element)) {
                if (json_type(element) == JSON_OBJECT || json_type(element) == JSON_ARRAY) {
                    faults_add(faults, place, "found %s in the array; only text, numbers and booleans can stand there",
                               json_type_name(json_type(element)));
                }
            }
        }
    }
}

static const struct tool_setting settings_table[] = {
    {"method", BIT(JSON_STRING), false, check_method},
    {"url", BIT(JSON_STRING), true, http_check_url, http_check_url_template},
    {"headers", BIT(JSON_OBJECT), false, http_check_headers},
    {"query", BIT(JSON_OBJECT), false, check_query},
    {"body", 0, false, NULL},
    {"ca_file", BIT(JSON_STRING), false, NULL},
    {"client_cert", BIT(JSON_STRING), false, NULL},
};

static void http_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    /* The place of the key is checked whether or not the settings are an object. */
    (void)settings_check(settings, pointer, settings_table, COUNT_OF(settings_table), faults);
    switch (place) {
    case KEY_PLACE_DEFAULT:
    case KEY_PLACE_HEADER:
    case KEY_PLACE_BODY:
    case KEY_PLACE_QUERY:
        return;
    case KEY_PLACE_ENV:
    case KEY_PLACE_META:
        faults_add(faults, pointer,
                   "an HTTP request carries its key in a \"header\", in the \"body\" or in the \"query\"");
        return;
    }
}

/* --- the answer ---------------------------------------------------------------------------------------------- */

static bool type_is_json(struct slice type)
{
    const char *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;

    if (end) {
        type.len = (size_t)(end - type.ptr);
    }
    type = slice_trim(type);
    return (type.len == 16 && strncasecmp(type.ptr, "application/json", 16) == 0) ||
           (type.len > 5 && strncasecmp(type.ptr + type.len - 5, "+json", 5) == 0);
}

/* Writes `.response`. The values of a header that came several times are joined by ", ". */
static struct slice response_json(struct http_call *h, struct slice body)
{
    const struct http_request *request = &h->request;
    struct buffer text;
    struct json_writer w;
    struct slice result;

    buffer_init(&text, SIZE_MAX / 2); /* each part is bounded already */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "status", request->status);
    json_object_begin(&w, "headers");
    for (size_t i = 0; i < request->response_header_count; i++) {
        struct slice name = request->response_headers[i].name, value = request->response_headers[i].value;
        bool before = false;

        for (size_t j = 0; j < i; j++) {
            before = before || slice_equal(request->response_headers[j].name, name);
        }
        if (before || !http_text_is_token(name)) {
            continue;
        }
        for (size_t j = i + 1; j < request->response_header_count; j++) {
            if (slice_equal(request->response_headers[j].name, name)) {
                value = arena_printf(h->call.arena, "%.*s, %.*s", SLICE_ARG(value),
                                     SLICE_ARG(request->response_headers[j].value));
            }
        }
        json_write_slice(&w, name.ptr, value); /* the client ends each name with NUL */
    }
    json_object_end(&w);
    json_write_raw(&w, "body", body);
    json_object_end(&w);
    result = arena_slice(h->call.arena, buffer_slice(&text));
    buffer_fini(&text);
    return result;
}

static void answer_take(struct http_call *h)
{
    struct call *call = &h->call;
    const struct http_request *request = &h->request;
    enum outcome_kind kind = http_status_outcome(request->status);
    struct slice body;
    enum answer_kind form = answer_json(request->response_body, call->host->response_bytes_max, call->arena, &body);

    if (request->status < 300 && (form == ANSWER_TEXT || form == ANSWER_BINARY) &&
        type_is_json(http_response_header(request, "content-type"))) {
        answer_unknown(call, "unreadable", "The receiver said yes in an answer that calls itself JSON and is none.");
        return;
    }
    call->response = response_json(h, body);
    call->binary = form == ANSWER_BINARY ? request->response_body : SLICE_NONE;
    call->outcome = (struct outcome){
        .kind = kind,
        .retry_after_ms = http_retry_after_ms(http_response_header(request, "retry-after"),
                                              loop_wall_ms(call->host->loop), call->arena),
    };
    if (kind == OUTCOME_COMPLETED) {
        call->outcome.result = body;
        return;
    }
    call->outcome.error = arena_printf(call->arena, "http-%d", request->status);
    call->outcome.detail = arena_printf(call->arena, "The receiver answered with status %d.", request->status);
}

static void on_done(struct http_request *request)
{
    struct http_call *h = container_of(request, struct http_call, request);

    if (request->complete) {
        answer_take(h);
    } else if (request->sent) {
        answer_unknown(&h->call, request->error, request->detail);
    } else {
        /* The error "protocol" before anything left means that the URL or a header can never be sent. Another try
         * cannot help. */
        answer_unsent(&h->call, strcmp(request->error, "protocol") != 0, request->error, request->detail);
    }
    call_settle(&h->call);
}

static bool may_leave(struct http_request *request)
{
    return call_may_leave(&container_of(request, struct http_call, request)->call);
}

/* --- the request --------------------------------------------------------------------------------------------- */

static void on_refuse(struct deferred *deferred)
{
    call_settle(&container_of(deferred, struct http_call, refuse)->call);
}

static struct slice header_given(const struct http_call *h, const char *name)
{
    for (size_t i = 0; i < h->request.header_count; i++) {
        if (h->headers[i].name.len == strlen(name) && strncasecmp(h->headers[i].name.ptr, name, strlen(name)) == 0) {
            return h->headers[i].value;
        }
    }
    return SLICE_NONE;
}

/* The trace of the caller. What the tool's own settings say of it stays. */
static void trace_take(struct http_call *h)
{
    const struct trace_context *trace = &h->call.trace;

    if (!trace->parent.ptr || header_given(h, "traceparent").ptr) {
        return;
    }
    h->headers[h->request.header_count++] = (struct http_header){SLICE("traceparent"), trace->parent};
    if (trace->state.ptr && !header_given(h, "tracestate").ptr) {
        h->headers[h->request.header_count++] = (struct http_header){SLICE("tracestate"), trace->state};
    }
}

/* Each of these functions returns NULL, or a sentence that says what is wrong with the rendered settings. */
static const char *headers_take(struct http_call *h)
{
    struct call *call = &h->call;
    struct slice given = json_member(call->settings, "headers");
    bool key_in_header =
        call->send_key && (call->key_place == KEY_PLACE_DEFAULT || call->key_place == KEY_PLACE_HEADER);
    struct slice key_name = call->key_place == KEY_PLACE_HEADER ? call->key_name : SLICE("Idempotency-Key");
    struct json_walk walk = json_walk(given);
    struct slice name, value;

    if (given.ptr && json_type(given) != JSON_OBJECT && json_type(given) != JSON_NULL) {
        return "The rendered \"headers\" are no object.";
    }
    h->headers = arena_array(call->arena, json_count(given) + 4, sizeof(*h->headers));
    while (json_type(given) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        struct http_header *header = &h->headers[h->request.header_count];

        if (json_type(value) == JSON_NULL ||
            (key_in_header && name.len == key_name.len && strncasecmp(name.ptr, key_name.ptr, name.len) == 0)) {
            continue; /* our key replaces a header that was written by hand */
        }
        *header = (struct http_header){name, setting_text(value, call->arena)};
        if (!header->value.ptr) {
            return "The rendered value of a header is an array or an object.";
        }
        h->request.header_count++;
    }
    if (key_in_header) {
        h->headers[h->request.header_count++] = (struct http_header){key_name, call->key};
    }
    h->request.headers = h->headers;
    trace_take(h);
    return NULL;
}

/* Does a tool without "body" send its arguments? A question does not: it sends only what its own settings say. */
static bool sends_arguments(const struct http_call *h)
{
    struct slice method = h->request.method;

    return h->call.reading >= READING_SECOND && !h->call.question &&
           (slice_is(method, "POST") || slice_is(method, "PUT") || slice_is(method, "PATCH"));
}

static const char *body_take(struct http_call *h)
{
    struct call *call = &h->call;
    struct slice body = json_trim(json_member(call->settings, "body"));
    bool is_given = body.ptr != NULL;
    struct slice type = header_given(h, "content-type");

    if (!is_given && sends_arguments(h)) {
        body = json_trim(call->args);
    }
    if (json_type(body) == JSON_NULL) {
        body = SLICE_NONE;
    }
    if (call->send_key && call->key_place == KEY_PLACE_BODY) {
        struct slice key = arena_printf(call->arena, "\"%.*s\"", SLICE_ARG(call->key));

        body = body_set(body.ptr ? body : SLICE("{}"), call->key_name, key, call->arena);
        if (!body.ptr) {
            return "The idempotency key cannot be put into the rendered body at the pointer of \"key\".";
        }
    }
    if (!body.ptr) {
        return NULL;
    }
    h->request.body = body;
    if (!type.ptr) {
        h->headers[h->request.header_count++] = (struct http_header){SLICE("Content-Type"), SLICE("application/json")};
    } else if (json_type(body) == JSON_STRING && !type_is_json(type)) {
        h->request.body = json_string(body, call->arena);
    }
    return NULL;
}

static const char *url_take(struct http_call *h)
{
    struct call *call = &h->call;
    struct slice query = json_member(call->settings, "query");
    struct slice url = json_string(json_member(call->settings, "url"), call->arena);

    if (!slice_starts_with(url, "http://") && !slice_starts_with(url, "https://")) {
        return "The rendered URL does not begin with http:// or https://.";
    }
    if (call->reading >= READING_SECOND && url_has_dot_segment(url)) {
        return "A segment of the path of the rendered URL is \".\" or \"..\", which would lead to another place.";
    }
    if (json_type(query) == JSON_OBJECT) {
        url = url_add_query(url, query, call->arena);
    } else if (query.ptr && json_type(query) != JSON_NULL) {
        return "The rendered \"query\" is no object.";
    }
    if (!url.ptr) {
        return "A rendered query parameter is an object, or an array of something else than text, numbers and "
               "booleans.";
    }
    if (call->send_key && call->key_place == KEY_PLACE_QUERY) {
        url = url_add_parameter(url, call->key_name, call->key, call->arena);
    }
    h->request.url = url;
    return NULL;
}

static const char *file_setting(const struct call *call, const char *name)
{
    struct slice path = json_string(json_member(call->settings, name), call->arena);

    return path.len ? arena_text(call->arena, path) : NULL;
}

static const char *method_take(struct http_call *h)
{
    const struct call *call = &h->call;
    struct slice method = json_member(call->settings, "method");
    bool gets = call->reads && call->reading >= READING_SECOND;

    h->request.method = method.ptr ? json_string(method, call->arena) : gets ? SLICE("GET") : SLICE("POST");
    return h->request.method.ptr ? NULL : "The rendered \"method\" is no text.";
}

static void http_begin(struct call *call)
{
    struct http_call *h = container_of(call, struct http_call, call);
    struct http_request *request = &h->request;
    const char *fault = method_take(h);

    fault = fault ? fault : headers_take(h);
    fault = fault ? fault : body_take(h);
    fault = fault ? fault : url_take(h);
    if (fault) {
        answer_unsent(call, false, "bad-settings", fault);
        loop_defer(call->host->loop, &h->refuse, on_refuse);
        return;
    }
    request->timeout_ms = call->timeout_ms;
    request->connect_timeout_ms = call->timeout_ms < CONNECT_TIMEOUT_MS ? call->timeout_ms : CONNECT_TIMEOUT_MS;
    request->response_bytes_max = call->host->response_bytes_max;
    request->ca_file = file_setting(call, "ca_file");
    request->client_cert = file_setting(call, "client_cert");
    request->fresh_connection = !call->repeatable && !request->body.ptr;
    request->may_leave = may_leave;
    request->arena = call->arena;
    request->done = on_done;
    http_send(call->host->http, request);
}

static void http_cancel_call(struct call *call)
{
    http_cancel(&container_of(call, struct http_call, call)->request);
}

const struct adapter adapter_http = {
    .name = "http",
    .call_size = sizeof(struct http_call),
    .check = http_check,
    .begin = http_begin,
    .cancel = http_cancel_call,
};
