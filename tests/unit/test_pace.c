/* How many calls of a tool ask its guards at once, and when they ask again: see pace.h. */
#include "base/text.h"
#include "run/call/pace.h"
#include "tests/lib/test.h"

TEST(a_group_in_which_one_was_refused_is_followed_by_one_that_tries)
{
    struct pace pace = {0};
    int64_t delay_ms = -1;

    assert_int_equal(pace_begin_group(&pace, 10), 1);
    assert_true(pace_end_one(&pace, true, 1000, 0, &delay_ms));
    assert_int_equal(pace_begin_group(&pace, 10), 2);
    pace_close(&pace, PACE_RATE, 500, 1000, 0); /* the call behind it was accepted */
    assert_false(pace_end_one(&pace, false, 1000, 0, &delay_ms));
    assert_true(pace_end_one(&pace, true, 1000, 0, &delay_ms));
    assert_int_equal(delay_ms, 500);
    assert_int_equal(pace_begin_group(&pace, 10), 1);
    assert_true(pace_end_one(&pace, false, 2000, 0, &delay_ms)); /* refused, and nobody says until when */
    assert_int_equal(pace_begin_group(&pace, 10), 1);
}

TEST(groups_grow_to_the_widest_and_no_further)
{
    struct pace pace = {0};
    int64_t delay_ms;

    for (uint32_t width = 1; width < 4 * PACE_WIDTH_MAX; width *= 2) {
        uint32_t asking = pace_begin_group(&pace, 100 * PACE_WIDTH_MAX);

        assert_int_equal(asking, width < PACE_WIDTH_MAX ? width : PACE_WIDTH_MAX);
        while (asking-- > 0) {
            (void)pace_end_one(&pace, true, 0, 0, &delay_ms);
        }
    }
    assert_int_equal(pace_begin_group(&pace, 3), 3); /* at most as many as there are */
}

TEST(groups_are_apart_after_a_trouble_of_the_tool_and_not_after_a_rate)
{
    static const struct {
        enum pace_why why;
        bool apart;
    } table[] = {{PACE_RATE, false}, {PACE_BREAKER, true}, {PACE_PAUSED, true}, {PACE_AWAY, true}};

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct pace pace = {0};
        int64_t delay_ms;

        pace_close(&pace, table[i].why, 100, 0, 0);
        pace_close(&pace, table[i].why, 50, 0, 0); /* this says less, so the gate stays closed for as long as before */
        assert_int_equal(pace_closed_ms(&pace, 0), 100);
        assert_int_equal(pace_closed_ms(&pace, 100), 0);
        assert_int_equal(pace_begin_group(&pace, 5), 1);
        assert_true(pace_end_one(&pace, true, 100, 7, &delay_ms));
        assert_int_equal(delay_ms > 0, table[i].apart);
        pace_open(&pace);
        assert_int_equal(pace_begin_group(&pace, 5), 1);
    }
}

TEST_PROGRAM(NULL, NULL)
