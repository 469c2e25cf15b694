/* Sagas that the clock starts, of the schedules whose shards are ours. See scheduler.c. */
#ifndef SAGAD_RUN_SAGA_SCHEDULER_H
#define SAGAD_RUN_SAGA_SCHEDULER_H

#include "run/engine_state.h"

struct scheduler *scheduler_new(struct engine *engine);
void scheduler_free(struct scheduler *scheduler);
void scheduler_watch(struct engine *engine); /* the store is ready, for the first time */

#endif
