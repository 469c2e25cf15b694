/* Reading checked text: values are slices of the text, whatever notation the text uses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json.h"
#include "tests/lib/test.h"

static struct slice good(const char *text)
{
    struct err err = {0};

    if (json_check(slice_of(text), &json_limits_default, &err) != ERR_OK) {
        fail_msg("%s: %s", text, err.detail);
    }
    return slice_of(text);
}

static struct arena arena;

TEST(a_value_knows_its_type)
{
    static const struct {
        const char *text;
        enum json_type type;
        const char *name;
    } cases[] = {
        {" null ", JSON_NULL, "null"},   {"true", JSON_BOOL, "boolean"},   {"\nfalse", JSON_BOOL, "boolean"},
        {"-1", JSON_NUMBER, "number"},   {"\"a\"", JSON_STRING, "string"}, {"[]", JSON_ARRAY, "array"},
        {"\t{}", JSON_OBJECT, "object"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(json_type(good(cases[i].text)), cases[i].type);
        assert_string_equal(json_type_name(cases[i].type), cases[i].name);
    }
    assert_int_equal(json_type(SLICE_NONE), JSON_NONE);
}

TEST(a_walk_sees_every_member_as_it_was_written)
{
    static const char *const names[] = {"a", "b\\\"]", "", "d"}, *const values[] = {"1.50", "[1, {\"x\":\"}\"}]",
                                                                                    "\"]\\\\\"", "{\"e\": {} }"};
    struct json_walk walk =
        json_walk(good(" { \"a\" : 1.50 ,\"b\\\"]\": [1, {\"x\":\"}\"}],\n\"\":\"]\\\\\",\"d\":{\"e\": {} } } "));
    struct slice name, value;
    size_t i = 0;

    for (; json_next_member(&walk, &name, &value); i++) {
        assert_true(slice_is(name, names[i]));
        assert_true(slice_is(value, values[i]));
    }
    assert_int_equal(i, 4);
    assert_false(json_next_member(&walk, &name, &value));
}

TEST(a_walk_sees_every_element_as_it_was_written)
{
    static const char *const values[] = {"1e3", "\",\"", "[ ]", "null", "true", "{\"a\":[1]}"};
    struct json_walk walk = json_walk(good("[1e3, \",\" ,[ ],null\n,true,{\"a\":[1]}]"));
    struct slice value;
    size_t i = 0;

    for (; json_next_element(&walk, &value); i++) {
        assert_true(slice_is(value, values[i]));
    }
    assert_int_equal(i, 6);
}

/* Strings are skipped eight bytes at a time, so a quote and an escape are put at each place of several such steps. The
 * text ends with its memory, so that sanitizers see a byte read behind it. */
TEST(a_string_of_any_length_ends_at_its_own_quote)
{
    static const char *const escapes[] = {"", "\\\"", "\\\\", "\\u0022"};

    for (int len = 0; len <= 40; len++) {
        for (int place = 0; place <= len; place++) {
            for (size_t i = 0; i < COUNT_OF(escapes); i++) {
                char padded[128];
                int size = snprintf(padded, sizeof(padded), "{\"a\":\"%.*s%s%.*s\",\"b\":\"%.*s\"}", place,
                                    "{[}]{[}]{[}]{[}]{[}]{[}]{[}]{[}]{[}]{[}]", escapes[i], len - place,
                                    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", place,
                                    "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
                char *text = memory_alloc((size_t)size);

                memcpy(text, padded, (size_t)size);
                struct slice object = {text, (size_t)size}, a = json_member(object, "a"), b = json_member(object, "b");

                assert_int_equal(a.len, len + strlen(escapes[i]) + 2);
                assert_int_equal(b.len, place + 2);
                assert_ptr_equal(b.ptr + b.len + 1, text + size);
                free(text);
            }
        }
    }
}

TEST(a_value_without_items_is_walked_in_no_step)
{
    static const char *const texts[] = {"{}", "[ ]", "1", "\"ab\"", "null"};
    struct slice name, value;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct json_walk walk = json_walk(slice_of(texts[i])), again = walk;

        assert_false(json_next_member(&walk, &name, &value));
        assert_false(json_next_element(&again, &value));
        assert_int_equal(json_count(slice_of(texts[i])), 0);
        assert_null(json_member(slice_of(texts[i]), "a").ptr);
        assert_null(json_element(slice_of(texts[i]), 0).ptr);
    }
    assert_int_equal(json_count(SLICE_NONE), 0);
    assert_null(json_member(SLICE_NONE, "a").ptr);
    assert_int_equal(json_count(SLICE("[1,[2,3],4]")), 3);
    assert_int_equal(json_count(SLICE("{\"a\":1,\"b\":{\"c\":1}}")), 2);
}

TEST(a_member_is_found_by_its_unescaped_name)
{
    struct slice object = good("{\"\\u0061b\":1,\"\\ud83d\\ude00\":2,\"a\":{\"x\":3},\"a\\nb\":4,\"ab\\u0063\":5}");

    assert_true(slice_is(json_member(object, "ab"), "1"));
    assert_true(slice_is(json_member(object, "\xf0\x9f\x98\x80"), "2"));
    assert_true(slice_is(json_member(object, "a\nb"), "4"));
    assert_true(slice_is(json_member(object, "abc"), "5"));
    assert_null(json_member(object, "x").ptr);
    assert_null(json_member(object, "").ptr);
    assert_null(json_member(object, "\\u0061b").ptr);
    assert_null(json_member(SLICE("[\"a\"]"), "a").ptr);
}

static const struct {
    const char *pointer, *value; /* NULL when absent */
} places[] = {
    /* RFC 6901, section 5, and the pointers that it excludes. */
    {"/foo", "[\"bar\", \"baz\"]"},
    {"/foo/0", "\"bar\""},
    {"/foo/1", "\"baz\""},
    {"/", "0"},
    {"/a~1b", "1"},
    {"/c%d", "2"},
    {"/e^f", "3"},
    {"/g|h", "4"},
    {"/i\\j", "5"},
    {"/k\"l", "6"},
    {"/ ", "7"},
    {"/m~0n", "8"},
    {"/~01", "9"},
    {"/deep/x/1/y", "[]"},
    {"/foo/2", NULL},
    {"/foo/-", NULL},
    {"/foo/-0", NULL},
    {"/foo/-1", NULL},
    {"/foo/00", NULL},
    {"/foo/01", NULL},
    {"/foo/ 1", NULL},
    {"/foo/1e0", NULL},
    {"/foo/", NULL},
    {"/foo/99999999999999999999", NULL},
    {"/foo/0/x", NULL},
    {"/a", NULL},
    {"foo", NULL},
    {"#/foo", NULL},
    {"/m~n", NULL},
    {"/m~", NULL},
    {"/m~2n", NULL},
    {"//", NULL},
    {"/deep/x/1/y/0", NULL},
};

TEST(a_pointer_leads_to_its_place)
{
    struct slice document = good(" {\"foo\": [\"bar\", \"baz\"], \"\": 0, \"a/b\": 1, \"c%d\": 2, \"e^f\": 3, \"g|h\": "
                                 "4, \"i\\\\j\": 5, \"k\\\"l\": 6, \" \": 7, "
                                 "\"m~n\": 8, \"~1\": 9, \"deep\": {\"x\": [0, {\"y\": []}]}} ");

    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct slice found = json_at(document, slice_of(places[i].pointer));

        if (places[i].value ? !slice_is(found, places[i].value) : found.ptr != NULL) {
            fail_msg("%s: %.*s", places[i].pointer, SLICE_ARG(found));
        }
    }
    assert_true(slice_equal(json_at(document, SLICE("")), json_trim(document)));
    assert_true(slice_is(json_at(SLICE("5"), SLICE_NONE), "5"));
    assert_null(json_at(SLICE_NONE, SLICE("/a")).ptr);
}

TEST(a_pointer_made_of_parts_leads_back)
{
    static const char *const parts[] = {"", "a", "~", "/", "~1", "a~/b", "\xc3\xa9"};

    assert_true(slice_is(json_pointer_join(&arena, SLICE("/x"), SLICE("a~/b")), "/x/a~0~1b"));
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct buffer text;

        buffer_init(&text, 1000);
        buffer_put_text(&text, "{\"q\":{\"other\":0,");
        json_put_string(&text, slice_of(parts[i]));
        buffer_put_text(&text, ":7}}");
        struct slice pointer =
            json_pointer_join(&arena, json_pointer_join(&arena, SLICE(""), SLICE("q")), slice_of(parts[i]));

        assert_true(slice_is(json_at(good(buffer_c(&text)), pointer), "7"));
        buffer_fini(&text);
    }
}

static const struct {
    const char *json, *text;
} strings[] = {
    {"\"\"", ""},
    {" \"abc\" ", "abc"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
    {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac"},
    {"\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
    {"\"\\ud800\\udc00\\udbff\\udfff\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"},
    {"\"\xc3\xa9\\n\xe2\x82\xac\"", "\xc3\xa9\n\xe2\x82\xac"},
    {"\"\\\\u0041\"", "\\u0041"},
};

TEST(a_string_is_what_its_escapes_mean)
{
    for (size_t i = 0; i < COUNT_OF(strings); i++) {
        struct slice text = json_string(good(strings[i].json), &arena);

        if (!slice_is(text, strings[i].text) || !json_string_is(slice_of(strings[i].json), strings[i].text)) {
            fail_msg("%s: %.*s", strings[i].json, SLICE_ARG(text));
        }
        assert_false(json_string_is(slice_of(strings[i].json), "something else"));
    }
    struct slice plain = SLICE("\"borrowed\"");

    assert_ptr_equal(json_string(plain, &arena).ptr, plain.ptr + 1);
    assert_null(json_string(SLICE("5"), &arena).ptr);
    assert_null(json_string(SLICE_NONE, &arena).ptr);
    assert_non_null(json_string(SLICE("\"\""), &arena).ptr);
    assert_false(json_string_is(SLICE("null"), "null"));
}

static const struct {
    const char *text;
    bool is;
    int64_t value;
} integers[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"0.0", true, 0},
    {"0e5", true, 0},
    {"-0.00e-400", true, 0},
    {" 7 ", true, 7},
    {"1e3", true, 1000},
    {"1E+3", true, 1000},
    {"10.0", true, 10},
    {"12.50e1", true, 125},
    {"1200e-2", true, 12},
    {"0.001e3", true, 1},
    {"-2.5e1", true, -25},
    {"1e18", true, 1000000000000000000},
    {"1e0000018", true, 1000000000000000000},
    {"9223372036854775807", true, INT64_MAX},
    {"9223372036854775807.0", true, INT64_MAX},
    {"9.223372036854775807e18", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"-9.223372036854775808E18", true, INT64_MIN},
    {"-92233720368547758080e-1", true, INT64_MIN},
    {"9007199254740993", true, 9007199254740993},
    {"1000000000000000000000e-20", true, 10},
    {"9223372036854775808", false, 0},
    {"-9223372036854775809", false, 0},
    {"9223372036854775808.0", false, 0},
    {"1e19", false, 0},
    {"1e400", false, 0},
    {"0.5", false, 0},
    {"1e-1", false, 0},
    {"10.01", false, 0},
    {"15e-1", false, 0},
    {"123456789012345678901234567890", false, 0},
    {"\"1\"", false, 0},
    {"true", false, 0},
    {"null", false, 0},
    {"[1]", false, 0},
};

TEST(a_number_is_an_integer_by_its_value_not_its_notation)
{
    for (size_t i = 0; i < COUNT_OF(integers); i++) {
        int64_t value = 42;
        bool is = json_i64(good(integers[i].text), &value);

        if (is != integers[i].is || value != (is ? integers[i].value : 42)) {
            fail_msg("%s: %lld", integers[i].text, (long long)value);
        }
    }
    assert_false(json_i64(SLICE_NONE, &(int64_t){0}));
}

TEST(a_boolean_is_one_of_two_words)
{
    bool value = false;

    assert_true(json_bool(SLICE(" true"), &value) && value);
    assert_true(json_bool(SLICE("false "), &value) && !value);
    assert_false(json_bool(SLICE("\"true\""), &value));
    assert_false(json_bool(SLICE("0"), &value));
    assert_false(json_bool(SLICE_NONE, &value));
}

TEST(a_tree_ends_with_its_arena)
{
    struct cJSON *tree = json_tree(good(" {\"a\":[1,\"x\"]} "), &arena);

    assert_non_null(tree);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(tree, "a")), 2);
    assert_non_null(json_tree(SLICE("null"), &arena));
    arena_fini(&arena); /* the leak checker is the judge */
}

TEST_PROGRAM_ARENA(arena)
