/* The engine as a whole: start, being ready, drain, end. */
#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/resident.h"
#include "io/http/client.h"
#include "io/postgres/pool.h"
#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/call/limiter.h"
#include "run/exchange/exchange.h"
#include "run/intake/measures.h"
#include "run/query/health.h"
#include "run/query/saga_health.h"
#include "run/query/series.h"
#include "run/request/work.h"
#include "run/saga/cases.h"
#include "run/saga/forgotten.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/saga/retention.h"
#include "run/saga/scheduler.h"
#include "run/saga/summon.h"
#include "run/saga/turn.h"
#include "run/shard/handover.h"
#include "run/shard/shard.h"

#define CONNECTIONS_PER_HOST 64
#define LINKS_PER_DATABASE 8 /* of the adapter sql; a PostgreSQL takes about a hundred, from everybody */
#define LINK_IDLE_MS 30000

static void load_definitions(struct engine *engine);

static void engine_lags(struct engine_lags *out, void *context)
{
    struct engine *engine = context;

    *out = (struct engine_lags){.append_ms = store_append_lag_ms(engine->store),
                                .due_ms = parker_lag_ms(engine->parker),
                                .inbox_rows = (int64_t)deliveries_count(engine)};
}

static void start_leases(struct engine *engine)
{
    if (engine->leases || engine->draining) {
        return;
    }
    struct lease_options options = {.ttl_ms = engine->options.lease_ms,
                                    .margin_ms = engine->options.lease_ms / 5,
                                    .engine_name = engine->options.engine_name,
                                    .version = engine->options.version,
                                    .standby = engine->options.standby,
                                    .on_surplus = handover_surplus,
                                    .lags = engine_lags,
                                    .on_gained = shard_gained,
                                    .on_lost = shard_lost,
                                    .oldest_unfinished_ms = shard_oldest_unfinished_ms,
                                    .context = engine};

    engine->leases = leases_start(engine->store, &options);
}

static void on_definitions(struct store_read *read)
{
    struct engine *engine = read->context;

    engine->definitions_loading = false;
    if (read->code == ERR_OK) {
        for (size_t i = 0; i < engine->load_definitions.count; i++) {
            definitions_add(engine->definitions, &engine->load_definitions.rows[i]);
        }
        engine->definitions_loaded = true;
        start_leases(engine);
    } else {
        log_warn("definitions_unread", LOG_ERR(&read->err));
    }
    arena_reset(&engine->load_arena);
    if (engine->definitions_stale || (read->code != ERR_OK && engine->database_ready)) {
        engine->definitions_stale = false;
        load_definitions(engine);
    }
    engine_check_ready(engine);
}

static void load_definitions(struct engine *engine)
{
    if (engine->store_closing) {
        return; /* nothing is read any more */
    }
    if (engine->definitions_loading) {
        engine->definitions_stale = true;
        return;
    }
    engine->definitions_loading = true;
    engine->load_definitions =
        (struct load_definitions){.read = {.arena = &engine->load_arena, .done = on_definitions, .context = engine}};
    store_load_definitions(engine->store, &engine->load_definitions);
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
    bool first = !engine->definitions_loaded;

    engine->database_ready = true;
    engine->reason = (struct err){0};
    timer_stop(engine->loop, &engine->away_timer);
    log_info("database_ready");
    if (first && !engine->definitions_loading) {
        store_watch_definitions(store, on_definitions_changed, engine);
        scheduler_watch(engine->scheduler);
    }
    series_begin(engine->series);
    load_definitions(engine);
    call_queue_run(engine);
}

static void on_away_for_long(struct timer *timer)
{
    works_away(container_of(timer, struct engine, away_timer));
}

static void on_store_away(struct store *store, const struct err *err, void *context)
{
    struct engine *engine = context;

    if (engine->database_ready || engine->reason.code == ERR_OK) {
        log_warn("database_away", LOG_ERR(err));
    }
    if (engine->database_ready) {
        /*
         * One that was lost may be back in a moment, also where this process slept and the next owner of its shards has
         * ended its connections; where it just did not answer, a lease has passed already.
         */
        loop_clock_update(engine->loop); /* it may show a time before the sleep */
        bool hangs = store_has_hung(store) && !engine_is_current(engine);

        timer_start(engine->loop, &engine->away_timer, hangs ? 0 : engine->options.lease_ms, on_away_for_long);
    }
    engine->database_ready = false;
    engine->reason = *err;
}

bool engine_is_current(const struct engine *engine)
{
    return engine->leases && leases_are_current(engine->leases);
}

void engine_reason(const struct engine *engine, struct err *err)
{
    if (engine->reason.code != ERR_OK) {
        *err = engine->reason;
    } else if (!engine->database_ready) {
        (void)err_set(err, ERR_STORE, "the database is not connected yet");
    } else if (engine->leases && leases_reason(engine->leases)->code != ERR_OK) {
        *err = *leases_reason(engine->leases);
    } else if (engine->leases && !leases_are_current(engine->leases)) {
        (void)err_set(err, ERR_STORE, "the database has not answered within a lease");
        err_hint(err, "look at the server: does its disk, its synchronous standby, or a pooler with too few "
                      "connections hold it up?");
    } else if (!engine->definitions_loaded) {
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
    engine->refused = true;
    engine->database_ready = false;
    engine->reason = *err;
    if (engine->options.on_refused) {
        engine->options.on_refused(engine, err, engine->options.context);
    }
}

void engine_check_ready(struct engine *engine)
{
    struct engine_health health;

    engine_health(engine, &health);
    if (health.database && health.leases && health.loaded && !engine->ready_told) {
        engine->ready_told = true;
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
                                  .database = engine->database_ready && engine_is_current(engine),
                                  .schema = engine->definitions_loaded && !engine->refused,
                                  .leases =
                                      owned > 0 && engine_is_current(engine), /* what cannot be renewed has run out */
                                  .loaded = owned > 0 && loading == 0 && engine->definitions_loaded,
                                  .draining = engine->draining,
                                  .warning = engine->store ? store_warning(engine->store) : NULL};
    if (!out->draining && !(out->database && out->schema && out->leases && out->loaded)) {
        engine_reason(engine, &out->err);
    }
}

static bool budgets_apply(void *context, struct slice namespace, struct slice tool)
{
    const struct engine *engine = context;

    return limiter_budgets_apply(engine->limiter, namespace, tool);
}

struct engine *engine_start(struct loop *loop, const struct engine_options *given)
{
    struct engine *engine = memory_alloc(sizeof(*engine));
    struct engine_options *options = &engine->options;
    struct err err = {0};

    engine->loop = loop;
    *options = *given;
    options->lease_ms = given->lease_ms ? given->lease_ms : 10000;
    options->writers = given->writers ? given->writers : 4;
    options->readers = given->readers ? given->readers : 2;
    options->sagas_max = given->sagas_max ? given->sagas_max : 100000;
    options->payload_bytes_max = given->payload_bytes_max ? given->payload_bytes_max : 262144;
    options->response_bytes_max = given->response_bytes_max ? given->response_bytes_max : 1 << 20;
    options->calls_max = given->calls_max ? given->calls_max : 256;
    options->exec_max = given->exec_max ? given->exec_max : 16;
    options->park_after_ms = given->park_after_ms ? given->park_after_ms : 2000;
    options->park_ahead_ms = given->park_ahead_ms ? given->park_ahead_ms : 10000;
    options->forget_share = given->forget_share ? given->forget_share : 10;
    options->memory_bytes_max = given->memory_bytes_max ? given->memory_bytes_max : resident_bytes_there() / 2;
    options->commit_delay_ms = given->commit_delay_ms ? given->commit_delay_ms : 250;
    options->call_delay_ms = given->call_delay_ms ? given->call_delay_ms : 2000;
    arena_init(&engine->arena, 16384);
    arena_init(&engine->load_arena, 16384);
    options->dsn = arena_text(&engine->arena, given->dsn ? slice_of(given->dsn) : SLICE(""));
    options->engine_name =
        arena_text(&engine->arena, given->engine_name ? slice_of(given->engine_name) : SLICE("sagad"));
    options->version = arena_text(&engine->arena, given->version ? slice_of(given->version) : SLICE("?"));
    if (secrets_load(&engine->secrets, given->secrets_file, &err) != ERR_OK) {
        /* Told by the caller's on_refused once the loop runs would be late: nothing has been started yet. */
        err_print(&err, "sagad");
        secrets_fini(&engine->secrets);
        arena_fini(&engine->arena);
        free(engine);
        return NULL;
    }
    engine->limiter = limiter_new(engine, given->budgets_file, &err);
    if (!engine->limiter) {
        err_print(&err, "sagad");
        secrets_fini(&engine->secrets);
        arena_fini(&engine->arena);
        free(engine);
        return NULL;
    }
    engine->lives = lives_new(engine);
    engine->summoner = summoner_new();
    engine->turns = turns_new();
    engine->cases = cases_new();
    engine->health = health_new();
    engine->exchange = exchange_new(engine);
    engine->saga_healths = saga_healths_new();
    engine->series = series_new(engine);
    engine->forgotten = forgotten_new();
    list_init(&engine->watches);
    list_init(&engine->works);
    engine->calls = calls_new(engine);
    engine->measures = measures_new(engine);
    list_init(&engine->detached);
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        engine->shards[i] = (struct shard){.engine = engine, .number = i};
        list_init(&engine->shards[i].sagas);
    }
    engine->parker = parker_new(engine);
    engine->retention = retention_new(engine);
    engine->scheduler = scheduler_new(engine);
    engine->definitions = definitions_new();
    definitions_set_guard(engine->definitions, budgets_apply, engine);
    engine->http = http_client_new(loop, options->calls_max, CONNECTIONS_PER_HOST);
    if (options->egress) {
        http_client_set_egress(engine->http, options->egress);
        options->egress = NULL; /* the caller's */
    }
    engine->databases = db_pool_new(loop, &(struct db_pool_options){.links_max = LINKS_PER_DATABASE,
                                                                    .idle_ms = LINK_IDLE_MS,
                                                                    .application_name = "sagad sql"});
    engine->host = (struct adapter_host){.loop = loop,
                                         .http = engine->http,
                                         .databases = engine->databases,
                                         .programs = options->programs,
                                         .response_bytes_max = options->response_bytes_max};
    struct store_options store_options = {.dsn = options->dsn,
                                          .writers = options->writers,
                                          .readers = options->readers,
                                          .batch_max = 500,
                                          .second_batch_min = 200,
                                          .key_look_ms = options->key_look_ms,
                                          .answer_ms = options->lease_ms,
                                          .risk_losing_acknowledged_work = options->risk_losing_acknowledged_work,
                                          .on_ready = on_store_ready,
                                          .on_away = on_store_away,
                                          .on_rewound = on_rewound,
                                          .on_know = on_know,
                                          .on_history = on_history,
                                          .on_refused = on_store_refused,
                                          .context = engine};

    engine->store = store_open(loop, &store_options);
    return engine;
}

/* --- the end --- */

static void on_left(struct deferred *deferred)
{
    struct engine *engine = container_of(deferred, struct engine, leaver);

    engine->drained(engine->drained_context);
}

/* The store has just refused what it could not append: whoever asked for that is answered first, by what is deferred
 * before this. */
static void on_store_closed(void *context)
{
    struct engine *engine = context;

    engine->store = NULL;
    exchange_closed(engine);
    loop_defer(engine->loop, &engine->leaver, on_left);
}

/* Calls that were cancelled still settle: their memory and sockets are ours until then. */
static void close_when_quiet(struct engine *engine)
{
    if (engine->leases_released && calls_under_way(engine) == 0 && engine->renderings_under_way == 0 &&
        !exchange_sends_late(engine) && !engine->store_closing) {
        engine->store_closing = true;
        exchange_stop(engine);
        works_stop(engine);
        store_close(engine->store, on_store_closed, engine);
    }
}

static void on_leases_released(void *context)
{
    struct engine *engine = context;

    engine->leases = NULL;
    engine->leases_released = true;
    close_when_quiet(engine);
}

static void give_up_leases(struct engine *engine)
{
    if (engine->leases_releasing) {
        return;
    }
    engine->leases_releasing = true;
    timer_stop(engine->loop, &engine->drain_timer);
    timer_stop(engine->loop, &engine->away_timer);
    timer_stop(engine->loop, &engine->handover_timer);
    calls_stop(engine->calls);
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
    give_up_leases(container_of(timer, struct engine, drain_timer));
}

/* Whoever owns the shard next must not find an input in its inbox that we refuse at that moment. */
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
    if (!engine->leases_releasing && engine->draining && calls_under_way(engine) == 0 &&
        engine->renderings_under_way == 0 && turns_under_way(engine) == 0 && !lives_wait(engine) &&
        !answers_under_way(engine)) {
        /* From the timer, never from inside a turn. */
        timer_start(engine->loop, &engine->drain_timer, 0, on_patience_over);
    }
}

void engine_drain(struct engine *engine, int64_t patience_ms, void (*done)(void *context), void *context)
{
    engine->draining = true;
    engine->drained = done;
    engine->drained_context = context;
    timer_start(engine->loop, &engine->drain_timer, patience_ms, on_patience_over);
    parker_stop(engine->parker);
    retention_stop(engine->retention);
    scheduler_stop(engine->scheduler);
    series_stop(engine->series);
    call_queue_return(engine);
    if (engine->leases) {
        leases_leave(engine->leases);
        handover_all(engine);
    }
    engine_check_drained(engine);
}

void engine_free(struct engine *engine)
{
    if (!engine) {
        return;
    }
    turns_free(engine->turns);
    parker_free(engine->parker);
    retention_free(engine->retention);
    scheduler_free(engine->scheduler);
    exchange_free(engine->exchange);
    limiter_free(engine->limiter);
    adapter_host_close(&engine->host);
    http_client_free(engine->http);
    db_pool_free(engine->databases);
    definitions_free(engine->definitions);
    secrets_fini(&engine->secrets);
    lives_free(engine->lives);
    summoner_free(engine->summoner);
    cases_free(engine);
    calls_free(engine->calls);
    health_free(engine->health);
    saga_healths_free(engine->saga_healths);
    series_free(engine->series);
    measures_free(engine->measures);
    forgotten_free(engine->forgotten);
    arena_fini(&engine->load_arena);
    arena_fini(&engine->arena);
    free(engine);
}

void engine_watch_add(struct engine *engine, struct engine_watch *watch)
{
    list_push(&engine->watches, &watch->link);
}

void engine_watch_remove(struct engine *engine, struct engine_watch *watch)
{
    if (list_linked(&watch->link)) {
        list_remove(&engine->watches, &watch->link);
    }
}
