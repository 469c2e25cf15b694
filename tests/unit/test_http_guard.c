/* Heads that the guard refuses, tested without a socket. tests/api/test_api_guard.c sends the same kinds over a
 * socket. */
#include <string.h>

#include "tests/lib/test.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "io/http/egress.h"
#include "io/http/guard.h"

static const struct {
    const char *name, *version;
    const char *headers[4][2];
    const char *says; /* NULL when the head is accepted */
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

TEST(ambiguous_heads_are_refused)
{
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

TEST(the_length_is_given_back)
{
    const struct http_pair pairs[] = {{SLICE("Host"), SLICE("a")}, {SLICE("Content-Length"), SLICE("1048577")}};
    int64_t length = 0;

    assert_null(http_guard_headers(SLICE("POST"), SLICE("HTTP/1.1"), pairs, 2, &length));
    assert_int_equal(length, 1048577);
    assert_null(http_guard_headers(SLICE("POST"), SLICE("HTTP/1.1"), pairs, 1, &length));
    assert_int_equal(length, -1);
}

TEST(targets_are_paths_without_surprises)
{
    static const char *const good[] = {"/", "/v1/sagas?limit=5&tag.a=b%20c", "/%41"};
    static const char *const bad[] = {"",    "v1",   "*",    "http://a/", "/a b",      "/%",
                                      "/%4", "/%zz", "/%00", "/a#b",      "/\xc3\xa4", "/a\tb"};

    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_null(http_guard_target(slice_of(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_non_null(http_guard_target(slice_of(bad[i])));
    }
}

/* --- which addresses a tool may call --- */

static bool denies(const struct egress *egress, const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        return egress_denies(egress, (const struct sockaddr *)&v4);
    }
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return egress_denies(egress, (const struct sockaddr *)&v6);
}

TEST(addresses_of_metadata_are_denied_in_every_form)
{
    static const char *const denied[] = {"169.254.169.254",
                                         "169.254.0.1",
                                         "100.100.100.200",
                                         "192.0.0.192",
                                         "168.63.129.16",
                                         "fe80::1",
                                         "febf::1",
                                         "fd00:ec2::254",
                                         "fd20:ce::254",
                                         "::ffff:169.254.169.254",
                                         "::169.254.169.254",
                                         "64:ff9b::a9fe:a9fe",
                                         "64:ff9b:1:a9fe:a9:fe00::",
                                         "2002:a9fe:a9fe::1",
                                         "2001:0:1234::5601:5601",
                                         "64:ff9b::6464:64c8"};
    static const char *const open[] = {"8.8.8.8",          "127.0.0.1",       "::1",         "10.0.0.1",
                                       "169.253.0.1",      "100.100.100.201", "2001:db8::1", "fd00::1",
                                       "64:ff9b::808:808", "2002:808:808::1", "fec0::1"};
    const struct egress none = {0};

    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        if (!denies(&none, denied[i])) {
            fail_msg("%s may be called", denied[i]);
        }
    }
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        if (denies(&none, open[i])) {
            fail_msg("%s may not be called", open[i]);
        }
    }
}

TEST(settings_say_which_other_addresses_are_denied)
{
    static const struct {
        const char *allow, *deny, *address;
        bool denied;
    } rules[] = {
        {NULL, "private", "10.1.2.3", true},
        {NULL, "private", "172.31.0.1", true},
        {NULL, "private", "172.32.0.1", false},
        {NULL, "private", "192.168.0.1", true},
        {NULL, "private", "100.64.0.1", true},
        {NULL, "private", "fc00::1", true},
        {NULL, "private", "64:ff9b::a01:203", true},
        {NULL, "private", "127.0.0.1", false},
        {NULL, "loopback", "127.0.0.1", true},
        {NULL, "loopback", "127.255.0.1", true},
        {NULL, "loopback", "0.0.0.0", true},
        {NULL, "loopback", "::1", true},
        {NULL, "loopback", "::", true},
        {NULL, "loopback", "::ffff:127.0.0.1", true},
        {NULL, " private , loopback,203.0.113.0/24 ", "203.0.113.7", true},
        {NULL, "203.0.113.0/24", "203.0.114.7", false},
        {NULL, "2001:db8::/33", "2001:db8:7fff::1", true},
        {NULL, "2001:db8::/33", "2001:db8:8000::1", false},
        {"10.1.0.0/16", "private", "10.1.2.3", false},
        {"10.1.0.0/16", "private", "10.2.2.3", true},
        {"10.1.0.0/16", "private", "::ffff:10.1.2.3", false},
        {"10.1.0.0/16", "private", "64:ff9b::a01:203", false},
        {"169.254.169.254", NULL, "169.254.169.254", false},
        {"0.0.0.0/0", "private", "10.1.2.3", false},
    };
    static const char *const wrong[] = {"privat",      "10.0.0.0/33", "10.0.0/8", "fd00::/129",
                                        "10.0.0.0/-1", "10.0.0.0/",   ",",        "a,b"};

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct egress egress;
        struct err err = {0};

        assert_int_equal(egress_read(&egress, rules[i].allow, rules[i].deny, &err), ERR_OK);
        if (denies(&egress, rules[i].address) != rules[i].denied) {
            fail_msg("allow %s, deny %s: %s", rules[i].allow ? rules[i].allow : "", rules[i].deny ? rules[i].deny : "",
                     rules[i].address);
        }
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct egress egress;
        struct err err = {0};

        assert_int_equal(egress_read(&egress, NULL, wrong[i], &err), ERR_CONFIG);
        assert_true(err.hint[0] != '\0');
    }
}

TEST_PROGRAM(NULL, NULL)
