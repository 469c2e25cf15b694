/* The work of a loop: see agenda.h. Timers are in a binary heap; deferred work and hooks are in lists. */
#include "io/loop/agenda.h"

#include <stdlib.h>

#include "base/arena.h"

void agenda_init(struct agenda *agenda)
{
    list_init(&agenda->deferred);
    list_init(&agenda->hooks);
}

void agenda_fini(struct agenda *agenda)
{
    free(agenda->heap);
}

/* --- timers --- */

static bool due_before(const struct agenda_due *a, const struct agenda_due *b)
{
    return a->boot_ms != b->boot_ms ? a->boot_ms < b->boot_ms : a->order < b->order;
}

static void heap_set(struct agenda *agenda, size_t i, struct agenda_due due)
{
    agenda->heap[i] = due;
    due.timer->heap_index = i;
}

static void heap_up(struct agenda *agenda, size_t i, struct agenda_due due)
{
    while (i > 1 && due_before(&due, &agenda->heap[i / 2])) {
        heap_set(agenda, i, agenda->heap[i / 2]);
        i /= 2;
    }
    heap_set(agenda, i, due);
}

static void heap_down(struct agenda *agenda, size_t i, struct agenda_due due)
{
    for (size_t child = 2 * i; child <= agenda->heap_count; child = 2 * i) {
        if (child < agenda->heap_count && due_before(&agenda->heap[child + 1], &agenda->heap[child])) {
            child++;
        }
        if (!due_before(&agenda->heap[child], &due)) {
            break;
        }
        heap_set(agenda, i, agenda->heap[child]);
        i = child;
    }
    heap_set(agenda, i, due);
}

void agenda_timer_start(struct agenda *agenda, struct timer *timer, int64_t now_us, int64_t delay_ms,
                        void (*fire)(struct timer *timer))
{
    /* Rounded up: a part of the running millisecond is not counted as a whole one. */
    int64_t now_ms = (now_us + 999) / 1000;

    CHECK(fire);
    agenda_timer_stop(agenda, timer);
    if (agenda->heap_count + 2 > agenda->heap_capacity) {
        agenda->heap_capacity = agenda->heap_capacity > 0 ? 2 * agenda->heap_capacity : 64;
        agenda->heap = memory_grow(agenda->heap, agenda->heap_capacity * sizeof(*agenda->heap));
    }
    timer->fire = fire;
    timer->by_day = false;
    if (delay_ms < 0) {
        delay_ms = 0;
    }
    if (__builtin_add_overflow(now_ms, delay_ms, &timer->due_boot_ms)) {
        timer->due_boot_ms = INT64_MAX;
    }
    agenda->heap_count++;
    heap_up(agenda, agenda->heap_count,
            (struct agenda_due){.boot_ms = timer->due_boot_ms, .order = ++agenda->order_last, .timer = timer});
}

void agenda_timer_stop(struct agenda *agenda, struct timer *timer)
{
    size_t i = timer->heap_index;
    struct agenda_due last;

    if (i == 0) {
        return;
    }
    CHECK(i <= agenda->heap_count && agenda->heap[i].timer == timer);
    timer->heap_index = 0;
    last = agenda->heap[agenda->heap_count--];
    if (i <= agenda->heap_count) {
        if (i > 1 && due_before(&last, &agenda->heap[i / 2])) {
            heap_up(agenda, i, last);
        } else {
            heap_down(agenda, i, last);
        }
    }
}

void agenda_timers_nearer(struct agenda *agenda, int64_t ms)
{
    for (size_t i = 1; i <= agenda->heap_count && ms > 0; i++) {
        struct agenda_due *due = &agenda->heap[i];

        if (due->timer->by_day) {
            due->boot_ms = due->boot_ms > ms ? due->boot_ms - ms : 0;
            due->timer->due_boot_ms = due->boot_ms;
        }
    }
    for (size_t i = agenda->heap_count / 2; i > 0; i--) {
        heap_down(agenda, i, agenda->heap[i]);
    }
}

bool timer_running(const struct timer *timer)
{
    return timer->heap_index != 0;
}

struct timer *agenda_first(const struct agenda *agenda)
{
    return agenda->heap_count > 0 ? agenda->heap[1].timer : NULL;
}

int64_t agenda_due_ms(const struct agenda *agenda)
{
    return agenda->heap_count > 0 ? agenda->heap[1].boot_ms : INT64_MAX;
}

void agenda_timers_begin(struct agenda *agenda)
{
    agenda->order_max = agenda->order_last;
}

/* Runs only timers that were started before this turn: a timer that restarts itself without delay waits for the next
 * turn. */
bool agenda_timers_next(struct agenda *agenda, int64_t now_ms)
{
    struct timer *timer;

    if (agenda->heap_count == 0 || agenda->heap[1].boot_ms > now_ms || agenda->heap[1].order > agenda->order_max) {
        return false;
    }
    timer = agenda->heap[1].timer;
    agenda_timer_stop(agenda, timer);
    timer->fire(timer);
    return true;
}

/* --- deferred work --- */

bool agenda_defer(struct agenda *agenda, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    CHECK(run);
    if (list_linked(&deferred->link)) {
        return false;
    }
    deferred->run = run;
    list_push(&agenda->deferred, &deferred->link);
    return true;
}

bool agenda_defer_first(struct agenda *agenda, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    CHECK(run);
    if (list_linked(&deferred->link)) {
        return false;
    }
    deferred->run = run;
    list_push_front(&agenda->deferred, &deferred->link);
    agenda->deferred_left++;
    return true;
}

void agenda_defer_cancel(struct agenda *agenda, struct deferred *deferred)
{
    if (list_linked(&deferred->link)) {
        list_remove(&agenda->deferred, &deferred->link);
    }
}

/* Runs only the work that is deferred now. Work that is deferred meanwhile runs in the next round, after the
 * sockets. */
void agenda_deferred_begin(struct agenda *agenda)
{
    agenda->deferred_left = agenda->deferred.count;
}

bool agenda_deferred_next(struct agenda *agenda)
{
    struct deferred *deferred;

    if (agenda->deferred_left == 0 || list_empty(&agenda->deferred)) {
        return false;
    }
    agenda->deferred_left--;
    deferred = container_of(list_pop(&agenda->deferred), struct deferred, link);
    deferred->run(deferred);
    return true;
}

/* --- hooks --- */

void agenda_hook_add(struct agenda *agenda, struct loop_hook *hook, void (*run)(struct loop_hook *hook))
{
    CHECK(run);
    hook->run = run;
    list_push(&agenda->hooks, &hook->link);
}

void agenda_hook_remove(struct agenda *agenda, struct loop_hook *hook)
{
    if (!list_linked(&hook->link)) {
        return;
    }
    if (agenda->hook_next == &hook->link) {
        agenda->hook_next = list_after(&agenda->hooks, &hook->link);
    }
    list_remove(&agenda->hooks, &hook->link);
}

void agenda_hooks_begin(struct agenda *agenda)
{
    agenda->hook_next = list_first(&agenda->hooks);
}

bool agenda_hooks_next(struct agenda *agenda)
{
    struct list_link *link = agenda->hook_next;
    struct loop_hook *hook;

    if (!link) {
        return false;
    }
    hook = container_of(link, struct loop_hook, link);
    agenda->hook_next = list_after(&agenda->hooks, link);
    hook->run(hook);
    return true;
}
