/* Reads text that json_check() accepted. Nothing here checks syntax again, but nothing reads beyond the end either. */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/check.h"

static const char *space_end(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

static bool has_byte(uint64_t word, unsigned char byte)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t zero_where_equal = word ^ (ones * byte);

    return ((zero_where_equal - ones) & ~zero_where_equal & (ones << 7)) != 0;
}

/* Returns what comes behind the closing quote; `at` is at the opening one. Most bytes of a text are in its strings, so
 * eight of them are looked at at once until a quote or an escape is near. */
static const char *string_end(const char *at, const char *end)
{
    uint64_t word;

    for (at++; (size_t)(end - at) >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (has_byte(word, '"') || has_byte(word, '\\')) {
            break;
        }
    }
    for (; at < end && *at != '"'; at++) {
        if (*at == '\\') {
            at++;
        }
    }
    return at < end ? at + 1 : end;
}

/* The meaning of a byte while a value is skipped; most bytes have none. */
enum mark { MARK_NONE, MARK_QUOTE, MARK_OPENS, MARK_CLOSES, MARK_ENDS };

static const unsigned char marks[256] = {
    ['"'] = MARK_QUOTE, ['{'] = MARK_OPENS, ['['] = MARK_OPENS, ['}'] = MARK_CLOSES, [']'] = MARK_CLOSES,
    [','] = MARK_ENDS,  [' '] = MARK_ENDS,  ['\n'] = MARK_ENDS, ['\r'] = MARK_ENDS,  ['\t'] = MARK_ENDS,
};

static enum mark mark_at(const char *at)
{
    return (enum mark)marks[(unsigned char)*at];
}

static const char *container_end(const char *at, const char *end) /* takes the bracket that opens the container */
{
    size_t depth = 0;

    while (at < end) {
        enum mark mark = mark_at(at);

        if (mark == MARK_QUOTE) {
            at = string_end(at, end);
            continue;
        }
        at++;
        if (mark == MARK_OPENS) {
            depth++;
        } else if (mark == MARK_CLOSES && --depth == 0) {
            return at;
        }
    }
    return end;
}

static const char *value_end(const char *at, const char *end)
{
    if (at >= end) {
        return end;
    }
    if (mark_at(at) == MARK_QUOTE) {
        return string_end(at, end);
    }
    if (mark_at(at) == MARK_OPENS) {
        return container_end(at, end);
    }
    while (at < end && mark_at(at) != MARK_ENDS && mark_at(at) != MARK_CLOSES) {
        at++;
    }
    return at;
}

struct slice json_trim(struct slice value)
{
    return slice_trim(value);
}

enum json_type json_type(struct slice value)
{
    struct slice v = json_trim(value);

    if (!v.ptr || v.len == 0) {
        return JSON_NONE;
    }
    switch (v.ptr[0]) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

const char *json_type_name(enum json_type type)
{
    switch (type) {
    case JSON_NONE:
        return "nothing";
    case JSON_NULL:
        return "null";
    case JSON_BOOL:
        return "boolean";
    case JSON_NUMBER:
        return "number";
    case JSON_STRING:
        return "string";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    }
    UNREACHABLE();
}

struct json_walk json_walk(struct slice container)
{
    struct slice v = json_trim(container);

    if (!v.ptr || v.len < 2 || (v.ptr[0] != '{' && v.ptr[0] != '[')) {
        return (struct json_walk){0};
    }
    return (struct json_walk){.at = v.ptr + 1, .end = v.ptr + v.len - 1};
}

static bool walk_on(struct json_walk *walk)
{
    walk->at = walk->at ? space_end(walk->at, walk->end) : NULL;
    if (walk->at >= walk->end) {
        return false;
    }
    if (walk->started && *walk->at == ',') {
        walk->at = space_end(walk->at + 1, walk->end);
    }
    walk->started = true;
    return walk->at < walk->end;
}

bool json_next_member(struct json_walk *walk, struct slice *name_raw, struct slice *value)
{
    if (!walk_on(walk) || *walk->at != '"') {
        return false;
    }
    const char *name = walk->at, *name_end = string_end(walk->at, walk->end);

    *name_raw = (struct slice){name + 1, (size_t)(name_end - name) - 2};
    walk->at = space_end(name_end, walk->end);
    walk->at = space_end(walk->at < walk->end ? walk->at + 1 : walk->end, walk->end); /* the colon */
    const char *end = value_end(walk->at, walk->end);

    *value = (struct slice){walk->at, (size_t)(end - walk->at)};
    walk->at = end;
    return true;
}

bool json_next_element(struct json_walk *walk, struct slice *value)
{
    if (!walk_on(walk)) {
        return false;
    }
    const char *end = value_end(walk->at, walk->end);

    *value = (struct slice){walk->at, (size_t)(end - walk->at)};
    walk->at = end;
    return true;
}

static unsigned hex_unit(const char *p)
{
    unsigned value = 0;

    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];

        value = value << 4 | (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
}

/* Writes one character of a raw string as UTF-8 and returns the number of raw bytes it took. */
static size_t unescape_one(struct slice raw, size_t at, char out[4], size_t *out_len)
{
    if (raw.ptr[at] != '\\' || at + 1 >= raw.len) {
        out[0] = raw.ptr[at];
        *out_len = 1;
        return 1;
    }
    *out_len = 1;
    switch (raw.ptr[at + 1]) {
    case 'b':
        out[0] = '\b';
        return 2;
    case 'f':
        out[0] = '\f';
        return 2;
    case 'n':
        out[0] = '\n';
        return 2;
    case 'r':
        out[0] = '\r';
        return 2;
    case 't':
        out[0] = '\t';
        return 2;
    case 'u':
        break;
    default:
        out[0] = raw.ptr[at + 1];
        return 2;
    }
    if (at + 6 > raw.len) {
        out[0] = raw.ptr[at];
        return 1;
    }
    unsigned c = hex_unit(raw.ptr + at + 2);
    size_t taken = 6;

    if (c >= 0xd800 && c <= 0xdbff && at + 12 <= raw.len) {
        c = 0x10000 + ((c - 0xd800) << 10) + (hex_unit(raw.ptr + at + 8) - 0xdc00);
        taken = 12;
    }
    if (c < 0x80) {
        out[0] = (char)c;
    } else if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        *out_len = 2;
    } else if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        *out_len = 3;
    } else {
        out[0] = (char)(0xf0 | c >> 18);
        out[1] = (char)(0x80 | (c >> 12 & 63));
        out[2] = (char)(0x80 | (c >> 6 & 63));
        out[3] = (char)(0x80 | (c & 63));
        *out_len = 4;
    }
    return taken;
}

static bool raw_is(struct slice raw, struct slice text)
{
    if (!memchr(raw.ptr, '\\', raw.len)) {
        return slice_equal(raw, text);
    }
    size_t at = 0, k = 0;

    while (at < raw.len) {
        char c[4];
        size_t len;

        at += unescape_one(raw, at, c, &len);
        if (text.len - k < len || memcmp(text.ptr + k, c, len) != 0) {
            return false;
        }
        k += len;
    }
    return k == text.len;
}

static struct slice member(struct slice object, struct slice name)
{
    struct slice v = json_trim(object), raw, value;

    if (!v.ptr || v.len == 0 || v.ptr[0] != '{') {
        return SLICE_NONE;
    }
    struct json_walk walk = json_walk(v);

    while (json_next_member(&walk, &raw, &value)) {
        if (raw_is(raw, name)) {
            return value;
        }
    }
    return SLICE_NONE;
}

struct slice json_member(struct slice object, const char *name)
{
    return member(object, slice_of(name));
}

struct slice json_element(struct slice array, size_t index)
{
    struct slice v = json_trim(array), value;

    if (!v.ptr || v.len == 0 || v.ptr[0] != '[') {
        return SLICE_NONE;
    }
    struct json_walk walk = json_walk(v);

    while (json_next_element(&walk, &value)) {
        if (index-- == 0) {
            return value;
        }
    }
    return SLICE_NONE;
}

size_t json_count(struct slice container)
{
    struct json_walk walk = json_walk(container);
    bool object = json_type(container) == JSON_OBJECT;
    struct slice name, value;
    size_t count = 0;

    while (object ? json_next_member(&walk, &name, &value) : json_next_element(&walk, &value)) {
        count++;
    }
    return count;
}

/* Unescapes a part of a pointer that has a ~ into `part`. False when the escape is not a valid one. */
static bool unescape_part(struct slice raw, struct buffer *part)
{
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];

        if (c == '~') {
            if (++i == raw.len || (raw.ptr[i] != '0' && raw.ptr[i] != '1')) {
                return false;
            }
            c = raw.ptr[i] == '0' ? '~' : '/';
        }
        buffer_put_char(part, c);
    }
    return true;
}

static struct slice child(struct slice value, struct slice part)
{
    int64_t index;

    if (json_type(value) != JSON_ARRAY) {
        return member(value, part);
    }
    if (part.len == 0 || part.ptr[0] == '-' || (part.ptr[0] == '0' && part.len > 1) || !slice_to_i64(part, &index)) {
        return SLICE_NONE;
    }
    return json_element(value, (size_t)index);
}

struct slice json_at(struct slice value, struct slice pointer)
{
    struct slice found = json_trim(value);

    while (pointer.len > 0 && found.ptr) {
        if (pointer.ptr[0] != '/') {
            return SLICE_NONE;
        }
        const char *first = pointer.ptr + 1, *end = pointer.ptr + pointer.len;
        const char *slash = memchr(first, '/', (size_t)(end - first));
        struct slice part = {first, (size_t)((slash ? slash : end) - first)};

        if (memchr(part.ptr, '~', part.len)) {
            struct buffer plain;

            buffer_init(&plain, part.len);
            found = unescape_part(part, &plain) ? child(found, buffer_slice(&plain)) : SLICE_NONE;
            buffer_fini(&plain);
        } else {
            found = child(found, part);
        }
        pointer = (struct slice){first + part.len, (size_t)(end - first) - part.len};
    }
    return found;
}

struct slice json_string(struct slice value, struct arena *arena)
{
    struct slice v = json_trim(value);

    if (!v.ptr || v.len < 2 || v.ptr[0] != '"') {
        return SLICE_NONE;
    }
    struct slice raw = {v.ptr + 1, v.len - 2};

    if (!memchr(raw.ptr, '\\', raw.len)) {
        return raw;
    }
    char *text = arena_alloc(arena, raw.len + 4);
    size_t len = 0, at = 0;

    while (at < raw.len) {
        size_t got;

        at += unescape_one(raw, at, text + len, &got);
        len += got;
    }
    text[len] = '\0';
    return (struct slice){text, len};
}

bool json_string_is(struct slice value, const char *text)
{
    struct slice v = json_trim(value);

    return v.ptr && v.len >= 2 && v.ptr[0] == '"' && raw_is((struct slice){v.ptr + 1, v.len - 2}, slice_of(text));
}

bool json_i64(struct slice value, int64_t *out)
{
    struct slice v = json_trim(value);

    if (json_type(v) != JSON_NUMBER) {
        return false;
    }
    if (slice_to_i64(v, out)) {
        return true;
    }
    /* The number has a fraction or an exponent: moving the point by the exponent must leave an integer. */
    bool negative = v.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t exponent = 0, shift = 0;
    size_t mantissa_end = i;

    while (mantissa_end < v.len && v.ptr[mantissa_end] != 'e' && v.ptr[mantissa_end] != 'E') {
        mantissa_end++;
    }
    if (mantissa_end < v.len) {
        struct slice e = {v.ptr + mantissa_end + 1, v.len - mantissa_end - 1};

        if (e.len > 0 && e.ptr[0] == '+') {
            e.ptr++;
            e.len--;
        }
        if (!slice_to_i64(e, &exponent)) {
            return false;
        }
    }
    int64_t result = 0;
    int64_t zeros = 0; /* zeros held back, because trailing ones may fall behind the point */
    bool point = false;

    for (; i < mantissa_end; i++) {
        if (v.ptr[i] == '.') {
            point = true;
            continue;
        }
        shift -= point;
        zeros++;
        if (v.ptr[i] != '0') {
            for (; zeros > 0; zeros--) {
                if (__builtin_mul_overflow(result, 10, &result)) {
                    return false;
                }
            }
            int digit = v.ptr[i] - '0';

            if (__builtin_add_overflow(result, negative ? -digit : digit, &result)) {
                return false;
            }
        }
    }
    if (result == 0) {
        *out = 0;
        return true;
    }
    int64_t power = exponent + shift + zeros;

    if (power < 0 || power > 18) {
        return false;
    }
    for (; power > 0; power--) {
        if (__builtin_mul_overflow(result, 10, &result)) {
            return false;
        }
    }
    *out = result;
    return true;
}

bool json_bool(struct slice value, bool *out)
{
    struct slice v = json_trim(value);

    if (json_type(v) != JSON_BOOL) {
        return false;
    }
    *out = v.ptr[0] == 't';
    return true;
}

static void release_tree(void *tree)
{
    cJSON_Delete(tree);
}

struct cJSON *json_tree(struct slice text, struct arena *arena)
{
    const char *copy = arena_text(arena, text);
    cJSON *tree = cJSON_ParseWithLengthOpts(copy, text.len + 1, NULL, 1);

    if (tree) {
        arena_on_release(arena, release_tree, tree);
    }
    return tree;
}
