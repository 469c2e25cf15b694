/* See debt_groups.h. */
#include "run/query/debt_groups.h"

#include <stdlib.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/map.h"
#include "run/query/filter.h"

#define KEYS_MAX 4

struct sum {
    struct sum *next;
    struct slice currency; /* SLICE_NONE: the tool does not say */
    int64_t micros;
    uint64_t debts;
};

struct debt_group {
    struct slice keys; /* JSON: a member for each key */
    uint64_t count, costless;
    int64_t oldest_ms, newest_ms; /* 0: none of them says when */
    struct sum *sums;
};

struct debt_groups {
    struct work *work;
    const struct slice *by;
    size_t by_count;
    struct map map; /* keys -> group */
    struct debt_group **items;
    size_t count, capacity;
};

static void release(void *object)
{
    struct debt_groups *groups = object;

    map_fini(&groups->map);
}

struct debt_groups *debt_groups_new(struct work *work, struct slice by)
{
    struct debt_groups *groups = arena_alloc(&work->arena, sizeof(*groups));

    groups->work = work;
    groups->by = filter_split(work, by, &groups->by_count);
    if (groups->by_count > KEYS_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < groups->by_count; i++) {
        struct slice key = groups->by[i];

        if (!slice_is(key, "tool") && !slice_is(key, "saga") && !(slice_starts_with(key, "tag.") && key.len > 4)) {
            return NULL;
        }
    }
    map_init(&groups->map);
    arena_on_release(&work->arena, release, groups);
    return groups;
}

static struct slice value_of(struct slice debt, struct slice key, struct arena *arena)
{
    if (slice_starts_with(key, "tag.")) {
        struct json_walk walk = json_walk(json_member(debt, "tags"));
        struct slice name, value, wanted = {key.ptr + 4, key.len - 4};

        while (json_next_member(&walk, &name, &value)) {
            if (slice_equal(json_string((struct slice){name.ptr - 1, name.len + 2}, arena), wanted)) {
                return json_string(value, arena);
            }
        }
        return SLICE_NONE;
    }
    return json_string(json_member(debt, slice_is(key, "tool") ? "tool" : "saga_name"), arena);
}

static struct slice keys_of(const struct debt_groups *groups, struct slice debt)
{
    struct arena *arena = &groups->work->arena;
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, 1 << 20);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    for (size_t i = 0; i < groups->by_count; i++) {
        json_write_slice(&w, arena_text(arena, groups->by[i]), value_of(debt, groups->by[i], arena));
    }
    json_object_end(&w);
    struct slice keys = arena_slice(arena, buffer_slice(&text));

    buffer_fini(&text);
    return keys;
}

static struct debt_group *group_of(struct debt_groups *groups, struct slice keys)
{
    struct arena *arena = &groups->work->arena;
    struct debt_group *group = map_find(&groups->map, keys.ptr, keys.len);

    if (group) {
        return group;
    }
    if (groups->count == groups->capacity) {
        size_t capacity = groups->capacity ? 2 * groups->capacity : 64;
        struct debt_group **grown = arena_array(arena, capacity, sizeof(struct debt_group *));

        for (size_t i = 0; i < groups->count; i++) {
            grown[i] = groups->items[i];
        }
        groups->items = grown;
        groups->capacity = capacity;
    }
    group = arena_alloc(arena, sizeof(*group));
    group->keys = keys;
    map_put(&groups->map, group->keys.ptr, group->keys.len, group);
    groups->items[groups->count++] = group;
    return group;
}

static void add_cost(struct debt_groups *groups, struct debt_group *group, struct slice debt)
{
    struct arena *arena = &groups->work->arena;
    struct slice currency = json_string(json_member(debt, "currency"), arena);
    struct sum *sum = group->sums;
    int64_t micros = 0;

    if (!json_i64(json_member(debt, "cost"), &micros)) {
        group->costless++;
        return;
    }
    while (sum && !slice_equal(sum->currency, currency)) {
        sum = sum->next;
    }
    if (!sum) {
        sum = arena_alloc(arena, sizeof(*sum));
        sum->next = group->sums;
        sum->currency = currency;
        group->sums = sum;
    }
    sum->micros = sum->micros > INT64_MAX - micros ? INT64_MAX : sum->micros + micros;
    sum->debts++;
}

void debt_groups_add(struct debt_groups *groups, struct slice debt)
{
    struct debt_group *group = group_of(groups, keys_of(groups, debt));
    struct slice since = json_string(json_member(debt, "since"), &groups->work->arena);
    int64_t since_ms = 0;

    group->count++;
    add_cost(groups, group, debt);
    if (since.ptr && instant_parse(since, &since_ms)) {
        group->oldest_ms = group->oldest_ms == 0 || since_ms < group->oldest_ms ? since_ms : group->oldest_ms;
        group->newest_ms = since_ms > group->newest_ms ? since_ms : group->newest_ms;
    }
}

static int largest_first(const void *left, const void *right)
{
    const struct debt_group *a = *(struct debt_group *const *)left, *b = *(struct debt_group *const *)right;

    return a->count != b->count ? (a->count > b->count ? -1 : 1) : slice_compare(a->keys, b->keys);
}

void debt_groups_write(const struct debt_groups *groups, struct buffer *out)
{
    if (groups->count > 0) {
        qsort(groups->items, groups->count, sizeof(*groups->items), largest_first);
    }
    for (size_t i = 0; i < groups->count; i++) {
        const struct debt_group *group = groups->items[i];
        struct json_writer w;

        buffer_put_text(out, i ? "," : "");
        json_writer_init(&w, out);
        json_object_begin(&w, NULL);
        json_write_raw(&w, "group", group->keys);
        json_write_i64(&w, "count", (int64_t)group->count);
        json_write_instant(&w, "oldest", group->oldest_ms);
        json_write_instant(&w, "newest", group->newest_ms);
        json_array_begin(&w, "costs");
        for (const struct sum *sum = group->sums; sum; sum = sum->next) {
            json_object_begin(&w, NULL);
            json_write_slice(&w, "currency", sum->currency);
            json_write_i64(&w, "micros", sum->micros);
            json_write_i64(&w, "debts", (int64_t)sum->debts);
            json_object_end(&w);
        }
        json_array_end(&w);
        json_write_i64(&w, "without_cost", (int64_t)group->costless);
        json_object_end(&w);
    }
}
