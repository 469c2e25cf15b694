/* Finds the members that are sealed, and puts one text in place of the other. Everything else stays byte for byte. */
#include "store/seal/seal.h"

#include <string.h>

#include "base/base64url.h"
#include "base/json.h"
#include "core/record/record.h"

#define MARK '~'

struct rewriting {
    const struct payload_keys *keys;
    struct seal_place place;
    bool opens;
    const char *copied; /* up to here the text is in `out` */
    struct buffer *out;
    struct buffer scratch;
    struct err *err;
};

static void copy_to(struct rewriting *r, const char *to)
{
    buffer_put(r->out, r->copied, (size_t)(to - r->copied));
    r->copied = to;
}

static void seal_member(struct rewriting *r, struct slice name, struct slice value)
{
    char *at;

    r->place.member = name;
    copy_to(r, name.ptr);
    buffer_put_char(r->out, MARK);
    copy_to(r, value.ptr);
    buffer_reset(&r->scratch);
    payload_keys_seal(r->keys, &r->place, value, &r->scratch);
    buffer_put_char(r->out, '"');
    buffer_put_slice(r->out, payload_keys_active(r->keys));
    buffer_put_char(r->out, '.');
    at = buffer_extend(r->out, base64url_length(r->scratch.len));
    CHECK(at); /* buffers of this file have no bound: the text that they hold had one */
    base64url_write(buffer_slice(&r->scratch), at);
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

static enum err_code rewrite_data(struct rewriting *r, struct slice data)
{
    struct json_walk walk = json_walk(data);
    struct slice name, value;
    enum err_code code = ERR_OK;

    while (code == ERR_OK && json_next_member(&walk, &name, &value)) {
        if (r->opens && name.len > 0 && name.ptr[0] == MARK) {
            code = open_member(r, name, json_trim(value));
        } else if (!r->opens && record_member_is_payload(name)) {
            seal_member(r, name, json_trim(value));
        }
    }
    return code;
}

static enum err_code rewrite_turn(struct rewriting *r, const struct uuid *saga, uint64_t first_seq, struct slice turn)
{
    struct json_walk walk = json_walk(turn);
    struct slice record;
    enum err_code code = ERR_OK;

    r->place = (struct seal_place){.table = "log", .id = *saga, .number = first_seq};
    r->copied = turn.ptr;
    buffer_init(&r->scratch, SIZE_MAX / 2);
    for (; code == ERR_OK && json_next_element(&walk, &record); r->place.nth++) {
        struct slice data = json_member(record, "data");

        if (json_type(data) == JSON_OBJECT) {
            code = rewrite_data(r, data);
        }
    }
    copy_to(r, turn.ptr + turn.len);
    buffer_fini(&r->scratch);
    return code;
}

void seal_turn(const struct payload_keys *keys, const struct uuid *saga, uint64_t first_seq, struct slice turn,
               struct buffer *out)
{
    struct rewriting r = {.keys = keys, .out = out};

    CHECK(rewrite_turn(&r, saga, first_seq, turn) == ERR_OK); /* sealing does not fail */
}

enum err_code unseal_turn(const struct payload_keys *keys, const struct uuid *saga, uint64_t first_seq,
                          struct slice turn, struct arena *arena, struct slice *out, struct err *err)
{
    static const char mark[] = {'"', MARK};
    struct buffer opened;
    struct rewriting r = {.keys = keys, .opens = true, .out = &opened, .err = err};
    enum err_code code;

    *out = turn;
    if (turn.len == 0 || !memmem(turn.ptr, turn.len, mark, sizeof(mark)) || json_check_syntax(turn, NULL) != ERR_OK ||
        json_type(turn) != JSON_ARRAY) {
        return ERR_OK; /* nothing is sealed, or it is no turn, which its reader says */
    }
    buffer_init(&opened, SIZE_MAX / 2);
    code = rewrite_turn(&r, saga, first_seq, turn);
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
