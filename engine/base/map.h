/*
 * A hash map from borrowed bytes to a pointer. The key must live and stay the same while it is in the map (it usually
 * lies in the value). Iteration order is unspecified: never let an outcome depend on it.
 */
#ifndef SAGAD_BASE_MAP_H
#define SAGAD_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;

struct map {
    struct map_slot *slots;
    size_t capacity, count, used;
};

void map_init(struct map *map);
void map_fini(struct map *map); /* does not free the values; accepts a zeroed struct */
void *map_find(const struct map *map, const void *key, size_t key_len);      /* NULL when absent */
void map_put(struct map *map, const void *key, size_t key_len, void *value); /* replaces key pointer and value */
void *map_remove(struct map *map, const void *key, size_t key_len);          /* the value that was there, or NULL */
bool map_next(const struct map *map, size_t *position,
              void **value); /* start with *position = 0; meanwhile only the item just seen may be removed */

#endif
