/* The output passes the strict scanner, whatever the input was. */
#include <string.h>

#include "base/json.h"
#include "tests/lib/test.h"

TEST(commas_and_quotes_come_by_themselves)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 10000);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "a", "x");
    json_write_text(&w, "b", NULL);
    json_write_slice(&w, "c", SLICE_NONE);
    json_write_slice(&w, "d", SLICE(""));
    json_write_raw(&w, "e", SLICE("1.50"));
    json_write_raw(&w, "f", SLICE_NONE);
    json_array_begin(&w, "g");
    json_array_begin(&w, NULL);
    json_array_end(&w);
    json_object_begin(&w, NULL);
    json_object_end(&w);
    json_write_i64(&w, NULL, INT64_MIN);
    json_write_bool(&w, NULL, true);
    json_write_null(&w, NULL);
    json_array_end(&w);
    json_write_bool(&w, "h\"", false);
    json_object_end(&w);
    assert_string_equal(buffer_c(&out), "{\"a\":\"x\",\"b\":null,\"c\":null,\"d\":\"\",\"e\":1.50,\"f\":null,"
                                        "\"g\":[[],{},-9223372036854775808,true,null],\"h\\\"\":false}");
    assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, NULL), ERR_OK);
    buffer_fini(&out);
}

static const struct {
    struct slice text;
    const char *json;
} strings[] = {
    {{"", 0}, "\"\""},
    {{NULL, 0}, "\"\""},
    {{"abc", 3}, "\"abc\""},
    {{"\"\\/", 3}, "\"\\\"\\\\/\""},
    {{"\n\r\t\b\x1f", 5}, "\"\\n\\r\\t\\u0008\\u001f\""},
    {{"a\0b", 3},
     "\"a\xef\xbf\xbd"
     "b\""},
    {{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9}, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {{"\xff"
      "a",
      2},
     "\"\xef\xbf\xbd"
     "a\""},
    {{"a\xe2\x82", 3}, "\"a\xef\xbf\xbd\xef\xbf\xbd\""},
    {{"\xed\xa0\x80", 3}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {{"\xc0\x80", 2}, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
};

TEST(strings_are_escaped_and_mended)
{
    for (size_t i = 0; i < COUNT_OF(strings); i++) {
        struct buffer out;

        buffer_init(&out, 1000);
        json_put_string(&out, strings[i].text);
        assert_string_equal(buffer_c(&out), strings[i].json);
        buffer_fini(&out);
    }
}

TEST(any_bytes_at_all_become_a_text_that_is_taken)
{
    unsigned char bytes[6];
    uint32_t seed = 7;
    struct buffer out;

    buffer_init(&out, 1000);
    for (int round = 0; round < 50000; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] =
                (unsigned char)(round % 2 ? seed >> 24 : 0x80 | seed >> 25); /* in every other round all bytes are above
                                                                                0x7f, which is mostly not UTF-8 */
        }
        buffer_reset(&out);
        json_put_string(&out, (struct slice){(const char *)bytes, sizeof(bytes)});
        assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, NULL), ERR_OK);
    }
    buffer_fini(&out);
}

TEST(a_document_is_read_back_as_it_was_written)
{
    struct arena arena;
    struct buffer out;
    char text[0x7f];

    arena_init(&arena, 1024);
    buffer_init(&out, 10000);
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i + 1);
    }
    json_put_string(&out, (struct slice){text, sizeof(text)});
    assert_true(slice_equal(json_string(buffer_slice(&out), &arena), (struct slice){text, sizeof(text)}));
    buffer_fini(&out);
    arena_fini(&arena);
}

TEST_PROGRAM(NULL, NULL)
