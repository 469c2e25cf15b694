/* The file of receivers of notifications: what is read from it, and the sentence for each fault. Signatures are those
 * of the package standardwebhooks. */
#include <stdio.h>
#include <string.h>

#include "base/hmac.h"
#include "run/notify/signature.h"
#include "run/notify/targets.h"
#include "tests/lib/test.h"

/* --- the file --- */

static void refuses(const char *members, const char *why)
{
    struct notify_targets targets;
    struct err err = {0};
    char text[1024];

    (void)snprintf(text, sizeof(text), "{\"notify\":[{%s}]}", members);
    assert_int_equal(notify_targets_parse(&targets, slice_of(text), &err), ERR_CONFIG);
    if (!strstr(err.detail, why)) {
        fail_msg("%s: \"%s\" %s", text, err.message, err.detail);
    }
    assert_int_equal(targets.count, 0);
}

#define NAME "\"name\":\"ops\","
#define URL "\"url\":\"https://hooks.example/x\","
#define SECRETS "\"secrets\":[\"hook\"]"

TEST(whatever_is_wrong_is_refused_with_its_place)
{
    refuses(URL SECRETS, "/notify/0/name");
    refuses("\"name\":\"Ops\"," URL SECRETS, "/notify/0/name");
    refuses(NAME SECRETS, "/notify/0/url");
    refuses(NAME "\"url\":\"file:///etc/passwd\"," SECRETS, "/notify/0/url");
    refuses(NAME "\"url\":\"https://a b\"," SECRETS, "/notify/0/url");
    refuses(NAME "\"url\":\"https://hooks.example:99999/x\"," SECRETS, "/notify/0/url: cannot be read");
    refuses(NAME "\"url\":\"https://[::1/x\"," SECRETS, "/notify/0/url: cannot be read");
    refuses(NAME URL "\"secrets\":[]", "/notify/0/secrets");
    refuses(NAME URL "\"secrets\":[\"a\",\"b\",\"c\",\"d\",\"e\"]", "/notify/0/secrets");
    refuses(NAME URL "\"secrets\":[\"b/hook\"]", "without the namespace");
    refuses(NAME URL SECRETS ",\"events\":[]", "/notify/0/events");
    refuses(NAME URL SECRETS ",\"events\":[\"case.*\",\"case.eaten\"]", "there is no type of events \"case.eaten\"");
    refuses(NAME URL SECRETS ",\"timeout\":\"2m\"", "/notify/0/timeout");
    refuses(NAME URL SECRETS ",\"give_up_after\":\"31d\"", "/notify/0/give_up_after");
    refuses(NAME URL SECRETS ",\"namespace\":\"\"", "/notify/0/namespace");
    refuses(NAME URL SECRETS ",\"event\":\"case.*\"", "/notify/0/event: is not known");
    refuses(NAME URL SECRETS "},{" NAME URL SECRETS, "/notify/1: there is a receiver of this name");
}

TEST(what_is_left_out_has_its_standard)
{
    struct notify_targets targets;
    struct err err = {0};

    assert_int_equal(
        notify_targets_parse(&targets,
                             SLICE("{\"notify\":[{" NAME URL SECRETS "},{" NAME URL "\"secrets\":[\"new\",\"old\"],"
                                   "\"namespace\":\"b\",\"events\":[\"case.*\",\"bulk.ended\"],\"timeout\":\"1s\","
                                   "\"give_up_after\":\"1h\"}]}"),
                             &err),
        ERR_OK);
    assert_int_equal(targets.count, 2);
    assert_true(slice_is(targets.items[0].namespace, "default"));
    assert_null(targets.items[0].events.ptr);
    assert_int_equal(targets.items[0].timeout_ms, 10000);
    assert_int_equal(targets.items[0].give_up_ms, 3 * 24 * 3600 * 1000);
    assert_true(slice_is(targets.items[1].namespace, "b"));
    assert_true(slice_is(targets.items[1].events, "case.*,bulk.ended"));
    assert_int_equal(targets.items[1].secret_count, 2);
    assert_true(slice_is(targets.items[1].secrets[1], "old"));
    assert_int_equal(targets.items[1].timeout_ms, 1000);
    assert_int_equal(targets.items[1].give_up_ms, 3600 * 1000);
    notify_targets_fini(&targets);
}

TEST(without_a_file_nobody_is_notified)
{
    struct notify_targets targets;
    struct err err = {0};

    assert_int_equal(notify_targets_load(&targets, NULL, &err), ERR_OK);
    assert_int_equal(targets.count, 0);
    notify_targets_fini(&targets);
    assert_int_not_equal(notify_targets_load(&targets, "/nowhere/notify.json", &err), ERR_OK);
}

/* --- signatures --- */

#define FIRST "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u"
#define SECOND "whsec_YW5vdGhlciBzZWNyZXQgb2YgdGhpcnR5LW9uZSBiLg=="

TEST(each_secret_signs_as_standard_webhooks_has_it)
{
    struct signature_key first, second;
    struct buffer out;

    buffer_init(&out, 1024);
    assert_true(signature_key_read(SLICE(FIRST), &first));
    assert_true(signature_key_read(SLICE(SECOND), &second));
    assert_int_equal(first.count, 24);
    assert_int_equal(second.count, 31);
    signature_put(&out, &first, SLICE("019b3c52-6b1f-7a3e-8d21-5f0c9a7e0007/9"), 1731705121, SLICE("{\"id\":1}"));
    signature_put(&out, &second, SLICE("019b3c52-6b1f-7a3e-8d21-5f0c9a7e0007/9"), 1731705121, SLICE("{\"id\":1}"));
    assert_string_equal(buffer_c(&out), "v1,AGZjZ9QlAknlJji9TNKRvi5B+C6YbYAhui1X1Mgg+9s= "
                                        "v1,qiEQj/1LIjFD5W6JfNyhpn1qwQeQ50n89zqG9saLgKU=");
    buffer_fini(&out);
}

TEST(what_is_no_secret_is_not_read)
{
    static const char *const wrong[] = {
        "",
        "whsec_",
        "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u",           /* no prefix */
        "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWpr",         /* 21 bytes */
        "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u=",    /* no whole block */
        "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u!!!!", /* no base64 */
    };
    struct signature_key key;
    char longer[128] = "whsec_";

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(signature_key_read(slice_of(wrong[i]), &key));
    }
    assert_false(signature_key_read(SLICE_NONE, &key));
    memset(longer + 6, 'A', 88); /* 66 bytes */
    assert_false(signature_key_read(slice_of(longer), &key));
}

/* --- HMAC and base64 --- */

TEST(an_hmac_is_that_of_rfc_4231)
{
    struct digest digest = hmac_sha256(SLICE("Jefe"), SLICE("what do ya want for nothing?"));
    char hex[65], code[DIGEST_BASE64_BYTES];
    unsigned char back[32];
    size_t count;

    digest_hex(&digest, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    digest_base64(&digest, code);
    assert_true(base64_read(slice_of(code), back, sizeof(back), &count));
    assert_int_equal(count, 32);
    assert_memory_equal(back, digest.bytes, 32);
    assert_false(base64_read(slice_of(code), back, 31, &count));
}

TEST_PROGRAM(NULL, NULL)
