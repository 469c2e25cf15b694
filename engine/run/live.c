/*
 * A saga in memory: its mailbox and the order of its turns. One turn at a time; what waits, waits in the mailbox.
 */
#include <stdlib.h>

#include "run/engine_state.h"

#include "base/metric.h"

#define LIVE_BLOCK_BYTES 2048

struct live *live_new(struct engine *engine, struct shard *shard, struct saga_id id, const struct definition *definition)
{
    struct live *live = memory_alloc(sizeof(*live));

    live->engine = engine;
    live->shard = shard;
    arena_init(&live->arena, LIVE_BLOCK_BYTES);
    list_init(&live->mailbox);
    list_init(&live->activities);
    list_init(&live->waiters);
    saga_init(&live->saga, &live->arena, id, definition);
    list_push(&shard->sagas, &live->link);
    map_put(&engine->sagas, &live->saga.id, sizeof(live->saga.id), live);
    gauge_add(GAUGE_SAGAS_LOADED, 1);
    return live;
}

struct live *live_find(struct engine *engine, struct saga_id id)
{
    return map_find(&engine->sagas, &id, sizeof(id));
}

static void live_forget(struct live *live)
{
    (void)map_remove(&live->engine->sagas, &live->saga.id, sizeof(live->saga.id));
    list_remove(&live->shard->sagas, &live->link);
    gauge_add(GAUGE_SAGAS_LOADED, -1);
}

static void live_free(struct live *live)
{
    arena_fini(&live->arena);
    free(live);
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
    list_push(&live->mailbox, &mail->link);
    live_advance(live);
}

/* Out of memory and out of sight; whoever waited is told. */
static void live_end(struct live *live)
{
    waiters_answer(live);
    activities_detach(live);
    live_forget(live);
    refuse_mail(live, ERR_ENDED, "the saga has ended");
    live_free(live);
}

void live_advance(struct live *live)
{
    if (live->busy) {
        return;
    }
    live->busy = true;
    /* Before all of a shard is loaded nothing of it goes on: which escalation numbers are free is not known. on_loaded() comes here. */
    while (!live->turn && !live->dropped && live->shard->state != SHARD_LOADING && live->saga.phase != PHASE_ENDED && !list_empty(&live->mailbox)) {
        live->current = container_of(list_pop(&live->mailbox), struct mail, link);
        turn_begin(live, live->current);
        if (!live->turn) { /* it meant nothing: what it was about may have to be started again, a timer that came early */
            live->current = NULL;
            activities_reconcile(live);
        }
    }
    live->busy = false;
    if (!live->turn && (live->dropped || live->saga.phase == PHASE_ENDED || (live->saga.seq == 0 && list_empty(&live->mailbox)))) {
        if (live->dropped) {
            live_free(live);
        } else {
            live_end(live);
        }
    }
}

void live_after_turn(struct live *live)
{
    live->current = NULL;
    if (!live->dropped && live->saga.phase != PHASE_ENDED && live->saga.seq > 0 && live->refusals < REFUSALS_MAX) {
        activities_reconcile(live);
    }
    live_advance(live);
}

void live_drop(struct live *live)
{
    live->dropped = true;
    waiters_drop(live);
    activities_detach(live);
    live_forget(live);
    refuse_mail(live, ERR_FENCED, "the shard of this saga went to another engine");
    if (!live->turn && !live->busy) {
        live_free(live);
    }
}
