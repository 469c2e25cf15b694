/*
 * How a request is served: the guard checks its head, its body is collected, and its handler is called. Then it is
 * answered at once or parked.
 *
 * While nothing can be sent the connection is suspended, "parked": the library then does not watch its socket, so a
 * client that leaves would go unnoticed. We watch it ourselves, but only when it has been parked for a while, so that
 * the many short waits cost no system calls.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "io/http/client_trust.h"
#include "io/http/guard.h"
#include "io/http/server_state.h"

#define BODY_KEPT_BYTES (64 * 1024) /* larger buffers are given back after their request */
#define ARENA_BLOCK_BYTES 4096
#define SPARE_MAX 256
#define QUERY_PARTS_MAX 128 /* more are refused before the library reads them; more than HTTP_QUERY_MAX behind it */
#define DISCARD_FACTOR 16   /* reads and throws away at most this many times the largest body */

struct slice http_exchange_client(const struct http_exchange *exchange)
{
    const struct exchange *x = container_of(exchange, const struct exchange, public);
    const struct sockaddr *address = MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    char text[NI_MAXHOST];

    if (getnameinfo(address, length, text, sizeof(text), NULL, 0, NI_NUMERICHOST) != 0) {
        return SLICE_NONE;
    }
    return arena_slice(exchange->arena, slice_of(text));
}

void http_exchange_certificate(const struct http_exchange *exchange, struct arena *arena,
                               struct client_certificate *out)
{
    const struct exchange *x = container_of(exchange, const struct exchange, public);
    const struct client_trust *trust = x->server->tls ? http_tls_trust(x->server->tls) : NULL;

    *out = (struct client_certificate){0};
    if (trust && !x->gone && !x->finished) {
        client_trust_look(trust, MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session,
                          arena, out);
    }
}

/* --- parking --- */

static void on_watch_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct watch, poll));
}

static void exchange_unwatch(struct exchange *x)
{
    if (x->watch) {
        x->watch->exchange = NULL;
        (void)uv_poll_stop(&x->watch->poll); /* never fails */
        uv_close((uv_handle_t *)&x->watch->poll, on_watch_closed);
        x->watch = NULL;
    }
}

void http_exchange_unpark(struct exchange *x)
{
    if (!x->parked) {
        return;
    }
    if (x->in_parked_list) {
        list_remove(&x->server->parked, &x->link);
        x->in_parked_list = false;
    }
    exchange_unwatch(x); /* before the library may close the socket */
    x->parked = false;
    MHD_resume_connection(x->mhd);
    http_server_kick(x->server);
}

static void on_watch(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = container_of(poll, struct watch, poll);
    struct exchange *x = watch->exchange;

    if (!x || (status == 0 && !(events & UV_DISCONNECT))) {
        return;
    }
    CHECK(x->magic == EXCHANGE_MAGIC);
    x->gone = true;
    exchange_unwatch(x);
    if (x->state == EXCHANGE_STREAMING) {
        http_exchange_unpark(x); /* the reader ends the stream, and the library tells us that it is over */
    } else if (x->public.on_gone) {
        x->public.on_gone(&x->public); /* stays parked until it is answered */
    }
}

void http_exchange_watch(struct exchange *x)
{
    struct watch *watch = memory_alloc(sizeof(*watch));

    watch->exchange = x;
    if (uv_poll_init(loop_uv(x->server->loop), &watch->poll, x->connection->fd) != 0) {
        free(watch); /* we then notice only when we answer that the client has left */
        return;
    }
    x->watch = watch;
    (void)uv_poll_start(&watch->poll, UV_DISCONNECT, on_watch); /* never fails for a valid handle */
}

void http_exchange_park(struct exchange *x)
{
    MHD_suspend_connection(x->mhd);
    x->parked = true;
    x->parked_ms = loop_boot_ms(x->server->loop);
    x->in_parked_list = true;
    list_push(&x->server->parked, &x->link);
}

/* --- exchanges --- */

static struct exchange *exchange_new(struct http_server *server, struct MHD_Connection *mhd)
{
    struct list_link *link = list_pop(&server->spare);
    struct exchange *x = LIST_ITEM(link, struct exchange, link);

    if (!x) {
        x = memory_alloc(sizeof(*x));
        x->magic = EXCHANGE_MAGIC;
        x->server = server;
        arena_init(&x->arena, ARENA_BLOCK_BYTES);
        buffer_init(&x->body, server->options.body_bytes_max);
        buffer_init(&x->out, STREAM_BYTES_MAX);
    }
    x->mhd = mhd;
    x->connection = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    x->public = (struct http_exchange){.arena = &x->arena};
    x->body_bytes_max = server->options.body_bytes_max;
    x->begun_us = loop_boot_us(server->loop);
    server->open++;
    return x;
}

void http_exchange_free(struct exchange *x)
{
    x->magic = 0;
    arena_fini(&x->arena);
    buffer_fini(&x->body);
    buffer_fini(&x->out);
    free(x);
}

void http_exchange_recycle(struct exchange *x)
{
    struct http_server *server = x->server;

    CHECK(!x->parked && !x->counted && !x->watch);
    loop_defer_cancel(server->loop, &x->drained);
    arena_reset(&x->arena);
    if (x->body.capacity > BODY_KEPT_BYTES || x->out.capacity > BODY_KEPT_BYTES || server->spare.count >= SPARE_MAX) {
        http_exchange_free(x);
    } else {
        struct exchange kept = *x;

        *x = (struct exchange){
            .magic = EXCHANGE_MAGIC, .server = server, .arena = kept.arena, .body = kept.body, .out = kept.out};
        buffer_reset(&x->body);
        buffer_reset(&x->out);
        list_push(&server->spare, &x->link);
    }
    server->open--;
    http_server_check_stopped(server);
}

/* The handler owes an answer, or to go on with the body. */
static void http_exchange_promise(struct exchange *x)
{
    x->counted = true;
    x->server->active++;
}

void http_exchange_settled(struct exchange *x) /* the handler has kept its promise */
{
    if (x->counted) {
        x->counted = false;
        x->server->active--;
        http_server_check_stopped(x->server);
    }
}

/* --- a body that waits: the library reads nothing of a suspended connection --- */

void http_body_hold(struct http_exchange *exchange)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_READING && x->in_handler);
    x->state = EXCHANGE_HELD;
    http_connection_move(x->server, x->connection, PHASE_BUSY);
    http_exchange_promise(x);
}

void http_exchange_release(struct exchange *x, enum state state)
{
    CHECK(x->state == EXCHANGE_HELD);
    x->state = state;
    x->resumes = true;
    http_connection_move(x->server, x->connection, PHASE_BODY);
    http_exchange_unpark(x);
    http_exchange_settled(x);
}

void http_body_go_on(struct http_exchange *exchange)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC);
    http_exchange_release(x, EXCHANGE_READING);
}

void http_body_limit(struct http_exchange *exchange, size_t bytes_max)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->in_handler);
    x->body_bytes_max = bytes_max < x->body_bytes_max ? bytes_max : x->body_bytes_max;
}

/* The library runs out of the connection's memory over far too many parameters, and then says nothing to the client. */
static size_t query_parts(const char *target)
{
    size_t count = 0;

    for (const char *at = strchr(target, '?'); at; at = strchr(at + 1, '&')) {
        count++;
    }
    return count;
}

void *http_exchange_on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct http_server *server = context;
    struct exchange *x = exchange_new(server, mhd);

    server->happened++;
    x->target_fault = http_guard_target(slice_of(target));
    if (x->connection) {
        x->connection->exchange = x;
        http_connection_move(server, x->connection, PHASE_HEADER);
        if (query_parts(target) > QUERY_PARTS_MAX) {
            http_connection_refuse(server, x->connection, "a target has at most 32 query parameters");
        }
    }
    return x;
}

struct pairs {
    struct http_pair *items;
    size_t count, count_max;
    bool holds_nul, too_many;
};

static enum MHD_Result on_pair(void *context, enum MHD_ValueKind kind, const char *name, size_t name_len,
                               const char *value, size_t value_len)
{
    struct pairs *pairs = context;

    (void)kind;
    if (pairs->count == pairs->count_max) {
        pairs->too_many = true;
        return MHD_NO;
    }
    pairs->holds_nul |= strlen(name) != name_len || (value && strlen(value) != value_len);
    pairs->items[pairs->count++] =
        (struct http_pair){{name, name_len}, value ? (struct slice){value, value_len} : SLICE("")};
    return MHD_YES;
}

static struct pairs exchange_pairs(struct exchange *x, enum MHD_ValueKind kind, size_t count_max)
{
    int count = MHD_get_connection_values_n(x->mhd, kind, NULL, NULL);
    struct pairs pairs = {.count_max = count_max};

    if (count > 0) {
        pairs.items =
            arena_array(&x->arena, (size_t)count < count_max ? (size_t)count : count_max, sizeof(*pairs.items));
        (void)MHD_get_connection_values_n(x->mhd, kind, on_pair, &pairs); /* the count is in pairs */
    }
    return pairs;
}

static const char *exchange_read_head(struct exchange *x, const char *method, const char *path, const char *version)
{
    struct pairs headers = exchange_pairs(x, MHD_HEADER_KIND, HTTP_HEADERS_MAX),
                 query = exchange_pairs(x, MHD_GET_ARGUMENT_KIND, HTTP_QUERY_MAX);

    x->public.method = slice_of(method);
    x->public.path = slice_of(path);
    x->public.headers = headers.items;
    x->public.header_count = headers.count;
    x->public.query = query.items;
    x->public.query_count = query.count;
    if (x->target_fault) {
        return x->target_fault;
    }
    if (headers.holds_nul || query.holds_nul) {
        return "the head holds a NUL";
    }
    if (headers.too_many || query.too_many) {
        return "more than 64 header fields or 32 query parameters";
    }
    const char *fault = http_guard_decoded(x->public.path, query.items, query.count);

    if (fault) {
        return fault;
    }
    fault = http_guard_headers(x->public.method, slice_of(version), headers.items, headers.count, &x->content_length);
    return fault ? fault
                 : http_guard_layout(x->public.method, x->public.path, slice_of(version), headers.items, headers.count);
}

static enum MHD_Result exchange_queue(struct exchange *x)
{
    enum MHD_Result result = MHD_queue_response(x->mhd, (unsigned)x->status, x->response);

    MHD_destroy_response(x->response); /* releases our reference; the library holds its own */
    x->response = NULL;
    return result;
}

static int64_t discard_bytes_max(const struct http_server *server)
{
    return (int64_t)server->options.body_bytes_max * DISCARD_FACTOR;
}

static void exchange_refuse(struct exchange *x, enum err_code code, const char *detail)
{
    x->closes |= code == ERR_MALFORMED;
    x->in_handler = true;
    x->server->options.on_refused(&x->public, code, detail, x->server->options.context);
    x->in_handler = false;
    CHECK(x->state == EXCHANGE_ANSWERED);
}

/* A client that is refused is answered before the end of a body of unknown length, which might never end. */
bool http_exchange_is_at_once(const struct exchange *x)
{
    return (x->status == 401 || x->status == 403) && http_exchange_header(&x->public, "transfer-encoding").ptr;
}

/*
 * An answer before the end of the body would close the connection on a client that still sends, and the reset could
 * overtake the answer. Therefore a body of bearable size is first read and thrown away, unless the client waits to be
 * asked for it.
 */
static bool exchange_has_bearable_body(const struct exchange *x)
{
    bool chunked = http_exchange_header(&x->public, "transfer-encoding").ptr != NULL;

    return (chunked || x->content_length > 0) && x->content_length <= discard_bytes_max(x->server) &&
           !http_exchange_header(&x->public, "expect").ptr;
}

/* The head has been read, and perhaps answered. */
static enum MHD_Result exchange_begun(struct exchange *x)
{
    if (x->state == EXCHANGE_HELD) {
        http_exchange_park(x);
    }
    if (x->state != EXCHANGE_ANSWERED) {
        return MHD_YES;
    }
    if (exchange_has_bearable_body(x) && !http_exchange_is_at_once(x)) {
        x->state = EXCHANGE_READING; /* the answer is ready */
        return MHD_YES;
    }
    return exchange_queue(x);
}

static enum MHD_Result exchange_begin(struct exchange *x, const char *method, const char *path, const char *version)
{
    const char *fault = exchange_read_head(x, method, path, version);

    x->state = EXCHANGE_READING;
    http_connection_move(x->server, x->connection, PHASE_BODY);
    if (fault) {
        exchange_refuse(x, ERR_MALFORMED, fault);
        return exchange_queue(x); /* the length of its body is not known for sure */
    }
    if (http_connection_is_surplus(x->server, x->connection)) {
        x->closes = true;
        exchange_refuse(x, ERR_BUSY, "there are as many connections as there may be; come again");
    } else if (x->content_length > (int64_t)x->server->options.body_bytes_max) {
        x->closes = !exchange_has_bearable_body(x);
        exchange_refuse(x, ERR_TOO_LARGE, "the body is larger than this server accepts");
    } else if (x->server->options.on_headers) {
        x->in_handler = true;
        x->server->options.on_headers(&x->public, x->server->options.context);
        x->in_handler = false;
    }
    return exchange_begun(x);
}

static enum MHD_Result exchange_read_body(struct exchange *x, const char *bytes, size_t *len)
{
    bool is_answered = x->response != NULL;

    if (is_answered || x->too_large || x->body.len + *len > x->body_bytes_max) {
        x->too_large = !is_answered; /* no answer can be sent before the end of the body */
        x->discarded += (int64_t)*len;
        if (x->discarded > discard_bytes_max(x->server)) {
            return MHD_NO; /* closes */
        }
    } else {
        buffer_put(&x->body, bytes, *len);
    }
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result exchange_dispatch(struct exchange *x)
{
    http_connection_move(x->server, x->connection, PHASE_BUSY);
    if (x->response) {
        x->state = EXCHANGE_ANSWERED;
        return exchange_queue(x);
    }
    if (x->too_large) {
        exchange_refuse(x, ERR_TOO_LARGE, "the body is larger than this server accepts");
        return exchange_queue(x);
    }
    x->public.body = buffer_slice(&x->body);
    x->state = EXCHANGE_HANDLING;
    http_exchange_promise(x);
    x->in_handler = true;
    x->server->options.on_request(&x->public, x->server->options.context);
    x->in_handler = false;
    if (x->state == EXCHANGE_HANDLING) {
        http_exchange_park(x);
        return MHD_YES;
    }
    return exchange_queue(x);
}

/* After a suspension the library tells of the head once more, with no bytes, before it reads the body. */
static bool is_head_again(struct exchange *x, size_t upload_len)
{
    bool resumes = x->resumes;

    x->resumes = false;
    return resumes && upload_len == 0 &&
           (x->content_length > 0 || http_exchange_header(&x->public, "transfer-encoding").ptr);
}

enum MHD_Result http_exchange_on_access(void *context, struct MHD_Connection *mhd, const char *path, const char *method,
                                        const char *version, const char *upload, size_t *upload_len,
                                        void **request_context)
{
    struct exchange *x = *request_context;

    (void)context;
    (void)mhd;
    CHECK(x && x->magic == EXCHANGE_MAGIC);
    if (!x->connection) {
        return MHD_NO;
    }
    x->server->happened++;
    x->connection->pieces++;
    if (is_head_again(x, *upload_len)) {
        return exchange_begun(x);
    }
    switch (x->state) {
    case EXCHANGE_NEW:
        return exchange_begin(x, method, path, version);
    case EXCHANGE_READING:
        return *upload_len ? exchange_read_body(x, upload, upload_len) : exchange_dispatch(x);
    case EXCHANGE_HELD:
    case EXCHANGE_HANDLING:
        return MHD_YES; /* still parked */
    case EXCHANGE_ANSWERED:
    case EXCHANGE_STREAMING:
        return x->response ? exchange_queue(x) : MHD_YES;
    }
    UNREACHABLE();
}

void http_exchange_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                                enum MHD_RequestTerminationCode why)
{
    struct http_server *server = context;
    struct exchange *x = *request_context;

    (void)mhd;
    (void)why;
    if (!x) {
        return;
    }
    CHECK(x->magic == EXCHANGE_MAGIC);
    *request_context = NULL;
    server->happened++;
    if (x->connection) {
        x->connection->exchange = NULL;
        http_connection_move(server, x->connection, PHASE_IDLE);
    }
    if (x->status) {
        metric_add(METRIC_HTTP_REQUESTS, 1);
        metric_add(METRIC_HTTP_ERRORS, x->status >= 400);
        histogram_observe_us(HISTOGRAM_REQUEST, loop_boot_us(server->loop) - x->begun_us);
    }
    if (x->response) { /* the answer came after the client had left, and was never queued */
        MHD_destroy_response(x->response);
        x->response = NULL;
    }
    x->finished = true;
    if (x->state == EXCHANGE_STREAMING && !x->ended) {
        x->gone = true;
        if (x->public.on_gone) {
            x->public.on_gone(&x->public); /* http_stream_end() recycles */
        }
        return;
    }
    http_exchange_recycle(x);
}

/* The library drops a request silently when it finds a second fault in it. */
void http_exchange_forgotten(struct exchange *x)
{
    void *request_context = x;

    http_exchange_on_completed(x->server, x->mhd, &request_context, MHD_REQUEST_TERMINATED_WITH_ERROR);
}
