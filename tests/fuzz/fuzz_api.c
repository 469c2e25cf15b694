/*
 * Requests to the API, behind the HTTP library and in front of the engine. The input:
 *
 *     SCRIPT                       the engine's answers, one character each, see answer();
 *                                  "~" first: the engine accepts nothing new
 *     METHOD TARGET
 *     Name: value                  header lines
 *                                  an empty line
 *     body
 *
 * Every request, and each start of a batch, is answered exactly once, whatever the engine says and whenever the client
 * leaves. An error is a problem document, and nothing malformed reaches the engine (engine_door.c).
 */
#include "api/server.h"
#include "io/http/guard.h"
#include "tests/fuzz/engine_door.h"
#include "tests/fuzz/fuzz.h"

#define ANSWERS_MAX 16 /* the engine's answers to one request, before it only gives good ones */
#define ALLOWANCE ((size_t)4 << 20)

static struct http_server_options options;

static struct {
    struct http_exchange exchange;
    struct http_pair headers[HTTP_HEADERS_MAX], query[HTTP_QUERY_MAX];
    int status; /* 0 while not answered */
    bool is_held, streams, over;
} now;

/* --- the HTTP server's side, as io/http/server.h has it --- */

struct http_server *http_server_start(struct loop *loop, const struct http_server_options *given, struct err *err)
{
    (void)loop;
    (void)err;
    options = *given;
    return (struct http_server *)&options;
}

enum err_code http_server_check(const struct http_server_options *given, struct err *err)
{
    (void)given;
    (void)err;
    return ERR_OK;
}

uint16_t http_server_port(const struct http_server *server)
{
    (void)server;
    return 1;
}

bool http_server_has_tls(const struct http_server *server)
{
    (void)server;
    return false;
}

enum err_code http_server_reload_tls(struct http_server *server, struct err *err)
{
    (void)server;
    (void)err;
    return ERR_OK;
}

const char *http_server_address(const struct http_server *server)
{
    (void)server;
    return "127.0.0.1:1";
}

void http_server_stop(struct http_server *server, void (*done)(void *context), void *context)
{
    (void)server;
    done(context);
}

void http_exchange_certificate(const struct http_exchange *exchange, struct arena *arena,
                               struct client_certificate *out)
{
    (void)exchange;
    (void)arena;
    *out = (struct client_certificate){0};
}

struct slice http_exchange_client(const struct http_exchange *exchange)
{
    MUST(exchange == &now.exchange);
    return SLICE_NONE;
}

void http_answer_header(struct http_exchange *exchange, const char *name, struct slice value)
{
    MUST(exchange == &now.exchange && now.status == 0 && name[0]);
    for (size_t i = 0; i < value.len; i++) {
        MUST((unsigned char)value.ptr[i] >= 0x20 && value.ptr[i] != 0x7f);
    }
}

static void check_problem(int status, struct slice body)
{
    int64_t told;

    MUST(json_type(json_member(body, "type")) == JSON_STRING && json_type(json_member(body, "title")) == JSON_STRING);
    MUST(json_type(json_member(body, "detail")) == JSON_STRING &&
         json_type(json_member(body, "retryable")) == JSON_BOOL);
    MUST(json_i64(json_member(body, "status"), &told) && told == status && status >= 400);
}

/* Checks that each start has a result: a saga or a problem. */
static void check_results(struct slice body)
{
    struct json_walk walk = json_walk(json_member(body, "items"));
    struct json_walk starts = json_walk(now.exchange.body);
    struct slice result, start;

    while (json_next_element(&starts, &start)) {
        int64_t status;

        MUST(json_next_element(&walk, &result) && json_i64(json_member(result, "status"), &status));
        if (status >= 400) {
            check_problem((int)status, json_member(result, "body"));
        } else {
            MUST((status == 200 || status == 201) && json_type(json_member(result, "location")) == JSON_STRING);
            MUST(json_member(json_member(result, "body"), "id").ptr);
        }
    }
    MUST(!json_next_element(&walk, &result));
}

void http_respond(struct http_exchange *exchange, int status, const char *content_type, struct slice body)
{
    static const struct json_limits limits = {ALLOWANCE, 90, 1024, 400};

    MUST(exchange == &now.exchange && now.status == 0 && !now.streams);
    MUST(status >= 200 && status < 600);
    now.status = status;
    now.over = true;
    if (content_type && strstr(content_type, "json")) {
        MUST(json_check(body, &limits, NULL) == ERR_OK);
    }
    if (content_type && strstr(content_type, "problem")) {
        check_problem(status, body);
    } else {
        MUST(status < 400 || status == 503 || slice_starts_with(now.exchange.path, "/mcp"));
        if (slice_is(now.exchange.path, "/v1/sagas/batch") && slice_is(now.exchange.method, "POST")) {
            check_results(body);
        }
    }
}

void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type)
{
    MUST(exchange == &now.exchange && now.status == 0 && content_type);
    now.status = status;
    now.streams = true;
}

void http_stream_write(struct http_exchange *exchange, struct slice bytes)
{
    MUST(exchange == &now.exchange && now.streams && !now.over);
    MUST(bytes.len == 0 || bytes.ptr[bytes.len - 1] == '\n');
}

void http_stream_end(struct http_exchange *exchange)
{
    MUST(exchange == &now.exchange && now.streams && !now.over);
    now.over = true;
}

void http_body_hold(struct http_exchange *exchange)
{
    MUST(exchange == &now.exchange && now.status == 0 && !now.is_held);
    now.is_held = true;
}

void http_body_go_on(struct http_exchange *exchange)
{
    MUST(exchange == &now.exchange && now.status == 0 && now.is_held);
    now.is_held = false;
    options.on_request(exchange, options.context);
}

void http_body_limit(struct http_exchange *exchange, size_t bytes_max)
{
    MUST(exchange == &now.exchange && now.status == 0 && bytes_max > 0);
}

/* --- the engine's answers --- */

static struct slice log_entries(const struct engine_request *request, char how)
{
    if (how == '0') {
        return SLICE("[]");
    }
    return arena_printf(request->arena, "[{\"seq\":%llu,\"type\":\"%s\",\n\"data\":{}}]",
                        (unsigned long long)(request->in.log.after_seq & INT32_MAX) + 1,
                        how == '1' ? "step.intent" : "saga.completed");
}

/* One grant, by the token that this request shows, if any. Its body is what the script says: 0 a run, 1 a saga. */
static void answer_grants(struct engine_request *request, char how)
{
    struct engine_grant *grant = arena_alloc(request->arena, sizeof(*grant));
    const char *slash = memrchr(now.exchange.path.ptr, '/', now.exchange.path.len);
    struct slice token = {slash + 1, (size_t)(now.exchange.path.ptr + now.exchange.path.len - slash) - 1};
    struct slice header = http_exchange_header(&now.exchange, "authorization");

    grant->id = request->in.grant.ids ? request->in.grant.ids[0] : request->in.grant.id;
    grant->secret = digest_sha256(header.len > 7 ? slice_trim((struct slice){header.ptr + 7, header.len - 7}) : token);
    grant->namespace = SLICE("default");
    grant->body = how == '0' ? SLICE("{\"issuer\":\"local\",\"run\":\"r\",\"scope\":\"\",\"tools\":[\"saga_open\"]}")
                             : SLICE("{\"issuer\":\"local\",\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0007\"}");
    grant->expires_ms = INT64_C(4102444800000);
    request->grants = grant;
    request->grant_count = how != '2';
}

static void answer_well(struct engine_request *request, enum door door, char how)
{
    request->code = ERR_OK;
    request->next_cursor = SLICE_NONE;
    switch (door) {
    case DOOR_THING:
        request->answer = how == '0' ? SLICE("{\"id\":1,\"ended_at\":null}")
                                     : SLICE("{\"id\":1,\"ended_at\":\"2026-01-01T00:00:00.000Z\"}");
        break;
    case DOOR_LIST:
        request->answer = how == '0' ? SLICE("[]") : SLICE("[{\"name\":\"a\"},{\"name\":\"b\"}]");
        request->next_cursor = how == '2' ? SLICE("cursor\"") : SLICE_NONE;
        break;
    case DOOR_LOG:
        request->answer = log_entries(request, how);
        break;
    case DOOR_START:
        request->saga.uuid.bytes[0] = 1;
        request->created = how == '1';
        break;
    case DOOR_FIND:
        request->saga.uuid.bytes[0] = 2;
        break;
    case DOOR_CALL:
        request->answer = SLICE("{\"key\":1}");
        request->call = (struct call_result){
            .going_on = how == '1', .replayed = how == '2', .first_ms = how == '2', .key = SLICE("key")};
        break;
    case DOOR_GRANTS:
        answer_grants(request, how);
        break;
    }
}

/* Answers a request. A digit chooses one of three good answers; any other character chooses an error. */
static void answer(char how)
{
    size_t i = (unsigned char)how % engine_door.count; /* in any order */
    struct door_request asked = engine_door.waiting[i];
    struct engine_request *request = asked.request;
    enum door door = asked.door;

    engine_door.waiting[i] = engine_door.waiting[--engine_door.count];
    request->err = (struct err){0};
    if (asked.cancelled) {
        request->code = err_set(&request->err, ERR_TIMEOUT, "the request was given up");
    } else if (how >= '0' && how <= '9') {
        answer_well(request, door, how);
    } else {
        request->code = err_set(&request->err, (enum err_code)(1 + (unsigned char)how % (ERR_COUNT - 1)),
                                "as the script says \"\x01");
        request->faults = (struct faults){0};
        if (door == DOOR_CALL) {
            request->call =
                (struct call_result){.pointers = SLICE("[\"/a\"]"), .operation = SLICE("{}"), .retry_after_ms = how};
        }
    }
    request->done(request);
}

/* --- the client's side --- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static struct slice percent_decode(struct slice text, bool plus, struct arena *arena)
{
    char *out = arena_text(arena, text);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '%' && i + 2 < text.len && hex(text.ptr[i + 1]) >= 0 && hex(text.ptr[i + 2]) >= 0) {
            out[len++] = (char)(hex(text.ptr[i + 1]) * 16 + hex(text.ptr[i + 2]));
            i += 2;
        } else {
            out[len++] = plus && text.ptr[i] == '+' ? ' ' : text.ptr[i];
        }
    }
    out[len] = '\0';
    return (struct slice){out, len};
}

static struct slice take_until(struct slice *rest, char stop)
{
    const char *end = rest->len ? memchr(rest->ptr, stop, rest->len) : NULL;
    struct slice part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = part.len + (end ? 1 : 0);

    *rest = (struct slice){rest->ptr + taken, rest->len - taken};
    return part;
}

static bool read_target(struct slice target, struct arena *arena)
{
    struct slice path = take_until(&target, '?');

    now.exchange.path = percent_decode(path, false, arena);
    now.exchange.query = now.query;
    while (target.len > 0) {
        struct slice value = take_until(&target, '&'), name = take_until(&value, '=');

        if (now.exchange.query_count == HTTP_QUERY_MAX) {
            return false;
        }
        now.query[now.exchange.query_count++] =
            (struct http_pair){percent_decode(name, true, arena), percent_decode(value, true, arena)};
    }
    return true;
}

/* Reads a request. Returns false for a request that would not pass the HTTP library and the guard. */
static bool read_request(struct slice text, struct arena *arena)
{
    struct slice line = fuzz_line(&text), target;
    int64_t length;

    now.exchange = (struct http_exchange){.arena = arena, .headers = now.headers};
    now.status = 0;
    now.is_held = now.streams = now.over = false;
    now.exchange.method = take_until(&line, ' ');
    target = line;
    while (text.len > 0) {
        struct slice value = fuzz_line(&text);

        if (value.len == 0) {
            break;
        }
        if (now.exchange.header_count == HTTP_HEADERS_MAX) {
            return false;
        }
        struct slice name = take_until(&value, ':');

        now.headers[now.exchange.header_count++] = (struct http_pair){name, slice_trim(value)};
    }
    now.exchange.body = text;
    return !http_guard_target(target) &&
           !http_guard_headers(now.exchange.method, SLICE("HTTP/1.1"), now.headers, now.exchange.header_count,
                               &length) &&
           read_target(target, arena);
}

static void leave(void)
{
    if (!now.over && now.exchange.on_gone) {
        now.exchange.on_gone(&now.exchange);
    }
}

static void play(struct slice script)
{
    for (size_t i = 0; i < ANSWERS_MAX && !now.over; i++) {
        char how = script.len ? script.ptr[i % script.len] : '0';

        if (how == '!') { /* the client leaves */
            leave();
        }
        if (engine_door.count > 0) {
            answer(how);
        } else if (now.streams && !now.over && now.exchange.on_drained) {
            now.exchange.on_drained(&now.exchange);
            if (!now.over && engine_door.watch) {
                engine_door.watch->changed(engine_door.watch, UINT64_MAX, false);
            }
        }
    }
    leave(); /* clients that follow for ever leave, too */
    while (engine_door.count > 0 && !now.over) {
        answer('0');
    }
}

static struct api *api(bool has_token)
{
    static struct api *open, *guarded;
    static struct http_server_options of_open, of_guarded;
    static struct loop *loop;
    struct err err = {0};

    if (!open) {
        loop = loop_new();
        open = api_start(loop, (struct engine *)&engine_door, &(struct api_options){0}, &err);
        of_open = options;
        guarded = api_start(loop, (struct engine *)&engine_door, &(struct api_options){.dev_token = "t"}, &err);
        of_guarded = options;
        MUST(open && guarded);
    }
    options = has_token ? of_guarded : of_open;
    return has_token ? guarded : open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size), script = fuzz_line(&text);
    struct arena *arena = fuzz_arena();

    if (!read_request(text, arena)) {
        return 0;
    }
    engine_door.busy = script.len > 0 && script.ptr[0] == '~';
    (void)api(http_exchange_header(&now.exchange, "authorization").ptr != NULL);
    options.on_headers(&now.exchange, options.context);
    if (now.status == 0) {
        if (!now.is_held) {
            options.on_request(&now.exchange, options.context);
        }
        play(script);
    }
    MUST(now.status != 0 && now.over && engine_door.count == 0 && !engine_door.watch);
    return 0;
}
