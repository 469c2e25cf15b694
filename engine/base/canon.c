/* One recursive pass that sorts the members of each object; the depth is bounded by json_check(). */
#include "base/canon.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct canon_state {
    struct arena *arena;
    struct buffer out;
    const struct slice *leave_out;
    size_t leave_out_count;
};

/*
 * Numbers: value = digits * 10^exponent with no zeros at either end of the digits. It is written as an integer or a
 * decimal fraction while that stays short, and as DIGITSeEXPONENT otherwise. Zero and negative zero are 0.
 */
static void put_number(struct canon_state *state, struct slice number)
{
    bool negative = number.ptr[0] == '-';
    char *digits = arena_alloc(state->arena, number.len + 1);
    size_t count = 0, i = negative ? 1 : 0;
    int64_t exponent = 0;
    bool point = false;

    for (; i < number.len && number.ptr[i] != 'e' && number.ptr[i] != 'E'; i++) {
        if (number.ptr[i] == '.') {
            point = true;
            continue;
        }
        exponent -= point;
        if (count > 0 || number.ptr[i] != '0') {
            digits[count++] = number.ptr[i];
        }
    }
    if (i < number.len) {
        int64_t written = 0;
        struct slice e = {number.ptr + i + 1, number.len - i - 1};

        if (e.len > 0 && e.ptr[0] == '+') {
            e.ptr++;
            e.len--;
        }
        (void)slice_to_i64(e, &written); /* bounded by json_check() */
        exponent += written;
    }
    while (count > 0 && digits[count - 1] == '0') {
        count--;
        exponent++;
    }
    if (count == 0) {
        buffer_put_char(&state->out, '0');
        return;
    }
    if (negative) {
        buffer_put_char(&state->out, '-');
    }
    int64_t point_at = (int64_t)count + exponent; /* digits before the decimal point */

    if (exponent >= 0 && point_at <= 40) {
        buffer_put(&state->out, digits, count);
        for (; exponent > 0; exponent--) {
            buffer_put_char(&state->out, '0');
        }
    } else if (exponent < 0 && point_at > 0 && count <= 40) {
        buffer_put(&state->out, digits, (size_t)point_at);
        buffer_put_char(&state->out, '.');
        buffer_put(&state->out, digits + point_at, count - (size_t)point_at);
    } else if (exponent < 0 && point_at <= 0 && exponent >= -40) {
        buffer_put_text(&state->out, "0.");
        for (; point_at < 0; point_at++) {
            buffer_put_char(&state->out, '0');
        }
        buffer_put(&state->out, digits, count);
    } else {
        buffer_put(&state->out, digits, count);
        buffer_printf(&state->out, "e%lld", (long long)exponent);
    }
}

/* Strings follow RFC 8785, 3.2.2.2: escape only what must be, with two-character escapes where they exist and \u00xx in
 * lower case otherwise. */
static void put_text(struct canon_state *state, struct slice text)
{
    static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";

    size_t from = 0;

    buffer_put_char(&state->out, '"');
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if ((unsigned char)c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        const char *at = c ? strchr(special, c) : NULL;

        buffer_put(&state->out, text.ptr + from, i - from);
        from = i + 1;
        if (at) {
            char pair[2] = {'\\', letter[at - special]};

            buffer_put(&state->out, pair, 2);
        } else {
            buffer_printf(&state->out, "\\u%04x", (unsigned)c);
        }
    }
    buffer_put(&state->out, text.ptr + from, text.len - from);
    buffer_put_char(&state->out, '"');
}

struct canon_member {
    struct slice name, value;
};

/* The order of RFC 8785, 3.2.3: by UTF-16 code units. It differs from byte order only where a character beyond U+FFFF
 * meets one from U+E000. */
static int compare_members(const void *a, const void *b)
{
    const struct canon_member *x = a, *y = b;
    size_t least = x->name.len < y->name.len ? x->name.len : y->name.len, i = 0;

    while (i < least && x->name.ptr[i] == y->name.ptr[i]) {
        i++;
    }
    if (i == least) {
        return (x->name.len > y->name.len) - (x->name.len < y->name.len);
    }
    unsigned char p = (unsigned char)x->name.ptr[i], q = (unsigned char)y->name.ptr[i];

    if (p >= 0xf0 && q >= 0xee && q < 0xf0) {
        return -1; /* a surrogate pair sorts before U+E000..U+FFFF */
    }
    if (q >= 0xf0 && p >= 0xee && p < 0xf0) {
        return 1;
    }
    return p < q ? -1 : 1;
}

static struct slice next_segment(struct slice *pointer) /* it begins with a slash */
{
    size_t len = 1;

    while (len < pointer->len && pointer->ptr[len] != '/') {
        len++;
    }
    struct slice segment = {pointer->ptr + 1, len - 1};

    pointer->ptr += len;
    pointer->len -= len;
    return segment;
}

bool canon_pointer_matches(struct slice pattern, struct slice pointer)
{
    while (pattern.len > 0 && pointer.len > 0) {
        struct slice wanted = next_segment(&pattern), found = next_segment(&pointer);

        if (!slice_is(wanted, "*") && !slice_equal(wanted, found)) {
            return false;
        }
    }
    return pattern.len == 0 && pointer.len == 0;
}

bool canon_pointers_overlap(struct slice a, struct slice b)
{
    while (a.len > 0 && b.len > 0) {
        struct slice x = next_segment(&a), y = next_segment(&b);

        if (!slice_is(x, "*") && !slice_is(y, "*") && !slice_equal(x, y)) {
            return false;
        }
    }
    return true;
}

static bool is_left_out(const struct canon_state *state, struct slice pointer)
{
    for (size_t i = 0; i < state->leave_out_count; i++) {
        if (canon_pointer_matches(state->leave_out[i], pointer)) {
            return true;
        }
    }
    return false;
}

static void put_value(struct canon_state *state, struct slice value, struct slice pointer);

static void put_object(struct canon_state *state, struct slice object, struct slice pointer)
{
    size_t count = json_count(object), n = 0;
    struct canon_member *members = arena_array(state->arena, count + 1, sizeof(*members));
    struct json_walk walk = json_walk(object);
    struct slice raw, value;

    while (json_next_member(&walk, &raw, &value)) {
        members[n].name = json_string((struct slice){raw.ptr - 1, raw.len + 2}, state->arena);
        members[n++].value = value;
    }
    qsort(members, n, sizeof(*members), compare_members);
    buffer_put_char(&state->out, '{');
    bool first = true;

    for (size_t i = 0; i < n; i++) {
        struct slice place =
            state->leave_out_count > 0 ? json_pointer_join(state->arena, pointer, members[i].name) : SLICE_NONE;

        if (place.ptr && is_left_out(state, place)) {
            continue;
        }
        if (!first) {
            buffer_put_char(&state->out, ',');
        }
        first = false;
        put_text(state, members[i].name);
        buffer_put_char(&state->out, ':');
        put_value(state, members[i].value, place);
    }
    buffer_put_char(&state->out, '}');
}

static void put_array(struct canon_state *state, struct slice array, struct slice pointer)
{
    struct json_walk walk = json_walk(array);
    struct slice value;
    size_t index = 0;

    buffer_put_char(&state->out, '[');
    while (json_next_element(&walk, &value)) {
        struct slice place = SLICE_NONE;

        if (state->leave_out_count > 0) {
            place = json_pointer_join(state->arena, pointer, arena_printf(state->arena, "%zu", index));
        }
        if (index++ > 0) {
            buffer_put_char(&state->out, ',');
        }
        put_value(state, value, place); /* elements are never left out, which would renumber the ones behind them */
    }
    buffer_put_char(&state->out, ']');
}

static void put_value(struct canon_state *state, struct slice value, struct slice pointer)
{
    struct slice v = json_trim(value);

    switch (json_type(v)) {
    case JSON_OBJECT:
        put_object(state, v, pointer);
        break;
    case JSON_ARRAY:
        put_array(state, v, pointer);
        break;
    case JSON_STRING:
        put_text(state, json_string(v, state->arena));
        break;
    case JSON_NUMBER:
        put_number(state, v);
        break;
    case JSON_BOOL:
    case JSON_NULL:
    case JSON_NONE:
        buffer_put_slice(&state->out, v);
        break;
    }
}

struct slice canon(struct slice json, const struct slice *leave_out, size_t leave_out_count, struct arena *arena)
{
    struct canon_state state = {.arena = arena, .leave_out = leave_out, .leave_out_count = leave_out_count};

    buffer_init(&state.out, SIZE_MAX / 2);
    put_value(&state, json, SLICE(""));
    struct slice text = arena_slice(arena, buffer_slice(&state.out));

    buffer_fini(&state.out);
    return text;
}

struct digest canon_digest(struct slice json, struct arena *scratch)
{
    return digest_sha256(canon(json, NULL, 0, scratch));
}
