/*
 * JSON Web Tokens (RFC 7519) that an issuer of OpenID Connect has signed, as far as they can be judged without a key:
 * the three parts in base64url with dots between, and what the claims say of issuer, audience and time.
 *
 * The algorithm comes from a list of those that sign with a key pair. "none" and the HMACs are not on the list, so
 * nobody can take a public key for the secret of an HMAC. What a header says of where its key is (jku, jwk, x5u) is
 * never read: keys come from the issuer only.
 */
#ifndef SAGAD_IO_OIDC_JWT_H
#define SAGAD_IO_OIDC_JWT_H

#include "base/arena.h"
#include "base/errors.h"

#define JWT_BYTES_MAX 8192
#define JWT_LEEWAY_MS 60000 /* clocks differ */

#define JWT_ALGORITHM_MAP(X)                                                                                           \
    X(JWT_RS256, "RS256")                                                                                              \
    X(JWT_RS384, "RS384")                                                                                              \
    X(JWT_RS512, "RS512")                                                                                              \
    X(JWT_PS256, "PS256")                                                                                              \
    X(JWT_PS384, "PS384")                                                                                              \
    X(JWT_PS512, "PS512")                                                                                              \
    X(JWT_ES256, "ES256")                                                                                              \
    X(JWT_ES384, "ES384")                                                                                              \
    X(JWT_ES512, "ES512")
#define X(id, name) id,
enum jwt_algorithm { JWT_ALGORITHM_MAP(X) JWT_ALGORITHM_COUNT };
#undef X

struct jwt {
    enum jwt_algorithm algorithm;
    struct slice kid;         /* names the key; at least one byte */
    struct slice signed_part; /* header and claims as they were sent: what the signature is of */
    struct slice signature;   /* bytes */
    struct slice claims;      /* a JSON object that json_check() accepted */
};

/* Has the text the three parts of a JWT? Everything else about it may be wrong. */
bool jwt_is_likely(struct slice text);
bool jwt_algorithm_parse(struct slice name, enum jwt_algorithm *out); /* false: not on the list */

/* ERR_UNAUTHENTICATED with a sentence: it is no JWT, or none that can be accepted, whatever its signature. The
 * signature is not verified. */
MUST_USE enum err_code jwt_read(struct slice text, struct arena *arena, struct jwt *out, struct err *err);
/*
 * Is it from this issuer, for this audience, and good at `now_ms`? `expires_ms` is when it stops being accepted, which
 * is JWT_LEEWAY_MS after its `exp`. ERR_UNAUTHENTICATED with a sentence.
 */
MUST_USE enum err_code jwt_check_claims(const struct jwt *jwt, const char *issuer, const char *audience, int64_t now_ms,
                                        int64_t *expires_ms, struct err *err);

#endif
