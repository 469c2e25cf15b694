/* The fake engine's grants: those that were made, in memory. */
#include "tests/lib/fake_engine_state.h"

#include <string.h>

#include "base/json.h"

static bool holds(const struct engine *engine, const struct engine_grant *grant)
{
    return !grant->revoked_ms && grant->expires_ms > loop_wall_ms(engine->loop);
}

static void finish(struct engine *engine, struct engine_request *request, const struct engine_grant *grants,
                   size_t count)
{
    request->grants = arena_dup(request->arena, grants, (count + 1) * sizeof(*grants));
    request->grant_count = count;
    fake_finish_text(engine, request, SLICE("null"));
}

/* The saga must be one of the namespace. */
void engine_put_grant(struct engine *engine, struct engine_request *request)
{
    struct engine_grant *grant = &engine->grants[engine->grant_count % FAKE_GRANTS_MAX];

    if (!uuid_is_nil(&request->in.grant.saga.uuid) &&
        !fake_saga_find(engine, request->namespace, request->in.grant.saga)) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    engine->grant_count++;
    *grant = (struct engine_grant){.id = request->in.grant.id,
                                   .secret = request->in.grant.secret,
                                   .namespace = arena_slice(&engine->grant_arena, request->namespace),
                                   .body = arena_slice(&engine->grant_arena, request->in.grant.body),
                                   .revocation = SLICE_NONE,
                                   .made_ms = loop_wall_ms(engine->loop),
                                   .expires_ms = request->in.grant.expires_ms};
    finish(engine, request, grant, 1);
}

static size_t kept(const struct engine *engine)
{
    return engine->grant_count < FAKE_GRANTS_MAX ? engine->grant_count : FAKE_GRANTS_MAX;
}

void engine_find_grants(struct engine *engine, struct engine_request *request)
{
    struct engine_grant found[FAKE_GRANTS_MAX + 1];
    size_t count = 0;

    memset(found, 0, sizeof(found));
    for (size_t i = 0; i < kept(engine); i++) {
        for (size_t k = 0; k < request->in.grant.id_count; k++) {
            if (uuid_equal(&engine->grants[i].id, &request->in.grant.ids[k]) && holds(engine, &engine->grants[i])) {
                found[count++] = engine->grants[i];
            }
        }
    }
    finish(engine, request, found, count);
}

void engine_list_grants(struct engine *engine, struct engine_request *request)
{
    struct engine_grant found[FAKE_GRANTS_MAX + 1];
    size_t count = 0;

    memset(found, 0, sizeof(found));
    for (size_t i = kept(engine); i > 0 && count < request->in.grant.limit; i--) {
        const struct engine_grant *grant = &engine->grants[i - 1];

        if (slice_equal(grant->namespace, request->namespace) &&
            (request->in.grant.with_ended || holds(engine, grant))) {
            found[count++] = *grant;
        }
    }
    finish(engine, request, found, count);
}

static bool is_made_by(const struct engine_grant *grant, struct slice token)
{
    struct slice text = json_member(grant->body, "issuer_token");

    return json_type(text) == JSON_STRING && slice_equal((struct slice){text.ptr + 1, text.len - 2}, token);
}

void engine_revoke_grant(struct engine *engine, struct engine_request *request)
{
    for (size_t i = 0; i < kept(engine); i++) {
        struct engine_grant *grant = &engine->grants[i];

        if (uuid_equal(&grant->id, &request->in.grant.id) && slice_equal(grant->namespace, request->namespace) &&
            (!request->in.grant.issuer_token.ptr || is_made_by(grant, request->in.grant.issuer_token))) {
            grant->revoked_ms = grant->revoked_ms ? grant->revoked_ms : loop_wall_ms(engine->loop);
            grant->revocation = grant->revocation.ptr
                                    ? grant->revocation
                                    : arena_printf(&engine->grant_arena, "{\"actor\":%.*s}",
                                                   SLICE_ARG(fake_quoted(request->arena, request->actor)));
            finish(engine, request, grant, 1);
            return;
        }
    }
    fake_finish(engine, request, fake_not_found(request));
}
