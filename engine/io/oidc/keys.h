/*
 * The public keys of an issuer (RFC 7517), and signatures by them (GnuTLS).
 *
 * A key is good for the algorithms of its kind only, and for one of them where the issuer says which. Keys that nobody
 * here needs (for encryption, symmetric, of other curves, of too few bits) are left out.
 */
#ifndef SAGAD_IO_OIDC_KEYS_H
#define SAGAD_IO_OIDC_KEYS_H

#include "io/oidc/jwt.h"

#define JWT_KEYS_MAX 64
#define JWT_KEYS_BYTES_MAX (256 * 1024)

struct jwt_keys;

/* NULL, with a sentence: the text is no set of keys, or none of its keys can be used. */
struct jwt_keys *jwt_keys_read(struct slice text, struct err *err);
void jwt_keys_free(struct jwt_keys *keys); /* accepts NULL */
size_t jwt_keys_count(const struct jwt_keys *keys);
/* Is there a key of the name that the token says, whatever its kind? */
bool jwt_keys_has(const struct jwt_keys *keys, const struct jwt *jwt);
/* Did one of the keys of this name, which is good for the algorithm, make the signature? */
bool jwt_keys_verify(const struct jwt_keys *keys, const struct jwt *jwt);

#endif
