/* Private to readiness.c; tests take the database away. */
#ifndef SAGAD_RUN_READINESS_STATE_H
#define SAGAD_RUN_READINESS_STATE_H

#include "run/engine_state.h"

struct readiness {
    struct engine *engine;
    bool told;               /* on_ready was called */
    bool database;           /* it is connected */
    bool refused;            /* this engine must not run on it */
    bool definitions;        /* definitions have been read once */
    bool loading;            /* definitions are being read */
    bool stale;              /* definitions have changed meanwhile */
    struct err reason;       /* for not being ready */
    struct timer away_timer; /* the database is away: when it runs out, who waits is told */
    struct load_definitions load;
    struct arena load_arena;
};

#endif
