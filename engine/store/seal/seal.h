/*
 * What of a row is sealed. Payloads are, and texts that may quote them; keys of operations, steps, times and states
 * stay readable, for lists, views and people.
 *
 * In a record the member `args` becomes `~args`, with "KEY.TEXT" (base64url) for its value. No member of a record
 * begins with "~", and the members of payloads are never looked at, so nobody outside can make one. A column that is
 * sealed whole is "~KEY." and bytes, which no JSON and no state of a run begins with.
 *
 * `keys` may be NULL: then nothing is sealed, and what is sealed does not open. What is not sealed is read as it
 * stands, with keys and without.
 */
#ifndef SAGAD_STORE_SEAL_H
#define SAGAD_STORE_SEAL_H

#include "base/arena.h"
#include "base/digest.h"
#include "store/seal/payload_keys.h"

enum seal_shape {
    SEAL_TURN, /* an array of records */
    SEAL_CASE  /* the body of a case or an approval */
};

bool seal_shape_fits(enum seal_shape shape, struct slice text);
/* Appends a text with its payloads sealed. The text fits the shape. */
void seal_members(const struct payload_keys *keys, enum seal_shape shape, const struct seal_place *place,
                  struct slice text, struct buffer *out);
/* `text` itself when nothing in it is sealed, else a copy in the arena. ERR_CONFIG: a key is not there. ERR_CORRUPT: it
 * does not open. */
MUST_USE enum err_code unseal_members(const struct payload_keys *keys, enum seal_shape shape,
                                      const struct seal_place *place, struct slice text, struct arena *arena,
                                      struct slice *out, struct err *err);

/* The same of a whole column. seal_column() gives `text` itself while there is no active key, and SLICE_NONE for none.
 */
struct slice seal_column(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                         struct arena *arena);
void seal_whole(const struct payload_keys *keys, const struct seal_place *place, struct slice text, struct buffer *out);
MUST_USE enum err_code unseal_whole(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                                    struct arena *arena, struct slice *out, struct err *err);

/*
 * The digest of a payload, in a column of its own. A plain one may begin with any byte, so its length tells it from a
 * sealed one, which is longer. A digest of few possible payloads is as good as the payload to whoever reads it; sealed,
 * it needs the key, and it goes on under another key, which a keyed digest could not.
 */
MUST_USE enum err_code unseal_digest(const struct payload_keys *keys, const struct seal_place *place,
                                     struct slice column, struct digest *out, struct err *err);

/* Is every payload in it sealed under this key? A text without payloads is said not to be. */
bool members_under(enum seal_shape shape, struct slice text, struct slice key);
bool column_is_under(struct slice column, struct slice key);

#endif
