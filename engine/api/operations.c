/* Reads operations. Calls, which make them, are in calls.c; the verbs of people about them are in changes.c. */
#include "api/request.h"

#include <string.h>

/* The sagas that the query names, or all of the token: the engine takes names with commas between, and no
 * beginnings. */
static bool read_tools(struct api_request *request, struct slice *out)
{
    const struct token_tools *tools = &request->tools;
    struct slice rest = request_query(request, "tool"), none = SLICE_NONE;
    struct buffer all;
    bool may = true;

    *out = rest;
    if (tools->count == 0) {
        return true;
    }
    buffer_init(&all, 65536);
    for (size_t i = 0; !rest.ptr && i < tools->count; i++) {
        may = may && !memchr(tools->items[i].ptr, '*', tools->items[i].len);
        buffer_printf(&all, "%s%.*s", i ? "," : "", SLICE_ARG(tools->items[i]));
    }
    while (rest.ptr) {
        const char *comma = memchr(rest.ptr, ',', rest.len);

        may = may && token_tools_have(tools, (struct slice){rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len});
        rest = comma ? (struct slice){comma + 1, rest.len - (size_t)(comma + 1 - rest.ptr)} : none;
    }
    if (!out->ptr) {
        *out = arena_slice(request->arena, buffer_slice(&all));
    }
    buffer_fini(&all);
    if (!may) {
        request_problem(request, ERR_FORBIDDEN,
                        "this token is bound to tools: name some of these in the query parameter \"tool\"");
    }
    return may;
}

void handle_list_operations(struct api_request *request)
{
    struct engine_request *asked = &request->asked;

    if (!request_read_limit(request) || !read_tools(request, &asked->in.operations.tool)) {
        return;
    }
    asked->in.operations.state = request_query(request, "state");
    asked->in.operations.run = request_query(request, "run");
    asked->in.operations.limit = request->limit;
    asked->in.operations.cursor = request_query(request, "cursor");
    request_ask(request, engine_list_operations, request_on_items);
}

bool request_read_key(struct api_request *request, struct op_key *out)
{
    if (!uuid_parse(request->params[0], &out->uuid)) {
        request_problem(request, ERR_NOT_FOUND, "there is no operation with the key \"%.*s\"",
                        SLICE_ARG(request->params[0]));
        return false;
    }
    return true;
}

/* In the words of the engine for one that does not exist. */
void request_hide_operation(struct api_request *request)
{
    struct engine_request *asked = &request->asked;

    if (asked->code == ERR_OK &&
        !token_tools_have(&request->tools, json_string(json_member(asked->answer, "tool"), request->arena))) {
        asked->code = err_set(&asked->err, ERR_NOT_FOUND, "there is no operation with this key");
        err_hint(&asked->err, "`sagactl operations` lists them");
    }
}

static void on_operation(struct engine_request *asked)
{
    request_hide_operation(container_of(asked, struct api_request, asked));
    request_on_answer(asked);
}

void handle_get_operation(struct api_request *request)
{
    if (request_read_key(request, &request->asked.in.operation.key)) {
        request_ask(request, engine_get_operation, on_operation);
    }
}
