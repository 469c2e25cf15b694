/*
 * What every test program begins with: cmocka, the headers that cmocka wants before it, and tests that need no table.
 *
 *     TEST(a_promise_that_is_kept)
 *     {
 *         assert_true(...);
 *     }
 *
 *     TEST_PROGRAM(NULL, NULL)
 *
 * The tests of a program run in the order of their lines. The file that has them has the main function too.
 */
#ifndef SAGAD_TESTS_LIB_TEST_H
#define SAGAD_TESTS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct {
    struct CMUnitTest test[80];
    int line[80];
    size_t count;
} tests_of_this_file;

/* Constructors run in no certain order. */
static inline void test_add(int line, struct CMUnitTest test)
{
    size_t at = tests_of_this_file.count++;

    if (tests_of_this_file.count > sizeof(tests_of_this_file.line) / sizeof(tests_of_this_file.line[0])) {
        abort();
    }
    for (; at > 0 && tests_of_this_file.line[at - 1] > line; at--) {
        tests_of_this_file.test[at] = tests_of_this_file.test[at - 1];
        tests_of_this_file.line[at] = tests_of_this_file.line[at - 1];
    }
    tests_of_this_file.test[at] = test;
    tests_of_this_file.line[at] = line;
}

/* Before and after each test that does not say it itself; either may be NULL. */
static inline void tests_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    for (size_t i = 0; i < tests_of_this_file.count; i++) {
        if (tests_of_this_file.test[i].setup_func == NULL && tests_of_this_file.test[i].teardown_func == NULL) {
            tests_of_this_file.test[i].setup_func = set_up;
            tests_of_this_file.test[i].teardown_func = tear_down;
        }
    }
}

/* Runs them all, `set_up` before the first and `tear_down` after the last one. Returns what main() is to return. */
static inline int tests_run(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests("tests", tests_of_this_file.test, tests_of_this_file.count, set_up, tear_down);
}

#define TEST_BETWEEN(name, set_up, tear_down)                                                                          \
    static void name(void **state);                                                                                    \
    __attribute__((constructor)) static void name##_is_added(void)                                                     \
    {                                                                                                                  \
        test_add(__LINE__, (struct CMUnitTest){#name, name, set_up, tear_down, NULL});                                 \
    }                                                                                                                  \
    static void name(void **state __attribute__((unused)))

#define TEST(name) TEST_BETWEEN(name, NULL, NULL)

#define TEST_PROGRAM(set_up, tear_down)                                                                                \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return tests_run(set_up, tear_down);                                                                           \
    }

#define TEST_PROGRAM_EACH(set_up, tear_down)                                                                           \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        tests_each(set_up, tear_down);                                                                                 \
        return tests_run(NULL, NULL);                                                                                  \
    }

/* Tests that share one static object, which may be closed twice: close(&object) runs after each of them. */
#define TEST_PROGRAM_CLOSING(object, close)                                                                            \
    static int close_after_each(void **state __attribute__((unused)))                                                  \
    {                                                                                                                  \
        close(&(object));                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    TEST_PROGRAM_EACH(NULL, close_after_each)

/* open_arena() and close_arena() for one static arena, which is empty when each test begins. */
#define TEST_ARENA(arena)                                                                                              \
    static int open_arena(void **state __attribute__((unused)))                                                        \
    {                                                                                                                  \
        arena_init(&(arena), 1 << 14);                                                                                 \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int close_arena(void **state __attribute__((unused)))                                                       \
    {                                                                                                                  \
        arena_fini(&(arena));                                                                                          \
        return 0;                                                                                                      \
    }

#define TEST_PROGRAM_ARENA(arena) TEST_ARENA(arena) TEST_PROGRAM_EACH(open_arena, close_arena)

#endif
