/* Reads operations. Calls, which make them, are in calls.c; the verbs of people about them are in changes.c. */
#include "api/request.h"

void handle_list_operations(struct api_request *request)
{
    struct engine_request *asked = &request->asked;

    if (!request_read_limit(request)) {
        return;
    }
    asked->in.operations.tool = request_query(request, "tool");
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

void handle_get_operation(struct api_request *request)
{
    if (request_read_key(request, &request->asked.in.operation.key)) {
        request_ask(request, engine_get_operation, request_on_answer);
    }
}
