/* JSON Web Tokens and sealed payloads have bytes in texts. Only the one canonical form of bytes is read, so that no
 * text can be changed without changing what it stands for. */
#include "base/base64url.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int value_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '-'             ? 62
           : c == '_'             ? 63
                                  : -1;
}

struct slice base64url_read(struct slice text, struct arena *arena)
{
    unsigned char *out = arena_alloc(arena, text.len * 3 / 4 + 1);
    uint32_t bits = 0, bit_count = 0;
    size_t len = 0;

    if (text.len % 4 == 1) {
        return SLICE_NONE;
    }
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);

        if (value < 0) {
            return SLICE_NONE;
        }
        bits = (bits << 6 | (uint32_t)value) & 0xffff;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[len++] = (unsigned char)(bits >> bit_count);
        }
    }
    if (bits & ((1u << bit_count) - 1)) { /* another text would stand for the same bytes */
        return SLICE_NONE;
    }
    return (struct slice){(const char *)out, len};
}

void base64url_write(struct slice bytes, char *out)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    size_t left = bytes.len;

    for (; left >= 3; left -= 3, at += 3) {
        uint32_t three = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];

        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = digits[three >> 6 & 63];
        *out++ = digits[three & 63];
    }
    if (left > 0) {
        uint32_t two = (uint32_t)at[0] << 8 | (left > 1 ? at[1] : 0);

        *out++ = digits[two >> 10];
        *out++ = digits[two >> 4 & 63];
        if (left > 1) {
            *out++ = digits[two << 2 & 63];
        }
    }
}
