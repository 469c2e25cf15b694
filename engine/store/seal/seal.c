/* Finds the members that are sealed, and puts one text in place of the other. Everything else stays byte for byte. */
#include "store/seal/seal.h"

#include <string.h>

#include "base/base64url.h"
#include "base/json.h"
#include "core/record/record.h"

#define MARK '~'

enum { CODE_BYTES_MAX = 48 }; /* with its quotes */

struct rewriting {
    const struct payload_keys *keys;
    struct seal_place place;
    bool (*is_payload)(struct slice name, struct slice value);
    bool opens;
    const char *copied; /* up to here the text is in `out` */
    struct buffer *out;
    struct err *err;
};

static void copy_to(struct rewriting *r, const char *to)
{
    buffer_put(r->out, r->copied, (size_t)(to - r->copied));
    r->copied = to;
}

static void seal_member(struct rewriting *r, struct slice name, struct slice value)
{
    size_t bytes = payload_sealed_bytes(value.len), len = base64url_length(bytes);
    char *at, *sealed;

    r->place.member = name;
    copy_to(r, name.ptr);
    buffer_put_char(r->out, MARK);
    copy_to(r, value.ptr);
    buffer_put_char(r->out, '"');
    buffer_put_slice(r->out, payload_keys_active(r->keys));
    buffer_put_char(r->out, '.');
    at = buffer_extend(r->out, len);
    CHECK(at);                 /* buffers of this file have no bound: the text that they hold had one */
    sealed = at + len - bytes; /* at the end of where their text goes */
    payload_keys_seal_at(r->keys, &r->place, value, (unsigned char *)sealed);
    base64url_write((struct slice){sealed, bytes}, at);
    buffer_put_char(r->out, '"');
    r->copied = value.ptr + value.len;
}

static enum err_code says_nothing(struct err *err)
{
    return err_set(err, ERR_CORRUPT, "a sealed payload was changed: it names no key");
}

static enum err_code open_member(struct rewriting *r, struct slice name, struct slice value)
{
    const char *dot = value.len > 2 && value.ptr[0] == '"' ? memchr(value.ptr, '.', value.len) : NULL;
    struct arena arena;
    enum err_code code;

    if (!dot) {
        return says_nothing(r->err);
    }
    r->place.member = (struct slice){name.ptr + 1, name.len - 1};
    copy_to(r, name.ptr);
    r->copied++; /* without the mark */
    copy_to(r, value.ptr);
    arena_init(&arena, value.len + 64);
    code = payload_keys_unseal(
        r->keys, &r->place, (struct slice){value.ptr + 1, (size_t)(dot - value.ptr) - 1},
        base64url_read((struct slice){dot + 1, value.len - (size_t)(dot - value.ptr) - 2}, &arena), r->out, r->err);
    arena_fini(&arena);
    r->copied = value.ptr + value.len;
    return code;
}

static enum err_code rewrite_member(struct rewriting *r, struct slice name, struct slice value)
{
    if (r->opens && name.len > 0 && name.ptr[0] == MARK) {
        return open_member(r, name, json_trim(value));
    }
    if (!r->opens && r->is_payload(name, value)) {
        seal_member(r, name, json_trim(value));
    }
    return ERR_OK;
}

static enum err_code rewrite_members(struct rewriting *r, struct slice object)
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;
    enum err_code code = ERR_OK;

    while (code == ERR_OK && json_next_member(&walk, &name, &value)) {
        code = rewrite_member(r, name, value);
    }
    return code;
}

/*
 * A turn is gone through once: the scanner of base/json.h finds the end of each value before it is looked into, which
 * would be three times for a payload. The text is JSON already.
 */
struct cursor {
    const char *at, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) {
        c->at++;
    }
}

/* Goes into an object or an array, if one is next. */
static bool enter(struct cursor *c, char opening)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != opening) {
        return false;
    }
    c->at++;
    return true;
}

/* Goes to the next item, or behind the end of what was entered. */
static bool next(struct cursor *c, char closing)
{
    skip_space(c);
    if (c->at < c->end && *c->at == ',') {
        c->at++;
        skip_space(c);
    }
    if (c->at < c->end && *c->at != closing) {
        return true;
    }
    c->at += c->at < c->end;
    return false;
}

static struct slice take_value(struct cursor *c)
{
    struct json_walk walk = {.at = c->at, .end = c->end};
    struct slice value = SLICE_NONE;

    (void)json_next_element(&walk, &value); /* there is none in a text that is no JSON, which is left as it is */
    c->at = value.len > 0 ? walk.at : c->end;
    return value;
}

/* Names of our own have no escapes, so the next quote ends them. */
static struct slice take_name(struct cursor *c)
{
    const char *first = c->at + 1,
               *quote = c->at < c->end && *c->at == '"' ? memchr(first, '"', (size_t)(c->end - first)) : NULL;
    struct slice name;

    if (quote && !memchr(first, '\\', (size_t)(quote - first))) {
        name = (struct slice){c->at, (size_t)(quote + 1 - c->at)};
        c->at = quote + 1;
    } else {
        name = take_value(c);
    }
    skip_space(c);
    c->at += c->at < c->end; /* the colon */
    skip_space(c);
    return name.len >= 2 ? (struct slice){name.ptr + 1, name.len - 2} : SLICE("");
}

static enum err_code rewrite_data(struct rewriting *r, struct cursor *c)
{
    enum err_code code = ERR_OK;

    while (code == ERR_OK && next(c, '}')) {
        struct slice name = take_name(c);

        code = rewrite_member(r, name, take_value(c));
    }
    return code;
}

static enum err_code rewrite_record(struct rewriting *r, struct cursor *c)
{
    enum err_code code = ERR_OK;

    while (code == ERR_OK && next(c, '}')) {
        struct slice name = take_name(c);

        if (slice_is(name, "data") && enter(c, '{')) {
            code = rewrite_data(r, c);
        } else {
            (void)take_value(c);
        }
    }
    return code;
}

static enum err_code rewrite_turn(struct rewriting *r, struct slice turn)
{
    struct cursor c = {turn.ptr, turn.ptr + turn.len};
    enum err_code code = ERR_OK;

    if (!enter(&c, '[')) {
        return ERR_OK;
    }
    for (; code == ERR_OK && next(&c, ']'); r->place.nth++) {
        if (enter(&c, '{')) {
            code = rewrite_record(r, &c);
        } else {
            (void)take_value(&c);
        }
    }
    return code;
}

static bool turn_member_is_payload(struct slice name, struct slice value)
{
    (void)value;
    return record_member_is_payload(name);
}

/* Is it a word like "http-503", as errors have for a code? A sentence, or a number that could be a card's, is none. */
static bool is_code(struct slice value)
{
    bool is_word = value.len > 2 && value.len <= CODE_BYTES_MAX && value.ptr[0] == '"';

    for (size_t i = 1; is_word && i < value.len - 1; i++) {
        char c = value.ptr[i];

        is_word = (c >= 'a' && c <= 'z') || (i > 1 && ((c >= '0' && c <= '9') || c == '-'));
    }
    return is_word;
}

/* What an approver is shown, and what quotes payloads. Lists are made of the other members, and of the last error where
 * that is a code. */
static bool case_member_is_payload(struct slice name, struct slice value)
{
    static const char *const names[] = {"show", "hash", "detail", "answer", "follower"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (slice_is(name, names[i])) {
            return true;
        }
    }
    return slice_is(name, "last_error") && json_type(value) == JSON_STRING && !is_code(json_trim(value));
}

static enum err_code rewrite_case(struct rewriting *r, struct slice body)
{
    struct json_walk walk = json_walk(body);
    struct slice name, value;
    enum err_code code = ERR_OK;

    while (code == ERR_OK && json_next_member(&walk, &name, &value)) {
        if (slice_is(name, "evidence") && json_type(value) == JSON_OBJECT) {
            r->place.nth = 1;
            code = rewrite_members(r, value);
            r->place.nth = 0;
        } else {
            code = rewrite_member(r, name, value);
        }
    }
    return code;
}

static enum err_code rewrite_text(struct rewriting *r, enum seal_shape shape, struct slice text)
{
    enum err_code code;

    r->copied = text.ptr;
    r->is_payload = shape == SEAL_TURN ? turn_member_is_payload : case_member_is_payload;
    code = shape == SEAL_TURN ? rewrite_turn(r, text) : rewrite_case(r, text);
    copy_to(r, text.ptr + text.len);
    return code;
}

bool seal_shape_fits(enum seal_shape shape, struct slice text)
{
    return text.len > 0 && json_check_syntax(text, NULL) == ERR_OK &&
           json_type(text) == (shape == SEAL_TURN ? JSON_ARRAY : JSON_OBJECT);
}

void seal_members(const struct payload_keys *keys, enum seal_shape shape, const struct seal_place *place,
                  struct slice text, struct buffer *out)
{
    struct rewriting r = {.keys = keys, .place = *place, .out = out};

    CHECK(rewrite_text(&r, shape, text) == ERR_OK); /* sealing does not fail */
}

enum err_code unseal_members(const struct payload_keys *keys, enum seal_shape shape, const struct seal_place *place,
                             struct slice text, struct arena *arena, struct slice *out, struct err *err)
{
    static const char mark[] = {'"', MARK};
    struct buffer opened;
    struct rewriting r = {.keys = keys, .place = *place, .opens = true, .out = &opened, .err = err};
    enum err_code code;

    *out = text;
    if (text.len == 0 || !memmem(text.ptr, text.len, mark, sizeof(mark)) || !seal_shape_fits(shape, text)) {
        return ERR_OK; /* nothing is sealed, or it is no such text, which its reader says */
    }
    buffer_init(&opened, SIZE_MAX / 2);
    code = rewrite_text(&r, shape, text);
    *out = code == ERR_OK ? arena_slice(arena, buffer_slice(&opened)) : SLICE_NONE;
    buffer_fini(&opened);
    return code;
}

void seal_whole(const struct payload_keys *keys, const struct seal_place *place, struct slice text, struct buffer *out)
{
    buffer_put_char(out, MARK);
    buffer_put_slice(out, payload_keys_active(keys));
    buffer_put_char(out, '.');
    payload_keys_seal(keys, place, text, out);
}

struct slice seal_column(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                         struct arena *arena)
{
    struct buffer out;
    struct slice sealed;

    if (!text.ptr || !payload_keys_active(keys).ptr) {
        return text;
    }
    buffer_init(&out, SIZE_MAX / 2);
    seal_whole(keys, place, text, &out);
    sealed = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return sealed;
}

enum err_code unseal_whole(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                           struct arena *arena, struct slice *out, struct err *err)
{
    const char *dot = text.len > 0 && text.ptr[0] == MARK ? memchr(text.ptr, '.', text.len) : NULL;
    struct buffer opened;
    enum err_code code;
    size_t name_len;

    *out = text;
    if (text.len == 0 || text.ptr[0] != MARK) {
        return ERR_OK;
    }
    *out = SLICE_NONE;
    if (!dot) {
        return says_nothing(err);
    }
    name_len = (size_t)(dot - text.ptr) - 1;
    buffer_init(&opened, SIZE_MAX / 2);
    code = payload_keys_unseal(keys, place, (struct slice){text.ptr + 1, name_len},
                               (struct slice){dot + 1, text.len - name_len - 2}, &opened, err);
    if (code == ERR_OK) {
        *out = arena_slice(arena, buffer_slice(&opened));
    }
    buffer_fini(&opened);
    return code;
}

enum err_code unseal_digest(const struct payload_keys *keys, const struct seal_place *place, struct slice column,
                            struct digest *out, struct err *err)
{
    struct slice plain = column;
    struct arena arena;
    enum err_code code = ERR_OK;

    arena_init(&arena, 256);
    if (column.len != sizeof(out->bytes)) {
        code = unseal_whole(keys, place, column, &arena, &plain, err);
    }
    if (code == ERR_OK && plain.len != sizeof(out->bytes)) {
        code = err_set(err, ERR_CORRUPT, "the digest of a payload was changed: it has another length");
    }
    if (code == ERR_OK) {
        memcpy(out->bytes, plain.ptr, plain.len);
    }
    arena_fini(&arena);
    return code;
}

/* --- which key is it? --- */

bool column_is_under(struct slice column, struct slice key)
{
    return column.len > key.len + 2 && column.ptr[0] == MARK && memcmp(column.ptr + 1, key.ptr, key.len) == 0 &&
           column.ptr[key.len + 1] == '.';
}

static bool members_are_under(struct slice object, bool (*is_payload)(struct slice name, struct slice value),
                              struct slice key, bool *some)
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        value = json_trim(value);
        if (is_payload(name, value)) {
            return false;
        }
        if (name.len > 0 && name.ptr[0] == MARK) {
            *some = true;
            if (value.len < key.len + 2 || memcmp(value.ptr + 1, key.ptr, key.len) != 0 ||
                value.ptr[key.len + 1] != '.') {
                return false;
            }
        }
    }
    return true;
}

bool members_under(enum seal_shape shape, struct slice text, struct slice key)
{
    struct json_walk walk = json_walk(text);
    struct slice record;
    bool some = false;

    if (!seal_shape_fits(shape, text)) {
        return false;
    }
    if (shape == SEAL_CASE) {
        struct slice evidence = json_member(text, "evidence");

        return members_are_under(text, case_member_is_payload, key, &some) &&
               (json_type(evidence) != JSON_OBJECT ||
                members_are_under(evidence, case_member_is_payload, key, &some)) &&
               some;
    }
    while (json_next_element(&walk, &record)) {
        struct slice data = json_member(record, "data");

        if (json_type(data) == JSON_OBJECT && !members_are_under(data, turn_member_is_payload, key, &some)) {
            return false;
        }
    }
    return some;
}
