/* The messages of the Model Context Protocol that a caller of tools needs: JSON-RPC 2.0, also within server-sent
 * events. */
#ifndef SAGAD_ADAPTERS_MCP_MESSAGE_H
#define SAGAD_ADAPTERS_MCP_MESSAGE_H

#include "base/arena.h"
#include "base/text.h"
#include "base/trace_context.h"

#define MCP_VERSION_LEGACY "2025-11-25" /* the version that we offer in a handshake; we accept older ones too */
#define MCP_VERSION_MODERN "2026-07-28" /* the version that has no handshake */

/* --- writing --- */

struct slice mcp_write_initialize(int64_t id, struct arena *arena);
struct slice mcp_write_initialized(void);
struct slice mcp_write_cancelled(int64_t id, struct arena *arena);
/* Writes a call. SLICE_NONE as `key_name` means no key. */
struct slice mcp_write_call(int64_t id, struct slice tool, struct slice arguments, struct slice key_name,
                            struct slice key, const struct trace_context *trace, bool modern, struct arena *arena);
/* Writes a request for a page of the tools. SLICE_NONE as `cursor` means the first page. */
struct slice mcp_write_list(int64_t id, struct slice cursor, bool modern, struct arena *arena);

/* --- reading --- */

enum mcp_message_kind { MCP_ANSWER, MCP_REQUEST, MCP_NOTIFICATION };

struct mcp_message { /* the slices are raw JSON within the text that was read */
    enum mcp_message_kind kind;
    struct slice id, method;
    struct slice result; /* an object, or SLICE_NONE */
    struct slice error;  /* an object with an integer `code`, or SLICE_NONE */
    int64_t code;        /* the code of the error */
};

/* Returns false for a text that is not JSON or not JSON-RPC, and for an answer with neither or both of result and
 * error. */
bool mcp_message_read(struct slice text, size_t bytes_max, struct mcp_message *out);
bool mcp_message_answers(const struct mcp_message *message, int64_t id);

/* Returns the version in an answer to initialize, such as "2025-06-18"; SLICE_NONE when it names none that we speak. */
struct slice mcp_handshake_version(const struct mcp_message *message);
/* Does this refusal of initialize come from a server without a handshake? */
bool mcp_handshake_is_gone(const struct mcp_message *message);

/* --- the event stream of one HTTP answer --- */

struct mcp_sse {
    struct buffer line, data;
    bool after_cr, too_large, begun, delivered;
};

void mcp_sse_init(struct mcp_sse *sse, size_t bytes_max);
void mcp_sse_fini(struct mcp_sse *sse); /* accepts a zeroed struct */
/*
 * Takes bytes off the front of `rest` up to the end of the next event that has data, and stores that data in `data`,
 * borrowed until the next call. Returns false when `rest` is used up and no event is complete.
 */
bool mcp_sse_next(struct mcp_sse *sse, struct slice *rest, struct slice *data);

#endif
