/*
 * POST /mcp: sagad as a server of the Model Context Protocol. One message comes, one answer leaves; nothing is kept
 * between two requests. What a method does is in files of its own.
 */
#include "api/mcp/fixtures.h"
#include "api/mcp/mcp.h"

#include <string.h>
#include <strings.h>

static const struct method {
    const char *name;
    bool handshake, stateless; /* the revisions that have it */
    void (*perform)(struct mcp_exchange *exchange);
} methods[] = {
    {"tools/call", true, true, mcp_call_tool},        {"tools/list", true, true, mcp_list_tools},
    {"initialize", true, false, mcp_initialize},      {"ping", true, false, mcp_ping},
    {"tasks/get", false, true, mcp_get_task},         {"tasks/cancel", false, true, mcp_note_task},
    {"tasks/update", false, true, mcp_note_task},     {"server/discover", false, true, mcp_discover},
    {"resources/list", true, true, mcp_list_nothing}, {"resources/templates/list", true, true, mcp_list_nothing},
    {"prompts/list", true, true, mcp_list_nothing},   {"resources/read", true, true, mcp_read_nothing},
    {"prompts/get", true, true, mcp_read_nothing},
};

const char *mcp_method(size_t i, bool *is_stateless)
{
    *is_stateless = i < COUNT_OF(methods) && !methods[i].handshake;
    return i < COUNT_OF(methods) ? methods[i].name : NULL;
}

static const struct method *method_find(const struct rpc_message *message)
{
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        if (slice_is(message->method, methods[i].name) &&
            (message->era == ERA_STATELESS ? methods[i].stateless : methods[i].handshake)) {
            return &methods[i];
        }
    }
    return NULL;
}

/* --- web pages --- */

static bool same_text(struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static bool is_listed(struct slice origins, struct slice origin)
{
    while (origins.len > 0) {
        const char *comma = memchr(origins.ptr, ',', origins.len);
        struct slice one = {origins.ptr, comma ? (size_t)(comma - origins.ptr) : origins.len};

        if (same_text(slice_trim(one), origin)) {
            return true;
        }
        origins = comma ? (struct slice){comma + 1, origins.len - one.len - 1} : SLICE_NONE;
    }
    return false;
}

/* A browser sends Origin. A page may use this endpoint only where the settings name where it comes from: not even one
 * of this address may without, because behind a proxy other pages may stand there. */
static bool origin_is_good(const struct api_request *request)
{
    const struct http_exchange *http = request->exchange;
    struct slice origin = http_exchange_header(http, "origin");

    return !origin.ptr ||
           (http_exchange_header_count(http, "origin") == 1 && is_listed(request->api->mcp_origins, origin));
}

/* --- the way of a message --- */

static void perform(struct mcp_exchange *exchange)
{
    const struct method *method = method_find(&exchange->message);

    if (mcp_fixtures.answer && mcp_fixtures.answer(exchange)) {
        return;
    }
    if (!method) {
        mcp_fail(exchange, exchange->message.era == ERA_STATELESS ? 404 : 200, RPC_METHOD_NOT_FOUND,
                 "this method is not known here");
        return;
    }
    method->perform(exchange);
}

/* A set that no tool names is none: a host that misspells it must not see an empty list. */
static bool read_set(struct mcp_exchange *exchange)
{
    struct api_request *request = exchange->request;
    struct err err = {0};
    const struct offers *offers;

    if (strcmp(request->route->pattern, "/mcp/t/{set}") != 0) {
        return true;
    }
    offers = engine_offers(request->api->engine, request->asked.namespace, &err);
    if (!offers) {
        request_problem_of(request, &err, NULL);
        return false;
    }
    exchange->set = request->params[0];
    for (size_t i = 0; i < offers->count; i++) {
        if (exposure_is_in_set(&offers->items[i].exposure, exchange->set)) {
            return true;
        }
    }
    request_problem(request, ERR_NOT_FOUND, "no tool that is offered names this set in \"expose\"");
    return false;
}

void handle_mcp(struct api_request *request)
{
    struct mcp_exchange *exchange = arena_alloc(request->arena, sizeof(*exchange));
    struct rpc_fault fault;

    exchange->request = request;
    request->state = exchange;
    if (!origin_is_good(request)) {
        request_problem(request, ERR_FORBIDDEN,
                        "this request comes from a web page; --mcp-origins lists those that may");
        return;
    }
    if (!read_set(exchange)) {
        return;
    }
    if (!rpc_message_read(request->body, request->arena, &exchange->message, &fault)) {
        mcp_fail(exchange, 400, fault.code, fault.message);
        return;
    }
    if (!mcp_revision_holds(exchange)) {
        return;
    }
    if (!exchange->message.id.ptr ||
        exchange->message.is_answer) { /* a notification: none that we know asks for more */
        request_answer_json(request, 202, SLICE_NONE);
        return;
    }
    perform(exchange);
}
