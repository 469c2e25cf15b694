/* Reads a JWT. Whoever sends it may have written it, so the algorithm is looked at before anything else of it. */
#include "io/oidc/jwt.h"

#include <string.h>
#include <strings.h>

#include "base/base64url.h"
#include "base/json.h"

#define SECONDS_MAX INT64_C(253402300000) /* the year 9999 */

static const char *const names[JWT_ALGORITHM_COUNT] = {
#define X(id, name) [id] = name,
    JWT_ALGORITHM_MAP(X)
#undef X
};

static const struct json_limits limits = {
    .bytes_max = JWT_BYTES_MAX, .depth_max = 16, .number_bytes_max = 64, .exponent_max = 400};

static enum err_code refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_UNAUTHENTICATED, "this JWT is not accepted: %s", why);
}

bool jwt_is_likely(struct slice text)
{
    struct slice parts[4];

    return slice_split(text, '.', parts, 4) == 3 && parts[0].len > 0 && parts[1].len > 0;
}

bool jwt_algorithm_parse(struct slice name, enum jwt_algorithm *out)
{
    for (int i = 0; i < JWT_ALGORITHM_COUNT; i++) {
        if (name.ptr && slice_is(name, names[i])) {
            *out = (enum jwt_algorithm)i;
            return true;
        }
    }
    return false;
}

static struct slice object_of(struct slice part, struct arena *arena)
{
    struct slice text = base64url_read(part, arena);

    return text.ptr && json_check(text, &limits, NULL) == ERR_OK && json_type(text) == JSON_OBJECT ? text : SLICE_NONE;
}

/* --- the token --- */

/* Other kinds of tokens are JWTs of the same issuer too: of a logout, of a proof of possession. */
static bool type_is_good(struct slice type)
{
    static const char *const known[] = {"JWT", "at+jwt", "application/at+jwt"};

    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (type.len == strlen(known[i]) && strncasecmp(type.ptr, known[i], type.len) == 0) {
            return true;
        }
    }
    return false;
}

static enum err_code read_header(struct slice header, struct arena *arena, struct jwt *out, struct err *err)
{
    struct slice type = json_member(header, "typ");

    if (!jwt_algorithm_parse(json_string(json_member(header, "alg"), arena), &out->algorithm)) {
        return refuse(err, "its algorithm is none of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512");
    }
    if (type.ptr && (json_type(type) != JSON_STRING || !type_is_good(json_string(type, arena)))) {
        return refuse(err, "its header calls it another kind of token; \"typ\" is JWT or at+jwt");
    }
    if (json_member(header, "crit").ptr || json_member(header, "b64").ptr) {
        return refuse(err, "its header asks for extensions that are not known here");
    }
    out->kid = json_string(json_member(header, "kid"), arena);
    return out->kid.len > 0 ? ERR_OK : refuse(err, "its header names no key (\"kid\")");
}

enum err_code jwt_read(struct slice text, struct arena *arena, struct jwt *out, struct err *err)
{
    struct slice parts[4], header;

    if (text.len > JWT_BYTES_MAX) {
        return refuse(err, "it has more than 8192 bytes");
    }
    if (slice_split(text, '.', parts, 4) != 3) {
        return refuse(err, "it has not three parts with dots between");
    }
    header = object_of(parts[0], arena);
    if (!header.ptr) {
        return refuse(err, "its header is not a JSON object in base64url");
    }
    *out = (struct jwt){.signed_part = {text.ptr, parts[0].len + 1 + parts[1].len}};
    if (read_header(header, arena, out, err) != ERR_OK) {
        return ERR_UNAUTHENTICATED;
    }
    out->claims = object_of(parts[1], arena);
    if (!out->claims.ptr) {
        return refuse(err, "its claims are not a JSON object in base64url");
    }
    out->signature = base64url_read(parts[2], arena);
    return out->signature.len > 0 ? ERR_OK : refuse(err, "its signature is not in base64url");
}

/* --- claims --- */

static bool is_for(struct slice claim, const char *audience)
{
    struct json_walk walk = json_walk(claim);
    struct slice item;

    if (json_type(claim) != JSON_ARRAY) {
        return json_string_is(claim, audience);
    }
    while (json_next_element(&walk, &item)) {
        if (json_string_is(item, audience)) {
            return true;
        }
    }
    return false;
}

static bool instant_of(struct slice claim, int64_t *out_ms)
{
    int64_t seconds;

    if (json_type(claim) != JSON_NUMBER || !json_i64(claim, &seconds) || seconds < 0 || seconds > SECONDS_MAX) {
        return false;
    }
    *out_ms = seconds * 1000;
    return true;
}

enum err_code jwt_check_claims(const struct jwt *jwt, const char *issuer, const char *audience, int64_t now_ms,
                               int64_t *expires_ms, struct err *err)
{
    struct slice nbf = json_member(jwt->claims, "nbf");
    int64_t end_ms, begin_ms = 0;

    if (!json_string_is(json_member(jwt->claims, "iss"), issuer)) {
        return refuse(err, "it is from another issuer (\"iss\") than --oidc-issuer");
    }
    if (!is_for(json_member(jwt->claims, "aud"), audience)) {
        return refuse(err, "it is for another audience (\"aud\") than --oidc-audience");
    }
    if (!instant_of(json_member(jwt->claims, "exp"), &end_ms)) {
        return refuse(err, "it does not say in whole seconds when it expires (\"exp\")");
    }
    if (nbf.ptr && !instant_of(nbf, &begin_ms)) {
        return refuse(err, "it does not say in whole seconds from when on it is good (\"nbf\")");
    }
    if (end_ms + JWT_LEEWAY_MS <= now_ms) {
        return refuse(err, "it has expired (\"exp\")");
    }
    if (begin_ms - JWT_LEEWAY_MS > now_ms) {
        return refuse(err, "it is not good yet (\"nbf\")");
    }
    *expires_ms = end_ms + JWT_LEEWAY_MS;
    return ERR_OK;
}
