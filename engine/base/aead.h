/*
 * AES-256-GCM (libcrypto). What is sealed opens only under its own key, unchanged, and beside the same associated data.
 *
 * The nonce is 96 random bits, so one key may seal 2^32 texts (NIST SP 800-38D).
 */
#ifndef SAGAD_BASE_AEAD_H
#define SAGAD_BASE_AEAD_H

#include "base/text.h"

#define AEAD_KEY_BYTES 32
#define AEAD_EXTRA_BYTES 28 /* a sealed text is longer than its text by the nonce and the tag */

struct aead_key;

struct aead_key *aead_key_new(const unsigned char bytes[AEAD_KEY_BYTES]);
void aead_key_free(struct aead_key *key); /* wipes it; accepts NULL */

/* Writes text.len + AEAD_EXTRA_BYTES bytes. */
void aead_seal(struct aead_key *key, struct slice beside, struct slice text, unsigned char *out);
/* Writes sealed.len - AEAD_EXTRA_BYTES bytes. False: it does not open, and `out` holds nothing of use. */
bool aead_open(struct aead_key *key, struct slice beside, struct slice sealed, unsigned char *out);

#endif
