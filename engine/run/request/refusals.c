/*
 * Refusals of what would have been an act, and the end of old acts.
 *
 *     refused -> counted here: one entry for each token and minute -> a moment later: added to its row
 *
 * Writing each refusal when it happens would let anybody with a token write as often as it asks. So a process that dies
 * loses the refusals of the last seconds; acts are never lost, since they are written with what they changed. One entry
 * more than fit is only counted in the metric.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/readiness.h"
#include "run/request/act.h"

#define ENTRIES_MAX 500
#define WRITE_MS 1000
#define MINUTE_MS INT64_C(60000)
#define FORGET_EVERY_MS (60 * MINUTE_MS)

struct entries {
    struct act_refusal *items; /* in the arena, ENTRIES_MAX of them */
    size_t count;
    struct arena arena;
};

struct acts {
    struct engine *engine;
    struct timer timer, forget_timer;
    struct entries entries[2]; /* the entries that are counted now, and those that are being written */
    size_t counting;
    bool writing, forgetting, stopped;
    struct act_refuse refuse;
    struct arena write_arena;
    struct act_forget forget;
    struct arena forget_arena;
};

static void entries_reset(struct entries *entries)
{
    arena_reset(&entries->arena);
    entries->items = NULL;
    entries->count = 0;
}

/* --- writing --- */

static void on_time(struct timer *timer);

static void write_soon(struct acts *acts)
{
    if (!acts->stopped && !timer_running(&acts->timer)) {
        timer_start(acts->engine->loop, &acts->timer, WRITE_MS, on_time);
    }
}

static void write_now(struct acts *acts);

static void on_written(struct store_read *read)
{
    struct acts *acts = read->context;

    acts->writing = false;
    arena_reset(&acts->write_arena);
    if (read->code == ERR_OK || read->code == ERR_LOST_COMMIT) { /* after a lost answer nobody counts twice */
        entries_reset(&acts->entries[1 - acts->counting]);
    } else {
        log_warn("refusals_not_written", LOG_ERR(&read->err));
    }
    if (acts->stopped && read->code == ERR_OK) {
        write_now(acts); /* what was counted meanwhile */
    } else if (acts->entries[0].count + acts->entries[1].count > 0) {
        write_soon(acts);
    }
}

/* What could not be written is tried again before anything else is. */
static void write_now(struct acts *acts)
{
    struct entries *old = &acts->entries[1 - acts->counting];

    if (acts->writing || engine_is_closing(acts->engine)) {
        return;
    }
    if (!engine_has_database(acts->engine)) {
        write_soon(acts);
        return;
    }
    if (old->count == 0) {
        old = &acts->entries[acts->counting];
        acts->counting = 1 - acts->counting;
    }
    if (old->count > 0) {
        acts->writing = true;
        acts->refuse = (struct act_refuse){.read = {.arena = &acts->write_arena, .done = on_written, .context = acts},
                                           .refusals = old->items,
                                           .count = old->count};
        store_act_refuse(acts->engine->store, &acts->refuse);
    }
}

static void on_time(struct timer *timer)
{
    write_now(container_of(timer, struct acts, timer));
}

/* --- counting --- */

static struct uuid id_of(struct slice namespace, struct slice actor, int64_t minute_ms, struct arena *arena)
{
    struct slice fields[] = {namespace, actor, arena_printf(arena, "%lld", (long long)minute_ms)};
    struct digest digest = digest_fields("refusal", fields, COUNT_OF(fields));
    struct uuid id;

    memcpy(&id, &digest, sizeof(id));
    return id;
}

static struct act_refusal *entry_of(struct entries *entries, const struct engine_refusal *refused, int64_t minute_ms)
{
    for (size_t i = 0; i < entries->count; i++) {
        struct act_refusal *entry = &entries->items[i];

        if (entry->example.at_ms == minute_ms && slice_equal(entry->example.actor, refused->actor) &&
            slice_equal(entry->example.namespace, refused->namespace)) {
            return entry;
        }
    }
    if (entries->count == ENTRIES_MAX) {
        return NULL;
    }
    if (!entries->items) {
        entries->items = arena_array(&entries->arena, ENTRIES_MAX, sizeof(*entries->items));
    }
    struct act_refusal *entry = &entries->items[entries->count++];
    struct person_act *act = &entry->example;

    *entry = (struct act_refusal){.example.at_ms = minute_ms};
    act->namespace = arena_slice(&entries->arena, refused->namespace);
    act->actor = arena_slice(&entries->arena, refused->actor);
    act->id = id_of(act->namespace, act->actor, minute_ms, &entries->arena);
    return entry;
}

/* The first refusal of an entry stands for all of them, so that a flood takes no memory. */
static void keep_first(struct act_refusal *entry, const struct engine_refusal *refused, struct arena *arena)
{
    struct person_act *act = &entry->example;

    entry->code = err_name(refused->code);
    act->role = refused->by.role;
    act->via = refused->by.via;
    act->address = arena_slice(arena, refused->by.address);
    act->verb = arena_slice(arena, refused->verb);
    act->kind = arena_slice(arena, refused->kind);
    act->target = arena_slice(arena, refused->target);
}

void engine_count_refusal(struct engine *engine, const struct engine_refusal *refused)
{
    struct acts *acts = engine->works->acts;
    struct entries *entries = &acts->entries[acts->counting];
    int64_t now_ms = loop_wall_ms(engine->loop);
    struct act_refusal *entry;

    metric_add(METRIC_ACTS_REFUSED, 1);
    if (engine_is_closing(engine) || !(entry = entry_of(entries, refused, now_ms - now_ms % MINUTE_MS))) {
        return;
    }
    if (entry->count++ == 0) {
        keep_first(entry, refused, &entries->arena);
    }
    entry->last_ms = now_ms;
    if (acts->stopped) {
        write_now(acts);
    } else {
        write_soon(acts);
    }
}

/* --- retention --- */

static void on_forget_time(struct timer *timer);

static void forget_later(struct acts *acts)
{
    if (!acts->stopped && acts->engine->options.acts_keep_ms > 0) {
        timer_start(acts->engine->loop, &acts->forget_timer, FORGET_EVERY_MS, on_forget_time);
    }
}

static void on_forgotten(struct store_read *read)
{
    struct acts *acts = read->context;

    acts->forgetting = false;
    if (read->code != ERR_OK) {
        log_warn("acts_not_removed", LOG_ERR(&read->err));
    } else if (acts->forget.months > 0) {
        log_info("acts_removed", LOG_I64("months", acts->forget.months));
    }
    arena_reset(&acts->forget_arena);
}

/* One engine does it: the owner of shard 0. */
static void on_forget_time(struct timer *timer)
{
    struct acts *acts = container_of(timer, struct acts, forget_timer);
    struct engine *engine = acts->engine;

    forget_later(acts);
    if (acts->forgetting || !engine_has_database(engine) || engine->shards[0].state != SHARD_OWNED) {
        return;
    }
    acts->forgetting = true;
    acts->forget = (struct act_forget){.read = {.arena = &acts->forget_arena, .done = on_forgotten, .context = acts},
                                       .before_ms = loop_wall_ms(engine->loop) - engine->options.acts_keep_ms};
    store_act_forget(engine->store, &acts->forget);
}

/* --- the whole --- */

struct acts *acts_new(struct engine *engine)
{
    struct acts *acts = memory_alloc(sizeof(*acts));

    acts->engine = engine;
    arena_init(&acts->entries[0].arena, 1024);
    arena_init(&acts->entries[1].arena, 1024);
    arena_init(&acts->write_arena, 1024);
    arena_init(&acts->forget_arena, 1024);
    forget_later(acts);
    return acts;
}

void acts_stop(struct engine *engine)
{
    struct acts *acts = engine->works->acts;

    acts->stopped = true;
    timer_stop(acts->engine->loop, &acts->timer);
    timer_stop(acts->engine->loop, &acts->forget_timer);
    write_now(acts);
}

void acts_free(struct acts *acts)
{
    timer_stop(acts->engine->loop, &acts->timer); /* an engine that could not start never leaves */
    timer_stop(acts->engine->loop, &acts->forget_timer);
    arena_fini(&acts->entries[0].arena);
    arena_fini(&acts->entries[1].arena);
    arena_fini(&acts->write_arena);
    arena_fini(&acts->forget_arena);
    free(acts);
}
