/*
 * Strict JSON. Text from outside is checked once by json_check(); everything else here reads text that passed it.
 *
 * Payloads (input, arguments, results) are kept as the bytes we got: a number of 30 digits stays itself. Values are
 * therefore slices of the original text, not nodes of a tree. cJSON (json_tree()) is for definitions and settings,
 * where a tree is handier; never print a payload from it.
 */
#ifndef SAGAD_BASE_JSON_H
#define SAGAD_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/errors.h"
#include "base/text.h"

struct cJSON;

struct json_limits {
    size_t bytes_max; /* bytes of the whole text */
    int depth_max;    /* nested arrays and objects */
    size_t number_bytes_max;
    int exponent_max; /* numbers whose exponent lies beyond +-this are refused */
};

extern const struct json_limits json_limits_default; /* 1 MiB, 64, 1024, 400 */

/*
 * Is this exactly one JSON value (RFC 8259), and does every reader read it the same way? Besides syntax errors, it
 * refuses duplicate members (after unescaping), invalid UTF-8, lone surrogates, U+0000, raw control characters,
 * trailing bytes, and anything over the limits. It fails with ERR_MALFORMED or ERR_TOO_LARGE and the byte offset and
 * JSON Pointer of the place.
 */
MUST_USE enum err_code json_check(struct slice text, const struct json_limits *limits, struct err *err);

/*
 * Is it one JSON value by its syntax alone? Repeated members, invalid UTF-8, and any size and depth pass, though
 * json_check() refuses them. The elements of an array can then be told apart (json_walk(), json_next_element()), and
 * json_check() judges each on its own. No other function may read such a text.
 */
MUST_USE enum err_code json_check_syntax(struct slice text, struct err *err);

/* --- reading text that json_check() accepted; surrounding white space is allowed --- */

enum json_type { JSON_NONE, JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

enum json_type json_type(struct slice value);    /* SLICE_NONE gives JSON_NONE */
const char *json_type_name(enum json_type type); /* "null", "boolean", "number", ... */

struct json_walk { /* over the members of an object or the elements of an array */
    const char *at, *end;
    bool started;
};
struct json_walk json_walk(struct slice container);
bool json_next_member(struct json_walk *walk, struct slice *name_raw,
                      struct slice *value); /* name_raw: between the quotes, still escaped */
bool json_next_element(struct json_walk *walk, struct slice *value);

struct slice json_member(struct slice object, const char *name); /* SLICE_NONE when absent or no object */
struct slice json_element(struct slice array, size_t index);
struct slice json_at(struct slice value, struct slice pointer); /* RFC 6901; SLICE_NONE when absent */
size_t json_count(struct slice container);

struct slice
json_string(struct slice value,
            struct arena *arena); /* unescaped; borrowed from the text if it had no escapes; SLICE_NONE for no string */
bool json_string_is(struct slice value, const char *text);
bool json_i64(struct slice value, int64_t *out); /* an integer in range, in whatever notation (1e3) */
bool json_bool(struct slice value, bool *out);
struct slice json_trim(struct slice value); /* without surrounding white space */

/* A cJSON tree, released with the arena. NULL only when cJSON refuses what json_check() accepted. */
struct cJSON *json_tree(struct slice text, struct arena *arena);

/* --- writing --- */

void json_put_string(struct buffer *out, struct slice text); /* with quotes and escapes; invalid UTF-8 becomes U+FFFD */

#define JSON_INLINE static inline __attribute__((always_inline))

/* Writes commas and quotes, so that the caller cannot forget one. `name` is NULL inside arrays and at the top. */
struct json_writer {
    struct buffer *out;
    uint64_t has_items; /* one bit a level */
    int depth;
};
void json_writer_init(struct json_writer *w, struct buffer *out);
void json_object_end(struct json_writer *w);
void json_array_end(struct json_writer *w);

/* The name of a member. A literal is measured when it is compiled, and is not searched for what has to be escaped:
 * literals have nothing. */
struct json_name {
    const char *ptr; /* NULL: none */
    uint32_t len;
    bool is_plain; /* there is nothing to escape in it */
};
JSON_INLINE struct json_name json_name(const char *name)
{
    size_t len = name ? strlen(name) : 0;

    return (struct json_name){name, (uint32_t)len, __builtin_constant_p(len)};
}
void json_named_object(struct json_writer *w, struct json_name name);
void json_named_array(struct json_writer *w, struct json_name name);
void json_named_raw(struct json_writer *w, struct json_name name, struct slice json);
void json_named_slice(struct json_writer *w, struct json_name name, struct slice text);
void json_named_i64(struct json_writer *w, struct json_name name, int64_t value);
void json_named_instant(struct json_writer *w, struct json_name name, int64_t ms);

JSON_INLINE void json_object_begin(struct json_writer *w, const char *name)
{
    json_named_object(w, json_name(name));
}
JSON_INLINE void json_array_begin(struct json_writer *w, const char *name)
{
    json_named_array(w, json_name(name));
}
/* Writes the value as it is; SLICE_NONE writes null. */
JSON_INLINE void json_write_raw(struct json_writer *w, const char *name, struct slice json)
{
    json_named_raw(w, json_name(name), json);
}
/* Writes a string; SLICE_NONE writes null. */
JSON_INLINE void json_write_slice(struct json_writer *w, const char *name, struct slice text)
{
    json_named_slice(w, json_name(name), text);
}
JSON_INLINE void json_write_text(struct json_writer *w, const char *name, const char *text)
{
    json_named_slice(w, json_name(name), slice_of(text));
}
JSON_INLINE void json_write_i64(struct json_writer *w, const char *name, int64_t value)
{
    json_named_i64(w, json_name(name), value);
}
JSON_INLINE void json_write_null(struct json_writer *w, const char *name)
{
    json_named_raw(w, json_name(name), SLICE_NONE);
}
JSON_INLINE void json_write_bool(struct json_writer *w, const char *name, bool value)
{
    json_named_raw(w, json_name(name), value ? SLICE("true") : SLICE("false"));
}
/* RFC 3339; 0 writes null. */
JSON_INLINE void json_write_instant(struct json_writer *w, const char *name, int64_t ms)
{
    json_named_instant(w, json_name(name), ms);
}

/* Appends one part to a JSON Pointer and escapes it with ~0 and ~1. */
struct slice json_pointer_join(struct arena *arena, struct slice pointer, struct slice part);

#endif
