/*
 * Canonical JSON. The input is a line of pointer patterns to leave out, and then the JSON. A canonical form is its own
 * canonical form, does not depend on the order of members, and holds nothing that was to be left out.
 */
#include "base/canon.h"
#include "tests/fuzz/fuzz.h"

#define PATTERNS_MAX 6

static const struct json_limits wide = {(size_t)1 << 20, 64, 4096, 10000}; /* 10e400 becomes 1e401 */

static void write_backwards(struct json_writer *w, const char *name, struct slice value, struct arena *arena)
{
    struct json_walk walk = json_walk(value);
    struct slice name_raw, inner;

    if (json_type(value) == JSON_ARRAY) {
        json_array_begin(w, name);
        while (json_next_element(&walk, &inner)) {
            write_backwards(w, NULL, inner, arena);
        }
        json_array_end(w);
    } else if (json_type(value) == JSON_OBJECT) {
        size_t count = json_count(value), i = count;
        struct slice *names = arena_array(arena, count + 1, sizeof(*names)),
                     *values = arena_array(arena, count + 1, sizeof(*values));

        while (json_next_member(&walk, &name_raw, &inner)) {
            i--;
            names[i] = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);
            values[i] = inner;
        }
        json_object_begin(w, name);
        for (i = 0; i < count; i++) {
            write_backwards(w, arena_text(arena, names[i]), values[i], arena);
        }
        json_object_end(w);
    } else {
        json_write_raw(w, name, json_trim(value));
    }
}

static void check_left_out(struct slice value, struct slice pointer, const struct slice *patterns, size_t count,
                           struct arena *arena)
{
    struct json_walk walk = json_walk(value);
    struct slice name_raw, inner;
    size_t index = 0;

    if (json_type(value) == JSON_OBJECT) {
        while (json_next_member(&walk, &name_raw, &inner)) {
            struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);
            struct slice place = json_pointer_join(arena, pointer, name);

            for (size_t i = 0; i < count; i++) {
                MUST(!canon_pointer_matches(patterns[i], place));
            }
            check_left_out(inner, place, patterns, count, arena);
        }
    } else if (json_type(value) == JSON_ARRAY) {
        while (json_next_element(&walk, &inner)) {
            check_left_out(inner, arena_printf(arena, "%.*s/%zu", SLICE_ARG(pointer), index++), patterns, count, arena);
        }
    }
}

static size_t read_patterns(struct slice line, struct slice *patterns)
{
    size_t count = 0;

    while (line.len > 0 && count < PATTERNS_MAX) {
        const char *end = memchr(line.ptr, ' ', line.len);
        size_t len = end ? (size_t)(end - line.ptr) : line.len, taken = len + (end ? 1 : 0);

        if (len > 0 && line.ptr[0] == '/') {
            patterns[count++] = (struct slice){line.ptr, len};
        }
        line = (struct slice){line.ptr + taken, line.len - taken};
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct buffer backwards;
    struct slice patterns[PATTERNS_MAX], text = fuzz_input(data, size), line = fuzz_line(&text), whole, left;
    size_t count = read_patterns(line, patterns);
    struct arena *arena = fuzz_arena();
    struct json_writer w;

    for (size_t i = 0; i < count; i++) {
        MUST(canon_pointers_overlap(patterns[i], patterns[0]) == canon_pointers_overlap(patterns[0], patterns[i]));
        MUST(canon_pointers_overlap(patterns[i], patterns[i]));
    }
    if (!fuzz_is_json(text)) {
        return 0;
    }
    if (backwards.bytes_max == 0) {
        buffer_init(&backwards, (size_t)1 << 24);
    }
    buffer_reset(&backwards);
    json_writer_init(&w, &backwards);
    write_backwards(&w, NULL, text, arena);
    whole = canon(text, NULL, 0, arena);
    MUST(json_check(whole, &wide, NULL) == ERR_OK);
    MUST(slice_equal(whole, canon(whole, NULL, 0, arena)));
    MUST(slice_equal(whole, canon(buffer_slice(&backwards), NULL, 0, arena)));
    left = canon(text, patterns, count, arena);
    MUST(json_check(left, &wide, NULL) == ERR_OK);
    MUST(slice_equal(left, canon(whole, patterns, count, arena)));
    check_left_out(left, SLICE(""), patterns, count, arena);
    return 0;
}
