/* One line is one event, whatever its texts hold. A field that does not fit is left out whole. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "tests/lib/test.h"

#define FIELDS(...) ((const struct log_field[]){__VA_ARGS__, LOG_END})

static void render(struct buffer *out, enum log_format format, const struct log_field *fields)
{
    log_setup(LOG_LEVEL_INFO, format);
    buffer_reset(out);
    log_render(out, 250, LOG_LEVEL_WARN, "lease_lost", fields);
}

TEST(fields_keep_their_types)
{
    struct buffer out;
    struct uuid uuid = {{1, 2}};
    struct err err = {.code = ERR_STORE, .message = "no \"answer\"", .detail = "port 1", .hint = "wait"};
    const struct log_field *fields =
        FIELDS(LOG_I64("shard", 7), LOG_MS("held", -3), LOG_TEXT("name", "x y"), LOG_TEXT("none", NULL),
               LOG_SLICE("part", SLICE("z")), LOG_UUID("saga", &uuid), LOG_ERR(&err));

    buffer_init(&out, 16384);
    render(&out, LOG_FORMAT_JSON, fields);
    assert_string_equal(buffer_c(&out), "{\"ts\":\"1970-01-01T00:00:00.250Z\",\"level\":\"warn\",\"event\":\"lease_"
                                        "lost\",\"shard\":7,\"held\":-3,\"name\":\"x y\","
                                        "\"none\":\"\",\"part\":\"z\",\"saga\":\"01020000-0000-0000-0000-"
                                        "000000000000\",\"error\":\"no \\\"answer\\\"\","
                                        "\"detail\":\"port 1\",\"hint\":\"wait\"}\n");
    render(&out, LOG_FORMAT_TEXT, fields);
    assert_string_equal(
        buffer_c(&out),
        "1970-01-01T00:00:00.250Z warn  lease_lost shard=7 held=-3 name=\"x y\" none=\"\" part=\"z\" "
        "saga=\"01020000-0000-0000-0000-000000000000\" error=\"no \\\"answer\\\"\" detail=\"port 1\" hint=\"wait\"\n");
    buffer_fini(&out);
}

TEST(nothing_from_outside_forges_a_line_or_moves_a_cursor)
{
    struct buffer out;

    buffer_init(&out, 16384);
    for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
        render(&out, (enum log_format)format,
               FIELDS(LOG_TEXT("a", "x\n{\"level\":\"error\"}\r\x1b[2J\x7f\xc2\x9b\xff\xc3\xa9"), LOG_I64("b", 1)));
        for (size_t i = 0; i + 1 < out.len; i++) {
            unsigned char c = (unsigned char)out.ptr[i];

            assert_true(c >= 0x20 && c != 0x7f);
            assert_false(c == 0xc2 && (unsigned char)out.ptr[i + 1] < 0xa0);
        }
        assert_int_equal(out.ptr[out.len - 1], '\n');
        assert_non_null(strstr(buffer_c(&out), "\xc3\xa9")); /* harmless characters stay */
    }
    assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, NULL), ERR_OK);
    buffer_fini(&out);
}

TEST(a_field_that_does_not_fit_is_left_out_whole_and_said)
{
    struct buffer out;
    static char text[2001];

    memset(text, 'x', sizeof(text) - 1);
    for (size_t bytes_max = 100; bytes_max < 400; bytes_max++) {
        buffer_init(&out, bytes_max);
        render(&out, LOG_FORMAT_JSON,
               FIELDS(LOG_I64("first", 1), LOG_TEXT("long", text), LOG_TEXT("fits_or_not", "0123456789"),
                      LOG_I64("last", 2)));
        assert_int_equal(out.ptr[out.len - 1], '\n');
        assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, NULL), ERR_OK);
        assert_non_null(strstr(buffer_c(&out), "\"cut\":true"));
        assert_null(strstr(buffer_c(&out), "long"));
        buffer_fini(&out);
    }
    buffer_init(&out, 4096);
    render(&out, LOG_FORMAT_TEXT,
           FIELDS(LOG_TEXT("a", text), LOG_TEXT("b", text), LOG_TEXT("c", text), LOG_I64("last", 2)));
    assert_null(strstr(buffer_c(&out), " c="));
    assert_non_null(strstr(buffer_c(&out), " last=2 cut=true\n"));
    buffer_fini(&out);
}

TEST(a_line_below_the_least_level_is_not_written)
{
    char text[512];
    int ends[2], old = dup(STDERR_FILENO);

    log_setup(LOG_LEVEL_WARN, LOG_FORMAT_AUTO); /* a pipe is no terminal */
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    log_debug("unheard");
    log_info("unheard", LOG_I64("n", 1));
    log_warn("heard");
    log_error("heard_too", LOG_I64("n", 2));
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    (void)close(old); /* the rest of the test does not need it */
    (void)close(ends[1]);
    ssize_t len = read(ends[0], text, sizeof(text) - 1);

    (void)close(ends[0]);
    assert_true(len > 0);
    text[len] = '\0';
    assert_null(strstr(text, "unheard"));
    assert_non_null(strstr(text, "\"event\":\"heard\"}\n{\"ts\":\""));
    assert_non_null(strstr(text, "\"event\":\"heard_too\",\"n\":2}\n"));
}

TEST_PROGRAM(NULL, NULL)
