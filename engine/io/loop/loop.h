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
void loop_run(struct loop *loop);  /* until loop_stop() */
void loop_stop(struct loop *loop); /* from the loop's thread */
void *loop_uv(struct loop *loop);  /* the uv_loop_t, for other files of io/ and the HTTP server */

/* One reading a loop turn; taken again after blocking work by loop_clock_update(). */
int64_t loop_wall_ms(const struct loop *loop); /* UTC: this machine's, which may jump, until loop_follow() */
/*
 * From now on UTC is what somebody else's clock says: it showed `wall_ms` at the instant `boot_ms` of ours, and goes on
 * with CLOCK_BOOTTIME from there. Said again it is corrected, without a step: see base/followed_clock.h.
 */
void loop_follow(struct loop *loop, int64_t wall_ms, int64_t boot_ms);
int64_t loop_boot_ms(const struct loop *loop); /* CLOCK_BOOTTIME: counts suspend; leases and timers use it */
int64_t loop_boot_us(const struct loop *loop);
void loop_clock_update(struct loop *loop);
int64_t loop_boot_ms_now(void); /* reads the clock: for the check right before a send */

/* A timer lies in its owner. Zeroed is stopped. 100,000 of them cost one heap. */
struct timer {
    int64_t due_boot_ms;
    size_t heap_index; /* 0: stopped */
    void (*fire)(struct timer *timer);
};
void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms,
                 void (*fire)(struct timer *timer)); /* restarts if running */
void timer_stop(struct loop *loop, struct timer *timer);
bool timer_running(const struct timer *timer);

/* Deferred work runs once, later in this turn of the loop, in order. */
struct deferred {
    struct list_link link;
    void (*run)(struct deferred *deferred);
};
void loop_defer(struct loop *loop, struct deferred *deferred,
                void (*run)(struct deferred *deferred)); /* a no-op while queued */
/* Next, before all that is deferred: for what hands work to others (a socket), so that they are at it meanwhile. */
void loop_defer_first(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred));
void loop_defer_cancel(struct loop *loop, struct deferred *deferred);

/* Runs every turn of the loop right before it blocks and right after it woke: where batches leave. */
struct loop_hook {
    struct list_link link;
    void (*run)(struct loop_hook *hook);
};
void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *hook));
void loop_hook_remove(struct loop *loop, struct loop_hook *hook);

/* Signals, as callbacks on the loop. */
void loop_on_signal(struct loop *loop, int signal_number, void (*run)(void *context), void *context);

#endif
