/* Says who asks: the rights of the token, for the person who holds it. */
#include "api/request.h"

/* The namespaces that a request with this token may name. */
static void write_namespaces(struct json_writer *w, const struct api_request *request)
{
    const struct token *token = request_token(request);

    json_array_begin(w, "namespaces");
    for (size_t i = 0; token && i < token->namespace_count; i++) {
        json_write_slice(w, NULL, token->namespaces[i]);
    }
    if (!token) {
        json_write_slice(w, NULL, request->asked.namespace);
    }
    json_array_end(w);
}

void handle_me(struct api_request *request)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 65536);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "name", request->asked.actor);
    json_write_slice(&w, "namespace", request->asked.namespace);
    write_namespaces(&w, request);
    json_write_text(&w, "role", role_name(request->role));
    json_write_instant(&w, "expires_at", request->token_expires_ms);
    json_object_end(&w);
    request_answer_json(request, 200, arena_slice(request->arena, buffer_slice(&out)));
    buffer_fini(&out);
}
