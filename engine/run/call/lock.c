/*
 * WANT_LOCK: a business key that a saga must hold before its steps begin. The lock is asked for once. A saga that
 * stands in line is told by an inbox row "locked" when it is its turn, and asks nothing meanwhile. Asking again, after
 * a takeover or because the saga had left memory, takes nothing twice.
 *
 * While a lock is being asked for, no turn of the saga begins: nobody would give back a lock that is taken after the
 * saga's end.
 */
#include "run/call/activity.h"
#include "run/engine_state.h"
#include "run/saga/live.h"

#define AGAIN_MS 1000

struct locking {
    struct activity *activity;
    struct arena arena; /* holds one question */
    struct lock_take take;
};

static void lock_ask(struct activity *activity);

static void on_again(struct timer *timer)
{
    struct activity *activity = container_of(timer, struct activity, timer);

    if (!engine_is_draining(activity->engine)) { /* otherwise its next owner asks */
        lock_ask(activity);
    }
}

static void lock_on_taken(struct store_read *read)
{
    const struct locking *locking = read->context;
    const struct lock_take *take = &locking->take;
    struct activity *activity = locking->activity;
    struct live *live = activity->live;

    if (!live) {
        activity_end(activity);
        return;
    }
    live->asks--;
    activity->state = ACTIVITY_WAITING;
    if (read->code != ERR_OK) {
        timer_start(activity->engine->loop, &activity->timer, AGAIN_MS, on_again);
        live_ready(live);
    } else if (take->held || take->fails) {
        activity_act(activity);
        activity->act->mail.input =
            (struct saga_input){.type = SAGA_INPUT_LOCKED, .locked = {.key = take->key, .refused = !take->held}};
        activity_report(activity);
    } else if (activity->cancelled) {
        activity_end(activity);
        live_ready(live);
    } else {
        live_ready(live); /* in line */
    }
}

static void lock_ask(struct activity *activity)
{
    const struct lock *lock = &activity->live->saga.locks[activity->want.number];
    struct locking *locking = activity->locking;

    arena_reset(&locking->arena); /* while the database is away the question is repeated again and again */
    locking->take = (struct lock_take){.read = {.arena = &locking->arena, .done = lock_on_taken, .context = locking},
                                       .namespace = activity->namespace,
                                       .key = arena_slice(&locking->arena, lock->key),
                                       .saga = activity->saga,
                                       .shard = activity->shard,
                                       .fails = lock->fails};
    activity->state = ACTIVITY_ASKING;
    activity->live->asks++;
    store_lock_take(activity->engine->store, &locking->take);
}

void lock_begin(struct activity *activity)
{
    const struct live *live = activity->live;
    struct locking *locking = arena_alloc(&activity->arena, sizeof(*locking));

    CHECK(activity->want.number < live->saga.lock_count);
    activity->saga = live->saga.id;
    activity->shard = live->shard->number;
    activity->namespace = arena_slice(&activity->arena, live->saga.namespace);
    activity->locking = locking;
    locking->activity = activity;
    arena_init(&locking->arena, 1024);
    arena_tie(&activity->arena, &locking->arena);
    lock_ask(activity);
}
