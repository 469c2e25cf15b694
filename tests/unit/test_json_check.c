/* What the strict scanner accepts and refuses, with the byte and the JSON Pointer that it names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/lib/test.h"

#define T(literal)                                                                                                     \
    {                                                                                                                  \
        "" literal, sizeof(literal) - 1                                                                                \
    }

static const struct slice taken[] = {
    T("null"),
    T("true"),
    T("false"),
    T("0"),
    T("\"\""),
    T("[]"),
    T("{}"),
    T(" \t\r\n[ ]\n "),
    T("{ }"),
    /* numbers */
    T("-0"),
    T("-1"),
    T("10"),
    T("1.0"),
    T("0.1"),
    T("-0.0e-0"),
    T("1e3"),
    T("1E+3"),
    T("1e-3"),
    T("1e400"),
    T("1e-400"),
    T("1e00000400"),
    T("123456789012345678901234567890"),
    T("0.00000000000000000000000000000000000000000001"),
    T("[0,-0,0.0]"),
    /* strings */
    T("\"abc\""),
    T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
    T("\"\\u0001\\u001f\\u00e9\\uFFFF\""),
    T("\"\\ud83d\\ude00\""),
    T("\"\\uD83D\\uDE00\""),
    T("\"\x7f\""),
    T("\"\xc2\x80\""),
    T("\"\xdf\xbf\""),
    T("\"\xe0\xa0\x80\""),
    T("\"\xed\x9f\xbf\""),
    T("\"\xee\x80\x80\""),
    T("\"\xef\xbf\xbf\""),
    T("\"\xf0\x90\x80\x80\""),
    T("\"\xf4\x8f\xbf\xbf\""),
    T("\"\xef\xbb\xbf\""),
    T("\"0123456\\n01234567\xc3\xa9"
      "01234567\""),
    T("\"                        \""),
    /* containers */
    T("[1,2,[3,[4]]]"),
    T("{\"a\":{\"a\":{\"a\":1}}}"),
    T("[{\"a\":1},{\"a\":1}]"),
    T("{\"\":1}"),
    T("{\"a\":1,\"A\":2}"),
    T("{\"a\":1,\"a \":2}"),
};

static const struct {
    struct slice text;
    size_t at;
    const char *near, *says;
} refused[] = {
    /* syntax */
    {T(""), 0, "", "no text"},
    {T("   "), 3, "", "ends where a value"},
    {T("\xef\xbb\xbf{}"), 0, "", "no JSON value"},
    {T("nul"), 0, "", "no JSON value"},
    {T("True"), 0, "", "no JSON value"},
    {T("NaN"), 0, "", "no JSON value"},
    {T("Infinity"), 0, "", "no JSON value"},
    {T("-Infinity"), 0, "", "no number"},
    {T("'a'"), 0, "", "no JSON value"},
    {T("/**/1"), 0, "", "no JSON value"},
    {T("\v1"), 0, "", "no JSON value"},
    {T("\xc2\xa0"
       "1"),
     0, "", "no JSON value"},
    {T("1 2"), 2, "", "follows the end"},
    {T("{}x"), 2, "", "follows the end"},
    {T("{}\0"), 2, "", "follows the end"},
    {T("nullx"), 4, "", "follows the end"},
    {T("]"), 0, "", "no JSON value"},
    {T("["), 1, "/0", "ends where a value"},
    {T("[1"), 2, "/0", "ends within an array"},
    {T("[1,"), 3, "/1", "ends where a value"},
    {T("[1,]"), 3, "/1", "no JSON value"},
    {T("[,1]"), 1, "/0", "no JSON value"},
    {T("[1 2]"), 3, "/0", "comma or ]"},
    {T("[1}"), 2, "/0", "comma or ]"},
    {T("{"), 1, "", "name of a member"},
    {T("{a:1}"), 1, "", "name of a member"},
    {T("{'a':1}"), 1, "", "name of a member"},
    {T("{1:1}"), 1, "", "name of a member"},
    {T("{\"a\"}"), 4, "/a", "colon"},
    {T("{\"a\" 1}"), 5, "/a", "colon"},
    {T("{\"a\":}"), 5, "/a", "no JSON value"},
    {T("{\"a\":1"), 6, "/a", "ends within an object"},
    {T("{\"a\":1,}"), 7, "", "name of a member"},
    {T("{\"a\":1 \"b\":2}"), 7, "/a", "comma or }"},
    {T("{\"a\":1]"), 6, "/a", "comma or }"},
    /* numbers */
    {T("-"), 0, "", "no number"},
    {T("+1"), 0, "", "no JSON value"},
    {T("01"), 0, "", "leading zeros"},
    {T("-01"), 0, "", "leading zeros"},
    {T("00"), 0, "", "leading zeros"},
    {T(".5"), 0, "", "no JSON value"},
    {T("1."), 0, "", "decimal point"},
    {T("1.e3"), 0, "", "decimal point"},
    {T("1e"), 0, "", "exponent"},
    {T("1e+"), 0, "", "exponent"},
    {T("1e-x"), 0, "", "exponent"},
    {T("0x10"), 1, "", "follows the end"},
    {T("1_000"), 1, "", "follows the end"},
    {T("1e401"), 0, "", "exponent of this number"},
    {T("[1,1E-401]"), 3, "/1", "exponent of this number"},
    {T("1e99999999999999999999999999"), 0, "", "exponent of this number"},
    /* strings */
    {T("\""), 0, "", "no end"},
    {T("\"abc"), 0, "", "no end"},
    {T("\"abc\\\""), 0, "", "no end"},
    {T("\"\\"), 1, "", "ends within a string"},
    {T("\"\\x41\""), 1, "", "escape"},
    {T("\"\\'\""), 1, "", "escape"},
    {T("\"\\\0\""), 1, "", "escape"},
    {T("\"\\U0041\""), 1, "", "escape"},
    {T("\"\\u12\""), 1, "", "four hexadecimal"},
    {T("\"\\u12g4\""), 1, "", "four hexadecimal"},
    {T("\"\\u+123\""), 1, "", "four hexadecimal"},
    {T("\"\\u123"), 1, "", "four hexadecimal"},
    {T("\"\\u0000\""), 1, "", "U+0000"},
    {T("{\"a\\u0000\":1}"), 3, "", "U+0000"},
    {T("\"a\0b\""), 2, "", "control character"},
    {T("\"a\nb\""), 2, "", "control character"},
    {T("\"a\tb\""), 2, "", "control character"},
    {T("\"01234567\x1f"
       "1234567\""),
     9, "", "control character"},
    {T("{\"a\n\":1}"), 3, "", "control character"},
    /* surrogates */
    {T("\"\\ud800\""), 1, "", "lone high"},
    {T("\"\\ud83d\\ud83d\""), 1, "", "lone high"},
    {T("\"\\ud83dx\""), 1, "", "lone high"},
    {T("\"\\ud83d\\n\""), 1, "", "lone high"},
    {T("\"\\ud83d\\u0041\""), 1, "", "lone high"},
    {T("\"\\ud83d\\ude0"), 1, "", "lone high"},
    {T("\"\\udc00\""), 1, "", "lone low"},
    {T("\"\\ude00\\ud83d\""), 1, "", "lone low"},
    /* UTF-8 */
    {T("\"\x80\""), 1, "", "not UTF-8"},
    {T("\"\xbf\""), 1, "", "not UTF-8"},
    {T("\"\xc0\x80\""), 1, "", "not UTF-8"},
    {T("\"\xc1\xbf\""), 1, "", "not UTF-8"},
    {T("\"\xc3\""), 1, "", "not UTF-8"},
    {T("\"\xc3"), 1, "", "not UTF-8"},
    {T("\"\xe0\x80\x80\""), 1, "", "not UTF-8"},
    {T("\"\xe0\x9f\xbf\""), 1, "", "not UTF-8"},
    {T("\"\xe2\x82\""), 1, "", "not UTF-8"},
    {T("\"\xed\xa0\x80\""), 1, "", "not UTF-8"},
    {T("\"\xed\xbf\xbf\""), 1, "", "not UTF-8"},
    {T("\"\xf0\x80\x80\x80\""), 1, "", "not UTF-8"},
    {T("\"\xf0\x8f\xbf\xbf\""), 1, "", "not UTF-8"},
    {T("\"\xf0\x9f\x98\""), 1, "", "not UTF-8"},
    {T("\"\xf4\x90\x80\x80\""), 1, "", "not UTF-8"},
    {T("\"\xf5\x80\x80\x80\""), 1, "", "not UTF-8"},
    {T("\"\xff\""), 1, "", "not UTF-8"},
    {T("\"0123456789\xff\""), 11, "", "not UTF-8"},
    {T("{\"\xff\":1}"), 2, "", "not UTF-8"},
    /* Duplicate members: the message names the repetition, wherever the object ends. */
    {T("{\"a\":1,\"a\":2}"), 7, "/a", "twice"},
    {T("{\"a\":1,\"a\":2,\"b\":3}"), 7, "/a", "twice"},
    {T("{\"b\":1,\"a\":2,\"b\":{\"c\":3},\"a\":4}"), 13, "/b", "twice"},
    {T("{\"\":1,\"\":2}"), 6, "/", "twice"},
    {T("{\"a\":1,\"\\u0061\":2}"), 7, "/a", "twice"},
    {T("{\"\\/\":1,\"/\":2}"), 8, "/~1", "twice"},
    {T("{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}"), 10, "/\xf0\x9f\x98\x80", "twice"},
    {T("[0,{\"x\":[{\"a\":1,\"b\":1,\"a\":1}]}]"), 22, "/1/x/0/a", "twice"},
    {T("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1,\"5\":1,\"1\":1}"), 55, "/5", "twice"},
    /* pointers */
    {T("{\"a~b\":{\"c/d\":[1,2,x]}}"), 19, "/a~0b/c~1d/2", "no JSON value"},
    {T("{\"a\":{\"b\":1},\"c\":[[1],[x]]}"), 23, "/c/1/0", "no JSON value"},
    {T("{\"a\":{\"b\":1},c:1}"), 13, "", "name of a member"},
    {T("{\"\\u0041\\n\\u009b\xc2\x9b\x7f\":x}"), 21, "/A????", "no JSON value"},
};

TEST(documents_that_every_reader_reads_the_same_way_are_taken)
{
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        struct err err = {0};
        char *exact = malloc(taken[i].len); /* an exact copy, so that a read beyond the end is noticed */

        memcpy(exact, taken[i].ptr, taken[i].len);
        if (json_check((struct slice){exact, taken[i].len}, &json_limits_default, &err) != ERR_OK) {
            fail_msg("%.*s: %s", SLICE_ARG(taken[i]), err.detail);
        }
        free(exact);
    }
}

TEST(everything_else_is_refused_with_its_place)
{
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct err err = {0};
        char *exact = malloc(refused[i].text.len + !refused[i].text.len), place[200];

        memcpy(exact, refused[i].text.ptr, refused[i].text.len);
        enum err_code code = json_check((struct slice){exact, refused[i].text.len}, &json_limits_default, &err);

        free(exact);
        (void)snprintf(place, sizeof(place), "at byte %zu, near \"%s\"", refused[i].at, refused[i].near);
        if (code != ERR_MALFORMED || err.code != code || !strstr(err.detail, place) ||
            !strstr(err.detail, refused[i].says)) {
            fail_msg("%zu %.*s: %d %s (not %s)", i, SLICE_ARG(refused[i].text), (int)code, err.detail, place);
        }
    }
    assert_int_equal(json_check(SLICE_NONE, &json_limits_default, NULL), ERR_MALFORMED);
}

TEST(a_byte_less_is_never_a_text)
{
    static const struct slice whole = T("{\"a\":[1,-2.5e+3,\"x\\u00e9\\ud83d\\ude00\xc3\xa9\",true,false,null,{}]}");

    assert_int_equal(json_check(whole, &json_limits_default, NULL), ERR_OK);
    for (size_t len = 0; len < whole.len; len++) {
        char *exact = malloc(len + 1);

        memcpy(exact, whole.ptr, len);
        assert_int_equal(json_check((struct slice){exact, len}, &json_limits_default, NULL), ERR_MALFORMED);
        free(exact);
    }
}

static enum err_code check_nested(const char *open, const char *close, int levels, const struct json_limits *limits,
                                  struct err *err)
{
    struct buffer text;

    buffer_init(&text, 10 << 20);
    for (int i = 0; i < levels; i++) {
        buffer_put_text(&text, open);
    }
    buffer_put_text(&text, "1");
    for (int i = 0; i < levels; i++) {
        buffer_put_text(&text, close);
    }
    enum err_code code = json_check(buffer_slice(&text), limits, err);

    buffer_fini(&text);
    return code;
}

TEST(nesting_is_taken_up_to_its_bound)
{
    struct json_limits limits = json_limits_default;
    struct err err = {0};

    assert_int_equal(check_nested("[", "]", 64, &limits, &err), ERR_OK);
    assert_int_equal(check_nested("{\"a\":", "}", 64, &limits, &err), ERR_OK);
    assert_int_equal(check_nested("[", "]", 65, &limits, &err), ERR_MALFORMED);
    assert_non_null(strstr(err.detail, "at byte 64,"));
    assert_non_null(strstr(err.detail, "deeper"));
    assert_int_equal(check_nested("{\"a\":", "}", 65, &limits, &err), ERR_MALFORMED);
    assert_int_equal(check_nested("[", "]", 500000, &limits, &err), ERR_MALFORMED);
    limits.depth_max = 2;
    assert_int_equal(check_nested("[", "]", 2, &limits, &err), ERR_OK);
    assert_int_equal(check_nested("[", "]", 3, &limits, &err), ERR_MALFORMED);
}

TEST(size_is_taken_up_to_its_bound)
{
    struct json_limits limits = {.bytes_max = 10, .depth_max = 4, .number_bytes_max = 5, .exponent_max = 3};
    struct err err = {0};

    assert_int_equal(json_check(SLICE("[1,2,3,4 ]"), &limits, &err), ERR_OK);
    assert_int_equal(json_check(SLICE("[1,2,3,4  ]"), &limits, &err), ERR_TOO_LARGE);
    assert_int_equal(json_check(SLICE("12345"), &limits, &err), ERR_OK);
    assert_int_equal(json_check(SLICE("-1234"), &limits, &err), ERR_OK);
    assert_int_equal(json_check(SLICE("[123456]"), &limits, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.detail, "at byte 1, near \"/0\""));
    assert_int_equal(json_check(SLICE("1e3"), &limits, &err), ERR_OK);
    assert_int_equal(json_check(SLICE("1e-4"), &limits, &err), ERR_MALFORMED);
}

TEST(a_long_pointer_is_cut_not_overrun)
{
    struct buffer text;
    struct err err = {0};

    buffer_init(&text, 1 << 20);
    for (int i = 0; i < 60; i++) {
        buffer_put_text(&text, "{\"a name of some length, with \xc3\xa9\":");
    }
    assert_int_equal(json_check(buffer_slice(&text), &json_limits_default, &err), ERR_MALFORMED);
    assert_true(strlen(err.detail) < sizeof(err.detail) - 1);
    buffer_fini(&text);
}

/* Comparing pairs would take 10^10 steps, an hour. The time of this test is its bound. */
TEST(many_members_are_compared_in_better_than_quadratic_time)
{
    struct json_limits limits = json_limits_default;
    struct buffer text;
    struct err err = {0};

    limits.bytes_max = 16 << 20;
    buffer_init(&text, limits.bytes_max);
    buffer_put_char(&text, '{');
    for (int i = 0; i < 100000; i++) {
        buffer_printf(&text, "\"member \\u0041 %d\":%d,", i * 7919 % 100000, i);
    }
    size_t end = text.len;

    buffer_put_text(&text, "\"other\":0}");
    assert_int_equal(json_check(buffer_slice(&text), &limits, &err), ERR_OK);
    text.len = end;
    buffer_put_text(&text, "\"member A 77\":0}");
    assert_int_equal(json_check(buffer_slice(&text), &limits, &err), ERR_MALFORMED);
    char place[64];

    (void)snprintf(place, sizeof(place), "at byte %zu, near \"/member A 77\"", end);
    assert_non_null(strstr(err.detail, place));
    buffer_fini(&text);
}

TEST(two_names_are_found_wherever_they_stand)
{
    for (int count = 2; count < 24; count++) {
        for (int i = 0; i < count; i++) {
            for (int k = i + 1; k < count; k++) {
                struct buffer text;
                struct err err = {0};
                char near[32];

                buffer_init(&text, 4096);
                for (int n = 0; n < count; n++) {
                    buffer_printf(&text, "%c\"n%d\":[{\"n1\":1}]", n ? ',' : '{', n == k ? i : n);
                }
                buffer_put_char(&text, '}');
                assert_int_equal(json_check(buffer_slice(&text), &json_limits_default, &err), ERR_MALFORMED);
                (void)snprintf(near, sizeof(near), "near \"/n%d\"", i);
                assert_non_null(strstr(err.detail, near));
                buffer_fini(&text);
            }
        }
    }
}

/* --- syntax alone --- */

static const struct slice only_syntax[] = {
    T("[{\"a\":1,\"a\":2}]"),
    T("[\"\\ud800\"]"),
    T("[\"\\udc00\\ud800\"]"),
    T("[\"\\u0000\"]"),
    T("[\"\xff\xc0\",\"\xed\xa0\x80\"]"),
    T("[1e401,1e99999]"),
    T("{\"\\ud800\":1,\"\\ud800\":2}"),
};

TEST(what_is_wrong_beyond_the_syntax_passes_where_only_that_is_asked_for)
{
    struct err err = {0};

    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        assert_int_equal(json_check_syntax(taken[i], &err), ERR_OK);
    }
    for (size_t i = 0; i < COUNT_OF(only_syntax); i++) {
        assert_int_equal(json_check(only_syntax[i], &json_limits_default, &err), ERR_MALFORMED);
        assert_int_equal(json_check_syntax(only_syntax[i], &err), ERR_OK);
    }
}

TEST(a_text_that_is_no_json_fails_in_its_syntax_too)
{
    static const struct slice texts[] = {T(""),        T("["),     T("[1,]"),        T("[1 2]"),     T("[1}"),
                                         T("[{]}"),    T("[\"a]"), T("[\"\\u12\"]"), T("[\"\\x\"]"), T("[\"a\nb\"]"),
                                         T("[1],[2]"), T("[nul]"), T("[01]"),        T("{\"a\"}"),   T("{a:1}")};
    struct err err = {0};

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(json_check_syntax(texts[i], &err), ERR_MALFORMED);
        assert_true(err.message[0] != '\0');
    }
}

TEST(elements_are_told_apart_however_deep_one_is)
{
    char text[1000] = "[1,";
    struct slice element;
    struct err err = {0};
    size_t count = 0;

    memset(text + 3, '[', 300);
    (void)memcpy(text + 303, "\"]]\"", 4);
    memset(text + 307, ']', 300);
    (void)memcpy(text + 607, ",{\"b\":2}]", 10);
    struct slice whole = slice_of(text);
    struct json_walk walk = json_walk(whole);

    assert_int_equal(json_check(whole, &json_limits_default, &err), ERR_MALFORMED);
    assert_int_equal(json_check_syntax(whole, &err), ERR_OK);
    while (json_next_element(&walk, &element)) {
        assert_int_equal(json_check(element, &json_limits_default, &err), count == 1 ? ERR_MALFORMED : ERR_OK);
        count++;
    }
    assert_int_equal(count, 3);
    text[606] = 'x'; /* one object is not closed, so the array is not closed, either */
    assert_int_equal(json_check_syntax(whole, &err), ERR_MALFORMED);
}

TEST_PROGRAM(NULL, NULL)
