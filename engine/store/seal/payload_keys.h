/*
 * The keys under which payloads lie in the database (--payload-keys).
 *
 * One key is active: everything new is sealed under it. The others only open what was sealed under them. Without an
 * active key nothing new is sealed. What is sealed belongs to a place, the row and the member that hold it, and does
 * not open at another one.
 */
#ifndef SAGAD_STORE_PAYLOAD_KEYS_H
#define SAGAD_STORE_PAYLOAD_KEYS_H

#include "base/digest.h"
#include "base/errors.h"
#include "base/id.h"
#include "base/text.h"

#define PAYLOAD_KEYS_MAX 64
#define PAYLOAD_KEY_NAME_MAX 32

struct payload_keys;

/* Reads the file: {"active": NAME or null, "keys": {NAME: 32 bytes as base64, ...}}. NULL: it is wrong, and `err` says
 * why. */
struct payload_keys *payload_keys_new(const char *path, struct err *err);
void payload_keys_free(struct payload_keys *keys); /* wipes them; accepts NULL */

/* The name of the key for what is new. SLICE_NONE: nothing is sealed. `keys` may be NULL in all of these. */
struct slice payload_keys_active(const struct payload_keys *keys);
size_t payload_keys_count(const struct payload_keys *keys);
struct slice payload_keys_name(const struct payload_keys *keys, size_t i);
bool payload_keys_has(const struct payload_keys *keys, struct slice name);

/* Keys the digests over payloads that people are shown: made of the active key, and of use for nothing else. NULL:
 * there is no active key. */
const struct digest *payload_keys_digest_key(const struct payload_keys *keys);

struct seal_place {
    const char *table;
    struct uuid id;      /* the id of the saga, or of the row where it is about none */
    uint64_t number;     /* the number of the first record, or the row's own */
    uint32_t nth;        /* the number of the record within the row */
    struct slice member; /* SLICE_NONE: all of the column */
};

/* Appends the bytes that stand for `text` at this place under the active key, which there must be. */
void payload_keys_seal(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                       struct buffer *out);
/* The same at `out`, which has room for payload_sealed_bytes() of its length. */
size_t payload_sealed_bytes(size_t text_len);
void payload_keys_seal_at(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                          unsigned char *out);
/* Appends the text that was sealed at this place under the key of this name. ERR_CORRUPT: it does not open. ERR_CONFIG:
 * the key is not there. */
MUST_USE enum err_code payload_keys_unseal(const struct payload_keys *keys, const struct seal_place *place,
                                           struct slice name, struct slice sealed, struct buffer *out, struct err *err);

/* What a database keeps about a key that was used in it, to tell it from another one of the same name. */
void payload_keys_put_proof(const struct payload_keys *keys, struct buffer *out); /* the proof of the active key */
/* May sagad run on a database that has used this key? ERR_CONFIG: the key is not there, or it is another one. */
MUST_USE enum err_code payload_keys_check_proof(const struct payload_keys *keys, struct slice name, struct slice proof,
                                                struct err *err);

#endif
