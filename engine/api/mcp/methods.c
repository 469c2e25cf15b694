/* The methods that ask for no tool. */
#include "api/mcp/mcp.h"

#define INSTRUCTIONS                                                                                                   \
    "Calls go through sagad, which does each of them once: a repeat of a call gets what the first one got. When a "    \
    "result says that the call is under way, make the same call again with the same arguments. When a call is "        \
    "refused, do what its text says; do not work around it with another tool."

/* Whatever is answered has to be declared, also the lists that are empty. */
static void write_capabilities(struct json_writer *w, enum rpc_era era)
{
    static const char *const declared[] = {"tools", "resources", "prompts"};

    json_object_begin(w, "capabilities");
    for (size_t i = 0; i < COUNT_OF(declared); i++) {
        json_object_begin(w, declared[i]);
        json_object_end(w);
    }
    if (era == ERA_STATELESS) {
        json_write_raw(w, "extensions", SLICE("{\"" META_PREFIX "tasks\":{}}"));
    }
    json_object_end(w);
}

bool mcp_session_is_run(const struct mcp_exchange *exchange)
{
    return exchange->request->api->mcp_session_run && exchange->message.era == ERA_HANDSHAKE;
}

/* Nothing is kept of a session: its id is a name for the run, and whoever sends it back has that run. */
static void put_session_id(struct mcp_exchange *exchange)
{
    struct digest random;
    char hex[65];

    CHECK(random_bytes(random.bytes, sizeof(random.bytes)));
    digest_hex(&random, hex);
    http_answer_header(exchange->request->exchange, "Mcp-Session-Id",
                       arena_printf(exchange->request->arena, "%.32s", hex));
}

void mcp_initialize(struct mcp_exchange *exchange)
{
    struct slice asked =
        json_string(json_member(exchange->message.params, "protocolVersion"), exchange->request->arena);
    struct mcp_result result;

    if (!asked.ptr) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "\"protocolVersion\" is missing, or no text");
        return;
    }
    if (mcp_session_is_run(exchange)) {
        put_session_id(exchange);
    }
    mcp_result_begin(&result, exchange, 0);
    json_write_slice(&result.w, "protocolVersion", mcp_version_is_known(asked) ? asked : SLICE(MCP_VERSION_HANDSHAKE));
    write_capabilities(&result.w, exchange->message.era);
    mcp_write_server_info(&result.w, "serverInfo", exchange->request->api);
    json_write_text(&result.w, "instructions", INSTRUCTIONS);
    mcp_result_send(&result);
}

void mcp_ping(struct mcp_exchange *exchange)
{
    struct mcp_result result;

    mcp_result_begin(&result, exchange, 0);
    mcp_result_send(&result);
}

void mcp_discover(struct mcp_exchange *exchange)
{
    struct mcp_result result;

    mcp_result_begin(&result, exchange, 0);
    json_array_begin(&result.w, "supportedVersions");
    json_write_text(&result.w, NULL, MCP_VERSION_STATELESS);
    json_write_text(&result.w, NULL, MCP_VERSION_HANDSHAKE);
    json_array_end(&result.w);
    write_capabilities(&result.w, exchange->message.era);
    json_write_text(&result.w, "instructions", INSTRUCTIONS);
    mcp_write_caching(&result);
    mcp_meta_begin(&result);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}

void mcp_list_nothing(struct mcp_exchange *exchange)
{
    struct slice method = exchange->message.method;
    struct mcp_result result;

    mcp_result_begin(&result, exchange, 0);
    json_array_begin(&result.w, slice_is(method, "prompts/list")     ? "prompts"
                                : slice_is(method, "resources/list") ? "resources"
                                                                     : "resourceTemplates");
    json_array_end(&result.w);
    mcp_write_caching(&result);
    mcp_meta_begin(&result);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}

void mcp_read_nothing(struct mcp_exchange *exchange)
{
    struct slice uri = json_member(exchange->message.params, "uri");
    struct slice data = uri.ptr ? arena_printf(exchange->request->arena, "{\"uri\":%.*s}", SLICE_ARG(uri)) : SLICE_NONE;

    mcp_fail_with(exchange, 200, RPC_INVALID_PARAMS, "this server has tools only: no resources and no prompts", data);
}
