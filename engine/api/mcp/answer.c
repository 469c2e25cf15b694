/* Results and errors as JSON-RPC messages. A result of revision 2026-07-28 says that it is complete, and who made it.
 */
#include "api/mcp/mcp.h"

#include "base/instant.h"

#define FRAME_BYTES 4096
#define LIST_TTL_MS 60000

void mcp_result_begin(struct mcp_result *result, const struct mcp_exchange *exchange, size_t bytes)
{
    result->exchange = exchange;
    buffer_init(&result->out, bytes + FRAME_BYTES);
    json_writer_init(&result->w, &result->out);
    json_object_begin(&result->w, NULL);
    json_write_text(&result->w, "jsonrpc", "2.0");
    json_write_raw(&result->w, "id", exchange->message.id);
    json_object_begin(&result->w, "result");
    if (exchange->message.era == ERA_STATELESS) {
        json_write_text(&result->w, "resultType", exchange->result_type ? exchange->result_type : "complete");
    }
}

void mcp_write_server_info(struct json_writer *w, const char *name, const struct api *api)
{
    json_object_begin(w, name);
    json_write_text(w, "name", "sagad");
    json_write_text(w, "title", "sagad: each call is done once");
    json_write_text(w, "version", api->version);
    json_object_end(w);
}

/* What is offered depends on the token, and changes when somebody registers a definition. */
void mcp_write_caching(struct mcp_result *result)
{
    if (result->exchange->message.era == ERA_STATELESS) {
        json_write_i64(&result->w, "ttlMs", LIST_TTL_MS);
        json_write_text(&result->w, "cacheScope", "private");
    }
}

void mcp_meta_begin(struct mcp_result *result)
{
    json_object_begin(&result->w, "_meta");
    if (result->exchange->message.era == ERA_STATELESS) {
        mcp_write_server_info(&result->w, META_PREFIX "serverInfo", result->exchange->request->api);
    }
}

void mcp_meta_end(struct mcp_result *result)
{
    json_object_end(&result->w);
}

void mcp_result_send(struct mcp_result *result)
{
    struct mcp_exchange *exchange = result->exchange->request->state;

    json_object_end(&result->w);
    json_object_end(&result->w);
    CHECK(!result->out.overflow);
    struct slice text = arena_slice(exchange->request->arena, buffer_slice(&result->out));

    buffer_fini(&result->out);
    mcp_send(exchange, 200, text);
}

void mcp_fail_with(struct mcp_exchange *exchange, int http_status, enum rpc_code code, const char *message,
                   struct slice data)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, FRAME_BYTES + data.len);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "jsonrpc", "2.0");
    json_write_raw(&w, "id", exchange->message.id); /* null where none could be read */
    json_object_begin(&w, "error");
    json_write_i64(&w, "code", code);
    json_write_text(&w, "message", message);
    if (data.ptr) {
        json_write_raw(&w, "data", data);
    }
    json_object_end(&w);
    json_object_end(&w);
    struct slice text = arena_slice(exchange->request->arena, buffer_slice(&out));

    buffer_fini(&out);
    mcp_send(exchange, http_status, text);
}

void mcp_fail(struct mcp_exchange *exchange, int http_status, enum rpc_code code, const char *message)
{
    mcp_fail_with(exchange, http_status, code, message, SLICE_NONE);
}

void mcp_write_operation(struct mcp_result *result, struct slice operation, const struct call_result *call)
{
    struct json_writer *w = &result->w;

    if (!operation.ptr) {
        return;
    }
    json_write_raw(w, "sagad/operation", json_member(operation, "key"));
    json_write_raw(w, "sagad/state", json_member(operation, "state"));
    json_write_bool(w, "sagad/replayed", call->replayed);
    if (call->replayed && call->first_ms > 0) {
        json_write_instant(w, "sagad/first-at", call->first_ms);
    }
}

void mcp_write_refusal(struct json_writer *w, struct slice problem)
{
    json_array_begin(w, "content");
    json_object_begin(w, NULL);
    json_write_text(w, "type", "text");
    json_write_raw(w, "text", json_member(problem, "detail"));
    json_object_end(w);
    json_array_end(w);
    json_write_raw(w, "structuredContent", problem);
    json_write_bool(w, "isError", true);
}

void mcp_refuse(struct mcp_exchange *exchange, const struct err *err, const struct problem_more *more)
{
    struct slice problem = problem_text(err, more, exchange->request->arena);
    struct mcp_result result;

    mcp_result_begin(&result, exchange, problem.len * 2);
    mcp_write_refusal(&result.w, problem);
    mcp_meta_begin(&result);
    mcp_write_operation(&result, exchange->request->asked.call.operation, &exchange->request->asked.call);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}

void mcp_refuse_asked(struct mcp_exchange *exchange)
{
    struct engine_request *asked = &exchange->request->asked;
    const struct problem_more more = request_problem_more(exchange->request);

    asked->err.code = asked->code;
    if (asked->code == ERR_TIMEOUT && exchange->request->api->stopping) {
        (void)err_set(&asked->err, ERR_STOPPING, "this engine is stopping; what is under way goes on without it");
        err_hint(&asked->err, "make the same call again: it waits for what is under way");
    }
    mcp_refuse(exchange, &asked->err, &more);
}
