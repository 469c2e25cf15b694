/* See hold_ends.h. */
#include "run/call/hold_ends.h"

#include <stdlib.h>

#include "base/log.h"
#include "run/engine_state.h"
#include "store/holds.h"

#define AGAIN_MS 1000     /* the time until the next look when one has failed */
#define WAIT_MS_MAX 60000 /* we look again after this time, because the clock of PostgreSQL may be set forward */

struct hold_ends {
    struct engine *engine;
    struct arena arena;
    struct hold_tell_ended tell;
    struct timer timer;
    bool busy, again, stopped;
};

static void on_timer(struct timer *timer)
{
    hold_ends_look(container_of(timer, struct hold_ends, timer));
}

static void on_told(struct store_read *read)
{
    struct hold_ends *ends = read->context;
    int64_t left_ms = read->code == ERR_OK ? ends->tell.left_ms : AGAIN_MS;

    ends->busy = false;
    if (read->code != ERR_OK) {
        log_warn("ended_holds_not_told", LOG_ERR(&read->err));
    }
    if (ends->again) {
        hold_ends_look(ends);
    } else if (left_ms >= 0 && !ends->stopped) {
        timer_start_by_day(ends->engine->loop, &ends->timer, left_ms < WAIT_MS_MAX ? left_ms : WAIT_MS_MAX, on_timer);
    }
}

void hold_ends_look(struct hold_ends *ends)
{
    ends->again = ends->busy;
    if (ends->busy || ends->stopped) {
        return;
    }
    ends->busy = true;
    timer_stop(ends->engine->loop, &ends->timer);
    arena_reset(&ends->arena);
    ends->tell = (struct hold_tell_ended){.read = {.arena = &ends->arena, .done = on_told, .context = ends}};
    store_hold_tell_ended(ends->engine->store, &ends->tell);
}

struct hold_ends *hold_ends_new(struct engine *engine)
{
    struct hold_ends *ends = memory_alloc(sizeof(*ends));

    ends->engine = engine;
    arena_init(&ends->arena, 256);
    return ends;
}

void hold_ends_stop(struct hold_ends *ends)
{
    ends->stopped = true;
    timer_stop(ends->engine->loop, &ends->timer);
}

void hold_ends_free(struct hold_ends *ends)
{
    if (ends) {
        arena_fini(&ends->arena);
        free(ends);
    }
}
