/* The order of steps. */
#include <string.h>

#include "core/definition/graph.h"
#include "tests/lib/test.h"

struct drawn { /* the steps and what each waits for */
    struct step_definition steps[DEFINITION_STEPS_MAX];
    uint32_t after[DEFINITION_STEPS_MAX][4];
    uint32_t count;
};

static void wait_for(struct drawn *drawn, uint32_t step, uint32_t before)
{
    struct step_definition *at = &drawn->steps[step];

    drawn->after[step][at->after_count++] = before;
    at->after = drawn->after[step];
}

static struct definition close_graph(struct drawn *drawn, struct arena *arena)
{
    struct definition definition = {.steps = drawn->steps, .step_count = drawn->count};
    uint32_t cycle_step;

    assert_true(graph_close(drawn->steps, drawn->count, arena, &definition.ancestors, &cycle_step));
    return definition;
}

static struct arena arena;

TEST(paths_are_found_through_all_steps_between)
{
    static struct drawn diamond = {.count = 5}; /* 0 -> 1, 2 -> 3; 4 stands alone */

    wait_for(&diamond, 1, 0);
    wait_for(&diamond, 2, 0);
    wait_for(&diamond, 3, 1);
    wait_for(&diamond, 3, 2);
    struct definition definition = close_graph(&diamond, &arena);

    assert_true(graph_before(&definition, 0, 3));
    assert_true(graph_before(&definition, 2, 3));
    assert_false(graph_before(&definition, 1, 2));
    assert_false(graph_before(&definition, 3, 0));
    assert_false(graph_before(&definition, 3, 3));
    assert_false(graph_before(&definition, 4, 3));
    assert_false(graph_before(&definition, 3, 4));
}

TEST(steps_may_wait_for_steps_written_below)
{
    static struct drawn backwards = {.count = 3};

    wait_for(&backwards, 0, 1);
    wait_for(&backwards, 1, 2);
    struct definition definition = close_graph(&backwards, &arena);

    assert_true(graph_before(&definition, 2, 0));
    assert_false(graph_before(&definition, 0, 2));
}

TEST(the_longest_chain_of_all_is_closed)
{
    static struct drawn chain = {.count = DEFINITION_STEPS_MAX};

    for (uint32_t i = 0; i + 1 < chain.count;
         i++) { /* every step waits for the one below, which makes the deepest search */
        wait_for(&chain, i, i + 1);
    }
    struct definition definition = close_graph(&chain, &arena);

    for (uint32_t i = 0; i + 1 < chain.count; i++) {
        assert_true(graph_before(&definition, chain.count - 1, i));
        assert_false(graph_before(&definition, i, chain.count - 1));
    }
}

TEST(a_circle_is_refused_and_a_step_on_it_is_named)
{
    static struct drawn circle = {.count = 4}; /* 0 waits for 1, and 1, 2 and 3 wait for each other */
    const uint64_t *ancestors = NULL;
    uint32_t cycle_step = UINT32_MAX;

    wait_for(&circle, 0, 1);
    wait_for(&circle, 1, 2);
    wait_for(&circle, 2, 3);
    wait_for(&circle, 3, 1);
    assert_false(graph_close(circle.steps, circle.count, &arena, &ancestors, &cycle_step));
    assert_in_range(cycle_step, 1, 3);
}

TEST_PROGRAM_ARENA(arena)
