/*
 * A server on a raw socket, in a thread, that does exactly what a test tells it: it answers byte for byte, cuts,
 * resets, or says nothing. It counts the requests that reached it whole, so that a test can see whether a request was
 * sent twice.
 */
#ifndef SAGAD_TESTS_STUB_SERVER_H
#define SAGAD_TESTS_STUB_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* What the server does with one request. Acts follow the order of requests; the last act repeats. */
struct stub_act {
    const char *answer; /* sent when the whole request was read; NULL: no answer */
    enum {
        STUB_KEEP, /* waits for the next request on this connection */
        STUB_CLOSE,
        STUB_RESET,   /* sends RST instead of FIN */
        STUB_HANG,    /* waits until the client closes */
        STUB_FLOOD,   /* sends zeros until the client closes */
        STUB_UNASKED, /* later sends an answer that nobody asked for, then acts as STUB_KEEP */
    } then;
};

#define STUB_UNASKED_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked"

struct stub_server;

struct stub_server *stub_server_new(const struct stub_act *acts, size_t count);
void stub_server_free(struct stub_server *stub);
int stub_server_port(const struct stub_server *stub);
int stub_server_requests(const struct stub_server *stub); /* the number of requests that were read whole */
void stub_server_last(struct stub_server *stub, char *out, size_t size); /* gives the last request, head and body */
int stub_port_refused(void);                                             /* a port on which nobody listens */

#endif
