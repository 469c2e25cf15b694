/* The loop: timers run in order and never early, deferred work runs in its turn, hooks run around each sleep, and jobs
 * run on threads. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include <signal.h>
#include <unistd.h>

#include "base/check.h"
#include "io/loop/loop.h"
#include "io/loop/worker.h"

enum { MANY = 20000 };

static struct loop *loop;

struct tick {
    struct timer timer;
    int64_t started_ms, delay_ms;
    int fired;
};

struct task {
    struct deferred deferred;
    int number;
};

static int order[16], order_count;

static int setup(void **state)
{
    (void)state;
    loop = loop_new();
    order_count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void on_stop(struct timer *timer)
{
    (void)timer;
    loop_stop(loop);
}

static void run_for(int64_t ms)
{
    struct timer timer = {0};

    timer_start(loop, &timer, ms, on_stop);
    loop_run(loop);
}

/* --- timers --- */

static void on_number(struct timer *timer)
{
    struct tick *tick = container_of(timer, struct tick, timer);

    assert_true(loop_boot_ms(loop) >= tick->started_ms + tick->delay_ms);
    assert_true(loop_boot_ms_now() >= tick->started_ms + tick->delay_ms);
    tick->fired++;
    order[order_count++] = (int)tick->delay_ms;
}

static void tick_start(struct tick *tick, int64_t delay_ms)
{
    tick->started_ms = loop_boot_ms_now();
    tick->delay_ms = delay_ms;
    loop_clock_update(loop);
    timer_start(loop, &tick->timer, delay_ms, on_number);
}

TEST(timers_fire_in_the_order_of_their_dues_and_never_early)
{
    static const int delays[] = {30, 5, 50, 0, 20, 1, 10};
    static const int sorted[] = {0, 1, 5, 10, 20, 30, 50};
    struct tick ticks[COUNT_OF(delays)] = {0};

    for (size_t i = 0; i < COUNT_OF(delays); i++) {
        tick_start(&ticks[i], delays[i]);
    }
    run_for(80);
    assert_int_equal(order_count, COUNT_OF(delays));
    assert_memory_equal(order, sorted, sizeof(sorted));
}

TEST(a_restarted_timer_fires_once_at_its_new_time)
{
    struct tick tick = {0};

    tick_start(&tick, 5);
    assert_true(timer_running(&tick.timer));
    tick_start(&tick, 60000);
    run_for(15);
    assert_int_equal(tick.fired, 0);
    tick_start(&tick, 20);
    for (int i = 0; i < 1000 && !tick.fired; i++) {
        run_for(20);
    }
    run_for(40);
    assert_int_equal(tick.fired, 1);
    assert_false(timer_running(&tick.timer));
}

TEST(a_stopped_timer_does_not_fire)
{
    struct tick ticks[3] = {0};

    for (int i = 0; i < 3; i++) {
        tick_start(&ticks[i], 5 * i);
    }
    timer_stop(loop, &ticks[1].timer);
    timer_stop(loop, &ticks[1].timer); /* stopping a stopped timer does nothing */
    run_for(30);
    assert_int_equal(ticks[0].fired + ticks[2].fired, 2);
    assert_int_equal(ticks[1].fired, 0);
}

static struct timer victim;

static void on_kill(struct timer *timer)
{
    (void)timer;
    timer_stop(loop, &victim);
}

static void on_never(struct timer *timer)
{
    (void)timer;
    fail_msg("a timer fired that was stopped by one of the same moment");
}

TEST(a_timer_may_stop_another_that_is_due_at_the_same_time)
{
    struct timer killer = {0};

    memset(&victim, 0, sizeof(victim));
    timer_start(loop, &killer, 3, on_kill);
    timer_start(loop, &victim, 3, on_never);
    run_for(15);
}

static int spins, polls;

static void on_spin(struct timer *timer)
{
    spins++;
    timer_start(loop, timer, 0, on_spin);
}

static void on_readable_check(struct loop_hook *hook)
{
    (void)hook;
    polls++;
}

TEST(a_timer_that_starts_itself_again_does_not_starve_the_loop)
{
    struct timer timer = {0};
    struct loop_hook hook = {{NULL, NULL}, NULL};

    spins = polls = 0;
    loop_hook_add(loop, &hook, on_readable_check);
    timer_start(loop, &timer, 0, on_spin);
    run_for(20);
    assert_true(spins > 1);
    assert_true(polls >= spins); /* at most one firing in each turn */
    timer_stop(loop, &timer);
    loop_hook_remove(loop, &hook);
}

static int64_t last_due_ms;
static int many_fired;

static void on_many(struct timer *timer)
{
    assert_true(timer->due_boot_ms >= last_due_ms);
    last_due_ms = timer->due_boot_ms;
    many_fired++;
}

TEST(many_timers_started_moved_and_stopped_stay_in_order)
{
    struct timer *timers = calloc(MANY, sizeof(*timers));
    uint32_t random = 12345;
    int running = 0;

    assert_non_null(timers);
    last_due_ms = many_fired = 0;
    for (int i = 0; i < 4 * MANY; i++) {
        struct timer *timer;

        random = random * 1664525 + 1013904223;
        timer = &timers[(random >> 8) % MANY];
        if (random % 5 == 0) {
            timer_stop(loop, timer);
        } else {
            timer_start(loop, timer, (int64_t)(random >> 4) % 200, on_many);
        }
    }
    for (int i = 0; i < MANY; i++) {
        running += timer_running(&timers[i]);
    }
    run_for(400);
    assert_int_equal(many_fired, running);
    free(timers);
}

TEST(far_and_negative_delays_are_taken_as_they_make_sense)
{
    struct timer far = {0};
    struct tick past = {0};

    timer_start(loop, &far, INT64_MAX, on_never);
    past.started_ms = 0;
    past.delay_ms = -5;
    timer_start(loop, &past.timer, -5, on_number);
    run_for(5);
    assert_int_equal(past.fired, 1);
    timer_stop(loop, &far);
}

/* --- clocks --- */

static int64_t slept_from_ms, woken_late_ms;

static void on_woken(struct timer *timer)
{
    (void)timer;
    assert_true(loop_boot_ms(loop) >= slept_from_ms + 40);
    woken_late_ms = loop_boot_ms_now() - loop_boot_ms(loop);
    loop_stop(loop);
}

TEST(a_callback_sees_the_time_after_the_sleep)
{
    struct timer timer = {0};
    int64_t before_ms;

    woken_late_ms = INT64_MAX;
    for (int i = 0; i < 5 && woken_late_ms >= 30; i++) { /* another process may have had the processor in between */
        loop_clock_update(loop);
        slept_from_ms = loop_boot_ms(loop);
        timer_start(loop, &timer, 40, on_woken);
        loop_run(loop);
    }
    assert_true(woken_late_ms < 30);
    before_ms = loop_boot_ms(loop);
    usleep(3000);
    assert_int_equal(loop_boot_ms(loop), before_ms); /* one reading in each turn */
    loop_clock_update(loop);
    assert_true(loop_boot_ms(loop) > before_ms);
    assert_true(loop_wall_ms(loop) > INT64_C(1600000000000));
}

/* --- deferred work --- */

static void on_task(struct deferred *deferred)
{
    order[order_count++] = container_of(deferred, struct task, deferred)->number;
}

TEST(deferred_work_runs_once_and_in_order_and_not_inside_the_call)
{
    struct task tasks[3] = {{.number = 1}, {.number = 2}, {.number = 3}};

    loop_defer(loop, &tasks[0].deferred, on_task);
    loop_defer(loop, &tasks[1].deferred, on_task);
    loop_defer(loop, &tasks[0].deferred, on_task); /* already queued */
    loop_defer(loop, &tasks[2].deferred, on_task);
    loop_defer_cancel(loop, &tasks[1].deferred);
    loop_defer_cancel(loop, &tasks[1].deferred);
    assert_int_equal(order_count, 0);
    run_for(5);
    assert_int_equal(order_count, 2);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 3);
}

static int again;

static void on_again(struct deferred *deferred)
{
    if (++again < 1000) {
        loop_defer(loop, deferred, on_again);
    } else {
        loop_stop(loop);
    }
}

TEST(deferred_work_that_defers_itself_never_waits_for_an_event)
{
    struct deferred deferred = {{NULL, NULL}, NULL};
    struct timer late = {0};

    again = 0;
    timer_start(loop, &late, 10 * 1000, on_never); /* the only possible event */
    loop_defer(loop, &deferred, on_again);
    loop_run(loop);
    assert_int_equal(again, 1000);
    timer_stop(loop, &late);
}

static void on_endless(struct deferred *deferred)
{
    loop_defer(loop, deferred, on_endless);
}

TEST(deferred_work_does_not_starve_timers)
{
    struct deferred deferred = {{NULL, NULL}, NULL};

    loop_defer(loop, &deferred, on_endless);
    run_for(10); /* ends */
    loop_defer_cancel(loop, &deferred);
}

/* --- hooks --- */

struct counting_hook {
    struct loop_hook hook;
    struct counting_hook *removes;
    int runs;
};

static void on_hook(struct loop_hook *hook)
{
    struct counting_hook *counting = container_of(hook, struct counting_hook, hook);

    counting->runs++;
    if (counting->removes) {
        loop_hook_remove(loop, &counting->removes->hook);
        counting->removes = NULL;
    }
}

TEST(hooks_run_around_each_sleep_and_may_remove_each_other)
{
    struct counting_hook a = {.runs = 0}, b = {.runs = 0}, c = {.runs = 0};

    a.removes = &b; /* the next hook */
    c.removes = &c; /* itself */
    loop_hook_add(loop, &a.hook, on_hook);
    loop_hook_add(loop, &b.hook, on_hook);
    loop_hook_add(loop, &c.hook, on_hook);
    run_for(5);
    assert_true(a.runs >= 2);
    assert_int_equal(b.runs, 0);
    assert_int_equal(c.runs, 1);
    loop_hook_remove(loop, &a.hook);
    loop_hook_remove(loop, &a.hook);
}

/* --- signals and jobs --- */

static int signals;

static void on_user_signal(void *context)
{
    (*(int *)context)++;
    loop_stop(loop);
}

TEST(a_signal_is_a_callback_on_the_loop)
{
    loop_on_signal(loop, SIGUSR1, on_user_signal, &signals);
    raise(SIGUSR1);
    assert_int_equal(signals, 0);
    loop_run(loop);
    assert_int_equal(signals, 1);
}

struct sum {
    struct worker_job job;
    int worked, ended;
};

static void on_sum(struct worker_job *job)
{
    container_of(job, struct sum, job)->worked++;
}

static void on_sum_done(struct worker_job *job)
{
    container_of(job, struct sum, job)->ended++;
}

static bool all_ended(const struct sum *sums, int count)
{
    for (int i = 0; i < count; i++) {
        if (!sums[i].ended) {
            return false;
        }
    }
    return true;
}

TEST(a_job_works_on_a_thread_and_ends_once_on_the_loop)
{
    struct sum sums[50] = {0};

    for (int i = 0; i < 50; i++) {
        sums[i].job.work = on_sum;
        sums[i].job.done = on_sum_done;
        worker_submit(loop, &sums[i].job);
    }
    for (int i = 0; i < 600 && !all_ended(sums, 50); i++) {
        run_for(50);
    }
    run_for(50); /* long enough for one of them to end again */
    for (int i = 0; i < 50; i++) {
        assert_int_equal(sums[i].worked, 1);
        assert_int_equal(sums[i].ended, 1);
    }
}

static struct sum slow;

static void on_slow(struct worker_job *job)
{
    usleep(50000);
    on_sum(job);
}

TEST(freeing_the_loop_waits_for_jobs_on_threads)
{
    struct loop *other = loop_new();

    slow.job.work = on_slow;
    slow.job.done = on_sum_done;
    worker_submit(other, &slow.job);
    loop_free(other);
    assert_int_equal(slow.ended, 1);
    loop_free(NULL);
}

TEST(the_time_of_day_is_that_of_the_clock_that_is_followed)
{
    loop_follow(loop, 5000000, loop_boot_ms(loop) - 40); /* the time that the other clock showed 40 ms ago */
    assert_in_range(loop_wall_ms(loop), 5000040, 5000040 + 5000);
}

TEST(a_step_of_the_day_is_taken_at_once_and_never_back)
{
    loop_follow(loop, 5000000, loop_boot_ms(loop));
    loop_step(loop, 9000000, loop_boot_ms(loop));
    assert_in_range(loop_wall_ms(loop), 9000000, 9000000 + 5000);
    loop_step(loop, 7000000, loop_boot_ms(loop));
    assert_in_range(loop_wall_ms(loop), 9000000, 9000000 + 5000);
}

TEST_PROGRAM_EACH(setup, teardown)
