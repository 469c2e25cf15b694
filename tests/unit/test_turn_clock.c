/* The time of a turn is read once and lazily, and never goes back when it follows another clock. */
#include "io/loop/turn_clock.h"
#include "tests/lib/test.h"

static int64_t boot_us, wall_ms;
static int reads;

static void on_read(struct turn_clock *clock)
{
    clock->boot_us = boot_us;
    clock->wall_ms = wall_ms;
    reads++;
}

static struct turn_clock clock_at(int64_t us, int64_t ms)
{
    boot_us = us;
    wall_ms = ms;
    reads = 0;
    return (struct turn_clock){.read = on_read};
}

TEST(the_clocks_are_read_once_a_turn_by_whoever_asks_first)
{
    struct turn_clock clock = clock_at(1000, 50);

    assert_int_equal(reads, 0);
    assert_int_equal(turn_clock_boot_us(&clock), 1000);
    boot_us = 2000;
    wall_ms = 60;
    assert_int_equal(turn_clock_wall_ms(&clock), 50);
    assert_int_equal(turn_clock_boot_us(&clock), 1000);
    assert_int_equal(reads, 1);
    turn_clock_age(&clock);
    assert_int_equal(reads, 1);
    assert_int_equal(turn_clock_wall_ms(&clock), 60);
    assert_int_equal(turn_clock_boot_us(&clock), 2000);
    assert_int_equal(reads, 2);
    boot_us = 3000;
    turn_clock_read(&clock);
    assert_int_equal(turn_clock_boot_us(&clock), 3000);
}

TEST(this_machines_time_of_day_may_go_back)
{
    struct turn_clock clock = clock_at(1000, 50000);

    assert_int_equal(turn_clock_wall_ms(&clock), 50000);
    wall_ms = 40000;
    turn_clock_age(&clock);
    assert_int_equal(turn_clock_wall_ms(&clock), 40000);
}

TEST(a_time_of_day_that_is_followed_never_goes_back_whatever_it_is_told)
{
    struct turn_clock clock = clock_at(1000000, 777);
    int64_t told_ms = 0;

    followed_clock_set(&clock.followed, 50000, 1000);
    assert_int_equal(turn_clock_wall_ms(&clock), 50000); /* and not the time of this machine */
    for (int i = 0; i < 200; i++) {
        int64_t now_ms = turn_clock_wall_ms(&clock);

        assert_true(now_ms >= told_ms);
        told_ms = now_ms;
        if (i % 50 == 10) {
            followed_clock_set(&clock.followed, now_ms + (i % 100 == 10 ? -30000 : 30000), boot_us / 1000);
        }
        boot_us += 7000;
        wall_ms -= 1000;
        turn_clock_age(&clock);
    }
    assert_true(told_ms > 50000);
}

TEST_PROGRAM(NULL, NULL)
