/*
 * Writes and reads messages of the Model Context Protocol. Messages of a server are hostile until they are read: every
 * length is bounded, and nothing is guessed about a message that is not JSON-RPC 2.0.
 */
#include "adapters/mcp_message.h"

#include <string.h>

#include "base/json.h"

#define ID_BYTES_MAX 256

/* --- writing --- */

static void client_write(struct json_writer *w, const char *name)
{
    json_object_begin(w, name);
    json_write_text(w, "name", "sagad");
    json_write_text(w, "version", "1");
    json_object_end(w);
}

static void request_begin(struct json_writer *w, struct buffer *text, int64_t id, const char *method)
{
    buffer_init(text, SIZE_MAX / 2); /* all parts are bounded already */
    json_writer_init(w, text);
    json_object_begin(w, NULL);
    json_write_text(w, "jsonrpc", "2.0");
    if (id) {
        json_write_i64(w, "id", id);
    }
    json_write_text(w, "method", method);
    json_object_begin(w, "params");
}

static struct slice request_end(struct json_writer *w, struct buffer *text, struct arena *arena)
{
    struct slice message;

    json_object_end(w);
    json_object_end(w);
    message = arena_slice(arena, buffer_slice(text));
    buffer_fini(text);
    return message;
}

struct slice mcp_write_initialize(int64_t id, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    request_begin(&w, &text, id, "initialize");
    json_write_text(&w, "protocolVersion", MCP_VERSION_LEGACY);
    json_object_begin(&w, "capabilities"); /* empty: nobody here answers questions to a model or a person */
    json_object_end(&w);
    client_write(&w, "clientInfo");
    return request_end(&w, &text, arena);
}

struct slice mcp_write_initialized(void)
{
    return SLICE("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

struct slice mcp_write_cancelled(int64_t id, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    request_begin(&w, &text, 0, "notifications/cancelled");
    json_write_i64(&w, "requestId", id);
    json_write_text(&w, "reason", "The answer is not awaited any more.");
    return request_end(&w, &text, arena);
}

/* Replaces line ends by spaces. They are legal white space in arguments, but would end a message on standard input. */
static struct slice one_line(struct slice json, struct arena *arena)
{
    char *copy;

    if (!memchr(json.ptr, '\n', json.len) && !memchr(json.ptr, '\r', json.len)) {
        return json;
    }
    copy = arena_dup(arena, json.ptr, json.len);
    for (size_t i = 0; i < json.len; i++) {
        if (copy[i] == '\n' || copy[i] == '\r') {
            copy[i] = ' '; /* inside strings line ends are escaped */
        }
    }
    return (struct slice){copy, json.len};
}

static void meta_write(struct json_writer *w, struct slice key_name, struct slice key,
                       const struct trace_context *trace, bool modern, struct arena *arena)
{
    if (!key_name.ptr && !modern && !trace->parent.ptr) {
        return;
    }
    json_object_begin(w, "_meta");
    if (modern) {
        json_write_text(w, "io.modelcontextprotocol/protocolVersion", MCP_VERSION_MODERN);
        client_write(w, "io.modelcontextprotocol/clientInfo");
        json_object_begin(w, "io.modelcontextprotocol/clientCapabilities");
        json_object_end(w);
    }
    if (key_name.ptr) {
        json_write_slice(w, arena_text(arena, key_name), key);
    }
    if (trace->parent.ptr) {
        json_write_slice(w, "traceparent", trace->parent);
        if (trace->state.ptr) {
            json_write_slice(w, "tracestate", trace->state);
        }
    }
    json_object_end(w);
}

struct slice mcp_write_call(int64_t id, struct slice tool, struct slice arguments, struct slice key_name,
                            struct slice key, const struct trace_context *trace, bool modern, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    request_begin(&w, &text, id, "tools/call");
    json_write_slice(&w, "name", tool);
    json_write_raw(&w, "arguments", one_line(arguments, arena));
    meta_write(&w, key_name, key, trace, modern, arena);
    return request_end(&w, &text, arena);
}

struct slice mcp_write_list(int64_t id, struct slice cursor, bool modern, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    request_begin(&w, &text, id, "tools/list");
    if (cursor.ptr) {
        json_write_slice(&w, "cursor", cursor);
    }
    meta_write(&w, SLICE_NONE, SLICE_NONE, &(struct trace_context){SLICE_NONE, SLICE_NONE}, modern, arena);
    return request_end(&w, &text, arena);
}

/* --- reading --- */

bool mcp_message_read(struct slice text, size_t bytes_max, struct mcp_message *out)
{
    struct json_limits limits = json_limits_default;
    struct slice result, error;

    *out = (struct mcp_message){.kind = MCP_ANSWER};
    limits.bytes_max = bytes_max;
    if (json_check(text, &limits, NULL) != ERR_OK || json_type(text) != JSON_OBJECT ||
        !json_string_is(json_member(text, "jsonrpc"), "2.0")) {
        return false;
    }
    out->id = json_trim(json_member(text, "id"));
    out->method = json_trim(json_member(text, "method"));
    if (out->id.len > ID_BYTES_MAX) {
        return false;
    }
    if (out->method.ptr) {
        out->kind = out->id.ptr ? MCP_REQUEST : MCP_NOTIFICATION;
        return json_type(out->method) == JSON_STRING;
    }
    result = json_trim(json_member(text, "result"));
    error = json_trim(json_member(text, "error"));
    if (json_type(result) == JSON_OBJECT && !error.ptr) {
        out->result = result;
        return out->id.ptr != NULL;
    }
    if (!result.ptr && json_type(error) == JSON_OBJECT && json_type(json_member(error, "code")) == JSON_NUMBER &&
        json_i64(json_member(error, "code"), &out->code)) {
        out->error = error;
        return true; /* a server that could not read the id omits it */
    }
    return false;
}

bool mcp_message_answers(const struct mcp_message *message, int64_t id)
{
    int64_t theirs;

    return message->kind == MCP_ANSWER && json_type(message->id) == JSON_NUMBER && json_i64(message->id, &theirs) &&
           theirs == id;
}

struct slice mcp_handshake_version(const struct mcp_message *message)
{
    static const char *const spoken[] = {MCP_VERSION_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"};
    struct slice version = json_member(message->result, "protocolVersion");

    for (size_t i = 0; i < COUNT_OF(spoken); i++) {
        if (json_string_is(version, spoken[i])) {
            return slice_of(spoken[i]);
        }
    }
    return SLICE_NONE;
}

bool mcp_handshake_is_gone(const struct mcp_message *message)
{
    /* The codes mean: unknown method, and in the revision without a handshake missing headers, missing capabilities, or
     * another version. */
    return message->error.ptr && (message->code == -32601 || (message->code <= -32020 && message->code >= -32022));
}

/* --- server-sent events (WHATWG HTML 9.2): lines end with CR, LF or both; an empty one ends an event --- */

void mcp_sse_init(struct mcp_sse *sse, size_t bytes_max)
{
    *sse = (struct mcp_sse){0};
    buffer_init(&sse->line, bytes_max + 64); /* room for the name of the field */
    buffer_init(&sse->data, bytes_max);
}

void mcp_sse_fini(struct mcp_sse *sse)
{
    buffer_fini(&sse->line);
    buffer_fini(&sse->data);
}

/* Takes one line. Returns true when the event is complete and has data. */
static bool sse_line(struct mcp_sse *sse)
{
    struct slice line = buffer_slice(&sse->line);

    if (!sse->begun && slice_starts_with(line, "\xef\xbb\xbf")) {
        line = (struct slice){line.ptr + 3, line.len - 3};
    }
    sse->begun = true;
    if (line.len == 0) {
        return slice_trim(buffer_slice(&sse->data)).len > 0;
    }
    if (slice_starts_with(line, "data:")) {
        line = (struct slice){line.ptr + 5, line.len - 5};
        if (line.len > 0 && line.ptr[0] == ' ') {
            line = (struct slice){line.ptr + 1, line.len - 1};
        }
        buffer_put_slice(&sse->data, line);
        buffer_put_char(&sse->data, '\n'); /* a trailing one is white space to JSON */
        sse->too_large = sse->too_large || sse->data.overflow;
    }
    return false; /* we need neither event, id, retry nor comments */
}

bool mcp_sse_next(struct mcp_sse *sse, struct slice *rest, struct slice *data)
{
    if (sse->delivered) {
        sse->delivered = false;
        buffer_reset(&sse->data);
    }
    while (rest->len > 0 && !sse->too_large) {
        char c = *rest->ptr;
        bool complete;

        rest->ptr++;
        rest->len--;
        if (c == '\n' && sse->after_cr) {
            sse->after_cr = false;
            continue;
        }
        sse->after_cr = c == '\r';
        if (c != '\n' && c != '\r') {
            buffer_put_char(&sse->line, c);
            sse->too_large = sse->line.overflow;
            continue;
        }
        complete = sse_line(sse);
        if (sse->line.len == 0 && !complete) {
            buffer_reset(&sse->data); /* the event has no data */
        }
        buffer_reset(&sse->line);
        if (complete) {
            *data = buffer_slice(&sse->data);
            sse->delivered = true;
            return true;
        }
    }
    return false;
}
