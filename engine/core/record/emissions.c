/*
 * A hash table that only grows. The ids are digests, so their first bytes are the hash. A copy of the state adds at
 * most a few ids before it is thrown away. It keeps these in its own small table, above the table that it was made
 * from.
 */
#include "core/record/emissions.h"

#include <string.h>

static uint32_t slot_of(const struct digest *id)
{
    return (uint32_t)id->bytes[0] << 24 | (uint32_t)id->bytes[1] << 16 | (uint32_t)id->bytes[2] << 8 | id->bytes[3];
}

/* Finds an id among the first `known` items of this table alone. An index beyond them belongs to another table and was
 * added after the copy was made. */
static const struct emission *find_own(const struct emissions *emissions, const struct digest *id, uint32_t known)
{
    uint32_t mask = emissions->capacity * 2 - 1;

    if (emissions->own == 0) {
        return NULL;
    }
    for (uint32_t slot = slot_of(id) & mask; emissions->slots[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t index = emissions->slots[slot] - 1;

        if (memcmp(&emissions->items[index].id, id, sizeof(*id)) == 0) {
            return index < known ? &emissions->items[index] : NULL;
        }
    }
    return NULL;
}

static const struct emission *find(const struct emissions *emissions, const struct digest *id, uint32_t known)
{
    const struct emission *found = NULL;

    if (emissions->base) {
        found = find(emissions->base, id, emissions->base_count < known ? emissions->base_count : known);
    }
    if (!found && known > emissions->base_count) {
        found = find_own(emissions, id, known - emissions->base_count);
    }
    return found;
}

const struct emission *emissions_find(const struct emissions *emissions, struct slice id)
{
    struct digest digest = digest_sha256(id);

    return find(emissions, &digest, emissions->count);
}

static void link_item(struct emissions *emissions, uint32_t index)
{
    uint32_t mask = emissions->capacity * 2 - 1, slot = slot_of(&emissions->items[index].id) & mask;

    while (emissions->slots[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    emissions->slots[slot] = index + 1;
}

static void grow(struct emissions *emissions, struct arena *arena)
{
    uint32_t capacity = emissions->capacity ? emissions->capacity * 2 : 4;
    struct emission *items = arena_array(arena, capacity, sizeof(*items));

    if (emissions->own > 0) {
        memcpy(items, emissions->items, emissions->own * sizeof(*items));
    }
    emissions->items = items;
    emissions->capacity = capacity;
    emissions->slots = arena_array(arena, (size_t)capacity * 2, sizeof(*emissions->slots));
    for (uint32_t i = 0; i < emissions->own; i++) {
        link_item(emissions, i);
    }
}

bool emissions_restore(struct emissions *emissions, const struct emission *emission, struct arena *arena)
{
    if (find(emissions, &emission->id, emissions->count)) {
        return false;
    }
    CHECK(emissions->count < UINT32_MAX / 4);
    if (emissions->own == emissions->capacity) {
        grow(emissions, arena);
    }
    emissions->items[emissions->own] = *emission;
    link_item(emissions, emissions->own);
    emissions->own++;
    emissions->count++;
    return true;
}

void emissions_add(struct emissions *emissions, struct slice id, const struct digest *fingerprint, uint32_t step,
                   struct arena *arena)
{
    struct emission emission = {.id = digest_sha256(id), .fingerprint = *fingerprint, .step = step};
    bool is_new = emissions_restore(emissions, &emission, arena);

    CHECK(is_new);
}

const struct emission *emissions_at(const struct emissions *emissions, uint32_t i)
{
    CHECK(i < emissions->count);
    while (emissions->base && i < emissions->base_count) {
        emissions = emissions->base;
    }
    return &emissions->items[i - emissions->base_count];
}

struct emissions emissions_share(const struct emissions *emissions)
{
    return (struct emissions){.count = emissions->count, .base = emissions, .base_count = emissions->count};
}
