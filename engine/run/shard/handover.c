/*
 * Gives shards to other engines: because another one has come and this one holds more than its share, or because this
 * one leaves.
 *
 * Nothing new begins in a shard that is being given. Requests from outside go through the inbox to the next owner,
 * timers and evaluations stay as they are, and calls that were not sent yet wait. Calls under way settle, and inputs
 * from the inbox are answered. When only unsent calls are left, the log is told that they were not sent. This comes
 * last, because each such record counts as an attempt. Then the sagas of the shard leave memory, as in a drain, and the
 * row is released. For the next owner no call is in doubt.
 *
 *     SHARD_OWNED -> SHARD_GIVING -> only unsent calls      -> told so, and:
 *                                    quiet                  -> released
 *                                    not quiet for too long -> SHARD_OWNED again, and another time
 */
#include "run/shard/handover.h"
#include "core/saga/hold.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/call/limiter.h"
#include "run/exchange/exchange.h"
#include "run/saga/due.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/shard/shard.h"

enum {
    LOOK_EVERY_MS = 20,
    PATIENCE_MS = 3000,     /* the longest time for which the sagas of the shard stand still */
    AGAIN_AFTER_MS = 10000, /* the first wait until another try; each later one is twice as long */
    AGAIN_AFTER_MS_MAX = 320000
};

struct handover {
    struct engine *engine;
    struct timer timer;
};

/* --- is anything under way? --- */

enum motion {
    MOTION_NONE,
    MOTION_UNSENT,   /* a call whose intent is in the log waits for a place, or at a guard */
    MOTION_UNDER_WAY /* the end must get into the log */
};

static enum motion activity_motion(const struct activity *activity)
{
    if (activity->state != ACTIVITY_WAITING) {
        return MOTION_UNDER_WAY;
    }
    return activity->want.type == WANT_CALL ? MOTION_UNSENT : MOTION_NONE;
}

static enum motion live_motion(const struct live *live)
{
    enum motion most = MOTION_NONE;
    const struct list_link *link;

    if (live->turn || live->parking || live->asks > 0 || list_linked(&live->ready_link) ||
        !list_empty(&live->mailbox)) {
        return MOTION_UNDER_WAY;
    }
    for (link = list_first(&live->activities); link && most < MOTION_UNDER_WAY;
         link = list_after(&live->activities, link)) {
        enum motion motion = activity_motion(container_of(link, struct activity, link));

        most = motion > most ? motion : most;
    }
    return most;
}

static enum motion shard_motion(const struct shard *shard)
{
    enum motion most = shard->answers > 0 ? MOTION_UNDER_WAY : MOTION_NONE;
    const struct list_link *link;

    for (link = list_first(&shard->sagas); link && most < MOTION_UNDER_WAY; link = list_after(&shard->sagas, link)) {
        enum motion motion = live_motion(container_of(link, struct live, link));

        most = motion > most ? motion : most;
    }
    return most;
}

static size_t count_moving(const struct shard *shard, size_t most)
{
    const struct list_link *link;
    size_t count = 0;

    for (link = list_first(&shard->sagas); link && count < most; link = list_after(&shard->sagas, link)) {
        count += live_motion(container_of(link, struct live, link)) != MOTION_NONE;
    }
    return count;
}

/* --- one shard --- */

/* Returns calls with an intent in the log that wait for a place or at a guard. They were not sent, and the log is told
 * so. */
static void return_calls(struct shard *shard)
{
    call_queue_return_shard(shard);
    limiter_return_shard(shard->engine, shard->number);
}

static void look_again(struct engine *engine, int64_t ms);

static void shard_begin_giving(struct shard *shard)
{
    struct engine *engine = shard->engine;

    shard->state = SHARD_GIVING;
    shard->give_until_boot_ms = loop_boot_ms(engine->loop) + PATIENCE_MS;
    look_again(engine, 0);
}

static void shard_keep(struct shard *shard)
{
    struct engine *engine = shard->engine;
    int64_t again_ms = (int64_t)AGAIN_AFTER_MS << (shard->keeps < 5 ? shard->keeps : 5);

    shard->state = SHARD_OWNED;
    shard->keep_until_boot_ms =
        loop_boot_ms(engine->loop) + (again_ms < AGAIN_AFTER_MS_MAX ? again_ms : AGAIN_AFTER_MS_MAX);
    deliveries_watch(engine);
    dues_look(engine);
    parker_let_go(engine, HOLD_PACE_DEFAULT);
    activities_resume(shard);
    call_queue_run(engine);
}

static void shard_give(struct shard *shard)
{
    struct engine *engine = shard->engine;

    shard->keeps = 0;
    shard_leave(shard);
    metric_add(METRIC_SHARDS_GIVEN, 1);
    leases_give(engine->leases, shard->number);
}

static void shard_give_up(struct shard *shard)
{
    log_info("shard_kept", LOG_I64("shard", shard->number),
             LOG_I64("under_way", (int64_t)count_moving(shard, SIZE_MAX)));
    shard_keep(shard);
    shard->keeps++;
}

/* --- all that are being given --- */

static void on_look(struct timer *timer)
{
    struct engine *engine = container_of(timer, struct handover, timer)->engine;
    int64_t now_ms = loop_boot_ms(engine->loop);
    size_t given = 0, left = 0;

    for (uint32_t i = 0; i < SHARD_COUNT && engine->phase < ENGINE_RELEASING; i++) {
        struct shard *shard = &engine->shards[i];

        if (shard->state != SHARD_GIVING) {
            continue;
        }
        enum motion motion = shard_motion(shard);

        if (motion == MOTION_NONE) {
            shard_give(shard);
            given++;
        } else if (motion == MOTION_UNSENT) {
            return_calls(shard);
            left++;
        } else if (!engine_is_draining(engine) && now_ms >= shard->give_until_boot_ms) {
            shard_give_up(shard);
        } else {
            left++;
        }
    }
    if (given > 0) {
        log_info("shards_given", LOG_I64("shards", (int64_t)given), LOG_I64("left", shards_owned(engine)));
    }
    if (left > 0) {
        look_again(engine, LOOK_EVERY_MS);
    }
}

static void look_again(struct engine *engine, int64_t ms)
{
    timer_start(engine->loop, &engine->handover->timer, ms, on_look);
}

/* Returns the shard with the least work under way. */
static struct shard *choose(struct engine *engine)
{
    struct shard *best = NULL;
    size_t least = SIZE_MAX;

    for (uint32_t i = 0; i < SHARD_COUNT && least > 0; i++) {
        struct shard *shard = &engine->shards[i];

        if (shard->state == SHARD_OWNED && shard->keep_until_boot_ms <= loop_boot_ms(engine->loop)) {
            size_t count = count_moving(shard, least);

            best = count < least ? shard : best;
            least = count < least ? count : least;
        }
    }
    return best;
}

void handover_surplus(size_t count, void *context)
{
    struct engine *engine = context;
    size_t giving = 0;

    if (engine_is_draining(engine)) {
        return; /* all of them are being given already */
    }
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *shard = &engine->shards[i];

        giving += shard->state == SHARD_GIVING;
        if (shard->state == SHARD_GIVING && giving > count) {
            shard_keep(shard); /* the engine that it was for has gone again */
        }
    }
    for (struct shard *shard; giving < count && (shard = choose(engine)) != NULL; giving++) {
        shard_begin_giving(shard);
    }
}

void handover_all(struct engine *engine)
{
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *shard = &engine->shards[i];

        if (shard->state == SHARD_LOADING) {
            shard_give(shard); /* nothing of it has begun */
        } else if (shard->state == SHARD_OWNED) {
            shard->state = SHARD_GIVING; /* the calls were returned with all others */
        }
    }
    look_again(engine, 0);
}

/* --- its own life --- */

struct handover *handover_new(struct engine *engine)
{
    struct handover *handover = memory_alloc(sizeof(*handover));

    handover->engine = engine;
    return handover;
}

void handover_stop(struct engine *engine)
{
    timer_stop(engine->loop, &engine->handover->timer);
}

void handover_free(struct handover *handover)
{
    free(handover);
}
