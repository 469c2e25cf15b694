/* Previews what each verb would lead to, before a person uses it. */
#include <string.h>

#include "api/request.h"

void handle_preview_saga(struct api_request *request)
{
    struct saga_id id;

    if (request_read_saga_id(request, &id)) {
        memset(&request->asked.in, 0, sizeof(request->asked.in)); /* the search for the business id came before */
        request->asked.in.preview.id = id;
        request_ask(request, engine_preview, request_on_answer);
    }
}

void handle_preview_operation(struct api_request *request)
{
    if (request_read_key(request, &request->asked.in.preview.key)) {
        request_ask(request, engine_preview, request_on_answer);
    }
}

void handle_preview_escalation(struct api_request *request)
{
    if (request_read_number(request, "escalation", &request->asked.in.preview.escalation)) {
        request_ask(request, engine_preview, request_on_answer);
    }
}
