/*
 * A saga in memory: its mailbox and the order of its turns. There is one turn at a time; other inputs wait in the
 * mailbox.
 */
#include "run/saga/live.h"

#include <stdlib.h>

#include "base/metric.h"
#include "run/call/activity.h"
#include "run/call/holds.h"
#include "run/engine_state.h"
#include "run/intake/measures.h"
#include "run/leaving.h"
#include "run/query/health.h"
#include "run/saga/fold.h"
#include "run/saga/observers.h"
#include "run/saga/park.h"
#include "run/saga/saga_room.h"
#include "run/saga/summon.h"
#include "run/saga/turn.h"
#include "run/shard/shard.h"

#define LIVE_BLOCK_BYTES 512
#define LIVE_TEXT_BYTES 96 /* what the state of a saga without payloads keeps: its names and its input */

struct lives {
    struct engine *engine;
    struct map sagas;  /* saga id -> struct live */
    struct map runs;   /* digest of (namespace, "~run", run) -> struct live */
    struct list ready; /* sagas that go on in the next round of `advance` */
    struct deferred advance;
};

static struct live *live_make(struct engine *engine, struct shard *shard, uint32_t steps)
{
    struct arena arena;

    arena_init(&arena, LIVE_BLOCK_BYTES);
    arena_reserve(&arena, sizeof(struct live) + steps * sizeof(struct step) + LIVE_TEXT_BYTES);
    struct live *live = arena_alloc(&arena, sizeof(*live));

    live->arena = arena;
    live->engine = engine;
    live->shard = shard;
    list_init(&live->mailbox);
    list_init(&live->activities);
    list_init(&live->waiters);
    list_init(&live->callers);
    return live;
}

void live_enter(struct live *live)
{
    list_push(&live->shard->sagas, &live->link);
    map_put(&live->engine->saga_room->lives->sagas, &live->saga.id, sizeof(live->saga.id), live);
    health_wakes(live->engine, live->saga.id);
    gauge_add(GAUGE_SAGAS_LOADED, 1);
    if (live->saga.seq > 0) {
        health_doubts(live);
    }
    if (live->saga.seq > 0 && live->saga.definition->kind == SAGA_RUN) {
        struct digest digest = run_digest(live->saga.namespace, live->saga.run);

        live_set_run(live, &digest);
    }
}

void live_set_run(struct live *live, const struct digest *digest)
{
    live->run_digest = arena_dup(&live->arena, digest, sizeof(*digest));
    map_put(&live->engine->saga_room->lives->runs, live->run_digest, sizeof(*live->run_digest), live);
}

void live_leave_run(struct live *live)
{
    if (live->run_digest && live_find_run(live->engine, live->run_digest) == live) {
        (void)map_remove(&live->engine->saga_room->lives->runs, live->run_digest, sizeof(*live->run_digest));
    }
    live->run_digest = NULL;
}

struct live *live_new(struct engine *engine, struct shard *shard, struct saga_id id,
                      const struct definition *definition)
{
    struct live *live = live_make(engine, shard, definition->step_count);

    saga_init(&live->saga, &live->arena, id, definition);
    live->saga.holds = holds_in_force(engine->holds);
    live->taken_in = true;
    live_enter(live);
    return live;
}

struct live *live_from_log(struct engine *engine, struct shard *shard, struct saga_id id, struct slice namespace,
                           const struct stored_turn *turns, size_t count, struct err *err)
{
    struct live *live = live_make(engine, shard, 0);

    if (fold_into(engine, &live->saga, &live->arena, id, namespace, turns, count, err) != ERR_OK) {
        live_discard(live);
        return NULL;
    }
    live->saga.alone_from_ms = shard->alone_from_ms;
    live->begun = true;
    return live;
}

size_t lives_of_namespace(const struct engine *engine, struct slice namespace)
{
    const struct live *live;
    size_t count = 0;

    for (size_t position = 0; map_next(&engine->saga_room->lives->sagas, &position, (void **)&live);) {
        count += slice_equal(live->saga.namespace, namespace);
    }
    return count;
}

struct live *live_from_rest(struct engine *engine, struct shard *shard, struct saga_id id, struct slice namespace,
                            uint64_t seq, struct slice rest, struct err *err)
{
    struct live *live = live_make(engine, shard, 0);

    if (fold_from_rest(engine, &live->saga, &live->arena, id, namespace, seq, rest, err) != ERR_OK) {
        live_discard(live);
        return NULL;
    }
    live->saga.alone_from_ms = shard->alone_from_ms;
    live->begun = true;
    return live;
}

struct live *live_find(const struct engine *engine, struct saga_id id)
{
    return map_find(&engine->saga_room->lives->sagas, &id, sizeof(id));
}

struct live *live_find_run(const struct engine *engine, const struct digest *run)
{
    return map_find(&engine->saga_room->lives->runs, run, sizeof(*run));
}

struct live *live_shown(struct engine *engine, struct saga_id id)
{
    return saga_id_shard(id) < SHARD_COUNT && shard_is_surely_ours(engine, saga_id_shard(id)) ? live_find(engine, id)
                                                                                              : NULL;
}

static void live_forget(struct live *live)
{
    holds_forget(live);
    park_forget(live);
    park_set_parked(live, false);
    if (live->run_digest) {
        summoner_run_left(live->engine, live->run_digest);
    }
    live_leave_run(live);
    health_forgets(live);
    (void)map_remove(&live->engine->saga_room->lives->sagas, &live->saga.id, sizeof(live->saga.id));
    list_remove(&live->shard->sagas, &live->link);
    gauge_add(GAUGE_SAGAS_LOADED, -1);
}

void live_discard(struct live *live)
{
    struct arena arena = live->arena;

    if (list_linked(&live->ready_link)) {
        list_remove(&live->engine->saga_room->lives->ready, &live->ready_link);
    }
    arena_fini(&arena); /* the arena holds the saga itself */
}

static void refuse_mail(struct live *live, enum err_code code, const char *message)
{
    struct list_link *link;

    while ((link = list_pop(&live->mailbox)) != NULL) {
        struct mail *mail = container_of(link, struct mail, link);
        struct err err = {0};

        (void)err_set(&err, code, "%s", message);
        mail->done(mail, code, &err);
    }
}

void live_send(struct live *live, struct mail *mail)
{
    mail->live = live;
    list_push(&live->mailbox, &mail->link);
    live_ready(live);
}

/* Ends a saga in memory. It is forgotten, and waiting clients are told. */
static void live_end(struct live *live)
{
    live_forget(live); /* forgotten first, so that later inputs have it read back */
    waiters_answer(live);
    callers_check(live);
    activities_detach(live);
    refuse_mail(live, ERR_ENDED, "the saga has ended");
    live_discard(live);
}

/* Does the saga accept mail? An open saga or a run that has ended still does: repeats of its calls are answered, and a
 * run is woken. */
static bool hears(const struct live *live)
{
    return live->saga.phase != PHASE_ENDED || saga_is_open(&live->saga);
}

/* Is nothing left to do for the saga? */
static bool is_over(const struct live *live)
{
    if (live->saga.phase == PHASE_ENDED) {
        return !saga_is_open(&live->saga) || list_empty(&live->mailbox);
    }
    return live->saga.seq == 0 && list_empty(&live->mailbox);
}

/* Takes inputs until one leads to a turn. The saga leaves memory when nothing is left to do for it. */
static void advance(struct live *live)
{
    /* Before a whole shard is loaded, none of its sagas goes on, because the free numbers of escalations are not known.
     * on_loaded() advances all of them. */
    while (!live->turn && !live->dropped && !live->parking && live->asks == 0 && live->shard->state != SHARD_LOADING &&
           hears(live) && !list_empty(&live->mailbox)) {
        live->current = container_of(list_pop(&live->mailbox), struct mail, link);
        turn_begin(live, live->current);
        if (!live->turn) { /* the input meant nothing; its activity may have to start again, as after an early timer */
            live->current = NULL;
            if (live->saga.phase != PHASE_ENDED && live->saga.seq > 0 && live->refusals < REFUSALS_MAX) {
                activities_reconcile(live);
            }
        }
    }
    if (!live->turn && (live->dropped || is_over(live))) {
        if (live->dropped) {
            live_discard(live);
        } else {
            live_end(live);
        }
    } else {
        park_consider(live);
    }
}

/* Turns begin here and nowhere else. A saga that becomes ready meanwhile has its time in the next round. */
static void on_ready(struct deferred *deferred)
{
    struct engine *engine = container_of(deferred, struct lives, advance)->engine;

    for (size_t left = engine->saga_room->lives->ready.count; left > 0; left--) {
        struct list_link *link = list_pop(&engine->saga_room->lives->ready);

        if (!link) {
            break;
        }
        advance(container_of(link, struct live, ready_link));
    }
    if (!list_empty(&engine->saga_room->lives->ready)) {
        loop_defer(engine->loop, &engine->saga_room->lives->advance, on_ready);
    }
    engine_check_drained(engine);
}

void live_ready(struct live *live)
{
    struct engine *engine = live->engine;

    if (!list_linked(&live->ready_link)) {
        list_push(&engine->saga_room->lives->ready, &live->ready_link);
        loop_defer(engine->loop, &engine->saga_room->lives->advance, on_ready);
    }
}

void live_evict(struct live *live)
{
    if (live->taken_in) { /* a saga that came back was counted when it left for the first time, or elsewhere */
        intake_work_ended(live->engine);
    }
    health_rests(live);
    live_forget(live);
    activities_detach(live);
    live_discard(live);
}

void live_after_turn(struct live *live)
{
    live->current = NULL;
    if (!live->dropped && live->saga.phase != PHASE_ENDED && live->saga.seq > 0 && live->refusals < REFUSALS_MAX) {
        activities_reconcile(live);
    }
    if (!live->dropped && !list_empty(&live->callers)) {
        callers_check(live);
    }
    live_ready(live);
}

void live_drop(struct live *live)
{
    live->dropped = true;
    waiters_drop(live);
    callers_drop(live);
    activities_detach(live);
    live_forget(live);
    refuse_mail(live, ERR_FENCED, "the shard of this saga went to another engine");
    live_ready(live); /* freed later, because the caller may be inside a callback of this very saga */
}

/* --- all of them --- */

struct lives *lives_new(struct engine *engine)
{
    struct lives *lives = memory_alloc(sizeof(*lives));

    lives->engine = engine;
    map_init(&lives->sagas);
    map_init(&lives->runs);
    list_init(&lives->ready);
    return lives;
}

void lives_free(struct lives *lives)
{
    map_fini(&lives->sagas);
    map_fini(&lives->runs);
    free(lives);
}

size_t lives_count(const struct engine *engine)
{
    return engine->saga_room->lives->sagas.count;
}

bool lives_wait(const struct engine *engine)
{
    return !list_empty(&engine->saga_room->lives->ready);
}

struct live *lives_next(const struct engine *engine, size_t *position)
{
    void *live;

    return map_next(&engine->saga_room->lives->sagas, position, &live) ? live : NULL;
}
