/* Memory from an arena is aligned, zeroed, apart from all other memory, and ends with the arena. */
#include <string.h>

#include "base/arena.h"
#include "tests/lib/test.h"

TEST(an_arena_knows_what_lies_in_it_and_where_it_points)
{
    struct arena arena, other;

    arena_init(&arena, 64);
    arena_init(&other, 64);
    const char *text = arena_text(&other, SLICE("here"));
    const char **word = arena_alloc(&arena, sizeof(*word));
    char *large = arena_alloc(&arena, 1000);

    assert_true(arena_holds(&other, text) && arena_holds(&other, text + 4));
    assert_false(arena_holds(&arena, text) || arena_holds(&other, NULL));
    assert_true(arena_holds(&arena, word) && arena_holds(&arena, large + 999)); /* in any block */
    assert_false(arena_holds(&arena, large + 1008));
    assert_false(arena_points_into(&arena, &other));
    *word = text;
    assert_true(arena_points_into(&arena, &other));
    assert_false(arena_points_into(&other, &arena));
    arena_fini(&other);
    assert_false(arena_points_into(&arena, &other));
    arena_fini(&arena);
}

TEST(memory_is_zeroed_aligned_and_apart)
{
    static const size_t sizes[] = {1, 0, 15, 16, 17, 100, 255, 256, 257, 4000, 3, 128, 129, 70000, 8};
    struct arena arena;
    char *parts[COUNT_OF(sizes)];

    arena_init(&arena, 256);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            parts[i] = arena_alloc(&arena, sizes[i]);
            assert_int_equal((uintptr_t)parts[i] % _Alignof(max_align_t), 0);
            for (size_t k = 0; k < sizes[i]; k++) {
                assert_int_equal(parts[i][k], 0);
            }
            memset(parts[i], (int)i + 1, sizes[i]);
        }
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            for (size_t k = 0; k < sizes[i]; k++) {
                assert_int_equal(parts[i][k], i + 1);
            }
        }
        assert_true(arena.used_bytes >= 75000);
        arena_reset(&arena); /* the next round gets the same dirty block, zeroed */
        assert_int_equal(arena.used_bytes, 0);
    }
    arena_fini(&arena);
}

TEST(an_array_is_as_long_as_asked)
{
    struct arena arena;

    arena_init(&arena, 64);
    int64_t *items = arena_array(&arena, 100, sizeof(*items));

    items[99] = 1;
    assert_int_equal(items[0], 0);
    assert_non_null(arena_array(&arena, 0, 8));
    arena_fini(&arena);
}

TEST(copies_end_with_a_nul_and_none_stays_none)
{
    struct arena arena;

    arena_init(&arena, 64);
    struct slice copy = arena_slice(&arena, (struct slice){"abcd", 3});

    assert_true(slice_is(copy, "abc"));
    assert_int_equal(copy.ptr[copy.len], '\0');
    assert_null(arena_slice(&arena, SLICE_NONE).ptr);
    assert_non_null(arena_slice(&arena, SLICE("")).ptr);
    assert_string_equal(arena_text(&arena, (struct slice){"abcd", 2}), "ab");
    assert_string_equal(arena_text(&arena, SLICE_NONE), "");
    assert_memory_equal(arena_dup(&arena, "a\0b", 3), "a\0b", 3);
    arena_fini(&arena);
}

TEST(printing_keeps_texts_of_any_length)
{
    struct arena arena;

    arena_init(&arena, 512);
    for (int width = 250; width < 262; width++) {
        struct slice text = arena_printf(&arena, "%0*d", width, 7);

        assert_int_equal(text.len, width);
        assert_int_equal(text.ptr[width - 1], '7');
        assert_int_equal(text.ptr[width], '\0');
    }
    assert_true(slice_is(arena_printf(&arena, "%s-%d", "a", 5), "a-5"));
    assert_int_equal(arena_printf(&arena, "%s", "").len, 0);
    arena_fini(&arena);
}

static char released[8];
static size_t released_count;

static void release(void *object)
{
    released[released_count++] = *(char *)object;
}

TEST(hooks_run_once_newest_first)
{
    static char a[] = "a", c[] = "c";
    struct arena arena;

    arena_init(&arena, 64);
    arena_on_release(&arena, release, a);
    arena_on_release(&arena, release, arena_text(&arena, SLICE("b"))); /* the hook can still read the memory */
    arena_reset(&arena);
    assert_int_equal(released_count, 2);
    arena_on_release(&arena, release, c);
    arena_fini(&arena);
    arena_fini(&arena);
    assert_int_equal(released_count, 3);
    assert_memory_equal(released, "bac", 3);
}

TEST(an_unused_arena_takes_no_memory)
{
    struct arena arena, zeroed = {0};

    arena_init(&arena, 1 << 20);
    assert_null(arena.blocks);
    arena_reset(&arena);
    assert_null(arena.blocks);
    arena_fini(&arena);
    arena_fini(&zeroed);
    assert_non_null(arena_alloc(&zeroed, 10));
    arena_fini(&zeroed);
}

TEST(reserved_memory_lies_together)
{
    struct arena arena;

    arena_init(&arena, 64);
    arena_reserve(&arena, 2000);
    char *first = arena_alloc(&arena, 1000), *second = arena_alloc(&arena, 992);

    assert_ptr_equal(second, first + 1008);   /* rounded up for the next allocation */
    assert_non_null(arena_alloc(&arena, 10)); /* the arena goes on behind it */
    arena_reset(&arena);
    arena_reserve(&arena, 16);
    assert_int_equal(*(char *)arena_alloc(&arena, 16), 0);
    arena_fini(&arena);
}

TEST(whoever_lies_in_an_arena_may_end_it)
{
    struct owner {
        struct arena arena;
        int number;
    };
    struct arena arena;

    released_count = 0;
    arena_init(&arena, 64);
    arena_reserve(&arena, sizeof(struct owner));
    struct owner *owner = arena_alloc(&arena, sizeof(*owner));

    owner->arena = arena;
    owner->number = 7;
    arena_on_release(&owner->arena, release, &owner->number); /* the number still exists then */
    arena = owner->arena;
    arena_fini(&arena);
    assert_int_equal(released_count, 1);
}

TEST(a_reset_keeps_one_ordinary_block)
{
    struct arena arena;

    arena_init(&arena, 128);
    for (int i = 0; i < 20; i++) {
        (void)arena_alloc(&arena, 100); /* only to make blocks */
    }
    arena_reset(&arena);
    struct arena_block *kept = arena.blocks;

    assert_non_null(kept);
    (void)arena_alloc(&arena, 100); /* uses the kept block */
    assert_ptr_equal(arena.blocks, kept);
    arena_fini(&arena);
}

TEST_PROGRAM(NULL, NULL)
