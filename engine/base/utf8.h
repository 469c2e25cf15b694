/*
 * Well-formed UTF-8 as in Unicode 15, table 3-7: nothing overlong, no surrogates, nothing beyond U+10FFFF.
 *
 * All text from outside passes this check before it is used. The log cannot keep bytes that are not UTF-8, so two texts
 * that differ in memory could be equal after they are read back.
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

/* True for well-formed text without NUL, also for the empty text. Records and rows of PostgreSQL keep such text
 * unchanged. */
bool text_is_utf8(struct slice text);
/* 1 to `bytes_max` bytes of UTF-8, no control characters. */
bool text_is_plain(struct slice text, size_t bytes_max);
/*
 * The length of the character at `at` if a terminal obeys it instead of showing it; 0 if it is shown. Such characters
 * are C1 controls, line and paragraph separators, and those that change the direction of the text. They make a text
 * look like a different one.
 */
size_t utf8_obeyed(const char *at, size_t len);
bool text_is_shown(struct slice text); /* it holds none of these characters */
/* The text itself if it is well-formed, otherwise a copy with U+FFFD for each byte that does not belong. */
struct slice text_as_utf8(struct slice text, struct arena *arena);

#endif
