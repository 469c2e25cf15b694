/*
 * The declarations that the files of the adapter `mcp` share. mcp.c reads the settings, mcp_message.c writes and reads
 * messages, mcp_http.c and mcp_stdio.c carry them.
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

#define MCP_SESSIONS_MAX 256 /* sessions with HTTP servers that are kept */
#define MCP_SERVERS_MAX 32   /* server processes that are kept */
#define MCP_HANDSHAKE_MS 30000
#define MCP_KEY_NAME                                                                                                   \
    "sagad/idempotency-key" /* the member of _meta that carries the key, unless the tool names another one */

/* The state that outlives a call. The first call of an engine makes it. */
struct mcp_state {
    struct adapter_host *host;
    struct list sessions; /* the sessions of mcp_http.c; the one unused for longest is first */
    struct list servers;  /* the processes of mcp_stdio.c; the one unused for longest is first */
    struct children children;
    int64_t id_last; /* the last id of a request; an engine never uses an id twice */
};

enum mcp_phase { MCP_WAITING, MCP_INITIALIZE, MCP_INITIALIZED, MCP_CALLING };

struct mcp_session;
struct mcp_server;

struct mcp_call {
    struct call call;
    struct mcp_state *state;
    struct deferred end; /* settles a call that ends without an event of its own */
    struct timer timer;  /* limits the call while nothing else does; over HTTP also limits how long a stream stays open
                            behind the answer */
    struct list_link link; /* links the calls that wait for a handshake */
    int64_t due_boot_ms;
    struct slice server, tool, arguments; /* JSON, text, JSON */
    bool lists;          /* the call asks for a page of the tools instead of calling one: see mcp_list.h */
    struct slice cursor; /* text; SLICE_NONE: the first page */
    enum mcp_phase phase;

    /* HTTP */
    struct mcp_session *session;
    struct http_request request;
    struct http_header *headers;
    size_t header_own; /* headers from the settings; our own follow them */
    struct slice url;
    const char *ca_file, *client_cert;
    struct mcp_sse sse;
    struct buffer body;
    int64_t id;          /* the id of the request under way */
    struct slice answer; /* the message that answers this id */
    bool reading, streams, too_large, cancelled, reopened;
    uint64_t generation; /* the generation of the session in which the call was sent */

    /* stdio */
    struct mcp_server *process;
};

/* Writes the request of this call under a new id. */
struct slice mcp_request_write(struct mcp_call *m, bool modern);

/* Sets call->outcome and call->response from an answer, by the defaults of definitions. `status` is 0 unless it came
 * over HTTP. */
void mcp_answer_take(struct mcp_call *m, const struct mcp_message *message, int status);
void mcp_refused(struct mcp_call *m, int status); /* for an HTTP answer that is not JSON-RPC */

/* Ends a call whose outcome is set: call_settle() follows later in this turn of the loop. */
void mcp_end(struct mcp_call *m);

/* Each returns NULL when the call is under way, or a sentence that says what is wrong with the rendered settings. */
const char *mcp_http_begin(struct mcp_call *m);
void mcp_http_cancel(struct mcp_call *m);
void mcp_http_close(struct mcp_state *state);

const char *mcp_stdio_begin(struct mcp_call *m);
void mcp_stdio_cancel(struct mcp_call *m);
void mcp_stdio_close(struct mcp_state *state);

#endif
