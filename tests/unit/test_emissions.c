/* A repeat of a request is recognised, however many requests there were. A copy keeps its new requests to itself. */
#include <time.h>

#include "core/record/emissions.h"
#include "tests/lib/test.h"

static struct digest some;

static void add(struct emissions *emissions, const char *id, uint32_t step, struct arena *arena)
{
    emissions_add(emissions, slice_of(id), &some, step, arena);
}

static struct arena arena;

TEST(an_id_is_found_with_what_it_came_with)
{
    struct emissions emissions = {0};
    struct digest fingerprint = digest_sha256(SLICE("{}"));

    assert_null(emissions_find(&emissions, SLICE("a")));
    emissions_add(&emissions, SLICE("a"), &fingerprint, 7, &arena);
    add(&emissions, "b", 8, &arena);
    assert_int_equal(emissions.count, 2);
    assert_int_equal(emissions_find(&emissions, SLICE("a"))->step, 7);
    assert_true(digest_equal(&emissions_find(&emissions, SLICE("a"))->fingerprint, &fingerprint));
    assert_int_equal(emissions_find(&emissions, SLICE("b"))->step, 8);
    assert_null(emissions_find(&emissions, SLICE("c")));
    assert_null(emissions_find(&emissions, SLICE("")));
}

TEST(ids_are_listed_as_they_came_and_written_down_ones_are_found)
{
    struct arena turn;
    struct emissions emissions = {0}, copy, again = {0};

    arena_init(&turn, 4096);
    add(&emissions, "a", 1, &arena);
    add(&emissions, "b", 2, &arena);
    copy = emissions_share(&emissions);
    add(&copy, "c", 3, &turn);
    for (uint32_t i = 0; i < copy.count; i++) {
        assert_int_equal(emissions_at(&copy, i)->step, i + 1);
        assert_true(emissions_restore(&again, emissions_at(&copy, i), &arena));
    }
    assert_int_equal(again.count, 3);
    assert_int_equal(emissions_find(&again, SLICE("c"))->step, 3);
    assert_false(emissions_restore(&again, emissions_at(&copy, 1), &arena));
    arena_fini(&turn);
}

TEST(the_original_does_not_know_the_additions_to_a_copy)
{
    struct arena turn;
    struct emissions emissions = {0}, copy, again;

    arena_init(&turn, 4096);
    for (int i = 0; i < 5; i++) {
        add(&emissions, (const char[]){(char)('a' + i), '\0'}, (uint32_t)i, &arena);
    }
    copy = emissions_share(&emissions);
    assert_int_equal(copy.count, 5);
    add(&copy, "x", 10, &turn);
    add(&copy, "y", 11, &turn);
    again = emissions_share(&copy);
    add(&again, "z", 12, &turn);
    assert_int_equal(again.count, 8);
    assert_int_equal(emissions_find(&again, SLICE("a"))->step, 0);
    assert_int_equal(emissions_find(&again, SLICE("y"))->step, 11);
    assert_int_equal(emissions_find(&again, SLICE("z"))->step, 12);
    assert_null(emissions_find(&copy, SLICE("z")));
    assert_null(emissions_find(&emissions, SLICE("x")));
    assert_int_equal(emissions.count, 5);
    arena_reset(&turn);
    add(&emissions, "x", 20, &arena);
    assert_int_equal(emissions_find(&emissions, SLICE("x"))->step, 20);
    arena_fini(&turn);
}

TEST(a_copy_does_not_know_what_the_original_adds_later)
{
    struct emissions emissions = {0}, copy;

    add(&emissions, "a", 1, &arena);
    copy = emissions_share(&emissions);
    add(&emissions, "b", 2, &arena);
    assert_null(emissions_find(&copy, SLICE("b")));
    add(&copy, "b", 3, &arena);
    assert_int_equal(emissions_find(&copy, SLICE("b"))->step, 3);
    assert_int_equal(emissions_find(&emissions, SLICE("b"))->step, 2);
}

TEST(ten_thousand_are_found_as_fast_as_ten)
{
    struct arena turn;
    struct emissions emissions = {0};
    clock_t begin = clock();

    arena_init(&turn, 4096);
    for (uint32_t i = 0; i < EMISSIONS_MAX; i++) {
        struct emissions copy = emissions_share(&emissions); /* each decision makes such a copy */
        struct slice id = arena_printf(&turn, "emission-%u", i);

        assert_null(emissions_find(&copy, id));
        emissions_add(&copy, id, &some, i, &turn);
        emissions_add(&emissions, id, &some, i, &arena);
        arena_reset(&turn);
    }
    for (uint32_t i = 0; i < EMISSIONS_MAX; i++) {
        const struct emission *found = emissions_find(&emissions, arena_printf(&turn, "emission-%u", i));

        assert_non_null(found);
        assert_int_equal(found->step, i);
        arena_reset(&turn);
    }
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 5.0); /* a list would take minutes here */
    arena_fini(&turn);
}

TEST_PROGRAM_ARENA(arena)
