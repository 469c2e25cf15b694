/* The work of a loop, tested without a loop: the order of timers, and what may happen while callbacks run. */
#include "io/loop/agenda.h"
#include "tests/lib/test.h"

enum { TIMERS = 400 };

static struct agenda agenda;
static struct timer timers[TIMERS];
static struct timer *fired[TIMERS];
static size_t fired_count;

static int setup(void **state)
{
    (void)state;
    agenda = (struct agenda){0};
    agenda_init(&agenda);
    for (size_t i = 0; i < TIMERS; i++) {
        timers[i] = (struct timer){0};
    }
    fired_count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    agenda_fini(&agenda);
    return 0;
}

static void on_timer(struct timer *timer)
{
    fired[fired_count++] = timer;
}

static void run_timers(int64_t now_ms)
{
    agenda_timers_begin(&agenda);
    while (agenda_timers_next(&agenda, now_ms)) {
        /* one more timer ran */
    }
}

static uint32_t draw(uint32_t *seed) /* xorshift */
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

TEST(timers_started_moved_and_stopped_at_random_fire_in_order)
{
    uint64_t order[TIMERS] = {0}, orders = 0;
    uint32_t seed = 4711;
    size_t running = 0;

    for (int i = 0; i < 4000; i++) {
        size_t at = draw(&seed) % TIMERS;

        if (draw(&seed) % 3 == 0) {
            agenda_timer_stop(&agenda, &timers[at]);
        } else {
            agenda_timer_start(&agenda, &timers[at], 0, draw(&seed) % 50, on_timer);
            order[at] = ++orders;
        }
    }
    for (size_t i = 0; i < TIMERS; i++) {
        running += timer_running(&timers[i]);
    }
    for (int64_t now_ms = 0; now_ms < 50; now_ms++) {
        run_timers(now_ms);
        assert_true(agenda_due_ms(&agenda) > now_ms);
        assert_true(fired_count == 0 || fired[fired_count - 1]->due_boot_ms <= now_ms);
    }
    assert_int_equal(fired_count, running);
    for (size_t i = 1; i < fired_count; i++) {
        const struct timer *before = fired[i - 1], *after = fired[i];

        assert_true(before->due_boot_ms < after->due_boot_ms ||
                    (before->due_boot_ms == after->due_boot_ms && order[before - timers] < order[after - timers]));
    }
    assert_null(agenda_first(&agenda));
}

TEST(a_timer_is_due_when_its_delay_is_over_and_not_within_its_last_millisecond)
{
    agenda_timer_start(&agenda, &timers[0], 10001, 5, on_timer);
    run_timers(15);
    assert_int_equal(fired_count, 0);
    run_timers(16);
    assert_int_equal(fired_count, 1);
}

TEST(a_timer_of_the_far_future_is_never_due)
{
    agenda_timer_start(&agenda, &timers[0], 10001, INT64_MAX, on_timer);
    assert_ptr_equal(agenda_first(&agenda), &timers[0]);
    assert_int_equal(agenda_due_ms(&agenda), INT64_MAX);
    agenda_timer_stop(&agenda, &timers[0]);
}

TEST(a_step_of_the_day_brings_only_timers_of_the_day_nearer_and_in_order)
{
    for (size_t i = 0; i < 8; i++) {
        agenda_timer_start(&agenda, &timers[i], 0, 1000 + 100 * (int64_t)(7 - i), on_timer);
        timers[i].by_day = i % 2 == 0;
    }
    agenda_timers_nearer(&agenda, 1250);
    run_timers(49);
    assert_int_equal(fired_count, 1); /* the one that was due at 1,100 is overdue */
    run_timers(50);
    assert_int_equal(fired_count, 2);
    run_timers(500);
    assert_int_equal(fired_count, 4);
    run_timers(5000);
    assert_int_equal(fired_count, 8);
    for (size_t i = 1; i < fired_count; i++) {
        assert_true(fired[i - 1]->due_boot_ms <= fired[i]->due_boot_ms);
    }
    agenda_timer_start(&agenda, &timers[0], 0, 1000, on_timer);
    agenda_timers_nearer(&agenda, 900); /* a timer that starts again is not by the day of itself */
    assert_int_equal(agenda_due_ms(&agenda), 1000);
    agenda_timer_stop(&agenda, &timers[0]);
}

static void on_again(struct timer *timer)
{
    fired_count++;
    agenda_timer_start(&agenda, timer, 0, 0, on_again);
}

TEST(a_timer_that_starts_itself_again_waits_for_the_next_turn)
{
    agenda_timer_start(&agenda, &timers[0], 0, 0, on_again);
    run_timers(7);
    assert_int_equal(fired_count, 1);
    run_timers(7);
    assert_int_equal(fired_count, 2);
}

static struct deferred works[3];
static int ran[3];

static void on_work(struct deferred *deferred)
{
    ran[deferred - works]++;
    if (deferred == &works[0]) {
        assert_true(agenda_defer(&agenda, &works[0], on_work)); /* deferred to the next round */
        agenda_defer_cancel(&agenda, &works[1]);
    }
}

TEST(deferred_work_may_cancel_what_waits_and_come_back_in_the_next_round)
{
    for (size_t i = 0; i < 3; i++) {
        assert_true(agenda_defer(&agenda, &works[i], on_work));
    }
    assert_false(agenda_defer(&agenda, &works[2], on_work));
    agenda_deferred_begin(&agenda);
    assert_true(agenda_deferred_next(&agenda));
    assert_true(agenda_deferred_next(&agenda));
    assert_int_equal(ran[0], 1);
    assert_int_equal(ran[1], 0);
    assert_int_equal(ran[2], 1);
    agenda_defer_cancel(&agenda, &works[0]);
    assert_false(agenda_deferred_next(&agenda));
}

static size_t order[3], order_count;

static void on_ordered(struct deferred *deferred)
{
    order[order_count++] = (size_t)(deferred - works);
    if (deferred == &works[0]) {
        assert_true(agenda_defer_first(&agenda, &works[2], on_ordered));
        assert_false(agenda_defer_first(&agenda, &works[1], on_ordered)); /* the job already has its place */
    }
}

TEST(a_first_item_runs_in_the_same_round_before_all_that_wait)
{
    assert_true(agenda_defer(&agenda, &works[0], on_ordered));
    assert_true(agenda_defer(&agenda, &works[1], on_ordered));
    agenda_deferred_begin(&agenda);
    while (agenda_deferred_next(&agenda)) {
        /* one more job ran */
    }
    assert_int_equal(order_count, 3);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 2);
    assert_int_equal(order[2], 1);
}

static struct loop_hook hooks[3];
static int hooked[3];

static void on_hook(struct loop_hook *hook)
{
    hooked[hook - hooks]++;
    if (hook == &hooks[0]) { /* removes itself and the next hook */
        agenda_hook_remove(&agenda, &hooks[0]);
        agenda_hook_remove(&agenda, &hooks[1]);
        agenda_hook_remove(&agenda, &hooks[1]);
    }
}

TEST(a_hook_may_remove_itself_and_the_one_after_it)
{
    for (size_t i = 0; i < 3; i++) {
        agenda_hook_add(&agenda, &hooks[i], on_hook);
    }
    agenda_hooks_begin(&agenda);
    assert_true(agenda_hooks_next(&agenda));
    assert_true(agenda_hooks_next(&agenda));
    assert_false(agenda_hooks_next(&agenda));
    assert_int_equal(hooked[0], 1);
    assert_int_equal(hooked[1], 0);
    assert_int_equal(hooked[2], 1);
}

TEST_PROGRAM_EACH(setup, teardown)
