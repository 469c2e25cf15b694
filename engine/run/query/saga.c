/* One saga as it is now: from memory when this engine has it, otherwise from its log; and waiting for its end. */
#include "run/query/saga_answer.h"
#include "run/request/work.h"
#include "run/saga/live.h"
#include "run/saga/observers.h"
#include "run/saga/summon.h"
#include "run/shard/shard.h"

#define POLL_MS 250

static void on_wait_over(struct timer *timer);
static void on_poll(struct timer *timer);

static void answer_or_wait(struct work *work);

static void on_read(struct store_read *read)
{
    struct work *work = read->context;
    struct engine *engine = work->engine;

    if (work_saga_read_failed(work, read)) {
        return;
    }
    int64_t left =
        work->request ? work->until_boot_ms - loop_boot_ms(engine->loop) : 0; /* without a listener there is no wait */

    if (!saga_status_is_final(work->read.row.status) && left > 0) {
        /* Another engine has the saga, or this one is still loading it, so the engine looks again. */
        timer_start(engine->loop, &work->timer, left < POLL_MS ? left : POLL_MS, on_poll);
        return;
    }
    struct saga *saga = work_fold(work);

    if (saga) {
        saga_answer(work, saga, NULL);
    }
}

void query_saga_from_store(struct work *work)
{
    arena_reset(&work->reading);
    work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_read, .context = work},
                                    .id = work->saga,
                                    .namespace = work->namespace};
    store_read_saga(work->engine->store, &work->read);
}

static void on_poll(struct timer *timer)
{
    answer_or_wait(container_of(timer, struct work, timer));
}

static void on_wait_over(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);

    saga_write_json(&work->live->saga, &work->out);
    work_mask(work, &work->live->saga, &work->out, 0);
    work_done(work, ERR_OK, NULL);
}

static void wait_for_end(struct work *work, struct live *live, int64_t left_ms)
{
    work->live = live;
    work->waits_in = &live->waiters;
    list_push(&live->waiters, &work->link);
    timer_start(work->engine->loop, &work->timer, left_ms, on_wait_over);
}

static void answer_from(struct work *work, struct live *live)
{
    int64_t left_ms = work->request ? work->until_boot_ms - loop_boot_ms(work->engine->loop) : 0;

    if (left_ms > 0 && live->saga.phase != PHASE_ENDED) {
        wait_for_end(work, live, left_ms);
    } else {
        saga_answer(work, &live->saga, live);
    }
}

struct saga_waking { /* a waking, in the arena of its work */
    struct work *work;
    struct summons summons;
};

static void on_summoned(struct summons *summons, struct live *live, enum err_code code, const struct err *err)
{
    struct work *work = container_of(summons, struct saga_waking, summons)->work;

    if (code == ERR_OK) {
        answer_from(work, live);
    } else if (code == ERR_FENCED || code == ERR_BUSY) {
        query_saga_from_store(work); /* looks again until the saga ends */
    } else {
        work_done(work, code, err);
    }
}

/* Brings a saga that rests here, or has ended, into memory, so that its end is waited for there instead of being
 * polled. */
static void summon(struct work *work)
{
    struct saga_waking *waking = arena_alloc(&work->arena, sizeof(*waking));

    waking->work = work;
    waking->summons = (struct summons){.done = on_summoned};
    live_summon(work->engine, work->saga, work->namespace, &waking->summons);
}

static void answer_or_wait(struct work *work)
{
    struct engine *engine = work->engine;
    struct live *live = live_shown(engine, work->saga);
    bool is_owned = engine->shards[saga_id_shard(work->saga)].state == SHARD_OWNED;
    int64_t left = work->until_boot_ms - loop_boot_ms(engine->loop);

    if (!live && is_owned && left > 0) {
        summon(work);
    } else if (!live || live->saga.seq == 0 || live->shard->state == SHARD_LOADING) {
        query_saga_from_store(work);
    } else if (!slice_equal(live->saga.namespace, work->namespace)) {
        work_no_saga(work);
    } else {
        answer_from(work, live);
    }
}

void engine_get_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    work->saga = request->in.get.id;
    work->until_boot_ms = loop_boot_ms(engine->loop) + request->in.get.wait_ms;
    if (saga_id_shard(work->saga) >= SHARD_COUNT) {
        work_no_saga(work);
    } else if (live_shown(engine, work->saga) || !work_refused(work)) {
        answer_or_wait(work);
    }
}

void waiters_answer(struct live *live)
{
    struct list_link *link;

    while ((link = list_first(&live->waiters)) != NULL) {
        struct work *work = container_of(link, struct work, link);

        saga_write_json(&live->saga, &work->out);
        work_mask(work, &live->saga, &work->out, 0);
        work_done(work, ERR_OK, NULL);
    }
}

void waiters_drop(struct live *live)
{
    struct list_link *link;

    while ((link = list_first(&live->waiters)) != NULL) {
        struct work *work = container_of(link, struct work, link);

        list_remove(&live->waiters, link);
        work->live = NULL;
        timer_start(work->engine->loop, &work->timer, POLL_MS, on_poll);
    }
}
