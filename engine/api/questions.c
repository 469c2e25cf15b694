/* What escalations and approvals have in common here: both are lists of what a person is asked, by number. */
#include <string.h>

#include "api/request.h"

#define STATUSES_MAX 8 /* as many as may be given at once */

static bool is_status(struct slice status, const char *known)
{
    while (*known) {
        size_t len = strcspn(known, " ");

        if (status.len == len && memcmp(status.ptr, known, len) == 0) {
            return true;
        }
        known += len + (known[len] == ' ');
    }
    return false;
}

static bool are_statuses(struct slice list, const char *known)
{
    for (size_t count = 0; count < STATUSES_MAX; count++) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;

        if (!is_status((struct slice){list.ptr, len}, known)) {
            return false;
        }
        if (!comma) {
            return true;
        }
        list = (struct slice){list.ptr + len + 1, list.len - len - 1};
    }
    return false;
}

void request_list_questions(struct api_request *request, struct engine_questions *in, const char *known,
                            void (*ask)(struct engine *, struct engine_request *))
{
    struct slice status = request_query(request, "status");
    bool all = status.ptr == NULL || slice_is(status, "all");

    if (!request_read_limit(request)) {
        return;
    }
    if (!all && !are_statuses(status, known)) {
        request_problem(
            request, ERR_MALFORMED,
            "the query parameter \"status\" is not \"all\", and not one or more of these, with commas between: %s",
            known);
        return;
    }
    in->number = 0;
    in->open_only = slice_is(status, "open");
    in->status = all ? SLICE_NONE : status;
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
