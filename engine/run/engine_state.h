/*
 * The engine as the files of run/ see it. Its parts hide their structs: each is made by X_new(), and its header says
 * what can be asked of it. What is not here belongs to one part alone.
 */
#ifndef SAGAD_RUN_ENGINE_STATE_H
#define SAGAD_RUN_ENGINE_STATE_H

#include "adapters/adapter.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "run/call/secrets.h"
#include "run/engine.h"
#include "run/request/definitions.h"
#include "run/shard/shard.h"
#include "store/store.h"

struct engine {
    struct loop *loop;
    struct engine_options options;
    struct store *store;
    struct leases *leases;
    struct http_client *http;
    struct db_pool *databases; /* of the adapter sql; the store has its own */
    struct adapter_host host;
    struct definitions *definitions;
    struct secrets secrets;
    struct arena arena; /* names and options */
    struct shard shards[SHARD_COUNT];
    uint32_t next_shard;       /* round robin for sagas without a business id */
    struct lives *lives;       /* saga/live.c */
    struct summoner *summoner; /* saga/summon.c */
    struct cases *cases;       /* saga/cases.c */
    struct turns *turns;       /* saga/turn.c */
    struct list watches;
    struct parker *parker;             /* park.c */
    struct retention *retention;       /* retention.c */
    struct scheduler *scheduler;       /* scheduler.c */
    struct calls *calls;               /* call/call_queue.c */
    struct list detached;              /* calls under way whose saga left memory */
    uint32_t renderings_under_way;     /* for wants, and of the answers of calls, which are not in the log yet */
    struct measures *measures;         /* intake/measures.c */
    struct list works;                 /* requests that are not answered */
    uint32_t previews_under_way;       /* that share a slice (query/preview.c) */
    struct health *health;             /* query/health.c */
    struct saga_healths *saga_healths; /* query/saga_health.c */
    struct series *series;             /* query/series.c */
    struct timer handover_timer;
    struct exchange *exchange; /* exchange/ */
    struct limiter *limiter;
    bool ready_told, database_ready, definitions_loaded, draining, refused;
    struct err reason; /* for not being ready */
    struct timer drain_timer;
    struct forgotten *forgotten; /* saga/forgotten.c */
    struct timer away_timer;     /* the database is away: when it runs out, who waits is told */
    struct load_definitions load_definitions;
    struct arena load_arena;
    bool definitions_loading, definitions_stale;
    void (*drained)(void *context);
    void *drained_context;
    struct deferred leaver; /* tells `drained` when the last requests are answered */
    bool leases_releasing, leases_released, store_closing;
};

/* engine.c */
void engine_reload_definitions(struct engine *engine);
void engine_check_ready(struct engine *engine);
void engine_check_drained(struct engine *engine);
/* The database has answered within a lease: what is here may be shown, and new work be taken. */
bool engine_is_current(const struct engine *engine);
/* Why this engine takes no work now: of what keeps it from being ready. */
void engine_reason(const struct engine *engine, struct err *err);

#endif
