/*
 * The loop: libuv below, our own timers and deferred work (agenda.h) and clocks (turn_clock.h) above.
 *
 * A turn is what libuv calls an iteration. In order: uv's timer (it only wakes us), prepare (deferred work, hooks),
 * block for sockets and their callbacks, check (due timers, deferred work, hooks). While deferred work is left after
 * prepare an idle handle keeps the loop from blocking, so work that defers work gets its turn and sockets are still
 * looked at.
 *
 * The clocks are read once a turn and lazily: prepare marks them old right before the loop blocks, and whoever asks
 * first after that reads them. A callback therefore never sees the time from before the loop slept.
 */
#include "io/loop/loop.h"

#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/arena.h"
#include "io/loop/agenda.h"
#include "io/loop/turn_clock.h"

/* uv's timer counts CLOCK_MONOTONIC, which stands still while the machine is suspended, and ours must not. A short
 * sleep bounds how late a timer is after that. */
enum { SLEEP_MS_MAX = 1000 };

struct signal_watch {
    uv_signal_t handle;
    void (*run)(void *context);
    void *context;
};

struct loop {
    uv_loop_t uv;
    uv_timer_t alarm;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    int handles_open;         /* how many of the four handles above are open */
    struct turn_clock *clock; /* behind a pointer, so that asking for the time is const */
    struct agenda agenda;
    int64_t alarm_boot_ms; /* the time that `alarm` was set for; INT64_MAX when it is not set */
};

/* --- clocks --- */

static int64_t clock_us(clockid_t id)
{
    struct timespec now;

    CHECK(clock_gettime(id, &now) == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void clocks_read(struct turn_clock *clock)
{
    clock->boot_us = clock_us(CLOCK_BOOTTIME);
    clock->wall_ms = clock_us(CLOCK_REALTIME) / 1000;
}

int64_t loop_wall_ms(const struct loop *loop)
{
    return turn_clock_wall_ms(loop->clock);
}

void loop_follow(struct loop *loop, int64_t wall_ms, int64_t boot_ms)
{
    followed_clock_set(&loop->clock->followed, wall_ms, boot_ms);
}

void loop_step(struct loop *loop, int64_t wall_ms, int64_t boot_ms)
{
    int64_t before_ms = loop_wall_ms(loop);

    followed_clock_step(&loop->clock->followed, wall_ms, boot_ms);
    agenda_timers_nearer(&loop->agenda, loop_wall_ms(loop) - before_ms);
}

int64_t loop_boot_ms(const struct loop *loop)
{
    return turn_clock_boot_us(loop->clock) / 1000;
}

int64_t loop_boot_us(const struct loop *loop)
{
    return turn_clock_boot_us(loop->clock);
}

void loop_clock_update(struct loop *loop)
{
    turn_clock_read(loop->clock);
}

int64_t loop_boot_ms_now(void)
{
    return clock_us(CLOCK_BOOTTIME) / 1000;
}

/* --- timers --- */

void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer))
{
    agenda_timer_start(&loop->agenda, timer, loop_boot_us(loop), delay_ms, fire);
}

void timer_start_by_day(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer))
{
    timer_start(loop, timer, delay_ms, fire);
    timer->by_day = true;
}

void timer_stop(struct loop *loop, struct timer *timer)
{
    agenda_timer_stop(&loop->agenda, timer);
}

static void timers_run(struct loop *loop)
{
    int64_t now_ms;

    if (agenda_due_ms(&loop->agenda) == INT64_MAX) {
        return;
    }
    now_ms = loop_boot_ms(loop);
    agenda_timers_begin(&loop->agenda);
    while (agenda_timers_next(&loop->agenda, now_ms)) {
        /* one more timer ran */
    }
}

static void on_alarm(uv_timer_t *alarm)
{
    struct loop *loop = alarm->data;

    loop->alarm_boot_ms = INT64_MAX; /* the timers run in check */
}

static void alarm_set(struct loop *loop)
{
    int64_t due_ms = agenda_due_ms(&loop->agenda), delay_ms;

    if (due_ms == INT64_MAX) {
        if (loop->alarm_boot_ms != INT64_MAX) {
            uv_timer_stop(&loop->alarm);
            loop->alarm_boot_ms = INT64_MAX;
        }
        return;
    }
    if (loop->alarm_boot_ms != INT64_MAX && due_ms >= loop->alarm_boot_ms) {
        return; /* the alarm rings early enough, at worst once too often */
    }
    uv_update_time(&loop->uv);
    loop_clock_update(loop);
    delay_ms = due_ms - loop_boot_ms(loop);
    delay_ms = delay_ms < 0 ? 0 : delay_ms > SLEEP_MS_MAX ? SLEEP_MS_MAX : delay_ms;
    loop->alarm_boot_ms = loop_boot_ms(loop) + delay_ms;
    CHECK(uv_timer_start(&loop->alarm, on_alarm, (uint64_t)delay_ms, 0) == 0);
}

/* --- deferred work and hooks --- */

void loop_defer(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    (void)agenda_defer(&loop->agenda, deferred, run);
}

void loop_defer_first(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    (void)agenda_defer_first(&loop->agenda, deferred, run);
}

void loop_defer_cancel(struct loop *loop, struct deferred *deferred)
{
    agenda_defer_cancel(&loop->agenda, deferred);
}

static void deferred_run(struct loop *loop)
{
    agenda_deferred_begin(&loop->agenda);
    while (agenda_deferred_next(&loop->agenda)) {
        /* one more job ran */
    }
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *hook))
{
    agenda_hook_add(&loop->agenda, hook, run);
}

void loop_hook_remove(struct loop *loop, struct loop_hook *hook)
{
    agenda_hook_remove(&loop->agenda, hook);
}

static void hooks_run(struct loop *loop)
{
    agenda_hooks_begin(&loop->agenda);
    while (agenda_hooks_next(&loop->agenda)) {
        /* one more hook ran */
    }
}

/* --- a turn --- */

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* the handle only has to be active */
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;

    deferred_run(loop);
    hooks_run(loop);
    alarm_set(loop);
    if (list_empty(&loop->agenda.deferred)) {
        uv_idle_stop(&loop->idle);
    } else {
        CHECK(uv_idle_start(&loop->idle, on_idle) == 0);
    }
    turn_clock_age(loop->clock);
}

static void on_check(uv_check_t *check)
{
    struct loop *loop = check->data;

    timers_run(loop);
    deferred_run(loop);
    hooks_run(loop);
}

/* --- the loop itself --- */

struct loop *loop_new(void)
{
    struct loop *loop = memory_alloc(sizeof(*loop));

    loop->clock = memory_alloc(sizeof(*loop->clock));
    loop->clock->read = clocks_read;
    agenda_init(&loop->agenda);
    loop->alarm_boot_ms = INT64_MAX;
    CHECK(uv_loop_init(&loop->uv) == 0);
    CHECK(uv_timer_init(&loop->uv, &loop->alarm) == 0);
    CHECK(uv_prepare_init(&loop->uv, &loop->prepare) == 0);
    CHECK(uv_check_init(&loop->uv, &loop->check) == 0);
    CHECK(uv_idle_init(&loop->uv, &loop->idle) == 0);
    loop->alarm.data = loop->prepare.data = loop->check.data = loop->idle.data = loop;
    CHECK(uv_prepare_start(&loop->prepare, on_prepare) == 0);
    CHECK(uv_check_start(&loop->check, on_check) == 0);
    loop->handles_open = 4;
    return loop;
}

void loop_run(struct loop *loop)
{
    turn_clock_age(loop->clock);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* the result says whether handles are left, and ours always are */
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

static void on_own_closed(uv_handle_t *handle)
{
    struct loop *loop = handle->data;

    loop->handles_open--;
}

static void on_signal_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_signal(uv_signal_t *handle, int signal_number)
{
    struct signal_watch *watch = handle->data;

    (void)signal_number;
    watch->run(watch->context);
}

static void close_signal(uv_handle_t *handle, void *context)
{
    (void)context;
    if (handle->type == UV_SIGNAL && !uv_is_closing(handle) && ((uv_signal_t *)handle)->signal_cb == on_signal) {
        uv_close(handle, on_signal_closed);
    }
}

static void count_open(uv_handle_t *handle, void *context)
{
    *(int *)context += !uv_is_closing(handle);
}

void loop_free(struct loop *loop)
{
    int foreign_open = 0;

    if (!loop) {
        return;
    }
    uv_walk(&loop->uv, close_signal, NULL);
    uv_close((uv_handle_t *)&loop->alarm, on_own_closed);
    uv_close((uv_handle_t *)&loop->prepare, on_own_closed);
    uv_close((uv_handle_t *)&loop->check, on_own_closed);
    uv_close((uv_handle_t *)&loop->idle, on_own_closed);
    uv_walk(&loop->uv, count_open, &foreign_open);
    CHECK(foreign_open == 0); /* a handle was not closed before its loop; waiting for it would take for ever */
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) {
        /* runs close callbacks and jobs that are still on a thread; a late loop_stop() makes one more run */
    }
    CHECK(loop->handles_open == 0);
    CHECK(uv_loop_close(&loop->uv) == 0);
    agenda_fini(&loop->agenda);
    free(loop->clock);
    free(loop);
}

void loop_on_signal(struct loop *loop, int signal_number, void (*run)(void *context), void *context)
{
    struct signal_watch *watch = memory_alloc(sizeof(*watch));

    watch->run = run;
    watch->context = context;
    watch->handle.data = watch;
    CHECK(uv_signal_init(&loop->uv, &watch->handle) == 0);
    CHECK(uv_signal_start(&watch->handle, on_signal, signal_number) == 0);
}
