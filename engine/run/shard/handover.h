/* Giving shards to other engines: see handover.c. */
#ifndef SAGAD_RUN_SHARD_HANDOVER_H
#define SAGAD_RUN_SHARD_HANDOVER_H

#include "run/engine_state.h"

/* so many shards are beyond our share (lease_options) */
void handover_surplus(size_t count, void *engine);
void handover_all(struct engine *engine); /* draining: each as soon as it is quiet */

#endif
