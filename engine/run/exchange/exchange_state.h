/* What is under way between this engine and others. Private to the files of exchange/. */
#ifndef SAGAD_RUN_EXCHANGE_EXCHANGE_STATE_H
#define SAGAD_RUN_EXCHANGE_EXCHANGE_STATE_H

#include "run/exchange/exchange.h"

struct exchange_room {
    struct engine *engine;
    struct list errands;       /* inputs on their way to other engines (errand.c) */
    struct map deliveries;     /* inbox row id -> its delivery under way (delivery.c) */
    struct list late_outcomes; /* evidence on its way to the owner of a saga (late.c) */
    struct deferred watch;     /* the watch of the inbox */
};

#endif
