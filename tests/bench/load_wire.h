/*
 * The wire of the load driver: many keep-alive connections on one epoll. It spends few instructions on each request, so
 * that the figures show the service and not the driver. It reads only what sagad sends: HTTP/1.1 with Content-Length.
 * With TLS it believes every certificate: it measures a service on its own machine.
 */
#ifndef TESTS_BENCH_LOAD_WIRE_H
#define TESTS_BENCH_LOAD_WIRE_H

#include "base/errors.h"

struct wire;
struct wire_connection;

struct wire_options {
    const char *host, *port;
    size_t connections;
    bool tls;
    /* Handles a whole answer; `body` is borrowed. The function may send on the same connection. Status 0 says that the
     * connection was lost, and is open again. */
    void (*on_answer)(struct wire_connection *connection, int status, struct slice body, void *context);
    void *context;
};

struct wire_connection {
    struct wire *wire;
    size_t index;
    int fd;
    struct gnutls_session_int *tls; /* NULL: plain */
    bool busy, writable_wanted;
    struct buffer out, in;
    size_t out_sent;
    int64_t retry_after_s; /* from the last answer; -1: the answer had none */
    uint64_t user;         /* the caller's */
    int64_t begun_us;      /* the caller's */
    int64_t again_us;      /* the caller's */
};

MUST_USE enum err_code wire_open(const struct wire_options *options, struct wire **out, struct err *err);
void wire_close(struct wire *wire);
struct wire_connection *wire_connection_at(struct wire *wire, size_t index);
void wire_send(struct wire_connection *connection, struct slice head, struct slice body);
void wire_resend(struct wire_connection *connection);  /* sends the previous request once more */
void wire_poll(struct wire *wire, int64_t timeout_us); /* handles all that has arrived */
int64_t wire_now_us(void);

#endif
