/*
 * Rights by OpenID Connect: which namespaces and which role the claims of a JWT give, by the settings.
 *
 * The claim of the role has one name or an array of names; the strongest right among them counts, and names that are
 * not known give none. The claim of the namespace has one namespace or an array, the first of which a request is in
 * when it names none. "*" is never taken from a claim: who is above all namespaces stands in the tokens file.
 */
#ifndef SAGAD_API_OIDC_H
#define SAGAD_API_OIDC_H

#include "api/auth.h"
#include "io/oidc/issuer.h"

#define OIDC_NAME_PREFIX "oidc:" /* the subject follows: no token of the file is taken for the person of an issuer */

struct oidc_options {
    struct issuer_options issuer;             /* url NULL: there is no issuer */
    const char *role_claim, *namespace_claim; /* a name, or a JSON Pointer that begins with "/" */
    const char *roles;                        /* GROUP=ROLE with commas between; NULL: roles have their own names */
    const char *namespace;                    /* every JWT is in it; NULL: the claim says it */
};

/* ERR_CONFIG: a setting is wrong, or is given without an issuer. */
MUST_USE enum err_code oidc_check(const struct oidc_options *options, struct err *err);
/* The rights of a JWT whose signature was verified; the digest stays to be set. ERR_FORBIDDEN with a sentence: it gives
 * none. */
MUST_USE enum err_code oidc_token(const struct oidc_options *options, struct slice claims, struct arena *arena,
                                  struct token *out, struct err *err);

#endif
