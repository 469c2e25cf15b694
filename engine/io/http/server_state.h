/*
 * State that the files of the HTTP server share. http/server.c: the library on the loop, connections, start and stop;
 * http/exchange.c: how a request is served; http/answer.c: how an answer is sent; http/stall.c: a library that stands
 * still.
 *
 * An exchange goes NEW -> READING -> HANDLING -> ANSWERED or STREAMING, and is recycled when the library has finished
 * the request (and, for a stream, the handler has ended it). It is HELD before READING while its body has to wait.
 */
#ifndef SAGAD_IO_HTTP_SERVER_STATE_H
#define SAGAD_IO_HTTP_SERVER_STATE_H

#include <microhttpd.h>
#include <uv.h>

#include "io/http/listen.h"
#include "io/http/server.h"
#include "io/http/tls.h"

#define ANSWER_HEADERS_MAX 12
#define STREAM_BYTES_MAX (16 * 1024 * 1024)

enum phase { PHASE_FIRST, PHASE_IDLE, PHASE_HEADER, PHASE_BODY, PHASE_SURPLUS, PHASE_BUSY, PHASE_COUNT };

struct exchange;

struct connection {
    struct MHD_Connection *mhd;
    struct exchange *exchange; /* the exchange whose end the library has not reported yet; NULL: none */
    struct list_link link;     /* in server->phases[phase], except in PHASE_BUSY */
    enum phase phase;
    int64_t since_ms;
    int fd;
    struct http_tls_pair *tls_pair; /* NULL on plain HTTP */
    size_t places;                  /* connections that clients of its kind may have */
    bool surplus;                   /* it is beyond that number, and is only told so */
    uint64_t pieces, pieces_seen;   /* body pieces handed over: now, and when http/stall.c last looked */
    unsigned strikes;               /* checks in a row in which its body stood still although bytes were waiting */
};

enum state { EXCHANGE_NEW, EXCHANGE_HELD, EXCHANGE_READING, EXCHANGE_HANDLING, EXCHANGE_ANSWERED, EXCHANGE_STREAMING };

struct watch { /* watches the socket of a parked exchange; freed in uv's close callback */
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
    size_t body_bytes_max;
    enum state state;
    const char *target_fault;
    int64_t content_length; /* -1: not given */
    int64_t discarded;      /* bytes of a body that nobody wants */
    bool in_handler;        /* on_headers, on_request or on_refused is being called */
    bool counted;           /* in server->active */
    bool too_large, gone, closes;
    bool resumes; /* it was held, and the library has not called since */
    bool parked;
    struct list_link link; /* in server->parked, or in server->spare */
    bool in_parked_list;
    int64_t parked_ms, begun_us;
    struct watch *watch;

    int status;
    struct MHD_Response *response;
    struct http_pair answer_headers[ANSWER_HEADERS_MAX];
    size_t answer_header_count;

    struct buffer out; /* streams only */
    size_t out_read;
    bool ended;    /* the handler has ended the stream */
    bool finished; /* the library is done with the request */
    struct deferred drained;
};

struct http_server {
    struct loop *loop;
    struct http_server_options options;
    struct http_listener listener;
    struct http_tls *tls; /* NULL: plain HTTP */
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    struct deferred run;
    struct timer run_timer, sweep_timer, stop_timer;
    struct list phases[PHASE_BUSY];
    struct list parked, spare;
    size_t connections, active, open;
    uint64_t happened, happened_seen; /* the library's calls to us: now, and after the last run */
    unsigned idle_runs, eager_runs;   /* runs wanted at once in a row: those without a call to us, and all */
    bool stalled;                     /* the library wants runs in which nothing happens */
    bool stopping, stop_grace_over, closing;
    struct deferred stop;
    void (*stopped)(void *context);
    void *stopped_context;
};

void http_server_kick(struct http_server *server); /* runs the library later in this turn of the loop */
void http_server_check_stopped(struct http_server *server);
void http_connection_move(struct http_server *server, struct connection *connection, enum phase phase);
void http_connection_cut(struct http_server *server, struct connection *connection); /* the library then closes it */
/* Writes a 400 past the library and cuts the connection. Only before the library has read a head, while it writes
 * nothing. With TLS the connection is only cut: the library keeps the session to itself. */
void http_connection_refuse(struct http_server *server, struct connection *connection, const char *words);
bool http_exchange_is_at_once(const struct exchange *x); /* the answer does not wait for the end of the body */
bool http_connection_is_surplus(const struct http_server *server, struct connection *connection); /* still? */

/* http/stall.c. The first returns the milliseconds until a library that wants to run at once is run again; the second
 * says that it no longer wants to. */
int64_t http_stall_wait_ms(struct http_server *server);
void http_stall_over(struct http_server *server);

/* The library's callbacks. */
void *http_exchange_on_target(void *context, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_exchange_on_access(void *context, struct MHD_Connection *mhd, const char *path, const char *method,
                                        const char *version, const char *upload, size_t *upload_len,
                                        void **request_context);
void http_exchange_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                                enum MHD_RequestTerminationCode why);

void http_exchange_forgotten(struct exchange *x); /* the connection has ended, and the library told nothing */
void http_exchange_park(struct exchange *x);      /* suspends it while nothing can be sent */
void http_exchange_unpark(struct exchange *x);    /* no-op when not parked */
void http_exchange_watch(struct exchange *x);     /* watches whether the client of a parked exchange leaves */
void http_exchange_settled(struct exchange *x);   /* the handler has kept its promise */
void http_exchange_release(struct exchange *x, enum state state); /* ends EXCHANGE_HELD */
void http_exchange_recycle(struct exchange *x); /* both the library and the handler are done with it */
void http_exchange_free(struct exchange *x);

#endif
