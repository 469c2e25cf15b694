/* The messages of the Model Context Protocol that a caller of tools needs: JSON-RPC 2.0, and server-sent events around
 * it. */
#ifndef SAGAD_ADAPTERS_MCP_MESSAGE_H
#define SAGAD_ADAPTERS_MCP_MESSAGE_H

#include "base/arena.h"
#include "base/text.h"

#define MCP_VERSION_LEGACY "2025-11-25" /* what we offer in a handshake; older ones are taken too */
#define MCP_VERSION_MODERN "2026-07-28" /* without a handshake */

/* --- writing --- */

struct slice mcp_write_initialize(int64_t id, struct arena *arena);
struct slice mcp_write_initialized(void);
struct slice mcp_write_cancelled(int64_t id, struct arena *arena);
/* `key_name` SLICE_NONE: no key. */
struct slice mcp_write_call(int64_t id, struct slice tool, struct slice arguments, struct slice key_name,
                            struct slice key, bool modern, struct arena *arena);
/* Asks for a page of the tools; `cursor` SLICE_NONE: the first. */
struct slice mcp_write_list(int64_t id, struct slice cursor, bool modern, struct arena *arena);

/* --- reading --- */

enum mcp_message_kind { MCP_ANSWER, MCP_REQUEST, MCP_NOTIFICATION };

struct mcp_message { /* slices of the text that was read, raw JSON */
    enum mcp_message_kind kind;
    struct slice id, method;
    struct slice result; /* an object, or SLICE_NONE */
    struct slice error;  /* an object with an integer `code`, or SLICE_NONE */
    int64_t code;        /* of the error */
};

/* False: no JSON, no JSON-RPC, or an answer with neither a result nor an error, or with both. */
bool mcp_message_read(struct slice text, size_t bytes_max, struct mcp_message *out);
bool mcp_message_answers(const struct mcp_message *message, int64_t id);

/* "2025-06-18" of the answer to initialize; SLICE_NONE when it names a version that we do not speak, or none. */
struct slice mcp_handshake_version(const struct mcp_message *message);
/* Does this refusal of initialize come from a server that has no handshake any more? */
bool mcp_handshake_is_gone(const struct mcp_message *message);

/* --- the event stream of one HTTP answer --- */

struct mcp_sse {
    struct buffer line, data;
    bool after_cr, too_large, begun, delivered;
};

void mcp_sse_init(struct mcp_sse *sse, size_t bytes_max);
void mcp_sse_fini(struct mcp_sse *sse); /* accepts a zeroed struct */
/*
 * Takes bytes off the front of `rest` up to the end of the next event that holds data, and gives it in `data`, borrowed
 * until the next call. False: all was taken and no event is complete.
 */
bool mcp_sse_next(struct mcp_sse *sse, struct slice *rest, struct slice *data);

#endif
