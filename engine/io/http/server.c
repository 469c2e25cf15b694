/*
 * libmicrohttpd without threads of its own: its epoll descriptor is polled by the loop, and MHD_run() does what is due.
 *
 * The library's timeout counts inactivity, so a client that drips bytes would stay for ever. We bound total times with
 * three queues of connections. All members of a queue have the same time limit, so each queue is in order of deadlines.
 *
 * The library leaves clients beyond its limit in the kernel's queue without an answer. Its limit is therefore higher
 * than ours: connections between the two limits are accepted, told to come again, and closed.
 */
#include "io/http/server.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "io/http/server_state.h"

/* The library answers heads beyond 12 to 15 KiB, and cookies beyond 8 KiB, with 431. It clears most of this memory
 * twice for each request. */
#define CONNECTION_MEMORY_BYTES (16 * 1024)
#define BODY_BYTES_MAX (1 << 20)
#define SWEEP_MS 500
#define SURPLUS_MS 2000 /* time for a surplus connection to send its request and be refused */
#define SURPLUS_MIN 16
#define RESERVE_SHARE 16
#define RESERVE_MAX 16
#define SURPLUS_MAX 256
#define WATCH_AFTER_MS 500 /* after this time, a parked exchange is watched for a client that leaves */
#define STOP_GRACE_MS 2000
#define CUT_TIMEOUT_S 1u /* the least that the library has */

static int64_t phase_patience_ms(const struct http_server *server, enum phase phase)
{
    switch (phase) {
    case PHASE_FIRST: /* a client that connects will send a request */
    case PHASE_HEADER:
        return server->options.header_ms;
    case PHASE_IDLE:
        return server->options.idle_ms;
    case PHASE_BODY:
        return server->options.body_ms;
    case PHASE_SURPLUS:
        return SURPLUS_MS;
    case PHASE_BUSY:
    case PHASE_COUNT:
        break;
    }
    UNREACHABLE();
}

/* --- the loop and the library --- */

static void on_run(struct deferred *deferred);

static void server_run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    if (server->closing) {
        return;
    }
    (void)MHD_run(server->daemon); /* fails only for a daemon with threads */
    timer_stop(server->loop, &server->run_timer);
    if (MHD_get_timeout(server->daemon, &timeout_ms) != MHD_YES) {
        http_stall_over(server);
        return;
    }
    if (timeout_ms > 0) {
        http_stall_over(server);
    }
    int64_t wait_ms = timeout_ms > 0 ? (int64_t)timeout_ms : http_stall_wait_ms(server);

    if (wait_ms == 0) { /* after each answer: a timer would let its connection wait for the next millisecond */
        loop_defer(server->loop, &server->run, on_run);
    } else {
        timer_start(server->loop, &server->run_timer, wait_ms, server->run_timer.fire);
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
    (void)status; /* an epoll descriptor does not fail; if it did, MHD_run() would notice */
    (void)events;
    server_run(container_of(poll, struct http_server, poll));
}

void http_server_kick(struct http_server *server)
{
    if (!server->closing) {
        loop_defer(server->loop, &server->run, on_run);
    }
}

/* --- connections and their total times --- */

void http_connection_move(struct http_server *server, struct connection *connection, enum phase phase)
{
    if (connection->surplus && phase != PHASE_BUSY) {
        phase = PHASE_SURPLUS;
        if (connection->phase == PHASE_SURPLUS) {
            return; /* a surplus connection has one deadline for everything */
        }
    }
    if (connection->phase != PHASE_BUSY) {
        list_remove(&server->phases[connection->phase], &connection->link);
    }
    connection->phase = phase;
    if (phase != PHASE_BUSY) {
        connection->since_ms = loop_boot_ms(server->loop);
        list_push(&server->phases[phase], &connection->link);
    }
}

void http_connection_cut(struct http_server *server, struct connection *connection)
{
    http_connection_move(server, connection, PHASE_BUSY);
    (void)shutdown(connection->fd, SHUT_RDWR); /* the library sees the end of the stream and closes */
    /* But for one that stands still before a full buffer (http/stall.c): it reads nothing any more, wants to run for as
     * long as the connection is there, and has no other end than this. */
    (void)MHD_set_connection_option(connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT, CUT_TIMEOUT_S);
}

void http_connection_refuse(struct http_server *server, struct connection *connection, const char *words)
{
    char answer[512];
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
                       "Content-Length: %zu\r\n\r\n%s\n",
                       strlen(words) + 1, words);

    CHECK(len > 0 && (size_t)len < sizeof(answer));
    if (!server->tls) { /* the connection is closed whether or not this is sent */
        (void)!send(connection->fd, answer, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    metric_add(METRIC_HTTP_REQUESTS, 1);
    metric_add(METRIC_HTTP_ERRORS, 1);
    http_connection_cut(server, connection);
}

bool http_connection_is_surplus(const struct http_server *server, struct connection *connection)
{
    connection->surplus = connection->surplus && server->connections > connection->places;
    return connection->surplus;
}

static void on_sweep(struct timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, sweep_timer);
    int64_t now_ms = loop_boot_ms(server->loop);
    struct list_link *link;

    for (int phase = PHASE_FIRST; phase < PHASE_BUSY; phase++) {
        while ((link = list_first(&server->phases[phase]))) {
            struct connection *connection = container_of(link, struct connection, link);

            if (now_ms - connection->since_ms < phase_patience_ms(server, (enum phase)phase)) {
                break;
            }
            http_connection_cut(server, connection);
        }
    }
    while ((link = list_first(&server->parked))) {
        struct exchange *x = container_of(link, struct exchange, link);

        if (now_ms - x->parked_ms < WATCH_AFTER_MS) {
            break;
        }
        list_remove(&server->parked, link);
        x->in_parked_list = false;
        http_exchange_watch(x);
    }
    if (server->connections > 0) {
        timer_start(server->loop, &server->sweep_timer, SWEEP_MS, on_sweep);
    }
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
    }
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/*
 * Half of the surplus places are kept for clients on this machine: its probes and its operator get an answer when other
 * machines hold all other connections.
 */
static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t address_len)
{
    const struct http_server *server = context;
    size_t surplus = http_server_surplus(server->options.connections_max);

    (void)address_len;
    return server->connections < server->options.connections_max + surplus / 2 || is_loopback(address) ? MHD_YES
                                                                                                       : MHD_NO;
}

/* Some places are reserved for clients on this machine. */
static size_t places_of(const struct http_server *server, struct MHD_Connection *mhd)
{
    const struct sockaddr *address = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    size_t max = server->options.connections_max;
    size_t reserve = max / RESERVE_SHARE < RESERVE_MAX ? max / RESERVE_SHARE : RESERVE_MAX;

    return is_loopback(address) ? max : max - reserve;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    struct connection *connection = *socket_context;

    server->happened++;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        connection = memory_alloc(sizeof(*connection));
        connection->mhd = mhd;
        connection->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        connection->phase = PHASE_BUSY;
        if (server->tls) {
            connection->tls_pair = http_tls_enter(
                server->tls, MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
        }
        connection->places = places_of(server, mhd);
        connection->surplus = ++server->connections > connection->places;
        metric_add(METRIC_HTTP_SURPLUS, connection->surplus);
        http_connection_move(server, connection, PHASE_FIRST);
        *socket_context = connection;
        gauge_set(GAUGE_HTTP_CONNECTIONS, (int64_t)server->connections);
        if (!timer_running(&server->sweep_timer)) {
            timer_start(server->loop, &server->sweep_timer, SWEEP_MS, on_sweep);
        }
    } else if (connection) {
        if (connection->exchange) {
            http_exchange_forgotten(connection->exchange);
        }
        http_connection_move(server, connection, PHASE_BUSY);
        if (connection->tls_pair) {
            http_tls_leave(connection->tls_pair);
        }
        free(connection);
        *socket_context = NULL;
        server->connections--;
        gauge_set(GAUGE_HTTP_CONNECTIONS, (int64_t)server->connections);
    }
}

/* --- start and stop --- */

static void on_library_log(void *context, const char *format, va_list arguments)
{
    char line[256];

    (void)context;
    (void)vsnprintf(line, sizeof(line), format, arguments);
    log_debug("http_library", LOG_SLICE("text", slice_trim(slice_of(line))));
}

uint32_t http_server_surplus(uint32_t connections_max)
{
    uint32_t eighth = connections_max / 8;

    return eighth < SURPLUS_MIN ? SURPLUS_MIN : eighth > SURPLUS_MAX ? SURPLUS_MAX : eighth;
}

static struct http_server_options with_defaults(const struct http_server_options *options)
{
    struct http_server_options o = *options;

    o.connections_max = o.connections_max ? o.connections_max : 1024;
    o.connections_per_ip_max = o.connections_per_ip_max ? o.connections_per_ip_max
                                                        : o.connections_max + http_server_surplus(o.connections_max);
    o.body_bytes_max = o.body_bytes_max ? o.body_bytes_max : BODY_BYTES_MAX;
    o.idle_ms = o.idle_ms ? o.idle_ms : 60000;
    o.header_ms = o.header_ms ? o.header_ms : 10000;
    o.body_ms = o.body_ms ? o.body_ms : 30000;
    return o;
}

/* Asked for the certificate of a session that got none of ours: there is no such session (on_connection()). */
static int on_certificate(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
                          const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **certificate,
                          unsigned *certificate_count, gnutls_privkey_t *key)
{
    (void)session;
    (void)authorities;
    (void)authority_count;
    (void)algorithms;
    (void)algorithm_count;
    (void)certificate;
    (void)certificate_count;
    (void)key;
    return -1;
}

static struct MHD_Daemon *daemon_start(struct http_server *server)
{
    unsigned idle_s = (unsigned)((server->options.idle_ms + 999) / 1000);
    unsigned flags = MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)on_certificate},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)HTTP_TLS_PRIORITIES},
                                   {MHD_OPTION_END, 0, NULL}};

    return MHD_start_daemon(
        flags | (server->tls ? MHD_USE_TLS : 0), 0, on_accept, server, http_exchange_on_access, server,
        MHD_OPTION_EXTERNAL_LOGGER, on_library_log, server, MHD_OPTION_LISTEN_SOCKET, server->listener.fd,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(server->options.connections_max + http_server_surplus(server->options.connections_max)),
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)server->options.connections_per_ip_max,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_NOTIFY_COMPLETED, http_exchange_on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, http_exchange_on_target,
        server, MHD_OPTION_ARRAY, server->tls ? tls : plain, MHD_OPTION_END);
}

static enum err_code check_reach(const struct http_server_options *options, const struct http_listener *listener,
                                 struct err *err)
{
    if (options->loopback_only && !listener->is_loopback) {
        (void)err_set(err, ERR_CONFIG,
                      "without tokens sagad listens on loopback only, and %s is an address that others can reach",
                      listener->text);
        err_hint(err, "give a tokens file with --tokens (`sagactl token new` makes a row), or listen on 127.0.0.1");
        return ERR_CONFIG;
    }
    if (!listener->is_loopback && !options->tls_cert_file && !options->behind_proxy) {
        (void)err_set(err, ERR_CONFIG, "sagad serves no plain HTTP on %s, an address that others can reach",
                      listener->text);
        err_detail(err, "tokens and payloads would cross the network in clear");
        err_hint(err, "give --tls-cert and --tls-key, or say with --behind-proxy that a proxy in front speaks TLS");
        return ERR_CONFIG;
    }
    return ERR_OK;
}

enum err_code http_server_check(const struct http_server_options *options, struct err *err)
{
    struct http_listener listener;
    enum err_code code = http_listen_check(options->listen, &listener, err);

    code = code == ERR_OK ? check_reach(options, &listener, err) : code;
    if (code == ERR_OK && options->tls_cert_file) {
        struct http_tls *tls =
            http_tls_new(options->tls_cert_file, options->tls_key_file, options->tls_client_ca_file, err);

        code = tls ? ERR_OK : ERR_CONFIG;
        http_tls_free(tls);
    }
    return code;
}

struct http_server *http_server_start(struct loop *loop, const struct http_server_options *options, struct err *err)
{
    struct http_listener listener;

    if (http_listen(options->listen, &listener, err) != ERR_OK) {
        return NULL;
    }
    if (check_reach(options, &listener, err) != ERR_OK) {
        (void)close(listener.fd); /* nothing was written */
        return NULL;
    }
    struct http_tls *tls = options->tls_cert_file ? http_tls_new(options->tls_cert_file, options->tls_key_file,
                                                                 options->tls_client_ca_file, err)
                                                  : NULL;

    if (options->tls_cert_file && !tls) {
        (void)close(listener.fd); /* nothing was written */
        return NULL;
    }
    struct http_server *server = memory_alloc(sizeof(*server));

    server->loop = loop;
    server->tls = tls;
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
        http_tls_free(server->tls);
        free(server);
        return NULL;
    }
    int epoll_fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;

    CHECK(uv_poll_init(loop_uv(loop), &server->poll, epoll_fd) == 0);
    CHECK(uv_poll_start(&server->poll, UV_READABLE, on_poll) == 0);
    http_server_kick(server);
    return server;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->listener.port;
}

bool http_server_has_tls(const struct http_server *server)
{
    return server->tls != NULL;
}

enum err_code http_server_reload_tls(struct http_server *server, struct err *err)
{
    return server->tls ? http_tls_reload(server->tls, err) : ERR_OK;
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
        http_exchange_free(container_of(link, struct exchange, link));
    }
    http_tls_free(server->tls);
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

void http_server_check_stopped(struct http_server *server)
{
    if (server->stopping && !server->closing && server->active == 0 && (server->open == 0 || server->stop_grace_over)) {
        loop_defer(server->loop, &server->stop, on_stop);
    }
}

static void on_stop_timer(struct timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, stop_timer);

    server->stop_grace_over = true;
    http_server_check_stopped(server);
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
    http_server_check_stopped(server);
}
