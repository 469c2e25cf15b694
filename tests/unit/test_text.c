/* A slice is not read beyond its end. A buffer never grows past its bound and never holds half of a put. */
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "tests/lib/test.h"

TEST(a_slice_is_compared_byte_for_byte)
{
    assert_true(slice_is(SLICE("abc"), "abc"));
    assert_false(slice_is(SLICE("abc"), "abcd"));
    assert_false(slice_is(SLICE("abc"), "ab"));
    assert_true(slice_equal(SLICE_NONE, SLICE("")));
    assert_true(slice_equal((struct slice){"a\0b", 3}, (struct slice){"a\0b", 3}));
    assert_false(slice_equal((struct slice){"a\0b", 3}, (struct slice){"a\0c", 3}));
    assert_null(slice_of(NULL).ptr);
    assert_int_equal(slice_of("abc").len, 3);
}

TEST(a_shorter_slice_sorts_before_its_continuation)
{
    assert_true(slice_compare(SLICE("ab"), SLICE("abc")) < 0);
    assert_true(slice_compare(SLICE("abc"), SLICE("ab")) > 0);
    assert_true(slice_compare(SLICE("b"), SLICE("abc")) > 0);
    assert_true(slice_compare(SLICE("\x7f"), SLICE("\x80")) < 0);
    assert_int_equal(slice_compare(SLICE_NONE, SLICE("")), 0);
}

TEST(a_prefix_may_be_empty_or_the_whole)
{
    assert_true(slice_starts_with(SLICE("abc"), ""));
    assert_true(slice_starts_with(SLICE("abc"), "abc"));
    assert_false(slice_starts_with(SLICE("abc"), "abcd"));
    assert_true(slice_starts_with(SLICE_NONE, ""));
}

TEST(trimming_leaves_inner_space)
{
    assert_true(slice_is(slice_trim(SLICE(" \t\r\n a b \n")), "a b"));
    assert_int_equal(slice_trim(SLICE(" \n")).len, 0);
    assert_int_equal(slice_trim(SLICE_NONE).len, 0);
}

TEST(a_text_of_its_own_ends_where_its_room_does)
{
    char out[4] = "old";

    slice_to_text(out, sizeof(out), SLICE_NONE);
    assert_string_equal(out, "");
    slice_to_text(out, sizeof(out), SLICE("abc"));
    assert_string_equal(out, "abc");
    slice_to_text(out, sizeof(out), SLICE("uvwxyz"));
    assert_string_equal(out, "uvw");
}

TEST(a_text_is_split_at_its_separators)
{
    struct slice parts[3];

    assert_int_equal(slice_split(SLICE("a bc d"), ' ', parts, 3), 3);
    assert_true(slice_is(parts[0], "a") && slice_is(parts[1], "bc") && slice_is(parts[2], "d"));
    assert_int_equal(slice_split(SLICE(" x"), ' ', parts, 3), 2);
    assert_true(slice_is(parts[0], "") && slice_is(parts[1], "x"));
    assert_int_equal(slice_split(SLICE(""), ' ', parts, 3), 1);
    assert_int_equal(slice_split(SLICE("a b c d"), ' ', parts, 3), 3);
    assert_true(slice_is(parts[2], "c"));
}

static const struct {
    const char *text;
    bool good;
    int64_t value;
} numbers[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"007", true, 7},
    {"9223372036854775807", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775808", false, 0},
    {"-9223372036854775809", false, 0},
    {"99999999999999999999999999", false, 0},
    {"", false, 0},
    {"-", false, 0},
    {"+1", false, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"1.0", false, 0},
    {"1e3", false, 0},
    {"--1", false, 0},
};

TEST(a_number_is_decimal_and_in_range_or_refused)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int64_t value = 42;

        if (slice_to_i64(slice_of(numbers[i].text), &value) != numbers[i].good ||
            value != (numbers[i].good ? numbers[i].value : 42)) {
            fail_msg("%s", numbers[i].text);
        }
    }
    assert_false(slice_to_i64(SLICE_NONE, &(int64_t){0}));
}

TEST(a_buffer_takes_exactly_its_bound)
{
    struct buffer buffer;

    buffer_init(&buffer, 5);
    assert_string_equal(buffer_c(&buffer), "");
    assert_non_null(buffer_slice(&buffer).ptr);
    buffer_put_text(&buffer, "abc");
    buffer_put_text(&buffer, "de");
    assert_false(buffer.overflow);
    assert_string_equal(buffer_c(&buffer), "abcde");
    buffer_put_char(&buffer, 'f');
    assert_true(buffer.overflow);
    assert_string_equal(buffer_c(&buffer), "abcde");
    buffer_fini(&buffer);
}

TEST(what_does_not_fit_is_dropped_whole_and_overflow_stays)
{
    struct buffer buffer;

    buffer_init(&buffer, 5);
    buffer_put_text(&buffer, "abc");
    buffer_put_text(&buffer, "defg");
    buffer_put_char(&buffer, 'h');
    buffer_printf(&buffer, "%d", 1);
    assert_true(buffer.overflow);
    assert_string_equal(buffer_c(&buffer), "abc");
    buffer_reset(&buffer);
    assert_false(buffer.overflow);
    buffer_printf(&buffer, "%s", "12345");
    assert_string_equal(buffer_c(&buffer), "12345");
    buffer_reset(&buffer);
    buffer_printf(&buffer, "%s", "123456");
    assert_true(buffer.overflow);
    assert_int_equal(buffer.len, 0);
    buffer_fini(&buffer);
    buffer_fini(&(struct buffer){0});
}

TEST(a_long_text_is_printed_whole)
{
    struct buffer buffer;

    buffer_init(&buffer, 100000);
    for (int width = 250; width < 262; width++) {
        buffer_reset(&buffer);
        buffer_printf(&buffer, "%0*d", width, 7);
        assert_int_equal(buffer.len, width);
        assert_int_equal(buffer_c(&buffer)[width - 1], '7');
        assert_int_equal(strlen(buffer_c(&buffer)), width);
    }
    buffer_printf(&buffer, "%0*d", 70000, 7);
    assert_false(buffer.overflow);
    buffer_fini(&buffer);
}

TEST(a_number_is_written_as_it_is_read)
{
    static const int64_t written[] = {0, 7, -7, 10, -10, 1234567890123, INT64_MAX, INT64_MIN};
    struct buffer buffer;
    int64_t read;

    buffer_init(&buffer, 100);
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        buffer_reset(&buffer);
        buffer_put_i64(&buffer, written[i]);
        assert_true(slice_to_i64(buffer_slice(&buffer), &read));
        assert_int_equal(read, written[i]);
    }
    assert_string_equal(buffer_c(&buffer), "-9223372036854775808");
    buffer_fini(&buffer);
}

TEST(bytes_of_any_value_go_in)
{
    struct buffer buffer;

    buffer_init(&buffer, 100);
    buffer_put(&buffer, "a\0b", 3);
    buffer_put_slice(&buffer, SLICE_NONE);
    buffer_put_slice(&buffer, SLICE("c"));
    assert_int_equal(buffer.len, 4);
    assert_memory_equal(buffer_slice(&buffer).ptr, "a\0bc", 4);
    buffer_fini(&buffer);
}

TEST(bytes_that_are_not_utf8_are_found_and_replaced)
{
    static const struct {
        struct slice text;
        const char *becomes; /* NULL when the text is UTF-8 */
    } cases[] = {
        {SLICE(""), NULL},
        {SLICE("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), NULL},
        {SLICE("\xef\xbf\xbd"), NULL},
        {SLICE("a\xff"
               "b"),
         "a\xef\xbf\xbd"
         "b"},
        {SLICE("\xc3"), "\xef\xbf\xbd"},
        {SLICE("a\0b"), "a\xef\xbf\xbd"
                        "b"},                                            /* PostgreSQL cannot store it */
        {SLICE("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {SLICE("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
    };
    struct arena arena = {0};

    assert_true(text_is_utf8(SLICE_NONE));
    arena_init(&arena, 256);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice became = text_as_utf8(cases[i].text, &arena);

        assert_int_equal(text_is_utf8(cases[i].text), cases[i].becomes == NULL);
        assert_true(cases[i].becomes ? slice_is(became, cases[i].becomes) : slice_equal(became, cases[i].text));
    }
    arena_fini(&arena);
}

TEST(characters_that_a_terminal_obeys_are_known)
{
    static const char *const obeyed[] = {"\xc2\x80",     "\xc2\x9b",     "\xc2\x9f",     "\xd8\x9c",
                                         "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xae",
                                         "\xe2\x81\xa6", "\xe2\x81\xa9"},
                             *const shown[] = {"",
                                               "a",
                                               "\xc2\xa0",
                                               "\xd8\x9b",
                                               "\xe2\x80\x8d",
                                               "\xe2\x80\x90",
                                               "\xe2\x80\xaf",
                                               "\xe2\x81\xa5",
                                               "\xe2\x81\xaa",
                                               "\xe4\xb8\xad",
                                               "\xe2\x80",
                                               "\xc2"};

    for (size_t i = 0; i < COUNT_OF(obeyed); i++) {
        assert_int_equal(utf8_obeyed(obeyed[i], strlen(obeyed[i])), strlen(obeyed[i]));
        assert_false(text_is_shown(slice_of(obeyed[i])));
    }
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        assert_true(text_is_shown(slice_of(shown[i])));
    }
}

TEST_PROGRAM(NULL, NULL)
