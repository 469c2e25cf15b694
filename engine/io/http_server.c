/*
 * libmicrohttpd without threads of its own: its epoll descriptor is polled by the loop, and MHD_run() does what is due.
 *
 * An exchange goes NEW -> READING -> HANDLING -> ANSWERED or STREAMING, and is recycled when the library has finished
 * the request (and, for a stream, the handler has ended it). While nothing can be sent the connection is suspended, "parked":
 * the library then does not watch its socket, so a client that leaves would go unnoticed. We watch it ourselves, but only
 * when it has been parked for a while, so that the many short waits cost no system calls.
 *
 * The library's timeout counts inactivity; a client that drips bytes would stay for ever. Total times are three queues
 * of connections, each in order of its deadline because all its members have the same patience.
 */
#include "io/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/metric.h"
#include "io/http_guard.h"
#include "io/http_listen.h"

#define CONNECTION_MEMORY_BYTES (32 * 1024) /* a head beyond about 24 KiB is answered 431 by the library */
#define BODY_BYTES_MAX (1 << 20)
#define BODY_KEPT_BYTES (64 * 1024)         /* larger buffers are given back after their request */
#define ARENA_BLOCK_BYTES 4096
#define SWEEP_MS 500
#define WATCH_AFTER_MS 500                  /* parked so long: watch whether the client leaves */
#define STOP_GRACE_MS 2000
#define STREAM_BYTES_MAX (16 * 1024 * 1024)
#define ANSWER_HEADERS_MAX 8
#define SPARE_MAX 256

enum phase { PHASE_IDLE, PHASE_HEADER, PHASE_BODY, PHASE_BUSY, PHASE_COUNT };

struct connection {
    struct list_link link; /* in server->phases[phase], but for PHASE_BUSY */
    enum phase phase;
    int64_t since_ms;
    int fd;
};

enum state { EXCHANGE_NEW, EXCHANGE_READING, EXCHANGE_HANDLING, EXCHANGE_ANSWERED, EXCHANGE_STREAMING };

struct watch { /* of the socket of a parked exchange; its memory ends in uv's close callback */
    uv_poll_t poll;
    struct exchange *exchange;
};

#define EXCHANGE_MAGIC 0x53474558u

struct exchange {
    struct http_exchange public;
    uint32_t magic;
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    struct arena arena;
    struct buffer body;
    enum state state;
    const char *target_fault;
    bool in_handler;   /* on_headers, on_request or on_refused is being called */
    bool counted;      /* in server->active */
    bool too_large, gone, closes;
    bool parked;
    struct list_link link; /* in server->parked, or in server->spare */
    bool in_parked_list;
    int64_t parked_ms, begun_us;
    struct watch *watch;

    int status;
    struct MHD_Response *response;
    struct http_pair answer_headers[ANSWER_HEADERS_MAX];
    size_t answer_header_count;

    struct buffer out; /* of a stream */
    size_t out_read;
    bool ended;        /* the handler has ended the stream */
    bool finished;     /* the library is done with the request */
    struct deferred drained;
};

struct http_server {
    struct loop *loop;
    struct http_server_options options;
    struct http_listener listener;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    struct deferred run;
    struct timer run_timer, sweep_timer, stop_timer;
    struct list phases[PHASE_BUSY];
    struct list parked, spare;
    size_t connections, active, open;
    bool stopping, stop_grace_over, closing;
    struct deferred stop;
    void (*stopped)(void *context);
    void *stopped_context;
};

static int64_t phase_patience_ms(const struct http_server *server, enum phase phase)
{
    switch (phase) {
    case PHASE_IDLE:
        return server->options.idle_ms;
    case PHASE_HEADER:
        return server->options.header_ms;
    case PHASE_BODY:
        return server->options.body_ms;
    case PHASE_BUSY:
    case PHASE_COUNT:
        break;
    }
    UNREACHABLE();
}

/* --- the loop and the library --- */

static void server_run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    if (server->closing) {
        return;
    }
    (void)MHD_run(server->daemon); /* fails for a daemon with threads only */
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES) {
        timer_start(server->loop, &server->run_timer, (int64_t)timeout_ms, server->run_timer.fire);
    } else {
        timer_stop(server->loop, &server->run_timer);
    }
}

static void on_run(struct deferred *deferred)
{
    server_run(container_of(deferred, struct http_server, run));
}

static void on_run_timer(struct timer *timer)
{
    server_run(container_of(timer, struct http_server, run_timer));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status; /* an epoll descriptor does not fail; if it did, running finds out */
    (void)events;
    server_run(container_of(poll, struct http_server, poll));
}

static void server_kick(struct http_server *server)
{
    if (!server->closing) {
        loop_defer(server->loop, &server->run, on_run);
    }
}

static void server_check_stopped(struct http_server *server);

/* --- connections and their total times --- */

static void connection_move(struct http_server *server, struct connection *connection, enum phase phase)
{
    if (connection->phase != PHASE_BUSY) {
        list_remove(&server->phases[connection->phase], &connection->link);
    }
    connection->phase = phase;
    if (phase != PHASE_BUSY) {
        connection->since_ms = loop_boot_ms(server->loop);
        list_push(&server->phases[phase], &connection->link);
    }
}

static void exchange_watch(struct exchange *x);

static void on_sweep(struct timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, sweep_timer);
    int64_t now_ms = loop_boot_ms(server->loop);
    struct list_link *link;

    for (int phase = PHASE_IDLE; phase < PHASE_BUSY; phase++) {
        while ((link = list_first(&server->phases[phase]))) {
            struct connection *connection = container_of(link, struct connection, link);

            if (now_ms - connection->since_ms < phase_patience_ms(server, (enum phase)phase)) {
                break;
            }
            connection_move(server, connection, PHASE_BUSY);
            (void)shutdown(connection->fd, SHUT_RDWR); /* the library sees the end of the stream and closes */
        }
    }
    while ((link = list_first(&server->parked))) {
        struct exchange *x = container_of(link, struct exchange, link);

        if (now_ms - x->parked_ms < WATCH_AFTER_MS) {
            break;
        }
        list_remove(&server->parked, link);
        x->in_parked_list = false;
        exchange_watch(x);
    }
    if (server->connections > 0) {
        timer_start(server->loop, &server->sweep_timer, SWEEP_MS, on_sweep);
    }
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    struct connection *connection = *socket_context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        connection = memory_alloc(sizeof(*connection));
        connection->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        connection->phase = PHASE_BUSY;
        connection_move(server, connection, PHASE_IDLE);
        *socket_context = connection;
        server->connections++;
        gauge_set(GAUGE_HTTP_CONNECTIONS, (int64_t)server->connections);
        if (!timer_running(&server->sweep_timer)) {
            timer_start(server->loop, &server->sweep_timer, SWEEP_MS, on_sweep);
        }
    } else if (connection) {
        connection_move(server, connection, PHASE_BUSY);
        free(connection);
        *socket_context = NULL;
        server->connections--;
        gauge_set(GAUGE_HTTP_CONNECTIONS, (int64_t)server->connections);
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

static void exchange_unpark(struct exchange *x)
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
    server_kick(x->server);
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
        exchange_unpark(x); /* the reader ends the stream, and the library tells us that it is over */
    } else if (x->public.on_gone) {
        x->public.on_gone(&x->public); /* stays parked until it is answered */
    }
}

static void exchange_watch(struct exchange *x)
{
    struct watch *watch = memory_alloc(sizeof(*watch));

    watch->exchange = x;
    if (uv_poll_init(loop_uv(x->server->loop), &watch->poll, x->connection->fd) != 0) {
        free(watch); /* then its client's leaving is noticed when we answer */
        return;
    }
    x->watch = watch;
    (void)uv_poll_start(&watch->poll, UV_DISCONNECT, on_watch); /* never fails for a valid handle */
}

static void exchange_park(struct exchange *x)
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
    x->begun_us = loop_boot_us(server->loop);
    server->open++;
    return x;
}

static void exchange_free(struct exchange *x)
{
    x->magic = 0;
    arena_fini(&x->arena);
    buffer_fini(&x->body);
    buffer_fini(&x->out);
    free(x);
}

static void exchange_recycle(struct exchange *x)
{
    struct http_server *server = x->server;

    CHECK(!x->parked && !x->counted && !x->watch);
    loop_defer_cancel(server->loop, &x->drained);
    arena_reset(&x->arena);
    if (x->body.capacity > BODY_KEPT_BYTES || x->out.capacity > BODY_KEPT_BYTES || server->spare.count >= SPARE_MAX) {
        exchange_free(x);
    } else {
        struct exchange kept = *x;

        *x = (struct exchange){.magic = EXCHANGE_MAGIC, .server = server, .arena = kept.arena, .body = kept.body, .out = kept.out};
        buffer_reset(&x->body);
        buffer_reset(&x->out);
        list_push(&server->spare, &x->link);
    }
    server->open--;
    server_check_stopped(server);
}

static void exchange_settled(struct exchange *x) /* the handler has kept its promise */
{
    if (x->counted) {
        x->counted = false;
        x->server->active--;
        server_check_stopped(x->server);
    }
}

static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct http_server *server = context;
    struct exchange *x = exchange_new(server, mhd);

    x->target_fault = http_guard_target(slice_of(target));
    if (x->connection) {
        connection_move(server, x->connection, PHASE_HEADER);
    }
    return x;
}

struct pairs {
    struct http_pair *items;
    size_t count, count_max;
    bool holds_nul, too_many;
};

static enum MHD_Result on_pair(void *context, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value, size_t value_len)
{
    struct pairs *pairs = context;

    (void)kind;
    if (pairs->count == pairs->count_max) {
        pairs->too_many = true;
        return MHD_NO;
    }
    pairs->holds_nul |= strlen(name) != name_len || (value && strlen(value) != value_len);
    pairs->items[pairs->count++] = (struct http_pair){{name, name_len}, value ? (struct slice){value, value_len} : SLICE("")};
    return MHD_YES;
}

static struct pairs exchange_pairs(struct exchange *x, enum MHD_ValueKind kind, size_t count_max)
{
    int count = MHD_get_connection_values_n(x->mhd, kind, NULL, NULL);
    struct pairs pairs = {.count_max = count_max};

    if (count > 0) {
        pairs.items = arena_array(&x->arena, (size_t)count < count_max ? (size_t)count : count_max, sizeof(*pairs.items));
        (void)MHD_get_connection_values_n(x->mhd, kind, on_pair, &pairs); /* the count is in pairs */
    }
    return pairs;
}

static const char *exchange_read_head(struct exchange *x, const char *method, const char *path, const char *version, bool *too_large)
{
    struct pairs headers = exchange_pairs(x, MHD_HEADER_KIND, HTTP_HEADERS_MAX), query = exchange_pairs(x, MHD_GET_ARGUMENT_KIND, HTTP_QUERY_MAX);
    int64_t content_length = -1;
    const char *fault;

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
    fault = http_guard_headers(x->public.method, slice_of(version), headers.items, headers.count, &content_length);
    *too_large = content_length > (int64_t)x->server->options.body_bytes_max;
    return fault;
}

static enum MHD_Result exchange_queue(struct exchange *x)
{
    enum MHD_Result result = MHD_queue_response(x->mhd, (unsigned)x->status, x->response);

    MHD_destroy_response(x->response); /* ours; the library holds its own reference */
    x->response = NULL;
    return result;
}

static void exchange_refuse(struct exchange *x, enum err_code code, const char *detail)
{
    x->closes = true;
    x->in_handler = true;
    x->server->options.on_refused(&x->public, code, detail, x->server->options.context);
    x->in_handler = false;
    CHECK(x->state == EXCHANGE_ANSWERED);
}

static enum MHD_Result exchange_begin(struct exchange *x, const char *method, const char *path, const char *version)
{
    bool too_large = false;
    const char *fault = exchange_read_head(x, method, path, version, &too_large);

    x->state = EXCHANGE_READING;
    connection_move(x->server, x->connection, PHASE_BODY);
    if (fault) {
        exchange_refuse(x, ERR_MALFORMED, fault);
    } else if (too_large) {
        exchange_refuse(x, ERR_TOO_LARGE, "the body is larger than this server accepts");
    } else if (x->server->options.on_headers) {
        x->in_handler = true;
        x->server->options.on_headers(&x->public, x->server->options.context);
        x->in_handler = false;
    }
    return x->state == EXCHANGE_ANSWERED ? exchange_queue(x) : MHD_YES;
}

static enum MHD_Result exchange_read_body(struct exchange *x, const char *bytes, size_t *len)
{
    if (x->body.len + *len > x->server->options.body_bytes_max) {
        x->too_large = true; /* no answer can be given before the end of the body: the rest is thrown away */
    } else if (!x->too_large) {
        buffer_put(&x->body, bytes, *len);
    }
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result exchange_dispatch(struct exchange *x)
{
    connection_move(x->server, x->connection, PHASE_BUSY);
    if (x->too_large) {
        exchange_refuse(x, ERR_TOO_LARGE, "the body is larger than this server accepts");
        return exchange_queue(x);
    }
    x->public.body = buffer_slice(&x->body);
    x->state = EXCHANGE_HANDLING;
    x->counted = true;
    x->server->active++;
    x->in_handler = true;
    x->server->options.on_request(&x->public, x->server->options.context);
    x->in_handler = false;
    if (x->state == EXCHANGE_HANDLING) {
        exchange_park(x);
        return MHD_YES;
    }
    return exchange_queue(x);
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *path, const char *method, const char *version,
                                 const char *upload, size_t *upload_len, void **request_context)
{
    struct exchange *x = *request_context;

    (void)context;
    (void)mhd;
    CHECK(x && x->magic == EXCHANGE_MAGIC);
    if (!x->connection) {
        return MHD_NO;
    }
    switch (x->state) {
    case EXCHANGE_NEW:
        return exchange_begin(x, method, path, version);
    case EXCHANGE_READING:
        return *upload_len ? exchange_read_body(x, upload, upload_len) : exchange_dispatch(x);
    case EXCHANGE_HANDLING:
        return MHD_YES; /* still parked */
    case EXCHANGE_ANSWERED:
    case EXCHANGE_STREAMING:
        return x->response ? exchange_queue(x) : MHD_YES;
    }
    UNREACHABLE();
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request_context, enum MHD_RequestTerminationCode why)
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
    if (x->connection) {
        connection_move(server, x->connection, PHASE_IDLE);
    }
    if (x->status) {
        metric_add(METRIC_HTTP_REQUESTS, 1);
        metric_add(METRIC_HTTP_ERRORS, x->status >= 400);
        histogram_observe_us(HISTOGRAM_REQUEST, loop_boot_us(server->loop) - x->begun_us);
    }
    if (x->response) { /* answered after its client had left, and never queued */
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
    exchange_recycle(x);
}

/* --- answers --- */

static void exchange_answer(struct exchange *x, int status, const char *content_type)
{
    CHECK(x->response && x->status == 0);
    CHECK(x->state == EXCHANGE_HANDLING || (x->state == EXCHANGE_READING && x->in_handler));
    x->status = status;
    if (content_type) {
        (void)MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type); /* fails without memory only */
    }
    for (size_t i = 0; i < x->answer_header_count; i++) {
        (void)MHD_add_response_header(x->response, x->answer_headers[i].name.ptr, x->answer_headers[i].value.ptr); /* checked when it was given */
    }
    if (x->closes || x->server->stopping) {
        (void)MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONNECTION, "close"); /* as above */
    }
}

void http_respond(struct http_exchange *exchange, int status, const char *content_type, struct slice body)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC);
    /* The library takes a non-const pointer but only reads what is persistent. */
    x->response = MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.ptr, MHD_RESPMEM_PERSISTENT);
    exchange_answer(x, status, content_type);
    x->state = EXCHANGE_ANSWERED;
    exchange_unpark(x);
    exchange_settled(x);
}

static void on_drained(struct deferred *deferred)
{
    struct exchange *x = container_of(deferred, struct exchange, drained);

    if (!x->ended && !x->gone && x->out.len == x->out_read && x->public.on_drained) {
        x->public.on_drained(&x->public);
    }
}

static ssize_t on_read(void *context, uint64_t position, char *to, size_t room)
{
    struct exchange *x = context;
    size_t len = x->out.len - x->out_read;

    (void)position;
    CHECK(x->magic == EXCHANGE_MAGIC);
    if (x->gone || x->out.overflow) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (len == 0) {
        if (x->ended) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (!x->parked) {
            exchange_park(x);
        }
        return 0;
    }
    len = len < room ? len : room;
    memcpy(to, x->out.ptr + x->out_read, len);
    x->out_read += len;
    if (x->out_read == x->out.len) {
        buffer_reset(&x->out);
        x->out_read = 0;
        loop_defer(x->server->loop, &x->drained, on_drained);
    }
    return (ssize_t)len;
}

void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_HANDLING);
    x->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * 1024, on_read, x, NULL);
    exchange_answer(x, status, content_type);
    x->state = EXCHANGE_STREAMING;
    exchange_unpark(x);
}

void http_stream_write(struct http_exchange *exchange, struct slice bytes)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_STREAMING && !x->ended);
    if (!x->gone && bytes.len > 0) {
        buffer_put_slice(&x->out, bytes);
        exchange_unpark(x);
    }
}

void http_stream_end(struct http_exchange *exchange)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_STREAMING && !x->ended);
    x->ended = true;
    exchange_unpark(x);
    exchange_settled(x);
    if (x->finished) {
        exchange_recycle(x);
    }
}

void http_answer_header(struct http_exchange *exchange, const char *name, struct slice value)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->status == 0 && x->answer_header_count < ANSWER_HEADERS_MAX);
    x->answer_headers[x->answer_header_count++] = (struct http_pair){slice_of(name), arena_slice(&x->arena, value)};
}

struct slice http_exchange_header(const struct http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->header_count; i++) {
        if (http_name_is(exchange->headers[i].name, name)) {
            return exchange->headers[i].value;
        }
    }
    return SLICE_NONE;
}

struct slice http_exchange_query(const struct http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->query_count; i++) {
        if (slice_is(exchange->query[i].name, name)) {
            return exchange->query[i].value;
        }
    }
    return SLICE_NONE;
}

/* --- start and stop --- */

static void on_library_log(void *context, const char *format, va_list arguments)
{
    char line[256];

    (void)context;
    (void)vsnprintf(line, sizeof(line), format, arguments);
    log_debug("http_library", LOG_SLICE("text", slice_trim(slice_of(line))));
}

static struct http_server_options with_defaults(const struct http_server_options *options)
{
    struct http_server_options o = *options;

    o.connections_max = o.connections_max ? o.connections_max : 1024;
    o.connections_per_ip_max = o.connections_per_ip_max ? o.connections_per_ip_max : o.connections_max;
    o.body_bytes_max = o.body_bytes_max ? o.body_bytes_max : BODY_BYTES_MAX;
    o.idle_ms = o.idle_ms ? o.idle_ms : 60000;
    o.header_ms = o.header_ms ? o.header_ms : 10000;
    o.body_ms = o.body_ms ? o.body_ms : 30000;
    return o;
}

static struct MHD_Daemon *daemon_start(struct http_server *server)
{
    unsigned idle_s = (unsigned)((server->options.idle_ms + 999) / 1000);

    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_access, server,
                            MHD_OPTION_EXTERNAL_LOGGER, on_library_log, server, MHD_OPTION_LISTEN_SOCKET, server->listener.fd,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->options.connections_max,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)server->options.connections_per_ip_max,
                            MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
                            MHD_OPTION_END);
}

struct http_server *http_server_start(struct loop *loop, const struct http_server_options *options, struct err *err)
{
    struct http_listener listener;

    if (http_listen(options->listen, &listener, err) != ERR_OK) {
        return NULL;
    }
    if (options->loopback_only && !listener.is_loopback) {
        (void)close(listener.fd); /* nothing was written */
        (void)err_set(err, ERR_CONFIG, "without tokens sagad listens on loopback only, and %s is an address that others can reach", listener.text);
        err_hint(err, "give a tokens file with --tokens (`sagactl token new` makes a row), or listen on 127.0.0.1");
        return NULL;
    }
    struct http_server *server = memory_alloc(sizeof(*server));

    server->loop = loop;
    server->options = with_defaults(options);
    server->listener = listener;
    for (int phase = 0; phase < PHASE_BUSY; phase++) {
        list_init(&server->phases[phase]);
    }
    list_init(&server->parked);
    list_init(&server->spare);
    server->run_timer.fire = on_run_timer;
    server->daemon = daemon_start(server);
    if (!server->daemon) {
        (void)err_set(err, ERR_IO, "the HTTP server on %s cannot be started", listener.text);
        err_detail(err, "%s", strerror(errno));
        (void)close(listener.fd); /* nothing was written */
        free(server);
        return NULL;
    }
    int epoll_fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;

    CHECK(uv_poll_init(loop_uv(loop), &server->poll, epoll_fd) == 0);
    CHECK(uv_poll_start(&server->poll, UV_READABLE, on_poll) == 0);
    server_kick(server);
    return server;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->listener.port;
}

bool http_server_is_loopback(const struct http_server *server)
{
    return server->listener.is_loopback;
}

const char *http_server_address(const struct http_server *server)
{
    return server->listener.text;
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct http_server *server = container_of(handle, struct http_server, poll);
    void (*stopped)(void *context) = server->stopped;
    void *context = server->stopped_context;
    struct list_link *link;

    while ((link = list_pop(&server->spare))) {
        exchange_free(container_of(link, struct exchange, link));
    }
    free(server);
    stopped(context);
}

static void on_stop(struct deferred *deferred)
{
    struct http_server *server = container_of(deferred, struct http_server, stop);

    if (server->closing) {
        return;
    }
    server->closing = true;
    loop_defer_cancel(server->loop, &server->run);
    timer_stop(server->loop, &server->run_timer);
    timer_stop(server->loop, &server->stop_timer);
    (void)uv_poll_stop(&server->poll); /* never fails */
    MHD_stop_daemon(server->daemon);   /* completes what is left, closes every connection */
    timer_stop(server->loop, &server->sweep_timer);
    uv_close((uv_handle_t *)&server->poll, on_poll_closed);
}

static void server_check_stopped(struct http_server *server)
{
    if (server->stopping && !server->closing && server->active == 0 && (server->open == 0 || server->stop_grace_over)) {
        loop_defer(server->loop, &server->stop, on_stop);
    }
}

static void on_stop_timer(struct timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, stop_timer);

    server->stop_grace_over = true;
    server_check_stopped(server);
}

void http_server_stop(struct http_server *server, void (*done)(void *context), void *context)
{
    CHECK(!server->stopping);
    server->stopping = true;
    server->stopped = done;
    server->stopped_context = context;
    int listener = MHD_quiesce_daemon(server->daemon);

    if (listener >= 0) {
        (void)close(listener); /* nothing was written */
    }
    timer_start(server->loop, &server->stop_timer, STOP_GRACE_MS, on_stop_timer);
    server_check_stopped(server);
}
