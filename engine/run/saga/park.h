/* Sagas at rest leave memory, and come back when their time has come. See park.c. */
#ifndef SAGAD_RUN_SAGA_PARK_H
#define SAGAD_RUN_SAGA_PARK_H

#include "run/saga/live.h"

struct parker *parker_new(struct engine *engine);
void parker_free(struct parker *parker);
int64_t parker_lag_ms(const struct engine *engine); /* the time by which the oldest is overdue */
/* after whatever may have been the last thing that kept a saga in memory */
void park_consider(struct live *live);
void park_forget(struct live *live); /* it moves, or leaves memory */
void park_set_parked(struct live *live, bool parked);
/* Holds have ended, or a shard was gained: the parked sagas that no hold keeps any more are let go, `pace` a second. */
void parker_let_go(struct engine *engine, uint32_t pace);
void parker_stop(struct engine *engine); /* draining */

#endif
