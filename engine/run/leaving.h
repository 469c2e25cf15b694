/* The end of an engine, from the first word of it to the last. See leaving.c. */
#ifndef SAGAD_RUN_LEAVING_H
#define SAGAD_RUN_LEAVING_H

#include "run/engine_state.h"

struct leaving *leaving_new(struct engine *engine);
void leaving_free(struct leaving *leaving);
/* Something has ended: an engine that drains, or whose store waits to be closed, may go on with that. */
void engine_check_drained(struct engine *engine);

#endif
