/* Registers and reads definitions and tools. */
#include "api/request.h"

static void on_defined(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    request_answer_json(request, 200, arena_printf(request->arena, "{\"items\":%.*s}", SLICE_ARG(asked->answer)));
}

/* Where the token may register, too: the namespaces with which it may share. */
static void note_namespaces(struct api_request *request)
{
    const struct token *token = request_token(request);
    struct slice *namespaces;

    if (!token || token->role < ROLE_ADMIN) {
        return;
    }
    namespaces = arena_array(request->arena, token->namespace_count, sizeof(*namespaces));
    for (size_t i = 0; i < token->namespace_count; i++) {
        namespaces[i] = arena_slice(request->arena, token->namespaces[i]);
    }
    request->asked.in.define.namespaces = namespaces;
    request->asked.in.define.namespace_count = token->namespace_count;
    request->asked.in.define.everywhere = slice_is(token->namespace, "*");
}

void handle_define(struct api_request *request)
{
    struct slice dry_run = request_query(request, "dry_run");

    if (dry_run.ptr && !slice_is(dry_run, "true") && !slice_is(dry_run, "false")) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"dry_run\" is true or false");
        return;
    }
    request->asked.in.define.document = request->body;
    note_namespaces(request);
    request->asked.in.define.dry_run = slice_is(dry_run, "true");
    if (request->asked.in.define.dry_run) {
        request->asked.by = (struct act_by){0}; /* it changes nothing */
    }
    request_ask(request, engine_define, on_defined);
}

/*
 * The engine keeps definitions in memory and gives all of a namespace, by name; the page is cut here. The cursor is the
 * number of items before it, which is good enough for a list that changes by a person's hand.
 */
static void on_list(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);
    uint64_t skip = (uint64_t)(uintptr_t)request->state;
    struct json_walk walk;
    struct slice item, from = SLICE_NONE, to = SLICE_NONE;
    uint64_t n = 0;

    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    walk = json_walk(asked->answer);
    while (n < skip + request->limit && json_next_element(&walk, &item)) {
        if (n++ >= skip) {
            from = from.ptr ? from : item;
            to = item;
        }
    }
    bool more = json_next_element(&walk, &item);
    struct slice items = from.ptr ? (struct slice){from.ptr, (size_t)(to.ptr + to.len - from.ptr)} : SLICE("");

    request_answer_items(request, arena_printf(request->arena, "[%.*s]", SLICE_ARG(items)),
                         more ? arena_printf(request->arena, "%llu", (unsigned long long)n) : SLICE_NONE);
}

static void get(struct api_request *request, enum definition_kind kind)
{
    struct engine_request *asked = &request->asked;
    uint64_t version = 0, skip = 0;

    asked->in.definitions.kind = kind;
    asked->in.definitions.name = request->params[0];
    if (request->params[0].ptr) {
        if (request_read_count(request, "version", 1, &version)) {
            asked->in.definitions.version = version > INT32_MAX ? INT32_MAX : (uint32_t)version;
            request_ask(request, engine_get_definitions, request_on_answer);
        }
    } else if (request_read_limit(request) && request_read_count(request, "cursor", 0, &skip)) {
        request->state = (void *)(uintptr_t)skip;
        request_ask(request, engine_get_definitions, on_list);
    }
}

void handle_get_definitions(struct api_request *request)
{
    get(request, DEFINITION_SAGA);
}

void handle_get_proof(struct api_request *request)
{
    struct engine_request *asked = &request->asked;
    uint64_t version = 0;

    if (request_read_count(request, "version", 1, &version)) {
        asked->in.definitions.kind = DEFINITION_SAGA;
        asked->in.definitions.name = request->params[0];
        asked->in.definitions.version = version > INT32_MAX ? INT32_MAX : (uint32_t)version;
        request_ask(request, engine_prove, request_on_answer);
    }
}

void handle_get_tools(struct api_request *request)
{
    get(request, DEFINITION_TOOL);
}
