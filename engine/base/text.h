/*
 * Borrowed text, and a growing buffer that knows how large it may become.
 *
 * A slice borrows bytes that somebody else owns; it is not NUL-terminated. Print it with "%.*s", SLICE_ARG(s).
 */
#ifndef SAGAD_BASE_TEXT_H
#define SAGAD_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

struct slice {
    const char *ptr;
    size_t len;
};

#define SLICE(literal) ((struct slice){("" literal), sizeof(literal) - 1})
#define SLICE_ARG(s) (int)(s).len, (s).ptr
#define SLICE_NONE ((struct slice){NULL, 0})

/* These three are inline, so that the compiler knows the length of a literal. */

/* A NUL-terminated string, borrowed; NULL gives SLICE_NONE. */
static inline struct slice slice_of(const char *text)
{
    return text ? (struct slice){text, strlen(text)} : SLICE_NONE;
}

int hex_digit(char c); /* the value of a hexadecimal digit, of either case; -1: it is none */

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool slice_is(struct slice a, const char *text) /* byte for byte */
{
    return slice_equal(a, slice_of(text));
}

int slice_compare(struct slice a, struct slice b); /* memcmp order, shorter first */
bool slice_starts_with(struct slice a, const char *prefix);
/* Finds the parts between separators; between two adjacent separators lies an empty part. Returns how many it found,
 * and stops at `parts_max`. */
size_t slice_split(struct slice a, char separator, struct slice *parts, size_t parts_max);
struct slice slice_trim(struct slice a); /* drops leading and trailing space, tab, CR, LF */
/* Copies `a` with a NUL, cut if it is too long. SLICE_NONE gives "". */
void slice_to_text(char *out, size_t out_bytes, struct slice a);
bool slice_to_i64(struct slice a, int64_t *out); /* decimal with optional '-'; false on overflow or anything else */

/*
 * A buffer grows up to `bytes_max`. Text that does not fit is dropped whole, and `overflow` becomes true and stays
 * true: check it once at the end. The memory is the buffer's; buffer_fini() accepts a zeroed struct.
 */
struct buffer {
    char *ptr;
    size_t len, capacity, bytes_max;
    bool overflow;
};

void buffer_init(struct buffer *buffer, size_t bytes_max);
void buffer_fini(struct buffer *buffer);
void buffer_reset(struct buffer *buffer); /* empties it, keeps the memory */
void buffer_put(struct buffer *buffer, const void *bytes, size_t len);
char *buffer_extend(struct buffer *buffer,
                    size_t len); /* appends `len` bytes for the caller to fill; NULL: over the bound */
void buffer_put_slice(struct buffer *buffer, struct slice text);
void buffer_put_text(struct buffer *buffer, const char *text);
void buffer_put_char(struct buffer *buffer, char c);
void buffer_put_i64(struct buffer *buffer, int64_t value); /* decimal */
void buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
struct slice buffer_slice(const struct buffer *buffer); /* borrowed until the next change */
const char *buffer_c(struct buffer *buffer);            /* NUL-terminated, borrowed until the next change */

#endif
