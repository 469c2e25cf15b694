/*
 * What the HTTP adapter makes of the settings of a tool and of an answer. The input is a URL (or a JSON Pointer) on the
 * first line, and JSON or the bytes of an answer behind it.
 *
 * Nothing that is put into a URL can end its query or begin another part of it. A body with a key holds that key and is
 * otherwise unchanged.
 */
#include "adapters/answer.h"
#include "adapters/http_parts.h"
#include "base/utf8.h"
#include "core/definition/parts.h"
#include "tests/fuzz/fuzz.h"

#define PARTS_MAX 24

static void query(struct slice url, struct slice json, struct arena *arena)
{
    struct slice longer = url_add_query(url, json, arena);

    if (!longer.ptr) {
        return;
    }
    MUST(longer.len >= url.len || memchr(url.ptr, '#', url.len)); /* a fragment is never sent */
    for (size_t i = 0; i < longer.len; i++) {
        bool was_there = memchr(url.ptr ? url.ptr : "", longer.ptr[i], url.len) != NULL;

        MUST(was_there ||
             strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%&=?", longer.ptr[i]));
    }
}

static void body(struct slice json, struct slice pointer, struct arena *arena)
{
    struct slice with_key = body_set(json, pointer, SLICE("\"key\""), arena);
    size_t parts = 0;

    if (!with_key.ptr) {
        return;
    }
    for (size_t i = 0; i < pointer.len; i++) {
        parts += pointer.ptr[i] == '/';
    }
    if (parts > PARTS_MAX || memmem(pointer.ptr, pointer.len, "/-", 2)) {
        return; /* nested too deeply to be read; a `-` appends a new element each time */
    }
    MUST(json_check(with_key, &(struct json_limits){(size_t)1 << 21, 96, 1024, 400}, NULL) == ERR_OK);
    MUST(json_string_is(json_at(with_key, pointer), "key"));
    MUST(slice_equal(with_key, body_set(with_key, pointer, SLICE("\"key\""), arena)));
}

static void answer(struct slice bytes, struct arena *arena)
{
    struct slice json = SLICE_NONE;
    enum answer_kind kind = answer_json(bytes, (size_t)1 << 20, arena, &json);

    MUST(fuzz_is_json(json));
    MUST((kind == ANSWER_TEXT) == (json_type(json) == JSON_STRING && !fuzz_is_json(bytes)));
    if (kind == ANSWER_TEXT) {
        MUST(text_is_utf8(bytes) && slice_equal(json_string(json, arena), bytes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice json = fuzz_input(data, size), line = fuzz_line(&json), quoted;
    struct arena *arena = fuzz_arena();
    struct faults faults;
    struct buffer text;

    answer(json, arena);
    (void)http_retry_after_ms(line, INT64_C(1700000000000), arena);
    if (!fuzz_is_json(json) || !text_is_utf8(line)) { /* the line comes out of a definition, which was JSON */
        return 0;
    }
    query(line, json, arena);
    if (pointer_is_sound(line) && line.len <= POINTER_BYTES_MAX) { /* the rule that definitions follow */
        body(json, line, arena);
    }
    faults_init(&faults, arena);
    http_check_headers(json, SLICE(""), &faults);
    fuzz_check_faults(&faults, json);
    buffer_init(&text, (size_t)1 << 16);
    json_put_string(&text, line);
    quoted = buffer_slice(&text);
    faults_init(&faults, arena);
    if (!text.overflow && fuzz_is_json(quoted)) {
        http_check_url(quoted, SLICE(""), &faults);
        fuzz_check_faults(&faults, quoted);
    }
    buffer_fini(&text);
    return 0;
}
