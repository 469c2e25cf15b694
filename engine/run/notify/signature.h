/*
 * Signatures of Standard Webhooks (https://www.standardwebhooks.com), version v1: HMAC-SHA256 over
 *
 *     ID.TIMESTAMP.BODY
 *
 * as base64. A secret is "whsec_" and 24 to 64 bytes as base64. Several secrets sign one message, with spaces between
 * the signatures: a receiver takes the message when one of them is right.
 */
#ifndef SAGAD_RUN_NOTIFY_SIGNATURE_H
#define SAGAD_RUN_NOTIFY_SIGNATURE_H

#include "base/text.h"

#define SIGNATURE_KEY_BYTES_MIN 24
#define SIGNATURE_KEY_BYTES_MAX 64

struct signature_key {
    unsigned char bytes[SIGNATURE_KEY_BYTES_MAX];
    size_t count;
};

/* False: it has another form. SLICE_NONE is no secret. */
bool signature_key_read(struct slice secret, struct signature_key *key);
void signature_key_wipe(struct signature_key *key);
/* Adds the signature to those that stand in `out`. */
void signature_put(struct buffer *out, const struct signature_key *key, struct slice id, int64_t timestamp_s,
                   struct slice body);

#endif
