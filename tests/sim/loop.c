/*
 * io/loop/loop.h in virtual time. A turn has the same phases as in the real loop: messages for us, due timers, deferred
 * work and hooks; then, right before it would block, deferred work and hooks once more. The clocks are read once a turn
 * and lazily.
 *
 * A turn may be stopped between any two callbacks, which freezes the process. It goes on later at the same place, with
 * the clocks as they had been read.
 */
#include "io/loop/loop.h"

#include <stdlib.h>

#include "base/arena.h"
#include "io/loop/agenda.h"
#include "io/loop/turn_clock.h"
#include "tests/sim/network.h"

enum phase {
    PHASE_MESSAGES,
    PHASE_TIMERS,
    PHASE_DEFERRED,
    PHASE_HOOKS,
    PHASE_LAST_DEFERRED,
    PHASE_LAST_HOOKS,
    PHASE_COUNT
};

struct sim_clock {
    struct turn_clock clock;
    const struct node *node; /* the owner of the clocks */
};

struct loop {
    struct node *node;
    struct sim_clock *clock; /* behind a pointer, so that asking for the time is const */
    struct agenda agenda;
    /* the turn */
    enum phase phase;
    bool begun; /* true once the extent of this phase is settled */
    size_t messages_left;
};

/* --- clocks --- */

static int64_t boot_us(const struct node *node)
{
    return world->now_us + node->boot_offset_us;
}

static void clocks_read(struct turn_clock *clock)
{
    const struct node *node = container_of(clock, struct sim_clock, clock)->node;

    clock->boot_us = boot_us(node);
    clock->wall_ms = WORLD_START_MS + world->now_us / 1000 + node->wall_offset_ms;
}

int64_t loop_wall_ms(const struct loop *loop)
{
    return turn_clock_wall_ms(&loop->clock->clock);
}

void loop_follow(struct loop *loop, int64_t wall_ms, int64_t boot_ms)
{
    followed_clock_set(&loop->clock->clock.followed, wall_ms, boot_ms);
}

void loop_step(struct loop *loop, int64_t wall_ms, int64_t boot_ms)
{
    int64_t before_ms = loop_wall_ms(loop);

    followed_clock_step(&loop->clock->clock.followed, wall_ms, boot_ms);
    agenda_timers_nearer(&loop->agenda, loop_wall_ms(loop) - before_ms);
}

int64_t loop_boot_ms(const struct loop *loop)
{
    return turn_clock_boot_us(&loop->clock->clock) / 1000;
}

int64_t loop_boot_us(const struct loop *loop)
{
    return turn_clock_boot_us(&loop->clock->clock);
}

void loop_clock_update(struct loop *loop)
{
    turn_clock_read(&loop->clock->clock);
}

int64_t loop_boot_ms_now(void)
{
    CHECK(node_current());
    return boot_us(node_current()) / 1000;
}

/* --- what there is to do --- */

/* Is the loop between two turns? Requests from outside at that time are looked at in the next turn. */
static bool is_between_turns(const struct loop *loop)
{
    return loop->phase == PHASE_COUNT;
}

void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer))
{
    agenda_timer_start(&loop->agenda, timer, loop_boot_us(loop), delay_ms, fire);
    if (is_between_turns(loop) && agenda_first(&loop->agenda) == timer) {
        node_wake(loop->node, timer->due_boot_ms * 1000 - boot_us(loop->node));
    }
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

void loop_defer(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    if (agenda_defer(&loop->agenda, deferred, run) && is_between_turns(loop)) {
        node_wake(loop->node, 0);
    }
}

void loop_defer_first(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    if (agenda_defer_first(&loop->agenda, deferred, run) && is_between_turns(loop)) {
        node_wake(loop->node, 0);
    }
}

void loop_defer_cancel(struct loop *loop, struct deferred *deferred)
{
    agenda_defer_cancel(&loop->agenda, deferred);
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *hook))
{
    agenda_hook_add(&loop->agenda, hook, run);
}

void loop_hook_remove(struct loop *loop, struct loop_hook *hook)
{
    agenda_hook_remove(&loop->agenda, hook);
}

/* --- a turn --- */

static bool message_runs(struct loop *loop)
{
    struct message *message;

    if (loop->messages_left == 0 || (message = node_next_message(loop->node)) == NULL) {
        return false;
    }
    loop->messages_left--;
    message->run(message);
    return true;
}

static bool timer_fires(struct loop *loop)
{
    return agenda_first(&loop->agenda) && agenda_timers_next(&loop->agenda, loop_boot_ms(loop));
}

static void phase_begin(struct loop *loop)
{
    switch (loop->phase) {
    case PHASE_MESSAGES:
        loop->messages_left = node_message_count(loop->node);
        break;
    case PHASE_TIMERS:
        agenda_timers_begin(&loop->agenda);
        break;
    case PHASE_DEFERRED:
    case PHASE_LAST_DEFERRED:
        agenda_deferred_begin(&loop->agenda);
        break;
    case PHASE_HOOKS:
    case PHASE_LAST_HOOKS:
        agenda_hooks_begin(&loop->agenda);
        break;
    case PHASE_COUNT:
        break;
    }
    loop->begun = true;
}

/* Runs the next callback of this phase. Returns false when there is none. */
static bool phase_runs(struct loop *loop)
{
    switch (loop->phase) {
    case PHASE_MESSAGES:
        return message_runs(loop);
    case PHASE_TIMERS:
        return timer_fires(loop);
    case PHASE_DEFERRED:
    case PHASE_LAST_DEFERRED:
        return agenda_deferred_next(&loop->agenda);
    case PHASE_HOOKS:
    case PHASE_LAST_HOOKS:
        return agenda_hooks_next(&loop->agenda);
    case PHASE_COUNT:
        break;
    }
    return false;
}

bool loop_turn(struct loop *loop, uint32_t *callbacks)
{
    if (loop->phase == PHASE_COUNT) {
        loop->phase = PHASE_MESSAGES;
        loop->begun = false;
    }
    while (loop->phase != PHASE_COUNT) {
        if (!loop->begun) {
            phase_begin(loop);
        }
        while (phase_runs(loop)) {
            if (--*callbacks == 0) {
                return false;
            }
        }
        loop->phase++;
        loop->begun = false;
    }
    turn_clock_age(&loop->clock->clock);
    return true;
}

bool loop_has_work(const struct loop *loop)
{
    return loop->agenda.heap_count > 0 || loop->agenda.deferred.count > 0 || loop->agenda.hooks.count > 0;
}

int64_t loop_rest_us(const struct loop *loop)
{
    int64_t due_ms = agenda_due_ms(&loop->agenda), rest_us;

    if (!list_empty(&loop->agenda.deferred)) {
        return 0;
    }
    if (due_ms > INT64_MAX / 1000) {
        return INT64_MAX;
    }
    rest_us = due_ms * 1000 - boot_us(loop->node);
    return rest_us > 0 ? rest_us : 0;
}

/* --- the loop itself --- */

struct loop *loop_new(void)
{
    struct loop *loop = memory_alloc(sizeof(*loop));

    loop->node = node_current();
    CHECK(loop->node);
    loop->clock = memory_alloc(sizeof(*loop->clock));
    loop->clock->clock.read = clocks_read;
    loop->clock->node = loop->node;
    agenda_init(&loop->agenda);
    loop->phase = PHASE_COUNT;
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop) {
        agenda_fini(&loop->agenda);
        free(loop->clock);
        free(loop);
    }
}
