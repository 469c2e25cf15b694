/* HMAC-SHA256, and base64 for its keys and results (libcrypto). */
#ifndef SAGAD_BASE_HMAC_H
#define SAGAD_BASE_HMAC_H

#include "base/digest.h"

#define DIGEST_BASE64_BYTES 45
#define BASE64_BYTES_MAX 1024

struct digest hmac_sha256(struct slice key, struct slice text);
void digest_base64(const struct digest *digest, char out[DIGEST_BASE64_BYTES]);
/* Reads base64 with its padding. False: it is none, or stands for more than bytes_max, which is at most
 * BASE64_BYTES_MAX. */
bool base64_read(struct slice text, unsigned char *out, size_t bytes_max, size_t *count);

#endif
