/*
 * The loop, its clocks, timers and deferred work. The only layer that includes uv.h; everything above sees this.
 *
 * All callbacks run on the loop's thread, and never inside the call that asked for them.
 */
#ifndef SAGAD_IO_LOOP_LOOP_H
#define SAGAD_IO_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/list.h"

struct loop;

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* after loop_run() returned; accepts NULL */
void loop_run(struct loop *loop);  /* returns after loop_stop() */
void loop_stop(struct loop *loop); /* is called on the loop's thread */
void *loop_uv(struct loop *loop);  /* the uv_loop_t, for other files of io/ and the HTTP server */

/* The clocks are read once a turn of the loop; call loop_clock_update() after blocking work to read them again. */
int64_t loop_wall_ms(const struct loop *loop); /* UTC; until loop_follow() this machine's, which may jump */
/*
 * From now on UTC follows another machine's clock, which showed `wall_ms` when ours showed `boot_ms`. It goes on with
 * CLOCK_BOOTTIME from there. Each further call corrects it without a step: see base/followed_clock.h.
 */
void loop_follow(struct loop *loop, int64_t wall_ms, int64_t boot_ms);
/*
 * That clock was moved ahead on purpose (`sagad dev --clock virtual`): UTC is `wall_ms` at once, and timers by the day
 * are due sooner by as much. All other timers, such as those of leases and of calls, keep their time.
 */
void loop_step(struct loop *loop, int64_t wall_ms, int64_t boot_ms);
int64_t loop_boot_ms(const struct loop *loop); /* CLOCK_BOOTTIME: counts suspend; leases and timers use it */
int64_t loop_boot_us(const struct loop *loop);
void loop_clock_update(struct loop *loop);
int64_t loop_boot_ms_now(void); /* reads the clock: for the check right before a send */

/* A timer lies in its owner. A zeroed one is stopped. 100,000 timers cost one heap. */
struct timer {
    int64_t due_boot_ms;
    size_t heap_index; /* 0: stopped */
    bool by_day;       /* it waits for an instant of UTC: loop_step() brings it nearer */
    void (*fire)(struct timer *timer);
};
void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms,
                 void (*fire)(struct timer *timer)); /* restarts if running */
/* The same for an instant of UTC that is so far away. It may fire early, after a step of the clock: look again then. */
void timer_start_by_day(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer));
void timer_stop(struct loop *loop, struct timer *timer);
bool timer_running(const struct timer *timer);

/* Deferred work runs once, later in this turn of the loop, in order. */
struct deferred {
    struct list_link link;
    void (*run)(struct deferred *deferred);
};
void loop_defer(struct loop *loop, struct deferred *deferred,
                void (*run)(struct deferred *deferred)); /* a no-op while queued */
/* Runs the work before all other deferred work. Use it to hand work to others (a socket), so that they start early. */
void loop_defer_first(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred));
void loop_defer_cancel(struct loop *loop, struct deferred *deferred);

/* A hook runs in every turn of the loop, right before it blocks and right after it wakes. Hooks send batches. */
struct loop_hook {
    struct list_link link;
    void (*run)(struct loop_hook *hook);
};
void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *hook));
void loop_hook_remove(struct loop *loop, struct loop_hook *hook);

/* Calls `run` on the loop for a signal. */
void loop_on_signal(struct loop *loop, int signal_number, void (*run)(void *context), void *context);

#endif
