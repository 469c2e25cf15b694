/*
 * Emission ids: how a repeat of the same request on the wire is recognised. They are aliases of operations and never
 * enter a key. Part of a saga's state: append-only; a copy of the state that grows takes memory of its own.
 */
#ifndef SAGAD_CORE_RECORD_EMISSIONS_H
#define SAGAD_CORE_RECORD_EMISSIONS_H

#include "base/arena.h"
#include "base/digest.h"

#define EMISSIONS_MAX 10000 /* the emissions of one saga or run; whoever adds keeps to it */

struct emission {
    struct digest id;          /* SHA-256 of the id as given */
    struct digest fingerprint; /* the fingerprint of the arguments it came with */
    uint32_t step;             /* the operation it is an alias of */
};

struct emissions {  /* a zeroed one is empty */
    uint32_t count; /* in all */
    /* private */
    struct emission *items; /* without those of `base` */
    uint32_t own, capacity;
    uint32_t *slots; /* open addressing by id; 0 is free, else the index + 1; twice the capacity, a power of two */
    const struct emissions *base; /* a copy's base: where the others are, of which it knows the first `base_count` */
    uint32_t base_count;
};

const struct emission *emissions_find(const struct emissions *emissions, struct slice id); /* NULL: never seen */
/* An id that was not seen before. */
void emissions_add(struct emissions *emissions, struct slice id, const struct digest *fingerprint, uint32_t step,
                   struct arena *arena);
const struct emission *emissions_at(const struct emissions *emissions, uint32_t i); /* in the order they were added */
/* The same of one that was written down. False: its id is there already. */
MUST_USE bool emissions_restore(struct emissions *emissions, const struct emission *emission, struct arena *arena);
/* For a copy: what is there is shared, what is added is not. `emissions` stays where it is and outlives the copy. */
struct emissions emissions_share(const struct emissions *emissions);

#endif
