/* The envelope is checked here, in full, before anything is looked up. */
#include "api/mcp/rpc.h"

#include "base/utf8.h"

#define METHOD_BYTES_MAX 128
#define META_VERSION "io.modelcontextprotocol/protocolVersion"

static bool fail(struct rpc_fault *fault, enum rpc_code code, const char *message)
{
    *fault = (struct rpc_fault){code, message};
    return false;
}

static bool is_id(struct slice value)
{
    int64_t number;

    return value.len <= RPC_ID_BYTES_MAX && (json_type(value) == JSON_STRING || json_i64(value, &number));
}

static bool read_params(struct rpc_message *out, struct slice body, struct arena *arena, struct rpc_fault *fault)
{
    struct slice params = json_member(body, "params"), version;

    if (!params.ptr) {
        return true;
    }
    if (json_type(params) != JSON_OBJECT) {
        return fail(fault, RPC_INVALID_PARAMS, "\"params\" is no object");
    }
    out->params = params;
    out->meta = json_member(params, "_meta");
    if (!out->meta.ptr) {
        return true;
    }
    if (json_type(out->meta) != JSON_OBJECT) {
        return fail(fault, RPC_INVALID_PARAMS, "\"_meta\" is no object");
    }
    out->progress_token = json_member(out->meta, "progressToken");
    if (out->progress_token.ptr && !is_id(out->progress_token)) {
        return fail(fault, RPC_INVALID_PARAMS, "\"progressToken\" is a text or a whole number, of at most 256 bytes");
    }
    version = json_member(out->meta, META_VERSION);
    if (version.ptr) {
        out->era = ERA_STATELESS;
        out->version = json_string(version, arena);
        if (!out->version.ptr) {
            return fail(fault, RPC_INVALID_PARAMS, "\"" META_VERSION "\" is no text");
        }
    }
    return true;
}

bool rpc_message_read(struct slice body, struct arena *arena, struct rpc_message *out, struct rpc_fault *fault)
{
    struct err err = {0};
    struct slice id;

    *out = (struct rpc_message){0};
    if (json_check(body, &json_limits_default, &err) != ERR_OK) {
        return fail(
            fault, RPC_PARSE_ERROR,
            arena_text(arena, arena_printf(arena, "%s%s%s", err.message, err.detail[0] ? ": " : "", err.detail)));
    }
    if (json_type(body) == JSON_ARRAY) {
        return fail(fault, RPC_INVALID_REQUEST, "one request is one message; batches are not taken");
    }
    if (json_type(body) != JSON_OBJECT) {
        return fail(fault, RPC_INVALID_REQUEST, "a message is an object");
    }
    id = json_member(body, "id");
    if (id.ptr && !is_id(id)) {
        return fail(fault, RPC_INVALID_REQUEST, "\"id\" is a text or a whole number, of at most 256 bytes");
    }
    out->id = id;
    if (!json_string_is(json_member(body, "jsonrpc"), "2.0")) {
        return fail(fault, RPC_INVALID_REQUEST, "\"jsonrpc\" is not \"2.0\"");
    }
    out->is_answer =
        !json_member(body, "method").ptr && (json_member(body, "result").ptr || json_member(body, "error").ptr);
    if (out->is_answer) {
        return true;
    }
    out->method = json_string(json_member(body, "method"), arena);
    if (!text_is_plain(out->method, METHOD_BYTES_MAX)) {
        return fail(fault, RPC_INVALID_REQUEST, "\"method\" is missing, or no short text");
    }
    return read_params(out, body, arena, fault);
}

const char *rpc_name_in_header(struct slice method)
{
    if (slice_is(method, "tools/call") || slice_is(method, "prompts/get")) {
        return "name";
    }
    if (slice_is(method, "tasks/get") || slice_is(method, "tasks/cancel") || slice_is(method, "tasks/update")) {
        return "taskId"; /* a method tasks/… that is none of these is unknown, whatever its headers */
    }
    return slice_is(method, "resources/read") ? "uri" : NULL;
}
