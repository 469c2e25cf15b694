/* See groups.h. Reasons beyond GROUPS_MAX are counted together. */
#include "run/bulk/groups.h"

#include <stdlib.h>

void groups_add(struct groups *groups, struct slice reason, struct slice example, struct arena *arena)
{
    struct group *group = NULL;

    for (size_t i = 0; i < groups->count && !group; i++) {
        if (slice_equal(groups->items[i].reason, reason)) {
            group = &groups->items[i];
        }
    }
    if (!group && groups->count < GROUPS_MAX) {
        group = &groups->items[groups->count++];
        group->reason = arena_slice(arena, reason);
    } else if (!group) {
        group = &groups->items[GROUPS_MAX];
        group->reason = SLICE("other reasons");
    }
    if (group->count < EXAMPLES_MAX) {
        group->examples[group->count] = arena_slice(arena, example);
    }
    group->count++;
}

static int by_count(const void *a, const void *b)
{
    const struct group *left = a, *right = b;

    return left->count != right->count ? (left->count > right->count ? -1 : 1)
                                       : slice_compare(left->reason, right->reason);
}

void groups_write(struct groups *groups, const char *name, const char *key, bool examples, struct json_writer *w)
{
    qsort(groups->items, groups->count, sizeof(groups->items[0]), by_count);
    json_array_begin(w, name);
    for (size_t i = 0; i <= GROUPS_MAX; i++) {
        const struct group *group = &groups->items[i];

        if (group->count == 0) {
            continue;
        }
        json_object_begin(w, NULL);
        json_write_slice(w, key, group->reason);
        json_write_i64(w, "count", (int64_t)group->count);
        if (examples) {
            json_array_begin(w, "examples");
            for (size_t k = 0; k < EXAMPLES_MAX && k < group->count; k++) {
                json_write_slice(w, NULL, group->examples[k]);
            }
            json_array_end(w);
        }
        json_object_end(w);
    }
    json_array_end(w);
}
