/* RFC 9562: version 7 for our ids, which are in order of time; version 8 for keys, which come from a digest. */
#include "base/id.h"

#include <string.h>

#include "base/check.h"

void uuid_text(const struct uuid *uuid, char out[UUID_TEXT_BYTES])
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out[at++] = '-';
        }
        out[at++] = hex[uuid->bytes[i] >> 4];
        out[at++] = hex[uuid->bytes[i] & 15];
    }
    out[at] = '\0';
}

bool uuid_parse(struct slice text, struct uuid *out)
{
    struct uuid uuid;
    size_t at = 0;

    if (text.len != UUID_TEXT_BYTES - 1) {
        return false;
    }
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (text.ptr[at++] != '-') {
                return false;
            }
        }
        int high = hex_digit(text.ptr[at]), low = hex_digit(text.ptr[at + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        uuid.bytes[i] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    *out = uuid;
    return true;
}

bool uuid_range_parse(struct slice prefix, struct uuid *first, struct uuid *last)
{
    char low[] = "00000000-0000-0000-0000-000000000000", high[] = "ffffffff-ffff-ffff-ffff-ffffffffffff";

    if (prefix.len < UUID_PREFIX_MIN || prefix.len > UUID_TEXT_BYTES - 1) {
        return false;
    }
    memcpy(low, prefix.ptr, prefix.len);
    memcpy(high, prefix.ptr, prefix.len);
    return uuid_parse(slice_of(low), first) && uuid_parse(slice_of(high), last);
}

bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, 16) == 0;
}

int uuid_compare(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, 16);
}

bool uuid_is_nil(const struct uuid *uuid)
{
    static const struct uuid nil;

    return uuid_equal(uuid, &nil);
}

struct uuid uuid_v8(const struct digest *digest)
{
    struct uuid uuid;

    memcpy(uuid.bytes, digest->bytes, 16);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x80);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

/* Fetches random bytes for 32 ids at a time: asking the kernel is the most expensive part of an id. Each byte is used
 * once, so each thread has its own. */
static void random_take(uint8_t *out, size_t len)
{
    static _Thread_local uint8_t bytes[512];
    static _Thread_local size_t left;

    CHECK(len <= sizeof(bytes));
    if (left < len) {
        CHECK(random_bytes(bytes, sizeof(bytes)));
        left = sizeof(bytes);
    }
    left -= len;
    memcpy(out, bytes + left, len);
}

/*
 * RFC 9562, 6.2, method 1: 48 bits of milliseconds, then a 12-bit counter that starts low in each millisecond and runs
 * over into the next one, then random bits. Its only state is the last id of this thread and the random bytes that are
 * left to it. Ids of two threads are told apart by their random bits, as those of two processes are.
 */
struct uuid uuid_v7(int64_t now_ms)
{
    static _Thread_local int64_t last_ms;
    static _Thread_local uint32_t counter;
    struct uuid uuid;

    random_take(uuid.bytes, sizeof(uuid.bytes));
    if (now_ms > last_ms) {
        last_ms = now_ms;
        counter = 0;
    } else if (++counter > 0xfff) {
        last_ms++;
        counter = 0;
    }
    for (int i = 0; i < 6; i++) {
        uuid.bytes[i] = (uint8_t)((uint64_t)last_ms >> (40 - 8 * i));
    }
    uuid.bytes[6] = (uint8_t)(0x70 | counter >> 8);
    uuid.bytes[7] = (uint8_t)counter;
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

int64_t uuid_v7_ms(const struct uuid *uuid)
{
    int64_t ms = 0;

    for (int i = 0; i < 6; i++) {
        ms = ms << 8 | uuid->bytes[i];
    }
    return ms;
}

struct saga_id saga_id_new(int64_t now_ms, uint32_t shard)
{
    struct saga_id id = {uuid_v7(now_ms)};

    CHECK(shard <= UINT16_MAX);
    id.uuid.bytes[14] = (uint8_t)(shard >> 8);
    id.uuid.bytes[15] = (uint8_t)shard;
    return id;
}

uint32_t saga_id_shard(struct saga_id id)
{
    return (uint32_t)id.uuid.bytes[14] << 8 | id.uuid.bytes[15];
}
