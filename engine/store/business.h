/*
 * Business ids. The shard of a saga that has one comes from that id, so that every engine finds the saga without
 * asking.
 */
#ifndef SAGAD_STORE_BUSINESS_H
#define SAGAD_STORE_BUSINESS_H

#include "base/digest.h"

struct digest business_digest(struct slice namespace, struct slice saga_name, struct slice id);
uint32_t digest_shard(const struct digest *digest); /* the shard of a business id, or of another name with a digest */

#endif
