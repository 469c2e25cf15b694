/* To which row a sealed column belongs: all that tells it from other rows, and what it would do in one of them. */
#ifndef SAGAD_STORE_SEAL_PLACES_H
#define SAGAD_STORE_SEAL_PLACES_H

#include "store/seal/payload_keys.h"

struct seal_place place_of_turn(const struct uuid *saga, uint64_t first_seq);
struct seal_place place_of_rest(const struct uuid *saga, uint64_t last_seq); /* the turn's last record */
struct seal_place place_of_digest(const struct uuid *saga); /* the input that the saga was started with */
struct seal_place place_of_input(const struct uuid *id, const struct uuid *saga, struct slice kind);
struct seal_place place_of_answer(const struct uuid *input);
struct seal_place place_of_bulk(const struct uuid *id);
struct seal_place place_of_bulk_item(const struct uuid *bulk, uint64_t number);
/* The place of a case or an approval: the number of its shard tells it from others. */
struct seal_place place_of_case(const char *table, const struct uuid *saga, uint64_t number);
struct seal_place place_of_schedule(struct slice namespace, struct slice name, const struct uuid *id);

#endif
