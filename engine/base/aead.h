/*
 * AES-256-GCM (libcrypto). What is sealed opens only under its own key, unchanged, and beside the same associated data.
 *
 * Each text has a nonce of 192 random bits, of which one half makes an AES key of the given one (XAES-256-GCM,
 * c2sp.org). So nobody has to count what a key has sealed: with a nonce of 96 bits it would be worn out by 2^32 texts.
 * Some texts in a row have that half in common, since it costs more than to seal a short text; the other half is each
 * one's own.
 */
#ifndef SAGAD_BASE_AEAD_H
#define SAGAD_BASE_AEAD_H

#include "base/text.h"

#define AEAD_KEY_BYTES 32
#define AEAD_EXTRA_BYTES 40 /* a sealed text is longer than its text by the nonce and the tag */

struct aead_key;

struct aead_key *aead_key_new(const unsigned char bytes[AEAD_KEY_BYTES]);
void aead_key_free(struct aead_key *key); /* wipes it; accepts NULL */

/* Writes text.len + AEAD_EXTRA_BYTES bytes: the nonce, the ciphertext and the tag. */
void aead_seal(struct aead_key *key, struct slice beside, struct slice text, unsigned char *out);
/* Writes sealed.len - AEAD_EXTRA_BYTES bytes. False: it does not open, and `out` holds nothing of use. */
bool aead_open(struct aead_key *key, struct slice beside, struct slice sealed, unsigned char *out);

#endif
