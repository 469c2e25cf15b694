/* Agents that go round in circles are stopped. Agents that wait, race or make progress are not. */
#include <string.h>

#include "core/record/loop_guard.h"
#include "tests/lib/test.h"

enum { A = 1, B, C, D };

static struct loop_guard guard_of(uint32_t repeats, uint32_t max_cycle)
{
    struct loop_guard guard;

    loop_guard_init(&guard, repeats, max_cycle);
    return guard;
}

/* Emits `call` and answers it with `answer`. Returns the length of the block that the call would have closed; such a
 * call was refused. */
static uint32_t emit(struct loop_guard *guard, uint64_t call, uint64_t answer)
{
    uint32_t length = loop_guard_trips(guard, call);

    if (length == 0) {
        loop_guard_add(guard, call, (uint32_t)call);
        loop_guard_answered(guard, (uint32_t)call, answer);
    }
    return length;
}

TEST(the_third_of_three_equal_calls_is_a_loop)
{
    struct loop_guard guard = guard_of(3, 2);

    assert_int_equal(emit(&guard, A, 7), 0);
    assert_int_equal(emit(&guard, A, 7), 0);
    assert_int_equal(emit(&guard, A, 7), 1);
}

TEST(a_ping_pong_is_a_loop_of_two)
{
    struct loop_guard guard = guard_of(3, 2);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(emit(&guard, A, 7), 0);
        assert_int_equal(emit(&guard, B, 8), 0);
    }
    assert_int_equal(emit(&guard, A, 7), 0);
    assert_int_equal(emit(&guard, B, 8), 2);
}

TEST(a_round_of_three_is_a_loop_only_where_the_cycle_may_be_that_long)
{
    static const uint64_t round[] = {A, B, C};
    struct loop_guard narrow = guard_of(3, 2), wide = guard_of(3, 3);

    for (int i = 0; i < 8; i++) {
        assert_int_equal(emit(&narrow, round[i % 3], 7), 0);
        assert_int_equal(emit(&wide, round[i % 3], 7), 0);
    }
    assert_int_equal(emit(&narrow, C, 7), 0);
    assert_int_equal(emit(&wide, C, 7), 3);
}

TEST(the_longest_round_with_the_most_repeats_still_fits)
{
    struct loop_guard guard = guard_of(LOOP_REPEATS_MAX, LOOP_CYCLE_MAX);

    for (uint64_t i = 0; i + 1 < LOOP_ENTRIES_MAX; i++) {
        assert_int_equal(emit(&guard, A + i % LOOP_CYCLE_MAX, 7), 0);
    }
    assert_int_equal(emit(&guard, A + LOOP_CYCLE_MAX - 1, 7), LOOP_CYCLE_MAX);
}

TEST(waiting_for_an_answer_that_changes_is_no_loop)
{
    struct loop_guard guard = guard_of(3, 2);

    for (uint64_t i = 1; i < 1000; i++) {
        assert_int_equal(emit(&guard, A, i), 0);
    }
}

TEST(waiting_for_an_answer_that_stays_the_same_is_one)
{
    struct loop_guard guard = guard_of(3, 2);

    assert_int_equal(emit(&guard, A, 1), 0);
    assert_int_equal(emit(&guard, A, 2), 0);
    assert_int_equal(emit(&guard, A, 2), 0);
    assert_int_equal(emit(&guard, A, 2), 1);
}

TEST(other_work_between_breaks_the_round)
{
    struct loop_guard guard = guard_of(3, 2);

    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(emit(&guard, A, 7), 0);
        assert_int_equal(emit(&guard, A, 7), 0);
        assert_int_equal(emit(&guard, D + i, 7), 0);
    }
}

TEST(an_unanswered_call_repeats_nothing)
{
    struct loop_guard guard = guard_of(3, 2);

    assert_false(loop_guard_is_race(&guard, A));
    for (uint32_t step = 0; step < 10; step++) {
        assert_int_equal(loop_guard_trips(&guard, A), 0);
        loop_guard_add(&guard, A, step);
        assert_true(loop_guard_is_race(&guard, A));
    }
    loop_guard_answered(&guard, 9, 7);
    assert_false(loop_guard_is_race(&guard, A));
    assert_int_equal(loop_guard_trips(&guard, A), 0); /* the other calls are still open */
}

TEST(nor_does_it_as_part_of_a_round)
{
    struct loop_guard guard = guard_of(3, 2);

    for (uint32_t i = 0; i < 3; i++) {
        loop_guard_add(&guard, A, 100 + i);
        assert_int_equal(emit(&guard, B, 8), 0);
    }
}

TEST(an_answer_belongs_to_the_emissions_about_its_operation)
{
    struct loop_guard guard = guard_of(2, 1);

    loop_guard_add(&guard, A, 1);
    loop_guard_answered(&guard, 2, 7);
    assert_true(loop_guard_is_race(&guard, A));
    loop_guard_answered(&guard, 1, 7);
    assert_int_equal(loop_guard_trips(&guard, A), 1);
    loop_guard_answered(&guard, 1, 8); /* too late, because the call has been answered */
    loop_guard_add(&guard, A, 1);
    loop_guard_answered(&guard, 1, 7);
    assert_int_equal(loop_guard_trips(&guard, A), 1);
}

TEST(a_trip_closes_all_calls_of_its_round)
{
    struct loop_guard guard = guard_of(3, 2);
    uint32_t length = 0;

    for (int i = 0; length == 0; i++) {
        length = emit(&guard, i % 2 ? B : A, 7);
    }
    loop_guard_close_block(&guard, length);
    assert_true(loop_guard_is_closed(&guard, A));
    assert_true(loop_guard_is_closed(&guard, B));
    assert_false(loop_guard_is_closed(&guard, C));
    assert_int_equal(guard.trips, 1);
}

TEST(a_new_turn_opens_everything_but_the_trips_are_remembered)
{
    struct loop_guard guard = guard_of(3, 2);
    uint64_t calls[] = {A};

    emit(&guard, A, 7);
    emit(&guard, A, 7);
    loop_guard_close(&guard, calls, 1);
    loop_guard_open(&guard);
    assert_false(loop_guard_is_closed(&guard, A));
    assert_int_equal(emit(&guard, A, 7), 0);
    assert_int_equal(emit(&guard, A, 7), 0);
    assert_int_equal(emit(&guard, A, 7), 1);
    loop_guard_close(&guard, calls, 1);
    assert_int_equal(guard.trips, 2);
}

TEST(a_call_is_known_by_tool_scope_and_arguments)
{
    struct digest x = digest_sha256(SLICE("x")), y = digest_sha256(SLICE("y"));
    uint64_t call = loop_call(SLICE("t"), SLICE("s"), &x);

    assert_true(call == loop_call(SLICE("t"), SLICE("s"), &x));
    assert_true(call != loop_call(SLICE("u"), SLICE("s"), &x));
    assert_true(call != loop_call(SLICE("t"), SLICE("r"), &x));
    assert_true(call != loop_call(SLICE("t"), SLICE("s"), &y));
    assert_true(call != loop_call(SLICE("ts"), SLICE_NONE, &x));
    assert_true(loop_answer(&x) != loop_answer(&y));
    assert_int_equal(loop_answer(&(struct digest){{0}}), 1); /* 0 means that there is no answer */
}

TEST_PROGRAM(NULL, NULL)
