/* Lists approvals for people. The answer to one is a verb (changes.c). */
#include "api/request.h"

void handle_list_approvals(struct api_request *request)
{
    request_list_questions(request, &request->asked.in.approvals, "open approved refused expired cancelled",
                           engine_get_approvals);
}

void handle_get_approval(struct api_request *request)
{
    if (request_read_number(request, "approval", &request->asked.in.approvals.number)) {
        request_ask(request, engine_get_approvals, request_on_answer);
    }
}
