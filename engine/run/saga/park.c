/*
 * Parking: a saga that does not move costs no memory. When it has been quiet for a while, a row in the table due says
 * when to look at it again, and the saga leaves memory. Its time brings it back, and so does mail (summon.c). The first
 * append of a parked saga removes the row in the same transaction.
 *
 *     quiet for park_after_ms -> store_park() -> evicted, unless something came meanwhile
 *     its time, or mail       -> read back from its log; its wants do the rest
 *
 * A saga of which calls wait for holds rests, too. Its row names one hold for each of these calls. When the first of
 * them has ended, a call may go on: the owner of the shard makes the row due, at the pace of the hold, and so does
 * whoever gains the shard. A saga that is kept by more holds then, or by another one, leaves memory again.
 *
 * An engine has one timer for everything that is due in all its shards, and asks nothing while nothing is due. Sagas
 * whose retention is over are in the same table: see retention.c.
 */
#include "run/saga/park.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/call/activity.h"
#include "run/call/holds.h"
#include "run/engine_state.h"
#include "run/saga/due.h"
#include "run/saga/live.h"
#include "run/saga/saga_room.h"
#include "run/saga/summon.h"
#include "run/shard/shard.h"

#define DUE_MAX 500         /* the most rows that are read at once */
#define UNDER_WAY_MAX 64    /* the number of wakings under way */
#define AGAIN_MS 1000       /* the time until the next try when there was no room, or no database */
#define UNREADABLE_MS 60000 /* the same time for a saga whose log makes no sense here */
#define TRIM_EVERY 1000     /* memory is given back to the system after so many sagas have left */

struct parking { /* a row that is being written */
    struct park park;
    struct engine *engine;
    struct live *live; /* NULL when the saga left memory meanwhile */
};

struct unreadable {
    struct saga_id id;
    int64_t until_boot_ms;
};

struct parker {
    struct engine *engine;
    struct list resting; /* sagas that may leave memory when they have been quiet long enough, the longest first */
    struct timer rest_timer;
    size_t loaded;  /* parked sagas that are in memory again because of an input */
    size_t evicted; /* sagas that have left since memory was last given back to the system */
    struct due due;
    struct due_take take;
    bool more, moved; /* more: there may be more rows; moved: one of the present rows has changed */
    struct due_let_go let_go;
    struct arena letting_go;
    struct timer go_timer;
    uint32_t pace; /* the pace of letting go */
    bool goes, goes_again, stopped;
    struct map unreadable; /* saga id -> struct unreadable */
};

struct waking { /* a row at work */
    struct parker *parker;
    struct saga_id id;
    struct summons summons;
};

/* --- leaving --- */

static bool activity_rests(const struct activity *activity, int64_t now_ms)
{
    if (activity->state != ACTIVITY_WAITING || list_linked(&activity->queue_link)) {
        return false;
    }
    if (activity->on_hold) {
        return holds_on(activity) != NULL;
    }
    switch (activity->want.type) {
    case WANT_TIMER:
        return activity->want.due_ms > now_ms + activity->live->engine->options.park_ahead_ms;
    case WANT_LOCK: /* in line, unless the lock will be asked for again */
        return !timer_running(&activity->timer);
    case WANT_ADMIT:
    case WANT_CALL:
    case WANT_PROBE:
    case WANT_EVALUATE:
        return false;
    }
    UNREACHABLE();
}

struct keepers { /* the holds that keep calls of a quiet saga, each once, rising */
    uint64_t numbers[PARK_HOLDS_MAX];
    size_t count;
    bool are_too_many;
};

static void keepers_add(struct keepers *keepers, uint64_t number)
{
    size_t at = 0;

    while (at < keepers->count && keepers->numbers[at] < number) {
        at++;
    }
    if (at < keepers->count && keepers->numbers[at] == number) {
        return;
    }
    if (keepers->count == PARK_HOLDS_MAX) {
        keepers->are_too_many = true;
        return;
    }
    memmove(&keepers->numbers[at + 1], &keepers->numbers[at], (keepers->count - at) * sizeof(keepers->numbers[0]));
    keepers->numbers[at] = number;
    keepers->count++;
}

/* `*until_ms` is when something is due that no hold keeps. */
static struct keepers keepers_of(const struct live *live, int64_t *until_ms)
{
    struct keepers keepers = {.count = 0};

    *until_ms = INT64_MAX;
    for (const struct list_link *link = list_first(&live->activities); link;
         link = list_after(&live->activities, link)) {
        const struct activity *activity = container_of(link, struct activity, link);
        const struct hold *hold = activity->on_hold ? holds_on(activity) : NULL;

        if (hold) {
            keepers_add(&keepers, hold->number);
        } else if (activity->want.type == WANT_TIMER && activity->want.due_ms < *until_ms) {
            *until_ms = activity->want.due_ms;
        }
    }
    return keepers;
}

static bool is_quiet(const struct live *live)
{
    const struct engine *engine = live->engine;
    int64_t now_ms = loop_wall_ms(engine->loop);
    int64_t until_ms;

    if (live->turn || live->dropped || live->parking || live->park_refused || live->interrupted || live->asks > 0 ||
        live->saga.seq == 0 || live->saga.phase == PHASE_ENDED || live->saga.definition->kind == SAGA_RUN ||
        engine_is_draining(engine) || live->shard->state != SHARD_OWNED || !list_empty(&live->mailbox) ||
        !list_empty(&live->waiters) || !list_empty(&live->callers)) {
        return false;
    }
    for (const struct list_link *link = list_first(&live->activities); link;
         link = list_after(&live->activities, link)) {
        if (!activity_rests(container_of(link, struct activity, link), now_ms)) {
            return false;
        }
    }
    return !keepers_of(live, &until_ms).are_too_many;
}

static void on_quiet(struct timer *timer);

static void arm_rest(struct engine *engine)
{
    const struct list_link *first = list_first(&engine->saga_room->parker->resting);

    if (first && !timer_running(&engine->saga_room->parker->rest_timer)) {
        const struct live *live = container_of(first, struct live, rest_link);
        int64_t left = live->rest_boot_ms + engine->options.park_after_ms - loop_boot_ms(engine->loop);

        timer_start(engine->loop, &engine->saga_room->parker->rest_timer, left > 0 ? left : 0, on_quiet);
    }
}

void park_consider(struct live *live)
{
    struct engine *engine = live->engine;

    if (!list_linked(&live->rest_link) && is_quiet(live)) {
        live->rest_boot_ms = loop_boot_ms(engine->loop);
        list_push(&engine->saga_room->parker->resting, &live->rest_link);
        arm_rest(engine);
    }
}

void park_forget(struct live *live)
{
    if (list_linked(&live->rest_link)) {
        list_remove(&live->engine->saga_room->parker->resting, &live->rest_link);
    }
    if (live->parking) {
        live->parking->live = NULL;
        live->parking = NULL;
    }
}

void park_set_parked(struct live *live, bool parked)
{
    live->was_due |= parked;
    live->engine->saga_room->parker->loaded += parked;
    live->engine->saga_room->parker->loaded -= live->parked;
    live->parked = parked;
}

/* Gives memory back, because freed memory is kept for the next wave, which may never come. */
static void give_memory_back(struct engine *engine)
{
    engine->saga_room->parker->evicted++;
    if (engine->saga_room->parker->evicted >= TRIM_EVERY && list_empty(&engine->saga_room->parker->resting)) {
        engine->saga_room->parker->evicted = 0;
        memory_give_back();
    }
}

/* Something is due then; INT64_MAX: nothing is. */
static void parker_due(struct engine *engine, int64_t at_ms)
{
    due_at(&engine->saga_room->parker->due, at_ms);
}

static void on_parked(struct park *park)
{
    struct parking *parking = container_of(park, struct parking, park);
    struct engine *engine = parking->engine;
    struct live *live = parking->live;
    enum err_code code = park->code;
    int64_t due_ms = park->due_ms;

    if (live) {
        live->parking = NULL;
    }
    free(parking);
    if (code == ERR_OK) {
        parker_due(engine, due_ms);
    }
    if (!live) {
        return;
    }
    if (code == ERR_FENCED) {
        shard_fenced(engine, live->shard->number, live->shard->epoch);
        return;
    }
    if (code != ERR_OK) {
        live->park_refused = true; /* not tried again until it moves */
        log_error("park_refused", LOG_UUID("saga", &live->saga.id.uuid), LOG_TEXT("code", err_name(code)));
        live_ready(live);
        return;
    }
    live->awake = false;
    park_set_parked(live, true);
    if (is_quiet(live)) {
        metric_add(METRIC_PARKED, 1);
        live_evict(live);
        give_memory_back(engine);
    } else {
        live_ready(live);
    }
}

/* A saga that was read back and did not move gets its row written again, so that the row is ours. */
static void park(struct live *live)
{
    struct engine *engine = live->engine;
    struct arena arena;

    int64_t held_until_ms, until_ms;
    struct keepers keepers = keepers_of(live, &held_until_ms);

    arena_init(&arena, 1024);
    until_ms = keepers.count > 0 ? held_until_ms : saga_rests_until(&live->saga, &arena);
    arena_fini(&arena);
    if (until_ms <= loop_wall_ms(engine->loop) + engine->options.park_ahead_ms) {
        return;
    }
    struct parking *parking = memory_alloc(sizeof(*parking));

    parking->engine = engine;
    parking->live = live;
    parking->park = (struct park){.saga = live->saga.id,
                                  .shard = live->shard->number,
                                  .epoch = live->shard->epoch,
                                  .due_ms = until_ms,
                                  .hold_count = keepers.count,
                                  .awake = live->awake,
                                  .done = on_parked};
    memcpy(parking->park.holds, keepers.numbers, sizeof(keepers.numbers));
    live->parking = parking;
    live->was_due = true;
    store_park(engine->store, &parking->park);
}

static void on_quiet(struct timer *timer)
{
    struct engine *engine = container_of(timer, struct parker, rest_timer)->engine;
    int64_t before_ms = loop_boot_ms(engine->loop) - engine->options.park_after_ms;
    struct list_link *link;

    while ((link = list_first(&engine->saga_room->parker->resting)) != NULL) {
        struct live *live = container_of(link, struct live, rest_link);

        if (live->rest_boot_ms > before_ms) {
            break;
        }
        list_remove(&engine->saga_room->parker->resting, link);
        if (is_quiet(live)) { /* otherwise whatever keeps it leads to another look */
            park(live);
        }
    }
    arm_rest(engine);
}

/* --- coming back --- */

int64_t parker_lag_ms(const struct engine *engine)
{
    int64_t next_ms = engine->saga_room->parker->due.next_ms, now_ms = loop_wall_ms(engine->loop);

    /* 0 means that nothing is known of it yet and the engine must look. */
    return next_ms > 0 && next_ms < now_ms ? now_ms - next_ms : 0;
}

/* Keeps an unreadable saga where it is, for a program that can read it; the others go on. */
static void keep_unreadable(struct parker *parker, const struct waking *waking, const struct err *err)
{
    struct unreadable *unreadable = map_find(&parker->unreadable, &waking->id, sizeof(waking->id));

    if (!unreadable) {
        unreadable = memory_alloc(sizeof(*unreadable));
        unreadable->id = waking->id;
        map_put(&parker->unreadable, &unreadable->id, sizeof(unreadable->id), unreadable);
        log_error("saga_unreadable", LOG_UUID("saga", &waking->id.uuid), LOG_ERR(err));
    }
    unreadable->until_boot_ms = loop_boot_ms(parker->engine->loop) + UNREADABLE_MS;
    parker_due(parker->engine, loop_wall_ms(parker->engine->loop) + UNREADABLE_MS);
}

/* Returns how long the saga is not tried again; 0 when it may be tried. */
static int64_t kept_back_ms(struct parker *parker, struct saga_id id)
{
    const struct unreadable *unreadable = map_find(&parker->unreadable, &id, sizeof(id));
    int64_t left_ms = unreadable ? unreadable->until_boot_ms - loop_boot_ms(parker->engine->loop) : 0;

    return left_ms > 0 ? left_ms : 0;
}

static void on_summoned(struct summons *summons, struct live *live, enum err_code code, const struct err *err)
{
    struct waking *waking = container_of(summons, struct waking, summons);
    struct parker *parker = waking->parker;

    if (live) { /* the timers of the saga, which are due, do the rest */
        parker->moved = true;
        free(map_remove(&parker->unreadable, &waking->id, sizeof(waking->id)));
    } else if (code == ERR_CORRUPT || code == ERR_NOT_FOUND) {
        keep_unreadable(parker, waking, err);
    } else if (code != ERR_FENCED && code != ERR_STOPPING) {
        parker_due(parker->engine, loop_wall_ms(parker->engine->loop) + AGAIN_MS);
    }
    free(waking);
    due_ended(&parker->due);
}

static void parker_begin(struct due *due, size_t i)
{
    struct parker *parker = container_of(due, struct parker, due);
    struct engine *engine = parker->engine;
    const struct due_row *row = &parker->take.rows[i];
    const struct shard *shard = &engine->shards[row->shard];

    if (shard->state != SHARD_OWNED || live_find(engine, row->saga)) {
        return; /* in memory its own timers count */
    }
    int64_t kept_ms = kept_back_ms(parker, row->saga);

    if (kept_ms > 0) { /* other due sagas led to the look; this one still needs a look at its time */
        parker_due(engine, loop_wall_ms(engine->loop) + kept_ms);
        return;
    }
    struct waking *waking = memory_alloc(sizeof(*waking));

    waking->parker = parker;
    waking->id = row->saga;
    due_begun(due);
    waking->summons.presses = true;
    waking->summons.done = on_summoned;
    live_summon(engine, row->saga, row->namespace, &waking->summons);
}

static void parker_on_taken(struct store_read *read)
{
    struct parker *parker = read->context;
    const struct due_take *take = &parker->take;
    bool is_good = read->code == ERR_OK;

    parker->more = is_good && take->more;
    parker->moved = false;
    due_at(&parker->due, is_good ? take->next_ms : loop_wall_ms(parker->engine->loop) + AGAIN_MS);
    due_rows(&parker->due, is_good ? take->count : 0);
}

static void parker_take(struct due *due, uint64_t shards, int64_t now_ms)
{
    struct parker *parker = container_of(due, struct parker, due);

    parker->take = (struct due_take){.read = {.arena = &due->arena, .done = parker_on_taken, .context = parker},
                                     .shards = shards,
                                     .now_ms = now_ms,
                                     /* Sagas in memory keep their rows until they move. */
                                     .limit = DUE_MAX + parker->loaded + parker->unreadable.count,
                                     .next_ms = INT64_MAX};
    store_due_take(due->engine->store, &parker->take);
}

static void parker_over(struct due *due)
{
    const struct parker *parker = container_of(due, struct parker, due);

    if (parker->more) {
        due_at(due, parker->moved ? 0 : loop_wall_ms(due->engine->loop) + AGAIN_MS);
    }
}

/* --- letting go --- */

static void let_go(struct parker *parker);

static void on_go_time(struct timer *timer)
{
    let_go(container_of(timer, struct parker, go_timer));
}

static void go_later(struct parker *parker, int64_t ms)
{
    parker->goes = true;
    timer_start(parker->engine->loop, &parker->go_timer, ms, on_go_time);
}

static void on_let_go(struct store_read *read)
{
    struct parker *parker = read->context;
    size_t count = parker->let_go.count;

    parker->goes = false;
    if (parker->stopped) {
        return;
    }
    if (read->code != ERR_OK) {
        go_later(parker, AGAIN_MS);
        return;
    }
    /* Also when none was made due: the request may have been done before its answer was lost, and made again. */
    parker_due(parker->engine, parker->let_go.now_ms);
    if (count == parker->let_go.limit) {
        go_later(parker, AGAIN_MS);
    } else if (parker->goes_again) {
        go_later(parker, 0); /* the answer lies in memory that the next request begins anew */
    }
}

static void let_go(struct parker *parker)
{
    struct engine *engine = parker->engine;
    const struct hold_set *holds = holds_in_force(engine->holds);
    uint64_t shards = shards_owned_set(engine);
    uint64_t *in_force;

    parker->goes = false;
    if (parker->stopped || shards == 0) {
        return; /* whoever gains a shard looks */
    }
    if (holds_are_stale(engine->holds) || holds_let_go(engine->holds)) {
        go_later(parker, AGAIN_MS); /* sagas in memory come first, so that together they keep the pace */
        return;
    }
    arena_reset(&parker->letting_go);
    in_force = arena_array(&parker->letting_go, holds->count + 1, sizeof(*in_force));
    for (size_t i = 0; i < holds->count; i++) {
        in_force[i] = holds->items[i].number;
    }
    parker->goes = true;
    parker->goes_again = false;
    parker->let_go = (struct due_let_go){.read = {.arena = &parker->letting_go, .done = on_let_go, .context = parker},
                                         .shards = shards,
                                         .in_force = in_force,
                                         .in_force_count = holds->count,
                                         .now_ms = loop_wall_ms(engine->loop),
                                         .limit = (size_t)parker->pace * AGAIN_MS / 1000};
    store_due_let_go(engine->store, &parker->let_go);
}

void parker_let_go(struct engine *engine, uint32_t pace)
{
    struct parker *parker = engine->saga_room->parker;

    parker->pace = parker->goes && parker->pace < pace ? parker->pace : pace;
    parker->goes_again = true;
    if (!parker->goes && !parker->stopped) {
        let_go(parker);
    }
}

/* --- its own life --- */

static const struct due_kind parker_kind = {
    .under_way_max = UNDER_WAY_MAX, .take = parker_take, .begin = parker_begin, .over = parker_over};

struct parker *parker_new(struct engine *engine)
{
    struct parker *parker = memory_alloc(sizeof(*parker));

    parker->engine = engine;
    map_init(&parker->unreadable);
    list_init(&parker->resting);
    arena_init(&parker->letting_go, 1024);
    due_init(&parker->due, engine, &parker_kind);
    return parker;
}

void parker_free(struct parker *parker)
{
    size_t position = 0;
    void *value;

    while (map_next(&parker->unreadable, &position, &value)) {
        free(value);
    }
    map_fini(&parker->unreadable);
    timer_stop(parker->engine->loop, &parker->rest_timer);
    timer_stop(parker->engine->loop, &parker->go_timer);
    arena_fini(&parker->letting_go);
    due_fini(&parker->due);
    free(parker);
}

void parker_stop(struct engine *engine)
{
    struct parker *parker = engine->saga_room->parker;

    parker->stopped = true;
    timer_stop(parker->engine->loop, &parker->go_timer);
}
