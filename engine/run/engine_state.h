/*
 * The engine as the files of run/ see it. Its parts hide their structs: each is made by X_new(), and its header says
 * what can be asked of it. A part that only one room looks into stands in the struct of that room (saga/saga_room.h).
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

enum engine_phase { /* leaving.c moves it, one after the other */
                    ENGINE_RUNNING,
                    ENGINE_DRAINING,  /* nothing new is taken */
                    ENGINE_RELEASING, /* the leases are being given up */
                    ENGINE_RELEASED,
                    ENGINE_CLOSING /* the store closes: nothing is asked of it any more */
};

struct engine {
    struct loop *loop;
    struct engine_options options;
    enum engine_phase phase;
    struct store *store;
    struct leases *leases;    /* NULL before the database is there, and after they are released */
    struct adapter_host host; /* the host's connections are the engine's, too; the store has its own */
    struct secrets secrets;
    struct arena arena; /* names and options */
    struct shard shards[SHARD_COUNT];
    struct definitions *definitions; /* request/definitions.c */
    struct saga_room *saga_room;     /* saga/saga_room.h */
    struct call_room *call_room;     /* call/call_room.h */
    struct query_room *query_room;   /* query/query_room.h */
    struct bulker *bulker;           /* bulk/bulker.c */
    struct holds *holds;             /* call/holds.c */
    struct notifier *notifier;       /* notify/notifier.c */
    struct exporter *exporter;       /* trace/exporter.c */
    struct works *works;             /* request/work.c */
    struct exchange_room *exchange;  /* exchange/ */
    struct measures *measures;       /* intake/measures.c */
    struct handover *handover;       /* shard/handover.c */
    struct readiness *readiness;     /* readiness.c */
    struct leaving *leaving;         /* leaving.c */
};

static inline bool engine_is_draining(const struct engine *engine)
{
    return engine->phase >= ENGINE_DRAINING;
}

static inline bool engine_is_closing(const struct engine *engine)
{
    return engine->phase >= ENGINE_CLOSING;
}

#endif
