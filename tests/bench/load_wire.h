/*
 * The wire of the load driver: many keep-alive connections on one epoll, with as few instructions a request as can be,
 * so that it is the service that is measured. It reads only what sagad sends: HTTP/1.1 with Content-Length.
 */
#ifndef TESTS_BENCH_LOAD_WIRE_H
#define TESTS_BENCH_LOAD_WIRE_H

#include "base/errors.h"

struct wire;
struct wire_connection;

struct wire_options {
    const char *host, *port;
    size_t connections;
    /* A whole answer; `body` is borrowed. May send on the same connection. status 0: the connection was lost, and is
     * open again. */
    void (*on_answer)(struct wire_connection *connection, int status, struct slice body, void *context);
    void *context;
};

struct wire_connection {
    struct wire *wire;
    size_t index;
    int fd;
    bool busy, writable_wanted;
    struct buffer out, in;
    size_t out_sent;
    int64_t retry_after_s; /* of the last answer; -1: it had none */
    uint64_t user;         /* the caller's */
    int64_t begun_us;      /* the caller's */
    int64_t again_us;      /* the caller's */
};

MUST_USE enum err_code wire_open(const struct wire_options *options, struct wire **out, struct err *err);
void wire_close(struct wire *wire);
struct wire_connection *wire_connection_at(struct wire *wire, size_t index);
void wire_send(struct wire_connection *connection, struct slice head, struct slice body);
void wire_resend(struct wire_connection *connection);  /* the request before, once more */
void wire_poll(struct wire *wire, int64_t timeout_us); /* handles what is there */
int64_t wire_now_us(void);

#endif
