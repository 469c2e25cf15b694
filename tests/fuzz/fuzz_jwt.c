/*
 * What comes with a request as its token, and what an issuer says of its keys. The first byte chooses: a JWT as it is
 * sent, claims as JSON, or a set of keys. Nothing is accepted without a signature, and what
 * is accepted keeps the promises of the headers.
 */
#include "api/oidc.h"
#include "io/oidc/keys.h"
#include "tests/fuzz/fuzz.h"

#define NOW_MS INT64_C(1700000000000)

static void check_claims(const struct jwt *jwt)
{
    const struct oidc_options options = {
        .role_claim = "role", .namespace_claim = "/namespace", .roles = "a=admin,b=agent"};
    struct token token = {0};
    struct err err = {0};
    int64_t expires_ms = 0;

    if (jwt_check_claims(jwt, "i", "a", NOW_MS, &expires_ms, &err) == ERR_OK) {
        MUST(expires_ms > NOW_MS);
    } else {
        MUST(err.code == ERR_UNAUTHENTICATED && err.message[0]);
    }
    if (oidc_token(&options, jwt->claims, fuzz_arena(), &token, &err) == ERR_OK) {
        MUST(token.role == ROLE_ADMIN || token.role == ROLE_AGENT);
        MUST(token.namespace_count > 0 && token.name.len > sizeof(OIDC_NAME_PREFIX) - 1);
        for (size_t i = 0; i < token.namespace_count; i++) {
            MUST(token_namespace_is_good(token.namespaces[i]));
        }
    }
}

static void token(struct slice text)
{
    static struct arena arena;
    struct err err = {0};
    struct jwt jwt;

    if (arena.block_bytes == 0) {
        arena_init(&arena, (size_t)64 * 1024);
    }
    arena_reset(&arena);
    if (jwt_read(text, &arena, &jwt, &err) != ERR_OK) {
        MUST(err.code == ERR_UNAUTHENTICATED && err.message[0]);
        return;
    }
    MUST(jwt_is_likely(text) && jwt.algorithm < JWT_ALGORITHM_COUNT && jwt.kid.len > 0 && jwt.signature.len > 0);
    MUST(jwt.signed_part.ptr == text.ptr && jwt.signed_part.len < text.len && fuzz_is_json(jwt.claims));
    check_claims(&jwt);
}

static void keys(struct slice text)
{
    struct err err = {0};
    struct jwt_keys *keys = jwt_keys_read(text, &err);

    if (!keys) {
        MUST(err.message[0]);
        return;
    }
    MUST(jwt_keys_count(keys) > 0 && jwt_keys_count(keys) <= JWT_KEYS_MAX);
    for (int i = 0; i < JWT_ALGORITHM_COUNT; i++) { /* nobody has signed anything */
        const struct jwt jwt = {(enum jwt_algorithm)i, SLICE("k"), SLICE("a.b"), SLICE("c"), SLICE("{}")};

        MUST(!jwt_keys_verify(keys, &jwt));
    }
    jwt_keys_free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    uint8_t what = fuzz_byte(&text);

    if (what % 3 == 0) {
        token(text);
    } else if (what % 3 == 1) {
        struct jwt jwt = {.claims = text};

        if (fuzz_is_json(text)) {
            check_claims(&jwt);
        }
    } else {
        keys(text);
    }
    return 0;
}
