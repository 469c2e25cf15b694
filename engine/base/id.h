/*
 * Ids are small structs, so that the compiler tells two kinds apart. Text form: 36 characters, lower case.
 *
 * A saga id is a UUIDv7 (RFC 9562) whose last two bytes are its shard, so that every engine finds a saga's shard from
 * its id alone.
 */
#ifndef SAGAD_BASE_ID_H
#define SAGAD_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/text.h"

struct uuid {
    uint8_t bytes[16];
};

struct saga_id {
    struct uuid uuid;
};

struct op_key { /* the idempotency key of an operation: a UUIDv8 */
    struct uuid uuid;
};

#define UUID_TEXT_BYTES 37 /* with the NUL */

void uuid_text(const struct uuid *uuid, char out[UUID_TEXT_BYTES]);
bool uuid_parse(struct slice text, struct uuid *out);
/* The range of ids that begin with `prefix`, which has at least UUID_PREFIX_MIN characters. The range includes both
 * ends. */
#define UUID_PREFIX_MIN 8
bool uuid_range_parse(struct slice prefix, struct uuid *first, struct uuid *last);
bool uuid_equal(const struct uuid *a, const struct uuid *b);
int uuid_compare(const struct uuid *a, const struct uuid *b);
bool uuid_is_nil(const struct uuid *uuid);
struct uuid uuid_v8(const struct digest *digest); /* the first 128 bits of the digest, with version and variant set */
struct uuid uuid_v7(int64_t now_ms);              /* monotonic within this process, also within a millisecond */
int64_t uuid_v7_ms(const struct uuid *uuid);

struct saga_id saga_id_new(int64_t now_ms, uint32_t shard);
uint32_t saga_id_shard(struct saga_id id); /* not checked against the number of shards */

#endif
