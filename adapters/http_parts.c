/* Text in, text out: what an HTTP request is put together from. */
#include "adapters/http_parts.h"

#include <string.h>

#include "adapters/settings.h"
#include "base/json.h"

static void put_percent(struct buffer *out, struct slice text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] && strchr(plain, text.ptr[i])) {
            buffer_put_char(out, text.ptr[i]);
        } else {
            buffer_printf(out, "%%%02X", (unsigned)(unsigned char)text.ptr[i]);
        }
    }
}

struct slice url_add_parameter(struct slice url, struct slice name, struct slice value, struct arena *arena)
{
    const char *hash = url.len ? memchr(url.ptr, '#', url.len) : NULL;
    const char *mark;
    struct buffer out;
    struct slice result;

    if (hash) {
        url.len = (size_t)(hash - url.ptr); /* a fragment is never sent */
    }
    mark = url.len ? memchr(url.ptr, '?', url.len) : NULL;
    buffer_init(&out, url.len + 3 * (name.len + value.len) + 3);
    buffer_put_slice(&out, url);
    if (!mark) {
        buffer_put_char(&out, '?');
    } else if (url.ptr[url.len - 1] != '?' && url.ptr[url.len - 1] != '&') {
        buffer_put_char(&out, '&');
    }
    put_percent(&out, name);
    buffer_put_char(&out, '=');
    put_percent(&out, value);
    CHECK(!out.overflow);
    result = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return result;
}

static struct slice add_value(struct slice url, struct slice name, struct slice value, struct arena *arena)
{
    struct slice text;

    if (json_type(value) == JSON_NULL) {
        return url;
    }
    text = setting_text(value, arena);
    return text.ptr ? url_add_parameter(url, name, text, arena) : SLICE_NONE;
}

/* The name of a member as it was meant, without its escapes. */
static struct slice member_name(struct slice raw, struct arena *arena)
{
    return json_string(arena_printf(arena, "\"%.*s\"", SLICE_ARG(raw)), arena);
}

struct slice url_add_query(struct slice url, struct slice query, struct arena *arena)
{
    struct json_walk walk = json_walk(query);
    struct slice raw, value, element;

    while (url.ptr && json_next_member(&walk, &raw, &value)) {
        struct slice name = member_name(raw, arena);

        if (json_type(value) == JSON_ARRAY) {
            struct json_walk elements = json_walk(value);

            while (url.ptr && json_next_element(&elements, &element)) {
                url = add_value(url, name, element, arena);
            }
        } else {
            url = add_value(url, name, value, arena);
        }
    }
    return url;
}

/* The first part of a pointer, ~1 and ~0 undone, and what is behind it. */
static struct slice pointer_split(struct slice pointer, struct slice *rest, struct arena *arena)
{
    const char *slash = memchr(pointer.ptr + 1, '/', pointer.len - 1);
    size_t len = slash ? (size_t)(slash - pointer.ptr) : pointer.len;
    char *part = arena_alloc(arena, len + 1);
    size_t out = 0;

    for (size_t i = 1; i < len; i++) {
        if (pointer.ptr[i] == '~' && i + 1 < len && (pointer.ptr[i + 1] == '0' || pointer.ptr[i + 1] == '1')) {
            part[out++] = pointer.ptr[++i] == '1' ? '/' : '~';
        } else {
            part[out++] = pointer.ptr[i];
        }
    }
    *rest = (struct slice){pointer.ptr + len, pointer.len - len};
    return (struct slice){part, out};
}

static bool put_at(struct buffer *out, struct slice body, struct slice pointer, struct slice value, struct arena *arena);

static bool put_in_object(struct buffer *out, struct slice body, struct slice part, struct slice rest, struct slice value,
                          struct arena *arena)
{
    struct json_walk walk = json_walk(body);
    struct slice raw, member;
    bool found = false, ok = true;
    const char *comma = "";

    buffer_put_char(out, '{');
    while (ok && json_next_member(&walk, &raw, &member)) {
        bool here = slice_equal(member_name(raw, arena), part);

        buffer_printf(out, "%s\"%.*s\":", comma, SLICE_ARG(raw));
        comma = ",";
        found = found || here;
        if (here) {
            ok = put_at(out, member, rest, value, arena);
        } else {
            buffer_put_slice(out, member);
        }
    }
    if (ok && !found) {
        buffer_put_text(out, comma);
        json_put_string(out, part);
        buffer_put_char(out, ':');
        ok = put_at(out, SLICE("{}"), rest, value, arena);
    }
    buffer_put_char(out, '}');
    return ok;
}

static bool put_in_array(struct buffer *out, struct slice body, struct slice part, struct slice rest, struct slice value,
                         struct arena *arena)
{
    struct json_walk walk = json_walk(body);
    struct slice element;
    int64_t wanted, at = 0;
    bool ok = true;

    if (slice_is(part, "-")) {
        wanted = (int64_t)json_count(body);
    } else if (!slice_to_i64(part, &wanted) || wanted < 0) {
        return false;
    }
    buffer_put_char(out, '[');
    for (; ok && json_next_element(&walk, &element); at++) {
        buffer_put_text(out, at ? "," : "");
        if (at == wanted) {
            ok = put_at(out, element, rest, value, arena);
        } else {
            buffer_put_slice(out, element);
        }
    }
    if (ok && at <= wanted) {
        buffer_put_text(out, at ? "," : "");
        ok = at == wanted && put_at(out, SLICE("{}"), rest, value, arena);
    }
    buffer_put_char(out, ']');
    return ok;
}

/* Recursion ends with the pointer, which a definition's check has bounded. */
static bool put_at(struct buffer *out, struct slice body, struct slice pointer, struct slice value, struct arena *arena)
{
    struct slice part, rest;

    if (pointer.len == 0) {
        buffer_put_slice(out, value);
        return true;
    }
    if (pointer.ptr[0] != '/') {
        return false;
    }
    part = pointer_split(pointer, &rest, arena);
    if (json_type(body) == JSON_OBJECT) {
        return put_in_object(out, body, part, rest, value, arena);
    }
    return json_type(body) == JSON_ARRAY && put_in_array(out, body, part, rest, value, arena);
}

struct slice body_set(struct slice body, struct slice pointer, struct slice value, struct arena *arena)
{
    struct slice result = SLICE_NONE;
    struct buffer out;

    buffer_init(&out, body.len + value.len + 8 * pointer.len + 64);
    if (put_at(&out, body, pointer, value, arena) && !out.overflow) {
        result = arena_slice(arena, buffer_slice(&out));
    }
    buffer_fini(&out);
    return result;
}
