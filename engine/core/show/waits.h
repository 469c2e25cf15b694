/* What a saga waits for, as a filter of lists. A saga may wait for several things at once. */
#ifndef SAGAD_CORE_SHOW_WAITS_H
#define SAGAD_CORE_SHOW_WAITS_H

#include "core/saga/saga.h"

#define SAGA_WAIT_MAP(X)                                                                                               \
    X(SAGA_WAIT_RETRY, "retry")   /* the next attempt of a call */                                                     \
    X(SAGA_WAIT_PROBE, "probe")   /* the next answer to what became of a call */                                       \
    X(SAGA_WAIT_HOLD, "hold")     /* somebody has to release what they hold; as far as this engine knows the holds */  \
    X(SAGA_WAIT_PERSON, "person") /* a case is open */                                                                 \
    X(SAGA_WAIT_APPROVAL, "approval") /* the approval of a step is open */                                             \
    X(SAGA_WAIT_SIGNAL, "signal")                                                                                      \
    X(SAGA_WAIT_TIME, "time") /* the end of a sleep */                                                                 \
    X(SAGA_WAIT_LOCK, "lock")                                                                                          \
    X(SAGA_WAIT_BREAKER, "breaker") /* the breaker of a tool has to close: no log has it, see saga_waits_at_breaker()  \
                                     */

#define X(id, name) id,
enum saga_wait { SAGA_WAIT_MAP(X) SAGA_WAIT_COUNT };
#undef X

bool saga_wait_parse(struct slice name, enum saga_wait *out);
uint32_t saga_waits(const struct saga *saga); /* a bit for each but SAGA_WAIT_BREAKER */

#endif
