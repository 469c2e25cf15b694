/* See load_wire.h for why this is not the HTTP client of io/. */
#include "tests/bench/load_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"

#define ANSWER_BYTES_MAX (8 << 20)
#define READ_BYTES 65536
#define EVENTS_MAX 256

struct wire {
    struct wire_options options;
    int epoll;
    gnutls_certificate_credentials_t credentials; /* with TLS only */
    struct wire_connection *connections;
    struct sockaddr_storage address;
    socklen_t address_len;
};

int64_t wire_now_us(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 : 0;
}

static void connection_watch(struct wire_connection *c, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (c->writable_wanted ? (uint32_t)EPOLLOUT : 0), .data = {.ptr = c}};

    (void)epoll_ctl(c->wire->epoll, operation, c->fd,
                    &event); /* fails without memory only; then the run stands still and says so */
}

/* --- TLS --- */

/* Shakes hands while the socket still blocks: that is no part of what is measured. */
static bool tls_open(struct wire_connection *c)
{
    int code;

    if (!c->wire->options.tls) {
        return true;
    }
    if (gnutls_init(&c->tls, GNUTLS_CLIENT) != GNUTLS_E_SUCCESS) {
        return false;
    }
    gnutls_transport_set_int(c->tls, c->fd);
    if (gnutls_set_default_priority(c->tls) != GNUTLS_E_SUCCESS ||
        gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->wire->credentials) != GNUTLS_E_SUCCESS) {
        return false;
    }
    do {
        code = gnutls_handshake(c->tls);
    } while (code < 0 && !gnutls_error_is_fatal(code));
    return code == GNUTLS_E_SUCCESS && fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0;
}

static void connection_close(struct wire_connection *c)
{
    if (c->tls) {
        gnutls_deinit(c->tls);
        c->tls = NULL;
    }
    (void)close(c->fd); /* what is on its way is wanted by nobody */
    c->fd = -1;
}

/* As send() and recv() say it: below 0 with EAGAIN where nothing can be moved now. */
static ssize_t tls_result(ssize_t n)
{
    if (n < 0) {
        errno = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? EAGAIN : ECONNRESET;
        return -1;
    }
    return n;
}

static ssize_t connection_send(struct wire_connection *c, const char *bytes, size_t len)
{
    return c->tls ? tls_result(gnutls_record_send(c->tls, bytes, len))
                  : send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t connection_receive(struct wire_connection *c, char *bytes, size_t len)
{
    return c->tls ? tls_result(gnutls_record_recv(c->tls, bytes, len)) : recv(c->fd, bytes, len, MSG_DONTWAIT);
}

/* --- connections --- */

static bool connection_open(struct wire_connection *c)
{
    struct wire *wire = c->wire;
    int yes = 1;

    c->fd = socket(wire->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        return false;
    }
    if (connect(c->fd, (const struct sockaddr *)&wire->address, wire->address_len) != 0 || !tls_open(c)) {
        int error = errno;

        connection_close(c);
        errno = error;
        return false;
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* slower without, not wrong */
    c->writable_wanted = false;
    c->out_sent = 0; /* and `out` stays: it may be sent again, or wait for this */
    buffer_reset(&c->in);
    connection_watch(c, EPOLL_CTL_ADD);
    return true;
}

static void connection_lost(struct wire_connection *c)
{
    bool busy = c->busy;

    connection_close(c);
    c->busy = false;
    (void)connection_open(c); /* when it fails, wire_poll() tries again */
    if (busy) {
        c->wire->options.on_answer(c, 0, SLICE_NONE, c->wire->options.context);
    }
}

static void connection_write(struct wire_connection *c)
{
    while (c->out_sent < c->out.len) {
        ssize_t n = connection_send(c, c->out.ptr + c->out_sent, c->out.len - c->out_sent);

        if (n > 0) {
            c->out_sent += (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!c->writable_wanted) {
                c->writable_wanted = true;
                connection_watch(c, EPOLL_CTL_MOD);
            }
            return;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else {
            return; /* reading finds out that it is lost */
        }
    }
    if (c->writable_wanted) {
        c->writable_wanted = false;
        connection_watch(c, EPOLL_CTL_MOD);
    }
}

void wire_send(struct wire_connection *c, struct slice head, struct slice body)
{
    CHECK(!c->busy);
    buffer_reset(&c->out);
    buffer_reset(&c->in);
    buffer_put_slice(&c->out, head);
    buffer_put_slice(&c->out, body);
    c->out_sent = 0;
    c->busy = true;
    if (c->fd >= 0) {
        connection_write(c);
    }
}

void wire_resend(struct wire_connection *c)
{
    CHECK(!c->busy);
    buffer_reset(&c->in);
    c->out_sent = 0;
    c->busy = true;
    if (c->fd >= 0) {
        connection_write(c);
    }
}

/* The number of a header line, when it is that header. False: it is, and has none. */
static bool header_number(const char *line, const char *end, const char *name, int64_t *out)
{
    size_t len = strlen(name);

    if ((size_t)(end - line) <= len || strncasecmp(line, name, len) != 0) {
        return true;
    }
    const char *stop = memchr(line, '\r', (size_t)(end + 2 - line));

    return stop && slice_to_i64(slice_trim((struct slice){line + len, (size_t)(stop - line) - len}), out);
}

/* The status and the body of a whole answer in the buffer, or 0: more must come. -1: not as sagad answers. */
static int answer_parse(const struct buffer *in, struct slice *body, int64_t *retry_after_s)
{
    const char *end = in->len > 4 ? memmem(in->ptr, in->len, "\r\n\r\n", 4) : NULL;
    int64_t status = 0, length = -1;

    if (!end) {
        return 0;
    }
    if (in->len < 12 || memcmp(in->ptr, "HTTP/1.1 ", 9) != 0 ||
        !slice_to_i64((struct slice){in->ptr + 9, 3}, &status)) {
        return -1;
    }
    for (const char *line = memchr(in->ptr, '\n', in->len); line && line < end;
         line = memchr(line, '\n', (size_t)(end + 2 - line))) {
        line++;
        if (!header_number(line, end, "Content-Length:", &length)) {
            return -1;
        }
        (void)header_number(line, end, "Retry-After:", retry_after_s); /* a date is as good as none */
    }
    if (length < 0) {
        return -1;
    }
    if (in->len - (size_t)(end + 4 - in->ptr) < (size_t)length) {
        return 0;
    }
    *body = (struct slice){end + 4, (size_t)length};
    return (int)status;
}

static void connection_read(struct wire_connection *c)
{
    static char block[READ_BYTES];
    ssize_t n = connection_receive(c, block, sizeof(block));
    struct slice body;

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        connection_lost(c);
        return;
    }
    if (!c->busy) {
        return; /* nothing was asked: what comes is the end of it */
    }
    buffer_put(&c->in, block, (size_t)n);
    c->retry_after_s = -1;
    int status = answer_parse(&c->in, &body, &c->retry_after_s);

    if (status < 0 || c->in.overflow) {
        connection_lost(c);
    } else if (status > 0) {
        c->busy = false;
        c->wire->options.on_answer(c, status, body, c->wire->options.context);
    }
}

void wire_poll(struct wire *wire, int64_t timeout_us)
{
    struct epoll_event events[EVENTS_MAX];
    /* Not in whole milliseconds: an open loop would be late by half of one on the average, and call it latency. */
    struct timespec timeout = {.tv_sec = timeout_us > 0 ? timeout_us / 1000000 : 0,
                               .tv_nsec = timeout_us > 0 ? timeout_us % 1000000 * 1000 : 0};
    int count = epoll_pwait2(wire->epoll, events, EVENTS_MAX, &timeout, NULL);

    for (int i = 0; i < count; i++) {
        struct wire_connection *c = events[i].data.ptr;

        if (c->fd >= 0 && (events[i].events & EPOLLOUT)) {
            connection_write(c);
        }
        if (c->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))) {
            connection_read(c);
        }
        while (c->fd >= 0 && c->tls && gnutls_record_check_pending(c->tls) > 0) {
            connection_read(c); /* what has been taken from the socket already does not wake anybody */
        }
    }
    for (size_t i = 0; count == 0 && i < wire->options.connections;
         i++) { /* nothing moves: those that could not be opened again */
        struct wire_connection *c = &wire->connections[i];

        if (c->fd < 0 && !connection_open(c) && c->busy) {
            c->busy = false;
            wire->options.on_answer(c, 0, SLICE_NONE, wire->options.context);
        } else if (c->fd >= 0 && c->busy && c->out_sent == 0) {
            connection_write(c);
        }
    }
}

struct wire_connection *wire_connection_at(struct wire *wire, size_t index)
{
    return &wire->connections[index];
}

enum err_code wire_open(const struct wire_options *options, struct wire **out, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int failure = getaddrinfo(options->host, options->port, &hints, &found);

    if (failure != 0) {
        (void)err_set(err, ERR_UNREACHABLE, "%s cannot be found", options->host);
        err_detail(err, "%s", gai_strerror(failure));
        return ERR_UNREACHABLE;
    }
    struct wire *wire = memory_alloc(sizeof(*wire));

    wire->options = *options;
    wire->epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK(!options->tls || gnutls_certificate_allocate_credentials(&wire->credentials) == GNUTLS_E_SUCCESS);
    wire->connections = memory_alloc(options->connections * sizeof(*wire->connections));
    memcpy(&wire->address, found->ai_addr, found->ai_addrlen);
    wire->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    for (size_t i = 0; i < options->connections; i++) {
        struct wire_connection *c = &wire->connections[i];

        c->wire = wire;
        c->index = i;
        c->fd = -1;
        buffer_init(&c->out, ANSWER_BYTES_MAX);
        buffer_init(&c->in, ANSWER_BYTES_MAX);
    }
    for (size_t i = 0; i < options->connections; i++) {
        if (!connection_open(&wire->connections[i])) {
            (void)err_set(err, ERR_UNREACHABLE, "connection %zu to %s:%s cannot be opened", i + 1, options->host,
                          options->port);
            err_detail(err, "%s", strerror(errno));
            wire_close(wire);
            return ERR_UNREACHABLE;
        }
    }
    *out = wire;
    return ERR_OK;
}

void wire_close(struct wire *wire)
{
    for (size_t i = 0; i < wire->options.connections; i++) {
        struct wire_connection *c = &wire->connections[i];

        if (c->fd >= 0) {
            connection_close(c);
        }
        buffer_fini(&c->out);
        buffer_fini(&c->in);
    }
    (void)close(wire->epoll); /* holds no data */
    if (wire->credentials) {
        gnutls_certificate_free_credentials(wire->credentials);
    }
    free(wire->connections);
    free(wire);
}
