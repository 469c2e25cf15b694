/*
 * One message of a client: JSON-RPC 2.0, as two revisions of the Model Context Protocol narrow it. Whatever has a
 * protocol version in its `_meta` is of revision 2026-07-28; everything else of 2025-11-25 or before.
 */
#ifndef SAGAD_API_MCP_RPC_H
#define SAGAD_API_MCP_RPC_H

#include "base/json.h"

#define RPC_ID_BYTES_MAX 256

enum rpc_code { /* the errors of the protocol; what a tool refuses is a result */
                RPC_PARSE_ERROR = -32700,
                RPC_INVALID_REQUEST = -32600,
                RPC_METHOD_NOT_FOUND = -32601,
                RPC_INVALID_PARAMS = -32602,
                RPC_HEADER_MISMATCH = -32020,
                RPC_CAPABILITY_MISSING = -32021,
                RPC_VERSION_UNKNOWN = -32022
};

enum rpc_era { ERA_HANDSHAKE /* the revisions until 2025-11-25 */, ERA_STATELESS /* the revisions since 2026-07-28 */ };

struct rpc_message {
    enum rpc_era era;
    bool is_answer;              /* an answer to a request of ours; we make none */
    struct slice id;             /* JSON, a string or an integer; SLICE_NONE: a notification, which gets no answer */
    struct slice method;         /* text */
    struct slice params, meta;   /* JSON objects; SLICE_NONE where there is none */
    struct slice version;        /* text, of `_meta` */
    struct slice progress_token; /* JSON, a string or an integer; SLICE_NONE: no progress is wanted */
};

struct rpc_fault {
    enum rpc_code code;
    const char *message;
};

/* False with a fault. `out->id` is set also then, if there is one that can be read. */
MUST_USE bool rpc_message_read(struct slice body, struct arena *arena, struct rpc_message *out,
                               struct rpc_fault *fault);
/* The parameter that the header Mcp-Name repeats in the later revision; NULL: the method has none. */
const char *rpc_name_in_header(struct slice method);

#endif
