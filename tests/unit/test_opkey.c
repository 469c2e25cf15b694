/* Keys equal the table of published vectors. check_key_vectors.mjs checks the same table in another language. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/definition/opkey.h"
#include "tests/lib/test.h"

static struct slice read_vectors(struct arena *arena)
{
    const char *dir = getenv("SCHEMA_DIR");
    struct slice path = arena_printf(arena, "%s/key-vectors.json", dir ? dir : "schema");
    FILE *file = fopen(path.ptr, "rb");
    char *text = arena_alloc(arena, 1 << 16);

    assert_non_null(file);
    size_t len = fread(text, 1, 1 << 16, file);

    assert_int_equal(fclose(file), 0);
    return (struct slice){text, len};
}

static struct slice member(struct slice vector, const char *name, struct arena *arena)
{
    return json_string(json_member(vector, name), arena);
}

static struct arena arena;

TEST(keys_are_those_of_the_published_vectors)
{
    struct err err;
    struct slice vector;
    int count = 0;

    struct slice text = read_vectors(&arena);

    assert_int_equal(json_check(text, &json_limits_default, &err), ERR_OK);
    struct json_walk walk = json_walk(json_member(text, "vectors"));

    while (json_next_element(&walk, &vector)) {
        struct slice direction = member(vector, "direction", &arena);
        int64_t generation;
        char key_text[UUID_TEXT_BYTES];

        assert_true(json_i64(json_member(vector, "generation"), &generation));
        struct op_identity identity = {
            .namespace = member(vector, "namespace", &arena),
            .run = member(vector, "run", &arena),
            .step = member(vector, "step", &arena),
            .tool = member(vector, "tool", &arena),
            .scope = member(vector, "scope", &arena),
            .direction = slice_is(direction, direction_name(DIRECTION_DO)) ? DIRECTION_DO : DIRECTION_UNDO,
            .generation = (uint32_t)generation,
        };
        struct op_key key = op_key_make(&identity);

        uuid_text(&key.uuid, key_text);
        assert_string_equal(key_text, arena_text(&arena, member(vector, "key", &arena)));
        count++;
    }
    assert_true(count >= 12);
}

TEST(no_scope_and_an_empty_scope_make_the_same_key)
{
    struct op_identity a = {.namespace = SLICE("default"), .run = SLICE("r"), .step = SLICE("s"), .tool = SLICE("t")},
                       b = a;

    b.scope = SLICE("");
    struct op_key key_a = op_key_make(&a), key_b = op_key_make(&b);

    assert_true(uuid_equal(&key_a.uuid, &key_b.uuid));
}

TEST(fingerprints_see_through_notation_and_volatile_members_only)
{
    static const struct {
        const char *a, *b;
        bool is_same;
    } cases[] = {
        {"{\"amount\":10,\"to\":\"x\"}", "{ \"to\": \"\\u0078\", \"amount\": 1.0e1 }", true},
        {"{\"amount\":10}", "{\"amount\":10,\"request_id\":\"7\",\"timestamp\":1,\"trace_id\":null}", true},
        {"{\"amount\":10}", "{\"amount\":11}", false},
        {"{\"n\":9007199254740993}", "{\"n\":9007199254740992}", false},
        {"{\"a\":{\"request_id\":1}}", "{\"a\":{\"request_id\":2}}", false},
        {"[1,2]", "[2,1]", false},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct digest a = op_fingerprint(SLICE("t"), slice_of(cases[i].a), NULL, &arena);
        struct digest b = op_fingerprint(SLICE("t"), slice_of(cases[i].b), NULL, &arena);

        assert_int_equal(digest_equal(&a, &b), cases[i].is_same);
    }
    struct digest none = op_fingerprint(SLICE("t"), SLICE_NONE, NULL, &arena),
                  null = op_fingerprint(SLICE("t"), SLICE("null"), NULL, &arena);
    struct digest other = op_fingerprint(SLICE("u"), SLICE("null"), NULL, &arena);

    assert_true(digest_equal(&none, &null));
    assert_false(digest_equal(&null, &other));
}

TEST(a_tool_says_what_else_is_volatile_and_stars_stand_for_every_element)
{
    static const struct slice items[] = {
        {"/request_id", 11}, {"/asked_at", 9}, {"/items/*/id", 11}, {"/rows/1/at", 10}, {"/a~1b", 5}};
    static const struct pointers volatiles = {items, COUNT_OF(items)};
    static const struct {
        const char *a, *b;
        bool is_same;
    } cases[] = {
        {"{\"asked_at\":1,\"x\":1}", "{\"x\":1,\"request_id\":2}", true},
        {"{\"trace_id\":1}", "{\"trace_id\":2}", false}, /* only given identifiers count */
        {"{\"items\":[{\"id\":1,\"n\":1},{\"id\":2,\"n\":2}]}", "{\"items\":[{\"n\":1},{\"id\":7,\"n\":2}]}", true},
        {"{\"items\":[{\"id\":1,\"n\":1}]}", "{\"items\":[{\"id\":1,\"n\":2}]}", false},
        {"{\"items\":[{\"id\":1},{}]}", "{\"items\":[{}]}", false},
        {"{\"rows\":[{\"at\":1},{\"at\":1}]}", "{\"rows\":[{\"at\":1},{\"at\":2}]}", true},
        {"{\"rows\":[{\"at\":1},{\"at\":1}]}", "{\"rows\":[{\"at\":2},{\"at\":1}]}", false},
        {"{\"a/b\":1}", "{\"a/b\":2}", true},
        {"{\"id\":1}", "{\"id\":2}", false},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct digest a = op_fingerprint(SLICE("t"), slice_of(cases[i].a), &volatiles, &arena);
        struct digest b = op_fingerprint(SLICE("t"), slice_of(cases[i].b), &volatiles, &arena);

        assert_int_equal(digest_equal(&a, &b), cases[i].is_same);
    }
    struct digest always = op_fingerprint(SLICE("t"), SLICE("{\"trace_id\":1}"), &volatiles_always, &arena),
                  none = op_fingerprint(SLICE("t"), SLICE("{}"), NULL, &arena);

    assert_true(digest_equal(&always, &none));
}

TEST(pointers_overlap_where_one_may_lie_within_the_other)
{
    static const struct {
        const char *a, *b;
        bool overlaps;
    } cases[] = {
        {"/a", "/a", true},
        {"/a", "/a/b", true},
        {"/a/b", "/a", true},
        {"/a", "/ab", false},
        {"/a/b", "/a/c", false},
        {"/items/*/id", "/items/0/id", true},
        {"/items/*", "/items/3", true},
        {"/items/*/id", "/items/0/at", false},
        {"/a~1b", "/a/b", false},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(canon_pointers_overlap(slice_of(cases[i].a), slice_of(cases[i].b)), cases[i].overlaps);
        assert_int_equal(canon_pointers_overlap(slice_of(cases[i].b), slice_of(cases[i].a)), cases[i].overlaps);
    }
    assert_true(canon_pointer_matches(SLICE("/a/*/b"), SLICE("/a/0/b")));
    assert_false(canon_pointer_matches(SLICE("/a/*"), SLICE("/a/0/b")));
    assert_false(canon_pointer_matches(SLICE("/a/0/b"), SLICE("/a/*/b")));
}

TEST_PROGRAM_ARENA(arena)
