/* See due.h. A batch ends in a later turn of the loop, because its callers still use memory of the arena. */
#include "run/saga/due.h"

#include "run/saga/saga_room.h"
/* The clock is read again after this time: it may be set forward, and a machine may sleep. */
#define DELAY_MS_MAX 60000

static void due_on_time(struct timer *timer);

static void arm(struct due *due)
{
    struct loop *loop = due->engine->loop;

    if (due->stopped || due->busy || due->next_ms == INT64_MAX) {
        return;
    }
    int64_t left = due->next_ms - loop_wall_ms(loop), pause = due->pause_boot_ms - loop_boot_ms(loop);
    int64_t delay = left > pause ? left : pause;

    timer_start_by_day(loop, &due->timer, delay < 0 ? 0 : delay > DELAY_MS_MAX ? DELAY_MS_MAX : delay, due_on_time);
}

void due_at(struct due *due, int64_t at_ms)
{
    if (at_ms < due->next_ms) {
        due->next_ms = at_ms;
        arm(due);
    }
}

static void due_on_time(struct timer *timer)
{
    struct due *due = container_of(timer, struct due, timer);
    int64_t now_ms = loop_wall_ms(due->engine->loop);
    uint64_t owned = shards_owned_set(due->engine);

    if (due->next_ms > now_ms || due->pause_boot_ms > loop_boot_ms(due->engine->loop)) {
        arm(due); /* a long wait, or a wall clock that was set back */
        return;
    }
    due->next_ms = INT64_MAX;
    if (owned != 0) { /* otherwise gaining a shard leads to a look */
        due->busy = true;
        due->kind->take(due, owned, now_ms);
    }
}

static void due_on_ended(struct deferred *deferred)
{
    struct due *due = container_of(deferred, struct due, ended);

    if (!due->stopped) { /* otherwise the store may be gone already */
        due->kind->over(due);
    }
    due->busy = false;
    arena_reset(&due->arena);
    arm(due);
}

static void go_on(struct due *due)
{
    due->beginning = true; /* prevents a batch that ends at once from coming here inside this call */
    while (!due->stopped && due->at < due->count && due->under_way < due->kind->under_way_max) {
        due->kind->begin(due, due->at++);
    }
    due->beginning = false;
    if (due->under_way == 0) {
        loop_defer(due->engine->loop, &due->ended, due_on_ended);
    }
}

void due_rows(struct due *due, size_t count)
{
    due->count = count;
    due->at = 0;
    go_on(due);
}

void due_begun(struct due *due)
{
    due->under_way++;
}

void due_ended(struct due *due)
{
    due->under_way--;
    if (!due->beginning) {
        go_on(due);
    }
}

void due_init(struct due *due, struct engine *engine, const struct due_kind *kind)
{
    due->kind = kind;
    due->engine = engine;
    due->next_ms = INT64_MAX;
    arena_init(&due->arena, 16384);
    list_push(&engine->saga_room->dues, &due->link);
}

void due_fini(struct due *due)
{
    list_remove(&due->engine->saga_room->dues, &due->link);
    timer_stop(due->engine->loop, &due->timer);
    loop_defer_cancel(due->engine->loop, &due->ended);
    arena_fini(&due->arena);
}

void dues_look(struct engine *engine)
{
    for (struct list_link *link = list_first(&engine->saga_room->dues); link;
         link = list_after(&engine->saga_room->dues, link)) {
        due_at(container_of(link, struct due, link), 0);
    }
}

void dues_stop(struct engine *engine)
{
    for (struct list_link *link = list_first(&engine->saga_room->dues); link;
         link = list_after(&engine->saga_room->dues, link)) {
        struct due *due = container_of(link, struct due, link);

        due->stopped = true;
        timer_stop(engine->loop, &due->timer);
    }
}
