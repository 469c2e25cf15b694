/*
 * HTTP requests by libcurl multi on the loop: connections are reused, no redirect is followed, no proxy variable of the
 * environment is honoured, nothing is sent twice.
 *
 * `sent` does not follow the CURLcode. It is true once libcurl was allowed to send, because from then on a byte may
 * have left.
 */
#ifndef SAGAD_IO_HTTP_CLIENT_H
#define SAGAD_IO_HTTP_CLIENT_H

#include "base/arena.h"
#include "io/loop/loop.h"

struct http_client;

struct egress;

#define HTTP_STREAM_FACTOR 16 /* a stream may have this many times the bytes of an answer */

struct http_client *http_client_new(struct loop *loop, uint32_t connections_max, uint32_t connections_per_host_max);
void http_client_set_egress(struct http_client *client,
                            const struct egress *egress); /* call it before the first request; copied */
void http_client_free(struct http_client *client);        /* no request may be under way; accepts NULL */

struct http_header {
    struct slice name, value;
};

struct http_request {
    /* in; borrowed until done */
    struct slice method, url, body; /* body SLICE_NONE: no body */
    const struct http_header *headers;
    size_t header_count;
    int64_t timeout_ms, connect_timeout_ms;
    size_t response_bytes_max;
    const char *ca_file, *client_cert, *client_key; /* NULL: the system's file, no certificate, no key */
    bool fresh_connection; /* do not reuse: for requests without a body that must not be repeated */
    bool streaming;        /* on_data gets the body as it comes (SSE), a bounded amount per turn; not collected */
    void (*on_data)(struct http_request *request, struct slice data);
    /* Called right before the first byte leaves, because the request may have waited long for a connection. NULL: it
     * may always leave. */
    bool (*may_leave)(struct http_request *request);
    struct arena *arena;                        /* for the answer */
    void (*done)(struct http_request *request); /* exactly once, on the loop, never inside http_send() */

    /* out */
    bool sent;     /* at least one byte may have left */
    bool complete; /* a whole answer came: status, headers and body below are valid */
    bool timed_out;
    int status;
    struct http_header *response_headers; /* names in lower case */
    size_t response_header_count;
    struct slice response_body;
    const char *error; /* short code when not complete: "refused", "dns", "timeout", "tls", "reset", "cut", "too-large",
                          "cancelled", "withheld", "protocol", OUTCOME_EGRESS_DENIED */
    char detail[200];  /* one sentence */

    void *internal;
};

/* Gives the value of a header of the answer; `name` is in lower case. SLICE_NONE: the answer does not have it. */
static inline struct slice http_response_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->response_header_count; i++) {
        if (slice_is(request->response_headers[i].name, name)) {
            return request->response_headers[i].value;
        }
    }
    return SLICE_NONE;
}

bool http_url_is_good(struct slice url); /* false: every request to it fails, because it cannot be read */
void http_send(struct http_client *client, struct http_request *request);
void http_cancel(struct http_request *request); /* `done` follows with the result as far as it is known */

#endif
