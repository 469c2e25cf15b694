/*
 * The work of a loop and its order: the half of io/loop/loop.h that needs no operating system. loop.c drives it with
 * libuv. The simulator drives it in virtual time, one callback at a time, because it may stop a process between any
 * two.
 *
 * Timers, deferred work and hooks are each a part of a turn. `begin` fixes how far the part goes. `next` runs one of
 * its callbacks, and returns false when none is left. Work that callbacks add meanwhile waits for the next turn, so
 * that nothing starves the sockets.
 */
#ifndef SAGAD_IO_LOOP_AGENDA_H
#define SAGAD_IO_LOOP_AGENDA_H

#include "io/loop/loop.h"

struct agenda_due {
    int64_t boot_ms;
    uint64_t order; /* order of the starts: timers that are due together fire in it */
    struct timer *timer;
};

struct agenda {
    struct agenda_due *heap; /* heap[1] is due first; heap[0] is not used */
    size_t heap_count, heap_capacity;
    uint64_t order_last;
    struct list deferred, hooks;
    /* where the running part ends */
    uint64_t order_max;
    size_t deferred_left;
    struct list_link *hook_next; /* the hook after the one that runs, so that a hook may remove any */
};

void agenda_init(struct agenda *agenda); /* takes a zeroed struct */
void agenda_fini(struct agenda *agenda);

void agenda_timer_start(struct agenda *agenda, struct timer *timer, int64_t now_us, int64_t delay_ms,
                        void (*fire)(struct timer *timer));
void agenda_timers_nearer(struct agenda *agenda, int64_t ms); /* brings timers by the day nearer; not below 0 */
void agenda_timer_stop(struct agenda *agenda, struct timer *timer);
struct timer *agenda_first(const struct agenda *agenda); /* the timer that is due first; NULL: none runs */
int64_t agenda_due_ms(const struct agenda *agenda);      /* when the first timer is due; INT64_MAX: no timer runs */
void agenda_timers_begin(struct agenda *agenda);
bool agenda_timers_next(struct agenda *agenda, int64_t now_ms);

/* False: it was queued already. */
bool agenda_defer(struct agenda *agenda, struct deferred *deferred, void (*run)(struct deferred *deferred));
/* Puts the work before everything that is queued, and into the running round if there is one. */
bool agenda_defer_first(struct agenda *agenda, struct deferred *deferred, void (*run)(struct deferred *deferred));
void agenda_defer_cancel(struct agenda *agenda, struct deferred *deferred);
void agenda_deferred_begin(struct agenda *agenda);
bool agenda_deferred_next(struct agenda *agenda);

void agenda_hook_add(struct agenda *agenda, struct loop_hook *hook, void (*run)(struct loop_hook *hook));
void agenda_hook_remove(struct agenda *agenda, struct loop_hook *hook);
void agenda_hooks_begin(struct agenda *agenda);
bool agenda_hooks_next(struct agenda *agenda);

#endif
