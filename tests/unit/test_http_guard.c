/* The list of heads that the guard refuses, without a socket; tests/api/test_api_guard.c sends the same kinds over one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "io/http_guard.h"

static const struct {
    const char *name, *version;
    const char *headers[4][2];
    const char *says; /* NULL: let through */
} heads[] = {
    {"only a Host", "HTTP/1.1", {{"Host", "localhost"}}, NULL},
    {"HTTP/1.0", "HTTP/1.0", {{"Host", "localhost"}}, NULL},
    {"names in any case", "HTTP/1.1", {{"hOST", "[::1]:80"}, {"cONTENT-lENGTH", "7"}}, NULL},
    {"chunked in any case", "HTTP/1.1", {{"Host", "a"}, {"Transfer-Encoding", "CHUNKED"}}, NULL},
    {"a value in UTF-8", "HTTP/1.1", {{"Host", "a"}, {"X", "\xc3\xa4"}}, NULL},
    {"a tab in a value", "HTTP/1.1", {{"Host", "a"}, {"X", "a\tb"}}, NULL},
    {"another version", "HTTP/1.2", {{"Host", "a"}}, "HTTP/1.1"},
    {"no Host", "HTTP/1.1", {{"X", "a"}}, "Host is missing"},
    {"two Host", "HTTP/1.1", {{"Host", "a"}, {"host", "a"}}, "more than once"},
    {"an empty Host", "HTTP/1.1", {{"Host", ""}}, "Host is not"},
    {"a Host with a space", "HTTP/1.1", {{"Host", "a b"}}, "Host is not"},
    {"a Host with a user", "HTTP/1.1", {{"Host", "u@a"}}, "Host is not"},
    {"a list of Host", "HTTP/1.1", {{"Host", "a,b"}}, "Host is not"},
    {"both lengths",
     "HTTP/1.1",
     {{"Host", "a"}, {"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}},
     "side by side"},
    {"two lengths", "HTTP/1.1", {{"Host", "a"}, {"Content-Length", "1"}, {"Content-Length", "1"}}, "more than once"},
    {"a signed length", "HTTP/1.1", {{"Host", "a"}, {"Content-Length", "+1"}}, "not a number"},
    {"a negative length", "HTTP/1.1", {{"Host", "a"}, {"Content-Length", "-1"}}, "not a number"},
    {"a hexadecimal length", "HTTP/1.1", {{"Host", "a"}, {"Content-Length", "0x1"}}, "not a number"},
    {"an empty length", "HTTP/1.1", {{"Host", "a"}, {"Content-Length", ""}}, "not a number"},
    {"a length beyond 64 bits",
     "HTTP/1.1",
     {{"Host", "a"}, {"Content-Length", "18446744073709551617"}},
     "not a number"},
    {"another encoding", "HTTP/1.1", {{"Host", "a"}, {"Transfer-Encoding", "gzip"}}, "something else"},
    {"a list of encodings", "HTTP/1.1", {{"Host", "a"}, {"Transfer-Encoding", "chunked, chunked"}}, "something else"},
    {"chunks in HTTP/1.0", "HTTP/1.0", {{"Host", "a"}, {"Transfer-Encoding", "chunked"}}, "HTTP/1.0"},
    {"a space before the colon", "HTTP/1.1", {{"Host", "a"}, {"Content-Length ", "1"}}, "not a token"},
    {"an empty name", "HTTP/1.1", {{"Host", "a"}, {"", "1"}}, "not a token"},
    {"a name with a bracket", "HTTP/1.1", {{"Host", "a"}, {"X[1]", "1"}}, "not a token"},
    {"a line end in a value", "HTTP/1.1", {{"Host", "a"}, {"X", "a\nY: b"}}, "control character"},
    {"a value that is not UTF-8", "HTTP/1.1", {{"Host", "a"}, {"X", "a\xff"}}, "not UTF-8"},
    {"a surrogate in a value", "HTTP/1.1", {{"Host", "a"}, {"X", "\xed\xa0\x80"}}, "not UTF-8"},
    {"a delete in a value", "HTTP/1.1", {{"Host", "a"}, {"X", "a\x7f"}}, "control character"},
};

static void ambiguous_heads_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        struct http_pair pairs[4];
        size_t count = 0;
        int64_t length = 0;

        for (; count < 4 && heads[i].headers[count][0]; count++) {
            pairs[count] =
                (struct http_pair){slice_of(heads[i].headers[count][0]), slice_of(heads[i].headers[count][1])};
        }
        const char *fault = http_guard_headers(SLICE("GET"), slice_of(heads[i].version), pairs, count, &length);

        if (heads[i].says ? !fault || !strstr(fault, heads[i].says) : fault != NULL) {
            fail_msg("%s: %s", heads[i].name, fault ? fault : "let through");
        }
    }
}

static void the_length_is_given_back(void **state)
{
    const struct http_pair pairs[] = {{SLICE("Host"), SLICE("a")}, {SLICE("Content-Length"), SLICE("1048577")}};
    int64_t length = 0;

    (void)state;
    assert_null(http_guard_headers(SLICE("POST"), SLICE("HTTP/1.1"), pairs, 2, &length));
    assert_int_equal(length, 1048577);
    assert_null(http_guard_headers(SLICE("POST"), SLICE("HTTP/1.1"), pairs, 1, &length));
    assert_int_equal(length, -1);
}

static void targets_are_paths_without_surprises(void **state)
{
    static const char *const good[] = {"/", "/v1/sagas?limit=5&tag.a=b%20c", "/%41"};
    static const char *const bad[] = {"",    "v1",   "*",    "http://a/", "/a b",      "/%",
                                      "/%4", "/%zz", "/%00", "/a#b",      "/\xc3\xa4", "/a\tb"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_null(http_guard_target(slice_of(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_non_null(http_guard_target(slice_of(bad[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ambiguous_heads_are_refused),
        cmocka_unit_test(the_length_is_given_back),
        cmocka_unit_test(targets_are_paths_without_surprises),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
