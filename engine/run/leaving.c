/*
 * How an engine leaves. It accepts nothing new, work under way settles, and each shard goes to another engine as soon
 * as it is quiet. When nothing is under way, or the patience is over, the engine gives up its leases. Then the store
 * closes.
 *
 *     RUNNING -> DRAINING -> RELEASING -> RELEASED -> CLOSING -> `drained` is told
 */
#include "run/leaving.h"

#include <stdlib.h>

#include "run/bulk/bulk.h"
#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/call/holds.h"
#include "run/exchange/exchange.h"
#include "run/notify/notifier.h"
#include "run/query/series.h"
#include "run/readiness.h"
#include "run/request/act.h"
#include "run/request/work.h"
#include "run/saga/due.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/saga/turn.h"
#include "run/shard/handover.h"
#include "run/shard/shard.h"
#include "run/trace/exporter.h"

struct leaving {
    struct engine *engine;
    struct timer timer;
    void (*drained)(void *context);
    void *context;
    struct deferred leaver; /* calls `drained` when the last requests are answered */
};

static void move(struct engine *engine, enum engine_phase to)
{
    CHECK(to == engine->phase + 1); /* one phase after the other, and never back */
    engine->phase = to;
}

static void on_left(struct deferred *deferred)
{
    struct leaving *leaving = container_of(deferred, struct leaving, leaver);

    leaving->drained(leaving->context);
}

/* The store has just refused what it could not append. Deferred work from before this answers those clients first. */
static void on_store_closed(void *context)
{
    struct engine *engine = context;

    engine->store = NULL;
    readiness_stop(engine);
    exchange_closed(engine);
    loop_defer(engine->loop, &engine->leaving->leaver, on_left);
}

/* Cancelled calls still settle, and use our memory and sockets until then. */
static void close_when_quiet(struct engine *engine)
{
    if (engine->phase == ENGINE_RELEASED && calls_under_way(engine) == 0 && renderings_under_way(engine) == 0 &&
        !exchange_sends_late(engine) && !notifier_sends(engine->notifier) && !exporter_works(engine->exporter)) {
        move(engine, ENGINE_CLOSING);
        exchange_stop(engine);
        works_stop(engine);
        store_close(engine->store, on_store_closed, engine);
    }
}

static void on_leases_released(void *context)
{
    struct engine *engine = context;

    engine->leases = NULL;
    move(engine, ENGINE_RELEASED);
    close_when_quiet(engine);
}

static void give_up_leases(struct engine *engine)
{
    if (engine->phase >= ENGINE_RELEASING) {
        return;
    }
    move(engine, ENGINE_RELEASING);
    timer_stop(engine->loop, &engine->leaving->timer);
    handover_stop(engine);
    calls_stop(engine);
    exporter_stop(engine->exporter);
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        shard_lost(i, engine->shards[i].epoch, engine);
    }
    activities_cancel_detached(engine);
    if (engine->leases) {
        leases_release(engine->leases, on_leases_released, engine);
    } else {
        on_leases_released(engine);
    }
}

static void on_patience_over(struct timer *timer)
{
    give_up_leases(container_of(timer, struct leaving, timer)->engine);
}

/* The next owner of the shard must not find an input in its inbox that we refuse at that moment. */
static bool answers_under_way(const struct engine *engine)
{
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        if (engine->shards[i].answers > 0) {
            return true;
        }
    }
    return false;
}

void engine_check_drained(struct engine *engine)
{
    close_when_quiet(engine);
    if (engine->phase == ENGINE_DRAINING && calls_under_way(engine) == 0 && renderings_under_way(engine) == 0 &&
        turns_under_way(engine) == 0 && !lives_wait(engine) && !answers_under_way(engine) &&
        !exporter_works(engine->exporter)) {
        /* Ends from the timer, never from inside a turn. */
        timer_start(engine->loop, &engine->leaving->timer, 0, on_patience_over);
    }
}

void engine_drain(struct engine *engine, int64_t patience_ms, void (*done)(void *context), void *context)
{
    if (engine->phase == ENGINE_RUNNING) { /* a second drain only has less patience */
        move(engine, ENGINE_DRAINING);
    }
    engine->leaving->drained = done;
    engine->leaving->context = context;
    timer_start(engine->loop, &engine->leaving->timer, patience_ms, on_patience_over);
    dues_stop(engine);
    parker_stop(engine);
    bulker_stop(engine->bulker);
    notifier_stop(engine->notifier);
    exporter_drain(engine->exporter);
    series_stop(engine);
    acts_stop(engine);
    holds_stop(engine->holds);
    call_queue_return(engine);
    if (engine->leases) {
        leases_leave(engine->leases);
        handover_all(engine);
    }
    engine_check_drained(engine);
}

struct leaving *leaving_new(struct engine *engine)
{
    struct leaving *leaving = memory_alloc(sizeof(*leaving));

    leaving->engine = engine;
    return leaving;
}

void leaving_free(struct leaving *leaving)
{
    free(leaving);
}
