/* The text of an act: what people wrote is kept as it is, and whatever they wrote, the database takes it. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "store/acts.h"
#include "tests/lib/test.h"

static struct slice note_of(struct slice note, struct arena *arena)
{
    const struct person_act act = {.id = uuid_v7(1),
                                   .at_ms = 1,
                                   .role = ROLE_OPERATOR,
                                   .via = "token",
                                   .namespace = SLICE("default"),
                                   .actor = SLICE("ada"),
                                   .verb = SLICE("abort"),
                                   .note = note};
    struct slice text = act_text(&act, arena);
    struct err err = {0};

    assert_int_equal(json_check(text, &json_limits_default, &err), ERR_OK);
    assert_true(json_string_is(json_member(text, "verb"), "abort"));
    assert_true(json_type(json_member(text, "saga")) == JSON_NULL);
    assert_null(strstr(arena_text(arena, text), "\\u0000")); /* jsonb takes none */
    return json_string(json_member(text, "note"), arena);
}

static struct slice repeated(const char *character, size_t count, struct arena *arena)
{
    size_t len = strlen(character);
    char *text = arena_alloc(arena, len * count);

    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * len, character, len);
    }
    return (struct slice){text, len * count};
}

static struct arena arena;

TEST(a_note_is_kept_as_it_was_written)
{
    static const char *const notes[] = {"the bank shows it", "two\nlines\t\"quoted\" \\",
                                        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xb6"};

    for (size_t i = 0; i < COUNT_OF(notes); i++) {
        assert_true(slice_is(note_of(slice_of(notes[i]), &arena), notes[i]));
    }
    assert_null(note_of(SLICE_NONE, &arena).ptr);
}

TEST(a_long_note_is_cut_before_a_character)
{
    static const char *const characters[] = {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x92\xb6", "\x01"};

    for (size_t i = 0; i < COUNT_OF(characters); i++) {
        struct slice found = note_of(repeated(characters[i], 5000, &arena), &arena);

        assert_in_range(found.len, 3997, 4000);
        assert_true(text_is_utf8(found));
        assert_int_equal(found.len % strlen(characters[i]), 0);
    }
}

TEST(what_the_database_would_refuse_is_replaced)
{
    assert_true(slice_is(note_of((struct slice){"a\0b", 3}, &arena), "a\xef\xbf\xbd"
                                                                     "b"));
    assert_true(slice_is(note_of(SLICE("a\xff"
                                       "b"),
                                 &arena),
                         "a\xef\xbf\xbd"
                         "b"));
}

TEST_PROGRAM_ARENA(arena)
