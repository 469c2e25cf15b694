/* Reads keys strictly: what the issuer says of a key binds it, and the token that shows up never chooses its kind. */
#include "io/oidc/keys.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#include "base/base64url.h"
#include "base/json.h"

#define RSA_BYTES_MIN 256  /* 2048 bits */
#define RSA_BYTES_MAX 1024 /* a larger key would cost too much with each request */
#define RSA_EXPONENT_BYTES_MAX 4

enum key_kind { KEY_RSA, KEY_P256, KEY_P384, KEY_P521 };

static const struct {
    enum key_kind kind;
    gnutls_sign_algorithm_t sign;
    size_t signature_bytes; /* curves: two numbers of equal length; 0: as long as the modulus */
} algorithms[JWT_ALGORITHM_COUNT] = {
    [JWT_RS256] = {KEY_RSA, GNUTLS_SIGN_RSA_SHA256, 0},
    [JWT_RS384] = {KEY_RSA, GNUTLS_SIGN_RSA_SHA384, 0},
    [JWT_RS512] = {KEY_RSA, GNUTLS_SIGN_RSA_SHA512, 0},
    [JWT_PS256] = {KEY_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256, 0},
    [JWT_PS384] = {KEY_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA384, 0},
    [JWT_PS512] = {KEY_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA512, 0},
    [JWT_ES256] = {KEY_P256, GNUTLS_SIGN_ECDSA_SHA256, 64},
    [JWT_ES384] = {KEY_P384, GNUTLS_SIGN_ECDSA_SHA384, 96},
    [JWT_ES512] = {KEY_P521, GNUTLS_SIGN_ECDSA_SHA512, 132},
};

static const struct {
    const char *name;
    enum key_kind kind;
    gnutls_ecc_curve_t curve;
    size_t bytes; /* the bytes of a coordinate */
} curves[] = {
    {"P-256", KEY_P256, GNUTLS_ECC_CURVE_SECP256R1, 32},
    {"P-384", KEY_P384, GNUTLS_ECC_CURVE_SECP384R1, 48},
    {"P-521", KEY_P521, GNUTLS_ECC_CURVE_SECP521R1, 66},
};

struct key {
    struct slice kid;
    enum key_kind kind;
    bool is_bound; /* the key is bound to one algorithm */
    enum jwt_algorithm algorithm;
    gnutls_pubkey_t public;
};

struct jwt_keys {
    struct arena arena;
    struct key items[JWT_KEYS_MAX];
    size_t count;
};

static gnutls_datum_t datum_of(struct slice bytes)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)bytes.ptr, (unsigned int)bytes.len};
}

/* --- reading --- */

static struct slice text_of(struct slice key, const char *name, struct arena *arena)
{
    return json_string(json_member(key, name), arena);
}

static struct slice bytes_of(struct slice key, const char *name, struct arena *arena)
{
    struct slice text = text_of(key, name, arena);

    return text.ptr ? base64url_read(text, arena) : SLICE_NONE;
}

static bool is_for_signatures(struct slice key)
{
    struct slice use = json_member(key, "use"), uses = json_member(key, "key_ops"), item;
    struct json_walk walk = json_walk(uses);
    bool verifies = !uses.ptr;

    while (json_type(uses) == JSON_ARRAY && json_next_element(&walk, &item)) {
        verifies = verifies || json_string_is(item, "verify");
    }
    return verifies && (!use.ptr || json_string_is(use, "sig"));
}

static bool exponent_is_good(struct slice exponent) /* with 1, every text would be its own signature */
{
    return exponent.len > 0 && exponent.len <= RSA_EXPONENT_BYTES_MAX && exponent.ptr[0] != 0 &&
           (exponent.ptr[exponent.len - 1] & 1) && !(exponent.len == 1 && exponent.ptr[0] == 1);
}

static bool import_rsa(struct slice key, struct arena *arena, struct key *out)
{
    struct slice modulus = bytes_of(key, "n", arena), exponent = bytes_of(key, "e", arena);
    gnutls_datum_t n, e;

    while (modulus.len > 0 && modulus.ptr[0] == '\0') { /* some issuers put a sign in front */
        modulus = (struct slice){modulus.ptr + 1, modulus.len - 1};
    }
    if (modulus.len < RSA_BYTES_MIN || modulus.len > RSA_BYTES_MAX || !exponent_is_good(exponent)) {
        return false;
    }
    n = datum_of(modulus);
    e = datum_of(exponent);
    out->kind = KEY_RSA;
    return gnutls_pubkey_import_rsa_raw(out->public, &n, &e) == GNUTLS_E_SUCCESS;
}

static bool import_curve(struct slice key, struct arena *arena, struct key *out)
{
    struct slice name = text_of(key, "crv", arena), x = bytes_of(key, "x", arena), y = bytes_of(key, "y", arena);

    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        if (name.ptr && slice_is(name, curves[i].name) && x.len == curves[i].bytes && y.len == curves[i].bytes) {
            gnutls_datum_t dx = datum_of(x), dy = datum_of(y);

            out->kind = curves[i].kind;
            return gnutls_pubkey_import_ecc_raw(out->public, curves[i].curve, &dx, &dy) == GNUTLS_E_SUCCESS;
        }
    }
    return false;
}

static void take(struct jwt_keys *keys, struct slice key)
{
    struct slice type = text_of(key, "kty", &keys->arena), algorithm = json_member(key, "alg");
    struct key read = {.kid = text_of(key, "kid", &keys->arena), .is_bound = algorithm.ptr != NULL};

    if (read.kid.len == 0 || !type.ptr || !is_for_signatures(key) ||
        (read.is_bound && !jwt_algorithm_parse(json_string(algorithm, &keys->arena), &read.algorithm))) {
        return;
    }
    CHECK(gnutls_pubkey_init(&read.public) == GNUTLS_E_SUCCESS);
    if (!((slice_is(type, "RSA") && import_rsa(key, &keys->arena, &read)) ||
          (slice_is(type, "EC") && import_curve(key, &keys->arena, &read))) ||
        (read.is_bound && algorithms[read.algorithm].kind != read.kind)) {
        gnutls_pubkey_deinit(read.public);
        return;
    }
    keys->items[keys->count++] = read;
}

struct jwt_keys *jwt_keys_read(struct slice text, struct err *err)
{
    const struct json_limits limits = {
        .bytes_max = JWT_KEYS_BYTES_MAX, .depth_max = 16, .number_bytes_max = 64, .exponent_max = 400};
    struct jwt_keys *keys;
    struct json_walk walk;
    struct slice item;

    if (json_check(text, &limits, err) != ERR_OK) {
        (void)err_context(err, "the keys of the issuer");
        return NULL;
    }
    if (json_type(json_member(text, "keys")) != JSON_ARRAY) {
        (void)err_set(err, ERR_MALFORMED, "the keys of the issuer are not an object with an array \"keys\"");
        return NULL;
    }
    keys = memory_alloc(sizeof(*keys));
    arena_init(&keys->arena, 4096);
    text = arena_slice(&keys->arena, text);
    walk = json_walk(json_member(text, "keys"));
    while (keys->count < JWT_KEYS_MAX && json_next_element(&walk, &item)) {
        take(keys, item);
    }
    if (keys->count == 0) {
        (void)err_set(err, ERR_MALFORMED, "none of the keys of the issuer can be used");
        err_hint(err, "a key has a kid, and is RSA of 2048 to 8192 bits or of the curve P-256, P-384 or P-521");
        jwt_keys_free(keys);
        return NULL;
    }
    return keys;
}

void jwt_keys_free(struct jwt_keys *keys)
{
    if (!keys) {
        return;
    }
    for (size_t i = 0; i < keys->count; i++) {
        gnutls_pubkey_deinit(keys->items[i].public);
    }
    arena_fini(&keys->arena);
    free(keys);
}

size_t jwt_keys_count(const struct jwt_keys *keys)
{
    return keys->count;
}

/* --- signatures --- */

bool jwt_keys_has(const struct jwt_keys *keys, const struct jwt *jwt)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (slice_equal(keys->items[i].kid, jwt->kid)) {
            return true;
        }
    }
    return false;
}

/* A number as GnuTLS encodes it: without zeros in front. */
static gnutls_datum_t number_of(struct slice bytes)
{
    while (bytes.len > 1 && bytes.ptr[0] == '\0') {
        bytes = (struct slice){bytes.ptr + 1, bytes.len - 1};
    }
    return datum_of(bytes);
}

static bool verify(const struct key *key, const struct jwt *jwt)
{
    gnutls_datum_t data = datum_of(jwt->signed_part), signature = datum_of(jwt->signature);
    gnutls_sign_algorithm_t sign = algorithms[jwt->algorithm].sign;
    size_t bytes = algorithms[jwt->algorithm].signature_bytes, half = bytes / 2;

    if (bytes == 0) {
        return gnutls_pubkey_verify_data2(key->public, sign, 0, &data, &signature) >= 0;
    }
    if (jwt->signature.len != bytes) {
        return false;
    }
    gnutls_datum_t r = number_of((struct slice){jwt->signature.ptr, half}),
                   s = number_of((struct slice){jwt->signature.ptr + half, half}), encoded = {NULL, 0};

    if (gnutls_encode_rs_value(&encoded, &r, &s) != GNUTLS_E_SUCCESS) {
        return false;
    }
    bool is_good = gnutls_pubkey_verify_data2(key->public, sign, 0, &data, &encoded) >= 0;

    gnutls_free(encoded.data);
    return is_good;
}

bool jwt_keys_verify(const struct jwt_keys *keys, const struct jwt *jwt)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct key *key = &keys->items[i];

        if (slice_equal(key->kid, jwt->kid) && key->kind == algorithms[jwt->algorithm].kind &&
            (!key->is_bound || key->algorithm == jwt->algorithm) && verify(key, jwt)) {
            return true;
        }
    }
    return false;
}
