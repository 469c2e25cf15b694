/*
 * The engine as a whole: its parts, and their one order. X_new() makes each part before the store is opened, and
 * X_free() gives it back after the store has closed. readiness.c has what an engine needs to be ready, and leaving.c
 * how it leaves.
 */
#include <stdlib.h>

#include "base/resident.h"
#include "io/http/client.h"
#include "io/postgres/pool.h"
#include "run/bulk/bulk.h"
#include "run/call/call_room.h"
#include "run/call/holds.h"
#include "run/call/limiter.h"
#include "run/exchange/exchange.h"
#include "run/intake/measures.h"
#include "run/leaving.h"
#include "run/notify/notifier.h"
#include "run/query/query_room.h"
#include "run/readiness.h"
#include "run/request/work.h"
#include "run/saga/saga_room.h"
#include "run/shard/handover.h"
#include "run/trace/exporter.h"

#define CONNECTIONS_PER_HOST 64
#define LINKS_PER_DATABASE                                                                                             \
    8 /* connections of the adapter `sql`; a PostgreSQL accepts about a hundred from all clients */
#define LINK_IDLE_MS 30000

/* Keeps the options. The settings of the program give every number, and an engine cannot work with a 0. */
static void options_keep(struct engine *engine, const struct engine_options *given)
{
    struct engine_options *options = &engine->options;

    CHECK(given->lease_ms > 0 && given->writers > 0 && given->readers > 0 && given->sagas_max > 0);
    CHECK(given->payload_bytes_max > 0 && given->response_bytes_max > 0 && given->calls_max > 0 && given->exec_max > 0);
    CHECK(given->park_after_ms > 0 && given->park_ahead_ms > 0 && given->forget_share > 0);
    CHECK(given->commit_delay_ms > 0 && given->call_delay_ms > 0);
    CHECK(given->bulk_items_max > 0 && given->bulk_jobs_max > 0 && given->bulk_rate > 0 && given->bulk_keep_ms > 0);
    CHECK(given->acts_keep_ms >= 0);
    *options = *given;
    options->memory_bytes_max = given->memory_bytes_max ? given->memory_bytes_max : resident_bytes_there() / 2;
    options->dsn = arena_text(&engine->arena, slice_of(given->dsn));
    options->engine_name = arena_text(&engine->arena, slice_of(given->engine_name));
    options->version = arena_text(&engine->arena, slice_of(given->version));
}

static void parts_new(struct engine *engine)
{
    saga_room_init(engine);
    engine->bulker = bulker_new(engine);
    engine->works = works_new(engine);
    engine->exchange = exchange_new(engine);
    query_room_init(engine);
    engine->holds = holds_new(engine);
    engine->definitions = definitions_new();
    definitions_set_guard(engine->definitions, limiter_budgets_apply, engine);
    engine->handover = handover_new(engine);
    engine->readiness = readiness_new(engine);
    engine->leaving = leaving_new(engine);
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        engine->shards[i] = (struct shard){.engine = engine, .number = i};
        list_init(&engine->shards[i].sagas);
    }
}

/* Opens what the adapters call with. */
static void host_open(struct engine *engine)
{
    struct engine_options *options = &engine->options;

    engine->host = (struct adapter_host){
        .loop = engine->loop,
        .http = http_client_new(engine->loop, options->calls_max, CONNECTIONS_PER_HOST),
        .databases = db_pool_new(engine->loop, &(struct db_pool_options){.links_max = LINKS_PER_DATABASE,
                                                                         .idle_ms = LINK_IDLE_MS,
                                                                         .application_name = "sagad sql",
                                                                         .egress = options->egress}),
        .programs = options->programs,
        .response_bytes_max = options->response_bytes_max};
    if (options->egress) {
        http_client_set_egress(engine->host.http, options->egress);
        options->egress = NULL; /* borrowed from the caller */
    }
}

static void store_begin(struct engine *engine)
{
    const struct engine_options *options = &engine->options;
    struct store_options store_options = {.dsn = options->dsn,
                                          .writers = options->writers,
                                          .readers = options->readers,
                                          .batch_max = 500,
                                          .second_batch_min = 200,
                                          .key_look_ms = options->key_look_ms,
                                          .answer_ms = options->lease_ms,
                                          .risk_losing_acknowledged_work = options->risk_losing_acknowledged_work,
                                          .virtual_clock = options->virtual_clock,
                                          .payload_keys = options->payload_keys};

    readiness_watch(engine, &store_options);
    engine->store = store_open(engine->loop, &store_options);
}

struct engine *engine_start(struct loop *loop, const struct engine_options *options)
{
    struct engine *engine = memory_alloc(sizeof(*engine));
    struct err err = {0};

    engine->loop = loop;
    arena_init(&engine->arena, 16384);
    options_keep(engine, options);
    parts_new(engine);
    if (secrets_load(&engine->secrets, options->secrets_file, &err) == ERR_OK) {
        engine->measures = measures_new(engine, &err);
    }
    if (engine->measures && call_room_init(engine, &err) == ERR_OK) {
        engine->notifier = notifier_new(engine, options->notify_file, &err);
    }
    if (engine->notifier) {
        engine->exporter = exporter_new(engine, &options->traces, &err);
    }
    if (!engine->exporter) {
        /* Reporting through the caller's on_refused would be late, when the loop runs. Nothing has been started yet. */
        err_print(&err, "sagad");
        engine_free(engine);
        return NULL;
    }
    host_open(engine);
    store_begin(engine);
    return engine;
}

/* The part made last goes first. */
void engine_free(struct engine *engine)
{
    if (!engine) {
        return;
    }
    adapter_host_close(&engine->host);
    http_client_free(engine->host.http);
    db_pool_free(engine->host.databases);
    exporter_free(engine->exporter);
    notifier_free(engine->notifier);
    call_room_fini(engine);
    measures_free(engine->measures);
    secrets_fini(&engine->secrets);
    leaving_free(engine->leaving);
    readiness_free(engine->readiness);
    handover_free(engine->handover);
    definitions_free(engine->definitions);
    holds_free(engine->holds);
    query_room_fini(engine);
    exchange_free(engine->exchange);
    works_free(engine->works);
    bulker_free(engine->bulker);
    saga_room_fini(engine);
    arena_fini(&engine->arena);
    free(engine);
}
