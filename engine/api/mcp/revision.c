/*
 * What each revision asks of a request. Revision 2026-07-28 says everything with each request, in `_meta`, and repeats
 * in headers what a proxy may want to know. A header that says something else than the body is refused, because a proxy
 * and sagad would then act on two different requests.
 */
#include "api/mcp/mcp.h"

#include <string.h>

#define SENTINEL "=?base64?"
#define NAME_BYTES_MAX 1024

static const char *const handshake_versions[] = {MCP_VERSION_HANDSHAKE, "2025-06-18", "2025-03-26"};

bool mcp_version_is_known(struct slice version)
{
    for (size_t i = 0; i < COUNT_OF(handshake_versions); i++) {
        if (slice_is(version, handshake_versions[i])) {
            return true;
        }
    }
    return false;
}

static bool version_is_unknown(struct mcp_exchange *exchange, struct slice version)
{
    struct arena *arena = exchange->request->arena;
    struct slice asked = {version.ptr, version.len < 64 ? version.len : 64};
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 1024);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "supported");
    json_write_text(&w, NULL, MCP_VERSION_STATELESS);
    json_write_text(&w, NULL, MCP_VERSION_HANDSHAKE);
    json_array_end(&w);
    json_write_slice(&w, "requested", asked);
    json_object_end(&w);
    struct slice data = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    mcp_fail_with(exchange, 400, RPC_VERSION_UNKNOWN, "this revision of the protocol is not known here", data);
    return false;
}

/* --- headers --- */

static int base64_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* `=?base64?TEXT?=` stands for what a header cannot hold. SLICE_NONE: it is not right. */
static struct slice header_value(struct slice header, struct arena *arena)
{
    size_t head = sizeof(SENTINEL) - 1;
    uint32_t bits = 0;
    size_t len = 0;
    int held = 0;

    if (!slice_starts_with(header, SENTINEL) || header.len < head + 2 ||
        memcmp(header.ptr + header.len - 2, "?=", 2) != 0) {
        return header;
    }
    struct slice code = {header.ptr + head, header.len - head - 2};
    char *text = arena_alloc(arena, code.len + 1);

    while (code.len > 0 && code.ptr[code.len - 1] == '=') {
        code.len--;
    }
    for (size_t i = 0; i < code.len; i++) {
        int value = base64_value(code.ptr[i]);

        if (value < 0) {
            return SLICE_NONE;
        }
        bits = (bits << 6 | (uint32_t)value) & 0xffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            text[len++] = (char)(bits >> held & 0xff);
        }
    }
    return (struct slice){text, len};
}

static bool header_says(struct mcp_exchange *exchange, const char *name, struct slice wanted)
{
    const struct http_exchange *http = exchange->request->exchange;
    struct slice value = http_exchange_header(http, name);

    if (http_exchange_header_count(http, name) == 1 && value.len <= NAME_BYTES_MAX &&
        slice_equal(header_value(slice_trim(value), exchange->request->arena), wanted)) {
        return true;
    }
    mcp_fail(exchange, 400, RPC_HEADER_MISMATCH,
             arena_text(
                 exchange->request->arena,
                 arena_printf(exchange->request->arena,
                              value.ptr ? "the header %s does not say what the body says" : "the header %s is missing",
                              name)));
    return false;
}

static bool stateless_holds(struct mcp_exchange *exchange)
{
    const struct rpc_message *message = &exchange->message;
    struct slice capabilities = json_member(message->meta, META_PREFIX "clientCapabilities");

    if (!message->version.ptr) {
        mcp_fail(exchange, 400, RPC_INVALID_PARAMS, "\"_meta\" has no \"" META_PREFIX "protocolVersion\"");
        return false;
    }
    if (!header_says(exchange, "MCP-Protocol-Version", message->version)) {
        return false;
    }
    if (!slice_is(message->version, MCP_VERSION_STATELESS)) {
        return version_is_unknown(exchange, message->version);
    }
    if (json_type(capabilities) != JSON_OBJECT) {
        mcp_fail(exchange, 400, RPC_INVALID_PARAMS, "\"_meta\" has no \"" META_PREFIX "clientCapabilities\"");
        return false;
    }
    if (!header_says(exchange, "Mcp-Method", message->method)) {
        return false;
    }
    const char *named = rpc_name_in_header(message->method);

    return !named || header_says(exchange, "Mcp-Name",
                                 json_string(json_member(message->params, named), exchange->request->arena));
}

bool mcp_revision_holds(struct mcp_exchange *exchange)
{
    struct rpc_message *message = &exchange->message;
    struct slice header = http_exchange_header(exchange->request->exchange, "mcp-protocol-version");

    if (slice_is(header, MCP_VERSION_STATELESS)) {
        message->era = ERA_STATELESS; /* a client is stateless also where `_meta` has forgotten to say so */
    }
    if (!message->id.ptr) {
        return true; /* no revision says anything of the headers of notifications */
    }
    if (message->era == ERA_STATELESS) {
        return stateless_holds(exchange);
    }
    if (header.ptr && !slice_is(message->method, "initialize") && !mcp_version_is_known(header)) {
        return version_is_unknown(exchange, header);
    }
    return true;
}
