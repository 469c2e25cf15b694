/* Requests that show a grant instead of a token. */
#include "api/grant.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/request.h"

#define LOOK_MS 500  /* between two looks at the grants of requests that wait, which end within a second */
#define FRESH_MS 200 /* a body that takes longer: its grant is asked for again */

/* --- the token --- */

void grant_token_make(const struct uuid *id, char out[GRANT_TOKEN_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    size_t len = sizeof(GRANT_PREFIX) - 1;
    struct digest secret;

    CHECK(random_bytes(secret.bytes, sizeof(secret.bytes)));
    memcpy(out, GRANT_PREFIX, len);
    for (size_t i = 0; i < sizeof(id->bytes); i++) {
        out[len++] = digits[id->bytes[i] >> 4];
        out[len++] = digits[id->bytes[i] & 15];
    }
    digest_hex(&secret, out + len);
}

/* False: no grant has this token. */
static bool grant_token_read(struct slice token, struct uuid *id, struct digest *secret)
{
    size_t prefix = sizeof(GRANT_PREFIX) - 1;
    struct digest read;
    char hex[65];

    if (token.len != GRANT_TOKEN_BYTES - 1 || !slice_starts_with(token, GRANT_PREFIX)) {
        return false;
    }
    memcpy(hex, token.ptr + prefix, 32); /* the id is half as long as a digest */
    memset(hex + 32, '0', 32);
    if (!digest_from_hex((struct slice){hex, 64}, &read)) {
        return false;
    }
    memcpy(id->bytes, read.bytes, sizeof(id->bytes));
    *secret = digest_sha256(token);
    return digest_from_hex((struct slice){token.ptr + prefix + 32, 64}, &read);
}

/* --- one request --- */

static struct slice bearer_of(const struct api_request *request)
{
    struct slice header = http_exchange_header(request->exchange, "authorization");

    return header.len > 7 && strncasecmp(header.ptr, "Bearer ", 7) == 0
               ? slice_trim((struct slice){header.ptr + 7, header.len - 7})
               : SLICE_NONE;
}

static bool is_in_path(const struct api_request *request)
{
    return strcmp(request->route->pattern, "/mcp/g/{secret}") == 0;
}

bool grant_is_shown(const struct api_request *request)
{
    return is_in_path(request) ||
           (route_least(request->route) != ROLE_NONE && slice_starts_with(bearer_of(request), GRANT_PREFIX));
}

static bool refuse(struct api_request *request)
{
    request_problem(
        request, ERR_UNAUTHENTICATED,
        "this grant is not known here: it was revoked, its time is over, or the token that made it is gone");
    return false;
}

bool grant_note(struct api_request *request)
{
    struct grant *grant = arena_alloc(request->arena, sizeof(*grant));

    if (is_in_path(request) && http_exchange_header(request->exchange, "authorization").ptr) {
        request_problem(request, ERR_MALFORMED,
                        "this address is a grant by itself; send no header Authorization beside it");
        return false;
    }
    if (!grant_token_read(is_in_path(request) ? request->params[0] : bearer_of(request), &grant->id, &grant->secret)) {
        return refuse(request);
    }
    if (request->route->handle != handle_mcp) {
        request_problem(request, ERR_FORBIDDEN, "a grant is good for calls at /mcp, and nowhere else");
        return false;
    }
    uuid_text(&grant->id, grant->id_text);
    request->grant = grant;
    request->role = ROLE_AGENT;
    request->asked.namespace = SLICE("default"); /* both until it is found */
    request->asked.actor = SLICE("grant");
    return true;
}

static struct slice text_of(struct slice body, const char *name, struct arena *arena)
{
    struct slice value = json_member(body, name);

    return json_type(value) == JSON_STRING ? json_string(value, arena) : SLICE_NONE;
}

bool grant_has_issuer(const struct api *api, const struct engine_grant *grant)
{
    struct slice hex = json_member(grant->body, "issuer_token"), issuer = json_member(grant->body, "issuer_jwt");
    const struct token *token;
    struct digest digest;

    if (issuer.ptr) {
        return api->issuer && json_string_is(issuer, api->oidc.issuer.url);
    }
    if (json_type(hex) != JSON_STRING) { /* it was made where there are no tokens */
        return !api->has_tokens;
    }
    token = digest_from_hex((struct slice){hex.ptr + 1, hex.len - 2}, &digest) ? api_find_token(api, &digest) : NULL;
    return api->has_tokens && token && token->role >= ROLE_AGENT && token_has_namespace(token, grant->namespace);
}

/* Only what was found says whose the request is. */
static void take(struct api_request *request, const struct engine_grant *found)
{
    struct grant *grant = request->grant;
    struct slice saga = text_of(found->body, "saga", request->arena),
                 token = text_of(found->body, "issuer_token", request->arena);

    grant->holds = true;
    grant->by_jwt = json_member(found->body, "issuer_jwt").ptr != NULL;
    grant->found_ms = loop_boot_ms(request->api->loop);
    grant->expires_ms = found->expires_ms;
    grant->run = text_of(found->body, "run", request->arena);
    grant->scope = text_of(found->body, "scope", request->arena);
    grant->turn = text_of(found->body, "turn", request->arena);
    grant->tools = json_member(found->body, "tools");
    grant->has_saga = saga.ptr && uuid_parse(saga, &grant->saga.uuid);
    request->has_token = token.ptr && digest_from_hex(token, &request->token);
    const struct token *issuer = request->has_token ? api_find_token(request->api, &request->token) : NULL;

    request->tools = issuer ? token_tools_copy(&issuer->tools, request->arena) : (struct token_tools){0};
    request->token_expires_ms = found->expires_ms;
    request->asked.namespace = found->namespace;
    request->asked.actor = text_of(found->body, "issuer", request->arena);
}

static void on_found(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct slice named = http_exchange_header(request->exchange, "sagad-namespace");
    struct grant *grant = request->grant;
    const struct engine_grant *found = asked->code == ERR_OK && asked->grant_count == 1 ? asked->grants : NULL;

    if (request_failed(request)) {
        return;
    }
    if (!found || !digest_equal(&found->secret, &grant->secret) || !grant_has_issuer(request->api, found)) {
        (void)refuse(request);
        return;
    }
    take(request, found);
    if (named.ptr && !slice_equal(named, found->namespace)) {
        request_problem(request, ERR_FORBIDDEN, "this grant may not act in the namespace that the request names");
        return;
    }
    memset(&asked->in, 0, sizeof(asked->in));
    grant_watch_begin(request->api->grant_watch);
    grant->then(request);
}

void grant_find(struct api_request *request, void (*then)(struct api_request *request))
{
    request->grant->then = then;
    request->asked.in.grant.ids = &request->grant->id;
    request->asked.in.grant.id_count = 1;
    request_ask(request, engine_find_grants, on_found);
}

bool grant_is_fresh(const struct api_request *request)
{
    return loop_boot_ms(request->api->loop) - request->grant->found_ms < FRESH_MS;
}

bool grant_is_over(const struct api_request *request)
{
    const struct grant *grant = request->grant;

    return grant && grant->holds && (grant->is_over || grant->expires_ms <= loop_wall_ms(request->api->loop));
}

bool grant_has_tool(const struct grant *grant, struct slice name, struct slice definition)
{
    struct json_walk walk = json_walk(grant ? grant->tools : SLICE_NONE);
    struct slice item;

    if (!grant || json_type(grant->tools) != JSON_ARRAY) {
        return true;
    }
    while (json_next_element(&walk, &item)) {
        struct slice text = {item.ptr + 1, item.len - 2}; /* names have no character that is escaped */

        if (slice_equal(text, name) || (definition.ptr && slice_equal(text, definition))) {
            return true;
        }
    }
    return false;
}

/* --- requests that wait --- */

struct grant_watch {
    struct api *api; /* NULL: it has stopped */
    struct timer timer;
    bool is_on, asks;
    struct arena arena; /* the arena of one look */
    struct engine_request asked;
};

static void on_time(struct timer *timer);

struct grant_watch *grant_watch_new(struct api *api)
{
    struct grant_watch *watch = memory_alloc(sizeof(*watch));

    watch->api = api;
    return watch;
}

void grant_watch_free(struct grant_watch *watch)
{
    if (!watch) {
        return;
    }
    timer_stop(watch->api->loop, &watch->timer);
    if (watch->asks) { /* the answer is still to come */
        engine_cancel(watch->api->engine, &watch->asked);
        watch->api = NULL;
        return;
    }
    free(watch);
}

void grant_watch_begin(struct grant_watch *watch)
{
    if (!watch->is_on) {
        watch->is_on = true;
        timer_start(watch->api->loop, &watch->timer, LOOK_MS, on_time);
    }
}

static struct api_request *next_by_grant(const struct api *api, struct list_link **link)
{
    while (*link) {
        struct api_request *request = container_of(*link, struct api_request, link);

        *link = list_after(&api->waiting, *link);
        if (request->grant && request->grant->holds) {
            return request;
        }
    }
    return NULL;
}

static bool is_among(const struct engine_request *asked, const struct uuid *id)
{
    for (size_t i = 0; i < asked->grant_count; i++) {
        if (uuid_equal(&asked->grants[i].id, id)) {
            return true;
        }
    }
    return false;
}

static bool was_asked_for(const struct engine_request *asked, const struct uuid *id)
{
    for (size_t i = 0; i < asked->in.grant.id_count; i++) {
        if (uuid_equal(&asked->in.grant.ids[i], id)) {
            return true;
        }
    }
    return false;
}

static void on_looked(struct engine_request *asked)
{
    struct grant_watch *watch = container_of(asked, struct grant_watch, asked);
    struct api *api = watch->api;
    struct list_link *link = api ? list_first(&api->waiting) : NULL;
    struct api_request *request;

    while (asked->code == ERR_OK && api && (request = next_by_grant(api, &link))) {
        request->grant->is_over = request->grant->is_over ||
                                  (was_asked_for(asked, &request->grant->id) && !is_among(asked, &request->grant->id));
    }
    watch->asks = false;
    arena_fini(&watch->arena);
    if (!api) {
        free(watch);
        return;
    }
    timer_start(api->loop, &watch->timer, LOOK_MS, on_time);
    api_cut_revoked(api);
}

static int by_id(const void *a, const void *b)
{
    return uuid_compare(a, b);
}

static void on_time(struct timer *timer)
{
    struct grant_watch *watch = container_of(timer, struct grant_watch, timer);
    struct api *api = watch->api;
    struct list_link *link = list_first(&api->waiting);
    size_t count = 0, kept = 0;
    struct uuid *ids;

    while (next_by_grant(api, &link)) {
        count++;
    }
    if (count == 0) {
        watch->is_on = false;
        return;
    }
    arena_init(&watch->arena, 4096);
    ids = arena_array(&watch->arena, count, sizeof(*ids));
    link = list_first(&api->waiting);
    for (size_t i = 0; i < count; i++) {
        ids[i] = next_by_grant(api, &link)->grant->id;
    }
    qsort(ids, count, sizeof(*ids), by_id);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !uuid_equal(&ids[kept - 1], &ids[i])) {
            ids[kept++] = ids[i];
        }
    }
    watch->asks = true;
    watch->asked = (struct engine_request){
        .arena = &watch->arena, .namespace = SLICE("default"), .actor = SLICE("grant"), .done = on_looked};
    watch->asked.in.grant.ids = ids;
    watch->asked.in.grant.id_count = kept;
    engine_find_grants(api->engine, &watch->asked);
}

void grant_ended(struct api *api, const struct uuid *id)
{
    struct list_link *link = list_first(&api->waiting);
    struct api_request *request;

    while ((request = next_by_grant(api, &link))) {
        request->grant->is_over = request->grant->is_over || uuid_equal(&request->grant->id, id);
    }
    api_cut_revoked(api);
}
