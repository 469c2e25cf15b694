/* From a business id to its shard; see business.h. */
#include "store/business.h"

#include "store/store.h"

struct digest business_digest(struct slice namespace, struct slice saga_name, struct slice id)
{
    struct slice fields[] = {namespace, saga_name, id};

    return digest_fields("business", fields, COUNT_OF(fields));
}

uint32_t digest_shard(const struct digest *digest)
{
    return digest->bytes[31] % SHARD_COUNT;
}
