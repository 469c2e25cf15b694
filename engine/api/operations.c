/* Operations, read only in this version. */
#include "api/request.h"

void handle_list_operations(struct api_request *request)
{
    struct engine_request *engine = &request->engine;

    if (!request_read_limit(request)) {
        return;
    }
    engine->in.operations.tool = request_query(request, "tool");
    engine->in.operations.state = request_query(request, "state");
    engine->in.operations.run = request_query(request, "run");
    engine->in.operations.limit = request->limit;
    engine->in.operations.cursor = request_query(request, "cursor");
    request_ask(request, engine_list_operations, request_on_items);
}

void handle_get_operation(struct api_request *request)
{
    if (!uuid_parse(request->params[0], &request->engine.in.operation.key.uuid)) {
        request_problem(request, ERR_NOT_FOUND, "there is no operation with the key \"%.*s\"",
                        SLICE_ARG(request->params[0]));
        return;
    }
    request_ask(request, engine_get_operation, request_on_answer);
}
