/* A map is compared with the plainest model: an array of flags. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "tests/lib/test.h"

#define KEYS 500

struct entry {
    char key[16];
    bool in;
};

static uint32_t next_random(uint32_t *seed) /* the same sequence in every run */
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

TEST(a_map_agrees_with_a_plain_array_through_puts_and_removals)
{
    static struct entry entries[KEYS];
    struct map map;
    uint32_t seed = 1;
    size_t count = 0;

    map_init(&map);
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(entries[i].key, sizeof(entries[i].key), "key-%d", i);
    }
    for (int round = 0; round < 50000; round++) {
        struct entry *entry = &entries[next_random(&seed) % (round % 5000 < 2500 ? KEYS : 20)];
        size_t len = strlen(entry->key);

        assert_ptr_equal(map_find(&map, entry->key, len), entry->in ? entry : NULL);
        if (next_random(&seed) % 2) {
            map_put(&map, entry->key, len, entry);
            count += !entry->in;
            entry->in = true;
        } else {
            assert_ptr_equal(map_remove(&map, entry->key, len), entry->in ? entry : NULL);
            count -= entry->in;
            entry->in = false;
        }
        assert_int_equal(map.count, count);
    }
    assert_true(map.capacity <= 2048); /* removals do not make the map grow for ever */
    map_fini(&map);
}

TEST(every_value_is_seen_once_also_while_the_seen_are_removed)
{
    static char keys[100][12];
    static int seen[100];
    struct map map;
    size_t position = 0;
    void *value;

    map_init(&map);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "%d", i);
        map_put(&map, keys[i], strlen(keys[i]), keys[i]);
    }
    while (map_next(&map, &position, &value)) {
        seen[atoi(value)]++;
        if (atoi(value) % 2) {
            assert_ptr_equal(map_remove(&map, value, strlen(value)), value);
        }
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(seen[i], 1);
    }
    assert_int_equal(map.count, 50);
    map_fini(&map);
}

TEST(putting_again_replaces_value_and_key)
{
    char first[] = "same", second[] = "same";
    int one, two;
    struct map map;

    map_init(&map);
    map_put(&map, first, 4, &one);
    map_put(&map, second, 4, &two);
    memset(first, 'x', 4); /* the first key is no longer read */
    assert_ptr_equal(map_find(&map, "same", 4), &two);
    assert_int_equal(map.count, 1);
    map_fini(&map);
}

TEST(keys_are_bytes_of_any_length)
{
    struct map map;
    int one, two, none;

    map_init(&map);
    assert_null(map_find(&map, "a", 1));
    assert_null(map_remove(&map, "a", 1));
    map_put(&map, "a\0b", 3, &one);
    map_put(&map, "a\0c", 3, &two);
    map_put(&map, "", 0, &none);
    assert_ptr_equal(map_find(&map, "a\0b", 3), &one);
    assert_ptr_equal(map_find(&map, "a\0c", 3), &two);
    assert_ptr_equal(map_find(&map, "", 0), &none);
    assert_null(map_find(&map, "a", 1));
    map_fini(&map);
    map_fini(&(struct map){0});
}

TEST_PROGRAM(NULL, NULL)
