/* The cipher is AES-256-GCM (base/aead.h). The place of a text is its associated data. */
#include "store/seal/payload_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/aead.h"
#include "base/file.h"
#include "base/hmac.h"
#include "base/json.h"
#include "base/metric.h"

enum { FILE_KIB_MAX = 64, PLACE_BYTES_MAX = 128 };

struct payload_key {
    char name[PAYLOAD_KEY_NAME_MAX + 1];
    struct aead_key *key;
    struct digest digest_key;
};

struct payload_keys {
    struct payload_key items[PAYLOAD_KEYS_MAX];
    size_t count;
    const struct payload_key *active; /* NULL: nothing new is sealed */
};

/* --- the file --- */

static const struct payload_key *find(const struct payload_keys *keys, struct slice name)
{
    for (size_t i = 0; keys && i < keys->count; i++) {
        if (slice_is(name, keys->items[i].name)) {
            return &keys->items[i];
        }
    }
    return NULL;
}

/* Names stand in JSON, in front of a dot, and in sentences. */
static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) {
            return false;
        }
    }
    return name.len > 0 && name.len <= PAYLOAD_KEY_NAME_MAX;
}

static enum err_code wrong(const char *path, struct err *err, const char *what)
{
    enum err_code code = err_set(err, ERR_CONFIG, "the file of payload keys %s is not right", path);

    err_detail(err, "%s", what); /* never the text of the file, which could be a key */
    err_hint(err, "write {\"active\": \"k1\", \"keys\": {\"k1\": \"32 bytes as base64\"}}; `openssl rand -base64 32` "
                  "makes a key");
    return code;
}

static bool add(struct payload_keys *keys, struct slice name, struct slice value)
{
    unsigned char bytes[AEAD_KEY_BYTES];
    size_t count = 0;
    bool is_good = json_type(value) == JSON_STRING &&
                   base64_read((struct slice){value.ptr + 1, value.len - 2}, bytes, sizeof(bytes), &count) &&
                   count == sizeof(bytes);

    if (is_good) {
        slice_to_text(keys->items[keys->count].name, sizeof(keys->items[keys->count].name), name);
        keys->items[keys->count].digest_key =
            hmac_sha256((struct slice){(const char *)bytes, sizeof(bytes)}, SLICE("sagad digests of payloads"));
        keys->items[keys->count++].key = aead_key_new(bytes);
    }
    explicit_bzero(bytes, sizeof(bytes));
    return is_good;
}

static enum err_code read_text(struct payload_keys *keys, const char *path, struct slice text, struct arena *arena,
                               struct err *err)
{
    struct slice active, set, name, value;
    struct json_walk walk;

    if (json_check(text, &json_limits_default, NULL) != ERR_OK || json_type(text) != JSON_OBJECT) {
        return wrong(path, err, "it is not a JSON object, or it has a member twice");
    }
    active = json_member(text, "active");
    set = json_member(text, "keys");
    if ((json_type(active) != JSON_STRING && json_type(active) != JSON_NULL) || json_type(set) != JSON_OBJECT ||
        json_count(text) != 2) {
        return wrong(path, err,
                     "it has the members \"active\", a text or null, and \"keys\", an object, and no others");
    }
    walk = json_walk(set);
    while (json_next_member(&walk, &name, &value)) {
        if (keys->count == PAYLOAD_KEYS_MAX) {
            return wrong(path, err, "it has more than 64 keys");
        }
        if (!is_name(name)) {
            return wrong(path, err, "the name of a key has 1 to 32 small letters, digits and hyphens");
        }
        if (!add(keys, name, json_trim(value))) {
            return wrong(path, err, "a key is not 32 bytes as base64");
        }
    }
    keys->active = json_type(active) == JSON_STRING ? find(keys, json_string(active, arena)) : NULL;
    if (json_type(active) == JSON_STRING && !keys->active) {
        return wrong(path, err, "the active key is none of its keys");
    }
    return keys->count > 0 ? ERR_OK : wrong(path, err, "it has no key");
}

struct payload_keys *payload_keys_new(const char *path, struct err *err)
{
    struct payload_keys *keys = memory_alloc(sizeof(*keys));
    struct slice text = SLICE_NONE;
    struct arena arena;

    arena_init(&arena, 4096);
    enum err_code code = file_read(path, "payload keys", FILE_KIB_MAX, FILE_OF_ITS_OWNER, &arena, &text, err);

    if (code == ERR_OK) {
        code = read_text(keys, path, text, &arena, err);
        explicit_bzero((char *)(uintptr_t)text.ptr, text.len);
    }
    arena_fini(&arena);
    if (code != ERR_OK) {
        payload_keys_free(keys);
        return NULL;
    }
    return keys;
}

void payload_keys_free(struct payload_keys *keys)
{
    for (size_t i = 0; keys && i < keys->count; i++) {
        aead_key_free(keys->items[i].key);
    }
    if (keys) {
        explicit_bzero(keys, sizeof(*keys));
    }
    free(keys);
}

struct slice payload_keys_active(const struct payload_keys *keys)
{
    return keys && keys->active ? slice_of(keys->active->name) : SLICE_NONE;
}

const struct digest *payload_keys_digest_key(const struct payload_keys *keys)
{
    return keys && keys->active ? &keys->active->digest_key : NULL;
}

size_t payload_keys_count(const struct payload_keys *keys)
{
    return keys ? keys->count : 0;
}

struct slice payload_keys_name(const struct payload_keys *keys, size_t i)
{
    CHECK(i < keys->count);
    return slice_of(keys->items[i].name);
}

bool payload_keys_has(const struct payload_keys *keys, struct slice name)
{
    return find(keys, name) != NULL;
}

/* --- sealing --- */

static size_t put_number(unsigned char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (unsigned char)(value >> (56 - 8 * i));
    }
    return 8;
}

/* No two places have the same bytes: the table ends with a zero, ids and numbers have their length, the member is last.
 */
static struct slice place_bytes(const struct seal_place *place, unsigned char out[PLACE_BYTES_MAX])
{
    size_t len = strlen(place->table) + 1;

    CHECK(len + sizeof(place->id.bytes) + 16 + place->member.len <= PLACE_BYTES_MAX);
    memcpy(out, place->table, len);
    memcpy(out + len, place->id.bytes, sizeof(place->id.bytes));
    len += sizeof(place->id.bytes);
    len += put_number(out + len, place->number);
    len += put_number(out + len, place->nth);
    if (place->member.len > 0) {
        memcpy(out + len, place->member.ptr, place->member.len);
        len += place->member.len;
    }
    return (struct slice){(const char *)out, len};
}

size_t payload_sealed_bytes(size_t text_len)
{
    return text_len + AEAD_EXTRA_BYTES;
}

void payload_keys_seal_at(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                          unsigned char *out)
{
    unsigned char place_at[PLACE_BYTES_MAX];

    CHECK(keys && keys->active);
    aead_seal(keys->active->key, place_bytes(place, place_at), text, out);
    metric_add(METRIC_PAYLOADS_SEALED, 1);
}

void payload_keys_seal(const struct payload_keys *keys, const struct seal_place *place, struct slice text,
                       struct buffer *out)
{
    char *at = buffer_extend(out, payload_sealed_bytes(text.len));

    if (at) { /* otherwise the caller sees the overflow */
        payload_keys_seal_at(keys, place, text, (unsigned char *)at);
    }
}

enum err_code payload_keys_unseal(const struct payload_keys *keys, const struct seal_place *place, struct slice name,
                                  struct slice sealed, struct buffer *out, struct err *err)
{
    const struct payload_key *key = find(keys, name);
    unsigned char place_at[PLACE_BYTES_MAX];
    size_t before = out->len;
    char *at;

    if (!key) {
        metric_add(METRIC_PAYLOADS_UNOPENED, 1);
        err_set(err, is_name(name) ? ERR_CONFIG : ERR_CORRUPT,
                "a payload is sealed under the key %.*s, which is not among --payload-keys",
                SLICE_ARG(is_name(name) ? name : SLICE("?")));
        err_hint(err, "put that key into the file of --payload-keys");
        return err->code;
    }
    at = sealed.len >= AEAD_EXTRA_BYTES ? buffer_extend(out, sealed.len - AEAD_EXTRA_BYTES + 1) : NULL;
    if (!at || !aead_open(key->key, place_bytes(place, place_at), sealed, (unsigned char *)at)) {
        out->len = before;
        metric_add(METRIC_PAYLOADS_UNOPENED, 1);
        return err_set(err, ERR_CORRUPT,
                       "a sealed payload does not open under its key %s: it was changed, or belongs to another row",
                       key->name);
    }
    out->len--; /* a buffer gives no room of no bytes, so there was one to spare */
    return ERR_OK;
}

/* --- which key is it? --- */

static struct seal_place proof_place(struct slice name)
{
    return (struct seal_place){.table = "payload_key", .member = name};
}

void payload_keys_put_proof(const struct payload_keys *keys, struct buffer *out)
{
    struct seal_place place = proof_place(payload_keys_active(keys));

    payload_keys_seal(keys, &place, SLICE_NONE, out);
}

enum err_code payload_keys_check_proof(const struct payload_keys *keys, struct slice name, struct slice proof,
                                       struct err *err)
{
    struct seal_place place = proof_place(name);
    const struct payload_key *key = is_name(name) ? find(keys, name) : NULL;
    unsigned char place_at[PLACE_BYTES_MAX], nothing[1];

    if (!key) {
        err_set(err, ERR_CONFIG, "payloads of this database are sealed under the key %.*s, which sagad does not have",
                SLICE_ARG(is_name(name) ? name : SLICE("?")));
        err_hint(err, "name it in the file of --payload-keys; without it nobody can read what is sealed");
        return ERR_CONFIG;
    }
    if (proof.len != AEAD_EXTRA_BYTES || !aead_open(key->key, place_bytes(&place, place_at), proof, nothing)) {
        err_set(err, ERR_CONFIG, "the key %s in --payload-keys is another one than this database was sealed with",
                key->name);
        err_hint(err, "put the old key back under that name, and give the new one a name of its own");
        return ERR_CONFIG;
    }
    return ERR_OK;
}
