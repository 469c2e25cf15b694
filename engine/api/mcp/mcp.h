/* What the files of this folder share: one request to /mcp, from its message to its answer. */
#ifndef SAGAD_API_MCP_MCP_H
#define SAGAD_API_MCP_MCP_H

#include "api/mcp/identity.h"
#include "api/mcp/rpc.h"
#include "api/request.h"
#include "core/definition/exposure.h"

#define MCP_VERSION_STATELESS "2026-07-28"
#define MCP_VERSION_HANDSHAKE "2025-11-25"
#define META_PREFIX "io.modelcontextprotocol/"
#define NAME_GROWTH 3 /* how much a name grows when it is read and written again: \b becomes \u0008 */

struct mcp_stream { /* the stream of an answer that takes its time (stream.c) */
    bool may_begin; /* the client reads server-sent events */
    bool has_begun;
    uint64_t signs; /* the signs of life, so far */
    struct timer timer;
};

struct mcp_exchange { /* api_request->state */
    struct api_request *request;
    struct rpc_message message;
    struct mcp_stream stream;
    struct slice set;        /* the set of tools, by the path; SLICE_NONE: all */
    bool passes_content;     /* the result may be content of the protocol as it is */
    const char *result_type; /* "resultType" of the answer; NULL: "complete" */
    void *state;             /* the state of the method */
};

struct mcp_result { /* a result while it is written */
    struct buffer out;
    struct json_writer w;
    const struct mcp_exchange *exchange;
};

/* endpoint.c: the names of all methods, one by one; NULL: no more. Is it one of the stateless revision only? */
const char *mcp_method(size_t i, bool *is_stateless);

/* What of the namespace this request may see and call: all of it, or less by its grant or token (tools_list.c). */
bool mcp_offers(const struct mcp_exchange *exchange, const struct offer *offer);
struct saga_tool;
bool mcp_offers_own(const struct mcp_exchange *exchange, const struct saga_tool *tool);

/* Do the settings make a run of a session, which only the older revisions have? */
bool mcp_session_is_run(const struct mcp_exchange *exchange);

/* methods.c: each ends the request. */
void mcp_initialize(struct mcp_exchange *exchange);
void mcp_ping(struct mcp_exchange *exchange);
void mcp_discover(struct mcp_exchange *exchange);
void mcp_list_nothing(struct mcp_exchange *exchange); /* some hosts ask for everything that a server may have */
void mcp_read_nothing(struct mcp_exchange *exchange);
void mcp_list_tools(struct mcp_exchange *exchange); /* tools_list.c */
void mcp_call_tool(struct mcp_exchange *exchange);  /* tools_call.c */

/* tools_call.c: members of a tool's result: what it gave. May a tool give content of the protocol itself? */
void mcp_write_given(struct json_writer *w, const struct mcp_exchange *exchange, struct slice given);
bool mcp_passes_content(const struct offer *offer);

/* tasks.c: may the answer be a task? Where the client takes one for this request, and the intent of the operation is
 * durable. The rest ends the request. */
bool mcp_may_be_task(const struct mcp_exchange *exchange, struct slice operation);
void mcp_answer_task(struct mcp_exchange *exchange, struct slice operation); /* it goes on, as a task */
void mcp_get_task(struct mcp_exchange *exchange);
void mcp_note_task(struct mcp_exchange *exchange); /* a wish or an answer that changes nothing */

/* saga_tools.c: the tools that sagad has beside the registered ones, by name. Each ends the request. */
struct saga_tool {
    const char *name, *title, *description, *input, *annotations; /* the last two JSON */
    void (*perform)(struct mcp_exchange *exchange, struct slice arguments);
    bool begins;        /* a saga */
    bool of_operations; /* it shows one, and no saga */
};
extern const struct saga_tool saga_tools[];
extern const size_t saga_tool_count;
void mcp_start_saga(struct mcp_exchange *exchange, const struct offer *offer, struct slice arguments);

/* revision.c: is the message good in its revision? It answers what is not. */
bool mcp_revision_holds(struct mcp_exchange *exchange);
bool mcp_version_is_known(struct slice version); /* knows the revisions with a handshake */

/*
 * stream.c: the request waits, as long as its caller may. Whoever reads server-sent events gets signs of life
 * meanwhile: at once where it has asked for progress, else when it has waited for a second. False: it was answered,
 * because as many wait as may.
 */
bool mcp_wait(struct mcp_exchange *exchange);
void mcp_send(struct mcp_exchange *exchange, int http_status, struct slice json); /* ends the request */

/* The result of an offered tool that says what it is; a refusal fits the schema, too. */
void mcp_write_output_schema(struct json_writer *w, const char *name, struct slice output);
/* schema.c: the arguments of an offered tool, with those that sagad adds. */
void mcp_write_input_schema(struct json_writer *w, const char *name, const struct offer *offer, struct arena *arena);

/* --- answers (answer.c); each ends the request --- */

/* Opens "result". `bytes` is how much the caller may write, about. */
void mcp_result_begin(struct mcp_result *result, const struct mcp_exchange *exchange, size_t bytes);
void mcp_write_caching(struct mcp_result *result); /* how long a list may be kept, where the revision has that */
void mcp_write_server_info(struct json_writer *w, const char *name, const struct api *api);
void mcp_meta_begin(struct mcp_result *result); /* "_meta", with what every result says in it */
void mcp_meta_end(struct mcp_result *result);
void mcp_result_send(struct mcp_result *result); /* behind mcp_meta_end() */
void mcp_fail(struct mcp_exchange *exchange, int http_status, enum rpc_code code, const char *message);
void mcp_fail_with(struct mcp_exchange *exchange, int http_status, enum rpc_code code, const char *message,
                   struct slice data); /* JSON */
/* The engine has refused what it was asked. */
void mcp_refuse_asked(struct mcp_exchange *exchange);
/* A tool refuses: a result with `isError`, the problem as its content. `more` may be NULL. */
void mcp_refuse(struct mcp_exchange *exchange, const struct err *err, const struct problem_more *more);
/* Writes what a tool's result has of a refusal into the object that is open. */
void mcp_write_refusal(struct json_writer *w, struct slice problem);
/* What the engine knows of the operation of this call, for `_meta`; SLICE_NONE: there is none. */
void mcp_write_operation(struct mcp_result *result, struct slice operation, const struct call_result *call);

#endif
