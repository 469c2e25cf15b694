/*
 * Parking: a saga of which nothing moves costs no memory. When it has been quiet for a while, a row in the table due
 * says when it is to be looked at again, and it leaves; mail that comes for it has it read back (summon.c), and so does
 * its time. The first append of a parked saga takes the row away in the same transaction.
 *
 *     quiet for park_after_ms -> store_park() -> evicted, unless something came meanwhile
 *     its time, or mail       -> read back from its log; its wants do the rest
 *
 * An engine has one timer for all that is due, of all its shards, and asks nothing while nothing is. Sagas whose
 * retention is over stand in the same table: see retention.c.
 */
#include "run/saga/park.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/call/activity.h"
#include "run/engine_state.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "run/shard/shard.h"

#define DUE_MAX 500         /* rows that are read at once */
#define UNDER_WAY_MAX 64    /* of these */
#define AGAIN_MS 1000       /* after which it is tried again where there was no room, or no database */
#define UNREADABLE_MS 60000 /* the same for a saga whose log makes no sense here */
#define TRIM_EVERY 1000     /* sagas that have left, after which memory is given back to the system */
#define DELAY_MS_MAX                                                                                                   \
    60000 /* after which the clock is looked at again: it may be set forward, and a machine may sleep */

struct parking { /* a row on its way */
    struct park park;
    struct engine *engine;
    struct live *live; /* NULL: it left memory meanwhile */
};

struct unreadable {
    struct saga_id id;
    int64_t until_boot_ms;
};

struct parker {
    struct engine *engine;
    struct list resting; /* sagas that may leave memory when they have been quiet for long enough, the longest first */
    struct timer rest_timer;
    size_t loaded;  /* parked sagas that are in memory all the same, because something came for them */
    size_t evicted; /* sagas that have left since memory was given back to the system last */
    struct timer timer;
    int64_t next_ms; /* when the next one is due; INT64_MAX: nothing is, as far as is known */
    struct due_take take;
    struct arena arena; /* of its rows */
    struct deferred over;
    size_t at, under_way; /* rows begun, and not ended */
    bool busy, stopped;   /* busy: reading rows, or at work on them */
    bool beginning;
    bool more, moved;      /* there may be more rows; something came of those at hand */
    struct map unreadable; /* saga id -> struct unreadable */
};

struct errand { /* a row at work */
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
    switch (activity->want.type) {
    case WANT_TIMER:
        return activity->want.due_ms > now_ms + activity->live->engine->options.park_ahead_ms;
    case WANT_LOCK: /* in line, unless it will be asked for again */
        return !timer_running(&activity->timer);
    case WANT_ADMIT:
    case WANT_CALL:
    case WANT_PROBE:
    case WANT_EVALUATE:
        return false;
    }
    UNREACHABLE();
}

static bool is_quiet(const struct live *live)
{
    const struct engine *engine = live->engine;
    int64_t now_ms = loop_wall_ms(engine->loop);
    const struct list_link *link;

    if (live->turn || live->dropped || live->parking || live->park_refused || live->interrupted || live->asks > 0 ||
        live->saga.seq == 0 || live->saga.phase == PHASE_ENDED || live->saga.definition->kind == SAGA_RUN ||
        engine_is_draining(engine) || live->shard->state != SHARD_OWNED || !list_empty(&live->mailbox) ||
        !list_empty(&live->waiters) || !list_empty(&live->callers)) {
        return false;
    }
    for (link = list_first(&live->activities); link; link = list_after(&live->activities, link)) {
        if (!activity_rests(container_of(link, struct activity, link), now_ms)) {
            return false;
        }
    }
    return true;
}

static void on_quiet(struct timer *timer);

static void arm_rest(struct engine *engine)
{
    const struct list_link *first = list_first(&engine->parker->resting);

    if (first && !timer_running(&engine->parker->rest_timer)) {
        const struct live *live = container_of(first, struct live, rest_link);
        int64_t left = live->rest_boot_ms + engine->options.park_after_ms - loop_boot_ms(engine->loop);

        timer_start(engine->loop, &engine->parker->rest_timer, left > 0 ? left : 0, on_quiet);
    }
}

void park_consider(struct live *live)
{
    struct engine *engine = live->engine;

    if (!list_linked(&live->rest_link) && is_quiet(live)) {
        live->rest_boot_ms = loop_boot_ms(engine->loop);
        list_push(&engine->parker->resting, &live->rest_link);
        arm_rest(engine);
    }
}

void park_forget(struct live *live)
{
    if (list_linked(&live->rest_link)) {
        list_remove(&live->engine->parker->resting, &live->rest_link);
    }
    if (live->parking) {
        live->parking->live = NULL;
        live->parking = NULL;
    }
}

void park_set_parked(struct live *live, bool parked)
{
    live->was_due |= parked;
    live->engine->parker->loaded += parked;
    live->engine->parker->loaded -= live->parked;
    live->parked = parked;
}

/* What was freed is kept for the next wave, which may never come. */
static void give_memory_back(struct engine *engine)
{
    engine->parker->evicted++;
    if (engine->parker->evicted >= TRIM_EVERY && list_empty(&engine->parker->resting)) {
        engine->parker->evicted = 0;
        memory_give_back();
    }
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
        parker_due(engine->parker, due_ms);
    }
    if (!live) {
        return;
    }
    if (code == ERR_FENCED) {
        leases_report_fenced(engine->leases, live->shard->number, live->shard->epoch);
        shard_lost(live->shard->number, live->shard->epoch, engine);
        return;
    }
    if (code != ERR_OK) {
        live->park_refused = true; /* until it moves */
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

/* The row is written again for one that was read back and did not move: whatever it says is then ours. */
static void park(struct live *live)
{
    struct engine *engine = live->engine;
    struct arena arena;

    arena_init(&arena, 1024);
    int64_t until_ms = saga_rests_until(&live->saga, &arena);

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
                                  .awake = live->awake,
                                  .done = on_parked};
    live->parking = parking;
    live->was_due = true;
    store_park(engine->store, &parking->park);
}

static void on_quiet(struct timer *timer)
{
    struct engine *engine = container_of(timer, struct parker, rest_timer)->engine;
    int64_t before_ms = loop_boot_ms(engine->loop) - engine->options.park_after_ms;
    struct list_link *link;

    while ((link = list_first(&engine->parker->resting)) != NULL) {
        struct live *live = container_of(link, struct live, rest_link);

        if (live->rest_boot_ms > before_ms) {
            break;
        }
        list_remove(&engine->parker->resting, link);
        if (is_quiet(live)) { /* else whatever keeps it has it considered again */
            park(live);
        }
    }
    arm_rest(engine);
}

/* --- coming back --- */

static void on_due(struct timer *timer);
static void batch_go_on(struct parker *parker);

static void arm_due(struct parker *parker)
{
    if (parker->stopped || parker->busy || parker->next_ms == INT64_MAX) {
        return;
    }
    int64_t delay = parker->next_ms - loop_wall_ms(parker->engine->loop);

    delay = delay < 0 ? 0 : delay > DELAY_MS_MAX ? DELAY_MS_MAX : delay;
    timer_start(parker->engine->loop, &parker->timer, delay, on_due);
}

void parker_due(struct parker *parker, int64_t at_ms)
{
    if (at_ms < parker->next_ms) {
        parker->next_ms = at_ms;
        arm_due(parker);
    }
}

int64_t parker_lag_ms(const struct parker *parker)
{
    int64_t now_ms = loop_wall_ms(parker->engine->loop);

    /* 0 is "look": nothing is known of it yet. */
    return parker->next_ms > 0 && parker->next_ms < now_ms ? now_ms - parker->next_ms : 0;
}

void parker_look(struct parker *parker)
{
    parker_due(parker, 0);
}

static void on_over(struct deferred *deferred)
{
    struct parker *parker = container_of(deferred, struct parker, over);

    arena_reset(&parker->arena);
    parker->busy = false;
    if (parker->more) {
        int64_t at_ms = parker->moved ? 0 : loop_wall_ms(parker->engine->loop) + AGAIN_MS;

        parker->next_ms = at_ms < parker->next_ms ? at_ms : parker->next_ms;
    }
    arm_due(parker);
}

/* Later in this turn of the loop: what the read answered with is freed when nobody is inside its `done` any more. */
static void batch_end(struct parker *parker)
{
    loop_defer(parker->engine->loop, &parker->over, on_over);
}

static void errand_end(struct errand *errand)
{
    struct parker *parker = errand->parker;

    parker->under_way--;
    free(errand);
    if (!parker->beginning) {
        batch_go_on(parker);
    }
}

/* It stays where it is, for a program that can read it; the others go on. */
static void keep_unreadable(struct parker *parker, const struct errand *errand, const struct err *err)
{
    struct unreadable *unreadable = map_find(&parker->unreadable, &errand->id, sizeof(errand->id));

    if (!unreadable) {
        unreadable = memory_alloc(sizeof(*unreadable));
        unreadable->id = errand->id;
        map_put(&parker->unreadable, &unreadable->id, sizeof(unreadable->id), unreadable);
        log_error("saga_unreadable", LOG_UUID("saga", &errand->id.uuid), LOG_ERR(err));
    }
    unreadable->until_boot_ms = loop_boot_ms(parker->engine->loop) + UNREADABLE_MS;
    parker_due(parker, loop_wall_ms(parker->engine->loop) + UNREADABLE_MS);
}

/* For how long it is not tried again; 0: it is. */
static int64_t kept_back_ms(struct parker *parker, struct saga_id id)
{
    const struct unreadable *unreadable = map_find(&parker->unreadable, &id, sizeof(id));
    int64_t left_ms = unreadable ? unreadable->until_boot_ms - loop_boot_ms(parker->engine->loop) : 0;

    return left_ms > 0 ? left_ms : 0;
}

static void on_summoned(struct summons *summons, struct live *live, enum err_code code, const struct err *err)
{
    struct errand *errand = container_of(summons, struct errand, summons);
    struct parker *parker = errand->parker;

    if (live) { /* its timers, which are due, do the rest */
        parker->moved = true;
        free(map_remove(&parker->unreadable, &errand->id, sizeof(errand->id)));
    } else if (code == ERR_CORRUPT || code == ERR_NOT_FOUND) {
        keep_unreadable(parker, errand, err);
    } else if (code != ERR_FENCED && code != ERR_STOPPING) {
        parker_due(parker, loop_wall_ms(parker->engine->loop) + AGAIN_MS);
    }
    errand_end(errand);
}

static void row_begin(struct parker *parker, const struct due_row *row)
{
    struct engine *engine = parker->engine;
    const struct shard *shard = &engine->shards[row->shard];

    if (shard->state != SHARD_OWNED || live_find(engine, row->saga)) {
        return; /* in memory its own timers count */
    }
    int64_t kept_ms = kept_back_ms(parker, row->saga);

    if (kept_ms > 0) { /* others that were due have had the table looked at: it still has to be, then */
        parker_due(parker, loop_wall_ms(engine->loop) + kept_ms);
        return;
    }
    struct errand *errand = memory_alloc(sizeof(*errand));

    errand->parker = parker;
    errand->id = row->saga;
    parker->under_way++;
    errand->summons.presses = true;
    errand->summons.done = on_summoned;
    live_summon(engine, row->saga, row->namespace, &errand->summons);
}

static void batch_go_on(struct parker *parker)
{
    parker->beginning = true; /* what ends at once does not come here underneath us */
    while (!parker->stopped && parker->at < parker->take.count && parker->under_way < UNDER_WAY_MAX) {
        row_begin(parker, &parker->take.rows[parker->at++]);
    }
    parker->beginning = false;
    if (parker->under_way == 0) {
        batch_end(parker);
    }
}

static void on_taken(struct store_read *read)
{
    struct parker *parker = read->context;
    const struct due_take *take = &parker->take;

    if (parker->stopped || read->code != ERR_OK) {
        parker->take.count = 0;
        parker->more = false;
        parker->next_ms = loop_wall_ms(parker->engine->loop) + AGAIN_MS;
        batch_end(parker);
        return;
    }
    parker->more = take->more;
    parker->moved = false;
    parker->next_ms = take->next_ms < parker->next_ms ? take->next_ms : parker->next_ms;
    parker->at = 0;
    batch_go_on(parker);
}

static void on_due(struct timer *timer)
{
    struct parker *parker = container_of(timer, struct parker, timer);
    struct engine *engine = parker->engine;
    int64_t now_ms = loop_wall_ms(engine->loop);
    uint64_t owned = shards_owned_set(engine);

    if (parker->next_ms > now_ms) {
        arm_due(parker); /* a long wait, or a wall clock that was set back */
        return;
    }
    parker->next_ms = INT64_MAX;
    if (owned == 0) {
        return; /* gaining one has it looked at */
    }
    parker->busy = true;
    parker->take = (struct due_take){.read = {.arena = &parker->arena, .done = on_taken, .context = parker},
                                     .shards = owned,
                                     .now_ms = now_ms,
                                     /* Those that are in memory already have their rows until they move. */
                                     .limit = DUE_MAX + engine->parker->loaded + parker->unreadable.count,
                                     .next_ms = INT64_MAX};
    store_due_take(engine->store, &parker->take);
}

/* --- its own life --- */

struct parker *parker_new(struct engine *engine)
{
    struct parker *parker = memory_alloc(sizeof(*parker));

    parker->engine = engine;
    parker->next_ms = INT64_MAX;
    arena_init(&parker->arena, 16384);
    map_init(&parker->unreadable);
    list_init(&parker->resting);
    return parker;
}

void parker_stop(struct parker *parker)
{
    parker->stopped = true;
    timer_stop(parker->engine->loop, &parker->timer);
    timer_stop(parker->engine->loop, &parker->rest_timer);
}

void parker_free(struct parker *parker)
{
    size_t position = 0;
    void *value;

    while (map_next(&parker->unreadable, &position, &value)) {
        free(value);
    }
    map_fini(&parker->unreadable);
    loop_defer_cancel(parker->engine->loop, &parker->over);
    arena_fini(&parker->arena);
    free(parker);
}
