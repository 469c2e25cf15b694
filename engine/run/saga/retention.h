/* Ended sagas, and runs at rest, whose time is over are removed. See retention.c. */
#ifndef SAGAD_RUN_SAGA_RETENTION_H
#define SAGAD_RUN_SAGA_RETENTION_H

#include "run/engine_state.h"

struct retention *retention_new(struct engine *engine);
void retention_free(struct retention *retention);
/* How long the saga is kept after its end: as its definition says, or else the setting. 0: for ever. */
int64_t retention_of(const struct engine *engine, const struct saga *saga);
/* Is the saga being removed? Nothing of it may be read back meanwhile. */
bool retention_removes(const struct engine *engine, struct saga_id id);
void retention_due(struct engine *engine, int64_t at_ms); /* one is to go then */

#endif
