/*
 * What the files of the adapter `mcp` share. mcp.c reads the settings, mcp_message.c writes and judges messages,
 * mcp_http.c and mcp_stdio.c carry them.
 */
#ifndef SAGAD_ADAPTERS_MCP_H
#define SAGAD_ADAPTERS_MCP_H

#include "adapters/adapter.h"
#include "adapters/mcp_message.h"
#include "base/digest.h"
#include "base/list.h"
#include "base/map.h"
#include "io/http/client.h"
#include "io/loop/loop.h"
#include "io/process/child.h"

#define MCP_SESSIONS_MAX 256 /* of HTTP servers, kept */
#define MCP_SERVERS_MAX 32   /* processes */
#define MCP_HANDSHAKE_MS 30000
#define MCP_KEY_NAME "sagad/idempotency-key" /* in _meta, when the tool does not say otherwise */

/* What is kept between calls. Made with the first call of an engine. */
struct mcp_state {
    struct adapter_host *host;
    struct list sessions; /* of mcp_http.c, longest unused first */
    struct list servers;  /* of mcp_stdio.c, longest unused first */
    struct children children;
    int64_t id_last; /* ids of requests, never used twice in one engine */
};

enum mcp_phase { MCP_WAITING, MCP_INITIALIZE, MCP_INITIALIZED, MCP_CALLING };

struct mcp_session;
struct mcp_server;

struct mcp_call {
    struct call call;
    struct mcp_state *state;
    struct deferred end; /* settles what ends without an event of its own */
    struct timer timer; /* its time while nothing else watches it; over HTTP also how long a stream may stay open behind
                           the answer */
    struct list_link link; /* among those who wait for a handshake */
    int64_t due_boot_ms;
    struct slice server, tool, arguments; /* JSON, text, JSON */
    bool lists;                           /* asks for a page of the tools instead of calling one: see mcp_list.h */
    struct slice cursor;                  /* text; SLICE_NONE: the first page */
    enum mcp_phase phase;

    /* HTTP */
    struct mcp_session *session;
    struct http_request request;
    struct http_header *headers;
    size_t header_own; /* those of the settings; ours follow */
    struct slice url;
    const char *ca_file, *client_cert;
    struct mcp_sse sse;
    struct buffer body;
    int64_t id;          /* of the request under way */
    struct slice answer; /* the message with that id */
    bool reading, streams, too_large, cancelled, reopened;
    uint64_t generation; /* of the session that the call was sent in */

    /* stdio */
    struct mcp_server *process;
};

struct mcp_state *mcp_state_of(struct adapter_host *host);

/* The request that this call is, under a new id. */
struct slice mcp_request_write(struct mcp_call *m, bool modern);

/* Set call->outcome and call->response from an answer, by the defaults of definitions. `status` 0: not over HTTP. */
void mcp_answer_take(struct mcp_call *m, const struct mcp_message *message, int status);
void mcp_refused(struct mcp_call *m, int status); /* an HTTP answer that is none of JSON-RPC */

/* The outcome is set: call_settle() follows later in this turn, and nothing else does. */
void mcp_end(struct mcp_call *m);

/* Each gives NULL, or a sentence on what the rendered settings lack. With NULL the call is under way. */
const char *mcp_http_begin(struct mcp_call *m);
void mcp_http_cancel(struct mcp_call *m);
void mcp_http_close(struct mcp_state *state);

const char *mcp_stdio_begin(struct mcp_call *m);
void mcp_stdio_cancel(struct mcp_call *m);
void mcp_stdio_close(struct mcp_state *state);

#endif
