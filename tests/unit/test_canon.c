/* Equal values have equal canonical texts, and different values have different ones. Pairs of values and the examples
 * of RFC 8785 show it. */
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "tests/lib/test.h"

static struct slice canon_of(const char *text, struct arena *arena)
{
    struct err err = {0};

    if (json_check(slice_of(text), &json_limits_default, &err) != ERR_OK) {
        fail_msg("%s: %s", text, err.detail);
    }
    return canon(slice_of(text), NULL, 0, arena);
}

#define NINES_40 "9999999999999999999999999999999999999999"

static const struct {
    const char *json, *canonical;
} texts[] = {
    {" null ", "null"},
    {"[ true , false ]", "[true,false]"},
    {"{ }", "{}"},
    {"[ ]", "[]"},
    {"\"\"", "\"\""},
    /* numbers */
    {"0", "0"},
    {"-0", "0"},
    {"0.00", "0"},
    {"-0e-7", "0"},
    {"1", "1"},
    {"-1.0", "-1"},
    {"1e0", "1"},
    {"100", "100"},
    {"1E2", "100"},
    {"1.5e+1", "15"},
    {"12.50", "12.5"},
    {"1250e-2", "12.5"},
    {"0.5", "0.5"},
    {"5e-1", "0.5"},
    {"0.00125", "0.00125"},
    {"125e-5", "0.00125"},
    {"9007199254740993", "9007199254740993"},
    {"123456789012345678901234567890", "123456789012345678901234567890"},
    {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
    {NINES_40, NINES_40},
    {NINES_40 "0", NINES_40 "e1"},
    {NINES_40 "9", NINES_40 "9e0"},
    {"1e39", "1000000000000000000000000000000000000000"},
    {"1e40", "1e40"},
    {"1e-40", "0.0000000000000000000000000000000000000001"},
    {"1e-41", "1e-41"},
    {"-12e-400", "-12e-400"},
    {"1e400", "1e400"},
    /* Strings, from RFC 8785, 3.2.2.2. */
    {"\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"", "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\""},
    {"\"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0001\\u007f\"", "\"\\b\\t\\n\\f\\r\\u0001\x7f\""},
    {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
    /* The order of members, from RFC 8785, 3.2.3. */
    {"{\"\\u20ac\":\"Euro\",\"\\r\":\"CR\",\"\\ufb33\":\"Dalet\",\"1\":\"One\",\"\\ud83d\\ude00\":\"Grin\",\"\\u0080\":"
     "\"Control\",\"\\u00f6\":\"o\"}",
     "{\"\\r\":\"CR\",\"1\":\"One\",\"\xc2\x80\":\"Control\",\"\xc3\xb6\":\"o\",\"\xe2\x82\xac\":\"Euro\","
     "\"\xf0\x9f\x98\x80\":\"Grin\",\"\xef\xac\xb3\":\"Dalet\"}"},
    {"{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"z\":1,\"y\":2}],\"\":0,\"aa\":1}",
     "{\"\":0,\"a\":[{\"y\":2,\"z\":1}],\"aa\":1,\"b\":{\"c\":2,\"d\":1}}"},
    {"{\"\\u0062\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
};

static struct arena arena;

TEST(each_text_has_its_canonical_form_and_that_is_its_own)
{
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct slice canonical = canon_of(texts[i].json, &arena);

        if (!slice_is(canonical, texts[i].canonical) ||
            !slice_is(canon_of(texts[i].canonical, &arena), texts[i].canonical)) {
            fail_msg("%s: %.*s", texts[i].json, SLICE_ARG(canonical));
        }
    }
}

static const struct {
    const char *a, *b;
    bool equal;
} pairs[] = {
    {"1", "1.0", true},
    {"1", "10e-1", true},
    {"1e400", "10e399", true},
    {"1e-400", "0.1e-399", true},
    {"0", "-0", true},
    {"0e9", "0.0", true},
    {NINES_40 "9", NINES_40 ".9e1", true},
    {"{\"a\":1,\"b\":2}", "{\"b\":2.0, \"a\":1}", true},
    {"\"\\u0041\"", "\"A\"", true},
    {"\"/\"", "\"\\/\"", true},
    {"1", "2", false},
    {"1", "-1", false},
    {"1", "\"1\"", false},
    {"1", "[1]", false},
    {"null", "\"null\"", false},
    {"0", "null", false},
    {"0", "false", false},
    {"9007199254740993", "9007199254740992", false},
    {"0.1", "0.10000000000000001", false},
    {"1e39", "1e40", false},
    {"1e-40", "1e-41", false},
    {"100e-2", "10e-2", false},
    {"[1,2]", "[2,1]", false},
    {"[[1],2]", "[[1,2]]", false},
    {"{\"a\":1}", "{\"a\":1,\"b\":null}", false},
    {"{}", "[]", false},
    {"{\"a\":\"b\"}", "{\"b\":\"a\"}", false},
    {"[\"a\",\"b\"]", "[\"a\\\",\\\"b\"]", false},
    {"\"\xc3\xa9\"", "\"e\xcc\x81\"", false},
    {"\"a\"", "\"A\"", false},
};

TEST(equal_values_and_only_those_are_equal)
{
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct slice a = canon_of(pairs[i].a, &arena), b = canon_of(pairs[i].b, &arena);
        struct digest x = canon_digest(slice_of(pairs[i].a), &arena), y = canon_digest(slice_of(pairs[i].b), &arena);

        if (slice_equal(a, b) != pairs[i].equal || digest_equal(&x, &y) != pairs[i].equal) {
            fail_msg("%.*s and %.*s", SLICE_ARG(a), SLICE_ARG(b));
        }
    }
}

/* Compares the same digits with the point and the exponent moved against each other. */
TEST(numbers_agree_whatever_their_notation)
{
    for (int exponent = -60; exponent <= 60; exponent++) {
        struct slice plain = canon_of(arena_text(&arena, arena_printf(&arena, "1203e%d", exponent)), &arena);

        for (int zeros = 0; zeros < 50; zeros += 7) {
            struct slice trailing = arena_printf(&arena, "1203%0*de%d", zeros + 1, 0, exponent - zeros - 1);
            struct slice leading = arena_printf(&arena, "0.%0*d1203e%d", zeros + 1, 0, exponent + zeros + 5);
            struct slice inner = arena_printf(&arena, "12.030%0*dE+%d", zeros + 1, 0, exponent + 2);

            assert_true(slice_equal(plain, canon_of(arena_text(&arena, trailing), &arena)));
            assert_true(slice_equal(plain, canon_of(arena_text(&arena, leading), &arena)));
            if (exponent + 2 >= 0) {
                assert_true(slice_equal(plain, canon_of(arena_text(&arena, inner), &arena)));
            }
        }
        struct slice other = canon_of(arena_text(&arena, arena_printf(&arena, "1203e%d", exponent + 1)), &arena);

        assert_false(slice_equal(plain, other));
        arena_reset(&arena);
    }
}

TEST(members_left_out_are_gone_at_their_place_only)
{
    static const struct slice leave_out[] = {{"/a", 2},    {"/b/c", 4},    {"/d/1/e", 6},
                                             {"/x~1y", 5}, {"/absent", 7}, {"/f/0", 4}};

    struct slice left = canon(
        SLICE("{\"\\u0061\":1,\"b\":{\"a\":2,\"c\":3},\"c\":4,\"d\":[{\"e\":5},{\"e\":6}],\"x/y\":7,\"f\":[8,9]}"),
        leave_out, COUNT_OF(leave_out), &arena);

    assert_true(slice_is(left, "{\"b\":{\"a\":2},\"c\":4,\"d\":[{\"e\":5},{}],\"f\":[8,9]}"));
    assert_true(slice_is(canon(SLICE("{\"a\":1}"), leave_out, COUNT_OF(leave_out), &arena), "{}"));
    assert_true(slice_is(canon(SLICE("[1]"), leave_out, COUNT_OF(leave_out), &arena), "[1]"));
}

TEST_PROGRAM_ARENA(arena)
