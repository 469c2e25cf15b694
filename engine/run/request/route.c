/* Routes an input to its saga: into its mailbox here, or through the inbox to the engine that owns it. */
#include "run/exchange/exchange.h"
#include "run/request/calling.h"
#include "run/saga/summon.h"
#include "run/shard/shard.h"

void route_prepare(struct work *work, struct saga_id saga, int64_t wait_ms)
{
    work->calling = arena_alloc(&work->arena, sizeof(*work->calling));
    work->calling->step = STEP_NONE;
    work->saga = saga;
    work->until_boot_ms = loop_boot_ms(work->engine->loop) + wait_ms;
}

bool route_elsewhere(struct work *work, uint32_t shard, route_function *post)
{
    if (work->mail.from_inbox || shard >= SHARD_COUNT || work->engine->shards[shard].state == SHARD_OWNED) {
        return false;
    }
    if (!work->request) {
        work_done(work, ERR_TIMEOUT, NULL); /* nobody waits for the result any more, and nothing was begun */
    } else if (work->verb || !work_is_not_sent_on(work, shard)) {
        post(work, shard);
    }
    return true;
}

void route_send(struct work *work)
{
    if (engine_is_draining(work->engine) && !work->mail.from_inbox) {
        work_fail(work, ERR_STOPPING, "this engine is stopping", "ask another engine, or again in a moment");
    } else if (!route_elsewhere(work, saga_id_shard(work->saga), errand_change)) {
        live_deliver(work->engine, work->saga, work->namespace, &work->mail);
    }
}

/* May the refusal be outdated? The engine that has the shard by now may accept what we refuse by what we remember, and
 * we may not have heard of it yet. */
static bool may_be_outdated(const struct work *work, enum err_code code)
{
    uint32_t shard = saga_id_shard(work->saga);

    return code != ERR_OK && !err_retryable(code) && !work->mail.from_inbox && shard < SHARD_COUNT &&
           !shard_is_surely_ours(work->engine, shard);
}

bool route_again(struct work *work, enum err_code code)
{
    struct err err = {0};

    if (may_be_outdated(work, code)) {
        (void)err_set(&err, ERR_FENCED, "the shard of this saga may have gone to another engine");
        work_done(work, ERR_FENCED, &err);
        return true;
    }
    if (code != ERR_FENCED || work->mail.from_inbox || work->calling->rerouted || engine_is_draining(work->engine) ||
        !work->request) {
        return false;
    }
    work->calling->rerouted = true;
    route_send(work);
    return true;
}
