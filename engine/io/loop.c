/*
 * The loop: libuv below, our own timers, deferred work and clocks above.
 *
 * A turn is what libuv calls an iteration. In order: uv's timer (it only wakes us), prepare (deferred work, hooks), block for
 * sockets and their callbacks, check (due timers, deferred work, hooks). While deferred work is left after prepare an
 * idle handle keeps the loop from blocking, so work that defers work gets its turn and sockets are still looked at.
 *
 * The clocks are read once a turn and lazily: prepare marks them old right before the loop blocks, and whoever asks first
 * after that reads them. So a callback never sees the time from before the loop slept.
 */
#include "io/loop.h"

#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/arena.h"
#include "base/followed_clock.h"

/* uv's timer counts CLOCK_MONOTONIC, which stands still while the machine is suspended, and ours must not. A short sleep
 * bounds how late a timer is after that. */
enum { SLEEP_MS_MAX = 1000 };

struct clocks {
    bool fresh;
    int64_t boot_us, wall_ms;
    int64_t shown_ms; /* of a clock that is followed: the last that was told */
};

struct node {
    int64_t due_boot_ms;
    uint64_t order; /* of the start: equal dues fire first come, first served */
    struct timer *timer;
};

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
    int handles_open;        /* of the four above */
    struct clocks *clocks;   /* behind a pointer: asking for the time is const */
    struct node *heap;       /* heap[1] is due first; heap[0] is not used */
    size_t heap_count, heap_capacity;
    uint64_t order_last;
    struct followed_clock followed; /* where UTC comes from, once it is set */
    int64_t alarm_boot_ms;   /* what `alarm` was set for; INT64_MAX: not set */
    struct list deferred, hooks;
    struct list_link *hook_next; /* the hook after the one that runs, so that a hook may remove any */
};

/* --- clocks --- */

static int64_t clock_us(clockid_t id)
{
    struct timespec now;

    CHECK(clock_gettime(id, &now) == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void clocks_read(struct clocks *clocks)
{
    clocks->boot_us = clock_us(CLOCK_BOOTTIME);
    clocks->wall_ms = clock_us(CLOCK_REALTIME) / 1000;
    clocks->fresh = true;
}

static const struct clocks *clocks_of(const struct loop *loop)
{
    if (!loop->clocks->fresh) {
        clocks_read(loop->clocks);
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
    clocks_read(loop->clocks);
}

int64_t loop_boot_ms_now(void)
{
    return clock_us(CLOCK_BOOTTIME) / 1000;
}

/* --- timers --- */

static bool node_before(const struct node *a, const struct node *b)
{
    return a->due_boot_ms != b->due_boot_ms ? a->due_boot_ms < b->due_boot_ms : a->order < b->order;
}

static void heap_set(struct loop *loop, size_t i, struct node node)
{
    loop->heap[i] = node;
    node.timer->heap_index = i;
}

static void heap_up(struct loop *loop, size_t i, struct node node)
{
    while (i > 1 && node_before(&node, &loop->heap[i / 2])) {
        heap_set(loop, i, loop->heap[i / 2]);
        i /= 2;
    }
    heap_set(loop, i, node);
}

static void heap_down(struct loop *loop, size_t i, struct node node)
{
    for (size_t child = 2 * i; child <= loop->heap_count; child = 2 * i) {
        if (child < loop->heap_count && node_before(&loop->heap[child + 1], &loop->heap[child])) {
            child++;
        }
        if (!node_before(&loop->heap[child], &node)) {
            break;
        }
        heap_set(loop, i, loop->heap[child]);
        i = child;
    }
    heap_set(loop, i, node);
}

void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer))
{
    /* Rounded up: a part of the running millisecond is not counted as a whole one. */
    int64_t now_ms = (loop_boot_us(loop) + 999) / 1000;

    CHECK(fire);
    timer_stop(loop, timer);
    if (loop->heap_count + 2 > loop->heap_capacity) {
        loop->heap_capacity = loop->heap_capacity ? 2 * loop->heap_capacity : 64;
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
    heap_up(loop, loop->heap_count,
            (struct node){.due_boot_ms = timer->due_boot_ms, .order = ++loop->order_last, .timer = timer});
}

void timer_stop(struct loop *loop, struct timer *timer)
{
    size_t i = timer->heap_index;
    struct node last;

    if (i == 0) {
        return;
    }
    CHECK(i <= loop->heap_count && loop->heap[i].timer == timer);
    timer->heap_index = 0;
    last = loop->heap[loop->heap_count--];
    if (i <= loop->heap_count) {
        if (i > 1 && node_before(&last, &loop->heap[i / 2])) {
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
static void timers_run(struct loop *loop)
{
    uint64_t order_max = loop->order_last;
    int64_t now_ms;

    if (loop->heap_count == 0) {
        return;
    }
    now_ms = loop_boot_ms(loop);
    while (loop->heap_count > 0 && loop->heap[1].due_boot_ms <= now_ms && loop->heap[1].order <= order_max) {
        struct timer *timer = loop->heap[1].timer;

        timer_stop(loop, timer);
        timer->fire(timer);
    }
}

static void on_alarm(uv_timer_t *alarm)
{
    struct loop *loop = alarm->data;

    loop->alarm_boot_ms = INT64_MAX; /* the timers run in check */
}

static void alarm_set(struct loop *loop)
{
    int64_t due_ms, delay_ms;

    if (loop->heap_count == 0) {
        if (loop->alarm_boot_ms != INT64_MAX) {
            uv_timer_stop(&loop->alarm);
            loop->alarm_boot_ms = INT64_MAX;
        }
        return;
    }
    due_ms = loop->heap[1].due_boot_ms;
    if (loop->alarm_boot_ms != INT64_MAX && due_ms >= loop->alarm_boot_ms) {
        return; /* it rings early enough; at worst once for nothing */
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
    CHECK(run);
    if (!list_linked(&deferred->link)) {
        deferred->run = run;
        list_push(&loop->deferred, &deferred->link);
    }
}

void loop_defer_cancel(struct loop *loop, struct deferred *deferred)
{
    if (list_linked(&deferred->link)) {
        list_remove(&loop->deferred, &deferred->link);
    }
}

static void deferred_run(struct loop *loop)
{
    /* As many as there are now: what they defer comes in the next round, after the sockets had theirs. */
    for (size_t count = loop->deferred.count; count > 0; count--) {
        struct list_link *link = list_pop(&loop->deferred);
        struct deferred *deferred = LIST_ITEM(link, struct deferred, link);

        if (!deferred) {
            break;
        }
        deferred->run(deferred);
    }
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

static void hooks_run(struct loop *loop)
{
    struct list_link *link = list_first(&loop->hooks);

    while (link) {
        struct loop_hook *hook = container_of(link, struct loop_hook, link);

        loop->hook_next = list_after(&loop->hooks, link);
        hook->run(hook);
        link = loop->hook_next;
    }
    loop->hook_next = NULL;
}

/* --- a turn --- */

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* that it is active is its whole effect */
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;

    deferred_run(loop);
    hooks_run(loop);
    alarm_set(loop);
    if (list_empty(&loop->deferred)) {
        uv_idle_stop(&loop->idle);
    } else {
        CHECK(uv_idle_start(&loop->idle, on_idle) == 0);
    }
    loop->clocks->fresh = false;
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

    loop->clocks = memory_alloc(sizeof(*loop->clocks));
    loop->alarm_boot_ms = INT64_MAX;
    list_init(&loop->deferred);
    list_init(&loop->hooks);
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
    loop->clocks->fresh = false;
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* says whether handles are left; ours always are */
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
    CHECK(foreign_open == 0); /* something was not closed before its loop; waiting for it would take for ever */
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) {
        /* close callbacks, and jobs that are still on a thread; once more after a loop_stop() that came late */
    }
    CHECK(loop->handles_open == 0);
    CHECK(uv_loop_close(&loop->uv) == 0);
    free(loop->heap);
    free(loop->clocks);
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
