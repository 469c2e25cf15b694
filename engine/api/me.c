/* Says who asks: the rights of the token, for the person who holds it. */
#include "api/request.h"

void handle_me(struct api_request *request)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 4096);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "name", request->asked.actor);
    json_write_slice(&w, "namespace", request->asked.namespace);
    json_write_text(&w, "role", role_name(request->role));
    json_write_instant(&w, "expires_at", request->token_expires_ms);
    json_object_end(&w);
    request_answer_json(request, 200, arena_slice(request->arena, buffer_slice(&out)));
    buffer_fini(&out);
}
