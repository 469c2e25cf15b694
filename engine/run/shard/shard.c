/* The shards that this engine owns. Their unfinished sagas are loaded when a shard is gained, and dropped when it is
 * lost. */
#include "run/shard/shard.h"
#include "core/saga/hold.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/bulk/bulk.h"
#include "run/call/activity.h"
#include "run/exchange/exchange.h"
#include "run/notify/notifier.h"
#include "run/query/health.h"
#include "run/readiness.h"
#include "run/saga/cases.h"
#include "run/saga/due.h"
#include "run/saga/forgotten.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/saga/rests.h"
#include "run/shard/handover.h"

/* A saga whose log makes no sense is left alone and reported; the others go on. */
static void on_loaded_saga(struct shard_load *load, struct saga_id id, struct slice namespace,
                           const struct stored_turn *turns, size_t count)
{
    struct shard *shard = load->context;
    struct engine *engine = shard->engine;
    struct err err = {0};

    if (shard->load_stale || live_find(engine, id)) {
        return;
    }
    struct live *live = live_from_log(engine, shard, id, namespace, turns, count, &err);

    if (!live) {
        int64_t made = uuid_v7_ms(&id.uuid);

        log_error("saga_unreadable", LOG_UUID("saga", &id.uuid), LOG_ERR(&err));
        /* The saga stays among the unfinished, so that a program which can read it finds it. */
        shard->oldest_unreadable_ms =
            shard->oldest_unreadable_ms == 0 || made < shard->oldest_unreadable_ms ? made : shard->oldest_unreadable_ms;
        case_unreadable(shard, id, namespace, turns, count);
        return;
    }
    case_readable(engine, id);
    if (live->saga.phase == PHASE_ENDED) {
        live_discard(live);
        return;
    }
    forgotten_compare(live);
    live_enter(live);
    live->interrupted = true;
    live->maker_died = lease_owner_died(engine->leases, shard->number);
    live->awake = load->is_awake;
    if (live->saga.escalation.number / SHARD_COUNT > shard->escalation_counter) {
        shard->escalation_counter = live->saga.escalation.number / SHARD_COUNT;
    }
}

static void shard_begin_load(struct shard *shard);

static void on_loaded(struct shard_load *load)
{
    struct shard *shard = load->context;
    struct engine *engine = shard->engine;

    shard->load_running = false;
    if (shard->load_stale) {
        shard->load_stale = false;
        if (shard->state == SHARD_LOADING) {
            shard_begin_load(shard); /* the shard was lost and gained again meanwhile */
        }
        return;
    }
    if (load->code != ERR_OK) {
        log_warn("shard_load_failed", LOG_I64("shard", shard->number), LOG_ERR(&load->err));
        shard_begin_load(shard); /* the store waits until the database is back */
        return;
    }
    if (load->escalation_number_max / SHARD_COUNT > shard->escalation_counter) {
        shard->escalation_counter = load->escalation_number_max / SHARD_COUNT;
    }
    if (load->approval_number_max / SHARD_COUNT > shard->approval_counter) {
        shard->approval_counter = load->approval_number_max / SHARD_COUNT;
    }
    shard->escalations_open = load->escalations_open;
    gauge_add(GAUGE_ESCALATIONS_OPEN, shard->escalations_open);
    forgotten_tell(engine, shard->number);
    shard->state = SHARD_OWNED;
    cases_go_on(shard);
    dues_look(engine);
    parker_let_go(engine, HOLD_PACE_DEFAULT);
    bulker_look(engine->bulker);
    notifier_look(engine->notifier);
    deliveries_watch(engine);
    gauge_set(GAUGE_SHARDS_OWNED, shards_owned(engine));
    /* All sagas are known before the first goes on. */
    for (struct list_link *link = list_first(&shard->sagas); link; link = list_after(&shard->sagas, link)) {
        struct live *live = container_of(link, struct live, link);

        activities_reconcile(live);
        live_ready(live);
    }
    engine_check_ready(engine);
}

static void on_forgotten(struct shard_load *load, const struct op_key *key, uint32_t attempts)
{
    forgotten_note(((struct shard *)load->context)->engine, key, attempts);
}

static void shard_begin_load(struct shard *shard)
{
    shard->load_running = true;
    shard->oldest_unreadable_ms = 0;
    shard->load = (struct shard_load){.shard = shard->number,
                                      .on_saga = on_loaded_saga,
                                      .on_forgotten = on_forgotten,
                                      .done = on_loaded,
                                      .context = shard};
    store_load_shard(shard->engine->store, &shard->load);
}

bool shard_is_surely_ours(const struct engine *engine, uint32_t shard)
{
    return engine->leases && lease_allows_send(engine->leases, shard);
}

void shard_gained(uint32_t number, int64_t epoch, void *context)
{
    struct engine *engine = context;
    struct shard *shard = &engine->shards[number];

    shard->state = SHARD_LOADING;
    shard->epoch = epoch;
    shard->alone_from_ms = loop_wall_ms(engine->loop) + lease_doubt_ms(engine->leases, number);
    if (engine_is_draining(engine)) {
        handover_all(engine); /* the wish came before, and nobody would give the shard back until the drain is over */
        return;
    }
    if (!shard->load_running) {
        shard_begin_load(shard);
    }
}

void shard_lost(uint32_t number, int64_t epoch, void *context)
{
    struct engine *engine = context;
    struct shard *shard = &engine->shards[number];

    if (shard->state == SHARD_NONE || shard->epoch != epoch) {
        return;
    }
    if (!engine_is_draining(engine)) {
        metric_add(METRIC_LEASES_LOST, 1);
    }
    shard_leave(shard);
}

void shard_fenced(struct engine *engine, uint32_t number, int64_t epoch)
{
    const struct shard *shard = &engine->shards[number];

    if (shard->state != SHARD_NONE && shard->epoch == epoch) {
        leases_report_fenced(engine->leases, number, epoch);
        shard_lost(number, epoch, engine);
    }
}

void shard_leave(struct shard *shard)
{
    struct engine *engine = shard->engine;

    shard->state = SHARD_NONE;
    rests_leave(engine, shard->number);
    gauge_add(GAUGE_ESCALATIONS_OPEN, -shard->escalations_open);
    shard->escalations_open = 0;
    cases_leave(shard);
    deliveries_watch(engine);
    shard->load_stale = shard->load_running;
    gauge_set(GAUGE_SHARDS_OWNED, shards_owned(engine));
    health_leaves(engine, shard->number);
    struct list_link *link;

    while ((link = list_first(&shard->sagas)) != NULL) {
        live_drop(container_of(link, struct live, link));
    }
}

int64_t shard_oldest_unfinished_ms(uint32_t number, void *context)
{
    struct engine *engine = context;
    const struct shard *shard = &engine->shards[number];
    const struct list_link *link = list_first(&shard->sagas);

    if (shard->state != SHARD_OWNED) {
        return 0; /* not known yet, and the mark must not move */
    }
    int64_t oldest = shard->oldest_unreadable_ms ? shard->oldest_unreadable_ms : loop_wall_ms(engine->loop);

    for (; link; link = list_after(&shard->sagas, link)) {
        const struct live *live = container_of(link, struct live, link);
        int64_t made = uuid_v7_ms(&live->saga.id.uuid);

        if (live->awake || live->parked || live->saga.phase == PHASE_ENDED) {
            continue; /* found in the table awake or due, or here only to answer */
        }
        oldest = made < oldest ? made : oldest;
    }
    return oldest;
}

uint64_t shards_owned_set(const struct engine *engine)
{
    uint64_t owned = 0;

    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        owned |= (uint64_t)(engine->shards[i].state == SHARD_OWNED) << i;
    }
    return owned;
}

uint32_t shards_owned(const struct engine *engine)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        count += engine->shards[i].state == SHARD_OWNED || engine->shards[i].state == SHARD_GIVING;
    }
    return count;
}
