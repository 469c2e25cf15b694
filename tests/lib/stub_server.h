/*
 * A server on a raw socket, in a thread, that does exactly what a test tells it: answers byte for byte, cuts, resets,
 * says nothing. It counts the requests that reached it whole, which is how "sent twice" is seen.
 */
#ifndef SAGAD_TESTS_STUB_SERVER_H
#define SAGAD_TESTS_STUB_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* One act a request, in order; behind the last one it repeats. */
struct stub_act {
    const char *answer; /* sent when the whole request was read; NULL: nothing */
    enum {
        STUB_KEEP, /* wait for the next request on this connection */
        STUB_CLOSE,
        STUB_RESET,   /* RST instead of FIN */
        STUB_HANG,    /* until the client closes */
        STUB_FLOOD,   /* send zeros until the client closes */
        STUB_UNASKED, /* a while later send an answer that nobody asked for, then as STUB_KEEP */
    } then;
};

#define STUB_UNASKED_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked"

struct stub_server;

struct stub_server *stub_server_new(const struct stub_act *acts, size_t count);
void stub_server_free(struct stub_server *stub);
int stub_server_port(const struct stub_server *stub);
int stub_server_requests(const struct stub_server *stub);                /* read whole so far */
void stub_server_last(struct stub_server *stub, char *out, size_t size); /* the last request, head and body */
int stub_port_refused(void);                                             /* a port nobody listens on */

#endif
