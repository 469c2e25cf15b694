/* Writing JSON: what comes out is always valid, whatever the text that goes in. */
#include "base/json.h"

#include <string.h>

#include "base/check.h"

static size_t good_utf8(const unsigned char *p, size_t left)
{
    size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;

    if (len == 0 || len > left) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    return len;
}

void json_put_string(struct buffer *out, struct slice text)
{
    size_t from = 0, i = 0;

    buffer_put_char(out, '"');
    while (i < text.len) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            i++;
            continue;
        }
        size_t good = c >= 0x80 ? good_utf8((const unsigned char *)text.ptr + i, text.len - i) : 0;

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

static void lead(struct json_writer *w, const char *name)
{
    uint64_t bit = UINT64_C(1) << w->depth;

    if (w->has_items & bit) {
        buffer_put_char(w->out, ',');
    }
    w->has_items |= bit;
    if (name) {
        json_put_string(w->out, slice_of(name));
        buffer_put_char(w->out, ':');
    }
}

static void level_open(struct json_writer *w, const char *name, char c)
{
    lead(w, name);
    buffer_put_char(w->out, c);
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

void json_object_begin(struct json_writer *w, const char *name)
{
    level_open(w, name, '{');
}

void json_object_end(struct json_writer *w)
{
    level_close(w, '}');
}

void json_array_begin(struct json_writer *w, const char *name)
{
    level_open(w, name, '[');
}

void json_array_end(struct json_writer *w)
{
    level_close(w, ']');
}

void json_write_raw(struct json_writer *w, const char *name, struct slice json)
{
    lead(w, name);
    buffer_put_slice(w->out, json.ptr ? json : SLICE("null"));
}

void json_write_slice(struct json_writer *w, const char *name, struct slice text)
{
    lead(w, name);
    if (text.ptr) {
        json_put_string(w->out, text);
    } else {
        buffer_put_text(w->out, "null");
    }
}

void json_write_text(struct json_writer *w, const char *name, const char *text)
{
    json_write_slice(w, name, slice_of(text));
}

void json_write_i64(struct json_writer *w, const char *name, int64_t value)
{
    lead(w, name);
    buffer_printf(w->out, "%lld", (long long)value);
}

void json_write_bool(struct json_writer *w, const char *name, bool value)
{
    lead(w, name);
    buffer_put_text(w->out, value ? "true" : "false");
}

void json_write_null(struct json_writer *w, const char *name)
{
    lead(w, name);
    buffer_put_text(w->out, "null");
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
