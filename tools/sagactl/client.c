/* Sends requests over HTTP with the client of the engine's http adapter: no proxies of the environment, no
 * redirects. */
#include "tools/sagactl/client.h"

#include "tools/sagactl/input_text.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/words.h"

#include <stdio.h>
#include <string.h>

#define RESPONSE_BYTES_MAX (64 << 20)
#define PROBLEM_PREFIX "urn:sagad:problem:"

struct call_wait {
    struct http_request request;
    struct loop *loop;
};

/* An answer wraps a payload of up to 64 levels in some levels of its own. */
static const struct json_limits answer_limits = {
    .bytes_max = RESPONSE_BYTES_MAX, .depth_max = 90, .number_bytes_max = 1024, .exponent_max = 400};

static void client_open(struct ctl *ctl)
{
    if (!ctl->loop) {
        ctl->loop = loop_new();
        ctl->http = http_client_new(ctl->loop, 4, 4);
    }
}

void client_close(struct ctl *ctl)
{
    if (ctl->loop) {
        http_client_free(ctl->http);
        loop_free(ctl->loop);
        ctl->loop = NULL;
    }
}

static void on_done(struct http_request *request)
{
    loop_stop(container_of(request, struct call_wait, request)->loop);
}

static const char *why_none(const struct http_request *request)
{
    return request->detail[0] ? request->detail : request->error ? request->error : "no answer";
}

static int unreachable(const struct ctl *ctl, const struct http_request *request)
{
    if (ctl->quiet || ctl->silent) {
        return request->timed_out ? EXIT_WAIT_OVER : EXIT_UNREACHABLE;
    }
    if (request->timed_out) {
        (void)fprintf(stderr, "sagactl: %s did not answer in time\n", ctl->server);
        return EXIT_WAIT_OVER;
    }
    (void)fprintf(stderr, "sagactl: %s cannot be reached: %s\n  %s\n", ctl->server, why_none(request),
                  request->error && strcmp(request->error, "tls") == 0
                      ? "Is its certificate trusted here? Name the PEM file of its authority with --ca-file or "
                        "SAGACTL_CA_FILE."
                      : "Is sagad running there? Another address goes with --server or SAGACTL_SERVER.");
    return EXIT_UNREACHABLE;
}

static int exit_code_of(struct slice type, int status)
{
    if (type.len > sizeof(PROBLEM_PREFIX) - 1) {
        struct slice name = {type.ptr + sizeof(PROBLEM_PREFIX) - 1, type.len - sizeof(PROBLEM_PREFIX) + 1};

        for (int code = ERR_OK + 1; code < ERR_COUNT; code++) {
            if (slice_is(name, err_name((enum err_code)code))) {
                return err_exit_code((enum err_code)code);
            }
        }
    }
    switch (status) {
    case 401:
    case 403:
        return EXIT_NOT_PERMITTED;
    case 404:
        return EXIT_NOT_FOUND;
    case 409:
        return EXIT_CONFLICT;
    case 502:
    case 503:
        return EXIT_UNREACHABLE;
    case 504:
        return EXIT_WAIT_OVER;
    default:
        return EXIT_FAILED;
    }
}

/* Prints the operation that a refused call is about, and what is wrong with the call. */
static void print_operation(struct slice body, struct arena *arena)
{
    struct slice operation = json_member(body, "operation"), pointers = json_member(body, "pointers"), pointer;

    if (json_type(operation) == JSON_OBJECT) {
        (void)fprintf(stderr, "  operation %.*s is %.*s: sagactl operations %.*s\n",
                      SLICE_ARG(json_string(json_member(operation, "key"), arena)),
                      SLICE_ARG(json_string(json_member(operation, "state"), arena)),
                      SLICE_ARG(json_string(json_member(operation, "key"), arena)));
    }
    if (json_type(pointers) == JSON_ARRAY) {
        struct json_walk walk = json_walk(pointers);

        while (json_next_element(&walk, &pointer)) {
            (void)fprintf(stderr, "  differs: %.*s\n", SLICE_ARG(json_string(pointer, arena)));
        }
    }
}

/* Prints where a person finds the question to decide. */
static void print_way_out(struct slice body, struct slice type, struct arena *arena)
{
    struct slice saga = json_string(json_member(json_member(body, "operation"), "saga"), arena);

    if (slice_is(type, PROBLEM_PREFIX "awaiting-operator")) {
        (void)fprintf(stderr, "  sagactl escalations\n");
    } else if (slice_is(type, PROBLEM_PREFIX "paused") && saga.len > 0) {
        (void)fprintf(stderr, "  sagactl resume %.*s --note \"...\"\n", SLICE_ARG(saga));
    }
}

int print_problem(const struct ctl *ctl, int status, struct slice body)
{
    struct arena arena;
    struct slice detail, type, pointer, error;

    arena_init(&arena, 4096);
    type = json_string(json_member(body, "type"), &arena);
    detail = json_string(json_member(body, "detail"), &arena);
    if (!detail.ptr) {
        (void)fprintf(stderr, "sagactl: %s answered %d, and not as sagad does\n", ctl->server, status);
    } else {
        struct json_walk walk = json_walk(json_member(body, "errors"));

        detail = text_clean(detail, &arena);
        (void)fprintf(stderr, "sagactl: %.*s\n", SLICE_ARG(ctl->sent ? detail : words_of_flags(detail, &arena)));
        while (json_type(json_member(body, "errors")) == JSON_ARRAY && json_next_element(&walk, &error)) {
            pointer = json_string(json_member(error, "pointer"), &arena);
            detail = json_string(json_member(error, "detail"), &arena);
            detail = text_clean(detail, &arena);
            if (ctl->sent) {
                input_print_fault(ctl->sent, pointer, detail);
            } else {
                struct slice flag = words_flag_of(pointer, &arena);

                flag = flag.ptr ? flag : pointer.len ? pointer : SLICE("(document)");
                (void)fprintf(stderr, "  %.*s: %.*s\n", SLICE_ARG(flag), SLICE_ARG(words_of_flags(detail, &arena)));
            }
        }
        print_operation(body, &arena);
        print_way_out(body, type.ptr ? type : SLICE(""), &arena);
        if (status == 401 && !ctl->token) {
            (void)fputs("  A token goes with --token, --token-file, SAGACTL_TOKEN or SAGACTL_TOKEN_FILE.\n", stderr);
        }
    }
    int code = exit_code_of(type.ptr ? type : SLICE(""), status);

    arena_fini(&arena);
    return code;
}

static size_t put_headers(const struct ctl *ctl, struct arena *arena, struct http_header *headers, bool has_body,
                          struct slice accept)
{
    size_t count = 0;

    headers[count++] = (struct http_header){SLICE("Accept"), accept};
    if (has_body) {
        headers[count++] = (struct http_header){SLICE("Content-Type"), SLICE("application/json")};
    }
    if (ctl->token) {
        headers[count++] = (struct http_header){SLICE("Authorization"), arena_printf(arena, "Bearer %s", ctl->token)};
    }
    if (ctl->namespace) {
        headers[count++] = (struct http_header){SLICE("Sagad-Namespace"), slice_of(ctl->namespace)};
    }
    if (ctl->emission && has_body) {
        headers[count++] = (struct http_header){SLICE("Idempotency-Key"), slice_of(ctl->emission)};
    }
    return count;
}

int client_call(struct ctl *ctl, const char *method, struct slice path, struct slice body, int64_t timeout_ms,
                struct arena *arena, struct answer *out)
{
    struct http_header headers[6];
    struct err err = {0};

    client_open(ctl);
    struct call_wait wait = {.loop = ctl->loop};
    struct http_request *request = &wait.request;

    request->method = slice_of(method);
    request->url = arena_printf(arena, "%s%.*s", ctl->server, SLICE_ARG(path));
    request->body = body;
    request->headers = headers;
    request->header_count = put_headers(ctl, arena, headers, body.ptr != NULL, SLICE("application/json"));
    request->ca_file = ctl->ca_file;
    request->client_cert = ctl->cert;
    request->client_key = ctl->key;
    request->timeout_ms = timeout_ms;
    request->connect_timeout_ms = 5000;
    request->response_bytes_max = RESPONSE_BYTES_MAX;
    request->arena = arena;
    request->done = on_done;
    http_send(ctl->http, request);
    loop_run(ctl->loop);
    bool is_table = false;

    *out = (struct answer){0};
    if (!request->complete) {
        out->why =
            request->timed_out ? SLICE("it did not answer in time") : arena_printf(arena, "%s", why_none(request));
        return unreachable(ctl, request);
    }
    out->status = request->status;
    for (size_t i = 0; i < request->response_header_count; i++) {
        if (slice_is(request->response_headers[i].name, "location")) {
            out->location = request->response_headers[i].value;
        } else if (slice_is(request->response_headers[i].name, "content-type")) {
            is_table = slice_starts_with(request->response_headers[i].value, "text/csv");
        } else if (slice_is(request->response_headers[i].name, "idempotent-first-at")) {
            out->first_at = request->response_headers[i].value;
        } else if (slice_is(request->response_headers[i].name, "retry-after")) {
            (void)slice_to_i64(request->response_headers[i].value,
                               &out->retry_after_s); /* fails when the value is a date */
        }
    }
    bool is_json = request->response_body.len > 0 && json_check(request->response_body, &answer_limits, &err) == ERR_OK;

    out->body = is_json ? json_trim(request->response_body) : SLICE_NONE;
    if (request->status < 200 || request->status > 299) {
        bool again = ctl->quiet && (request->status == 503 || request->status == 413);

        return again         ? EXIT_UNREACHABLE
               : ctl->silent ? exit_code_of(json_string(json_member(out->body, "type"), arena), request->status)
                             : print_problem(ctl, request->status, out->body);
    }
    if (is_table) {
        out->table = request->response_body;
    } else if (!is_json && request->response_body.len > 0) {
        if (!ctl->silent) {
            (void)fprintf(stderr, "sagactl: %s did not answer as sagad does: no JSON\n", ctl->server);
        }
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

int client_get(struct ctl *ctl, struct slice path, struct arena *arena, struct answer *out)
{
    return client_call(ctl, "GET", path, SLICE_NONE, 30000, arena, out);
}

/* --- streams --- */

static void stream_event(struct client_stream *stream)
{
    if (stream->data.len > 0 && !stream->finished) {
        struct err err = {0};
        struct slice data = buffer_slice(&stream->data);

        if (json_check(data, &answer_limits, &err) == ERR_OK && !stream->on_event(stream, data)) {
            stream->finished = true;
            http_cancel(stream->request);
        }
    }
    buffer_reset(&stream->data);
}

static void stream_line(struct client_stream *stream)
{
    struct slice line = buffer_slice(&stream->line);
    int64_t id = 0;

    if (line.len == 0) {
        stream_event(stream);
    } else if (slice_starts_with(line, "data: ")) {
        if (stream->data.len > 0) {
            buffer_put_char(&stream->data, '\n');
        }
        buffer_put(&stream->data, line.ptr + 6, line.len - 6);
    } else if (slice_starts_with(line, "id: ") && slice_to_i64((struct slice){line.ptr + 4, line.len - 4}, &id)) {
        stream->last_id = (uint64_t)id;
    }
    buffer_reset(&stream->line);
}

struct stream_wait {
    struct call_wait wait;
    struct client_stream *stream;
};

static void on_data(struct http_request *request, struct slice data)
{
    struct client_stream *stream =
        container_of(container_of(request, struct call_wait, request), struct stream_wait, wait)->stream;

    for (size_t i = 0; i < data.len && !stream->finished; i++) {
        if (data.ptr[i] == '\n') {
            stream_line(stream);
        } else {
            buffer_put_char(&stream->line, data.ptr[i]);
        }
    }
}

int client_follow(struct client_stream *stream)
{
    struct ctl *ctl = stream->ctl;
    struct http_header headers[6];
    struct arena arena;
    struct answer answer;

    client_open(ctl);
    arena_init(&arena, 4096);
    struct stream_wait wait = {.wait = {.loop = ctl->loop}, .stream = stream};
    struct http_request *request = &wait.wait.request;
    size_t count = put_headers(ctl, &arena, headers, false, SLICE("text/event-stream"));

    headers[count++] =
        (struct http_header){SLICE("Last-Event-ID"), arena_printf(&arena, "%llu", (unsigned long long)stream->last_id)};
    buffer_init(&stream->line, 4 << 20);
    buffer_init(&stream->data, 4 << 20);
    stream->request = request;
    *request = (struct http_request){.method = SLICE("GET"),
                                     .url = arena_printf(&arena, "%s%.*s", ctl->server, SLICE_ARG(stream->path)),
                                     .headers = headers,
                                     .header_count = count,
                                     .ca_file = ctl->ca_file,
                                     .client_cert = ctl->cert,
                                     .client_key = ctl->key,
                                     .timeout_ms = INT64_C(24) * 3600 * 1000,
                                     .connect_timeout_ms = 5000,
                                     .response_bytes_max = SIZE_MAX,
                                     .streaming = true,
                                     .on_data = on_data,
                                     .arena = &arena,
                                     .done = on_done};
    http_send(ctl->http, request);
    loop_run(ctl->loop);
    int code = EXIT_OK;

    if (request->status == 204) {
        stream->finished = true;
    } else if (request->status == 0 && !stream->finished) {
        code = unreachable(ctl, request);
    } else if (request->status >=
               300) { /* the body of a stream is not collected, so a second request gets the problem */
        code = client_get(ctl, stream->path, &arena, &answer);
        code = code ? code : EXIT_FAILED;
    }
    buffer_fini(&stream->line);
    buffer_fini(&stream->data);
    arena_fini(&arena);
    return code;
}

struct slice url_escape(struct slice text, struct arena *arena)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    char *out = arena_alloc(arena, text.len * 3 + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] && strchr(plain, text.ptr[i])) {
            out[len++] = text.ptr[i];
        } else {
            (void)snprintf(out + len, 4, "%%%02X", (unsigned char)text.ptr[i]);
            len += 3;
        }
    }
    return (struct slice){out, len};
}
