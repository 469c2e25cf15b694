/* Figures over time: what this engine has counted goes into the table once a minute. See series.c. */
#ifndef SAGAD_RUN_QUERY_SERIES_H
#define SAGAD_RUN_QUERY_SERIES_H

#include "run/engine_state.h"

struct series;

struct series *series_new(struct engine *engine);
void series_free(struct series *series);
void series_begin(struct engine *engine); /* the database answers; may be called again */
void series_stop(struct engine *engine);  /* what was counted since the last minute is written now, if it can be */

#endif
