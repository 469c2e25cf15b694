/* POST, GET and DELETE /v1/grants: what a host hands to an agent. The secret is in the answer to POST, once. */
#include "api/grant.h"

#include "api/mcp/mcp.h"
#include "base/instant.h"
#include "base/utf8.h"

#define TEXT_BYTES_MAX 256 /* the bytes of a run and of a scope, as in a call */
#define TURN_BYTES_MAX 128
#define TOOLS_MAX 100
#define LIFE_MS (INT64_C(24) * 3600 * 1000) /* where nobody says how long */
#define LIFE_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

struct grant_body {
    struct slice run, saga, tools, scope, turn, expires_at; /* JSON */
    int64_t expires_ms;
    struct saga_id saga_id;
    const struct offers *offers;
    char token[GRANT_TOKEN_BYTES];
};

/* --- reading --- */

static void check_text(const char *name, struct slice value, size_t bytes_max, bool is_plain, struct arena *arena,
                       struct faults *faults)
{
    struct slice text = json_string(value, arena);

    if (json_type(value) == JSON_STRING &&
        (is_plain ? !text_is_plain(text, bytes_max) : text.len > bytes_max || !text_is_utf8(text))) {
        faults_add(faults, arena_printf(arena, "/%s", name), "at most %zu bytes%s", bytes_max,
                   is_plain ? ", at least one, and no control characters" : "");
    }
}

static void check_purpose(struct grant_body *body, struct arena *arena, struct faults *faults)
{
    struct slice saga = json_string(body->saga, arena);

    if ((body->run.ptr != NULL) == (body->saga.ptr != NULL)) {
        faults_add(faults, SLICE(""), "a grant is for a `run` or for a `saga`: it has exactly one of them");
    }
    if (json_type(body->saga) == JSON_STRING && !uuid_parse(saga, &body->saga_id.uuid)) {
        faults_add(faults, SLICE("/saga"), "not the id of a saga; `sagactl list --id` finds one by its business id");
    }
    check_text("run", body->run, TEXT_BYTES_MAX, true, arena, faults);
    check_text("scope", body->scope, TEXT_BYTES_MAX, false, arena, faults);
    check_text("turn", body->turn, TURN_BYTES_MAX, true, arena, faults);
}

static bool is_offered(const struct offers *offers, struct slice name)
{
    for (size_t i = 0; i < saga_tool_count; i++) {
        if (slice_is(name, saga_tools[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < offers->count; i++) {
        const struct offer *offer = &offers->items[i];

        if (slice_equal(name, offer->name) ||
            (offer->kind == DEFINITION_TOOL && slice_equal(name, offer->definition))) {
            return true;
        }
    }
    return false;
}

static void check_tools(const struct grant_body *body, struct arena *arena, struct faults *faults)
{
    struct json_walk walk = json_walk(body->tools);
    struct slice item;
    size_t i = 0;

    if (json_type(body->tools) != JSON_ARRAY) {
        return;
    }
    if (json_count(body->tools) == 0 || json_count(body->tools) > TOOLS_MAX) {
        faults_add(faults, SLICE("/tools"), "1 to %d names of tools", TOOLS_MAX);
        return;
    }
    while (json_next_element(&walk, &item)) {
        struct slice name = json_string(item, arena);

        if (!name.ptr || !is_offered(body->offers, name)) {
            faults_add(faults, arena_printf(arena, "/tools/%zu", i),
                       "no tool of this name is offered to agents; `sagactl tools` lists the tools");
        }
        i++;
    }
}

static void check_expiry(const struct api_request *request, struct grant_body *body, struct faults *faults)
{
    int64_t now_ms = loop_wall_ms(request->api->loop), own_ms = request->token_expires_ms;

    body->expires_ms = now_ms + LIFE_MS;
    if (own_ms && own_ms < body->expires_ms) {
        body->expires_ms = own_ms;
    }
    if (json_type(body->expires_at) != JSON_STRING) {
        return;
    }
    if (!instant_parse(json_string(body->expires_at, request->arena), &body->expires_ms)) {
        faults_add(faults, SLICE("/expires_at"), "not an RFC 3339 instant such as 2027-01-31T00:00:00Z");
    } else if (body->expires_ms <= now_ms || body->expires_ms > now_ms + LIFE_MS_MAX) {
        faults_add(faults, SLICE("/expires_at"), "a grant ends in the future, and within 366 days");
    } else if (own_ms && body->expires_ms > own_ms) {
        faults_add(faults, SLICE("/expires_at"), "a grant ends no later than the token that makes it");
    }
}

static void check_body(struct api_request *request, struct faults *faults)
{
    struct grant_body *body = request->state;

    check_purpose(body, request->arena, faults);
    check_tools(body, request->arena, faults);
    check_expiry(request, body, faults);
}

/* --- what is stored --- */

static void put_raw(struct json_writer *w, const char *name, struct slice value)
{
    if (value.ptr) {
        json_write_raw(w, name, value);
    }
}

static struct slice stored_body(struct api_request *request, const struct grant_body *body)
{
    char hex[65], id[UUID_TEXT_BYTES];
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, request->body.len + 4096);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "issuer", request->asked.actor);
    if (request->has_token) {
        digest_hex(&request->token, hex);
        json_write_text(&w, "issuer_token", hex);
    }
    if (request->jwt) { /* in no tokens file: what is known of it is when it ends, and whose it was */
        json_write_text(&w, "issuer_jwt", request->api->oidc.issuer.url);
    }
    put_raw(&w, "run", body->run);
    if (body->saga.ptr) {
        uuid_text(&body->saga_id.uuid, id);
        json_write_text(&w, "saga", id);
    }
    put_raw(&w, "tools", body->tools);
    put_raw(&w, "scope", body->scope);
    put_raw(&w, "turn", body->turn);
    json_object_end(&w);
    CHECK(!out.overflow);
    struct slice text = arena_slice(request->arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

/* --- what is shown --- */

static const char *status_of(const struct api *api, const struct engine_grant *grant)
{
    return grant->revoked_ms                              ? "revoked"
           : grant->expires_ms <= loop_wall_ms(api->loop) ? "expired"
           : !grant_has_issuer(api, grant)                ? "issuer-gone"
                                                          : "in-force";
}

static void write_member(struct json_writer *w, const char *name, struct slice body)
{
    struct slice value = json_member(body, name);

    json_write_raw(w, name, value.ptr ? value : SLICE("null"));
}

static void write_grant(struct json_writer *w, const struct api *api, const struct engine_grant *grant)
{
    static const char *const members[] = {"run", "saga", "tools", "scope", "turn", "issuer"};
    char id[UUID_TEXT_BYTES];

    uuid_text(&grant->id, id);
    json_write_text(w, "id", id);
    json_write_text(w, "status", status_of(api, grant));
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        write_member(w, members[i], grant->body);
    }
    json_write_instant(w, "made_at", grant->made_ms);
    json_write_instant(w, "expires_at", grant->expires_ms);
    if (grant->revoked_ms) {
        json_object_begin(w, "revoked");
        json_write_instant(w, "at", grant->revoked_ms);
        write_member(w, "actor", grant->revocation);
        json_object_end(w);
    } else {
        json_write_null(w, "revoked");
    }
}

static void answer(struct api_request *request, int status, const struct engine_grant *grant, const char *token)
{
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, grant->body.len + grant->revocation.len + 8192);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    write_grant(&w, request->api, grant);
    if (token) {
        json_write_text(&w, "token", token);
        json_write_slice(&w, "url", arena_printf(request->arena, "/mcp/g/%s", token));
    }
    json_object_end(&w);
    CHECK(!out.overflow);
    request_answer_json(request, status, arena_slice(request->arena, buffer_slice(&out)));
    buffer_fini(&out);
}

/* --- handlers --- */

static void on_put(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);

    if (!request_failed(request)) {
        http_answer_header(request->exchange, "Cache-Control", SLICE("no-store"));
        answer(request, 201, asked->grants, ((struct grant_body *)request->state)->token);
    }
}

void handle_put_grant(struct api_request *request)
{
    struct grant_body *body = arena_alloc(request->arena, sizeof(*body));
    const struct member members[] = {{"run", JSON_STRING, false, false, &body->run},
                                     {"saga", JSON_STRING, false, false, &body->saga},
                                     {"tools", JSON_ARRAY, false, false, &body->tools},
                                     {"scope", JSON_STRING, false, false, &body->scope},
                                     {"turn", JSON_STRING, false, false, &body->turn},
                                     {"expires_at", JSON_STRING, false, false, &body->expires_at}};
    struct err err = {0};

    if (request->has_certificate) { /* a list that revokes the certificate would not end the grant */
        request_problem(request, ERR_FORBIDDEN,
                        "a grant is made by a token of the tokens file, and not by a certificate");
        return;
    }
    request->state = body;
    body->offers = engine_offers(request->api->engine, request->asked.namespace, &err);
    if (!body->offers) {
        request_problem_of(request, &err, NULL);
        return;
    }
    if (!request_read_body(request, members, COUNT_OF(members), check_body)) {
        return;
    }
    request->asked.in.grant.id = uuid_v7(loop_wall_ms(request->api->loop));
    request->asked.in.grant.saga = body->saga_id;
    request->asked.in.grant.expires_ms = body->expires_ms;
    request->asked.in.grant.body = stored_body(request, body);
    grant_token_make(&request->asked.in.grant.id, body->token);
    request->asked.in.grant.secret = digest_sha256(slice_of(body->token));
    request->asked.in.grant.purpose = json_string(body->run.ptr ? body->run : body->saga, request->arena);
    request_ask(request, engine_put_grant, on_put);
}

static void on_list(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct json_writer w;
    struct buffer out;
    size_t bytes = 64;

    if (request_failed(request)) {
        return;
    }
    for (size_t i = 0; i < asked->grant_count; i++) {
        bytes += asked->grants[i].body.len + asked->grants[i].revocation.len + 1024;
    }
    buffer_init(&out, bytes);
    json_writer_init(&w, &out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < asked->grant_count; i++) {
        json_object_begin(&w, NULL);
        write_grant(&w, request->api, &asked->grants[i]);
        json_object_end(&w);
    }
    json_array_end(&w);
    CHECK(!out.overflow);
    request_answer_items(request, buffer_slice(&out), asked->next_cursor);
    buffer_fini(&out);
}

void handle_list_grants(struct api_request *request)
{
    bool is_given;

    if (request_read_bool(request, "all", &is_given, &request->asked.in.grant.with_ended) &&
        request_read_limit(request)) {
        request->asked.in.grant.limit = request->limit;
        request->asked.in.grant.cursor = request_query(request, "cursor");
        request_ask(request, engine_list_grants, on_list);
    }
}

static void on_revoked(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);

    if (asked->code == ERR_OK) {
        grant_ended(request->api, &asked->grants->id);
    }
    if (!request_failed(request)) {
        answer(request, 200, asked->grants, NULL);
    }
}

/* An agent may take back what it gave, and nothing that others gave: else one agent ends the work of all others. */
void handle_revoke_grant(struct api_request *request)
{
    char hex[65];

    if (!uuid_parse(request->params[0], &request->asked.in.grant.id)) {
        request_problem(request, ERR_NOT_FOUND, "there is no grant with this id; `sagactl grants --all` lists them");
        return;
    }
    if (request->has_token && request->role < ROLE_OPERATOR) {
        digest_hex(&request->token, hex);
        request->asked.in.grant.issuer_token = arena_slice(request->arena, slice_of(hex));
    }
    request_ask(request, engine_revoke_grant, on_revoked);
}
