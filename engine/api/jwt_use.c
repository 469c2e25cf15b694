/*
 * Requests that show a JWT. Each one is judged anew; what is remembered of a signature ends with the keys of the issuer
 * (io/oidc/issuer.c). A JWT whose key is not known waits for these keys, before its body is read.
 */
#include "api/jwt_use.h"

#include <string.h>

#include "api/request.h"

struct jwt_use { /* in the arena of the request */
    struct api_request *request;
    struct issuer_asking asking;
    struct token token;
    bool waits, was_waiting;
    void (*then)(struct api_request *request);
};

static bool refuse(struct api_request *request, const struct err *err, int64_t retry_after_ms)
{
    if (retry_after_ms > 0) {
        request_problem_later(request, err, retry_after_ms);
    } else {
        request_problem_of(request, err, NULL);
    }
    return false;
}

/* Gives the request the rights of its JWT, or answers it. */
static bool take(struct api_request *request)
{
    struct jwt_use *use = request->jwt;
    struct token *token = &use->token;

    use->waits = false;
    if (use->asking.code != ERR_OK) {
        return refuse(request, &use->asking.err, use->asking.retry_after_ms);
    }
    if (oidc_token(&request->api->oidc, use->asking.claims, request->arena, token, &use->asking.err) != ERR_OK) {
        return refuse(request, &use->asking.err, 0);
    }
    token->digest = digest_sha256(use->asking.token);
    token->expires_ms = use->asking.expires_ms;
    request->has_token = true;
    request->token = token->digest;
    request->token_expires_ms = token->expires_ms;
    request->role = token->role;
    request->asked.actor = token->name;
    return true;
}

bool jwt_note(struct api_request *request, struct slice text)
{
    struct jwt_use *use = arena_alloc(request->arena, sizeof(*use));

    use->request = request;
    use->asking.token = text;
    use->asking.arena = request->arena;
    request->jwt = use;
    request->role = ROLE_NONE;
    use->waits = !issuer_judge(request->api->issuer, &use->asking);
    return use->waits || take(request);
}

bool jwt_waits(const struct api_request *request)
{
    return request->jwt && request->jwt->waits;
}

const struct token *jwt_token(const struct api_request *request)
{
    const struct jwt_use *use = request->jwt;

    return use && use->token.name.ptr && use->token.expires_ms > loop_wall_ms(request->api->loop) ? &use->token : NULL;
}

struct slice jwt_text(const struct api_request *request)
{
    return request->jwt ? request->jwt->asking.token : SLICE_NONE;
}

/* A request that is being handled was among those that wait before, and stays. */
static void wait_ends(struct api_request *request)
{
    request->cancel = NULL;
    if (!request->jwt->was_waiting) {
        list_remove(&request->api->waiting, &request->link);
    }
}

static void on_cancel(struct api_request *request)
{
    wait_ends(request);
    issuer_forget(request->api->issuer, &request->jwt->asking);
    request_problem(request, ERR_STOPPING, "this request ended before its JWT could be verified");
}

static void on_judged(struct issuer_asking *asking)
{
    struct api_request *request = container_of(asking, struct jwt_use, asking)->request;

    wait_ends(request);
    if (take(request)) {
        request->jwt->then(request);
    }
}

bool jwt_find(struct api_request *request, void (*then)(struct api_request *request))
{
    struct jwt_use *use = request->jwt;

    use->then = then;
    use->asking.done = on_judged;
    if (!issuer_wait(request->api->issuer, &use->asking)) {
        return take(request);
    }
    request->cancel = on_cancel;
    use->was_waiting = list_linked(&request->link);
    if (!use->was_waiting) {
        list_push(&request->api->waiting, &request->link);
    }
    return true;
}
