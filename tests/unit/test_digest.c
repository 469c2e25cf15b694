/* SHA-256 is tested with published vectors, and lists of fields with lists that could be confused. */
#include <string.h>

#include "base/digest.h"
#include "tests/lib/test.h"

static const struct {
    const char *text, *hex;
} vectors[] = {
    /* Examples of FIPS 180-4. */
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

TEST(the_published_vectors_come_out)
{
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        struct digest digest = digest_sha256(slice_of(vectors[i].text)), back;
        char hex[65];

        digest_hex(&digest, hex);
        assert_string_equal(hex, vectors[i].hex);
        assert_true(digest_from_hex(slice_of(hex), &back));
        assert_true(digest_equal(&digest, &back));
        back.bytes[31] ^= 1;
        assert_false(digest_equal(&digest, &back));
    }
    for (size_t i = COUNT_OF(vectors); i > 0; i--) { /* nothing is left of the digest before, whichever it was */
        struct digest fields = digest_fields("tag", &(struct slice){vectors[0].hex, 64}, 1), digest, back;

        digest = digest_sha256(slice_of(vectors[i - 1].text));
        assert_true(digest_from_hex(slice_of(vectors[i - 1].hex), &back));
        assert_true(digest_equal(&digest, &back));
        back = digest_fields("tag", &(struct slice){vectors[0].hex, 64}, 1);
        assert_true(digest_equal(&fields, &back));
    }
    struct digest none = digest_sha256(SLICE_NONE), empty = digest_sha256(SLICE(""));

    assert_true(digest_equal(&none, &empty));
}

TEST(a_text_other_than_64_hexadecimal_digits_is_no_digest)
{
    static const char good[] = "BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    struct digest digest;
    char text[65];

    assert_true(digest_from_hex(slice_of(good), &digest));
    assert_false(digest_from_hex((struct slice){good, 63}, &digest));
    assert_false(digest_from_hex(SLICE_NONE, &digest));
    for (size_t i = 0; i < 64; i += 9) {
        memcpy(text, good, sizeof(text));
        text[i] = 'g';
        assert_false(digest_from_hex(slice_of(text), &digest));
    }
}

TEST(no_two_lists_of_fields_share_a_digest)
{
    static const struct {
        size_t count;
        struct slice fields[3];
    } lists[] = {
        {0, {{0}}},
        {1, {{"", 0}}},
        {2, {{"", 0}, {"", 0}}},
        {1, {{"ab", 2}}},
        {2, {{"a", 1}, {"b", 1}}},
        {2, {{"ab", 2}, {"", 0}}},
        {2, {{"", 0}, {"ab", 2}}},
        {2, {{"b", 1}, {"a", 1}}},
        {1, {{"a\0\0\0\1b", 6}}},
    };

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct digest mine = digest_fields("t", lists[i].fields, lists[i].count);

        for (size_t k = 0; k < i; k++) {
            struct digest other = digest_fields("t", lists[k].fields, lists[k].count);

            assert_false(digest_equal(&mine, &other));
        }
        struct digest tagged = digest_fields("u", lists[i].fields, lists[i].count);

        assert_false(digest_equal(&mine, &tagged));
    }
}

TEST(fields_are_a_bare_tag_then_length_and_bytes)
{
    struct slice fields[] = {SLICE("ab"), SLICE_NONE};
    struct digest fielded = digest_fields("tag", fields, 2),
                  plain = digest_sha256((struct slice){"tag\0\0\0\2ab\0\0\0\0", 13});

    assert_true(digest_equal(&fielded, &plain));
}

/* Fields are collected before they are digested. A field that crosses the end of the collection gives the same
 * digest. */
TEST(fields_of_any_length_are_digested_as_they_stand)
{
    char bytes[4 + 5 + 4 + 1100];
    static char text[1100];

    memset(text, 'x', sizeof(text));
    for (size_t len = 0; len <= sizeof(text); len++) {
        struct slice fields[] = {SLICE("first"), {text, len}};
        unsigned char prefixes[] = {0, 0, 0, 5, 0, 0, (unsigned char)(len >> 8), (unsigned char)len};

        memcpy(bytes, prefixes, 4);
        memcpy(bytes + 4, "first", 5);
        memcpy(bytes + 9, prefixes + 4, 4);
        memcpy(bytes + 13, text, len);
        struct digest whole = digest_sha256((struct slice){bytes, 13 + len}), made = digest_fields("", fields, 2);

        assert_true(digest_equal(&whole, &made));
    }
}

TEST(random_bytes_differ)
{
    unsigned char a[300] = {0}, b[300] = {0};

    assert_true(random_bytes(a, sizeof(a)));
    assert_true(random_bytes(b, sizeof(b)));
    assert_memory_not_equal(a, b, sizeof(a));
    assert_true(random_bytes(a, 0));
}

TEST_PROGRAM(NULL, NULL)
