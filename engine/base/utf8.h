/*
 * Well-formed UTF-8, as Unicode 15, table 3-7, has it: nothing overlong, no surrogates, nothing beyond U+10FFFF.
 *
 * All text from outside passes this before anything is made of it. Bytes that are not UTF-8 cannot be written into the
 * log as they are, so two texts that differ in memory could be one after they were read back.
 */
#ifndef SAGAD_BASE_UTF8_H
#define SAGAD_BASE_UTF8_H

#include "base/arena.h"
#include "base/text.h"

/* The length of the character at `at`, which has `left` bytes (1 and more); 0 when it is not well-formed. */
static inline size_t utf8_length(const char *at, size_t left)
{
    const unsigned char *p = (const unsigned char *)at;

    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        return left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    }
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        unsigned char low = p[0] == 0xe0 ? 0xa0 : 0x80, high = p[0] == 0xed ? 0x9f : 0xbf;

        return left >= 3 && p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        unsigned char low = p[0] == 0xf0 ? 0x90 : 0x80, high = p[0] == 0xf4 ? 0x8f : 0xbf;

        return left >= 4 && p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80 ? 4 : 0;
    }
    return 0;
}

/* True of well-formed text without NUL, the empty text too: what a record and a row of PostgreSQL can keep as it is. */
bool text_is_utf8(struct slice text);
/*
 * Bytes of the character at `at` if a terminal does not show it but obeys it: a C1 control, a line or paragraph
 * separator, or one that changes the direction of the text; 0: it is shown. With these a text reads as another one than
 * it is.
 */
size_t utf8_obeyed(const char *at, size_t len);
bool text_is_shown(struct slice text); /* it has none of them */
/* The text itself where it is that; else a copy in which U+FFFD stands for each byte that does not belong. */
struct slice text_as_utf8(struct slice text, struct arena *arena);

#endif
