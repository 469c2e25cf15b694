/* Beside digest.c and aead.c the only file that sees libcrypto. When libcrypto refuses, the installation is broken, and
 * the process stops. */
#include "base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/check.h"

struct digest hmac_sha256(struct slice key, struct slice text)
{
    struct digest digest;
    unsigned int len = 0;

    CHECK(key.ptr && key.len <= INT32_MAX);
    CHECK(HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)(text.ptr ? text.ptr : ""), text.len,
               digest.bytes, &len));
    CHECK(len == sizeof(digest.bytes));
    return digest;
}

void digest_base64(const struct digest *digest, char out[DIGEST_BASE64_BYTES])
{
    CHECK(EVP_EncodeBlock((unsigned char *)out, digest->bytes, sizeof(digest->bytes)) == DIGEST_BASE64_BYTES - 1);
}

bool base64_read(struct slice text, unsigned char *out, size_t bytes_max, size_t *count)
{
    unsigned char whole[BASE64_BYTES_MAX + 2]; /* libcrypto counts the padding as bytes */
    size_t padding = 0, bytes = text.len / 4 * 3;

    CHECK(bytes_max <= BASE64_BYTES_MAX);
    *count = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=') {
        padding++;
    }
    if (text.len == 0 || text.len % 4 != 0 || bytes - padding > bytes_max ||
        EVP_DecodeBlock(whole, (const unsigned char *)text.ptr, (int)text.len) != (int)bytes) {
        return false;
    }
    *count = bytes - padding;
    memcpy(out, whole, *count);
    OPENSSL_cleanse(whole, sizeof(whole));
    return true;
}
