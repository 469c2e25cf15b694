/* SHA-256 and a comparison that takes the same time whatever differs (libcrypto). */
#ifndef SAGAD_BASE_DIGEST_H
#define SAGAD_BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct digest {
    uint8_t bytes[32];
};

struct digest digest_sha256(struct slice text);
bool digest_equal(const struct digest *a, const struct digest *b); /* constant time */
void digest_hex(const struct digest *digest, char out[65]);
bool digest_from_hex(struct slice hex, struct digest *out);
bool random_bytes(void *out, size_t len); /* getrandom(); false only when the kernel has none */

/* SHA-256 over fields, each as a 4-byte big-endian length and its bytes: no two field lists share an input. */
struct digest digest_fields(const char *tag, const struct slice *fields,
                            size_t count); /* the tag goes in bare, first */

#endif
