/*
 * io/loop.h in virtual time. A turn is what it is in the real loop: what came for us, due timers, deferred work and hooks, then, right
 * before it would block, deferred work and hooks once more. The clocks are read once a turn and lazily.
 *
 * A turn may be stopped between any two callbacks (the process is frozen there) and goes on later where it was, with the
 * clocks as they had been read.
 */
#include "io/loop.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/followed_clock.h"
#include "tests/sim/network.h"

enum phase { PHASE_MESSAGES, PHASE_TIMERS, PHASE_DEFERRED, PHASE_HOOKS, PHASE_LAST_DEFERRED, PHASE_LAST_HOOKS, PHASE_COUNT };

struct clocks {
    bool fresh;
    int64_t boot_us, wall_ms;
    int64_t shown_ms; /* of a clock that is followed: the last that was told */
};

struct due {
    int64_t boot_ms;
    uint64_t order; /* of the start: equal dues fire first come, first served */
    struct timer *timer;
};

struct loop {
    struct node *node;
    struct clocks *clocks; /* behind a pointer: asking for the time is const */
    struct due *heap;      /* heap[1] is due first; heap[0] is not used */
    size_t heap_count, heap_capacity;
    uint64_t order_last;
    struct list deferred, hooks;
    struct list_link *hook_next; /* the hook after the one that runs, so that a hook may remove any */
    /* the turn */
    enum phase phase;
    bool begun;            /* of this phase: what follows is set */
    size_t left;
    uint64_t order_max;
    struct followed_clock followed; /* where UTC comes from, once it is set */
};

/* --- clocks --- */

static int64_t boot_us(const struct node *node)
{
    return world->now_us + node->boot_offset_us;
}

static void clocks_read(const struct loop *loop)
{
    loop->clocks->boot_us = boot_us(loop->node);
    loop->clocks->wall_ms = WORLD_START_MS + world->now_us / 1000 + loop->node->wall_offset_ms;
    loop->clocks->fresh = true;
}

static const struct clocks *clocks_of(const struct loop *loop)
{
    if (!loop->clocks->fresh) {
        clocks_read(loop);
    }
    return loop->clocks;
}

int64_t loop_wall_ms(const struct loop *loop)
{
    struct clocks *clocks = loop->clocks;
    int64_t wall_ms = clocks_of(loop)->wall_ms;

    if (!loop->followed.is_set) {
        return wall_ms;
    }
    wall_ms = followed_clock_at(&loop->followed, clocks->boot_us / 1000);
    clocks->shown_ms = wall_ms > clocks->shown_ms ? wall_ms : clocks->shown_ms;
    return clocks->shown_ms;
}

void loop_follow(struct loop *loop, int64_t wall_ms, int64_t boot_ms)
{
    followed_clock_set(&loop->followed, wall_ms, boot_ms);
}

int64_t loop_boot_ms(const struct loop *loop)
{
    return clocks_of(loop)->boot_us / 1000;
}

int64_t loop_boot_us(const struct loop *loop)
{
    return clocks_of(loop)->boot_us;
}

void loop_clock_update(struct loop *loop)
{
    clocks_read(loop);
}

int64_t loop_boot_ms_now(void)
{
    CHECK(node_current());
    return boot_us(node_current()) / 1000;
}

/* --- timers --- */

static bool due_before(const struct due *a, const struct due *b)
{
    return a->boot_ms != b->boot_ms ? a->boot_ms < b->boot_ms : a->order < b->order;
}

static void heap_set(struct loop *loop, size_t i, struct due due)
{
    loop->heap[i] = due;
    due.timer->heap_index = i;
}

static void heap_up(struct loop *loop, size_t i, struct due due)
{
    while (i > 1 && due_before(&due, &loop->heap[i / 2])) {
        heap_set(loop, i, loop->heap[i / 2]);
        i /= 2;
    }
    heap_set(loop, i, due);
}

static void heap_down(struct loop *loop, size_t i, struct due due)
{
    for (size_t child = 2 * i; child <= loop->heap_count; child = 2 * i) {
        if (child < loop->heap_count && due_before(&loop->heap[child + 1], &loop->heap[child])) {
            child++;
        }
        if (!due_before(&loop->heap[child], &due)) {
            break;
        }
        heap_set(loop, i, loop->heap[child]);
        i = child;
    }
    heap_set(loop, i, due);
}

/* What somebody outside asked for between two turns is looked at in the next one. */
static void work_came(struct loop *loop)
{
    node_wake(loop->node, 0);
}

void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer))
{
    int64_t now_ms = (loop_boot_us(loop) + 999) / 1000; /* a part of the running millisecond is not counted as a whole one */

    CHECK(fire);
    timer_stop(loop, timer);
    if (loop->heap_count + 2 > loop->heap_capacity) {
        loop->heap_capacity = loop->heap_capacity > 0 ? 2 * loop->heap_capacity : 64;
        loop->heap = memory_grow(loop->heap, loop->heap_capacity * sizeof(*loop->heap));
    }
    timer->fire = fire;
    if (delay_ms < 0) {
        delay_ms = 0;
    }
    if (__builtin_add_overflow(now_ms, delay_ms, &timer->due_boot_ms)) {
        timer->due_boot_ms = INT64_MAX;
    }
    loop->heap_count++;
    heap_up(loop, loop->heap_count, (struct due){.boot_ms = timer->due_boot_ms, .order = ++loop->order_last, .timer = timer});
    if (loop->phase == PHASE_COUNT && loop->heap[1].timer == timer) {
        node_wake(loop->node, timer->due_boot_ms * 1000 - boot_us(loop->node));
    }
}

void timer_stop(struct loop *loop, struct timer *timer)
{
    size_t i = timer->heap_index;
    struct due last;

    if (i == 0) {
        return;
    }
    CHECK(i <= loop->heap_count && loop->heap[i].timer == timer);
    timer->heap_index = 0;
    last = loop->heap[loop->heap_count--];
    if (i <= loop->heap_count) {
        if (i > 1 && due_before(&last, &loop->heap[i / 2])) {
            heap_up(loop, i, last);
        } else {
            heap_down(loop, i, last);
        }
    }
}

bool timer_running(const struct timer *timer)
{
    return timer->heap_index != 0;
}

/* Only timers that were started before: one that starts itself again with no delay waits for the next turn. */
static bool timer_fires(struct loop *loop)
{
    struct timer *timer;

    if (loop->heap_count == 0 || loop->heap[1].boot_ms > loop_boot_ms(loop) || loop->heap[1].order > loop->order_max) {
        return false;
    }
    timer = loop->heap[1].timer;
    timer_stop(loop, timer);
    timer->fire(timer);
    return true;
}

/* --- deferred work and hooks --- */

void loop_defer(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    CHECK(run);
    if (!list_linked(&deferred->link)) {
        deferred->run = run;
        list_push(&loop->deferred, &deferred->link);
        if (loop->phase == PHASE_COUNT) {
            work_came(loop);
        }
    }
}

void loop_defer_cancel(struct loop *loop, struct deferred *deferred)
{
    if (list_linked(&deferred->link)) {
        list_remove(&loop->deferred, &deferred->link);
    }
}

/* As many as there were in the beginning: what they defer comes in the next round. */
static bool deferred_runs(struct loop *loop)
{
    struct deferred *deferred;

    if (loop->left == 0 || list_empty(&loop->deferred)) {
        return false;
    }
    loop->left--;
    deferred = container_of(list_pop(&loop->deferred), struct deferred, link);
    deferred->run(deferred);
    return true;
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *hook))
{
    CHECK(run);
    hook->run = run;
    list_push(&loop->hooks, &hook->link);
}

void loop_hook_remove(struct loop *loop, struct loop_hook *hook)
{
    if (!list_linked(&hook->link)) {
        return;
    }
    if (loop->hook_next == &hook->link) {
        loop->hook_next = list_after(&loop->hooks, &hook->link);
    }
    list_remove(&loop->hooks, &hook->link);
}

static bool hook_runs(struct loop *loop)
{
    struct list_link *link = loop->hook_next;
    struct loop_hook *hook;

    if (!link) {
        return false;
    }
    hook = container_of(link, struct loop_hook, link);
    loop->hook_next = list_after(&loop->hooks, link);
    hook->run(hook);
    return true;
}

/* --- a turn --- */

static bool message_runs(struct loop *loop)
{
    struct message *message;

    if (loop->left == 0 || (message = node_next_message(loop->node)) == NULL) {
        return false;
    }
    loop->left--;
    message->run(message);
    return true;
}

static void phase_begin(struct loop *loop)
{
    switch (loop->phase) {
    case PHASE_MESSAGES:
        loop->left = node_message_count(loop->node);
        break;
    case PHASE_TIMERS:
        loop->order_max = loop->order_last;
        break;
    case PHASE_DEFERRED:
    case PHASE_LAST_DEFERRED:
        loop->left = loop->deferred.count;
        break;
    case PHASE_HOOKS:
    case PHASE_LAST_HOOKS:
        loop->hook_next = list_first(&loop->hooks);
        break;
    case PHASE_COUNT:
        break;
    }
    loop->begun = true;
}

/* The next callback of this phase. False: there is none. */
static bool phase_runs(struct loop *loop)
{
    switch (loop->phase) {
    case PHASE_MESSAGES:
        return message_runs(loop);
    case PHASE_TIMERS:
        return timer_fires(loop);
    case PHASE_DEFERRED:
    case PHASE_LAST_DEFERRED:
        return deferred_runs(loop);
    case PHASE_HOOKS:
    case PHASE_LAST_HOOKS:
        return hook_runs(loop);
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
    loop->clocks->fresh = false;
    return true;
}

int64_t loop_rest_us(const struct loop *loop)
{
    int64_t rest_us;

    if (!list_empty(&loop->deferred)) {
        return 0;
    }
    if (loop->heap_count == 0 || loop->heap[1].boot_ms > INT64_MAX / 1000) {
        return INT64_MAX;
    }
    rest_us = loop->heap[1].boot_ms * 1000 - boot_us(loop->node);
    return rest_us > 0 ? rest_us : 0;
}

/* --- the loop itself --- */

struct loop *loop_new(void)
{
    struct loop *loop = memory_alloc(sizeof(*loop));

    loop->node = node_current();
    CHECK(loop->node);
    loop->clocks = memory_alloc(sizeof(*loop->clocks));
    list_init(&loop->deferred);
    list_init(&loop->hooks);
    loop->phase = PHASE_COUNT;
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop) {
        free(loop->heap);
        free(loop->clocks);
        free(loop);
    }
}
