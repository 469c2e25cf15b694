/* Payloads at rest: what is sealed, that it opens only as what it was and where it was, and the file of keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aead.h"
#include "base/base64url.h"
#include "base/json.h"
#include "core/record/record.h"
#include "store/seal/places.h"
#include "store/seal/seal.h"
#include "tests/lib/scratch.h"
#include "tests/lib/test.h"

#define K1 "\"k1\": \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\""
#define K1_OTHER "\"k1\": \"YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=\""
#define K2 "\"k2\": \"ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=\""

static struct arena arena;
static const struct uuid saga = {{1, 2, 3}}, other_saga = {{1, 2, 4}};

static int set_up(void **state)
{
    arena_init(&arena, 65536);
    return scratch_make_file(state);
}

static int tear_down(void **state)
{
    arena_fini(&arena);
    return scratch_remove_file(state);
}

static struct payload_keys *keys_of(const char *text)
{
    struct err err = {0};
    struct payload_keys *keys;

    scratch_write(text, 1);
    keys = payload_keys_new(scratch_file, &err);
    if (!keys) {
        fail_msg("%s: %s", err.message, err.detail);
    }
    return keys;
}

static struct slice sealed_turn(const struct payload_keys *keys, uint64_t first_seq, struct slice turn)
{
    struct buffer out;
    struct slice text;

    buffer_init(&out, 1 << 20);
    struct seal_place place = place_of_turn(&saga, first_seq);

    seal_members(keys, SEAL_TURN, &place, turn, &out);
    text = arena_slice(&arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static enum err_code opened(const struct payload_keys *keys, const struct uuid *of, uint64_t first_seq,
                            struct slice turn, struct slice *out)
{
    struct seal_place place = place_of_turn(of, first_seq);
    struct err err = {0};
    enum err_code code = unseal_members(keys, SEAL_TURN, &place, turn, &arena, out, &err);

    assert_true((code == ERR_OK) == (err.message[0] == '\0'));
    assert_true((code == ERR_OK) == (out->ptr != NULL));
    return code;
}

static bool has(struct slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* --- one text --- */

TEST(a_text_opens_under_its_key_and_beside_its_data_only)
{
    static const unsigned char bytes[AEAD_KEY_BYTES] = {7}, other_bytes[AEAD_KEY_BYTES] = {8};
    struct aead_key *key = aead_key_new(bytes), *other = aead_key_new(other_bytes);
    struct slice text = SLICE("4111111111111111"), beside = SLICE("the row");
    unsigned char sealed[64], again[64], out[64];
    int same_keys = 0;
    size_t len = text.len + AEAD_EXTRA_BYTES;
    struct slice whole = {(const char *)sealed, len};

    aead_seal(key, beside, text, sealed);
    aead_seal(key, beside, text, again);
    assert_memory_not_equal(sealed, again, len); /* the nonce is another one */
    for (int i = 0; i < 800; i++) {              /* and always is, in a row of more than are made at once */
        aead_seal(key, beside, text, out);
        assert_memory_not_equal(sealed + 12, out + 12, 12);
        assert_memory_not_equal(again + 12, out + 12, 12);
        same_keys += memcmp(again, out, 12) == 0;
        memcpy(again, out, len);
    }
    assert_in_range(same_keys, 790, 799); /* a key is made for some texts, and not for all */
    assert_true(aead_open(key, beside, whole, out));
    assert_memory_equal(out, text.ptr, text.len);
    assert_false(aead_open(other, beside, whole, out));
    assert_false(aead_open(key, SLICE("the roe"), whole, out));
    for (size_t i = 0; i < len; i++) { /* nonce, ciphertext and tag */
        sealed[i] ^= 1;
        assert_false(aead_open(key, beside, whole, out));
        sealed[i] ^= 1;
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_false(aead_open(key, beside, (struct slice){whole.ptr, cut}, out));
    }
    assert_true(aead_open(key, beside, whole, out)); /* what failed has spoilt nothing */
    aead_key_free(key);
    aead_key_free(other);
}

/* The vectors of https://c2sp.org/XAES-256-GCM: whoever has the key can open a dump without us. */
TEST(a_text_is_sealed_as_the_standard_says)
{
    static const struct {
        unsigned char key;
        const char *beside, *sealed;
    } vectors[] = {
        {1, "",
         "\xce\x54\x6e\xf6\x3c\x9c\xc6\x07\x65\x92\x36\x09\xb3\x3a\x9a\x19\x74\xe9\x6e\x52\xda\xf2\xfc\xf7"
         "\x07\x5e\x22\x71"},
        {3, "c2sp.org/XAES-256-GCM",
         "\x98\x6e\xc1\x83\x25\x93\xdf\x54\x43\xa1\x79\x43\x7f\xd0\x83\xbf\x3f\xdb\x41\xab\xd7\x40\xa2\x1f"
         "\x71\xeb\x76\x9d"},
    };
    static const char nonce[] = "ABCDEFGHIJKLMNOPQRSTUVWX", text[] = "XAES-256-GCM";

    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        unsigned char bytes[AEAD_KEY_BYTES], sealed[sizeof(text) - 1 + AEAD_EXTRA_BYTES], out[sizeof(text)];
        struct aead_key *key;

        memset(bytes, vectors[i].key, sizeof(bytes));
        key = aead_key_new(bytes);
        memcpy(sealed, nonce, 24);
        memcpy(sealed + 24, vectors[i].sealed, sizeof(sealed) - 24);
        assert_true(aead_open(key, slice_of(vectors[i].beside), (struct slice){(char *)sealed, sizeof(sealed)}, out));
        assert_memory_equal(out, text, sizeof(text) - 1);
        aead_key_free(key);
    }
}

/* Sealing writes the bytes there, and saves a copy of them. */
TEST(bytes_at_the_end_of_their_own_base64url_become_it)
{
    for (size_t bytes = 0; bytes < 200; bytes++) {
        size_t len = base64url_length(bytes);
        char apart[512], within[512], plain[200];

        for (size_t i = 0; i < bytes; i++) {
            plain[i] = (char)(i * 151 + bytes);
        }
        base64url_write((struct slice){plain, bytes}, apart);
        memcpy(within + len - bytes, plain, bytes);
        base64url_write((struct slice){within + len - bytes, bytes}, within);
        assert_memory_equal(within, apart, len);
        assert_true(slice_equal(base64url_read((struct slice){within, len}, &arena), (struct slice){plain, bytes}));
    }
}

TEST(an_empty_text_is_sealed_too)
{
    static const unsigned char bytes[AEAD_KEY_BYTES] = {7};
    struct aead_key *key = aead_key_new(bytes);
    unsigned char sealed[AEAD_EXTRA_BYTES], out[1];

    aead_seal(key, SLICE("a"), SLICE_NONE, sealed);
    assert_true(aead_open(key, SLICE("a"), (struct slice){(char *)sealed, sizeof(sealed)}, out));
    assert_false(aead_open(key, SLICE("b"), (struct slice){(char *)sealed, sizeof(sealed)}, out));
    aead_key_free(key);
}

/* --- turns --- */

static const char turn_text[] =
    "[{\"type\":\"saga.started\",\"data\":{\"saga\":\"order\",\"tags\":{\"a\":1},\"input\":{\"card\":\"4111\"}}},"
    "{\"type\":\"step.intent\",\"step\":\"pay\",\"key\":\"0b0b\",\"data\":{\"args\":{ \"n\" : 1e2 },"
    "\"fingerprint\":\"feed\",\"class\":\"keyed\"}},"
    "{\"type\":\"saga.resumed\",\"data\":{}}]";

TEST(payloads_of_a_turn_are_sealed_and_the_rest_stays_to_be_read)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct slice turn = slice_of(turn_text), sealed = sealed_turn(keys, 5, turn), plain;

    assert_false(has(sealed, "4111"));
    assert_false(has(sealed, "card"));
    assert_false(has(sealed, "feed"));
    assert_false(has(sealed, "\"args\""));
    assert_true(has(sealed, "\"~args\":\"k1."));
    assert_true(has(sealed, "\"tags\":{\"a\":1}"));
    assert_true(has(sealed, "\"key\":\"0b0b\"")); /* by which retention finds the keys of a saga */
    assert_int_equal(json_check(sealed, &json_limits_default, NULL), ERR_OK);
    assert_int_equal(opened(keys, &saga, 5, sealed, &plain), ERR_OK);
    assert_true(slice_equal(plain, turn)); /* byte for byte, white space and numbers too */
    payload_keys_free(keys);
}

TEST(a_turn_opens_at_its_place_only)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct slice sealed = sealed_turn(keys, 5, slice_of(turn_text)), plain;
    struct slice args = json_member(json_member(json_element(sealed, 1), "data"), "~args");
    char *swapped = arena_text(&arena, sealed);

    assert_int_equal(opened(keys, &other_saga, 5, sealed, &plain), ERR_CORRUPT);
    assert_int_equal(opened(keys, &saga, 6, sealed, &plain), ERR_CORRUPT);
    /* One member in place of another: "~args" is said to be "~errr", of the same length. */
    memcpy(swapped + (args.ptr - sealed.ptr) - 6, "errr", 4);
    assert_int_equal(opened(keys, &saga, 5, (struct slice){swapped, sealed.len}, &plain), ERR_CORRUPT);
    payload_keys_free(keys);
}

TEST(a_sealed_member_of_another_record_of_the_turn_does_not_open)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct slice turn = SLICE("[{\"data\":{\"args\":1}},{\"data\":{\"args\":2}}]"), plain;
    struct slice sealed = sealed_turn(keys, 5, turn);
    struct slice first = json_member(json_member(json_element(sealed, 0), "data"), "~args");
    struct slice second = json_member(json_member(json_element(sealed, 1), "data"), "~args");
    char *swapped = arena_text(&arena, sealed);

    assert_int_equal(first.len, second.len);
    memcpy(swapped + (first.ptr - sealed.ptr), second.ptr, second.len);
    memcpy(swapped + (second.ptr - sealed.ptr), first.ptr, first.len);
    assert_int_equal(opened(keys, &saga, 5, sealed, &plain), ERR_OK);
    assert_int_equal(opened(keys, &saga, 5, (struct slice){swapped, sealed.len}, &plain), ERR_CORRUPT);
    payload_keys_free(keys);
}

TEST(whatever_is_changed_or_cut_in_a_sealed_turn_nothing_wrong_is_read)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct slice turn = SLICE("[{\"type\":\"a\",\"data\":{\"args\":{\"n\":1}}}]"), sealed = sealed_turn(keys, 5, turn),
                 plain;
    struct slice args = json_member(json_member(json_element(sealed, 0), "data"), "~args");
    size_t from = (size_t)(args.ptr - sealed.ptr) + 1;
    const struct seal_place place_5 = place_of_turn(&saga, 5);

    for (size_t i = from; i < from + args.len - 2; i++) {
        char *changed = arena_text(&arena, sealed);
        struct err err = {0};

        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        assert_int_not_equal(
            unseal_members(keys, SEAL_TURN, &place_5, (struct slice){changed, sealed.len}, &arena, &plain, &err),
            ERR_OK);
        assert_null(plain.ptr);
    }
    for (size_t left = 0; left < args.len - 2; left++) { /* so much of the value */
        struct slice cut = arena_printf(&arena, "%.*s%s", (int)(from + left), sealed.ptr, "\"}}]");
        struct err err = {0};

        assert_int_not_equal(unseal_members(keys, SEAL_TURN, &place_5, cut, &arena, &plain, &err), ERR_OK);
    }
    payload_keys_free(keys);
}

TEST(old_rows_are_read_under_old_keys_and_plain_rows_as_they_are)
{
    struct payload_keys *old = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct slice turn = slice_of(turn_text), sealed = sealed_turn(old, 1, turn), plain;
    struct payload_keys *both = keys_of("{\"active\": \"k2\", \"keys\": {" K2 ", " K1 "}}");
    struct payload_keys *reading = keys_of("{\"active\": null, \"keys\": {" K1 "}}");
    struct payload_keys *without = keys_of("{\"active\": \"k2\", \"keys\": {" K2 "}}");
    struct payload_keys *wrong = keys_of("{\"active\": \"k1\", \"keys\": {" K1_OTHER "}}");

    assert_int_equal(opened(both, &saga, 1, sealed, &plain), ERR_OK);
    assert_true(slice_equal(plain, turn));
    assert_true(has(sealed_turn(both, 1, turn), "\"~args\":\"k2."));
    assert_int_equal(opened(reading, &saga, 1, sealed, &plain), ERR_OK);
    assert_null(payload_keys_active(reading).ptr);
    assert_int_equal(opened(without, &saga, 1, sealed, &plain), ERR_CONFIG);
    assert_int_equal(opened(NULL, &saga, 1, sealed, &plain), ERR_CONFIG);
    assert_int_equal(opened(wrong, &saga, 1, sealed, &plain), ERR_CORRUPT);
    assert_int_equal(opened(NULL, &saga, 1, turn, &plain), ERR_OK);
    assert_ptr_equal(plain.ptr, turn.ptr); /* not even a copy */
    assert_int_equal(opened(both, &saga, 1, turn, &plain), ERR_OK);
    assert_ptr_equal(plain.ptr, turn.ptr);
    payload_keys_free(old);
    payload_keys_free(both);
    payload_keys_free(reading);
    payload_keys_free(without);
    payload_keys_free(wrong);
}

/* A caller chooses the members of payloads: what looks like a sealed one in there is only text. */
TEST(a_payload_that_looks_sealed_stays_what_it_is)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct slice turn = SLICE("[{\"data\":{\"input\":{\"~args\":\"k1.AAAA\",\"data\":{\"~input\":\"k9.\"}}}}]"), plain;

    assert_int_equal(opened(keys, &saga, 1, turn, &plain), ERR_OK); /* a plain row */
    assert_true(slice_equal(plain, turn));
    assert_int_equal(opened(keys, &saga, 1, sealed_turn(keys, 1, turn), &plain), ERR_OK);
    assert_true(slice_equal(plain, turn));
    payload_keys_free(keys);
}

TEST(a_whole_column_opens_at_its_place_only)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct seal_place place = {.table = "log", .id = saga, .number = 9, .member = SLICE("rest")}, other = place;
    struct slice text = SLICE("\x01\x00state"), plain, sealed;
    struct err err = {0};
    struct buffer out;

    buffer_init(&out, 4096);
    seal_whole(keys, &place, text, &out);
    sealed = buffer_slice(&out);
    assert_false(has(sealed, "state"));
    assert_int_equal(unseal_whole(keys, &place, sealed, &arena, &plain, &err), ERR_OK);
    assert_true(slice_equal(plain, text));
    assert_int_equal(unseal_whole(NULL, &place, text, &arena, &plain, &err), ERR_OK);
    assert_ptr_equal(plain.ptr, text.ptr);
    other.number++;
    assert_int_equal(unseal_whole(keys, &other, sealed, &arena, &plain, &err), ERR_CORRUPT);
    assert_null(plain.ptr);
    for (size_t cut = 1; cut < sealed.len; cut++) {
        assert_int_not_equal(unseal_whole(keys, &place, (struct slice){sealed.ptr, cut}, &arena, &plain, &err), ERR_OK);
    }
    buffer_fini(&out);
    payload_keys_free(keys);
}

/* --- cases --- */

TEST(a_case_is_sealed_where_it_quotes_payloads_and_lists_are_made_of_the_rest)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct seal_place place = place_of_case("escalation", &saga, 65), other = place_of_case("approval", &saga, 65);
    struct slice body =
                     SLICE("{\"n\":65,\"status\":\"open\",\"show\":{\"a\":\"4111\"},\"evidence\":{\"tool\":\"pay\","
                           "\"last_error\":\"declined\",\"detail\":\"card 4111\",\"answer\":[\"4111\"]},\"cost\":5}"),
                 sealed, plain;
    struct err err = {0};
    struct buffer out;

    buffer_init(&out, 1 << 16);
    seal_members(keys, SEAL_CASE, &place, body, &out);
    sealed = buffer_slice(&out);
    assert_false(has(sealed, "4111"));
    assert_true(has(sealed, "\"status\":\"open\"") && has(sealed, "\"tool\":\"pay\"") &&
                has(sealed, "\"last_error\":\"declined\""));
    assert_true(members_under(SEAL_CASE, sealed, SLICE("k1")));
    assert_false(members_under(SEAL_CASE, sealed, SLICE("k2")));
    assert_false(members_under(SEAL_CASE, body, SLICE("k1")));
    assert_int_equal(unseal_members(keys, SEAL_CASE, &place, sealed, &arena, &plain, &err), ERR_OK);
    assert_true(slice_equal(plain, body));
    assert_int_equal(unseal_members(keys, SEAL_CASE, &other, sealed, &arena, &plain, &err), ERR_CORRUPT);
    buffer_fini(&out);
    payload_keys_free(keys);
}

TEST(the_last_error_of_a_case_is_sealed_but_where_it_is_a_code)
{
    static const struct {
        const char *error;
        bool is_sealed;
    } cases[] = {{"http-503", false},        {"timeout", false},
                 {"4111111111111111", true}, {"card 4111 was declined", true},
                 {"Declined", true},         {"a-word-that-is-longer-than-any-code-of-ours-has-ever-been", true}};
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct seal_place place = place_of_case("escalation", &saga, 65);

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice body = arena_printf(&arena, "{\"evidence\":{\"last_error\":\"%s\"}}", cases[i].error), plain;
        struct err err = {0};
        struct buffer out;

        buffer_init(&out, 1 << 16);
        seal_members(keys, SEAL_CASE, &place, body, &out);
        assert_int_equal(has(buffer_slice(&out), cases[i].error), !cases[i].is_sealed);
        assert_int_equal(unseal_members(keys, SEAL_CASE, &place, buffer_slice(&out), &arena, &plain, &err), ERR_OK);
        assert_true(slice_equal(plain, body));
        buffer_fini(&out);
    }
    payload_keys_free(keys);
}

/* --- digests --- */

static enum err_code digest_opened(const struct payload_keys *keys, struct slice column, struct digest *out)
{
    struct seal_place place = place_of_digest(&saga);
    struct err err = {0};

    return unseal_digest(keys, &place, column, out, &err);
}

TEST(a_digest_is_sealed_to_its_saga_and_a_plain_one_is_read_whatever_its_first_byte_is)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct seal_place place = place_of_digest(&saga), other = place_of_digest(&other_saga);
    struct digest digest = {.bytes = "~k1.like the beginning of a seal"}, read;
    struct slice plain = {(const char *)digest.bytes, sizeof(digest.bytes)};
    struct slice sealed = seal_column(keys, &place, plain, &arena);

    assert_int_equal(digest_opened(NULL, plain, &read), ERR_OK);
    assert_true(digest_equal(&read, &digest));
    assert_int_equal(digest_opened(keys, plain, &read), ERR_OK);
    assert_false(has(sealed, "like"));
    memset(&read, 0, sizeof(read));
    assert_int_equal(digest_opened(keys, sealed, &read), ERR_OK);
    assert_true(digest_equal(&read, &digest));
    assert_int_equal(digest_opened(NULL, sealed, &read), ERR_CONFIG);
    assert_int_equal(digest_opened(keys, seal_column(keys, &other, plain, &arena), &read), ERR_CORRUPT);
    assert_int_equal(digest_opened(keys, (struct slice){plain.ptr, 31}, &read), ERR_CORRUPT);
    assert_int_equal(digest_opened(keys, SLICE("not a digest"), &read), ERR_CORRUPT);
    payload_keys_free(keys);
}

TEST(the_key_of_digests_is_that_of_the_active_key_and_there_is_none_without)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 ", " K2 "}}");
    struct payload_keys *newer = keys_of("{\"active\": \"k2\", \"keys\": {" K1 ", " K2 "}}");
    struct payload_keys *reading = keys_of("{\"active\": null, \"keys\": {" K1 "}}");

    assert_null(payload_keys_digest_key(NULL));
    assert_null(payload_keys_digest_key(reading));
    assert_false(digest_equal(payload_keys_digest_key(keys), payload_keys_digest_key(newer)));
    payload_keys_free(keys);
    payload_keys_free(newer);
    payload_keys_free(reading);
}

/* --- keys --- */

static void refuses(const char *text, const char *why)
{
    struct err err = {0};

    scratch_write(text, 1);
    assert_null(payload_keys_new(scratch_file, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    if (!strstr(err.detail, why)) {
        fail_msg("%s, not: %s", err.detail, why);
    }
    assert_null(strstr(err.message, "MDEy"));
    assert_null(strstr(err.detail, "MDEy"));
}

TEST(a_wrong_file_of_keys_is_refused_and_nothing_of_it_is_shown)
{
    struct err err = {0};

    refuses("{", "not a JSON object");
    refuses("{\"active\": \"k1\", \"keys\": {" K1 "}, \"more\": 1}", "no others");
    refuses("{\"keys\": {" K1 "}}", "\"active\"");
    refuses("{\"active\": \"k1\", \"keys\": {" K1 ", " K1_OTHER "}}", "twice");
    refuses("{\"active\": \"k2\", \"keys\": {" K1 "}}", "none of its keys");
    refuses("{\"active\": \"K.\", \"keys\": {\"K.\": \"MDEy\"}}", "small letters");
    refuses("{\"active\": \"k1\", \"keys\": {\"k1\": \"MDEyMzQ1Njc4OWFiY2RlZg==\"}}", "32 bytes");
    refuses("{\"active\": \"k1\", \"keys\": {\"k1\": 5}}", "32 bytes");
    refuses("{\"active\": null, \"keys\": {}}", "no key");
    assert_null(payload_keys_new("/nowhere/keys.json", &err));
    assert_int_equal(err.code, ERR_CONFIG);
}

TEST(a_database_knows_the_key_that_it_was_sealed_with)
{
    struct payload_keys *keys = keys_of("{\"active\": \"k1\", \"keys\": {" K1 "}}");
    struct payload_keys *both = keys_of("{\"active\": \"k2\", \"keys\": {" K2 ", " K1 "}}");
    struct payload_keys *wrong = keys_of("{\"active\": \"k1\", \"keys\": {" K1_OTHER "}}");
    struct payload_keys *without = keys_of("{\"active\": \"k2\", \"keys\": {" K2 "}}");
    struct buffer proof;
    struct err err = {0};

    buffer_init(&proof, 1024);
    payload_keys_put_proof(keys, &proof);
    assert_int_equal(payload_keys_check_proof(keys, SLICE("k1"), buffer_slice(&proof), &err), ERR_OK);
    assert_int_equal(payload_keys_check_proof(both, SLICE("k1"), buffer_slice(&proof), &err), ERR_OK);
    assert_int_equal(payload_keys_check_proof(wrong, SLICE("k1"), buffer_slice(&proof), &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "is another one"));
    assert_int_equal(payload_keys_check_proof(without, SLICE("k1"), buffer_slice(&proof), &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "sealed under the key k1"));
    assert_int_equal(payload_keys_check_proof(NULL, SLICE("k1"), buffer_slice(&proof), &err), ERR_CONFIG);
    assert_int_equal(payload_keys_check_proof(keys, SLICE("k1"), SLICE("short"), &err), ERR_CONFIG);
    buffer_fini(&proof);
    payload_keys_free(keys);
    payload_keys_free(both);
    payload_keys_free(wrong);
    payload_keys_free(without);
}

/* --- what is a payload? --- */

TEST(members_of_records_that_hold_or_quote_payloads_are_sealed_and_no_others)
{
    static const char *const sealed[] = {"input",        "args",         "result",    "output",     "undo_args",
                                         "answer",       "evidence",     "error",     "detail",     "undo_error",
                                         "result_error", "cost_unknown", "followers", "fingerprint"};
    static const char *const read_by_sql[] = {"saga", "namespace", "business_id", "tags", "scope", "class", "due_at"};

    for (size_t i = 0; i < COUNT_OF(sealed); i++) {
        assert_true(record_member_is_payload(slice_of(sealed[i])));
    }
    for (size_t i = 0; i < COUNT_OF(read_by_sql); i++) {
        assert_false(record_member_is_payload(slice_of(read_by_sql[i])));
    }
}

TEST_PROGRAM(set_up, tear_down)
