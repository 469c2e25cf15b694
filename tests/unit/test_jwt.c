/* JWTs are read strictly, and accepted only with a signature of a key that is good for their algorithm. */
#include <string.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>

#include "api/oidc.h"
#include "base/base64url.h"
#include "io/oidc/keys.h"
#include "tests/lib/test.h"

#define NOW_MS INT64_C(1700000000000)
#define ISSUER "https://issuer.example"
#define CLAIMS "{\"iss\":\"" ISSUER "\",\"aud\":\"sagad\",\"exp\":1700000300,\"sub\":\"ada\"}"

static struct arena arena;

static struct slice encode(struct slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct buffer out;

    buffer_init(&out, 65536);
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        const unsigned char *at = (const unsigned char *)bytes.ptr + i;
        uint32_t bits = (uint32_t)at[0] << 16 | (left > 1 ? (uint32_t)at[1] << 8 : 0) | (left > 2 ? at[2] : 0);

        for (size_t k = 0; k < (left > 2 ? 4 : left + 1); k++) {
            buffer_put_char(&out, digits[bits >> (18 - 6 * k) & 63]);
        }
    }
    struct slice text = arena_slice(&arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

static struct slice token_of(const char *header, const char *claims)
{
    return arena_printf(&arena, "%.*s.%.*s.c2ln", SLICE_ARG(encode(slice_of(header))),
                        SLICE_ARG(encode(slice_of(claims))));
}

/* --- what is read --- */

static const struct {
    const char *header, *claims, *says; /* says: NULL when it is good, but for its signature */
} tokens[] = {
    {"{\"alg\":\"RS256\",\"kid\":\"k\"}", CLAIMS, NULL},
    {"{\"alg\":\"ES512\",\"kid\":\"k\",\"typ\":\"JWT\",\"jku\":\"https://evil.example\"}", CLAIMS, NULL},
    {"{\"alg\":\"PS384\",\"kid\":\"k\",\"typ\":\"at+jwt\"}", CLAIMS, NULL},
    {"{\"alg\":\"none\",\"kid\":\"k\"}", CLAIMS, "algorithm"},
    {"{\"alg\":\"None\",\"kid\":\"k\"}", CLAIMS, "algorithm"},
    {"{\"alg\":\"HS256\",\"kid\":\"k\"}", CLAIMS, "algorithm"},
    {"{\"alg\":\"rs256\",\"kid\":\"k\"}", CLAIMS, "algorithm"},
    {"{\"alg\":[\"RS256\"],\"kid\":\"k\"}", CLAIMS, "algorithm"},
    {"{\"kid\":\"k\"}", CLAIMS, "algorithm"},
    {"{\"alg\":\"RS256\",\"alg\":\"none\",\"kid\":\"k\"}", CLAIMS, "header"},
    {"[\"RS256\"]", CLAIMS, "header"},
    {"{\"alg\":\"RS256\"}", CLAIMS, "names no key"},
    {"{\"alg\":\"RS256\",\"kid\":\"\"}", CLAIMS, "names no key"},
    {"{\"alg\":\"RS256\",\"kid\":7}", CLAIMS, "names no key"},
    {"{\"alg\":\"RS256\",\"kid\":\"k\",\"typ\":\"logout+jwt\"}", CLAIMS, "another kind"},
    {"{\"alg\":\"RS256\",\"kid\":\"k\",\"crit\":[\"exp\"]}", CLAIMS, "extensions"},
    {"{\"alg\":\"RS256\",\"kid\":\"k\",\"b64\":false}", CLAIMS, "extensions"},
    {"{\"alg\":\"RS256\",\"kid\":\"k\"}", "[]", "claims"},
    {"{\"alg\":\"RS256\",\"kid\":\"k\"}", "{\"iss\":1,\"iss\":2}", "claims"},
};

TEST(a_jwt_is_read_strictly)
{
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        struct jwt jwt;
        struct err err = {0};
        enum err_code code = jwt_read(token_of(tokens[i].header, tokens[i].claims), &arena, &jwt, &err);

        if (tokens[i].says ? code != ERR_UNAUTHENTICATED || !strstr(err.message, tokens[i].says) : code != ERR_OK) {
            fail_msg("%s: %d %s", tokens[i].header, (int)code, err.message);
        }
    }
}

TEST(what_has_not_three_parts_in_base64url_is_no_jwt)
{
    const char *good = token_of(tokens[0].header, CLAIMS).ptr;
    char *big = arena_alloc(&arena, JWT_BYTES_MAX + 2);
    struct jwt jwt;

    memset(big, 'A', JWT_BYTES_MAX + 1);
    const char *const wrong[] = {"",
                                 "a.b",
                                 "..",
                                 "a.b.c.d",
                                 big,
                                 arena_printf(&arena, "%s.x", good).ptr,
                                 arena_printf(&arena, "%s=", good).ptr,
                                 arena_printf(&arena, " %s", good).ptr,
                                 arena_printf(&arena, "%.*s", (int)strlen(good) - 4, good).ptr};

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(jwt_read(slice_of(wrong[i]), &arena, &jwt, NULL), ERR_UNAUTHENTICATED);
    }
    assert_false(jwt_is_likely(SLICE("a word")));
    assert_true(jwt_is_likely(slice_of(good)));
    assert_null(base64url_read(SLICE("YQ=="), &arena).ptr);
    assert_null(base64url_read(SLICE("YR"), &arena).ptr); /* YQ stands for the same byte */
    assert_true(slice_is(base64url_read(SLICE("YQ"), &arena), "a"));
}

/* --- claims --- */

#define IS "\"iss\":\"" ISSUER "\","
static const struct {
    const char *claims, *says;
} claims[] = {
    {CLAIMS, NULL},
    {"{" IS "\"aud\":[\"others\",\"sagad\"],\"exp\":1700000300}", NULL},
    {"{" IS "\"aud\":\"sagad\",\"exp\":1700000300,\"nbf\":1700000060}", NULL},
    {"{" IS "\"aud\":\"sagad\",\"exp\":1699999941}", NULL},
    {"{" IS "\"aud\":\"sagad\",\"exp\":1699999940}", "expired"},
    {"{" IS "\"aud\":\"sagad\",\"exp\":1700000300,\"nbf\":1700000061}", "not good yet"},
    {"{" IS "\"aud\":\"sagad\"}", "when it expires"},
    {"{" IS "\"aud\":\"sagad\",\"exp\":\"1700000300\"}", "when it expires"},
    {"{" IS "\"aud\":\"sagad\",\"exp\":1e300}", "when it expires"},
    {"{" IS "\"aud\":\"sagad\",\"exp\":9223372036854775807}", "when it expires"},
    {"{" IS "\"aud\":\"sagad\",\"exp\":-1}", "when it expires"},
    {"{" IS "\"aud\":\"sagad\",\"exp\":1700000300,\"nbf\":null}", "from when on"},
    {"{" IS "\"aud\":\"sagad2\",\"exp\":1700000300}", "audience"},
    {"{" IS "\"aud\":[],\"exp\":1700000300}", "audience"},
    {"{" IS "\"exp\":1700000300}", "audience"},
    {"{\"iss\":\"" ISSUER "/\",\"aud\":\"sagad\",\"exp\":1700000300}", "issuer"},
    {"{\"aud\":\"sagad\",\"exp\":1700000300}", "issuer"},
};

TEST(a_jwt_is_good_for_one_issuer_one_audience_and_its_time)
{
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        struct jwt jwt = {.claims = slice_of(claims[i].claims)};
        struct err err = {0};
        int64_t expires_ms = 0;
        enum err_code code = jwt_check_claims(&jwt, ISSUER, "sagad", NOW_MS, &expires_ms, &err);

        if (claims[i].says ? code != ERR_UNAUTHENTICATED || !strstr(err.message, claims[i].says) : code != ERR_OK) {
            fail_msg("%s: %d %s", claims[i].claims, (int)code, err.message);
        }
        assert_true(code != ERR_OK || expires_ms > NOW_MS);
    }
}

/* --- signatures --- */

static struct slice slice_of_datum(const gnutls_datum_t *datum)
{
    return (struct slice){(const char *)datum->data, datum->size};
}

static gnutls_privkey_t make_key(gnutls_pk_algorithm_t kind, unsigned bits)
{
    gnutls_privkey_t key;

    assert_int_equal(gnutls_privkey_init(&key), 0);
    assert_int_equal(gnutls_privkey_generate(key, kind, bits, 0), 0);
    return key;
}

static struct slice jwk_of_rsa(gnutls_privkey_t key, const char *more)
{
    gnutls_datum_t n, e;

    assert_int_equal(gnutls_privkey_export_rsa_raw(key, &n, &e, NULL, NULL, NULL, NULL, NULL, NULL), 0);
    struct slice jwk = arena_printf(&arena, "{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"%.*s\",\"e\":\"%.*s\"%s}",
                                    SLICE_ARG(encode(slice_of_datum(&n))), SLICE_ARG(encode(slice_of_datum(&e))), more);

    gnutls_free(n.data);
    gnutls_free(e.data);
    return jwk;
}

/* Numbers of `bytes` bytes: GnuTLS leaves out zeros in front, or puts one there. */
static struct slice padded(const gnutls_datum_t *number, size_t bytes)
{
    char *out = arena_alloc(&arena, bytes);
    size_t skip = number->size > bytes ? number->size - bytes : 0, len = number->size - skip;

    memcpy(out + bytes - len, number->data + skip, len);
    return (struct slice){out, bytes};
}

static struct slice jwk_of_curve(gnutls_privkey_t key, const char *name, size_t bytes)
{
    gnutls_ecc_curve_t curve;
    gnutls_datum_t x, y;

    assert_int_equal(gnutls_privkey_export_ecc_raw(key, &curve, &x, &y, NULL), 0);
    struct slice jwk =
        arena_printf(&arena, "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"%s\",\"x\":\"%.*s\",\"y\":\"%.*s\"}", name,
                     SLICE_ARG(encode(padded(&x, bytes))), SLICE_ARG(encode(padded(&y, bytes))));

    gnutls_free(x.data);
    gnutls_free(y.data);
    return jwk;
}

static struct jwt_keys *keys_of(struct slice jwk, struct err *err)
{
    return jwt_keys_read(arena_printf(&arena, "{\"keys\":[%.*s]}", SLICE_ARG(jwk)), err);
}

static struct jwt signed_by(gnutls_privkey_t key, gnutls_sign_algorithm_t sign, const char *algorithm, size_t bytes)
{
    struct jwt jwt = {.kid = SLICE("k"), .signed_part = SLICE("header.claims")};
    gnutls_datum_t data = {(unsigned char *)(uintptr_t)jwt.signed_part.ptr, (unsigned)jwt.signed_part.len}, made, r, s;

    assert_true(jwt_algorithm_parse(slice_of(algorithm), &jwt.algorithm));
    assert_int_equal(gnutls_privkey_sign_data2(key, sign, 0, &data, &made), 0);
    jwt.signature = arena_slice(&arena, slice_of_datum(&made));
    if (bytes > 0) {
        assert_int_equal(gnutls_decode_rs_value(&made, &r, &s), 0);
        jwt.signature = arena_printf(&arena, "%*s", (int)(2 * bytes), "");
        memcpy((char *)(uintptr_t)jwt.signature.ptr, padded(&r, bytes).ptr, bytes);
        memcpy((char *)(uintptr_t)jwt.signature.ptr + bytes, padded(&s, bytes).ptr, bytes);
        gnutls_free(r.data);
        gnutls_free(s.data);
    }
    gnutls_free(made.data);
    return jwt;
}

TEST(each_algorithm_verifies_its_own_signatures_and_no_others)
{
    static const struct {
        const char *name, *curve;
        gnutls_pk_algorithm_t kind;
        gnutls_sign_algorithm_t sign;
        unsigned bits;
        size_t bytes; /* of a coordinate */
    } all[] = {
        {"RS256", NULL, GNUTLS_PK_RSA, GNUTLS_SIGN_RSA_SHA256, 2048, 0},
        {"RS512", NULL, GNUTLS_PK_RSA, GNUTLS_SIGN_RSA_SHA512, 2048, 0},
        {"PS256", NULL, GNUTLS_PK_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256, 2048, 0},
        {"PS384", NULL, GNUTLS_PK_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA384, 2048, 0},
        {"ES256", "P-256", GNUTLS_PK_ECDSA, GNUTLS_SIGN_ECDSA_SHA256, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
         32},
        {"ES384", "P-384", GNUTLS_PK_ECDSA, GNUTLS_SIGN_ECDSA_SHA384, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP384R1),
         48},
        {"ES512", "P-521", GNUTLS_PK_ECDSA, GNUTLS_SIGN_ECDSA_SHA512, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP521R1),
         66},
    };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        gnutls_privkey_t key = make_key(all[i].kind, all[i].bits), other = make_key(all[i].kind, all[i].bits);
        struct slice jwk = all[i].curve ? jwk_of_curve(key, all[i].curve, all[i].bytes) : jwk_of_rsa(key, "");
        struct jwt_keys *keys = keys_of(jwk, NULL);
        struct jwt good = signed_by(key, all[i].sign, all[i].name, all[i].bytes),
                   forged = signed_by(other, all[i].sign, all[i].name, all[i].bytes);

        assert_non_null(keys);
        assert_true(jwt_keys_has(keys, &good) && jwt_keys_verify(keys, &good));
        assert_false(jwt_keys_verify(keys, &forged));
        for (int as = 0; as < JWT_ALGORITHM_COUNT; as++) {
            struct jwt confused = good;

            confused.algorithm = (enum jwt_algorithm)as;
            assert_int_equal(jwt_keys_verify(keys, &confused), confused.algorithm == good.algorithm);
        }
        good.signed_part.len--;
        assert_false(jwt_keys_verify(keys, &good));
        good.kid = SLICE("K");
        assert_false(jwt_keys_has(keys, &good));
        gnutls_privkey_deinit(key);
        gnutls_privkey_deinit(other);
        jwt_keys_free(keys);
    }
}

TEST(numbers_of_a_signature_may_begin_with_zeros)
{
    gnutls_privkey_t key = make_key(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
    struct jwt_keys *keys = keys_of(jwk_of_curve(key, "P-256", 32), NULL);
    int with_zero = 0;

    for (int i = 0; i < 5000 && with_zero < 2;
         i++) { /* one of 128 has one; that 5,000 have fewer than 2 happens never */
        struct jwt jwt = signed_by(key, GNUTLS_SIGN_ECDSA_SHA256, "ES256", 32);

        if (jwt.signature.ptr[0] == 0 || jwt.signature.ptr[32] == 0) {
            with_zero++;
            assert_true(jwt_keys_verify(keys, &jwt));
        }
    }
    assert_int_equal(with_zero, 2);
    jwt_keys_free(keys);
    gnutls_privkey_deinit(key);
}

TEST(a_key_is_good_for_what_its_issuer_says)
{
    gnutls_privkey_t key = make_key(GNUTLS_PK_RSA, 2048), small = make_key(GNUTLS_PK_RSA, 1024);
    struct jwt jwt = signed_by(key, GNUTLS_SIGN_RSA_SHA256, "RS256", 0);
    static const struct {
        const char *more;
        bool verifies;
    } all[] = {{"", true},
               {",\"use\":\"sig\",\"alg\":\"RS256\",\"key_ops\":[\"verify\"]", true},
               {",\"alg\":\"RS512\"", false},
               {",\"alg\":\"ES256\"", false},
               {",\"alg\":\"HS256\"", false},
               {",\"use\":\"enc\"", false},
               {",\"key_ops\":[\"encrypt\"]", false},
               {",\"key_ops\":\"verify\"", false}};

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct jwt_keys *keys = keys_of(jwk_of_rsa(key, all[i].more), NULL);

        assert_int_equal(keys && jwt_keys_verify(keys, &jwt), all[i].verifies);
        jwt_keys_free(keys);
    }
    assert_null(keys_of(jwk_of_rsa(small, ""), NULL));
    static const char *const useless[] = {
        "",
        "{\"keys\":{}}",
        "{\"keys\":[]}",
        "{\"keys\":[7]}",
        "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"k\",\"k\":\"c2V\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}"};

    for (size_t i = 0; i < COUNT_OF(useless); i++) {
        struct err err = {0};

        assert_null(jwt_keys_read(slice_of(useless[i]), &err));
        assert_true(err.message[0]);
    }
    gnutls_privkey_deinit(key);
    gnutls_privkey_deinit(small);
}

/* --- rights --- */

#define RIGHTS(role, namespace) "{\"sub\":\"ada\",\"sagad_role\":" role ",\"sagad_namespace\":" namespace "}"

TEST(claims_give_the_rights_that_the_settings_say)
{
    static const struct {
        const char *claims, *roles, *namespace;
        enum role role; /* ROLE_NONE: refused */
        size_t namespaces;
    } all[] = {
        {RIGHTS("\"operator\"", "\"a\""), NULL, NULL, ROLE_OPERATOR, 1},
        {RIGHTS("[\"x\",\"agent\",7,\"reader\"]", "[\"a\",\"b\"]"), NULL, NULL, ROLE_AGENT, 2},
        {RIGHTS("\"pay\"", "\"a\""), "ops=admin, pay=operator", NULL, ROLE_OPERATOR, 1},
        {RIGHTS("[\"pay\",\"ops\"]", "\"a\""), "ops=admin,pay=operator", NULL, ROLE_ADMIN, 1},
        {RIGHTS("\"admin\"", "\"a\""), "ops=admin", NULL, ROLE_NONE, 0},
        {RIGHTS("\"admin\"", "\"*\""), NULL, "b", ROLE_ADMIN, 1},
        {RIGHTS("\"none\"", "\"a\""), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("\"king\"", "\"a\""), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("{\"admin\":1}", "\"a\""), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("\"admin\"", "\"*\""), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("\"admin\"", "[\"a\",\"*\"]"), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("\"admin\"", "[]"), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("\"admin\"", "\"a b\""), NULL, NULL, ROLE_NONE, 0},
        {RIGHTS("\"admin\"", "null"), NULL, NULL, ROLE_NONE, 0},
        {"{\"sub\":\"a d a\",\"sagad_role\":\"admin\",\"sagad_namespace\":\"a\"}", NULL, NULL, ROLE_NONE, 0},
        {"{\"sagad_role\":\"admin\",\"sagad_namespace\":\"a\"}", NULL, NULL, ROLE_NONE, 0},
    };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct oidc_options options = {.role_claim = "sagad_role",
                                       .namespace_claim = "/sagad_namespace",
                                       .roles = all[i].roles,
                                       .namespace = all[i].namespace};
        struct token token = {0};
        struct err err = {0};
        enum err_code code = oidc_token(&options, slice_of(all[i].claims), &arena, &token, &err);

        if (code != (all[i].role == ROLE_NONE ? ERR_FORBIDDEN : ERR_OK)) {
            fail_msg("%s: %d %s", all[i].claims, (int)code, err.message);
        }
        if (code == ERR_OK) {
            assert_int_equal(token.role, all[i].role);
            assert_int_equal(token.namespace_count, all[i].namespaces);
            assert_true(slice_is(token.name, "oidc:ada"));
        }
    }
}

TEST(an_issuer_is_named_by_an_address_that_is_safe)
{
    static const struct {
        const char *url, *audience, *roles, *namespace;
        bool good;
    } all[] = {
        {NULL, NULL, NULL, NULL, true},
        {ISSUER, "sagad", NULL, NULL, true},
        {ISSUER "/realms/a/", "sagad", "a=reader, b c = admin", "pay", true},
        {"http://localhost:8080", "sagad", NULL, NULL, true},
        {"http://127.0.0.1:1", "sagad", NULL, NULL, true},
        {NULL, "sagad", NULL, NULL, false},
        {NULL, NULL, "a=reader", NULL, false},
        {ISSUER, NULL, NULL, NULL, false},
        {ISSUER, "", NULL, NULL, false},
        {"http://issuer.example", "sagad", NULL, NULL, false},
        {"http://localhost.issuer.example", "sagad", NULL, NULL, false},
        {"http://localhost:1@issuer.example", "sagad", NULL, NULL, false},
        {"ftp://issuer.example", "sagad", NULL, NULL, false},
        {"issuer.example", "sagad", NULL, NULL, false},
        {"", "sagad", NULL, NULL, false},
        {ISSUER "?a=b", "sagad", NULL, NULL, false},
        {ISSUER, "sagad", "admins", NULL, false},
        {ISSUER, "sagad", "a=king", NULL, false},
        {ISSUER, "sagad", "=admin", NULL, false},
        {ISSUER, "sagad", "a=admin,", NULL, false},
        {ISSUER, "sagad", NULL, "*", false},
        {ISSUER, "sagad", NULL, "a b", false},
    };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct oidc_options options = {.issuer = {.url = all[i].url, .audience = all[i].audience},
                                       .roles = all[i].roles,
                                       .namespace = all[i].namespace};
        struct err err = {0};
        enum err_code code = oidc_check(&options, &err);

        if (code != (all[i].good ? ERR_OK : ERR_CONFIG)) {
            fail_msg("%s: %d %s", all[i].url ? all[i].url : "none", (int)code, err.message);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 65536);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

TEST_PROGRAM(set_up, tear_down)
