/* See signature.h. */
#include "run/notify/signature.h"

#include <string.h>

#include "base/hmac.h"

#define PREFIX "whsec_"

bool signature_key_read(struct slice secret, struct signature_key *key)
{
    size_t head = sizeof(PREFIX) - 1;

    *key = (struct signature_key){.count = 0};
    if (!secret.ptr || !slice_starts_with(secret, PREFIX)) {
        return false;
    }
    return base64_read((struct slice){secret.ptr + head, secret.len - head}, key->bytes, sizeof(key->bytes),
                       &key->count) &&
           key->count >= SIGNATURE_KEY_BYTES_MIN;
}

void signature_key_wipe(struct signature_key *key)
{
    explicit_bzero(key, sizeof(*key));
}

void signature_put(struct buffer *out, const struct signature_key *key, struct slice id, int64_t timestamp_s,
                   struct slice body)
{
    struct slice bytes = {(const char *)key->bytes, key->count};
    struct digest digest;
    struct buffer text;
    char code[DIGEST_BASE64_BYTES];

    buffer_init(&text, id.len + body.len + 64);
    buffer_printf(&text, "%.*s.%lld.", SLICE_ARG(id), (long long)timestamp_s);
    buffer_put_slice(&text, body);
    digest = hmac_sha256(bytes, buffer_slice(&text));
    buffer_fini(&text);
    digest_base64(&digest, code);
    buffer_printf(out, "%sv1,%s", buffer_slice(out).len > 0 ? " " : "", code);
}
