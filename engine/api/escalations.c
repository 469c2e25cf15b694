/* Lists escalations for people. The answer to one is a verb (changes.c). */
#include "api/request.h"

void handle_list_escalations(struct api_request *request)
{
    request_list_questions(request, &request->asked.in.escalations, "open resolved", engine_get_escalations);
}

void handle_get_escalation(struct api_request *request)
{
    if (request_read_number(request, "escalation", &request->asked.in.escalations.number)) {
        request_ask(request, engine_get_escalations, request_on_answer);
    }
}
