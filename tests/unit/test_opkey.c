/* Keys are what the table of published vectors says; check_key_vectors.mjs holds the same table against another
 * language. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "core/opkey.h"

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

static void keys_are_those_of_the_published_vectors(void **state)
{
    struct arena arena;
    struct err err;
    struct slice vector;
    int count = 0;

    (void)state;
    arena_init(&arena, 4096);
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
    arena_fini(&arena);
}

static void no_scope_and_an_empty_scope_make_the_same_key(void **state)
{
    struct op_identity a = {.namespace = SLICE("default"), .run = SLICE("r"), .step = SLICE("s"), .tool = SLICE("t")},
                       b = a;

    (void)state;
    b.scope = SLICE("");
    struct op_key key_a = op_key_make(&a), key_b = op_key_make(&b);

    assert_true(uuid_equal(&key_a.uuid, &key_b.uuid));
}

static void fingerprints_see_through_notation_and_volatile_members_only(void **state)
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
    struct arena arena;

    (void)state;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct digest a = op_fingerprint(SLICE("t"), slice_of(cases[i].a), &arena);
        struct digest b = op_fingerprint(SLICE("t"), slice_of(cases[i].b), &arena);

        assert_int_equal(digest_equal(&a, &b), cases[i].is_same);
    }
    struct digest none = op_fingerprint(SLICE("t"), SLICE_NONE, &arena),
                  null = op_fingerprint(SLICE("t"), SLICE("null"), &arena);
    struct digest other = op_fingerprint(SLICE("u"), SLICE("null"), &arena);

    assert_true(digest_equal(&none, &null));
    assert_false(digest_equal(&null, &other));
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_those_of_the_published_vectors),
        cmocka_unit_test(no_scope_and_an_empty_scope_make_the_same_key),
        cmocka_unit_test(fingerprints_see_through_notation_and_volatile_members_only),
    };

    return cmocka_run_group_tests_name("opkey", tests, NULL, NULL);
}
