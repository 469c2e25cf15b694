/* Giving shards to other engines: see handover.c. */
#ifndef SAGAD_RUN_SHARD_HANDOVER_H
#define SAGAD_RUN_SHARD_HANDOVER_H

#include "run/engine_state.h"

struct handover *handover_new(struct engine *engine);
void handover_free(struct handover *handover);
void handover_stop(struct engine *engine); /* all shards are lost */

/* so many shards are beyond our share (lease_options) */
void handover_surplus(size_t count, void *engine);
void handover_all(struct engine *engine); /* draining: each as soon as it is quiet */

#endif
