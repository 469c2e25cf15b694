/* Writes JSON. The output is always valid, whatever text goes in. */
#include "base/json.h"

#include <string.h>

#include "base/check.h"
#include "base/instant.h"
#include "base/utf8.h"

#define EACH_BYTE (UINT64_C(0x0101010101010101))
#define HIGH_BITS (EACH_BYTE * 0x80)

/* Checks eight characters at once: a bit is set if any is below 0x20, a quote, a backslash or not ASCII. */
static inline uint64_t odd_bits(uint64_t eight)
{
    uint64_t quote = eight ^ EACH_BYTE * '"', backslash = eight ^ EACH_BYTE * '\\';

    return (eight | ((eight - EACH_BYTE * 0x20) & ~eight) | ((quote - EACH_BYTE) & ~quote) |
            ((backslash - EACH_BYTE) & ~backslash)) &
           HIGH_BITS;
}

static inline uint64_t eight_at(const char *p)
{
    uint64_t eight;

    memcpy(&eight, p, sizeof(eight));
    return eight;
}

/* Is there nothing to escape? The last two words overlap when the length is not a multiple of eight. */
static inline bool is_plain(const char *p, size_t len)
{
    uint64_t odd = 0;
    uint32_t first, last;

    if (len >= 8) {
        for (size_t i = 0; i + 8 < len; i += 8) {
            odd |= odd_bits(eight_at(p + i));
        }
        return (odd | odd_bits(eight_at(p + len - 8))) == 0;
    }
    if (len >= 4) {
        memcpy(&first, p, sizeof(first));
        memcpy(&last, p + len - 4, sizeof(last));
        return odd_bits((uint64_t)first << 32 | last) == 0;
    }
    for (size_t i = 0; i < len; i++) {
        odd |= odd_bits((EACH_BYTE * ' ' ^ ' ') | (unsigned char)p[i]);
    }
    return odd == 0;
}

static void put_plain(struct buffer *out, struct slice text)
{
    char *room = buffer_extend(out, text.len + 2);

    if (room) {
        room[0] = '"';
        if (text.len > 0) {
            memcpy(room + 1, text.ptr, text.len);
        }
        room[text.len + 1] = '"';
    }
}

void json_put_string(struct buffer *out, struct slice text)
{
    size_t from = 0, i = 0;

    if (is_plain(text.ptr, text.len)) {
        put_plain(out, text);
        return;
    }
    buffer_put_char(out, '"');
    while (i < text.len) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            i++;
            continue;
        }
        size_t good = c >= 0x80 ? utf8_length(text.ptr + i, text.len - i) : 0;

        if (good > 0) {
            i += good;
            continue;
        }
        buffer_put(out, text.ptr + from, i - from);
        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};

            buffer_put(out, pair, 2);
        } else if (c == '\n') {
            buffer_put_text(out, "\\n");
        } else if (c == '\r') {
            buffer_put_text(out, "\\r");
        } else if (c == '\t') {
            buffer_put_text(out, "\\t");
        } else if (c == 0 || c >= 0x80) {
            buffer_put_text(out, "\xef\xbf\xbd"); /* U+FFFD: U+0000 is refused on the way in, so it must not go out */
        } else {
            buffer_printf(out, "\\u%04x", c);
        }
        from = ++i;
    }
    buffer_put(out, text.ptr ? text.ptr + from : "", i - from);
    buffer_put_char(out, '"');
}

void json_writer_init(struct json_writer *w, struct buffer *out)
{
    *w = (struct json_writer){.out = out};
}

/* A name that has to be escaped. */
static char *lead_escaped(struct json_writer *w, struct json_name name, bool has_comma, size_t more)
{
    if (has_comma) {
        buffer_put_char(w->out, ',');
    }
    json_put_string(w->out, (struct slice){name.ptr, name.len});
    buffer_put_char(w->out, ':');
    return buffer_extend(w->out, more);
}

/* Writes the comma before a value and its name, and makes room for `more` bytes that the caller fills. */
static char *lead(struct json_writer *w, struct json_name name, size_t more)
{
    uint64_t bit = UINT64_C(1) << w->depth;
    bool has_comma = (w->has_items & bit) != 0;

    w->has_items |= bit;
    INVARIANT(!name.is_plain || !name.ptr || is_plain(name.ptr, name.len));
    if (name.ptr && !name.is_plain && !is_plain(name.ptr, name.len)) {
        return lead_escaped(w, name, has_comma, more);
    }
    char *at = buffer_extend(w->out, has_comma + (name.ptr ? name.len + 3 : 0) + more);

    if (!at) {
        return NULL;
    }
    if (has_comma) {
        *at++ = ',';
    }
    if (name.ptr) {
        *at++ = '"';
        memcpy(at, name.ptr, name.len);
        at += name.len;
        *at++ = '"';
        *at++ = ':';
    }
    return at;
}

static void level_open(struct json_writer *w, struct json_name name, char c)
{
    json_named_raw(w, name, (struct slice){&c, 1});
    w->depth++;
    CHECK(w->depth < 64);
    w->has_items &= ~(UINT64_C(1) << w->depth);
}

static void level_close(struct json_writer *w, char c)
{
    CHECK(w->depth > 0);
    w->depth--;
    buffer_put_char(w->out, c);
}

void json_named_object(struct json_writer *w, struct json_name name)
{
    level_open(w, name, '{');
}

void json_object_end(struct json_writer *w)
{
    level_close(w, '}');
}

void json_named_array(struct json_writer *w, struct json_name name)
{
    level_open(w, name, '[');
}

void json_array_end(struct json_writer *w)
{
    level_close(w, ']');
}

void json_named_raw(struct json_writer *w, struct json_name name, struct slice json)
{
    struct slice value = json.ptr ? json : SLICE("null");
    char *at = lead(w, name, value.len);

    if (at && value.len > 0) {
        memcpy(at, value.ptr, value.len);
    }
}

void json_named_slice(struct json_writer *w, struct json_name name, struct slice text)
{
    if (!text.ptr) {
        json_named_raw(w, name, SLICE_NONE);
    } else if (is_plain(text.ptr, text.len)) {
        char *at = lead(w, name, text.len + 2);

        if (at) {
            *at++ = '"';
            memcpy(at, text.ptr, text.len);
            at[text.len] = '"';
        }
    } else {
        (void)lead(w, name, 0);
        json_put_string(w->out, text);
    }
}

void json_named_i64(struct json_writer *w, struct json_name name, int64_t value)
{
    (void)lead(w, name, 0);
    buffer_put_i64(w->out, value);
}

void json_named_instant(struct json_writer *w, struct json_name name, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    if (ms == 0) {
        json_named_raw(w, name, SLICE_NONE);
        return;
    }
    instant_text(ms, text);
    json_named_slice(w, name, slice_of(text));
}

struct slice json_pointer_join(struct arena *arena, struct slice pointer, struct slice part)
{
    char *joined = arena_alloc(arena, pointer.len + 2 * part.len + 2);
    size_t len = pointer.len;

    if (len > 0) {
        memcpy(joined, pointer.ptr, len);
    }
    joined[len++] = '/';
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == '~' || part.ptr[i] == '/') {
            joined[len++] = '~';
            joined[len++] = part.ptr[i] == '~' ? '0' : '1';
        } else {
            joined[len++] = part.ptr[i];
        }
    }
    return (struct slice){joined, len};
}
