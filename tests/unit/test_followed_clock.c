/* A clock that follows another one never goes back, makes no steps, and is right in the end. */
#include "base/followed_clock.h"
#include "tests/lib/test.h"

TEST(the_first_time_is_believed_at_once)
{
    struct followed_clock clock = {0};

    followed_clock_set(&clock, 1000000, 500);
    assert_int_equal(followed_clock_at(&clock, 500), 1000000);
    assert_int_equal(followed_clock_at(&clock, 750), 1000250);
}

TEST(a_step_forwards_is_made_up_for_in_fifty_times_as_long)
{
    struct followed_clock clock = {0};

    followed_clock_set(&clock, 1000000, 0);
    followed_clock_set(&clock, 1005000, 1000); /* 4 s ahead of what we believed */
    assert_int_equal(followed_clock_at(&clock, 1000), 1001000);
    assert_int_equal(followed_clock_at(&clock, 51000), 1052000);
    assert_int_equal(followed_clock_at(&clock, 201000), 1205000);
    assert_int_equal(followed_clock_at(&clock, 301000), 1305000);
}

TEST(a_step_backwards_slows_it_down_and_never_turns_it)
{
    struct followed_clock clock = {0};
    int64_t before = 0;

    followed_clock_set(&clock, 1000000, 0);
    for (int64_t ms = 0; ms < 600000; ms++) {
        int64_t now;

        if (ms == 5000 || ms == 7000) {
            followed_clock_set(&clock, 990000 + ms, ms);
        }
        now = followed_clock_at(&clock, ms);
        assert_true(now >= before);
        before = now;
    }
    assert_int_equal(followed_clock_at(&clock, 600000), 1590000);
}

TEST_PROGRAM(NULL, NULL)
