/*
 * A loop that stands in for the real one: a test sets its clock, fires its timer and runs what was deferred, each by
 * itself. There is one timer and one deferred function at a time. Link with --wrap of each function below.
 */
#ifndef SAGAD_TESTS_STAND_IN_LOOP_H
#define SAGAD_TESTS_STAND_IN_LOOP_H

#include "io/loop/loop.h"
#include "tests/lib/test.h"

static int64_t now_ms;
static struct timer *timer; /* the running timer */
static int64_t timer_at_ms;
static struct deferred *deferred;

int64_t __wrap_loop_wall_ms(const struct loop *loop);
int64_t __wrap_loop_boot_ms(const struct loop *loop);
void __wrap_timer_start_by_day(struct loop *loop, struct timer *started, int64_t delay_ms,
                               void (*fire)(struct timer *));
void __wrap_timer_stop(struct loop *loop, struct timer *stopped);
void __wrap_loop_defer(struct loop *loop, struct deferred *later, void (*run)(struct deferred *));
void __wrap_loop_defer_cancel(struct loop *loop, struct deferred *later);

int64_t __wrap_loop_wall_ms(const struct loop *loop)
{
    (void)loop;
    return now_ms;
}

int64_t __wrap_loop_boot_ms(const struct loop *loop)
{
    (void)loop;
    return now_ms;
}

void __wrap_timer_start_by_day(struct loop *loop, struct timer *started, int64_t delay_ms, void (*fire)(struct timer *))
{
    (void)loop;
    timer = started;
    timer->fire = fire;
    timer_at_ms = now_ms + delay_ms;
}

void __wrap_timer_stop(struct loop *loop, struct timer *stopped)
{
    (void)loop;
    (void)stopped;
    timer = NULL;
}

void __wrap_loop_defer(struct loop *loop, struct deferred *later, void (*run)(struct deferred *))
{
    (void)loop;
    assert_null(deferred); /* a batch ends once */
    deferred = later;
    deferred->run = run;
}

void __wrap_loop_defer_cancel(struct loop *loop, struct deferred *later)
{
    (void)loop;
    (void)later;
    deferred = NULL;
}

#endif
