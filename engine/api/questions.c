/* What escalations and approvals have in common here: both are lists of what a person is asked, by number. */
#include "api/request.h"

void request_list_questions(struct api_request *request, struct engine_questions *in,
                            void (*ask)(struct engine *, struct engine_request *))
{
    struct slice status = request_query(request, "status");

    if (!request_read_limit(request)) {
        return;
    }
    if (status.ptr && !slice_is(status, "open")) {
        request_problem(request, ERR_MALFORMED,
                        "the query parameter \"status\" is not \"open\", the only one there is; leave it out for all");
        return;
    }
    in->number = 0;
    in->open_only = status.ptr != NULL;
    in->limit = request->limit;
    in->cursor = request_query(request, "cursor");
    request_ask(request, ask, request_on_items);
}

bool request_read_number(struct api_request *request, const char *what, uint64_t *out)
{
    int64_t number = 0;

    if (!slice_to_i64(request->params[0], &number) || number < 1) {
        request_problem(request, ERR_NOT_FOUND, "there is no %s \"%.*s\"", what, SLICE_ARG(request->params[0]));
        return false;
    }
    *out = (uint64_t)number;
    return true;
}
