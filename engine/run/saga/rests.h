/*
 * The states of runs that went to rest here, as the last turn of each has stored them in the log (core/saga/rest.h). A
 * run is brought back from these bytes without a read, when a call of it is repeated.
 *
 * They are a copy of what the log has. Each turn of a run replaces them or drops them after its commit, and whatever
 * else may change the run's rows drops them before.
 */
#ifndef SAGAD_RUN_SAGA_RESTS_H
#define SAGAD_RUN_SAGA_RESTS_H

#include "core/saga/saga.h"
#include "run/engine_state.h"

struct live;

struct rest_kept { /* borrowed until rests is asked for something else */
    struct saga_id id;
    uint64_t seq; /* the last record of the turn that stored the bytes */
    struct slice bytes;
};

struct rests *rests_new(struct engine *engine);
void rests_free(struct rests *rests);

/* A turn of the run is durable. `bytes` is what it stored as the state at rest; SLICE_NONE: it stored none. */
void rests_turn(const struct live *live, struct slice bytes);
bool rests_find(struct engine *engine, const struct digest *run, struct rest_kept *out);
void rests_drop(struct engine *engine, struct saga_id id); /* before its rows may go; none may be kept of it */
void rests_leave(struct engine *engine, uint32_t shard);   /* the shard is no longer ours */

#endif
