/*
 * tools/call: one call through the registry, as POST /v1/operations makes it. What the tool gave is the result, byte
 * for byte, also for a repeat; what sagad knows of it stands in `_meta`. Whatever is refused is a result with
 * `isError`, because a model reads results and no errors of the protocol.
 */
#include "api/mcp/mcp.h"

#include "base/id.h"

#define UNDER_WAY "under way: call again with the same arguments"

/* --- the answer --- */

/* A tool of another server may have given content of the protocol itself. */
static bool is_content(struct slice result)
{
    struct json_walk walk = json_walk(result);
    struct slice block;

    if (json_type(result) != JSON_ARRAY) {
        return false;
    }
    while (json_next_element(&walk, &block)) {
        if (json_type(json_member(block, "type")) != JSON_STRING) {
            return false;
        }
    }
    return true;
}

bool mcp_passes_content(const struct offer *offer)
{
    return json_member(offer->body, "mcp").ptr && !json_member(offer->body, "result").ptr;
}

void mcp_write_given(struct json_writer *w, const struct mcp_exchange *exchange, struct slice given)
{
    if (exchange->passes_content && is_content(given)) {
        json_write_raw(w, "content", given);
        return;
    }
    json_array_begin(w, "content");
    json_object_begin(w, NULL);
    json_write_text(w, "type", "text");
    json_write_slice(w, "text", given);
    json_object_end(w);
    json_array_end(w);
    if (exchange->message.era == ERA_STATELESS || json_type(given) == JSON_OBJECT) { /* before: objects only */
        json_write_raw(w, "structuredContent", given);
    }
}

static void answer(struct mcp_exchange *exchange)
{
    const struct engine_request *asked = &exchange->request->asked;
    struct slice result = json_member(asked->answer, "result");
    struct mcp_result out;

    result = result.ptr ? json_trim(result) : SLICE("null");
    mcp_result_begin(&out, exchange, result.len * 7);
    mcp_write_given(&out.w, exchange, result);
    json_write_bool(&out.w, "isError", false);
    mcp_meta_begin(&out);
    mcp_write_operation(&out, asked->answer, &asked->call);
    mcp_meta_end(&out);
    mcp_result_send(&out);
}

static void on_called(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct mcp_exchange *exchange = request->state;

    if (asked->code == ERR_OK && asked->call.going_on) {
        asked->call.operation = asked->answer;
        asked->code = ERR_IN_FLIGHT;
    }
    if (asked->code == ERR_IN_FLIGHT && mcp_may_be_task(exchange, asked->call.operation)) {
        mcp_answer_task(exchange, asked->call.operation);
        return;
    }
    if (asked->code == ERR_IN_FLIGHT) {
        (void)err_set(&asked->err, ERR_IN_FLIGHT, UNDER_WAY);
    }
    if (asked->code == ERR_OK) {
        answer(exchange);
    } else {
        mcp_refuse_asked(exchange);
    }
}

/* --- the call --- */

/* The arguments of the tool: without those that were for sagad. */
static struct slice own_arguments(const struct offer *offer, struct slice arguments, struct arena *arena)
{
    struct json_walk walk = json_walk(arguments);
    struct slice name_raw, value;
    struct json_writer w;
    struct buffer out;

    if (!arguments.ptr) {
        return SLICE("{}");
    }
    if (!(offer->takes_saga && json_member(arguments, "saga").ptr) &&
        !(offer->takes_step && json_member(arguments, "step").ptr) &&
        !(offer->takes_scope && json_member(arguments, "scope").ptr)) {
        return arguments;
    }
    buffer_init(&out, arguments.len * NAME_GROWTH);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);

        if (!(offer->takes_saga && slice_is(name, "saga")) && !(offer->takes_step && slice_is(name, "step")) &&
            !(offer->takes_scope && slice_is(name, "scope"))) {
            json_write_raw(&w, arena_text(arena, name), value);
        }
    }
    json_object_end(&w);
    CHECK(!out.overflow);
    struct slice text = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

/* A read changes nothing, so it needs nothing that tells it from another one. */
static struct slice run_of_its_own(struct arena *arena)
{
    uint8_t bytes[16] = {0};
    struct digest digest;
    char hex[65];

    CHECK(random_bytes(bytes, sizeof(bytes)));
    digest = digest_sha256((struct slice){(const char *)bytes, sizeof(bytes)});
    digest_hex(&digest, hex);
    return arena_printf(arena, "mcp-read-%.32s", hex);
}

static bool name_the_run(const struct offer *offer, struct identity *identity, struct arena *arena, struct err *err)
{
    if (identity->has_saga || identity->run.ptr) {
        return true;
    }
    if (offer->reads) {
        identity->run = run_of_its_own(arena);
        return true;
    }
    (void)err_set(err, ERR_INVALID,
                  "this call does not say what it is for, so a repeat of it could not be told from a "
                  "new call; nothing was done");
    err_hint(err,
             "let the host send _meta \"sagad/run\" or the header Saga-Run, or open a saga with saga_open and pass "
             "its handle as the argument \"saga\"");
    return false;
}

static bool read_arguments(struct mcp_exchange *exchange, struct slice *out)
{
    *out = json_member(exchange->message.params, "arguments");
    if (out->ptr && json_type(*out) != JSON_OBJECT) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "\"arguments\" is no object");
        return false;
    }
    return true;
}

static void call(struct mcp_exchange *exchange, const struct offer *offer, struct slice arguments)
{
    struct api_request *request = exchange->request;
    const struct identity_sources sources = {.grant = request->grant,
                                             .meta = exchange->message.meta,
                                             .headers = request->exchange,
                                             .arguments = arguments,
                                             .takes_saga = offer->takes_saga,
                                             .takes_step = offer->takes_step,
                                             .takes_scope = offer->takes_scope,
                                             .keys = &request->api->mcp_keys,
                                             .session_is_run = mcp_session_is_run(exchange)};
    struct engine_request *asked = &request->asked;
    struct identity identity;
    struct err err = {0};

    if (!identity_read(&sources, request->arena, &identity, &err) ||
        !name_the_run(offer, &identity, request->arena, &err)) {
        mcp_refuse(exchange, &err, NULL);
        return;
    }
    if (!mcp_wait(exchange)) {
        return;
    }
    exchange->passes_content = mcp_passes_content(offer);
    asked->in.call.saga = identity.has_saga ? identity.saga : (struct saga_id){0};
    asked->in.call.run = identity.has_saga ? SLICE_NONE : arena_slice(request->arena, identity.run);
    asked->in.call.tool = arena_slice(request->arena, offer->definition);
    asked->in.call.step = identity.step;
    asked->in.call.scope = identity.scope;
    asked->in.call.conversation_turn = identity.turn;
    asked->in.call.emission = identity.emission;
    asked->in.call.args = own_arguments(offer, arguments, request->arena);
    asked->in.call.trace = request_trace(request, exchange->message.meta);
    asked->in.call.wait_ms = request->wait_ms;
    request_ask(request, engine_call, on_called);
}

void mcp_call_tool(struct mcp_exchange *exchange)
{
    struct api_request *request = exchange->request;
    struct slice name = json_string(json_member(exchange->message.params, "name"), request->arena), arguments;
    const struct offers *offers;
    const struct offer *offer;
    struct err err = {0};

    if (!name.ptr) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "\"name\" is missing, or no text");
        return;
    }
    if (!read_arguments(exchange, &arguments)) {
        return;
    }
    for (size_t i = 0; i < saga_tool_count; i++) {
        if (slice_is(name, saga_tools[i].name) && mcp_offers_own(exchange, &saga_tools[i])) {
            saga_tools[i].perform(exchange, arguments);
            return;
        }
    }
    offers = engine_offers(request->api->engine, request->asked.namespace, &err);
    if (!offers) {
        request_problem_of(request, &err, NULL);
        return;
    }
    offer = offers_find(offers, name);
    if (!offer || !mcp_offers(exchange, offer)) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "there is no tool of this name; tools/list says which there are");
        return;
    }
    if (offer->kind == DEFINITION_SAGA) {
        mcp_start_saga(exchange, offer, arguments);
        return;
    }
    call(exchange, offer, arguments);
}
