/* Scenarios: a seed always draws the same valid scenario, and the text keeps all of it. */
#include <string.h>

#include "core/definition/definition.h"
#include "tests/lib/test.h"
#include "tests/sim/scenario.h"

#define SEEDS 2000

static struct scenario drawn, other;

static struct slice text_of(const struct scenario *scenario, struct buffer *out)
{
    buffer_init(out, 4 << 20);
    scenario_write(scenario, out);
    assert_false(out->overflow);
    return buffer_slice(out);
}

static void assert_same(const struct scenario *a, const struct scenario *b)
{
    struct buffer left, right;

    assert_true(slice_equal(text_of(a, &left), text_of(b, &right)));
    buffer_fini(&left);
    buffer_fini(&right);
}

static struct arena arena;

TEST(a_scenario_that_is_written_and_read_back_is_the_same)
{
    struct buffer text;
    struct err err;

    arena_init(&arena, 65536);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        scenario_draw(&drawn, seed, &arena);
        drawn.point_count = seed % 3;
        drawn.points[0].commit = drawn.points[1].commit = seed;
        drawn.points[0].fate = POINT_KILL;
        assert_int_equal(scenario_read(&other, text_of(&drawn, &text), &arena, &err), ERR_OK);
        buffer_fini(&text);
        assert_same(&drawn, &other);
        arena_reset(&arena);
    }
}

TEST(a_seed_always_draws_the_same)
{
    arena_init(&arena, 65536);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        scenario_draw(&drawn, seed, &arena);
        scenario_draw(&other, seed, &arena);
        assert_same(&drawn, &other);
        arena_reset(&arena);
    }
}

static bool ends_with(struct slice text, const char *end)
{
    size_t len = strlen(end);

    return text.len >= len && memcmp(text.ptr + text.len - len, end, len) == 0;
}

TEST(a_drawn_scenario_is_valid_and_needs_only_simulated_programs)
{
    arena_init(&arena, 65536);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct document document = {0};
        struct faults faults;

        scenario_draw(&drawn, seed, &arena);
        faults_init(&faults, &arena);
        document_check(drawn.definitions, NULL, &arena, &faults, &document);
        if (faults.count > 0) {
            fail_msg("seed %llu: %.*s: %.*s", (unsigned long long)seed, SLICE_ARG(faults.items[0].pointer),
                     SLICE_ARG(faults.items[0].detail));
        }
        for (size_t i = 0; i < document.check_count; i++) {
            struct slice program = document.checks[i].program;

            assert_true(program.len == 0 || ends_with(program, "| .") || ends_with(program, "| error"));
        }
        arena_reset(&arena);
    }
}

TEST(an_unreadable_scenario_is_refused_with_its_line)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"seed 1\nnodes two\ndefinitions\n{}", "line 2 of the scenario cannot be read"},
        {"act 1 dance at 0 node 0 saga 0 variant 0\ndefinitions\n{}", "line 1 of the scenario cannot be read"},
        {"fault kill at 0 for 1 node 0\ndefinitions\n{}", "line 1 of the scenario cannot be read"},
        {"point 1 9\ndefinitions\n{}", "line 1 of the scenario cannot be read"},
        {"nodes 9\ndefinitions\n{}", "a scenario has 1 to 4 nodes"},
        {"nodes 1\n", "the definitions of the scenario, behind the line \"definitions\", are not JSON"},
    };
    struct err err;

    arena_init(&arena, 65536);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(scenario_read(&other, slice_of(cases[i].text), &arena, &err), ERR_MALFORMED);
        assert_string_equal(err.message, cases[i].message);
    }
}

TEST_PROGRAM_CLOSING(arena, arena_fini)
