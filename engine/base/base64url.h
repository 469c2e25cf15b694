/* base64url (RFC 4648) without padding. */
#ifndef SAGAD_BASE_BASE64URL_H
#define SAGAD_BASE_BASE64URL_H

#include "base/arena.h"

/* Reads its one canonical form. SLICE_NONE: it is none. */
struct slice base64url_read(struct slice text, struct arena *arena);

static inline size_t base64url_length(size_t bytes)
{
    return (bytes * 4 + 2) / 3;
}
/* Writes base64url_length() characters, without a NUL. The bytes may be the last ones of where the characters go. */
void base64url_write(struct slice bytes, char *out);

#endif
