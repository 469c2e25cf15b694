/* A sealed text is the nonce, the ciphertext and the tag. When libcrypto refuses to work, the installation is broken,
 * and the process stops; that a text does not open is an answer. */
#include "base/aead.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"

enum { NONCE_BYTES = 12, TAG_BYTES = AEAD_EXTRA_BYTES - NONCE_BYTES, NONCES_AT_ONCE = 64 };

struct aead_key { /* contexts keep the expanded key, so that a text costs no key schedule */
    EVP_CIPHER_CTX *sealing, *opening;
    /* Random bytes for the next nonces: asking for each apart costs more than sealing a short text. Each is used once,
     * and a process that was forked does not seal. */
    unsigned char nonces[NONCES_AT_ONCE][NONCE_BYTES];
    size_t nonces_left;
};

struct aead_key *aead_key_new(const unsigned char bytes[AEAD_KEY_BYTES])
{
    struct aead_key *key = memory_alloc(sizeof(*key));

    key->sealing = EVP_CIPHER_CTX_new();
    key->opening = EVP_CIPHER_CTX_new();
    CHECK(key->sealing && key->opening);
    CHECK(EVP_EncryptInit_ex(key->sealing, EVP_aes_256_gcm(), NULL, bytes, NULL) == 1);
    CHECK(EVP_DecryptInit_ex(key->opening, EVP_aes_256_gcm(), NULL, bytes, NULL) == 1);
    return key;
}

void aead_key_free(struct aead_key *key)
{
    if (key) {
        EVP_CIPHER_CTX_free(key->sealing); /* wipes what it holds */
        EVP_CIPHER_CTX_free(key->opening);
        free(key);
    }
}

static const unsigned char *bytes_of(struct slice text)
{
    CHECK(text.len <= INT32_MAX);
    return (const unsigned char *)(text.ptr ? text.ptr : "");
}

void aead_seal(struct aead_key *key, struct slice beside, struct slice text, unsigned char *out)
{
    EVP_CIPHER_CTX *ctx = key->sealing;
    unsigned char *at = out + NONCE_BYTES;
    int len = 0;

    if (key->nonces_left == 0) {
        CHECK(RAND_bytes(key->nonces[0], sizeof(key->nonces)) == 1);
        key->nonces_left = NONCES_AT_ONCE;
    }
    memcpy(out, key->nonces[--key->nonces_left], NONCE_BYTES);
    CHECK(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, out) == 1);
    CHECK(EVP_EncryptUpdate(ctx, NULL, &len, bytes_of(beside), (int)beside.len) == 1);
    CHECK(EVP_EncryptUpdate(ctx, at, &len, bytes_of(text), (int)text.len) == 1 && (size_t)len == text.len);
    at += text.len;
    CHECK(EVP_EncryptFinal_ex(ctx, at, &len) == 1 && len == 0);
    CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, at) == 1);
}

bool aead_open(struct aead_key *key, struct slice beside, struct slice sealed, unsigned char *out)
{
    EVP_CIPHER_CTX *ctx = key->opening;
    unsigned char tag[TAG_BYTES];
    size_t text_len = sealed.len - AEAD_EXTRA_BYTES;
    int len = 0;

    if (sealed.len < AEAD_EXTRA_BYTES) {
        return false;
    }
    memcpy(tag, sealed.ptr + NONCE_BYTES + text_len, TAG_BYTES);
    CHECK(EVP_DecryptInit_ex(ctx, NULL, NULL, NULL, bytes_of(sealed)) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1);
    CHECK(EVP_DecryptUpdate(ctx, NULL, &len, bytes_of(beside), (int)beside.len) == 1);
    CHECK(EVP_DecryptUpdate(ctx, out, &len, bytes_of(sealed) + NONCE_BYTES, (int)text_len) == 1);
    if (EVP_DecryptFinal_ex(ctx, out + text_len, &len) == 1) {
        return true;
    }
    OPENSSL_cleanse(out, text_len); /* nobody may act on what was not proved */
    return false;
}
