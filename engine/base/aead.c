/* When libcrypto refuses to work, the installation is broken, and the process stops; that a text does not open is an
 * answer. */
#include "base/aead.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"

enum {
    BLOCK_BYTES = 16,
    HALF_BYTES = 12, /* the first half of a nonce makes the key of the text, the other one is its nonce under that */
    NONCE_BYTES = 2 * HALF_BYTES,
    TAG_BYTES = AEAD_EXTRA_BYTES - NONCE_BYTES,
    NONCES_AT_ONCE = 256
};

struct aead_key {
    EVP_CIPHER_CTX *blocks; /* AES-256 of single blocks under the key; keeps its key schedule */
    unsigned char mask[BLOCK_BYTES];
    /* Each has the key of the text before, and the half of the nonce that made it: texts in a row share these. */
    EVP_CIPHER_CTX *sealing, *opening;
    unsigned char sealing_half[HALF_BYTES], opening_half[HALF_BYTES];
    bool has_opened;
    /* Random bytes for the next nonces: asking for each apart costs more than sealing a short text. Each is used once,
     * and a process that was forked does not seal. */
    unsigned char nonces[NONCES_AT_ONCE][HALF_BYTES];
    size_t nonces_left;
};

static void encrypt_blocks(struct aead_key *key, unsigned char *blocks, int len)
{
    int written = 0;

    CHECK(EVP_EncryptUpdate(key->blocks, blocks, &written, blocks, len) == 1 && written == len);
}

/* The first subkey of CMAC: what encrypts nothing but zeros, doubled in GF(2^128). */
static void make_mask(struct aead_key *key)
{
    unsigned char block[BLOCK_BYTES] = {0};

    encrypt_blocks(key, block, sizeof(block));
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        unsigned next = i + 1 < BLOCK_BYTES ? block[i + 1] : 0;

        key->mask[i] = (unsigned char)(block[i] << 1 | next >> 7);
    }
    key->mask[BLOCK_BYTES - 1] ^= (unsigned char)(block[0] >> 7) * 0x87;
    OPENSSL_cleanse(block, sizeof(block));
}

/* The key of one text: the CMAC of a counter, a label and the first half of the nonce, twice. */
static void derive(struct aead_key *key, const unsigned char *nonce, unsigned char out[AEAD_KEY_BYTES])
{
    for (size_t i = 0; i < 2; i++) {
        unsigned char *block = out + i * BLOCK_BYTES;
        const unsigned char head[] = {0, (unsigned char)(i + 1), 'X', 0};

        memcpy(block, head, sizeof(head));
        memcpy(block + sizeof(head), nonce, HALF_BYTES);
        for (size_t at = 0; at < BLOCK_BYTES; at++) {
            block[at] ^= key->mask[at];
        }
    }
    encrypt_blocks(key, out, AEAD_KEY_BYTES);
}

struct aead_key *aead_key_new(const unsigned char bytes[AEAD_KEY_BYTES])
{
    struct aead_key *key = memory_alloc(sizeof(*key));

    key->blocks = EVP_CIPHER_CTX_new();
    key->sealing = EVP_CIPHER_CTX_new();
    key->opening = EVP_CIPHER_CTX_new();
    CHECK(key->blocks && key->sealing && key->opening);
    CHECK(EVP_EncryptInit_ex(key->blocks, EVP_aes_256_ecb(), NULL, bytes, NULL) == 1);
    CHECK(EVP_CIPHER_CTX_set_padding(key->blocks, 0) == 1);
    CHECK(EVP_EncryptInit_ex(key->sealing, EVP_aes_256_gcm(), NULL, NULL, NULL) == 1);
    CHECK(EVP_DecryptInit_ex(key->opening, EVP_aes_256_gcm(), NULL, NULL, NULL) == 1);
    make_mask(key);
    return key;
}

void aead_key_free(struct aead_key *key)
{
    if (key) {
        EVP_CIPHER_CTX_free(key->blocks); /* wipes what it holds */
        EVP_CIPHER_CTX_free(key->sealing);
        EVP_CIPHER_CTX_free(key->opening);
        OPENSSL_cleanse(key, sizeof(*key));
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
    unsigned char *at = out + NONCE_BYTES, own[AEAD_KEY_BYTES];
    int len = 0;

    if (key->nonces_left == 0) {
        CHECK(RAND_bytes(key->nonces[0], sizeof(key->nonces)) == 1);
        CHECK(RAND_bytes(key->sealing_half, sizeof(key->sealing_half)) == 1);
        key->nonces_left = NONCES_AT_ONCE;
        derive(key, key->sealing_half, own);
        CHECK(EVP_EncryptInit_ex(ctx, NULL, NULL, own, NULL) == 1);
        OPENSSL_cleanse(own, sizeof(own));
    }
    memcpy(out, key->sealing_half, HALF_BYTES);
    memcpy(out + HALF_BYTES, key->nonces[--key->nonces_left], HALF_BYTES);
    CHECK(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, out + HALF_BYTES) == 1);
    CHECK(EVP_EncryptUpdate(ctx, NULL, &len, bytes_of(beside), (int)beside.len) == 1);
    CHECK(EVP_EncryptUpdate(ctx, at, &len, bytes_of(text), (int)text.len) == 1 && (size_t)len == text.len);
    at += text.len;
    CHECK(EVP_EncryptFinal_ex(ctx, at, &len) == 1 && len == 0);
    CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, at) == 1);
}

bool aead_open(struct aead_key *key, struct slice beside, struct slice sealed, unsigned char *out)
{
    EVP_CIPHER_CTX *ctx = key->opening;
    unsigned char tag[TAG_BYTES], own[AEAD_KEY_BYTES];
    size_t text_len = sealed.len - AEAD_EXTRA_BYTES;
    int len = 0;

    if (sealed.len < AEAD_EXTRA_BYTES) {
        return false;
    }
    memcpy(tag, sealed.ptr + NONCE_BYTES + text_len, TAG_BYTES);
    if (!key->has_opened || memcmp(key->opening_half, sealed.ptr, HALF_BYTES) != 0) {
        derive(key, bytes_of(sealed), own);
        CHECK(EVP_DecryptInit_ex(ctx, NULL, NULL, own, NULL) == 1);
        OPENSSL_cleanse(own, sizeof(own));
        memcpy(key->opening_half, sealed.ptr, HALF_BYTES);
        key->has_opened = true;
    }
    CHECK(EVP_DecryptInit_ex(ctx, NULL, NULL, NULL, bytes_of(sealed) + HALF_BYTES) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1);
    CHECK(EVP_DecryptUpdate(ctx, NULL, &len, bytes_of(beside), (int)beside.len) == 1);
    CHECK(EVP_DecryptUpdate(ctx, out, &len, bytes_of(sealed) + NONCE_BYTES, (int)text_len) == 1);
    if (EVP_DecryptFinal_ex(ctx, out + text_len, &len) == 1) {
        return true;
    }
    OPENSSL_cleanse(out, text_len); /* nobody may act on what was not proved */
    return false;
}
