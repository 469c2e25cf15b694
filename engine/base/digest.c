/* Beside hmac.c and aead.c the only file that sees libcrypto. When libcrypto refuses, the installation is broken, and
 * the process stops. */
#include "base/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"

/* Each thread looks the algorithm up once. With EVP_sha256() each digest would look it up again, which takes longer
 * than a short digest. */
static const EVP_MD *sha256(void)
{
    static _Thread_local EVP_MD *found;

    if (!found) {
        found = EVP_MD_fetch(NULL, "SHA256", NULL);
        CHECK(found);
    }
    return found;
}

/* Begins a digest. A new context takes four allocations, as long as a short digest, so each thread keeps one. A digest
 * ends in the function that begins it, so no two are under way. */
static EVP_MD_CTX *begin(void)
{
    static _Thread_local EVP_MD_CTX *context;

    if (!context) {
        context = EVP_MD_CTX_new();
        CHECK(context);
    }
    CHECK(EVP_DigestInit_ex(context, sha256(), NULL) == 1);
    return context;
}

static struct digest end(EVP_MD_CTX *context)
{
    struct digest digest;
    unsigned int len = 0;

    CHECK(EVP_DigestFinal_ex(context, digest.bytes, &len) == 1);
    CHECK(len == sizeof(digest.bytes));
    return digest;
}

struct digest digest_sha256(struct slice text)
{
    EVP_MD_CTX *context = begin();

    CHECK(EVP_DigestUpdate(context, text.ptr ? text.ptr : "", text.len) == 1);
    return end(context);
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void digest_hex(const struct digest *digest, char out[65])
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < 32; i++) {
        out[2 * i] = hex[digest->bytes[i] >> 4];
        out[2 * i + 1] = hex[digest->bytes[i] & 15];
    }
    out[64] = '\0';
}

bool digest_from_hex(struct slice hex, struct digest *out)
{
    struct digest digest;

    if (hex.len != 64) {
        return false;
    }
    for (size_t i = 0; i < 32; i++) {
        int high = hex_digit(hex.ptr[2 * i]), low = hex_digit(hex.ptr[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        digest.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *out = digest;
    return true;
}

bool random_bytes(void *out, size_t len)
{
    char *at = out;

    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        len -= (size_t)got;
    }
    return true;
}

/* Gathers short fields: each EVP_DigestUpdate() costs as much as the digest of a hundred bytes. */
struct digest_fields {
    EVP_MD_CTX *context;
    size_t len;
    uint8_t bytes[512];
};

static void gathering_flush(struct digest_fields *gathering)
{
    CHECK(gathering->len == 0 || EVP_DigestUpdate(gathering->context, gathering->bytes, gathering->len) == 1);
    gathering->len = 0;
}

static void gather(struct digest_fields *gathering, const void *bytes, size_t len)
{
    if (len > sizeof(gathering->bytes) - gathering->len) {
        gathering_flush(gathering);
    }
    if (len > sizeof(gathering->bytes)) {
        CHECK(EVP_DigestUpdate(gathering->context, bytes, len) == 1);
    } else if (len > 0) {
        memcpy(gathering->bytes + gathering->len, bytes, len);
        gathering->len += len;
    }
}

struct digest digest_fields(const char *tag, const struct slice *fields, size_t count)
{
    struct digest_fields gathering;

    gathering.context = begin();
    gathering.len = 0;
    gather(&gathering, tag, strlen(tag));
    for (size_t i = 0; i < count; i++) {
        CHECK(fields[i].len <= UINT32_MAX);
        uint32_t n = (uint32_t)fields[i].len;
        uint8_t prefix[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

        gather(&gathering, prefix, sizeof(prefix));
        gather(&gathering, fields[i].ptr, n);
    }
    gathering_flush(&gathering);
    return end(gathering.context);
}
