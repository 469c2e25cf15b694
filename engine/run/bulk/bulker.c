/*
 * Carries out the bulk jobs of our shards, one batch of items after the other:
 *
 *     what is due -> ask for each item's change, at a pace -> settle the outcomes, fenced -> what is due
 *
 * An item has the id "JOB/ITEM", which the first record of its turn keeps in the log of the saga. An engine that dies
 * between that turn and the outcome leaves the item open. The next owner of the shard asks again, and the saga answers
 * that it was done. When the saga no longer accepts the item (that turn closed its case, or the saga has ended), its
 * log is read before the item counts as refused.
 *
 * Whoever stops a job tells the owner of its shard, which then reads the job and begins no further item of it. Items
 * that are at work end, and only what has begun is settled. Without the message the batch under way ends first.
 *
 * An item whose operation is being called or probed has its turn later. So has an item that meets too much work or no
 * database. Jobs whose time is over are also removed here, some items at a time.
 */
#include "run/bulk/bulk.h"

#include <stdlib.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "run/intake/measures.h"
#include "run/saga/fold.h"

#define BATCH_ITEMS 25
#define AT_ONCE 8
#define POLL_MS 60000 /* looks even when nobody has said that a job is due */
#define AGAIN_MS 1000 /* after a failure of the database */
#define FORGET_ITEMS 500
#define WAIT_MS_MIN 1000 /* the shortest wait before an item has its turn again; longer for an old job */
#define WAIT_MS_MAX 60000
#define PATIENCE_MS (INT64_C(24) * 3600 * 1000) /* after this time an item that is held up counts as refused */

struct item_work { /* an item at work */
    struct bulker *bulker;
    struct bulk_outcome *outcome;
    struct bulk_item item;
    struct arena arena;
    struct slice id;
    struct engine_request request;
    struct read_saga read;
    struct deferred over;
};

struct bulker {
    struct engine *engine;
    struct timer timer;
    int64_t next_ms; /* when to look; INT64_MAX when only a gained shard leads to a look */
    struct bulk_take take;
    struct arena arena; /* holds the batch */
    struct item_work *acts;
    struct bulk_outcome *outcomes;
    size_t next, under_way;
    struct slice note, actor;
    int64_t run_ms, epoch;
    int64_t next_act_us; /* no item acts before, by the clock since boot */
    struct timer pace_timer;
    struct bulk_settle settle;
    struct bulk_forget forget;
    struct deferred over;
    bool busy, stopped, again;
    bool acting; /* items of the batch may begin */
    bool halted; /* somebody has stopped the job of this batch: no further item begins */
    bool asks, asks_again;
    struct bulk_list asked; /* the job as it is now */
    struct arena asking;
};

static void on_time(struct timer *timer);
static void acts_go(struct bulker *bulker);

static void arm(struct bulker *bulker)
{
    struct loop *loop = bulker->engine->loop;

    if (bulker->stopped || bulker->busy || bulker->next_ms == INT64_MAX) {
        return;
    }
    int64_t delay = bulker->next_ms - loop_wall_ms(loop);

    timer_start_by_day(loop, &bulker->timer, delay < 0 ? 0 : delay > POLL_MS ? POLL_MS : delay, on_time);
}

static void look_at(struct bulker *bulker, int64_t at_ms)
{
    if (at_ms < bulker->next_ms) {
        bulker->next_ms = at_ms;
        arm(bulker);
    }
}

void bulker_look(struct bulker *bulker)
{
    look_at(bulker, 0);
}

/* --- the end of a batch --- */

static void on_over(struct deferred *deferred)
{
    struct bulker *bulker = container_of(deferred, struct bulker, over);
    int64_t now_ms = loop_wall_ms(bulker->engine->loop);

    bulker->busy = false;
    arena_reset(&bulker->arena);
    look_at(bulker, bulker->again ? now_ms + AGAIN_MS : bulker->take.found ? 0 : now_ms + POLL_MS);
    arm(bulker);
}

/* Ends the batch later in this turn of the loop, because the callers still use memory of the arena. */
static void batch_end(struct bulker *bulker, bool again)
{
    bulker->again = again;
    loop_defer(bulker->engine->loop, &bulker->over, on_over);
}

/* Ends the batch because the job has another owner. */
static void batch_fenced(struct bulker *bulker)
{
    shard_fenced(bulker->engine, saga_id_shard(bulker->take.row.id), bulker->epoch);
    batch_end(bulker, false);
}

static void on_settled(struct store_read *read)
{
    struct bulker *bulker = read->context;

    if (!bulker->stopped && read->code == ERR_OK && bulker->settle.fenced) {
        batch_fenced(bulker);
    } else {
        batch_end(bulker, read->code != ERR_OK);
    }
}

static void batch_settle(struct bulker *bulker)
{
    struct engine *engine = bulker->engine;

    bulker->acting = false;
    if (bulker->stopped) { /* the next owner asks again, and hears what was done */
        batch_end(bulker, false);
        return;
    }
    bulker->settle = (struct bulk_settle){.read = {.arena = &bulker->arena, .done = on_settled, .context = bulker},
                                          .id = bulker->take.row.id,
                                          .epoch = bulker->epoch,
                                          .outcomes = bulker->outcomes,
                                          .count = bulker->next, /* items begin in order */
                                          .keep_ms = loop_wall_ms(engine->loop) + engine->options.bulk_keep_ms};
    store_bulk_settle(engine->store, &bulker->settle);
}

/* --- one item --- */

static void on_act_over(struct deferred *deferred)
{
    struct item_work *act = container_of(deferred, struct item_work, over);
    struct bulker *bulker = act->bulker;

    arena_fini(&act->arena);
    bulker->under_way--;
    acts_go(bulker);
}

static struct slice detail_of(struct bulker *bulker, const struct err *err, enum err_code code)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, 16384);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_write_text(&w, "code", err_name(code));
    json_write_text(&w, "message", err->message);
    json_write_slice(&w, "detail", err->detail[0] ? slice_of(err->detail) : SLICE_NONE);
    json_object_end(&w);
    CHECK(!text.overflow); /* sentences are short */
    struct slice detail = arena_slice(&bulker->arena, buffer_slice(&text));

    buffer_fini(&text);
    return detail;
}

/* Ends an item. `err` says why it was not done; NULL when it was. */
static void act_end(struct item_work *act, struct slice outcome, enum err_code code, const struct err *err)
{
    struct bulker *bulker = act->bulker;

    act->outcome->outcome = outcome;
    act->outcome->detail = err ? detail_of(bulker, err, code) : SLICE_NONE;
    metric_add(METRIC_BULK_ITEMS, outcome.ptr != NULL);
    loop_defer(bulker->engine->loop, &act->over, on_act_over);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Delays an item. Nothing was done, and it may be possible soon. */
static void act_waits(struct item_work *act, enum err_code code, const struct err *err)
{
    const struct bulker *bulker = act->bulker;
    int64_t now_ms = loop_wall_ms(bulker->engine->loop), age_ms = now_ms - bulker->run_ms;

    if (age_ms > PATIENCE_MS) {
        act_end(act, SLICE("refused"), code, err);
        return;
    }
    act->outcome->look_ms = now_ms + clamp(age_ms / 10, WAIT_MS_MIN, WAIT_MS_MAX);
    act_end(act, SLICE_NONE, code, err);
}

static bool may_come_right(enum err_code code)
{
    static const enum err_code soon[] = {ERR_CALL_OUT, ERR_PROBE_OUT, ERR_IN_FLIGHT,   ERR_BUSY,     ERR_QUOTA,
                                         ERR_STORE,    ERR_FENCED,    ERR_LOST_COMMIT, ERR_STOPPING, ERR_TIMEOUT};

    for (size_t i = 0; i < COUNT_OF(soon); i++) {
        if (code == soon[i]) {
            return true;
        }
    }
    return false;
}

/* The saga refused the item. Its log tells whether the item has been carried out before. */
static void on_log_read(struct store_read *read)
{
    struct item_work *act = read->context;
    struct bulker *bulker = act->bulker;
    enum err_code code = act->request.code;
    const struct saga *saga;
    struct err err = {0};

    if (read->code != ERR_OK && read->code != ERR_NOT_FOUND) {
        act_waits(act, read->code, &read->err);
        return;
    }
    saga = read->code == ERR_OK ? fold_turns(bulker->engine, act->item.saga, bulker->take.row.namespace,
                                             act->read.turns, act->read.turn_count, &act->arena, &err)
                                : NULL;
    if (saga && saga_did_bulk(saga, act->id)) {
        act_end(act, SLICE("done"), ERR_OK, NULL);
    } else {
        act_end(act, code == ERR_DECIDED ? SLICE("changed") : SLICE("refused"), code, &act->request.err);
    }
}

static void on_acted(struct engine_request *request)
{
    struct item_work *act = container_of(request, struct item_work, request);
    struct bulker *bulker = act->bulker;

    if (request->code == ERR_OK) {
        act_end(act, SLICE("done"), ERR_OK, NULL);
    } else if (may_come_right(request->code)) {
        act_waits(act, request->code, &request->err);
    } else {
        act->read = (struct read_saga){.read = {.arena = &act->arena, .done = on_log_read, .context = act},
                                       .id = act->item.saga,
                                       .namespace = bulker->take.row.namespace};
        store_read_saga(bulker->engine->store, &act->read);
    }
}

static void act_begin(struct bulker *bulker, size_t i)
{
    struct item_work *act = &bulker->acts[i];
    const struct bulk_item_row *row = &bulker->take.items[i];
    struct err err = {0};

    act->bulker = bulker;
    act->outcome = &bulker->outcomes[i];
    arena_init(&act->arena, 4096);
    act->id = bulk_item_id(bulker->take.row.id, row->number, &bulker->arena);
    bulker->under_way++;
    if (!bulk_item_read(row->body, &act->arena, &act->item)) {
        act_end(act, SLICE("refused"), err_set(&err, ERR_CORRUPT, "the item cannot be read"), &err);
        return;
    }
    act->request = (struct engine_request){
        .arena = &act->arena, .namespace = bulker->take.row.namespace, .actor = bulker->actor, .done = on_acted};
    bulk_item_change(&act->item, bulker->note, act->id, &act->request.in.change);
    engine_change(bulker->engine, &act->request);
}

/* --- a batch --- */

static void on_pace(struct timer *timer)
{
    acts_go(container_of(timer, struct bulker, pace_timer));
}

/* Returns how long the next item has to wait: by the rate, or while there is too much work. */
static int64_t pace_ms(struct bulker *bulker)
{
    struct engine *engine = bulker->engine;
    int64_t now_us = loop_boot_us(engine->loop), later_ms = 0;
    struct err err = {0};

    if (bulker->next_act_us > now_us) {
        return (bulker->next_act_us - now_us + 999) / 1000;
    }
    return engine_refuses_new(engine, &err, &later_ms) ? clamp(later_ms, WAIT_MS_MIN, WAIT_MS_MAX) : 0;
}

static void acts_go(struct bulker *bulker)
{
    const struct engine *engine = bulker->engine;

    timer_stop(engine->loop, &bulker->pace_timer); /* it would settle the batch once more, behind the last item */
    while (!bulker->stopped && !bulker->halted && bulker->next < bulker->take.count && bulker->under_way < AT_ONCE) {
        int64_t wait_ms = pace_ms(bulker);

        if (wait_ms > 0) {
            timer_start(engine->loop, &bulker->pace_timer, wait_ms, on_pace);
            return;
        }
        bulker->next_act_us = loop_boot_us(engine->loop) + 1000000 / engine->options.bulk_rate;
        act_begin(bulker, bulker->next++);
    }
    if (bulker->under_way == 0) {
        batch_settle(bulker);
    }
}

/* --- has somebody stopped it? --- */

static void ask_whether_it_runs(struct bulker *bulker);

static void on_asked(struct store_read *read)
{
    struct bulker *bulker = read->context;
    const struct bulk_list *asked = &bulker->asked;
    bool is_over = read->code == ERR_NOT_FOUND || (read->code == ERR_OK && asked->rows[0].state != BULK_RUNNING);

    bulker->asks = false;
    if (bulker->stopped || !bulker->acting) {
        return;
    }
    if (is_over && uuid_equal(&asked->id.uuid, &bulker->take.row.id.uuid)) {
        bulker->halted = true;
        acts_go(bulker); /* settles the batch when nothing is at work */
    } else if (bulker->asks_again) {
        ask_whether_it_runs(bulker);
    }
}

static void ask_whether_it_runs(struct bulker *bulker)
{
    bulker->asks_again = bulker->asks || !bulker->acting; /* batch_begin() asks what came while the job was read */
    if (bulker->asks_again || bulker->stopped || bulker->halted) {
        return;
    }
    bulker->asks = true;
    arena_reset(&bulker->asking);
    bulker->asked = (struct bulk_list){.read = {.arena = &bulker->asking, .done = on_asked, .context = bulker},
                                       .namespace = arena_slice(&bulker->asking, bulker->take.row.namespace),
                                       .id = bulker->take.row.id,
                                       .limit = 1};
    store_bulk_list(bulker->engine->store, &bulker->asked);
}

static void batch_begin(struct bulker *bulker)
{
    const struct bulk_take *take = &bulker->take;
    struct slice said = take->row.run;

    bulker->note = json_string(json_member(take->row.body, "note"), &bulker->arena);
    bulker->actor = json_string(json_member(said, "actor"), &bulker->arena);
    bulker->run_ms = loop_wall_ms(bulker->engine->loop);
    (void)instant_parse(json_string(json_member(said, "at"), &bulker->arena),
                        &bulker->run_ms); /* without this member the job is young */
    bulker->acts = arena_array(&bulker->arena, take->count + 1, sizeof(*bulker->acts));
    bulker->outcomes = arena_array(&bulker->arena, take->count + 1, sizeof(*bulker->outcomes));
    for (size_t i = 0; i < take->count; i++) {
        bulker->outcomes[i] = (struct bulk_outcome){.number = take->items[i].number, .look_ms = take->now_ms};
    }
    bulker->next = bulker->under_way = 0;
    bulker->acting = true;
    bulker->halted = false;
    if (bulker->asks_again) {
        ask_whether_it_runs(bulker);
    }
    acts_go(bulker);
}

static void on_forgotten(struct store_read *read)
{
    struct bulker *bulker = read->context;

    if (!bulker->stopped && read->code == ERR_OK && bulker->forget.fenced) {
        batch_fenced(bulker);
    } else {
        batch_end(bulker, read->code != ERR_OK);
    }
}

static void forget(struct bulker *bulker)
{
    bulker->forget = (struct bulk_forget){.read = {.arena = &bulker->arena, .done = on_forgotten, .context = bulker},
                                          .id = bulker->take.row.id,
                                          .epoch = bulker->epoch,
                                          .now_ms = bulker->take.now_ms,
                                          .limit = FORGET_ITEMS};
    store_bulk_forget(bulker->engine->store, &bulker->forget);
}

static void on_taken(struct store_read *read)
{
    struct bulker *bulker = read->context;
    const struct bulk_take *take = &bulker->take;
    const struct shard *shard;

    if (bulker->stopped || read->code != ERR_OK || !take->found) {
        look_at(bulker, read->code == ERR_OK ? take->next_ms : INT64_MAX);
        batch_end(bulker, read->code != ERR_OK);
        return;
    }
    shard = &bulker->engine->shards[saga_id_shard(take->row.id)];
    bulker->epoch = shard->epoch;
    if (shard->state != SHARD_OWNED) {
        batch_end(bulker, true);
    } else if (take->row.state == BULK_RUNNING) {
        batch_begin(bulker);
    } else {
        forget(bulker);
    }
}

static void on_time(struct timer *timer)
{
    struct bulker *bulker = container_of(timer, struct bulker, timer);
    struct engine *engine = bulker->engine;
    int64_t now_ms = loop_wall_ms(engine->loop);
    uint64_t owned = shards_owned_set(engine);

    if (bulker->next_ms > now_ms) {
        arm(bulker); /* the wall clock was set back */
        return;
    }
    bulker->next_ms = INT64_MAX;
    if (owned == 0) {
        return;
    }
    bulker->busy = true;
    bulker->asks_again = false;
    bulker->take = (struct bulk_take){.read = {.arena = &bulker->arena, .done = on_taken, .context = bulker},
                                      .shards = owned,
                                      .now_ms = now_ms,
                                      .limit = BATCH_ITEMS,
                                      .next_ms = INT64_MAX};
    store_bulk_take(engine->store, &bulker->take);
}

/* --- its own life --- */

static void on_changed(void *context)
{
    bulker_look(context);
    ask_whether_it_runs(context);
}

struct bulker *bulker_new(struct engine *engine)
{
    struct bulker *bulker = memory_alloc(sizeof(*bulker));

    bulker->engine = engine;
    bulker->next_ms = INT64_MAX;
    arena_init(&bulker->arena, 16384);
    arena_init(&bulker->asking, 1024);
    return bulker;
}

void bulker_watch(struct bulker *bulker)
{
    store_watch_bulk(bulker->engine->store, on_changed, bulker);
}

void bulker_stop(struct bulker *bulker)
{
    bulker->stopped = true;
    timer_stop(bulker->engine->loop, &bulker->timer);
    timer_stop(bulker->engine->loop, &bulker->pace_timer);
}

void bulker_free(struct bulker *bulker)
{
    loop_defer_cancel(bulker->engine->loop, &bulker->over);
    arena_fini(&bulker->arena);
    arena_fini(&bulker->asking);
    free(bulker);
}
