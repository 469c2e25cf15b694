/* Slices compare and trim without copying. A buffer refuses bytes that would take it over its bound. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int slice_compare(struct slice a, struct slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least ? memcmp(a.ptr, b.ptr, least) : 0;

    if (order != 0) {
        return order;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool slice_starts_with(struct slice a, const char *prefix)
{
    size_t len = strlen(prefix);

    return a.len >= len && (len == 0 || memcmp(a.ptr, prefix, len) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

size_t slice_split(struct slice a, char separator, struct slice *parts, size_t parts_max)
{
    size_t count = 0, from = 0;

    for (size_t i = 0; i <= a.len && count < parts_max; i++) {
        if (i == a.len || a.ptr[i] == separator) {
            parts[count++] = (struct slice){a.ptr + from, i - from};
            from = i + 1;
        }
    }
    return count;
}

struct slice slice_trim(struct slice a)
{
    while (a.len > 0 && is_space(a.ptr[0])) {
        a.ptr++;
        a.len--;
    }
    while (a.len > 0 && is_space(a.ptr[a.len - 1])) {
        a.len--;
    }
    return a;
}

bool text_is_utf8(struct slice text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = text.ptr[i] ? utf8_length(text.ptr + i, text.len - i) : 0;

        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

size_t utf8_obeyed(const char *at, size_t len)
{
    const unsigned char *c = (const unsigned char *)at;

    if (len >= 2 && ((c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) || (c[0] == 0xd8 && c[1] == 0x9c))) {
        return 2; /* U+0080 to U+009F; U+061C */
    }
    if (len >= 3 && c[0] == 0xe2 && c[1] == 0x80) {
        return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae)
                   ? 3
                   : 0; /* U+200E, U+200F, U+2028 to U+202E */
    }
    return len >= 3 && c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9 ? 3 : 0; /* U+2066 to U+2069 */
}

bool text_is_shown(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (utf8_obeyed(text.ptr + i, text.len - i) > 0) {
            return false;
        }
    }
    return true;
}

bool text_is_plain(struct slice text, size_t bytes_max)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f) {
            return false;
        }
    }
    return text.len > 0 && text.len <= bytes_max && text_is_utf8(text);
}

struct slice text_as_utf8(struct slice text, struct arena *arena)
{
    static const char replacement[] = "\xef\xbf\xbd";

    if (text_is_utf8(text)) {
        return text;
    }
    char *out = arena_alloc(arena, text.len * (sizeof(replacement) - 1));
    size_t out_len = 0;

    for (size_t i = 0; i < text.len;) {
        size_t len = text.ptr[i] ? utf8_length(text.ptr + i, text.len - i) : 0;

        memcpy(out + out_len, len ? text.ptr + i : replacement, len ? len : sizeof(replacement) - 1);
        out_len += len ? len : sizeof(replacement) - 1;
        i += len ? len : 1;
    }
    return (struct slice){out, out_len};
}

void slice_to_text(char *out, size_t out_bytes, struct slice a)
{
    size_t len = a.len < out_bytes ? a.len : out_bytes - 1;

    if (a.ptr) {
        memcpy(out, a.ptr, len);
    }
    out[a.ptr ? len : 0] = '\0';
}

bool slice_to_i64(struct slice a, int64_t *out)
{
    bool negative = a.len > 0 && a.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t value = 0;

    if (i >= a.len) {
        return false;
    }
    for (; i < a.len; i++) {
        if (a.ptr[i] < '0' || a.ptr[i] > '9') {
            return false;
        }
        int digit = a.ptr[i] - '0';

        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

void buffer_init(struct buffer *buffer, size_t bytes_max)
{
    *buffer = (struct buffer){.bytes_max = bytes_max};
}

void buffer_fini(struct buffer *buffer)
{
    free(buffer->ptr);
    *buffer = (struct buffer){.bytes_max = buffer->bytes_max};
}

void buffer_reset(struct buffer *buffer)
{
    buffer->len = 0;
    buffer->overflow = false;
}

#define SMALL_BYTES 4096 /* a small buffer grows faster: most answers and turns have one or two thousand bytes */

/* Makes room for `len` more bytes and a NUL. */
static bool buffer_reserve(struct buffer *buffer, size_t len)
{
    if (buffer->overflow || len > buffer->bytes_max || buffer->len > buffer->bytes_max - len) {
        buffer->overflow = true;
        return false;
    }
    size_t need = buffer->len + len + 1;

    if (need > buffer->capacity) {
        size_t capacity = buffer->capacity ? buffer->capacity : 256;

        while (capacity < need) {
            capacity *= capacity < SMALL_BYTES ? 4 : 2;
        }
        buffer->ptr = memory_grow(buffer->ptr, capacity);
        buffer->capacity = capacity;
    }
    return true;
}

void buffer_put(struct buffer *buffer, const void *bytes, size_t len)
{
    if (len > 0 && buffer_reserve(buffer, len)) {
        memcpy(buffer->ptr + buffer->len, bytes, len);
        buffer->len += len;
    }
}

char *buffer_extend(struct buffer *buffer, size_t len)
{
    if (!buffer_reserve(buffer, len)) {
        return NULL;
    }
    char *room = buffer->ptr + buffer->len;

    buffer->len += len;
    return room;
}

void buffer_put_slice(struct buffer *buffer, struct slice text)
{
    buffer_put(buffer, text.ptr, text.len);
}

void buffer_put_text(struct buffer *buffer, const char *text)
{
    buffer_put(buffer, text, strlen(text));
}

void buffer_put_char(struct buffer *buffer, char c)
{
    if (buffer_reserve(buffer, 1)) {
        buffer->ptr[buffer->len++] = c;
    }
}

void buffer_put_i64(struct buffer *buffer, int64_t value)
{
    char text[20]; /* the smallest one has 20 characters */
    size_t at = sizeof(text);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        text[--at] = '-';
    }
    buffer_put(buffer, text + at, sizeof(text) - at);
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    char first[256];
    va_list args;

    CHECK(format);
    va_start(args, format);
    int len = vsnprintf(first, sizeof(first), format, args);
    va_end(args);
    CHECK(len >= 0);
    if ((size_t)len < sizeof(first)) {
        buffer_put(buffer, first, (size_t)len);
    } else if (buffer_reserve(buffer, (size_t)len)) {
        va_start(args, format);
        (void)vsnprintf(buffer->ptr + buffer->len, (size_t)len + 1, format, args); /* the length is known */
        va_end(args);
        buffer->len += (size_t)len;
    }
}

struct slice buffer_slice(const struct buffer *buffer)
{
    return buffer->ptr ? (struct slice){buffer->ptr, buffer->len} : SLICE("");
}

const char *buffer_c(struct buffer *buffer)
{
    if (!buffer->ptr) {
        return "";
    }
    buffer->ptr[buffer->len] = '\0';
    return buffer->ptr;
}
