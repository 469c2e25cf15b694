/*
 * An HTTP/1.1 server on the loop (libmicrohttpd behind it): connections, limits, deadlines, the guard against requests
 * that two readers could understand differently, parked answers and streams. The caller decides what a request means.
 *
 * The one rule: every exchange that on_request() was called for is answered exactly once, at once or later, by
 * http_respond() or by http_stream_begin() ... http_stream_end(). This holds also when the client has left meanwhile:
 * on_gone says so, and the answer is thrown away. The exchange and its arena live until that answer.
 */
#ifndef SAGAD_IO_HTTP_SERVER_H
#define SAGAD_IO_HTTP_SERVER_H

#include "base/arena.h"
#include "base/errors.h"
#include "io/loop/loop.h"

struct http_server;
struct http_exchange;

struct http_pair {
    struct slice name, value;
};

struct http_server_options {
    const char *listen; /* ADDRESS:PORT, [ADDRESS]:PORT or localhost:PORT; port 0 takes a free one */
    const char *tls_cert_file,
        *tls_key_file;              /* PEM (http/tls.h); NULL: plain HTTP. Borrowed until the server has stopped */
    const char *tls_client_ca_file; /* PEM (http/client_trust.h); NULL: no client is asked for a certificate. Borrowed,
                                       too */
    bool loopback_only;             /* refuse an address that other machines can reach */
    bool behind_proxy;              /* plain HTTP may be served at such an address: a proxy in front speaks TLS */
    /* default 1024, of which a sixteenth, at most 16, are for clients on this machine. An eighth more are accepted,
     * each for one request, which is refused, so that nobody waits without an answer */
    uint32_t connections_max;
    uint32_t connections_per_ip_max;     /* default: as many as all */
    size_t body_bytes_max;               /* default 1 MiB; more is refused with ERR_TOO_LARGE */
    int64_t idle_ms, header_ms, body_ms; /* total times for the next request to begin, its head (and the first to
                                            begin), its body; 60 s, 10 s, 30 s */

    /* The head was read. The handler may answer at once: the body is then thrown away. Or it holds the body. May be
     * NULL. */
    void (*on_headers)(struct http_exchange *exchange, void *context);
    /* The whole request was read. */
    void (*on_request)(struct http_exchange *exchange, void *context);
    /* The server refuses this request: ERR_MALFORMED or ERR_BUSY (the connection closes), ERR_TOO_LARGE. Must answer
     * at once. */
    void (*on_refused)(struct http_exchange *exchange, enum err_code code, const char *detail, void *context);
    void *context;
};

struct http_exchange {
    /* in */
    struct slice method, path; /* the path percent-decoded, without the query */
    const struct http_pair *headers;
    size_t header_count;
    const struct http_pair *query; /* percent-decoded */
    size_t query_count;
    struct slice body;
    struct arena *arena;

    /* the handler's */
    void *context;
    void (*on_gone)(struct http_exchange *exchange);    /* the client left before its answer; may be NULL */
    void (*on_drained)(struct http_exchange *exchange); /* streams only: everything written was sent; may be NULL */
};

/* NULL and an error when the port is taken, the address is not ours or cannot be read, or the certificate cannot be
 * used. */
struct http_server *http_server_start(struct loop *loop, const struct http_server_options *options, struct err *err);
/* Checks what http_server_start() would refuse; listens at no port. */
MUST_USE enum err_code http_server_check(const struct http_server_options *options, struct err *err);
uint32_t http_server_surplus(uint32_t connections_max); /* connections accepted only to be refused */
uint16_t http_server_port(const struct http_server *server);
bool http_server_has_tls(const struct http_server *server);
/* Reads certificate and key again, for the connections to come, and the authorities of clients, for the requests to
 * come. ERR_CONFIG: they are wrong, and those before still hold. Does nothing on plain HTTP. */
MUST_USE enum err_code http_server_reload_tls(struct http_server *server, struct err *err);
const char *http_server_address(const struct http_server *server); /* "127.0.0.1:8077" */

/* Accept nothing more, wait until every exchange was answered and its answer has left (the latter 2 s at most), then
 * free and call `done`. */
void http_server_stop(struct http_server *server, void (*done)(void *context), void *context);

/*
 * Called in on_headers(): the body stays unread, and the client has to wait with most of it. Then either
 * http_body_go_on() must be called, or the exchange answered by http_respond(), which throws the body away. on_gone()
 * may be called before that. After http_body_go_on() the exchange lives on only if on_request() is called.
 */
void http_body_hold(struct http_exchange *exchange);
void http_body_go_on(struct http_exchange *exchange);
/* Called in on_headers(): this body may have fewer bytes than others. */
void http_body_limit(struct http_exchange *exchange, size_t bytes_max);

struct slice http_exchange_header(const struct http_exchange *exchange,
                                  const char *name); /* any case; SLICE_NONE when absent */
size_t http_exchange_header_count(const struct http_exchange *exchange, const char *name);
struct slice http_exchange_query(const struct http_exchange *exchange, const char *name); /* SLICE_NONE when absent */

/* The address of the client as text, in the exchange's arena; SLICE_NONE when it is not known. */
struct slice http_exchange_client(const struct http_exchange *exchange);

/* What a client has shown as its certificate. */
struct client_certificate {
    bool is_shown;
    const char *fault;   /* why it is not good, as the end of a sentence; NULL: it is, or none was shown */
    struct slice *names; /* in the arena: "DNS:NAME", "URI:URI" and "email:ADDRESS" of a good one, as it has them */
    size_t name_count;
    int64_t expires_ms;
};

/* The name by the authorities that were read last. `arena` may be NULL: then names stay unread. Of a client that has
 * left nothing is known. */
void http_exchange_certificate(const struct http_exchange *exchange, struct arena *arena,
                               struct client_certificate *out);

/* Call this before the answer. `name` is a constant; the value is copied. */
void http_answer_header(struct http_exchange *exchange, const char *name, struct slice value);
/* The body stays borrowed until the answer has left: put it into the exchange's arena, or use a constant. */
void http_respond(struct http_exchange *exchange, int status, const char *content_type, struct slice body);

/* A stream ends with http_stream_end(), which must come, also after on_gone. Writing never blocks, and copies the
 * bytes. */
void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type);
void http_stream_write(struct http_exchange *exchange, struct slice bytes);
void http_stream_end(struct http_exchange *exchange);

#endif
