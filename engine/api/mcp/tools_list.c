/*
 * tools/list: what the namespace of the token offers, by name, in pages. The cursor is the name behind which a page
 * begins, so that a tool that is registered meanwhile moves no other into a page twice, and out of none.
 */
#include "api/mcp/mcp.h"

#include <string.h>

#define PAGE_TOOLS_MAX 100
#define PAGE_BYTES_MAX (1 << 20)
#define TOOL_FRAME_BYTES 2048 /* the bytes of a tool in the list, beside its description and its schema */
#define CURSOR_PREFIX "after:"

static void write_annotations(struct json_writer *w, const struct offer *offer, bool run_is_known)
{
    json_object_begin(w, "annotations");
    json_write_bool(w, "readOnlyHint", offer->reads);
    if (!offer->reads) {
        json_write_bool(w, "destructiveHint", offer->is_terminal);
        json_write_bool(w, "idempotentHint", offer->coalesces && run_is_known);
    }
    json_write_bool(w, "openWorldHint", offer->exposure.is_open_world);
    json_object_end(w);
}

static void write_saga_tool(struct json_writer *w, const struct saga_tool *tool)
{
    json_object_begin(w, NULL);
    json_write_text(w, "name", tool->name);
    json_write_text(w, "title", tool->title);
    json_write_text(w, "description", tool->description);
    json_write_raw(w, "inputSchema", slice_of(tool->input));
    json_write_raw(w, "annotations", slice_of(tool->annotations));
    json_object_end(w);
}

static void write_tool(struct json_writer *w, const struct offer *offer, bool run_is_known, struct arena *arena)
{
    struct slice description = json_member(offer->body, "description");

    json_object_begin(w, NULL);
    json_write_slice(w, "name", offer->name);
    if (offer->exposure.title.ptr) {
        json_write_slice(w, "title", offer->exposure.title);
    }
    if (description.ptr) {
        json_write_raw(w, "description", description);
    } else { /* a model has to read something */
        json_write_slice(w, "description",
                         arena_printf(arena, "%s %.*s, which has no description.",
                                      offer->kind == DEFINITION_SAGA ? "Starts" : "Calls",
                                      SLICE_ARG(offer->definition)));
    }
    mcp_write_input_schema(w, "inputSchema", offer, arena);
    if (offer->exposure.output.ptr) {
        mcp_write_output_schema(w, "outputSchema", offer->exposure.output);
    }
    write_annotations(w, offer, run_is_known);
    json_object_end(w);
}

bool mcp_offers(const struct mcp_exchange *exchange, const struct offer *offer)
{
    const struct grant *grant = exchange->request->grant;
    bool is_tool = offer->kind == DEFINITION_TOOL;

    /* Who was granted one saga begins no other. */
    return (!exchange->set.ptr || exposure_is_in_set(&offer->exposure, exchange->set)) &&
           (is_tool || !grant || !grant->has_saga) &&
           grant_has_tool(grant, offer->name, is_tool ? offer->definition : SLICE_NONE) &&
           (exchange->request->tools.count == 0 ||
            (is_tool && token_tools_have(&exchange->request->tools, offer->definition)));
}

bool mcp_offers_own(const struct mcp_exchange *exchange, const struct saga_tool *tool)
{
    const struct grant *grant = exchange->request->grant;

    /* A token that is bound to tools sees, of the work of sagas, the operations of its tools. */
    return (!tool->begins || !grant || !grant->has_saga) && grant_has_tool(grant, slice_of(tool->name), SLICE_NONE) &&
           (exchange->request->tools.count == 0 || tool->of_operations);
}

/* Does this request say for which run it is? Then a call that says the same is coalesced with its repeats. */
static bool run_is_known(const struct mcp_exchange *exchange)
{
    const struct api_request *request = exchange->request;
    const struct identity_sources sources = {.grant = request->grant,
                                             .meta = exchange->message.meta,
                                             .headers = request->exchange,
                                             .keys = &request->api->mcp_keys,
                                             .session_is_run = mcp_session_is_run(exchange)};
    struct identity identity;

    return identity_read(&sources, request->arena, &identity, NULL) && (identity.run.ptr || identity.has_saga);
}

static bool read_cursor(struct mcp_exchange *exchange, struct slice *after)
{
    struct slice cursor = json_member(exchange->message.params, "cursor");
    struct slice text = json_string(cursor, exchange->request->arena);

    if (!cursor.ptr) {
        return true;
    }
    if (!slice_starts_with(text, CURSOR_PREFIX)) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "\"cursor\" is none that this server has given out");
        return false;
    }
    *after = (struct slice){text.ptr + strlen(CURSOR_PREFIX), text.len - strlen(CURSOR_PREFIX)};
    return true;
}

/* Gathers what fits into one page: one offer at least. True: there are more. */
static bool page_of(const struct mcp_exchange *exchange, const struct offers *offers, size_t first,
                    const struct offer **page, size_t *count, size_t *bytes)
{
    *bytes = *count = 0;
    for (size_t i = first; i < offers->count; i++) {
        const struct offer *offer = &offers->items[i];
        size_t more = offer->body.len * NAME_GROWTH + TOOL_FRAME_BYTES;

        if (!mcp_offers(exchange, offer)) {
            continue;
        }
        if (*count == PAGE_TOOLS_MAX || (*count > 0 && *bytes + more > PAGE_BYTES_MAX)) {
            return true;
        }
        *bytes += more;
        page[(*count)++] = offer;
    }
    return false;
}

void mcp_list_tools(struct mcp_exchange *exchange)
{
    struct api_request *request = exchange->request;
    struct err err = {0};
    const struct offers *offers = engine_offers(request->api->engine, request->asked.namespace, &err);
    struct slice after = SLICE_NONE;
    bool known = run_is_known(exchange);
    struct mcp_result result;
    const struct offer *page[PAGE_TOOLS_MAX];
    size_t first = 0, count, bytes;

    if (!offers) {
        request_problem_of(request, &err, NULL);
        return;
    }
    if (!read_cursor(exchange, &after)) {
        return;
    }
    while (after.ptr && first < offers->count && slice_compare(offers->items[first].name, after) <= 0) {
        first++;
    }
    bool has_more = page_of(exchange, offers, first, page, &count, &bytes);

    mcp_result_begin(&result, exchange, bytes + saga_tool_count * TOOL_FRAME_BYTES);
    json_array_begin(&result.w, "tools");
    for (size_t i = 0; !after.ptr && i < saga_tool_count; i++) { /* the first page begins with them */
        if (mcp_offers_own(exchange, &saga_tools[i])) {
            write_saga_tool(&result.w, &saga_tools[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        write_tool(&result.w, page[i], known, request->arena);
    }
    json_array_end(&result.w);
    if (has_more) {
        json_write_slice(&result.w, "nextCursor",
                         arena_printf(request->arena, CURSOR_PREFIX "%.*s", SLICE_ARG(page[count - 1]->name)));
    }
    mcp_write_caching(&result);
    mcp_meta_begin(&result);
    mcp_meta_end(&result);
    mcp_result_send(&result);
}
