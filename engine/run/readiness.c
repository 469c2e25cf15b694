/*
 * Is this engine ready? It needs the database, its definitions, a lease that is current, and its sagas in memory.
 *
 *     database -> definitions, holds -> leases -> shards, each of which loads its sagas -> ready
 *
 * The database may go away and come back at any time. The engine reports what that holds up, with the reason.
 */
#include "run/readiness.h"

#include <stdlib.h>

#include "base/log.h"
#include "run/bulk/bulk.h"
#include "run/call/call_queue.h"
#include "run/call/holds.h"
#include "run/exchange/exchange.h"
#include "run/query/health.h"
#include "run/query/series.h"
#include "run/readiness_state.h"
#include "run/request/work.h"
#include "run/saga/forgotten.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/saga/scheduler.h"
#include "run/shard/handover.h"
#include "run/shard/shard.h"

static void load_definitions(struct engine *engine);

static void engine_lags(struct engine_lags *out, void *context)
{
    struct engine *engine = context;

    *out = (struct engine_lags){.append_ms = store_append_lag_ms(engine->store),
                                .due_ms = parker_lag_ms(engine),
                                .inbox_rows = (int64_t)deliveries_count(engine),
                                .holds = holds_version(engine->holds)};
}

static void on_holds(int64_t version, void *context)
{
    holds_renewed(((struct engine *)context)->holds, version);
}

void engine_start_leases(struct engine *engine)
{
    if (engine->leases || engine_is_draining(engine) || !engine->readiness->definitions ||
        !holds_are_known(engine->holds)) {
        return;
    }
    struct lease_options options = {.ttl_ms = engine->options.lease_ms,
                                    .margin_ms = engine->options.lease_ms / 5,
                                    .engine_name = engine->options.engine_name,
                                    .version = engine->options.version,
                                    .standby = engine->options.standby,
                                    .on_surplus = handover_surplus,
                                    .lags = engine_lags,
                                    .on_holds = on_holds,
                                    .on_gained = shard_gained,
                                    .on_lost = shard_lost,
                                    .oldest_unfinished_ms = shard_oldest_unfinished_ms,
                                    .context = engine};

    engine->leases = leases_start(engine->store, &options);
}

static void on_definitions(struct store_read *read)
{
    struct engine *engine = read->context;

    engine->readiness->loading = false;
    if (read->code == ERR_OK) {
        for (size_t i = 0; i < engine->readiness->load.count; i++) {
            definitions_add(engine->definitions, &engine->readiness->load.rows[i]);
        }
        engine->readiness->definitions = true;
        engine_start_leases(engine);
    } else {
        log_warn("definitions_unread", LOG_ERR(&read->err));
    }
    arena_reset(&engine->readiness->load_arena);
    if (engine->readiness->stale || (read->code != ERR_OK && engine->readiness->database)) {
        engine->readiness->stale = false;
        load_definitions(engine);
    }
    engine_check_ready(engine);
}

static void load_definitions(struct engine *engine)
{
    if (engine_is_closing(engine)) {
        return; /* nothing is read any more */
    }
    if (engine->readiness->loading) {
        engine->readiness->stale = true;
        return;
    }
    engine->readiness->loading = true;
    engine->readiness->load = (struct load_definitions){
        .read = {.arena = &engine->readiness->load_arena, .done = on_definitions, .context = engine}};
    store_load_definitions(engine->store, &engine->readiness->load);
}

void engine_reload_definitions(struct engine *engine)
{
    load_definitions(engine);
}

static void on_definitions_changed(void *context)
{
    load_definitions(context);
}

static void on_store_ready(struct store *store, void *context)
{
    struct engine *engine = context;
    bool first = !engine->readiness->definitions;

    engine->readiness->database = true;
    engine->readiness->reason = (struct err){0};
    timer_stop(engine->loop, &engine->readiness->away_timer);
    log_info("database_ready");
    if (first && !engine->readiness->loading) {
        store_watch_definitions(store, on_definitions_changed, engine);
        scheduler_watch(engine);
        holds_watch(engine->holds);
        bulker_watch(engine->bulker);
    }
    series_begin(engine);
    load_definitions(engine);
    call_queue_run(engine);
}

static void on_away_for_long(struct timer *timer)
{
    works_away(container_of(timer, struct readiness, away_timer)->engine);
}

static void on_store_away(struct store *store, const struct err *err, void *context)
{
    struct engine *engine = context;

    if (engine->readiness->database || engine->readiness->reason.code == ERR_OK) {
        log_warn("database_away", LOG_ERR(err));
    }
    if (engine->readiness->database) {
        /*
         * A lost connection may be back in a moment, also when this process slept and the next owner of its shards has
         * ended its connections. When the connection just did not answer, a lease has already passed.
         */
        loop_clock_update(engine->loop); /* the loop's clock may show a time before the sleep */
        bool hangs = store_has_hung(store) && !engine_is_current(engine);

        timer_start(engine->loop, &engine->readiness->away_timer, hangs ? 0 : engine->options.lease_ms,
                    on_away_for_long);
    }
    engine->readiness->database = false;
    engine->readiness->reason = *err;
}

bool engine_has_database(const struct engine *engine)
{
    return engine->readiness->database;
}

bool engine_knows_definitions(const struct engine *engine)
{
    return engine->readiness->definitions;
}

bool engine_is_current(const struct engine *engine)
{
    return engine->leases && leases_are_current(engine->leases);
}

void engine_reason(const struct engine *engine, struct err *err)
{
    if (engine->readiness->reason.code != ERR_OK) {
        *err = engine->readiness->reason;
    } else if (!engine->readiness->database) {
        (void)err_set(err, ERR_STORE, "the database is not connected yet");
    } else if (engine->leases && leases_reason(engine->leases)->code != ERR_OK) {
        *err = *leases_reason(engine->leases);
    } else if (engine->leases && !leases_are_current(engine->leases)) {
        (void)err_set(err, ERR_STORE, "the database has not answered within a lease");
        err_hint(err, "look at the server: does its disk, its synchronous standby, or a pooler with too few "
                      "connections hold it up?");
    } else if (!engine->readiness->definitions) {
        (void)err_set(err, ERR_STORE, "this engine is reading its definitions");
    } else if (shards_owned(engine) == 0) {
        (void)err_set(err, ERR_STORE, "this engine has no shards: others have them all, or it has just come");
    } else {
        (void)err_set(err, ERR_STORE, "this engine is loading its sagas");
    }
}

static void on_rewound(struct store *store, void *context)
{
    (void)store;
    forgotten_log(context);
}

static void on_know(struct store *store, struct known_work *out, void *context)
{
    (void)store;
    forgotten_know(context, out);
}

static void on_history(struct store *store, void *context)
{
    (void)store;
    forgotten_remember(context);
}

static void on_store_refused(struct store *store, const struct err *err, void *context)
{
    struct engine *engine = context;

    (void)store;
    engine->readiness->refused = true;
    engine->readiness->database = false;
    engine->readiness->reason = *err;
    if (engine->options.on_refused) {
        engine->options.on_refused(engine, err, engine->options.context);
    }
}

void engine_check_ready(struct engine *engine)
{
    struct engine_health health;

    engine_health(engine, &health);
    if (health.database && health.leases && health.loaded && !engine->readiness->told) {
        engine->readiness->told = true;
        log_info("ready", LOG_I64("shards", shards_owned(engine)), LOG_I64("sagas", (int64_t)lives_count(engine)));
        if (engine->options.on_ready) {
            engine->options.on_ready(engine, engine->options.context);
        }
    }
}

void engine_health(const struct engine *engine, struct engine_health *out)
{
    uint32_t owned = 0, loading = 0;

    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        owned += engine->shards[i].state == SHARD_OWNED || engine->shards[i].state == SHARD_GIVING;
        loading += engine->shards[i].state == SHARD_LOADING;
    }
    *out = (struct engine_health){.alive = true,
                                  .database = engine->readiness->database && engine_is_current(engine),
                                  .schema = engine->readiness->definitions && !engine->readiness->refused,
                                  .leases = owned > 0 &&
                                            engine_is_current(engine), /* a lease that cannot be renewed has run out */
                                  .loaded = owned > 0 && loading == 0 && engine->readiness->definitions,
                                  .draining = engine_is_draining(engine),
                                  .warning = engine->store ? store_warning(engine->store) : NULL};
    if (!out->draining && !(out->database && out->schema && out->leases && out->loaded)) {
        engine_reason(engine, &out->err);
    }
}

/* --- its own life --- */

struct readiness *readiness_new(struct engine *engine)
{
    struct readiness *readiness = memory_alloc(sizeof(*readiness));

    readiness->engine = engine;
    arena_init(&readiness->load_arena, 16384);
    return readiness;
}

void readiness_watch(struct engine *engine, struct store_options *options)
{
    options->on_ready = on_store_ready;
    options->on_away = on_store_away;
    options->on_rewound = on_rewound;
    options->on_know = on_know;
    options->on_history = on_history;
    options->on_refused = on_store_refused;
    options->context = engine;
}

void readiness_stop(struct engine *engine)
{
    timer_stop(engine->loop, &engine->readiness->away_timer);
}

void readiness_free(struct readiness *readiness)
{
    arena_fini(&readiness->load_arena);
    free(readiness);
}
