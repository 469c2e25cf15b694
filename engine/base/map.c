/* Open addressing with linear probing and tombstones; at most three quarters full. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"

#define KEY_BYTES_MAX ((1u << 30) - 1)

enum slot_state { SLOT_FREE, SLOT_USED, SLOT_REMOVED };

struct map_slot { /* three words, because maps of all sagas in memory are large */
    const void *key;
    void *value;
    uint32_t hash;
    uint32_t key_len : 30;
    uint32_t state : 2; /* enum slot_state */
};

/* FNV-1a (Fowler, Noll, Vo), then a final mix: keys are our own ids or bounded names, not an attack surface. */
static uint32_t hash_bytes(const void *key, size_t len)
{
    const uint8_t *bytes = key;
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return (uint32_t)(hash ^ (hash >> 29));
}

void map_init(struct map *map)
{
    *map = (struct map){0};
}

void map_fini(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}

static struct map_slot *find_slot(const struct map *map, const void *key, size_t len, uint32_t hash)
{
    if (map->capacity == 0) {
        return NULL;
    }
    for (size_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
        struct map_slot *slot = &map->slots[i];

        if (slot->state == SLOT_FREE) {
            return NULL;
        }
        if (slot->state == SLOT_USED && slot->hash == hash && slot->key_len == len &&
            memcmp(slot->key, key, len) == 0) {
            return slot;
        }
    }
}

static void insert_new(struct map *map, struct map_slot item)
{
    size_t i = item.hash & (map->capacity - 1);

    while (map->slots[i].state == SLOT_USED) {
        i = (i + 1) & (map->capacity - 1);
    }
    map->used += map->slots[i].state == SLOT_FREE;
    map->slots[i] = item;
    map->count++;
}

static void rebuild(struct map *map)
{
    struct map old = *map;

    map->capacity = 16;
    while (map->capacity < old.count * 2 + 2) {
        map->capacity *= 2;
    }
    map->slots = memory_alloc(map->capacity * sizeof(*map->slots));
    map->count = map->used = 0;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].state == SLOT_USED) {
            insert_new(map, old.slots[i]);
        }
    }
    free(old.slots);
}

void *map_find(const struct map *map, const void *key, size_t key_len)
{
    const struct map_slot *slot = find_slot(map, key, key_len, hash_bytes(key, key_len));

    return slot ? slot->value : NULL;
}

void map_put(struct map *map, const void *key, size_t key_len, void *value)
{
    uint32_t hash = hash_bytes(key, key_len);
    struct map_slot *slot = find_slot(map, key, key_len, hash);

    if (slot) {
        slot->key = key;
        slot->value = value;
        return;
    }
    if ((map->used + 1) * 4 > map->capacity * 3) {
        rebuild(map);
    }
    CHECK(key_len <= KEY_BYTES_MAX);
    insert_new(map, (struct map_slot){
                        .key = key, .key_len = (uint32_t)key_len, .hash = hash, .value = value, .state = SLOT_USED});
}

void *map_remove(struct map *map, const void *key, size_t key_len)
{
    struct map_slot *slot = find_slot(map, key, key_len, hash_bytes(key, key_len));

    if (!slot) {
        return NULL;
    }
    slot->state = SLOT_REMOVED;
    map->count--;
    return slot->value;
}

bool map_next(const struct map *map, size_t *position, void **value)
{
    while (*position < map->capacity) {
        const struct map_slot *slot = &map->slots[(*position)++];

        if (slot->state == SLOT_USED) {
            *value = slot->value;
            return true;
        }
    }
    return false;
}
