/*
 * Tasks, the extension io.modelcontextprotocol/tasks: a client that declares it with a call gets a task where others
 * are told to call again. The task is the operation under another name, so it is as durable as that, and nothing more
 * is kept. Its id holds a mark of the token or grant that made the call, or of the subject of its JWT: nobody else has
 * the task.
 *
 * Cancelling is a wish, and sagad does not follow it: an effect may be on its way.
 */
#include "api/mcp/mcp.h"

#include <string.h>

#define EXTENSION META_PREFIX "tasks"
#define MARK_BYTES 32
#define TTL_MS (24 * 60 * 60 * 1000) /* results are kept that long where a tool says nothing else */
#define ERROR_BYTES_MAX 4096

static bool takes_tasks(const struct mcp_exchange *exchange)
{
    struct slice capabilities = json_member(exchange->message.meta, META_PREFIX "clientCapabilities");

    return exchange->message.era == ERA_STATELESS && json_type(capabilities) == JSON_OBJECT &&
           json_type(json_member(json_member(capabilities, "extensions"), EXTENSION)) == JSON_OBJECT;
}

bool mcp_may_be_task(const struct mcp_exchange *exchange, struct slice operation)
{
    return takes_tasks(exchange) && json_type(json_member(operation, "key")) == JSON_STRING &&
           !json_string_is(json_member(operation, "state"), "pending");
}

/* --- the id of a task --- */

static void mark_of(const struct api_request *request, struct slice key, char out[MARK_BYTES + 1])
{
    const struct digest *secret = request->grant                        ? &request->grant->secret
                                  : request->has_token && !request->jwt ? &request->token
                                                                        : NULL;
    struct slice secret_bytes = secret ? (struct slice){(const char *)secret->bytes, sizeof(secret->bytes)} : SLICE("");
    /* A JWT lives for minutes, a task for hours: whoever renews the JWT still has the task. The tag keeps a subject
     * from being the bytes of somebody's secret. */
    struct slice fields[] = {key, request->jwt ? request->asked.actor : secret_bytes};
    struct digest digest =
        digest_fields(request->jwt ? "sagad mcp task of a subject" : "sagad mcp task", fields, COUNT_OF(fields));
    char hex[65];

    digest_hex(&digest, hex);
    slice_to_text(out, MARK_BYTES + 1, (struct slice){hex, MARK_BYTES});
}

static struct slice task_id(const struct api_request *request, struct slice key)
{
    char mark[MARK_BYTES + 1];

    mark_of(request, key, mark);
    return arena_printf(request->arena, "%.*s.%s", SLICE_ARG(key), mark);
}

/* The key of the task that a request names. SLICE_NONE: it was answered, because the request has no such task. */
static struct slice read_task(struct mcp_exchange *exchange)
{
    struct api_request *request = exchange->request;
    struct slice id = json_string(json_member(exchange->message.params, "taskId"), request->arena);
    struct slice key = {id.ptr, UUID_TEXT_BYTES - 1};

    if (!takes_tasks(exchange)) {
        mcp_fail_with(exchange, 400, RPC_CAPABILITY_MISSING, "this method is for clients that declare tasks",
                      SLICE("{\"requiredCapabilities\":{\"extensions\":{\"" EXTENSION "\":{}}}}"));
        return SLICE_NONE;
    }
    if (id.len != UUID_TEXT_BYTES + MARK_BYTES || !slice_equal(task_id(request, key), id) ||
        !uuid_parse(key, &request->asked.in.operation.key.uuid)) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "there is no task of this id");
        return SLICE_NONE;
    }
    return key;
}

/* --- what is answered --- */

static void write_task(struct json_writer *w, const struct api_request *request, struct slice operation,
                       const char *status, const char *message)
{
    struct slice key = json_string(json_member(operation, "key"), request->arena);
    struct slice created = json_member(operation, "created_at"), ended = json_member(operation, "ended_at");

    json_write_slice(w, "taskId", task_id(request, key));
    json_write_text(w, "status", status);
    if (message) {
        json_write_text(w, "statusMessage", message);
    }
    if (json_type(created) == JSON_STRING) {
        json_write_raw(w, "createdAt", created);
        json_write_raw(w, "lastUpdatedAt", json_type(ended) == JSON_STRING ? ended : created);
    } else {
        json_write_instant(w, "createdAt", loop_wall_ms(request->api->loop));
        json_write_instant(w, "lastUpdatedAt", loop_wall_ms(request->api->loop));
    }
    json_write_i64(w, "ttlMs", TTL_MS);
    json_write_i64(w, "pollIntervalMs", request->api->mcp_progress_ms);
}

void mcp_answer_task(struct mcp_exchange *exchange, struct slice operation)
{
    struct mcp_result result;

    exchange->result_type = "task";
    mcp_result_begin(&result, exchange, 0);
    write_task(&result.w, exchange->request, operation, "working", "under way");
    mcp_meta_begin(&result);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}

/* Is the tool one of another server, whose content is passed on as it is? */
static bool passes_content(const struct api_request *request, struct slice tool)
{
    struct err err = {0};
    const struct offers *offers = engine_offers(request->api->engine, request->asked.namespace, &err);

    for (size_t i = 0; offers && i < offers->count; i++) {
        const struct offer *offer = &offers->items[i];

        if (offer->kind == DEFINITION_TOOL && slice_equal(offer->definition, tool)) {
            return mcp_passes_content(offer);
        }
    }
    return false;
}

static void write_failure(struct json_writer *w, const struct api_request *request, struct slice operation)
{
    struct err err = {0};
    struct problem_more more = {.operation = operation};

    (void)err_set(&err, ERR_TOOL_FAILED, "the tool failed: it certainly did not happen");
    mcp_write_refusal(w, problem_text(&err, &more, request->arena));
}

static void on_task(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct mcp_exchange *exchange = request->state;
    struct slice operation = json_trim(asked->answer), state;
    struct mcp_result result;

    request_hide_operation(request);
    if (asked->code == ERR_NOT_FOUND) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "there is no task of this id");
        return;
    }
    if (request_failed(request)) {
        return;
    }
    if (json_type(json_member(operation, "args")) == JSON_NULL) { /* the result is no longer known either */
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "this task has expired");
        return;
    }
    state = json_string(json_member(operation, "state"), request->arena);
    mcp_result_begin(&result, exchange, operation.len * 8 + ERROR_BYTES_MAX);
    if (slice_is(state, "completed")) {
        struct slice given = json_member(operation, "result");

        exchange->passes_content = passes_content(request, json_string(json_member(operation, "tool"), request->arena));
        write_task(&result.w, request, operation, "completed", NULL);
        json_object_begin(&result.w, "result");
        mcp_write_given(&result.w, exchange, given.ptr ? json_trim(given) : SLICE("null"));
        json_write_bool(&result.w, "isError", false);
        json_object_end(&result.w);
    } else if (slice_is(state, "failed")) {
        write_task(&result.w, request, operation, "completed", NULL);
        json_object_begin(&result.w, "result");
        write_failure(&result.w, request, operation);
        json_object_end(&result.w);
    } else {
        write_task(&result.w, request, operation, "working", arena_text(request->arena, state));
    }
    mcp_meta_begin(&result);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}

/* --- the methods --- */

void mcp_get_task(struct mcp_exchange *exchange)
{
    if (read_task(exchange).ptr) {
        exchange->request->asked.in.operation.is_own = true; /* nobody else has the id of the task */
        request_ask(exchange->request, engine_get_operation, on_task);
    }
}

void mcp_note_task(struct mcp_exchange *exchange)
{
    struct mcp_result result;

    if (!read_task(exchange).ptr) {
        return;
    }
    mcp_result_begin(&result, exchange, 0);
    mcp_meta_begin(&result);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}
